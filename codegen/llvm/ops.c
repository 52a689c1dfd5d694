/* Basic operations of legal loop IR as LLVM instructions. */
#include <string.h>

#include "codegen/llvm/priv.h"

typedef LLVMValueRef V;

static V select_of(LUnit *u, V c, V a, V b)
{
	return LLVMBuildSelect(u->b, c, a, b, "");
}

static V icmp(LUnit *u, LLVMIntPredicate p, V a, V b)
{
	return LLVMBuildICmp(u->b, p, a, b, "");
}

static V fcmp(LUnit *u, LLVMRealPredicate p, V a, V b)
{
	return LLVMBuildFCmp(u->b, p, a, b, "");
}

/* ---- floats ---- */

static V float_op(LUnit *u, ScOp op, LType t, V *in)
{
	LLVMBuilderRef b = u->b;
	switch (op) {
	case SC_add: return LLVMBuildFAdd(b, in[0], in[1], "");
	case SC_sub: return LLVMBuildFSub(b, in[0], in[1], "");
	case SC_mul: return LLVMBuildFMul(b, in[0], in[1], "");
	case SC_div: return LLVMBuildFDiv(b, in[0], in[1], "");
	case SC_neg: return LLVMBuildFNeg(b, in[0], "");
	case SC_lesser: return select_of(u, fcmp(u, LLVMRealOLT, in[0], in[1]), in[0], in[1]);
	case SC_greater: return select_of(u, fcmp(u, LLVMRealOGT, in[0], in[1]), in[0], in[1]);
	case SC_fma:
		return l_math(u, "llvm.fma", in, 3);
	case SC_abs: return l_math(u, "llvm.fabs", in, 1);
	case SC_sqrt: return l_math(u, "llvm.sqrt", in, 1);
	case SC_floor: return l_math(u, "llvm.floor", in, 1);
	case SC_ceil: return l_math(u, "llvm.ceil", in, 1);
	case SC_trunc: return l_math(u, "llvm.trunc", in, 1);
	case SC_rint: return l_math(u, "llvm.rint", in, 1);
	default: ctx_bug(u->ctx, "LLVM: no %s of %s", sc_name(op), dtype_name(t.dtype));
	}
}

/* ---- integers ---- */

static V flagged(V x, unsigned known)
{
	if (LLVMIsAInstruction(x)) {
		LLVMSetNSW(x, true);
		LLVMSetNUW(x, (known & KNOWN_NONNEG) != 0);
	}
	return x;
}

/* NULL: as other integers. */
static V index_op(LUnit *u, ScOp op, V *in, unsigned known)
{
	LLVMBuilderRef b = u->b;
	bool nonneg = known & KNOWN_NONNEG;
	switch (op) {
	case SC_add: return flagged(LLVMBuildAdd(b, in[0], in[1], ""), known);
	case SC_sub: return flagged(LLVMBuildSub(b, in[0], in[1], ""), 0);
	case SC_mul: return flagged(LLVMBuildMul(b, in[0], in[1], ""), known);
	case SC_mod: return nonneg ? LLVMBuildURem(b, in[0], in[1], "") : NULL;
	case SC_quot: return nonneg ? LLVMBuildUDiv(b, in[0], in[1], "") : NULL;
	default: return NULL;
	}
}

static V int_min_max(LUnit *u, ScOp op, LType t, V *in)
{
	static const char *const name[2][2] = {{"llvm.umin", "llvm.umax"}, {"llvm.smin", "llvm.smax"}};
	return l_math(u, name[dtype_is_signed(t.dtype)][op == SC_max], in, 2);
}

static V int_op(LUnit *u, ScOp op, LType t, V *in, unsigned known)
{
	LLVMBuilderRef b = u->b;
	bool is_signed = dtype_is_signed(t.dtype);
	V r = known & KNOWN_INDEX ? index_op(u, op, in, known) : NULL;
	if (r)
		return r;
	switch (op) {
	case SC_add: return LLVMBuildAdd(b, in[0], in[1], "");
	case SC_sub: return LLVMBuildSub(b, in[0], in[1], "");
	case SC_mul: return LLVMBuildMul(b, in[0], in[1], "");
	case SC_neg: return LLVMBuildNeg(b, in[0], "");
	case SC_and: return LLVMBuildAnd(b, in[0], in[1], "");
	case SC_or: return LLVMBuildOr(b, in[0], in[1], "");
	case SC_xor: return LLVMBuildXor(b, in[0], in[1], "");
	case SC_not: return LLVMBuildNot(b, in[0], "");
	case SC_min: case SC_max: return int_min_max(u, op, t, in);
	case SC_left: return LLVMBuildShl(b, in[0], in[1], "");
	case SC_right: return is_signed ? LLVMBuildAShr(b, in[0], in[1], "") : LLVMBuildLShr(b, in[0], in[1], "");
	case SC_quot: return is_signed ? LLVMBuildSDiv(b, in[0], in[1], "") : LLVMBuildUDiv(b, in[0], in[1], "");
	case SC_mod: return is_signed ? LLVMBuildSRem(b, in[0], in[1], "") : LLVMBuildURem(b, in[0], in[1], "");
	case SC_abs: return l_math(u, "llvm.abs", (V[]){in[0], LLVMConstInt(LLVMInt1TypeInContext(u->c), 0, 0)}, 2);
	default: ctx_bug(u->ctx, "LLVM: no %s of %s", sc_name(op), dtype_name(t.dtype));
	}
}

static V bool_op(LUnit *u, ScOp op, V *in)
{
	switch (op) {
	case SC_and: return LLVMBuildAnd(u->b, in[0], in[1], "");
	case SC_or: return LLVMBuildOr(u->b, in[0], in[1], "");
	case SC_xor: return LLVMBuildXor(u->b, in[0], in[1], "");
	case SC_not: return LLVMBuildNot(u->b, in[0], "");
	default: ctx_bug(u->ctx, "LLVM: no %s of bool", sc_name(op));
	}
}

/* ---- all ---- */

static V compare(LUnit *u, ScOp op, DType d, V *in)
{
	static const LLVMRealPredicate real[] = {LLVMRealOEQ, LLVMRealUNE, LLVMRealOLT,
	                                         LLVMRealOLE, LLVMRealOGT, LLVMRealOGE};
	static const LLVMIntPredicate integer[2][6] = {
		{LLVMIntEQ, LLVMIntNE, LLVMIntULT, LLVMIntULE, LLVMIntUGT, LLVMIntUGE},
		{LLVMIntEQ, LLVMIntNE, LLVMIntSLT, LLVMIntSLE, LLVMIntSGT, LLVMIntSGE},
	};
	if (dtype_is_float(d))
		return fcmp(u, real[op - SC_eq], in[0], in[1]);
	bool is_signed = d != DT_bool && dtype_is_signed(d);
	return icmp(u, integer[is_signed][op - SC_eq], in[0], in[1]);
}

V l_op(LUnit *u, ScOp op, LType result, LType operand, V *in, unsigned known)
{
	if (op == SC_fit)
		return LLVMBuildFPToSI(u->b, in[0], l_type(u, result), "");
	if (op == SC_convert)
		return l_convert(u, result, operand, in[0]);
	if (op == SC_bitcast)
		return LLVMBuildBitCast(u->b, in[0], l_type(u, result), "");
	if (op == SC_from_f16 || op == SC_to_f16)
		return l_half(u, op, result, in[0]);
	if (op >= SC_eq && op <= SC_ge)
		return compare(u, op, operand.dtype, in);
	if (op == SC_select)
		return select_of(u, in[0], in[1], in[2]);
	if (result.dtype == DT_bool)
		return bool_op(u, op, in);
	if (dtype_is_float(result.dtype))
		return float_op(u, op, result, in);
	return int_op(u, op, result, in, known);
}
