/* Targets by name or from a file: the argument of --target. */
#ifndef WEFT_DRIVER_TARGETS_TARGET_FILE_H
#define WEFT_DRIVER_TARGETS_TARGET_FILE_H

#include "base/array.h"
#include "base/ctx.h"
#include "ir/target/target.h"

typedef ARRAY(const Target *) TargetList;

/* Sets *list to the targets that `names` names: one, or several levels of one family separated by
 * commas. Each is a name of the table, "cuda" or "cuda:N" (gpu_here.h), or the path of a JSON
 * file (docs/targets.md); after the first, a name may leave out the common beginning:
 * "x86-64-v2,v3". The list is sorted by increasing capability, and in the context's arena. tune:
 * the machine whose costs decide, for all levels (machine_read); NULL: the machine that each
 * level assumes. Returns false after an error: also if a name is missing, a target is named twice,
 * or two are not of one family. */
bool targets_read(Ctx *, const char *names, const char *tune, TargetList *);

#endif
