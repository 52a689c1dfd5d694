#include "ir/kernel/build.h"

#include "ir/op/op.h"

Kx kx_zero(Kernel *k, Arena *arena, DType d)
{
	return dtype_is_float(d) ? kx_const(k, arena, d, 0) : kx_const_int(k, arena, d, 0);
}

Kx kx_and(Kernel *k, Arena *arena, Kx a, Kx b)
{
	if (!a.i || !b.i)
		return a.i ? a : b;
	return kx_op(k, arena, OP_bit_and, DT_bool, (Kx[]){a, b}, 2);
}

Kx kx_select(Kernel *k, Arena *arena, Kx cond, Kx yes, Kx no)
{
	return kx_op(k, arena, OP_select, k->kx.data[yes.i].dtype, (Kx[]){cond, yes, no}, 3);
}

Kx kx_product(Kernel *k, Arena *arena, DType d, const Kx in[2])
{
	return kx_op(k, arena, OP_mul, d, in, 2);
}

Kx kx_to(Kernel *k, Arena *arena, DType compute, Kx x)
{
	return k->kx.data[x.i].dtype == compute ? x : kx_op(k, arena, OP_convert, compute, &x, 1);
}

Kx kx_as(Kernel *k, Arena *arena, DType d, Kx x)
{
	DType c = dtype_compute(d);
	x = kx_to(k, arena, c, x);
	return d == c ? x : kx_round(k, arena, d, x);
}

Kx kx_unconverted(const Kernel *k, Kx x)
{
	const KxData *d = &k->kx.data[x.i];
	return d->kind == KX_OP && d->op == OP_convert ? d->in[0] : x;
}

ScOp kx_basic(const Kernel *k, Kx x)
{
	const KxData *d = &k->kx.data[x.i];
	DType in[4];
	if (d->kind != KX_OP || !op_is_scalar(d->op))
		return SC_const;
	for (uint32_t i = 0; i < d->nin; i++)
		in[i] = k->kx.data[d->in[i].i].dtype;
	return scalar_single(scalar_fn(d->op, in, d->nin)).op;
}

/* ---- values as indices ---- */

Kx kx_wrap(Kernel *k, Arena *arena, Kx v, Sym extent)
{
	Kx size = kx_index(k, arena, extent), zero = kx_const_int(k, arena, DT_i64, 0);
	Kx negative = kx_op(k, arena, OP_lt, DT_bool, (Kx[]){v, zero}, 2);
	return kx_select(k, arena, negative, kx_op(k, arena, OP_add, DT_i64, (Kx[]){v, size}, 2),
			 v);
}

Kx kx_below(Kernel *k, Arena *arena, Kx cond, Kx v, Sym extent)
{
	Kx size = kx_index(k, arena, extent), zero = kx_const_int(k, arena, DT_i64, 0);
	cond = kx_and(k, arena, cond, kx_op(k, arena, OP_ge, DT_bool, (Kx[]){v, zero}, 2));
	return kx_and(k, arena, cond, kx_op(k, arena, OP_lt, DT_bool, (Kx[]){v, size}, 2));
}

/* ---- element-wise operators ---- */

/* Whether x has a value of storage dtype d for certain: it was rounded, lay in memory, or chooses
 * among such values. */
static bool is_rounded(const Lowered *l, const Kernel *kernel, DType d, Kx x, uint32_t depth)
{
	const KxData *k = &kernel->kx.data[x.i];
	if (k->kind == KX_LOAD)
		return l->buf.data[k->buf.i].dtype == d &&
		       (!k->guard.i || is_rounded(l, kernel, d, k->other, 1));
	if (k->kind != KX_OP || k->round == d || k->bits == d || depth == 0)
		return k->kind == KX_CONST || k->round == d || k->bits == d;
	bool first = k->op == OP_select,
	     chooses = first || k->op == OP_maximum || k->op == OP_minimum;
	for (uint32_t i = first; i < k->nin; i++)
		chooses = chooses && is_rounded(l, kernel, d, k->in[i], depth - 1);
	return chooses;
}

/* Returns x, of dtype `from`, converted to `to`. A value of a storage dtype is one where it is
 * converted: results of arithmetic are rounded first. */
static Kx convert(const Lowered *l, Kernel *k, DType from, DType to, Kx x)
{
	Arena *arena = l->ir->ctx->arena;
	if (from != dtype_compute(from) && !is_rounded(l, k, from, x, 3))
		x = kx_as(k, arena, from, x);
	return kx_as(k, arena, dtype_keeps(from, to) ? dtype_compute(to) : to, x);
}

/* ---- bytes of integers that fit ---- */

enum { MOST_WHOLE = 1 << 20 }; /* what is between -MOST_WHOLE and MOST_WHOLE is a f32, with a byte
                                  more, too */

static bool is_op(const Kernel *k, Kx x, Op op, DType d)
{
	const KxData *at = &k->kx.data[x.i];
	return at->kind == KX_OP && at->op == op && at->dtype == d;
}

/* Whether x is an i32 in [*lo, *hi] because it was rounded between bounds, plus a number. */
static bool is_bounded(const Kernel *k, Kx x, double *lo, double *hi)
{
	const KxData *at = &k->kx.data[x.i];
	double plus = 0;
	if (is_op(k, x, OP_add, DT_i32)) {
		const KxData *number = &k->kx.data[at->in[1].i];
		TRY(number->kind == KX_CONST);
		plus = (double)number->c.i;
		x = at->in[0];
		at = &k->kx.data[x.i];
	}
	TRY(is_op(k, x, OP_nearest, DT_i32));
	const KxData *low = &k->kx.data[at->in[1].i], *high = &k->kx.data[at->in[2].i];
	*lo = low->c.f + plus;
	*hi = high->c.f + plus;
	return low->kind == KX_CONST && high->kind == KX_CONST && low->c.f <= high->c.f;
}

/* Returns the number of which x is the byte, where it is in the range of bytes; x itself if it may
 * be another number. */
static Kx before_byte(const Kernel *k, Kx x)
{
	const KxData *at = &k->kx.data[x.i];
	const bool is_signed = at->dtype == DT_i8;
	double lo, hi;
	if ((!is_signed && at->dtype != DT_u8) || !is_op(k, x, OP_convert, at->dtype) ||
	    !is_bounded(k, at->in[0], &lo, &hi))
		return x;
	return lo >= (is_signed ? -128 : 0) && hi <= (is_signed ? 127 : 255) ? at->in[0] : x;
}

/* Returns x, an i32, where in[0] - in[1] is (x + c) - c of numbers that f32 holds; none for
 * another difference. */
static Kx before_sum(const Kernel *k, DType d, const Kx in[2])
{
	const Kx whole = d == DT_f32 ? kx_unconverted(k, in[0]) : in[0];
	const KxData *sum = &k->kx.data[whole.i], *minus = &k->kx.data[in[1].i];
	double lo, hi;
	if ((d != DT_i32 && d != DT_f32) || !is_op(k, whole, OP_add, DT_i32) ||
	    !is_bounded(k, whole, &lo, &hi) || minus->kind != KX_CONST)
		return (Kx){0};
	const double plus = (double)k->kx.data[sum->in[1].i].c.i;
	return lo >= -MOST_WHOLE && hi <= MOST_WHOLE &&
			       plus == (d == DT_f32 ? minus->c.f : (double)minus->c.i)
		       ? sum->in[0]
		       : (Kx){0};
}

Kx kx_map(const Lowered *l, Kernel *k, Op op, DType from, DType to, const Kx *in, uint32_t nin)
{
	Arena *arena = l->ir->ctx->arena;
	if (op == OP_convert && dtype_is_int(from) && from == dtype_compute(from)) {
		const Kx x = before_byte(k, in[0]);
		return convert(l, k, k->kx.data[x.i].dtype, to, x);
	}
	if (op == OP_convert)
		return convert(l, k, from, to, in[0]);
	const Kx x = op == OP_sub ? before_sum(k, to, in) : (Kx){0};
	if (x.i)
		return kx_to(k, arena, to, x);
	if (op == OP_bitcast)
		return kx_bitcast(k, arena, from, to, in[0]);
	/* A value is equal to itself as it was stored: the maximum of a row to an element of it. */
	Kx stored[4];
	for (uint32_t i = 0; i < nin; i++)
		stored[i] = (op == OP_eq || op == OP_ne) && dtype_is_float(from) &&
					    from != dtype_compute(from)
				    ? convert(l, k, from, from, in[i])
				    : in[i];
	return kx_op(k, arena, op, dtype_compute(to), stored, nin);
}

/* ---- fields of integers ---- */

enum { HALF_BITS = 4 };

static Kx mask_of(Kernel *k, Arena *arena, DType d, uint32_t bits)
{
	return kx_const_int(k, arena, d, (INT64_C(1) << bits) - 1);
}

Kx kx_field(const Lowered *l, Kernel *k, Kx x, Sym number, uint32_t bits)
{
	Arena *arena = l->ir->ctx->arena;
	const DType d = k->kx.data[x.i].dtype;
	const Sym at = sym_muli(l->ir->syms, number, bits);
	const Kx by = kx_to(k, arena, d, kx_index(k, arena, at)),
		 low = kx_op(k, arena, OP_shift_right, d, (Kx[]){x, by}, 2);
	return kx_op(k, arena, OP_bit_and, d, (Kx[]){low, mask_of(k, arena, d, bits)}, 2);
}

Kx kx_look_up(const Lowered *l, Kernel *k, Kx field, uint64_t low, uint64_t high)
{
	enum { ENTRIES = 8, LEAST = ENTRIES - 1, BYTE_SHIFT = 3, BYTE = 8 };
	Arena *arena = l->ir->ctx->arena;
	const DType d = k->kx.data[field.i].dtype;
	const Kx n = kx_to(k, arena, DT_i64, field),
		 entries = kx_const_int(k, arena, DT_i64, ENTRIES),
		 is_low = kx_op(k, arena, OP_lt, DT_bool, (Kx[]){n, entries}, 2),
		 half = kx_select(k, arena, is_low, kx_const_int(k, arena, DT_i64, (int64_t)low),
				  kx_const_int(k, arena, DT_i64, (int64_t)high)),
		 least = kx_const_int(k, arena, DT_i64, LEAST),
		 place = kx_op(k, arena, OP_bit_and, DT_i64, (Kx[]){n, least}, 2),
		 shift = kx_const_int(k, arena, DT_i64, BYTE_SHIFT),
		 by = kx_op(k, arena, OP_shift_left, DT_i64, (Kx[]){place, shift}, 2),
		 at = kx_op(k, arena, OP_shift_right, DT_i64, (Kx[]){half, by}, 2),
		 mask = mask_of(k, arena, DT_i64, BYTE);
	return kx_to(k, arena, d, kx_op(k, arena, OP_bit_and, DT_i64, (Kx[]){at, mask}, 2));
}

Kx kx_looked_up(const Kernel *k, Kx x, uint64_t table[2])
{
	const KxData *d = k->kx.data, *byte = &d[kx_unconverted(k, x).i];
	if (byte->kind != KX_OP || kx_basic(k, byte->in[0]) != SC_shr)
		return (Kx){0};
	const Kx half = d[byte->in[0].i].in[0];
	if (kx_basic(k, half) != SC_select)
		return (Kx){0};
	const Kx *in = d[half.i].in;
	for (uint32_t i = 0; i < 2; i++)
		table[i] = (uint64_t)d[in[1 + i].i].c.i;
	return kx_unconverted(k, d[in[0].i].in[0]);
}

Kx kx_half(SymTab *syms, const Kernel *k, Kx field, uint32_t *axis)
{
	uint64_t table[2];
	const Kx below = kx_looked_up(k, field, table);
	field = below.i ? below : field;
	const KxData *d = k->kx.data, *low = &d[d[kx_unconverted(k, field).i].in[0].i],
		     *by = &d[kx_unconverted(k, low->in[1]).i];
	Sym coef, rest;
	for (uint32_t i = 0; by->kind == KX_INDEX && i < k->axis.n; i++) {
		const Axis *a = &k->axis.data[i];
		*axis = i + 1;
		if (sym_uses(syms, by->idx[0], a->var) && sym_is(syms, a->extent, 2) &&
		    sym_linear(syms, by->idx[0], a->var, &coef, &rest) &&
		    sym_is(syms, coef, HALF_BITS) && sym_is(syms, rest, 0))
			return low->in[0];
	}
	return (Kx){0};
}
