/* Private to the driver: constants that are computed from replaceable parameters, by code for the
 * target. The compiler runs this code for the values in the file; the artifact contains it for
 * `set_weights`, which so gives the same bits. */
#ifndef WEFT_DRIVER_ARTIFACT_RECIPES_H
#define WEFT_DRIVER_ARTIFACT_RECIPES_H

#include "driver/artifact/compile.h"

/* After scheduling, with replaceable weights: fills in Program.prepare of all levels, and
 * c->prepare, the program that computes. Constants that no parameter changes and small parameters,
 * if recipes read them, are stored too. Returns false after errors. */
bool recipes_lower(Compilation *);

#endif
