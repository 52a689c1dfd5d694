/* Import of torch.export archives (.pt2). Views, in-place operators, strides and mutated state are
 * resolved here: what comes out is functional. */
#ifndef WEFT_FRONTEND_PT2_H
#define WEFT_FRONTEND_PT2_H

#include "ir/graph.h"

/* The graph of one model of an archive; `model` NULL: the only one. User inputs come first, in call
 * order, then the parameters and buffers that the graph writes; outputs are the user's, then one
 * per written input. NULL after ctx_error. Constants refer to the mapped file, which lives as long
 * as the context. */
Graph *pt2_load(Ir *, const char *path, const char *model);
/* The same from memory, which must outlive the context. */
Graph *pt2_load_bytes(Ir *, const char *path, const void *data, size_t size, const char *model);

#endif
