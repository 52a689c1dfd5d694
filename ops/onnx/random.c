/* Random numbers: the distributions, drawn as all others of a model (docs/random.md). An attribute
 * `seed` says nothing: a model has one seed, the caller's. */
#include "ops/onnx/priv.h"
#include "ops/prim/random.h"

#define SEEDED "float? seed=None, " RANDOM_ARGS

/* The dtype and shape of the result: the arguments `dtype` and `shape`, or those of the operand. */
typedef struct {
	DType dtype;
	Shape shape;
	Draw draw;
} Drawn;

static bool drawn_begin(Build *b, Node n, Drawn *d)
{
	*d = (Drawn){.dtype = DT_f32};
	if (op_arg_index(node_op(b->g, n), "input") >= 0) {
		Node x = arg(b, n, "input");
		TRY(x.i);
		d->dtype = node_dtype(b->g, x);
		d->shape = aten_shape(b, x);
	} else {
		uint32_t rank;
		const Sym *dim = node_ints(b->g, n, "shape", &rank);
		if (rank > MAX_RANK)
			return b_error(b, "rank %u is above the limit %d", rank, MAX_RANK).i;
		d->shape = shape_of(rank, dim);
	}
	d->dtype = aten_dtype_or(b, n, "dtype", d->dtype);
	return draw_begin(b, n, &d->draw);
}

/* Returns x * factor + offset, in the dtype that was drawn. */
static Node placed(Build *b, const Drawn *d, Node x, double factor, double offset)
{
	if (!dtype_is_float(d->dtype))
		return b_error(b, "random numbers of %s, expected a float dtype",
			       dtype_name(d->dtype));
	return b_convert(b, b_bin_scalar(b, OP_add, b_bin_scalar(b, OP_mul, x, factor), offset),
			 d->dtype);
}

static Node build_uniform(Build *b, Node n)
{
	Drawn d;
	if (!drawn_begin(b, n, &d))
		return (Node){0};
	double low = node_float(b->g, n, "low");
	Node u = draw_uniform(b, &d.draw, d.dtype == DT_f64 ? DT_f64 : DT_f32, &d.shape);
	return placed(b, &d, u, node_float(b->g, n, "high") - low, low);
}

static Node build_normal(Build *b, Node n)
{
	Drawn d;
	if (!drawn_begin(b, n, &d))
		return (Node){0};
	return placed(b, &d, draw_normal(b, &d.draw, d.dtype, &d.shape),
		      node_float(b->g, n, "scale"), node_float(b->g, n, "mean"));
}

OP(onnx_RandomUniform_1){
	.schema = "onnx.RandomUniform.1(*, ScalarType? dtype=None, float high=1.0, float low=0.0, "
		  "SymInt[] shape, " SEEDED ") -> Tensor",
	.build = build_uniform,
	.no_sample = NODE_TESTS,
	.overloads = (const Overload[]){
		{.schema = "onnx.RandomUniformLike.1(Tensor input, *, ScalarType? dtype=None, "
			   "float high=1.0, float low=0.0, " SEEDED ") -> Tensor"},
	},
};
OP(onnx_RandomNormal_1){
	.schema = "onnx.RandomNormal.1(*, ScalarType? dtype=None, float mean=0.0, float scale=1.0, "
		  "SymInt[] shape, " SEEDED ") -> Tensor",
	.build = build_normal,
	.no_sample = NODE_TESTS,
	.overloads = (const Overload[]){
		{.schema = "onnx.RandomNormalLike.1(Tensor input, *, ScalarType? dtype=None, float "
			   "mean=0.0, float scale=1.0, " SEEDED ") -> Tensor"},
	},
};

/* Builds the draw of bools, of which the operand says how likely each 1 is. */
static Node build_bernoulli(Build *b, Node n)
{
	Drawn d;
	if (!drawn_begin(b, n, &d))
		return (Node){0};
	Node u = draw_uniform(b, &d.draw, DT_f64, &d.shape);
	return b_convert(b, b_bin(b, OP_lt, u, b_convert(b, arg(b, n, "input"), DT_f64)), d.dtype);
}

OP(onnx_Bernoulli_15){
	.schema = "onnx.Bernoulli.15(Tensor input, *, ScalarType? dtype=None, " SEEDED ") -> Tensor",
	.build = build_bernoulli,
	.no_sample = NODE_TESTS,
};

/* Draws classes; x: logarithms of likelihoods [B, classes], not normalised. The class with the
 * greatest sum of its logarithm and a number of the Gumbel distribution is as likely as that
 * says. */
static Node build_multinomial(Build *b, Node n)
{
	Node x = arg(b, n, "input");
	Draw draw;
	if (aten_rank(b, x) != 2)
		return b_error(b, "an operand of rank %u, expected [batch, classes]",
			       aten_rank(b, x));
	if (!draw_begin(b, n, &draw))
		return (Node){0};
	Shape s = shape_insert(aten_shape(b, x), 1, node_sym(b->g, n, "sample_size"));
	Node gumbel = b_un(
		b, OP_neg,
		b_un(b, OP_log, b_un(b, OP_neg, b_un(b, OP_log, draw_open(b, &draw, DT_f32, &s)))));
	Node y = b_arg_reduce(
		b, true, b_bin(b, OP_add, b_unsqueeze(b, b_convert(b, x, DT_f32), 1), gumbel), 2);
	return b_convert(b, y, aten_dtype_or(b, n, "dtype", DT_i32));
}

OP(onnx_Multinomial_7){
	.schema = "onnx.Multinomial.7(Tensor input, *, ScalarType? dtype=None, SymInt "
		  "sample_size=1, " SEEDED ") -> Tensor",
	.build = build_multinomial,
	.no_sample = NODE_TESTS,
};
