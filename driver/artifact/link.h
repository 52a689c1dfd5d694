/* Private to the driver: linking and archiving without a C compiler. */
#ifndef WEFT_DRIVER_ARTIFACT_LINK_H
#define WEFT_DRIVER_ARTIFACT_LINK_H

#include "driver/artifact/compile.h"

/* The files of an artifact. Paths are complete. */
typedef struct {
	ARRAY(const char *) object; /* objects of the model: kernels, tables, weights */
} LinkInput;

/* Links the model's objects and the runtime for its target into the shared object `out`. folder:
 * for temporary files. Returns false after errors. */
bool link_shared(Compilation *, const char *folder, const LinkInput *, const char *out);
/* Links the model's objects into the relocatable object `out`. Returns false after errors. */
bool link_object(Compilation *, const char *folder, const LinkInput *, const char *out);
/* Makes the static library `out` of that object and the compiled runtime, with an index. Returns
 * false after errors. */
bool link_archive(Compilation *, const char *folder, const LinkInput *, const char *out);

#endif
