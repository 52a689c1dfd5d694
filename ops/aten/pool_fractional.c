/* ATen's pooling over windows whose places are random (B. Graham, "Fractional max-pooling",
 * 2014). */
#include "ops/aten/priv.h"

enum { MAX_SPACE = 3 };

typedef struct {
	uint32_t ns, lead;               /* dims that are pooled; those before them */
	int64_t size[MAX_SPACE], out[MAX_SPACE]; /* of a window; how many */
	Shape x;
} Fractional;

static bool read_fractional(Build *b, Node n, uint32_t ns, Fractional *f)
{
	Node x = arg(b, n, "self");
	uint32_t rank = aten_rank(b, x);
	*f = (Fractional){.ns = ns, .lead = rank - ns, .x = aten_shape(b, x)};
	if (!x.i || (rank != ns + 1 && rank != ns + 2))
		return b_error(b, "pooling over %u dims of an operand of rank %u", ns, rank).i;
	TRY(aten_ints(b, n, "kernel_size", ns, 1, f->size) &&
	    aten_ints(b, n, "output_size", ns, 1, f->out));
	for (uint32_t k = 0; k < ns; k++) {
		Sym size = f->x.dim[f->lead + k];
		if (f->size[k] < 1 || f->out[k] < 0)
			return b_error(b, "%lld windows of extent %lld", (long long)f->out[k],
				       (long long)f->size[k])
				.i;
		/* PyTorch wants one more of three dims */
		int64_t room = f->out[k] + f->size[k] - (ns == 2);
		aten_require_le(b, b_int(b, room), size,
				"fractional pooling has room for its windows");
	}
	return true;
}

/* Returns from [1 or N, C, ns] samples that of dim k, [*lead]. */
static Node sample_of(Build *b, Node samples, const Fractional *f, uint32_t k)
{
	Shape s = aten_shape(b, samples), want = shape_of(f->lead, f->x.dim);
	if (!samples.i || s.rank != 3 || !sym_is(b_syms(b), s.dim[2], f->ns))
		return b_error(b, "random samples of rank %u, expected [batch, channels, %u]",
			       s.rank, f->ns);
	/* The last dim of the operand has the first of two samples, and the last of three. */
	uint32_t at = f->ns == 2 ? 1 - k : k;
	samples = b_select_dim(b, samples, 2, b_int(b, at));
	return aten_reshape(b, samples, &want);
}

/* Returns where the windows of dim k begin, [*lead, out]: trunc((i + u) a) - trunc(u a), a = (in
 * - size) / (out - 1), and the last one at the end. Rounded as PyTorch does in the operand's
 * dtype. */
static Node window_starts(Build *b, Node sample, const Fractional *f, uint32_t k, DType d)
{
	SymTab *t = b_syms(b);
	Node last = aten_size(b, sym_addi(t, f->x.dim[f->lead + k], -f->size[k]), DT_i64);
	Shape s = shape_insert(shape_of(f->lead, f->x.dim), f->lead, b_int(b, f->out[k]));
	if (f->out[k] == 1)
		return aten_expand_shape(b, last, &s);
	Node i = b_iota(b, DT_i64, b_int(b, f->out[k])),
	     u = b_unsqueeze(b, b_convert(b, sample, d), -1);
	Node by = b_full(b, d, (double)(f->out[k] - 1), 0, NULL),
	     step = b_bin(b, OP_div, b_convert(b, last, d), by);
	Node end =
		b_un(b, OP_trunc, b_bin(b, OP_mul, b_bin(b, OP_add, b_convert(b, i, d), u), step));
	Node begin = b_un(b, OP_trunc, b_bin(b, OP_mul, u, step));
	Node start = b_bin(b, OP_sub, b_convert(b, end, DT_i64), b_convert(b, begin, DT_i64));
	return b_select(b, b_bin_scalar(b, OP_lt, i, (double)(f->out[k] - 1)), start, last);
}

/* Returns x[*lead, .., in, ..] with the windows of pooled dim k: its place is out, a window axis
 * is new at the end. */
static Node take_windows(Build *b, Node x, Node start, const Fractional *f, uint32_t k)
{
	uint32_t dim = f->lead + k, rank = aten_rank(b, x);
	Shape s = aten_shape(b, x);
	Node at = b_bin(b, OP_add, b_unsqueeze(b, start, -1),
			b_iota(b, DT_i64, b_int(b, f->size[k])));
	at = aten_flatten(b, at, f->lead, f->lead + 1);
	Shape wide = s;
	wide.dim[dim] = b_int(b, f->out[k] * f->size[k]);
	uint32_t map[MAX_RANK];
	for (uint32_t d = 0; d < f->lead; d++)
		map[d] = d;
	map[f->lead] = dim;
	if (!x.i || !at.i)
		return (Node){0};
	x = aten_gather_dim(b, x, dim, b_broadcast_in_dim(b, at, wide.rank, wide.dim, map));
	wide.dim[dim] = b_int(b, f->out[k]);
	wide = shape_insert(wide, dim + 1, b_int(b, f->size[k]));
	return aten_move_dim(b, aten_reshape(b, x, &wide), dim + 1, rank);
}

/* Returns for each element of a plane its place there. */
static Node places(Build *b, const Fractional *f)
{
	Node at = aten_iota_dim(b, &f->x, f->lead, DT_i64);
	for (uint32_t k = 1; k < f->ns; k++) {
		at = b_bin(b, OP_mul, at, aten_size(b, f->x.dim[f->lead + k], DT_i64));
		at = b_bin(b, OP_add, at, aten_iota_dim(b, &f->x, f->lead + k, DT_i64));
	}
	return at;
}

/* Finds along the last dim the first of the greatest, or the last NaN: PyTorch lets each NaN
 * replace what it has. */
static Node place_of_greatest(Build *b, Node x)
{
	uint32_t last = aten_rank(b, x) - 1;
	Shape s = aten_shape(b, x);
	Node nan = b_bin(b, OP_ne, x, x), i = b_select(b, nan, aten_iota_dim(b, &s, last, DT_i64),
						       b_full_int(b, DT_i64, -1, 0, NULL));
	Node last_nan = aten_reduce(b, REDUCE_MAX, i, 1u << last, false);
	return b_select(b, b_bin_scalar(b, OP_ge, last_nan, 0), last_nan,
			b_arg_reduce(b, true, x, last));
}

/* Returns (values, places in the plane). */
static Node fractional(Build *b, Node n, uint32_t ns)
{
	Fractional f;
	if (!read_fractional(b, n, ns, &f))
		return (Node){0};
	Node x = arg(b, n, "self"), samples = arg(b, n, "random_samples");
	DType d = aten_dtype(b, x);
	uint32_t rank = f.x.rank;
	if (!dtype_is_float(d) || aten_dtype(b, samples) != d)
		return b_error(b, "fractional pooling of %s with samples of %s", dtype_name(d),
			       dtype_name(aten_dtype(b, samples)));
	Node at = places(b, &f);
	for (uint32_t k = 0; k < ns; k++) {
		Node sample = sample_of(b, samples, &f, k),
		     start = window_starts(b, sample, &f, k, d);
		x = take_windows(b, x, start, &f, k);
		at = take_windows(b, at, start, &f, k);
	}
	if (!x.i || !at.i)
		return (Node){0};
	x = aten_flatten(b, x, rank, rank + ns - 1);
	at = aten_flatten(b, at, rank, rank + ns - 1);
	Node inner = b_unsqueeze(b, place_of_greatest(b, x), -1);
	Node value = b_squeeze(b, aten_gather_dim(b, x, rank, inner), -1);
	return b_tuple(b, (Node[]){value, b_squeeze(b, aten_gather_dim(b, at, rank, inner), -1)},
		       2);
}

static Node build_fractional(Build *b, Node n)
{
	return fractional(b, n, aten_named_dims(b, n));
}

OP(aten_fractional_max_pool2d){
	.schema = "aten.fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, "
		  "Tensor random_samples) -> (Tensor, Tensor)",
	.autocast = AUTOCAST_F32,
	.build = build_fractional,
	.sample = "f32[n=2, 2, 5, 7], kernel_size=[2, 3], output_size=[3, 4], "
		  "f32[n, 2, 2] in 0..0.75; f32[2, 4, 5], kernel_size=[2, 2], output_size=[1, 4], "
		  "f32[1, 2, 2] in 0..0.75; "
		  "f32[1, 1, 3, 4] of 1 nan 2 3 4 nan 5 6 inf 7, kernel_size=[2, 2], "
		  "output_size=[2, 2], f32[1, 1, 2] of 0.5 0.25; "
		  "f32[1, 1, h=5, w=6], kernel_size=[2, 2], output_size=[3, 2], "
		  "f32[1, 1, 2] of 0.5 0.25",
	.overloads = (const Overload[]){
		{.schema = "aten.fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] "
			   "output_size, Tensor random_samples) -> (Tensor, Tensor)",
		 .sample = "f32[n=2, 1, 4, 6, 5], kernel_size=[2, 3, 2], output_size=[2, 3, 3], "
			   "f32[n, 1, 3] in 0..0.75; f32[2, 3, 4, 4], kernel_size=[2, 2, 1], "
			   "output_size=[1, 2, 3], f32[1, 2, 3] in 0..0.75"},
	},
};
