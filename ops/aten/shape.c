/* ATen views, as index maps. */
#include "ops/aten/priv.h"

/* ---- nothing happens: aliasing is resolved at import ---- */

static Node build_same(Build *b, Node n)
{
	return node_in(b->g, n, 0);
}
OP(aten_contiguous){
	.schema = "aten.contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)",
	.view = VIEW_SAME,
	.view_if = VIEW_IF_UNCHANGED,
	.build = build_same,
	.sample = "f32[n=3, 4]",
};
OP(aten_alias){
	.schema = "aten.alias(Tensor(a) self) -> Tensor(a)",
	.aliases = "aten.lift_fresh aten.resolve_conj aten.resolve_neg aten.lift aten.pin_memory "
		   "aten._pin_memory",
	.view = VIEW_SAME,
	.build = build_same,
	.sample = "f32[n=3, 4]",
	.overloads = (const Overload[]){
		{.schema = "aten.alias_copy(Tensor self) -> Tensor",
		 .aliases = "aten.lift_fresh_copy"},
		{.schema = "aten.clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
		 .aliases = "prims.clone"},
	},
};

/* ---- dtype ---- */

static Node build_to(Build *b, Node n)
{
	Node x = node_in(b->g, n, 0);
	return x.i ? b_convert(b, x, aten_dtype_or(b, n, "dtype", node_dtype(b->g, x))) : x;
}

static Node build_to_other(Build *b, Node n)
{
	Node x = arg(b, n, "self"), y = arg(b, n, "other");
	return x.i && y.i ? b_convert(b, x, node_dtype(b->g, y)) : (Node){0};
}
OP(aten_to_dtype){
	.schema = "aten.to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool "
		  "copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
	.view = VIEW_SAME,
	.view_if = VIEW_IF_UNCHANGED,
	.build = build_to,
	.sample = "f32[n=3, 4], dtype=f16; f32[6] of 1.5 -2.75 300 -0.5 7 100, dtype=i32; "
		  "i32[4] in -9..9, dtype=bool",
	.overloads = (const Overload[]){
		{.schema = "aten.to.device(Tensor(a) self, Device device, ScalarType dtype, bool "
			   "non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) "
			   "-> Tensor(a)",
		 .sample = "f32[n=3, 4], dtype=f16"},
		{.schema = "aten.to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, "
			   "Layout? layout=None, Device? device=None, bool? pin_memory=None, bool "
			   "non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) "
			   "-> Tensor(a)",
		 .sample = "f32[n=3, 4], dtype=f16; f32[6] of 1.5 -2.75 300 -0.5 7 100, dtype=i32; "
			   "i32[4] in -9..9, dtype=bool; f32[3]"},
		{.schema = "aten._to_copy(Tensor self, *, ScalarType? dtype=None, Layout? "
			   "layout=None, Device? device=None, bool? pin_memory=None, "
			   "bool non_blocking=False, "
			   "MemoryFormat? memory_format=None) -> Tensor",
		 .sample = "f32[n=3, 4], dtype=f16; f32[6] of 1.5 -2.75 300 -0.5 7 100, dtype=i32; "
			   "i32[4] in -9..9, dtype=bool; f32[3]"},
		{.schema = "aten.to.other(Tensor(a) self, Tensor other, bool non_blocking=False, "
			   "bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
		 .build = build_to_other,
		 .sample = "f32[n=3, 4], f64[2]; f32[4] of 1.5 -2.75 0 7, i32[2]"},
	},
};
OP(aten_type_as){
	.schema = "aten.type_as(Tensor self, Tensor other) -> Tensor",
	.view = VIEW_SAME,
	.view_if = VIEW_IF_UNCHANGED,
	.build = build_to_other,
	.sample = "f32[n=3, 4], f64[2]; f32[4] of 1.5 -2.75 0 7, i32[2]",
};

/* ---- reshapes ---- */

/* Resolves one -1 of a requested shape. */
static bool infer_shape(Build *b, Node n, Node x, const Sym *want, uint32_t nwant, Shape *out)
{
	SymTab *t = b_syms(b);
	Sym known = b_int(b, 1);
	int hole = -1;
	if (nwant > MAX_RANK) {
		b_error(b, "rank %u is above the limit %d", nwant, MAX_RANK);
		return false;
	}
	*out = shape_of(nwant, want);
	for (uint32_t k = 0; k < nwant; k++) {
		if (sym_is(t, want[k], -1) && hole >= 0)
			return b_error(b, "only one extent may be -1").i;
		if (sym_is(t, want[k], -1))
			hole = (int)k;
		else
			known = sym_mul(t, known, want[k]);
	}
	if (hole < 0)
		return true;
	Sym total = type_numel(b->g->ir, node_type_id(b->g, x));
	if (sym_is(t, known, 0)) {
		b_error(b, "the extent -1 is ambiguous beside an extent of 0");
		return false;
	}
	Sym rest = sym_floordiv(t, total, known);
	const Type *file = node_type_id(b->g, n).i ? node_type(b->g, n) : NULL;
	/* When the quotient is not provably exact, the file's own extent is taken and checked. */
	if (sym_mul(t, rest, known).i != total.i && file && file->n == nwant)
		rest = file->dim[hole];
	out->dim[hole] = rest;
	return true;
}

static Node view_as(Build *b, Node n, Node x, const char *name)
{
	uint32_t want;
	Shape s;
	const Sym *v = node_ints(b->g, n, name, &want);
	if (!x.i || !infer_shape(b, n, x, v, want, &s))
		return (Node){0};
	return aten_reshape(b, x, &s);
}

static Node build_view(Build *b, Node n)
{
	return view_as(b, n, arg(b, n, "self"), "size");
}
OP(aten__unsafe_view){
	.schema = "aten._unsafe_view(Tensor self, SymInt[] size) -> Tensor",
	.view = VIEW_RESHAPE,
	.build = build_view,
	.sample = "f32[n=3, 4], size=[n, 2, 2]; f32[3, 4], size=[-1, 6]",
};
static Node build_reshape_alias(Build *b, Node n)
{
	return aten_check_strides(b, n) ? build_view(b, n) : (Node){0};
}

static Node build_reshape(Build *b, Node n)
{
	return view_as(b, n, arg(b, n, "self"), "shape");
}

static Node build_reshape_copy(Build *b, Node n)
{
	return view_as(b, n, arg(b, n, "self"), "size");
}

static Node build_reshape_as(Build *b, Node n)
{
	Shape s = aten_shape(b, arg(b, n, "other"));
	return aten_reshape(b, arg(b, n, "self"), &s);
}
OP(aten_reshape){
	.schema = "aten.reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
	.view = VIEW_RESHAPE,
	.view_if = VIEW_IF_STRIDES,
	.build = build_reshape,
	.sample = "f32[n=3, 4], shape=[n, 2, 2]; f32[3, 4], shape=[-1, 6]; f32[2, 0], shape=[0, 5]",
	.overloads = (const Overload[]){
		{.schema = "aten._reshape_copy(Tensor self, SymInt[] size) -> Tensor",
		 .build = build_reshape_copy,
		 .sample = "f32[n=3, 4], size=[n, 2, 2]; f32[3, 4], size=[-1, 6]"},
		{.schema = "aten._reshape_alias_copy(Tensor self, SymInt[] size, SymInt[] stride) "
			   "-> Tensor",
		 .build = build_reshape_copy,
		 .sample = "f32[n=3, 4], size=[n, 2, 2], stride=[4, 2, 1]"},
		{.schema = "aten.reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)",
		 .build = build_reshape_as,
		 .sample = "f32[n=3, 4], f32[n, 2, 2]"},
	},
};

static Node build_flatten(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t rank = aten_rank(b, x);
	if (rank == 0)
		return b_reshape(b, x, 1, (Sym[]){b_int(b, 1)});
	uint32_t first = b_wrap_dim(b, aten_int(b, n, "start_dim"), rank);
	uint32_t last = b_wrap_dim(b, aten_int(b, n, "end_dim"), rank);
	if (first > last)
		return b_error(b, "flatten from dim %u to dim %u", first, last);
	return aten_flatten(b, x, first, last);
}
OP(aten_flatten_using_ints){
	.schema = "aten.flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> "
		  "Tensor(a)",
	.view = VIEW_RESHAPE,
	.view_if = VIEW_IF_STRIDES,
	.itself = true,
	.build = build_flatten,
	.sample = "f32[n=2, 3, 4]; f32[n=2, 3, 4], start_dim=1; "
		  "f32[2, 3, 4], start_dim=0, end_dim=1; f32[]",
};

static Node build_ravel(Build *b, Node n)
{
	return b_ravel(b, arg(b, n, "self"));
}
OP(aten_ravel){
	.schema = "aten.ravel(Tensor(a) self) -> Tensor(a)",
	.view = VIEW_RESHAPE,
	.view_if = VIEW_IF_STRIDES,
	.build = build_ravel,
	.sample = "f32[n=2, 3]",
};

static Node build_unflatten(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	Shape s = aten_shape(b, x), r = {0}, part;
	uint32_t nsize;
	const Sym *size = node_ints(b->g, n, "sizes", &nsize);
	uint32_t dim = b_wrap_dim(b, aten_int(b, n, "dim"), s.rank);
	if (!x.i || s.rank + nsize > MAX_RANK + 1)
		return b_error(b, "unflatten to a rank above the limit %d", MAX_RANK);
	Sym known = b_int(b, 1);
	uint32_t ninferred = 0;
	part = shape_of(nsize, size);
	for (uint32_t k = 0; k < nsize; k++) {
		bool inferred = sym_is(b_syms(b), size[k], -1);
		ninferred += inferred;
		if (!inferred)
			known = sym_mul(b_syms(b), known, size[k]);
	}
	if (ninferred > 1)
		return b_error(b, "only one extent may be -1");
	if (ninferred)
		aten_require_equal(b,
				   sym_mul(b_syms(b), known,
					   sym_floordiv(b_syms(b), s.dim[dim],
							sym_max(b_syms(b), known, b_int(b, 1)))),
				   s.dim[dim], "the product of sizes divides the dimension");
	else
		aten_require_equal(b, known, s.dim[dim], "the product of sizes is the dimension");
	for (uint32_t k = 0; k < nsize; k++)
		if (sym_is(b_syms(b), size[k], -1) && !sym_is(b_syms(b), known, 0))
			part.dim[k] = sym_floordiv(b_syms(b), s.dim[dim], known);
	for (uint32_t k = 0; k < s.rank; k++)
		if (k == dim)
			for (uint32_t j = 0; j < nsize; j++)
				r.dim[r.rank++] = part.dim[j];
		else
			r.dim[r.rank++] = s.dim[k];
	return aten_reshape(b, x, &r);
}
OP(aten_view){
	.schema = "aten.view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
	.view = VIEW_RESHAPE,
	.build = build_view,
	.sample = "f32[n=3, 4], size=[n, 2, 2]; f32[3, 4], size=[-1, 6]",
	.overloads = (const Overload[]){
		{.schema = "prims.reshape(Tensor a, SymInt[] shape) -> Tensor",
		 .expand = "reshape(a, shape)",
		 .sample = "f32[3, 4], shape=[2, 6]; f32[n=3, 4], shape=[2, 2, n]"},
		{.schema = "aten.view_copy(Tensor self, SymInt[] size) -> Tensor"},
		{.schema = "aten._reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> "
			   "Tensor(a)",
		 .build = build_reshape_alias,
		 .sample = "f32[n=3, 4], size=[n, 2, 2], stride=[4, 2, 1]"},
		{.schema = "aten.view_as(Tensor(a) self, Tensor other) -> Tensor(a)",
		 .build = build_reshape_as,
		 .sample = "f32[n=3, 4], f32[n, 2, 2]"},
		{.schema = "aten.unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> "
			   "Tensor(a)",
		 .build = build_unflatten,
		 .sample = "f32[n=2, 12], dim=1, sizes=[3, 4]; f32[12], dim=0, sizes=[2, -1]; "
			   "f32[0, 6], dim=1, sizes=[-1, 3]"},
	},
};

static Node build_unsqueeze(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t rank = aten_rank(b, x);
	return b_unsqueeze(b, x, (int)b_wrap_dim(b, aten_int(b, n, "dim"), rank + 1));
}
OP(aten_unsqueeze){
	.schema = "aten.unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
	.view = VIEW_RESHAPE,
	.build = build_unsqueeze,
	.sample = "f32[n=3, 4], dim=1; f32[3, 4], dim=-1; f32[], dim=0",
	.overloads = (const Overload[]){
		{.schema = "aten.unsqueeze_copy(Tensor self, int dim) -> Tensor"},
	},
};

/* Removes those of these dims that have extent 1. */
static Node squeeze(Build *b, Node x, uint32_t dims)
{
	Shape s = aten_shape(b, x);
	for (uint32_t k = 0; k < s.rank; k++)
		if (!sym_is(b_syms(b), s.dim[k], 1))
			dims &= ~(1u << k);
	return aten_squeeze_dims(b, x, dims);
}

static Node build_squeeze(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	return squeeze(b, x, ~0u);
}
OP(aten_squeeze){
	.schema = "aten.squeeze(Tensor(a) self) -> Tensor(a)",
	.view = VIEW_RESHAPE,
	.build = build_squeeze,
	.sample = "f32[1, n=3, 1]",
	.overloads = (const Overload[]){
		{.schema = "aten.squeeze_copy(Tensor self) -> Tensor"},
	},
};

static Node build_squeeze_dim(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t rank = aten_rank(b, x);
	return squeeze(b, x, 1u << b_wrap_dim(b, aten_int(b, n, "dim"), rank));
}
OP(aten_squeeze_dim){
	.schema = "aten.squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
	.view = VIEW_RESHAPE,
	.build = build_squeeze_dim,
	.sample = "f32[1, n=3, 1], dim=0; f32[1, 3], dim=1; f32[1, 3, 1], dim=-1",
	.overloads = (const Overload[]){
		{.schema = "aten.squeeze_copy.dim(Tensor self, int dim) -> Tensor"},
	},
};

static Node build_squeeze_dims(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t len;
	node_ints(b->g, n, "dim", &len);
	return len ? squeeze(b, x, aten_dims(b, n, "dim", aten_rank(b, x))) : x;
}
OP(aten_squeeze_dims){
	.schema = "aten.squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
	.view = VIEW_RESHAPE,
	.build = build_squeeze_dims,
	.sample = "f32[1, n=3, 1], dim=[0, -1]; f32[1, 3, 1], dim=[0, 1]",
	.overloads = (const Overload[]){
		{.schema = "aten.squeeze_copy.dims(Tensor self, int[] dim) -> Tensor"},
	},
};

/* ---- permutations ---- */

static Node transpose(Build *b, Node x, int64_t d0, int64_t d1)
{
	uint32_t rank = aten_rank(b, x);
	if (rank == 0)
		return x;
	return b_transpose(b, x, (int)b_wrap_dim(b, d0, rank), (int)b_wrap_dim(b, d1, rank));
}

static Node build_transpose(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	int64_t d0 = aten_int(b, n, "dim0");
	return transpose(b, x, d0, aten_int(b, n, "dim1"));
}

static Node build_swapaxes(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	int64_t d0 = aten_int(b, n, "axis0");
	return transpose(b, x, d0, aten_int(b, n, "axis1"));
}

static Node build_t(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t rank = aten_rank(b, x);
	if (rank > 2)
		return b_error(b, "t of an operand of rank %u, expected at most 2", rank);
	return rank == 2 ? transpose(b, x, 0, 1) : x;
}
OP(aten_transpose_int){
	.schema = "aten.transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
	.aliases = "aten.swapdims aten.transpose",
	.view = VIEW_PERMUTE,
	.build = build_transpose,
	.sample = "f32[n=2, 3, 4], dim0=0, dim1=-1; f32[n=2, 3], dim0=1, dim1=0",
	.overloads = (const Overload[]){
		{.schema = "aten.transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor"},
		{.schema = "aten.t(Tensor(a) self) -> Tensor(a)",
		 .build = build_t,
		 .sample = "f32[n=3, 4]; f32[3]"},
		{.schema = "aten.t_copy(Tensor self) -> Tensor",
		 .build = build_t,
		 .sample = "f32[n=3, 4]; f32[3]"},
	},
};

static Node build_mH(Build *b, Node n)
{
	return transpose(b, aten_conj(b, arg(b, n, "self")), -2, -1);
}

static Node build_mT(Build *b, Node n)
{
	return transpose(b, arg(b, n, "self"), -2, -1);
}
OP(aten_mH){
	.schema = "aten.mH(Tensor(a) self) -> Tensor(a)",
	.aliases = "aten.adjoint aten.matrix_H",
	.view = VIEW_ADJOINT,
	.build = build_mH,
	.sample = "f32[n=2, 3, 4]; c64[2, 3]",
};

static Node build_numpy_T(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t rank = aten_rank(b, x), perm[MAX_RANK];
	for (uint32_t k = 0; k < rank; k++)
		perm[k] = rank - 1 - k;
	return b_permute(b, x, perm);
}
OP(aten_swapaxes){
	.schema = "aten.swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)",
	.view = VIEW_OTHER,
	.build = build_swapaxes,
	.sample = "f32[n=2, 3, 4], axis0=0, axis1=-1",
	.overloads = (const Overload[]){
		{.schema = "aten.mT(Tensor(a) self) -> Tensor(a)",
		 .build = build_mT,
		 .sample = "f32[n=2, 3, 4]"},
		{.schema = "aten.numpy_T(Tensor(a) self) -> Tensor(a)",
		 .build = build_numpy_T,
		 .sample = "f32[n=3, 4]"},
	},
};

static Node build_permute(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t rank = aten_rank(b, x), len, seen = 0, perm[MAX_RANK];
	const Sym *dim = node_ints(b->g, n, "dims", &len);
	if (len != rank)
		return b_error(b, "permute has %u dims for an operand of rank %u", len, rank);
	for (uint32_t k = 0; k < rank; k++) {
		int64_t d;
		if (!aten_const(b, dim[k], &d))
			return (Node){0};
		perm[k] = b_wrap_dim(b, d, rank);
		seen |= 1u << perm[k];
	}
	if (seen != (1u << rank) - 1)
		return b_error(b, "permute names a dim twice");
	return b_permute(b, x, perm);
}
OP(aten_permute){
	.schema = "aten.permute(Tensor(a) self, int[] dims) -> Tensor(a)",
	.view = VIEW_PERMUTE,
	.build = build_permute,
	.sample = "f32[n=2, 3, 4], dims=[2, 0, 1]; f32[2, 3, 4], dims=[-1, 1, 0]",
	.overloads = (const Overload[]){
		{.schema = "aten.permute_copy(Tensor self, int[] dims) -> Tensor"},
	},
};

/* Moves the source dims, wrapped, to the destination dims; the others keep their order. */
static Node move_dims(Build *b, Node x, const Sym *src, const Sym *dst, uint32_t len)
{
	uint32_t rank = aten_rank(b, x), perm[MAX_RANK], taken = 0;
	bool set[MAX_RANK] = {false};
	for (uint32_t k = 0; k < len; k++) {
		int64_t s, d;
		if (!aten_const(b, src[k], &s) || !aten_const(b, dst[k], &d))
			return (Node){0};
		uint32_t to = b_wrap_dim(b, d, rank);
		perm[to] = b_wrap_dim(b, s, rank);
		taken |= 1u << perm[to];
		set[to] = true;
	}
	for (uint32_t k = 0, next = 0; k < rank; k++) {
		if (set[k])
			continue;
		while (next < rank && taken >> next & 1)
			next++;
		if (next == rank)
			return b_error(b, "movedim names a dim twice");
		perm[k] = next++;
	}
	return b_permute(b, x, perm);
}

static Node build_movedim(Build *b, Node n)
{
	uint32_t ns, nd;
	const Sym *src = node_ints(b->g, n, "source", &ns);
	const Sym *dst = node_ints(b->g, n, "destination", &nd);
	if (ns != nd || ns > aten_rank(b, arg(b, n, "self")))
		return b_error(b, "movedim of %u dims to %u", ns, nd);
	return move_dims(b, arg(b, n, "self"), src, dst, ns);
}

static Node build_movedim_int(Build *b, Node n)
{
	Sym src = node_sym(b->g, n, "source"), dst = node_sym(b->g, n, "destination");
	return move_dims(b, arg(b, n, "self"), &src, &dst, 1);
}
OP(aten_movedim_intlist){
	.schema = "aten.movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> "
		  "Tensor(a)",
	.aliases = "aten.moveaxis.intlist",
	.view = VIEW_OTHER,
	.build = build_movedim,
	.sample = "f32[n=2, 3, 4], source=[0, 1], destination=[-1, 0]",
	.overloads = (const Overload[]){
		{.schema = "aten.movedim.int(Tensor(a) self, int source, int destination) -> "
			   "Tensor(a)",
		 .aliases = "aten.moveaxis.int",
		 .build = build_movedim_int,
		 .sample = "f32[n=2, 3, 4], source=0, destination=2; "
			   "f32[2, 3, 4], source=-1, destination=0"},
	},
};

/* ---- broadcasting ---- */

static Node expand_to(Build *b, Node x, const char *name, Node n)
{
	Shape s = aten_shape(b, x);
	uint32_t len;
	const Sym *want = node_ints(b->g, n, name, &len);
	if (!x.i || len < s.rank || len > MAX_RANK)
		return b_error(b, "cannot expand rank %u to rank %u", s.rank, len);
	Shape r = shape_of(len, want);
	for (uint32_t k = 0; k < len; k++)
		if (sym_is(b_syms(b), want[k], -1)) {
			if (k < len - s.rank)
				return b_error(b, "expand of a new dim to extent -1");
			r.dim[k] = s.dim[k - (len - s.rank)];
		}
	return aten_expand_shape(b, x, &r);
}

static Node build_expand(Build *b, Node n)
{
	return expand_to(b, arg(b, n, "self"), "size", n);
}

static Node build_expand_as(Build *b, Node n)
{
	Shape s = aten_shape(b, arg(b, n, "other"));
	return aten_expand_shape(b, arg(b, n, "self"), &s);
}
OP(aten_expand){
	.schema = "aten.expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
	.view = VIEW_OTHER,
	.build = build_expand,
	.sample = "f32[n=3, 1], size=[2, n, 4]; f32[1, 4], size=[3, -1]",
	.overloads = (const Overload[]){
		{.schema = "aten.expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) "
			   "-> Tensor"},
		{.schema = "aten.broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)",
		 .sample = "f32[n=3, 1], size=[2, n, 4]"},
		{.schema = "aten.expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
		 .build = build_expand_as,
		 .sample = "f32[n=3, 1], f32[2, n, 4]"},
	},
};

static Node build_broadcast_tensors(Build *b, Node n)
{
	uint32_t first, count = node_args(b->g, n, "tensors", &first);
	Node *x = arena_calloc(b->g->ir->ctx->scratch, count, sizeof *x);
	Shape s = {0};
	for (uint32_t k = 0; k < count; k++) {
		x[k] = node_in(b->g, n, first + k);
		Shape t = aten_shape(b, x[k]), u = s;
		if (!aten_broadcast_shape(b, &u, &t, &s))
			return (Node){0};
	}
	for (uint32_t k = 0; k < count; k++)
		x[k] = aten_expand_shape(b, x[k], &s);
	return b_tuple(b, x, count);
}
OP(aten_broadcast_tensors){
	.schema = "aten.broadcast_tensors(Tensor[] tensors) -> Tensor[]",
	.view = VIEW_OTHER,
	.build = build_broadcast_tensors,
	.sample = "[f32[n=3, 1], f32[1, 4], f32[]]",
};

/* Repeats [d0, d1] (r0, r1) times: new axes before each dim, broadcast, merged. */
static Node repeat(Build *b, Node x, const Sym *times, uint32_t len)
{
	Shape s = aten_shape(b, x), wide = {0}, r = {0};
	uint32_t map[MAX_RANK], lead = len - s.rank;
	if (!x.i || len < s.rank || len + s.rank > MAX_RANK)
		return b_error(b, "cannot repeat rank %u %u times", s.rank, len);
	for (uint32_t k = 0; k < len; k++) {
		Sym total = times[k];
		wide.dim[wide.rank++] = times[k];
		if (k >= lead) {
			map[k - lead] = wide.rank;
			wide.dim[wide.rank++] = s.dim[k - lead];
			total = sym_mul(b_syms(b), times[k], s.dim[k - lead]);
		}
		r.dim[r.rank++] = total;
	}
	return aten_reshape(b, b_broadcast_in_dim(b, x, wide.rank, wide.dim, map), &r);
}

static Node build_repeat(Build *b, Node n)
{
	uint32_t len;
	const Sym *times = node_ints(b->g, n, "repeats", &len);
	return repeat(b, arg(b, n, "self"), times, len);
}

static Node build_tile(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t len, rank = aten_rank(b, x);
	const Sym *times = node_ints(b->g, n, "dims", &len);
	Shape full = {.rank = rank > len ? rank : len};
	for (uint32_t k = 0; k < full.rank && k < MAX_RANK; k++) {
		uint32_t lead = full.rank - len;
		full.dim[k] = k < lead ? b_int(b, 1) : times[k - lead];
	}
	return repeat(b, x, full.dim, full.rank);
}
OP(aten_repeat){
	.schema = "aten.repeat(Tensor self, SymInt[] repeats) -> Tensor",
	.build = build_repeat,
	.sample = "f32[n=3, 2], repeats=[2, 1, 3]",
	.overloads = (const Overload[]){
		{.schema = "aten.tile(Tensor self, SymInt[] dims) -> Tensor",
		 .build = build_tile,
		 .sample = "f32[n=3, 2], dims=[2]; f32[3], dims=[2, 2]"},
	},
};

static Node build_repeat_interleave(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	if (!aten_has(b, n, "dim"))
		x = b_ravel(b, x);
	Shape s = aten_shape(b, x);
	uint32_t dim = b_wrap_dim(b, aten_int_or(b, n, "dim", 0), s.rank), map[MAX_RANK];
	Sym times = node_sym(b->g, n, "repeats");
	if (!x.i || s.rank == MAX_RANK)
		return (Node){0};
	Shape wide = shape_insert(s, dim + 1, times);
	for (uint32_t k = 0; k < s.rank; k++)
		map[k] = k <= dim ? k : k + 1;
	s.dim[dim] = sym_mul(b_syms(b), s.dim[dim], times);
	return aten_reshape(b, b_broadcast_in_dim(b, x, wide.rank, wide.dim, map), &s);
}
OP(aten_repeat_interleave_self_int){
	.schema = "aten.repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, "
		  "*, SymInt? output_size=None) -> Tensor",
	.build = build_repeat_interleave,
	.sample = "f32[n=3, 2], repeats=2, dim=1; f32[3, 2], repeats=3",
};

static Node build_meshgrid(Build *b, Node n)
{
	uint32_t first, count = node_args(b->g, n, "tensors", &first);
	Node x[MAX_RANK];
	Shape s = {.rank = count};
	bool xy = node_op(b->g, n) == OP_aten_meshgrid_indexing && count > 1 &&
		  aten_is(b, n, "indexing", "xy");
	if (count > MAX_RANK)
		return b_error(b, "meshgrid of %u tensors", count);
	if (node_op(b->g, n) == OP_aten_meshgrid_indexing &&
	    !aten_check_word(b, n, "indexing", "ij xy"))
		return (Node){0};
	for (uint32_t k = 0; k < count; k++) {
		x[k] = node_in(b->g, n, first + k);
		s.dim[k] = type_numel(b->g->ir, node_type_id(b->g, x[k]));
		x[k] = b_reshape(b, x[k], 1, &s.dim[k]);
	}
	for (uint32_t k = 0; k < count; k++) {
		x[k] = b_broadcast_in_dim(b, x[k], count, s.dim, &k);
		if (xy)
			x[k] = b_transpose(b, x[k], 0, 1);
	}
	return b_tuple(b, x, count);
}
OP(aten_meshgrid){
	.schema = "aten.meshgrid(Tensor[] tensors) -> Tensor[]",
	.view = VIEW_OTHER,
	.build = build_meshgrid,
	.sample = "[f32[n=3], f32[4]]",
	.overloads = (const Overload[]){
		{.schema = "aten.meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]",
		 .sample = "[f32[n=3], f32[4]], indexing=\"xy\"; "
			   "[f32[2], f32[3], f32[2]], indexing=\"xy\"; "
			   "[f32[n=3], f32[4]], indexing=\"ij\""},
	},
};

/* ---- reversal ---- */

static Node build_flip(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	uint32_t len, rank = aten_rank(b, x);
	node_ints(b->g, n, "dims", &len);
	uint32_t dims = len ? aten_dims(b, n, "dims", rank) : 0;
	for (uint32_t k = 0; k < rank; k++)
		if (dims >> k & 1)
			x = b_reverse(b, x, (int)k);
	return x;
}

static Node build_fliplr(Build *b, Node n)
{
	return b_reverse(b, arg(b, n, "self"), 1);
}
static Node build_flipud(Build *b, Node n)
{
	return b_reverse(b, arg(b, n, "self"), 0);
}
OP(aten_flip){
	.schema = "aten.flip(Tensor self, int[] dims) -> Tensor",
	.build = build_flip,
	.sample = "f32[n=3, 4], dims=[1]; f32[2, 3, 2], dims=[0, -1]",
	.overloads = (const Overload[]){
		{.schema = "aten.fliplr(Tensor self) -> Tensor",
		 .build = build_fliplr,
		 .sample = "f32[n=3, 4]"},
		{.schema = "aten.flipud(Tensor self) -> Tensor",
		 .build = build_flipud,
		 .sample = "f32[n=3, 4]"},
	},
};

static Node build_rot90(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	int64_t dims[2], k = aten_int(b, n, "k") & 3;
	if (!x.i || !aten_ints(b, n, "dims", 2, 0, dims))
		return (Node){0};
	int d0 = (int)b_wrap_dim(b, dims[0], node_rank(b->g, x));
	int d1 = (int)b_wrap_dim(b, dims[1], node_rank(b->g, x));
	if (d0 == d1)
		return b_error(b, "dims are the same one twice");
	if (k == 2)
		x = b_reverse(b, x, d0);
	if (k == 1 || k == 2)
		x = b_reverse(b, x, d1);
	if (k & 1)
		x = b_transpose(b, x, d0, d1);
	return k == 3 ? b_reverse(b, x, d1) : x;
}
OP(aten_rot90){
	.schema = "aten.rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor",
	.build = build_rot90,
	.sample = "f32[n=3, 4]; f32[3, 4], k=2; f32[3, 4], k=-1; f32[2, 3, 4], k=5, dims=[2, 0]",
};

/* ---- fake alignments ---- */

static Node at_least(Build *b, Node n, uint32_t rank)
{
	Node x = arg(b, n, "self");
	uint32_t r = aten_rank(b, x);
	if (r >= rank)
		return x;
	if (r == 0)
		x = b_unsqueeze(b, x, 0);
	if (rank >= 2 && r <= 1)
		x = b_unsqueeze(b, x, 0);
	return rank == 3 ? b_unsqueeze(b, x, -1) : x;
}
static Node build_atleast(Build *b, Node n)
{
	return at_least(b, n, aten_named_dims(b, n));
}
OP(aten_atleast_1d){
	.schema = "aten.atleast_1d(Tensor self) -> Tensor",
	.view = VIEW_RESHAPE,
	.itself = true,
	.build = build_atleast,
	.sample = "f32[]; f32[n=3]; f32[n=3, 4]; f32[2, 2, 2, 2]",
	.overloads = (const Overload[]){
		{.schema = "aten.atleast_2d(Tensor self) -> Tensor"},
		{.schema = "aten.atleast_3d(Tensor self) -> Tensor"},
	},
};
