/* Values and derivatives of every operator at its borders: ties, 0 and -0, arguments of the call,
 * edges of images, infinities, NaN. They are PyTorch's, recorded in tests/data/borders by
 * tests/make/make_borders.py, which describes the file; each line has one sum with weights. What is
 * not PyTorch's is marked there with a "?", and must still differ, so that none stays marked that
 * is right. OP=name in the environment: that op alone; BORDERS=list: print what differs, as the
 * script's --differs reads it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/interp/interp.h"
#include "tests/help/digest.h"
#include "tests/help/records.h"
#include "tests/help/sample.h"
#include "transform/transform.h"

enum { MAX_LINES = 32, MAX_LINE = 4096, MAX_VALUES = 64 };

/* Sums that cancel are of rounding alone. */
static const double SLACK = 1e-11;

/* A sample's name and text, and the lines that stand below it. */
typedef struct {
	char head[2 * MAX_LINE], line[MAX_LINES][256];
	uint32_t n;
} Entry;

/* What one of its graphs gives: results, gradients by operand or tangents by result. */
typedef struct {
	Tensor *value;
	uint32_t n;
} Values;

static uint32_t compared[3]; /* values, gradients, tangents */

/* As weights() of make_borders.py. */
static Tensor weights(Ctx *ctx, const Tensor *like, uint32_t k)
{
	Tensor t = *like;
	int64_t n = tensor_numel(like);
	t.data = arena_alloc(ctx->arena, tensor_bytes(like) + 1);
	for (int64_t i = 0; i < n; i++)
		tensor_set_f64(&t, i, 1 + (double)((3 * i + 5 * k) % 4) / 2);
	return t;
}

static bool run(Ctx *ctx, Graph *g, const Tensor *in, Values *out)
{
	if (!g)
		return false;
	out->n = g->output.n;
	out->value = ARENA_ARRAY(ctx->arena, Tensor, out->n);
	return interp(ctx, g, in, g->input.n, out->value, out->n, ctx->arena);
}

/* The gradients by float operands of the sum of all float results with weights; a place without a
 * value for the others. */
static bool gradients(Ctx *ctx, const Sample *s, const Values *y, Values *out)
{
	Tensor in[SAMPLE_INPUTS + MAX_LINES];
	uint32_t nin = s->nin, at = y->n;
	Values all;
	memcpy(in, s->in, s->nin * sizeof *in);
	for (uint32_t k = 0; k < y->n; k++)
		if (dtype_is_float(y->value[k].dtype))
			in[nin++] = weights(ctx, &y->value[k], k);
	if (!run(ctx, transform_vjp(s->g, &(Wrt){0}), in, &all))
		return false;
	*out = (Values){ARENA_ARRAY(ctx->arena, Tensor, s->nin), 0};
	for (uint32_t k = 0; k < s->nin; k++)
		if (dtype_is_float(s->in[k].dtype))
			out->value[out->n++] = all.value[at++];
	return true;
}

/* The tangents of float results along weights. */
static bool tangents(Ctx *ctx, const Sample *s, const Values *y, Values *out)
{
	Tensor in[2 * SAMPLE_INPUTS];
	uint32_t nin = s->nin;
	memcpy(in, s->in, s->nin * sizeof *in);
	for (uint32_t k = 0, at = 0; k < s->nin; k++)
		if (dtype_is_float(s->in[k].dtype))
			in[nin++] = weights(ctx, &s->in[k], at++);
	if (!run(ctx, transform_jvp(s->g, &(Wrt){0}), in, out))
		return false;
	out->value += y->n;
	out->n -= y->n;
	return true;
}

/* "? " in front of a line of a value that differs. */
static bool is_marked(const char *line)
{
	return line[0] == '?';
}

/* The line's kind and number; returns what is behind them, the type and the sums. */
static const char *line_of(const char *line, char *kind, uint32_t *k)
{
	char *end;
	line += is_marked(line) ? 2 : 0;
	*kind = line[0];
	line += 2;
	if (*kind == '=')
		return line;
	*k = (uint32_t)strtoul(line, &end, 10);
	return end + 1;
}

/* False if the line is not as it is marked. */
static bool check_line(Ctx *ctx, const Entry *e, const char *line, const Values *v, uint32_t k,
		       const char *text)
{
	const char *got = v && k < v->n ? NULL : "there is none";
	if (!got && !digest_agrees(ctx, &v->value[k], text, SLACK))
		got = digest_text(ctx, &v->value[k]);
	if (getenv("BORDERS")) {
		if (got)
			printf("%s\t%s\n", e->head, line + (is_marked(line) ? 2 : 0));
		return true;
	}
	if (!got == !is_marked(line))
		return true;
	print_error("%s\n  %s: %s\n", e->head, line,
		    got ? got : "is PyTorch's now: its mark can go");
	return false;
}

static bool check_entry(Ctx *ctx, const Entry *e)
{
	size_t n = strcspn(e->head, " ");
	Op op = op_find(arena_strndup(ctx->arena, e->head, n));
	Sample s;
	Values y, g, t, *have_g = NULL, *have_t = NULL;
	uint32_t result = 0, k = 0;
	bool ok = true;
	SampleForm form = {.real = DT_f64};
	if (!op || !sample_build(ir_new(ctx), op, e->head + n + 1, form, &s) ||
	    !run(ctx, s.g, s.in, &y)) {
		print_error("%s: %s\n", e->head, ctx->first ? ctx->first->text : "no operator");
		return false;
	}
	for (uint32_t i = 0; i < e->n; i++) {
		char kind;
		const char *text = line_of(e->line[i], &kind, &k);
		if (kind == '<' && !have_g)
			have_g = gradients(ctx, &s, &y, &g) ? &g : NULL;
		if (kind == '>' && !have_t)
			have_t = tangents(ctx, &s, &y, &t) ? &t : NULL;
		const Values *v = kind == '=' ? &y : kind == '<' ? have_g : have_t;
		compared[kind == '=' ? 0 : kind == '<' ? 1 : 2]++;
		ok &= check_line(ctx, e, e->line[i], v, kind == '=' ? result++ : k, text);
	}
	return ok;
}

static bool check(const Entry *e)
{
	Ctx *volatile ctx = ctx_new();
	assert_non_null(ctx);
	volatile bool ok = false;
	if (setjmp(ctx->unwind))
		print_error("%s: %s\n", e->head, ctx->bug_text);
	else
		ok = check_entry(ctx, e);
	ctx_free(ctx);
	return ok;
}

static bool is_line(const char *line)
{
	return strchr("=<>?", line[0]) && line[1] == ' ';
}

static void borders(void **state)
{
	(void)state;
	const char *only = sample_only();
	uint32_t failures = 0, count = 0;
	static Entry e;
	static char line[MAX_LINE], op[MAX_LINE];
	FILE *f = records_open("borders");
	for (bool more = true; more;) {
		more = fgets(line, sizeof line, f) != NULL;
		line[strcspn(line, "\n")] = 0;
		if (more && is_line(line)) {
			assert_true(e.n < MAX_LINES && strlen(line) < sizeof e.line[0]);
			memcpy(e.line[e.n++], line, sizeof e.line[0]);
			continue;
		}
		if (e.n && (!only || strncmp(e.head, only, strlen(only)) == 0)) {
			failures += !check(&e);
			count++;
		}
		e.n = 0;
		if (line[0] == ' ')
			snprintf(e.head, sizeof e.head, "%s%s", op, line);
		else
			snprintf(op, sizeof op, "%s", line);
	}
	fclose(f);
	if (!getenv("BORDERS"))
		printf("%u samples: %u values, %u gradients, %u tangents\n", count, compared[0],
		       compared[1], compared[2]);
	assert_true(count > 0 && compared[0] && (only || (compared[1] && compared[2])));
	assert_int_equal(failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(borders)};
	op_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
