/* ATen splits and joins of less common kinds. */
#include "ops/aten/priv.h"
#include "ops/prim/data_size.h"

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
OP(aten_vsplit_int){
	.schema = "aten.vsplit.int(Tensor(a) self, int sections) -> Tensor(a)[]",
	.view = VIEW_OTHER,
	.build = build_split_equal,
	.sample = "f32[4, n=3], sections=2",
	.overloads = (const Overload[]){
		{.schema = "aten.hsplit.int(Tensor(a) self, int sections) -> Tensor(a)[]",
		 .sample = "f32[n=3, 4], sections=2; f32[4], sections=2"},
		{.schema = "aten.dsplit.int(Tensor(a) self, int sections) -> Tensor(a)[]",
		 .sample = "f32[n=2, 1, 4], sections=2"},
		{.schema = "aten.vsplit.array(Tensor(a) self, int[] indices) -> Tensor(a)[]",
		 .build = build_split_at,
		 .sample = "f32[4, n=3], indices=[1, 3]"},
		{.schema = "aten.hsplit.array(Tensor(a) self, int[] indices) -> Tensor(a)[]",
		 .build = build_split_at,
		 .sample = "f32[n=3, 4], indices=[1, 3]"},
		{.schema = "aten.dsplit.array(Tensor(a) self, int[] indices) -> Tensor(a)[]",
		 .build = build_split_at,
		 .sample = "f32[n=2, 1, 4], indices=[1, 3]"},
	},
};

/* ---- at places that are data ---- */

/* Returns x[.., start : start + size, ..] along dim, start 0-d. */
static Node part_at(Build *b, Node x, uint32_t dim, Node start, Sym size)
{
	uint32_t rank = aten_rank(b, x);
	Shape s = aten_shape(b, x);
	Node in[1 + MAX_RANK] = {x};
	s.dim[dim] = size;
	for (uint32_t d = 0; d < rank; d++)
		in[1 + d] = d == dim ? start : b_full_int(b, DT_i64, 0, 0, NULL);
	Attr attr[] = {attr_none(), attr_int(b->g->ir, rank), attr_ints(s.dim, rank)};
	return start.i ? b_node(b, OP_slice_at, in, 1 + rank, attr, 3) : start;
}

/* Splits into as many parts as there are indices, and one: a negative index counts from the end,
 * each is clamped. */
static Node split_at_indices(Build *b, Node n, Node x, uint32_t dim, Node index, int64_t count)
{
	Sym size = b_dim(b, x, (int)dim);
	Node whole = b_from_size(b, size), zero = b_full_int(b, DT_i64, 0, 0, NULL), from = zero;
	Node *part = arena_calloc(b->g->ir->ctx->scratch, (size_t)count + 1, sizeof *part);
	index = b_select(b, b_bin_scalar(b, OP_lt, index, 0), b_bin(b, OP_add, index, whole),
			 index);
	index = b_bin(b, OP_minimum, b_bin(b, OP_maximum, index, zero), whole);
	for (int64_t k = 0; k <= count; k++) {
		Node to = k < count ? b_select_dim(b, index, 0, b_int(b, k)) : whole;
		Sym extent = data_size(b, n, (uint32_t)k, dim);
		b_to_size(b, b_bin(b, OP_maximum, b_bin(b, OP_sub, to, from), zero), extent, size,
			  op_name(node_op(b->g, n)));
		part[k] = part_at(b, x, dim, from, extent);
		from = to;
	}
	return b_tuple(b, part, (uint32_t)count + 1);
}

/* Splits into as many parts as the model was exported with: the number has to be that. */
static Node split_into(Build *b, Node n, Node x, uint32_t dim, Node number)
{
	SymTab *t = b_syms(b);
	const Type *file = node_type_id(b->g, n).i ? node_type(b->g, n) : NULL;
	if (!file || file->dtype != DT_none || !file->n) {
		b_error(b, "tensor_split into a number of parts that depends on data");
		ctx_kind(b->g->ir->ctx, REFUSAL_DATA_SIZE);
		return (Node){0};
	}
	int64_t count = file->n;
	Node legal = b_bin_scalar(b, OP_eq, number, (double)count);
	const char *text =
		arena_printf(b->g->ir->ctx->arena, "tensor_split: the number of parts is not %lld",
			     (long long)count);
	b_node(b, OP_assert, &legal, 1, (Attr[]){attr_none(), attr_str(b->g->ir, text)}, 2);
	Sym size = b_dim(b, x, (int)dim), each = sym_divi(t, size, count),
	    rest = sym_modi(t, size, count), from = b_int(b, 0);
	Node *part = arena_calloc(b->g->ir->ctx->scratch, (size_t)count, sizeof *part);
	for (int64_t k = 1; k <= count; k++) {
		Sym to = sym_add(t, sym_muli(t, each, k), sym_min(t, b_int(b, k), rest));
		part[k - 1] = b_slice(b, x, (int)dim, from, k == count ? size : to, b_int(b, 1));
		from = to;
	}
	return b_tuple(b, part, (uint32_t)count);
}

static Node build_tensor_split_by(Build *b, Node n)
{
	Node x = arg(b, n, "self"), index = arg(b, n, "tensor_indices_or_sections");
	uint32_t rank = aten_rank(b, index);
	int64_t count;
	if (!x.i || !index.i || node_rank(b->g, x) == 0 || rank > 1 ||
	    node_dtype(b->g, index) != DT_i64)
		return b_error(
			b, "tensor_split of rank %u by %s of rank %u, expected i64 of rank 0 or 1",
			aten_rank(b, x), dtype_name(aten_dtype(b, index)), rank);
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, x));
	if (rank == 0)
		return split_into(b, n, x, dim, index);
	if (!aten_const(b, b_dim(b, index, 0), &count) || count >= MAX_PARTS)
		return b_error(b, "tensor_split at %s places",
			       sym_str(b_syms(b), b_dim(b, index, 0)));
	return split_at_indices(b, n, x, dim, index, count);
}
OP(aten_tensor_split_tensor_indices_or_sections){
	.schema = "aten.tensor_split.tensor_indices_or_sections(Tensor(a) self, Tensor "
		  "tensor_indices_or_sections, int dim=0) -> Tensor(a)[]",
	.view = VIEW_OTHER,
	.has_effect = data_size_effect,
	.build = build_tensor_split_by,
	.sample = "f32[7, n=3], i64[2] of 2 5; f32[n=3, 5], i64[3] of 3 -4 9, dim=1; "
		  "f32[4], i64[0]",
};

/* ---- chunks ---- */

/* Joins the tensors: each is padded to a multiple of num_chunks along dim, cut into chunks,
 * flattened behind the chunk axis, and joined there. */
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
static Node build_atleast(Build *b, Node n)
{
	return at_least(b, n, aten_named_dims(b, n));
}
OP(aten_atleast_1d_Sequence){
	.schema = "aten.atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]",
	.view = VIEW_RESHAPE,
	.build = build_atleast,
	.sample = "[f32[], f32[n=3], f32[n, 4], f32[1, 2, 1]]",
	.overloads = (const Overload[]){
		{.schema = "aten.atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]"},
		{.schema = "aten.atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]"},
	},
};
