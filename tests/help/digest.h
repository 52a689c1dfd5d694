/* A tensor as one line, "f32[3] 2.25 3": its type, the sum of its finite values with weights, and a
 * code where they are not finite (1 for NaN, 2 for infinity, 3 for minus infinity, with the same
 * weights); of integers the sum modulo 2^64. tests/make/make_edges.py writes such lines. */
#ifndef WEFT_TESTS_HELP_DIGEST_H
#define WEFT_TESTS_HELP_DIGEST_H

#include "ir/interp/tensor.h"

/* Whether the tensor is what the line says, up to a few roundings of each value, and `slack` of the
 * sum. "none": it is. */
bool digest_agrees(Ctx *, const Tensor *, const char *line, double slack);
/* Returns its line, in the context's arena. */
const char *digest_text(Ctx *, const Tensor *);

#endif
