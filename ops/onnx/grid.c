/* Sampling at positions that are computed. */
#include "ops/onnx/common/window.h"
#include "ops/onnx/priv.h"

#include <string.h>

/* ---- grids ---- */

/* Accepts the names of opset 16 too, bilinear and bicubic. */
static Node build_grid_sample(Build *b, Node n)
{
	Node in[] = {arg(b, n, "X"), arg(b, n, "grid")};
	Ir *ir = b->g->ir;
	if (!aten_check_word(b, n, "mode", "linear bilinear nearest cubic bicubic") ||
	    !aten_check_word(b, n, "padding_mode", "zeros border reflection"))
		return (Node){0};
	const char *mode = node_str(b->g, n, "mode"), *padding = node_str(b->g, n, "padding_mode");
	int64_t how = mode[0] == 'n'          ? 1
		      : strstr(mode, "cubic") ? 2
					      : 0,
		outside = padding[0] == 'z'   ? 0
			  : padding[0] == 'b' ? 1
					      : 2;
	Attr attr[] = {attr_none(), attr_none(), attr_int(ir, how), attr_int(ir, outside),
		       attr_bool(node_bool(b->g, n, "align_corners"))};
	return onnx_call(b, "aten.grid_sampler", in, 2, attr, 5);
}

OP(onnx_GridSample_16){
	.schema = "onnx.GridSample.16(Tensor X, Tensor grid, *, bool align_corners=False, str "
		  "mode=\"linear\", str padding_mode=\"zeros\") -> Tensor",
	.aliases = "com_microsoft.GridSample.1",
	.autocast = AUTOCAST_F32,
	.build = build_grid_sample,
	.no_sample = NODE_TESTS,
};

static Node build_affine_grid(Build *b, Node n)
{
	Node theta = arg(b, n, "theta");
	Attr attr[] = {attr_none(), *node_attr(b->g, n, "size"),
		       attr_bool(node_bool(b->g, n, "align_corners"))};
	return onnx_call(b, "aten.affine_grid_generator", &theta, 1, attr, 3);
}

OP(onnx_AffineGrid_20){
	.schema = "onnx.AffineGrid.20(Tensor theta, SymInt[] size, *, bool align_corners=False) -> "
		  "Tensor",
	.build = build_affine_grid,
	.no_sample = NODE_TESTS,
};

/* ---- columns to images ---- */

/* Adds each element of x[N, C * kernel, windows] where its window has it. */
static Node build_col2im(Build *b, Node n)
{
	Node x = arg(b, n, "input");
	uint32_t ns = 0, nblock = 0;
	const Sym *image = node_ints(b->g, n, "image_shape", &ns),
		  *block = node_ints(b->g, n, "block_shape", &nblock);
	int64_t kernel[MAX_SPACE], stride[MAX_SPACE], dilation[MAX_SPACE], pads[2 * MAX_SPACE],
		all = 1;
	Sym dim[MAX_RANK];
	SymTab *t = b_syms(b);
	if (aten_rank(b, x) != 3 || ns != nblock || ns < 1 || 2 + 2 * ns > MAX_RANK)
		return b_error(b, "an operand of rank %u, images of %u and blocks of %u dimensions",
			       aten_rank(b, x), ns, nblock);
	if (!window_ints(b, n, "strides", ns, 1, 1, stride) ||
	    !window_ints(b, n, "dilations", ns, 1, 1, dilation) ||
	    !window_ints(b, n, "pads", 2 * ns, 0, 0, pads))
		return (Node){0};
	for (uint32_t k = 0; k < ns; k++) {
		if (!aten_const(b, block[k], &kernel[k]) || kernel[k] < 1 ||
		    kernel[k] > INT32_MAX || __builtin_mul_overflow(all, kernel[k], &all))
			return b_error(b, "block_shape must be numbers above 0");
	}
	aten_require_multiple(b, b_dim(b, x, 1), all,
			      "Col2Im: the columns are no multiple of the block");
	uint32_t rank = 0;
	dim[rank++] = b_dim(b, x, 0);
	dim[rank++] = sym_divi(t, b_dim(b, x, 1), all);
	for (uint32_t k = 0; k < ns; k++)
		dim[rank++] = block[k];
	for (uint32_t k = 0; k < ns; k++) {
		Sym room = sym_addi(t, image[k], pads[k] + pads[ns + k]);
		dim[rank++] = aten_window_count(
			b, room, b_int(b, dilation[k] * (kernel[k] - 1) + 1), stride[k]);
	}
	x = b_reshape(b, x, rank, dim);
	/* [N, C, *kernel, *windows] as [N, C, *windows, *kernel], the last kernel dimension last */
	uint32_t perm[MAX_RANK] = {0, 1};
	for (uint32_t k = 0; k < ns; k++) {
		perm[2 + k] = 2 + ns + k;
		perm[2 + ns + k] = 2 + k;
	}
	x = b_permute(b, x, perm);
	for (uint32_t k = ns; k-- > 0 && x.i;) {
		Ir *ir = b->g->ir;
		Attr attr[] = {attr_none(),
			       attr_int(ir, 2 + k),
			       attr_sym(image[k]),
			       attr_int(ir, stride[k]),
			       attr_int(ir, dilation[k]),
			       attr_int(ir, pads[k])};
		x = b_node(b, OP_fold, &x, 1, attr, 6);
	}
	return x;
}

OP(onnx_Col2Im_18){
	.schema = "onnx.Col2Im.18(Tensor input, SymInt[] image_shape, int[] block_shape, *, int[]? "
		  "dilations=None, int[]? pads=None, int[]? strides=None) -> Tensor",
	.build = build_col2im,
	.no_sample = NODE_TESTS,
};

/* ---- regions ---- */

/* Calls torchvision's operator, whose regions have the number of their image in front. */
static Node build_roi_align(Build *b, Node n)
{
	Node rois = arg(b, n, "rois"), image = arg(b, n, "batch_indices"), x = arg(b, n, "X");
	Ir *ir = b->g->ir;
	if (!aten_check_word(b, n, "mode", "avg max") ||
	    !aten_check_word(b, n, "coordinate_transformation_mode",
			     "half_pixel output_half_pixel"))
		return (Node){0};
	Node in[] = {x,
		     b_concat(b,
			      (Node[]){b_unsqueeze(b, b_convert(b, image, aten_dtype(b, rois)), 1),
				       rois},
			      2, 1)};
	Attr attr[] = {attr_none(),
		       attr_none(),
		       attr_float(node_float(b->g, n, "spatial_scale")),
		       attr_sym(node_sym(b->g, n, "output_height")),
		       attr_sym(node_sym(b->g, n, "output_width")),
		       attr_int(ir, node_int(b->g, n, "sampling_ratio")),
		       attr_bool(aten_is(b, n, "coordinate_transformation_mode", "half_pixel"))};
	return onnx_call(b,
			 aten_is(b, n, "mode", "max") ? "roi_align_max" : "torchvision.roi_align",
			 in, 2, attr, 7);
}

OP(onnx_RoiAlign_10){
	.schema = "onnx.RoiAlign.10(Tensor X, Tensor rois, Tensor batch_indices, *, str "
		  "coordinate_transformation_mode=\"output_half_pixel\", str mode=\"avg\", "
		  "int output_height=1, int output_width=1, int sampling_ratio=0, "
		  "float spatial_scale=1.0) -> Tensor",
	.build = build_roi_align,
	.no_sample = NODE_TESTS,
};
OP(onnx_RoiAlign_16){
	.schema = "onnx.RoiAlign.16(Tensor X, Tensor rois, Tensor batch_indices, *, str "
		  "coordinate_transformation_mode=\"half_pixel\", str mode=\"avg\", "
		  "int output_height=1, int output_width=1, int sampling_ratio=0, "
		  "float spatial_scale=1.0) -> Tensor",
	.build = build_roi_align,
	.no_sample = NODE_TESTS,
};

/* Reads offsets and a mask of the whole kernel for each output. */
static Node build_deform_conv(Build *b, Node n)
{
	Node x = arg(b, n, "X"), w = arg(b, n, "W"), offset = arg(b, n, "offset"),
	     bias = arg(b, n, "B"), mask = arg(b, n, "mask");
	Ir *ir = b->g->ir;
	int64_t stride[2], dilation[2], pads[4];
	if (aten_rank(b, x) != 4 || aten_rank(b, w) != 4)
		return b_error(b, "operands of rank %u and %u, expected 4", aten_rank(b, x),
			       aten_rank(b, w));
	if (!window_ints(b, n, "strides", 2, 1, 1, stride) ||
	    !window_ints(b, n, "dilations", 2, 1, 1, dilation) ||
	    !window_ints(b, n, "pads", 4, 0, 0, pads))
		return (Node){0};
	if (pads[0] != pads[2] || pads[1] != pads[3])
		return b_error(b, "pads that differ in front and behind are not supported");
	DType d = node_dtype(b->g, x);
	Sym one[] = {b_dim(b, offset, 0), sym_divi(b_syms(b), b_dim(b, offset, 1), 2),
		     b_dim(b, offset, 2), b_dim(b, offset, 3)},
	    out = b_dim(b, w, 0);
	Node in[] = {x, w, offset, mask.i ? mask : b_full(b, d, 1, 4, one),
		     bias.i ? bias : b_full(b, d, 0, 1, &out)};
	Attr attr[] = {attr_none(),
		       attr_none(),
		       attr_none(),
		       attr_none(),
		       attr_none(),
		       attr_int(ir, stride[0]),
		       attr_int(ir, stride[1]),
		       attr_int(ir, pads[0]),
		       attr_int(ir, pads[1]),
		       attr_int(ir, dilation[0]),
		       attr_int(ir, dilation[1]),
		       attr_int(ir, node_int(b->g, n, "group")),
		       attr_int(ir, node_int(b->g, n, "offset_group")),
		       attr_bool(mask.i != 0)};
	return onnx_call(b, "torchvision.deform_conv2d", in, 5, attr, 14);
}

OP(onnx_DeformConv_19){
	.schema = "onnx.DeformConv.19(Tensor X, Tensor W, Tensor offset, Tensor? B, Tensor? mask, "
		  "*, int[]? dilations=None, int group=1, int[]? kernel_shape=None, "
		  "int offset_group=1, int[]? pads=None, int[]? strides=None) -> Tensor",
	.autocast = AUTOCAST_LOW,
	.build = build_deform_conv,
	.no_sample = NODE_TESTS,
};
