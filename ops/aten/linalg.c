/* ATen linear algebra without factorisations. */
#include "ops/aten/spectral.h"

#include <math.h>

static Node build_vecdot(Build *b, Node n)
{
	Node x = arg(b, n, "x");
	if (dtype_is_complex(aten_dtype(b, x)))
		x = b_node(b, OP_aten_conj_physical, &x, 1, NULL, 0);
	Node p = aten_mul(b, x, arg(b, n, "y"));
	if (aten_rank(b, p) == 0)
		return p;
	return aten_sum(b, p, 1u << b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, p)),
			false);
}
OP(aten_linalg_vecdot){
	.schema = "aten.linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
	.autocast = AUTOCAST_LOW,
	.build = build_vecdot,
	.sample = "f32[n=3, 4], f32[n, 4]; f32[3, 4], f32[3, 4], dim=0; c64[2, 3], c64[2, 3]",
};

/* Returns element k along dim, with the dim kept. */
static Node component(Build *b, Node x, uint32_t dim, int64_t k)
{
	return aten_slice(b, x, dim, k, k + 1);
}

static Node cross(Build *b, Node n, Node x, Node y, uint32_t dim)
{
	Node part[3];
	(void)n;
	for (uint32_t k = 0; k < 3; k++) {
		uint32_t i = (k + 1) % 3, j = (k + 2) % 3;
		Node left = component(b, x, dim, i), right = component(b, x, dim, j);
		left = b_bin(b, OP_mul, left, component(b, y, dim, j));
		right = b_bin(b, OP_mul, right, component(b, y, dim, i));
		part[k] = b_bin(b, OP_sub, left, right);
	}
	return b_concat(b, part, 3, (int)dim);
}

static Node build_cross(Build *b, Node n)
{
	Node x = arg(b, n, "self"), y = arg(b, n, "other");
	Shape s = aten_shape(b, x), t = aten_shape(b, y), u;
	uint32_t dim = 0;
	if (!aten_broadcast_shape(b, &s, &t, &u) || u.rank == 0)
		return (Node){0};
	bool given = aten_has(b, n, "dim");
	while (!given && dim + 1 < u.rank && !sym_is(b_syms(b), u.dim[dim], 3))
		dim++;
	if (given)
		dim = b_wrap_dim(b, aten_int(b, n, "dim"), u.rank);
	if (!sym_is(b_syms(b), u.dim[dim], 3))
		return b_error(b, "cross product along an extent of %s, expected 3",
			       sym_str(b_syms(b), u.dim[dim]));
	x = aten_expand_shape(b, x, &u);
	return cross(b, n, x, aten_expand_shape(b, y, &u), dim);
}
OP(aten_linalg_cross){
	.schema = "aten.linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
	.autocast_gpu = AUTOCAST_WIDEST,
	.build = build_cross,
	.sample = "f32[n=2, 3], f32[n, 3]; f32[3, 2], f32[3, 1], dim=0",
	.overloads = (const Overload[]){
		{.schema = "aten.cross(Tensor self, Tensor other, int? dim=None) -> Tensor",
		 .sample = "f32[n=2, 3], f32[n, 3], dim=1; f32[3, 2], f32[3, 2]"},
	},
};

static Node build_matrix_power(Build *b, Node n)
{
	Node x = arg(b, n, "self"), y = {0};
	Shape s = aten_shape(b, x);
	int64_t e = aten_int(b, n, "n");
	if (!x.i || s.rank < 2 || e == INT64_MIN)
		return b_error(b, "matrix power %lld of an operand of rank %u", (long long)e,
			       s.rank);
	if (e < 0) {
		x = b_node(b, OP_aten_linalg_inv, &x, 1, NULL, 0);
		e = -e;
	}
	if (!x.i)
		return x;
	if (e == 0) {
		Node i = aten_iota_dim(b, &s, s.rank - 2, DT_i64);
		Node on = b_bin(b, OP_eq, i, aten_iota_dim(b, &s, s.rank - 1, DT_i64));
		return b_convert(b, on, node_dtype(b->g, x));
	}
	for (;; x = b_matmul(b, x, x)) {
		if (e & 1)
			y = y.i ? b_matmul(b, y, x) : x;
		if ((e >>= 1) == 0)
			return y;
	}
}
OP(aten_linalg_matrix_power){
	.schema = "aten.linalg_matrix_power(Tensor self, int n) -> Tensor",
	.aliases = "aten.matrix_power",
	.build = build_matrix_power,
	.sample = "f32[3, 3] in -1..1, n=3; f32[2, 2] in -1..1, n=0; f32[2, 2, 2] in -1..1, n=1; "
		  "f32[2, 2] in -1..1, n=6; f32[2, 2, 2] of 4 1 -1 2 0 1 2 3, n=-3; "
		  "c64[2, 2] of 0 1 2 0 1 -1 3 0.5, n=-1",
};

static Node build_kron(Build *b, Node n)
{
	Node x = arg(b, n, "self"), y = arg(b, n, "other");
	Shape s = aten_shape(b, x), t = aten_shape(b, y), wide = {0}, r = {0};
	uint32_t mx[MAX_RANK], my[MAX_RANK];
	uint32_t rank = s.rank > t.rank ? s.rank : t.rank;
	if (!x.i || !y.i || 2 * rank > MAX_RANK)
		return b_error(b, "kron of ranks %u and %u", s.rank, t.rank);
	while (s.rank < rank)
		s = shape_insert(s, 0, b_int(b, 1));
	while (t.rank < rank)
		t = shape_insert(t, 0, b_int(b, 1));
	for (uint32_t k = 0; k < rank; k++) {
		mx[k] = wide.rank;
		wide.dim[wide.rank++] = s.dim[k];
		my[k] = wide.rank;
		wide.dim[wide.rank++] = t.dim[k];
		r.dim[r.rank++] = sym_mul(b_syms(b), s.dim[k], t.dim[k]);
	}
	x = b_broadcast_in_dim(b, aten_reshape(b, x, &s), wide.rank, wide.dim, mx);
	y = b_broadcast_in_dim(b, aten_reshape(b, y, &t), wide.rank, wide.dim, my);
	return aten_reshape(b, aten_mul(b, x, y), &r);
}
OP(aten_kron){
	.schema = "aten.kron(Tensor self, Tensor other) -> Tensor",
	.build = build_kron,
	.sample = "f32[n=2, 3], f32[3, 2]; f32[2], f32[2, 2]",
};

/* Returns x^0, x^1, ... along a new last dim. */
static Node powers(Build *b, Node x, Sym count)
{
	uint32_t rank = aten_rank(b, x);
	int64_t len;
	if (!aten_const(b, count, &len) || len < 1 || len > 4096)
		return b_error(b, "vander of %s columns", sym_str(b_syms(b), count));
	x = aten_sum_operand(b, x); /* powers of integers are i64, too */
	Node *part = arena_calloc(b->g->ir->ctx->scratch, (size_t)len, sizeof *part);
	Shape s = aten_shape(b, x);
	part[0] = b_full(b, node_dtype(b->g, x), 1, s.rank, s.dim);
	for (int64_t k = 1; k < len; k++)
		part[k] = b_bin(b, OP_mul, part[k - 1], x);
	return aten_stack(b, part, (uint32_t)len, rank);
}

static Node build_vander(Build *b, Node n)
{
	Node x = arg(b, n, "x");
	if (!x.i || aten_rank(b, x) == 0)
		return b_error(b, "vander of a tensor without dims");
	return powers(b, x, aten_has(b, n, "N") ? node_sym(b->g, n, "N") : b_dim(b, x, -1));
}

/* Builds the same of a vector, the highest power first. */
static Node build_vander_of_vector(Build *b, Node n)
{
	Node x = arg(b, n, "x");
	if (!x.i || aten_rank(b, x) != 1)
		return b_error(b, "vander of an operand of rank %u, expected a vector",
			       aten_rank(b, x));
	Sym columns = aten_has(b, n, "N") ? node_sym(b->g, n, "N") : b_dim(b, x, 0);
	if (sym_is(b_syms(b), columns, 0))
		return b_full(b, aten_dtype(b, aten_sum_operand(b, x)), 0, 2,
			      (Sym[]){b_dim(b, x, 0), columns});
	Node y = powers(b, x, columns);
	return node_bool(b->g, n, "increasing") ? y : b_reverse(b, y, 1);
}
OP(aten_linalg_vander){
	.schema = "aten.linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor",
	.build = build_vander,
	.sample = "f32[3] in -2..2; f32[2, 3] in -2..2, N=5",
	.overloads = (const Overload[]){
		{.schema = "aten.vander(Tensor x, int? N=None, bool increasing=False) -> Tensor",
		 .build = build_vander_of_vector,
		 .sample = "f32[3] in -2..2; f32[n=4] in -2..2, N=5, increasing=true; "
			   "i32[n=3], N=4; f32[2], N=0; f32[n=2], N=1; f32[0], N=2"},
	},
};

/* ---- norms ---- */

static Node length_of_parts(Build *b, Node x, uint32_t dims, bool keep)
{
	uint32_t last = aten_rank(b, x);
	Node y =
		aten_length(b, b_node(b, OP_view_real, &x, 1, NULL, 0), 2, dims | 1u << last, keep);
	return keep ? b_squeeze(b, y, (int)last) : y;
}

Node aten_vector_norm(Build *b, Node x, double p, uint32_t dims, bool keep)
{
	if (!x.i)
		return x;
	bool complex = dtype_is_complex(aten_dtype(b, x));
	if (complex && p == 2 && dims) /* of all parts: curved where one number is 0 */
		return length_of_parts(b, x, dims, keep);
	if (complex)
		x = aten_abs(b, x);
	if (p == 1)
		return aten_sum(b, b_un(b, OP_abs, x), dims, keep);
	if (p == 0)
		return aten_sum(b,
				b_convert(b, b_bin_scalar(b, OP_ne, b_un(b, OP_abs, x), 0),
					  aten_dtype(b, x)),
				dims, keep);
	if (p < 0 || isinf(p))
		aten_require_elements(b, x, dims, "a norm of this order has an element");
	return aten_length(b, x, p, dims, keep);
}

static Node norm_of(Build *b, Node x, double p, uint32_t dims, bool keep)
{
	return aten_vector_norm(b, x, p, dims, keep);
}

/* Reads the two dims of a matrix norm; false after b_error. */
static bool matrix_dims(Build *b, Node n, uint32_t rank, uint32_t *row, uint32_t *col)
{
	int64_t d[2] = {-2, -1};
	uint32_t len = 2;
	if (aten_has(b, n, "dim"))
		node_ints(b->g, n, "dim", &len);
	if (len != 2)
		return b_error(b, "dim has %u elements, expected 2", len).i;
	if (aten_has(b, n, "dim") && !aten_ints(b, n, "dim", 2, 0, d))
		return false;
	if (rank < 2) {
		b_error(b, "matrix norm of an operand of rank %u", rank);
		return false;
	}
	*row = b_wrap_dim(b, d[0], rank);
	*col = b_wrap_dim(b, d[1], rank);
	return *row != *col || b_error(b, "the dims of a matrix are the same one twice").i;
}

/* Orders 1, -1 (columns), inf, -inf (rows), 2, -2 (singular values) and "fro". */
static Node matrix_norm(Build *b, Node n, Node x, double p, bool frobenius)
{
	uint32_t row, col;
	if (!matrix_dims(b, n, aten_rank(b, x), &row, &col))
		return (Node){0};
	uint32_t both = 1u << row | 1u << col;
	if (frobenius)
		return norm_of(b, x, 2, both, aten_keepdim(b, n));
	bool columns = fabs(p) == 1;
	if (fabs(p) == 2)
		return spectral_norm(b, x, row, col, (int)p, aten_keepdim(b, n));
	if (!columns && !isinf(p))
		return b_error(b, "matrix norm of order %g, expected 1, -1, 2, -2, inf or -inf", p);
	uint32_t rest = 1u << (columns ? col : row);
	Node sum = norm_of(b, x, 1, both & ~rest, true);
	if (p > 0 && sym_is(b_syms(b), b_dim(b, x, (int)(columns ? col : row)), 0)) /* of none: 0 */
		return aten_sum(b, sum, both, aten_keepdim(b, n));
	aten_require_elements(b, x, rest, "a matrix of this norm has rows and columns");
	Node y = aten_reduce(b, p > 0 ? REDUCE_MAX : REDUCE_MIN, sum, rest, true);
	return aten_keepdim(b, n) ? y : aten_squeeze_dims(b, y, both);
}

static Node float_self(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	DType d = dtype_to_float(aten_dtype_or(b, n, "dtype", aten_dtype(b, x)));
	return x.i ? b_convert(b, x, d) : x;
}

static Node build_matrix_norm(Build *b, Node n)
{
	return matrix_norm(b, n, float_self(b, n), node_float(b->g, n, "ord"), false);
}

static Node build_matrix_norm_str(Build *b, Node n)
{
	uint32_t row, col;
	Node x = float_self(b, n);
	if (!aten_check_word(b, n, "ord", "fro nuc"))
		return (Node){0};
	if (aten_is(b, n, "ord", "fro"))
		return matrix_norm(b, n, x, 0, true);
	return matrix_dims(b, n, aten_rank(b, x), &row, &col)
		       ? spectral_norm(b, x, row, col, 1, aten_keepdim(b, n))
		       : (Node){0};
}
OP(aten_linalg_matrix_norm){
	.schema = "aten.linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool "
		  "keepdim=False, *, ScalarType? dtype=None) -> Tensor",
	.build = build_matrix_norm,
	.sample = "f32[n=2, 3, 4], ord=1; f32[n=2, 3, 4], ord=-1; f32[n=2, 3, 4], ord=inf; "
		  "f32[n=2, 3, 4], ord=-inf; f32[3, 4], ord=1, dim=[1, 0], keepdim=true; "
		  "f32[n=2, 3, 4], ord=2; f32[3, 4, 2] in -4..5, ord=-2, dim=[2, 0], keepdim=true",
	.overloads = (const Overload[]){
		{.schema = "aten.linalg_matrix_norm.str_ord(Tensor self, str ord=\"fro\", int[] "
			   "dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
		 .build = build_matrix_norm_str,
		 .sample = "f32[n=2, 3, 4]; f32[3, 4], ord=\"fro\", keepdim=true; "
			   "f32[n=2, 3, 4], ord=\"nuc\", dim=[0, 2]"},
	},
};
/* Builds the norm, without dims of a matrix, not of several. */
static Node build_linalg_norm_str(Build *b, Node n)
{
	uint32_t rank = aten_rank(b, arg(b, n, "self"));
	if (!aten_has(b, n, "dim") && rank != 2)
		return b_error(b, "the norm of order \"fro\" of rank %u without dims, expected 2",
			       rank);
	return build_matrix_norm_str(b, n);
}

/* Builds the norm of vectors by default; a given order with two dims, or on a matrix without
 * dims, is a matrix norm. */
static Node build_linalg_norm(Build *b, Node n)
{
	Node x = float_self(b, n);
	uint32_t rank = aten_rank(b, x), ndim = 0;
	if (aten_has(b, n, "dim"))
		node_ints(b->g, n, "dim", &ndim);
	bool order = aten_has(b, n, "ord");
	if (order && (ndim == 2 || (ndim == 0 && rank == 2)))
		return matrix_norm(b, n, x, node_float(b->g, n, "ord"), false);
	uint32_t dims = aten_dims(b, n, "dim", rank);
	return norm_of(b, x, order ? node_float(b->g, n, "ord") : 2, dims, aten_keepdim(b, n));
}
OP(aten_linalg_norm_ord_str){
	.schema = "aten.linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool "
		  "keepdim=False, *, ScalarType? dtype=None) -> Tensor",
	.build = build_linalg_norm_str,
	.sample = "f32[n=3, 4], ord=\"fro\"; f32[2, 3, 4], ord=\"fro\", dim=[0, 1], keepdim=true",
	.overloads = (const Overload[]){
		{.schema = "aten.linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool "
			   "keepdim=False, *, ScalarType? dtype=None) -> Tensor",
		 .build = build_linalg_norm,
		 .sample = "f32[n=3, 4]; f32[3, 4], ord=1, dim=[1]; f32[3, 4], ord=inf; "
			   "f32[3, 4], ord=3, dim=[0], keepdim=true; f32[5], ord=0.5"},
	},
};

/* Returns x with its slices along dim whose p-norm is above max scaled down to it. */
static Node scaled_down(Build *b, Node x, uint32_t dim, double p, double max)
{
	uint32_t rank = aten_rank(b, x);
	Node len = norm_of(b, aten_wide(b, x), p, ((1u << rank) - 1) & ~(1u << dim), true);
	Node ratio = b_bin_scalar(b, OP_add, len, 1e-7);
	ratio = b_bin(b, OP_div, aten_like(b, len, max), ratio);
	Node over = b_bin_scalar(b, OP_gt, len, max);
	ratio = b_select(b, over, ratio, aten_like(b, ratio, 1));
	Node y = b_bin(b, OP_mul, x, ratio);
	return y.i ? b_convert(b, y, aten_dtype(b, x)) : y;
}

static Node build_renorm(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t rank = aten_rank(b, x), dim = b_wrap_dim(b, aten_int(b, n, "dim"), rank);
	if (rank < 2)
		return b_error(b, "renorm of an operand of rank %u", rank);
	if (!aten_check_arg_within(b, n, "maxnorm", 0, INFINITY))
		return (Node){0};
	return scaled_down(b, x, dim, node_float(b->g, n, "p"), node_float(b->g, n, "maxnorm"));
}
OP(aten_renorm){
	.schema = "aten.renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.build = build_renorm,
	.sample = "f32[n=3, 4], p=2, dim=0, maxnorm=4; f32[3, 4], p=1, dim=1, maxnorm=3.5",
};

/* Scales the rows of a table that are about to be read. One that is named twice is scaled once:
 * all are computed from the old table. Derivatives pass through it: to PyTorch it happens
 * outside of what is differentiated. */
static Node build_embedding_renorm(Build *b, Node n)
{
	Node w = arg(b, n, "self"), index = arg(b, n, "indices");
	if (aten_rank(b, w) != 2)
		return b_error(b, "a table of rank %u, expected 2", aten_rank(b, w));
	Shape s = aten_shape(b, index);
	Sym count = shape_numel(b, &s);
	index = b_reshape(b, index, 1, &count);
	Node rows = aten_take_dim(b, w, 0, index, "within");
	rows = scaled_down(b, rows, 0, node_float(b->g, n, "norm_type"),
			   node_float(b->g, n, "max_norm"));
	Node in[] = {w, index, rows};
	Attr attr[] = {attr_none(), attr_int(b->g->ir, 0)};
	if (!rows.i)
		return rows;
	Node y = b_node(b, OP_aten_index_copy, in, 3, attr, 2);
	return b_bin(b, OP_straight_through, y, w);
}
OP(aten_embedding_renorm){
	.schema = "aten.embedding_renorm(Tensor self, Tensor indices, float max_norm, float "
		  "norm_type) -> Tensor",
	.build = build_embedding_renorm,
	.sample = "f32[5, 3], i64[n=2, 4] of 0 4 1 1 3 2 0 4, max_norm=2, norm_type=2; "
		  "f32[5, 3], i64[4] of 0 4 1 1, max_norm=1.5, norm_type=1",
};

/* ---- distances ---- */

/* Returns x with a 0 where its last dim has no element. */
static Node some(Build *b, Node x)
{
	Sym low[MAX_RANK], high[MAX_RANK], size = b_dim(b, x, -1);
	uint32_t rank = aten_rank(b, x);
	if (!x.i || sym_le(b_syms(b), b_int(b, 1), size) == YES)
		return x;
	for (uint32_t k = 0; k < rank; k++)
		low[k] = high[k] = b_int(b, 0);
	high[rank - 1] = sym_max(b_syms(b), b_int(b, 0), sym_sub(b_syms(b), b_int(b, 1), size));
	return b_pad(b, x, low, high, aten_like(b, x, 0));
}

/* Returns the greatest |d|, to which NaN adds nothing: of equal ones each has the whole slope,
 * where a norm's share it. NaN and infinities have NaN. */
static Node greatest_distance(Build *b, Node d, uint32_t dims)
{
	Node a = aten_abs(b, d), none = aten_like(b, a, 0), nan = b_un(b, OP_isnan, d);
	Node y = aten_length(b, some(b, b_select(b, nan, none, d)), INFINITY, dims, true);
	Node lost = b_bin(b, OP_bit_or, nan, b_bin_scalar(b, OP_eq, a, INFINITY));
	Node slope =
		b_bin(b, OP_mul, a, b_select(b, lost, aten_like(b, a, NAN), aten_like(b, a, 1)));
	Node equal = b_select(b, b_bin(b, OP_bit_or, lost, b_bin(b, OP_eq, a, y)), slope, none);
	equal = aten_sum(b, equal, dims, true);
	y = y.i && equal.i ? b_bin(b, OP_straight_through, y, equal) : (Node){0};
	return y.i ? b_squeeze(b, y, (int)aten_rank(b, y) - 1) : y;
}

/* Whether PyTorch finds the distances by a product of matrices: asked to, or of more than 25 rows
 * if left to decide. Where the number of rows is not known they are differences, which lose
 * nothing. */
static bool is_by_product(Build *b, Node n)
{
	enum { BY_SIZE, BY_PRODUCT, BY_DIFFERENCES };
	const Node in[2] = {arg(b, n, "x1"), arg(b, n, "x2")};
	const int64_t mode =
		aten_has(b, n, "compute_mode") ? aten_int(b, n, "compute_mode") : BY_SIZE;
	bool large = mode == BY_PRODUCT;
	if (!in[0].i || !in[1].i || node_float(b->g, n, "p") != 2 ||
	    aten_dtype(b, in[0]) != aten_dtype(b, in[1]))
		return false;
	for (uint32_t k = 0; k < 2; k++) {
		const uint32_t rank = aten_rank(b, in[k]);
		const DType d = aten_dtype(b, in[k]);
		if (rank < 2 || (d != DT_f32 && d != DT_f64))
			return false;
		large |= mode == BY_SIZE &&
			 sym_lt(b_syms(b), b_int(b, 25), b_dim(b, in[k], rank - 2)) == YES;
	}
	return large;
}

static Node build_cdist(Build *b, Node n)
{
	if (is_by_product(b, n))
		return b_node(b, OP_aten__euclidean_dist,
			      (Node[]){arg(b, n, "x1"), arg(b, n, "x2")}, 2, NULL, 0);
	Node x = b_unsqueeze(b, arg(b, n, "x1"), -2), y = b_unsqueeze(b, arg(b, n, "x2"), -3);
	Node d = b_bin(b, OP_sub, x, y);
	if (aten_rank(b, d) < 3)
		return b_error(b, "cdist expects matrices");
	if (!aten_check_arg_within(b, n, "p", 0, INFINITY))
		return (Node){0};
	double p = node_float(b->g, n, "p");
	uint32_t last = 1u << (aten_rank(b, d) - 1);
	return isinf(p) ? greatest_distance(b, d, last) : norm_of(b, d, p, last, false);
}
OP(aten_cdist){
	.schema = "aten.cdist(Tensor x1, Tensor x2, float p=2.0, int? compute_mode=None) -> "
		  "Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_cdist,
	.sample = "f32[n=3, 4], f32[m=2, 4], p=2.0; f32[2, 3, 4], f32[2, 2, 4], p=1.0; "
		  "f32[3, 4], f32[2, 4], p=inf; f32[3, 4], f32[2, 4], p=3.0; "
		  "f32[3, 4], f32[2, 4], p=0.0; "
		  "f32[2, 3, 4], f32[2, 4], p=2.0, compute_mode=1; "
		  "f32[3, 4], f32[2, 4], p=2.0, compute_mode=2; f32[2, 1], f32[26, 1], p=2.0",
	.overloads = (const Overload[]){
		{.schema = "aten._cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) "
			   "-> Tensor",
		 .sample = "f32[n=3, 4], f32[m=2, 4], p=2.0, compute_mode=none; "
			   "f32[2, 3, 4], f32[2, 2, 4], p=1.0, compute_mode=none; "
			   "f32[3, 4], f32[2, 4], p=inf, compute_mode=none; "
			   "f32[3, 4], f32[2, 4], p=3.0, compute_mode=none; "
			   "f32[3, 4], f32[2, 4], p=0.0, compute_mode=none; "
			   "f32[3, 4], f32[2, 4], p=2.0, compute_mode=1"},
	},
};

/* Builds distances of rows i < j, in that order. */
static Node build_pdist(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	int64_t rows;
	if (aten_rank(b, x) != 2 || !aten_const(b, b_dim(b, x, 0), &rows) || rows > 4096)
		return b_error(b, "pdist of an operand of rank %u", aten_rank(b, x));
	if (!aten_check_arg_within(b, n, "p", 0, INFINITY))
		return (Node){0};
	int64_t pairs = rows * (rows - 1) / 2, at = 0;
	int64_t *i = arena_calloc(b->g->ir->ctx->scratch, (size_t)pairs, 2 * sizeof *i),
		*j = i + pairs;
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = r + 1; c < rows; c++, at++) {
			i[at] = r;
			j[at] = c;
		}
	Node a = aten_take_dim(b, x, 0, aten_const_ints(b, i, pairs), "promise");
	Node d = b_bin(b, OP_sub, a,
		       aten_take_dim(b, x, 0, aten_const_ints(b, j, pairs), "promise"));
	double p = node_float(b->g, n, "p");
	return isinf(p) ? greatest_distance(b, d, 2) : norm_of(b, d, p, 2, false);
}
OP(aten_pdist){
	.schema = "aten.pdist(Tensor self, float p=2.0) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.aliases = "aten._pdist_forward",
	.build = build_pdist,
	.sample = "f32[4, 3]; f32[4, 3], p=1.0; f32[4, 3], p=inf; f32[4, 3], p=3.0",
};

/* ---- products and choices of elements ---- */

static Node build_cartesian_prod(Build *b, Node n)
{
	uint32_t first, count = node_args(b->g, n, "tensors", &first);
	Node x[MAX_RANK];
	Shape s = {.rank = count};
	if (count == 0 || count > MAX_RANK)
		return b_error(b, "cartesian product of %u tensors", count);
	if (count == 1)
		return node_in(b->g, n, first);
	for (uint32_t k = 0; k < count; k++) {
		x[k] = node_in(b->g, n, first + k);
		if (aten_rank(b, x[k]) != 1)
			return b_error(b, "cartesian product of a tensor of rank %u",
				       aten_rank(b, x[k]));
		s.dim[k] = b_dim(b, x[k], 0);
	}
	for (uint32_t k = 0; k < count; k++)
		x[k] = b_broadcast_in_dim(b, x[k], count, s.dim, &k);
	return aten_flatten(b, aten_stack(b, x, count, count), 0, count - 1);
}
OP(aten_cartesian_prod){
	.schema = "aten.cartesian_prod(Tensor[] tensors) -> Tensor",
	.build = build_cartesian_prod,
	.sample = "[f32[n=2], f32[3]]; [f32[3]]",
};

/* Returns index tuples of r out of len elements, in lexicographic order, row-major. NULL when
 * too many. */
static int64_t *choices(Arena *a, int64_t len, int64_t r, bool repeat, int64_t *count)
{
	enum { LIMIT = 1 << 20 };
	int64_t *out = arena_calloc(a, LIMIT, sizeof *out), pick[16];
	*count = 0;
	for (int64_t k = 0; k < r; k++)
		pick[k] = repeat ? 0 : k;
	while (r == 0 || (len > 0 && pick[r - 1] < len)) {
		if ((*count + 1) * r > LIMIT)
			return NULL;
		for (int64_t k = 0; k < r; k++)
			out[*count * r + k] = pick[k];
		++*count;
		int64_t k = r - 1;
		while (k >= 0 && pick[k] == (repeat ? len - 1 : len - r + k))
			k--;
		if (k < 0)
			break;
		pick[k]++;
		for (int64_t j = k + 1; j < r; j++)
			pick[j] = pick[j - 1] + !repeat;
	}
	return out;
}

static Node build_combinations(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	int64_t len, count, r = aten_int(b, n, "r");
	if (aten_rank(b, x) != 1 || !aten_const(b, b_dim(b, x, 0), &len) || r < 0 || r > 16)
		return b_error(b, "combinations of %lld elements of a tensor of rank %u",
			       (long long)r, aten_rank(b, x));
	if (r == 0)
		return b_full(b, node_dtype(b->g, x), 0, 1, (Sym[]){b_int(b, 0)});
	bool repeat = node_bool(b->g, n, "with_replacement");
	int64_t *v = choices(b->g->ir->ctx->scratch, len, r, repeat, &count);
	if (!v)
		return b_error(b, "too many combinations");
	Node index = aten_const_ints(b, v, count * r);
	index = b_reshape(b, index, 2, (Sym[]){b_int(b, count), b_int(b, r)});
	return aten_take_dim(b, x, 0, index, "promise");
}
OP(aten_combinations){
	.schema = "aten.combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
	.build = build_combinations,
	.sample = "f32[4]; f32[4], r=3; f32[3], r=2, with_replacement=true",
};

/* ---- integrals ---- */

/* Returns (y[k] + y[k+1]) times the distances of the points, in the arithmetic of their dtypes:
 * that of integers wraps. */
static Node trapezoid_products(Build *b, Node n, uint32_t *dim)
{
	Node y = arg(b, n, "y");
	if (aten_rank(b, y) == 0)
		return b_error(b, "trapezoid of a tensor without dims");
	*dim = b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, y));
	Node both = b_bin(b, OP_add, aten_slice(b, y, *dim, 1, INT64_MAX),
			  aten_slice(b, y, *dim, 0, -1));
	if (op_arg_index(node_op(b->g, n), "x") < 0)
		return both;
	Node x = arg(b, n, "x");
	uint32_t at = aten_rank(b, x) == 1 ? 0 : *dim + aten_rank(b, x) - aten_rank(b, y);
	Node dx = b_bin(b, OP_sub, aten_slice(b, x, at, 1, INT64_MAX), aten_slice(b, x, at, 0, -1));
	if (aten_rank(b, x) == 1)
		dx = aten_per_dim(b, dx, both, *dim);
	return b_bin(b, OP_mul, both, dx);
}

/* Returns what is summed: of integers in i64. */
static Node trapezoids(Build *b, Node n, uint32_t *dim)
{
	Node t = trapezoid_products(b, n, dim);
	return t.i && dtype_is_int(node_dtype(b->g, t)) ? b_convert(b, t, DT_i64) : t;
}

/* Returns half of it, times the distance where that is a number. */
static Node half_of(Build *b, Node n, Node sum)
{
	bool points = op_arg_index(node_op(b->g, n), "x") >= 0;
	return sum.i ? b_bin_scalar(b, OP_mul, aten_to_float(b, sum),
				    points ? 0.5 : 0.5 * node_float(b->g, n, "dx"))
		     : sum;
}

static Node build_trapezoid(Build *b, Node n)
{
	uint32_t dim;
	Node t = trapezoids(b, n, &dim);
	return half_of(b, n, aten_sum(b, t, t.i ? 1u << dim : 0, false));
}
OP(aten_trapezoid_x){
	.schema = "aten.trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
	.aliases = "aten.trapz.x",
	.build = build_trapezoid,
	.sample = "f32[n=3, 4], f32[4] of 0 1 1.5 4; f32[3, 2], f32[3, 2], dim=0",
	.overloads = (const Overload[]){
		{.schema = "aten.trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
		 .sample = "f32[n=3, 4]; f32[3, 2], dx=0.25, dim=0"},
		{.schema = "aten.trapz.dx(Tensor y, *, float dx=1.0, int dim=-1) -> Tensor",
		 .sample = "f32[n=3, 4]; f32[3, 2], dx=0.25, dim=0"},
	},
};

static Node build_cumulative_trapezoid(Build *b, Node n)
{
	uint32_t dim;
	Node t = trapezoids(b, n, &dim);
	return half_of(b, n, t.i ? b_cumulative(b, "sum", t, dim, false) : t);
}
OP(aten_cumulative_trapezoid_x){
	.schema = "aten.cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
	.build = build_cumulative_trapezoid,
	.sample = "f32[n=3, 4], f32[4] of 0 1 1.5 4; f32[3, 2], f32[3, 2], dim=0",
	.overloads = (const Overload[]){
		{.schema = "aten.cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> "
			   "Tensor",
		 .sample = "f32[n=3, 4]; f32[3, 2], dx=0.25, dim=0"},
	},
};
