/* The cost of kernels; see group_cost.h. */
#include "lower/group_cost.h"
#include "ir/scalar/scalar.h"
#include "ir/sym/reshape.h"
#include "lower/priv.h"

/* Far above what models have: kernels are split by these only where they would be slow to compile.
 * Sampling from a grid evaluates 1,135 nodes, a norm of a row has up to 7 reductions. */
enum {
	MAX_EVALUATIONS = 1280,
	MAX_LOADS = 64,
	MAX_REDUCTIONS = 8,
	MAX_MAP_CHAIN = 40
};

/* Reading a reshape that joins dimensions uses the index of its result in each dimension of the
 * operand: such maps, one after the other, multiply expressions. */
enum { JOINING_WEIGHT = 10 };

uint32_t element_cost(const Graph *g, Node n)
{
	uint32_t cost = op_lower(node_op(g, n))->cost;
	if (!op_is_scalar(node_op(g, n)))
		return cost ? cost : 1;
	DType in[4];
	uint32_t nin = node_nin(g, n);
	for (uint32_t k = 0; k < nin && k < 4; k++)
		in[k] = dtype_compute(node_dtype(g, node_in(g, n, k)));
	const ScFn *fn = scalar_fn(node_op(g, n), in, nin);
	return fn ? fn->cost : 1;
}

static uint32_t count_axes(const Graph *g, const Sym *dim, uint32_t rank)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < rank; k++)
		n += !sym_is(g->ir->syms, dim[k], 1);
	return n;
}

static uint32_t axes_of(const Graph *g, Node n)
{
	bool is_tuple = node_dtype(g, n) == DT_none;
	return is_tuple ? 0 : count_axes(g, node_type(g, n)->dim, node_rank(g, n));
}

/* Returns the axes that a reduction adds to the kernel: none if it runs over rows of the root,
 * whose axes it shares (softmax, norms). */
static uint32_t reduction_axes(const Graph *g, Node n, Node root)
{
	Node x = node_in(g, n, 0);
	Sym mine = type_numel(g->ir, node_type_id(g, x)),
	    all = type_numel(g->ir, node_type_id(g, root));
	if (n.i != root.i && mine.i == all.i)
		return 0;
	return axes_of(g, x) - axes_of(g, n);
}

static uint32_t own_axes(const Graph *g, Node n, Node root)
{
	const OpLower *l = op_lower(node_op(g, n));
	uint32_t axes = n.i == root.i ? axes_of(g, n) : 0;
	if (l->role == LOWER_REDUCE)
		return axes + reduction_axes(g, n, root);
	if (l->role == LOWER_ANCHOR)
		return axes + node_rank(g, node_in(g, n, 1));
	return axes + l->axes;
}

static uint32_t longest(const Views *views, const ViewSet *set)
{
	uint32_t most = 0;
	for (uint32_t k = 0; k < set->n; k++)
		if (views->weight.data[set->data[k]] > most)
			most = views->weight.data[set->data[k]];
	return most;
}

GroupCost group_cost_of(const Graph *g, Node n, Node root, const Views *views, const ViewSet *set)
{
	LowerRole role = op_lower(node_op(g, n))->role;
	return (GroupCost){.evaluations = set->n,
	                   .reductions = role == LOWER_REDUCE ? set->n : 0,
	                   .anchors = role == LOWER_ANCHOR || role == LOWER_TILES ? set->n : 0,
	                   .axes = set->n * own_axes(g, n, root),
	                   .chain = longest(views, set)};
}

GroupCost group_cost_sum(GroupCost a, GroupCost b)
{
	return (GroupCost){.evaluations = a.evaluations + b.evaluations,
	                   .loads = a.loads + b.loads,
	                   .reductions = a.reductions + b.reductions,
	                   .anchors = a.anchors + b.anchors,
	                   .axes = a.axes + b.axes,
	                   .chain = a.chain > b.chain ? a.chain : b.chain,
	                   .again = a.again + b.again};
}

const char *group_refuses(GroupCost c, Arena *a)
{
	const struct {
		uint32_t n, most;
		const char *what;
	} bound[] = {{c.evaluations, MAX_EVALUATIONS, "evaluations"},
	             {c.loads, MAX_LOADS, "loads"},
	             {c.reductions, MAX_REDUCTIONS, "reductions"},
	             {c.axes, MAX_KERNEL_AXES, "axes"},
	             {c.chain, MAX_MAP_CHAIN, "index maps one after the other"}};
	for (uint32_t k = 0; k < sizeof bound / sizeof *bound; k++)
		if (bound[k].n > bound[k].most)
			return arena_printf(a, "one kernel has no more than %u %s", bound[k].most,
					    bound[k].what);
	return NULL;
}

/* ---- index maps ---- */

static uint32_t map_weight(const Graph *g, Node n)
{
	if (op_lower(node_op(g, n))->keeps != KEEPS_ORDER)
		return 1;
	SymTab *syms = g->ir->syms;
	const Type *to = node_type(g, n), *from = node_type(g, node_in(g, n, 0));
	uint32_t weight = 1;
	ReshapeGroup part = {0};
	while (reshape_group(syms, from->dim, from->n, to->dim, to->n, &part)) {
		uint32_t dims = count_axes(g, from->dim + part.from, part.from_end - part.from);
		weight += dims > 1 ? JOINING_WEIGHT * (dims - 1) : 0;
	}
	return weight;
}

void views_init(Views *v, Arena *arena)
{
	*v = (Views){.arena = arena};
	intern_init(&v->table, arena);
	array_push(arena, &v->weight, 0); /* view 0: the root's own index */
}

/* Keeps as many views as a kernel accepts and one more, so that too many can be seen. */
void views_add(Views *v, ViewSet *set, uint32_t view)
{
	for (uint32_t k = 0; k < set->n; k++)
		if (set->data[k] == view)
			return;
	if (set->n <= MAX_EVALUATIONS)
		array_push(v->arena, set, view);
}

static uint32_t view_through(Views *v, const Graph *g, Node n, uint32_t k, uint32_t view)
{
	Op op = node_op(g, n);
	const OpLower *l = op_lower(op);
	if (l->keeps == KEEPS_INDEX)
		return view;
	bool is_map = l->role == LOWER_INDEX && !l->reads;
	/* equal maps between equal types lead to equal indices, whatever they map */
	uint32_t key[] = {view, op, k, node_data(g, n)->attr.i, node_type_id(g, node_in(g, n, k)).i,
	                  node_type_id(g, n).i, is_map ? 0 : n.i};
	bool fresh;
	uint32_t id = intern(&v->table, key, sizeof key, &fresh);
	if (fresh)
		array_push(v->arena, &v->weight, v->weight.data[view] + map_weight(g, n));
	return id;
}

void views_through(Views *v, const Graph *g, Node n, uint32_t k, const ViewSet *from, ViewSet *to)
{
	for (uint32_t i = 0; i < from->n; i++)
		views_add(v, to, view_through(v, g, n, k, from->data[i]));
}

bool *find_long_maps(const Graph *g, Arena *arena)
{
	bool *stored = ARENA_ARRAY(arena, bool, g->node.n);
	uint32_t *length = ARENA_ARRAY(arena, uint32_t, g->node.n);
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		if (!lower_is_map(op_lower(node_op(g, n))))
			continue;
		length[n.i] = length[node_in(g, n, 0).i] + map_weight(g, n);
		stored[n.i] = length[n.i] > MAX_MAP_CHAIN;
		if (stored[n.i])
			length[n.i] = 0;
	}
	return stored;
}

static bool are_constants(const Graph *g, Node n, uint32_t depth)
{
	const OpLower *l = op_lower(node_op(g, n));
	if (node_const(g, n).i)
		return true;
	if (!depth || !node_nin(g, n) || (l->role != LOWER_MAP && !lower_is_map(l)))
		return false;
	for (uint32_t k = 0; k < node_nin(g, n); k++)
		if (!are_constants(g, node_in(g, n, k), depth - 1))
			return false;
	return true;
}

bool is_of_constants(const Graph *g, Node n)
{
	enum { MOST_DEPTH = 6 };
	return !node_const(g, n).i && are_constants(g, n, MOST_DEPTH);
}
