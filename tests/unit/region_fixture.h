/* Kernels with results that are known, and regions of them with every number of threads. */
#ifndef WEFT_TESTS_REGION_FIXTURE_H
#define WEFT_TESTS_REGION_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

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
	WeftEntry e = {
		.size = sizeof e, .name = "main", .ncall = 3, .call = calls, .launch = predicted};
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

/* y[i] += p[0] i + p[1] */
static int add_line(const WeftFrame *f, int64_t begin, int64_t end)
{
	int64_t *y = f->buf[0];
	for (int64_t i = begin; i < end; i++)
		y[i] += f->p[0] * i + f->p[1];
	return 0;
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

#endif
