/* fuzz_graphs [--seed N] [--count N] [--steps N] [--target NAME] [--backend c|llvm|both|loops]
 * [--c-every N] [--passes] [--print] [--text]
 *
 * Random graphs, several in one compilation: the interpreter on the graph as it is, on the graph
 * after the passes, and compiled code with and without fusion must agree at a handful of sizes;
 * code of both emitters, on one thread and on three, agrees with its interpreted loop IR, which has
 * no findings, to the bit (graph_check.h). What differs is printed as a file test with one output.
 * Without --backend C is compiled in some batches only, with or without fusion; with --c-every in
 * every Nth. --passes compiles nothing; --print shows the graph; --text shows the file test of each
 * seed and runs nothing. At the end stands how often each pattern was drawn that has gone wrong
 * before. scripts/net.py runs this with fresh seeds and reduces what fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "ir/build/text.h"
#include "ir/build/verify.h"
#include "tests/oracle/graph_check.h"

enum { BATCH = 10 };

/* Of fuzz_symbol: 1, small, odd, more than a vector; nothing. */
static const char sizes[] = "B=1,N=3,Z=0 B=2,N=5,Z=1 B=7,N=16,Z=9 B=17,N=3,Z=0 B=40,N=33,Z=24";

typedef struct {
	uint64_t seed;
	uint32_t count, steps, c_every;
	const char *target, *backend;
	bool passes, print, text;
} Options;

/* Some random graphs in one. */
typedef struct {
	const Options *o;
	uint64_t seed;
	uint32_t count, only; /* how many; only >= 0: of output `only` */
	Weft *w;
	Graph *g;
	Text text, tolerances; /* the header of a file test */
	uint32_t *pattern;     /* counts; NULL: they are counted already */
	GraphCheck check;
} Batch;

/* ---- graphs ---- */

static bool build(Batch *b)
{
	Ctx *ctx = b->w->ctx;
	Ir *ir = ir_new(ctx);
	b->g = graph_new(ir, "fuzz");
	Sym size[FUZZ_SYMBOLS]; /* and an input that binds them */
	for (uint32_t k = 0; k < FUZZ_SYMBOLS; k++)
		size[k] = sym_var(ir->syms, fuzz_symbol[k].name, SYMVAR_SIZE, fuzz_symbol[k].lo,
				  fuzz_symbol[k].hi);
	graph_add_input(b->g, "sizes", INPUT_USER, ir_type(ir, DT_bool, FUZZ_SYMBOLS, size));
	for (uint32_t k = 0; k < b->count; k++) {
		Fuzz f = {.g = b->g,
			  .ir = ir,
			  .b = {.g = b->g},
			  .rng = (b->seed + k) * 0x9e3779b97f4a7c15u + 1,
			  .size = {size[0], size[1], size[2]},
			  .header = &b->text,
			  .seed = (b->seed + k) * 1000,
			  .tolerances = &b->tolerances};
		f.prefix = b->count > 1 ? arena_printf(ctx->arena, "g%llu_",
						       (unsigned long long)(b->seed + k))
					: "";
		fuzz_below(&f, 2);
		TRY(fuzz_graph(&f, b->o->steps));
	}
	if (b->pattern)
		fuzz_patterns(b->g, b->pattern);
	return graph_verify(b->g);
}

static void keep_output(Batch *b, uint32_t k)
{
	char *s = b->tolerances.data;
	for (uint32_t i = 0; i < k; i++)
		strtod(s, &s);
	Text one;
	text_init(&one, b->w->ctx->arena);
	text_printf(&one, " %.3g", strtod(s, NULL));
	b->tolerances = one;
	b->g->output.data[0] = b->g->output.data[k];
	b->g->output.n = 1;
	graph_dce(b->g);
}

static const char *target_of(const Batch *b)
{
	static const char *const names[] = {"native", "generic-c", "x86-64-v3", "x86-64-v2"};
	return b->o->target ? b->o->target : names[b->seed / BATCH % 4];
}

/* Which emitters take part; C, which takes long, seldom. */
static void choose_emitters(const Batch *b, GraphCheck *c)
{
	const char *only = b->o->backend;
	bool both = only && !strcmp(only, "both"), generic = !strcmp(c->target, "generic-c");
	uint64_t turn = b->seed / BATCH;
	c->jit = !only || both || !strcmp(only, "llvm");
	for (uint32_t fused = 0; fused < 2; fused++)
		if (only)
			c->c[fused] = both || !strcmp(only, "c");
		else if (b->o->c_every)
			c->c[fused] = turn % b->o->c_every == 0;
		else
			c->c[fused] = fused == ((turn / 4 + turn / 2) % 2 == 0) &&
				      (generic || turn % 3 == 0);
}

static bool run(void *arg)
{
	Batch *b = arg;
	TRY(build(b));
	if (b->only)
		keep_output(b, b->only - 1);
	text_printf(&b->text, "; run: graphs %s\n; sizes: %s\n; tolerances:%s\n", target_of(b),
		    sizes, b->tolerances.data);
	b->check.test = arena_dup(b->w->ctx->arena, &(FileTest){"fuzz", b->text.data, NULL},
				  sizeof(FileTest));
	b->check.w = b->w;
	b->check.g = b->g;
	b->check.target = target_of(b);
	b->check.passes = b->o->passes;
	choose_emitters(b, &b->check);
	return b->o->text || graph_check(&b->check);
}

/* ---- reports ---- */

static void print_graph(Batch *b)
{
	Text t;
	if (!b->g || b->w->dead)
		return;
	text_init(&t, b->w->ctx->arena);
	graph_print(b->g, &t);
	printf("%s%s", b->text.data, t.data);
}

static bool run_batch(const Options *o, uint64_t seed, uint32_t count, uint32_t only, bool print,
		      uint32_t *pattern, Batch *b)
{
	*b = (Batch){.o = o,
		     .seed = seed,
		     .count = count,
		     .only = only,
		     .w = weft_new(),
		     .pattern = pattern};
	if (!b->w)
		return false;
	text_init(&b->text, b->w->ctx->arena);
	text_init(&b->tolerances, b->w->ctx->arena);
	bool ok = boundary(b->w, run, b);
	if (print && (!ok || o->print || o->text)) {
		if (!ok)
			printf("seed %llu: %s%s", (unsigned long long)seed, b->check.how,
			       b->check.how[0] ? "\n" : "");
		if (!ok && !b->check.how[0])
			printf("%s", weft_messages(b->w));
		print_graph(b);
	}
	return ok;
}

/* One graph by itself; when one output differs, that output alone. */
static bool run_single(const Options *o, uint64_t seed, uint32_t *pattern)
{
	Batch b, again;
	bool ok = run_batch(o, seed, 1, 0, o->print || o->text, pattern, &b);
	uint32_t failed = b.check.failed;
	if (!ok && failed) {
		bool alone = run_batch(o, seed, 1, failed, true, NULL, &again);
		if (alone)
			printf("seed %llu: output %u by itself agrees\n", (unsigned long long)seed,
			       failed - 1);
		weft_free(again.w);
	}
	weft_free(b.w);
	if (!ok && !failed) {
		run_batch(o, seed, 1, 0, true, NULL, &b);
		weft_free(b.w);
	}
	fflush(stdout);
	return ok;
}

static uint32_t run_many(const Options *o, uint64_t seed, uint32_t count, uint32_t *pattern)
{
	Batch b;
	uint32_t failed = 0;
	bool ok = run_batch(o, seed, count, 0, false, pattern, &b);
	weft_free(b.w);
	for (uint32_t k = 0; k < count && !ok; k++)
		failed += !run_single(o, seed + k, NULL);
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
	uint32_t failed = 0, pattern[FUZZ_PATTERNS] = {0};
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
		else if (option(argc, argv, &k, "--c-every", &v))
			o.c_every = (uint32_t)strtoul(v, NULL, 10);
		else if (!strcmp(argv[k], "--passes"))
			o.passes = true;
		else if (!strcmp(argv[k], "--print"))
			o.print = true;
		else if (!strcmp(argv[k], "--text"))
			o.text = true;
	for (uint32_t k = 0; k < o.count; k += BATCH) {
		uint32_t n = o.text ? 1 : o.count - k < BATCH ? o.count - k : BATCH;
		failed += n == 1 ? !run_single(&o, o.seed + k, pattern)
				 : run_many(&o, o.seed + k, n, pattern);
	}
	if (o.text)
		return 0;
	fuzz_print_patterns(pattern);
	printf("%u passed, %u failed\n", o.count - failed, failed);
	return failed > 0;
}
