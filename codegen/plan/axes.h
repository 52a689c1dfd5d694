/* Merges and orders axes, and chooses the vector axis. */
#ifndef WEFT_CODEGEN_PLAN_AXES_H
#define WEFT_CODEGEN_PLAN_AXES_H

#include "codegen/plan/plan.h"

/* Whether a and b may become one axis, b fastest: stepping past the end of b continues at the next
 * a in every access, and the value of neither axis is computed with. False also if that is not
 * known. */
MUST_LOOK bool axes_can_merge(const Nest *, uint32_t a, uint32_t b);
/* Merges those of the axes `among` (by bit, outer axes) for which axes_can_merge holds, two by two,
 * until none is left or the nest has MAX_AXES axes. The kernel stays as it is. */
void axes_merge_outer(Nest *, uint64_t among);
/* Makes reductions and maps over rows of the same shape run over the same axes, and merges those of
 * these axes for which axes_can_merge holds. Changes the nest and its kernel, which is given as the
 * second argument. */
void axes_join_rows(Nest *, Kernel *);
/* The number of elements of a stage's local array (RESULT_LOCAL): the product of the upper bounds
 * of its axes' extents, which must be bounded. */
uint64_t axes_local_bound(const Nest *, const Stage *);
/* Chooses the axis that runs over vector lanes: the one with unit stride in most accesses, weighed
 * by how much of a vector its extent fills. Returns NO_AXIS if there is none: elements would have
 * to be gathered and that costs more than vectors save, a stage sorts, or local arrays would be too
 * large with lanes. */
uint32_t axes_choose_vector(const PlanInput *);
/* Sets order[], room for MAX_AXES, to the outer axes without `vector` (an axis, or NO_AXIS),
 * largest stride of the last store first. Returns their number. */
uint32_t axes_outer_order(const Nest *, uint32_t vector, uint32_t *order);

#endif
