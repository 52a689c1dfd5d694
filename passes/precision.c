/* Lower precision, as torch.autocast gives on CPUs: to the dtype `low`, bf16 or f16.
 *
 *   %y = aten.linear(%x, %w, %b) : f32[8, 10]
 *   %z = aten.relu(%y) : f32[8, 10]
 * becomes
 *   %1 = convert(%x, dtype=bf16)        likewise %2 of %w, %3 of %b
 *   %4 = aten.linear(%1, %2, %3) : bf16[8, 10]
 *   %5 = aten.relu(%4) : bf16[8, 10]
 *   %z = convert(%5, dtype=f32) : f32[8, 10]
 *
 * Contractions become products of half the bytes; their sums stay f32. What an operator does is its
 * class (OpInfo.autocast); of operators of class ANY, the result is low if that is what the
 * expansion gives of low operands. A value that is low is known in the graph as convert(value,
 * f32), so that no reader changes its type, nor do inputs and outputs of the model; converts in a
 * row disappear here and in simplify.
 *
 * Before canon, which expands composites, and before derivatives, which go the way back that values
 * went: cotangents of low values are low, gradients of f32 weights f32. A graph that was lowered
 * does not change again: operands of LOW operators are low already, and the result of a convert
 * that stands in the graph is f32 because somebody said so. */
#include "passes/precision.h"

/* What is known of a value. */
typedef struct {
	Node low;    /* the value converted to `low`, if there is such a node; it stands before all
	                readers that have not been visited */
	bool is_low; /* the value is convert(low, f32), and loses nothing by it */
} LoweredValue;

typedef struct {
	Graph *g;
	DType low;
	ARRAY(LoweredValue) value; /* by node */
	bool changed;
} Lowering;

static LoweredValue *value_of(Lowering *l, Node x)
{
	while (l->value.n <= x.i)
		array_push(l->g->ir->ctx->scratch, &l->value, (LoweredValue){0});
	return &l->value.data[x.i];
}

/* ---- what an operator gives ---- */

static bool has_f32(const Ir *ir, TypeId id)
{
	const Type *t = ir_type_of(ir, id);
	bool has = t->dtype == DT_f32;
	for (uint32_t k = 0; t->dtype == DT_none && k < t->n; k++)
		has |= has_f32(ir, t->elem[k]);
	return has;
}

static bool is_float_tensor(const Graph *g, Node x)
{
	return x.i && node_is_tensor(g, x) && dtype_is_inexact(node_dtype(g, x));
}

static bool is_low(Lowering *l, Node x)
{
	return node_dtype(l->g, x) == l->low || value_of(l, x)->is_low;
}

/* Whether the call names f32: such a dtype is the result's, whatever operands are. */
static bool names_f32(const Graph *g, Node n)
{
	const Schema *s = op_schema(node_op(g, n));
	for (uint32_t k = 0; k < s->narg; k++) {
		const Attr *a = ir_attr(g->ir, node_data(g, n)->attr, k);
		if (a->kind == ATTR_dtype && a->dtype == DT_f32)
			return true;
	}
	return false;
}

/* Whether some operand is low, and none that decides is not: one of rank 0 beside others does
 * not decide. */
static bool promotes_to_low(Lowering *l, Node n)
{
	bool some = false, ranked = false;
	for (uint32_t k = 0; k < node_nin(l->g, n); k++) {
		Node x = node_in(l->g, n, k);
		ranked |= is_float_tensor(l->g, x) && node_rank(l->g, x);
	}
	for (uint32_t k = 0; k < node_nin(l->g, n); k++) {
		Node x = node_in(l->g, n, k);
		if (!is_float_tensor(l->g, x) || (ranked && !node_rank(l->g, x)))
			continue;
		if (!is_low(l, x))
			return false;
		some = true;
	}
	return some;
}

static bool may_give_low(Lowering *l, Node n)
{
	switch (op_info(node_op(l->g, n))->autocast) {
	case AUTOCAST_LOW: return true;
	case AUTOCAST_F32: return false;
	case AUTOCAST_FIRST:
		return is_float_tensor(l->g, node_in(l->g, n, 0)) && is_low(l, node_in(l->g, n, 0));
	default: return !names_f32(l->g, n) && promotes_to_low(l, n);
	}
}

/* Whether autocast may convert all float operands: f64 and complex numbers are left alone. */
static bool may_convert(const Graph *g, Node n)
{
	for (uint32_t k = 0; k < node_nin(g, n); k++) {
		Node x = node_in(g, n, k);
		DType d = is_float_tensor(g, x) ? node_dtype(g, x) : DT_f32;
		if (d != DT_f32 && d != DT_f16 && d != DT_bf16)
			return false;
	}
	return true;
}

/* ---- rewriting ---- */

static Node low_operand(Lowering *l, Build *b, Node x)
{
	LoweredValue *v = value_of(l, x);
	if (node_dtype(l->g, x) == l->low)
		return x;
	if (!v->low.i) {
		Node low = b_convert(b, x, l->low);
		v = value_of(l, x);
		v->low = low;
	}
	return v->low;
}

/* Returns the file's type of a result with the dtypes of another; none if they are not alike. */
static TypeId with_dtypes(Ir *ir, TypeId file, TypeId like)
{
	const Type t = *ir_type_of(ir, file), u = *ir_type_of(ir, like);
	if (t.n != u.n || (t.dtype == DT_none) != (u.dtype == DT_none))
		return (TypeId){0};
	if (t.dtype != DT_none)
		return ir_type(ir, u.dtype, t.n, t.dim);
	TypeId *part = ARENA_ARRAY(ir->ctx->scratch, TypeId, t.n);
	for (uint32_t k = 0; k < t.n; k++)
		if (!(part[k] = with_dtypes(ir, t.elem[k], u.elem[k])).i)
			return (TypeId){0};
	return ir_tuple(ir, t.n, part);
}

/* Returns n with low operands: all floats if the operator is LOW, else those whose values are
 * low. Which results are low then its expansion says, which is dead afterwards. None if it has
 * none, or n has low operands already. */
static Node with_low_operands(Lowering *l, Build *b, Node n)
{
	Graph *g = l->g;
	Ctx *ctx = g->ir->ctx;
	const NodeData d = *node_data(g, n);
	Node *in = ARENA_ARRAY(ctx->scratch, Node, d.nin);
	bool other = false;
	for (uint32_t k = 0; k < d.nin; k++) {
		in[k] = node_in(g, n, k);
		other |= is_float_tensor(g, in[k]) && node_dtype(g, in[k]) != l->low;
		if (is_float_tensor(g, in[k]) &&
		    (op_info(d.op)->autocast == AUTOCAST_LOW || is_low(l, in[k])))
			in[k] = low_operand(l, b, in[k]);
	}
	if (!other)
		return (Node){0};
	Node y = graph_add(g, b->before, d.op, in, d.nin, d.attr, d.type, d.loc);
	CtxMark mark = ctx_mark(ctx);
	Node whole = op_expand_node(b, y);
	ctx_rewind(ctx, mark);
	TypeId type = whole.i ? with_dtypes(g->ir, d.type, node_type_id(g, whole)) : (TypeId){0};
	if (!type.i)
		return (Node){0};
	graph_set_type(g, y, type);
	return y;
}

/* Returns the f32 by which readers know y, a low result. */
static Node widened(Lowering *l, Build *b, Node y)
{
	if (node_dtype(l->g, y) != l->low)
		return y;
	Node wide = b_convert(b, y, DT_f32);
	*value_of(l, wide) = (LoweredValue){y, true};
	return wide;
}

/* Makes readers of n read y. */
static void replace(Lowering *l, Build *b, Node n, Node y)
{
	Graph *g = l->g;
	if (node_is_tensor(g, n)) {
		pass_replace(g, n, widened(l, b, y));
		return;
	}
	const uint32_t nresult = node_nresult(g, n);
	Node *part = ARENA_ARRAY(g->ir->ctx->scratch, Node, nresult);
	for (uint32_t k = 0; k < nresult; k++)
		part[k] = widened(l, b, b_get(b, y, k));
	for (uint32_t k = 0; k < nresult; k++) {
		Use u = node_data(g, n)->first_use;
		for (Node get; (get = node_next_get(g, &u, k)).i;)
			graph_replace(g, get, part[k]);
	}
	if (node_nuses(g, n))
		graph_replace(g, n, b_tuple(b, part, nresult));
}

/* Whether no result of n is a tuple: a list of tensors or a tuple in a tuple is nobody's result
 * here. */
static bool is_flat(const Graph *g, Node n)
{
	for (uint32_t k = 0; !node_is_tensor(g, n) && k < node_nresult(g, n); k++)
		if (ir_type_of(g->ir, node_result_type(g, n, k))->dtype == DT_none)
			return false;
	return true;
}

static void visit(Lowering *l, Node n)
{
	Graph *g = l->g;
	if (op_kind(node_op(g, n)) != OP_COMPOSITE || node_has_effect(g, n) ||
	    node_has_graph(g, n) || !node_nuses(g, n) || !has_f32(g->ir, node_type_id(g, n)) ||
	    !is_flat(g, n) || !may_convert(g, n) || !may_give_low(l, n))
		return;
	Build b = pass_build(g, n);
	Node y = with_low_operands(l, &b, n);
	if (y.i)
		replace(l, &b, n, y);
	l->changed = true; /* what was tried is dead */
}

static bool lower_bodies(Graph *g, Node n, DType low)
{
	bool changed = false;
	Graph *body;
	for (uint32_t k = 0; (body = node_next_body(g, n, &k));)
		changed |= precision_lower(body, low);
	return changed;
}

bool precision_lower(Graph *g, DType low)
{
	Lowering l = {.g = g, .low = low};
	g->unrounded = low;
	for (Node n = g->first, next; n.i; n = next) {
		next = node_next(g, n);
		l.changed |= lower_bodies(g, n, low);
		visit(&l, n);
	}
	if (l.changed)
		graph_dce(g);
	return l.changed;
}
