/* Private to the driver: finding and loading the LLVM back end. */
#ifndef WEFT_DRIVER_BACKEND_H
#define WEFT_DRIVER_BACKEND_H

#include "codegen/llvm/backend.h"

/* Loads it the first time; any thread may ask. NULL after ctx_error: built without, or not where it belongs. */
const LlvmBackend *llvm_backend(Ctx *);

#endif
