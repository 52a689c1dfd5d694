/* The rules of one node in a derivative, from its block: local derivatives, texts, functions. What
 * is not stated follows: the tangent of a linear primitive is the primitive itself. */
#include <string.h>

#include "ops/rules/expand_priv.h"

/* ---- zeros, sums ---- */

Node b_zeros_like(Build *b, Node x)
{
	return b_zeros(b, node_type_id(b->g, x));
}

Node b_again(Build *b, Node n, const Node *in)
{
	Graph *g = b->g;
	const NodeData d = *node_data(g, n);
	TypeId type = op_infer(b, d.op, in, d.nin, d.attr);
	return type.i ? graph_add(g, b->before, d.op, in, d.nin, d.attr, type, b->loc) : (Node){0};
}

Node b_sum_to(Build *b, Node x, Node like)
{
	if (!x.i)
		return x;
	const Graph *g = b->g;
	uint32_t extra = node_rank(g, x) - node_rank(g, like), dims = (1u << extra) - 1;
	for (uint32_t k = 0; k < node_rank(g, like); k++)
		if (sym_is(b_syms(b), node_dim(g, like, k), 1) &&
		    !sym_is(b_syms(b), node_dim(g, x, extra + k), 1))
			dims |= 1u << (extra + k);
	if (dims) {
		const Type t = *node_type(g, like);
		x = b_reshape(b, b_reduce(b, REDUCE_SUM, x, dims, DT_none), t.n, t.dim);
	}
	return b_convert(b, x, node_dtype(g, like));
}

Node b_add(Build *b, Node x, Node y)
{
	return x.i && y.i ? b_bin(b, OP_add, x, y) : x.i ? x : y;
}

/* ---- texts ---- */

/* Returns the schema's argument that operand k is, or is one of. */
static const Arg *operand_arg(const Graph *g, Node n, uint32_t k)
{
	const Schema *s = op_schema(node_op(g, n));
	uint32_t at = 0;
	for (uint32_t j = 0; j < s->narg; j++) {
		uint32_t first, count = s->arg[j].kind == ARG_tensor;
		if (s->arg[j].kind == ARG_tensors)
			count = node_args(g, n, s->arg[j].name, &first);
		if (k < at + count)
			return &s->arg[j];
		at += count;
	}
	return NULL;
}

/* Returns what rules of composites compute with: as expansions do, several steps are rounded to
 * a storage type once, at the end. */
static Node unrounded(Build *b, Node n, Node x)
{
	DType d = x.i ? node_dtype(b->g, x) : DT_none;
	bool wide = op_kind(node_op(b->g, n)) == OP_COMPOSITE && dtype_is_float(d);
	return wide ? b_convert(b, x, dtype_compute(d)) : x;
}

static Val operand_value(Build *b, Node n, Node x)
{
	return (Val){.kind = VAL_node, .node = unrounded(b, n, x)};
}

/* Binds the node's arguments and results to the names that rules use. */
static void bind_node(Eval *e, Build *b, Node n, const char *text)
{
	Graph *g = b->g;
	const NodeData d = *node_data(g, n);
	Arena *scratch = g->ir->ctx->scratch;
	Node *in = ARENA_ARRAY(scratch, Node, d.nin + 1);
	*e = (Eval){.b = b, .p = text};
	for (uint32_t k = 0; k < d.nin; k++)
		in[k] = unrounded(b, n, node_in(g, n, k));
	expand_bind(e, d.op, in, d.nin, d.attr);
	const Type t = *ir_type_of(g->ir, d.type);
	if (t.dtype != DT_none) {
		expand_let(e, "y", operand_value(b, n, n));
		return;
	}
	for (uint32_t r = 0; r < t.n; r++)
		if (strstr(text, arena_printf(scratch, "y%u", r)))
			expand_let(e, arena_printf(scratch, "y%u", r),
				   operand_value(b, n, b_get(b, n, r)));
}

static bool text_failed(const Eval *e, Build *b, Node n, const char *rule)
{
	if (!e->err)
		return false;
	if (!b->g->ir->ctx->nerror)
		ctx_bug(b->g->ir->ctx, "%s of %s: %s at \"%.32s\"", rule, op_name(node_op(b->g, n)),
			e->err, e->errp);
	return true;
}

/* Says that a node has no derivative. by: " by NAME", or "". */
static bool none(Build *b, Node n, const char *by)
{
	const OpInfo *info = op_info(node_op(b->g, n));
	b_error(b, "%s has no derivative%s%s%s", op_name(node_op(b->g, n)), by,
		info->no_deriv ? ": " : "", info->no_deriv ? info->no_deriv : "");
	return ctx_kind(b->g->ir->ctx, REFUSAL_DERIVATIVE);
}

/* Sets *out to d result / d operand k, times `by`. */
static bool local(Build *b, Node n, uint32_t k, Node by, Node *out)
{
	Eval e;
	const OpInfo *info = op_info(node_op(b->g, n));
	*out = (Node){0};
	if (!info->deriv[k])
		return none(b, n,
			    arena_printf(b->g->ir->ctx->scratch, " by %s",
					 operand_arg(b->g, n, k)->name));
	bind_node(&e, b, n, info->deriv[k]);
	Val v = expand_scaled(&e, operand_value(b, n, by));
	if (text_failed(&e, b, n, ".deriv"))
		return false;
	*out = v.kind == VAL_none ? (Node){0} : expand_operand(&e, &v, node_dtype(b->g, by));
	return true;
}

/* ---- cotangents ---- */

static void bind_cotangents(Eval *e, Build *b, Node n, const Node *ct, const char *text)
{
	const Type t = *node_type(b->g, n);
	if (t.dtype != DT_none) {
		expand_let(e, "g", operand_value(b, n, ct[0]));
		return;
	}
	for (uint32_t r = 0; r < t.n; r++) {
		const char *name = arena_printf(b->g->ir->ctx->scratch, "g%u", r);
		if (strstr(text, name))
			expand_let(
				e, name,
				operand_value(b, n,
					      ct[r].i ? ct[r]
						      : b_zeros(b, node_result_type(b->g, n, r))));
	}
}

static bool vjp_text(Build *b, Node n, const Node *ct, Node *g)
{
	Eval e;
	const char *text = op_info(node_op(b->g, n))->vjp;
	bind_node(&e, b, n, text);
	bind_cotangents(&e, b, n, ct, text);
	Val v = expand_program(&e);
	uint32_t nin = node_nin(b->g, n);
	if (!e.err && (v.kind != VAL_nodes || v.n != nin))
		ctx_bug(b->g->ir->ctx, ".vjp of %s: expected a list of %u",
			op_name(node_op(b->g, n)), nin);
	if (text_failed(&e, b, n, ".vjp"))
		return false;
	memcpy(g, v.nodes, nin * sizeof *g);
	return true;
}

static bool vjp_deriv(Build *b, Node n, Node ct, const bool *want, Node *g)
{
	for (uint32_t k = 0; k < node_nin(b->g, n); k++)
		if (want[k])
			TRY(local(b, n, k, ct, &g[k]));
	return true;
}

bool op_vjp(Build *outer, Node n, const Node *ct, const bool *want, Node *g)
{
	Build *b = &(Build){outer->g, outer->before, node_data(outer->g, n)->loc,
			    node_near(outer->g, n)};
	const OpInfo *info = op_info(node_op(b->g, n));
	uint32_t nin = node_nin(b->g, n), errors = b->g->ir->ctx->nerror;
	memset(g, 0, nin * sizeof *g);
	if (!op_has_vjp(node_op(b->g, n)))
		return none(b, n, "");
	if (info->adjoint)
		TRY(info->adjoint(b, n, ct, want, g));
	else if (info->vjp)
		TRY(vjp_text(b, n, ct, g));
	else
		TRY(vjp_deriv(b, n, ct[0], want, g));
	for (uint32_t k = 0; k < nin; k++)
		g[k] = want[k] ? b_sum_to(b, g[k], node_in(b->g, n, k)) : (Node){0};
	return b->g->ir->ctx->nerror == errors;
}

/* ---- tangents ---- */

static bool is_linear_in(const OpInfo *info, uint32_t k)
{
	return !info->linear_in || info->linear_in >> (k < 31 ? k : 31) & 1;
}

static void jvp_linear(Build *b, Node n, const Node *t, Node *ty)
{
	const OpInfo *info = op_info(node_op(b->g, n));
	uint32_t nin = node_nin(b->g, n);
	Node *in = ARENA_ARRAY(b->g->ir->ctx->scratch, Node, nin);
	for (uint32_t k = 0; k < nin; k++)
		in[k] = node_in(b->g, n, k);
	if (info->linear == LINEAR_TOGETHER) {
		for (uint32_t k = 0; k < nin; k++)
			if (is_linear_in(info, k) && in[k].i)
				in[k] = t[k].i ? t[k] : b_zeros_like(b, in[k]);
		ty[0] = b_again(b, n, in);
		return;
	}
	for (uint32_t k = 0; k < nin; k++) {
		if (!t[k].i)
			continue;
		Node own = in[k];
		in[k] = t[k];
		ty[0] = b_add(b, ty[0], b_again(b, n, in));
		in[k] = own;
	}
}

static bool jvp_text(Build *b, Node n, const Node *t, Node *ty)
{
	Eval e;
	Graph *g = b->g;
	bind_node(&e, b, n, op_info(node_op(g, n))->jvp);
	for (uint32_t k = 0; k < node_nin(g, n); k++) {
		Node x = node_in(g, n, k);
		if (x.i && dtype_is_float(node_dtype(g, x)))
			expand_let(&e,
				   arena_printf(g->ir->ctx->scratch, "t_%s",
						operand_arg(g, n, k)->name),
				   operand_value(b, n, t[k].i ? t[k] : b_zeros_like(b, x)));
	}
	Val v = expand_program(&e);
	if (text_failed(&e, b, n, ".jvp"))
		return false;
	for (uint32_t r = 0; v.kind == VAL_nodes && r < v.n; r++)
		ty[r] = v.nodes[r].i
				? b_convert(b, v.nodes[r],
					    ir_type_of(g->ir, node_result_type(g, n, r))->dtype)
				: v.nodes[r];
	if (v.kind != VAL_nodes)
		ty[0] = b_convert(b, expand_operand(&e, &v, node_dtype(g, n)), node_dtype(g, n));
	return true;
}

static bool jvp_deriv(Build *b, Node n, const Node *t, Node *ty)
{
	const Type type = *node_type(b->g, n);
	for (uint32_t k = 0; k < node_nin(b->g, n); k++) {
		Node part;
		if (!t[k].i)
			continue;
		/* a tangent has the type of the operand, which in composites may be promoted and
		 * repeated */
		Node wide = b_convert(b, b_broadcast(b, t[k], type.n, type.dim), type.dtype);
		TRY(local(b, n, k, wide, &part));
		ty[0] = b_add(b, ty[0], part);
	}
	ty[0] = b_convert(b, ty[0], type.dtype);
	return true;
}

bool op_jvp(Build *outer, Node n, const Node *t, Node *ty)
{
	Build *b = &(Build){outer->g, outer->before, node_data(outer->g, n)->loc,
			    node_near(outer->g, n)};
	const OpInfo *info = op_info(node_op(b->g, n));
	uint32_t errors = b->g->ir->ctx->nerror;
	if (node_is_linear(b->g, n))
		jvp_linear(b, n, t, ty);
	else if (info->tangent)
		TRY(info->tangent(b, n, t, ty));
	else if (info->jvp)
		TRY(jvp_text(b, n, t, ty));
	else
		TRY(jvp_deriv(b, n, t, ty));
	return b->g->ir->ctx->nerror == errors;
}
