/* Operands rounded to 8 bits (weft_set_activations): the bits that docs/numerics.md defines,
 * computed here by loops, for sizes around those of blocks, groups, vectors and tiles; special
 * values; what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft_trace.h"

#include "weights_fixture.h"

enum { BLOCK = 32 };

/* ---- the definition ---- */

static float block_scale(const float *x, int64_t n)
{
	float most = 0;
	for (int64_t i = 0; i < n; i++) {
		if (!isfinite(x[i]))
			return NAN;
		most = fmaxf(most, fabsf(x[i]));
	}
	return most < 127 * 0x1p-126f ? 0 : most / 127;
}

static int64_t rounded(float x, float scale)
{
	return scale > 0 ? (int64_t)rintf(x * (1 / scale)) : 0;
}

/* Of bytes, as the operator of PyTorch has it: it wraps. */
static int difference(const Case *c, int w, int zero)
{
	return c->is_unsigned ? (uint8_t)(w - zero) : (int8_t)(w - zero);
}

static float sum_of_column(const Case *c, int64_t row, int64_t column, int64_t block)
{
	const float *x = c->x + row * c->terms;
	const int64_t groups = c->terms / c->group;
	float y = 0;
	for (int64_t first = 0; first < c->terms; first += block) {
		const int64_t n = c->terms - first < block ? c->terms - first : block;
		const int64_t g = column * groups + first / c->group;
		const float scale = block_scale(x + first, n);
		int64_t sum = 0, of_x = 0;
		for (int64_t i = first; i < first + n; i++) {
			const int64_t q = rounded(x[i], scale);
			sum += q * difference(c, c->w[column * c->terms + i], c->zero[g]);
			of_x += q;
		}
		const float by = scale * c->scale[g], all = (float)of_x * scale;
		if (!c->offsets)
			y = fmaf((float)sum, by, y);
		else
			y += fmaf((float)sum, by,
				  (c->offsets == OFFSET_LESS ? -all : all) * c->offset[g]);
	}
	return y;
}

static void define(Case *c)
{
	int64_t block = BLOCK;
	while (c->group != c->terms && c->group % block)
		block /= 2;
	const int64_t outer = c->outer ? c->outer : 1, inner = c->rows / outer;
	for (int64_t i = 0; i < c->rows; i++)
		for (int64_t j = 0; j < c->columns; j++)
			c->want[i * c->columns + j] =
				sum_of_column(c, i % outer * inner + i / outer, j, block);
}

/* ---- the model ---- */

static WeftGraph *model(Weft *w, const Case *c, bool symbolic)
{
	WeftGraph *g = weights_model(w, c, symbolic);
	if (!weft_set_activations(w, g, WEFT_ACTIVATIONS_INT8))
		fail_msg("%s", weft_messages(w));
	return g;
}

static void compare(const Case *c, const float *y, const char *who)
{
	for (int64_t i = 0; i < c->rows * c->columns; i++)
		if (memcmp(&y[i], &c->want[i], sizeof *y) && !(isnan(y[i]) && isnan(c->want[i])))
			fail_msg("%s, %lld x %lld x %lld, groups of %lld: element %lld is %a, "
				 "expected %a",
				 who, (long long)c->rows, (long long)c->terms,
				 (long long)c->columns, (long long)c->group, (long long)i, y[i],
				 c->want[i]);
}

static void run(Weft *w, const WeftModel *m, const Case *c, const char *who)
{
	static float y[MOST_ROWS * MOST_COLUMNS];
	weights_run(w, m, c, c->rows, y, who);
	compare(c, y, who);
}

/* Runs the model by fragments of AMX, as for a machine on which other instructions are slow. */
static void run_fragments(Weft *w, const WeftGraph *g, const Case *c)
{
	WeftOptions o = {.size = sizeof o,
			 .target = "x86-64-v4+amx",
			 .tune = TEST_DATA "/machines/slow_dots.json"};
	run(w, weft_loops(w, g, &o), c, "fragments, loops");
	o.target = NULL;
	if (weft_has_llvm())
		run(w, weft_jit(w, g, &o), c, "fragments, jit");
}

/* Runs the model by the interpreter of loop IR, as for several instruction sets. */
static void run_loops(Weft *w, const WeftGraph *g, const Case *c)
{
	/* without fused multiply-add the bits are others */
	const char *const level[] = {"x86-64-v3", "x86-64-v4", "x86-64-v4+vnni"};
	for (uint32_t k = 0; k < sizeof level / sizeof *level; k++) {
		const WeftOptions o = {.size = sizeof o, .target = level[k]};
		run(w, weft_loops(w, g, &o), c, level[k]);
	}
}

/* loops: by the interpreter of loop IR, which is slow, too. */
static void check(Case *c, bool symbolic, bool loops)
{
	Weft *w = weft_new();
	WeftGraph *g = model(w, c, symbolic);
	define(c);
	if (loops)
		run_loops(w, g, c);
	if (weft_has_llvm())
		run(w, weft_jit(w, g, NULL), c, "jit");
	weft_free(w);
}

/* ---- tests ---- */

static Case it;

/* Sizes around those of groups of instructions, blocks, vectors, panels and tiles. */
static void test_sizes(void **state)
{
	(void)state;
	static const int64_t terms[] = {1, 2, 3, 5, 31, 32, 33, 63, 64, 65, 70, 96, 129},
			     columns[] = {1, 2, 7, 8, 15, 16, 17, 33, 64, 80},
			     rows[] = {1, 2, 5, 13};
	uint32_t n = 0;
	for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
		for (size_t j = 0; j < sizeof columns / sizeof *columns; j++, n++) {
			it = (Case){.rows = rows[n % 4],
				    .terms = terms[i],
				    .columns = columns[j],
				    .group = terms[i],
				    .is_unsigned = n % 3 == 0,
				    .has_zero = n % 2,
				    .least = n % 3 ? -128 : 0,
				    .most = n % 3 ? 127 : 255};
			if (n % 5 < 2) { /* of 4 bits */
				it.least = it.is_unsigned ? 0 : -8;
				it.most = it.least + 15;
			}
			fill(&it, n);
			check(&it, n % 7 == 0, n % 4 == 0);
		}
}

static void test_groups(void **state)
{
	(void)state;
	static const int64_t group[] = {8, 16, 32, 48, 64, 96, 128};
	uint32_t n = 100;
	for (size_t i = 0; i < sizeof group / sizeof *group; i++)
		for (uint32_t bits = 4; bits <= 8; bits += 4, n++) {
			it = (Case){.rows = 1 + n % 9,
				    .terms = 3 * group[i],
				    .columns = 1 + n % 79,
				    .group = group[i],
				    .has_zero = n % 3 == 0,
				    .least = bits == 4 ? -8 : -128,
				    .most = bits == 4 ? 7 : 127};
			fill(&it, n);
			check(&it, n % 2, true);
		}
}

/* Groups with an offset, which may be whole columns; of two groups, scales with a unit. Integers
 * from 0 on are stored in i8, too. */
static void test_offsets(void **state)
{
	(void)state;
	static const int64_t group[] = {8, 16, 32, 64, 96};
	uint32_t n = 200;
	for (size_t i = 0; i < sizeof group / sizeof *group; i++)
		for (uint32_t k = 0; k < 6; k++, n++) {
			it = (Case){.rows = 1 + n % 9,
				    .terms = (1 + n % 3) * group[i],
				    .columns = 1 + n % 79,
				    .group = group[i],
				    .has_zero = n % 3 == 0,
				    .units = n % 3 == 1,
				    .offsets = n % 2 ? OFFSET_LESS : OFFSET_MORE,
				    .least = k % 3 ? 0 : -128,
				    .most = k % 3 == 1 ? 15
					    : k % 3    ? 31
						       : 127};
			fill(&it, n);
			check(&it, k % 2, true);
		}
}

/* Weights that have the values of a table (of IQ4_NL and of MXFP4, doubled), for every instruction
 * set: with bytes of all magnitudes, and with bytes that i8 holds, too. */
static void test_tables(void **state)
{
	(void)state;
	static const int8_t table[2][16] = {
		{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113},
		{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}};
	static const int64_t rows[] = {1, 4, 5, 13, 33, 64};
	for (uint32_t n = 0; n < 12; n++) {
		it = (Case){.rows = rows[n / 2],
			    .terms = n % 3 ? 128 : 100,
			    .columns = 16 + 5 * n,
			    .group = n % 3 ? 32 : 100,
			    .least = 0,
			    .most = 15};
		fill(&it, 500 + n);
		for (int64_t i = 0; i < it.terms * it.columns; i++)
			it.w[i] = table[n % 2][it.w[i]];
		it.least = -128;
		it.most = 127;
		check(&it, n % 4 == 0, n < 8);
		if (n < 8)
			continue;
		Weft *w = weft_new();
		run_fragments(w, model(w, &it, false), &it);
		weft_free(w);
	}
}

/* Products with weights of GGUF files that are tables: near what the interpreter of graphs gives,
 * which adds in another order, and of the same bits by every instruction set. */
static void test_tables_of_files(void **state)
{
	(void)state;
	static const char *const kind[] = {"IQ4_NL", "IQ4_XS", "MXFP4"},
				 *const files[] = {TEST_DATA "/gguf/kinds.gguf"};
	static float zeros[2 * 256];
	for (uint32_t k = 0; k < sizeof kind / sizeof *kind; k++) {
		Weft *w = weft_new();
		it = (Case){.rows = 5, .terms = 256, .columns = 2, .group = 32, .most = 1};
		fill(&it, 600 + k);
		WeftTrace *t = weft_trace_new(w, kind[k]);
		const WeftValue x = weft_trace_input(t, "x", "f32[5, 256]"),
				m = weft_trace_param(t, kind[k], "f32[2, 256]", zeros);
		weft_trace_output(t, "y", weft_linear(t, x, m, (WeftValue){0, 0}));
		WeftGraph *g = weft_trace_end(t);
		int64_t shape[2] = {it.rows, it.terms};
		const WeftTensor in = tensor(it.x, shape);
		WeftTensor out;
		if (!weft_load_weights(w, g, files, 1, NULL) || !weft_interpret(w, g, &in, 1, &out))
			fail_msg("%s", weft_messages(w));
		assert_true(weft_rounds_activations(w, g));
		const WeftOptions o = {.size = sizeof o, .target = "x86-64-v4+vnni"};
		weights_run(w, weft_loops(w, g, &o), &it, it.rows, it.want, kind[k]);
		for (int64_t i = 0; i < it.rows * it.columns; i++) {
			const float y = ((const float *)out.data)[i];
			assert_true(y != 0 && fabsf(y - it.want[i]) < 1e-4f * fabsf(y));
		}
		run_loops(w, g, &it);
		if (weft_has_llvm())
			run(w, weft_jit(w, g, NULL), &it, kind[k]);
		weft_free(w);
	}
}

/* Rows of one fragment and of several, which overlap where they are no multiple; columns that no
 * tile divides; blocks of 8 to 32 terms, of which the last one may be shorter. */
static void test_fragments(void **state)
{
	(void)state;
	static const int64_t rows[] = {1, 5, 16, 21, 32, 33, 48, 70}, group[] = {8, 16, 32, 96, 0},
			     columns[] = {16, 31, 64, 79};
	for (uint32_t n = 0; n < 60; n++) {
		const int64_t of = group[n % 5];
		it = (Case){.rows = rows[n % 8],
			    .terms = of ? 4 * of : 100 + 31 * n % 300,
			    .columns = columns[n % 4],
			    .outer = rows[n % 8] % 3 ? 0 : 3,
			    .is_unsigned = n % 7 == 0,
			    .has_zero = n % 3 == 0,
			    .offsets = n % 7 == 3 ? OFFSET_LESS : OFFSET_NONE,
			    .least = n % 2 ? -8 : -128,
			    .most = n % 2 ? 7 : 127};
		it.group = of ? of : it.terms;
		if (it.is_unsigned) {
			it.most -= it.least;
			it.least = 0;
		}
		fill(&it, 300 + n);
		Weft *w = weft_new();
		define(&it);
		run_fragments(w, model(w, &it, false), &it);
		weft_free(w);
	}
}

/* Rows of many tiles of vectors, which share bytes of halves: rows of one axis and of two, with a
 * number of each row or of each column in sums of blocks. */
static void test_many_rows(void **state)
{
	(void)state;
	static const int64_t rows[] = {32, 33, 48, 66, 70}, group[] = {8, 16, 32, 96, 0};
	for (uint32_t n = 0; n < 30; n++) {
		const int64_t of = group[n % 5];
		it = (Case){.rows = rows[n / 2 % 5],
			    .terms = of ? (1 + n % 4) * of : 33 + 61 * n % 300,
			    .columns = 17 + 13 * n % 63,
			    .outer = n % 3 || rows[n / 2 % 5] % 3 ? 0 : 3,
			    .has_zero = n % 4 == 0,
			    .offsets = n % 7 == 3 ? OFFSET_LESS : OFFSET_NONE,
			    .least = n % 2 ? -8 : -128,
			    .most = n % 2 ? 7 : 127};
		it.group = of ? of : it.terms;
		fill(&it, 700 + n);
		check(&it, n % 4 == 1 && it.rows <= 64, n % 10 == 1);
	}
}

/* A symbolic number of rows: code that is made for many rows is run for few, and for none. */
static void test_few_of_many_rows(void **state)
{
	(void)state;
	static const int64_t rows[] = {0, 1, 7, 8, 9, 24, 25, 31, 32, 33, 64};
	static float y[MOST_ROWS * MOST_COLUMNS];
	for (uint32_t n = 0; n < 4 && weft_has_llvm(); n++) {
		it = (Case){.rows = 64,
			    .terms = n < 2 ? 96 : 100,
			    .columns = 33 + n,
			    .group = n < 2 ? 32 : 100,
			    .has_zero = n % 2,
			    .least = -8,
			    .most = 7};
		fill(&it, 900 + n);
		Weft *w = weft_new();
		WeftGraph *g = model(w, &it, true);
		define(&it);
		const WeftModel *m = weft_jit(w, g, NULL);
		for (uint32_t k = 0; k < sizeof rows / sizeof *rows; k++) {
			weights_run(w, m, &it, rows[k], y, "few of many");
			it.rows = rows[k];
			compare(&it, y, "few of many");
		}
		weft_free(w);
	}
}

/* Many rows and chains of blocks: the bits of another instruction set. */
static void test_chains_of_many_rows(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < 3 && weft_has_llvm(); n++) {
		it = (Case){.rows = 34 - n,
			    .terms = 3200,
			    .columns = 20,
			    .group = 8,
			    .has_zero = n == 2,
			    .least = n ? -8 : -128,
			    .most = n ? 7 : 127};
		fill(&it, 800 + n);
		Weft *w = weft_new();
		WeftGraph *g = model(w, &it, false);
		const WeftOptions o = {.size = sizeof o, .target = "x86-64-v3"};
		weights_run(w, weft_jit(w, g, &o), &it, it.rows, it.want, "v3");
		run(w, weft_jit(w, g, NULL), &it, "chains");
		weft_free(w);
	}
}

/* Sums of so many blocks that they are chains, and columns of which a local array holds one
 * vector: as by dot products. */
static void test_long_fragments(void **state)
{
	(void)state;
	static const int64_t terms[] = {4160, 8192, 8224, 12352};
	for (uint32_t n = 0; n < 8; n++) {
		it = (Case){.rows = 2,
			    .terms = terms[n / 2],
			    .columns = 2,
			    .group = terms[n / 2],
			    .least = n % 2 ? -8 : -128,
			    .most = n % 2 ? 7 : 127};
		fill(&it, 400 + n);
		Weft *w = weft_new();
		WeftGraph *g = model(w, &it, false);
		const WeftOptions o = {.size = sizeof o, .target = "x86-64-v4+vnni"};
		weights_run(w, weft_loops(w, g, &o), &it, it.rows, it.want, "dot products");
		run_fragments(w, g, &it);
		weft_free(w);
	}
}

/* A block with what no scale fits leaves the other rows as they are. */
static void test_special_values(void **state)
{
	(void)state;
	static const float special[] = {NAN,
					INFINITY,
					-INFINITY,
					0,
					0x1p-149f,
					0x1p-126f,
					126 * 0x1p-126f,
					127 * 0x1p-126f,
					3.4028234663852886e38f};
	it = (Case){.rows = 9, .terms = 96, .columns = 20, .group = 32, .least = -8, .most = 7};
	fill(&it, 7);
	for (int64_t r = 0; r < it.rows; r++) {
		if (special[r] == 0 || fabsf(special[r]) < 1)
			memset(it.x + r * 96 + 32, 0, 32 * sizeof *it.x);
		it.x[r * 96 + 40] = special[r];
	}
	check(&it, false, true);
	assert_true(isnan(it.want[0]) && isnan(it.want[20]) && !isnan(it.want[60]));
}

enum { ROWS = 3, TERMS = 128, COLUMNS = 20, GROUP = 32, GROUPS = TERMS / GROUP };

/* Returns a product with weights that the model takes out of bytes, com.microsoft's MatMulNBits, of
 * `it`, whose definition is computed. */
static WeftGraph *packed(Weft *w, int accuracy_level)
{
	static uint8_t bytes[COLUMNS * TERMS / 2];
	it = (Case){.rows = ROWS,
		    .terms = TERMS,
		    .columns = COLUMNS,
		    .group = GROUP,
		    .least = 0,
		    .most = 15};
	fill(&it, 3);
	for (int i = 0; i < COLUMNS * TERMS / 2; i++)
		bytes[i] = (uint8_t)(it.w[2 * i] | it.w[2 * i + 1] << 4);
	for (int i = 0; i < COLUMNS * GROUPS; i++)
		it.zero[i] = 8; /* where none is given */
	define(&it);
	WeftTrace *t = weft_trace_new(w, "packed");
	const WeftValue x = weft_trace_input(t, "x", "f32[3, 128]"),
			b = weft_trace_param(t, "b", "u8[20, 4, 16]", bytes),
			s = weft_trace_param(t, "s", "f32[20, 4]", it.scale);
	const WeftArg args[] = {weft_arg(x),
				weft_arg(b),
				weft_arg(s),
				weft_arg_none(),
				weft_arg_none(),
				weft_arg_none(),
				weft_arg_named("K", weft_arg_int(TERMS)),
				weft_arg_named("N", weft_arg_int(COLUMNS)),
				weft_arg_named("bits", weft_arg_int(4)),
				weft_arg_named("block_size", weft_arg_int(GROUP)),
				weft_arg_named("accuracy_level", weft_arg_int(accuracy_level))};
	weft_trace_output(t, "y", weft_trace_call(t, "com_microsoft.MatMulNBits.1", args, 11));
	WeftGraph *g = weft_trace_end(t);
	if (!g)
		fail_msg("%s", weft_messages(w));
	return g;
}

static void test_packed(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g = packed(w, 0);
	assert_false(weft_rounds_activations(w, g));
	if (!weft_set_activations(w, g, WEFT_ACTIVATIONS_INT8))
		fail_msg("%s", weft_messages(w));
	assert_true(weft_rounds_activations(w, g));
	const WeftOptions o = {.size = sizeof o, .target = "x86-64-v3"};
	run(w, weft_loops(w, g, &o), &it, "packed");
	weft_free(w);
}

/* ---- what the model says ---- */

static double exact_sum(int row, int column)
{
	double y = 0;
	for (int i = 0; i < TERMS; i++)
		y += (double)it.x[row * TERMS + i] * (it.w[column * TERMS + i] - 8) *
		     it.scale[column * GROUPS + i / GROUP];
	return y;
}

/* Returns the largest difference from the exact products by that of the definition. */
static double error_of(const float *y)
{
	double worst = 0, defined = 0;
	for (int i = 0; i < ROWS * COLUMNS; i++) {
		const double exact = exact_sum(i / COLUMNS, i % COLUMNS);
		worst = fmax(worst, fabs(y[i] - exact));
		defined = fmax(defined, fabs(it.want[i] - exact));
	}
	return worst / defined;
}

static void compute(Weft *w, WeftGraph *g, bool interp, float *y)
{
	int64_t shape[2] = {ROWS, TERMS};
	const WeftTensor in = tensor(it.x, shape);
	WeftTensor out;
	const WeftOptions o = {.size = sizeof o, .target = "x86-64-v4"};
	if (!interp) {
		weights_run(w, weft_loops(w, g, &o), &it, ROWS, y, "stated");
		return;
	}
	if (!weft_interpret(w, g, &in, 1, &out))
		fail_msg("%s", weft_messages(w));
	memcpy(y, out.data, ROWS * COLUMNS * sizeof *y);
}

/* accuracy_level 4 lets the product round its operand, any other number does not. */
static void test_stated(void **state)
{
	(void)state;
	static float y[ROWS * COLUMNS];
	for (int level = 0; level <= 4; level++)
		for (int interp = 0; interp < 2; interp++) {
			Weft *w = weft_new();
			WeftGraph *g = packed(w, level);
			assert_int_equal(weft_rounds_activations(w, g), level == 4);
			compute(w, g, interp, y);
			if (level == 4 && !interp)
				compare(&it, y, "stated");
			assert_true(level == 4 ? fabs(error_of(y) - 1) < 1e-3 : error_of(y) < 1e-3);
			if (!weft_set_activations(w, g, WEFT_ACTIVATIONS_EXACT))
				fail_msg("%s", weft_messages(w));
			assert_false(weft_rounds_activations(w, g));
			compute(w, g, interp, y);
			assert_true(error_of(y) < 1e-3);
			weft_free(w);
		}
}

/* A graph with derivatives has neither rounded products nor derivatives of what rounding gave. */
static void test_stated_derivative(void **state)
{
	(void)state;
	static float y[ROWS * COLUMNS], ones[ROWS * COLUMNS];
	Weft *w = weft_new();
	WeftGraph *g = packed(w, 4);
	const char *const by[] = {"x"};
	const WeftGradOptions o = {.size = sizeof o, .nwrt = 1, .wrt = by};
	WeftGraph *joint = weft_vjp(w, g, &o);
	assert_non_null(joint);
	assert_non_null(strstr(weft_messages(w), "are exact in the graph with derivatives"));
	assert_false(weft_rounds_activations(w, joint));
	for (int i = 0; i < ROWS * COLUMNS; i++)
		ones[i] = 1;
	int64_t shape[2] = {ROWS, TERMS}, result[2] = {ROWS, COLUMNS};
	const WeftTensor in[2] = {tensor(it.x, shape), tensor(ones, result)};
	WeftTensor out[2];
	if (!weft_interpret(w, joint, in, 2, out))
		fail_msg("%s", weft_messages(w));
	memcpy(y, out[0].data, sizeof y);
	assert_true(error_of(y) < 1e-3);
	for (int i = 0; i < TERMS; i++) {
		double sum = 0, got = ((const float *)out[1].data)[i];
		for (int j = 0; j < COLUMNS; j++)
			sum += (it.w[j * TERMS + i] - 8) * (double)it.scale[j * GROUPS + i / GROUP];
		assert_true(fabs(got - sum) < 1e-4 * (1 + fabs(sum)));
	}
	/* the graph that was derived is as it was */
	compute(w, g, true, y);
	assert_true(fabs(error_of(y) - 1) < 1e-3);
	weft_free(w);
}

/* A batch of such products is rounded, too: it has more rows. */
static void test_stated_batch(void **state)
{
	(void)state;
	static float y[ROWS * COLUMNS];
	Weft *w = weft_new();
	WeftGraph *g = packed(w, 4), *v = weft_vmap(w, g, NULL);
	assert_non_null(v);
	assert_true(weft_rounds_activations(w, v));
	int64_t shape[3] = {1, ROWS, TERMS};
	WeftTensor in = tensor(it.x, shape), out;
	in.ndim = 3;
	if (!weft_interpret(w, v, &in, 1, &out))
		fail_msg("%s", weft_messages(w));
	memcpy(y, out.data, sizeof y);
	assert_true(fabs(error_of(y) - 1) < 1e-3);
	weft_free(w);
}

/* Zero points that are no bytes might let sums of a block overflow: such products stay floats. */
static void test_large_zero_points(void **state)
{
	(void)state;
	static float q[64 * 8], scale[8], y[8];
	static const int32_t point[8] = {600000, 600001, 600002, 600003,
					 600004, 600005, 600006, 600007};
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "large");
	for (int i = 0; i < 64 * 8; i++)
		q[i] = (float)(i % 7);
	for (int i = 0; i < 8; i++)
		scale[i] = 0.5f;
	int8_t bytes[64 * 8];
	for (int i = 0; i < 64 * 8; i++)
		bytes[i] = (int8_t)q[i];
	it = (Case){.rows = 1, .terms = 64, .columns = 8, .group = 64};
	for (int i = 0; i < 64; i++)
		it.x[i] = 1 + (float)(i % 3) / 128;
	for (int c = 0; c < 8; c++) {
		double sum = 0;
		for (int i = 0; i < 64; i++)
			sum += (double)it.x[i] * (q[i * 8 + c] - (double)point[c]) * scale[c];
		y[c] = (float)sum;
	}
	const WeftValue x = weft_trace_input(t, "x", "f32[1, 64]");
	const WeftArg narrow[] = {weft_arg(weft_trace_param(t, "q", "i8[64, 8]", bytes)),
				  weft_arg_named("dtype", weft_arg_text("i32"))};
	const WeftValue whole = weft_trace_call(t, "aten._to_copy", narrow, 2);
	const WeftValue less = weft_sub(t, whole, weft_trace_param(t, "z", "i32[8]", point));
	const WeftArg wide[] = {weft_arg(less), weft_arg_named("dtype", weft_arg_text("f32"))};
	const WeftValue weights = weft_mul(t, weft_trace_call(t, "aten._to_copy", wide, 2),
					   weft_trace_param(t, "s", "f32[8]", scale));
	weft_trace_output(t, "y", weft_matmul(t, x, weights));
	WeftGraph *g = weft_trace_end(t);
	if (!g || !weft_set_activations(w, g, WEFT_ACTIVATIONS_INT8))
		fail_msg("%s", weft_messages(w));
	int64_t shape[2] = {1, 64};
	const WeftTensor in = tensor(it.x, shape);
	WeftTensor out;
	if (!weft_interpret(w, g, &in, 1, &out))
		fail_msg("%s", weft_messages(w));
	for (int c = 0; c < 8; c++)
		assert_true(fabsf(((const float *)out.data)[c] - y[c]) < 1e-5f * fabsf(y[c]));
	weft_free(w);
}

static void test_refused(void **state)
{
	(void)state;
	Weft *w = weft_new();
	it = (Case){.rows = 2, .terms = 32, .columns = 4, .group = 32, .least = -8, .most = 7};
	fill(&it, 1);
	WeftGraph *g = model(w, &it, false);
	const char *const by[] = {"x"};
	const WeftGradOptions o = {.size = sizeof o, .nwrt = 1, .wrt = by};
	assert_null(weft_vjp(w, g, &o));
	assert_non_null(strstr(weft_messages(w), "has no derivative"));
	assert_false(weft_set_activations(w, g, (WeftActivations)3));
	const WeftOptions gpu = {.size = sizeof gpu, .target = "gpu-model"};
	assert_null(weft_loops(w, g, &gpu));
	assert_non_null(strstr(weft_messages(w), "gpu-model is a GPU"));
	weft_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes),
					   cmocka_unit_test(test_groups),
					   cmocka_unit_test(test_offsets),
					   cmocka_unit_test(test_tables),
					   cmocka_unit_test(test_tables_of_files),
					   cmocka_unit_test(test_fragments),
					   cmocka_unit_test(test_many_rows),
					   cmocka_unit_test(test_few_of_many_rows),
					   cmocka_unit_test(test_chains_of_many_rows),
					   cmocka_unit_test(test_long_fragments),
					   cmocka_unit_test(test_special_values),
					   cmocka_unit_test(test_packed),
					   cmocka_unit_test(test_stated),
					   cmocka_unit_test(test_stated_derivative),
					   cmocka_unit_test(test_stated_batch),
					   cmocka_unit_test(test_large_zero_points),
					   cmocka_unit_test(test_refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
