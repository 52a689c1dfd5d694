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

/* Appends the names of the operators, of one result, through which transform_vjp would have to go
 * and that have no derivative, each once, with commas between them. Returns their number. */
uint32_t transform_underived(const Graph *g, const Wrt *, Text *);

/* Returns the graph of directional derivatives (forward mode).
 * Inputs: those of g; then "t.NAME", the tangent, for each input in the Wrt, then for each
 * constant. Outputs: those of g; then "jy.NAME" for each output NAME of a float or complex dtype
 * that is no state; zeros if no value of the Wrt reaches it. Wrt.output is not read. Returns NULL
 * after an error: an input in the Wrt whose dtype is neither float nor complex; an operator without
 * a derivative. */
Graph *transform_jvp(const Graph *g, const Wrt *);

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
