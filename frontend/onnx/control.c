/* If, Loop and Scan. What is decided at import is inlined; other bodies are graphs of their own,
 * whose inputs are the values that go from round to round, slices, and what they read of the graphs
 * around them. */
#include <string.h>

#include "frontend/onnx/priv.h"

/* ---- bodies ---- */

typedef ARRAY(Node) Rows;

/* Values of scopes around a body that the body reads, and that are computed when the model runs. */
typedef struct {
	Scope *outer;
	Intern local, seen;
	ARRAY(const char *) name;
	ARRAY(Value *) value;
	ARRAY(Node) node;
} Captures;

static void add_local(Captures *c, const char *name)
{
	if (name)
		intern(&c->local, name, strlen(name), NULL);
}

static bool capture(Captures *c, const char *name)
{
	bool fresh;
	Value *v = *name && !intern_find(&c->local, name, strlen(name))
			   ? onnx_scope_find(c->outer, name)
			   : NULL;
	if (!v)
		return true;
	intern(&c->seen, name, strlen(name), &fresh);
	if (!fresh || (!v->node.i && !v->is_list) || (v->known && v->input < 0))
		return true;
	Node n = onnx_value_node(c->outer, v);
	array_push(c->outer->im->ctx->scratch, &c->name, name);
	array_push(c->outer->im->ctx->scratch, &c->value, v);
	array_push(c->outer->im->ctx->scratch, &c->node, n);
	return n.i != 0;
}

static bool collect(Captures *c, const OnnxGraph *g)
{
	for (uint32_t k = 0; k < g->in.n; k++)
		add_local(c, g->in.data[k].name);
	for (uint32_t k = 0; k < g->init.n; k++)
		add_local(c, g->init.data[k].name);
	for (uint32_t k = 0; k < g->node.n; k++) {
		const OnnxNode *n = &g->node.data[k];
		for (uint32_t i = 0; i < n->in.n; i++)
			TRY(capture(c, n->in.data[i]));
		for (uint32_t i = 0; i < n->attr.n; i++)
			TRY(!n->attr.data[i].g || collect(c, n->attr.data[i].g));
		for (uint32_t i = 0; i < n->out.n; i++)
			add_local(c, n->out.data[i]);
	}
	for (uint32_t k = 0; k < g->out.n; k++)
		TRY(!g->out.data[k].name || capture(c, g->out.data[k].name));
	return true;
}

static bool captures_of(Captures *c, Scope *outer, const OnnxGraph *g)
{
	if (!c->outer) {
		c->outer = outer;
		intern_init(&c->local, outer->im->ctx->scratch);
		intern_init(&c->seen, outer->im->ctx->scratch);
	}
	return collect(c, g);
}

/* A value of the body's graph like v, which is one of the graph around. */
static Value *inner_value(Scope *s, const Value *v, Node n)
{
	Value *in = onnx_value_of(s, n);
	in->elem = v->elem;
	in->size = v->size;
	in->nsize = v->nsize;
	in->has_dim = v->has_dim;
	in->rows = v->rows;
	return in;
}

static Node add_input(Scope *s, const char *name, TypeId type)
{
	return graph_add_input(s->b.g, name && *name ? name : "x", INPUT_USER, type);
}

static bool bind_captures(Scope *s, const Captures *c)
{
	for (uint32_t k = 0; k < c->name.n; k++) {
		Node n =
			add_input(s, c->name.data[k], node_type_id(c->outer->b.g, c->node.data[k]));
		TRY(onnx_scope_bind(s, c->name.data[k], inner_value(s, c->value.data[k], n)));
	}
	return true;
}

static const OnnxGraph *body_of(const Item *it, const char *name)
{
	const OnnxAttr *a = onnx_item_attr(it, name);
	if (!a || !a->g)
		return onnx_item_error(it, "attribute %s is missing: expected a graph", name), NULL;
	for (uint32_t k = 0; k < a->g->in.n; k++)
		if (!a->g->in.data[k].name)
			return onnx_item_error(it, "input %u of the graph %s has no name", k, name),
			       NULL;
	return a->g;
}

static Value *result_of(const Item *it, Scope *s, const OnnxGraph *g, uint32_t k)
{
	Value *v = k < g->out.n && g->out.data[k].name ? onnx_scope_find(s, g->out.data[k].name)
						       : NULL;
	if (!v)
		onnx_item_error(it, "no node of the body gives its result %u", k);
	return v;
}

/* A scope of the same graph, for a body that is inlined. */
static void inline_scope(Scope *s, const Item *it)
{
	onnx_scope_init(s, it->s->im, it->s->b.g, it->s, it->s->opset);
}

static bool body_nodes(Scope *s, const OnnxGraph *g)
{
	return onnx_scope_inits(s, g) && onnx_scope_nodes(s, g->node.data, g->node.n);
}

static bool is_list_info(const OnnxInfo *info)
{
	return info->type && (info->type->sequence || info->type->optional);
}

static bool gives_lists(const OnnxGraph *g)
{
	for (uint32_t k = 0; k < g->out.n; k++)
		if (is_list_info(&g->out.data[k]))
			return true;
	return false;
}

/* Whether one bool is known: *out. */
static bool known_bool(Scope *s, Value *v, bool given, bool *out)
{
	const Sym *size;
	uint32_t n;
	int64_t value;
	if (onnx_value_as_sizes(s, v, &size, &n))
		return n == 1 && sym_is_const(s->im->syms, size[0], &value) &&
		       (*out = value != 0, true);
	const Tensor *t = v->known && (v->input < 0 || given) ? onnx_value_elements(s, v) : NULL;
	return t && tensor_numel(t) == 1 && (*out = tensor_f64(t, 0) != 0, true);
}

/* A condition as a bool without dimensions. */
static Node condition(Scope *s, Value *v)
{
	Node n = onnx_value_node(s, v);
	return n.i ? b_convert(&s->b, b_reshape(&s->b, n, 0, NULL), DT_bool) : n;
}

/* ---- If ---- */

static bool inline_branch(const Item *it, const OnnxGraph *g)
{
	Scope s;
	inline_scope(&s, it);
	TRY(body_nodes(&s, g));
	for (uint32_t k = 0; k < it->n->out.n; k++) {
		Value *v = result_of(it, &s, g, k);
		TRY(v && onnx_item_bind(it, k, v));
	}
	return true;
}

static Graph *branch_graph(const Item *it, const OnnxGraph *g, const Captures *c, const char *name)
{
	Scope s;
	onnx_scope_init(&s, it->s->im, graph_new(it->s->im->ir, name), it->s, it->s->opset);
	if (!bind_captures(&s, c) || !body_nodes(&s, g))
		return NULL;
	for (uint32_t k = 0; k < it->n->out.n; k++) {
		Value *v = result_of(it, &s, g, k);
		Node n = v ? onnx_value_node(&s, v) : (Node){0};
		if (!n.i)
			return NULL;
		graph_add_output(s.b.g, it->n->out.data[k], n, -1);
	}
	return s.b.g;
}

static bool same_results(const Graph *a, const Graph *b)
{
	for (uint32_t k = 0; k < a->output.n; k++)
		if (node_type_id(a, a->output.data[k].node).i !=
		    node_type_id(b, b->output.data[k].node).i)
			return false;
	return true;
}

/* Whether given inputs decide one bool: *out. */
static bool decided_bool(Scope *s, const Value *v, bool *out)
{
	Tensor t;
	return onnx_value_decided(s, v, &t) && tensor_numel(&t) == 1 &&
	       (*out = tensor_f64(&t, 0) != 0, true);
}

bool onnx_import_if(const Item *it)
{
	const OnnxGraph *g[2] = {body_of(it, "then_branch"), body_of(it, "else_branch")};
	Value *pred = onnx_item_in(it, 0);
	Captures c = {0};
	bool yes;
	TRY(g[0] && g[1]);
	if (!pred)
		return onnx_item_error(it, "the condition is missing");
	if (known_bool(it->s, pred, gives_lists(g[0]), &yes))
		return inline_branch(it, g[!yes]);
	TRY(captures_of(&c, it->s, g[0]) && captures_of(&c, it->s, g[1]));
	Graph *yes_graph = branch_graph(it, g[0], &c, "yes"),
	      *no_graph = yes_graph ? branch_graph(it, g[1], &c, "no") : NULL;
	TRY(no_graph);
	if (!same_results(yes_graph, no_graph) && decided_bool(it->s, pred, &yes))
		return inline_branch(it, g[!yes]);
	Node test = condition(it->s, pred);
	TRY(test.i);
	Node *in = ARENA_ARRAY(it->s->im->ctx->scratch, Node, c.node.n + 1);
	in[0] = test;
	if (c.node.n)
		memcpy(in + 1, c.node.data, c.node.n * sizeof *in);
	Attr attr[] = {attr_none(), attr_int(it->s->im->ir, c.node.n), attr_graph(yes_graph),
		       attr_graph(no_graph)};
	Node y = b_node(&it->s->b, OP_cond, in, c.node.n + 1, attr, 4);
	TRY(y.i);
	for (uint32_t k = 0; k < it->n->out.n; k++)
		TRY(onnx_item_bind(it, k, onnx_value_of(it->s, b_get(&it->s->b, y, k))));
	return true;
}

/* ---- Loop ---- */

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
		TRY(body_nodes(&s, l->g));
		for (uint32_t k = 0; k < l->ncarry; k++)
			TRY(carry[k] = result_of(it, &s, l->g, k + 1));
		for (uint32_t k = 0; k < l->nscan; k++) {
			Value *v = result_of(it, &s, l->g, k + 1 + l->ncarry);
			Node n = v ? onnx_value_node(&s, v) : (Node){0};
			TRY(n.i);
			array_push(im->ctx->scratch, &row[k], b_unsqueeze(&it->s->b, n, 0));
		}
		Value *more = result_of(it, &s, l->g, 0);
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
			onnx_value_of(s, add_input(s, name, node_type_id(l->it->s->b.g, outer)))));
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
	Value *v = result_of(l->it, s, l->g, k);
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
	Node round = add_input(&s, l->g->in.data[0].name, scalar_type(im, DT_i64));
	if (!onnx_scope_bind(&s, l->g->in.data[0].name, onnx_value_of(&s, round)) ||
	    !onnx_scope_bind(&s, l->g->in.data[1].name, number(im, DT_bool, 1)) ||
	    !bind_captures(&s, &l->captures) || !body_nodes(&s, l->g))
		return NULL;
	Value *test = result_of(it, &s, l->g, 0);
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
	Node round = add_input(&s, l->g->in.data[0].name, scalar_type(im, DT_i64)),
	     test = add_input(&s, l->g->in.data[1].name, scalar_type(im, DT_bool));
	if (!onnx_scope_bind(&s, l->g->in.data[0].name, onnx_value_of(&s, round)) ||
	    !onnx_scope_bind(&s, l->g->in.data[1].name, onnx_value_of(&s, test)) ||
	    !bind_carry(&s, l))
		return NULL;
	Node *rows = ARENA_ARRAY(im->ctx->scratch, Node, l->nscan + 1);
	for (uint32_t k = 0; k < l->nscan; k++)
		rows[k] = add_input(&s, "rows", node_type_id(it->s->b.g, in[2 + l->ncarry + k]));
	if (!bind_captures(&s, &l->captures) || !body_nodes(&s, l->g))
		return NULL;
	Value *more = result_of(it, &s, l->g, 0);
	Node next = more ? condition(&s, more) : (Node){0};
	graph_add_output(s.b.g, "round", b_bin_scalar(&s.b, OP_add, round, 1), -1);
	graph_add_output(s.b.g, "more", next, -1);
	for (uint32_t k = 0; next.i && k < l->ncarry; k++)
		next = add_result(l, &s, k + 1);
	for (uint32_t k = 0; next.i && k < l->nscan; k++) {
		Value *v = result_of(it, &s, l->g, k + 1 + l->ncarry);
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
		done = onnx_size_from_data(it->s, b_get(b, y, 0), "the number of rounds");
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
	Node more = test ? condition(it->s, test) : b_full(&it->s->b, DT_bool, 1, 0, NULL);
	return more.i && by_while(&l, counted, more);
}

/* ---- Scan ---- */

typedef struct {
	const Item *it;
	const OnnxGraph *g;
	uint32_t nstate, nxs, nys;
	Captures captures;
} ScanOf;

static int64_t list_int(const Item *it, const char *name, uint32_t k, int64_t otherwise)
{
	const OnnxAttr *a = onnx_item_attr(it, name);
	return a && k < a->ints.n ? a->ints.data[k] : otherwise;
}

/* in[]: the states, then the scanned values with the scanned dimension in front. */
static Node scan_once(ScanOf *c, const Node *in)
{
	const Item *it = c->it;
	Import *im = it->s->im;
	Build *b = &it->s->b;
	Scope s;
	uint32_t n = c->nstate + c->nxs, nc = c->captures.node.n;
	Node *all = ARENA_ARRAY(im->ctx->scratch, Node, n + nc);
	onnx_scope_init(&s, im, graph_new(im->ir, "body"), it->s, it->s->opset);
	for (uint32_t k = 0; k < n; k++) {
		Type t = *node_type(b->g, in[k]);
		uint32_t skip = k >= c->nstate;
		const char *name = c->g->in.data[k].name;
		if (t.n < skip)
			return b_error(b, "input %s has no dimension to scan", name);
		all[k] = in[k];
		Node x = add_input(&s, name, ir_type(im->ir, t.dtype, t.n - skip, t.dim + skip));
		if (!onnx_scope_bind(&s, name, onnx_value_of(&s, x)))
			return (Node){0};
	}
	if (!bind_captures(&s, &c->captures) || !body_nodes(&s, c->g))
		return (Node){0};
	for (uint32_t k = 0; k < c->g->out.n; k++) {
		Value *v = result_of(it, &s, c->g, k);
		Node y = v ? onnx_value_node(&s, v) : (Node){0};
		if (!y.i)
			return (Node){0};
		graph_add_output(s.b.g, c->g->out.data[k].name, y, -1);
	}
	for (uint32_t k = 0; k < nc; k++)
		all[n + k] = c->captures.node.data[k];
	Sym length = c->nxs ? node_dim(b->g, in[c->nstate], 0) : b_int(b, 0);
	Attr attr[] = {attr_int(im->ir, c->nstate), attr_int(im->ir, c->nxs), attr_int(im->ir, nc),
		       attr_graph(s.b.g),           attr_sym(length),         attr_bool(false)};
	return b_node(b, OP_scan, all, n + nc, attr, 6);
}

static Node moved(Build *b, Node x, uint32_t from, uint32_t to)
{
	uint32_t perm[MAX_RANK], rank = x.i ? node_rank(b->g, x) : 0, k = 0;
	if (from == to || !x.i)
		return x;
	for (uint32_t d = 0; d < rank; d++)
		if (d != from) {
			k += k == to;
			perm[k++] = d;
		}
	perm[to] = from;
	return b_permute(b, x, perm);
}

static uint32_t axis_in(int64_t axis, uint32_t rank)
{
	axis += axis < 0 ? rank : 0;
	return axis >= 0 && axis < rank ? (uint32_t)axis : 0;
}

static bool scan_inputs(const ScanOf *c, uint32_t first, Node *in)
{
	const Item *it = c->it;
	Build *b = &it->s->b;
	for (uint32_t k = 0; k < c->nstate + c->nxs; k++) {
		Value *v = onnx_item_in(it, first + k);
		if (!v)
			return onnx_item_error(it, "input %u is missing", first + k);
		in[k] = onnx_value_node(it->s, v);
		TRY(in[k].i);
	}
	for (uint32_t k = 0; first == 0 && k < c->nxs; k++) {
		Node *x = &in[c->nstate + k];
		*x = moved(b, *x,
			   axis_in(list_int(it, "scan_input_axes", k, 0), node_rank(b->g, *x)), 0);
		if (list_int(it, "scan_input_directions", k, 0))
			*x = b_reverse(b, *x, 0);
	}
	return true;
}

/* Of opset 8: one scan for each element of the batch, the first dimension of all. */
static bool scan_batch(ScanOf *c)
{
	const Item *it = c->it;
	Build *b = &it->s->b;
	uint32_t n = c->nstate + c->nxs;
	Node *in = ARENA_ARRAY(it->s->im->ctx->scratch, Node, n + 1),
	     *one = ARENA_ARRAY(it->s->im->ctx->scratch, Node, n + 1);
	int64_t batch;
	if (onnx_item_in(it, 0))
		return onnx_item_error(it, "lengths of sequences are not supported");
	TRY(scan_inputs(c, 1, in));
	if (!n || !node_rank(b->g, in[0]) ||
	    !sym_is_const(it->s->im->syms, node_dim(b->g, in[0], 0), &batch) || batch < 1 ||
	    batch > 1024)
		return onnx_item_error(it, "expected a constant batch of 1 to 1024");
	Rows *part = ARENA_ARRAY(it->s->im->ctx->scratch, Rows, it->n->out.n + 1);
	for (int64_t i = 0; i < batch; i++) {
		for (uint32_t k = 0; k < n; k++) {
			one[k] = b_select_dim(b, in[k], 0, b_int(b, i));
			if (k >= c->nstate && list_int(it, "directions", k - c->nstate, 0))
				one[k] = b_reverse(b, one[k], 0);
		}
		Node y = scan_once(c, one);
		TRY(y.i);
		for (uint32_t k = 0; k < it->n->out.n; k++)
			array_push(it->s->im->ctx->scratch, &part[k],
				   b_unsqueeze(b, b_get(b, y, k), 0));
	}
	for (uint32_t k = 0; k < it->n->out.n; k++)
		TRY(onnx_item_bind(it, k,
				   onnx_value_of(it->s, b_concat(b, part[k].data, part[k].n, 0))));
	return true;
}

bool onnx_import_scan(const Item *it)
{
	ScanOf c = {.it = it, .g = body_of(it, "body")};
	Build *b = &it->s->b;
	TRY(c.g);
	int64_t nxs = onnx_item_int(it, "num_scan_inputs", -1), first = it->opset < 9;
	uint32_t n = it->nin - (uint32_t)(it->nin >= first ? first : 0);
	if (nxs < 1 || nxs > n || c.g->in.n != n || c.g->out.n < n - nxs ||
	    it->n->out.n > c.g->out.n)
		return onnx_item_error(it, "a body of %u inputs and %u results for %u operands",
				       c.g->in.n, c.g->out.n, n);
	c.nxs = (uint32_t)nxs;
	c.nstate = n - c.nxs;
	c.nys = c.g->out.n - c.nstate;
	TRY(captures_of(&c.captures, it->s, c.g));
	if (first)
		return scan_batch(&c);
	Node *in = ARENA_ARRAY(it->s->im->ctx->scratch, Node, n + 1);
	TRY(scan_inputs(&c, 0, in));
	Node y = scan_once(&c, in);
	TRY(y.i);
	for (uint32_t k = 0; k < it->n->out.n; k++) {
		Node r = b_get(b, y, k);
		if (k >= c.nstate) {
			if (list_int(it, "scan_output_directions", k - c.nstate, 0))
				r = b_reverse(b, r, 0);
			r = moved(b, r, 0,
				  axis_in(list_int(it, "scan_output_axes", k - c.nstate, 0),
					  node_rank(b->g, r)));
		}
		TRY(onnx_item_bind(it, k, onnx_value_of(it->s, r)));
	}
	return true;
}
