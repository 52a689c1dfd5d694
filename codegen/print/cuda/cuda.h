/* The CUDA emitter: prints kernels for blocks of threads as CUDA C, which NVRTC and nvcc compile,
 * or as HIP, which clang compiles. Decides nothing.
 *
 * A kernel has as parameters: one pointer for each buffer of the function; one int64_t for each
 * parameter; `first`, the task of the first block; `failure`, where failed checks of the call are
 * recorded (WeftFailure, printed ahead of the kernels; NULL: no kernel of the call so far has
 * checks); `launch`, the number of the launch in the call, less than 2^20. A kernel does nothing if
 * a launch before has recorded a failure. A grid has one block for each task. */
#ifndef WEFT_CODEGEN_PRINT_CUDA_H
#define WEFT_CODEGEN_PRINT_CUDA_H

#include "ir/loop/program.h"
#include "ir/target/target.h"

/* Sets fn[] and name[], room for Program.fn.n, to the functions of a program that blocks of threads
 * execute; all[k] is the name of function k of the program. Returns their number. */
uint32_t cuda_kernels(const Program *, const char *const *all, LoopFn **fn, const char **name);

/* Appends a complete text with n > 0 functions, which are legal for the target; name[k] is the
 * symbol of function k. In HIP if Gpu.hip of the target is set, else in CUDA C. An operation
 * without a form in the language is an internal error. */
void emit_cuda(LoopFn *const *fn, const char *const *name, uint32_t n, const Target *, Text *out);

/* Where compiled kernels lie in an artifact: images, each with some of them. */
typedef struct {
	uint64_t code, ptx; /* as in WeftCudaImage (runtime/cuda.h) */
} CudaImage;
typedef struct {
	const char *name;       /* as in WeftCudaArch */
	uint32_t major, minor;
	const CudaImage *image; /* image[nimage] */
} CudaArch;
typedef struct {
	const char *data;     /* the symbol of the bytes */
	const uint32_t *of;   /* by kernel: its image */
	const CudaArch *arch; /* the oldest first */
	uint32_t narch, nimage;
} CudaImages;
/* Appends a C file for the artifact: weft_cuda, which describes the images, and for each function a
 * WeftKernel of that name, which launches it. */
void emit_cuda_stubs(LoopFn *const *fn, const char *const *name, uint32_t n, const CudaImages *, Text *out);

/* As emit_cuda, in CUDA C for all targets, a unit of C++ that is the only image for a stand-in of
 * the CUDA driver, on this CPU: NAME_run(arg, blocks) executes a grid of kernel NAME, with its
 * arguments in an array. For tests. */
void emit_cuda_standin(LoopFn *const *fn, const char *const *name, uint32_t n, const Target *, Text *out);

/* As emit_cuda, in CUDA C for all targets, a unit of C++ that executes the same text on this CPU,
 * behind gpu_host.hpp: name[k] is a WeftKernel (runtime/runtime.h), the tasks of which are the
 * blocks. For tests. */
void emit_cuda_host(LoopFn *const *fn, const char *const *name, uint32_t n, const Target *, Text *out);
/* The text of gpu_host.hpp. */
extern const char gpu_host_text[];

#endif
