/* Private to legalise.c and library.c: makes operations of those that a target has. */
#ifndef WEFT_CODEGEN_PROGRAM_LEGAL_PRIV_H
#define WEFT_CODEGEN_PROGRAM_LEGAL_PRIV_H

#include "ir/loop/prelude.h"

typedef struct {
	LoopFn *f; /* the function that expressions are added to */
	const Isa *isa;
} Library;

/* Makes a legal expression of an operation whose operands are legal. */
Lx library_op(Library *, ScOp, LType, const Lx *in, uint32_t nin, unsigned known);
/* Makes a scalar function: the operation, if the function is one operation; else a call of a
 * library function. */
Lx library_call(Library *, const ScFn *, uint32_t lanes, const Lx *in, uint32_t nin);
/* Converts between the bits in memory (dtype_raw of the storage dtype) and the value. */
Lx library_unpack(Library *, DType storage, Lx raw);
Lx library_pack(Library *, DType storage, Lx value);

#endif
