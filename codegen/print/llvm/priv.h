/* Private to codegen/print/llvm: makes one LLVM module. Values live as long as the module;
 * instructions are added at the end of the current block (u->b). */
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

/* Begins an empty module of that name. */
void lunit_init(LUnit *, Ctx *, const Target *, const char *name);
/* Frees builder, module and context. */
void lunit_free(LUnit *);

/* ---- types and literals (types.c) ---- */

/* Returns the type of a value; a bool is i1. */
LLVMTypeRef l_type(LUnit *, LType);
/* Returns the type of an element in memory (dtype_raw). */
LLVMTypeRef l_raw(LUnit *, DType);
/* Returns the type of any address. */
LLVMTypeRef l_pointer(LUnit *);
/* Returns an integer or bool literal in all lanes of a type. */
LLVMValueRef l_int(LUnit *, LType, int64_t);
/* Returns a float literal in all lanes of a type. */
LLVMValueRef l_float(LUnit *, LType, double);
/* Returns a scalar literal. */
LLVMValueRef l_i64(LUnit *, int64_t);
/* Returns a vector with the scalar in all lanes; the scalar if lanes is 1. */
LLVMValueRef l_splat(LUnit *, LLVMValueRef, uint32_t lanes);
/* Returns the literal {0, 1, ...}, a vector of integers. */
LLVMValueRef l_iota(LUnit *, DType, uint32_t lanes);
/* Adds a call of an intrinsic with operands in[], and returns its value. name: without the suffix
 * of the overload, which the ntype types say. An unknown name is an internal error. */
LLVMValueRef l_intrinsic(LUnit *, const char *name, LLVMTypeRef *type, uint32_t ntype,
			 LLVMValueRef *in, uint32_t nin);
/* Adds a call as l_intrinsic does, with the type of the first operand as overload if the intrinsic
 * has overloads. */
LLVMValueRef l_math(LUnit *, const char *name, LLVMValueRef *in, uint32_t nin);
/* Returns the function of that name, and declares it with this type the first time. */
LLVMValueRef l_extern(LUnit *, const char *name, LLVMTypeRef type);
/* Returns the address of the external object of that name, and declares it the first time. */
LLVMValueRef l_extern_object(LUnit *, const char *name);
/* Adds a private constant object, aligned to 8 bytes, and returns its address. */
LLVMValueRef l_constant(LUnit *, LLVMValueRef);
/* Adds an attribute without a value ("noinline") to a function. */
void l_attribute(LUnit *, LLVMValueRef fn, const char *name);

/* ---- operations (ops.c) ---- */

/* Adds a basic operation on operands in[], by its prelude row, and returns its value. operand: the
 * type of the first operand; known: KNOWN_ bits. */
LLVMValueRef l_op(LUnit *, ScOp, LType result, LType operand, LLVMValueRef *in, unsigned known);

/* ---- library functions (library.c) ---- */

/* Adds a call of a scalar function on `lanes` lanes, and the function to the module the first time.
 * Returns the value. */
LLVMValueRef l_library(LUnit *, Ir *, const ScFn *, uint32_t lanes, LLVMValueRef *in, uint32_t nin);
/* Returns table[index], lane by lane. */
LLVMValueRef l_look_up(LUnit *, const ScTable *, uint32_t lanes, LLVMValueRef index);

/* ---- kernels and program functions (kernel.c) ---- */

typedef enum { FN_KERNEL, FN_SIZES, FN_RUN, FN_LIBRARY } FnRole;

/* Adds the definition of a legal function under the name, and returns it; the current block is one
 * of that function afterwards. A function of a block of threads is an internal error. The entry,
 * and kernel_name (the result of kernel_names), are for FN_SIZES and FN_RUN; else NULL. */
LLVMValueRef l_function(LUnit *, const LoopFn *, const char *name, FnRole, const ProgramEntry *,
                        const char *const *kernel_name);

/* ---- tables (model.c) ---- */

/* Adds the functions of all entries, the tables of the model, and the exported function. */
void l_model(LUnit *, const Program *, const EmitOptions *, const char *const *kernel_name);
/* Adds the exported function that chooses between programs. */
void l_select(LUnit *, const EmitSelect *);

/* ---- errors that LLVM does not survive (fatal.c) ---- */

/* Sets the function that is called, from any thread, when LLVM cannot go on; it must not return
 * (LlvmBackend.on_fatal). Call it once, on the thread that loaded the library: loading began a time
 * as of fatal_enter there, which this call ends. Before it, the process ends with a message. */
void llvm_on_fatal(void (*)(const char *why));
/* Begins the time in which this thread is in LLVM, where running out of memory is fatal. A thread
 * that ends there need not call fatal_leave. */
void fatal_enter(void);
/* Ends the time that fatal_enter began: running out of memory is not fatal for this thread any
 * more. */
void fatal_leave(void);

#endif
