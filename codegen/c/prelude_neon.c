/* What AArch64 does better than generic vector code: the intrinsics of arm_neon.h by operation and type. Its minimum
 * and maximum order zeros by sign, ours do not: they are comparisons and selections. */
#include "codegen/c/emit_priv.h"

#define NV (ROW_NATIVE | ROW_VECTOR)

#define UNARY(op, name)                                                                            \
	{op, SET_F32, SET_F32, NV, "($T)" name "q_f32((float32x4_t)a)"},                           \
	{op, SET_F64, SET_F64, NV, "($T)" name "q_f64((float64x2_t)a)"}

const HelperRow prelude_neon[] = {
	{"fma", SET_F32, SET_F32, NV, "($T)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b)"},
	{"fma", SET_F64, SET_F64, NV, "($T)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b)"},
	UNARY("abs", "vabs"),
	UNARY("sqrt", "vsqrt"),
	UNARY("floor", "vrndm"),
	UNARY("ceil", "vrndp"),
	UNARY("trunc", "vrnd"),
	UNARY("rint", "vrndn"),
	{"select", SET_4, SET_4, NV, "($T)vbslq_u32((uint32x4_t)m, (uint32x4_t)a, (uint32x4_t)b)"},
	{"any", SET_BOOL, SET_BOOL, NV, "vmaxvq_u32((uint32x4_t)m) != 0"},

	{"fit", D1(DT_i32), SET_F32, NV, "($T)vcvtq_s32_f32((float32x4_t)a)"},
	{"fit", D1(DT_i64), SET_F64, NV, "($T)vcvtq_s64_f64((float64x2_t)a)"},
	{"from_f16", SET_F32, SET_F32, NV, "($T)vcvt_f32_f16((float16x4_t)a)"},
	{"to_f16", SET_F32, SET_F32, NV, "($[u16])vcvt_f16_f32((float32x4_t)a)"},
	{0},
};
