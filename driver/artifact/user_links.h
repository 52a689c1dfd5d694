/* Private to the driver: the user operators that a compilation calls, and where their functions
 * are. */
#ifndef WEFT_DRIVER_ARTIFACT_USER_LINKS_H
#define WEFT_DRIVER_ARTIFACT_USER_LINKS_H

#include "driver/artifact/compile.h"
#include "driver/artifact/jobs.h"

typedef ARRAY(const struct UserOp *) UserOps;
/* Returns the user operators that the programs of all levels call, each symbol
 * (WeftOpDef.symbol) once; in the arena. Called after compile_lower. */
UserOps user_ops(const Compilation *);
/* Returns how many of these are the user's, and not the compiler's own (ops/user/builtin.c). */
uint32_t user_ops_of_user(const Compilation *);
/* Whether some of these are functions of runtime/comm/comm.c (collective), or of lapack.c. */
bool user_ops_of_runtime(const Compilation *, bool collective);
/* Checks the items of WeftOptions.link. An item that contains '/' or ".so", or ends with ".a" or
 * ".o", is a file, which must exist; others name libraries for -l, which are left to the linker.
 * Returns false after an error. */
bool user_links_check(const Compilation *);
/* Adds WeftOptions.link as arguments of a linker: absolute paths of files, -l for names. Call it
 * after user_links_check. */
void user_links(const Compilation *, Words *);
/* Returns the rows for Job.missing of a linker, in the arena: one for each symbol and
 * user_symbol of user_ops, and one for each library of WeftOptions.link that is no file. Sets *n
 * to their number. Called after compile_lower. */
const JobMissing *user_missing(const Compilation *, uint32_t *n);

#endif
