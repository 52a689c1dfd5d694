/* Private to schedules: axes merged, ordered, and the one for vector lanes chosen. */
#ifndef WEFT_CODEGEN_CPU_AXES_H
#define WEFT_CODEGEN_CPU_AXES_H

#include "codegen/cpu/sched.h"

/* a is contiguous after b in every access, and neither is used as a number. */
MUST_LOOK bool axes_can_merge(const Sched *, uint32_t a, uint32_t b);
/* A new axis that runs over both; the old ones are gone. Returns its number. */
uint32_t axes_merge(Sched *, uint32_t a, uint32_t b);
/* Merge outer axes that are contiguous in all accesses. */
void axes_merge_outer(Sched *);
/* Reductions and maps over rows of the same shape run over the same axes; of these, contiguous ones are merged. */
void axes_join_rows(Sched *);
int64_t axes_hint(const Sched *, uint32_t axis);
/* Elements of the local array of a stage: the most that its axes may have. */
uint64_t axes_local_bound(const Sched *, const Stage *);
/* The axis with unit stride in most accesses, or NO_AXIS when gathers would outweigh them. */
uint32_t axes_choose_vector(const Sched *);
/* Outer axes but the vector axis, largest stride first; returns how many. */
uint32_t axes_outer_order(const Sched *, uint32_t *order);

#endif
