/* Complex arithmetic as real arithmetic on real and imaginary parts, which is what is compiled
 * (passes/split_complex.c). The block of an operator (ir/op/op.h) says how: a linear operator
 * (.linear) is applied to each part, a bilinear one is four products, an element-wise function has
 * a text (.complex), other operators have a rule (.parts). Nodes are added at b (ir/build/build.h).
 */
#ifndef WEFT_OPS_RULES_PARTS_H
#define WEFT_OPS_RULES_PARTS_H

#include "ops/rules/rules.h"

/* A value. Of a real value, `re` is the value itself and `im` is no node. */
typedef struct Parts {
	Node re, im; /* of a real dtype and the value's shape */
	Node pairs;  /* the same numbers as [..., 2]; no node if nothing has computed them yet */
} Parts;

/* Computes n on parts: in[k] are the parts of operand k; all nodes of in[k] are none if the operand
 * is absent. *out receives the parts of the result; out->pairs may be no node. n has a complex
 * operand or a complex result. Returns false if the parts are not known, or after an error; n then
 * stays complex, for the interpreter, and *out has no meaning. */
bool node_parts(Build *b, Node n, const Parts *in, Parts *out);

/* Rules (.parts), with the contract of node_parts, but the caller zeroes *out first; a rule sets
 * only the fields that it gives. */

/* Sets out->re to n on the real parts of its complex operands, and out->im to n on the imaginary
 * parts. Both read a real operand itself. An attribute that is a complex dtype becomes the dtype of
 * its real part. Returns false after an error. */
bool parts_each(Build *b, Node n, const Parts *in, Parts *out);
/* Sets out->re to a bool: both parts are equal. All operands are complex. Returns false after an
 * error. The rule of eq. */
bool parts_eq(Build *b, Node n, const Parts *in, Parts *out);
/* Sets out->re to a bool: a part differs. All operands are complex. Returns false after an
 * error. The rule of ne. */
bool parts_ne(Build *b, Node n, const Parts *in, Parts *out);

/* Returns the product of two complex values with both parts, which broadcast; `pairs` of the result
 * is no node. After an error a part of the result is no node. */
Parts parts_multiply(Build *b, Parts x, Parts y);
/* Returns the complex value whose parts are the elements 0 and 1 of the last dimension of pairs
 * [..., 2]; its field `pairs` is that node. */
Parts parts_of_pairs(Build *b, Node pairs);
/* Returns a complex value, which has both parts, as one tensor [..., 2]: its field `pairs` if that
 * is a node, else a new node. *p stays unchanged. */
Node parts_to_pairs(Build *b, const Parts *p);

#endif
