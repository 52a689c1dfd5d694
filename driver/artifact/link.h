/* Private to the driver: linking and archiving without a C compiler. */
#ifndef WEFT_DRIVER_ARTIFACT_LINK_H
#define WEFT_DRIVER_ARTIFACT_LINK_H

#include <limits.h>

#include "driver/artifact/compile.h"

/* The files of an artifact, by paths that can be opened. */
typedef struct {
	ARRAY(const char *) object; /* objects of the model: kernels, tables, weights */
} LinkInput;

/* Whether a program is there, in $PATH, or where a name with a slash says; then writes its path. */
bool on_path(const char *name, char path[PATH_MAX]);
/* Links the model's objects, the runtime for its target and the libraries of WeftOptions.link
 * into the shared object `out`, which is overwritten. folder: an existing one for temporary
 * files, which the caller removes. Called after compile_lower. Returns false after errors: also
 * if this build has no runtime for the target, or there is no linker. */
bool link_shared(Compilation *, const char *folder, const LinkInput *, const char *out);
/* Links the model's objects, without the runtime, into the relocatable object `out`, which is
 * overwritten. folder: as in link_shared. Called after compile_lower. Returns false after
 * errors. */
bool link_object(Compilation *, const char *folder, const LinkInput *, const char *out);
/* Makes the static library `out` of two members, the object that link_object makes and the
 * compiled runtime for the target, with an index of symbols. folder: as in link_shared. Called
 * after compile_lower. Returns false after errors: also if this build has no runtime for the
 * target. */
bool link_archive(Compilation *, const char *folder, const LinkInput *, const char *out);

#endif
