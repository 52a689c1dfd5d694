/* Loop. What is decided at import is inlined; other bodies are graphs of their own, whose inputs
 * are the values that go from round to round, the round, and what they read of the graphs around
 * them.
 *
 *   - A loop whose condition compares a counter with a size has a known number of rounds, and the
 *     counter is an expression of the round.
 *   - A sequence to which each round adds pieces becomes results with an element for each round,
 *     one for each piece (Value.repeats). */
#include <string.h>

#include "frontend/onnx/body.h"

typedef enum { CARRY_TENSOR, CARRY_LIST, CARRY_COUNTER } CarryKind;

typedef struct {
	CarryKind kind;
	Value *first; /* in front of the loop */
	Sym start;    /* COUNTER: start + step * round */
	int64_t step;
	Sym most;             /* COUNTER: its greatest value in a round; none: not known */
	Sym probe;            /* COUNTER, while it is looked for: a value of it */
	uint32_t front, back; /* LIST: pieces that a round adds in front and behind */
} Carry;

typedef struct {
	const Item *it;
	const OnnxGraph *g;
	uint32_t ncarry, nscan; /* values from round to round; results with an element for each
				   round */
	Carry *carry;
	uint32_t ntensor, npiece; /* of the carries; pieces of lists in a round */
	Captures captures;
	Sym rounds;   /* none: not limited */
	bool counted; /* by a counter: the condition holds for so many rounds */
	bool by_size; /* the body reads the round as a size */
} Loop;

static Value *number(Import *im, DType d, int64_t v)
{
	int64_t *data = arena_alloc(im->ctx->arena, sizeof *data);
	Tensor t = {.dtype = d, .data = data};
	tensor_set_i64(&t, 0, v);
	return onnx_value_known(im, &t);
}

/* Imports round after round in the graph itself: for sequences, and for types that change. */
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

/* ---- the body ---- */

static TypeId scalar_type(Import *im, DType d)
{
	return ir_type(im->ir, d, 0, NULL);
}

static bool bind_tensors(Scope *s, const Loop *l)
{
	for (uint32_t k = 0; k < l->ncarry; k++) {
		if (l->carry[k].kind != CARRY_TENSOR)
			continue;
		Node outer = onnx_value_node(l->it->s, l->carry[k].first);
		TRY(outer.i);
		const char *name = l->g->in.data[k + 2].name;
		Node n = body_input(s, name, node_type_id(l->it->s->b.g, outer));
		TRY(onnx_scope_bind(s, name, onnx_value_of(s, n)));
	}
	return true;
}

static Value *size_like(Import *im, const Value *like, DType d, Sym size)
{
	return onnx_value_sizes(im, d, &size, 1,
				like && (like->known ? like->known->rank > 0 : like->has_dim));
}

/* Returns a list of what the sequence holds in front of a round, which nothing is known of. */
static Value *earlier(Import *im)
{
	Value *rest = onnx_value_new(im);
	rest->repeats = sym_int(im->syms, 1);
	return onnx_value_list(im, &rest, 1);
}

/* Returns a counter as a size, from the number of the round. */
static Value *counter_in(Scope *s, const Carry *c, Node round)
{
	Build *b = &s->b;
	Node at = b_bin(b, OP_add, b_from_size(b, c->start),
			b_bin_scalar(b, OP_mul, round, (double)c->step));
	return size_like(s->im, c->first, onnx_value_dtype(s, c->first),
			 onnx_size_from_data(s, at, c->most, "a counter"));
}

/* Binds the round, counters and lists. */
static bool bind_round(Scope *s, const Loop *l, Node round)
{
	Import *im = s->im;
	Value *v = onnx_value_of(s, round);
	if (l->by_size) {
		Sym most = l->rounds.i ? sym_addi(im->syms, l->rounds, -1) : l->rounds,
		    number = onnx_size_from_data(s, round, most, "the round");
		v->size = arena_dup(im->ctx->arena, &number, sizeof number);
		v->nsize = 1;
	}
	TRY(onnx_scope_bind(s, l->g->in.data[0].name, v));
	for (uint32_t k = 0; k < l->ncarry; k++) {
		const Carry *c = &l->carry[k];
		Value *in = NULL;
		if (c->kind == CARRY_LIST)
			in = earlier(im);
		else if (c->kind == CARRY_COUNTER)
			in = counter_in(s, c, round);
		TRY(!in || onnx_scope_bind(s, l->g->in.data[k + 2].name, in));
	}
	return true;
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

static bool add_tensors(const Loop *l, Scope *s)
{
	for (uint32_t k = 0; k < l->ncarry; k++)
		TRY(l->carry[k].kind != CARRY_TENSOR || add_result(l, s, k + 1).i);
	return true;
}

/* Finds the pieces that the body adds to sequence k: nodes, those in front first. */
static bool pieces_of(Loop *l, Scope *s, uint32_t k, Rows *out)
{
	Carry *c = &l->carry[k];
	Value *v = body_result(l->it, s, l->g, k + 1);
	bool behind = false;
	TRY(v);
	c->front = c->back = 0;
	for (uint32_t i = 0; v->is_list && i < v->item.n; i++) {
		Value *piece = v->item.data[i];
		if (piece->repeats.i && !piece->item.n && !behind) {
			behind = true;
			continue;
		}
		Node n = piece->repeats.i ? (Node){0} : onnx_value_node(s, piece);
		if (!n.i)
			break;
		array_push(s->im->ctx->scratch, out, n);
		*(behind ? &c->back : &c->front) += 1;
	}
	return (behind && c->front + c->back + 1 == v->item.n) ||
	       onnx_item_error(l->it, "a loop that changes a sequence other than by adding tensors "
				      "at its ends needs a constant number of rounds, at most "
				      "4096");
}

static bool all_pieces(Loop *l, Scope *s, Rows *out)
{
	for (uint32_t k = 0; k < l->ncarry; k++)
		TRY(l->carry[k].kind != CARRY_LIST || pieces_of(l, s, k, out));
	return true;
}

/* Makes the body of a loop whose condition stays true: body(carry..., round, consts...) ->
 * (carry..., rows..., pieces...). Sets *stays to whether the condition does. */
static Graph *counted_body(Loop *l, bool *stays)
{
	Scope s;
	const Item *it = l->it;
	Import *im = it->s->im;
	bool more = false;
	Rows piece = {0};
	*stays = false;
	onnx_scope_init(&s, im, graph_new(im->ir, "body"), it->s, it->s->opset);
	if (!bind_tensors(&s, l))
		return NULL;
	Node round = body_input(&s, l->g->in.data[0].name, scalar_type(im, DT_i64));
	if (!bind_round(&s, l, round) ||
	    !onnx_scope_bind(&s, l->g->in.data[1].name, number(im, DT_bool, 1)) ||
	    !bind_captures(&s, &l->captures) || !onnx_scope_graph(&s, l->g))
		return NULL;
	Value *test = body_result(it, &s, l->g, 0);
	*stays = test && (l->counted || (known_bool(&s, test, false, &more) && more));
	if (!test || !add_tensors(l, &s))
		return NULL;
	for (uint32_t k = 0; k < l->nscan; k++)
		if (!add_result(l, &s, k + 1 + l->ncarry).i)
			return NULL;
	if (!all_pieces(l, &s, &piece))
		return NULL;
	for (uint32_t k = 0; k < piece.n; k++)
		graph_add_output(s.b.g, "piece", piece.data[k], -1);
	l->npiece = piece.n;
	return s.b.g;
}

/* ---- results ---- */

/* Returns one part of a list: its rows, which have an element for each round, from row `at` on. */
static Value *part(const Loop *l, const Node *row, uint32_t n, bool reverse, Sym rounds)
{
	Scope *s = l->it->s;
	Value *v = onnx_value_new(s->im);
	v->repeats = rounds;
	for (uint32_t k = 0; k < n; k++)
		array_push(s->im->ctx->arena, &v->item,
			   onnx_value_of(s, reverse ? b_reverse(&s->b, row[k], 0) : row[k]));
	return v;
}

static Value *list_after(const Loop *l, const Carry *c, const Node *row, Sym rounds)
{
	Import *im = l->it->s->im;
	Value *out = onnx_value_list(im, NULL, 0);
	if (c->front)
		array_push(im->ctx->arena, &out->item, part(l, row, c->front, true, rounds));
	for (uint32_t k = 0; k < c->first->item.n; k++)
		array_push(im->ctx->arena, &out->item, c->first->item.data[k]);
	if (c->back)
		array_push(im->ctx->arena, &out->item,
			   part(l, row + c->front, c->back, false, rounds));
	return out;
}

/* Binds the node's results. made: the tensors that are carried, then the rows, then those of
 * pieces. */
static bool bind_results(const Loop *l, const Node *made, Sym rounds)
{
	const Item *it = l->it;
	Import *im = it->s->im;
	const Node *tensor = made, *row = made + l->ntensor, *piece = row + l->nscan;
	for (uint32_t k = 0; k < l->ncarry; k++) {
		const Carry *c = &l->carry[k];
		Value *v;
		if (c->kind == CARRY_LIST) {
			v = list_after(l, c, piece, rounds);
			piece += c->front + c->back;
		} else if (c->kind == CARRY_COUNTER) {
			v = size_like(
				im, c->first, onnx_value_dtype(it->s, c->first),
				sym_add(im->syms, c->start, sym_muli(im->syms, rounds, c->step)));
		} else {
			v = onnx_value_of(it->s, *tensor++);
		}
		TRY(onnx_item_bind(it, k, v));
	}
	for (uint32_t k = 0; k < l->nscan; k++)
		TRY(onnx_item_bind(it, l->ncarry + k, onnx_value_of(it->s, row[k])));
	return true;
}

static void add_operands(const Loop *l, Node *in)
{
	for (uint32_t k = 0; k < l->ncarry; k++)
		if (l->carry[k].kind == CARRY_TENSOR)
			*in++ = onnx_value_node(l->it->s, l->carry[k].first);
}

static bool by_scan(Loop *l, Graph *body)
{
	const Item *it = l->it;
	Build *b = &it->s->b;
	Ir *ir = it->s->im->ir;
	uint32_t n = l->ntensor, nc = l->captures.node.n, nout = n + l->nscan + l->npiece;
	Node *in = ARENA_ARRAY(it->s->im->ctx->scratch, Node, n + 1 + nc),
	     *out = ARENA_ARRAY(it->s->im->ctx->scratch, Node, nout + 1);
	add_operands(l, in);
	in[n] = b_iota(b, DT_i64, l->rounds);
	for (uint32_t k = 0; k < nc; k++)
		in[n + 1 + k] = l->captures.node.data[k];
	Attr attr[] = {attr_int(ir, n),  attr_int(ir, 1),     attr_int(ir, nc),
		       attr_graph(body), attr_sym(l->rounds), attr_bool(false)};
	Node y = b_node(b, OP_scan, in, n + 1 + nc, attr, 6);
	TRY(y.i);
	for (uint32_t k = 0; k < nout; k++)
		out[k] = b_get(b, y, k);
	return bind_results(l, out, l->rounds);
}

/* ---- while ---- */

/* Adds rows of results, [rounds, ...] each, to the carry of a while loop, behind the round, the
 * condition, and the loop's own values. */
static bool add_rows(const Loop *l, const Graph *counted, Node *in)
{
	const Item *it = l->it;
	for (uint32_t k = 0; k < l->nscan + l->npiece; k++) {
		Type t = *node_type(counted, counted->output.data[l->ntensor + k].node);
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

/* Returns the rows with x in the row of that round. */
static Node row_written(Build *b, Node rows, Node x, Node round)
{
	x = b_unsqueeze(b, x, 0);
	uint32_t rank = x.i ? node_rank(b->g, x) : 0;
	Node start[MAX_RANK] = {round};
	for (uint32_t d = 1; d < rank; d++)
		start[d] = b_full_int(b, DT_i64, 0, 0, NULL);
	return b_update_slice(b, rows, x, start);
}

static Graph *while_body(Loop *l, const Node *in)
{
	const Item *it = l->it;
	Import *im = it->s->im;
	Scope s;
	Rows made = {0};
	onnx_scope_init(&s, im, graph_new(im->ir, "body"), it->s, it->s->opset);
	Node round = body_input(&s, l->g->in.data[0].name, scalar_type(im, DT_i64)),
	     test = body_input(&s, l->g->in.data[1].name, scalar_type(im, DT_bool));
	if (!bind_round(&s, l, round) ||
	    !onnx_scope_bind(&s, l->g->in.data[1].name, onnx_value_of(&s, test)) ||
	    !bind_tensors(&s, l))
		return NULL;
	uint32_t nrow = l->nscan + l->npiece;
	Node *rows = ARENA_ARRAY(im->ctx->scratch, Node, nrow + 1);
	for (uint32_t k = 0; k < nrow; k++)
		rows[k] = body_input(&s, "rows", node_type_id(it->s->b.g, in[2 + l->ntensor + k]));
	if (!bind_captures(&s, &l->captures) || !onnx_scope_graph(&s, l->g))
		return NULL;
	Value *more = body_result(it, &s, l->g, 0);
	Node next = more ? body_condition(&s, more) : (Node){0};
	if (!next.i)
		return NULL;
	graph_add_output(s.b.g, "round", b_bin_scalar(&s.b, OP_add, round, 1), -1);
	graph_add_output(s.b.g, "more", next, -1);
	for (uint32_t k = 0; k < l->nscan; k++) {
		Value *v = body_result(it, &s, l->g, k + 1 + l->ncarry);
		Node n = v ? onnx_value_node(&s, v) : (Node){0};
		if (!n.i)
			return NULL;
		array_push(im->ctx->scratch, &made, n);
	}
	if (!all_pieces(l, &s, &made) || !add_tensors(l, &s))
		return NULL;
	for (uint32_t k = 0; next.i && k < nrow; k++) {
		next = row_written(&s.b, rows[k], made.data[k], round);
		if (next.i)
			graph_add_output(s.b.g, "rows", next, -1);
	}
	return next.i ? s.b.g : NULL;
}

static bool by_while(Loop *l, const Graph *counted, Node first)
{
	const Item *it = l->it;
	Build *b = &it->s->b;
	Ir *ir = it->s->im->ir;
	uint32_t nrow = l->nscan + l->npiece, ncarry = 2 + l->ntensor + nrow,
		 n = ncarry + l->captures.node.n;
	Node *in = ARENA_ARRAY(it->s->im->ctx->scratch, Node, n),
	     *out = ARENA_ARRAY(it->s->im->ctx->scratch, Node, ncarry);
	in[0] = b_full_int(b, DT_i64, 0, 0, NULL);
	in[1] = first;
	add_operands(l, in + 2);
	TRY(add_rows(l, counted, in + 2 + l->ntensor));
	for (uint32_t k = 0; k < l->captures.node.n; k++)
		in[ncarry + k] = l->captures.node.data[k];
	Graph *test = while_condition(l, in, n), *body = test ? while_body(l, in) : NULL;
	TRY(body);
	Attr attr[] = {attr_int(ir, ncarry), attr_int(ir, n - ncarry), attr_graph(test),
		       attr_graph(body), attr_none()};
	Node y = b_node(b, OP_while, in, n, attr, 5);
	TRY(y.i);
	Sym done = {0};
	if (nrow)
		done = onnx_size_from_data(it->s, b_get(b, y, 0), (Sym){0}, "the number of rounds");
	for (uint32_t k = 0; k + 2 < ncarry; k++) {
		out[k] = b_get(b, y, 2 + k);
		if (k >= l->ntensor)
			out[k] = b_slice(b, out[k], 0, b_int(b, 0), done, b_int(b, 1));
	}
	return bind_results(l, out, done);
}

/* ---- counters ---- */

/* Whether a carry may be a counter: one size that is not negative. */
static bool may_count(const Loop *l, Carry *c)
{
	const Sym *size;
	uint32_t n;
	SymTab *t = l->it->s->im->syms;
	if (c->kind != CARRY_TENSOR || !onnx_value_as_sizes(l->it->s, c->first, &size, &n) ||
	    n != 1 || sym_le(t, sym_int(t, 0), size[0]) != YES)
		return false;
	c->start = size[0];
	return dtype_is_int(onnx_value_dtype(l->it->s, c->first));
}

static bool gives_any(const OnnxNode *n, const Intern *name)
{
	for (uint32_t k = 0; k < n->out.n; k++)
		if (intern_find(name, n->out.data[k], strlen(n->out.data[k])))
			return true;
	return false;
}

static void add_name(Intern *set, const char *name)
{
	if (name)
		intern(set, name, strlen(name), NULL);
}

/* Returns the nodes of the body that decide the condition and what may count. */
static OnnxGraph deciding_nodes(const Loop *l)
{
	Arena *a = l->it->s->im->ctx->scratch;
	OnnxGraph g = *l->g;
	uint32_t n = g.node.n, first = n;
	OnnxNode *node = ARENA_ARRAY(a, OnnxNode, n + 1);
	Intern needed;
	intern_init(&needed, a);
	add_name(&needed, g.out.data[0].name);
	for (uint32_t k = 0; k < l->ncarry; k++)
		if (l->carry[k].probe.i)
			add_name(&needed, g.out.data[k + 1].name);
	for (uint32_t k = n; k-- > 0;) {
		const OnnxNode *x = &l->g->node.data[k];
		if (!gives_any(x, &needed))
			continue;
		node[--first] = *x;
		for (uint32_t i = 0; i < x->in.n; i++)
			add_name(&needed, x->in.data[i]);
	}
	g.node.data = node + first;
	g.node.n = n - first;
	g.out.n = 0;
	return g;
}

static bool import_deciding(const Loop *l, Scope *s)
{
	OnnxGraph g = deciding_nodes(l);
	return onnx_scope_graph(s, &g);
}

/* Imports what decides the condition, in a graph that is forgotten, with a symbol for each value
 * that may count. Returns false after an error. */
static bool probe_body(const Loop *l, Scope *s)
{
	const Item *it = l->it;
	Import *im = it->s->im;
	onnx_scope_init(s, im, graph_new(im->ir, "probe"), it->s, it->s->opset);
	Node any = body_input(s, "any", scalar_type(im, DT_i64));
	for (uint32_t k = 0; k < l->ncarry; k++) {
		Carry *c = &l->carry[k];
		Value *in = c->kind == CARRY_LIST ? earlier(im) : NULL;
		if (may_count(l, c)) {
			c->probe = onnx_size_from_data(s, any, (Sym){0}, "a counter");
			in = size_like(im, c->first, onnx_value_dtype(s, c->first), c->probe);
		} else if (!in) {
			Node n = onnx_value_node(it->s, c->first);
			TRY(n.i);
			in = onnx_value_of(s, body_input(s, "x", node_type_id(it->s->b.g, n)));
		}
		TRY(onnx_scope_bind(s, l->g->in.data[k + 2].name, in));
	}
	return onnx_scope_bind(s, l->g->in.data[0].name, onnx_value_of(s, any)) &&
	       onnx_scope_bind(s, l->g->in.data[1].name, number(im, DT_bool, 1)) &&
	       bind_captures(s, &l->captures) && import_deciding(l, s);
}

/* Whether the expression contains a symbol that is younger than the first n. */
static bool uses_new(const SymTab *t, Sym e, uint32_t n)
{
	for (uint32_t k = n; k < sym_nvars(t); k++)
		if (sym_uses(t, e, sym_var_at(t, k)))
			return true;
	return false;
}

/* Returns the counter that the condition behind a round compares; sets *ahead to by what it is
 * ahead there. NULL if there is none. */
static Carry *compared_counter(const Loop *l, const Value *more, int64_t *ahead)
{
	SymTab *t = l->it->s->im->syms;
	for (uint32_t k = 0; more && more->below && k < l->ncarry; k++) {
		Carry *c = &l->carry[k];
		if (c->step && sym_is_const(t, sym_sub(t, more->below[0], c->probe), ahead) &&
		    *ahead >= 0)
			return c;
	}
	return NULL;
}

/* Returns how often start, start + step, ... stays below the end. */
static Sym steps(SymTab *t, Sym start, int64_t step, Sym end)
{
	Sym n = sym_ceildiv(t, sym_sub(t, end, start), sym_int(t, step));
	return sym_max(t, sym_int(t, 0), n);
}

/* Sets what a round adds to each value that may count; 0: it is no counter. */
static void find_steps(const Loop *l, Scope *body)
{
	SymTab *t = l->it->s->im->syms;
	for (uint32_t k = 0; k < l->ncarry; k++) {
		Carry *c = &l->carry[k];
		Value *v = c->probe.i ? body_result(l->it, body, l->g, k + 1) : NULL;
		const Sym *size;
		uint32_t n;
		if (!v || v->is_list || !onnx_value_as_sizes(body, v, &size, &n) || n != 1 ||
		    !sym_is_const(t, sym_sub(t, size[0], c->probe), &c->step) || c->step < 0 ||
		    c->step > 1 << 20)
			c->step = 0;
	}
}

/* Sets the number of rounds of a loop that ends when counter c, after a round, is not below the
 * end. Returns false if what decides on the first round is another condition. */
static bool set_counted(Loop *l, Carry *c, Sym end)
{
	const Item *it = l->it;
	SymTab *t = it->s->im->syms;
	Value *test = onnx_item_in(it, 1);
	bool first = true;
	int64_t more;
	c->most = sym_addi(t, end, -1);
	if (!test || (known_bool(it->s, test, true, &first) && first)) {
		Sym second = sym_addi(t, c->start, c->step);
		l->rounds = sym_addi(t, steps(t, second, c->step, end), 1);
		c->most = sym_max(t, c->most, c->start);
		return true;
	}
	TRY(test->below && sym_is_const(t, sym_sub(t, test->below[0], c->start), &more));
	TRY(sym_addi(t, test->below[1], -more).i == end.i);
	l->rounds = steps(t, c->start, c->step, end);
	return true;
}

/* Sets the number of rounds, and what carries count, if the condition compares a counter with a
 * size. */
static bool find_counters(Loop *l)
{
	const Item *it = l->it;
	Import *im = it->s->im;
	SymTab *t = im->syms;
	CtxMark mark = ctx_mark(im->ctx);
	uint32_t known = sym_nvars(t);
	int64_t ahead;
	Scope s;
	if (!probe_body(l, &s)) {
		ctx_rewind(im->ctx, mark);
		return false;
	}
	find_steps(l, &s);
	Value *more = body_result(it, &s, l->g, 0);
	Carry *c = compared_counter(l, more, &ahead);
	ctx_rewind(im->ctx, mark);
	TRY(c && !uses_new(t, more->below[1], known));
	TRY(set_counted(l, c, sym_addi(t, more->below[1], c->step - ahead)));
	for (uint32_t k = 0; k < l->ncarry; k++)
		if (l->carry[k].step)
			l->carry[k].kind = CARRY_COUNTER;
	return l->counted = true;
}

/* ---- the node ---- */

static bool list_among(const Item *it, const OnnxGraph *g)
{
	bool found = gives_lists(g);
	for (uint32_t k = 2; k < it->nin; k++)
		found |= it->in[k] && it->in[k]->is_list;
	return found;
}

/* Returns the name of tensor k of those that are carried. */
static const char *tensor_name(const Loop *l, uint32_t k)
{
	uint32_t i = 0;
	while (l->carry[i].kind != CARRY_TENSOR || k--)
		i++;
	return l->g->in.data[i + 2].name;
}

/* Whether values have the same types in all rounds. */
static bool keeps_types(const Loop *l, const Graph *counted)
{
	int64_t rounds;
	for (uint32_t k = 0; k < l->ntensor; k++)
		if (node_type_id(counted, counted->output.data[k].node).i !=
		    node_type_id(counted, counted->input.data[k].node).i)
			return !sym_is_const(l->it->s->im->syms, l->rounds, &rounds);
	return true;
}

/* Checks that no carry changes its type from round to round: only a loop that is unrolled may
 * have such a carry. */
static bool check_carries(const Loop *l, const Graph *counted)
{
	const Item *it = l->it;
	for (uint32_t k = 0; k < l->ntensor; k++) {
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
				tensor_name(l, k),
				type_str(it->s->im->ir, node_type_id(counted, in)),
				type_str(it->s->im->ir, node_type_id(counted, out)));
	}
	return true;
}

/* Finds out what goes from round to round. */
static bool set_carries(Loop *l)
{
	const Item *it = l->it;
	l->carry = ARENA_ARRAY(it->s->im->ctx->scratch, Carry, l->ncarry + 1);
	for (uint32_t k = 0; k < l->ncarry; k++) {
		Value *v = onnx_item_in(it, k + 2);
		if (!v)
			return onnx_item_error(it, "input %u is missing", k + 2);
		l->carry[k] = (Carry){.kind = v->is_list ? CARRY_LIST : CARRY_TENSOR, .first = v};
	}
	return true;
}

static void count_kinds(Loop *l)
{
	l->ntensor = 0;
	for (uint32_t k = 0; k < l->ncarry; k++) {
		l->ntensor += l->carry[k].kind == CARRY_TENSOR;
		l->by_size |= l->carry[k].kind != CARRY_TENSOR;
	}
}

static bool set_rounds(Loop *l, bool *is_known)
{
	const Item *it = l->it;
	Value *limit = onnx_item_in(it, 0), *test = onnx_item_in(it, 1);
	const Sym *size;
	uint32_t n;
	bool first = true;
	int64_t rounds;
	if (limit && !limit->is_list) {
		TRY(onnx_value_to_sizes(it->s, limit, "the number of rounds", &size, &n));
		l->rounds = n == 1 ? size[0] : (Sym){0};
	}
	*is_known = !test || known_bool(it->s, test, true, &first);
	if ((*is_known && !first) ||
	    (l->rounds.i && sym_is_const(it->s->im->syms, l->rounds, &rounds) && rounds < 0))
		l->rounds = sym_int(it->s->im->syms, 0);
	return true;
}

/* Whether to write a loop over lists out, round after round. */
static bool is_short(const Loop *l, int64_t most)
{
	int64_t rounds;
	return l->rounds.i && sym_is_const(l->it->s->im->syms, l->rounds, &rounds) &&
	       rounds <= most;
}

bool onnx_import_loop(const Item *it)
{
	enum { FEW = 16, MOST = 4096 };
	Loop l = {.it = it, .g = body_of(it, "body")};
	Value *test = onnx_item_in(it, 1);
	CtxMark mark = ctx_mark(it->s->im->ctx);
	bool stays, is_known;
	TRY(l.g);
	l.ncarry = it->nin > 2 ? it->nin - 2 : 0;
	if (l.g->in.n != l.ncarry + 2 || l.g->out.n < l.ncarry + 1)
		return onnx_item_error(it, "a body of %u inputs and %u results for %u values",
				       l.g->in.n, l.g->out.n, l.ncarry);
	l.nscan = l.g->out.n - 1 - l.ncarry;
	TRY(set_rounds(&l, &is_known) && set_carries(&l));
	bool lists = list_among(it, l.g);
	if (lists && is_short(&l, FEW))
		return unroll(&l);
	if (!captures_of(&l.captures, it->s, l.g))
		return lists && is_short(&l, MOST) ? (ctx_rewind(it->s->im->ctx, mark), unroll(&l))
						   : false;
	if (!l.rounds.i && find_counters(&l) && lists && is_short(&l, FEW))
		return unroll(&l);
	count_kinds(&l);
	Graph *counted = counted_body(&l, &stays);
	if (!counted && lists && is_short(&l, MOST)) {
		ctx_rewind(it->s->im->ctx, mark);
		return unroll(&l);
	}
	TRY(counted);
	if (stays && (is_known || l.counted) && l.rounds.i)
		return keeps_types(&l, counted) ? check_carries(&l, counted) && by_scan(&l, counted)
						: unroll(&l);
	TRY(check_carries(&l, counted));
	Node more = test ? body_condition(it->s, test) : b_full(&it->s->b, DT_bool, 1, 0, NULL);
	return more.i && by_while(&l, counted, more);
}
