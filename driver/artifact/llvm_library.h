/* Private to the LLVM back end: finding and loading its library. */
#ifndef WEFT_DRIVER_ARTIFACT_LLVM_LIBRARY_H
#define WEFT_DRIVER_ARTIFACT_LLVM_LIBRARY_H

#include "codegen/print/llvm/backend.h"

/* Whether the library of this build is in the folder, or (NULL) where weft_has_llvm looks (weft.h).
 * Loads nothing. */
bool llvm_is_there(const char *folder);
/* The functions of the library; loads it at the first call, from the folder as above; later calls
 * ignore the folder. Any thread may call. Returns NULL after an error: this build has none, or it
 * is not found. */
const LlvmBackend *llvm_backend(Ctx *, const char *folder);
/* The same without loading: NULL if llvm_backend has not loaded the library. */
const LlvmBackend *llvm_loaded(void);

#endif
