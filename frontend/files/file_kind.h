/* Recognises files that are no models, for messages. */
#ifndef WEFT_FRONTEND_FILES_FILE_KIND_H
#define WEFT_FRONTEND_FILES_FILE_KIND_H

#include <stdbool.h>
#include <stddef.h>

/* Returns a constant sentence for messages that says which kind of file it is, and what to do:
 * "it is compiled code (ELF)", "it is empty", "it is a binary file of an unknown kind". Returns
 * NULL if the bytes may be a text. data: the first `size` bytes of a file that is no model. */
const char *file_kind(const void *data, size_t size);
/* Whether the bytes may be an ONNX model: a protobuf whose first field is the version of the format
 * (1 to 20), followed by a field of the model. */
bool is_onnx(const void *data, size_t size);
/* Whether a text of `size` bytes may be the text form of a graph: what follows white space and
 * comments (";" to the end of the line) begins with "graph". */
bool is_graph_text(const char *text, size_t size);

#endif
