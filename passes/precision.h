/* Computing in a lower precision, as torch.autocast does on CPUs. */
#ifndef WEFT_PASSES_PRECISION_H
#define WEFT_PASSES_PRECISION_H

#include "passes/pass.h"

/* Makes the operators of a graph compute in `low`, DT_bf16 or DT_f16, by their classes
 * (OpInfo.autocast): converts operands, and results back, so that the types of inputs, outputs and
 * of all values that stay do not change. Bodies of control flow take and give f32. The graph is one
 * of composites, as it was imported: canon has not run, and the derivatives are taken afterwards.
 * Sets Graph.unrounded, so that simplify leaves out roundings that nobody asked for.
 * Returns true if the graph changed; a graph that was lowered before does not. */
bool precision_lower(Graph *, DType low);

#endif
