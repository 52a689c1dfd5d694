/* Private to the driver: compiling into this process. */
#ifndef WEFT_DRIVER_JIT_JIT_H
#define WEFT_DRIVER_JIT_JIT_H

#include "driver/artifact/compile.h"

/* After compile_for_here and compile_lower: sets *out to a model in memory, valid until weft_free.
 * Returns false after errors. */
bool jit_model(Compilation *, const WeftModel **out);
/* After compile_for_here and compile_lower: sets *out to a model in memory whose code and weights
 * live until weft_jit_free, also after the Weft is freed. Returns false after errors: also if the
 * model calls user operators, whose libraries end with the Weft. */
bool jit_keep(Compilation *, const WeftModel **out);

#endif
