/* Targets by name or from a file that describes one. */
#ifndef WEFT_DRIVER_TARGETS_TARGET_FILE_H
#define WEFT_DRIVER_TARGETS_TARGET_FILE_H

#include "base/array.h"
#include "base/ctx.h"
#include "ir/target/target.h"

typedef ARRAY(const Target *) TargetList;

/* One target or, separated by commas, several levels of one family, which are put in order of
 * increasing capability. Each is a name of the table or the path of a JSON file (it contains '/' or
 * ends with ".json"; docs/targets.md); after the first, a name may leave out what it has in common
 * with that: "x86-64-v2,v3". `tune`: the machine that all of them are for (machine_file.h); NULL:
 * the one that each assumes. The list lives in the context's arena. False after ctx_error. */
bool targets_read(Ctx *, const char *names, const char *tune, TargetList *);

#endif
