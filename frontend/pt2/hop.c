/* Higher-order operators: graphs that are arguments of a node. */
#include <string.h>

#include "frontend/pt2/priv.h"
#include "ir/interp/interp.h"

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

/* Whether the name is a symbolic integer, which has the same name and value in every graph of
 * the file: it is none of a body's inputs. */
static bool is_symbolic(const Scope *s, const char *name)
{
	return name && json_object_get(json_object_get(s->graph, "sym_int_values"), name);
}

static bool push_tensor(Scope *s, const json_t *tensor, Values *out)
{
	const char *name = json_str(tensor, "name");
	uint32_t v = name ? scope_find(s, name) : 0;
	if (!v && is_symbolic(s, name))
		return true;
	if (!v)
		return ctx_error(s->st->im->ctx, s->where,
				 "operand %s is not a tensor of this graph", name ? name : "?");
	array_push(s->st->im->ctx->scratch, out, v);
	return true;
}

/* Appends the tensors of argument k: one, a list, or none. A size goes by its name. */
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
		       !strcmp(tag, "as_bool") || !strcmp(tag, "as_sym_ints") ||
		       !strcmp(tag, "as_sym_int") || (json_is_array(v) && json_array_size(v) == 0);
	return nothing ||
	       ctx_error(s->st->im->ctx, s->where, "operand %zu: %s is not supported", k, tag);
}

static const char *tensor_name(const json_t *arg)
{
	json_t *v;
	const char *tag = json_tag(arg, &v);
	return tag && !strcmp(tag, "as_tensor") ? json_str(v, "name") : NULL;
}

/* Returns the names of a graph's inputs that are tensors, n of them. NULL after ctx_error. */
static const char **input_names(Scope *outer, const json_t *graph, uint32_t n)
{
	Ctx *ctx = outer->st->im->ctx;
	json_t *input, *v, *inputs = json_object_get(graph, "inputs");
	const char **name = ARENA_ARRAY(ctx->scratch, const char *, json_array_size(inputs));
	uint32_t found = 0;
	size_t i;
	json_array_foreach(inputs, i, input)
	{
		const char *tag = json_tag(input, &v);
		if (tag && !strcmp(tag, "as_sym_int"))
			continue;
		name[found] = tensor_name(input);
		if (!name[found++]) {
			ctx_error(ctx, outer->where, "graph input %zu is not a tensor", i);
			return NULL;
		}
	}
	if (found == n)
		return name;
	ctx_error(ctx, outer->where, "the graph takes %u tensors, %u are given", found, n);
	return NULL;
}

static bool bind_inputs(Scope *outer, Scope *s, const uint32_t *value, uint32_t n)
{
	const char **name = input_names(outer, s->graph, n);
	TRY(name);
	for (uint32_t k = 0; k < n; k++)
		TRY(scope_bind(s, name[k], value[k]));
	return true;
}

/* Finds the values of a graph's outputs. */
static bool graph_results(Scope *outer, Scope *s, Values *out)
{
	size_t i;
	json_t *output;
	json_array_foreach(json_object_get(s->graph, "outputs"), i, output)
	{
		const char *name = tensor_name(output);
		uint32_t v = name ? scope_find(s, name) : 0;
		if (json_object_get(output, "as_sym_int"))
			return ctx_error(outer->st->im->ctx, outer->where,
					 "result %zu of its graph is an integer that depends on "
					 "data: not supported, where "
					 "a tensor without dimensions is",
					 i);
		if (!v)
			return ctx_error(outer->st->im->ctx, outer->where,
					 "output %zu of the graph is no tensor", i);
		array_push(outer->st->im->ctx->scratch, out, v);
	}
	return true;
}

/* Finds the names and types of a node's results, in order. */
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

/* Whether autocast is on in a region, which may switch it on or off. Another region leaves it as
 * it is. */
static bool autocast_of(Scope *s, const json_t *node, const CallTarget *t)
{
	const char *tag;
	if (strcmp(t->name, "higher_order.wrap_with_autocast"))
		return s->st->autocast;
	return !json_is_false(input_arg(node, 2, &tag));
}

/* Makes values go from one region to another. */
static bool enter_all(Scope *s, Values *v)
{
	for (uint32_t k = 0; k < v->n; k++)
		TRY(v->data[k] = value_enter(s->st, &s->b, v->data[k]));
	return true;
}

static bool import_inline(Scope *outer, const json_t *node, const CallTarget *t)
{
	size_t n = json_array_size(json_object_get(node, "inputs")), at = 0;
	const char *tag;
	State *st = outer->st;
	const bool before = st->no_grad, cast_before = st->autocast;
	while (at < n && (!input_arg(node, at, &tag) || strcmp(tag, "as_graph")))
		at++;
	json_t *graph = graph_arg(outer, node, at);
	TRY(graph);
	Values in = {0}, out = {0};
	for (size_t k = at + 1; k < n; k++)
		TRY(tensor_args(outer, node, k, &in));
	Scope s;
	scope_init(&s, st, graph);
	if (!strcmp(t->name, "higher_order.wrap_with_set_grad_enabled"))
		st->no_grad = json_is_false(input_arg(node, 0, &tag));
	TRY(enter_all(outer, &in) && bind_inputs(outer, &s, in.data, in.n));
	st->autocast = autocast_of(outer, node, t);
	TRY(scope_nodes(&s));
	TRY(graph_results(outer, &s, &out));
	st->no_grad = before;
	st->autocast = cast_before;
	TRY(enter_all(outer, &out));
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

/* Checks that the body writes no input, which would have to change outside of it. */
static bool check_unwritten(Scope *outer, const State *st)
{
	for (uint32_t k = 1; k < st->storage.n; k++)
		if (st->storage.data[k].spec >= 0 && st->storage.data[k].version > 0)
			return ctx_error(outer->st->im->ctx, outer->where,
					 "its graph writes one of its inputs");
	return true;
}

/* Imports a graph of its own whose inputs have the given types. Returns NULL after ctx_error. */
Graph *import_subgraph(Scope *outer, json_t *json, const Meta *in, uint32_t n)
{
	Import *im = outer->st->im;
	State st;
	Scope s;
	Graph *g = graph_new(im->ir, "body");
	const char **name = input_names(outer, json, n);
	if (!name)
		return NULL;
	state_init(&st, im, g);
	st.is_body = true;
	st.autocast = outer->st->autocast;
	scope_init(&s, &st, json);
	for (uint32_t k = 0; k < n; k++) {
		Node node = graph_add_input(g, name[k], INPUT_USER, meta_type(im, &in[k]));
		uint32_t value = value_new(&st, node, &in[k]);
		st.storage.data[st.value.data[value].storage].spec = (int32_t)k;
		if (!scope_bind(&s, name[k], value))
			return NULL;
	}
	Values out = {0};
	if (!scope_nodes(&s) || !graph_results(outer, &s, &out) || !check_unwritten(outer, &st))
		return NULL;
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

/* Adds the node; its operands are `first`, or none, and the values. */
static Node add_node(Scope *s, Op op, Node first, const uint32_t *value, uint32_t n, TypeId type,
		     const Attr *attr)
{
	Import *im = s->st->im;
	Node *in = ARENA_ARRAY(im->ctx->scratch, Node, n + 1), *next = in;
	if (first.i)
		*next++ = first;
	for (uint32_t k = 0; k < n; k++)
		*next++ = value_read(s->st, &s->b, value[k]);
	return graph_add(s->st->g, (Node){0}, op, in, (uint32_t)(next - in),
			 ir_attrs(im->ir, op_schema(op)->narg, attr), type, s->b.loc);
}

static bool bind_result(Scope *s, const char *name, const Meta *meta, Node x)
{
	TRY(x.i);
	graph_set_name(s->st->g, x, name);
	return scope_bind(s, name, value_new(s->st, x, meta));
}

/* Adds the node with the types the file states, and binds its results. */
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
	Node made = add_node(s, op, (Node){0}, value, n, ir_tuple(im->ir, count, elem), attr);
	for (uint32_t k = 0; k < count; k++)
		TRY(bind_result(s, name[k], &meta[k], b_get(&s->b, made, k)));
	return true;
}

/* Makes the type of a scanned tensor that of what a body sees of it: one element of its first
 * dimension. */
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

/* Imports scan(graph, init, xs, consts), map(graph, xs, consts). */
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
	Graph *body = import_subgraph(s, graph, meta, in.n);
	TRY(body);
	Attr attr[6] = {attr_int(im->ir, n[0]),
			attr_int(im->ir, n[1] - n[0]),
			attr_int(im->ir, n[2] - n[1]),
			attr_graph(body),
			attr_sym(length),
			attr_bool(false)};
	return finish(s, node, OP_scan, in.data, in.n, attr);
}

/* Imports associative_scan(graph, xs, consts), along dimension 0: y[0] = x[0], y[k] = graph(y[k
 * - 1], x[k], consts). One after the other; the graph may be applied in any order, of which this
 * is one. */
static bool import_associative_scan(Scope *s, const json_t *node)
{
	Import *im = s->st->im;
	Build *b = &s->b;
	json_t *graph = graph_arg(s, node, 0);
	Values in = {0};
	TRY(graph && tensor_args(s, node, 1, &in));
	const uint32_t n = in.n;
	TRY(tensor_args(s, node, 2, &in));
	/* the graph takes n of each, then the constants */
	Meta *meta = ARENA_ARRAY(im->ctx->arena, Meta, n + in.n + 1),
	     *given = ARENA_ARRAY(im->ctx->arena, Meta, in.n + 1);
	metas(s->st, in.data, in.n, given);
	Sym length = {0}, zero = sym_int(im->syms, 0), one = sym_int(im->syms, 1);
	for (uint32_t k = 0; k < n; k++) {
		meta[k] = given[k];
		TRY(drop_first(s, &meta[k], &length));
		meta[n + k] = meta[k];
	}
	for (uint32_t k = n; k < in.n; k++)
		meta[n + k] = given[k];
	if (!length.i)
		return ctx_error(im->ctx, s->where, "nothing to scan over");
	Graph *body = import_subgraph(s, graph, meta, n + in.n);
	TRY(body);
	if (body->output.n != n)
		return ctx_error(im->ctx, s->where, "the graph has %u results, expected %u",
				 body->output.n, n);
	for (uint32_t k = 0; k < n; k++)
		graph_add_output(body, body->output.data[k].name, body->output.data[k].node, -1);
	Node *x = ARENA_ARRAY(im->ctx->scratch, Node, n + in.n + 1);
	Cond some = {.kind = GUARD_LE, .a = one, .b = length};
	TRY(meta_require(im, s->st->g, &some, s->where,
			 "associative_scan over at least one element"));
	for (uint32_t k = 0; k < in.n; k++) {
		Node v = value_read(s->st, b, in.data[k]);
		if (k < n) {
			x[k] = b_select_dim(b, v, 0, zero);
			x[n + k] = b_slice(b, v, 0, one, length, one);
		} else {
			x[n + k] = v;
		}
	}
	Attr attr[6] = {attr_int(im->ir, n),
			attr_int(im->ir, n),
			attr_int(im->ir, in.n - n),
			attr_graph(body),
			attr_sym(sym_sub(im->syms, length, one)),
			attr_bool(false)};
	Node made = b_node(b, OP_scan, x, n + in.n, attr, 6);
	const char **name;
	Meta *out;
	uint32_t count;
	TRY(made.i && result_names(s, node, &name, &out, &count));
	if (count != n)
		return ctx_error(im->ctx, s->where, "%u results, expected %u", count, n);
	for (uint32_t k = 0; k < n; k++) {
		Node both[] = {b_unsqueeze(b, x[k], 0), b_get(b, made, n + k)};
		TRY(bind_result(s, name[k], &out[k], b_concat(b, both, 2, 0)));
	}
	return true;
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

/* ---- conditions ---- */

/* Returns x as a bool without dimensions; none if it has not one element. */
static Node as_condition(Build *b, Node x)
{
	if (!x.i || type_numel(b->g->ir, node_type_id(b->g, x)).i != b_int(b, 1).i)
		return (Node){0};
	return b_convert(b, b_reshape(b, x, 0, NULL), DT_bool);
}

static Node size_condition(Build *b, const SymTab *t, const Cond *c)
{
	static const Op op[] = {[GUARD_EQ] = OP_eq, [GUARD_NE] = OP_ne, [GUARD_LE] = OP_le};
	Truth known = cond_truth(t, c);
	if (known != MAYBE)
		return b_full_attr(b, DT_bool, attr_bool(known == YES), 0, NULL);
	return b_bin(b, op[c->kind], b_from_size(b, c->a), b_from_size(b, c->b));
}

Node symbolic_condition(Scope *s, const json_t *arg)
{
	json_t *v;
	const char *kind = json_tag(arg, &v);
	const char *name = kind && !strcmp(kind, "as_name") ? json_string_value(v) : NULL;
	uint32_t data = name ? scope_find(s, name) : 0;
	if (data)
		return value_read(s->st, &s->b, data);
	json_t *value =
		json_object_get(json_object_get(s->graph, "sym_bool_values"), name ? name : "");
	const char *text = json_str(json_object_get(value, "as_expr"), "expr_str");
	ExprEnv env = {.ctx = s->st->im->ctx, .syms = s->st->im->syms};
	const Cond *c;
	uint32_t n;
	if (!text || !expr_cond(&env, text, &c, &n)) {
		ctx_error(env.ctx, s->where, "symbolic bool %s is not understood: %s",
			  name ? name : "?", text ? env.error : "not defined");
		return (Node){0};
	}
	Node all = b_full_attr(&s->b, DT_bool, attr_bool(true), 0, NULL);
	for (uint32_t k = 0; k < n; k++)
		all = k ? b_bin(&s->b, OP_bit_and, all, size_condition(&s->b, env.syms, &c[k]))
			: size_condition(&s->b, env.syms, &c[k]);
	return all;
}

/* Returns what chooses between the branches: a tensor, a condition on sizes, a constant. None
 * after ctx_error. */
static Node condition(Scope *s, const json_t *node)
{
	const char *tag;
	json_t *v = input_arg(node, 0, &tag);
	Node n = {0};
	if (tag && !strcmp(tag, "as_bool"))
		return b_full_attr(&s->b, DT_bool, attr_bool(json_is_true(v)), 0, NULL);
	if (tag && !strcmp(tag, "as_sym_bool"))
		return symbolic_condition(s, v);
	const char *name = tag && !strcmp(tag, "as_tensor") ? json_str(v, "name") : NULL;
	uint32_t value = name ? scope_find(s, name) : 0;
	if (value)
		n = as_condition(&s->b, value_read(s->st, &s->b, value));
	if (!n.i)
		ctx_error(s->st->im->ctx, s->where, "expected one bool as the condition");
	return n;
}

/* ---- cond ---- */

/* A dimension of a result that has another size in either branch, each of which data may decide.
 * Both fill the result up to what either may need, and give the size as a further result; the graph
 * around them cuts it off there. */
typedef struct {
	uint32_t result, dim;
	Sym size; /* which the file gives it */
	Sym in[2], room;
} Uneven;
typedef ARRAY(Uneven) Unevens;

/* Returns the most that a size is, by sizes that are known before anything runs; none after
 * ctx_error. What the file's operators count is bounded once they are expanded, in a copy here. */
static Sym room_for(Scope *s, Graph *body, const Uneven *u, Sym size)
{
	Import *im = s->st->im;
	if (sym_uses_kind(im->syms, size, SYMVAR_UNBACKED) && !interp_expand(body))
		return (Sym){0};
	Sym most = sym_most(im->syms, size);
	if (!most.i)
		ctx_error(im->ctx, s->where,
			  "dimension %u of result %u has size %s in one branch: not supported "
			  "where that has no bound "
			  "before it runs and the other branch has another",
			  u->dim, u->result, sym_str(im->syms, size));
	return most;
}

/* Compares dimension d of result k. Sizes that the file holds for equal, where that is not seen
 * from how they are written, are required to be: those of a result that has a branch's size. */
static bool compare_sizes(Scope *s, Graph *const g[2], Uneven u, Unevens *out)
{
	SymTab *syms = s->st->im->syms;
	const Truth same = sym_eq(syms, u.in[0], u.in[1]);
	if (same == YES)
		return true;
	if (same == MAYBE &&
	    (sym_eq(syms, u.size, u.in[0]) == YES || sym_eq(syms, u.size, u.in[1]) == YES)) {
		graph_guard(g[1], GUARD_EQ, u.in[0], u.in[1],
			    "branches have results of the same size");
		return true;
	}
	if (sym_kind(syms, u.size) != SYM_VAR || !sym_uses_kind(syms, u.size, SYMVAR_UNBACKED))
		return ctx_error(s->st->im->ctx, s->where,
				 "dimension %u of result %u has size %s in one branch and %s in "
				 "the other, and %s after them",
				 u.dim, u.result, sym_str(syms, u.in[0]), sym_str(syms, u.in[1]),
				 sym_str(syms, u.size));
	Sym a = room_for(s, g[0], &u, u.in[0]), b = a.i ? room_for(s, g[1], &u, u.in[1]) : a;
	TRY(b.i);
	u.room = sym_max(syms, a, b);
	array_push(s->st->im->ctx->scratch, out, u);
	return true;
}

static bool find_uneven(Scope *s, Graph *const g[2], const Meta *meta, uint32_t n, Unevens *out)
{
	for (uint32_t k = 0; k < n && k < g[0]->output.n && k < g[1]->output.n; k++) {
		Node x = g[0]->output.data[k].node, y = g[1]->output.data[k].node;
		for (uint32_t d = 0;
		     d < meta[k].rank && d < node_rank(g[0], x) && d < node_rank(g[1], y); d++)
			TRY(compare_sizes(s, g,
					  (Uneven){k,
						   d,
						   meta[k].size[d],
						   {node_dim(g[0], x, d), node_dim(g[1], y, d)},
						   {0}},
					  out));
	}
	return true;
}

static bool fill_up(Scope *s, Graph *body, uint32_t branch, const Unevens *u)
{
	Build b = {.g = body, .loc = s->b.loc, .where = s->where};
	for (uint32_t i = 0; i < u->n; i++) {
		const Uneven *e = &u->data[i];
		Node x = body->output.data[e->result].node;
		Sym low[MAX_RANK], high[MAX_RANK];
		for (uint32_t d = 0; d < MAX_RANK; d++)
			low[d] = high[d] = b_int(&b, 0);
		high[e->dim] = sym_sub(b_syms(&b), e->room, e->in[branch]);
		x = b_pad(&b, x, low, high, b_scalar(&b, node_dtype(body, x), 0));
		Node size = b_from_size(&b, e->in[branch]);
		TRY(x.i && size.i);
		graph_set_output(body, e->result, x);
		graph_add_output(body, "size", size, -1);
	}
	return true;
}

/* Sets elem[] to the types of n results, as the file states them, except that each uneven dimension
 * has the extent of its room; behind them to the types of the sizes of these dimensions. */
static void result_types(Scope *s, const Meta *meta, uint32_t n, const Unevens *u, TypeId *elem)
{
	Import *im = s->st->im;
	for (uint32_t k = 0; k < n; k++) {
		Sym size[MAX_RANK];
		Meta m = meta[k];
		memcpy(size, m.size, m.rank * sizeof *size);
		for (uint32_t i = 0; i < u->n; i++)
			if (u->data[i].result == k)
				size[u->data[i].dim] = u->data[i].room;
		m.size = size;
		elem[k] = meta_type(im, &m);
	}
	const Meta size = {.dtype = DT_i64};
	for (uint32_t i = 0; i < u->n; i++)
		elem[n + i] = meta_type(im, &size);
}

/* Returns result k of n without what was filled up. */
static Node cut_off(Scope *s, Node made, uint32_t k, uint32_t n, const Unevens *u)
{
	Build *b = &s->b;
	Node x = b_get(b, made, k);
	for (uint32_t i = 0; i < u->n; i++) {
		const Uneven *e = &u->data[i];
		if (e->result != k)
			continue;
		b_to_size(b, b_get(b, made, n + i), e->size, e->room, "cond");
		x = b_slice(b, x, (int)e->dim, b_int(b, 0), e->size, b_int(b, 1));
	}
	return x;
}

/* Imports cond(pred, yes, no, xs). */
static bool import_cond(Scope *s, const json_t *node)
{
	Import *im = s->st->im;
	json_t *yes = graph_arg(s, node, 1), *no = graph_arg(s, node, 2);
	TRY(yes && no);
	Node pred = condition(s, node);
	TRY(pred.i);
	Values in = {0};
	TRY(tensor_args(s, node, 3, &in));
	Meta *meta = ARENA_ARRAY(im->ctx->arena, Meta, in.n), *result;
	metas(s->st, in.data, in.n, meta);
	Graph *g[2] = {import_subgraph(s, yes, meta, in.n), NULL};
	g[1] = g[0] ? import_subgraph(s, no, meta, in.n) : NULL;
	TRY(g[0] && g[1]);
	const char **name;
	uint32_t n;
	Unevens uneven = {0};
	TRY(result_names(s, node, &name, &result, &n) && find_uneven(s, g, result, n, &uneven));
	TRY(fill_up(s, g[0], 0, &uneven) && fill_up(s, g[1], 1, &uneven));
	Attr attr[MAX_ARGS] = {0};
	TRY(set_attr(s, OP_cond, attr, "xs", attr_int(im->ir, in.n)));
	TRY(set_attr(s, OP_cond, attr, "yes", attr_graph(g[0])) &&
	    set_attr(s, OP_cond, attr, "no", attr_graph(g[1])));
	TypeId *elem = ARENA_ARRAY(im->ctx->scratch, TypeId, n + uneven.n);
	result_types(s, result, n, &uneven, elem);
	Node made = add_node(s, OP_cond, pred, in.data, in.n, ir_tuple(im->ir, n + uneven.n, elem),
			     attr);
	for (uint32_t k = 0; k < n; k++)
		TRY(bind_result(s, name[k], &result[k], cut_off(s, made, k, n, &uneven)));
	return true;
}

/* ---- while ---- */

/* Imports while_loop(cond, body, init, consts). */
static bool import_while(Scope *s, const json_t *node)
{
	Import *im = s->st->im;
	json_t *test = graph_arg(s, node, 0), *body = graph_arg(s, node, 1);
	TRY(test && body);
	Values in = {0};
	TRY(tensor_args(s, node, 2, &in));
	uint32_t ninit = in.n;
	TRY(tensor_args(s, node, 3, &in));
	Meta *meta = ARENA_ARRAY(im->ctx->arena, Meta, in.n);
	metas(s->st, in.data, in.n, meta);
	Graph *g[2] = {import_subgraph(s, test, meta, in.n), NULL};
	g[1] = g[0] ? import_subgraph(s, body, meta, in.n) : NULL;
	TRY(g[0] && g[1]);
	Build b = {.g = g[0]};
	Node more = g[0]->output.n == 1 ? as_condition(&b, g[0]->output.data[0].node) : (Node){0};
	if (!more.i)
		return ctx_error(im->ctx, s->where, "expected one bool as the condition");
	graph_set_output(g[0], 0, more);
	Attr attr[MAX_ARGS] = {0};
	TRY(set_attr(s, OP_while, attr, "init", attr_int(im->ir, ninit)));
	TRY(set_attr(s, OP_while, attr, "consts", attr_int(im->ir, in.n - ninit)));
	TRY(set_attr(s, OP_while, attr, "cond", attr_graph(g[0])) &&
	    set_attr(s, OP_while, attr, "body", attr_graph(g[1])));
	return finish(s, node, OP_while, in.data, in.n, attr);
}

bool import_hop(Scope *s, const json_t *node, CallTarget t)
{
	switch (t.kind) {
	case TARGET_INLINE:
		return import_inline(s, node, &t);
	case TARGET_ASSOCIATIVE:
		return import_associative_scan(s, node);
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
