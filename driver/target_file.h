/* Targets by name or from a file that describes one. */
#ifndef WEFT_DRIVER_TARGET_FILE_H
#define WEFT_DRIVER_TARGET_FILE_H

#include "base/ctx.h"
#include "codegen/target.h"

/* A name of the table, or the path of a JSON file (it contains '/' or ends with ".json"; docs/targets.md). The
 * result lives in the context's arena. NULL after ctx_error. */
const Target *target_read(Ctx *, const char *name_or_path);

#endif
