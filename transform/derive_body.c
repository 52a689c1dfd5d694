/* The graphs of loops and branches, differentiated: what is computed forwards, what is kept of it,
 * what is computed backwards.
 *
 *   body(%h, %x, %w) {                      forwards backwards, from %ct of the result
 *     %p = contract(%h, %w)                   %p = contract(%h, %w) %y = tanh(add(%p, %x))
 *     %s = add(%p, %x)               -> %y = tanh(add(%p, %x)) %g = mul(%ct, 1 - %y*%y)
 *     %y = tanh(%s)                           return %y, %p, %h return contract(%g, %w),
 *                                             contract(%g, %h)
 *     return %y }
 *
 * Kept is what is expensive and what the loop carries: what element-wise functions and index maps
 * make of that is computed again where it is read, in the kernels that read it, and so is what
 * depends on nothing that changes. */
#include "transform/derive_priv.h"

/* ---- what depends on what ---- */

void body_activity(const Graph *body, const bool *in, bool *out)
{
	Reverse r = reverse_new((Graph *)body, (Build){0}, 1, body->node.n - 1);
	for (uint32_t k = 0; k < body->input.n; k++)
		if (in[k] && dtype_is_inexact(node_dtype(body, body->input.data[k].node)))
			reverse_mark(&r, body->input.data[k].node);
	if (body->first.i)
		reverse_spread(&r, body->first, body->last);
	for (uint32_t k = 0; k < body->output.n; k++)
		out[k] = reverse_active(&r, body->output.data[k].node);
}

void body_carries(const Graph *body, uint32_t ncarry, bool *in, bool *out)
{
	for (bool more = true; more;) {
		more = false;
		body_activity(body, in, out);
		for (uint32_t k = 0; k < ncarry; k++)
			if (out[k] && !in[k])
				in[k] = more = true;
	}
	for (uint32_t k = 0; k < ncarry; k++)
		out[k] = in[k];
}

void body_readers(const Graph *body, const bool *out, bool *in)
{
	bool *read = ZEROED(body, bool, body->node.n);
	for (uint32_t k = 0; k < body->output.n; k++)
		read[body->output.data[k].node.i] |= out[k];
	for (Node n = body->last; n.i; n = node_prev(body, n))
		for (uint32_t k = 0; read[n.i] && k < node_nin(body, n); k++)
			read[node_in(body, n, k).i] = true;
	for (uint32_t k = 0; k < body->input.n; k++)
		in[k] = read[body->input.data[k].node.i];
}

/* ---- both directions in one graph ---- */

static void start(Linearized *l, const Graph *body)
{
	Graph *g = graph_beside(body, body->name);
	*l = (Linearized){.g = g,
			  .nin = body->input.n,
			  .nout = body->output.n,
			  .in = ZEROED(g, Node, body->input.n),
			  .out = ZEROED(g, Node, body->output.n),
			  .ct = ZEROED(g, Node, body->output.n),
			  .grad = ZEROED(g, Node, body->input.n),
			  .reads = ZEROED(g, bool, body->input.n)};
	for (uint32_t k = 0; k < l->nin; k++) {
		GraphInput in = body->input.data[k];
		l->in[k] = graph_add_input(g, in.name, INPUT_USER, node_type_id(body, in.node));
	}
	graph_inline(g, (Node){0}, body, l->in, l->out);
}

/* Whether n is computed again rather than kept: what is made of nothing, element-wise functions,
 * index maps. */
static bool is_cheap(const Graph *g, Node n)
{
	Op op = node_op(g, n);
	LowerRole role = op_lower(op)->role;
	return !node_nin(g, n) || op_is_scalar(op) || op_info(op)->deriv[0] || role == LOWER_MAP ||
	       role == LOWER_INDEX;
}

static bool reads_any(const Graph *g, Node n, const bool *of)
{
	for (uint32_t k = 0; k < node_nin(g, n); k++)
		if (of[node_in(g, n, k).i])
			return true;
	return false;
}

/* Whether a size of the node gets its value in the body, in every round another one. */
static bool uses_found_size(const Graph *g, Node n)
{
	const SymTab *syms = graph_syms(g);
	for (uint32_t v = 0; v < sym_nvars(syms); v++) {
		Sym var = sym_var_at(syms, v);
		if (sym_var_kind(syms, var) == SYMVAR_UNBACKED && node_uses(g, n, var) &&
		    !graph_is_given(g, var) && graph_finds(g, var))
			return true;
	}
	return false;
}

/* Finds the values to keep, from the cotangents back to what they are made of. */
static bool find_kept(Linearized *l, const bool *step)
{
	Graph *g = l->g;
	bool *backward = ZEROED(g, bool, g->node.n), *varies = ZEROED(g, bool, g->node.n);
	bool *needed = ZEROED(g, bool, g->node.n);
	l->kept = ZEROED(g, Node, g->node.n);
	l->kept_at = ZEROED(g, uint32_t, g->node.n);
	for (uint32_t k = 0; k < l->nout; k++)
		backward[l->ct[k].i] = l->ct[k].i != 0;
	for (uint32_t k = 0; k < l->nin; k++) {
		varies[l->in[k].i] = step[k];
		needed[l->grad[k].i] = l->grad[k].i != 0;
	}
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		backward[n.i] |= reads_any(g, n, backward);
		varies[n.i] |= reads_any(g, n, varies);
	}
	for (Node n = g->last; n.i; n = node_prev(g, n)) {
		if (!needed[n.i] || node_op(g, n) == OP_input)
			continue;
		if (backward[n.i] ? uses_found_size(g, n) : node_has_data_size(g, n))
			return ctx_error(g->ir->ctx, node_near(g, n),
					 "derivatives through a loop or branch in which a size "
					 "depends on data are "
					 "not supported");
		if (backward[n.i] || is_cheap(g, n) || !varies[n.i])
			for (uint32_t k = 0; k < node_nin(g, n); k++)
				needed[node_in(g, n, k).i] = true;
		else
			l->kept[l->nkept++] = n;
	}
	for (uint32_t k = 0; k < l->nin; k++)
		l->reads[k] = needed[l->in[k].i];
	return true;
}

bool body_linearize(const Graph *body, const Build *at, const bool *active, const bool *has_ct,
		    const bool *step, Linearized *l)
{
	start(l, body);
	Graph *g = l->g;
	Build b = {.g = g, .loc = at->loc, .where = at->where};
	Node last = g->last;
	Reverse r = reverse_new(g, b, 1, g->node.n - 1);
	for (uint32_t k = 0; k < l->nin; k++)
		if (active[k])
			reverse_mark(&r, l->in[k]);
	if (last.i)
		reverse_spread(&r, g->first, last);
	for (uint32_t k = 0; k < l->nout; k++)
		if (has_ct[k]) {
			l->ct[k] = graph_add_input(g, "ct", INPUT_USER, node_type_id(g, l->out[k]));
			reverse_add(&r, l->out[k], l->ct[k]);
		}
	TRY(reverse_run(&r, last, (Node){0}));
	/* where a cotangent is handed on as it is, it is read as an input of the body is */
	for (uint32_t k = 0; k < l->nin; k++)
		l->grad[k] = reverse_cotangent(&r, l->in[k]);
	return find_kept(l, step);
}

Graph *body_forward(Linearized *l, uint32_t shared)
{
	Graph *g = l->g, *to = graph_beside(g, g->name);
	Build b = {.g = to};
	Node *arg = ZEROED(g, Node, g->input.n), *out = ZEROED(g, Node, l->nout + l->nkept);
	for (uint32_t k = 0; k < l->nout; k++)
		graph_add_output(g, "y", l->out[k], -1);
	for (uint32_t k = 0; k < l->nkept; k++) {
		l->kept_at[k] = g->output.n;
		for (uint32_t j = shared; j < g->output.n && l->kept_at[k] == g->output.n; j++)
			if (g->output.data[j].node.i == l->kept[k].i)
				l->kept_at[k] = j;
		if (l->kept_at[k] == g->output.n)
			graph_add_output(g, "kept", l->kept[k], -1);
	}
	for (uint32_t k = 0; k < l->nin; k++)
		arg[k] = graph_add_input(to, g->input.data[k].name, INPUT_USER,
					 node_type_id(g, l->in[k]));
	for (uint32_t k = l->nin; k < g->input.n; k++) /* what is computed of them goes */
		arg[k] = b_zeros(&b, node_type_id(g, g->input.data[k].node));
	graph_inline(to, (Node){0}, g, arg, out);
	for (uint32_t k = 0; k < g->output.n; k++)
		graph_add_output(to, g->output.data[k].name, out[k], -1);
	graph_dce(to);
	return to;
}

/* Removes what nobody reads, checks too: they were made forwards. */
static void drop_unread(Graph *g)
{
	for (Node n = g->last, prev; n.i; n = prev) {
		prev = node_prev(g, n);
		if (node_op(g, n) != OP_input && !node_nuses(g, n))
			graph_erase(g, n);
	}
}

void body_backward(Linearized *l, Build *b, const Node *in, const Node *ct, const Node *kept,
		   Node *grad)
{
	Graph *g = l->g;
	uint32_t nout = 0;
	Node *out = ZEROED(g, Node, l->nin), *arg = ZEROED(g, Node, l->nin + l->nout + l->nkept);
	uint32_t narg = 0;
	graph_clear_outputs(g);
	for (uint32_t k = 0; k < l->nkept; k++) {
		Node by = graph_add_input(g, "kept", INPUT_USER, node_type_id(g, l->kept[k]));
		graph_replace(g, l->kept[k], by);
		for (uint32_t j = 0; j < l->nin; j++)
			l->grad[j] = l->grad[j].i == l->kept[k].i ? by : l->grad[j];
	}
	for (uint32_t k = 0; k < l->nin; k++)
		if (l->grad[k].i)
			graph_add_output(g, "g", l->grad[k], -1);
	drop_unread(g);
	for (uint32_t k = 0; k < l->nin; k++)
		arg[narg++] = in[k];
	for (uint32_t k = 0; k < l->nout; k++)
		if (l->ct[k].i)
			arg[narg++] = ct[k];
	for (uint32_t k = 0; k < l->nkept; k++)
		arg[narg++] = kept[k];
	graph_inline(b->g, b->before, g, arg, out);
	for (uint32_t k = 0; k < l->nin; k++)
		grad[k] = l->grad[k].i ? out[nout++] : (Node){0};
}

bool body_tangents(const Graph *body, Build *b, const Node *in, const Node *t, Node *out, Node *ty)
{
	Graph *g = b->g;
	Node before = g->last;
	graph_inline(g, (Node){0}, body, in, out);
	Forward f = forward_new(g);
	for (uint32_t k = 0; k < body->input.n; k++)
		if (t[k].i)
			forward_set(&f, in[k], t[k]);
	Node first = before.i ? node_next(g, before) : g->first;
	if (first.i)
		TRY(forward_run(&f, first));
	for (uint32_t k = 0; k < body->output.n; k++)
		ty[k] = forward_tangent(&f, out[k]);
	forward_end(&f);
	return true;
}
