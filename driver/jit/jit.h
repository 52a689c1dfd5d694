/* Private to the driver: compiling into this process. */
#ifndef WEFT_DRIVER_JIT_JIT_H
#define WEFT_DRIVER_JIT_JIT_H

#include "driver/artifact/compile.h"

/* After compile_for_here and compile_lower: sets *out to a model in memory, valid until weft_free.
 * Returns false after errors. */
bool jit_model(Compilation *, const WeftModel **);
/* The same, but code and weights live until weft_jit_free. A model that calls user operators is an
 * error. */
bool jit_keep(Compilation *, const WeftModel **);

#endif
