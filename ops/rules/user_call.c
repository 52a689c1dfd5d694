/* Calls of user operators in the texts of rules. */
#include <string.h>

#include "ir/op/userop.h"
#include "ops/rules/expand_priv.h"

const UserOp *expand_user_find(const Eval *e, const char *name, uint32_t len)
{
	const UserOp *const *op = e->b ? e->b->g->ir->userop.data : e->userop;
	uint32_t n = e->b ? e->b->g->ir->userop.n : e->nuserop;
	for (uint32_t k = 0; k < n; k++)
		if (strlen(op[k]->name) == len && !memcmp(op[k]->name, name, len))
			return op[k];
	return NULL;
}

const char *expand_user_call(Eval *e, const UserOp *op, const Val *slot, Val *out)
{
	*out = (Val){.kind = VAL_any};
	if (!e->b)
		return NULL;
	Build *b = e->b;
	Ir *ir = b->g->ir;
	Attr attr[4], *value = ARENA_ARRAY(ir->ctx->scratch, Attr, op->schema.narg);
	Node *in = ARENA_ARRAY(ir->ctx->scratch, Node, op->nin);
	uint32_t nin = 0;
	for (uint32_t k = 0; k < op->schema.narg; k++) {
		const Arg *arg = &op->schema.arg[k];
		bool tensor = arg->kind == ARG_tensor;
		if (tensor && slot[k].kind != VAL_node)
			return "expected a tensor for an argument of a user operator";
		if (!tensor && slot[k].kind != VAL_attr && slot[k].kind != VAL_none)
			return "expected no tensor for an argument of a user operator";
		if (tensor)
			in[nin++] = slot[k].node;
		else
			value[k] = slot[k].kind == VAL_attr ? slot[k].attr : op_default(ir, arg);
	}
	const char *err = userop_attrs(ir, op, value, attr);
	if (err)
		return err;
	for (uint32_t k = 0; k < nin; k++)
		if (!in[k].i) /* said before */
			return "an operand has an error";
	Node call = b_node(b, OP_call, in, nin, attr, 4);
	*out = (Val){.kind = VAL_node, .node = call.i && op->nout == 1 ? b_get(b, call, 0) : call};
	return NULL;
}
