/* What blocks say of operators and of nodes. */
#include "ir/op/op.h"

#include <string.h>

/* ---- rules ---- */

bool op_is_element_wise(Op op)
{
	const OpInfo *info = op_info(op);
	return op_kind(op) == OP_COMPOSITE && (info->deriv[0] || info->deriv[1] || info->deriv[2]);
}

bool op_has_batch(Op op)
{
	return op_is_scalar(op) || op_is_element_wise(op) || op_info(op)->batch ||
	       op_info(op)->batch_leading;
}

bool op_has_vjp(Op op)
{
	const OpInfo *info = op_info(op);
	return info->deriv[0] || info->deriv[1] || info->deriv[2] || info->vjp || info->adjoint;
}

bool op_has_jvp(Op op)
{
	const OpInfo *info = op_info(op);
	return op_has_vjp(op) || info->linear || info->jvp || info->tangent;
}

bool node_is_linear(const Graph *g, Node n)
{
	const OpInfo *info = op_info(node_op(g, n));
	return info->linear && !op_is_scalar(node_op(g, n)) &&
	       (!info->linear_if || info->linear_if(g, n));
}

bool node_has_jvp(const Graph *g, Node n)
{
	const OpInfo *info = op_info(node_op(g, n));
	bool tangent = info->tangent && (!info->tangent_if || info->tangent_if(g, n));
	return info->deriv[0] || info->deriv[1] || info->deriv[2] || node_is_linear(g, n) ||
	       info->jvp || tangent;
}

bool op_is_kept(Op op)
{
	return op_info(op)->expands == EXPANDS_IN_DECOMPOSE || op_has_vjp(op) || op_has_jvp(op) ||
	       op_has_batch(op);
}

bool node_has_complex(const Graph *g, Node n)
{
	Op op = node_op(g, n);
	uint32_t nin = node_nin(g, n);
	return op_info(op)->complex && nin && node_in(g, n, nin - 1).i &&
	       dtype_is_complex(node_dtype(g, node_in(g, n, nin - 1)));
}

/* ---- what nodes check, and what they say of others ---- */

const char *const index_mode_names[] = {"check", "fill", "clamp", "promise", "within", NULL};

IndexMode node_index_mode(const Graph *g, Node n)
{
	const char *mode = node_str(g, n, "mode");
	uint32_t k = 0;
	while (index_mode_names[k] && strcmp(index_mode_names[k], mode) != 0)
		k++;
	return (IndexMode)k;
}

Checks node_checks(const Graph *g, Node n)
{
	Checks checks = op_info(node_op(g, n))->checks;
	bool idle = checks == CHECKS_INDEX && !index_is_checked(node_index_mode(g, n));
	return idle ? CHECKS_NOTHING : checks;
}

Mark node_mark(const Graph *g, Node n)
{
	const OpInfo *info = op_info(node_op(g, n));
	return info->marks ? info->marks(g, n) : MARK_NONE;
}

Node node_marked(const Graph *g, Node n)
{
	bool element = node_op(g, n) == OP_get;
	Node by = element ? node_in(g, n, 0) : n;
	if (!op_info(node_op(g, by))->marks || (!element && node_dtype(g, n) == DT_none))
		return (Node){0};
	return node_in(g, by, element ? (uint32_t)node_int(g, n, "index") : 0);
}

bool node_rounds(const Graph *g, Node n)
{
	const OpInfo *info = op_info(node_op(g, n));
	return info->rounds && info->rounds(g, n);
}

bool graph_rounds(const Graph *g)
{
	if (g->activations != DT_none)
		return g->activations == DT_i8;
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (node_rounds(g, n))
			return true;
	return false;
}

bool node_is_contraction(const Graph *g, Node n)
{
	const Op op = node_op(g, n);
	return op_lower(op)->role == LOWER_ANCHOR && op_arg_index(op, "batch_x") >= 0;
}

bool node_converts_floats(const Graph *g, Node n)
{
	if (op_lower(node_op(g, n))->role != LOWER_MAP || node_nin(g, n) != 1 ||
	    !node_in(g, n, 0).i)
		return false;
	const DType from = node_dtype(g, node_in(g, n, 0)), to = node_dtype(g, n);
	return from != to && dtype_is_float(from) && dtype_is_float(to);
}
