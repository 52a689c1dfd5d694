#include "ir/kernel/build.h"

#include "ir/ops/op.h"

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

/* ---- values as indices ---- */

Kx kx_wrap(Kernel *k, Arena *arena, Kx v, Sym extent)
{
	Kx size = kx_index(k, arena, extent), zero = kx_const_int(k, arena, DT_i64, 0);
	Kx negative = kx_op(k, arena, OP_lt, DT_bool, (Kx[]){v, zero}, 2);
	return kx_select(k, arena, negative, kx_op(k, arena, OP_add, DT_i64, (Kx[]){v, size}, 2), v);
}

Kx kx_below(Kernel *k, Arena *arena, Kx cond, Kx v, Sym extent)
{
	Kx size = kx_index(k, arena, extent), zero = kx_const_int(k, arena, DT_i64, 0);
	cond = kx_and(k, arena, cond, kx_op(k, arena, OP_ge, DT_bool, (Kx[]){v, zero}, 2));
	return kx_and(k, arena, cond, kx_op(k, arena, OP_lt, DT_bool, (Kx[]){v, size}, 2));
}

/* ---- element-wise operators ---- */

/* x has a value of storage dtype d for certain: it was rounded, lay in memory, or chooses among
 * such. */
static bool is_rounded(const Lowered *l, const Kernel *kernel, DType d, Kx x, uint32_t depth)
{
	const KxData *k = &kernel->kx.data[x.i];
	if (k->kind == KX_LOAD)
		return l->buf.data[k->buf.i].dtype == d && (!k->guard.i || is_rounded(l, kernel, d, k->other, 1));
	if (k->kind != KX_OP || k->round == d || k->bits == d || depth == 0)
		return k->kind == KX_CONST || k->round == d || k->bits == d;
	bool first = k->op == OP_select, chooses = first || k->op == OP_maximum || k->op == OP_minimum;
	for (uint32_t i = first; i < k->nin; i++)
		chooses = chooses && is_rounded(l, kernel, d, k->in[i], depth - 1);
	return chooses;
}

/* Where it is converted, a value of a storage dtype is one: results of arithmetic are rounded
 * first. */
static Kx convert(const Lowered *l, Kernel *k, DType from, DType to, Kx x)
{
	Arena *arena = l->ir->ctx->arena;
	if (from != dtype_compute(from) && !is_rounded(l, k, from, x, 3))
		x = kx_as(k, arena, from, x);
	return kx_as(k, arena, dtype_keeps(from, to) ? dtype_compute(to) : to, x);
}

Kx kx_map(const Lowered *l, Kernel *k, Op op, DType from, DType to, const Kx *in, uint32_t nin)
{
	Arena *arena = l->ir->ctx->arena;
	if (op == OP_convert)
		return convert(l, k, from, to, in[0]);
	if (op == OP_bitcast)
		return kx_bitcast(k, arena, from, to, in[0]);
	return kx_op(k, arena, op, dtype_compute(to), in, nin);
}
