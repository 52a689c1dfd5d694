/* Random element-wise operations. */
#include <math.h>

#include "fuzz.h"

/* ---- operands ---- */

static Node same_dims(Fuzz *f, Value y, Value x, const uint32_t *map)
{
	const Type t = *node_type(f->g, x.n);
	Sym to[MAX_RANK];
	for (uint32_t k = 0; k < t.n; k++)
		to[k] = t.dim[k];
	return b_broadcast_in_dim(&f->b, y.n, t.n, to, map);
}

/* Where each dim of y, equal or 1, fits among x's from the right; false when it does not. */
static bool align(const Fuzz *f, Value y, Value x, uint32_t *map)
{
	uint32_t ry = fuzz_rank(f, y), at = fuzz_rank(f, x);
	for (uint32_t k = ry; k-- > 0;) {
		Sym d = fuzz_dim(f, y, k);
		while (at > 0 && fuzz_dim(f, x, at - 1).i != d.i && !sym_is(f->ir->syms, d, 1))
			at--;
		if (at == 0)
			return false;
		map[k] = --at;
	}
	return true;
}

/* A new value of a subset of x's dims. */
static Value fresh_operand(Fuzz *f, Value x, uint32_t *map)
{
	Sym dim[MAX_RANK];
	uint32_t n = 0, rank = fuzz_rank(f, x);
	for (uint32_t k = 0; k < rank; k++) {
		if (fuzz_chance(f, 40))
			continue;
		map[n] = k;
		dim[n++] = fuzz_chance(f, 10) ? sym_int(f->ir->syms, 1) : fuzz_dim(f, x, k);
	}
	return fuzz_input(f, fuzz_dtype(f, x), n, dim);
}

Value fuzz_operand(Fuzz *f, Value x)
{
	uint32_t map[MAX_RANK];
	DType d = fuzz_dtype(f, x);
	Value y;
	for (uint32_t tries = 0; tries < 6; tries++)
		if (fuzz_pick(f, fuzz_any, &y) && fuzz_dtype(f, y) == d && align(f, y, x, map)) {
			y.n = same_dims(f, y, x, map);
			return y;
		}
	if (f->is_body || fuzz_chance(f, 40)) {
		static const double values[] = {0, 1, -1, 0.5, 2, 3};
		double v = values[fuzz_below(f, d == DT_bool ? 2 : sizeof values / sizeof *values)];
		bool whole = !dtype_is_float(d);
		return fuzz_scalar(f, d, whole ? fabs(rint(v)) : v, x);
	}
	y = fresh_operand(f, x, map);
	y.n = same_dims(f, y, x, map);
	return y;
}

static Node un(Fuzz *f, Op op, Node x)
{
	return fuzz_node(f, op, &x, 1, NULL, 0);
}

static Node bin(Fuzz *f, Op op, Node x, Node y)
{
	return fuzz_node(f, op, (Node[]){x, y}, 2, NULL, 0);
}

static int max_int(int a, int b)
{
	return a > b ? a : b;
}

static int min_int(int a, int b)
{
	return a < b ? a : b;
}

/* |y| + 1 */
static Value at_least_one(Fuzz *f, Value y)
{
	Node one = fuzz_scalar(f, fuzz_dtype(f, y), 1, y).n;
	Node n = bin(f, OP_add, un(f, OP_abs, y.n), one);
	return fuzz_value(f, n, min_int(y.gran, 0), max_int(y.mag, 0) + 1, y.err);
}

/* ---- steps ---- */

static bool step_smooth(Fuzz *f)
{
	static const Op ops[] = {OP_tanh, OP_sigmoid, OP_sin, OP_cos, OP_erf, OP_atan};
	Value x;
	if (!fuzz_pick(f, fuzz_is_float, &x))
		return false;
	Op op = ops[fuzz_below(f, sizeof ops / sizeof *ops)];
	int mag = op == OP_atan ? 1 : 0;
	return fuzz_push(f, fuzz_value(f, un(f, op, x.n), -100, mag, 1.2 * x.err));
}

static bool step_exp(Fuzz *f)
{
	Value x;
	if (!fuzz_pick(f, fuzz_is_float, &x) || x.mag > 2)
		return false;
	double err = x.err * exp(ldexp(1, x.mag));
	return fuzz_push(f, fuzz_value(f, un(f, OP_exp, x.n), -100, 6, err));
}

/* Roots and quotients of what is at least 1. */
static bool step_positive(Fuzz *f)
{
	static const Op ops[] = {OP_sqrt, OP_rsqrt, OP_log, OP_reciprocal};
	Value x;
	if (!fuzz_pick(f, fuzz_is_float, &x))
		return false;
	Value y = at_least_one(f, x);
	Op op = ops[fuzz_below(f, sizeof ops / sizeof *ops)];
	return fuzz_push(f, fuzz_value(f, un(f, op, y.n), -100, max_int(y.mag, 1), y.err));
}

static bool step_exact_unary(Fuzz *f)
{
	Value x;
	if (!fuzz_pick(f, fuzz_any, &x))
		return false;
	DType d = fuzz_dtype(f, x);
	if (d == DT_bool || (!dtype_is_float(d) && fuzz_chance(f, 30)))
		return fuzz_push(f, fuzz_value(f, un(f, OP_bit_not, x.n), 0, x.mag + 1, 0));
	Op op = fuzz_chance(f, 50) ? OP_neg : OP_abs;
	return fuzz_push(f, fuzz_value(f, un(f, op, x.n), x.gran, x.mag, x.err));
}

static bool step_round(Fuzz *f)
{
	static const Op ops[] = {OP_floor, OP_ceil, OP_trunc, OP_round, OP_sign};
	Value x;
	if (!fuzz_pick(f, fuzz_is_exact, &x) || fuzz_dtype(f, x) == DT_bool)
		return false;
	bool is_float = fuzz_is_float(f, &x);
	Op op = is_float ? ops[fuzz_below(f, 5)] : OP_sign;
	return fuzz_push(f, fuzz_value(f, un(f, op, x.n), 0, max_int(x.mag, 0), 0));
}

static Value product(Fuzz *f, Value x, Value y)
{
	double err = ldexp(x.err, y.mag) + ldexp(y.err, x.mag) + x.err * y.err;
	return fuzz_value(f, bin(f, OP_mul, x.n, y.n), x.gran + y.gran, x.mag + y.mag, err);
}

static bool float_binary(Fuzz *f, Value x, Value y)
{
	static const Op ops[] = {OP_add, OP_sub, OP_maximum, OP_minimum};
	uint32_t k = fuzz_below(f, 7);
	int gran = min_int(x.gran, y.gran), mag = max_int(x.mag, y.mag);
	if (k >= 5)
		return fuzz_push(f, product(f, x, y));
	if (k == 4) {
		Value q = at_least_one(f, y);
		double err = x.err + ldexp(q.err, x.mag);
		return fuzz_push(f, fuzz_value(f, bin(f, OP_div, x.n, q.n), -100, x.mag, err));
	}
	double err = k < 2 ? x.err + y.err : fmax(x.err, y.err);
	return fuzz_push(f, fuzz_value(f, bin(f, ops[k], x.n, y.n), gran, mag + (k < 2), err));
}

static bool int_binary(Fuzz *f, Value x, Value y)
{
	static const Op ops[] = {OP_add,     OP_sub,    OP_mul,     OP_maximum,  OP_minimum,
				 OP_bit_and, OP_bit_or, OP_bit_xor, OP_floordiv, OP_remainder};
	Op op = ops[fuzz_below(f, sizeof ops / sizeof *ops)];
	if ((op == OP_floordiv || op == OP_remainder) && fuzz_chance(f, 70))
		y = at_least_one(f, y);
	int mag = op == OP_mul ? x.mag + y.mag : max_int(x.mag, y.mag) + 1;
	return fuzz_push(f, fuzz_value(f, bin(f, op, x.n, y.n), 0, mag, 0));
}

static bool step_binary(Fuzz *f)
{
	static const Op logical[] = {OP_bit_and, OP_bit_or, OP_bit_xor};
	Value x;
	if (!fuzz_pick(f, fuzz_any, &x))
		return false;
	Value y = fuzz_operand(f, x);
	if (fuzz_dtype(f, x) == DT_bool)
		return fuzz_push(
			f, fuzz_value(f, bin(f, logical[fuzz_below(f, 3)], x.n, y.n), 0, 0, 0));
	return fuzz_is_float(f, &x) ? float_binary(f, x, y) : int_binary(f, x, y);
}

static Value compare(Fuzz *f, Value x)
{
	static const Op ops[] = {OP_eq, OP_ne, OP_lt, OP_le, OP_gt, OP_ge};
	Value y = fuzz_operand(f, x);
	if (y.err > 0)
		y = fuzz_scalar(f, fuzz_dtype(f, x), 1, x);
	return fuzz_value(f, bin(f, ops[fuzz_below(f, 6)], x.n, y.n), 0, 0, 0);
}

static bool step_select(Fuzz *f)
{
	Value c, x;
	if (!fuzz_pick(f, fuzz_is_exact, &c))
		return false;
	if (fuzz_dtype(f, c) != DT_bool)
		c = compare(f, c);
	if (!c.n.i || fuzz_chance(f, 20) || !fuzz_pick(f, fuzz_any, &x))
		return fuzz_push(f, c);
	uint32_t map[MAX_RANK];
	if (!align(f, c, x, map))
		return fuzz_push(f, c);
	Node cond = same_dims(f, c, x, map);
	Value y = fuzz_operand(f, x);
	Node n = fuzz_node(f, OP_select, (Node[]){cond, x.n, y.n}, 3, NULL, 0);
	return fuzz_push(f, fuzz_value(f, n, min_int(x.gran, y.gran), max_int(x.mag, y.mag),
				       fmax(x.err, y.err)));
}

static bool is_storage(DType d)
{
	return dtype_is_narrow(d);
}

/* Through an f8, in which nothing is computed: what is out of its range is another story. */
static Node through_f8(Fuzz *f, Node x)
{
	static const DType f8[] = {DT_f8e4m3, DT_f8e5m2, DT_f8e4m3fnuz, DT_f8e5m2fnuz};
	Node n = b_convert(&f->b, x, f8[fuzz_below(f, 4)]);
	return b_convert(&f->b, n, DT_f32);
}

/* An exact f32 with more digits than storage types have. */
static bool many_digits(Fuzz *f, Value *x)
{
	if (!fuzz_pick(f, fuzz_is_exact, x) || !fuzz_is_float(f, x) || x->mag > 7)
		return false;
	Node wide = b_convert(&f->b, x->n, DT_f32);
	*x = fuzz_value(f, b_bin_scalar(&f->b, OP_mul, wide, 1 + 0x1p-12), x->gran - 12, x->mag + 1,
			0);
	return x->n.i && x->err == 0;
}

/* A storage type's rounding of an exact value is exact: a conversion rounds wherever the value
 * lies. */
static bool step_round_trip(Fuzz *f)
{
	Value x;
	if (!many_digits(f, &x))
		return false;
	if (fuzz_chance(f, 30))
		return fuzz_push(f, (Value){through_f8(f, x.n), x.gran, x.mag, 0});
	Node n = b_convert(&f->b, x.n, fuzz_chance(f, 50) ? DT_f16 : DT_bf16);
	if (fuzz_chance(f, 60))
		n = b_convert(&f->b, n, fuzz_chance(f, 50) ? DT_f32 : DT_f64);
	return fuzz_push(f, (Value){n, x.gran, x.mag, 0});
}

/* To ints: of exact values that fit. */
static bool step_convert(Fuzz *f)
{
	static const DType to[] = {DT_f32, DT_f64, DT_f16, DT_bf16, DT_f32,
				   DT_i32, DT_i64, DT_i8,  DT_u8};
	Value x;
	if (!fuzz_pick(f, fuzz_any, &x))
		return false;
	DType d = to[fuzz_below(f, fuzz_is_exact(f, &x) ? 9 : 5)], from = fuzz_dtype(f, x);
	bool to_float = dtype_is_float(d), from_float = dtype_is_float(from);
	int bits = to_float ? 15 : (int)dtype_size(d) * 8 - 2;
	if (x.mag > bits && (from_float || to_float))
		return false;
	if (from_float && (d == DT_u8 || from == d))
		return false;
	Node n = b_convert(&f->b, x.n, d);
	if (x.err == 0 && is_storage(d))
		return fuzz_push(f, (Value){n, from_float ? x.gran : 0, x.mag, 0});
	return fuzz_push(f, fuzz_value(f, n, to_float ? x.gran : 0,
				       max_int(x.mag, to_float ? -99 : 1), x.err));
}

const FuzzChoice fuzz_scalar_steps[] = {
	{step_smooth, 2},      {step_exp, 1},     {step_positive, 1},
	{step_exact_unary, 2}, {step_round, 1},   {step_binary, 6},
	{step_select, 2},      {step_convert, 2}, {step_round_trip, 2},
	{NULL, 0},
};
