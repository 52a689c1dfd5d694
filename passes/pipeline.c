/* file -> canon -> decompose -> split_complex -> quantize -> ( sink -> branch -> simplify -> cse ->
 * row_sums -> rows -> fold -> fold_scale -> dce -> state )* -> sum_products -> winograd -> pad ->
 * lowering
 *
 * canon and decompose find what is wrong with the input; the others cannot fail. The bracket is
 * repeated until a round changes nothing. Each of its passes removes nodes or moves them in one
 * direction, so this ends; MAX_ROUNDS bounds it against a bug, which debug builds report. */
#include "passes/pipeline.h"

#include <string.h>

#include "base/nearest.h"
#include "ir/build/text.h"
#include "ir/build/verify.h"
#include "ir/target/target.h"
#include "passes/pass.h"

enum { MAX_ROUNDS = 16 };

/* The passes in order: X(simplify) stands for the pass "simplify", pass_simplify. */
#define EXPANDING(X) X(canon) X(decompose) X(split_complex)
/* Once for each target, before constants fold. */
#define CHOOSING(X) X(quantize)
#define CLEANING(X)                                                                                \
	X(sink)                                                                                    \
	X(branch) X(simplify) X(cse) X(row_sums) X(rows) X(fold) X(fold_scale) X(dce) X(state)
/* Once, on a clean graph: what only lowering wants. */
#define CLOSING(X) X(sum_products) X(winograd) X(pad)

#define ROW(pass)  {#pass, pass_##pass},
#define NAME(pass) #pass,
static const Pass expanding[] = {EXPANDING(ROW)};
static const Pass choosing[] = {CHOOSING(ROW)};
static const Pass cleaning[] = {CLEANING(ROW)};
static const Pass closing[] = {CLOSING(ROW)};

#define COUNT(a) (sizeof(a) / sizeof *(a))

bool pass_dce(Graph *g, PassCtx *c)
{
	bool changed = graph_dce(g);
	return pass_subgraphs(g, c, pass_dce) || changed;
}

/* ---- driver ---- */

#ifndef NDEBUG
/* Checks that parse(print(g)) is g. Constants are looked up by id. */
static void check_round_trip(Graph *g, const char *pass)
{
	Ctx *ctx = g->ir->ctx;
	Text text;
	text_init(&text, ctx->scratch);
	graph_print(g, &text);
	Graph *copy = graph_parse_beside(g, text.data, pass);
	if (!copy)
		ctx_bug(ctx, "the graph after %s does not parse: %s", pass,
			ctx->last ? ctx->last->text : "");
	if (!graph_equal(g, copy))
		ctx_bug(ctx, "the graph after %s is another one when read back", pass);
}

/* Returns the graph's text without what is dead: a pass that changes nothing leaves it as it is.
 * NULL for large graphs. */
static const char *live_text(const Graph *g)
{
	enum { LARGE = 600 };
	Text text;
	if (g->node.n > LARGE)
		return NULL;
	Graph *copy = graph_clone(g);
	graph_dce(copy);
	text_init(&text, g->ir->ctx->scratch);
	graph_print(copy, &text);
	return text.data;
}

static void check_unchanged(const Graph *g, const char *before, const char *pass)
{
	const char *after = before ? live_text(g) : NULL;
	if (after && strcmp(before, after) != 0)
		ctx_bug(g->ir->ctx, "%s says that it changed nothing, but did", pass);
}
#endif

static void check(Graph *g, const char *pass)
{
	if (!graph_verify(g))
		ctx_bug_verify(g->ir->ctx, pass);
#ifndef NDEBUG
	check_round_trip(g, pass);
#endif
}

static void dump(const Graph *g, const PipelineOptions *o, const char *pass, bool changed)
{
	if (!o->dump || !o->dump_to || (strcmp(o->dump, pass) != 0 && strcmp(o->dump, "all") != 0))
		return;
	text_printf(o->dump_to, "; after %s%s\n", pass, changed ? "" : " (unchanged)");
	if (changed || strcmp(o->dump, "all") != 0)
		graph_print(g, o->dump_to);
}

/* Runs a pass. Returns true if the graph changed. */
static bool run(Graph *g, const PipelineOptions *o, const Pass *p, PassCtx *c)
{
	Ctx *ctx = g->ir->ctx;
	if (o->skip && strcmp(o->skip, p->name) == 0)
		return false;
	ArenaMark mark = arena_mark(ctx->scratch);
	ctx->pass = p->name;
#ifndef NDEBUG
	const char *before = live_text(g);
	ArenaMark inner = arena_mark(ctx->scratch);
#else
	ArenaMark inner = mark;
#endif
	bool changed = p->run(g, c);
	arena_release(ctx->scratch, inner);
#ifndef NDEBUG
	if (!c->failed && changed)
		check(g, p->name);
	else if (!c->failed)
		check_unchanged(g, before, p->name);
	arena_release(ctx->scratch, mark);
#endif
	dump(g, o, p->name, changed);
	if (o->after)
		o->after(o->user, p->name, g, changed);
	ctx->pass = NULL;
	return changed;
}

static PassCtx context(const PipelineOptions *o)
{
	return (PassCtx){.keep_params = o->keep_params,
			 .target = o->target ? o->target : target_find("generic-c"),
			 .floats = o->floats,
			 .keep = o->keep,
			 .nkeep = o->nkeep};
}

static void clean(Graph *g, const PipelineOptions *o, PassCtx *c)
{
	bool changed = true;
	for (uint32_t round = 0; changed && round < MAX_ROUNDS; round++) {
		changed = false;
		for (size_t k = 0; k < COUNT(cleaning); k++) {
			bool did = run(g, o, &cleaning[k], c);
			/* what a rule built before it gave up is dead: removing it is no progress
			 */
			changed |= did && cleaning[k].run != pass_dce;
		}
	}
#ifndef NDEBUG
	if (changed)
		ctx_bug(g->ir->ctx, "the graph still changes after %d rounds", MAX_ROUNDS);
#else /* once, not after each pass */
	ArenaMark mark = arena_mark(g->ir->ctx->scratch);
	check(g, "all passes");
	arena_release(g->ir->ctx->scratch, mark);
#endif
}

void pipeline_clean(Graph *g, const PipelineOptions *o)
{
	PassCtx c = context(o);
	clean(g, o, &c);
}

static bool run_list(Graph *g, const PipelineOptions *o, const Pass *list, size_t n, PassCtx *c)
{
	for (size_t k = 0; k < n && !c->failed; k++)
		run(g, o, &list[k], c);
	return !c->failed;
}

bool pipeline_expand(Graph *g, const PipelineOptions *o)
{
	PassCtx c = context(o);
	return run_list(g, o, expanding, COUNT(expanding), &c);
}

bool pipeline_finish(Graph *g, const PipelineOptions *o)
{
	PassCtx c = context(o);
	TRY(run_list(g, o, choosing, COUNT(choosing), &c));
	clean(g, o, &c);
	return run_list(g, o, closing, COUNT(closing), &c);
}

bool pipeline_run(Graph *g, const PipelineOptions *o)
{
	return pipeline_expand(g, o) && pipeline_finish(g, o);
}

/* Returns pass k in the order of pipeline_names; NULL after the last. */
static const Pass *pass_at(size_t k)
{
	if (k < COUNT(expanding))
		return &expanding[k];
	k -= COUNT(expanding);
	if (k < COUNT(choosing))
		return &choosing[k];
	k -= COUNT(choosing);
	if (k < COUNT(cleaning))
		return &cleaning[k];
	k -= COUNT(cleaning);
	return k < COUNT(closing) ? &closing[k] : NULL;
}

bool pipeline_run_one(Graph *g, const char *pass)
{
	const PipelineOptions o = {0};
	PassCtx c = context(&o);
	c.integers = true;
	const Pass *p;
	for (size_t k = 0; (p = pass_at(k)); k++) {
		if (strcmp(p->name, pass) == 0) {
			run(g, &o, p, &c);
			return !c.failed;
		}
	}
	return ctx_error(g->ir->ctx, NULL, "no pass %s", pass);
}

const char *const *pipeline_names(void)
{
	static const char *const names[] = {EXPANDING(NAME) CHOOSING(NAME) CLEANING(NAME)
						    CLOSING(NAME) NULL};
	return names;
}

const char *pipeline_hint(Arena *a, const char *name)
{
	Nearest near = {.word = name, .most = nearest_most(strlen(name))};
	for (const char *const *p = pipeline_names(); *p; p++)
		nearest_offer(&near, *p);
	return near.found ? nearest_hint(a, &near) : "; see weft show --after list";
}
