/* Private to driver/output: a program as back ends outside of Weft see it. */
#ifndef WEFT_DRIVER_OUTPUT_USER_PROGRAM_H
#define WEFT_DRIVER_OUTPUT_USER_PROGRAM_H

#include "driver/artifact/compile.h"
#include "weft_backend.h"

/* Computes recipes (recipes_compute), and fills in the description of the program; what the
 * description points to is in the arena. Ends the phase "weights". Called after compile_lower of
 * one level. Returns false after errors. */
bool user_program(Compilation *, WeftBackendProgram *);

#endif
