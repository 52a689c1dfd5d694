/* The memory plan: the place of each temporary in the workspace. */
#ifndef WEFT_CODEGEN_PROGRAM_PLAN_H
#define WEFT_CODEGEN_PROGRAM_PLAN_H

#include "codegen/program/distinct.h"

typedef struct {
	Sym *offset; /* by buffer: bytes from the start of the workspace, 64-byte aligned; none: the
	                buffer needs no place */
	const Sym *temp; /* the same by temporary between phases */
	Sym total;   /* bytes of the workspace */
	/* Rooms: a buffer without a bound, or whose bound is a product of several bounds, gets
	 * memory of its own when its size is known. */
	const uint32_t *room; /* by buffer, then by temporary: the number of its room, from 1, to
	                         which `offset` refers; 0: the workspace */
	const uint32_t *room_of; /* by STEP_SIZE, in order: the room that is allocated after the
	                            step, or 0 */
	uint32_t nroom;
	const Sym *room_bytes; /* by room; [0] unused */
} MemoryPlan;

/* Makes the plan, after all kernels were scheduled. Buffers whose lifetimes overlap are disjoint.
 * Buffers of constant size are packed by offset; a buffer of symbolic size uses another's slot only
 * if it is provably no larger. share false: every buffer has memory of its own. */
MemoryPlan plan_memory(const DistinctKernels *, bool share);

#endif
