/* Library functions as functions of the module, one per lane count, and their tables. */
#include <string.h>

#include "codegen/legal/legalise.h"
#include "codegen/print/llvm/priv.h"

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

LLVMValueRef l_look_up(LUnit *u, const ScTable *table, uint32_t lanes, LLVMValueRef index)
{
	LLVMTypeRef elem = l_type(u, (LType){table->dtype, 1}),
		    type = l_type(u, (LType){table->dtype, lanes});
	LLVMValueRef p = LLVMBuildInBoundsGEP2(u->b, elem, table_of(u, table), &index, 1, "");
	if (lanes == 1)
		return LLVMBuildLoad2(u->b, elem, p, "");
	LLVMTypeRef over[2] = {type, LLVMTypeOf(p)};
	LLVMValueRef in[4] = {
		p, LLVMConstInt(LLVMInt32TypeInContext(u->c), dtype_size(table->dtype), 0),
		l_int(u, (LType){DT_bool, lanes}, 1), LLVMGetPoison(type)};
	return l_intrinsic(u, "llvm.masked.gather", over, 2, in, 4);
}

/* ---- functions ---- */

LLVMValueRef l_library(LUnit *u, Ir *ir, const ScFn *fn, uint32_t lanes, LLVMValueRef *in,
		       uint32_t nin)
{
	const char *name = arena_printf(u->arena, "%s.%u", fn->name, lanes);
	LLVMValueRef def = LLVMGetNamedFunction(u->m, name);
	if (!def) {
		LLVMBasicBlockRef back = LLVMGetInsertBlock(u->b);
		def = l_function(u, library_function(ir, fn, lanes, &u->target->isa), name,
				 FN_LIBRARY, NULL, NULL);
		LLVMPositionBuilderAtEnd(u->b, back);
	}
	LLVMValueRef r = LLVMBuildCall2(u->b, LLVMGlobalGetValueType(def), def, in, nin, "");
	LLVMSetInstructionCallConv(r, LLVMFastCallConv);
	return r;
}
