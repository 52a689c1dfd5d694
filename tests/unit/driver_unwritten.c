/* Models whose graph was changed so that it leaves state as it is: calls of several threads at the
 * same time, what is in the model's table, values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "weft.h"
#include "weft_call.h"
#include "weft_graph.h"
#include "weft_trace.h"

enum { N = 4, CALLS = 400, THREADS = 4 };

static void silent(Weft *w)
{
	if (weft_nmessages(w))
		fail_msg("%s", weft_messages(w));
}

static WeftGraph *parsed(Weft *w, const char *text)
{
	WeftGraph *g = weft_parse(w, text, "f");
	if (!g)
		fail_msg("%s", weft_messages(w));
	return g;
}

static WeftNode named(Weft *w, WeftGraph *g, const char *name)
{
	WeftNode n = weft_node_find(w, g, name);
	if (!n.index)
		fail_msg("no node %s\n%s", name, weft_messages(w));
	return n;
}

/* What graphs are compiled to. */
static const WeftModel *compiled(Weft *w, WeftGraph *g)
{
	const WeftModel *m = weft_has_llvm() ? weft_jit(w, g, NULL) : weft_loops(w, g, NULL);
	if (!m)
		fail_msg("%s", weft_messages(w));
	silent(w);
	return m;
}

static WeftTensor vector(float *data)
{
	static int64_t shape[1] = {N};
	return (WeftTensor){.data = data,
			    .device = {WEFT_CPU, 0},
			    .ndim = 1,
			    .dtype = {WEFT_FLOAT, 32, 1},
			    .shape = shape};
}

/* f32[N] to f32[N] by the instance's first entry. */
static int call(const WeftModel *m, WeftInstance *i, const float *in, float *out, WeftStatus *s)
{
	int64_t room[64];
	WeftTensor x = vector((float *)(uintptr_t)in), y = vector(out);
	WeftSizes *sizes = (WeftSizes *)room;
	assert_true(weft_entry(m, 0)->sizes_bytes <= sizeof room);
	int code = m->sizes(i, 0, &x, sizes, s);
	void *work = code == WEFT_OK ? aligned_alloc(64, (sizes->workspace_bytes + 127) / 64 * 64)
				     : NULL;
	if (work)
		code = m->run(i, sizes, &x, &y, work, NULL, s);
	free(work);
	return code;
}

typedef struct {
	const WeftModel *m;
	WeftInstance *instance;
	float factor, offset; /* results are factor x + offset */
	_Atomic uint32_t refused, wrong, ready;
} Shared;

static void *call_often(void *arg)
{
	Shared *s = arg;
	for (s->ready++; s->ready < THREADS;)
		;
	for (uint32_t k = 0; k < CALLS; k++) {
		WeftStatus status = {0};
		float x[N], y[N];
		for (uint32_t i = 0; i < N; i++)
			x[i] = (float)(k + i);
		s->refused += call(s->m, s->instance, x, y, &status) != WEFT_OK;
		for (uint32_t i = 0; i < N && status.code == WEFT_OK; i++)
			s->wrong += y[i] != s->factor * x[i] + s->offset;
	}
	return NULL;
}

static void call_together(const WeftModel *m, float factor, float offset)
{
	Shared s = {.m = m, .factor = factor, .offset = offset};
	WeftStatus status = {0};
	pthread_t thread[THREADS];
	assert_int_equal(m->open(m, NULL, &s.instance, &status), WEFT_OK);
	for (uint32_t k = 0; k < THREADS; k++)
		assert_int_equal(pthread_create(&thread[k], NULL, call_often, &s), 0);
	for (uint32_t k = 0; k < THREADS; k++)
		pthread_join(thread[k], NULL);
	m->close(s.instance);
	assert_int_equal(s.refused, 0);
	assert_int_equal(s.wrong, 0);
}

static void check_states(const WeftModel *m, uint32_t n, int flags)
{
	assert_int_equal(m->nstate, n);
	for (uint32_t k = 0; k < n; k++)
		assert_int_equal(weft_entry(m, 0)->state_use[k], flags);
}

/* No sweep: the nodes that a pass took out of the way are still there. */
static void test_random(void **state)
{
	(void)state;
	static const char *const drop[] = {
		/* nothing reads it */
		"  %a = aten.dropout(%x, p=0.5, train=true) : f32[4]\n  return %a\n}\n",
		/* in a branch, of which the condition says that it is not taken */
		"  %p = full(value=false, shape=[], dtype=bool)\n"
		"  %c = cond(%p, [%x], yes=graph @yes(%b: f32[4]) {\n"
		"    %d = aten.dropout(%b, p=0.5, train=true) : f32[4]\n    return %d\n"
		"  }, no=graph @no(%b: f32[4]) {\n    return %b\n  })\n"
		"  %a = get(%c, index=0)\n  return %a\n}\n"};
	for (uint32_t k = 0; k < 2; k++) {
		Weft *w = weft_new();
		char text[800] = "graph @f(%x: f32[4]) {\n";
		WeftGraph *g = parsed(w, strcat(text, drop[k]));
		const WeftModel *m = k ? NULL : compiled(w, g);
		if (m)
			check_states(m, 1, WEFT_ENTRY_READS_STATE | WEFT_ENTRY_WRITES_STATE);
		if (!k)
			assert_true(weft_node_replace(w, named(w, g, "a"), named(w, g, "x")));
		m = compiled(w, g);
		check_states(m, 0, 0);
		call_together(m, 1, 0);
		weft_free(w);
	}
}

/* y = 2 x + sum, where sum would become sum + x. */
static WeftGraph *summing(Weft *w, bool unread)
{
	WeftTrace *t = weft_trace_new(w, "f");
	static const float first[N] = {3, 3, 3, 3};
	WeftValue x = weft_trace_input(t, "x", "f32[4]"),
		  v = weft_trace_variable(t, "sum", "f32[4]", first), y = weft_add(t, x, x);
	weft_trace_output(t, "y", unread ? y : weft_add(t, y, v));
	weft_trace_assign(t, v, weft_add(t, v, x));
	WeftGraph *g = weft_trace_end(t);
	if (!g)
		fail_msg("%s", weft_messages(w));
	return g;
}

/* It stays in the table, and may be set: only the write goes. */
static void test_state(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g = summing(w, false);
	WeftNode sum = weft_node_of_state(w, g, 0);
	check_states(compiled(w, g), 1, WEFT_ENTRY_READS_STATE | WEFT_ENTRY_WRITES_STATE);
	assert_true(weft_graph_set_written(w, sum, sum));
	const WeftModel *m = compiled(w, g);
	check_states(m, 1, WEFT_ENTRY_READS_STATE);
	call_together(m, 2, 3);
	WeftInstance *i;
	WeftStatus status = {0};
	float x[N] = {1, 2, 3, 4}, y[N], seven[N] = {7, 7, 7, 7};
	WeftTensor to = vector(seven);
	assert_int_equal(m->open(m, NULL, &i, &status), WEFT_OK);
	assert_int_equal(m->state_set(i, 0, &to, &status), WEFT_OK);
	for (uint32_t k = 0; k < 2; k++) {
		assert_int_equal(call(m, i, x, y, &status), WEFT_OK);
		assert_memory_equal(y, ((float[]){9, 11, 13, 15}), sizeof y);
	}
	m->close(i);
	weft_free(w);
}

/* Also what only computing shows to be the state itself; state that nothing reads keeps its place.
 */
static void test_state_of_no_use(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g = summing(w, true);
	WeftNode sum = weft_node_of_state(w, g, 0);
	const WeftAttr once[] = {weft_attr_node(sum), weft_attr_named("other", weft_attr_int(1))};
	WeftNode same =
		weft_node_insert_after(w, weft_node_written(w, sum), "aten.mul.Scalar", once, 2);
	silent(w);
	assert_true(weft_graph_set_written(w, sum, same));
	const WeftModel *m = compiled(w, g);
	check_states(m, 1, WEFT_ENTRY_READS_STATE);
	call_together(m, 2, 0);
	weft_free(w);
}

/* A model does something: the only thing that it does is not removed. */
static void test_nothing_else(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g = parsed(w, "graph @f(%x: f32[4]) {\n"
				 "  %a = aten.dropout(%x, p=0.5, train=true) : f32[4]\n"
				 "  return %a\n}\n");
	WeftTrace *t = weft_trace_new(w, "f");
	static const float first[N] = {1, 2, 3, 4};
	WeftValue v = weft_trace_variable(t, "v", "f32[4]", first);
	weft_trace_assign(t, v, weft_add(t, v, v));
	WeftGraph *only = weft_trace_end(t);
	assert_non_null(only);
	WeftNode s = weft_node_of_state(w, only, 0);
	assert_true(weft_graph_set_written(w, s, s));
	check_states(compiled(w, only), 1, WEFT_ENTRY_READS_STATE | WEFT_ENTRY_WRITES_STATE);
	assert_true(weft_graph_remove_output(w, g, 0));
	check_states(compiled(w, g), 1, WEFT_ENTRY_READS_STATE | WEFT_ENTRY_WRITES_STATE);
	weft_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_state),
		cmocka_unit_test(test_state_of_no_use),
		cmocka_unit_test(test_nothing_else),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
