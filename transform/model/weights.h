/* Replaces the values of parameters and buffers. */
#ifndef WEFT_TRANSFORM_MODEL_WEIGHTS_H
#define WEFT_TRANSFORM_MODEL_WEIGHTS_H

#include "ir/interp/tensor.h"

/* Numbers of groups: of_group * unit, in f32. */
typedef struct {
	Tensor of_group; /* [..., groups]; no data: there are none */
	Tensor unit;     /* [..., units], each of equally many groups; no data: 1 */
} GroupNumbers;

/* The new value of a constant: numbers of its dtype and shape, or integers in groups. A group of
 * neighbours along the last dimension stands for integer * scale - offset, in f32. */
typedef struct {
	ConstId of;                 /* a constant that is no other name of another one (same_as) */
	Tensor value;               /* of the constant's dtype, or i8 */
	GroupNumbers scale, offset; /* no scales: the value is what the constant becomes; no
				       offsets: 0 */
} NewWeight;

/* Gives constants of the graph's Ir new values, which stay as long as the Ir. Integers in groups
 * become constants that products decode where they multiply, and with which these may round their
 * other operand to 8 bits (passes/quantize): the parameter is none any more, and has no gradient.
 * Of state, which the graph writes, they become numbers. The
 * graph reads no constant of which another's bytes are a view (view_of). Returns false after an
 * error. */
bool transform_weights(Graph *, const NewWeight *, uint32_t n);

#endif
