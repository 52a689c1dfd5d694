/* What autograd sees and what it does not: detach, values made under no_grad, writes under no_grad,
 * and where a file does not say. The operators here are their operands, and stay until decompose
 * for the sake of their derivatives. Rules are of real numbers: with complex ones they expand to
 * themselves on the parts. */
#include "ops/aten/priv.h"
#include "ops/prim/priv.h"

static bool shape_unchanged(Infer *f)
{
	Type x = infer_in(f, 0);
	return infer_result(f, x.dtype, x.n, x.dim);
}
INFER(unchanged)

static bool shape_pair(Infer *f)
{
	if (f->in[0].i && f->in[1].i &&
	    node_type_id(f->g, f->in[0]).i != node_type_id(f->g, f->in[1]).i)
		return infer_fail(f, "operands of different types");
	return shape_unchanged(f);
}
INFER(pair)

/* Returns operand k, which n is; of complex numbers n on their parts. */
static Node operand_or_parts(Build *b, Node n, int k)
{
	Node in[2] = {node_in(b->g, n, 0), node_nin(b->g, n) > 1 ? node_in(b->g, n, 1) : (Node){0}};
	if (!dtype_is_complex(node_dtype(b->g, in[0])))
		return in[k];
	for (uint32_t i = 0; i < node_nin(b->g, n); i++)
		in[i] = b_node(b, OP_view_real, &in[i], 1, NULL, 0);
	Node pairs = b_node(b, node_op(b->g, n), in, node_nin(b->g, n), NULL, 0);
	return pairs.i ? b_node(b, OP_view_complex, &pairs, 1, NULL, 0) : pairs;
}

static bool no_cotangent(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)b, (void)n, (void)ct, (void)want, (void)g;
	return true;
}

static bool no_tangent(Build *b, Node n, const Node *t, Node *ty)
{
	(void)b, (void)n, (void)t, (void)ty;
	return true;
}

/* ---- detach ---- */

OP(detached){
	.schema = "detached(Tensor x) -> Tensor",
	.doc = "x, without a derivative",
	.infer = infer_unchanged,
	.build_as = {operand_or_parts, 0},
	.adjoint = no_cotangent,
	.tangent = no_tangent,
	.batch_leading = true,
	.no_sample = "part of normalisations, whose samples reach it",
};

static Node build_detach(Build *b, Node n)
{
	return aten_detached(b, node_in(b->g, n, 0));
}
OP(aten_detach){
	.schema = "aten.detach(Tensor(a) self) -> Tensor(a)",
	.view = VIEW_DETACHED,
	.build = build_detach,
	.sample = "f32[n=3, 4]; i32[3]",
	.overloads = (const Overload[]){
		{.schema = "aten.detach_copy(Tensor self) -> Tensor"},
	},
};

/* ---- regions without gradients ---- */

/* torch.no_grad() ends what is differentiated in reverse; tangents pass (torch.func.jvp), and are
 * themselves made without a history. */
OP(without_cotangent){
	.schema = "without_cotangent(Tensor x) -> Tensor",
	.doc = "x, with its tangents and without cotangents",
	.infer = infer_unchanged,
	.build_as = {operand_or_parts, 0},
	.adjoint = no_cotangent,
	.jvp = "without_cotangent(t_x)",
	.batch_leading = true,
	.sample = "f32[n=3, 4]",
};

/* A tensor with a history that was written under torch.no_grad() keeps the history. */
OP(replaced){
	.schema = "replaced(Tensor x, Tensor value) -> Tensor",
	.doc = "value and its tangents, with the cotangents of x, which it takes the place of",
	.infer = infer_pair,
	.build_as = {operand_or_parts, 1},
	.vjp = "[g, none]",
	.jvp = "replaced(t_x, t_value)",
	.batch_leading = true,
	.sample = "f32[n=3, 4], f32[n, 4]",
};

/* ---- conventions of single operators ---- */

OP(straight_through){
	.schema = "straight_through(Tensor x, Tensor y) -> Tensor",
	.doc = "x, with the derivatives of y, which has its type",
	.vjp = "[none, g]",
	.jvp = "t_y",
	.batch_leading = true,
	.infer = infer_pair,
	.build_as = {operand_or_parts, 0},
	.sample = "f32[n=3, 4], f32[n, 4]",
};

/* Keeps a convention of tangents where the composite that has it is expanded, as for a batch. */
Node aten_without_tangent(Build *b, Node x)
{
	return x.i && dtype_is_inexact(node_dtype(b->g, x))
		       ? b_node(b, OP_without_tangent, &x, 1, NULL, 0)
		       : x;
}
OP(without_tangent){
	.schema = "without_tangent(Tensor x) -> Tensor",
	.doc = "x, with its cotangents and without tangents",
	.infer = infer_unchanged,
	.build_as = {operand_or_parts, 0},
	.vjp = "[g]",
	.tangent = no_tangent,
	.batch_leading = true,
	.no_sample = "part of losses, whose samples reach it",
};

/* ---- files that do not say ---- */

static bool unknown_cotangent(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)n, (void)ct, (void)want, (void)g;
	b_error(b, "aten.alias in a decomposed file may have been a detach, through which no "
		   "derivative flows: export without "
		   "run_decompositions()");
	return false;
}

static bool unknown_tangent(Build *b, Node n, const Node *t, Node *ty)
{
	return unknown_cotangent(b, n, t, NULL, ty);
}

/* run_decompositions() of PyTorch writes aten.alias for detach. */
OP(maybe_detached){
	.schema = "maybe_detached(Tensor(a) self) -> Tensor(a)",
	.doc = "self, of which nobody knows whether it has derivatives",
	.view = VIEW_SAME,
	.infer = infer_unchanged,
	.build_as = {operand_or_parts, 0},
	.adjoint = unknown_cotangent,
	.tangent = unknown_tangent,
	.batch_leading = true,
	.no_sample = "it has no derivative, which is an error",
};
