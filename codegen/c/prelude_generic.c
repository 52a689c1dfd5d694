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
	{"min", SET_INT, SET_INT, S, "a < b ? a : b"},
	{"max", SET_INT, SET_INT, S, "a > b ? a : b"},
	{"min", SET_INT, SET_INT, V, "{const $I m = ($I)(a < b);\n"
	                             "\treturn ($T)((($I)a & m) | (($I)b & ~m));}"},
	{"max", SET_INT, SET_INT, V, "{const $I m = ($I)(a > b);\n"
	                             "\treturn ($T)((($I)a & m) | (($I)b & ~m));}"},
	{"lesser", SET_FLOAT, SET_FLOAT, V, "{const $I m = ($I)(a < b);\n\treturn ($T)((($I)a & m) | (($I)b & ~m));}"},
	{"greater", SET_FLOAT, SET_FLOAT, V, "{const $I m = ($I)(a > b);\n\treturn ($T)((($I)a & m) | (($I)b & ~m));}"},
	{"quot", SET_INT, SET_INT, 0, "($T)(a / b)"},
	{"mod", SET_INT, SET_INT, 0, "($T)(a % b)"},
	{"left", SET_INT, SET_INT, S, "($T)((uint64_t)a << b)"},
	{"left", SET_INT, SET_INT, V, "($T)(($U)a << ($U)b)"},
	{"right", SET_INT, SET_INT, 0, "($T)(a >> b)"},

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
	{"convert", SET_NUMBER, SET_BOOL, VL, "__builtin_convertvector(-a, $T)"},
	{"convert", SET_NUMBER, SET_BOOL, VB, "$fn[select:T:T:L](a, ($T){$each(1)}, ($T){0})"},
	/* the smallest value where a is NaN or does not fit */
	{"convert", D1(DT_i32) | D1(DT_i64), SET_FLOAT, S, "a > -$Y && a < $Y ? ($T)a : $Z"},
	{"convert", D1(DT_i32), SET_FLOAT, V,
	 "{const $i fits = ($i)((a > -$Y) & (a < $Y));\n"
	 "\tconst $T r = __builtin_convertvector(($A)(($i)a & fits), $T);\n"
	 "\treturn r | (__builtin_convertvector(~fits, $T) & $Z);}"},
	{"convert", D1(DT_i64), SET_FLOAT, V, "($T){$each($fn[convert:T:A:1](a[@]))}"},
	{"fit", D1(DT_i32) | D1(DT_i64), SET_FLOAT, V, "__builtin_convertvector(a, $T)"},
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
	{"reverse", SET_NUMBER, SET_NUMBER, V, "($T){$each(a[$L - 1 - @])}"},
	{"even", SET_NUMBER, SET_NUMBER, V, "($T){$each(2 * @ < $L ? a[2 * @ % $L] : b[(2 * @ + 1) % $L])}"},
	{"gather", SET_NUMBER, SET_INT, V, "($T){$each(p[i[@]])}"},
	{"gather_masked", SET_NUMBER, SET_INT, V, "($T){$each($m(@) ? p[i[@]] : 0)}"},
	{"scatter", SET_NUMBER, SET_INT, V, "{$all(p[i[@]] = v[@];)}"},
	{"scatter_masked", SET_NUMBER, SET_INT, V, "{$all(if ($m(@))\n\t\tp[i[@]] = v[@];)}"},
	{0},
};
