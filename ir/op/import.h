/* Graphs made again in another Ir. */
#ifndef WEFT_IR_OP_IMPORT_H
#define WEFT_IR_OP_IMPORT_H

#include "ir/graph/graph.h"

/* Returns a copy of src in another Ir, in a new scope of symbols (sym.h), which becomes the current
 * one of `to`. Adds to `to` the constants that the graph and
 * its subgraphs have, and their other names (same_as), without holder and view_of. The data of
 * constants is not copied, and must stay valid as long as `to`. No constant of src may have a
 * recipe, and `to` has the user operators that nodes of src call, by name. */
Graph *graph_import(Ir *to, const Graph *src);
/* Does as graph_import, but in the Ir and the scope of the graph `to`: the symbol size[k] of src
 * becomes the expression by[k] of to's Ir (k < n); other symbols get names that are new there.
 * constant[], by ConstId of src's Ir: the constant of to's Ir that stands for it; where it is 0,
 * the call adds a constant there if the graph reads it, and writes it there. constant[] has an
 * element for each constant of src's Ir; constant[0] is 0. The call does not check that by[k] is in
 * the range of size[k]: the caller adds guards for that. */
Graph *graph_import_at(const Graph *to, const Graph *src, const Sym *size, const Sym *by,
		       uint32_t n, ConstId *constant);

#endif
