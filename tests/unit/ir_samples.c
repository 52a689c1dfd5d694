/* Every block of the op table, from its samples (the language: ir/op/op.h):
 *   - the sample builds through the builder, verifies, and reads back from its text;
 *   - it expands to primitives and scalar functions in bounded depth, with the results' types;
 *   - block and expansion give the same bits, with sizes as numbers and as symbols;
 *   - results are PyTorch's, recorded in tests/data/samples by tests/make/make_samples.py, and
 *     so are dtypes where other dtypes take the place of f32;
 *   - scalar functions: typed loops and single values agree; derivatives are PyTorch's and central
 *     differences.
 * OP=name in the environment: that op alone, its graphs printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/build/build.h"
#include "ir/build/text.h"
#include "ir/build/verify.h"
#include "ir/interp/interp.h"
#include "ir/op/import.h"
#include "ir/scalar/scalar.h"
#include "tests/help/records.h"
#include "tests/help/sample.h"

/* Expansions are shallow and small: what grows without end is met at once. */
enum { MAX_LEVEL = 12, MAX_NODES = 20000, MAX_RESULTS = 16 };

/* ---- failures: all of them are told before the test fails ---- */

typedef struct {
	Op op;
	uint32_t k;       /* which sample */
	const char *text;
	SampleForm form;
	Ctx *ctx;
	uint32_t *failures;
} Case;

static bool bad(const Case *c, const char *what)
{
	Text t;
	text_init(&t, c->ctx->arena);
	ctx_print(c->ctx, &t);
	print_error("%s %u%s%s%s: %s\n%s", op_name(c->op), c->k,
		    c->form.symbolic ? " symbolic" : "", c->form.real ? " " : "",
		    c->form.real ? dtype_name(c->form.real) : "", what, t.n ? t.data : "");
	++*c->failures;
	return false;
}

/* ---- the recorded results ---- */

static char *recorded;

static int read_recorded(void **state)
{
	(void)state;
	FILE *f = records_open("samples");
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	long n = ftell(f);
	rewind(f);
	recorded = malloc((size_t)n + 2);
	assert_non_null(recorded);
	recorded[0] = '\n';
	assert_int_equal(fread(recorded + 1, 1, (size_t)n, f), n);
	recorded[n + 1] = 0;
	fclose(f);
	return 0;
}

static int free_recorded(void **state)
{
	(void)state;
	free(recorded);
	return 0;
}

/* The lines after "name k", or NULL. */
static const char *record_of(const Case *c)
{
	static const char *last; /* they stand in the order of the table */
	const char *line = arena_printf(c->ctx->arena, "\n%s %u\n", op_name(c->op), c->k);
	const char *p = last ? strstr(last, line) : NULL;
	p = p ? p : strstr(recorded, line);
	if (!p)
		return NULL;
	last = p;
	return p + strlen(line);
}

static const char *next_line(const char *p)
{
	p += strcspn(p, "\n");
	return p + (*p == '\n');
}

/* ---- values ---- */

static bool same_bits(const Tensor *a, const Tensor *b)
{
	Tensor x = tensor_flat_real(a), y = tensor_flat_real(b);
	if (a->dtype != b->dtype || a->rank != b->rank ||
	    memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) != 0)
		return false;
	for (int64_t i = 0, n = tensor_numel(&x); i < n; i++) {
		double v = tensor_f64(&x, i), w = tensor_f64(&y, i);
		if (!(isnan(v) && isnan(w)) && (v != w || signbit(v) != signbit(w)))
			return false;
	}
	return true;
}

/* Values recorded in f64 against f32 of intermediate steps: a few roundings (6e-8 each) of the
 * largest one. */
static bool near(double got, double want, double largest)
{
	if (isnan(want))
		return isnan(got);
	if (fabs(want) >= (double)FLT_MAX) /* f64 goes beyond */
		return fabs(got) >= (double)FLT_MAX && signbit(got) == signbit(want);
	return fabs(got - want) <= 4e-6 * fabs(want) + 2e-6 * largest + (double)FLT_MIN;
}

/* A line "= f32[3] 1 2 3" against a result. */
static bool check_result(const Case *c, const Tensor *got, const char *line)
{
	Tensor y = tensor_flat_real(got);
	int64_t n = tensor_numel(&y);
	const char *end;
	Text type;
	text_init(&type, c->ctx->arena);
	text_printf(&type, "%s[", dtype_name(got->dtype));
	for (uint32_t d = 0; d < got->rank; d++)
		text_printf(&type, "%s%lld", d ? ", " : "", (long long)got->dim[d]);
	text_printf(&type, "] ");
	line += 2;
	if (strncmp(line, "none", 4) == 0) /* a gradient that nobody asked for */
		return true;
	if (!c->form.real && strncmp(line, type.data, type.n) != 0)
		return bad(c, arena_printf(c->ctx->arena, "is %s, PyTorch gives %.*s", type.data,
					   (int)strcspn(line, "\n"), line));
	line += strcspn(line, "]") + 2;
	double *want = arena_alloc(c->ctx->arena, (size_t)(n + 1) * sizeof *want), largest = 0;
	if (*line == '?')
		return true;
	for (int64_t i = 0; i < n; i++, line = end) {
		want[i] = strtod(line, (char **)&end);
		if (end == line)
			return bad(c, "recorded values end early");
		largest = isfinite(want[i]) ? fmax(largest, fabs(want[i])) : largest;
	}
	for (int64_t i = 0; i < n; i++) {
		bool fraction = dtype_is_float(y.dtype);
		double v = fraction            ? tensor_f64(&y, i)
			   : y.dtype == DT_u64 ? (double)(uint64_t)tensor_i64(&y, i)
					       : (double)tensor_i64(&y, i);
		if (fraction ? !near(v, want[i], largest) : v != want[i])
			return bad(c, arena_printf(c->ctx->arena,
						   "element %lld is %.9g, PyTorch gives %.9g",
						   (long long)i, v, want[i]));
	}
	return true;
}

static bool check_record(const Case *c, const Tensor *out, uint32_t nout)
{
	const char *line = record_of(c);
	uint32_t k = 0;
	/* others PyTorch has as parts of operators only, or not at all; random numbers are ours
	 * (tests/text/run/random_bits.txt) */
	if (!line && strchr(op_name(c->op), '.') && op_arg_index(c->op, "rng") < 0)
		return bad(c, "nothing is recorded: tests/make/make_samples.py");
	for (; line && *line == '='; line = next_line(line), k++) {
		if (k == nout)
			return bad(c, "PyTorch gives more results");
		TRY(check_result(c, &out[k], line));
	}
	return !line || k == nout || bad(c, "PyTorch gives fewer results");
}

/* ---- expansion ---- */

/* Are the types equal, as far as can be decided? */
static bool same_type(const Ir *ir, TypeId x, TypeId y)
{
	const Type *a = ir_type_of(ir, x), *b = ir_type_of(ir, y);
	bool same = a->dtype == b->dtype && a->n == b->n;
	for (uint32_t k = 0; same && k < a->n; k++)
		same = a->dtype == DT_none ? same_type(ir, a->elem[k], b->elem[k])
					   : sym_eq(ir->syms, a->dim[k], b->dim[k]) != NO;
	return same;
}

/* Replace the composite n; *next is where to go on. */
static bool expand_node(const Case *c, Graph *g, Node n, Node *next)
{
	uint32_t errors = c->ctx->nerror;
	Node prev = node_prev(g, n);
	Build b = {.g = g, .before = n, .where = node_where(g, n)};
	Node by = op_expand_node(&b, n);
	if (c->ctx->nerror != errors)
		return bad(c, "does not expand");
	if (by.i && !same_type(g->ir, node_type_id(g, by), node_type_id(g, n)))
		return bad(c, arena_printf(c->ctx->arena, "%s: the expansion is %s, the call %s",
					   op_name(node_op(g, n)),
					   type_str(g->ir, node_type_id(g, by)),
					   type_str(g->ir, node_type_id(g, n))));
	if (by.i)
		graph_replace(g, n, by);
	graph_erase(g, n);
	*next = prev.i ? node_next(g, prev) : g->first;
	return true;
}

/* Composites become primitives level by level; true if there were some. */
static bool expand_level(const Case *c, Graph *g, bool *found)
{
	*found = false;
	uint32_t last = g->node.n; /* nodes made at this level have numbers from here on */
	for (Node n = g->first; n.i;) {
		if (op_kind(node_op(g, n)) != OP_COMPOSITE || n.i >= last) {
			n = node_next(g, n);
			continue;
		}
		*found = true;
		TRY(expand_node(c, g, n, &n));
		if (g->node.n > MAX_NODES)
			return bad(c, "the expansion has no end");
	}
	return true;
}

static bool expand_all(const Case *c, Graph *g)
{
	bool found = true;
	for (uint32_t level = 0; found; level++) {
		if (level == MAX_LEVEL)
			return bad(c, "the expansion is too deep");
		TRY(expand_level(c, g, &found));
	}
	return graph_verify(g) || bad(c, "the expansion is not valid");
}

/* ---- one sample in one form ---- */

static bool reads_back(const Case *c, Graph *g)
{
	Text t, again;
	text_init(&t, c->ctx->arena);
	text_init(&again, c->ctx->arena);
	graph_print(g, &t);
	if (getenv("OP"))
		print_message("%s", t.data);
	Graph *h = graph_parse(g->ir, t.data, "sample");
	if (!h || !graph_equal(g, h))
		return bad(c, "its text reads differently");
	graph_print(h, &again);
	return strcmp(t.data, again.data) == 0 || bad(c, "its text prints differently");
}

/* Without the numbers of constants: an Ir counts those of all its graphs. */
static const char *numberless(const Case *c, const Graph *g)
{
	Text t;
	text_init(&t, c->ctx->arena);
	graph_print(g, &t);
	for (char *p = t.data; (p = strstr(p, "const #"));) {
		size_t n = strspn(p += 7, "0123456789");
		memmove(p, p + n, strlen(p + n) + 1);
	}
	return t.data;
}

/* In an Ir with another graph that has symbols of the same names. */
static bool imports(const Case *c, const Graph *g)
{
	Ir *ir = ir_new(c->ctx);
	graph_import(ir, g);
	Graph *copy = graph_import(ir, g);
	bool same = graph_verify(copy) && strcmp(numberless(c, g), numberless(c, copy)) == 0;
	return same || bad(c, "a copy in another Ir prints differently");
}

/* Do the results of a primitive element-wise function come from its scalar function? */
static bool check_scalar(const Case *c, const Sample *s, const Tensor *out)
{
	DType in[4];
	for (uint32_t k = 0; k < s->nin; k++)
		in[k] = dtype_compute(s->in[k].dtype);
	if (dtype_is_complex(in[s->nin - 1]))
		return true;
	const ScFn *fn = scalar_fn(c->op, in, s->nin);
	Tensor one = *out;
	one.data = arena_alloc(c->ctx->arena, tensor_bytes(out) + 8);
	for (int64_t i = 0, n = tensor_numel(out); i < n; i++) {
		ScVal arg[4];
		for (uint32_t k = 0; k < s->nin; k++)
			if (dtype_is_float(in[k]))
				arg[k].f = tensor_f64(&s->in[k], i);
			else
				arg[k].i = tensor_i64(&s->in[k], i);
		ScVal y = scalar_eval(fn, arg);
		if (dtype_is_float(out->dtype))
			tensor_set_f64(&one, i, y.f);
		else
			tensor_set_i64(&one, i, y.i);
	}
	return same_bits(out, &one) || bad(c, "single values differ from typed loops");
}

/* What PyTorch gives with this dtype in place of f32: the rest of the line "~ f16 f32 i64", the
 * dtypes of the results; NULL where nothing is recorded. */
static const char *variant(const Case *c)
{
	const char *line = record_of(c);
	for (; line && (*line == '=' || *line == '~' || *line == '^'); line = next_line(line)) {
		size_t n = strlen(dtype_name(c->form.real));
		if (*line == '~' && strncmp(line + 2, dtype_name(c->form.real), n) == 0 &&
		    strchr(" \n", line[2 + n]))
			return line + 2 + n;
	}
	return NULL;
}

static bool check_case(const Case *c, Sample *s)
{
	Tensor out[MAX_RESULTS], full[MAX_RESULTS];
	uint32_t n = s->g->output.n;
	if (!graph_verify(s->g))
		return bad(c, "is not valid");
	TRY(reads_back(c, s->g) && imports(c, s->g));
	if (n > MAX_RESULTS || !interp(c->ctx, s->g, s->in, s->nin, out, n, c->ctx->arena))
		return bad(c, "does not run");
	Graph *g = graph_clone(s->g);
	TRY(expand_all(c, g) && imports(c, g));
	if (!interp(c->ctx, g, s->in, s->nin, full, n, c->ctx->arena))
		return bad(c, "its expansion does not run");
	for (uint32_t k = 0; k < n; k++)
		if (!same_bits(&out[k], &full[k]))
			return bad(c, "block and expansion differ");
	TRY(!op_is_scalar(c->op) || check_scalar(c, s, &out[0]));
	bool comparable = !c->form.real || (c->form.real == DT_f64 && variant(c));
	return !comparable || check_record(c, out, n);
}

/* Statistics of halves may be f32, or not: PyTorch's depend on the device (aten_result_dtype). */
static bool check_variant(const Case *c, const Sample *s)
{
	const char *want = variant(c);
	if (!want || *want != ' ')
		return true;
	for (uint32_t k = 0; k < s->g->output.n; k++) {
		const char *got = dtype_name(node_dtype(s->g, s->g->output.data[k].node));
		size_t n = strcspn(++want, " \n");
		bool same = strlen(got) == n && strncmp(got, want, n) == 0;
		bool half = dtype_size(c->form.real) == 2 && k > 0 &&
			    (strcmp(got, "f32") == 0 || strncmp(want, "f32", n) == 0);
		if (strncmp(want, "none", n) != 0 && !same && !half)
			return bad(c, arena_printf(c->ctx->arena,
						   "result %u is %s, PyTorch gives %.*s", k, got,
						   (int)n, want));
		want += n;
	}
	return true;
}

static void run_form(Case *c)
{
	c->ctx = ctx_new();
	assert_non_null(c->ctx);
	if (setjmp(c->ctx->unwind)) {
		bad(c, c->ctx->bug_text);
		ctx_free(c->ctx);
		return;
	}
	Ir *ir = ir_new(c->ctx);
	Sample s;
	const char *text = sample_text(c->ctx->arena, c->op, c->k);
	if (sample_build(ir, c->op, text, c->form, &s)) {
		if (check_case(c, &s) && c->form.real)
			check_variant(c, &s);
	} else if (!c->form.real) {
		bad(c, "does not build");
	} else {
		const char *accepted = variant(c);
		if (accepted && *accepted == ' ')
			bad(c, "is refused, PyTorch accepts it");
	}
	ctx_free(c->ctx);
}

/* ---- tests ---- */

static bool chosen(Op op)
{
	const char *only = sample_only();
	return !only || strcmp(only, op_name(op)) == 0;
}

static void every_op_has_samples(void **state)
{
	(void)state;
	uint32_t failures = 0;
	for (Op op = 1; op < op_count(); op++)
		if (!op_info(op)->sample == !op_info(op)->no_sample) {
			print_error("%s: expected a sample or the reason why there is none\n",
				    op_name(op));
			failures++;
		}
	assert_int_equal(failures, 0);
}

static void run_samples(const SampleForm *form, uint32_t nform)
{
	uint32_t failures = 0;
	for (Op op = 1; op < op_count(); op++)
		for (uint32_t k = 0, n = chosen(op) ? sample_count(op) : 0; k < n; k++)
			for (uint32_t f = 0; f < nform; f++)
				run_form(&(Case){
					.op = op, .k = k, .form = form[f], .failures = &failures});
	assert_int_equal(failures, 0);
}

static void samples(void **state)
{
	(void)state;
	const SampleForm forms[] = {{0}, {.symbolic = true}, {.real = DT_f64}};
	run_samples(forms, 3);
}

static void other_dtypes(void **state)
{
	(void)state;
	const SampleForm forms[] = {{.real = DT_f16}, {.real = DT_bf16}, {.real = DT_i64},
				    {.real = DT_i32}, {.real = DT_u8}, {.real = DT_bool}};
	run_samples(forms, 6);
}

/* ---- derivatives ---- */

enum { MIN_POINTS = 4 };

/* The operands of one element as f64, and y. */
typedef struct {
	const ScFn *fn, *deriv;
	uint32_t n, k; /* by operand k */
	ScVal arg[5];
} Point;

static double shifted(const Point *p, double by)
{
	ScVal arg[4];
	memcpy(arg, p->arg, sizeof arg);
	arg[p->k].f += by;
	return scalar_eval(p->fn, arg).f;
}

/* The central difference; false where it says nothing: far out, where values are not finite, or
 * where one-sided differences or those of twice the step are not the same, so at a kink or a jump,
 * whose convention is PyTorch's. */
static bool difference(const Point *p, double *out)
{
	double x = p->arg[p->k].f, h = 6e-6 * fmax(1, fabs(x)), y = p->arg[p->n].f;
	double up = (shifted(p, h) - y) / h, down = (y - shifted(p, -h)) / h;
	*out = (up + down) / 2;
	double twice = (shifted(p, 2 * h) - shifted(p, -2 * h)) / (4 * h),
	       near = 1e-3 * (1 + fabs(*out));
	return fabs(x) <= 100 && isfinite(*out) && fabs(up - down) <= near &&
	       fabs(twice - *out) <= near;
}

/* The error of a central difference of step h = 6e-6 max(1, |x|) is h^2/6 of the third derivative,
 * a few 1e-11 at these points, and two roundings of y by h: 4e-11 of y. Where the second derivative
 * jumps (i1e at 0), h/2 remains. */
static bool check_difference(const Case *c, const Point *p, double got, uint32_t *points)
{
	double want;
	if (!difference(p, &want))
		return true;
	++*points;
	return fabs(got - want) <= 4e-6 * (1 + fabs(want) + fabs(p->arg[p->n].f)) ||
	       bad(c, arena_printf(
			      c->ctx->arena,
			      "derivative by operand %u at %.17g is %.17g, differences give %.17g",
			      p->k, p->arg[p->k].f, got, want));
}

/* The recorded derivative by operand k, NULL if there is none. */
static const char *recorded_deriv(const Case *c, uint32_t k)
{
	for (const char *line = record_of(c); line && strchr("=~^", *line) && *line;
	     line = next_line(line))
		if (*line == '^' && strtoul(line + 2, NULL, 10) == k)
			return line + 3;
	return NULL;
}

static bool check_derivs(const Case *c, const Sample *s, uint32_t k, uint32_t *points)
{
	DType in[4];
	for (uint32_t j = 0; j < s->nin; j++)
		in[j] = s->in[j].dtype;
	Point p = {.fn = scalar_fn(c->op, in, s->nin),
		   .deriv = scalar_deriv(c->op, k, in, s->nin),
		   .n = s->nin,
		   .k = k};
	if (in[k] != DT_f64)
		return true;
	if (!p.fn || !p.deriv)
		return bad(c, "has no derivative");
	const char *line = recorded_deriv(c, k);
	for (int64_t i = 0, n = tensor_numel(&s->in[k]); i < n; i++) {
		for (uint32_t j = 0; j < s->nin; j++)
			if (in[j] == DT_f64)
				p.arg[j].f = tensor_f64(&s->in[j], i);
			else
				p.arg[j].i = tensor_i64(&s->in[j], i);
		p.arg[s->nin] = scalar_eval(p.fn, p.arg);
		double got = scalar_eval(p.deriv, p.arg).f;
		TRY(check_difference(c, &p, got, points));
		double want = line ? strtod(line, (char **)&line) : got;
		if (!near(got, want, 0))
			return bad(c, arena_printf(c->ctx->arena,
						   "derivative by operand %u at %.9g is %.9g, "
						   "PyTorch gives %.9g",
						   k, p.arg[k].f, got, want));
	}
	return true;
}

/* Is operand k a real number, of a function whose result is one? */
static bool is_real(Op op, uint32_t k)
{
	uint32_t n = op_schema(op)->narg;
	DType in[4] = {n == 3 ? DT_bool : DT_f64, DT_f64, DT_f64, DT_f64};
	return in[k] == DT_f64 && scalar_fn(op, in, n) && op_info(op)->result == DT_none;
}

static void check_sample_derivs(Case *c, uint32_t operand, uint32_t *points)
{
	c->ctx = ctx_new();
	assert_non_null(c->ctx);
	Sample s;
	const char *text = sample_text(c->ctx->arena, c->op, c->k);
	if (setjmp(c->ctx->unwind))
		bad(c, c->ctx->bug_text);
	else if (!sample_build(ir_new(c->ctx), c->op, text, c->form, &s))
		bad(c, "does not build");
	else
		check_derivs(c, &s, operand, points);
	ctx_free(c->ctx);
}

static void check_operand(Op op, uint32_t k, uint32_t *failures)
{
	Case c = {.op = op, .form = {.real = DT_f64}, .failures = failures};
	uint32_t points = 0, n = sample_count(op), before = *failures;
	for (c.k = 0; c.k < n; c.k++)
		check_sample_derivs(&c, k, &points);
	if (points < MIN_POINTS && *failures == before) {
		print_error("%s: the derivative by operand %u is seen at %u points only\n",
			    op_name(op), k, points);
		++*failures;
	}
}

static void derivatives(void **state)
{
	(void)state;
	uint32_t failures = 0;
	for (Op op = 1; op < op_count(); op++) {
		bool all = true;
		if (!chosen(op))
			continue;
		for (uint32_t k = 0; op_is_scalar(op) && k < op_schema(op)->narg; k++) {
			bool has = op_info(op)->deriv[k];
			all = all && (has || !is_real(op, k));
			if (has)
				check_operand(op, k, &failures);
		}
		if (op_is_scalar(op) && all == !!op_info(op)->no_deriv) {
			print_error("%s: expected a derivative by each real operand, or the reason "
				    "why there is none\n",
				    op_name(op));
			failures++;
		}
	}
	assert_int_equal(failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_op_has_samples),
		cmocka_unit_test(samples),
		cmocka_unit_test(other_dtypes),
		cmocka_unit_test(derivatives),
	};
	return cmocka_run_group_tests(tests, read_recorded, free_recorded);
}
