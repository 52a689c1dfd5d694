/* Import of torch.export archives (.pt2). Views, in-place operators, strides and mutated state are
 * resolved here: what comes out is functional. */
#ifndef WEFT_FRONTEND_PT2_PT2_H
#define WEFT_FRONTEND_PT2_PT2_H

#include "ir/graph/graph.h"

typedef struct {
	const char *model; /* of the archive; NULL: the only one */
	/* Guards, by their text in the file, that are not checked: where they cannot be expressed,
	 * the model is refused otherwise. One that the file does not have is an error. */
	const char *const *ignore_guard;
	uint32_t nignore;
} Pt2Options;

/* The graph of one model of an archive; the options may be NULL. User inputs come first, in call
 * order, then the parameters and buffers that the graph writes; outputs are the user's, then one
 * per written input. NULL after ctx_error. Constants refer to the mapped file, which lives as long
 * as the context. */
Graph *pt2_load(Ir *, const char *path, const Pt2Options *);
/* The same from memory, which must outlive the context. */
Graph *pt2_load_bytes(Ir *, const char *path, const void *data, size_t size, const Pt2Options *);

#endif
