/* Running statistics: what normalisations keep of their inputs while a model trains. */
#ifndef WEFT_IR_OPS_ATEN_RUNNING_H
#define WEFT_IR_OPS_ATEN_RUNNING_H

#include "ir/graph/build.h"

/* Operators that update running statistics in PyTorch, by the name of their schema. */
typedef struct {
	const char *name, *flag; /* flag: the argument that says whether they do; NULL: always */
	bool instance;           /* statistics of each sample, averaged over the batch */
	bool some;               /* an input without elements leaves the statistics unchanged */
} Running;

/* Returns NULL if no operator of that name updates statistics. */
const Running *running_of(const char *name);
/* The new statistics, as a tuple: (1 - momentum) * old + momentum * statistics of x. mean and var:
 * the old ones; none: absent, its result has no elements. */
Node b_running_stats(Build *, const Running *, Node x, Node mean, Node var, double momentum);

#endif
