/* Function transforms: graphs made of graphs, in any order and depth (docs/transforms.md). Each
 * returns a new, verified graph of the same Ir whose operators are primitives and composites that
 * have rules of their own, and leaves the old one as it is; NULL after ctx_error, which names a
 * node and what to do. Constants, symbols and guards are shared. What an op contributes stands in
 * its block (ir/ops/op.h: .deriv, .vjp, .adjoint, .jvp, .tangent, .linear, .batch).
 *
 * State that a graph replaces is computed once and passes through: its new values are results
 * without derivative, and no tangent flows into or out of it. */
#ifndef WEFT_TRANSFORM_TRANSFORM_H
#define WEFT_TRANSFORM_TRANSFORM_H

#include "passes/pass.h"

/* What is differentiated by. */
typedef struct {
	const bool *input;    /* by graph input; NULL: all that callers pass that are of a float or
	                         complex dtype */
	uint32_t nparam;      /* and constants: */
	const ConstId *param;
	const bool *output;   /* vjp: by graph output, which have cotangents; others are taken as
	                         not there, which zeros are not where a derivative is infinite.
	                         NULL: all of a float or complex dtype that are no state */
} Wrt;

/* Results and, from cotangents of them, the gradients: of sum over k of Re sum(conj(ct_k) * y_k),
 * as PyTorch defines it for complex numbers too (dL/d re + i dL/d im). Inputs: those of g, then
 * "ct.NAME", with the type of the result, for each result NAME of a float or complex dtype that is
 * no state (and chosen by `output`). Outputs: those of g, then "g.NAME" for each input in `wrt` in
 * order, then one for each of its constants; zeros where nothing depends on it. Error: an input of
 * another dtype. */
Graph *transform_vjp(const Graph *g, const Wrt *);

/* Results and, from tangents of the inputs in `wrt`, their tangents. Inputs: those of g, then
 * "t.NAME" for each input in `wrt`, then for its constants. Outputs: those of g, then "jy.NAME" for
 * each result NAME of a float or complex dtype that is no state. */
Graph *transform_jvp(const Graph *g, const Wrt *);

/* Marks for what is saved: nodes checkpoint(x, at=...), which are x everywhere else and compile to
 * it.
 *
 *   %a = checkpoint(%x, at="begin")   a region begins: each value that enters it, parameters
 *                                     excepted
 *   %h = contract(%a, %w)             inside: whatever is made of such a value, contractions and
 *                                     reductions too; never saved but
 *   %k = checkpoint(%h, at="keep")    where it says so, computed again from what was saved of what
 *                                     enters
 *   %y = checkpoint(%r, at="end")     outside again: each value that leaves it
 *
 * Regions nest: a node is as many regions deep as the deepest of its operands, "begin" is one
 * deeper, "end" one less. What derivatives read of a region is inside by itself. A node with an
 * effect is executed once, and its results are saved. Build them with b_node; a value may be marked
 * several times over. */

/* A block of which the inverse is known is a region that ends in a node `invertible`. The inverse
 * takes the block's results, then what it reads besides, and gives what went into the block:
 *
 *   %a = checkpoint(%x, at="begin") : f32[4]
 *   %h = mul(%a, %w) : f32[4]
 *   %b = invertible([%h], [%a], [%w], inverse=graph @inverse(%h: f32[4], %w: f32[4]) {
 *     %a = div(%h, %w) : f32[4]
 *     return %a
 *   }, name="scale") : (f32[4])
 *   %y = get(%b, index=0) : f32[4]
 *
 * To everything else its results are its first operands, and the inverse is not there. In
 * transform_partition's second graph %a and %x are what the inverse makes of %y; %y is saved,
 * unless it goes into a later block, of which the inverse gives it. What the inverse reads besides
 * is computed again or saved like any value, but saved where it depends on what goes into a block.
 * Derivatives are those of the block, never of the inverse; a batch has an inverse of the batch. */

/* g with further outputs "inverse.NAME.K", f64[]: for each value that goes into a block called NAME
 * the largest distance between it and what the inverse makes of the results. Error: there is no
 * block. */
Graph *transform_check_inverses(const Graph *g);

/* The graph of transform_vjp in two, of which `joint` is used up: part[0] has the first `ninput`
 * inputs and `noutput` outputs of it, those of the model, and further outputs saved.0, saved.1,
 * ...; part[1] takes the model's inputs that callers pass, all that was saved, and the cotangents,
 * and gives the gradients. budget: how much may be saved at the sizes that the model hints at; up
 * to 1 a part of what would be without it, above that bytes; negative: what is fastest. What is
 * computed again is fused or cheap, but within marked regions and where the budget asks for it.
 * False after ctx_error. */
bool transform_partition(Graph *joint, uint32_t ninput, uint32_t noutput, double budget, Graph *part[2]);

/* What members of a batch draw where the key of random numbers is the same for all. */
typedef enum { RANDOM_ERROR, RANDOM_SAME, RANDOM_DIFFERENT } Randomness;

/* Where a batch stands, counted among the dimensions with it, from behind if negative: that one of
 * the input or result is the batch. Inside the graph it is always first, so another place is a
 * permutation at the edge. */
enum { DIM_NO_BATCH = INT32_MIN };
typedef struct {
	const int32_t *in;  /* by graph input, of those that have a batch; NULL: 0 */
	const int32_t *out; /* by graph output, of those that callers get; DIM_NO_BATCH: the result
	                       is the same for all members, and is given once. NULL: 0 */
} BatchDims;

/* g for each of `size` sets of inputs: where batched[k], input k has a new dimension of that
 * extent, others are shared. Every result that callers get has it (one that depends on no batched
 * input is repeated); dims NULL: as the first dimension. What a graph writes into an input has the
 * batch where that has it. Error: state whose new value would differ between them; a dimension that
 * there is not. */
Graph *transform_vmap_at(const Graph *g, const bool *batched, Sym size, Randomness, const BatchDims *dims);
/* First everywhere. */
Graph *transform_vmap(const Graph *g, const bool *batched, Sym size, Randomness);

#endif
