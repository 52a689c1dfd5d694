/* Gradients of averages, interpolation and padding. Each is linear and separable: along one axis a
 * matrix, which is what the operator makes of the unit vectors. The gradient is contracted with it.
 */
#include "ops/aten/priv.h"

enum { MAX_SPACE = 3 };

/* ---- one axis ---- */

/* The operator along an axis: unit vectors [in, 1, in] to [in, 1, out]. */
typedef Node AxisFn(Build *b, Node units, Node n, uint32_t k, Sym out);

/* Returns the unit vectors of dtype d, [n, 1, n]. */
static Node units(Build *b, DType d, Sym n)
{
	Shape s = shape_of(3, (Sym[]){n, b_int(b, 1), n});
	return b_convert(
		b,
		b_bin(b, OP_eq, aten_iota_dim(b, &s, 0, DT_i64), aten_iota_dim(b, &s, 2, DT_i64)),
		d);
}

/* Sums along dim of g: over out, g[out] * m[in, 1, out]. */
static Node contracted(Build *b, Node g, uint32_t dim, Node m)
{
	if (!g.i || !m.i)
		return (Node){0};
	uint32_t pair[1][2] = {{dim, 1}};
	m = b_squeeze(b, m, 1);
	g = b_contract(b, g, m, NULL, 0, (const uint32_t(*)[2])pair, 1);
	return aten_move_dim(b, g, aten_rank(b, g) - 1, dim);
}

/* Computes the gradient of an operand with extents in[] along the last ns dims. */
static Node adjoint(Build *b, Node n, const char *grad, uint32_t ns, const Sym *in, AxisFn *fn)
{
	Node g = arg(b, n, grad);
	DType d = aten_dtype(b, g);
	uint32_t rank = aten_rank(b, g);
	if (rank < ns || !dtype_is_float(d))
		return b_error(b, "a gradient of %s and rank %u over %u dims", dtype_name(d), rank,
			       ns);
	g = aten_wide(b, g);
	for (uint32_t k = 0; k < ns && g.i; k++) {
		uint32_t dim = rank - ns + k;
		Node e = units(b, node_dtype(b->g, g), in[k]);
		g = contracted(b, g, dim, fn(b, e, n, k, b_dim(b, g, (int)dim)));
	}
	return g.i ? b_convert(b, g, d) : g;
}

/* Takes the extents of operand "self". */
static Node adjoint_of_self(Build *b, Node n, uint32_t ns, AxisFn *fn)
{
	Node x = arg(b, n, "self");
	Shape s = aten_shape(b, x);
	if (s.rank < ns)
		return b_error(b, "an operand of rank %u over %u dims", s.rank, ns);
	return adjoint(b, n, "grad_output", ns, s.dim + (s.rank - ns), fn);
}

/* ---- averages ---- */

static Node adaptive_axis(Build *b, Node e, Node n, uint32_t k, Sym out)
{
	(void)n, (void)k;
	Attr attr[] = {attr_none(), attr_ints(&out, 1)};
	return b_node(b, OP_aten_adaptive_avg_pool1d, &e, 1, attr, 2);
}
static Node build_adaptive_backward(Build *b, Node n)
{
	return adjoint_of_self(b, n, aten_named_dims(b, n), adaptive_axis);
}
OP(aten__adaptive_avg_pool2d_backward){
	.schema = "aten._adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> "
		  "Tensor",
	.build = build_adaptive_backward,
	.sample = "f32[n=2, 3, 2, 3], f32[n, 3, 5, 4]",
	.overloads = (const Overload[]){
		{.schema = "aten._adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> "
			   "Tensor",
		 .sample = "f32[n=2, 1, 2, 3, 1], f32[n, 1, 3, 4, 2]"},
	},
};

/* Pools by a window of one row, so that the divisor may be given. */
static Node avg_axis(Build *b, Node e, Node n, uint32_t k, Sym out)
{
	(void)out;
	uint32_t ns = node_op(b->g, n) == OP_aten_avg_pool3d_backward ? 3 : 2, len = 0;
	int64_t kernel[MAX_SPACE], stride[MAX_SPACE], pad[MAX_SPACE];
	node_ints(b->g, n, "stride", &len);
	if (!aten_ints(b, n, "kernel_size", ns, 1, kernel) ||
	    !aten_ints(b, n, len ? "stride" : "kernel_size", ns, 1, stride) ||
	    !aten_ints(b, n, "padding", ns, 0, pad))
		return (Node){0};
	Sym one = b_int(b, 1), zero = b_int(b, 0);
	Attr divisor = *node_attr(b->g, n, "divisor_override");
	if (divisor.kind != ATTR_none && k > 0)
		divisor = attr_sym(one); /* once, not along each axis */
	Attr attr[] = {attr_none(),
		       attr_ints((Sym[]){one, b_int(b, kernel[k])}, 2),
		       attr_ints((Sym[]){one, b_int(b, stride[k])}, 2),
		       attr_ints((Sym[]){zero, b_int(b, pad[k])}, 2),
		       *node_attr(b->g, n, "ceil_mode"),
		       *node_attr(b->g, n, "count_include_pad"),
		       divisor};
	return b_node(b, OP_aten_avg_pool2d, &e, 1, attr, 7);
}
static Node build_avg_backward(Build *b, Node n)
{
	return adjoint_of_self(b, n, aten_named_dims(b, n), avg_axis);
}
OP(aten_avg_pool2d_backward){
	.schema = "aten.avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] "
		  "kernel_size, int[2] stride, int[2] padding, bool ceil_mode, bool "
		  "count_include_pad, int? divisor_override) -> Tensor",
	.build = build_avg_backward,
	.sample = "f32[n=2, 1, 3, 3], f32[n, 1, 6, 5], kernel_size=[3, 2], stride=[2, 2], "
		  "padding=[1, 1], ceil_mode=false, count_include_pad=true, divisor_override=none; "
		  "f32[1, 1, 3, 3], f32[1, 1, 6, 5], kernel_size=[3, 2], stride=[2, 2], "
		  "padding=[1, 1], ceil_mode=false, count_include_pad=false, "
		  "divisor_override=none; "
		  "f32[1, 3, 2], f32[1, 6, 5], kernel_size=[2, 3], stride=[], padding=[0, 0], "
		  "ceil_mode=true, count_include_pad=true, divisor_override=none; "
		  "f32[1, 3, 1], f32[1, 6, 5], kernel_size=[2, 3], stride=[], padding=[0, 0], "
		  "ceil_mode=false, count_include_pad=true, divisor_override=5",
	.overloads = (const Overload[]){
		{.schema = "aten.avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] "
			   "kernel_size, int[3] stride, int[3] padding, bool ceil_mode, bool "
			   "count_include_pad, int? divisor_override) -> Tensor",
		 .sample = "f32[n=2, 1, 2, 2, 2], f32[n, 1, 3, 3, 4], kernel_size=[2, 2, 3], "
			   "stride=[1, 1, 2], padding=[0, 0, 1], ceil_mode=false, "
			   "count_include_pad=false, divisor_override=none"},
	},
};

/* ---- padding ---- */

static Node pad_axis(Build *b, Node e, Node n, uint32_t k, Op op)
{
	uint32_t len;
	const Sym *pad = node_ints(b->g, n, "padding", &len);
	uint32_t want =
		op_schema(node_op(b->g, n))->arg[op_arg_index(node_op(b->g, n), "padding")].size;
	if (!aten_check_length(b, n, "padding", want))
		return (Node){0};
	Attr attr[] = {attr_none(),
		       attr_ints(pad + len - 2 - 2 * k, 2)}; /* the last dim comes first */
	return b_node(b, op, &e, 1, attr, 2);
}
static Node reflection_axis(Build *b, Node e, Node n, uint32_t k, Sym out)
{
	(void)out;
	return pad_axis(b, e, n, k, OP_aten_reflection_pad1d);
}
static Node replication_axis(Build *b, Node e, Node n, uint32_t k, Sym out)
{
	(void)out;
	return pad_axis(b, e, n, k, OP_aten_replication_pad1d);
}
static Node build_reflection_backward(Build *b, Node n)
{
	return adjoint_of_self(b, n, aten_named_dims(b, n), reflection_axis);
}
static Node build_replication_backward(Build *b, Node n)
{
	return adjoint_of_self(b, n, aten_named_dims(b, n), replication_axis);
}
OP(aten_reflection_pad1d_backward){
	.schema = "aten.reflection_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] "
		  "padding) -> Tensor",
	.build = build_reflection_backward,
	.sample = "f32[n=2, 2, 7], f32[n, 2, 4], padding=[2, 1]",
	.overloads = (const Overload[]){
		{.schema = "aten.reflection_pad2d_backward(Tensor grad_output, Tensor self, "
			   "SymInt[4] padding) -> Tensor",
		 .sample = "f32[n=2, 1, 5, 6], f32[n, 1, 3, 4], padding=[1, 1, 2, 0]"},
		{.schema = "aten.reflection_pad3d_backward(Tensor grad_output, Tensor self, "
			   "SymInt[6] padding) -> Tensor",
		 .sample = "f32[n=2, 1, 3, 4, 5], f32[n, 1, 2, 3, 3], padding=[1, 1, 0, 1, 1, 0]"},
		{.schema = "aten.replication_pad1d_backward(Tensor grad_output, Tensor self, "
			   "SymInt[2] padding) -> Tensor",
		 .build = build_replication_backward},
		{.schema = "aten.replication_pad2d_backward(Tensor grad_output, Tensor self, "
			   "SymInt[4] padding) -> Tensor",
		 .build = build_replication_backward,
		 .sample = "f32[n=2, 1, 5, 6], f32[n, 1, 3, 4], padding=[1, 1, 2, 0]"},
		{.schema = "aten.replication_pad3d_backward(Tensor grad_output, Tensor self, "
			   "SymInt[6] padding) -> Tensor",
		 .build = build_replication_backward,
		 .sample = "f32[n=2, 1, 3, 4, 5], f32[n, 1, 2, 3, 3], padding=[1, 1, 0, 1, 1, 0]"},
	},
};

/* ---- interpolation ---- */

/* Returns the given scale of axis k: scales, scales_h, ... */
static Attr scale_of(Build *b, Node n, uint32_t k, uint32_t ns)
{
	static const char *const names[][3] = {{"scales", NULL, NULL},
					       {"scales_h", "scales_w", NULL},
					       {"scales_d", "scales_h", "scales_w"}};
	return *node_attr(b->g, n, names[ns - 1][k]);
}

static uint32_t space_of(const Build *b, Node n)
{
	uint32_t len;
	node_ints(b->g, n, "output_size", &len);
	return len;
}

static Node nearest_like(Build *b, Node e, Node n, uint32_t k, Sym out, Op op)
{
	Attr attr[] = {attr_none(), attr_ints(&out, 1), scale_of(b, n, k, space_of(b, n))};
	return b_node(b, op, &e, 1, attr, 3);
}
static Node nearest_axis(Build *b, Node e, Node n, uint32_t k, Sym out)
{
	return nearest_like(b, e, n, k, out, OP_aten_upsample_nearest1d);
}
static Node exact_axis(Build *b, Node e, Node n, uint32_t k, Sym out)
{
	return nearest_like(b, e, n, k, out, OP_aten__upsample_nearest_exact1d);
}
static Node linear_axis(Build *b, Node e, Node n, uint32_t k, Sym out)
{
	Attr attr[] = {attr_none(), attr_ints(&out, 1), *node_attr(b->g, n, "align_corners"),
		       scale_of(b, n, k, space_of(b, n))};
	return b_node(b, OP_aten_upsample_linear1d, &e, 1, attr, 4);
}
/* Calls an operator over two dims, the first of extent one. */
static Node two_axes(Build *b, Node e, Node n, uint32_t k, Sym out, Op op)
{
	Attr attr[] = {attr_none(), attr_ints((Sym[]){b_int(b, 1), out}, 2),
		       *node_attr(b->g, n, "align_corners"), attr_none(),
		       scale_of(b, n, k, space_of(b, n))};
	return b_squeeze(b, b_node(b, op, (Node[]){b_unsqueeze(b, e, 2)}, 1, attr, 5), 2);
}
static Node cubic_axis(Build *b, Node e, Node n, uint32_t k, Sym out)
{
	return two_axes(b, e, n, k, out, OP_aten_upsample_bicubic2d);
}
static Node smooth_linear_axis(Build *b, Node e, Node n, uint32_t k, Sym out)
{
	return two_axes(b, e, n, k, out, OP_aten__upsample_bilinear2d_aa);
}
static Node smooth_cubic_axis(Build *b, Node e, Node n, uint32_t k, Sym out)
{
	return two_axes(b, e, n, k, out, OP_aten__upsample_bicubic2d_aa);
}

static Node resized(Build *b, Node n, AxisFn *fn)
{
	uint32_t len, ns = space_of(b, n);
	const Sym *size = node_ints(b->g, n, "input_size", &len);
	if (ns < 1 || ns > MAX_SPACE || len != ns + 2)
		return b_error(b, "an input of rank %u interpolated over %u dims", len, ns);
	Shape s = shape_of(len, size); /* attributes move */
	Node ct = arg(b, n, "grad_output");
	const Sym *out = node_ints(b->g, n, "output_size", &len);
	if (len != ns)
		return b_error(b, "output_size has %u elements, expected %u", len, ns);
	if (aten_rank(b, ct) != ns + 2)
		return b_error(b, "a gradient of rank %u, expected %u", aten_rank(b, ct), ns + 2);
	for (uint32_t k = 0; k < ns + 2; k++)
		aten_require_equal(b, k < 2 ? s.dim[k] : out[k - 2], node_dim(b->g, ct, k),
				   "the cotangent has the sizes of the result");
	return adjoint(b, n, "grad_output", ns, s.dim + 2, fn);
}
static Node build_nearest_backward(Build *b, Node n)
{
	return resized(b, n, nearest_axis);
}
OP(aten_upsample_nearest1d_backward){
	.schema = "aten.upsample_nearest1d_backward(Tensor grad_output, SymInt[1] output_size, "
		  "SymInt[3] input_size, float? scales=None) -> Tensor",
	.build = build_nearest_backward,
	.sample = "f32[n=2, 1, 7], output_size=[7], input_size=[n, 1, 3]; "
		  "f32[2, 1, 7], output_size=[7], input_size=[2, 1, 3], scales=2.5",
	.overloads = (const Overload[]){
		{.schema = "aten.upsample_nearest2d_backward(Tensor grad_output, SymInt[2] "
			   "output_size, SymInt[4] input_size, float? scales_h=None, "
			   "float? scales_w=None) -> Tensor",
		 .sample = "f32[n=2, 2, 3, 7], output_size=[3, 7], input_size=[n, 2, 5, 3]; "
			   "f32[1, 1, 3, 7], output_size=[3, 7], input_size=[1, 1, 2, 3], "
			   "scales_h=1.5, scales_w=2.5"},
		{.schema = "aten.upsample_nearest3d_backward(Tensor grad_output, SymInt[3] "
			   "output_size, SymInt[5] input_size, float? scales_d=None, "
			   "float? scales_h=None, float? "
			   "scales_w=None) -> Tensor",
		 .sample = "f32[n=2, 1, 3, 4, 2], output_size=[3, 4, 2], "
			   "input_size=[n, 1, 2, 3, 3]; f32[1, 1, 3, 4, 2], output_size=[3, 4, 2], "
			   "input_size=[1, 1, 2, 3, 3], scales_d=1.75, "
			   "scales_h=1.5, scales_w=0.75"},
	},
};
static Node build_exact_backward(Build *b, Node n)
{
	return resized(b, n, exact_axis);
}
OP(aten__upsample_nearest_exact1d_backward){
	.schema = "aten._upsample_nearest_exact1d_backward(Tensor grad_output, SymInt[1] "
		  "output_size, SymInt[3] input_size, float? scales=None) -> Tensor",
	.build = build_exact_backward,
	.sample = "f32[n=2, 1, 7], output_size=[7], input_size=[n, 1, 3]; "
		  "f32[2, 1, 7], output_size=[7], input_size=[2, 1, 3], scales=2.5",
	.overloads = (const Overload[]){
		{.schema = "aten._upsample_nearest_exact2d_backward(Tensor grad_output, SymInt[2] "
			   "output_size, SymInt[4] input_size, float? scales_h=None, float? "
			   "scales_w=None) -> Tensor",
		 .sample = "f32[n=2, 2, 3, 7], output_size=[3, 7], input_size=[n, 2, 5, 3]; "
			   "f32[1, 1, 3, 7], output_size=[3, 7], input_size=[1, 1, 2, 3], "
			   "scales_h=1.5, scales_w=2.5"},
		{.schema = "aten._upsample_nearest_exact3d_backward(Tensor grad_output, SymInt[3] "
			   "output_size, SymInt[5] input_size, float? scales_d=None, float? "
			   "scales_h=None, float? scales_w=None) -> Tensor",
		 .sample = "f32[n=2, 1, 3, 4, 2], output_size=[3, 4, 2], "
			   "input_size=[n, 1, 2, 3, 3]; f32[1, 1, 3, 4, 2], output_size=[3, 4, 2], "
			   "input_size=[1, 1, 2, 3, 3], scales_d=1.75, "
			   "scales_h=1.5, scales_w=0.75"},
	},
};
static Node build_linear_backward(Build *b, Node n)
{
	return resized(b, n, linear_axis);
}
OP(aten_upsample_linear1d_backward){
	.schema = "aten.upsample_linear1d_backward(Tensor grad_output, SymInt[1] output_size, "
		  "SymInt[3] input_size, bool align_corners, float? scales=None) -> Tensor",
	.build = build_linear_backward,
	.sample = "f32[n=2, 1, 7], output_size=[7], input_size=[n, 1, 3], align_corners=false; "
		  "f32[2, 1, 7], output_size=[7], input_size=[2, 1, 3], align_corners=true; "
		  "f32[2, 1, 7], output_size=[7], input_size=[2, 1, 3], align_corners=false, "
		  "scales=2.5",
	.overloads = (const Overload[]){
		{.schema = "aten.upsample_bilinear2d_backward(Tensor grad_output, SymInt[2] "
			   "output_size, SymInt[4] input_size, bool align_corners, "
			   "float? scales_h=None, float? "
			   "scales_w=None) -> Tensor",
		 .sample = "f32[n=2, 2, 3, 7], output_size=[3, 7], input_size=[n, 2, 5, 3], "
			   "align_corners=false; f32[1, 1, 3, 7], output_size=[3, 7], "
			   "input_size=[1, 1, 5, 3], align_corners=true; "
			   "f32[1, 1, 3, 7], output_size=[3, 7], input_size=[1, 1, 2, 3], "
			   "align_corners=false, scales_h=1.75, scales_w=2.5"},
		{.schema = "aten.upsample_trilinear3d_backward(Tensor grad_output, SymInt[3] "
			   "output_size, SymInt[5] input_size, bool align_corners, "
			   "float? scales_d=None, float? scales_h=None, "
			   "float? scales_w=None) -> Tensor",
		 .sample = "f32[n=2, 1, 3, 4, 2], output_size=[3, 4, 2], "
			   "input_size=[n, 1, 2, 3, 3], align_corners=false; "
			   "f32[1, 1, 3, 4, 2], output_size=[3, 4, 2], input_size=[1, 1, 2, 3, 3], "
			   "align_corners=true; f32[1, 1, 3, 4, 2], output_size=[3, 4, 2], "
			   "input_size=[1, 1, 2, 3, 3], align_corners=false, "
			   "scales_d=1.75, scales_h=1.5, scales_w=0.75"},
	},
};
static Node build_cubic_backward(Build *b, Node n)
{
	return resized(b, n, cubic_axis);
}
OP(aten_upsample_bicubic2d_backward){
	.schema = "aten.upsample_bicubic2d_backward(Tensor grad_output, SymInt[2] output_size, "
		  "SymInt[4] input_size, bool align_corners, float? scales_h=None, float? "
		  "scales_w=None) -> Tensor",
	.build = build_cubic_backward,
	.sample = "f32[n=2, 2, 3, 7], output_size=[3, 7], input_size=[n, 2, 5, 3], "
		  "align_corners=false; f32[1, 1, 3, 7], output_size=[3, 7], "
		  "input_size=[1, 1, 5, 3], align_corners=true; "
		  "f32[1, 1, 3, 7], output_size=[3, 7], input_size=[1, 1, 2, 3], "
		  "align_corners=false, scales_h=1.75, scales_w=2.5",
};
static Node build_smooth_linear_backward(Build *b, Node n)
{
	return resized(b, n, smooth_linear_axis);
}
static Node build_smooth_cubic_backward(Build *b, Node n)
{
	return resized(b, n, smooth_cubic_axis);
}
OP(aten__upsample_bilinear2d_aa_backward){
	.schema = "aten._upsample_bilinear2d_aa_backward(Tensor grad_output, SymInt[2] "
		  "output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, "
		  "float? scales_w=None) -> Tensor",
	.build = build_smooth_linear_backward,
	.sample = "f32[n=2, 2, 3, 7], output_size=[3, 7], input_size=[n, 2, 5, 3], "
		  "align_corners=false; f32[1, 1, 3, 7], output_size=[3, 7], "
		  "input_size=[1, 1, 5, 3], align_corners=true; "
		  "f32[1, 1, 3, 7], output_size=[3, 7], input_size=[1, 1, 2, 3], "
		  "align_corners=false, scales_h=1.75, scales_w=2.5",
	.overloads = (const Overload[]){
		{.schema = "aten._upsample_bicubic2d_aa_backward(Tensor grad_output, SymInt[2] "
			   "output_size, SymInt[4] input_size, bool align_corners, "
			   "float? scales_h=None, float? scales_w=None) -> Tensor",
		 .build = build_smooth_cubic_backward},
	},
};
