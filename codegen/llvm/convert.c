/* Conversions between dtypes. */
#include "codegen/llvm/priv.h"

typedef LLVMValueRef V;

/* To i32 or i64, with instructions that give the smallest value where x is NaN or does not fit: LLVM has no name for it. */
static V float_to_int(LUnit *u, LType to, LType from, V x)
{
	bool wide = to.dtype == DT_i64;
	V limit = l_float(u, from, wide ? 0x1p63 : 0x1p31), least = l_int(u, to, wide ? INT64_MIN : INT32_MIN);
	V fits = LLVMBuildFCmp(u->b, LLVMRealOLT, l_math(u, "llvm.fabs", &x, 1), limit, "");
	return LLVMBuildSelect(u->b, fits, LLVMBuildFPToSI(u->b, x, l_type(u, to), ""), least, "");
}

static V from_int(LUnit *u, LType to, LType from, V x)
{
	LLVMTypeRef type = l_type(u, to);
	bool is_signed = from.dtype != DT_bool && dtype_is_signed(from.dtype);
	if (dtype_is_float(to.dtype))
		return is_signed ? LLVMBuildSIToFP(u->b, x, type, "") : LLVMBuildUIToFP(u->b, x, type, "");
	return LLVMBuildIntCast2(u->b, x, type, is_signed, "");
}

V l_convert(LUnit *u, LType to, LType from, V x)
{
	if (!dtype_is_float(from.dtype))
		return from_int(u, to, from, x);
	if (dtype_is_float(to.dtype))
		return LLVMBuildFPCast(u->b, x, l_type(u, to), "");
	return float_to_int(u, to, from, x);
}

V l_half(LUnit *u, ScOp op, LType result, V x)
{
	LLVMTypeRef half = LLVMHalfTypeInContext(u->c), type = LLVMVectorType(half, result.lanes);
	if (op == SC_from_f16)
		return LLVMBuildFPExt(u->b, LLVMBuildBitCast(u->b, x, type, ""), l_type(u, result), "");
	return LLVMBuildBitCast(u->b, LLVMBuildFPTrunc(u->b, x, type, ""), l_type(u, result), "");
}
