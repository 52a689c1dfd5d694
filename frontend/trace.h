/* Models written as calls of operators: values are nodes, which the calls append. Operators stay as
 * they are, and get the types that their expansions have, so that passes and transforms see what a
 * model file would have. */
#ifndef WEFT_FRONTEND_TRACE_H
#define WEFT_FRONTEND_TRACE_H

#include "ir/graph/build.h"

/* An argument: values, or an attribute where there are none. */
typedef struct {
	const char *name; /* NULL: the next one that the schema has */
	bool is_values, is_list;
	const Node *value; /* one, or `n` of a list; none: absent */
	uint32_t n;
	Attr attr; /* of a dtype: its name as a string */
} TraceArg;

/* The operator "aten.add.Tensor", or an alias. A number where the schema has a tensor takes the
 * operator's .Scalar form. None after ctx_error. */
Node trace_call(Build *, const char *op, const TraceArg *, uint32_t n);

#endif
