/* ATen indexing: gather and scatter. */
#include "ops/aten/priv.h"
#include "ops/prim/data_size.h"
#include "ops/rules/batch.h"

static Node build_embedding(Build *b, Node n)
{
	return aten_take_dim(b, arg(b, n, "weight"), 0, arg(b, n, "indices"), "within");
}

/* Gives rows of padding nothing, and with scale_grad_by_freq a row the mean over its places. */
static bool adjoint_embedding(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	Node index = arg(b, n, "indices"), w = arg(b, n, "weight");
	(void)want;
	Attr attr[] = {attr_none(), attr_none(), attr_sym(b_dim(b, w, 0)),
		       *node_attr(b->g, n, "padding_idx"),
		       *node_attr(b->g, n, "scale_grad_by_freq")};
	g[0] = b_node(b, OP_aten_embedding_dense_backward, (Node[]){ct[0], index}, 2, attr, 5);
	return g[0].i;
}

/* Takes all indices as one list, but for counts of them; a batch of tables is one of more
 * columns. */
static Node batch_embedding(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	Graph *g = b->g;
	if (batched[1] && (batched[0] || node_bool(g, n, "scale_grad_by_freq")))
		return batch_by_scan(b, n, in, batched, size);
	Node w = batched[0] ? batch_merge(b, batch_to(b, in[0], 1), 2) : in[0];
	Shape s = aten_shape(b, in[1]);
	uint32_t rank = s.rank;
	s = shape_insert(s, rank, b_dim(b, w, 1));
	Node y =
		graph_add(g, b->before, node_op(g, n), (Node[]){w, in[1]}, 2, node_data(g, n)->attr,
			  ir_type(g->ir, node_dtype(g, n), s.rank, s.dim), b->loc);
	return batched[0] ? batch_from(b, batch_split(b, y, rank, size, b_dim(b, in[0], 2)), rank)
			  : y;
}
OP(aten_embedding){
	.schema = "aten.embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool "
		  "scale_grad_by_freq=False, bool sparse=False) -> Tensor",
	.build = build_embedding,
	.adjoint = adjoint_embedding,
	.jvp = "embedding(t_weight, indices)", /* PyTorch's tangents know nothing of padding */
	.batch = batch_embedding,
	.sample = "f32[5, 3], i64[n=2, 4] of 0 4 1 1 3 2 0 4; "
		  "f32[5, 3], i32[4] of 0 4 1 1, padding_idx=1",
};

static Node build_gather(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), aten_rank(b, x));
	return aten_gather_dim(b, x, dim, arg(b, n, "index"));
}

static Node build_index_select(Build *b, Node n)
{
	Node x = arg(b, n, "self"), index = arg(b, n, "index");
	if (aten_rank(b, x) == 0)
		return x;
	if (aten_rank(b, index) == 0)
		index = b_unsqueeze(b, index, 0);
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, x));
	return aten_take_dim(b, x, dim, index, "within");
}
OP(aten_index_select){
	.schema = "aten.index_select(Tensor self, int dim, Tensor index) -> Tensor",
	.build = build_index_select,
	.sample = "f32[n=3, 4], dim=1, i64[5] of 0 3 3 1 2; f32[4], dim=0, i64[] of 2; "
		  "i32[4, 2], dim=-2, i32[2] of 3 0",
};

static Node build_take(Build *b, Node n)
{
	Node x = b_ravel(b, arg(b, n, "self"));
	return aten_take_dim(b, x, 0, arg(b, n, "index"), "check");
}
OP(aten_take){
	.schema = "aten.take(Tensor self, Tensor index) -> Tensor",
	.build = build_take,
	.sample = "f32[n=3, 4], i64[2, 3] of 0 11 -1 5 7 -12",
};

/* Counts negative indices from the end. */
static Node from_end(Build *b, Node index, Sym size)
{
	index = aten_index(b, index);
	return b_select(b, b_bin_scalar(b, OP_lt, index, 0),
			b_bin(b, OP_add, index, aten_size(b, size, DT_i64)), index);
}

static Node build_take_along_dim(Build *b, Node n)
{
	Node x = arg(b, n, "self"), index = arg(b, n, "indices");
	if (!x.i || !index.i)
		return (Node){0};
	if (!aten_has(b, n, "dim")) {
		x = b_ravel(b, x);
		index = b_ravel(b, index);
		return aten_gather_dim(b, x, 0, from_end(b, index, b_dim(b, x, 0)));
	}
	Shape s = aten_shape(b, x), t = aten_shape(b, index), u;
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), s.rank);
	if (s.rank != t.rank)
		return b_error(b, "take_along_dim of ranks %u and %u", s.rank, t.rank);
	Sym extent = s.dim[dim], count = t.dim[dim];
	s.dim[dim] = t.dim[dim] = b_int(b, 1);
	if (!aten_broadcast_shape(b, &s, &t, &u))
		return (Node){0};
	u.dim[dim] = extent;
	x = aten_expand_shape(b, x, &u);
	u.dim[dim] = count;
	return aten_gather_dim(b, x, dim, aten_expand_shape(b, from_end(b, index, extent), &u));
}
OP(aten_gather){
	.schema = "aten.gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> "
		  "Tensor",
	.build = build_gather,
	.sample = "f32[n=3, 4], dim=1, i64[n, 2] of 0 3 2 2 1 0; f32[3, n=4], dim=0, "
		  "i64[2, n] of 0 2 1 1 2 0 0 1",
	.overloads = (const Overload[]){
		{.schema = "aten.take_along_dim(Tensor self, Tensor indices, int? dim=None) -> "
			   "Tensor",
		 .build = build_take_along_dim,
		 .sample = "f32[n=3, 4], i64[n, 2] of 0 3 2 2 1 0, dim=1; "
			   "f32[3, 4], i64[1, 4] of 0 2 1 1, dim=0; "
			   "f32[3, 4], i64[5] of 0 11 3 5 7"},
	},
};

/* ---- x[i, :, j, ...] ---- */

typedef struct {
	uint32_t n, axes[MAX_RANK]; /* indexed dims */
	Node index;                 /* [I..., n] */
	uint32_t rank;              /* of I */
	uint32_t at;                /* where I stands in the result */
} Indexed;

static bool is_mask(const Graph *g, Node i)
{
	return i.i && (node_dtype(g, i) == DT_bool || node_dtype(g, i) == DT_u8);
}

/* Finds the dims of x that indices stand for: a mask covers as many as it has. False after
 * b_error. */
static bool find_axes(Build *b, Node n, Node x, Indexed *out)
{
	uint32_t first, count = node_args(b->g, n, "indices", &first), dim = 0,
			rank = aten_rank(b, x);
	*out = (Indexed){0};
	for (uint32_t k = 0; k < count; k++) {
		Node i = node_in(b->g, n, first + k);
		uint32_t covers = is_mask(b->g, i) ? node_rank(b->g, i) : 1;
		if (!covers || dim + covers > rank) {
			b_error(b, "%u indices for an operand of rank %u", count, rank);
			return false;
		}
		for (uint32_t d = 0; d < covers; d++, dim++)
			if (i.i)
				out->axes[out->n++] = dim;
	}
	bool adjacent = out->n && out->axes[out->n - 1] - out->axes[0] + 1 == out->n;
	out->at = adjacent ? out->axes[0] : 0;
	return x.i;
}

/* Sets the places of a mask's true elements as indices of the dims of x from there on. */
static void expand_mask(Build *b, Node x, uint32_t dim, Node mask, Sym size, Node *index)
{
	Shape s = aten_shape(b, mask);
	for (uint32_t d = 0; d < s.rank; d++)
		aten_require_equal(b, s.dim[d], b_dim(b, x, (int)(dim + d)),
				   "a mask is as large as what it selects from");
	Node place = true_elements(b, aten_truth(b, mask), size, "aten.index").place;
	for (uint32_t d = 0; d < s.rank; d++)
		index[d] = place_along(b, place, &s, d);
}

/* Returns the rank that all indices have when they are broadcast: a mask's places are a vector. */
static uint32_t index_rank(Build *b, Node n)
{
	uint32_t first, count = node_args(b->g, n, "indices", &first), rank = 0;
	for (uint32_t k = 0; k < count; k++) {
		Node i = node_in(b->g, n, first + k);
		uint32_t own = !i.i ? 0 : is_mask(b->g, i) ? 1 : node_rank(b->g, i);
		rank = own > rank ? own : rank;
	}
	return rank;
}

/* Reads Tensor?[] indices: integers broadcast together. reads: the result of n is what they
 * read. False after b_error. */
static bool read_indices(Build *b, Node n, Node x, bool reads, Indexed *out)
{
	uint32_t first, count = node_args(b->g, n, "indices", &first), at = 0;
	Node part[MAX_RANK];
	Shape common = {0};
	Sym size = {0};
	uint32_t last = index_rank(b, n) - 1; /* the dim along which masks select */
	if (!find_axes(b, n, x, out))
		return false;
	for (uint32_t k = 0; k < count; k++) {
		Node i = node_in(b->g, n, first + k);
		if (is_mask(b->g, i)) {
			if (!size.i) /* all of them select equally many */
				size = reads ? data_size(b, n, 0, out->at + last)
					     : data_size_new(b);
			expand_mask(b, x, out->axes[at], i, size, part + at);
			at += node_rank(b->g, i);
		} else if (i.i) {
			part[at++] = aten_index(b, i);
		}
	}
	for (uint32_t k = 0; k < out->n; k++) {
		Shape s = aten_shape(b, part[k]), u = common;
		if (!part[k].i || !aten_broadcast_shape(b, &u, &s, &common))
			return false;
	}
	if (out->n == 0) {
		b_error(b, "no index tensor given");
		return false;
	}
	for (uint32_t k = 0; k < out->n; k++)
		part[k] = aten_expand_shape(b, part[k], &common);
	out->rank = common.rank;
	out->index = aten_stack(b, part, out->n, common.rank);
	return true;
}

/* Moves [I..., rest...] to rest[..at], I, rest[at..], or back. */
static Node place_indices(Build *b, Node x, const Indexed *i, bool back)
{
	uint32_t rank = aten_rank(b, x), perm[MAX_RANK], inverse[MAX_RANK];
	if (!x.i || i->at == 0)
		return x;
	for (uint32_t k = 0; k < rank; k++) {
		perm[k] = k < i->at ? i->rank + k : k < i->at + i->rank ? k - i->at : k;
		inverse[perm[k]] = k;
	}
	return b_permute(b, x, back ? inverse : perm);
}

/* Returns the only index given, when it is a mask; *at is the dim it starts at. */
static Node lone_mask(Build *b, Node n, uint32_t *at)
{
	uint32_t first, count = node_args(b->g, n, "indices", &first);
	Node mask = {0};
	for (uint32_t k = 0; k < count; k++) {
		Node i = node_in(b->g, n, first + k);
		if (!i.i)
			continue;
		if (mask.i || !is_mask(b->g, i))
			return (Node){0};
		mask = i;
		*at = k;
	}
	return mask;
}

/* Takes the dims that the mask covers as one. A mask without dims selects all or nothing. */
static Node select_by_mask(Build *b, Node n, Node x, uint32_t dim, Node mask)
{
	Shape s = aten_shape(b, mask), sx = aten_shape(b, x);
	if (dim + s.rank > sx.rank)
		return b_error(b, "a mask of rank %u for an operand of rank %u", s.rank, sx.rank);
	for (uint32_t d = 0; d < s.rank; d++)
		aten_require_equal(b, s.dim[d], sx.dim[dim + d],
				   "a mask is as large as what it selects from");
	x = s.rank ? aten_flatten(b, x, dim, dim + s.rank - 1) : b_unsqueeze(b, x, (int)dim);
	Node place =
		true_elements(b, aten_truth(b, mask), data_size(b, n, 0, dim), "aten.index").place;
	return aten_take_dim(b, x, dim, place, "promise");
}

static Node build_index(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	Indexed i;
	uint32_t dim;
	Node mask = lone_mask(b, n, &dim);
	if (mask.i && x.i)
		return select_by_mask(b, n, x, dim, mask);
	if (!read_indices(b, n, x, true, &i))
		return (Node){0};
	return place_indices(b, b_gather(b, x, i.index, 0, i.axes, i.n, "check"), &i, false);
}
static bool selects(const Graph *g, Node n)
{
	bool any = false;
	for (uint32_t k = 1; k < node_nin(g, n); k++)
		any |= is_mask(g, node_in(g, n, k));
	return any;
}
OP(aten_index_Tensor){
	.schema = "aten.index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
	.aliases = "aten._unsafe_index.Tensor",
	.build = build_index,
	.has_effect = selects,
	.sample = "f32[n=3, 4], [i64[2, 2] of 0 2 1 0, i64[2] of 3 1]; "
		  "f32[2, n=3, 4], [none, i64[3] of 0 2 2]; f32[2, 3, 4], "
		  "[i64[2] of 1 0, none, i64[2] of 3 -1]; f32[4, 3], [i32[3] of -1 0 2]; "
		  "f32[n=3, 4], [bool[n] of 1 0 1]; f32[2, 3, 4], [none, bool[3, 4] of 0 1 0 0 1]; "
		  "f32[2, 3], [bool[2, 3] of 0]; f32[3, 4], [bool[3] of 1 0 1, i64[2] of 3 0]",
};

static Node build_index_put(Build *b, Node n)
{
	Node x = arg(b, n, "self"), v = arg(b, n, "values");
	Indexed i;
	uint32_t dim;
	Node mask = lone_mask(b, n, &dim);
	if (mask.i)
		return aten_mask_put(b, x, aten_truth(b, mask), dim, v,
				     node_bool(b->g, n, "accumulate"));
	if (!read_indices(b, n, x, false, &i))
		return (Node){0};
	/* The values broadcast to what the same index would read. */
	Shape si = aten_shape(b, i.index), sx = aten_shape(b, x), r = {0};
	uint32_t seen = 0;
	for (uint32_t k = 0; k < i.n; k++)
		seen |= 1u << i.axes[k];
	for (uint32_t k = 0, at = 0; k <= sx.rank; k++) {
		if (at == i.at && r.rank == at)
			for (uint32_t j = 0; j < i.rank; j++)
				r.dim[r.rank++] = si.dim[j];
		if (k < sx.rank && !(seen >> k & 1)) {
			r.dim[r.rank++] = sx.dim[k];
			at++;
		}
	}
	v = aten_expand_shape(b, b_convert(b, v, aten_dtype(b, x)), &r);
	v = place_indices(b, v, &i, true);
	const char *combine = node_bool(b->g, n, "accumulate") ? "add" : "set";
	return b_scatter(b, x, i.index, v, 0, i.axes, i.n, combine);
}
OP(aten_index_put){
	.schema = "aten.index_put(Tensor self, Tensor?[] indices, Tensor values, bool "
		  "accumulate=False) -> Tensor",
	.autocast_gpu = AUTOCAST_WIDEST,
	.aliases = "aten._unsafe_index_put",
	.build = build_index_put,
	.sample = "f32[n=3, 4], [i64[3] of 0 2 1, i64[3] of 3 1 -4], f32[3]; "
		  "f32[n=3, 4], [i64[2] of 2 0], f32[2, 4], accumulate=true; "
		  "f32[3, 4], [none, i64[4] of 1 1 3 1], f32[3, 4], accumulate=true; "
		  "f32[3, 4], [bool[3, 4] of 1 0 0 1 0], f32[]; "
		  "f32[n=3, 4], [none, bool[4] of 1 0 1 1], f32[3]; "
		  "f32[n=3, 4, 2], [none, bool[4] of 1 0 1 1], f32[n, 3, 1]",
};

/* ---- along one dim ---- */

/* Returns self with x[index[j]] along dim combined with source[j]. */
static Node index_into(Build *b, Node n, Node source, const char *combine, const char *mode)
{
	Node x = arg(b, n, "self"), index = arg(b, n, "index");
	if (!x.i || !index.i || !source.i)
		return (Node){0};
	bool scalar = node_rank(b->g, x) == 0;
	if (scalar)
		x = b_unsqueeze(b, x, 0);
	if (aten_rank(b, source) == 0)
		source = b_unsqueeze(b, source, 0);
	if (node_rank(b->g, index) == 0)
		index = b_unsqueeze(b, index, 0);
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), node_rank(b->g, x));
	index = b_unsqueeze(b, aten_index(b, index), -1);
	source = aten_move_dim(b, b_convert(b, source, aten_dtype(b, x)), dim, 0);
	Node y = b_scatter_as(b, x, index, source, 0, &dim, 1, combine, mode);
	return scalar ? b_squeeze(b, y, 0) : y;
}

static Node build_index_add(Build *b, Node n)
{
	Node s = arg(b, n, "source");
	return index_into(b, n, aten_scaled(b, s, n, "alpha"), "add", "within");
}
static Node build_index_copy(Build *b, Node n)
{
	return index_into(b, n, arg(b, n, "source"), "set", "within");
}
OP(aten_index_add){
	.schema = "aten.index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar "
		  "alpha=1) -> Tensor",
	.build = build_index_add,
	.sample = "f32[n=3, 4], dim=1, i64[3] of 0 3 3, f32[n, 3]; "
		  "f32[3, 2], dim=0, i64[4] of 2 0 2 2, f32[4, 2], alpha=2.5; "
		  "i32[3], dim=0, i64[2] of 2 2, i32[2] in -9..9, alpha=3",
};
OP(aten_index_copy){
	.schema = "aten.index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
	.autocast = AUTOCAST_WIDEST,
	.build = build_index_copy,
	.sample = "f32[n=3, 4], dim=1, i64[2] of 3 0, f32[n, 2]; f32[3, 2], dim=0, i64[2] of 2 0, "
		  "f32[2, 2]",
};

static Node build_index_fill(Build *b, Node n)
{
	Node x = arg(b, n, "self"), index = arg(b, n, "index");
	Node value = aten_scalar_as(b, node_attr(b->g, n, "value"), aten_dtype(b, x));
	Shape s = aten_shape(b, x);
	if (!x.i || !index.i)
		return (Node){0};
	if (s.rank > 0) {
		uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), s.rank);
		s.dim[dim] = type_numel(b->g->ir, node_type_id(b->g, index));
	}
	return index_into(b, n, aten_expand_shape(b, value, &s), "set", "check");
}
/* Selects a value of data, and does not set it: its cotangent is that of each element once,
 * however often an index names it. */
static Node build_index_fill_tensor(Build *b, Node n)
{
	Node x = arg(b, n, "self"), index = arg(b, n, "index"), value = arg(b, n, "value");
	Shape s = aten_shape(b, x);
	if (!x.i || !index.i || !value.i)
		return (Node){0};
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), s.rank);
	Sym size = s.rank ? s.dim[dim] : b_int(b, 1);
	Node rows[] = {b_full(b, DT_bool, 0, 1, &size), index};
	Attr attr[] = {attr_none(), attr_int(b->g->ir, 0), attr_none(), attr_bool(true)};
	Node filled = b_node(b, OP_aten_index_fill_int_Scalar, rows, 2, attr, 4);
	if (s.rank == 0)
		filled = b_squeeze(b, filled, 0);
	for (uint32_t k = dim + 1; k < s.rank; k++)
		filled = b_unsqueeze(b, filled, -1);
	return b_select(b, filled, b_convert(b, value, node_dtype(b->g, x)), x);
}

OP(aten_index_fill_int_Scalar){
	.schema = "aten.index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) "
		  "-> Tensor",
	.build = build_index_fill,
	.sample = "f32[n=3, 4], dim=1, i64[2] of 3 0, value=9.5; "
		  "i32[4], dim=0, i64[1] of -1, value=7; "
		  "c64[4], dim=0, i64[1] of -1, value=complex(0, 7)",
	.overloads = (const Overload[]){
		{.schema = "aten.index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor "
			   "value) -> Tensor",
		 .build = build_index_fill_tensor,
		 .sample = "f32[n=3, 4], dim=1, i64[2] of 3 0, f32[] of 9.5; "
			   "c64[3, n=4], dim=0, i64[3] of 2 0 2, c64[] of 9.5 -2; "
			   "f32[], dim=0, i64[1] of 0, f32[] of 7"},
	},
};

/* Builds aten.scatter: element (.., j, ..) of src goes to (.., index[.., j, ..], ..) along dim. */
static Node scatter_dim(Build *b, Node n, Node src, const char *combine)
{
	Node x = arg(b, n, "self"), index = arg(b, n, "index");
	Places p;
	if (!x.i || !index.i || !src.i)
		return (Node){0};
	bool scalar = node_rank(b->g, x) == 0;
	if (scalar)
		x = b_unsqueeze(b, x, 0);
	if (node_rank(b->g, index) == 0)
		index = b_unsqueeze(b, index, 0);
	if (node_rank(b->g, src) == 0 && scalar)
		src = b_unsqueeze(b, src, 0);
	Shape s = aten_shape(b, index);
	uint32_t rank = aten_rank(b, x), dim = b_wrap_dim(b, aten_int(b, n, "dim"), rank);
	if (!aten_places_along(b, x, index, dim, &p))
		return (Node){0};
	if (aten_rank(b, src) == 0)
		src = aten_expand_shape(b, src, &s);
	for (uint32_t k = 0; k < rank; k++)
		src = b_slice(b, src, (int)k, b_int(b, 0), s.dim[k], b_int(b, 1));
	src = b_convert(b, src, aten_dtype(b, x));
	Node y = aten_scatter_at(b, x, &p, src, combine);
	return scalar ? b_squeeze(b, y, 0) : y;
}

static Node build_scatter(Build *b, Node n)
{
	return scatter_dim(b, n, arg(b, n, "src"), "set");
}
static Node build_scatter_add(Build *b, Node n)
{
	return scatter_dim(b, n, arg(b, n, "src"), "add");
}
static Node scatter_value(Build *b, Node n, const char *combine)
{
	DType d = aten_dtype(b, arg(b, n, "self"));
	return scatter_dim(b, n, aten_scalar_as(b, node_attr(b->g, n, "value"), d), combine);
}
static Node build_scatter_value(Build *b, Node n)
{
	return scatter_value(b, n, "set");
}
static const char *reduction(Build *b, Node n)
{
	aten_check_word(b, n, "reduce", "add multiply");
	return aten_is(b, n, "reduce", "add") ? "add" : "mul";
}
static Node build_scatter_reduce_src(Build *b, Node n)
{
	return scatter_dim(b, n, arg(b, n, "src"), reduction(b, n));
}
static Node build_scatter_reduce_value(Build *b, Node n)
{
	return scatter_value(b, n, reduction(b, n));
}
OP(aten_scatter_src){
	.schema = "aten.scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
	.autocast_gpu = AUTOCAST_WIDEST,
	.build = build_scatter,
	.sample = "f32[n=3, 4], dim=1, i64[n, 2] of 0 3 2 1 1 0, f32[n, 2]; "
		  "f32[3, 4], dim=0, i64[2, 3] of 0 1 2 2 0 1, f32[3, 4]",
	.overloads = (const Overload[]){
		{.schema = "aten.scatter.value(Tensor self, int dim, Tensor index, Scalar value) "
			   "-> Tensor",
		 .build = build_scatter_value,
		 .sample = "f32[n=3, 4], dim=1, i64[n, 2] of 0 3 2 1 1 0, value=9.5"},
		{.schema = "aten.scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, "
			   "str reduce) -> Tensor",
		 .build = build_scatter_reduce_src,
		 .sample = "f32[n=3, 4], dim=1, i64[n, 3] of 0 3 0 1 1 0, f32[n, 3], "
			   "reduce=\"add\"; f32[n=3, 4], dim=1, i64[n, 3] of 0 3 0 1 1 0, "
			   "f32[n, 3], reduce=\"multiply\""},
		{.schema = "aten.scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar "
			   "value, *, str reduce) -> Tensor",
		 .build = build_scatter_reduce_value,
		 .sample = "f32[n=3, 4], dim=1, i64[n, 3] of 0 3 0 1 1 0, value=2.5, "
			   "reduce=\"add\"; f32[n=3, 4], dim=1, i64[n, 3] of 0 3 0 1 1 0, "
			   "value=2.5, reduce=\"multiply\""},
		{.schema = "aten.scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> "
			   "Tensor",
		 .build = build_scatter_add,
		 .sample = "f32[n=3, 4], dim=1, i64[n, 3] of 0 3 0 1 1 0, f32[n, 3]; "
			   "f32[3, 2], dim=0, i64[4, 1] of 2 0 2 1, f32[4, 2]"},
	},
};

/* ---- diagonals ---- */

/* Returns positions along a diagonal: (k + max(0, -offset), k + max(0, offset)). */
static Node diagonal_index(Build *b, Sym rows, Sym cols, int64_t offset, Sym *count)
{
	SymTab *t = b_syms(b);
	int64_t down = offset < 0 ? -offset : 0, right = offset > 0 ? offset : 0;
	*count = sym_min(t, sym_addi(t, rows, -down), sym_addi(t, cols, -right));
	*count = sym_max(t, *count, b_int(b, 0));
	Node k = b_iota(b, DT_i64, *count);
	Node i = down ? b_bin_scalar(b, OP_add, k, (double)down) : k;
	Node j = right ? b_bin_scalar(b, OP_add, k, (double)right) : k;
	return aten_stack(b, (Node[]){i, j}, 2, 1);
}

static Node diagonal(Build *b, Node x, int64_t offset, uint32_t d0, uint32_t d1)
{
	Shape s = aten_shape(b, x);
	uint32_t rank = s.rank;
	Sym count;
	if (!x.i || rank < 2 || d0 == d1)
		return b_error(b, "diagonal of an operand of rank %u", rank);
	x = aten_move_dim(b, x, d0, rank - 1);
	x = aten_move_dim(b, x, d1 > d0 ? d1 - 1 : d1, rank - 1);
	Node index = diagonal_index(b, s.dim[d0], s.dim[d1], offset, &count);
	Node y = b_gather(b, x, index, 0, (uint32_t[]){rank - 2, rank - 1}, 2, "promise");
	return aten_move_dim(b, y, 0, rank - 2);
}

static Node build_diagonal(Build *b, Node n)
{
	Node x = arg(b, n, op_arg_index(node_op(b->g, n), "A") >= 0 ? "A" : "self");
	uint32_t rank = aten_rank(b, x);
	uint32_t d0 = b_wrap_dim(b, aten_int(b, n, "dim1"), rank);
	uint32_t d1 = b_wrap_dim(b, aten_int(b, n, "dim2"), rank);
	return diagonal(b, x, aten_int(b, n, "offset"), d0, d1);
}
OP(aten_diagonal){
	.schema = "aten.diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> "
		  "Tensor(a)",
	.view = VIEW_OTHER,
	.build = build_diagonal,
	.sample = "f32[n=3, 4]; f32[n=3, 4], offset=1; f32[2, 3, 4], offset=-1, dim1=2, dim2=0",
	.overloads = (const Overload[]){
		{.schema = "aten.diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) "
			   "-> Tensor"},
		{.schema = "aten.linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int "
			   "dim2=-1) -> Tensor(a)",
		 .sample = "f32[n=2, 3, 4]; f32[3, 4], offset=-1; f32[2, 3, 4], offset=1, dim1=0, "
			   "dim2=2"},
	},
};

/* Tells what is on the diagonal. Of a matrix that is taller than wide it starts again, a row
 * apart, below: the places whose row and column differ by a multiple of its width + 1. */
static Node on_diagonal(Build *b, const Shape *s, bool wrap)
{
	Node row = aten_iota_dim(b, s, 0, DT_i64), all = {0};
	for (uint32_t k = 1; k < s->rank; k++) {
		Node other = aten_iota_dim(b, s, k, DT_i64), same = b_bin(b, OP_eq, row, other);
		if (wrap && s->rank == 2) {
			Node step = b_from_size(b, sym_addi(b_syms(b), s->dim[1], 1));
			Node apart = b_bin(b, OP_remainder, b_bin(b, OP_sub, row, other), step);
			same = b_bin_scalar(b, OP_eq, apart, 0);
		}
		all = all.i ? b_bin(b, OP_bit_and, all, same) : same;
	}
	return all;
}

static Node build_fill_diagonal(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	Shape s = aten_shape(b, x);
	if (!x.i || s.rank < 2)
		return b_error(b, "an operand of rank %u, expected 2 or more", s.rank);
	for (uint32_t k = 1; k < s.rank && s.rank > 2; k++)
		aten_require_equal(b, s.dim[k], s.dim[0],
				   "a diagonal runs through equal dimensions");
	Node value = aten_scalar_as(b, node_attr(b->g, n, "fill_value"), aten_dtype(b, x));
	return b_select(b, on_diagonal(b, &s, node_bool(b->g, n, "wrap")), value, x);
}
OP(aten_fill_diagonal){
	.schema = "aten.fill_diagonal(Tensor self, Scalar fill_value, bool wrap=False) -> Tensor",
	.doc = "what fill_diagonal_ writes",
	.build = build_fill_diagonal,
	.sample = "f32[n=3, 4], fill_value=1.5; f32[n=5, 3], fill_value=2; "
		  "f32[n=9, 2], fill_value=-1, wrap=true; f32[2, 5], fill_value=7, wrap=true; "
		  "i32[3, 3, 3], fill_value=2.5; f32[4, 3], fill_value=7, wrap=true; "
		  "bool[2, 2] of 0, fill_value=3; c64[2, 2], fill_value=1.5; f32[5, 1], "
		  "fill_value=2, wrap=true",
};

static Node build_trace(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	DType d = aten_dtype(b, x);
	Node y = diagonal(b, x, 0, 0, 1);
	if (y.i && (dtype_is_int(d) || d == DT_bool))
		y = b_convert(b, y, DT_i64);
	return aten_sum(b, y, 1, false);
}
OP(aten_trace){
	.schema = "aten.trace(Tensor self) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_trace,
	.sample = "f32[n=3, 4]; i32[3, 2] in -9..9",
};

/* Puts x[..., k] onto a diagonal of a zero matrix, its dims at d0 and d1. */
static Node embed(Build *b, Node x, int64_t offset, uint32_t d0, uint32_t d1)
{
	SymTab *t = b_syms(b);
	Shape s = aten_shape(b, x);
	if (!x.i || s.rank == 0 || s.rank == MAX_RANK)
		return b_error(b, "cannot place a tensor of rank %u on a diagonal", s.rank);
	Sym side = sym_addi(t, s.dim[s.rank - 1], offset < 0 ? -offset : offset), count;
	Node index = diagonal_index(b, side, side, offset, &count);
	Shape r = s;
	r.dim[s.rank - 1] = side;
	r = shape_insert(r, s.rank, side);
	Node zero = b_full(b, node_dtype(b->g, x), 0, r.rank, r.dim);
	x = aten_move_dim(b, x, s.rank - 1, 0);
	Node y = b_scatter(b, zero, index, x, 0, (uint32_t[]){r.rank - 2, r.rank - 1}, 2, "set");
	/* Rows are now dim rank-2, columns rank-1: put them at d0 and d1. */
	uint32_t perm[MAX_RANK];
	for (uint32_t k = 0, next = 0; k < r.rank; k++)
		perm[k] = k == d0 ? r.rank - 2 : k == d1 ? r.rank - 1 : next++;
	return y.i ? b_permute(b, y, perm) : y;
}

static Node build_diag_embed(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t rank = aten_rank(b, x) + 1;
	uint32_t d0 = b_wrap_dim(b, aten_int(b, n, "dim1"), rank);
	uint32_t d1 = b_wrap_dim(b, aten_int(b, n, "dim2"), rank);
	if (d0 == d1)
		return b_error(b, "diag_embed with equal dims");
	return embed(b, x, aten_int(b, n, "offset"), d0, d1);
}

static Node build_diag(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	int64_t offset = aten_int(b, n, "diagonal");
	return aten_rank(b, x) == 1 ? embed(b, x, offset, 0, 1) : diagonal(b, x, offset, 0, 1);
}
OP(aten_diag){
	.schema = "aten.diag(Tensor self, int diagonal=0) -> Tensor",
	.build = build_diag,
	.sample = "f32[n=3, 4]; f32[n=3], diagonal=1; f32[3, 4], diagonal=-1; f32[3], diagonal=-2",
};

/* Replaces a diagonal of x by src: selected by position from src spread over the rows. */
static Node build_diagonal_scatter(Build *b, Node n)
{
	Node x = arg(b, n, "self"), src = arg(b, n, "src");
	uint32_t rank = aten_rank(b, x);
	if (!x.i || !src.i || rank < 2)
		return b_error(b, "diagonal_scatter of an operand of rank %u", rank);
	uint32_t d0 = b_wrap_dim(b, aten_int(b, n, "dim1"), rank);
	uint32_t d1 = b_wrap_dim(b, aten_int(b, n, "dim2"), rank);
	Shape s = aten_shape(b, x);
	Sym count;
	Node at = diagonal_index(b, s.dim[d0], s.dim[d1], aten_int(b, n, "offset"), &count);
	if (d0 == d1)
		return b_error(b, "diagonal_scatter with equal dims");
	/* src is [.., count]: its last dim first, as the index. */
	src = aten_move_dim(b, b_convert(b, src, node_dtype(b->g, x)), rank - 2, 0);
	bool swap = d0 > d1;
	if (swap)
		at = b_reverse(b, at, 1);
	uint32_t axes[2] = {swap ? d1 : d0, swap ? d0 : d1};
	return b_scatter(b, x, at, src, 0, axes, 2, "set");
}
OP(aten_diagonal_scatter){
	.schema = "aten.diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int "
		  "dim2=1) -> Tensor",
	.build = build_diagonal_scatter,
	.sample = "f32[3, 4], f32[3]; f32[n=2, 3, 3], f32[n, 2], offset=-1, dim1=1, dim2=2",
};

static Node build_diagflat(Build *b, Node n)
{
	Node x = b_ravel(b, arg(b, n, "self"));
	return embed(b, x, aten_int(b, n, "offset"), 0, 1);
}
OP(aten_diag_embed){
	.schema = "aten.diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
	.build = build_diag_embed,
	.sample = "f32[n=2, 3]; f32[2, 3], offset=1; f32[2, 3], offset=-2, dim1=0, dim2=2",
	.overloads = (const Overload[]){
		{.schema = "aten.diagflat(Tensor self, int offset=0) -> Tensor",
		 .build = build_diagflat,
		 .sample = "f32[n=2, 2]; f32[3], offset=-1; f32[3], offset=2"},
	},
};

/* Clamps the index where the mask is false: any is as good, and the result is replaced. */
static Node build_masked_index(Build *b, Node n)
{
	Node x = arg(b, n, "self"), m = aten_truth(b, arg(b, n, "mask"));
	Indexed i;
	if (!read_indices(b, n, x, false, &i))
		return (Node){0};
	Node y = place_indices(b, b_gather(b, x, i.index, 0, i.axes, i.n, "clamp"), &i, false);
	return b_select(b, m, y, aten_scalar_as(b, node_attr(b->g, n, "fill"), aten_dtype(b, x)));
}
OP(aten__unsafe_masked_index){
	.schema = "aten._unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar "
		  "fill) -> Tensor",
	.build = build_masked_index,
	.sample = "f32[n=3, 4], bool[3], [i64[3] of 0 2 1, i64[3] of 3 1 0], fill=7.5; "
		  "c64[n=3, 4], bool[3], [i64[3] of 0 2 1, i64[3] of 3 1 0], "
		  "fill=complex(7.5, -1.25)",
};

/* Adds 0 at a clamped place for masked values. */
static Node build_masked_index_put(Build *b, Node n)
{
	Node x = arg(b, n, "self"), m = aten_truth(b, arg(b, n, "mask")), v = arg(b, n, "values");
	Indexed i;
	if (!read_indices(b, n, x, false, &i) || !v.i)
		return (Node){0};
	Shape sx = aten_shape(b, x);
	Node read = place_indices(b, b_gather(b, x, i.index, 0, i.axes, i.n, "clamp"), &i, false);
	Shape want = aten_shape(b, read);
	v = b_convert(b, v, aten_dtype(b, x));
	v = b_select(b, m, v, aten_like(b, x, 0));
	v = place_indices(b, aten_expand_shape(b, v, &want), &i, true);
	Node part[MAX_RANK];
	for (uint32_t k = 0; k < i.n; k++) {
		Node at = b_select_dim(b, i.index, (int)i.rank, b_int(b, k));
		Node size = aten_size(b, sx.dim[i.axes[k]], DT_i64);
		Node low = b_bin_scalar(b, OP_lt, at, 0);
		at = b_select(b, low, b_bin(b, OP_add, at, size), at);
		at = b_bin_scalar(b, OP_maximum, at, 0);
		part[k] = b_bin(b, OP_minimum, at, b_bin_scalar(b, OP_sub, size, 1));
	}
	return b_scatter(b, x, aten_stack(b, part, i.n, i.rank), v, 0, i.axes, i.n, "add");
}
OP(aten__unsafe_masked_index_put_accumulate){
	.schema = "aten._unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] "
		  "indices, Tensor values) -> Tensor",
	.build = build_masked_index_put,
	.sample = "f32[n=3, 4], bool[4] of 1 0 1 1, [i64[4] of 0 2 1 1, i64[4] of 3 1 0 0], f32[4]",
};
