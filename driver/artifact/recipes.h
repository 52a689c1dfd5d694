/* Private to the driver: constants that are computed from replaceable parameters, by code of the
 * target: the compiler runs it for the values in the file, and the artifact carries it for
 * `set_weights`, which so gives the same bits. */
#ifndef WEFT_DRIVER_ARTIFACT_RECIPES_H
#define WEFT_DRIVER_ARTIFACT_RECIPES_H

#include "driver/artifact/compile.h"

/* After scheduling, where weights are replaceable: Program.prepare of all levels, and c->prepare, a
 * level of its own for the program that computes. Of what groups read, what weights do not change
 * and small parameters are stored, too. False after ctx_error. */
bool recipes_lower(Compilation *);
/* Gives contents to the constants that c->program stores, by LLVM's code where there is one that
 * runs here, else by the interpreter of loop IR. Once is enough. False after ctx_error. */
bool recipes_compute(Compilation *);

#endif
