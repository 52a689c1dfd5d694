/* Private to the driver: linking and archiving without a C compiler. */
#ifndef WEFT_DRIVER_ARTIFACT_LINK_H
#define WEFT_DRIVER_ARTIFACT_LINK_H

#include "driver/artifact/compile.h"

/* The files of an artifact. Paths are complete. */
typedef struct {
	ARRAY(const char *) object; /* objects of the model: kernels, tables, weights */
} LinkInput;

/* Links the model's objects, the runtime for its target and the libraries of WeftOptions.link into
 * the shared object `out`. folder: for temporary files, as in the other functions. Returns false
 * after errors: also if this build has no runtime for the target. */
bool link_shared(Compilation *, const char *folder, const LinkInput *, const char *out);
/* Links the model's objects into the relocatable object `out`. Returns false after errors. */
bool link_object(Compilation *, const char *folder, const LinkInput *, const char *out);
/* Makes the static library `out` of two members, the object that link_object makes and the compiled
 * runtime for the target, with an index. Returns false after errors. */
bool link_archive(Compilation *, const char *folder, const LinkInput *, const char *out);

#endif
