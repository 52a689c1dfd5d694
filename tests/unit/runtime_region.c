/* Regions and thread providers: every task once, phases in order, failures that do not depend on
 * timing. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/region_priv.h"

enum { TASKS = 1000, PHASES = 200 };

static int add_one(const WeftFrame *f, int64_t begin, int64_t end)
{
	int64_t *x = f->buf[0];
	for (int64_t i = begin; i < end; i++)
		x[i] += 1;
	return 0;
}

/* y[i] = sum of x[i-1..i+1]: wrong unless the phase before is complete. */
static int smooth(const WeftFrame *f, int64_t begin, int64_t end)
{
	const int64_t *x = f->buf[0];
	int64_t *y = f->buf[1], n = f->p[0];
	for (int64_t i = begin; i < end; i++)
		y[i] = (x[(i + n - 1) % n] + x[i] + x[(i + 1) % n]) % 1000003;
	return 0;
}

static int fail_some(const WeftFrame *f, int64_t begin, int64_t end)
{
	for (int64_t i = begin; i < end; i++)
		if (i % 10 == 7) {
			f->failure[0] = i;
			f->failure[1] = 100 * i;
			return (int)f->p[0];
		}
	return 0;
}

/* The first task fails another check than the others. */
static int fail_first(const WeftFrame *f, int64_t begin, int64_t end)
{
	if (begin == end)
		return 0;
	f->failure[0] = begin;
	f->failure[1] = begin - 1;
	return begin == 0 ? 2 : 1;
}

static int run_add(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	(void)slot;
	int stop = 0;
	for (int k = 0; k < PHASES && !stop; k++)
		stop = weft_phase(r, add_one, buf, NULL, 0, TASKS);
	return stop;
}

static int run_smooth(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	for (int k = 0; k < PHASES; k++) {
		void *b[2] = {buf[k % 2], buf[(k + 1) % 2]};
		if (weft_phase(r, smooth, b, slot, 0, slot[0]))
			return 1;
	}
	weft_copy(r, buf[2], buf[PHASES % 2], slot[0] * 8);
	return 0;
}

/* buf[0] gets 1, what fails later gets no turn. */
static int run_fail(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	(void)slot;
	int64_t two = 2, one = 1;
	if (weft_phase(r, add_one, buf, NULL, 0, TASKS) ||
	    weft_phase(r, fail_some, buf, &two, 1, TASKS) ||
	    weft_phase(r, add_one, buf, NULL, 0, TASKS) ||
	    weft_phase(r, fail_some, buf, &one, 2, TASKS))
		return 1;
	return weft_region_fail(r, "after what failed before");
}

static int run_fail_first(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	(void)slot;
	return weft_phase(r, fail_first, buf, NULL, 0, TASKS);
}

static int run_assert(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	(void)buf;
	return slot[0] != 3 && weft_region_fail(r, "slot is %lld, expected 3", (long long)slot[0]);
}

/* The number of rounds is data: x[0] after each, until it is slot[0]. y counts the rounds of every
 * thread. */
static int run_while(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	int64_t rounds = 0;
	while (weft_read(r, buf[0], WEFT_INT, 64) < slot[0]) {
		rounds++;
		if (weft_phase(r, add_one, buf, NULL, 0, TASKS))
			return 1;
	}
	return rounds != slot[0] && weft_region_fail(r, "%lld rounds", (long long)rounds);
}

/* Fails in the round in which x[0] is 5. */
static int fail_at_5(const WeftFrame *f, int64_t begin, int64_t end)
{
	int64_t *x = f->buf[0];
	int failed = 0;
	for (int64_t i = begin; i < end; i++) {
		failed = failed ? failed : x[i] == 5 && i >= 300;
		if (x[i] == 5 && i == 300)
			f->failure[0] = f->failure[1] = i;
		else if (x[i] == 5 && i > 300 && i == begin)
			f->failure[0] = f->failure[1] = i;
		x[i]++;
	}
	return failed;
}

static int run_while_fail(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	while (weft_read(r, buf[0], WEFT_INT, 64) < slot[0])
		if (weft_phase(r, fail_at_5, buf, NULL, 0, TASKS))
			return 1;
	return 0;
}

/* Three launches share each phase, of as many tasks as slot says; only the last waits. */
static int run_joined(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	int stop = 0;
	for (int k = 0; k < PHASES && !stop; k++) {
		assert_false(weft_phase(r, add_one, buf, NULL, 0 | WEFT_JOINED, slot[0]));
		assert_false(weft_phase(r, add_one, buf + 1, NULL, 1 | WEFT_JOINED, slot[1]));
		stop = weft_phase(r, add_one, buf + 2, NULL, 2, slot[2]);
	}
	return stop;
}

/* The second and the third launch of the phase fail: it ends, with the message of the second. */
static int run_joined_fail(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	(void)slot;
	int64_t two = 2;
	assert_false(weft_phase(r, add_one, buf, NULL, 0 | WEFT_JOINED, TASKS));
	assert_false(weft_phase(r, fail_some, buf, &two, 1 | WEFT_JOINED, TASKS));
	if (weft_phase(r, fail_first, buf + 1, NULL, 2, TASKS))
		return 1;
	return weft_phase(r, add_one, buf, NULL, 0, TASKS);
}

static const WeftCallInfo calls[] = {
	{"first", "", 0, 0}, {"second", "", 0, 0}, {"third", "", 0, 0}};
static const char *const messages[] = {"", "one: task %lld", "task leaves %lld, 100%%",
				       ("%lld %lld %lld %lld %lld %lld %lld %lld %lld %lld %lld "
					"%lld %lld")};

/* What is predicted of the three calls; NULL: nothing. share_all: whatever it is. */
static const WeftLaunch *predicted;
static bool share_all = true;

static int execute(int (*run)(WeftRegion *, void *const *, const int64_t *), void *const *buf,
		   const int64_t *slot, const WeftThreads *t, int32_t n, WeftStatus *status)
{
	WeftEntry e = {.size = sizeof e, .name = "main", .ncall = 3, .call = calls, .launch = predicted};
	e.run_fn = run;
	e.message = messages;
	e.nmessage = sizeof messages / sizeof *messages;
	WeftRegion r;
	memset(&r, 0, sizeof r);
	r.entry = &e;
	r.buf = buf;
	r.slot = slot;
	r.status = status;
	r.share_all = share_all;
	return region_run(&r, t, n);
}

static void check_while(const WeftThreads *t, int32_t n)
{
	static int64_t x[TASKS];
	WeftStatus status = {0};
	for (int64_t rounds = 0; rounds < 60; rounds += 7) {
		memset(x, 0, sizeof x);
		assert_int_equal(execute(run_while, (void *[]){x}, &rounds, t, n, &status),
				 WEFT_OK);
		assert_int_equal(x[TASKS - 1], rounds);
		memset(x, 0, sizeof x);
		int failed = execute(run_while_fail, (void *[]){x}, &rounds, t, n, &status);
		assert_int_equal(failed, rounds > 5 ? WEFT_ERR_CHECK : WEFT_OK);
		assert_int_equal(x[0], rounds > 5 ? 6 : rounds);
		if (failed)
			assert_string_equal(status.message, "one: task 300");
	}
}

static void check_joined(const WeftThreads *t, int32_t n)
{
	static int64_t x[3][TASKS];
	static const int64_t tasks[][3] = {
		{TASKS, TASKS, TASKS}, {1, 1, 1}, {0, 5, 0}, {TASKS, 1, 0}, {3, TASKS, 17}};
	WeftStatus status = {0};
	for (size_t c = 0; c < sizeof tasks / sizeof *tasks; c++) {
		memset(x, 0, sizeof x);
		void *buf[] = {x[0], x[1], x[2]};
		assert_int_equal(execute(run_joined, buf, tasks[c], t, n, &status), WEFT_OK);
		for (int b = 0; b < 3; b++)
			for (int64_t i = 0; i < TASKS; i++)
				assert_int_equal(x[b][i], i < tasks[c][b] ? PHASES : 0);
	}
	memset(x, 0, sizeof x);
	void *buf[] = {x[0], x[1]};
	assert_int_equal(execute(run_joined_fail, buf, NULL, t, n, &status), WEFT_ERR_CHECK);
	assert_string_equal(status.message, "task leaves 700, 100%");
	for (int i = 0; i < TASKS; i++)
		assert_int_equal(x[0][i], 1);
}

static void check_threads(const WeftThreads *t, int32_t n)
{
	WeftStatus status = {0};
	static int64_t x[TASKS], y[TASKS], out[TASKS], serial[TASKS];
	memset(x, 0, sizeof x);
	assert_int_equal(execute(run_add, (void *[]){x}, NULL, t, n, &status), WEFT_OK);
	for (int i = 0; i < TASKS; i++)
		assert_int_equal(x[i], PHASES);
	for (int64_t tasks = 1; tasks <= TASKS; tasks = tasks * 3 + 1) {
		for (int64_t i = 0; i < TASKS; i++)
			x[i] = i * i, y[i] = 0;
		execute(run_smooth, (void *[]){x, y, serial}, &tasks, t, 1, &status);
		for (int64_t i = 0; i < TASKS; i++)
			x[i] = i * i, y[i] = 0;
		execute(run_smooth, (void *[]){x, y, out}, &tasks, t, n, &status);
		assert_memory_equal(out, serial, (size_t)tasks * 8);
	}
	for (int k = 0; k < 20; k++) {
		memset(x, 0, sizeof x);
		assert_int_equal(execute(run_fail, (void *[]){x}, NULL, t, n, &status),
				 WEFT_ERR_CHECK);
		assert_string_equal(status.message, "task leaves 700, 100%");
		for (int i = 0; i < TASKS; i++)
			assert_int_equal(x[i], 1);
		assert_int_equal(execute(run_fail_first, (void *[]){x}, NULL, t, n, &status),
				 WEFT_ERR_CHECK);
		assert_string_equal(status.message, "task leaves -1, 100%");
	}
	check_while(t, n);
	check_joined(t, n);
	int64_t slot = 5;
	assert_int_equal(execute(run_assert, NULL, &slot, t, n, &status), WEFT_ERR_CHECK);
	assert_string_equal(status.message, "slot is 5, expected 3");
}

static void check_provider(WeftThreadsKind kind, int32_t n)
{
	WeftStatus status = {0};
	WeftThreads *t = weft_rt_threads_new(kind, n, &status);
	assert_non_null(t);
	check_threads(t, n);
	weft_rt_threads_free(t);
}

/* ---- the caller's threads: new ones for every call ---- */

typedef struct {
	pthread_t thread;
	void (*body)(void *, int32_t, int32_t);
	void *arg;
	int32_t i, n;
} OneThread;

static void *thread_main(void *arg)
{
	OneThread *t = arg;
	t->body(t->arg, t->i, t->n);
	return NULL;
}

static void own_parallel(void *user, int32_t n, void (*body)(void *, int32_t, int32_t), void *arg)
{
	OneThread t[8];
	(void)user;
	for (int32_t i = 1; i < n; i++) {
		t[i] = (OneThread){.body = body, .arg = arg, .i = i, .n = n};
		assert_int_equal(pthread_create(&t[i].thread, NULL, thread_main, &t[i]), 0);
	}
	body(arg, 0, n);
	for (int32_t i = 1; i < n; i++)
		pthread_join(t[i].thread, NULL);
}

static void test_own_threads(void **state)
{
	(void)state;
	const WeftThreads own = {own_parallel, NULL, 3};
	for (int32_t n = 1; n <= 4; n++)
		check_threads(&own, n);
}

static void test_serial(void **state)
{
	(void)state;
	check_provider(WEFT_THREADS_SERIAL, 4);
}

static void test_pool(void **state)
{
	(void)state;
	for (int32_t n = 1; n <= 7; n++)
		check_provider(WEFT_THREADS_POOL, n);
}

typedef struct {
	_Atomic int32_t bodies, threads; /* that ran, and what each was told of how many there
	                                    are */
} Bodies;

static void count_bodies(void *arg, int32_t i, int32_t n)
{
	Bodies *t = arg;
	t->bodies += i >= 0 && i < n;
	t->threads = n;
}

static int32_t bodies_of(const WeftThreads *t, int32_t n)
{
	Bodies team = {0};
	t->parallel(t->user, n, count_bodies, &team);
	assert_int_equal(team.bodies, team.threads);
	return team.threads;
}

/* As many as are asked for and there are, in the second call as in the first. */
static void test_team(void **state)
{
	(void)state;
	WeftThreads *pool = weft_rt_threads_new(WEFT_THREADS_POOL, 3, NULL);
	WeftThreads *serial = weft_rt_threads_new(WEFT_THREADS_SERIAL, 3, NULL);
	assert_int_equal(pool->nthreads, 3);
	assert_int_equal(serial->nthreads, 1);
	for (int k = 0; k < 3; k++)
		for (int32_t n = 1; n <= 5; n++) {
			assert_int_equal(bodies_of(pool, n), n < 3 ? n : 3);
			assert_int_equal(bodies_of(serial, n), 1);
		}
	weft_rt_threads_free(pool);
	weft_rt_threads_free(serial);
}

/* As many processors as the process may use. */
static void test_processors(void **state)
{
	(void)state;
	cpu_set_t all, one;
	assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
	assert_int_equal(threads_ncpu(), CPU_COUNT(&all));
	CPU_ZERO(&one);
	for (size_t k = 0; k < CPU_SETSIZE && !CPU_COUNT(&one); k++)
		if (CPU_ISSET(k, &all))
			CPU_SET(k, &one);
	assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
	assert_int_equal(threads_ncpu(), 1);
	assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

/* 0 threads are as many as there are processors; 256 are the most. */
static void test_count(void **state)
{
	(void)state;
	for (int kind = WEFT_THREADS_SERIAL; kind <= WEFT_THREADS_OPENMP; kind++) {
		WeftStatus status = {.code = WEFT_ERR_ABI};
		WeftThreads *t = weft_rt_threads_new((WeftThreadsKind)kind, 0, &status);
		assert_non_null(t);
		assert_int_equal(status.code, WEFT_OK);
		assert_true(t->nthreads >= 1);
		if (kind == WEFT_THREADS_POOL)
			assert_int_equal(t->nthreads, threads_ncpu());
		weft_rt_threads_free(t);
	}
	WeftThreads *most = weft_rt_threads_new(WEFT_THREADS_POOL, WEFT_MAX_THREADS, NULL);
	assert_int_equal(most->nthreads, WEFT_MAX_THREADS);
	assert_int_equal(bodies_of(most, WEFT_MAX_THREADS), WEFT_MAX_THREADS);
	weft_rt_threads_free(most);
	assert_null(weft_rt_threads_new(WEFT_THREADS_POOL, WEFT_MAX_THREADS + 1, NULL));
}

static int fail_with_all(const WeftFrame *f, int64_t begin, int64_t end)
{
	if (begin == end)
		return 0;
	for (int64_t k = 0; k < WEFT_FAILURE; k++)
		f->failure[k] = k ? 10 * k : begin;
	return 3;
}

static int run_fail_with_all(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	(void)slot;
	return weft_phase(r, fail_with_all, buf, NULL, 0, TASKS);
}

/* A message has all numbers that a failure leaves, in their order. */
static void test_message(void **state)
{
	(void)state;
	WeftStatus status = {0};
	const WeftThreads own = {own_parallel, NULL, 3};
	for (int32_t n = 1; n <= 3; n++) {
		assert_int_equal(execute(run_fail_with_all, NULL, NULL, &own, n, &status),
				 WEFT_ERR_CHECK);
		assert_string_equal(status.message, "10 20 30 40 50 60 70 80 90 100 110 120 130");
	}
}

/* ---- what a failure puts back ---- */

enum { STATE = 8, SAVED = 2 };

/* In its room are state, the values of two records with one more behind each, indices, and the
 * records. */
typedef struct {
	int64_t state[STATE], first[SAVED + 1], some[SAVED + 1], at[SAVED + 1];
	WeftSaved record[3];
} Undo;

static int run_undo(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	Undo *u = buf[0];
	/* the elements 1 and 2 */
	weft_save(r, &u->record[0], u->state + 1, u->first, NULL, SAVED, 8);
	/* 6 and 2, later: what was there before it comes last */
	weft_save(r, &u->record[1], u->state, u->some, u->at, SAVED, 8);
	weft_save(r, &u->record[2], u->state, u->some, NULL, 0, 8);
	if (weft_phase(r, add_one, (void *[]){u->state}, NULL, 0, STATE))
		return 1;
	return *slot && weft_phase(r, fail_with_all, buf, NULL, 0, TASKS);
}

static void test_put_back(void **state)
{
	(void)state;
	WeftStatus status = {0};
	const WeftThreads own = {own_parallel, NULL, 3};
	for (int32_t n = 1; n <= 3; n++)
		for (int64_t fails = 0; fails < 2; fails++) {
			Undo u = {{0, 1, 2, 3, 4, 5, 6, 7},
				  {11, 12, 13},
				  {16, 99, 98},
				  {6, 2, 4},
				  {{0}}};
			const int64_t want[2][STATE] = {{1, 2, 3, 4, 5, 6, 7, 8},
							{1, 11, 12, 4, 5, 6, 16, 8}};
			assert_int_equal(
				execute(run_undo, (void *[]){&u}, &fails, &own, n, &status),
				fails ? WEFT_ERR_CHECK : WEFT_OK);
			assert_memory_equal(u.state, want[fails], sizeof u.state);
		}
}

/* ---- launches from a table ---- */

/* y[i] += p[0] i + p[1] */
static int add_line(const WeftFrame *f, int64_t begin, int64_t end)
{
	int64_t *y = f->buf[0];
	for (int64_t i = begin; i < end; i++)
		y[i] += f->p[0] * i + f->p[1];
	return 0;
}

/* y[i] = x[i] */
static int take_all(const WeftFrame *f, int64_t begin, int64_t end)
{
	int64_t *y = f->buf[1];
	const int64_t *x = f->buf[0];
	for (int64_t i = begin; i < end; i++)
		y[i] = x[i];
	return 0;
}

enum { LINE_3 = 3, OFFSET = 16 };

static int run_table(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	static const WeftKernel kernels[] = {add_line, take_all, fail_some};
	static const int64_t shape[] = {
		0, 1, 2, 2 * TASKS, 0,    2 * LINE_3, 1,     /* at 0: buf[0] += 3 i + value[0] */
		1, 2, 0, 3,         0, 1,                    /* 7: value[1] of buf[0] to buf[1] */
		0, 1, 2, 3,         1,    2 * -1,     2 * 0, /* 13: buf[1] -= i, as many */
		0, 1, 2, 2 * 2,     0,    2 * 0,      2,     /* 20: two more by 1 */
		2, 1, 1, 2 * TASKS, 0,    2 * 2,             /* 27: fails */
	};
	static const int64_t word[] = {
		0, 1, 0, 7, 2, 2 * OFFSET, 5, 13, 3, 0, /* from 16 bytes behind to value[2] */
	}, failing[] = {20, 1, 0, 27, 2, 0, 20, 3, 0};
	const WeftLaunches all = {kernels, shape, word, sizeof word / sizeof *word};
	const WeftLaunches some = {kernels, shape, failing, sizeof failing / sizeof *failing};
	void *b[2];
	int64_t p[2];
	return weft_launches(r, slot[3] ? &some : &all, buf, slot, b, p);
}

/* Numbers and values, offsets of buffers; what comes behind a launch that fails is left. */
static void test_launches(void **state)
{
	(void)state;
	const WeftThreads own = {own_parallel, NULL, 3};
	for (int32_t n = 1; n <= 3; n++) {
		static int64_t x[TASKS], y[TASKS];
		int64_t slot[4] = {7, 20, 8, 0};
		WeftStatus status = {0};
		memset(x, 0, sizeof x);
		memset(y, 0, sizeof y);
		assert_int_equal(execute(run_table, (void *[]){x, y}, slot, &own, n, &status),
				 WEFT_OK);
		for (int64_t i = 0; i < TASKS; i++) {
			assert_int_equal(x[i], 3 * i + 7);
			assert_int_equal(y[i], (i >= 1 && i <= 20 ? 3 * (i - 1 + 2) + 7 : 0) -
						       (i < 20 ? i : 0));
		}
		memset(x, 0, sizeof x);
		slot[3] = 1;
		assert_int_equal(execute(run_table, (void *[]){x, y}, slot, &own, n, &status),
				 WEFT_ERR_CHECK);
		assert_string_equal(status.message, "task leaves 700, 100%");
		assert_int_equal(x[0], 1);
		assert_int_equal(x[1], 1);
		assert_int_equal(x[2], 0);
	}
}

static void test_bad_count(void **state)
{
	(void)state;
	WeftStatus status = {0};
	assert_null(weft_rt_threads_new(WEFT_THREADS_POOL, -1, &status));
	assert_int_equal(status.code, WEFT_ERR_ARGUMENT);
	assert_null(weft_rt_threads_new(WEFT_THREADS_POOL, 100000, &status));
}

/* A pool whose threads are taken runs the second call on the caller's thread. */
static void nested(void *arg, int32_t i, int32_t n)
{
	(void)n;
	if (i)
		return;
	int64_t x[TASKS] = {0};
	assert_int_equal(execute(run_add, (void *[]){x}, NULL, arg, 3, NULL), WEFT_OK);
	assert_int_equal(x[TASKS - 1], PHASES);
}

static void test_busy_pool(void **state)
{
	(void)state;
	WeftThreads *t = weft_rt_threads_new(WEFT_THREADS_POOL, 3, NULL);
	t->parallel(t->user, 3, nested, t);
	weft_rt_threads_free(t);
}

/* Between the launches some time passes. */
static int run_late(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	(void)slot;
	weft_phase(r, add_one, buf, NULL, 0, 2);
	nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
	return weft_phase(r, add_one, buf, NULL, 1, 1);
}

static void hear(void *user, uint32_t call, double seconds)
{
	((double *)user)[call] = seconds;
}

/* A launch takes from the end of the one before to its own, whoever works. */
static void test_profile(void **state)
{
	(void)state;
	WeftThreads *t = weft_rt_threads_new(WEFT_THREADS_POOL, 2, NULL);
	int64_t x[2] = {0};
	double seconds[2] = {0};
	const WeftEntry e = {.run_fn = run_late};
	WeftRegion r = {
		.entry = &e, .buf = (void *[]){x}, .profile = hear, .profile_user = seconds};
	assert_int_equal(region_run(&r, t, 2), WEFT_OK);
	assert_true(seconds[1] >= 0.03);
	weft_rt_threads_free(t);
}

/* ---- who helps, and who is waited for ---- */

static pthread_t caller;
static _Atomic int others, held, hold; /* calls of a kernel by other threads than the caller; one
                                          stays in a task while `hold` */
static pthread_t other;

static void pause_a_little(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* x[i] += 1, and tells of who does it. */
static int add_and_tell(const WeftFrame *f, int64_t begin, int64_t end)
{
	if (!pthread_equal(pthread_self(), caller)) {
		other = pthread_self();
		others++;
		while (hold) {
			held = 1;
			pause_a_little();
		}
	} else {
		for (volatile int k = 0; k < 1000; k++)
			;
	}
	return add_one(f, begin, end);
}

static int run_and_tell(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	int stop = 0;
	for (int64_t k = 0; k < slot[0] && !stop; k++)
		stop = weft_phase(r, add_and_tell, buf, NULL, 0, TASKS);
	return stop;
}

/* Calls until a thread of the provider has taken part; false: none does, in that many. */
static bool has_help(const WeftThreads *t, int most)
{
	static int64_t x[TASKS];
	const int64_t phases = 10;
	caller = pthread_self();
	others = 0;
	for (int k = 0; k < most && !others; k++) {
		assert_int_equal(execute(run_and_tell, (void *[]){x}, &phases, t, 2, NULL),
				 WEFT_OK);
		if (k > 100)
			pause_a_little();
	}
	return others != 0;
}

static void stop_here(int signal)
{
	(void)signal;
	held = 1;
	while (hold)
		pause_a_little();
	held = 0;
}

/* A worker that stands still, as one that gets no processor, keeps nobody waiting: neither calls
 * nor their ends. */
static void test_stopped_worker(void **state)
{
	(void)state;
	static int64_t x[TASKS];
	WeftThreads *t = weft_rt_threads_new(WEFT_THREADS_POOL, 2, NULL);
	const struct sigaction stop = {.sa_handler = stop_here};
	assert_int_equal(sigaction(SIGUSR1, &stop, NULL), 0);
	assert_true(has_help(t, 20000));
	hold = 1;
	held = 0;
	assert_int_equal(pthread_kill(other, SIGUSR1), 0);
	while (!held)
		pause_a_little();
	alarm(600);
	memset(x, 0, sizeof x);
	for (int k = 0; k < 5; k++)
		assert_int_equal(execute(run_add, (void *[]){x}, NULL, t, 2, NULL), WEFT_OK);
	for (int i = 0; i < TASKS; i++)
		assert_int_equal(x[i], 5 * PHASES);
	assert_int_equal(held, 1);
	alarm(0);
	hold = 0;
	weft_rt_threads_free(t);
}

static void *call_held(void *pool)
{
	static int64_t x[TASKS];
	const int64_t phases = 1;
	static const WeftLaunch large[3] = {{.nbuf = 1, .ns = 1000}};
	caller = pthread_self();
	predicted = large;
	while (!held)
		assert_int_equal(execute(run_and_tell, (void *[]){x}, &phases, pool, 2, NULL),
				 WEFT_OK);
	return NULL;
}

/* One that stays in a task of a call holds up that call, no other one of the same pool. */
static void test_held_task(void **state)
{
	(void)state;
	static int64_t x[TASKS];
	pthread_t first;
	WeftThreads *t = weft_rt_threads_new(WEFT_THREADS_POOL, 2, NULL);
	hold = 1;
	held = 0;
	assert_int_equal(pthread_create(&first, NULL, call_held, t), 0);
	while (!held)
		pause_a_little();
	alarm(600);
	memset(x, 0, sizeof x);
	const int code = execute(run_add, (void *[]){x}, NULL, t, 2, NULL);
	alarm(0);
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	const int64_t rested = team_of(t)->rested; /* not 0 on a machine that is busy otherwise */
	hold = 0;
	pthread_join(first, NULL); /* before anything may fail: the thread would hold later tests
	                              up */
	predicted = NULL;
	assert_int_equal(code, WEFT_OK);
	assert_int_equal(x[TASKS - 1], PHASES);
	assert_true(team_of(t)->rested != rested); /* a thread that did not come back has no
	                                              processor */
	weft_rt_threads_free(t);
}

/* What takes less time than sharing it is the caller's; what takes more is not. */
static void test_small_phases(void **state)
{
	(void)state;
	static const WeftLaunch small[3] = {{.nbuf = 1, .ns = 1}},
				large[3] = {{.nbuf = 1, .ns = 1000}};
	WeftThreads *t = weft_rt_threads_new(WEFT_THREADS_POOL, 2, NULL);
	share_all = false;
	predicted = small;
	assert_false(has_help(t, 90));
	predicted = large;
	assert_true(has_help(t, 20000));
	predicted = NULL;
	assert_true(has_help(t, 20000));
	share_all = true;
	weft_rt_threads_free(t);
}

static _Atomic int inside, most_inside, leave;

/* Stays until `leave`. */
static int stay(const WeftFrame *f, int64_t begin, int64_t end)
{
	(void)f, (void)begin, (void)end;
	const int n = ++inside;
	if (n > most_inside)
		most_inside = n;
	while (!leave)
		pause_a_little();
	inside--;
	return 0;
}

static int run_stay(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	(void)slot;
	return weft_phase(r, stay, buf, NULL, 0, TASKS);
}

static void *call_stay(void *arg)
{
	(void)arg;
	while (most_inside < 2) /* until the other thread takes part */
		assert_int_equal(
			execute(run_stay, (void *[]){NULL}, NULL, threads_default(), 2, NULL),
			WEFT_OK);
	return NULL;
}

/* Threads that another call starts do not help a call that has as many as it asked for. */
static void check_growth(const Team *team)
{
	static int64_t x[TASKS];
	pthread_t first;
	assert_int_equal(pthread_create(&first, NULL, call_stay, NULL), 0);
	while (most_inside < 2)
		pause_a_little();
	for (int k = 0; k < 50 && most_inside == 2; k++) {
		assert_int_equal(execute(run_add, (void *[]){x}, NULL, threads_default(), 4, NULL),
				 WEFT_OK);
		pause_a_little();
	}
	leave = 1;
	pthread_join(first, NULL);
	assert_int_equal(team->nworker, 3);
	assert_int_equal(most_inside, 2);
}

/* The default provider's threads begin with the first phase that is shared. */
static void test_default(void **state)
{
	(void)state;
	static const WeftLaunch small[3] = {{.nbuf = 1, .ns = 1}};
	const Team *team = team_of(threads_default());
	share_all = false;
	predicted = small;
	assert_false(has_help(threads_default(), 10));
	assert_int_equal(team->nworker, 0);
	share_all = true;
	predicted = NULL;
	assert_true(has_help(threads_default(), 20000));
	assert_int_equal(team->nworker, 1);
	check_growth(team);
	for (int32_t n = 1; n <= 5; n++)
		check_threads(threads_default(), n);
	assert_int_equal(team->nworker, 4);
}

/* Frames do not last: as in emitted code, the next launch has its own in their place. More of them
 * than a phase may have. */
static int run_many_joined(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	void *b[2];
	int64_t p[2], stop = 0;
	for (int k = 0; k < 100 && !stop; k++) {
		const bool last = k % 50 == 49;
		b[0] = (int64_t *)buf[0] + slot[0] * k;
		b[1] = NULL;
		p[0] = k;
		p[1] = 1;
		stop = weft_phase(r, add_line, b, p, last ? 0 : WEFT_JOINED, slot[0]);
		b[0] = NULL;
		p[0] = p[1] = -1000;
	}
	return (int)stop;
}

static void test_joined_frames(void **state)
{
	(void)state;
	static const WeftLaunch few[3] = {{.nbuf = 2, .nparam = 2}};
	static int64_t x[100 * 20];
	for (int32_t n = 1; n <= 4; n++)
		for (int64_t tasks = 0; tasks <= 20; tasks += 4) {
			WeftThreads *t = weft_rt_threads_new(WEFT_THREADS_POOL, n, NULL);
			predicted = tasks == 8 ? NULL : few;
			memset(x, 0, sizeof x);
			assert_int_equal(
				execute(run_many_joined, (void *[]){x}, &tasks, t, n, NULL),
				WEFT_OK);
			for (int64_t k = 0; k < 100; k++)
				for (int64_t i = 0; i < tasks; i++)
					assert_int_equal(x[tasks * k + i], k * i + 1);
			predicted = NULL;
			weft_rt_threads_free(t);
		}
}

static void *call_often(void *pool)
{
	int64_t x[TASKS] = {0};
	for (int k = 0; k < 20; k++)
		assert_int_equal(execute(run_add, (void *[]){x}, NULL, pool, 1 + k % 4, NULL),
				 WEFT_OK);
	for (int i = 0; i < TASKS; i++)
		assert_int_equal(x[i], 20 * PHASES);
	return NULL;
}

/* Callers at the same time, more of them than a pool helps, and bodies beside them. */
static void test_callers(void **state)
{
	(void)state;
	enum { CALLERS = 11 };
	pthread_t thread[CALLERS];
	WeftThreads *t = weft_rt_threads_new(WEFT_THREADS_POOL, 4, NULL);
	for (int k = 0; k < CALLERS; k++)
		assert_int_equal(pthread_create(&thread[k], NULL, call_often, t), 0);
	for (int k = 0; k < 50; k++) {
		int32_t n = bodies_of(t, 4);
		assert_true(n == 4 || n == 1);
	}
	for (int k = 0; k < CALLERS; k++)
		pthread_join(thread[k], NULL);
	weft_rt_threads_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default),   cmocka_unit_test(test_stopped_worker),
		cmocka_unit_test(test_held_task), cmocka_unit_test(test_small_phases),
		cmocka_unit_test(test_callers),   cmocka_unit_test(test_joined_frames),
		cmocka_unit_test(test_serial),    cmocka_unit_test(test_pool),
		cmocka_unit_test(test_bad_count),
		cmocka_unit_test(test_busy_pool), cmocka_unit_test(test_own_threads),
		cmocka_unit_test(test_team),      cmocka_unit_test(test_count),
		cmocka_unit_test(test_message),   cmocka_unit_test(test_processors),
		cmocka_unit_test(test_profile),   cmocka_unit_test(test_put_back),
		cmocka_unit_test(test_launches),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
