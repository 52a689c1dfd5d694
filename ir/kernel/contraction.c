#include "ir/kernel/contraction.h"

#include "ir/kernel/build.h"
#include "ir/op/op.h"

static uint64_t axes_of(const SymTab *syms, const Kernel *k, const KxData *x)
{
	uint64_t axes = 0;
	for (uint32_t d = 0; d < x->nidx; d++)
		for (uint32_t i = 0; i < k->axis.n; i++)
			if (sym_uses(syms, x->idx[d], k->axis.data[i].var))
				axes |= UINT64_C(1) << i;
	return axes;
}

static bool plain_load(const Kernel *k, Kx id, DType dtype)
{
	const KxData *x = &k->kx.data[id.i];
	return x->kind == KX_LOAD && !x->guard.i && x->dtype == dtype;
}

/* Returns the load that is an operand of products in acc: itself, or of bytes the operand of a
 * conversion. */
static Kx loaded(const Kernel *k, Kx operand, DType acc)
{
	const Kx x = acc == DT_i32 || acc == DT_f32 ? kx_unconverted(k, operand) : operand;
	const DType d = k->kx.data[x.i].dtype;
	return d == acc || d == DT_i8 || d == DT_u8 ? x : operand;
}

/* Returns why the sum is none of products of loads; NULL: it is. */
static const char *why_not(SymTab *syms, const Kernel *k, const Stage *st)
{
	const KxData *value = &k->kx.data[st->value.i];
	const DType acc = st->reduce.acc;
	if ((acc != DT_f32 && acc != DT_f64 && acc != DT_i32) || value->kind != KX_OP ||
	    value->op != OP_mul)
		return "its products are not of f32, f64 or i32";
	for (uint32_t i = 0; i < 2; i++) {
		Kx x = loaded(k, value->in[i], acc);
		uint32_t axis;
		const Kx half = st->reduce.half == i + 1 ? kx_half(syms, k, x, &axis) : (Kx){0};
		x = half.i ? half : x;
		if (half.i && plain_load(k, x, k->kx.data[x.i].dtype))
			continue;
		if (!plain_load(k, x, k->kx.data[x.i].dtype) ||
		    (x.i == value->in[i].i && k->kx.data[x.i].dtype != acc))
			return "an operand is no plain load of what is summed";
	}
	return NULL;
}

static bool is_contraction(const Stage *st)
{
	return st->kind == STAGE_REDUCE && st->reduce.contraction;
}

static Contraction contraction_of(SymTab *syms, const Kernel *k, uint32_t stage)
{
	const Stage *st = &k->stage.data[stage];
	const KxData *value = &k->kx.data[st->value.i];
	Contraction c = {.sum = stage, .dtype = st->reduce.acc};
	const uint64_t map = axes_set(st->map, st->nmap);
	c.a = loaded(k, value->in[0], c.dtype);
	c.b = loaded(k, value->in[1], c.dtype);
	for (uint32_t i = 0; i < 2; i++) {
		Kx *of = i ? &c.b : &c.a;
		if (st->reduce.half != i + 1)
			continue;
		*of = kx_half(syms, k, *of, &c.half);
		c.half_of_b = i;
	}
	c.in_a = axes_of(syms, k, &k->kx.data[c.a.i]) & map;
	c.in_b = axes_of(syms, k, &k->kx.data[c.b.i]) & map;
	c.summed = axes_set(st->red, st->nred);
	return c;
}

Contractions kernel_contractions(SymTab *syms, const Kernel *k)
{
	Contractions all = {.why = "no sum of products of two operands"};
	if (k->vvar.n && kernel_contracts(k))
		all.why = "an index depends on data";
	for (uint32_t i = 0; i < k->stage.n && all.n < MAX_CONTRACTIONS && !k->vvar.n; i++) {
		if (!is_contraction(&k->stage.data[i]))
			continue;
		const char *why = why_not(syms, k, &k->stage.data[i]);
		if (!why)
			all.contraction[all.n++] = contraction_of(syms, k, i);
		all.why = why;
	}
	if (all.n)
		all.why = NULL;
	return all;
}

const char *kernel_no_contraction(const Kernel *k, const Contractions *all)
{
	const uint32_t nouter = kernel_nouter(k);
	if (!all->n)
		return all->why;
	if (all->contraction[0].half)
		return "halves of bytes are multiplied";
	for (uint32_t i = 0; i < k->stage.n; i++) {
		const Stage *st = &k->stage.data[i];
		const bool is_sum = i == all->contraction[0].sum;
		if (st->nmap > nouter || (!is_sum && (st->kind != STAGE_MAP || !stage_stores(st))))
			return "more than stores at each point follows the sum";
	}
	return NULL;
}

uint32_t kernel_adds_blocks(const Kernel *k, const Contractions *all)
{
	if (all->n != 1 || all->contraction[0].sum || k->stage.n < 3 || !kernel_is_plain(k))
		return 0;
	const uint32_t nouter = kernel_nouter(k);
	const Stage *of = &k->stage.data[0], *adds = &k->stage.data[1];
	const AxisList map = stage_inner(of, nouter);
	if (!stage_is_term(of, nouter) || adds->kind != STAGE_REDUCE || stage_stores(adds) ||
	    adds->nmap != nouter || adds->reduce.combine != REDUCE_SUM ||
	    adds->reduce.acc != DT_f32 ||
	    axes_set(map.axis, map.n) != axes_set(adds->red, adds->nred) ||
	    kernel_aligned_axes(k, 0) != axes_set(of->map, of->nmap))
		return 0;
	for (uint32_t i = 2; i < k->stage.n; i++) {
		const Stage *st = &k->stage.data[i];
		if (st->kind != STAGE_MAP || !stage_stores(st) || st->nmap > nouter)
			return 0;
	}
	return 1;
}

uint32_t kernel_first_contraction(const Kernel *k)
{
	uint32_t i = 0;
	while (i < k->stage.n && !is_contraction(&k->stage.data[i]))
		i++;
	return i;
}

uint32_t kernel_last_store(const Kernel *k)
{
	uint32_t last = k->stage.n;
	for (uint32_t i = 0; i < k->stage.n; i++)
		last = stage_stores(&k->stage.data[i]) ? i : last;
	return last;
}
