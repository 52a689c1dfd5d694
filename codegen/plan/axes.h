/* Merges and orders axes, and chooses the vector axis. */
#ifndef WEFT_CODEGEN_PLAN_AXES_H
#define WEFT_CODEGEN_PLAN_AXES_H

#include "codegen/plan/plan.h"

/* Whether stepping past the end of b continues at the next a in every access, and neither axis is
 * used as a number. */
MUST_LOOK bool axes_can_merge(const Nest *, uint32_t a, uint32_t b);
/* Merges those of the axes `among` (by bit, outer axes) that are contiguous in all accesses. */
void axes_merge_outer(Nest *, uint64_t among);
/* Makes reductions and maps over rows of the same shape run over the same axes, and merges those
 * that are contiguous. The nest's kernel is changed, too. */
void axes_join_rows(Nest *, Kernel *);
/* The number of elements of a stage's local array: the upper bound of its axes' product. */
uint64_t axes_local_bound(const Nest *, const Stage *);
/* The axis with unit stride in most accesses; NO_AXIS if gathers would cost more than vectors
 * save. */
uint32_t axes_choose_vector(const PlanInput *);
/* The outer axes without the vector axis, largest stride first. Returns their number. */
uint32_t axes_outer_order(const Nest *, uint32_t vector, uint32_t *order);

#endif
