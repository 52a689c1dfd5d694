/* Recognises files that are no models, for messages. */
#ifndef WEFT_FRONTEND_FILES_FILE_KIND_H
#define WEFT_FRONTEND_FILES_FILE_KIND_H

#include <stdbool.h>
#include <stddef.h>

/* The kind of file, and what to do: "compressed by xz: ...". NULL if the bytes are of no known
 * kind. */
const char *file_kind(const void *data, size_t size);
/* Whether the text may be the text form of a graph: comments, then "graph". */
bool is_graph_text(const char *text, size_t size);

#endif
