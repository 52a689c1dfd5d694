/* Private to the driver: is a fresh shared object what was asked for? */
#ifndef WEFT_DRIVER_ARTIFACT_SHARED_CHECK_H
#define WEFT_DRIVER_ARTIFACT_SHARED_CHECK_H

#include "driver/artifact/compile.h"

/* Before the file at `so` gets its final name: it is a complete ELF file that defines the model's
 * function; where this machine runs it, a child process loads it and asks that function for the
 * table of this very model. (A compiler that the user names may build for another C library or want
 * a runtime of its own: then it is not loaded.) False after ctx_error. */
bool shared_check(Compilation *, const char *so);

#endif
