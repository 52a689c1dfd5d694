/* Running statistics: what normalisations keep of their inputs while a model trains. */
#ifndef WEFT_OPS_RULES_RUNNING_H
#define WEFT_OPS_RULES_RUNNING_H

#include "ir/build/build.h"

/* Operators that update running statistics in PyTorch, by the name of their schema. */
typedef struct {
	const char *name, *flag; /* flag: the argument that says whether they do; NULL: always */
	bool instance;           /* statistics of each sample, averaged over the batch */
	bool some;               /* an input without elements leaves the statistics unchanged */
} Running;

/* Returns the row of the operator of that name, "aten.batch_norm"; NULL if it updates no
 * statistics. */
const Running *running_of(const char *name);
/* Returns the tuple of the new running mean and (unbiased) variance: (1 - momentum) * old +
 * momentum * the statistic of x [N, C, ...], as the row says. mean, var: the old ones, [C]; no
 * node: the statistic is not kept, and its result has no elements. x without C is an error. */
Node b_running_stats(Build *, const Running *, Node x, Node mean, Node var, double momentum);

#endif
