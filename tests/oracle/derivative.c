#include "tests/oracle/derivative.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "ir/build/text.h"
#include "ir/interp/interp.h"
#include "transform/transform.h"

/* ---- graphs ---- */

/* The constants of the graph, fractions in f64. */
static void wide_constants(const Ir *from, Ir *to)
{
	for (uint32_t k = 1; k < from->constant.n; k++) {
		Const c = from->constant.data[k];
		Tensor x = {.dtype = c.dtype, .rank = c.rank, .data = (void *)(uintptr_t)c.data};
		memcpy(x.dim, c.dim, c.rank * sizeof *c.dim);
		Tensor y = x;
		y.dtype = dtype_is_float(c.dtype) ? DT_f64 : c.dtype;
		y.data = arena_alloc(to->ctx->arena, tensor_bytes(&y) + 1);
		for (int64_t i = 0; i < tensor_numel(&x); i++)
			if (dtype_is_float(c.dtype))
				tensor_set_f64(&y, i, tensor_f64(&x, i));
			else
				tensor_set_i64(&y, i, tensor_i64(&x, i));
		ir_const(to, (Const){.name = c.name,
				     .dtype = y.dtype,
				     .rank = c.rank,
				     .is_param = c.is_param,
				     .dim = c.dim,
				     .data = y.data,
				     .bytes = tensor_bytes(&y)});
	}
}

/* A word of the text that is a dtype to be widened; its length, or 0. */
static size_t narrow_word(const char *p, const char **wide)
{
	static const char *const narrow[] = {"f8e4m3", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz",
					     "bf16",   "f16",    "f32",        "c64"};
	for (uint32_t k = 0; k < 8; k++) {
		size_t n = strlen(narrow[k]);
		*wide = k == 7 ? "c128" : "f64";
		if (!strncmp(p, narrow[k], n) && !isalnum((unsigned char)p[-1]) &&
		    !isalnum((unsigned char)p[n]))
			return n;
	}
	return 0;
}

Graph *graph_widened(const Graph *g)
{
	Ctx *ctx = g->ir->ctx;
	Ir *ir = ir_new(ctx);
	Text t, u;
	text_init(&t, ctx->arena);
	text_init(&u, ctx->arena);
	wide_constants(g->ir, ir);
	graph_print(g, &t);
	text_char(&u, *t.data);
	for (const char *p = t.data + 1; *p;) {
		const char *wide = "";
		size_t n = narrow_word(p, &wide);
		if (!strncmp(p, " sha=", 5)) /* of other values */
			p += 5 + strspn(p + 5, "0123456789abcdef");
		else if (n)
			text_add(&u, wide), p += n;
		else
			text_char(&u, *p++);
	}
	return graph_parse(ir, u.data, "wide");
}

/* ---- messages ---- */

static bool bad(Derivative *d, const char *what)
{
	Text t;
	text_init(&t, d->ctx->arena);
	text_printf(&t, "%s: %s\n", d->what, what);
	ctx_print(d->ctx, &t);
	d->failed(d->user, t.data);
	return false;
}
#define BAD(d, ...) bad(d, arena_printf((d)->ctx->arena, __VA_ARGS__))

/* ---- values ---- */

static bool is_real(DType d)
{
	return dtype_is_float(d) || dtype_is_complex(d);
}

/* -1 .. 1 */
static double random_value(Derivative *d)
{
	d->rng = d->rng * 6364136223846793005u + 1442695040888963407u;
	return (double)(d->rng >> 40) / (double)(1 << 23) - 1;
}

static Tensor copy_of(Derivative *d, const Tensor *x)
{
	Tensor y = *x;
	y.data = arena_alloc(d->ctx->arena, tensor_bytes(x) + 1);
	memcpy(y.data, x->data, tensor_bytes(x));
	return y;
}

/* x + by * random */
static Tensor moved(Derivative *d, const Tensor *x, double keep, double by)
{
	Tensor y = copy_of(d, x), flat = tensor_flat_real(&y);
	for (int64_t i = 0; i < tensor_numel(&flat); i++)
		tensor_set_f64(&flat, i, keep * tensor_f64(&flat, i) + by * random_value(d));
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

bool point_of(Graph *g, const Tensor *in, uint32_t nin, Arena *a, Point *p)
{
	bool any = false, out = false, *wrt = arena_calloc(a, nin + 1, sizeof *wrt);
	for (uint32_t k = 0; k < nin; k++)
		any |= wrt[k] = is_real(in[k].dtype);
	for (uint32_t k = 0; k < g->output.n; k++)
		out |= is_real(node_dtype(g, g->output.data[k].node));
	*p = (Point){g, nin, in, wrt};
	return any && out;
}

static void moderate(Derivative *d, Tensor *x)
{
	Tensor flat = tensor_flat_real(x);
	for (int64_t i = 0; i < tensor_numel(&flat); i++)
		if (!(fabs(tensor_f64(&flat, i)) < 20))
			tensor_set_f64(&flat, i, 2 * random_value(d));
}

Point point_near(Derivative *d, Point p)
{
	Tensor *in = arena_dup(d->ctx->arena, p.in, p.nin * sizeof *in);
	for (uint32_t k = 0; k < p.nin; k++)
		if (p.wrt[k])
			in[k] = moved(d, &p.in[k], 1, 0.02);
	for (uint32_t k = 0; k < p.nin; k++)
		if (p.wrt[k])
			moderate(d, &in[k]);
	p.in = in;
	return p;
}

static Tensor *evaluate(Derivative *d, Graph *g, const Tensor *in, uint32_t nin)
{
	Tensor *out = arena_calloc(d->ctx->arena, g->output.n + 1, sizeof *out);
	if (interp(d->ctx, g, in, nin, out, g->output.n, d->ctx->arena))
		return out;
	bad(d, "does not run");
	return NULL;
}

/* ---- differences ---- */

/* The values of outputs at in + h t. */
static Tensor *displaced(Derivative *d, const Point *p, const Tensor *t, double h)
{
	Tensor *in = arena_dup(d->ctx->arena, p->in, p->nin * sizeof *in);
	for (uint32_t k = 0, at = 0; k < p->nin; k++) {
		if (!p->wrt[k])
			continue;
		in[k] = copy_of(d, &p->in[k]);
		Tensor x = tensor_flat_real(&in[k]), by = tensor_flat_real(&t[at++]);
		for (int64_t i = 0; i < tensor_numel(&x); i++)
			tensor_set_f64(&x, i, tensor_f64(&x, i) + h * tensor_f64(&by, i));
	}
	return evaluate(d, p->g, in, p->nin);
}

/* A kink that is near a point is not between it and a smaller step. */
static const double difference_steps[] = {1e-3, 1e-4, 1e-5};
enum { NSTEP = sizeof difference_steps / sizeof *difference_steps };

/* From values at -2h, -h, h, 2h and at the point; false where they do not tell: *error bounds how
 * far off it is. */
static bool difference(const double *f, double f0, double h, double *value, double *error)
{
	double one = (f[2] - f[1]) / (2 * h), two = (f[3] - f[0]) / (4 * h);
	/* one-sided differences are h f'' apart: at a kink they do not come closer with h */
	double near = fabs(f[2] - 2 * f0 + f[1]) / h, far = fabs(f[3] - 2 * f0 + f[0]) / (2 * h);
	*value = (4 * one - two) / 3;
	double scale = fmax(1, fmax(fabs(f0), fabs(*value)));
	*error = 2 * fabs(one - two) + 1e-8 * scale; /* so that it holds where f'' jumps */
	bool kink = far > 1e-6 * scale && (near > 0.6 * far || near < 0.4 * far);
	return isfinite(*value) && isfinite(f0) && !kink && fabs(one - two) <= 1e-3 * scale;
}

/* Of one step; `checked` counts elements. What does not fit is told to `why`. */
static bool fits_differences(Derivative *d, const Point *p, const Tensor *out, const Tensor *t,
			     const Tensor *jy, double h, const char **why)
{
	const double step[] = {-2, -1, 1, 2};
	Tensor *at[4];
	*why = NULL;
	for (uint32_t k = 0; k < 4; k++)
		TRY((at[k] = displaced(d, p, t, step[k] * h)) != NULL);
	for (uint32_t k = 0, j = 0; k < p->g->output.n; k++) {
		if (!is_real(out[k].dtype))
			continue;
		Tensor y = tensor_flat_real(&out[k]), tangent = tensor_flat_real(&jy[j++]), v[4];
		for (uint32_t s = 0; s < 4; s++)
			v[s] = tensor_flat_real(&at[s][k]);
		for (int64_t i = 0; i < tensor_numel(&y); i++) {
			double f[4], want, error, got = tensor_f64(&tangent, i);
			for (uint32_t s = 0; s < 4; s++)
				f[s] = tensor_f64(&v[s], i);
			if (!difference(f, tensor_f64(&y, i), h, &want, &error))
				continue;
			d->checked++;
			if (fabs(got - want) <= error)
				continue;
			*why = arena_printf(
				d->ctx->arena,
				"output %u: tangent %lld is %.12g, differences give %.12g", k,
				(long long)i, got, want);
			return false;
		}
	}
	return true;
}

static bool check_differences(Derivative *d, const Point *p, const Tensor *out, const Tensor *t,
			      const Tensor *jy)
{
	const char *why = NULL;
	for (uint32_t k = 0; k < NSTEP; k++) {
		uint32_t checked = d->checked;
		if (fits_differences(d, p, out, t, jy, difference_steps[k], &why))
			return true;
		if (!why) /* it does not run, which has been told */
			return false;
		d->checked = k + 1 < NSTEP ? checked : d->checked;
	}
	return bad(d, why);
}

/* ---- the graphs ---- */

static bool reads_back(Derivative *d, Graph *g)
{
	Text t, u;
	text_init(&t, d->ctx->arena);
	text_init(&u, d->ctx->arena);
	graph_print(g, &t);
	if (d->print) {
		text_printf(&u, "; %s\n%s", d->what, t.data);
		d->failed(d->user, u.data);
		text_init(&u, d->ctx->arena);
	}
	Graph *again = graph_parse(g->ir, t.data, "text");
	if (again)
		graph_print(again, &u);
	return (again && strcmp(t.data, u.data) == 0) || bad(d, "does not read back");
}

static bool has_real(const Graph *g, Node n)
{
	return n.i && node_type_id(g, n).i &&
	       (node_dtype(g, n) == DT_none || is_real(node_dtype(g, n)));
}

/* Every node that a derivative could flow through has a rule. */
static bool closed(Derivative *d, const Graph *g)
{
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		Op op = node_op(g, n);
		bool real = false;
		const Graph *body;
		for (uint32_t k = 0; (body = node_next_body(g, n, &k));)
			TRY(closed(d, body));
		for (uint32_t k = 0; k < node_nin(g, n); k++)
			real |= has_real(g, node_in(g, n, k));
		if (real && has_real(g, n) && !node_has_graph(g, n) && op != OP_get &&
		    op != OP_tuple && !op_has_vjp(op) && !op_info(op)->no_deriv)
			return BAD(d, "has %s, which has no rule", op_name(op));
	}
	return true;
}

/* Random values in the place of those of x[] that count, behind the inputs of p. */
static Point extended(Derivative *d, const Point *p, Graph *g, const Tensor *x, uint32_t n,
		      const bool *counts)
{
	Tensor *in = ARENA_ARRAY(d->ctx->arena, Tensor, p->nin + n);
	bool *wrt = arena_calloc(d->ctx->arena, p->nin + n + 1, sizeof *wrt);
	uint32_t nin = p->nin;
	memcpy(in, p->in, p->nin * sizeof *in);
	memcpy(wrt, p->wrt, p->nin * sizeof *wrt);
	for (uint32_t k = 0; k < n; k++)
		if (counts ? counts[k] : is_real(x[k].dtype)) {
			wrt[nin] = true;
			in[nin++] = moved(d, &x[k], 0, 1);
		}
	return (Point){g, nin, in, wrt};
}

bool derivative_check(Derivative *d, Point p, Point *vjp, Point *jvp)
{
	uint32_t nout = p.g->output.n;
	Tensor *out = evaluate(d, p.g, p.in, p.nin);
	TRY(out);
	Graph *v = transform_vjp(p.g, &(Wrt){.input = p.wrt}),
	      *j = v ? transform_jvp(p.g, &(Wrt){.input = p.wrt}) : NULL;
	if (!j)
		return bad(d, "has no derivative");
	TRY(reads_back(d, v) && reads_back(d, j) && closed(d, v) && closed(d, j));
	*vjp = extended(d, &p, v, out, nout, NULL);
	*jvp = extended(d, &p, j, p.in, p.nin, p.wrt);
	Tensor *of_vjp = evaluate(d, v, vjp->in, vjp->nin),
	       *of_jvp = of_vjp ? evaluate(d, j, jvp->in, jvp->nin) : NULL;
	TRY(of_jvp);
	double left = 0, right = 0, size = 0;
	for (uint32_t k = p.nin; k < vjp->nin; k++)
		left += dot(&vjp->in[k], &of_jvp[nout + k - p.nin], &size);
	for (uint32_t k = p.nin; k < jvp->nin; k++)
		right += dot(&jvp->in[k], &of_vjp[nout + k - p.nin], &size);
	if (!d->no_products && isfinite(size) && fabs(left - right) > 1e-11 * size + 1e-14)
		return BAD(d, "<ct, J t> is %.15g, <J' ct, t> %.15g", left, right);
	return d->no_differences || check_differences(d, &p, out, jvp->in + p.nin, of_jvp + nout);
}

/* Up to the rounding of sums whose terms are as large as the largest value of either, or as 1. */
static bool equal_products(Derivative *d, const Tensor *forward, const Tensor *reverse, uint32_t n)
{
	double size = 1;
	for (uint32_t k = 0; k < n; k++) {
		Tensor x = tensor_flat_real(&forward[k]), y = tensor_flat_real(&reverse[k]);
		for (int64_t i = 0; i < tensor_numel(&x); i++)
			size = fmax(size, fmax(fabs(tensor_f64(&x, i)), fabs(tensor_f64(&y, i))));
	}
	for (uint32_t k = 0; k < n; k++) {
		Tensor x = tensor_flat_real(&forward[k]), y = tensor_flat_real(&reverse[k]);
		for (int64_t i = 0; i < tensor_numel(&x); i++) {
			double a = tensor_f64(&x, i), b = tensor_f64(&y, i);
			bool same = fabs(a - b) <= 1e-11 * size || a == b || (isnan(a) && isnan(b));
			if (!same)
				return BAD(d,
					   "gradient %u: element %lld of the Hessian's product is "
					   "%.15g forwards and %.15g backwards",
					   k, (long long)i, a, b);
			d->products++;
		}
	}
	return true;
}

/* The Hessian of <ct, f> times t: the tangent of the gradient along t, and the gradient of the
 * gradient's product with t, are equal, since a Hessian is symmetric. vjp: of p. */
static bool check_hessian(Derivative *d, const Point *p, const Point *vjp)
{
	uint32_t nout = p->g->output.n, n = vjp->g->output.n - nout;
	bool *by = arena_calloc(d->ctx->arena, vjp->nin + 1, sizeof *by),
	     *of = arena_calloc(d->ctx->arena, nout + n, sizeof *of);
	memcpy(by, p->wrt, p->nin * sizeof *by);
	memset(of + nout, true, n * sizeof *of);
	Graph *forward = transform_jvp(vjp->g, &(Wrt){.input = by});
	Graph *reverse = forward ? transform_vjp(vjp->g, &(Wrt){.input = by, .output = of}) : NULL;
	if (!reverse)
		return bad(d, "a gradient has no derivative");
	/* a tangent of each input is a cotangent of its gradient */
	Point at = extended(d, vjp, forward, p->in, p->nin, p->wrt);
	Tensor *x = evaluate(d, forward, at.in, at.nin),
	       *y = x ? evaluate(d, reverse, at.in, at.nin) : NULL;
	return y && equal_products(d, x + forward->output.n - n, y + reverse->output.n - n, n);
}

bool derivative_check_twice(Derivative *d, Point p)
{
	Point vjp, jvp, of_vjp, of_jvp;
	d->what = "first derivative";
	bool ok = derivative_check(d, p, &vjp, &jvp);
	d->first = d->checked;
	if (!ok || d->no_second)
		return ok;
	d->what = "second derivative";
	TRY(d->no_products || d->no_hessian || check_hessian(d, &p, &vjp));
	d->what = "derivative of vjp";
	TRY(derivative_check(d, vjp, &of_vjp, &of_jvp));
	d->what = "derivative of jvp";
	return derivative_check(d, jvp, &of_vjp, &of_jvp);
}
