/* Graphs as text and as drawings, as they are or after a pass. */
#include <string.h>

#include "driver/api/given.h"
#include "ir/build/text.h"
#include "ir/op/op.h"
#include "passes/pipeline.h"

typedef struct {
	Weft *w;
	const WeftGraph *g;
	const char *after;
	bool dot, found;
	Text out;
	size_t before; /* its length when the entry at hand began */
} GraphView;

/* Draws a node and the edges to it. Labels hold no quotes: names are identifiers, types have
 * none. */
static void draw_node(GraphView *v, const Graph *g, Node n)
{
	Op op = node_op(g, n);
	const Type *t = node_type(g, n);
	bool quiet = op == OP_input || op == OP_constant;
	text_printf(&v->out, "\tn%u [label=\"%s\\n%s", n.i, graph_name((Graph *)(uintptr_t)g, n),
		    op_name(op));
	if (t && t->dtype != DT_none) {
		text_printf(&v->out, "\\n%s[", dtype_name(t->dtype));
		for (uint32_t d = 0; d < t->n; d++)
			text_printf(&v->out, "%s%s", d ? ", " : "",
				    sym_str(graph_syms(g), t->dim[d]));
		text_add(&v->out, "]");
	}
	text_printf(&v->out, "\", shape=%s];\n", quiet ? "ellipse" : "box");
	for (uint32_t k = 0; k < node_nin(g, n); k++)
		if (node_in(g, n, k).i)
			text_printf(&v->out, "\tn%u -> n%u;\n", node_in(g, n, k).i, n.i);
}

static void draw(GraphView *v, const Graph *g)
{
	text_printf(&v->out, "digraph \"%s\" {\n\tnode [fontname=\"monospace\", fontsize=10];\n",
		    g->name);
	for (Node n = g->first; n.i; n = node_next(g, n))
		draw_node(v, g, n);
	for (uint32_t k = 0; k < g->output.n; k++)
		text_printf(&v->out, "\tout%u [label=\"%s\", shape=ellipse];\n\tn%u -> out%u;\n", k,
			    g->output.data[k].name, g->output.data[k].node.i, k);
	text_add(&v->out, "}\n");
}

static void render(GraphView *v, const Graph *g)
{
	v->out.n = v->before;
	if (v->dot)
		draw(v, g);
	else
		graph_print(g, &v->out);
	v->found = true;
}

/* Draws the graph behind a pass. A pass may run several times: the last run that changed
 * something counts. */
static void after_pass(void *user, const char *pass, const Graph *g, bool changed)
{
	GraphView *v = user;
	if (!strcmp(pass, v->after) && (changed || !v->found))
		render(v, g);
}

static bool view_entry(GraphView *v, const GraphEntry *e)
{
	v->w->ctx->file = e->path;
	v->before = v->out.n;
	v->found = false;
	if (!v->after) {
		render(v, e->g);
		return true;
	}
	PipelineOptions po = {.after = after_pass, .user = v};
	TRY(pipeline_run(graph_clone(e->g), &po) || v->found);
	return v->found || ctx_error(v->w->ctx, NULL, "no pass %s%s", v->after,
				     pipeline_hint(weft_arena(v->w), v->after));
}

static bool view(void *arg)
{
	GraphView *v = arg;
	const char *function = v->dot ? "weft_graph_dot" : "weft_graph_text";
	TRY(v->after ? given_graph(v->w, function, v->g)
		     : given_graph_or_body(v->w, function, (WeftGraph *)(uintptr_t)v->g));
	TRY(!v->dot || graph_is_one(v->w, v->g));
	text_init(&v->out, weft_arena(v->w));
	for (uint32_t k = 0; k < v->g->nentry; k++)
		TRY(view_entry(v, &v->g->entry[k]));
	return true;
}

const char *weft_graph_text(Weft *w, const WeftGraph *g, const char *after)
{
	GraphView v = {.w = w, .g = g, .after = after};
	return boundary(w, view, &v) ? v.out.data : NULL;
}

const char *weft_graph_dot(Weft *w, const WeftGraph *g, const char *after)
{
	GraphView v = {.w = w, .g = g, .after = after, .dot = true};
	return boundary(w, view, &v) ? v.out.data : NULL;
}

const char *const *weft_passes(void)
{
	return pipeline_names();
}

typedef struct {
	Weft *w;
	WeftGraph *g;
	const char *name;
} Transform;

static bool transform(void *arg)
{
	Transform *t = arg;
	TRY(given_graph(t->w, "weft_transform", t->g) &&
	    given_text(t->w, "weft_transform", "the name of the pass", t->name));
	t->g->transformed = true;
	for (uint32_t k = 0; k < t->g->nentry; k++) {
		t->w->ctx->file = t->g->entry[k].path;
		TRY(pipeline_run_one(t->g->entry[k].g, t->name));
	}
	return true;
}

bool weft_transform(Weft *w, WeftGraph *g, const char *name)
{
	Transform t = {w, g, name};
	return boundary(w, transform, &t);
}
