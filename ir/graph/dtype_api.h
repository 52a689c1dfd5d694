/* Element types as the public interface of Weft names them: DLPack's code, bits and lanes. */
#ifndef WEFT_IR_DTYPE_API_H
#define WEFT_IR_DTYPE_API_H

#include "ir/graph/dtype.h"
#include "weft_model.h"

/* Returns the public name of a dtype; all fields zero for DT_none. */
WeftDType dtype_to_api(DType);
/* Returns the dtype, or DT_none if Weft has no such dtype or lanes is not 1. */
DType dtype_from_api(WeftDType);

#endif
