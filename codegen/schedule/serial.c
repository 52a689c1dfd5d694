/* Stages whose steps depend on each other: scattering, sorting. */
#include "codegen/schedule/sched.h"

/* ---- scatter ---- */

static Lx combined(Sched *s, const Stage *st, uint32_t stage, SchedAddress at)
{
	Lx v = sched_value(s, st->value);
	if (st->combine == REDUCE_SET)
		return v;
	Lx old = sched_load_at(s, stage, at);
	LType t = lx_type(s->f, old);
	if (t.lanes > 1)
		v = sched_splat(s, v);
	return sched_combine(s, st->combine, old, v);
}

/* A scalar guard is a branch, lanes of one are masked. */
void sched_scatter(Sched *s, uint32_t stage)
{
	const Stage *st = &s->k->stage.data[stage];
	SchedAddress at = sched_address(s, stage);
	Lx guard = st->guard.i ? sched_value(s, st->guard) : (Lx){0}, outer_mask = s->mask;
	bool branch = guard.i && lx_type(s->f, guard).lanes == 1;
	uint32_t mark = sched_mark(s);
	if (branch)
		ls_if(s->f, guard);
	else if (guard.i)
		s->mask = outer_mask.i ? lx_and(s->f, outer_mask, guard) : guard;
	sched_store_at(s, stage, at, combined(s, st, stage, at));
	if (branch)
		ls_end(s->f);
	s->mask = outer_mask;
	sched_forget(s, mark);
}

/* ---- sort ---- */

/* A pair of arrays over the row: stages of values and of indices. */
typedef struct {
	uint32_t value, index;
} Pairs;

typedef struct {
	Sched *s;
	uint32_t axis;
	bool descending;
	Lx n;
} Sort;

static Lx row_load(Sort *r, uint32_t stage, Lx at)
{
	r->s->at[r->axis] = at;
	return sched_load_at(r->s, stage, sched_address(r->s, stage));
}

static void row_store(Sort *r, uint32_t stage, Lx at, Lx value)
{
	r->s->at[r->axis] = at;
	sched_store_at(r->s, stage, sched_address(r->s, stage), value);
}

/* b stands before a: less, or greater when descending; NaN counts as the largest. */
static Lx before(Sort *r, Lx b, Lx a)
{
	LoopFn *f = r->s->f;
	LType t = lx_type(f, a), bit = {DT_bool, 1}, i32 = {DT_i32, 1};
	if (t.dtype == DT_bool) {
		a = lx_sc(f, SC_convert, i32, &a, 1);
		b = lx_sc(f, SC_convert, i32, &b, 1);
	}
	Lx yes = lx_cmp(f, r->descending ? SC_gt : SC_lt, b, a);
	if (!dtype_is_float(t.dtype))
		return yes;
	Lx large = r->descending ? b : a, small = r->descending ? a : b;
	Lx nan = lx_and(f, lx_cmp(f, SC_ne, large, large), lx_cmp(f, SC_eq, small, small));
	return lx_sc(f, SC_or, bit, (Lx[]){yes, nan}, 2);
}

/* Element k of the merged run: the smaller of the heads i and j, the left one of equals. */
static void merge_step(Sort *r, Pairs from, Pairs to, Lv i, Lv j, Lx mid, Lx hi, Lx k)
{
	LoopFn *f = r->s->f;
	LType bit = {DT_bool, 1};
	Lx vi = lx_var(f, i), vj = lx_var(f, j), one = lx_int(f, 1), zero = lx_int(f, 0);
	Lx last = lx_sub(f, r->n, one); /* a head past the end of its run is not used */
	Lx at_i = lx_var(f, ls_let(f, "at", lx_min(f, vi, last)));
	Lx at_j = lx_var(f, ls_let(f, "at", lx_min(f, vj, last)));
	Lx a = row_load(r, from.value, at_i), b = row_load(r, from.value, at_j);
	Lx ai = row_load(r, from.index, at_i), bi = row_load(r, from.index, at_j);
	Lx right_first = before(r, b, a);
	right_first = lx_sc(f, SC_not, bit, &right_first, 1);
	Lx no_right = lx_cmp(f, SC_ge, vj, hi);
	Lx wins = lx_sc(f, SC_or, bit, (Lx[]){no_right, right_first}, 2);
	Lx left = lx_and(f, lx_cmp(f, SC_lt, vi, mid), wins);
	left = lx_var(f, ls_let(f, "left", left));
	row_store(r, to.value, k, lx_select(f, left, a, b));
	row_store(r, to.index, k, lx_select(f, left, ai, bi));
	ls_set(f, i, lx_add(f, vi, lx_select(f, left, one, zero)));
	ls_set(f, j, lx_add(f, vj, lx_select(f, left, zero, one)));
}

/* Neighbouring runs of `width` become runs of twice that; the last may be short or alone. */
static void merge_runs(Sort *r, Pairs from, Pairs to, Lx width)
{
	LoopFn *f = r->s->f;
	Lx span = lx_var(f, ls_let(f, "span", lx_mul(f, width, lx_int(f, 2))));
	Lx count = lx_div(f, lx_sub(f, lx_add(f, r->n, span), lx_int(f, 1)), span);
	Lx run = lx_var(f, ls_for(f, "run", lx_int(f, 0), count, 1));
	Lx lo = lx_var(f, ls_let(f, "lo", lx_mul(f, run, span)));
	Lx mid = lx_var(f, ls_let(f, "mid", lx_min(f, lx_add(f, lo, width), r->n)));
	Lx hi = lx_var(f, ls_let(f, "hi", lx_min(f, lx_add(f, lo, span), r->n)));
	Lv i = ls_var(f, "i", lo), j = ls_var(f, "j", mid);
	Lx k = lx_var(f, ls_for(f, "k", lo, hi, 1));
	merge_step(r, from, to, i, j, mid, hi, k);
	ls_end(f);
	ls_end(f);
}

static void fill_row(Sort *r, Pairs to, Kx value)
{
	Sched *s = r->s;
	uint32_t mark = sched_for(s, r->axis, lx_int(s->f, 0), r->n, 1);
	Lx at = s->at[r->axis];
	sched_store(s, to.value, sched_value(s, value));
	row_store(r, to.index, at, at);
	sched_end(s, mark);
}

/* Merge sort from runs of one element up, two passes at a time, so that the result ends where it began. */
void sched_sort(Sched *s, uint32_t stage)
{
	const Stage *st = &s->k->stage.data[stage];
	LoopFn *f = s->f;
	Sort r = {.s = s, .axis = st->red[0], .descending = st->descending,
	          .n = sched_size(s, s->extent[st->red[0]])};
	Pairs row = {stage, st->out2}, room;
	room.value = s->k->stage.data[row.index].out2;
	room.index = s->k->stage.data[room.value].out2;
	fill_row(&r, row, st->value);
	Lv width = ls_var(f, "width", lx_int(f, 1));
	Lx w = lx_var(f, width);
	ls_while(f, lx_cmp(f, SC_lt, w, r.n));
	merge_runs(&r, row, room, w);
	Lx twice = lx_var(f, ls_let(f, "width", lx_mul(f, w, lx_int(f, 2))));
	merge_runs(&r, room, row, twice);
	ls_set(f, width, lx_mul(f, twice, lx_int(f, 2)));
	ls_end(f);
	s->at[r.axis] = (Lx){0};
}
