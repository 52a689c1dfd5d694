/* Private to the driver: the values of constants that are computed from replaceable parameters
 * (driver/artifact/recipes.h). */
#ifndef WEFT_DRIVER_JIT_COMPUTE_H
#define WEFT_DRIVER_JIT_COMPUTE_H

#include "driver/artifact/compile.h"

/* Computes the constants that c->program stores, by code in this process if it runs here, else by
 * the interpreter of loop IR. A second call does nothing. Returns false after errors. */
bool recipes_compute(Compilation *);

#endif
