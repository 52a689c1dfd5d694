/* Convolutions. */
#include "ops/onnx/common/window.h"
#include "ops/onnx/priv.h"

static Attr ints(Build *b, const int64_t *v, uint32_t n)
{
	Sym *s = ARENA_ARRAY(b->g->ir->ctx->scratch, Sym, n);
	for (uint32_t k = 0; k < n; k++)
		s[k] = b_int(b, v[k]);
	return attr_ints(s, n);
}

/* Reads the extents of w[out, in, *kernel] as constants, which kernel_shape says too if it is
 * there. Returns false after b_error. */
static bool kernel_of(Build *b, Node n, Node w, uint32_t ns, int64_t *kernel)
{
	int64_t stated[MAX_SPACE];
	bool ok = ns >= 1 && ns <= MAX_SPACE && aten_rank(b, w) == ns + 2;
	if (!ok)
		b_error(b, "weights of rank %u for %u spatial dimensions", aten_rank(b, w), ns);
	TRY(ok);
	for (uint32_t k = 0; k < ns; k++)
		TRY(aten_const(b, b_dim(b, w, (int)k + 2), &kernel[k]));
	TRY(window_ints(b, n, "kernel_shape", ns, 0, 0, stated));
	for (uint32_t k = 0; k < ns && ok; k++)
		ok = !stated[k] || stated[k] == kernel[k];
	if (!ok)
		b_error(b, "kernel_shape differs from the shape of the weights");
	return ok;
}

static Node convolution(Build *b, Node x, Node w, Node bias, const Window *v, const int64_t *pad,
			bool transposed, int64_t groups)
{
	static const int64_t zeros[MAX_SPACE];
	Attr attr[] = {attr_none(),
		       attr_none(),
		       attr_none(),
		       ints(b, v->stride, v->ns),
		       ints(b, pad ? pad : zeros, v->ns),
		       ints(b, v->dilation, v->ns),
		       attr_bool(transposed),
		       ints(b, zeros, v->ns),
		       attr_int(b->g->ir, groups)};
	return onnx_call(b, "aten.convolution", (Node[]){x, w, bias}, 3, attr, 9);
}

Node onnx_conv(Build *b, Node n, Node x, Node w, Node bias)
{
	uint32_t ns = aten_rank(b, x) - 2;
	int64_t kernel[MAX_SPACE], pad[MAX_SPACE];
	Window v;
	if (!kernel_of(b, n, w, ns, kernel) || !window_read(b, n, x, kernel, ns, &v))
		return (Node){0};
	bool even = window_is_even(b, &v, pad);
	if (!even)
		x = window_pad(b, x, &v, aten_like(b, x, 0));
	return convolution(b, x, w, bias, &v, even ? pad : NULL, false, aten_int(b, n, "group"));
}

static Node build_conv(Build *b, Node n)
{
	return onnx_conv(b, n, arg(b, n, "X"), arg(b, n, "W"), arg(b, n, "B"));
}

OP(onnx_Conv_1){
	.schema = "onnx.Conv.1(Tensor X, Tensor W, Tensor? B, *, str auto_pad=\"NOTSET\", int[]? "
		  "dilations=None, int group=1, int[]? kernel_shape=None, int[]? pads=None, "
		  "int[]? strides=None) -> Tensor",
	.autocast = AUTOCAST_LOW,
	.build = build_conv,
	.no_sample = NODE_TESTS,
};

/* ---- with a state ---- */

/* Builds a convolution of each channel with the elements up to the present one: those before the
 * first are the state, zeros without one. The new state is the last elements. */
static Node build_causal_conv(Build *b, Node n)
{
	Node x = arg(b, n, "input"), w = arg(b, n, "weight"), past = arg(b, n, "past_state");
	int64_t kernel, channels;
	SymTab *t = b_syms(b);
	if (aten_rank(b, x) != 3 || aten_rank(b, w) != 3)
		return b_error(b, "operands of rank %u and %u, expected 3", aten_rank(b, x),
			       aten_rank(b, w));
	if (!aten_check_word(b, n, "activation", "none silu swish") ||
	    !aten_const(b, b_dim(b, w, 2), &kernel) || !aten_const(b, b_dim(b, x, 1), &channels))
		return (Node){0};
	if (kernel < 1)
		return b_error(b, "weights without elements");
	if (!past.i)
		past = b_full(b, node_dtype(b->g, x), 0, 3,
			      (Sym[]){b_dim(b, x, 0), b_dim(b, x, 1), b_int(b, kernel - 1)});
	Node all = kernel == 1 ? x : b_concat(b, (Node[]){past, x}, 2, 2);
	const Window v = {.ns = 1, .kernel = {kernel}, .stride = {1}, .dilation = {1}};
	Node y = convolution(b, all, w, arg(b, n, "bias"), &v, NULL, false, channels);
	if (!aten_is(b, n, "activation", "none"))
		y = onnx_call(b, "aten.silu", &y, 1, NULL, 0);
	Sym end = b_dim(b, all, 2);
	Node last = b_slice(b, all, 2, sym_addi(t, end, 1 - kernel), end, b_int(b, 1));
	return y.i ? b_tuple(b, (Node[]){y, last}, 2) : y;
}

OP(onnx_CausalConvWithState_27){
	.schema = "onnx.CausalConvWithState.27(Tensor input, Tensor weight, Tensor? bias, Tensor? "
		  "past_state, *, str activation=\"none\") -> (Tensor, Tensor)",
	.autocast = AUTOCAST_LOW,
	.build = build_causal_conv,
	.no_sample = NODE_TESTS,
};

/* ---- transposed ---- */

/* Computes the borders that are cut off, and those that are added behind: low[], high[] as of
 * b_pad. Returns false after b_error. */
static bool crops(Build *b, Node n, Node x, const Window *v, const int64_t *more, Sym *low,
		  Sym *high)
{
	SymTab *t = b_syms(b);
	uint32_t ns = v->ns;
	int64_t pads[2 * MAX_SPACE], shape[MAX_SPACE];
	bool stated = aten_has(b, n, "output_shape");
	const char *how = node_str(b->g, n, "auto_pad");
	TRY(window_ints(b, n, "pads", 2 * ns, 0, INT32_MIN, pads) &&
	    window_ints(b, n, "output_shape", ns, 0, 0, shape));
	for (uint32_t k = 0; k < ns; k++) {
		Sym full = sym_addi(
			t, sym_muli(t, sym_addi(t, b_dim(b, x, (int)k + 2), -1), v->stride[k]),
			window_reach(v, k));
		Sym behind = b_int(b, more[k]), front = b_int(b, how[0] == 'N' ? pads[k] : 0),
		    back = b_int(b, how[0] == 'N' ? pads[ns + k] : 0);
		if (stated || how[0] == 'S') {
			Sym want = stated ? b_int(b, shape[k])
					  : sym_muli(t, b_dim(b, x, (int)k + 2), v->stride[k]);
			Sym total = sym_sub(t, sym_add(t, full, behind), want);
			Sym half = sym_divi(t, total, 2), rest = sym_sub(t, total, half);
			bool upper = how[0] == 'S' && how[5] == 'U';
			front = upper ? half : rest;
			back = upper ? rest : half;
		}
		low[k + 2] = sym_muli(t, front, -1);
		high[k + 2] = sym_sub(t, behind, back);
	}
	return true;
}

static Node build_conv_transpose(Build *b, Node n)
{
	Node x = arg(b, n, "X"), w = arg(b, n, "W"), bias = arg(b, n, "B");
	uint32_t ns = aten_rank(b, x) - 2;
	int64_t kernel[MAX_SPACE], more[MAX_SPACE], same[MAX_SPACE];
	Sym low[MAX_RANK] = {b_int(b, 0), b_int(b, 0)}, high[MAX_RANK] = {b_int(b, 0), b_int(b, 0)};
	Window v = {.ns = ns};
	if (!aten_check_word(b, n, "auto_pad", "NOTSET VALID SAME_UPPER SAME_LOWER") ||
	    !kernel_of(b, n, w, ns, kernel) || !window_ints(b, n, "strides", ns, 1, 1, v.stride) ||
	    !window_ints(b, n, "dilations", ns, 1, 1, v.dilation) ||
	    !window_ints(b, n, "output_padding", ns, 0, 0, more))
		return (Node){0};
	for (uint32_t k = 0; k < ns; k++)
		v.kernel[k] = kernel[k];
	if (!crops(b, n, x, &v, more, low, high))
		return (Node){0};
	bool even = true;
	for (uint32_t k = 0; k < ns; k++)
		even = even && low[k + 2].i == high[k + 2].i &&
		       sym_is_const(b_syms(b), low[k + 2], &same[k]) && same[k] <= 0 &&
		       (same[k] = -same[k], true);
	if (even)
		return convolution(b, x, w, bias, &v, same, true, aten_int(b, n, "group"));
	Node y = convolution(b, x, w, (Node){0}, &v, NULL, true, aten_int(b, n, "group"));
	y = b_pad(b, y, low, high, aten_like(b, x, 0));
	return bias.i ? b_bin(b, OP_add, y, aten_per_dim(b, bias, y, 1)) : y;
}

OP(onnx_ConvTranspose_1){
	.schema = "onnx.ConvTranspose.1(Tensor X, Tensor W, Tensor? B, *, str auto_pad=\"NOTSET\", "
		  "int[]? dilations=None, int group=1, "
		  "int[]? kernel_shape=None, int[]? output_padding=None, int[]? output_shape=None, "
		  "int[]? pads=None, int[]? strides=None) -> Tensor",
	.autocast = AUTOCAST_LOW,
	.build = build_conv_transpose,
	.no_sample = NODE_TESTS,
};
