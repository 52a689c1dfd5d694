/* Private to the driver: linking and archiving without a C compiler. */
#ifndef WEFT_DRIVER_ARTIFACT_LINK_H
#define WEFT_DRIVER_ARTIFACT_LINK_H

#include "driver/artifact/compile.h"

/* What an artifact is made of; paths of objects are in the folder of temporary files. */
typedef struct {
	ARRAY(const char *) object; /* of the model: kernels, tables, weights */
} LinkInput;

/* A shared object of the model and the runtime for its target. False after ctx_error. */
bool link_shared(Compilation *, const char *folder, const LinkInput *, const char *out);
/* The model's objects as one. */
bool link_object(Compilation *, const char *folder, const LinkInput *, const char *out);
/* That one and the runtime's, with an index of what they define. */
bool link_archive(Compilation *, const char *folder, const LinkInput *, const char *out);

#endif
