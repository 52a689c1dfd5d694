/* ATen pooling: windows and reductions. */
#include "ops/aten/priv.h"
#include "ops/rules/batch.h"

#include <math.h>
#include <string.h>

enum { MAX_SPACE = 3 };

typedef struct {
	uint32_t ns, first; /* spatial dims: first, first + 1, ... */
	int64_t kernel[MAX_SPACE], stride[MAX_SPACE], pad[MAX_SPACE], dilation[MAX_SPACE];
	Sym in[MAX_SPACE], out[MAX_SPACE];
	bool ceil;
} PoolShape;

/* Returns the number of windows; in ceil mode the last one still starts inside the input or its
 * left padding. */
static Sym pooled(Build *b, const PoolShape *p, uint32_t k)
{
	SymTab *t = b_syms(b);
	int64_t span = p->dilation[k] * (p->kernel[k] - 1) + 1;
	Sym room = sym_addi(t, p->in[k], 2 * p->pad[k] - span);
	Sym down = sym_addi(t, sym_divi(t, room, p->stride[k]), 1);
	if (!p->ceil)
		return down;
	Sym up = sym_addi(t, sym_ceildiv(t, room, b_int(b, p->stride[k])), 1);
	Sym last = sym_divi(t, sym_addi(t, p->in[k], p->pad[k] - 1), p->stride[k]);
	return sym_min(t, up, sym_addi(t, last, 1));
}

/* Requires, as PyTorch, that what is pooled has elements: in the dims from `first` on, which
 * leaves out that of the batch. */
static bool require_elements(Build *b, Node x, uint32_t first)
{
	uint32_t errors = b->g->ir->ctx->nerror;
	aten_require_elements(b, x, aten_dims_from(b, x, first), "what is pooled has elements");
	return b->g->ir->ctx->nerror == errors;
}

/* Reads all but how many windows there are. */
static bool read_windows(Build *b, Node n, Node x, uint32_t ns, PoolShape *p)
{
	uint32_t rank = aten_rank(b, x), len = 0;
	bool dilated = op_arg_index(node_op(b->g, n), "dilation") >= 0;
	*p = (PoolShape){.ns = ns, .ceil = node_bool(b->g, n, "ceil_mode")};
	if (!x.i || (rank != ns + 1 && rank != ns + 2)) {
		b_error(b, "pooling over %u dims of an operand of rank %u", ns, rank);
		return false;
	}
	p->first = rank - ns;
	for (uint32_t k = 0; k < ns; k++)
		p->dilation[k] = 1;
	node_ints(b->g, n, "stride", &len);
	TRY(aten_ints(b, n, "kernel_size", ns, 1, p->kernel));
	TRY(aten_ints(b, n, len ? "stride" : "kernel_size", ns, 1, p->stride));
	TRY(aten_ints(b, n, "padding", ns, 0, p->pad));
	TRY(!dilated || aten_ints(b, n, "dilation", ns, 1, p->dilation));
	for (uint32_t k = 0; k < ns; k++) {
		if (p->kernel[k] < 1 || p->stride[k] < 1 || p->dilation[k] < 1) {
			b_error(b, "kernel, stride and dilation of a pooling must be positive");
			return false;
		}
		int64_t span = p->dilation[k] * (p->kernel[k] - 1) + 1;
		TRY(aten_check_within(b, "the padding of a pooling", (double)p->pad[k], 0,
				      (double)(span / 2)));
		p->in[k] = b_dim(b, x, (int)(p->first + k));
	}
	return true;
}

static bool read_pool(Build *b, Node n, Node x, uint32_t ns, PoolShape *p)
{
	uint32_t errors = b->g->ir->ctx->nerror;
	TRY(read_windows(b, n, x, ns, p) && require_elements(b, x, p->first - 1));
	for (uint32_t k = 0; k < ns && b->g->ir->ctx->nerror == errors; k++) {
		p->out[k] = pooled(b, p, k);
		aten_require_le(b, b_int(b, 1), p->out[k], "pooling output size");
	}
	return b->g->ir->ctx->nerror == errors;
}

/* Returns [..., *out, *kernel]; what lies outside the input is `fill`, or zero without one. */
static Node windows(Build *b, Node x, const PoolShape *p, Node fill)
{
	SymTab *t = b_syms(b);
	Sym low[MAX_RANK], high[MAX_RANK];
	bool any = false;
	for (uint32_t k = 0; k < aten_rank(b, x); k++)
		low[k] = high[k] = b_int(b, 0);
	for (uint32_t k = 0; k < p->ns; k++) {
		/* Reaches up to (out - 1) * stride + span - pad of the input. */
		int64_t span = p->dilation[k] * (p->kernel[k] - 1) + 1;
		Sym reach = sym_addi(t, sym_muli(t, sym_addi(t, p->out[k], -1), p->stride[k]),
				     span - p->pad[k]);
		low[p->first + k] = b_int(b, p->pad[k]);
		high[p->first + k] = sym_max(t, b_int(b, 0), sym_sub(t, reach, p->in[k]));
		any |= p->pad[k] != 0 || !sym_is(t, high[p->first + k], 0);
	}
	bool padded = any && fill.i;
	if (padded)
		x = b_pad(b, x, low, high, fill);
	for (uint32_t k = 0; k < p->ns; k++)
		x = b_window(b, x, p->first + k, p->kernel[k], p->stride[k], p->dilation[k],
			     padded ? 0 : p->pad[k], p->out[k]);
	return x;
}

static uint32_t window_dims(const PoolShape *p, uint32_t rank)
{
	return ((1u << p->ns) - 1) << rank;
}

/* Returns the least value of a dtype: what pads a maximum, whose value it cannot change. The
 * place of the maximum it can: see place_in_window. */
static Node lowest(Build *b, Node x)
{
	switch (aten_dtype(b, x)) {
	case DT_none:
		return x;
	case DT_i8:
		return b_full_int(b, DT_i8, INT8_MIN, 0, NULL);
	case DT_i16:
		return b_full_int(b, DT_i16, INT16_MIN, 0, NULL);
	case DT_i32:
		return b_full_int(b, DT_i32, INT32_MIN, 0, NULL);
	case DT_i64:
		return b_full_int(b, DT_i64, INT64_MIN, 0, NULL);
	default:
		return aten_like(b, x, dtype_is_float(aten_dtype(b, x)) ? -(double)INFINITY : 0);
	}
}

/* Puts what each of the windows holds back to where it was read, added up; nothing to what was
 * padding. */
static Node unwindows(Build *b, Node w, const PoolShape *p)
{
	for (uint32_t k = p->ns; k-- > 0 && w.i;) {
		Ir *ir = b->g->ir;
		Attr attr[] = {attr_none(),
			       attr_int(ir, p->first + k),
			       attr_sym(p->in[k]),
			       attr_int(ir, p->stride[k]),
			       attr_int(ir, p->dilation[k]),
			       attr_int(ir, p->pad[k])};
		w = b_node(b, OP_fold, &w, 1, attr, 6);
	}
	return w;
}

/* Counts the elements of each window along dim k that lie before the input: [out]. */
static Node outside_before(Build *b, const PoolShape *p, uint32_t k)
{
	Node o = b_bin_scalar(b, OP_mul, b_iota(b, DT_i64, p->out[k]), (double)p->stride[k]);
	Node far =
		b_bin(b, OP_sub, b_full_int(b, DT_i64, p->pad[k] + p->dilation[k] - 1, 0, NULL), o);
	return b_bin_scalar(b, OP_maximum,
			    b_bin_scalar(b, OP_floordiv, far, (double)p->dilation[k]), 0);
}

/* Finds the place of the first of the greatest elements in each window w[..., *out, *kernel],
 * counted over *kernel, NaN being greater than all numbers. Only elements of the input have a
 * part in it: where all of them are as low as what fills the padding, and so place 0 is found,
 * it is the first one that the input has. No element of the input is in front of that. */
static Node place_in_window(Build *b, Node w, const PoolShape *p, uint32_t rank)
{
	Node at = b_arg_reduce(b, true, aten_flatten(b, w, rank, rank + p->ns - 1), rank),
	     first = {0};
	bool padded = false;
	for (uint32_t k = 0; k < p->ns; k++) {
		Node before = aten_per_dim(b, outside_before(b, p, k), at, p->first + k);
		first = k ? b_bin(b, OP_add, b_bin_scalar(b, OP_mul, first, (double)p->kernel[k]),
				  before)
			  : before;
		padded |= p->pad[k] > 0;
	}
	return padded ? b_bin(b, OP_maximum, at, first) : at;
}

/* Gives the cotangent to the first of the greatest elements of each window. */
static bool adjoint_max_pool(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	Node x = arg(b, n, "self"), place = {0};
	uint32_t rank = aten_rank(b, x), ns = aten_named_dims(b, n);
	PoolShape p;
	if (!ct[0].i)
		return true;
	if (!read_pool(b, n, x, ns, &p))
		return false;
	Node w = windows(b, x, &p, lowest(b, x));
	Shape s = aten_shape(b, w);
	Node at = place_in_window(b, w, &p, rank);
	for (uint32_t k = 0; k < ns; k++) {
		Node i = aten_iota_dim(b, &s, rank + k, DT_i64);
		place = place.i ? b_bin(b, OP_add,
					b_bin_scalar(b, OP_mul, place, (double)p.kernel[k]), i)
				: i;
	}
	Node from = ct[0];
	for (uint32_t k = 0; k < ns; k++) {
		from = b_unsqueeze(b, from, -1);
		at = b_unsqueeze(b, at, -1);
	}
	Node share = b_select(b, b_bin(b, OP_eq, place, at), from, aten_like(b, from, 0));
	g[0] = unwindows(b, share, &p);
	return g[0].i;
}

static Node batch_max_pool(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	bool single = node_rank(b->g, node_in(b->g, n, 0)) == aten_named_dims(b, n) + 1;
	return single ? batch_element_wise(b, n, in, batched, size)
		      : batch_members(b, n, in, batched, size);
}

static Node max_pool(Build *b, Node n, uint32_t ns)
{
	Node x = arg(b, n, "self");
	PoolShape p;
	if (!read_pool(b, n, x, ns, &p))
		return (Node){0};
	return aten_reduce(b, REDUCE_MAX, windows(b, x, &p, lowest(b, x)),
			   window_dims(&p, aten_rank(b, x)), false);
}
static Node build_max_pool(Build *b, Node n)
{
	return max_pool(b, n, aten_named_dims(b, n));
}

/* Returns the position along spatial dim k of element `inner` (flat within the window) of each
 * window. */
static Node window_position(Build *b, Node inner, const PoolShape *p, uint32_t k)
{
	Shape s = aten_shape(b, inner);
	int64_t below = 1;
	for (uint32_t j = k + 1; j < p->ns; j++)
		below *= p->kernel[j];
	Node at = b_bin_scalar(b, OP_floordiv, inner, (double)below);
	at = b_bin_scalar(b, OP_remainder, at, (double)p->kernel[k]);
	at = b_bin_scalar(b, OP_mul, at, (double)p->dilation[k]);
	Node start = aten_iota_dim(b, &s, p->first + k, DT_i64);
	start = b_bin_scalar(b, OP_mul, start, (double)p->stride[k]);
	start = b_bin_scalar(b, OP_sub, start, (double)p->pad[k]);
	return b_bin(b, OP_add, at, start);
}

/* Returns (values, flat indices into the spatial dims). */
static Node max_pool_indices(Build *b, Node n, uint32_t ns)
{
	Node x = arg(b, n, "self");
	PoolShape p;
	if (!read_pool(b, n, x, ns, &p))
		return (Node){0};
	uint32_t rank = aten_rank(b, x);
	Node w = windows(b, x, &p, lowest(b, x));
	Node value = aten_reduce(b, REDUCE_MAX, w, window_dims(&p, rank), false);
	Node inner = place_in_window(b, w, &p, rank);
	if (!inner.i)
		return inner;
	Node flat = window_position(b, inner, &p, 0);
	for (uint32_t k = 1; k < ns; k++) {
		flat = b_bin(b, OP_mul, flat, aten_size(b, p.in[k], DT_i64));
		flat = b_bin(b, OP_add, flat, window_position(b, inner, &p, k));
	}
	return b_tuple(b, (Node[]){value, flat}, 2);
}
static Node build_max_pool_indices(Build *b, Node n)
{
	return max_pool_indices(b, n, aten_named_dims(b, n));
}
OP(aten_max_pool1d){
	.schema = "aten.max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] "
		  "padding=[0], int[1] dilation=[1], bool ceil_mode=False) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.build = build_max_pool,
	.adjoint = adjoint_max_pool,
	.batch = batch_max_pool,
	.sample = "f32[n=2, 2, 7], kernel_size=[3], stride=[2], padding=[1]; "
		  "f32[2, 7], kernel_size=[2], dilation=[2]; f32[1, 1, 6], kernel_size=[4], "
		  "ceil_mode=true",
	.overloads = (const Overload[]){
		{.schema = "aten.max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], "
			   "int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor",
		 .sample = "f32[n=2, 1, 5, 6], kernel_size=[3, 2], stride=[2, 1], padding=[1, 1]; "
			   "f32[1, 5, 6], kernel_size=[2, 2], dilation=[2, 3], stride=[1, 1]; "
			   "f32[1, 1, 5, 6], kernel_size=[3, 4], ceil_mode=true"},
		{.schema = "aten.max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], "
			   "int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> Tensor",
		 .sample = "f32[n=2, 1, 3, 4, 4], kernel_size=[2, 3, 2], stride=[1, 2, 2], "
			   "padding=[1, 1, 0]"},
		{.schema = "aten.max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] "
			   "stride=[], int[1] padding=[0], int[1] dilation=[1], "
			   "bool ceil_mode=False) -> (Tensor, Tensor)",
		 .build = build_max_pool_indices,
		 .sample = "f32[n=2, 2, 7], kernel_size=[3], stride=[2], padding=[1]; "
			   "f32[1, 1, 6], kernel_size=[4], ceil_mode=true"},
		{.schema = "aten.max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] "
			   "stride=[], int[2] padding=0, int[2] dilation=1, "
			   "bool ceil_mode=False) -> (Tensor, Tensor)",
		 .build = build_max_pool_indices,
		 .sample = "f32[n=2, 1, 5, 6], kernel_size=[3, 2], stride=[2, 1], padding=[1, 1]; "
			   "f32[1, 5, 6], kernel_size=[2, 2], dilation=[2, 3], stride=[1, 1]; "
			   "f32[1, 1, 5, 6], kernel_size=[3, 4], ceil_mode=true"},
		{.schema = "aten.max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] "
			   "stride=[], int[3] padding=0, int[3] dilation=1, "
			   "bool ceil_mode=False) -> (Tensor, Tensor)",
		 .build = build_max_pool_indices,
		 .sample = "f32[n=2, 1, 3, 4, 4], kernel_size=[2, 3, 2], stride=[1, 2, 2], "
			   "padding=[1, 1, 0]"},
	},
};

/* Requires that grad_output is of the windows that the pooling has. */
static Node build_max_pool2d_backward(Build *b, Node n)
{
	Node x = arg(b, n, "self"), g = arg(b, n, "grad_output");
	PoolShape p;
	if (!read_pool(b, n, x, 2, &p))
		return (Node){0};
	Shape s = aten_shape(b, x);
	for (uint32_t k = 0; k < 2; k++)
		s.dim[p.first + k] = p.out[k];
	return aten_require_shape(b, g, &s, "grad_output is of each window")
		       ? aten_pool_backward(b, x, arg(b, n, "indices"), g, 2)
		       : (Node){0};
}
/* Takes the number of windows from grad_output: PyTorch does not compare it with those that the
 * pooling has. */
static Node build_max_pool3d_backward(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	PoolShape p;
	return read_windows(b, n, x, 3, &p)
		       ? aten_pool_backward(b, x, arg(b, n, "indices"), arg(b, n, "grad_output"), 3)
		       : (Node){0};
}
OP(aten_max_pool2d_with_indices_backward){
	.schema = "aten.max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] "
		  "kernel_size, int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, "
		  "Tensor indices) -> Tensor",
	.build = build_max_pool2d_backward,
	.sample = "f32[n=2, 1, 2, 3], f32[n, 1, 4, 5], kernel_size=[2, 2], stride=[2, 2], "
		  "padding=[0, 1], dilation=[1, "
		  "1], ceil_mode=false, i64[n, 1, 2, 3] of 0 6 8 15 6 19",
	.overloads = (const Overload[]){
		{.schema = "aten.max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, "
			   "int[3] kernel_size, int[3] stride, int[3] padding, int[3] dilation, "
			   "bool ceil_mode, "
			   "Tensor indices) -> Tensor",
		 .build = build_max_pool3d_backward,
		 .sample = "f32[n=2, 1, 1, 2, 2], f32[n, 1, 2, 4, 4], kernel_size=[2, 2, 2], "
			   "stride=[2, 2, 2], padding=[0, 0, "
			   "0], dilation=[1, 1, 1], ceil_mode=false, i64[n, 1, 1, 2, "
			   "2] of 0 6 25 6"},
	},
};

/* ---- averages ---- */

/* Counts the elements of window o along dim k that count: those inside the input, or also those
 * of the padding (but not what ceil mode adds beyond it). A vector over the windows. */
static Node window_count(Build *b, const PoolShape *p, uint32_t k, bool with_pad)
{
	SymTab *t = b_syms(b);
	Node start = b_iota(b, DT_i64, p->out[k]);
	start = b_bin_scalar(b, OP_mul, start, (double)p->stride[k]);
	start = b_bin_scalar(b, OP_sub, start, (double)p->pad[k]);
	Node end = b_bin_scalar(b, OP_add, start, (double)p->kernel[k]);
	Sym limit = with_pad ? sym_addi(t, p->in[k], p->pad[k]) : p->in[k];
	end = b_bin(b, OP_minimum, end, aten_size(b, limit, DT_i64));
	if (!with_pad)
		start = b_bin_scalar(b, OP_maximum, start, 0);
	return b_bin(b, OP_sub, end, start);
}

static Node avg_divisor(Build *b, Node n, const PoolShape *p, Node sum)
{
	bool with_pad = node_bool(b->g, n, "count_include_pad"), uniform = true;
	DType d = aten_dtype(b, sum);
	double all = 1;
	for (uint32_t k = 0; k < p->ns; k++) {
		uniform &= !p->ceil && (with_pad || p->pad[k] == 0);
		all *= (double)p->kernel[k];
	}
	bool override = op_arg_index(node_op(b->g, n), "divisor_override") >= 0 &&
			aten_has(b, n, "divisor_override");
	if (override)
		return aten_like(b, sum, (double)aten_int(b, n, "divisor_override"));
	if (uniform)
		return aten_like(b, sum, all);
	Node total = {0};
	for (uint32_t k = 0; k < p->ns; k++) {
		Node c = b_convert(b, window_count(b, p, k, with_pad), d);
		c = aten_per_dim(b, c, sum, p->first + k);
		total = total.i ? b_bin(b, OP_mul, total, c) : c;
	}
	return total;
}

static Node avg_pool(Build *b, Node n, uint32_t ns)
{
	Node x = arg(b, n, "self");
	DType d = aten_dtype(b, x);
	PoolShape p;
	if (!read_pool(b, n, x, ns, &p))
		return (Node){0};
	Node w = windows(b, aten_wide(b, x), &p, (Node){0});
	Node sum = aten_sum(b, w, window_dims(&p, aten_rank(b, x)), false);
	if (!sum.i)
		return sum;
	Node by = avg_divisor(b, n, &p, sum);
	if (dtype_is_float(d))
		return b_convert(b, b_bin(b, OP_div, sum, by), d);
	/* Of integers the quotient is cut off. */
	Node rest = b_bin(b, OP_fmod, sum, by);
	return b_convert(b, b_bin(b, OP_floordiv, b_bin(b, OP_sub, sum, rest), by), d);
}
static Node build_avg_pool(Build *b, Node n)
{
	return avg_pool(b, n, aten_named_dims(b, n));
}
OP(aten_avg_pool1d){
	.schema = "aten.avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] "
		  "padding=[0], bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.build = build_avg_pool,
	.sample = "f32[n=2, 2, 7], kernel_size=[3], stride=[2], padding=[1]; "
		  "f32[2, 7], kernel_size=[3], padding=[1], count_include_pad=false, "
		  "ceil_mode=true",
	.overloads = (const Overload[]){
		{.schema = "aten.avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], "
			   "int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, "
			   "int? "
			   "divisor_override=None) -> Tensor",
		 .sample = "f32[n=2, 1, 5, 6], kernel_size=[3, 2], stride=[2, 1], padding=[1, 1]; "
			   "f32[1, 5, 6], kernel_size=[3, 2], padding=[1, 1], "
			   "count_include_pad=false, ceil_mode=true; "
			   "f32[1, 1, 5, 6], kernel_size=[2, 2], ceil_mode=true; "
			   "f32[1, 1, 5, 6], kernel_size=[2, 2], divisor_override=3"},
		{.schema = "aten.avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], "
			   "int[3] padding=0, bool ceil_mode=False, bool count_include_pad=True, "
			   "int? "
			   "divisor_override=None) -> Tensor",
		 .sample = "f32[n=2, 1, 3, 4, 4], kernel_size=[2, 3, 2], stride=[1, 2, 2], "
			   "padding=[1, 1, 0], count_include_pad=false; "
			   "f32[1, 1, 3, 4, 4], kernel_size=[2, 2, 2], divisor_override=5"},
	},
};

/* ---- adaptive pooling: window o covers floor(o*in/out) .. ceil((o+1)*in/out) ---- */

/* Gives the bounds of the windows of one dim, as vectors over them. */
static void adaptive_bounds(Build *b, Sym in, Sym out, Node *start, Node *end)
{
	Node o = b_iota(b, DT_i64, out), size = aten_size(b, in, DT_i64),
	     parts = aten_size(b, out, DT_i64);
	*start = b_bin(b, OP_floordiv, b_bin(b, OP_mul, o, size), parts);
	Node next = b_bin(b, OP_mul, b_bin_scalar(b, OP_add, o, 1), size);
	next = b_bin(b, OP_add, next, aten_size(b, sym_addi(b_syms(b), out, -1), DT_i64));
	*end = b_bin(b, OP_floordiv, next, parts);
}

/* Makes [.., out, ..] and a window axis after it of x[.., in, ..], padded by repeating; *inside
 * says which elements count, shaped alike (none: all of them). */
static Node adaptive_windows(Build *b, Node x, uint32_t dim, Sym out, Node *inside)
{
	SymTab *t = b_syms(b);
	Sym in = b_dim(b, x, (int)dim);
	Shape s = aten_shape(b, x);
	int64_t parts;
	*inside = (Node){0};
	if (sym_is_const(t, out, &parts) && sym_divides(t, parts, in)) {
		s.dim[dim] = out;
		s = shape_insert(s, dim + 1, sym_divi(t, in, parts));
		return aten_reshape(b, x, &s);
	}
	Node start, end;
	adaptive_bounds(b, in, out, &start, &end);
	Sym longest = sym_addi(t, sym_ceildiv(t, in, out), 1);
	Node k = b_unsqueeze(b, b_iota(b, DT_i64, longest), 0);
	Node at = b_bin(b, OP_add, b_unsqueeze(b, start, 1), k); /* [out, longest] */
	Node valid = b_bin(b, OP_lt, at, b_unsqueeze(b, end, 1));
	at = b_bin(b, OP_minimum, at, aten_size(b, sym_addi(t, in, -1), DT_i64));
	x = aten_take_dim(b, x, dim, at, "clamp");
	Shape r = aten_shape(b, x);
	if (x.i)
		*inside = b_broadcast_in_dim(b, valid, r.rank, r.dim, (uint32_t[]){dim, dim + 1});
	return x;
}

/* Reads the requested output extents. Returns false after b_error. */
static bool adaptive_sizes(Build *b, Node n, Node x, uint32_t ns, Sym *out)
{
	uint32_t rank = aten_rank(b, x);
	if (!x.i || (rank != ns + 1 && rank != ns + 2)) {
		b_error(b, "pooling over %u dims of an operand of rank %u", ns, rank);
		return false;
	}
	uint32_t len = 0;
	const Sym *size = node_ints(b->g, n, "output_size", &len);
	if (len != ns)
		return b_error(b, "output_size has %u elements, expected %u", len, ns).i;
	memcpy(out, size, ns * sizeof *out);
	for (uint32_t k = 0; k < ns; k++) {
		int64_t elements;
		if (!sym_is_const(b_syms(b), out[k], &elements))
			graph_guard(b->g, GUARD_LE, b_int(b, 1), out[k],
				    "adaptive pooling to at least one element");
		else if (elements < 1)
			return b_error(b, "adaptive pooling to %lld elements", (long long)elements)
				.i;
	}
	return true;
}

/* Averages over all columns are means, which are NaN of nothing; those over parts of 2 dims may
 * have no channels. */
static bool can_average(Build *b, Node x, uint32_t ns, const Sym *out)
{
	bool mean = true;
	for (uint32_t k = 0; k < ns; k++)
		mean &= sym_is(b_syms(b), out[k], 1);
	return mean || require_elements(b, x, ns == 3 ? 1 : aten_rank(b, x) - ns);
}

static Node adaptive_avg(Build *b, Node n, uint32_t ns)
{
	Node x = arg(b, n, "self");
	DType d = aten_dtype(b, x);
	Sym out[MAX_SPACE];
	if (!adaptive_sizes(b, n, x, ns, out) || !can_average(b, x, ns, out))
		return (Node){0};
	uint32_t first = aten_rank(b, x) - ns, ones = 0;
	for (uint32_t k = 0; k < ns; k++)
		ones |= sym_is(b_syms(b), out[k], 1) ? 1u << (first + k) : 0;
	x = aten_wide(b, x);
	if (ones)
		x = aten_mean(b, x, ones, true);
	for (uint32_t k = 0; k < ns; k++) {
		uint32_t dim = first + k;
		if (ones >> dim & 1 || b_dim(b, x, (int)dim).i == out[k].i)
			continue;
		Node inside, w = adaptive_windows(b, x, dim, out[k], &inside);
		if (!inside.i) {
			x = aten_mean(b, w, 1u << (dim + 1), false);
			continue;
		}
		w = b_select(b, inside, w, aten_like(b, w, 0));
		Node sum = aten_sum(b, w, 1u << (dim + 1), false);
		Node count =
			aten_sum(b, b_convert(b, inside, aten_dtype(b, w)), 1u << (dim + 1), false);
		x = b_bin(b, OP_div, sum, count);
	}
	return x.i ? b_convert(b, x, d) : x;
}
static Node build_adaptive_avg(Build *b, Node n)
{
	return adaptive_avg(b, n, aten_named_dims(b, n));
}
OP(aten_adaptive_avg_pool1d){
	.schema = "aten.adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
	.autocast_gpu = AUTOCAST_F32,
	.build = build_adaptive_avg,
	.sample = "f32[n=2, 2, 7], output_size=[3]; f32[2, 6], output_size=[2]",
	.overloads = (const Overload[]){
		{.schema = "aten.adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
		 .aliases = "aten._adaptive_avg_pool2d",
		 .sample = "f32[n=2, 1, 5, 7], output_size=[2, 3]; "
			   "f32[1, 4, 6], output_size=[2, 3]; f32[1, 1, 3, 3], output_size=[1, 1]"},
		{.schema = "aten.adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",
		 .aliases = "aten._adaptive_avg_pool3d",
		 .sample = "f32[n=2, 1, 3, 5, 4], output_size=[2, 3, 2]"},
	},
};

/* Gives the cotangent to the elements that result 1 names: windows overlap, so one may get
 * several. */
static bool adjoint_adaptive_max(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	if (!ct[0].i)
		return true;
	g[0] = aten_pool_backward(b, arg(b, n, "self"), b_get(b, n, 1), ct[0],
				  aten_named_dims(b, n));
	return g[0].i;
}

static Node batch_adaptive_max(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	bool single = node_rank(b->g, node_in(b->g, n, 0)) == aten_named_dims(b, n) + 1;
	return single ? batch_element_wise(b, n, in, batched, size)
		      : batch_members(b, n, in, batched, size);
}

/* Returns (values, flat indices): the windows of all dims are taken of the values and of the
 * positions. */
static Node adaptive_max(Build *b, Node n, uint32_t ns)
{
	Node x = arg(b, n, "self");
	Sym out[MAX_SPACE];
	if (!adaptive_sizes(b, n, x, ns, out) || !require_elements(b, x, 1))
		return (Node){0};
	uint32_t rank = aten_rank(b, x), first = rank - ns;
	Shape s = aten_shape(b, x);
	Node at = aten_iota_dim(b, &s, first, DT_i64);
	for (uint32_t k = 1; k < ns; k++) {
		at = b_bin(b, OP_mul, at, aten_size(b, s.dim[first + k], DT_i64));
		at = b_bin(b, OP_add, at, aten_iota_dim(b, &s, first + k, DT_i64));
	}
	/* Each window axis moves to the end, where they are merged and searched together. */
	for (uint32_t k = 0; k < ns; k++) {
		uint32_t dim = first + k;
		Node inside, unused;
		x = adaptive_windows(b, x, dim, out[k], &inside);
		at = adaptive_windows(b, at, dim, out[k], &unused);
		if (inside.i)
			x = b_select(b, inside, x, lowest(b, x));
		x = aten_move_dim(b, x, dim + 1, rank + k);
		at = aten_move_dim(b, at, dim + 1, rank + k);
	}
	x = aten_flatten(b, x, rank, rank + ns - 1);
	at = aten_flatten(b, at, rank, rank + ns - 1);
	Node value = aten_reduce(b, REDUCE_MAX, x, 1u << rank, false);
	Node inner = b_unsqueeze(b, b_arg_reduce(b, true, x, rank), -1);
	return b_tuple(b, (Node[]){value, b_squeeze(b, aten_gather_dim(b, at, rank, inner), -1)},
		       2);
}
static Node build_adaptive_max(Build *b, Node n)
{
	return adaptive_max(b, n, aten_named_dims(b, n));
}
OP(aten_adaptive_max_pool1d){
	.schema = "aten.adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
	.autocast_gpu = AUTOCAST_F32,
	.build = build_adaptive_max,
	.adjoint = adjoint_adaptive_max,
	.batch = batch_adaptive_max,
	.sample = "f32[n=2, 2, 7], output_size=[3]",
	.overloads = (const Overload[]){
		{.schema = "aten.adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, "
			   "Tensor)",
		 .sample = "f32[n=2, 1, 5, 7], output_size=[2, 3]"},
		{.schema = "aten.adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, "
			   "Tensor)",
		 .sample = "f32[n=2, 1, 3, 5, 4], output_size=[2, 3, 2]"},
	},
};
