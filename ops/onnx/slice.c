/* Pieces, borders and what is made from sizes. */
#include "ops/onnx/priv.h"

/* ---- slices ---- */

/* Returns a start or end as an index from 0 on, between 0 (or -1: low) and the extent (high).
 * Constants far beyond are the bounds. */
static Sym bound(Build *b, Sym at, Sym extent, int64_t low, Sym high)
{
	SymTab *t = b_syms(b);
	int64_t v;
	bool known = sym_is_const(t, at, &v);
	if (known && v >= INT32_MAX)
		return high;
	if (known && v <= INT32_MIN)
		return b_int(b, low);
	if (!known || v < 0)
		at = known ? sym_add(t, extent, at) : b_index_from_end(b, at, extent);
	return sym_min(t, sym_max(t, at, b_int(b, low)), high);
}

static Node slice_dim(Build *b, Node x, uint32_t axis, Sym start, Sym end, int64_t step)
{
	SymTab *t = b_syms(b);
	Sym extent = b_dim(b, x, (int)axis), last = sym_addi(t, extent, -1);
	if (step > 0) {
		start = bound(b, start, extent, 0, extent);
		end = sym_max(t, bound(b, end, extent, 0, extent), start);
		return b_slice(b, x, (int)axis, start, end, b_int(b, step));
	}
	start = bound(b, start, extent, 0, last);
	end = sym_min(t, bound(b, end, extent, -1, last), start);
	x = b_reverse(b, x, (int)axis);
	return b_slice(b, x, (int)axis, sym_sub(t, last, start), sym_sub(t, last, end),
		       b_int(b, -step));
}

static Node build_slice(Build *b, Node n)
{
	Node x = arg(b, n, "data");
	uint32_t nstart, nend, naxes = 0, nstep = 0, rank = aten_rank(b, x);
	const Sym *start = node_ints(b->g, n, "starts", &nstart),
		  *end = node_ints(b->g, n, "ends", &nend);
	const Sym *axes = aten_has(b, n, "axes") ? node_ints(b->g, n, "axes", &naxes) : NULL;
	const Sym *steps = aten_has(b, n, "steps") ? node_ints(b->g, n, "steps", &nstep) : NULL;
	if (nstart != nend || (axes && naxes != nstart) || (steps && nstep != nstart) ||
	    nstart > rank)
		return b_error(b, "%u starts, %u ends, %u axes, %u steps for a tensor of rank %u",
			       nstart, nend, naxes, nstep, rank);
	for (uint32_t k = 0; k < nstart; k++) {
		int64_t axis = k, step = 1;
		if ((axes && !aten_const(b, axes[k], &axis)) ||
		    (steps && !aten_const(b, steps[k], &step)))
			return (Node){0};
		axis += axis < 0 ? rank : 0;
		if (axis < 0 || axis >= rank || !step || step == INT64_MIN)
			return b_error(b, "axis %lld, step %lld for a tensor of rank %u",
				       (long long)axis, (long long)step, rank);
		x = slice_dim(b, x, (uint32_t)axis, start[k], end[k], step);
	}
	return x;
}

OP(onnx_Slice_1){
	.schema = "onnx.Slice.1(Tensor data, SymInt[] starts, SymInt[] ends, int[]? axes, int[]? "
		  "steps) -> Tensor",
	.build = build_slice,
	.no_sample = NODE_TESTS,
};

/* ---- borders ---- */

/* Returns the element of the operand that element p of the padded dimension repeats: i64[count]. */
static Node mirrored(Build *b, Sym count, Sym low, Sym extent, const char *mode)
{
	Node p = b_bin(b, OP_sub, b_iota(b, DT_i64, count), aten_size(b, low, DT_i64));
	Node n = aten_size(b, extent, DT_i64), last = b_bin_scalar(b, OP_sub, n, 1);
	if (mode[0] == 'e') /* edge */
		return b_bin(b, OP_minimum, b_bin_scalar(b, OP_maximum, p, 0), last);
	if (mode[0] == 'w') /* wrap */
		return b_bin(b, OP_remainder, p, n);
	/* reflect: a wave of period 2 * (extent - 1), which is 0 for one element */
	Node period = b_bin_scalar(b, OP_maximum, b_bin_scalar(b, OP_mul, last, 2), 1);
	p = b_bin(b, OP_remainder, p, period);
	return b_bin(b, OP_minimum, p, b_bin(b, OP_sub, period, p));
}

static Node pad_constant(Build *b, Node n, Node x, const Sym *low, const Sym *high)
{
	Node value = arg(b, n, "constant_value");
	value = value.i ? b_reshape(b, value, 0, NULL) : aten_like(b, x, 0);
	return b_pad(b, x, low, high, value);
}

static bool is_negative(Build *b, Sym v)
{
	int64_t c;
	return sym_is_const(b_syms(b), v, &c) && c < 0;
}

static Node build_pad(Build *b, Node n)
{
	Node x = arg(b, n, "data");
	uint32_t rank = aten_rank(b, x), axes[MAX_RANK], naxes, npads;
	const Sym *pads = node_ints(b->g, n, "pads", &npads);
	Sym low[MAX_RANK], high[MAX_RANK];
	SymTab *t = b_syms(b);
	if (!aten_check_word(b, n, "mode", "constant reflect edge wrap") ||
	    !onnx_axes(b, n, "axes", rank, axes, &naxes))
		return (Node){0};
	if (npads != 2 * naxes)
		return b_error(b, "%u pads, expected two for each of %u axes", npads, naxes);
	for (uint32_t k = 0; k < rank; k++)
		low[k] = high[k] = b_int(b, 0);
	for (uint32_t k = 0; k < naxes; k++) {
		low[axes[k]] = pads[k];
		high[axes[k]] = pads[naxes + k];
	}
	const char *mode = node_str(b->g, n, "mode");
	if (mode[0] == 'c')
		return pad_constant(b, n, x, low, high);
	for (uint32_t k = 0; k < rank && x.i; k++) {
		Sym extent = b_dim(b, x, (int)k),
		    count = sym_add(t, extent, sym_add(t, low[k], high[k]));
		if (sym_is(t, low[k], 0) && sym_is(t, high[k], 0))
			continue;
		if (is_negative(b, low[k]) && is_negative(b, high[k]))
			x = b_slice(b, x, (int)k, sym_muli(t, low[k], -1),
				    sym_add(t, extent, high[k]), b_int(b, 1));
		else
			x = aten_take_dim(b, x, k, mirrored(b, count, low[k], extent, mode),
					  "within");
	}
	return x;
}

OP(onnx_Pad_1){
	.schema = "onnx.Pad.1(Tensor data, SymInt[] pads, Tensor? constant_value, int[]? axes, *, "
		  "str mode=\"constant\") -> Tensor",
	.aliases = "com_microsoft.Pad.1",
	.build = build_pad,
	.no_sample = NODE_TESTS,
};

/* Cuts each axis, or pads it with zeros, about its centre. */
static Node build_center_crop_pad(Build *b, Node n)
{
	Node x = arg(b, n, "input_data");
	uint32_t rank = aten_rank(b, x), axes[MAX_RANK], naxes, count;
	const Sym *shape = node_ints(b->g, n, "shape", &count);
	SymTab *t = b_syms(b);
	if (!onnx_axes(b, n, "axes", rank, axes, &naxes))
		return (Node){0};
	if (count != naxes)
		return b_error(b, "shape has %u extents, expected one for each of %u axes", count,
			       naxes);
	for (uint32_t k = 0; k < naxes && x.i; k++) {
		Sym low[MAX_RANK], high[MAX_RANK], extent = b_dim(b, x, (int)axes[k]);
		for (uint32_t d = 0; d < rank; d++)
			low[d] = high[d] = b_int(b, 0);
		/* the odd element: cropped at the end, padded at the end */
		Sym more = sym_max(t, sym_sub(t, shape[k], extent), b_int(b, 0)),
		    less = sym_max(t, sym_sub(t, extent, shape[k]), b_int(b, 0));
		Sym start = sym_divi(t, less, 2);
		x = b_slice(b, x, (int)axes[k], start,
			    sym_add(t, start, sym_min(t, extent, shape[k])), b_int(b, 1));
		low[axes[k]] = sym_divi(t, more, 2);
		high[axes[k]] = sym_sub(t, more, low[axes[k]]);
		x = b_pad(b, x, low, high, aten_like(b, x, 0));
	}
	return x;
}

OP(onnx_CenterCropPad_18){
	.schema = "onnx.CenterCropPad.18(Tensor input_data, SymInt[] shape, *, int[]? axes=None) "
		  "-> Tensor",
	.build = build_center_crop_pad,
	.no_sample = NODE_TESTS,
};

/* ---- triangles, diagonals, fills ---- */

/* Keeps elements on one side of a diagonal, by the row and column of each, i64. */
static Node build_trilu(Build *b, Node n)
{
	Node x = arg(b, n, "input"), k = arg(b, n, "k");
	uint32_t rank = aten_rank(b, x);
	if (rank < 2)
		return b_error(b, "a tensor of rank %u, expected 2 or more", rank);
	Shape s = aten_shape(b, x);
	Node row = aten_iota_dim(b, &s, rank - 2, DT_i64),
	     col = aten_iota_dim(b, &s, rank - 1, DT_i64);
	Node diagonal =
		k.i ? b_bin(b, OP_add, row, b_reshape(b, b_convert(b, k, DT_i64), 0, NULL)) : row;
	Node keep = b_bin(b, node_bool(b->g, n, "upper") ? OP_ge : OP_le, col, diagonal);
	return b_select(b, keep, x, aten_like(b, x, 0));
}

OP(onnx_Trilu_14){
	.schema = "onnx.Trilu.14(Tensor input, Tensor? k, *, bool upper=True) -> Tensor",
	.aliases = "com_microsoft.Trilu.1",
	.build = build_trilu,
	.no_sample = NODE_TESTS,
};

static Node build_eye_like(Build *b, Node n)
{
	Node x = arg(b, n, "input");
	if (aten_rank(b, x) != 2)
		return b_error(b, "a tensor of rank %u, expected 2", aten_rank(b, x));
	Shape s = aten_shape(b, x);
	Node row = b_bin_scalar(b, OP_add, aten_iota_dim(b, &s, 0, DT_i64),
				(double)aten_int(b, n, "k"));
	Node y = b_bin(b, OP_eq, row, aten_iota_dim(b, &s, 1, DT_i64));
	return b_convert(b, y, aten_dtype_or(b, n, "dtype", aten_dtype(b, x)));
}

OP(onnx_EyeLike_9){
	.schema = "onnx.EyeLike.9(Tensor input, *, ScalarType? dtype=None, int k=0) -> Tensor",
	.build = build_eye_like,
	.no_sample = NODE_TESTS,
};

static Node build_constant_of_shape(Build *b, Node n)
{
	Node value = arg(b, n, "value");
	uint32_t rank;
	const Sym *dim = node_ints(b->g, n, "input", &rank);
	if (rank > MAX_RANK)
		return b_error(b, "input has %u extents, expected at most %d", rank, MAX_RANK);
	value = value.i ? b_reshape(b, value, 0, NULL) : b_scalar(b, DT_f32, 0);
	return b_broadcast(b, value, rank, dim);
}

OP(onnx_ConstantOfShape_9){
	.schema = "onnx.ConstantOfShape.9(SymInt[] input, *, Tensor? value=None) -> Tensor",
	.build = build_constant_of_shape,
	.no_sample = NODE_TESTS,
};

/* Puts the value at `on`, else at `off`, along a new axis; negative indices count from the end. */
static Node build_one_hot(Build *b, Node n)
{
	Node index = arg(b, n, "indices"), values = arg(b, n, "values");
	uint32_t rank = aten_rank(b, index);
	int64_t axis = aten_int(b, n, "axis");
	axis += axis < 0 ? rank + 1 : 0;
	if (axis < 0 || axis > rank || rank == MAX_RANK)
		return b_error(b, "axis %lld of indices of rank %u", (long long)axis, rank);
	Sym depth = node_sym(b->g, n, "depth");
	index = b_convert(b, index, DT_i64);
	if (!index.i)
		return index;
	index = b_select(b, b_bin_scalar(b, OP_lt, index, 0),
			 b_bin(b, OP_add, index, aten_size(b, depth, DT_i64)), index);
	Shape s = shape_insert(aten_shape(b, index), (uint32_t)axis, depth);
	Node hot = b_bin(b, OP_eq, b_unsqueeze(b, index, (int)axis),
			 aten_iota_dim(b, &s, (uint32_t)axis, DT_i64));
	return b_select(b, hot, b_select_dim(b, values, 0, b_int(b, 1)),
			b_select_dim(b, values, 0, b_int(b, 0)));
}

OP(onnx_OneHot_9){
	.schema = "onnx.OneHot.9(Tensor indices, SymInt depth, Tensor values, *, int axis=-1) -> "
		  "Tensor",
	.build = build_one_hot,
	.no_sample = NODE_TESTS,
};
