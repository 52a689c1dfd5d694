/* Import of torch.export archives (.pt2). Resolves views, in-place operators, strides and written
 * state: the graph is functional. */
#ifndef WEFT_FRONTEND_PT2_PT2_H
#define WEFT_FRONTEND_PT2_PT2_H

#include "ir/graph/graph.h"

typedef struct {
	const char *model; /* the model in the archive; NULL: the only one */
	/* Guards to ignore, by their text in the file. A guard that cannot be checked is an error
	 * unless it is named here; a text that is no guard of the file is an error. */
	const char *const *ignore_guard;
	uint32_t nignore;
} Pt2Options;

/* Returns the graph of one model of an archive. options may be NULL. Inputs: the caller's, in the
 * order of the call, then the parameters and buffers that the graph writes. Outputs: the caller's,
 * then one for each written input. Constants refer to the mapped file, which is valid as long as
 * the context. Returns NULL after errors. */
Graph *pt2_load(Ir *, const char *path, const Pt2Options *);
/* The same from memory, which must outlive the context. path: for messages. */
Graph *pt2_load_bytes(Ir *, const char *path, const void *data, size_t size, const Pt2Options *);

#endif
