/* Threads of a region: who helps, and who is waited for. */
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
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
