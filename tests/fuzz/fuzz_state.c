/* fuzz_state [--seed N] [--count N] [--steps N] [--print] [--text]
 *
 * Random graphs that replace state: in parts and as a whole, one by another's old value, with
 * checks in between that sometimes fail. Several calls of each: interpreted, as loop IR and as
 * machine code on 1, 2 and 8 threads; outputs and state agree after every call. What differs is
 * printed as a file test; --text prints that of each seed and runs nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/build/text.h"
#include "ir/build/verify.h"
#include "ir/op/node.h"
#include "tests/text/file_calls.h"
#include "ir/interp/interp.h"

/* Values of four types, named by kind and number. */
typedef enum { TABLE, ROW, PLACE, NUMBER, KINDS } Kind; /* f32[6, 4], f32[1, 4], i64[], f32[] */

typedef struct {
	Text *t;
	uint64_t rng;
	uint32_t n[KINDS], next;
	char name[KINDS][64][8];
} Gen;

static uint32_t below(Gen *g, uint32_t n)
{
	g->rng ^= g->rng << 13;
	g->rng ^= g->rng >> 7;
	g->rng ^= g->rng << 17;
	return (uint32_t)(g->rng >> 33) % n;
}

static const char *any(Gen *g, Kind k)
{
	return g->name[k][below(g, g->n[k])];
}

static void have(Gen *g, Kind k, const char *name)
{
	if (g->n[k] < 64)
		snprintf(g->name[k][g->n[k]++], 8, "%s", name);
}

/* A line "  %vN = "; the value is known from the next line on. */
static const char *begin(Gen *g, char name[8])
{
	snprintf(name, 8, "v%u", g->next++);
	text_printf(g->t, "  %%%s = ", name);
	return name;
}

/* Rows from .. to - 1 of a table: a line. */
static void rows_of(Gen *g, char name[8], const char *table, uint32_t from, uint32_t to)
{
	begin(g, name);
	text_printf(g->t, "slice(%%%s, start=[%u, 0], end=[%u, 4], step=[1, 1])\n", table, from,
		    to);
}

/* ---- steps ---- */

static void table_step(Gen *g)
{
	char v[8], a[8], b[8];
	static const char *const binary[] = {"add", "sub", "minimum", "maximum"};
	uint32_t row = below(g, 6), kind = below(g, 10);
	const char *x = any(g, TABLE), *y = any(g, TABLE), *r = any(g, ROW), *p = any(g, PLACE),
		   *s = any(g, NUMBER);
	switch (kind) {
	case 0: case 1:
		begin(g, v);
		text_printf(g->t, "%s(%%%s, %%%s)\n", binary[below(g, 4)], x, y);
		break;
	case 2:
		begin(g, v);
		text_printf(g->t, "update_slice(%%%s, %%%s, [%%%s, %%zero])\n", x, r, p);
		break;
	case 3:
		begin(g, a);
		text_printf(g->t, "reshape(%%%s, shape=[1, 1])\n", p);
		begin(g, v);
		text_printf(g->t,
			    "scatter(%%%s, %%%s, %%%s, batch=0, axes=[0], combine=\"%s\", "
			    "mode=\"%s\", unique=false, sorted=false)\n",
			    x, a, r, below(g, 3) ? "set" : "add", below(g, 2) ? "check" : "clamp");
		break;
	case 4:
		rows_of(g, a, x, 0, row);
		rows_of(g, b, below(g, 3) ? x : y, row + 1, 6);
		begin(g, v);
		text_printf(g->t, "concat([%%%s, %%%s, %%%s], dim=0)\n", a, r, b);
		break;
	case 5:
		rows_of(g, a, x, 1, 6);
		begin(g, v);
		text_printf(g->t, "concat([%%%s, %%%s], dim=0)\n", a, r);
		break;
	case 6:
		begin(g, v);
		text_printf(g->t, "reverse(%%%s, dims=[%u])\n", x, below(g, 2));
		break;
	case 7: /* a part of what a selection gives, put back */
		rows_of(g, a, x, row, row + 1);
		begin(g, b);
		text_printf(g->t,
			    "reshape(%%%s, shape=[4])\n  %%%s_u = slice(%%%s, start=[0, 0], "
			    "end=[1, 2], step=[1, 1])\n"
			    "  %%%s_f = reshape(%%%s_u, shape=[2])\n  %%%s_n = update_slice(%%%s, "
			    "%%%s_f, [%%%s])\n"
			    "  %%%s_o = reshape(%%%s_n, shape=[1, 4])\n  %%%s_i = full(dtype=i64, "
			    "shape=[], value=%u)\n",
			    a, b, r, b, b, b, b, b, p, b, b, b, row);
		begin(g, v);
		text_printf(g->t, "update_slice(%%%s, %%%s_o, [%%%s_i, %%zero])\n", x, b, b);
		break;
	case 8:
		begin(g, a);
		text_printf(g->t, "broadcast(%%%s, shape=[6, 4], map=[])\n", s);
		begin(g, v);
		text_printf(g->t, "minimum(%%%s, %%%s)\n", x, a);
		break;
	default:
		begin(g, a);
		text_printf(g->t,
			    "contract(%%%s, %%w, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], "
			    "acc=f32)\n",
			    x);
		begin(g, v);
		text_printf(g->t, "%s(%%%s, %%%s)\n", binary[below(g, 4)], a, y);
		break;
	}
	have(g, TABLE, v);
}

/* As of an optimizer's update: element by element, of tables that are mostly recent. */
static void element_step(Gen *g)
{
	char v[8], a[8];
	static const char *const binary[] = {"add", "sub", "minimum", "maximum"};
	const uint32_t n = g->n[TABLE], near = below(g, 3);
	const char *x = g->name[TABLE][near < n ? n - 1 - near : 0], *y = any(g, TABLE);
	if (!below(g, 6)) {
		begin(g, a);
		text_printf(g->t, "reverse(%%%s, dims=[%u])\n", y, below(g, 2));
		begin(g, v);
		text_printf(g->t, "sub(%%%s, %%%s)\n", x, a);
	} else if (!below(g, 4)) {
		begin(g, a);
		text_printf(g->t, "broadcast(%%%s, shape=[6, 4], map=[])\n", any(g, NUMBER));
		begin(g, v);
		text_printf(g->t, "minimum(%%%s, %%%s)\n", x, a);
	} else {
		begin(g, v);
		text_printf(g->t, "%s(%%%s, %%%s)\n", binary[below(g, 4)], x, y);
	}
	have(g, TABLE, v);
}

static void row_step(Gen *g)
{
	char v[8];
	uint32_t row = below(g, 6);
	const char *x = any(g, TABLE), *r = any(g, ROW), *q = any(g, ROW), *p = any(g, PLACE);
	switch (below(g, 3)) {
	case 0:
		rows_of(g, v, x, row, row + 1);
		break;
	case 1:
		begin(g, v);
		text_printf(g->t, "slice_at(%%%s, [%%%s, %%zero], size=[1, 4])\n", x, p);
		break;
	default:
		begin(g, v);
		text_printf(g->t, "sub(%%%s, %%%s)\n", r, q);
		break;
	}
	have(g, ROW, v);
}

static void other_step(Gen *g)
{
	char v[8];
	const char *x = any(g, TABLE), *p = any(g, PLACE), *s = any(g, NUMBER);
	switch (below(g, 4)) {
	case 0:
		begin(g, v);
		text_printf(g->t, "add(%%%s, %%one)\n", p);
		have(g, PLACE, v);
		break;
	case 1: case 2:
		begin(g, v);
		text_printf(g->t, "reduce(%%%s, kind=\"%s\", dims=[0, 1], acc=f32)\n", x,
			    below(g, 2) ? "max" : "min");
		have(g, NUMBER, v);
		break;
	default:
		begin(g, v);
		text_printf(g->t, "lt(%%%s, %%lim)\n  assert(%%%s, message=\"too large\")\n", s, v);
		break;
	}
}

static void check(Gen *g, const char *table)
{
	char a[8], v[8];
	begin(g, a);
	text_printf(g->t, "reduce(%%%s, kind=\"max\", dims=[0, 1], acc=f32)\n", table);
	begin(g, v);
	text_printf(g->t, "lt(%%%s, %%lim)\n  assert(%%%s, message=\"too large\")\n", a, v);
}

/* ---- a graph ---- */

static void graph_text(Gen *g, uint32_t steps)
{
	text_add(g->t, "; run: calls\n; calls: 4\n; input lim = random 1 6\n; const \"a\": f32[6, "
		       "4] = random -2 2\n"
		       "; const \"b\": f32[6, 4] = random -2 2\n; const \"k\": i64[] = 0\n; const "
		       "\"m\": f32[] = 1\n"
		       "; const \"w\": f32[4, 4] = random -1 1\n"
		       "graph @f(%x: f32[6, 4], %r: f32[1, 4], %p: i64[], %lim: f32[], %a: f32[6, "
		       "4] buffer #1, %b: f32[6, 4] buffer #2, "
		       "%k: i64[] buffer #3, %m: f32[] param #4) {\n"
		       "  %w = const #5 f32[4, 4]\n  %zero = full(dtype=i64, shape=[], value=0)\n"
		       "  %one = full(dtype=i64, shape=[], value=1)\n");
	static const char *const first[KINDS][4] = {
		{"x", "a", "b"}, {"r"}, {"p", "k"}, {"m", "lim"}};
	for (Kind k = 0; k < KINDS; k++)
		for (uint32_t i = 0; i < 4 && first[k][i]; i++)
			have(g, k, first[k][i]);
	const bool updates = !below(g, 3);
	for (uint32_t i = 0; i < steps; i++) {
		uint32_t what = below(g, 8);
		if (updates && what != 7)
			element_step(g);
		else
			what < 4 ? table_step(g) : what < 6 ? row_step(g) : other_step(g);
	}
	static const struct {
		const char *name;
		Kind kind;
	} state[] = {{"a", TABLE}, {"b", TABLE}, {"k", PLACE}, {"m", NUMBER}};
	const char *to[4] = {NULL};
	for (uint32_t k = 0; k < 4; k++) {
		to[k] = below(g, 5) ? any(g, state[k].kind) : NULL;
		/* a check that needs what is written */
		if (to[k] && state[k].kind == TABLE && below(g, 2))
			check(g, to[k]);
	}
	text_printf(g->t, "  return %%%s \"y\", %%%s \"z\"", any(g, TABLE), any(g, ROW));
	for (uint32_t k = 0; k < 3 && updates; k++)
		text_printf(g->t, ", %%%s \"o%u\"", any(g, TABLE), k);
	if (!below(g, 3)) /* the caller's, which may be replaced in place */
		text_printf(g->t, ", %%%s -> \"x\"", any(g, TABLE));
	if (!below(g, 3))
		text_printf(g->t, ", %%%s -> \"r\"", any(g, ROW));
	for (uint32_t k = 0; k < 4; k++)
		if (to[k])
			text_printf(g->t, ", %%%s -> \"%s\"", to[k], state[k].name);
	text_add(g->t, "\n}\n");
}

typedef struct {
	Weft *w;
	uint64_t seed;
	uint32_t steps;
	bool print, only_text, agree;
} One;

static bool one(void *arg)
{
	One *o = arg;
	Ctx *ctx = o->w->ctx;
	Text text, out;
	text_init(&text, ctx->arena);
	text_init(&out, ctx->arena);
	Gen g = {.t = &text, .rng = (o->seed + 1) * 0x9e3779b97f4a7c15u};
	below(&g, 2);
	graph_text(&g, o->steps);
	FileTest test = {"fuzz", text.data};
	Ir *ir = ir_new(ctx);
	if (o->print || o->only_text)
		fputs(text.data, stdout);
	if (o->only_text)
		return o->agree = true;
	TRY(values_constants(&test, ir));
	Graph *graph = graph_parse(ir, text.data, "fuzz");
	TRY(graph && graph_verify(graph));
	graph_dce(graph); /* an index of what nobody reads is not checked (docs/numerics.md) */
	WeftOptions options = {.size = sizeof options, .no_cache = true, .target = "native"};
	EvalCtx e = {.ctx = ctx, .arena = ctx->arena, .syms = ir->syms};
	o->agree = file_calls(&test, o->w, graph, &e, &options, true, &out);
	if (!o->agree)
		printf("%s; ---- seed %llu\n%s", text.data, (unsigned long long)o->seed, out.data);
	return true;
}

int main(int argc, char **argv)
{
	uint64_t seed = 1;
	uint32_t count = 100, steps = 10, bad = 0;
	bool print = false, only_text = false;
	for (int k = 1; k < argc; k++)
		if (!strcmp(argv[k], "--print"))
			print = true;
		else if (!strcmp(argv[k], "--text"))
			only_text = true;
		else if (k + 1 < argc && !strcmp(argv[k], "--seed"))
			seed = strtoull(argv[++k], NULL, 10);
		else if (k + 1 < argc && !strcmp(argv[k], "--count"))
			count = (uint32_t)strtoul(argv[++k], NULL, 10);
		else if (k + 1 < argc && !strcmp(argv[k], "--steps"))
			steps = (uint32_t)strtoul(argv[++k], NULL, 10);
	for (uint32_t k = 0; k < count; k++) {
		One o = {.w = weft_new(),
			 .seed = seed + k,
			 .steps = steps,
			 .print = print,
			 .only_text = only_text};
		if (!o.w || !boundary(o.w, one, &o) || !o.agree) {
			printf("seed %llu: %s\n", (unsigned long long)(seed + k),
			       o.w ? weft_messages(o.w) : "out of memory");
			bad++;
		}
		weft_free(o.w);
	}
	if (!only_text)
		printf("%u graphs, %u wrong\n", count, bad);
	return bad != 0;
}
