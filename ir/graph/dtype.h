/* Element types (dtypes). f16, bf16, f8 and c32 are storage dtypes: values are kept in them,
 * arithmetic uses a wider dtype (dtype_compute). A bool is kept as a byte, 0 or 1. */
#ifndef WEFT_IR_DTYPE_H
#define WEFT_IR_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
	DT_none,
	DT_bool,
	DT_u8, DT_i8, DT_i16, DT_i32, DT_i64,
	DT_u16, DT_u32, DT_u64,
	DT_f16, DT_bf16, DT_f32, DT_f64,
	DT_c32, DT_c64, DT_c128,
	DT_f8e4m3, DT_f8e5m2, DT_f8e4m3fnuz, DT_f8e5m2fnuz,
	DT_COUNT
} DType;

/* Returns the name of a dtype, "f32"; "?" for DT_none and out of range. */
const char *dtype_name(DType);
/* Returns the dtype whose name (dtype_name) is the n bytes at s; DT_none if there is none. */
DType dtype_parse(const char *s, uint32_t n);
/* Returns the bytes of one element; 0 for DT_none. */
uint32_t dtype_size(DType);
/* Whether the dtype is f8, f16, bf16, f32 or f64. */
bool dtype_is_float(DType);
/* Whether the dtype is a float of less than 32 bits: f8, f16 or bf16. */
bool dtype_is_narrow(DType);
/* Returns the bits of the significand of a float dtype, the hidden one included: 24 of f32. Returns
 * 0 for other dtypes. */
uint32_t dtype_digits(DType);
/* Whether the dtype is a signed or unsigned integer; bool is none. */
bool dtype_is_int(DType);
/* Whether the dtype is a signed integer, a float or complex. */
bool dtype_is_signed(DType);
/* Whether the dtype is c32, c64 or c128. */
bool dtype_is_complex(DType);
/* Whether the dtype is a float or complex, and so has derivatives. */
bool dtype_is_inexact(DType);
/* Returns the greatest finite value of a float dtype; that of f32 for other dtypes. */
double dtype_max(DType);
/* Returns the dtype of the real part: c64 -> f32. A dtype that is not complex is returned. */
DType dtype_real(DType);
/* Returns the complex dtype whose parts have this dtype: f32 -> c64; DT_none if there is none. */
DType dtype_complex(DType);
/* Returns the dtype in which arithmetic computes values of this dtype: f32 for f8, f16 and bf16,
 * c64 for c32; other dtypes are returned. */
DType dtype_compute(DType);
/* Returns the integer dtype in which programs load and store values of a dtype: u16 for f16 and
 * bf16, u8 for bool and f8; other dtypes are returned. */
DType dtype_raw(DType);
/* Whether a conversion is known to keep every value. True if the dtypes are equal. Otherwise false
 * if one of them is f8 or complex, and from integers to f16, also where values would be kept. */
bool dtype_keeps(DType from, DType to);
/* Returns ATen's promotion of the dtypes of two tensors with dimensions. DT_none counts as
 * absent: the other dtype is returned. What ATen does not promote: two different f8 dtypes give
 * f16; f8 and a wider float dtype give the wider one; u16, u32 or u64 and a signed integer that
 * is no wider give the next wider signed integer, i64 at most. */
DType dtype_promote(DType, DType);

/* Conversions between f32 and the bits of a narrow float. Those to f32 are exact. Those from f32
 * round to nearest even. A number that is too large and infinity become infinity; in f8e4m3, which
 * has none, 448; in f8e4m3fnuz and f8e5m2fnuz, which have no infinity and no -0, NaN. NaN stays
 * NaN. */

/* Returns the value of the bits of an f16. */
float f16_to_f32(uint16_t);
/* Returns the bits of the nearest f16. */
uint16_t f32_to_f16(float);
/* Returns the value of the bits of a bf16. */
float bf16_to_f32(uint16_t);
/* Returns the bits of the nearest bf16. */
uint16_t f32_to_bf16(float);
/* Returns the value of the bits of a narrow dtype. */
float narrow_to_f32(DType, uint32_t bits);
/* Returns the bits of the nearest value of a narrow dtype. */
uint32_t f32_to_narrow(DType, float);
/* Returns the nearest value of a narrow dtype. */
float narrow_round(DType, float);

#endif
