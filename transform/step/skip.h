/* Private to transform/step: steps whose gradients are not finite, and the scale of the loss by
 * which small gradients of f16 are not lost. */
#ifndef WEFT_TRANSFORM_STEP_SKIP_H
#define WEFT_TRANSFORM_STEP_SKIP_H

#include "transform/step/step.h"

/* Returns whether an element of the values is not finite, bool[]. */
Node skip_not_finite(Build *, const Node *value, uint32_t n);
/* Sets out[] to the new values of the scale, f32[], and of the number of good steps since it grew,
 * i32[], by number[] of skip_scale. bad: bool[], whether the step is skipped. */
void skip_rescale(Build *, Node scale, Node good, Node bad, const double *number, Node out[2]);
/* Returns a formula that has the numbers of a scale, those of torch.amp.GradScaler. */
const Formula *skip_scale(void);

#endif
