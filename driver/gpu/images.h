/* Kernels as images: machine code for a GPU by NVRTC, in parallel and cached by content; for a GPU
 * that is none (Gpu.arch NULL) a shared object for this processor, which a stand-in of the CUDA
 * driver executes. */
#ifndef WEFT_DRIVER_GPU_IMAGES_H
#define WEFT_DRIVER_GPU_IMAGES_H

#include "codegen/print/cuda/cuda.h"
#include "driver/artifact/compile.h"
#include "driver/gpu/nvrtc.h"

/* Compiles the kernels of n programs (target, fn, name and n are set), and writes all images into
 * an object in the folder, whose path *object receives; the object defines the symbol `data`. Sets
 * data, image, of and nimage of the programs, in the arena. use[k], room for the kernels of program
 * k, must be zeros: it receives what they take of a multiprocessor, without the name; all stays 0
 * if nobody knows. Images come from the cache and go into it, unless WeftOptions.no_cache. Returns
 * false after errors. */
bool gpu_images(Compilation *, const char *folder, CudaProgram *, uint32_t n, GpuUse *const *use,
		const char **object);

#endif
