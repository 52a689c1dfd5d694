/* Rules of element-wise ops, splats and conversions. */
#include <math.h>

#include "ir/scalar/scalar.h"
#include "passes/simplify/rules.h"

static Node in(const Build *b, Node n, uint32_t k)
{
	return node_in(b->g, n, k);
}

static bool floats(const Build *b, Node n)
{
	return dtype_is_float(node_dtype(b->g, n));
}

/* ---- splats ---- */

/* Sets *v to the element of a splat in the representation of scalar_eval. Returns false when it
 * is symbolic or complex. */
static bool splat_value(const Build *b, Node n, ScVal *v)
{
	Attr a;
	int64_t i = 0;
	DType d = node_dtype(b->g, n);
	if (!b_splat(b, n, &a) || dtype_is_complex(d) ||
	    (a.kind == ATTR_int && !sym_is_const(graph_syms(b->g), a.s, &i)))
		return false;
	if (a.kind == ATTR_bool)
		i = a.b;
	if (dtype_is_float(d))
		v->f = a.kind == ATTR_float ? a.f : (double)i;
	else
		v->i = a.kind == ATTR_float ? (int64_t)a.f : i;
	return true;
}

/* Computes an element-wise op of splats, which is a splat. */
static Node op_of_splats(Build *b, Node n)
{
	Op op = node_op(b->g, n);
	ScVal arg[4];
	DType d[4];
	uint32_t nin = node_nin(b->g, n);
	if (!op_is_scalar(op) || nin > 4)
		return (Node){0};
	for (uint32_t k = 0; k < nin; k++) {
		d[k] = dtype_compute(node_dtype(b->g, in(b, n, k)));
		if (!splat_value(b, in(b, n, k), &arg[k]))
			return (Node){0};
	}
	const ScFn *fn = scalar_fn(op, d, nin);
	if (!fn)
		return (Node){0};
	ScVal v = scalar_eval(fn, arg);
	const Type t = *node_type(b->g, n);
	Attr a = dtype_is_float(fn->result) ? attr_float(v.f) : attr_int(b->g->ir, v.i);
	return b_full_attr(b, t.dtype, a, t.n, t.dim);
}

static Node convert_splat(Build *b, Node n)
{
	Node x = in(b, n, 0);
	return node_splat(b->g, x, NULL) ? b_convert(b, x, node_dtype(b->g, n)) : (Node){0};
}

/* ---- neutral and absorbing operands ---- */

static bool is_known(const Graph *g, Node n)
{
	return node_splat(g, n, NULL) || node_const(g, n).i;
}

/* Moves splats and constants to the right of operators that commute, where the rules look for
 * them. */
static Node splat_right(Build *b, Node n)
{
	Op op = node_op(b->g, n);
	if (!op_info(op)->commutes)
		return (Node){0};
	Node x = in(b, n, 0), y = in(b, n, 1);
	return is_known(b->g, x) && !is_known(b->g, y) ? b_bin(b, op, y, x) : (Node){0};
}

/* Rewrites x + -0 as x. x + 0 is not x for x = -0, so only of integers. */
static Node add_zero(Build *b, Node n)
{
	bool neutral =
		floats(b, n) ? is_splat(b->g, in(b, n, 1), -0.0) : is_splat(b->g, in(b, n, 1), 0);
	return neutral ? in(b, n, 0) : (Node){0};
}

static Node sub_zero(Build *b, Node n)
{
	return is_splat(b->g, in(b, n, 1), 0) ? in(b, n, 0) : (Node){0};
}

static Node mul_one(Build *b, Node n)
{
	return is_splat(b->g, in(b, n, 1), 1) ? in(b, n, 0) : (Node){0};
}

static Node mul_zero(Build *b, Node n)
{
	return !floats(b, n) && is_splat(b->g, in(b, n, 1), 0) ? in(b, n, 1) : (Node){0};
}

static Node mul_minus_one(Build *b, Node n)
{
	return is_splat(b->g, in(b, n, 1), -1) ? b_un(b, OP_neg, in(b, n, 0)) : (Node){0};
}

/* Rewrites division by a power of two as an exact product. */
static Node div_power(Build *b, Node n)
{
	ScVal v;
	int e;
	if (is_splat(b->g, in(b, n, 1), 1))
		return in(b, n, 0);
	if (!splat_value(b, in(b, n, 1), &v) || !isfinite(v.f) || fabs(frexp(v.f, &e)) != 0.5)
		return (Node){0};
	return e > -100 && e < 100 ? b_bin_scalar(b, OP_mul, in(b, n, 0), 1 / v.f) : (Node){0};
}

/* Rewrites a power with a constant exponent as aten.pow.Tensor_Scalar does, but for roots, which
 * differ from pow at -0 and -inf: of floats 0 to 3 and -1, of integers all that are not negative.
 */
static Node pow_constant(Build *b, Node n)
{
	ScVal v;
	Node x = in(b, n, 0);
	bool f = floats(b, n);
	if (!splat_value(b, in(b, n, 1), &v))
		return (Node){0};
	const Type t = *node_type(b->g, n);
	if (is_splat(b->g, in(b, n, 1), 0))
		return f ? b_full(b, t.dtype, 1, t.n, t.dim)
			 : b_full_int(b, t.dtype, 1, t.n, t.dim);
	if (f && v.f == -1)
		return b_un(b, OP_reciprocal, x);
	if (f && v.f != 1 && v.f != 2 && v.f != 3)
		return (Node){0};
	int64_t e = f ? (int64_t)v.f : v.i;
	return e > 0 ? b_power(b, x, e) : (Node){0};
}

static Node and_constant(Build *b, Node n)
{
	Node x = in(b, n, 0), y = in(b, n, 1);
	bool all = node_dtype(b->g, n) == DT_bool ? is_splat(b->g, y, 1) : is_splat(b->g, y, -1);
	return all || x.i == y.i ? x : is_splat(b->g, y, 0) ? y : (Node){0};
}

static Node or_constant(Build *b, Node n)
{
	Node x = in(b, n, 0), y = in(b, n, 1);
	bool all = node_dtype(b->g, n) == DT_bool && is_splat(b->g, y, 1);
	return is_splat(b->g, y, 0) || x.i == y.i ? x : all ? y : (Node){0};
}

/* ---- pairs that cancel ---- */

static Node twice(Build *b, Node n)
{
	Node x = in(b, n, 0);
	return is_nested(b->g, n, x) ? in(b, x, 0) : (Node){0};
}

/* Rewrites |-x| as |x|, but unsigned integers are their own absolute values. */
static Node abs_abs(Build *b, Node n)
{
	Node x = in(b, n, 0);
	if (is_nested(b->g, n, x))
		return x;
	bool sign = floats(b, n) || dtype_is_signed(node_dtype(b->g, n));
	return sign && is_op(b->g, x, OP_neg) ? b_un(b, OP_abs, in(b, x, 0)) : (Node){0};
}

/* Rewrites x - -y as x + y. */
static Node sub_neg(Build *b, Node n)
{
	Node y = in(b, n, 1);
	return is_op(b->g, y, OP_neg) ? b_bin(b, OP_add, in(b, n, 0), in(b, y, 0)) : (Node){0};
}
static Node add_neg(Build *b, Node n)
{
	Node y = in(b, n, 1);
	return is_op(b->g, y, OP_neg) ? b_bin(b, OP_sub, in(b, n, 0), in(b, y, 0)) : (Node){0};
}

/* Rewrites max(max(x, c), c), and max of equal operands; likewise min, and the like. */
static Node idempotent(Build *b, Node n)
{
	Node x = in(b, n, 0), y = in(b, n, 1);
	if (x.i == y.i)
		return x;
	bool nested =
		is_nested(b->g, n, x) && (in(b, x, 1).i == y.i || in(b, x, 0).i == y.i);
	return nested ? x : (Node){0};
}

/* ---- conversions ---- */

static Node convert_same(Build *b, Node n)
{
	return node_dtype(b->g, in(b, n, 0)) == node_dtype(b->g, n) ? in(b, n, 0) : (Node){0};
}

static bool is_storage(DType d)
{
	return d != dtype_compute(d);
}

/* Whether the value is one of its dtype wherever it is read. What arithmetic in a storage dtype
 * gives is so only once it has been stored (docs/numerics.md). */
static bool is_rounded(const Graph *g, Node n)
{
	while (op_info(node_op(g, n))->moves)
		n = node_in(g, n, 0);
	return op_info(node_op(g, n))->rounded;
}

/* Rewrites convert[a](convert[b](x)) as convert[a](x) when b keeps every value of x. */
static Node convert_twice(Build *b, Node n)
{
	Node x = in(b, n, 0);
	if (!is_nested(b->g, n, x))
		return (Node){0};
	Node y = in(b, x, 0);
	DType from = node_dtype(b->g, y), by = node_dtype(b->g, x), to = node_dtype(b->g, n);
	bool rounds = is_storage(from) && (is_storage(by) || from == to);
	if (!dtype_keeps(from, by) || (rounds && !is_rounded(b->g, y)))
		return (Node){0};
	return b_convert(b, y, to);
}

/* Rewrites convert(x) != 0 of a bool x, and the like, as x. */
static Node truth_of_bool(Build *b, Node n)
{
	Node x = in(b, n, 0);
	if (!is_splat(b->g, in(b, n, 1), 0))
		return (Node){0};
	if (is_op(b->g, x, OP_convert) && node_dtype(b->g, in(b, x, 0)) == DT_bool)
		return in(b, x, 0);
	return node_dtype(b->g, x) == DT_bool ? x : (Node){0};
}

/* ---- selection ---- */

static Node select_constant(Build *b, Node n)
{
	Node c = in(b, n, 0), x = in(b, n, 1), y = in(b, n, 2);
	if (x.i == y.i || is_splat(b->g, c, 1))
		return x;
	if (is_splat(b->g, c, 0))
		return y;
	if (is_op(b->g, c, OP_bit_not))
		return b_select(b, in(b, c, 0), y, x);
	if (node_dtype(b->g, n) == DT_bool && is_splat(b->g, x, 1) && is_splat(b->g, y, 0))
		return c;
	return (Node){0};
}

static Node tuple_get(Build *b, Node n)
{
	return node_element(b->g, in(b, n, 0), (uint32_t)node_int(b->g, n, "index"));
}

const Rule scalar_rules[] = {
	{"op_of_splats", OP_none, op_of_splats},
	{"splat_right", OP_none, splat_right},
	{"convert_splat", OP_convert, convert_splat},
	{"add_zero", OP_add, add_zero},
	{"sub_zero", OP_sub, sub_zero},
	{"mul_one", OP_mul, mul_one},
	{"mul_zero", OP_mul, mul_zero},
	{"mul_minus_one", OP_mul, mul_minus_one},
	{"div_power", OP_div, div_power},
	{"pow_constant", OP_pow, pow_constant},
	{"and_constant", OP_bit_and, and_constant},
	{"or_constant", OP_bit_or, or_constant},
	{"neg_neg", OP_neg, twice},
	{"not_not", OP_bit_not, twice},
	{"abs_abs", OP_abs, abs_abs},
	{"sub_neg", OP_sub, sub_neg},
	{"add_neg", OP_add, add_neg},
	{"max_twice", OP_maximum, idempotent},
	{"min_twice", OP_minimum, idempotent},
	{"convert_same", OP_convert, convert_same},
	{"convert_twice", OP_convert, convert_twice},
	{"truth_of_bool", OP_ne, truth_of_bool},
	{"select_constant", OP_select, select_constant},
	{"tuple_get", OP_get, tuple_get},
	{NULL, OP_none, NULL},
};
