/* Loop. What is decided at import is inlined; other bodies are graphs of their own, whose inputs are
 * the values that go from round to round, the round, and what they read of the graphs around them.
 */
#include <string.h>

#include "frontend/onnx/body.h"

typedef struct {
	const Item *it;
	const OnnxGraph *g;
	uint32_t ncarry, nscan; /* values from round to round; results with an element for each
	                           round */
	Captures captures;
	Sym rounds;             /* none: not limited */
} Loop;

static Value *number(Import *im, DType d, int64_t v)
{
	int64_t *data = arena_alloc(im->ctx->arena, sizeof *data);
	Tensor t = {.dtype = d, .data = data};
	tensor_set_i64(&t, 0, v);
	return onnx_value_known(im, &t);
}

/* Round after round in the graph itself: for sequences, and for types that change. */
static bool unroll(const Loop *l)
{
	const Item *it = l->it;
	Import *im = it->s->im;
	int64_t rounds;
	Value **carry = ARENA_ARRAY(im->ctx->scratch, Value *, l->ncarry + 1);
	Rows *row = ARENA_ARRAY(im->ctx->scratch, Rows, l->nscan + 1);
	if (!l->rounds.i || !sym_is_const(im->syms, l->rounds, &rounds) || rounds > 4096)
		return onnx_item_error(it, "a loop that changes a sequence or a type needs a "
					   "constant number of rounds, at most 4096");
	for (uint32_t k = 0; k < l->ncarry; k++) {
		carry[k] = onnx_item_in(it, k + 2);
		if (!carry[k])
			return onnx_item_error(it, "input %u is missing", k + 2);
	}
	for (int64_t i = 0; i < rounds; i++) {
		Scope s;
		bool go = true;
		inline_scope(&s, it);
		TRY(onnx_scope_bind(&s, l->g->in.data[0].name, number(im, DT_i64, i)) &&
		    onnx_scope_bind(&s, l->g->in.data[1].name, number(im, DT_bool, 1)));
		for (uint32_t k = 0; k < l->ncarry; k++) {
			Value *v = arena_dup(im->ctx->arena, carry[k], sizeof *v);
			TRY(onnx_scope_bind(&s, l->g->in.data[k + 2].name, v));
		}
		TRY(onnx_scope_graph(&s, l->g));
		for (uint32_t k = 0; k < l->ncarry; k++)
			TRY(carry[k] = body_result(it, &s, l->g, k + 1));
		for (uint32_t k = 0; k < l->nscan; k++) {
			Value *v = body_result(it, &s, l->g, k + 1 + l->ncarry);
			Node n = v ? onnx_value_node(&s, v) : (Node){0};
			TRY(n.i);
			array_push(im->ctx->scratch, &row[k], b_unsqueeze(&it->s->b, n, 0));
		}
		Value *more = body_result(it, &s, l->g, 0);
		TRY(more);
		if (!known_bool(&s, more, false, &go))
			return onnx_item_error(it, "a loop that changes a sequence ends by a "
						   "condition that depends on data");
		if (!go)
			break;
	}
	for (uint32_t k = 0; k < l->ncarry; k++)
		TRY(onnx_item_bind(it, k, arena_dup(im->ctx->arena, carry[k], sizeof **carry)));
	for (uint32_t k = 0; k < l->nscan; k++) {
		if (!row[k].n)
			return onnx_item_error(it,
					       "a loop without rounds has no type for result %u",
					       k + l->ncarry);
		TRY(onnx_item_bind(
			it, k + l->ncarry,
			onnx_value_of(it->s, b_concat(&it->s->b, row[k].data, row[k].n, 0))));
	}
	return true;
}

static bool bind_carry(Scope *s, const Loop *l)
{
	for (uint32_t k = 0; k < l->ncarry; k++) {
		Value *v = onnx_item_in(l->it, k + 2);
		Node outer = v ? onnx_value_node(l->it->s, v) : (Node){0};
		if (!outer.i)
			return v ? false : onnx_item_error(l->it, "input %u is missing", k + 2);
		const char *name = l->g->in.data[k + 2].name;
		TRY(onnx_scope_bind(
			s, name,
			onnx_value_of(s, body_input(s, name, node_type_id(l->it->s->b.g, outer)))));
	}
	return true;
}

static TypeId scalar_type(Import *im, DType d)
{
	return ir_type(im->ir, d, 0, NULL);
}

/* Adds result k of the body as an output of its graph. */
static Node add_result(const Loop *l, Scope *s, uint32_t k)
{
	Value *v = body_result(l->it, s, l->g, k);
	Node n = v ? onnx_value_node(s, v) : (Node){0};
	if (n.i)
		graph_add_output(s->b.g, l->g->out.data[k].name, n, -1);
	return n;
}

/* The body of a loop whose condition stays true: body(carry..., round, consts...) -> (carry...,
 * rows...). *stays: whether it does. */
static Graph *counted_body(Loop *l, bool *stays)
{
	Scope s;
	const Item *it = l->it;
	Import *im = it->s->im;
	bool more = false;
	*stays = false;
	onnx_scope_init(&s, im, graph_new(im->ir, "body"), it->s, it->s->opset);
	if (!bind_carry(&s, l))
		return NULL;
	Node round = body_input(&s, l->g->in.data[0].name, scalar_type(im, DT_i64));
	if (!onnx_scope_bind(&s, l->g->in.data[0].name, onnx_value_of(&s, round)) ||
	    !onnx_scope_bind(&s, l->g->in.data[1].name, number(im, DT_bool, 1)) ||
	    !bind_captures(&s, &l->captures) || !onnx_scope_graph(&s, l->g))
		return NULL;
	Value *test = body_result(it, &s, l->g, 0);
	*stays = test && known_bool(&s, test, false, &more) && more;
	for (uint32_t k = 1; k < l->g->out.n; k++)
		if (!test || !add_result(l, &s, k).i)
			return NULL;
	return s.b.g;
}

static bool by_scan(Loop *l, Graph *body)
{
	const Item *it = l->it;
	Build *b = &it->s->b;
	Ir *ir = it->s->im->ir;
	uint32_t n = l->ncarry, nc = l->captures.node.n;
	Node *in = ARENA_ARRAY(it->s->im->ctx->scratch, Node, n + 1 + nc);
	for (uint32_t k = 0; k < n; k++)
		in[k] = onnx_value_node(it->s, it->in[k + 2]);
	in[n] = b_iota(b, DT_i64, l->rounds);
	for (uint32_t k = 0; k < nc; k++)
		in[n + 1 + k] = l->captures.node.data[k];
	Attr attr[] = {attr_int(ir, n),  attr_int(ir, 1),     attr_int(ir, nc),
		       attr_graph(body), attr_sym(l->rounds), attr_bool(false)};
	Node y = b_node(b, OP_scan, in, n + 1 + nc, attr, 6);
	TRY(y.i);
	for (uint32_t k = 0; k < it->n->out.n; k++)
		TRY(onnx_item_bind(it, k, onnx_value_of(it->s, b_get(b, y, k))));
	return true;
}

/* The carry of a while loop: the round, the condition, the loop's own values, and rows of results,
 * [rounds, ...] each. */
static bool add_rows(const Loop *l, const Graph *counted, Node *in)
{
	const Item *it = l->it;
	for (uint32_t k = 0; k < l->nscan; k++) {
		Type t = *node_type(counted, counted->output.data[l->ncarry + k].node);
		Sym dim[MAX_RANK] = {l->rounds};
		if (!l->rounds.i || t.n == MAX_RANK)
			return onnx_item_error(it,
					       "result %u has a row for each round of a loop that "
					       "has no greatest number of rounds",
					       l->ncarry + k);
		if (sym_is(it->s->im->syms, l->rounds, 0))
			dim[0] = sym_int(it->s->im->syms, 1); /* its body has a row to write */
		for (uint32_t d = 0; d < t.n; d++)
			dim[d + 1] = t.dim[d];
		in[k] = b_full(&it->s->b, t.dtype, 0, t.n + 1, dim);
	}
	return true;
}

static Graph *while_condition(const Loop *l, const Node *in, uint32_t n)
{
	Import *im = l->it->s->im;
	Graph *g = graph_new(im->ir, "cond"), *outer = l->it->s->b.g;
	Build b = {.g = g, .where = l->it->s->b.where};
	Node x[2] = {{0}, {0}};
	for (uint32_t k = 0; k < n; k++) {
		Node v = graph_add_input(g, k ? "x" : "round", INPUT_USER,
					 node_type_id(outer, in[k]));
		if (k < 2)
			x[k] = v;
	}
	Node more = x[1];
	if (l->rounds.i)
		more = b_select(&b, b_bin(&b, OP_lt, x[0], b_from_size(&b, l->rounds)), more,
				b_full(&b, DT_bool, 0, 0, NULL));
	graph_add_output(g, "more", more, -1);
	return more.i ? g : NULL;
}

static Graph *while_body(const Loop *l, const Node *in)
{
	const Item *it = l->it;
	Import *im = it->s->im;
	Scope s;
	onnx_scope_init(&s, im, graph_new(im->ir, "body"), it->s, it->s->opset);
	Node round = body_input(&s, l->g->in.data[0].name, scalar_type(im, DT_i64)),
	     test = body_input(&s, l->g->in.data[1].name, scalar_type(im, DT_bool));
	if (!onnx_scope_bind(&s, l->g->in.data[0].name, onnx_value_of(&s, round)) ||
	    !onnx_scope_bind(&s, l->g->in.data[1].name, onnx_value_of(&s, test)) ||
	    !bind_carry(&s, l))
		return NULL;
	Node *rows = ARENA_ARRAY(im->ctx->scratch, Node, l->nscan + 1);
	for (uint32_t k = 0; k < l->nscan; k++)
		rows[k] = body_input(&s, "rows", node_type_id(it->s->b.g, in[2 + l->ncarry + k]));
	if (!bind_captures(&s, &l->captures) || !onnx_scope_graph(&s, l->g))
		return NULL;
	Value *more = body_result(it, &s, l->g, 0);
	Node next = more ? body_condition(&s, more) : (Node){0};
	graph_add_output(s.b.g, "round", b_bin_scalar(&s.b, OP_add, round, 1), -1);
	graph_add_output(s.b.g, "more", next, -1);
	for (uint32_t k = 0; next.i && k < l->ncarry; k++)
		next = add_result(l, &s, k + 1);
	for (uint32_t k = 0; next.i && k < l->nscan; k++) {
		Value *v = body_result(it, &s, l->g, k + 1 + l->ncarry);
		Node row = v ? onnx_value_node(&s, v) : (Node){0};
		if (!row.i)
			return NULL;
		Node x = b_unsqueeze(&s.b, row, 0);
		uint32_t rank = node_rank(s.b.g, x);
		Node op[2 + MAX_RANK] = {rows[k], x, round};
		for (uint32_t d = 1; d < rank; d++)
			op[2 + d] = b_full_int(&s.b, DT_i64, 0, 0, NULL);
		next = b_node(&s.b, OP_update_slice, op, 2 + rank,
			      (Attr[]){attr_none(), attr_none(), attr_int(im->ir, rank)}, 3);
		graph_add_output(s.b.g, l->g->out.data[k + 1 + l->ncarry].name, next, -1);
	}
	return next.i ? s.b.g : NULL;
}

static bool by_while(Loop *l, const Graph *counted, Node first)
{
	const Item *it = l->it;
	Build *b = &it->s->b;
	Ir *ir = it->s->im->ir;
	uint32_t ncarry = 2 + l->ncarry + l->nscan, n = ncarry + l->captures.node.n;
	Node *in = ARENA_ARRAY(it->s->im->ctx->scratch, Node, n);
	in[0] = b_full_int(b, DT_i64, 0, 0, NULL);
	in[1] = first;
	for (uint32_t k = 0; k < l->ncarry; k++)
		in[2 + k] = onnx_value_node(it->s, it->in[k + 2]);
	TRY(add_rows(l, counted, in + 2 + l->ncarry));
	for (uint32_t k = 0; k < l->captures.node.n; k++)
		in[ncarry + k] = l->captures.node.data[k];
	Graph *test = while_condition(l, in, n), *body = test ? while_body(l, in) : NULL;
	TRY(body);
	Attr attr[] = {attr_int(ir, ncarry), attr_int(ir, n - ncarry), attr_graph(test),
		       attr_graph(body), attr_none()};
	Node y = b_node(b, OP_while, in, n, attr, 5);
	TRY(y.i);
	Sym done = {0};
	if (l->nscan)
		done = onnx_size_from_data(it->s, b_get(b, y, 0), (Sym){0}, "the number of rounds");
	for (uint32_t k = 0; k < it->n->out.n; k++) {
		Node r = b_get(b, y, 2 + k);
		if (k >= l->ncarry)
			r = b_slice(b, r, 0, b_int(b, 0), done, b_int(b, 1));
		TRY(onnx_item_bind(it, k, onnx_value_of(it->s, r)));
	}
	return true;
}

static bool list_among(const Item *it, const OnnxGraph *g)
{
	bool found = gives_lists(g);
	for (uint32_t k = 2; k < it->nin; k++)
		found |= it->in[k] && it->in[k]->is_list;
	return found;
}

/* Whether values have the same types in all rounds. */
static bool keeps_types(const Loop *l, const Graph *counted)
{
	int64_t rounds;
	for (uint32_t k = 0; k < l->ncarry; k++)
		if (node_type_id(counted, counted->output.data[k].node).i !=
		    node_type_id(counted, counted->input.data[k].node).i)
			return !sym_is_const(l->it->s->im->syms, l->rounds, &rounds);
	return true;
}

/* A type that changes from round to round is one of the loop that is unrolled alone. */
static bool check_carries(const Loop *l, const Graph *counted)
{
	const Item *it = l->it;
	for (uint32_t k = 0; k < l->ncarry; k++) {
		const Node in = counted->input.data[k].node, out = counted->output.data[k].node;
		Type is = *node_type(counted, in), made = *node_type(counted, out);
		bool same = is.dtype == made.dtype && is.n == made.n;
		for (uint32_t d = 0; same && d < is.n; d++)
			same = sym_eq(it->s->im->syms, is.dim[d], made.dim[d]) != NO;
		if (!same)
			return onnx_item_error(
				it,
				"%s is %s, and a round makes %s of it: then the number of rounds "
				"must be a constant, or be decided by inputs "
				"that are given when the model is read (--values)",
				l->g->in.data[k + 2].name,
				type_str(it->s->im->ir, node_type_id(counted, in)),
				type_str(it->s->im->ir, node_type_id(counted, out)));
	}
	return true;
}

bool onnx_import_loop(const Item *it)
{
	Loop l = {.it = it, .g = body_of(it, "body")};
	Value *limit = onnx_item_in(it, 0), *test = onnx_item_in(it, 1);
	const Sym *size;
	uint32_t n;
	bool first = true, stays, is_known = true;
	TRY(l.g);
	l.ncarry = it->nin > 2 ? it->nin - 2 : 0;
	if (l.g->in.n != l.ncarry + 2 || l.g->out.n < l.ncarry + 1)
		return onnx_item_error(it, "a body of %u inputs and %u results for %u values",
				       l.g->in.n, l.g->out.n, l.ncarry);
	l.nscan = l.g->out.n - 1 - l.ncarry;
	if (limit && !limit->is_list) {
		TRY(onnx_value_to_sizes(it->s, limit, "the number of rounds", &size, &n));
		l.rounds = n == 1 ? size[0] : (Sym){0};
	}
	if (test)
		is_known = known_bool(it->s, test, true, &first);
	int64_t rounds;
	if ((is_known && !first) ||
	    (l.rounds.i && sym_is_const(it->s->im->syms, l.rounds, &rounds) && rounds < 0))
		l.rounds = sym_int(it->s->im->syms, 0);
	if (list_among(it, l.g))
		return unroll(&l);
	TRY(captures_of(&l.captures, it->s, l.g));
	Graph *counted = counted_body(&l, &stays);
	TRY(counted);
	if (stays && is_known && l.rounds.i)
		return keeps_types(&l, counted) ? check_carries(&l, counted) && by_scan(&l, counted)
						: unroll(&l);
	TRY(check_carries(&l, counted));
	Node more = test ? body_condition(it->s, test) : b_full(&it->s->b, DT_bool, 1, 0, NULL);
	return more.i && by_while(&l, counted, more);
}

