#include "ir/kernel/contraction.h"

#include <string.h>

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

static bool is_product(const KxData *x)
{
	return x->kind == KX_OP && x->op == OP_mul;
}

/* ---- operands that are decoded ---- */

enum { MOST_OPERATIONS = 96 };

/* What a value is computed of. */
typedef struct {
	SymTab *syms;
	const Kernel *k;
	Kx load;        /* that of the most axes */
	uint64_t axes;  /* of the load */
	uint64_t all;   /* of all loads and indices */
	uint64_t loads; /* of all loads */
	uint32_t left;  /* expressions to look at */
} DecodedOf;

static uint32_t count_axes(uint64_t axes)
{
	return (uint32_t)__builtin_popcountll(axes);
}

/* Whether x is computed of plain loads, axes and numbers, in few operations. */
static bool find_loads(DecodedOf *d, Kx x)
{
	const KxData *data = &d->k->kx.data[x.i];
	const uint64_t axes = axes_of(d->syms, d->k, data);
	if (d->left-- == 0 || data->guard.i || data->kind == KX_STAGE || data->kind == KX_INRANGE)
		return false;
	d->all |= axes;
	if (data->kind == KX_LOAD) {
		d->loads |= axes;
		if (!d->load.i || count_axes(axes) > count_axes(d->axes)) {
			d->load = x;
			d->axes = axes;
		}
	}
	for (uint32_t i = 0; data->kind == KX_OP && i < data->nin; i++)
		if (!find_loads(d, data->in[i]))
			return false;
	return true;
}

/* Returns the load of which the operand is decoded, and sets *fields; none if it is not decoded. */
static Kx decoded_of(SymTab *syms, const Kernel *k, const Stage *st, Kx operand, uint64_t *fields)
{
	DecodedOf d = {.syms = syms, .k = k, .left = MOST_OPERATIONS};
	if (st->reduce.half || k->kx.data[operand.i].kind != KX_OP ||
	    k->kx.data[operand.i].dtype != st->reduce.acc || !find_loads(&d, operand))
		return (Kx){0};
	*fields = d.all & ~d.axes;
	const bool within = !(d.loads & ~d.axes) && !(*fields & ~axes_set(st->red, st->nred));
	return within ? d.load : (Kx){0};
}

/* Returns the operand of the sum, from 1, that is decoded while the other one is a load; 0: none
 * is. */
static uint32_t decoded_operand(SymTab *syms, const Kernel *k, const Stage *st)
{
	const KxData *value = &k->kx.data[st->value.i];
	uint64_t fields;
	for (uint32_t i = 0; i < 2 && st->reduce.acc == DT_f32; i++) {
		const Kx other = value->in[!i];
		if (plain_load(k, other, DT_f32) &&
		    loaded(k, value->in[i], DT_f32).i == value->in[i].i &&
		    decoded_of(syms, k, st, value->in[i], &fields).i)
			return i + 1;
	}
	return 0;
}

/* Returns why the sum is none of products of loads, or of what is decoded of one; NULL: it is. */
static const char *why_not(SymTab *syms, const Kernel *k, const Stage *st)
{
	const KxData *value = &k->kx.data[st->value.i];
	const DType acc = st->reduce.acc;
	if ((acc != DT_f32 && acc != DT_f64 && acc != DT_i32) || !is_product(value))
		return "its products are not of f32, f64 or i32";
	if (decoded_operand(syms, k, st))
		return NULL;
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
	const uint32_t decodes = decoded_operand(syms, k, st);
	if (decodes) {
		c.decoded = value->in[decodes - 1];
		c.a = value->in[2 - decodes];
		c.b = decoded_of(syms, k, st, c.decoded, &c.fields);
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

/* Whether all loads of which x is computed are at indices that are linear in each axis. */
static bool loads_linearly(SymTab *syms, const Kernel *k, Kx x)
{
	const KxData *d = &k->kx.data[x.i];
	Sym coef;
	for (uint32_t i = 0; d->kind == KX_LOAD && i < d->nidx; i++)
		for (uint32_t a = 0; a < k->axis.n; a++)
			if (!sym_linear(syms, d->idx[i], k->axis.data[a].var, &coef, NULL))
				return false;
	for (uint32_t i = 0; d->kind == KX_OP && i < d->nin; i++)
		if (!loads_linearly(syms, k, d->in[i]))
			return false;
	return true;
}

bool kernel_decodes(SymTab *syms, const Kernel *k, const Stage *st)
{
	uint64_t fields;
	const KxData *value = &k->kx.data[st->value.i];
	const uint32_t decodes = decoded_operand(syms, k, st);
	if (!decodes || !loads_linearly(syms, k, st->value))
		return false;
	const Kx load = decoded_of(syms, k, st, value->in[decodes - 1], &fields);
	return axes_of(syms, k, &k->kx.data[load.i]) &
	       ~(axes_of(syms, k, &k->kx.data[value->in[2 - decodes].i]) |
		 axes_set(st->red, st->nred));
}

/* Whether a stage from `first` to `end` - 1 is read by the value of the stage, or by what the value
 * is computed of. mark: room for kx.n elements. */
static bool reads_stages(const Kernel *k, uint32_t stage, uint32_t first, uint32_t end, bool *mark)
{
	memset(mark, 0, k->kx.n * sizeof *mark);
	kernel_reached(k, stage, stage + 1, mark);
	for (uint32_t i = 1; i < k->kx.n; i++) {
		const KxData *d = &k->kx.data[i];
		if (mark[i] && d->kind == KX_STAGE && d->stage >= first && d->stage < end)
			return true;
	}
	return false;
}

/* Whether the stage adds products of two values at each point of inner axes, for other stages. */
static bool is_inner_product(const Kernel *k, const Stage *st, uint32_t nouter)
{
	return st->kind == STAGE_REDUCE && st->reduce.contraction && !st->reduce.level &&
	       !st->reduce.half && st->reduce.acc == DT_f32 && stage_is_term(st, nouter) &&
	       is_product(&k->kx.data[st->value.i]);
}

/* Whether the stage adds up functions of earlier ones along inner axes. */
static bool adds_weights(const Stage *st, uint32_t nouter)
{
	return st->kind == STAGE_REDUCE && !st->reduce.contraction && !st->reduce.level &&
	       st->reduce.combine == REDUCE_SUM && st->reduce.acc == DT_f32 && !stage_stores(st) &&
	       st->nmap == nouter && st->nred;
}

bool kernel_sums_weighted(const Kernel *k, Arena *scratch, WeightedStages *is)
{
	const uint32_t nouter = kernel_nouter(k);
	uint32_t i = 0;
	*is = (WeightedStages){0};
	if (!k->stage.n || !is_inner_product(k, &k->stage.data[0], nouter))
		return false;
	bool *mark = ARENA_ARRAY(scratch, bool, k->kx.n);
	for (; i < k->stage.n && is_inner_product(k, &k->stage.data[i], nouter) &&
	       !reads_stages(k, i, 0, i, mark);
	     i++)
		is->nscore++;
	for (; i < k->stage.n && is_inner_product(k, &k->stage.data[i], nouter) &&
	       k->stage.data[i].nred == 1 && reads_stages(k, i, 0, is->nscore, mark) &&
	       !reads_stages(k, i, is->nscore, i, mark);
	     i++)
		is->nsum++;
	if (is->nscore > 1 && !is->nsum && i < k->stage.n &&
	    adds_weights(&k->stage.data[i], nouter) && reads_stages(k, i, 0, is->nscore, mark))
		i++;
	const uint32_t stores = i;
	for (; i < k->stage.n; i++)
		if (k->stage.data[i].kind != STAGE_MAP || !stage_stores(&k->stage.data[i]) ||
		    reads_stages(k, i, 0, is->nscore, mark))
			return false;
	return stores > is->nscore && i > stores && !k->vvar.n;
}

bool kx_is_product(const Kernel *k, Kx x)
{
	return is_product(&k->kx.data[x.i]);
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
