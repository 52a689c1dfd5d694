/* Merges and orders axes, and chooses the vector axis. */
#ifndef WEFT_CODEGEN_PLAN_AXES_H
#define WEFT_CODEGEN_PLAN_AXES_H

#include "codegen/plan/plan.h"

/* Whether a stage and the next one store pairs: both are maps that run once per outer point, and
 * the second stores behind what the first stores; pairs of neighbours along the axis are
 * neighbours. Then the vectors of both stages are interleaved and stored as two contiguous vectors.
 * False for values of more than 4 bytes, of which as many as there are lanes are no vector
 * register. False if the stage is the last one. */
bool axes_store_pairs(const Nest *, uint32_t stage, uint32_t axis);
/* Whether the stage is one of two that axes_store_pairs says store pairs. */
bool axes_in_pair(const Nest *, uint32_t stage, uint32_t axis);
/* Whether a and b may become one axis, b fastest: stepping past the end of b continues at the next
 * a in every access, and the value of neither axis is computed with. False also if that is not
 * known. */
MUST_LOOK bool axes_can_merge(const Nest *, uint32_t a, uint32_t b);
/* Merges two of the axes `among` (by bit, outer axes) for which axes_can_merge holds into a new
 * axis, which then belongs to `among`, again and again, until there are no such two or the nest has
 * MAX_AXES axes. The kernel stays as it is. */
void axes_merge_outer(Nest *, uint64_t among);
/* Makes REDUCE and MAP stages over rows of the same shape run over the same inner axes, then merges
 * two by two all inner axes that only such stages run over, also those of a single stage, where
 * axes_can_merge holds and while the nest has less than MAX_AXES axes. Leaves stages with
 * rows that stages keep and their axes as they are. k is the nest's own kernel, a kernel_copy: the
 * lists of axes of its stages, and the indices of its expressions, are updated. */
void axes_join_rows(Nest *, Kernel *k);
/* Returns the number of elements of the row that a stage keeps (stage_keeps_row): the product of
 * the upper bounds of its axes' extents, which must be bounded. */
uint64_t axes_local_bound(const Nest *, const Stage *);
/* Whether the transform of stage `stage`, the first of four (STAGE_FFT), is to have its lanes along
 * the line, and not a line in each lane: the length is a number, a multiple of 256 with prime
 * factors up to 13, for which the table of roots has what fft_lines says; pairs are contiguous
 * along the line, in the operand, which is stored, and in the result; and the target has vectors
 * of 16 lanes at most. */
bool axes_transforms_along(const Nest *, const Target *, uint32_t stage);
/* Chooses the axis that runs over vector lanes: the one with unit stride in most accesses, weighed
 * by how much of a vector its extent fills; without such an axis an outer axis whose elements are
 * gathered, if that pays. Of a kernel with a STAGE_FFT: the longest outer axis, if it fills half of
 * a vector; none if axes_transforms_along. Returns NO_AXIS if there is none: gathering costs more
 * than vectors save, a stage sorts, or local arrays would be too large with lanes. */
uint32_t axes_choose_vector(const PlanInput *);
/* Sets order[], room for MAX_AXES, to the outer axes without `vector` (an axis, or NO_AXIS),
 * largest stride first. The stride of an axis is that, at hint sizes, in the last store that
 * depends on the axis, else in the first load that does; an axis on which no access depends comes
 * first. Returns their number. */
uint32_t axes_outer_order(const Nest *, uint32_t vector, uint32_t *order);

#endif
