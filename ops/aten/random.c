/* ATen's random numbers: the distributions, not the numbers that PyTorch's generators give. */
#include "ops/aten/priv.h"
#include "ops/prim/random.h"

#include <math.h>

#define LIKE_ARGS                                                                                  \
	"ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "                 \
	"pin_memory=None, "                                                                        \
	"MemoryFormat? memory_format=None, "
#define NEW_ARGS                                                                                   \
	"ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "                 \
	"pin_memory=None, "
#define KEY "u64[2] of 1 2"

/* The result's dtype and shape: those of `self`, unless there are arguments `dtype` and `size`. */
typedef struct {
	DType dtype;
	Shape shape;
	Draw draw;
} Sample;

static bool sample_begin(Build *b, Node n, DType otherwise, Sample *s)
{
	Op op = node_op(b->g, n);
	*s = (Sample){.dtype = otherwise};
	if (op_arg_index(op, "self") >= 0) {
		TRY(arg(b, n, "self").i);
		s->shape = aten_shape(b, arg(b, n, "self"));
		s->dtype = aten_dtype(b, arg(b, n, "self"));
	}
	if (op_arg_index(op, "size") >= 0) {
		uint32_t len;
		const Sym *dim = node_ints(b->g, n, "size", &len);
		if (len > MAX_RANK)
			return b_error(b, "rank %u is above the limit %d", len, MAX_RANK).i;
		s->shape = shape_of(len, dim);
	}
	if (op_arg_index(op, "dtype") >= 0)
		s->dtype = aten_dtype_or(b, n, "dtype", s->dtype);
	return draw_begin(b, n, &s->draw);
}

static bool require_float(Build *b, DType d)
{
	return dtype_is_float(d) ||
	       b_error(b, "random numbers of %s, expected a float dtype", dtype_name(d)).i;
}

static bool float_begin(Build *b, Node n, Sample *s)
{
	return sample_begin(b, n, DT_f32, s) && require_float(b, s->dtype);
}

/* Returns what a dtype is computed in. */
static DType wide(DType d)
{
	return d == DT_f64 || !dtype_is_float(d) ? DT_f64 : DT_f32;
}

/* Returns x * factor + offset of the result's dtype. */
static Node placed(Build *b, Node x, double factor, double offset, DType d)
{
	if (factor != 1)
		x = b_bin_scalar(b, OP_mul, x, factor);
	if (offset != 0)
		x = b_bin_scalar(b, OP_add, x, offset);
	return b_convert(b, x, d);
}

/* ---- [0, 1) ---- */

static Node build_rand(Build *b, Node n)
{
	Sample s;
	if (!sample_begin(b, n, DT_f32, &s))
		return (Node){0};
	if (dtype_is_complex(s.dtype)) {
		DType part = dtype_real(s.dtype);
		Node re = draw_uniform(b, &s.draw, part, &s.shape);
		return b_complex(b, re, draw_uniform(b, &s.draw, part, &s.shape));
	}
	return require_float(b, s.dtype) ? draw_uniform(b, &s.draw, s.dtype, &s.shape) : (Node){0};
}

static Node build_uniform(Build *b, Node n)
{
	Sample s;
	if (!float_begin(b, n, &s))
		return (Node){0};
	double from = node_float(b->g, n, "from"), to = node_float(b->g, n, "to");
	Node u = b_convert(b, draw_uniform(b, &s.draw, s.dtype, &s.shape), wide(s.dtype));
	return placed(b, u, to - from, from, s.dtype);
}
OP(aten_rand) {
	.schema = "aten.rand(SymInt[] size, *, " NEW_ARGS RANDOM_ARGS ") -> Tensor",
	.deviates = "the numbers of a seed are others (docs/random.md)",
	.aliases = "aten.rand.generator",
	.build = build_rand,
	.sample = KEY ", size=[2, 3]; " KEY ", size=[3], dtype=f64, stream=1; " KEY ", size=[], dtype=f16",
	.overloads = (const Overload[]){
		{.schema = "aten.rand_like(Tensor self, *, " LIKE_ARGS RANDOM_ARGS ") -> Tensor",
		 .aliases = "aten.rand_like.generator",
		 .sample = "f32[n=3, 4], " KEY "; i32[n=3], " KEY ", dtype=bf16"},
		{.schema = "aten.uniform(Tensor self, float from=0.0, float to=1.0, *, " RANDOM_ARGS ") -> Tensor",
		 .build = build_uniform,
		 .sample = "f32[n=3, 4], " KEY ", from=-2.0, to=3.0"},
	},
};

/* ---- normal ---- */

static Node normal(Build *b, Sample *s, double mean, double std)
{
	if (dtype_is_complex(s->dtype)) {
		DType part = dtype_real(s->dtype);
		Node re = placed(b, draw_normal(b, &s->draw, part, &s->shape), std * sqrt(0.5),
				 mean, part);
		return b_complex(b, re,
				 placed(b, draw_normal(b, &s->draw, part, &s->shape),
					std * sqrt(0.5), 0, part));
	}
	if (!require_float(b, s->dtype))
		return (Node){0};
	return placed(b, draw_normal(b, &s->draw, s->dtype, &s->shape), std, mean, s->dtype);
}

static Node build_randn(Build *b, Node n)
{
	Sample s;
	return sample_begin(b, n, DT_f32, &s) ? normal(b, &s, 0, 1) : (Node){0};
}

static Node build_normal(Build *b, Node n)
{
	Sample s;
	if (!sample_begin(b, n, DT_f32, &s))
		return (Node){0};
	double std = node_float(b->g, n, "std");
	if (std < 0)
		return b_error(b, "a standard deviation of %g", std);
	return normal(b, &s, node_float(b->g, n, "mean"), std);
}

/* Returns mean or deviation, a tensor or a number, of a compute dtype. PyTorch differentiates
 * what is drawn by neither. */
static Node tensor_or_number(Build *b, Node n, const char *name, DType d)
{
	Node x = aten_detached(b, arg(b, n, name));
	return x.i ? b_convert(b, x, d) : b_full(b, d, node_float(b->g, n, name), 0, NULL);
}

static Node build_normal_tensor(Build *b, Node n)
{
	Node mean = arg(b, n, "mean"), std = arg(b, n, "std"), of = mean.i ? mean : std;
	DType d = aten_dtype(b, of);
	Shape s = aten_shape(b, of), other = aten_shape(b, std.i ? std : of);
	Draw draw;
	if (!of.i || !require_float(b, d) || !draw_begin(b, n, &draw) ||
	    !aten_broadcast_shape(b, &s, &other, &s))
		return (Node){0};
	Node x = b_bin(b, OP_mul, draw_normal(b, &draw, d, &s),
		       tensor_or_number(b, n, "std", wide(d)));
	return b_convert(b, b_bin(b, OP_add, x, tensor_or_number(b, n, "mean", wide(d))), d);
}
OP(aten_randn) {
	.schema = "aten.randn(SymInt[] size, *, " NEW_ARGS RANDOM_ARGS ") -> Tensor",
	.deviates = "the numbers of a seed are others (docs/random.md)",
	.aliases = "aten.randn.generator",
	.build = build_randn,
	.sample = KEY ", size=[2, 3]; " KEY ", size=[3], dtype=f64, stream=1",
	.overloads = (const Overload[]){
		{.schema = "aten.randn_like(Tensor self, *, " LIKE_ARGS RANDOM_ARGS ") -> Tensor",
		 .aliases = "aten.randn_like.generator",
		 .sample = "f32[n=3, 4], " KEY},
		{.schema = "aten.normal_functional(Tensor self, float mean=0.0, float std=1.0, *, "
			   "" RANDOM_ARGS ") -> Tensor",
		 .aliases = "aten.normal",
		 .build = build_normal,
		 .sample = "f32[n=3, 4], " KEY ", mean=-2.0, std=3.0"},
		{.schema = "aten.normal.float_float(float mean, float std, SymInt[] size, *, " NEW_ARGS RANDOM_ARGS ") -> Tensor",
		 .build = build_normal,
		 .sample = KEY ", mean=-2.0, std=3.0, size=[5]"},
		{.schema = "aten.normal.Tensor_Tensor(Tensor mean, Tensor std, *, " RANDOM_ARGS ") -> Tensor",
		 .build = build_normal_tensor,
		 .sample = "f32[n=3, 1], f32[4] in 0..2, " KEY},
		{.schema = "aten.normal.Tensor_float(Tensor mean, float std=1.0, *, " RANDOM_ARGS ") -> Tensor",
		 .build = build_normal_tensor,
		 .sample = "f32[n=3], " KEY ", std=0.5"},
		{.schema = "aten.normal.float_Tensor(float mean, Tensor std, *, " RANDOM_ARGS ") -> Tensor",
		 .build = build_normal_tensor,
		 .sample = "f32[n=3] in 0..2, " KEY ", mean=0.5"},
	},
};

static double scalar_arg(Build *b, Node n, const char *name)
{
	const Attr *a = node_attr(b->g, n, name);
	return a->kind == ATTR_int ? (double)aten_int(b, n, name) : node_float(b->g, n, name);
}

static Node prim_begin(Build *b, Node n, Sample *s)
{
	uint32_t len;
	const Sym *dim = node_ints(b->g, n, "shape", &len);
	if (len > MAX_RANK)
		return b_error(b, "rank %u is above the limit %d", len, MAX_RANK);
	*s = (Sample){.dtype = aten_dtype_or(b, n, "dtype", DT_f32), .shape = shape_of(len, dim)};
	return draw_begin(b, n, &s->draw) ? arg(b, n, "rng") : (Node){0};
}

static Node build_prim_normal(Build *b, Node n)
{
	Sample s;
	return prim_begin(b, n, &s).i
		       ? normal(b, &s, scalar_arg(b, n, "mean"), scalar_arg(b, n, "std"))
		       : (Node){0};
}

static Node build_prim_uniform(Build *b, Node n)
{
	Sample s;
	if (!prim_begin(b, n, &s).i || !require_float(b, s.dtype))
		return (Node){0};
	double low = scalar_arg(b, n, "low");
	return placed(b, b_convert(b, draw_uniform(b, &s.draw, s.dtype, &s.shape), wide(s.dtype)),
		      scalar_arg(b, n, "high") - low, low, s.dtype);
}
OP(prims_normal) {
	.schema = "prims.normal(SymInt[] shape, *, Scalar mean, Scalar std, ScalarType dtype, "
		  "Device device, bool requires_grad, Generator? "
		  "generator=None, " RANDOM_ARGS ") -> Tensor",
	.build = build_prim_normal,
	.sample = KEY ", shape=[2, 3], mean=1.0, std=2, dtype=f32, requires_grad=false",
	.overloads = (const Overload[]){
		{.schema = "prims.uniform(SymInt[] shape, *, Scalar low, Scalar high, ScalarType "
			   "dtype, Device device, SymInt[] stride, "
			   "Generator? generator=None, " RANDOM_ARGS ") -> Tensor",
		 .build = build_prim_uniform,
		 .sample = KEY ", shape=[2, 3], low=-1.0, high=2, dtype=f64, stride=[3, 1]"},
	},
};

static Node build_log_normal(Build *b, Node n)
{
	Sample s;
	if (!float_begin(b, n, &s))
		return (Node){0};
	Node x = draw_normal(b, &s.draw, s.dtype, &s.shape);
	x = placed(b, x, node_float(b->g, n, "std"), node_float(b->g, n, "mean"), wide(s.dtype));
	return b_convert(b, b_un(b, OP_exp, x), s.dtype);
}
OP(aten_log_normal) {
	.schema = "aten.log_normal(Tensor self, float mean=1.0, float std=2.0, *, " RANDOM_ARGS ") -> Tensor",
	.build = build_log_normal,
	.sample = "f32[n=3, 4], " KEY,
};

/* ---- by the inverse of their distribution function ---- */

/* Draws natural logarithms of numbers in (0, 1). */
static Node log_uniform(Build *b, Sample *s)
{
	return b_un(b, OP_log, draw_open(b, &s->draw, wide(s->dtype), &s->shape));
}

static Node build_exponential(Build *b, Node n)
{
	Sample s;
	if (!float_begin(b, n, &s))
		return (Node){0};
	double lambda = node_float(b->g, n, "lambd");
	if (!(lambda > 0))
		return b_error(b, "lambd is %g, expected a positive number", lambda);
	return placed(b, log_uniform(b, &s), -1 / lambda, 0, s.dtype);
}
OP(aten_exponential) {
	.schema = "aten.exponential(Tensor self, float lambd=1.0, *, " RANDOM_ARGS ") -> Tensor",
	.build = build_exponential,
	.sample = "f32[n=3, 4], " KEY ", lambd=2.0",
};

static Node build_cauchy(Build *b, Node n)
{
	static const double pi = 3.1415926535897932384626433832795;
	Sample s;
	if (!float_begin(b, n, &s))
		return (Node){0};
	Node u = draw_open(b, &s.draw, wide(s.dtype), &s.shape);
	Node x = b_un(b, OP_tan, b_bin_scalar(b, OP_mul, b_bin_scalar(b, OP_sub, u, 0.5), pi));
	return placed(b, x, node_float(b->g, n, "sigma"), node_float(b->g, n, "median"), s.dtype);
}
OP(aten_cauchy) {
	.schema = "aten.cauchy(Tensor self, float median=0.0, float sigma=1.0, *, " RANDOM_ARGS ") -> Tensor",
	.build = build_cauchy,
	.sample = "f32[n=3, 4], " KEY ", sigma=2.0",
};

/* Draws 1, 2, ...: how many trials until the first that succeeds. */
static Node build_geometric(Build *b, Node n)
{
	Sample s;
	if (!sample_begin(b, n, DT_f32, &s))
		return (Node){0};
	double p = node_float(b->g, n, "p");
	if (!(p > 0 && p < 1))
		return b_error(b, "p is %g, expected a number between 0 and 1", p);
	Node trials = b_un(b, OP_ceil, b_bin_scalar(b, OP_mul, log_uniform(b, &s), 1 / log1p(-p)));
	return b_convert(b, b_bin_scalar(b, OP_maximum, trials, 1), s.dtype);
}
OP(aten_geometric) {
	.schema = "aten.geometric(Tensor self, float p, *, " RANDOM_ARGS ") -> Tensor",
	.build = build_geometric,
	.sample = "f32[n=3, 4], " KEY ", p=0.25; i32[3], " KEY ", p=0.5",
};

/* ---- true or false ---- */

static Node build_bernoulli_p(Build *b, Node n)
{
	Sample s;
	if (!sample_begin(b, n, DT_f32, &s))
		return (Node){0};
	double p = node_float(b->g, n, "p");
	if (!(p >= 0 && p <= 1))
		return b_error(b, "p is %g, expected a number from 0 to 1", p);
	return b_convert(b, draw_chance(b, &s.draw, p, &s.shape), s.dtype);
}

/* Builds the draw of bools; the operand, or the argument p, says how likely each is. */
static Node build_bernoulli(Build *b, Node n)
{
	Sample s;
	Node p = arg(b, n, op_arg_index(node_op(b->g, n), "p") >= 0 ? "p" : "self");
	if (!sample_begin(b, n, DT_f32, &s) || !require_float(b, aten_dtype(b, p)))
		return (Node){0};
	p = b_broadcast(b, b_convert(b, p, DT_f64), s.shape.rank, s.shape.dim);
	return b_convert(b, b_bin(b, OP_lt, draw_uniform(b, &s.draw, DT_f64, &s.shape), p),
			 s.dtype);
}
OP(aten_bernoulli_p) {
	.schema = "aten.bernoulli.p(Tensor self, float p=0.5, *, " RANDOM_ARGS ") -> Tensor",
	.aliases = "aten.bernoulli.float",
	.build = build_bernoulli_p,
	.sample = "f32[n=3, 4], " KEY ", p=0.25; bool[3], " KEY ", p=0.5",
	.overloads = (const Overload[]){
		{.schema = "aten.bernoulli(Tensor self, *, " RANDOM_ARGS ") -> Tensor",
		 .build = build_bernoulli,
		 .sample = "f32[n=3, 4] in 0..1, " KEY},
		{.schema = "aten.bernoulli.Tensor(Tensor self, Tensor p, *, " RANDOM_ARGS ") -> Tensor",
		 .build = build_bernoulli,
		 .sample = "i32[n=3, 4], f32[4] in 0..1, " KEY},
	},
};

/* ---- integers ---- */

/* Draws u64 in [0, range): the bits as a fraction of 1, times the range, where that fits 64
 * bits; else their remainder. Each number is as likely as the others to within 2^-32, or range /
 * 2^64. */
static Node below(Build *b, Draw *d, Sym range, const Shape *s)
{
	SymTab *t = b_syms(b);
	Node x = draw_bits(b, d, s), r = aten_size(b, range, DT_u64),
	     half = b_full_int(b, DT_u64, 32, 0, NULL);
	aten_require_le(b, b_int(b, 1), range, "the range of random integers is not empty");
	if (sym_le(t, range, b_int(b, (int64_t)1 << 32)) != YES)
		return b_bin(b, OP_remainder, x, r);
	Node low = b_bin(b, OP_bit_and, x, b_full_int(b, DT_u64, UINT32_MAX, 0, NULL));
	Node high = b_bin(b, OP_mul, b_bin(b, OP_shift_right, x, half), r);
	Node carry = b_bin(b, OP_shift_right, b_bin(b, OP_mul, low, r), half);
	return b_bin(b, OP_shift_right, b_bin(b, OP_add, high, carry), half);
}

/* Draws low + a number below `range`, modulo 2^64; range 0: below 2^64. Each number is as likely
 * as the others to within range / 2^64. */
static Node integers_of_all(Build *b, Sample *s, int64_t low, uint64_t range)
{
	Node x = draw_bits(b, &s->draw, &s->shape);
	if (range)
		x = b_bin(b, OP_remainder, x, b_full_int(b, DT_u64, (int64_t)range, 0, NULL));
	x = b_bin(b, OP_add, x, b_full_int(b, DT_u64, low, 0, NULL));
	return b_convert(b, aten_bitcast(b, x, DT_i64), s->dtype);
}

static Node integers(Build *b, Sample *s, Sym low, Sym high)
{
	int64_t from, to, range;
	if (aten_const(b, low, &from) && aten_const(b, high, &to) && from < to &&
	    __builtin_sub_overflow(to, from, &range))
		return integers_of_all(b, s, from, (uint64_t)to - (uint64_t)from);
	Node x = b_convert(b, below(b, &s->draw, sym_sub(b_syms(b), high, low), &s->shape), DT_i64);
	if (!sym_is(b_syms(b), low, 0))
		x = b_bin(b, OP_add, x, aten_size(b, low, DT_i64));
	return b_convert(b, x, s->dtype);
}

static Node build_randint(Build *b, Node n)
{
	Sample s;
	if (!sample_begin(b, n, DT_i64, &s))
		return (Node){0};
	bool has_low = op_arg_index(node_op(b->g, n), "low") >= 0;
	return integers(b, &s, has_low ? node_sym(b->g, n, "low") : b_int(b, 0),
			node_sym(b->g, n, "high"));
}

/* Reads the bound from a tensor without dimensions: the remainder of the bits, of which no
 * number is likelier than another by more than bound / 2^64. */
static Node build_randint_tensor(Build *b, Node n)
{
	Sample s;
	Node high = arg(b, n, "high");
	if (!sample_begin(b, n, DT_i64, &s) || !high.i)
		return (Node){0};
	Node bound = b_convert(b, b_reshape(b, high, 0, NULL), DT_u64);
	Node x = b_bin(b, OP_remainder, draw_bits(b, &s.draw, &s.shape),
		       b_bin(b, OP_maximum, bound, aten_like(b, bound, 1)));
	return b_convert(b, x, s.dtype);
}

/* Returns the greatest of random_: of integers and bool all values from 0, of floats the
 * integers that they hold. */
static Sym greatest(Build *b, DType d)
{
	int64_t low, high;
	if (d == DT_bool)
		return b_int(b, 1);
	if (dtype_is_float(d))
		return b_int(b, (int64_t)1 << (d == DT_f64   ? 53
					       : d == DT_f32 ? 24
					       : d == DT_f16 ? 11
							     : 8));
	dtype_limits(d, &low, &high);
	return b_int(b, high);
}

static Node build_random(Build *b, Node n)
{
	Sample s;
	SymTab *t = b_syms(b);
	bool has_from = op_arg_index(node_op(b->g, n), "from") >= 0,
	     has_to = op_arg_index(node_op(b->g, n), "to") >= 0;
	if (!sample_begin(b, n, DT_f32, &s))
		return (Node){0};
	Sym from = has_from ? node_sym(b->g, n, "from") : b_int(b, 0);
	if (has_to && aten_has(b, n, "to"))
		return integers(b, &s, from, node_sym(b->g, n, "to"));
	Sym most = greatest(b, s.dtype);
	if (!sym_is(t, most, INT64_MAX))
		return integers(b, &s, from, sym_add(t, most, b_int(b, 1)));
	int64_t first;
	if (!aten_const(b, from, &first))
		return b_error(b,
			       "random numbers up to the greatest of %s need a first that is known",
			       dtype_name(s.dtype));
	if (first)
		return integers_of_all(b, &s, first, (uint64_t)INT64_MAX + 1 - (uint64_t)first);
	Node x = draw_bits(b, &s.draw, &s.shape);
	return b_convert(b, b_bin(b, OP_shift_right, x, b_full_int(b, DT_u64, 1, 0, NULL)),
			 s.dtype);
}
OP(aten_randint) {
	.schema = "aten.randint(SymInt high, SymInt[] size, *, " NEW_ARGS RANDOM_ARGS ") -> Tensor",
	.aliases = "aten.randint.generator",
	.build = build_randint,
	.sample = KEY ", high=10, size=[2, 3]; " KEY ", high=100000000000, size=[2, 3]; " KEY ", high=3, size=[4], dtype=f32",
	.overloads = (const Overload[]){
		{.schema = "aten.randint.low(SymInt low, SymInt high, SymInt[] size, *, " NEW_ARGS RANDOM_ARGS ") -> Tensor",
		 .aliases = "aten.randint.low_generator",
		 .sample = KEY ", low=-5, high=10, size=[2, 3]"},
		{.schema = "aten.randint_like(Tensor self, SymInt high, *, " LIKE_ARGS RANDOM_ARGS ") -> Tensor",
		 .aliases = "aten.randint_like.generator",
		 .sample = "f32[n=3, 4], " KEY ", high=7"},
		{.schema = "aten.randint_like.Tensor(Tensor self, Tensor high, *, " LIKE_ARGS RANDOM_ARGS ") -> Tensor",
		 .aliases = "aten.randint_like.Tensor_generator",
		 .build = build_randint_tensor,
		 .sample = "f32[n=3, 4], i64[] of 7, " KEY},
		{.schema = "aten.randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, " LIKE_ARGS RANDOM_ARGS ") -> Tensor",
		 .aliases = "aten.randint_like.low_generator_dtype",
		 .sample = "i32[n=3, 4], " KEY ", low=-3, high=7"},
		{.schema = "aten.random(Tensor self, *, " RANDOM_ARGS ") -> Tensor",
		 .build = build_random,
		 .sample = "f32[n=3, 4], " KEY "; i64[3], " KEY "; u8[3], " KEY "; bool[3], " KEY},
		{.schema = "aten.random.from(Tensor self, int from, int? to, *, " RANDOM_ARGS ") -> Tensor",
		 .build = build_random,
		 .sample = "f32[n=3, 4], " KEY ", from=-5, to=5; i32[3], " KEY ", from=3, to=none"},
		{.schema = "aten.random.to(Tensor self, int to, *, " RANDOM_ARGS ") -> Tensor",
		 .build = build_random,
		 .sample = "f32[n=3, 4], " KEY ", to=5"},
	},
};

/* ---- choices ---- */

/* Returns indices in the order of random keys; equal ones, of 2^63, stay in theirs. */
static Node build_randperm(Build *b, Node n)
{
	Sample s;
	if (!sample_begin(b, n, DT_i64, &s))
		return (Node){0};
	s.shape = (Shape){1, {node_sym(b->g, n, "n")}};
	Node x = b_bin(b, OP_shift_right, draw_bits(b, &s.draw, &s.shape),
		       b_full_int(b, DT_u64, 1, 0, NULL));
	Node sorted = b_sort(b, b_convert(b, x, DT_i64), 0, false, true);
	return sorted.i ? b_convert(b, b_get(b, sorted, 1), s.dtype) : sorted;
}
OP(aten_randperm) {
	.schema = "aten.randperm(SymInt n, *, " NEW_ARGS RANDOM_ARGS ") -> Tensor",
	.aliases = "aten.randperm.generator",
	.build = build_randperm,
	.sample = KEY ", n=7; " KEY ", n=3, dtype=f32",
};

/* Divides w[.., C] by exponential numbers: the place of the greatest is i with probability w[i]
 * / sum, and so on without it. */
static Node without_replacement(Build *b, Sample *s, Node w, Sym count)
{
	Shape shape = aten_shape(b, w);
	uint32_t dim = shape.rank - 1;
	Node e = b_un(b, OP_neg, b_un(b, OP_log, draw_open(b, &s->draw, DT_f64, &shape)));
	Node score = b_bin(b, OP_div, w, e);
	if (sym_is(b_syms(b), count, 1))
		return b_unsqueeze(b, b_arg_reduce(b, true, score, dim), -1);
	Node sorted = b_sort(b, score, dim, true, true);
	return sorted.i ? b_slice(b, b_get(b, sorted, 1), -1, b_int(b, 0), count, b_int(b, 1))
			: sorted;
}

/* Finds where the running sum of w[.., C] passes a number in [0, sum). */
static Node with_replacement(Build *b, Sample *s, Node w, Sym count)
{
	Shape shape = aten_shape(b, w);
	uint32_t dim = shape.rank - 1;
	Node sums = b_cumulative(b, "sum", w, dim, false);
	Node total = b_slice(b, sums, -1, sym_sub(b_syms(b), shape.dim[dim], b_int(b, 1)),
			     shape.dim[dim], b_int(b, 1));
	shape.dim[dim] = count;
	Node u = b_bin(b, OP_mul, draw_uniform(b, &s->draw, DT_f64, &shape), total);
	Node row = b_unsqueeze(b, sums, -2); /* [.., 1, C] */
	Node passed = b_bin(b, OP_le, row, b_unsqueeze(b, u, -1)),
	     open = b_bin(b, OP_lt, row, b_unsqueeze(b, total, -1));
	/* the last is the first that has the whole sum, should the product be rounded up to it */
	Node both = b_convert(b, b_bin(b, OP_bit_and, passed, open), DT_i64);
	return b_reduce(b, REDUCE_SUM, both, 1u << (dim + 1), DT_i64);
}

/* Requires that w[.., C] is what PyTorch takes. */
static void require_weights(Build *b, Node w, uint32_t dim)
{
	Node zero = aten_like(b, w, 0),
	     legal = b_bin(b, OP_bit_and, b_bin(b, OP_ge, w, zero),
			   b_bin(b, OP_lt, w, aten_like(b, w, INFINITY)));
	Node some = b_reduce(b, REDUCE_OR, b_bin(b, OP_gt, w, zero), 1u << dim, DT_bool);
	b_node(b, OP_assert, &legal, 1,
	       (Attr[]){attr_none(),
			attr_str(b->g->ir,
				 "probability tensor contains either `inf`, `nan` or element < 0")},
	       2);
	b_node(b, OP_assert, &some, 1,
	       (Attr[]){attr_none(),
			attr_str(b->g->ir,
				 "invalid multinomial distribution (sum of probabilities <= 0)")},
	       2);
}

static Node build_multinomial(Build *b, Node n)
{
	Sample s;
	if (!float_begin(b, n, &s))
		return (Node){0};
	Sym count = node_sym(b->g, n, "num_samples");
	bool again = node_bool(b->g, n, "replacement");
	if (s.shape.rank < 1 || s.shape.rank > 2)
		return b_error(b, "probabilities of rank %u, expected 1 or 2", s.shape.rank);
	Sym choices = s.shape.dim[s.shape.rank - 1];
	if (sym_le(b_syms(b), b_int(b, 1), count) == NO)
		return b_error(b, "%s samples", sym_str(b_syms(b), count));
	aten_require_le(b, b_int(b, 1), count, "there is a sample");
	aten_require_le(b, again ? b_int(b, 1) : count, choices,
			"there are no more samples than choices");
	Node w = b_convert(b, arg(b, n, "self"), DT_f64);
	require_weights(b, w, s.shape.rank - 1);
	return (again && !sym_is(b_syms(b), count, 1) ? with_replacement
						      : without_replacement)(b, &s, w, count);
}
OP(aten_multinomial) {
	.schema = "aten.multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, " RANDOM_ARGS ") -> Tensor",
	.deviates = "the numbers of a seed are others (docs/random.md)",
	.build = build_multinomial,
	.sample = "f32[n=3, 4] in 0.5..2, " KEY ", num_samples=2; f32[3, m=4] in 0.5..2, " KEY ", num_samples=m; f32[5] in 0..2, " KEY ", num_samples=7, replacement=true; "
		  "f32[5] in 0.5..2, " KEY ", num_samples=1",
};

/* ---- slopes ---- */

static bool trains(const Graph *g, Node n)
{
	return node_bool(g, n, "training");
}

/* Returns y and sets *slope: of negative numbers random, or in evaluation the middle. */
static Node rrelu(Build *b, Node n, Node *slope)
{
	Node x = arg(b, n, "self");
	double low = node_float(b->g, n, "lower"), high = node_float(b->g, n, "upper");
	if (!require_float(b, aten_dtype(b, x)))
		return (Node){0};
	DType d = node_dtype(b->g, x), w = wide(d);
	Node wx = b_convert(b, x, w), random = b_full(b, w, (low + high) / 2, 0, NULL),
	     negative = b_bin_scalar(b, OP_le, wx, 0);
	if (trains(b->g, n)) {
		Shape s = aten_shape(b, x);
		Draw draw;
		if (!draw_begin(b, n, &draw))
			return (Node){0};
		random = placed(b, b_convert(b, draw_uniform(b, &draw, d, &s), w), high - low, low,
				w);
	}
	Node factor = b_select(b, negative, random, aten_like(b, random, 1));
	*slope = b_convert(b, factor, d);
	return b_convert(b, b_bin(b, OP_mul, wx, factor), d);
}

static Node build_rrelu(Build *b, Node n)
{
	Node slope;
	return rrelu(b, n, &slope);
}

static Node build_rrelu_functional(Build *b, Node n)
{
	Node slope, y = rrelu(b, n, &slope);
	if (y.i && !trains(b->g, n))
		slope = arg(b, n, "noise");
	return y.i ? b_tuple(b, (Node[]){y, slope}, 2) : y;
}
OP(aten_rrelu){
	.schema = "aten.rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, "
		  "bool training=False, "
		  "Generator? generator=None, *, " RANDOM_ARGS ") -> Tensor",
	.draws = trains,
	.mode = "training",
	.build = build_rrelu,
	.sample = "f32[n=3, 4], none; f32[n=3, 4], " KEY ", training=true",
	.overloads =
		(const Overload[]){
			{.schema = "aten.rrelu_with_noise_functional(Tensor self, Tensor noise, "
				   "Scalar lower=0.125, Scalar upper=0.3333333333333333, "
				   "bool training=False, Generator? generator=None, *, " RANDOM_ARGS
				   ") -> (Tensor, Tensor noise_out)",
			 .build = build_rrelu_functional,
			 .sample = "f32[n=3, 4], f32[n, 4], none; f32[n=3, 4], f32[n, 4], " KEY
				   ", training=true"},
		},
};
