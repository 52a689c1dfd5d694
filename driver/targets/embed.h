/* Files of the source tree that the compiler carries: what artifacts are built from. */
#ifndef WEFT_DRIVER_TARGETS_EMBED_H
#define WEFT_DRIVER_TARGETS_EMBED_H

#include <stddef.h>

#include "base/arena.h"

typedef struct {
	const char *name;          /* without folder; NULL ends a list */
	const unsigned char *data; /* followed by a NUL */
	size_t size;
} EmbeddedFile;

extern const EmbeddedFile runtime_files[]; /* sources and headers of the runtime */
/* The runtime compiled: "runtime-TRIPLE.o" for this machine and for
 * every cross compiler that the build found. */
extern const EmbeddedFile runtime_object[];
/* The one for a triple (NULL: this machine); NULL: there is none. */
const EmbeddedFile *runtime_object_for(const char *triple);
/* What to do about a triple without runtime: one sentence for ctx_error. */
const char *runtime_object_missing(Arena *, const char *triple);

#endif
