/* Private to driver/output: the C header of a compiled model. */
#ifndef WEFT_DRIVER_OUTPUT_HEADER_H
#define WEFT_DRIVER_OUTPUT_HEADER_H

#include "driver/artifact/compile.h"

/* Writes the declarations for programs that use the model, in C11 and C++11: the function that
 * returns the table, and of each entry the sizes of its memory as macros and a function that runs
 * the entry, with a typed argument for each input and output. Called after compile_lower. */
void header_text(const Compilation *, const WeftGraph *, Text *);

#endif
