/* The memory plan: where each temporary lives in the workspace. */
#ifndef WEFT_CODEGEN_PROGRAM_PLAN_H
#define WEFT_CODEGEN_PROGRAM_PLAN_H

#include "codegen/program/distinct.h"

typedef struct {
	Sym *offset; /* by buffer: bytes from the start of the workspace, 64-byte aligned; none:
	                unused */
	const Sym *temp; /* the same of temporaries between phases, by number */
	Sym total;   /* bytes of the workspace */
	/* What has no bound, or one that is the product of several, lies in a room that is made
	 * when its size is known. */
	const uint32_t *room; /* by buffer, then temporary: its number from 1, in which the offset
	                         counts; 0: the workspace */
	const uint32_t *room_of; /* by STEP_SIZE, in order: the room that is made after it, or 0 */
	uint32_t nroom;
	const Sym *room_bytes; /* by room, [0] unused */
} MemoryPlan;

/* After every kernel has been scheduled. Buffers whose lifetimes overlap are disjoint. Constant
 * sizes are packed by offset; a symbolic size shares a slot only if it is provably no larger. share
 * == false gives every buffer memory of its own. */
MemoryPlan plan_memory(const DistinctKernels *, bool share);

#endif
