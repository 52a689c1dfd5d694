/* Private to the LLVM back end: finding and loading its library. */
#ifndef WEFT_DRIVER_ARTIFACT_LLVM_LIBRARY_H
#define WEFT_DRIVER_ARTIFACT_LLVM_LIBRARY_H

#include "codegen/print/llvm/backend.h"

/* Whether the library of this build is in the folder, or (NULL) where weft_has_llvm looks (weft.h).
 * Loads nothing. Returns false also if this build has no LLVM. */
bool llvm_is_there(const char *folder);
/* Returns the functions of the library, which stay for the life of the process. The first call that
 * succeeds loads the library, from the folder, or (NULL) from where weft_has_llvm looks; later
 * calls ignore the folder. Any thread may call. Returns NULL after an error: this build has no
 * LLVM, or the library is not found, is of another build, or cannot be loaded. */
const LlvmBackend *llvm_backend(Ctx *, const char *folder);
/* Returns the functions of the library; NULL, without an error, if llvm_backend has not loaded
 * it. */
const LlvmBackend *llvm_loaded(void);

#endif
