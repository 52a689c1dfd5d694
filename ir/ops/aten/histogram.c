/* How many elements lie in each bin between edges, of which the last bin has both. */
#include "ir/ops/aten/priv.h"

static Node flat(Build *b, Node x)
{
	Shape s = aten_shape(b, x);
	Sym n = shape_numel(b, &s);
	return b_reshape(b, x, 1, &n);
}

/* (hist, edges) of the elements of x[n] in bins between ascending edges[bins + 1]. What is outside
 * of them goes to one place more. */
static Node counted(Build *b, Node n, Node x, Node edges)
{
	if (!x.i || !edges.i || aten_rank(b, edges) != 1)
		return b_error(b, "histogram of bins of rank %u, expected 1", aten_rank(b, edges));
	SymTab *t = b_syms(b);
	DType d = node_dtype(b->g, x);
	Sym nedge = b_dim(b, edges, 0), bins = sym_addi(t, nedge, -1), places = nedge;
	aten_require_le(b, b_int(b, 2), nedge, "histogram");
	Node weight = arg(b, n, "weight"), last = b_select_dim(b, edges, 0, bins), end = aten_size(b, bins, DT_i64);
	Attr right[] = {attr_none(), attr_none(), attr_bool(true)};
	Node at = b_bin_scalar(b, OP_sub, b_node(b, OP_searchsorted, (Node[]){edges, x}, 2, right, 3), 1);
	at = b_bin(b, OP_minimum, at, b_bin_scalar(b, OP_sub, end, 1));
	Node inside = b_bin(b, OP_bit_and, b_bin(b, OP_ge, x, b_select_dim(b, edges, 0, b_int(b, 0))), b_bin(b, OP_le, x, last));
	at = b_select(b, inside, at, end);
	Sym size = b_dim(b, x, 0);
	uint32_t axis = 0;
	Node one = weight.i ? b_convert(b, flat(b, weight), d) : b_full(b, d, 1, 1, &size);
	Node hist = b_scatter(b, b_full(b, d, 0, 1, &places), b_unsqueeze(b, at, -1), one, 0, &axis, 1, "add");
	hist = b_slice(b, hist, 0, b_int(b, 0), bins, b_int(b, 1));
	if (node_bool(b->g, n, "density")) {
		Node length = b_bin(b, OP_sub, b_slice(b, edges, 0, b_int(b, 1), nedge, b_int(b, 1)), b_slice(b, edges, 0, b_int(b, 0), bins, b_int(b, 1)));
		hist = b_bin(b, OP_div, b_bin(b, OP_div, hist, aten_sum(b, hist, 1, false)), length);
	}
	return b_tuple(b, (Node[]){hist, edges}, 2);
}

/* Of the range that is given, or of the elements, of none 0 to 1; a range of one value becomes one
 * of length 1 around it. */
static bool ends(Build *b, Node n, Node x, Node *low, Node *high)
{
	const Attr *range = node_attr(b->g, n, "range");
	if (aten_has(b, n, "range")) {
		if (range->kind != ATTR_floats || range->n != 2 || !(range->floats[0] <= range->floats[1]))
			return b_error(b, "histogram of a range that is not two ascending numbers").i;
		*low = b_scalar(b, node_dtype(b->g, x), range->floats[0]);
		*high = b_scalar(b, node_dtype(b->g, x), range->floats[1]);
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

static Node build_histogram(Build *b, Node n)
{
	Node x = flat(b, arg(b, n, "self")), end[2];
	int64_t bins = aten_int(b, n, "bins");
	if (!x.i || bins < 1)
		return b_error(b, "histogram of %lld bins", (long long)bins);
	DType d = node_dtype(b->g, x);
	if (!dtype_is_float(d))
		return b_error(b, "histogram of %s, expected a float type", dtype_name(d));
	if (!ends(b, n, x, &end[0], &end[1]))
		return (Node){0};
	Attr attr[] = {attr_none(), attr_none(), attr_int(b->g->ir, bins + 1), attr_dtype(d), attr_none(), attr_none(), attr_none()};
	return counted(b, n, x, b_node(b, OP_aten_linspace_Tensor_Tensor, end, 2, attr, 7));
}

static Node build_histogram_edges(Build *b, Node n)
{
	Node x = flat(b, arg(b, n, "self"));
	if (x.i && !dtype_is_float(node_dtype(b->g, x)))
		return b_error(b, "histogram of %s, expected a float type", dtype_name(node_dtype(b->g, x)));
	return counted(b, n, x, arg(b, n, "bins"));
}
OP(aten_histogram_bin_ct){
	.schema = "aten.histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) -> "
		  "(Tensor hist, Tensor bin_edges)",
	.build = build_histogram,
	.sample = "f32[n=3, 4], bins=5; f32[3, 4], bins=4, range=[-2.0, 3.0], density=true; f32[3] of 2, bins=2; f32[] of 3, bins=2; f32[0], bins=2; "
		  "f32[2, 6] in -4..4, bins=8, range=[-4.0, 4.0], f32[2, 6] in 0..1; f32[3, 4], bins=3, range=[1.0, 1.0]",
	.overloads = (const Overload[]){
		{.schema = "aten.histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, "
			   "Tensor bin_edges)",
		 .build = build_histogram_edges,
		 .sample = "f32[n=3, 4], f32[m=4] of -3 -0.5 1 2; f32[6] of -3 2 nan 2.5 -0.5 1, f32[4] of -3 -0.5 1 2, f32[6] in 0.5..2, density=true"},
	},
};
