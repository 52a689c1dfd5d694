/* ATen slicing, splitting, joining and padding. */
#include "ops/aten/priv.h"
#include "ops/prim/data_size.h"

/* ---- slices ---- */

/* Applies Python's rule for a slice bound: negative counts from the end, then clamped to
 * 0..size. */
static Sym bound(Build *b, Sym v, Sym size)
{
	SymTab *t = b_syms(b);
	return sym_max(t, b_int(b, 0), sym_min(t, b_index_from_end(b, v, size), size));
}

/* Tells whether the extent that the file gives the sliced dimension, where bounds depend on
 * data, is a symbol of its own, and none of the call's. */
static bool gives_size(const Graph *g, Node n)
{
	const SymTab *t = graph_syms(g);
	const Type *x = node_type(g, node_arg(g, n, "self")),
		   *y = node_type_id(g, n).i ? node_type(g, n) : NULL;
	const Attr *dim = node_attr(g, n, "dim");
	int64_t d;
	if (!y || y->n != x->n || dim->kind != ATTR_int || !sym_is_const(t, dim->s, &d))
		return false;
	d += d < 0 ? (int64_t)y->n : 0;
	if (d < 0 || d >= (int64_t)y->n)
		return false;
	Sym own = y->dim[d];
	bool fresh = sym_kind(t, own) == SYM_VAR && sym_uses_kind(t, own, SYMVAR_UNBACKED) &&
		     !sym_uses(t, x->dim[d], own);
	for (int k = 0; k < 2; k++) {
		const Attr *a = node_attr(g, n, k ? "end" : "start");
		fresh &= a->kind != ATTR_int || !sym_uses(t, a->s, own);
	}
	return fresh;
}

/* Slices x from start on, of that extent by steps, whose size is known when it runs. */
static Node slice_of_size(Build *b, Node x, uint32_t dim, Sym start, Sym extent, int64_t step,
			  Sym size, const char *what)
{
	SymTab *t = b_syms(b);
	Sym most = sym_ceildiv(t, b_dim(b, x, (int)dim), b_int(b, step));
	b_to_size(b, b_from_size(b, sym_ceildiv(t, extent, b_int(b, step))), size, most, what);
	x = b_slice(b, x, (int)dim, start, sym_add(t, start, step == 1 ? size : extent),
		    b_int(b, step));
	Shape s = aten_shape(b, x);
	s.dim[dim] = size;
	return aten_reshape(b, x, &s);
}

static Node slice(Build *b, Node n, Node x)
{
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), aten_rank(b, x));
	if (!x.i || node_rank(b->g, x) == 0)
		return b_error(b, "slice of a tensor without dims");
	Sym size = b_dim(b, x, (int)dim);
	int64_t step = aten_int(b, n, "step");
	Sym start =
		aten_has(b, n, "start") ? bound(b, node_sym(b->g, n, "start"), size) : b_int(b, 0);
	Sym end = aten_has(b, n, "end") ? bound(b, node_sym(b->g, n, "end"), size) : size;
	if (step < 1)
		return b_error(b, "slice step %lld, expected a positive one", (long long)step);
	end = sym_max(b_syms(b), start, end);
	if (gives_size(b->g, n))
		return slice_of_size(b, x, dim, start, sym_sub(b_syms(b), end, start), step,
				     data_size(b, n, 0, dim), op_name(node_op(b->g, n)));
	return b_slice(b, x, (int)dim, start, end, b_int(b, step));
}

static Node build_slice(Build *b, Node n)
{
	return slice(b, n, arg(b, n, "self"));
}
OP(aten_slice_Tensor){
	.schema = "aten.slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? "
		  "end=None, SymInt step=1) -> Tensor(a)",
	.view = VIEW_SLICE,
	.has_effect = gives_size,
	.build = build_slice,
	.sample = "f32[n=3, 5], dim=1, start=1, end=4; "
		  "f32[5, n=3], dim=0, start=-4, end=9223372036854775807, step=2; "
		  "f32[n=3, 4], dim=0, start=1; f32[5], start=3, end=2; f32[5], end=-2",
	.overloads = (const Overload[]){
		{.schema = "aten.slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, "
			   "SymInt? end=None, SymInt step=1) -> Tensor"},
	},
};

static Node build_select(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t rank = aten_rank(b, x);
	if (rank == 0)
		return b_error(b, "select of a tensor without dims");
	int dim = (int)b_wrap_dim(b, aten_int(b, n, "dim"), rank);
	Sym index = b_index_from_end(b, node_sym(b->g, n, "index"), b_dim(b, x, dim));
	aten_require_le(b, b_int(b, 0), index, "select index");
	aten_require_le(b, sym_addi(b_syms(b), index, 1), b_dim(b, x, dim), "select index");
	return b_select_dim(b, x, dim, index);
}
OP(aten_select_int){
	.schema = "aten.select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
	.view = VIEW_SELECT,
	.build = build_select,
	.sample = "f32[n=3, 4], dim=1, index=2; f32[4, n=3], dim=0, index=-1",
	.overloads = (const Overload[]){
		{.schema = "aten.select_copy.int(Tensor self, int dim, SymInt index) -> Tensor"},
	},
};

static Node narrow(Build *b, Node x, uint32_t dim, Sym start, Sym length)
{
	Sym end = sym_add(b_syms(b), start, length);
	aten_require_le(b, end, b_dim(b, x, (int)dim), "narrow");
	return b_slice(b, x, (int)dim, start, end, b_int(b, 1));
}

static Node build_narrow(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	if (aten_rank(b, x) == 0)
		return b_error(b, "narrow of a tensor without dims");
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, x));
	Sym start = b_index_from_end(b, node_sym(b->g, n, "start"), b_dim(b, x, (int)dim));
	return narrow(b, x, dim, start, node_sym(b->g, n, "length"));
}
OP(aten_narrow){
	.schema = "aten.narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
	.view = VIEW_SLICE,
	.build = build_narrow,
	.sample = "f32[n=3, 5], dim=1, start=1, length=3; f32[5, 2], dim=0, start=-3, length=2",
	.overloads = (const Overload[]){
		{.schema = "aten.narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> "
			   "Tensor"},
	},
};

/* Replaces elements start to end of a dimension, which a step of 1 leaves together: a box. */
static Node replace_box(Build *b, Node x, Node src, uint32_t dim, Sym start, Sym end)
{
	SymTab *t = b_syms(b);
	Shape s = aten_shape(b, x);
	Node at[MAX_RANK];
	s.dim[dim] = sym_max(t, sym_sub(t, end, start), b_int(b, 0));
	for (uint32_t k = 0; k < s.rank; k++)
		at[k] = aten_size(b, k == dim ? start : b_int(b, 0), DT_i64);
	return b_update_slice(b, x, aten_expand_shape(b, src, &s), at);
}

/* Replaces a part of self: its elements from start on, with steps, before end. */
static Node replace_part(Build *b, Node x, Node src, uint32_t dim, Sym start, Sym end, int64_t step)
{
	Shape s = aten_shape(b, x);
	if (!x.i || !src.i)
		return (Node){0};
	if (aten_rank(b, src) != s.rank)
		return b_error(b, "a part of rank %u for a tensor of rank %u", aten_rank(b, src),
			       s.rank);
	src = b_convert(b, src, node_dtype(b->g, x));
	if (step == 1)
		return replace_box(b, x, src, dim, start, end);
	Node at = aten_iota_dim(b, &s, dim, DT_i64);
	Node off = b_bin(b, OP_sub, at, aten_size(b, start, DT_i64));
	Node in = b_bin_scalar(b, OP_ge, off, 0);
	Node below = b_bin(b, OP_lt, at, aten_size(b, end, DT_i64));
	in = b_bin(b, OP_bit_and, in, below);
	Node hit = b_bin_scalar(b, OP_eq, b_bin_scalar(b, OP_remainder, off, (double)step), 0);
	in = b_bin(b, OP_bit_and, in, hit);
	Node row = b_iota(b, DT_i64, s.dim[dim]);
	row = b_bin(b, OP_sub, row, aten_size(b, start, DT_i64));
	row = b_bin_scalar(b, OP_floordiv, row, (double)step);
	return b_select(b, in, aten_take_dim(b, src, dim, row, "clamp"), x);
}

/* Requires that src has the shape of x but for its extent along dim. False after b_error. */
static bool same_but(Build *b, Node x, Node src, uint32_t dim, Sym extent)
{
	uint32_t errors = b->g->ir->ctx->nerror;
	if (aten_rank(b, src) != aten_rank(b, x))
		return b_error(b, "src has %u dimensions, expected %u", aten_rank(b, src),
			       aten_rank(b, x))
			.i;
	for (uint32_t k = 0; k < aten_rank(b, x) && b->g->ir->ctx->nerror == errors; k++)
		if (!sym_is(b_syms(b), node_dim(b->g, src, k), 1)) /* slice_backward repeats that */
			aten_require_equal(b, node_dim(b->g, src, k),
					   k == dim ? extent : node_dim(b->g, x, k),
					   "src has the shape of the part that it replaces");
	return b->g->ir->ctx->nerror == errors;
}

static Node build_slice_scatter(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), aten_rank(b, x));
	if (aten_rank(b, x) == 0)
		return b_error(b, "slice_scatter of a tensor without dims");
	Sym size = b_dim(b, x, (int)dim);
	Sym start =
		aten_has(b, n, "start") ? bound(b, node_sym(b->g, n, "start"), size) : b_int(b, 0);
	Sym end = aten_has(b, n, "end") ? bound(b, node_sym(b->g, n, "end"), size) : size;
	Node src = arg(b, n, "src");
	int64_t step = aten_int(b, n, "step");
	if (step < 1)
		return b_error(b, "step is %lld, expected a positive number", (long long)step);
	SymTab *t = b_syms(b);
	Sym extent =
		sym_ceildiv(t, sym_max(t, sym_sub(t, end, start), b_int(b, 0)), b_int(b, step));
	if (!same_but(b, x, src, dim, extent))
		return (Node){0};
	if (sym_is(t, extent, 0)) /* also of a start behind the end */
		return x;
	Shape s = aten_shape(b, src);
	if (sym_uses_kind(t, extent, SYMVAR_UNBACKED) && s.dim[dim].i != extent.i &&
	    !sym_is(t, s.dim[dim], 1)) {
		s.dim[dim] = extent;
		src = aten_reshape(b, src, &s);
		end = sym_max(t, start, end);
	}
	return replace_part(b, x, src, dim, start, end, step);
}
OP(aten_slice_scatter){
	.schema = "aten.slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, "
		  "SymInt? end=None, SymInt step=1) -> Tensor",
	.build = build_slice_scatter,
	.sample = "f32[n=3, 5], f32[n, 2], dim=1, start=1, end=4, step=2; "
		  "f32[4, 2], f32[2, 2], dim=0, start=-2; f32[5, 2], f32[0, 2], start=3, end=1; "
		  "f32[n=5], f32[0], start=-1, end=-3, step=2",
};

static Node build_select_scatter(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	if (aten_rank(b, x) == 0)
		return b_error(b, "select_scatter of a tensor without dims");
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, x));
	Sym index = node_sym(b->g, n, "index");
	int64_t lo, hi;
	sym_range(b_syms(b), index, &lo, &hi);
	if (hi < 0)
		index = sym_add(b_syms(b), index, b_dim(b, x, (int)dim));
	aten_require_le(b, b_int(b, 0), index, "the index is one of the dimension");
	aten_require_le(b, sym_addi(b_syms(b), index, 1), b_dim(b, x, (int)dim),
			"the index is one of the dimension");
	Node src = b_unsqueeze(b, arg(b, n, "src"), (int)dim);
	return replace_part(b, x, src, dim, index, sym_addi(b_syms(b), index, 1), 1);
}
OP(aten_select_scatter){
	.schema = "aten.select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor",
	.build = build_select_scatter,
	.sample = "f32[n=3, 4], f32[n], dim=1, index=2; f32[3, 4], f32[4], dim=0, index=-1",
};

/* ---- splits ---- */

enum { MAX_PARTS = 65536 };

/* Splits into parts of the given extents along dim. */
static Node split_sizes(Build *b, Node x, uint32_t dim, const Sym *size, uint32_t n)
{
	Node *part = arena_calloc(b->g->ir->ctx->scratch, n, sizeof *part);
	Sym at = b_int(b, 0), all = at;
	for (uint32_t k = 0; k < n; k++)
		all = sym_add(b_syms(b), all, size[k]);
	aten_require_equal(b, all, b_dim(b, x, (int)dim),
			   "the sizes of a split are together that of the dimension");
	for (uint32_t k = 0; k < n; k++) {
		Sym end = sym_add(b_syms(b), at, size[k]);
		part[k] = b_slice(b, x, (int)dim, at, end, b_int(b, 1));
		at = end;
	}
	return b_tuple(b, part, n);
}

/* Splits into equal parts of `size`, the last one smaller. */
static Node split_every(Build *b, Node x, uint32_t dim, int64_t size)
{
	int64_t extent;
	if (!x.i || !aten_const(b, b_dim(b, x, (int)dim), &extent))
		return (Node){0};
	int64_t n = size > 0 ? (extent + size - 1) / size : 1;
	n = n < 1 ? 1 : n;
	if (size < 0 || (size == 0 && extent) || n > MAX_PARTS)
		return b_error(b, "split of an extent %lld into parts of %lld", (long long)extent,
			       (long long)size);
	Sym *part = arena_calloc(b->g->ir->ctx->scratch, (size_t)n, sizeof *part);
	for (int64_t k = 0; k < n; k++)
		part[k] = b_int(b, k + 1 < n ? size : extent - k * size);
	return split_sizes(b, x, dim, part, (uint32_t)n);
}

/* Splits a symbolic extent into as many parts as the file says the node has results. */
static Node split_symbolic(Build *b, Node n, Node x, uint32_t dim, Sym size)
{
	const Type *t = node_type_id(b->g, n).i ? node_type(b->g, n) : NULL;
	if (!t || t->dtype != DT_none || t->n == 0)
		return b_error(b, "split of symbolic extent %s",
			       sym_str(b_syms(b), b_dim(b, x, (int)dim)));
	uint32_t count = t->n;
	Sym *part = arena_calloc(b->g->ir->ctx->scratch, count, sizeof *part);
	Sym rest = b_dim(b, x, (int)dim);
	for (uint32_t k = 0; k + 1 < count; k++) {
		part[k] = size;
		rest = sym_sub(b_syms(b), rest, size);
	}
	part[count - 1] = rest;
	aten_require_le(b, b_int(b, 0), rest, "number of parts of a split");
	aten_require_le(b, rest, size, "number of parts of a split");
	return split_sizes(b, x, dim, part, count);
}

static Node build_split(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	if (aten_rank(b, x) == 0)
		return b_error(b, "split of a tensor without dims");
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, x));
	Sym size = node_sym(b->g, n, "split_size");
	int64_t v;
	if (sym_is_const(b_syms(b), b_dim(b, x, (int)dim), NULL) &&
	    sym_is_const(b_syms(b), size, &v))
		return split_every(b, x, dim, v);
	return split_symbolic(b, n, x, dim, size);
}

static Node build_split_with_sizes(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t len;
	const Sym *size = node_ints(b->g, n, "split_sizes", &len);
	if (aten_rank(b, x) == 0)
		return b_error(b, "split of a tensor without dims");
	return split_sizes(b, x, b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, x)), size,
			   len);
}

static Node build_split_sizes(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t len;
	const Sym *size = node_ints(b->g, n, "split_size", &len);
	if (aten_rank(b, x) == 0)
		return b_error(b, "split of a tensor without dims");
	return split_sizes(b, x, b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, x)), size,
			   len);
}

static Node build_chunk(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	if (aten_rank(b, x) == 0)
		return b_error(b, "chunk of a tensor without dims");
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, x));
	int64_t chunks = aten_int(b, n, "chunks"), extent;
	Sym size = b_dim(b, x, (int)dim);
	if (chunks < 1)
		return b_error(b, "%lld chunks, expected at least 1", (long long)chunks);
	if (!sym_is_const(b_syms(b), size, &extent))
		return split_symbolic(b, n, x, dim, sym_ceildiv(b_syms(b), size, b_int(b, chunks)));
	if (extent)
		return split_every(b, x, dim, (extent + chunks - 1) / chunks);
	if (chunks > MAX_PARTS)
		return b_error(b, "%lld chunks of nothing", (long long)chunks);
	Sym *part = arena_calloc(b->g->ir->ctx->scratch, (size_t)chunks, sizeof *part);
	for (int64_t k = 0; k < chunks; k++)
		part[k] = size;
	return split_sizes(b, x, dim, part, (uint32_t)chunks);
}
OP(aten_split_Tensor){
	.schema = "aten.split.Tensor(Tensor(a) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
	.view = VIEW_PIECES,
	.build = build_split,
	.sample = "f32[n=3, 5], split_size=2, dim=1; f32[4, n=3], split_size=2; "
		  "f32[3], split_size=4",
	.overloads = (const Overload[]){
		{.schema = "aten.split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> "
			   "Tensor[]",
		 .aliases = "aten.unsafe_split.Tensor"},
		{.schema = "aten.split_with_sizes(Tensor(a) self, SymInt[] split_sizes, int dim=0) "
			   "-> Tensor(a)[]",
		 .build = build_split_with_sizes,
		 .sample = "f32[n=3, 5], split_sizes=[1, 0, 4], dim=1; f32[4], split_sizes=[3, 1]"},
		{.schema = "aten.split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int "
			   "dim=0) -> Tensor[]",
		 .aliases = "aten.unsafe_split_with_sizes",
		 .build = build_split_with_sizes,
		 .sample = "f32[n=3, 5], split_sizes=[1, 0, 4], dim=1; f32[4], split_sizes=[3, 1]"},
		{.schema = "aten.split.sizes(Tensor(a) self, SymInt[] split_size, int dim=0) -> "
			   "Tensor(a)[]",
		 .build = build_split_sizes,
		 .sample = "f32[n=3, 5], split_size=[1, 0, 4], dim=1; f32[4], split_size=[3, 1]"},
		{.schema = "aten.chunk(Tensor(a) self, int chunks, int dim=0) -> Tensor(a)[]",
		 .build = build_chunk,
		 .sample = "f32[n=3, 5], chunks=2, dim=1; f32[7], chunks=3; f32[4], chunks=3"},
		{.schema = "aten.unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]",
		 .build = build_chunk,
		 .sample = "f32[n=3, 5], chunks=2, dim=1; f32[7], chunks=3; f32[4], chunks=3"},
	},
};

static Node build_tensor_split(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	int64_t sections = aten_int(b, n, "sections");
	if (aten_rank(b, x) == 0)
		return b_error(b, "tensor_split of a tensor without dims");
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, x));
	if (sections < 1 || sections > MAX_PARTS)
		return b_error(b, "%lld sections", (long long)sections);
	SymTab *t = b_syms(b);
	Sym size = b_dim(b, x, (int)dim), each = sym_divi(t, size, sections),
	    rest = sym_modi(t, size, sections), from = b_int(b, 0);
	Node *part = arena_calloc(b->g->ir->ctx->scratch, (size_t)sections, sizeof *part);
	for (int64_t k = 1; k <= sections; k++) { /* the first of them have one more */
		Sym to = k == sections
				 ? size
				 : sym_add(t, sym_muli(t, each, k), sym_min(t, b_int(b, k), rest));
		part[k - 1] = b_slice(b, x, (int)dim, from, to, b_int(b, 1));
		from = to;
	}
	return b_tuple(b, part, (uint32_t)sections);
}

static Node build_tensor_split_indices(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t len;
	const Sym *at = node_ints(b->g, n, "indices", &len);
	if (aten_rank(b, x) == 0)
		return b_error(b, "tensor_split of a tensor without dims");
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, x));
	Node *part = arena_calloc(b->g->ir->ctx->scratch, len + 1, sizeof *part);
	Sym size = b_dim(b, x, (int)dim), from = b_int(b, 0);
	for (uint32_t k = 0; k <= len; k++) {
		Sym to = k < len ? bound(b, at[k], size) : size;
		part[k] = b_slice(b, x, (int)dim, from, sym_max(b_syms(b), from, to), b_int(b, 1));
		from = to;
	}
	return b_tuple(b, part, len + 1);
}
OP(aten_tensor_split_sections){
	.schema = "aten.tensor_split.sections(Tensor(a) self, SymInt sections, int dim=0) -> "
		  "Tensor(a)[]",
	.view = VIEW_OTHER,
	.build = build_tensor_split,
	.sample = "f32[n=3, 5], sections=2, dim=1; f32[n=7], sections=3",
	.overloads = (const Overload[]){
		{.schema = "aten.tensor_split.indices(Tensor(a) self, SymInt[] indices, int dim=0) "
			   "-> Tensor(a)[]",
		 .build = build_tensor_split_indices,
		 .sample = "f32[n=3, 5], indices=[1, 3], dim=1; f32[5], indices=[2, -1]"},
	},
};

static Node build_unbind(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	int64_t extent;
	if (aten_rank(b, x) == 0)
		return b_error(b, "unbind of a tensor without dims");
	int dim = (int)b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, x));
	if (!aten_const(b, b_dim(b, x, dim), &extent))
		return (Node){0};
	if (extent > MAX_PARTS)
		return b_error(b, "unbind of an extent %lld", (long long)extent);
	Node *part = arena_calloc(b->g->ir->ctx->scratch, (size_t)extent, sizeof *part);
	for (int64_t k = 0; k < extent; k++)
		part[k] = b_select_dim(b, x, dim, b_int(b, k));
	return b_tuple(b, part, (uint32_t)extent);
}
OP(aten_unbind_int){
	.schema = "aten.unbind.int(Tensor(a) self, int dim=0) -> Tensor(a)[]",
	.view = VIEW_OTHER,
	.build = build_unbind,
	.sample = "f32[3, n=4]; f32[n=4, 3], dim=-1",
	.overloads = (const Overload[]){
		{.schema = "aten.unbind_copy.int(Tensor self, int dim=0) -> Tensor[]"},
	},
};

/* ---- joins ---- */

/* Returns the operands of a Tensor[] in their common dtype; legacy empty [0] tensors of another
 * rank left out. */
static Node *joined(Build *b, Node n, uint32_t *count, bool skip_empty)
{
	uint32_t first, len = node_args(b->g, n, "tensors", &first), kept = 0, rank = 0;
	Node *x = arena_calloc(b->g->ir->ctx->scratch, len, sizeof *x);
	DType d = DT_none;
	for (uint32_t k = 0; k < len; k++) {
		Node y = node_in(b->g, n, first + k);
		d = d == DT_none ? aten_dtype(b, y) : dtype_promote(d, aten_dtype(b, y));
		rank = aten_rank(b, y) > rank ? aten_rank(b, y) : rank;
	}
	for (uint32_t k = 0; k < len; k++) {
		Node y = node_in(b->g, n, first + k);
		bool empty =
			aten_rank(b, y) == 1 && rank != 1 && sym_is(b_syms(b), b_dim(b, y, 0), 0);
		if (!(skip_empty && empty))
			x[kept++] = b_convert(b, y, d);
	}
	*count = kept;
	if (kept == 0)
		b_error(b, "an empty list of tensors");
	return x;
}

static Node build_cat(Build *b, Node n)
{
	uint32_t count;
	Node *x = joined(b, n, &count, true);
	if (!count)
		return (Node){0};
	int dim = (int)b_wrap_dim(b, aten_int(b, n, "dim"), aten_rank(b, x[0]));
	return b_concat(b, x, count, dim);
}
OP(aten_cat){
	.schema = "aten.cat(Tensor[] tensors, int dim=0) -> Tensor",
	.autocast = AUTOCAST_WIDEST,
	.aliases = "aten.concat aten.concatenate",
	.build = build_cat,
	.sample = "[f32[n=2, 3], f32[n, 1], f32[n, 2]], dim=1; [f32[2], f32[3], f32[0]]; "
		  "[i32[2] in -9..9, f32[2]]",
};

static Node build_stack(Build *b, Node n)
{
	uint32_t count;
	Node *x = joined(b, n, &count, false);
	if (!count)
		return (Node){0};
	return aten_stack(b, x, count,
			  b_wrap_dim(b, aten_int(b, n, "dim"), aten_rank(b, x[0]) + 1));
}

static Node build_hstack(Build *b, Node n)
{
	uint32_t count;
	Node *x = joined(b, n, &count, false);
	for (uint32_t k = 0; k < count; k++)
		if (aten_rank(b, x[k]) == 0)
			x[k] = b_unsqueeze(b, x[k], 0);
	return count ? b_concat(b, x, count, aten_rank(b, x[0]) > 1 ? 1 : 0) : (Node){0};
}

static Node build_vstack(Build *b, Node n)
{
	uint32_t count;
	Node *x = joined(b, n, &count, false);
	for (uint32_t k = 0; k < count; k++)
		while (x[k].i && aten_rank(b, x[k]) < 2)
			x[k] = b_unsqueeze(b, x[k], 0);
	return count ? b_concat(b, x, count, 0) : (Node){0};
}

static Node build_column_stack(Build *b, Node n)
{
	uint32_t count;
	Node *x = joined(b, n, &count, false);
	for (uint32_t k = 0; k < count; k++)
		while (x[k].i && aten_rank(b, x[k]) < 2)
			x[k] = b_unsqueeze(b, x[k], -1);
	return count ? b_concat(b, x, count, 1) : (Node){0};
}

static Node build_dstack(Build *b, Node n)
{
	uint32_t count;
	Node *x = joined(b, n, &count, false);
	for (uint32_t k = 0; k < count; k++) {
		while (x[k].i && aten_rank(b, x[k]) < 2)
			x[k] = b_unsqueeze(b, x[k], 0);
		if (aten_rank(b, x[k]) == 2)
			x[k] = b_unsqueeze(b, x[k], 2);
	}
	return count ? b_concat(b, x, count, 2) : (Node){0};
}
OP(aten_stack){
	.schema = "aten.stack(Tensor[] tensors, int dim=0) -> Tensor",
	.autocast = AUTOCAST_WIDEST,
	.build = build_stack,
	.aliases = "aten._stack",
	.sample = "[f32[n=2, 3], f32[n, 3]], dim=1; [f32[3], f32[3], f32[3]]; "
		  "[f32[2, 3], f32[2, 3]], dim=-1",
	.overloads = (const Overload[]){
		{.schema = "aten.hstack(Tensor[] tensors) -> Tensor",
		 .build = build_hstack,
		 .sample = "[f32[n=2, 3], f32[n, 1]]; [f32[2], f32[3]]"},
		{.schema = "aten.vstack(Tensor[] tensors) -> Tensor",
		 .aliases = "aten.row_stack",
		 .build = build_vstack,
		 .sample = "[f32[2, n=3], f32[1, n]]; [f32[3], f32[3]]"},
		{.schema = "aten.column_stack(Tensor[] tensors) -> Tensor",
		 .build = build_column_stack,
		 .sample = "[f32[n=2, 3], f32[n]]"},
		{.schema = "aten.dstack(Tensor[] tensors) -> Tensor",
		 .build = build_dstack,
		 .sample = "[f32[n=2, 3], f32[n, 3]]; [f32[3], f32[3]]"},
	},
};

static Node build_roll(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	SymTab *t = b_syms(b);
	uint32_t nshift, ndim;
	const Sym *shift = node_ints(b->g, n, "shifts", &nshift);
	const Sym *dim = node_ints(b->g, n, "dims", &ndim);
	Shape s = aten_shape(b, x);
	if (!x.i || (ndim ? ndim != nshift : nshift != 1))
		return b_error(b, "roll by %u shifts along %u dims", nshift, ndim);
	if (s.rank == 0)
		return x;
	if (ndim == 0)
		x = b_ravel(b, x);
	for (uint32_t k = 0; k < nshift; k++) {
		int64_t d = 0;
		if (ndim && !aten_const(b, dim[k], &d))
			return (Node){0};
		int at = (int)b_wrap_dim(b, d, aten_rank(b, x));
		Sym size = b_dim(b, x, at);
		if (sym_is(t, size, 0))
			continue;
		Sym cut = sym_sub(t, size, sym_mod(t, shift[k], sym_max(t, size, b_int(b, 1))));
		Node low = b_slice(b, x, at, cut, size, b_int(b, 1));
		Node high = b_slice(b, x, at, b_int(b, 0), cut, b_int(b, 1));
		x = b_concat(b, (Node[]){low, high}, 2, at);
	}
	return ndim ? x : aten_reshape(b, x, &s);
}
OP(aten_roll){
	.schema = "aten.roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
	.build = build_roll,
	.sample = "f32[n=3, 4], shifts=[1], dims=[1]; f32[n=3, 2], shifts=[-1], dims=[0]; "
		  "f32[3, 4], shifts=[-1, 2], dims=[0, 1]; f32[3, 4], shifts=[5]",
};

/* ---- padding ---- */

/* Reads pad lists (low, high) per dim from the last one backwards. */
static bool pad_lists(Build *b, Node n, Node x, Sym *low, Sym *high, uint32_t *ndim)
{
	uint32_t len, rank = aten_rank(b, x);
	const char *name = op_arg_index(node_op(b->g, n), "pad") >= 0 ? "pad" : "padding";
	const Sym *pad = node_ints(b->g, n, name, &len);
	uint32_t want = op_schema(node_op(b->g, n))->arg[op_arg_index(node_op(b->g, n), name)].size;
	if (!x.i || len % 2 || len / 2 > rank || (want && len != want)) {
		b_error(b, "%u pads for an operand of rank %u", len, rank);
		return false;
	}
	for (uint32_t k = 0; k < rank; k++)
		low[k] = high[k] = b_int(b, 0);
	for (uint32_t k = 0; k < len / 2; k++) {
		low[rank - 1 - k] = pad[2 * k];
		high[rank - 1 - k] = pad[2 * k + 1];
	}
	*ndim = len / 2;
	return true;
}

static Node pad_constant(Build *b, Node n, Node x, Node value)
{
	Sym low[MAX_RANK], high[MAX_RANK];
	uint32_t ndim;
	if (!pad_lists(b, n, x, low, high, &ndim))
		return (Node){0};
	return b_pad(b, x, low, high, value);
}

/* Finds where element i - low of a dim lies that is cropped where padding is negative, and then
 * repeats. */
static Node circular_index(Build *b, Node i, Sym size, Sym low, Sym high)
{
	SymTab *t = b_syms(b);
	Sym zero = b_int(b, 0), first = sym_max(t, sym_muli(t, low, -1), zero),
	    left = sym_max(t, low, zero), right = sym_max(t, high, zero);
	Sym period = sym_sub(t, sym_add(t, size, sym_min(t, high, zero)), first);
	aten_require_le(b, left, period, "circular padding wraps around once at most");
	aten_require_le(b, right, period, "circular padding wraps around once at most");
	if (sym_is(t, left, 0) && sym_is(t, right, 0))
		return i;
	Node start = aten_size(b, first, DT_i64),
	     by = aten_size(b, sym_max(t, period, b_int(b, 1)), DT_i64);
	return b_bin(b, OP_add, b_bin(b, OP_remainder, b_bin(b, OP_sub, i, start), by), start);
}

/* Returns what stands ahead of (or behind) the elements of a dim. */
static Node pad_border(Build *b, Node x, uint32_t d, Sym n, char mode, bool ahead)
{
	SymTab *t = b_syms(b);
	const Sym size = b_dim(b, x, (int)d), one = b_int(b, 1), last = sym_sub(t, size, one);
	Sym from = b_int(b, 0), to = n;
	if (mode == 'c' && ahead) {
		from = sym_sub(t, size, n);
		to = size;
	} else if (mode == 'f') {
		from = ahead ? one : sym_sub(t, last, n);
		to = sym_add(t, from, n);
	} else if (mode == 'p') {
		from = ahead ? from : last;
		to = sym_add(t, from, one);
	}
	Node y = b_slice(b, x, (int)d, from, to, one);
	if (mode == 'f')
		return b_reverse(b, y, (int)d);
	if (mode == 'c' || sym_is(t, n, 1))
		return y;
	Shape s = aten_shape(b, x);
	s.dim[d] = n;
	return aten_expand_shape(b, y, &s);
}

/* Tells whether padding, of which all sizes are known to have what they copy, is the elements
 * between two borders, which move as whole rows where an index vector would be asked for each
 * element. */
static bool pads_by_pieces(Build *b, Sym size, Sym low, Sym high, char mode)
{
	SymTab *t = b_syms(b);
	const Sym zero = b_int(b, 0),
		  need = mode == 'p' ? b_int(b, 1)
				     : sym_addi(t, sym_max(t, low, high), mode == 'f');
	return sym_le(t, zero, low) == YES && sym_le(t, zero, high) == YES &&
	       sym_le(t, need, size) == YES;
}

static Node pad_pieces(Build *b, Node x, uint32_t d, Sym low, Sym high, char mode)
{
	Node part[3];
	uint32_t n = 0;
	if (!sym_is(b_syms(b), low, 0))
		part[n++] = pad_border(b, x, d, low, mode, true);
	part[n++] = x;
	if (!sym_is(b_syms(b), high, 0))
		part[n++] = pad_border(b, x, d, high, mode, false);
	return b_concat(b, part, n, (int)d);
}

/* Pads by other elements of the same dim: in pieces, or gather with an index vector. */
static Node pad_gather(Build *b, Node n, Node x, const char *mode)
{
	SymTab *t = b_syms(b);
	Sym low[MAX_RANK], high[MAX_RANK];
	uint32_t ndim, rank = aten_rank(b, x);
	if (!pad_lists(b, n, x, low, high, &ndim))
		return (Node){0};
	if (mode[0] == 'r') /* what is not the batch; circular padding demands room below */
		aten_require_elements(b, x, aten_dims_from(b, x, rank > ndim ? rank - ndim - 1 : 0),
				      "what is padded by itself has elements");
	for (uint32_t d = rank - ndim; d < rank; d++) {
		if (sym_is(t, low[d], 0) && sym_is(t, high[d], 0))
			continue;
		Sym size = b_dim(b, x, (int)d);
		const char kind = mode[0] == 'c' ? 'c' : mode[2]; /* c, f, p */
		if (pads_by_pieces(b, size, low[d], high[d], kind)) {
			x = pad_pieces(b, x, d, low[d], high[d], kind);
			continue;
		}
		Node i = b_iota(b, DT_i64, sym_add(t, size, sym_add(t, low[d], high[d])));
		i = b_bin(b, OP_sub, i, aten_size(b, low[d], DT_i64));
		Node last = aten_size(b, sym_addi(t, size, -1), DT_i64);
		if (mode[0] == 'c') { /* circular */
			i = circular_index(b, i, size, low[d], high[d]);
		} else if (mode[2] == 'f') { /* reflect */
			Sym most = sym_max(t, low[d], high[d]);
			aten_require_le(b, sym_addi(t, most, 1), sym_max(t, size, b_int(b, 1)),
					"padding by reflection is less than the size");
			i = b_un(b, OP_abs, i);
			Node back = b_un(b, OP_abs, b_bin(b, OP_sub, last, i));
			i = b_bin(b, OP_sub, last, back);
		}
		x = aten_take_dim(b, x, d, i, "clamp");
	}
	return x;
}

static Node build_pad(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	if (aten_is(b, n, "mode", "constant")) {
		Attr v = attr_float(aten_has(b, n, "value") ? node_float(b->g, n, "value") : 0);
		return pad_constant(b, n, x, aten_scalar_as(b, &v, aten_dtype(b, x)));
	}
	const char *mode = node_str(b->g, n, "mode");
	static const char *const known[] = {"reflect", "replicate", "circular"};
	for (uint32_t k = 0; k < 3; k++)
		if (aten_is(b, n, "mode", known[k]))
			return pad_gather(b, n, x, known[k]);
	return b_error(b, "unknown padding mode %s", mode);
}

static Node build_circular_pad(Build *b, Node n)
{
	return pad_gather(b, n, arg(b, n, "self"), "circular");
}

/* Reads the mode, a number: reflect, replicate, circular, constant. */
static Node build_pad_enum(Build *b, Node n)
{
	static const char *const known[] = {"reflect", "replicate", "circular"};
	Node x = arg(b, n, "self");
	int64_t mode = aten_int(b, n, "mode");
	if (mode < 0 || mode > 3)
		return b_error(b, "unknown padding mode %lld", (long long)mode);
	double value = aten_has(b, n, "value") ? node_float(b->g, n, "value") : 0;
	return mode < 3 ? pad_gather(b, n, x, known[mode])
			: pad_constant(b, n, x, b_scalar(b, aten_dtype(b, x), value));
}

static Node build_constant_pad(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	return pad_constant(b, n, x,
			    aten_scalar_as(b, node_attr(b->g, n, "value"), aten_dtype(b, x)));
}

static Node build_reflection_pad(Build *b, Node n)
{
	return pad_gather(b, n, arg(b, n, "self"), "reflect");
}
static Node build_replication_pad(Build *b, Node n)
{
	return pad_gather(b, n, arg(b, n, "self"), "replicate");
}
OP(aten_pad){
	.schema = "aten.pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) "
		  "-> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.build = build_pad,
	.sample = "f32[n=2, 3, 4], pad=[1, 2, 0, 1], value=0.5; "
		  "f32[n=2, 3, 4], pad=[1, 2], mode=\"reflect\"; f32[1, 2, 3, 4], "
		  "pad=[1, 2, 2, 0], mode=\"circular\"; "
		  "f32[1, n=5], pad=[-2, 3], mode=\"circular\"; f32[1, 2, 5, 6], "
		  "pad=[2, -3, -1, -1], mode=\"circular\"; "
		  "f32[n=2, 3, 4], pad=[3, 1], mode=\"replicate\"; f32[3, 4], pad=[-1, 1, 1, -1]",
	.overloads = (const Overload[]){
		{.schema = "aten.constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> "
			   "Tensor",
		 .build = build_constant_pad,
		 .sample = "f32[n=3, 4], pad=[1, 2]; f32[3, 4], pad=[-1, 1, 2, -1], value=1.5; "
			   "c64[n=3], pad=[1, 2], value=complex(1, -2)"},
		{.schema = "aten._pad_circular(Tensor self, SymInt[] pad) -> Tensor",
		 .build = build_circular_pad,
		 .sample = "f32[1, n=2, 3, 4], pad=[1, 2, 2, 0]"},
		{.schema = "aten._pad_enum(Tensor self, SymInt[] pad, int mode, float? value=None) "
			   "-> Tensor",
		 .build = build_pad_enum,
		 .sample = "f32[n=3, 4], pad=[1, 2], mode=3, value=0.5; "
			   "f32[n=2, 3, 4], pad=[1, 2], mode=0; "
			   "f32[n=2, 3, 4], pad=[3, 1], mode=1; f32[1, 2, 3, 4], pad=[1, 2, 2, 0], "
			   "mode=2"},
		{.schema = "aten.reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor",
		 .build = build_reflection_pad,
		 .sample = "f32[n=2, 2, 4], padding=[2, 1]; f32[2, 4], padding=[3, 0]"},
		{.schema = "aten.reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor",
		 .build = build_reflection_pad,
		 .sample = "f32[n=2, 2, 3, 4], padding=[1, 3, 2, 0]"},
		{.schema = "aten.reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor",
		 .build = build_reflection_pad,
		 .sample = "f32[n=2, 1, 2, 3, 4], padding=[1, 3, 2, 0, 1, 1]"},
		{.schema = "aten.replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor",
		 .build = build_replication_pad,
		 .sample = "f32[n=2, 2, 4], padding=[2, 1]; f32[2, 4], padding=[3, 0]"},
		{.schema = "aten.replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor",
		 .build = build_replication_pad,
		 .sample = "f32[n=2, 2, 3, 4], padding=[1, 3, 2, 0]"},
		{.schema = "aten.replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor",
		 .build = build_replication_pad,
		 .sample = "f32[n=2, 1, 2, 3, 4], padding=[1, 3, 2, 0, 1, 1]"},
	},
};
