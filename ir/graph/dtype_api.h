/* Element types as the interfaces of Weft name them: DLPack's codes. */
#ifndef WEFT_IR_DTYPE_API_H
#define WEFT_IR_DTYPE_API_H

#include "ir/graph/dtype.h"
#include "weft_model.h"

WeftDType dtype_to_api(DType);
DType dtype_from_api(WeftDType); /* DT_none: not supported */

#endif
