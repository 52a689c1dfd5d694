/* fuzz_graphs [--seed N] [--count N] [--steps N] [--target NAME] [--backend c|llvm|both|loops] [--passes] [--print]
 *
 * Random graphs, several in one compilation: the interpreter on the graph as it is, on the graph after the passes, and
 * compiled code with and without fusion must agree at a handful of sizes; code of both emitters, on one thread and on
 * three, agrees with its interpreted loop IR, which has no findings, to the bit. What differs is printed as a file test
 * with one output. Without --backend C is compiled in some batches only, with or without fusion. --passes compiles
 * nothing; --print shows the graph. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file_test.h"
#include "fuzz.h"
#include "ir/interp/interp.h"
#include "model.h"
#include "passes/pipeline.h"

enum { BATCH = 10 };

/* Of fuzz_symbol: 1, small, odd, more than a vector; nothing. */
static const int64_t sizes[][FUZZ_SYMBOLS] = {{1, 3, 0}, {2, 5, 1}, {7, 16, 9}, {17, 3, 0}, {40, 33, 24}};

typedef struct {
	uint64_t seed;
	uint32_t count, steps;
	const char *target, *backend;
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
	Sym size[FUZZ_SYMBOLS]; /* and an input that binds them */
	for (uint32_t k = 0; k < FUZZ_SYMBOLS; k++)
		size[k] = sym_var(ir->syms, fuzz_symbol[k].name, SYMVAR_SIZE, fuzz_symbol[k].lo, fuzz_symbol[k].hi);
	graph_add_input(b->g, "sizes", INPUT_USER, ir_type(ir, DT_bool, FUZZ_SYMBOLS, size));
	array_push(ctx->arena, &b->input, (FuzzInput){0, 1, 1});
	for (uint32_t k = 0; k < b->count; k++) {
		Fuzz f = {.g = b->g,
			  .ir = ir,
			  .b = {.g = b->g},
			  .rng = (b->seed + k) * 0x9e3779b97f4a7c15u + 1,

			  .size = {size[0], size[1], size[2]},
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

/* " at B=2, N=5" */
static const char *at_size(const Batch *b, uint32_t size)
{
	Text t;
	text_init(&t, b->w->ctx->arena);
	for (uint32_t k = 0; k < FUZZ_SYMBOLS; k++)
		text_printf(&t, "%s%s=%lld", k ? ", " : " at ", fuzz_symbol[k].name, (long long)sizes[size][k]);
	return t.data;
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
		snprintf(b->how, sizeof b->how, "%s%s: element %s is %.9g, expected %.9g", what, at_size(b, size),
			 at.data, tensor_f64(x, i), tensor_f64(y, i));
		b->failed = k + 1;
		return false;
	}
	if (!shape)
		snprintf(b->how, sizeof b->how, "%s: differs in shape or dtype", what);
	b->failed = shape ? 0 : k + 1;
	return shape;
}

/* The same model compiled by each emitter, and with its loop IR interpreted. */
enum { EMITTERS = 2 };
static const char *const emitter_name[EMITTERS] = {"llvm", "c"};
typedef struct {
	const char *what;
	Graph *g; /* interpreted, or ... */
	Model model[EMITTERS], loops; /* ... compiled; those that are open */
} Candidate;

static bool failed_call(Batch *b, const Candidate *c, const char *which, uint32_t size, const Model *m)
{
	return ctx_error(b->w->ctx, c->what, "%s%s: %s", which, at_size(b, size), m->status.message);
}

static bool same_bits(Batch *b, const Candidate *c, const char *which, uint32_t size, const Tensor *x, const Tensor *y)
{
	for (uint32_t k = 0; k < b->g->output.n; k++)
		if (values_other_bits(&x[k], &y[k]) >= 0) {
			b->failed = k + 1;
			snprintf(b->how, sizeof b->how, "%s%s: output %u, %s", c->what, at_size(b, size), k, which);
			return false;
		}
	return true;
}

/* One thread, three, both emitters and the interpreter of loop IR give the same bits. */
static bool run_models(Batch *b, const Candidate *c, uint32_t size, const Tensor *in, Tensor *out, Arena *a)
{
	Candidate m = *c;
	uint32_t nin = b->g->input.n;
	Tensor *again = ARENA_ARRAY(a, Tensor, b->g->output.n);
	if (model_run(&m.loops, in, nin, out, 1, a) != WEFT_OK)
		return failed_call(b, c, "loops", size, &m.loops);
	for (uint32_t k = 0; k < EMITTERS; k++)
		for (int32_t nthreads = 1; m.model[k].instance && nthreads <= 3; nthreads += 2) {
			if (model_run(&m.model[k], in, nin, again, nthreads, a) != WEFT_OK)
				return failed_call(b, c, emitter_name[k], size, &m.model[k]);
			const char *which = arena_printf(a, "%s with %d threads has other bits than the interpreted loop IR",
							 emitter_name[k], nthreads);
			TRY(same_bits(b, c, which, size, again, out));
		}
	return true;
}

static bool compare_at(Batch *b, uint32_t size, const Candidate *c)
{
	Ctx *ctx = b->w->ctx;
	Graph *g = b->g;
	Arena *a = arena_new(&ctx->unwind);
	Sym sym[FUZZ_SYMBOLS];
	int64_t value[FUZZ_SYMBOLS];
	for (uint32_t k = 0; k < FUZZ_SYMBOLS; k++) {
		sym[k] = sym_find(g->ir->syms, fuzz_symbol[k].name, 1);
		value[k] = sizes[size][k];
	}
	EvalCtx e = {.ctx = ctx,
		     .arena = a,
		     .nsym = FUZZ_SYMBOLS,
		     .sym = sym,
		     .value = value,
		     .syms = g->ir->syms};
	Tensor *in = ARENA_ARRAY(a, Tensor, g->input.n),
	       *want = ARENA_ARRAY(a, Tensor, g->output.n);
	Tensor *have = ARENA_ARRAY(a, Tensor, g->output.n);
	for (uint32_t k = 0; k < g->input.n; k++)
		make_input(b, &e, k, &in[k]);
	bool ok = interp(ctx, g, in, g->input.n, want, g->output.n, a);
	if (ok && c->g)
		ok = interp(ctx, c->g, in, g->input.n, have, g->output.n, a);
	else if (ok)
		ok = run_models(b, c, size, in, have, a);
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

/* By each emitter that is wanted and has the target. */
static bool open_models(Batch *b, Candidate *c, bool fused)
{
	WeftGraph *wg = graph_wrap(b->w, b->g, "fuzz");
	WeftOptions o = {.size = sizeof o, .no_cache = true, .op_by_op = !fused, .target = target_of(b)};
	const char *only = b->o->backend;
	bool generic = !strcmp(o.target, "generic-c");
	uint64_t turn = b->seed / BATCH;
	bool takes_turn = fused == ((turn / 4 + turn / 2) % 2 == 0) && (generic || turn % 3 == 0);
	bool both = only && !strcmp(only, "both");
	bool wanted[EMITTERS] = {weft_has_llvm() && !generic && (!only || both || !strcmp(only, "llvm")),
				 only ? both || !strcmp(only, "c") : takes_turn};
	if (wanted[0])
		TRY(model_open_jit(&c->model[0], b->w, wg, &o));
	o.backend = WEFT_BACKEND_C;
	if (wanted[1])
		TRY(model_open(&c->model[1], b->w, wg, &o));
	return model_open_loops(&c->loops, b->w, wg, &o);
}

static bool compare_compiled(Batch *b)
{
	bool ok = true;
	for (uint32_t fused = 0; fused < 2 && ok; fused++) {
		Candidate c = {.what = fused ? "compiled" : "compiled op by op"};
		ok = open_models(b, &c, fused);
		for (uint32_t k = 0; k < sizeof sizes / sizeof *sizes && ok; k++)
			ok = compare_at(b, k, &c);
		for (uint32_t k = 0; k < EMITTERS; k++)
			model_close(&c.model[k]);
		model_close(&c.loops);
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
	Candidate c = {.what = "after the passes", .g = simple};
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
	printf("; run: compiled %s\n; sizes: B=1,N=3,Z=0 B=2,N=5,Z=1 B=40,N=33,Z=24\n%s", target_of(b), t.data);
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
		else if (option(argc, argv, &k, "--backend", &v))
			o.backend = v;
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
