#include "ops/rules/linear.h"
#include "ir/build/build.h"

#include <string.h>

/* One for each value that a node gives. */
typedef struct {
	Lin *result;
	uint32_t n;
} NodeLin;

struct LinearTable {
	Graph *g;
	ARRAY(NodeLin) node; /* by handle; none of those not yet met */
	Node last;           /* the last in program order that was met */
};

Lin linear_sum(Lin a, Lin b)
{
	if (a == b || b == LIN_ZERO)
		return a;
	return a == LIN_ZERO ? b : LIN_NOT;
}

/* ---- the table ---- */

static Arena *scratch(const LinearTable *t)
{
	return t->g->ir->ctx->scratch;
}

LinearTable *linear_new(Graph *g)
{
	LinearTable *t = ARENA_NEW(g->ir->ctx->scratch, LinearTable);
	*t = (LinearTable){.g = g};
	return t;
}

static NodeLin *slot(LinearTable *t, Node n)
{
	while (t->node.n <= n.i)
		array_push(scratch(t), &t->node, (NodeLin){NULL, 0});
	return &t->node.data[n.i];
}

static void give(LinearTable *t, Node n, const Lin *result, uint32_t count)
{
	NodeLin *to = slot(t, n);
	to->n = count;
	to->result = arena_dup(scratch(t), result, (count + 1) * sizeof *result);
}

/* Gives all results of n the same answer. */
static void give_all(LinearTable *t, Node n, Lin lin)
{
	uint32_t count = node_nresult(t->g, n);
	Lin *result = ARENA_ARRAY(scratch(t), Lin, count + 1);
	for (uint32_t k = 0; k <= count; k++)
		result[k] = lin;
	give(t, n, result, count);
}

void linear_set(LinearTable *t, Node n, Lin lin)
{
	give_all(t, n, lin);
}

/* Returns what is known of a tensor; of an absent operand that it is zero. */
static Lin of(LinearTable *t, Node n)
{
	const NodeLin *from = n.i ? slot(t, n) : NULL;
	return from && from->n ? from->result[0] : LIN_ZERO;
}

static bool depends(Lin lin)
{
	return lin == LIN_LINEAR || lin == LIN_NOT;
}

static bool reads_dependent(LinearTable *t, Node n)
{
	for (uint32_t k = 0; k < node_nin(t->g, n); k++)
		if (depends(of(t, node_in(t->g, n, k))))
			return true;
	return false;
}

/* ---- one node ---- */

static Lin together(LinearTable *t, Node n, uint32_t linear_in)
{
	Lin lin = LIN_ZERO;
	for (uint32_t k = 0; k < node_nin(t->g, n); k++) {
		Lin x = of(t, node_in(t->g, n, k));
		if (!linear_in || linear_in >> (k < 31 ? k : 31) & 1)
			lin = linear_sum(lin, x);
		else if (depends(x))
			return LIN_NOT;
	}
	return lin;
}

/* Judges a product: it is linear in each factor while the others stay. */
static Lin alone(LinearTable *t, Node n)
{
	Lin lin = LIN_FREE;
	for (uint32_t k = 0; k < node_nin(t->g, n); k++) {
		Lin x = of(t, node_in(t->g, n, k));
		if (x == LIN_ZERO)
			return LIN_ZERO;
		if (depends(x))
			lin = x == LIN_NOT || depends(lin) ? LIN_NOT : LIN_LINEAR;
	}
	return lin;
}

/* Whether n is a splat of zeros, of whatever kind the number is. */
static bool is_zero(Graph *g, Node n)
{
	Attr v;
	return node_splat(g, n, &v) && ((v.kind == ATTR_int && sym_is(graph_syms(g), v.s, 0)) ||
					(v.kind == ATTR_float && v.f == 0) ||
					(v.kind == ATTR_complex && v.z.re == 0 && v.z.im == 0));
}

/* Judges a call of a function written by the user. What it does with its operands is known to
 * its author only, who calls it where it is linear. */
static void give_call(LinearTable *t, Node n)
{
	uint32_t count = node_nresult(t->g, n);
	Lin lin = LIN_FREE, *result = ARENA_ARRAY(scratch(t), Lin, count + 1);
	for (uint32_t k = 0; k < node_nin(t->g, n); k++) {
		Lin x = of(t, node_in(t->g, n, k));
		lin = x == LIN_NOT || lin == LIN_NOT ? LIN_NOT : depends(x) ? LIN_LINEAR : lin;
	}
	for (uint32_t k = 0; k < count; k++) {
		bool inexact =
			dtype_is_inexact(ir_type_of(t->g->ir, node_result_type(t->g, n, k))->dtype);
		result[k] = inexact || lin == LIN_NOT ? lin : LIN_FREE;
	}
	give(t, n, result, count);
}

/* ---- regions ---- */

/* Returns what the outputs of a region are whose inputs are in[]. */
static Lin *region(LinearTable *outer, Graph *body, const Lin *in)
{
	LinearTable *t = linear_new(body);
	Lin *out = ARENA_ARRAY(scratch(outer), Lin, body->output.n + 1);
	for (uint32_t k = 0; k < body->input.n; k++)
		linear_set(t, body->input.data[k].node, in[k]);
	for (uint32_t k = 0; k < body->output.n; k++)
		out[k] = linear_of(t, body->output.data[k].node, 0);
	return out;
}

/* Goes around until carried values stay as they are: each changes twice at most. */
static Lin *rounds(LinearTable *t, Graph *body, uint32_t ncarry, Lin *in)
{
	for (;;) {
		bool changed = false;
		Lin *out = region(t, body, in);
		for (uint32_t k = 0; k < ncarry; k++) {
			out[k] = linear_sum(in[k], out[k]);
			changed |= out[k] != in[k];
			in[k] = out[k];
		}
		if (!changed)
			return out;
	}
}

static void give_region(LinearTable *t, Node n)
{
	Graph *g = t->g;
	uint32_t first, nin = node_nin(g, n), count = node_nresult(g, n);
	Op op = node_op(g, n);
	Lin *in = ARENA_ARRAY(scratch(t), Lin, nin + 1), *out;
	bool decided = true; /* what is executed does not depend on the inputs */
	for (uint32_t k = 0; k < nin; k++)
		in[k] = of(t, node_in(g, n, k));
	if (op == OP_cond) {
		const Lin *no = region(t, node_attr(g, n, "no")->graph, in + 1);
		out = region(t, node_attr(g, n, "yes")->graph, in + 1);
		for (uint32_t k = 0; k < count; k++)
			out[k] = linear_sum(out[k], no[k]);
		decided = !depends(in[0]);
	} else {
		out = rounds(t, node_attr(g, n, "body")->graph, node_args(g, n, "init", &first),
			     in);
		decided =
			op == OP_scan || !depends(region(t, node_attr(g, n, "cond")->graph, in)[0]);
	}
	for (uint32_t k = 0; k < count && !decided; k++)
		out[k] = LIN_NOT;
	give(t, n, out, count);
}

/* ---- all nodes ---- */

static void meet(LinearTable *t, Node n);

/* Judges n by what it expands into, which stands before n. */
static void give_expansion(LinearTable *t, Node n)
{
	Node prev = node_prev(t->g, n);
	Node y = op_expand_node(&(Build){.g = t->g, .before = n, .keep = true}, n);
	if (!y.i) {
		give_all(t, n, LIN_NOT);
		return;
	}
	for (Node x = prev.i ? node_next(t->g, prev) : t->g->first; x.i != n.i;
	     x = node_next(t->g, x))
		if (!slot(t, x)->result)
			meet(t, x);
	const NodeLin from = *slot(t, y);
	give(t, n, from.result, from.n);
}

static void give_get(LinearTable *t, Node n)
{
	const NodeLin from = *slot(t, node_in(t->g, n, 0));
	uint64_t k = (uint64_t)node_int(t->g, n, "index");
	give_all(t, n, k < from.n ? from.result[k] : LIN_NOT);
}

static void give_tuple(LinearTable *t, Node n)
{
	uint32_t count = node_nin(t->g, n);
	Lin *result = ARENA_ARRAY(scratch(t), Lin, count + 1);
	for (uint32_t k = 0; k < count; k++)
		result[k] = of(t, node_in(t->g, n, k));
	give(t, n, result, count);
}

static void meet(LinearTable *t, Node n)
{
	Graph *g = t->g;
	Op op = node_op(g, n);
	const OpInfo *info = op_info(op);
	bool composite = op_kind(op) == OP_COMPOSITE;
	bool linear = info->linear && !composite && (!info->linear_if || info->linear_if(g, n));
	if (op == OP_get)
		give_get(t, n);
	else if (op == OP_tuple)
		give_tuple(t, n);
	else if (op == OP_barrier)
		give_all(t, n, of(t, node_in(g, n, 0)));
	else if (linear)
		give_all(t, n,
			 info->linear == LINEAR_ALONE ? alone(t, n)
						      : together(t, n, info->linear_in));
	else if (!reads_dependent(t, n))
		give_all(t, n, is_zero(g, n) ? LIN_ZERO : LIN_FREE);
	else if (info->foreign)
		give_call(t, n);
	else if (op == OP_scan || op == OP_while || op == OP_cond)
		give_region(t, n);
	else if (info->linear_in && together(t, n, info->linear_in) == LIN_LINEAR)
		give_all(t, n, LIN_LINEAR);
	else if (composite)
		give_expansion(t, n);
	else
		give_all(t, n, LIN_NOT);
}

Lin linear_of(LinearTable *t, Node n, uint32_t k)
{
	for (Node x = t->last.i ? node_next(t->g, t->last) : t->g->first; x.i;
	     x = node_next(t->g, x)) {
		if (!slot(t, x)->result)
			meet(t, x);
		t->last = x;
	}
	return slot(t, n)->result[k];
}
