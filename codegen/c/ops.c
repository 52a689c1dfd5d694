/* Basic operations as C expressions: infix where C means the same, helper functions elsewhere. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/c/emit_priv.h"

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
	Prec left = prec == PREC_LOW ? PREC_UNARY : prec, right = prec == PREC_LOW ? PREC_UNARY : prec - 1;
	const char *s = arena_printf(u->arena, "%s %s %s", c_arg(u, a, left), op, c_arg(u, b, right));
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
	return (CExpr){arena_printf(u->arena, "%lld", (long long)v), v < 0 ? PREC_UNARY : PREC_ATOM};
}

static CExpr c_float1(CUnit *u, DType d, double v)
{
	const char *suffix = d == DT_f64 ? "" : "f", *cast = d == DT_f64 ? "(double)" : "";
	if (isnan(v))
		return (CExpr){arena_printf(u->arena, "%sNAN", cast), PREC_UNARY};
	if (isinf(v))
		return (CExpr){arena_printf(u->arena, "%s%sINFINITY", v < 0 ? "-" : "", cast), PREC_UNARY};
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
	const char *arg = x.s[0] == '-' ? arena_printf(u->arena, "(%s)", x.s) : c_arg(u, x, PREC_UNARY);
	return (CExpr){arena_printf(u->arena, "%s%s", op, arg), PREC_UNARY};
}

static CExpr c_bool_op(CUnit *u, ScOp op, uint32_t lanes, const CExpr *in)
{
	bool mask = lanes > 1;
	switch (op) {
	case SC_and: return c_infix(u, in[0], mask ? "&" : "&&", in[1], PREC_LOW);
	case SC_or: return c_infix(u, in[0], mask ? "|" : "||", in[1], PREC_LOW);
	case SC_xor: return c_infix(u, in[0], mask ? "^" : "!=", in[1], PREC_LOW);
	default: break;
	}
	if (!mask)
		return unary_minus(u, "!", in[0]);
	if (u->target->isa.masks != MASK_BITS)
		return unary_minus(u, "~", in[0]);
	return c_infix(u, in[0], "^", c_int(u, (LType){DT_bool, lanes}, 1), PREC_LOW);
}

static CExpr c_cast(CUnit *u, LType t, CExpr x)
{
	const char *s = arena_printf(u->arena, "(%s)%s", c_type(u, t), c_arg(u, x, PREC_UNARY));
	return (CExpr){s, PREC_UNARY};
}

static CExpr helper_call(CUnit *u, const char *op, LType to, LType from, const CExpr *in, uint32_t nin)
{
	return c_call(u, c_helper(u, op, to, from), in, nin);
}

static CExpr c_compare(CUnit *u, ScOp op, LType t, const CExpr *in)
{
	static const char *const infix[] = {"==", "!=", "<", "<=", ">", ">="};
	if (t.lanes == 1)
		return c_infix(u, in[0], infix[op - SC_eq], in[1], PREC_LOW);
	return helper_call(u, sc_name(op), (LType){DT_bool, t.lanes}, t, in, 2);
}

static CExpr conditional(CUnit *u, CExpr c, CExpr yes, CExpr no)
{
	return (CExpr){arena_printf(u->arena, "%s ? %s : %s", c_arg(u, c, PREC_UNARY), c_arg(u, yes, PREC_ADD),
	                            c_arg(u, no, PREC_ADD)), PREC_LOW};
}

static CExpr c_select(CUnit *u, LType t, const CExpr *in)
{
	return t.lanes > 1 ? helper_call(u, "select", t, t, in, 3) : conditional(u, in[0], in[1], in[2]);
}

/* One-lane math has its name in C. */
static CExpr c_math(CUnit *u, ScOp op, LType t, const CExpr *in, uint32_t nin)
{
	const char *name = op == SC_abs ? "fabs" : sc_name(op);
	if (t.lanes > 1)
		return helper_call(u, sc_name(op), t, t, in, nin);
	return c_call(u, t.dtype == DT_f32 ? arena_printf(u->arena, "%sf", name) : name, in, nin);
}

static CExpr c_float_op(CUnit *u, ScOp op, LType t, const CExpr *in, uint32_t nin)
{
	switch (op) {
	case SC_add: return c_infix(u, in[0], "+", in[1], PREC_ADD);
	case SC_sub: return c_infix(u, in[0], "-", in[1], PREC_ADD);
	case SC_mul: return c_infix(u, in[0], "*", in[1], PREC_MUL);
	case SC_div: return c_infix(u, in[0], "/", in[1], PREC_MUL);
	case SC_neg: return unary_minus(u, "-", in[0]);
	case SC_lesser:
	case SC_greater:
		if (t.lanes == 1)
			return conditional(u, c_infix(u, in[0], op == SC_lesser ? "<" : ">", in[1], PREC_LOW), in[0], in[1]);
		return helper_call(u, sc_name(op), t, t, in, 2);
	default: return c_math(u, op, t, in, nin);
	}
}

static CExpr c_index_op(CUnit *u, ScOp op, const CExpr *in, bool *done)
{
	*done = true;
	switch (op) {
	case SC_add: return c_infix(u, in[0], "+", in[1], PREC_ADD);
	case SC_sub: return c_infix(u, in[0], "-", in[1], PREC_ADD);
	case SC_mul: return c_infix(u, in[0], "*", in[1], PREC_MUL);
	case SC_neg: return unary_minus(u, "-", in[0]);
	case SC_mod: return c_infix(u, in[0], "%", in[1], PREC_MUL);
	case SC_quot: return c_infix(u, in[0], "/", in[1], PREC_MUL);
	case SC_right: return c_infix(u, in[0], ">>", in[1], PREC_LOW);
	default:
		break;
	}
	*done = false;
	return in[0];
}

static CExpr c_int_op(CUnit *u, ScOp op, LType t, const CExpr *in, uint32_t nin, unsigned known)
{
	bool done = false;
	CExpr r = known & KNOWN_INDEX ? c_index_op(u, op, in, &done) : in[0];
	if (done)
		return r;
	switch (op) {
	case SC_and: return c_infix(u, in[0], "&", in[1], PREC_LOW);
	case SC_or: return c_infix(u, in[0], "|", in[1], PREC_LOW);
	case SC_xor: return c_infix(u, in[0], "^", in[1], PREC_LOW);
	case SC_not:
		if (t.lanes > 1)
			return unary_minus(u, "~", in[0]);
		break;
	default: break;
	}
	return helper_call(u, sc_name(op), t, t, in, nin);
}

/* ---- conversions ---- */

static CExpr c_convert(CUnit *u, ScOp op, LType to, LType from, CExpr x)
{
	if (to.lanes > 1 || (op == SC_convert && dtype_is_float(from.dtype) && dtype_is_int(to.dtype)))
		return helper_call(u, sc_name(op), to, from, &x, 1);
	return c_cast(u, to, x);
}

CExpr c_op(CUnit *u, ScOp op, LType result, LType operand, const CExpr *in, uint32_t nin,
           unsigned known)
{
	if (op == SC_convert || op == SC_fit)
		return c_convert(u, op, result, operand, in[0]);
	if (op == SC_bitcast)
		return result.lanes > 1 ? c_cast(u, result, in[0]) : helper_call(u, "bitcast", result, operand, in, 1);
	if (op == SC_from_f16 || op == SC_to_f16)
		return helper_call(u, sc_name(op), (LType){DT_f32, result.lanes}, (LType){DT_f32, result.lanes}, in, 1);
	if (op >= SC_eq && op <= SC_ge)
		return c_compare(u, op, operand, in);
	if (op == SC_select)
		return c_select(u, result, in);
	if (result.dtype == DT_bool)
		return c_bool_op(u, op, result.lanes, in);
	if (dtype_is_float(result.dtype))
		return c_float_op(u, op, result, in, nin);
	return c_int_op(u, op, result, in, nin, known);
}
