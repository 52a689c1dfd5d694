/* GPUs of this machine. */
#ifndef WEFT_DRIVER_TARGETS_GPU_HERE_H
#define WEFT_DRIVER_TARGETS_GPU_HERE_H

#include "base/ctx.h"
#include "ir/target/target.h"

/* Whether the name is "cuda" or "cuda:N", a GPU of this machine. */
bool gpu_here_is(const char *name);
/* Returns the target for the GPU of that name (gpu_here_is), whose architecture NVIDIA's driver
 * (libcuda.so.1) tells: of the targets with the major version of the architecture the last that is
 * not newer. Returns NULL after an error. */
const Target *gpu_here(Ctx *, const char *name);

#endif
