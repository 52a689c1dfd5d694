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

#include "codegen/print/c/emit.h"

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
/* A program of an artifact that blocks of threads execute. */
typedef struct {
	const Target *target;
	const char *model;      /* the function that returns its table */
	const char *suffix;     /* of the names of what is printed for it; "" */
	LoopFn *const *fn;      /* fn[n]: its kernels, whose names are name[n] */
	const char *const *name;
	uint32_t n;
	const char *data;       /* the symbol of the bytes of images */
	const CudaImage *image; /* image[nimage] */
	const uint32_t *of;     /* by kernel: its image */
	uint32_t nimage;
	uint64_t weights;       /* the bytes at the beginning of the weight section that it reads */
} CudaProgram;
/* Appends a C file for the artifact: a WeftCuda, which describes the kernels of the program, and
 * for each kernel a WeftKernel of its name, which launches it. */
void emit_cuda_stubs(const CudaProgram *, Text *out);
/* Appends a C file for the artifact: weft_cuda, the list of n > 0 programs, the oldest architecture
 * first; and the functions that choose a table: NAME (NULL: "weft_model"), unless `only` says that
 * the one program of the artifact has that name itself, and NAME_device. cpu: as in EmitSelect, the
 * programs for processors; if there are none, NAME chooses as NAME_device for the first GPU. */
void emit_cuda_select(const CudaProgram *, uint32_t n, const EmitSelect *cpu, bool only, Text *out);

/* Appends CUDA C as emit_cuda does, whatever the target, and functions that make a C++ unit of it:
 * NAME_run(arg, blocks) executes a grid of kernel NAME on this CPU, with its arguments in an array.
 * A stand-in of the CUDA driver loads the unit as the only image of an artifact. For tests. */
void emit_cuda_standin(LoopFn *const *fn, const char *const *name, uint32_t n, const Target *,
		       Text *out);

/* Appends CUDA C as emit_cuda does, whatever the target, and functions that make a C++ unit of it,
 * which executes the kernels on this CPU by gpu_host.hpp: name[k] is a WeftKernel
 * (runtime/runtime.h) whose tasks are the blocks. For tests. */
void emit_cuda_host(LoopFn *const *fn, const char *const *name, uint32_t n, const Target *,
		    Text *out);
/* Adds to what emit_c gave of a program: for a target with blocks of threads (Target.gpu), unless
 * EmitOptions.launched is set, the file "blocks.cpp" with emit_cuda_host's text of its kernels, but
 * those that call functions of the user, and gpu_host.hpp. Adds nothing for others. */
void emit_cuda_blocks(const Program *, const Target *, const EmitOptions *, EmitFiles *out);
/* The text of gpu_host.hpp. */
extern const char gpu_host_text[];

#endif
