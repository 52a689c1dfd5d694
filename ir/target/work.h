/* The cost of a computation before there are kernels, by which passes and lowering compare
 * alternatives. Schedules use ir/loop/predict.h. A phase is a part of a kernel whose tasks run in
 * parallel; a barrier of the threads ends it. */
#ifndef WEFT_IR_WORK_H
#define WEFT_IR_WORK_H

#include "ir/target/target.h"

typedef struct {
	double operations; /* operations on one element (ScFn.cost); a vector does one for each
	                      lane */
	double bytes;      /* bytes read and written, in the cache that holds them */
	double phases;     /* the number of phases */
} Work;

/* Returns the cycles that one core takes for the work, on a GPU the whole GPU: those of the
 * operations, of the bytes and of the phases, added. */
double target_cycles(const Target *, Work);
/* Returns the cycles of an operation on as many elements as the target takes at once. */
double target_cycles_at_once(const Target *, MachineOp, DType);

#endif
