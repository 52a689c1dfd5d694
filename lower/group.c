/* Which nodes share a kernel, and why the others do not.
 *
 * One sweep from the outputs to the inputs. A node joins the group of its readers when they all
 * belong to one group and its cost stays within bounds (group_cost.h); otherwise it becomes a root
 * with a buffer of its own. Index maps and leaves belong to nobody: every reader inlines them.
 * Example:
 *
 *   %c = conv(..)  %a = add(%c, %bias)  %r = maximum(%a, 0)      one group, root %r, anchor %c
 *   %m = reduce(%x) %d = sub(%x, %m) %v = reduce(mul(%d, %d))    one group with the norm that reads
 *                                                                them
 *
 * Terminates: every node is visited once. */
#include "lower/group.h"

#include "ir/sym/reshape.h"
#include "ir/target/work.h"
#include "lower/attention.h"
#include "lower/group_cost.h"

/* What a group holds besides element-wise nodes, and what all of it costs. */
typedef struct {
	bool special; /* its root is a LOWER_ROOT */
	GroupCost cost;
	ARRAY(uint32_t) loads; /* in order to count each once */
} Group;

Node group_source(const Graph *g, Node n)
{
	while (lower_is_map(op_lower(node_op(g, n))) && node_in(g, n, 0).i)
		n = node_in(g, n, 0);
	return n;
}

bool group_makes_pairs(const Graph *g, Node n)
{
	const SymTab *syms = g->ir->syms;
	if (op_lower(node_op(g, n))->holds != HOLDS_OPERANDS || node_nin(g, n) != 2 ||
	    node_int(g, n, "dim") != (int64_t)node_rank(g, n) - 1)
		return false;
	for (uint32_t k = 0; k < 2; k++) {
		Node x = node_in(g, n, k);
		if (!sym_is(syms, node_dim(g, x, node_rank(g, x) - 1), 1))
			return false;
		const LowerRole role = op_lower(node_op(g, group_source(g, x)))->role;
		if (role != LOWER_MAP && role != LOWER_LEAF && role != LOWER_MEMORY)
			return false;
	}
	return true;
}

/* What is known of a node when the sweep comes to it. */
typedef struct {
	NodeGroup is;
	Group group;       /* of a root */
	uint32_t readers;  /* the one group that reads it, MANY, or 0 */
	uint32_t summed;   /* bits of its dimensions along which a reduction in the kernel that
			      reads it runs */
	uint32_t varied;   /* bits of its dimensions along which the reductions differ that it is a
			      function of, if nothing else reads what is between */
	double evaluated;  /* at so many points its readers want it: at all that a reduction runs
			      over */
	bool bijective;    /* every reader so far reads it one to one */
	bool below_reduce; /* an element-wise function of a reduction */
	bool below_anchor; /* an epilogue of a contraction that nobody else reads */
	uint32_t anchor;   /* the place of that contraction in the program, of several the last */
	Node ends;         /* that contraction, also of the contraction itself */
	bool cut;          /* another contraction is in the kernel that reads it: see
			      cut_narrow */
	bool long_map;     /* see find_long_maps */
	bool constant;     /* computed of constants alone, element by element */
	double integers;   /* if so, the elements of the largest constant of integers, or of floats
			      of two bytes */
	bool output;       /* stored as an output */
	bool loaded;       /* some reader wants it in memory */
	bool whole;        /* some reader reads all of its elements, as far as is known */
	const char *apart; /* why its readers are not one kernel, where that is not that they are
			      several */
	ViewSet view;      /* how the group that reads it indexes it */
} NodeState;

typedef struct {
	const Graph *g;
	const Target *target;
	Arena *arena;
	const char *const *stored; /* by node: why it is to be a root, whatever the rules say, or
				      NULL */
	bool no_fusion;
	NodeState *node;
	Views views;
	const FoundAttention *attention; /* by node */
} Sweep;

static const uint32_t MANY = UINT32_MAX;

static const OpLower *how(const Sweep *w, Node n)
{
	return op_lower(node_op(w->g, n));
}

static bool is_load(const OpLower *l)
{
	return l->role != LOWER_LEAF && l->role != LOWER_NOTHING;
}

/* Adds a value to those that the group loads, unless it is one of them. */
static void add_load(Sweep *w, Node def, uint32_t group)
{
	Group *gr = &w->node[group].group;
	if (w->node[def.i].readers == group || !is_load(how(w, def)))
		return;
	for (uint32_t k = 0; k < gr->loads.n; k++)
		if (gr->loads.data[k] == def.i)
			return;
	array_push(w->arena, &gr->loads, def.i);
	gr->cost.loads++;
}

static void add_reader(Sweep *w, Node def, uint32_t group, bool bijective)
{
	NodeState *d = &w->node[def.i];
	if (!def.i)
		return;
	d->bijective = bijective && (d->readers == 0 || d->bijective);
	d->readers = d->readers == 0 || d->readers == group ? group : MANY;
}

/* Whether a dtype is one of which kernels decode what contractions multiply. */
static bool is_narrow(DType d)
{
	return dtype_is_int(d) || d == DT_f16 || d == DT_bf16;
}

static double elements(const Graph *g, Node n)
{
	return (double)sym_hint(g->ir->syms, type_numel(g->ir, node_type_id(g, n)));
}

/* Returns the points of the kernel of `root`, at each of which it stores an element or a pair. */
static double points(const Graph *g, Node root)
{
	return elements(g, root) / (group_makes_pairs(g, root) ? 2 : 1);
}

/* Returns at how many points node n, which is in a kernel, wants its operand x. */
static double wanted_points(const Sweep *w, Node n, Node x)
{
	const NodeState *self = &w->node[n.i];
	if (how(w, n)->role == LOWER_REDUCE)
		return elements(w->g, x);
	return self->is.role == ROLE_ROOT ? points(w->g, n) : self->evaluated;
}

/* Returns the operations that repeat known values if the kernel of `root` evaluates n wherever it
 * reads n. Functions of a reduction are evaluated once per row, what weights are scaled by in a sum
 * once for a tile of rows. */
static double repeats(const Sweep *w, Node n, uint32_t root)
{
	const bool varies = w->node[n.i].summed;
	double all = varies ? w->node[n.i].evaluated : points(w->g, (Node){root}),
	       more = all - elements(w->g, n);
	bool by_row = varies ? is_of_constants(w->g, n) : w->node[n.i].below_reduce;
	return by_row || more < 0 ? 0 : more * element_cost(w->g, n);
}

/* Whether evaluating n in the kernel of `root`, with what the kernel repeats already, takes longer
 * than storing n in a phase more. An epilogue costs no phase, since the contraction below is stored
 * anyway. So no kernel repeats much more than a phase's worth. */
static bool recomputed_too_often(const Sweep *w, Node n, uint32_t root)
{
	double again = repeats(w, n, root),
	       bytes = 2 * elements(w->g, n) * dtype_size(node_dtype(w->g, n));
	Work joined = {.operations = w->node[root].group.cost.again + again};
	Work apart = {.bytes = bytes, .phases = !w->node[n.i].below_anchor};
	return again > 0 && target_cycles(w->target, joined) > target_cycles(w->target, apart);
}

/* Whether selecting among the operands of n costs less than storing n: they are few, and none is a
 * kernel's main work. */
static bool chooses_cheaply(const Sweep *w, Node n)
{
	for (uint32_t k = 0; k < node_nin(w->g, n); k++) {
		const OpLower *l = how(w, node_in(w->g, n, k));
		bool cheap = l->role == LOWER_MAP || lower_is_map(l) || l->role == LOWER_LEAF ||
			     l->role == LOWER_MEMORY;
		if (!cheap)
			return false;
	}
	return node_nin(w->g, n) <= 3;
}

/* Returns why a kernel with the contents of the group takes no other main work; NULL if it does. */
static const char *holds_other_work(const Group *group)
{
	return group->cost.anchors ? "the kernel that reads it is a contraction"
	       : group->special    ? "the kernel that reads it is made for its operator"
				   : NULL;
}

/* Returns why the kernel of `root` may not read n as its only main work, each element once; NULL if
 * it may. */
static const char *not_once(const Sweep *w, Node n, uint32_t root)
{
	const Graph *g = w->g;
	const Group *group = &w->node[root].group;
	const char *work = group_makes_pairs(g, (Node){root})
				   ? "the kernel that reads it makes pairs"
				   : holds_other_work(group);
	Sym mine = type_numel(g->ir, node_type_id(g, n)),
	    all = type_numel(g->ir, node_type_id(g, (Node){root}));
	if (work || group->cost.reductions)
		return work ? work : "the kernel that reads it reduces";
	bool once = w->node[n.i].bijective && sym_eq(g->ir->syms, mine, all) == YES;
	return once ? NULL : "the kernel that reads it does not read each element once";
}

/* Returns those dimensions of a set (`bits`) that have more than one element. */
static uint32_t of_extent(const Graph *g, Node x, uint32_t bits)
{
	for (uint32_t k = 0; k < node_rank(g, x); k++)
		if (sym_is(g->ir->syms, node_dim(g, x, k), 1))
			bits &= ~(1u << k);
	return bits;
}

/* Returns the batch dimensions, the first ones of its result, of a contraction of integers whose
 * sums another sum may scale and add up; 0: c is none, another one, or not there. On GPUs the
 * vendor's library does these. */
static uint32_t batches_of_integers(const Sweep *w, Node c)
{
	uint32_t n = 0;
	if (c.i && !w->target->isa.of_block && op_arg_index(node_op(w->g, c), "batch_x") >= 0 &&
	    !dtype_is_float(node_dtype(w->g, c)))
		node_ints(w->g, c, "batch_x", &n);
	return n;
}

/* Whether n, which ends a contraction or is one, is read by the sum of the kernel, the kernel's
 * only one, along the batch dimensions of the contraction and no others, at every point of the
 * kernel's: each term of the sum has a sum of products of its own, of integers. Tracing asks the
 * indices. */
static bool sums_blocks(const Sweep *w, Node n, uint32_t root)
{
	const Graph *g = w->g;
	const Group *group = &w->node[root].group;
	const Node c = w->node[n.i].ends;
	const uint32_t nbatch = batches_of_integers(w, c),
		       batch = nbatch ? of_extent(g, c, (1u << nbatch) - 1) : 0;
	if (!batch || group->special || group->cost.anchors || group->cost.reductions != 1 ||
	    group_makes_pairs(g, (Node){root}))
		return false;
	Sym all = type_numel(g->ir, node_type_id(g, (Node){root}));
	for (uint32_t k = 0; k < nbatch; k++)
		all = sym_mul(g->ir->syms, all, node_dim(g, c, k));
	return w->node[n.i].summed == batch && all.i == type_numel(g->ir, node_type_id(g, c)).i &&
	       all.i == type_numel(g->ir, node_type_id(g, n)).i;
}

/* Returns along which of x's dimensions reductions differ, for its only reader; a reduction may
 * have others. */
static uint32_t varied_of(const Sweep *w, Node x)
{
	return x.i && (how(w, x)->role == LOWER_REDUCE || node_nuses(w->g, x) == 1)
		       ? w->node[x.i].varied
		       : 0;
}

/* Whether n is a value of rows, a function of reductions, that the kernel which reads it sums:
 * these reductions and n are a kernel of their own, of these rows. */
static bool sums_rows(const Sweep *w, Node n)
{
	return w->node[n.i].summed && how(w, n)->role == LOWER_MAP &&
	       varied_of(w, n) == of_extent(w->g, n, (1u << node_rank(w->g, n)) - 1);
}

/* Whether n is a sum of which each term has a contraction of its own: its kernel is that of a
 * contraction. */
static bool adds_blocks(const Sweep *w, Node n)
{
	const Graph *g = w->g;
	const Node x = node_in(g, n, 0);
	const uint32_t nbatch = batches_of_integers(w, w->node[x.i].ends);
	return nbatch && node_nuses(g, x) == 1 && node_dim_bits(g, n, "dims") == (1u << nbatch) - 1;
}

/* Whether values that the kernel of n stores beside its result are read before that of `root`,
 * or by it. */
static bool is_read_before(const Sweep *w, Node n, uint32_t root)
{
	const AttentionNodes *a = w->attention[n.i].attention;
	if (!a || !a->first_reader.i)
		return false;
	while (n.i != root && n.i != a->first_reader.i)
		n = node_next(w->g, n);
	return n.i == a->first_reader.i;
}

/* Returns why n is not computed in the kernel of `root`; NULL if it is. */
static const char *cannot_join(const Sweep *w, Node n, uint32_t root)
{
	const NodeState *self = &w->node[n.i];
	bool reduces = w->node[root].group.cost.reductions;
	if (w->no_fusion)
		return "operators are not fused";
	if (is_read_before(w, n, root))
		return "maxima and sums of its rows are read before the kernel that reads it";
	switch (how(w, n)->fuses) {
	case FUSE_ONCE:
		return sums_blocks(w, n, root) ? NULL : not_once(w, n, root);
	case FUSE_ROW:
		return adds_blocks(w, n) ? not_once(w, n, root)
					 : holds_other_work(&w->node[root].group);
	case FUSE_FEW:
		return chooses_cheaply(w, n) ? NULL
					     : "choosing among so many values, or such, takes "
					       "longer than storing them";
	case FUSE_CHEAP:
		/* An epilogue is computed once where it is stored; a reduction may read its operand
		 * often. */
		if (reduces && self->below_anchor && !self->below_reduce &&
		    !sums_blocks(w, n, root))
			return "it ends a contraction, and the kernel that reads it reduces";
		return recomputed_too_often(w, n, root)
			       ? "computing it wherever it is read takes longer"
		       : sums_rows(w, n) && !sums_blocks(w, n, root)
			       ? "it reduces rows, and the kernel that reads it sums them"
			       : NULL;
	case FUSE_NEVER:
	case FUSE_ALWAYS:
		break;
	}
	return "its operator has kernels of its own";
}

/* Whether x has elements only if the extent is not 0. */
static bool needs_extent(const Graph *g, Node x, Sym extent)
{
	for (uint32_t k = 0; k < node_rank(g, x); k++)
		if (node_dim(g, x, k).i == extent.i)
			return true;
	return sym_le(g->ir->syms, sym_int(g->ir->syms, 1), extent) == YES;
}

/* Whether n, whose elements are all elements of its operand x, has each of them: a broadcast that
 * repeats them at least once, or as many elements as x. */
static bool has_all(const Graph *g, Node n, Node x)
{
	const SymTab *syms = g->ir->syms;
	uint32_t rank, own = 0;
	if (op_arg_index(node_op(g, n), "map") < 0)
		return type_numel(g->ir, node_type_id(g, x)).i ==
		       type_numel(g->ir, node_type_id(g, n)).i;
	const Sym *map = node_ints(g, n, "map", &rank);
	for (uint32_t k = 0; k < rank; k++)
		if (node_dim(g, x, k).i == node_dim(g, n, (uint32_t)sym_const(syms, map[k])).i)
			own |= 1u << sym_const(syms, map[k]);
	for (uint32_t d = 0; d < node_rank(g, n); d++)
		TRY(own >> d & 1 || needs_extent(g, x, node_dim(g, n, d)));
	return true;
}

/* Whether n may leave out elements of its operand x. */
static bool may_drop(const Graph *g, Node n, Node x)
{
	const OpLower *l = op_lower(node_op(g, n));
	return l->role == LOWER_INDEX && l->keeps == KEEPS_NOTHING && l->holds != HOLDS_OPERANDS &&
	       !(op_info(node_op(g, n))->moves && has_all(g, n, x));
}

/* Returns the dimension of n that is dimension k of its operand x; MAX_RANK if none is known. */
static uint32_t dim_of_operand(const Graph *g, Node n, Node x, uint32_t k)
{
	const Op op = node_op(g, n);
	uint32_t rank;
	const char *name = op_arg_index(op, "map") > 0    ? "map"
			   : op_arg_index(op, "perm") > 0 ? "perm"
							  : NULL;
	if (!name)
		return node_rank(g, n) == node_rank(g, x) ? k : MAX_RANK;
	const Sym *list = node_ints(g, n, name, &rank);
	if (*name == 'm')
		return (uint32_t)sym_const(g->ir->syms, list[k]);
	for (uint32_t d = 0; d < rank; d++)
		if (sym_const(g->ir->syms, list[d]) == (int64_t)k)
			return d;
	return MAX_RANK;
}

/* Returns the dimensions of x, the operand of a reshape n, that make up the dimensions `summed` of
 * n. */
static uint32_t summed_before(const Graph *g, Node n, Node x, uint32_t summed)
{
	const Type *from = node_type(g, x), *to = node_type(g, n);
	ReshapeGroup part = {0};
	uint32_t bits = 0;
	while (reshape_group(g->ir->syms, from->dim, from->n, to->dim, to->n, &part))
		for (uint32_t d = part.to; d < part.to_end; d++)
			if (summed >> d & 1)
				for (uint32_t k = part.from; k < part.from_end; k++)
					bits |= 1u << k;
	return bits;
}

/* Returns the dimensions of x, an operand of n, along which a reduction in their kernel runs. */
static uint32_t summed_of(const Sweep *w, Node n, Node x)
{
	const Graph *g = w->g;
	const bool reduces = how(w, n)->role == LOWER_REDUCE;
	const uint32_t summed = w->node[n.i].summed;
	const uint32_t own = reduces ? node_dim_bits(g, n, "dims") : 0;
	uint32_t bits = own, at = 0;
	if (!summed)
		return of_extent(g, x, bits);
	if (how(w, n)->keeps == KEEPS_ORDER)
		bits = summed_before(g, n, x, summed);
	else
		for (uint32_t k = 0; k < node_rank(g, x); k++) {
			const uint32_t d = !reduces       ? dim_of_operand(g, n, x, k)
					   : own >> k & 1 ? MAX_RANK
							  : at++;
			bits |= d < MAX_RANK && summed >> d & 1 ? 1u << k : 0;
		}
	return of_extent(g, x, bits);
}

static void want(Sweep *w, Node n, Node x)
{
	NodeState *of = &w->node[x.i];
	if (!node_is_tensor(w->g, x) || !node_is_tensor(w->g, n))
		return;
	const double points = wanted_points(w, n, x);
	of->evaluated = points > of->evaluated ? points : of->evaluated;
	of->summed |= summed_of(w, n, x);
}

/* Whether a kernel that computes n computes its operand x, too, at indices of its own: scores of
 * an attention for what is summed along them. */
static bool computes_inside(const Sweep *w, Node n, Node x)
{
	const FoundAttention *f = &w->attention[n.i];
	if (!w->attention[x.i].inside)
		return false;
	return f->attention  ? node_in(w->g, n, f->attention->operand).i == x.i
	       : f->weighted ? node_in(w->g, n, f->weighted->operand).i == x.i
			     : f->inside;
}

static void mark_operands(Sweep *w, Node n, uint32_t group, bool bijective)
{
	const Graph *g = w->g;
	const OpLower *l = how(w, n);
	const Role role = w->node[n.i].is.role;
	bool parent = role == ROLE_ROOT && l->holds && !group_makes_pairs(g, n),
	     whole = w->node[n.i].whole || (role != ROLE_INLINE && role != ROLE_VIRTUAL);
	for (uint32_t k = 0; k < node_nin(g, n); k++) {
		Node in = node_in(g, n, k);
		if (in.i && group != MANY)
			add_load(w, in, group);
		bool stored = parent || (lower_reads(l, k) && !(in.i && computes_inside(w, n, in)));
		w->node[in.i].loaded |= stored;
		if (in.i)
			want(w, n, in);
		w->node[in.i].whole |= whole && in.i && (k || !may_drop(g, n, in));
		if (stored || group == MANY)
			w->node[in.i].apart = parent   ? "it is computed where its reader keeps it"
					      : stored ? "its reader reads it at indices of its own"
						       : w->node[n.i].apart;
		add_reader(w, in, stored ? MANY : group, bijective && l->keeps != KEEPS_NOTHING);
		if (in.i && w->node[in.i].readers != MANY)
			views_through(&w->views, g, n, k, &w->node[n.i].view, &w->node[in.i].view);
	}
}

static void make_root(Sweep *w, Node n, const char *why)
{
	NodeState *self = &w->node[n.i];
	self->is = (NodeGroup){ROLE_ROOT, n.i, why};
	self->summed = 0; /* it is stored: only its own reduction counts */
	self->group = (Group){.special = how(w, n)->role == LOWER_ROOT};
	self->view.n = 0;
	views_add(&w->views, &self->view, 0);
	self->group.cost = group_cost_of(w->g, n, n, &w->views, &self->view);
	mark_operands(w, n, n.i, true);
}

/* Whether some reader, behind reshapes, wants n with its border in memory, so that its inner loops
 * have no conditions. */
static bool gives_border(const Sweep *w, Node n)
{
	const Graph *g = w->g;
	for (Use u = node_data(g, n)->first_use; u.i; u = g->use.data[u.i].next) {
		Node user = g->use.data[u.i].user;
		if (!user.i)
			continue;
		const OpLower *l = how(w, user);
		for (uint32_t k = 0; k < node_nin(g, user) && l->bordered; k++)
			if (l->bordered >> k & 1 && node_in(g, user, k).i == n.i)
				return true;
		if (l->keeps == KEEPS_ORDER && gives_border(w, user))
			return true;
	}
	return false;
}

/* Whether n, which holds its operands, is stored because some reader of x, behind reshapes, is a
 * map that reads each element several times (the window of a padded signal, say). Which operand an
 * element is of is then asked once an element, in a phase more. x: n, or a reshape of it. */
static bool is_asked_again(const Sweep *w, Node n, Node x)
{
	const Graph *g = w->g;
	for (Use u = node_data(g, x)->first_use; u.i; u = g->use.data[u.i].next) {
		Node user = g->use.data[u.i].user;
		if (!user.i || !lower_is_map(how(w, user)))
			continue;
		const double mine = elements(g, n), read = elements(g, user), cost = node_nin(g, n);
		Work repeated = {.operations = read * cost};
		Work apart = {.operations = mine * cost,
			      .bytes = mine * dtype_size(node_dtype(g, n)),
			      .phases = 1};
		if (read >= 2 * mine &&
		    target_cycles(w->target, repeated) > target_cycles(w->target, apart))
			return true;
		if (how(w, user)->keeps == KEEPS_ORDER && is_asked_again(w, n, user))
			return true;
	}
	return false;
}

/* Whether n is in memory whatever becomes of its readers. Other nodes might be computed in their
 * readers' kernels. */
static bool is_stored_anyway(const Sweep *w, Node n)
{
	LowerRole role = how(w, n)->role;
	bool kernel = role == LOWER_ANCHOR || role == LOWER_TILES || role == LOWER_ROOT;
	return role == LOWER_MEMORY || role == LOWER_LEAF || w->node[n.i].output ||
	       w->stored[n.i] || (kernel && node_nuses(w->g, n) > 1);
}

/* Whether the element of n takes one element of a tensor that is in memory anyway, no smaller in
 * bytes than n, beside elements of small tensors: n is a function of that tensor, or of such a
 * function that n alone reads. Adds the operations to *cost. */
static bool is_function_of_one(const Sweep *w, Node n, uint32_t depth, double *cost)
{
	const Graph *g = w->g;
	int64_t mine = sym_hint(g->ir->syms, type_numel(g->ir, node_type_id(g, n)));
	uint32_t large = 0;
	if (how(w, n)->role != LOWER_MAP)
		return false;
	*cost += element_cost(g, n);
	for (uint32_t k = 0; k < node_nin(g, n); k++) {
		Node x = group_source(g, node_in(g, n, k));
		if (!x.i)
			continue;
		if (sym_hint(g->ir->syms, type_numel(g->ir, node_type_id(g, x))) <= mine / 8) {
			if (!is_stored_anyway(w, x) && node_nuses(g, x) == 1)
				return false;
			continue;
		}
		bool direct = x.i == node_in(g, n, k).i &&
			      dtype_size(node_dtype(g, x)) <= dtype_size(node_dtype(g, n));
		if (!direct || large++)
			return false;
		if (!is_stored_anyway(w, x) &&
		    (!depth || node_nuses(g, x) != 1 || w->node[x.i].loaded ||
		     !is_function_of_one(w, x, depth - 1, cost)))
			return false;
	}
	return large == 1;
}

/* Whether each of several groups that read n computes n again. That reads no more than loading n
 * would, and takes no longer than storing n in a phase more. Examples: x - mean of a norm, of which
 * mean, variance and result are kernels of their own; (x - mean) / deviation, which two kernels of
 * its backward pass read. */
static bool cheaper_repeated(const Sweep *w, Node n)
{
	enum { MOST_CHAIN = 2 };
	const Graph *g = w->g;
	double cost = 0, mine = elements(g, n);
	if (w->no_fusion || w->node[n.i].loaded || !is_function_of_one(w, n, MOST_CHAIN, &cost))
		return false;
	Work repeated = {.operations = node_nuses(g, n) * mine * cost};
	Work apart = {.operations = mine * cost,
		      .bytes = mine * dtype_size(node_dtype(g, n)),
		      .phases = 1};
	return target_cycles(w->target, repeated) <= target_cycles(w->target, apart);
}

/* Whether every reader of n, behind index maps, is decoded itself, or, if n is `whole`, multiplies
 * it in a contraction of floats. */
static bool feeds_contractions(const Sweep *w, Node n, bool whole, uint32_t depth)
{
	const Graph *g = w->g;
	for (Use u = node_data(g, n)->first_use; u.i; u = g->use.data[u.i].next) {
		const Node user = g->use.data[u.i].user;
		const OpLower *l = user.i ? how(w, user) : NULL;
		TRY(l);
		if (w->node[user.i].is.decoded ||
		    (whole && l->role == LOWER_ANCHOR && node_dtype(g, user) == DT_f32))
			continue;
		TRY(depth && lower_is_map(l) && feeds_contractions(w, user, whole, depth - 1));
	}
	return true;
}

/* Whether contractions compute n where they multiply it: of integers that are stored, of which a
 * word has a few. GPUs read what is stored. */
static bool is_decoded(const Sweep *w, Node n)
{
	enum { MOST_MAPS = 8, MOST_FIELDS = 16 };
	const NodeState *self = &w->node[n.i];
	return self->constant && how(w, n)->role == LOWER_MAP && !w->no_fusion &&
	       !w->target->isa.of_block &&
	       feeds_contractions(w, n, self->integers * MOST_FIELDS >= elements(w->g, n),
				  MOST_MAPS);
}

/* Returns the group's cost if n joins it. */
static GroupCost cost_with(const Sweep *w, Node n, uint32_t root)
{
	GroupCost own = group_cost_of(w->g, n, (Node){root}, &w->views, &w->node[n.i].view);
	GroupCost all = group_cost_sum(w->node[root].group.cost, own);
	all.loads--; /* n itself was one */
	return all;
}

/* Returns why the kernel of `root` would cost too much with n; NULL if it would not, or `root` is
 * 0. */
static const char *too_much(const Sweep *w, Node n, uint32_t root)
{
	if (!root)
		return NULL;
	GroupCost all = cost_with(w, n, root);
	all.loads += node_nin(w->g, n);
	return group_refuses(all, w->arena);
}

static void join(Sweep *w, Node n, uint32_t root)
{
	GroupCost *cost = &w->node[root].group.cost;
	*cost = cost_with(w, n, root);
	cost->again += how(w, n)->fuses == FUSE_CHEAP ? repeats(w, n, root) : 0;
}

/* Visits a node that no kernel computes. Returns false for other nodes. */
static bool visit_given(Sweep *w, Node n)
{
	NodeState *self = &w->node[n.i];
	LowerRole role = how(w, n)->role;
	if (role != LOWER_MEMORY && role != LOWER_NOTHING)
		return false;
	self->is.role = role == LOWER_MEMORY ? ROLE_LEAF : ROLE_NONE;
	mark_operands(w, n, MANY, false);
	return true;
}

/* Returns why n is stored, whoever reads it; NULL if that depends on its readers. */
static const char *kept(const Sweep *w, Node n)
{
	if (w->stored[n.i])
		return w->stored[n.i];
	if (w->node[n.i].output)
		return "an output";
	if (node_has_effect(w->g, n))
		return "it has effects";
	if (!w->node[n.i].whole && node_nuses(w->g, n) && node_checks(w->g, n) == CHECKS_INDEX)
		return "it checks its indices, and its readers leave out some";
	if (w->node[n.i].cut)
		return "the kernel that reads it is a contraction, and it has fewer bytes than the "
		       "one that it ends";
	if (how(w, n)->holds == HOLDS_OPERANDS && is_asked_again(w, n, n))
		return "which operand it is of would be asked several times an element";
	return how(w, n)->holds == HOLDS_INTERIOR && gives_border(w, n)
		       ? "what reads it wants a border in memory"
		       : NULL;
}

static void visit(Sweep *w, Node n)
{
	NodeState *self = &w->node[n.i];
	const OpLower *l = how(w, n);
	uint32_t readers = self->readers;
	if (visit_given(w, n))
		return;
	if (w->attention[n.i].row) { /* its attention's kernel stores it */
		make_root(w, n, NULL);
		return;
	}
	if (w->attention[n.i].inside && readers) {
		const bool one = readers != MANY && !lower_is_map(l);
		const bool narrow = w->attention[n.i].narrow;
		self->is =
			(NodeGroup){one ? ROLE_INLINE : ROLE_VIRTUAL, readers == MANY ? 0 : readers,
				    .decoded = narrow, .narrow = narrow};
		if (readers != MANY)
			join(w, n, readers);
		mark_operands(w, n, readers, false);
		return;
	}
	const char *why = kept(w, n);
	if (why) {
		make_root(w, n, why);
		return;
	}
	if (readers == 0)
		return;
	if (w->attention[n.i].weighted && l->role == LOWER_REDUCE) {
		make_root(w, n, "it sums weights of an attention");
		return;
	}
	uint32_t root = readers == MANY ? 0 : readers;
	if (l->role == LOWER_LEAF) {
		self->is = (NodeGroup){ROLE_LEAF, root};
		return;
	}
	why = self->long_map ? "so many index maps follow each other" : too_much(w, n, root);
	if (!why && is_decoded(w, n)) {
		self->is = (NodeGroup){root ? ROLE_INLINE : ROLE_VIRTUAL, root, .decoded = true};
		if (root)
			join(w, n, root);
		mark_operands(w, n, readers, self->bijective);
		return;
	}
	if (lower_is_map(l) && !why) {
		self->is = (NodeGroup){ROLE_VIRTUAL, root};
		if (root)
			join(w, n, root);
		mark_operands(w, n, readers, self->bijective);
		return;
	}
	if (!root && cheaper_repeated(w, n)) {
		self->is = (NodeGroup){ROLE_VIRTUAL, 0};
		mark_operands(w, n, MANY, false);
		return;
	}
	if (!root && !why)
		why = self->apart ? self->apart : "several kernels read it";
	if (!why)
		why = cannot_join(w, n, root);
	if (why) {
		make_root(w, n, why);
		return;
	}
	self->is = (NodeGroup){ROLE_INLINE, root};
	join(w, n, root);
	mark_operands(w, n, readers, self->bijective);
}

static double bytes(const Graph *g, Node n)
{
	return elements(g, n) * dtype_size(node_dtype(g, n));
}

/* Returns the operand through which n ends a contraction, of several the last one in the program;
 * none if n is no epilogue. */
static Node ended(const Sweep *w, Node n)
{
	Node best = {0};
	for (uint32_t k = 0; k < node_nin(w->g, n) && how(w, n)->keeps != KEEPS_NOTHING; k++) {
		const Node x = node_in(w->g, n, k);
		if (w->node[x.i].below_anchor && node_nuses(w->g, x) == 1 &&
		    (!best.i || w->node[x.i].anchor > w->node[best.i].anchor))
			best = x;
	}
	return best;
}

/* Marks what is stored of the chain that ends in x, because x and another operand of a node end a
 * contraction each, and a kernel has one: the value with the fewest bytes, if that is not the
 * contraction's sums. */
static void cut_narrow(Sweep *w, Node x)
{
	Node best = x, at = x;
	for (Node below; (below = ended(w, at)).i; at = below)
		if (bytes(w->g, below) < bytes(w->g, best))
			best = below;
	w->node[best.i].cut = bytes(w->g, best) < bytes(w->g, at);
}

/* Notes whether n is computed of constants, in program order, so that operands are known. */
static void mark_constant(Sweep *w, Node n)
{
	const Graph *g = w->g;
	const OpLower *l = how(w, n);
	NodeState *self = &w->node[n.i];
	const bool maps = l->role == LOWER_MAP || (lower_is_map(l) && node_nin(g, n) == 1);
	double most = 0;
	if (node_const(g, n).i) {
		self->constant = true;
		self->integers = is_narrow(node_dtype(g, n)) ? elements(g, n) : 0;
		return;
	}
	for (uint32_t k = 0; k < node_nin(g, n); k++) {
		const NodeState *x = &w->node[node_in(g, n, k).i];
		if (!maps || !x->constant)
			return;
		most = x->integers > most ? x->integers : most;
	}
	self->constant = maps || l->role == LOWER_LEAF;
	self->integers = most;
}

/* Returns the dimensions of n, an index map, that have elements of the dimensions `bits` of its
 * operand x. */
static uint32_t dims_behind(const Graph *g, Node n, Node x, uint32_t bits)
{
	const Type *from = node_type(g, x), *to = node_type(g, n);
	ReshapeGroup part = {0};
	uint32_t all = 0;
	if (op_lower(node_op(g, n))->keeps != KEEPS_ORDER) {
		for (uint32_t k = 0; k < node_rank(g, x); k++) {
			const uint32_t d = bits >> k & 1 ? dim_of_operand(g, n, x, k) : MAX_RANK;
			all |= d < MAX_RANK ? 1u << d : 0;
		}
		return all;
	}
	while (reshape_group(g->ir->syms, from->dim, from->n, to->dim, to->n, &part))
		for (uint32_t k = part.from; k < part.from_end; k++)
			for (uint32_t d = part.to; bits >> k & 1 && d < part.to_end; d++)
				all |= 1u << d;
	return all;
}

/* Notes along which of n's dimensions the reductions differ that it is a function of. */
static void mark_varied(Sweep *w, Node n)
{
	const Graph *g = w->g;
	const OpLower *l = how(w, n);
	uint32_t bits = 0;
	if (!node_is_tensor(g, n))
		return;
	if (l->role == LOWER_REDUCE)
		bits = (1u << node_rank(g, n)) - 1;
	else if (l->role == LOWER_MAP)
		for (uint32_t k = 0; k < node_nin(g, n); k++)
			bits |= varied_of(w, node_in(g, n, k));
	else if (lower_is_map(l) && node_nin(g, n) && varied_of(w, node_in(g, n, 0)))
		bits = dims_behind(g, n, node_in(g, n, 0), varied_of(w, node_in(g, n, 0)));
	w->node[n.i].varied = of_extent(g, n, bits);
}

/* Notes which reductions and contractions n is a function of, in program order, so that operands
 * are known. */
static void mark_below(Sweep *w, Node n, uint32_t place)
{
	const Graph *g = w->g;
	const OpLower *l = how(w, n);
	NodeState *self = &w->node[n.i];
	self->below_reduce = l->role == LOWER_REDUCE;
	self->below_anchor = l->role == LOWER_ANCHOR || l->role == LOWER_TILES;
	for (uint32_t k = 0; k < node_nin(g, n); k++) {
		Node x = node_in(g, n, k);
		if (l->role == LOWER_MAP || lower_is_map(l))
			self->below_reduce |= w->node[x.i].below_reduce;
		if (l->keeps != KEEPS_NOTHING)
			self->below_anchor |= w->node[x.i].below_anchor && node_nuses(g, x) == 1;
	}
	mark_varied(w, n);
	const Node last = ended(w, n);
	self->anchor = last.i ? w->node[last.i].anchor : place;
	self->ends = last.i ? w->node[last.i].ends : self->below_anchor ? n : (Node){0};
	for (uint32_t k = 0; k < node_nin(g, n) && last.i; k++) {
		Node x = node_in(g, n, k);
		if (x.i != last.i && w->node[x.i].below_anchor && node_nuses(g, x) == 1)
			cut_narrow(w, x);
	}
}

const NodeGroup *group_nodes(const Graph *g, const Target *target, const char *const *stored,
			     bool no_fusion, Arena *arena)
{
	Sweep w = {.g = g,
		   .target = target,
		   .arena = arena,
		   .stored = stored,
		   .no_fusion = no_fusion,
		   .node = ARENA_ARRAY(arena, NodeState, g->node.n)};
	views_init(&w.views, arena);
	for (uint32_t k = 0; k < g->output.n; k++)
		w.node[lower_output(g, k).i].output = true;
	if (no_fusion)
		w.attention = ARENA_ARRAY(arena, FoundAttention, g->node.n);
	else
		w.attention = find_attentions(g, target, stored, arena);
	const bool *long_map = find_long_maps(g, arena);
	uint32_t place = 0;
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		w.node[n.i].long_map = long_map[n.i];
		mark_below(&w, n, place++);
		mark_constant(&w, n);
	}
	for (Node n = g->last; n.i; n = node_prev(g, n))
		visit(&w, n);
	NodeGroup *found = ARENA_ARRAY(arena, NodeGroup, g->node.n);
	for (uint32_t k = 0; k < g->node.n; k++) {
		found[k] = w.node[k].is;
		found[k].attention = &w.attention[k];
	}
	return found;
}
