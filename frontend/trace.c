#include "frontend/trace.h"

#include <string.h>

#include "ir/op/op.h"
#include "ops/user/userop.h"

typedef struct {
	Build *b;
	Op op;
	const UserOp *user; /* NULL: an operator of the table */
	const Schema *s;
	Attr attr[MAX_ARGS];
	const TraceArg *arg[MAX_ARGS]; /* by argument of the schema */
	ARRAY(Node) in;
} TracedCall;

/* ---- which operator ---- */

static bool has_number(const Schema *s, const TraceArg *arg, uint32_t n)
{
	for (uint32_t k = 0; k < n && k < s->narg; k++)
		if (!arg[k].name && s->arg[k].kind == ARG_tensor && !arg[k].is_values &&
		    arg[k].attr.kind != ATTR_none)
			return true;
	return false;
}

static void no_operator(Build *b, const char *name)
{
	Ctx *ctx = b->g->ir->ctx;
	b_error(b, "there is no operator %s%s", name, op_hint(ctx->scratch, name));
	ctx_kind(ctx, REFUSAL_OPERATOR);
}

/* Finds an operator by its name. Of aten.add.Tensor(x, 2) that is aten.add.Scalar. Returns
 * OP_none after an error. */
static Op find_op(Build *b, const char *name, const TraceArg *arg, uint32_t n)
{
	Op op = op_find(name), scalar;
	const char *tail = strrchr(name, '.');
	if (!op || op == OP_input || op == OP_constant)
		return no_operator(b, name), OP_none;
	if (!has_number(op_schema(op), arg, n) || !tail || strcmp(tail, ".Tensor") != 0)
		return op;
	scalar = op_find(
		arena_printf(b->g->ir->ctx->scratch, "%.*s.Scalar", (int)(tail - name), name));
	return scalar ? scalar : op;
}

/* Finds an operator that somebody has registered, "mylib::decay". */
static const UserOp *find_user(const Ir *ir, const char *name)
{
	return userop_among(ir->userop.data, ir->userop.n, name);
}

/* ---- arguments ---- */

static int arg_index(const Schema *s, const char *name)
{
	for (uint32_t k = 0; k < s->narg; k++)
		if (!strcmp(s->arg[k].name, name))
			return (int)k;
	return -1;
}

static bool place_args(TracedCall *c, const TraceArg *arg, uint32_t n)
{
	uint32_t next = 0;
	for (uint32_t k = 0; k < n; k++) {
		int at = arg[k].name ? arg_index(c->s, arg[k].name) : (int)next++;
		if (at < 0 || at >= (int)c->s->narg) {
			b_error(c->b, "%s has no argument %s", c->s->name,
				arg[k].name ? arg[k].name : "at this position");
			return false;
		}
		if (c->arg[at]) {
			b_error(c->b, "%s: argument %s is given twice", c->s->name,
				c->s->arg[at].name);
			return false;
		}
		c->arg[at] = &arg[k];
	}
	return true;
}

static bool wrong(TracedCall *c, const Arg *a, const char *expected)
{
	b_error(c->b, "%s: argument %s: expected %s", c->s->name, a->name, expected);
	return false;
}

static void push(TracedCall *c, Node n)
{
	array_push(c->b->g->ir->ctx->scratch, &c->in, n);
}

static bool take_tensor(TracedCall *c, const Arg *a, const TraceArg *t)
{
	bool absent = !t || (!t->is_values && t->attr.kind == ATTR_none);
	if (absent && !a->optional)
		return wrong(c, a, "a value");
	if (!absent && (!t->is_values || t->is_list))
		return wrong(c, a, "one value");
	push(c, absent ? (Node){0} : *t->value);
	return true;
}

static bool take_tensors(TracedCall *c, const Arg *a, const TraceArg *t, Attr *out)
{
	if (!t || !t->is_values || !t->is_list)
		return wrong(c, a, "a list of values");
	for (uint32_t k = 0; k < t->n; k++) {
		if (!t->value[k].i && !a->optional)
			return wrong(c, a, "a list of values, none of them absent");
		push(c, t->value[k]);
	}
	*out = attr_int(c->b->g->ir, t->n);
	return true;
}

static bool take_attr(TracedCall *c, const Arg *a, const TraceArg *t, Attr *out)
{
	if (t && t->is_values)
		return wrong(c, a, "no tensor");
	if (a->kind == ARG_graph || a->kind == ARG_const)
		return wrong(c, a, "what calls cannot pass");
	*out = t ? t->attr : attr_none();
	if (a->kind == ARG_dtype && out->kind == ATTR_str) {
		DType d = dtype_parse(out->str, (uint32_t)strlen(out->str));
		if (!d)
			return wrong(c, a, "a dtype");
		*out = attr_dtype(d);
	}
	if (!t && a->has_default)
		*out = op_default(c->b->g->ir, a);
	return true;
}

static bool take_args(TracedCall *c)
{
	for (uint32_t k = 0; k < c->s->narg; k++) {
		const Arg *a = &c->s->arg[k];
		const TraceArg *t = c->arg[k];
		c->attr[k] = attr_none();
		if (a->writes)
			return wrong(c, a,
				     "nothing that is written: take the operator that returns a "
				     "new value");
		bool ok = a->kind == ARG_tensor    ? take_tensor(c, a, t)
			  : a->kind == ARG_tensors ? take_tensors(c, a, t, &c->attr[k])
						   : take_attr(c, a, t, &c->attr[k]);
		if (!ok)
			return false;
	}
	return true;
}

/* Adds the call of an operator of the user. Returns the result itself if the operator has one. */
static Node user_call(TracedCall *c)
{
	Attr attr[4];
	const char *wrong = userop_attrs(c->b->g->ir, c->user, c->attr, attr);
	if (wrong) {
		b_error(c->b, "%s: %s", c->user->name, wrong);
		return (Node){0};
	}
	Node n = b_node(c->b, OP_call, c->in.data, c->in.n, attr, 4);
	return n.i && c->user->nout == 1 ? b_get(c->b, n, 0) : n;
}

Node trace_call(Build *b, const char *name, const TraceArg *arg, uint32_t n)
{
	TracedCall *c = arena_calloc(b->g->ir->ctx->scratch, 1, sizeof *c);
	*c = (TracedCall){.b = b, .user = find_user(b->g->ir, name)};
	c->op = c->user ? OP_call : find_op(b, name, arg, n);
	if (!c->op)
		return (Node){0};
	c->s = c->user ? &c->user->schema : op_schema(c->op);
	if (!place_args(c, arg, n) || !take_args(c))
		return (Node){0};
	return c->user ? user_call(c) : b_call(b, c->op, c->in.data, c->in.n, c->attr, c->s->narg);
}
