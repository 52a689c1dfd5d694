/* Blocks of rows and keys: where they are, and which of them conditions leave out. */
#include "codegen/cpu/attention/blocks.h"

#include <math.h>

#include "ir/kernel/build.h"

#define FAR (INT64_C(1) << 61) /* beyond all keys */

void blocks_store(Blocks *b, LMem to, Lx at, Lx x, Lx mask)
{
	const LType raw = {DT_u16, lx_type(b->f, x).lanes};
	if (to.dtype == DT_bf16) {
		x = lx_sc(b->f, SC_flush_bf16, raw, &x, 1);
		to.dtype = DT_u16;
	}
	ls_store(b->f, to, at, x, mask);
}

Kx blocks_unrounded(const Blocks *b, Kx x)
{
	const Kernel *k = b->nest->k;
	const Kx in = kx_unconverted(k, x);
	const bool rounds = in.i != x.i && k->kx.data[x.i].round == b->row->a;
	return rounds && micro_groups(b->row) ? in : x;
}

void blocks_set_rows(Blocks *b, Lx first, Lx all, int64_t most)
{
	LoopFn *f = b->f;
	b->rows.first = first;
	b->rows.n = let(b, "rows", lx_min(f, lx_sub(f, all, first), number(b, most)));
	Lx up = lx_add(f, b->rows.n, number(b, b->tile.mr - 1));
	b->rows.whole = let(b, "whole", times(b, lx_div(f, up, number(b, b->tile.mr)), b->tile.mr));
}

void blocks_set_keys(Blocks *b, Lx from)
{
	b->from = from;
	Lx end = b->end.i ? b->end : eval_size(&b->s->e, b->nest->extent[b->limits->key]),
	   rest = lx_sub(b->f, end, from);
	b->count = let(b, "count", lx_min(b->f, rest, number(b, b->most)));
}

void blocks_go_to_row(Blocks *b, Lx r, bool clamp)
{
	const KeyLimits *l = b->limits;
	if (l->row == NO_AXIS)
		return;
	if (clamp)
		r = lx_min(b->f, r, lx_sub(b->f, b->rows.n, number(b, 1)));
	Lx row = lx_add(b->f, b->rows.first, r);
	for (uint32_t i = l->inner.n; i-- > 0;) {
		Lx n = eval_size(&b->s->e, b->nest->extent[l->inner.axis[i]]);
		eval_at(&b->s->e, l->inner.axis[i], let(b, "inner", lx_mod(b->f, row, n)));
		row = lx_div(b->f, row, n);
	}
	eval_at(&b->s->e, l->row, let(b, "row", row));
}

void blocks_leave_row(Blocks *b)
{
	const KeyLimits *l = b->limits;
	for (uint32_t i = 0; i < l->inner.n; i++)
		eval_at(&b->s->e, l->inner.axis[i], (Lx){0});
	if (l->row != NO_AXIS)
		eval_at(&b->s->e, l->row, (Lx){0});
}

Lx blocks_open_rows(Blocks *b, Lx end, int64_t step)
{
	return lx_var(b->f, ls_for(b->f, "r", number(b, 0), end, step));
}

void blocks_for_keys(Blocks *b, void (*body)(Cpu *, void *), void *data)
{
	Lx end = lx_add(b->f, b->from, b->count);
	const bool whole = !b->end.i && sym_divides(b->s->e.syms, b->vector.lanes,
						    b->nest->extent[b->limits->key]);
	cpu_vector_loop(b->s, b->limits->key, b->from, end, whole, body, data);
}

void blocks_go_to_member(Blocks *b, const uint32_t *axis, uint32_t n, Lx t)
{
	for (uint32_t i = n; i-- > 0;) {
		Lx extent = eval_size(&b->s->e, b->nest->extent[axis[i]]);
		eval_at(&b->s->e, axis[i], let(b, "batch", i ? lx_mod(b->f, t, extent) : t));
		t = i ? let(b, "rest", lx_div(b->f, t, extent)) : t;
	}
}

/* ---- conditions ---- */

void blocks_bound_keys(Blocks *b, Lx *lo, Lx *hi)
{
	Cpu *s = b->s;
	LoopFn *f = b->f;
	const KeyLimits *l = b->limits;
	Lx zero = number(b, 0), all = eval_size(&s->e, b->nest->extent[l->key]);
	*lo = zero;
	*hi = all;
	if (!l->nbound)
		return;
	Lv least = ls_var(f, "least", all), most = ls_var(f, "most", zero),
	   first = ls_var(f, "begin", zero), last = ls_var(f, "finish", all);
	Lx r = blocks_open_rows(b, b->rows.n, 1), from = zero, to = all;
	blocks_go_to_row(b, r, false);
	for (uint32_t i = 0; i < l->nbound; i++) {
		const KeyBound *k = &l->bound[i];
		Lx limit = eval_convert(&s->e, eval_value(&s->e, k->limit), DT_i64);
		/* the greatest number is no limit, and must not wrap */
		limit = lx_max(f, lx_min(f, limit, number(b, FAR)), number(b, -FAR));
		limit = lx_sub(f, limit, eval_index(&s->e, k->add));
		limit = let(b, "limit", lx_add(f, limit, number(b, k->inclusive)));
		if (k->below)
			to = let(b, "to", lx_min(f, to, limit));
		else
			from = let(b, "from", lx_max(f, from, limit));
	}
	ls_set(f, least, lx_min(f, lx_var(f, least), from));
	ls_set(f, most, lx_max(f, lx_var(f, most), to));
	ls_set(f, first, lx_max(f, lx_var(f, first), from));
	ls_set(f, last, lx_min(f, lx_var(f, last), to));
	blocks_leave_row(b);
	ls_end(f);
	*lo = let(b, "lo", lx_var(f, least));
	*hi = let(b, "hi", lx_var(f, most));
	b->inside.lo = let(b, "inner", lx_var(f, first));
	b->inside.hi = let(b, "outer", lx_var(f, last));
}

Lx blocks_are_inside(Blocks *b)
{
	LoopFn *f = b->f;
	if (!b->inside.lo.i)
		return (Lx){0};
	return lx_and(f, lx_cmp(f, SC_ge, b->from, b->inside.lo),
		      lx_cmp(f, SC_le, lx_add(f, b->from, b->count), b->inside.hi));
}

void blocks_assume_inside(Blocks *b)
{
	const KeyLimits *l = b->limits;
	for (uint32_t i = 0; i < l->nbound; i++)
		eval_assume(&b->s->e, l->bound[i].condition,
			    lx_int_of(b->f, (LType){DT_bool, b->vector.lanes}, l->bound[i].holds));
}

typedef struct {
	Blocks *b;
	Lv any;
} MaskedBlock;

Lx blocks_seen(Blocks *b)
{
	Cpu *s = b->s;
	LoopFn *f = b->f;
	const KeyLimits *l = b->limits;
	const LType t = b->vector;
	Lx seen = {0};
	for (uint32_t i = 0; i < l->nmask; i++) {
		const KeyMask *mask = &l->mask[i];
		Lx x = eval_vector(&s->e, mask->value);
		if (mask->is_added)
			x = lx_cmp(f, SC_ne, x, lx_float(f, t, -(double)INFINITY));
		if (mask->hides)
			x = lx_sc(f, SC_not, (LType){DT_bool, t.lanes}, &x, 1);
		seen = seen.i ? lx_and(f, seen, x) : x;
	}
	return s->e.lanes.mask.i ? lx_and(f, seen, s->e.lanes.mask) : seen;
}

/* Sets `any` if the masks let a key through, of those in the lanes. */
static void find_seen(Cpu *s, void *data)
{
	(void)s;
	const MaskedBlock *m = data;
	LoopFn *f = m->b->f;
	Lx any[2] = {lx_var(f, m->any), lx_any(f, blocks_seen(m->b))};
	ls_set(f, m->any, lx_sc(f, SC_or, (LType){DT_bool, 1}, any, 2));
}

void blocks_open_if_seen(Blocks *b)
{
	Cpu *s = b->s;
	LoopFn *f = b->f;
	const LType one = {DT_bool, 1};
	MaskedBlock m = {b, ls_var(f, "any", lx_int_of(f, one, 0))};
	Lv row = ls_var(f, "asked", number(b, 0));
	Lx r = lx_var(f, row), any = lx_var(f, m.any);
	eval_lanes(&s->e, b->limits->key, b->vector.lanes);
	ls_while(f, lx_and(f, lx_sc(f, SC_not, one, &any, 1), lx_cmp(f, SC_lt, r, b->rows.n)));
	blocks_go_to_row(b, r, false);
	blocks_for_keys(b, find_seen, &m);
	blocks_leave_row(b);
	ls_set(f, row, lx_add(f, r, number(b, 1)));
	ls_end(f);
	eval_lanes(&s->e, NO_AXIS, b->vector.lanes);
	ls_if(f, any);
}
