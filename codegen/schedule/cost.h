/* Private to schedules: what a kernel computes and moves, as functions of the size symbols. */
#ifndef WEFT_CODEGEN_COST_H
#define WEFT_CODEGEN_COST_H

#include "codegen/schedule/sched.h"
#include "ir/sym/cost.h"

/* Of one launch. Operations: two for each product that joins a sum, one for each element of any other stage that
 * computes; moves, checks, random bits and sorting have none. Bytes: the elements that are read or written, each
 * once, however often; of a table the rows that indices select, no more than it has. */
typedef struct {
	const Cost *flops, *bytes;
} KernelCost;

/* After sched_init. */
KernelCost kernel_cost(const Sched *);

#endif
