/* ATen scatters that reduce, mask or go through windows. */
#include "ops/aten/priv.h"

#include <math.h>
#include <string.h>

/* ---- scatter_reduce, index_reduce ---- */

/* Returns what a reduction starts from, 0-d. */
static Node identity(Build *b, Node x, const char *how)
{
	DType d = aten_dtype(b, x);
	bool max = strcmp(how, "amax") == 0, min = strcmp(how, "amin") == 0;
	if (max || min) {
		if (dtype_is_float(d))
			return b_scalar(b, d, max ? -(double)INFINITY : (double)INFINITY);
		if (d == DT_bool || !dtype_is_signed(d))
			return b_full_int(b, d, max ? 0 : d == DT_bool ? 1 : -1, 0, NULL);
		int64_t lowest = INT64_MIN >> (64 - 8 * dtype_size(d));
		return b_full_int(b, d, max ? lowest : ~lowest, 0, NULL);
	}
	return aten_like(b, x, strcmp(how, "prod") == 0 ? 1 : 0);
}

static const char *combine_of(const char *how)
{
	return strcmp(how, "amax") == 0   ? "max"
	       : strcmp(how, "amin") == 0 ? "min"
	       : strcmp(how, "prod") == 0 ? "mul"
					  : "add";
}

/* Combines values into the places of x; with `include` x's own elements count too. */
static Node reduce_into(Build *b, Node x, const Places *p, Node v, const char *how, bool include)
{
	Shape s = aten_shape(b, x), sv = aten_shape(b, v);
	if (!x.i || !v.i)
		return (Node){0};
	static const char *const known[] = {"sum", "prod", "mean", "amax", "amin"};
	uint32_t word = 0;
	while (word < 5 && strcmp(how, known[word]) != 0)
		word++;
	if (word == 5)
		return b_error(b, "reduce is \"%s\", expected one of: sum prod mean amax amin",
			       how);
	bool mean = strcmp(how, "mean") == 0;
	Node base = x, start = identity(b, x, how);
	if (!include)
		base = aten_scatter_at(b, x, p, aten_expand_shape(b, start, &sv), "set");
	Node y = aten_scatter_at(b, base, p, v, combine_of(how));
	if (!mean)
		return y;
	Node one = b_full(b, node_dtype(b->g, x), 1, sv.rank, sv.dim);
	Node count = aten_scatter_at(b, b_full(b, node_dtype(b->g, x), include, s.rank, s.dim), p,
				     one, "add");
	count = b_bin_scalar(b, OP_maximum, count, 1);
	return b_bin(b, dtype_is_float(node_dtype(b->g, x)) ? OP_div : OP_floordiv, y, count);
}

/* The operands of a reduction into `self` along dim; those without dimensions have one of 1. */
typedef struct {
	Node self, index, values;
	uint32_t dim;
	bool scalar; /* self had none */
} Reduced;

static Node with_dim(Build *b, Node x)
{
	return x.i && aten_rank(b, x) == 0 ? b_unsqueeze(b, x, 0) : x;
}

/* Reads the operands. Returns false where one is missing. */
static bool reduced(Build *b, Node n, const char *values, Reduced *r)
{
	Node x = arg(b, n, "self");
	*r = (Reduced){.self = with_dim(b, x),
		       .index = with_dim(b, arg(b, n, "index")),
		       .values = with_dim(b, arg(b, n, values)),
		       .scalar = x.i && aten_rank(b, x) == 0};
	if (!r->self.i || !r->index.i || !r->values.i)
		return false;
	r->dim = b_wrap_dim(b, aten_int(b, n, "dim"), aten_rank(b, r->self));
	return true;
}

static Node reduce_places(Build *b, Node n, const Reduced *r, const Places *p, Node values)
{
	Node y = reduce_into(b, r->self, p, values, node_str(b->g, n, "reduce"),
			     node_bool(b->g, n, "include_self"));
	return r->scalar ? b_squeeze(b, y, 0) : y;
}

static Node build_scatter_reduce(Build *b, Node n)
{
	Reduced r;
	Places p;
	if (!reduced(b, n, "src", &r) || !aten_places_along(b, r.self, r.index, r.dim, &p))
		return (Node){0};
	Shape s = aten_shape(b, r.index);
	for (uint32_t k = 0; k < s.rank; k++)
		r.values = b_slice(b, r.values, (int)k, b_int(b, 0), s.dim[k], b_int(b, 1));
	return reduce_places(b, n, &r, &p, r.values);
}
OP(aten_scatter_reduce_two){
	.schema = "aten.scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str "
		  "reduce, *, bool include_self=True) -> Tensor",
	.build = build_scatter_reduce,
	.sample = "f32[n=3, 4], dim=1, i64[n, 3] of 0 3 0 1 1 0, f32[n, 3], reduce=\"sum\"; "
		  "f32[n=3, 4], dim=1, i64[n, 3] of 0 3 0 1 1 0, f32[n, 3], reduce=\"prod\"; "
		  "f32[n=3, 4], dim=1, i64[n, 3] of 0 3 0 1 1 0, f32[n, 3], reduce=\"mean\"; "
		  "f32[n=3, 4], dim=1, i64[n, 3] of 0 3 0 1 1 0, f32[n, 3], reduce=\"amax\"; "
		  "f32[n=3, 4], dim=1, i64[n, 3] of 0 3 0 1 1 0, f32[n, 3], reduce=\"amin\"; "
		  "f32[3, 2], dim=0, i64[4, 2] of 2 0 2 1, f32[4, 2], reduce=\"sum\", "
		  "include_self=false; f32[3, 2], dim=0, i64[4, 2] of 2 0 2 1, f32[4, 2], "
		  "reduce=\"prod\", include_self=false; "
		  "f32[3, 2], dim=0, i64[4, 2] of 2 0 2 1, f32[4, 2], reduce=\"mean\", "
		  "include_self=false; f32[3, 2], dim=0, i64[4, 2] of 2 0 2 1, f32[4, 2], "
		  "reduce=\"amax\", include_self=false; "
		  "f32[3, 2], dim=0, i64[4, 2] of 2 0 2 1, f32[4, 2], reduce=\"amin\", "
		  "include_self=false; i32[3], dim=0, i64[3] of 0 2 0, i32[3] in -99..-70, "
		  "reduce=\"amax\", include_self=false; "
		  "i8[3], dim=0, i64[3] of 0 2 0, i8[3] in -128..-100, reduce=\"amax\", "
		  "include_self=false; i8[3], dim=0, i64[3] of 0 2 0, i8[3] in 100..127, "
		  "reduce=\"amin\", include_self=false",
};

static Node build_index_reduce(Build *b, Node n)
{
	Reduced r;
	if (!reduced(b, n, "source", &r))
		return (Node){0};
	Places p = {
		.index = b_unsqueeze(b, aten_index(b, r.index), -1), .axes = {r.dim}, .naxes = 1};
	return reduce_places(b, n, &r, &p, aten_move_dim(b, r.values, r.dim, 0));
}
OP(aten_index_reduce){
	.schema = "aten.index_reduce(Tensor self, int dim, Tensor index, Tensor source, str "
		  "reduce, *, bool include_self=True) -> Tensor",
	.build = build_index_reduce,
	.sample = "f32[n=3, 4], dim=1, i64[3] of 0 3 0, f32[n, 3], reduce=\"prod\"; "
		  "f32[n=3, 4], dim=1, i64[3] of 0 3 0, f32[n, 3], reduce=\"mean\"; "
		  "f32[n=3, 4], dim=1, i64[3] of 0 3 0, f32[n, 3], reduce=\"amax\"; "
		  "f32[n=3, 4], dim=1, i64[3] of 0 3 0, f32[n, 3], reduce=\"amin\"; "
		  "f32[3, 2], dim=0, i64[4] of 2 0 2 2, f32[4, 2], reduce=\"prod\", "
		  "include_self=false; f32[3, 2], dim=0, i64[4] of 2 0 2 2, f32[4, 2], "
		  "reduce=\"mean\", include_self=false; "
		  "f32[3, 2], dim=0, i64[4] of 2 0 2 2, f32[4, 2], reduce=\"amax\", "
		  "include_self=false; f32[3, 2], dim=0, i64[4] of 2 0 2 2, f32[4, 2], "
		  "reduce=\"amin\", include_self=false",
};

/* ---- flat positions ---- */

static Node build_put(Build *b, Node n)
{
	Node x = arg(b, n, "self"), index = b_ravel(b, arg(b, n, "index")),
	     v = b_ravel(b, arg(b, n, "source"));
	Shape s = aten_shape(b, x);
	uint32_t axis = 0;
	index = b_unsqueeze(b, aten_index(b, index), -1);
	const char *how = node_bool(b->g, n, "accumulate") ? "add" : "set";
	return aten_reshape(b, b_scatter(b, b_ravel(b, x), index, v, 0, &axis, 1, how), &s);
}
OP(aten_put){
	.schema = "aten.put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> "
		  "Tensor",
	.build = build_put,
	.sample = "f32[n=3, 4], i64[3] of 0 11 -2, f32[3]; f32[3, 4], i64[2, 2] of 0 5 5 -7, "
		  "f32[2, 2], accumulate=true",
};

/* Returns element k of values for the k-th true element of the mask (flat, of the mask's shape). */
static Node spread_masked(Build *b, Node mask, Node values)
{
	Shape s = aten_shape(b, mask);
	Node count = b_cumulative(b, "sum", b_convert(b, b_ravel(b, mask), DT_i64), 0, false);
	count = b_bin_scalar(b, OP_maximum, b_bin_scalar(b, OP_sub, count, 1), 0);
	return aten_take_dim(b, values, 0, aten_reshape(b, count, &s), "clamp");
}

/* Requires a value of its own for each true element of the mask: there have to be so many, or at
 * least so many. */
static void require_values(Build *b, Node mask, Sym values, bool exactly, const char *message)
{
	Node all = b_ravel(b, mask);
	if (!all.i || (!exactly && sym_le(b_syms(b), b_dim(b, all, 0), values) == YES))
		return;
	Node count = b_reduce(b, REDUCE_SUM, b_convert(b, all, DT_i64), 1, DT_none);
	Node legal = b_bin(b, exactly ? OP_eq : OP_le, count, aten_size(b, values, DT_i64));
	b_node(b, OP_assert, &legal, 1, (Attr[]){attr_none(), attr_str(b->g->ir, message)}, 2);
}

static Node build_masked_scatter(Build *b, Node n)
{
	Node x = arg(b, n, "self"), m = aten_truth(b, arg(b, n, "mask")),
	     v = b_ravel(b, arg(b, n, "source"));
	Shape s = aten_shape(b, x), t = aten_shape(b, m), u;
	if (!x.i || !m.i || !v.i || !aten_broadcast_shape(b, &s, &t, &u))
		return (Node){0};
	m = aten_expand_shape(b, m, &u);
	require_values(
		b, m, b_dim(b, v, 0), false,
		"masked_scatter: the mask has more true elements than the source has elements");
	if (sym_is(b_syms(b), b_dim(b, v, 0), 0))
		return aten_expand_shape(b, x, &u);
	v = spread_masked(b, m, v);
	return b_select(b, m, v, aten_expand_shape(b, x, &u));
}
OP(aten_masked_scatter){
	.schema = "aten.masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
	.build = build_masked_scatter,
	.sample = "f32[n=3, 4], bool[n, 4], f32[12]; f32[3, 4], bool[4] of 1 0 1 0, f32[2, 4]",
};

/* Returns values for x[:, ..., mask] = values, which broadcast to [lead..., true elements,
 * tail...], as values for [mask..., lead..., tail...]. */
static Node values_by_mask(Build *b, Node mask, uint32_t lead, uint32_t tail, Node values)
{
	uint32_t rank = aten_rank(b, values), perm[MAX_RANK], at = 0;
	if (rank <= tail) /* the same for all true elements */
		return values;
	if (rank > lead + 1 + tail)
		return b_error(b, "values of rank %u for places of rank %u", rank, lead + 1 + tail);
	const uint32_t count = rank - tail - 1;
	if (sym_is(b_syms(b), b_dim(b, values, (int)count), 1))
		return b_squeeze(b, values, (int)count);
	for (uint32_t k = count; k < lead; k++, rank++)
		values = b_unsqueeze(b, values, 0);
	perm[at++] = lead;
	for (uint32_t k = 0; k < rank; k++)
		if (k != lead)
			perm[at++] = k;
	values = b_permute(b, values, perm);
	require_values(b, mask, b_dim(b, values, 0), true,
		       "index_put: the mask has another number of true elements than there are "
		       "values");
	return spread_masked(b, mask, values);
}

Node aten_mask_put(Build *b, Node x, Node mask, uint32_t first, Node values, bool accumulate)
{
	Shape s = aten_shape(b, x);
	uint32_t nm = aten_rank(b, mask), perm[MAX_RANK], inverse[MAX_RANK], map[MAX_RANK], at = 0;
	if (!x.i || !mask.i || !values.i || first + nm > s.rank)
		return b_error(b, "a mask of rank %u for an operand of rank %u", nm, s.rank);
	for (uint32_t k = 0; k < nm; k++) {
		perm[at++] = first + k;
		map[k] = k;
	}
	for (uint32_t k = 0; k < s.rank; k++)
		if (k < first || k >= first + nm)
			perm[at++] = k;
	for (uint32_t k = 0; k < s.rank; k++)
		inverse[perm[k]] = k;
	Node moved = b_permute(b, x, perm);
	Shape sm = aten_shape(b, moved);
	values = b_convert(b, values, node_dtype(b->g, x));
	Node v = values_by_mask(b, mask, first, s.rank - first - nm, values);
	v = aten_expand_shape(b, v, &sm);
	Node m = b_broadcast_in_dim(b, mask, sm.rank, sm.dim, map);
	if (accumulate)
		v = aten_add(b, moved, v);
	return b_permute(b, b_select(b, m, v, moved), inverse);
}

/* ---- windows and their inverses ---- */

static Node build_unfold(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	int64_t size = aten_int(b, n, "size"), step = aten_int(b, n, "step");
	if (!x.i || size < 0 || step < 1)
		return b_error(b, "unfold of size %lld and step %lld", (long long)size,
			       (long long)step);
	if (node_rank(b->g, x) == 0) {
		b_wrap_dim(b, aten_int(b, n, "dimension"), 0);
		if (!aten_check_within(b, "size", (double)size, 0, 1))
			return (Node){0};
		x = b_unsqueeze(b, x, 0);
		return b_slice(b, x, 0, b_int(b, 0), b_int(b, size < 1 ? size : 1), b_int(b, 1));
	}
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dimension"), node_rank(b->g, x));
	Sym room = sym_addi(b_syms(b), b_dim(b, x, (int)dim), -size);
	aten_require_le(b, b_int(b, 0), room, "unfold");
	Sym count = sym_addi(b_syms(b), sym_divi(b_syms(b), room, step), 1);
	if (size == 0) {
		Shape s = aten_shape(b, x);
		s.dim[dim] = count;
		s = shape_insert(s, s.rank, b_int(b, 0));
		return b_full(b, node_dtype(b->g, x), 0, s.rank, s.dim);
	}
	return b_window(b, x, dim, size, step, 1, 0, count);
}
OP(aten_unfold){
	.schema = "aten.unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
	.view = VIEW_OTHER,
	.build = build_unfold,
	.sample = "f32[n=2, 7], dimension=1, size=3, step=2; f32[5, 2], dimension=0, size=2, "
		  "step=1; f32[] of 3, dimension=0, size=1, step=2",
	.overloads = (const Overload[]){
		{.schema = "aten.unfold_copy(Tensor self, int dimension, int size, int step) -> "
			   "Tensor"},
	},
};

typedef struct {
	int64_t kernel[2], dilation[2], pad[2], stride[2];
	Sym count[2];
} ColumnShape;

static bool read_columns(Build *b, Node n, const Sym *in, ColumnShape *c)
{
	SymTab *t = b_syms(b);
	static const char *const name[] = {"kernel_size", "dilation", "padding", "stride"};
	for (uint32_t k = 0; k < 4; k++)
		TRY(aten_check_length(b, n, name[k], 2));
	TRY(aten_ints(b, n, "kernel_size", 2, 1, c->kernel));
	TRY(aten_ints(b, n, "dilation", 2, 1, c->dilation));
	TRY(aten_ints(b, n, "padding", 2, 0, c->pad));
	TRY(aten_ints(b, n, "stride", 2, 1, c->stride));
	for (uint32_t k = 0; k < 2; k++) {
		if (c->kernel[k] < 1 || c->stride[k] < 1 || c->dilation[k] < 1 || c->pad[k] < 0)
			return b_error(b, "kernel_size, stride and dilation must be positive, "
					  "padding not negative")
				.i;
		int64_t span = c->dilation[k] * (c->kernel[k] - 1) + 1;
		Sym room = sym_addi(t, in[k], 2 * c->pad[k] - span);
		c->count[k] = sym_addi(t, sym_divi(t, room, c->stride[k]), 1);
	}
	return true;
}

/* Makes [N, C * kh * kw, oh * ow] of [N, C, H, W]. */
static Node build_im2col(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	ColumnShape c;
	bool single = aten_rank(b, x) == 3;
	if (single)
		x = b_unsqueeze(b, x, 0);
	Shape s = aten_shape(b, x);
	if (s.rank != 4)
		return b_error(b, "im2col of an operand of rank %u", s.rank);
	if (!read_columns(b, n, s.dim + 2, &c))
		return (Node){0};
	aten_require_elements(b, x, aten_dims_from(b, x, 1),
			      "what is cut into columns has elements");
	for (uint32_t k = 0; k < 2; k++)
		aten_require_le(b, b_int(b, 1), c.count[k], "there is a block of each dim");
	for (uint32_t k = 0; k < 2; k++)
		x = b_window(b, x, 2 + k, c.kernel[k], c.stride[k], c.dilation[k], c.pad[k],
			     c.count[k]);
	x = b_permute(b, x, (uint32_t[]){0, 1, 4, 5, 2, 3});
	x = aten_flatten(b, aten_flatten(b, x, 4, 5), 1, 3);
	return single ? b_squeeze(b, x, 0) : x;
}
OP(aten_im2col){
	.schema = "aten.im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, "
		  "int[2] stride) -> Tensor",
	.build = build_im2col,
	.sample = "f32[n=2, 2, 4, 5], kernel_size=[2, 3], dilation=[1, 1], padding=[0, 1], "
		  "stride=[2, 1]; f32[1, 4, 5], kernel_size=[2, 2], dilation=[2, 3], "
		  "padding=[1, 0], stride=[1, 1]",
};

static Node fold(Build *b, Node x, uint32_t dim, Sym extent, const ColumnShape *c, uint32_t k)
{
	Ir *ir = b->g->ir;
	if (!x.i)
		return x;
	Attr attr[] = {attr_none(),
		       attr_int(ir, dim),
		       attr_sym(extent),
		       attr_int(ir, c->stride[k]),
		       attr_int(ir, c->dilation[k]),
		       attr_int(ir, c->pad[k])};
	return b_node(b, OP_fold, &x, 1, attr, 6);
}

static Node build_col2im(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	ColumnShape c;
	uint32_t len;
	bool single = aten_rank(b, x) == 2;
	const Sym *out = node_ints(b->g, n, "output_size", &len);
	if (single)
		x = b_unsqueeze(b, x, 0);
	Shape s = aten_shape(b, x), w = {.rank = 6};
	if (s.rank != 3 || len != 2 || !read_columns(b, n, out, &c))
		return b_error(b, "col2im of an operand of rank %u", s.rank);
	w.dim[0] = s.dim[0];
	w.dim[1] = sym_divi(b_syms(b), s.dim[1], c.kernel[0] * c.kernel[1]);
	for (uint32_t k = 0; k < 2; k++) {
		w.dim[2 + k] = b_int(b, c.kernel[k]);
		w.dim[4 + k] = c.count[k];
	}
	/* [N, C, kh, kw, oh, ow] to [N, C, oh, ow, kh, kw]; fold takes its window axis last */
	x = b_permute(b, aten_reshape(b, x, &w), (uint32_t[]){0, 1, 4, 5, 2, 3});
	x = fold(b, x, 3, out[1], &c, 1);
	x = fold(b, x, 2, out[0], &c, 0);
	return single ? b_squeeze(b, x, 0) : x;
}
OP(aten_col2im){
	.schema = "aten.col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] "
		  "dilation, int[2] padding, int[2] stride) -> Tensor",
	.build = build_col2im,
	.sample = "f32[n=2, 8, 6], output_size=[3, 4], kernel_size=[2, 2], dilation=[1, 1], "
		  "padding=[0, 0], stride=[1, 1]; f32[1, 6, 3], output_size=[4, 5], "
		  "kernel_size=[2, 3], dilation=[2, 1], padding=[0, 1], "
		  "stride=[2, 2]",
};

/* Puts values to their flat places in zeros of output_size. */
static Node unpool(Build *b, Node n, int space)
{
	const uint32_t ns = (uint32_t)space;
	Node x = arg(b, n, "self"), index = arg(b, n, "indices");
	uint32_t len, rank = aten_rank(b, x);
	const Sym *out = node_ints(b->g, n, "output_size", &len);
	if (!x.i || !index.i || len != ns || rank < ns)
		return b_error(b, "max_unpool of an operand of rank %u", rank);
	Shape r = aten_shape(b, x);
	Sym size = b_int(b, 1);
	for (uint32_t k = 0; k < ns; k++) {
		r.dim[rank - ns + k] = out[k];
		size = sym_mul(b_syms(b), size, out[k]);
	}
	uint32_t lead = rank - ns;
	x = aten_flatten(b, x, lead, rank - 1);
	index = b_unsqueeze(b, b_convert(b, aten_flatten(b, index, lead, rank - 1), DT_i64), -1);
	Shape z = aten_shape(b, x);
	z.dim[lead] = size;
	Node zero = b_full(b, aten_dtype(b, x), 0, z.rank, z.dim);
	return aten_reshape(b, b_scatter_as(b, zero, index, x, lead, &lead, 1, "set", "within"),
			    &r);
}
static Node build_unpool3(Build *b, Node n)
{
	int64_t stride[3];
	if (!aten_check_length(b, n, "stride", 3) || !aten_check_length(b, n, "padding", 3) ||
	    !aten_ints(b, n, "stride", 3, 1, stride))
		return (Node){0};
	for (uint32_t k = 0; k < 3; k++)
		if (!aten_check_within(b, "stride", (double)stride[k], 1, INFINITY))
			return (Node){0};
	return unpool(b, n, 3);
}
OP(aten_max_unpool2d){
	.schema = "aten.max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> "
		  "Tensor",
	.autocast = AUTOCAST_F32,
	.build_as = {unpool, 2},
	.sample = "f32[n=2, 1, 2, 2], i64[n, 1, 2, 2] of 0 3 9 14, output_size=[4, 4]",
	.overloads = (const Overload[]){
		{.schema = "aten.max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, "
			   "int[3] stride, int[3] padding) -> Tensor",
		 .build = build_unpool3,
		 .sample = "f32[n=2, 1, 1, 2, 2], i64[n, 1, 1, 2, 2] of 0 3 9 30, "
			   "output_size=[2, 4, 4], stride=[2, 2, 2], padding=[0, 0, 0]"},
	},
};

Node aten_pool_backward(Build *b, Node x, Node index, Node g, uint32_t nd)
{
	Shape s = aten_shape(b, x);
	if (!x.i || !g.i || !index.i || s.rank <= nd)
		return b_error(b, "max pooling of an operand of rank %u", s.rank);
	uint32_t lead = s.rank - nd;
	g = aten_flatten(b, g, lead, s.rank - 1);
	index = b_unsqueeze(b, aten_flatten(b, index, lead, s.rank - 1), -1);
	Shape z = aten_shape(b, g);
	z.dim[lead] = s.dim[lead];
	for (uint32_t k = lead + 1; k < s.rank; k++)
		z.dim[lead] = sym_mul(b_syms(b), z.dim[lead], s.dim[k]);
	Node zero = b_full(b, aten_dtype(b, g), 0, z.rank, z.dim);
	return aten_reshape(b, b_scatter_as(b, zero, index, g, lead, &lead, 1, "add", "within"),
			    &s);
}
static Node pool_backward(Build *b, Node n, uint32_t nd)
{
	return aten_pool_backward(b, arg(b, n, "self"), arg(b, n, "indices"),
				  arg(b, n, "grad_output"), nd);
}
/* Requires that grad_output has output_size[k] along each pooled dim, and the operand's extents
 * along the others. */
static Node fractional_backward(Build *b, Node n, uint32_t nd)
{
	Shape s = aten_shape(b, arg(b, n, "self"));
	if (s.rank < nd || !aten_check_length(b, n, "output_size", nd))
		return s.rank < nd ? b_error(b, "max pooling of an operand of rank %u", s.rank)
				   : (Node){0};
	const Sym *out = node_ints(b->g, n, "output_size", &(uint32_t){0});
	for (uint32_t k = 0; k < nd; k++)
		s.dim[s.rank - nd + k] = out[k];
	if (!aten_require_shape(b, arg(b, n, "grad_output"), &s, "grad_output is of output_size"))
		return (Node){0};
	return pool_backward(b, n, nd);
}
static Node build_fractional_backward(Build *b, Node n)
{
	return fractional_backward(b, n, aten_named_dims(b, n));
}
static Node build_pool_backward(Build *b, Node n)
{
	return pool_backward(b, n, aten_named_dims(b, n));
}
OP(aten_adaptive_max_pool2d_backward){
	.schema = "aten.adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor "
		  "indices) -> Tensor",
	.build = build_pool_backward,
	.sample = "f32[n=2, 1, 2, 3], f32[n, 1, 4, 5], i64[n, 1, 2, 3] of 0 6 8 15 6 19",
	.overloads = (const Overload[]){
		{.schema = "aten.adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, "
			   "Tensor indices) -> Tensor",
		 .sample = "f32[n=2, 1, 1, 2, 2], f32[n, 1, 2, 4, 4], "
			   "i64[n, 1, 1, 2, 2] of 0 6 25 6"},
	},
};
OP(aten_fractional_max_pool2d_backward){
	.schema = "aten.fractional_max_pool2d_backward(Tensor grad_output, Tensor self, int[2] "
		  "kernel_size, int[2] output_size, Tensor indices) -> Tensor",
	.build = build_fractional_backward,
	.sample = "f32[n=2, 1, 2, 2], f32[n, 1, 4, 5], kernel_size=[2, 2], output_size=[2, 2], "
		  "i64[n, 1, 2, "
		  "2] of 0 8 8 19",
	.overloads = (const Overload[]){
		{.schema = "aten.fractional_max_pool3d_backward(Tensor grad_output, Tensor self, "
			   "int[3] kernel_size, int[3] output_size, Tensor indices) -> Tensor",
		 .sample = "f32[n=2, 1, 1, 2, 2], f32[n, 1, 2, 4, 4], kernel_size=[2, 2, 2], "
			   "output_size=[1, 2, 2], i64[n, 1, 1, "
			   "2, 2] of 0 6 25 6"},
	},
};

/* ---- strides: flat positions offset + sum of index * stride in a contiguous operand ---- */

static Node strided_index(Build *b, Node n, Shape *size)
{
	uint32_t ns, nt;
	const Sym *dim = node_ints(b->g, n, "size", &ns),
		  *stride = node_ints(b->g, n, "stride", &nt);
	Sym offset = aten_has(b, n, "storage_offset") ? node_sym(b->g, n, "storage_offset")
						      : b_int(b, 0);
	if (!aten_check_strides(b, n) || ns > MAX_RANK)
		return (Node){0};
	*size = shape_of(ns, dim);
	Node at = aten_expand_shape(b, aten_size(b, offset, DT_i64), size);
	for (uint32_t k = 0; k < ns; k++) {
		Node i = aten_iota_dim(b, size, k, DT_i64);
		at = b_bin(b, OP_add, at, b_bin(b, OP_mul, i, aten_size(b, stride[k], DT_i64)));
	}
	return at;
}

static Node build_as_strided(Build *b, Node n)
{
	Node x = b_ravel(b, arg(b, n, "self"));
	Shape s;
	return aten_take_dim(b, x, 0, strided_index(b, n, &s), "check");
}
OP(aten_as_strided){
	.schema = "aten.as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? "
		  "storage_offset=None) -> Tensor(a)",
	.view = VIEW_OTHER,
	.build = build_as_strided,
	.sample = "f32[3, 4], size=[2, 3], stride=[4, 1], storage_offset=1; "
		  "f32[12], size=[3, 2, 2], stride=[2, 1, 3]",
	.overloads = (const Overload[]){
		{.schema = "aten.as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, "
			   "SymInt? storage_offset=None) -> Tensor"},
	},
};

static Node build_as_strided_scatter(Build *b, Node n)
{
	Node x = arg(b, n, "self"), src = arg(b, n, "src");
	Shape s = aten_shape(b, x), size;
	uint32_t axis = 0;
	Node at = strided_index(b, n, &size);
	if (!x.i || !src.i || !at.i)
		return (Node){0};
	at = b_unsqueeze(b, b_ravel(b, at), -1);
	src = b_ravel(b, b_convert(b, src, node_dtype(b->g, x)));
	return aten_reshape(b, b_scatter(b, b_ravel(b, x), at, src, 0, &axis, 1, "set"), &s);
}
OP(aten_as_strided_scatter){
	.schema = "aten.as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] "
		  "stride, SymInt? storage_offset=None) -> Tensor",
	.aliases = "prims.as_strided_scatter",
	.build = build_as_strided_scatter,
	.sample = "f32[3, 4], f32[2, 3], size=[2, 3], stride=[5, 1], storage_offset=1",
};

/* ---- small reshufflings ---- */

static Node build_block_diag(Build *b, Node n)
{
	uint32_t first, count = node_args(b->g, n, "tensors", &first);
	Node *part = arena_calloc(b->g->ir->ctx->scratch, count, sizeof *part), x;
	SymTab *t = b_syms(b);
	Sym width = b_int(b, 0), at = width;
	DType d = DT_none;
	for (uint32_t k = 0; k < count; k++) {
		x = part[k] = node_in(b->g, n, first + k);
		d = d == DT_none ? aten_dtype(b, x) : dtype_promote(d, aten_dtype(b, x));
		while (part[k].i && aten_rank(b, part[k]) < 2)
			part[k] = b_unsqueeze(b, part[k], 0);
		if (aten_rank(b, part[k]) != 2)
			return b_error(b, "block_diag of a tensor of rank %u", aten_rank(b, x));
		width = sym_add(t, width, b_dim(b, part[k], 1));
	}
	for (uint32_t k = 0; k < count; k++) {
		Sym zero = b_int(b, 0), w = b_dim(b, part[k], 1);
		Sym low[2] = {zero, at}, high[2] = {zero, sym_sub(t, sym_sub(t, width, at), w)};
		part[k] = b_convert(b, part[k], d);
		part[k] = b_pad(b, part[k], low, high, aten_like(b, part[k], 0));
		at = sym_add(t, at, w);
	}
	return count ? b_concat(b, part, count, 0) : b_error(b, "block_diag of no tensors");
}
OP(aten_block_diag){
	.schema = "aten.block_diag(Tensor[] tensors) -> Tensor",
	.build = build_block_diag,
	.sample = "[f32[n=2, 3], f32[1, 2], f32[2]]",
};

static Node roll_half(Build *b, Node n, int back)
{
	Node x = arg(b, n, "self");
	const Attr *given = node_attr(b->g, n, "dim");
	if (given->kind == ATTR_ints && !given->n)
		return b_error(
			b, "dim is an empty list, expected dimensions, or none for all of them");
	uint32_t rank = aten_rank(b, x), dims = aten_dims(b, n, "dim", rank);
	for (uint32_t k = 0; k < rank; k++) {
		if (!(dims >> k & 1))
			continue;
		Sym size = b_dim(b, x, (int)k), half = sym_divi(b_syms(b), size, 2);
		Sym cut = back ? half : sym_sub(b_syms(b), size, half);
		Node high = b_slice(b, x, (int)k, cut, size, b_int(b, 1));
		Node low = b_slice(b, x, (int)k, b_int(b, 0), cut, b_int(b, 1));
		x = b_concat(b, (Node[]){high, low}, 2, (int)k);
	}
	return x;
}
OP(aten_fft_fftshift){
	.schema = "aten.fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor",
	.build_as = {roll_half, false},
	.sample = "f32[n=5]; f32[3, 4], dim=[0]; f32[3, 4]",
	.overloads = (const Overload[]){
		{.schema = "aten.fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor",
		 .build_as = {roll_half, true}},
	},
};

static Node build_sum_to_size(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t len, rank = aten_rank(b, x), dims = 0;
	const Sym *want = node_ints(b->g, n, "size", &len);
	if (!x.i || len > rank)
		return b_error(b, "sum_to_size from rank %u to rank %u", rank, len);
	for (uint32_t k = rank - len; k < rank; k++)
		if (!sym_is(b_syms(b), want[k - (rank - len)], 1))
			aten_require_equal(b, want[k - (rank - len)], b_dim(b, x, (int)k),
					   "the size to sum to is 1 or that of the operand");
	for (uint32_t k = 0; k < rank; k++)
		if (k < rank - len || (sym_is(b_syms(b), want[k - (rank - len)], 1) &&
				       !sym_is(b_syms(b), b_dim(b, x, (int)k), 1)))
			dims |= 1u << k;
	if (dims && (dtype_is_int(node_dtype(b->g, x)) || node_dtype(b->g, x) == DT_bool))
		x = b_convert(b, x, DT_i64);
	return dims ? b_reshape(b, aten_sum(b, x, dims, false), len, want) : x;
}
OP(aten_sum_to_size){
	.schema = "aten.sum_to_size(Tensor self, SymInt[] size) -> Tensor",
	.build = build_sum_to_size,
	.sample = "f32[n=2, 3, 4], size=[3, 1]; f32[3, 4], size=[1, 4]",
};
