/* Archives of tests/data (made by tests/make/make_fixtures.py): what they import to computes what
 * PyTorch computed, outputs and written state alike. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "frontend/pt2/pt2.h"
#include "frontend/files/safetensors.h"
#include "ir/build/text.h"
#include "ir/build/verify.h"
#include "ir/interp/interp.h"
#include "ir/op/op.h"
#include "tests/help/golden.h"

typedef struct {
	Ctx *ctx;
	Ir *ir;
} Fixture;

static Fixture f;

static int setup(void **state)
{
	(void)state;
	f.ctx = ctx_new();
	if (!f.ctx)
		return -1;
	f.ir = ir_new(f.ctx);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ctx_free(f.ctx);
	return 0;
}

static void show_diagnostics(void)
{
	Text t;
	text_init(&t, f.ctx->arena);
	ctx_print(f.ctx, &t);
	print_message("%s", t.data ? t.data : "");
}

static Graph *load(const char *name)
{
	Graph *g = pt2_load(f.ir, arena_printf(f.ctx->arena, "%s/%s.pt2", TEST_DATA, name), NULL);
	if (!g || !graph_verify(g)) {
		show_diagnostics();
		fail_msg("%s does not load", name);
	}
	return g;
}

static Tensor first_contents(const GraphInput *in)
{
	if (!in->init.i)
		fail_msg("%s has no first contents", in->name);
	const Const *c = ir_const_of(f.ir, in->init);
	assert_string_equal(c->name, in->name);
	Tensor t = {.dtype = c->dtype, .rank = c->rank, .data = (void *)(uintptr_t)c->data};
	memcpy(t.dim, c->dim, sizeof *c->dim * c->rank);
	return t;
}

static const void *constant_data(const char *name)
{
	for (uint32_t k = 1; k < f.ir->constant.n; k++)
		if (strcmp(f.ir->constant.data[k].name, name) == 0)
			return f.ir->constant.data[k].data;
	fail_msg("no constant %s", name);
	return NULL;
}

static void assert_close(const char *what, const Tensor *got, const Tensor *want)
{
	if (!want)
		fail_msg("%s has no reference", what);
	assert_int_equal(got->dtype, want->dtype);
	assert_int_equal(got->rank, want->rank);
	for (uint32_t k = 0; k < got->rank; k++)
		assert_int_equal(got->dim[k], want->dim[k]);
	for (int64_t i = 0; i < tensor_numel(got); i++) {
		double a = tensor_f64(got, i), b = tensor_f64(want, i);
		if (fabs(a - b) > 1e-5 * (1 + fabs(b)))
			fail_msg("%s[%lld] is %.9g, expected %.9g", what, (long long)i, a, b);
	}
}

/* "w.0" for user input 0, "b.cache" for a buffer. */
static const char *write_key(const Graph *g, int32_t input)
{
	const GraphInput *in = &g->input.data[input];
	if (in->kind != INPUT_USER)
		return arena_printf(f.ctx->arena, "b.%s", in->name);
	return arena_printf(f.ctx->arena, "w.%d", input);
}

/* Returns the number of inputs that the graph writes. */
static uint32_t check(const char *name)
{
	Graph *g = load(name);
	StFile st;
	assert_true(st_open(f.ctx, arena_printf(f.ctx->arena, "%s/%s.safetensors", TEST_DATA, name),
			    &st));
	Tensor *in = ARENA_ARRAY(f.ctx->arena, Tensor, g->input.n);
	Tensor *out = ARENA_ARRAY(f.ctx->arena, Tensor, g->output.n);
	for (uint32_t k = 0; k < g->input.n; k++) {
		const GraphInput *gi = &g->input.data[k];
		const Tensor *x = st_find(&st, arena_printf(f.ctx->arena, "x.%u", k));
		in[k] = gi->kind == INPUT_USER && x ? *x : first_contents(gi);
	}
	if (!interp(f.ctx, g, in, g->input.n, out, g->output.n, f.ctx->arena)) {
		show_diagnostics();
		fail_msg("%s does not run", name);
	}
	uint32_t user = 0, writes = 0;
	for (uint32_t k = 0; k < g->output.n; k++) {
		const GraphOutput *o = &g->output.data[k];
		const char *key = o->writes < 0 ? arena_printf(f.ctx->arena, "y.%u", user++)
						: write_key(g, o->writes);
		assert_close(arena_printf(f.ctx->arena, "%s %s", name, key), &out[k],
			     st_find(&st, key));
		writes += o->writes >= 0;
	}
	assert_null(st_find(&st, arena_printf(f.ctx->arena, "y.%u", user)));
	assert_int_equal(f.ctx->nerror, 0);
	return writes;
}

/* Outputs of call k, and the state it changed; state goes on to the next call. */
static void check_call(const char *name, const Graph *g, const StFile *st, uint32_t k, Tensor *in,
		       const Tensor *out)
{
	uint32_t user = 0, changed = 0, found = 0;
	for (uint32_t i = 0; i < g->output.n; i++) {
		const GraphOutput *o = &g->output.data[i];
		if (o->writes < 0) {
			const char *key = arena_printf(f.ctx->arena, "%u.y.%u", k, user++);
			assert_close(arena_printf(f.ctx->arena, "%s %s", name, key), &out[i],
				     st_find(st, key));
			continue;
		}
		const char *key =
			arena_printf(f.ctx->arena, "%u.b.%s", k, g->input.data[o->writes].name);
		const Tensor *want = st_find(st, key);
		if (want)
			assert_close(arena_printf(f.ctx->arena, "%s %s", name, key), &out[i], want);
		in[o->writes] = out[i];
		found += want != NULL;
	}
	assert_null(st_find(st, arena_printf(f.ctx->arena, "%u.y.%u", k, user)));
	const char *prefix = arena_printf(f.ctx->arena, "%u.b.", k);
	for (uint32_t i = 0; i < st->n; i++)
		changed += !strncmp(st->tensor[i].name, prefix, strlen(prefix));
	assert_true(found > 0 && found <= changed); /* of several names for the same memory one is
	                                               state */
}

/* All calls of tests/data/state/NAME, one after the other. Returns the number of state tensors. */
static uint32_t check_calls(const char *name)
{
	Graph *g = load(arena_printf(f.ctx->arena, "state/%s", name));
	StFile st;
	assert_true(st_open(
		f.ctx, arena_printf(f.ctx->arena, "%s/state/%s.calls.safetensors", TEST_DATA, name),
		&st));
	Tensor *in = ARENA_ARRAY(f.ctx->arena, Tensor, g->input.n);
	Tensor *out = ARENA_ARRAY(f.ctx->arena, Tensor, g->output.n);
	uint32_t nstate = 0;
	for (uint32_t i = 0; i < g->input.n; i++)
		if (g->input.data[i].kind != INPUT_USER) {
			in[i] = first_contents(&g->input.data[i]);
			nstate++;
		}
	for (uint32_t k = 0; st_find(&st, arena_printf(f.ctx->arena, "%u.y.0", k)); k++) {
		for (uint32_t i = 0, user = 0; i < g->input.n; i++)
			if (g->input.data[i].kind == INPUT_USER)
				in[i] = *st_find(&st,
						 arena_printf(f.ctx->arena, "%u.x.%u", k, user++));
		if (!interp(f.ctx, g, in, g->input.n, out, g->output.n, f.ctx->arena)) {
			show_diagnostics();
			fail_msg("%s does not run", name);
		}
		check_call(name, g, &st, k, in, out);
	}
	return nstate;
}

static bool has_state(const char *model, const char *name)
{
	const Graph *g = load(arena_printf(f.ctx->arena, "state/%s", model));
	for (uint32_t i = 0; i < g->input.n; i++)
		if (g->input.data[i].kind != INPUT_USER && !strcmp(g->input.data[i].name, name))
			return true;
	return false;
}

static void test_caches(void **state)
{
	(void)state;
	assert_int_equal(check_calls("caches"), 9);
	assert_int_equal(check_calls("caches_strict"), 9);
	assert_int_equal(check_calls("caches_decomposed"), 9);
}

/* One state, by the name of the tensor that holds all of the memory. */
static void test_shared_state(void **state)
{
	(void)state;
	assert_int_equal(check_calls("shared"), 1);
	assert_true(has_state("shared", "all") || has_state("shared", "again"));
}

static void test_tangled_state(void **state)
{
	(void)state;
	assert_null(pt2_load(f.ir, TEST_DATA "/state/tangled.pt2", NULL));
	Text t;
	text_init(&t, f.ctx->arena);
	ctx_print(f.ctx, &t);
	assert_non_null(strstr(t.data, "error: first and second share memory that the graph "
				       "writes: expected one that holds all of it"));
}

/* The graph reads the cache object's tensor, which is a constant of the file; the buffer's name is
 * the state's. */
static void test_lifted_state(void **state)
{
	(void)state;
	assert_int_equal(check_calls("lifted"), 2);
	assert_true(has_state("lifted", "key_cache"));
}

static void test_persistent(void **state)
{
	(void)state;
	assert_int_equal(check_calls("persistent"), 2);
}

static void test_statistics(void **state)
{
	(void)state;
	assert_int_equal(check_calls("statistics"), 5);
}

static void test_written_parameters(void **state)
{
	(void)state;
	assert_int_equal(check_calls("written_parameters"), 3);
}

static void test_decoder(void **state)
{
	(void)state;
	assert_int_equal(check_calls("prefill"), 2);
	assert_int_equal(check_calls("decode"), 2);
	assert_true(has_state("prefill", "layers.0.key_cache") &&
		    has_state("decode", "layers.0.key_cache"));
}

static void test_mlp(void **state)
{
	(void)state;
	assert_int_equal(check("mlp"), 0);
}

static void test_deflated(void **state)
{
	(void)state;
	assert_int_equal(check("mlp_deflated"), 0);
}

static void test_tied(void **state)
{
	(void)state;
	assert_int_equal(check("tied"), 0);
	assert_ptr_equal(constant_data("w"), constant_data("tied"));
}

static void test_views(void **state)
{
	(void)state;
	assert_int_equal(check("views"), 0);
}

static void test_resize(void **state)
{
	(void)state;
	assert_int_equal(check("resize"), 0);
}

static void test_state(void **state)
{
	(void)state;
	assert_int_equal(check("state"), 3);
}

static void test_state_decomposed(void **state)
{
	(void)state;
	assert_int_equal(check("state_decomposed"), 3);
}

static void test_input_write(void **state)
{
	(void)state;
	assert_int_equal(check("input_write"), 2);
}

static void test_batch_norm(void **state)
{
	(void)state;
	assert_int_equal(check("batch_norm"), 3);
}

static void test_batch_norm_decomposed(void **state)
{
	(void)state;
	assert_int_equal(check("batch_norm_decomposed"), 3);
}

static void test_dynamic(void **state)
{
	(void)state;
	assert_int_equal(check("dynamic"), 0);
	int64_t lo, hi;
	assert_int_equal(sym_nvars(f.ir->syms), 2);
	sym_range(f.ir->syms, sym_var_at(f.ir->syms, 0), &lo, &hi);
	assert_true(lo >= 0 && hi <= 50);
	Text t;
	text_init(&t, f.ctx->arena);
	ctx_print(f.ctx, &t);
	assert_string_equal(t.data ? t.data : "", ""); /* every guard was understood */
}

static void test_scan(void **state)
{
	(void)state;
	assert_int_equal(check("scan"), 0);
}

static void test_promote(void **state)
{
	(void)state;
	assert_int_equal(check("promote"), 0);
}

/* What torch.export writes seldom: tests/make/make_import_fixtures.py. */
static void test_seldom(void **state)
{
	static const char *const names[] = {
		"in_place_views", "writes",    "copies",  "memory",    "outputs", "numbers",
		"derived",        "weights",   "complex", "bodies",    "idle",    "calls",
		"items",          "fractions", "divided", "operators", "flags",   "tangle"};
	for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
		assert_int_equal(check(arena_printf(f.ctx->arena, "import/%s", names[k])), 0);
		teardown(state);
		setup(state);
	}
	assert_int_equal(check("import/norms"), 8);
	teardown(state);
	setup(state);
	assert_int_equal(check("import/half_norms"), 5);
	teardown(state);
	setup(state);
	assert_int_equal(check("import/observed"),
			 12); /* four buffers of each of three observers */
}

static void test_names_and_positions(void **state)
{
	(void)state;
	Graph *g = load("mlp");
	Node last = g->output.data[0].node;
	assert_string_equal(graph_name(g, last), "linear_1");
	assert_non_null(strstr(node_where(g, last), "linear.py:"));
	assert_string_equal(g->input.data[0].name, "x");
	assert_string_equal(g->output.data[0].name, "linear_1");
	assert_true(f.ir->constant.data[1].is_param);
}

static void test_same_twice(void **state)
{
	(void)state;
	Text a, b;
	text_init(&a, f.ctx->arena);
	text_init(&b, f.ctx->arena);
	graph_print(load("views"), &a);
	Ctx *other = ctx_new();
	Ir *ir = ir_new(other);
	graph_print(pt2_load(ir, TEST_DATA "/views.pt2", NULL), &b);
	assert_string_equal(a.data, b.data);
	ctx_free(other);
}

/* Every model of tests/data: the graph that it becomes, and what is said of it. */
static void test_imported(void **state)
{
	static const char *const names[] = {"batch_norm",
					    "batch_norm_decomposed",
					    "dynamic",
					    "guard_log",
					    "input_write",
					    "mlp",
					    "nested",
					    "nested_strict",
					    "promote",
					    "resize",
					    "scan",
					    "state",
					    "state_decomposed",
					    "tied",
					    "torchao",
					    "views",
					    "wrapped",
					    "control/branch",
					    "control/complex_branch",
					    "control/complex_loop",
					    "control/cond_in_while",
					    "control/newton",
					    "control/size_branch",
					    "control/size_closure",
					    "control/while_in_cond",
					    "control/while_in_while",
					    "control/refused/branch_unbounded",
					    "sizes/uneven",
					    "control/refused/loop_integer",
					    "import/in_place_views",
					    "import/writes",
					    "import/copies",
					    "import/memory",
					    "import/outputs",
					    "import/numbers",
					    "import/derived",
					    "import/norms",
					    "import/observed",
					    "import/weights",
					    "import/complex",
					    "import/bodies",
					    "import/idle",
					    "import/calls",
					    "import/half_norms",
					    "import/random",
					    "import/divided",
					    "import/items",
					    "import/fractions",
					    "import/operators",
					    "import/flags",
					    "import/tangle",
					    "import/overlaps_expand",
					    "import/overlaps_unfold",
					    "import/overlaps_as_strided"};
	Ctx *all = ctx_new();
	Text t;
	assert_int_equal(chdir(TEST_DATA), 0); /* messages begin with the path */
	text_init(&t, all->arena);
	for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
		teardown(state);
		assert_int_equal(setup(state), 0);
		text_printf(&t, "; ---- %s\n", names[k]);
		Graph *g = pt2_load(f.ir, arena_printf(f.ctx->arena, "%s.pt2", names[k]), NULL);
		ctx_print(f.ctx, &t);
		if (!g)
			continue;
		assert_true(graph_verify(g));
		graph_print(g, &t);
	}
	golden_check(TEST_DATA "/imported.txt", t.data);
	ctx_free(all);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(mlp),
		TEST(deflated),
		TEST(tied),
		TEST(views),
		TEST(resize),
		TEST(state),
		TEST(state_decomposed),
		TEST(caches),
		TEST(shared_state),
		TEST(tangled_state),
		TEST(lifted_state),
		TEST(persistent),
		TEST(statistics),
		TEST(written_parameters),
		TEST(decoder),
		TEST(input_write),
		TEST(batch_norm),
		TEST(batch_norm_decomposed),
		TEST(dynamic),
		TEST(scan),
		TEST(promote),
		TEST(seldom),
		TEST(names_and_positions),
		TEST(same_twice),
		TEST(imported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
