/* Private to the driver: constants that are computed from replaceable parameters, by code for the
 * target. The compiler runs this code for the values in the file; the artifact contains it for
 * `set_weights`, which so gives the same bits. */
#ifndef WEFT_DRIVER_ARTIFACT_RECIPES_H
#define WEFT_DRIVER_ARTIFACT_RECIPES_H

#include "driver/artifact/compile.h"

/* Sets Program.recipes of all levels, and c->recipes, the level whose program computes the
 * constants (NULL if none of the weight section has a recipe). Adds to the weight sections,
 * row-major, constants that recipes read: those that cannot be replaced, and replaceable ones of
 * at most 64 KiB. Ends the phase "recipes". Does nothing without WeftOptions.replaceable.
 * Returns false after errors. The step of compile_lower after scheduling. */
bool recipes_lower(Compilation *);

#endif
