/* ATen convolutions, all through the conv primitive [N, G, C, *sp] x [G, O, C, *k]. */
#include "ops/aten/priv.h"

enum { MAX_SPACE = 3 };

typedef struct {
	uint32_t ns; /* spatial dims */
	int64_t groups;
	int64_t stride[MAX_SPACE], dilation[MAX_SPACE], dilation_in[MAX_SPACE];
	Sym low[MAX_SPACE], high[MAX_SPACE]; /* padding, signed */
} ConvArgs;

static Attr ints_attr(Build *b, const int64_t *v, uint32_t n)
{
	Sym *s = arena_calloc(b->g->ir->ctx->scratch, n, sizeof *s);
	for (uint32_t k = 0; k < n; k++)
		s[k] = b_int(b, v[k]);
	return attr_ints(s, n);
}

/* Builds the convolution, of complex operands as four products of parts. */
static Node conv_node(Build *b, Node x, Node w, Attr *attr)
{
	Node y[2][2];
	DType d = node_dtype(b->g, x);
	if (!dtype_is_complex(d) || !dtype_is_complex(node_dtype(b->g, w)))
		return b_node(b, OP_conv, (Node[]){x, w}, 2, attr, 9);
	attr[7] = attr_dtype(dtype_compute(dtype_real(d)));
	attr[8] = attr_none();
	for (uint32_t k = 0; k < 4; k++)
		y[k / 2][k % 2] = b_node(
			b, OP_conv, (Node[]){b_part(b, x, k / 2), b_part(b, w, k % 2)}, 2, attr, 9);
	return b_complex(b, b_bin(b, OP_sub, y[0][0], y[1][1]), b_bin(b, OP_add, y[0][1], y[1][0]));
}

/* Convolves x [N, G*C, *sp] with w [G, O, C, *k]: result [N, G*O, *size], not rounded where it
 * is wide. */
static Node conv_core(Build *b, Node x, Node w, const ConvArgs *a, bool wide)
{
	SymTab *t = b_syms(b);
	if (!x.i || !w.i)
		return (Node){0};
	Shape sx = aten_shape(b, x), sw = aten_shape(b, w), g = {.rank = sx.rank + 1};
	Sym size[MAX_SPACE];
	g.dim[0] = sx.dim[0];
	g.dim[1] = sw.dim[0];
	g.dim[2] = sw.dim[2];
	for (uint32_t k = 0; k < a->ns; k++) {
		Sym in = g.dim[3 + k] = sx.dim[2 + k];
		/* (in - 1) * dilation_in + 1 + pads - dilation * (kernel - 1) - 1 */
		Sym span = sym_muli(t, sym_addi(t, in, -1), a->dilation_in[k]);
		span = sym_add(t, span, sym_add(t, a->low[k], a->high[k]));
		span = sym_sub(t, span,
			       sym_muli(t, sym_addi(t, sw.dim[3 + k], -1), a->dilation[k]));
		size[k] = sym_addi(t, sym_divi(t, span, a->stride[k]), 1);
		aten_require_le(b, b_int(b, 0), size[k], "convolution output size");
	}
	x = aten_reshape(b, x, &g);
	if (!x.i)
		return (Node){0};
	Attr attr[] = {attr_none(),
		       attr_none(),
		       ints_attr(b, a->stride, a->ns),
		       ints_attr(b, a->dilation, a->ns),
		       ints_attr(b, a->dilation_in, a->ns),
		       attr_ints(a->low, a->ns),
		       attr_ints(size, a->ns),
		       attr_dtype(dtype_compute(node_dtype(b->g, x))),
		       wide ? attr_dtype(dtype_compute(node_dtype(b->g, x))) : attr_none()};
	Node y = conv_node(b, x, w, attr);
	return aten_flatten(b, y, 1, 2);
}

/* Returns what a kernel of that extent reaches over, without its first element. */
static Sym kernel_reach(const Build *b, Sym extent, int64_t dilation)
{
	return sym_muli(b_syms(b), sym_addi(b_syms(b), extent, -1), dilation);
}

/* Makes [G, O, C, *k] of [G*O, C, *k]. */
static Node split_groups(Build *b, Node w, int64_t groups)
{
	Shape s = aten_shape(b, w);
	Sym rest = sym_divi(b_syms(b), s.dim[0], groups);
	s.dim[0] = b_int(b, groups);
	s = shape_insert(s, 1, rest);
	return aten_reshape(b, w, &s);
}

/* Returns the weight, with the kernel flipped, by which a transposed convolution reads its input
 * dilated by the stride. */
static Node transposed_weight(Build *b, Node w, ConvArgs *a, const Sym *extra)
{
	SymTab *t = b_syms(b);
	Shape s = aten_shape(b, w);
	w = b_transpose(b, split_groups(b, w, a->groups), 1, 2); /* [G, O, C, *k] */
	for (uint32_t k = 0; k < a->ns; k++) {
		w = b_reverse(b, w, 3 + (int)k);
		a->low[k] = sym_sub(t, kernel_reach(b, s.dim[2 + k], a->dilation[k]), a->low[k]);
		a->high[k] = sym_add(t, a->low[k], extra[k]);
		a->dilation_in[k] = a->stride[k];
		a->stride[k] = 1;
	}
	return w;
}

/* Requires PyTorch's conditions, `forward` being false for a transposed convolution: the kernel
 * fits into the padded input, the weight makes channels, and the input has elements unless there
 * are no channels or no batch at all. */
static void require_room(Build *b, Node x, Node w, const ConvArgs *a, bool forward)
{
	SymTab *t = b_syms(b);
	Sym most = sym_sub(t, b_int(b, 1), sym_mul(t, b_dim(b, x, 0), b_dim(b, x, 1)));
	for (uint32_t k = 0; k < a->ns; k++) {
		Sym in = b_dim(b, x, 2 + (int)k),
		    span = sym_addi(t, kernel_reach(b, b_dim(b, w, 2 + (int)k), a->dilation[k]), 1);
		if (forward)
			aten_require_le(b, span, sym_add(t, in, sym_add(t, a->low[k], a->high[k])),
					"the kernel of a convolution fits into its padded input");
		if (sym_le(t, b_int(b, 1), in) != YES)
			aten_require_le(b, b_int(b, 1), sym_max(t, in, most),
					"the input of a convolution has elements");
	}
	aten_require_le(b, b_int(b, 1), b_dim(b, w, forward ? 0 : 1),
			"the weight of a convolution makes channels");
}

static Node add_bias(Build *b, Node y, Node bias)
{
	return bias.i ? b_bin(b, OP_add, y, aten_per_dim(b, bias, y, 1)) : y;
}

/* Builds it with or without a batch dim; `extra` is output_padding of a transposed convolution,
 * else NULL. */
static Node conv(Build *b, Node x, Node w, Node bias, ConvArgs *a, const Sym *extra)
{
	uint32_t rank = a->ns + 2, rx = aten_rank(b, x);
	if (!x.i || !w.i)
		return (Node){0};
	if (node_rank(b->g, w) != rank || (rx != rank && rx != rank - 1))
		return b_error(b,
			       "convolution over %u dims of an input of rank %u with a weight of "
			       "rank %u",
			       a->ns, rx, node_rank(b->g, w));
	for (uint32_t k = 0; k < a->ns; k++) {
		a->dilation_in[k] = 1;
		if (a->stride[k] < 1 || a->dilation[k] < 1)
			return b_error(b, "stride and dilation of a convolution must be positive");
	}
	if (rx != rank)
		x = b_unsqueeze(b, x, 0);
	Sym channels = b_dim(b, x, 1), per = b_dim(b, w, extra ? 0 : 1);
	Sym want = extra ? per : sym_muli(b_syms(b), per, a->groups);
	if (a->groups < 1 || !sym_divides(b_syms(b), a->groups, b_dim(b, w, 0)) ||
	    sym_eq(b_syms(b), channels, want) == NO)
		return b_error(b, "convolution of %s channels with a weight for %s in %lld groups",
			       sym_str(b_syms(b), channels), sym_str(b_syms(b), want),
			       (long long)a->groups);
	require_room(b, x, w, a, !extra);
	w = extra ? transposed_weight(b, w, a, extra) : split_groups(b, w, a->groups);
	/* Exported with channels, and called without any: the file's type has the weight's
	 * channels, PyTorch's result none. */
	if (!sym_is(b_syms(b), channels, 0))
		aten_require_le(b, b_int(b, 1), channels,
				"a convolution that is exported with channels has some");
	if (sym_is(b_syms(b), channels, 0)) { /* of no channels PyTorch makes none, whatever dtype
	                                         the weight has, and adds no bias */
		w = b_slice(b, b_convert(b, w, node_dtype(b->g, x)), 1, b_int(b, 0), b_int(b, 0),
			    b_int(b, 1));
		bias = (Node){0};
	}
	DType d = node_dtype(b->g, x);
	bool wide =
		bias.i && dtype_is_float(d) && dtype_compute(d) != d && node_dtype(b->g, bias) == d;
	Node y = add_bias(b, conv_core(b, x, w, a, wide), bias);
	y = wide && y.i ? b_convert(b, y, d) : y;
	return rx != rank ? b_squeeze(b, y, 0) : y;
}

static bool read_args(Build *b, Node n, uint32_t ns, ConvArgs *a)
{
	a->ns = ns;
	a->groups = aten_int(b, n, "groups");
	return aten_ints(b, n, "stride", ns, 1, a->stride) &&
	       aten_ints(b, n, "dilation", ns, 1, a->dilation);
}

static Node plain(Build *b, Node n, uint32_t ns)
{
	ConvArgs a;
	if (!read_args(b, n, ns, &a) || !aten_syms(b, n, "padding", ns, 0, a.low) ||
	    !aten_syms(b, n, "padding", ns, 0, a.high))
		return (Node){0};
	return conv(b, arg(b, n, "input"), arg(b, n, "weight"), arg(b, n, "bias"), &a, NULL);
}
static Node build_conv(Build *b, Node n)
{
	return plain(b, n, aten_named_dims(b, n));
}

/* Builds a convolution with padding = "valid" or "same". */
static Node named_padding(Build *b, Node n, uint32_t ns)
{
	ConvArgs a;
	Node w = arg(b, n, "weight");
	bool same = aten_is(b, n, "padding", "same");
	if (aten_rank(b, w) != ns + 2)
		return b_error(b, "convolution with a weight of rank %u", aten_rank(b, w));
	if (!aten_check_word(b, n, "padding", "valid same") || !read_args(b, n, ns, &a))
		return (Node){0};
	for (uint32_t k = 0; k < ns; k++) {
		Sym total = same ? kernel_reach(b, b_dim(b, w, 2 + (int)k), a.dilation[k])
				 : b_int(b, 0);
		a.low[k] = sym_divi(b_syms(b), total, 2);
		a.high[k] = sym_sub(b_syms(b), total, a.low[k]);
	}
	return conv(b, arg(b, n, "input"), w, arg(b, n, "bias"), &a, NULL);
}
static Node build_conv_padding(Build *b, Node n)
{
	return named_padding(b, n, aten_named_dims(b, n));
}

static Node build_convolution_mode(Build *b, Node n)
{
	uint32_t rank = aten_rank(b, arg(b, n, "weight"));
	if (rank < 3 || rank > 2 + MAX_SPACE)
		return b_error(b, "convolution with a weight of rank %u", rank);
	return named_padding(b, n, rank - 2);
}

static Node transposed(Build *b, Node n, uint32_t ns)
{
	ConvArgs a;
	Sym extra[MAX_SPACE];
	if (!read_args(b, n, ns, &a) || !aten_syms(b, n, "padding", ns, 0, a.low) ||
	    !aten_syms(b, n, "output_padding", ns, 0, extra))
		return (Node){0};
	for (uint32_t k = 0; k < ns; k++) {
		int64_t most = a.stride[k] > a.dilation[k] ? a.stride[k] : a.dilation[k], v;
		bool known = a.stride[k] > 0 && a.dilation[k] > 0 &&
			     sym_is_const(b_syms(b), extra[k], &v);
		if (known &&
		    !aten_check_within(b, "output_padding", (double)v, 0, (double)(most - 1)))
			return (Node){0};
	}
	return conv(b, arg(b, n, "input"), arg(b, n, "weight"), arg(b, n, "bias"), &a, extra);
}
static Node build_conv_transpose(Build *b, Node n)
{
	return transposed(b, n, aten_named_dims(b, n));
}
OP(aten_conv_transpose1d){
	.schema = "aten.conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, "
		  "SymInt[1] stride=[1], SymInt[1] padding=[0], SymInt[1] output_padding=[0], "
		  "SymInt groups=1, SymInt[1] dilation=[1]) -> Tensor",
	.autocast = AUTOCAST_LOW,
	.build = build_conv_transpose,
	.sample = "f32[n=2, 4, m=3], f32[4, 2, 3], f32[4], groups=2, stride=[2], padding=[1], "
		  "output_padding=[1]; f32[2, 4], f32[2, 3, k=2], dilation=[2]",
	.overloads = (const Overload[]){
		{.schema = "aten.conv_transpose2d.input(Tensor input, Tensor weight, Tensor? "
			   "bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], "
			   "SymInt[2] "
			   "output_padding=[0, 0], SymInt groups=1, "
			   "SymInt[2] dilation=[1, 1]) -> Tensor",
		 .sample = "f32[n=2, 2, 3, 2], f32[2, 3, 3, 2], f32[3], stride=[2, 3], "
			   "padding=[1, 0], output_padding=[1, 2]; f32[1, 4, 2, 3], "
			   "f32[4, 1, k=2, l=2], groups=2, dilation=[2, 1]"},
		{.schema = "aten.conv_transpose3d.input(Tensor input, Tensor weight, Tensor? "
			   "bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], "
			   "SymInt[3] "
			   "output_padding=[0, 0, 0], SymInt groups=1, "
			   "SymInt[3] dilation=[1, 1, 1]) -> Tensor",
		 .sample = "f32[n=2, 2, 2, 2, 2], f32[2, 1, 2, 1, 3], f32[1], stride=[2, 1, 2], "
			   "padding=[0, 0, 1]"},
	},
};

static Node build_convolution(Build *b, Node n)
{
	uint32_t rank = aten_rank(b, arg(b, n, "weight"));
	if (rank < 3 || rank > 2 + MAX_SPACE)
		return b_error(b, "convolution with a weight of rank %u", rank);
	if (node_bool(b->g, n, "transposed"))
		return transposed(b, n, rank - 2);
	Sym extra[MAX_SPACE]; /* nothing reads it, PyTorch looks at it all the same */
	return aten_syms(b, n, "output_padding", rank - 2, 0, extra) ? plain(b, n, rank - 2)
								     : (Node){0};
}
OP(aten_conv1d){
	.schema = "aten.conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] "
		  "stride=[1], SymInt[1] padding=[0], SymInt[1] dilation=[1], SymInt groups=1) "
		  "-> Tensor",
	.autocast = AUTOCAST_LOW,
	.build = build_conv,
	.sample = "f32[n=2, 4, m=6], f32[6, 2, 3], f32[6], groups=2; "
		  "f32[3, 7], f32[2, 3, 2], stride=[2], padding=[1], dilation=[2]; "
		  "f32[n=2, 0, 4], f32[6, 0, 3], f32[6], groups=2",
	.overloads = (const Overload[]){
		{.schema = "aten.conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] "
			   "stride=[1, 1], SymInt[2] padding=[0, 0], SymInt[2] dilation=[1, 1], "
			   "SymInt groups=1) -> Tensor",
		 .sample = "f32[n=2, 2, 5, 4], f32[3, 2, 3, 2], f32[3]; "
			   "f32[1, 4, 5, 6], f32[4, 2, 2, 3], stride=[2, 1], padding=[1, 2], "
			   "dilation=[1, 2], groups=2"},
		{.schema = "aten.conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] "
			   "stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], "
			   "SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
		 .sample = "f32[n=2, 2, 3, 3, 4], f32[2, 2, 2, 2, 3], f32[2], padding=[1, 0, 1], "
			   "stride=[2, 1, 1]"},
		{.schema = "aten.conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, "
			   "SymInt[1] stride=[1], str padding=\"valid\", SymInt[1] dilation=[1], "
			   "SymInt groups=1) -> "
			   "Tensor",
		 .build = build_conv_padding,
		 .sample = "f32[n=2, 4, m=6], f32[4, 2, 4], f32[4], padding=\"same\", "
			   "dilation=[1], groups=2; f32[1, 2, 6], f32[3, 2, k=3], stride=[2]"},
		{.schema = "aten.conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, "
			   "SymInt[2] stride=[1, 1], str padding=\"valid\", "
			   "SymInt[2] dilation=[1, 1], SymInt "
			   "groups=1) -> Tensor",
		 .build = build_conv_padding,
		 .sample = "f32[n=2, 2, 5, 4], f32[3, 2, k=2, l=3], padding=\"same\", "
			   "dilation=[2, 1]; f32[1, 2, 5, 4], f32[3, 2, 2, 3], f32[3], "
			   "padding=\"valid\", stride=[2, 1]"},
		{.schema = "aten.conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, "
			   "SymInt[3] stride=[1, 1, 1], str padding=\"valid\", "
			   "SymInt[3] dilation=[1, 1, 1], SymInt "
			   "groups=1) -> Tensor",
		 .build = build_conv_padding,
		 .sample = "f32[n=2, 1, 3, 3, 4], f32[2, 1, 2, 3, 1], f32[2], padding=\"same\""},
		{.schema = "aten._convolution_mode(Tensor input, Tensor weight, Tensor? bias, "
			   "SymInt[] stride, str padding, SymInt[] dilation, "
			   "SymInt groups) -> Tensor",
		 .build = build_convolution_mode,
		 .sample = "f32[n=2, 4, m=6], f32[4, 2, 4], f32[4], stride=[1], padding=\"same\", "
			   "dilation=[1], groups=2; f32[1, 2, 5, 4], f32[3, 2, 2, 3], none, "
			   "stride=[2, 1], padding=\"valid\", dilation=[1, 1], groups=1"},
		{.schema = "aten.convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] "
			   "stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] "
			   "output_padding, SymInt groups) -> Tensor",
		 .build = build_convolution,
		 .sample = "f32[n=2, 4, 6], f32[6, 2, 3], f32[6], stride=[2], padding=[1], "
			   "dilation=[1], transposed=false, output_padding=[0], groups=2; "
			   "f32[n=2, 2, 3, 2], f32[2, 3, k=3, l=2], none, stride=[2, 3], "
			   "padding=[1, 0], dilation=[1, 2], transposed=true, "
			   "output_padding=[1, 2], groups=1"},
		{.schema = "aten._convolution.deprecated(Tensor input, Tensor weight, Tensor? "
			   "bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
			   "bool transposed, int[] output_padding, SymInt groups, bool benchmark, "
			   "bool deterministic, bool cudnn_enabled) -> Tensor",
		 .build = build_convolution,
		 .sample = "f32[n=2, 4, 6], f32[6, 2, 3], f32[6], stride=[2], padding=[1], "
			   "dilation=[1], transposed=false, output_padding=[0], groups=2, "
			   "benchmark=false, deterministic=false, cudnn_enabled=false"},
		{.schema = "aten._convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] "
			   "stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] "
			   "output_padding, SymInt groups, bool benchmark, bool deterministic, "
			   "bool cudnn_enabled, bool allow_tf32) -> Tensor",
		 .build = build_convolution,
		 .sample = "f32[n=2, 4, 6], f32[6, 2, 3], f32[6], stride=[2], padding=[1], "
			   "dilation=[1], transposed=false, output_padding=[0], groups=2, "
			   "benchmark=false, deterministic=false, cudnn_enabled=false, "
			   "allow_tf32=false; f32[n=2, 2, 3, 2], f32[2, 3, 3, 2], none, "
			   "stride=[2, 3], padding=[1, 0], dilation=[1, 2], transposed=true, "
			   "output_padding=[1, 2], groups=1, benchmark=false, "
			   "deterministic=false, cudnn_enabled=false, allow_tf32=false"},
	},
};
