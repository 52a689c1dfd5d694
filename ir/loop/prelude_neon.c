/* What AArch64 does better than generic vector code: the intrinsics of arm_neon.h by operation and
 * type. Its minimum and maximum order zeros by sign, ours do not: they are comparisons and
 * selections. */
#include "ir/loop/prelude.h"

#define NV (ROW_NATIVE | ROW_VECTOR)

#define UNARY(op, name)                                                                            \
	{op, SET_F32, SET_F32, NV, "($T)" name "q_f32((float32x4_t)a)", NULL},                     \
	{                                                                                          \
		op, SET_F64, SET_F64, NV, "($T)" name "q_f64((float64x2_t)a)", NULL                \
	}

const PreludeRow prelude_neon[] = {
	{"fma", SET_F32, SET_F32, NV | ROW_FMA, "($T)vfmaq_f32((float32x4_t)c, (float32x4_t)a, "
						"(float32x4_t)b)", "llvm.fma(a, b, c)"},
	{"fma", SET_F64, SET_F64, NV | ROW_FMA, "($T)vfmaq_f64((float64x2_t)c, (float64x2_t)a, "
						"(float64x2_t)b)", "llvm.fma(a, b, c)"},
	UNARY("abs", "vabs"),
	UNARY("sqrt", "vsqrt"),
	UNARY("floor", "vrndm"),
	UNARY("ceil", "vrndp"),
	UNARY("trunc", "vrnd"),
	UNARY("rint", "vrndn"),
	{"select", SET_4, SET_4, NV, "($T)vbslq_u32((uint32x4_t)m, (uint32x4_t)a, (uint32x4_t)b)", NULL},
	{"lookup8", D1(DT_u32), D1(DT_u32), NV, /* of 16 bytes: 0 behind them */
	 "($T)vqtbl1q_u8((uint8x16_t)vcombine_u32(vzip1_u32(vget_low_u32((uint32x4_t)b), "
	 "vget_low_u32((uint32x4_t)c)), vdup_n_u32(0)), (uint8x16_t)a)",
	 "bitcast(llvm.aarch64.neon.tbl1(bytes(table(b, c)), bytes(a)))"},
	{"any", SET_BOOL, SET_BOOL, NV, "vmaxvq_u32((uint32x4_t)m) != 0", NULL},

	{"fit", D1(DT_i32), SET_F32, NV, "($T)vcvtq_s32_f32((float32x4_t)a)", NULL},
	{"fit", D1(DT_i64), SET_F64, NV, "($T)vcvtq_s64_f64((float64x2_t)a)", NULL},
	{"from_f16", SET_F32, SET_F32, NV | ROW_F16, "($T)vcvt_f32_f16((float16x4_t)a)", "fpext(half(a))"},
	{"to_f16", SET_F32, SET_F32, NV | ROW_F16, "($[u16])vcvt_f16_f32((float32x4_t)a)", "bitcast(to.half(a))"},
	{0},
};
