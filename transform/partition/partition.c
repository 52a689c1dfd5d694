/* A graph of results and gradients becomes two: one that computes the results and saves what the
 * other one, which computes the gradients, reads of the first's values.
 *
 *   graph @f(%x, %w, %ct.y) {               graph @f(%x, %w) { graph @f(%x, %w, %saved.0, %saved.1,
 *                                           %ct.y) {
 *     %1 = contract(%x, %w)                   %1 = contract(%x, %w) assert(%saved.0 == 5711..)
 *     %y = sin(%1)                     -> %y = sin(%1) %2 = mul(%ct.y, cos(%saved.1))
 *     %2 = mul(%ct.y, cos(%1))                return %y, 5711.., %1         %g.x = contract(%2, %w)
 *     %g.x = contract(%2, %w)               }                               return %g.x
 *     return %y, %g.x                                                     }
 *   }
 *
 * Whatever depends on a cotangent is of the second graph. Of the other values that it needs, each
 * is saved, or computed again from others: a minimal cut of the network
 *
 *   source -> v.in     what computing v again costs; never cut where that is not allowed
 *   v.in   -> v.out    what saving v costs; (nearly) never where it cannot be saved
 *   u.out  -> v.in     never cut: v is computed from u
 *   v.out  -> sink     never cut: v is needed
 *
 * so the costs of all that is saved and all that is computed again are least, together. Without a
 * budget memory costs MEMORY_PRICE times what reading it does, and contractions, long reductions
 * and kernels of their own (sorting, loops) are not computed again. With one they may be, and
 * memory has a price, the least one at which the budget holds; as equal layers have equal prices,
 * the first nodes of the model pay it and the others the next lower one. State is not there any
 * more when gradients are computed, and neither are inputs that the model writes: what is read of
 * their old values is saved. What goes into a block that has an inverse is computed by that
 * (undo.c).
 *
 * Linear in the number of nodes but for the flow, whose paths are short: most nodes are beside the
 * source or the sink. */
#include <math.h>
#include <string.h>

#include "transform/partition/min_cut.h"
#include "transform/partition/priv.h"

/* ---- what depends on what ---- */

static void find_late(Parting *p)
{
	Graph *g = p->g;
	for (uint32_t k = p->ninput; k < g->input.n; k++)
		p->late[g->input.data[k].node.i] = true;
	for (Node n = g->first; n.i; n = node_next(g, n))
		for (uint32_t k = 0; k < node_nin(g, n); k++)
			p->late[n.i] |= p->late[node_in(g, n, k).i];
}

static void find_given(Parting *p)
{
	Graph *g = p->g;
	for (uint32_t k = 0; k < p->ninput; k++)
		p->given[g->input.data[k].node.i] =
			g->input.data[k].kind == INPUT_USER && graph_writer(g, k) < 0;
	for (Node n = g->first; n.i; n = node_next(g, n))
		p->given[n.i] |=
			node_const(g, n).i || (op_lower(node_op(g, n))->role == LOWER_LEAF &&
					       !node_nin(g, n) && !p->cost[n.i].fixed);
}

static void find_wanted(Parting *p)
{
	const Graph *g = p->g;
	for (Node n = g->first; n.i; n = node_next(g, n))
		for (uint32_t k = 0; k < node_nin(g, n) && p->late[n.i]; k++)
			p->wanted[node_in(g, n, k).i] = true;
	for (uint32_t k = p->noutput; k < g->output.n; k++)
		p->wanted[g->output.data[k].node.i] = true;
	for (uint32_t k = 0; k < g->node.n; k++)
		p->wanted[k] &= k && !p->late[k] && !p->given[k];
}

static void find_regions(Parting *p)
{
	const Graph *g = p->g;
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		uint32_t deep = 0;
		for (uint32_t k = 0; k < node_nin(g, n); k++)
			if (p->region[node_in(g, n, k).i] > deep)
				deep = p->region[node_in(g, n, k).i];
		Mark mark = node_mark(g, n);
		p->region[n.i] = mark == MARK_BEGIN         ? deep + 1
				 : mark == MARK_END && deep ? deep - 1
							    : deep;
	}
}

/* Checks that nothing that depends on cotangents has a size that only data says. */
static bool check_late(const Parting *p)
{
	Graph *g = p->g;
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (p->late[n.i] && node_has_data_size(g, n))
			return ctx_error(
				g->ir->ctx, node_where(g, n),
				"a gradient whose size depends on data is not supported in an "
				"entry of its "
				"own: compile the graph of --mode vjp as one entry instead");
	return true;
}

/* ---- the network ---- */

enum { SOURCE, SINK, NVERTEX };

/* Capacities are cycles times UNIT. */
#define UNIT 16
/* Measured with bench/training.py: from 2 on blocks of networks save half as much, in no more time;
 * above, nothing changes until contractions would be computed again. */
#define MEMORY_PRICE 4
#define MOST (INT64_C(1) << 56)
#define CANNOT_BE_SAVED (INT64_C(1) << 58)

typedef struct {
	Parting *p;
	const SaveCost *cost;
	ARRAY(Node) node;   /* in program order: node[k] has vertices NVERTEX + 2k and, going out,
	                       NVERTEX + 2k + 1 */
	uint32_t *place;    /* by node: k + 1; 0: not in the network */
	Network *net;       /* edges 2k and 2k + 1 are those of node[k] from the source and from its
	                       in to its out */
	bool *below;        /* by vertex */
	double bytes;       /* saved by the last cut */
} SaveChoice;

static bool is_fixed(const SaveChoice *c, Node n)
{
	return c->cost[n.i].fixed || c->p->kept[n.i];
}

/* Returns how many values computing n again takes. */
static uint32_t nneeds(const SaveChoice *c, Node n)
{
	return c->p->again[n.i].i          ? 1
	       : is_fixed(c, n)            ? 0
	       : partition_same(c->p, n).i ? 1
					   : node_nin(c->p->g, n);
}

static Node need(const SaveChoice *c, Node n, uint32_t k)
{
	Node same = partition_same(c->p, n);
	return same.i ? same : node_in(c->p->g, n, k);
}

/* Finds what is wanted, and all that it is computed from. */
static void find_nodes(SaveChoice *c)
{
	const Parting *p = c->p;
	const Graph *g = p->g;
	Arena *scratch = g->ir->ctx->scratch;
	bool *in = ZEROED(g, bool, g->node.n);
	ARRAY(Node) wait = {0};
	c->place = ZEROED(g, uint32_t, g->node.n);
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		in[n.i] = p->wanted[n.i];
		if (in[n.i])
			array_push(scratch, &wait, n);
	}
	while (wait.n) {
		Node n = wait.data[--wait.n];
		for (uint32_t k = 0; k < nneeds(c, n); k++) {
			Node x = need(c, n, k);
			if (!x.i || in[x.i] || p->given[x.i])
				continue;
			in[x.i] = true;
			array_push(scratch, &wait, x);
		}
	}
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (in[n.i]) {
			array_push(scratch, &c->node, n);
			c->place[n.i] = c->node.n;
		}
}

static uint32_t vertex(const SaveChoice *c, Node n)
{
	return NVERTEX + 2 * (c->place[n.i] - 1);
}

static void build_network(SaveChoice *c)
{
	const Parting *p = c->p;
	const Graph *g = p->g;
	c->net = network_new(g->ir->ctx->scratch, NVERTEX + 2 * c->node.n);
	c->below = ZEROED(g, bool, NVERTEX + 2 * c->node.n);
	for (uint32_t k = 0; k < c->node.n; k++) {
		network_edge(c->net, SOURCE, NVERTEX + 2 * k, 0);
		network_edge(c->net, NVERTEX + 2 * k, NVERTEX + 2 * k + 1, 0);
	}
	for (uint32_t k = 0; k < c->node.n; k++) {
		Node n = c->node.data[k];
		if (p->wanted[n.i])
			network_edge(c->net, NVERTEX + 2 * k + 1, SINK, CUT_NEVER);
		for (uint32_t j = 0; j < nneeds(c, n); j++)
			if (c->place[need(c, n, j).i])
				network_edge(c->net, vertex(c, need(c, n, j)) + 1, NVERTEX + 2 * k,
					     CUT_NEVER);
	}
}

/* ---- cuts ---- */

/* Of memory, in cycles for what is read from it in one cycle: for the first nodes of the network,
 * and for the others. */
typedef struct {
	double first, rest;
	uint32_t nfirst;
	bool heavy; /* what is heavy may be computed again */
} Price;

static int64_t capacity(double cycles)
{
	double c = 1 + cycles * UNIT;
	return c < (double)MOST ? (int64_t)c : MOST;
}

static int64_t recompute_capacity(const SaveChoice *c, Node n, const Price *price)
{
	const SaveCost *cost = &c->cost[n.i];
	if (c->p->again[n.i].i)
		return 0;
	if (is_fixed(c, n))
		return CUT_NEVER;
	if (c->p->region[n.i]) /* as asked for, whatever it costs: nothing there is cheaper to
	                          save */
		return 0;
	return cost->heavy && !price->heavy ? CUT_NEVER : capacity(cost->again);
}

static int64_t save_capacity(const SaveChoice *c, uint32_t k, const Price *price)
{
	Node n = c->node.data[k];
	const SaveCost *cost = &c->cost[n.i];
	bool again = c->p->again[n.i].i || (c->p->region[n.i] && !is_fixed(c, n));
	if (node_dtype(c->p->g, n) == DT_none || node_has_data_size(c->p->g, n) || again)
		return CANNOT_BE_SAVED;
	return capacity(cost->save + cost->hold * (k < price->nfirst ? price->first : price->rest));
}

static bool is_cut(const SaveChoice *c, uint32_t k)
{
	return !c->below[NVERTEX + 2 * k] && c->below[NVERTEX + 2 * k + 1];
}

static double cut(SaveChoice *c, Price price)
{
	for (uint32_t k = 0; k < c->node.n; k++) {
		network_set_capacity(c->net, 2 * k, recompute_capacity(c, c->node.data[k], &price));
		network_set_capacity(c->net, 2 * k + 1, save_capacity(c, k, &price));
	}
	network_cut(c->net, SOURCE, SINK, c->below);
	c->bytes = 0;
	for (uint32_t k = 0; k < c->node.n; k++)
		c->bytes += is_cut(c, k) ? c->cost[c->node.data[k].i].bytes : 0;
	return c->bytes;
}

/* Finds the least price at which no more than that is saved, to within an eighth; then as few
 * nodes pay it as is enough. Returns false where no price is high enough: the cut is then that
 * of the highest. */
static bool cut_within(SaveChoice *c, double bytes)
{
	enum { HIGHEST = 24, STEPS = 5 }; /* powers of two */
	double low = 0, high = 0;
	while (cut(c, (Price){.rest = exp2(high), .heavy = true}) > bytes && high < HIGHEST) {
		low = high;
		high += 2;
	}
	if (c->bytes > bytes)
		return false;
	for (int k = 0; k < STEPS && high > low; k++) {
		double middle = (low + high) / 2;
		bool enough = cut(c, (Price){.rest = exp2(middle), .heavy = true}) <= bytes;
		*(enough ? &high : &low) = middle;
	}
	uint32_t few = 0, many = c->node.n;
	while (many - few > 1 && high > low) {
		uint32_t middle = few + (many - few) / 2;
		bool enough = cut(c, (Price){.first = exp2(high),
					     .rest = exp2(low),
					     .nfirst = middle,
					     .heavy = true}) <= bytes;
		*(enough ? &many : &few) = middle;
	}
	cut(c, (Price){.first = exp2(high), .rest = exp2(low), .nfirst = many, .heavy = true});
	return true;
}

/* Chooses what is saved within a budget: up to 1 a part of what is saved without a budget, else
 * bytes. */
static bool choose_within(SaveChoice *c, double budget)
{
	Graph *g = c->p->g;
	double bytes = budget <= 1 ? floor(budget * c->bytes) : budget;
	if (c->bytes <= bytes || cut_within(c, bytes) || budget <= 1)
		return true;
	return ctx_error(g->ir->ctx, NULL,
			 "a memory budget of %.0f bytes: at the sizes that the model hints at no "
			 "less than %.0f can be saved "
			 "for gradients",
			 bytes, c->bytes);
}

static bool save(Parting *p, Node n)
{
	Graph *g = p->g;
	Ctx *ctx = g->ir->ctx;
	if (n.i >= p->undo.first)
		return ctx_error(ctx, node_where(g, n),
				 "an inverse of a block computes a value of which sizes depend on "
				 "data: not supported");
	if (node_dtype(g, n) == DT_none)
		return ctx_error(
			ctx, node_where(g, n),
			"several values in one are needed for gradients, and cannot be saved");
	if (node_has_data_size(g, n))
		return ctx_error(ctx, node_where(g, n),
				 "a value whose size depends on data would have to be saved for "
				 "gradients: not supported; "
				 "compile the graph of --mode vjp as one entry instead");
	p->saved[n.i] = true;
	array_push(ctx->arena, &p->list, n);
	return true;
}

bool partition_choose(Parting *p, double budget)
{
	SaveChoice c = {.p = p};
	find_late(p);
	TRY(check_late(p));
	c.cost = p->cost = partition_costs(p);
	find_given(p);
	partition_find_again(p);
	find_wanted(p);
	find_regions(p);
	find_nodes(&c);
	build_network(&c);
	cut(&c, (Price){.rest = MEMORY_PRICE});
	TRY(budget < 0 || choose_within(&c, budget));
	for (uint32_t k = 0; k < c.node.n; k++)
		if (is_cut(&c, k))
			TRY(save(p, c.node.data[k]));
	return true;
}
