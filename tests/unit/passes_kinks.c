/* Derivatives at kinks, ties and singular points are PyTorch's: tests/data/kinks.txt, which
 * tests/make/make_kinks.py writes. Each line is taken by transform_vjp and by transform_jvp, and by
 * both of transform_vjp's graph: products with the matrix of second derivatives. */
#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/build/text.h"
#include "ir/interp/interp.h"
#include "transform/transform.h"

enum { MAX_OPERANDS = 3, MAX_LENGTH = 16 };

static const double NOT_COMPARED = -12345.5; /* "x" in the file */

typedef struct {
	const char *line;
	uint32_t n, length, tangents; /* of the result's elements, 0: PyTorch has none */
	double x[MAX_OPERANDS][MAX_LENGTH], slope[MAX_OPERANDS][MAX_LENGTH],
		second[MAX_OPERANDS][MAX_LENGTH], tangent[1][MAX_LENGTH];
	int failed;
} Case;

/* "1 2 x; 4 5 6" up to the end or "|". */
static uint32_t read_columns(const char *p, double column[][MAX_LENGTH], uint32_t *length)
{
	uint32_t n = 0, k = 0;
	for (char *end;; p = end) {
		p += strspn(p, " ");
		if (*p == ';' || *p == '|' || *p == '\n' || !*p) {
			*length = k;
			k = 0;
			n++;
			if (*p != ';')
				return n;
			end = (char *)p + 1;
			continue;
		}
		column[n][k++] = *p == 'x' ? NOT_COMPARED : strtod(p, &end);
		end = *p == 'x' ? (char *)p + 1 : end;
		assert_true(end != p && k <= MAX_LENGTH && n < MAX_OPERANDS);
	}
}

static bool is_none(const char *column)
{
	return column[2] == '-' && isspace((unsigned char)column[3]);
}

/* The line as a graph of its operands. */
static Graph *parse(Ir *ir, const Case *c)
{
	Text t;
	text_init(&t, ir->ctx->arena);
	text_printf(&t, "graph @main(");
	for (uint32_t k = 0; k < c->n; k++)
		text_printf(&t, "%s%%%c: f64[%u]", k ? ", " : "", 'a' + (int)k, c->length);
	text_printf(&t, ") {\n");
	for (const char *p = c->line, *end = strchr(p, '|'); p < end;) {
		size_t part = strcspn(p, ";|");
		text_printf(&t, "  %.*s\n", (int)part, p);
		p += part + (p[part] == ';');
	}
	text_printf(&t, "  return %%y\n}\n");
	return graph_parse(ir, t.data, "kinks");
}

static bool same(double x, double y)
{
	return x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= 1e-12 * fabs(y) + 2e-16;
}

/* Second derivatives are sums of several terms. */
static bool close_to(double x, double y)
{
	return same(x, y) || fabs(x - y) <= 1e-9 * fmax(fabs(y), 1e-3);
}

static void differs(Case *c, const char *how, uint32_t k, uint32_t i, double got, double expected)
{
	print_error("%.*s\n  %s: by operand %u at %g: %.17g, PyTorch gives %.17g\n",
		    (int)strcspn(c->line, "|"), c->line, how, k, c->x[k][i], got, expected);
	c->failed++;
}

static bool run(Ctx *ctx, Graph *g, const Tensor *in, Tensor *out)
{
	if (!g || !interp(ctx, g, in, g->input.n, out, g->output.n, ctx->arena)) {
		print_error("%s\n", ctx->last ? ctx->last->text : "no graph");
		return false;
	}
	return true;
}

/* Of ones as cotangents. */
static void check_vjp(Ctx *ctx, Graph *g, Case *c)
{
	Graph *vjp = transform_vjp(g, &(Wrt){0});
	Tensor in[MAX_OPERANDS + 1], out[MAX_OPERANDS + 1];
	double one[MAX_LENGTH];
	int64_t length = c->length;
	for (uint32_t k = 0; k < MAX_LENGTH; k++)
		one[k] = 1;
	for (uint32_t k = 0; k <= c->n; k++)
		in[k] = (Tensor){.dtype = DT_f64,
				 .rank = 1,
				 .dim = {length},
				 .data = k < c->n ? c->x[k] : one};
	in[c->n].rank = node_rank(g, g->output.data[0].node);
	if (!run(ctx, vjp, in, out)) {
		c->failed++;
		return;
	}
	for (uint32_t k = 0; k < c->n; k++)
		for (uint32_t i = 0; i < c->length; i++)
			if (c->slope[k][i] != NOT_COMPARED &&
			    !same(tensor_f64(&out[1 + k], i), c->slope[k][i]))
				differs(c, "vjp", k, i, tensor_f64(&out[1 + k], i), c->slope[k][i]);
}

/* The vector that the matrix of second derivatives is multiplied with, and of which tangents are
 * taken: weight in make_kinks.py. */
static double weight(uint32_t k, uint32_t i)
{
	return 1 + (3 * i + 5 * k) % 4 / 2.0;
}

static Tensor vector(const Case *c, double *x)
{
	return (Tensor){.dtype = DT_f64, .rank = 1, .dim = {c->length}, .data = x};
}

/* Element by element; where PyTorch has no tangents their sum, which is that of the slopes. */
static void compare_tangent(Case *c, const Tensor *out)
{
	double sum = 0, expected = 0;
	for (uint32_t r = 0; r < (uint32_t)tensor_numel(out); r++) {
		double got = tensor_f64(out, r), there = c->tangent[0][r];
		sum += got;
		if (c->tangents && there != NOT_COMPARED && !close_to(got, there))
			differs(c, "jvp", 0, r, got, there);
	}
	for (uint32_t k = 0; k < c->n; k++)
		for (uint32_t i = 0; i < c->length; i++)
			expected += weight(k, i) * c->slope[k][i];
	if (!c->tangents && !close_to(sum, expected))
		differs(c, "jvp", 0, 0, sum, expected);
}

static void check_jvp(Ctx *ctx, Graph *g, Case *c)
{
	Graph *jvp = transform_jvp(g, &(Wrt){0});
	Tensor in[2 * MAX_OPERANDS], out[2];
	double along[MAX_OPERANDS][MAX_LENGTH];
	for (uint32_t k = 0; k < c->n; k++) {
		for (uint32_t i = 0; i < c->length; i++)
			along[k][i] = weight(k, i);
		in[k] = vector(c, c->x[k]);
		in[c->n + k] = vector(c, along[k]);
	}
	if (!run(ctx, jvp, in, out))
		c->failed++;
	else
		compare_tangent(c, &out[1]);
}

static void compare_second(Case *c, const char *how, const Tensor *out)
{
	for (uint32_t k = 0; k < c->n; k++)
		for (uint32_t i = 0; i < c->length; i++)
			if (c->second[k][i] != NOT_COMPARED &&
			    !close_to(tensor_f64(&out[k], i), c->second[k][i]))
				differs(c, how, k, i, tensor_f64(&out[k], i), c->second[k][i]);
}

/* Of the gradients' graph, whose results are those of g and then the gradients: of these backwards,
 * or forwards. */
static void check_second(Ctx *ctx, Graph *g, Case *c, bool forward)
{
	Graph *vjp = transform_vjp(g, &(Wrt){0});
	bool operand[MAX_OPERANDS + 1] = {0}, result[MAX_OPERANDS + 1] = {0};
	for (uint32_t k = 0; k < c->n; k++)
		operand[k] = result[1 + k] = true;
	Graph *second = !vjp      ? NULL
			: forward ? transform_jvp(vjp, &(Wrt){.input = operand})
				  : transform_vjp(vjp, &(Wrt){.input = operand, .output = result});
	Tensor in[2 * MAX_OPERANDS + 1], out[2 * MAX_OPERANDS + 2];
	double one[MAX_LENGTH], along[MAX_OPERANDS][MAX_LENGTH];
	for (uint32_t i = 0; i < MAX_LENGTH; i++) {
		one[i] = 1;
		for (uint32_t k = 0; k < MAX_OPERANDS; k++)
			along[k][i] = weight(k, i);
	}
	for (uint32_t k = 0; k < c->n; k++) {
		in[k] = vector(c, c->x[k]);
		in[c->n + 1 + k] = vector(c, along[k]);
	}
	in[c->n] = vector(c, one);
	in[c->n].rank = node_rank(g, g->output.data[0].node);
	if (!run(ctx, second, in, out))
		c->failed++;
	else
		compare_second(c, forward ? "forwards over backwards" : "twice backwards",
			       out + 1 + c->n + (forward ? 1 : 0));
}

static void kinks(void **state)
{
	(void)state;
	FILE *f = fopen(TEST_DATA "/kinks.txt", "rb");
	static char line[8192];
	uint32_t lines = 0, points = 0;
	int failed = 0;
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		const char *operands = strchr(line, '|');
		if (line[0] == ';' || !operands)
			continue;
		Case c = {.line = line};
		uint32_t length;
		const char *slopes = strchr(operands + 1, '|'), *second = strchr(slopes + 1, '|');
		c.n = read_columns(operands + 1, c.x, &c.length);
		assert_int_equal(read_columns(slopes + 1, c.slope, &length), c.n);
		const char *tangent = strchr(second + 1, '|');
		if (!is_none(tangent))
			assert_int_equal(read_columns(tangent + 1, c.tangent, &c.tangents), 1);
		Ctx *ctx = ctx_new();
		Graph *g = parse(ir_new(ctx), &c);
		if (!g)
			fail_msg("%s: %s", line, ctx->last ? ctx->last->text : "");
		check_vjp(ctx, g, &c);
		check_jvp(ctx, g, &c);
		if (!is_none(second)) {
			assert_int_equal(read_columns(second + 1, c.second, &length), c.n);
			check_second(ctx, g, &c, false);
			check_second(ctx, g, &c, true);
		}
		failed += c.failed;
		lines++;
		points += c.n * c.length;
		ctx_free(ctx);
	}
	fclose(f);
	assert_true(lines > 100 && points > 400);
	assert_int_equal(failed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(kinks)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
