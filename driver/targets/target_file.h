/* Targets by name or from a file: the argument of --target. */
#ifndef WEFT_DRIVER_TARGETS_TARGET_FILE_H
#define WEFT_DRIVER_TARGETS_TARGET_FILE_H

#include "base/array.h"
#include "base/ctx.h"
#include "ir/target/target.h"

typedef ARRAY(const Target *) TargetList;

/* Sets *list to the targets that `names` names, separated by commas: one; several CPUs of one
 * family; GPUs of one maker; or such CPUs and GPUs of NVIDIA. Each is a name of the table, "cuda"
 * or "cuda:N" (gpu_here.h), or the path of a JSON file (docs/targets.md); a name may leave out what
 * it begins with in common with the name before: "x86-64-v2,v3". In the list, which is in the
 * context's arena, GPUs come before CPUs, each sorted by increasing capability. tune: the machine
 * whose costs decide, for all CPUs if there are any (machine_read); NULL: the machine that each
 * target assumes. Returns false after an error: also if a name is missing, a target is named twice,
 * or two do not fit into one artifact. */
bool targets_read(Ctx *, const char *names, const char *tune, TargetList *);

#endif
