#include "transform/step/rows.h"

#include <string.h>

#include "ir/op/op.h"
#include "ops/rules/rules.h"

enum { MAX_OPERANDS = 4 };

/* Values that are added to rows: index i64[N], value [N, ...]. */
typedef struct {
	Node index, value;
} Rows;

static bool is_zero(const Graph *g, Node n)
{
	Attr v;
	return node_splat(g, n, &v) && v.kind == ATTR_float && v.f == 0;
}

/* Makes the dimensions of index one, and those of value that belong to them. */
static void flatten(Build *b, Node index, Node value, Rows *out)
{
	const Type v = *node_type(b->g, value);
	const uint32_t lead = node_rank(b->g, index);
	Sym dim[MAX_RANK] = {type_numel(b->g->ir, node_type_id(b->g, index))};
	memcpy(dim + 1, v.dim + lead, (v.n - lead) * sizeof *dim);
	out->index = b_convert(b, b_reshape(b, index, 1, dim), DT_i64);
	out->value = b_reshape(b, value, v.n - lead + 1, dim);
}

static bool of_scatter(Build *b, Node n, Rows *out)
{
	const Graph *g = b->g;
	const Node index = node_in(g, n, 1);
	uint32_t naxes;
	if (op_arg_index(node_op(g, n), "combine") < 0)
		return false;
	const Sym *axes = node_ints(g, n, "axes", &naxes);
	if (naxes != 1 || !sym_is(graph_syms(g), axes[0], 0) || node_int(g, n, "batch") != 0 ||
	    strcmp(node_str(g, n, "combine"), "add") != 0 || !is_zero(g, node_in(g, n, 0)))
		return false;
	flatten(b, b_squeeze(b, index, -1), node_in(g, n, 2), out);
	return true;
}

static bool find(Build *b, Node n, Rows *out);

/* Whether the node is a linear function of the elements of such sums: of each, with 0 for the
 * others, the function of its values. Several gathers of one parameter are one list. */
static bool of_elements(Build *b, Node n, Rows *out)
{
	const Op op = node_op(b->g, n);
	const uint32_t nin = node_nin(b->g, n);
	Node index[MAX_OPERANDS], value[MAX_OPERANDS];
	if (nin < 1 || nin > MAX_OPERANDS || op_info(op)->linear != LINEAR_TOGETHER ||
	    !(op_is_scalar(op) || op_info(op)->dims == DIMS_SAME))
		return false;
	for (uint32_t k = 0; k < nin; k++) {
		Rows of;
		Node in[MAX_OPERANDS];
		if (!find(b, node_in(b->g, n, k), &of))
			return false;
		for (uint32_t j = 0; j < nin; j++)
			in[j] = j == k ? of.value : b_zeros_like(b, of.value);
		const Type t = *node_type(b->g, of.value);
		index[k] = of.index;
		value[k] = graph_add(b->g, b->before, op, in, nin, node_data(b->g, n)->attr,
				     ir_type(b->g->ir, node_dtype(b->g, n), t.n, t.dim), b->loc);
	}
	out->index = b_concat(b, index, nin, 0);
	out->value = b_concat(b, value, nin, 0);
	return true;
}

static Node expanded(Build *b, Node n)
{
	const uint32_t nin = node_nin(b->g, n);
	Node *in = ARENA_ARRAY(b->g->ir->ctx->scratch, Node, nin + 1);
	for (uint32_t k = 0; k < nin; k++)
		in[k] = node_in(b->g, n, k);
	return op_expand(b, node_op(b->g, n), in, nin, node_data(b->g, n)->attr);
}

/* Whether the node is a sum of values that are added to rows of zeros. */
static bool find(Build *b, Node n, Rows *out)
{
	if (!n.i || !node_is_tensor(b->g, n))
		return false;
	if (op_kind(node_op(b->g, n)) == OP_COMPOSITE)
		return find(b, expanded(b, n), out);
	return op_lower(node_op(b->g, n))->updates ? of_scatter(b, n, out) : of_elements(b, n, out);
}

bool rows_find(Build *b, Node gradient, StepRows *rows, Node *sum)
{
	Rows of;
	if (!node_rank(b->g, gradient) || !find(b, gradient, &of))
		return false;
	const Attr attr[] = {attr_none(), attr_none(), attr_sym(node_dim(b->g, gradient, 0))};
	const Node all = b_node(b, OP_rows_sum, (Node[]){of.index, of.value}, 2, attr, 3);
	rows->at = b_get(b, all, 0);
	rows->to = b_get(b, all, 1);
	*sum = b_get(b, all, 2);
	return true;
}

Node rows_take(Build *b, const StepRows *r, Node x)
{
	return r->at.i ? b_node(b, OP_rows_take, (Node[]){x, r->at}, 2, NULL, 0) : x;
}

Node rows_put(Build *b, const StepRows *r, Node x, Node value)
{
	return r->at.i ? b_node(b, OP_rows_put, (Node[]){x, r->to, value}, 3, NULL, 0) : value;
}
