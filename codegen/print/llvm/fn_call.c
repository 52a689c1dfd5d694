/* Calls of user operators: what is called, and what it is given (WeftOpCall of runtime.h). */
#include <string.h>

#include "codegen/print/llvm/fn.h"
#include "ir/graph/dtype_api.h"
#include "ir/op/userop.h"

static LLVMValueRef i32(LUnit *u, int64_t v)
{
	return LLVMConstInt(LLVMInt32TypeInContext(u->c), (unsigned long long)v, true);
}

/* Returns the WeftOpTensor of a tensor. Its WeftDType is one number whose lowest byte comes first,
 * as on all targets. */
static LLVMValueRef tensor(LUnit *u, const struct LoopCallTensor *t)
{
	WeftDType d = dtype_to_api(t->dtype);
	LLVMValueRef field[3] = {i32(u, d.code | d.bits << 8 | 1 << 16), i32(u, t->rank),
				 i32(u, t->buf)};
	return LLVMConstStructInContext(u->c, field, 3, false);
}

/* Returns the pointer that calls of the operator get as WeftOpContext.op_user. */
static LLVMValueRef op_user(LUnit *u, const UserOp *op)
{
	if (u->here && op->def.user)
		return l_extern_object(
			u, arena_printf(u->arena, "\1%s", userop_user_symbol(u->arena, op)));
	if (!u->here && op->def.user_symbol)
		return l_extern_object(u, arena_printf(u->arena, "\1%s", op->def.user_symbol));
	return LLVMConstNull(l_pointer(u));
}

static LLVMValueRef table(LUnit *u, const LoopCall *c)
{
	LLVMTypeRef p = l_pointer(u), word = LLVMInt32TypeInContext(u->c);
	LLVMTypeRef type = LLVMFunctionType(
		word, (LLVMTypeRef[]){p, p, p, p, LLVMInt64TypeInContext(u->c), p}, 6, false);
	LLVMTypeRef of_tensor =
		LLVMStructTypeInContext(u->c, (LLVMTypeRef[]){word, word, word}, 3, false);
	uint32_t n = c->nin + c->nout;
	LLVMValueRef *one = ARENA_ARRAY(u->arena, LLVMValueRef, n);
	for (uint32_t k = 0; k < n; k++)
		one[k] = tensor(u, &c->tensor[k]);
	LLVMValueRef name =
		LLVMConstStringInContext2(u->c, c->op->said, strlen(c->op->said), false);
	/* \1: the symbol of exactly this name, whatever functions of the module are called */
	LLVMValueRef fn = l_extern(u, arena_printf(u->arena, "\1%s", c->op->def.symbol), type);
	LLVMValueRef field[8] = {
		l_constant(u, name), fn,
		op_user(u, c->op),   l_constant(u, LLVMConstArray2(of_tensor, one, n)),
		i32(u, c->nin),      i32(u, c->nout),
		i32(u, c->work),     i32(u, 0)};
	return l_constant(u, LLVMConstStructInContext(u->c, field, 8, false));
}

LLVMValueRef fn_user_call(Fn *f, const LoopCall *c, LLVMValueRef value)
{
	LUnit *u = f->u;
	LLVMTypeRef p = l_pointer(u),
		    type = LLVMFunctionType(LLVMInt32TypeInContext(u->c),
					    (LLVMTypeRef[]){p, p, p, LLVMInt64TypeInContext(u->c)},
					    4, false);
	LLVMValueRef in[4] = {LLVMGetParam(f->fn, 0), table(u, c), value, f->var[f->f->task.i]};
	return LLVMBuildCall2(u->b, type, l_extern(u, "weft_op_call", type), in, 4, "");
}
