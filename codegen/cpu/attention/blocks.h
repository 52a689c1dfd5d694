/* Private to the schedules of attention and of sums with weights: blocks of rows and keys. */
#ifndef WEFT_CODEGEN_CPU_ATTENTION_BLOCKS_H
#define WEFT_CODEGEN_CPU_ATTENTION_BLOCKS_H

#include "codegen/cpu/cpu.h"
#include "codegen/plan/attention/attention.h"

/* A task's block of rows, and of keys. Rows past the end repeat the last one, so that every tile of
 * rows is whole. */
typedef struct {
	Cpu *s;
	LoopFn *f;
	const Nest *nest;
	const MicroKernel *row; /* how products are computed */
	const KeyLimits *limits;
	LType vector; /* of sums */
	TileSize tile;
	struct {
		const MicroKernel
			*row; /* how whole steps of products are computed; NULL: by `row` */
		Lv acc, a, b;
		LMem last; /* the last groups of an operand */
	} frags;
	struct {
		Lx first, n, whole; /* the block's first row, its rows, and those of whole tiles */
	} rows;
	struct {
		Lx lo, hi;
	} inside;       /* keys that no bound leaves out for any row of the block; none: there is no
			   bound */
	Lx from, count; /* the block of keys */
	Lx end;         /* where keys end; none: where their axis ends */
	int64_t most;   /* its keys, unless the keys end */
} Blocks;

static inline Lx number(const Blocks *b, int64_t v)
{
	return lx_int(b->f, v);
}

static inline Lx times(const Blocks *b, Lx x, int64_t n)
{
	return lx_mul(b->f, x, number(b, n));
}

static inline Lx let(Blocks *b, const char *name, Lx x)
{
	return eval_let(&b->s->e, name, x);
}

static inline Lx load(const Blocks *b, LMem m, Lx at, uint32_t lanes)
{
	return lx_var(b->f, ls_load(b->f, "x", m, at, (LType){DT_f32, lanes}, (Lx){0}));
}

/* Stores a vector of what products multiply: an element of a dtype whose products take numbers
 * below the normal ones as 0 is stored so. */
void blocks_store(Blocks *, LMem, Lx at, Lx x, Lx mask);
/* Returns x without its rounding to the dtype that the products multiply, which storing it does. */
Kx blocks_unrounded(const Blocks *, Kx x);

/* ---- rows and keys (blocks.c) ---- */

/* Makes the block that of the rows from `first` on, of so many that there are, `all`. */
void blocks_set_rows(Blocks *, Lx first, Lx all, int64_t most);
/* Makes the block that of the keys from `from` on. */
void blocks_set_keys(Blocks *, Lx from);
/* Gives the row axis the value of row r of the block; clamp: or of the last row. */
void blocks_go_to_row(Blocks *, Lx r, bool clamp);
void blocks_leave_row(Blocks *);
/* Opens a loop over rows of the block, and returns its variable. */
Lx blocks_open_rows(Blocks *, Lx end, int64_t step);
/* Writes the loop over the keys of the block, by vectors. */
void blocks_for_keys(Blocks *, void (*body)(Cpu *, void *), void *data);
/* Sets *lo and *hi to the keys between which those of the block's rows lie that no condition leaves
 * out. */
void blocks_bound_keys(Blocks *, Lx *lo, Lx *hi);
/* Returns whether no bound leaves out a key of the block for any of its rows; none if there is no
 * bound. Stands behind blocks_bound_keys. */
Lx blocks_are_inside(Blocks *);
/* Makes the comparisons of bounds what they are in such a block, until the innermost open block of
 * statements is closed. */
void blocks_assume_inside(Blocks *);
/* Opens a branch for blocks of which some row sees a key. Rows are asked one by one, until one
 * does. */
void blocks_open_if_seen(Blocks *);
/* Returns which keys in the lanes the row's masks let through. */
Lx blocks_seen(Blocks *);
/* Sets the batch axes to those of member t. */
void blocks_go_to_member(Blocks *, const uint32_t *axis, uint32_t n, Lx t);

/* ---- keys that masks let through (seen.c) ---- */

/* Stores at 2 * task, of i64, the first key that the block's rows see, and that behind the last
 * one. */
void blocks_find_seen(Blocks *, LMem to, Lx task);
/* Narrows the keys [*lo, *hi) to those that are stored for that block of rows, of so many, of the
 * member at hand. */
void blocks_bound_by_seen(Blocks *, LMem from, Lx block, Sym blocks, Lx *lo, Lx *hi);

/* ---- register tiles (tiles.c) ---- */

/* An operand whose steps run along one axis, and vectors across another. */
typedef struct {
	LMem mem;
	Lx base, step; /* where the member of the batch begins; elements to the next step */
	Lx vector;     /* elements to the next vector */
} BlockOperand;

/* Returns the operand of a load. panels: where it was copied to; NULL: it is read in place. */
BlockOperand blocks_operand(Blocks *, Kx load, uint32_t along, uint32_t across,
			    const Panels *panels);

/* Products of rows of a local array, [row][depth], and keys in panels. */
typedef struct {
	LMem rows, to; /* to: [row][key] */
	BlockOperand keys;
	int64_t depth, pitch; /* from a row of `rows`, of `to`, to the next */
	int64_t steps;
} ScoreTiles;
/* Makes the scores of all rows and keys of the block. */
void blocks_make_scores(Blocks *, const ScoreTiles *);

/* Sums of products of weights, a local array, and an operand. Element k of sum i is multiplied by
 * weight i * pitch + k * stride. */
typedef struct {
	LMem weights, to;
	int64_t pitch, stride;
	BlockOperand operand;
	Lx first, steps; /* of the operand: steps count elements, or groups of these */
	Lx end;          /* sums, of whole tiles */
	Lx base;         /* where the first sum lies in `to`; none: at its beginning */
	int64_t width;   /* elements of `to` from one sum to the next: whole vectors */
	bool apart;      /* what is there is added to the sums; else they go on from it */
} SumTiles;
void blocks_add_products(Blocks *, const SumTiles *);

/* ---- tiles of fragments (frags.c) ---- */

/* Declares the fragments of a row, by which products are computed from here on, with sums of at
 * most `width` elements; NULL: there are none. */
void blocks_declare_frags(Blocks *, const MicroKernel *, int64_t width);
/* Does as blocks_make_scores, of whole steps of the row. */
void blocks_make_scores_by_frags(Blocks *, const ScoreTiles *);
/* Adds products to sums that go on from what is there. */
void blocks_add_products_by_frags(Blocks *, const SumTiles *);

/* ---- few rows (few.c) ---- */

enum { MAX_ABREAST = 4, MAX_DOT_GROUPS = 64 };

/* Dot products of rows of a local array, [row][depth], which is 0 behind the last step, and keys in
 * place. */
typedef struct {
	LMem rows, to, parts; /* to: [row][key]; parts: room for as many vectors as lanes / abreast
				 in each row of a tile */
	Kx keys;
	uint32_t along;       /* their axis */
	uint32_t abreast;     /* keys whose sums are made together */
	int64_t depth, pitch; /* from a row of `rows`, of `to`, to the next */
	int64_t steps;
} KeyDots;
/* Makes the scores of all rows and keys of the block; behind the last key, those of the last. */
void blocks_make_dots(Blocks *, const KeyDots *);

/* Sums of products of weights, a local array [row][key], and values in place. */
typedef struct {
	LMem weights, to; /* to: [row][column] */
	Kx values;
	uint32_t across;      /* their axis */
	int64_t pitch, width; /* from a row of weights, of `to`, to the next */
	int64_t columns;
} ValueSums;
void blocks_add_values(Blocks *, const ValueSums *);

#endif
