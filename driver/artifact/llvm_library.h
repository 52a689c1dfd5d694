/* Private to the LLVM back end: finding and loading its library. */
#ifndef WEFT_DRIVER_ARTIFACT_LLVM_LIBRARY_H
#define WEFT_DRIVER_ARTIFACT_LLVM_LIBRARY_H

#include "codegen/print/llvm/backend.h"

/* Whether the back end is in the folder, or (NULL) where weft_has_llvm looks. */
bool llvm_is_there(const char *folder);
/* Returns the back end; loads it at the first call. Any thread may call. Returns NULL after an
 * error: this build has none, or it is not found. */
const LlvmBackend *llvm_backend(Ctx *, const char *folder);
/* After the first call that returned it. */
const LlvmBackend *llvm_loaded(void);

#endif
