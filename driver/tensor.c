/* Tensors between the API (DLPack) and the IR. */
#include "driver/driver_priv.h"

#include <string.h>

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
