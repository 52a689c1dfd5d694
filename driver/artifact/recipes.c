/* Recipes become programs.
 *
 *   groups     what is stored and has a recipe, by the parameters that it depends on: two constants
 *              with one in common are computed together, from all that either needs
 *   graph      of a group: its inputs are the constants that no recipe makes, its outputs what is
 *              stored, row-major
 *   entries    equal graphs are one: layers of one shape share it
 *
 * Packing is no part of it: the compiler's and the runtime's loops (runtime/relayout.h) move
 * bytes. */
#include "driver/artifact/recipes.h"

#include <stdlib.h>
#include <string.h>

#include "codegen/cpu/host.h"
#include "codegen/program/schedule.h"
#include "ir/build/text.h"
#include "ir/op/node.h"
#include "lower/graph/graph.h"
#include "passes/pipeline.h"

typedef struct {
	Compilation *c;
	Ir *ir;
	Arena *arena;
	ProgramRecipes *out;
	/* By constant, as many as there are when it begins. */
	uint32_t *parent; /* towards the one that stands for its group; itself */
	uint8_t *is;      /* flags below */
	uint32_t *group;  /* of the one that stands for it: index + 1 */
	Node *node;       /* in the graph at hand */
	bool *listed, *stored; /* among the sources; in the section as it is */
	ARRAY(ConstId) made; /* with recipes that are followed */
	Intern text;      /* of graphs; by id - 1 an entry */
	ARRAY(Graph *) graph;
} Recipes;

enum { FOLLOWED = 1, STORED = 2 };

/* Bytes: parameters that groups read and that are no larger are stored besides, so that the others
 * can be set without them. */
enum { SMALL = 64 << 10 };

/* ---- groups ---- */

static uint32_t find(Recipes *r, uint32_t k)
{
	while (r->parent[k] != k)
		k = r->parent[k] = r->parent[r->parent[k]];
	return k;
}

/* Unites two groups. The least constant stands for all. */
static void unite(Recipes *r, uint32_t a, uint32_t b)
{
	a = find(r, a);
	b = find(r, b);
	r->parent[a > b ? a : b] = a < b ? a : b;
}

static void follow(Recipes *r, ConstId c)
{
	if (!(r->is[c.i] & FOLLOWED))
		array_push(r->arena, &r->made, c);
	r->is[c.i] |= FOLLOWED;
}

/* Unites constants in a recipe that weights change with its group. */
static void follow_recipes(Recipes *r)
{
	for (uint32_t k = 0; k < r->made.n; k++) {
		const Graph *g = ir_const_of(r->ir, r->made.data[k])->recipe;
		for (Node n = g->first; n.i; n = node_next(g, n)) {
			ConstId c = node_const(g, n);
			if (!c.i || !const_is_replaceable(r->ir, c))
				continue;
			unite(r, r->made.data[k].i, const_root(r->ir, c).i);
			if (ir_const_of(r->ir, c)->recipe)
				follow(r, c);
		}
	}
}

static int by_number(const void *a, const void *b)
{
	const ConstId *x = a, *y = b;
	return x->i < y->i ? -1 : x->i > y->i;
}

/* Finds the groups, in the order in which the section stores what they make. */
static void find_groups(Recipes *r)
{
	const Program *p = r->c->program;
	for (uint32_t k = 0; k < p->constant.n; k++) {
		ConstId c = p->constant.data[k].source;
		if (!ir_const_of(r->ir, c)->recipe)
			continue;
		follow(r, c);
		r->is[c.i] |= STORED;
	}
	follow_recipes(r);
	for (uint32_t k = 0; k < p->constant.n; k++) {
		ConstId c = p->constant.data[k].source;
		if (!(r->is[c.i] & STORED))
			continue;
		r->is[c.i] &= (uint8_t)~STORED; /* another layout of it comes later */
		uint32_t *group = &r->group[find(r, c.i)];
		if (!*group) {
			array_push(r->arena, &r->out->group, (ProgramGroup){0});
			*group = r->out->group.n;
		}
		array_push(r->arena, &r->out->group.data[*group - 1].output, c);
	}
	/* What a recipe reads was made before it. */
	if (r->made.n)
		qsort(r->made.data, r->made.n, sizeof *r->made.data, by_number);
}

/* ---- graphs ---- */

static Node input_of(Recipes *r, Graph *g, ProgramGroup *group, ConstId c)
{
	const Const *k = ir_const_of(r->ir, c);
	array_push(r->arena, &group->input, c);
	return graph_add_input(g, "w", INPUT_USER, ir_type_ints(r->ir, k->dtype, k->rank, k->dim));
}

/* Adds the constants that a recipe begins with as inputs. */
static void add_inputs(Recipes *r, Graph *g, ProgramGroup *group, ConstId made)
{
	const Graph *recipe = ir_const_of(r->ir, made)->recipe;
	for (Node n = recipe->first; n.i; n = node_next(recipe, n)) {
		ConstId c = node_const(recipe, n);
		if (c.i && !r->node[c.i].i && !ir_const_of(r->ir, c)->recipe)
			r->node[c.i] = input_of(r, g, group, c);
	}
}

static void add_recipe(Recipes *r, Graph *g, ConstId made)
{
	const Graph *recipe = ir_const_of(r->ir, made)->recipe;
	ArenaMark mark = arena_mark(r->ir->ctx->scratch);
	Node *copy = ARENA_ARRAY(r->ir->ctx->scratch, Node, recipe->node.n);
	for (Node n = recipe->first; n.i; n = node_next(recipe, n)) {
		const NodeData *d = node_data(recipe, n);
		ConstId c = node_const(recipe, n);
		Node *in = ARENA_ARRAY(r->ir->ctx->scratch, Node, d->nin);
		for (uint32_t k = 0; k < d->nin; k++)
			in[k] = copy[node_in(recipe, n, k).i];
		copy[n.i] = c.i ? r->node[c.i]
				: graph_add(g, (Node){0}, d->op, in, d->nin, d->attr, d->type,
					    (LocId){0});
	}
	r->node[made.i] = copy[recipe->output.data[0].node.i];
	arena_release(r->ir->ctx->scratch, mark);
}

/* Makes the graph of a group. made: the constants of the group. */
static Graph *group_graph(Recipes *r, ProgramGroup *group, const ConstId *made, uint32_t n)
{
	Graph *g = graph_new(r->ir, "recipes");
	for (uint32_t k = 0; k < n; k++)
		add_inputs(r, g, group, made[k]);
	for (uint32_t k = 0; k < n; k++)
		add_recipe(r, g, made[k]);
	for (uint32_t k = 0; k < group->output.n; k++)
		graph_add_output(g, "", r->node[group->output.data[k].i], -1);
	for (uint32_t k = 0; k < group->input.n; k++) /* another group may read what no weights
	                                                 change */
		r->node[group->input.data[k].i] = (Node){0};
	return pipeline_run_one(g, "cse") && pipeline_run_one(g, "dce") ? g : NULL;
}

static bool make_graphs(Recipes *r)
{
	typedef ARRAY(ConstId) List;
	List *member = ARENA_ARRAY(r->arena, List, r->out->group.n + 1);
	for (uint32_t k = 0; k < r->made.n; k++)
		array_push(r->arena, &member[r->group[find(r, r->made.data[k].i)] - 1],
			   r->made.data[k]);
	for (uint32_t k = 0; k < r->out->group.n; k++) {
		ProgramGroup *group = &r->out->group.data[k];
		Graph *g = group_graph(r, group, member[k].data, member[k].n);
		ArenaMark mark = arena_mark(r->ir->ctx->scratch);
		Text t;
		bool fresh;
		TRY(g);
		text_init(&t, r->ir->ctx->scratch);
		graph_print(g, &t);
		group->entry = intern(&r->text, t.data, t.n, &fresh) - 1;
		arena_release(r->ir->ctx->scratch, mark);
		if (fresh)
			array_push(r->arena, &r->graph, g);
	}
	return true;
}

/* ---- what is stored besides, what can be set ---- */

static void list_source(Recipes *r, ConstId c)
{
	c = const_root(r->ir, c);
	if (!ir_const_of(r->ir, c)->is_param || r->listed[c.i])
		return;
	r->listed[c.i] = true;
	array_push(r->arena, &r->out->source, c);
}

/* Stores a constant row-major, in all levels at the same place. */
static void store_plain(Recipes *r, ConstId c)
{
	Program *last = r->c->program;
	const Const *k = ir_const_of(r->ir, c);
	Sym dim[MAX_RANK];
	uint64_t bytes = dtype_size(k->dtype);
	for (uint32_t d = 0; d < k->rank; d++) {
		dim[d] = sym_int(r->ir->syms, k->dim[d]);
		bytes *= (uint64_t)k->dim[d];
	}
	const ProgramConst stored = {.source = c,
				     .layout = layout_row_major(r->ir, k->rank, dim),
				     .dtype = k->dtype,
				     .offset = last->weight_bytes,
				     .bytes = bytes,
				     .name = k->name};
	for (uint32_t i = 0; i < r->c->level.n; i++)
		array_push(r->arena, &r->c->level.data[i].program->constant, stored);
	last->weight_bytes += (bytes + 63) / 64 * 64;
}

static void list_all(Recipes *r)
{
	/* all levels have what the first one has */
	const Program *p = r->c->program, *all = r->c->level.data[0].program;
	for (uint32_t k = 0, n = p->constant.n; k < n; k++)
		if (!p->constant.data[k].first)
			list_source(r, p->constant.data[k].source);
	for (uint32_t k = 0; k < all->constant.n; k++) {
		const ProgramConst *c = &all->constant.data[k];
		if (!c->first &&
		    layout_is_row_major(&c->layout, ir_const_of(r->ir, c->source)->rank))
			r->stored[const_root(r->ir, c->source).i] = true;
	}
	for (uint32_t k = 0; k < r->out->group.n; k++) {
		const ProgramGroup *g = &r->out->group.data[k];
		for (uint32_t i = 0; i < g->input.n; i++) {
			ConstId c = const_root(r->ir, g->input.data[i]);
			list_source(r, c);
			if (r->stored[c.i] || (const_is_replaceable(r->ir, c) &&
					       ir_const_of(r->ir, c)->bytes > SMALL))
				continue;
			r->stored[c.i] = true;
			store_plain(r, c);
		}
	}
}

/* ---- the program ---- */

static bool make_program(Recipes *r)
{
	Compilation *c = r->c;
	/* constants for a GPU are computed by the processor, which may be any */
	const Target *target =
		c->level.data[0].target->gpu ? target_find("generic-c") : c->level.data[0].target;
	uint32_t n = r->graph.n, errors = c->ctx->nerror;
	ScheduleEntry *entry = ARENA_ARRAY(r->arena, ScheduleEntry, n);
	const ScheduleOptions so = {.no_plan = c->o.op_by_op, .plain = c->plain, .name = c->name};
	for (uint32_t k = 0; k < n; k++) {
		const LowerOptions lo = {.target = target,
					 .no_fusion = c->o.op_by_op,
					 .after = k ? entry[k - 1].lowered : NULL};
		Lowered *l = lower_graph(r->graph.data[k], &lo);
		TRY(l && c->ctx->nerror == errors);
		entry[k] = (ScheduleEntry){arena_printf(r->arena, "recipe_%u", k), l};
	}
	if (!n)
		return true;
	TRY((r->out->program = schedule_program(entry, n, target, &so)));
	if (r->out->program->weight_bytes)
		ctx_bug(c->ctx, "the program of the recipes has weights of its own");
	c->recipes =
		(TargetLevel){.target = target, .program = r->out->program, .suffix = "_recipes"};
	return true;
}

bool recipes_lower(Compilation *c)
{
	Ir *ir = c->program->ir;
	Arena *a = c->ctx->arena;
	uint32_t n = ir->constant.n;
	Recipes r = {.c = c,
		     .ir = ir,
		     .arena = a,
		     .out = ARENA_NEW(a, ProgramRecipes),
		     .parent = ARENA_ARRAY(a, uint32_t, n),
		     .is = ARENA_ARRAY(a, uint8_t, n),
		     .group = ARENA_ARRAY(a, uint32_t, n),
		     .node = ARENA_ARRAY(a, Node, n),
		     .listed = ARENA_ARRAY(a, bool, n),
		     .stored = ARENA_ARRAY(a, bool, n)};
	if (!c->o.replaceable)
		return true;
	for (uint32_t k = 0; k < n; k++)
		r.parent[k] = k;
	intern_init(&r.text, a);
	find_groups(&r);
	TRY(make_graphs(&r) && make_program(&r));
	list_all(&r);
	for (uint32_t k = 0; k < c->level.n; k++)
		c->level.data[k].program->recipes = r.out;
	phase_end(c, "recipes");
	return true;
}
