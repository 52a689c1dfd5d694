/* Plans of contractions. */
#ifndef WEFT_CODEGEN_PLAN_CONTRACT_H
#define WEFT_CODEGEN_PLAN_CONTRACT_H

#include "codegen/plan/axes.h"
#include "codegen/plan/predict.h"
#include "codegen/plan/sums.h"
#include "codegen/plan/tuning.h"

enum {
	MAX_FRAG_ROWS = 2,    /* fragments of rows, and of columns, in a tile */
	MAX_BLOCK_ROWS = 240, /* bounds the tables of rows in local memory; the machine chooses
				 below */
	MAX_PANEL = 1 << 16,  /* bytes of local memory */
	MAX_BYTES = 1 << 17,  /* of a tile's columns (OperandB.bytes) */
	FEWEST_TILES = 4, /* of rows, for which bytes of halves pay where vectors are multiplied */
	MAX_WINDOWS = 8,
	MAX_ABREAST_COLUMNS = 8, /* of b read along k: bounds the code of a tile */
	MAX_DOT_LANES = 16,      /* where b is read along k */
	MAX_HELD = 24,           /* vectors of rows in registers: bounds the code of a tile */
	MAX_TOGETHER = 8,        /* rows of a tile whose epilogues are written in turn */
	MAX_FIELDS = 16,         /* of a word: bounds the code of a step */
	UNROLL_K = 4 /* steps of k in a round, and chains at most: bounds the code of a tile */
};

/* Times as many chains as latency takes keep units busy where every product waits for two loads. */
#define DOT_SLACK 1.1

/* The axes of a contraction: m (rows) are in operand a only, n (columns) in b only, batch axes in
 * both; k axes are summed. */
typedef struct {
	uint32_t n; /* the column axis that runs over lanes */
	uint32_t m[MAX_AXES], nm, batch[MAX_AXES], nbatch, k[MAX_AXES], nk;
	uint32_t nblock; /* with Contraction.blocks, or DecodedB.factor: the first axes of k[],
			    which number blocks; the sums of a block are complete when the axes
			    behind them are */
	uint32_t half;   /* the axis, not in k[], that numbers the halves of b's bytes, or the
			    fields of b's words (DecodedB); NO_AXIS: whole elements are
			    multiplied */
	bool looked_up;  /* the halves number bytes of a table (Contraction.table) */
	uint64_t table[2];
	uint32_t nfield; /* its extent; else 1. A step of k has so many products */
	const MicroKernel *row; /* how steps are multiplied */
	uint32_t grouped;       /* with groups: the summed axis whose groups k[nk - 1] counts */
	Sym whole_groups;       /* those that are complete */
	uint32_t step;          /* of fragments: groups in a step of k; of bytes of halves
				   (OperandB): groups in a block */
} ContractAxes;

/* An operand in panels: [batch][panel][k...][width]; with groups, of u32 that are groups. turned:
 * of rows of a with the groups of k side by side, [batch][panel][width][k], for fragments. */
typedef struct {
	Kx load;
	bool turned;
	uint32_t axis;       /* the axis of columns, or of rows */
	int64_t step, width; /* step: the columns (rows) from one panel to the next; width: of a
				panel, in whole vectors; those past the step are not read */
	Sym stride, offset;  /* stride: elements from one panel to the next; offset: of the steps of
				k and the batch */
	int64_t unit;        /* elements of the memory in an element of a panel: of a packed
				constant the group, else 1 */
	Sym count, numel;    /* count: panels of one member of the batch; numel: elements of all
				panels */
} Panels;

/* A constant that differs by column and by block, which is packed as b is:
 * [panel][block...][column]. The stage `blocks` reads it. */
typedef struct {
	Kx load;
	Panels panels;
	Layout layout;
} PanelLoad;

enum { MAX_SCALES = 4 };

/* With Contraction.decoded: how what is multiplied is computed of b, which is packed as it is
 * stored. `slab`: once for all tiles of rows of a block, of a panel's columns and a block of k's
 * steps, into a local array; else on the vectors right before they are multiplied, by each tile of
 * rows. Loads beside b's that differ by column are packed as b is, with the summed axes that they
 * have: [panel][k...][column]. */
typedef struct {
	Kx value;  /* none: b is multiplied as it is loaded */
	Kx factor; /* what sums of products with `value` are multiplied by when the axes from
		      k[ContractAxes.nblock] on are summed, along which it does not differ; none:
		      nothing. Not with slabs */
	bool slab;
	PanelLoad beside[MAX_SCALES];
	uint32_t nbeside;
} DecodedB;

/* With Contraction.blocks: how functions of sums of blocks are added. */
typedef struct {
	uint32_t stage; /* Contraction.blocks; 0: nothing of this is used */
	Kx begun;       /* in its value: a block's sum plus `start`, a number of each row, with
			   which accumulators of vectors begin; none: they begin with 0 */
	Kx start;
	PanelLoad scale[MAX_SCALES];
	uint32_t nscale;
} BlockSums;

/* Summed axes of which an operand's elements follow each other as if they were one axis: axis[0]
 * has stride 1, each further one the product of the extents before it. `inner` is that product of
 * the last one, the stride of the outermost axis. n 0: there are none. */
typedef struct {
	uint32_t axis[MAX_AXES], n;
	int64_t inner;
} UnitAxes;

/* A phase that copies an operand into panels. */
typedef struct CopyPlan {
	const Nest *nest; /* of the phase */
	ContractAxes axes;
	Panels panels;
	UnitAxes unit;      /* along which squares are transposed; none: columns are copied */
	uint32_t loop[MAX_AXES], nloop; /* the other summed axes, that of the greatest stride
					   first: what lies in one line is read together */
	uint32_t cut; /* the summed axis of which a task has a part: that of the greatest stride */
	int64_t per, group; /* per: steps of that axis in a task; group: its panels */
	Sym parts, groups;  /* tasks by part of the axis, and by group of panels */
	Sym ntasks;
	LType vector;       /* of what is stored */
} CopyPlan;

/* How b is read. */
typedef struct {
	Kx load;
	enum {
		B_IN_PLACE,
		B_GATHERED, /* columns have another stride than 1: panels are gathered into a local
			       array */
		B_PACKED,   /* a constant, packed into panels when the model is compiled */
		B_COPIED,   /* columns have another stride than 1: an earlier phase copies b into
			       panels */
		B_BROUGHT,  /* columns have stride 1, but the stride of k causes cache conflicts: an
			       earlier phase copies b into panels */
		B_ALONG /* read in place along the last summed axis, which has stride 1 in both
			   operands: lanes are its steps, and each sum is a dot product */
	} access;
	Layout layout;    /* B_PACKED: the constant's layout */
	uint32_t vectors; /* with panels: vectors of columns in a panel */
	Panels panels;
	DecodedB decoded; /* B_PACKED */
	bool bytes; /* halves of bytes become bytes in a local array, for all tiles of rows of a
		       block */
	int64_t gathered; /* B_GATHERED, slabs, and bytes of halves: elements of the local array */
	uint32_t abreast; /* B_ALONG: columns in a group, a power of two, at most the lanes */
	bool in_turn;     /* B_ALONG: the columns of a group are read one after the other, and not
			     step by step */
	uint32_t chains;  /* B_ALONG, in turn: accumulators of each sum; else 1 */
	uint32_t held;    /* B_ALONG, in turn: vectors of each row of a, which registers hold while
			     all columns pass by; 0: rows are loaded again for each column */
} OperandB;

/* Rows of a that fragments are loaded from in place. A *run* is a sequence of places in a at one
 * distance: the rows of axes.m[first] and of the row axes behind it. Of the axes behind
 * axes.m[first] one may have more places than rows, as the lines of an image with a border: what is
 * computed of such places is not stored. A run is cut into fragments of equally many places; the
 * last one ends where the run ends, so that two fragments may share places. */
typedef struct {
	bool used;
	uint32_t first;
	Sym wide[MAX_AXES]; /* by row axis behind axes.m[first]: its places */
	Sym distance;       /* elements from one place to the next */
	Sym length;         /* places in a run, from the first row to the last */
	Sym fragments;      /* in a run */
	uint32_t rows;      /* places in a fragment */
} Runs;

/* How a is read: in place, or from panels of a tile's rows that an earlier phase copies. Fragments
 * that are not loaded in place (runs) pass through a local array. */
typedef struct {
	Kx load;
	bool apart; /* groups are joined where they are copied: not in one piece in memory */
	bool copied, turned; /* turned: copied by Panels.turned, which are read as if in place */
	Runs runs;
	Panels panels;
} OperandA;

/* A dimension of a with a border of zeros, over which a window slides: a is read at the index
 * coef * row + step * k + start of the dimension, and is 0 where the index is outside of [lo,
 * hi). */
typedef struct {
	uint32_t k, row;    /* axes of the nest: the summed axis (the tap), and the row axis */
	int64_t step, coef; /* constants above 0 */
	Sym start;          /* contains neither axis */
	Sym lo, hi;         /* Buffer.inner_lo, inner_hi of the dimension */
} Window;

typedef struct {
	uint32_t n;
	Window at[MAX_WINDOWS];
} Windows;

typedef struct {
	uint32_t mr, nv; /* rows, vectors */
} TileSize;

typedef struct {
	int64_t rows, cols; /* cols 0: all columns */
} BlockSize;

/* Blocking of k for long sums: all tiles of a block add `steps` steps of one summed axis before the
 * next steps begin, so that panels of both operands stay in the cache. The sums lie in local
 * memory. */
typedef struct {
	bool used;
	uint32_t k;    /* the index of the summed axis; axes before it are loops outside, too */
	int64_t steps; /* of it */
	int64_t inner; /* the product of the axes behind it */
} KBlock;

typedef struct {
	SumPlan cuts; /* chunks of the summed axes; with blocks of k, of the loops over these
			 blocks */
	Sym terms;    /* of a sum */
	int64_t many; /* sums of more terms go by chunks; 0: all do */
	LType result; /* of the sums when they are complete */
	bool held;    /* what is added of blocks is in registers, beside accumulators; else in local
			 memory */
	BlockSums blocks;
} ChunkPlan;

typedef struct {
	uint32_t n;
	const Kx *load;
} LoadList;

/* How the code of tiles with so many vectors is written. */
typedef struct {
	uint32_t nv;     /* 0: there are no such tiles */
	int64_t edge;    /* columns of the last vector that are there; 0: all */
	uint32_t ways;   /* accumulators of each element. Small tiles need several, because an
			    addition waits for the one before */
	bool tight;      /* registers do not hold the tile and the vectors of all steps of a
			    round */
	bool looped;     /* the epilogue is a loop over a copy of the tile */
	uint32_t unroll; /* steps of the innermost summed axis in a round */
	uint32_t together; /* of fragments: rows whose epilogues are written in turn */
	uint32_t late; /* of fragments: rows of the tile before that are finished at each step; 0:
			  a tile is finished before the next one begins */
	int64_t ahead;   /* rows of the next panels that one round of `unroll` steps fetches; 0:
			    nothing */
} TileCode;

/* Tiles of columns: whole ones, and what is left. */
typedef struct {
	TileCode whole, rest;
	bool symbolic; /* the rest is a loop over vectors, the last one masked */
	int64_t turn;  /* of fragments: whole tiles that follow one another for each tile of rows;
			  0: all tiles of rows follow one another for each tile of columns */
} ColumnTiles;

/* Tasks: blocks of rows, times blocks of columns, times the batch. */
typedef struct {
	Sym rows, cols, n;
} ContractTasks;

enum { MAX_COPIES = 2 };

typedef struct ContractPlan {
	const Nest *nest; /* axes are merged, loads read panels */
	LType vector;     /* of products and sums */
	ContractAxes axes;
	OperandA a;
	OperandB b;
	const CopyPlan *copy[MAX_COPIES]; /* phases before, in this order; NULL: no further one */
	Sym rows;                         /* the product of the row axes; with runs: the places of
					     all fragments */
	TileSize tile;                    /* the register tile */
	BlockSize block;                  /* the cache block, one task */
	KBlock k_block;
	ChunkPlan sums;
	Windows windows;
	LoadList fetched; /* operands of the epilogue that tiles fetch while they add up */
	ColumnTiles columns;
	ContractTasks tasks;
	KernelCost cost;
} ContractPlan;

/* Returns the elements of a vector of the products' dtype; 1 on a target without vectors. */
static inline uint32_t contract_lanes(const PlanInput *in)
{
	return tuning_lanes(in->target, in->contraction.dtype);
}

/* Returns the bytes of an element of the products. */
static inline int64_t contract_size(const PlanInput *in)
{
	return dtype_size(in->contraction.dtype);
}

/* Returns the type of the vectors of b that are multiplied: that of the sums, or u32 if the
 * micro-kernel multiplies groups. */
static inline LType contract_b_type(const ContractPlan *c)
{
	return (LType){micro_groups(c->axes.row) ? DT_u32 : c->vector.dtype, c->vector.lanes};
}

/* Whether functions of sums of blocks are added: of a stage, or products with a factor. */
static inline bool contract_has_blocks(const ContractPlan *c)
{
	return c->sums.blocks.stage || (c->b.decoded.factor.i && c->axes.nblock);
}

/* Whether an earlier phase copies b into panels. */
static inline bool is_copied(const OperandB *b)
{
	return b->access == B_COPIED || b->access == B_BROUGHT;
}

/* Whether b lies in panels in memory when the tiles read it: packed or copied. */
static inline bool has_panels(const OperandB *b)
{
	return b->access == B_PACKED || is_copied(b);
}

/* ---- planning; the nest of the input is the one at hand. After axes are merged, sets of axes in
 * the input's shape mean nothing ---- */

/* Whether the last summed axis may have steps behind its last whole group (contract.c). False if
 * the micro-kernel multiplies no groups. */
bool contract_has_tail(const Nest *, const ContractAxes *);

/* contract_operand.c */

/* Whether an offset is linear in every axis of the nest. */
MUST_LOOK bool contract_linear(const PlanInput *, Sym offset);
/* Decides how b, the operand of that load, is read, before axes are merged: fills in *b, but for
 * b->gathered, and returns taken(). Refuses if no way fits: b is read at an index that is not
 * linear, or, without vectors, its panels may be larger than a local array. */
MUST_LOOK Refusal contract_choose_b(const PlanInput *, Kx load, const ContractAxes *, OperandB *);
/* Does the same for the plan that reads b along k (B_ALONG). Refuses if steps of the last summed
 * axis, or its groups, are no neighbours in an operand, if a group is not whole, if b is a
 * constant, which is packed, and without vectors. */
MUST_LOOK Refusal contract_choose_along(const PlanInput *, Kx a, Kx b, const ContractAxes *,
					OperandB *);
/* Fills in p->sums.blocks.scale and nscale, before axes are merged: constants that the stage
 * `blocks` reads, where b is packed. */
void contract_pack_scales(const PlanInput *, ContractPlan *p);
/* Fills in p->b.decoded.factor, and axes.nblock, for few rows, where what is decoded is a product
 * of which a factor does not differ along the last summed axes. */
void contract_find_factor(const PlanInput *, ContractPlan *p);
/* Fills in p->b.decoded.beside and nbeside in the same way: constants of which b is decoded. */
void contract_pack_beside(const PlanInput *, ContractPlan *p);
/* Places the panels of b and of the loads beside it, where b is decoded, when axes are merged. */
void contract_place_decoded(const PlanInput *, ContractPlan *p);
/* Returns taken(); or refuses, for threads of a block, a plan that gathers panels of b where the
 * steps of k are neighbours in both operands. axes, a and b are filled in. */
MUST_LOOK Refusal contract_panels_do_not_pay(const PlanInput *, const ContractPlan *);
/* Decides whether an earlier phase copies a into panels of the tile's rows, when axes, tile, block
 * and windows are known; if so, sets *p to the panels and returns true, else leaves *p as it is. */
MUST_LOOK bool contract_copies_a(const PlanInput *, const ContractPlan *, Panels *);
/* Whether an earlier phase copies a for fragments, because the steps of its groups are apart; if
 * so, sets *p to the panels, which are turned. */
MUST_LOOK bool contract_turns_a(const PlanInput *, const ContractPlan *, Panels *);
/* Whether the kernel reads every element of the buffer that the load reads, before axes are merged:
 * no other kernel of its phase writes to the buffer, and all of it has been written. */
MUST_LOOK bool contract_reads_all(const PlanInput *, Kx load);
/* Returns the runs by which fragments are loaded from a in place, when axes are merged; unused runs
 * if rows are too few or too far apart. all: see contract_reads_all. */
Runs contract_find_runs(const PlanInput *, const ContractPlan *, bool all);
/* Returns the number of steps of k at the sizes in->at. */
double contract_steps(const PlanInput *, const ContractAxes *);
/* Returns the number of members of the batch at the sizes in->at. */
double contract_members(const PlanInput *, const ContractAxes *);
/* Returns an extent, or, if it depends on the round of a loop around the kernel, its largest
 * value. */
Sym contract_most(const PlanInput *, Sym extent);
/* Returns the upper bound of the number of steps of k; 0 if there is no bound, or one above
 * MAX_PANEL. */
int64_t contract_k_bound(const PlanInput *, const ContractAxes *);
/* Returns the summed axis along which the operand has stride 1, and, if that axis has less than a
 * vector of elements at hint sizes, the summed axes that continue it: a copy transposes squares
 * along them in registers. Returns none if all of them together are less than a vector. */
UnitAxes contract_unit_axes(const PlanInput *, Kx load, const ContractAxes *);
/* Adds the members of the batch to panels of one member: stride, count, the offset of the steps of
 * k, and the elements of one panel (numel) are filled in. */
void contract_place_members(const PlanInput *, const ContractAxes *, Panels *);
/* Returns the panels of an operand that has these columns (rows, of a):
 * [batch][panel][k...][width], of `unit` elements. */
Panels contract_place_panels(const PlanInput *, Kx load, const ContractAxes *, uint32_t axis,
			     int64_t step, int64_t width, int64_t unit);
/* Returns the plan of the phase that copies the operand of p->load into panels, in the nest's
 * arena. */
const CopyPlan *contract_plan_copy(const PlanInput *, const Panels *, const ContractAxes *);

/* Returns the largest power of two that divides the operand's strides, in bytes at hint sizes,
 * along all summed axes; at most 2^40. */
double contract_spacing(const PlanInput *, Kx load, const ContractAxes *);

/* Returns the cycles that one core is predicted to take for all phases of a complete plan together,
 * at the sizes in->at (contract_cycles.c). */
double contract_cycles(const PlanInput *, const ContractPlan *);
/* Returns the cycles that one core takes for a phase that copies an operand, at in->at. */
double contract_copy_cycles(const PlanInput *, const CopyPlan *);
/* Adds what a group of columns of b that is read along k keeps busy, of so many rows of a, the
 * operand of that load: all steps of k, without adding up lanes. times: of such groups. */
void contract_count_dots(const PlanInput *, const ContractAxes *, Kx a, const OperandB *,
			 uint32_t rows, double times, Busy *);
/* Returns the cycles in which a group of columns of b that is read along k (B_ALONG) comes from
 * memory in order; 0 if b stays in the caches. */
double contract_group_memory(const PlanInput *, const ContractAxes *, const OperandB *);
/* Whether a group of columns is read as several streams of a page. Processors fetch each stream
 * ahead as far as its page goes, but mix up those of one page: it takes twice as long. */
bool contract_mixes_streams(const PlanInput *, const ContractAxes *, const OperandB *);
/* Returns the additional cycles of address translation where each step of k of an operand that is
 * read in place lies on a page of its own. */
double contract_page_cycles(const PlanInput *, const ContractPlan *);

/* contract_block.c: the register tile, the cache block, blocks of k. */

/* Returns the tile that is predicted to take the least time for all rows and columns, of those that
 * fit the registers; with panels, of as many vectors as a multiple of a panel's, or as there
 * are. */
TileSize contract_choose_tile(const PlanInput *, const ContractAxes *, const OperandB *);
/* Returns the tile that is predicted to take the least time for b that is read along k (B_ALONG),
 * and sets abreast, in_turn, chains and held of *b. a: the load of the other operand. */
TileSize contract_choose_dots(const PlanInput *, const ContractAxes *, Kx a, OperandB *);
/* Returns how many elements of operand a, read by `load`, a row adds to a cache block: its steps of
 * k, of which the taps of a convolution count together as one and a half, because neighbouring rows
 * share them. Before axes are merged. */
int64_t contract_row_elements(const PlanInput *, Kx load, const ContractAxes *);
/* Returns the number of rows that tiles and blocks are made for: the hint, or more, where operands
 * are rounded and rows are a symbol. */
int64_t contract_planned_rows(const PlanInput *, Sym rows);
/* Whether the registers hold, beside a tile's accumulators, as many sums of functions of blocks. */
bool contract_holds_sums(const PlanInput *, TileSize);
/* Returns the number of groups in a step of fragments: as many as a fragment has, or fewer, so that
 * steps divide the last summed axis. */
uint32_t contract_choose_step(const PlanInput *, const ContractAxes *);
/* Fills in block, k_block, sums. axes, b, rows, step, tile and windows are filled in. row_elements:
 * see contract_row_elements. */
void contract_choose_blocks(const PlanInput *, ContractPlan *, int64_t row_elements);
/* Fills in columns, when all sizes are chosen. */
void contract_choose_columns(const PlanInput *, ContractPlan *);
/* Returns the product of the extents of n axes (contract.c). */
Sym contract_product(const PlanInput *, const uint32_t *axis, uint32_t n);

/* Returns the windows over a, the operand of that load, that slide along a dimension with a border
 * of zeros; of more than MAX_WINDOWS the first ones. Before axes are merged. */
Windows contract_find_windows(const PlanInput *, Kx a, const ContractAxes *);
/* Returns those of the windows in whose borders tiles leave out taps, after axes are merged; n 0 if
 * all together save less than a sixteenth of the steps at hint sizes. */
Windows contract_useful_windows(const PlanInput *, const ContractAxes *, TileSize, const Windows *);

#endif
