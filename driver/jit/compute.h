/* Private to the driver: the values of constants that are computed from replaceable parameters
 * (driver/artifact/recipes.h). */
#ifndef WEFT_DRIVER_JIT_COMPUTE_H
#define WEFT_DRIVER_JIT_COMPUTE_H

#include "driver/artifact/compile.h"

/* Sets the contents of the constants that c->recipes computes (recipes_lower), by executing
 * c->recipes: as code in this process if that runs here, else by the interpreter of loop IR.
 * Sets c->computed. Adds no phase to the report. Does nothing if c->computed is set, or there
 * are no such constants. Called after compile_lower. Returns false after errors. */
bool recipes_compute(Compilation *);

#endif
