/* Files of the source tree that the compiler carries: what artifacts are built from. */
#ifndef WEFT_DRIVER_EMBED_H
#define WEFT_DRIVER_EMBED_H

#include <stddef.h>

typedef struct {
	const char *name;          /* without folder; NULL ends a list */
	const unsigned char *data; /* followed by a NUL */
	size_t size;
} EmbeddedFile;

extern const EmbeddedFile runtime_files[]; /* sources and headers of the runtime */
extern const EmbeddedFile
	runtime_object[]; /* one: the runtime compiled for this machine, with OpenMP */

#endif
