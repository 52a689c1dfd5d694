/* The graphs that nodes hold: what they read of the graphs around them, and their results. */
#include "frontend/onnx/body.h"

#include <string.h>

static void add_local(Captures *c, const char *name)
{
	if (name)
		intern(&c->local, name, strlen(name), NULL);
}

static bool capture(Captures *c, const char *name)
{
	bool fresh;
	Value *v = *name && !intern_find(&c->local, name, strlen(name))
			   ? onnx_scope_find(c->outer, name)
			   : NULL;
	if (!v)
		return true;
	intern(&c->seen, name, strlen(name), &fresh);
	if (!fresh || (!v->node.i && !v->is_list) || (v->known && v->input < 0))
		return true;
	Value *rows = v->is_list ? list_rows(v) : NULL;
	Node n = onnx_value_node(c->outer, rows ? rows : v);
	array_push(c->outer->im->ctx->scratch, &c->name, name);
	array_push(c->outer->im->ctx->scratch, &c->value, v);
	array_push(c->outer->im->ctx->scratch, &c->node, n);
	return n.i != 0;
}

static bool collect(Captures *c, const OnnxGraph *g);

static bool collect_nodes(Captures *c, const OnnxNode *node, uint32_t count)
{
	for (uint32_t k = 0; k < count; k++) {
		const OnnxNode *n = &node[k];
		for (uint32_t i = 0; i < n->in.n; i++)
			TRY(capture(c, n->in.data[i]));
		for (uint32_t i = 0; i < n->attr.n; i++)
			TRY(!n->attr.data[i].g || collect(c, n->attr.data[i].g));
		for (uint32_t i = 0; i < n->out.n; i++)
			add_local(c, n->out.data[i]);
	}
	return true;
}

static bool collect(Captures *c, const OnnxGraph *g)
{
	for (uint32_t k = 0; k < g->in.n; k++)
		add_local(c, g->in.data[k].name);
	for (uint32_t k = 0; k < g->init.n; k++)
		add_local(c, g->init.data[k].name);
	TRY(collect_nodes(c, g->node.data, g->node.n));
	for (uint32_t k = 0; k < g->out.n; k++)
		TRY(!g->out.data[k].name || capture(c, g->out.data[k].name));
	return true;
}

static void begin(Captures *c, Scope *outer)
{
	if (c->outer)
		return;
	c->outer = outer;
	intern_init(&c->local, outer->im->ctx->scratch);
	intern_init(&c->seen, outer->im->ctx->scratch);
}

bool captures_of(Captures *c, Scope *outer, const OnnxGraph *g)
{
	begin(c, outer);
	return collect(c, g);
}

bool captures_of_nodes(Captures *c, Scope *outer, const OnnxNode *node, uint32_t n)
{
	begin(c, outer);
	return collect_nodes(c, node, n);
}

void captures_local(Captures *c, Scope *outer, const char *name)
{
	begin(c, outer);
	add_local(c, name);
}

/* Returns a value of the body's graph like v, which is one of the graph around. */
static Value *inner_value(Scope *s, const Value *v, Node n)
{
	Value *in = onnx_value_of(s, n);
	if (v->is_list)
		return list_of_rows(s->im, in, v->item.data[0]->repeats);
	in->elem = v->elem;
	in->size = v->size;
	in->nsize = v->nsize;
	in->has_dim = v->has_dim;
	in->rows = v->rows;
	return in;
}

Node body_input(Scope *s, const char *name, TypeId type)
{
	return graph_add_input(s->b.g, name && *name ? name : "x", INPUT_USER, type);
}

bool bind_captures(Scope *s, const Captures *c)
{
	for (uint32_t k = 0; k < c->name.n; k++) {
		Node n = body_input(s, c->name.data[k],
				    node_type_id(c->outer->b.g, c->node.data[k]));
		TRY(onnx_scope_bind(s, c->name.data[k], inner_value(s, c->value.data[k], n)));
	}
	return true;
}

const OnnxGraph *body_of(const Item *it, const char *name)
{
	const OnnxAttr *a = onnx_item_attr(it, name);
	if (!a || !a->g)
		return onnx_item_error(it, "attribute %s is missing: expected a graph", name), NULL;
	for (uint32_t k = 0; k < a->g->in.n; k++)
		if (!a->g->in.data[k].name)
			return onnx_item_error(it, "input %u of the graph %s has no name", k, name),
			       NULL;
	return a->g;
}

Value *body_result(const Item *it, Scope *s, const OnnxGraph *g, uint32_t k)
{
	Value *v = k < g->out.n && g->out.data[k].name ? onnx_scope_find(s, g->out.data[k].name)
						       : NULL;
	if (!v)
		onnx_item_error(it, "no node of the body gives its result %u", k);
	return v;
}

void inline_scope(Scope *s, const Item *it)
{
	onnx_scope_init(s, it->s->im, it->s->b.g, it->s, it->s->opset);
}

static bool is_list_info(const OnnxInfo *info)
{
	return info->type && (info->type->sequence || info->type->optional);
}

bool gives_lists(const OnnxGraph *g)
{
	for (uint32_t k = 0; k < g->out.n; k++)
		if (is_list_info(&g->out.data[k]))
			return true;
	return false;
}

bool known_bool(Scope *s, Value *v, bool given, bool *out)
{
	const Sym *size;
	uint32_t n;
	int64_t value;
	if (onnx_value_as_sizes(s, v, &size, &n))
		return n == 1 && sym_is_const(s->im->syms, size[0], &value) &&
		       (*out = value != 0, true);
	const Tensor *t = v->known && (v->input < 0 || given) ? onnx_value_elements(s, v) : NULL;
	return t && tensor_numel(t) == 1 && (*out = tensor_f64(t, 0) != 0, true);
}

Node body_condition(Scope *s, Value *v)
{
	Node n = onnx_value_node(s, v);
	return n.i ? b_convert(&s->b, b_reshape(&s->b, n, 0, NULL), DT_bool) : n;
}

Node moved(Build *b, Node x, uint32_t from, uint32_t to)
{
	uint32_t perm[MAX_RANK], rank = x.i ? node_rank(b->g, x) : 0, k = 0;
	if (from == to || !x.i)
		return x;
	for (uint32_t d = 0; d < rank; d++)
		if (d != from) {
			k += k == to;
			perm[k++] = d;
		}
	perm[to] = from;
	return b_permute(b, x, perm);
}
