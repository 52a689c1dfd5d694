/* Helpers in plain C (one lane) and in GNU vector arithmetic: the definition of every operation, and what
 * targets without something better use. Vector rows below never run on scalar targets. */
#include "codegen/c/emit_priv.h"

#define S ROW_SCALAR
#define V ROW_VECTOR
#define VB (ROW_VECTOR | ROW_BITS)
#define VL (ROW_VECTOR | ROW_LANES)

/* clang says char of what compares bytes, which has no sign on some machines. */
#define COMPARE(op, c)                                                                             \
	{op, SET_BOOL, SET_4, VL, "($M)(a " c " b)"},                                              \
	{op, SET_BOOL, SET_NUMBER, VL, "__builtin_convertvector(($i)(a " c " b), $M)"},            \
	{op, SET_BOOL, SET_NUMBER, VB, "{$M r = 0;\n\t$all(r |= ($M)(($M)(a[@] " c " b[@]) << @);)\n\treturn r;}"}

#define ARITH(op, c)                                                                               \
	{op, SET_SINT | SET_UINT, SET_INT, S, "($T)((uint64_t)a " c " (uint64_t)b)"},              \
	{op, SET_INT, SET_INT, V, "($T)(($U)a " c " ($U)b)"}

/* Fixed tree: lane k with lane k + half, then the halves again. */
#define REDUCE(op)                                                                                 \
	{"reduce_" op, SET_NUMBER, SET_NUMBER, V,                                                  \
	 "{const union {\n\t\t$T v;\n\t\t$fn[half:T:T:H] h[2];\n\t} u = {a};\n"                   \
	 "\treturn $fn[reduce_" op ":T:T:H]($fn[" op ":T:T:H](u.h[0], u.h[1]));}"},                 \
	{"reduce_" op, SET_NUMBER, SET_NUMBER, S, "a"}

#define FROM_SMALL(e, m, fn_nan)                                                                   \
	"{const uint32_t man = a & ((1u << " #m ") - 1), exp = a >> " #m " & ((1u << " #e ") - 1);\n" \
	"\tconst float sign = a >> (" #e " + " #m ") & 1 ? -1.0f : 1.0f;\n"                        \
	"\tif (exp == (1u << " #e ") - 1 && " fn_nan ")\n"                                         \
	"\t\treturn NAN * sign;\n"

static const char from_f8e4m3[] = FROM_SMALL(4, 3, "man == 7")
	"\treturn sign * (exp ? ldexpf((float)(man | 8), (int)exp - 10) : ldexpf((float)man, -9));}";
static const char from_f8e5m2[] = FROM_SMALL(5, 2, "man != 0")
	"\tif (exp == 31)\n\t\treturn INFINITY * sign;\n"
	"\treturn sign * (exp ? ldexpf((float)(man | 4), (int)exp - 17) : ldexpf((float)man, -16));}";
static const char from_f16[] = FROM_SMALL(5, 10, "man != 0")
	"\tif (exp == 31)\n\t\treturn INFINITY * sign;\n"
	"\treturn sign * (exp ? ldexpf((float)(man | 1024), (int)exp - 25) : ldexpf((float)man, -24));}";

/* Round to nearest even: by integer addition where the result is normal, by rounding to a multiple of the
 * smallest subnormal where not. Too large gives infinity, or the largest number where there is none. */
#define TO_SMALL(type, e, m, top, nan)                                                             \
	"{uint32_t u;\n\tmemcpy(&u, &a, sizeof u);\n"                                              \
	"\tconst uint32_t mag = u & 0x7fffffff, sign = u >> 31 << (" #e " + " #m ");\n"            \
	"\tif (mag > 0x7f800000)\n\t\treturn (" type ")(sign | " nan ");\n"                        \
	"\tif (mag < (129u - (1u << (" #e " - 1))) << 23)\n"                                       \
	"\t\treturn (" type ")(sign | (uint32_t)rintf(ldexpf(fabsf(a), (1 << (" #e " - 1)) - 2 + " #m ")));\n" \
	"\tconst uint32_t r = (mag + (1u << (22 - " #m ")) - 1 + (mag >> (23 - " #m ") & 1)) >> (23 - " #m ");\n" \
	"\tconst uint32_t v = r - ((128u - (1u << (" #e " - 1))) << " #m ");\n"                    \
	"\treturn (" type ")(sign | (v < " top " ? v : " top "));}"

/* Vectors: the same by selection. Subnormals come from adding the number whose last place is theirs. */
static const char from_f16_vector[] =
	"{const $[u32] h = __builtin_convertvector(a, $[u32]), mag = h & 0x7fff;\n"
	"\tconst $T f = ($T)(mag << 13) * 0x1p112f;\n"
	"\tconst $[u32] top = ($[u32])(mag >= 0x7c00), nan = ($[u32])(mag > 0x7c00);\n"
	"\treturn ($T)((($[u32])f & ~top) | (top & 0x7f800000) | (nan & 0x400000) | (h & 0x8000) << 16);}";
static const char to_f16_vector[] =
	"{const $[u32] u = ($[u32])a, mag = u & 0x7fffffff;\n"
	"\tconst $[u32] low = ($[u32])(($T)mag + 0.5f) - 0x3f000000;\n"
	"\t$[u32] v = ((mag + 0xfff + (mag >> 13 & 1)) >> 13) - 0x1c000;\n"
	"\tconst $[u32] small = ($[u32])(mag < 0x38800000), big = ($[u32])(mag >= 0x477ff000);\n"
	"\tconst $[u32] nan = ($[u32])(mag > 0x7f800000);\n"
	"\tv = (v & ~small & ~big) | (low & small) | (big & 0x7c00) | (nan & 0x200);\n"
	"\treturn __builtin_convertvector(v | (u >> 16 & 0x8000), $[u16]);}";
static const char from_bf16_vector[] =
	"($T)(__builtin_convertvector(a, $[u32]) << 16)";
static const char to_bf16_vector[] =
	"{const $[u32] u = ($[u32])a, nan = ($[u32])(a != a);\n"
	"\tconst $[u32] v = (u + 0x7fff + (u >> 16 & 1)) >> 16;\n"
	"\treturn __builtin_convertvector((v & ~nan) | (nan & (u >> 16 | 0x40)), $[u16]);}";

/* The product is exact in double; the sum is rounded to odd, so that rounding it to float is rounding
 * once. */
static const char fma_f32_vector[] =
	"{const $[f64] p = __builtin_convertvector(a, $[f64]) * __builtin_convertvector(b, $[f64]);\n"
	"\tconst $[f64] z = __builtin_convertvector(c, $[f64]), s = p + z, t = s - p;\n"
	"\tconst $[f64] err = (p - (s - t)) + (z - t);\n"
	"\tconst $[i64] bits = ($[i64])s;\n"
	"\tconst $[i64] inexact = ((err < 0) | (err > 0)) & ((bits & 1) == 0);\n"
	"\tconst $[i64] up = (err > 0) == (s > 0);\n"
	"\treturn __builtin_convertvector(($[f64])(bits + (inexact & ~(up + up))), $T);}";

const HelperRow prelude_generic[] = {
	/* arithmetic */
	ARITH("add", "+"),
	ARITH("sub", "-"),
	ARITH("mul", "*"),
	{"add", SET_FLOAT, SET_FLOAT, 0, "a + b"},
	{"mul", SET_FLOAT, SET_FLOAT, 0, "a * b"},
	{"and", SET_INT, SET_INT, 0, "a & b"},
	{"or", SET_INT, SET_INT, 0, "a | b"},
	{"xor", SET_INT, SET_INT, 0, "a ^ b"},
	{"neg", SET_INT, SET_INT, S, "($T)(0 - (uint64_t)a)"},
	{"neg", SET_INT, SET_INT, V, "($T)(0 - ($U)a)"},
	{"abs", SET_UINT, SET_UINT, 0, "a"},
	{"abs", SET_SINT, SET_SINT, S, "($T)(a < 0 ? 0 - (uint64_t)a : (uint64_t)a)"},
	{"abs", SET_SINT, SET_SINT, V, "{const $T s = a < 0;\n\treturn ($T)((($U)a ^ ($U)s) - ($U)s);}"},
	{"abs", SET_F32, SET_F32, V, "($T)(($U)a & 0x7fffffff)"},
	{"abs", SET_F64, SET_F64, V, "($T)(($U)a & 0x7fffffffffffffff)"},
	{"not", SET_INT, SET_INT, S, "($T)~a"},
	{"fma", SET_F32, SET_F32, V, fma_f32_vector},
	{"fma", SET_F64, SET_F64, V, "($T){$each(fma(a[@], b[@], c[@]))}"},
	{"sqrt", SET_F32, SET_F32, V, "($T){$each(sqrtf(a[@]))}"},
	{"sqrt", SET_F64, SET_F64, V, "($T){$each(sqrt(a[@]))}"},
	{"floor", SET_F32, SET_F32, V, "($T){$each(floorf(a[@]))}"},
	{"floor", SET_F64, SET_F64, V, "($T){$each(floor(a[@]))}"},
	{"ceil", SET_F32, SET_F32, V, "($T){$each(ceilf(a[@]))}"},
	{"ceil", SET_F64, SET_F64, V, "($T){$each(ceil(a[@]))}"},
	{"trunc", SET_F32, SET_F32, V, "($T){$each(truncf(a[@]))}"},
	{"trunc", SET_F64, SET_F64, V, "($T){$each(trunc(a[@]))}"},
	{"rint", SET_F32, SET_F32, V, "($T){$each(rintf(a[@]))}"},
	{"rint", SET_F64, SET_F64, V, "($T){$each(rint(a[@]))}"},
	/* NaN wins; of two zeros the second */
	{"min", SET_FLOAT, SET_FLOAT, S, "a < b || a != a ? a : b"},
	{"max", SET_FLOAT, SET_FLOAT, S, "a > b || a != a ? a : b"},
	{"min", SET_INT, SET_INT, S, "a < b ? a : b"},
	{"max", SET_INT, SET_INT, S, "a > b ? a : b"},
	{"min_n", SET_FLOAT, SET_FLOAT, S, "a < b ? a : b"},
	{"max_n", SET_FLOAT, SET_FLOAT, S, "a > b ? a : b"},
	{"min_k", SET_FLOAT, SET_FLOAT, S, "a >= b ? b : a"},
	{"max_k", SET_FLOAT, SET_FLOAT, S, "a <= b ? b : a"},
	{"min", SET_INT, SET_INT, V, "{const $I m = ($I)(a < b);\n"
	                             "\treturn ($T)((($I)a & m) | (($I)b & ~m));}"},
	{"max", SET_INT, SET_INT, V, "{const $I m = ($I)(a > b);\n"
	                             "\treturn ($T)((($I)a & m) | (($I)b & ~m));}"},
	{"min", SET_FLOAT, SET_FLOAT, V, "{const $I m = ($I)((a < b) | (a != a));\n"
	                                   "\treturn ($T)((($I)a & m) | (($I)b & ~m));}"},
	{"max", SET_FLOAT, SET_FLOAT, V, "{const $I m = ($I)((a > b) | (a != a));\n"
	                                   "\treturn ($T)((($I)a & m) | (($I)b & ~m));}"},
	{"min_n", SET_FLOAT, SET_FLOAT, V, "$fn[min:T:T:L](a, b)"},
	{"max_n", SET_FLOAT, SET_FLOAT, V, "$fn[max:T:T:L](a, b)"},
	{"min_k", SET_FLOAT, SET_FLOAT, V, "$fn[min:T:T:L](a, b)"},
	{"max_k", SET_FLOAT, SET_FLOAT, V, "$fn[max:T:T:L](a, b)"},
	/* towards minus infinity; by zero 0, and the remainder is the dividend */
	{"floordiv", SET_UINT, SET_UINT, S, "b ? ($T)(a / b) : 0"},
	{"floordiv", SET_SINT, SET_SINT, S,
	 "{if (b == 0)\n\t\treturn 0;\n\tif (b == -1)\n\t\treturn ($T)(0 - (uint64_t)a);\n"
	 "\treturn ($T)(a / b - (a % b != 0 && (a < 0) != (b < 0)));}"},
	{"floordiv", SET_INT, SET_INT, V, "($T){$each($fn[floordiv:T:T:1](a[@], b[@]))}"},
	{"rem", SET_UINT, SET_UINT, S, "b ? ($T)(a % b) : a"},
	{"rem", SET_SINT, SET_SINT, S, "b == 0 ? a : b == -1 ? 0 : ($T)(a % b)"},
	{"rem", SET_INT, SET_INT, V, "($T){$each($fn[rem:T:T:1](a[@], b[@]))}"},
	/* counts of the width and more shift everything out */
	{"shl", SET_INT, SET_INT, S,
	 "(uint64_t)b < sizeof a * 8 ? ($T)((uint64_t)a << b) : 0"},
	{"shr", SET_UINT, SET_UINT, S, "(uint64_t)b < sizeof a * 8 ? ($T)(a >> b) : 0"},
	{"shr", SET_SINT, SET_SINT, S, "($T)((uint64_t)b < sizeof a * 8 ? a >> b : a >> (sizeof a * 8 - 1))"},
	{"shl", SET_INT, SET_INT, V,
	 "{const $U n = ($U)b & (sizeof a[0] * 8 - 1), in = ($U)(($U)b < sizeof a[0] * 8);\n"
	 "\treturn ($T)((($U)a << n) & in);}"},
	{"shr", SET_UINT, SET_UINT, V,
	 "{const $U n = b & (sizeof a[0] * 8 - 1), in = ($U)(b < sizeof a[0] * 8);\n"
	 "\treturn (a >> n) & in;}"},
	{"shr", SET_SINT, SET_SINT, V,
	 "{const $T in = ($T)(($U)b < sizeof a[0] * 8);\n"
	 "\treturn a >> ((b & in) | (~in & ($S)(sizeof a[0] * 8 - 1)));}"},

	/* comparison and selection */
	COMPARE("eq", "=="),
	COMPARE("ne", "!="),
	COMPARE("lt", "<"),
	COMPARE("le", "<="),
	COMPARE("gt", ">"),
	COMPARE("ge", ">="),
	{"select", SET_BOOL, SET_BOOL, V, "($T)((m & a) | (~m & b))"},
	{"select", SET_4, SET_4, VL, "($T)((m & ($I)a) | (~m & ($I)b))"},
	{"select", SET_NUMBER, SET_NUMBER, VL,
	 "{const $I w = __builtin_convertvector(m, $I);\n\treturn ($T)((w & ($I)a) | (~w & ($I)b));}"},
	{"select", SET_NUMBER, SET_NUMBER, VB, "($T){$each($m(@) ? a[@] : b[@])}"},

	/* conversions */
	{"convert", SET_BOOL, SET_NUMBER, VL, "$fn[ne:bool:A:L](a, ($A){0})"},
	{"convert", SET_NUMBER, SET_BOOL, VL, "__builtin_convertvector(-a, $T)"},
	{"convert", SET_NUMBER, SET_BOOL, VB, "$fn[select:T:T:L](a, ($T){$each(1)}, ($T){0})"},
	/* the smallest value where a is NaN or does not fit */
	{"convert", D1(DT_i32) | D1(DT_i64), SET_FLOAT, S, "a > -$Y && a < $Y ? ($T)a : $Z"},
	{"convert", D1(DT_i32), SET_FLOAT, V,
	 "{const $i fits = ($i)((a > -$Y) & (a < $Y));\n"
	 "\tconst $T r = __builtin_convertvector(($A)(($i)a & fits), $T);\n"
	 "\treturn r | (__builtin_convertvector(~fits, $T) & $Z);}"},
	{"convert", D1(DT_i64), SET_FLOAT, V, "($T){$each($fn[convert:T:A:1](a[@]))}"},
	{"convert", SET_NUMBER, SET_NUMBER, V, "__builtin_convertvector(a, $T)"},
	{"bitcast", SET_NUMBER, SET_NUMBER, S, "{$T r;\n\tmemcpy(&r, &a, sizeof r);\n\treturn r;}"},

	/* lanes */
	{"splat", SET_NUMBER, SET_NUMBER, V, "($T){$each(a)}"},
	{"splat", SET_BOOL, SET_BOOL, VB, "($T)(a ? $N : 0)"},
	{"splat", SET_BOOL, SET_BOOL, VL, "($T){$each(-(int32_t)a)}"},
	{"ramp", SET_INT, SET_INT, V, "a + b * ($T){$each(@)}"},
	{"mask", SET_BOOL, SET_BOOL, VB,
	 "($M)((UINT64_C(1) << (n < 0 ? 0 : n > $L ? $L : n)) - 1)"},
	{"mask", SET_BOOL, SET_BOOL, VL,
	 "($M){$each(@)} < (int32_t)(n < 0 ? 0 : n > $L ? $L : n)"},
	{"any", SET_BOOL, SET_BOOL, VB, "m != 0"},
	{"any", SET_BOOL, SET_BOOL, VL, "{int32_t r = 0;\n\t$all(r |= m[@];)\n\treturn r != 0;}"},
	{"reduce_and", SET_BOOL, SET_BOOL, VB, "a == $N"},
	{"reduce_or", SET_BOOL, SET_BOOL, VB, "a != 0"},
	{"reduce_xor", SET_BOOL, SET_BOOL, VB, "__builtin_parityll(a)"},
	{"reduce_and", SET_BOOL, SET_BOOL, VL, "{int32_t r = -1;\n\t$all(r &= a[@];)\n\treturn r != 0;}"},
	{"reduce_or", SET_BOOL, SET_BOOL, VL, "{int32_t r = 0;\n\t$all(r |= a[@];)\n\treturn r != 0;}"},
	{"reduce_xor", SET_BOOL, SET_BOOL, VL, "{int32_t r = 0;\n\t$all(r ^= a[@];)\n\treturn r != 0;}"},
	{"lo", SET_BOOL, SET_BOOL, VB, "($fn[half:T:T:H])(a & ((UINT64_C(1) << $H) - 1))"},
	{"hi", SET_BOOL, SET_BOOL, VB, "($fn[half:T:T:H])((uint64_t)a >> $H)"},
	{"join", SET_BOOL, SET_BOOL, VB, "($T)((uint64_t)b << $H | a)"},
	{"lo", SET_ANY, SET_ANY, V,
	 "{const union {\n\t\t$T v;\n\t\t$fn[half:T:T:H] h[2];\n\t} u = {a};\n\treturn u.h[0];}"},
	{"hi", SET_ANY, SET_ANY, V,
	 "{const union {\n\t\t$T v;\n\t\t$fn[half:T:T:H] h[2];\n\t} u = {a};\n\treturn u.h[1];}"},
	{"join", SET_ANY, SET_ANY, V,
	 "{const union {\n\t\t$fn[half:T:T:H] h[2];\n\t\t$T v;\n\t} u = {{a, b}};\n\treturn u.v;}"},

	/* memory */
	{"load", SET_NUMBER, SET_NUMBER, V, "{$T v;\n\tmemcpy(&v, p, sizeof v);\n\treturn v;}"},
	{"store", SET_NUMBER, SET_NUMBER, V, "{memcpy(p, &v, sizeof v);}"},
	{"load_masked", SET_NUMBER, SET_NUMBER, V, "($T){$each($m(@) ? p[@] : 0)}"},
	{"store_masked", SET_NUMBER, SET_NUMBER, V, "{$all(if ($m(@))\n\t\tp[@] = v[@];)}"},
	/* from p down, and every second one from p: nothing beyond the last is touched */
	{"load_reversed", SET_NUMBER, SET_NUMBER, V,
	 "{$T v;\n\tmemcpy(&v, p - ($L - 1), sizeof v);\n\treturn ($T){$each(v[$L - 1 - @])};}"},
	{"load_even", SET_NUMBER, SET_NUMBER, V,
	 "{$T a, b;\n\tmemcpy(&a, p, sizeof a);\n\tmemcpy(&b, p + ($L - 1), sizeof b);\n"
	 "\treturn ($T){$each(2 * @ < $L ? a[2 * @ % $L] : b[(2 * @ + 1) % $L])};}"},
	{"gather", SET_NUMBER, SET_INT, V, "($T){$each(p[i[@]])}"},
	{"gather_masked", SET_NUMBER, SET_INT, V, "($T){$each($m(@) ? p[i[@]] : 0)}"},
	{"scatter", SET_NUMBER, SET_INT, V, "{$all(p[i[@]] = v[@];)}"},
	{"scatter_masked", SET_NUMBER, SET_INT, V, "{$all(if ($m(@))\n\t\tp[i[@]] = v[@];)}"},

	/* storage types */
	{"from_f16", SET_F32, SET_F32, S, from_f16},
	{"from_f8e4m3", SET_F32, SET_F32, S, from_f8e4m3},
	{"from_f8e5m2", SET_F32, SET_F32, S, from_f8e5m2},
	{"from_bf16", SET_F32, SET_F32, S,
	 "{const uint32_t u = (uint32_t)a << 16;\n\tfloat f;\n\tmemcpy(&f, &u, sizeof f);\n\treturn f;}"},
	{"to_f16", SET_F32, SET_F32, S, TO_SMALL("uint16_t", 5, 10, "0x7c00", "0x7e00")},
	{"to_f8e5m2", SET_F32, SET_F32, S, TO_SMALL("uint8_t", 5, 2, "0x7c", "0x7e")},
	{"to_f8e4m3", SET_F32, SET_F32, S, TO_SMALL("uint8_t", 4, 3, "0x7e", "0x7f")},
	{"to_bf16", SET_F32, SET_F32, S,
	 "{uint32_t u;\n\tmemcpy(&u, &a, sizeof u);\n"
	 "\tif (a != a)\n\t\treturn (uint16_t)(u >> 16 | 0x40);\n"
	 "\treturn (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);}"},
	{"from_f16", SET_F32, SET_F32, V, from_f16_vector},
	{"to_f16", SET_F32, SET_F32, V, to_f16_vector},
	{"from_bf16", SET_F32, SET_F32, V, from_bf16_vector},
	{"to_bf16", SET_F32, SET_F32, V, to_bf16_vector},
	{"from_f8e4m3", SET_F32, SET_F32, V, "($T){$each($fn[from_f8e4m3:T:T:1](a[@]))}"},
	{"from_f8e5m2", SET_F32, SET_F32, V, "($T){$each($fn[from_f8e5m2:T:T:1](a[@]))}"},
	{"to_f8e4m3", SET_F32, SET_F32, V, "($[u8]){$each($fn[to_f8e4m3:T:T:1](a[@]))}"},
	{"to_f8e5m2", SET_F32, SET_F32, V, "($[u8]){$each($fn[to_f8e5m2:T:T:1](a[@]))}"},

	/* reductions across lanes */
	REDUCE("add"),
	REDUCE("mul"),
	REDUCE("min"),
	REDUCE("max"),
	REDUCE("and"),
	REDUCE("or"),
	REDUCE("xor"),
	{0},
};
