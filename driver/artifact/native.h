/* Private to the driver: artifacts by the LLVM back end. */
#ifndef WEFT_DRIVER_ARTIFACT_NATIVE_H
#define WEFT_DRIVER_ARTIFACT_NATIVE_H

#include "driver/artifact/compile.h"

/* After compile_lower: makes a shared object. weights_object, weights_file: as for compile_print
 * and build_shared. Returns false after errors. */
bool native_shared(Compilation *, const char *folder, const char *weights_object, const char *weights_file,
		   const char *out);
/* Makes an output of kind WEFT_EMIT_OBJECT, _ARCHIVE, _LLVM or _ASM. */
bool native_emit(Compilation *, WeftEmit, const char *folder, const char *weights_object, const char *out);

#endif
