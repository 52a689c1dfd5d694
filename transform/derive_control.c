/* Derivatives of loops and branches: tangents are carried along with values; cotangents go through
 * the same rounds backwards, with what each round kept.
 *
 *   %r = scan([%h], [%xs], [%w], body)           %r = scan([%h], [%xs], [%w], body with kept values
 *                                                among its ys)
 *   %r.0: %ct                              -> %b = scan([%ct, 0], [%xs, kept], [%w], backwards,
 *                                          reversed)
 *                                                cotangents: of %h %b.0, of %w (the sum of all
 * rounds) %b.1, of %xs %b.2
 *
 *   %r = cond(%p, [%x], yes, no)                 %r = cond(%p, [%x], yes, no with kept values of
 *                                                either among the results)
 *                                          ->    %b = cond(%p, [%x, kept, %ct], yes backwards, no
 *                                                backwards)
 *
 * A round that was not executed and a branch that was not taken keep zeros. Carries are
 * differentiated where a cotangent can reach them, which takes as many sweeps over the body as
 * there are carries at most. */
#include <string.h>

#include "ops/rules/rules.h"
#include "transform/derive_priv.h"

/* ---- scan ---- */

typedef struct {
	Graph *g;
	Node n;
	const Graph *body;
	uint32_t ninit, nxs, nconst, nin, nout;
	const Node *in; /* operands: init, xs, consts */
	Sym length;
	bool reverse;
} Scan;

static Scan scan_of(Graph *g, Node n)
{
	uint32_t first;
	Scan s = {.g = g,
		  .n = n,
		  .body = node_attr(g, n, "body")->graph,
		  .length = node_sym(g, n, "length"),
		  .reverse = node_bool(g, n, "reverse")};
	s.ninit = node_args(g, n, "init", &first);
	s.nxs = node_args(g, n, "xs", &first);
	s.nconst = node_args(g, n, "consts", &first);
	s.nin = node_nin(g, n);
	s.nout = s.body->output.n;
	Node *in = ARENA_ARRAY(g->ir->ctx->scratch, Node, s.nin);
	for (uint32_t k = 0; k < s.nin; k++)
		in[k] = node_in(g, n, k);
	s.in = in;
	return s;
}

/* A scan in the making: operands and the body's inputs, in step. */
typedef struct {
	Build *b;
	Graph *body;
	uint32_t n[3]; /* init, xs, consts */
	uint32_t nin;
	Node *in;
} Making;

static Making making(Build *b, const char *name, uint32_t most)
{
	return (Making){.b = b, .body = graph_beside(b->g, name), .in = ZEROED(b->g, Node, most)};
}

/* Adds the next operand, of the same list as the one before or a later one. Returns the body's
 * input for it. */
static Node add_operand(Making *m, uint32_t list, Node x, const char *name)
{
	Type t = *node_type(m->b->g, x);
	m->n[list]++;
	m->in[m->nin++] = x;
	bool sliced = list == 1;
	return graph_add_input(m->body, name, INPUT_USER,
			       ir_type(m->body->ir, t.dtype, t.n - sliced, t.dim + sliced));
}

static Node finish_scan(Making *m, Sym length, bool reverse)
{
	Ir *ir = m->body->ir;
	Attr attr[] = {attr_int(ir, m->n[0]), attr_int(ir, m->n[1]), attr_int(ir, m->n[2]),
		       attr_graph(m->body),   attr_sym(length),      attr_bool(reverse)};
	return b_node(m->b, OP_scan, m->in, m->nin, attr, 6);
}

static const char *input_name(const Scan *s, uint32_t k)
{
	return s->body->input.data[k].name;
}

static uint32_t list_of(const Scan *s, uint32_t k)
{
	return k < s->ninit ? 0 : k < s->ninit + s->nxs ? 1 : 2;
}

/* Adds to out[] the results for which a later round needs a cotangent. */
static void spread_cotangents(const Scan *s, const bool *active, bool *out)
{
	bool *read = ZEROED(s->g, bool, s->nin);
	for (bool more = true; more;) {
		more = false;
		body_readers(s->body, out, read);
		for (uint32_t k = 0; k < s->ninit; k++)
			if (read[k] && active[k] && !out[k])
				out[k] = more = true;
	}
}

bool scan_jvp(Forward *f, Build *b, Node n, const Node *t, Node *ty)
{
	Scan s = scan_of(b->g, n);
	bool *in = ZEROED(b->g, bool, s.nin), *out = ZEROED(b->g, bool, s.nout);
	Making m = making(b, s.body->name, 2 * s.nin);
	Build inner = {.g = m.body, .loc = b->loc, .where = b->where};
	Node *arg = ZEROED(b->g, Node, s.nin), *ta = ZEROED(b->g, Node, s.nin),
	     *y = ZEROED(b->g, Node, s.nout);
	Node *tangent = ZEROED(b->g, Node, s.nout);
	for (uint32_t k = 0; k < s.nin; k++)
		in[k] = t[k].i;
	body_carries(s.body, s.ninit, in, out);
	for (uint32_t list = 0, k = 0; list < 3; list++) {
		uint32_t first = k;
		for (; k < s.nin && list_of(&s, k) == list; k++)
			arg[k] = add_operand(&m, list, s.in[k], input_name(&s, k));
		for (uint32_t j = first; j < k; j++)
			if (in[j])
				ta[j] = add_operand(&m, list,
						    t[j].i ? t[j] : b_zeros_like(b, s.in[j]), "t");
	}
	TRY(body_tangents(s.body, &inner, arg, ta, y, tangent));
	uint32_t at = 0, *place = ZEROED(b->g, uint32_t, s.nout), shift = 0;
	for (uint32_t part = 0; part < 2; part++) { /* carries, ys */
		uint32_t first = part ? s.ninit : 0, end = part ? s.nout : s.ninit;
		for (uint32_t k = first; k < end; k++, at++)
			graph_add_output(m.body, s.body->output.data[k].name, y[k], -1);
		for (uint32_t k = first; k < end; k++) {
			if (!out[k])
				continue;
			place[k] = at++;
			shift += !part;
			graph_add_output(m.body, "t",
					 tangent[k].i ? tangent[k]
						      : b_zeros(&inner, node_type_id(m.body, y[k])),
					 -1);
		}
	}
	Node by = finish_scan(&m, s.length, s.reverse);
	for (uint32_t k = 0; k < s.nout; k++)
		ty[k] = out[k] && by.i ? b_get(b, by, place[k]) : (Node){0};
	array_push(b->g->ir->ctx->scratch, &f->replaced, ((Replaced){n, by, s.ninit, shift}));
	return by.i;
}

/* Replaces the scan by the same scan with what is kept among its results. Sets kept[] to all
 * rounds of a kept value, or to an operand that is the same in all. */
static bool keep_rounds(const Scan *s, Linearized *l, Node *kept)
{
	Graph *g = s->g;
	Graph *body = body_forward(l, s->ninit);
	Node n = s->n;
	if (body->output.n > s->nout) {
		Ir *ir = g->ir;
		Build b = {g, n, node_data(g, n)->loc, node_near(g, n)};
		Attr attr[] = {attr_int(ir, s->ninit),  attr_int(ir, s->nxs),
			       attr_int(ir, s->nconst), attr_graph(body),
			       attr_sym(s->length),     attr_bool(s->reverse)};
		TRY((n = b_node(&b, OP_scan, s->in, s->nin, attr, 6)).i);
		replace_tuple(g, s->n, n);
	}
	Build after = {g, node_next(g, n), node_data(g, n)->loc, node_near(g, n)};
	for (uint32_t k = 0; k < l->nkept; k++)
		kept[k] = b_get(&after, n, l->kept_at[k]);
	return true;
}

/* Keeps the carries that are read backwards, as if the round had computed them. */
static void keep_carries(Linearized *l, uint32_t ninit)
{
	for (uint32_t k = 0; k < ninit; k++)
		if (l->reads[k])
			l->kept[l->nkept++] = l->in[k];
}

/* What goes through the rounds backwards: cotangents of carries, sums of those of constants, by
 * result of the new scan. */
typedef struct {
	const Scan *s;
	Linearized *l;
	const bool *has_ct, *active;
	const Node *ct, *kept;
} Backwards;

static bool scan_backwards(Build *b, const Backwards *w, Node *g)
{
	const Scan *s = w->s;
	Linearized *l = w->l;
	uint32_t most = 2 * s->nin + s->nout + l->nkept, nresult = 0;
	Making m = making(b, s->body->name, most);
	Node *in = ZEROED(b->g, Node, s->nin), *ct = ZEROED(b->g, Node, s->nout),
	     *kept = ZEROED(b->g, Node, l->nkept);
	Node *sum = ZEROED(b->g, Node, s->nin), *grad = ZEROED(b->g, Node, s->nin);
	uint32_t first_const = s->ninit + s->nxs, *place = ZEROED(b->g, uint32_t, s->nin);
	for (uint32_t k = 0; k < s->ninit; k++)
		if (w->has_ct[k])
			ct[k] = add_operand(
				&m, 0, w->ct[k].i ? w->ct[k] : b_zeros_like(b, s->in[k]), "ct");
	for (uint32_t k = first_const; k < s->nin; k++)
		if (l->grad[k].i)
			sum[k] = add_operand(&m, 0, b_zeros_like(b, s->in[k]), "sum");
	for (uint32_t k = s->ninit; k < s->nout; k++)
		if (w->has_ct[k])
			ct[k] = add_operand(&m, 1, w->ct[k], "ct");
	for (uint32_t k = s->ninit; k < first_const; k++)
		if (l->reads[k])
			in[k] = add_operand(&m, 1, s->in[k], input_name(s, k));
	for (uint32_t k = 0; k < l->nkept; k++)
		kept[k] = add_operand(&m, 1, w->kept[k], "kept");
	for (uint32_t k = first_const; k < s->nin; k++)
		if (l->reads[k])
			in[k] = add_operand(&m, 2, s->in[k], input_name(s, k));
	Build inner = {.g = m.body, .loc = b->loc, .where = b->where};
	body_backward(l, &inner, in, ct, kept, grad);
	for (uint32_t list = 0; list < 3; list += 2) /* carries: of init, of consts; then ys: of
	                                                xs */
		for (uint32_t k = 0; k < s->nin; k++) {
			bool has = list_of(s, k) == list && (list ? sum[k].i != 0 : w->has_ct[k]);
			if (!has)
				continue;
			place[k] = ++nresult;
			Node zero =
				grad[k].i ? grad[k] : b_zeros(&inner, node_type_id(b->g, s->in[k]));
			graph_add_output(m.body, "g",
					 list ? b_bin(&inner, OP_add, sum[k], grad[k]) : zero, -1);
		}
	for (uint32_t k = s->ninit; k < first_const; k++)
		if (grad[k].i) {
			place[k] = ++nresult;
			graph_add_output(m.body, "g", grad[k], -1);
		}
	Node back = finish_scan(&m, s->length, !s->reverse);
	for (uint32_t k = 0; k < s->nin; k++)
		g[k] = back.i && place[k] && w->active[k] ? b_get(b, back, place[k] - 1)
							  : (Node){0};
	return back.i;
}

bool scan_vjp(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	Scan s = scan_of(b->g, n);
	bool *active = ZEROED(b->g, bool, s.nin), *out = ZEROED(b->g, bool, s.nout),
	     *has_ct = ZEROED(b->g, bool, s.nout);
	bool *step = ZEROED(b->g, bool, s.nin);
	memset(g, 0, s.nin * sizeof *g);
	for (uint32_t k = 0; k < s.nin; k++) {
		active[k] = want[k];
		step[k] = list_of(&s, k) < 2;
	}
	body_carries(s.body, s.ninit, active, out);
	for (uint32_t k = 0; k < s.nout; k++)
		has_ct[k] = out[k] && ct[k].i;
	spread_cotangents(&s, active, has_ct);
	Linearized l;
	Build inner = {.loc = b->loc, .where = b->where};
	TRY(body_linearize(s.body, &inner, active, has_ct, step, &l));
	Backwards w = {.s = &s, .l = &l, .has_ct = has_ct, .active = want, .ct = ct};
	keep_carries(&l, s.ninit);
	Node *kept = ZEROED(b->g, Node, l.nkept);
	TRY(keep_rounds(&s, &l, kept));
	w.kept = kept;
	return scan_backwards(b, &w, g);
}

/* ---- cond ---- */

typedef struct {
	Graph *g;
	Node n, pred;
	const Graph *body[2]; /* yes, no */
	uint32_t nin, nout;   /* of the bodies */
	const Node *in;
} Cond;

static Cond cond_of(Graph *g, Node n)
{
	Cond c = {.g = g, .n = n, .pred = node_in(g, n, 0), .nin = node_nin(g, n) - 1};
	c.body[0] = node_attr(g, n, "yes")->graph;
	c.body[1] = node_attr(g, n, "no")->graph;
	c.nout = node_nresult(g, n);
	Node *in = ARENA_ARRAY(g->ir->ctx->scratch, Node, c.nin);
	for (uint32_t k = 0; k < c.nin; k++)
		in[k] = node_in(g, n, 1 + k);
	c.in = in;
	return c;
}

static Node make_cond(Build *b, Node pred, const Node *xs, uint32_t n, Graph *yes, Graph *no)
{
	Node *in = ZEROED(b->g, Node, n + 1);
	in[0] = pred;
	memcpy(in + 1, xs, n * sizeof *in);
	Attr attr[] = {attr_none(), attr_int(b->g->ir, n), attr_graph(yes), attr_graph(no)};
	return b_node(b, OP_cond, in, n + 1, attr, 4);
}

static Node input_like(Graph *body, const char *name, const Graph *g, Node x)
{
	return graph_add_input(body, name, INPUT_USER, node_type_id(g, x));
}

/* Returns a branch that gives its results, then the tangents of those with out[k]. NULL after
 * ctx_error. */
static Graph *branch_tangents(Build *b, const Cond *c, const Graph *body, const Node *t,
			      const bool *out)
{
	Graph *to = graph_beside(b->g, body->name);
	Build inner = {.g = to, .loc = b->loc, .where = b->where};
	Node *arg = ZEROED(b->g, Node, c->nin), *ta = ZEROED(b->g, Node, c->nin);
	Node *y = ZEROED(b->g, Node, c->nout), *ty = ZEROED(b->g, Node, c->nout);
	for (uint32_t k = 0; k < c->nin; k++)
		arg[k] = input_like(to, body->input.data[k].name, b->g, c->in[k]);
	for (uint32_t k = 0; k < c->nin; k++)
		if (t[k].i)
			ta[k] = input_like(to, "t", b->g, c->in[k]);
	if (!body_tangents(body, &inner, arg, ta, y, ty))
		return NULL;
	for (uint32_t k = 0; k < c->nout; k++)
		graph_add_output(to, body->output.data[k].name, y[k], -1);
	for (uint32_t k = 0; k < c->nout; k++)
		if (out[k])
			graph_add_output(to, "t",
					 ty[k].i ? ty[k] : b_zeros(&inner, node_type_id(to, y[k])),
					 -1);
	return to;
}

static void cond_activity(const Cond *c, const bool *in, bool *out)
{
	bool *other = ZEROED(c->g, bool, c->nout);
	body_activity(c->body[0], in, out);
	body_activity(c->body[1], in, other);
	for (uint32_t k = 0; k < c->nout; k++)
		out[k] |= other[k];
}

bool cond_jvp(Forward *f, Build *b, Node n, const Node *t, Node *ty)
{
	Cond c = cond_of(b->g, n);
	bool *in = ZEROED(b->g, bool, c.nin), *out = ZEROED(b->g, bool, c.nout);
	Node *xs = ZEROED(b->g, Node, 2 * c.nin);
	uint32_t nxs = c.nin, at = c.nout;
	memcpy(xs, c.in, c.nin * sizeof *xs);
	for (uint32_t k = 0; k < c.nin; k++) {
		in[k] = t[1 + k].i;
		if (in[k])
			xs[nxs++] = t[1 + k];
	}
	cond_activity(&c, in, out);
	Graph *yes = branch_tangents(b, &c, c.body[0], t + 1, out),
	      *no = yes ? branch_tangents(b, &c, c.body[1], t + 1, out) : NULL;
	Node by = no ? make_cond(b, c.pred, xs, nxs, yes, no) : (Node){0};
	for (uint32_t k = 0; k < c.nout; k++)
		ty[k] = by.i && out[k] ? b_get(b, by, at++) : (Node){0};
	array_push(b->g->ir->ctx->scratch, &f->replaced, ((Replaced){n, by, c.nout, 0}));
	return by.i;
}

/* What either branch keeps, in places that they share by type. */
typedef struct {
	uint32_t n;
	TypeId *type;
	uint32_t *of[2]; /* by kept value of a branch: its place */
} KeptPlaces;

static KeptPlaces share_places(const Cond *c, const Linearized *l)
{
	KeptPlaces p = {.type = ZEROED(c->g, TypeId, l[0].nkept + l[1].nkept)};
	for (uint32_t k = 0; k < 2; k++) {
		p.of[k] = ZEROED(c->g, uint32_t, l[k].nkept);
		bool *taken = ZEROED(c->g, bool, p.n + l[k].nkept);
		for (uint32_t j = 0; j < l[k].nkept; j++) {
			TypeId type = node_type_id(l[k].g, l[k].kept[j]);
			uint32_t at = 0;
			while (at < p.n && (taken[at] || p.type[at].i != type.i))
				at++;
			p.of[k][j] = at;
			p.type[at] = type;
			taken[at] = true;
			p.n += at == p.n;
		}
	}
	return p;
}

/* Returns a branch with the values of all places behind its results. */
static Graph *branch_keeping(const Cond *c, Linearized *l, const KeptPlaces *p, const uint32_t *of)
{
	Graph *g = body_forward(l, UINT32_MAX);
	Build b = {.g = g};
	Node *at = ZEROED(c->g, Node, p->n);
	for (uint32_t j = 0; j < l->nkept; j++)
		at[of[j]] = g->output.data[l->kept_at[j]].node;
	Node *out = ZEROED(c->g, Node, c->nout);
	for (uint32_t k = 0; k < c->nout; k++)
		out[k] = g->output.data[k].node;
	graph_clear_outputs(g);
	for (uint32_t k = 0; k < c->nout; k++)
		graph_add_output(g, "y", out[k], -1);
	for (uint32_t k = 0; k < p->n; k++)
		graph_add_output(g, "kept", at[k].i ? at[k] : b_zeros(&b, p->type[k]), -1);
	return g;
}

/* Returns a branch that computes the cotangents of inputs with out[k], from the inputs, the
 * places and the cotangents of results, in that order. */
static Graph *branch_backwards(Build *b, const Cond *c, Linearized *l, const KeptPlaces *p,
			       const uint32_t *of, const bool *has_ct, const bool *out)
{
	Graph *to = graph_beside(b->g, l->g->name);
	Build inner = {.g = to, .loc = b->loc, .where = b->where};
	Node *in = ZEROED(b->g, Node, c->nin), *ct = ZEROED(b->g, Node, c->nout),
	     *grad = ZEROED(b->g, Node, c->nin);
	Node *at = ZEROED(b->g, Node, p->n), *kept = ZEROED(b->g, Node, l->nkept);
	for (uint32_t k = 0; k < c->nin; k++)
		in[k] = input_like(to, "x", b->g, c->in[k]);
	for (uint32_t k = 0; k < p->n; k++)
		at[k] = graph_add_input(to, "kept", INPUT_USER, p->type[k]);
	for (uint32_t k = 0; k < c->nout; k++)
		if (has_ct[k])
			ct[k] = graph_add_input(to, "ct", INPUT_USER,
						node_result_type(b->g, c->n, k));
	for (uint32_t k = 0; k < l->nkept; k++)
		kept[k] = at[of[k]];
	body_backward(l, &inner, in, ct, kept, grad);
	for (uint32_t k = 0; k < c->nin; k++)
		if (out[k])
			graph_add_output(to, "g",
					 grad[k].i ? grad[k]
						   : b_zeros(&inner, node_type_id(b->g, c->in[k])),
					 -1);
	return to;
}

bool cond_vjp(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	Cond c = cond_of(b->g, n);
	bool *active = ZEROED(b->g, bool, c.nin), *step = ZEROED(b->g, bool, c.nin),
	     *has_ct = ZEROED(b->g, bool, c.nout);
	bool *out = ZEROED(b->g, bool, c.nin);
	Linearized l[2];
	memset(g, 0, (c.nin + 1) * sizeof *g);
	for (uint32_t k = 0; k < c.nin; k++) {
		active[k] = want[1 + k];
		step[k] = true;
	}
	cond_activity(&c, active, has_ct);
	uint32_t nct = 0, nxs = c.nin, at = 0;
	for (uint32_t k = 0; k < c.nout; k++)
		nct += has_ct[k] = has_ct[k] && ct[k].i;
	if (!nct)
		return true;
	for (uint32_t k = 0; k < 2; k++)
		TRY(body_linearize(c.body[k], b, active, has_ct, step, &l[k]));
	KeptPlaces p = share_places(&c, l);
	Node by = n;
	if (p.n) {
		Build before = {b->g, n, node_data(b->g, n)->loc, node_near(b->g, n)};
		Graph *yes = branch_keeping(&c, &l[0], &p, p.of[0]),
		      *no = branch_keeping(&c, &l[1], &p, p.of[1]);
		TRY((by = make_cond(&before, c.pred, c.in, c.nin, yes, no)).i);
		replace_tuple(b->g, n, by);
		c.n = by;
	}
	Node *xs = ZEROED(b->g, Node, c.nin + p.n + c.nout);
	memcpy(xs, c.in, c.nin * sizeof *xs);
	for (uint32_t k = 0; k < p.n; k++)
		xs[nxs++] = b_get(b, by, c.nout + k);
	for (uint32_t k = 0; k < c.nout; k++)
		if (has_ct[k])
			xs[nxs++] = ct[k];
	for (uint32_t k = 0; k < c.nin; k++)
		out[k] = l[0].grad[k].i || l[1].grad[k].i;
	Graph *yes = branch_backwards(b, &c, &l[0], &p, p.of[0], has_ct, out);
	Graph *no = branch_backwards(b, &c, &l[1], &p, p.of[1], has_ct, out);
	Node back = make_cond(b, c.pred, xs, nxs, yes, no);
	for (uint32_t k = 0; k < c.nin; k++)
		if (out[k] && back.i)
			g[1 + k] = b_get(b, back, at++);
	return back.i;
}
