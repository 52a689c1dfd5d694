/* Derivatives and batches of a graph, against each other and compiled. */
#include "derive_check.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "derivative.h"
#include "ir/interp/interp.h"
#include "tests/help/model.h"
#include "transform/transform.h"

enum { MAX_SIZES = 3, LANES = 3 };

static bool differs(DeriveCheck *r, const char *fmt, const char *what)
{
	if (!r->how[0])
		snprintf(r->how, sizeof r->how, fmt, what);
	return false;
}

/* ---- graphs ---- */

/* At the kth of "; sizes:"; false if there are not so many, and after ctx_error. */
static bool make_inputs(DeriveCheck *r, uint32_t size, Tensor *in)
{
	Graph *g = r->wide;
	EvalCtx e;
	const char *s = r->sizes;
	for (uint32_t k = 0; k < size; k++) {
		s += strcspn(s, " ");
		s += strspn(s, " ");
	}
	TRY(values_bind(r->w->ctx, graph_syms(g),
			arena_strndup(r->w->ctx->arena, s, strcspn(s, " ")), &e));
	for (uint32_t k = 0; k < g->input.n; k++)
		TRY(values_input(r->test, &e, g, k, &in[k]));
	return true;
}

/* What the header says that an input of integers holds: all of them are in range wherever one is.
 */
static bool range_of(const DeriveCheck *r, uint32_t k, double range[2])
{
	char *end;
	if (k >= r->wide->input.n)
		return false;
	const char *line = header_find(
		r->w->ctx->arena, r->test->text,
		arena_printf(r->w->ctx->arena, "input %s = steps", r->wide->input.data[k].name),
		NULL);
	if (!line)
		return false;
	range[0] = strtod(line, &end);
	range[1] = strtod(end, NULL);
	return true;
}

/* ---- batches ---- */

static int64_t bytes_of(const Tensor *t)
{
	return (int64_t)tensor_bytes(t);
}

/* A lane is another set of fractions; of integers, which may be indices and say which way branches
 * go, the next ones in their range. */
static Tensor lanes_of(DeriveCheck *r, const Tensor *x, const double range[2], uint64_t seed)
{
	Tensor y = *x;
	y.rank++;
	memmove(y.dim + 1, x->dim, x->rank * sizeof *x->dim);
	y.dim[0] = LANES;
	y.data = arena_alloc(r->w->ctx->arena, tensor_bytes(&y) + 1);
	for (int64_t k = 0; k < LANES; k++) {
		Tensor lane = *x;
		lane.data = (char *)y.data + k * bytes_of(x);
		Tensor from = tensor_flat_real(x), to = tensor_flat_real(&lane);
		if (dtype_is_inexact(x->dtype))
			values_random(&to, -1, 1, seed + (uint64_t)k);
		for (int64_t i = 0; i < tensor_numel(&to); i++) {
			double v = tensor_f64(&from, i);
			if (dtype_is_inexact(x->dtype))
				tensor_set_f64(&to, i, v + 0.1 * tensor_f64(&to, i));
			else
				tensor_set_f64(&to, i,
					       range[0] + fmod(v - range[0] + (double)k,
							       range[1] - range[0] + 1));
		}
	}
	return y;
}

/* What may be left of values where they cancel: a product with its conjugate is real, but for
 * rounding. */
static const double cancelled = 1e-12, cancelled_narrow = 1e-4;

static bool close_to(const Tensor *a, const Tensor *b)
{
	double size = 1e-300;
	if (a->dtype != b->dtype || a->rank != b->rank ||
	    memcmp(a->dim, b->dim, a->rank * sizeof *a->dim))
		return false;
	Tensor x = tensor_flat_real(a), y = tensor_flat_real(b);
	for (int64_t i = 0; i < tensor_numel(&y); i++)
		size = isfinite(tensor_f64(&y, i)) ? fmax(size, fabs(tensor_f64(&y, i))) : size;
	for (int64_t i = 0; i < tensor_numel(&y); i++) {
		double v = tensor_f64(&x, i), w = tensor_f64(&y, i);
		if (v != w && !(isnan(v) && isnan(w)) && !(fabs(v - w) <= 1e-9 * size + cancelled))
			return false;
	}
	return true;
}

/* A batch of p: of what it is derived by, and of integers too, as far as their ranges are known. */
typedef struct {
	Point p;
	const bool *batched;
} Batch;

static bool batch_of(DeriveCheck *r, const Point *p, bool integers, Batch *b)
{
	Arena *a = r->w->ctx->arena;
	bool *batched = arena_calloc(a, p->nin + 1, sizeof *batched);
	Tensor *in = ARENA_ARRAY(a, Tensor, p->nin);
	for (uint32_t k = 0; k < p->nin; k++) {
		double range[2] = {0, 0};
		bool known = range_of(r, k, range);
		batched[k] = p->wrt[k] || (integers && known && !dtype_is_inexact(p->in[k].dtype));
		in[k] = batched[k] ? lanes_of(r, &p->in[k], range, k * LANES) : p->in[k];
	}
	Graph *g = transform_vmap(p->g, batched, sym_int(graph_syms(p->g), LANES), RANDOM_SAME);
	*b = (Batch){{g, p->nin, in, p->wrt}, batched};
	return g || differs(r, "vmap: %s", "no batch");
}

/* Is the batch what a loop gives? */
static bool is_loop(DeriveCheck *r, const Point *p, const Batch *b, const char *what)
{
	Ctx *ctx = r->w->ctx;
	uint32_t nout = p->g->output.n;
	Tensor *out = ARENA_ARRAY(ctx->arena, Tensor, nout),
	       *want = ARENA_ARRAY(ctx->arena, Tensor, nout);
	Tensor *one = ARENA_ARRAY(ctx->arena, Tensor, p->nin);
	TRY(interp(ctx, b->p.g, b->p.in, p->nin, out, nout, ctx->arena));
	for (int64_t lane = 0; lane < LANES; lane++) {
		for (uint32_t k = 0; k < p->nin; k++) {
			one[k] = p->in[k];
			if (b->batched[k])
				one[k].data = (char *)b->p.in[k].data + lane * bytes_of(&p->in[k]);
		}
		TRY(interp(ctx, p->g, one, p->nin, want, nout, ctx->arena));
		for (uint32_t k = 0; k < nout; k++) {
			Tensor x = want[k];
			x.data = (char *)out[k].data + lane * bytes_of(&x);
			if (out[k].rank != x.rank + 1 || out[k].dim[0] != LANES ||
			    !close_to(&x, &want[k]))
				return differs(r, "%s is another one in a loop",
					       arena_printf(ctx->arena, "%s: output %u", what, k));
		}
	}
	return true;
}

/* Batches of graphs that have room for one more dimension, and for two. */
static bool has_room(const Graph *g, uint32_t more)
{
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (node_type_id(g, n).i && node_type(g, n)->dtype != DT_none &&
		    node_rank(g, n) + more + 2 > MAX_RANK)
			return false;
	return true;
}

static bool check_batches(DeriveCheck *r, const Point *p, const Point *vjp, Batch *of_vjp)
{
	Ctx *ctx = r->w->ctx;
	Batch once, twice;
	if (!has_room(p->g, 2) || !has_room(vjp->g, 2))
		return true;
	TRY(batch_of(r, p, true, &once) && is_loop(r, p, &once, "vmap"));
	TRY(batch_of(r, &once.p, false, &twice) && is_loop(r, &once.p, &twice, "vmap of vmap"));
	TRY(batch_of(r, vjp, false, of_vjp) && is_loop(r, vjp, of_vjp, "vmap of vjp"));
	Graph *g = transform_vmap(p->g, p->wrt, sym_int(graph_syms(p->g), LANES), RANDOM_SAME);
	g = g ? transform_vjp(g, &(Wrt){.input = p->wrt}) : NULL;
	if (!g)
		return differs(r, "vjp of vmap: %s", "no derivative");
	uint32_t nout = g->output.n;
	Tensor *x = ARENA_ARRAY(ctx->arena, Tensor, nout),
	       *y = ARENA_ARRAY(ctx->arena, Tensor, nout);
	TRY(interp(ctx, g, of_vjp->p.in, vjp->nin, x, nout, ctx->arena) &&
	    interp(ctx, of_vjp->p.g, of_vjp->p.in, vjp->nin, y, nout, ctx->arena));
	for (uint32_t k = 0; k < nout; k++)
		if (!close_to(&x[k], &y[k]))
			return differs(r, "vjp of vmap: output %s is not that of vmap of vjp",
				       arena_printf(ctx->arena, "%u", k));
	return true;
}

/* ---- compiled ---- */

/* How far off each element may be: as far as `other` is, which is as exact, and somewhat further.
 * NULL: as close_to. */
static bool near_to(const Tensor *a, const Tensor *wide, const Tensor *other)
{
	Tensor x = tensor_flat_real(a), y = tensor_flat_real(wide), z = tensor_flat_real(other);
	double size = 0, error = 0;
	if (a->rank != wide->rank || memcmp(a->dim, wide->dim, a->rank * sizeof *a->dim))
		return false;
	for (int64_t i = 0; i < tensor_numel(&y); i++) {
		double w = tensor_f64(&y, i), v = tensor_f64(&z, i);
		if (!isfinite(w) || !isfinite(v))
			return true; /* beyond the narrow dtype */
		size = fmax(size, fabs(w));
		error = fmax(error, fabs(v - w));
	}
	for (int64_t i = 0; i < tensor_numel(&y); i++)
		if (!(fabs(tensor_f64(&x, i) - tensor_f64(&y, i)) <=
		      16 * error + 1e-4 * size + cancelled_narrow))
			return false;
	return true;
}

typedef struct {
	const Point *p;
	const Tensor *want, *wide; /* what the interpreter gives, and in f64; NULL: want is that */
	bool any;                  /* values are rounded too much to compare */
} Expected;

static bool run_model(DeriveCheck *r, Model *m, const char *what, const Expected *e,
		      const Tensor *bits, Tensor *out)
{
	Arena *a = r->w->ctx->arena;
	if (model_run(m, e->p->in, e->p->nin, out, 1, a) != WEFT_OK)
		return model_gave_up(m) || ctx_error(r->w->ctx, what, "%s", m->status.message);
	for (uint32_t k = 0; k < e->p->g->output.n; k++) {
		if (!e->any && !(e->wide ? near_to(&out[k], &e->wide[k], &e->want[k])
					 : close_to(&out[k], &e->want[k])))
			return differs(r, "compiled: %s is not the interpreter's",
				       arena_printf(a, "output %u, %s,", k, what));
		if (bits && values_other_bits(&out[k], &bits[k]) >= 0)
			return differs(r, "compiled: %s has other bits than loop IR",
				       arena_printf(a, "output %u, %s,", k, what));
	}
	return true;
}

static bool check_compiled(DeriveCheck *r, const Expected *e, uint32_t n)
{
	Ctx *ctx = r->w->ctx;
	Model loops = {0}, jit = {0}, c = {0};
	WeftGraph *g = graph_wrap(r->w, graph_clone(e[0].p->g), "fuzz");
	WeftOptions o = {.size = sizeof o,
			 .no_cache = true,
			 .target = weft_has_llvm() ? "native" : "generic-c"};
	bool ok = model_open_loops(&loops, r->w, g, &o) &&
		  (!r->jit || !weft_has_llvm() || model_open_jit(&jit, r->w, g, &o));
	o.backend = WEFT_BACKEND_C;
	ok = ok && (!r->c || model_open(&c, r->w, g, &o));
	uint32_t nout = e[0].p->g->output.n;
	for (uint32_t k = 0; k < n && ok; k++) {
		Tensor *out = ARENA_ARRAY(ctx->arena, Tensor, nout),
		       *again = ARENA_ARRAY(ctx->arena, Tensor, nout);
		ok = run_model(r, &loops, "loops", &e[k], NULL, out);
		if (ok && model_gave_up(&loops))
			continue;
		ok = ok && (!jit.instance || run_model(r, &jit, "jit", &e[k], out, again)) &&
		     (!c.instance || run_model(r, &c, "c", &e[k], out, again));
	}
	model_close(&loops);
	model_close(&jit);
	model_close(&c);
	return ok;
}

static bool check_points(DeriveCheck *r, const Point *p, uint32_t n)
{
	Ctx *ctx = r->w->ctx;
	Expected e[MAX_SIZES];
	for (uint32_t k = 0; k < n; k++) {
		Tensor *want = ARENA_ARRAY(ctx->arena, Tensor, p[k].g->output.n);
		TRY(interp(ctx, p[k].g, p[k].in, p[k].nin, want, p[k].g->output.n, ctx->arena));
		e[k] = (Expected){.p = &p[k], .want = want};
	}
	return check_compiled(r, e, n);
}

/* Only f32 and what is wider? */
static bool is_plain(const Graph *g)
{
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		DType d = node_type_id(g, n).i ? node_dtype(g, n) : DT_none;
		if (node_has_graph(g, n) || (dtype_is_float(d) && dtype_size(d) < 4))
			return false;
	}
	return true;
}

/* The values of x in the dtype of like. */
static Tensor converted(DeriveCheck *r, const Tensor *x, DType d)
{
	Tensor y = *x;
	y.dtype = d;
	y.data = arena_alloc(r->w->ctx->arena, tensor_bytes(&y) + 1);
	Tensor from = tensor_flat_real(x), to = tensor_flat_real(&y);
	for (int64_t i = 0; i < tensor_numel(&to); i++)
		tensor_set_f64(&to, i, tensor_f64(&from, i));
	return y;
}

/* vjp in the graph's own dtypes, at the point of `vjp`. */
static bool check_narrow(DeriveCheck *r, const Point *wrt, const Point *vjp)
{
	Ctx *ctx = r->w->ctx;
	Graph *g = transform_vjp(r->g, &(Wrt){.input = wrt->wrt});
	if (!g)
		return differs(r, "own dtypes: %s", "no derivative");
	uint32_t nout = g->output.n;
	Tensor *in = ARENA_ARRAY(ctx->arena, Tensor, vjp->nin),
	       *in64 = ARENA_ARRAY(ctx->arena, Tensor, vjp->nin);
	Tensor *want = ARENA_ARRAY(ctx->arena, Tensor, nout),
	       *wide = ARENA_ARRAY(ctx->arena, Tensor, nout);
	for (uint32_t k = 0; k < vjp->nin; k++) {
		in[k] = converted(r, &vjp->in[k], node_dtype(g, g->input.data[k].node));
		in64[k] = converted(r, &in[k], vjp->in[k].dtype);
	}
	TRY(interp(ctx, g, in, vjp->nin, want, nout, ctx->arena) &&
	    interp(ctx, vjp->g, in64, vjp->nin, wide, nout, ctx->arena));
	Point p = {g, vjp->nin, in, vjp->wrt};
	return check_compiled(r, &(Expected){&p, want, wide, !is_plain(g)}, 1);
}

/* ---- one graph ---- */

/* A place that is written twice gives both cotangents in PyTorch, and here. */
static bool writes_twice(const Graph *g)
{
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (node_op(g, n) == OP_scatter && !strcmp(node_str(g, n, "combine"), "set") &&
		    !node_bool(g, n, "unique"))
			return true;
	return false;
}

static void failed(void *user, const char *what)
{
	differs(user, "%s", what);
}

/* The first derivatives at all sizes, and one more transform of each. */
typedef struct {
	Point plain[MAX_SIZES], vjp[MAX_SIZES], jvp[MAX_SIZES], second[MAX_SIZES];
	Batch batch[MAX_SIZES];
} Transformed;

static bool run_size(DeriveCheck *r, uint32_t size, Transformed *t, bool *none)
{
	Arena *a = r->w->ctx->arena;
	Point p, other;
	Tensor *in = ARENA_ARRAY(a, Tensor, r->wide->input.n);
	Derivative d = {.ctx = r->w->ctx,
			.rng = r->seed,
			.what = "first derivative",
			.failed = failed,
			.user = r,
			.no_products = writes_twice(r->wide)};
	TRY(make_inputs(r, size, in));
	*none = !point_of(r->wide, in, r->wide->input.n, a, &p);
	if (*none)
		return true;
	d.no_differences = true; /* many values are equal */
	TRY(derivative_check(&d, p, &t->vjp[size], &t->jvp[size]));
	d.no_differences = false;
	t->plain[size] = point_near(&d, p);
	TRY(derivative_check(&d, t->plain[size], &t->vjp[size], &t->jvp[size]));
	d.what = "derivative of vjp";
	TRY(size == 2 || derivative_check(&d, t->vjp[size], &t->second[size], &other));
	r->checked += d.checked;
	return check_batches(r, &t->plain[size], &t->vjp[size], &t->batch[size]);
}

/* Compiled: one of vjp, jvp, vjp of vjp, vmap of vjp at n sizes, and vjp in the graph's own dtypes.
 */
static bool run_compiled(DeriveCheck *r, Transformed *t, uint32_t n)
{
	Point *which[] = {t->vjp, t->jvp, t->second};
	Point *p = which[r->seed % 4 % 3], batch[MAX_SIZES];
	uint32_t last = n - 1;
	n = p == t->second && n > 2 ? 2 : n;
	if (r->seed % 4 == 3 && t->batch[0].p.g) {
		for (uint32_t k = 0; k < n; k++)
			batch[k] = t->batch[k].p;
		p = batch;
	}
	for (uint32_t size = 1; size < n; size++)
		p[size].g = p[0].g; /* they are alike */
	uint32_t one = last < 1 ? last : 1;
	return check_points(r, p, n) && check_narrow(r, &t->plain[one], &t->vjp[one]);
}

/* What the header says, and the graph in f64. The number of sizes; 0 after ctx_error. */
static uint32_t begin(DeriveCheck *r)
{
	Arena *a = r->w->ctx->arena;
	const char *seed = header_find(a, r->test->text, "seed:", NULL),
		   *sizes = header_find(a, r->test->text, "sizes:", NULL);
	uint32_t n = 0;
	*r->how = 0;
	r->seed = seed ? strtoull(seed, NULL, 10) : 0;
	r->sizes = sizes ? sizes + strspn(sizes, " ") : "";
	for (const char *s = r->sizes; n < MAX_SIZES && (n == 0 || *s); n++) {
		s += strcspn(s, " ");
		s += strspn(s, " ");
	}
	r->wide = graph_widened(r->g);
	return r->wide ? n : 0;
}

bool derive_check(DeriveCheck *r)
{
	Transformed t = {0};
	uint32_t n = begin(r);
	bool none;
	for (uint32_t size = 0; size < n; size++) {
		TRY(run_size(r, size, &t, &none));
		if (none)
			return true;
	}
	return n && (r->interp || run_compiled(r, &t, n));
}

/* ---- compositions ---- */

enum { MAX_DEPTH = 4, MAX_NODES = 1500 };

static uint32_t nodes_of(const Graph *g)
{
	uint32_t n = 0;
	for (Node at = g->first; at.i; at = node_next(g, at))
		n++;
	return n;
}

/* One transform more; *p stays as it is where a batch has no room. */
static bool compose(DeriveCheck *r, Derivative *d, uint32_t what, Point *p)
{
	Batch b;
	Point vjp, jvp;
	if (what < 2) {
		TRY(derivative_check(d, *p, &vjp, &jvp));
		*p = what ? jvp : vjp;
		return true;
	}
	if (!has_room(p->g, 2))
		return true;
	TRY(batch_of(r, p, false, &b) && is_loop(r, p, &b, "vmap of a composition"));
	*p = b.p;
	return true;
}

/* At one size. *none: there is nothing to be derived by. */
static bool compose_at(DeriveCheck *r, uint32_t size, Point *p, bool *none)
{
	static const char *const names[] = {"vjp of ", "jvp of ", "vmap of "};
	Arena *a = r->w->ctx->arena;
	Tensor *in = ARENA_ARRAY(a, Tensor, r->wide->input.n);
	Derivative d = {.ctx = r->w->ctx,
			.rng = r->seed,
			.what = "",
			.failed = failed,
			.user = r,
			.no_differences = true,
			.no_products = writes_twice(r->wide)};
	uint64_t rng = r->seed * 0x9e3779b97f4a7c15u + 1;
	TRY(make_inputs(r, size, in));
	*none = !point_of(r->wide, in, r->wide->input.n, a, p);
	if (*none)
		return true;
	*p = point_near(&d, *p);
	for (uint32_t k = 0; k < MAX_DEPTH && nodes_of(p->g) < MAX_NODES; k++) {
		rng = rng * 6364136223846793005u + 1442695040888963407u;
		uint32_t what = (uint32_t)((rng >> 33) % 3);
		d.what = arena_printf(a, "%s%s", names[what], d.what);
		TRY(compose(r, &d, what, p));
	}
	return true;
}

bool compose_check(DeriveCheck *r)
{
	Point p[MAX_SIZES];
	uint32_t n = begin(r);
	bool none;
	for (uint32_t size = 0; size < n; size++) {
		TRY(compose_at(r, size, &p[size], &none));
		if (none)
			return true;
		p[size].g = p[0].g; /* they are alike */
	}
	return n && (r->interp || check_points(r, p, n));
}
