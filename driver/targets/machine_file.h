/* Machines by name or from a file: the argument of --tune. */
#ifndef WEFT_DRIVER_TARGETS_MACHINE_FILE_H
#define WEFT_DRIVER_TARGETS_MACHINE_FILE_H

#include "base/ctx.h"
#include "ir/target/machine.h"

/* Returns the machine of that name, for a target of the family (Isa.family, "x86-64"): a known
 * machine; or the machine that a JSON file describes (docs/targets.md), if the name contains '/' or
 * ends with ".json". The field "base" of the file, which must be there, names a known machine of
 * the family, from which missing fields are taken. The result lives as long as the context. Returns
 * NULL after an error: also if the machine is of another family. */
const Machine *machine_read(Ctx *, const char *name, const char *family);

#endif
