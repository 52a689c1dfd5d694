/* Are the rules of users' operators linear in cotangents or tangents? A rule is evaluated in a
 * graph of its own, in which the call's tensors are inputs, and each value that it computes is
 * judged (linear.h), so that a message has the piece of the text. */
#include <string.h>

#include "ops/rules/linear.h"
#include "ops/user/rule.h"

typedef struct {
	Ir *ir;
	const UserOp *op;
	bool vjp;
	Build b;
	LinearTable *table;
	const TypeId *type;
	Eval e;
	Span item[MAX_CALL]; /* the elements of a rule that is a list */
} Judging;

static Lin lin_of(const Judging *j, Node n)
{
	return linear_of(j->table, n, 0);
}

/* Says why a value, or an element of a tuple, is not linear; NULL if it is. Eval.judge. */
static const char *judge(void *arg, const Val *v)
{
	const Judging *j = arg;
	for (uint32_t k = 0; v->kind == VAL_node && v->node.i && k < node_nresult(j->b.g, v->node);
	     k++)
		if (linear_of(j->table, v->node, k) == LIN_NOT)
			return "is not linear in";
	return NULL;
}

static Node input(Judging *j, uint32_t k, Lin lin)
{
	Node n = graph_add_input(j->b.g, "", INPUT_USER, j->type[k]);
	linear_set(j->table, n, lin);
	return n;
}

/* Returns the derivative of value k. Only fractions have one: that of another value is zero, or
 * not there. */
static Val derivative(Judging *j, uint32_t k, ValKind other)
{
	bool inexact = dtype_is_inexact(ir_type_of(j->ir, j->type[k])->dtype);
	if (!inexact && other == VAL_none)
		return (Val){.kind = VAL_none};
	return (Val){.kind = VAL_node, .node = input(j, k, inexact ? LIN_LINEAR : LIN_ZERO)};
}

static void bind(Judging *j, const UserScalars *scalars)
{
	Arena *scratch = j->ir->ctx->scratch;
	uint32_t nin = j->op->nin, nout = j->op->nout;
	Node *in = ARENA_ARRAY(scratch, Node, nin + 1);
	Val *y = ARENA_ARRAY(scratch, Val, nout + 1),
	    *d = ARENA_ARRAY(scratch, Val, nin + nout + 1);
	for (uint32_t k = 0; k < nin; k++)
		in[k] = input(j, k, LIN_FREE);
	for (uint32_t k = 0; k < nout; k++)
		y[k] = (Val){.kind = VAL_node, .node = input(j, nin + k, LIN_FREE)};
	userop_bind_arguments(&j->e, j->op, in, scalars);
	userop_bind_results(&j->e, scratch, j->op, "y", y);
	for (uint32_t k = 0; k < (j->vjp ? nout : nin); k++)
		d[k] = derivative(j, j->vjp ? nin + k : k, j->vjp ? VAL_node : VAL_none);
	if (j->vjp)
		userop_bind_results(&j->e, scratch, j->op, "g", d);
	else
		userop_bind_tangents(&j->e, scratch, j->op, d);
}

/* ---- what is said ---- */

static const char *complaint(const Judging *j, Span s, const char *what)
{
	enum { SHOWN = 100 };
	while (s.len && strchr(" \t\n", s.p[s.len - 1]))
		s.len--;
	const char *by = !j->vjp ? "tangents" : j->op->nout == 1 ? "the cotangent g" : "cotangents";
	return arena_printf(j->ir->ctx->arena, "%s: .%s: \"%.*s%s\" %s %s", j->op->name,
			    j->vjp ? "vjp" : "jvp", (int)(s.len > SHOWN ? SHOWN : s.len), s.p,
			    s.len > SHOWN ? "..." : "", what, by);
}

/* Says what is wrong with a value that the rule gives; NULL if nothing is. */
static const char *complain_value(const Judging *j, const Val *v, Span s)
{
	if (v->kind == VAL_attr)
		return complaint(j, s, "is a number: expected a tensor or none, linear in");
	bool free = v->kind == VAL_node && v->node.i && node_nresult(j->b.g, v->node) == 1 &&
		    lin_of(j, v->node) == LIN_FREE;
	return free ? complaint(j, s, "does not depend on, and so is not linear in,") : NULL;
}

static const char *complain(Judging *j, const Val *v, const char *text)
{
	const char *why = NULL, *value = userop_rule_value(text);
	if (j->e.bad.p)
		return complaint(j, j->e.bad, j->e.err);
	if (j->e.err)
		return arena_printf(j->ir->ctx->arena, "%s: .%s: %s at \"%.32s\"", j->op->name,
				    j->vjp ? "vjp" : "jvp", j->e.err, j->e.errp);
	if (*value != '[')
		return complain_value(j, v, (Span){value, (uint32_t)strlen(value)});
	for (uint32_t k = 0; k < v->n && v->kind == VAL_nodes && !why; k++)
		why = complain_value(j, &(Val){.kind = VAL_node, .node = v->nodes[k]}, j->item[k]);
	for (uint32_t k = 0; v->kind == VAL_attr && k < v->attr.n && !why; k++)
		why = complain_value(j, v, j->item[k]);
	return why;
}

const char *userop_nonlinear(Ir *ir, const UserOp *op, bool vjp, const TypeId *type,
			     const UserScalars *scalars)
{
	CtxMark mark = ctx_mark(ir->ctx);
	Graph *g = graph_new(ir, "rule");
	const char *text = vjp ? op->def.vjp : op->def.jvp;
	Judging *j = ARENA_NEW(ir->ctx->scratch, Judging);
	*j = (Judging){.ir = ir,
		       .op = op,
		       .vjp = vjp,
		       .b = {.g = g, .where = op->name, .keep = true},
		       .table = linear_new(g),
		       .type = type};
	j->e = (Eval){
		.b = &j->b, .p = text, .user = true, .judge = judge, .judged = j, .item = j->item};
	bind(j, scalars);
	Val v = expand_program(&j->e);
	const char *why = ir->ctx->nerror == mark.nerror ? complain(j, &v, text) : NULL;
	ctx_rewind(ir->ctx, mark);
	return why;
}

/* ---- a call that may be ---- */

/* Sets ints[] to as many integers, and as large ones, as the default says; else to zeros. */
static void sample_ints(Ir *ir, const Arg *arg, Sym *ints, uint32_t *n)
{
	Attr a = op_default(ir, arg);
	uint32_t count = a.kind == ATTR_ints ? a.n : arg->size ? arg->size : 1;
	ints[(*n)++] = sym_int(ir->syms, count);
	for (uint32_t k = 0; k < count; k++)
		ints[(*n)++] = a.kind == ATTR_ints ? a.ints[k] : sym_int(ir->syms, 0);
}

/* Returns what an int argument is, also where types name it. */
static Sym sample_int(Ir *ir, const UserOp *op, const UserSolution *s, uint32_t arg)
{
	for (uint32_t k = 0; k < op->var.n; k++)
		if (op->var.data[k].arg == (int32_t)arg)
			return s->var[k];
	Attr a = op_default(ir, &op->schema.arg[arg]);
	return a.kind == ATTR_int ? a.s : sym_int(ir->syms, 1);
}

static UserScalars sample_scalars(Ir *ir, const UserOp *op, const UserSolution *s)
{
	uint32_t nint = 0, nfloat = 0, room = 0;
	for (uint32_t k = 0; k < op->schema.narg; k++)
		room += 2 + op->schema.arg[k].size + op_default(ir, &op->schema.arg[k]).n;
	Sym *ints = ARENA_ARRAY(ir->ctx->scratch, Sym, room + 1);
	double *floats = ARENA_ARRAY(ir->ctx->scratch, double, op->schema.narg + 1);
	for (uint32_t k = 0; k < op->schema.narg; k++) {
		const Arg *arg = &op->schema.arg[k];
		Attr a = op_default(ir, arg);
		if (arg->kind == ARG_float)
			floats[nfloat++] = 0.625; /* none of the numbers that vanish */
		else if (arg->kind == ARG_bool)
			ints[nint++] = sym_int(ir->syms, a.kind == ATTR_bool && a.b);
		else if (arg->kind == ARG_ints)
			sample_ints(ir, arg, ints, &nint);
		else if (arg->kind == ARG_int)
			ints[nint++] = sample_int(ir, op, s, k);
	}
	return (UserScalars){ints, floats, nint, nfloat};
}

const char *userop_nonlinear_sample(Ir *ir, const UserOp *op, bool vjp)
{
	Arena *scratch = ir->ctx->scratch;
	UserSolution *s = ARENA_NEW(scratch, UserSolution);
	TypeId *type = ARENA_ARRAY(scratch, TypeId, op->nin + op->nout + 1);
	Sym ahead = sym_var(ir->syms, arena_printf(ir->ctx->arena, "leading%d", vjp), SYMVAR_SIZE,
			    2, INT32_MAX);
	*s = (UserSolution){.leading = &ahead, .nleading = 1};
	for (uint32_t k = 0; k < MAX_USER_VARS; k++)
		s->any[k] = DT_f32;
	for (uint32_t k = 0; k < op->var.n; k++) {
		const char *name = arena_printf(ir->ctx->arena, "%s%d", op->var.data[k].name, vjp);
		s->var[k] = sym_var(ir->syms, name, SYMVAR_SIZE, 2, INT32_MAX);
	}
	for (uint32_t k = 0; k < op->nin + op->nout; k++)
		type[k] = userop_type(ir, op, s, k);
	UserScalars scalars = sample_scalars(ir, op, s);
	return userop_nonlinear(ir, op, vjp, type, &scalars);
}
