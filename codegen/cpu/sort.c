/* Sorting of rows by radix sort, rank sort, merge sort or heap sort. Radix sort takes all elements
 * of a row by the digits of their keys, bytes, from the lowest one up. Rank sort, for a short row,
 * counts with lanes how many elements stand before each. Merge sort is for the threads of a GPU.
 * Heap sort finds and sorts the first elements alone (top k). */
#include "codegen/cpu/cpu.h"

#include <assert.h>

/* ---- rows ---- */

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

/* Whether b stands before a: it is less, or greater in a descending sort. NaN counts as the
 * largest. */
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

/* ---- the first elements ---- */

/* Whether element a, at place ai of the row, comes after element b at place bi. */
static Lx after(Sort *r, Lx a, Lx ai, Lx b, Lx bi)
{
	LoopFn *f = r->s->e.f;
	LType bit = {DT_bool, 1};
	Lx first = before(r, a, b), last = before(r, b, a);
	Lx tie = lx_and(f, lx_sc(f, SC_not, bit, &first, 1), lx_cmp(f, SC_gt, ai, bi));
	return lx_sc(f, SC_or, bit, (Lx[]){last, tie}, 2);
}

/* Puts v on `top` of a heap of `size` elements, in place of the element there. The heap has the
 * last element in order on top; elements below `top` that come after v move up. */
static void sift(Sort *r, Pairs heap, Lx top, Lx size, Lx v, Lx vi)
{
	LoopFn *f = r->s->e.f;
	Lx one = lx_int(f, 1), two = lx_int(f, 2);
	Lv hole = ls_var(f, "hole", top),
	   child = ls_var(f, "child", lx_add(f, lx_mul(f, top, two), one));
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

/* Makes a heap of the first elements of the row. Then each other element that comes before the
 * heap's top takes the top's place. */
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
	Lx v = lx_var(f, ls_let(f, "v", row_load(r, heap.value, top))),
	   vi = lx_var(f, ls_let(f, "vi", row_load(r, heap.index, top)));
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

/* Sorts a heap in place: its top changes places with its last element, again and again. */
static void unheap(Sort *r, Pairs heap, Lx first)
{
	LoopFn *f = r->s->e.f;
	Lx zero = lx_int(f, 0), k = lx_var(f, ls_for(f, "k", lx_int(f, 1), first, 1));
	Lx size = lx_var(f, ls_let(f, "size", lx_sub(f, first, k)));
	Lx v = lx_var(f, ls_let(f, "v", row_load(r, heap.value, size))),
	   vi = lx_var(f, ls_let(f, "vi", row_load(r, heap.index, size)));
	row_store(r, heap.value, size, row_load(r, heap.value, zero));
	row_store(r, heap.index, size, row_load(r, heap.index, zero));
	sift(r, heap, zero, size, v, vi);
	ls_end(f);
}

/* Sorts the first elements of a row by a heap in the results' memory. It takes n log first steps at
 * most, and hardly more than n if they are few of many. */
static void sort_first(Sort *r, uint32_t stage)
{
	Cpu *s = r->s;
	const Stage *st = &s->e.k->stage.data[stage];
	int64_t least = 1, most;
	Sym extent = st->nred > 1 ? s->e.nest->extent[st->red[1]] : sym_int(s->e.syms, 1);
	Lx first = eval_size(&s->e, extent);
	Pairs heap = {stage, stage_next(st)};
	sym_range(s->e.syms, extent, &least, &most);
	if (least < 1)
		ls_if(s->e.f, lx_cmp(s->e.f, SC_gt, first, lx_int(s->e.f, 0)));
	gather_first(r, heap, stage, first);
	unheap(r, heap, first);
	if (least < 1)
		ls_end(s->e.f);
	eval_at(&s->e, r->place, (Lx){0});
}

/* ---- all elements, by merging ---- */

/* Stores element k of the merged run: the smaller of the heads of both runs, i and j, and the left
 * one of equals. */
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

/* Merges neighbouring runs of `width` elements into runs of twice that. The last run may be short
 * or alone. */
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

/* Sorts a row by merging runs, from one element up, two passes at a time, so that the result ends
 * where it began. */
static void sort_by_merging(Sort *r, Pairs row, Pairs room, Kx value)
{
	LoopFn *f = r->s->e.f;
	fill_row(r, row, value);
	Lv width = ls_var(f, "width", lx_int(f, 1));
	Lx w = lx_var(f, width);
	ls_while(f, lx_cmp(f, SC_lt, w, r->n));
	merge_runs(r, row, room, w);
	Lx twice = lx_var(f, ls_let(f, "width", lx_mul(f, w, lx_int(f, 2))));
	merge_runs(r, room, row, twice);
	ls_set(f, width, lx_mul(f, twice, lx_int(f, 2)));
	ls_end(f);
}

/* ---- keys ---- */

/* Returns an integer of a float's size in the order of floats. Both zeros are equal, and so are all
 * NaN, which come after infinity. The bits of a negative number but its sign are inverted. */
static Lx float_key(LoopFn *f, Lx v)
{
	const DType d = lx_type(f, v).dtype;
	const LType t = {d == DT_f64 ? DT_i64 : DT_i32, 1};
	const int64_t width = d == DT_f64 ? 64 : 32,
		      nan = d == DT_f64 ? INT64_C(0x7ff8) << 48 : 0x7fc00000;
	Lx bits = lx_sc(f, SC_bitcast, t, &v, 1);
	bits = lx_select(f, lx_cmp(f, SC_eq, v, lx_float(f, lx_type(f, v), 0)), lx_int_of(f, t, 0),
			 bits);
	bits = lx_select(f, lx_cmp(f, SC_ne, v, v), lx_int_of(f, t, nan), bits);
	bits = lx_var(f, ls_let(f, "bits", bits));
	Lx sign = lx_sc(f, SC_shr, t, (Lx[]){bits, lx_int_of(f, t, width - 1)}, 2);
	Lx turned = lx_sc(f, SC_and, t,
			  (Lx[]){sign, lx_int_of(f, t, d == DT_f64 ? INT64_MAX : INT32_MAX)}, 2);
	return lx_sc(f, SC_xor, t, (Lx[]){bits, turned}, 2);
}

/* Returns the sort key of an element, in the order of the sort: an i32, or an i64 for more than
 * four bytes. */
static Lx key_of(const Sort *r, DType d, Lx v)
{
	LoopFn *f = r->s->e.f;
	const LType t = {dtype_size(dtype_compute(d)) > 4 ? DT_i64 : DT_i32, 1};
	const DType is = lx_type(f, v).dtype;
	if (dtype_is_float(d))
		v = float_key(f, v);
	else if (is == DT_u32 || is == DT_u64)
		v = lx_sc(f, SC_xor, t,
			  (Lx[]){lx_sc(f, SC_bitcast, t, &v, 1),
				 lx_int_of(f, t, is == DT_u64 ? INT64_MIN : INT32_MIN)},
			  2);
	else if (is != t.dtype)
		v = lx_sc(f, SC_convert, t, &v, 1);
	return r->descending ? lx_sc(f, SC_not, t, &v, 1) : v;
}

/* Returns the value of a row's element at the current point, rounded to the dtype in which it is
 * stored. */
static Lx element(Sort *r, DType d, Kx value)
{
	Eval *e = &r->s->e;
	Lx v = eval_value(e, value);
	if (dtype_is_float(d) && dtype_compute(d) != d)
		v = eval_convert(e, v, d);
	return lx_var(e->f, ls_let(e->f, "v", v));
}

/* ---- all elements of a short row, by their ranks ---- */

/* Adds one in each lane whose key comes behind key j: behind an earlier one, too, if they are
 * equal. */
static void add_earlier(LoopFn *f, Lv rank, LMem keys, Lx mine, Lx j, ScOp before)
{
	const LType t = lx_type(f, mine), one = {t.dtype, 1};
	Lx other = lx_var(f, ls_load(f, "key", keys, j, one, (Lx){0}));
	Lx yes = lx_cmp(f, before, lx_splat(f, other, t.lanes), mine);
	ls_set(f, rank,
	       lx_add(f, lx_var(f, rank),
		      lx_select(f, yes, lx_int_of(f, t, 1), lx_int_of(f, t, 0))));
}

/* Returns the ranks of as many elements as there are lanes, from `first` on. */
static Lx count_ranks(Sort *r, LMem keys, LType t, Lx first, Lx mask)
{
	LoopFn *f = r->s->e.f;
	const LType one = {t.dtype, 1};
	Lx lanes = lx_int(f, t.lanes),
	   end = lx_var(f, ls_let(f, "end", lx_min(f, lx_add(f, first, lanes), r->n)));
	Lx mine = lx_var(f, ls_load(f, "key", keys, first, t, mask));
	Lx place = lx_ramp(f, lx_int_of(f, one, 0), lx_int_of(f, one, 1), t.lanes);
	Lv rank = ls_var(f, "rank", lx_int_of(f, t, 0));
	Lx j = lx_var(f, ls_for(f, "j", lx_int(f, 0), first, 1));
	add_earlier(f, rank, keys, mine, j, SC_le);
	ls_end(f);
	j = lx_var(f, ls_for(f, "j", first, end, 1));
	Lx other = lx_splat(f, lx_var(f, ls_load(f, "key", keys, j, one, (Lx){0})), t.lanes),
	   at = lx_sub(f, j, first);
	if (t.dtype != DT_i64)
		at = lx_sc(f, SC_convert, one, &at, 1);
	Lx tie = lx_and(f, lx_cmp(f, SC_eq, other, mine),
			lx_cmp(f, SC_lt, lx_splat(f, at, t.lanes), place));
	Lx yes = lx_sc(f, SC_or, (LType){DT_bool, t.lanes},
		       (Lx[]){lx_cmp(f, SC_lt, other, mine), tie}, 2);
	ls_set(f, rank,
	       lx_add(f, lx_var(f, rank),
		      lx_select(f, yes, lx_int_of(f, t, 1), lx_int_of(f, t, 0))));
	ls_end(f);
	j = lx_var(f, ls_for(f, "j", end, r->n, 1));
	add_earlier(f, rank, keys, mine, j, SC_lt);
	ls_end(f);
	return lx_var(f, rank);
}

/* Sorts a row of at most `most` elements by their ranks. The rank of an element is the number of
 * those that stand before it. */
static void sort_by_ranks(Sort *r, int64_t most, Pairs row, Pairs room, Kx value)
{
	Cpu *s = r->s;
	LoopFn *f = s->e.f;
	const DType d = s->e.k->stage.data[row.value].dtype,
		    kd = dtype_size(dtype_compute(d)) > 4 ? DT_i64 : DT_i32;
	const LType t = {kd, target_lanes(s->target, kd)}, one = {kd, 1};
	LMem keys = ls_local(f, "keys", kd, (uint64_t)most),
	     ranks = ls_local(f, "ranks", kd, (uint64_t)most);
	eval_for(&s->e, r->axis, lx_int(f, 0), r->n, 1);
	Lx at = s->e.at[r->axis], v = element(r, d, value);
	row_store(r, room.value, at, v);
	ls_store(f, keys, at, key_of(r, d, v), (Lx){0});
	eval_end(&s->e);
	Lx first = lx_var(f, ls_for(f, "first", lx_int(f, 0), r->n, t.lanes));
	Lx mask = t.lanes > 1 ? lx_mask(f, lx_sub(f, r->n, first), t.lanes) : (Lx){0};
	Lx counted = count_ranks(r, keys, t, first, mask);
	ls_store(f, ranks, first, counted, mask);
	ls_end(f);
	Lx k = lx_var(f, ls_for(f, "k", lx_int(f, 0), r->n, 1));
	Lx rank = lx_var(f, ls_load(f, "rank", ranks, k, one, (Lx){0}));
	if (kd != DT_i64)
		rank = lx_sc(f, SC_convert, (LType){DT_i64, 1}, &rank, 1);
	rank = lx_var(f, ls_let(f, "rank", rank));
	v = row_load(r, room.value, k);
	row_store(r, row.value, rank, v);
	row_store(r, row.index, rank, k);
	ls_end(f);
}

/* ---- all elements, by the digits of keys ---- */

enum { DIGIT = 256 };

typedef struct {
	Sort *row;
	DType dtype;     /* of the elements */
	uint32_t digits; /* of a key */
	LMem count;      /* by digit and its value: the number of elements that have it; when the
	                    elements are ordered by the digit, the place of the next one that has
	                    it */
} Radix;

/* Returns an i64 whose lowest digits, as unsigned numbers, are in the order of the elements. */
static Lx digits_of(const Radix *x, Lx v)
{
	assert(x->digits >= 1);
	LoopFn *f = x->row->s->e.f;
	const LType i64 = {DT_i64, 1};
	Lx key = key_of(x->row, x->dtype, v);
	if (lx_type(f, key).dtype != DT_i64)
		key = lx_sc(f, SC_convert, i64, &key, 1);
	if (x->digits >= 4 || dtype_is_signed(x->dtype))
		key = lx_sc(f, SC_xor, i64,
			    (Lx[]){key, lx_int(f, (int64_t)(UINT64_C(1) << (8 * x->digits - 1)))},
			    2);
	return lx_var(f, ls_let(f, "key", key));
}

/* Returns the index in count[] of the digit of a key that is `shift` bits up. first: where the
 * counts of that digit begin. */
static Lx slot_of(const Radix *x, Lx key, Lx shift, Lx first)
{
	LoopFn *f = x->row->s->e.f;
	Lx digit = lx_sc(f, SC_shr, (LType){DT_i64, 1}, (Lx[]){key, shift}, 2);
	return lx_var(f,
		      ls_let(f, "slot", lx_add(f, first, lx_and(f, digit, lx_int(f, DIGIT - 1)))));
}

static Lx count_at(const Radix *x, Lx slot)
{
	LoopFn *f = x->row->s->e.f;
	return lx_var(f, ls_load(f, "count", x->count, slot, (LType){DT_i64, 1}, (Lx){0}));
}

static void set_count(const Radix *x, Lx slot, Lx count)
{
	ls_store(x->row->s->e.f, x->count, slot, count, (Lx){0});
}

/* Copies the row with its places, and counts the values of all digits. */
static void fill_and_count(Radix *x, Pairs row, Kx value)
{
	Cpu *s = x->row->s;
	LoopFn *f = s->e.f;
	Lx zero = lx_int(f, 0), one = lx_int(f, 1);
	Lx slot = lx_var(f, ls_for(f, "slot", zero, lx_int(f, (int64_t)x->digits * DIGIT), 1));
	set_count(x, slot, zero);
	ls_end(f);
	eval_for(&s->e, x->row->axis, zero, x->row->n, 1);
	Lx at = s->e.at[x->row->axis], v = element(x->row, x->dtype, value);
	row_store(x->row, row.value, at, v);
	row_store(x->row, row.index, at, at);
	Lx key = digits_of(x, v);
	for (uint32_t d = 0; d < x->digits; d++) {
		slot = slot_of(x, key, lx_int(f, 8 * d), lx_int(f, (int64_t)d * DIGIT));
		set_count(x, slot, lx_add(f, count_at(x, slot), one));
	}
	eval_end(&s->e);
}

/* Replaces the counts of a digit's values by the places of the first elements that have them
 * (prefix sums). */
static void places_of(Radix *x, Lx first)
{
	LoopFn *f = x->row->s->e.f;
	Lv sum = ls_var(f, "sum", lx_int(f, 0));
	Lx slot = lx_var(f, ls_for(f, "slot", first, lx_add(f, first, lx_int(f, DIGIT)), 1));
	Lx count = count_at(x, slot);
	set_count(x, slot, lx_var(f, sum));
	ls_set(f, sum, lx_add(f, lx_var(f, sum), count));
	ls_end(f);
}

static void order_by_digit(Radix *x, Pairs from, Pairs to, Lx shift, Lx first)
{
	Sort *r = x->row;
	LoopFn *f = r->s->e.f;
	Lx k = lx_var(f, ls_for(f, "k", lx_int(f, 0), r->n, 1));
	Lx v = row_load(r, from.value, k), i = row_load(r, from.index, k);
	Lx slot = slot_of(x, digits_of(x, v), shift, first), at = count_at(x, slot);
	set_count(x, slot, lx_add(f, at, lx_int(f, 1)));
	row_store(r, to.value, at, v);
	row_store(r, to.index, at, i);
	ls_end(f);
}

static void copy_row(Sort *r, Pairs from, Pairs to)
{
	LoopFn *f = r->s->e.f;
	Lx k = lx_var(f, ls_for(f, "k", lx_int(f, 0), r->n, 1));
	row_store(r, to.value, k, row_load(r, from.value, k));
	row_store(r, to.index, k, row_load(r, from.index, k));
	ls_end(f);
}

/* Sorts a row that is not empty by digits (radix sort). A digit that is the same in all elements is
 * left out. */
static void sort_by_digits(Sort *r, uint32_t digits, Pairs row, Pairs room, Kx value)
{
	LoopFn *f = r->s->e.f;
	Lx zero = lx_int(f, 0), one = lx_int(f, 1);
	Radix x = {.row = r, .dtype = r->s->e.k->stage.data[row.value].dtype, .digits = digits};
	x.count = ls_local(f, "count", DT_i64, (uint64_t)digits * DIGIT);
	fill_and_count(&x, row, value);
	Lv in_room = ls_var(f, "in_room", zero);
	Lx digit = lx_var(f, ls_for(f, "digit", zero, lx_int(f, digits), 1));
	Lx shift = lx_var(f, ls_let(f, "shift", lx_mul(f, digit, lx_int(f, 8))));
	Lx first = lx_var(f, ls_let(f, "first", lx_mul(f, digit, lx_int(f, DIGIT))));
	Lx any = slot_of(&x, digits_of(&x, row_load(r, row.value, zero)), shift, first);
	ls_if(f, lx_cmp(f, SC_lt, count_at(&x, any), r->n));
	places_of(&x, first);
	ls_if(f, lx_cmp(f, SC_eq, lx_var(f, in_room), zero));
	order_by_digit(&x, row, room, shift, first);
	ls_else(f);
	order_by_digit(&x, room, row, shift, first);
	ls_end(f);
	ls_set(f, in_room, lx_sub(f, one, lx_var(f, in_room)));
	ls_end(f);
	ls_end(f);
	ls_if(f, lx_cmp(f, SC_gt, lx_var(f, in_room), zero));
	copy_row(r, room, row);
	ls_end(f);
}

/* ---- a stage ---- */

/* Returns the most elements of a row that are sorted by their ranks. Ranks compare all pairs, with
 * lanes; counting the values of digits takes as long for few elements as for many. */
static int64_t most_by_ranks(const Target *t)
{
	const int64_t vectors = 4 * (int64_t)target_lanes(t, DT_i32);
	return vectors > 16 ? vectors : 16;
}

static void sort_row(Sort *r, Sym extent, Pairs row, Pairs room, Kx value)
{
	LoopFn *f = r->s->e.f;
	const DType d = r->s->e.k->stage.data[row.value].dtype;
	const int64_t few = most_by_ranks(r->s->target);
	int64_t lo, hi;
	sym_range(r->s->e.syms, extent, &lo, &hi);
	const bool asks = lo <= few && hi > few;
	if (asks)
		ls_if(f, lx_cmp(f, SC_le, r->n, lx_int(f, few)));
	if (lo <= few)
		sort_by_ranks(r, hi < few ? (hi > 0 ? hi : 1) : few, row, room, value);
	if (asks)
		ls_else(f);
	if (hi > few)
		sort_by_digits(r, dtype_size(dtype_is_float(d) ? dtype_compute(d) : d), row, room,
			       value);
	if (asks)
		ls_end(f);
}

void cpu_sort(Cpu *s, uint32_t stage)
{
	const Stage *st = &s->e.k->stage.data[stage];
	const Sym extent = s->e.nest->extent[st->red[0]];
	Sort r = {.s = s,
		  .axis = st->red[0],
		  .place = st->red[st->nred - 1],
		  .descending = st->sort.descending,
		  .n = eval_size(&s->e, extent)};
	Pairs row = {stage, stage_next(st)}, room;
	if (!s->e.k->stage.data[row.index].sort.next) {
		sort_first(&r, stage);
		return;
	}
	room.value = s->e.k->stage.data[row.index].sort.next;
	room.index = s->e.k->stage.data[room.value].sort.next;
	if (s->target->isa.of_block)
		sort_by_merging(&r, row, room, st->value);
	else
		sort_row(&r, extent, row, room, st->value);
	eval_at(&s->e, r.axis, (Lx){0});
}
