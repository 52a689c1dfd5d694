/* What models quantised by torchao hold: a scale and a zero point for each block of elements, and
 * products of narrow integers. */
#include <math.h>

#include "ops/quant/quantized_priv.h"

/* ---- products of narrow integers ---- */

/* Returns i8 [M, K] x i8 [K, N], summed in i32. */
static Node int_matmul(Build *b, Node x, Node y)
{
	if (!x.i || !y.i || node_rank(b->g, x) != 2 || node_rank(b->g, y) != 2)
		return b_error(b, "operands of rank %u and %u, expected 2", aten_rank(b, x),
			       aten_rank(b, y));
	Sym one = b_int(b, 1), zero = b_int(b, 0);
	Attr none = attr_ints(NULL, 0);
	Attr attr[] = {attr_none(),         attr_none(),       none, none, attr_ints(&one, 1),
		       attr_ints(&zero, 1), attr_dtype(DT_i32)};
	return b_node(b, OP_contract, (Node[]){x, y}, 2, attr, 7);
}

static Node build_int_mm(Build *b, Node n)
{
	return int_matmul(b, arg(b, n, "self"), arg(b, n, "mat2"));
}

static Node build_torchao_int_matmul(Build *b, Node n)
{
	return int_matmul(b, arg(b, n, "a"), arg(b, n, "b"));
}
OP(aten__int_mm){
	.schema = "aten._int_mm(Tensor self, Tensor mat2) -> Tensor",
	.build = build_int_mm,
	.sample = "i8[17, 8] in -99..99, i8[8, 8] in -99..99",
	.overloads = (const Overload[]){
		{.schema = "torchao.int_matmul(Tensor a, Tensor b) -> Tensor",
		 .build = build_torchao_int_matmul},
	},
};

static Node build_torchao_int_scaled_matmul(Build *b, Node n)
{
	return quant_step(b, OP_mul, build_torchao_int_matmul(b, n), arg(b, n, "scales1"));
}
OP(torchao_int_scaled_matmul){
	.schema = "torchao.int_scaled_matmul(Tensor a, Tensor b, Tensor scales1) -> Tensor",
	.build = build_torchao_int_scaled_matmul,
	.sample = "i8[17, 8] in -99..99, i8[8, 8] in -99..99, f32[17, 1] in 0.1..1",
};

/* ---- a scale for each block: block_size says how many elements share one ---- */

typedef struct {
	Shape split, scale; /* x as (blocks, within a block) per dim, and the shape of a scale */
	uint32_t within;    /* dims of `split` that are inside blocks */
	uint32_t inner;     /* those of them beside one that counts blocks */
} Blocks;

static bool blocks_of(Build *b, Node n, Node x, Blocks *r)
{
	SymTab *t = b_syms(b);
	Shape s = aten_shape(b, x);
	uint32_t len = 0;
	const Sym *size = node_ints(b->g, n, "block_size", &len);
	*r = (Blocks){0};
	if (!x.i || len != s.rank) {
		b_error(b, "block_size of %u dims for an operand of rank %u", len, s.rank);
		return false;
	}
	for (uint32_t k = 0; k < s.rank; k++) {
		int64_t block;
		bool whole = sym_eq(t, size[k], s.dim[k]) == YES, one = sym_is(t, size[k], 1);
		if (!whole && !one) {
			if (!aten_const(b, size[k], &block))
				return false;
			if (block < 1 || !sym_divides(t, block, s.dim[k])) {
				b_error(b, "an extent of %s in blocks of %lld",
					sym_str(t, s.dim[k]), (long long)block);
				return false;
			}
			/* this dim is two, and there are those behind it */
			if (r->split.rank + 1 + s.rank - k > MAX_RANK) {
				b_error(b, "blocks in so many of %u dims are not supported",
					s.rank);
				return false;
			}
			Sym count = sym_divi(t, s.dim[k], block);
			r->scale.dim[r->split.rank] = r->split.dim[r->split.rank] = count;
			r->inner |= 1u << ++r->split.rank;
		}
		Sym extent = whole || one ? s.dim[k] : size[k];
		r->scale.dim[r->split.rank] = one ? extent : b_int(b, 1);
		r->within |= (uint32_t)!one << r->split.rank;
		r->split.dim[r->split.rank++] = extent;
	}
	r->scale.rank = r->split.rank;
	return true;
}

static Node build_quantize_affine(Build *b, Node n)
{
	Node x = arg(b, n, "input"), zero = arg(b, n, "zero_point"), scale = arg(b, n, "scale");
	Blocks k;
	if (!scale.i || !blocks_of(b, n, x, &k))
		return (Node){0};
	if (!zero.i)
		return b_error(b, "quantisation without zero point is not supported");
	Shape s = aten_shape(b, x);
	zero = aten_reshape(b, zero, &k.scale);
	Node inverse = quant_inverse(b, aten_reshape(b, scale, &k.scale));
	Node v = quantize(b, n, aten_reshape(b, x, &k.split), inverse, zero,
			  aten_dtype_or(b, n, "output_dtype", DT_none));
	return v.i ? aten_reshape(b, v, &s) : v;
}
OP(torchao_quantize_affine){
	.schema = "torchao.quantize_affine(Tensor input, SymInt[] block_size, Tensor scale, "
		  "Tensor? zero_point, ScalarType output_dtype, Scalar? quant_min=None, Scalar? "
		  "quant_max=None) -> Tensor",
	.build = build_quantize_affine,
	.sample = "f32[n=2, 8] in -2..2, block_size=[1, 4], f32[n, 2] in 0.0625..0.5, "
		  "i32[n, 2] in -3..3, output_dtype=i8, quant_min=-8, quant_max=7; "
		  "f32[2, 8] in -2..2, block_size=[2, 2], f32[1, 4] in 0.0625..0.5, "
		  "i32[1, 4] in -3..3, output_dtype=i8",
};

static Node build_dequantize_affine(Build *b, Node n)
{
	Node x = arg(b, n, "input"), zero = arg(b, n, "zero_point"), scale = arg(b, n, "scale");
	DType d = aten_dtype_or(b, n, "output_dtype", DT_f32);
	Blocks k;
	if (!scale.i || !blocks_of(b, n, x, &k))
		return (Node){0};
	if (zero.i)
		zero = b_convert(b, aten_reshape(b, zero, &k.scale), d);
	Shape s = aten_shape(b, x);
	scale = aten_reshape(b, scale, &k.scale);
	Node v = dequantize(b, b_convert(b, aten_reshape(b, x, &k.split), d), scale, zero, d);
	return v.i ? aten_reshape(b, v, &s) : v;
}
OP(torchao_dequantize_affine){
	.schema = "torchao.dequantize_affine(Tensor input, SymInt[] block_size, Tensor scale, "
		  "Tensor? zero_point, ScalarType input_dtype, Scalar? quant_min=None, Scalar? "
		  "quant_max=None, ScalarType output_dtype=float) -> Tensor",
	.build = build_dequantize_affine,
	.sample = "i8[n=2, 8] in -8..7, block_size=[1, 4], f32[n, 2] in 0.0625..0.5, "
		  "i32[n, 2] in -3..3, input_dtype=i8, quant_min=-8, quant_max=7",
};

static double number_or(Build *b, Node n, const char *name, double otherwise)
{
	const Attr *a = node_attr(b->g, n, name);
	int64_t v;
	if (a->kind == ATTR_float)
		return a->f;
	return a->kind == ATTR_int && aten_const(b, a->s, &v) ? (double)v : otherwise;
}

/* Returns the greater of the scales that either side asks for. */
static Node symmetric_scale(Build *b, Node n, Node low, Node high, double least, double most)
{
	if (aten_is(b, n, "mapping_type", "SYMMETRIC")) {
		high = b_bin(b, OP_maximum, b_un(b, OP_neg, low), high);
		return quant_step_scalar(b, OP_div, high, (most - least) / 2);
	}
	if (!aten_is(b, n, "mapping_type", "SYMMETRIC_NO_CLIPPING_ERR"))
		return b_error(b, "unknown mapping type");
	low = quant_step_scalar(b, OP_div, low, least);
	high = quant_step_scalar(b, OP_div, high, most);
	return b_select(b, b_bin(b, OP_gt, low, high), low, high);
}

static double smallest_normal(DType d)
{
	return d == DT_f16 ? 6.103515625e-05 : d == DT_f64 ? 2.2250738585072014e-308 : 0x1p-126;
}

static Node build_choose_qparams_affine(Build *b, Node n)
{
	Node x = arg(b, n, "input"), low, high, zero;
	Blocks k;
	double least, most;
	if (!blocks_of(b, n, x, &k))
		return (Node){0};
	DType d = node_dtype(b->g, x);
	if (!quant_bounds(b, aten_dtype_or(b, n, "target_dtype", DT_i8), &least, &most))
		return (Node){0};
	least = number_or(b, n, "quant_min", least);
	most = number_or(b, n, "quant_max", most);
	uint32_t dims = k.within ? k.within : (1u << k.split.rank) - 1; /* no dim: all of them */
	quant_range(b, aten_reshape(b, x, &k.split), dims, &low, &high);
	bool asymmetric = aten_is(b, n, "mapping_type", "ASYMMETRIC");
	Node scale = asymmetric ? quant_step_scalar(b, OP_div, quant_step(b, OP_sub, high, low),
						    most - least)
				: symmetric_scale(b, n, low, high, least, most);
	scale = b_bin_scalar(b, OP_maximum, scale, number_or(b, n, "eps", smallest_normal(d)));
	if (asymmetric) {
		zero = b_un(b, OP_round, quant_step(b, OP_div, low, scale));
		zero = quant_step(b, OP_sub, aten_like(b, zero, least), zero);
		zero = b_bin_scalar(b, OP_maximum, zero, least);
		zero = b_bin_scalar(b, OP_minimum, zero, most);
	} else {
		Shape s = aten_shape(b, scale);
		zero = b_full(b, d, trunc((most + least + 1) / 2), s.rank, s.dim);
	}
	uint32_t drop = node_bool(b->g, n, "keepdim") ? k.inner : dims;
	scale = aten_squeeze_dims(b, scale, drop);
	zero = aten_squeeze_dims(b, zero, drop);
	if (!scale.i || !zero.i)
		return (Node){0};
	DType dz = aten_dtype_or(b, n, "zero_point_dtype", asymmetric ? DT_i32 : d);
	scale = b_convert(b, scale, aten_dtype_or(b, n, "scale_dtype", d));
	return b_tuple(b, (Node[]){scale, b_convert(b, zero, dz)}, 2);
}
OP(torchao_choose_qparams_affine){
	.schema = "torchao.choose_qparams_affine(Tensor? input, str mapping_type, SymInt[] "
		  "block_size, ScalarType target_dtype, Scalar? quant_min=None, Scalar? "
		  "quant_max=None, float? eps=None, ScalarType? scale_dtype=None, ScalarType? "
		  "zero_point_dtype=None, bool keepdim=False) -> (Tensor, Tensor)",
	.build = build_choose_qparams_affine,
	.sample = "f32[n=2, 8] in -2..3, mapping_type=\"ASYMMETRIC\", block_size=[1, 4], "
		  "target_dtype=i8, quant_min=-8, quant_max=7, eps=1e-06, scale_dtype=f32, "
		  "zero_point_dtype=i32; "
		  "f32[n=2, 8] in -2..3, mapping_type=\"SYMMETRIC\", block_size=[1, 4], "
		  "target_dtype=i8, quant_min=-8, quant_max=7, eps=1e-06, scale_dtype=f32, "
		  "zero_point_dtype=i32; "
		  "f32[n=2, 8] in -2..3, mapping_type=\"SYMMETRIC_NO_CLIPPING_ERR\", "
		  "block_size=[1, 4], target_dtype=i8, quant_min=-8, quant_max=7, eps=1e-06, "
		  "scale_dtype=f32, zero_point_dtype=i32; "
		  "f32[2, 8] in -2..3, mapping_type=\"ASYMMETRIC\", block_size=[2, 2], "
		  "target_dtype=i8",
};
