/* Complex values become pairs of real ones: planes for the real and the imaginary parts, of which
 * everything below knows how to compute.
 *
 *   %1 = view_complex(%x) : c64[4]               %re = reshape(slice(%x ..)) : f32[4]
 *   %2 = mul(%1, %c) : c64[4]              ->    %im = reshape(slice(%x ..)) : f32[4]
 *   %3 = view_real(%2) : f32[4, 2]               %3 = concat(re * c - im * d, re * d + im * c)
 *
 * Complex inputs and outputs stay what they are to the caller: they are read through view_real and
 * made by view_complex, the same memory. What scan, while and cond pass to their graphs and get
 * from them are pairs too, a last dimension of two. A complex operator without a rule stays too,
 * between these two, for the interpreter; lowering refuses it by name. One sweep, so it ends. */
#include <string.h>

#include "ops/rules/parts.h"
#include "passes/pass.h"

typedef struct {
	Build b;
	Parts *part; /* by node: of a complex value */
	uint32_t n;
	Node body; /* the first node behind the inputs */
} Split;

static bool is_complex(const Graph *g, Node n)
{
	return n.i && dtype_is_complex(node_type(g, n)->dtype);
}

/* Returns the value whose pairs these are; none if they were computed. */
static Node whole_of(const Graph *g, Node pairs)
{
	return pairs.i && node_op(g, pairs) == OP_view_real ? node_in(g, pairs, 0) : (Node){0};
}

static Node joined(Build *b, Parts *p)
{
	Node pairs = parts_to_pairs(b, p), whole = whole_of(b->g, pairs);
	return whole.i ? whole : b_node(b, OP_view_complex, &pairs, 1, NULL, 0);
}

static Parts *part(Split *s, Node n)
{
	return &s->part[n.i];
}

/* ---- functions that are told by a text (.complex) ---- */

/* Ends because what texts say holds functions of lower rank only. */
static bool expand_functions(Graph *g)
{
	bool changed = false;
	for (Node n = g->first, next; n.i; n = next) {
		next = node_next(g, n);
		if (!node_has_complex(g, n))
			continue;
		Node before = node_prev(g, n);
		Build b = pass_build(g, n);
		Node new = op_complex(&b, n);
		if (!new.i)
			return changed;
		pass_replace(g, n, new);
		next = before.i ? node_next(g, before) : g->first;
		changed = true;
	}
	return changed;
}

/* ---- the sweep ---- */

/* Keeps an operator without a rule: it reads and gives whole values. */
static void keep(Split *s, Node n)
{
	Graph *g = s->b.g;
	for (uint32_t k = 0; k < node_nin(g, n); k++) {
		Node x = node_in(g, n, k);
		if (is_complex(g, x) && x.i < s->n)
			graph_set_operand(g, n, k, joined(&s->b, part(s, x)));
	}
	if (!is_complex(g, n))
		return;
	s->b.before = node_op(g, n) == OP_input ? s->body : node_next(g, n);
	Node pairs = b_node(&s->b, OP_view_real, &n, 1, NULL, 0);
	s->part[n.i] = parts_of_pairs(&s->b, pairs);
}

static bool reads_complex(const Graph *g, Node n)
{
	for (uint32_t k = 0; k < node_nin(g, n); k++)
		if (is_complex(g, node_in(g, n, k)))
			return true;
	return false;
}

/* Returns the parts of n's operands. Real operands are their own real parts. */
static Parts *operands(Split *s, Node n)
{
	const Graph *g = s->b.g;
	uint32_t nin = node_nin(g, n);
	Parts *in = ARENA_ARRAY(g->ir->ctx->scratch, Parts, nin + 1);
	for (uint32_t k = 0; k < nin; k++) {
		Node x = node_in(g, n, k);
		in[k] = is_complex(g, x) ? *part(s, x) : (Parts){.re = x};
	}
	return in;
}

static bool visit(Split *s, Node n)
{
	Graph *g = s->b.g;
	Parts made;
	if (!is_complex(g, n) && !reads_complex(g, n))
		return false;
	s->b = pass_build(g, n);
	s->b.where = node_where(g, n);
	if (!node_parts(&s->b, n, operands(s, n), &made))
		keep(s, n);
	else if (is_complex(g, n))
		s->part[n.i] = made;
	else
		pass_replace(g, n, made.re);
	return true;
}

/* Makes outputs of parts; an input that is an output, too, of its own. */
static void join_outputs(Split *s)
{
	Graph *g = s->b.g;
	for (uint32_t k = 0; k < g->output.n; k++) {
		Node n = g->output.data[k].node;
		if (!is_complex(g, n) || n.i >= s->n)
			continue;
		s->b = (Build){.g = g, .loc = node_data(g, n)->loc};
		Node pairs = parts_to_pairs(&s->b, part(s, n));
		Node whole = b_node(&s->b, OP_view_complex, &pairs, 1, NULL, 0);
		if (whole_of(g, pairs).i)
			graph_set_output(g, k, whole); /* other readers keep the value itself */
		else
			graph_replace(g, n, whole);
	}
}

/* ---- graphs of nodes ---- */

static TypeId pairs_type(Ir *ir, TypeId type)
{
	const Type t = *ir_type_of(ir, type);
	Sym dim[MAX_RANK + 1];
	if (!dtype_is_complex(t.dtype))
		return type;
	if (t.n)
		memcpy(dim, t.dim, t.n * sizeof *dim);
	dim[t.n] = sym_int(ir->syms, 2);
	return ir_type(ir, dtype_real(t.dtype), t.n + 1, dim);
}

/* Makes x pairs; its readers read view_complex of it, ahead of `before`. */
static void become_pairs(Graph *g, Node x, Node before)
{
	Build b = {.g = g, .before = before, .loc = node_data(g, x)->loc};
	graph_set_type(g, x, pairs_type(g->ir, node_type_id(g, x)));
	Node whole = b_node(&b, OP_view_complex, &x, 1, NULL, 0);
	for (Use u = node_data(g, x)->first_use, next; u.i; u = next) {
		Node user = g->use.data[u.i].user;
		next = g->use.data[u.i].next; /* a node that reads x twice has two uses */
		if (user.i != whole.i)
			graph_set_operand(g, user, u.i - node_data(g, user)->in, whole);
	}
	for (uint32_t k = 0; k < g->output.n; k++)
		if (g->output.data[k].node.i == x.i)
			graph_set_output(g, k, whole);
}

static void pairs_in_body(Graph *body)
{
	Node first = graph_behind_inputs(body);
	for (uint32_t k = 0; k < body->input.n; k++)
		if (is_complex(body, body->input.data[k].node))
			become_pairs(body, body->input.data[k].node, first);
	for (uint32_t k = 0; k < body->output.n; k++) {
		Node x = body->output.data[k].node;
		Build b = {.g = body, .loc = node_data(body, x)->loc};
		if (is_complex(body, x))
			graph_set_output(body, k, b_node(&b, OP_view_real, &x, 1, NULL, 0));
	}
}

/* Makes complex results of n, a tuple, pairs. Returns whether there are any. */
static bool pairs_of_results(Graph *g, Node n)
{
	const Type t = *node_type(g, n);
	TypeId *elem = ARENA_ARRAY(g->ir->ctx->scratch, TypeId, t.n);
	bool changed = false;
	for (uint32_t k = 0; k < t.n; k++) {
		elem[k] = pairs_type(g->ir, t.elem[k]);
		if (elem[k].i == t.elem[k].i)
			continue;
		changed = true;
		Use u = node_data(g, n)->first_use;
		for (Node r; (r = node_next_get(g, &u, k)).i;)
			become_pairs(g, r, node_next(g, r));
	}
	if (changed)
		graph_set_type(g, n, ir_tuple(g->ir, t.n, elem));
	return changed;
}

/* Makes complex values that a node with graphs passes to them and gets from them pairs. Returns
 * whether the node changed. */
static bool pairs_of_control(Graph *g, Node n)
{
	Graph *body;
	for (uint32_t k = 0; (body = node_next_body(g, n, &k));)
		pairs_in_body(body);
	if (!node_has_graph(g, n))
		return false;
	Build b = pass_build(g, n);
	bool changed = false;
	for (uint32_t k = 0; k < node_nin(g, n); k++) {
		Node x = node_in(g, n, k);
		if (!is_complex(g, x))
			continue;
		graph_set_operand(g, n, k, b_node(&b, OP_view_real, &x, 1, NULL, 0));
		changed = true;
	}
	return pairs_of_results(g, n) || changed;
}

bool pass_split_complex(Graph *g, PassCtx *c)
{
	bool changed = false;
	for (Node n = g->first; n.i; n = node_next(g, n))
		changed |= pairs_of_control(g, n);
	changed |= expand_functions(g);
	Split s = {.b = {.g = g}, .n = g->node.n};
	s.part = ARENA_ARRAY(g->ir->ctx->scratch, Parts, s.n);
	s.body = graph_behind_inputs(g);
	for (Node n = g->first; n.i;) {
		Node next = node_next(g, n);
		changed |= visit(&s, n);
		n = next;
	}
	if (changed) {
		join_outputs(&s);
		graph_dce(g); /* no later pass is to look at what was split */
	}
	return pass_subgraphs(g, c, pass_split_complex) || changed;
}
