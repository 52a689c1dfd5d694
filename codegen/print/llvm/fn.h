/* Private to codegen/print/llvm: makes one LLVM function of a legal loop function. Instructions are
 * added at the end of the current block (f->u->b). */
#ifndef WEFT_CODEGEN_PRINT_LLVM_FN_H
#define WEFT_CODEGEN_PRINT_LLVM_FN_H

#include "codegen/print/llvm/priv.h"

/* Values that are known. */
typedef struct {
	LLVMValueRef *value; /* by expression: its value, if it was computed in this block or one
	                        around it; else NULL */
	ARRAY(Lx) known;     /* the expressions in `value`, innermost block last */
	ARRAY(Lx) passing;   /* expressions that read mutable variables: in `value` for this
	                        statement only */
	const bool *is_mutable; /* by expression: whether it reads mutable variables */
} FnValues;

/* The arrays of buffers and parameters; the first nslot parameters are in slots. */
typedef struct {
	LLVMValueRef buffers, params, slots;
	uint32_t nslot;
} FnFrame;

/* Arrays for arguments of launches; NULL: not made yet. */
typedef struct {
	LLVMValueRef buf, param;
} FnLaunch;

/* By buffer: its alias scope, NULL: none; and the scopes that do not overlap it. */
typedef struct {
	LLVMMetadataRef *scope;
	LLVMValueRef *apart;
} FnAliases;

typedef struct {
	LUnit *u;
	const LoopFn *f;
	FnRole role;
	const ProgramEntry *of; /* NULL: a kernel or a library function */
	const char *const *kernel_name; /* by index in Program.fn */
	LLVMValueRef fn;
	LLVMBuilderRef entry; /* the builder at the end of the entry block: allocas, loads from the
	                         frame */
	LLVMValueRef *var;    /* by variable: its value; for mutable variables and local arrays,
	                         their memory */
	FnValues values;
	LLVMValueRef *buf, *param;  /* NULL: not read yet */
	FnFrame frame;
	LLVMValueRef failed;  /* the memory of the first failure; NULL: the function has no
	                         checks */
	FnLaunch launch;
	LLVMBasicBlockRef stop; /* of `run` and functions outlined from it: the block that returns
	                           1; NULL: not made yet */
	FnAliases aliases;
} Fn;

/* ---- fn_expr.c ---- */

/* Returns the value of an expression, computed in the current block unless it is known there. */
LLVMValueRef l_lx(Fn *, Lx);
/* Returns the data of an expression of the function. */
static inline const LxData *fn_lx(const Fn *f, Lx x) { return &f->f->lx.data[x.i]; }
/* Returns the address of buffer k. */
LLVMValueRef fn_buffer(Fn *, uint32_t k);
/* Returns the address of new memory on the stack, allocated in the entry block. align: bytes; 0: as
 * the type. */
LLVMValueRef fn_alloca(Fn *, LLVMTypeRef, uint32_t align);
/* Opens a scope of values and returns its mark. */
uint32_t fn_push(Fn *);
/* Closes the scope: forgets the values that were computed since its mark, because their block does
 * not dominate the blocks behind. */
void fn_pop(Fn *, uint32_t mark);
/* Ends a statement: forgets values that read mutable variables. */
void fn_forget(Fn *);

/* ---- fn_memory.c ---- */

/* Sets f->aliases, from LArg.restrict_ok of the kernel's buffers; of other functions and of kernels
 * with one buffer to no scopes. */
void fn_aliases(Fn *f);
/* Adds an LS_LOAD or LS_GATHER and returns the loaded value. */
LLVMValueRef fn_load(Fn *, const LsData *);
/* Adds an LS_STORE or LS_SCATTER. */
void fn_store(Fn *, const LsData *);
/* Returns the address of mem[offset]. */
LLVMValueRef fn_element(Fn *, LMem mem, Lx offset);
/* Stores x at address p in `mem`: by a streaming store if `aligned`, which says that p is a
 * multiple of the bytes of x; else by a plain store. */
void fn_stream(Fn *, LMem mem, LLVMValueRef x, LLVMValueRef p, bool aligned);
/* Adds an LS_PREFETCH. */
void fn_prefetch(Fn *, const LsData *);

/* ---- fn_frag.c ---- */

/* Adds a statement on fragments (LS_FRAG to LS_FRAG_RELEASE). */
void fn_frag(Fn *, const LsData *);

/* ---- fn_call.c: user operators ---- */

/* Adds a call of a user operator. value: the address of an array with the integers of the call
 * (weft_op_call in runtime.h). Returns the i32 0, or the id of the failure. */
LLVMValueRef fn_user_call(Fn *, const LoopCall *, LLVMValueRef value);

/* ---- fn_program.c ---- */

/* Adds a statement that only programs have (LS_LAUNCH to LS_LAUNCHES). */
void fn_program(Fn *, const LsData *);

#endif
