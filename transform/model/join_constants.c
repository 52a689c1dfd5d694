/* Constants that several entries of a model have in common. */
#include "transform/model/join.h"

#include <string.h>

#include "ir/op/op.h"

/* A constant that others became, too. */
typedef struct {
	ConstId c, next; /* next: another one with the same key */
	uint32_t entry;  /* that had it first */
} KeptConstant;

typedef struct {
	const GraphEntry *of;
	Ir *ir;
	Arena *arena; /* of the Ir */
	bool keep_names;
	uint32_t entry;        /* at hand */
	Intern key, param;     /* hash and, where names are kept, name; the names of parameters */
	ARRAY(uint32_t) first; /* by id of key - 1: in kept, + 1 */
	ARRAY(KeptConstant) kept;
	ARRAY(KeptConstant) owner; /* by id of param - 1: the first of that name */
	ConstId *one;      /* by constant: what it became; none: not met yet */
} Constants;

/* Whether two constants have equal contents. Recipes have if they compute the same from the same
 * constants, which were joined before. */
static bool same_contents(const Const *a, const Const *b)
{
	return a->dtype == b->dtype && a->rank == b->rank && a->bytes == b->bytes &&
	       a->is_param == b->is_param &&
	       memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0 && !a->recipe == !b->recipe &&
	       (a->recipe ? graph_equal(a->recipe, b->recipe)
			  : memcmp(a->data, b->data, a->bytes) == 0);
}

/* Returns the name of a constant, interned; NULL if it has none that matters. */
static const char *kept_name(const Constants *x, ConstId c)
{
	const Const *k = ir_const_of(x->ir, const_root(x->ir, c));
	return x->keep_names && k->is_param ? k->name : NULL;
}

/* Returns the constant that stands for this one: the first with equal contents. */
static ConstId find_equal(Constants *x, ConstId c)
{
	const Const *k = ir_const_of(x->ir, c);
	uint64_t key[2] = {const_hash(x->ir, c), (uintptr_t)kept_name(x, c)};
	bool fresh;
	uint32_t id = intern(&x->key, key, sizeof key, &fresh),
		 at = fresh ? 0 : x->first.data[id - 1];
	if (fresh)
		array_push(x->arena, &x->first, 0);
	for (; at; at = x->kept.data[at - 1].next.i)
		if (same_contents(ir_const_of(x->ir, x->kept.data[at - 1].c), k))
			return x->kept.data[at - 1].c;
	array_push(x->arena, &x->kept, (KeptConstant){c, {x->first.data[id - 1]}, x->entry});
	x->first.data[id - 1] = x->kept.n;
	return c;
}

/* Checks that a name means one constant, since who replaces weights names them. */
static bool check_name(Constants *x, ConstId c)
{
	const Const *k = ir_const_of(x->ir, c);
	bool fresh;
	if (!x->keep_names || !k->is_param)
		return true;
	uint32_t id = intern(&x->param, k->name, strlen(k->name), &fresh);
	if (fresh)
		array_push(x->arena, &x->owner, (KeptConstant){c, {0}, x->entry});
	const KeptConstant *o = &x->owner.data[id - 1];
	return o->c.i == c.i || o->entry == x->entry ||
	       ctx_error(x->ir->ctx, x->of[x->entry].path,
			 "its parameter %s is not that of %s, and weights that can be replaced go "
			 "by their names",
			 k->name, x->of[o->entry].path);
}

static bool replace_in(Constants *x, Graph *g);

/* Replaces *c by the constant that stands for it. What *c is a view of, and what it is computed
 * from, come first. */
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

bool join_constants(const GraphEntry *entry, uint32_t nentry, Graph *const *g, uint32_t n,
		    bool keep_names)
{
	Ir *ir = g[0]->ir;
	Arena *arena = ir->ctx->arena;
	Constants x = {.of = entry, .ir = ir, .arena = arena, .keep_names = keep_names};
	intern_init(&x.key, arena);
	intern_init(&x.param, arena);
	x.one = ARENA_ARRAY(arena, ConstId, ir->constant.n);
	for (uint32_t k = 0; k < n; k++) {
		x.entry = k % nentry;
		TRY(replace_in(&x, g[k]));
	}
	return true;
}
