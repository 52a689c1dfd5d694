/* ATen order statistics: the k-th smallest element, medians. Short rows are sorted. In others a
 * rank is found by the bits of keys, which are integers in the order of the elements: with as many
 * counts as a key has bits, each over the whole row. */
#include "ops/aten/priv.h"
#include "ops/rules/batch.h"

#include <math.h>

/* ---- ranks ---- */

/* Keys: integers of dtype i32 or i64 from `least` on, which have `bits` bits. */
typedef struct {
	Node of;
	uint32_t bits;
	int64_t least;
} Keys;

static Node like(Build *b, Node x, int64_t v)
{
	return x.i ? b_full_int(b, node_dtype(b->g, x), v, 0, NULL) : x;
}

/* Returns the bits of a float as a signed integer: zeros are equal, and so are all NaN, which
 * come last. */
static Node float_keys(Build *b, Node x, DType as)
{
	const DType d = node_dtype(b->g, x);
	const int64_t most = d == DT_f64 ? INT64_MAX : d == DT_f32 ? INT32_MAX : INT16_MAX;
	Node bits = aten_bitcast(b, x, d == DT_f64 ? DT_i64 : d == DT_f32 ? DT_i32 : DT_i16);
	bits = b_convert(b, bits, as);
	Node turned = b_bin(b, OP_bit_xor, bits, like(b, bits, most));
	bits = b_select(b, b_bin_scalar(b, OP_lt, bits, 0), turned, bits);
	bits = b_select(b, b_bin_scalar(b, OP_eq, x, 0), like(b, bits, 0), bits);
	return b_select(b, b_un(b, OP_isnan, x), like(b, bits, most), bits);
}

static Keys keys_of(Build *b, Node x)
{
	DType d = node_dtype(b->g, x);
	if (dtype_is_float(d) && dtype_size(d) == 1)
		x = b_convert(b, x, d = DT_f32);
	const uint32_t size = dtype_size(d);
	Keys k = {x, d == DT_bool ? 1 : 8 * size, 0};
	const bool is_signed = dtype_is_float(d) || dtype_is_signed(d);
	const DType as = size == 8 || d == DT_u32 ? DT_i64 : DT_i32;
	if (is_signed || d == DT_u64)
		k.least = -1 - (int64_t)(UINT64_MAX >> (65 - k.bits));
	if (dtype_is_float(d))
		k.of = float_keys(b, x, as);
	else if (d == DT_u64)
		k.of = aten_bitcast(b, b_bin(b, OP_bit_xor, x, like(b, x, INT64_MIN)), DT_i64);
	else
		k.of = b_convert(b, x, as);
	return k;
}

/* Counts the keys along dim that are less than `than`, which lacks dim. */
static Node count_less(Build *b, const Keys *k, Node than, uint32_t dim, DType as)
{
	Node less = b_bin(b, OP_lt, k->of, b_unsqueeze(b, than, (int)dim));
	return b_reduce(b, REDUCE_SUM, b_convert(b, less, as), 1u << dim, as);
}

/* Finds the key of that rank: the greatest that at most `rank` keys are less than. Its bits are
 * found one by one, the highest first. */
static Node key_at(Build *b, const Keys *k, uint32_t dim, Node rank)
{
	int64_t least, most;
	sym_range(b_syms(b), b_dim(b, k->of, (int)dim), &least, &most);
	const DType as = most <= INT32_MAX ? DT_i32 : DT_i64;
	const Shape s = aten_shape(b, rank);
	Node found = b_full_int(b, node_dtype(b->g, k->of), k->least, s.rank, s.dim);
	rank = b_convert(b, rank, as);
	for (uint32_t bit = k->bits; bit-- > 0;) {
		Node more = b_bin(b, OP_add, found, like(b, found, (int64_t)(UINT64_C(1) << bit)));
		Node fits = b_bin(b, OP_le, count_less(b, k, more, dim, as), rank);
		found = b_select(b, fits, more, found);
	}
	return found;
}

/* Sets r[0] to the value, r[1] to the index of the element of that rank, both with extent 1
 * along dim. */
static void find_rank(Build *b, Node x, uint32_t dim, Node rank, Node r[2])
{
	Keys k = keys_of(b, x);
	Node key = b_unsqueeze(b, key_at(b, &k, dim, rank), (int)dim);
	Node hit = b_convert(b, b_bin(b, OP_eq, k.of, key), DT_i32);
	r[1] = b_unsqueeze(b, b_arg_reduce(b, true, hit, dim), (int)dim);
	r[0] = aten_gather_dim(b, x, dim, r[1]);
}

static void sort_for_rank(Build *b, Node x, uint32_t dim, Node rank, Node r[2])
{
	Node s = b_sort(b, x, dim, false, true), at = b_unsqueeze(b, rank, (int)dim);
	for (uint32_t j = 0; j < 2; j++)
		r[j] = aten_gather_dim(b, b_get(b, s, j), dim, at);
}

/* Returns (value, index) of the element of that rank along dim. rank: i64, without dim. */
static Node at_rank(Build *b, Node x, uint32_t dim, Node rank, bool keep)
{
	enum { SHORT_ROW = 32 };
	int64_t least, most;
	Node r[2];
	if (!x.i || !rank.i)
		return (Node){0};
	sym_range(b_syms(b), b_dim(b, x, (int)dim), &least, &most);
	(most <= SHORT_ROW ? sort_for_rank : find_rank)(b, x, dim, rank, r);
	for (uint32_t j = 0; j < 2 && !keep; j++)
		r[j] = b_squeeze(b, r[j], (int)dim);
	return r[0].i && r[1].i ? b_tuple(b, r, 2) : (Node){0};
}

/* ---- the k-th smallest element ---- */

static Node build_kthvalue(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	const uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), aten_rank(b, x));
	const Sym k = node_sym(b->g, n, "k"), last = sym_addi(b_syms(b), k, -1);
	if (aten_rank(b, x) == 0)
		return x.i ? b_tuple(b, (Node[]){x, b_full_int(b, DT_i64, 0, 0, NULL)}, 2) : x;
	aten_require_le(b, b_int(b, 1), k, "kthvalue");
	aten_require_le(b, k, b_dim(b, x, (int)dim), "kthvalue");
	const Shape one = shape_remove(aten_shape(b, x), dim);
	Node rank = aten_expand_shape(b, aten_size(b, last, DT_i64), &one);
	return at_rank(b, x, dim, rank, node_bool(b->g, n, "keepdim"));
}
OP(aten_kthvalue){
	.schema = "aten.kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> "
		  "(Tensor values, Tensor indices)",
	.deviates = "which of equal elements the index names is not specified there",
	.build = build_kthvalue,
	.adjoint = aten_adjoint_picked,
	.batch = batch_along,
	.sample = "f32[n=2, 6] distinct -4..5, k=2; f32[5, 2] distinct -4..5, k=4, dim=0, "
		  "keepdim=true; f32[n=2, 35] distinct -40..40, k=3",
};

/* ---- medians ---- */

/* Returns (value, index) of the lower median of x along dim: with skip_nan of what is no NaN,
 * otherwise any NaN is the answer. NaN have the last ranks. */
static Node median(Build *b, Node x, uint32_t dim, bool skip_nan, bool keep)
{
	if (aten_rank(b, x) == 0)
		return x.i ? b_tuple(b, (Node[]){x, b_full_int(b, DT_i64, 0, 0, NULL)}, 2) : x;
	const Shape one = shape_remove(aten_shape(b, x), dim);
	const Sym last = sym_addi(b_syms(b), b_dim(b, x, (int)dim), -1);
	Node at = aten_size(b, sym_divi(b_syms(b), last, 2), DT_i64);
	if (dtype_is_float(aten_dtype(b, x))) {
		Node nan = b_convert(b, b_un(b, OP_isnan, x), DT_i64);
		Node count = aten_sum(b, nan, 1u << dim, false);
		if (skip_nan) {
			at = b_bin(b, OP_sub, aten_size(b, last, DT_i64), count);
			at = b_bin_scalar(b, OP_floordiv, b_bin_scalar(b, OP_maximum, at, 0), 2);
		} else {
			at = b_select(b, b_bin_scalar(b, OP_gt, count, 0),
				      aten_size(b, last, DT_i64), at);
		}
	}
	return at_rank(b, x, dim, aten_expand_shape(b, at, &one), keep);
}

static Node median_dim(Build *b, Node n, int skip_nan)
{
	Node x = arg(b, n, "self");
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), aten_rank(b, x));
	aten_require_elements(b, x, 1u << dim, "a median has an element");
	return median(b, x, dim, skip_nan, aten_keepdim(b, n));
}
/* Returns all elements; of nothing NaN, or what NaN is among integers. */
static Node flat_or_nan(Build *b, Node x)
{
	x = b_ravel(b, x);
	Sym zero = b_int(b, 0), one = b_int(b, 1), size = b_dim(b, x, 0);
	if (!x.i || sym_le(b_syms(b), one, size) == YES)
		return x;
	Sym more = sym_max(b_syms(b), zero, sym_sub(b_syms(b), one, size));
	return b_pad(b, x, &zero, &more,
		     b_convert(b, b_full(b, DT_f32, (double)NAN, 0, NULL), node_dtype(b->g, x)));
}
static Node build_median(Build *b, Node n)
{
	return b_get(b, median(b, flat_or_nan(b, arg(b, n, "self")), 0, false, false), 0);
}
static Node build_nanmedian(Build *b, Node n)
{
	return b_get(b, median(b, flat_or_nan(b, arg(b, n, "self")), 0, true, false), 0);
}
OP(aten_median_dim){
	.schema = "aten.median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, "
		  "Tensor indices)",
	.build_as = {median_dim, false},
	.adjoint = aten_adjoint_picked,
	.batch = batch_along,
	.sample = "f32[n=3, 5] distinct -4..5, dim=1; f32[4, 2] distinct -4..5, dim=0, "
		  "keepdim=true; f32[2, 3] of 1 nan 2 3 -1 4, dim=1; "
		  "f32[34, n=2] distinct -40..40, dim=0",
	.overloads = (const Overload[]){
		{.schema = "aten.nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> "
			   "(Tensor values, Tensor indices)",
		 .build_as = {median_dim, true}},
	},
};
OP(aten_median){
	.schema = "aten.median(Tensor self) -> Tensor",
	.build = build_median,
	.adjoint = aten_adjoint_shared,
	.batch = batch_by_scan,
	.sample = "f32[n=3, 5] distinct -4..5; i32[4] of 3 -1 7 2; f32[4] of 1 nan 2 3",
	.overloads = (const Overload[]){
		{.schema = "aten.nanmedian(Tensor self) -> Tensor",
		 .build = build_nanmedian},
	},
};
