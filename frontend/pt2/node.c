/* One node of the file -> nodes of the graph. */
#include <string.h>

#include "frontend/frame.h"
#include "frontend/pt2/priv.h"

/* ---- scopes ---- */

void state_init(State *st, Import *im, Graph *g)
{
	*st = (State){.im = im, .g = g};
	array_push(im->ctx->arena, &st->value, (FileValue){0});
	array_push(im->ctx->arena, &st->storage, (Storage){0});
}

void scope_init(Scope *s, State *st, json_t *graph)
{
	*s = (Scope){.st = st, .graph = graph, .b = {.g = st->g}};
	intern_init(&s->names, st->im->ctx->arena);
}

uint32_t scope_find(const Scope *s, const char *name)
{
	uint32_t id = intern_find(&s->names, name, (uint32_t)strlen(name));
	return id ? s->value.data[id - 1] : 0;
}

bool scope_bind(Scope *s, const char *name, uint32_t value)
{
	bool fresh;
	intern(&s->names, name, (uint32_t)strlen(name), &fresh);
	if (!fresh)
		return ctx_error(s->st->im->ctx, s->where, "value %s is defined twice", name);
	array_push(s->st->im->ctx->arena, &s->value, value);
	return true;
}

void scope_rebind(Scope *s, uint32_t old, uint32_t new)
{
	for (uint32_t k = 0; k < s->value.n; k++)
		if (s->value.data[k] == old)
			s->value.data[k] = new;
}

bool scope_meta(Scope *s, const char *name, Meta *m)
{
	json_t *meta = json_object_get(json_object_get(s->graph, "tensor_values"), name);
	return meta_read(s->st->im, meta, name, s->where, m);
}

/* ---- positions ---- */

/* Returns "encoder.layer.0", the innermost module of "key,path,class;key,path,class;..."; "" for
 * the model itself. */
static const char *module_path(Import *im, const json_t *metadata)
{
	const char *stack = json_str(metadata, "nn_module_stack");
	const char *last = stack ? strrchr(stack, ';') : NULL;
	last = last ? last + 1 : stack;
	const char *start = last ? strchr(last, ',') : NULL;
	const char *end = start ? strchr(start + 1, ',') : NULL;
	/* a placeholder of PyTorch's */
	if (!end || !strncmp(start + 1, "_empty_nn_module_stack", 22))
		return "";
	return arena_strndup(im->ctx->scratch, start + 1, (size_t)(end - start - 1));
}

const char *node_frame(Import *im, const json_t *node)
{
	const json_t *metadata = json_object_get(node, "metadata");
	const char *frame = frame_of_trace(im->ctx, json_str(metadata, "stack_trace"));
	const char *module = module_path(im, metadata);
	if (!frame || !*module)
		return frame;
	return arena_printf(im->ctx->scratch, "%s in %s", frame, module);
}

static const char *first_output(const json_t *node)
{
	json_t *v;
	json_tag(json_array_get(json_object_get(node, "outputs"), 0), &v);
	if (json_is_array(v))
		v = json_array_get(v, 0);
	const char *name = json_str(v, "name");
	return name ? name : json_str(v, "as_name");
}

const char *node_label(const json_t *node)
{
	const char *name = json_str(node, "name");
	name = name ? name : first_output(node);
	name = name ? name : json_str(node, "target");
	return name ? name : "?";
}

const char *node_position(Import *im, const json_t *node)
{
	const char *frame = node_frame(im, node), *label = node_label(node);
	return arena_printf(im->ctx->arena, "%s: node %s%s%s%s", im->ctx->file, label,
			    frame ? " (" : "", frame ? frame : "", frame ? ")" : "");
}

/* ---- results ---- */

static bool add_result(Scope *s, const json_t *tensor, Results *r)
{
	Result one = {.name = json_str(tensor, "name")};
	if (!one.name)
		return ctx_error(s->st->im->ctx, s->where, "a result has no name");
	TRY(scope_meta(s, one.name, &one.meta));
	array_push(s->st->im->ctx->scratch, r, one);
	return true;
}

bool read_results(Scope *s, const json_t *node, Results *r)
{
	size_t i, k;
	json_t *output, *v, *x;
	*r = (Results){0};
	json_array_foreach(json_object_get(node, "outputs"), i, output)
	{
		const char *tag = json_tag(output, &v);
		if (tag && !strcmp(tag, "as_tensor")) {
			TRY(add_result(s, v, r));
		} else if (tag && !strcmp(tag, "as_tensors")) {
			json_array_foreach(v, k, x)
			{
				TRY(add_result(s, x, r));
			}
		} else if (tag && !strcmp(tag, "as_none")) {
			Meta none = {
				.dtype = DT_f32, .rank = 1, .offset = sym_int(s->st->im->syms, 0)};
			Sym *zero = ARENA_NEW(s->st->im->ctx->arena, Sym);
			*zero = none.offset;
			none.size = none.stride = zero; /* nothing: no elements */
			array_push(s->st->im->ctx->scratch, r, (Result){NULL, none});
		} else {
			return ctx_error(s->st->im->ctx, s->where, "unsupported kind of result: %s",
					 tag ? tag : "malformed");
		}
	}
	return true;
}

static TypeId results_type(Scope *s, const Results *r)
{
	TypeId *elem = ARENA_ARRAY(s->st->im->ctx->scratch, TypeId, r->n);
	for (uint32_t k = 0; k < r->n; k++)
		elem[k] = meta_type(s->st->im, &r->data[k].meta);
	return ir_tuple(s->st->im->ir, r->n, elem);
}

/* Binds result k of `made`, as a view where the operator returns one. */
static bool bind_result(Scope *s, Node made, const NodeCall *c, const Results *r, uint32_t k,
			bool tuple)
{
	State *st = s->st;
	const Result *one = &r->data[k];
	if (!one->name)
		return true;
	Node n = tuple ? b_get(&s->b, made, k) : made;
	TRY(n.i);
	graph_set_name(st->g, n, one->name);
	const Schema *schema = op_schema(c->op);
	uint32_t self = tuple && schema->narg && schema->arg[0].kind == ARG_tensors ? k : 0;
	uint32_t parent = self < c->value.n ? c->value.data[self] : 0;
	ViewKind kind = VIEW_NONE;
	if (schema->view && op_info(c->op)->view == VIEW_NONE)
		return ctx_error(st->im->ctx, s->where,
				 "%s returns a view, and the op table does not say which",
				 schema->name);
	if (parent)
		kind = alias_kind(st, made, &st->value.data[parent].meta, &one->meta);
	const bool by_mode = parent && op_info(c->op)->view_if == VIEW_IF_IDLE;
	if (by_mode)
		st->storage.data[st->value.data[parent].storage].by_mode = true;
	if (kind == VIEW_NONE) {
		uint32_t own = value_new(st, n, &one->meta);
		st->storage.data[st->value.data[own].storage].by_mode = by_mode;
		st->value.data[own].mended = one->mended;
		return scope_bind(s, one->name, own);
	}
	uint32_t v = value_view(st, parent, made, self, tuple ? (int32_t)k : -1, n, &one->meta);
	if (alias_is_itself(st, made, kind, &st->value.data[parent].meta, &one->meta))
		st->value.data[v].no_grad = st->value.data[parent].no_grad;
	st->value.data[v].mended = one->mended;
	return scope_bind(s, one->name, v);
}

static bool check_count(Scope *s, Op op, const Results *r)
{
	const Schema *schema = op_schema(op);
	if (schema->nresult == UINT32_MAX || schema->nresult == r->n)
		return true;
	return ctx_error(s->st->im->ctx, s->where, "%s has %u results, the file lists %u",
			 schema->name, schema->nresult, r->n);
}

static bool add_call(Scope *s, const json_t *node, NodeCall *c)
{
	State *st = s->st;
	Results r;
	TRY(read_results(s, node, &r));
	TRY(results_mend(s, c, &r));
	TRY(check_count(s, c->op, &r));
	const Schema *schema = op_schema(c->op);
	bool tuple = schema->nresult != 1 && schema->nresult != 0;
	TypeId type = tuple ? results_type(s, &r)
		      : r.n ? meta_type(st->im, &r.data[0].meta)
			    : (TypeId){0};
	AttrId attr = ir_attrs(st->im->ir, schema->narg, c->attr);
	Node made = graph_add(st->g, (Node){0}, c->op, c->in.data, c->in.n, attr, type, s->b.loc);
	if (tuple)
		graph_set_name(st->g, made, node_label(node));
	for (uint32_t k = 0; k < r.n; k++)
		TRY(bind_result(s, made, c, &r, k, tuple));
	return true;
}

/* ---- in-place operators ---- */

Node *call_operands(Scope *s, const NodeCall *c)
{
	const Schema *schema = op_schema(c->op);
	Node *in = arena_dup(s->st->im->ctx->scratch, c->in.data, c->in.n * sizeof *in);
	uint32_t at = 0;
	for (uint32_t k = 0; k < schema->narg; k++) {
		if (schema->arg[k].kind == ARG_tensor && !in[at].i &&
		    !strcmp(schema->arg[k].name, "rng"))
			in[at] = b_iota(&s->b, DT_u64, sym_int(s->st->im->syms, 2));
		int64_t several = schema->arg[k].kind == ARG_tensor;
		if (schema->arg[k].kind == ARG_tensors)
			several = sym_const_or(s->st->im->syms, c->attr[k].s, several);
		at += (uint32_t)several;
	}
	return in;
}

/* Returns the dtype of what a call means: its expansion is built to see, and goes again. */
static DType expanded_dtype(Scope *s, const NodeCall *c, DType otherwise)
{
	Graph *g = s->st->g;
	const Node last = g->last;
	if (op_kind(c->op) != OP_COMPOSITE || op_info(c->op)->infer)
		return otherwise;
	AttrId attr = ir_attrs(s->st->im->ir, op_schema(c->op)->narg, c->attr);
	Node n = op_expand(&s->b, c->op, call_operands(s, c), c->in.n, attr);
	DType d = n.i ? node_dtype(g, n) : otherwise;
	while (g->last.i != last.i)
		graph_erase(g, g->last);
	return d;
}

/* Returns the dtype that the functional form computes, before it is stored into the dtype of the
 * operand. */
static DType functional_dtype(Scope *s, const NodeCall *c, DType self)
{
	Promotion p = {0};
	const Schema *schema = op_schema(c->op);
	for (uint32_t k = 0; k < c->in.n; k++)
		if (c->in.data[k].i)
			promote_tensor(&p, node_dtype(s->st->g, c->in.data[k]),
				       node_rank(s->st->g, c->in.data[k]));
	for (uint32_t k = 0; k < schema->narg; k++)
		if (schema->arg[k].kind == ARG_scalar && c->attr[k].kind != ATTR_none)
			promote_weak(&p, attr_weak_dtype(&c->attr[k]));
	DType d = promote_result(&p);
	switch (op_info(c->op)->promote) {
	case PROMOTE_NONE:
		return expanded_dtype(s, c, self);
	case PROMOTE_BOOL:
		return DT_bool;
	case PROMOTE_FLOAT:
		return dtype_is_inexact(d) ? d : DT_f32;
	case PROMOTE_INT:
		return d == DT_bool ? DT_i64 : d;
	case PROMOTE_DEFAULT:
		break;
	}
	return d;
}

/* Makes the result of a write the operand under one more name. */
static bool finish_write(Scope *s, const json_t *node, uint32_t self, Node n)
{
	Results r;
	TRY(read_results(s, node, &r));
	TRY(n.i && value_write(s->st, &s->b, self, n));
	return !r.n || !r.data[0].name || scope_bind(s, r.data[0].name, self);
}

bool meta_shapes_agree(const Meta *a, const Meta *b)
{
	bool same = a->rank == b->rank;
	for (uint32_t k = 0; k < a->rank && same; k++)
		same = a->size[k].i == b->size[k].i;
	return same;
}

/* Binds the result of resize_: another shape under the old names. */
static bool finish_resize(Scope *s, uint32_t self, Node n, const Result *r)
{
	graph_set_name(s->st->g, n, r->name);
	uint32_t v = value_new(s->st, n, &r->meta);
	scope_rebind(s, self, v);
	return scope_bind(s, r->name, v);
}

static bool import_in_place(Scope *s, const json_t *node, const CallTarget *t)
{
	State *st = s->st;
	NodeCall c;
	Results r;
	TRY(call_read(s, node, t->op, &c));
	TRY(read_results(s, node, &r));
	uint32_t self = c.in.n ? c.value.data[0] : 0;
	if (t->kind == TARGET_OUT)
		self = arg_value(s, node, "out", SIZE_MAX);
	if (!self || op_schema(c.op)->nresult != 1)
		return ctx_error(st->im->ctx, s->where, "no operand to write");
	Meta m = st->value.data[self].meta;
	DType stored = m.dtype;
	bool resized = r.n == 1 && r.data[0].name && !meta_shapes_agree(&m, &r.data[0].meta);
	if (resized)
		m = r.data[0].meta;
	m.dtype = functional_dtype(s, &c, stored);
	AttrId attr = ir_attrs(st->im->ir, op_schema(c.op)->narg, c.attr);
	Node n = graph_add(st->g, (Node){0}, c.op, c.in.data, c.in.n, attr, meta_type(st->im, &m),
			   s->b.loc);
	graph_set_name(st->g, n, node_label(node));
	n = b_convert(&s->b, n, stored);
	if (resized && n.i)
		return finish_resize(s, self, n, &r.data[0]);
	return finish_write(s, node, self, n);
}

/* Imports x.transpose_(0, 1): from now on the name of x stands for a view of what it was. */
static bool import_in_place_view(Scope *s, const json_t *node, const CallTarget *t)
{
	State *st = s->st;
	uint32_t self = arg_value(s, node, "self", 0);
	Results r;
	TRY(read_results(s, node, &r));
	if (!self)
		return ctx_error(st->im->ctx, s->where, "no operand to change");
	NodeCall c;
	TRY(call_read(s, node, t->op, &c));
	AttrId attr = ir_attrs(st->im->ir, op_schema(c.op)->narg, c.attr);
	const Meta *m = r.n ? &r.data[0].meta : &st->value.data[self].meta;
	Node n = graph_add(st->g, (Node){0}, c.op, c.in.data, c.in.n, attr, meta_type(st->im, m),
			   s->b.loc);
	graph_set_name(st->g, n, node_label(node));
	uint32_t v = value_view(st, self, n, 0, -1, n, m);
	/* the same tensor, under no_grad too */
	st->value.data[v].no_grad = st->value.data[self].no_grad;
	scope_rebind(s, self, v);
	return !r.n || !r.data[0].name || scope_bind(s, r.data[0].name, v);
}

/* Imports copy_, fill_ and zero_, which replace all elements. */
static bool import_overwrite(Scope *s, const json_t *node, const CallTarget *t)
{
	State *st = s->st;
	uint32_t self = arg_value(s, node, "self", 0);
	if (!self)
		return ctx_error(st->im->ctx, s->where, "no operand to write");
	Meta m = st->value.data[self].meta;
	TargetKind kind = t->kind;
	const char *what = kind == TARGET_COPY ? "src" : "value", *tag = NULL;
	uint32_t from = kind == TARGET_ZERO ? 0 : arg_value(s, node, what, 1);
	json_t *v = arg_find(node, what, 1, &tag);
	Attr x = attr_int(st->im->ir, 0);
	Node n;
	if (from) {
		n = b_broadcast(&s->b, value_read(st, &s->b, from), m.rank, m.size);
		n = n.i ? b_convert(&s->b, n, m.dtype) : n;
	} else if (kind != TARGET_ZERO && tag && arg_is_data(s, tag, v)) {
		n = arg_float_value(s, tag, v);
		n = n.i ? b_broadcast(&s->b, b_convert(&s->b, n, m.dtype), m.rank, m.size) : n;
	} else {
		if (kind != TARGET_ZERO && !tag)
			return ctx_error(st->im->ctx, s->where, "argument %s is missing", what);
		TRY(kind == TARGET_ZERO || arg_scalar(s, what, tag, v, &x));
		n = b_full_attr(&s->b, m.dtype, x, m.rank, m.size);
	}
	if (!strcmp(t->name, "aten.copy")) {
		Results r;
		TRY(n.i && read_results(s, node, &r));
		return r.n == 1 && r.data[0].name &&
		       scope_bind(s, r.data[0].name, value_new(st, n, &m));
	}
	return finish_write(s, node, self, n);
}

/* ---- assertions ---- */

static bool assert_value(Scope *s, Node holds, const char *message)
{
	Attr attr[2] = {[1] = attr_str(s->st->im->ir, message)};
	TRY(holds.i);
	b_node(&s->b, OP_assert, &holds, 1, attr, 2);
	return true;
}

/* Refuses what cannot hold, which is an error of the file; in a body, which may never run, adds
 * an assertion that fails when it does. */
static bool never_holds(Scope *s, const char *message)
{
	if (!s->st->is_body)
		return ctx_error(s->st->im->ctx, s->where, "assertion fails: %s", message);
	return assert_value(s, b_full_attr(&s->b, DT_bool, attr_bool(false), 0, NULL), message);
}

static bool import_assert(Scope *s, const json_t *node)
{
	Import *im = s->st->im;
	const char *tag, *message_tag;
	json_t *v = arg_find(node, "self", 0, &tag), *inner;
	const char *message = json_string_value(arg_find(node, "assert_msg", 1, &message_tag));
	message = message ? message : "assertion of the model";
	const char *kind = tag && !strcmp(tag, "as_sym_bool") ? json_tag(v, &inner) : NULL;
	if (!kind || strcmp(kind, "as_name")) {
		v = kind ? inner : v;
		return json_is_true(v) || never_holds(s, message);
	}
	uint32_t data = scope_find(s, json_string_value(inner));
	if (data)
		return assert_value(s, value_read(s->st, &s->b, data), message);
	json_t *value = json_object_get(json_object_get(s->graph, "sym_bool_values"),
					json_string_value(inner));
	if (json_is_true(json_object_get(value, "as_bool")))
		return true;
	const char *text = json_str(json_object_get(value, "as_expr"), "expr_str");
	ExprEnv env = {.ctx = im->ctx, .syms = im->syms};
	const Cond *c;
	uint32_t n;
	if (meta_is_ignored(im, message))
		return true;
	if (!text || !expr_cond(&env, text, &c, &n))
		return meta_cannot_check(im, s->where, message,
					 text ? env.error : "its condition is not in the file");
	for (uint32_t k = 0; k < n; k++)
		if (meta_is_loose(im, &c[k]))
			continue;
		else if (s->st->is_body && cond_truth(im->syms, &c[k]) == NO)
			return never_holds(s, message);
		else
			TRY(meta_require(im, s->st->g, &c[k], s->where, message));
	return true;
}

static bool import_assert_metadata(Scope *s, const json_t *node)
{
	uint32_t v = arg_value(s, node, "a", 0);
	const char *tag;
	json_t *code = arg_find(node, "dtype", 3, &tag);
	if (!v || !tag || strcmp(tag, "as_scalar_type"))
		return true;
	DType is = s->st->value.data[v].meta.dtype, want = pt2_dtype(json_integer_value(code));
	return is == want ||
	       ctx_error(s->st->im->ctx, s->where, "assertion fails: dtype is %s, not %s",
			 dtype_name(is), dtype_name(want));
}

/* ---- effects ---- */

const char *effects_target(const json_t *node)
{
	const json_t *input = json_array_get(json_object_get(node, "inputs"), 1);
	return json_str(json_object_get(input, "arg"), "as_operator");
}

/* Imports with_effects(token, operator, arguments...), which gives the next token and the
 * results. Nodes keep their order here, so that nothing reads a token. */
static bool import_with_effects(Scope *s, const json_t *node)
{
	const char *target = effects_target(node);
	size_t i;
	json_t *x, *call = json_object(), *inputs = json_array(), *outputs = json_array();
	json_array_foreach(json_object_get(node, "inputs"), i, x)
	{
		if (i >= 2)
			json_array_append(inputs, x);
	}
	json_array_foreach(json_object_get(node, "outputs"), i, x)
	{
		if (i >= 1 && !json_object_get(x, "as_none"))
			json_array_append(outputs, x);
	}
	json_object_set_new(call, "target", json_string(target ? target : ""));
	json_object_set_new(call, "inputs", inputs);
	json_object_set_new(call, "outputs", outputs);
	json_object_set(call, "name", json_object_get(node, "name"));
	json_object_set(call, "metadata", json_object_get(node, "metadata"));
	bool ok = call && scope_node(s, call);
	json_decref(call);
	return ok;
}

/* ---- dispatch ---- */

static bool import_op(Scope *s, const json_t *node, const CallTarget *t)
{
	NodeCall c;
	Results r;
	uint32_t errors = s->st->im->ctx->nerror;
	if (call_has_data(s, node)) {
		TRY(read_results(s, node, &r));
		Node n = r.n == 1 ? import_with_number(s, node, op_name(t->op), &r.data[0].meta)
				  : (Node){0};
		TRY(s->st->im->ctx->nerror == errors);
		if (n.i)
			return !r.data[0].name ||
			       scope_bind(s, r.data[0].name, value_new(s->st, n, &r.data[0].meta));
	}
	TRY(call_read(s, node, t->op, &c) && autocast_operands(s, node, &c));
	TRY(add_call(s, node, &c));
	return import_running_stats(s, node, t->name);
}

bool scope_node(Scope *s, const json_t *node)
{
	Import *im = s->st->im;
	const char *target = json_str(node, "target");
	if (!target)
		return ctx_error(im->ctx, NULL, "a node has no target");
	CallTarget t = target_of(im, target);
	s->where = s->b.where = node_position(im, node);
	const char *frame = node_frame(im, node);
	s->b.loc = frame ? ir_loc(im->ir, frame) : (LocId){0};
	switch (t.kind) {
	case TARGET_UNKNOWN:
		ctx_error(im->ctx, s->where, "unsupported operator %s", target);
		return ctx_kind(im->ctx, REFUSAL_OPERATOR);
	case TARGET_OP:
		return import_op(s, node, &t);
	case TARGET_IN_PLACE:
	case TARGET_OUT:
		return import_in_place(s, node, &t);
	case TARGET_IN_PLACE_VIEW:
		return import_in_place_view(s, node, &t);
	case TARGET_COPY:
	case TARGET_FILL:
	case TARGET_ZERO:
		return import_overwrite(s, node, &t);
	case TARGET_AS_STRIDED:
		return import_as_strided(s, node);
	case TARGET_OBSERVED:
		return import_observed(s, node, t.op);
	case TARGET_RESIZE:
		return import_resize(s, node, &t);
	case TARGET_NOTHING:
		return true;
	case TARGET_SYMBOLIC:
		return import_symbolic(s, node, t.name);
	case TARGET_ITEM:
		return import_item(s, node);
	case TARGET_ASSERT_SCALAR:
		return import_assert(s, node);
	case TARGET_ASSERT_METADATA:
		return import_assert_metadata(s, node);
	case TARGET_INNER_TENSOR:
		return import_inner_tensor(s, node);
	case TARGET_REGION:
		return import_region_mark(s, node);
	case TARGET_EFFECTS:
		return import_with_effects(s, node);
	case TARGET_USER:
		return import_user(s, node, t.user);
	default:
		return import_hop(s, node, t);
	}
}

bool scope_nodes(Scope *s)
{
	json_t *nodes = json_object_get(s->graph, "nodes");
	for (size_t i = 0; i < json_array_size(nodes); i++) {
		uint32_t before = s->st->im->ctx->nerror;
		json_t *node = json_array_get(nodes, i);
		bool ok = region_begins(node) ? import_region(s, &i) : scope_node(s, node);
		if (!ok || !meta_require_divisors(s->st->im, s->st->g, s->where)) {
			if (s->st->im->ctx->nerror == before)
				ctx_error(s->st->im->ctx, s->where, "cannot be imported");
			return false;
		}
	}
	s->where = s->b.where = NULL;
	return true;
}
