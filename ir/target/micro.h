/* Micro-kernels: the ways in which an instruction set multiplies and adds in contractions, as rows
 * of a table. A row multiplies *groups*: k neighbours of an operand that together have the size of
 * the accumulator's element. A lane of the accumulator multiplies one group of a with one group of
 * b: 1 f32, 2 bf16, 4 i8. To loop IR a group of a dtype narrower than the accumulator is a u32, and
 * the multiplication is a scalar operation on u32 (dot2_bf16, dot4_u8s8: ir/scalar/scalar.h).
 *
 * All rows read b in panels of one form, elements in this order:
 *
 *     [batch][ceil(N / P)][ceil(K / group)][P][group]
 *
 * P: the columns of a panel, target_panel: as many groups as the widest register of the family has
 * lanes. Columns behind N and steps behind K are zero. So levels of a family that have different
 * rows of one group read the same panels. Zero steps of b do not make up for what lies behind a
 * row of a, which may be NaN: the last group of a is read element by element if K is not a
 * multiple of the group. */
#ifndef WEFT_IR_MICRO_H
#define WEFT_IR_MICRO_H

#include "ir/target/target.h"

typedef struct MicroKernel {
	const char *name;  /* "fma f32", "dot2 bf16" */
	DType a, b, acc;   /* of the operands as they lie in memory, and of the sums; a, b DT_none:
			      any dtype, converted to acc where it is loaded */
	uint8_t group;     /* steps of k in a group; group * size of a is the size of acc, or 1 */
	ScOp op;           /* lane by lane: SC_fma (of integers, and without ISA_FMA, mul and add;
			      of groups of bf16 one of the second elements, then one of the
			      first), or a dot product of groups (a, b, acc) */
	bool biased;       /* a is signed, and the operation wants it unsigned: 128 is added to its
			      elements, and 128 times the sums of columns of b are subtracted */
	bool turned;       /* the operation's first operand is the group of b */
	bool pairs;        /* an accumulator has two sums of 16 bits, each of half of the products;
			      only where none of them overflows */
	bool signs;        /* the operation gives sums of pairs of products, of 16 bits, which are
			      added: only where they do not overflow, and -128 is not in a */
	uint8_t rows, cols, k; /* of one instruction on fragments; 0: op is lane by lane */
	uint8_t nfrag;     /* the fragments that there are; 0: operands are in vector registers */
	MachineOp cost;    /* the class of its instruction in Machine.rate */
	uint32_t needs;    /* IsaOp bits */
} MicroKernel;

/* Returns row k of the table; NULL after the last. */
const MicroKernel *micro_at(uint32_t k);
/* Whether the instruction set has the row. Scalar ones have no rows with groups. */
bool micro_has(const Isa *, const MicroKernel *);
/* Returns the row number `nth` of those that the instruction set has for operands that lie in
 * memory as a and b, summed in acc; the best first, the last one converts. NULL after the last, or
 * if acc is no dtype of sums (f32, f64, i32). */
const MicroKernel *micro_row(const Isa *, DType a, DType b, DType acc, uint32_t nth);
/* Whether the row reads groups of several steps. */
static inline bool micro_groups(const MicroKernel *m) { return m && m->group > 1; }

#endif
