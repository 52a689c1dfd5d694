/* Private to legalise.c and library.c: makes expressions of operations that the target has. An
 * expression is legal if the target has a prelude row (ir/loop/prelude.h) for each operation in
 * it. */
#ifndef WEFT_CODEGEN_LEGAL_LEGAL_PRIV_H
#define WEFT_CODEGEN_LEGAL_LEGAL_PRIV_H

#include "ir/loop/prelude.h"

typedef struct {
	LoopFn *f; /* the function that expressions are added to */
	const Isa *isa;
} Library;

/* Returns a legal expression for an operation with a result of this type, whose operands are legal;
 * the operand itself for a conversion to its own dtype. known: KNOWN_ bits (ir/loop/loop.h). */
Lx library_op(Library *, ScOp, LType, const Lx *in, uint32_t nin, unsigned known);
/* Returns the value of a scalar function for legal operands: the operation, if the function is one
 * operation; else a call of a library function (LX_FN). */
Lx library_call(Library *, const ScFn *, uint32_t lanes, const Lx *in, uint32_t nin);
/* Prepares a function with fragments for legalising. Where the instruction set has its operations
 * (isa_has_frag), LS_FRAG_CONFIG and LS_FRAG_RELEASE are added; else fragments become local arrays,
 * and operations the loops that frag_dot defines. Other functions stay unchanged. */
void legalise_frags(LoopFn *, const Isa *);
/* Returns the value, in the compute dtype, of the bits of a storage dtype in memory (an integer of
 * dtype_raw). Values of a storage dtype that is kept as computed are returned unchanged. */
Lx library_unpack(Library *, DType storage, Lx raw);
/* Returns the bits that a value, in the compute dtype, has in memory as the storage dtype (an
 * integer of dtype_raw). Values of a storage dtype that is kept as computed are returned
 * unchanged. */
Lx library_pack(Library *, DType storage, Lx value);

#endif
