/* The memory plan: where each temporary lives in the workspace. */
#ifndef WEFT_CODEGEN_PLAN_H
#define WEFT_CODEGEN_PLAN_H

#include "codegen/schedule/distinct.h"

typedef struct {
	Sym *offset; /* by buffer: bytes from the start of the workspace, 64-byte aligned; none: unused */
	const Sym *temp; /* the same of temporaries between phases, by number */
	Sym total;   /* bytes of the workspace */
} MemoryPlan;

/* After every kernel has been scheduled. Buffers whose lifetimes overlap are disjoint. Constant sizes are packed by offset; a symbolic size shares
 * a slot only if it is provably no larger. share == false gives every buffer memory of its own. */
MemoryPlan plan_memory(const DistinctKernels *, bool share);

#endif
