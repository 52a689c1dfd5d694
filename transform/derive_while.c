/* Derivatives of loops on data. Tangents are carried beside values. Cotangents need the values of
 * every round:
 *
 *   - a loop that counts from a known number to a known limit is a scan of so many rounds, and
 *     derived as one;
 *   - one that ends at such a limit at the latest, or for which `most` is given, counts its rounds
 *     and stores what each of them kept in a stack of so many places; backwards a loop counts down
 *     from there:
 *
 *   %w = while([%h], [%c], test, body)     -> %w = while([%h, 0, zeros[N, ..]], [%c], test, body
 *                                          with
 *                                                           %stack' = update_slice(%stack, kept,
 * [%k, ..]), %k' = %k + 1) %b = while([%w.1, %ct, 0], [%w.2, %c], %k > 0, backwards at slice %k -
 * 1) */
#include <string.h>

#include "ops/rules/rules.h"
#include "transform/derive_priv.h"

typedef struct {
	Graph *g;
	Node n;
	const Graph *test, *body;
	uint32_t ninit, nconst, nin;
	const Node *in;
} While;

static While while_of(Graph *g, Node n)
{
	uint32_t first;
	While w = {.g = g,
		   .n = n,
		   .test = node_attr(g, n, "cond")->graph,
		   .body = node_attr(g, n, "body")->graph};
	w.ninit = node_args(g, n, "init", &first);
	w.nconst = node_args(g, n, "consts", &first);
	w.nin = w.ninit + w.nconst;
	Node *in = ARENA_ARRAY(g->ir->ctx->scratch, Node, w.nin);
	for (uint32_t k = 0; k < w.nin; k++)
		in[k] = node_in(g, n, k);
	w.in = in;
	return w;
}

/* ---- how many rounds ---- */

typedef struct {
	const Graph *g;
	const While *w; /* the loop whose condition or body g is; NULL: none */
	Intern met;     /* nodes that are known */
	ARRAY(Sym) value;
} KnownIntegers;

static bool known(const Graph *g, Node x, const While *w, Sym *v);
static bool known_here(KnownIntegers *s, Node x, Sym *v);

/* Whether x's dtype has v, whatever v is, so that nothing wraps around. Sizes without a bound
 * fit into 32 bits: no loop runs 2^31 rounds. */
static bool fits(const Graph *g, Node x, Sym v)
{
	DType d = node_dtype(g, x);
	uint32_t bits = 8 * dtype_size(d) - dtype_is_signed(d);
	int64_t lo, hi, end = bits < 63 ? INT64_C(1) << bits : SYM_INF;
	sym_range(graph_syms(g), v, &lo, &hi);
	bool above = lo >= 0 || (dtype_is_signed(d) &&
				 (bits >= 63 || lo >= -end || (bits == 31 && lo <= -SYM_INF)));
	return above && (bits >= 63 || hi < end || (bits >= 31 && hi >= SYM_INF));
}

static bool known_fresh(KnownIntegers *s, Node x, Sym *v)
{
	enum { MOST_OPERANDS = 4 };
	const Graph *g = s->g;
	const While *w = s->w;
	const OpInfo *info = op_info(node_op(g, x));
	Sym in[MOST_OPERANDS];
	for (uint32_t k = w ? w->ninit : 0; w && k < w->nin; k++)
		if (g->input.data[k].node.i == x.i)
			return known(w->g, w->in[k], NULL, v);
	if (!info->integer || node_nin(g, x) > MOST_OPERANDS || !dtype_is_int(node_dtype(g, x)) ||
	    node_rank(g, x))
		return false;
	for (uint32_t k = 0; k < node_nin(g, x); k++)
		TRY(known_here(s, node_in(g, x, k), &in[k]));
	*v = info->integer(g, x, in);
	return v->i;
}

static bool known_here(KnownIntegers *s, Node x, Sym *v)
{
	uint32_t id = intern_find(&s->met, &x, sizeof x);
	if (!id) {
		TRY(known_fresh(s, x, v) && fits(s->g, x, *v));
		id = intern(&s->met, &x, sizeof x, NULL);
		array_push(s->met.arena, &s->value, *v);
	}
	*v = s->value.data[id - 1];
	return true;
}

/* Sets *v to an integer that is known before anything runs, maybe as a size. w: the loop whose
 * condition or body g is; NULL: none. Returns false if x is not known. */
static bool known(const Graph *g, Node x, const While *w, Sym *v)
{
	KnownIntegers s = {.g = g, .w = w};
	intern_init(&s.met, g->ir->ctx->scratch);
	return known_here(&s, x, v);
}

/* Returns what x is converted from; none if x is no conversion. */
static Node converted_from(const Graph *g, Node x)
{
	return node_op(g, x) == OP_convert ? node_in(g, x, 0) : (Node){0};
}

/* Returns the number of the carry that x is; UINT32_MAX if x is none. */
static uint32_t carry_of(const Graph *g, uint32_t ninit, Node x)
{
	for (Node from; (from = converted_from(g, x)).i && dtype_is_int(node_dtype(g, from));)
		x = from;
	for (uint32_t k = 0; k < ninit; k++)
		if (g->input.data[k].node.i == x.i)
			return k;
	return UINT32_MAX;
}

/* Whether x, and what x is converted from on the way to a carry, has both values. */
static bool holds(const Graph *g, Node x, Sym from, Sym to)
{
	TRY(fits(g, x, from) && fits(g, x, to));
	Node before = converted_from(g, x);
	return !before.i || holds(g, before, from, to);
}

/* Sets *step to how much carry k grows in each round, and *x to what that is added to. Returns
 * false if the carry does not count. */
static bool step_of(const While *w, uint32_t k, int64_t *step, Node *x)
{
	const Graph *g = w->body;
	Node next = g->output.data[k].node;
	Op op = node_op(g, next);
	Sym v;
	bool down = op == OP_sub;
	if (!down && op != OP_add)
		return false;
	bool first = carry_of(g, w->ninit, node_in(g, next, 0)) == k;
	if (!first && (down || carry_of(g, w->ninit, node_in(g, next, 1)) != k))
		return false;
	if (!known(g, node_in(g, next, first), w, &v) || !sym_is_const(graph_syms(g), v, step))
		return false;
	*step = down ? -*step : *step;
	*x = node_in(g, next, !first);
	return true;
}

/* How a comparison limits its first operand: it may grow (up) or fall; closed: to the limit
 * itself. */
typedef struct {
	Op op;
	bool up, closed;
} LimitOrder;

static const LimitOrder orders[] = {
	{OP_lt, true, false}, {OP_le, true, true}, {OP_gt, false, false}, {OP_ge, false, true}};

/* Rounds for which a carry x that steps towards the limit is on its side of it, from 0 on. */
static bool rounds_of(const While *w, bool up, bool closed, Node x, Node limit, Sym *rounds)
{
	SymTab *syms = graph_syms(w->g);
	uint32_t k = carry_of(w->test, w->ninit, x);
	int64_t step;
	Sym from, to;
	Node before;
	if (k == UINT32_MAX || !known(w->test, limit, w, &to) ||
	    !known(w->g, w->in[k], NULL, &from) || !step_of(w, k, &step, &before))
		return false;
	if (step == 0 || (step > 0) != up)
		return false;
	Sym way = up ? sym_sub(syms, to, from) : sym_sub(syms, from, to);
	if (closed)
		way = sym_addi(syms, way, 1);
	*rounds = sym_ceildiv(syms, way, sym_int(syms, up ? step : -step));
	if (sym_le(syms, sym_int(syms, 0), *rounds) != YES)
		*rounds = sym_max(syms, *rounds, sym_int(syms, 0));
	Sym last = sym_add(syms, from, sym_muli(syms, *rounds, step));
	return holds(w->test, x, from, last) && holds(w->body, before, from, last);
}

/* Sets *rounds to the least number of rounds after which a condition, or a part of it that must
 * hold, does not. Sets *exact to false if that is a part. Returns false if the number is not
 * known. */
static bool rounds_until(const While *w, Node more, Sym *rounds, bool *exact)
{
	const Graph *g = w->test;
	Op op = node_op(g, more);
	if (op == OP_bit_and || op == OP_mul) {
		Sym other;
		bool first = rounds_until(w, node_in(g, more, 0), rounds, exact),
		     second = rounds_until(w, node_in(g, more, 1), &other, exact);
		*exact = false;
		if (second)
			*rounds = first ? sym_min(graph_syms(g), *rounds, other) : other;
		return first || second;
	}
	if (node_nin(g, more) != 2)
		return false;
	Node x = node_in(g, more, 0), y = node_in(g, more, 1);
	*exact = true;
	for (size_t k = 0; k < sizeof orders / sizeof *orders; k++) {
		const LimitOrder *o = &orders[k];
		if (o->op == op)
			return rounds_of(w, o->up, o->closed, x, y, rounds) ||
			       rounds_of(w, !o->up, o->closed, y, x, rounds);
	}
	return false;
}

/* What is known of the number of rounds. */
/* GIVEN: by `most`, so to be checked */
typedef enum { ROUNDS_UNKNOWN, ROUNDS_EXACT, ROUNDS_MOST, ROUNDS_GIVEN } RoundsKind;

static Sym most_of(const While *w)
{
	const Attr *most = node_attr(w->g, w->n, "most");
	return most->kind == ATTR_int ? most->s : (Sym){0};
}

static RoundsKind known_rounds(const While *w, Sym *rounds)
{
	bool exact = false;
	if (rounds_until(w, w->test->output.data[0].node, rounds, &exact))
		return exact ? ROUNDS_EXACT : ROUNDS_MOST;
	*rounds = most_of(w);
	return rounds->i ? ROUNDS_GIVEN : ROUNDS_UNKNOWN;
}

/* ---- a loop in the making: operands, and the inputs of both graphs, in step ---- */

typedef struct {
	Build *b;
	Graph *test, *body;
	Build in_test, in_body;
	uint32_t n[2], nin; /* init, consts */
	Node *in, *of_test, *of_body;
} Making;

static Making making(Build *b, uint32_t most)
{
	Making m = {.b = b,
		    .test = graph_beside(b->g, "test"),
		    .body = graph_beside(b->g, "body"),
		    .in = ZEROED(b->g, Node, most),
		    .of_test = ZEROED(b->g, Node, most),
		    .of_body = ZEROED(b->g, Node, most)};
	m.in_test = (Build){.g = m.test, .loc = b->loc, .where = b->where};
	m.in_body = (Build){.g = m.body, .loc = b->loc, .where = b->where};
	return m;
}

/* Adds the next operand, and returns its place. */
static uint32_t add_operand(Making *m, bool constant, Node x, const char *name)
{
	TypeId type = node_type_id(m->b->g, x);
	uint32_t k = m->nin++;
	m->n[constant]++;
	m->in[k] = x;
	m->of_test[k] = graph_add_input(m->test, name, INPUT_USER, type);
	m->of_body[k] = graph_add_input(m->body, name, INPUT_USER, type);
	return k;
}

static Node finish(Making *m, Sym most)
{
	Ir *ir = m->b->g->ir;
	Attr attr[] = {attr_int(ir, m->n[0]), attr_int(ir, m->n[1]), attr_graph(m->test),
		       attr_graph(m->body), most.i ? attr_sym(most) : attr_none()};
	return b_node(m->b, OP_while, m->in, m->nin, attr, 5);
}

static const char *input_name(const While *w, uint32_t k)
{
	return w->body->input.data[k].name;
}

/* Gives the test the condition of w; place[k]: the input that stands for input k of w. */
static void inline_test(Making *m, const While *w, const uint32_t *place)
{
	Node *arg = ZEROED(w->g, Node, w->nin), more;
	for (uint32_t k = 0; k < w->nin; k++)
		arg[k] = m->of_test[place[k]];
	graph_inline(m->test, (Node){0}, w->test, arg, &more);
	graph_add_output(m->test, "more", more, -1);
}

/* ---- tangents ---- */

bool while_jvp(Forward *f, Build *b, Node n, const Node *t, Node *ty)
{
	While w = while_of(b->g, n);
	bool *active = ZEROED(b->g, bool, w.nin);
	Making m = making(b, 2 * w.nin);
	uint32_t *place = ZEROED(b->g, uint32_t, w.nin),
		 *of_tangent = ZEROED(b->g, uint32_t, w.nin);
	Node *arg = ZEROED(b->g, Node, w.nin), *ta = ZEROED(b->g, Node, w.nin),
	     *y = ZEROED(b->g, Node, w.ninit);
	Node *tangent = ZEROED(b->g, Node, w.ninit);
	for (uint32_t k = 0; k < w.nin; k++)
		active[k] = t[k].i;
	body_carries(w.body, w.ninit, active, ZEROED(w.g, bool, w.ninit));
	for (uint32_t part = 0; part < 2; part++) {
		uint32_t first = part ? w.ninit : 0, end = part ? w.nin : w.ninit;
		for (uint32_t k = first; k < end; k++)
			place[k] = add_operand(&m, part, w.in[k], input_name(&w, k));
		for (uint32_t k = first; k < end; k++)
			if (active[k])
				of_tangent[k] = add_operand(
					&m, part, t[k].i ? t[k] : b_zeros_like(b, w.in[k]), "t");
	}
	for (uint32_t k = 0; k < w.nin; k++) {
		arg[k] = m.of_body[place[k]];
		ta[k] = active[k] ? m.of_body[of_tangent[k]] : (Node){0};
	}
	inline_test(&m, &w, place);
	TRY(body_tangents(w.body, &m.in_body, arg, ta, y, tangent));
	for (uint32_t k = 0; k < w.ninit; k++)
		graph_add_output(m.body, input_name(&w, k), y[k], -1);
	for (uint32_t k = 0; k < w.ninit; k++)
		if (active[k])
			graph_add_output(m.body, "t",
					 tangent[k].i
						 ? tangent[k]
						 : b_zeros(&m.in_body, node_type_id(m.body, y[k])),
					 -1);
	Node by = finish(&m, most_of(&w));
	for (uint32_t k = 0; k < w.ninit; k++)
		ty[k] = active[k] && by.i ? b_get(b, by, of_tangent[k]) : (Node){0};
	array_push(b->g->ir->ctx->scratch, &f->replaced, ((Replaced){n, by, w.ninit, 0}));
	return by.i;
}

/* ---- cotangents ---- */

/* Replaces the loop by a scan of so many rounds, and computes the cotangents of its operands. */
static bool counted(Build *b, const While *w, Sym rounds, const Node *ct, const bool *want, Node *g)
{
	Ir *ir = b->g->ir;
	Build before = {b->g, w->n, node_data(b->g, w->n)->loc, node_near(b->g, w->n)};
	Attr attr[] = {attr_int(ir, w->ninit),           attr_int(ir, 0),  attr_int(ir, w->nconst),
		       attr_graph(graph_clone(w->body)), attr_sym(rounds), attr_bool(false)};
	Node scan = b_node(&before, OP_scan, w->in, w->nin, attr, 6);
	if (!scan.i)
		return false;
	replace_tuple(b->g, w->n, scan);
	return scan_vjp(b, scan, ct, want, g);
}

/* Sets start[] to where row `at` of a stack begins: `at`, then zeros. */
static void row_start(Build *b, Node at, uint32_t rank, Node *start)
{
	start[0] = at;
	for (uint32_t k = 1; k < rank; k++)
		start[k] = b_scalar(b, DT_i64, 0);
}

static Node push_row(Build *b, Node stack, Node x, Node at)
{
	Node start[MAX_RANK], row = b_unsqueeze(b, x, 0);
	row_start(b, at, node_rank(b->g, stack), start);
	return b_update_slice(b, stack, row, start);
}

static Node row_at(Build *b, Node stack, Node at)
{
	Node in[1 + MAX_RANK] = {stack};
	Type t = *node_type(b->g, stack);
	Sym dim[MAX_RANK];
	memcpy(dim, t.dim, t.n * sizeof *dim);
	dim[0] = b_int(b, 1);
	row_start(b, at, t.n, in + 1);
	Node row = b_node(b, OP_slice_at, in, 1 + t.n,
			  (Attr[]){attr_none(), attr_int(b->g->ir, t.n), attr_ints(dim, t.n)}, 3);
	return row.i ? b_reshape(b, row, t.n - 1, dim + 1) : row;
}

/* Replaces the loop by one that counts its rounds and keeps what they do. Sets *count to their
 * number, kept[] to the stacks. */
static bool keep_rounds(While *w, Linearized *l, Sym rounds, Node *count, Node *kept)
{
	Graph *g = w->g, *forward = body_forward(l, UINT32_MAX);
	Build before = {g, w->n, node_data(g, w->n)->loc, node_near(g, w->n)};
	Making m = making(&before, w->nin + l->nkept + 1);
	uint32_t *place = ZEROED(g, uint32_t, w->nin), *stack = ZEROED(g, uint32_t, l->nkept);
	for (uint32_t k = 0; k < w->ninit; k++)
		place[k] = add_operand(&m, false, w->in[k], input_name(w, k));
	uint32_t counter = add_operand(&m, false, b_scalar(&before, DT_i64, 0), "round");
	for (uint32_t k = 0; k < l->nkept; k++) {
		Type t = *node_type(l->g, l->kept[k]);
		Sym dim[MAX_RANK + 1] = {rounds};
		if (t.n == MAX_RANK)
			return ctx_error(
				g->ir->ctx, before.where,
				"what a round computes has too many dimensions to be kept for all");
		memcpy(dim + 1, t.dim, t.n * sizeof *dim);
		stack[k] =
			add_operand(&m, false, b_full(&before, t.dtype, 0, t.n + 1, dim), "kept");
	}
	for (uint32_t k = w->ninit; k < w->nin; k++)
		place[k] = add_operand(&m, true, w->in[k], input_name(w, k));
	Node *arg = ZEROED(g, Node, w->nin), *out = ZEROED(g, Node, forward->output.n);
	for (uint32_t k = 0; k < w->nin; k++)
		arg[k] = m.of_body[place[k]];
	inline_test(&m, w, place);
	graph_inline(m.body, (Node){0}, forward, arg, out);
	for (uint32_t k = 0; k < w->ninit; k++)
		graph_add_output(m.body, input_name(w, k), out[k], -1);
	Node round = m.of_body[counter];
	graph_add_output(m.body, "round", b_bin_scalar(&m.in_body, OP_add, round, 1), -1);
	for (uint32_t k = 0; k < l->nkept; k++)
		graph_add_output(
			m.body, "kept",
			push_row(&m.in_body, m.of_body[stack[k]], out[l->kept_at[k]], round), -1);
	Node by = finish(&m, rounds);
	TRY(by.i);
	replace_tuple(g, w->n, by);
	Build after = {g, node_next(g, by), before.loc, before.where};
	*count = b_get(&after, by, counter);
	for (uint32_t k = 0; k < l->nkept; k++)
		kept[k] = b_get(&after, by, stack[k]);
	return true;
}

/* Adds the check that there are no more rounds than places. */
static void check_count(Build *b, const char *loop, Node count, Sym rounds)
{
	Node over = b_bin(b, OP_gt, count, b_from_size(b, rounds));
	Node code = b_select(b, over, count, b_scalar(b, DT_i64, 0));
	const char *text = arena_printf(b->g->ir->ctx->scratch,
					"{place}the loop %s has {code} rounds, more than the %s "
					"that its bound for derivatives says",
					loop, sym_str(graph_syms(b->g), rounds));
	Attr attr[] = {attr_none(), attr_str(b->g->ir, text)};
	b_node(b, OP_assert_zero, &code, 1, attr, 2);
}

/* Computes the cotangents of operands from the last round back to the first. */
static bool rounds_backwards(Build *b, const While *w, Linearized *l, const bool *has_ct,
			     const Node *ct, Node count, const Node *kept, Sym rounds, Node *g)
{
	Making m = making(b, 2 * w->nin + l->nkept + 1);
	uint32_t *of_ct = ZEROED(b->g, uint32_t, w->ninit),
		 *of_sum = ZEROED(b->g, uint32_t, w->nin);
	uint32_t *stack = ZEROED(b->g, uint32_t, l->nkept),
		 *of_const = ZEROED(b->g, uint32_t, w->nin);
	uint32_t counter = add_operand(&m, false, count, "round");
	for (uint32_t k = 0; k < w->ninit; k++)
		if (has_ct[k])
			of_ct[k] = add_operand(&m, false,
					       ct[k].i ? ct[k] : b_zeros_like(b, w->in[k]), "ct");
	for (uint32_t k = w->ninit; k < w->nin; k++)
		if (l->grad[k].i)
			of_sum[k] = add_operand(&m, false, b_zeros_like(b, w->in[k]), "sum");
	for (uint32_t k = 0; k < l->nkept; k++)
		stack[k] = add_operand(&m, true, kept[k], "kept");
	for (uint32_t k = w->ninit; k < w->nin; k++)
		if (l->reads[k])
			of_const[k] = add_operand(&m, true, w->in[k], input_name(w, k));
	graph_add_output(m.test, "more", b_bin_scalar(&m.in_test, OP_gt, m.of_test[counter], 0),
			 -1);
	Build *in_body = &m.in_body;
	Node round = b_bin_scalar(in_body, OP_sub, m.of_body[counter], 1);
	Node *row = ZEROED(b->g, Node, l->nkept), *in = ZEROED(b->g, Node, w->nin),
	     *cts = ZEROED(b->g, Node, w->ninit);
	Node *grad = ZEROED(b->g, Node, w->nin);
	for (uint32_t k = 0; k < l->nkept; k++)
		row[k] = row_at(in_body, m.of_body[stack[k]], round);
	for (uint32_t k = w->ninit; k < w->nin; k++)
		in[k] = l->reads[k] ? m.of_body[of_const[k]] : in[k];
	for (uint32_t k = 0; k < w->ninit; k++)
		cts[k] = has_ct[k] ? m.of_body[of_ct[k]] : cts[k];
	body_backward(l, in_body, in, cts, row, grad);
	graph_add_output(m.body, "round", round, -1);
	for (uint32_t k = 0; k < w->ninit; k++)
		if (has_ct[k])
			graph_add_output(m.body, "ct",
					 grad[k].i ? grad[k]
						   : b_zeros(in_body, node_type_id(b->g, w->in[k])),
					 -1);
	for (uint32_t k = w->ninit; k < w->nin; k++)
		if (l->grad[k].i)
			graph_add_output(m.body, "sum",
					 b_bin(in_body, OP_add, m.of_body[of_sum[k]], grad[k]), -1);
	Node back = finish(&m, rounds);
	for (uint32_t k = 0; k < w->nin; k++) {
		uint32_t at = k < w->ninit ? of_ct[k] : of_sum[k];
		g[k] = back.i && at ? b_get(b, back, at) : (Node){0};
	}
	return back.i;
}

bool while_vjp(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	While w = while_of(b->g, n);
	Sym rounds;
	RoundsKind kind = known_rounds(&w, &rounds);
	bool *active = ZEROED(b->g, bool, w.nin), *has_ct = ZEROED(b->g, bool, w.ninit),
	     *read = ZEROED(b->g, bool, w.nin);
	memset(g, 0, w.nin * sizeof *g);
	if (kind == ROUNDS_UNKNOWN)
		return ctx_error(
			b->g->ir->ctx, node_near(b->g, n),
			"the number of rounds of this loop is not known before it runs, so what "
			"they keep for derivatives has no place: let it end at a known limit too "
			"(a counter that starts at "
			"a known number), or say how many it has at most: --loop-bound %s=N, "
			"weft_bound_loop, most= of weft.while_loop in Python, `most` in the "
			"text form",
			graph_name(b->g, n));
	if (kind == ROUNDS_EXACT)
		return counted(b, &w, rounds, ct, want, g);
	bool *step = ZEROED(b->g, bool, w.nin);
	for (uint32_t k = 0; k < w.nin; k++) {
		active[k] = want[k];
		step[k] = k < w.ninit;
	}
	body_carries(w.body, w.ninit, active, ZEROED(w.g, bool, w.ninit));
	for (uint32_t k = 0; k < w.ninit; k++)
		has_ct[k] = active[k] && ct[k].i;
	for (bool more = true; more;) {
		more = false;
		body_readers(w.body, has_ct, read);
		for (uint32_t k = 0; k < w.ninit; k++)
			if (read[k] && active[k] && !has_ct[k])
				has_ct[k] = more = true;
	}
	Linearized l;
	TRY(body_linearize(w.body, b, active, has_ct, step, &l));
	for (uint32_t k = 0; k < w.ninit; k++)
		if (l.reads[k])
			l.kept[l.nkept++] = l.in[k];
	const char *name = graph_name(b->g, n);
	Node count, *kept = ZEROED(b->g, Node, l.nkept);
	/* the body of a loop without rounds has a place to write to, too */
	Sym places = sym_is(graph_syms(b->g), rounds, 0) ? b_int(b, 1) : rounds;
	TRY(keep_rounds(&w, &l, places, &count, kept));
	if (kind == ROUNDS_GIVEN)
		check_count(b, name, count, rounds);
	return rounds_backwards(b, &w, &l, has_ct, ct, count, kept, places, g);
}
