/* fuzz_graphs [--seed N] [--count N] [--steps N] [--target NAME] [--passes] [--print]
 *
 * Random graphs, several in one compilation: the interpreter on the graph as it is, on the graph
 * after the passes, and compiled code with and without fusion, on one thread and on three, must
 * agree at a handful of sizes, and compiled code with its interpreted loop IR to the bit. What differs is printed as a file test with one output. --passes
 * compiles nothing;
 * --print shows the graph. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file_test.h"
#include "fuzz.h"
#include "ir/interp/interp.h"
#include "model.h"
#include "passes/pipeline.h"

enum { BATCH = 10, MOST = 40 };

static const int64_t sizes[][2] = {{1, 3}, {2, 5}, {7, 16}, {17, 3}, {MOST, 33}};

typedef struct {
	uint64_t seed;
	uint32_t count, steps;
	const char *target;
	bool passes, print;
} Options;

/* Some random graphs in one. */
typedef struct {
	const Options *o;
	uint64_t seed;
	uint32_t count, only; /* how many; only >= 0: of output `only` */
	Weft *w;
	Graph *g;
	ARRAY(FuzzInput) input;
	ARRAY(double) tolerance;
	uint32_t failed; /* an output that differs, plus 1 */
	char how[160];   /* and where */
} Batch;

/* ---- graphs ---- */

static bool build(Batch *b)
{
	Ctx *ctx = b->w->ctx;
	Ir *ir = ir_new(ctx);
	b->g = graph_new(ir, "fuzz");
	Sym B = sym_var(ir->syms, "B", SYMVAR_SIZE, 1, MOST),
	    N = sym_var(ir->syms, "N", SYMVAR_SIZE, 3, MOST);
	Sym both[] = {B, N}; /* an input that binds them */
	graph_add_input(b->g, "sizes", INPUT_USER, ir_type(ir, DT_bool, 2, both));
	array_push(ctx->arena, &b->input, (FuzzInput){0, 1, 1});
	for (uint32_t k = 0; k < b->count; k++) {
		Fuzz f = {.g = b->g,
			  .ir = ir,
			  .b = {.g = b->g},
			  .rng = (b->seed + k) * 0x9e3779b97f4a7c15u + 1,

			  .size = {B, N},
			  .input = (void *)&b->input,
			  .tolerance = (void *)&b->tolerance};
		f.prefix = b->count > 1 ? arena_printf(ctx->arena, "g%llu_",
						       (unsigned long long)(b->seed + k))
					: "";
		fuzz_below(&f, 2);
		TRY(fuzz_graph(&f, b->o->steps));
	}
	return graph_verify(b->g);
}

static void keep_output(Graph *g, uint32_t k)
{
	g->output.data[0] = g->output.data[k];
	g->output.n = 1;
	graph_dce(g);
}

/* ---- running ---- */

static void make_input(Batch *b, EvalCtx *e, uint32_t k, Tensor *t)
{
	const FuzzInput in = b->input.data[k];
	eval_alloc(e, node_type_id(b->g, b->g->input.data[k].node), b->g, t);
	values_random(t, 0, floor((in.hi - in.lo) / in.step), b->seed + k);
	for (int64_t i = 0; i < tensor_numel(t); i++)
		tensor_set_f64(t, i, in.lo + in.step * floor(tensor_f64(t, i)));
}

static bool close_enough(const Tensor *x, const Tensor *y, int64_t i, double tolerance)
{
	if (!dtype_is_float(y->dtype))
		return tensor_i64(x, i) == tensor_i64(y, i);
	double a = tensor_f64(x, i), c = tensor_f64(y, i);
	return a == c || (isnan(a) && isnan(c)) || fabs(a - c) <= 2 * tolerance;
}

static bool agree(Batch *b, const char *what, uint32_t size, uint32_t k, const Tensor *x,
		  const Tensor *y)
{
	bool shape = x->dtype == y->dtype && x->rank == y->rank &&
		     !memcmp(x->dim, y->dim, y->rank * sizeof *y->dim);
	for (int64_t i = 0; shape && i < tensor_numel(y); i++) {
		if (close_enough(x, y, i, b->tolerance.data[k]))
			continue;
		Text at;
		text_init(&at, b->w->ctx->arena);
		values_index(y, i, &at);
		snprintf(b->how, sizeof b->how,
			 "%s, B=%lld, N=%lld: element %s is %.9g, expected %.9g", what,
			 (long long)sizes[size][0], (long long)sizes[size][1], at.data,
			 tensor_f64(x, i), tensor_f64(y, i));
		b->failed = k + 1;
		return false;
	}
	if (!shape)
		snprintf(b->how, sizeof b->how, "%s: differs in shape or dtype", what);
	b->failed = shape ? 0 : k + 1;
	return shape;
}

typedef struct {
	const char *what;
	Graph *g;     /* interpreted, or ... */
	Model *model; /* ... compiled */
	Model *loops; /* the same model's loop IR, interpreted */
} Candidate;

/* One thread, three, and the interpreter of loop IR give the same bits. */
static bool run_model(Batch *b, const Candidate *c, const Tensor *in, Tensor *out, Arena *a)
{
	Ctx *ctx = b->w->ctx;
	Tensor *again = ARENA_ARRAY(a, Tensor, b->g->output.n);
	if (model_run(c->model, in, b->g->input.n, out, 1, a) != WEFT_OK ||
	    model_run(c->model, in, b->g->input.n, again, 3, a) != WEFT_OK)
		return ctx_error(ctx, c->what, "%s", c->model->status.message);
	for (uint32_t k = 0; k < b->g->output.n; k++)
		if (memcmp(out[k].data, again[k].data, tensor_bytes(&out[k])))
			return ctx_error(ctx, c->what, "output %s depends on the number of threads",
					 b->g->output.data[k].name);
	if (model_run(c->loops, in, b->g->input.n, again, 1, a) != WEFT_OK)
		return ctx_error(ctx, c->what, "%s", c->loops->status.message);
	for (uint32_t k = 0; k < b->g->output.n; k++)
		if (values_other_bits(&out[k], &again[k]) >= 0)
			return ctx_error(ctx, c->what, "output %s has other bits than the interpreted loop IR gives",
					 b->g->output.data[k].name);
	return true;
}

static bool compare_at(Batch *b, uint32_t size, const Candidate *c)
{
	Ctx *ctx = b->w->ctx;
	Graph *g = b->g;
	Arena *a = arena_new(&ctx->unwind);
	Sym sym[] = {sym_find(g->ir->syms, "B", 1), sym_find(g->ir->syms, "N", 1)};
	int64_t value[] = {sizes[size][0], sizes[size][1]};
	EvalCtx e = {
		.ctx = ctx, .arena = a, .nsym = 2, .sym = sym, .value = value, .syms = g->ir->syms};
	Tensor *in = ARENA_ARRAY(a, Tensor, g->input.n),
	       *want = ARENA_ARRAY(a, Tensor, g->output.n);
	Tensor *have = ARENA_ARRAY(a, Tensor, g->output.n);
	for (uint32_t k = 0; k < g->input.n; k++)
		make_input(b, &e, k, &in[k]);
	bool ok = interp(ctx, g, in, g->input.n, want, g->output.n, a);
	if (ok && c->g)
		ok = interp(ctx, c->g, in, g->input.n, have, g->output.n, a);
	else if (ok)
		ok = run_model(b, c, in, have, a);
	for (uint32_t k = 0; k < g->output.n && ok; k++)
		ok = agree(b, c->what, size, k, &have[k], &want[k]);
	arena_free(a);
	return ok;
}

static const char *target_of(const Batch *b)
{
	static const char *const names[] = {"native", "generic-c", "x86-64-v3", "x86-64-v2"};
	return b->o->target ? b->o->target : names[b->seed / BATCH % 4];
}

static bool compare_compiled(Batch *b)
{
	bool ok = true;
	for (uint32_t fused = 0; fused < 2 && ok; fused++) {
		Model m = {0}, loops = {0};
		WeftGraph wg = {b->w, b->g, "fuzz"};
		WeftOptions o = {.size = sizeof o,
				 .no_cache = true,
				 .op_by_op = !fused,
				 .target = target_of(b)};
		Candidate c = {fused ? "compiled" : "compiled op by op", NULL, &m, &loops};
		ok = model_open(&m, b->w, &wg, &o) && model_open_loops(&loops, b->w, &wg, &o);
		for (uint32_t k = 0; k < sizeof sizes / sizeof *sizes && ok; k++)
			ok = compare_at(b, k, &c);
		model_close(&m);
		model_close(&loops);
	}
	return ok;
}

static bool run(void *arg)
{
	Batch *b = arg;
	PipelineOptions o = {0};
	TRY(build(b));
	if (b->only)
		keep_output(b->g, b->only - 1);
	if (b->only)
		b->tolerance.data[0] = b->tolerance.data[b->only - 1];
	Graph *simple = graph_clone(b->g);
	TRY(pipeline_run(simple, &o));
	Candidate c = {"after the passes", simple, NULL, NULL};
	for (uint32_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
		TRY(compare_at(b, k, &c));
	return b->o->passes || compare_compiled(b);
}

/* ---- reports ---- */

static void print_graph(Batch *b)
{
	Text t;
	if (!b->g || b->w->dead)
		return;
	text_init(&t, b->w->ctx->arena);
	for (uint32_t k = 0; k < b->g->input.n; k++) {
		const FuzzInput in = b->input.data[k];
		if (dtype_is_float(node_dtype(b->g, b->g->input.data[k].node)))
			continue;
		text_printf(&t, "; input %s = random %g %g\n", b->g->input.data[k].name, in.lo,
			    in.hi);
	}
	graph_print(b->g, &t);
	printf("; run: compiled %s\n; sizes: B=2,N=5 B=40,N=33\n%s", target_of(b), t.data);
}

static bool run_batch(const Options *o, uint64_t seed, uint32_t count, uint32_t only, bool print,
		      Batch *b)
{
	*b = (Batch){.o = o, .seed = seed, .count = count, .only = only, .w = weft_new()};
	if (!b->w)
		return false;
	bool ok = boundary(b->w, run, b);
	if (print && (!ok || o->print)) {
		if (!ok)
			printf("seed %llu: %s%s", (unsigned long long)seed, b->how,
			       b->how[0] ? "\n" : "");
		if (!ok && !b->how[0])
			printf("%s", weft_messages(b->w));
		print_graph(b);
	}
	return ok;
}

/* One graph by itself; when one output differs, that output alone. */
static bool run_single(const Options *o, uint64_t seed)
{
	Batch b, again;
	bool ok = run_batch(o, seed, 1, 0, o->print, &b);
	uint32_t failed = b.failed;
	if (!ok && failed) {
		bool alone = run_batch(o, seed, 1, failed, true, &again);
		if (alone)
			printf("seed %llu: output %u by itself agrees\n", (unsigned long long)seed,
			       failed - 1);
		weft_free(again.w);
	}
	weft_free(b.w);
	if (!ok && !failed) {
		run_batch(o, seed, 1, 0, true, &b);
		weft_free(b.w);
	}
	fflush(stdout);
	return ok;
}

static uint32_t run_many(const Options *o, uint64_t seed, uint32_t count)
{
	Batch b;
	uint32_t failed = 0;
	bool ok = run_batch(o, seed, count, 0, false, &b);
	weft_free(b.w);
	for (uint32_t k = 0; k < count && !ok; k++)
		failed += !run_single(o, seed + k);
	if (!ok && !failed) {
		printf("seed %llu: %u graphs together fail, each passes by itself\n",
		       (unsigned long long)seed, count);
		failed = 1;
	}
	return failed;
}

static bool option(int argc, char **argv, int *k, const char *name, const char **value)
{
	if (strcmp(argv[*k], name) || *k + 1 >= argc)
		return false;
	*value = argv[++*k];
	return true;
}

int main(int argc, char **argv)
{
	Options o = {.seed = 0, .count = 60, .steps = 10};
	uint32_t failed = 0;
	const char *v;
	for (int k = 1; k < argc; k++)
		if (option(argc, argv, &k, "--seed", &v))
			o.seed = strtoull(v, NULL, 10);
		else if (option(argc, argv, &k, "--count", &v))
			o.count = (uint32_t)strtoul(v, NULL, 10);
		else if (option(argc, argv, &k, "--steps", &v))
			o.steps = (uint32_t)strtoul(v, NULL, 10);
		else if (option(argc, argv, &k, "--target", &v))
			o.target = v;
		else if (!strcmp(argv[k], "--passes"))
			o.passes = true;
		else if (!strcmp(argv[k], "--print"))
			o.print = true;
	for (uint32_t k = 0; k < o.count; k += BATCH) {
		uint32_t n = o.count - k < BATCH ? o.count - k : BATCH;
		failed += n == 1 ? !run_single(&o, o.seed + k) : run_many(&o, o.seed + k, n);
	}
	printf("%u passed, %u failed\n", o.count - failed, failed);
	return failed > 0;
}
