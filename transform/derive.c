/* Cotangents flow against the order of nodes, tangents along it. The rule of a node is its block's
 * (op_vjp, op_jvp).
 *
 *   graph @main(%x: f32[4]) {                        graph @main_vjp(%x: f32[4], %ct.y: f32[4]) {
 *     %1 = sin(%x) : f32[4]                            %1 = sin(%x) : f32[4]
 *     %y = mul(%1, %x) : f32[4]                ->      %y = mul(%1, %x) : f32[4]
 *     return %y                                        %3 = mul(%ct.y, %x)
 *   }                                                  %4 = mul(%ct.y, %1)
 *                                                      %6 = add(%4, mul(%3, cos(%x)))
 *                                                      return %y, %6
 *
 * The last reader of a value is visited first and contributions are added in that order, as PyTorch
 * adds them: so sums have the bits of a left fold. One rule is enough for both directions: the
 * tangent of a node that states only what becomes of cotangents is that linear function transposed,
 * by the same walk over the nodes that it added.
 *
 * Linear in the number of nodes: a node is visited once, and its rule adds a bounded number of
 * nodes. */
#include "ir/build/verify.h"
#include "ops/rules/rules.h"
#include "transform/control.h"

/* ---- cotangents ---- */

Reverse reverse_new(Graph *g, Build b, uint32_t first, uint32_t n)
{
	Arena *scratch = g->ir->ctx->scratch;
	return (Reverse){.g = g, .b = b, .first = first, .n = n,
			 .active = arena_calloc(scratch, n, sizeof(bool)),
			 .ct = arena_calloc(scratch, n, sizeof(Node)),
			 .element = arena_calloc(scratch, n, sizeof(Node *))};
}

static bool within(const Reverse *r, Node n)
{
	return n.i >= r->first && n.i < r->first + r->n;
}

bool reverse_active(const Reverse *r, Node n)
{
	return n.i && within(r, n) && r->active[n.i - r->first];
}

void reverse_mark(Reverse *r, Node n)
{
	if (within(r, n))
		r->active[n.i - r->first] = true;
}

static bool reads_active(const Reverse *r, Node n)
{
	for (uint32_t k = 0; k < node_nin(r->g, n); k++)
		if (reverse_active(r, node_in(r->g, n, k)))
			return true;
	return false;
}

void reverse_spread(Reverse *r, Node from, Node last)
{
	for (Node n = from; n.i; n = n.i == last.i ? (Node){0} : node_next(r->g, n)) {
		const Type *t = node_type_id(r->g, n).i ? node_type(r->g, n) : NULL;
		if (t && within(r, n) && (t->dtype == DT_none || dtype_is_inexact(t->dtype)) &&
		    reads_active(r, n))
			reverse_mark(r, n);
	}
}

void reverse_add(Reverse *r, Node value, Node ct)
{
	if (!ct.i || !reverse_active(r, value))
		return;
	Node *at = &r->ct[value.i - r->first];
	*at = b_add(&r->b, *at, ct);
}

Node reverse_cotangent(const Reverse *r, Node value)
{
	return within(r, value) ? r->ct[value.i - r->first] : (Node){0};
}

static void add_element(Reverse *r, Node tuple, uint32_t k, Node ct)
{
	if (!ct.i || !reverse_active(r, tuple))
		return;
	Node **e = &r->element[tuple.i - r->first];
	if (!*e)
		*e = arena_calloc(r->g->ir->ctx->scratch, node_type(r->g, tuple)->n, sizeof **e);
	(*e)[k] = b_add(&r->b, (*e)[k], ct);
}

static bool node_vjp(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	const Control *c = control_of(b->g, n);
	if (!c || !c->vjp)
		return op_vjp(b, n, ct, want, g);
	Build own = {b->g, b->before, node_data(b->g, n)->loc, node_near(b->g, n)};
	return c->vjp(&own, n, ct, want, g);
}

static bool visit(Reverse *r, Node n)
{
	Graph *g = r->g;
	Op op = node_op(g, n);
	uint32_t at = n.i - r->first, nin = node_nin(g, n);
	const Node *ct = node_type(g, n)->dtype == DT_none ? r->element[at] : &r->ct[at];
	if (!ct || (node_type(g, n)->dtype != DT_none && !ct->i) || !reads_active(r, n))
		return true;
	if (op == OP_get) {
		add_element(r, node_in(g, n, 0), (uint32_t)node_int(g, n, "index"), *ct);
		return true;
	}
	Arena *scratch = g->ir->ctx->scratch;
	Node *part = ARENA_ARRAY(scratch, Node, nin), *in = ARENA_ARRAY(scratch, Node, nin);
	bool *want = ARENA_ARRAY(scratch, bool, nin);
	for (uint32_t k = 0; k < nin; k++) {
		in[k] = node_in(g, n, k);
		want[k] = reverse_active(r, in[k]);
	}
	if (op == OP_tuple) {
		for (uint32_t k = 0; k < nin; k++)
			reverse_add(r, in[k], ct[k]);
		return true;
	}
	/* a node that executes graphs may be replaced by one that keeps more */
	TRY(node_vjp(&r->b, n, ct, want, part));
	for (uint32_t k = 0; k < nin; k++)
		reverse_add(r, in[k], part[k]);
	return true;
}

bool reverse_run(Reverse *r, Node last, Node before)
{
	for (Node n = last, prev; n.i != before.i; n = prev) {
		prev = node_prev(r->g, n);
		if (reverse_active(r, n))
			TRY(visit(r, n));
	}
	return true;
}

/* ---- tangents ---- */

Forward forward_new(Graph *g)
{
	Arena *scratch = g->ir->ctx->scratch;
	return (Forward){.g = g,
			 .n = g->node.n,
			 .t = arena_calloc(scratch, g->node.n, sizeof(Node)),
			 .element = arena_calloc(scratch, g->node.n, sizeof(Node *))};
}

void forward_set(Forward *f, Node value, Node tangent)
{
	f->t[value.i] = tangent;
}

Node forward_tangent(const Forward *f, Node value)
{
	return f->t[value.i];
}

/* Sets ct[] to unknown values for the cotangents of n's results, behind barriers, so that no
 * simplification of builders sees through. */
static void unknowns(Build *b, Node n, Node *ct)
{
	for (uint32_t k = 0; k < node_nresult(b->g, n); k++) {
		TypeId type = node_result_type(b->g, n, k);
		Node zero = dtype_is_inexact(ir_type_of(b->g->ir, type)->dtype) ? b_zeros(b, type)
										: (Node){0};
		ct[k] = zero.i ? b_node(b, OP_barrier, &zero, 1, NULL, 0) : zero;
	}
}

/* Sets ty[] to the tangents of n's results by the rule for cotangents, transposed: <g, t> = <ct,
 * ty> for all ct. */
static bool transposed(Build *b, Node n, const Node *t, Node *ty)
{
	Graph *g = b->g;
	uint32_t nin = node_nin(g, n), nresult = node_nresult(g, n), first = g->node.n;
	Arena *scratch = g->ir->ctx->scratch;
	Node *ct = ARENA_ARRAY(scratch, Node, nresult), *part = ARENA_ARRAY(scratch, Node, nin);
	bool *want = ARENA_ARRAY(scratch, bool, nin);
	Node before = b->before.i ? node_prev(g, b->before) : g->last;
	for (uint32_t k = 0; k < nin; k++)
		want[k] = t[k].i;
	unknowns(b, n, ct);
	TRY(op_vjp(b, n, ct, want, part));
	Reverse r = reverse_new(g, *b, first, g->node.n - first);
	for (uint32_t k = 0; k < nresult; k++)
		if (ct[k].i)
			reverse_mark(&r, ct[k]);
	Node last = b->before.i ? node_prev(g, b->before) : g->last;
	if (last.i != before.i)
		reverse_spread(&r, before.i ? node_next(g, before) : g->first, last);
	for (uint32_t k = 0; k < nin; k++)
		if (part[k].i)
			reverse_add(&r, part[k], t[k]);
	TRY(reverse_run(&r, last, before));
	for (uint32_t k = 0; k < nresult; k++)
		ty[k] = ct[k].i ? reverse_cotangent(&r, ct[k]) : ct[k];
	return true;
}

static bool push(Forward *f, Node n)
{
	Graph *g = f->g;
	Op op = node_op(g, n);
	uint32_t nin = node_nin(g, n);
	bool any = false;
	Node *t = ARENA_ARRAY(g->ir->ctx->scratch, Node, nin);
	if (!node_type_id(g, n).i)
		return true;
	bool tuple = node_type(g, n)->dtype == DT_none;
	if (op == OP_get) {
		const Node *e = f->element[node_in(g, n, 0).i];
		f->t[n.i] = e ? e[node_int(g, n, "index")] : (Node){0};
		return true;
	}
	for (uint32_t k = 0; k < nin; k++) {
		t[k] = f->t[node_in(g, n, k).i];
		any |= t[k].i != 0 || f->element[node_in(g, n, k).i];
	}
	if (!any || (!tuple && !dtype_is_inexact(node_dtype(g, n))))
		return true;
	if (tuple)
		f->element[n.i] =
			arena_calloc(g->ir->ctx->scratch, node_type(g, n)->n, sizeof(Node));
	Node *ty = tuple ? f->element[n.i] : &f->t[n.i];
	Build b = {.g = g,
		   .before = node_next(g, n),
		   .loc = node_data(g, n)->loc,
		   .where = node_near(g, n)};
	if (op == OP_tuple) {
		for (uint32_t k = 0; k < nin; k++)
			ty[k] = t[k];
		return true;
	}
	const Control *c = control_of(g, n);
	if (c && c->jvp)
		return c->jvp(f, &b, n, t, ty);
	return node_has_jvp(g, n) ? op_jvp(&b, n, t, ty) : transposed(&b, n, t, ty);
}

bool forward_run(Forward *f, Node first)
{
	for (Node n = first, next; n.i; n = next) {
		next = node_next(f->g, n); /* the tangent comes between */
		TRY(push(f, n));
	}
	return true;
}

void replace_tuple(Graph *g, Node old, Node by)
{
	graph_replace(g, old, by);
	graph_erase(g, old);
}

void forward_end(Forward *f)
{
	Graph *g = f->g;
	for (uint32_t k = 0; k < f->replaced.n; k++) {
		const Replaced *r = &f->replaced.data[k];
		for (Use u = node_data(g, r->old)->first_use; u.i && r->shift;
		     u = g->use.data[u.i].next) {
			Node get = g->use.data[u.i].user;
			int64_t index = node_int(g, get, "index");
			if (index >= r->first)
				graph_set_attrs(
					g, get,
					ir_attrs(g->ir, 2,
						 (Attr[]){attr_none(),
							  attr_int(g->ir, index + r->shift)}));
		}
		replace_tuple(g, r->old, r->by);
	}
}

/* ---- the transforms ---- */

/* Whether output k is a result that has derivatives. */
static bool has_derivative(const Graph *g, uint32_t k)
{
	return !graph_output_is_state(g, k) &&
	       dtype_is_inexact(node_dtype(g, g->output.data[k].node));
}

static const char *prefixed(Graph *g, const char *prefix, const char *name)
{
	return arena_printf(g->ir->ctx->arena, "%s.%s", prefix, name);
}

/* Removes what only helped to make the rest, and verifies the graph. */
static Graph *finished(Graph *g)
{
	graph_dce(g);
	if (!graph_verify(g))
		ctx_bug_verify(g->ir->ctx, "a transform");
	return g;
}

Graph *transform_vjp(const Graph *src, const Wrt *w)
{
	Graph *g = transform_begin(src, op_has_vjp);
	Roots roots;
	if (!g || !roots_of(g, w, &roots))
		return NULL;
	uint32_t nresult = g->output.n;
	Node last = g->last;
	Reverse r = reverse_new(g, (Build){.g = g}, 1, g->node.n - 1);
	for (uint32_t k = 0; k < roots.n; k++)
		if (roots.node[k].i)
			reverse_mark(&r, roots.node[k]);
	reverse_spread(&r, g->first, last);
	for (uint32_t k = 0; k < nresult; k++) {
		GraphOutput o = g->output.data[k];
		if (has_derivative(g, k) && (!w->output || w->output[k]))
			reverse_add(&r, o.node,
				    graph_add_input(g, prefixed(g, "ct", o.name), INPUT_USER,
						    node_type_id(g, o.node)));
	}
	if (!reverse_run(&r, last, (Node){0}))
		return NULL;
	for (uint32_t k = 0; k < roots.n; k++) {
		Node ct = roots.node[k].i ? reverse_cotangent(&r, roots.node[k]) : (Node){0};
		graph_add_output(g, prefixed(g, "g", roots.name[k]),
				 ct.i ? ct : b_zeros(&r.b, roots.type[k]), -1);
	}
	return finished(g);
}

/* Whether cotangents cannot pass the node, which is no tuple, to an active operand that is none
 * either. */
static bool lacks_derivative(const Reverse *r, Node n)
{
	const Graph *g = r->g;
	const OpInfo *info = op_info(node_op(g, n));
	const Control *c = control_of(g, n);
	if (!node_is_tensor(g, n) || (c && c->vjp) || info->adjoint || info->vjp)
		return false;
	for (uint32_t k = 0; k < node_nin(g, n); k++)
		if (reverse_active(r, node_in(g, n, k)) && node_is_tensor(g, node_in(g, n, k)) &&
		    (k >= sizeof info->deriv / sizeof *info->deriv || !info->deriv[k]))
			return true;
	return false;
}

uint32_t transform_underived(const Graph *src, const Wrt *w, Text *out)
{
	Graph *g = transform_begin(src, op_has_vjp);
	Roots roots;
	uint32_t n = 0;
	if (!g || !roots_of(g, w, &roots))
		return 0;
	bool *needed = ZEROED(g, bool, g->node.n), *told = ZEROED(g, bool, UINT16_MAX);
	Reverse r = reverse_new(g, (Build){.g = g}, 1, g->node.n - 1);
	for (uint32_t k = 0; k < roots.n; k++)
		reverse_mark(&r, roots.node[k]);
	reverse_spread(&r, g->first, g->last);
	for (uint32_t k = 0; k < g->output.n; k++)
		if (has_derivative(g, k) && (!w->output || w->output[k]))
			needed[g->output.data[k].node.i] = true;
	for (Node x = g->last; x.i; x = node_prev(g, x)) {
		if (!needed[x.i] || !reverse_active(&r, x))
			continue;
		if (lacks_derivative(&r, x) && !told[node_op(g, x)]) {
			told[node_op(g, x)] = true;
			text_printf(out, "%s%s", n++ ? ", " : "", op_name(node_op(g, x)));
		}
		for (uint32_t k = 0; k < node_nin(g, x); k++)
			needed[node_in(g, x, k).i] = true;
	}
	return n;
}

Graph *transform_jvp(const Graph *src, const Wrt *w)
{
	Graph *g = transform_begin(src, op_has_jvp);
	Roots roots;
	if (!g || !roots_of(g, w, &roots))
		return NULL;
	Arena *scratch = g->ir->ctx->scratch;
	uint32_t nresult = g->output.n;
	Node *input = ARENA_ARRAY(scratch, Node, roots.n);
	for (uint32_t k = 0; k < roots.n; k++)
		input[k] = graph_add_input(g, prefixed(g, "t", roots.name[k]), INPUT_USER,
					   roots.type[k]);
	Forward f = forward_new(g);
	for (uint32_t k = 0; k < roots.n; k++)
		if (roots.node[k].i)
			forward_set(&f, roots.node[k], input[k]);
	if (!forward_run(&f, g->first))
		return NULL;
	Build b = {.g = g};
	for (uint32_t k = 0; k < nresult; k++) {
		GraphOutput o = g->output.data[k];
		if (!has_derivative(g, k))
			continue;
		Node t = forward_tangent(&f, o.node);
		graph_add_output(g, prefixed(g, "jy", o.name),
				 t.i ? t : b_zeros(&b, node_type_id(g, o.node)), -1);
	}
	forward_end(&f);
	return finished(g);
}
