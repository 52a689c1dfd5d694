/* Operators of complex numbers as operators of real ones: the real and the imaginary parts apart,
 * which is what is compiled (passes/split_complex.c). What becomes of an operator stands in its
 * block: a linear one (.linear) is applied to each part, a bilinear one is four products, an
 * element-wise function has a text (.complex), and others a rule (.parts). */
#ifndef WEFT_IR_OPS_PARTS_H
#define WEFT_IR_OPS_PARTS_H

#include "ir/ops/op.h"

/* A complex value; of a real one `re` is the value itself and `im` none. */
typedef struct Parts {
	Node re, im;
	Node pairs; /* both along a new last dimension of two, where that exists; or none */
} Parts;

/* n, whose operands are in[k], at b's position; one of complex operands or a complex result. False:
 * its parts are not known, so that it stays what it is, for the interpreter; nothing has been built
 * then. */
bool node_parts(Build *b, Node n, const Parts *in, Parts *out);

/* Rules. n on each of the parts of its complex operands. */
bool parts_each(Build *b, Node n, const Parts *in, Parts *out);
/* Do both parts agree: eq and ne. */
bool parts_eq(Build *b, Node n, const Parts *in, Parts *out);
bool parts_ne(Build *b, Node n, const Parts *in, Parts *out);

/* (x_re + i x_im) (y_re + i y_im). */
Parts parts_multiply(Build *b, Parts x, Parts y);
Parts parts_of_pairs(Build *b, Node pairs);
Node parts_to_pairs(Build *b, const Parts *);

#endif
