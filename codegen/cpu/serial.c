/* Stages whose steps depend on each other: scattering, sorting. */
#include "codegen/cpu/cpu.h"

/* ---- scatter ---- */

static Lx combined(Cpu *s, const Stage *st, uint32_t stage, EvalAddress at)
{
	Lx v = eval_value(&s->e, st->value);
	if (st->combine == REDUCE_SET)
		return v;
	Lx old = eval_load_at(&s->e, stage, at);
	LType t = lx_type(s->e.f, old);
	if (t.lanes > 1)
		v = eval_splat(&s->e, v);
	return code_combine(&s->code, st->combine, old, v);
}

/* A scalar guard is a branch, lanes of one are masked. */
void cpu_scatter(Cpu *s, uint32_t stage)
{
	const Stage *st = &s->e.k->stage.data[stage];
	EvalAddress at = eval_address(&s->e, stage);
	Lx guard = st->guard.i ? eval_value(&s->e, st->guard) : (Lx){0}, outer_mask = s->e.lanes.mask;
	bool branch = guard.i && lx_type(s->e.f, guard).lanes == 1;
	if (branch)
		ls_if(s->e.f, guard);
	else if (guard.i)
		eval_mask(&s->e, outer_mask.i ? lx_and(s->e.f, outer_mask, guard) : guard);
	eval_store_at(&s->e, stage, at, combined(s, st, stage, at));
	if (branch)
		ls_end(s->e.f);
	eval_mask(&s->e, outer_mask);
}

/* ---- sort ---- */

/* A pair of arrays over the row: stages of values and of indices. */
typedef struct {
	uint32_t value, index;
} Pairs;

typedef struct {
	Cpu *s;
	uint32_t axis, place; /* of the row, and of what is stored: the same unless only the first
	                         elements are */
	bool descending;
	Lx n;
} Sort;

static Lx row_load(Sort *r, uint32_t stage, Lx at)
{
	eval_at(&r->s->e, r->place, at);
	return eval_load_at(&r->s->e, stage, eval_address(&r->s->e, stage));
}

static void row_store(Sort *r, uint32_t stage, Lx at, Lx value)
{
	eval_at(&r->s->e, r->place, at);
	eval_store_at(&r->s->e, stage, eval_address(&r->s->e, stage), value);
}

/* b stands before a: less, or greater when descending; NaN counts as the largest. */
static Lx before(Sort *r, Lx b, Lx a)
{
	LoopFn *f = r->s->e.f;
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
	LoopFn *f = r->s->e.f;
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
	LoopFn *f = r->s->e.f;
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
	Cpu *s = r->s;
	eval_for(&s->e, r->axis, lx_int(s->e.f, 0), r->n, 1);
	Lx at = s->e.at[r->axis];
	cpu_store(s, to.value, eval_value(&s->e, value));
	row_store(r, to.index, at, at);
	eval_end(&s->e);
}

/* ---- the first elements ---- */

/* Of two elements with their places in the row, a comes after b. */
static Lx after(Sort *r, Lx a, Lx ai, Lx b, Lx bi)
{
	LoopFn *f = r->s->e.f;
	LType bit = {DT_bool, 1};
	Lx first = before(r, a, b), last = before(r, b, a);
	Lx tie = lx_and(f, lx_sc(f, SC_not, bit, &first, 1), lx_cmp(f, SC_gt, ai, bi));
	return lx_sc(f, SC_or, bit, (Lx[]){last, tie}, 2);
}

/* In a heap of `size` elements of which the last in order is on top, v comes to `top`, whose
 * element is no more: elements below that come after it move up. */
static void sift(Sort *r, Pairs heap, Lx top, Lx size, Lx v, Lx vi)
{
	LoopFn *f = r->s->e.f;
	Lx one = lx_int(f, 1), two = lx_int(f, 2);
	Lv hole = ls_var(f, "hole", top), child = ls_var(f, "child", lx_add(f, lx_mul(f, top, two), one));
	Lx at = lx_var(f, hole), left = lx_var(f, child), last = lx_sub(f, size, one);
	ls_while(f, lx_cmp(f, SC_lt, left, size));
	Lx right = lx_var(f, ls_let(f, "right", lx_min(f, lx_add(f, left, one), last)));
	Lx a = row_load(r, heap.value, left), ai = row_load(r, heap.index, left);
	Lx b = row_load(r, heap.value, right), bi = row_load(r, heap.index, right);
	Lx is_right = lx_var(f, ls_let(f, "is_right", after(r, b, bi, a, ai)));
	Lx c = lx_select(f, is_right, b, a), ci = lx_select(f, is_right, bi, ai);
	Lx from = lx_var(f, ls_let(f, "from", lx_select(f, is_right, right, left)));
	Lx up = lx_var(f, ls_let(f, "up", after(r, c, ci, v, vi)));
	row_store(r, heap.value, at, lx_select(f, up, c, v));
	row_store(r, heap.index, at, lx_select(f, up, ci, vi));
	ls_set(f, child, lx_select(f, up, lx_add(f, lx_mul(f, from, two), one), size));
	ls_set(f, hole, lx_select(f, up, from, at));
	ls_end(f);
	row_store(r, heap.value, at, v);
	row_store(r, heap.index, at, vi);
}

/* The first elements of the row become a heap; each of the others that comes before its top takes
 * that place. */
static void gather_first(Sort *r, Pairs heap, uint32_t stage, Lx first)
{
	Cpu *s = r->s;
	LoopFn *f = s->e.f;
	const Stage *st = &s->e.k->stage.data[stage];
	Lx zero = lx_int(f, 0), one = lx_int(f, 1), half = lx_div(f, first, lx_int(f, 2));
	eval_for(&s->e, r->axis, zero, first, 1);
	Lx at = s->e.at[r->axis];
	row_store(r, heap.value, at, eval_value(&s->e, st->value));
	row_store(r, heap.index, at, at);
	eval_end(&s->e);
	Lx k = lx_var(f, ls_for(f, "k", zero, half, 1));
	Lx top = lx_var(f, ls_let(f, "top", lx_sub(f, lx_sub(f, half, one), k)));
	Lx v = lx_var(f, ls_let(f, "v", row_load(r, heap.value, top))), vi = lx_var(f, ls_let(f, "vi", row_load(r, heap.index, top)));
	sift(r, heap, top, first, v, vi);
	ls_end(f);
	eval_for(&s->e, r->axis, first, r->n, 1);
	at = s->e.at[r->axis];
	v = eval_value(&s->e, st->value);
	if (dtype_is_float(st->dtype) && dtype_compute(st->dtype) != st->dtype)
		v = eval_convert(&s->e, v, st->dtype);
	v = lx_var(f, ls_let(f, "v", v));
	ls_if(f, before(r, v, row_load(r, heap.value, zero)));
	sift(r, heap, zero, first, v, at);
	ls_end(f);
	eval_end(&s->e);
}

/* The heap in order: what is on top changes places with the last one, again and again. */
static void unheap(Sort *r, Pairs heap, Lx first)
{
	LoopFn *f = r->s->e.f;
	Lx zero = lx_int(f, 0), k = lx_var(f, ls_for(f, "k", lx_int(f, 1), first, 1));
	Lx size = lx_var(f, ls_let(f, "size", lx_sub(f, first, k)));
	Lx v = lx_var(f, ls_let(f, "v", row_load(r, heap.value, size))), vi = lx_var(f, ls_let(f, "vi", row_load(r, heap.index, size)));
	row_store(r, heap.value, size, row_load(r, heap.value, zero));
	row_store(r, heap.index, size, row_load(r, heap.index, zero));
	sift(r, heap, zero, size, v, vi);
	ls_end(f);
}

/* In the results alone: n log first steps at most, and hardly more than n for few of many. */
static void sort_first(Sort *r, uint32_t stage)
{
	Cpu *s = r->s;
	const Stage *st = &s->e.k->stage.data[stage];
	int64_t least = 1, most;
	Sym extent = st->nred > 1 ? s->e.nest->extent[st->red[1]] : sym_int(s->e.syms, 1);
	Lx first = eval_size(&s->e, extent);
	Pairs heap = {stage, st->out2};
	sym_range(s->e.syms, extent, &least, &most);
	if (least < 1)
		ls_if(s->e.f, lx_cmp(s->e.f, SC_gt, first, lx_int(s->e.f, 0)));
	gather_first(r, heap, stage, first);
	unheap(r, heap, first);
	if (least < 1)
		ls_end(s->e.f);
	eval_at(&s->e, r->place, (Lx){0});
}

/* ---- all elements ---- */

/* Merge sort from runs of one element up, two passes at a time, so that the result ends where it
 * began. */
void cpu_sort(Cpu *s, uint32_t stage)
{
	const Stage *st = &s->e.k->stage.data[stage];
	LoopFn *f = s->e.f;
	Sort r = {.s = s,
		  .axis = st->red[0],
		  .place = st->red[st->nred - 1],
		  .descending = st->descending,
		  .n = eval_size(&s->e, s->e.nest->extent[st->red[0]])};
	Pairs row = {stage, st->out2}, room;
	if (!s->e.k->stage.data[row.index].out2) {
		sort_first(&r, stage);
		return;
	}
	room.value = s->e.k->stage.data[row.index].out2;
	room.index = s->e.k->stage.data[room.value].out2;
	fill_row(&r, row, st->value);
	Lv width = ls_var(f, "width", lx_int(f, 1));
	Lx w = lx_var(f, width);
	ls_while(f, lx_cmp(f, SC_lt, w, r.n));
	merge_runs(&r, row, room, w);
	Lx twice = lx_var(f, ls_let(f, "width", lx_mul(f, w, lx_int(f, 2))));
	merge_runs(&r, room, row, twice);
	ls_set(f, width, lx_mul(f, twice, lx_int(f, 2)));
	ls_end(f);
	eval_at(&s->e, r.axis, (Lx){0});
}
