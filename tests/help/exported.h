/* Graphs written as torch.export writes them, for tests of the reader: user inputs, calls of
 * operators, and what is taken from lists of results. The JSON may be changed before it is
 * packed. */
#ifndef WEFT_TESTS_HELP_EXPORTED_H
#define WEFT_TESTS_HELP_EXPORTED_H

#include <jansson.h>

#include "ir/op/op.h"
#include "tests/help/zip_file.h"

/* How arguments that are no tensors are written. */
typedef enum {
	ARGS_SHORT,  /* by name, and not at all where they have their default */
	ARGS_ALL,    /* by name, all of them; what may be absent is marked so */
	ARGS_PLACED, /* by their places, all of them */
	ARGS_NAMED   /* numbers and bools are names of symbolic ones */
} ArgsForm;

/* A model's JSON with one graph, which the caller owns. Returns NULL if the notation has no word
 * for something (a symbol's square root). */
json_t *exported(Graph *, ArgsForm);

/* Parts of it. */
json_t *exported_graph(json_t *root);
json_t *exported_node(json_t *root, size_t k);
/* The meta data of a tensor by that name. */
json_t *exported_tensor(json_t *root, const char *name);
void exported_set_strides(json_t *tensor, const int64_t *stride, uint32_t rank, int64_t offset);
/* One more user input, of the type of the tensor `like`. */
void exported_add_input(json_t *root, const char *name, const char *like);
/* A call of `target` on operands by their names ("self=x", "dim=1": numbers), whose result `name`
 * is like a tensor; NULL: it has none. */
void exported_add_call(json_t *root, size_t at, const char *target, const char *const *args, const char *name, const char *like);
void exported_add_output(json_t *root, const char *name);

/* The archive, the model's name in it. */
ZipBytes exported_archive(const json_t *root, const char *model);

#endif
