/* Models written as calls of operators: what weft_trace.h and weft_graph.h need to add a node for a
 * call with named, positional and absent arguments. Composites are not expanded, and get the types
 * of their expansions, so that passes and transforms see the graph of a model file. */
#ifndef WEFT_FRONTEND_TRACE_H
#define WEFT_FRONTEND_TRACE_H

#include "ir/build/build.h"

/* An argument: values, or else an attribute. */
typedef struct {
	const char *name; /* NULL: the next argument of the schema */
	bool is_values, is_list;
	const Node *value; /* one value, or n of a list, in which no node is an absent one */
	uint32_t n;
	Attr attr; /* a dtype is a string, its name */
} TraceArg;

/* Adds a call of the operator of that name ("aten.add.Tensor") or alias, or of an operator of the
 * user ("mylib::decay", whose one result is the value), with n arguments; defaults
 * fill in the others. If the name ends with ".Tensor", and a positional argument that is a tensor
 * in the schema is a number, the call is one of the overload ".Scalar", if there is one. Returns
 * the result, a tuple if there are several, or no node after an error that names b->where. */
Node trace_call(Build *, const char *op, const TraceArg *, uint32_t n);

#endif
