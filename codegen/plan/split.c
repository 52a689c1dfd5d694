/* Delinearisation of accesses, by splitting axes: an axis that an access takes apart (reading [..,
 * h, d] with h = i / 64, d = i % 64) becomes two, so that all offsets are linear and nothing is
 * divided inside loops. */
#include "codegen/plan/split.h"

#include <string.h>

static Sym split_wanted(const Lowered *l, Sym offset, const Axis *a)
{
	SymTab *syms = l->ir->syms;
	Sym coef;
	if (!axis_is_plain(a) || sym_linear(syms, offset, a->var, &coef, NULL))
		return (Sym){0};
	Sym d = sym_divisor_of(syms, offset, a->var);
	if (!d.i || sym_uses_kind(syms, d, SYMVAR_AXIS))
		return (Sym){0};
	Sym whole = sym_mul(syms, sym_floordiv(syms, a->extent, d), d);
	return sym_eq(syms, whole, a->extent) == YES ? d : (Sym){0};
}

static const Sym *substitute(const Lowered *l, const Sym *idx, uint32_t n, Sym var, Sym by)
{
	Sym *out = ARENA_ARRAY(l->ir->ctx->arena, Sym, n);
	for (uint32_t i = 0; i < n; i++)
		out[i] = sym_subst(l->ir->syms, idx[i], &var, &by, 1);
	return out;
}

static uint8_t renumber(uint8_t *axes, uint8_t n, uint32_t split)
{
	for (uint8_t i = n; i-- > 0;) {
		if (axes[i] > split) {
			axes[i]++;
		} else if (axes[i] == split) {
			memmove(axes + i + 2, axes + i + 1, (n - i - 1) * sizeof *axes);
			axes[i + 1] = (uint8_t)(split + 1);
			n++;
		}
	}
	return n;
}

/* Splits the index along an outer axis at which a stage is read, before the stages' lists of axes
 * are renumbered; the kernel has both axes. */
static void split_read(const Lowered *l, const Kernel *k, KxData *x, uint32_t axis, Sym old, Sym by)
{
	const Stage *st = &k->stage.data[x->stage];
	Sym *out = ARENA_ARRAY(l->ir->ctx->arena, Sym, x->nidx + 1);
	uint32_t n = 0;
	for (uint32_t i = 0; i < x->nidx; i++) {
		out[n++] = sym_subst(l->ir->syms, x->idx[i], &old, &by, 1);
		if (i >= st->nmap || st->map[i] != axis)
			continue;
		out[n - 1] = k->axis.data[axis].var;
		out[n++] = k->axis.data[axis + 1].var;
	}
	x->idx = out;
	x->nidx = n;
}

static bool room_to_split(const Kernel *k, uint32_t axis)
{
	const uint32_t nouter = kernel_nouter(k);
	for (uint32_t i = 0; i < k->stage.n; i++) {
		const Stage *st = &k->stage.data[i];
		if (st->nmap - nouter + 1 > MAX_RANK || st->nred + 1 > MAX_RANK)
			return false;
		for (uint32_t j = 0; j < st->nred; j++)
			if (st->red[j] == axis && st->kind != STAGE_REDUCE)
				return false;
		const AxisList map = stage_inner(st, nouter);
		for (uint32_t j = 0; j < map.n; j++)
			if (map.axis[j] == axis && stage_keeps_row(st, nouter))
				return false;
	}
	return k->axis.n < MAX_KERNEL_AXES;
}

static void split(const Lowered *l, Kernel *k, uint32_t axis, Sym d)
{
	SymTab *syms = l->ir->syms;
	Arena *arena = l->ir->ctx->arena;
	Axis old = k->axis.data[axis];
	Axis hi = {.extent = sym_floordiv(syms, old.extent, d)}, lo = {.extent = d};
	hi.var = sym_axis(syms, sym_name(syms, old.var), hi.extent);
	lo.var = sym_axis(syms, sym_name(syms, old.var), lo.extent);
	Sym by = sym_add(syms, sym_mul(syms, hi.var, d), lo.var);
	array_push(arena, &k->axis, lo);
	for (uint32_t i = k->axis.n - 1; i > axis + 1; i--)
		k->axis.data[i] = k->axis.data[i - 1];
	k->axis.data[axis] = hi;
	k->axis.data[axis + 1] = lo;
	for (uint32_t i = 1; i < k->kx.n; i++) {
		KxData *x = &k->kx.data[i];
		if (x->kind == KX_STAGE)
			split_read(l, k, x, axis, old.var, by);
		else
			x->idx = substitute(l, x->idx, x->nidx, old.var, by);
	}
	for (uint32_t i = 0; i < k->vvar.n; i++)
		k->vvar.data[i].at =
			substitute(l, k->vvar.data[i].at, k->vvar.data[i].nat, old.var, by);
	for (uint32_t i = 0; i < k->stage.n; i++) {
		Stage *st = &k->stage.data[i];
		st->nmap = renumber(st->map, st->nmap, axis);
		st->nred = renumber(st->red, st->nred, axis);
		if (stage_stores(st))
			st->store.idx = substitute(l, st->store.idx, buf_of(l, st->store.buf)->rank,
						   old.var, by);
	}
}

static Sym offset_in(const Lowered *l, BufId id, const Sym *idx, bool packs)
{
	const Buffer *b = buf_of(l, id);
	if (!packs || b->kind != BUF_CONST)
		return layout_offset(l->ir, &b->layout, idx);
	Layout plain = layout_row_major(l->ir, b->rank, b->dim);
	return layout_offset(l->ir, &plain, idx);
}

/* Lists the offsets of all loads and stores in offset[], and returns their number. */
static uint32_t offsets_of(const Lowered *l, const Kernel *k, bool packs, Sym *offset)
{
	uint32_t n = 0;
	for (uint32_t i = 1; i < k->kx.n; i++)
		if (k->kx.data[i].kind == KX_LOAD)
			offset[n++] = offset_in(l, k->kx.data[i].buf, k->kx.data[i].idx, packs);
	for (uint32_t i = 0; i < k->stage.n; i++)
		if (stage_stores(&k->stage.data[i]))
			offset[n++] = offset_in(l, k->stage.data[i].store.buf,
						k->stage.data[i].store.idx, packs);
	return n;
}

static bool split_one(const Lowered *l, Kernel *k, bool packs)
{
	Sym *offset = ARENA_ARRAY(l->ir->ctx->arena, Sym, k->kx.n + k->stage.n);
	const uint32_t n = offsets_of(l, k, packs, offset);
	for (uint32_t a = 0; a < k->axis.n; a++) {
		Sym d = {0};
		for (uint32_t i = 0; i < n && !d.i; i++)
			d = split_wanted(l, offset[i], &k->axis.data[a]);
		if (d.i && room_to_split(k, a)) {
			split(l, k, a, d);
			return true;
		}
	}
	return false;
}

void kernel_split_axes(const Lowered *l, Kernel *k, bool packs)
{
	while (split_one(l, k, packs))
		;
}
