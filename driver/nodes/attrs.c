/* Arguments of nodes, between users and the graph. */
#include <string.h>

#include "driver/nodes/nodes.h"
#include "ops/user/userop.h"

/* ---- out ---- */

static const char *size_text(const NodeStep *s, Sym e)
{
	return intern_str(&s->g->ir->strings, sym_str(graph_syms(s->g), e));
}

/* Numbers where all are numbers, else texts. */
static void give_ints(const NodeStep *s, const Attr *a, WeftAttr *out)
{
	Arena *arena = weft_arena(s->w);
	int64_t *number = ARENA_ARRAY(arena, int64_t, a->n);
	uint32_t known = 0;
	while (known < a->n && sym_is_const(graph_syms(s->g), a->ints[known], &number[known]))
		known++;
	out->kind = known == a->n ? WEFT_ATTR_INTS : WEFT_ATTR_SIZES;
	out->u.ints = number;
	if (known == a->n)
		return;
	const char **text = ARENA_ARRAY(arena, const char *, a->n);
	for (uint32_t k = 0; k < a->n; k++)
		text[k] = size_text(s, a->ints[k]);
	out->u.texts = text;
}

static void give_text(WeftAttr *out, WeftAttrKind kind, const char *text)
{
	out->kind = kind;
	out->u.text = text;
}

static void give_value(const NodeStep *s, const Attr *a, WeftAttr *out)
{
	static const WeftAttrKind kinds[] = {
		[ATTR_none] = WEFT_ATTR_NONE,       [ATTR_bool] = WEFT_ATTR_BOOL,
		[ATTR_int] = WEFT_ATTR_INT,         [ATTR_float] = WEFT_ATTR_FLOAT,
		[ATTR_complex] = WEFT_ATTR_COMPLEX, [ATTR_str] = WEFT_ATTR_TEXT,
		[ATTR_dtype] = WEFT_ATTR_TEXT,      [ATTR_graph] = WEFT_ATTR_BODY,
		[ATTR_const] = WEFT_ATTR_VALUE,     [ATTR_ints] = WEFT_ATTR_INTS,
		[ATTR_floats] = WEFT_ATTR_FLOATS,   [ATTR_bools] = WEFT_ATTR_BOOLS};
	out->kind = kinds[a->kind];
	out->n = a->kind >= ATTR_ints ? a->n : 1;
	if (a->kind == ATTR_bool)
		out->u.b = a->b;
	else if (a->kind == ATTR_int && !sym_is_const(graph_syms(s->g), a->s, &out->u.i))
		give_text(out, WEFT_ATTR_SIZE, size_text(s, a->s));
	else if (a->kind == ATTR_float)
		out->u.f = a->f;
	else if (a->kind == ATTR_complex)
		out->u.z[0] = a->z.re, out->u.z[1] = a->z.im;
	else if (a->kind == ATTR_str)
		out->u.text = a->str;
	else if (a->kind == ATTR_dtype)
		out->u.text = dtype_name(a->dtype);
	else if (a->kind == ATTR_graph)
		out->u.body = graph_of_body(s->graph, s->n, a->graph);
	else if (a->kind == ATTR_ints)
		give_ints(s, a, out);
	else if (a->kind == ATTR_floats)
		out->u.floats = a->floats;
	else if (a->kind == ATTR_bools)
		out->u.bools = a->bools;
}

static void give_nodes(const NodeStep *s, const Arg *arg, WeftAttr *out)
{
	uint32_t first, n = node_args(s->g, s->n, arg->name, &first);
	WeftNode *list = ARENA_ARRAY(weft_arena(s->w), WeftNode, n);
	for (uint32_t k = 0; k < n && first + k < node_nin(s->g, s->n); k++)
		list[k] = step_give(s, node_in(s->g, s->n, first + k));
	out->kind = WEFT_ATTR_NODES;
	out->n = n;
	out->u.nodes = list;
}

/* Gives argument k of a call of the user's operator. */
static void give_user(const NodeStep *s, const UserOp *user, uint32_t k, WeftAttr *out)
{
	uint32_t operand = 0;
	for (uint32_t i = 0; i < k; i++)
		operand += user->schema.arg[i].kind == ARG_tensor;
	if (user->schema.arg[k].kind == ARG_tensor) {
		out->kind = WEFT_ATTR_NODE;
		out->n = 1;
		out->u.node = step_give(s, node_in(s->g, s->n, operand));
		return;
	}
	Attr a = userop_argument(s->g, s->n, user, k);
	give_value(s, &a, out);
}

bool attr_give(const NodeStep *s, uint32_t k, WeftAttr *out)
{
	const UserOp *user = step_user(s);
	const Schema *schema = step_schema(s);
	if (k >= schema->narg)
		return step_error(s, "%s has %u arguments, no argument %u", schema->name,
				  schema->narg, k);
	const Arg *arg = &schema->arg[k];
	*out = (WeftAttr){.name = arg->name};
	if (user) {
		give_user(s, user, k, out);
		return true;
	}
	Attr a = *ir_attr(s->g->ir, node_data(s->g, s->n)->attr, k);
	if (arg->kind == ARG_tensors) {
		give_nodes(s, arg, out);
	} else if (arg->kind == ARG_tensor) {
		out->n = 1;
		out->u.node = step_give(s, node_arg(s->g, s->n, arg->name));
		out->kind = out->u.node.index ? WEFT_ATTR_NODE : WEFT_ATTR_NONE;
	} else if (arg->kind != ARG_ignored) {
		give_value(s,
			   a.kind == ATTR_none && !arg->optional
				   ? &(Attr[]){op_default(s->g->ir, arg)}[0]
				   : &a,
			   out);
	}
	return true;
}

/* ---- in ---- */

static bool node_has(const NodeStep *s, Node n, Sym var)
{
	return n.i && n.i < s->g->node.n && type_uses(s->g->ir, node_type_id(s->g, n), var);
}

/* Whether an operand has the size: of s->n, where it is to change, or of the arguments. */
static bool operand_has(const NodeStep *s, Sym var)
{
	const WeftAttr *a = s->attr;
	for (uint32_t k = 0; s->n.i && k < node_nin(s->g, s->n); k++)
		if (node_has(s, node_in(s->g, s->n, k), var))
			return true;
	for (uint32_t k = 0; k < s->k; k++) {
		const WeftNode *list = a[k].kind == WEFT_ATTR_NODES ? a[k].u.nodes : &a[k].u.node;
		uint32_t len = a[k].kind == WEFT_ATTR_NODES ? a[k].n : a[k].kind == WEFT_ATTR_NODE;
		for (uint32_t j = 0; list && j < len; j++)
			if (list[j].graph == s->graph && node_has(s, (Node){list[j].index}, var))
				return true;
	}
	return false;
}

static bool size_is_known(const NodeStep *s, Sym e, const char *text)
{
	const SymTab *t = graph_syms(s->g);
	uint32_t input, dim;
	for (uint32_t k = 0; k < sym_nvars(t); k++) {
		Sym var = sym_var_at(t, k);
		if (!sym_uses(t, e, var) ||
		    graph_symbol_input(graph_root(s->graph)->g, var, &input, &dim) ||
		    operand_has(s, var))
			continue;
		return step_error(s,
				  "size \"%s\": %s is neither a size of an input nor of an operand",
				  text, sym_name(t, var));
	}
	return true;
}

static bool take_size(const NodeStep *s, const char *text, Sym *out)
{
	SymTab *t = graph_syms(s->g);
	const char *end = text;
	if (!text)
		return step_error(s, "a size is missing: NULL");
	*out = sym_parse(t, &end);
	if (out->i && sym_gave_up(t, *out))
		return false;
	if (!out->i || end[strspn(end, " ")] || sym_is_real(t, *out))
		return step_error(
			s, "\"%s\" is no size: expected an expression of the graph's sizes", text);
	return size_is_known(s, *out, text);
}

static bool take_sizes(const NodeStep *s, const WeftAttr *a, Attr *out)
{
	Sym *v = ARENA_ARRAY(s->w->ctx->scratch, Sym, a->n);
	for (uint32_t k = 0; k < a->n; k++)
		TRY(take_size(s, a->u.texts[k], &v[k]));
	*out = attr_ints(v, a->n);
	return true;
}

static bool take_nodes(const NodeStep *s, const WeftAttr *a, TraceArg *out)
{
	bool list = a->kind == WEFT_ATTR_NODES;
	uint32_t n = list ? a->n : 1;
	Node *value = ARENA_ARRAY(s->w->ctx->scratch, Node, n);
	for (uint32_t k = 0; k < n; k++) {
		WeftNode from = list ? a->u.nodes[k] : a->u.node;
		const char *what = arena_printf(s->w->ctx->scratch, "operand %u of %s", k,
						a->name ? a->name : "the argument");
		TRY((list && !from.index) || step_value(s, what, from, &value[k]));
	}
	out->is_values = true;
	out->is_list = list;
	out->value = value;
	out->n = n;
	return true;
}

/* Checks that an argument is of a known kind, and that what it points to is there. */
static bool is_whole(const NodeStep *s, const WeftAttr *a)
{
	bool list = a->kind == WEFT_ATTR_NODES ||
		    (a->kind >= WEFT_ATTR_INTS && a->kind <= WEFT_ATTR_SIZES);
	bool text = a->kind == WEFT_ATTR_TEXT || a->kind == WEFT_ATTR_SIZE;
	if ((unsigned)a->kind > WEFT_ATTR_VALUE)
		return step_error(s, "an argument of kind %d, which there is not", (int)a->kind);
	if (a->kind == WEFT_ATTR_BODY || a->kind == WEFT_ATTR_VALUE)
		return step_error(s, "an argument is %s, which a new node cannot have",
				  a->kind == WEFT_ATTR_BODY ? "a body" : "the value of a constant");
	if (list && a->n > UINT16_MAX)
		return step_error(s, "an argument is a list of %u, expected at most %u", a->n,
				  UINT16_MAX);
	/* Members of a union of pointers: any of them tells. */
	bool missing = (text && !a->u.text) || (list && a->n && !a->u.ints);
	return !missing ||
	       step_error(s, "argument %s is missing: NULL", a->name ? a->name : "by position");
}

static bool take_value(const NodeStep *s, const WeftAttr *a, Attr *out)
{
	Ir *ir = s->g->ir;
	Sym *v, size;
	*out = attr_none();
	switch (a->kind) {
	case WEFT_ATTR_BOOL:
		*out = attr_bool(a->u.b);
		return true;
	case WEFT_ATTR_INT:
		*out = attr_int(ir, a->u.i);
		return true;
	case WEFT_ATTR_FLOAT:
		*out = attr_float(a->u.f);
		return true;
	case WEFT_ATTR_COMPLEX:
		*out = attr_complex(a->u.z[0], a->u.z[1]);
		return true;
	case WEFT_ATTR_TEXT:
		*out = attr_str(ir, a->u.text);
		return true;
	case WEFT_ATTR_SIZE:
		TRY(take_size(s, a->u.text, &size));
		*out = attr_sym(size);
		return true;
	case WEFT_ATTR_INTS:
		v = ARENA_ARRAY(ir->ctx->scratch, Sym, a->n);
		for (uint32_t k = 0; k < a->n; k++)
			v[k] = sym_int(ir->syms, a->u.ints[k]);
		*out = attr_ints(v, a->n);
		return true;
	case WEFT_ATTR_SIZES:
		return take_sizes(s, a, out);
	case WEFT_ATTR_FLOATS:
		*out = (Attr){ATTR_floats, a->n, {.floats = a->u.floats}};
		return true;
	case WEFT_ATTR_BOOLS:
		*out = attr_bools(a->u.bools, a->n);
		return true;
	default:
		return true;
	}
}

bool attr_take(const NodeStep *s, TraceArg *out)
{
	const WeftAttr *a = s->attr;
	for (uint32_t k = 0; k < s->k; k++)
		TRY(is_whole(s, &a[k]));
	for (uint32_t k = 0; k < s->k; k++) {
		out[k].name = a[k].name;
		if (a[k].kind == WEFT_ATTR_NODE || a[k].kind == WEFT_ATTR_NODES)
			TRY(take_nodes(s, &a[k], &out[k]));
		else
			TRY(take_value(s, &a[k], &out[k].attr));
	}
	return true;
}

/* ---- questions ---- */

static bool ask_nattr(NodeStep *s)
{
	TRY(step_node(s));
	s->count = step_schema(s)->narg;
	return true;
}

uint32_t weft_node_nattr(Weft *w, WeftNode n)
{
	NodeStep s = {.w = w, .function = "weft_node_nattr", .node = n};
	return step(&s, ask_nattr) ? s.count : 0;
}

static bool ask_attr_at(NodeStep *s)
{
	return step_node(s) && given(s->w, s->function, "room for the argument", s->out) &&
	       attr_give(s, s->k, s->out);
}

bool weft_node_attr_at(Weft *w, WeftNode n, uint32_t k, WeftAttr *out)
{
	NodeStep s = {.w = w, .function = "weft_node_attr_at", .node = n, .k = k, .out = out};
	return step(&s, ask_attr_at);
}

static bool ask_attr(NodeStep *s)
{
	TRY(step_node(s) && given_text(s->w, s->function, "the name of the argument", s->text));
	TRY(given(s->w, s->function, "room for the argument", s->out));
	int k = step_arg_index(s, s->text);
	if (k < 0)
		return step_error(s, "%s has no argument %s", step_schema(s)->name, s->text);
	return attr_give(s, (uint32_t)k, s->out);
}

bool weft_node_attr(Weft *w, WeftNode n, const char *name, WeftAttr *out)
{
	NodeStep s = {.w = w, .function = "weft_node_attr", .node = n, .text = name, .out = out};
	return step(&s, ask_attr);
}

static bool ask_arg(NodeStep *s)
{
	TRY(ask_attr(s));
	if (step_schema(s)->arg[step_arg_index(s, s->text)].kind != ARG_tensor)
		return step_error(s, "argument %s of node %s is no node", s->text,
				  step_name(s, s->n));
	s->found = s->out->u.node;
	return true;
}

WeftNode weft_node_arg(Weft *w, WeftNode n, const char *name)
{
	WeftAttr a;
	NodeStep s = {.w = w, .function = "weft_node_arg", .node = n, .text = name, .out = &a};
	step(&s, ask_arg);
	return s.found;
}

static bool ask_number(NodeStep *s)
{
	TRY(ask_attr(s));
	WeftAttrKind kind = s->out->kind;
	return kind == WEFT_ATTR_INT || kind == WEFT_ATTR_FLOAT || kind == WEFT_ATTR_BOOL ||
	       step_error(s, "argument %s of node %s is no number", s->text, step_name(s, s->n));
}

bool weft_node_number(Weft *w, WeftNode n, const char *name, double *out)
{
	WeftAttr a;
	NodeStep s = {.w = w, .function = "weft_node_number", .node = n, .text = name, .out = &a};
	if (!step(&s, ask_number))
		return false;
	if (out)
		*out = a.kind == WEFT_ATTR_FLOAT  ? a.u.f
		       : a.kind == WEFT_ATTR_BOOL ? a.u.b
						  : (double)a.u.i;
	return true;
}

static bool ask_body(NodeStep *s)
{
	TRY(ask_attr(s));
	s->body = s->out->u.body;
	return s->out->kind == WEFT_ATTR_BODY ||
	       step_error(s, "argument %s of node %s is no body", s->text, step_name(s, s->n));
}

WeftGraph *weft_node_body(Weft *w, WeftNode n, const char *name)
{
	WeftAttr a;
	NodeStep s = {.w = w, .function = "weft_node_body", .node = n, .text = name, .out = &a};
	return step(&s, ask_body) ? s.body : NULL;
}
