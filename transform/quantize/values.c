/* What products multiply weights with: how large it is on data, and its rounding to 8 bits. */
#include <math.h>

#include "ops/rules/rules.h"
#include "transform/quantize/quantize.h"

enum { MOST_BYTE = 255 };

bool quantize_observe(FoundWeights *f, int32_t *output)
{
	Graph *g = f->expanded;
	Node *sum = ARENA_ARRAY(g->ir->ctx->arena, Node, f->weight.n);
	Build b = {.g = g};
	for (uint32_t k = 0; k < f->reader.n; k++) {
		const WeightReader *r = &f->reader.data[k];
		const Node x = b_convert(&b, r->other, DT_f32);
		const uint32_t all = (1u << node_rank(g, x)) - 1;
		const Node square = b_bin(&b, OP_mul, x, x);
		const Node one = b_reduce(&b, REDUCE_SUM, square, all & ~(1u << r->dim), DT_f32);
		Node *at = &sum[r->weight];
		*at = at->i ? b_bin(&b, OP_add, *at, one) : one;
		TRY(at->i);
	}
	for (uint32_t k = 0; k < f->weight.n; k++) {
		output[k] = sum[k].i ? (int32_t)g->output.n : -1;
		if (sum[k].i)
			graph_add_output(g, arena_printf(g->ir->ctx->arena, "weft.squares.%u", k),
					 sum[k], -1);
	}
	return true;
}

int32_t quantize_observe_ranges(FoundWeights *f)
{
	Graph *g = f->expanded;
	const int32_t first = (int32_t)g->output.n;
	Build b = {.g = g};
	for (uint32_t k = 0; k < f->value.n; k++)
		for (uint32_t most = 0; most < 2; most++) {
			const Node x = b_convert(&b, f->value.data[k].x, DT_f32);
			const Node one = b_reduce(&b, most ? REDUCE_MAX : REDUCE_MIN, x,
						  (1u << node_rank(g, x)) - 1, DT_f32);
			if (!one.i)
				return -1;
			graph_add_output(g,
					 arena_printf(g->ir->ctx->arena, "weft.%s.%u",
						      most ? "high" : "low", k),
					 one, -1);
		}
	return first;
}

/* Returns x rounded to 8 bits, and what the integers stand for. */
static Node rounded(Build *b, Node x, const ProductValue *v)
{
	const double low = fmin(v->low, 0), high = fmax(v->high, 0);
	const float scale = high > low ? (float)((high - low) / MOST_BYTE) : 1;
	const double zero = fmin(fmax(rint(-low / (double)scale), 0), MOST_BYTE);
	const Node by = b_scalar(b, DT_f32, (double)scale);
	Node q = b_un(b, OP_round, b_bin(b, OP_div, x, by));
	q = b_bin_scalar(b, OP_add, q, zero);
	q = b_bin_scalar(b, OP_maximum, q, 0);
	q = b_bin_scalar(b, OP_minimum, q, MOST_BYTE);
	q = b_convert(b, b_convert(b, q, DT_u8), DT_i32);
	q = b_convert(b, b_bin_scalar(b, OP_sub, q, zero), DT_f32);
	return b_bin(b, OP_mul, q, by);
}

/* Returns `to` behind the index maps that x is, of `from`. */
static Node again(Build *b, Node x, Node from, Node to)
{
	if (x.i == from.i || !to.i)
		return to;
	const Node below = again(b, node_in(b->g, x, 0), from, to);
	return below.i ? b_again(b, x, &below) : below;
}

static bool is_input(const Graph *g, Node x)
{
	for (uint32_t k = 0; k < g->input.n; k++)
		if (g->input.data[k].node.i == x.i)
			return true;
	return false;
}

bool quantize_values(FoundWeights *f, const bool *fixed)
{
	Graph *g = f->expanded;
	Node *of = ARENA_ARRAY(g->ir->ctx->arena, Node, f->value.n);
	for (uint32_t k = 0; k < f->product.n; k++) {
		const StaticProduct *p = &f->product.data[k];
		const Node x = f->value.data[p->value].x;
		if (!fixed[p->weight] || node_dtype(g, x) != DT_f32)
			continue;
		Build after = {.g = g,
			       .before = is_input(g, x) ? graph_behind_inputs(g) : node_next(g, x),
			       .loc = node_data(g, x)->loc};
		Build b = {.g = g, .before = p->n, .loc = node_data(g, p->n)->loc};
		if (!of[p->value].i)
			of[p->value] = rounded(&after, x, &f->value.data[p->value]);
		const Node in = again(&b, node_in(g, p->n, p->side), x, of[p->value]);
		TRY(in.i);
		graph_set_operand(g, p->n, p->side, in);
	}
	return true;
}
