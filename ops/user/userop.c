/* Calls of user operators: do operands fit, what are the results, and calling the function. */
#include <stdio.h>
#include <string.h>

#include "ops/user/userop.h"

/* Whether op, "mylib::decay", is called so: "mylib.decay" or "mylib.decay.default", as PyTorch
 * writes it. */
static bool is_called(const char *op, const char *name)
{
	for (; *op; op++, name++) {
		if (op[0] == ':' && op[1] == ':' && name[0] == '.')
			op++;
		else if (*op != *name)
			return false;
	}
	return !*name || !strcmp(name, ".default");
}

const UserOp *userop_among(const UserOp *const *op, uint32_t n, const char *name)
{
	for (uint32_t k = 0; k < n; k++)
		if (is_called(op[k]->name, name))
			return op[k];
	return NULL;
}

const UserOp *userop_find(const Ir *ir, const char *name)
{
	if (!strncmp(name, "weft::", 6) || !strncmp(name, "weft.", 5))
		return userop_builtin(ir, name);
	return userop_among(ir->userop.data, ir->userop.n, name);
}

const UserOp *userop_of(const Graph *g, Node n)
{
	return userop_find(g->ir, node_str(g, n, "op"));
}

const UserOp *userop_called(const Graph *g, Node n)
{
	return node_op(g, n) == OP_call ? userop_of(g, n) : NULL;
}

UserScalars userop_scalars(const Graph *g, Node n)
{
	UserScalars s;
	const Attr *floats = node_attr(g, n, "floats");
	s.ints = node_ints(g, n, "ints", &s.nint);
	s.floats = floats->floats;
	s.nfloat = floats->n;
	return s;
}

Attr userop_argument(const Graph *g, Node n, const UserOp *op, uint32_t k)
{
	const UserScalars s = userop_scalars(g, n);
	uint32_t ints = 0, floats = 0;
	for (uint32_t i = 0;; i++) {
		ArgKind kind = op->schema.arg[i].kind;
		bool list = kind == ARG_ints;
		if (i == k && kind == ARG_float)
			return attr_float(s.floats[floats]);
		if (kind == ARG_float) {
			floats++;
			continue;
		}
		if (kind == ARG_tensor)
			continue;
		uint32_t len = list ? (uint32_t)sym_const(graph_syms(g), s.ints[ints]) : 1;
		ints += list;
		if (i == k)
			return list ? attr_ints(s.ints + ints, len)
			       : kind == ARG_bool
				       ? attr_bool(sym_const(graph_syms(g), s.ints[ints]))
				       : attr_sym(s.ints[ints]);
		ints += len;
	}
}

/* ---- fitting ---- */

typedef struct {
	Ir *ir;
	const UserOp *op;
	UserSolution *s;
	const Type *operand;
} Solver;

__attribute__((format(printf, 2, 3))) static bool misfit(Solver *v, const char *fmt, ...)
{
	Text t;
	va_list ap;
	text_init(&t, v->ir->ctx->arena);
	text_printf(&t, "%s: ", v->op->name);
	va_start(ap, fmt);
	text_vprintf(&t, fmt, ap);
	va_end(ap);
	v->s->why = t.data;
	return false;
}

static Sym expr(SymTab *t, const UserSolution *s, const UserExpr *e)
{
	Sym a = e->a ? expr(t, s, e->a) : (Sym){0}, b = e->b ? expr(t, s, e->b) : (Sym){0};
	switch (e->kind) {
	case UX_INT: return sym_int(t, e->i);
	case UX_VAR: return s->var[e->var];
	case UX_ADD: return sym_add(t, a, b);
	case UX_SUB: return sym_sub(t, a, b);
	case UX_MUL: return sym_mul(t, a, b);
	case UX_DIV: return sym_divi(t, a, e->i);
	case UX_MOD: return sym_modi(t, a, e->i);
	case UX_MIN: return sym_min(t, a, b);
	case UX_MAX: return sym_max(t, a, b);
	}
	return (Sym){0};
}

/* Returns the name of operand k. */
static const char *operand_name(const UserOp *op, uint32_t k)
{
	for (uint32_t i = 0; i < op->schema.narg; i++)
		if (op->schema.arg[i].kind == ARG_tensor && k-- == 0)
			return op->schema.arg[i].name;
	return "?";
}

/* Gives variables that are int arguments their values. Checks that there are as many scalars as
 * the schema has. */
static bool bind_scalars(Solver *v, const UserScalars *x)
{
	uint32_t at = 0, nfloat = 0;
	SymTab *t = v->ir->syms;
	for (uint32_t k = 0; k < v->op->schema.narg; k++) {
		const Arg *a = &v->op->schema.arg[k];
		int64_t n = a->kind == ARG_int || a->kind == ARG_bool || a->kind == ARG_ints, i;
		nfloat += a->kind == ARG_float;
		if (n && at >= x->nint)
			return misfit(v, "argument %s has no value", a->name);
		for (uint32_t j = 0; j < v->op->var.n; j++)
			if (v->op->var.data[j].arg == (int32_t)k)
				v->s->var[j] = x->ints[at];
		if (a->kind == ARG_bool &&
		    (!sym_is_const(t, x->ints[at], &i) || (i != 0 && i != 1)))
			return misfit(v, "argument %s is %s, expected 0 or 1", a->name,
				      sym_str(t, x->ints[at]));
		if (a->kind == ARG_ints) {
			if (!sym_is_const(t, x->ints[at], &n) || n < 0 || n > x->nint - at - 1)
				return misfit(v, "argument %s has no length", a->name);
			if (a->size && n != a->size)
				return misfit(v, "argument %s has %lld integers, expected %u",
					      a->name, (long long)n, a->size);
			n++;
		}
		at += (uint32_t)n;
	}
	if (at != x->nint || nfloat != x->nfloat)
		return misfit(v, "%u integers and %u floats, expected %u and %u", x->nint,
			      x->nfloat, at, nfloat);
	return true;
}

static bool same(Solver *v, uint32_t k, uint32_t dim, Sym got, Sym want)
{
	SymTab *t = v->ir->syms;
	Truth equal = sym_eq(t, got, want);
	if (equal == NO)
		return misfit(v, "dimension %u of %s is %s, expected %s by \"%s\"", dim,
			      operand_name(v->op, k), sym_str(t, got), sym_str(t, want),
			      v->op->def.types);
	if (equal == MAYBE)
		array_push(v->ir->ctx->arena, &v->s->need,
			   (UserNeed){got, want,
				      arena_printf(v->ir->ctx->arena, "%s: dimension %u of %s",
						   v->op->name, dim, operand_name(v->op, k))});
	return true;
}

static bool bind_dtype(Solver *v, uint32_t k)
{
	const UserType *want = &v->op->type[k];
	DType got = v->operand[k].dtype, *any = &v->s->any[want->any];
	if (dtype_is_complex(got))
		return misfit(v, "%s is complex, which user operators do not support",
			      operand_name(v->op, k));
	DType must = want->dtype != DT_none ? want->dtype : *any;
	if (must != DT_none && must != got)
		return misfit(v, "%s is %s, expected %s by \"%s\"", operand_name(v->op, k),
			      dtype_name(got), dtype_name(must), v->op->def.types);
	if (want->dtype == DT_none)
		*any = got;
	return true;
}

/* Checks dtype and rank of operand k, and what "..." stands for; gives names that are a
 * dimension of their own a value, of which the first counts. */
static bool bind_operand(Solver *v, uint32_t k)
{
	const UserType *want = &v->op->type[k];
	const Type *got = &v->operand[k];
	TRY(bind_dtype(v, k));
	if (got->n < want->rank || (got->n > want->rank && !want->leading))
		return misfit(v, "%s has %u dimensions, expected %u%s by \"%s\"",
			      operand_name(v->op, k), got->n, want->rank,
			      want->leading ? " or more" : "", v->op->def.types);
	uint32_t ahead = got->n - want->rank;
	if (want->leading && !v->s->leading) {
		v->s->leading = ahead ? got->dim : ARENA_NEW(v->ir->ctx->arena, Sym);
		v->s->nleading = ahead;
	}
	if (want->leading && v->s->nleading != ahead)
		return misfit(v, "%s has %u dimensions ahead of those named, expected %u by \"%s\"",
			      operand_name(v->op, k), ahead, v->s->nleading, v->op->def.types);
	for (uint32_t d = 0; d < want->rank; d++) {
		const UserExpr *e = want->dim[d];
		if (e->kind == UX_VAR && !v->s->var[e->var].i)
			v->s->var[e->var] = got->dim[ahead + d];
	}
	return true;
}

static bool check_operand(Solver *v, uint32_t k)
{
	const UserType *want = &v->op->type[k];
	const Type *got = &v->operand[k];
	uint32_t ahead = got->n - want->rank;
	for (uint32_t d = 0; d < ahead; d++)
		TRY(same(v, k, d, got->dim[d], v->s->leading[d]));
	for (uint32_t d = 0; d < want->rank; d++)
		TRY(same(v, k, ahead + d, got->dim[ahead + d],
			 expr(v->ir->syms, v->s, want->dim[d])));
	return true;
}

static bool at_least_0(Solver *v, const char *what, Sym e)
{
	SymTab *t = v->ir->syms;
	Truth fits = sym_le(t, sym_int(t, 0), e);
	if (fits == NO)
		return misfit(v, "%s would be %s", what, sym_str(t, e));
	if (fits == MAYBE)
		array_push(
			v->ir->ctx->arena, &v->s->need,
			(UserNeed){e,
				   {0},
				   arena_printf(v->ir->ctx->arena, "%s: %s", v->op->name, what)});
	return true;
}

static bool check_result(Solver *v, uint32_t k)
{
	const UserType *r = &v->op->type[v->op->nin + k];
	if (r->rank + (r->leading ? v->s->nleading : 0) > MAX_RANK)
		return misfit(v, "result %u would have more than %d dimensions", k, MAX_RANK);
	for (uint32_t d = 0; d < r->rank; d++)
		TRY(at_least_0(v,
			       arena_printf(v->ir->ctx->arena, "dimension %u of result %u", d, k),
			       expr(v->ir->syms, v->s, r->dim[d])));
	return true;
}

bool userop_solve(Ir *ir, const UserOp *op, const Type *operand, const UserScalars *scalars,
		  UserSolution *s)
{
	Solver v = {ir, op, s, operand};
	*s = (UserSolution){0};
	TRY(bind_scalars(&v, scalars));
	for (uint32_t k = 0; k < op->nin; k++)
		TRY(bind_operand(&v, k));
	for (uint32_t k = 0; k < op->nin; k++)
		TRY(check_operand(&v, k));
	for (uint32_t k = 0; k < op->nout; k++)
		TRY(check_result(&v, k));
	return !op->work ||
	       at_least_0(&v, "the size of its workspace", expr(ir->syms, s, op->work));
}

TypeId userop_type(Ir *ir, const UserOp *op, const UserSolution *s, uint32_t k)
{
	const UserType *r = &op->type[k];
	Sym dim[MAX_RANK];
	uint32_t n = 0;
	for (uint32_t d = 0; r->leading && d < s->nleading; d++)
		dim[n++] = s->leading[d];
	for (uint32_t d = 0; d < r->rank; d++)
		dim[n++] = expr(ir->syms, s, r->dim[d]);
	return ir_type(ir, r->dtype != DT_none ? r->dtype : s->any[r->any], n, dim);
}

TypeId userop_result(Ir *ir, const UserOp *op, const UserSolution *s, uint32_t k)
{
	return userop_type(ir, op, s, op->nin + k);
}

Sym userop_work(Ir *ir, const UserOp *op, const UserSolution *s)
{
	return op->work ? expr(ir->syms, s, op->work) : (Sym){0};
}
