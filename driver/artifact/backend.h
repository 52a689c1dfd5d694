/* Private to the driver: finding and loading the LLVM back end. */
#ifndef WEFT_DRIVER_ARTIFACT_BACKEND_H
#define WEFT_DRIVER_ARTIFACT_BACKEND_H

#include "codegen/print/llvm/backend.h"

/* Is it in that folder, or (NULL) where weft_has_llvm looks? */
bool llvm_is_there(const char *folder);
/* Loads it the first time; any thread may ask. NULL after ctx_error: built without, or not where it
 * belongs. */
const LlvmBackend *llvm_backend(Ctx *, const char *folder);

#endif
