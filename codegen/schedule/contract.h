/* Private to the contraction schedule. */
#ifndef WEFT_CODEGEN_CONTRACT_H
#define WEFT_CODEGEN_CONTRACT_H

#include "codegen/schedule/axes.h"

enum { MAX_BLOCK_ROWS = 240, ENOUGH_BLOCKS = 16, SMALL_BLOCK = 1 << 20, MAX_PANEL = 1 << 16 };

enum { MAX_WINDOWS = 8 };

/* A dimension of a that has a border of zeros (contract_border.c). */
typedef struct {
	uint32_t k, row; /* axes: summed, of the rows */
	int64_t step, coef;
	Sym start, lo, hi;
	Lx first_tap, end_tap; /* of the current tile */
} Window;

typedef struct {
	Sched *s;
	Kx a, b;        /* the loads */
	uint32_t n;     /* the vector axis */
	uint32_t m[MAX_AXES], nm, batch[MAX_AXES], nbatch, k[MAX_AXES], nk;
	bool packed;    /* b is a constant in panels */
	uint32_t panel_vectors; /* packed: vectors side by side in one */
	bool transpose; /* b has no unit stride along n: panels are gathered into a local array */
	Sym offset_b;   /* packed: without n */
	Sym panel;      /* packed: elements from one panel to the next */
	Sym rows;       /* product of the row axes */
	int64_t row_elements; /* of a, at hint sizes */
	uint32_t mr, nv; /* register tile: rows, vectors */
	int64_t block_rows, block_cols; /* per task; block_cols 0: all */
	Lx row_lo, row_hi, col_lo, col_hi;
	/* several row axes: their values and the offset in a, by row of the block */
	LMem row_table[MAX_RANK], a_table;
	LMem local_b; /* transpose: [k...][nv * lanes] */
	Lx row, col;  /* first ones of the current tile */
	Window window[MAX_WINDOWS];
	uint32_t nwindow;
} Contract;

/* contract_tile.c: the loops of one task. */
void contract_block(Contract *);
/* Values of all row axes at row i of the tile. */
void contract_row_axes(Contract *, Lx i, Lx *value);

/* contract_border.c, in this order: before axes are merged; when the tile is chosen; at the begin of a tile; where a
 * summed axis starts and ends. */
void contract_find_windows(Contract *);
void contract_keep_windows(Contract *);
void contract_bound_taps(Contract *);
void contract_taps(const Contract *, uint32_t axis, Lx *start, Lx *end);

/* Merging replaced axes: find the roles of the new ones. */
void contract_after_merge(Contract *);
/* Largest number of summed elements, or 0 when unbounded. */
int64_t contract_k_bound(const Contract *);

#endif
