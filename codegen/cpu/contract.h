/* Private to the contraction schedule. */
#ifndef WEFT_CODEGEN_CPU_CONTRACT_H
#define WEFT_CODEGEN_CPU_CONTRACT_H

#include "codegen/cpu/sums.h"
#include "codegen/cpu/tuning.h"

enum { MAX_BLOCK_ROWS = 240 /* bounds the tables of rows in local memory; the machine chooses below */, MAX_PANEL = 1 << 16 /* bytes of local memory */ };

enum { MAX_WINDOWS = 8 };

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

/* How b is read. */
typedef struct {
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
	uint32_t copy;    /* copied: the temporary with the panels */
} OperandB;

/* How a is read: in place, or from panels of a tile's rows that an earlier phase copies. */
typedef struct {
	bool copied;
	Panels panels;
	uint32_t copy; /* the temporary */
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

/* The plan of a contraction: decided before any code is written. */
typedef struct {
	Kx a, b; /* the loads */
	ContractAxes axes;
	OperandA operand_a;
	OperandB operand;
	Sym rows;        /* the product of the row axes */
	TileSize tile;   /* the register tile */
	BlockSize block; /* the cache block, one task */
	KBlock k_block;
	SumPlan sums; /* chunks of the summed axes; with blocks of k, of the loops over these
	                 blocks */
	Windows windows;
} Contract;

typedef struct {
	Lx lo, hi; /* hi is the end */
} Interval;

/* The code of a task, as far as it is written. */
typedef struct {
	Cpu *s;
	const Contract *p;
	Interval rows, cols; /* the task's block */
	/* with several row axes: their values and the offset in a, by row of the block */
	LMem row_table[MAX_RANK], a_table;
	LMem local_b; /* gathered: [k...][nv * lanes] */
	Lx row, col;  /* first row and column of the current tile */
	LMem sums;    /* with blocks of k: [vector of columns][row][lanes] */
	Lx many;      /* sums are so long that chunks count; none: they always are */
	uint32_t cut; /* chunks still to open */
	Interval k;   /* of blocks of k: steps of the cut axis */
	Lx first_tap[MAX_WINDOWS], end_tap[MAX_WINDOWS]; /* of the current tile */
} ContractCode;

/* The elements of a vector; the bytes of an element. */
static inline uint32_t contract_lanes(const Cpu *s)
{
	return tuning_lanes(s->target, s->shape.dtype);
}

static inline int64_t contract_size(const Cpu *s)
{
	return dtype_size(s->shape.dtype);
}

static inline bool is_copied(const OperandB *b)
{
	return b->access == B_COPIED || b->access == B_BROUGHT;
}

static inline bool has_panels(const OperandB *b)
{
	return b->access == B_PACKED || is_copied(b);
}

/* contract_tile.c: the loops of one task. */
void contract_block(ContractCode *);
/* The number of accumulators of each element of a tile. Small tiles need several, because an
 * addition waits for the one before. */
uint32_t contract_ways(const Cpu *, TileSize);
/* Fills in value[]: the row axes at row i of the tile. */
void contract_row_axes(ContractCode *, Lx i, Lx *value);

/* contract_border.c: finds the windows over a, before axes are merged; those for which leaving out
 * taps saves time. */
Windows contract_find_windows(const Cpu *, Kx a, const ContractAxes *);
Windows contract_useful_windows(const Cpu *, const ContractAxes *, TileSize, const Windows *);
/* contract_bound_taps, at the beginning of a tile, computes which taps meet the image;
 * contract_taps returns the range of a summed axis. */
void contract_bound_taps(ContractCode *);
void contract_taps(const ContractCode *, uint32_t axis, Lx *start, Lx *end);

/* contract_copy.c: makes the phase that copies an operand into panels. Returns the temporary that
 * later phases read. contract_turned_axis: the summed axis along which the operand has stride 1, or
 * NO_AXIS. */
uint32_t contract_copy(Cpu *, const Panels *, const ContractAxes *);
uint32_t contract_turned_axis(const Cpu *, Kx load, const ContractAxes *);

/* contract_operand.c */
MUST_LOOK bool contract_linear(const Cpu *, Sym offset);
/* Decides how b is read, before axes are merged. Refuses if no way fits. */
MUST_LOOK Refusal contract_choose_b(const Cpu *, Kx load, const ContractAxes *, OperandB *);
MUST_LOOK Refusal contract_panels_do_not_pay(const Cpu *, const Contract *);
/* Decides whether a is copied, when tile and block are known. */
MUST_LOOK bool contract_copies_a(const Cpu *, const Contract *, Panels *);
/* The steps of k; the members of the batch; at hint sizes. */
double contract_steps(const Cpu *, const ContractAxes *);
double contract_members(const Cpu *, const ContractAxes *);
/* The largest number of summed elements; 0: no bound. */
int64_t contract_k_bound(const Cpu *, const ContractAxes *);

TileSize contract_choose_tile(const Cpu *, const ContractAxes *, const OperandB *);
/* the product of the axes' extents */
Sym contract_product(const Cpu *, const uint32_t *axis, uint32_t n);

#endif
