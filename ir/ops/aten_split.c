/* ATen splits and joins of less common kinds. */
#include "ir/ops/aten_priv.h"

enum { MAX_PARTS = 65536 };

static uint32_t dim_of(const Build *b, Node n, Node x)
{
	switch (node_op(b->g, n)) {
	case OP_aten_vsplit_int:
	case OP_aten_vsplit_array:
		return 0;
	case OP_aten_dsplit_int:
	case OP_aten_dsplit_array:
		return 2;
	default:
		return aten_rank(b, x) > 1 ? 1 : 0;
	}
}

static Node build_split_equal(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t dim = dim_of(b, n, x);
	int64_t sections = aten_int(b, n, "sections");
	if (dim >= aten_rank(b, x) || sections < 1 || sections > MAX_PARTS ||
	    !sym_divides(b_syms(b), sections, b_dim(b, x, (int)dim)))
		return b_error(b, "split of an operand of rank %u into %lld equal parts",
			       aten_rank(b, x), (long long)sections);
	Sym size = sym_divi(b_syms(b), b_dim(b, x, (int)dim), sections), at = b_int(b, 0);
	Node *part = arena_calloc(b->g->ir->ctx->scratch, (size_t)sections, sizeof *part);
	for (int64_t k = 0; k < sections; k++) {
		Sym end = sym_add(b_syms(b), at, size);
		part[k] = b_slice(b, x, (int)dim, at, end, b_int(b, 1));
		at = end;
	}
	return b_tuple(b, part, (uint32_t)sections);
}
OP(aten_vsplit_int){
	.schema = "aten.vsplit.int(Tensor(a) self, int sections) -> Tensor(a)[]",
	.view = VIEW_OTHER,
	.build = build_split_equal,
	.sample = "f32[4, n=3], sections=2",
};
OP(aten_hsplit_int){
	.schema = "aten.hsplit.int(Tensor(a) self, int sections) -> Tensor(a)[]",
	.view = VIEW_OTHER,
	.build = build_split_equal,
	.sample = "f32[n=3, 4], sections=2; f32[4], sections=2",
};
OP(aten_dsplit_int){
	.schema = "aten.dsplit.int(Tensor(a) self, int sections) -> Tensor(a)[]",
	.view = VIEW_OTHER,
	.build = build_split_equal,
	.sample = "f32[n=2, 1, 4], sections=2",
};

static Node build_split_at(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t dim = dim_of(b, n, x), len;
	const Sym *index = node_ints(b->g, n, "indices", &len);
	SymTab *t = b_syms(b);
	if (dim >= aten_rank(b, x))
		return b_error(b, "split of an operand of rank %u", aten_rank(b, x));
	Node *part = arena_calloc(b->g->ir->ctx->scratch, len + 1, sizeof *part);
	Sym size = b_dim(b, x, (int)dim), from = b_int(b, 0);
	for (uint32_t k = 0; k <= len; k++) {
		Sym to = k < len ? sym_min(t, index[k], size) : size;
		part[k] = b_slice(b, x, (int)dim, from, sym_max(t, from, to), b_int(b, 1));
		from = to;
	}
	return b_tuple(b, part, len + 1);
}
OP(aten_vsplit_array){
	.schema = "aten.vsplit.array(Tensor(a) self, int[] indices) -> Tensor(a)[]",
	.view = VIEW_OTHER,
	.build = build_split_at,
	.sample = "f32[4, n=3], indices=[1, 3]",
};
OP(aten_hsplit_array){
	.schema = "aten.hsplit.array(Tensor(a) self, int[] indices) -> Tensor(a)[]",
	.view = VIEW_OTHER,
	.build = build_split_at,
	.sample = "f32[n=3, 4], indices=[1, 3]",
};
OP(aten_dsplit_array){
	.schema = "aten.dsplit.array(Tensor(a) self, int[] indices) -> Tensor(a)[]",
	.view = VIEW_OTHER,
	.build = build_split_at,
	.sample = "f32[n=2, 1, 4], indices=[1, 3]",
};

/* Each tensor padded to a multiple of num_chunks along dim, cut into chunks, flattened behind the
 * chunk axis, and joined there. */
static Node build_chunk_cat(Build *b, Node n)
{
	uint32_t first, count = node_args(b->g, n, "tensors", &first);
	Node *part = arena_calloc(b->g->ir->ctx->scratch, count, sizeof *part);
	int64_t chunks = aten_int(b, n, "num_chunks");
	SymTab *t = b_syms(b);
	uint32_t dim = 0;
	if (count == 0 || chunks < 1)
		return b_error(b, "_chunk_cat of %u tensors into %lld chunks", count,
			       (long long)chunks);
	for (uint32_t k = 0; k < count; k++) {
		Node x = node_in(b->g, n, first + k);
		Sym low[MAX_RANK], high[MAX_RANK];
		Shape s = aten_shape(b, x), r = {0};
		dim = b_wrap_dim(b, aten_int(b, n, "dim"), s.rank);
		if (!x.i || s.rank == 0)
			return b_error(b, "_chunk_cat of a tensor without dims");
		for (uint32_t d = 0; d < s.rank; d++)
			low[d] = high[d] = b_int(b, 0);
		Sym each = sym_ceildiv(t, s.dim[dim], b_int(b, chunks));
		high[dim] = sym_sub(t, sym_muli(t, each, chunks), s.dim[dim]);
		x = b_pad(b, x, low, high, aten_like(b, x, 0));
		for (uint32_t d = 0; d < dim; d++)
			r.dim[r.rank++] = s.dim[d];
		r.dim[r.rank++] = b_int(b, chunks);
		Sym rest = each;
		for (uint32_t d = dim + 1; d < s.rank; d++)
			rest = sym_mul(t, rest, s.dim[d]);
		r.dim[r.rank++] = rest;
		part[k] = aten_reshape(b, x, &r);
	}
	return b_concat(b, part, count, (int)dim + 1);
}
OP(aten__chunk_cat){
	.schema = "aten._chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor",
	.build = build_chunk_cat,
	.sample = "[f32[4, n=3], f32[3, n]], dim=0, num_chunks=2",
};

/* ---- at least so many dims ---- */

static Node at_least(Build *b, Node n, uint32_t rank)
{
	uint32_t first, count = node_args(b->g, n, "tensors", &first);
	Node *part = arena_calloc(b->g->ir->ctx->scratch, count, sizeof *part);
	for (uint32_t k = 0; k < count; k++) {
		Node x = node_in(b->g, n, first + k);
		uint32_t r = aten_rank(b, x);
		if (r == 0)
			x = b_unsqueeze(b, x, 0);
		if (rank >= 2 && r <= 1)
			x = b_unsqueeze(b, x, 0);
		part[k] = rank == 3 && r <= 2 ? b_unsqueeze(b, x, -1) : x;
	}
	return b_tuple(b, part, count);
}
static Node build_atleast_1d(Build *b, Node n)
{
	return at_least(b, n, 1);
}
static Node build_atleast_2d(Build *b, Node n)
{
	return at_least(b, n, 2);
}
static Node build_atleast_3d(Build *b, Node n)
{
	return at_least(b, n, 3);
}
OP(aten_atleast_1d_Sequence){
	.schema = "aten.atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]",
	.view = VIEW_RESHAPE,
	.build = build_atleast_1d,
	.sample = "[f32[], f32[n=3], f32[n, 4], f32[1, 2, 1]]",
};
OP(aten_atleast_2d_Sequence){
	.schema = "aten.atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]",
	.view = VIEW_RESHAPE,
	.build = build_atleast_2d,
	.sample = "[f32[], f32[n=3], f32[n, 4], f32[1, 2, 1]]",
};
OP(aten_atleast_3d_Sequence){
	.schema = "aten.atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]",
	.view = VIEW_RESHAPE,
	.build = build_atleast_3d,
	.sample = "[f32[], f32[n=3], f32[n, 4], f32[1, 2, 1]]",
};
