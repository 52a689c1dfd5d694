/* Rules of convolutions. */
#include "passes/rules.h"

/* Along one spatial dimension. */
typedef struct {
	Sym stride, dilation, pad, outputs, extent; /* of the operand */
	int64_t taps, first, end;                   /* taps [first, end) may read the operand */
} Window;

/* A tap that reads padding at every output, for being before the operand at the last one or behind it at the first. At
 * least one tap stays. */
static void find_live(SymTab *t, Window *w)
{
	Sym last = sym_mul(t, sym_addi(t, w->outputs, -1), w->stride);
	w->first = 0;
	w->end = w->taps;
	while (w->first + 1 < w->end &&
	       sym_lt(t, sym_add(t, last, sym_muli(t, w->dilation, w->first)), w->pad) == YES)
		w->first++;
	while (w->first + 1 < w->end &&
	       sym_le(t, sym_add(t, w->extent, w->pad), sym_muli(t, w->dilation, w->end - 1)) == YES)
		w->end--;
}

static bool read_windows(const Build *b, Node n, Window *w, uint32_t *nsp)
{
	Node x = node_in(b->g, n, 0), k = node_in(b->g, n, 1);
	SymTab *t = b->g->ir->syms;
	const Sym *stride = node_ints(b->g, n, "stride", nsp), *dilation = node_ints(b->g, n, "dilation", nsp);
	const Sym *dilation_in = node_ints(b->g, n, "dilation_in", nsp), *pad = node_ints(b->g, n, "pad", nsp);
	for (uint32_t d = 0; d < *nsp; d++) {
		w[d] = (Window){stride[d], dilation[d], pad[d], node_dim(b->g, n, 3 + d), node_dim(b->g, x, 3 + d), 0, 0, 0};
		TRY(is_one(b->g, dilation_in[d]) && sym_is_const(t, node_dim(b->g, k, 3 + d), &w[d].taps));
	}
	return true;
}

/* Wide dilation on a small image: what is left of the window may be a single tap, and no padding. */
static Node conv_dead_taps(Build *b, Node n)
{
	Window w[MAX_RANK];
	SymTab *t = b->g->ir->syms;
	Sym pad[MAX_RANK];
	uint32_t nsp;
	bool any = false;
	if (!read_windows(b, n, w, &nsp))
		return (Node){0};
	for (uint32_t d = 0; d < nsp; d++) {
		find_live(t, &w[d]);
		any |= w[d].end - w[d].first < w[d].taps;
		pad[d] = sym_sub(t, w[d].pad, sym_muli(t, w[d].dilation, w[d].first));
	}
	if (!any)
		return (Node){0};
	Node kernel = node_in(b->g, n, 1);
	for (uint32_t d = 0; d < nsp; d++)
		kernel = b_slice(b, kernel, 3 + (int)d, sym_int(t, w[d].first), sym_int(t, w[d].end), sym_int(t, 1));
	Attr attr[] = {attr_none(), attr_none(), *node_attr(b->g, n, "stride"), *node_attr(b->g, n, "dilation"),
	               *node_attr(b->g, n, "dilation_in"), attr_ints(pad, nsp), *node_attr(b->g, n, "size"),
	               *node_attr(b->g, n, "acc"), *node_attr(b->g, n, "out")};
	return b_node(b, OP_conv, (Node[]){node_in(b->g, n, 0), kernel}, 2, attr, 9);
}

const Rule conv_rules[] = {
	{"conv_dead_taps", OP_conv, conv_dead_taps},
	{NULL, OP_none, NULL},
};
