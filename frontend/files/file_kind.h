/* What a file that is no model is: for messages. */
#ifndef WEFT_FRONTEND_FILES_FILE_KIND_H
#define WEFT_FRONTEND_FILES_FILE_KIND_H

#include <stdbool.h>
#include <stddef.h>

/* "compressed by xz: ...", with what to do instead; NULL when the bytes look like nothing known. */
const char *file_kind(const void *data, size_t size);
/* Can this be the text form of a graph? It begins with comments, and "graph". */
bool is_graph_text(const char *text, size_t size);

#endif
