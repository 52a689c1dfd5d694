/* What computing something costs, before there are kernels: how passes compare ways to do it.
 * Schedules have more to go by (ir/loop/predict.h). */
#ifndef WEFT_IR_WORK_H
#define WEFT_IR_WORK_H

#include "ir/target/target.h"

typedef struct {
	double operations; /* instructions of one element each (ScFn.cost); vectors do as many as
	                      they have lanes */
	double bytes;      /* read and written, in the cache that holds them */
	double phases;
} Work;

/* Cycles of one core. */
double target_cycles(const Target *, Work);

#endif
