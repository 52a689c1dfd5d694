/* Where a graph is like a pattern. The search begins at the node that may be output 0, goes back
 * along operands, and then, for other outputs, forward to readers. */
#include "transform/pattern/priv.h"

#include <string.h>

typedef struct {
	Patterns *x;
	Node *node;        /* by node of the pattern */
	ARRAY(Node) trail; /* nodes of the pattern that have one, in order */
	Sizes sizes;
} PatternSearch;

bool pattern_is_call(const Graph *g, Node n)
{
	return n.i && node_op(g, n) != OP_input && !node_const(g, n).i;
}

/* ---- sizes ---- */

/* Whether both sizes are equal, once all sizes of the pattern are given. */
static bool is_equal_size(const PatternSearch *s, Sym pattern, Sym actual)
{
	Ir *ir = s->x->g->ir;
	return sym_eq(ir->syms, sizes_put(ir, &s->sizes, pattern), actual) == YES;
}

static bool is_equal_type(const PatternSearch *s, TypeId type, TypeId actual)
{
	const Ir *ir = s->x->g->ir;
	const Type t = *ir_type_of(ir, type), a = *ir_type_of(ir, actual);
	if (!type.i || !actual.i)
		return type.i == actual.i;
	if (t.dtype != a.dtype || t.n != a.n)
		return false;
	for (uint32_t k = 0; k < t.n; k++)
		if (t.dtype == DT_none ? !is_equal_type(s, t.elem[k], a.elem[k])
				       : !is_equal_size(s, t.dim[k], a.dim[k]))
			return false;
	return true;
}

/* ---- one node ---- */

static bool is_equal_const(Ir *ir, ConstId a, ConstId b)
{
	const Const *s = ir_const_of(ir, a), *t = ir_const_of(ir, b);
	if (a.i == b.i)
		return true;
	if (s->recipe || t->recipe || s->dtype != t->dtype || s->rank != t->rank ||
	    s->bytes != t->bytes)
		return false;
	for (uint32_t k = 0; k < s->rank; k++)
		if (s->dim[k] != t->dim[k])
			return false;
	return !s->bytes || memcmp(s->data, t->data, s->bytes) == 0;
}

/* Sets *out to a number, so that 2 and 2.0 are equal. Returns false for what is no number. */
static bool number_of(const Ir *ir, const Attr *a, double *out)
{
	int64_t v;
	*out = a->f;
	if (a->kind == ATTR_float)
		return true;
	if (a->kind != ATTR_int || !sym_is_const(ir->syms, a->s, &v))
		return false;
	*out = (double)v;
	return v == (int64_t)*out;
}

static bool is_equal_attr(const PatternSearch *s, const Attr *p, const Attr *a)
{
	double x, y;
	if (p->kind != a->kind)
		return number_of(s->x->g->ir, p, &x) && number_of(s->x->g->ir, a, &y) && x == y;
	if (p->kind == ATTR_int)
		return is_equal_size(s, p->s, a->s);
	if (p->kind != ATTR_ints)
		return attr_equal(p, a);
	for (uint32_t k = 0; p->n == a->n && k < p->n; k++)
		if (!is_equal_size(s, p->ints[k], a->ints[k]))
			return false;
	return p->n == a->n;
}

static bool attrs_are_equal(const PatternSearch *s, Node q, Node n)
{
	Ir *ir = s->x->g->ir;
	Op op = node_op(s->x->g, n);
	AttrId p = node_data(s->x->pattern, q)->attr, a = node_data(s->x->g, n)->attr;
	for (uint32_t k = 0; p.i != a.i && k < op_schema(op)->narg; k++) {
		const Arg *arg = &op_schema(op)->arg[k];
		Attr x = *ir_attr(ir, p, k), y = *ir_attr(ir, a, k);
		if (x.kind == ATTR_none && !arg->optional)
			x = op_default(ir, arg);
		if (y.kind == ATTR_none && !arg->optional)
			y = op_default(ir, arg);
		if (!is_equal_attr(s, &x, &y))
			return false;
	}
	if (p.i != a.i)
		return true;
	for (uint32_t k = 0; k < op_schema(op)->narg;
	     k++) { /* the same names may mean other sizes */
		const Attr *x = ir_attr(ir, p, k);
		if ((x->kind == ATTR_int || x->kind == ATTR_ints) && !is_equal_attr(s, x, x))
			return false;
	}
	return true;
}

static bool bind(PatternSearch *s, Node q, Node n);

static bool bind_operands(PatternSearch *s, Node q, Node n)
{
	const Graph *g = s->x->g, *p = s->x->pattern;
	for (uint32_t k = 0; k < node_nin(p, q); k++) {
		Node want = node_in(p, q, k), in = node_in(g, n, k);
		if (!want.i != !in.i || (want.i && !bind(s, want, in)))
			return false;
	}
	return true;
}

static bool may_be(const PatternSearch *s, Node q, Node n)
{
	Graph *g = s->x->g;
	const Graph *p = s->x->pattern;
	if (node_op(p, q) == OP_input)
		return node_type_id(g, n).i && node_dtype(g, n) == node_dtype(p, q) &&
		       node_rank(g, n) == node_rank(p, q);
	if (node_op(g, n) != node_op(p, q))
		return false;
	if (node_const(p, q).i)
		return is_equal_const(g->ir, node_const(p, q), node_const(g, n));
	return node_nin(g, n) == node_nin(p, q) && !s->x->owner[n.i] && !s->x->call[n.i].i;
}

static bool bind(PatternSearch *s, Node q, Node n)
{
	if (s->node[q.i].i)
		return s->node[q.i].i == n.i;
	if (!may_be(s, q, n))
		return false;
	s->node[q.i] = n;
	array_push(s->x->g->ir->ctx->scratch, &s->trail, q);
	if (!pattern_is_call(s->x->pattern, q))
		return true;
	s->x->call[n.i] = q;
	return bind_operands(s, q, n);
}

static void unbind(PatternSearch *s, uint32_t to)
{
	while (s->trail.n > to) {
		Node q = s->trail.data[--s->trail.n];
		if (pattern_is_call(s->x->pattern, q))
			s->x->call[s->node[q.i].i] = (Node){0};
		s->node[q.i] = (Node){0};
	}
}

/* ---- a place ---- */

/* Whether the graph requires the condition, or it holds. */
static bool is_required(const Graph *g, GuardKind kind, Sym a, Sym b)
{
	const SymTab *t = graph_syms(g);
	Truth eq = sym_eq(t, a, b);
	if (kind == GUARD_LE ? sym_le(t, a, b) == YES : kind == GUARD_EQ ? eq == YES : eq == NO)
		return true;
	for (uint32_t k = 0; k < g->guard.n; k++) {
		const GraphGuard *o = &g->guard.data[k];
		bool swapped = kind != GUARD_LE && o->a.i == b.i && o->b.i == a.i;
		if (o->kind == kind && ((o->a.i == a.i && o->b.i == b.i) || swapped))
			return true;
	}
	return false;
}

static bool sizes_fit(PatternSearch *s)
{
	const Graph *p = s->x->pattern;
	Graph *g = s->x->g;
	s->sizes.var.n = s->sizes.by.n = 0;
	for (uint32_t k = 0; k < p->input.n; k++) {
		Node q = p->input.data[k].node;
		TRY(sizes_unify(g->ir, &s->sizes, node_type_id(p, q),
				node_type_id(g, s->node[q.i])));
	}
	for (Node q = p->first; q.i; q = node_next(p, q))
		TRY(sizes_unify(g->ir, &s->sizes, node_type_id(p, q),
				node_type_id(g, s->node[q.i])));
	s->sizes.all = s->x->size.data;
	s->sizes.nall = s->x->size.n;
	while (s->sizes.var.n < s->sizes.nall) {
		const uint32_t known = s->sizes.var.n;
		for (Node q = p->first; q.i; q = node_next(p, q))
			TRY(sizes_solve(g->ir, &s->sizes, node_type_id(p, q),
					node_type_id(g, s->node[q.i])));
		TRY(s->sizes.var.n > known);
	}
	for (Node q = p->first; q.i; q = node_next(p, q))
		TRY(is_equal_type(s, node_type_id(p, q), node_type_id(g, s->node[q.i])) &&
		    (!pattern_is_call(p, q) || attrs_are_equal(s, q, s->node[q.i])));
	for (uint32_t k = 0; k < p->guard.n; k++) {
		const GraphGuard *o = &p->guard.data[k];
		TRY(is_required(g, o->kind, sizes_put(g->ir, &s->sizes, o->a),
				sizes_put(g->ir, &s->sizes, o->b)));
	}
	return true;
}

/* Returns the place in the order of n's first reader outside; UINT32_MAX if there is none. What
 * an earlier place reads is read where its new nodes are. */
static uint32_t first_reader(const PatternSearch *s, Node n)
{
	const Patterns *x = s->x;
	uint32_t first = UINT32_MAX;
	for (Use u = node_data(x->g, n)->first_use; u.i; u = x->g->use.data[u.i].next) {
		Node user = x->g->use.data[u.i].user;
		if (x->call[user.i].i)
			continue;
		uint32_t at = x->order[user.i];
		const PatternPlace *owner =
			x->owner[user.i] ? &x->place.data[x->owner[user.i] - 1] : NULL;
		if (owner && x->order[owner->before.i] <= at)
			at = x->order[owner->before.i] - 1;
		first = at < first ? at : first;
	}
	return first;
}

/* Whether inner values have no other readers. */
static bool is_closed(const PatternSearch *s)
{
	const Graph *p = s->x->pattern;
	for (Node q = p->first; q.i; q = node_next(p, q)) {
		bool inner = pattern_is_call(p, q) && !node_is_output(p, q);
		if (inner && (node_is_output(s->x->g, s->node[q.i]) ||
			      first_reader(s, s->node[q.i]) != UINT32_MAX))
			return false;
	}
	return true;
}

/* Puts new nodes where the last one of the place stands. Returns false if that is not behind all
 * that the place reads and in front of all that reads it. */
static bool find_position(const PatternSearch *s, PatternPlace *place)
{
	const Patterns *x = s->x;
	const Graph *p = x->pattern;
	uint32_t before = 0, reader = UINT32_MAX;
	for (Node q = p->first; q.i; q = node_next(p, q))
		if (pattern_is_call(p, q) && x->order[s->node[q.i].i] > before) {
			before = x->order[s->node[q.i].i];
			place->before = s->node[q.i];
		}
	for (uint32_t k = 0; k < p->output.n; k++) {
		uint32_t first = first_reader(s, s->node[p->output.data[k].node.i]);
		reader = first < reader ? first : reader;
	}
	if (reader <= before)
		return false;
	for (uint32_t k = 0; k < p->input.n; k++) {
		Node value = s->node[p->input.data[k].node.i];
		const PatternPlace *owner =
			x->owner[value.i] ? &x->place.data[x->owner[value.i] - 1] : NULL;
		if (owner && x->order[owner->before.i] > before)
			return false;
	}
	return true;
}

static bool complete(PatternSearch *s)
{
	Patterns *x = s->x;
	Arena *scratch = x->g->ir->ctx->scratch;
	PatternPlace place = {0};
	TRY(is_closed(s) && sizes_fit(s));
	if (!find_position(s, &place) || x->moves) {
		TRY(pattern_is_one_step(x, s->node));
		x->moves = true;
	}
	place.node = arena_dup(scratch, s->node, x->pattern->node.n * sizeof *s->node);
	array_push(scratch, &x->place, place);
	return true;
}

/* Returns a call that has no node yet and reads a value that has one; sets *k to the operand.
 * None if there is none. */
static Node next_call(const PatternSearch *s, uint32_t *k)
{
	const Graph *p = s->x->pattern;
	for (Node q = p->first; q.i; q = node_next(p, q))
		for (*k = 0; !s->node[q.i].i && *k < node_nin(p, q); ++*k) {
			Node in = node_in(p, q, *k);
			if (in.i && s->node[in.i].i && !node_const(p, in).i)
				return q;
		}
	return (Node){0};
}

static bool search(PatternSearch *s)
{
	const Graph *g = s->x->g;
	uint32_t k, mark = s->trail.n;
	Node q = next_call(s, &k);
	if (!q.i)
		return complete(s);
	Node value = s->node[node_in(s->x->pattern, q, k).i];
	for (Use u = node_data(g, value)->first_use; u.i; u = g->use.data[u.i].next) {
		if (bind(s, q, g->use.data[u.i].user) && search(s))
			return true;
		unbind(s, mark);
	}
	return false;
}

/* Gives the last place its nodes, but for constants. */
static void own(Patterns *x)
{
	const PatternPlace *place = &x->place.data[x->place.n - 1];
	for (Node q = x->pattern->first; q.i; q = node_next(x->pattern, q))
		if (pattern_is_call(x->pattern, q))
			x->owner[place->node[q.i].i] = x->place.n;
}

void pattern_find(Patterns *x)
{
	Graph *g = x->g;
	Arena *scratch = g->ir->ctx->scratch;
	Node out = x->pattern->output.data[0].node;
	uint32_t k = 0;
	x->order = ARENA_ARRAY(scratch, uint32_t, g->node.n);
	x->owner = ARENA_ARRAY(scratch, uint32_t, g->node.n);
	x->call = ARENA_ARRAY(scratch, Node, g->node.n);
	PatternSearch s = {.x = x, .node = ARENA_ARRAY(scratch, Node, x->pattern->node.n)};
	for (Node n = g->first; n.i; n = node_next(g, n))
		x->order[n.i] = 2 * ++k;
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		bool found = bind(&s, out, n) && search(&s);
		unbind(&s, 0);
		if (found)
			own(x);
	}
}
