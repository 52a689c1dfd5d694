/* Tiles of fragments (matrix registers, as of AMX) of the products of attention: two of 16 rows
 * times two of 16 columns, or fewer at the ends. Panels of one vector are as the instructions want
 * them. */
#include "codegen/cpu/attention/blocks.h"

enum { ABREAST = 2 };

/* Returns the groups in a row of a fragment of a. */
static int64_t frag_groups(const Blocks *b)
{
	return b->frags.row->k / b->frags.row->group;
}

void blocks_declare_frags(Blocks *b, const MicroKernel *row, int64_t width)
{
	LoopFn *f = b->f;
	b->frags.row = row;
	if (!row)
		return;
	loop_enter(f);
	b->frags.acc = ls_frag(f, "acc", row->acc, row->rows, row->cols, ABREAST * ABREAST);
	b->frags.a = ls_frag(f, "a", row->a, row->rows, row->k, ABREAST);
	b->frags.b = ls_frag(f, "b", row->b, row->k / row->group, (uint32_t)row->cols * row->group,
			     ABREAST);
	ls_end(f);
	b->frags.last = ls_local(f, "last", DT_u32, (uint64_t)(width * frag_groups(b)));
}

/* A tile: rows of `a`, `pitch` elements apart; vectors of b; sums at `at` of `to`. */
typedef struct {
	LMem a, b, to;
	Lx row, vector[ABREAST], step; /* of b in groups; step: to the next group */
	Lx at, from;                   /* from: the first group of a; none: 0 */
	int64_t pitch, width;
	uint32_t nrow, nv;
} FragTile;

/* Returns memory of groups as that of their elements. */
static LMem elements_of(const Blocks *b, LMem m)
{
	m.dtype = b->frags.row->b;
	return m;
}

static Lx acc_place(const Blocks *b, const FragTile *t, uint32_t i, uint32_t j)
{
	const MicroKernel *row = b->frags.row;
	return lx_add(b->f, t->at, number(b, i * row->rows * t->width + j * row->cols));
}

/* Adds the products of the groups from k on, as many as a fragment has. Operations stand right
 * behind the loads of their operands. */
static void add_step(Blocks *b, const FragTile *t, Lx k)
{
	LoopFn *f = b->f;
	const MicroKernel *row = b->frags.row;
	const int64_t group = row->group;
	for (uint32_t i = 0; i < t->nrow; i++) {
		Lx at = lx_add(f, lx_add(f, t->row, number(b, i * row->rows * t->pitch)),
			       times(b, k, group));
		ls_frag_load(f, lfrag(b->frags.a, i), t->a, at, number(b, t->pitch));
		for (uint32_t j = 0; j < t->nv; j++) {
			Lx from = lx_add(f, t->vector[j], lx_mul(f, k, t->step));
			if (!i)
				ls_frag_load(f, lfrag(b->frags.b, j), elements_of(b, t->b),
					     times(b, from, group), times(b, t->step, group));
			ls_frag_dot(f, FRAG_TILE_BF16, lfrag(b->frags.acc, i * ABREAST + j),
				    lfrag(b->frags.a, i), lfrag(b->frags.b, j));
		}
	}
}

/* Makes the sums of so many groups, or adds to what is there. */
static void make_tile(Blocks *b, const FragTile *t, Lx groups, bool adds)
{
	LoopFn *f = b->f;
	for (uint32_t i = 0; i < t->nrow; i++)
		for (uint32_t j = 0; j < t->nv; j++) {
			const LFrag acc = lfrag(b->frags.acc, i * ABREAST + j);
			if (adds)
				ls_frag_load(f, acc, t->to, acc_place(b, t, i, j),
					     number(b, t->width));
			else
				ls_frag_zero(f, acc);
		}
	Lx k = lx_var(f, ls_for(f, "k", number(b, 0), groups, frag_groups(b)));
	add_step(b, t, k);
	ls_end(f);
	for (uint32_t i = 0; i < t->nrow; i++)
		for (uint32_t j = 0; j < t->nv; j++)
			ls_frag_store(f, t->to, acc_place(b, t, i, j), number(b, t->width),
				      lfrag(b->frags.acc, i * ABREAST + j));
}

/* Makes the tiles of all rows up to `end` of nv vectors, of which the first sum is at `column`. */
static void make_rows(Blocks *b, FragTile *t, Lx end, Lx column, Lx groups, bool adds)
{
	LoopFn *f = b->f;
	const int64_t rows = b->frags.row->rows, wide = ABREAST * rows;
	Lx pairs = let(b, "pairs", lx_sub(f, end, lx_mod(f, end, number(b, wide))));
	for (uint32_t nrow = ABREAST; nrow; nrow--) {
		Lx r = lx_var(f, ls_for(f, "r", nrow == ABREAST ? number(b, 0) : pairs,
					nrow == ABREAST ? pairs : end, nrow * rows));
		t->nrow = nrow;
		Lx at = times(b, r, t->pitch);
		if (t->from.i)
			at = lx_add(f, at, times(b, t->from, b->frags.row->group));
		t->row = let(b, "at", at);
		t->at = let(b, "to", lx_add(f, times(b, r, t->width), column));
		make_tile(b, t, groups, adds);
		ls_end(f);
	}
}

static void find_vectors(Blocks *b, FragTile *t, Lx base, Lx first, Lx stride)
{
	for (uint32_t j = 0; j < t->nv; j++)
		t->vector[j] = let(b, "panel",
				   lx_add(b->f, base,
					  lx_mul(b->f, lx_add(b->f, first, number(b, j)), stride)));
}

/* Returns the tile of rows of `a`, `pitch` elements apart, whose sums have `width` elements a
 * row. */
static FragTile tile_of(LMem a, int64_t pitch, const BlockOperand *operand, LMem to, int64_t width)
{
	return (FragTile){.a = a,
			  .b = operand->mem,
			  .to = to,
			  .step = operand->step,
			  .pitch = pitch,
			  .width = width};
}

/* Makes the scores of nv vectors of keys, from the key `key` of the block on. */
static void make_scores(Blocks *b, const ScoreTiles *s, Lx key, uint32_t nv)
{
	LoopFn *f = b->f;
	FragTile t = tile_of(s->rows, s->depth, &s->keys, s->to, s->pitch);
	t.nv = nv;
	Lx panel = lx_div(f, lx_add(f, b->from, key), number(b, b->vector.lanes));
	find_vectors(b, &t, s->keys.base, panel, s->keys.vector);
	make_rows(b, &t, b->rows.whole, key, number(b, s->steps), false);
}

void blocks_make_scores_by_frags(Blocks *b, const ScoreTiles *s)
{
	LoopFn *f = b->f;
	const int64_t lanes = b->vector.lanes, wide = ABREAST * lanes;
	Lx end = let(b, "end", lx_sub(f, b->count, lx_mod(f, b->count, number(b, wide))));
	for (uint32_t nv = ABREAST; nv; nv--) {
		Lx key = lx_var(f, ls_for(f, "key", nv == ABREAST ? number(b, 0) : end,
					  nv == ABREAST ? end : b->count, nv * lanes));
		make_scores(b, s, key, nv);
		ls_end(f);
	}
}

/* Adds the products of so many groups, from the weight of group `from` on, to all sums. */
static void add_groups(Blocks *b, const SumTiles *s, FragTile *t, Lx base, Lx panel, Lx groups)
{
	LoopFn *f = b->f;
	const int64_t lanes = b->vector.lanes, vectors = s->width / lanes;
	for (int64_t j = 0; j < vectors; j += ABREAST) {
		Lx column = number(b, j * lanes);
		t->nv = vectors - j < ABREAST ? 1 : ABREAST;
		find_vectors(b, t, base, number(b, j), panel);
		make_rows(b, t, s->end, s->base.i ? lx_add(f, s->base, column) : column, groups,
			  true);
	}
}

/* Copies the last groups of the operand, from offset `base` on, to frags.last, and zeros behind
 * them. */
static void copy_last(Blocks *b, const SumTiles *s, Lx base, Lx groups)
{
	LoopFn *f = b->f;
	const int64_t lanes = b->vector.lanes, vectors = s->width / lanes, all = frag_groups(b);
	const LType u32 = {DT_u32, b->vector.lanes};
	Lx k = lx_var(f, ls_for(f, "k", number(b, 0), number(b, all), 1));
	for (int64_t j = 0; j < vectors; j++) {
		Lx to = times(b, lx_add(f, k, number(b, j * all)), lanes),
		   from = lx_add(f, lx_add(f, base, lx_mul(f, k, s->operand.step)),
				 lx_mul(f, number(b, j), s->operand.vector));
		ls_if(f, lx_cmp(f, SC_lt, k, groups));
		ls_store(f, b->frags.last, to,
			 lx_var(f, ls_load_in_order(f, "b", s->operand.mem, from, u32, (Lx){0})),
			 (Lx){0});
		ls_else(f);
		ls_store(f, b->frags.last, to, lx_int_of(f, u32, 0), (Lx){0});
		ls_end(f);
	}
	ls_end(f);
}

/* Sets the weights behind the last groups, from group `from` on, to 0: those of a vector are. */
static void clear_last(Blocks *b, const SumTiles *s, Lx from, Lx groups)
{
	LoopFn *f = b->f;
	const MicroKernel *row = b->frags.row;
	const int64_t lanes = b->vector.lanes;
	ls_if(f, lx_cmp(f, SC_le, times(b, groups, row->group), number(b, lanes)));
	Lx r = blocks_open_rows(b, s->end, 1),
	   at = lx_add(f, times(b, r, s->pitch), times(b, from, row->group));
	LMem groups_of_weights = s->weights;
	groups_of_weights.dtype = DT_u32;
	ls_store(f, groups_of_weights,
		 lx_div(f, lx_add(f, at, number(b, lanes)), number(b, row->group)),
		 lx_int_of(f, (LType){DT_u32, (uint32_t)(lanes / row->group)}, 0), (Lx){0});
	ls_end(f);
	ls_end(f);
}

/* Adds products by whole fragments: zeros stand behind the last groups, so that a sum does not
 * depend on how many keys follow of weight 0. */
void blocks_add_products_by_frags(Blocks *b, const SumTiles *s)
{
	LoopFn *f = b->f;
	FragTile t = tile_of(s->weights, s->pitch, &s->operand, s->to, s->width);
	Lx rest = let(b, "rest", lx_mod(f, s->steps, number(b, frag_groups(b)))),
	   whole = let(b, "whole", lx_sub(f, s->steps, rest)),
	   base = let(b, "base", lx_add(f, s->operand.base, lx_mul(f, s->first, s->operand.step)));
	add_groups(b, s, &t, base, s->operand.vector, whole);
	ls_if(f, lx_cmp(f, SC_gt, rest, number(b, 0)));
	copy_last(b, s, lx_add(f, base, lx_mul(f, whole, s->operand.step)), rest);
	clear_last(b, s, whole, rest);
	t.b = b->frags.last;
	t.from = whole;
	t.step = number(b, b->vector.lanes);
	add_groups(b, s, &t, number(b, 0), number(b, frag_groups(b) * b->vector.lanes),
		   number(b, frag_groups(b)));
	ls_end(f);
}
