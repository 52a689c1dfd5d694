/* ATen operators that select elements by their values, so that the sizes of results depend on
 * data. */
#include "ops/aten/priv.h"
#include "ops/prim/data_size.h"

/* ---- nonzero ---- */

static Node build_nonzero(Build *b, Node n)
{
	Node x = arg(b, n, "self"), part[MAX_RANK];
	Shape s = aten_shape(b, x);
	Sym dim[2] = {data_size(b, n, 0, 0), b_int(b, s.rank)};
	Node place = true_elements(b, aten_truth(b, x), dim[0], op_name(node_op(b->g, n))).place;
	for (uint32_t k = 0; k < s.rank; k++)
		part[k] = place_along(b, place, &s, k);
	return s.rank ? aten_stack(b, part, s.rank, 1) : b_full_int(b, DT_i64, 0, 2, dim);
}

/* Returns as many rows as asked for, of which those that nothing is found for are filled. */
static Node build_nonzero_static(Build *b, Node n)
{
	Node x = arg(b, n, "self"), part[MAX_RANK];
	Shape s = aten_shape(b, x);
	Sym dim[2] = {node_sym(b->g, n, "size"), b_int(b, s.rank)};
	if (!x.i || sym_lt(b_syms(b), dim[0], b_int(b, 0)) == YES)
		return b_error(b, "nonzero_static gives %s rows", sym_str(b_syms(b), dim[0]));
	Node place = first_true_elements(b, aten_truth(b, x), dim[0], -1).place;
	Node absent = b_bin_scalar(b, OP_lt, place, 0),
	     fill = b_full_int(b, DT_i64, aten_int(b, n, "fill_value"), 0, NULL);
	for (uint32_t k = 0; k < s.rank; k++)
		part[k] = b_select(b, absent, fill, place_along(b, place, &s, k));
	return s.rank ? aten_stack(b, part, s.rank, 1) : b_full_int(b, DT_i64, 0, 2, dim);
}
OP(aten_nonzero_static){
	.schema = "aten.nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
	.build = build_nonzero_static,
	.sample = "f32[n=3, 4] of 0 1 0 2 0 0 nan 3 0, size=3; bool[5] of 0 1 1, size=7; "
		  "i32[2, 2, 2] of 1 0, size=6, fill_value=9; f32[] of 2, size=2; "
		  "f32[0, 3], size=0",
};

/* Returns one index for each dimension; a number counts as one element. */
static Node places_of_true(Build *b, Node n, Node x)
{
	Node part[MAX_RANK];
	Shape s = aten_shape(b, x);
	Sym size = data_size(b, n, 0, 0);
	Node place = true_elements(b, aten_truth(b, x), size, op_name(node_op(b->g, n))).place;
	for (uint32_t k = 0; k < s.rank; k++)
		part[k] = place_along(b, place, &s, k);
	return s.rank ? b_tuple(b, part, s.rank) : b_tuple(b, &place, 1);
}

static Node build_nonzero_numpy(Build *b, Node n)
{
	return places_of_true(b, n, arg(b, n, "self"));
}
OP(aten_nonzero){
	.schema = "aten.nonzero(Tensor self) -> Tensor",
	.aliases = "aten.argwhere",
	.build = build_nonzero,
	.has_effect = data_size_effect,
	.sample = "f32[n=3, 4] of 0 1 0 2 0 0 nan 3 0; bool[5] of 0; i32[2, 2, 2] of 1; "
		  "f32[] of 2; f32[0, 3]",
	.overloads = (const Overload[]){
		{.schema = "aten.nonzero_numpy(Tensor self) -> Tensor[]",
		 .build = build_nonzero_numpy,
		 .sample = "f32[n=3, 4] of 0 1 0 2 0 0 nan 3 0; bool[5] of 1; i32[2, 3] of 0; "
			   "f32[] of 2"},
	},
};

static Node build_where(Build *b, Node n)
{
	return places_of_true(b, n, arg(b, n, "condition"));
}
OP(aten_where){
	.schema = "aten.where(Tensor condition) -> Tensor[]",
	.build = build_where,
	.has_effect = data_size_effect,
	.sample = "bool[n=3, 4] of 0 1 1 0 1; f32[4] of 0 2",
};

static Node build_masked_select(Build *b, Node n)
{
	Node x = arg(b, n, "self"), mask = arg(b, n, "mask");
	Shape sx = aten_shape(b, x), sm = aten_shape(b, mask), s;
	if (!x.i || !mask.i || !aten_broadcast_shape(b, &sx, &sm, &s))
		return (Node){0};
	if (node_dtype(b->g, mask) != DT_bool)
		return b_error(b, "masked_select by %s, expected bool",
			       dtype_name(node_dtype(b->g, mask)));
	Sym numel = shape_numel(b, &s);
	mask = aten_expand_shape(b, aten_truth(b, mask), &s);
	Node place = true_elements(b, mask, data_size(b, n, 0, 0), "aten.masked_select").place;
	x = b_reshape(b, aten_expand_shape(b, x, &s), 1, &numel);
	return aten_take_dim(b, x, 0, place, "promise");
}
OP(aten_masked_select){
	.schema = "aten.masked_select(Tensor self, Tensor mask) -> Tensor",
	.build = build_masked_select,
	.has_effect = data_size_effect,
	.sample = "f32[n=3, 4], bool[n, 4] of 0 1 0 1 1; f32[3, 1], bool[4] of 0 0 1 1; "
		  "f32[4], bool[2, 1] of 1 0; f32[4], bool[4] of 0; i32[], bool[] of 1",
};

/* ---- repetitions ---- */

/* Returns for each element of the result of which repetition it is one: repeats is i64[n]. */
static Node repetitions(Build *b, Node n, Node repeats, Sym size)
{
	const char *what = "aten.repeat_interleave";
	Sym given = aten_has(b, n, "output_size") ? node_sym(b->g, n, "output_size") : size;
	if (repeats.i && node_dtype(b->g, repeats) != DT_i64 && node_dtype(b->g, repeats) != DT_i32)
		return b_error(b, "repeats of %s, expected i32 or i64",
			       dtype_name(node_dtype(b->g, repeats)));
	repeats = b_convert(b, repeats, DT_i64);
	if (!repeats.i || node_rank(b->g, repeats) != 1)
		return b_error(b, "repeats of rank %u, expected 1", aten_rank(b, repeats));
	Node legal = b_bin_scalar(b, OP_ge, repeats, 0);
	Attr attr[] = {attr_none(),
		       attr_str(b->g->ir, "repeat_interleave: repeats cannot be negative")};
	b_node(b, OP_assert, &legal, 1, attr, 2);
	b_to_size(b, aten_reduce(b, REDUCE_SUM, repeats, 1, false), given, (Sym){0}, what);
	Node ends = b_cumulative(b, "sum", repeats, 0, false), k = b_iota(b, DT_i64, given);
	Attr right[] = {attr_none(), attr_none(), attr_bool(true)};
	return b_node(b, OP_searchsorted, (Node[]){ends, k}, 2, right, 3);
}

static Node build_repeats(Build *b, Node n)
{
	return b_convert(b, repetitions(b, n, arg(b, n, "repeats"), data_size(b, n, 0, 0)),
			 aten_dtype(b, arg(b, n, "repeats")));
}

static Node build_repeat_by(Build *b, Node n)
{
	Node x = arg(b, n, "self"), repeats = arg(b, n, "repeats");
	Shape s = aten_shape(b, x);
	Sym numel = shape_numel(b, &s);
	if (!aten_has(b, n, "dim")) {
		s = shape_of(1, &numel);
		x = aten_reshape(b, x, &s);
	}
	uint32_t dim = aten_has(b, n, "dim") ? b_wrap_dim(b, aten_int(b, n, "dim"), s.rank) : 0;
	if (!x.i || !repeats.i || dim >= s.rank)
		return (Node){0};
	if (node_rank(b->g, repeats) == 0 || sym_is(b_syms(b), b_dim(b, repeats, 0), 1))
		repeats = b_broadcast(b, repeats, 1, &s.dim[dim]);
	if (repeats.i)
		aten_require_equal(b, b_dim(b, repeats, 0), s.dim[dim],
				   "repeat_interleave has one number for each slice");
	return aten_take_dim(b, x, dim, repetitions(b, n, repeats, data_size(b, n, 0, dim)),
			     "promise");
}
OP(aten_repeat_interleave_Tensor){
	.schema = "aten.repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> "
		  "Tensor",
	.build = build_repeats,
	.has_effect = data_size_effect,
	.sample = "i64[n=4] of 2 0 3 1; i32[2] of 0; i64[0]; i64[3] of 1 2 0, output_size=3",
	.overloads = (const Overload[]){
		{.schema = "aten.repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? "
			   "dim=None, *, SymInt? output_size=None) -> Tensor",
		 .build = build_repeat_by,
		 .sample = "f32[n=3, 4], i64[n] of 2 0 1, dim=0; f32[2, 2], i64[4] of 0 1 2 0; "
			   "f32[2, 3], i64[1] of 2, dim=1; f32[3], i64[3] of 0, dim=0"},
	},
};

/* ---- counts ---- */

/* Counts values: as many numbers as the largest value plus one, or minlength. */
static Node build_bincount(Build *b, Node n)
{
	Node x = arg(b, n, "self"), w = arg(b, n, "weights");
	Sym size = data_size(b, n, 0, 0), minlength = node_sym(b->g, n, "minlength");
	uint32_t axis = 0;
	if (!x.i || !dtype_is_int(node_dtype(b->g, x)) ||
	    sym_lt(b_syms(b), minlength, b_int(b, 0)) == YES)
		return b_error(
			b, "bincount of %s from %s on, expected integers and no negative length",
			dtype_name(aten_dtype(b, x)), sym_str(b_syms(b), minlength));
	x = b_convert(b, x, DT_i64);
	if (!x.i || node_rank(b->g, x) != 1)
		return b_error(b, "bincount of rank %u, expected 1", aten_rank(b, x));
	Node legal = b_bin_scalar(b, OP_ge, x, 0);
	Attr attr[] = {attr_none(), attr_str(b->g->ir, "bincount: values cannot be negative")};
	b_node(b, OP_assert, &legal, 1, attr, 2);
	/* so that there is a largest one */
	Node none = b_full_int(b, DT_i64, -1, 1, (Sym[]){b_int(b, 1)});
	Node largest = aten_reduce(b, REDUCE_MAX, b_concat(b, (Node[]){x, none}, 2, 0), 1, false);
	Node least = aten_scalar_as(b, node_attr(b->g, n, "minlength"), DT_i64);
	b_to_size(b, b_bin(b, OP_maximum, b_bin_scalar(b, OP_add, largest, 1), least), size,
		  (Sym){0}, "aten.bincount");
	/* of nothing, weighed or not */
	const bool counts = !w.i || sym_is(b_syms(b), b_dim(b, x, 0), 0);
	DType d = counts ? DT_i64 : node_dtype(b->g, w) == DT_f32 ? DT_f32 : DT_f64;
	Shape s = aten_shape(b, x);
	Node add = !counts ? b_convert(b, w, d) : b_full_int(b, d, 1, s.rank, s.dim);
	Node index = b_unsqueeze(b, x, -1), zeros = b_full(b, d, 0, 1, &size);
	return b_scatter(b, zeros, index, add, 0, &axis, 1, "add");
}
OP(aten_bincount){
	.schema = "aten.bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
	.build = build_bincount,
	.has_effect = data_size_effect,
	.sample = "i64[n=6] in 0..5; i32[5] in 0..3, f32[5]; i64[4] in 0..3, none, minlength=9; "
		  "i64[0], none, minlength=2; i64[0], f32[0], minlength=3",
};
