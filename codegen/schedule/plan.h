/* The memory plan: where each temporary lives in the workspace. */
#ifndef WEFT_CODEGEN_PLAN_H
#define WEFT_CODEGEN_PLAN_H

#include "ir/kernel/kernel.h"

typedef struct {
	Sym *offset; /* by buffer: bytes from the start of the workspace, 64-byte aligned; none: unused */
	Sym total;   /* bytes of the workspace */
} MemoryPlan;

/* Buffers whose lifetimes overlap are disjoint. Constant sizes are packed by offset; a symbolic size shares
 * a slot only if it is provably no larger. share == false gives every buffer memory of its own. */
MemoryPlan plan_memory(Lowered *, bool share);

#endif
