/* Predicts what a plan takes, without its code, so that plans of different schedules for one kernel
 * can be compared. The model is that of ir/loop/predict.h: operations keep execution units, load
 * and store ports busy, whichever takes longest; or they wait for each other. Here each expression
 * of the kernel counts as often as the loops around it have rounds; what does not depend on the
 * inner loops is computed ahead of them. */
#ifndef WEFT_CODEGEN_PLAN_PREDICT_H
#define WEFT_CODEGEN_PLAN_PREDICT_H

#include "codegen/plan/plan.h"

/* Loops around the points of a stage, outermost first. */
typedef struct {
	uint32_t n;
	uint32_t axis[2 * MAX_AXES];
	uint32_t lane_axis, lanes; /* NO_AXIS: no loop goes by vectors */
	uint32_t turned; /* loads that are contiguous along this axis are transposed in tiles;
			    NO_AXIS: none are */
} PlanLoops;

/* Cycles in which parts of a core are busy. */
typedef struct {
	double units, loads, stores, scalar;
	double waits;  /* for results that are carried from round to round */
	double memory; /* for what is read again from beyond the first cache */
} Busy;

/* Adds what the stage's expressions, combination and store keep busy, in all rounds of the loops,
 * at in->at. chains: the independent results that a reduction combines into; 1 of a map. */
void predict_stage(const PlanInput *, const PlanLoops *, uint32_t stage, uint32_t chains, Busy *);
/* Adds what one expression keeps busy in the same way. */
void predict_value(const PlanInput *, const PlanLoops *, Kx value, Busy *);
/* Returns how long a core waits in all for that many chains that do not depend on each other, each
 * of so many cycles and among so many operations: chains that follow are begun meanwhile, as far as
 * the processor looks (Machine.window). */
double predict_waits(const Machine *, double chains, double cycles, double operations);
/* Returns the cycles that one core takes for a phase, its start included, that keeps the core as
 * busy as Busy says and reads and writes the bytes of the cost at the sizes in->at. */
double predict_phase(const PlanInput *, const Busy *, const KernelCost *);
/* Whether such a phase reads and writes more than the caches hold, at in->at, and all that it
 * computes takes a small part of that time. */
bool predict_is_stream(const PlanInput *, const Busy *, const KernelCost *);
/* Returns the rounds of a loop over the axis at the sizes in->at: over the lane axis one round for
 * each vector. */
double predict_rounds(const PlanInput *, const PlanLoops *, uint32_t axis);

/* Returns the vector instructions of an anchor's epilogue, functions included. */
uint32_t predict_epilogue(const Kernel *);
/* Whether epilogues one behind the other are such long chains that a processor, which looks at some
 * hundred operations that wait, sees too few: several are to be written in turn. */
bool predict_is_long(const Kernel *);

#endif
