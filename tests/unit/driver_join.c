/* Models of several entries: tests/data/join has two graphs of one decoder, whose weights are the
 * same and whose sizes are called alike, and a third with other weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "weft.h"

#define FOLDER TEST_DATA "/join/"
enum { WORDS = 1100, WIDTH = 16, MOST_OUT = 64 * WORDS };
/* bytes, each tensor once; panels are filled up */
enum { WEIGHTS = (WORDS * WIDTH + WIDTH * WIDTH + WIDTH) * 4, PADDING = 2000 };

static const char *const names[] = {"prefill", "decode"};

typedef struct {
	Weft *w;
	WeftGraph *one[2], *all;
} Pair;

static WeftGraph *load(Weft *w, const char *name)
{
	char path[500];
	snprintf(path, sizeof path, FOLDER "%s.pt2", name);
	WeftGraph *g = weft_load(w, path);
	if (!g)
		fail_msg("%s", weft_messages(w));
	return g;
}

static Pair pair(void)
{
	Pair p = {.w = weft_new()};
	for (int k = 0; k < 2; k++)
		p.one[k] = load(p.w, names[k]);
	p.all = weft_join(p.w, 2, names, p.one);
	if (!p.all)
		fail_msg("%s", weft_messages(p.w));
	return p;
}

static void expect_error(Weft *w, const char *text)
{
	const char *all = weft_messages(w);
	if (!strstr(all, text))
		fail_msg("expected \"%s\", got: %s", text, all);
}

/* ---- what is refused ---- */

static void test_refused(void **state)
{
	(void)state;
	Pair p = pair();
	WeftGraph *twice[2] = {p.one[0], p.one[0]}, *nested[2] = {p.one[0], p.all};
	uint32_t n;
	assert_null(weft_join(p.w, 2, (const char *const[]){"a", "a"}, p.one));
	expect_error(p.w, FOLDER "decode.pt2: error: a second entry a: that of " FOLDER
				 "prefill.pt2 is called so");
	assert_null(weft_join(p.w, 2, (const char *const[]){"a", "b-c"}, p.one));
	expect_error(p.w, "an entry cannot be called \"b-c\"");
	assert_null(weft_join(p.w, 2, (const char *const[]){"a", ""}, p.one));
	assert_null(weft_join(p.w, 2, (const char *const[]){"a", "9"}, p.one));
	assert_null(weft_join(p.w, 2, names, nested));
	expect_error(p.w, "several graphs were joined");
	assert_null(weft_join(p.w, 0, names, p.one));
	assert_null(weft_inputs(p.w, p.all, &n));
	assert_null(weft_graph_dot(p.w, p.all, NULL));
	assert_null(weft_copy_graph(p.w, p.all));
	Weft *other = weft_new();
	WeftGraph *strange[2] = {p.one[0], load(other, "decode")};
	assert_null(weft_join(p.w, 2, names, strange));
	expect_error(p.w, "another Weft");
	assert_non_null(weft_join(p.w, 2, names, twice));
	weft_free(other);
	weft_free(p.w);
}

/* ---- looking ---- */

static void test_looks(void **state)
{
	(void)state;
	Pair p = pair();
	WeftOptions o = {.size = sizeof o};
	const char *text = weft_graph_text(p.w, p.all, NULL);
	assert_non_null(strstr(text, "graph @prefill(%ids: i64[s23, s27])"));
	assert_non_null(strstr(text, "where 1 <= s23 <= 8 ~ 3"));
	assert_non_null(strstr(text, "graph @decode(%ids: i64[s23])"));
	assert_non_null(strstr(text, "where 1 <= s23 <= 100 ~ 9"));
	assert_non_null(weft_graph_text(p.w, p.all, "decompose"));
	assert_true(weft_plan(p.w, p.all, &o));
	const WeftReport *r = weft_report(p.w);
	assert_int_equal(r->nentry, 2);
	assert_string_equal(r->entry[1].name, "decode");
	assert_int_equal(r->nkernel, r->entry[0].nkernel + r->entry[1].nkernel);
	assert_int_equal(r->operators, r->entry[0].operators + r->entry[1].operators);
	assert_true(r->flops == r->entry[0].flops + r->entry[1].flops);
	assert_in_range(r->weight_bytes, WEIGHTS, WEIGHTS + PADDING);
	double before = r->entry[1].flops;
	r = weft_report_at(p.w, (const int64_t[]){3, 7, 18}, 3);
	assert_true(r && r->entry[1].flops > 1.9 * before && r->entry[1].flops < 2.1 * before);
	assert_null(weft_report_at(p.w, (const int64_t[]){9, 7, 18}, 3));
	expect_error(p.w, "s23 cannot be 9");
	assert_null(weft_report_at(p.w, (const int64_t[]){3, 7}, 2));
	weft_free(p.w);
}

/* Kernels of entries that do the same are there once. */
static void test_shares_kernels(void **state)
{
	(void)state;
	Pair p = pair();
	WeftOptions o = {.size = sizeof o};
	WeftGraph *twice[2] = {p.one[1], p.one[1]};
	assert_true(weft_plan(p.w, p.one[1], &o));
	uint32_t distinct = weft_report(p.w)->distinct;
	assert_true(weft_plan(p.w, weft_join(p.w, 2, names, twice), &o));
	assert_int_equal(weft_report(p.w)->distinct, distinct);
	weft_free(p.w);
}

/* ---- running ---- */

static WeftTensor tensor(void *data, int64_t *shape, int32_t rank, WeftDType type)
{
	return (WeftTensor){
		.data = data, .device = {WEFT_CPU, 0}, .ndim = rank, .dtype = type, .shape = shape};
}

static const WeftDType i64 = {0, 64, 1}, f32 = {2, 32, 1};

/* ids: [batch, length], without the second where the length is 0. */
typedef struct {
	int64_t batch, length;
	int64_t id[8 * 64], shape[2];
	WeftTensor in;
} Ids;

static void fill(Ids *x, int64_t batch, int64_t length)
{
	*x = (Ids){.batch = batch, .length = length, .shape = {batch, length}};
	for (int64_t k = 0; k < batch * (length ? length : 1); k++)
		x->id[k] = (k * 37 + length) % WORDS;
	x->in = tensor(x->id, x->shape, length ? 2 : 1, i64);
}

static int run(const WeftModel *m, WeftInstance *in, uint32_t entry, const Ids *x, float *y,
	       float *hidden, WeftStatus *status)
{
	int64_t shape[2] = {x->batch, WORDS}, hidden_shape[3] = {x->batch, x->length, WIDTH};
	WeftTensor out[2] = {tensor(y, shape, 2, f32), tensor(hidden, hidden_shape, 3, f32)};
	WeftSizes *s = malloc(weft_entry(m, entry)->sizes_bytes);
	int code = m->sizes(in, entry, &x->in, s, status);
	void *work = aligned_alloc(64, code ? 64 : (s->workspace_bytes + 127) / 64 * 64);
	code = code ? code : m->run(in, s, &x->in, out, work, NULL, status);
	free(work);
	free(s);
	return code;
}

static void same_as_interpreted(const Pair *p, const WeftModel *m, WeftInstance *in, uint32_t entry,
				const Ids *x)
{
	static float y[MOST_OUT], hidden[8 * 64 * WIDTH];
	WeftTensor want[2];
	WeftStatus status = {0};
	if (run(m, in, entry, x, y, hidden, &status))
		fail_msg("%s: %s", names[entry], status.message);
	assert_true(weft_interpret(p->w, p->one[entry], &x->in, 1, want));
	for (int64_t k = 0; k < x->batch * WORDS; k++) {
		float d = y[k] - ((float *)want[0].data)[k];
		if (!(d < 1e-4f && d > -1e-4f))
			fail_msg("%s: element %lld is %g, expected %g", names[entry], (long long)k,
				 (double)y[k], (double)((float *)want[0].data)[k]);
	}
	weft_release(p->w);
}

static void check_model(const Pair *p, const WeftModel *m)
{
	WeftInstance *in;
	WeftStatus status = {0};
	Ids x;
	static float y[MOST_OUT], hidden[8 * 64 * WIDTH];
	if (m->open(m, NULL, &in, &status))
		fail_msg("%s", status.message);
	assert_int_equal(m->nentry, 2);
	assert_in_range(m->weights_bytes, WEIGHTS, WEIGHTS + PADDING);
	for (uint32_t k = 0; k < 2; k++)
		assert_string_equal(weft_entry(m, k)->name, names[k]);
	static const int64_t size[][2] = {{1, 2}, {3, 7}, {8, 64}};
	for (int k = 0; k < 3; k++) {
		fill(&x, size[k][0], size[k][1]);
		same_as_interpreted(p, m, in, 0, &x);
		fill(&x, size[k][0] * 4, 0);
		same_as_interpreted(p, m, in, 1, &x);
	}
	fill(&x, 9, 2); /* 9 is a size of the other entry */
	assert_int_equal(run(m, in, 0, &x, y, hidden, &status), WEFT_ERR_INPUT);
	if (!strstr(status.message, "(s23) is 9, expected 1 to 8"))
		fail_msg("%s", status.message);
	fill(&x, 101, 0);
	assert_int_equal(run(m, in, 1, &x, y, hidden, &status), WEFT_ERR_INPUT);
	fill(&x, 2, 0);
	x.id[1] = WORDS;
	assert_int_equal(run(m, in, 1, &x, y, hidden, &status), WEFT_ERR_CHECK);
	assert_non_null(strstr(status.message, "embedding"));
	fill(&x, 2, 3);
	x.id[5] = -WORDS - 1;
	assert_int_equal(run(m, in, 0, &x, y, hidden, &status), WEFT_ERR_CHECK);
	WeftSizes *s = malloc(weft_entry(m, 1)->sizes_bytes);
	/* there is no third */
	assert_int_equal(m->sizes(in, 2, &x.in, s, &status), WEFT_ERR_ARGUMENT);
	free(s);
	m->close(in);
}

static void check_file(const Pair *p, const char *path)
{
	const WeftModel *(*get)(void);
	char full[256];
	snprintf(full, sizeof full, "./%s", path);
	void *so = dlopen(full, RTLD_NOW | RTLD_LOCAL);
	if (!so)
		fail_msg("%s", dlerror());
	*(void **)&get = dlsym(so, "weft_model");
	check_model(p, get());
	dlclose(so);
}

static void compile_and_check(const WeftOptions *o)
{
	Pair p = pair();
	char path[64], weights[64];
	snprintf(path, sizeof path, "join-%ld.so", (long)getpid());
	snprintf(weights, sizeof weights, "join-%ld.weights", (long)getpid());
	if (!weft_compile(p.w, p.all, o, path))
		fail_msg("%s", weft_messages(p.w));
	check_file(&p, path);
	unlink(path);
	unlink(weights);
	weft_free(p.w);
}

static void test_c(void **state)
{
	(void)state;
	compile_and_check(&(WeftOptions){
		.size = sizeof(WeftOptions), .backend = WEFT_BACKEND_C, .no_cache = true});
}

static void test_llvm(void **state)
{
	(void)state;
	if (!weft_has_llvm())
		skip();
	WeftOptions o = {.size = sizeof o, .backend = WEFT_BACKEND_LLVM};
	compile_and_check(&o);
	o.weights = WEFT_WEIGHTS_FILE;
	compile_and_check(&o);
	o.weights = WEFT_WEIGHTS_EMBED;
	o.op_by_op = true;
	compile_and_check(&o);
#ifdef __x86_64__
	o.op_by_op = false;
	o.target = "x86-64-v2,v3,v4";
	compile_and_check(&o);
#endif
}

static void test_in_process(void **state)
{
	(void)state;
	Pair p = pair();
	const WeftModel *(*const make[])(Weft *, const WeftGraph *,
					 const WeftOptions *) = {weft_loops, weft_jit};
	for (int k = 0; k < 1 + weft_has_llvm(); k++) {
		const WeftModel *m = make[k](p.w, p.all, NULL);
		if (!m)
			fail_msg("%s", weft_messages(p.w));
		check_model(&p, m);
	}
	weft_free(p.w);
}

/* ---- weights ---- */

static void test_other_weights(void **state)
{
	(void)state;
	Pair p = pair();
	WeftOptions o = {.size = sizeof o};
	WeftGraph *two[2] = {p.one[0], load(p.w, "other")}, *all = weft_join(p.w, 2, names, two);
	assert_true(all && weft_plan(p.w, all, &o));
	assert_in_range(weft_report(p.w)->weight_bytes, 2 * WEIGHTS, 2 * (WEIGHTS + PADDING));
	o.replaceable = true;
	assert_false(weft_plan(p.w, all, &o));
	expect_error(p.w,
		     FOLDER "other.pt2: error: its parameter embed.weight is not that of " FOLDER
			    "prefill.pt2");
	weft_free(p.w);
}

/* One name, one parameter: both entries see the new contents. */
static void test_replaced(void **state)
{
	(void)state;
	Pair p = pair();
	WeftOptions o = {.size = sizeof o, .replaceable = true};
	WeftInstance *in;
	WeftStatus status = {0};
	Ids x;
	float bias[WIDTH];
	int64_t shape[1] = {WIDTH};
	static float before[2][MOST_OUT], after[2][MOST_OUT], hidden[8 * 64 * WIDTH];
	WeftTensor t = tensor(bias, shape, 1, f32);
	const WeftModel *m = weft_loops(p.w, p.all, &o);
	assert_non_null(m);
	assert_int_equal(m->open(m, NULL, &in, &status), WEFT_OK);
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t e = 0; e < 2; e++) {
			fill(&x, 2, e ? 0 : 3);
			assert_int_equal(
				run(m, in, e, &x, pass ? after[e] : before[e], hidden, &status),
				WEFT_OK);
		}
		for (int k = 0; k < WIDTH; k++)
			bias[k] = 1 + (float)k;
		assert_int_equal(m->set_weights(in, 1, (const char *const[]){"inner.bias"}, &t,
						NULL, &status),
				 WEFT_OK);
	}
	for (uint32_t e = 0; e < 2; e++)
		assert_true(memcmp(before[e], after[e], 2 * WORDS * sizeof(float)) != 0);
	m->close(in);
	weft_free(p.w);
}

/* ---- state ---- */

static WeftTensor *find_tensor(const WeftTensors *t, int k, const char *what)
{
	char key[32];
	snprintf(key, sizeof key, "%d.%s", k, what);
	return (WeftTensor *)(uintptr_t)weft_tensors_find(t, key);
}

static int call(const WeftModel *m, WeftInstance *in, uint32_t entry, const WeftTensor *x,
		WeftTensor *y, WeftStatus *status)
{
	WeftSizes *s = malloc(weft_entry(m, entry)->sizes_bytes);
	int code = m->sizes(in, entry, x, s, status);
	void *work = aligned_alloc(64, code ? 64 : (s->workspace_bytes + 127) / 64 * 64);
	code = code ? code : m->run(in, s, x, y, work, NULL, status);
	free(work);
	free(s);
	return code;
}

static void expect_values(const float *got, const WeftTensor *want, int k)
{
	int64_t n = 1;
	for (int32_t d = 0; d < want->ndim; d++)
		n *= want->shape[d];
	for (int64_t i = 0; i < n; i++) {
		float d = got[i] - ((float *)want->data)[i];
		if (!(d < 1e-4f && d > -1e-4f))
			fail_msg("call %d: element %lld is %g, expected %g", k, (long long)i,
				 (double)got[i], (double)((float *)want->data)[i]);
	}
}

static const char *const store_names[] = {"writer", "reader", "again"};

static WeftGraph *join_store(Weft *w, const WeftJoinOptions *o)
{
	WeftGraph *g[3];
	for (int k = 0; k < 3; k++)
		g[k] = load(w, store_names[k]);
	WeftGraph *all = weft_join_with(w, 3, store_names, g, o);
	if (!all)
		fail_msg("%s", weft_messages(w));
	return all;
}

/* The calls that PyTorch made on one store: each entry sees what another wrote. */
static void check_store(Weft *w, const WeftModel *m)
{
	WeftTensors *t = weft_tensors_read(w, FOLDER "store.safetensors");
	WeftInstance *in;
	WeftStatus status = {0};
	assert_true(t && m->open(m, NULL, &in, &status) == WEFT_OK);
	assert_int_equal(m->nstate, 2);
	for (int round = 0; round < 2; round++) {
		int k = 0;
		for (WeftTensor *e; (e = find_tensor(t, k, "e")); k++) {
			float y[20];
			WeftTensor *want = find_tensor(t, k, "y"), out = *want;
			out.data = y;
			if (call(m, in, (uint32_t) * (int64_t *)e->data, find_tensor(t, k, "x"),
				 &out, &status))
				fail_msg("%s", status.message);
			expect_values(y, want, k);
		}
		assert_int_equal(k, 8);
		assert_int_equal(m->state_reset(in, &status), WEFT_OK);
	}
	m->close(in);
}

static void check_store_file(Weft *w, const WeftGraph *all, const WeftOptions *o)
{
	const WeftModel *(*get)(void);
	char path[64], full[80];
	snprintf(path, sizeof path, "store-%ld.so", (long)getpid());
	snprintf(full, sizeof full, "./%s", path);
	if (!weft_compile(w, all, o, path))
		fail_msg("%s", weft_messages(w));
	void *so = dlopen(full, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(so);
	*(void **)&get = dlsym(so, "weft_model");
	check_store(w, get());
	dlclose(so);
	unlink(path);
}

static void test_state(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftJoinOptions none = {.size = sizeof none};
	WeftGraph *all = join_store(w, &none);
	WeftOptions o = {.size = sizeof o, .no_cache = true, .backend = WEFT_BACKEND_C};
	const WeftModel *m = weft_loops(w, all, NULL);
	assert_non_null(m);
	check_store(w, m);
	check_store_file(w, all, &o);
	if (weft_has_llvm()) {
		m = weft_jit(w, all, NULL);
		assert_non_null(m);
		check_store(w, m);
		o.backend = WEFT_BACKEND_LLVM;
		check_store_file(w, all, &o);
#ifdef __x86_64__
		o.target = "x86-64-v2,v3";
		check_store_file(w, all, &o);
#endif
	}
	const WeftReport *r = weft_report(w);
	assert_int_equal(r->nstate, 2);
	for (uint32_t k = 0; k < 2; k++) {
		bool scale = !strcmp(r->state[k].name, "scale");
		assert_string_equal(r->state[k].written_by, "writer");
		assert_string_equal(r->state[k].read_by, scale ? "reader" : "reader, again");
		assert_string_equal(r->state[k].constant_in, scale ? "reader" : "reader, again");
	}
	weft_free(w);
}

/* A prompt by one entry, the next words by the other, in the caches of one decoder. */
static void test_caches(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g[2] = {weft_load(w, TEST_DATA "/state/prefill.pt2"),
			   weft_load(w, TEST_DATA "/state/decode.pt2")};
	WeftGraph *all = weft_join(w, 2, names, g);
	WeftTensors *t[2] = {weft_tensors_read(w, TEST_DATA "/state/prefill.calls.safetensors"),
			     weft_tensors_read(w, TEST_DATA "/state/decode.calls.safetensors")};
	const WeftModel *m = all && t[0] && t[1] ? weft_loops(w, all, NULL) : NULL;
	if (!m)
		fail_msg("%s", weft_messages(w));
	WeftInstance *in;
	WeftStatus status = {0};
	assert_int_equal(m->open(m, NULL, &in, &status), WEFT_OK);
	for (int k = 2; k < 5; k++) { /* three words by prefill, then one at a time */
		uint32_t e = k > 2;
		int from = e ? k : 0;
		WeftTensor x[2] = {*find_tensor(t[e], from, "x.0"),
				   *find_tensor(t[e], from, "x.1")};
		float y[16];
		WeftTensor *want = find_tensor(t[1], k, "y.0"), out = *want;
		out.data = y;
		if (call(m, in, e, x, &out, &status))
			fail_msg("%s", status.message);
		expect_values(y, want, k);
	}
	m->close(in);
	weft_free(w);
}

static void test_private_state(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *two[2] = {load(w, "writer"), load(w, "writer")},
		  *other[2] = {two[0], load(w, "stranger")};
	const char *const pair_names[] = {"a", "b"};
	WeftJoinOptions o = {
		.size = sizeof o, .nprivate = 1, .private_state = (const char *const[]){"all"}};
	WeftGraph *all = weft_join_with(w, 2, pair_names, two, &o);
	assert_true(all && weft_plan(w, all, NULL));
	const WeftReport *r = weft_report(w);
	assert_int_equal(r->nstate, 3);
	assert_string_equal(r->state[0].name, "scale");
	assert_string_equal(r->state[0].written_by, "a, b");
	assert_string_equal(r->state[1].name, "a.all");
	assert_string_equal(r->state[2].name, "b.all");
	assert_null(weft_join(w, 2, pair_names, other));
	expect_error(w, FOLDER
		     "stranger.pt2: error: all has another first contents than all, which " FOLDER
		     "writer.pt2 writes");
	assert_non_null(weft_join_with(w, 2, pair_names, other, &o));
	o.private_state = (const char *const[]){"nothing"};
	assert_null(weft_join_with(w, 2, pair_names, other, &o));
	expect_error(w, "no entry has state called \"nothing\"");
	weft_free(w);
}

static void test_same_state(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *two[2] = {load(w, "writer"), load(w, "decode")};
	const char *const pair_names[] = {"a", "b"};
	static const char *const wrong[][2] = {
		{"a.scale=b", "expected ENTRY.NAME=ENTRY.NAME"},
		{"a.scale", "expected ENTRY.NAME=ENTRY.NAME"},
		{"a.=b.x", "expected ENTRY.NAME=ENTRY.NAME"},
		{"", "expected ENTRY.NAME=ENTRY.NAME"},
		{"c.scale=b.x", "there is no entry c"},
		{"a.scale=b.x", "the graph has no parameter or buffer x"},
		{"a.x=b.inner.bias", "the graph has no parameter or buffer x"},
		{"a.scale=a.bias", "the graph has a tensor scale of its own"},
		{"a.scale=b.inner.bias", "scale has another type than scale"}};
	for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
		WeftJoinOptions o = {.size = sizeof o, .nsame = 1, .same_state = &wrong[k][0]};
		assert_null(weft_join_with(w, 2, pair_names, two, &o));
		expect_error(w, wrong[k][1]);
	}
	WeftGraph *part[2] = {two[0], load(w, "rows")};
	assert_null(weft_join(w, 2, pair_names, part));
	expect_error(w, FOLDER "rows.pt2: error: rows is part of the memory of all, which " FOLDER
			       "writer.pt2 writes");
	weft_free(w);
}

/* What an entry finds when it runs is known whichever entry is the last. */
static void test_found_sizes(void **state)
{
	(void)state;
	static const char *const text[] = {
		"graph @found(%x: f32[6]) {\n  %y = aten.nonzero(%x)\n  return %y\n}\n",
		"graph @known(%x: f32[6]) {\n  %y = aten.neg(%x)\n  return %y\n}\n"};
	static const char *const entry[] = {"found", "known"};
	for (int last = 0; last < 2; last++) {
		Weft *w = weft_new();
		const char *const order[] = {entry[last], entry[!last]};
		WeftGraph *g[2];
		for (int k = 0; k < 2; k++)
			g[k] = weft_parse(w, text[k ? !last : last], order[k]);
		const WeftModel *m = weft_loops(w, weft_join(w, 2, order, g), NULL);
		if (!m)
			fail_msg("%s", weft_messages(w));
		for (int k = 0; k < 2; k++)
			assert_int_equal(!!(m->entry[k]->flags & WEFT_ENTRY_DATA_SIZES),
					 !strcmp(order[k], "found"));
		weft_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_looks),
		cmocka_unit_test(test_shares_kernels),
		cmocka_unit_test(test_in_process),
		cmocka_unit_test(test_c),
		cmocka_unit_test(test_llvm),
		cmocka_unit_test(test_other_weights),
		cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_state),
		cmocka_unit_test(test_caches),
		cmocka_unit_test(test_private_state),
		cmocka_unit_test(test_same_state),
		cmocka_unit_test(test_found_sizes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
