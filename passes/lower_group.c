/* Which nodes share a kernel.
 *
 * One sweep from the outputs to the inputs. A node joins the group of its readers when they all belong to
 * one group and the combination has a schedule; otherwise it becomes a root with a buffer of its own. Index
 * maps and leaves belong to nobody: every reader inlines them. Example:
 *
 *   %c = conv(..)  %a = add(%c, %bias)  %r = maximum(%a, 0)      one group, root %r, anchor %c
 *   %m = reduce(%x) %d = sub(%x, %m) %v = reduce(mul(%d, %d))    one group with the norm that reads them
 *
 * Terminates: every node is visited once. */
#include "ir/scalar/scalar.h"
#include "passes/group_cost.h"
#include "passes/lower_priv.h"

bool node_is_index_map(Op op)
{
	return op == OP_broadcast || op == OP_reshape || op == OP_permute || op == OP_slice ||
	       op == OP_pad || op == OP_reverse || op == OP_window || op == OP_get || op == OP_barrier;
}

bool node_is_anchor(Op op)
{
	return op == OP_contract || op == OP_conv;
}

bool node_is_elementwise(Op op)
{
	return op_is_scalar(op) || op == OP_convert || op == OP_bitcast;
}

static bool is_leaf(Op op)
{
	return op == OP_input || op == OP_constant || op == OP_full || op == OP_iota ||
	       op == OP_from_size || op == OP_tuple || op == OP_view_real;
}

/* What a group holds besides element-wise nodes, and what all of it costs. */
typedef struct {
	bool anchor, reduce, special;
	GroupCost cost;
	ARRAY(uint32_t) loads; /* in order to count each once */
} Group;

typedef struct {
	Lower *s;
	Group *group;       /* by root node */
	uint32_t *readers;  /* by node: the one group that reads it, MANY, or 0 */
	bool *bijective;    /* by node: every reader so far reads it one to one */
	bool *below_reduce; /* by node: an element-wise function of a reduction */
	bool *below_anchor; /* by node: an epilogue of a contraction that nobody else reads */
	bool *long_map;     /* by node: see find_long_maps */
	bool *output;       /* by node: stored as an output */
	ViewSet *view;      /* by node: how the group that reads it indexes it */
	Views views;
} Sweep;

static const uint32_t MANY = UINT32_MAX;

static bool is_load(Op op)
{
	return !is_leaf(op) || op == OP_input || op == OP_constant;
}

/* The group reads one more value, unless it did so before. */
static void add_load(Sweep *w, Node def, uint32_t group)
{
	Group *gr = &w->group[group];
	if (w->readers[def.i] == group || !is_load(node_op(w->s->g, def)))
		return;
	for (uint32_t k = 0; k < gr->loads.n; k++)
		if (gr->loads.data[k] == def.i)
			return;
	array_push(w->s->arena, &gr->loads, def.i);
	gr->cost.loads++;
}

static void add_reader(Sweep *w, Node def, uint32_t group, bool bijective)
{
	if (!def.i)
		return;
	uint32_t *r = &w->readers[def.i];
	if (*r == 0)
		w->bijective[def.i] = bijective;
	else
		w->bijective[def.i] &= bijective;
	*r = *r == 0 || *r == group ? group : MANY;
}

static uint32_t op_cost(const Graph *g, Node n)
{
	if (!op_is_scalar(node_op(g, n)))
		return node_op(g, n) == OP_gather ? 8 : 1;
	DType in[4];
	uint32_t nin = node_nin(g, n);
	for (uint32_t k = 0; k < nin && k < 4; k++)
		in[k] = dtype_compute(node_dtype(g, node_in(g, n, k)));
	const ScFn *fn = scalar_fn(node_op(g, n), in, nin);
	return fn ? fn->cost : 1;
}

/* Evaluating n inside the kernel of `root` costs more than storing it: it is expensive and the kernel has
 * many more points than n has elements. Functions of a reduction are evaluated once per row. */
static bool recomputed_too_often(const Sweep *w, Node n, uint32_t root)
{
	const Graph *g = w->s->g;
	SymTab *syms = g->ir->syms;
	if (w->below_reduce[n.i])
		return false;
	int64_t mine = sym_hint(syms, type_numel(g->ir, node_type_id(g, n)));
	int64_t all = sym_hint(syms, type_numel(g->ir, node_type_id(g, (Node){root})));
	return op_cost(g, n) >= 6 && all >= 8 * mine;
}

/* Few operands, none of which is a kernel's main work: selecting among them costs less than storing. */
static bool concat_is_cheap(const Graph *g, Node n)
{
	for (uint32_t k = 0; k < node_nin(g, n); k++) {
		Op op = node_op(g, node_in(g, n, k));
		if (!node_is_elementwise(op) && !node_is_index_map(op) && !is_leaf(op))
			return false;
	}
	return node_nin(g, n) <= 3;
}

static bool can_join(const Sweep *w, Node n, uint32_t root)
{
	const Graph *g = w->s->g;
	Op op = node_op(g, n);
	const Group *kind = &w->group[root];
	if (w->s->opt->no_fusion)
		return false;
	if (node_is_anchor(op)) {
		Sym mine = type_numel(g->ir, node_type_id(g, n));
		Sym all = type_numel(g->ir, node_type_id(g, (Node){root}));
		return !kind->anchor && !kind->reduce && !kind->special && w->bijective[n.i] &&
		       sym_eq(g->ir->syms, mine, all) == YES;
	}
	if (op == OP_reduce)
		return !kind->anchor && !kind->special;
	if (op == OP_concat)
		return concat_is_cheap(g, n);
	/* An epilogue is computed once where it is stored; a reduction may read its operand often. */
	if (kind->reduce && w->below_anchor[n.i] && !w->below_reduce[n.i])
		return false;
	if (op == OP_gather || op == OP_slice_at || node_is_elementwise(op))
		return !recomputed_too_often(w, n, root);
	return false;
}

/* Operands of these are read through index maps only: what is computed is stored first. */
static bool reads_memory(const Sweep *w, Node n)
{
	Op op = node_op(w->s->g, n);
	bool parent = info_of(w->s, n)->role == ROLE_ROOT && (op == OP_concat || op == OP_pad);
	return parent || node_is_anchor(op) || op == OP_scan || op == OP_sort ||
	       op == OP_scatter || op == OP_update_slice || op == OP_assert;
}

static void mark_operands(Sweep *w, Node n, uint32_t group, bool bijective)
{
	const Graph *g = w->s->g;
	Op op = node_op(g, n);
	bool keeps = node_is_elementwise(op) || op == OP_permute || op == OP_reshape;
	for (uint32_t k = 0; k < node_nin(g, n); k++) {
		Node in = node_in(g, n, k);
		bool indirect = k == 0 && (op == OP_gather || op == OP_slice_at);
		if (in.i && group != MANY)
			add_load(w, in, group);
		add_reader(w, in, indirect || reads_memory(w, n) ? MANY : group, bijective && keeps);
		if (in.i && w->readers[in.i] != MANY)
			views_through(&w->views, g, n, k, &w->view[n.i], &w->view[in.i]);
	}
}

static void make_root(Sweep *w, Node n)
{
	NodeInfo *info = info_of(w->s, n);
	Op op = node_op(w->s->g, n);
	info->role = ROLE_ROOT;
	info->group = n.i;
	info->bijective = true;
	w->group[n.i] = (Group){.anchor = node_is_anchor(op),
	                         .reduce = op == OP_reduce,
	                         .special = op == OP_cumulative || op == OP_arg_reduce || op == OP_fold};
	w->view[n.i].n = 0;
	views_add(&w->views, &w->view[n.i], 0);
	w->group[n.i].cost = group_cost_of(w->s->g, n, n, &w->views, &w->view[n.i]);
	mark_operands(w, n, n.i, true);
}

/* Padded inputs of convolutions are buffers with a border, so that the inner loops need no conditions. */
static bool feeds_conv(const Graph *g, Node n)
{
	for (Use u = node_data(g, n)->first_use; u.i; u = g->use.data[u.i].next) {
		Node user = g->use.data[u.i].user;
		Op op = node_op(g, user);
		if (op == OP_conv || (op == OP_reshape && feeds_conv(g, user)))
			return true;
	}
	return false;
}

/* The group's cost if n joins it. */
static GroupCost cost_with(const Sweep *w, Node n, uint32_t root)
{
	GroupCost own = group_cost_of(w->s->g, n, (Node){root}, &w->views, &w->view[n.i]);
	GroupCost all = group_cost_sum(w->group[root].cost, own);
	all.loads--; /* n itself was one */
	return all;
}

static bool fits_into(const Sweep *w, Node n, uint32_t root)
{
	GroupCost all = cost_with(w, n, root);
	all.loads += node_nin(w->s->g, n);
	return group_accepts(all);
}

static void join(Sweep *w, Node n, uint32_t root)
{
	Group *group = &w->group[root];
	group->anchor |= node_is_anchor(node_op(w->s->g, n));
	group->reduce |= node_op(w->s->g, n) == OP_reduce;
	group->cost = cost_with(w, n, root);
}

static void visit(Sweep *w, Node n)
{
	const Graph *g = w->s->g;
	NodeInfo *info = info_of(w->s, n);
	Op op = node_op(g, n);
	uint32_t readers = w->readers[n.i];
	if (op == OP_tuple || op == OP_get) {
		info->role = op == OP_get ? ROLE_VIRTUAL : ROLE_NONE;
		mark_operands(w, n, MANY, false);
		return;
	}
	if (op == OP_input || op == OP_constant || op == OP_view_real) {
		info->role = ROLE_LEAF;
		return;
	}
	if (op == OP_view_complex) /* an output under the name of its operand */
		return;
	bool kept = w->output[n.i] || node_has_effect(g, n);
	/* a root before: a retry */
	if (info->role == ROLE_ROOT || kept || (op == OP_pad && feeds_conv(g, n))) {
		make_root(w, n);
		return;
	}
	if (readers == 0)
		return;
	if (is_leaf(op)) {
		info->role = ROLE_LEAF;
		info->group = readers == MANY ? 0 : readers;
		return;
	}
	bool fits = readers == MANY || fits_into(w, n, readers);
	if (node_is_index_map(op) && fits && !w->long_map[n.i]) {
		info->role = ROLE_VIRTUAL;
		info->group = readers == MANY ? 0 : readers;
		if (readers != MANY)
			join(w, n, readers);
		mark_operands(w, n, readers, w->bijective[n.i]);
		return;
	}
	if (readers == MANY || !fits || !can_join(w, n, readers)) {
		make_root(w, n);
		return;
	}
	info->role = ROLE_INLINE;
	info->group = readers;
	info->bijective = w->bijective[n.i];
	join(w, n, readers);
	mark_operands(w, n, readers, info->bijective);
}

static void mark_below_reduce(Sweep *w)
{
	const Graph *g = w->s->g;
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		Op op = node_op(g, n);
		bool below = op == OP_reduce;
		if (node_is_elementwise(op) || node_is_index_map(op))
			for (uint32_t k = 0; k < node_nin(g, n); k++)
				below |= w->below_reduce[node_in(g, n, k).i];
		w->below_reduce[n.i] = below;
	}
}

static void mark_below_anchor(Sweep *w)
{
	const Graph *g = w->s->g;
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		Op op = node_op(g, n);
		bool below = node_is_anchor(op);
		bool passes = node_is_elementwise(op) || op == OP_reshape || op == OP_permute;
		for (uint32_t k = 0; passes && k < node_nin(g, n); k++) {
			Node x = node_in(g, n, k);
			below |= w->below_anchor[x.i] && node_nuses(g, x) == 1;
		}
		w->below_anchor[n.i] = below;
	}
}

bool lower_assign_groups(Lower *s)
{
	uint32_t n = s->g->node.n;
	Sweep w = {.s = s,
	           .group = ARENA_ARRAY(s->arena, Group, n),
	           .readers = ARENA_ARRAY(s->arena, uint32_t, n),
	           .bijective = ARENA_ARRAY(s->arena, bool, n),
	           .below_reduce = ARENA_ARRAY(s->arena, bool, n),
	           .below_anchor = ARENA_ARRAY(s->arena, bool, n),
	           .output = ARENA_ARRAY(s->arena, bool, n),
	           .long_map = find_long_maps(s->g, s->arena),
	           .view = ARENA_ARRAY(s->arena, ViewSet, n)};
	views_init(&w.views, s->arena);
	for (uint32_t k = 0; k < s->g->output.n; k++)
		w.output[lower_output(s->g, k).i] = true;
	mark_below_reduce(&w);
	mark_below_anchor(&w);
	for (uint32_t k = 0; k < n; k++)
		if (s->info.data[k].role != ROLE_ROOT)
			s->info.data[k].role = ROLE_NONE;
	for (Node v = s->g->last; v.i; v = node_prev(s->g, v))
		visit(&w, v);
	return true;
}
