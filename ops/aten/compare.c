/* ATen comparisons, logic, bit operations, selection and clamping. */
#include "ops/aten/priv.h"

#include <math.h>

#include "ops/rules/batch.h"

OP(aten_eq_Tensor){
	.schema = "aten.eq.Tensor(Tensor self, Tensor other) -> Tensor",
	.aliases = "prims.eq",
	.promote = PROMOTE_BOOL,
	.expand = "eq(self, other)",
	.sample = "f32[n=3, 4] of -1 0 1 2 nan 0.5 -2 3 0 -0.5 4 1, f32[4] of -1 0.5 1 nan; "
		  "i32[n=3, 4] in -2..2, i32[4] in -2..2; i64[4] in -2..2, f32[4] in -2..2",
	.overloads = (const Overload[]){
		{.schema = "aten.eq.Scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "f32[n=3, 4] of -1 0 1 2 nan 0.5 -2 3 0 -0.5 4 1, other=1; "
			   "i32[4] in -2..2, other=0.5; c64[3] of 1 2 3 4 5 6, "
			   "other=complex(3, 4)"},
	},
};
OP(aten_ne_Tensor){
	.schema = "aten.ne.Tensor(Tensor self, Tensor other) -> Tensor",
	.aliases = "prims.ne",
	.promote = PROMOTE_BOOL,
	.expand = "ne(self, other)",
	.sample = "f32[n=3, 4] of -1 0 1 2 nan 0.5 -2 3 0 -0.5 4 1, f32[4] of -1 0.5 1 nan; "
		  "i32[n=3, 4] in -2..2, i32[4] in -2..2; i64[4] in -2..2, f32[4] in -2..2",
	.overloads = (const Overload[]){
		{.schema = "aten.ne.Scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "f32[n=3, 4] of -1 0 1 2 nan 0.5 -2 3 0 -0.5 4 1, other=1; "
			   "i32[4] in -2..2, other=0.5"},
		{.schema = "aten.not_equal.Tensor(Tensor self, Tensor other) -> Tensor"},
		{.schema = "aten.not_equal.Scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "f32[n=3, 4] of -1 0 1 2 nan 0.5 -2 3 0 -0.5 4 1, other=1; "
			   "i32[4] in -2..2, other=0.5"},
	},
};
OP(aten_lt_Tensor){
	.schema = "aten.lt.Tensor(Tensor self, Tensor other) -> Tensor",
	.aliases = "prims.lt",
	.promote = PROMOTE_BOOL,
	.expand = "lt(self, other)",
	.sample = "f32[n=3, 4] of -1 0 1 2 nan 0.5 -2 3 0 -0.5 4 1, f32[4] of -1 0.5 1 nan; "
		  "i32[n=3, 4] in -2..2, i32[4] in -2..2; i64[4] in -2..2, f32[4] in -2..2",
	.overloads = (const Overload[]){
		{.schema = "aten.lt.Scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "f32[n=3, 4] of -1 0 1 2 nan 0.5 -2 3 0 -0.5 4 1, other=1; "
			   "i32[4] in -2..2, other=0.5"},
		{.schema = "aten.less.Tensor(Tensor self, Tensor other) -> Tensor"},
		{.schema = "aten.less.Scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "f32[n=3, 4] of -1 0 1 2 nan 0.5 -2 3 0 -0.5 4 1, other=1; "
			   "i32[4] in -2..2, other=0.5"},
	},
};
OP(aten_le_Tensor){
	.schema = "aten.le.Tensor(Tensor self, Tensor other) -> Tensor",
	.aliases = "prims.le",
	.promote = PROMOTE_BOOL,
	.expand = "le(self, other)",
	.sample = "f32[n=3, 4] of -1 0 1 2 nan 0.5 -2 3 0 -0.5 4 1, f32[4] of -1 0.5 1 nan; "
		  "i32[n=3, 4] in -2..2, i32[4] in -2..2; i64[4] in -2..2, f32[4] in -2..2",
	.overloads = (const Overload[]){
		{.schema = "aten.le.Scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "f32[n=3, 4] of -1 0 1 2 nan 0.5 -2 3 0 -0.5 4 1, other=1; "
			   "i32[4] in -2..2, other=0.5"},
		{.schema = "aten.less_equal.Tensor(Tensor self, Tensor other) -> Tensor"},
		{.schema = "aten.less_equal.Scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "f32[n=3, 4] of -1 0 1 2 nan 0.5 -2 3 0 -0.5 4 1, other=1; "
			   "i32[4] in -2..2, other=0.5"},
	},
};
OP(aten_gt_Tensor){
	.schema = "aten.gt.Tensor(Tensor self, Tensor other) -> Tensor",
	.aliases = "prims.gt",
	.promote = PROMOTE_BOOL,
	.expand = "gt(self, other)",
	.sample = "f32[n=3, 4] of -1 0 1 2 nan 0.5 -2 3 0 -0.5 4 1, f32[4] of -1 0.5 1 nan; "
		  "i32[n=3, 4] in -2..2, i32[4] in -2..2; i64[4] in -2..2, f32[4] in -2..2",
	.overloads = (const Overload[]){
		{.schema = "aten.gt.Scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "f32[n=3, 4] of -1 0 1 2 nan 0.5 -2 3 0 -0.5 4 1, other=1; "
			   "i32[4] in -2..2, other=0.5"},
		{.schema = "aten.greater.Tensor(Tensor self, Tensor other) -> Tensor"},
		{.schema = "aten.greater.Scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "f32[n=3, 4] of -1 0 1 2 nan 0.5 -2 3 0 -0.5 4 1, other=1; "
			   "i32[4] in -2..2, other=0.5"},
	},
};
OP(aten_ge_Tensor){
	.schema = "aten.ge.Tensor(Tensor self, Tensor other) -> Tensor",
	.aliases = "prims.ge",
	.promote = PROMOTE_BOOL,
	.expand = "ge(self, other)",
	.sample = "f32[n=3, 4] of -1 0 1 2 nan 0.5 -2 3 0 -0.5 4 1, f32[4] of -1 0.5 1 nan; "
		  "i32[n=3, 4] in -2..2, i32[4] in -2..2; i64[4] in -2..2, f32[4] in -2..2",
	.overloads = (const Overload[]){
		{.schema = "aten.ge.Scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "f32[n=3, 4] of -1 0 1 2 nan 0.5 -2 3 0 -0.5 4 1, other=1; "
			   "i32[4] in -2..2, other=0.5"},
		{.schema = "aten.greater_equal.Tensor(Tensor self, Tensor other) -> Tensor"},
		{.schema = "aten.greater_equal.Scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "f32[n=3, 4] of -1 0 1 2 nan 0.5 -2 3 0 -0.5 4 1, other=1; "
			   "i32[4] in -2..2, other=0.5"},
	},
};

static Node build_isclose(Build *b, Node n)
{
	Node x = arg(b, n, "self"), y = arg(b, n, "other");
	double rtol = node_float(b->g, n, "rtol"), atol = node_float(b->g, n, "atol");
	if (!aten_check_arg_within(b, n, "rtol", 0, INFINITY) ||
	    !aten_check_arg_within(b, n, "atol", 0, INFINITY))
		return (Node){0};
	Node close = b_bin(b, OP_eq, x, y);
	bool ints = !dtype_is_inexact(aten_dtype(b, x));
	if (!ints && node_bool(b->g, n, "equal_nan")) {
		Node nan = b_bin(b, OP_bit_and, b_bin(b, OP_ne, x, x), b_bin(b, OP_ne, y, y));
		close = b_bin(b, OP_bit_or, close, nan);
	}
	if (rtol == 0 && atol == 0)
		return close;
	Node fx = aten_to_float(b, x), fy = aten_to_float(b, y);
	Node allowed = b_bin_scalar(b, OP_mul, aten_abs(b, fy), rtol);
	allowed = b_bin_scalar(b, OP_add, allowed, atol);
	Node diff = aten_abs(b, b_bin(b, OP_sub, fx, fy));
	Node in = b_bin(b, OP_le, diff, allowed);
	in = b_bin(b, OP_bit_and, in, b_un(b, OP_isfinite, diff));
	return b_bin(b, OP_bit_or, close, in);
}
OP(aten_isclose){
	.schema = "aten.isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, "
		  "bool equal_nan=False) -> Tensor",
	.build = build_isclose,
	.sample = "f32[n=2, 4] of 1 1.000005 1.01 nan inf -inf 100 0, f32[4] of 1 1 1 nan; "
		  "f32[n=2, 4] of 1 1.1 1.3 nan inf -inf 100 0, f32[n, 4] of 1 1 1 nan inf inf 80 "
		  "0.05, rtol=0.2, atol=0.0625, equal_nan=true; i32[3] of 1 2 3, i32[3] of 1 2 4; "
		  "c64[4] of 1 1 1 nan, c64[4] of 1 1.000005 1.1 nan, equal_nan=true; "
		  "c64[3] of 1 2 inf, c64[3] of 1 2.1 inf",
};

/* ---- logic on truth values ---- */

static Node logical(Build *b, Node n, int op)
{
	Node x = aten_truth(b, arg(b, n, "self"));
	return b_bin(b, (Op)op, x, aten_truth(b, arg(b, n, "other")));
}

static Node build_logical_not(Build *b, Node n)
{
	return b_un(b, OP_bit_not, aten_truth(b, arg(b, n, "self")));
}
OP(aten_logical_and){
	.schema = "aten.logical_and(Tensor self, Tensor other) -> Tensor",
	.build_as = {logical, OP_bit_and},
	.sample = "f32[n=2, 4] of 0 0 1 -2 0 3 0.5 0, f32[4] of 0 1 0 2; "
		  "bool[4] of 0 0 1 1, i32[4] of 0 2 0 3",
};
OP(aten_logical_or){
	.schema = "aten.logical_or(Tensor self, Tensor other) -> Tensor",
	.build_as = {logical, OP_bit_or},
	.sample = "f32[n=2, 4] of 0 0 1 -2 0 3 0.5 0, f32[4] of 0 1 0 2; "
		  "bool[4] of 0 0 1 1, i32[4] of 0 2 0 3",
};
OP(aten_logical_xor){
	.schema = "aten.logical_xor(Tensor self, Tensor other) -> Tensor",
	.build_as = {logical, OP_bit_xor},
	.sample = "f32[n=2, 4] of 0 0 1 -2 0 3 0.5 0, f32[4] of 0 1 0 2; "
		  "bool[4] of 0 0 1 1, i32[4] of 0 2 0 3",
};
OP(aten_logical_not){
	.schema = "aten.logical_not(Tensor self) -> Tensor",
	.build = build_logical_not,
	.sample = "f32[n=2, 4] of 0 0 1 -2 nan 3 0.5 0; bool[2] of 0 1; i32[3] of 0 1 -2",
};

/* ---- bits ---- */

OP(aten_bitwise_not){
	.schema = "aten.bitwise_not(Tensor self) -> Tensor",
	.aliases = "prims.bitwise_not",
	.expand = "bit_not(self)",
	.sample = "i32[n=3, 4] in -99..99; bool[2] of 0 1; u8[3] in 0..255",
};
OP(aten_bitwise_and_Tensor){
	.schema = "aten.bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor",
	.aliases = "prims.bitwise_and",
	.promote = PROMOTE_DEFAULT,
	.expand = "bit_and(self, other)",
	.sample = "i32[n=3, 4] in -99..99, i32[4] in -99..99; bool[4] of 0 0 1 1, "
		  "bool[4] of 0 1 0 1",
	.overloads = (const Overload[]){
		{.schema = "aten.bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "i32[n=3, 4] in -99..99, other=29"},
		{.schema = "aten.__and__.Tensor(Tensor self, Tensor other) -> Tensor"},
		{.schema = "aten.__and__.Scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "i32[n=3, 4] in -99..99, other=29"},
		{.schema = "aten.bitwise_and.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
		 .sample = "self=29, i32[n=3, 4] in -99..99"},
	},
};
OP(aten_bitwise_or_Tensor){
	.schema = "aten.bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor",
	.aliases = "prims.bitwise_or",
	.promote = PROMOTE_DEFAULT,
	.expand = "bit_or(self, other)",
	.sample = "i32[n=3, 4] in -99..99, i32[4] in -99..99; bool[4] of 0 0 1 1, "
		  "bool[4] of 0 1 0 1",
	.overloads = (const Overload[]){
		{.schema = "aten.bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "i32[n=3, 4] in -99..99, other=29"},
		{.schema = "aten.__or__.Tensor(Tensor self, Tensor other) -> Tensor"},
		{.schema = "aten.__or__.Scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "i32[n=3, 4] in -99..99, other=29"},
		{.schema = "aten.bitwise_or.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
		 .sample = "self=29, i32[n=3, 4] in -99..99"},
	},
};
OP(aten_bitwise_xor_Tensor){
	.schema = "aten.bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor",
	.aliases = "prims.bitwise_xor",
	.promote = PROMOTE_DEFAULT,
	.expand = "bit_xor(self, other)",
	.sample = "i32[n=3, 4] in -99..99, i32[4] in -99..99; bool[4] of 0 0 1 1, "
		  "bool[4] of 0 1 0 1",
	.overloads = (const Overload[]){
		{.schema = "aten.bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "i32[n=3, 4] in -99..99, other=29"},
		{.schema = "aten.__xor__.Tensor(Tensor self, Tensor other) -> Tensor"},
		{.schema = "aten.__xor__.Scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "i32[n=3, 4] in -99..99, other=29"},
		{.schema = "aten.bitwise_xor.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
		 .sample = "self=29, i32[n=3, 4] in -99..99"},
	},
};
OP(aten_bitwise_left_shift_Tensor){
	.schema = "aten.bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor",
	.aliases = "prims.shift_left",
	.promote = PROMOTE_DEFAULT,
	.expand = "shift_left(self, other)",
	.sample = "i32[n=3, 4] in -99..99, i32[4] in 0..5",
	.overloads = (const Overload[]){
		{.schema = "aten.bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> "
			   "Tensor",
		 .sample = "i32[n=3, 4] in -99..99, other=3"},
		{.schema = "aten.__lshift__.Tensor(Tensor self, Tensor other) -> Tensor"},
		{.schema = "aten.__lshift__.Scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "i32[n=3, 4] in -99..99, other=3"},
		{.schema = "aten.bitwise_left_shift.Scalar_Tensor(Scalar self, Tensor other) -> "
			   "Tensor",
		 .sample = "self=-29, i32[n=3, 4] in 0..5"},
	},
};
OP(aten_bitwise_right_shift_Tensor){
	.schema = "aten.bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor",
	.aliases = "prims.shift_right_arithmetic",
	.promote = PROMOTE_DEFAULT,
	.expand = "shift_right(self, other)",
	.sample = "i32[n=3, 4] in -99..99, i32[4] in 0..5",
	.overloads = (const Overload[]){
		{.schema = "aten.bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> "
			   "Tensor",
		 .sample = "i32[n=3, 4] in -99..99, other=3"},
		{.schema = "aten.__rshift__.Tensor(Tensor self, Tensor other) -> Tensor"},
		{.schema = "aten.__rshift__.Scalar(Tensor self, Scalar other) -> Tensor",
		 .sample = "i32[n=3, 4] in -99..99, other=3"},
		{.schema = "aten.bitwise_right_shift.Scalar_Tensor(Scalar self, Tensor other) -> "
			   "Tensor",
		 .sample = "self=-29, i32[n=3, 4] in 0..5"},
	},
};

/* ---- selection ---- */

static Node build_where(Build *b, Node n)
{
	Node c = aten_truth(b, arg(b, n, "condition"));
	return b_select(b, c, arg(b, n, "self"), arg(b, n, "other"));
}

static Node beside(Build *b, Node n, const char *name, Node x)
{
	const Attr *a = node_attr(b->g, n, name);
	return aten_scalar_factor(b, a, aten_scalar_dtype(aten_dtype(b, x), a));
}

static Node build_where_self_scalar(Build *b, Node n)
{
	Node c = aten_truth(b, arg(b, n, "condition")), y = arg(b, n, "other");
	return b_select(b, c, beside(b, n, "self", y), y);
}

static Node build_where_other_scalar(Build *b, Node n)
{
	Node c = aten_truth(b, arg(b, n, "condition")), x = arg(b, n, "self");
	return b_select(b, c, x, beside(b, n, "other", x));
}

static Node build_where_scalars(Build *b, Node n)
{
	Node c = aten_truth(b, arg(b, n, "condition"));
	const Attr *x = node_attr(b->g, n, "self"), *y = node_attr(b->g, n, "other");
	DType d = dtype_promote(attr_weak_dtype(x), attr_weak_dtype(y));
	if (dtype_is_inexact(d)) /* PyTorch's default dtype */
		d = aten_result_dtype(b, n, 0, d);
	Node yes = aten_scalar_as(b, node_attr(b->g, n, "self"), d);
	return b_select(b, c, yes, aten_scalar_as(b, node_attr(b->g, n, "other"), d));
}
OP(aten_where_self){
	.schema = "aten.where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
	.build = build_where,
	.sample = "bool[n=3, 4], f32[n, 1], f32[4]; bool[n=3, 4], i32[n, 1] in -9..9, f32[4]; "
		  "bool[3], i32[3] in -9..9, i64[]",
	.overloads = (const Overload[]){
		{.schema = "aten.where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> "
			   "Tensor",
		 .build = build_where_self_scalar,
		 .sample = "bool[n=3, 4], self=1.5, f32[4]; bool[3], self=2, i32[3] in -9..9; "
			   "bool[n=3, 4], self=complex(1, -1), f64[4]"},
		{.schema = "aten.where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> "
			   "Tensor",
		 .build = build_where_other_scalar,
		 .sample = "bool[n=3, 4], f32[n, 4], other=1.5; "
			   "bool[3], i32[3] in -9..9, other=2.5"},
		{.schema = "aten.where.Scalar(Tensor condition, Scalar self, Scalar other) -> "
			   "Tensor",
		 .build = build_where_scalars,
		 .sample = "bool[n=3, 4], self=1.5, other=-2; bool[n=3, 4], self=3, other=-2; "
			   "bool[n=3, 4], self=true, other=false; "
			   "bool[n=3, 4], self=complex(1, -1), other=2.5"},
		{.schema = "prims.where(Tensor pred, Tensor a, Tensor b) -> Tensor",
		 .expand = "select(pred, a, b)",
		 .sample = "bool[n=3, 4], f32[n, 4], f32[n, 4]"},
	},
};

static Node build_masked_fill(Build *b, Node n)
{
	Node x = arg(b, n, "self"), m = arg(b, n, "mask"), v = arg(b, n, "value");
	if (!x.i || !v.i)
		return (Node){0};
	m = aten_truth(b, m);
	return b_select(b, m, b_convert(b, v, node_dtype(b->g, x)), x);
}

static Node build_masked_fill_scalar(Build *b, Node n)
{
	Node x = arg(b, n, "self"), m = aten_truth(b, arg(b, n, "mask"));
	return b_select(b, m, aten_scalar_as(b, node_attr(b->g, n, "value"), aten_dtype(b, x)), x);
}
OP(aten_masked_fill_Tensor){
	.schema = "aten.masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
	.build = build_masked_fill,
	.sample = "f32[n=3, 4], bool[4], f32[] of 9.5; i32[n=3] in -9..9, bool[n], i64[] of 77",
	.overloads = (const Overload[]){
		{.schema = "aten.masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> "
			   "Tensor",
		 .build = build_masked_fill_scalar,
		 .sample = "f32[n=3, 4], bool[4], value=-9.5; "
			   "i32[n=3] in -9..9, bool[n], value=77; "
			   "c64[n=3, 4], bool[4], value=complex(-9.5, 1)"},
	},
};

/* ---- clamping ---- */

static Node clamp(Build *b, Node x, Node low, Node high)
{
	if (low.i)
		x = b_bin(b, OP_maximum, x, low);
	return high.i ? b_bin(b, OP_minimum, x, high) : x;
}

/* Tells whether the bound lies outside dtype d, on the side where it bounds nothing. */
static bool bounds_nothing(const Build *b, const Attr *a, DType d, bool upper)
{
	int64_t v, low, high;
	if (a->kind == ATTR_none)
		return true;
	if (!dtype_is_int(d) || a->kind != ATTR_int || !sym_is_const(b_syms(b), a->s, &v))
		return false;
	dtype_limits(d, &low, &high);
	return upper ? v >= high && d != DT_u64 : v <= low; /* u64 has values above INT64_MAX */
}

/* Returns the bound; a lower one of an unsigned dtype is not negative here, and an upper one
 * must not be. */
static Node clamp_bound(Build *b, const Attr *a, DType d)
{
	int64_t v;
	if (dtype_is_int(d) && !dtype_is_signed(d) && a->kind == ATTR_int &&
	    sym_is_const(b_syms(b), a->s, &v) && v < 0)
		return b_error(b, "the upper bound %lld is less than any value of %s", (long long)v,
			       dtype_name(d));
	return aten_scalar_as(b, a, d);
}

Node aten_clamp(Build *b, Node x, DType d, const Attr *low, const Attr *high)
{
	x = b_convert(b, x, d);
	if (!bounds_nothing(b, low, d, false))
		x = b_bin(b, OP_maximum, x, clamp_bound(b, low, d));
	if (!bounds_nothing(b, high, d, true))
		x = b_bin(b, OP_minimum, x, clamp_bound(b, high, d));
	return x;
}

static Node build_clamp(Build *b, Node n)
{
	static const Attr none = {.kind = ATTR_none};
	Op op = node_op(b->g, n);
	Node x = arg(b, n, "self");
	const Attr *low = op_arg_index(op, "min") >= 0 ? node_attr(b->g, n, "min") : &none;
	const Attr *high = op_arg_index(op, "max") >= 0 ? node_attr(b->g, n, "max") : &none;
	DType d = aten_scalar_dtype(aten_scalar_dtype(aten_dtype(b, x), low), high);
	if (low->kind == ATTR_none && high->kind == ATTR_none)
		return b_error(b, "neither min nor max is given");
	return aten_clamp(b, x, d, low, high);
}
OP(aten_clamp){
	.schema = "aten.clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
	.aliases = "aten.clip",
	.build = build_clamp,
	.adjoint = aten_adjoint_clamp,
	.batch = batch_element_wise,
	.sample = "f32[n=3, 4], min=-1.25, max=2.5; f32[n=3, 4], min=0.5; "
		  "i32[n=6] in -9..9, max=3; i32[4] in -9..9, min=-1.5, max=2; "
		  "f32[4], min=2, max=-1; f32[3] of nan 1 -1, min=-0.5, max=0.5",
};

static Node build_clamp_tensor(Build *b, Node n)
{
	Node low = arg(b, n, "min"), high = arg(b, n, "max");
	if (!low.i && !high.i)
		return b_error(b, "neither min nor max is given");
	return clamp(b, arg(b, n, "self"), low, high);
}
OP(aten_clamp_Tensor){
	.schema = "aten.clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
	.aliases = "aten.clip.Tensor",
	.build = build_clamp_tensor,
	.adjoint = aten_adjoint_clamp_tensor,
	.batch = batch_element_wise,
	.sample = "f32[n=3, 4], f32[4] in -3..0, f32[n, 1] in 0..3; f32[n=3, 4], none, f32[4]; "
		  "f32[n=3, 4], f32[4]; f32[3] of nan 1 -1, f32[3] of 0 2 nan, f32[3] of 1 1 1",
};

OP(aten_clamp_min){
	.schema = "aten.clamp_min(Tensor self, Scalar min) -> Tensor",
	.build = build_clamp,
	.deriv = {"select(gt(self, min), 1, 0)"},
	.sample = "f32[n=3, 4], min=0.75; i32[4] in -9..9, min=2",
};

OP(aten_clamp_max){
	.schema = "aten.clamp_max(Tensor self, Scalar max) -> Tensor",
	.build = build_clamp,
	.deriv = {"select(lt(self, max), 1, 0)"},
	.sample = "f32[n=3, 4], max=0.75; i32[4] in -9..9, max=2",
};

OP(aten_clamp_min_Tensor){
	.schema = "aten.clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
	.promote = PROMOTE_DEFAULT,
	.expand = "maximum(self, min)",
	.sample = "f32[n=3, 4], f32[4]; i32[n=3, 4] in -9..9, i32[4] in -9..9",
};
OP(aten_clamp_max_Tensor){
	.schema = "aten.clamp_max.Tensor(Tensor self, Tensor max) -> Tensor",
	.promote = PROMOTE_DEFAULT,
	.expand = "minimum(self, max)",
	.sample = "f32[n=3, 4], f32[4]; i32[n=3, 4] in -9..9, i32[4] in -9..9",
};
