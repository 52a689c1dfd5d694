/* Import of torch.export archives (.pt2). The result is functional: views, in-place operators,
 * strides and written state of the file are resolved. */
#ifndef WEFT_FRONTEND_PT2_PT2_H
#define WEFT_FRONTEND_PT2_PT2_H

#include "ir/graph/graph.h"

/* What members of a batch draw (transform/transform.h): nothing, the same numbers, different
 * ones. */
typedef enum { PT2_NONE, PT2_SAME, PT2_DIFFERENT } Pt2Randomness;

/* Transforms of graphs, for models that hold torch.vmap or torch.func.jvp. Each returns a new graph
 * of the same Ir, or NULL after an error.
 *
 * vmap: g for a batch of `size` members. Input k has the batch as dimension in[k] if batched[k],
 * output k as dimension out[k]; negative: from the last.
 *
 * jvp: g with one more input, a tangent, for each input k with wrt[k], and one more output, the
 * tangent, for each output of a float or complex dtype. */
typedef struct {
	Graph *(*vmap)(const Graph *g, const bool *batched, Sym size, Pt2Randomness,
		       const int32_t *in, const int32_t *out);
	Graph *(*jvp)(const Graph *g, const bool *wrt);
	/* Gives nodes of g that draw random numbers a key: one more input of g, u64[2], the last.
	 * Adds nothing if g draws none. Returns false after an error. */
	bool (*attach)(Graph *g);
} Pt2Transforms;

typedef struct {
	const char *model; /* the name of the model in the archive; NULL: the only one */
	/* Guards to ignore, by their text in the file, and assertions on sizes, by their message.
	 * One that cannot be checked is an error unless it is named here; a text that names none is
	 * an error. */
	const char *const *ignore_guard;
	uint32_t nignore;
	const Pt2Transforms *transforms; /* NULL: a model that holds transforms is an error */
} Pt2Options;

/* Reads an archive and returns the graph of one of its models, in the Ir. options may be NULL.
 * Inputs: the caller's, in the order of the call, then the parameters and buffers that the graph
 * writes. Outputs: the caller's, then one for each written input. Other parameters and buffers are
 * constants, which refer to the mapped file; it stays mapped as long as the context. Returns NULL
 * after errors. */
Graph *pt2_load(Ir *, const char *path, const Pt2Options *);
/* Does as pt2_load with the contents of an archive in memory, to which constants refer: they
 * must stay as long as the context. path: for messages. Returns NULL after errors. */
Graph *pt2_load_bytes(Ir *, const char *path, const void *data, size_t size, const Pt2Options *);

#endif
