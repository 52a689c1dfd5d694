/* Plans of contractions. */
#ifndef WEFT_CODEGEN_PLAN_CONTRACT_H
#define WEFT_CODEGEN_PLAN_CONTRACT_H

#include "codegen/plan/axes.h"
#include "codegen/plan/predict.h"
#include "codegen/plan/sums.h"
#include "codegen/plan/tuning.h"

enum {
	MAX_BLOCK_ROWS = 240, /* bounds the tables of rows in local memory; the machine chooses
				 below */
	MAX_PANEL = 1 << 16,  /* bytes of local memory */
	MAX_WINDOWS = 8,
	UNROLL_K = 4 /* steps of k in a round, and chains at most: bounds the code of a tile */
};

/* The axes of a contraction: m (rows) are in operand a only, n (columns) in b only, batch axes in
 * both; k axes are summed. */
typedef struct {
	uint32_t n; /* the column axis that runs over lanes */
	uint32_t m[MAX_AXES], nm, batch[MAX_AXES], nbatch, k[MAX_AXES], nk;
} ContractAxes;

/* An operand in panels: [batch][panel][k...][width]. */
typedef struct {
	Kx load;
	uint32_t axis;       /* the axis of columns, or of rows */
	int64_t step, width; /* step: the columns (rows) from one panel to the next; width: of a
				panel, in whole vectors; those past the step are not read */
	Sym stride, offset;  /* stride: elements from one panel to the next; offset: of the steps of
				k and the batch */
	Sym count, numel;    /* count: panels of one member of the batch; numel: elements of all
				panels */
} Panels;

/* A phase that copies an operand into panels. */
typedef struct {
	const Nest *nest; /* of the phase */
	ContractAxes axes;
	Panels panels;
	uint32_t along;     /* the summed axis with unit stride, or NO_AXIS */
	uint32_t cut;       /* the summed axis of which a task has a part */
	int64_t per, group; /* per: steps of that axis in a task; group: its panels */
	Sym parts, groups;  /* tasks by part of the axis, and by group of panels */
	Sym ntasks;
	LType vector;
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
		B_BROUGHT   /* columns have stride 1, but the stride of k causes cache conflicts: an
			       earlier phase copies b into panels */
	} access;
	Layout layout;    /* B_PACKED: the constant's layout */
	uint32_t vectors; /* with panels: vectors of columns in a panel */
	Panels panels;
	int64_t gathered; /* B_GATHERED: elements of the local array */
} OperandB;

/* How a is read: in place, or from panels of a tile's rows that an earlier phase copies. */
typedef struct {
	Kx load;
	bool copied;
	Panels panels;
} OperandA;

/* A dimension of a with a border of zeros, over which a window slides (contract_border.c). */
typedef struct {
	uint32_t k, row; /* the summed axis (the tap), and the row axis */
	int64_t step, coef;
	Sym start, lo, hi;
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
	int64_t ahead;   /* rows of the next panels that one round fetches; 0: nothing */
} TileCode;

/* Tiles of columns: whole ones, and what is left. */
typedef struct {
	TileCode whole, rest;
	bool symbolic; /* the rest is a loop over vectors, the last one masked */
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
	Sym rows;                         /* the product of the row axes */
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

/* The elements of a vector; the bytes of an element. */
static inline uint32_t contract_lanes(const PlanInput *in)
{
	return tuning_lanes(in->target, in->shape.dtype);
}

static inline int64_t contract_size(const PlanInput *in)
{
	return dtype_size(in->shape.dtype);
}

static inline bool is_copied(const OperandB *b)
{
	return b->access == B_COPIED || b->access == B_BROUGHT;
}

static inline bool has_panels(const OperandB *b)
{
	return b->access == B_PACKED || is_copied(b);
}

/* ---- planning; the nest of the input is the one at hand. After axes are merged, sets of axes in
 * the input's shape mean nothing ---- */

/* contract_operand.c */
MUST_LOOK bool contract_linear(const PlanInput *, Sym offset);
/* Decides how b is read, before axes are merged. Refuses if no way fits. */
MUST_LOOK Refusal contract_choose_b(const PlanInput *, Kx load, const ContractAxes *, OperandB *);
MUST_LOOK Refusal contract_panels_do_not_pay(const PlanInput *, const ContractPlan *);
/* Decides whether a is copied, when tile and block are known. */
MUST_LOOK bool contract_copies_a(const PlanInput *, const ContractPlan *, Panels *);
/* The steps of k; the members of the batch; at hint sizes. */
double contract_steps(const PlanInput *, const ContractAxes *);
double contract_members(const PlanInput *, const ContractAxes *);
/* The largest number of summed elements; 0: no bound. */
int64_t contract_k_bound(const PlanInput *, const ContractAxes *);
/* The summed axis along which the operand has stride 1, or NO_AXIS. */
uint32_t contract_turned_axis(const PlanInput *, Kx load, const ContractAxes *);
/* Plans the phase that copies an operand into panels. */
const CopyPlan *contract_plan_copy(const PlanInput *, const Panels *, const ContractAxes *);

/* A power of two of which every step of k is a multiple, in bytes of memory. */
double contract_spacing(const PlanInput *, Kx load, const ContractAxes *);

/* contract_cycles.c: predicts all phases together, on one core, at hint sizes. */
double contract_cycles(const PlanInput *, const ContractPlan *);

/* contract_block.c: the register tile, the cache block, blocks of k. */
TileSize contract_choose_tile(const PlanInput *, const ContractAxes *, const OperandB *);
/* Elements of a that a row brings along. Before axes are merged. */
int64_t contract_row_elements(const PlanInput *, Kx load, const ContractAxes *);
/* Fills in block, k_block, sums. */
void contract_choose_blocks(const PlanInput *, ContractPlan *, int64_t row_elements);
/* Fills in columns. */
void contract_choose_columns(const PlanInput *, ContractPlan *);
/* The product of the axes' extents. */
Sym contract_product(const PlanInput *, const uint32_t *axis, uint32_t n);

/* contract_window.c: finds the windows over a, before axes are merged; those for which leaving out
 * taps saves time. */
Windows contract_find_windows(const PlanInput *, Kx a, const ContractAxes *);
Windows contract_useful_windows(const PlanInput *, const ContractAxes *, TileSize, const Windows *);

#endif
