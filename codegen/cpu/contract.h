/* Private to the contraction schedule. */
#ifndef WEFT_CODEGEN_CPU_CONTRACT_H
#define WEFT_CODEGEN_CPU_CONTRACT_H

#include "codegen/cpu/sums.h"
#include "codegen/cpu/tuning.h"

enum { MAX_BLOCK_ROWS = 240 /* bounds the tables of rows in local memory; the machine chooses below */, MAX_PANEL = 1 << 16 /* bytes of local memory */ };

enum { MAX_WINDOWS = 8, LINE_BYTES = 64 /* of a cache */ };

/* What axes do: rows are those of a only, columns those of b only, batch axes of both, k are
 * summed. */
typedef struct {
	uint32_t n; /* the column axis that runs over lanes */
	uint32_t m[MAX_AXES], nm, batch[MAX_AXES], nbatch, k[MAX_AXES], nk;
} ContractAxes;

/* An operand in panels: [batch][panel][k...][width]. */
typedef struct {
	Kx load;
	uint32_t axis;       /* of columns, or rows */
	int64_t step, width; /* of these: from one panel to the next; of a panel, in whole vectors:
	                        what is past the step is not read */
	Sym stride, offset;  /* elements from one panel to the next; of steps of k and members of
	                        the batch */
	Sym count, numel;    /* panels of a member; elements of all */
} Panels;

/* How b is read. */
typedef struct {
	enum {
		B_IN_PLACE,
		B_GATHERED, /* its columns are apart: panels are gathered into a local array */
		B_PACKED,   /* a constant, in panels */
		B_COPIED,   /* its columns are apart: a phase before has copied it into panels */
		B_BROUGHT   /* the same, its steps of k are far apart */
	} access;
	Layout layout;    /* packed: of the constant */
	uint32_t vectors; /* panels: side by side in a panel */
	Panels panels;
	uint32_t copy;    /* copied: the temporary */
} OperandB;

/* How a is read: in place, or from panels of a tile's rows, which a phase before has copied. */
typedef struct {
	bool copied;
	Panels panels;
	uint32_t copy; /* the temporary */
} OperandA;

/* A dimension of a that has a border of zeros (contract_border.c). */
typedef struct {
	uint32_t k, row; /* axes: summed, of the rows */
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
	int64_t rows, cols; /* cols 0: all */
} BlockSize;

/* Long sums: all tiles of a block add up `steps` steps of one summed axis before any goes on, so
 * that panels of both operands stay in the caches. What has been added up lies in local memory. */
typedef struct {
	bool used;
	uint32_t k;    /* which one of the summed axes; those before it are outside, too */
	int64_t steps; /* of it */
	int64_t inner; /* steps of the axes behind it, for each */
} KBlock;

/* What is decided before any code is written. */
typedef struct {
	Kx a, b; /* the loads */
	ContractAxes axes;
	OperandA operand_a;
	OperandB operand;
	Sym rows;        /* product of the row axes */
	TileSize tile;   /* in registers */
	BlockSize block; /* of a task */
	KBlock k_block;
	SumPlan sums; /* chunks of the summed axes; with blocks of k, of the loops over these
	                 blocks */
	Windows windows;
} Contract;

/* The code of a task, as far as it is written. */
typedef struct {
	Sched *s;
	const Contract *p;
	Lx row_lo, row_hi, col_lo, col_hi;
	/* several row axes: their values and the offset in a, by row of the block */
	LMem row_table[MAX_RANK], a_table;
	LMem local_b; /* gathered: [k...][nv * lanes] */
	Lx row, col;  /* first ones of the current tile */
	LMem sums;    /* of blocks of k: [vector of columns][row][lanes] */
	Lx many;      /* sums are so long that chunks count; none: they always are */
	uint32_t cut; /* chunks still to open */
	Lx k_lo, k_hi; /* of blocks of k: steps of the cut axis */
	Lx first_tap[MAX_WINDOWS], end_tap[MAX_WINDOWS]; /* of the current tile */
} ContractCode;

/* Elements of a vector, and bytes of one. */
static inline uint32_t contract_lanes(const Sched *s)
{
	return tuning_lanes(s->target, s->shape.dtype);
}

static inline int64_t contract_size(const Sched *s)
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
/* Accumulators of each element of a tile: small tiles would wait for each other's results. */
uint32_t contract_ways(const Sched *, TileSize);
/* Values of all row axes at row i of the tile. */
void contract_row_axes(ContractCode *, Lx i, Lx *value);

/* contract_border.c: windows that a has, before axes are merged; those that are worth their
 * code. */
Windows contract_find_windows(const Sched *, Kx a, const ContractAxes *);
Windows contract_useful_windows(const Sched *, const ContractAxes *, TileSize, const Windows *);
/* At the begin of a tile; then, where a summed axis starts and ends. */
void contract_bound_taps(ContractCode *);
void contract_taps(const ContractCode *, uint32_t axis, Lx *start, Lx *end);

/* contract_copy.c: the phase that copies an operand into panels; returns the temporary, which the
 * next phases read. And the summed axis along which its elements are neighbours, NO_AXIS if there
 * is none. */
uint32_t contract_copy(Sched *, const Panels *, const ContractAxes *);
uint32_t contract_turned_axis(const Sched *, Kx load, const ContractAxes *);

/* contract_operand.c */
MUST_LOOK bool contract_linear(const Sched *, Sym offset);
/* Decides how b is read, before axes are merged. Refuses if no way fits. */
MUST_LOOK Refusal contract_choose_b(const Sched *, Kx load, const ContractAxes *, OperandB *);
MUST_LOOK Refusal contract_panels_do_not_pay(const Sched *, const Contract *);
/* How a is read, when the tile and the block are known. */
MUST_LOOK bool contract_copies_a(const Sched *, const Contract *, Panels *);
/* Steps of k; members of the batch; at hint sizes. */
double contract_steps(const Sched *, const ContractAxes *);
double contract_members(const Sched *, const ContractAxes *);
/* Largest number of summed elements, or 0 when unbounded. */
int64_t contract_k_bound(const Sched *, const ContractAxes *);

TileSize contract_choose_tile(const Sched *, const ContractAxes *, const OperandB *);
Sym contract_product(const Sched *, const uint32_t *axis, uint32_t n); /* of their extents */

#endif
