/* Private to pass simplify: its rules. */
#ifndef WEFT_PASSES_SIMPLIFY_RULES_H
#define WEFT_PASSES_SIMPLIFY_RULES_H

#include "passes/common/pass_ctx.h"
#include "passes/common/questions.h"

/* A rule replaces node n: `apply` returns a node of the same type with the same value, or none if
 * the rule does not match. It may add nodes by b, which adds them in front of n; if it returns
 * none, the nodes that it added have no readers and are left to dce. */
typedef struct {
	const char *name; /* "add_zero" */
	Op op;            /* the operator of n; OP_none: any */
	Node (*apply)(Build *b, Node n);
} Rule;

/* Lists of rules; the last has a NULL name. */
extern const Rule scalar_rules[], shape_rules[], row_rules[], reduce_rules[], conv_rules[],
	low_rules[], update_rules[];

#endif
