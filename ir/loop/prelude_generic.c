/* Operations in plain C (one lane), in GNU vector arithmetic and in LLVM IR, which knows vectors:
 * the definition of every operation, and what targets without something better use. Vector rows
 * below never run on scalar targets. */
#include "ir/loop/prelude.h"

#define S ROW_SCALAR
#define V ROW_VECTOR
#define VB (ROW_VECTOR | ROW_BITS)
#define VL (ROW_VECTOR | ROW_LANES)

/* clang says char of what compares bytes, which has no sign on some machines. */
#define COMPARE(op, c, real, sign, plain)                                                          \
	{op, SET_BOOL, SET_ANY, S, "=a " c " b", NULL},                                            \
		{op, SET_BOOL, SET_4, VL, "($M)(a " c " b)", NULL},                                \
		{op,  SET_BOOL, SET_NUMBER, VL, "__builtin_convertvector(($i)(a " c " b), $M)",    \
		 NULL},                                                                            \
		{op,                                                                               \
		 SET_BOOL,                                                                         \
		 SET_NUMBER,                                                                       \
		 VB,                                                                               \
		 "{$M r = 0;\n\t$all(r |= ($M)(($M)(a[@] " c " b[@]) << @);)\n\treturn r;}",       \
		 NULL},                                                                            \
		{op, SET_BOOL, SET_FLOAT, 0, NULL, "fcmp." real "(a, b)"},                         \
		{op, SET_BOOL, SET_SINT, 0, NULL, "icmp." sign "(a, b)"},                          \
	{                                                                                          \
		op, SET_BOOL, SET_UINT | SET_BOOL, 0, NULL, "icmp." plain "(a, b)"                 \
	}

/* Sizes and indices do not overflow. */
#define INDEX(op, c, plain, nonneg)                                                                \
	{op, D1(DT_i64), D1(DT_i64), S | ROW_NONNEG, "=a " c " b", nonneg "(a, b)"},               \
	{op, D1(DT_i64), D1(DT_i64), S | ROW_INDEX, "=a " c " b", plain "(a, b)"}

#define ARITH(op, c)                                                                               \
	{op, SET_INT, SET_INT, S, "($T)((uint64_t)a " c " (uint64_t)b)", op "(a, b)"},             \
	{op, SET_INT, SET_INT, V, "($T)(($U)a " c " ($U)b)", op "(a, b)"},                         \
	{op, SET_FLOAT, SET_FLOAT, 0, "=a " c " b", "f" op "(a, b)"}

#define MATH(op, f)                                                                                \
	{op, SET_F32, SET_F32, S, "=" f "f(a)", "llvm." f "(a)"},                                  \
	{op, SET_F64, SET_F64, S, "=" f "(a)", "llvm." f "(a)"},                                   \
	{op, SET_F32, SET_F32, V, "($T){$each(" f "f(a[@]))}", "llvm." f "(a)"},                   \
	{op, SET_F64, SET_F64, V, "($T){$each(" f "(a[@]))}", "llvm." f "(a)"}

/* The lanes of a or of b, by a comparison of the two. */
#define PICK(c) "{const $I m = ($I)(a " c " b);\n\treturn ($T)((($I)a & m) | (($I)b & ~m));}"

const PreludeRow prelude_generic[] = {
	/* arithmetic */
	INDEX("add", "+", "add.nsw", "add.nsw.nuw"),
	INDEX("sub", "-", "sub.nsw", "sub.nsw"),
	INDEX("mul", "*", "mul.nsw", "mul.nsw.nuw"),
	INDEX("quot", "/", "sdiv", "udiv"),
	INDEX("mod", "%", "srem", "urem"),
	INDEX("right", ">>", "ashr", "ashr"),
	ARITH("add", "+"),
	ARITH("sub", "-"),
	ARITH("mul", "*"),
	{"div", SET_FLOAT, SET_FLOAT, 0, "=a / b", "fdiv(a, b)"},
	{"neg", D1(DT_i64), D1(DT_i64), S | ROW_INDEX, "=-a", "neg(a)"},
	{"neg", SET_INT, SET_INT, S, "($T)(0 - (uint64_t)a)", "neg(a)"},
	{"neg", SET_INT, SET_INT, V, "($T)(0 - ($U)a)", "neg(a)"},
	{"neg", SET_FLOAT, SET_FLOAT, 0, "=-a", "fneg(a)"},
	{"and", SET_BOOL, SET_BOOL, S, "=a && b", "and(a, b)"},
	{"or", SET_BOOL, SET_BOOL, S, "=a || b", "or(a, b)"},
	{"xor", SET_BOOL, SET_BOOL, S, "=a != b", "xor(a, b)"},
	{"and", SET_INT | SET_BOOL, SET_INT | SET_BOOL, 0, "=a & b", "and(a, b)"},
	{"or", SET_INT | SET_BOOL, SET_INT | SET_BOOL, 0, "=a | b", "or(a, b)"},
	{"xor", SET_INT | SET_BOOL, SET_INT | SET_BOOL, 0, "=a ^ b", "xor(a, b)"},
	{"not", SET_BOOL, SET_BOOL, S, "=!a", "not(a)"},
	{"not", SET_BOOL, SET_BOOL, VL, "=~a", "not(a)"},
	{"not", SET_BOOL, SET_BOOL, VB, "=a ^ $N", "not(a)"},
	{"not", SET_INT, SET_INT, S, "($T)~a", "not(a)"},
	{"not", SET_INT, SET_INT, V, "=~a", "not(a)"},
	{"abs", SET_SINT, SET_SINT, S, "($T)(a < 0 ? 0 - (uint64_t)a : (uint64_t)a)", "llvm.abs(a, false)"},
	{"abs", SET_SINT, SET_SINT, V, "{const $T s = a < 0;\n\treturn ($T)((($U)a ^ ($U)s) - "
				       "($U)s);}", "llvm.abs(a, false)"},
	{"abs", SET_F32, SET_F32, S, "=fabsf(a)", "llvm.fabs(a)"},
	{"abs", SET_F64, SET_F64, S, "=fabs(a)", "llvm.fabs(a)"},
	{"abs", SET_F32, SET_F32, V, "($T)(($U)a & 0x7fffffff)", "llvm.fabs(a)"},
	{"abs", SET_F64, SET_F64, V, "($T)(($U)a & 0x7fffffffffffffff)", "llvm.fabs(a)"},
	{"fma", SET_F32, SET_F32, S, "=fmaf(a, b, c)", "llvm.fma(a, b, c)"},
	{"fma", SET_F64, SET_F64, S, "=fma(a, b, c)", "llvm.fma(a, b, c)"},
	{"fma", SET_F64, SET_F64, V, "($T){$each(fma(a[@], b[@], c[@]))}", "llvm.fma(a, b, c)"},
	{"fma", SET_F32, SET_F32, V | ROW_FMA, NULL, "llvm.fma(a, b, c)"}, /* C: by parts */
	MATH("sqrt", "sqrt"),
	MATH("floor", "floor"),
	MATH("ceil", "ceil"),
	MATH("trunc", "trunc"),
	MATH("rint", "rint"),
	{"min", SET_SINT, SET_SINT, S, "a < b ? a : b", "llvm.smin(a, b)"},
	{"max", SET_SINT, SET_SINT, S, "a > b ? a : b", "llvm.smax(a, b)"},
	{"min", SET_UINT, SET_UINT, S, "a < b ? a : b", "llvm.umin(a, b)"},
	{"max", SET_UINT, SET_UINT, S, "a > b ? a : b", "llvm.umax(a, b)"},
	{"min", SET_SINT, SET_SINT, V, PICK("<"), "llvm.smin(a, b)"},
	{"max", SET_SINT, SET_SINT, V, PICK(">"), "llvm.smax(a, b)"},
	{"min", SET_UINT, SET_UINT, V, PICK("<"), "llvm.umin(a, b)"},
	{"max", SET_UINT, SET_UINT, V, PICK(">"), "llvm.umax(a, b)"},
	{"lesser", SET_FLOAT, SET_FLOAT, S | ROW_LESSER, "=a < b ? a : b", "select(fcmp.olt(a, b), "
									   "a, b)"},
	{"greater", SET_FLOAT, SET_FLOAT, S | ROW_LESSER, "=a > b ? a : b", "select(fcmp.ogt(a, "
									    "b), a, b)"},
	{"lesser", SET_FLOAT, SET_FLOAT, V | ROW_LESSER, PICK("<"), "select(fcmp.olt(a, b), a, b)"},
	{"greater", SET_FLOAT, SET_FLOAT, V | ROW_LESSER, PICK(">"), "select(fcmp.ogt(a, b), a, "
								     "b)"},
	{"quot", SET_SINT, SET_SINT, 0, "($T)(a / b)", "sdiv(a, b)"},
	{"quot", SET_UINT, SET_UINT, 0, "($T)(a / b)", "udiv(a, b)"},
	{"mod", SET_SINT, SET_SINT, 0, "($T)(a % b)", "srem(a, b)"},
	{"mod", SET_UINT, SET_UINT, 0, "($T)(a % b)", "urem(a, b)"},
	{"left", SET_INT, SET_INT, S, "($T)((uint64_t)a << b)", "shl(a, b)"},
	{"left", SET_INT, SET_INT, V, "($T)(($U)a << ($U)b)", "shl(a, b)"},
	{"right", SET_SINT, SET_SINT, 0, "($T)(a >> b)", "ashr(a, b)"},
	{"right", SET_UINT, SET_UINT, 0, "($T)(a >> b)", "lshr(a, b)"},

	/* comparison and selection */
	COMPARE("eq", "==", "oeq", "eq", "eq"),
	COMPARE("ne", "!=", "une", "ne", "ne"),
	COMPARE("lt", "<", "olt", "slt", "ult"),
	COMPARE("le", "<=", "ole", "sle", "ule"),
	COMPARE("gt", ">", "ogt", "sgt", "ugt"),
	COMPARE("ge", ">=", "oge", "sge", "uge"),
	{"select", SET_ANY, SET_ANY, S, "=m ? a : b", "select(m, a, b)"},
	{"select", SET_BOOL, SET_BOOL, V, "($T)((m & a) | (~m & b))", "select(m, a, b)"},
	{"select", SET_4, SET_4, VL, "($T)((m & ($I)a) | (~m & ($I)b))", "select(m, a, b)"},
	{"select", SET_NUMBER, SET_NUMBER, VL,
	 "{const $I w = __builtin_convertvector(m, $I);\n\treturn ($T)((w & ($I)a) | (~w & "
	 "($I)b));}", "select(m, a, b)"},
	{"select", SET_NUMBER, SET_NUMBER, VB, "($T){$each($m(@) ? a[@] : b[@])}", "select(m, a, b)"},

	/* conversions; of floats that do not fit, and NaN, the smallest value */
	{"convert", D1(DT_i32) | D1(DT_i64), SET_FLOAT, S | ROW_CONVERT, "a > -$Y && a < $Y ? "
									 "($T)a : $Z",
	 "select(fcmp.olt(llvm.fabs(a), $Y), fptosi(a), $Z)"},
	{"convert", D1(DT_i32), SET_FLOAT, V | ROW_CONVERT,
	 "{const $i fits = ($i)((a > -$Y) & (a < $Y));\n"
	 "\tconst $T r = __builtin_convertvector(($A)(($i)a & fits), $T);\n"
	 "\treturn r | (__builtin_convertvector(~fits, $T) & $Z);}", "select(fcmp.olt(llvm.fabs(a), $Y), fptosi(a), $Z)"},
	{"convert", D1(DT_i64), SET_FLOAT, V | ROW_CONVERT, "($T){$each($fn[convert:T:A:1](a[@]))}",
	 "select(fcmp.olt(llvm.fabs(a), $Y), fptosi(a), $Z)"},
	{"convert", SET_NUMBER, SET_BOOL, VL, "__builtin_convertvector(-a, $T)", NULL},
	{"convert", SET_NUMBER, SET_BOOL, VB, "$fn[select:T:T:L](a, ($T){$each(1)}, ($T){0})", NULL},
	{"convert", SET_NUMBER, SET_INT | SET_BOOL, S, "=($T)a", NULL},
	{"convert", SET_FLOAT, SET_FLOAT, S, "=($T)a", "fpcast(a)"},
	{"convert", SET_NUMBER, SET_INT, V, "__builtin_convertvector(a, $T)", NULL},
	{"convert", SET_FLOAT, SET_FLOAT, V, "__builtin_convertvector(a, $T)", "fpcast(a)"},
	{"convert", SET_FLOAT, SET_SINT, 0, NULL, "sitofp(a)"},
	{"convert", SET_FLOAT, SET_UINT | SET_BOOL, 0, NULL, "uitofp(a)"},
	{"convert", SET_INT, SET_SINT, 0, NULL, "intcast.s(a)"},
	{"convert", SET_INT, SET_UINT | SET_BOOL, 0, NULL, "intcast.u(a)"},
	{"fit", D1(DT_i32) | D1(DT_i64), SET_FLOAT, S, "=($T)a", "fptosi(a)"},
	{"fit", D1(DT_i32) | D1(DT_i64), SET_FLOAT, V, "__builtin_convertvector(a, $T)", "fptosi(a)"},
	{"bitcast", SET_NUMBER, SET_NUMBER, S, "{$T r;\n\tmemcpy(&r, &a, sizeof r);\n\treturn r;}", "bitcast(a)"},
	{"bitcast", SET_NUMBER, SET_NUMBER, V, "=($T)a", "bitcast(a)"},

	/* lanes */
	{"splat", SET_NUMBER, SET_NUMBER, V, "($T){$each(a)}", NULL},
	{"splat", SET_BOOL, SET_BOOL, VB, "($T)(a ? $N : 0)", NULL},
	{"splat", SET_BOOL, SET_BOOL, VL, "($T){$each(-(int32_t)a)}", NULL},
	{"ramp", SET_INT, SET_INT, V, "a + b * ($T){$each(@)}", NULL},
	{"mask", SET_BOOL, SET_BOOL, VB,
	 "($M)((UINT64_C(1) << n) - 1)", NULL},
	{"mask", SET_BOOL, SET_BOOL, VL,
	 "($M){$each(@)} < (int32_t)n", NULL},
	{"any", SET_BOOL, SET_BOOL, VB, "m != 0", NULL},
	{"any", SET_BOOL, SET_BOOL, VL, "{int32_t r = 0;\n\t$all(r |= m[@];)\n\treturn r != 0;}", NULL},
	{"lo", SET_BOOL, SET_BOOL, VB, "($fn[half:T:T:H])(a & ((UINT64_C(1) << $H) - 1))", NULL},
	{"hi", SET_BOOL, SET_BOOL, VB, "($fn[half:T:T:H])((uint64_t)a >> $H)", NULL},
	/* gcc 12 joins a comparison and the widening of its mask, and may then spill 8 bits of the
	   mask and read 16. The asm, which does nothing, keeps them apart. */
	{"join", SET_BOOL, SET_BOOL, VB,
	 "{__asm__(\"\" : \"+k\"(a), \"+k\"(b));\n\treturn ($T)((uint64_t)b << $H | a);}", NULL},
	{"lo", SET_ANY, SET_ANY, V,
	 "{const union {\n\t\t$T v;\n\t\t$fn[half:T:T:H] h[2];\n\t} u = {a};\n\treturn u.h[0];}", NULL},
	{"hi", SET_ANY, SET_ANY, V,
	 "{const union {\n\t\t$T v;\n\t\t$fn[half:T:T:H] h[2];\n\t} u = {a};\n\treturn u.h[1];}", NULL},
	{"join", SET_ANY, SET_ANY, V,
	 "{const union {\n\t\t$fn[half:T:T:H] h[2];\n\t\t$T v;\n\t} u = {{a, b}};\n\treturn u.v;}", NULL},

	/* memory */
	{"load", D1(DT_u32), D1(DT_u32), ROW_SCALAR, "{$T v;\n\tmemcpy(&v, p, sizeof v);\n\treturn "
						     "v;}", NULL},
	{"load", SET_NUMBER, SET_NUMBER, V, "{$T v;\n\tmemcpy(&v, p, sizeof v);\n\treturn v;}", NULL},
	{"store", SET_NUMBER, SET_NUMBER, V, "{memcpy(p, &v, sizeof v);}", NULL},
	{"load_masked", SET_NUMBER, SET_NUMBER, V, "($T){$each($m(@) ? p[@] : 0)}", NULL},
	{"store_masked", SET_NUMBER, SET_NUMBER, V, "{$all(if ($m(@))\n\t\tp[@] = v[@];)}", NULL},
	{"reverse", SET_NUMBER, SET_NUMBER, V, "($T){$each(a[$L - 1 - @])}", NULL},
	{"even", SET_NUMBER, SET_NUMBER, V, "($T){$each(2 * @ < $L ? a[2 * @ % $L] : b[(2 * @ + 1) "
					    "% $L])}", NULL},
	{"evens", SET_NUMBER, SET_NUMBER, V, "($T){$each(2 * @ < $L ? a[2 * @ % $L] : b[2 * @ % "
					     "$L])}", NULL},
	{"odds", SET_NUMBER, SET_NUMBER, V, "($T){$each(2 * @ < $L ? a[(2 * @ + 1) % $L] : b[(2 * "
					    "@ + 1) % $L])}", NULL},
	{"turn_evens", SET_NUMBER, SET_NUMBER, V, "($T){$each(@ % 2 ? b[@ / 2 * 2] : a[@])}", NULL},
	{"turn_odds", SET_NUMBER, SET_NUMBER, V, "($T){$each(@ % 2 ? b[@] : a[(@ + 1) % $L])}", NULL},
	{"lows", SET_NUMBER, SET_NUMBER, V, "($T){$each(2 * @ < $L ? a[@] : b[@ % ($L / 2)])}", NULL},
	{"highs", SET_NUMBER, SET_NUMBER, V, "($T){$each(2 * @ < $L ? a[$L / 2 + @ % ($L / 2)] : "
					     "b[@])}", NULL},
	{"zip_lo", SET_NUMBER, SET_NUMBER, V, "($T){$each(@ % 2 ? b[@ / 2] : a[@ / 2])}", NULL},
	{"zip_hi", SET_NUMBER, SET_NUMBER, V, "($T){$each(@ % 2 ? b[($L + @) / 2] : a[($L + @) / "
					      "2])}", NULL},
	{"gather", SET_NUMBER, SET_INT, V, "($T){$each(p[i[@]])}", NULL},
	{"gather_masked", SET_NUMBER, SET_INT, V, "($T){$each($m(@) ? p[i[@]] : 0)}", NULL},
	{"scatter", SET_NUMBER, SET_INT, V, "{$all(p[i[@]] = v[@];)}", NULL},
	{"scatter_masked", SET_NUMBER, SET_INT, V, "{$all(if ($m(@))\n\t\tp[i[@]] = v[@];)}", NULL},
	{0},
};
