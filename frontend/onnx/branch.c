/* If. A condition that is known chooses at import. Else both branches become graphs of one cond,
 * whose results have one type:
 *
 *   - Branches whose results have other types take the nodes behind the If that read them into
 *     both, as many as it needs until the types are the same again.
 *   - Results of other extents are filled up to what either needs, and cut off behind the cond.
 *   - A branch that cannot be imported with the nodes behind it, because an operator refuses what
 *     it gives, is left out: the graph requires the condition of the other one. */
#include <string.h>

#include "frontend/onnx/body.h"
#include "ir/interp/interp.h"

/* How results of the branches compare. */
typedef enum {
	MEET,   /* the same types */
	UNEVEN, /* other extents */
	APART,  /* other ranks or dtypes, or a sequence */
	FAILED, /* a branch cannot be imported */
} Meeting;

/* A dimension of a result whose extent the branches decide. */
typedef struct {
	uint32_t result, dim;
	Sym in[2], room;
} Uneven;

/* One way to import the If: with `taken` nodes behind it in both branches. */
typedef struct {
	const Item *it;
	const OnnxGraph *g[2];
	const OnnxNode *rest; /* behind the If */
	uint32_t nrest, taken;
	OnnxNames out; /* what the branches give */
	Captures captures;
	Graph *made[2];
	const char *error[2]; /* why a branch cannot be imported */
	const char *apart[2]; /* what an If in it lacks, which more nodes behind may give */
	ARRAY(Uneven) uneven;
} Fork;

/* ---- what is read ---- */

static bool reads_any(const OnnxNode *n, const Intern *name);

static bool graph_reads_any(const OnnxGraph *g, const Intern *name)
{
	for (uint32_t k = 0; k < g->out.n; k++) {
		const char *out = g->out.data[k].name;
		if (out && intern_find(name, out, strlen(out)))
			return true;
	}
	for (uint32_t k = 0; k < g->node.n; k++)
		if (reads_any(&g->node.data[k], name))
			return true;
	return false;
}

/* Whether the node, or a graph that it holds, reads one of the names. */
static bool reads_any(const OnnxNode *n, const Intern *name)
{
	for (uint32_t k = 0; k < n->in.n; k++)
		if (intern_find(name, n->in.data[k], strlen(n->in.data[k])))
			return true;
	for (uint32_t k = 0; k < n->attr.n; k++)
		if (n->attr.data[k].g && graph_reads_any(n->attr.data[k].g, name))
			return true;
	return false;
}

static void add_results(Intern *set, const OnnxNode *n)
{
	for (uint32_t k = 0; k < n->out.n; k++)
		if (*n->out.data[k])
			intern(set, n->out.data[k], strlen(n->out.data[k]), NULL);
}

static void add_reads(Intern *set, const OnnxNode *n);

static void add_graph_reads(Intern *set, const OnnxGraph *g)
{
	for (uint32_t k = 0; k < g->out.n; k++)
		if (g->out.data[k].name)
			intern(set, g->out.data[k].name, strlen(g->out.data[k].name), NULL);
	for (uint32_t k = 0; k < g->node.n; k++)
		add_reads(set, &g->node.data[k]);
}

static void add_reads(Intern *set, const OnnxNode *n)
{
	for (uint32_t k = 0; k < n->in.n; k++)
		intern(set, n->in.data[k], strlen(n->in.data[k]), NULL);
	for (uint32_t k = 0; k < n->attr.n; k++)
		if (n->attr.data[k].g)
			add_graph_reads(set, n->attr.data[k].g);
}

/* Finds what the scope reads behind the nodes that the branches take. */
static void find_needed(const Fork *f, Intern *needed)
{
	const OnnxNames *last = &f->it->s->rest.results;
	intern_init(needed, f->it->s->im->ctx->scratch);
	for (uint32_t k = f->taken; k < f->nrest; k++)
		add_reads(needed, &f->rest[k]);
	for (uint32_t k = 0; k < last->n; k++)
		intern(needed, last->data[k], strlen(last->data[k]), NULL);
}

/* Adds the results of a node that are needed; needed NULL: all. */
static void add_needed(Fork *f, const OnnxNode *n, const Intern *needed)
{
	for (uint32_t k = 0; k < n->out.n; k++) {
		const char *name = n->out.data[k];
		if (*name && (!needed || intern_find(needed, name, strlen(name))))
			array_push(f->it->s->im->ctx->scratch, &f->out, name);
	}
}

/* Whether the If waited before: each does once. */
static bool has_waited(const Scope *s, const char *result)
{
	for (uint32_t k = 0; k < s->rest.late.n; k++)
		if (!strcmp(s->rest.late.data[k], result))
			return true;
	return false;
}

/* Moves nodes that do not depend on the If in front of it: it is imported again when its turn
 * comes. Returns false if there are none. */
static bool wait_for_others(const Item *it)
{
	Scope *s = it->s;
	Intern depends;
	uint32_t n = (uint32_t)(s->rest.end - s->rest.next), nfree = 0, nlate = 0;
	OnnxNode *order = ARENA_ARRAY(s->im->ctx->arena, OnnxNode, n + 1),
		 *late = ARENA_ARRAY(s->im->ctx->scratch, OnnxNode, n + 1);
	if (!it->n->out.n || has_waited(s, it->n->out.data[0]))
		return false;
	intern_init(&depends, s->im->ctx->scratch);
	add_results(&depends, it->n);
	late[nlate++] = *it->n;
	for (uint32_t k = 0; k < n; k++)
		if (reads_any(&s->rest.next[k], &depends)) {
			add_results(&depends, &s->rest.next[k]);
			late[nlate++] = s->rest.next[k];
		} else {
			order[nfree++] = s->rest.next[k];
		}
	if (!nfree)
		return false;
	memcpy(order + nfree, late, nlate * sizeof *late);
	s->rest.next = order;
	s->rest.end = order + n + 1;
	array_push(s->im->ctx->scratch, &s->rest.late, it->n->out.data[0]);
	return true;
}

/* ---- branches ---- */

/* Adds nodes that give the results of the branch the names of the If's. */
static bool name_results(const Item *it, const OnnxGraph *g, OnnxNode *node, uint32_t *n)
{
	Arena *a = it->s->im->ctx->arena;
	for (uint32_t r = 0; r < it->n->out.n; r++) {
		if (!*it->n->out.data[r])
			continue;
		if (r >= g->out.n || !g->out.data[r].name)
			return onnx_item_error(it, "no node of the body gives its result %u", r);
		OnnxNode same = {.op = "Identity"};
		array_push(a, &same.in, g->out.data[r].name);
		array_push(a, &same.out, it->n->out.data[r]);
		node[(*n)++] = same;
	}
	return true;
}

/* Sets *out to the nodes of a branch, names of its results, and n nodes behind. Returns false
 * after an error. */
static bool branch_nodes(const Item *it, const OnnxGraph *g, const OnnxNode *behind, uint32_t n,
			 const OnnxNode **out, uint32_t *nout)
{
	uint32_t at = g->node.n;
	OnnxNode *node = ARENA_ARRAY(it->s->im->ctx->arena, OnnxNode, at + it->n->out.n + n + 1);
	if (at)
		memcpy(node, g->node.data, at * sizeof *node);
	TRY(name_results(it, g, node, &at));
	if (n)
		memcpy(node + at, behind, n * sizeof *node);
	*out = node;
	*nout = at + n;
	return true;
}

static bool import_branch(const Fork *f, Scope *s, uint32_t k)
{
	const OnnxNode *node;
	uint32_t n;
	return branch_nodes(f->it, f->g[k], f->rest, f->taken, &node, &n) &&
	       onnx_scope_inits(s, f->g[k]) && onnx_scope_nodes(s, node, n, f->out);
}

static const char *first_error(const Ctx *ctx, CtxMark mark)
{
	for (const Diag *d = mark.last ? mark.last->next : ctx->first; d; d = d->next)
		if (d->severity == DIAG_ERROR)
			return d->text;
	return "it cannot be imported";
}

/* Makes branch k. Returns APART for a sequence, and, with the message in f->apart, if an If in it
 * needs more nodes behind; FAILED, with the message in f->error, if it cannot be imported. */
static Meeting make_branch(Fork *f, uint32_t k)
{
	const Item *it = f->it;
	Import *im = it->s->im;
	Ctx *ctx = im->ctx;
	CtxMark mark = ctx_mark(ctx);
	const uint32_t napart = im->napart;
	Scope s;
	onnx_scope_init(&s, im, graph_new(im->ir, k ? "no" : "yes"), it->s, it->s->opset);
	bool ok = bind_captures(&s, &f->captures) && import_branch(f, &s, k), list = false;
	for (uint32_t r = 0; ok && !list && r < f->out.n; r++) {
		Value *v = onnx_scope_find(&s, f->out.data[r]);
		list = v && v->is_list;
		Node n = v && !list ? onnx_value_node(&s, v) : (Node){0};
		ok = list || n.i;
		if (n.i)
			graph_add_output(s.b.g, f->out.data[r], n, -1);
	}
	if (ok) {
		f->made[k] = list ? NULL : s.b.g;
		return list ? APART : MEET;
	}
	const bool apart = im->napart != napart;
	*(apart ? &f->apart[k] : &f->error[k]) = arena_strdup(ctx->arena, first_error(ctx, mark));
	ctx_rewind(ctx, mark);
	return apart ? APART : FAILED;
}

static Meeting compare_results(Fork *f)
{
	Graph *const *g = f->made;
	Import *im = f->it->s->im;
	Meeting m = MEET;
	for (uint32_t r = 0; r < f->out.n; r++) {
		Type t[2];
		for (uint32_t k = 0; k < 2; k++)
			t[k] = *node_type(g[k], g[k]->output.data[r].node);
		if (t[0].dtype != t[1].dtype || t[0].n != t[1].n)
			return APART;
		for (uint32_t d = 0; d < t[0].n; d++) {
			Sym a = t[0].dim[d], b = t[1].dim[d];
			if (sym_eq(im->syms, a, b) == YES || graph_requires_equal(g[0], a, b) ||
			    graph_requires_equal(g[1], a, b))
				continue;
			array_push(im->ctx->scratch, &f->uneven, (Uneven){r, d, {a, b}, {0}});
			m = UNEVEN;
		}
	}
	return m;
}

/* Imports both branches with so many nodes behind the If. */
static Meeting try_fork(Fork *f, uint32_t taken)
{
	const Item *it = f->it;
	Meeting m[2];
	f->taken = taken;
	f->out = (OnnxNames){0};
	f->captures = (Captures){0};
	f->made[0] = f->made[1] = NULL;
	f->error[0] = f->error[1] = NULL;
	f->apart[0] = f->apart[1] = NULL;
	f->uneven.n = 0;
	Intern needed;
	find_needed(f, &needed);
	add_needed(f, it->n, taken ? &needed : NULL);
	for (uint32_t k = 0; k < it->n->out.n; k++)
		captures_local(&f->captures, it->s, it->n->out.data[k]);
	for (uint32_t k = 0; k < taken; k++)
		add_needed(f, &f->rest[k], &needed);
	if (!captures_of(&f->captures, it->s, f->g[0]) ||
	    !captures_of(&f->captures, it->s, f->g[1]) ||
	    !captures_of_nodes(&f->captures, it->s, f->rest, taken))
		return FAILED;
	m[0] = make_branch(f, 0);
	m[1] = make_branch(f, 1);
	if (m[0] == FAILED || m[1] == FAILED)
		return FAILED;
	return m[0] == APART || m[1] == APART ? APART : compare_results(f);
}

/* ---- one cond ---- */

/* Finds room for a dimension: the most that either branch needs. What operators count is bounded
 * once they are expanded. Returns false, without a message, if no bound is known before the
 * graph runs. */
static bool find_room(const Fork *f, Uneven *u)
{
	SymTab *t = f->it->s->im->syms;
	Sym most[2];
	for (int k = 0; k < 2; k++) {
		if (sym_uses_kind(t, u->in[k], SYMVAR_UNBACKED))
			TRY(interp_expand(f->made[k]));
		most[k] = sym_most(t, u->in[k]);
		TRY(most[k].i);
	}
	u->room = sym_max(t, most[0], most[1]);
	return true;
}

static bool find_rooms(Fork *f)
{
	for (uint32_t k = 0; k < f->uneven.n; k++)
		TRY(find_room(f, &f->uneven.data[k]));
	return true;
}

/* Returns the first dimension of the same extents. */
static uint32_t first_like(const Fork *f, uint32_t k)
{
	const Uneven *u = f->uneven.data;
	for (uint32_t i = 0; i < k; i++)
		if (u[i].in[0].i == u[k].in[0].i && u[i].in[1].i == u[k].in[1].i)
			return i;
	return k;
}

/* Fills branch k up, and adds the extents to its results. */
static bool fill_up(const Fork *f, uint32_t k)
{
	Graph *g = f->made[k];
	Build b = {.g = g, .loc = f->it->s->b.loc, .where = f->it->s->b.where};
	for (uint32_t i = 0; i < f->uneven.n; i++) {
		const Uneven *u = &f->uneven.data[i];
		Node x = g->output.data[u->result].node;
		Sym low[MAX_RANK], high[MAX_RANK];
		for (uint32_t d = 0; d < MAX_RANK; d++)
			low[d] = high[d] = b_int(&b, 0);
		high[u->dim] = sym_sub(b_syms(&b), u->room, u->in[k]);
		x = b_pad(&b, x, low, high, b_scalar(&b, node_dtype(g, x), 0));
		Node size = b_from_size(&b, u->in[k]);
		TRY(x.i && size.i);
		graph_set_output(g, u->result, x);
		graph_add_output(g, "size", size, -1);
	}
	return true;
}

/* Binds what the cond gives, cut off where it was filled up. */
static bool bind_results(const Fork *f, Node y)
{
	Scope *s = f->it->s;
	Build *b = &s->b;
	Sym *size = ARENA_ARRAY(s->im->ctx->scratch, Sym, f->uneven.n + 1);
	for (uint32_t i = 0; i < f->uneven.n; i++) {
		uint32_t like = first_like(f, i);
		size[i] = like < i ? size[like]
				   : onnx_size_from_data(s, b_get(b, y, f->out.n + i),
							 f->uneven.data[i].room,
							 "the extent of a branch's result");
	}
	for (uint32_t r = 0; r < f->out.n; r++) {
		Node x = b_get(b, y, r);
		for (uint32_t i = 0; i < f->uneven.n; i++)
			if (f->uneven.data[i].result == r)
				x = b_slice(b, x, (int)f->uneven.data[i].dim, b_int(b, 0), size[i],
					    b_int(b, 1));
		TRY(x.i);
		if (node_op(b->g, x) != OP_input)
			graph_set_name(b->g, x, f->out.data[r]);
		TRY(onnx_scope_bind(s, f->out.data[r], onnx_value_of(s, x)));
	}
	return true;
}

static bool join(Fork *f, Value *pred)
{
	Scope *s = f->it->s;
	Ir *ir = s->im->ir;
	uint32_t n = f->captures.node.n;
	Node *in = ARENA_ARRAY(s->im->ctx->scratch, Node, n + 1);
	in[0] = body_condition(s, pred);
	TRY(in[0].i && fill_up(f, 0) && fill_up(f, 1));
	if (n)
		memcpy(in + 1, f->captures.node.data, n * sizeof *in);
	Attr attr[] = {attr_none(), attr_int(ir, n), attr_graph(f->made[0]),
		       attr_graph(f->made[1])};
	Node y = b_node(&s->b, OP_cond, in, n + 1, attr, 4);
	s->rest.next += f->taken;
	return y.i && bind_results(f, y);
}

/* ---- one branch ---- */

static bool is_bound(const Scope *s, const char *name)
{
	return name && intern_find(&s->names, name, strlen(name));
}

/* Whether the branch's nodes can stand among those of the scope: an If among them may need nodes
 * behind this one. Names of branches may repeat. */
static bool can_join(const Item *it, const OnnxGraph *g)
{
	const Scope *s = it->s;
	bool fork = false;
	Intern later;
	intern_init(&later, s->im->ctx->scratch);
	for (const OnnxNode *n = s->rest.next; n < s->rest.end; n++)
		add_results(&later, n);
	for (uint32_t k = 0; k < g->init.n; k++)
		if (is_bound(s, g->init.data[k].name))
			return false;
	for (uint32_t k = 0; k < g->node.n; k++) {
		const OnnxNode *n = &g->node.data[k];
		fork |= n->op && !strcmp(n->op, "If") && onnx_is_main_domain(n->domain);
		for (uint32_t r = 0; r < n->out.n; r++)
			if (is_bound(s, n->out.data[r]) ||
			    intern_find(&later, n->out.data[r], strlen(n->out.data[r])))
				return false;
	}
	return fork && !g->sparse_init.n;
}

static bool inline_branch(const Item *it, const OnnxGraph *g)
{
	Scope s, *around = it->s;
	if (can_join(it, g)) {
		uint32_t n;
		TRY(onnx_scope_inits(around, g) &&
		    branch_nodes(it, g, around->rest.next,
				 (uint32_t)(around->rest.end - around->rest.next),
				 &around->rest.next, &n));
		around->rest.end = around->rest.next + n;
		return true;
	}
	inline_scope(&s, it);
	TRY(onnx_scope_graph(&s, g));
	for (uint32_t k = 0; k < it->n->out.n; k++) {
		Value *v = body_result(it, &s, g, k);
		TRY(v && onnx_item_bind(it, k, v));
	}
	return true;
}

/* Imports branch k alone: a call that would take the other one ends. why: what is wrong with
 * that one. */
static bool require_branch(const Item *it, const OnnxGraph *g, uint32_t k, Value *pred,
			   const char *why)
{
	static const char *const name[] = {"then_branch", "else_branch"};
	Scope *s = it->s;
	Ctx *ctx = s->im->ctx;
	ctx_warn(ctx, s->b.where,
		 "%s cannot be computed with what follows: a call that takes it ends with an "
		 "error (%s)",
		 name[!k], why);
	Node test = body_condition(s, pred);
	if (k && test.i)
		test = b_un(&s->b, OP_bit_not, test);
	TRY(test.i);
	Attr attr[] = {attr_none(),
		       attr_str(s->im->ir,
				arena_printf(ctx->scratch,
					     "the model takes the %s of %s, "
					     "which cannot be computed: %s",
					     name[!k], s->b.where ? s->b.where : "an If", why))};
	b_node(&s->b, OP_assert, &test, 1, attr, 2);
	return inline_branch(it, g);
}

/* ---- the node ---- */

/* Whether given inputs decide one bool: *out. */
static bool decided_bool(Scope *s, const Value *v, bool *out)
{
	Tensor t;
	return onnx_value_decided(s, v, &t) && tensor_numel(&t) == 1 &&
	       (*out = tensor_f64(&t, 0) != 0, true);
}

static bool say_apart(const Fork *f)
{
	Import *im = f->it->s->im;
	im->napart += f->apart[0] || f->apart[1] || !(f->error[0] || f->error[1]);
	for (uint32_t r = 0; f->made[0] && f->made[1] && r < f->out.n; r++) {
		Graph *const *g = f->made;
		Node x = g[0]->output.data[r].node, y = g[1]->output.data[r].node;
		if (node_type_id(g[0], x).i == node_type_id(g[1], y).i)
			continue;
		const char *one =
			arena_strdup(im->ctx->scratch, type_str(im->ir, node_type_id(g[0], x)));
		return onnx_item_error(f->it,
				       "%s is %s in one branch and %s in the other: the condition "
				       "must be decided when the model is read, by inputs with "
				       "constant extents or by given values (--values)",
				       f->out.data[r], one,
				       type_str(im->ir, node_type_id(g[1], y)));
	}
	return onnx_item_error(f->it, "%s",
			       f->apart[0]   ? f->apart[0]
			       : f->apart[1] ? f->apart[1]
			       : f->error[0] ? f->error[0]
			       : f->error[1] ? f->error[1]
					     : "a branch gives a sequence, which needs a condition "
					       "that is known when the model is read");
}

/* Tries ways to import an If whose branches alone do not give the same types: with few nodes
 * behind it, filled up, with many nodes, with one branch alone. */
static bool reconcile(Fork *f, Meeting alone, Value *pred)
{
	enum { FEW = 16 };
	const Item *it = f->it;
	Meeting m = alone;
	bool filled = alone != UNEVEN;
	for (uint32_t taken = 1; taken < 2 * f->nrest && m != MEET; taken *= 2) {
		if (taken > FEW && !filled) {
			filled = true;
			if (try_fork(f, 0) == UNEVEN && find_rooms(f))
				return join(f, pred);
		}
		m = try_fork(f, taken < f->nrest ? taken : f->nrest);
	}
	if (m == MEET)
		return join(f, pred);
	if (!filled && (m = try_fork(f, 0)) == UNEVEN && find_rooms(f))
		return join(f, pred);
	m = try_fork(f, f->nrest);
	if (m == UNEVEN && find_rooms(f))
		return join(f, pred);
	for (uint32_t k = 0; k < 2; k++)
		if (!f->error[k] && !f->apart[k] && f->error[!k])
			return require_branch(it, f->g[k], k, pred, f->error[!k]);
	return say_apart(f);
}

bool onnx_import_if(const Item *it)
{
	Value *pred = onnx_item_in(it, 0);
	Fork f = {.it = it, .g = {body_of(it, "then_branch"), NULL}};
	f.g[1] = f.g[0] ? body_of(it, "else_branch") : NULL;
	bool yes;
	TRY(f.g[0] && f.g[1]);
	if (!pred)
		return onnx_item_error(it, "the condition is missing");
	if (known_bool(it->s, pred, gives_lists(f.g[0]), &yes))
		return inline_branch(it, f.g[!yes]);
	f.rest = it->s->rest.next;
	f.nrest = (uint32_t)(it->s->rest.end - f.rest);
	Meeting alone = try_fork(&f, 0);
	if (alone == MEET)
		return join(&f, pred);
	if (decided_bool(it->s, pred, &yes))
		return inline_branch(it, f.g[!yes]);
	return wait_for_others(it) || reconcile(&f, alone, pred);
}
