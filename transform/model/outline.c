#include "transform/model/outline.h"

#include "ir/op/op.h"

typedef struct {
	const Outline *o;
	NodeList *captured;
	Graph *to;
	bool *needed; /* by node from `first` on */
	Node *map;    /* likewise: in `to` */
} Outlining;

/* Whether the outline is about the node. */
static bool is_inside(const Outline *o, Node n)
{
	return n.i >= o->first && node_op(o->from, n) != OP_input && !node_const(o->from, n).i;
}

static void mark_needed(Outlining *s)
{
	const Outline *o = s->o;
	const Graph *g = o->from;
	for (uint32_t k = 0; k < o->nout; k++)
		if (is_inside(o, o->out[k]))
			s->needed[o->out[k].i - o->first] = true;
	for (Node n = g->last; n.i != o->in[0].i; n = node_prev(g, n)) {
		if (!is_inside(o, n) || !s->needed[n.i - o->first])
			continue;
		for (uint32_t k = 0; k < node_nin(g, n); k++)
			if (is_inside(o, node_in(g, n, k)))
				s->needed[node_in(g, n, k).i - o->first] = true;
	}
}

/* Returns the node of the new graph that stands for n. */
static Node outlined(Outlining *s, Node n)
{
	const Graph *g = s->o->from;
	if (!n.i)
		return n;
	if (is_inside(s->o, n))
		return s->map[n.i - s->o->first];
	for (uint32_t k = 0; k < s->captured->n; k++)
		if (s->captured->data[k].i == n.i)
			return s->to->input.data[s->o->nin + k].node;
	array_push(g->ir->ctx->scratch, s->captured, n);
	return graph_add_input(s->to, "", INPUT_USER, node_type_id(g, n));
}

static void copy_node(Outlining *s, Node n)
{
	const Graph *g = s->o->from;
	const NodeData d = *node_data(g, n);
	Node *in = ARENA_ARRAY(g->ir->ctx->scratch, Node, d.nin);
	for (uint32_t k = 0; k < d.nin; k++)
		in[k] = outlined(s, node_in(g, n, k));
	s->map[n.i - s->o->first] =
		graph_add(s->to, (Node){0}, d.op, in, d.nin, d.attr, d.type, d.loc);
}

Graph *graph_outline(const Outline *o, NodeList *captured)
{
	Graph *g = o->from;
	Arena *scratch = g->ir->ctx->scratch;
	Outlining s = {.o = o,
		       .captured = captured,
		       .to = graph_beside(g, o->name),
		       .needed = ARENA_ARRAY(scratch, bool, g->node.n - o->first),
		       .map = ARENA_ARRAY(scratch, Node, g->node.n - o->first)};
	s.to->scope = g->scope;
	mark_needed(&s);
	for (uint32_t k = 0; k < o->nin; k++)
		s.map[o->in[k].i - o->first] =
			graph_add_input(s.to, "", INPUT_USER, node_type_id(g, o->in[k]));
	for (Node n = o->in[0]; n.i; n = node_next(g, n))
		if (is_inside(o, n) && s.needed[n.i - o->first] && !s.map[n.i - o->first].i)
			copy_node(&s, n);
	for (uint32_t k = 0; k < o->nout; k++)
		graph_add_output(s.to, arena_printf(scratch, "x%u", k), outlined(&s, o->out[k]),
				 -1);
	return s.to;
}

bool graph_erase_outlined(const Outline *o)
{
	Graph *g = o->from;
	bool read = false;
	for (uint32_t k = 0; k < g->output.n; k++)
		read |= is_inside(o, g->output.data[k].node);
	for (Node n = g->last, prev; n.i && n.i >= o->first && !read; n = prev) {
		prev = node_prev(g, n);
		if (!is_inside(o, n))
			continue;
		read = node_nuses(g, n) != 0;
		if (!read)
			graph_erase(g, n);
	}
	return !read;
}
