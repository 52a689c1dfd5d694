/* Private to the driver: checks a new shared object before it gets its final name. */
#ifndef WEFT_DRIVER_ARTIFACT_SHARED_CHECK_H
#define WEFT_DRIVER_ARTIFACT_SHARED_CHECK_H

#include "driver/artifact/compile.h"

/* Checks that the file `so` is a complete ELF file that defines the model's function. If this
 * machine can run it, a child process loads it and compares the table with this model's. (Not if
 * the user named the compiler: its code may need another C library.) Returns false after errors. */
bool shared_check(Compilation *, const char *so);

#endif
