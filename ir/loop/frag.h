/* Fragments: matrices in registers of their own, which an instruction multiplies and adds at once
 * (AMX; in time NEON's, SME's, NVIDIA's). Loop IR names the operation, whose meaning is here in
 * bits; the instructions are rows of a prelude with its name (ir/loop/prelude.h). An instruction
 * set without that row gets the meaning as loops over local arrays
 * (codegen/legal/legal_frags.c). */
#ifndef WEFT_IR_LOOP_FRAG_H
#define WEFT_IR_LOOP_FRAG_H

#include "ir/graph/dtype.h"

/* Operations c += a . b. Operands lie in fragments as the instructions want them: c has M rows of N
 * elements; a has M rows of K elements; b has K / group rows of N groups, a group being the
 * elements of `group` consecutive steps of K of one column. */
typedef enum {
	FRAG_TILE_BF16, /* TDPBF16PS: see frag_dot */
	FRAG_TILE_S8S8, /* TDPBSSD: sums wrap around */
	FRAG_TILE_U8S8, /* TDPBUSD: sums wrap around */
	FRAG_TILE_S8U8, /* TDPBSUD: sums wrap around */
	FRAG_OPS
} FragOp;

typedef struct {
	const char *name;   /* in the text of loop IR, and PreludeRow.op */
	DType a, b, acc;
	uint32_t group;     /* steps of K in 4 bytes */
	uint32_t rows, cols, k; /* the most that an instruction takes: M, N, K */
	uint32_t count;     /* fragments that a function may have */
} FragRow;

/* Returns the properties of an operation below FRAG_OPS. */
const FragRow *frag_row(FragOp);
/* The most bytes of a row, and the most rows, of any fragment. */
enum { FRAG_ROW_BYTES = 64, FRAG_ROWS = 16 };

/* Computes c += a . b, for fragments whose rows lie one behind the other. FRAG_TILE_BF16: one
 * sum of the even steps of K and one of the odd steps, each a chain of multiplications with an
 * addition, rounded once, that begins with 0; the sum of the two is added to c. Operands that
 * are subnormal count as zeros of their sign. A result that would be subnormal is a zero of its
 * sign; whether it would be is found after rounding to 24 bits without a limit of the exponent.
 * numerics.md keeps subnormals otherwise. */
void frag_dot(FragOp, uint32_t m, uint32_t n, uint32_t k, void *c, const void *a, const void *b);

#endif
