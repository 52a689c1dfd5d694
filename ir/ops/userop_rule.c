/* Derivatives of the user's operators: the texts of a definition, in the language of .expand (expand.c) and with the names of
 * its rules. They are checked when it is registered, and evaluated where a call is derived:
 *
 *   .vjp = "[mylib::decay_grad(g, x, rate, scale), none]"
 *   .jvp = "scale * t_x * exp(-rate)" */
#include <string.h>

#include "ir/ops/expand_priv.h"
#include "ir/ops/userop.h"

/* ---- calls in texts ---- */

const UserOp *expand_user_find(const Eval *e, const char *name, uint32_t len)
{
	const UserOp *const *op = e->b ? e->b->g->ir->userop.data : e->userop;
	uint32_t n = e->b ? e->b->g->ir->userop.n : e->nuserop;
	for (uint32_t k = 0; k < n; k++)
		if (strlen(op[k]->name) == len && !memcmp(op[k]->name, name, len))
			return op[k];
	return NULL;
}

typedef struct {
	ARRAY(Node) in;
	ARRAY(Sym) ints;
	ARRAY(double) floats;
} UserArgs;

static double number(const Eval *e, const Attr *a)
{
	int64_t i = 0;
	if (a->kind == ATTR_int)
		sym_is_const(b_syms(e->b), a->s, &i);
	return a->kind == ATTR_float ? a->f : a->kind == ATTR_bool ? a->b : (double)i;
}

static bool is_number(const Eval *e, const Attr *a)
{
	return a->kind == ATTR_float || a->kind == ATTR_bool || (a->kind == ATTR_int && sym_is_const(b_syms(e->b), a->s, NULL));
}

/* Where an argument is no tensor. */
static const char *add_scalar(const Eval *e, const Arg *arg, const Attr *a, UserArgs *to)
{
	Arena *arena = e->b->g->ir->ctx->arena;
	SymTab *t = b_syms(e->b);
	switch (arg->kind) {
	case ARG_float:
		if (!is_number(e, a))
			return "expected a number for a float argument";
		array_push(arena, &to->floats, number(e, a));
		return NULL;
	case ARG_bool:
		if (a->kind != ATTR_bool)
			return "expected true or false for a bool argument";
		array_push(arena, &to->ints, sym_int(t, a->b));
		return NULL;
	case ARG_ints:
		if (a->kind != ATTR_ints)
			return "expected a list of integers for an int[] argument";
		array_push(arena, &to->ints, sym_int(t, a->n));
		for (uint32_t k = 0; k < a->n; k++)
			array_push(arena, &to->ints, a->ints[k]);
		return NULL;
	default:
		if (a->kind != ATTR_int)
			return "expected an integer for an int argument";
		array_push(arena, &to->ints, a->s);
		return NULL;
	}
}

const char *expand_user_call(Eval *e, const UserOp *op, const Val *slot, Val *out)
{
	*out = (Val){.kind = VAL_any};
	if (!e->b)
		return NULL;
	Build *b = e->b;
	Ir *ir = b->g->ir;
	UserArgs args = {0};
	for (uint32_t k = 0; k < op->schema.narg; k++) {
		const Arg *arg = &op->schema.arg[k];
		if (arg->kind == ARG_tensor && slot[k].kind != VAL_node)
			return "expected a tensor for an argument of a user operator";
		if (arg->kind == ARG_tensor) {
			array_push(ir->ctx->arena, &args.in, slot[k].node);
			continue;
		}
		if (slot[k].kind != VAL_attr && slot[k].kind != VAL_none)
			return "expected no tensor for an argument of a user operator";
		Attr a = slot[k].kind == VAL_attr ? slot[k].attr : op_default(ir, arg);
		const char *err = add_scalar(e, arg, &a, &args);
		if (err)
			return err;
	}
	Attr attr[4] = {attr_int(ir, args.in.n), attr_str(ir, op->name), attr_ints(args.ints.data, args.ints.n),
			{ATTR_floats, args.floats.n, {.floats = args.floats.data}}};
	for (uint32_t k = 0; k < args.in.n; k++)
		if (!args.in.data[k].i) /* said before */
			return "an operand has an error";
	Node call = b_node(b, OP_call, args.in.data, args.in.n, attr, 4);
	*out = (Val){.kind = VAL_node, .node = call.i && op->nout == 1 ? b_get(b, call, 0) : call};
	return NULL;
}

/* ---- names ---- */

static const char *name_of(Arena *a, const char *prefix, uint32_t k)
{
	return arena_printf(a, "%s%u", prefix, k);
}

/* The call's arguments under the names of the operator's schema; b NULL: that they are there. */
static void bind_arguments(Eval *e, const UserOp *op, Node n)
{
	Graph *g = e->b ? e->b->g : NULL;
	UserScalars s = g ? userop_scalars(g, n) : (UserScalars){0};
	uint32_t at = 0, ints = 0, floats = 0;
	int64_t count = 0, value;
	for (uint32_t k = 0; k < op->schema.narg; k++) {
		const Arg *arg = &op->schema.arg[k];
		Val v = {.kind = g ? VAL_attr : VAL_any};
		if (g)
			switch (arg->kind) {
			case ARG_tensor: v = (Val){.kind = VAL_node, .node = node_in(g, n, at++)}; break;
			case ARG_float: v.attr = attr_float(s.floats[floats++]); break;
			case ARG_bool: v.attr = attr_bool(sym_is_const(g->ir->syms, s.ints[ints++], &value) && value); break;
			case ARG_ints:
				sym_is_const(g->ir->syms, s.ints[ints++], &count);
				v.attr = attr_ints(s.ints + ints, (uint32_t)count);
				ints += (uint32_t)count;
				break;
			default: v.attr = attr_sym(s.ints[ints++]); break;
			}
		expand_let(e, arg->name, v);
	}
}

/* y, or y0, y1, ...; the same of cotangents. value(k): of result k. */
static void bind_results(Eval *e, Arena *a, const UserOp *op, const char *name, const Val *value)
{
	if (op->nout == 1)
		expand_let(e, name, value[0]);
	for (uint32_t k = 0; k < op->nout && op->nout > 1; k++)
		expand_let(e, name_of(a, name, k), value[k]);
}

static Val *values(Arena *a, uint32_t n)
{
	Val *v = ARENA_ARRAY(a, Val, n + 1);
	for (uint32_t k = 0; k < n; k++)
		v[k].kind = VAL_any;
	return v;
}

/* ---- when it is registered ---- */

static bool refuse(Ctx *ctx, const UserOp *op, const char *rule, const Eval *e)
{
	return ctx_error(ctx, "user operator", "%s: .%s: %s at \"%.32s\"", op->name, rule, e->err, e->errp);
}

/* want: how many results, of which one may be without brackets. */
static bool check_rule(Ctx *ctx, const UserOp *op, const char *rule, const char *text, uint32_t want, Eval *e)
{
	Val *any = values(ctx->arena, op->nout);
	e->p = text;
	bind_arguments(e, op, (Node){0});
	bind_results(e, ctx->arena, op, "y", any);
	if (!strcmp(rule, "vjp"))
		bind_results(e, ctx->arena, op, "g", any);
	for (uint32_t k = 0; k < op->schema.narg && !strcmp(rule, "jvp"); k++)
		if (op->schema.arg[k].kind == ARG_tensor)
			expand_let(e, arena_printf(ctx->arena, "t_%s", op->schema.arg[k].name), (Val){.kind = VAL_any});
	const char *open = strrchr(text, ';');
	open = open ? open + 1 : text;
	open += strspn(open, " \t\n");
	Val v = expand_program(e);
	if (e->err)
		return refuse(ctx, op, rule, e);
	bool list = *open == '[';
	if (list ? v.n != want : want != 1 || !strcmp(rule, "vjp"))
		return ctx_error(ctx, "user operator", "%s: .%s: expected a list of %u, one for each %s", op->name, rule, want,
				 strcmp(rule, "vjp") ? "result" : "tensor among the arguments");
	return true;
}

bool userop_check_rules(Ctx *ctx, const UserOp *op, const UserOp *const *userop, uint32_t n)
{
	const WeftOpDef *def = &op->def;
	if (op->nout * 2 + op->schema.narg + op->nin > 4 * MAX_ARGS)
		return ctx_error(ctx, "user operator", "%s: too many arguments and results for rules", op->name);
	Eval vjp = {.user = true, .userop = userop, .nuserop = n}, jvp = vjp;
	TRY(!def->vjp || check_rule(ctx, op, "vjp", def->vjp, op->nin, &vjp));
	return !def->jvp || check_rule(ctx, op, "jvp", def->jvp, op->nout, &jvp);
}

/* ---- when a call is derived ---- */

static Eval begin(Build *b, const UserOp *op, Node n, const char *text)
{
	Arena *scratch = b->g->ir->ctx->scratch;
	Val *y = values(scratch, op->nout);
	Eval e = {.b = b, .p = text, .user = true};
	bind_arguments(&e, op, n);
	for (uint32_t k = 0; k < op->nout; k++)
		y[k] = (Val){.kind = VAL_node, .node = b_get(b, n, k)};
	bind_results(&e, scratch, op, "y", y);
	return e;
}

/* False after b_error. */
static bool done(Build *b, const UserOp *op, const char *rule, const Eval *e, uint32_t errors)
{
	if (b->g->ir->ctx->nerror != errors)
		return false;
	return !e->err || b_error(b, "%s: .%s: %s at \"%.32s\"", op->name, rule, e->err, e->errp).i;
}

/* A derivative of a value has its type; by a rule perhaps with dimensions that were broadcast, which are summed later. */
static bool check_type(Build *b, const UserOp *op, const char *rule, Node got, TypeId want, bool wider)
{
	const Graph *g = b->g;
	const Type *t = node_type(g, got), *w = ir_type_of(g->ir, want);
	bool fits = t->dtype != DT_none && (dtype_is_inexact(t->dtype) || !wider) && t->n >= w->n && (wider || t->n == w->n);
	for (uint32_t d = 0; d < w->n && fits; d++)
		fits = (wider && sym_is(b_syms(b), w->dim[d], 1)) || sym_eq(b_syms(b), t->dim[t->n - w->n + d], w->dim[d]) != NO;
	return fits || b_error(b, "%s: .%s gives %s where %s is expected", op->name, rule, type_str(g->ir, node_type_id(g, got)),
			       type_str(g->ir, want)).i;
}

bool userop_vjp(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	const UserOp *op = userop_of(b->g, n);
	uint32_t errors = b->g->ir->ctx->nerror;
	if (!op || !op->def.vjp)
		return b_error(b, "the user operator %s has no derivative: its definition has no .vjp (weft_op.h)", node_str(b->g, n, "op")).i;
	Arena *scratch = b->g->ir->ctx->scratch;
	Eval e = begin(b, op, n, op->def.vjp);
	Val *c = values(scratch, op->nout);
	for (uint32_t k = 0; k < op->nout; k++) {
		TypeId type = node_result_type(b->g, n, k);
		c[k] = (Val){.kind = VAL_node, .node = ct[k].i ? ct[k] : b_zeros(b, type)};
	}
	bind_results(&e, scratch, op, "g", c);
	Val v = expand_program(&e);
	if (!e.err && v.kind == VAL_attr && !op->nin)
		return true;
	if (!done(b, op, "vjp", &e, errors))
		return false;
	if (v.kind != VAL_nodes || v.n != op->nin)
		return b_error(b, "%s: .vjp: expected a list of %u tensors or none", op->name, op->nin).i;
	for (uint32_t k = 0; k < op->nin; k++) {
		g[k] = want[k] ? v.nodes[k] : (Node){0};
		TRY(!g[k].i || check_type(b, op, "vjp", g[k], node_type_id(b->g, node_in(b->g, n, k)), true));
	}
	return true;
}

bool userop_jvp(Build *b, Node n, const Node *t, Node *ty)
{
	const UserOp *op = userop_of(b->g, n);
	uint32_t errors = b->g->ir->ctx->nerror, at = 0;
	Arena *scratch = b->g->ir->ctx->scratch;
	Eval e = begin(b, op, n, op->def.jvp);
	for (uint32_t k = 0; k < op->schema.narg; k++) {
		if (op->schema.arg[k].kind != ARG_tensor)
			continue;
		Node x = node_in(b->g, n, at), tx = t[at++];
		bool none = !tx.i && !dtype_is_inexact(node_dtype(b->g, x));
		expand_let(&e, arena_printf(scratch, "t_%s", op->schema.arg[k].name),
			   none ? (Val){.kind = VAL_none} : (Val){.kind = VAL_node, .node = tx.i ? tx : b_zeros_like(b, x)});
	}
	Val v = expand_program(&e);
	if (!done(b, op, "jvp", &e, errors))
		return false;
	const Node *made = v.kind == VAL_nodes ? v.nodes : &v.node;
	if (v.kind != VAL_none && (v.kind == VAL_nodes ? v.n != op->nout : v.kind != VAL_node || op->nout != 1))
		return b_error(b, "%s: .jvp: expected %u tensors or none", op->name, op->nout).i;
	for (uint32_t k = 0; k < op->nout && v.kind != VAL_none; k++) {
		TypeId type = node_result_type(b->g, n, k);
		if (!made[k].i || !dtype_is_inexact(ir_type_of(b->g->ir, type)->dtype))
			continue;
		const Type y = *ir_type_of(b->g->ir, type);
		TRY(check_type(b, op, "jvp", made[k], type, false));
		ty[k] = b_convert(b, b_broadcast(b, made[k], y.n, y.dim), y.dtype);
	}
	return true;
}
