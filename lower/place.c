/* Where stored nodes live: outputs and results that readers want somewhere, operands inside the
 * buffer of what holds them (concatenations, padded tensors: parents), buffers of their own. */
#include <string.h>

#include "lower/stage.h"
#include "lower/state.h"
#include "passes/common/questions.h"

NodePlace lower_new_place(Lower *s, Node n, BufKind kind, uint32_t k)
{
	const Type *t = node_type(s->g, n);
	NodePlace p = {
		.buf = lowered_buf(s->l, kind, k, t->dtype, t->n, t->dim, graph_name(s->g, n))};
	return p;
}

void lower_add_place(Lower *s, Node n, NodePlace p)
{
	array_push(s->arena, &node_info(s, n)->place, p);
}

void lower_push_kernel(Lower *s, Kernel *k)
{
	if (s->state && lower_state_keeps(s, k))
		return;
	k->stored = s->at.i ? node_info(s, s->at)->is.why : NULL;
	if (s->at.i && !k->lines.nline)
		k->lines = lower_lines(s, s->at);
	array_push(s->arena, &s->steps->step, (Step){.kind = STEP_KERNEL, .kernel = k});
}

static const OpLower *how(const Lower *s, Node n)
{
	return op_lower(node_op(s->g, n));
}

bool lower_has_place(const Lower *s, Node n)
{
	return node_info(s, n)->is.role == ROLE_ROOT && node_dtype(s->g, n) != DT_none;
}

bool lower_can_be_computed_in(const Lower *s, Node n)
{
	const Graph *g = s->g;
	bool is_result = how(s, n)->role == LOWER_MEMORY && node_nin(g, n) &&
			 node_dtype(g, node_in(g, n, 0)) == DT_none;
	return is_result ? !how(s, node_in(g, n, 0))->own_results : lower_has_place(s, n);
}

/* ---- parents ---- */

/* Whether other kernels may compute the interior of a padded tensor in its buffer. A border of many
 * dimensions has too many pieces. A negative border crops, so that the operand does not fit in. */
static bool has_simple_border(const Lower *s, Node n)
{
	static const char *const side[] = {"low", "high"};
	uint32_t rank, pieces = 0, padded[MAX_RANK] = {0}, npadded = 0;
	for (uint32_t i = 0; i < 2; i++) {
		const Sym *v = node_ints(s->g, n, side[i], &rank);
		for (uint32_t k = 0; k < rank; k++) {
			if (sym_le(s->ir->syms, sym_int(s->ir->syms, 0), v[k]) != YES)
				return false;
			bool pads = !sym_is(s->ir->syms, v[k], 0);
			pieces += pads;
			npadded += pads && !padded[k]++;
		}
	}
	if (pieces * npadded + rank - npadded > MAX_KERNEL_AXES)
		return false;
	const Sym *interior = node_ints(s->g, n, "interior", &rank);
	for (uint32_t k = 0; k < rank; k++)
		if (!sym_is(s->ir->syms, interior[k], 0))
			return false;
	return true;
}

bool lower_holds_operands(const Lower *s, Node n)
{
	LowerHolds holds = how(s, n)->holds;
	return node_info(s, n)->is.role == ROLE_ROOT && holds && !group_makes_pairs(s->g, n) &&
	       (holds != HOLDS_INTERIOR || has_simple_border(s, n));
}

/* Whether all sizes of the parent that depend on data are known where the operand is computed. */
static bool has_sizes_of(const Lower *s, Node operand, Node parent)
{
	const SymTab *syms = graph_syms(s->g);
	bool all = true;
	if (!node_has_data_size(s->g, parent))
		return true;
	for (uint32_t v = 0; v < sym_nvars(syms) && all; v++) {
		Sym var = sym_var_at(syms, v);
		bool needs = false, has = sym_var_kind(syms, var) != SYMVAR_UNBACKED;
		for (uint32_t k = 0; k < node_rank(s->g, parent); k++)
			needs |= sym_uses(syms, node_dim(s->g, parent, k), var);
		for (uint32_t k = 0; k < node_rank(s->g, operand); k++)
			has |= sym_uses(syms, node_dim(s->g, operand, k), var);
		all = has || !needs;
	}
	return all;
}

/* Whether the operand may be computed straight into the parent's buffer. */
static bool can_live_in(const Lower *s, Node operand, Node parent)
{
	return lower_has_place(s, operand) && !node_info(s, operand)->place.n &&
	       has_sizes_of(s, operand, parent);
}

/* Returns the place of an operand inside of its parent. Call it for the operands in order. *at:
 * where the next one begins; none before the first. */
static NodePlace operand_place(Lower *s, Node parent, uint32_t operand, Sym *at)
{
	SymTab *syms = s->ir->syms;
	Sym start[MAX_RANK];
	uint32_t rank = node_rank(s->g, parent), n;
	for (uint32_t k = 0; k < rank; k++)
		start[k] = sym_int(syms, 0);
	if (how(s, parent)->holds == HOLDS_OPERANDS) {
		uint32_t dim = (uint32_t)node_int(s->g, parent, "dim");
		start[dim] = at->i ? *at : start[dim];
		*at = sym_add(syms, start[dim],
			      node_dim(s->g, node_in(s->g, parent, operand), dim));
	} else {
		memcpy(start, node_ints(s->g, parent, "low", &n), rank * sizeof *start);
	}
	NodePlace p = node_info(s, parent)->place.data[0];
	for (uint32_t k = 0; k < rank; k++)
		p.off[k] = p.off[k].i ? sym_add(syms, p.off[k], start[k]) : start[k];
	return p;
}

static uint32_t noperands(const Lower *s, Node parent)
{
	return how(s, parent)->holds == HOLDS_INTERIOR ? 1 : node_nin(s->g, parent);
}

/* Notes in the buffer of a tensor padded with zeros where its border is, if the buffer has nothing
 * else: readers may leave the border out. */
static void note_border(Lower *s, Node n)
{
	const NodePlace *p = &node_info(s, n)->place.data[0];
	SymTab *syms = s->ir->syms;
	uint32_t rank = node_rank(s->g, n), nattr;
	if (how(s, n)->holds != HOLDS_INTERIOR || !is_splat(s->g, node_in(s->g, n, 1), 0))
		return;
	for (uint32_t k = 0; k < rank; k++)
		if (p->off[k].i && !sym_is(syms, p->off[k], 0))
			return;
	const Sym *high = node_ints(s->g, n, "high", &nattr);
	Sym *hi = ARENA_ARRAY(s->arena, Sym, rank);
	for (uint32_t k = 0; k < rank; k++)
		hi[k] = sym_sub(syms, node_dim(s->g, n, k), high[k]);
	buf_of(s->l, p->buf)->inner_lo = node_ints(s->g, n, "low", &nattr);
	buf_of(s->l, p->buf)->inner_hi = hi;
}

/* Goes from the last node to the first: parents get places before their operands. Outputs have
 * theirs already. */
void lower_choose_places(Lower *s)
{
	Graph *g = s->g;
	for (Node n = g->last; n.i; n = node_prev(g, n)) {
		if (!lower_has_place(s, n))
			continue;
		if (!node_info(s, n)->place.n)
			lower_add_place(s, n, lower_new_place(s, n, BUF_TEMP, 0));
		if (s->state)
			lower_state_extend(s, n);
		if (!lower_holds_operands(s, n))
			continue;
		note_border(s, n);
		Sym at = {0};
		for (uint32_t k = 0; k < noperands(s, n); k++) {
			NodePlace p = operand_place(s, n, k, &at);
			if (can_live_in(s, node_in(g, n, k), n))
				lower_add_place(s, node_in(g, n, k), p);
		}
	}
}

bool lower_lives_in(const Lower *s, Node operand, NodePlace p)
{
	NodeInfo *info = node_info(s, operand);
	if (info->is.role != ROLE_ROOT || !info->place.n || info->place.data[0].buf.i != p.buf.i ||
	    info->place.data[0].t.i != p.t.i)
		return false;
	for (uint32_t k = 0; k < node_rank(s->g, operand); k++)
		if (info->place.data[0].off[k].i != p.off[k].i)
			return false;
	return true;
}

/* Returns the integer that a leaf is; none if n is no leaf with an integer. */
static Sym known_integer(const Lower *s, Node n)
{
	const Attr *a = how(s, n)->role == LOWER_LEAF && !node_rank(s->g, n)
				? node_attr(s->g, n, "value")
				: NULL;
	return a && a->kind == ATTR_int ? a->s : (Sym){0};
}

Node lower_without_leading_one(const Lower *s, Node n)
{
	const Graph *g = s->g;
	const OpLower *l = how(s, n);
	Node x = lower_is_map(l) && l->keeps >= KEEPS_ORDER ? node_in(g, n, 0) : (Node){0};
	uint32_t rank = x.i ? node_rank(g, x) : 0;
	bool one = x.i && node_rank(g, n) == rank + 1 && sym_is(s->ir->syms, node_dim(g, n, 0), 1);
	for (uint32_t k = 0; one && k < rank; k++)
		one = node_dim(g, n, k + 1).i == node_dim(g, x, k).i;
	return one ? x : (Node){0};
}

NodePlace lower_place_without_leading_one(const Lower *s, NodePlace p)
{
	NodePlace one = {.buf = p.buf, .t = p.off[0].i ? p.off[0] : sym_int(s->ir->syms, 0)};
	memcpy(one.off, p.off + 1, (MAX_RANK - 1) * sizeof *p.off);
	return one;
}

bool lower_update_place(Lower *s, Node n, NodePlace *p)
{
	SymTab *syms = s->ir->syms;
	Node update = node_in(s->g, n, 1);
	uint32_t first;
	*p = node_info(s, n)->place.data[0];
	if (node_op(s->g, n) != OP_update_slice)
		return false;
	node_args(s->g, n, "start", &first);
	for (uint32_t k = 0; k < node_rank(s->g, n); k++) {
		Sym at = known_integer(s, node_in(s->g, n, first + k)), zero = sym_int(syms, 0);
		Sym room = sym_sub(syms, node_dim(s->g, n, k), node_dim(s->g, update, k));
		if (!at.i || sym_le(syms, zero, at) != YES || sym_le(syms, at, room) != YES)
			return false;
		if (!sym_is(syms, at, 0))
			p->off[k] = p->off[k].i ? sym_add(syms, p->off[k], at) : at;
	}
	return true;
}

/* ---- results ---- */

NodePlace lower_result_place(Lower *s, Node n, uint32_t k)
{
	Graph *g = s->g;
	if (lower_has_place(s, n))
		return node_info(s, n)->place.data[0];
	Use u = node_data(g, n)->first_use;
	for (Node get; (get = node_next_get(g, &u, k)).i;)
		if (node_info(s, get)->place.n)
			return node_info(s, get)->place.data[0];
	const Type *t = ir_type_of(s->ir, node_type(g, n)->elem[k]);
	return (NodePlace){
		.buf = lowered_buf(s->l, BUF_TEMP, 0, t->dtype, t->n, t->dim, graph_name(g, n))};
}

static bool same_place(const NodePlace *a, const NodePlace *b)
{
	bool same = a->buf.i == b->buf.i && a->t.i == b->t.i;
	for (uint32_t k = 0; k < MAX_RANK; k++)
		same = same && a->off[k].i == b->off[k].i;
	return same;
}

/* Adds copies of n's value from its first place to all others. */
static void copy_to_others(Lower *s, Node n)
{
	const NodeInfo *info = node_info(s, n);
	for (uint32_t k = 1; k < info->place.n; k++)
		if (!same_place(&info->place.data[k], &info->place.data[0]))
			lower_push_kernel(s, lower_copy_kernel(s, n, &info->place.data[k]));
}

void lower_publish_result(Lower *s, Node n, uint32_t k, const NodePlace *at)
{
	if (lower_has_place(s, n)) {
		copy_to_others(s, n);
		return;
	}
	Use u = node_data(s->g, n)->first_use;
	for (Node get; (get = node_next_get(s->g, &u, k)).i;) {
		NodeInfo *info = node_info(s, get);
		uint32_t wanted = info->place.n;
		lower_add_place(s, get, *at);
		NodePlace first = info->place.data[0];
		info->place.data[0] = *at;
		info->place.data[wanted] = first;
		copy_to_others(s, get);
	}
}

void lower_copy_operands(Lower *s, Node n)
{
	if (how(s, n)->holds == HOLDS_INTERIOR)
		lower_push_kernel(s, lower_border_kernel(s, n));
	Sym at = {0};
	for (uint32_t k = 0; k < noperands(s, n); k++) {
		NodePlace p = operand_place(s, n, k, &at);
		if (!lower_lives_in(s, node_in(s->g, n, k), p))
			lower_push_kernel(s, lower_copy_kernel(s, node_in(s->g, n, k), &p));
	}
	copy_to_others(s, n);
}
