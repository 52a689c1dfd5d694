/* Private to the driver: the user's operators of a Weft, and those that a compilation calls. */
#ifndef WEFT_DRIVER_API_USER_OPS_H
#define WEFT_DRIVER_API_USER_OPS_H

#include "driver/artifact/compile.h"
#include "driver/artifact/jobs.h"

/* An Ir whose graphs may call what was registered. */
Ir *user_ir(Weft *);

typedef ARRAY(const struct UserOp *) UserOps;
/* Those that the programs call, each symbol once. */
UserOps user_ops(const Compilation *);
/* WeftOptions.link is there, and names what is. False after ctx_error. */
bool user_links_check(const Compilation *);
/* The words of WeftOptions.link for a linker: paths from the root, -l for names. */
void user_links(const Compilation *, Words *);
/* What to say of symbols and libraries that the linker does not find. */
const JobMissing *user_missing(const Compilation *, uint32_t *n);

#endif
