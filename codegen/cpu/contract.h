/* Private to the contraction schedule: the code of a task. */
#ifndef WEFT_CODEGEN_CPU_CONTRACT_H
#define WEFT_CODEGEN_CPU_CONTRACT_H

#include "codegen/cpu/cpu.h"
#include "codegen/plan/contract.h"

typedef struct {
	Lx lo, hi; /* hi is the end */
} Interval;

/* Rows [lo, hi) of a tile, of the last row axis or numbers in the tile; place plus a row is its
 * place in the tile. */
typedef struct {
	Lx lo, hi, place;
} RowSpan;

/* With runs of rows of a (OperandA), local arrays about the task's block. A *segment* is those rows
 * of a fragment that differ in the last row axis only. */
typedef struct {
	LMem base;           /* by fragment: the offset in a of its first place */
	LMem start;          /* with blocks, by fragment: its first place in the run */
	LMem first;          /* by fragment, and one behind the last: its first segment */
	LMem lo, hi;         /* by segment: values of the last row axis */
	LMem place;          /* by segment: plus such a value, the row's place in its tile */
	LMem axis[MAX_RANK]; /* by segment: values of the other row axes */
} ContractRuns;

/* The tile whose epilogue is late: its rows are those of the segments from `segment` on, without
 * the first `done` ones. */
typedef struct {
	bool used;
	Lv col, segment, end, done; /* col: its first column */
} LateRows;

/* Registers and local arrays of a row with fragments (MicroKernel.nfrag). */
typedef struct {
	FragOp op;
	uint32_t nrow;              /* fragments of rows in a tile */
	Lv acc[MAX_FRAG_ROWS], a[MAX_FRAG_ROWS], b; /* acc, b: one for each vector of columns */
	Lx base[MAX_FRAG_ROWS]; /* with runs (OperandA): offsets of fragments in a, without their
	                           summed part */
	ContractRuns runs;
	LateRows late;
	LMem left, right, tile; /* left: [row][group] of a; right: [vector][group][column] of b;
	                           tile: [row][column] */
} ContractFrags;

/* The code of a task, as far as it is written. */
typedef struct {
	Cpu *s;
	const ContractPlan *p;
	Interval rows, cols; /* the task's block */
	/* with several row axes: their values and the offset in a, by row of the block */
	LMem row_table[MAX_RANK], a_table;
	LMem local_b; /* gathered: [k...][nv * lanes]; slabs: [k of a block...][field][nv * lanes]
		       */
	Lx row, col;  /* first row and column of the current tile */
	LMem bias;    /* what is subtracted from the sums of the current columns
	                 (MicroKernel.biased) */
	ContractFrags frags; /* of a row with fragments */
	LMem sums;    /* with blocks of k: [vector of columns][row][lanes] */
	Lx many;      /* sums are so long that chunks count; none: they always are */
	uint32_t cut; /* chunks still to open */
	Interval k;   /* of blocks of k: steps of the cut axis */
	Interval taps[MAX_WINDOWS]; /* of the current tile */
} ContractCode;

/* A register tile. */
typedef struct {
	const TileCode *how;
	Lx mask;      /* of the last vector, none: whole */
	Lx left;      /* the columns that there are, if the last vector may not be whole */
	bool bytes;   /* vectors of b are bytes of halves in local memory (OperandB.bytes) */
	uint32_t way; /* the accumulator at hand */
	Lv acc[UNROLL_K][MAX_TILE_ROWS][MAX_TILE_VECTORS];
	uint32_t ncut;          /* of the summed axes */
	LMem sum[MAX_SUM_CUTS + 1]; /* by cut: [mr][nv * lanes], of the chunks before; with blocks
				       behind them the sums of functions of sums of blocks, unless
				       `held` has them */
	Lv held[MAX_TILE_ROWS][MAX_TILE_VECTORS]; /* with ChunkPlan.held */
	Lx a[MAX_TILE_ROWS];    /* row offsets */
	Lx row[MAX_TILE_ROWS];  /* with blocks of vectors, of one row axis: its values */
	Lx panel;               /* packed: offset of the first panel */
	Lx next;                /* packed: what to prefetch */
	Lx scale[MAX_SCALES];   /* with blocks: where the first panels of scales begin; of what is
				   decoded: of the loads beside b */
} ContractTile;

/* Writes the loops of one task over columns, rows and k, and the epilogue (contract_tile.c). The
 * caller has set s, p, rows and cols, zeroed the other fields, and given the batch axes values
 * (eval_at). Sets the other fields for the functions below. */
void contract_block(ContractCode *);
/* Sets value[j] to the value of row axis j at row i of the current tile. Afterwards no row axis has
 * a value. */
void contract_row_axes(ContractCode *, Lx i, Lx *value);

/* Fills the tables of the rows of the task's block (contract_rows.c). */
void contract_fill_tables(ContractCode *);
/* Gives the row axes the values that they have at row i of the current tile (contract_rows.c). */
void contract_go_to_row(ContractCode *, Lx i);

/* Opens loops over the rows of the current tile, and gives row axes values. Returns the place of
 * the row in the tile. */
Lx contract_open_rows(ContractCode *);
/* Closes them. No row axis has a value afterwards. */
void contract_close_rows(ContractCode *);
/* Fetches ahead (software prefetch), at the current step of k, `lines` rows of panels from
 * offset `next` of b on. Each round of `unroll` steps fetches the rows behind those of the round
 * before. */
void contract_prefetch(ContractCode *, Lx next, int64_t lines, uint32_t unroll);

/* Fetches what is beside b, in panels, of the next tile of columns, if the tile at hand is the only
 * one of rows, which fetches all of b. at: of the current columns. In contract_tile.c. */
void contract_fetch_next(ContractCode *, const ContractTile *, const Panels *, LMem, Lx at);

/* contract_runs.c */

/* Fills the tables of the task's block. */
void contract_fill_runs(ContractCode *);
/* Sets c->frags.base for the current tile. */
void contract_find_fragments(ContractCode *);
/* Returns, with blocks, the first place in the run of fragment k of the current tile. */
Lx contract_first_place(ContractCode *, Lx k);
/* Sets *begin to the first segment of the current tile, and *end to the first one behind them. */
void contract_segments(ContractCode *, Lx *begin, Lx *end);
/* Opens the loop over segments of the current tile, gives the row axes but the last one values, and
 * returns the segment. */
RowSpan contract_open_segment(ContractCode *);
/* Gives the last row axis a value, of a segment. */
void contract_go_to_segment_row(ContractCode *, Lx row);
/* Opens, closes the loops over the rows of the current tile if fragments are loaded by runs: what
 * contract_open_rows, contract_close_rows do then. */
Lx contract_open_segments(ContractCode *);
void contract_close_segments(ContractCode *);
/* Returns the expression of the offset in an operand, or in its panels, with all summed axes at 0
 * (contract_rows.c). */
Sym contract_row_offset(const ContractCode *, Kx load);

/* contract_step.c */

/* Returns the memory from which tiles read b; the offset in it of vector j of the current columns
 * at the current step of k. panel: what contract_first_panel returned, where b lies in panels. */
LMem contract_b_memory(ContractCode *);
Lx contract_b_offset(ContractCode *, uint32_t j, Lx panel);
/* Returns, as a variable, the offset of the first panel of the current columns, of b or of a
 * scale. */
Lx contract_first_panel(ContractCode *, const Panels *);
/* Loads that vector of b as it is multiplied. mask: of its lanes; none: all. */
Lx contract_load_b(ContractCode *, uint32_t j, const TileCode *, Lx panel, Lx mask);
/* Loads what is multiplied of a row, at that offset of a: an element, or a group; of the last group
 * the `left` steps that there are (none: all). */
Lx contract_load_a(ContractCode *, Lx offset, Lx left);
/* Returns sum + a * b, of elements or groups, in the plan's vectors. */
Lx contract_add_product(ContractCode *, Lx a, Lx b, Lx sum);
/* Returns the halves of bytes with that number, 0 or 1: the low or the high ones. */
Lx contract_half(ContractCode *, Lx bytes, uint32_t number);
/* Writes the halves of the current columns' bytes of b as bytes into c->local_b, [block...][vector]
 * [group][column], with OperandB.bytes. */
void contract_fill_bytes(ContractCode *, const TileCode *);
/* Returns the place there, in groups, of vector j of the current block. */
Lx contract_place_of_bytes(ContractCode *, uint32_t j);
/* Loads vector j from there: of the current group, those of the low halves of its bytes, or of the
 * high ones. */
Lx contract_load_byte_group(ContractCode *, uint32_t j, uint32_t half);
/* Returns the sum of a block, of an accumulator of it. */
Lx contract_block_sum(ContractCode *, Lx accumulator);
/* Sets c->bias to what is subtracted from the sums of the current columns: of a row that adds 128
 * to the elements of a, what that adds to them. */
void contract_sum_columns(ContractCode *, const TileCode *);
/* contract_step.c, of plans that decode b (DecodedB): */

/* Sets t->panel and t->scale for the current columns. */
void contract_start_decoding(ContractCode *, ContractTile *t);
/* Computes what does not depend on summed axes from number n on, which have no values yet. */
void contract_decode_ahead(ContractCode *, const ContractTile *, uint32_t n);
/* Returns vector j of that field of the current step of k, as it is multiplied. */
Lx contract_decoded(ContractCode *, const ContractTile *, uint32_t j, uint32_t field);
/* Returns vector j of the factor of sums, at the current block. */
Lx contract_factor(ContractCode *, const ContractTile *, uint32_t j);
/* Decodes the current columns, of the current block of k, into a slab. */
void contract_fill_slab(ContractCode *, ContractTile *t);
/* Returns vector j of that field of the current step of k, of the slab. */
Lx contract_load_slab(ContractCode *, uint32_t j, uint32_t field);

/* Returns a vector of zeros of the type of the plan's sums. */
Lx contract_zero(const ContractCode *);

/* Returns the offset in a, or in its panels, of row i of the current tile, without the part that
 * the summed axes add (contract_rows.c). */
Lx contract_a_row(ContractCode *, Lx i);
/* Returns the offset in an operand that the current step of the summed axes adds
 * (contract_tile.c). */
Lx contract_step_offset(ContractCode *, Kx load);

/* Declares the fragments and the local arrays of tiles (contract_frag.c). */
void contract_declare_frags(ContractCode *);
/* Sets the accumulators of the tile, for nv vectors of columns, to 0 (contract_frag.c). */
void contract_zero_frags(ContractCode *, uint32_t nv);
/* Adds the products of all steps of the last summed axis (contract_frag.c). The other summed axes
 * have values. panel: as for contract_b_offset; next: the offset of the panels to prefetch. */
void contract_frag_steps(ContractCode *, const TileCode *, Lx panel, Lx next);
/* Stores the sums in c->frags.tile, as rows of nv vectors (contract_frag.c). */
void contract_store_frags(ContractCode *, uint32_t nv);
/* Sets the accumulators of the tile to the sums of the current block (contract_frag.c). panel,
 * next: as for contract_frag_steps. */
void contract_add_block(ContractCode *, const TileCode *, Lx panel, Lx next);

/* contract_late.c */

/* Declares the variables of the late tile; there is none. */
void contract_late_begin(ContractCode *);
/* Finishes some of its rows, at a step of the current tile. */
void contract_late_rows(ContractCode *, const TileCode *);
/* Finishes all that are left. */
void contract_late_finish(ContractCode *, const TileCode *);
/* Finishes all rows of the late tile that are left, and makes the current tile, whose sums are
 * complete, the late one. */
void contract_late_tile(ContractCode *, const TileCode *);
/* Writes the epilogue of row `place` of the sums in frags.tile, for the columns from c->col on
 * (contract_epilogue.c). The row axes have values. */
void contract_finish_row(ContractCode *, const TileCode *, Lx place);

/* Computes the sums of the current tile, if b is read along k (B_ALONG), and sets sum[i] to the
 * vector of columns of row i (contract_dots.c). a: by row, the offset that contract_a_row returned;
 * left: the number of columns from c->col on, if it may be less than a vector (else none). */
void contract_dots(ContractCode *, const Lx *a, Lx left, Lv *sum);

/* Computes, at the beginning of a tile, which taps of each window meet the image, as c->taps
 * (contract_border.c). Does nothing if the plan has no windows. */
void contract_bound_taps(ContractCode *);
/* Narrows the range [*start, *end) of a summed axis to the taps that meet the image; leaves it as
 * it is for an axis without a window (contract_border.c). */
void contract_taps(const ContractCode *, uint32_t axis, Lx *start, Lx *end);

/* Writes the phase that copies an operand into panels (panel packing), and adds the temporary that
 * it fills, which phases up to number `last` read (contract_copy.c). */
void contract_copy(Cpu *, const CopyPlan *, uint32_t last);

/* contract_epilogue.c */

/* Returns the offset of vector j of row i in the local sums of a tile, [mr][nv * lanes]. */
Lx contract_sum_offset(const ContractCode *, const ContractTile *, uint32_t i, uint32_t j);
/* Adds up n accumulators of a vector of a row, from `first` on, pairwise. */
Lx contract_chains(Cpu *, const ContractTile *, uint32_t first, uint32_t n, uint32_t i, uint32_t j);
/* Multiplies the sums of the tile, which are in its first accumulators, by the factor. */
void contract_multiply_sums(ContractCode *, ContractTile *);
/* Sets the accumulators of the tile, which are vectors, to what they are at the beginning of the
 * current block. */
void contract_begin_block(ContractCode *, const ContractTile *);
/* Adds to the sums of the tile what the stage of blocks, or a factor, makes of the accumulators,
 * the sums of a block. */
void contract_end_block(ContractCode *, const ContractTile *);
/* Writes the epilogue of a tile whose sums are in its first accumulators, for each vector. */
void contract_inline_epilogue(ContractCode *, const ContractTile *);
/* Writes the same epilogue as a loop over a copy of the tile, which is less code for a long
 * epilogue. */
void contract_looped_epilogue(ContractCode *, const ContractTile *);
/* Writes the epilogue of a tile of fragments, whose sums are in frags.tile: a loop over rows, in
 * each all columns. */
void contract_epilogue_of_fragments(ContractCode *, const ContractTile *);

#endif
