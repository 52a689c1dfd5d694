#include "ops/rules/expand_wide.h"
#include "ir/build/build.h"

#include <math.h>
#include <string.h>

static bool is_storage(DType d)
{
	return dtype_is_float(d) && dtype_compute(d) != d;
}

static bool has_storage(const Ir *ir, TypeId id)
{
	const Type *t = ir_type_of(ir, id);
	if (t->dtype != DT_none)
		return is_storage(t->dtype);
	for (uint32_t k = 0; k < t->n; k++)
		if (has_storage(ir, t->elem[k]))
			return true;
	return false;
}

static DType storage_operand(const Graph *g, Node n)
{
	for (uint32_t k = 0; k < node_nin(g, n); k++) {
		Node x = node_in(g, n, k);
		if (x.i && is_storage(node_dtype(g, x)))
			return node_dtype(g, x);
	}
	return DT_none;
}

/* Whether n adds up values. Sums and products do; the greatest or least element, or one that is
 * set, is there as it is. */
static bool accumulates(const Graph *g, Node n)
{
	Op op = node_op(g, n);
	if (!op_info(op)->accumulates)
		return false;
	const char *arg = op_arg_index(op, "kind") >= 0      ? "kind"
			  : op_arg_index(op, "combine") >= 0 ? "combine"
							     : NULL;
	const char *kind = arg ? node_str(g, n, arg) : "sum";
	return strcmp(kind, "max") != 0 && strcmp(kind, "min") != 0 && strcmp(kind, "set") != 0;
}

static bool rounds(const Graph *g, Node n)
{
	Op op = node_op(g, n);
	if (op_kind(op) == OP_COMPOSITE) /* that stays whole */
		return has_storage(g->ir, node_type_id(g, n));
	return is_storage(node_dtype(g, n)) &&
	       (accumulates(g, n) || (op_is_scalar(op) && !op_info(op)->exact));
}

static bool holds(DType d, double x)
{
	return (double)narrow_round(d, (float)x) == x || isnan(x);
}

/* Whether n has an argument that d, a storage type, does not hold. */
static bool has_fine_constant(const Graph *g, Node n, DType d)
{
	const Schema *s = op_schema(node_op(g, n));
	for (uint32_t k = 0; k < s->narg; k++) {
		const Attr *a = ir_attr(g->ir, node_data(g, n)->attr, k);
		int64_t v;
		if (a->kind == ATTR_float && !holds(d, a->f))
			return true;
		if (a->kind == ATTR_int && s->arg[k].kind == ARG_scalar &&
		    sym_is_const(graph_syms(g), a->s, &v) && !holds(d, (double)v))
			return true;
	}
	return false;
}

/* Returns the dtype that all operands of n are converted to, if n is arithmetic of tensors in
 * their common dtype: its operator promotes, or the result, which has that type, shows it; else
 * DT_none. */
static DType common_dtype(const Build *b, Node n, TypeId result)
{
	const Graph *g = b->g;
	const Type *t = ir_type_of(g->ir, result);
	uint32_t nin = node_nin(g, n), rank = 0;
	Node *in = ARENA_ARRAY(g->ir->ctx->scratch, Node, nin);
	for (uint32_t k = 0; k < nin; k++) {
		in[k] = node_in(g, n, k);
		if (in[k].i && node_rank(g, in[k]) > rank)
			rank = node_rank(g, in[k]);
	}
	DType d = b_promote(b, in, nin);
	if (op_info(node_op(g, n))->promote != PROMOTE_NONE)
		return d;
	bool shown = nin == 2 && in[0].i && in[1].i && t->dtype == d && t->n == rank;
	return shown ? d : DT_none;
}

/* Whether operand k of such arithmetic is a number of another type beside a tensor of the
 * storage type d. */
static bool is_number(const Graph *g, Node n, uint32_t k, DType d)
{
	Node x = node_in(g, n, k), other = node_in(g, n, !k);
	return !node_rank(g, x) && node_rank(g, other) && node_dtype(g, x) != d &&
	       node_dtype(g, other) == d && is_storage(d);
}

/* Whether operand k becomes a value of `common`, the common dtype of n's operands, before anything
 * is computed. */
static bool rounds_first(const Graph *g, Node n, uint32_t k, DType common)
{
	const OpInfo *info = op_info(node_op(g, n));
	Node x = node_in(g, n, k);
	if (!x.i || !is_storage(common) || node_dtype(g, x) == common)
		return false;
	bool number = node_nin(g, n) == 2 && node_in(g, n, !k).i && is_number(g, n, k, common);
	return number ? !(k == 1 && info->unrounded_other) : info->promote != PROMOTE_NONE;
}

static bool keeps_number(const Build *b, Node n, TypeId result)
{
	return op_info(node_op(b->g, n))->unrounded_other && node_nin(b->g, n) == 2 &&
	       common_dtype(b, n, result) != DT_none &&
	       is_number(b->g, n, 1, ir_type_of(b->g->ir, result)->dtype);
}

/* Whether the node names a storage dtype: then it computes in that dtype. */
static bool names_storage(const Graph *g, Node n)
{
	const Schema *s = op_schema(node_op(g, n));
	for (uint32_t k = 0; k < s->narg; k++) {
		const Attr *a = ir_attr(g->ir, node_data(g, n)->attr, k);
		if (a->kind == ATTR_dtype && is_storage(a->dtype))
			return true;
	}
	return false;
}

bool expand_rounds_often(const Build *b, Node n, Node prev, Node y)
{
	const Graph *g = b->g;
	DType d = storage_operand(g, n);
	if (d == DT_none || !y.i || op_info(node_op(g, n))->rounds_each || names_storage(g, n) ||
	    !has_storage(g->ir, node_type_id(g, y)))
		return false;
	uint32_t count = 0;
	for (Node x = prev.i ? node_next(g, prev) : g->first; x.i != b->before.i;
	     x = node_next(g, x)) {
		Op op = node_op(g, x);
		if (op == OP_contract || op == OP_conv ||
		    op_info(op)->expands == EXPANDS_IN_DECOMPOSE)
			return false;
		count += rounds(g, x);
	}
	bool narrow = op_info(node_op(g, n))->narrow_scalars;
	return count > 1 || (count == 1 && !narrow && has_fine_constant(g, n, d)) ||
	       keeps_number(b, n, node_type_id(g, y));
}

static TypeId wide_type(Ir *ir, TypeId id)
{
	if (!id.i || !has_storage(ir, id))
		return id;
	const Type t = *ir_type_of(ir, id);
	if (t.dtype != DT_none)
		return ir_type(ir, DT_f32, t.n, t.dim);
	TypeId *part = ARENA_ARRAY(ir->ctx->scratch, TypeId, t.n);
	for (uint32_t k = 0; k < t.n; k++)
		part[k] = wide_type(ir, t.elem[k]);
	return ir_tuple(ir, t.n, part);
}

Node expand_widen(Build *b, Node n, TypeId result)
{
	const NodeData d = *node_data(b->g, n);
	Node *in = ARENA_ARRAY(b->g->ir->ctx->scratch, Node, d.nin);
	DType common = common_dtype(b, n, result);
	for (uint32_t k = 0; k < d.nin; k++) {
		in[k] = node_in(b->g, n, k);
		if (rounds_first(b->g, n, k, common))
			in[k] = b_convert(b, in[k], common);
		if (in[k].i && is_storage(node_dtype(b->g, in[k])))
			in[k] = b_convert(b, in[k], DT_f32);
	}
	return graph_add(b->g, b->before, d.op, in, d.nin, d.attr, wide_type(b->g->ir, d.type),
			 d.loc);
}

Node expand_narrow(Build *b, Node y, TypeId type)
{
	const Type t = *ir_type_of(b->g->ir, type);
	if (!y.i || node_type_id(b->g, y).i == type.i)
		return y;
	if (t.dtype != DT_none)
		return b_convert(b, y, t.dtype);
	Node *part = ARENA_ARRAY(b->g->ir->ctx->scratch, Node, t.n);
	for (uint32_t k = 0; k < t.n; k++)
		part[k] = expand_narrow(b, b_get(b, y, k), t.elem[k]);
	return b_tuple(b, part, t.n);
}
