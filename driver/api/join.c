/* Several graphs become the entries of one model: in one Ir, with the constants they have in
 * common. */
#include <string.h>

#include "driver/api/given.h"
#include "driver/api/join.h"
#include "driver/api/user_ops.h"
#include "ir/op/op.h"

/* ---- constants ---- */

/* A constant that others became, too. */
typedef struct {
	ConstId c, next; /* next: another one with the same key */
	uint32_t entry;  /* that had it first */
} Kept;

typedef struct {
	Weft *w;
	const WeftGraph *from;
	Ir *ir;
	bool keep_names;
	uint32_t entry;    /* at hand */
	Intern key, param; /* hash and, where names are kept, name; the names of parameters */
	ARRAY(uint32_t) first; /* by id of key - 1: in kept, + 1 */
	ARRAY(Kept) kept;
	ARRAY(Kept) owner; /* by id of param - 1: the first of that name */
	ConstId *one;      /* by constant: what it became; none: not met yet */
} Constants;

/* Of recipes, those that compute the same from the same constants, which were joined before. */
static bool same_contents(const Const *a, const Const *b)
{
	return a->dtype == b->dtype && a->rank == b->rank && a->bytes == b->bytes &&
	       a->is_param == b->is_param &&
	       memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0 && !a->recipe == !b->recipe &&
	       (a->recipe ? graph_equal(a->recipe, b->recipe)
			  : memcmp(a->data, b->data, a->bytes) == 0);
}

/* NULL: it has none that matters. Interned. */
static const char *kept_name(const Constants *x, ConstId c)
{
	const Const *k = ir_const_of(x->ir, const_root(x->ir, c));
	return x->keep_names && k->is_param ? k->name : NULL;
}

/* The one that stands for this one. */
static ConstId find_equal(Constants *x, ConstId c)
{
	const Const *k = ir_const_of(x->ir, c);
	uint64_t key[2] = {const_hash(x->ir, c), (uintptr_t)kept_name(x, c)};
	bool fresh;
	uint32_t id = intern(&x->key, key, sizeof key, &fresh),
		 at = fresh ? 0 : x->first.data[id - 1];
	if (fresh)
		array_push(weft_arena(x->w), &x->first, 0);
	for (; at; at = x->kept.data[at - 1].next.i)
		if (same_contents(ir_const_of(x->ir, x->kept.data[at - 1].c), k))
			return x->kept.data[at - 1].c;
	array_push(weft_arena(x->w), &x->kept, (Kept){c, {x->first.data[id - 1]}, x->entry});
	x->first.data[id - 1] = x->kept.n;
	return c;
}

/* Who replaces weights names them: a name means one thing. */
static bool check_name(Constants *x, ConstId c)
{
	const Const *k = ir_const_of(x->ir, c);
	bool fresh;
	if (!x->keep_names || !k->is_param)
		return true;
	uint32_t id = intern(&x->param, k->name, strlen(k->name), &fresh);
	if (fresh)
		array_push(weft_arena(x->w), &x->owner, (Kept){c, {0}, x->entry});
	const Kept *o = &x->owner.data[id - 1];
	return o->c.i == c.i || o->entry == x->entry ||
	       ctx_error(x->w->ctx, x->from->entry[x->entry].path,
			 "its parameter %s is not that of %s, and weights that can be replaced go "
			 "by their names",
			 k->name, x->from->entry[o->entry].path);
}

static bool replace_in(Constants *x, Graph *g);

/* What it is a view of, and what it is computed from, come first. */
static bool replace_const(Constants *x, ConstId *c)
{
	const ConstId root = const_root(x->ir, *c);
	ConstId *one = &x->one[c->i], whole = root;
	TRY(root.i == c->i || replace_const(x, &whole));
	Graph *recipe = ir_const_of(x->ir, *c)->recipe;
	TRY(one->i || !recipe || replace_in(x, recipe));
	if (!one->i)
		*one = find_equal(x, *c);
	*c = *one;
	return root.i != c->i || check_name(x, *c);
}

static bool replace_attrs(Constants *x, Op op, AttrId *id)
{
	const Schema *s = op_schema(op);
	Attr copy[MAX_ARGS];
	bool any = false;
	for (uint32_t k = 0; k < s->narg && id->i; k++) {
		Attr *a = &copy[k];
		*a = *ir_attr(x->ir, *id, k);
		TRY(a->kind != ATTR_graph || !a->graph || replace_in(x, a->graph));
		if (a->kind != ATTR_const)
			continue;
		TRY(replace_const(x, &a->c));
		any = true;
	}
	if (any)
		*id = ir_attrs(x->ir, s->narg, copy);
	return true;
}

static bool replace_in(Constants *x, Graph *g)
{
	for (uint32_t k = 0; k < g->input.n; k++)
		TRY(!g->input.data[k].init.i || replace_const(x, &g->input.data[k].init));
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		AttrId attr = node_data(g, n)->attr;
		TRY(replace_attrs(x, node_op(g, n), &attr));
		graph_set_attrs(g, n, attr);
	}
	return true;
}

bool join_constants(Weft *w, const WeftGraph *from, Graph *const *g, uint32_t n, bool keep_names)
{
	Constants x = {.w = w, .from = from, .ir = g[0]->ir, .keep_names = keep_names};
	intern_init(&x.key, weft_arena(w));
	intern_init(&x.param, weft_arena(w));
	x.one = ARENA_ARRAY(weft_arena(w), ConstId, x.ir->constant.n);
	for (uint32_t k = 0; k < n; k++) {
		x.entry = k % from->nentry;
		TRY(replace_in(&x, g[k]));
	}
	return true;
}

/* ---- joining ---- */

typedef struct {
	Weft *w;
	uint32_t n;
	const char *const *name;
	WeftGraph *const *graph;
	WeftJoinOptions options;
	WeftGraph *out;
} Join;

static bool check_entry(const Join *j, uint32_t k)
{
	Ctx *ctx = j->w->ctx;
	const char *path = j->graph[k]->path;
	if (j->graph[k]->w != j->w)
		return ctx_error(ctx, path, "the graph for the entry %s belongs to another Weft",
				 j->name[k]);
	TRY(given_graph(j->w, "weft_join", j->graph[k]) && graph_is_one(j->w, j->graph[k]));
	if (!text_is_identifier(j->name[k]))
		return ctx_error(ctx, path,
				 "an entry cannot be called \"%s\": it must be an identifier of C",
				 j->name[k]);
	for (uint32_t i = 0; i < k; i++)
		if (!strcmp(j->name[i], j->name[k]))
			return ctx_error(ctx, path, "a second entry %s: that of %s is called so",
					 j->name[k], j->graph[i]->path);
	return true;
}

/* Copies of the graphs in one Ir. */
static Joining import_all(const Join *j)
{
	Arena *arena = weft_arena(j->w);
	Ir *ir = user_ir(j->w);
	GraphEntry *entry = ARENA_ARRAY(arena, GraphEntry, j->n);
	const Graph **from = ARENA_ARRAY(arena, const Graph *, j->n);
	uint32_t *first = ARENA_ARRAY(arena, uint32_t, j->n + 1);
	first[0] = ir->constant.n;
	ir->unrounded = j->graph[0]->g->ir->unrounded;
	for (uint32_t k = 0; k < j->n; k++) {
		from[k] = j->graph[k]->g;
		entry[k] = (GraphEntry){arena_strdup(arena, j->name[k]), graph_import(ir, from[k]),
					j->graph[k]->path};
		entry[k].g->name = entry[k].name;
		/* what holds for one graph does not hold for all */
		if (from[k]->ir->unrounded != from[0]->ir->unrounded)
			ir->unrounded = DT_none;
		first[k + 1] = ir->constant.n;
	}
	WeftGraph *out = ARENA_NEW(arena, WeftGraph);
	*out = (WeftGraph){.w = j->w, .path = entry[0].path, .nentry = j->n, .entry = entry};
	return (Joining){j->w, j->n, entry, from, first, out};
}

static bool join(void *arg)
{
	Join *j = arg;
	TRY(options_fit(j->w, j->options.size, sizeof j->options));
	if (!j->n)
		return ctx_error(j->w->ctx, NULL, "no graphs to join");
	TRY(given_list(j->w, "weft_join", "graphs", j->graph, j->n) &&
	    given_list(j->w, "weft_join", "names of entries", j->name, j->n));
	for (uint32_t k = 0; k < j->n; k++)
		TRY(given(j->w, "weft_join", "a graph", j->graph[k]) &&
		    given(j->w, "weft_join", "the name of an entry", j->name[k]));
	TRY(given_texts(j->w, "weft_join_with", "names of private state", j->options.private_state,
			j->options.nprivate));
	TRY(given_texts(j->w, "weft_join_with", "names of shared state", j->options.same_state,
			j->options.nsame));
	for (uint32_t k = 0; k < j->n; k++)
		TRY(check_entry(j, k));
	const Joining all = import_all(j);
	TRY(join_state(&all, &j->options));
	j->out = all.out;
	return true;
}

WeftGraph *weft_join_with(Weft *w, uint32_t n, const char *const *name, WeftGraph *const *graph,
			  const WeftJoinOptions *options)
{
	Join j = {.w = w, .n = n, .name = name, .graph = graph};
	options_copy(&j.options, sizeof j.options, options);
	return boundary(w, join, &j) ? j.out : NULL;
}

WeftGraph *weft_join(Weft *w, uint32_t n, const char *const *name, WeftGraph *const *graph)
{
	WeftJoinOptions none = {.size = sizeof none};
	return weft_join_with(w, n, name, graph, &none);
}
