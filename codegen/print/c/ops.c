/* Expressions of C: literals, and operations in place or by helper functions, as their rows say. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/print/c/emit_priv.h"

CExpr c_atom(const char *s)
{
	return (CExpr){s, PREC_ATOM};
}

const char *c_arg(CUnit *u, CExpr x, Prec prec)
{
	return x.prec <= prec ? x.s : arena_printf(u->arena, "(%s)", x.s);
}

CExpr c_infix(CUnit *u, CExpr a, const char *op, CExpr b, Prec prec)
{
	/* Left-associative; anything below addition gets parentheses around operators inside. */
	Prec left = prec == PREC_LOW ? PREC_UNARY : prec,
	     right = prec == PREC_LOW ? PREC_UNARY : prec - 1;
	const char *s =
		arena_printf(u->arena, "%s %s %s", c_arg(u, a, left), op, c_arg(u, b, right));
	return (CExpr){s, prec};
}

CExpr c_call(CUnit *u, const char *fn, const CExpr *in, uint32_t nin)
{
	Text t;
	text_init(&t, u->arena);
	text_printf(&t, "%s(", fn);
	for (uint32_t k = 0; k < nin; k++)
		text_printf(&t, "%s%s", k ? ", " : "", in[k].s);
	text_char(&t, ')');
	return c_atom(t.data);
}

/* ---- literals ---- */

static CExpr c_int1(CUnit *u, DType d, int64_t v)
{
	switch (d) {
	case DT_bool:
		return c_atom(v ? "true" : "false");
	case DT_i64:
		if (v == INT64_MIN)
			return c_atom("INT64_MIN");
		if (v > INT32_MAX || v < INT32_MIN)
			return c_atom(arena_printf(u->arena, "INT64_C(%lld)", (long long)v));
		break;
	case DT_u64:
		return c_atom(arena_printf(u->arena, "UINT64_C(%llu)", (unsigned long long)v));
	case DT_u32:
		return c_atom(arena_printf(u->arena, "%luu", (unsigned long)(uint32_t)v));
	case DT_i32:
		if ((int32_t)v == INT32_MIN)
			return c_atom("INT32_MIN");
		v = (int32_t)v;
		break;
	default:
		break;
	}
	return (CExpr){arena_printf(u->arena, "%lld", (long long)v),
		       v < 0 ? PREC_UNARY : PREC_ATOM};
}

static CExpr c_float1(CUnit *u, DType d, double v)
{
	const char *suffix = d == DT_f64 ? "" : "f", *cast = d == DT_f64 ? "(double)" : "";
	if (isnan(v))
		return (CExpr){arena_printf(u->arena, "%sNAN", cast), PREC_UNARY};
	if (isinf(v))
		return (CExpr){arena_printf(u->arena, "%s%sINFINITY", v < 0 ? "-" : "", cast),
			       PREC_UNARY};
	Prec prec = signbit(v) ? PREC_UNARY : PREC_ATOM;
	/* Short decimals are easier to read; hexadecimal is always exact. */
	char s[64];
	snprintf(s, sizeof s, "%.6g", v);
	double back = d == DT_f64 ? strtod(s, NULL) : (double)strtof(s, NULL);
	if (back != v)
		snprintf(s, sizeof s, "%a", v);
	else if (!strpbrk(s, ".e"))
		strcat(s, ".0");
	return (CExpr){arena_printf(u->arena, "%s%s", s, suffix), prec};
}

static CExpr c_splat(CUnit *u, LType t, CExpr x)
{
	if (t.lanes == 1)
		return x;
	return c_call(u, c_helper(u, "splat", t, t), &x, 1);
}

CExpr c_int(CUnit *u, LType t, int64_t v)
{
	if (t.dtype == DT_bool && t.lanes > 1 && u->target->isa.masks == MASK_BITS) {
		uint64_t all = ((uint64_t)1 << t.lanes) - 1;
		return c_atom(v ? arena_printf(u->arena, "0x%llx", (unsigned long long)all) : "0");
	}
	return c_splat(u, t, c_int1(u, t.dtype, v));
}

CExpr c_float(CUnit *u, LType t, double v)
{
	return c_splat(u, t, c_float1(u, t.dtype, v));
}

/* ---- operations ---- */

static CExpr unary_minus(CUnit *u, const char *op, CExpr x)
{
	const char *arg =
		x.s[0] == '-' ? arena_printf(u->arena, "(%s)", x.s) : c_arg(u, x, PREC_UNARY);
	return (CExpr){arena_printf(u->arena, "%s%s", op, arg), PREC_UNARY};
}

static CExpr conditional(CUnit *u, CExpr c, CExpr yes, CExpr no)
{
	return (CExpr){arena_printf(u->arena, "%s ? %s : %s", c_arg(u, c, PREC_UNARY),
				    c_arg(u, yes, PREC_ADD), c_arg(u, no, PREC_ADD)),
		       PREC_LOW};
}

static Prec prec_of(const char *op)
{
	return *op == '+' || *op == '-'                 ? PREC_ADD
	       : *op == '*' || *op == '/' || *op == '%' ? PREC_MUL
							: PREC_LOW;
}

/* Returns the operation that a prelude row writes in place, by a text of one of these forms:
 * "-a", "($T)a", "f(a, b)", "a < b", "a ^ $N", "a < b ? a : b", "m ? a : b". */
static CExpr in_place(CUnit *u, const char *s, LType t, const CExpr *in, uint32_t nin)
{
	char op[4] = "";
	if (strchr("-~!", *s))
		return unary_minus(u, arena_strndup(u->arena, s, 1), in[0]);
	if (*s == '(')
		return (CExpr){
			arena_printf(u->arena, "(%s)%s", c_type(u, t), c_arg(u, in[0], PREC_UNARY)),
			PREC_UNARY};
	if (*s == 'm')
		return conditional(u, in[0], in[1], in[2]);
	if (s[1] != ' ')
		return c_call(u, arena_strndup(u->arena, s, strcspn(s, "(")), in, nin);
	memcpy(op, s + 2, strcspn(s + 2, " "));
	CExpr x = c_infix(u, in[0], op, nin == 1 ? c_int(u, t, 1) : in[1], prec_of(op));
	return strchr(s, '?') ? conditional(u, x, in[0], in[1]) : x;
}

CExpr c_op(CUnit *u, ScOp op, LType result, LType operand, const CExpr *in, uint32_t nin,
	   unsigned known)
{
	const PreludeRow *row = prelude_of_op(&u->target->isa, op, result, operand, known, false);
	if (row && *row->c == '=')
		return in_place(u, row->c + 1, result, in, nin);
	prelude_types(op, &result, &operand);
	return c_call(u, c_helper(u, sc_name(op), result, operand), in, nin);
}
