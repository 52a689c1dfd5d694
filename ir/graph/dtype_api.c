#include "ir/graph/dtype_api.h"

static const WeftDType api_type[DT_COUNT] = {
	[DT_bool] = {WEFT_BOOL, 8, 1},        [DT_u8] = {WEFT_UINT, 8, 1},
	[DT_i8] = {WEFT_INT, 8, 1},           [DT_i16] = {WEFT_INT, 16, 1},
	[DT_i32] = {WEFT_INT, 32, 1},         [DT_i64] = {WEFT_INT, 64, 1},
	[DT_u16] = {WEFT_UINT, 16, 1},        [DT_u32] = {WEFT_UINT, 32, 1},
	[DT_u64] = {WEFT_UINT, 64, 1},        [DT_f16] = {WEFT_FLOAT, 16, 1},
	[DT_bf16] = {WEFT_BFLOAT, 16, 1},     [DT_f32] = {WEFT_FLOAT, 32, 1},
	[DT_f64] = {WEFT_FLOAT, 64, 1},       [DT_c32] = {WEFT_COMPLEX, 32, 1},
	[DT_c64] = {WEFT_COMPLEX, 64, 1},     [DT_c128] = {WEFT_COMPLEX, 128, 1},
	[DT_f8e4m3] = {WEFT_F8_E4M3FN, 8, 1}, [DT_f8e5m2] = {WEFT_F8_E5M2, 8, 1},
	[DT_f8e4m3fnuz] = {WEFT_F8_E4M3FNUZ, 8, 1},
	[DT_f8e5m2fnuz] = {WEFT_F8_E5M2FNUZ, 8, 1},
};

WeftDType dtype_to_api(DType t)
{
	return api_type[t];
}

DType dtype_from_api(WeftDType t)
{
	for (int k = DT_none + 1; k < DT_COUNT; k++)
		if (api_type[k].code == t.code && api_type[k].bits == t.bits && t.lanes == 1)
			return (DType)k;
	return DT_none;
}
