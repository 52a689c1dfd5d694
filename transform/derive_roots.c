/* What a graph is differentiated by: inputs, and constants, each of which becomes one node that all
 * read, in loops and branches too.
 *
 *   %r = scan([%h], [], [], body=graph(%h) {          %w = constant(#1)
 *     %w = constant(#1) ...                    -> %r = scan([%h], [], [%w], body=graph(%h, %w) {
 *                                              ... }) */
#include <string.h>

#include "transform/derive_priv.h"

static bool wanted_input(const Graph *g, const Wrt *w, uint32_t k)
{
	const GraphInput *in = &g->input.data[k];
	return w->input ? w->input[k]
			: in->kind == INPUT_USER && dtype_is_inexact(node_dtype(g, in->node));
}

/* ---- constants ---- */

/* Sets body[] to the subgraphs of a node, at most two, and returns their number. */
static uint32_t bodies_of(const Graph *g, Node n, Graph *body[2])
{
	uint32_t count = 0;
	for (uint32_t k = 0; count < 2 && (body[count] = node_next_body(g, n, &k));)
		count++;
	return count;
}

/* Replaces n by a node with more operands in its last list, which are the last inputs of its
 * bodies. */
static Node with_operands(Graph *g, Node n, const Node *more, uint32_t count)
{
	const NodeData d = *node_data(g, n);
	const Schema *s = op_schema(d.op);
	Attr attr[MAX_ARGS];
	Node *in = ZEROED(g, Node, d.nin + count);
	uint32_t last = 0;
	node_copy_attrs(g, n, attr);
	for (uint32_t k = 0; k < s->narg; k++)
		last = s->arg[k].kind == ARG_tensors ? k : last;
	attr[last].s = sym_addi(graph_syms(g), attr[last].s, count);
	for (uint32_t k = 0; k < d.nin; k++)
		in[k] = node_in(g, n, k);
	memcpy(in + d.nin, more, count * sizeof *more);
	Node by = graph_add(g, n, d.op, in, d.nin + count, ir_attrs(g->ir, s->narg, attr), d.type,
			    d.loc);
	pass_replace(g, n, by);
	return by;
}

static bool reads_wanted(const Graph *g, const bool *wanted)
{
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		const Graph *body;
		for (uint32_t k = 0; (body = node_next_body(g, n, &k));)
			if (reads_wanted(body, wanted))
				return true;
		if (wanted[node_const(g, n).i])
			return true;
	}
	return false;
}

/* Collects the constants that count: one node for each, before all that read it, node[c]. */
static void collect(Graph *g, const bool *wanted, Node *node);

/* Makes the constants that bodies of n read operands of n. */
static void lift(Graph *g, Node n, const bool *wanted, Node *node)
{
	uint32_t nconst = g->ir->constant.n, count = 0;
	Graph *body[2];
	Node *of[2], *more;
	uint32_t nbody = bodies_of(g, n, body);
	bool reads = false;
	for (uint32_t k = 0; k < nbody; k++)
		reads |= reads_wanted(body[k], wanted);
	if (!reads)
		return;
	more = ZEROED(g, Node, nconst);
	for (uint32_t k = 0; k < nbody; k++) {
		of[k] = ZEROED(g, Node, nconst);
		collect(body[k], wanted, of[k]);
	}
	for (uint32_t c = 1; c < nconst; c++) {
		Node some = of[0][c].i ? of[0][c] : nbody > 1 ? of[1][c] : (Node){0};
		if (!some.i)
			continue;
		TypeId type = node_type_id(of[0][c].i ? body[0] : body[1], some);
		if (!node[c].i) {
			Attr value[] = {attr_const((ConstId){c})};
			node[c] = graph_add(g, n, OP_constant, NULL, 0, ir_attrs(g->ir, 1, value),
					    type, (LocId){0});
		}
		more[count++] = node[c];
		for (uint32_t k = 0; k < nbody; k++) {
			Node input = graph_add_input(
				body[k], ir_const_of(g->ir, (ConstId){c})->name, INPUT_USER, type);
			if (of[k][c].i)
				pass_replace(body[k], of[k][c], input);
		}
	}
	if (count)
		with_operands(g, n, more, count);
}

static void collect(Graph *g, const bool *wanted, Node *node)
{
	for (Node n = g->first, next; n.i; n = next) {
		next = node_next(g, n);
		uint32_t c = node_const(g, n).i;
		if (c && wanted[c] && node[c].i)
			pass_replace(g, n, node[c]);
		else if (c && wanted[c])
			node[c] = n;
		else
			lift(g, n, wanted, node);
	}
}

/* ---- complex constants ---- */

/* Returns the complex constant whose pairs c is, as split_complex reads it; 0 if c is none of
 * these. */
static ConstId whole_of(const Ir *ir, uint32_t c)
{
	const ConstId of = ir_const_of(ir, (ConstId){c})->view_of;
	return of.i && dtype_is_complex(ir_const_of(ir, of)->dtype) ? of : (ConstId){0};
}

static void want_pairs(const Ir *ir, bool *wanted)
{
	for (uint32_t c = 1; c < ir->constant.n; c++)
		wanted[c] |= wanted[whole_of(ir, c).i];
}

/* Makes what was collected of pairs view_real of the constant itself, which is the root. */
static void join_pairs(Graph *g, const bool *wanted, Node *node)
{
	for (uint32_t c = 1; c < g->ir->constant.n; c++) {
		const ConstId of = whole_of(g->ir, c);
		if (!node[c].i || !wanted[of.i])
			continue;
		const Const *k = ir_const_of(g->ir, of);
		const Node first = graph_behind_inputs(g);
		Attr value[] = {attr_const(of)};
		Node whole = graph_add(g, first, OP_constant, NULL, 0, ir_attrs(g->ir, 1, value),
				       ir_type_ints(g->ir, k->dtype, k->rank, k->dim), (LocId){0});
		if (node[of.i].i)
			pass_replace(g, node[of.i], whole);
		node[of.i] = whole;
		Build b = pass_build(g, first);
		pass_replace(g, node[c], b_node(&b, OP_view_real, &whole, 1, NULL, 0));
	}
}

/* ---- roots ---- */

static bool check_wrt(Graph *g, const Wrt *w)
{
	for (uint32_t k = 0; k < g->input.n; k++) {
		DType d = node_dtype(g, g->input.data[k].node);
		if (wanted_input(g, w, k) && !dtype_is_inexact(d))
			return ctx_error(g->ir->ctx, node_where(g, g->input.data[k].node),
					 "there is no derivative by a value of dtype %s: leave "
					 "this input out",
					 dtype_name(d)) ||
			       ctx_kind(g->ir->ctx, REFUSAL_DERIVATIVE);
	}
	return true;
}

bool roots_of(Graph *g, const Wrt *w, Roots *out)
{
	Arena *scratch = g->ir->ctx->scratch;
	uint32_t most = g->input.n + w->nparam;
	Roots r = {0, ZEROED(g, Node, most), ZEROED(g, TypeId, most),
		   ARENA_ARRAY(scratch, const char *, most)};
	bool *wanted = ZEROED(g, bool, g->ir->constant.n);
	Node *node = ZEROED(g, Node, g->ir->constant.n);
	TRY(check_wrt(g, w));
	for (uint32_t k = 0; k < g->input.n; k++)
		if (wanted_input(g, w, k)) {
			r.name[r.n] = g->input.data[k].name;
			r.type[r.n] = node_type_id(g, g->input.data[k].node);
			r.node[r.n++] = g->input.data[k].node;
		}
	for (uint32_t k = 0; k < w->nparam; k++)
		wanted[w->param[k].i] = true;
	if (w->nparam) {
		want_pairs(g->ir, wanted);
		collect(g, wanted, node);
		join_pairs(g, wanted, node);
	}
	for (uint32_t k = 0; k < w->nparam; k++) {
		const Const *c = ir_const_of(g->ir, w->param[k]);
		r.name[r.n] = c->name;
		r.type[r.n] = ir_type_ints(g->ir, c->dtype, c->rank, c->dim);
		r.node[r.n++] = node[w->param[k].i];
	}
	*out = r;
	return true;
}
