/* Private to the driver: linking and archiving without a C compiler. */
#ifndef WEFT_DRIVER_ARTIFACT_LINK_H
#define WEFT_DRIVER_ARTIFACT_LINK_H

#include "driver/artifact/compile.h"

/* The files of an artifact; paths are in the folder of temporary files. */
typedef struct {
	ARRAY(const char *) object; /* objects of the model: kernels, tables, weights */
} LinkInput;

/* Links the model and the runtime for its target into a shared object. Returns false after
 * errors. */
bool link_shared(Compilation *, const char *folder, const LinkInput *, const char *out);
/* Links the model's objects into one object. */
bool link_object(Compilation *, const char *folder, const LinkInput *, const char *out);
/* Makes a static library of that object and the runtime's, with an index. */
bool link_archive(Compilation *, const char *folder, const LinkInput *, const char *out);

#endif
