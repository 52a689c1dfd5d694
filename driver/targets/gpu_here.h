/* GPUs of this machine. */
#ifndef WEFT_DRIVER_TARGETS_GPU_HERE_H
#define WEFT_DRIVER_TARGETS_GPU_HERE_H

#include "base/ctx.h"
#include "ir/target/target.h"

/* Whether the name has the form "cuda" (the first GPU of this machine) or "cuda:N". Looks for no
 * GPU. */
bool gpu_here_is(const char *name);
/* Returns the target for the GPU of that name, for which gpu_here_is is true. NVIDIA's driver
 * (libcuda.so.1) tells the architecture; of the targets with its major version, the last that is
 * not newer is returned. Returns NULL after an error: no driver, no such GPU, or no target for
 * it. */
const Target *gpu_here(Ctx *, const char *name);

#endif
