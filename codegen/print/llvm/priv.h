/* Private to codegen/print/llvm: one module being built. */
#ifndef WEFT_CODEGEN_PRINT_LLVM_PRIV_H
#define WEFT_CODEGEN_PRINT_LLVM_PRIV_H

#include <llvm-c/Core.h>

#include "codegen/print/llvm/llvm.h"

typedef struct {
	Ctx *ctx;
	Arena *arena;
	const Target *target;
	LLVMContextRef c;
	LLVMModuleRef m;
	LLVMBuilderRef b; /* at the end of the block being filled */
} LUnit;

void lunit_init(LUnit *, Ctx *, const Target *, const char *name);
/* Frees builder, module and context. */
void lunit_free(LUnit *);

/* ---- types and literals (types.c) ---- */

LLVMTypeRef l_type(LUnit *, LType);       /* bool is i1 */
LLVMTypeRef l_raw(LUnit *, DType);        /* one element in memory */
LLVMTypeRef l_pointer(LUnit *);
LLVMValueRef l_int(LUnit *, LType, int64_t);
LLVMValueRef l_float(LUnit *, LType, double);
LLVMValueRef l_i64(LUnit *, int64_t);
LLVMValueRef l_splat(LUnit *, LLVMValueRef, uint32_t lanes);
/* {0, 1, ...} */
LLVMValueRef l_iota(LUnit *, DType, uint32_t lanes);
/* A call of an intrinsic, named without overload suffix, for these types. */
LLVMValueRef l_intrinsic(LUnit *, const char *name, LLVMTypeRef *type, uint32_t ntype, LLVMValueRef *in,
                         uint32_t nin);
/* The same with the overload of the first operand. */
LLVMValueRef l_math(LUnit *, const char *name, LLVMValueRef *in, uint32_t nin);
/* name(...) as declared in C, for calls into the runtime. */
LLVMValueRef l_extern(LUnit *, const char *name, LLVMTypeRef type);
LLVMValueRef l_constant(LUnit *, LLVMValueRef); /* the address of a private one, aligned to 8
                                                   bytes */
void l_attribute(LUnit *, LLVMValueRef fn, const char *name);

/* ---- operations (ops.c) ---- */

/* A basic operation; operand: type of the first operand. */
LLVMValueRef l_op(LUnit *, ScOp, LType result, LType operand, LLVMValueRef *in, unsigned known);

/* ---- library functions (library.c) ---- */

LLVMValueRef l_library(LUnit *, Ir *, const ScFn *, uint32_t lanes, LLVMValueRef *in, uint32_t nin);
LLVMValueRef l_look_up(LUnit *, const ScTable *, uint32_t lanes, LLVMValueRef index);

/* ---- kernels and program functions (kernel.c) ---- */

typedef enum { FN_KERNEL, FN_SIZES, FN_RUN, FN_LIBRARY } FnRole;

LLVMValueRef l_function(LUnit *, const LoopFn *, const char *name, FnRole, const ProgramEntry *,
                        const char *const *kernel_name);

/* ---- tables (model.c) ---- */

void l_model(LUnit *, const Program *, const EmitOptions *, const char *const *kernel_name);
void l_select(LUnit *, const EmitSelect *);

/* ---- errors that LLVM does not survive (fatal.c) ---- */

void llvm_on_fatal(void (*)(const char *why));
/* This thread is in LLVM from here to there; a thread that ends need not leave. */
void fatal_enter(void);
void fatal_leave(void);

#endif
