/* Lines of a model's source, of stack traces that PyTorch's exporters write. */
#ifndef WEFT_FRONTEND_FRAME_H
#define WEFT_FRONTEND_FRAME_H

#include "base/ctx.h"

/* Returns the last frame of a Python stack trace that is not PyTorch's own, else the last, as
 * "net.py:12", in the scratch arena; NULL if there is none. trace may be NULL. */
const char *frame_of_trace(Ctx *, const char *trace);

#endif
