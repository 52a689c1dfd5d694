/* Tensors between the API (DLPack) and the IR. */
#include "driver/api/driver_priv.h"

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

/* Checks that a tensor's extents, bytes and data can be. */
static bool fits(Ctx *ctx, const char *what, const WeftTensor *t)
{
	int64_t bytes = t->dtype.bits < 8 ? 1 : t->dtype.bits / 8;
	bool empty = false, large = false;
	for (int32_t k = 0; k < t->ndim; k++) {
		if (t->shape[k] < 0)
			return ctx_error(ctx, what, "tensor whose dimension %d is %lld", (int)k,
					 (long long)t->shape[k]);
		empty |= t->shape[k] == 0;
		large |= __builtin_mul_overflow(bytes, t->shape[k], &bytes);
	}
	if (large && !empty)
		return ctx_error(ctx, what, "tensor of more bytes than there are");
	return t->data || empty || ctx_error(ctx, what, "tensor without data");
}

bool tensor_from_api(Ctx *ctx, Arena *a, const char *what, const WeftTensor *t, Tensor *out)
{
	*out = (Tensor){.dtype = dtype_from_api(t->dtype), .rank = (uint32_t)t->ndim};
	if (out->dtype == DT_none || t->device.type != WEFT_CPU)
		return ctx_error(ctx, what, "tensor of an unsupported dtype or device");
	if (t->ndim < 0 || t->ndim > MAX_RANK)
		return ctx_error(ctx, what, "tensor of %d dimensions, expected at most %d",
				 (int)t->ndim, MAX_RANK);
	if (t->ndim && !t->shape)
		return ctx_error(ctx, what, "tensor of %d dimensions without a shape",
				 (int)t->ndim);
	for (int32_t k = 0; k < t->ndim; k++)
		out->dim[k] = t->shape[k];
	TRY(fits(ctx, what, t));
	char *data = (char *)t->data + t->byte_offset;
	out->data = data;
	if (row_major(t))
		return true;
	out->data = arena_alloc(a, tensor_bytes(out));
	if (tensor_numel(out))
		copy_strided(out->data, data, t, 0, dtype_size(out->dtype));
	return true;
}
