/* Private to the driver: compiling into this process. */
#ifndef WEFT_DRIVER_JIT_JIT_H
#define WEFT_DRIVER_JIT_JIT_H

#include "driver/artifact/compile.h"

/* After compile_lower: makes a model in memory, valid until the Weft is freed. Returns false after
 * errors. */
bool jit_model(Compilation *, const WeftModel **);
/* The same, but code and weights live until weft_jit_free. */
bool jit_keep(Compilation *, const WeftModel **);

#endif
