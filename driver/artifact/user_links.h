/* Private to the driver: the user operators that a compilation calls, and where their functions
 * are. */
#ifndef WEFT_DRIVER_ARTIFACT_USER_LINKS_H
#define WEFT_DRIVER_ARTIFACT_USER_LINKS_H

#include "driver/artifact/compile.h"
#include "driver/artifact/jobs.h"

typedef ARRAY(const struct UserOp *) UserOps;
/* The operators that the programs call, each symbol once. */
UserOps user_ops(const Compilation *);
/* Checks that WeftOptions.link names existing files or libraries. Returns false after errors. */
bool user_links_check(const Compilation *);
/* Adds the arguments for a linker: absolute paths, or -l for names. */
void user_links(const Compilation *, Words *);
/* Messages for symbols and libraries that the linker does not find. */
const JobMissing *user_missing(const Compilation *, uint32_t *n);

#endif
