/* Gives nodes that draw random numbers a key and a stream.
 *
 *   graph @main(%x: f32[8]) {
 *     %y = aten.dropout(%x, p=0.5, train=true)
 *     return %y
 *   }
 * becomes
 *   graph @main(%x: f32[8], %rng: u64[2] buffer #1 "weft.rng") {
 *     %key = random_key(%rng)
 *     %y = aten.dropout(%x, %key, p=0.5, train=true, stream=0)
 *     %next = add(%rng, [0, 1])
 *     return %y, %next -> "weft.rng"
 *   }
 *
 * A scan gets the keys of its rounds as one more operand that it takes slices of, a while carries a
 * key, each folded from the one outside. Not part of the pipeline: done once, when a graph has been
 * read. What the pipeline does with state is at the end: pass_state. */
#include "passes/random.h"

#include <string.h>

#include "ir/build/verify.h"
#include "ir/build/state.h"

typedef struct {
	Graph *g;
	uint32_t stream; /* the next one */
	Cipher cipher;
} Attach;

static bool lacks_key(const Graph *g, Node n)
{
	return node_draws(g, n) && !node_arg(g, n, "rng").i;
}

static bool node_lacks(const Graph *g, Node n);

static bool graph_lacks(const Graph *g)
{
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (node_lacks(g, n))
			return true;
	return false;
}

static bool node_lacks(const Graph *g, Node n)
{
	const Graph *body;
	if (lacks_key(g, n))
		return true;
	for (uint32_t k = 0; (body = node_next_body(g, n, &k));)
		if (graph_lacks(body))
			return true;
	return false;
}

/* Returns the first number behind the streams of the nodes that have a key, bodies included. */
static uint32_t first_free_stream(const Graph *g)
{
	uint32_t free = 0;
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		const Graph *body;
		uint32_t used = node_draws(g, n) && !lacks_key(g, n)
					? (uint32_t)node_int(g, n, "stream") + 1
					: 0;
		free = used > free ? used : free;
		for (uint32_t k = 0; (body = node_next_body(g, n, &k));) {
			used = first_free_stream(body);
			free = used > free ? used : free;
		}
	}
	return free;
}

/* ---- one node ---- */

static Attr *attrs_of(Graph *g, Node n)
{
	Attr *attr = ARENA_ARRAY(g->ir->ctx->scratch, Attr, MAX_ARGS);
	node_copy_attrs(g, n, attr);
	return attr;
}

/* Replaces n by a node with one more operand in place `at`; those behind it move on. */
static Node with_operand(Graph *g, Node n, uint32_t at, Node x, const Attr *attr, TypeId type)
{
	const NodeData d = *node_data(g, n);
	Node *in = arena_calloc(g->ir->ctx->scratch, d.nin + at + 1, sizeof *in);
	for (uint32_t k = 0; k < at; k++)
		if (k < d.nin)
			in[k] = node_in(g, n, k);
	for (uint32_t k = at; k < d.nin; k++)
		in[k + 1] = node_in(g, n, k);
	in[at] = x;
	uint32_t nin = d.nin < at ? at + 1 : d.nin + 1u;
	Node new = graph_add(g, n, d.op, in, nin, ir_attrs(g->ir, op_schema(d.op)->narg, attr),
			     type, d.loc);
	if (node_nuses(g, n))
		graph_replace(g, n, new);
	graph_erase(g, n);
	return new;
}

static void attach_node(Attach *a, Graph *g, Node n, Node key)
{
	uint32_t at;
	Op op = node_op(g, n);
	Attr *attr = attrs_of(g, n);
	attr[op_arg_index(op, "stream")] = attr_int(g->ir, a->stream++);
	attr[op_arg_index(op, "cipher")] = cipher_attr(g->ir, a->cipher);
	node_args(g, n, "rng", &at);
	if (at < node_nin(g, n)) {
		graph_set_operand(g, n, at, key);
		graph_set_attrs(g, n, ir_attrs(g->ir, op_schema(op)->narg, attr));
	} else {
		with_operand(g, n, at, key, attr, node_type_id(g, n));
	}
}

/* ---- bodies ---- */

static bool attach_graph(Attach *, Graph *, Node key);

static TypeId key_type(Ir *ir)
{
	return ir_type_ints(ir, DT_u64, 1, (int64_t[]){2});
}

/* Adds an input to a body, as number `at`. */
static Node add_key(Graph *body, uint32_t at)
{
	if (at >= body->input.n)
		return graph_add_input(body, "rng", INPUT_USER, key_type(body->ir));
	Node n = graph_add(body, body->input.data[at].node, OP_input, NULL, 0, (AttrId){0},
			   key_type(body->ir), (LocId){0});
	graph_set_name(body, n, "rng");
	array_push(body->ir->ctx->arena, &body->input, (GraphInput){0});
	GraphInput *in = body->input.data;
	memmove(in + at + 1, in + at, (body->input.n - 1 - at) * sizeof *in);
	in[at] = (GraphInput){.node = n, .kind = INPUT_USER, .name = "rng"};
	return n;
}

static void one_more(Graph *g, Node n, Attr *attr, const char *list)
{
	Attr *count = &attr[op_arg_index(node_op(g, n), list)];
	int64_t old = count->kind == ATTR_int ? sym_const_or(graph_syms(g), count->s, 0) : 0;
	*count = attr_int(g->ir, old + 1);
}

/* Gives both branches the key of the condition. */
static bool attach_cond(Attach *a, Graph *g, Node n, Node key)
{
	uint32_t nin = node_nin(g, n);
	Attr *attr = attrs_of(g, n);
	one_more(g, n, attr, "xs");
	for (int k = 0; k < 2; k++) {
		Graph *body = attr[op_arg_index(OP_cond, k ? "no" : "yes")].graph;
		TRY(attach_graph(a, body, add_key(body, nin - 1)));
	}
	with_operand(g, n, nin, key, attr, node_type_id(g, n));
	return true;
}

static bool attach_scan(Attach *a, Graph *g, Node n, Node key)
{
	uint32_t first, at = node_args(g, n, "init", &first);
	at += node_args(g, n, "xs", &first);
	Build b = pass_build(g, n);
	Attr *attr = attrs_of(g, n);
	Graph *body = attr[op_arg_index(OP_scan, "body")].graph;
	TRY(attach_graph(a, body, add_key(body, at)));
	one_more(g, n, attr, "xs");
	Node keys = b_random_fold(&b, a->cipher, key, b_iota(&b, DT_u64, node_sym(g, n, "length")));
	with_operand(g, n, at, keys, attr, node_type_id(g, n));
	return true;
}

/* Makes the loop carry the key of the round; that of the next round is number 0 of it. */
static bool attach_while(Attach *a, Graph *g, Node n, Node key)
{
	uint32_t first, at = node_args(g, n, "init", &first);
	Attr *attr = attrs_of(g, n);
	Graph *body = attr[op_arg_index(OP_while, "body")].graph,
	      *test = attr[op_arg_index(OP_while, "cond")].graph;
	if (graph_lacks(test))
		return ctx_error(g->ir->ctx, node_where(g, n),
				 "random numbers in the condition of a loop are not supported");
	add_key(test, at);
	Node round = add_key(body, at);
	TRY(attach_graph(a, body, round));
	Build b = {.g = body};
	graph_add_output(body, "rng",
			 b_random_fold(&b, a->cipher, round, b_full_int(&b, DT_u64, 0, 0, NULL)),
			 -1);
	one_more(g, n, attr, "init");
	const Type t = *node_type(g, n);
	TypeId *elem = ARENA_ARRAY(g->ir->ctx->scratch, TypeId, t.n + 1);
	memcpy(elem, t.elem, t.n * sizeof *elem);
	elem[t.n] = key_type(g->ir);
	Build outer = pass_build(g, n);
	Node own = b_random_fold(&outer, a->cipher, key,
				 b_full_int(&outer, DT_u64, a->stream++, 0, NULL));
	with_operand(g, n, at, own, attr, ir_tuple(g->ir, t.n + 1, elem));
	return true;
}

static bool attach_bodies(Attach *a, Graph *g, Node n, Node key)
{
	switch (node_op(g, n)) {
	case OP_cond:
		return attach_cond(a, g, n, key);
	case OP_scan:
		return attach_scan(a, g, n, key);
	default:
		return attach_while(a, g, n, key);
	}
}

static bool attach_graph(Attach *a, Graph *g, Node key)
{
	for (Node n = g->first, next; n.i; n = next) {
		next = node_next(g, n);
		if (!node_lacks(g, n))
			continue;
		if (node_has_graph(g, n))
			TRY(attach_bodies(a, g, n, key));
		else
			attach_node(a, g, n, key);
	}
	return true;
}

/* ---- the graph ---- */

/* Returns the constant in which the state begins. */
static ConstId first_state(Ir *ir, uint64_t seed)
{
	for (uint32_t k = 1; k < ir->constant.n; k++) /* of a graph that had it before */
		if (ir->constant.data[k].dtype == DT_u64 &&
		    !strcmp(ir->constant.data[k].name, RANDOM_STATE) &&
		    ir->constant.data[k].bytes == sizeof(uint64_t[2]) &&
		    !memcmp(ir->constant.data[k].data, (uint64_t[]){seed, 0}, sizeof(uint64_t[2])))
			return (ConstId){k};
	uint64_t *first = ARENA_ARRAY(ir->ctx->arena, uint64_t, 2);
	int64_t *dim = ARENA_ARRAY(ir->ctx->arena, int64_t, 1);
	first[0] = seed;
	first[1] = 0;
	dim[0] = 2;
	return ir_const(ir, (Const){.name = RANDOM_STATE,
				    .dtype = DT_u64,
				    .rank = 1,
				    .dim = dim,
				    .data = first,
				    .bytes = 2 * sizeof *first});
}

/* Adds the source behind what is there: names and places of the model's own inputs stay. */
static Node add_source(Graph *g, const RandomSource *source)
{
	Ir *ir = g->ir;
	for (uint32_t k = 0; k < g->input.n; k++) {
		Node n = g->input.data[k].node;
		if (strcmp(g->input.data[k].name, RANDOM_STATE) != 0)
			continue;
		if (node_type_id(g, n).i == key_type(ir).i)
			return n;
		ctx_error(ir->ctx, node_where(g, n),
			  "the state of random numbers is u64[2], got %s",
			  type_str(ir, node_type_id(g, n)));
		return (Node){0};
	}
	Node n = graph_add_input(g, RANDOM_STATE, source->input ? INPUT_USER : INPUT_BUFFER,
				 key_type(ir));
	graph_set_name(g, n, "rng");
	if (source->input)
		return n;
	g->input.data[g->input.n - 1].init = first_state(ir, source->seed);
	uint32_t state = g->input.n - 1;
	Build b = {.g = g};
	graph_add_output(g, RANDOM_STATE, b_bin(&b, OP_add, n, b_iota(&b, DT_u64, b_int(&b, 2))),
			 (int32_t)state);
	return n;
}

bool random_attach(Graph *g, const RandomSource *source)
{
	if (!graph_lacks(g))
		return true;
	Attach a = {.g = g, .stream = first_free_stream(g), .cipher = source->cipher};
	Node state = add_source(g, source);
	Build b = {.g = g, .before = graph_behind_inputs(g)};
	Node key = b_random_key(&b, source->cipher, state);
	return key.i && attach_graph(&a, g, key) && graph_verify(g);
}

/* ---- keys that nothing reads ---- */

/* Loops and branches in which nothing draws any more, for instance after a pass of the user has
 * removed dropout, lose the keys that they had for it:
 *
 *   %w = while([%x, %key], [%n], cond=..., body=graph @body(%x: f32[8], %k: u64[2], %n: i64[]) {
 *     %y = sin(%x)
 *     %next = random_fold(%k, %zero)
 *     return %y, %next
 *   })
 * becomes
 *   %w = while([%x], [%n], cond=..., body=graph @body(%x: f32[8], %n: i64[]) {
 *     %y = sin(%x)
 *     return %y
 *   })
 *
 * Each step removes an operand, so this ends. */

static bool is_key(const Graph *g, Node x)
{
	const Type *t = x.i && node_is_tensor(g, x) ? node_type(g, x) : NULL;
	return t && t->dtype == DT_u64 && t->n && sym_is(graph_syms(g), t->dim[t->n - 1], 2);
}

static bool is_read(const Graph *g, Node n)
{
	return g->nread.data[n.i] || g->nout.data[n.i];
}

/* Replaces n by a node without operand `at`, which is in the list of that argument, and with
 * results of that type. */
static Node without_operand(Graph *g, Node n, uint32_t at, const char *list, TypeId type)
{
	const NodeData d = *node_data(g, n);
	const uint32_t narg = op_schema(d.op)->narg;
	Node *in = ARENA_ARRAY(g->ir->ctx->scratch, Node, d.nin + 1u);
	Attr *attr = attrs_of(g, n), *count = &attr[op_arg_index(d.op, list)];
	*count = attr_int(g->ir, sym_const(graph_syms(g), count->s) - 1);
	for (uint32_t k = 0, i = 0; k < d.nin; k++)
		if (k != at)
			in[i++] = node_in(g, n, k);
	Node new = graph_add(g, n, d.op, in, d.nin - 1u, ir_attrs(g->ir, narg, attr), type, d.loc);
	if (node_nuses(g, n))
		graph_replace(g, n, new);
	graph_erase(g, n);
	return new;
}

enum { MAX_BODIES = 2 };

/* A branch or loop: graphs whose inputs are what its lists of operands have, in order. */
typedef struct {
	Graph *g;
	Node n;
	Graph *body[MAX_BODIES]; /* the last one gives what a loop carries */
	int at[MAX_BODIES];      /* their arguments */
	uint32_t nbody;
	bool own; /* no other node has the bodies */
} Control;

/* Returns false for another node. */
static bool read_control(Graph *g, Node n, Control *c)
{
	static const char *const names[] = {"cond", "body", "yes", "no"};
	*c = (Control){.g = g, .n = n};
	for (size_t k = 0; k < sizeof names / sizeof *names && node_has_graph(g, n); k++) {
		int at = op_arg_index(node_op(g, n), names[k]);
		if (at < 0)
			continue;
		c->at[c->nbody] = at;
		c->body[c->nbody++] = node_attr(g, n, names[k])->graph;
	}
	return c->nbody > 0;
}

/* Copies the bodies, once: other nodes may have the same ones, whose operands stay. */
static void own_bodies(Control *c)
{
	const uint32_t narg = op_schema(node_op(c->g, c->n))->narg;
	Attr *attr = attrs_of(c->g, c->n);
	for (uint32_t i = 0; i < c->nbody && !c->own; i++)
		attr[c->at[i]] = attr_graph(c->body[i] = graph_clone(c->body[i]));
	graph_set_attrs(c->g, c->n, ir_attrs(c->g->ir, narg, attr));
	c->own = true;
}

static bool is_read_in(const Control *c, uint32_t input)
{
	for (uint32_t i = 0; i < c->nbody; i++)
		if (is_read(c->body[i], c->body[i]->input.data[input].node))
			return true;
	return false;
}

static void remove_inputs(const Control *c, uint32_t input)
{
	for (uint32_t i = 0; i < c->nbody; i++)
		graph_remove_input(c->body[i], input);
}

/* Removes the keys of the list that no body reads. before: how many inputs of the bodies lie ahead.
 */
static void drop_unread(Control *c, const char *list, uint32_t before)
{
	uint32_t first, count = node_args(c->g, c->n, list, &first);
	for (uint32_t k = count; k-- > 0;) {
		if (!is_key(c->g, node_in(c->g, c->n, first + k)) || is_read_in(c, before + k))
			continue;
		own_bodies(c);
		remove_inputs(c, before + k);
		c->n = without_operand(c->g, c->n, first + k, list, node_type_id(c->g, c->n));
	}
}

/* Whether input k of the body only makes result k: all that reads it, and what reads that. */
static bool makes_itself(const Graph *body, uint32_t k)
{
	bool *from = arena_calloc(body->ir->ctx->scratch, body->node.n, sizeof *from);
	from[body->input.data[k].node.i] = true;
	for (Node n = body->first; n.i; n = node_next(body, n)) {
		for (uint32_t i = 0; i < node_nin(body, n); i++)
			from[n.i] |= from[node_in(body, n, i).i];
		if (from[n.i] && node_has_effect(body, n))
			return false;
	}
	for (uint32_t o = 0; o < body->output.n; o++)
		if (o != k && from[body->output.data[o].node.i])
			return false;
	return true;
}

/* Whether something reads result k of the loop. */
static bool has_result(const Graph *g, Node loop, uint32_t k)
{
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (node_nin(g, n) && node_in(g, n, 0).i == loop.i && node_int(g, n, "index") == k)
			return true;
	return false;
}

/* Moves the results of the loop behind number k one forward. */
static void renumber(Graph *g, Node loop, uint32_t k)
{
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		if (!node_nin(g, n) || node_in(g, n, 0).i != loop.i ||
		    node_int(g, n, "index") <= k)
			continue;
		Attr attr[] = {attr_none(), attr_int(g->ir, node_int(g, n, "index") - 1)};
		graph_set_attrs(g, n, ir_attrs(g->ir, 2, attr));
	}
}

static TypeId type_without(Ir *ir, const Type *t, uint32_t k)
{
	TypeId *elem = ARENA_ARRAY(ir->ctx->scratch, TypeId, t->n + 1);
	memcpy(elem, t->elem, k * sizeof *elem);
	memcpy(elem + k, t->elem + k + 1, (t->n - 1 - k) * sizeof *elem);
	return ir_tuple(ir, t->n - 1, elem);
}

static bool is_only_carried(const Control *c, uint32_t k, uint32_t operand)
{
	const Graph *test = c->body[0];
	return is_key(c->g, node_in(c->g, c->n, operand)) && !has_result(c->g, c->n, k) &&
	       (c->nbody == 1 || !is_read(test, test->input.data[k].node)) &&
	       makes_itself(c->body[c->nbody - 1], k);
}

static void drop_carried(Control *c)
{
	uint32_t first, count = node_args(c->g, c->n, "init", &first);
	for (uint32_t k = count; k-- > 0;) {
		const Type t = *node_type(c->g, c->n);
		if (t.n == 1 || !is_only_carried(c, k, first + k))
			continue;
		own_bodies(c);
		Graph *body = c->body[c->nbody - 1];
		graph_remove_output(body, k);
		graph_dce(body);
		remove_inputs(c, k);
		renumber(c->g, c->n, k);
		TypeId type = type_without(c->g->ir, &t, k);
		c->n = without_operand(c->g, c->n, first + k, "init", type);
	}
}

static bool drop_keys(Graph *g);

/* Returns whether the node, or what is in its bodies, lost an operand. */
static bool drop_operands(Graph *g, Node n)
{
	const Schema *s = op_schema(node_op(g, n));
	const uint32_t nin = node_nin(g, n);
	uint32_t before = 0, first;
	bool changed = false;
	Control c;
	if (!read_control(g, n, &c))
		return false;
	for (uint32_t i = 0; i < c.nbody; i++)
		changed |= drop_keys(c.body[i]);
	for (uint32_t k = 0; k < s->narg; k++) {
		if (s->arg[k].kind != ARG_tensors)
			continue;
		if (strcmp(s->arg[k].name, "init") != 0)
			drop_unread(&c, s->arg[k].name, before);
		else
			drop_carried(&c);
		before += node_args(g, c.n, s->arg[k].name, &first);
	}
	return changed || node_nin(g, c.n) != nin;
}

static bool drop_keys(Graph *g)
{
	bool changed = false;
	for (Node n = g->first, next; n.i; n = next) {
		next = node_next(g, n);
		changed |= drop_operands(g, n);
	}
	return changed && (graph_dce(g), true);
}

/* ---- the state ---- */

/* Whether n's only reader is the node `by`. */
static bool is_read_by(const Graph *g, Node n, Node by)
{
	Use u = node_data(g, n)->first_use;
	return u.i && g->use.data[u.i].user.i == by.i && node_nuses(g, n) == 1;
}

bool random_release(Graph *g)
{
	bool changed = false;
	for (uint32_t k = 0; k < g->input.n; k++) {
		const GraphInput in = g->input.data[k];
		int32_t writer = graph_writer(g, k);
		if (in.kind == INPUT_USER || strcmp(in.name, RANDOM_STATE) != 0 || writer < 0)
			continue;
		changed = drop_keys(g);
		Node next = g->output.data[writer].node;
		if (g->output.n == 1 || !is_read_by(g, in.node, next) || g->nread.data[next.i] ||
		    g->nout.data[next.i] != 1 || g->nout.data[in.node.i])
			return changed;
		graph_remove_output(g, (uint32_t)writer);
		graph_dce(g);
		graph_remove_input(g, k);
		return true;
	}
	return false;
}

/* ---- state that a call leaves as it is ---- */

/* Removes the outputs by which state is written that keeps its value, and state that nothing reads:
 *
 *   graph @main(%x: f32[8], %s: f32[8] buffer #1 "sum", %rng: u64[2] buffer #2 "weft.rng") {
 *     %y = add(%x, %s)
 *     %step = iota(dtype=u64, n=2)
 *     %next = add(%rng, %step)
 *     return %y, %s -> "sum", %next -> "weft.rng"
 *   }
 * becomes
 *   graph @main(%x: f32[8], %s: f32[8] buffer #1 "sum") {
 *     %y = add(%x, %s)
 *     return %y
 *   }
 *
 * Calls of a model that writes state exclude each other; those of one that only reads it do not.
 * The state of random numbers goes when nothing draws. Other state stays in the model's table,
 * where it was: the functions of state set it as before. Each change removes an output, so this
 * ends. */
bool pass_state(Graph *g, PassCtx *c)
{
	(void)c;
	bool changed = graph_keep_unchanged(g);
	return random_release(g) || changed;
}
