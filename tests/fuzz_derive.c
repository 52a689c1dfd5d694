/* fuzz_derive [--seed N] [--count N] [--steps N] [--interp] [--print]
 *
 * Derivatives and batches of random graphs, in f64: at a handful of sizes, 0 and 1 among them,
 *   - cotangents and tangents fit each other and differences of values, of the derivative again too (tests/derivative.h);
 *   - a batch of the derivative is what a loop gives;
 *   - compiled, the derivative is what the interpreter gives: by a JIT, where there is one, and by interpreted loop IR, to the
 *     bit. --interp: nothing is compiled. */
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
	Graph *g;
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
		for (uint32_t k = 0; k < 5 && !n; k++)
			if (!strncmp(p, narrow[k], strlen(narrow[k])) && !isalnum((unsigned char)p[-1]) && !isalnum((unsigned char)p[strlen(narrow[k])]))
				n = strlen(narrow[k]);
		text_printf(&u, "%.*s", n ? 3 : 1, n ? "f64" : p);
		p += n ? n : 1;
	}
	return graph_parse(g->ir, u.data, "wide");
}

static bool build(Run *r)
{
	Ctx *ctx = r->w->ctx;
	Ir *ir = ir_new(ctx);
	Graph *g = graph_new(ir, "fuzz");
	Fuzz f = {.g = g, .ir = ir, .b = {.g = g}, .rng = r->seed * 0x9e3779b97f4a7c15u + 1, .prefix = "", .input = (void *)&r->input,
		  .tolerance = (void *)&r->tolerance};
	for (uint32_t k = 0; k < FUZZ_SYMBOLS; k++)
		f.size[k] = sym_var(ir->syms, fuzz_symbol[k].name, SYMVAR_SIZE, fuzz_symbol[k].lo, fuzz_symbol[k].hi);
	graph_add_input(g, "sizes", INPUT_USER, ir_type(ir, DT_bool, FUZZ_SYMBOLS, f.size));
	array_push(ctx->arena, &r->input, (FuzzInput){0, 1, 1});
	fuzz_below(&f, 2);
	TRY(fuzz_graph(&f, r->o->steps));
	graph_dce(g);
	return (r->g = widened(g)) != NULL;
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
		values_random(t, 0, floor((range.hi - range.lo) / range.step), r->seed + k);
		for (int64_t i = 0; i < tensor_numel(t); i++)
			tensor_set_f64(t, i, range.lo + range.step * floor(tensor_f64(t, i)));
	}
}

/* ---- batches ---- */

static int64_t bytes_of(const Tensor *t)
{
	return (int64_t)tensor_bytes(t);
}

/* A lane is another set of fractions: integers, which may be sizes and indices, are shared. */
static Tensor lanes_of(Run *r, const Tensor *x, uint64_t seed)
{
	Tensor y = *x;
	y.rank++;
	memmove(y.dim + 1, x->dim, x->rank * sizeof *x->dim);
	y.dim[0] = LANES;
	y.data = arena_alloc(r->w->ctx->arena, tensor_bytes(&y) + 1);
	Tensor by = *x;
	for (int64_t k = 0; k < LANES; k++) {
		by.data = (char *)y.data + k * bytes_of(x);
		values_random(&by, -1, 1, seed + (uint64_t)k);
		for (int64_t i = 0; i < tensor_numel(x); i++)
			tensor_set_f64(&by, i, tensor_f64(x, i) + 0.1 * tensor_f64(&by, i));
	}
	return y;
}

static bool close_to(const Tensor *x, const Tensor *y)
{
	double size = 1e-300;
	if (x->dtype != y->dtype || x->rank != y->rank || memcmp(x->dim, y->dim, x->rank * sizeof *x->dim))
		return false;
	for (int64_t i = 0; i < tensor_numel(y); i++)
		size = isfinite(tensor_f64(y, i)) ? fmax(size, fabs(tensor_f64(y, i))) : size;
	for (int64_t i = 0; i < tensor_numel(y); i++) {
		double a = tensor_f64(x, i), b = tensor_f64(y, i);
		if (a != b && !(isnan(a) && isnan(b)) && !(fabs(a - b) <= 1e-9 * size))
			return false;
	}
	return true;
}

static bool check_batch(Run *r, const Point *p)
{
	Ctx *ctx = r->w->ctx;
	Graph *batch = transform_vmap(p->g, p->wrt, sym_int(p->g->ir->syms, LANES));
	if (!batch)
		return differs(r, "vmap: %s", "no batch");
	uint32_t nout = p->g->output.n;
	Tensor *in = ARENA_ARRAY(ctx->arena, Tensor, p->nin), *one = ARENA_ARRAY(ctx->arena, Tensor, p->nin);
	Tensor *out = ARENA_ARRAY(ctx->arena, Tensor, nout), *want = ARENA_ARRAY(ctx->arena, Tensor, nout);
	for (uint32_t k = 0; k < p->nin; k++)
		in[k] = p->wrt[k] ? lanes_of(r, &p->in[k], k * LANES) : p->in[k];
	TRY(interp(ctx, batch, in, p->nin, out, nout, ctx->arena));
	for (int64_t lane = 0; lane < LANES; lane++) {
		for (uint32_t k = 0; k < p->nin; k++) {
			one[k] = p->in[k];
			if (p->wrt[k])
				one[k].data = (char *)in[k].data + lane * bytes_of(&p->in[k]);
		}
		TRY(interp(ctx, p->g, one, p->nin, want, nout, ctx->arena));
		for (uint32_t k = 0; k < nout; k++) {
			Tensor x = want[k];
			x.data = (char *)out[k].data + lane * bytes_of(&x);
			if (out[k].rank != x.rank + 1 || out[k].dim[0] != LANES || !close_to(&x, &want[k]))
				return differs(r, "vmap: output %s is another one in a loop", arena_printf(ctx->arena, "%u", k));
		}
	}
	return true;
}

/* ---- compiled ---- */

static bool run_model(Run *r, Model *m, const char *what, const Point *p, const Tensor *want, const Tensor *bits, Tensor *out)
{
	Arena *a = r->w->ctx->arena;
	if (model_run(m, p->in, p->nin, out, 1, a) != WEFT_OK)
		return ctx_error(r->w->ctx, what, "%s", m->status.message);
	for (uint32_t k = 0; k < p->g->output.n; k++) {
		if (!close_to(&out[k], &want[k]))
			return differs(r, "compiled: %s is not the interpreter's", arena_printf(a, "output %u, %s,", k, what));
		if (bits && values_other_bits(&out[k], &bits[k]) >= 0)
			return differs(r, "compiled: %s has other bits than loop IR", arena_printf(a, "output %u, %s,", k, what));
	}
	return true;
}

static bool check_compiled(Run *r, const Point *p, uint32_t np)
{
	Ctx *ctx = r->w->ctx;
	Model loops = {0}, jit = {0};
	WeftGraph *g = graph_wrap(r->w, graph_clone(p[0].g), "fuzz");
	WeftOptions o = {.size = sizeof o, .no_cache = true, .target = weft_has_llvm() ? "native" : "generic-c"};
	bool ok = model_open_loops(&loops, r->w, g, &o) && (!weft_has_llvm() || model_open_jit(&jit, r->w, g, &o));
	uint32_t nout = p[0].g->output.n;
	for (uint32_t k = 0; k < np && ok; k++) {
		Tensor *want = ARENA_ARRAY(ctx->arena, Tensor, nout), *out = ARENA_ARRAY(ctx->arena, Tensor, nout);
		Tensor *again = ARENA_ARRAY(ctx->arena, Tensor, nout);
		ok = interp(ctx, p[k].g, p[k].in, p[k].nin, want, nout, ctx->arena) &&
		     run_model(r, &loops, "loops", &p[k], want, NULL, out) &&
		     (!jit.instance || run_model(r, &jit, "jit", &p[k], want, out, again));
	}
	model_close(&loops);
	model_close(&jit);
	return ok;
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

static bool run(void *arg)
{
	Run *r = arg;
	Arena *a = r->w->ctx->arena;
	Point vjp[NSIZE], jvp, second[2];
	TRY(build(r));
	for (uint32_t size = 0; size < NSIZE; size++) {
		Point p;
		Tensor *in = ARENA_ARRAY(a, Tensor, r->g->input.n);
		Derivative d = {.ctx = r->w->ctx, .rng = r->seed, .what = "first derivative", .failed = failed, .user = r,
				.no_products = writes_twice(r->g)};
		make_inputs(r, size, in);
		if (!point_of(r->g, in, r->g->input.n, a, &p))
			return true;
		d.no_differences = true; /* many values are equal */
		TRY(derivative_check(&d, p, &vjp[size], &jvp));
		d.no_differences = false;
		TRY(derivative_check(&d, point_near(&d, p), &vjp[size], &jvp));
		d.what = "derivative of vjp";
		TRY(size == 2 || derivative_check(&d, vjp[size], &second[0], &second[1]));
		r->checked += d.checked;
		TRY(check_batch(r, &vjp[size]));
	}
	if (r->o->interp)
		return true;
	for (uint32_t size = 1; size < NSIZE; size++)
		vjp[size].g = vjp[0].g; /* they are alike */
	return check_compiled(r, vjp, NSIZE);
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
		graph_print(r.g, &t);
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
