/* Versions of state and the order of steps; see lower/state.h.
 *
 * A step comes after those that write what it reads, and a version is written after every read of
 * the one before:
 *
 *   %new = update_slice(%cache, %row, ..)      copy_cache -> old; update_row -> cache;
 *                                              attention(cache)
 *   %y = attention(%new), %cache (old value)
 *
 * Where checks may fail, they come before what replaces state, unless they depend on it. */
#include "lower/state.h"

#include <string.h>

#include "ir/op/userop.h"
#include "lower/stage.h"

LowerState *lower_state_new(Graph *g, Arena *arena)
{
	LowerState *st = ARENA_NEW(arena, LowerState);
	uint32_t n = 0;
	st->of_input = ARENA_ARRAY(arena, uint32_t, g->input.n);
	st->apart = ARENA_ARRAY(arena, bool, g->node.n);
	st->apart_output = ARENA_ARRAY(arena, bool, g->output.n);
	st->stored = ARENA_ARRAY(arena, const char *, g->node.n);
	st->donates = ARENA_ARRAY(arena, bool, g->output.n);
	st->root_of = ARENA_ARRAY(arena, uint32_t, g->output.n);
	st->copied = ARENA_ARRAY(arena, bool, g->input.n);
	for (uint32_t k = 0; k < g->output.n; k++)
		st->donates[k] = g->output.data[k].writes >= 0 && !graph_output_is_state(g, k);
	for (uint32_t k = 0; k < g->input.n; k++)
		st->of_input[k] = g->input.data[k].kind == INPUT_USER ? 0 : ++n;
	return st;
}

/* ---- versions ---- */

static StateVersion *version_of(const Lower *s, BufId b)
{
	BufKind kind = buf_of(s->l, b)->kind;
	if (!s->state || kind == BUF_TEMP || kind == BUF_CONST)
		return NULL;
	uint32_t k = b.i < s->state->of_buf.n ? s->state->of_buf.data[b.i] : 0;
	return k && k <= s->state->version.n && s->state->version.data[k - 1].buf.i == b.i
		       ? &s->state->version.data[k - 1]
		       : NULL;
}

/* Returns the version that v replaces; NULL if v is what a call finds. */
static const StateVersion *version_before(const Lower *s, const StateVersion *v)
{
	return v->before.i ? version_of(s, v->before) : NULL;
}

static BufId new_buffer(Lower *s, BufKind kind, uint32_t k, Node of)
{
	BufId b = lower_new_place(s, of, kind, k).buf;
	buf_of(s->l, b)->layout_fixed = true;
	return b;
}

static void push_version(Lower *s, StateVersion v)
{
	LowerState *st = s->state;
	array_push(s->arena, &st->version, v);
	while (st->of_buf.n <= v.buf.i)
		array_push(s->arena, &st->of_buf, 0);
	st->of_buf.data[v.buf.i] = st->version.n;
}

bool lower_replaces(const Lower *s, uint32_t k)
{
	return s->state && (graph_output_is_state(s->g, k) || s->state->donates[k]);
}

static bool is_donated(const Lower *s, uint32_t root)
{
	return root >= s->l->state.n;
}

/* Returns, by input, the value that replaces it; none for inputs that nothing replaces. */
static Node *replacements(const Lower *s)
{
	Node *by = ARENA_ARRAY(s->arena, Node, s->g->input.n);
	for (uint32_t k = 0; k < s->g->output.n; k++)
		if (lower_replaces(s, k))
			by[s->g->output.data[k].writes] = lower_output(s->g, k);
	return by;
}

void lower_state_begin(Lower *s)
{
	LowerState *st = s->state;
	const Node *by = replacements(s);
	st->again = false;
	st->version.n = st->checked.n = 0;
	memcpy(s->stored, st->stored, s->g->node.n * sizeof *s->stored);
	memset(st->copied, 0, s->g->input.n);
	for (uint32_t k = 0; k < s->g->input.n; k++) {
		const GraphInput *in = &s->g->input.data[k];
		if (in->kind == INPUT_USER)
			continue;
		const Const *c = ir_const_of(s->ir, in->init);
		array_push(s->arena, &s->l->state,
			   (LoweredState){.name = in->name,
					  .dtype = c->dtype,
					  .rank = c->rank,
					  .dim = c->dim,
					  .init = in->init,
					  .kind = in->kind});
		Node n = lower_input(s->g, in->node);
		bool unread = dtype_is_complex(node_type(s->g, n)->dtype); /* else n is its pairs */
		BufId b = new_buffer(s, BUF_STATE, st->version.n, unread && by[k].i ? by[k] : n);
		push_version(s, (StateVersion){.buf = b, .root = st->version.n});
		lower_add_place(s, n, (NodePlace){.buf = b});
	}
	for (uint32_t k = 0; k < s->g->output.n; k++) {
		if (!st->donates[k])
			continue;
		Node n = lower_input(s->g, s->g->input.data[s->g->output.data[k].writes].node);
		st->root_of[k] = st->version.n;
		push_version(s, (StateVersion){.buf = node_info(s, n)->place.data[0].buf,
					       .root = st->version.n,
					       .output = k});
	}
	st->nroot = st->version.n;
}

/* Returns the number of the version that a call finds where output k goes. */
static uint32_t root_of(const Lower *s, uint32_t k)
{
	const LowerState *st = s->state;
	uint32_t root = st->of_input[s->g->output.data[k].writes];
	return root ? root - 1 : st->root_of[k];
}

NodePlace lower_state_output(Lower *s, uint32_t k, NodePlace out)
{
	Node n = lower_output(s->g, k);
	uint32_t root = root_of(s, k);
	bool computed = lower_can_be_computed_in(s, n) && !s->state->apart[n.i];
	if (!is_donated(s, root)) {
		out = (NodePlace){.buf = new_buffer(s, BUF_STATE, root, n)};
		s->l->state.data[root].written = true;
	}
	push_version(s, (StateVersion){.buf = out.buf,
				       .before = s->state->version.data[root].buf,
				       .node = computed ? n : (Node){0},
				       .output = k,
				       .root = root});
	return out;
}

static bool same_type(const Lower *s, Node a, Node b)
{
	return node_type_id(s->g, a).i == node_type_id(s->g, b).i;
}

/* Returns the value of which n is a copy with parts replaced; none if n is no such value. */
static Node updated_operand(const Lower *s, Node n)
{
	const Graph *g = s->g;
	const OpLower *l = op_lower(node_op(g, n));
	if (l->updates)
		return node_in(g, n, 0);
	for (uint32_t k = 0; l->holds == HOLDS_OPERANDS && k < node_nin(g, n); k++) {
		Node x = node_in(g, n, k);
		Node from = lower_is_map(op_lower(node_op(g, x))) ? node_in(g, x, 0) : x;
		if (same_type(s, from, n))
			return from;
	}
	return (Node){0};
}

static bool can_take_place(const Lower *s, Node n)
{
	return lower_has_place(s, n) && !node_info(s, n)->place.n && !s->state->apart[n.i];
}

static bool at_origin(const NodePlace *p)
{
	bool origin = !p->t.i;
	for (uint32_t k = 0; k < MAX_RANK; k++)
		origin = origin && !p->off[k].i;
	return origin;
}

void lower_state_extend(Lower *s, Node n)
{
	NodePlace at = node_info(s, n)->place.data[0], part;
	StateVersion *v = version_of(s, at.buf);
	Node x = v ? updated_operand(s, n) : (Node){0},
	     only = v && at_origin(&at) ? lower_without_leading_one(s, n) : (Node){0};
	if (only.i && can_take_place(s, only))
		lower_add_place(s, only, lower_place_without_leading_one(s, at));
	if (!x.i)
		return;
	if (at_origin(&at) && same_type(s, x, n) && can_take_place(s, x)) {
		uint32_t k = (uint32_t)(v - s->state->version.data);
		StateVersion new = *v;
		new.buf = new_buffer(s, buf_of(s->l, at.buf)->kind, buf_of(s->l, at.buf)->k, x);
		new.node = x;
		push_version(s, new);
		v = &s->state->version.data[k];
		v->before = new.buf;
		lower_add_place(s, x, (NodePlace){.buf = new.buf});
	}
	/* What is put there may be computed there only if nothing is copied over it. */
	const NodeInfo *from = node_info(s, x);
	const StateVersion *old = from->place.n ? version_of(s, from->place.data[0].buf) : NULL;
	bool there = op_lower(node_op(s->g, x))->role != LOWER_INDEX && old &&
		     at_origin(&from->place.data[0]) && at_origin(&at) && old->root == v->root;
	Node update = op_lower(node_op(s->g, n))->updates ? node_in(s->g, n, 1) : (Node){0};
	if (!there || !update.i || !lower_update_place(s, n, &part))
		return;
	Node one = lower_without_leading_one(s, update);
	if (can_take_place(s, update))
		lower_add_place(s, update, part);
	else if (one.i && can_take_place(s, one))
		lower_add_place(s, one, lower_place_without_leading_one(s, part));
}

/* ---- what stays ---- */

bool lower_state_keeps(const Lower *s, const Kernel *k)
{
	const Stage *st = &k->stage.data[0];
	if (k->stage.n != 1 || st->kind != STAGE_MAP || !stage_stores(st))
		return false;
	const StateVersion *v = version_of(s, st->store.buf);
	const KxData *x = &k->kx.data[st->value.i];
	bool keeps = v && x->kind == KX_LOAD && !x->guard.i &&
		     (x->buf.i == st->store.buf.i || x->buf.i == v->before.i);
	for (uint32_t d = 0; keeps && d < x->nidx; d++)
		keeps = x->idx[d].i == st->store.idx[d].i;
	if (keeps && is_donated(s, v->root) && x->buf.i == s->state->version.data[v->root].buf.i)
		s->state->copied[v->root - s->l->state.n] = true; /* once, before all else */
	return keeps;
}

void lower_state_copy(Lower *s, const NodePlace *out)
{
	Graph *g = s->g;
	NodePlace *from = ARENA_ARRAY(s->arena, NodePlace, g->output.n);
	for (uint32_t k = 0; k < g->output.n; k++) {
		Node n = lower_output(g, k);
		if (!lower_replaces(s, k) || !s->state->apart_output[k])
			continue;
		from[k] = lower_new_place(s, n, BUF_TEMP, 0);
		lower_push_kernel(s, lower_copy_kernel(s, n, &from[k]));
	}
	for (uint32_t k = 0; k < g->output.n; k++) {
		Node n = lower_output(g, k);
		if (!lower_replaces(s, k) || version_of(s, out[k].buf)->node.i)
			continue;
		lower_push_kernel(s, from[k].buf.i ? lower_copy_place(s, n, &from[k], &out[k])
						   : lower_copy_kernel(s, n, &out[k]));
	}
}

/* ---- dependences ---- */

typedef ARRAY(uint32_t) Numbers;

typedef struct {
	Lower *s;
	Step *step;
	uint32_t n, now;  /* now: the step that is visited */
	Numbers *next;    /* by step: those that come after it */
	uint32_t *before; /* by step: how many come before it */
	uint32_t *writer; /* by buffer: 1 + the last step that writes it */
	Numbers *reader;  /* by buffer: since then */
	Numbers *reads, *writes; /* by version: steps */
	Numbers *sees, *makes;   /* by step: versions that it reads, that it writes, in their
	                            order */
	uint32_t *depth;         /* by version: how many came before it */
	bool *fails, *replaces;  /* by step: a check in it may fail; it writes state */
	bool *needed;            /* by step: checks depend on it */
	bool late;               /* what replaces state comes after checks */
	Numbers heap, order;
} Order;

static void add_edge(Order *o, uint32_t from, uint32_t to)
{
	if (from == to)
		return;
	array_push(o->s->arena, &o->next[from], to);
	o->before[to]++;
}

static void visit_buffer(void *data, BufId b, bool write)
{
	Order *o = data;
	Arena *arena = o->s->arena;
	const StateVersion *v = version_of(o->s, b);
	uint32_t which = v ? (uint32_t)(v - o->s->state->version.data) : 0;
	if (v)
		array_push(arena, write ? &o->writes[which] : &o->reads[which], o->now);
	if (v && !write)
		array_push(arena, &o->sees[o->now], which);
	o->replaces[o->now] |= v && write;
	if (o->writer[b.i])
		add_edge(o, o->writer[b.i] - 1, o->now);
	if (!write) {
		array_push(arena, &o->reader[b.i], o->now);
		return;
	}
	for (uint32_t k = 0; k < o->reader[b.i].n; k++)
		add_edge(o, o->reader[b.i].data[k], o->now);
	o->reader[b.i].n = 0;
	o->writer[b.i] = o->now + 1;
}

/* Handles a kernel that reads what its own result, v, replaces, and may not: asks for another
 * attempt, in which the output does not take its input's memory, operands that the kernel computes
 * are stored first, or the value is computed apart. */
static void separate(Lower *s, const StateVersion *v)
{
	Graph *g = s->g;
	bool stored = false;
	s->state->again = true;
	if (is_donated(s, v->root)) {
		s->state->donates[v->output] = false;
		return;
	}
	for (uint32_t k = 1;
	     v->node.i && op_lower(node_op(g, v->node))->updates && k < node_nin(g, v->node); k++) {
		Node x = node_in(g, v->node, k);
		LowerRole role = op_lower(node_op(g, x))->role;
		if (role == LOWER_MEMORY || role == LOWER_LEAF || s->state->stored[x.i] ||
		    node_info(s, x)->is.role == ROLE_ROOT)
			continue;
		s->state->stored[x.i] = "its kernel reads what it replaces";
		stored = true;
	}
	if (stored)
		return;
	if (v->node.i)
		s->state->apart[v->node.i] = true;
	else
		s->state->apart_output[v->output] = true;
}

/* Checks that step `writer`, which writes v, reads versions before v only element by element, where
 * it stores the new ones. Calls separate if not. */
static void may_replace(Order *o, const StateVersion *v, uint32_t writer)
{
	const StateVersion *all = o->s->state->version.data;
	const Step *step = &o->step[writer];
	const Numbers *sees = &o->sees[writer];
	for (uint32_t i = 0; i < sees->n; i++) {
		const StateVersion *u = &all[sees->data[i]];
		bool replaced = u->root == v->root && o->depth[sees->data[i]] < o->depth[v - all];
		for (uint32_t k = 0; replaced && k < i; k++)
			replaced = sees->data[k] != sees->data[i];
		if (replaced && !(step->kind == STEP_KERNEL &&
				  kernel_replaces(step->kernel, v->buf, u->buf, o->s->arena)))
			separate(o->s, v);
	}
}

/* Orders everything that reads or writes `from`, which v replaces, before what writes v. */
static void replace_after(Order *o, const StateVersion *v, const StateVersion *from)
{
	const StateVersion *all = o->s->state->version.data;
	const Numbers *w = &o->writes[v - all], *r = &o->reads[from - all],
		      *old = &o->writes[from - all];
	for (uint32_t i = 0; i < w->n; i++) {
		if (o->step[w->data[i]].kind == STEP_COPY)
			continue; /* nothing is lost */
		for (uint32_t k = 0; k < r->n; k++)
			add_edge(o, r->data[k], w->data[i]);
		for (uint32_t k = 0; k < old->n; k++)
			add_edge(o, old->data[k], w->data[i]);
	}
}

/* Whether a step stores v. That comes after everything that reads what v replaces, so that versions
 * before v need not be looked at again. */
static bool is_written(const Order *o, const StateVersion *v)
{
	const Numbers *w = &o->writes[v - o->s->state->version.data];
	for (uint32_t i = 0; i < w->n; i++)
		if (o->step[w->data[i]].kind != STEP_COPY)
			return true;
	return false;
}

/* Orders what reads or writes a version before what writes a later version of the same state. */
static void order_versions(Order *o)
{
	const LowerState *st = o->s->state;
	for (uint32_t k = 0; k < st->version.n; k++) {
		const StateVersion *v = &st->version.data[k];
		const Numbers *w = &o->writes[k];
		for (uint32_t i = 0; i < w->n; i++) {
			array_push(o->s->arena, &o->makes[w->data[i]], k);
			if (v->before.i && o->step[w->data[i]].kind != STEP_COPY)
				may_replace(o, v, w->data[i]);
		}
		for (const StateVersion *u = version_before(o->s, v), *end = NULL; u != end;
		     u = is_written(o, u) ? end : version_before(o->s, u))
			replace_after(o, v, u);
	}
}

/* Counts the versions before each one. Versions of one root are a chain; each is counted from the
 * next one known. */
static void find_depths(Order *o)
{
	const LowerState *st = o->s->state;
	Numbers chain = {0};
	for (uint32_t k = 0; k < st->version.n; k++) {
		const StateVersion *v = &st->version.data[k];
		for (chain.n = 0; v->before.i && !o->depth[v - st->version.data];
		     v = version_before(o->s, v))
			array_push(o->s->arena, &chain, (uint32_t)(v - st->version.data));
		for (uint32_t depth = o->depth[v - st->version.data]; chain.n;)
			o->depth[chain.data[--chain.n]] = ++depth;
	}
}

static void find_edges(Order *o)
{
	for (o->now = 0; o->now < o->n; o->now++) {
		step_buffers(&o->step[o->now], o->s->arena, visit_buffer, o);
		o->fails[o->now] = lower_step_fails(&o->step[o->now]);
	}
	find_depths(o);
	order_versions(o);
	/* what reads a size comes after it */
	for (uint32_t k = 0, last = o->n; k < o->n; k++) {
		if (last < o->n)
			add_edge(o, last, k);
		if (o->step[k].kind == STEP_SIZE)
			last = k;
	}
	/* effects keep their order */
	for (uint32_t k = 0, last = o->n; k < o->n; k++)
		if (lower_step_has_effect(&o->step[k])) {
			if (last < o->n)
				add_edge(o, last, k);
			last = k;
		}
}

/* ---- an order ---- */

/* Returns the rank of a step among those that may come next: by the order of the list. Once o->late
 * is set, steps that checks need come first, and of those first the ones that do not replace
 * state. */
static uint64_t key(const Order *o, uint32_t step)
{
	uint64_t class = !o->late ? 0 : !o->needed[step] ? 2 : o->replaces[step];
	return class << 32 | step;
}

static void heap_push(Order *o, uint32_t step)
{
	array_push(o->s->arena, &o->heap, step);
	uint32_t *h = o->heap.data;
	for (uint32_t k = o->heap.n - 1, up; k && key(o, h[k]) < key(o, h[up = (k - 1) / 2]);
	     k = up) {
		uint32_t swap = h[k];
		h[k] = h[up];
		h[up] = swap;
	}
}

static uint32_t heap_pop(Order *o)
{
	uint32_t *h = o->heap.data, first = h[0], n = --o->heap.n;
	h[0] = h[n];
	for (uint32_t k = 0, down; (down = 2 * k + 1) < n; k = down) {
		down += down + 1 < n && key(o, h[down + 1]) < key(o, h[down]);
		if (key(o, h[k]) <= key(o, h[down]))
			break;
		uint32_t swap = h[k];
		h[k] = h[down];
		h[down] = swap;
	}
	return first;
}

static void become_late(Order *o)
{
	Numbers ready = o->heap;
	o->heap = (Numbers){0};
	o->late = true;
	for (uint32_t k = 0; k < ready.n; k++)
		heap_push(o, ready.data[k]);
}

/* Sorts the steps. checks: checks that would come after a step that replaces state come before it
 * where they can. */
static void sort_steps(Order *o, bool checks)
{
	uint32_t *before = arena_dup(o->s->arena, o->before, o->n * sizeof *before);
	o->heap.n = o->order.n = 0;
	o->late = false;
	for (uint32_t k = 0; k < o->n; k++)
		if (!before[k])
			heap_push(o, k);
	while (o->heap.n) {
		uint32_t k = heap_pop(o);
		if (checks && !o->late && o->replaces[k]) {
			heap_push(o, k);
			become_late(o);
			continue;
		}
		array_push(o->s->arena, &o->order, k);
		for (uint32_t i = 0; i < o->next[k].n; i++)
			if (!--before[o->next[k].data[i]])
				heap_push(o, o->next[k].data[i]);
	}
}

/* Whether one of these steps, other than `step`, is not in the order. */
static bool waits_for(const Numbers *steps, const bool *done, uint32_t step)
{
	for (uint32_t i = 0; i < steps->n; i++)
		if (steps->data[i] != step && !done[steps->data[i]])
			return true;
	return false;
}

/* Whether `step`, which writes v, waits for steps that read or write (users[]) a version before
 * v. */
static bool is_blocked(const Order *o, const StateVersion *v, const Numbers *users,
		       const bool *done, uint32_t step)
{
	for (const StateVersion *u = version_before(o->s, v); u; u = version_before(o->s, u))
		if (waits_for(&users[u - o->s->state->version.data], done, step))
			return true;
	return false;
}

/* Chooses the first value, in the order of steps, that waits for users of what it replaces: the
 * next attempt computes it apart. Returns false if no value waits. */
static bool put_apart(const Order *o, const Numbers *users, const bool *done)
{
	LowerState *st = o->s->state;
	for (uint32_t step = 0; step < o->n; step++)
		for (uint32_t k = 0; k < o->makes[step].n && !done[step]; k++) {
			const StateVersion *v = &st->version.data[o->makes[step].data[k]];
			if ((v->node.i ? st->apart[v->node.i] : st->apart_output[v->output]) ||
			    !is_blocked(o, v, users, done, step))
				continue;
			if (is_donated(o->s, v->root))
				st->donates[v->output] = false;
			else if (v->node.i)
				st->apart[v->node.i] = true;
			else
				st->apart_output[v->output] = true;
			return st->again = true;
		}
	return false;
}

/* Resolves a circle of steps by another attempt, which computes a value apart. A step reads a
 * version that another step replaces, and depends on that step. Or a value that is stored in a
 * later version is read by what writes an earlier one:
 *
 *   %new = update_slice(%state, %row, ..)      row -> state, as a part of y; update_row reads row
 *   %y = concat([%head of %new, %row]) -> state
 */
static void break_circle(Order *o)
{
	bool *done = ARENA_ARRAY(o->s->arena, bool, o->n);
	for (uint32_t k = 0; k < o->order.n; k++)
		done[o->order.data[k]] = true;
	if (!put_apart(o, o->reads, done) && !put_apart(o, o->writes, done))
		ctx_bug(o->s->ir->ctx, "steps that replace state have no order");
}

static bool fails_after_replacing(const Order *o)
{
	bool replaced = false;
	for (uint32_t k = 0; k < o->n; k++) {
		replaced |= o->replaces[o->order.data[k]];
		if (replaced && o->fails[o->order.data[k]])
			return true;
	}
	return false;
}

static bool replaces_donated(const Order *o, uint32_t step)
{
	const Numbers *makes = &o->makes[step];
	for (uint32_t k = 0; k < makes->n; k++) {
		const StateVersion *v = &o->s->state->version.data[makes->data[k]];
		if (is_donated(o->s, v->root) && o->s->state->donates[v->output])
			return true;
	}
	return false;
}

/* Whether a call that fails may have written memory of an input. */
static bool half_updates(const Order *o)
{
	bool replaced = false;
	for (uint32_t k = 0; k < o->n; k++) {
		uint32_t step = o->order.data[k];
		if (o->fails[step] && (replaced || replaces_donated(o, step)))
			return true;
		replaced |= replaces_donated(o, step);
	}
	return false;
}

/* Marks the steps that checks come after, from the last step to the first. */
static void find_needed(Order *o)
{
	for (uint32_t k = o->n; k-- > 0;) {
		uint32_t step = o->order.data[k];
		o->needed[step] = o->fails[step];
		for (uint32_t i = 0; i < o->next[step].n; i++)
			o->needed[step] |= o->needed[o->next[step].data[i]];
	}
}

/* ---- one buffer ---- */

static void rename_list(Lower *s, StepList *list, const BufId *to)
{
	for (uint32_t i = 0; i < list->step.n; i++) {
		Step *step = &list->step.data[i];
		StepList *inner[MAX_STEP_LISTS];
		Kernel *k = step->kernel;
		for (uint32_t x = 1; k && x < k->kx.n; x++)
			k->kx.data[x].buf = to[k->kx.data[x].buf.i];
		for (uint32_t x = 0; k && x < k->stage.n; x++)
			k->stage.data[x].store.buf = to[k->stage.data[x].store.buf.i];
		if (step->kind == STEP_CALL) {
			StepCall *call = arena_dup(s->arena, step->call, sizeof *call);
			uint32_t n = call->op->nin + call->op->nout;
			BufId *buf = arena_dup(s->arena, call->buf, n * sizeof *buf);
			for (uint32_t x = 0; x < n; x++)
				buf[x] = to[buf[x].i];
			call->buf = buf;
			step->call = call;
		}
		if (step->kind == STEP_SAVE) {
			StepSave *save = arena_dup(s->arena, step->save, sizeof *save);
			*save = (StepSave){to[save->state.i], to[save->values.i], to[save->at.i],
					   to[save->record.i], save->n};
			step->save = save;
		}
		step->from = to[step->from.i];
		step->to = to[step->to.i];
		step->pred = to[step->pred.i];
		for (uint32_t c = 0; c < step->ncarry; c++)
			step->carry[c] = (struct StepCarry){to[step->carry[c].from.i],
							    to[step->carry[c].to.i]};
		for (uint32_t x = 0, n = step_lists(step, inner); x < n; x++)
			rename_list(s, inner[x], to);
	}
}

static void join_versions(Lower *s)
{
	Lowered *l = s->l;
	BufId *to = ARENA_ARRAY(s->arena, BufId, l->buf.n),
	      *of_state = ARENA_ARRAY(s->arena, BufId, l->state.n);
	BufId *of_output = ARENA_ARRAY(s->arena, BufId, s->g->output.n);
	uint32_t n = 1;
	for (uint32_t k = 1; k < l->buf.n; k++) {
		Buffer b = l->buf.data[k];
		BufId *known = b.kind == BUF_STATE    ? &of_state[b.k]
			       : b.kind == BUF_OUTPUT ? &of_output[b.k]
						      : NULL;
		if (known && known->i) {
			to[k] = *known;
			continue;
		}
		to[k] = (BufId){n};
		if (known)
			*known = to[k];
		if (b.kind == BUF_STATE)
			b.name = l->state.data[b.k].name;
		l->buf.data[n++] = b;
	}
	l->buf.n = n;
	rename_list(s, &l->steps, to);
}

/* ---- all of it ---- */

/* Adds copies, in front of all steps, of what an output keeps of a donated input; a copy does
 * nothing where both are the same memory. */
static void copy_donated(Lower *s)
{
	StepList *list = &s->l->steps, all = *list;
	memset(&list->step, 0, sizeof list->step);
	const StateVersion *version = s->state->version.data,
			   **after = ARENA_ARRAY(s->arena, const StateVersion *, s->state->nroot);
	for (uint32_t k = s->state->nroot; k < s->state->version.n; k++) {
		const StateVersion *root = version_before(s, &version[k]);
		if (root && root - version < s->state->nroot && !after[root - version])
			after[root - version] = &version[k];
	}
	for (uint32_t k = s->l->state.n; k < s->state->nroot; k++) {
		const StateVersion *v = after[k];
		if (s->state->copied[k - s->l->state.n])
			array_push(s->arena, &list->step,
				   (Step){.kind = STEP_COPY, .from = v->before, .to = v->buf});
	}
	for (uint32_t k = 0; k < all.step.n; k++)
		array_push(s->arena, &list->step, all.step.data[k]);
}

/* Notes, for what comes after lowering, which outputs may have the memory of which inputs. */
static void note_donated(Lower *s)
{
	const Graph *g = s->g;
	/* by input: which of the caller's */
	int32_t *user = ARENA_ARRAY(s->arena, int32_t, g->input.n);
	for (uint32_t i = 0, n = 0; i < g->input.n; i++)
		user[i] = (int32_t)(n += g->input.data[i].kind == INPUT_USER) - 1;
	for (uint32_t k = 0; k < g->output.n; k++) {
		int32_t in = s->state->donates[k] ? user[g->output.data[k].writes] : -1;
		if (!graph_output_is_state(g, k))
			array_push(s->arena, &s->l->donates, in);
	}
	for (uint32_t k = s->l->state.n; k < s->state->version.n; k++)
		if (is_donated(s, s->state->version.data[k].root))
			buf_of(s->l, s->state->version.data[k].buf)->donated = true;
}

bool lower_order_steps(Lower *s)
{
	copy_donated(s);
	StepList *list = &s->l->steps;
	uint32_t n = list->step.n, nversion = s->state->version.n;
	Arena *a = s->arena;
	Order o = {.s = s,
		   .step = list->step.data,
		   .n = n,
		   .next = ARENA_ARRAY(a, Numbers, n),
		   .before = ARENA_ARRAY(a, uint32_t, n),
		   .writer = ARENA_ARRAY(a, uint32_t, s->l->buf.n),
		   .reader = ARENA_ARRAY(a, Numbers, s->l->buf.n),
		   .reads = ARENA_ARRAY(a, Numbers, nversion),
		   .writes = ARENA_ARRAY(a, Numbers, nversion),
		   .sees = ARENA_ARRAY(a, Numbers, n),
		   .makes = ARENA_ARRAY(a, Numbers, n),
		   .depth = ARENA_ARRAY(a, uint32_t, nversion),
		   .fails = ARENA_ARRAY(a, bool, n),
		   .replaces = ARENA_ARRAY(a, bool, n),
		   .needed = ARENA_ARRAY(a, bool, n)};
	find_edges(&o);
	if (s->state->again)
		return false;
	sort_steps(&o, false);
	if (o.order.n < n) {
		break_circle(&o);
		return false;
	}
	if (fails_after_replacing(&o)) {
		find_needed(&o);
		sort_steps(&o, true);
	}
	s->l->half_updates = half_updates(&o);
	s->l->cancellable = s->opt->cancellable;
	Step *step = arena_dup(a, list->step.data, n * sizeof *step);
	for (uint32_t k = 0; k < n; k++)
		list->step.data[k] = step[o.order.data[k]];
	lower_save_state(s);
	note_donated(s);
	join_versions(s);
	return true;
}
