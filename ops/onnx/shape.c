/* Operators that move elements: shapes, dimensions, pieces. */
#include "ops/onnx/priv.h"

/* ---- shapes ---- */

/* Reads the shape: 0 is the operand's extent, unless allowzero says that 0 is 0; -1 is what is
 * left. */
static Node build_reshape(Build *b, Node n)
{
	Node x = arg(b, n, "data");
	uint32_t count, rank = aten_rank(b, x);
	const Sym *given = node_ints(b->g, n, "shape", &count);
	Sym dim[MAX_RANK];
	if (count > MAX_RANK)
		return b_error(b, "shape has %u extents, expected at most %d", count, MAX_RANK);
	for (uint32_t k = 0; k < count; k++) {
		dim[k] = given[k];
		if (!sym_is(b_syms(b), given[k], 0) || node_bool(b->g, n, "allowzero"))
			continue;
		if (k >= rank)
			return b_error(b, "shape: extent %u is 0, but the operand has rank %u", k,
				       rank);
		dim[k] = b_dim(b, x, (int)k);
	}
	return onnx_call(b, "aten.reshape", &x, 1, (Attr[]){attr_none(), attr_ints(dim, count)}, 2);
}

OP(onnx_Reshape_1){
	.schema = "onnx.Reshape.1(Tensor data, SymInt[] shape, *, bool allowzero=False) -> Tensor",
	.build = build_reshape,
	.no_sample = NODE_TESTS,
};

static Node build_flatten(Build *b, Node n)
{
	Node x = arg(b, n, "input");
	uint32_t rank = aten_rank(b, x);
	int64_t axis = aten_int(b, n, "axis");
	axis += axis < 0 ? rank : 0;
	if (axis < 0 || axis > rank)
		return b_error(b, "axis %lld of a tensor of rank %u", (long long)axis, rank);
	Sym dim[2] = {b_int(b, 1), b_int(b, 1)};
	for (uint32_t k = 0; k < rank; k++)
		dim[k >= axis] = sym_mul(b_syms(b), dim[k >= axis], b_dim(b, x, (int)k));
	return b_reshape(b, x, 2, dim);
}

OP(onnx_Flatten_1){
	.schema = "onnx.Flatten.1(Tensor input, *, int axis=1) -> Tensor",
	.build = build_flatten,
	.no_sample = NODE_TESTS,
};

/* Removes, without axes, all dimensions of extent 1. */
static Node build_squeeze(Build *b, Node n)
{
	Node x = arg(b, n, "data");
	uint32_t axes[MAX_RANK], count, dims = 0, rank = aten_rank(b, x);
	if (!onnx_axes(b, n, "axes", rank, axes, &count))
		return (Node){0};
	for (uint32_t k = 0; k < count; k++) {
		if (aten_has(b, n, "axes"))
			aten_require_equal(b, b_dim(b, x, (int)axes[k]), b_int(b, 1),
					   "Squeeze: an extent is not 1");
		if (aten_has(b, n, "axes") || sym_is(b_syms(b), b_dim(b, x, (int)axes[k]), 1))
			dims |= 1u << axes[k];
	}
	return aten_squeeze_dims(b, x, dims);
}

OP(onnx_Squeeze_1){
	.schema = "onnx.Squeeze.1(Tensor data, int[]? axes) -> Tensor",
	.build = build_squeeze,
	.no_sample = NODE_TESTS,
};

/* Inserts axes, which are dimensions of the result, in any order. */
static Node build_unsqueeze(Build *b, Node n)
{
	Node x = arg(b, n, "data");
	uint32_t axes[MAX_RANK], count = 0, set = 0;
	(void)node_ints(b->g, n, "axes", &count);
	uint32_t rank = aten_rank(b, x) + count;
	if (rank > MAX_RANK)
		return b_error(b, "the result has %u dimensions, expected at most %d", rank,
			       MAX_RANK);
	if (!onnx_axes(b, n, "axes", rank, axes, &count))
		return (Node){0};
	for (uint32_t k = 0; k < count; k++)
		set |= 1u << axes[k];
	for (uint32_t k = 0; k < rank; k++)
		if (set & 1u << k)
			x = b_unsqueeze(b, x, (int)k);
	return x;
}

OP(onnx_Unsqueeze_1){
	.schema = "onnx.Unsqueeze.1(Tensor data, int[] axes) -> Tensor",
	.build = build_unsqueeze,
	.no_sample = NODE_TESTS,
};

/* Reverses the dimensions, without perm. */
static Node build_transpose(Build *b, Node n)
{
	Node x = arg(b, n, "data");
	uint32_t perm[MAX_RANK], count, rank = aten_rank(b, x);
	if (!onnx_axes(b, n, "perm", rank, perm, &count))
		return (Node){0};
	if (count != rank)
		return b_error(b, "perm has %u dimensions, expected %u", count, rank);
	for (uint32_t k = 0; !aten_has(b, n, "perm") && k < rank; k++)
		perm[k] = rank - 1 - k;
	return b_permute(b, x, perm);
}

OP(onnx_Transpose_1){
	.schema = "onnx.Transpose.1(Tensor data, *, int[]? perm=None) -> Tensor",
	.build = build_transpose,
	.no_sample = NODE_TESTS,
};

/* Requires that an extent of the shape keeps that of the operand: it is 1 or the same. */
static void require_kept(Build *b, Sym want, Sym have)
{
	SymTab *t = b_syms(b);
	if (want.i != have.i && !sym_is(t, want, 1))
		aten_require_equal(b, sym_mul(t, sym_addi(t, want, -1), sym_sub(t, want, have)),
				   b_int(b, 0), "an extent of the shape is 1 or the tensor's");
}

/* Broadcasts both: extents of 1 in the shape keep the operand's. */
static Node build_expand(Build *b, Node n)
{
	Node x = arg(b, n, "input");
	Shape have = aten_shape(b, x), want = {0}, out;
	const Sym *given = node_ints(b->g, n, "shape", &want.rank);
	if (want.rank > MAX_RANK)
		return b_error(b, "shape has %u extents, expected at most %d", want.rank, MAX_RANK);
	want = shape_of(want.rank, given);
	if (!x.i || !aten_broadcast_shape(b, &have, &want, &out))
		return (Node){0};
	for (uint32_t k = 0; k < want.rank; k++)
		require_kept(b, want.dim[k], out.dim[out.rank - want.rank + k]);
	return aten_expand_shape(b, x, &out);
}

OP(onnx_Expand_8){
	.schema = "onnx.Expand.8(Tensor input, SymInt[] shape) -> Tensor",
	.build = build_expand,
	.no_sample = NODE_TESTS,
};

static Node build_tile(Build *b, Node n)
{
	Node x = arg(b, n, "input");
	uint32_t count;
	(void)node_ints(b->g, n, "repeats", &count);
	if (count != aten_rank(b, x))
		return b_error(b, "%u repeats for a tensor of rank %u", count, aten_rank(b, x));
	return onnx_call(b, "aten.repeat", &x, 1,
			 (Attr[]){attr_none(), *node_attr(b->g, n, "repeats")}, 2);
}

OP(onnx_Tile_6){
	.schema = "onnx.Tile.6(Tensor input, SymInt[] repeats) -> Tensor",
	.build = build_tile,
	.no_sample = NODE_TESTS,
};

/* ---- joining and splitting ---- */

static Node build_concat(Build *b, Node n)
{
	uint32_t count;
	Node *x = onnx_list(b, n, "inputs", &count);
	if (!count || !x[0].i)
		return b_error(b, "no operand, expected one at least");
	uint32_t axis = onnx_axis(b, n, "axis", x[0]);
	for (uint32_t k = 1; k < count; k++)
		if (aten_rank(b, x[k]) != aten_rank(b, x[0]))
			return b_error(b, "operands of rank %u and %u", aten_rank(b, x[0]),
				       aten_rank(b, x[k]));
	return b_concat(b, x, count, (int)axis);
}

OP(onnx_Concat_1){
	.schema = "onnx.Concat.1(Tensor[] inputs, *, int axis=1) -> Tensor",
	.build = build_concat,
	.no_sample = NODE_TESTS,
};

/* Splits into pieces of the given extents, or into equal ones, of which with num_outputs the
 * last may be smaller. */
static Node build_split(Build *b, Node n)
{
	Node x = arg(b, n, "input");
	uint32_t axis = onnx_axis(b, n, "axis", x), count;
	SymTab *t = b_syms(b);
	int64_t pieces = aten_int_or(b, n, "num_outputs", aten_int(b, n, "outputs"));
	const Sym *given = node_ints(b->g, n, "split", &count);
	Sym extent = b_dim(b, x, (int)axis), start = b_int(b, 0);
	if (!aten_has(b, n, "split"))
		count = (uint32_t)pieces;
	if (pieces < 1 || pieces > 4096 || count < 1)
		return b_error(b, "%lld pieces, expected at least one and at most 4096",
			       (long long)pieces);
	if (!given && !aten_has(b, n, "num_outputs"))
		aten_require_multiple(b, extent, count, "Split: the operand has no equal pieces");
	Sym each = sym_ceildiv(t, extent, b_int(b, count));
	Node *y = ARENA_ARRAY(b->g->ir->ctx->scratch, Node, count);
	for (uint32_t k = 0; k < count; k++) {
		Sym end = given ? sym_add(t, start, given[k])
				: sym_min(t, extent, sym_add(t, start, each));
		y[k] = b_slice(b, x, (int)axis, start, end, b_int(b, 1));
		start = end;
	}
	aten_require_equal(b, start, extent, "Split: the pieces are not as long as the operand");
	return b_tuple(b, y, count);
}

OP(onnx_Split_1){
	.schema = "onnx.Split.1(Tensor input, SymInt[]? split, *, int axis=0, int? "
		  "num_outputs=None, int outputs) -> Tensor[]",
	.build = build_split,
	.no_sample = NODE_TESTS,
};

/* ---- blocks ---- */

static Node blocks(Build *b, Node n, int to_space)
{
	Node x = arg(b, n, "input");
	int64_t size = aten_int(b, n, "blocksize");
	SymTab *t = b_syms(b);
	if (aten_rank(b, x) != 4 || size < 1 || size > INT32_MAX)
		return b_error(b,
			       "an operand of rank %u and blocksize %lld: expected rank 4 and 1 to "
			       "2^31 - 1",
			       aten_rank(b, x), (long long)size);
	Sym s = b_int(b, size), d[4];
	for (uint32_t k = 0; k < 4; k++)
		d[k] = b_dim(b, x, (int)k);
	if (!to_space) {
		Sym in[6] = {d[0], d[1], sym_divi(t, d[2], size), s, sym_divi(t, d[3], size), s};
		Sym out[4] = {d[0], sym_muli(t, d[1], size * size), in[2], in[4]};
		aten_require_multiple(b, d[2], size,
				      "SpaceToDepth: the height is no multiple of blocksize");
		aten_require_multiple(b, d[3], size,
				      "SpaceToDepth: the width is no multiple of blocksize");
		const uint32_t *perm = aten_is(b, n, "mode", "CRD")
					       ? (uint32_t[]){0, 1, 3, 5, 2, 4}
					       : (uint32_t[]){0, 3, 5, 1, 2, 4};
		return aten_check_word(b, n, "mode", "DCR CRD")
			       ? b_reshape(b, b_permute(b, b_reshape(b, x, 6, in), perm), 4, out)
			       : (Node){0};
	}
	aten_require_multiple(b, d[1], size * size,
			      "DepthToSpace: the depth is no multiple of the square of blocksize");
	Sym depth = sym_divi(t, d[1], size * size);
	Sym out[4] = {d[0], depth, sym_muli(t, d[2], size), sym_muli(t, d[3], size)};
	if (!aten_check_word(b, n, "mode", "DCR CRD"))
		return (Node){0};
	if (aten_is(b, n, "mode", "DCR"))
		return b_reshape(
			b,
			b_permute(b, b_reshape(b, x, 6, (Sym[]){d[0], s, s, depth, d[2], d[3]}),
				  (uint32_t[]){0, 3, 4, 1, 5, 2}),
			4, out);
	return b_reshape(b,
			 b_permute(b, b_reshape(b, x, 6, (Sym[]){d[0], depth, s, s, d[2], d[3]}),
				   (uint32_t[]){0, 1, 4, 2, 5, 3}),
			 4, out);
}


OP(onnx_DepthToSpace_1){
	.schema = "onnx.DepthToSpace.1(Tensor input, *, int blocksize, str mode=\"DCR\") -> Tensor",
	.build_as = {blocks, true},
	.no_sample = NODE_TESTS,
};
OP(onnx_SpaceToDepth_1){
	.schema = "onnx.SpaceToDepth.1(Tensor input, *, int blocksize, str mode=\"DCR\") -> Tensor",
	.build_as = {blocks, false},
	.no_sample = NODE_TESTS,
};
