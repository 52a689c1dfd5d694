/* Replaceable weights of models in this process: interpreted and compiled, they compute the same
 * from the same weights, and several entries share what is computed. Artifacts:
 * tests/system/replace.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft_call.h"
#include "weft_trace.h"

enum { CHANNELS = 48, SIDE = 6, OUTPUTS = 16, MOST_SOURCES = 64 };

static WeftGraph *load(Weft *w, const char *name)
{
	char path[500];
	snprintf(path, sizeof path, TEST_DATA "/replace/%s.pt2", name);
	WeftGraph *g = weft_load(w, path);
	if (!g)
		fail_msg("%s", weft_messages(w));
	return g;
}

static WeftTensor tensor(const WeftParamInfo *p, void *data)
{
	return (WeftTensor){.data = data,
			    .device = {WEFT_CPU, 0},
			    .ndim = (int32_t)p->rank,
			    .dtype = p->dtype,
			    .shape = (int64_t *)(uintptr_t)p->dim};
}

/* Floats from 0.5 to 1.5, other bytes as they come. */
static void *values(const WeftParamInfo *p, uint32_t seed)
{
	unsigned char *data = malloc(p->bytes + 1);
	assert_non_null(data);
	for (uint64_t i = 0; i < p->bytes; i++)
		data[i] = (unsigned char)(i * 13 + seed * 7);
	for (uint64_t i = 0; p->dtype.code == WEFT_FLOAT && i < p->bytes / 4; i++)
		((float *)(void *)data)[i] = 0.5f + (float)((i * 37 + seed * 11) % 1000) / 1000;
	for (uint64_t i = 0; p->dtype.code == WEFT_BFLOAT && i < p->bytes / 2; i++)
		/* likewise */
		((uint16_t *)(void *)data)[i] = (uint16_t)(0x3f00 + (i + seed) % 128);
	return data;
}

/* All weights at once. */
static int set(const WeftModel *m, WeftInstance *in, uint32_t seed, WeftStatus *status)
{
	WeftTensor t[MOST_SOURCES];
	const char *name[MOST_SOURCES];
	assert_in_range(m->nsource, 1, MOST_SOURCES);
	for (uint32_t k = 0; k < m->nsource; k++) {
		const WeftParamInfo *p = weft_source(m, k);
		name[k] = p->name;
		t[k] = tensor(p, values(p, seed + k));
	}
	int code = m->set_weights(in, m->nsource, name, t, NULL, status);
	for (uint32_t k = 0; k < m->nsource; k++)
		free(t[k].data);
	return code;
}

static void run(const WeftModel *m, WeftInstance *in, uint32_t entry, float *y)
{
	static float x[CHANNELS * SIDE * SIDE];
	int64_t dim[4] = {1, CHANNELS, SIDE, SIDE}, out[2] = {1, OUTPUTS};
	WeftStatus status = {0};
	WeftTensor in_x = {.data = x,
			   .device = {WEFT_CPU, 0},
			   .ndim = 4,
			   .dtype = {WEFT_FLOAT, 32, 1},
			   .shape = dim};
	WeftTensor out_y = {.data = y,
			    .device = {WEFT_CPU, 0},
			    .ndim = 2,
			    .dtype = {WEFT_FLOAT, 32, 1},
			    .shape = out};
	WeftSizes *sizes = malloc(weft_entry(m, entry)->sizes_bytes);
	for (int k = 0; k < CHANNELS * SIDE * SIDE; k++)
		x[k] = (float)(k * 31 % 101) / 50 - 1;
	if (!sizes || m->sizes(in, entry, &in_x, sizes, &status))
		fail_msg("%s", status.message);
	void *work = malloc(sizes->workspace_bytes + 1);
	if (!work || m->run(in, sizes, &in_x, &out_y, work, NULL, &status))
		fail_msg("%s", status.message);
	free(work);
	free(sizes);
}

static WeftInstance *opened(const WeftModel *m, Weft *w)
{
	WeftInstance *in;
	if (!m)
		fail_msg("%s", weft_messages(w));
	assert_int_equal(m->open(m, NULL, &in, NULL), WEFT_OK);
	return in;
}

static void test_in_process(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g = load(w, "folded");
	WeftOptions o = {.size = sizeof o, .replaceable = true}, plain = {.size = sizeof plain};
	const WeftModel *(*make[])(Weft *, const WeftGraph *, const WeftOptions *) = {weft_loops,
										      weft_jit};
	float first[2][OUTPUTS], then[2][OUTPUTS], as_it_was[OUTPUTS];
	WeftStatus status;
	for (uint32_t k = 0, n = weft_has_llvm() ? 2 : 1; k < n; k++) {
		const WeftModel *m = make[k](w, g, &o), *without = make[k](w, g, &plain);
		WeftInstance *in = opened(m, w), *other = opened(without, w);
		run(m, in, 0, first[k]);
		run(without, other, 0, as_it_was);
		for (int i = 0; i < OUTPUTS; i++) /* a sum for weight norm is made in another
		                                     order */
			assert_true(first[k][i] - as_it_was[i] < 1e-4f &&
				    as_it_was[i] - first[k][i] < 1e-4f);
		if (set(m, in, 5, &status))
			fail_msg("%s", status.message);
		run(m, in, 0, then[k]);
		assert_memory_not_equal(first[k], then[k], sizeof then[k]);
		m->close(in);
		without->close(other);
	}
	if (weft_has_llvm()) {
		assert_memory_equal(first[0], first[1], sizeof first[0]);
		assert_memory_equal(then[0], then[1], sizeof then[0]);
	}
	weft_free(w);
}

/* What get_weights gives of source k is what `set` has set. Returns whether it is stored. */
static bool got(const WeftModel *m, WeftInstance *in, uint32_t k, uint32_t seed)
{
	const WeftParamInfo *p = weft_source(m, k);
	WeftStatus status;
	unsigned char *want = values(p, seed + k), *have = calloc(1, p->bytes + 1);
	const WeftTensor t = tensor(p, have);
	int code = m->get_weights(in, 1, &p->name, &t, NULL, &status);
	if (code == WEFT_OK)
		assert_memory_equal(have, want, p->bytes);
	else
		assert_non_null(
			strstr(status.message, "is not stored: only what is computed from it is"));
	free(want);
	free(have);
	return code == WEFT_OK;
}

static uint32_t nlayout_of(const WeftModel *m, const char *name)
{
	for (uint32_t k = 0; k < m->nparam; k++)
		if (!strcmp(weft_param(m, k)->name, name))
			return weft_param(m, k)->nlayout;
	return 0;
}

/* Row-major again, of whatever layout kernels read. */
static void test_get(void **state)
{
	(void)state;
	static const char *const name[] = {"folded", "trained",
					   "../../../examples/digits/digits_cnn", "../mlp"};
	Weft *w = weft_new();
	WeftOptions o = {.size = sizeof o, .replaceable = true};
	uint32_t all = 0, packed = 0, missing = 0;
	for (size_t g = 0; g < sizeof name / sizeof *name; g++) {
		const WeftModel *m = weft_loops(w, load(w, name[g]), &o);
		WeftInstance *in = opened(m, w);
		assert_int_equal(set(m, in, 9, NULL), WEFT_OK);
		for (uint32_t k = 0; k < m->nsource; k++, all++)
			if (!got(m, in, k, 9))
				missing++;
			else
				packed += nlayout_of(m, weft_source(m, k)->name) != 0;
		m->close(in);
	}
	print_message("%u weights, %u packed, %u computed only\n", all, packed, missing);
	assert_true(packed >= 3 && missing >= 1 && missing < all / 2);
	weft_free(w);
}

/* State is never among the weights that can be set, whatever it holds at first. */
static void test_state(void **state)
{
	(void)state;
	static const float first[2] = {1, 2}, by[2] = {3, 4};
	static float x[2] = {1, 1}, other[2] = {100, 100}, got[2];
	const int64_t two = 2;
	const char *const v = "v", *const p = "p";
	const WeftTensor in = weft_tensor(x, WEFT_F32, 1, &two),
			 value = weft_tensor(other, WEFT_F32, 1, &two),
			 to = weft_tensor(got, WEFT_F32, 1, &two);
	const WeftContext lenient = {.size = sizeof lenient, .flags = WEFT_IGNORE_UNKNOWN};
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "counter");
	WeftValue was = weft_trace_variable(t, "v", "f32[2]", first);
	WeftValue y = weft_add(t,
			       weft_mul(t, weft_trace_input(t, "x", "f32[2]"),
					weft_trace_param(t, "p", "f32[2]", by)),
			       was);
	weft_trace_assign(t, was, y);
	weft_trace_output(t, "y", y);
	WeftOptions o = {.size = sizeof o, .replaceable = true};
	const WeftModel *m = weft_loops(w, weft_trace_end(t), &o);
	WeftCall c;
	assert_int_equal(weft_call_open(&c, m, 0), WEFT_OK);
	assert_int_equal(m->nsource, 1);
	assert_string_equal(weft_source(m, 0)->name, "p");
	assert_int_equal(m->set_weights(c.instance, 1, &v, &value, NULL, &c.status),
			 WEFT_ERR_ARGUMENT);
	assert_string_equal(c.status.message,
			    "v is state, which set_weights does not change: call state_set");
	assert_int_equal(m->set_weights(c.instance, 1, &v, &value, &lenient, &c.status), WEFT_OK);
	assert_int_equal(m->set_weights(c.instance, 1, &p, &value, NULL, &c.status), WEFT_OK);
	assert_int_equal(m->get_weights(c.instance, 1, &v, &to, NULL, &c.status), WEFT_OK);
	assert_memory_equal(got, first, sizeof first);
	for (int k = 0; k < 2; k++) { /* first contents as before, the weight is another one */
		assert_int_equal(m->state_reset(c.instance, &c.status), WEFT_OK);
		assert_int_equal(weft_call_run(&c, &in), WEFT_OK);
		assert_true(((const float *)c.output[0].data)[1] == 102);
	}
	weft_call_close(&c);
	weft_free(w);
}

/* Two entries of one module: what is computed from its weights is there once. */
static void test_entries(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g[2] = {load(w, "folded"), load(w, "folded")},
		  *both = weft_join(w, 2, (const char *const[]){"a", "b"}, g);
	WeftOptions o = {.size = sizeof o, .replaceable = true};
	float a[OUTPUTS], b[OUTPUTS];
	assert_non_null(both);
	assert_true(weft_plan(w, g[0], &o));
	uint64_t one = weft_report(w)->weight_bytes;
	const WeftModel *m = weft_loops(w, both, &o);
	WeftInstance *in = opened(m, w);
	assert_int_equal(weft_report(w)->weight_bytes, one);
	assert_int_equal(set(m, in, 3, NULL), WEFT_OK);
	run(m, in, 0, a);
	run(m, in, 1, b);
	assert_memory_equal(a, b, sizeof a);
	m->close(in);
	weft_free(w);
}

/* An index that no table has is found by the code that computes: the old weights stay. */
static void test_index(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftOptions o = {.size = sizeof o, .replaceable = true};
	const WeftModel *m = weft_loops(w, load(w, "shared"), &o);
	WeftInstance *in = opened(m, w);
	WeftStatus status;
	int64_t index[9] = {0, 1, 2, 3, 4, 0, 1, 2, 3};
	for (uint32_t k = 0; k < m->nsource; k++) {
		const WeftParamInfo *p = weft_source(m, k);
		WeftTensor t = tensor(p, index);
		if (strcmp(p->name, "index") != 0)
			continue;
		assert_int_equal(m->set_weights(in, 1, &p->name, &t, NULL, &status), WEFT_OK);
		index[4] = 5;
		assert_int_equal(m->set_weights(in, 1, &p->name, &t, NULL, &status),
				 WEFT_ERR_CHECK);
		assert_non_null(strstr(status.message, "index 5"));
		m->close(in);
		weft_free(w);
		return;
	}
	fail_msg("the index cannot be set");
}

/* Weights one after the other, where they need no partners, are as all at once: what is computed
 * from others stays. */
static void check_parts(const WeftModel *m, Weft *w)
{
	WeftInstance *in = opened(m, w), *whole = opened(m, w);
	WeftStatus status;
	float a[OUTPUTS], b[OUTPUTS];
	uint32_t seed[MOST_SOURCES], nset = 0;
	assert_int_equal(set(m, in, 40, &status), WEFT_OK);
	for (uint32_t k = 0; k < m->nsource; k++)
		seed[k] = 40 + k;
	for (uint32_t one = 0; one < m->nsource; one++) {
		const WeftParamInfo *p = weft_source(m, one);
		WeftTensor t = tensor(p, values(p, 100 + one)), all[MOST_SOURCES];
		const char *name[MOST_SOURCES];
		int code = m->set_weights(in, 1, &p->name, &t, NULL, &status);
		free(t.data);
		if (code == WEFT_OK)
			seed[one] = 100 + one;
		else
			assert_non_null(strstr(status.message, "set it together with"));
		nset += code == WEFT_OK;
		for (uint32_t k = 0; k < m->nsource; k++) {
			const WeftParamInfo *q = weft_source(m, k);
			name[k] = q->name;
			all[k] = tensor(q, values(q, seed[k]));
		}
		assert_int_equal(m->set_weights(whole, m->nsource, name, all, NULL, &status),
				 WEFT_OK);
		for (uint32_t k = 0; k < m->nsource; k++)
			free(all[k].data);
		run(m, in, 0, a);
		run(m, whole, 0, b);
		assert_memory_equal(a, b, sizeof a);
	}
	assert_true(nset > 0);
	m->close(in);
	m->close(whole);
}

static void test_parts(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftOptions o = {.size = sizeof o, .replaceable = true};
	check_parts(weft_loops(w, load(w, "folded"), &o), w);
	weft_free(w);
}

/* What set_weights says of names and tensors that are none of the model's. */
static void test_wrong(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftOptions o = {.size = sizeof o, .replaceable = true};
	const WeftModel *m = weft_loops(w, load(w, "folded"), &o);
	WeftInstance *in = opened(m, w);
	WeftStatus status;
	const WeftParamInfo *p = weft_source(m, 0);
	while (p->rank < 2 || p->dtype.code != WEFT_FLOAT)
		p = (const WeftParamInfo *)weft_element(m, WEFT_PARAM_INFO, p, 1);
	const WeftTensor right = tensor(p, values(p, 1));
	int64_t dim[12], strides[12];
	WeftTensor t[3] = {right, right, right};
	const char *name[3] = {p->name, "nobody", p->name};
	char want[200];
	memcpy(dim, p->dim, p->rank * sizeof *dim);
	const WeftContext some = {.size = sizeof some, .flags = WEFT_IGNORE_UNKNOWN};
	assert_int_equal(m->set_weights(in, 2, name, t, NULL, &status), WEFT_ERR_ARGUMENT);
	assert_string_equal(status.message, "the model has no weight nobody");
	assert_int_equal(m->set_weights(in, 1, name + 1, t, &some, &status), WEFT_OK);
	assert_int_equal(m->set_weights(in, 3, name, t, &some, &status), WEFT_ERR_ARGUMENT);
	snprintf(want, sizeof want, "weight %s is given twice", p->name);
	assert_string_equal(status.message, want);
	assert_int_equal(m->set_weights(in, 1, (const char *const[]){NULL}, t, &some, &status),
			 WEFT_ERR_ARGUMENT);
	t[0].dtype.bits = 64;
	assert_int_equal(m->set_weights(in, 1, name, t, NULL, &status), WEFT_ERR_INPUT);
	snprintf(want, sizeof want, "weight %s has dtype f64, expected f32", p->name);
	assert_string_equal(status.message, want);
	t[0] = right;
	t[0].shape = dim;
	dim[1]++;
	assert_int_equal(m->set_weights(in, 1, name, t, NULL, &status), WEFT_ERR_INPUT);
	snprintf(want, sizeof want, "weight %s: dimension 1 is %lld, expected %lld", p->name,
		 (long long)dim[1], (long long)dim[1] - 1);
	assert_string_equal(status.message, want);
	t[0] = right;
	t[0].strides = strides;
	for (uint32_t k = 0; k < p->rank; k++)
		strides[k] = 7;
	assert_int_equal(m->set_weights(in, 1, name, t, NULL, &status), WEFT_ERR_INPUT);
	assert_non_null(strstr(status.message, "is 7, expected 1, row-major"));
	free(right.data);
	m->close(in);
	weft_free(w);
}

/* A parameter that the file has under two names: either sets it, and so do both with equal
 * values. */
static void set_by_names(Weft *w, const WeftGraph *g)
{
	WeftOptions o = {.size = sizeof o, .replaceable = true};
	const WeftModel *m = weft_loops(w, g, &o);
	WeftInstance *in = opened(m, w);
	WeftStatus status;
	const WeftParamInfo *p = NULL;
	for (uint32_t k = 0; k < m->nsource; k++) {
		const WeftParamInfo *q = weft_source(m, k);
		p = q->aliases ? q : p;
	}
	assert_non_null(p);
	assert_string_equal(p->name, "w");
	assert_string_equal(p->aliases, "tied\n");
	WeftTensor t[2] = {tensor(p, values(p, 1)), tensor(p, values(p, 2))};
	const char *const both[] = {"tied", "w"};
	assert_int_equal(m->set_weights(in, 1, both, t, NULL, &status), WEFT_OK);
	assert_int_equal(m->set_weights(in, 2, both, (WeftTensor[]){t[0], t[0]}, NULL, &status),
			 WEFT_OK);
	assert_int_equal(m->set_weights(in, 2, both, t, NULL, &status), WEFT_ERR_ARGUMENT);
	assert_string_equal(status.message,
			    "weights tied and w are one parameter, and have different values");
	/* equal values at different places of memory */
	char *moved = malloc((size_t)p->bytes + 64);
	memcpy(moved + 64, t[0].data, (size_t)p->bytes);
	WeftTensor same[2] = {t[0], t[0]};
	same[1].data = moved;
	same[1].byte_offset = 64;
	assert_int_equal(m->set_weights(in, 2, both, same, NULL, &status), WEFT_OK);
	free(moved);
	assert_int_equal(m->set_weights(in, 1, (const char *const[]){"tie"}, t, NULL, &status),
			 WEFT_ERR_ARGUMENT);
	free(t[0].data);
	free(t[1].data);
	m->close(in);
}

/* Of one graph, and of several that were joined. */
static void test_names(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g = load(w, "../tied");
	set_by_names(w, g);
	set_by_names(w, weft_join(w, 2, (const char *const[]){"a", "b"},
				  (WeftGraph *[]){g, load(w, "../tied")}));
	weft_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_process), cmocka_unit_test(test_get),
		cmocka_unit_test(test_entries),    cmocka_unit_test(test_state),
		cmocka_unit_test(test_index),      cmocka_unit_test(test_parts),
		cmocka_unit_test(test_wrong),      cmocka_unit_test(test_names)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
