/* Private to the driver: a compilation that ends in this process. */
#ifndef WEFT_DRIVER_JIT_JIT_H
#define WEFT_DRIVER_JIT_JIT_H

#include "driver/artifact/compile.h"

/* After compile_lower: code and weights in memory, until the Weft is freed. False after
 * ctx_error. */
bool jit_model(Compilation *, const WeftModel **);

#endif
