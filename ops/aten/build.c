/* What several aten families build: gather, windows, reductions, softmax. */
#include "ops/aten/priv.h"

#include <math.h>

/* ---- structural primitives with many attributes ---- */

static Attr axes_attr(Build *b, const uint32_t *axes, uint32_t n)
{
	Sym *s = arena_calloc(b->g->ir->ctx->scratch, n, sizeof *s);
	for (uint32_t k = 0; k < n; k++)
		s[k] = b_int(b, axes[k]);
	return attr_ints(s, n);
}

Node b_gather(Build *b, Node x, Node index, uint32_t batch, const uint32_t *axes, uint32_t naxes,
	      const char *mode)
{
	if (!x.i || !index.i)
		return (Node){0};
	Ir *ir = b->g->ir;
	Attr attr[] = {attr_none(), attr_none(), attr_int(ir, batch), axes_attr(b, axes, naxes),
		       attr_str(ir, mode)};
	return b_node(b, OP_gather, (Node[]){x, index}, 2, attr, 5);
}

Node b_scatter(Build *b, Node x, Node index, Node update, uint32_t batch, const uint32_t *axes,
	       uint32_t naxes, const char *combine)
{
	return b_scatter_as(b, x, index, update, batch, axes, naxes, combine, "check");
}

Node b_scatter_as(Build *b, Node x, Node index, Node update, uint32_t batch, const uint32_t *axes,
		  uint32_t naxes, const char *combine, const char *mode)
{
	if (!x.i || !index.i || !update.i)
		return (Node){0};
	Ir *ir = b->g->ir;
	Attr attr[] = {attr_none(),
		       attr_none(),
		       attr_none(),
		       attr_int(ir, batch),
		       axes_attr(b, axes, naxes),
		       attr_str(ir, combine),
		       attr_str(ir, mode),
		       attr_bool(false),
		       attr_bool(false)};
	return b_node(b, OP_scatter, (Node[]){x, index, update}, 3, attr, 9);
}

Node aten_index(Build *b, Node index)
{
	DType d = aten_dtype(b, index);
	if (d != DT_none && !dtype_is_int(d) && d != DT_bool)
		return b_error(b, "indices of %s, expected integers", dtype_name(d));
	return index.i ? b_convert(b, index, DT_i64) : index;
}

/* Takes dimensions in front of dim that x and the index have alike as a batch. The others are
 * components of the index, since that may be smaller than x in every dimension. */
bool aten_places_along(Build *b, Node x, Node index, uint32_t dim, Places *p)
{
	const Shape s = aten_shape(b, index);
	Node part[MAX_RANK];
	if (s.rank != aten_rank(b, x) || s.rank == 0) {
		b_error(b, "index of rank %u for an operand of rank %u", s.rank, aten_rank(b, x));
		return false;
	}
	*p = (Places){0};
	while (p->batch < dim &&
	       sym_eq(b_syms(b), s.dim[p->batch], b_dim(b, x, (int)p->batch)) == YES)
		p->batch++;
	for (uint32_t k = p->batch; k < s.rank; k++) {
		part[p->naxes] = k == dim ? aten_index(b, index) : aten_iota_dim(b, &s, k, DT_i64);
		p->axes[p->naxes++] = k;
	}
	p->index = aten_stack(b, part, p->naxes, s.rank);
	return p->index.i;
}

Node aten_scatter_at(Build *b, Node x, const Places *p, Node v, const char *combine)
{
	return b_scatter_as(b, x, p->index, v, p->batch, p->axes, p->naxes, combine, "within");
}

Node aten_take_dim(Build *b, Node x, uint32_t dim, Node index, const char *mode)
{
	uint32_t ni = aten_rank(b, index), rank = aten_rank(b, x), perm[MAX_RANK];
	index = aten_index(b, index);
	Node y = b_gather(b, x, b_unsqueeze(b, index, -1), 0, &dim, 1, mode);
	if (!y.i || dim == 0)
		return y;
	for (uint32_t k = 0; k < ni + rank - 1; k++)
		perm[k] = k < dim ? ni + k : k < dim + ni ? k - dim : k;
	return b_permute(b, y, perm);
}

Node aten_gather_dim(Build *b, Node x, uint32_t dim, Node index)
{
	return aten_gather_dim_as(b, x, dim, index, "within");
}

Node aten_gather_dim_as(Build *b, Node x, uint32_t dim, Node index, const char *mode)
{
	Shape si = aten_shape(b, index);
	uint32_t rank = aten_rank(b, x);
	if (!x.i || !index.i)
		return (Node){0};
	index = aten_index(b, index);
	if (!index.i)
		return index;
	if (sym_is(b_syms(b), shape_numel(b, &si), 0))
		return b_full(b, node_dtype(b->g, x), 0, si.rank, si.dim);
	if (rank == 0)
		return aten_reshape(b, x, &si);
	if (si.rank != rank)
		return b_error(b, "index of rank %u for an operand of rank %u", si.rank, rank);
	for (uint32_t k = 0; k < rank; k++)
		if (k != dim)
			x = b_slice(b, x, (int)k, b_int(b, 0), si.dim[k], b_int(b, 1));
	uint32_t last = rank - 1;
	x = aten_move_dim(b, x, dim, last);
	index = b_unsqueeze(b, aten_move_dim(b, index, dim, last), -1);
	return aten_move_dim(b, b_gather(b, x, index, last, &last, 1, mode), last, dim);
}

Node aten_const_ints(Build *b, const int64_t *v, int64_t n)
{
	Ir *ir = b->g->ir;
	uint64_t bytes = (uint64_t)n * sizeof *v;
	Const c = {.name = "", .dtype = DT_i64, .rank = 1, .bytes = bytes};
	c.dim = arena_dup(ir->ctx->arena, &n, sizeof n);
	c.data = arena_dup(ir->ctx->arena, v, bytes);
	return b_const(b, ir_const(ir, c));
}

Node b_window(Build *b, Node x, uint32_t dim, int64_t size, int64_t stride, int64_t dilation,
	      int64_t low, Sym count)
{
	if (!x.i)
		return x;
	Ir *ir = b->g->ir;
	Attr attr[] = {attr_none(),          attr_int(ir, dim),      attr_int(ir, size),
		       attr_int(ir, stride), attr_int(ir, dilation), attr_int(ir, low),
		       attr_sym(count)};
	return b_node(b, OP_window, &x, 1, attr, 7);
}

Node b_arg_reduce(Build *b, bool max, Node x, uint32_t dim)
{
	if (!x.i)
		return x;
	Ir *ir = b->g->ir;
	Attr attr[] = {attr_none(), attr_str(ir, max ? "max" : "min"), attr_int(ir, dim)};
	return b_node(b, OP_arg_reduce, &x, 1, attr, 3);
}

Node b_sort(Build *b, Node x, uint32_t dim, bool descending, bool stable)
{
	if (!x.i)
		return x;
	Ir *ir = b->g->ir;
	Attr attr[] = {attr_none(), attr_int(ir, dim), attr_bool(descending), attr_bool(stable)};
	return b_node(b, OP_sort, &x, 1, attr, 4);
}

Node b_sort_first(Build *b, Node x, uint32_t dim, bool descending, Sym first)
{
	if (!x.i)
		return x;
	Ir *ir = b->g->ir;
	Attr attr[] = {attr_none(), attr_int(ir, dim), attr_bool(descending), attr_bool(true),
		       attr_sym(first)};
	if (sym_eq(b_syms(b), first, b_dim(b, x, (int)dim)) == YES)
		attr[4] = attr_none();
	return b_node(b, OP_sort, &x, 1, attr, 5);
}

/* ---- reductions ---- */

Node aten_sum(Build *b, Node x, uint32_t dims, bool keep)
{
	return aten_reduce(b, REDUCE_SUM, x, dims, keep);
}

Node aten_sum_operand(Build *b, Node x)
{
	DType d = aten_dtype(b, x);
	return d == DT_bool || dtype_is_int(d) ? b_convert(b, x, DT_i64) : x;
}

Sym aten_count(const Build *b, Node x, uint32_t dims)
{
	Shape s = aten_shape(b, x);
	Sym n = b_int(b, 1);
	for (uint32_t k = 0; k < s.rank; k++)
		if (dims >> k & 1)
			n = sym_mul(b_syms(b), n, s.dim[k]);
	return n;
}

Node aten_grouped(Build *b, Node x, int64_t groups)
{
	const Shape s = aten_shape(b, x);
	if (!x.i)
		return x;
	if (s.rank < 2 || groups < 1 || !sym_divides(b_syms(b), groups, s.dim[1]))
		return b_error(b, "group norm of rank %u in %lld groups", s.rank,
			       (long long)groups);
	Shape to = {.rank = 3,
		    .dim = {s.dim[0], b_int(b, groups), sym_divi(b_syms(b), s.dim[1], groups)}};
	for (uint32_t k = 2; k < s.rank; k++)
		if (to.rank < MAX_RANK)
			to.dim[to.rank++] = s.dim[k];
		else
			to.dim[MAX_RANK - 1] = sym_mul(b_syms(b), to.dim[MAX_RANK - 1], s.dim[k]);
	return aten_reshape(b, x, &to);
}

uint32_t aten_within_groups(const Build *b, Node grouped)
{
	return ((1u << aten_rank(b, grouped)) - 1) & ~3u;
}

Node aten_per_group(Build *b, Node v, Node grouped)
{
	for (uint32_t k = 2; k < aten_rank(b, grouped); k++)
		v = b_unsqueeze(b, v, -1);
	return v;
}

/* Divides the reduced sum by `count` elements. */
static Node over(Build *b, Node sum, Sym count)
{
	return sum.i ? b_bin(b, OP_div, sum, aten_size(b, count, node_dtype(b->g, sum))) : sum;
}

Node aten_mean(Build *b, Node x, uint32_t dims, bool keep)
{
	DType d = aten_dtype(b, x);
	Node wide = aten_wide(b, x);
	Node y = over(b, aten_sum(b, wide, dims, keep), aten_count(b, x, dims));
	return y.i ? b_convert(b, y, d) : y;
}

/* Returns x * x, of complex numbers how long they are, squared. */
static Node square(Build *b, Node x)
{
	if (!dtype_is_complex(aten_dtype(b, x)))
		return b_bin(b, OP_mul, x, x);
	Node re = b_part(b, x, false), im = b_part(b, x, true);
	return b_bin(b, OP_add, b_bin(b, OP_mul, re, re), b_bin(b, OP_mul, im, im));
}

Node aten_var_about(Build *b, Node x, Node mean, uint32_t dims, double correction)
{
	Node c = b_bin(b, OP_sub, x, mean);
	Node sum = aten_sum(b, square(b, c), dims, true);
	if (!sum.i)
		return sum;
	Node count = aten_size(b, aten_count(b, x, dims), node_dtype(b->g, sum));
	if (correction != 0) {
		count = b_bin_scalar(b, OP_sub, count, correction);
		count = b_bin_scalar(b, OP_maximum, count, 0);
	}
	return b_bin(b, OP_div, sum, count);
}

Node aten_var(Build *b, Node x, uint32_t dims, double correction, Node *mean)
{
	Node m = aten_mean(b, x, dims, true);
	if (mean)
		*mean = m;
	return aten_var_about(b, x, m, dims, correction);
}

Node aten_nan_for_infinite(Build *b, Node x, uint32_t dims)
{
	Shape s = aten_shape(b, x);
	Node before = {0};
	for (uint32_t k = 0; k < s.rank; k++) {
		if (!(dims >> k & 1) || sym_is(b_syms(b), s.dim[k], 1))
			continue;
		Node last = aten_size(b, sym_sub(b_syms(b), s.dim[k], b_int(b, 1)), DT_i64);
		Node here = b_bin(b, OP_lt, aten_iota_dim(b, &s, k, DT_i64), last);
		before = before.i ? b_bin(b, OP_bit_or, before, here) : here;
	}
	if (!before.i)
		return x;
	Node lost = b_bin(b, OP_bit_and, b_un(b, OP_isinf, x), before);
	return b_select(b, lost, aten_like(b, x, (double)NAN), x);
}

SoftmaxParts aten_softmax_parts(Build *b, Node x, uint32_t dims, bool maskable)
{
	SoftmaxParts y = {.high = aten_reduce(b, REDUCE_MAX, x, dims, true)};
	Node none = {0};
	if (maskable) {
		none = b_bin_scalar(b, OP_eq, y.high, -(double)INFINITY);
		y.high = b_select(b, none, aten_like(b, y.high, 0), y.high);
	}
	const Node e = b_un(b, OP_exp, b_bin(b, OP_sub, x, y.high));
	y.sum = aten_sum(b, e, dims, true);
	/* A row of -inf is 0 / 1. */
	const Node by = maskable ? b_select(b, none, aten_like(b, y.sum, 1), y.sum) : y.sum;
	y.p = b_bin(b, OP_div, e, by);
	return y;
}

Node aten_softmax(Build *b, Node x, uint32_t dim)
{
	DType d = aten_dtype(b, x);
	if (aten_rank(b, x) == 0)
		return b_bin_scalar(b, OP_div, aten_like(b, x, 1), 1);
	Node y = aten_softmax_parts(b, aten_wide(b, x), 1u << dim, false).p;
	return y.i ? b_convert(b, y, d) : y;
}

Node aten_log_softmax(Build *b, Node x, uint32_t dim)
{
	DType d = aten_dtype(b, x);
	if (aten_rank(b, x) == 0)
		return aten_like(b, x, 0);
	Node wide = aten_wide(b, x);
	Node c = b_bin(b, OP_sub, wide, aten_reduce(b, REDUCE_MAX, wide, 1u << dim, true));
	Node sum = b_un(b, OP_log, aten_sum(b, b_un(b, OP_exp, c), 1u << dim, true));
	Node y = b_bin(b, OP_sub, c, sum);
	return y.i ? b_convert(b, y, d) : y;
}

Node aten_reduce_loss(Build *b, Node n, Node x)
{
	uint32_t all = (1u << aten_rank(b, x)) - 1;
	switch (aten_int(b, n, "reduction")) {
	case 0:
		return x;
	case 1:
		return aten_mean(b, x, all, false);
	case 2:
		return aten_sum(b, aten_sum_operand(b, x), all, false);
	default:
		return b_error(b, "unknown reduction");
	}
}

Node aten_linear(Build *b, Node x, Node w, Node bias)
{
	uint32_t rx = aten_rank(b, x), rw = aten_rank(b, w);
	if (!x.i || !w.i)
		return (Node){0};
	if (rx == 0 || rw == 0 || rw > 2)
		return b_error(b, "linear of operands of rank %u and %u", rx, rw);
	const uint32_t sum[1][2] = {{rx - 1, rw - 1}};
	if (!bias.i)
		return b_contract(b, x, w, NULL, 0, sum, 1);
	Node in[] = {x, w, bias};
	DType d = b_promote(b, in, 3);
	Node y = aten_add(b, b_contract_wide(b, x, w, sum, 1), bias);
	return y.i ? b_convert(b, y, d) : y;
}
