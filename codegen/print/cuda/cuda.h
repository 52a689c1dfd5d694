/* The CUDA emitter: prints kernels for blocks of threads as CUDA C, which NVRTC and nvcc compile.
 * Decides nothing.
 *
 * A kernel has as parameters: one pointer for each buffer of the function; one int64_t for each
 * parameter; `first`, the task of the first block; `failure`, where a failed check is recorded
 * (WeftFailure, printed ahead of the kernels). A grid has one block for each task. */
#ifndef WEFT_CODEGEN_PRINT_CUDA_H
#define WEFT_CODEGEN_PRINT_CUDA_H

#include "ir/loop/program.h"
#include "ir/target/target.h"

/* Sets fn[] and name[], room for Program.fn.n, to the functions of a program that blocks of threads
 * execute; all[k] is the name of function k of the program. Returns their number. The others call
 * functions of the user. */
uint32_t cuda_kernels(const Program *, const char *const *all, LoopFn **fn, const char **name);

/* Appends a complete text with n > 0 functions, which are legal for the target; name[k] is the
 * symbol of function k. An operation without a form in CUDA is an internal error. */
void emit_cuda(LoopFn *const *fn, const char *const *name, uint32_t n, const Target *, Text *out);

/* As emit_cuda, a unit of C++ that executes the same text on this CPU, behind gpu_host.hpp: name[k]
 * is a WeftKernel (runtime/runtime.h), the tasks of which are the blocks. For tests. */
void emit_cuda_host(LoopFn *const *fn, const char *const *name, uint32_t n, const Target *, Text *out);
/* The text of gpu_host.hpp. */
extern const char gpu_host_text[];

#endif
