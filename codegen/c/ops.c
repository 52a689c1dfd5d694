/* Basic operations as C expressions: infix where C means the same, helper functions elsewhere. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/c/emit_priv.h"

CExpr c_atom(const char *s)
{
	return (CExpr){s, PREC_ATOM, false};
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
	return (CExpr){s, prec, false};
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
	return (CExpr){arena_printf(u->arena, "%lld", (long long)v), v < 0 ? PREC_UNARY : PREC_ATOM, false};
}

static CExpr c_float1(CUnit *u, DType d, double v)
{
	const char *suffix = d == DT_f64 ? "" : "f", *cast = d == DT_f64 ? "(double)" : "";
	if (isnan(v))
		return (CExpr){arena_printf(u->arena, "%sNAN", cast), PREC_UNARY, false};
	if (isinf(v))
		return (CExpr){arena_printf(u->arena, "%s%sINFINITY", v < 0 ? "-" : "", cast), PREC_UNARY,
		               true};
	Prec prec = signbit(v) ? PREC_UNARY : PREC_ATOM;
	/* Short decimals are easier to read; hexadecimal is always exact. */
	char s[64];
	snprintf(s, sizeof s, "%.6g", v);
	double back = d == DT_f64 ? strtod(s, NULL) : (double)strtof(s, NULL);
	if (back != v)
		snprintf(s, sizeof s, "%a", v);
	else if (!strpbrk(s, ".e"))
		strcat(s, ".0");
	return (CExpr){arena_printf(u->arena, "%s%s", s, suffix), prec, true};
}

static CExpr c_splat(CUnit *u, LType t, CExpr x)
{
	if (t.lanes == 1)
		return x;
	CExpr r = c_call(u, c_helper(u, "splat", t, t), &x, 1);
	r.number = x.number;
	return r;
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
	return (CExpr){arena_printf(u->arena, "%s%s", op, arg), PREC_UNARY, false};
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
	return (CExpr){s, PREC_UNARY, false};
}

static CExpr helper_call(CUnit *u, const char *op, LType to, LType from, const CExpr *in, uint32_t nin)
{
	return c_call(u, c_helper(u, op, to, from), in, nin);
}

/* false < true */
static CExpr c_compare_masks(CUnit *u, ScOp op, uint32_t lanes, CExpr a, CExpr b)
{
	CExpr x = c_infix(u, a, "^", b, PREC_LOW);
	switch (op) {
	case SC_ne: return x;
	case SC_eq: return c_bool_op(u, SC_not, lanes, &x);
	case SC_lt:
	case SC_ge: x = c_infix(u, c_bool_op(u, SC_not, lanes, &a), "&", b, PREC_LOW); break;
	default: x = c_infix(u, a, "&", c_bool_op(u, SC_not, lanes, &b), PREC_LOW); break;
	}
	return op == SC_lt || op == SC_gt ? x : c_bool_op(u, SC_not, lanes, &x);
}

static CExpr c_compare(CUnit *u, ScOp op, LType t, const CExpr *in)
{
	static const char *const infix[] = {"==", "!=", "<", "<=", ">", ">="};
	if (t.lanes == 1)
		return c_infix(u, in[0], infix[op - SC_eq], in[1], PREC_LOW);
	if (t.dtype == DT_bool)
		return c_compare_masks(u, op, t.lanes, in[0], in[1]);
	return helper_call(u, sc_name(op), (LType){DT_bool, t.lanes}, t, in, 2);
}

static CExpr c_select(CUnit *u, LType t, const CExpr *in)
{
	if (t.lanes > 1)
		return helper_call(u, "select", t, t, in, 3);
	const char *s = arena_printf(u->arena, "%s ? %s : %s", c_arg(u, in[0], PREC_UNARY),
	                             c_arg(u, in[1], PREC_ADD), c_arg(u, in[2], PREC_ADD));
	return (CExpr){s, PREC_LOW, false};
}

/* One-lane math has its name in C. */
static CExpr c_math(CUnit *u, ScOp op, LType t, const CExpr *in, uint32_t nin)
{
	const char *name = op == SC_abs ? "fabs" : sc_name(op);
	if (t.lanes > 1)
		return helper_call(u, sc_name(op), t, t, in, nin);
	return c_call(u, t.dtype == DT_f32 ? arena_printf(u->arena, "%sf", name) : name, in, nin);
}

/* Cheaper where an operand is a literal number, not NaN. */
static CExpr c_min_max(CUnit *u, bool min, LType t, const CExpr *in)
{
	static const char *const name[2][3] = {{"max", "max_n", "max_k"}, {"min", "min_n", "min_k"}};
	return helper_call(u, name[min][in[0].number ? 1 : in[1].number ? 2 : 0], t, t, in, 2);
}

static CExpr c_float_op(CUnit *u, ScOp op, LType t, const CExpr *in, uint32_t nin)
{
	switch (op) {
	case SC_add: return c_infix(u, in[0], "+", in[1], PREC_ADD);
	case SC_sub: return c_infix(u, in[0], "-", in[1], PREC_ADD);
	case SC_mul: return c_infix(u, in[0], "*", in[1], PREC_MUL);
	case SC_div: return c_infix(u, in[0], "/", in[1], PREC_MUL);
	case SC_neg: return unary_minus(u, "-", in[0]);
	case SC_min:
	case SC_max: return c_min_max(u, op == SC_min, t, in);
	default: return c_math(u, op, t, in, nin);
	}
}

static CExpr c_index_op(CUnit *u, ScOp op, const CExpr *in, unsigned known, bool *done)
{
	*done = true;
	switch (op) {
	case SC_add: return c_infix(u, in[0], "+", in[1], PREC_ADD);
	case SC_sub: return c_infix(u, in[0], "-", in[1], PREC_ADD);
	case SC_mul: return c_infix(u, in[0], "*", in[1], PREC_MUL);
	case SC_neg: return unary_minus(u, "-", in[0]);
	case SC_rem: return c_infix(u, in[0], "%", in[1], PREC_MUL);
	case SC_floordiv:
		if (known & KNOWN_NONNEG)
			return c_infix(u, in[0], "/", in[1], PREC_MUL);
		if (in[1].shift)
			return c_infix(u, in[0], ">>", c_atom(arena_printf(u->arena, "%u", in[1].shift - 1)), PREC_LOW);
		break;
	default:
		break;
	}
	*done = false;
	return in[0];
}

static CExpr c_int_op(CUnit *u, ScOp op, LType t, const CExpr *in, uint32_t nin, unsigned known)
{
	bool done = false;
	CExpr r = known & KNOWN_INDEX ? c_index_op(u, op, in, known, &done) : in[0];
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

static bool is_small_float(DType d)
{
	return dtype_is_float(d) && dtype_size(d) < 4;
}

CExpr c_unpack(CUnit *u, DType storage, uint32_t lanes, CExpr raw)
{
	LType f32 = {DT_f32, lanes}, u8 = {DT_u8, lanes};
	if (is_small_float(storage))
		return helper_call(u, arena_printf(u->arena, "from_%s", dtype_name(storage)), f32, f32, &raw, 1);
	return storage == DT_bool ? c_convert(u, (LType){DT_bool, lanes}, u8, raw) : raw;
}

CExpr c_pack(CUnit *u, DType storage, uint32_t lanes, CExpr value)
{
	LType f32 = {DT_f32, lanes}, u8 = {DT_u8, lanes};
	if (is_small_float(storage))
		return helper_call(u, arena_printf(u->arena, "to_%s", dtype_name(storage)), f32, f32, &value, 1);
	return storage == DT_bool ? c_convert(u, u8, (LType){DT_bool, lanes}, value) : value;
}

CExpr c_convert(CUnit *u, LType to, LType from, CExpr x)
{
	from.dtype = dtype_compute(from.dtype);
	if (is_small_float(to.dtype)) {
		x = c_convert(u, (LType){DT_f32, to.lanes}, from, x);
		return c_unpack(u, to.dtype, to.lanes, c_pack(u, to.dtype, to.lanes, x));
	}
	if (to.dtype == from.dtype)
		return x;
	if (to.lanes > 1)
		return helper_call(u, "convert", to, from, &x, 1);
	if (to.dtype == DT_bool)
		return c_infix(u, x, "!=", c_atom("0"), PREC_LOW);
	if (dtype_is_float(from.dtype) && dtype_is_int(to.dtype))
		return helper_call(u, "convert", to, from, &x, 1);
	return c_cast(u, to, x);
}

static CExpr c_bitcast(CUnit *u, LType to, LType from, CExpr x)
{
	if (to.dtype == from.dtype)
		return x;
	if (is_small_float(from.dtype))
		x = c_pack(u, from.dtype, from.lanes, x);
	LType raw_from = {storage_raw(from.dtype), from.lanes}, raw_to = {storage_raw(to.dtype), to.lanes};
	if (raw_from.dtype != raw_to.dtype)
		x = to.lanes > 1 ? c_cast(u, raw_to, x) : helper_call(u, "bitcast", raw_to, raw_from, &x, 1);
	return is_small_float(to.dtype) ? c_unpack(u, to.dtype, to.lanes, x) : x;
}

CExpr c_op(CUnit *u, ScOp op, LType result, LType operand, const CExpr *in, uint32_t nin,
           unsigned known)
{
	if (op == SC_convert)
		return c_convert(u, result, operand, in[0]);
	if (op == SC_bitcast)
		return c_bitcast(u, result, operand, in[0]);
	result.dtype = dtype_compute(result.dtype);
	operand.dtype = dtype_compute(operand.dtype);
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
