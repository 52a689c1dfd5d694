/* Private to legalise.c and library.c: operations in terms of what a target has. */
#ifndef WEFT_CODEGEN_PROGRAM_LEGAL_PRIV_H
#define WEFT_CODEGEN_PROGRAM_LEGAL_PRIV_H

#include "ir/loop/prelude.h"

typedef struct {
	LoopFn *f; /* that expressions are made for */
	const Isa *isa;
} Library;

/* An operation whose operands are legal. */
Lx library_op(Library *, ScOp, LType, const Lx *in, uint32_t nin, unsigned known);
/* A scalar function: in place where it is one operation, else a call. */
Lx library_call(Library *, const ScFn *, uint32_t lanes, const Lx *in, uint32_t nin);
/* Between what lies in memory (dtype_raw of storage) and the value. */
Lx library_unpack(Library *, DType storage, Lx raw);
Lx library_pack(Library *, DType storage, Lx value);

#endif
