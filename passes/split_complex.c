/* Complex values become pairs of real ones: planes for the real and the imaginary parts, of which
 * everything below knows how to compute.
 *
 *   %1 = view_complex(%x) : c64[4]               %re = reshape(slice(%x ..)) : f32[4]
 *   %2 = mul(%1, %c) : c64[4]              ->    %im = reshape(slice(%x ..)) : f32[4]
 *   %3 = view_real(%2) : f32[4, 2]               %3 = concat(re * c - im * d, re * d + im * c)
 *
 * Complex inputs and outputs stay what they are to the caller: they are read through view_real and
 * made by view_complex, the same memory. What scan, while and cond pass to their graphs and get from them are pairs too, a
 * last dimension of two. A complex operator without a rule stays too, between these
 * two, for the interpreter; lowering refuses it by name. One sweep, so it ends. */
#include <string.h>

#include "passes/pass.h"

typedef struct {
	Node re, im;
	Node pairs; /* both along a last dimension of two, where that exists; or none */
} Parts;

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

/* ---- between a value and its parts ---- */

static Parts parts_of_pairs(Build *b, Node pairs)
{
	return (Parts){b_select_dim(b, pairs, -1, b_int(b, 0)),
		       b_select_dim(b, pairs, -1, b_int(b, 1)), pairs};
}

static Node pairs_of(Build *b, Parts *p)
{
	if (p->pairs.i)
		return p->pairs;
	Node last[2] = {b_unsqueeze(b, p->re, -1), b_unsqueeze(b, p->im, -1)};
	return b_concat(b, last, 2, -1);
}

static Node joined(Build *b, Parts *p)
{
	Node pairs = pairs_of(b, p);
	if (pairs.i && node_op(b->g, pairs) == OP_view_real)
		return node_in(b->g, pairs, 0);
	return b_node(b, OP_view_complex, &pairs, 1, NULL, 0);
}

static Parts *part(Split *s, Node n)
{
	return &s->part[n.i];
}

/* ---- rules ---- */

/* n's operator with its attributes; the precision of sums is that of the parts. */
static Node same_op(Split *s, Node n, const Node *in)
{
	Graph *g = s->b.g;
	const NodeData d = *node_data(g, n);
	const Schema *schema = op_schema(d.op);
	Attr attr[MAX_ARGS];
	for (uint32_t k = 0; k < schema->narg; k++) {
		attr[k] = *ir_attr(g->ir, d.attr, k);
		if (attr[k].kind == ATTR_dtype)
			attr[k].dtype = dtype_real(attr[k].dtype);
	}
	return b_node(&s->b, d.op, in, d.nin, attr, schema->narg);
}

/* n on one of the parts of its complex operands. */
static Node on_part(Split *s, Node n, bool imaginary)
{
	Graph *g = s->b.g;
	uint32_t nin = node_nin(g, n);
	Node *in = ARENA_ARRAY(g->ir->ctx->scratch, Node, nin + 1);
	for (uint32_t k = 0; k < nin; k++) {
		in[k] = node_in(g, n, k);
		if (is_complex(g, in[k]))
			in[k] = imaginary ? part(s, in[k])->im : part(s, in[k])->re;
	}
	return same_op(s, n, in);
}

static Parts each_part(Split *s, Node n)
{
	return (Parts){on_part(s, n, false), on_part(s, n, true), {0}};
}

/* x * y by any bilinear operator. */
static Parts product(Split *s, Node n)
{
	const Graph *g = s->b.g;
	const Parts x = *part(s, node_in(g, n, 0)), y = *part(s, node_in(g, n, 1));
	Node in[4][2] = {{x.re, y.re}, {x.im, y.im}, {x.re, y.im}, {x.im, y.re}}, made[4];
	for (uint32_t k = 0; k < 4; k++)
		made[k] = same_op(s, n, in[k]);
	return (Parts){b_bin(&s->b, OP_sub, made[0], made[1]),
		       b_bin(&s->b, OP_add, made[2], made[3]),
		       {0}};
}

static Parts split_full(Split *s, Node n)
{
	const Type t = *node_type(s->b.g, n);
	const Attr v = *node_attr(s->b.g, n, "value");
	Node re = b_full_attr(&s->b, dtype_real(t.dtype), v, t.n, t.dim);
	Node im = b_full(&s->b, dtype_real(t.dtype), v.kind == ATTR_complex ? v.z.im : 0, t.n, t.dim);
	return (Parts){re, im, {0}};
}

/* The file holds pairs: a constant of them, which the caller knows under another type. */
static Parts split_constant(Split *s, Node n)
{
	Ir *ir = s->b.g->ir;
	const ConstId pairs = node_const(s->b.g, n);
	Const c = *ir_const_of(ir, pairs);
	int64_t *dim = ARENA_ARRAY(ir->ctx->arena, int64_t, c.rank + 1);
	if (c.rank)
		memcpy(dim, c.dim, c.rank * sizeof *dim);
	dim[c.rank++] = 2;
	c.dim = dim;
	c.dtype = dtype_real(c.dtype);
	c.is_param = false;
	c.view_of = pairs;
	c.hash = 0;
	return parts_of_pairs(&s->b, b_const(&s->b, ir_const(ir, c)));
}

static Parts split_convert(Split *s, Node n)
{
	Node x = node_in(s->b.g, n, 0);
	DType d = dtype_real(node_dtype(s->b.g, n));
	if (!is_complex(s->b.g, x)) {
		Node re = b_convert(&s->b, x, d);
		return (Parts){re, b_zeros_like(&s->b, re), {0}};
	}
	return (Parts){b_convert(&s->b, part(s, x)->re, d), b_convert(&s->b, part(s, x)->im, d),
		       {0}};
}

static bool adds(const Graph *g, Node n, const char *attr)
{
	const char *kind = node_str(g, n, attr);
	return strcmp(kind, "sum") == 0 || strcmp(kind, "add") == 0 || strcmp(kind, "set") == 0;
}

static Parts multiplied(Build *b, Parts x, Parts y)
{
	return (Parts){b_bin(b, OP_sub, b_bin(b, OP_mul, x.re, y.re), b_bin(b, OP_mul, x.im, y.im)),
		       b_bin(b, OP_add, b_bin(b, OP_mul, x.re, y.im), b_bin(b, OP_mul, x.im, y.re)), {0}};
}

enum { MOST_FACTORS = 64 };

/* The product over dimensions of few elements: of one after the other. */
static Parts split_prod(Split *s, Node n)
{
	Build *b = &s->b;
	Graph *g = b->g;
	uint32_t ndim, reduced = 0, rank = node_rank(g, node_in(g, n, 0));
	const Sym *dims = node_ints(g, n, "dims", &ndim);
	DType acc = dtype_real(node_attr(g, n, "acc")->dtype), d = dtype_real(node_dtype(g, n));
	int64_t extent[MAX_RANK] = {0};
	for (uint32_t k = 0; k < ndim; k++) {
		int64_t at = sym_hint(b_syms(b), dims[k]);
		reduced |= 1u << at;
		if (!sym_is_const(b_syms(b), node_dim(g, node_in(g, n, 0), (uint32_t)at), &extent[at]) || extent[at] > MOST_FACTORS)
			return (Parts){0};
	}
	Parts x = *part(s, node_in(g, n, 0));
	x = (Parts){b_convert(b, x.re, acc), b_convert(b, x.im, acc), {0}};
	for (uint32_t k = rank; k-- > 0;) {
		if (!(reduced >> k & 1))
			continue;
		Node re = b_reduce(b, REDUCE_PROD, x.re, extent[k] ? 0 : 1u << k, DT_none);
		Parts y = {re, extent[k] ? re : b_zeros_like(b, re), {0}};
		for (int64_t i = 0; i < extent[k]; i++) {
			Parts f = {b_select_dim(b, x.re, (int)k, b_int(b, i)), b_select_dim(b, x.im, (int)k, b_int(b, i)), {0}};
			y = i ? multiplied(b, y, f) : f;
		}
		x = y;
	}
	return (Parts){b_convert(b, x.re, d), b_convert(b, x.im, d), {0}};
}

/* The parts of a complex value; none where there is no rule. */
static Parts split(Split *s, Node n)
{
	Graph *g = s->b.g;
	switch (node_op(g, n)) {
	case OP_constant:
		return split_constant(s, n);
	case OP_full:
		return split_full(s, n);
	case OP_convert:
		return split_convert(s, n);
	case OP_view_complex:
		return parts_of_pairs(&s->b, node_in(g, n, 0));
	case OP_mul:
	case OP_contract:
		return product(s, n);
	case OP_reduce:
		return adds(g, n, "kind") ? each_part(s, n) : split_prod(s, n);
	case OP_scatter:
		return adds(g, n, "combine") ? each_part(s, n) : (Parts){0};
	case OP_add: case OP_sub: case OP_neg: case OP_select: case OP_broadcast: case OP_reshape:
	case OP_permute: case OP_slice: case OP_pad: case OP_concat: case OP_reverse:
	case OP_window: case OP_fold: case OP_gather: case OP_slice_at: case OP_update_slice:
	case OP_barrier:
		return each_part(s, n);
	default:
		return (Parts){0};
	}
}

/* What stands for a real value of complex operands; none where there is no rule. */
static Node replacement(Split *s, Node n)
{
	Build *b = &s->b;
	Node x = node_in(b->g, n, 0);
	Op op = node_op(b->g, n);
	if (op == OP_view_real)
		return pairs_of(b, part(s, x));
	if (op == OP_convert && node_dtype(b->g, n) == DT_bool)
		return b_bin(b, OP_bit_or, b_convert(b, part(s, x)->re, DT_bool),
			     b_convert(b, part(s, x)->im, DT_bool));
	if (op == OP_convert)
		return b_convert(b, part(s, x)->re, node_dtype(b->g, n));
	if (op == OP_eq || op == OP_ne)
		return b_bin(b, op == OP_eq ? OP_bit_and : OP_bit_or, on_part(s, n, false),
			     on_part(s, n, true));
	return (Node){0};
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

/* An operator without a rule: it reads and gives whole values. */
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

static bool visit(Split *s, Node n)
{
	Graph *g = s->b.g;
	s->b = pass_build(g, n);
	s->b.where = node_where(g, n);
	if (is_complex(g, n)) {
		s->part[n.i] = split(s, n);
		if (!part(s, n)->re.i)
			keep(s, n);
		return true;
	}
	if (!reads_complex(g, n))
		return false;
	Node new = replacement(s, n);
	if (new.i)
		pass_replace(g, n, new);
	else
		keep(s, n);
	return true;
}

/* Outputs are made of parts, an input that is one too: of its own. */
static void join_outputs(Split *s)
{
	Graph *g = s->b.g;
	for (uint32_t k = 0; k < g->output.n; k++) {
		Node n = g->output.data[k].node;
		if (!is_complex(g, n) || n.i >= s->n)
			continue;
		s->b = (Build){.g = g, .loc = node_data(g, n)->loc};
		Node pairs = pairs_of(&s->b, part(s, n));
		Node whole = b_node(&s->b, OP_view_complex, &pairs, 1, NULL, 0);
		if (node_op(g, pairs) == OP_view_real)
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

/* x becomes pairs; its readers read view_complex of it, ahead of `before`. */
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
	Node first = body->first;
	while (first.i && node_op(body, first) == OP_input)
		first = node_next(body, first);
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

/* Results of n, a tuple. */
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

/* What a node with graphs passes to them and gets from them. */
static bool pairs_of_control(Graph *g, Node n)
{
	const Schema *schema = op_schema(node_op(g, n));
	bool has_graph = false;
	for (uint32_t k = 0; k < schema->narg; k++) {
		const Attr *a = ir_attr(g->ir, node_data(g, n)->attr, k);
		if (schema->arg[k].kind != ARG_graph || a->kind != ATTR_graph)
			continue;
		has_graph = true;
		pairs_in_body(a->graph);
	}
	if (!has_graph)
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
	for (s.body = g->first; s.body.i && node_op(g, s.body) == OP_input;)
		s.body = node_next(g, s.body);
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
