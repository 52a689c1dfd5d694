/* Tensors between the API (DLPack) and the IR. */
#include "driver/driver_priv.h"

#include <string.h>

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

WeftTensor tensor_to_api(Arena *a, const Tensor *t)
{
	int64_t *shape = ARENA_ARRAY(a, int64_t, t->rank);
	memcpy(shape, t->dim, t->rank * sizeof *shape);
	return (WeftTensor){
		t->data, {WEFT_CPU, 0}, (int32_t)t->rank, dtype_to_api(t->dtype), shape, NULL, 0};
}

static bool row_major(const WeftTensor *t)
{
	int64_t stride = 1;
	for (int32_t k = t->ndim; t->strides && k-- > 0; stride *= t->shape[k])
		if (t->shape[k] != 1 && t->strides[k] != stride)
			return false;
	return true;
}

static char *copy_strided(char *to, const char *from, const WeftTensor *t, int32_t d, size_t elem)
{
	if (d == t->ndim)
		return memcpy(to, from, elem), to + elem;
	for (int64_t i = 0; i < t->shape[d]; i++)
		to = copy_strided(to, from + i * t->strides[d] * (int64_t)elem, t, d + 1, elem);
	return to;
}

bool tensor_from_api(Ctx *ctx, Arena *a, const char *what, const WeftTensor *t, Tensor *out)
{
	*out = (Tensor){.dtype = dtype_from_api(t->dtype), .rank = (uint32_t)t->ndim};
	if (out->dtype == DT_none || t->device.type != WEFT_CPU)
		return ctx_error(ctx, what, "tensor of an unsupported dtype or device");
	if (t->ndim < 0 || t->ndim > MAX_RANK)
		return ctx_error(ctx, what, "tensor of %d dimensions, expected at most %d",
				 (int)t->ndim, MAX_RANK);
	for (int32_t k = 0; k < t->ndim; k++)
		out->dim[k] = t->shape[k];
	char *data = (char *)t->data + t->byte_offset;
	out->data = data;
	if (row_major(t))
		return true;
	out->data = arena_alloc(a, tensor_bytes(out));
	if (tensor_numel(out))
		copy_strided(out->data, data, t, 0, dtype_size(out->dtype));
	return true;
}
