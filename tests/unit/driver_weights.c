/* Weights of files (weft_load_weights): values, dtypes, blocks, orders of rows, names, state; what
 * is refused, and what it leaves as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/weft_fixture.h"

enum { ROWS = 2, COLUMNS = 256 };

static WeftTensor tensor(void *data, uint8_t bits, int32_t rank, int64_t *shape)
{
	return (WeftTensor){.data = data,
			    .device = {WEFT_CPU, 0},
			    .ndim = rank,
			    .dtype = {WEFT_FLOAT, bits, 1},
			    .shape = shape};
}

/* Writes a file with weights w, of ROWS x COLUMNS numbers k * by, and b, of ROWS of 1, 2, ... */
static void write_file(const char *name, const char *weight, double by, bool wide)
{
	static float x[ROWS * COLUMNS], b[ROWS];
	static double wx[ROWS * COLUMNS];
	int64_t shape[] = {ROWS, COLUMNS}, flat[] = {ROWS};
	for (int k = 0; k < ROWS * COLUMNS; k++)
		wx[k] = x[k] = (float)(k * by);
	for (int k = 0; k < ROWS; k++)
		b[k] = (float)(1 + k);
	const WeftTensor t = wide ? tensor(wx, 64, 2, shape) : tensor(x, 32, 2, shape),
			 bias = tensor(b, 32, 1, flat);
	WeftTensors *all = weft_tensors_new(w);
	assert_true(weft_tensors_add(w, all, weight, &t) && weft_tensors_add(w, all, "b", &bias) &&
		    weft_tensors_write(w, all, path(name)));
}

/* Returns y = x @ w.T + b, or, if it is `state`, one that writes b. */
static WeftGraph *model(const char *weight, bool state)
{
	static float zeros[ROWS * COLUMNS];
	WeftTrace *t = weft_trace_new(w, "model");
	const WeftValue x = weft_trace_input(t, "x", "f32[1, 256]"),
			m = weft_trace_param(t, weight, "f32[2, 256]", zeros);
	const WeftValue b = state ? weft_trace_variable(t, "b", "f32[2]", zeros)
				  : weft_trace_param(t, "b", "f32[2]", zeros);
	const WeftValue y = weft_linear(t, x, m, b);
	weft_trace_output(t, "y", y);
	if (state)
		weft_trace_assign(t, b, weft_neg(t, b));
	WeftGraph *g = weft_trace_end(t);
	if (!g)
		fail_msg("%s", weft_messages(w));
	return g;
}

/* Returns y = x @ w.T. */
static WeftGraph *product(const char *weight)
{
	static float zeros[ROWS * COLUMNS];
	WeftTrace *t = weft_trace_new(w, "model");
	const WeftValue x = weft_trace_input(t, "x", "f32[1, 256]"),
			m = weft_trace_param(t, weight, "f32[2, 256]", zeros);
	weft_trace_output(t, "y", weft_linear(t, x, m, (WeftValue){0, 0}));
	return weft_trace_end(t);
}

static bool load(WeftGraph *g, const char *file, const char *names)
{
	const char *const files[] = {file};
	return weft_load_weights(w, g, files, 1, names);
}

/* Returns element `row` of the result for an x that is 0 but for a 1 at `column`. */
static float result(WeftGraph *g, int row, int column)
{
	static float x[COLUMNS];
	int64_t shape[] = {1, COLUMNS};
	const WeftTensor in = tensor(x, 32, 2, shape);
	WeftTensor out;
	memset(x, 0, sizeof x);
	x[column] = 1;
	if (!weft_interpret(w, g, &in, 1, &out))
		fail_msg("%s", weft_messages(w));
	return ((const float *)out.data)[row];
}

static void refuse(WeftGraph *g, const char *file, const char *names, const char *text)
{
	assert_false(load(g, file, names));
	if (!strstr(weft_messages(w), text))
		fail_msg("%s: not in: %s", text, weft_messages(w));
	assert_true(result(g, 0, 1) == 0); /* as before */
}

/* ---- tests ---- */

static void test_values(void **state)
{
	(void)state;
	static const char *const file[] = {"a.safetensors", "a.npz"};
	for (int k = 0; k < 4; k++) {
		WeftGraph *g = model("w", false);
		write_file(file[k % 2], "w", 0.5, k / 2);
		if (!load(g, path(file[k % 2]), NULL))
			fail_msg("%s", weft_messages(w));
		assert_true(result(g, 1, 3) == (COLUMNS + 3) * 0.5f + 2);
		weft_free(w); /* which writes over nothing that it has read */
		w = weft_new();
	}
}

/* Initial contents of state. */
static void test_state(void **state)
{
	(void)state;
	WeftGraph *g = model("w", true);
	write_file("a.safetensors", "w", 1, false);
	if (!load(g, path("a.safetensors"), NULL))
		fail_msg("%s", weft_messages(w));
	assert_true(result(g, 1, 3) == COLUMNS + 3 + 2);
}

static void test_missing(void **state)
{
	(void)state;
	WeftGraph *g = model("v", false);
	write_file("a.safetensors", "w", 1, false);
	refuse(g, path("a.safetensors"), NULL, "1 parameter of the model is not in it: v");
}

static void write_text(const char *name, const char *text)
{
	FILE *f = fopen(path(name), "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void test_names(void **state)
{
	(void)state;
	WeftGraph *g = model("layers.3.v", false);
	write_file("a.safetensors", "blk.3.w", 1, false);
	write_text("names.txt", "layers.*.v = blk.*.w\n");
	if (!load(g, path("a.safetensors"), path("names.txt")))
		fail_msg("%s", weft_messages(w));
	assert_true(result(g, 1, 3) == COLUMNS + 3 + 2);
	write_text("names.txt", "layers.*.v : blk.*.w\n");
	refuse(model("layers.3.v", false), path("a.safetensors"), path("names.txt"), "names.txt:1");
}

static void test_unused(void **state)
{
	(void)state;
	WeftGraph *g = model("w", false);
	write_file("a.safetensors", "w", 1, false);
	write_file("c.safetensors", "other", 1, false);
	write_text("names.txt", "");
	const char *const both[] = {path("a.safetensors"), path("c.safetensors")};
	assert_false(weft_load_weights(w, g, both, 2, NULL));
	assert_non_null(strstr(weft_messages(w), "weight b is in"));
	write_text("names.txt", "w = other\n");
	assert_true(load(g, path("c.safetensors"), path("names.txt")));
	assert_null(strstr(weft_messages(w), "of no parameter"));
}

static void test_shapes(void **state)
{
	(void)state;
	static float zeros[ROWS * COLUMNS];
	WeftTrace *t = weft_trace_new(w, "model");
	const WeftValue x = weft_trace_input(t, "x", "f32[1, 2]"),
			m = weft_trace_param(t, "w", "f32[256, 2]", zeros);
	weft_trace_output(t, "y", weft_linear(t, x, m, (WeftValue){0, 0}));
	WeftGraph *g = weft_trace_end(t);
	write_file("a.safetensors", "w", 1, false);
	assert_false(load(g, path("a.safetensors"), NULL));
	assert_non_null(strstr(weft_messages(w),
			       "weight w is f32[2, 256], expected f32[256, 2] of the model's w"));
}

static void test_index(void **state)
{
	(void)state;
	WeftGraph *g = model("w", false);
	write_file("a.safetensors", "w", 1, false);
	write_text("a.index.json", "{\"weight_map\": {\"w\": \"a.safetensors\", \"b\": "
				   "\"a.safetensors\"}}");
	if (!load(g, path("a.index.json"), NULL))
		fail_msg("%s", weft_messages(w));
	assert_true(result(g, 1, 3) == COLUMNS + 3 + 2);
	g = model("w", false);
	write_text("a.index.json", "{\"weight_map\": {\"w\": \"../a.safetensors\"}}");
	refuse(g, path("a.index.json"), NULL, "a file beside the index");
	write_text("a.index.json", "[]");
	refuse(g, path("a.index.json"), NULL, "no index of weights");
	write_text("a.index.json", "PK");
	refuse(g, path("none.safetensors"), NULL, "cannot open");
}

/* Every kind of blocks, by the graph, compiled or not; the file's own numbers are its oracle. */
static void test_blocks(void **state)
{
	(void)state;
	static const char *const kind[] = {"Q4_0",   "Q4_1",   "Q5_0", "Q5_1", "Q8_0",
					   "Q2_K",   "Q3_K",   "Q4_K", "Q5_K", "Q6_K",
					   "IQ4_NL", "IQ4_XS", "MXFP4"};
	WeftTensors *want = weft_tensors_read(w, TEST_DATA "/gguf/kinds.safetensors");
	assert_non_null(want);
	for (size_t k = 0; k < sizeof kind / sizeof *kind; k++) {
		const float *y = weft_tensors_find(want, kind[k])->data;
		WeftGraph *g = product(kind[k]);
		if (!load(g, TEST_DATA "/gguf/kinds.gguf", NULL))
			fail_msg("%s", weft_messages(w));
		assert_true(weft_rounds_activations(w, g));
		assert_true(weft_set_activations(w, g, WEFT_ACTIVATIONS_EXACT));
		assert_non_null(strstr(weft_messages(w), "14 weights are of no parameter"));
		for (int column = 0; column < COLUMNS; column += 51)
			for (int row = 0; row < ROWS; row++)
				assert_true(result(g, row, column) == y[row * COLUMNS + column]);
	}
}

/* A parameter in blocks is none any more: it has no gradient. */
static void test_no_gradient(void **state)
{
	(void)state;
	WeftGraph *g = product("Q4_K");
	const char *const by[] = {"Q4_K"}, *const of_x[] = {"x"};
	const WeftGradOptions o = {.size = sizeof o, .nwrt = 1, .wrt = by},
			      ok = {.size = sizeof ok, .nwrt = 1, .wrt = of_x};
	assert_true(load(g, TEST_DATA "/gguf/kinds.gguf", NULL));
	assert_null(weft_vjp(w, g, &o));
	assert_non_null(weft_vjp(w, g, &ok));
}

/* Rows of heads, whose halves are between each other in the file. */
static void test_heads(void **state)
{
	(void)state;
	enum { HEADS = 2, DIM = 6, ALL = HEADS * DIM };
	static float x[ALL];
	int64_t shape[] = {ALL, 1}, one[] = {1, 1};
	static float zeros[ALL], unit = 1;
	WeftTensor in = tensor(&unit, 32, 2, one), out;
	for (int h = 0; h < HEADS; h++)
		for (int i = 0; i < DIM; i++) /* the file's row 2 i + s is row i + s * DIM / 2 */
			x[h * DIM + i % (DIM / 2) * 2 + i / (DIM / 2)] = (float)(h * DIM + i);
	const WeftTensor q = tensor(x, 32, 2, shape);
	WeftTensors *all = weft_tensors_new(w);
	assert_true(weft_tensors_add(w, all, "q", &q) &&
		    weft_tensors_write(w, all, path("a.safetensors")));
	WeftTrace *t = weft_trace_new(w, "model");
	const WeftValue a = weft_trace_input(t, "x", "f32[1, 1]"),
			m = weft_trace_param(t, "q", "f32[12, 1]", zeros);
	weft_trace_output(t, "y", weft_linear(t, a, m, (WeftValue){0, 0}));
	WeftGraph *g = weft_trace_end(t);
	write_text("names.txt", "q = q heads=5\n");
	assert_false(load(g, path("a.safetensors"), path("names.txt")));
	assert_non_null(strstr(weft_messages(w), "its rows are no pairs of 5 heads"));
	write_text("names.txt", "q = q heads=2\n");
	assert_true(load(g, path("a.safetensors"), path("names.txt")));
	assert_true(weft_interpret(w, g, &in, 1, &out));
	for (int k = 0; k < ALL; k++)
		assert_true(((const float *)out.data)[k] == (float)k);
}

/* A safetensors file begins with the length of its index, whatever bytes that is. */
static void test_first_bytes(void **state)
{
	(void)state;
	for (uint32_t n = 8; n < 8 * 256; n += 8) { /* the very lengths */
		FILE *f = fopen(path("c.safetensors"), "wb");
		const uint64_t length = n;
		assert_non_null(f);
		fwrite(&length, 1, 8, f);
		fprintf(f, "%-*s", (int)n, "{}");
		fclose(f);
		assert_false(load(model("w", false), path("c.safetensors"), NULL));
		assert_null(strstr(weft_messages(w), "pickled"));
	}
}

/* Expects that outputs do not replace what was read. */
static void test_kept(void **state)
{
	(void)state;
	WeftGraph *g = model("w", false);
	write_file("a.safetensors", "w", 1, false);
	write_text("names.txt", "# none\n");
	assert_true(load(g, path("a.safetensors"), path("names.txt")));
	const WeftOptions o = {.size = sizeof o};
	assert_false(weft_emit(w, g, &o, WEFT_EMIT_IR, path("a.safetensors")));
	assert_non_null(strstr(weft_messages(w), "input"));
	assert_false(weft_emit(w, g, &o, WEFT_EMIT_IR, path("names.txt")));
	assert_int_equal(access(path("a.safetensors"), F_OK), 0);
}

static void test_again(void **state)
{
	(void)state;
	WeftGraph *g = product("Q4_K");
	assert_true(load(g, TEST_DATA "/gguf/kinds.gguf", NULL));
	assert_false(load(g, TEST_DATA "/gguf/kinds.gguf", NULL));
	assert_non_null(strstr(weft_messages(w), "in blocks of few bits already"));
	g = model("w", false);
	write_file("a.safetensors", "w", 1, false);
	assert_true(load(g, path("a.safetensors"), NULL) && load(g, path("a.safetensors"), NULL));
}

static void test_refused(void **state)
{
	(void)state;
	WeftGraph *g = model("w", false);
	write_text("names.txt", "\200\2}");
	refuse(g, path("names.txt"), NULL, "a pickled file of PyTorch");
	assert_false(weft_load_weights(w, g, NULL, 0, NULL));
	assert_false(weft_load_weights(w, NULL, NULL, 0, NULL));
	assert_true(weft_transform(w, g, "canon"));
	write_file("a.safetensors", "w", 1, false);
	refuse(g, path("a.safetensors"), NULL, "was transformed");
}

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	static const char *const names[] = {"a.safetensors", "c.safetensors", "a.npz", "names.txt",
					    "a.index.json"};
	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		unlink(path(names[k]));
	return rmdir(dir);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, make_weft, free_weft)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(values),  TEST(state),       TEST(missing), TEST(names),       TEST(unused),
		TEST(shapes),  TEST(index),       TEST(blocks),  TEST(no_gradient), TEST(heads),
		TEST(refused), TEST(first_bytes), TEST(kept),    TEST(again),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
