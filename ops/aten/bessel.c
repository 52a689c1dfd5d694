/* Bessel functions of orders 0 and 1, other than I, and Airy's function. */
#include "ops/aten/priv.h"

OP(bessel_j0) {
	.schema = "bessel_j0(Tensor x) -> Tensor",
	.doc = "Bessel function of the first kind, order 0",
	.promote = PROMOTE_FLOAT,
	.scalar = "bessel_j0(x)",
	.deriv = {"-bessel_j1(x)"},
	.sample = "f32[n=3, 4] in -12..12; f32[8] of 0 0.0625 -7.75 8 8.125 -40 1000 3.75",
};
OP(bessel_j1) {
	.schema = "bessel_j1(Tensor x) -> Tensor",
	.doc = "Bessel function of the first kind, order 1",
	.promote = PROMOTE_FLOAT,
	.scalar = "bessel_j1(x)",
	.deriv = {"bessel_j0(x) - select(eq(x, 0), 0.5, y / x)"},
	.sample = "f32[n=3, 4] in -12..12; f32[8] of 0 0.0625 -7.75 8 8.125 -40 1000 3.75",
};
OP(bessel_y0) {
	.schema = "bessel_y0(Tensor x) -> Tensor",
	.doc = "Bessel function of the second kind, order 0",
	.promote = PROMOTE_FLOAT,
	.scalar = "bessel_y0(x)",
	.deriv = {"-bessel_y1(x)"},
	.sample = "f32[n=3, 4] in 0.25..12; f32[8] of 0 0.0625 7.75 8 8.125 40 1000 -1",
};
OP(bessel_y1) {
	.schema = "bessel_y1(Tensor x) -> Tensor",
	.doc = "Bessel function of the second kind, order 1",
	.promote = PROMOTE_FLOAT,
	.scalar = "bessel_y1(x)",
	.deriv = {"select(eq(x, 0), inf, bessel_y0(x) - y / x)"},
	.sample = "f32[n=3, 4] in 0.25..12; f32[8] of 0 0.0625 7.75 8 8.125 40 1000 -1",
};
OP(bessel_k0) {
	.schema = "bessel_k0(Tensor x) -> Tensor",
	.doc = "modified Bessel function of the second kind, order 0",
	.promote = PROMOTE_FLOAT,
	.scalar = "bessel_k0(x)",
	.deriv = {"-bessel_k1(x)"},
	.sample = "f32[n=3, 4] in 0.25..12; f32[8] of 0 0.0625 2 2.125 40 700 -1 inf",
};
OP(bessel_k1) {
	.schema = "bessel_k1(Tensor x) -> Tensor",
	.doc = "modified Bessel function of the second kind, order 1",
	.promote = PROMOTE_FLOAT,
	.scalar = "bessel_k1(x)",
	.deriv = {"-bessel_k0(x) - y / x"},
	.sample = "f32[n=3, 4] in 0.25..12; f32[8] of 0 0.0625 2 2.125 40 700 -1 inf",
};
OP(bessel_k0e) {
	.schema = "bessel_k0e(Tensor x) -> Tensor",
	.doc = "bessel_k0(x) * exp(x)",
	.promote = PROMOTE_FLOAT,
	.scalar = "bessel_k0e(x)",
	.deriv = {"y - bessel_k1e(x)"},
	.sample = "f32[n=3, 4] in 0.25..12; f32[8] of 0 0.0625 2 2.125 40 700 -1 inf",
};
OP(bessel_k1e) {
	.schema = "bessel_k1e(Tensor x) -> Tensor",
	.doc = "bessel_k1(x) * exp(x)",
	.promote = PROMOTE_FLOAT,
	.scalar = "bessel_k1e(x)",
	.deriv = {"y - bessel_k0e(x) - y / x"},
	.sample = "f32[n=3, 4] in 0.25..12; f32[8] of 0 0.0625 2 2.125 40 700 -1 inf",
};
OP(airy_ai) {
	.schema = "airy_ai(Tensor x) -> Tensor",
	.doc = "Airy's function Ai",
	.promote = PROMOTE_FLOAT,
	.scalar = "airy_ai(x)",
	.no_deriv = "the derivative of Airy's function is not in the table, "
		    "nor does PyTorch have it",
	.sample = "f32[n=3, 4] in -12..12; f32[9] of 0 -4 -4.125 2 2.125 -0.5 50 200 -90",
};

OP(aten_special_bessel_j0){
	.schema = "aten.special_bessel_j0(Tensor self) -> Tensor",
	.aliases = "prims.bessel_j0",
	.promote = PROMOTE_FLOAT,
	.expand = "bessel_j0(self)",
	.sample = "f32[n=3, 4] in -12..12; f32[8] of 0 0.0625 -7.75 8 8.125 -40 1000 3.75",
};
OP(aten_special_bessel_j1){
	.schema = "aten.special_bessel_j1(Tensor self) -> Tensor",
	.aliases = "prims.bessel_j1",
	.promote = PROMOTE_FLOAT,
	.expand = "bessel_j1(self)",
	.sample = "f32[n=3, 4] in -12..12; f32[8] of 0 0.0625 -7.75 8 8.125 -40 1000 3.75",
};
OP(aten_special_bessel_y0){
	.schema = "aten.special_bessel_y0(Tensor self) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "bessel_y0(self)",
	.sample = "f32[n=3, 4] in 0.25..12; f32[8] of 0 0.0625 7.75 8 8.125 40 1000 -1",
};
OP(aten_special_bessel_y1){
	.schema = "aten.special_bessel_y1(Tensor self) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "bessel_y1(self)",
	.sample = "f32[n=3, 4] in 0.25..12; f32[8] of 0 0.0625 7.75 8 8.125 40 1000 -1",
};
OP(aten_special_modified_bessel_k0){
	.schema = "aten.special_modified_bessel_k0(Tensor self) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "bessel_k0(self)",
	.sample = "f32[n=3, 4] in 0.25..12; f32[8] of 0 0.0625 2 2.125 40 700 -1 inf",
};
OP(aten_special_modified_bessel_k1){
	.schema = "aten.special_modified_bessel_k1(Tensor self) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "bessel_k1(self)",
	.sample = "f32[n=3, 4] in 0.25..12; f32[8] of 0 0.0625 2 2.125 40 700 -1 inf",
};
OP(aten_special_scaled_modified_bessel_k0){
	.schema = "aten.special_scaled_modified_bessel_k0(Tensor x) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "bessel_k0e(x)",
	.sample = "f32[n=3, 4] in 0.25..12; f32[8] of 0 0.0625 2 2.125 40 700 -1 inf",
};
OP(aten_special_scaled_modified_bessel_k1){
	.schema = "aten.special_scaled_modified_bessel_k1(Tensor x) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "bessel_k1e(x)",
	.sample = "f32[n=3, 4] in 0.25..12; f32[8] of 0 0.0625 2 2.125 40 700 -1 inf",
};
OP(aten_special_airy_ai){
	.schema = "aten.special_airy_ai(Tensor x) -> Tensor",
	.promote = PROMOTE_FLOAT,
	.expand = "airy_ai(x)",
	.sample = "f32[n=3, 4] in -12..12; f32[9] of 0 -4 -4.125 2 2.125 -0.5 50 200 -90",
};
