/* Lists of numbers, and what becomes of scores. */
#include <string.h>

#include "ir/interp/tensor.h"
#include "ops/ml/ml.h"

/* ---- arguments ---- */

Node ml_numbers(Build *b, Node n, const char *name)
{
	const Attr *a = node_attr(b->g, n, name);
	if (a->kind != ATTR_floats || !a->n)
		return (Node){0};
	Tensor t = {.dtype = DT_f32,
		    .rank = 1,
		    .dim = {a->n},
		    .data = ARENA_ARRAY(b->g->ir->ctx->arena, float, a->n)};
	tensor_write_f64(&t, 0, a->n, a->floats);
	const int64_t *dim = arena_dup(b->g->ir->ctx->arena, t.dim, sizeof t.dim);
	return b_const(b, ir_const(b->g->ir, (Const){.name = "",
						     .dtype = DT_f32,
						     .rank = 1,
						     .dim = dim,
						     .data = t.data,
						     .bytes = tensor_bytes(&t)}));
}

Node ml_integers(Build *b, Node n, const char *name)
{
	uint32_t count = 0;
	const Sym *s = aten_has(b, n, name) ? node_ints(b->g, n, name, &count) : NULL;
	int64_t *v = ARENA_ARRAY(b->g->ir->ctx->scratch, int64_t, count);
	for (uint32_t k = 0; k < count; k++)
		if (!aten_const(b, s[k], &v[k]))
			return (Node){0};
	return count ? aten_const_ints(b, v, count) : (Node){0};
}

/* ---- scores ---- */

/* Returns what equals 1 / (1 + exp(-x)), without overflow. */
static Node logistic(Build *b, Node x)
{
	return b_un(b, OP_sigmoid, x);
}

/* Returns sqrt(2) times the inverse of erf at 2 x - 1, by the formula that the runtimes of ONNX
 * have: an approximation (Winitzki), with pi and the constant a to few digits. */
static Node probit(Build *b, Node x)
{
	const double a = 0.147, pi = 3.14159;
	Node v = b_bin_scalar(b, OP_add, b_bin_scalar(b, OP_mul, x, 2), -1),
	     one = aten_like(b, v, 1);
	Node log = b_un(b, OP_log,
			b_bin(b, OP_mul, b_bin(b, OP_sub, one, v), b_bin(b, OP_add, one, v)));
	Node p = b_bin_scalar(b, OP_add, b_bin_scalar(b, OP_mul, log, 0.5), 2 / (pi * a));
	Node root =
		b_un(b, OP_sqrt,
		     b_bin(b, OP_sub, b_bin(b, OP_mul, p, p), b_bin_scalar(b, OP_mul, log, 1 / a)));
	Node y = b_un(b, OP_sqrt, b_bin(b, OP_sub, root, p));
	y = b_select(b, b_bin_scalar(b, OP_lt, v, 0), b_un(b, OP_neg, y), y);
	return b_bin_scalar(b, OP_mul, y, 1.41421356);
}

/* Returns a softmax in which scores of about 0 do not count: they are only scaled. */
static Node softmax_zero(Build *b, Node x)
{
	Node most = aten_reduce(b, REDUCE_MAX, x, 2, true),
	     zero = b_bin_scalar(b, OP_le, b_un(b, OP_abs, x), 1e-7);
	Node e = b_un(b, OP_exp, b_bin(b, OP_sub, x, most));
	Node sum = aten_reduce(b, REDUCE_SUM, b_select(b, zero, aten_like(b, e, 0), e), 2, true);
	return b_bin(
		b, OP_div,
		b_select(b, zero, b_bin(b, OP_mul, x, b_un(b, OP_exp, b_un(b, OP_neg, most))), e),
		sum);
}

Node ml_post_transform(Build *b, Node x, const char *transform)
{
	if (!strcmp(transform, "NONE"))
		return x;
	if (!strcmp(transform, "SOFTMAX"))
		return aten_softmax(b, x, 1);
	if (!strcmp(transform, "LOGISTIC"))
		return logistic(b, x);
	if (!strcmp(transform, "SOFTMAX_ZERO"))
		return softmax_zero(b, x);
	if (!strcmp(transform, "PROBIT"))
		return probit(b, x);
	return b_error(
		b, "post_transform is %s, expected NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT",
		transform);
}

Node ml_labels(Build *b, Node index, const int64_t *label, uint32_t n)
{
	bool same = true;
	for (uint32_t k = 0; k < n; k++)
		same = same && label[k] == (int64_t)k;
	return same ? b_convert(b, index, DT_i64)
		    : aten_take_dim(b, aten_const_ints(b, label, n), 0, index, "promise");
}
