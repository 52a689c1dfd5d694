/* Calls of user operators become steps. Operands are whole row-major buffers, results too, where
 * their readers want them if such a buffer is there. What the operator's types demand of sizes and
 * is not known becomes a guard of the graph. */
#include "ir/build/text.h"
#include "lower/stage.h"
#include "ops/user/userop.h"

/* All of a buffer of these extents. */
static bool is_exact(const Lower *s, const NodePlace *p, const Type *t)
{
	const Buffer *b = buf_of(s->l, p->buf);
	bool exact = !p->t.i && b->rank == t->n && b->dtype == t->dtype;
	for (uint32_t k = 0; k < t->n && exact; k++)
		exact = b->dim[k].i == t->dim[k].i &&
			(!p->off[k].i || sym_is(s->ir->syms, p->off[k], 0));
	return exact;
}

static BufId row_major(Lower *s, BufId b)
{
	buf_of(s->l, b)->layout_fixed = true;
	return b;
}

static BufId operand_buffer(Lower *s, Node n)
{
	const NodeInfo *info = node_info(s, n);
	ConstId c = node_const(s->g, n);
	if (c.i) /* in a buffer of its own: kernels may want another layout */
		return row_major(s, lower_new_place(s, n, BUF_CONST, c.i).buf);
	if (info->place.n && is_exact(s, &info->place.data[0], node_type(s->g, n)))
		return row_major(s, info->place.data[0].buf);
	NodePlace p = lower_new_place(s, n, BUF_TEMP, 0);
	lower_push_kernel(s, lower_copy_kernel(s, n, &p));
	return row_major(s, p.buf);
}

static NodePlace result_place(Lower *s, Node n, uint32_t k)
{
	const Type t = *ir_type_of(s->ir, node_type(s->g, n)->elem[k]);
	NodePlace p = lower_result_place(s, n, k);
	if (!is_exact(s, &p, &t))
		p = (NodePlace){.buf = lowered_buf(s->l, BUF_TEMP, 0, t.dtype, t.n, t.dim,
						   graph_name(s->g, n))};
	row_major(s, p.buf);
	return p;
}

/* What the types demand of the sizes here; the bytes of the workspace. */
static Sym require_extents(Lower *s, Node n, const UserOp *op, const UserScalars *scalars)
{
	Graph *g = s->g;
	UserSolution found;
	Type *operand = ARENA_ARRAY(s->arena, Type, op->nin);
	for (uint32_t k = 0; k < op->nin; k++)
		operand[k] = *node_type(g, node_in(g, n, k));
	if (!userop_solve(s->ir, op, operand, scalars, &found))
		ctx_bug(s->ir->ctx, "%s", found.why);
	for (uint32_t k = 0; k < found.need.n; k++) {
		const UserNeed *need = &found.need.data[k];
		if (need->want.i)
			graph_guard(g, GUARD_EQ, need->extent, need->want, need->what);
		else
			graph_guard(g, GUARD_LE, sym_int(s->ir->syms, 0), need->extent, need->what);
	}
	for (uint32_t k = 0; k < op->nout; k++) {
		const Type want = *ir_type_of(s->ir, userop_result(s->ir, op, &found, k));
		const Type got = *ir_type_of(s->ir, node_type(g, n)->elem[k]);
		for (uint32_t d = 0; d < want.n; d++)
			graph_guard(g, GUARD_EQ, got.dim[d], want.dim[d],
				    arena_printf(s->arena, "%s: dimension %u of result %u",
						 op->name, d, k));
	}
	return userop_work(s->ir, op, &found);
}

void lower_call(Lower *s, Node n)
{
	Graph *g = s->g;
	const UserOp *op = userop_of(g, n);
	UserScalars scalars = userop_scalars(g, n);
	StepCall *call = ARENA_NEW(s->arena, StepCall);
	BufId *buf = ARENA_ARRAY(s->arena, BufId, op->nin + op->nout);
	NodePlace *out = ARENA_ARRAY(s->arena, NodePlace, op->nout);
	Text text;
	text_init(&text, s->arena);
	graph_print_node(g, n, &text);
	*call = (StepCall){.op = op,
			   .name = lower_name(s, n),
			   .lines = lower_line(s, n),
			   .text = text.data,
			   .buf = buf,
			   .ints = scalars.ints,
			   .floats = scalars.floats,
			   .nint = scalars.nint,
			   .nfloat = scalars.nfloat};
	call->work = require_extents(s, n, op, &scalars);
	for (uint32_t k = 0; k < op->nin; k++)
		buf[k] = operand_buffer(s, node_in(g, n, k));
	for (uint32_t k = 0; k < op->nout; k++) {
		out[k] = result_place(s, n, k);
		buf[op->nin + k] = out[k].buf;
	}
	array_push(s->arena, &s->steps->step, (Step){.kind = STEP_CALL, .call = call});
	for (uint32_t k = 0; k < op->nout; k++)
		lower_publish_result(s, n, k, &out[k]);
}
