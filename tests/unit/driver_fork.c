/* A fork while another thread of the parent is in a call: the child does not have the thread, and
 * may do all that the parent may. Instances of models in this process, interpreted and compiled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "weft_trace.h"

enum { FORKS = 30, THREADS = 4, N = 1 << 14 };

/* What the parent's thread does until it is told to stop. */
typedef struct {
	const WeftModel *m;
	WeftInstance *in;
	void (*work)(const WeftModel *, WeftInstance *);
	_Atomic int stop, began;
} Busy;

static void *keep_busy(void *arg)
{
	Busy *b = arg;
	while (!atomic_load(&b->stop)) {
		b->work(b->m, b->in);
		atomic_store(&b->began, 1);
	}
	return NULL;
}

static WeftTensor vector(void *data, const int64_t *shape)
{
	return (WeftTensor){.data = data,
			    .device = {WEFT_CPU, 0},
			    .ndim = 1,
			    .dtype = {WEFT_FLOAT, 32, 1},
			    .shape = (int64_t *)(uintptr_t)shape};
}

static const int64_t shape[1] = {N};
static float ones[N];

/* Returns the code of the call; y[0] is its first result. */
static int run(const WeftModel *m, WeftInstance *in, float *first, WeftStatus *status)
{
	float *x = calloc(N, sizeof *x), *y = calloc(N, sizeof *y);
	WeftSizes *sizes = malloc(weft_entry(m, 0)->sizes_bytes);
	WeftTensor tx = vector(x, shape), ty = vector(y, shape);
	int code = m->sizes(in, 0, &tx, sizes, status);
	void *work = malloc(sizes->workspace_bytes + 1);
	code = code ? code : m->run(in, sizes, &tx, &ty, work, NULL, status);
	*first = y[0];
	free(work);
	free(sizes);
	free(x);
	free(y);
	return code;
}

static int set_weights(const WeftModel *m, WeftInstance *in, float to, WeftStatus *status)
{
	float *w = malloc(N * sizeof *w);
	for (int k = 0; k < N; k++)
		w[k] = to;
	const char *name = weft_source(m, 0)->name;
	WeftTensor t = vector(w, shape);
	const int code = m->set_weights(in, 1, &name, &t, NULL, status);
	free(w);
	return code;
}

static void replace_weights(const WeftModel *m, WeftInstance *in)
{
	set_weights(m, in, 3, NULL);
}

/* Every other thread runs, the others replace: calls stay in sets that are replaced meanwhile. */
static void run_or_replace(const WeftModel *m, WeftInstance *in)
{
	static _Atomic int threads;
	static _Thread_local int number = -1;
	float y;
	if (number < 0)
		number = atomic_fetch_add(&threads, 1);
	if (number % 2)
		set_weights(m, in, 3, NULL);
	else
		run(m, in, &y, NULL);
}

static void run_only(const WeftModel *m, WeftInstance *in)
{
	float y;
	run(m, in, &y, NULL);
}

static void set_state(const WeftModel *m, WeftInstance *in)
{
	float *s = calloc(N, sizeof *s);
	WeftTensor t = vector(s, shape);
	m->state_set(in, 0, &t, NULL);
	free(s);
}

static void get_state(const WeftModel *m, WeftInstance *in)
{
	float *s = calloc(N, sizeof *s);
	WeftTensor t = vector(s, shape);
	m->state_get(in, 0, &t, NULL);
	free(s);
}

/* ---- what a child does: 0, or the number of the line that failed ---- */

#define OK(x)                                                                                      \
	do {                                                                                       \
		if (!(x))                                                                          \
			return fprintf(stderr, "%s\n", status.message), __LINE__ % 250 + 1;        \
	} while (0)

static int child_of_weights(const WeftModel *m, WeftInstance *in)
{
	WeftStatus status = {0};
	float y;
	for (int k = 0; k < 9; k++) {
		OK(set_weights(m, in, (float)k, &status) == WEFT_OK);
		OK(run(m, in, &y, &status) == WEFT_OK);
		OK(y == (float)k);
	}
	return 0;
}

/* A state that a call was writing is refused until it is reset; one that calls read is whole. */
static int child_of_state(const WeftModel *m, WeftInstance *in)
{
	WeftStatus status = {0};
	float y;
	int code = run(m, in, &y, &status);
	if (code) {
		OK(code == WEFT_ERR_BUSY && strstr(status.message, "when this process was forked"));
		float *s = calloc(N, sizeof *s);
		WeftTensor t = vector(s, shape);
		OK(m->state_set(in, 0, &t, &status) == WEFT_ERR_BUSY);
		OK(m->state_get(in, 0, &t, &status) == WEFT_ERR_BUSY);
		free(s);
	}
	OK(m->state_reset(in, &status) == WEFT_OK);
	for (int k = 1; k < 4; k++) {
		OK(run(m, in, &y, &status) == WEFT_OK);
		OK(y == (float)k);
	}
	set_state(m, in);
	OK(run(m, in, &y, &status) == WEFT_OK && y == 1);
	return 0;
}

/* ---- tests ---- */

static void fork_beside(const WeftModel *m, WeftInstance *in,
			void (*work)(const WeftModel *, WeftInstance *),
			int (*child)(const WeftModel *, WeftInstance *))
{
	Busy b = {m, in, work, 0, 0};
	pthread_t thread[THREADS];
	for (int k = 0; k < THREADS; k++)
		assert_int_equal(pthread_create(&thread[k], NULL, keep_busy, &b), 0);
	while (!atomic_load(&b.began))
		usleep(100);
	for (int k = 0; k < FORKS; k++) {
		int ended;
		usleep((useconds_t)(k * 37 % 200));
		const pid_t pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			alarm(600);
			_exit(child(m, in));
		}
		assert_int_equal(waitpid(pid, &ended, 0), pid);
		assert_int_equal(ended, 0);
	}
	atomic_store(&b.stop, 1);
	for (int k = 0; k < THREADS; k++)
		pthread_join(thread[k], NULL);
}

static WeftGraph *adds_weights(WeftTrace *t)
{
	WeftValue x = weft_trace_input(t, "x", "f32[16384]");
	WeftValue w = weft_trace_param(t, "w", "f32[16384]", NULL);
	weft_trace_output(t, "y", weft_add(t, x, w));
	return weft_trace_end(t);
}

/* Counts calls in every element of the state. */
static WeftGraph *counts(WeftTrace *t)
{
	WeftValue x = weft_trace_input(t, "x", "f32[16384]");
	WeftValue s = weft_trace_buffer(t, "s", "f32[16384]", NULL);
	WeftValue next = weft_add(t, s, weft_trace_param(t, "one", "f32[16384]", ones));
	weft_trace_assign(t, s, next);
	weft_trace_output(t, "y", weft_add(t, x, next));
	return weft_trace_end(t);
}

static void beside(WeftGraph *(*graph)(WeftTrace *), bool replaceable,
		   void (*work)(const WeftModel *, WeftInstance *),
		   int (*child)(const WeftModel *, WeftInstance *))
{
	const WeftModel *(*make[])(Weft *, const WeftGraph *, const WeftOptions *) = {weft_loops,
										      weft_jit};
	for (uint32_t k = 0, n = weft_has_llvm() ? 2 : 1; k < n; k++) {
		Weft *w = weft_new();
		WeftGraph *g = graph(weft_trace_new(w, "fork"));
		WeftOptions o = {.size = sizeof o, .replaceable = replaceable};
		const WeftModel *m = g ? make[k](w, g, &o) : NULL;
		WeftInstance *in;
		WeftStatus status;
		if (!m)
			fail_msg("%s", weft_messages(w));
		if (m->open(m, NULL, &in, &status))
			fail_msg("%s", status.message);
		fork_beside(m, in, work, child);
		m->close(in);
		weft_free(w);
	}
}

static void test_set_weights(void **state)
{
	(void)state;
	beside(adds_weights, true, replace_weights, child_of_weights);
}

static void test_run_with_weights(void **state)
{
	(void)state;
	beside(adds_weights, true, run_only, child_of_weights);
}

static void test_runs_and_weights(void **state)
{
	(void)state;
	beside(adds_weights, true, run_or_replace, child_of_weights);
}

static void test_run_that_writes_state(void **state)
{
	(void)state;
	beside(counts, false, run_only, child_of_state);
}

static void test_set_state(void **state)
{
	(void)state;
	beside(counts, false, set_state, child_of_state);
}

static void test_get_state(void **state)
{
	(void)state;
	beside(counts, false, get_state, child_of_state);
}

int main(void)
{
	for (int k = 0; k < N; k++)
		ones[k] = 1;
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_set_weights),
					   cmocka_unit_test(test_run_with_weights),
					   cmocka_unit_test(test_runs_and_weights),
					   cmocka_unit_test(test_run_that_writes_state),
					   cmocka_unit_test(test_set_state),
					   cmocka_unit_test(test_get_state)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
