/* fuzz_derive [--seed N] [--count N] [--steps N] [--c-every N] [--compose] [--interp] [--print]
 * [--text]
 *
 * Derivatives and batches of random graphs, every third with complex numbers (derive_check.h).
 * --interp: nothing is compiled; --c-every: every Nth seed is compiled to C too; --compose: up to
 * four transforms, one of the other, in random order; --text shows the file test of each seed and
 * runs nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/build/text.h"
#include "tests/oracle/derive_check.h"
#include "fuzz.h"

static const char sizes[] = "B=1,N=3,Z=0 B=2,N=5,Z=1 B=7,N=3,Z=9";

typedef struct {
	uint64_t seed;
	uint32_t count, steps, c_every;
	bool compose, interp, print, text;
} Options;

typedef struct {
	const Options *o;
	uint64_t seed;
	Weft *w;
	Graph *g;
	Text text; /* the header of a file test */
	uint32_t *pattern;
	DeriveCheck check;
} Run;

static bool build(Run *r)
{
	Ctx *ctx = r->w->ctx;
	Ir *ir = ir_new(ctx);
	Graph *g = graph_new(ir, "fuzz");
	Text tolerances;
	text_init(&tolerances, ctx->arena);
	Fuzz f = {.g = g,
		  .ir = ir,
		  .b = {.g = g},
		  .has_complex = r->seed % 3 == 0,
		  .rng = r->seed * 0x9e3779b97f4a7c15u + 1,
		  .prefix = "",
		  .header = &r->text,
		  .seed = r->seed * 1000,
		  .tolerances = &tolerances};
	for (uint32_t k = 0; k < FUZZ_SYMBOLS; k++)
		f.size[k] = sym_var(ir->syms, fuzz_symbol[k].name, SYMVAR_SIZE, fuzz_symbol[k].lo,
				    fuzz_symbol[k].hi);
	graph_add_input(g, "sizes", INPUT_USER, ir_type(ir, DT_bool, FUZZ_SYMBOLS, f.size));
	fuzz_below(&f, 2);
	TRY(fuzz_graph(&f, r->o->steps));
	graph_dce(g);
	fuzz_patterns(g, r->pattern);
	text_printf(&r->text, "; run: %s\n; seed: %" PRIu64 "\n; sizes: %s\n",
		    r->o->compose ? "composed" : "derived", r->seed, sizes);
	r->g = g;
	return true;
}

static bool run(void *arg)
{
	Run *r = arg;
	const Options *o = r->o;
	TRY(build(r));
	r->check = (DeriveCheck){.test = arena_dup(r->w->ctx->arena,
						   &(FileTest){"fuzz", r->text.data, NULL},
						   sizeof(FileTest)),
				 .w = r->w,
				 .g = r->g,
				 .interp = o->interp,
				 .jit = true,
				 .c = o->c_every && r->seed % o->c_every == 0};
	return o->text || (o->compose ? compose_check : derive_check)(&r->check);
}

static bool run_seed(const Options *o, uint64_t seed, uint32_t *checked, uint32_t *pattern)
{
	Run r = {.o = o, .seed = seed, .w = weft_new(), .pattern = pattern};
	if (!r.w)
		return false;
	text_init(&r.text, r.w->ctx->arena);
	bool ok = boundary(r.w, run, &r);
	*checked += r.check.checked;
	if (!ok)
		printf("seed %llu: %s\n%s", (unsigned long long)seed, r.check.how,
		       weft_messages(r.w));
	if ((!ok || o->print || o->text) && r.g && !r.w->dead) {
		Text t;
		text_init(&t, r.w->ctx->arena);
		graph_print(r.g, &t);
		printf("%s%s", r.text.data, t.data);
	}
	weft_free(r.w);
	fflush(stdout);
	return ok;
}

int main(int argc, char **argv)
{
	Options o = {.count = 60, .steps = 8};
	uint32_t bad = 0, checked = 0, pattern[FUZZ_PATTERNS] = {0};
	for (int k = 1; k < argc; k++)
		if (!strcmp(argv[k], "--seed") && k + 1 < argc)
			o.seed = strtoull(argv[++k], NULL, 10);
		else if (!strcmp(argv[k], "--count") && k + 1 < argc)
			o.count = (uint32_t)strtoul(argv[++k], NULL, 10);
		else if (!strcmp(argv[k], "--steps") && k + 1 < argc)
			o.steps = (uint32_t)strtoul(argv[++k], NULL, 10);
		else if (!strcmp(argv[k], "--c-every") && k + 1 < argc)
			o.c_every = (uint32_t)strtoul(argv[++k], NULL, 10);
		else if (!strcmp(argv[k], "--compose"))
			o.compose = true;
		else if (!strcmp(argv[k], "--interp"))
			o.interp = true;
		else if (!strcmp(argv[k], "--print"))
			o.print = true;
		else if (!strcmp(argv[k], "--text"))
			o.text = true;
	for (uint32_t k = 0; k < o.count; k++)
		bad += !run_seed(&o, o.seed + k, &checked, pattern);
	if (o.text)
		return 0;
	fuzz_print_patterns(pattern);
	printf("%u passed, %u failed; %u tangents are differences of values\n", o.count - bad, bad,
	       checked);
	return bad > 0;
}
