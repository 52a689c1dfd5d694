/* Files of the source tree that are part of the compiler's binary, from which artifacts are built.
 * Lists end with a name NULL. A triple names machine, system and ABI: "aarch64-linux-gnu". */
#ifndef WEFT_DRIVER_TARGETS_EMBED_H
#define WEFT_DRIVER_TARGETS_EMBED_H

#include <stddef.h>

#include "base/arena.h"

typedef struct {
	const char *name;          /* without folder; NULL ends the list */
	const unsigned char *data; /* followed by a NUL */
	size_t size;
} EmbeddedFile;

/* Sources and headers of the runtime for processors, with comments where scripts/embed.py leaves
 * them. */
extern const EmbeddedFile runtime_files[];
/* What C that is emitted for models on GPUs includes. */
extern const EmbeddedFile runtime_cuda_headers[];
/* The runtime compiled: "runtime-TRIPLE.o" for this machine, the first, and for every cross
 * compiler that the build found. */
extern const EmbeddedFile runtime_object[];
/* The runtime for models on GPUs compiled, for this machine: the first file. */
extern const EmbeddedFile runtime_cuda_object[];
/* Returns the compiled runtime for a triple (NULL: this machine), or NULL if this build has none
 * for it. */
const EmbeddedFile *runtime_object_for(const char *triple);
/* Returns a sentence for an error, in the arena: what to do about a triple (not NULL) for which
 * runtime_object_for returns NULL. */
const char *runtime_object_missing(Arena *, const char *triple);

#endif
