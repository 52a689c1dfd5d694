/* What is to be computed from replaceable parameters: a part of the graph becomes the recipe of a
 * constant.
 *
 *   %1 = const #1 "bn.weight" : f32[16]
 *   %2 = rsqrt(%var)                           with constant %var
 *   %3 = mul(%1, %2)                     ->    %3 = const #7 : f32[16]
 *
 *   #7: graph @recipe() { %1 = const #1; %2 = const #2; %3 = rsqrt(%2); %4 = mul(%1, %3); return %4
 * } */
#include "passes/fold/recipe.h"

#include <string.h>

#include "base/hash.h"
#include "ir/build/text.h"
#include "ir/interp/interp.h"

typedef struct {
	const Graph *g;
	Graph *out;
	Node *copy;           /* by node of g */
	ARRAY(Node) met, todo; /* copied for this recipe; on the way */
	Arena *scratch;
} Copying;

static void copy_one(Copying *c, Node n)
{
	const NodeData d = *node_data(c->g, n);
	ArenaMark mark = arena_mark(c->scratch);
	Node *in = ARENA_ARRAY(c->scratch, Node, d.nin);
	for (uint32_t k = 0; k < d.nin; k++)
		in[k] = c->copy[node_in(c->g, n, k).i];
	c->copy[n.i] = graph_add(c->out, (Node){0}, d.op, in, d.nin, d.attr, d.type, (LocId){0});
	arena_release(c->scratch, mark);
}

/* Copies what the root needs into a graph, operands before those who read them, each once. */
static Graph *extract(Copying *c, Node root)
{
	c->out = graph_beside(c->g, "recipe");
	array_push(c->scratch, &c->todo, root);
	while (c->todo.n) {
		Node n = c->todo.data[c->todo.n - 1];
		uint32_t waits = c->todo.n;
		for (uint32_t k = node_nin(c->g, n); k-- > 0 && !c->copy[n.i].i;)
			if (!c->copy[node_in(c->g, n, k).i].i)
				array_push(c->scratch, &c->todo, node_in(c->g, n, k));
		if (c->todo.n > waits)
			continue;
		c->todo.n--;
		if (c->copy[n.i].i)
			continue;
		copy_one(c, n);
		array_push(c->scratch, &c->met, n);
	}
	graph_add_output(c->out, "", c->copy[root.i], -1);
	for (uint32_t k = 0; k < c->met.n; k++)
		c->copy[c->met.data[k].i] = (Node){0};
	c->met.n = 0;
	return c->out;
}

/* Hashes the text of a recipe without the numbers of constants (#12), which the text names by
 * their hashes, too: the same computation in another file has the same hash. */
static uint64_t recipe_hash(const Graph *recipe, Arena *scratch)
{
	Text t;
	size_t n = 0;
	text_init(&t, scratch);
	graph_print(recipe, &t);
	for (size_t k = 0; k < t.n; k++) {
		t.data[n++] = t.data[k];
		while (t.data[n - 1] == '#' && k + 1 < t.n && t.data[k + 1] >= '0' &&
		       t.data[k + 1] <= '9')
			k++;
	}
	uint64_t h = hash_bytes(t.data, n, 17);
	return h ? h : 1;
}

static ConstId constant_of(Ir *ir, const Type *t, Graph *recipe)
{
	Const c = {.name = "",
		   .dtype = t->dtype,
		   .rank = t->n,
		   .recipe = recipe,
		   .bytes = dtype_size(t->dtype)};
	int64_t *dim = ARENA_ARRAY(ir->ctx->arena, int64_t, t->n);
	for (uint32_t k = 0; k < t->n; k++) {
		dim[k] = sym_const(ir->syms, t->dim[k]);
		c.bytes *= (uint64_t)dim[k];
	}
	c.dim = dim;
	c.hash = recipe_hash(recipe, ir->ctx->scratch);
	return ir_const(ir, c);
}

void fold_recipes(Graph *g, const Node *root, uint32_t n, Node *made)
{
	Arena *scratch = g->ir->ctx->scratch;
	/* Every one of them adds a node. */
	Copying c = {.g = g, .scratch = scratch, .copy = ARENA_ARRAY(scratch, Node, g->node.n + n)};
	for (uint32_t k = 0; k < n; k++) {
		Build b = pass_build(g, root[k]);
		const Type t = *node_type(g, root[k]);
		Node value = b_const(&b, constant_of(g->ir, &t, extract(&c, root[k])));
		if (made)
			made[k] = value;
		pass_replace(g, root[k], value);
	}
}

/* Sets *out to the value that n has now. Returns false if n is no constant, or one that cannot
 * be computed. */
static bool value_now(const Graph *g, Node n, Arena *a, Tensor *out)
{
	Ctx *ctx = g->ir->ctx;
	const ConstId id = node_const(g, n);
	if (!id.i)
		return false;
	const Const *c = ir_const_of(g->ir, id);
	if (!c->data)
		return c->recipe && interp(ctx, c->recipe, NULL, 0, out, 1, a);
	*out = (Tensor){
		.dtype = c->dtype, .rank = c->rank, .data = arena_dup(a, c->data, c->bytes)};
	memcpy(out->dim, c->dim, c->rank * sizeof *c->dim);
	return true;
}

static bool all_in_range(const Graph *g, Node gather, bool wraps, const Tensor *index)
{
	uint32_t naxes;
	const Sym *axes = node_ints(g, gather, "axes", &naxes);
	for (int64_t i = 0, n = tensor_numel(index); i < n; i++) {
		int64_t axis = 0, extent = 0, at = tensor_i64(index, i);
		TRY(sym_is_const(graph_syms(g), axes[i % naxes], &axis));
		TRY(sym_is_const(graph_syms(g), node_dim(g, node_in(g, gather, 0), (uint32_t)axis),
				 &extent));
		TRY(at >= (wraps ? -extent : 0) && at < extent);
	}
	return true;
}

bool gather_is_in_range(const Graph *g, Node gather)
{
	Arena *scratch = g->ir->ctx->scratch;
	ArenaMark mark = arena_mark(scratch);
	Tensor index;
	IndexMode mode = node_index_mode(g, gather);
	bool ok =
		!index_is_checked(mode) || (value_now(g, node_in(g, gather, 1), scratch, &index) &&
					    all_in_range(g, gather, mode == INDEX_CHECK, &index));
	arena_release(scratch, mark);
	return ok;
}
