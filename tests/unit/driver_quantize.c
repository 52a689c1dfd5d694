/* Weights of few bits (weft_quantize): their values, by formulas that are written here again;
 * which weights, and why others are none; rules, data, files; compiled code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "weft_call.h"
#include "tests/unit/weft_fixture.h"

enum { MOST_K = 128, MOST_N = 8, ROWS = 5 };

static uint32_t draw(uint32_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 17;
	*s ^= *s << 5;
	return *s;
}

static float uniform(uint32_t *s)
{
	return (float)(draw(s) >> 8) * 0x1p-23f - 1;
}

/* ---- models ---- */

static float weight[MOST_N * MOST_K];

/* Fills in rows of different magnitudes; row 1 is zero, row 2 constant. */
static void fill(int64_t n, int64_t k, uint32_t seed)
{
	uint32_t s = seed * 2654435761u + 1;
	for (int64_t i = 0; i < n * k; i++) {
		const int64_t row = i / k;
		weight[i] = row == 1   ? 0
			    : row == 2 ? -0.75f
				       : uniform(&s) * ldexpf(1, (int)row - 3) * uniform(&s);
	}
}

static WeftGraph *ended(WeftTrace *t)
{
	WeftGraph *g = weft_trace_end(t);
	if (!g)
		fail_msg("%s", weft_messages(w));
	return g;
}

static const char *type(const char *dtype, int64_t a, int64_t b)
{
	static char text[4][64];
	static unsigned next;
	char *out = text[next++ % 4];
	snprintf(out, sizeof text[0], "%s[%lld, %lld]", dtype, (long long)a, (long long)b);
	return out;
}

/* Returns y = x @ w.T of x[rows, k] and w[n, k]; turned: x @ w of w[k, n], which has the same
 * numbers in another order. */
static WeftGraph *product(int64_t rows, int64_t n, int64_t k, bool turned)
{
	static float other[MOST_N * MOST_K];
	for (int64_t i = 0; i < n * k; i++)
		other[i % k * n + i / k] = weight[i];
	WeftTrace *t = weft_trace_new(w, "product");
	const WeftValue x = weft_trace_input(t, "x", type("f32", rows, k));
	if (turned)
		weft_trace_output(
			t, "y",
			weft_matmul(t, x,
				    weft_trace_param(t, "fc.weight", type("f32", k, n), other)));
	else
		weft_trace_output(
			t, "y",
			weft_linear(t, x,
				    weft_trace_param(t, "fc.weight", type("f32", n, k), weight),
				    (WeftValue){0, 0}));
	return ended(t);
}

static WeftTensor floats(float *data, int32_t rank, int64_t *shape)
{
	return weft_tensor(data, WEFT_F32, rank, shape);
}

static void quantised(WeftGraph *g, const WeftQuantizeOptions *o)
{
	WeftQuantizeOptions own = *o;
	own.size = sizeof own;
	if (!weft_quantize(w, g, &own))
		fail_msg("%s", weft_messages(w));
}

static void refused(WeftGraph *g, const WeftQuantizeOptions *o, const char *text)
{
	WeftQuantizeOptions own = *o;
	own.size = own.size ? own.size : sizeof own;
	assert_false(weft_quantize(w, g, &own));
	assert_null(weft_quantize_report(w));
	if (!strstr(weft_messages(w), text))
		fail_msg("%s: not in: %s", text, weft_messages(w));
}

/* Sets out[n * k] to the numbers that the weight of product(k, n, k, ...) stands for, by the
 * interpreter: the products with the rows of the identity. */
static void numbers_of(WeftGraph *g, int64_t n, int64_t k, float *out)
{
	static float one[MOST_K * MOST_K];
	int64_t shape[] = {k, k};
	WeftTensor x = floats(one, 2, shape), y;
	memset(one, 0, sizeof one);
	for (int64_t i = 0; i < k; i++)
		one[i * k + i] = 1;
	if (!weft_interpret(w, g, &x, 1, &y))
		fail_msg("%s", weft_messages(w));
	for (int64_t i = 0; i < n * k; i++)
		out[i] = ((const float *)y.data)[i % k * n + i / k];
	weft_release(w);
}

/* ---- values ---- */

/* For rows of 2 to 70 terms, in both orders: rint(w / s) * s, s = greatest / 127. */
static void test_int8(void **state)
{
	(void)state;
	static float got[MOST_N * MOST_K];
	for (int64_t k = 2; k <= 70; k++) {
		fill(ROWS, k, (uint32_t)k);
		WeftGraph *g = product(k, ROWS, k, k % 2);
		quantised(g, &(WeftQuantizeOptions){.jobs = (uint32_t)(1 + k % 3)});
		const WeftQuantizedWeight *r = &weft_quantize_report(w)->weight[0];
		assert_string_equal(r->kind, "int8");
		assert_string_equal(r->why, "");
		assert_int_equal(r->bytes, ROWS * (k + 4));
		numbers_of(g, ROWS, k, got);
		for (int64_t row = 0; row < ROWS; row++) {
			const float *x = weight + row * k;
			float most = 0;
			for (int64_t i = 0; i < k; i++)
				most = fmaxf(most, fabsf(x[i]));
			const float s = most / 127;
			for (int64_t i = 0; i < k; i++) {
				const float want = s > 0 ? rintf(x[i] / s) * s : 0;
				if (got[row * k + i] != want)
					fail_msg("%lld terms, row %lld: %g, expected %g",
						 (long long)k, (long long)row,
						 (double)got[row * k + i], (double)want);
			}
		}
	}
}

/* The error of a group if its scale puts the greatest magnitude at 7: what anybody would do. */
static double simple_error(const float *x, int64_t n, bool zero)
{
	float low = 0, high = 0;
	double sum = 0;
	for (int64_t i = 0; i < n; i++) {
		low = fminf(low, x[i]);
		high = fmaxf(high, x[i]);
	}
	const float s = zero ? (high - low) / 15 : fmaxf(high, -low) / 7;
	const float z = zero && s > 0 ? rintf(-low / s) : 8;
	for (int64_t i = 0; i < n; i++) {
		const float q = s > 0 ? fminf(fmaxf(rintf(x[i] / s) + z, 0), 15) - z : 0;
		sum += pow((double)(x[i] - q * s), 2);
	}
	return sum;
}

/* Of 4 bits: each group has at most 16 numbers in equal distances, which f16 holds, and is nearer
 * to the weight than the simple rounding is, but for the rounding of the scale to f16. */
static void check_groups(const float *got, int64_t n, int64_t k, int64_t group, bool zero)
{
	for (int64_t at = 0; at < n * k; at += group) {
		float step = INFINITY;
		double error = 0;
		for (int64_t i = 0; i < group; i++) {
			error += pow((double)(weight[at + i] - got[at + i]), 2);
			for (int64_t j = 0; j < i; j++) {
				const float d = fabsf(got[at + i] - got[at + j]);
				step = d > 0 && d < step ? d : step;
			}
		}
		const double simple = simple_error(weight + at, group, zero);
		double great = 0;
		for (int64_t i = 0; i < group; i++)
			great = fmax(great, fabs((double)weight[at + i]));
		if (error > simple * 1.02 + (double)group * pow(great * 0x1p-11, 2))
			fail_msg("group at %lld: error %g, simply %g", (long long)at, error,
				 simple);
		for (int64_t i = 0; i < group && isfinite(step); i++) {
			const double steps = (double)((got[at + i] - got[at]) / step);
			assert_true(fabs(steps - rint(steps)) < 1e-3 && fabs(steps) <= 15);
		}
	}
}

static void test_int4(void **state)
{
	(void)state;
	static float got[MOST_N * MOST_K];
	for (int c = 0; c < 12; c++) {
		const bool turned = c & 1, zero = c >> 1 & 1;
		const int64_t group = 32 << c / 4, k = group < 128 ? 2 * group : group;
		fill(ROWS, k, (uint32_t)c + 100);
		if (zero)
			for (int64_t i = 0; i < ROWS * k; i++)
				weight[i] += 0.25f;
		WeftGraph *g = product(k, ROWS, k, turned);
		quantised(g, &(WeftQuantizeOptions){.weights = WEFT_WEIGHT_INT4,
						    .group = (uint32_t)group,
						    .zero_points = zero});
		const WeftQuantizeReport *r = weft_quantize_report(w);
		assert_string_equal(r->weight[0].kind, "int4");
		const int64_t groups = ROWS * k / group;
		assert_int_equal(r->weight[0].bytes, ROWS * k / 2 + groups * (zero ? 3 : 2));
		assert_int_equal(r->bytes, r->weight[0].bytes);
		numbers_of(g, ROWS, k, got);
		check_groups(got, ROWS, k, group, zero);
	}
}

/* A scale that f16 does not hold is an f32 one. */
static void test_small_scales(void **state)
{
	(void)state;
	static float got[MOST_N * MOST_K];
	fill(ROWS, 32, 7);
	for (int k = 0; k < ROWS * 32; k++)
		weight[k] *= 1e-9f;
	WeftGraph *g = product(32, ROWS, 32, false);
	quantised(g, &(WeftQuantizeOptions){.weights = WEFT_WEIGHT_INT4});
	const WeftQuantizedWeight *r = &weft_quantize_report(w)->weight[0];
	assert_int_equal(r->bytes, ROWS * (16 + 4));
	assert_true(r->snr > 15);
	numbers_of(g, ROWS, 32, got);
	assert_true(fabsf(got[0] - weight[0]) < 1e-10f && got[3] != 0);
}

static void test_bf16(void **state)
{
	(void)state;
	static float got[MOST_N * MOST_K];
	fill(ROWS, 70, 9);
	WeftGraph *g = product(70, ROWS, 70, false);
	quantised(g, &(WeftQuantizeOptions){.weights = WEFT_WEIGHT_BF16});
	assert_int_equal(weft_quantize_report(w)->weight[0].bytes, ROWS * 70 * 2);
	numbers_of(g, ROWS, 70, got);
	for (int k = 0; k < ROWS * 70; k++) {
		uint32_t bits;
		memcpy(&bits, &weight[k], sizeof bits);
		bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
		assert_memory_equal(&got[k], &bits, sizeof bits);
	}
}

/* A convolution: a scale for each channel of the result. */
static void test_convolution(void **state)
{
	(void)state;
	enum { OUT = 3, IN = 4, TAPS = 9, EACH = IN * TAPS };
	static float x[IN * TAPS], want[OUT];
	fill(OUT, EACH, 11);
	uint32_t s = 3;
	for (int k = 0; k < EACH; k++)
		x[k] = uniform(&s);
	for (int o = 0; o < OUT; o++) {
		float most = 0;
		for (int k = 0; k < EACH; k++)
			most = fmaxf(most, fabsf(weight[o * EACH + k]));
		for (int k = 0; k < EACH && most > 0; k++)
			want[o] += rintf(weight[o * EACH + k] / (most / 127)) * (most / 127) * x[k];
	}
	WeftTrace *t = weft_trace_new(w, "conv");
	const WeftArg args[] = {
		weft_arg(weft_trace_input(t, "x", "f32[1, 4, 3, 3]")),
		weft_arg(weft_trace_param(t, "conv.weight", "f32[3, 4, 3, 3]", weight))};
	weft_trace_output(t, "y", weft_trace_call(t, "aten.conv2d", args, 2));
	WeftGraph *g = ended(t);
	quantised(g, &(WeftQuantizeOptions){.weights = WEFT_WEIGHT_INT4});
	const WeftQuantizedWeight *r = &weft_quantize_report(w)->weight[0];
	assert_string_equal(r->kind, "int8");
	assert_string_equal(r->why, "a convolution reads it");
	assert_int_equal(r->bytes, OUT * EACH + OUT * 4);
	int64_t shape[] = {1, IN, 3, 3};
	WeftTensor in = floats(x, 4, shape), out;
	assert_true(weft_interpret(w, g, &in, 1, &out));
	for (int o = 0; o < OUT; o++)
		assert_true(fabsf(((const float *)out.data)[o] - want[o]) < 1e-5f);
}

/* ---- which weights ---- */

static const WeftQuantizedWeight *reported(const char *name)
{
	const WeftQuantizeReport *r = weft_quantize_report(w);
	for (uint32_t k = 0; r && k < r->nweight; k++)
		if (!strcmp(r->weight[k].name, name))
			return &r->weight[k];
	fail_msg("%s is not in the report", name);
	return NULL;
}

static void test_readers(void **state)
{
	(void)state;
	fill(4, 64, 21);
	WeftTrace *t = weft_trace_new(w, "readers");
	const WeftValue x = weft_trace_input(t, "x", "f32[2, 4]"), none = {0, 0};
	const char *const names[] = {"tied", "summed", "both", "out"};
	WeftValue p[4], y[5];
	for (int k = 0; k < 4; k++)
		p[k] = weft_trace_param(t, names[k], k == 2 ? "f32[4, 4]" : "f32[8, 4]", weight);
	y[0] = weft_linear(t, x, p[0], none);
	y[1] = weft_linear(t, weft_relu(t, x), p[0], none);
	y[2] = weft_add(t, weft_linear(t, x, p[1], none), weft_sum(t, p[1]));
	y[3] = weft_add(t, weft_linear(t, x, p[2], none), weft_matmul(t, x, p[2]));
	y[4] = weft_linear(t, x, p[3], none);
	weft_sum(t, p[0]); /* which nobody reads */
	for (int k = 0; k < 5; k++) {
		const char name[] = {'y', (char)('0' + k), 0};
		weft_trace_output(t, name, y[k]);
	}
	weft_trace_output(t, "w", p[3]);
	WeftGraph *g = ended(t);
	quantised(g, &(WeftQuantizeOptions){0});
	assert_int_equal(weft_quantize_report(w)->nweight, 4);
	assert_string_equal(reported("tied")->kind, "int8");
	assert_string_equal(reported("summed")->kind, "float");
	assert_string_equal(reported("summed")->why, "reduce reads it");
	assert_string_equal(reported("both")->why,
			    "two products sum along different dimensions of it");
	assert_string_equal(reported("out")->why, "it is an output");
	/* the tied one is stored once, and its float is nowhere */
	const char *text = weft_graph_text(w, g, NULL);
	assert_non_null(strstr(text, "i8[8, 4]"));
	const char *first = strstr(text, "i8[8, 4] sha");
	assert_true(first && !strstr(first + 1, "i8[8, 4] sha"));
}

/* Rows of tables are taken as integers: no kernel makes floats of the table. */
static void test_tables(void **state)
{
	(void)state;
	enum { V = 4000, D = 64 };
	static float table[V * D];
	uint32_t s = 9;
	for (int k = 0; k < V * D; k++)
		table[k] = uniform(&s);
	for (int c = 0; c < 8; c++) {
		const bool tied = c & 1, bf16 = c & 2, four = c >= 4 && !bf16;
		WeftTrace *t = weft_trace_new(w, "table");
		const WeftValue i = weft_trace_input(t, "i", "i64[3]"),
				e = weft_trace_param(t, "embed", "f32[4000, 64]", table);
		WeftValue y = weft_embedding(t, e, i);
		if (tied)
			y = weft_linear(t, y, e, (WeftValue){0, 0});
		weft_trace_output(t, "y", y);
		WeftGraph *g = ended(t);
		if (!tied)
			refused(g, &(WeftQuantizeOptions){0}, "only look-ups read it");
		quantised(g, &(WeftQuantizeOptions){.weights = bf16   ? WEFT_WEIGHT_BF16
							       : four ? WEFT_WEIGHT_INT4
								      : WEFT_WEIGHT_INT8,
						    .embeddings = !tied && c < 6,
						    .nkeep = !tied && c >= 6,
						    .keep = (const char *[]){"embed:bf16"}});
		const uint64_t want = V * (bf16 ? D * 2 : D + 4);
		assert_string_equal(reported("embed")->kind, bf16 ? "bf16" : "int8");
		assert_string_equal(reported("embed")->why, four ? "rows of it are looked up" : "");
		assert_int_equal(reported("embed")->bytes, want);
		int64_t at[] = {7, V - 1, 0}, shape[] = {3};
		const WeftTensor in = weft_tensor(at, WEFT_I64, 1, shape);
		WeftTensor out;
		assert_true(weft_interpret(w, g, &in, 1, &out));
		const WeftModel *m = weft_loops(w, g, NULL);
		WeftCall call;
		if (!m || weft_call_open(&call, m, 0) || weft_call_run(&call, &in))
			fail_msg("%s", weft_messages(w));
		const int n = 3 * (tied ? V : D);
		for (int k = 0; k < n; k++)
			assert_true(fabsf(((float *)out.data)[k] -
					  ((float *)call.output[0].data)[k]) < 1e-4f);
		for (int k = 0; k < D && !tied; k++)
			assert_true(fabsf(((float *)out.data)[k] - table[7 * D + k]) < 0.01f);
		weft_call_close(&call);
		assert_true(weft_plan(w, g, NULL));
		const WeftReport *r = weft_report(w);
		if (r->kernels > (tied ? 2 : 1) || r->workspace_bytes > 4096 ||
		    r->weight_bytes > 2 * want + 4096)
			fail_msg("case %d: %u kernels, workspace %llu, weights %llu", c, r->kernels,
				 (unsigned long long)r->workspace_bytes,
				 (unsigned long long)r->weight_bytes);
		weft_free(w);
		w = weft_new();
	}
}

static void test_nothing(void **state)
{
	(void)state;
	WeftTrace *t = weft_trace_new(w, "none");
	weft_trace_output(t, "y", weft_relu(t, weft_trace_input(t, "x", "f32[2, 4]")));
	refused(ended(t), &(WeftQuantizeOptions){0}, "there is nothing to quantise");
	static float many[64 * 64];
	t = weft_trace_new(w, "others");
	weft_trace_output(t, "y",
			  weft_add(t, weft_trace_input(t, "x", "f32[64, 64]"),
				   weft_trace_param(t, "shift", "f32[64, 64]", many)));
	refused(ended(t), &(WeftQuantizeOptions){0},
		"none of its 1 weights can be quantised: of shift add reads it");
	fill(ROWS, 1, 1);
	refused(product(1, ROWS, 1, false), &(WeftQuantizeOptions){0},
		"none of its 1 weights can be quantised: of fc.weight its products sum over one "
		"term");
}

static void test_not_finite(void **state)
{
	(void)state;
	const float bad[] = {NAN, INFINITY, -INFINITY};
	for (int k = 0; k < 6; k++) {
		fill(2, 64, 5);
		weight[70] = bad[k % 3];
		WeftGraph *g = product(64, 2, 64, false);
		const char *before = strdup(weft_graph_text(w, g, NULL));
		refused(g,
			&(WeftQuantizeOptions){.weights =
						       k < 3 ? WEFT_WEIGHT_INT8 : WEFT_WEIGHT_INT4},
			"weight fc.weight has the number");
		assert_non_null(strstr(weft_messages(w), "(element 70)"));
		assert_string_equal(weft_graph_text(w, g, NULL), before);
		free((void *)(uintptr_t)before);
		quantised(g,
			  &(WeftQuantizeOptions){.nkeep = 1, .keep = (const char *[]){"fc:float"}});
		weft_free(w);
		w = weft_new();
	}
}

/* Groups that do not divide the terms. */
static void test_rest(void **state)
{
	(void)state;
	fill(ROWS, 70, 3);
	WeftGraph *g = product(70, ROWS, 70, false);
	quantised(g, &(WeftQuantizeOptions){.weights = WEFT_WEIGHT_INT4});
	assert_string_equal(reported("fc.weight")->kind, "int8");
	assert_string_equal(reported("fc.weight")->why, "its 70 terms are no groups of 32");
}

/* ---- rules ---- */

/* Returns a chain of products. */
static WeftGraph *chain(const char *const *names)
{
	static float many[64 * 64];
	uint32_t seed = 3;
	WeftTrace *t = weft_trace_new(w, "chain");
	WeftValue x = weft_trace_input(t, "x", "f32[2, 64]");
	for (int k = 0; k < 64 * 64; k++)
		many[k] = uniform(&seed);
	for (int k = 0; k < 3; k++)
		x = weft_linear(t, x, weft_trace_param(t, names[k], "f32[64, 64]", many),
				(WeftValue){0, 0});
	weft_trace_output(t, "y", x);
	return ended(t);
}

static void test_rules(void **state)
{
	(void)state;
	static const struct {
		const char *rule[3], *kind[3];
	} cases[] = {
		{{"head:float"}, {"int8", "int8", "float"}},
		{{"a:int4"}, {"int4", "int4", "int8"}},
		{{"*.weight:bf16", "head:float"}, {"bf16", "bf16", "bf16"}},
		{{"a.out:float", "*a*:int4"}, {"int4", "float", "int4"}},
		{{"head.weight:int4", "a.fc.weight:bf16"}, {"bf16", "int8", "int4"}},
	};
	static const char *const names[] = {"a.fc.weight", "a.out.weight", "head.weight"};
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		WeftGraph *g = chain(names);
		uint32_t n = 0;
		while (n < 3 && cases[c].rule[n])
			n++;
		/* a rule that others hide is one that fits nothing */
		if (c == 2) {
			refused(g, &(WeftQuantizeOptions){.nkeep = n, .keep = cases[c].rule},
				"the rule \"head:float\" fits no weight");
			continue;
		}
		quantised(g, &(WeftQuantizeOptions){.nkeep = n, .keep = cases[c].rule});
		for (int k = 0; k < 3; k++)
			assert_string_equal(reported(names[k])->kind, cases[c].kind[k]);
	}
}

static void test_wrong(void **state)
{
	(void)state;
	fill(2, 64, 5);
	WeftGraph *g = product(64, 2, 64, false);
	const struct {
		WeftQuantizeOptions o;
		const char *text;
	} cases[] = {
		{{.weights = (WeftWeightKind)9}, "no kind of weights 9"},
		{{.group = 16}, "32, 64 or 128"},
		{{.group = 48}, "32, 64 or 128"},
		{{.nkeep = 1}, "NULL"},
		{{.nkeep = 1, .keep = (const char *[]){"fc"}}, "no NAME:KIND"},
		{{.nkeep = 1, .keep = (const char *[]){"fc:int3"}}, "no NAME:KIND"},
		{{.nkeep = 1, .keep = (const char *[]){":int8"}}, "no NAME:KIND"},
		{{.nkeep = 1, .keep = (const char *[]){"fc.weigth:int8"}},
		 "did you mean fc.weight"},
		{{.size = 4096}, "a newer version"},
	};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		refused(g, &cases[k].o,
			strcmp(cases[k].text, "no NAME:KIND") ? cases[k].text : "is not NAME:KIND");
	assert_false(weft_quantize(w, NULL, NULL));
	assert_false(weft_quantize(NULL, g, NULL));
	assert_null(weft_quantize_report(NULL));
	assert_true(weft_transform(w, g, "canon"));
	refused(g, &(WeftQuantizeOptions){0}, "was transformed");
}

/* ---- data ---- */

static WeftTensors *one_tensor(const char *name, float *data, int32_t rank, int64_t *shape)
{
	WeftTensors *t = weft_tensors_new(w);
	const WeftTensor x = floats(data, rank, shape);
	assert_true(weft_tensors_add(w, t, name, &x));
	return t;
}

/* Inputs that are always small count less: the error on the data falls. */
static void test_data(void **state)
{
	(void)state;
	enum { K = 64, SAMPLES = 40 };
	static float x[SAMPLES * K];
	int64_t shape[] = {SAMPLES, K};
	double snr[2], of_weight[2];
	uint32_t s = 77;
	for (int k = 0; k < SAMPLES * K; k++)
		x[k] = uniform(&s) * (k % 8 ? 0.01f : 1);
	for (int with = 0; with < 2; with++) {
		fill(ROWS, K, 31);
		WeftGraph *g = product(1, ROWS, K, false);
		if (with) {
			quantised(g, &(WeftQuantizeOptions){.weights = WEFT_WEIGHT_INT4,
							    .data = one_tensor("x", x, 2, shape)});
			assert_int_equal(weft_quantize_report(w)->samples, SAMPLES);
			snr[with] = weft_quantize_report(w)->snr;
		} else {
			quantised(g, &(WeftQuantizeOptions){.weights = WEFT_WEIGHT_INT4});
			assert_int_equal(weft_quantize_report(w)->samples, 0);
			double signal = 0, noise = 0;
			WeftGraph *was = product(1, ROWS, K, false);
			for (int i = 0; i < SAMPLES; i++) {
				int64_t row[] = {1, K};
				WeftTensor in = floats(x + i * K, 2, row), a, b;
				assert_true(weft_interpret(w, was, &in, 1, &a) &&
					    weft_interpret(w, g, &in, 1, &b));
				for (int r = 0; r < ROWS; r++) {
					const double v = (double)((float *)a.data)[r];
					signal += v * v;
					noise += pow(v - (double)((float *)b.data)[r], 2);
				}
			}
			snr[with] = 10 * log10(signal / noise);
		}
		of_weight[with] = weft_quantize_report(w)->weight[0].snr;
	}
	assert_true(snr[1] > snr[0] + 1);
	assert_true(of_weight[1] < of_weight[0]);
}

/* Weights get more bits until the outputs are exact enough, and no more weights than needed. */
static void test_least(void **state)
{
	(void)state;
	static const char *const names[] = {"a", "b", "c"};
	static float x[20 * 64];
	int64_t shape[] = {20, 64};
	uint32_t s = 5;
	for (int k = 0; k < 20 * 64; k++)
		x[k] = uniform(&s);
	static const double least[] = {10, 19, 30, 38, 60, 1000};
	double before = 0;
	uint64_t bytes = 0;
	for (size_t k = 0; k < sizeof least / sizeof *least; k++) {
		WeftGraph *g = chain(names);
		quantised(g, &(WeftQuantizeOptions){.weights = WEFT_WEIGHT_INT4,
						    .data = one_tensor("x", x, 2, shape),
						    .least_snr = least[k]});
		const WeftQuantizeReport *r = weft_quantize_report(w);
		assert_true(r->snr >= least[k] && r->snr >= before && r->bytes >= bytes);
		before = r->snr;
		bytes = r->bytes;
		uint32_t kind[4] = {0};
		for (uint32_t i = 0; i < 3; i++) {
			const char *name = r->weight[i].kind;
			kind[name[0] == 'f' ? 2 : name[3] == '8']++;
			assert_true((strstr(r->weight[i].why, "--least-snr") != NULL) ==
				    (strcmp(name, "int4") != 0));
		}
		assert_true(k < 2 || kind[0] < 3);
		assert_true(k > 0 || kind[0] == 3);
		assert_true(k < 5 || kind[2] == 3);
		weft_free(w);
		w = weft_new();
	}
	WeftGraph *g = chain(names);
	refused(g, &(WeftQuantizeOptions){.least_snr = 30}, "needs data");
}

/* Static activations: products of integers, near the model; other weights stay in f32. */
static void test_static(void **state)
{
	(void)state;
	static const char *const names[] = {"a", "b", "c"};
	static float x[20 * 64];
	int64_t shape[] = {20, 64};
	uint32_t s = 5;
	for (int k = 0; k < 20 * 64; k++)
		x[k] = uniform(&s);
	WeftGraph *g = chain(names);
	refused(g, &(WeftQuantizeOptions){.activations = WEFT_QUANTIZE_STATIC}, "need data");
	quantised(g, &(WeftQuantizeOptions){.activations = WEFT_QUANTIZE_STATIC,
					    .data = one_tensor("x", x, 2, shape),
					    .nkeep = 1,
					    .keep = (const char *[]){"b:float"}});
	assert_true(weft_quantize_report(w)->snr > 30);
	const WeftOptions o = {.size = sizeof o, .target = "x86-64-v4", .dump = "quantize"};
	assert_true(weft_plan(w, g, &o));
	const char *text = weft_dump(w);
	uint32_t integers = 0, products = 0;
	for (const char *p = text; (p = strstr(p, "= contract(")); p++) {
		const char *type = strstr(p, ") : ");
		products++;
		integers += type && !strncmp(type, ") : i32[", 8);
	}
	if (products != 3 || integers != 2)
		fail_msg("%u of %u products of integers, expected 2 of 3: %s", integers, products,
			 text);
	assert_true(weft_save_graph(w, g, path("a.weft")));
	WeftGraph *again = weft_load(w, path("a.weft"));
	if (!again)
		fail_msg("%s", weft_messages(w));
	refused(again, &(WeftQuantizeOptions){0}, "was transformed");
}

static void test_wrong_data(void **state)
{
	(void)state;
	static float x[4 * 64];
	int64_t three[] = {1, 2, 2, 64}, none[] = {0, 64}, narrow[] = {4, 32}, good[] = {4, 64};
	fill(2, 64, 5);
	WeftGraph *g = product(1, 2, 64, false);
	const WeftQuantizeOptions o = {0};
	WeftQuantizeOptions with = o;
	with.data = one_tensor("other", x, 2, good);
	refused(g, &with, "no tensor x or x.0");
	with.data = one_tensor("x.0", x, 4, three);
	refused(g, &with, "have 4 dimensions");
	with.data = one_tensor("x", x, 2, none);
	refused(g, &with, "0 samples");
	with.data = one_tensor("x", x, 2, narrow);
	refused(g, &with, "64");
	x[70] = NAN;
	with.data = one_tensor("x", x, 2, good);
	refused(g, &with, "is not finite (term 6)");
	x[70] = 1;
	quantised(g, &with);
	assert_int_equal(weft_quantize_report(w)->samples, 4);
}

/* ---- files ---- */

static char *contents(const char *file, size_t *n)
{
	FILE *f = fopen(file, "rb");
	assert_non_null(f);
	struct stat st;
	assert_int_equal(fstat(fileno(f), &st), 0);
	char *data = malloc((size_t)st.st_size + 1);
	*n = fread(data, 1, (size_t)st.st_size, f);
	fclose(f);
	return data;
}

static void write_file(const char *file, const char *data, size_t n)
{
	FILE *f = fopen(file, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, n, f), n);
	fclose(f);
}

/* What is read gives the same bits; files of 1 and 4 threads are equal, and so is one of what was
 * read. */
static void test_file(void **state)
{
	(void)state;
	static float was[MOST_N * MOST_K], is[MOST_N * MOST_K];
	for (int kind = 0; kind < 4; kind++) {
		size_t n[3];
		char *data[3];
		for (int k = 0; k < 2; k++) {
			fill(ROWS, 96, 13);
			WeftGraph *g = product(96, ROWS, 96, kind & 1);
			quantised(g, &(WeftQuantizeOptions){
					     .weights = (WeftWeightKind)kind,
					     .activations = kind == 0 ? WEFT_QUANTIZE_DYNAMIC
								      : WEFT_QUANTIZE_NONE,
					     .nkeep = kind == 3,
					     .keep = (const char *[]){"fc:float"},
					     .jobs = k ? 4 : 1});
			numbers_of(g, ROWS, 96, was);
			assert_true(weft_save_graph(w, g, path(k ? "b.weft" : "a.weft")));
			data[k] = contents(path(k ? "b.weft" : "a.weft"), &n[k]);
			assert_true(weft_rounds_activations(w, g) == (kind == 0));
		}
		WeftGraph *g = weft_load(w, path("a.weft"));
		if (!g)
			fail_msg("%s", weft_messages(w));
		assert_true(weft_rounds_activations(w, g) == (kind == 0));
		numbers_of(g, ROWS, 96, is);
		assert_memory_equal(was, is, sizeof is);
		assert_true(weft_weight_bytes(g) == (kind == 3 ? ROWS * 96 * 4 : 0));
		assert_true(weft_save_graph(w, g, path("c.weft")));
		data[2] = contents(path("c.weft"), &n[2]);
		for (int k = 1; k < 3; k++) {
			assert_int_equal(n[0], n[k]);
			assert_memory_equal(data[0], data[k], n[0]);
			free(data[k]);
		}
		free(data[0]);
		weft_free(w);
		w = weft_new();
	}
}

/* Every byte that is another one is noticed, or makes no other graph; no part of a file is one. */
static void test_damaged(void **state)
{
	(void)state;
	static float was[MOST_N * MOST_K], is[MOST_N * MOST_K];
	fill(ROWS, 32, 13);
	WeftGraph *g = product(32, ROWS, 32, false);
	quantised(g, &(WeftQuantizeOptions){.weights = WEFT_WEIGHT_INT4});
	numbers_of(g, ROWS, 32, was);
	assert_true(weft_save_graph(w, g, path("a.weft")));
	size_t n;
	char *data = contents(path("a.weft"), &n);
	uint32_t accepted = 0;
	for (size_t k = 0; k < n; k += k < 1200 ? 1 : 7) {
		Weft *own = weft_new();
		const char old = data[k];
		data[k] = (char)(old ^ (1 << k % 7));
		write_file(path("d.weft"), data, n);
		Weft *keep = w;
		w = own;
		WeftGraph *d = weft_load(own, path("d.weft"));
		uint32_t nin = 0, nout = 0;
		if (d && weft_inputs(own, d, &nin) && weft_outputs(own, d, &nout) && nin == 1 &&
		    nout == 1 && k > n - ROWS * 20) {
			numbers_of(d, ROWS, 32, is);
			fail_msg("byte %zu of a constant is another one, and is not noticed", k);
		}
		accepted += d != NULL;
		w = keep;
		weft_free(own);
		data[k] = old;
	}
	assert_true(accepted < n / 4);
	for (size_t k = 0; k < n; k += 1 + n / 50) {
		Weft *own = weft_new();
		write_file(path("d.weft"), data, k);
		assert_null(weft_load(own, path("d.weft")));
		weft_free(own);
	}
	free(data);
	assert_false(weft_save_graph(w, g, ""));
	assert_false(weft_save_graph(w, g, path("no/such/folder.weft")));
	assert_false(weft_save_graph(NULL, g, path("x.weft")));
}

/* ---- compiled ---- */

/* Results of loop IR and of the interpreter of graphs are near one another. */
static void check_compiled(WeftGraph *g, int64_t rows, int64_t n, int64_t k, double most)
{
	static float x[ROWS * MOST_K];
	uint32_t s = (uint32_t)k;
	int64_t shape[] = {rows, k};
	for (int64_t i = 0; i < rows * k; i++)
		x[i] = uniform(&s);
	WeftTensor in = floats(x, 2, shape), want;
	assert_true(weft_interpret(w, g, &in, 1, &want));
	const WeftModel *m = weft_loops(w, g, NULL);
	WeftCall c;
	if (!m || weft_call_open(&c, m, 0) || weft_call_run(&c, &in))
		fail_msg("%s%s", weft_messages(w), m ? c.status.message : "");
	double great = 0;
	for (int64_t i = 0; i < rows * n; i++)
		great = fmax(great, fabs((double)((float *)want.data)[i]));
	for (int64_t i = 0; i < rows * n; i++) {
		const double a = (double)((float *)want.data)[i],
			     b = (double)((float *)c.output[0].data)[i];
		if (!(fabs(a - b) <= most * great))
			fail_msg("%lld terms: %g, expected %g", (long long)k, b, a);
	}
	weft_call_close(&c);
	weft_release(w);
}

static void test_compiled(void **state)
{
	(void)state;
	static const int64_t terms[] = {2, 3, 7, 31, 32, 33, 64, 70, 96, 128};
	for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
		for (int c = 0; c < 10; c++) {
			const int64_t k = terms[i];
			fill(ROWS, k, (uint32_t)(i * 10) + (uint32_t)c);
			WeftGraph *g = product(1 + c % 3, ROWS, k, c & 1);
			quantised(g, &(WeftQuantizeOptions){.weights = (WeftWeightKind)(c / 2 % 3),
							    .zero_points = c >= 6,
							    .activations =
								    c >= 4 ? WEFT_QUANTIZE_DYNAMIC
									   : WEFT_QUANTIZE_NONE});
			check_compiled(g, 1 + c % 3, ROWS, k, c >= 4 ? 0.02 : 1e-5);
			weft_free(w);
			w = weft_new();
		}
}

/* Returns a product with a weight of 512 x 512, or a convolution with one of 512 x 64 x 3 x 3. */
static WeftGraph *wide(bool windows)
{
	static float many[512 * 64 * 9];
	uint32_t s = 5;
	for (int k = 0; k < 512 * 64 * 9; k++)
		many[k] = uniform(&s);
	WeftTrace *t = weft_trace_new(w, "wide");
	const WeftValue x = weft_trace_input(t, "x", windows ? "f32[1, 64, 9, 9]" : "f32[1, 512]"),
			p = weft_trace_param(
				t, "w", windows ? "f32[512, 64, 3, 3]" : "f32[512, 512]", many);
	const WeftArg args[] = {weft_arg(x), weft_arg(p)};
	weft_trace_output(t, "y", windows ? weft_trace_call(t, "aten.conv2d", args, 2)
					  : weft_linear(t, x, p, (WeftValue){0, 0}));
	return ended(t);
}

/* No kernel stores the weights as floats: what is compiled holds no more bytes than the report. */
static void test_bytes(void **state)
{
	(void)state;
	for (int c = 0; c < 6; c++) {
		const bool dynamic = c == 3 || c == 4;
		WeftGraph *g = wide(c == 5);
		quantised(g, &(WeftQuantizeOptions){.weights = (WeftWeightKind)(c == 5 ? 0 : c % 3),
						    .activations = dynamic ? WEFT_QUANTIZE_DYNAMIC
									  : WEFT_QUANTIZE_NONE});
		const uint64_t want = weft_quantize_report(w)->bytes;
		assert_true(weft_plan(w, g, NULL));
		const WeftReport *r = weft_report(w);
		if (r->weight_bytes > want + want / 8)
			fail_msg("case %d: %llu bytes, expected %llu", c,
				 (unsigned long long)r->weight_bytes, (unsigned long long)want);
		/* the product is one kernel: none dequantises in front of it */
		if (r->kernels > (dynamic ? 4 : 1))
			fail_msg("case %d: %u kernels", c, r->kernels);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_weft, free_weft)
	const struct CMUnitTest tests[] = {
		TEST(test_int8),       TEST(test_int4),        TEST(test_small_scales),
		TEST(test_bf16),       TEST(test_convolution), TEST(test_readers),
		TEST(test_tables),     TEST(test_nothing),     TEST(test_not_finite),
		TEST(test_rest),       TEST(test_rules),       TEST(test_wrong),
		TEST(test_data),       TEST(test_least),       TEST(test_static),
		TEST(test_wrong_data), TEST(test_file),        TEST(test_damaged),
		TEST(test_compiled),   TEST(test_bytes),
	};
	if (!mkdtemp(dir))
		return 1;
	const int failed = cmocka_run_group_tests(tests, NULL, NULL);
	static const char *const files[] = {"a.weft", "b.weft", "c.weft", "d.weft"};
	for (size_t k = 0; k < sizeof files / sizeof *files; k++)
		unlink(path(files[k]));
	return rmdir(dir) || failed;
}
