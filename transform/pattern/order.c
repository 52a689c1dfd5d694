/* Places with several outputs. A place may be replaced if it can become one step: no value that it
 * reads depends on a reader of one of its outputs. In program order such a reader may still stand
 * in front of what the place reads; then nodes move up, in front of what depends on them.
 *
 * Besides its operands a node depends on the effect before it, and on the node that finds a size
 * that it uses. */
#include "transform/pattern/priv.h"

typedef ARRAY(Node) Nodes;

/* ---- whether a place may be one step ---- */

typedef struct {
	const Patterns *x;
	Nodes todo;
	bool *seen;   /* by node of g */
	bool *walked; /* by place that was found before */
	bool begins;  /* the nodes of the place itself are left out */
} PlaceWalk;

static void push(PlaceWalk *k, Node n)
{
	if (k->seen[n.i] || (k->begins && k->x->call[n.i].i))
		return;
	k->seen[n.i] = true;
	array_push(k->x->g->ir->ctx->scratch, &k->todo, n);
}

static void push_users(PlaceWalk *k, Node finder)
{
	const Graph *g = k->x->g;
	const SymTab *syms = graph_syms(g);
	for (uint32_t v = 0; v < sym_nvars(syms); v++) {
		Sym var = sym_var_at(syms, v);
		if (sym_var_kind(syms, var) != SYMVAR_UNBACKED || !node_finds(g, finder, var))
			continue;
		for (Node n = node_next(g, finder); n.i; n = node_next(g, n))
			if (node_uses(g, n, var))
				push(k, n);
	}
}

static Node next_effect(const Graph *g, Node n)
{
	do
		n = node_next(g, n);
	while (n.i && !node_has_effect(g, n));
	return n;
}

static void push_dependents(PlaceWalk *k, Node n)
{
	const Graph *g = k->x->g;
	for (Use u = node_data(g, n)->first_use; u.i; u = g->use.data[u.i].next)
		push(k, g->use.data[u.i].user);
	push_users(k, n);
	Node next = node_has_effect(g, n) ? next_effect(g, n) : (Node){0};
	if (next.i)
		push(k, next);
}

static void push_place(PlaceWalk *k, const Node *node)
{
	const Graph *p = k->x->pattern;
	for (Node q = p->first; q.i; q = node_next(p, q))
		if (pattern_is_call(p, q))
			push_dependents(k, node[q.i]);
}

bool pattern_is_one_step(const Patterns *x, const Node *node)
{
	Arena *scratch = x->g->ir->ctx->scratch;
	PlaceWalk k = {.x = x, .seen = ARENA_ARRAY(scratch, bool, x->g->node.n), .begins = true};
	k.walked = ARENA_ARRAY(scratch, bool, x->place.n);
	push_place(&k, node);
	k.begins = false;
	while (k.todo.n) {
		Node n = k.todo.data[--k.todo.n];
		const uint32_t owner = x->owner[n.i];
		if (x->call[n.i].i)
			return false;
		if (!owner) {
			push_dependents(&k, n);
		} else if (!k.walked[owner - 1]) {
			k.walked[owner - 1] = true;
			push_place(&k, x->place.data[owner - 1].node);
		}
	}
	return true;
}

/* ---- order ---- */

typedef enum { UNSEEN, WAITS, PLACED } NodeState;

typedef struct {
	Graph *g;
	uint8_t *state;  /* NodeState by node */
	Node *effect;    /* by node with an effect: the one before it */
	ARRAY(Sym) size; /* sizes that nodes find, and ... */
	Nodes finder;    /* ... the first node that finds each */
	Nodes open, order;
} NodeOrder;

static void find_hidden(NodeOrder *o)
{
	const Graph *g = o->g;
	const SymTab *syms = graph_syms(g);
	Node effect = {0};
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		o->effect[n.i] = effect;
		effect = node_has_effect(g, n) ? n : effect;
	}
	for (uint32_t v = 0; v < sym_nvars(syms); v++) {
		Sym var = sym_var_at(syms, v);
		Node n = sym_var_kind(syms, var) == SYMVAR_UNBACKED ? g->first : (Node){0};
		while (n.i && !node_finds(g, n, var))
			n = node_next(g, n);
		if (!n.i)
			continue;
		array_push(g->ir->ctx->scratch, &o->size, var);
		array_push(g->ir->ctx->scratch, &o->finder, n);
	}
}

/* Returns a node that n depends on and that is not placed yet; none if there is none. */
static Node missing(const NodeOrder *o, Node n)
{
	const Graph *g = o->g;
	for (uint32_t k = 0; k < node_nin(g, n); k++) {
		Node in = node_in(g, n, k);
		if (in.i && o->state[in.i] != PLACED)
			return in;
	}
	for (uint32_t k = 0; k < o->size.n; k++) {
		Node by = o->finder.data[k];
		if (by.i != n.i && o->state[by.i] != PLACED && node_uses(g, n, o->size.data[k]))
			return by;
	}
	Node before = node_has_effect(g, n) ? o->effect[n.i] : (Node){0};
	return before.i && o->state[before.i] != PLACED ? before : (Node){0};
}

/* Places n behind all that it depends on. */
static void place_node(NodeOrder *o, Node n)
{
	Arena *scratch = o->g->ir->ctx->scratch;
	array_push(scratch, &o->open, n);
	while (o->open.n) {
		Node top = o->open.data[o->open.n - 1];
		Node need = o->state[top.i] == PLACED ? (Node){0} : missing(o, top);
		if (need.i && o->state[need.i] == WAITS)
			ctx_bug(o->g->ir->ctx, "weft_replace_pattern: node %s depends on itself",
				graph_name(o->g, need));
		if (need.i) {
			o->state[top.i] = WAITS;
			array_push(scratch, &o->open, need);
			continue;
		}
		if (o->state[top.i] != PLACED)
			array_push(scratch, &o->order, top);
		o->state[top.i] = PLACED;
		o->open.n--;
	}
}

void pattern_order(Graph *g)
{
	Arena *scratch = g->ir->ctx->scratch;
	NodeOrder o = {.g = g,
		       .state = ARENA_ARRAY(scratch, uint8_t, g->node.n),
		       .effect = ARENA_ARRAY(scratch, Node, g->node.n)};
	find_hidden(&o);
	for (Node n = g->first; n.i; n = node_next(g, n))
		place_node(&o, n);
	graph_set_order(g, o.order.data, o.order.n);
}
