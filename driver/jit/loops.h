/* Private to the driver: a model whose loop IR is interpreted (ir/loop/interp/interp.h), with the
 * table of a compiled model. */
#ifndef WEFT_DRIVER_JIT_LOOPS_H
#define WEFT_DRIVER_JIT_LOOPS_H

#include "driver/artifact/compile.h"

/* Computes recipes (recipes_compute), and sets *out to the model, valid until weft_free. The
 * model uses the Weft: only one thread at a time may call functions of the model or of the Weft.
 * Ends the phase "weights". Called after compile_lower of one level, with any c->backend.
 * Returns false after errors. */
bool loops_model(Compilation *, const WeftModel **out);

#endif
