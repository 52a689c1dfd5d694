/* Private to codegen/print/llvm: makes one LLVM module. */
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
	LLVMBuilderRef b; /* the builder at the end of the current block */
	bool here;        /* EmitOptions.here */
} LUnit;

void lunit_init(LUnit *, Ctx *, const Target *, const char *name);
/* Frees builder, module and context. */
void lunit_free(LUnit *);

/* ---- types and literals (types.c) ---- */

LLVMTypeRef l_type(LUnit *, LType);       /* of a value; bool is i1 */
LLVMTypeRef l_raw(LUnit *, DType);        /* of an element in memory */
LLVMTypeRef l_pointer(LUnit *);
LLVMValueRef l_int(LUnit *, LType, int64_t);
LLVMValueRef l_float(LUnit *, LType, double);
LLVMValueRef l_i64(LUnit *, int64_t);
LLVMValueRef l_splat(LUnit *, LLVMValueRef, uint32_t lanes);
/* {0, 1, ...} */
LLVMValueRef l_iota(LUnit *, DType, uint32_t lanes);
/* A call of an intrinsic for these types; name without the suffix of the overload. */
LLVMValueRef l_intrinsic(LUnit *, const char *name, LLVMTypeRef *type, uint32_t ntype, LLVMValueRef *in,
                         uint32_t nin);
/* A call of an intrinsic with the overload of the first operand's type. */
LLVMValueRef l_math(LUnit *, const char *name, LLVMValueRef *in, uint32_t nin);
/* A function of the runtime, declared as in C. */
LLVMValueRef l_extern(LUnit *, const char *name, LLVMTypeRef type);
/* The address of an object of that name. */
LLVMValueRef l_extern_object(LUnit *, const char *name);
LLVMValueRef l_constant(LUnit *, LLVMValueRef); /* a private constant, aligned to 8 bytes; returns
                                                   its address */
void l_attribute(LUnit *, LLVMValueRef fn, const char *name);

/* ---- operations (ops.c) ---- */

/* Makes a basic operation; operand: the type of the first operand. */
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
/* Mark the time in which this thread is in LLVM; a thread that ends there need not call
 * fatal_leave. */
void fatal_enter(void);
void fatal_leave(void);

#endif
