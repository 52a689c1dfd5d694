/* Machines by name or from a file: the argument of --tune. */
#ifndef WEFT_DRIVER_TARGETS_MACHINE_FILE_H
#define WEFT_DRIVER_TARGETS_MACHINE_FILE_H

#include "base/ctx.h"
#include "ir/target/machine.h"

/* Returns the machine of that name, which must be of the family, or of a JSON file (the name
 * contains '/' or ends with ".json"; docs/targets.md). In the context's arena. Returns NULL after
 * errors. */
const Machine *machine_read(Ctx *, const char *name, const char *family);

#endif
