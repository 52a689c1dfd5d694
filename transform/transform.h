/* Function transforms: make graphs of graphs, in any order and depth (docs/transforms.md).
 *
 * Each function that returns a Graph returns a new, verified graph of the same Ir, with the same
 * constants and symbols, and leaves the old one unchanged; it returns NULL after an error. The
 * operators of the results of transform_vjp, transform_jvp and transform_vmap are primitives, and
 * composites with rules of their own. The rules of an operator stand in its block (ir/op/op.h:
 * .deriv, .vjp, .adjoint, .jvp, .tangent, .linear, .batch).
 *
 * The result writes the state that g writes, with the same values. These outputs have no cotangent
 * and no tangent. */
#ifndef WEFT_TRANSFORM_TRANSFORM_H
#define WEFT_TRANSFORM_TRANSFORM_H

#include "passes/pass.h"

/* The values by which a graph is differentiated. */
typedef struct {
	const bool *input;    /* by graph input; NULL: all inputs of a float or complex dtype that
	                         callers pass */
	uint32_t nparam;      /* further constants, such as parameters */
	const ConstId *param; /* of a float or complex dtype, which the caller checks */
	const bool *output;   /* vjp, by graph output: whether it has a cotangent. Without one an
	                         output does not take part, which differs from a cotangent of zeros
	                         if a derivative is infinite. NULL: all. Outputs that are state or
	                         of another dtype than float or complex never have one */
} Wrt;

/* Returns the graph of gradients (reverse mode) of sum over k of Re sum(conj(ct_k) * y_k), where
 * y_k are the outputs; for complex numbers as PyTorch defines them (dL/d re + i dL/d im). Inputs:
 * those of g; then "ct.NAME", of the output's type, for each output NAME with a cotangent. Outputs:
 * those of g; then "g.NAME" for each input in the Wrt, in order, then for each constant; zeros if
 * no output depends on it. Returns NULL after an error: an input in the Wrt whose dtype is neither
 * float nor complex; an operator without a derivative; a loop of which nobody says how many rounds
 * it has at most; a size in a loop or branch that depends on data. */
Graph *transform_vjp(const Graph *g, const Wrt *);

/* Returns the graph of directional derivatives (forward mode).
 * Inputs: those of g; then "t.NAME", the tangent, for each input in the Wrt, then for each
 * constant. Outputs: those of g; then "jy.NAME" for each output NAME of a float or complex dtype
 * that is no state; zeros if no value of the Wrt reaches it. Wrt.output is not read. Returns NULL
 * after an error: an input in the Wrt whose dtype is neither float nor complex; an operator without
 * a derivative. */
Graph *transform_jvp(const Graph *g, const Wrt *);

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

/* Returns g with a further output "inverse.NAME.K", f64[], for each input K of each invertible
 * block NAME: the largest difference between the input and what the inverse makes of the block's
 * results. Blocks of one name: the later ones get "inverse.NAME.K.2" and so on. The operators stay
 * those of g. Returns NULL after an error: there is no such block. */
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

/* What the members of a batch draw if they have the same key of random numbers: nothing (an error),
 * the same numbers, different numbers. */
typedef enum { RANDOM_ERROR, RANDOM_SAME, RANDOM_DIFFERENT } Randomness;

/* The position of the batch dimension, among all dimensions; negative: from the last. Inside of the
 * graph the batch is dimension 0; other positions are permutations of inputs and outputs. */
enum { DIM_NO_BATCH = INT32_MIN };
typedef struct {
	const int32_t *in;  /* by graph input, for those with a batch; NULL: 0 */
	const int32_t *out; /* by graph output, for those that callers get; DIM_NO_BATCH: the result
	                       is the same for all members and returned once. NULL: 0 */
} BatchDims;

/* Returns the graph of g for a batch of `size` members. Input k has a batch dimension if
 * batched[k]; all members have the same value of other inputs. Every output that callers get has a
 * batch dimension (an output that depends on no batched input is repeated), at the positions of
 * BatchDims (NULL: 0), except outputs with DIM_NO_BATCH. A new value of a batched input has the
 * batch at the input's position. Returns NULL after an error: batched[k] of state; state whose new
 * value differs between members, or an output with DIM_NO_BATCH that does; a position that does not
 * exist; a value with too many dimensions or bytes with the batch; random numbers, if Randomness
 * forbids them. */
Graph *transform_vmap_at(const Graph *g, const bool *batched, Sym size, Randomness,
			 const BatchDims *dims);
/* Does as transform_vmap_at with BatchDims of NULL: the batch is dimension 0 of every input with
 * batched[k] and of every output that callers get. */
Graph *transform_vmap(const Graph *g, const bool *batched, Sym size, Randomness);

#endif
