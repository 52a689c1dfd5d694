/* Models written as calls of operators. A value is a node, which a call adds. Operators are not
 * expanded, and get the types of their expansions, so that passes and transforms see the graph of a
 * model file. */
#ifndef WEFT_FRONTEND_TRACE_H
#define WEFT_FRONTEND_TRACE_H

#include "ir/graph/build.h"

/* An argument: values, or else an attribute. */
typedef struct {
	const char *name; /* NULL: the next argument of the schema */
	bool is_values, is_list;
	const Node *value; /* one value, or n of a list; none: absent */
	uint32_t n;
	Attr attr; /* a dtype is a string, its name */
} TraceArg;

/* Adds a call of the operator "aten.add.Tensor", or of an alias. If the schema has a tensor and the
 * argument is a number, the call is one of the .Scalar form. Returns none after errors. */
Node trace_call(Build *, const char *op, const TraceArg *, uint32_t n);

#endif
