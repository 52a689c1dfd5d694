/* How many elements lie in each bin between edges, of which the last bin has both. */
#include "ops/aten/priv.h"

/* Finds in which bin between ascending edges each element of x[n] lies, and whether it lies in
 * one. */
static Node place_between(Build *b, Node x, Node edges, Node *inside)
{
	Sym bins = sym_addi(b_syms(b), b_dim(b, edges, 0), -1);
	Node last = b_select_dim(b, edges, 0, bins), end = aten_size(b, bins, DT_i64);
	Attr right[] = {attr_none(), attr_none(), attr_bool(true)};
	Node at = b_bin_scalar(b, OP_sub,
			       b_node(b, OP_searchsorted, (Node[]){edges, x}, 2, right, 3), 1);
	*inside = b_bin(b, OP_bit_and, b_bin(b, OP_ge, x, b_select_dim(b, edges, 0, b_int(b, 0))),
			b_bin(b, OP_le, x, last));
	return b_bin(b, OP_minimum, at, b_bin_scalar(b, OP_sub, end, 1));
}

/* Returns the differences of edges. */
static Node lengths(Build *b, Node edges)
{
	Sym n = b_dim(b, edges, 0), one = b_int(b, 1);
	return b_bin(b, OP_sub, b_slice(b, edges, 0, one, n, one),
		     b_slice(b, edges, 0, b_int(b, 0), sym_addi(b_syms(b), n, -1), one));
}

/* Counts how many elements, or which weight, have each number below `bins`; the number `bins`
 * counts nowhere. */
static Node counts(Build *b, Node n, Node at, Sym bins, DType d)
{
	Sym size = b_dim(b, at, 0), places = sym_addi(b_syms(b), bins, 1);
	uint32_t axis = 0;
	Node weight = arg(b, n, "weight"),
	     one = weight.i ? b_convert(b, b_ravel(b, weight), d) : b_full(b, d, 1, 1, &size);
	Node index = b_unsqueeze(b, at, -1), none = b_full(b, d, 0, 1, &places);
	Node hist = b_scatter(b, none, index, one, 0, &axis, 1, "add");
	return b_slice(b, hist, 0, b_int(b, 0), bins, b_int(b, 1));
}

/* Returns (hist, edges) of the elements of x[n] in bins between ascending edges[bins + 1]. What
 * is outside of them goes to one place more. */
static Node counted(Build *b, Node n, Node x, Node edges)
{
	if (!x.i || !edges.i || aten_rank(b, edges) != 1)
		return b_error(b, "histogram of bins of rank %u, expected 1", aten_rank(b, edges));
	Sym bins = sym_addi(b_syms(b), b_dim(b, edges, 0), -1);
	aten_require_le(b, b_int(b, 2), b_dim(b, edges, 0), "histogram");
	Node inside, at = place_between(b, x, edges, &inside);
	Node hist = counts(b, n, b_select(b, inside, at, aten_size(b, bins, DT_i64)), bins,
			   node_dtype(b->g, x));
	if (node_bool(b->g, n, "density"))
		hist = b_bin(b, OP_div, b_bin(b, OP_div, hist, aten_sum(b, hist, 1, false)),
			     lengths(b, edges));
	return b_tuple(b, (Node[]){hist, edges}, 2);
}

/* Sets the ends of the range that is given (two numbers for each axis), or of the elements, of
 * none 0 to 1; a range of one value becomes one of length 1 around it. */
static bool ends(Build *b, Node n, Node x, uint32_t axis, uint32_t axes, Node *low, Node *high)
{
	const Attr *range = node_attr(b->g, n, "range");
	if (aten_has(b, n, "range")) {
		const uint32_t at = 2 * axis;
		if (range->kind != ATTR_floats || range->n != 2 * axes ||
		    !(range->floats[at] <= range->floats[at + 1]))
			return b_error(b, "histogram of a range that is not two ascending numbers "
					  "for each axis")
				.i;
		*low = b_scalar(b, node_dtype(b->g, x), range->floats[at]);
		*high = b_scalar(b, node_dtype(b->g, x), range->floats[at + 1]);
	} else {
		*low = aten_reduce(b, REDUCE_MIN, x, 1, false);
		*high = aten_reduce(b, REDUCE_MAX, x, 1, false);
		Node none = b_bin(b, OP_gt, *low, *high);
		*low = b_select(b, none, aten_like(b, x, 0), *low);
		*high = b_select(b, none, aten_like(b, x, 1), *high);
	}
	Node same = b_bin(b, OP_eq, *low, *high);
	Node less = b_bin_scalar(b, OP_sub, *low, 0.5), more = b_bin_scalar(b, OP_add, *high, 0.5);
	*low = b_select(b, same, less, *low);
	*high = b_select(b, same, more, *high);
	return true;
}

/* Returns edges at equal distances between the ends. */
static Node spaced_edges(Build *b, Node n, Node x, int64_t bins, uint32_t axis, uint32_t axes)
{
	Node end[2];
	DType d = aten_dtype(b, x);
	if (!ends(b, n, x, axis, axes, &end[0], &end[1]))
		return (Node){0};
	Attr attr[] = {attr_none(),   attr_none(), attr_int(b->g->ir, bins + 1),
		       attr_dtype(d), attr_none(), attr_none(),
		       attr_none()};
	return b_node(b, OP_aten_linspace_Tensor_Tensor, end, 2, attr, 7);
}

static Node build_histogram(Build *b, Node n)
{
	Node x = b_ravel(b, arg(b, n, "self"));
	int64_t bins = aten_int(b, n, "bins");
	if (!x.i || bins < 1)
		return b_error(b, "histogram of %lld bins", (long long)bins);
	DType d = node_dtype(b->g, x);
	if (!dtype_is_float(d))
		return b_error(b, "histogram of %s, expected a float type", dtype_name(d));
	return counted(b, n, x, spaced_edges(b, n, x, bins, 0, 1));
}

static Node build_histogram_edges(Build *b, Node n)
{
	Node x = b_ravel(b, arg(b, n, "self"));
	if (x.i && !dtype_is_float(node_dtype(b->g, x)))
		return b_error(b, "histogram of %s, expected a float type",
			       dtype_name(node_dtype(b->g, x)));
	return counted(b, n, x, arg(b, n, "bins"));
}
OP(aten_histogram_bin_ct){
	.schema = "aten.histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, "
		  "Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
	.build = build_histogram,
	.sample = "f32[n=3, 4], bins=5; f32[3, 4], bins=4, range=[-2.0, 3.0], density=true; "
		  "f32[3] of 2, bins=2; f32[] of 3, bins=2; f32[0], bins=2; "
		  "f32[2, 6] in -4..4, bins=8, range=[-4.0, 4.0], f32[2, 6] in 0..1; "
		  "f32[3, 4], bins=3, range=[1.0, 1.0]",
	.overloads = (const Overload[]){
		{.schema = "aten.histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? "
			   "weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
		 .build = build_histogram_edges,
		 .sample = "f32[n=3, 4], f32[m=4] of -3 -0.5 1 2; f32[6] of -3 2 nan 2.5 -0.5 1, "
			   "f32[4] of -3 -0.5 1 2, f32[6] in 0.5..2, density=true"},
	},
};

/* ---- of points ---- */

/* Returns (hist, edges of each axis) of points[.., axes] in boxes between the edges of each
 * axis. */
static Node counted_points(Build *b, Node n, Node x, const Node *edges, uint32_t axes)
{
	SymTab *t = b_syms(b);
	DType d = aten_dtype(b, x);
	Sym total = b_int(b, 1), dim[MAX_RANK];
	Node at = {0}, inside = {0}, r[MAX_RANK + 1];
	if (axes > MAX_RANK)
		return b_error(b, "histogramdd of %u axes, at most %d are supported", axes,
			       MAX_RANK);
	for (uint32_t k = 0; k < axes; k++) {
		Node within, place = place_between(b, b_select_dim(b, x, 1, b_int(b, k)), edges[k],
						   &within);
		dim[k] = sym_addi(t, b_dim(b, edges[k], 0), -1);
		at = at.i ? b_bin(b, OP_add, b_bin(b, OP_mul, at, aten_size(b, dim[k], DT_i64)),
				  place)
			  : place;
		inside = inside.i ? b_bin(b, OP_bit_and, inside, within) : within;
		total = sym_mul(t, total, dim[k]);
		r[k + 1] = edges[k];
	}
	Node hist = b_reshape(
		b, counts(b, n, b_select(b, inside, at, aten_size(b, total, DT_i64)), total, d),
		axes, dim);
	if (node_bool(b->g, n, "density"))
		hist = b_bin(b, OP_div, hist, aten_sum(b, hist, (1u << axes) - 1, false));
	for (uint32_t k = 0; k < axes && node_bool(b->g, n, "density"); k++) {
		uint32_t map[] = {k};
		hist = b_bin(b, OP_div, hist,
			     b_broadcast_in_dim(b, lengths(b, edges[k]), axes, dim, map));
	}
	r[0] = hist;
	return b_tuple(b, r, axes + 1);
}

/* Reads points[.., axes] as [n, axes]. */
static Node points(Build *b, Node n, uint32_t *axes)
{
	Node x = arg(b, n, "self");
	Shape s = aten_shape(b, x);
	int64_t count;
	if (!x.i || s.rank < 2 || !dtype_is_float(aten_dtype(b, x)))
		return b_error(b, "histogramdd of %s of rank %u, expected floats of rank 2 or more",
			       dtype_name(aten_dtype(b, x)), s.rank);
	if (!aten_const(b, s.dim[s.rank - 1], &count))
		return (Node){0};
	*axes = (uint32_t)count;
	Shape rows = s;
	rows.rank--;
	return b_reshape(b, x, 2, (Sym[]){shape_numel(b, &rows), s.dim[s.rank - 1]});
}

static Node build_histogramdd(Build *b, Node n)
{
	uint32_t axes = 0, nbins = 0;
	Node x = points(b, n, &axes), edges[MAX_RANK];
	const bool same = node_attr(b->g, n, "bins")->kind == ATTR_int;
	const Sym *bins = same ? NULL : node_ints(b->g, n, "bins", &nbins);
	if (!x.i || axes > MAX_RANK || (!same && nbins != axes))
		return b_error(b, "histogramdd of %u axes with numbers of bins for %u", axes,
			       nbins);
	for (uint32_t k = 0; k < axes; k++) {
		int64_t count = same ? aten_int(b, n, "bins") : sym_const_or(b_syms(b), bins[k], 0);
		if (count < 1)
			return b_error(b, "histogramdd of %lld bins", (long long)count);
		edges[k] = spaced_edges(b, n, b_select_dim(b, x, 1, b_int(b, k)), count, k, axes);
	}
	return counted_points(b, n, x, edges, axes);
}

static Node build_histogramdd_edges(Build *b, Node n)
{
	uint32_t axes = 0, first, count = node_args(b->g, n, "bins", &first);
	Node x = points(b, n, &axes), edges[MAX_RANK];
	if (!x.i || axes > MAX_RANK || count != axes)
		return b_error(b, "histogramdd of %u axes with edges of %u", axes, count);
	for (uint32_t k = 0; k < axes; k++) {
		edges[k] = b_convert(b, node_in(b->g, n, first + k), aten_dtype(b, x));
		if (aten_rank(b, edges[k]) != 1)
			return b_error(b, "histogramdd of edges of rank %u, expected 1",
				       aten_rank(b, edges[k]));
		aten_require_le(b, b_int(b, 2), b_dim(b, edges[k], 0), "histogramdd");
	}
	return counted_points(b, n, x, edges, axes);
}
OP(aten_histogramdd){
	.schema = "aten.histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? "
		  "weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
	.build = build_histogramdd,
	.sample = "f32[n=20, 2], bins=[3, 4]; f32[2, 5, 2], bins=[2, 3], "
		  "range=[-2.0, 3.0, -1.0, 1.0], f32[2, 5] in 0..1, density=true; "
		  "f32[0, 2], bins=[2, 2]",
	.overloads = (const Overload[]){
		{.schema = "aten.histogramdd.int_bins(Tensor self, int bins, float[]? range=None, "
			   "Tensor? weight=None, bool density=False) -> (Tensor hist, "
			   "Tensor[] bin_edges)",
		 .sample = "f32[n=20, 2], bins=3"},
		{.schema = "aten.histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? "
			   "range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, "
			   "Tensor[] bin_edges)",
		 .build = build_histogramdd_edges,
		 .sample = "f32[n=20, 2], [f32[4] of -3 -0.5 1 2, f32[m=3] of -2 0 2], none, "
			   "density=true"},
	},
};
