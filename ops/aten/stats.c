/* ATen quantiles, modes, running extremes and searches. */
#include "ops/aten/priv.h"
#include "ops/rules/batch.h"

#include <math.h>

/* Returns element index[...] along dim, where index lacks that dim. */
static Node pick(Build *b, Node x, uint32_t dim, Node index)
{
	Node i = b_unsqueeze(b, index, (int)dim);
	return b_squeeze(b, aten_gather_dim(b, x, dim, i), (int)dim);
}

/* ---- quantiles ---- */

typedef enum { AT_LINEAR, AT_LOWER, AT_HIGHER, AT_NEAREST, AT_MIDPOINT } Between;

static bool read_between(Build *b, Node n, Between *how)
{
	static const char *const name[] = {"linear", "lower", "higher", "nearest", "midpoint"};
	for (*how = AT_LINEAR; *how <= AT_MIDPOINT; ++*how)
		if (aten_is(b, n, "interpolation", name[*how]))
			return true;
	b_error(b, "unknown interpolation of quantiles");
	return false;
}

/* Interpolates sorted values [.., size] at the fractional ranks `rank` [.., k]. */
static Node at_rank(Build *b, Node sorted, Node rank, Between how)
{
	uint32_t last = aten_rank(b, sorted) - 1;
	Node low = b_un(b, OP_floor, rank), high = b_un(b, OP_ceil, rank), frac;
	if (how == AT_LOWER)
		high = low;
	else if (how == AT_HIGHER)
		low = high;
	else if (how == AT_NEAREST)
		low = high = b_un(b, OP_round, rank);
	frac = how == AT_MIDPOINT ? b_bin_scalar(b, OP_mul, b_bin(b, OP_sub, high, low), 0.5)
				  : b_bin(b, OP_sub, rank, low);
	Node y = aten_gather_dim(b, sorted, last, b_convert(b, low, DT_i64));
	if (how != AT_LINEAR && how != AT_MIDPOINT)
		return y;
	Node z = aten_gather_dim(b, sorted, last, b_convert(b, high, DT_i64));
	/* ATen's lerp: exact at both ends. */
	Node d = b_bin(b, OP_sub, z, y), rest = b_bin(b, OP_sub, aten_like(b, frac, 1), frac);
	Node from_low = b_bin(b, OP_add, y, b_bin(b, OP_mul, frac, d));
	Node from_high = b_bin(b, OP_sub, z, b_bin(b, OP_mul, d, rest));
	return b_select(b, b_bin_scalar(b, OP_lt, frac, 0.5), from_low, from_high);
}

static Node quantile_q(Build *b, Node n)
{
	if (aten_is_tensor(b, n, "q"))
		return arg(b, n, "q");
	if (!aten_check_arg_within(b, n, "q", 0, 1))
		return (Node){0};
	return aten_scalar_as(b, node_attr(b->g, n, "q"), aten_dtype(b, arg(b, n, "self")));
}

static Node quantile(Build *b, Node n, int skip_nan)
{
	Node q = quantile_q(b, n);
	Node x = arg(b, n, "self");
	Between how;
	uint32_t rank = aten_rank(b, x), dim = 0, nq = aten_rank(b, q);
	bool all = !aten_has(b, n, "dim");
	if (!x.i || !q.i || !read_between(b, n, &how))
		return (Node){0};
	if (!all)
		dim = b_wrap_dim(b, aten_int(b, n, "dim"), rank);
	Shape full = aten_shape(b, x);
	aten_require_elements(b, x, (1u << rank) - 1, "a quantile is of a tensor with elements");
	if (all || rank == 0)
		x = b_ravel(b, x);
	else
		x = aten_move_dim(b, x, dim, rank - 1);
	uint32_t last = aten_rank(b, x) - 1;
	Node s = b_get(b, b_sort(b, x, last, false, true), 0);
	Node nan = b_un(b, OP_isnan, s);
	Node good = b_convert(b, b_un(b, OP_bit_not, nan), node_dtype(b->g, x));
	Node count = aten_sum(b, good, 1u << last, true);
	if (nq == 0)
		q = b_unsqueeze(b, q, 0);
	Node top = b_bin_scalar(b, OP_maximum, b_bin_scalar(b, OP_sub, count, 1), 0);
	Node size =
		aten_size(b, sym_addi(b_syms(b), b_dim(b, x, (int)last), -1), node_dtype(b->g, x));
	Node at = b_bin(b, OP_mul, q, skip_nan ? top : size);
	Shape want = aten_shape(b, x);
	want.dim[last] = b_dim(b, q, 0);
	at = aten_expand_shape(b, at, &want);
	Node y = at_rank(b, s, at, how);
	Node bad = skip_nan ? b_bin_scalar(b, OP_eq, count, 0)
			    : aten_reduce(b, REDUCE_OR, nan, 1u << last, true);
	y = b_select(b, bad, aten_like(b, y, (double)NAN), y);
	/* [.., k]: the quantiles come first, or go when q was 0-d */
	y = aten_move_dim(b, y, last, 0);
	if (aten_keepdim(b, n)) {
		for (uint32_t k = 0; k < full.rank; k++)
			if (all || k == dim)
				full.dim[k] = b_int(b, 1);
		full = shape_insert(full, 0, want.dim[last]);
		y = aten_reshape(b, y, &full);
	}
	return nq == 0 ? b_squeeze(b, y, 0) : y;
}

OP(aten_quantile){
	.schema = "aten.quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, "
		  "str interpolation=\"linear\") -> Tensor",
	.autocast = AUTOCAST_F32,
	.build_as = {quantile, false},
	.sample = "f32[n=3, 5] distinct -4..5, f32[3] of 0.1 0.6 1, dim=1, "
		  "interpolation=\"linear\"; f32[n=3, 5] distinct -4..5, f32[3] of 0.1 0.6 1, "
		  "dim=1, interpolation=\"lower\"; "
		  "f32[n=3, 5] distinct -4..5, f32[3] of 0.1 0.6 1, dim=1, "
		  "interpolation=\"higher\"; f32[n=3, 5] distinct -4..5, f32[3] of 0.1 0.6 1, "
		  "dim=1, interpolation=\"nearest\"; "
		  "f32[n=3, 5] distinct -4..5, f32[3] of 0.1 0.6 1, dim=1, "
		  "interpolation=\"midpoint\"; f32[2, 3] of 1 nan 2 3 -1 4, f32[] of 0.3, dim=1, "
		  "keepdim=true; "
		  "f32[4] distinct -2..3, f32[2] of 0.25 0.5",
	.overloads = (const Overload[]){
		{.schema = "aten.quantile.scalar(Tensor self, float q, int? dim=None, bool "
			   "keepdim=False, *, str interpolation=\"linear\") -> Tensor",
		 .sample = "f32[n=3, 5] distinct -4..5, q=0.35, dim=1, interpolation=\"linear\"; "
			   "f32[n=3, 5] distinct -4..5, q=0.35, dim=1, interpolation=\"lower\"; "
			   "f32[n=3, 5] distinct -4..5, q=0.35, dim=1, interpolation=\"higher\"; "
			   "f32[n=3, 5] distinct -4..5, q=0.35, dim=1, interpolation=\"nearest\"; "
			   "f32[n=3, 5] distinct -4..5, q=0.35, dim=1, interpolation=\"midpoint\"; "
			   "f32[4, 2] distinct -4..5, q=0.8"},
		{.schema = "aten.nanquantile(Tensor self, Tensor q, int? dim=None, bool "
			   "keepdim=False, *, str interpolation=\"linear\") -> Tensor",
		 .build_as = {quantile, true}},
		{.schema = "aten.nanquantile.scalar(Tensor self, float q, int? dim=None, bool "
			   "keepdim=False, *, str interpolation=\"linear\") -> Tensor",
		 .build_as = {quantile, true},
		 .sample = "f32[n=3, 5] distinct -4..5, q=0.35, dim=1, interpolation=\"linear\"; "
			   "f32[n=3, 5] distinct -4..5, q=0.35, dim=1, interpolation=\"lower\"; "
			   "f32[n=3, 5] distinct -4..5, q=0.35, dim=1, interpolation=\"higher\"; "
			   "f32[n=3, 5] distinct -4..5, q=0.35, dim=1, interpolation=\"nearest\"; "
			   "f32[n=3, 5] distinct -4..5, q=0.35, dim=1, interpolation=\"midpoint\"; "
			   "f32[4, 2] distinct -4..5, q=0.8"},
	},
};

/* ---- mode ---- */

/* Sets r to a NaN that is in front, where every value stands once: ATen's order leaves it there. */
static void mode_of_nan(Build *b, Node x, uint32_t dim, Node most, Node *r)
{
	Node first = b_squeeze(b, aten_slice(b, x, dim, 0, 1), (int)dim);
	Node nan = b_bin(b, OP_bit_and, b_un(b, OP_isnan, first), b_bin_scalar(b, OP_le, most, 1));
	r[0] = b_select(b, nan, first, r[0]);
	r[1] = b_select(b, nan, aten_like(b, r[1], 0), r[1]);
}

/* Finds the most frequent value (the smallest of several) and the last place it stands at: by
 * comparing all pairs along dim. A NaN is equal to nothing. */
static Node build_mode(Build *b, Node n)
{
	Node x = arg(b, n, "self"), r[2];
	uint32_t rank = aten_rank(b, x), dim = b_wrap_dim(b, aten_int(b, n, "dim"), rank);
	if (rank == 0)
		return x.i ? b_tuple(b, (Node[]){x, b_full_int(b, DT_i64, 0, 0, NULL)}, 2) : x;
	aten_require_elements(b, x, 1u << dim, "a mode has an element");
	Node s = b_sort(b, x, dim, false, true), value = b_get(b, s, 0), index = b_get(b, s, 1);
	Node row = b_unsqueeze(b, value, (int)dim + 1);
	Node same = b_bin(b, OP_eq, row, b_unsqueeze(b, value, (int)dim));
	Node count = aten_sum(b, b_convert(b, same, DT_i64), 1u << (dim + 1), false);
	Node at = b_arg_reduce(b, true, count, dim); /* the first of the run */
	Node most = aten_reduce(b, REDUCE_MAX, count, 1u << dim, false);
	most = b_bin_scalar(b, OP_maximum, most, 1); /* all are NaN */
	/* Equal values keep their order in a stable sort: the last of the run. */
	at = b_bin_scalar(b, OP_sub, b_bin(b, OP_add, at, most), 1);
	r[0] = pick(b, value, dim, at);
	r[1] = pick(b, index, dim, at);
	if (dtype_is_float(aten_dtype(b, x)))
		mode_of_nan(b, x, dim, most, r);
	for (uint32_t k = 0; k < 2 && aten_keepdim(b, n); k++)
		r[k] = b_unsqueeze(b, r[k], (int)dim);
	return r[0].i && r[1].i ? b_tuple(b, r, 2) : (Node){0};
}
OP(aten_mode){
	.schema = "aten.mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, "
		  "Tensor indices)",
	.deviates = "of equal counts the smallest value; NaN is equal to nothing",
	.build = build_mode,
	.adjoint = aten_adjoint_picked,
	.batch = batch_along,
	.sample = "i32[n=3, 6] in -2..2; f32[5, 2] of 1 2 1 3 2 3 1 1, dim=0, keepdim=true; "
		  "f32[] of 3",
};

/* ---- running extremes ---- */

/* Returns (running extreme, the last place so far where it stands). */
static Node running(Build *b, Node n, int max)
{
	Node x = arg(b, n, "self");
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), aten_rank(b, x));
	if (aten_rank(b, x) == 0)
		return x.i ? b_tuple(b, (Node[]){x, b_full_int(b, DT_i64, 0, 0, NULL)}, 2) : x;
	DType d = node_dtype(b->g, x);
	Node v = d == DT_bool ? b_convert(b, x, DT_u8) : x;
	Node high = b_cumulative(b, max ? "max" : "min", v, dim, false);
	Node hit = b_bin(b, OP_eq, v, high);
	if (dtype_is_float(d))
		hit = b_bin(b, OP_bit_or, hit, b_un(b, OP_isnan, v));
	Shape s = aten_shape(b, x);
	Node at = aten_iota_dim(b, &s, dim, DT_i64);
	at = b_select(b, hit, at, aten_like(b, at, 0));
	at = b_cumulative(b, "max", at, dim, false);
	return high.i && at.i ? b_tuple(b, (Node[]){b_convert(b, high, d), at}, 2) : (Node){0};
}
OP(aten_cummax){
	.schema = "aten.cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)",
	.build_as = {running, true},
	.adjoint = aten_adjoint_picked,
	.batch = batch_along,
	.sample = "f32[n=3, 4] distinct -4..5, dim=1; f32[5] of 1 1 nan 2 0, dim=0; "
		  "i32[4, 2] in -2..2, dim=0",
	.overloads = (const Overload[]){
		{.schema = "aten.cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)",
		 .build_as = {running, false}},
	},
};

/* ---- searches ---- */

/* Counts how many of sequence [.., m] stand before each of x [.., k]. */
static Node search(Build *b, Node n, Node sequence, Node x, bool right)
{
	if (!sequence.i || !x.i)
		return (Node){0};
	DType d = b_promote(b, (Node[]){sequence, x}, 2);
	Node in[2] = {b_convert(b, sequence, d), b_convert(b, x, d)};
	Attr attr[3] = {attr_none(), attr_none(), attr_bool(right)};
	if (op_arg_index(node_op(b->g, n), "side") >= 0 &&
	    !aten_check_word(b, n, "side", "left right"))
		return (Node){0};
	Node at = b_node(b, OP_searchsorted, in, 2, attr, 3);
	return node_bool(b->g, n, "out_int32") ? b_convert(b, at, DT_i32) : at;
}

static bool right_side(const Build *b, Node n)
{
	return node_bool(b->g, n, "right") || aten_is(b, n, "side", "right");
}

static Node sorted_by(Build *b, Node n)
{
	Node s = arg(b, n, "sorted_sequence"), order = arg(b, n, "sorter");
	return order.i ? aten_gather_dim(b, s, aten_rank(b, s) - 1, order) : s;
}

static Node build_searchsorted(Build *b, Node n)
{
	Node s = sorted_by(b, n);
	return search(b, n, s, aten_arg_beside(b, n, "self", s), right_side(b, n));
}
static Node build_bucketize(Build *b, Node n)
{
	Node s = arg(b, n, "boundaries");
	return search(b, n, s, aten_arg_beside(b, n, "self", s), node_bool(b->g, n, "right"));
}
OP(aten_searchsorted_Tensor){
	.schema = "aten.searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool "
		  "out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> "
		  "Tensor",
	.build = build_searchsorted,
	.sample = "f32[5] of -2 0 1 1 3.5, f32[n=2, 4] of -3 0 1 2 3.5 4 nan -2; "
		  "f32[5] of -2 0 1 1 3.5, f32[4] of -2 1 1.5 3.5, right=true, out_int32=true; "
		  "f32[2, 3] of 0 1 2 1 3 5, f32[2, 2] of 1 1.5 3 0, side=\"right\"; "
		  "f32[4] of 3 1 2 0, f32[3] of 1 1.5 3, i64[4] of 3 1 2 0",
	.overloads = (const Overload[]){
		{.schema = "aten.searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool "
			   "out_int32=False, bool right=False, str? side=None, "
			   "Tensor? sorter=None) -> Tensor",
		 .sample = "f32[5] of -2 0 1 1 3.5, self=1; f32[5] of -2 0 1 1 3.5, self=1, "
			   "right=true, out_int32=true"},
		{.schema = "aten.bucketize.Tensor(Tensor self, Tensor boundaries, *, bool "
			   "out_int32=False, bool right=False) -> Tensor",
		 .build = build_bucketize,
		 .sample = "f32[n=2, 4] of -3 0 1 2 3.5 4 nan -2, f32[5] of -2 0 1 1 3.5; "
			   "f32[4] of -2 1 1.5 3.5, f32[5] of -2 0 1 1 3.5, right=true, "
			   "out_int32=true"},
		{.schema = "aten.bucketize.Scalar(Scalar self, Tensor boundaries, *, bool "
			   "out_int32=False, bool right=False) -> Tensor",
		 .build = build_bucketize,
		 .sample = "self=1, f32[5] of -2 0 1 1 3.5; self=1, f32[5] of -2 0 1 1 3.5, "
			   "right=true, out_int32=true"},
	},
};

static Node is_in(Build *b, Node n, Node x, Node y)
{
	Node eq = b_bin(b, OP_eq, b_unsqueeze(b, x, -1), b_ravel(b, y));
	Node any = aten_reduce(b, REDUCE_OR, eq, eq.i ? 1u << (aten_rank(b, eq) - 1) : 0, false);
	return node_bool(b->g, n, "invert") ? b_un(b, OP_bit_not, any) : any;
}

static Node build_isin(Build *b, Node n)
{
	return is_in(b, n, arg(b, n, "elements"), arg(b, n, "test_elements"));
}
static Node build_isin_scalar(Build *b, Node n)
{
	Node x = arg(b, n, "elements");
	return is_in(b, n, x, aten_scalar_arg(b, n, "test_element", x));
}
/* Keeps the value of the scalar: what the tensor's dtype lacks is not in it. */
static Node build_isin_of_scalar(Build *b, Node n)
{
	const Attr *a = node_attr(b->g, n, "element");
	Node y = arg(b, n, "test_elements");
	DType d = aten_scalar_dtype(aten_dtype(b, y), a);
	return is_in(b, n, aten_scalar_factor(b, a, dtype_is_int(d) ? DT_i64 : d), y);
}
OP(aten_isin_Tensor_Tensor){
	.schema = "aten.isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool "
		  "assume_unique=False, bool invert=False) -> Tensor",
	.build = build_isin,
	.sample = "i32[n=3, 4] in -3..3, i32[3] of 1 -2 3; f32[4] of 1 nan 2 0, f32[2] of nan 2, "
		  "invert=true",
	.overloads = (const Overload[]){
		{.schema = "aten.isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool "
			   "assume_unique=False, bool invert=False) -> Tensor",
		 .build = build_isin_scalar,
		 .sample = "i32[n=3, 4] in -3..3, test_element=1"},
		{.schema = "aten.isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool "
			   "assume_unique=False, bool invert=False) -> Tensor",
		 .build = build_isin_of_scalar,
		 .sample = "element=1, i32[n=3, 4] in -3..3"},
	},
};

/* Counts elements in equal bins of [min, max]; with min = max, of the data's own range. */
static Node build_histc(Build *b, Node n)
{
	Node x = b_ravel(b, arg(b, n, "self"));
	int64_t bins = aten_int(b, n, "bins");
	double lo = node_float(b->g, n, "min"), hi = node_float(b->g, n, "max");
	if (!x.i || bins < 1 || lo > hi)
		return b_error(b, "histogram of %lld bins from %g to %g", (long long)bins, lo, hi);
	Node low = aten_like(b, x, lo), high = aten_like(b, x, hi);
	if (lo == hi) {
		low = aten_reduce(b, REDUCE_MIN, x, 1, false);
		high = aten_reduce(b, REDUCE_MAX, x, 1, false);
		Node same = b_bin(b, OP_eq, low, high);
		Node less = b_bin_scalar(b, OP_sub, low, 1),
		     more = b_bin_scalar(b, OP_add, high, 1);
		low = b_select(b, same, less, low);
		high = b_select(b, same, more, high);
	}
	Node at = b_bin_scalar(b, OP_mul, b_bin(b, OP_sub, x, low), (double)bins);
	at = b_un(b, OP_floor, b_bin(b, OP_div, at, b_bin(b, OP_sub, high, low)));
	at = b_bin_scalar(b, OP_minimum, at, (double)(bins - 1));
	Node inside = b_bin(b, OP_ge, x, low);
	inside = b_bin(b, OP_bit_and, inside, b_bin(b, OP_le, x, high));
	Node k = b_unsqueeze(b, b_iota(b, DT_i64, b_int(b, bins)), -1);
	Node hit = b_bin(b, OP_eq, k, b_convert(b, at, DT_i64));
	hit = b_bin(b, OP_bit_and, hit, inside);
	return aten_sum(b, b_convert(b, hit, node_dtype(b->g, x)), 2, false);
}
OP(aten_histc){
	.schema = "aten.histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
	.build = build_histc,
	.sample = "f32[n=3, 4], bins=5; f32[3, 4], bins=4, min=-2, max=3; f32[3] of 2, bins=3",
};
