/* Private to the driver: the values of constants that are computed from replaceable parameters
 * (driver/artifact/recipes.h). */
#ifndef WEFT_DRIVER_JIT_COMPUTE_H
#define WEFT_DRIVER_JIT_COMPUTE_H

#include "driver/artifact/compile.h"

/* Sets the contents of the constants that c->recipes computes (recipes_lower), by executing it: as
 * code in this process if that runs here, else by the interpreter of loop IR. Sets c->computed.
 * Does nothing at a second call, and without such constants. Returns false after errors. */
bool recipes_compute(Compilation *);

#endif
