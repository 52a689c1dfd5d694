/* Machines by name or from a file that describes one: what --tune names. */
#ifndef WEFT_DRIVER_TARGETS_MACHINE_FILE_H
#define WEFT_DRIVER_TARGETS_MACHINE_FILE_H

#include "base/ctx.h"
#include "ir/target/machine.h"

/* A name of the table, of the family, or the path of a JSON file (it contains '/' or ends with
 * ".json"; docs/targets.md). In the context's arena. NULL after ctx_error. */
const Machine *machine_read(Ctx *, const char *name, const char *family);

#endif
