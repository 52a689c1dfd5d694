/* Rules of convolutions. */
#include "passes/simplify/rules.h"

/* Along one spatial dimension. */
typedef struct {
	Sym stride, dilation, pad, outputs, extent; /* of the operand */
	int64_t taps, first, end;                   /* taps [first, end) may read the operand */
} ConvWindow;

/* Finds the taps that may read the operand. A tap that reads padding at every output is before
 * the operand at the last one or behind it at the first. At least one tap stays. */
static void find_live(SymTab *t, ConvWindow *w)
{
	Sym last = sym_mul(t, sym_addi(t, w->outputs, -1), w->stride);
	w->first = 0;
	w->end = w->taps;
	while (w->first + 1 < w->end &&
	       sym_lt(t, sym_add(t, last, sym_muli(t, w->dilation, w->first)), w->pad) == YES)
		w->first++;
	while (w->first + 1 < w->end && sym_le(t, sym_add(t, w->extent, w->pad),
					       sym_muli(t, w->dilation, w->end - 1)) == YES)
		w->end--;
}

static bool read_windows(const Build *b, Node n, ConvWindow *w, uint32_t *nsp)
{
	Node x = node_in(b->g, n, 0), k = node_in(b->g, n, 1);
	SymTab *t = graph_syms(b->g);
	const Sym *stride = node_ints(b->g, n, "stride", nsp),
		  *dilation = node_ints(b->g, n, "dilation", nsp);
	const Sym *dilation_in = node_ints(b->g, n, "dilation_in", nsp),
		  *pad = node_ints(b->g, n, "pad", nsp);
	for (uint32_t d = 0; d < *nsp; d++) {
		w[d] = (ConvWindow){stride[d],
				    dilation[d],
				    pad[d],
				    node_dim(b->g, n, 3 + d),
				    node_dim(b->g, x, 3 + d),
				    0,
				    0,
				    0};
		TRY(is_one(b->g, dilation_in[d]) &&
		    sym_is_const(t, node_dim(b->g, k, 3 + d), &w[d].taps));
	}
	return true;
}

/* Removes taps that read padding only, as of a wide dilation on a small image: what is left of
 * the window may be a single tap, and no padding. */
static Node conv_dead_taps(Build *b, Node n)
{
	ConvWindow w[MAX_RANK];
	SymTab *t = graph_syms(b->g);
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
		kernel = b_slice(b, kernel, 3 + (int)d, sym_int(t, w[d].first),
				 sym_int(t, w[d].end), sym_int(t, 1));
	Attr attr[] = {attr_none(),
		       attr_none(),
		       *node_attr(b->g, n, "stride"),
		       *node_attr(b->g, n, "dilation"),
		       *node_attr(b->g, n, "dilation_in"),
		       attr_ints(pad, nsp),
		       *node_attr(b->g, n, "size"),
		       *node_attr(b->g, n, "acc"),
		       *node_attr(b->g, n, "out")};
	return b_node(b, OP_conv, (Node[]){node_in(b->g, n, 0), kernel}, 2, attr, 9);
}

/* ---- operands with gaps ---- */

/* Result s i + r of a transposed convolution, whose operand has s - 1 zeros after each element,
 * reads the taps c, c + s, ... only, c = (pad - r) mod s, and of the operand neighbours, the first
 * at i - floor((pad - r) / s). Those r that begin at one place and have as many taps are channels
 * of one convolution without gaps; their pixels stand beside each other in the end:
 *
 *   conv(x, w, dilation_in=[s])  -> concat of all runs: conv(pad(x), taps of the run as channels),
 *                                channels put between pixels */
typedef struct {
	int64_t n;         /* phases r, following each other */
	int64_t tap, ntap; /* c of the last one, which is the least; how many each has */
	int64_t pad;
} TapRun;

enum { MAX_RUNS = 8 };

/* Along one spatial dimension; without gaps it stays as it is. */
typedef struct {
	int64_t gap, taps, pad;
	Sym each; /* results of a phase, rounded up */
	TapRun run[MAX_RUNS];
	uint32_t nrun, pick; /* pick: the run at hand */
} Phases;

typedef struct {
	Build *b;
	Node conv;
	uint32_t nsp;
	Phases dim[MAX_RANK];
} Gaps;

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

static TapRun phase_of(const Phases *p, int64_t r)
{
	int64_t pad = floor_div(p->pad - r, p->gap), c = p->pad - r - pad * p->gap;
	return (TapRun){1, c, c < p->taps ? (p->taps - c + p->gap - 1) / p->gap : 0, pad};
}

/* Finds runs of one length, so that runs and the phases in them are axes of the result; else
 * takes each phase alone. */
static bool find_runs(Phases *p)
{
	for (int64_t whole = 1; whole >= 0; whole--) {
		bool equal = true;
		p->nrun = 0;
		for (int64_t r = 0; r < p->gap; r++) {
			TapRun at = phase_of(p, r), *last = p->nrun ? &p->run[p->nrun - 1] : NULL;
			if (whole && last && last->pad == at.pad && last->ntap == at.ntap) {
				last->tap = at.tap;
				last->n++;
				continue;
			}
			if (p->nrun == MAX_RUNS)
				return false;
			p->run[p->nrun++] = at;
		}
		for (uint32_t k = 1; k < p->nrun; k++)
			equal = equal && p->run[k].n == p->run[0].n;
		if (equal)
			return true;
	}
	return false;
}

static bool read_gaps(Gaps *q)
{
	const Graph *g = q->b->g;
	SymTab *t = graph_syms(g);
	Node w = node_in(g, q->conv, 1);
	const Sym *stride = node_ints(g, q->conv, "stride", &q->nsp),
		  *dilation = node_ints(g, q->conv, "dilation", &q->nsp);
	const Sym *gap = node_ints(g, q->conv, "dilation_in", &q->nsp),
		  *pad = node_ints(g, q->conv, "pad", &q->nsp);
	bool any = false;
	for (uint32_t d = 0; d < q->nsp; d++) {
		Phases *p = &q->dim[d];
		TRY(sym_is_const(t, gap[d], &p->gap));
		p->each = node_dim(g, q->conv, 3 + d);
		if (p->gap == 1)
			continue;
		TRY(is_one(g, stride[d]) && is_one(g, dilation[d]) &&
		    sym_is_const(t, pad[d], &p->pad) &&
		    sym_is_const(t, node_dim(g, w, 3 + d), &p->taps));
		p->each = sym_ceildiv(t, p->each, gap[d]);
		TRY(find_runs(p));
		any = true;
	}
	return any;
}

/* A result that is read and written once more, and a launch, in multiply-adds. */
enum { COPY_WORK = 16, LAUNCH_WORK = 50000 };

static bool gaps_cost_more(const Gaps *q)
{
	const Graph *g = q->b->g;
	SymTab *t = graph_syms(g);
	Node w = node_in(g, q->conv, 1);
	if (3 + 3 * q->nsp > MAX_RANK)
		return false;
	double results = 1, taps = (double)sym_hint(t, node_dim(g, w, 2)), left, launches = 1;
	for (uint32_t k = 0; k < 3 + q->nsp; k++)
		results *= (double)sym_hint(t, node_dim(g, q->conv, k));
	for (uint32_t d = 0; d < q->nsp; d++)
		taps *= (double)sym_hint(t, node_dim(g, w, 3 + d));
	left = taps;
	for (uint32_t d = 0; d < q->nsp; d++) {
		left /= (double)q->dim[d].gap;
		launches *= q->dim[d].gap > 1 ? q->dim[d].nrun : 1;
	}
	return results * (taps - left - COPY_WORK) > launches * LAUNCH_WORK;
}

/* Divides axis k of w into blocks of `gap` taps, of which the first n stay, in reverse: taps,
 * then phases in the order of r. */
static Node split_taps(Build *b, Node w, uint32_t k, const Phases *p, const TapRun *r)
{
	SymTab *t = b_syms(b);
	uint32_t rank = node_rank(b->g, w);
	Sym low[MAX_RANK], high[MAX_RANK], shape[MAX_RANK];
	Sym from = sym_int(t, r->tap), to = sym_int(t, r->tap + (r->ntap - 1) * p->gap + r->n);
	if (r->n == 1)
		return b_unsqueeze(b, b_slice(b, w, (int)k, from, to, sym_int(t, p->gap)),
				   (int)k + 1);
	w = b_slice(b, w, (int)k, from, to, sym_int(t, 1));
	for (uint32_t j = 0; j < rank; j++)
		low[j] = high[j] = sym_int(t, 0);
	high[k] = sym_int(t, p->gap - r->n);
	w = b_pad(b, w, low, high, b_scalar(b, node_dtype(b->g, w), 0));
	for (uint32_t j = 0; j < rank; j++)
		shape[j < k ? j : j + 1] = node_dim(b->g, w, j);
	shape[k] = sym_int(t, r->ntap);
	shape[k + 1] = sym_int(t, p->gap);
	w = b_reshape(b, w, rank + 1, shape);
	w = b_slice(b, w, (int)k + 1, sym_int(t, 0), sym_int(t, r->n), sym_int(t, 1));
	return b_reverse(b, w, (int)k + 1);
}

/* Returns the weights [G, phases O, C, taps...] of the runs at hand. */
static Node run_weights(const Gaps *q)
{
	Build *b = q->b;
	Node w = node_in(b->g, q->conv, 1);
	uint32_t perm[MAX_RANK] = {0}, phase[MAX_RANK], tap[MAX_RANK], nphase = 0, at = 3, rank = 0;
	for (uint32_t d = 0; d < q->nsp; d++) {
		const Phases *p = &q->dim[d];
		tap[d] = at++;
		if (p->gap == 1)
			continue;
		w = split_taps(b, w, tap[d], p, &p->run[p->pick]);
		phase[nphase++] = at++;
	}
	perm[rank++] = 0;
	for (uint32_t k = 0; k < nphase; k++)
		perm[rank++] = phase[k];
	perm[rank++] = 1;
	perm[rank++] = 2;
	for (uint32_t d = 0; d < q->nsp; d++)
		perm[rank++] = tap[d];
	w = b_permute(b, w, perm);
	Sym shape[MAX_RANK] = {node_dim(b->g, w, 0), sym_int(b_syms(b), 1)};
	for (uint32_t k = 0; k <= nphase; k++)
		shape[1] = sym_mul(b_syms(b), shape[1], node_dim(b->g, w, 1 + k));
	for (uint32_t k = 0; k <= q->nsp; k++)
		shape[2 + k] = node_dim(b->g, w, 2 + nphase + k);
	return b_reshape(b, w, 3 + q->nsp, shape);
}

/* Returns the operand with the zeros that any of the runs reads around it: at low[d] its first
 * element. */
static Node pad_for_all(const Gaps *q, Sym *low)
{
	Build *b = q->b;
	SymTab *t = b_syms(b);
	Node x = node_in(b->g, q->conv, 0), base = below_reshape(b->g, x, q->nsp);
	uint32_t rank = node_rank(b->g, x), of = node_rank(b->g, base);
	Sym lo[MAX_RANK], hi[MAX_RANK], shape[MAX_RANK];
	for (uint32_t k = 0; k < of; k++)
		lo[k] = hi[k] = sym_int(t, 0);
	for (uint32_t d = 0; d < q->nsp; d++) {
		const Phases *p = &q->dim[d];
		Sym *high = &hi[of - q->nsp + d];
		low[d] = sym_int(t, 0);
		for (uint32_t k = 0; p->gap > 1 && k < p->nrun; k++) {
			const TapRun *r = &p->run[k];
			Sym over = sym_sub(t, sym_addi(t, p->each, r->ntap - 1 - r->pad),
					   node_dim(b->g, x, 3 + d));
			low[d] = sym_max(t, low[d], sym_int(t, r->pad));
			*high = sym_max(t, *high, over);
		}
		lo[of - q->nsp + d] = low[d];
	}
	base = b_pad(b, base, lo, hi, b_scalar(b, node_dtype(b->g, base), 0));
	for (uint32_t k = 0; k < rank; k++)
		shape[k] = k < 3 ? node_dim(b->g, x, k) : node_dim(b->g, base, of - rank + k);
	return b_reshape(b, base, rank, shape);
}

/* Returns the results [N, G, phases O, results of a phase...] of the runs at hand. */
static Node run_results(const Gaps *q, Node x, const Sym *low)
{
	Build *b = q->b;
	const Graph *g = b->g;
	SymTab *t = b_syms(b);
	uint32_t nsp;
	const Sym *own_pad = node_ints(g, q->conv, "pad", &nsp);
	Sym pad[MAX_RANK], one[MAX_RANK], shape[MAX_RANK], *size = shape + 3;
	bool none = false;
	for (uint32_t k = 0; k < 3; k++)
		shape[k] = node_dim(g, q->conv, k);
	for (uint32_t d = 0; d < nsp; d++) {
		const Phases *p = &q->dim[d];
		const TapRun *r = &p->run[p->pick];
		pad[d] = p->gap == 1 ? own_pad[d] : sym_sub(t, sym_int(t, r->pad), low[d]);
		one[d] = sym_int(t, 1);
		size[d] = p->each;
		if (p->gap == 1)
			continue;
		shape[2] = sym_muli(t, shape[2], r->n);
		none |= r->ntap == 0;
	}
	if (none)
		return b_full(b, node_dtype(g, q->conv), 0, 3 + nsp, shape);
	Attr attr[] = {attr_none(),
		       attr_none(),
		       *node_attr(g, q->conv, "stride"),
		       *node_attr(g, q->conv, "dilation"),
		       attr_ints(one, nsp),
		       attr_ints(pad, nsp),
		       attr_ints(size, nsp),
		       *node_attr(g, q->conv, "acc"),
		       *node_attr(g, q->conv, "out")};
	return b_node(b, OP_conv, (Node[]){x, run_weights(q)}, 2, attr, 9);
}

/* Moves to the next choice of a run for each dimension, the last one first. Returns false after
 * the last choice. */
static bool next_runs(Gaps *q)
{
	for (uint32_t d = q->nsp; d-- > 0;) {
		Phases *p = &q->dim[d];
		if (p->gap > 1 && ++p->pick < p->nrun)
			return true;
		p->pick = 0;
	}
	return false;
}

/* Puts the channels [runs..., phases of a run..., O] between the pixels. */
static Node interleave(const Gaps *q, Node y)
{
	Build *b = q->b;
	SymTab *t = b_syms(b);
	Sym shape[MAX_RANK], end[MAX_RANK];
	uint32_t perm[MAX_RANK] = {0, 1}, rank = 2, ngap = 0, n = 3, seen = 0;
	for (uint32_t d = 0; d < q->nsp; d++)
		ngap += q->dim[d].gap > 1;
	for (uint32_t k = 0; k < 2; k++)
		shape[k] = node_dim(b->g, q->conv, k);
	for (uint32_t d = 0; d < q->nsp; d++)
		if (q->dim[d].gap > 1)
			shape[rank++] = sym_int(t, q->dim[d].nrun);
	for (uint32_t d = 0; d < q->nsp; d++)
		if (q->dim[d].gap > 1)
			shape[rank++] = sym_int(t, q->dim[d].run[0].n);
	shape[rank++] = node_dim(b->g, q->conv, 2);
	for (uint32_t d = 0; d < q->nsp; d++)
		shape[rank++] = q->dim[d].each;
	y = b_reshape(b, y, rank, shape);
	perm[2] = 2 + 2 * ngap;
	for (uint32_t d = 0; d < q->nsp; d++) {
		perm[n++] = 3 + 2 * ngap + d;
		if (q->dim[d].gap == 1)
			continue;
		perm[n++] = 2 + seen;
		perm[n++] = 2 + ngap + seen++;
	}
	y = b_permute(b, y, perm);
	for (uint32_t k = 0; k < 3 + q->nsp; k++)
		end[k] = k < 3 ? node_dim(b->g, q->conv, k)
			       : sym_muli(t, q->dim[k - 3].each, q->dim[k - 3].gap);
	return b_reshape(b, y, 3 + q->nsp, end);
}

static Node conv_gaps(Build *b, Node n)
{
	Gaps q = {.b = b, .conv = n};
	SymTab *t = b_syms(b);
	Sym low[MAX_RANK];
	ARRAY(Node) part = {0};
	if (!read_gaps(&q) || !gaps_cost_more(&q))
		return (Node){0};
	Node x = pad_for_all(&q, low);
	do
		array_push(b->g->ir->ctx->scratch, &part, run_results(&q, x, low));
	while (next_runs(&q));
	Node y = interleave(&q, b_concat(b, part.data, part.n, 2));
	for (uint32_t k = 3; k < 3 + q.nsp; k++)
		y = b_slice(b, y, (int)k, sym_int(t, 0), node_dim(b->g, n, k), sym_int(t, 1));
	return y;
}

const Rule conv_rules[] = {
	{"conv_dead_taps", OP_conv, conv_dead_taps},
	{"conv_gaps", OP_conv, conv_gaps},
	{NULL, OP_none, NULL},
};
