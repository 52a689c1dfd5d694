#include <string.h>

#include "codegen/print/llvm/priv.h"

void lunit_init(LUnit *u, Ctx *ctx, const Target *t, const char *name)
{
	*u = (LUnit){.ctx = ctx, .arena = ctx->arena, .target = t};
	u->c = LLVMContextCreate();
	u->m = LLVMModuleCreateWithNameInContext(name, u->c);
	u->b = LLVMCreateBuilderInContext(u->c);
}

void lunit_free(LUnit *u)
{
	LLVMDisposeBuilder(u->b);
	LLVMDisposeModule(u->m);
	LLVMContextDispose(u->c);
}

static LLVMTypeRef element(LUnit *u, DType d)
{
	switch (d) {
	case DT_bool: return LLVMInt1TypeInContext(u->c);
	case DT_f32: return LLVMFloatTypeInContext(u->c);
	case DT_f64: return LLVMDoubleTypeInContext(u->c);
	default: return LLVMIntTypeInContext(u->c, dtype_size(d) * 8);
	}
}

LLVMTypeRef l_type(LUnit *u, LType t)
{
	LLVMTypeRef e = element(u, dtype_compute(t.dtype));
	return t.lanes == 1 ? e : LLVMVectorType(e, t.lanes);
}

LLVMTypeRef l_raw(LUnit *u, DType d)
{
	return element(u, dtype_raw(d));
}

LLVMTypeRef l_pointer(LUnit *u)
{
	return LLVMPointerTypeInContext(u->c, 0);
}

LLVMValueRef l_splat(LUnit *u, LLVMValueRef x, uint32_t lanes)
{
	if (lanes == 1)
		return x;
	if (LLVMIsConstant(x)) {
		LLVMValueRef *all = ARENA_ARRAY(u->arena, LLVMValueRef, lanes);
		for (uint32_t k = 0; k < lanes; k++)
			all[k] = x;
		return LLVMConstVector(all, lanes);
	}
	LLVMTypeRef i32 = LLVMInt32TypeInContext(u->c), v = LLVMVectorType(LLVMTypeOf(x), lanes);
	LLVMValueRef one =
		LLVMBuildInsertElement(u->b, LLVMGetPoison(v), x, LLVMConstInt(i32, 0, 0), "");
	return LLVMBuildShuffleVector(u->b, one, LLVMGetPoison(v),
				      LLVMConstNull(LLVMVectorType(i32, lanes)), "");
}

LLVMValueRef l_int(LUnit *u, LType t, int64_t v)
{
	LLVMTypeRef e = element(u, dtype_compute(t.dtype));
	return l_splat(u, LLVMConstInt(e, (unsigned long long)v, true), t.lanes);
}

LLVMValueRef l_float(LUnit *u, LType t, double v)
{
	return l_splat(u, LLVMConstReal(element(u, dtype_compute(t.dtype)), v), t.lanes);
}

LLVMValueRef l_i64(LUnit *u, int64_t v)
{
	return LLVMConstInt(LLVMInt64TypeInContext(u->c), (unsigned long long)v, true);
}

LLVMValueRef l_iota(LUnit *u, DType d, uint32_t lanes)
{
	LLVMValueRef *all = ARENA_ARRAY(u->arena, LLVMValueRef, lanes);
	for (uint32_t k = 0; k < lanes; k++)
		all[k] = LLVMConstInt(element(u, d), k, false);
	return LLVMConstVector(all, lanes);
}

LLVMValueRef l_intrinsic(LUnit *u, const char *name, LLVMTypeRef *type, uint32_t ntype,
			 LLVMValueRef *in, uint32_t nin)
{
	unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
	if (!id)
		ctx_bug(u->ctx, "LLVM has no intrinsic %s", name);
	LLVMValueRef fn = LLVMGetIntrinsicDeclaration(u->m, id, type, ntype);
	return LLVMBuildCall2(u->b, LLVMIntrinsicGetType(u->c, id, type, ntype), fn, in, nin, "");
}

/* Reinterprets operands as the vector types of an intrinsic, which have as many bits and differ
 * between versions of LLVM. */
static void cast_operands(LUnit *u, unsigned id, LLVMValueRef *in, uint32_t nin)
{
	LLVMTypeRef want[6], type = LLVMIntrinsicGetType(u->c, id, NULL, 0);
	if (LLVMCountParamTypes(type) != nin || nin > 6)
		return;
	LLVMGetParamTypes(type, want);
	for (uint32_t k = 0; k < nin; k++)
		if (LLVMTypeOf(in[k]) != want[k])
			in[k] = LLVMBuildBitCast(u->b, in[k], want[k], "");
}

LLVMValueRef l_math(LUnit *u, const char *name, LLVMValueRef *in, uint32_t nin)
{
	LLVMTypeRef type = LLVMTypeOf(in[0]);
	const unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
	if (id && !LLVMIntrinsicIsOverloaded(id))
		cast_operands(u, id, in, nin);
	return l_intrinsic(u, name, &type, id && LLVMIntrinsicIsOverloaded(id), in, nin);
}

LLVMValueRef l_extern(LUnit *u, const char *name, LLVMTypeRef type)
{
	LLVMValueRef fn = LLVMGetNamedFunction(u->m, name);
	return fn ? fn : LLVMAddFunction(u->m, name, type);
}

LLVMValueRef l_extern_object(LUnit *u, const char *name)
{
	LLVMValueRef object = LLVMGetNamedGlobal(u->m, name);
	return object ? object : LLVMAddGlobal(u->m, LLVMInt8TypeInContext(u->c), name);
}

LLVMValueRef l_constant(LUnit *u, LLVMValueRef value)
{
	LLVMValueRef g = LLVMAddGlobal(u->m, LLVMTypeOf(value), "");
	LLVMSetInitializer(g, value);
	LLVMSetGlobalConstant(g, true);
	LLVMSetLinkage(g, LLVMPrivateLinkage);
	LLVMSetAlignment(g, 8);
	return g;
}

void l_attribute(LUnit *u, LLVMValueRef fn, const char *name)
{
	unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
	LLVMAddAttributeAtIndex(fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
	                        LLVMCreateEnumAttribute(u->c, kind, 0));
}
