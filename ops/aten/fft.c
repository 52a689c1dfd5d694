/* Fourier transforms of ATen, as fft_c2c on pairs of real numbers (ops/prim/fft.c): dimensions
 * one after the other, then the scale. Real input has pairs whose imaginary parts are 0; of the
 * transform of a real signal the first half of the last dimension is kept (n / 2 + 1 elements),
 * from which the signal is made again. Also short-time transforms: of windows of a signal. */
#include <math.h>
#include <string.h>

#include "ops/aten/priv.h"

/* The argument `normalization` of ATen's functions. */
typedef enum { SCALE_NONE, SCALE_BY_ROOT, SCALE_BY_COUNT } Scale;

/* Dimensions that are transformed, in the order in which they are given, and their lengths. */
typedef struct {
	uint32_t n, dim[MAX_RANK];
	Sym length[MAX_RANK]; /* of a signal that is made of half a transform: the signal's */
} TransformAxes;

/* ---- one dimension ---- */

static Node transform(Build *b, Node pairs, uint32_t dim, bool inverse)
{
	Attr attr[3] = {attr_none(), attr_int(b->g->ir, dim), attr_bool(inverse)};
	return pairs.i ? b_node(b, OP_fft_c2c, &pairs, 1, attr, 3) : pairs;
}

static Node to_pairs(Build *b, Node x)
{
	return x.i ? b_node(b, OP_view_real, &x, 1, NULL, 0) : x;
}

static Node to_complex(Build *b, Node pairs)
{
	return pairs.i ? b_node(b, OP_view_complex, &pairs, 1, NULL, 0) : pairs;
}

/* Returns x [...] with imaginary parts 0. */
static Node real_to_pairs(Build *b, Node x)
{
	Sym low[MAX_RANK] = {{0}}, high[MAX_RANK] = {{0}};
	const uint32_t rank = aten_rank(b, x);
	if (rank >= MAX_RANK)
		return b_error(b, "more than %d dimensions", MAX_RANK - 1);
	for (uint32_t k = 0; k <= rank; k++)
		low[k] = high[k] = b_int(b, 0);
	high[rank] = b_int(b, 1);
	Node zero = aten_like(b, x, 0);
	return b_pad(b, b_unsqueeze(b, x, -1), low, high, zero);
}

/* Returns the first `length` elements along dim, zeros behind those that are there. */
static Node resized(Build *b, Node x, uint32_t dim, Sym length)
{
	Sym low[MAX_RANK], high[MAX_RANK];
	if (!x.i || sym_eq(b_syms(b), b_dim(b, x, (int)dim), length) == YES)
		return x;
	for (uint32_t k = 0; k < MAX_RANK; k++)
		low[k] = high[k] = b_int(b, 0);
	high[dim] = sym_sub(b_syms(b), length, b_dim(b, x, (int)dim));
	return b_pad(b, x, low, high, aten_like(b, x, 0));
}

static Sym half_length(const Build *b, Sym length)
{
	return sym_addi(b_syms(b), sym_divi(b_syms(b), length, 2), 1);
}

/* Returns x times the scale of a transform over so many elements. */
static Node scaled(Build *b, Node x, const TransformAxes *d, Scale scale)
{
	Sym count = b_int(b, 1);
	int64_t n;
	if (!x.i || scale == SCALE_NONE)
		return x;
	for (uint32_t k = 0; k < d->n; k++)
		count = sym_mul(b_syms(b), count, d->length[k]);
	if (sym_is_const(b_syms(b), count, &n))
		return b_bin_scalar(b, OP_mul, x,
				    1 / (scale == SCALE_BY_ROOT ? sqrt((double)n) : (double)n));
	Node size = b_convert(b, b_from_size(b, count), DT_f64);
	if (scale == SCALE_BY_ROOT)
		size = b_un(b, OP_sqrt, size);
	return b_bin(b, OP_mul, x, b_convert(b, b_un(b, OP_reciprocal, size), aten_dtype(b, x)));
}

/* ---- transforms over several dimensions ---- */

/* Transforms complex x. */
static Node complex_to_complex(Build *b, Node x, const TransformAxes *d, Scale scale, bool inverse)
{
	Node pairs = to_pairs(b, x);
	for (uint32_t k = 0; k < d->n; k++)
		pairs = transform(b, pairs, d->dim[k], inverse);
	return to_complex(b, scaled(b, pairs, d, scale));
}

/* Transforms real x; half: of the last dimension of d only the first half. */
static Node real_to_complex(Build *b, Node x, const TransformAxes *d, Scale scale, bool half)
{
	const uint32_t last = d->n - 1;
	Attr attr[2] = {attr_none(), attr_int(b->g->ir, half ? d->dim[last] : 0)};
	if (!x.i || aten_rank(b, x) == MAX_RANK)
		return x.i ? b_error(b, "more than %d dimensions", MAX_RANK - 1) : x;
	Node pairs = half ? b_node(b, OP_fft_r2c, &x, 1, attr, 2) : real_to_pairs(b, x);
	for (uint32_t k = half ? last : d->n; k-- > 0;)
		pairs = transform(b, pairs, d->dim[k], false);
	return to_complex(b, scaled(b, pairs, d, scale));
}

/* Returns the real signal whose transform has the first half x along the last dimension of d. */
static Node complex_to_real(Build *b, Node x, const TransformAxes *d, Scale scale)
{
	Node pairs = to_pairs(b, x);
	if (!pairs.i)
		return pairs;
	const uint32_t last = d->dim[d->n - 1];
	const Sym length = d->length[d->n - 1];
	for (uint32_t k = 0; k + 1 < d->n; k++)
		pairs = transform(b, pairs, d->dim[k], true);
	pairs = resized(b, pairs, last, half_length(b, length));
	Attr attr[3] = {attr_none(), attr_int(b->g->ir, last), attr_sym(length)};
	return scaled(b, pairs.i ? b_node(b, OP_fft_c2r, &pairs, 1, attr, 3) : pairs, d, scale);
}

/* ---- arguments ---- */

/* Returns operands as PyTorch promotes them on CPUs. */
static Node promoted(Build *b, Node x)
{
	const DType d = aten_dtype(b, x);
	x = aten_to_float(b, x);
	if (x.i && dtype_real(d) != d && dtype_real(d) != DT_f32 && dtype_real(d) != DT_f64)
		return b_error(b, "no transform of %s", dtype_name(d));
	if (x.i && dtype_is_float(d) && d != DT_f32 && d != DT_f64)
		return b_error(b, "no transform of %s", dtype_name(d));
	return x;
}

static Node real_only(Build *b, Node x)
{
	if (dtype_is_complex(aten_dtype(b, x)))
		return b_error(b, "expected real numbers, got %s", dtype_name(aten_dtype(b, x)));
	return promoted(b, x);
}

static Node complex_only(Build *b, Node x)
{
	x = promoted(b, x);
	return x.i && !dtype_is_complex(aten_dtype(b, x))
		       ? b_convert(b, x, dtype_complex(aten_dtype(b, x)))
		       : x;
}

/* Reads the argument "norm" of a transform in that direction. */
static bool scale_of(Build *b, Node n, bool forward, Scale *scale)
{
	if (!aten_check_word(b, n, "norm", "backward forward ortho"))
		return false;
	*scale = aten_is(b, n, "norm", "ortho") ? SCALE_BY_ROOT
		 : aten_is(b, n, "norm", "forward") == forward ? SCALE_BY_COUNT
							       : SCALE_NONE;
	return true;
}

/* Reads the argument "normalization"; other numbers than those of Scale count as SCALE_BY_COUNT. */
static Scale scale_number(Build *b, Node n)
{
	const int64_t v = aten_int(b, n, "normalization");
	return v == SCALE_NONE || v == SCALE_BY_ROOT ? (Scale)v : SCALE_BY_COUNT;
}

static void require_points(Build *b, const TransformAxes *d)
{
	for (uint32_t k = 0; k < d->n; k++)
		aten_require_le(b, b_int(b, 1), d->length[k],
				"number of data points of a transform");
}

/* Reads the argument "dim", a list of different dimensions. */
static bool listed_dims(Build *b, Node n, Node x, TransformAxes *d)
{
	const Sym *dim = node_ints(b->g, n, "dim", &d->n);
	uint32_t seen = 0;
	if (!x.i || d->n > aten_rank(b, x))
		return b_error(b, "more dimensions than the operand has"), false;
	for (uint32_t k = 0; k < d->n; k++) {
		int64_t v;
		if (!aten_const(b, dim[k], &v))
			return false;
		d->dim[k] = b_wrap_dim(b, v, aten_rank(b, x));
		if (seen >> d->dim[k] & 1)
			return b_error(b, "dimension %u is listed twice", d->dim[k]), false;
		seen |= 1u << d->dim[k];
		d->length[k] = b_dim(b, x, (int)d->dim[k]);
	}
	return true;
}

/* Reads arguments "n" and "dim" of a transform of one dimension. half: x is half a transform. */
static bool one_dim(Build *b, Node n, Node x, bool half, TransformAxes *d)
{
	SymTab *t = b_syms(b);
	if (!x.i || aten_rank(b, x) == 0)
		return b_error(b, "a transform needs a dimension"), false;
	d->n = 1;
	d->dim[0] = b_wrap_dim(b, aten_int(b, n, "dim"), aten_rank(b, x));
	Sym size = b_dim(b, x, (int)d->dim[0]);
	d->length[0] = aten_has(b, n, "n") ? node_sym(b->g, n, "n")
		       : half              ? sym_muli(t, sym_addi(t, size, -1), 2)
					   : size;
	require_points(b, d);
	return true;
}

/* Reads arguments "s" and "dim" of a transform of several dimensions: those of dim; without dim
 * the last ones, as many as s has, else all. -1 in s: the extent that is there. */
static bool several_dims(Build *b, Node n, Node x, bool half, TransformAxes *d)
{
	SymTab *t = b_syms(b);
	uint32_t ns = 0, rank = aten_rank(b, x);
	const bool has = aten_has(b, n, "s");
	const Sym *s = has ? node_ints(b->g, n, "s", &ns) : NULL;
	if (!x.i)
		return false;
	if (aten_has(b, n, "dim")) {
		if (!listed_dims(b, n, x, d))
			return false;
	} else {
		d->n = has ? ns : rank;
		if (d->n > rank)
			return b_error(b, "%u lengths for %u dimensions", ns, rank), false;
		for (uint32_t k = 0; k < d->n; k++)
			d->dim[k] = rank - d->n + k;
	}
	if (has && ns != d->n)
		return b_error(b, "%u lengths for %u dimensions", ns, d->n), false;
	for (uint32_t k = 0; k < d->n; k++) {
		Sym size = b_dim(b, x, (int)d->dim[k]);
		bool given = has && !sym_is(t, s[k], -1);
		d->length[k] = given                   ? s[k]
			       : half && k + 1 == d->n ? sym_muli(t, sym_addi(t, size, -1), 2)
						       : size;
	}
	if (half && !d->n)
		return b_error(b, "at least one dimension must be transformed"), false;
	require_points(b, d);
	return true;
}

static Node resized_to(Build *b, Node x, const TransformAxes *d, bool half)
{
	for (uint32_t k = 0; k < d->n; k++)
		x = resized(b, x, d->dim[k],
			    half && k + 1 == d->n ? half_length(b, d->length[k]) : d->length[k]);
	return x;
}

/* ---- torch.fft ---- */

/* What the functions of torch.fft have in common. */
typedef struct {
	Node x;
	TransformAxes d;
	Scale scale;
} TransformCall;

static bool read_call(Build *b, Node n, Node x, bool several, bool half, bool forward,
		      TransformCall *c)
{
	c->x = x;
	if (!(several ? several_dims(b, n, x, half, &c->d) : one_dim(b, n, x, half, &c->d)))
		return false;
	c->x = resized_to(b, x, &c->d, half);
	return scale_of(b, n, forward, &c->scale);
}

enum { SEVERAL = 1 /* dimensions */, INVERSE = 2 };

static Node full_transform(Build *b, Node n, int how)
{
	TransformCall c;
	bool several = how & SEVERAL, inverse = how & INVERSE;
	if (!read_call(b, n, complex_only(b, arg(b, n, "self")), several, false, !inverse, &c))
		return (Node){0};
	return complex_to_complex(b, c.x, &c.d, c.scale, inverse);
}

static Node real_transform(Build *b, Node n, int several)
{
	TransformCall c;
	if (!read_call(b, n, real_only(b, arg(b, n, "self")), several, false, true, &c))
		return (Node){0};
	if (!c.d.n)
		return b_error(b, "at least one dimension must be transformed");
	return real_to_complex(b, c.x, &c.d, c.scale, true);
}

static Node real_inverse(Build *b, Node n, int several)
{
	TransformCall c;
	if (!read_call(b, n, complex_only(b, arg(b, n, "self")), several, true, false, &c))
		return (Node){0};
	return complex_to_real(b, c.x, &c.d, c.scale);
}

/* Builds the real transform of a signal of which half is given: that of the conjugate, inverse. */
static Node half_transform(Build *b, Node n, int several)
{
	TransformCall c;
	if (!read_call(b, n, complex_only(b, arg(b, n, "self")), several, true, true, &c))
		return (Node){0};
	return complex_to_real(b, aten_conj(b, c.x), &c.d, c.scale);
}

static Node half_inverse(Build *b, Node n, int several)
{
	TransformCall c;
	if (!read_call(b, n, real_only(b, arg(b, n, "self")), several, false, false, &c))
		return (Node){0};
	if (!c.d.n)
		return b_error(b, "at least one dimension must be transformed");
	return aten_conj(b, real_to_complex(b, c.x, &c.d, c.scale, true));
}


OP(aten_fft_fft){
	.schema = "aten.fft_fft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) "
		   "-> Tensor",
	.autocast = AUTOCAST_F32,
	.build_as = {full_transform, 0},
	.sample = "c64[n=3, 4]; f32[2, n=6], n=5, dim=1; c64[n=4, 3], n=6, dim=0, norm=\"ortho\"; "
		  "i64[5], norm=\"forward\"; c128[3, 1]",
	.overloads = (const Overload[]){
		{.schema = "aten.fft_ifft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) "
		   "-> Tensor", .build_as = {full_transform, INVERSE}},
		{.schema = "aten.fft_fft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? "
		   "norm=None) -> Tensor",
		 .build_as = {full_transform, SEVERAL},
		 .sample = "c64[n=3, 4]; f32[2, 3, n=6], s=[2, 5]; "
			   "c64[2, 3, 4], s=[-1, 5], dim=[2, 0], norm=\"ortho\""},
		{.schema = "aten.fft_ifft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], "
		   "str? norm=None) -> Tensor",
		 .build_as = {full_transform, SEVERAL | INVERSE},
		 .sample = "c64[n=3, 4]; f32[2, 3, n=6], s=[2, 5]; "
			   "c64[2, 3, 4], dim=[2, 0], norm=\"forward\""},
		{.schema = "aten.fft_fftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? "
		   "norm=None) -> Tensor",
		 .build_as = {full_transform, SEVERAL},
		 .sample = "c64[n=3, 4, 2]; f32[2, n=6], s=[5]; "
			   "c64[2, 3, 4], dim=[1], norm=\"ortho\""},
		{.schema = "aten.fft_ifftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? "
		   "norm=None) -> Tensor",
		 .build_as = {full_transform, SEVERAL | INVERSE},
		 .sample = "c64[n=3, 4, 2]; f32[2, n=6], s=[5]; "
			   "c64[2, 3, 4], dim=[1], norm=\"ortho\""},
	},
};

OP(aten_fft_rfft){
	.schema = "aten.fft_rfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) "
		   "-> Tensor",
	.autocast = AUTOCAST_F32,
	.build_as = {real_transform, false},
	.sample = "f32[2, n=6]; f32[3, 5], n=8, dim=0; f64[4], norm=\"ortho\"; "
		  "i64[n=7], norm=\"forward\"",
	.overloads = (const Overload[]){
		{.schema = "aten.fft_ihfft(Tensor self, SymInt? n=None, int dim=-1, str? "
		   "norm=None) -> Tensor", .build_as = {half_inverse, false}},
		{.schema = "aten.fft_rfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], "
		   "str? norm=None) -> Tensor",
		 .build_as = {real_transform, true},
		 .sample = "f32[n=3, 4]; f32[2, 3, n=6], s=[2, 5]; "
			   "f32[2, 3, 4], dim=[2, 0], norm=\"ortho\""},
		{.schema = "aten.fft_ihfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], "
		   "str? norm=None) -> Tensor",
		 .build_as = {half_inverse, true},
		 .sample = "f32[n=3, 4]; f32[2, 3, n=6], s=[2, 5]; "
			   "f32[2, 3, 4], dim=[2, 0], norm=\"forward\""},
		{.schema = "aten.fft_rfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? "
		   "norm=None) -> Tensor",
		 .build_as = {real_transform, true},
		 .sample = "f32[n=3, 4, 2]; f32[2, n=6], s=[5]; "
			   "f32[2, 3, 4], dim=[1], norm=\"ortho\""},
		{.schema = "aten.fft_ihfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? "
		   "norm=None) -> Tensor",
		 .build_as = {half_inverse, true},
		 .sample = "f32[n=3, 4, 2]; f32[2, n=6], s=[5]; "
			   "f32[2, 3, 4], dim=[1], norm=\"ortho\""},
	},
};

OP(aten_fft_irfft){
	.schema = "aten.fft_irfft(Tensor self, SymInt? n=None, int dim=-1, str? "
		   "norm=None) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build_as = {real_inverse, false},
	.sample = "c64[2, n=4]; c64[3, 5], n=7, dim=0; c128[4], n=5, norm=\"ortho\"; "
		  "f32[n=7], norm=\"forward\"",
	.overloads = (const Overload[]){
		{.schema = "aten.fft_hfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) "
		   "-> Tensor", .build_as = {half_transform, false}},
		{.schema = "aten.fft_irfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], "
		   "str? norm=None) -> Tensor",
		 .build_as = {real_inverse, true},
		 .sample = "c64[n=3, 4]; c64[2, 3, n=6], s=[2, 5]; "
			   "c64[2, 3, 4], dim=[2, 0], norm=\"ortho\""},
		{.schema = "aten.fft_hfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], "
		   "str? norm=None) -> Tensor",
		 .build_as = {half_transform, true},
		 .sample = "c64[n=3, 4]; c64[2, 3, n=6], s=[2, 5]; "
			   "c64[2, 3, 4], dim=[2, 0], norm=\"forward\""},
		{.schema = "aten.fft_irfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? "
		   "norm=None) -> Tensor",
		 .build_as = {real_inverse, true},
		 .sample = "c64[n=3, 4, 2]; f32[2, n=6], s=[5]; "
			   "c64[2, 3, 4], dim=[1], norm=\"ortho\""},
		{.schema = "aten.fft_hfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? "
		   "norm=None) -> Tensor",
		 .build_as = {half_transform, true},
		 .sample = "c64[n=3, 4, 2]; f32[2, n=6], s=[5]; "
			   "c64[2, 3, 4], dim=[1], norm=\"ortho\""},
	},
};

/* ---- what they are in ATen ---- */

static Node build_c2c(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	TransformAxes d;
	if (!listed_dims(b, n, x, &d))
		return (Node){0};
	return complex_to_complex(b, complex_only(b, x), &d, scale_number(b, n),
				  !node_bool(b->g, n, "forward"));
}
OP(aten__fft_c2c){
	.schema = "aten._fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> "
		  "Tensor",
	.build = build_c2c,
	.sample = "c64[n=3, 4], dim=[0, 1], normalization=0, forward=true; "
		  "c64[2, n=5], dim=[1], normalization=1, forward=false; "
		  "c128[6], dim=[0], normalization=2, forward=false",
};

static Node build_r2c(Build *b, Node n)
{
	Node x = real_only(b, arg(b, n, "self"));
	TransformAxes d;
	if (!listed_dims(b, n, x, &d))
		return (Node){0};
	if (!d.n)
		return b_error(b, "at least one dimension must be transformed");
	return real_to_complex(b, x, &d, scale_number(b, n), node_bool(b->g, n, "onesided"));
}
OP(aten__fft_r2c){
	.schema = "aten._fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> "
		  "Tensor",
	.build = build_r2c,
	.sample = "f32[n=3, 4], dim=[0, 1], normalization=0, onesided=true; "
		  "f32[2, n=5], dim=[1], normalization=1, onesided=false; "
		  "f64[6], dim=[0], normalization=2, onesided=true",
};

static Node build_c2r(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	TransformAxes d;
	uint32_t count;
	const Sym *dim = node_ints(b->g, n, "dim", &count);
	for (uint32_t k = 0; k < count; k++)
		if (sym_le(b_syms(b), b_int(b, 0), dim[k]) == NO)
			return b_error(b, "a negative dimension");
	if (!listed_dims(b, n, x, &d))
		return (Node){0};
	if (!d.n)
		return b_error(b, "at least one dimension must be transformed");
	d.length[d.n - 1] = node_sym(b->g, n, "last_dim_size");
	return complex_to_real(b, complex_only(b, x), &d, scale_number(b, n));
}
OP(aten__fft_c2r){
	.schema = "aten._fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) "
		  "-> Tensor",
	.build = build_c2r,
	.sample = "c64[n=3, 4], dim=[0, 1], normalization=0, last_dim_size=6; "
		  "c64[2, 3], dim=[1], normalization=1, last_dim_size=5; "
		  "c128[4], dim=[0], normalization=2, last_dim_size=7",
};

/* ---- frequencies ---- */

static Node frequencies(Build *b, Node n, int half)
{
	const int64_t count = aten_int(b, n, "n");
	const double step = node_float(b->g, n, "d");
	const DType d = aten_dtype_or(b, n, "dtype", DT_f32);
	const int64_t points = half ? count / 2 + 1 : count;
	if (points < 0)
		return b_error(b, "frequencies of %lld points", (long long)count);
	Node k = b_iota(b, DT_i64, b_int(b, points));
	if (!half) {
		Node back = b_bin_scalar(b, OP_ge, k, (double)((count + 1) / 2));
		k = b_select(b, back, b_bin_scalar(b, OP_sub, k, (double)count), k);
	}
	return b_bin_scalar(b, OP_mul, b_convert(b, k, d), 1 / ((double)count * step));
}

OP(aten_fft_fftfreq){
	.schema = "aten.fft_fftfreq(int n, float d=1., *, ScalarType? dtype=None, Layout? "
		   "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
	.build_as = {frequencies, false},
	.sample = "n=5; n=6, d=0.25; n=1, dtype=f64",
	.overloads = (const Overload[]){
		{.schema = "aten.fft_rfftfreq(int n, float d=1., *, ScalarType? dtype=None, "
		   "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> "
		   "Tensor", .build_as = {frequencies, true}},
	},
};

/* ---- short-time transforms ---- */

/* Arguments that stft and istft share. */
typedef struct {
	int64_t n, hop, width; /* elements of a frame, from frame to frame, of the window */
	Node window;           /* [n] */
	Scale scale;
} Frames;

static bool read_frames(Build *b, Node n, Node x, Frames *f)
{
	f->n = aten_int(b, n, "n_fft");
	f->hop = aten_int_or(b, n, "hop_length", f->n / 4);
	f->width = aten_int_or(b, n, "win_length", f->n);
	if (!x.i || f->n < 1 || f->hop < 1 || f->width < 1 || f->width > f->n)
		return b_error(b, "frames of %lld elements, %lld apart, with a window of %lld",
			       (long long)f->n, (long long)f->hop, (long long)f->width),
		       false;
	Sym width = b_int(b, f->width), low = b_int(b, (f->n - f->width) / 2);
	Sym high = b_int(b, f->n - f->width - (f->n - f->width) / 2);
	f->window = arg(b, n, "window");
	if (!f->window.i)
		f->window = b_full(b, dtype_real(aten_dtype(b, x)), 1, 1, &width);
	else if (!aten_require_shape(b, f->window, &(Shape){1, {width}}, "length of the window"))
		return false;
	if (f->width < f->n)
		f->window = b_pad(b, f->window, &low, &high, aten_like(b, f->window, 0));
	return f->window.i;
}

static bool bool_or(const Build *b, Node n, const char *name, bool otherwise)
{
	return aten_has(b, n, name) ? node_bool(b->g, n, name) : otherwise;
}

/* Returns x [.., L] with as many elements in front and behind; mode NULL: zeros. */
static Node with_border(Build *b, Node x, int64_t low, int64_t high, const char *mode)
{
	Sym pad[2] = {b_int(b, low), b_int(b, high)};
	Attr attr[4] = {attr_none(), attr_ints(pad, 2),
			attr_str(b->g->ir, mode ? mode : "constant"), attr_none()};
	Node in = x.i ? b_unsqueeze(b, x, 0) : x; /* padding that is no constant takes two
	                                             dimensions */
	in = in.i ? b_node(b, OP_aten_pad, &in, 1, attr, 4) : in;
	return in.i ? b_select_dim(b, in, 0, b_int(b, 0)) : in;
}

static Node build_stft(Build *b, Node n)
{
	SymTab *t = b_syms(b);
	Node x = arg(b, n, "self");
	Frames f;
	const uint32_t rank = aten_rank(b, x);
	if (rank != 1 && rank != 2)
		return b_error(b, "expected a signal or a batch of signals, got rank %u", rank);
	if (!read_frames(b, n, x, &f))
		return x;
	const bool is_complex =
		dtype_is_complex(aten_dtype(b, x)) || dtype_is_complex(aten_dtype(b, f.window));
	const bool center =
		op_arg_index(node_op(b->g, n), "center") >= 0 && node_bool(b->g, n, "center");
	const uint32_t time = rank - 1;
	if (center)
		x = with_border(b, x, f.n / 2, f.n / 2, node_str(b->g, n, "pad_mode"));
	aten_require_le(b, b_int(b, f.n), b_dim(b, x, (int)time), "length of a frame");
	if (!center && bool_or(b, n, "align_to_window", false)) {
		const int64_t low = (f.n - f.width) / 2;
		x = with_border(b, x, low, f.n - f.width - low, NULL);
	}
	if (!x.i)
		return x;
	Sym room = sym_addi(t, b_dim(b, x, (int)time), -f.n);
	Sym count = sym_addi(t, sym_divi(t, room, f.hop), 1);
	Node frames = b_window(b, x, time, f.n, f.hop, 1, 0, count);
	frames = b_bin(b, OP_mul, frames, f.window);
	TransformAxes d = {.n = 1, .dim = {rank}, .length = {b_int(b, f.n)}};
	f.scale = node_bool(b->g, n, "normalized") ? SCALE_BY_ROOT : SCALE_NONE;
	const bool half = bool_or(b, n, "onesided", !is_complex);
	if (half && is_complex)
		return b_error(b, "half a transform of complex numbers");
	Node y = is_complex ? complex_to_complex(b, complex_only(b, frames), &d, f.scale, false)
			    : real_to_complex(b, real_only(b, frames), &d, f.scale, half);
	y = y.i ? b_transpose(b, y, -1, -2) : y;
	if (!is_complex && !aten_has(b, n, "return_complex"))
		return b_error(b, "expected return_complex, since input is real");
	return bool_or(b, n, "return_complex", true) ? y : to_pairs(b, y);
}
OP(aten_stft){
	.schema = "aten.stft(Tensor self, int n_fft, int? hop_length=None, int? "
		  "win_length=None, Tensor? window=None, "
		  "bool normalized=False, bool? onesided=None, bool? return_complex=None, "
		  "bool? align_to_window=None) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_stft,
	.sample = "f32[n=11], none, n_fft=4, return_complex=true; "
		  "f32[2, n=9], f32[3] in 0..2, n_fft=4, hop_length=2, win_length=3, "
		  "normalized=true, return_complex=true; "
		  "c64[10], f32[4] in 0..2, n_fft=4, hop_length=3; "
		  "f32[8], none, n_fft=5, hop_length=1, onesided=false, return_complex=false; "
		  "f32[12], f32[2] in 0..2, n_fft=6, win_length=2, hop_length=2, "
		  "return_complex=true, align_to_window=true",
	.overloads = (const Overload[]){
		{.schema = "aten.stft.center(Tensor self, int n_fft, int? hop_length=None, int? "
		  "win_length=None, Tensor? window=None, "
		  "bool center=True, str pad_mode=\"reflect\", bool "
			   "normalized=False, bool? onesided=None, bool? return_complex=None, "
			   "bool? align_to_window=None) -> Tensor",
		 .sample = "f32[n=11], none, n_fft=4, return_complex=true; "
			   "f32[2, n=9], f32[4] in 0..2, n_fft=4, hop_length=2, "
			   "pad_mode=\"constant\", return_complex=true"},
	},
};

/* Adds the frames [B, T, n] where they stand: [B, length]. */
static Node overlapped(Build *b, Node frames, const Frames *f, Sym length)
{
	Attr attr[6] = {attr_none(),           attr_int(b->g->ir, 1),
			attr_sym(length),      attr_int(b->g->ir, f->hop),
			attr_int(b->g->ir, 1), attr_int(b->g->ir, 0)};
	if (!frames.i || !dtype_is_complex(aten_dtype(b, frames)))
		return frames.i ? b_node(b, OP_fold, &frames, 1, attr, 6) : frames;
	Node re = b_part(b, frames, false), im = b_part(b, frames, true);
	return b_complex(b, overlapped(b, re, f, length), overlapped(b, im, f, length));
}

/* Returns the sums of the squares of the windows, none of which may be 0: [length]. */
static Node envelope(Build *b, const Frames *f, Sym count, Sym length, Sym start, Sym end)
{
	Shape s = {3, {b_int(b, 1), count, b_int(b, f->n)}};
	Node window = aten_to_float(b, f->window), square = b_bin(b, OP_mul, window, window);
	Node sum = overlapped(b, aten_expand_shape(b, square, &s), f, length);
	sum = sum.i ? b_slice(b, sum, 1, start, end, b_int(b, 1)) : sum;
	Node some = b_bin_scalar(b, OP_gt, aten_abs(b, sum), 1e-11);
	b_node(b, OP_assert, &some, 1,
	       (Attr[]){attr_none(), attr_str(b->g->ir, "istft: the windows overlap to 0")}, 2);
	return sum;
}

static Node build_istft(Build *b, Node n)
{
	SymTab *t = b_syms(b);
	Node x = arg(b, n, "self");
	Frames f;
	const uint32_t rank = aten_rank(b, x);
	if (!dtype_is_complex(aten_dtype(b, x)) || (rank != 2 && rank != 3))
		return b_error(b, "expected complex transforms of frames, of rank 2 or 3");
	if (!read_frames(b, n, x, &f))
		return x;
	x = rank == 2 ? b_unsqueeze(b, x, 0) : x;
	x = b_transpose(b, x, 1, 2);
	const Sym count = b_dim(b, x, 1),
		  length = sym_addi(t, sym_muli(t, sym_addi(t, count, -1), f.hop), f.n);
	TransformAxes d = {.n = 1, .dim = {2}, .length = {b_int(b, f.n)}};
	const bool is_complex = node_bool(b->g, n, "return_complex"),
		   center = node_bool(b->g, n, "center");
	const bool half = bool_or(b, n, "onesided", sym_eq(t, b_dim(b, x, 2), d.length[0]) != YES);
	aten_require_equal(b, b_dim(b, x, 2), half ? half_length(b, d.length[0]) : d.length[0],
			   "elements of a transformed frame");
	aten_require_le(b, b_int(b, 1), count, "number of frames");
	f.scale = node_bool(b->g, n, "normalized") ? SCALE_BY_ROOT : SCALE_BY_COUNT;
	Node frames = is_complex ? complex_to_complex(b, x, &d, f.scale, true)
				 : complex_to_real(b, x, &d, f.scale);
	const Sym start = b_int(b, center ? f.n / 2 : 0);
	Sym end = center ? sym_addi(t, length, -(f.n / 2)) : length, want = end;
	if (aten_has(b, n, "length")) {
		want = sym_add(t, start, node_sym(b->g, n, "length"));
		end = sym_min(t, want, length);
	}
	frames = b_bin(b, OP_mul, frames, f.window);
	Node y = overlapped(b, frames, &f, length);
	y = y.i ? b_slice(b, y, 1, start, end, b_int(b, 1)) : y;
	y = b_bin(b, OP_div, y, envelope(b, &f, count, length, start, end));
	y = resized(b, y, 1, sym_sub(t, want, start));
	return y.i && rank == 2 ? b_select_dim(b, y, 0, b_int(b, 0)) : y;
}
OP(aten_istft){
	.schema = "aten.istft(Tensor self, int n_fft, int? hop_length=None, int? "
		  "win_length=None, Tensor? window=None, "
		  "bool center=True, bool normalized=False, bool? onesided=None, int? "
		  "length=None, bool return_complex=False) -> Tensor",
	.build = build_istft,
	.sample = "c64[3, n=4], none, n_fft=4; c64[2, 3, n=5], f32[3] of 1 2 1, n_fft=4, "
		  "hop_length=1, win_length=3, normalized=true; "
		  "c64[4, 5], f32[4] of 1 2 2 1, n_fft=4, hop_length=2, onesided=false, "
		  "return_complex=true, center=false; c64[3, 4], none, n_fft=4, hop_length=2, "
		  "length=9",
};
