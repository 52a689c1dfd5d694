#include "ir/interp/tensor.h"

#include <string.h>

#include "ir/scalar/scalar.h"

enum { BLOCK = 256 };

int64_t tensor_numel(const Tensor *t)
{
	int64_t n = 1;
	for (uint32_t k = 0; k < t->rank; k++)
		n *= t->dim[k];
	return n;
}

const char *tensor_type_str(Arena *a, const Tensor *t)
{
	Text s;
	text_init(&s, a);
	text_printf(&s, "%s[", dtype_name(t->dtype));
	for (uint32_t k = 0; k < t->rank; k++)
		text_printf(&s, "%s%lld", k ? ", " : "", (long long)t->dim[k]);
	text_add(&s, "]");
	return s.data;
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

/* Converts n floats to integers as compiled code does: by the scalar function. */
static void floats_to_ints(DType to, const double *src, int64_t *dst, int64_t n)
{
	const ScFn *fn = scalar_convert(DT_f64, to);
	ScVal in[BLOCK], out[BLOCK];
	const ScVal *arg[] = {in};
	for (int64_t i = 0; i < n; i += BLOCK) {
		uint32_t count = (uint32_t)(n - i < BLOCK ? n - i : BLOCK);
		memcpy(in, src + i, count * sizeof *src);
		scalar_eval_n(fn, arg, out, count);
		memcpy(dst + i, out, count * sizeof *dst);
	}
}

#define READ(type, value)                                                                          \
	{                                                                                          \
		const type *p = (const type *)t->data + first * step;                              \
		for (int64_t i = 0; step == 1 && i < n; i++) {                                     \
			type v = p[i];                                                             \
			dst[i] = (value);                                                          \
		}                                                                                  \
		for (int64_t i = 0; step != 1 && i < n; i++) {                                     \
			type v = p[i * step];                                                      \
			dst[i] = (value);                                                          \
		}                                                                                  \
		return;                                                                            \
	}

/* Returns how many numbers an element is: a complex element is two of its real dtype. */
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
	case DT_none: memset(dst, 0, (size_t)n * sizeof *dst); break;
	default: READ(uint8_t, (double)narrow_to_f32(t->dtype, v)) /* f8 */
	}
}

static void read_floats(const Tensor *t, int64_t first, int64_t n, int64_t *dst)
{
	double block[BLOCK];
	for (int64_t i = 0; i < n; i += BLOCK) {
		int64_t count = n - i < BLOCK ? n - i : BLOCK;
		tensor_read_f64(t, first + i, count, block);
		floats_to_ints(DT_i64, block, dst + i, count);
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
	default:
		read_floats(t, first, n, dst);
	}
}

#define WRITE(type, value)                                                                         \
	{                                                                                          \
		type *p = (type *)t->data + first * step;                                          \
		for (int64_t i = 0; step == 1 && i < n; i++)                                       \
			p[i] = (type)(value);                                                      \
		for (int64_t i = 0; step != 1 && i < n; i++)                                       \
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

static void write_ints(Tensor *t, int64_t first, int64_t n, const double *src)
{
	int64_t block[BLOCK];
	for (int64_t i = 0; i < n; i += BLOCK) {
		int64_t count = n - i < BLOCK ? n - i : BLOCK;
		floats_to_ints(t->dtype, src + i, block, count);
		tensor_write_i64(t, first + i, count, block);
	}
}

/* Writes n doubles as elements from `first` on. They reach the narrow float types through f32,
 * as PyTorch converts them. */
void tensor_write_f64(Tensor *t, int64_t first, int64_t n, const double *src)
{
	int64_t step = real_step(t);
	zero_imaginary(t, first, n);
	switch (dtype_real(t->dtype)) {
	case DT_bool:
		WRITE(uint8_t, src[i] != 0)
	case DT_f16: WRITE(uint16_t, f32_to_f16((float)src[i]))
	case DT_bf16: WRITE(uint16_t, f32_to_bf16((float)src[i]))
	case DT_f32: WRITE(float, src[i])
	case DT_f64: WRITE(double, src[i])
	default:
		if (dtype_is_narrow(t->dtype)) /* f8 */
			WRITE(uint8_t, f32_to_narrow(t->dtype, (float)src[i]))
		write_ints(t, first, n, src);
		break;
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
	case DT_none: break;
	default: WRITE(uint8_t, f32_to_narrow(t->dtype, (float)src[i])) /* f8 */
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
