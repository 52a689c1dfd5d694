/* Private to the driver: a model whose loop IR is interpreted (ir/loop/interp.h), behind a compiled
 * one's table. */
#ifndef WEFT_DRIVER_JIT_LOOPS_H
#define WEFT_DRIVER_JIT_LOOPS_H

#include "driver/artifact/compile.h"

/* After compile_lower, of one level: lives until the Weft is freed. False after ctx_error. */
bool loops_model(Compilation *, const WeftModel **);

#endif
