/* Private to the driver: artifacts by the LLVM back end. */
#ifndef WEFT_DRIVER_ARTIFACT_NATIVE_H
#define WEFT_DRIVER_ARTIFACT_NATIVE_H

#include "driver/artifact/compile.h"

/* After compile_lower: a shared object; weights_object and weights_file as in compile_print and
 * build_shared. False after ctx_error. */
bool native_shared(Compilation *, const char *folder, const char *weights_object, const char *weights_file,
		   const char *out);
/* Of WEFT_EMIT_OBJECT, _ARCHIVE, _LLVM, _ASM. */
bool native_emit(Compilation *, WeftEmit, const char *folder, const char *weights_object, const char *out);

#endif
