/* Private to the contraction schedule. */
#ifndef WEFT_CODEGEN_CONTRACT_H
#define WEFT_CODEGEN_CONTRACT_H

#include "codegen/schedule/axes.h"

enum { MAX_BLOCK_ROWS = 240 /* bounds the tables of rows in local memory; the machine chooses below */, MAX_PANEL = 1 << 16 /* bytes of local memory */ };

enum { MAX_WINDOWS = 8 };

/* What axes do: rows are those of a only, columns those of b only, batch axes of both, k are summed. */
typedef struct {
	uint32_t n; /* the column axis that runs over lanes */
	uint32_t m[MAX_AXES], nm, batch[MAX_AXES], nbatch, k[MAX_AXES], nk;
} ContractAxes;

/* How b is read. */
typedef struct {
	enum {
		B_IN_PLACE,
		B_GATHERED, /* its columns are apart: panels are gathered into a local array */
		B_PACKED,   /* a constant, in panels */
		B_COPIED    /* its columns are apart: a phase before has copied it into panels */
	} access;
	Layout layout;    /* packed: of the constant */
	uint32_t vectors; /* packed, copied: side by side in a panel */
	Sym panel;        /*                 elements from one panel to the next */
	Sym offset;       /* packed, copied: without n */
	uint32_t copy;    /* copied: the temporary */
} OperandB;

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

/* What is decided before any code is written. */
typedef struct {
	Kx a, b; /* the loads */
	ContractAxes axes;
	OperandB operand;
	Sym rows;        /* product of the row axes */
	TileSize tile;   /* in registers */
	BlockSize block; /* of a task */
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
	Lx first_tap[MAX_WINDOWS], end_tap[MAX_WINDOWS]; /* of the current tile */
} ContractCode;

static inline bool has_panels(const OperandB *b)
{
	return b->access == B_PACKED || b->access == B_COPIED;
}

/* contract_tile.c: the loops of one task. */
void contract_block(ContractCode *);
/* Values of all row axes at row i of the tile. */
void contract_row_axes(ContractCode *, Lx i, Lx *value);

/* contract_border.c: windows that a has, before axes are merged; those that are worth their code. */
Windows contract_find_windows(const Sched *, Kx a, const ContractAxes *);
Windows contract_useful_windows(const Sched *, const ContractAxes *, TileSize, const Windows *);
/* At the begin of a tile; then, where a summed axis starts and ends. */
void contract_bound_taps(ContractCode *);
void contract_taps(const ContractCode *, uint32_t axis, Lx *start, Lx *end);

/* contract_copy.c: the phase that copies b into panels, before axes are merged; returns the temporary. And the summed axis along which
 * b's elements are neighbours, NO_AXIS if there is none. */
uint32_t contract_copy(Sched *, const Contract *);
uint32_t contract_turned_axis(const Sched *, Kx b, const ContractAxes *);

/* Largest number of summed elements, or 0 when unbounded. */
int64_t contract_k_bound(const Sched *, const ContractAxes *);

#endif
