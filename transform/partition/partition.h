/* Training in two graphs: what the first saves for the second, and what the second computes again.
 * Marks in the model say so for blocks of it. */
#ifndef WEFT_TRANSFORM_PARTITION_PARTITION_H
#define WEFT_TRANSFORM_PARTITION_PARTITION_H

#include "ir/graph/graph.h"

/* Checkpoints: nodes checkpoint(x, at=...) tell transform_partition what to compute again.
 * Everywhere else they are x and cost nothing.
 *
 *   %a = checkpoint(%x, at="begin")   x enters the marked block (parameters are not marked)
 *   %h = contract(%a, %w)             values in the block are not saved but computed again,
 *                                     contractions and reductions too
 *   %k = checkpoint(%h, at="keep")    except this value, which may be saved
 *   %y = checkpoint(%r, at="end")     r leaves the block
 *
 * Blocks nest: the depth of a node is the largest depth of its operands; "begin" is one deeper,
 * "end" one less deep. Nodes of derivatives that read a value of a block are in the block. A node
 * with an effect is executed once, and its results are saved. A value may be marked several
 * times. */

/* A block with a known inverse ends in a node `invertible`. The inverse takes the block's results
 * and further values, and returns the block's inputs:
 *
 *   %a = checkpoint(%x, at="begin") : f32[4]
 *   %h = mul(%a, %w) : f32[4]
 *   %b = invertible([%h], [%a], [%w], inverse=graph @inverse(%h: f32[4], %w: f32[4]) {
 *     %a = div(%h, %w) : f32[4]
 *     return %a
 *   }, name="scale") : (f32[4])
 *   %y = get(%b, index=0) : f32[4]
 *
 * Only transform_partition uses the inverse; everywhere else the results are the first operands.
 * The second graph of transform_partition computes %a and %x from %y by the inverse. %y is saved,
 * unless it enters a later block whose inverse gives it. Further values of the inverse are computed
 * again or saved like any value; they are saved if they depend on the block's inputs. Derivatives
 * are those of the block, never of the inverse; a batch has the inverse of the batch. */

/* Returns a new, verified graph: g with a further output "inverse.NAME.K", f64[], for each input K
 * of each invertible block NAME: the largest difference between the input and what the inverse
 * makes of the block's results. Blocks of one name: the later ones get "inverse.NAME.K.2" and so
 * on. The operators stay those of g. Returns NULL after an error: there is no such block. */
Graph *transform_check_inverses(const Graph *g);

/* Splits a graph of transform_vjp into two, for training, and sets part[]. joint: that graph; it is
 * changed and must not be used afterwards. ninput, noutput: the number of the model's inputs and
 * outputs.
 *
 * part[0] (forward): the model, with further outputs saved.0, saved.1, ...; saved.0, i64[], is a
 * number that says which model they are of.
 * part[1] (backward): takes the inputs that callers pass, then saved.0, saved.1, ..., then the
 * cotangents; fails if saved.0 is another model's; returns the gradients.
 *
 * budget: the most bytes to save at hint sizes; 0 to 1: that fraction of the bytes that are saved
 * without a budget, or as few as possible if these are more; negative: no budget, the fastest
 * choice. Values that are computed again are fused or cheap, except in marked blocks and where the
 * budget needs more. Returns false after an error: fewer bytes than a budget above 1 cannot be
 * saved; a gradient, or a value that has to be saved, has a size that depends on data. */
bool transform_partition(Graph *joint, uint32_t ninput, uint32_t noutput, double budget,
			 Graph *part[2]);

#endif
