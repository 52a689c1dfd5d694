/* Derivatives of the user's operators: the texts of a definition, in the language of .expand
 * (expand.c) and with the names of its rules. They are checked when it is registered, and evaluated
 * where a call is derived:
 *
 *   .vjp = "[mylib::decay_grad(g, x, rate, scale), none]"
 *   .jvp = "scale * t_x * exp(-rate)" */
#include <string.h>

#include "ops/user/rule.h"

/* ---- names ---- */

static const char *name_of(Arena *a, const char *prefix, uint32_t k)
{
	return arena_printf(a, "%s%u", prefix, k);
}

void userop_bind_arguments(Eval *e, const UserOp *op, const Node *in, const UserScalars *s)
{
	uint32_t at = 0, ints = 0, floats = 0;
	for (uint32_t k = 0; k < op->schema.narg; k++) {
		const Arg *arg = &op->schema.arg[k];
		Val v = {.kind = in ? VAL_attr : VAL_any};
		int64_t value = 0;
		if (in)
			switch (arg->kind) {
			case ARG_tensor: v = (Val){.kind = VAL_node, .node = in[at++]}; break;
			case ARG_float: v.attr = attr_float(s->floats[floats++]); break;
			case ARG_bool:
				v.attr = attr_bool(
					sym_is_const(b_syms(e->b), s->ints[ints++], &value) &&
					value);
				break;
			case ARG_ints:
				value = sym_const(b_syms(e->b), s->ints[ints++]);
				v.attr = attr_ints(s->ints + ints, (uint32_t)value);
				ints += (uint32_t)value;
				break;
			default: v.attr = attr_sym(s->ints[ints++]); break;
			}
		expand_let(e, arg->name, v);
	}
}

void userop_bind_results(Eval *e, Arena *a, const UserOp *op, const char *name, const Val *value)
{
	if (op->nout == 1)
		expand_let(e, name, value[0]);
	for (uint32_t k = 0; k < op->nout && op->nout > 1; k++)
		expand_let(e, name_of(a, name, k), value[k]);
}

void userop_bind_tangents(Eval *e, Arena *a, const UserOp *op, const Val *value)
{
	for (uint32_t k = 0; k < op->schema.narg; k++)
		if (op->schema.arg[k].kind == ARG_tensor)
			expand_let(e, arena_printf(a, "t_%s", op->schema.arg[k].name), *value++);
}

/* Whether the name is that letter, or the letter and a number: "y", "y0", "y1", ... */
static bool is_numbered(const char *name, char letter)
{
	return name[0] == letter && name[1 + strspn(name + 1, "0123456789")] == 0;
}

const char *userop_name_taken(const char *name)
{
	static const char *const word[] = {"true", "false", "none", "inf", "nan"};
	if (is_numbered(name, 'y'))
		return "rules of derivatives call a result so";
	if (is_numbered(name, 'g'))
		return "rules of derivatives call a cotangent so";
	if (!strncmp(name, "t_", 2))
		return "rules of derivatives call tangents so";
	for (size_t k = 0; k < sizeof word / sizeof *word; k++)
		if (!strcmp(name, word[k]))
			return "it is a word of the language of rules";
	return dtype_parse(name, (uint32_t)strlen(name)) != DT_none
		       ? "rules of derivatives call a dtype so"
		       : NULL;
}

const char *userop_rule_value(const char *text)
{
	const char *p = strrchr(text, ';');
	p = p ? p + 1 : text;
	return p + strspn(p, " \t\n");
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
	return ctx_error(ctx, op->where, "%s: .%s: %s at \"%.32s\"", op->name, rule, e->err,
			 e->errp);
}

/* Checks the text of a rule. want: how many results, of which one may be without brackets. */
static bool check_rule(Ctx *ctx, const UserOp *op, const char *rule, const char *text,
		       uint32_t want, Eval *e)
{
	bool vjp = !strcmp(rule, "vjp");
	Val *any = values(ctx->arena, op->nout + op->nin);
	e->p = text;
	userop_bind_arguments(e, op, NULL, NULL);
	userop_bind_results(e, ctx->arena, op, "y", any);
	if (vjp)
		userop_bind_results(e, ctx->arena, op, "g", any);
	else
		userop_bind_tangents(e, ctx->arena, op, any);
	Val v = expand_program(e);
	if (e->err)
		return refuse(ctx, op, rule, e);
	bool list = *userop_rule_value(text) == '[';
	if (list ? v.n != want : want != 1 || vjp)
		return ctx_error(ctx, op->where, "%s: .%s: expected a list of %u, one for each %s",
				 op->name, rule, want,
				 vjp ? "tensor among the arguments" : "result");
	return true;
}

static bool check_names(Ctx *ctx, const UserOp *op)
{
	for (uint32_t k = 0; k < op->schema.narg; k++) {
		const char *name = op->schema.arg[k].name, *why = userop_name_taken(name);
		if (why)
			return ctx_error(ctx, op->where,
					 "%s: an argument of an operator with rules of derivatives "
					 "cannot be called %s: %s",
					 op->name, name, why);
	}
	return true;
}

/* Checks that the rules are linear, with types and scalars that the operator may be called with. */
static bool check_linear(Ctx *ctx, const UserOp *op, const UserOp *const *userop, uint32_t n)
{
	Ir *ir = ir_new(ctx);
	for (uint32_t k = 0; k < n; k++)
		array_push(ctx->arena, &ir->userop, userop[k]);
	for (int vjp = 0; vjp < 2; vjp++) {
		const char *why = (vjp ? op->def.vjp : op->def.jvp)
					  ? userop_nonlinear_sample(ir, op, vjp)
					  : NULL;
		if (why)
			return ctx_error(ctx, op->where, "%s", why);
	}
	return true;
}

bool userop_check_rules(Ctx *ctx, const UserOp *op, const UserOp *const *userop, uint32_t n)
{
	const WeftOpDef *def = &op->def;
	if (!def->vjp && !def->jvp)
		return true;
	if (op->nout * 2 + op->schema.narg + op->nin > 4 * MAX_ARGS)
		return ctx_error(ctx, op->where, "%s: too many arguments and results for rules",
				 op->name);
	TRY(check_names(ctx, op));
	Eval vjp = {.user = true, .userop = userop, .nuserop = n}, jvp = vjp;
	TRY(!def->vjp || check_rule(ctx, op, "vjp", def->vjp, op->nin, &vjp));
	TRY(!def->jvp || check_rule(ctx, op, "jvp", def->jvp, op->nout, &jvp));
	return check_linear(ctx, op, userop, n);
}

/* ---- when a call is derived ---- */

static Eval begin(Build *b, const UserOp *op, Node n, const char *text)
{
	Arena *scratch = b->g->ir->ctx->scratch;
	Val *y = values(scratch, op->nout);
	Node *in = ARENA_ARRAY(scratch, Node, op->nin + 1);
	UserScalars scalars = userop_scalars(b->g, n);
	Eval e = {.b = b, .p = text, .user = true};
	for (uint32_t k = 0; k < op->nin; k++)
		in[k] = node_in(b->g, n, k);
	userop_bind_arguments(&e, op, in, &scalars);
	for (uint32_t k = 0; k < op->nout; k++)
		y[k] = (Val){.kind = VAL_node, .node = b_get(b, n, k)};
	userop_bind_results(&e, scratch, op, "y", y);
	return e;
}

/* Checks that the rule is linear for the types of the call, which are known now. */
static bool is_linear(Build *b, const UserOp *op, Node n, bool vjp)
{
	TypeId *type = ARENA_ARRAY(b->g->ir->ctx->scratch, TypeId, op->nin + op->nout);
	UserScalars scalars = userop_scalars(b->g, n);
	for (uint32_t k = 0; k < op->nin; k++)
		type[k] = node_type_id(b->g, node_in(b->g, n, k));
	for (uint32_t k = 0; k < op->nout; k++)
		type[op->nin + k] = node_result_type(b->g, n, k);
	const char *why = userop_nonlinear(b->g->ir, op, vjp, type, &scalars);
	return !why || b_error(b, "%s", why).i;
}

/* Whether evaluating the rule met no error. Records one by b_error if the evaluation has it and
 * nobody did. */
static bool done(Build *b, const UserOp *op, const char *rule, const Eval *e, uint32_t errors)
{
	if (b->g->ir->ctx->nerror != errors)
		return false;
	return !e->err || b_error(b, "%s: .%s: %s at \"%.32s\"", op->name, rule, e->err, e->errp).i;
}

/* Whether both extents are equal; requires that of the sizes where it cannot be told. */
static bool same_extent(Graph *g, const UserOp *op, const char *rule, Sym got, Sym want)
{
	Truth same = graph_same_extent(g, got, want);
	if (same != MAYBE)
		return same == YES;
	graph_guard(
		g, GUARD_EQ, got, want,
		arena_printf(g->ir->ctx->arena, "%s: an extent of what .%s gives", op->name, rule));
	return true;
}

/* Checks that a derivative has the type of its value; by a rule perhaps with dimensions that
 * were broadcast (wider), which are summed later. */
static bool check_type(Build *b, const UserOp *op, const char *rule, Node got, TypeId want,
		       bool wider)
{
	Graph *g = b->g;
	const Type *t = node_type(g, got), *w = ir_type_of(g->ir, want);
	bool fits = t->dtype != DT_none && (dtype_is_inexact(t->dtype) || !wider) && t->n >= w->n &&
		    (wider || t->n == w->n);
	for (uint32_t d = 0; d < w->n && fits; d++)
		fits = (wider && sym_is(b_syms(b), w->dim[d], 1)) ||
		       same_extent(g, op, rule, t->dim[t->n - w->n + d], w->dim[d]);
	return fits || b_error(b, "%s: .%s gives %s where %s is expected", op->name, rule,
			       type_str(g->ir, node_type_id(g, got)), type_str(g->ir, want))
			       .i;
}

bool userop_vjp(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	const UserOp *op = userop_of(b->g, n);
	uint32_t errors = b->g->ir->ctx->nerror;
	if (!op || !op->def.vjp)
		return b_error(b,
			       "the user operator %s has no derivative: its definition has no .vjp "
			       "(weft_op.h)",
			       node_str(b->g, n, "op"))
			.i;
	TRY(is_linear(b, op, n, true));
	Arena *scratch = b->g->ir->ctx->scratch;
	Eval e = begin(b, op, n, op->def.vjp);
	Val *c = values(scratch, op->nout);
	for (uint32_t k = 0; k < op->nout; k++) {
		TypeId type = node_result_type(b->g, n, k);
		c[k] = (Val){.kind = VAL_node, .node = ct[k].i ? ct[k] : b_zeros(b, type)};
	}
	userop_bind_results(&e, scratch, op, "g", c);
	Val v = expand_program(&e);
	if (!e.err && v.kind == VAL_attr && !op->nin)
		return true;
	if (!done(b, op, "vjp", &e, errors))
		return false;
	if (v.kind != VAL_nodes || v.n != op->nin)
		return b_error(b, "%s: .vjp: expected a list of %u tensors or none", op->name,
			       op->nin)
			.i;
	for (uint32_t k = 0; k < op->nin; k++) {
		g[k] = want[k] ? v.nodes[k] : (Node){0};
		TRY(!g[k].i ||
		    check_type(b, op, "vjp", g[k], node_type_id(b->g, node_in(b->g, n, k)), true));
	}
	return true;
}

bool userop_jvp(Build *b, Node n, const Node *t, Node *ty)
{
	const UserOp *op = userop_of(b->g, n);
	uint32_t errors = b->g->ir->ctx->nerror;
	TRY(is_linear(b, op, n, false));
	Arena *scratch = b->g->ir->ctx->scratch;
	Val *tangent = values(scratch, op->nin);
	Eval e = begin(b, op, n, op->def.jvp);
	for (uint32_t k = 0; k < op->nin; k++) {
		Node x = node_in(b->g, n, k);
		bool none = !t[k].i && !dtype_is_inexact(node_dtype(b->g, x));
		tangent[k] =
			none ? (Val){.kind = VAL_none}
			     : (Val){.kind = VAL_node, .node = t[k].i ? t[k] : b_zeros_like(b, x)};
	}
	userop_bind_tangents(&e, scratch, op, tangent);
	Val v = expand_program(&e);
	if (!done(b, op, "jvp", &e, errors))
		return false;
	const Node *made = v.kind == VAL_nodes ? v.nodes : &v.node;
	if (v.kind != VAL_none &&
	    (v.kind == VAL_nodes ? v.n != op->nout : v.kind != VAL_node || op->nout != 1))
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
