/* Private to the driver: a model whose loop IR is interpreted (ir/loop/interp.h), with the table of
 * a compiled model. */
#ifndef WEFT_DRIVER_JIT_LOOPS_H
#define WEFT_DRIVER_JIT_LOOPS_H

#include "driver/artifact/compile.h"

/* After compile_lower of one level: sets *out to the model, valid until weft_free. Returns false
 * after errors. */
bool loops_model(Compilation *, const WeftModel **);

#endif
