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

#include "region_fixture.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_serial),      cmocka_unit_test(test_pool),
		cmocka_unit_test(test_bad_count),   cmocka_unit_test(test_busy_pool),
		cmocka_unit_test(test_own_threads), cmocka_unit_test(test_team),
		cmocka_unit_test(test_count),       cmocka_unit_test(test_message),
		cmocka_unit_test(test_processors),  cmocka_unit_test(test_profile),
		cmocka_unit_test(test_put_back),    cmocka_unit_test(test_launches),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
