/* Derivatives of every primitive and scalar function, from its samples in f64 (the language: ir/ops/op.h):
 *   - <ct, J t> = <J' ct, t>, at the values of the sample and near them;
 *   - tangents are differences of values, where these say what the derivative is;
 *   - both for the result of vjp and of jvp again: second derivatives, in every nesting;
 *   - sizes as symbols give what numbers give;
 *   - the results verify, read back from their text, and have only nodes that can be derived again.
 * OP=name in the environment: that op alone, composites too, its graphs printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/interp/interp.h"
#include "passes/transform.h"
#include "tests/sample.h"

enum { MOST = 96 }; /* inputs or results of a derivative */

typedef struct {
	Op op;
	uint32_t k; /* which sample */
	bool symbolic, near; /* near the sample's values, where there are fewer kinks */
	const char *what;    /* "vjp of jvp" */
	Ctx *ctx;
	uint64_t rng;
	uint32_t *failures, *checked;
} Case;

static bool bad(const Case *c, const char *what)
{
	Text t;
	text_init(&t, c->ctx->arena);
	ctx_print(c->ctx, &t);
	print_error("%s %u%s%s, %s: %s\n%s", op_name(c->op), c->k, c->symbolic ? " symbolic" : "", c->near ? " near" : "", c->what,
		    what, t.n ? t.data : "");
	++*c->failures;
	return false;
}

/* ---- what has no derivative ---- */

/* Float to float, and yet none: the reason. */
static const char *without(Op op)
{
	static const struct {
		Op op;
		const char *why;
	} none[] = {
		{OP_nextafter, "a step of the last place"},
		{OP_igamma, "by the order"},
		{OP_igammac, "by the order"},
		{OP_digamma, "the second: polygamma functions of higher order are not in the table"},
	};
	for (uint32_t k = 0; k < sizeof none / sizeof *none; k++)
		if (none[k].op == op)
			return none[k].why;
	return NULL;
}

/* ---- values ---- */

static double random_value(Case *c)
{
	c->rng = c->rng * 6364136223846793005u + 1442695040888963407u;
	return (double)(c->rng >> 40) / (double)(1 << 23) - 1; /* -1 .. 1 */
}

static bool is_real(DType d)
{
	return dtype_is_float(d) || dtype_is_complex(d);
}

static Tensor copy_of(Case *c, const Tensor *x)
{
	Tensor y = *x;
	y.data = arena_alloc(c->ctx->arena, tensor_bytes(x) + 1);
	memcpy(y.data, x->data, tensor_bytes(x));
	return y;
}

static Tensor random_like(Case *c, const Tensor *x)
{
	Tensor y = copy_of(c, x), flat = tensor_flat_real(&y);
	for (int64_t i = 0; i < tensor_numel(&flat); i++)
		tensor_set_f64(&flat, i, random_value(c));
	return y;
}

static double dot(const Tensor *x, const Tensor *y, double *size)
{
	Tensor a = tensor_flat_real(x), b = tensor_flat_real(y);
	double sum = 0;
	for (int64_t i = 0; i < tensor_numel(&a); i++) {
		double p = tensor_f64(&a, i) * tensor_f64(&b, i);
		sum += p;
		*size += fabs(p);
	}
	return sum;
}

/* ---- one graph: its tangents against its cotangents and against differences ---- */

typedef struct {
	Graph *g;
	uint32_t nin;
	Tensor in[MOST], out[MOST];
	bool wrt[MOST];
} Point;

static bool evaluate(Case *c, Graph *g, const Tensor *in, uint32_t nin, Tensor *out)
{
	return interp(c->ctx, g, in, nin, out, g->output.n, c->ctx->arena) || bad(c, "does not run");
}

/* The values of outputs at in + h t. */
static bool displaced(Case *c, const Point *p, const Tensor *t, double h, Tensor *out)
{
	Tensor in[MOST];
	for (uint32_t k = 0, at = 0; k < p->nin; k++) {
		in[k] = p->in[k];
		if (!p->wrt[k])
			continue;
		in[k] = copy_of(c, &p->in[k]);
		Tensor x = tensor_flat_real(&in[k]), by = tensor_flat_real(&t[at++]);
		for (int64_t i = 0; i < tensor_numel(&x); i++)
			tensor_set_f64(&x, i, tensor_f64(&x, i) + h * tensor_f64(&by, i));
	}
	return evaluate(c, p->g, in, p->nin, out);
}

/* Of the same shapes at all displacements: else results' sizes depend on data. */
static bool check_differences(Case *c, const Point *p, const Tensor *t, const Tensor *jy)
{
	const double h = 1e-3;
	Tensor at[4][MOST]; /* -2h, -h, h, 2h */
	/* PyTorch has no derivative by the exponent of what is 0 where the exponent is */
	if (c->op == OP_pow && !c->near)
		return true;
	const double step[] = {-2, -1, 1, 2};
	for (uint32_t k = 0; k < 4; k++)
		TRY(displaced(c, p, t, step[k] * h, at[k]));
	for (uint32_t k = 0, j = 0; k < p->g->output.n; k++) {
		if (!is_real(p->out[k].dtype))
			continue;
		Tensor y = tensor_flat_real(&p->out[k]), d = tensor_flat_real(&jy[j++]), v[4];
		for (uint32_t s = 0; s < 4; s++)
			v[s] = tensor_flat_real(&at[s][k]);
		for (int64_t i = 0; i < tensor_numel(&y); i++) {
			double f[4], f0 = tensor_f64(&y, i), got = tensor_f64(&d, i);
			for (uint32_t s = 0; s < 4; s++)
				f[s] = tensor_f64(&v[s], i);
			double one = (f[2] - f[1]) / (2 * h), two = (f[3] - f[0]) / (4 * h), want = (4 * one - two) / 3;
			/* one-sided differences differ by h f'': at a kink they do not come closer with h */
			double near = fabs(f[2] - 2 * f0 + f[1]) / h, far = fabs(f[3] - 2 * f0 + f[0]) / (2 * h);
			double scale = fmax(1, fmax(fabs(f0), fabs(want)));
			if (!isfinite(want) || !isfinite(f0) || (far > 1e-6 * scale && (near > 0.6 * far || near < 0.4 * far)) ||
			    fabs(one - two) > 1e-3 * scale)
				continue;
			++*c->checked;
			if (!(fabs(got - want) <= 0.05 * fabs(one - two) + 1e-8 * scale))
				return bad(c, arena_printf(c->ctx->arena, "output %u: tangent %lld is %.12g, differences give %.12g", k,
							   (long long)i, got, want));
		}
	}
	return true;
}

static bool read_back(Case *c, Graph *g)
{
	Text t, u;
	text_init(&t, c->ctx->arena);
	text_init(&u, c->ctx->arena);
	graph_print(g, &t);
	if (getenv("OP"))
		print_message("; %s\n%s", c->what, t.data);
	Graph *again = graph_parse(g->ir, t.data, "text");
	if (again)
		graph_print(again, &u);
	return (again && strcmp(t.data, u.data) == 0) || bad(c, "does not read back");
}

/* Every node that a derivative could flow through has a rule. */
static bool closed(Case *c, const Graph *g)
{
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		Op op = node_op(g, n);
		const Schema *s = op_schema(op);
		bool real = false, graphs = false;
		for (uint32_t k = 0; k < s->narg; k++)
			if (s->arg[k].kind == ARG_graph) {
				graphs = true;
				TRY(closed(c, ir_attr(g->ir, node_data(g, n)->attr, k)->graph));
			}
		for (uint32_t k = 0; k < node_nin(g, n); k++)
			real |= node_in(g, n, k).i && is_real(node_dtype(g, node_in(g, n, k)));
		bool result = node_type_id(g, n).i && (node_dtype(g, n) == DT_none || is_real(node_dtype(g, n)));
		if (real && result && !graphs && op != OP_get && op != OP_tuple && !op_has_vjp(op) && !without(op) &&
		    !op_info(op)->no_deriv)
			return bad(c, arena_printf(c->ctx->arena, "has %s, which has no rule", op_name(op)));
	}
	return true;
}

/* Cotangents of its results and tangents of what it is derived by, and both derivatives. */
static bool check_point(Case *c, Point *p, Point *vjp, Point *jvp)
{
	uint32_t nct = 0, nt = 0;
	Tensor ct[MOST], t[MOST];
	vjp->g = transform_vjp(p->g, &(Wrt){.input = p->wrt});
	jvp->g = vjp->g ? transform_jvp(p->g, &(Wrt){.input = p->wrt}) : NULL;
	if (!vjp->g || !jvp->g)
		return bad(c, "has no derivative");
	TRY(read_back(c, vjp->g) && read_back(c, jvp->g) && closed(c, vjp->g) && closed(c, jvp->g));
	memcpy(vjp->in, p->in, p->nin * sizeof *p->in);
	memcpy(jvp->in, p->in, p->nin * sizeof *p->in);
	memcpy(vjp->wrt, p->wrt, sizeof p->wrt);
	memcpy(jvp->wrt, p->wrt, sizeof p->wrt);
	for (uint32_t k = 0; k < p->g->output.n; k++)
		if (is_real(p->out[k].dtype)) {
			vjp->in[p->nin + nct] = ct[nct] = random_like(c, &p->out[k]);
			vjp->wrt[p->nin + nct++] = true;
		}
	for (uint32_t k = 0; k < p->nin; k++)
		if (p->wrt[k]) {
			jvp->in[p->nin + nt] = t[nt] = random_like(c, &p->in[k]);
			jvp->wrt[p->nin + nt++] = true;
		}
	vjp->nin = p->nin + nct;
	jvp->nin = p->nin + nt;
	TRY(evaluate(c, vjp->g, vjp->in, vjp->nin, vjp->out) && evaluate(c, jvp->g, jvp->in, jvp->nin, jvp->out));
	double left = 0, right = 0, size = 0;
	uint32_t nout = p->g->output.n;
	for (uint32_t k = 0; k < nct; k++)
		left += dot(&ct[k], &jvp->out[nout + k], &size);
	for (uint32_t k = 0; k < nt; k++)
		right += dot(&t[k], &vjp->out[nout + k], &size);
	if (isfinite(size) && fabs(left - right) > 1e-11 * size + 1e-14)
		return bad(c, arena_printf(c->ctx->arena, "<ct, J t> is %.15g, <J' ct, t> %.15g", left, right));
	return check_differences(c, p, t, jvp->out + nout);
}

/* ---- samples ---- */

/* First and second derivatives. */
static bool check_orders(Case *c, Point *p)
{
	static Point first[2], second[2];
	c->what = "first derivative";
	TRY(check_point(c, p, &first[0], &first[1]));
	c->what = "derivative of vjp";
	TRY(check_point(c, &first[0], &second[0], &second[1]));
	c->what = "derivative of jvp";
	return check_point(c, &first[1], &second[0], &second[1]);
}

static bool is_fit(const Tensor *t)
{
	Tensor x = tensor_flat_real(t);
	bool fit = x.dtype == DT_f64;
	for (int64_t i = 0; fit && i < tensor_numel(&x); i++)
		fit = fabs(tensor_f64(&x, i)) < 100;
	return fit;
}

/* Are there values to derive, and by, of which differences can be taken? */
static bool has_point(Case *c, const Sample *s, Point *p)
{
	bool in = false, out = false;
	*p = (Point){.g = s->g, .nin = s->nin};
	for (uint32_t k = 0; k < s->nin; k++) {
		p->in[k] = s->in[k];
		p->wrt[k] = is_real(s->in[k].dtype);
		in |= p->wrt[k];
		if (p->wrt[k] && !is_fit(&s->in[k]))
			return false;
	}
	for (uint32_t k = 0; k < s->g->output.n; k++)
		out |= is_real(node_dtype(s->g, s->g->output.data[k].node));
	if (c->near)
		for (uint32_t k = 0; k < s->nin; k++)
			if (p->wrt[k]) {
				p->in[k] = copy_of(c, &p->in[k]);
				Tensor x = tensor_flat_real(&p->in[k]);
				for (int64_t i = 0; i < tensor_numel(&x); i++)
					tensor_set_f64(&x, i, tensor_f64(&x, i) + 0.02 * random_value(c));
			}
	return in && out;
}

static void run_case(Case *c)
{
	static Point p;
	Sample s;
	c->ctx = ctx_new();
	assert_non_null(c->ctx);
	if (setjmp(c->ctx->unwind)) {
		bad(c, c->ctx->bug_text);
		ctx_free(c->ctx);
		return;
	}
	c->what = "value";
	const char *text = sample_text(c->ctx->arena, c->op, c->k);
	SampleForm form = {.symbolic = c->symbolic, .real = DT_f64};
	if (sample_build(ir_new(c->ctx), c->op, text, form, &s) && has_point(c, &s, &p) &&
	    evaluate(c, p.g, p.in, p.nin, p.out))
		check_orders(c, &p);
	ctx_free(c->ctx);
}

static bool chosen(Op op)
{
	const char *only = getenv("OP");
	if (only)
		return strcmp(only, op_name(op)) == 0;
	return op_kind(op) != OP_COMPOSITE && !without(op) && !op_info(op)->no_deriv;
}

static uint32_t count_samples(Op op)
{
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	uint32_t n = 0;
	while (sample_text(ctx->arena, op, n))
		n++;
	ctx_free(ctx);
	return n;
}

static void samples(void **state)
{
	(void)state;
	uint32_t failures = 0, checked = 0;
	for (Op op = 1; op < OP_COUNT; op++)
		for (uint32_t k = 0, n = chosen(op) ? count_samples(op) : 0; k < n; k++)
			for (uint32_t form = 0; form < 4; form++)
				run_case(&(Case){.op = op, .k = k, .symbolic = form & 1, .near = form >> 1, .rng = op * 977u + k,
						 .failures = &failures, .checked = &checked});
	print_message("%u tangents are differences of values\n", checked);
	assert_int_equal(failures, 0);
}

int main(void)
{
	op_init();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
