/* Recognises files that are no models, for messages. */
#ifndef WEFT_FRONTEND_FILES_FILE_KIND_H
#define WEFT_FRONTEND_FILES_FILE_KIND_H

#include <stdbool.h>
#include <stddef.h>

/* The first bytes of a file, size of them: returns a sentence for messages that says which kind of
 * file it is, and what to do: "it is an ONNX model: ...", "it is empty", "it is a binary file of an
 * unknown kind". Returns NULL if the bytes may be a text. */
const char *file_kind(const void *data, size_t size);
/* Whether a text may be the text form of a graph: after white space and comments (";" to the end of
 * the line) it has the word "graph". */
bool is_graph_text(const char *text, size_t size);

#endif
