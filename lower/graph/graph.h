/* Lowering of a whole graph, by the functions of all roots: those of roots.c, of loops and calls
 * (lower/priv.h), and of factorisations (lower/factor/factor.h). These lower graphs in turn, so
 * lowering gets the table of them from here and includes none of them. */
#ifndef WEFT_LOWER_GRAPH_GRAPH_H
#define WEFT_LOWER_GRAPH_GRAPH_H

#include "lower/lower.h"
#include "lower/roots.h"

/* Returns kernels, control flow and buffer layouts of a graph, in the arena of the Ir's context.
 * The options are not NULL. The graph must consist of primitives, as the passes leave it, must not
 * change any more, and must outlive the result; lower_graph adds guards to it, for what operators
 * require of sizes. Returns NULL after one error: operators that are no primitives (all are named);
 * an operator on complex numbers; a size that has no value; an output that is none; state without
 * first contents. */
Lowered *lower_graph(Graph *, const LowerOptions *);
/* Returns the functions of an operator; NULL if its role is not LOWER_ROOT. */
const RootFn *root_fn(Op);

#endif
