/* Operations and scalar functions in terms of what a target has: what it lacks is a library
 * function by its text. */
#include <stdio.h>
#include <string.h>

#include "codegen/legal/legal_priv.h"
#include "codegen/legal/legalise.h"

/* ---- operations ---- */

static Lx call_named(Library *l, const char *name, DType d, uint32_t lanes, const Lx *in,
		     uint32_t nin)
{
	const ScFn *fn = scalar_lib(name, d);
	if (!fn)
		ctx_bug(l->f->ir->ctx, "no library function %s of %s", name, dtype_name(d));
	return library_call(l, fn, lanes, in, nin);
}

/* Whether x is a literal number, the same in all lanes and not NaN. Sets *v to the number. */
static bool is_number(const LoopFn *f, Lx x, double *v)
{
	const LxData *d = &f->lx.data[x.i];
	if (d->kind == LX_SPLAT)
		d = &f->lx.data[d->in[0].i];
	*v = d->kind == LX_FLOAT ? d->u.f : 0;
	return d->kind == LX_FLOAT && d->u.f == d->u.f;
}

/* Returns the minimum or maximum. NaN wins; of two zeros, the second. `lesser`, an instruction of
 * x86, gives its second operand when either is NaN or both are zero. So it does alone if the first
 * operand is a literal, and with exchanged operands if the second one is a literal other than 0. */
static Lx min_max(Library *l, bool min, LType t, const Lx *in)
{
	LoopFn *f = l->f;
	ScOp pick = min ? SC_lesser : SC_greater;
	double v;
	if (is_number(f, in[0], &v))
		return library_op(l, pick, t, in, 2, 0);
	if (!is_number(f, in[1], &v))
		return call_named(l,
				  isa_takes(l->isa, pick, t, t, 0) ? min ? "min_pick" : "max_pick"
				  : min                            ? "min_nan"
								   : "max_nan",
				  t.dtype, t.lanes, in, 2);
	if (v != 0)
		return library_op(l, pick, t, (Lx[]){in[1], in[0]}, 2, 0);
	Lx not_after = lx_op(f, min ? SC_ge : SC_le, (LType){DT_bool, t.lanes}, in, 2, 0);
	return lx_op(f, SC_select, t, (Lx[]){not_after, in[1], in[0]}, 3, 0);
}

/* Compares masks: false comes before true. */
static Lx compare_masks(Library *l, ScOp op, LType t, const Lx *in)
{
	LoopFn *f = l->f;
	bool same = op == SC_eq || op == SC_ne, swap = op == SC_gt || op == SC_le;
	Lx a = in[swap], b = in[!swap], not_a = lx_op(f, SC_not, t, &a, 1, 0);
	Lx x = same ? lx_op(f, SC_xor, t, in, 2, 0) : lx_op(f, SC_and, t, (Lx[]){not_a, b}, 2, 0);
	return op == SC_eq || op == SC_le || op == SC_ge ? lx_op(f, SC_not, t, &x, 1, 0) : x;
}

/* Whether x is an integer literal, the same in all lanes. Sets *v to the integer. */
static bool is_literal(const LoopFn *f, Lx x, int64_t *v)
{
	const LxData *d = &f->lx.data[x.i];
	return lx_is_int(f, d->kind == LX_SPLAT ? d->in[0] : x, v);
}

/* Returns the bits of x as an unsigned integer. */
static Lx as_unsigned(Library *l, Lx x)
{
	static const DType of_size[9] = {[1] = DT_u8, [2] = DT_u16, [4] = DT_u32, [8] = DT_u64};
	LType t = lx_type(l->f, x), u = {of_size[dtype_size(t.dtype)], t.lanes};
	return dtype_is_signed(t.dtype)
		       ? lx_op(l->f, t.lanes > 1 ? SC_bitcast : SC_convert, u, &x, 1, 0)
		       : x;
}

/* Shifts by a count that may be as large as the width or larger, which shifts all bits out. */
static Lx shift(Library *l, ScOp op, LType t, const Lx *in)
{
	LoopFn *f = l->f;
	int64_t bits = 8 * (int64_t)dtype_size(t.dtype), c;
	bool sign = op == SC_shr && dtype_is_signed(t.dtype);
	ScOp legal = op == SC_shl ? SC_left : SC_right;
	Lx last = lx_int_of(f, t, bits - 1), zero = lx_int_of(f, t, 0);
	if (is_literal(f, in[1], &c)) {
		bool inside = c >= 0 && c < bits;
		return inside || sign
			       ? lx_op(f, legal, t, (Lx[]){in[0], inside ? in[1] : last}, 2, 0)
			       : zero;
	}
	Lx n = as_unsigned(l, in[1]), width = lx_int_of(f, lx_type(f, n), bits);
	Lx inside = lx_op(f, SC_lt, (LType){DT_bool, t.lanes}, (Lx[]){n, width}, 2, 0);
	Lx count = lx_op(f, SC_select, t, (Lx[]){inside, in[1], sign ? last : zero}, 3, 0);
	Lx r = lx_op(f, legal, t, (Lx[]){in[0], count}, 2, 0);
	return sign ? r : lx_op(f, SC_select, t, (Lx[]){inside, r, zero}, 3, 0);
}

/* Divides, or takes the remainder. The instruction alone does where the divisor cannot be 0, in
 * index arithmetic or as a literal. */
static Lx divide(Library *l, ScOp op, LType t, const Lx *in, unsigned known)
{
	LoopFn *f = l->f;
	bool quotient = op == SC_floordiv, index = known & KNOWN_INDEX,
	     nonneg = known & KNOWN_NONNEG;
	int64_t c;
	bool safe = is_literal(f, in[1], &c) && c != 0 && (c != -1 || !dtype_is_signed(t.dtype));
	if (quotient && index && !nonneg && safe && c > 0 && !(c & (c - 1)))
		return lx_op(f, SC_right, t,
			     (Lx[]){in[0], lx_int(f, __builtin_ctzll((unsigned long long)c))}, 2,
			     known);
	bool exact = !quotient || nonneg || !dtype_is_signed(t.dtype); /* towards zero is down */
	if ((index || safe) && exact)
		return lx_op(f, quotient ? SC_quot : SC_mod, t, in, 2, known);
	return call_named(l, quotient ? "divide" : "remainder", t.dtype, t.lanes, in, 2);
}

/* Converts a float to an integer: NaN, and what does not fit, become the smallest integer. */
static Lx float_to_int(Library *l, LType t, Lx x)
{
	LoopFn *f = l->f;
	LType from = lx_type(f, x);
	bool wide = t.dtype == DT_i64;
	Lx size = lx_op(f, SC_abs, from, &x, 1, 0),
	   limit = lx_float(f, from, wide ? 0x1p63 : 0x1p31);
	Lx fits = lx_op(f, SC_lt, (LType){DT_bool, t.lanes}, (Lx[]){size, limit}, 2, 0);
	Lx least = lx_int_of(f, t, wide ? INT64_MIN : INT32_MIN);
	return lx_op(f, SC_select, t, (Lx[]){fits, lx_op(f, SC_fit, t, &x, 1, 0), least}, 3, 0);
}

static Lx not_zero(Library *l, LType t, Lx x)
{
	LType from = lx_type(l->f, x);
	Lx zero = dtype_is_float(from.dtype) ? lx_float(l->f, from, 0) : lx_int_of(l->f, from, 0);
	return lx_op(l->f, SC_ne, t, (Lx[]){x, zero}, 2, 0);
}

/* Adds the dot products of groups of four bytes, in two dots of groups of two: of elements 0 and 2,
 * and of 1 and 3, widened to 16 bits. Where the target lacks those dots, by the text of the
 * operation. */
static Lx dot4(Library *l, ScOp op, LType t, const Lx *in)
{
	LoopFn *f = l->f;
	const LType group = {DT_u32, t.lanes};
	if (!isa_takes(l->isa, SC_dot2_s16, t, group, 0))
		return lx_fn(f, scalar_dot(op), t.lanes, in, 3);
	Lx sum = in[2];
	for (uint32_t odd = 0; odd < 2; odd++) {
		Lx half[2];
		for (uint32_t k = 0; k < 2; k++) {
			const bool is_signed = k || op == SC_dot4_s8s8;
			half[k] = lx_fn(f,
					scalar_lib(is_signed ? odd ? "odd_s8" : "even_s8"
						   : odd     ? "odd_u8"
							     : "even_u8",
						   DT_u32),
					t.lanes, &in[k], 1);
		}
		sum = lx_op(f, SC_dot2_s16, t, (Lx[]){half[0], half[1], sum}, 3, 0);
	}
	return sum;
}

/* Rewrites an operation that the target lacks in operations that it has. */
static Lx rewrite(Library *l, ScOp op, LType t, const Lx *in, unsigned known)
{
	LoopFn *f = l->f;
	switch (op) {
	case SC_min: case SC_max:
		if (t.dtype == DT_bool)
			return lx_op(f, op == SC_min ? SC_and : SC_or, t, in, 2, 0);
		return min_max(l, op == SC_min, t, in);
	case SC_fma: return call_named(l, "fma_exact", t.dtype, t.lanes, in, 3);
	case SC_floordiv: case SC_rem: return divide(l, op, t, in, known);
	case SC_shl: case SC_shr: return shift(l, op, t, in);
	case SC_eq:
	case SC_ne:
	case SC_lt:
	case SC_le:
	case SC_gt:
	case SC_ge:
		return compare_masks(l, op, t, in);
	case SC_convert:
		return t.dtype == DT_bool ? not_zero(l, t, in[0]) : float_to_int(l, t, in[0]);
	case SC_abs: return in[0];
	case SC_dot4_u8s8: case SC_dot4_s8s8: return dot4(l, op, t, in);
	case SC_flush_bf16: return call_named(l, sc_name(op), DT_f32, t.lanes, in, 1);
	case SC_dot2_bf16: case SC_dot2_s16:
	case SC_pairs_u8s8: case SC_pairs_s8s8: return lx_fn(f, scalar_dot(op), t.lanes, in, 3);
	case SC_lesser: case SC_greater: {
		Lx before = lx_op(f, op == SC_lesser ? SC_lt : SC_gt, (LType){DT_bool, t.lanes}, in,
				  2, 0);
		return lx_op(f, SC_select, t, (Lx[]){before, in[0], in[1]}, 3, 0);
	}
	/* the text of that name */
	default: return call_named(l, sc_name(op), t.dtype, t.lanes, in, sc_arity(op));
	}
}

Lx library_op(Library *l, ScOp op, LType t, const Lx *in, uint32_t nin, unsigned known)
{
	LType from = lx_type(l->f, in[0]);
	if (op == SC_convert && t.dtype == from.dtype)
		return in[0];
	if (isa_takes(l->isa, op, t, from, known))
		return lx_op(l->f, op, t, in, nin, known);
	return rewrite(l, op, t, in, known);
}

/* ---- storage types ---- */

static Lx small_float(Library *l, const char *direction, DType storage, DType from, Lx x)
{
	char name[24];
	snprintf(name, sizeof name, "%s_%s", direction, dtype_name(storage));
	return call_named(l, name, from, lx_type(l->f, x).lanes, &x, 1);
}

Lx library_unpack(Library *l, DType storage, Lx raw)
{
	LoopFn *f = l->f;
	uint32_t lanes = lx_type(f, raw).lanes;
	LType u8 = {DT_u8, lanes}, f32 = {DT_f32, lanes};
	if (storage == DT_bool)
		return lx_op(f, SC_ne, (LType){DT_bool, lanes}, (Lx[]){raw, lx_int_of(f, u8, 0)}, 2,
			     0);
	if (!dtype_is_narrow(storage))
		return raw;
	if (storage == DT_f16 && isa_takes(l->isa, SC_from_f16, f32, lx_type(f, raw), 0))
		return lx_op(f, SC_from_f16, f32, &raw, 1, 0);
	return small_float(l, "from", storage, dtype_raw(storage), raw);
}

Lx library_pack(Library *l, DType storage, Lx value)
{
	LoopFn *f = l->f;
	uint32_t lanes = lx_type(f, value).lanes;
	LType raw = {dtype_raw(storage), lanes};
	if (storage == DT_bool)
		return lx_op(f, SC_convert, raw, &value, 1, 0);
	if (!dtype_is_narrow(storage))
		return value;
	if (storage == DT_f16 && isa_takes(l->isa, SC_to_f16, raw, lx_type(f, value), 0))
		return lx_op(f, SC_to_f16, raw, &value, 1, 0);
	return small_float(l, "to", storage, DT_f32, value);
}

static Lx convert(Library *l, DType to, Lx x)
{
	LType t = {dtype_compute(to), lx_type(l->f, x).lanes};
	x = library_op(l, SC_convert, t, &x, 1, 0);
	return dtype_is_narrow(to) ? library_unpack(l, to, library_pack(l, to, x)) : x;
}

/* Reinterprets the bits of x as another dtype. Values of narrow dtypes are held as f32, so their
 * bits are made first. */
static Lx bitcast(Library *l, DType to, DType from, Lx x)
{
	if (to == from)
		return x;
	LType raw = {dtype_raw(to), lx_type(l->f, x).lanes};
	x = dtype_is_narrow(from) ? library_pack(l, from, x) : x;
	if (dtype_raw(from) != raw.dtype)
		x = lx_op(l->f, SC_bitcast, raw, &x, 1, 0);
	return dtype_is_narrow(to) ? library_unpack(l, to, x) : x;
}

/* ---- functions ---- */

/* Returns the number of the rint whose result instruction i converts to i32, if the target has one
 * operation for both; else 0, since instruction 0 is no rint. */
static uint32_t rounded(const Library *l, const ScFn *fn, const ScIns *i, uint32_t lanes)
{
	const uint32_t x = i->nin ? i->in[0] : 0;
	const LType i32 = {DT_i32, lanes}, f32 = {DT_f32, lanes};
	return i->op == SC_convert && i->dtype == DT_i32 && fn->ins[x].op == SC_rint &&
			       fn->ins[x].dtype == DT_f32 &&
			       isa_takes(l->isa, SC_nearest, i32, f32, 0)
		       ? x
		       : 0;
}

static Lx instruction(Library *l, const ScFn *fn, uint32_t k, uint32_t lanes, const Lx *value)
{
	const ScIns *i = &fn->ins[k];
	LType t = {dtype_compute(i->dtype), lanes};
	Lx in[3] = {{0}};
	for (uint32_t j = 0; j < i->nin && i->op != SC_param; j++)
		in[j] = value[i->in[j]];
	switch (i->op) {
	case SC_const:
		return dtype_is_float(i->dtype) ? lx_float(l->f, t, i->f)
						: lx_int_of(l->f, t, i->i);
	case SC_let: return in[0];
	case SC_call: return library_call(l, i->fn, lanes, in, i->nin);
	case SC_table: return lx_table(l->f, i->table, in[0]);
	case SC_convert: {
		const uint32_t x = rounded(l, fn, i, lanes);
		return x ? lx_op(l->f, SC_nearest, t, &value[fn->ins[x].in[0]], 1, 0)
			 : convert(l, i->dtype, in[0]);
	}
	case SC_bitcast: return bitcast(l, i->dtype, fn->ins[i->in[0]].dtype, in[0]);
	default: return library_op(l, i->op, t, in, i->nin, 0);
	}
}

/* Whether the function is one operation on parameters and constants that reads each parameter at
 * most once. */
static bool is_single(const ScFn *fn)
{
	uint32_t reads[4] = {0};
	const ScIns *last = &fn->ins[fn->nins - 1];
	for (uint32_t k = 0; k < last->nin; k++) {
		const ScIns *a = &fn->ins[last->in[k]];
		if (a->op != SC_param && a->op != SC_const)
			return false;
		if (a->op == SC_param && ++reads[a->k] > 1)
			return false;
	}
	return last->op != SC_table;
}

static void mark_used(const Library *l, const ScFn *fn, uint32_t k, uint32_t lanes, bool *used)
{
	if (used[k])
		return;
	used[k] = true;
	const uint32_t x = rounded(l, fn, &fn->ins[k], lanes);
	if (x) {
		mark_used(l, fn, fn->ins[x].in[0], lanes, used);
		return;
	}
	for (uint32_t j = 0; j < fn->ins[k].nin; j++)
		mark_used(l, fn, fn->ins[k].in[j], lanes, used);
}

Lx library_call(Library *l, const ScFn *fn, uint32_t lanes, const Lx *in, uint32_t nin)
{
	const ScIns *last = &fn->ins[fn->nins - 1];
	if (!is_single(fn))
		return lx_fn(l->f, fn, lanes, in, nin);
	if (last->op == SC_param)
		return in[last->k];
	Lx *value = ARENA_ARRAY(l->f->ir->ctx->arena, Lx, fn->nins);
	for (uint32_t k = 0; k < last->nin; k++) {
		const ScIns *a = &fn->ins[last->in[k]];
		value[last->in[k]] = a->op == SC_param
					     ? in[a->k]
					     : instruction(l, fn, last->in[k], lanes, value);
	}
	return instruction(l, fn, fn->nins - 1, lanes, value);
}

/* Returns the value of a call that is executed only if some lane needs it; else 0 in all lanes. */
static Lx guarded(Library *l, ScGuard guard, Lx cond, Lx call, const char *name)
{
	LoopFn *f = l->f;
	LType t = lx_type(f, call), bool1 = lx_type(f, cond);
	if (!guard.when)
		cond = lx_op(f, SC_not, bool1, &cond, 1, 0);
	Lx zero = dtype_is_float(t.dtype) ? lx_float(f, t, 0) : lx_int_of(f, t, 0);
	Lv v = ls_var(f, name, zero);
	ls_if(f, lx_any(f, cond));
	ls_set(f, v, call);
	ls_end(f);
	return lx_var(f, v);
}

static Lx named(LoopFn *f, const char *name, Lx x)
{
	return f->lx.data[x.i].nin ? lx_var(f, ls_let(f, name, x)) : x;
}

LoopFn *library_function(Ir *ir, const ScFn *fn, uint32_t lanes, const Isa *isa)
{
	Arena *arena = ir->ctx->arena;
	LoopFn *f = loop_new(ir, fn->name);
	Library l = {f, isa};
	Lx *value = ARENA_ARRAY(arena, Lx, fn->nins);
	bool *used = ARENA_ARRAY(arena, bool, fn->nins);
	uint32_t last = fn->nins - 1;
	for (uint32_t k = 0; k < fn->nparam; k++)
		loop_arg(f, arena_printf(arena, "%c", "xyzw"[k]),
			 (LType){dtype_compute(fn->param[k]), lanes});
	mark_used(&l, fn, last, lanes, used);
	for (uint32_t k = 0; k <= last; k++) {
		const ScIns *i = &fn->ins[k];
		if (!used[k])
			continue;
		if (i->op == SC_param) {
			value[k] = lx_var(f, f->arg.data[i->k]);
			continue;
		}
		const char *name = arena_printf(arena, "v%u", k);
		Lx x = instruction(&l, fn, k, lanes, value);
		ScGuard guard = i->op == SC_call ? scalar_guard(fn, k) : (ScGuard){false, false, 0};
		value[k] = guard.found ? guarded(&l, guard, value[guard.cond], x, name)
			   : k == last ? x
				       : named(f, name, x);
	}
	f->result = value[last];
	f->is_inline = fn->cost <= SC_INLINE_COST;
	if (!loop_verify(f, isa))
		ctx_bug_verify(ir->ctx, "making a library function");
	return f;
}
