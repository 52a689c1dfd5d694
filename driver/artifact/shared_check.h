/* Private to the driver: checks a new shared object before it gets its final name. */
#ifndef WEFT_DRIVER_ARTIFACT_SHARED_CHECK_H
#define WEFT_DRIVER_ARTIFACT_SHARED_CHECK_H

#include "driver/artifact/compile.h"

/* Checks that the file `so` is a complete ELF file that defines the model's function; of an ELF
 * file that is not of 64 bits and little endian only the first bytes are looked at. If this
 * machine runs the least capable level, and Backend.trusted allows, a child process loads the
 * file and compares the source hash in its table with this model's; a child that cannot be
 * started, or takes 30 seconds, counts as success. Called after compile_lower. Returns false
 * after an error. */
bool shared_check(Compilation *, const char *so);

#endif
