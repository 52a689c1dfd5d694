/* Boxes: parts of a tensor whose elements lie together along each dimension. */
#ifndef WEFT_OPS_RULES_BOX_H
#define WEFT_OPS_RULES_BOX_H

#include "ir/op/op.h"

/* Whether n is a box of operand 0: a slice with steps of 1. Sets start[k] to where the box begins
 * along dimension k. */
bool node_is_box(const Graph *, Node n, Sym start[MAX_RANK]);
/* Whether n is operand 0 with a box replaced by operand 1, at a place that is a number or a size
 * and proved to need no clamping. Sets start[k] to where the box begins along dimension k. */
bool node_replaces_box(const Graph *, Node n, Sym start[MAX_RANK]);
#endif
