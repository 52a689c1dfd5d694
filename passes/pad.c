/* Padding of convolutions becomes a `pad` of the operand, below the reshape that splits channels:
 *
 *   %y = conv(reshape(%x), %w, pad=[1, 1])   ->   %p = pad(%x, 0, low=[0, 0, 1, 1], ..)
 *                                                 %y = conv(reshape(%p), %w, pad=[0, 0])
 *
 * Dimension 2 of %x, the channels that are summed, is padded with zeros, and so are the weights,
 * where rows of the instruction set multiply groups of channels (ir/target/micro.h) and there are
 * too few. The producer of %x then stores into the interior of %p's buffer and the inner loops of
 * the convolution have no conditions. Dilation of the operand (transposed convolutions) becomes
 * interior padding. */
#include "ir/build/verify.h"
#include "passes/common/questions.h"
#include "passes/pass.h"

/* Returns how far the window of the last output reaches past the end of the input. */
static Sym overhang(Graph *g, Node conv, uint32_t d, Sym low)
{
	SymTab *syms = graph_syms(g);
	Node x = node_in(g, conv, 0), w = node_in(g, conv, 1);
	uint32_t n;
	Sym stride = node_ints(g, conv, "stride", &n)[d],
	    dil = node_ints(g, conv, "dilation", &n)[d];
	Sym last = sym_mul(syms, sym_addi(syms, node_dim(g, conv, 3 + d), -1), stride);
	Sym reach =
		sym_add(syms, last, sym_mul(syms, sym_addi(syms, node_dim(g, w, 3 + d), -1), dil));
	Sym end = sym_mul(syms, sym_addi(syms, node_dim(g, x, 3 + d), -1),
	                  node_ints(g, conv, "dilation_in", &n)[d]);
	Sym over = sym_sub(syms, sym_sub(syms, reach, low), end);
	return sym_max(syms, over, sym_int(syms, 0));
}

/* One walk over a graph in program order. */
typedef struct {
	Graph *g;
	uint32_t first_new; /* nodes from here on are made by the walk, in front of where it is */
	bool *reached;      /* of the nodes before */
} PadWalk;

/* Returns a padding of x with zeros, of these widths, that the walk has come past: what is to
 * come cannot be read yet. None if there is none. */
static Node existing_pad(const PadWalk *w, Node x, AttrId attr)
{
	const Graph *g = w->g;
	for (Use u = node_data(g, x)->first_use; u.i; u = g->use.data[u.i].next) {
		Node user = g->use.data[u.i].user;
		if (user.i && node_op(g, user) == OP_pad && node_data(g, user)->attr.i == attr.i &&
		    is_splat(g, node_in(g, user, 1), 0) &&
		    (user.i >= w->first_new || w->reached[user.i]))
			return user;
	}
	return (Node){0};
}

/* By spatial dimension. */
typedef struct {
	Sym low[MAX_RANK], high[MAX_RANK], interior[MAX_RANK];
	int64_t channels; /* behind those that there are */
} Padding;

static Node make_pad(const PadWalk *w, Build *b, Node x, const Padding *p, uint32_t nsp)
{
	Graph *g = w->g;
	uint32_t rank = node_rank(g, x);
	Sym zero = sym_int(graph_syms(g), 0), lo[MAX_RANK], hi[MAX_RANK], in[MAX_RANK];
	for (uint32_t k = 0; k < rank; k++) {
		bool spatial = k + nsp >= rank;
		lo[k] = spatial ? p->low[k + nsp - rank] : zero;
		hi[k] = spatial               ? p->high[k + nsp - rank]
			: k + nsp + 1 == rank ? sym_int(graph_syms(g), p->channels)
					      : zero;
		in[k] = spatial ? p->interior[k + nsp - rank] : zero;
	}
	Attr attr[5] = {attr_none(), attr_none(), attr_ints(lo, rank), attr_ints(hi, rank),
	                attr_ints(in, rank)};
	Node old = existing_pad(w, x, ir_attrs(g->ir, 5, attr));
	if (old.i)
		return old;
	/* right after x, so that later readers of an equal padding find it in front of them */
	Build at = *b;
	at.before = node_op(g, x) == OP_input ? b->before : node_next(g, x);
	Node operand[] = {x, b_scalar(&at, node_dtype(g, x), 0)};
	return b_node(&at, OP_pad, operand, 2, attr, 5);
}

/* Returns how many channels of bf16 are missing to two groups: rows of groups refuse fewer. Not
 * more than there are, and only where channels are not divided (`base` has the operand's). */
static int64_t missing_channels(const Graph *g, Node conv, Node base, uint32_t nsp)
{
	enum { TWO_GROUPS = 4 };
	const Node x = node_in(g, conv, 0);
	const uint32_t rank = node_rank(g, base);
	const int64_t n = sym_const_or(graph_syms(g), node_dim(g, x, 2), 0);
	if (node_dtype(g, x) != DT_bf16 || node_dtype(g, node_in(g, conv, 1)) != DT_bf16 ||
	    n < TWO_GROUPS / 2 || n >= TWO_GROUPS || !sym_is(graph_syms(g), node_dim(g, x, 1), 1) ||
	    rank != nsp + 2 ||
	    sym_eq(graph_syms(g), node_dim(g, base, 1), node_dim(g, x, 2)) != YES)
		return 0;
	return TWO_GROUPS - n;
}

/* Returns the weights with so many channels of zeros behind theirs. */
static Node pad_weights(Build *b, Node w, int64_t channels)
{
	SymTab *syms = graph_syms(b->g);
	const uint32_t rank = node_rank(b->g, w);
	Sym none[MAX_RANK], high[MAX_RANK];
	if (!channels)
		return w;
	for (uint32_t k = 0; k < rank; k++)
		none[k] = high[k] = sym_int(syms, 0);
	high[2] = sym_int(syms, channels);
	Attr attr[5] = {attr_none(), attr_none(), attr_ints(none, rank), attr_ints(high, rank),
			attr_ints(none, rank)};
	return b_node(b, OP_pad, (Node[]){w, b_scalar(b, node_dtype(b->g, w), 0)}, 2, attr, 5);
}

/* Pads the operand of a convolution. Returns true if there was something to pad. */
static bool pad_operand(const PadWalk *w, Node conv, PassCtx *c)
{
	Graph *g = w->g;
	SymTab *syms = graph_syms(g);
	uint32_t nsp;
	const Sym *pad = node_ints(g, conv, "pad", &nsp);
	const Sym *dilation_in = node_ints(g, conv, "dilation_in", &nsp);
	Padding p;
	Sym none[MAX_RANK], one[MAX_RANK];
	bool any = false;
	for (uint32_t d = 0; d < nsp; d++) {
		p.low[d] = sym_max(syms, pad[d], sym_int(syms, 0));
		p.high[d] = overhang(g, conv, d, pad[d]);
		p.interior[d] = sym_addi(syms, dilation_in[d], -1);
		none[d] = sym_sub(syms, pad[d], p.low[d]);
		one[d] = sym_int(syms, 1);
		any |= !sym_is(syms, p.low[d], 0) || !sym_is(syms, p.high[d], 0) ||
		       !sym_is(syms, p.interior[d], 0);
	}
	Node x = node_in(g, conv, 0), base = below_reshape(g, x, nsp);
	p.channels = missing_channels(g, conv, base, nsp);
	if (!any && !p.channels)
		return false;
	Build b = {.g = g,
		   .before = conv,
		   .loc = node_data(g, conv)->loc,
		   .where = node_where(g, conv)};
	Node padded = make_pad(w, &b, base, &p, nsp);
	if (!node_fits(g, padded)) {
		c->failed = true;
		return ctx_error(
			g->ir->ctx, node_where(g, conv),
			"with its padding the operand is %s: expected fewer than 2^48 bytes",
			type_str(g->ir, node_type_id(g, padded)));
	}
	Sym shape[MAX_RANK];
	uint32_t rank = node_rank(g, x), pr = node_rank(g, padded);
	for (uint32_t k = 0; k < rank; k++)
		shape[k] = k < 3 ? node_dim(g, x, k) : node_dim(g, padded, pr - rank + k);
	shape[2] = sym_addi(syms, shape[2], p.channels);
	Node in[2] = {b_reshape(&b, padded, rank, shape),
		      pad_weights(&b, node_in(g, conv, 1), p.channels)};
	Attr attr[] = {attr_none(),
		       attr_none(),
		       *node_attr(g, conv, "stride"),
		       *node_attr(g, conv, "dilation"),
		       attr_ints(one, nsp),
		       attr_ints(none, nsp),
		       *node_attr(g, conv, "size"),
		       *node_attr(g, conv, "acc"),
		       *node_attr(g, conv, "out")};
	Node y = b_node(&b, OP_conv, in, 2, attr, 9);
	graph_set_name(g, y, g->node_name.data[conv.i]);
	graph_replace(g, conv, y);
	graph_erase(g, conv);
	return true;
}

bool pass_pad(Graph *g, PassCtx *c)
{
	bool changed = false;
	const uint32_t before = g->node.n;
	const PadWalk w = {g, before, ARENA_ARRAY(g->ir->ctx->scratch, bool, before)};
	for (Node n = g->first, next; n.i && !c->failed; n = next) {
		next = node_next(g, n);
		w.reached[n.i] = true;
		changed |= node_op(g, n) == OP_conv && pad_operand(&w, n, c);
	}
	if (changed && !c->failed)
		pass_fold(g, c); /* weights that were padded */
	changed |= graph_dce(g);
	return pass_subgraphs(g, c, pass_pad) || changed;
}
