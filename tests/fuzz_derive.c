/* fuzz_derive [--seed N] [--count N] [--steps N] [--interp] [--print]
 *
 * Derivatives and batches of random graphs, every third with complex numbers, in f64: at a handful of sizes, 0 and 1 among them,
 *   - cotangents and tangents fit each other and differences of values, of the derivative again too (tests/derivative.h);
 *   - a batch of the graph, a batch of batches and a batch of the derivative are what a loop gives; branches and loops in it go
 *     different ways;
 *   - the derivative of a batch is the batch of derivatives;
 *   - compiled, one of vjp, jvp, vjp of vjp, vmap of vjp is what the interpreter gives: by a JIT, where there is one, and by
 *     interpreted loop IR, to the bit; and so is vjp in the graph's own dtypes, as near to f64 as the interpreter is.
 *     --interp: nothing is compiled. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "derivative.h"
#include "file_test.h"
#include "fuzz.h"
#include "ir/interp/interp.h"
#include "model.h"
#include "passes/transform.h"

static const int64_t sizes[][FUZZ_SYMBOLS] = {{1, 3, 0}, {2, 5, 1}, {7, 3, 9}};
enum { NSIZE = sizeof sizes / sizeof *sizes, LANES = 3 };

typedef struct {
	uint64_t seed;
	uint32_t count, steps;
	bool interp, print;
} Options;

typedef struct {
	const Options *o;
	uint64_t seed;
	Weft *w;
	Graph *g;      /* in f64 */
	Graph *narrow; /* as it was made */
	ARRAY(FuzzInput) input;
	ARRAY(double) tolerance;
	uint32_t checked;
	char how[400];
} Run;

static bool differs(Run *r, const char *fmt, const char *what)
{
	if (!r->how[0])
		snprintf(r->how, sizeof r->how, fmt, what);
	return false;
}

/* ---- graphs ---- */

/* The constants that are fractions, in f64. */
static void widen_constants(Ir *ir)
{
	for (uint32_t k = 1; k < ir->constant.n; k++) {
		Const *c = &ir->constant.data[k];
		if (!dtype_is_float(c->dtype) || c->dtype == DT_f64)
			continue;
		Tensor x = {.dtype = c->dtype, .rank = c->rank, .data = (void *)c->data}, y = x;
		memcpy(x.dim, c->dim, c->rank * sizeof *c->dim);
		y = x;
		y.dtype = DT_f64;
		y.data = arena_alloc(ir->ctx->arena, tensor_bytes(&y) + 1);
		for (int64_t i = 0; i < tensor_numel(&x); i++)
			tensor_set_f64(&y, i, tensor_f64(&x, i));
		c->dtype = DT_f64;
		c->data = y.data;
		c->bytes = tensor_bytes(&y);
		c->hash = 0;
	}
}

/* Every fraction an f64: what is rounded has no differences. */
static Graph *widened(Graph *g)
{
	static const char *const narrow[] = {"f8e4m3", "f8e5m2", "bf16", "f16", "f32"};
	Text t, u;
	text_init(&t, g->ir->ctx->arena);
	text_init(&u, g->ir->ctx->arena);
	widen_constants(g->ir); /* before they are printed with their hashes */
	graph_print(g, &t);
	text_char(&u, *t.data);
	for (const char *p = t.data + 1; *p;) {
		size_t n = 0; /* of a word */
		if (!strncmp(p, "c64", 3) && !isalnum((unsigned char)p[-1]) && !isalnum((unsigned char)p[3])) {
			text_printf(&u, "c128");
			p += 3;
			continue;
		}
		for (uint32_t k = 0; k < 5 && !n; k++)
			if (!strncmp(p, narrow[k], strlen(narrow[k])) && !isalnum((unsigned char)p[-1]) && !isalnum((unsigned char)p[strlen(narrow[k])]))
				n = strlen(narrow[k]);
		text_printf(&u, "%.*s", n ? 3 : 1, n ? "f64" : p);
		p += n ? n : 1;
	}
	return graph_parse(g->ir, u.data, "wide");
}

static Graph *built(Run *r)
{
	Ctx *ctx = r->w->ctx;
	Ir *ir = ir_new(ctx);
	Graph *g = graph_new(ir, "fuzz");
	Fuzz f = {.g = g, .ir = ir, .b = {.g = g}, .has_complex = r->seed % 3 == 0, .rng = r->seed * 0x9e3779b97f4a7c15u + 1, .prefix = "",
		  .input = (void *)&r->input, .tolerance = (void *)&r->tolerance};
	for (uint32_t k = 0; k < FUZZ_SYMBOLS; k++)
		f.size[k] = sym_var(ir->syms, fuzz_symbol[k].name, SYMVAR_SIZE, fuzz_symbol[k].lo, fuzz_symbol[k].hi);
	graph_add_input(g, "sizes", INPUT_USER, ir_type(ir, DT_bool, FUZZ_SYMBOLS, f.size));
	r->input.n = 0;
	array_push(ctx->arena, &r->input, (FuzzInput){0, 1, 1});
	fuzz_below(&f, 2);
	if (!fuzz_graph(&f, r->o->steps))
		return NULL;
	graph_dce(g);
	return g;
}

/* Twice, since constants are widened where they are. */
static bool build(Run *r)
{
	r->narrow = built(r);
	Graph *g = r->narrow ? built(r) : NULL;
	return g && (r->g = widened(g)) != NULL;
}

static void make_inputs(Run *r, uint32_t size, Tensor *in)
{
	Graph *g = r->g;
	Sym sym[FUZZ_SYMBOLS];
	for (uint32_t k = 0; k < FUZZ_SYMBOLS; k++)
		sym[k] = sym_find(g->ir->syms, fuzz_symbol[k].name, 1);
	EvalCtx e = {.ctx = r->w->ctx, .arena = r->w->ctx->arena, .nsym = FUZZ_SYMBOLS, .sym = sym, .value = (int64_t *)sizes[size],
		     .syms = g->ir->syms};
	for (uint32_t k = 0; k < g->input.n; k++) {
		const FuzzInput range = r->input.data[k];
		Tensor *t = &in[k];
		eval_alloc(&e, node_type_id(g, g->input.data[k].node), g, t);
		Tensor flat = tensor_flat_real(t);
		values_random(&flat, 0, floor((range.hi - range.lo) / range.step), r->seed + k);
		for (int64_t i = 0; i < tensor_numel(&flat); i++)
			tensor_set_f64(&flat, i, range.lo + range.step * floor(tensor_f64(&flat, i)));
	}
}

/* ---- batches ---- */

static int64_t bytes_of(const Tensor *t)
{
	return (int64_t)tensor_bytes(t);
}

/* A lane is another set of fractions; of integers, which may be indices and say which way branches go, the next ones in their
 * range. */
static Tensor lanes_of(Run *r, const Tensor *x, const FuzzInput *range, uint64_t seed)
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
				tensor_set_f64(&to, i, range->lo + fmod(v - range->lo + (double)k, range->hi - range->lo + 1));
		}
	}
	return y;
}

/* What may be left of values where they cancel: a product with its conjugate is real, but for rounding. */
static const double cancelled = 1e-12, cancelled_narrow = 1e-4;

static bool close_to(const Tensor *a, const Tensor *b)
{
	double size = 1e-300;
	if (a->dtype != b->dtype || a->rank != b->rank || memcmp(a->dim, b->dim, a->rank * sizeof *a->dim))
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

static bool batch_of(Run *r, const Point *p, bool integers, Batch *b)
{
	Arena *a = r->w->ctx->arena;
	bool *batched = arena_calloc(a, p->nin + 1, sizeof *batched);
	Tensor *in = ARENA_ARRAY(a, Tensor, p->nin);
	for (uint32_t k = 0; k < p->nin; k++) {
		batched[k] = p->wrt[k] || (integers && k > 0 && k < r->input.n && !dtype_is_inexact(p->in[k].dtype));
		in[k] = batched[k] ? lanes_of(r, &p->in[k], k < r->input.n ? &r->input.data[k] : NULL, k * LANES) : p->in[k];
	}
	Graph *g = transform_vmap(p->g, batched, sym_int(p->g->ir->syms, LANES), RANDOM_SAME);
	*b = (Batch){{g, p->nin, in, p->wrt}, batched};
	return g || differs(r, "vmap: %s", "no batch");
}

/* Is the batch what a loop gives? */
static bool is_loop(Run *r, const Point *p, const Batch *b, const char *what)
{
	Ctx *ctx = r->w->ctx;
	uint32_t nout = p->g->output.n;
	Tensor *out = ARENA_ARRAY(ctx->arena, Tensor, nout), *want = ARENA_ARRAY(ctx->arena, Tensor, nout);
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
			if (out[k].rank != x.rank + 1 || out[k].dim[0] != LANES || !close_to(&x, &want[k]))
				return differs(r, "%s is another one in a loop", arena_printf(ctx->arena, "%s: output %u", what, k));
		}
	}
	return true;
}

/* Batches of graphs that have room for one more dimension, and for two. */
static bool has_room(const Graph *g, uint32_t more)
{
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (node_type_id(g, n).i && node_type(g, n)->dtype != DT_none && node_rank(g, n) + more + 2 > MAX_RANK)
			return false;
	return true;
}

static bool check_batches(Run *r, const Point *p, const Point *vjp, Batch *of_vjp)
{
	Ctx *ctx = r->w->ctx;
	Batch once, twice;
	if (!has_room(p->g, 2) || !has_room(vjp->g, 2))
		return true;
	TRY(batch_of(r, p, true, &once) && is_loop(r, p, &once, "vmap"));
	TRY(batch_of(r, &once.p, false, &twice) && is_loop(r, &once.p, &twice, "vmap of vmap"));
	TRY(batch_of(r, vjp, false, of_vjp) && is_loop(r, vjp, of_vjp, "vmap of vjp"));
	Graph *g = transform_vmap(p->g, p->wrt, sym_int(p->g->ir->syms, LANES), RANDOM_SAME);
	g = g ? transform_vjp(g, &(Wrt){.input = p->wrt}) : NULL;
	if (!g)
		return differs(r, "vjp of vmap: %s", "no derivative");
	uint32_t nout = g->output.n;
	Tensor *x = ARENA_ARRAY(ctx->arena, Tensor, nout), *y = ARENA_ARRAY(ctx->arena, Tensor, nout);
	TRY(interp(ctx, g, of_vjp->p.in, vjp->nin, x, nout, ctx->arena) && interp(ctx, of_vjp->p.g, of_vjp->p.in, vjp->nin, y, nout, ctx->arena));
	for (uint32_t k = 0; k < nout; k++)
		if (!close_to(&x[k], &y[k]))
			return differs(r, "vjp of vmap: output %s is not that of vmap of vjp", arena_printf(ctx->arena, "%u", k));
	return true;
}

/* ---- compiled ---- */

/* How far off each element may be: as far as `other` is, which is as exact, and somewhat further. NULL: as close_to. */
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
		if (!(fabs(tensor_f64(&x, i) - tensor_f64(&y, i)) <= 16 * error + 1e-4 * size + cancelled_narrow))
			return false;
	return true;
}

typedef struct {
	const Point *p;
	const Tensor *want, *wide; /* what the interpreter gives, and in f64; NULL: want is that */
	bool any;                  /* values are rounded too much to compare */
} Expected;

static bool run_model(Run *r, Model *m, const char *what, const Expected *e, const Tensor *bits, Tensor *out)
{
	Arena *a = r->w->ctx->arena;
	if (model_run(m, e->p->in, e->p->nin, out, 1, a) != WEFT_OK)
		return ctx_error(r->w->ctx, what, "%s", m->status.message);
	for (uint32_t k = 0; k < e->p->g->output.n; k++) {
		if (!e->any && !(e->wide ? near_to(&out[k], &e->wide[k], &e->want[k]) : close_to(&out[k], &e->want[k])))
			return differs(r, "compiled: %s is not the interpreter's", arena_printf(a, "output %u, %s,", k, what));
		if (bits && values_other_bits(&out[k], &bits[k]) >= 0)
			return differs(r, "compiled: %s has other bits than loop IR", arena_printf(a, "output %u, %s,", k, what));
	}
	return true;
}

static bool check_compiled(Run *r, const Expected *e, uint32_t n)
{
	Ctx *ctx = r->w->ctx;
	Model loops = {0}, jit = {0};
	WeftGraph *g = graph_wrap(r->w, graph_clone(e[0].p->g), "fuzz");
	WeftOptions o = {.size = sizeof o, .no_cache = true, .target = weft_has_llvm() ? "native" : "generic-c"};
	bool ok = model_open_loops(&loops, r->w, g, &o) && (!weft_has_llvm() || model_open_jit(&jit, r->w, g, &o));
	uint32_t nout = e[0].p->g->output.n;
	for (uint32_t k = 0; k < n && ok; k++) {
		Tensor *out = ARENA_ARRAY(ctx->arena, Tensor, nout), *again = ARENA_ARRAY(ctx->arena, Tensor, nout);
		ok = run_model(r, &loops, "loops", &e[k], NULL, out) && (!jit.instance || run_model(r, &jit, "jit", &e[k], out, again));
	}
	model_close(&loops);
	model_close(&jit);
	return ok;
}

static bool check_points(Run *r, const Point *p, uint32_t n)
{
	Ctx *ctx = r->w->ctx;
	Expected e[NSIZE];
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
static Tensor converted(Run *r, const Tensor *x, DType d)
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
static bool check_narrow(Run *r, const Point *wrt, const Point *vjp)
{
	Ctx *ctx = r->w->ctx;
	Graph *g = transform_vjp(r->narrow, &(Wrt){.input = wrt->wrt});
	if (!g)
		return differs(r, "own dtypes: %s", "no derivative");
	uint32_t nout = g->output.n;
	Tensor *in = ARENA_ARRAY(ctx->arena, Tensor, vjp->nin), *in64 = ARENA_ARRAY(ctx->arena, Tensor, vjp->nin);
	Tensor *want = ARENA_ARRAY(ctx->arena, Tensor, nout), *wide = ARENA_ARRAY(ctx->arena, Tensor, nout);
	for (uint32_t k = 0; k < vjp->nin; k++) {
		in[k] = converted(r, &vjp->in[k], node_dtype(g, g->input.data[k].node));
		in64[k] = converted(r, &in[k], vjp->in[k].dtype);
	}
	TRY(interp(ctx, g, in, vjp->nin, want, nout, ctx->arena) && interp(ctx, vjp->g, in64, vjp->nin, wide, nout, ctx->arena));
	Point p = {g, vjp->nin, in, vjp->wrt};
	return check_compiled(r, &(Expected){&p, want, wide, !is_plain(g)}, 1);
}

/* ---- one graph ---- */

/* A place that is written twice gives both cotangents in PyTorch, and here. */
static bool writes_twice(const Graph *g)
{
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (node_op(g, n) == OP_scatter && !strcmp(node_str(g, n, "combine"), "set") && !node_bool(g, n, "unique"))
			return true;
	return false;
}

static void failed(void *user, const char *what)
{
	differs(user, "%s", what);
}

/* The first derivatives at all sizes, and one more transform of each. */
typedef struct {
	Point plain[NSIZE], vjp[NSIZE], jvp[NSIZE], second[NSIZE];
	Batch batch[NSIZE];
} Transformed;

static bool run_size(Run *r, uint32_t size, Transformed *t, bool *none)
{
	Arena *a = r->w->ctx->arena;
	Point p, other;
	Tensor *in = ARENA_ARRAY(a, Tensor, r->g->input.n);
	Derivative d = {.ctx = r->w->ctx, .rng = r->seed, .what = "first derivative", .failed = failed, .user = r, .no_products = writes_twice(r->g)};
	make_inputs(r, size, in);
	*none = !point_of(r->g, in, r->g->input.n, a, &p);
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

static bool run(void *arg)
{
	Run *r = arg;
	Transformed t = {0};
	bool none;
	TRY(build(r));
	for (uint32_t size = 0; size < NSIZE; size++) {
		TRY(run_size(r, size, &t, &none));
		if (none)
			return true;
	}
	if (r->o->interp)
		return true;
	Point *which[] = {t.vjp, t.jvp, t.second};
	Point *p = which[r->seed % 4 % 3], batch[NSIZE];
	uint32_t n = p == t.second ? 2 : NSIZE;
	if (r->seed % 4 == 3 && t.batch[0].p.g) {
		for (uint32_t k = 0; k < NSIZE; k++)
			batch[k] = t.batch[k].p;
		p = batch;
	}
	for (uint32_t size = 1; size < n; size++)
		p[size].g = p[0].g; /* they are alike */
	return check_points(r, p, n) && check_narrow(r, &t.plain[1], &t.vjp[1]);
}

static bool run_seed(const Options *o, uint64_t seed, uint32_t *checked)
{
	Run r = {.o = o, .seed = seed, .w = weft_new()};
	if (!r.w)
		return false;
	bool ok = boundary(r.w, run, &r);
	*checked += r.checked;
	if (!ok)
		printf("seed %llu: %s\n%s", (unsigned long long)seed, r.how, weft_messages(r.w));
	if ((!ok || o->print) && r.g && !r.w->dead) {
		Text t;
		text_init(&t, r.w->ctx->arena);
		graph_print(r.narrow ? r.narrow : r.g, &t); /* in f64 every fraction is one */
		printf("%s", t.data);
	}
	weft_free(r.w);
	fflush(stdout);
	return ok;
}

int main(int argc, char **argv)
{
	Options o = {.count = 60, .steps = 8};
	uint32_t bad = 0, checked = 0;
	for (int k = 1; k < argc; k++)
		if (!strcmp(argv[k], "--seed") && k + 1 < argc)
			o.seed = strtoull(argv[++k], NULL, 10);
		else if (!strcmp(argv[k], "--count") && k + 1 < argc)
			o.count = (uint32_t)strtoul(argv[++k], NULL, 10);
		else if (!strcmp(argv[k], "--steps") && k + 1 < argc)
			o.steps = (uint32_t)strtoul(argv[++k], NULL, 10);
		else if (!strcmp(argv[k], "--interp"))
			o.interp = true;
		else if (!strcmp(argv[k], "--print"))
			o.print = true;
	for (uint32_t k = 0; k < o.count; k++)
		bad += !run_seed(&o, o.seed + k, &checked);
	printf("%u passed, %u failed; %u tangents are differences of values\n", o.count - bad, bad, checked);
	return bad > 0;
}
