/* Products of few rows with keys and values that are read in place, in the order in which they lie
 * in memory.
 *
 * A score is a dot product: lanes run along the depth, and are added up. The sums of several keys
 * become one vector, as those of contract_dots.c do. */
#include "codegen/cpu/attention/blocks.h"

enum {
	UNROLL = 8, /* vectors of a key */
	KEYS_UNROLLED = 4
};

/* ---- scores ---- */

typedef struct {
	Blocks *b;
	const KeyDots *d;
	Lx row;              /* the first of the tile */
	Lx key[MAX_ABREAST]; /* whose products are made together */
	Lv sum[MAX_ABREAST][MAX_TILE_ROWS];
} Dots;

/* Adds the lanes of n vectors, a power of two, until they are one vector: its lanes are n parts in
 * the order of the vectors. */
static Lx add_lanes(Blocks *b, const Lx *v, uint32_t n)
{
	LoopFn *f = b->f;
	if (n == 1)
		return v[0];
	const Lx low = add_lanes(b, v, n / 2), high = add_lanes(b, v + n / 2, n / 2);
	return let(b, "half",
		   lx_add(f, lx_shuffle(f, SHUFFLE_EVENS, low, high),
			  lx_shuffle(f, SHUFFLE_ODDS, low, high)));
}

/* Adds the products with vector `at` of the depth of key j. */
static void multiply_vector(Dots *x, uint32_t j, Lx at, Lx mask)
{
	Blocks *b = x->b;
	const KeyDots *d = x->d;
	Eval *e = &b->s->e;
	eval_at(e, b->limits->key, x->key[j]);
	eval_at(e, d->along, at);
	eval_mask(e, mask);
	Lx k = let(b, "k", eval_vector(e, d->keys));
	eval_mask(e, (Lx){0});
	for (uint32_t i = 0; i < b->tile.mr; i++) {
		Lx row = times(b, lx_add(b->f, x->row, number(b, i)), d->depth),
		   q = load(b, d->rows, lx_add(b->f, row, at), b->vector.lanes);
		ls_set(b->f, x->sum[j][i], code_fma(&b->s->code, q, k, lx_var(b->f, x->sum[j][i])));
	}
	eval_at(e, d->along, (Lx){0});
	eval_at(e, b->limits->key, (Lx){0});
}

/* Adds the products of the whole depth of key j. */
static void multiply_key(Dots *x, uint32_t j)
{
	Blocks *b = x->b;
	const int64_t lanes = b->vector.lanes, n = x->d->steps, whole = n - n % lanes,
		      looped = whole / lanes > UNROLL ? whole : 0;
	if (looped) {
		multiply_vector(
			x, j,
			lx_var(b->f, ls_for(b->f, "d", number(b, 0), number(b, whole), lanes)),
			(Lx){0});
		ls_end(b->f);
	}
	for (int64_t at = looped; at < whole; at += lanes)
		multiply_vector(x, j, number(b, at), (Lx){0});
	if (whole < n)
		multiply_vector(x, j, number(b, whole),
				lx_mask(b->f, number(b, n - whole), (uint32_t)lanes));
}

/* Sets part[i] to what is left of the sums of row i and the keys from key `first` of the block on.
 * last: the last key that there is; none: all are there. */
static void add_keys(Dots *x, Lx first, Lx last, Lx *part)
{
	Blocks *b = x->b;
	LoopFn *f = b->f;
	const uint32_t keys = x->d->abreast;
	for (uint32_t j = 0; j < keys; j++) {
		Lx key = lx_add(f, first, number(b, j));
		x->key[j] = let(b, "key", lx_add(f, b->from, last.i ? lx_min(f, key, last) : key));
		for (uint32_t i = 0; i < b->tile.mr; i++)
			x->sum[j][i] = ls_var(f, "sum", lx_float(f, b->vector, 0));
	}
	for (uint32_t j = 0; j < keys; j++)
		multiply_key(x, j);
	for (uint32_t i = 0; i < b->tile.mr; i++) {
		Lx sum[MAX_ABREAST];
		for (uint32_t j = 0; j < keys; j++)
			sum[j] = lx_var(f, x->sum[j][i]);
		part[i] = add_lanes(b, sum, keys);
	}
}

static Lx part_place(const Dots *x, uint32_t i, Lx group)
{
	const Blocks *b = x->b;
	const int64_t lanes = b->vector.lanes, groups = lanes / x->d->abreast;
	return lx_add(b->f, number(b, i * groups * lanes), times(b, group, lanes));
}

/* Makes the scores of a vector of keys, from key `key` of the block on. */
static void make_vector(Dots *x, Lx key, Lx last)
{
	Blocks *b = x->b;
	LoopFn *f = b->f;
	const int64_t lanes = b->vector.lanes, groups = lanes / x->d->abreast;
	Lx part[MAX_TILE_ROWS], all[MAX_DOT_GROUPS];
	Lx group = lx_var(f, ls_for(f, "group", number(b, 0), number(b, groups), 1));
	add_keys(x, lx_add(f, key, times(b, group, x->d->abreast)), last, part);
	for (uint32_t i = 0; i < b->tile.mr; i++)
		ls_store(f, x->d->parts, part_place(x, i, group), part[i], (Lx){0});
	ls_end(f);
	for (uint32_t i = 0; i < b->tile.mr; i++) {
		for (uint32_t g = 0; g < groups; g++)
			all[g] = load(b, x->d->parts, part_place(x, i, number(b, g)),
				      b->vector.lanes);
		Lx row = times(b, lx_add(f, x->row, number(b, i)), x->d->pitch);
		ls_store(f, x->d->to, lx_add(f, row, key), add_lanes(b, all, (uint32_t)groups),
			 (Lx){0});
	}
}

void blocks_make_dots(Blocks *b, const KeyDots *d)
{
	LoopFn *f = b->f;
	const int64_t lanes = b->vector.lanes;
	Dots x = {.b = b, .d = d};
	Lx whole = let(b, "whole", lx_sub(f, b->count, lx_mod(f, b->count, number(b, lanes)))),
	   last = let(b, "last", lx_sub(f, b->count, number(b, 1)));
	eval_lanes(&b->s->e, d->along, b->vector.lanes);
	x.row = blocks_open_rows(b, b->rows.whole, b->tile.mr);
	Lx key = lx_var(f, ls_for(f, "key", number(b, 0), whole, lanes));
	make_vector(&x, key, (Lx){0});
	ls_end(f);
	if (lanes > 1) {
		ls_if(f, lx_cmp(f, SC_lt, whole, b->count));
		make_vector(&x, whole, last);
		ls_end(f);
	}
	ls_end(f);
	eval_lanes(&b->s->e, NO_AXIS, b->vector.lanes);
}

/* ---- sums ---- */

typedef Lv RowSums[MAX_TILE_ROWS][MAX_TILE_VECTORS];

static Lx place(const Blocks *b, const ValueSums *v, Lx row, uint32_t i, Lx column, uint32_t j)
{
	Lx at = times(b, lx_add(b->f, row, number(b, i)), v->width);
	return lx_add(b->f, lx_add(b->f, at, column), number(b, (int64_t)j * b->vector.lanes));
}

/* Adds the products with nv vectors of one key's value. left: columns that there are; 0: all. */
static void add_value(Blocks *b, const ValueSums *v, Lx row, Lx key, Lx column, uint32_t nv,
		      int64_t left, RowSums sum)
{
	LoopFn *f = b->f;
	Eval *e = &b->s->e;
	const uint32_t lanes = b->vector.lanes;
	Lx y[MAX_TILE_VECTORS];
	eval_at(e, b->limits->key, let(b, "at", lx_add(f, b->from, key)));
	for (uint32_t j = 0; j < nv; j++) {
		const int64_t here = left - (int64_t)j * lanes;
		eval_at(e, v->across, lx_add(f, column, number(b, (int64_t)j * lanes)));
		eval_mask(e, left && here < lanes ? lx_mask(f, number(b, here), lanes) : (Lx){0});
		y[j] = let(b, "v", eval_vector(e, v->values));
	}
	eval_mask(e, (Lx){0});
	eval_at(e, v->across, (Lx){0});
	eval_at(e, b->limits->key, (Lx){0});
	for (uint32_t i = 0; i < b->tile.mr; i++) {
		Lx at = lx_add(f, times(b, lx_add(f, row, number(b, i)), v->pitch), key),
		   w = lx_splat(f, load(b, v->weights, at, 1), lanes);
		for (uint32_t j = 0; j < nv; j++)
			ls_set(f, sum[i][j], code_fma(&b->s->code, w, y[j], lx_var(f, sum[i][j])));
	}
}

/* Adds the products with nv vectors of all values of the block, from a column on. */
static void add_columns(Blocks *b, const ValueSums *v, Lx column, uint32_t nv, int64_t left)
{
	LoopFn *f = b->f;
	const uint32_t lanes = b->vector.lanes;
	RowSums sum;
	Lx row = blocks_open_rows(b, b->rows.whole, b->tile.mr);
	for (uint32_t i = 0; i < b->tile.mr; i++)
		for (uint32_t j = 0; j < nv; j++)
			sum[i][j] = ls_var(f, "sum",
					   load(b, v->to, place(b, v, row, i, column, j), lanes));
	Lx whole =
		let(b, "whole", lx_sub(f, b->count, lx_mod(f, b->count, number(b, KEYS_UNROLLED))));
	Lx key = lx_var(f, ls_for(f, "key", number(b, 0), whole, KEYS_UNROLLED));
	for (uint32_t k = 0; k < KEYS_UNROLLED; k++)
		add_value(b, v, row, lx_add(f, key, number(b, k)), column, nv, left, sum);
	ls_end(f);
	key = lx_var(f, ls_for(f, "key", whole, b->count, 1));
	add_value(b, v, row, key, column, nv, left, sum);
	ls_end(f);
	for (uint32_t i = 0; i < b->tile.mr; i++)
		for (uint32_t j = 0; j < nv; j++)
			ls_store(f, v->to, place(b, v, row, i, column, j), lx_var(f, sum[i][j]),
				 (Lx){0});
	ls_end(f);
}

void blocks_add_values(Blocks *b, const ValueSums *v)
{
	LoopFn *f = b->f;
	const int64_t lanes = b->vector.lanes, wide = lanes * b->tile.nv,
		      whole = v->columns - v->columns % wide;
	eval_lanes(&b->s->e, v->across, b->vector.lanes);
	Lx column = lx_var(f, ls_for(f, "column", number(b, 0), number(b, whole), wide));
	add_columns(b, v, column, b->tile.nv, 0);
	ls_end(f);
	if (whole < v->columns)
		add_columns(b, v, number(b, whole),
			    (uint32_t)((v->columns - whole + lanes - 1) / lanes),
			    v->columns - whole);
	eval_lanes(&b->s->e, NO_AXIS, b->vector.lanes);
}
