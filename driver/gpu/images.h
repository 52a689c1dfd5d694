/* Kernels as images: machine code for a GPU by NVRTC, in parallel and cached by content; for a GPU
 * that is none (Gpu.arch NULL) a shared object for this processor, which a stand-in of the CUDA
 * driver executes. */
#ifndef WEFT_DRIVER_GPU_IMAGES_H
#define WEFT_DRIVER_GPU_IMAGES_H

#include "codegen/print/cuda/cuda.h"
#include "driver/artifact/compile.h"
#include "driver/gpu/nvrtc.h"

/* Compiles the functions fn[n] for the targets of all levels, which are GPUs, name[k] being the
 * symbol of function k. Writes all images into an object in the folder, whose path *object
 * receives; the object defines the symbol im->data. Fills in *im, in the arena. use[n] must be
 * zeros: use[k] receives what kernel k takes of a multiprocessor of the first level's target,
 * without the name; all stays 0 if nobody knows. Images come from the cache and go into it, unless
 * WeftOptions.no_cache. Returns false after errors. */
bool gpu_images(Compilation *, const char *folder, LoopFn *const *fn, const char *const *name, uint32_t n, CudaImages *im, GpuUse *use,
		const char **object);

#endif
