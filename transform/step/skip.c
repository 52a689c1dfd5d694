#include "transform/step/skip.h"

#include "ir/op/op.h"

enum { BEGIN, GROWTH, BACKOFF, EVERY };

const Formula *skip_scale(void)
{
	static const Formula dynamic = {
		.name = "dynamic",
		.in = "",
		.numbers = "begin = 65536; growth = 2; backoff = 0.5; every = 2000",
		.value = ""};
	return &dynamic;
}

/* Returns whether an element of a value is not finite, bool[1]. */
static Node one_not_finite(Build *b, Node x)
{
	static const Formula bad = {
		.in = "x", .numbers = "", .value = "unsqueeze(any(logical_not(isfinite(x))), 0)"};
	return formula_value(b, &bad, &x, NULL);
}

Node skip_not_finite(Build *b, const Node *value, uint32_t n)
{
	static const Formula any = {.in = "x", .numbers = "", .value = "any(x)"};
	Node *each = ARENA_ARRAY(b->g->ir->ctx->scratch, Node, n);
	for (uint32_t k = 0; k < n; k++)
		each[k] = one_not_finite(b, value[k]);
	const Node all = b_concat(b, each, n, 0);
	return formula_value(b, &any, &all, NULL);
}

/* Does as torch._amp_update_scale_: a scale that would not be finite does not grow. */
void skip_rescale(Build *b, Node scale, Node good, Node bad, const double *number, Node out[2])
{
	const Node one = b_scalar(b, DT_i32, 1), zero = b_scalar(b, DT_i32, 0),
		   next = b_bin(b, OP_add, good, one),
		   full = b_bin(b, OP_ge, next, b_scalar(b, DT_i32, number[EVERY])),
		   larger = b_bin(b, OP_mul, scale, b_scalar(b, DT_f32, number[GROWTH])),
		   may = b_bin(b, OP_bit_and, full, b_un(b, OP_isfinite, larger)),
		   smaller = b_bin(b, OP_mul, scale, b_scalar(b, DT_f32, number[BACKOFF])),
		   grown = b_select(b, may, larger, scale), counted = b_select(b, full, zero, next);
	out[0] = b_select(b, bad, smaller, grown);
	out[1] = b_select(b, bad, zero, counted);
}
