/* Conversions. */
#include "ops/onnx/priv.h"

#include <math.h>

Node onnx_to_f8(Build *b, Node x, DType d, bool saturate)
{
	Node wide = dtype_is_float(aten_dtype(b, x)) ? aten_wide(b, x) : b_convert(b, x, DT_f32);
	if (!wide.i)
		return wide;
	double most = dtype_max(d);
	if (saturate) {
		Node y =
			b_bin_scalar(b, OP_minimum, b_bin_scalar(b, OP_maximum, wide, -most), most);
		return b_convert(b, y, d);
	}
	if (d != DT_f8e4m3)
		return b_convert(b, wide, d);
	/* the last value that rounds to the greatest one is halfway to the next, which is even */
	Node beyond = b_bin_scalar(b, OP_gt, b_un(b, OP_abs, wide), 464);
	return b_convert(b, b_select(b, beyond, aten_like(b, wide, (double)NAN), wide), d);
}

static Node cast(Build *b, Node n, Node x, DType d)
{
	if (dtype_is_narrow(d) && dtype_size(d) == 1)
		return onnx_to_f8(b, x, d, node_bool(b->g, n, "saturate"));
	return b_convert(b, x, d);
}

static Node build_cast(Build *b, Node n)
{
	Node x = arg(b, n, "input");
	int64_t elem = aten_int(b, n, "elem");
	if (elem)
		return onnx_to_stored(b, x, elem, node_bool(b->g, n, "saturate"),
				      node_str(b->g, n, "round_mode"));
	return cast(b, n, x, aten_dtype_or(b, n, "to", DT_f32));
}

OP(onnx_Cast_6){
	.schema = "onnx.Cast.6(Tensor input, *, ScalarType to, bool saturate=True, str "
		  "round_mode=\"up\", int elem=0) -> Tensor",
	.build = build_cast,
	.no_sample = NODE_TESTS,
};

static Node build_cast_like(Build *b, Node n)
{
	Node x = arg(b, n, "input");
	int64_t elem = aten_int(b, n, "elem1");
	if (elem)
		return onnx_to_stored(b, x, elem, node_bool(b->g, n, "saturate"),
				      node_str(b->g, n, "round_mode"));
	return cast(b, n, x, aten_dtype(b, arg(b, n, "target_type")));
}

OP(onnx_CastLike_15){
	.schema = "onnx.CastLike.15(Tensor input, Tensor target_type, *, bool saturate=True, str "
		  "round_mode=\"up\", int elem1=0) -> Tensor",
	.build = build_cast_like,
	.no_sample = NODE_TESTS,
};

static Node build_bit_cast(Build *b, Node n)
{
	Node x = arg(b, n, "input");
	return onnx_call(b, "aten.view.dtype", &x, 1,
			 (Attr[]){attr_none(), *node_attr(b->g, n, "to")}, 2);
}

OP(onnx_BitCast_26){
	.schema = "onnx.BitCast.26(Tensor input, *, ScalarType to) -> Tensor",
	.build = build_bit_cast,
	.no_sample = NODE_TESTS,
};
