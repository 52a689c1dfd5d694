/* Higher-order operators: graphs that are arguments of a node. */
#include <string.h>

#include "frontend/pt2_priv.h"

typedef ARRAY(uint32_t) Values;

static json_t *input_arg(const json_t *node, size_t k, const char **tag)
{
	json_t *v = NULL;
	json_t *input = json_array_get(json_object_get(node, "inputs"), k);
	*tag = json_tag(json_object_get(input, "arg"), &v);
	return *tag ? v : NULL;
}

static json_t *graph_arg(Scope *s, const json_t *node, size_t k)
{
	const char *tag;
	json_t *v = input_arg(node, k, &tag);
	json_t *graph = tag && !strcmp(tag, "as_graph") ? json_object_get(v, "graph") : NULL;
	if (!json_is_object(graph))
		ctx_error(s->st->im->ctx, s->where, "argument %zu: expected a graph", k);
	return json_is_object(graph) ? graph : NULL;
}

static bool push_tensor(Scope *s, const json_t *tensor, Values *out)
{
	const char *name = json_str(tensor, "name");
	uint32_t v = name ? scope_find(s, name) : 0;
	if (!v)
		return ctx_error(s->st->im->ctx, s->where,
				 "operand %s is not a tensor of this graph", name ? name : "?");
	array_push(s->st->im->ctx->scratch, out, v);
	return true;
}

/* Append the tensors of argument k: one, a list, or none. */
static bool tensor_args(Scope *s, const json_t *node, size_t k, Values *out)
{
	const char *tag;
	size_t i;
	json_t *x, *v = input_arg(node, k, &tag);
	if (tag && !strcmp(tag, "as_tensor"))
		return push_tensor(s, v, out);
	if (tag && !strcmp(tag, "as_tensors")) {
		json_array_foreach(v, i, x)
		{
			TRY(push_tensor(s, x, out));
		}
		return true;
	}
	bool nothing = !tag || !strcmp(tag, "as_none") || !strcmp(tag, "as_string") ||
		       !strcmp(tag, "as_bool") || (json_is_array(v) && json_array_size(v) == 0);
	return nothing ||
	       ctx_error(s->st->im->ctx, s->where, "operand %zu: %s is not supported", k, tag);
}

static const char *tensor_name(const json_t *arg)
{
	json_t *v;
	const char *tag = json_tag(arg, &v);
	return tag && !strcmp(tag, "as_tensor") ? json_str(v, "name") : NULL;
}

static bool bind_inputs(Scope *outer, Scope *s, const uint32_t *value, uint32_t n)
{
	json_t *inputs = json_object_get(s->graph, "inputs");
	if (json_array_size(inputs) != n)
		return ctx_error(outer->st->im->ctx, outer->where,
				 "the graph takes %zu tensors, %u are given",
				 json_array_size(inputs), n);
	for (uint32_t k = 0; k < n; k++) {
		const char *name = tensor_name(json_array_get(inputs, k));
		if (!name)
			return ctx_error(outer->st->im->ctx, outer->where,
					 "graph input %u is not a tensor", k);
		TRY(scope_bind(s, name, value[k]));
	}
	return true;
}

/* The values of a graph's outputs. */
static bool graph_results(Scope *outer, Scope *s, Values *out)
{
	size_t i;
	json_t *output;
	json_array_foreach(json_object_get(s->graph, "outputs"), i, output)
	{
		const char *name = tensor_name(output);
		uint32_t v = name ? scope_find(s, name) : 0;
		if (!v)
			return ctx_error(outer->st->im->ctx, outer->where,
					 "output %zu of the graph is no tensor", i);
		array_push(outer->st->im->ctx->scratch, out, v);
	}
	return true;
}

/* Names and types of a node's results, in order. */
static bool result_names(Scope *s, const json_t *node, const char ***name, Meta **meta, uint32_t *n)
{
	Arena *a = s->st->im->ctx->arena;
	ARRAY(const json_t *) tensor = {0};
	size_t i, k;
	json_t *output, *v, *x;
	json_array_foreach(json_object_get(node, "outputs"), i, output)
	{
		const char *tag = json_tag(output, &v);
		if (tag && !strcmp(tag, "as_tensors")) {
			json_array_foreach(v, k, x)
			{
				array_push(a, &tensor, x);
			}
		} else {
			array_push(a, &tensor, v);
		}
	}
	*n = tensor.n;
	*name = ARENA_ARRAY(a, const char *, tensor.n);
	*meta = ARENA_ARRAY(a, Meta, tensor.n);
	for (uint32_t j = 0; j < tensor.n; j++) {
		(*name)[j] = json_str(tensor.data[j], "name");
		if (!(*name)[j])
			return ctx_error(s->st->im->ctx, s->where, "result %u is not a tensor", j);
		TRY(scope_meta(s, (*name)[j], &(*meta)[j]));
	}
	return true;
}

/* ---- regions that are part of the surrounding graph ---- */

/* Autocast changes what operators compute, so a region with it on is not the plain graph. */
static bool check_autocast(Scope *s, const json_t *node, const Target *t)
{
	const char *tag;
	if (strcmp(t->name, "higher_order.wrap_with_autocast") ||
	    json_is_false(input_arg(node, 2, &tag)))
		return true;
	return ctx_error(s->st->im->ctx, s->where, "a region with autocast on is not supported");
}

static bool import_inline(Scope *outer, const json_t *node, const Target *t)
{
	size_t n = json_array_size(json_object_get(node, "inputs")), at = 0;
	const char *tag;
	TRY(check_autocast(outer, node, t));
	while (at < n && (!input_arg(node, at, &tag) || strcmp(tag, "as_graph")))
		at++;
	json_t *graph = graph_arg(outer, node, at);
	TRY(graph);
	Values in = {0}, out = {0};
	for (size_t k = at + 1; k < n; k++)
		TRY(tensor_args(outer, node, k, &in));
	Scope s;
	scope_init(&s, outer->st, graph);
	TRY(bind_inputs(outer, &s, in.data, in.n));
	TRY(scope_nodes(&s));
	TRY(graph_results(outer, &s, &out));
	const char **name;
	Meta *meta;
	uint32_t count;
	TRY(result_names(outer, node, &name, &meta, &count));
	if (count != out.n)
		return ctx_error(outer->st->im->ctx, outer->where,
				 "the graph has %u results, %u are used", out.n, count);
	for (uint32_t k = 0; k < count; k++)
		TRY(scope_bind(outer, name[k], out.data[k]));
	return true;
}

/* ---- subgraphs ---- */

/* A graph of its own whose inputs have the given types. NULL after ctx_error. */
static Graph *subgraph(Scope *outer, json_t *json, const Meta *in, uint32_t n)
{
	Import *im = outer->st->im;
	State st;
	Scope s;
	Graph *g = graph_new(im->ir, "body");
	state_init(&st, im, g);
	scope_init(&s, &st, json);
	uint32_t *value = ARENA_ARRAY(im->ctx->scratch, uint32_t, n);
	for (uint32_t k = 0; k < n; k++) {
		const char *name = tensor_name(json_array_get(json_object_get(json, "inputs"), k));
		Node node =
			graph_add_input(g, name ? name : "x", INPUT_USER, meta_type(im, &in[k]));
		value[k] = value_new(&st, node, &in[k]);
		st.storage.data[st.value.data[value[k]].storage].spec = (int32_t)k;
	}
	Values out = {0};
	if (!bind_inputs(outer, &s, value, n) || !scope_nodes(&s) ||
	    !graph_results(outer, &s, &out))
		return NULL;
	for (uint32_t k = 1; k < st.storage.n; k++)
		if (st.storage.data[k].spec >= 0 && st.storage.data[k].version > 0) {
			ctx_error(im->ctx, outer->where, "its graph writes one of its inputs");
			return NULL;
		}
	for (uint32_t k = 0; k < out.n; k++)
		graph_add_output(g,
				 tensor_name(json_array_get(json_object_get(json, "outputs"), k)),
				 value_read(&st, &s.b, out.data[k]), -1);
	return g;
}

static void metas(const State *st, const uint32_t *value, uint32_t n, Meta *out)
{
	for (uint32_t k = 0; k < n; k++)
		out[k] = st->value.data[value[k]].meta;
}

static Node *read_all(Scope *s, const uint32_t *value, uint32_t n)
{
	Node *in = ARENA_ARRAY(s->st->im->ctx->scratch, Node, n);
	for (uint32_t k = 0; k < n; k++)
		in[k] = value_read(s->st, &s->b, value[k]);
	return in;
}

/* Add the node with the types the file states, and bind its results. */
static bool finish(Scope *s, const json_t *node, Op op, const uint32_t *value, uint32_t n,
		   const Attr *attr)
{
	Import *im = s->st->im;
	const char **name;
	Meta *meta;
	uint32_t count;
	TRY(result_names(s, node, &name, &meta, &count));
	TypeId *elem = ARENA_ARRAY(im->ctx->scratch, TypeId, count);
	for (uint32_t k = 0; k < count; k++)
		elem[k] = meta_type(im, &meta[k]);
	TypeId type = ir_tuple(im->ir, count, elem);
	Node made = graph_add(s->st->g, (Node){0}, op, read_all(s, value, n), n,
			      ir_attrs(im->ir, op_schema(op)->narg, attr), type, s->b.loc);
	for (uint32_t k = 0; k < count; k++) {
		Node x = b_get(&s->b, made, k);
		TRY(x.i);
		graph_set_name(s->st->g, x, name[k]);
		TRY(scope_bind(s, name[k], value_new(s->st, x, &meta[k])));
	}
	return true;
}

/* What a body sees of a scanned tensor: one element of its first dimension. */
static bool drop_first(Scope *s, Meta *m, Sym *length)
{
	if (m->rank == 0)
		return ctx_error(s->st->im->ctx, s->where, "a scanned tensor has no dimensions");
	if (length->i && sym_eq(s->st->im->syms, *length, m->size[0]) == NO)
		return ctx_error(s->st->im->ctx, s->where, "scanned tensors differ in length");
	*length = m->size[0];
	m->rank--;
	m->size++;
	m->stride++;
	return true;
}

/* scan(graph, init, xs, consts), map(graph, xs, consts) */
static bool import_scan(Scope *s, const json_t *node, bool has_init)
{
	Import *im = s->st->im;
	json_t *graph = graph_arg(s, node, 0);
	TRY(graph);
	Values in = {0};
	uint32_t n[3] = {0};
	for (uint32_t k = has_init ? 0 : 1; k < 3; k++) {
		TRY(tensor_args(s, node, k + (has_init ? 1 : 0), &in));
		n[k] = in.n;
	}
	Meta *meta = ARENA_ARRAY(im->ctx->arena, Meta, in.n);
	metas(s->st, in.data, in.n, meta);
	Sym length = {0};
	for (uint32_t k = n[0]; k < n[1]; k++)
		TRY(drop_first(s, &meta[k], &length));
	if (!length.i)
		return ctx_error(im->ctx, s->where, "nothing to scan over");
	Graph *body = subgraph(s, graph, meta, in.n);
	TRY(body);
	Attr attr[6] = {attr_int(im->ir, n[0]),
			attr_int(im->ir, n[1] - n[0]),
			attr_int(im->ir, n[2] - n[1]),
			attr_graph(body),
			attr_sym(length),
			attr_bool(false)};
	return finish(s, node, OP_scan, in.data, in.n, attr);
}

static bool set_attr(Scope *s, Op op, Attr *attr, const char *name, Attr value)
{
	int k = op_arg_index(op, name);
	if (k < 0)
		return ctx_error(s->st->im->ctx, s->where, "%s has no argument %s", op_name(op),
				 name);
	attr[k] = value;
	return true;
}

/* The results of one branch, computed where the node stands. */
static bool inline_branch(Scope *s, json_t *graph, const uint32_t *in, uint32_t n, Node **out,
			  uint32_t *nout)
{
	State *st = s->st;
	uint32_t *version = ARENA_ARRAY(st->im->ctx->scratch, uint32_t, n);
	for (uint32_t k = 0; k < n; k++)
		version[k] = st->storage.data[st->value.data[in[k]].storage].version;
	Scope inner;
	Values v = {0};
	scope_init(&inner, st, graph);
	TRY(bind_inputs(s, &inner, in, n));
	TRY(scope_nodes(&inner));
	TRY(graph_results(s, &inner, &v));
	for (uint32_t k = 0; k < n; k++)
		if (version[k] != st->storage.data[st->value.data[in[k]].storage].version)
			return ctx_error(st->im->ctx, s->where,
					 "a branch writes one of its inputs");
	*out = read_all(s, v.data, v.n);
	*nout = v.n;
	return true;
}

/* Without a cond primitive both branches are computed and one result is taken. Their values are the
 * same; but a run-time check in the branch not taken can fail. */
static bool import_select(Scope *s, const json_t *node)
{
	Build *b = &s->b;
	json_t *graph[2] = {graph_arg(s, node, 1), graph_arg(s, node, 2)};
	TRY(graph[0] && graph[1]);
	Values in = {0};
	TRY(tensor_args(s, node, 0, &in) && in.n == 1 && tensor_args(s, node, 3, &in));
	Node pred = value_read(s->st, b, in.data[0]), *result[2];
	pred = b_convert(b, b_reshape(b, pred, 0, NULL), DT_bool);
	uint32_t n[2], count;
	const char **name;
	Meta *meta;
	TRY(pred.i && result_names(s, node, &name, &meta, &count));
	for (int k = 0; k < 2; k++)
		TRY(inline_branch(s, graph[k], in.data + 1, in.n - 1, &result[k], &n[k]));
	if (n[0] != count || n[1] != count)
		return ctx_error(s->st->im->ctx, s->where,
				 "%u results, its branches have %u and %u", count, n[0], n[1]);
	for (uint32_t k = 0; k < count; k++) {
		Node x = b_select(b, pred, result[0][k], result[1][k]);
		TRY(x.i);
		if (node_type_id(s->st->g, x).i != meta_type(s->st->im, &meta[k]).i)
			return ctx_error(s->st->im->ctx, s->where, "result %u has another type", k);
		TRY(scope_bind(s, name[k], value_new(s->st, x, &meta[k])));
	}
	return true;
}

/* cond(pred, yes, no, xs) */
static bool import_cond(Scope *s, const json_t *node)
{
	Import *im = s->st->im;
	Op op = op_find("cond");
	if (op == OP_none)
		return import_select(s, node);
	json_t *yes = graph_arg(s, node, 1), *no = graph_arg(s, node, 2);
	TRY(yes && no);
	Values in = {0};
	TRY(tensor_args(s, node, 0, &in));
	if (in.n != 1)
		return ctx_error(im->ctx, s->where, "expected a tensor as the condition");
	TRY(tensor_args(s, node, 3, &in));
	Meta *meta = ARENA_ARRAY(im->ctx->arena, Meta, in.n);
	metas(s->st, in.data, in.n, meta);
	Graph *g[2] = {subgraph(s, yes, meta + 1, in.n - 1), NULL};
	g[1] = g[0] ? subgraph(s, no, meta + 1, in.n - 1) : NULL;
	TRY(g[0] && g[1]);
	Attr attr[MAX_ARGS] = {0};
	TRY(set_attr(s, op, attr, "xs", attr_int(im->ir, in.n - 1)));
	TRY(set_attr(s, op, attr, "yes", attr_graph(g[0])) &&
	    set_attr(s, op, attr, "no", attr_graph(g[1])));
	return finish(s, node, op, in.data, in.n, attr);
}

/* while_loop(cond, body, init, consts) */
static bool import_while(Scope *s, const json_t *node)
{
	Import *im = s->st->im;
	Op op = op_find("while");
	json_t *test = graph_arg(s, node, 0), *body = graph_arg(s, node, 1);
	TRY(test && body);
	Values in = {0};
	TRY(tensor_args(s, node, 2, &in));
	uint32_t ninit = in.n;
	TRY(tensor_args(s, node, 3, &in));
	Meta *meta = ARENA_ARRAY(im->ctx->arena, Meta, in.n);
	metas(s->st, in.data, in.n, meta);
	Graph *g[2] = {subgraph(s, test, meta, in.n), NULL};
	g[1] = g[0] ? subgraph(s, body, meta, in.n) : NULL;
	TRY(g[0] && g[1]);
	Attr attr[MAX_ARGS] = {0};
	TRY(set_attr(s, op, attr, "init", attr_int(im->ir, ninit)));
	TRY(set_attr(s, op, attr, "consts", attr_int(im->ir, in.n - ninit)));
	TRY(set_attr(s, op, attr, "cond", attr_graph(g[0])) &&
	    set_attr(s, op, attr, "body", attr_graph(g[1])));
	return finish(s, node, op, in.data, in.n, attr);
}

bool import_hop(Scope *s, const json_t *node, Target t)
{
	switch (t.kind) {
	case TARGET_INLINE:
		return import_inline(s, node, &t);
	case TARGET_SCAN:
		return import_scan(s, node, true);
	case TARGET_MAP:
		return import_scan(s, node, false);
	case TARGET_COND:
		return import_cond(s, node);
	default:
		return import_while(s, node);
	}
}
