/* Composites become what they mean.
 *
 *   %y = aten.linear(%x, %w, %b) : f32[8, 10]
 * becomes
 *   %1 = contract(%x, %w, ...) : f32[8, 10]
 *   %2 = broadcast(%b, ...) : f32[8, 10]
 *   %y = add(%1, %2) : f32[8, 10]
 *
 * The type of the replacement is compared with the one the file gave: provably different, or
 * different at the hints or at a sampled point, is bad input; undecided keeps the file's and
 * asserts it at entry: of %x[:, -1:] the file says [N, 1], which holds where there are columns.
 * Ends because expansions hold composites of lower rank only (tests/unit/ir_samples.c expands a
 * sample of every op and bounds depth and size). Does not simplify. */
#include "ir/build/adopt.h"
#include "passes/pass.h"

/* ---- expansion ---- */

/* Returns the replacement of n, none after ctx_error or for an op without result. */
static Node expand(Graph *g, Node n)
{
	Ctx *ctx = g->ir->ctx;
	uint32_t errors = ctx->nerror;
	Build b = pass_build(g, n);
	b.keep = true; /* they are visited next (expand_in) */
	Op op = node_op(g, n);
	Node new = op_expand_node(&b, n);
	if (ctx->nerror != errors)
		return (Node){0};
	if (op_schema(op)->nresult == 0)
		return (Node){0};
	if (!new.i) {
		ctx_error(ctx, node_where(g, n), "%s has no expansion for these operands",
			  op_name(op));
		return new;
	}
	TypeId file = node_type_id(g, n), ours = node_type_id(g, new);
	Truth same = file.i ? adopt_compare(g, ours, file) : YES;
	if (same == NO) {
		ctx_error(ctx, node_where(g, n), "%s gives %s here, but the file says %s",
			  op_name(op), type_str(g->ir, ours), type_str(g->ir, file));
		return (Node){0};
	}
	return same == MAYBE ? adopt_type(&b, new, file) : new;
}

/* Makes readers of elements read what now stands there, if it is a tuple. The last reader is the
 * first of the list. */
static void forward_gets(Graph *g, Node tuple)
{
	ARRAY(Node) get = {0};
	for (Use u = node_data(g, tuple)->first_use; u.i; u = g->use.data[u.i].next)
		if (node_op(g, g->use.data[u.i].user) == OP_get)
			array_push(g->ir->ctx->scratch, &get, g->use.data[u.i].user);
	while (get.n) {
		Node n = get.data[--get.n];
		Node x = node_element(g, tuple, (uint32_t)node_int(g, n, "index"));
		if (!x.i)
			return;
		pass_replace(g, n, x);
	}
}

static bool replace(Graph *g, Node n, PassCtx *c)
{
	uint32_t errors = g->ir->ctx->nerror;
	Node new = expand(g, n);
	if (g->ir->ctx->nerror != errors) {
		c->failed = true;
		return false;
	}
	if (new.i && node_nuses(g, n))
		graph_replace(g, n, new);
	graph_erase(g, n);
	if (new.i)
		forward_gets(g, new);
	return true;
}

static bool kept(const Graph *g, Node n, const PassCtx *c, Expands when)
{
	Op op = node_op(g, n);
	if (c->stays)
		return c->stays(g, n, c->stays_user);
	if (when == EXPANDS_IN_CANON && op_is_kept(op))
		return true;
	for (uint32_t k = 0; k < c->nkeep; k++)
		if (c->keep[k] == op)
			return true;
	return false;
}

static bool expand_in(Graph *g, PassCtx *c, Expands when)
{
	bool changed = false;
	for (Node n = g->first; n.i && !c->failed;) {
		Op op = node_op(g, n);
		Node before = node_prev(g, n), next = node_next(g, n);
		if (op_kind(op) == OP_COMPOSITE && !kept(g, n, c, when)) {
			changed |= replace(g, n, c);
			/* What it was built from may hold composites again. */
			next = before.i ? node_next(g, before) : g->first;
		}
		n = next;
	}
	return changed;
}

bool pass_canon(Graph *g, PassCtx *c)
{
	bool changed = expand_in(g, c, EXPANDS_IN_CANON);
	return pass_subgraphs(g, c, pass_canon) || changed;
}

bool pass_decompose(Graph *g, PassCtx *c)
{
	bool changed = expand_in(g, c, EXPANDS_IN_DECOMPOSE);
	return pass_subgraphs(g, c, pass_decompose) || changed;
}
