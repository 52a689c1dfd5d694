/* The memory plan: the offset in the workspace of each BUF_TEMP buffer and each temporary of a
 * schedule (SchedTemp). A bound of a size is sym_most (ir/sym/sym.h): sizes that depend on data are
 * planned by their bounds. */
#ifndef WEFT_CODEGEN_PROGRAM_PLAN_H
#define WEFT_CODEGEN_PROGRAM_PLAN_H

#include "codegen/program/distinct.h"

typedef struct {
	Sym *offset; /* by buffer: bytes from the start of the workspace, 64-byte aligned; none: the
	                buffer needs no place */
	const Sym *temp; /* the same by temporary of all schedules (Scheduled.temp) */
	Sym total;   /* bytes of the workspace */
	/* Rooms: a buffer whose size depends on data and has no close bound (sym_most_is_near) gets
	 * memory of its own when its size is known. */
	const uint32_t *room; /* by buffer, then by temporary: the number of its room, from 1, to
	                         which `offset` refers; 0: the workspace */
	const uint32_t *room_of; /* by STEP_SIZE, in order: the room that is allocated after the
	                            step, or 0 */
	uint32_t nroom;
	const Sym *room_bytes; /* by room; [0] unused */
	const uint32_t *first, *last; /* by buffer, then by temporary: the calls of the entry, which
					 are in the order of launches, of its lifetime; of what is
					 never used 0 */
} MemoryPlan;

/* Returns the plan, in the arena of the Ir's context; call it after form_phases. Buffers whose
 * lifetimes overlap are disjoint. Buffers of constant size are packed by offset; two buffers of
 * symbolic size share memory only if one is provably no larger than the other. share false: no two
 * buffers have memory in common. */
MemoryPlan plan_memory(const DistinctKernels *, bool share);

#endif
