/* Conversions between dtypes, and between values and what lies in memory. */
#include "codegen/llvm/priv.h"

typedef LLVMValueRef V;

static bool is_small_float(DType d)
{
	return dtype_is_float(d) && dtype_size(d) < 4;
}

/* ---- small floats by integer arithmetic: sign, e bits of exponent, m of mantissa ---- */

typedef struct {
	DType dtype;
	uint32_t e, m;
	uint32_t top;      /* what too large a number becomes: infinity, or the largest */
	bool has_infinity;
	uint32_t nan;      /* pattern of NaN */
} SmallFloat;

static const SmallFloat small_floats[] = {
	{DT_f16, 5, 10, 0x7c00, true, 0x7e00},
	{DT_f8e5m2, 5, 2, 0x7c, true, 0x7e},
	{DT_f8e4m3, 4, 3, 0x7e, false, 0x7f},
};

static const SmallFloat *small_float(LUnit *u, DType d)
{
	for (uint32_t k = 0; k < sizeof small_floats / sizeof *small_floats; k++)
		if (small_floats[k].dtype == d)
			return &small_floats[k];
	ctx_bug(u->ctx, "LLVM: no conversion of %s", dtype_name(d));
}

static V shift_left(LUnit *u, LType t, V x, uint32_t n)
{
	return LLVMBuildShl(u->b, x, l_int(u, t, n), "");
}

static V shift_right(LUnit *u, LType t, V x, uint32_t n)
{
	return LLVMBuildLShr(u->b, x, l_int(u, t, n), "");
}

static V mask_bits(LUnit *u, LType t, V x, int64_t bits)
{
	return LLVMBuildAnd(u->b, x, l_int(u, t, bits), "");
}

/* A multiplication moves the exponent, of subnormals too. */
static V widen_bits(LUnit *u, const SmallFloat *s, uint32_t lanes, V raw)
{
	LType f32 = {DT_f32, lanes}, u32 = {DT_u32, lanes};
	LLVMBuilderRef b = u->b;
	uint32_t sign = s->e + s->m;
	V h = LLVMBuildZExt(b, raw, l_type(u, u32), ""), mag = mask_bits(u, u32, h, (1 << sign) - 1);
	V f = LLVMBuildBitCast(b, shift_left(u, u32, mag, 23 - s->m), l_type(u, f32), "");
	double scale = s->e == 5 ? 0x1p112 : 0x1p120;
	V bits = LLVMBuildBitCast(b, LLVMBuildFMul(b, f, l_float(u, f32, scale), ""), l_type(u, u32), "");
	V top = l_int(u, u32, s->top);
	if (s->has_infinity) {
		V inf = LLVMBuildICmp(b, LLVMIntUGE, mag, top, "");
		bits = LLVMBuildSelect(b, inf, l_int(u, u32, 0x7f800000), bits, "");
	}
	V nan = LLVMBuildICmp(b, LLVMIntUGT, mag, top, "");
	bits = LLVMBuildSelect(b, nan, l_int(u, u32, 0x7fc00000), bits, "");
	V negative = shift_left(u, u32, shift_right(u, u32, h, sign), 31);
	return LLVMBuildBitCast(b, LLVMBuildOr(b, bits, negative, ""), l_type(u, f32), "");
}

/* To nearest even: by integer addition where the result is normal, by rounding to a multiple of the smallest
 * subnormal where not. Too large gives infinity, or the largest number where there is none. */
static V narrow_bits(LUnit *u, const SmallFloat *s, uint32_t lanes, V x)
{
	LType f32 = {DT_f32, lanes}, u32 = {DT_u32, lanes};
	LLVMBuilderRef b = u->b;
	uint32_t bias = (1u << (s->e - 1)) - 1, drop = 23 - s->m;
	V bits = LLVMBuildBitCast(b, x, l_type(u, u32), ""), mag = mask_bits(u, u32, bits, 0x7fffffff);
	V small = LLVMBuildICmp(b, LLVMIntULT, mag, l_int(u, u32, (int64_t)(128 - bias) << 23), "");
	V fmag = LLVMBuildBitCast(b, mag, l_type(u, f32), "");
	double scale = 1;
	for (uint32_t k = 0; k + 1 < bias + s->m; k++)
		scale *= 2;
	V low = LLVMBuildFMul(b, LLVMBuildSelect(b, small, fmag, l_float(u, f32, 0), ""), l_float(u, f32, scale), "");
	low = LLVMBuildFPToUI(b, l_math(u, "llvm.rint", &low, 1), l_type(u, u32), "");
	V tie = mask_bits(u, u32, shift_right(u, u32, mag, drop), 1);
	V sum = LLVMBuildAdd(b, LLVMBuildAdd(b, mag, l_int(u, u32, (1 << (drop - 1)) - 1), ""), tie, "");
	V high = LLVMBuildSub(b, shift_right(u, u32, sum, drop), l_int(u, u32, (int64_t)(127 - bias) << s->m), "");
	V top = l_int(u, u32, s->top);
	high = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntULT, high, top, ""), high, top, "");
	V r = LLVMBuildSelect(b, small, low, high, "");
	V nan = LLVMBuildICmp(b, LLVMIntUGT, mag, l_int(u, u32, 0x7f800000), "");
	r = LLVMBuildSelect(b, nan, l_int(u, u32, s->nan), r, "");
	V sign = shift_left(u, u32, shift_right(u, u32, bits, 31), s->e + s->m);
	return LLVMBuildTrunc(b, LLVMBuildOr(b, r, sign, ""), l_type(u, (LType){llvm_storage(s->dtype), lanes}), "");
}

static V from_bf16(LUnit *u, uint32_t lanes, V raw)
{
	LType f32 = {DT_f32, lanes}, u32 = {DT_u32, lanes};
	V h = LLVMBuildZExt(u->b, raw, l_type(u, u32), "");
	return LLVMBuildBitCast(u->b, shift_left(u, u32, h, 16), l_type(u, f32), "");
}

static V to_bf16(LUnit *u, uint32_t lanes, V x)
{
	LType u32 = {DT_u32, lanes}, u16 = {DT_u16, lanes};
	LLVMBuilderRef b = u->b;
	V bits = LLVMBuildBitCast(b, x, l_type(u, u32), ""), upper = shift_right(u, u32, bits, 16);
	V sum = LLVMBuildAdd(b, LLVMBuildAdd(b, bits, l_int(u, u32, 0x7fff), ""), mask_bits(u, u32, upper, 1), "");
	V quiet = LLVMBuildOr(b, upper, l_int(u, u32, 0x40), "");
	V nan = LLVMBuildFCmp(b, LLVMRealUNO, x, x, "");
	V r = LLVMBuildSelect(b, nan, quiet, shift_right(u, u32, sum, 16), "");
	return LLVMBuildTrunc(b, r, l_type(u, u16), "");
}

/* ---- memory ---- */

static LLVMTypeRef half_type(LUnit *u, uint32_t lanes)
{
	LLVMTypeRef half = LLVMHalfTypeInContext(u->c);
	return lanes == 1 ? half : LLVMVectorType(half, lanes);
}

V l_unpack(LUnit *u, DType storage, uint32_t lanes, V raw)
{
	LType f32 = {DT_f32, lanes}, u8 = {DT_u8, lanes};
	if (storage == DT_bool)
		return LLVMBuildICmp(u->b, LLVMIntNE, raw, l_int(u, u8, 0), "");
	if (!is_small_float(storage))
		return raw;
	if (storage == DT_bf16)
		return from_bf16(u, lanes, raw);
	if (storage == DT_f16 && isa_has(&u->target->isa, ISA_F16)) {
		V half = LLVMBuildBitCast(u->b, raw, half_type(u, lanes), "");
		return LLVMBuildFPExt(u->b, half, l_type(u, f32), "");
	}
	return widen_bits(u, small_float(u, storage), lanes, raw);
}

V l_pack(LUnit *u, DType storage, uint32_t lanes, V value)
{
	LType u16 = {DT_u16, lanes}, u8 = {DT_u8, lanes};
	if (storage == DT_bool)
		return LLVMBuildZExt(u->b, value, l_type(u, u8), "");
	if (!is_small_float(storage))
		return value;
	if (storage == DT_bf16)
		return to_bf16(u, lanes, value);
	if (storage == DT_f16 && isa_has(&u->target->isa, ISA_F16)) {
		V half = LLVMBuildFPTrunc(u->b, value, half_type(u, lanes), "");
		return LLVMBuildBitCast(u->b, half, l_type(u, u16), "");
	}
	return narrow_bits(u, small_float(u, storage), lanes, value);
}

/* ---- values ---- */

/* To i32 or i64: the smallest value where x is NaN or does not fit. */
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
	from.dtype = dtype_compute(from.dtype);
	if (is_small_float(to.dtype)) {
		x = l_convert(u, (LType){DT_f32, to.lanes}, from, x);
		return l_unpack(u, to.dtype, to.lanes, l_pack(u, to.dtype, to.lanes, x));
	}
	if (to.dtype == from.dtype)
		return x;
	if (to.dtype == DT_bool)
		return l_op(u, SC_ne, to, from, (V[]){x, LLVMConstNull(l_type(u, from))}, 2, 0);
	if (!dtype_is_float(from.dtype))
		return from_int(u, to, from, x);
	if (dtype_is_float(to.dtype))
		return LLVMBuildFPCast(u->b, x, l_type(u, to), "");
	return float_to_int(u, to, from, x);
}

V l_bitcast(LUnit *u, LType to, LType from, V x)
{
	if (to.dtype == from.dtype)
		return x;
	if (is_small_float(from.dtype))
		x = l_pack(u, from.dtype, from.lanes, x);
	LType raw = {llvm_storage(to.dtype), to.lanes};
	x = LLVMBuildBitCast(u->b, x, l_type(u, raw), "");
	return is_small_float(to.dtype) ? l_unpack(u, to.dtype, to.lanes, x) : x;
}
