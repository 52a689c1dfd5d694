/* Bodies make what is made of nothing themselves.
 *
 *   %z = full(value=0.0, shape=[8])
 *   %c = cond(%p, [%x, %z], yes=graph(%x, %z) { %m = maximum(%x, %z)  return %m }, ...)
 * becomes
 *   %c = cond(%p, [%x], yes=graph(%x) { %z = full(value=0.0, shape=[8])  %m = maximum(%x, %z)
 *                                                                        return %m }, ...)
 *
 * Constants, splats and the like that a body only reads need not be stored for it, and inside of it
 * they fold. Inputs that no body reads go, too. Ends because every step removes an operand. Does
 * not touch what loops carry or slice. */
#include <string.h>

#include "passes/pass.h"

/* The graphs of a node, and the operands that are the last inputs of all of them. */
typedef struct {
	Graph *body[2];
	uint32_t nbody, arg; /* arg: of the schema, the last list of operands */
	uint32_t first, n;
} Shared;

static bool find_shared(const Graph *g, Node n, Shared *s)
{
	const Schema *schema = op_schema(node_op(g, n));
	Graph *body;
	*s = (Shared){0};
	for (uint32_t k = 0; s->nbody < 2 && (body = node_next_body(g, n, &k));)
		s->body[s->nbody++] = body;
	for (uint32_t k = 0; k < schema->narg; k++)
		if (schema->arg[k].kind == ARG_tensors)
			s->arg = k;
	if (s->nbody)
		s->n = node_args(g, n, schema->arg[s->arg].name, &s->first);
	return s->n != 0;
}

static Node input_of(const Shared *s, uint32_t body, uint32_t k)
{
	const Graph *g = s->body[body];
	return g->input.data[g->input.n - s->n + k].node;
}

static bool is_made_of_nothing(const Graph *g, Node x)
{
	return op_lower(node_op(g, x))->role == LOWER_LEAF || node_const(g, x).i;
}

static bool is_read(const Shared *s, uint32_t k)
{
	for (uint32_t b = 0; b < s->nbody; b++)
		if (node_nuses(s->body[b], input_of(s, b, k)))
			return true;
	return false;
}

/* Makes readers of an input read a node of the body's own, made like x. */
static void make_inside(const Graph *g, Node x, Graph *body, Node input)
{
	const NodeData d = *node_data(g, x);
	if (!node_nuses(body, input))
		return;
	Node own = graph_add(body, node_next(body, input), d.op, NULL, 0, d.attr, d.type, d.loc);
	graph_replace(body, input, own);
}

static void remove_input(Graph *body, uint32_t k)
{
	GraphInput *in = body->input.data;
	graph_erase(body, in[k].node);
	memmove(in + k, in + k + 1, (body->input.n - k - 1) * sizeof *in);
	body->input.n--;
}

/* Makes the node again without those of its shared operands that are not kept. */
static void rebuild(Graph *g, Node n, const Shared *s, const bool *kept)
{
	const NodeData d = *node_data(g, n);
	const Schema *schema = op_schema(d.op);
	Node *in = ARENA_ARRAY(g->ir->ctx->scratch, Node, d.nin);
	Attr attr[MAX_ARGS];
	uint32_t nin = 0, nkept = 0;
	for (uint32_t k = 0; k < d.nin; k++) {
		bool shared = k >= s->first && k < s->first + s->n,
		     keep = !shared || kept[k - s->first];
		nkept += shared && keep;
		if (keep)
			in[nin++] = node_in(g, n, k);
	}
	node_copy_attrs(g, n, attr);
	attr[s->arg] = attr_int(g->ir, nkept);
	Node made =
		graph_add(g, n, d.op, in, nin, ir_attrs(g->ir, schema->narg, attr), d.type, d.loc);
	if (node_nuses(g, n))
		graph_replace(g, n, made);
	graph_erase(g, n);
}

static bool sink(Graph *g, Node n)
{
	Shared s;
	bool changed = false;
	if (!find_shared(g, n, &s))
		return false;
	bool *kept = ARENA_ARRAY(g->ir->ctx->scratch, bool, s.n);
	for (uint32_t k = 0; k < s.n; k++) {
		Node x = node_in(g, n, s.first + k);
		kept[k] = is_read(&s, k) && !is_made_of_nothing(g, x);
		changed |= !kept[k];
		for (uint32_t b = 0; b < s.nbody && !kept[k]; b++)
			make_inside(g, x, s.body[b], input_of(&s, b, k));
	}
	if (!changed)
		return false;
	for (uint32_t b = 0; b < s.nbody; b++)
		for (uint32_t k = s.n, first = s.body[b]->input.n - s.n; k-- > 0;)
			if (!kept[k])
				remove_input(s.body[b], first + k);
	rebuild(g, n, &s, kept);
	return true;
}

/* Goes from the outside in: what an inner body reads may come from further out. */
bool pass_sink(Graph *g, PassCtx *c)
{
	bool changed = false;
	for (Node n = g->first, next; n.i; n = next) {
		next = node_next(g, n);
		changed |= sink(g, n);
	}
	return pass_subgraphs(g, c, pass_sink) || changed;
}
