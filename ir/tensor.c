#include "ir/tensor.h"

#include <math.h>
#include <string.h>

int64_t tensor_numel(const Tensor *t)
{
	int64_t n = 1;
	for (uint32_t k = 0; k < t->rank; k++)
		n *= t->dim[k];
	return n;
}

uint64_t tensor_bytes(const Tensor *t)
{
	return (uint64_t)tensor_numel(t) * dtype_size(t->dtype);
}

Tensor tensor_flat_real(const Tensor *t)
{
	Tensor flat = {.dtype = dtype_real(t->dtype), .rank = 1, .data = t->data};
	flat.dim[0] = tensor_numel(t) * (dtype_is_complex(t->dtype) ? 2 : 1);
	return flat;
}

/* Float to int: saturates, NaN gives 0. */
static int64_t saturate_i64(double v)
{
	if (isnan(v))
		return 0;
	if (v >= 9223372036854775808.0)
		return INT64_MAX;
	if (v <= -9223372036854775808.0)
		return INT64_MIN;
	return (int64_t)v;
}

static uint64_t saturate_u64(double v)
{
	if (!(v > 0))
		return 0;
	return v >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)v;
}

static int64_t saturate(double v, int64_t lo, int64_t hi)
{
	int64_t i = saturate_i64(v);
	return i < lo ? lo : i > hi ? hi : i;
}

#define READ(type, value)                                                                          \
	{                                                                                          \
		const type *p = (const type *)t->data + first * step;                              \
		for (int64_t i = 0; i < n; i++) {                                                  \
			type v = p[i * step];                                                      \
			dst[i] = (value);                                                          \
		}                                                                                  \
		return;                                                                            \
	}

/* A complex element is two of its real dtype: step over the imaginary part. */
static int64_t real_step(const Tensor *t)
{
	return dtype_is_complex(t->dtype) ? 2 : 1;
}

void tensor_read_f64(const Tensor *t, int64_t first, int64_t n, double *dst)
{
	int64_t step = real_step(t);
	switch (dtype_real(t->dtype)) {
	case DT_bool: READ(uint8_t, v != 0)
	case DT_u8: READ(uint8_t, v)
	case DT_i8: READ(int8_t, v)
	case DT_i16: READ(int16_t, v)
	case DT_i32: READ(int32_t, v)
	case DT_i64: READ(int64_t, (double)v)
	case DT_u16: READ(uint16_t, v)
	case DT_u32: READ(uint32_t, v)
	case DT_u64: READ(uint64_t, (double)v)
	case DT_f16: READ(uint16_t, (double)f16_to_f32(v))
	case DT_bf16: READ(uint16_t, (double)bf16_to_f32(v))
	case DT_f32: READ(float, (double)v)
	case DT_f64: READ(double, v)
	case DT_f8e4m3: READ(uint8_t, (double)f8e4m3_to_f32(v))
	case DT_f8e5m2: READ(uint8_t, (double)f8e5m2_to_f32(v))
	default: memset(dst, 0, (size_t)n * sizeof *dst);
	}
}

void tensor_read_i64(const Tensor *t, int64_t first, int64_t n, int64_t *dst)
{
	int64_t step = real_step(t);
	switch (dtype_real(t->dtype)) {
	case DT_bool: READ(uint8_t, v != 0)
	case DT_u8: READ(uint8_t, v)
	case DT_i8: READ(int8_t, v)
	case DT_i16: READ(int16_t, v)
	case DT_i32: READ(int32_t, v)
	case DT_i64: READ(int64_t, v)
	case DT_u16: READ(uint16_t, v)
	case DT_u32: READ(uint32_t, v)
	case DT_u64: READ(uint64_t, (int64_t)v)
	case DT_f16: READ(uint16_t, saturate_i64((double)f16_to_f32(v)))
	case DT_bf16: READ(uint16_t, saturate_i64((double)bf16_to_f32(v)))
	case DT_f32: READ(float, saturate_i64((double)v))
	case DT_f64: READ(double, saturate_i64(v))
	case DT_f8e4m3: READ(uint8_t, saturate_i64((double)f8e4m3_to_f32(v)))
	case DT_f8e5m2: READ(uint8_t, saturate_i64((double)f8e5m2_to_f32(v)))
	default: memset(dst, 0, (size_t)n * sizeof *dst);
	}
}

#define WRITE(type, value)                                                                         \
	{                                                                                          \
		type *p = (type *)t->data + first * step;                                          \
		for (int64_t i = 0; i < n; i++)                                                    \
			p[i * step] = (type)(value);                                               \
		break;                                                                             \
	}

static void zero_imaginary(Tensor *t, int64_t first, int64_t n)
{
	if (!dtype_is_complex(t->dtype))
		return;
	size_t half = dtype_size(t->dtype) / 2;
	for (int64_t i = first; i < first + n; i++)
		memset((char *)t->data + (size_t)(2 * i + 1) * half, 0, half);
}

/* Doubles reach the narrow float types through f32, as PyTorch converts them. */
void tensor_write_f64(Tensor *t, int64_t first, int64_t n, const double *src)
{
	int64_t step = real_step(t);
	zero_imaginary(t, first, n);
	switch (dtype_real(t->dtype)) {
	case DT_bool: WRITE(uint8_t, src[i] != 0)
	case DT_u8: WRITE(uint8_t, saturate(src[i], 0, UINT8_MAX))
	case DT_i8: WRITE(int8_t, saturate(src[i], INT8_MIN, INT8_MAX))
	case DT_i16: WRITE(int16_t, saturate(src[i], INT16_MIN, INT16_MAX))
	case DT_i32: WRITE(int32_t, saturate(src[i], INT32_MIN, INT32_MAX))
	case DT_i64: WRITE(int64_t, saturate_i64(src[i]))
	case DT_u16: WRITE(uint16_t, saturate(src[i], 0, UINT16_MAX))
	case DT_u32: WRITE(uint32_t, saturate(src[i], 0, UINT32_MAX))
	case DT_u64: WRITE(uint64_t, saturate_u64(src[i]))
	case DT_f16: WRITE(uint16_t, f32_to_f16((float)src[i]))
	case DT_bf16: WRITE(uint16_t, f32_to_bf16((float)src[i]))
	case DT_f32: WRITE(float, src[i])
	case DT_f64: WRITE(double, src[i])
	case DT_f8e4m3: WRITE(uint8_t, f32_to_f8e4m3((float)src[i]))
	case DT_f8e5m2: WRITE(uint8_t, f32_to_f8e5m2((float)src[i]))
	default: break;
	}
}

void tensor_write_i64(Tensor *t, int64_t first, int64_t n, const int64_t *src)
{
	int64_t step = real_step(t);
	zero_imaginary(t, first, n);
	switch (dtype_real(t->dtype)) {
	case DT_bool: WRITE(uint8_t, src[i] != 0)
	case DT_u8: WRITE(uint8_t, src[i])
	case DT_i8: WRITE(int8_t, src[i])
	case DT_i16: WRITE(int16_t, src[i])
	case DT_i32: WRITE(int32_t, src[i])
	case DT_i64: WRITE(int64_t, src[i])
	case DT_u16: WRITE(uint16_t, src[i])
	case DT_u32: WRITE(uint32_t, src[i])
	case DT_u64: WRITE(uint64_t, src[i])
	case DT_f16: WRITE(uint16_t, f32_to_f16((float)src[i]))
	case DT_bf16: WRITE(uint16_t, f32_to_bf16((float)src[i]))
	case DT_f32: WRITE(float, src[i])
	case DT_f64: WRITE(double, src[i])
	case DT_f8e4m3: WRITE(uint8_t, f32_to_f8e4m3((float)src[i]))
	case DT_f8e5m2: WRITE(uint8_t, f32_to_f8e5m2((float)src[i]))
	default: break;
	}
}

double tensor_f64(const Tensor *t, int64_t i)
{
	double v;
	tensor_read_f64(t, i, 1, &v);
	return v;
}

int64_t tensor_i64(const Tensor *t, int64_t i)
{
	int64_t v;
	tensor_read_i64(t, i, 1, &v);
	return v;
}

void tensor_set_f64(Tensor *t, int64_t i, double v)
{
	tensor_write_f64(t, i, 1, &v);
}

void tensor_set_i64(Tensor *t, int64_t i, int64_t v)
{
	tensor_write_i64(t, i, 1, &v);
}
