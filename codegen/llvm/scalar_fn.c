/* Scalar functions from their SSA form: cheap ones in place, others as functions of the module, one per lane
 * count. */
#include <string.h>

#include "codegen/llvm/priv.h"

typedef struct {
	LUnit *u;
	const ScFn *fn;
	uint32_t lanes;
	LLVMValueRef *value; /* by instruction */
	bool *used;
} Fn;

static LType type_of(const Fn *f, DType d)
{
	return (LType){d, f->lanes};
}

/* ---- tables ---- */

static LLVMValueRef entry_of(LUnit *u, const ScTable *t, uint32_t k)
{
	LType one = {t->dtype, 1};
	switch (t->dtype) {
	case DT_f32: return l_float(u, one, (double)((const float *)t->data)[k]);
	case DT_f64: return l_float(u, one, ((const double *)t->data)[k]);
	case DT_i32: return l_int(u, one, ((const int32_t *)t->data)[k]);
	default: return l_int(u, one, ((const uint32_t *)t->data)[k]);
	}
}

static LLVMValueRef table_of(LUnit *u, const ScTable *t)
{
	const char *name = arena_printf(u->arena, "table_%s", t->name);
	LLVMValueRef g = LLVMGetNamedGlobal(u->m, name);
	if (g)
		return g;
	LLVMTypeRef elem = l_type(u, (LType){t->dtype, 1});
	LLVMValueRef *entry = ARENA_ARRAY(u->arena, LLVMValueRef, t->n);
	for (uint32_t k = 0; k < t->n; k++)
		entry[k] = entry_of(u, t, k);
	g = LLVMAddGlobal(u->m, LLVMArrayType2(elem, t->n), name);
	LLVMSetInitializer(g, LLVMConstArray2(elem, entry, t->n));
	LLVMSetGlobalConstant(g, true);
	LLVMSetLinkage(g, LLVMPrivateLinkage);
	LLVMSetAlignment(g, 64);
	return g;
}

static LLVMValueRef look_up(Fn *f, const ScIns *i)
{
	LUnit *u = f->u;
	LLVMTypeRef elem = l_type(u, (LType){i->dtype, 1}), type = l_type(u, type_of(f, i->dtype));
	LLVMValueRef index = f->value[i->in[0]];
	LLVMValueRef p = LLVMBuildInBoundsGEP2(u->b, elem, table_of(u, i->table), &index, 1, "");
	if (f->lanes == 1)
		return LLVMBuildLoad2(u->b, elem, p, "");
	LLVMTypeRef over[2] = {type, LLVMTypeOf(p)};
	uint32_t align = dtype_size(dtype_compute(i->dtype));
	LLVMValueRef in[4] = {p, LLVMConstInt(LLVMInt32TypeInContext(u->c), align, 0),
	                      l_int(u, (LType){DT_bool, f->lanes}, 1), LLVMGetPoison(type)};
	return l_intrinsic(u, "llvm.masked.gather", over, 2, in, 4);
}

/* ---- instructions ---- */

/* The call, unless no lane reads its value. */
static LLVMValueRef guarded_call(Fn *f, const ScIns *i, ScGuard guard, LLVMValueRef *in)
{
	LUnit *u = f->u;
	LLVMValueRef cond = f->value[guard.cond];
	if (!guard.when)
		cond = LLVMBuildNot(u->b, cond, "");
	LLVMBasicBlockRef from = LLVMGetInsertBlock(u->b);
	LLVMValueRef fn = LLVMGetBasicBlockParent(from);
	LLVMBasicBlockRef slow = LLVMAppendBasicBlockInContext(u->c, fn, "slow");
	LLVMBasicBlockRef join = LLVMAppendBasicBlockInContext(u->c, fn, "join");
	LLVMBuildCondBr(u->b, l_any(u, type_of(f, DT_bool), cond), slow, join);
	LLVMPositionBuilderAtEnd(u->b, slow);
	LLVMValueRef x = l_scalar_fn(u, i->fn, f->lanes, in, i->nin);
	LLVMBasicBlockRef last = LLVMGetInsertBlock(u->b);
	LLVMBuildBr(u->b, join);
	LLVMPositionBuilderAtEnd(u->b, join);
	LLVMValueRef phi = LLVMBuildPhi(u->b, LLVMTypeOf(x), "");
	LLVMValueRef none = LLVMConstNull(LLVMTypeOf(x));
	LLVMAddIncoming(phi, (LLVMValueRef[]){none, x}, (LLVMBasicBlockRef[]){from, last}, 2);
	return phi;
}

static LLVMValueRef call(Fn *f, uint32_t k, LLVMValueRef *in)
{
	const ScIns *i = &f->fn->ins[k];
	ScGuard guard = scalar_guard(f->fn, k);
	if (guard.found)
		return guarded_call(f, i, guard, in);
	return l_scalar_fn(f->u, i->fn, f->lanes, in, i->nin);
}

static LLVMValueRef instruction(Fn *f, uint32_t k)
{
	const ScIns *i = &f->fn->ins[k];
	LLVMValueRef in[4] = {NULL};
	for (uint32_t j = 0; j < i->nin && i->op != SC_param; j++)
		in[j] = f->value[i->in[j]];
	LType result = type_of(f, i->dtype);
	switch (i->op) {
	case SC_const:
		return dtype_is_float(i->dtype) ? l_float(f->u, result, i->f) : l_int(f->u, result, i->i);
	case SC_let: return in[0];
	case SC_call: return call(f, k, in);
	case SC_table: return look_up(f, i);
	default:
		return l_op(f->u, i->op, result, type_of(f, f->fn->ins[i->in[0]].dtype), in, i->nin, 0);
	}
}

static void mark_used(Fn *f, uint32_t k)
{
	if (f->used[k])
		return;
	f->used[k] = true;
	for (uint32_t j = 0; j < f->fn->ins[k].nin; j++)
		mark_used(f, f->fn->ins[k].in[j]);
}

static LLVMValueRef evaluate(LUnit *u, const ScFn *fn, uint32_t lanes, LLVMValueRef *in)
{
	Fn f = {u, fn, lanes, ARENA_ARRAY(u->arena, LLVMValueRef, fn->nins),
	        ARENA_ARRAY(u->arena, bool, fn->nins)};
	uint32_t last = fn->nins - 1;
	mark_used(&f, last);
	for (uint32_t k = 0; k <= last; k++)
		if (f.used[k])
			f.value[k] = fn->ins[k].op == SC_param ? in[fn->ins[k].k] : instruction(&f, k);
	return f.value[last];
}

static LLVMTypeRef signature(LUnit *u, const ScFn *fn, uint32_t lanes)
{
	LLVMTypeRef param[4];
	for (uint32_t k = 0; k < fn->nparam; k++)
		param[k] = l_type(u, (LType){fn->param[k], lanes});
	return LLVMFunctionType(l_type(u, (LType){fn->result, lanes}), param, fn->nparam, false);
}

static LLVMValueRef define(LUnit *u, const ScFn *fn, uint32_t lanes, const char *name)
{
	LLVMValueRef def = LLVMAddFunction(u->m, name, signature(u, fn, lanes)), in[4];
	LLVMSetLinkage(def, LLVMInternalLinkage);
	LLVMSetFunctionCallConv(def, LLVMFastCallConv);
	l_attribute(u, def, "nounwind");
	LLVMBasicBlockRef back = LLVMGetInsertBlock(u->b);
	LLVMPositionBuilderAtEnd(u->b, LLVMAppendBasicBlockInContext(u->c, def, ""));
	for (uint32_t k = 0; k < fn->nparam; k++)
		in[k] = LLVMGetParam(def, k);
	LLVMBuildRet(u->b, evaluate(u, fn, lanes, in));
	LLVMPositionBuilderAtEnd(u->b, back);
	return def;
}

LLVMValueRef l_scalar_fn(LUnit *u, const ScFn *fn, uint32_t lanes, LLVMValueRef *in, uint32_t nin)
{
	if (fn->cost <= SC_INLINE_COST)
		return evaluate(u, fn, lanes, in);
	const char *name = arena_printf(u->arena, "%s.%u", fn->name, lanes);
	LLVMValueRef def = LLVMGetNamedFunction(u->m, name);
	if (!def)
		def = define(u, fn, lanes, name);
	LLVMValueRef r = LLVMBuildCall2(u->b, signature(u, fn, lanes), def, in, nin, "");
	LLVMSetInstructionCallConv(r, LLVMFastCallConv);
	return r;
}
