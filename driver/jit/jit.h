/* Private to the driver: compiling into this process. */
#ifndef WEFT_DRIVER_JIT_JIT_H
#define WEFT_DRIVER_JIT_JIT_H

#include "driver/artifact/compile.h"

/* Loads the back end, computes recipes (recipes_compute), and sets *out to a model in memory,
 * valid until weft_free. Ends the phases "load" and "weights", and those of Backend.here. Called
 * after compile_for_here and compile_lower, with c->backend = backend_here(). Returns false
 * after errors. */
bool jit_model(Compilation *, const WeftModel **out);
/* Does as jit_model, but the code and the weights of the model live until weft_jit_free, also
 * after the Weft is freed, and take as few pages as possible. Returns false after errors: also
 * if the model calls user operators, whose libraries end with the Weft. */
bool jit_keep(Compilation *, const WeftModel **out);

#endif
