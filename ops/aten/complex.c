/* Complex tensors: made of parts and taken apart. What real tensors mean by the same names, too. */
#include "ops/aten/priv.h"

#include <math.h>

/* ---- parts ---- */

static Node build_view_as_real(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	return b_node(b, OP_view_real, &x, 1, NULL, 0);
}
OP(aten_view_as_real){
	.schema = "aten.view_as_real(Tensor(a) self) -> Tensor(a)",
	.view = VIEW_BITS,
	.view_undo = "aten.view_as_complex",
	.build = build_view_as_real,
	.sample = "c64[n=3, 4]",
	.overloads = (const Overload[]){
		{.schema = "aten.view_as_real_copy(Tensor self) -> Tensor"},
	},
};

static Node build_view_as_complex(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	return b_node(b, OP_view_complex, &x, 1, NULL, 0);
}
OP(aten_view_as_complex){
	.schema = "aten.view_as_complex(Tensor(a) self) -> Tensor(a)",
	.autocast = AUTOCAST_F32,
	.view = VIEW_BITS,
	.view_undo = "aten.view_as_real",
	.build = build_view_as_complex,
	.sample = "f32[n=3, 4, 2]",
	.overloads = (const Overload[]){
		{.schema = "aten.view_as_complex_copy(Tensor self) -> Tensor"},
	},
};

static Node build_complex(Build *b, Node n)
{
	Node both[2] = {arg(b, n, "real"), arg(b, n, "imag")};
	Shape s;
	if (!b_common_shape(b, both, 2, &s.rank, s.dim))
		return (Node){0};
	return b_complex(b, aten_expand_shape(b, both[0], &s), aten_expand_shape(b, both[1], &s));
}
OP(aten_complex){
	.schema = "aten.complex(Tensor real, Tensor imag) -> Tensor",
	.build = build_complex,
	.sample = "f32[n=3, 4], f32[n, 4]; f64[3], f64[3]",
};

static Node build_polar(Build *b, Node n)
{
	Node r = arg(b, n, "abs"), a = arg(b, n, "angle");
	return b_complex(b, b_bin(b, OP_mul, r, b_un(b, OP_cos, a)),
		    b_bin(b, OP_mul, r, b_un(b, OP_sin, a)));
}
OP(aten_polar){
	.schema = "aten.polar(Tensor abs, Tensor angle) -> Tensor",
	.autocast = AUTOCAST_F32,
	.build = build_polar,
	.sample = "f32[n=3, 4] in 0..4, f32[n, 4]",
};

static Node build_real(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	return dtype_is_complex(aten_dtype(b, x)) ? b_part(b, x, false) : x;
}
OP(aten_real){
	.schema = "aten.real(Tensor(a) self) -> Tensor(a)",
	.aliases = "prims.real",
	.view = VIEW_REAL,
	.view_if = VIEW_IF_COMPLEX,
	.itself = true,
	.build = build_real,
	.sample = "c64[n=3, 4]",
};

static Node build_imag(Build *b, Node n)
{
	return b_part(b, arg(b, n, "self"), true);
}
OP(aten_imag){
	.schema = "aten.imag(Tensor(a) self) -> Tensor(a)",
	.aliases = "prims.imag",
	.view = VIEW_IMAG,
	.build = build_imag,
	.sample = "c64[n=3, 4]",
};

/* ---- conjugates ---- */

Node aten_conj(Build *b, Node x)
{
	if (!dtype_is_complex(aten_dtype(b, x)))
		return x;
	return b_complex(b, b_part(b, x, false), b_un(b, OP_neg, b_part(b, x, true)));
}

static Node build_conj(Build *b, Node n)
{
	return aten_conj(b, arg(b, n, "self"));
}
OP(aten_conj){
	.schema = "aten.conj(Tensor(a) self) -> Tensor(a)",
	.view = VIEW_BITS,
	.view_if = VIEW_IF_COMPLEX,
	.view_undo = "aten.conj",
	.build = build_conj,
	.sample = "c64[n=3, 4]",
	.overloads = (const Overload[]){
		{.schema = "aten._conj_copy(Tensor self) -> Tensor"},
		{.schema = "aten.conj_physical(Tensor self) -> Tensor",
		 .aliases = "aten._conj_physical prims.conj_physical"},
		{.schema = "prims.conj(Tensor(a) a) -> Tensor(a)",
		 .expand = "conj(a)"},
	},
};
OP(aten__conj){
	.schema = "aten._conj(Tensor(a) self) -> Tensor(a)",
	.view = VIEW_BITS,
	.view_if = VIEW_IF_COMPLEX,
	.view_undo = "aten._conj",
	.build = build_conj,
	.sample = "c64[n=3, 4]",
};

/* ---- classification, phase ---- */

static Node build_isreal(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	Shape s = aten_shape(b, x);
	if (!dtype_is_complex(aten_dtype(b, x)))
		return x.i ? b_full_int(b, DT_bool, 1, s.rank, s.dim) : x;
	return b_bin_scalar(b, OP_eq, b_part(b, x, true), 0);
}
OP(aten_isreal){
	.schema = "aten.isreal(Tensor self) -> Tensor",
	.build = build_isreal,
	.sample = "c64[n=2, 2] of 1 0 2 3 0 0 0 1; f32[3]",
};

/* Returns 0 or pi for a real number, NaN for NaN: constants, whose derivative is 0. */
static Node build_angle(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	if (dtype_is_complex(aten_dtype(b, x)))
		return b_bin(b, OP_atan2, b_part(b, x, true), b_part(b, x, false));
	x = aten_to_float(b, x);
	if (!x.i)
		return x;
	Node neg = b_bin_scalar(b, OP_lt, x, 0), nan = b_un(b, OP_isnan, x);
	Node pi = aten_like(b, x, 3.141592653589793);
	Node y = b_select(b, neg, pi, aten_like(b, x, 0));
	return b_select(b, nan, aten_like(b, x, (double)NAN), y);
}
OP(aten_angle){
	.schema = "aten.angle(Tensor self) -> Tensor",
	.build = build_angle,
	.sample = "c64[n=2, 3]; f32[4] of -2 0 3 nan; i32[3] of -2 0 3",
};

static Node build_chalf(Build *b, Node n)
{
	return b_convert(b, arg(b, n, "self"), DT_c32);
}
OP(aten_chalf){
	.schema = "aten.chalf(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
	.build = build_chalf,
	.sample = "f32[n=3, 4]; i32[3]; c64[2, 2]",
};
