/* Gradients of convolutions: convolutions again. With the conv primitive
 *   y[n, g, o, q] = sum over c, k of x[n, g, c, i] w[g, o, c, k] where i * e = q * s + k * d - p
 * the gradient of x swaps s and e and reads the kernel from its end; that of w swaps s and d and
 * sums over n. A transposed convolution is the gradient of x of another one, so the same two serve
 * it. */
#include "ops/aten/priv.h"

enum { MAX_SPACE = 3 };

typedef struct {
	uint32_t ns; /* spatial dims */
	int64_t groups;
	int64_t stride[MAX_SPACE], dilation[MAX_SPACE];
	Sym pad[MAX_SPACE];
} ConvGrad;

typedef struct {
	const int64_t *stride, *dilation, *dilation_in;
	const Sym *low, *size;
} ConvMap;

static Attr ints(Build *b, const int64_t *v, uint32_t n)
{
	Sym *s = arena_calloc(b->g->ir->ctx->scratch, n, sizeof *s);
	for (uint32_t k = 0; k < n; k++)
		s[k] = b_int(b, v[k]);
	return attr_ints(s, n);
}

/* Builds the primitive on x [N, G, C, *in] and w [G, O, C, *k]. */
static Node conv(Build *b, Node x, Node w, uint32_t ns, ConvMap m)
{
	if (!x.i || !w.i)
		return (Node){0};
	Attr attr[] = {attr_none(),
		       attr_none(),
		       ints(b, m.stride, ns),
		       ints(b, m.dilation, ns),
		       ints(b, m.dilation_in, ns),
		       attr_ints(m.low, ns),
		       attr_ints(m.size, ns),
		       attr_dtype(dtype_compute(node_dtype(b->g, x)))};
	return b_node(b, OP_conv, (Node[]){x, w}, 2, attr, 8);
}

/* Splits dimension dim into (groups, rest). */
static Node split_groups(Build *b, Node x, uint32_t dim, int64_t groups)
{
	Shape s = aten_shape(b, x);
	if (!x.i || groups < 1 || !sym_divides(b_syms(b), groups, s.dim[dim]))
		return b_error(b, "%s channels in %lld groups",
			       x.i ? sym_str(b_syms(b), s.dim[dim]) : "no", (long long)groups);
	Sym rest = sym_divi(b_syms(b), s.dim[dim], groups);
	s.dim[dim] = b_int(b, groups);
	s = shape_insert(s, dim + 1, rest);
	return aten_reshape(b, x, &s);
}

/* Returns [a, b, c, *space] with the first three dims in another order. */
static Node reordered(Build *b, Node x, uint32_t d0, uint32_t d1, uint32_t d2)
{
	uint32_t perm[MAX_RANK] = {d0, d1, d2};
	for (uint32_t k = 3; k < aten_rank(b, x); k++)
		perm[k] = k;
	return b_permute(b, x, perm);
}

static const int64_t ones[MAX_SPACE] = {1, 1, 1};

static Node input_gradient(Build *b, Node g, Node x, Node w, const ConvGrad *a, bool transposed)
{
	SymTab *t = b_syms(b);
	Sym low[MAX_SPACE];
	Shape sx = aten_shape(b, x);
	const Sym *size = sx.dim + 2;
	g = split_groups(b, g, 1, a->groups);
	w = split_groups(b, w, 0, a->groups);
	if (transposed) /* w [G, C, O, *k] */
		return aten_flatten(
			b,
			conv(b, g, w, a->ns, (ConvMap){a->stride, a->dilation, ones, a->pad, size}),
			1, 2);
	w = b_transpose(b, w, 1, 2);
	for (uint32_t k = 0; k < a->ns; k++) {
		Sym last = sym_addi(t, b_dim(b, w, 3 + (int)k), -1);
		w = b_reverse(b, w, 3 + (int)k);
		low[k] = sym_sub(t, sym_muli(t, last, a->dilation[k]), a->pad[k]);
	}
	Node y = conv(b, g, w, a->ns, (ConvMap){ones, a->dilation, a->stride, low, size});
	return aten_flatten(b, y, 1, 2);
}

/* Computes the weight's gradient. `wide` is the side that the kernel moves over: the input, of a
 * transposed convolution the gradient. */
static Node weight_gradient(Build *b, Node wide, Node narrow, Node w, const ConvGrad *a)
{
	Shape sw = aten_shape(b, w);
	wide = reordered(b, split_groups(b, wide, 1, a->groups), 2, 1, 0);
	narrow = reordered(b, split_groups(b, narrow, 1, a->groups), 1, 2, 0);
	Node y = conv(b, wide, narrow, a->ns,
		      (ConvMap){a->dilation, a->stride, ones, a->pad, sw.dim + 2});
	return aten_flatten(b, reordered(b, y, 1, 2, 0), 0, 1);
}

/* Tells whether output_mask[k] asks for a result. */
static bool asked(Build *b, Node n, uint32_t k)
{
	const Attr *mask = node_attr(b->g, n, "output_mask");
	return mask->kind == ATTR_bools && k < mask->n && mask->bools[k];
}

/* Requires that along each dim the gradient is as long as the result; that of a transposed
 * convolution is as long as what gives the input by a plain one, and output_padding adds to it.
 * PyTorch does not look where there is no element. */
static bool gradient_fits(Build *b, Node n, Node g, Node x, Node w, const ConvGrad *a)
{
	SymTab *t = b_syms(b);
	bool transposed = node_bool(b->g, n, "transposed");
	Sym extra[MAX_SPACE];
	uint32_t errors = b->g->ir->ctx->nerror;
	TRY(aten_syms(b, n, "output_padding", a->ns, 0, extra));
	if (aten_is_empty(b, g) || aten_is_empty(b, x))
		return true;
	for (uint32_t k = 0; k < a->ns && b->g->ir->ctx->nerror == errors; k++) {
		Sym in = b_dim(b, x, 2 + (int)k),
		    reach = sym_muli(t, sym_addi(t, b_dim(b, w, 2 + (int)k), -1), a->dilation[k]),
		    out;
		if (transposed)
			out = sym_add(t,
				      sym_add(t, sym_muli(t, sym_addi(t, in, -1), a->stride[k]),
					      sym_addi(t, reach, 1)),
				      sym_sub(t, extra[k], sym_muli(t, a->pad[k], 2)));
		else
			out = aten_window_count(b, sym_add(t, in, sym_muli(t, a->pad[k], 2)),
						sym_addi(t, reach, 1), a->stride[k]);
		aten_require_equal(b, b_dim(b, g, 2 + (int)k), out,
				   "grad_output is of the convolution's result");
	}
	return b->g->ir->ctx->nerror == errors;
}

static Node build_convolution_backward(Build *b, Node n)
{
	Node g = arg(b, n, "grad_output"), x = arg(b, n, "input"), w = arg(b, n, "weight");
	uint32_t rank = aten_rank(b, x);
	bool transposed = node_bool(b->g, n, "transposed");
	ConvGrad a = {.ns = rank - 2, .groups = aten_int(b, n, "groups")};
	if (rank < 3 || a.ns > MAX_SPACE || aten_rank(b, w) != rank || aten_rank(b, g) != rank)
		return b_error(b, "gradient of a convolution with operands of rank %u, %u and %u",
			       aten_rank(b, g), rank, aten_rank(b, w));
	if (!aten_ints(b, n, "stride", a.ns, 1, a.stride) ||
	    !aten_syms(b, n, "padding", a.ns, 0, a.pad) ||
	    !aten_ints(b, n, "dilation", a.ns, 1, a.dilation))
		return (Node){0};
	for (uint32_t k = 0; k < a.ns; k++)
		if (a.stride[k] < 1 || a.dilation[k] < 1)
			return b_error(b, "stride and dilation of a convolution must be positive");
	if (!gradient_fits(b, n, g, x, w, &a))
		return (Node){0};
	Node none = b_full(b, DT_f32, 0, 1, (Sym[]){b_int(b, 0)});
	Node y[3] = {none, none, none};
	if (asked(b, n, 0))
		y[0] = input_gradient(b, g, x, w, &a, transposed);
	if (asked(b, n, 1))
		y[1] = weight_gradient(b, transposed ? g : x, transposed ? x : g, w, &a);
	if (asked(b, n, 2))
		y[2] = aten_sum(b, g, ((1u << rank) - 1) & ~2u, false);
	return y[0].i && y[1].i && y[2].i ? b_tuple(b, y, 3) : (Node){0};
}
OP(aten_convolution_backward){
	.schema = "aten.convolution_backward(Tensor grad_output, Tensor input, Tensor weight, "
		  "SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
		  "bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) "
		  "-> (Tensor, Tensor, Tensor)",
	.build = build_convolution_backward,
	.sample = "f32[n=2, 4, 4, 3], f32[n, 4, 5, 4], f32[4, 2, k=2, l=2], bias_sizes=[4], "
		  "stride=[1, 1], padding=[0, 0], dilation=[1, 1], transposed=false, "
		  "output_padding=[0, 0], groups=2, output_mask=[true, true, "
		  "true]; f32[1, 2, 3, 3], f32[1, 3, 6, 5], f32[2, 3, 3, 2], bias_sizes=[2], "
		  "stride=[2, 2], padding=[1, 1], dilation=[1, 2], transposed=false, "
		  "output_padding=[0, 0], groups=1, "
		  "output_mask=[true, true, true]; f32[1, 4, 7], f32[1, 2, 3], f32[2, 2, 3], "
		  "bias_sizes=[4], stride=[2], padding=[0], dilation=[1], transposed=true, "
		  "output_padding=[0], groups=2, "
		  "output_mask=[true, true, true]; f32[1, 2, 4], f32[1, 3, 5], f32[2, 3, 2], "
		  "bias_sizes=none, stride=[1], padding=[0], dilation=[1], transposed=false, "
		  "output_padding=[0], groups=1, "
		  "output_mask=[false, true, false]",
};
