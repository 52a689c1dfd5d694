/* Machines by name or from a file: the argument of --tune. */
#ifndef WEFT_DRIVER_TARGETS_MACHINE_FILE_H
#define WEFT_DRIVER_TARGETS_MACHINE_FILE_H

#include "base/ctx.h"
#include "ir/target/machine.h"

/* Returns a machine of the family. name: a known machine; or a JSON file, if the name contains '/'
 * or ends with ".json" (docs/targets.md). The field "base" of the file names a known machine of the
 * family, from which missing fields are taken. The result lives as long as the context. Returns
 * NULL after errors. */
const Machine *machine_read(Ctx *, const char *name, const char *family);

#endif
