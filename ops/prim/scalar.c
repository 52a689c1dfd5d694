/* Scalar ops: element-wise primitives over operands of one dtype and shape. `scalar` is the
 * meaning, `deriv` the local derivative by operand in terms of the operands and the result y; both
 * texts of ir/scalar/scalar.h. A derivative uses only ops of this table and infix operators, so
 * that transforms can build it as a graph. Ties and kinks follow PyTorch: a half each to equal
 * operands of maximum and fmax, 0 for abs at 0. */
#include "ops/prim/rules_priv.h"
#include "ops/rules/parts.h"

/* ---- arithmetic ---- */

static Sym integer_add(const Graph *g, Node n, const Sym *in)
{
	(void)n;
	return sym_add(graph_syms(g), in[0], in[1]);
}

OP(add) {
	.schema = "add(Tensor a, Tensor b) -> Tensor",
	.doc = "a + b; or on bool",
	.commutes = true,
	.integer = integer_add,
	.scalar = "add(a, b)",
	.linear = LINEAR_TOGETHER,
	.deriv = {"1", "1"},
	.sample = "f32[n=3, 4] in -8..8, f32[n, 4] in -8..8; i32[6] in -99..99, i32[6] in -99..99; "
		  "bool[4] of 0 0 1 1, bool[4] of 0 1 0 1",
};
static Sym integer_sub(const Graph *g, Node n, const Sym *in)
{
	(void)n;
	return sym_sub(graph_syms(g), in[0], in[1]);
}

OP(sub) {
	.schema = "sub(Tensor a, Tensor b) -> Tensor",
	.doc = "a - b",
	.integer = integer_sub,
	.scalar = "sub(a, b)",
	.linear = LINEAR_TOGETHER,
	.deriv = {"1", "-1"},
	.sample = "f32[n=3, 4] in -8..8, f32[n, 4] in -8..8; u8[6] in 0..255, u8[6] in 0..255",
};
OP(mul) {
	.schema = "mul(Tensor a, Tensor b) -> Tensor",
	.doc = "a * b; and on bool",
	.commutes = true,
	.scalar = "mul(a, b)",
	.linear = LINEAR_ALONE,
	.deriv = {"b", "a"},
	.sample = "f32[n=3, 4] in -8..8, f32[n, 4] in -8..8; i32[6] in -99..99, i32[6] in -99..99; "
		  "bool[4] of 0 0 1 1, bool[4] of 0 1 0 1",
};
OP(fma) {
	.schema = "fma(Tensor a, Tensor b, Tensor c) -> Tensor",
	.doc = "a * b + c on floats, rounded once",
	.promote = PROMOTE_FLOAT,
	.scalar = "fma(a, b, c)",
	.deriv = {"b", "a", "1"},
	.sample = "f32[n=3, 4] in -8..8, f32[n, 4] in -8..8, f32[n, 4] in -8..8; "
		  "f64[5] in -3..3, f64[5] in -3..3, f64[5] in -3..3",
};
OP(div) {
	.schema = "div(Tensor a, Tensor b) -> Tensor",
	.doc = "a / b on floats",
	.promote = PROMOTE_FLOAT,
	.scalar = "div(a, b)",
	.complex = "big = abs(b_im) <= abs(b_re); r = select(big, b_im, b_re) / select(big, b_re, "
		   "b_im); d = select(big, b_re + b_im * r, b_re * r + b_im); "
		   "[select(big, a_re + a_im * r, a_re * r + a_im) / d, select(big, a_im - a_re * "
		   "r, a_im * r - a_re) / d]",
	.linear = LINEAR_TOGETHER,
	.linear_in = 1,
	.deriv = {"1 / b", "-y / b"},
	.sample = "f32[n=3, 4] in -8..8, f32[n, 4] in 0.5..4",
};
OP(floordiv) {
	.schema = "floordiv(Tensor a, Tensor b) -> Tensor",
	.doc = "quotient rounded towards minus infinity; integers by zero give 0",
	.scalar = "floor_div(a, b)",
	.deriv = {"0", "0"},
	.sample = "f32[n=3, 4] in -8..8, f32[n, 4] in 0.5..4; f32[4] of 7 -7 6.5 -0.5, "
		  "f32[4] of -2 2 0.5 3; i32[6] in -9..9, i32[6] of 2 -3 4 1",
};
OP(remainder) {
	.schema = "remainder(Tensor a, Tensor b) -> Tensor",
	.doc = "a - floordiv(a, b) * b, with the sign of b; integers by zero give a",
	.scalar = "floor_mod(a, b)",
	.deriv = {"1", "-floordiv(a, b)"},
	.sample = "f32[n=3, 4] in -8..8, f32[n, 4] in 0.5..4; f32[4] of 7 -7 6.5 -0.5, "
		  "f32[4] of -2 2 0.75 3; i32[6] in -9..9, i32[6] of 2 -3 4 1",
};
OP(fmod) {
	.schema = "fmod(Tensor a, Tensor b) -> Tensor",
	.doc = "remainder of truncated division, with the sign of a; integers by zero give a",
	.scalar = "trunc_mod(a, b)",
	.deriv = {"1", "-trunc(a / b)"},
	.sample = "f32[n=3, 4] in -8..8, f32[n, 4] in 0.5..4; f32[4] of 7 -7 6.5 -0.5, "
		  "f32[4] of -2 2 0.75 3; i32[6] in -9..9, i32[6] of 2 -3 4 1",
};
OP(maximum) {
	.schema = "maximum(Tensor a, Tensor b) -> Tensor",
	.doc = "the greater; NaN if either is",
	.scalar = "max(a, b)",
	.exact = true,
	.deriv = {"select(lt(a, b), 0, select(eq(a, b), 0.5, 1))",
	          "select(gt(a, b), 0, select(eq(a, b), 0.5, 1))"},
	.sample = "f32[n=3, 4] in -8..8, f32[n, 4] in -8..8; "
		  "f32[8] of 1 -2 3 nan 2 0 -1 5, f32[8] of 1 -1 2 1 nan 0 -1 5; "
		  "i32[6] in -9..9, i32[6] in -9..9",
};
OP(minimum) {
	.schema = "minimum(Tensor a, Tensor b) -> Tensor",
	.doc = "the smaller; NaN if either is",
	.scalar = "min(a, b)",
	.exact = true,
	.deriv = {"select(gt(a, b), 0, select(eq(a, b), 0.5, 1))",
	          "select(lt(a, b), 0, select(eq(a, b), 0.5, 1))"},
	.sample = "f32[n=3, 4] in -8..8, f32[n, 4] in -8..8; "
		  "f32[8] of 1 -2 3 nan 2 0 -1 5, f32[8] of 1 -1 2 1 nan 0 -1 5; "
		  "i32[6] in -9..9, i32[6] in -9..9",
};
OP(fmax) {
	.schema = "fmax(Tensor a, Tensor b) -> Tensor",
	.doc = "the greater; a NaN counts as missing",
	.scalar = "fmax(a, b)",
	.exact = true,
	.deriv = {"select(eq(a, b), 0.5, select(gt(a, b), 1, select(isnan(b), 1, 0)))",
	          "select(eq(a, b), 0.5, select(gt(a, b), 0, select(isnan(b), 0, 1)))"},
	.sample = "f32[n=3, 4] in -8..8, f32[n, 4] in -8..8; "
		  "f32[8] of 1 -2 3 nan 2 0 -1 5, f32[8] of 1 -1 2 1 nan 0 -1 5; "
		  "i32[6] in -9..9, i32[6] in -9..9",
};
OP(fmin) {
	.schema = "fmin(Tensor a, Tensor b) -> Tensor",
	.doc = "the smaller; a NaN counts as missing",
	.scalar = "fmin(a, b)",
	.exact = true,
	.deriv = {"select(eq(a, b), 0.5, select(lt(a, b), 1, select(isnan(b), 1, 0)))",
	          "select(eq(a, b), 0.5, select(lt(a, b), 0, select(isnan(b), 0, 1)))"},
	.sample = "f32[n=3, 4] in -8..8, f32[n, 4] in -8..8; "
		  "f32[8] of 1 -2 3 nan 2 0 -1 5, f32[8] of 1 -1 2 1 nan 0 -1 5; "
		  "i32[6] in -9..9, i32[6] in -9..9",
};
OP(pow) {
	.schema = "pow(Tensor a, Tensor b) -> Tensor",
	.doc = "a to the power b; integers: b < 0 gives 0 unless a is 1 or -1",
	.scalar = "pow(a, b)",
	/* Of a = 0: 1 of b = 0, a of b = 1, else 0 whose slope is 0 where b_re > 1 and NaN where it
	 * is not, and infinite where b_re < 0. */
	.complex = "zero = a == 0; p = exp(b * log(select(zero, 1, a))); "
		   "steep = bit_and(bit_and(zero, b_re <= 1), bit_and(b != 0, b != 1)); "
		   "pole = bit_and(steep, b_re <= 0); r = sqrt(abs(select(steep, a_re, 1))); "
		   "i = sqrt(abs(select(steep, a_im, 1))); "
		   "s = complex(r - b_re * select(pole, inf, 0), i + (b_re + b_im) * select(pole, "
		   "nan, 0)); select(zero, select(steep, s, select(b == 0, 1, select(b == 1, a, "
		   "0))), p)",
	/* what is not selected has numbers for derivatives */
	.deriv = {"none = eq(b, 0); select(none, 0, b * pow(a, select(none, 1, b - 1)))",
	          "zero = eq(a, 0); select(zero, select(ge(b, 0), 0, y * log(a)), y * "
		  "log(select(zero, 1, a)))"},
	.sample = "f32[n=3, 4] in 0.5..4, f32[n, 4] in -3..3; "
		  "f32[8] of 0 0 2 -2 -1 0.5 3 1, f32[8] of 0 2 0 3 -2 0.5 -1 4; "
		  "i32[6] in -4..4, i32[6] in 0..4",
};
OP(atan2) {
	.schema = "atan2(Tensor a, Tensor b) -> Tensor",
	.doc = "angle of the point (b, a)",
	.promote = PROMOTE_FLOAT,
	.scalar = "atan2(a, b)",
	/* nothing is divided by 0, where second derivatives would be NaN though nothing is selected
	 * of them */
	.deriv = {"n = a*a + b*b; select(eq(n, 0), 0, b / select(eq(n, 0), 1, n))",
	          "n = a*a + b*b; select(eq(n, 0), 0, -a / select(eq(n, 0), 1, n))"},
	.sample = "f32[n=3, 4] in -8..8, f32[n, 4] in -8..8; f32[9] of 0 0 1 -1 0 3 -2 0 0, "
		  "f32[9] of 1 -1 0 0 2 -3 -0.5 -4 0",
};
OP(hypot) {
	.schema = "hypot(Tensor a, Tensor b) -> Tensor",
	.doc = "sqrt(a*a + b*b) without overflow",
	.promote = PROMOTE_FLOAT,
	.scalar = "hypot(a, b)",
	.deriv = {"a / y", "b / y"},
	.sample = "f32[n=3, 4] in -8..8, f32[n, 4] in -8..8; f32[4] of 3 0 1e30 -5, "
		  "f32[4] of 4 2 1e30 12",
};
OP(copysign) {
	.schema = "copysign(Tensor a, Tensor b) -> Tensor",
	.doc = "magnitude of a, sign of b",
	.promote = PROMOTE_FLOAT,
	.scalar = "copysign(a, b)",
	.exact = true,
	.deriv = {"select(eq(a, 0), 0, y / select(eq(a, 0), 1, a))", "0"},
	.sample = "f32[n=3, 4] in -8..8, f32[n, 4] in -8..8; f32[5] of 0 -1 2 3 -4, "
		  "f32[5] of -1 -2 -0 0 5",
};
OP(nextafter) {
	.schema = "nextafter(Tensor a, Tensor b) -> Tensor",
	.doc = "the next value from a towards b",
	.promote = PROMOTE_FLOAT,
	.scalar = "nextafter(a, b)",
	.deriv = {"select(eq(a, b), 0, 1)", "0"},
	.sample = "f32[n=3, 4] in -8..8, f32[n, 4] in -7.9..8.1; f32[4] of 0 1 -2 5, "
		  "f32[4] of -1 2 -3 6",
};

/* ---- rounding, sign, roots ---- */

OP(neg) {
	.schema = "neg(Tensor x) -> Tensor",
	.doc = "-x",
	.scalar = "neg(x)",
	.exact = true,
	.linear = LINEAR_TOGETHER,
	.deriv = {"-1"},
	.sample = "f32[n=3, 4] in -8..8; i32[4] in -9..9",
};
OP(abs) {
	.schema = "abs(Tensor x) -> Tensor",
	.doc = "absolute value",
	.scalar = "abs(x)",
	.exact = true,
	.deriv = {"sign(x)"},
	.sample = "f32[n=3, 4] in -8..8; f32[4] of 0 -0 nan -inf; i32[4] in -9..9",
};
OP(sign) {
	.schema = "sign(Tensor x) -> Tensor",
	.doc = "-1, 0 or 1; 0 for NaN",
	.scalar = "sign(x)",
	.complex = "zero = bit_and(x_re == 0, x_im == 0); r = hypot(select(zero, 1, x_re), x_im); "
		   "[select(zero, 0, x_re / r), select(zero, 0, x_im / r)]",
	.exact = true,
	.deriv = {"0"},
	.sample = "f32[n=3, 4] in -8..8; f32[4] of 0 -0 nan -inf; i32[4] in -9..9",
};
OP(floor) {
	.schema = "floor(Tensor x) -> Tensor",
	.doc = "rounded towards minus infinity",
	.scalar = "floor(x)",
	.exact = true,
	.deriv = {"0"},
	.sample = "f32[n=3, 4] in -8..8; f32[12] of -2.5 -1.5 -0.75 -0.5 -0.25 0 0.25 0.5 0.75 1.5 "
		  "2.5 3.5; i32[4] in -9..9",
};
OP(ceil) {
	.schema = "ceil(Tensor x) -> Tensor",
	.doc = "rounded towards infinity",
	.scalar = "ceil(x)",
	.exact = true,
	.deriv = {"0"},
	.sample = "f32[n=3, 4] in -8..8; f32[12] of -2.5 -1.5 -0.75 -0.5 -0.25 0 0.25 0.5 0.75 1.5 "
		  "2.5 3.5; i32[4] in -9..9",
};
OP(trunc) {
	.schema = "trunc(Tensor x) -> Tensor",
	.doc = "rounded towards zero",
	.scalar = "trunc(x)",
	.exact = true,
	.deriv = {"0"},
	.sample = "f32[n=3, 4] in -8..8; f32[12] of -2.5 -1.5 -0.75 -0.5 -0.25 0 0.25 0.5 0.75 1.5 "
		  "2.5 3.5; i32[4] in -9..9",
};
OP(nearest) {
	.schema = "nearest(Tensor a, Tensor low, Tensor high) -> Tensor",
	.doc = "a, at least low and at most high, rounded to the nearest i32, ties to even; "
	       "NaN gives low",
	.scalar = "convert[i32](rint(lesser(high, greater(a, low))))",
	.result = DT_i32,
	.sample = "f32[n=3, 4] in -8..8, f32[n, 4] in -5..-1, f32[n, 4] in 1..5; "
		  "f32[8] of nan inf -inf 0.5 1.5 -0.5 1e38 -7, f32[8] of -4 -4 -4 -4 -4 -4 -4 -4, "
		  "f32[8] of 6 6 6 6 6 6 6 6",
};
OP(round) {
	.schema = "round(Tensor x) -> Tensor",
	.doc = "rounded to the nearest integer, ties to even",
	.scalar = "rint(x)",
	.exact = true,
	.deriv = {"0"},
	.sample = "f32[n=3, 4] in -8..8; f32[12] of -2.5 -1.5 -0.75 -0.5 -0.25 0 0.25 0.5 0.75 1.5 "
		  "2.5 3.5; i32[4] in -9..9",
};
OP(sqrt) {
	.schema = "sqrt(Tensor x) -> Tensor",
	.doc = "square root, correctly rounded",
	.promote = PROMOTE_FLOAT,
	.scalar = "sqrt(x)",
	.complex = "up = x_re >= 0; t = sqrt(0.5 * (hypot(x_re, x_im) + select(up, x_re, -x_re))); "
		   "u = copysign(t, x_im); w = select(t == 0, x_im, 0.5 * x_im / select(t == 0, 1, "
		   "select(up, t, u))); [select(up, t, w), select(up, w, u)]",
	.deriv = {"0.5 / y"},
	.sample = "f32[n=3, 4] in 0.5..8; f32[4] of 0 -1 inf 1e-40",
};
OP(rsqrt) {
	.schema = "rsqrt(Tensor x) -> Tensor",
	.doc = "1 / sqrt(x)",
	.promote = PROMOTE_FLOAT,
	.scalar = "1 / sqrt(x)",
	.complex = "reciprocal(sqrt(x))",
	.deriv = {"-0.5 * y * y * y"},
	.sample = "f32[n=3, 4] in 0.5..8; f32[4] of 0 -1 inf -0",
};
OP(reciprocal) {
	.schema = "reciprocal(Tensor x) -> Tensor",
	.doc = "1 / x",
	.promote = PROMOTE_FLOAT,
	.scalar = "1 / x",
	.complex = "big = abs(x_im) <= abs(x_re); e = select(big, x_re, x_im); "
		   "r = select(big, x_im, x_re) / select(e == 0, 1, e); "
		   "d = select(big, x_re + x_im * r, x_re * r + x_im); "
		   "[select(big, 1, r) / d, -(select(big, r, 1) / d)]",
	.deriv = {"-y * y"},
	.sample = "f32[n=3, 4] in 0.5..8; f32[3] of 0 -1 inf",
};

/* ---- exponentials and logarithms ---- */

OP(exp) {
	.schema = "exp(Tensor x) -> Tensor",
	.doc = "e to the power x",
	.promote = PROMOTE_FLOAT,
	.scalar = "exp(x)",
	.complex = "e = exp(x_re); [e * cos(x_im), e * sin(x_im)]",
	.deriv = {"y"},
	.sample = "f32[n=3, 4] in -8..8; f32[6] of nan inf -inf 89 -104 0",
};
OP(exp2) {
	.schema = "exp2(Tensor x) -> Tensor",
	.doc = "2 to the power x",
	.promote = PROMOTE_FLOAT,
	.scalar = "exp2(x)",
	.complex = "exp(x * 0.6931471805599453)",
	.deriv = {"y * 0.6931471805599453"},
	.sample = "f32[n=3, 4] in -8..8; f32[6] of nan inf -inf 128 -150 0",
};
OP(expm1) {
	.schema = "expm1(Tensor x) -> Tensor",
	.doc = "exp(x) - 1",
	.promote = PROMOTE_FLOAT,
	.scalar = "expm1(x)",
	.complex = "h = sin(0.5 * x_im); [expm1(x_re) * cos(x_im) - 2.0 * h * h, exp(x_re) * "
		   "sin(x_im)]",
	.deriv = {"y + 1"},
	.sample = "f32[n=3, 4] in -8..8; f32[6] of nan inf -inf 89 -20 1e-6",
};
OP(log) {
	.schema = "log(Tensor x) -> Tensor",
	.doc = "natural logarithm",
	.promote = PROMOTE_FLOAT,
	.scalar = "log(x)",
	.complex = "[log(hypot(x_re, x_im)), atan2(x_im, x_re)]",
	.deriv = {"1 / x"},
	.sample = "f32[n=3, 4] in 0.1..8; f32[5] of 0 -1 inf nan 1e-40",
};
OP(log2) {
	.schema = "log2(Tensor x) -> Tensor",
	.doc = "logarithm to base 2",
	.promote = PROMOTE_FLOAT,
	.scalar = "log2(x)",
	.complex = "t = log(x); [real(t) * 1.4426950408889634, imag(t) * 1.4426950408889634]",
	.deriv = {"1.4426950408889634 / x"},
	.sample = "f32[n=3, 4] in 0.1..8; f32[5] of 0 -1 inf nan 8",
};
OP(log10) {
	.schema = "log10(Tensor x) -> Tensor",
	.doc = "logarithm to base 10",
	.promote = PROMOTE_FLOAT,
	.scalar = "log10(x)",
	.complex = "t = log(x); [real(t) * 0.4342944819032518, imag(t) * 0.4342944819032518]",
	.deriv = {"0.4342944819032518 / x"},
	.sample = "f32[n=3, 4] in 0.1..8; f32[5] of 0 -1 inf nan 1000",
};
OP(log1p) {
	.schema = "log1p(Tensor x) -> Tensor",
	.doc = "log(1 + x)",
	.promote = PROMOTE_FLOAT,
	.scalar = "log1p(x)",
	.complex = "u = x_re + 1; near = hypot(x_re, x_im) < 0.5; a = select(near, x_re, 0); "
		   "c = select(near, x_im, 0); [select(near, 0.5 * log1p(a * (a + 2) + c * c), "
		   "log(hypot(u, x_im))), atan2(x_im, u)]",
	.deriv = {"1 / (1 + x)"},
	.sample = "f32[n=3, 4] in -0.9..8; f32[5] of -1 -2 inf nan 1e-6",
};
OP(sigmoid) {
	.schema = "sigmoid(Tensor x) -> Tensor",
	.doc = "1 / (1 + exp(-x))",
	.promote = PROMOTE_FLOAT,
	.scalar = "sigmoid(x)",
	.complex = "reciprocal(1 + exp(-x))",
	.deriv = {"y * (1 - y)"},
	.sample = "f32[n=3, 4] in -8..8; f32[4] of -100 100 nan 0",
};

/* ---- trigonometric and hyperbolic ---- */

OP(sin) {
	.schema = "sin(Tensor x) -> Tensor",
	.doc = "sine",
	.promote = PROMOTE_FLOAT,
	.scalar = "sin(x)",
	.complex = "[sin(x_re) * cosh(x_im), cos(x_re) * sinh(x_im)]",
	.deriv = {"cos(x)"},
	.sample = "f32[n=3, 4] in -8..8; f32[4] of 1000.5 -77777 1e10 0",
};
OP(cos) {
	.schema = "cos(Tensor x) -> Tensor",
	.doc = "cosine",
	.promote = PROMOTE_FLOAT,
	.scalar = "cos(x)",
	.complex = "[cos(x_re) * cosh(x_im), -(sin(x_re) * sinh(x_im))]",
	.deriv = {"-sin(x)"},
	.sample = "f32[n=3, 4] in -8..8; f32[4] of 1000.5 -77777 1e10 0",
};
OP(tan) {
	.schema = "tan(Tensor x) -> Tensor",
	.doc = "tangent",
	.promote = PROMOTE_FLOAT,
	.scalar = "tan(x)",
	.complex = "t = tanh(complex(-x_im, x_re)); [imag(t), -real(t)]",
	.deriv = {"1 + y*y"},
	.sample = "f32[n=3, 4] in -1.4..1.4; f32[4] of 1000.5 -77777 1e10 0",
};
OP(asin) {
	.schema = "asin(Tensor x) -> Tensor",
	.doc = "arc sine",
	.promote = PROMOTE_FLOAT,
	.scalar = "asin(x)",
	.complex = "r = sqrt(complex(1 - x_re, -x_im)); s = sqrt(complex(1 + x_re, x_im)); "
		   "[atan2(x_re, real(r) * real(s) - imag(r) * imag(s)), asinh(real(r) * imag(s) - "
		   "imag(r) * real(s))]",
	.deriv = {"rsqrt(1 - x*x)"},
	.sample = "f32[n=3, 4] in -0.9..0.9; f32[5] of 1.5 -2 1 -1 0",
};
OP(acos) {
	.schema = "acos(Tensor x) -> Tensor",
	.doc = "arc cosine",
	.promote = PROMOTE_FLOAT,
	.scalar = "acos(x)",
	.complex = "r = sqrt(complex(1 - x_re, -x_im)); s = sqrt(complex(1 + x_re, x_im)); "
		   "[2 * atan2(real(r), real(s)), asinh(real(s) * imag(r) - imag(s) * real(r))]",
	.deriv = {"-rsqrt(1 - x*x)"},
	.sample = "f32[n=3, 4] in -0.9..0.9; f32[5] of 1.5 -2 1 -1 0",
};
OP(atan) {
	.schema = "atan(Tensor x) -> Tensor",
	.doc = "arc tangent",
	.promote = PROMOTE_FLOAT,
	.scalar = "atan(x)",
	.complex = "t = atanh(complex(-x_im, x_re)); [imag(t), -real(t)]",
	.deriv = {"1 / (1 + x*x)"},
	.sample = "f32[n=3, 4] in -8..8; f32[4] of inf -inf 0.001 1e6",
};
OP(sinh) {
	.schema = "sinh(Tensor x) -> Tensor",
	.doc = "hyperbolic sine",
	.promote = PROMOTE_FLOAT,
	.scalar = "sinh(x)",
	.complex = "[sinh(x_re) * cos(x_im), cosh(x_re) * sin(x_im)]",
	.deriv = {"cosh(x)"},
	.sample = "f32[n=3, 4] in -8..8; f32[4] of 0.001 -30 30 inf",
};
OP(cosh) {
	.schema = "cosh(Tensor x) -> Tensor",
	.doc = "hyperbolic cosine",
	.promote = PROMOTE_FLOAT,
	.scalar = "cosh(x)",
	.complex = "[cosh(x_re) * cos(x_im), sinh(x_re) * sin(x_im)]",
	.deriv = {"sinh(x)"},
	.sample = "f32[n=3, 4] in -8..8; f32[4] of 0.001 -30 30 inf",
};
OP(tanh) {
	.schema = "tanh(Tensor x) -> Tensor",
	.doc = "hyperbolic tangent",
	.promote = PROMOTE_FLOAT,
	.scalar = "tanh(x)",
	/* (sinh cosh + i sin cos) / (sinh^2 + cos^2), without a difference; from 1 on divided by
	 * sinh^2, in terms of w = exp(-2 |x|). Neither form has infinite derivatives where the
	 * other is chosen. */
	.complex = "b = gt(abs(x_re), 1); c = cos(x_im); i = sin(x_im); "
		   "r = select(b, 0, x_re); s = sinh(r); d = s * s + c * c; "
		   "w = exp(-2 * select(b, abs(x_re), 1)); m = 1 - w; k = 4 * w / (m * m); "
		   "e = 1 + k * c * c; h = (1 + w) / (m * e); [select(b, select(lt(x_re, 0), -h, "
		   "h), s * cosh(r) / d), select(b, k * i * c / e, i * c / d)]",
	.deriv = {"1 - y*y"},
	.sample = "f32[n=3, 4] in -8..8; f32[4] of 0.001 -30 30 inf",
};
OP(asinh) {
	.schema = "asinh(Tensor x) -> Tensor",
	.doc = "inverse hyperbolic sine",
	.promote = PROMOTE_FLOAT,
	.scalar = "asinh(x)",
	.complex = "t = asin(complex(-x_im, x_re)); [imag(t), -real(t)]",
	.deriv = {"rsqrt(x*x + 1)"},
	.sample = "f32[n=3, 4] in -8..8; f32[4] of 0.001 -1e10 1e10 inf",
};
OP(acosh) {
	.schema = "acosh(Tensor x) -> Tensor",
	.doc = "inverse hyperbolic cosine",
	.promote = PROMOTE_FLOAT,
	.scalar = "acosh(x)",
	.complex = "r = sqrt(complex(x_re - 1, x_im)); s = sqrt(complex(x_re + 1, x_im)); "
		   "[asinh(real(r) * real(s) + imag(r) * imag(s)), 2 * atan2(imag(r), real(s))]",
	.deriv = {"rsqrt(x - 1) * rsqrt(x + 1)"},
	.sample = "f32[n=3, 4] in 1.1..8; f32[4] of 0.5 1 1e10 inf",
};
OP(atanh) {
	.schema = "atanh(Tensor x) -> Tensor",
	.doc = "inverse hyperbolic tangent",
	.promote = PROMOTE_FLOAT,
	.scalar = "atanh(x)",
	.complex = "up = x_re >= 0; a = select(up, x_re, -x_re); u = 1 - a; i2 = x_im * x_im; "
		   "v = 0.25 * log1p(4 * a / (u * u + i2)); [select(up, v, -v), 0.5 * atan2(2 * "
		   "x_im, u * (1 + a) - i2)]",
	.deriv = {"1 / (1 - x*x)"},
	.sample = "f32[n=3, 4] in -0.9..0.9; f32[4] of 1 -1 2 0.001",
};

/* ---- error and gamma functions ---- */

OP(erf) {
	.schema = "erf(Tensor x) -> Tensor",
	.doc = "error function",
	.promote = PROMOTE_FLOAT,
	.scalar = "erf(x)",
	.deriv = {"1.1283791670955126 * exp(-x*x)"},
	.sample = "f32[n=3, 4] in -3..3; f32[4] of 0.001 -6 9 inf",
};
OP(erfc) {
	.schema = "erfc(Tensor x) -> Tensor",
	.doc = "1 - erf(x)",
	.promote = PROMOTE_FLOAT,
	.scalar = "erfc(x)",
	.deriv = {"-1.1283791670955126 * exp(-x*x)"},
	.sample = "f32[n=3, 4] in -3..3; f32[4] of 0.001 -6 9 inf",
};
OP(erfcx) {
	.schema = "erfcx(Tensor x) -> Tensor",
	.doc = "exp(x*x) erfc(x)",
	.promote = PROMOTE_FLOAT,
	.scalar = "erfcx(x)",
	.deriv = {"2.0 * x * y - 1.1283791670955126"},
	.sample = "f32[n=3, 4] in -3..3; f32[4] of 0.7 -6 9 40; f32[3] of -inf inf -9",
};
OP(erfinv) {
	.schema = "erfinv(Tensor x) -> Tensor",
	.doc = "inverse of erf",
	.promote = PROMOTE_FLOAT,
	.scalar = "erfinv(x)",
	.deriv = {"0.886226925452758 * exp(y*y)"},
	.sample = "f32[n=3, 4] in -0.9..0.9; f32[4] of 1 -1 2 0.9375",
};
OP(lgamma) {
	.schema = "lgamma(Tensor x) -> Tensor",
	.doc = "logarithm of |gamma(x)|",
	.promote = PROMOTE_FLOAT,
	.scalar = "lgamma(x)",
	.deriv = {"digamma(x)"},
	.sample = "f32[n=3, 4] in 0.2..8; f32[8] of -0.5 -2.5 1e6 0 -3 12.5 40 1e-6",
};
OP(digamma) {
	.schema = "digamma(Tensor x) -> Tensor",
	.doc = "derivative of lgamma",
	.promote = PROMOTE_FLOAT,
	.scalar = "digamma(x)",
	.deriv = {"trigamma(x)"},
	.sample = "f32[n=3, 4] in 0.2..8; f32[8] of -0.5 -2.5 1e6 0 -0.25 12.5 40 1e-6",
};
/* Computes the cotangent: trigamma is the polygamma of order 1. */
static bool adjoint_trigamma(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	Node x = node_in(b->g, n, 0);
	g[0] = b_bin(b, OP_mul, ct[0],
		     b_call(b, OP_aten_polygamma, &x, 1,
			    (Attr[]){attr_int(b->g->ir, 2), attr_none()}, 2));
	return g[0].i;
}

OP(trigamma) {
	.schema = "trigamma(Tensor x) -> Tensor",
	.doc = "derivative of digamma",
	.promote = PROMOTE_FLOAT,
	.scalar = "trigamma(x)",
	.no_deriv = "polygamma of order 2 is not in the table",
	.adjoint = adjoint_trigamma,
	.sample = "f32[n=3, 4] in 0.2..8; f32[9] of -0.5 -2.5 1e6 0 -0.25 12.5 40 1e-6 9.9375",
};

OP(i0) {
	.schema = "i0(Tensor x) -> Tensor",
	.doc = "modified Bessel function of the first kind, order 0",
	.promote = PROMOTE_FLOAT,
	.scalar = "i0(x)",
	.deriv = {"i1(x)"},
	.sample = "f32[n=3, 4] in -12..12; f32[3] of 0 0.5 -40",
};
OP(i0e) {
	.schema = "i0e(Tensor x) -> Tensor",
	.doc = "i0(x) * exp(-|x|)",
	.promote = PROMOTE_FLOAT,
	.scalar = "i0e(x)",
	.deriv = {"i1e(x) - sign(x) * y"},
	.sample = "f32[n=3, 4] in -12..12; f32[4] of 0 0.5 -40 300",
};
OP(i1) {
	.schema = "i1(Tensor x) -> Tensor",
	.doc = "modified Bessel function of the first kind, order 1",
	.promote = PROMOTE_FLOAT,
	.scalar = "i1(x)",
	.deriv = {"i0(x) - select(eq(x, 0), 0.5, y / select(eq(x, 0), 1, x))"},
	.sample = "f32[n=3, 4] in 0.5..12; f32[4] of 0 0.5 -7 -40",
};
OP(i1e) {
	.schema = "i1e(Tensor x) -> Tensor",
	.doc = "i1(x) * exp(-|x|)",
	.promote = PROMOTE_FLOAT,
	.scalar = "i1e(x)",
	.deriv = {"select(eq(x, 0), 0.5, i0e(x) - y * (sign(x) + 1 / select(eq(x, 0), 1, x)))"},
	.sample = "f32[n=3, 4] in 0.5..12; f32[4] of 0 0.5 -40 300; f32[3] of 0 -0.5 3",
};
OP(igamma) {
	.schema = "igamma(Tensor a, Tensor x) -> Tensor",
	.doc = "regularised lower incomplete gamma function",
	.promote = PROMOTE_FLOAT,
	.scalar = "igamma(a, x)",
	.deriv = {NULL, "exp((a - 1) * log(x) - x - lgamma(a))"},
	.no_deriv = "none by a in closed form, nor in PyTorch",
	.sample = "f32[n=3, 4] in 0.1..30, f32[n, 4] in 0.1..30; f32[6] of 0 1 0 30 2 100, "
		  "f32[6] of 1 0 0 28 inf 101",
};
OP(igammac) {
	.schema = "igammac(Tensor a, Tensor x) -> Tensor",
	.doc = "1 - igamma(a, x)",
	.promote = PROMOTE_FLOAT,
	.scalar = "igammac(a, x)",
	.deriv = {NULL, "-exp((a - 1) * log(x) - x - lgamma(a))"},
	.no_deriv = "none by a in closed form, nor in PyTorch",
	.sample = "f32[n=3, 4] in 0.1..30, f32[n, 4] in 0.1..30; f32[6] of 0 1 0 30 2 100, "
		  "f32[6] of 1 0 0 28 inf 101",
};

/* ---- comparisons and predicates ---- */

OP(eq) {
	.schema = "eq(Tensor a, Tensor b) -> Tensor",
	.doc = "a == b",
	.commutes = true,
	.scalar = "eq(a, b)",
	.parts = parts_eq,
	.result = DT_bool,
	.sample = "f32[n=3, 4] in -8..8, f32[n, 4] in -8..8; "
		  "f32[n=2, 6] of -1 -1 0 1 2 -3, f32[n, 6] of -1 0 0 0.5 nan -2",
};
OP(ne) {
	.schema = "ne(Tensor a, Tensor b) -> Tensor",
	.doc = "a != b; true with NaN",
	.commutes = true,
	.scalar = "ne(a, b)",
	.parts = parts_ne,
	.result = DT_bool,
	.sample = "f32[n=3, 4] in -8..8, f32[n, 4] in -8..8; "
		  "f32[n=2, 6] of -1 -1 0 1 2 -3, f32[n, 6] of -1 0 0 0.5 nan -2",
};
OP(lt) {
	.schema = "lt(Tensor a, Tensor b) -> Tensor",
	.doc = "a < b",
	.scalar = "lt(a, b)",
	.result = DT_bool,
	.sample = "f32[n=3, 4] in -8..8, f32[n, 4] in -8..8; "
		  "f32[n=2, 6] of -1 -1 0 1 2 -3, f32[n, 6] of -1 0 0 0.5 nan -2",
};
OP(le) {
	.schema = "le(Tensor a, Tensor b) -> Tensor",
	.doc = "a <= b",
	.scalar = "le(a, b)",
	.result = DT_bool,
	.sample = "f32[n=3, 4] in -8..8, f32[n, 4] in -8..8; "
		  "f32[n=2, 6] of -1 -1 0 1 2 -3, f32[n, 6] of -1 0 0 0.5 nan -2",
};
OP(gt) {
	.schema = "gt(Tensor a, Tensor b) -> Tensor",
	.doc = "a > b",
	.scalar = "gt(a, b)",
	.result = DT_bool,
	.sample = "f32[n=3, 4] in -8..8, f32[n, 4] in -8..8; "
		  "f32[n=2, 6] of -1 -1 0 1 2 -3, f32[n, 6] of -1 0 0 0.5 nan -2",
};
OP(ge) {
	.schema = "ge(Tensor a, Tensor b) -> Tensor",
	.doc = "a >= b",
	.scalar = "ge(a, b)",
	.result = DT_bool,
	.sample = "f32[n=3, 4] in -8..8, f32[n, 4] in -8..8; "
		  "f32[n=2, 6] of -1 -1 0 1 2 -3, f32[n, 6] of -1 0 0 0.5 nan -2",
};
OP(isnan) {
	.schema = "isnan(Tensor x) -> Tensor",
	.doc = "x is NaN",
	.scalar = "isnan(x)",
	.result = DT_bool,
	.sample = "f32[n=3, 4] in -8..8; f32[8] of nan inf -inf 0 1 -1 -0 1e38",
};
OP(isinf) {
	.schema = "isinf(Tensor x) -> Tensor",
	.doc = "x is infinite",
	.scalar = "isinf(x)",
	.result = DT_bool,
	.sample = "f32[n=3, 4] in -8..8; f32[8] of nan inf -inf 0 1 -1 -0 1e38",
};
OP(isfinite) {
	.schema = "isfinite(Tensor x) -> Tensor",
	.doc = "x is neither infinite nor NaN",
	.scalar = "isfinite(x)",
	.result = DT_bool,
	.sample = "f32[n=3, 4] in -8..8; f32[8] of nan inf -inf 0 1 -1 -0 1e38",
};
OP(signbit) {
	.schema = "signbit(Tensor x) -> Tensor",
	.doc = "the sign bit: true for -0",
	.scalar = "signbit(x)",
	.result = DT_bool,
	.sample = "f32[n=3, 4] in -8..8; f32[8] of nan inf -inf 0 1 -1 -0 1e38",
};
OP(select) {
	.schema = "select(Tensor cond, Tensor a, Tensor b) -> Tensor",
	.doc = "cond ? a : b",
	.scalar = "select(cond, a, b)",
	.exact = true,
	.linear = LINEAR_TOGETHER,
	.linear_in = 2 | 4,
	.deriv = {NULL, "select(cond, 1, 0)", "select(cond, 0, 1)"},
	.sample = "bool[n=3, 4], f32[n, 4] in -8..8, f32[n, 4] in -8..8; "
		  "bool[3], i32[3] in -9..9, i32[3] in -9..9",
};

/* ---- bits ---- */

OP(bit_and) {
	.schema = "bit_and(Tensor a, Tensor b) -> Tensor",
	.doc = "bitwise and; logical on bool",
	.commutes = true,
	.scalar = "and(a, b)",
	.sample = "i32[n=3, 4] in -99..99, i32[n, 4] in -99..99; bool[4] of 0 0 1 1, "
		  "bool[4] of 0 1 0 1",
};
OP(bit_or) {
	.schema = "bit_or(Tensor a, Tensor b) -> Tensor",
	.doc = "bitwise or; logical on bool",
	.commutes = true,
	.scalar = "or(a, b)",
	.sample = "i32[n=3, 4] in -99..99, i32[n, 4] in -99..99; bool[4] of 0 0 1 1, "
		  "bool[4] of 0 1 0 1",
};
OP(bit_xor) {
	.schema = "bit_xor(Tensor a, Tensor b) -> Tensor",
	.doc = "bitwise xor; logical on bool",
	.commutes = true,
	.scalar = "xor(a, b)",
	.sample = "i32[n=3, 4] in -99..99, i32[n, 4] in -99..99; bool[4] of 0 0 1 1, "
		  "bool[4] of 0 1 0 1",
};
OP(bit_not) {
	.schema = "bit_not(Tensor x) -> Tensor",
	.doc = "bitwise complement; logical on bool",
	.scalar = "not(x)",
	.sample = "i32[n=3, 4] in -99..99; bool[2] of 0 1",
};
OP(shift_left) {
	.schema = "shift_left(Tensor a, Tensor b) -> Tensor",
	.doc = "a * 2**b; 0 when b is negative or too large",
	.scalar = "shl(a, b)",
	.sample = "i64[n=3, 4] in -9..9, i64[n, 4] in 0..7; i32[4] of 1 -3 5 7, "
		  "i32[4] of 31 2 0 30",
};
OP(shift_right) {
	.schema = "shift_right(Tensor a, Tensor b) -> Tensor",
	.doc = "a / 2**b towards minus infinity; the sign when b is negative or too large",
	.scalar = "shr(a, b)",
	.sample = "i64[n=3, 4] in -9..9, i64[n, 4] in 0..7; i32[4] of -8 100 7 -1, "
		  "i32[4] of 31 2 0 5",
};
