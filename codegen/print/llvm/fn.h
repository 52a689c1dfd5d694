/* Private to codegen/print/llvm: one function being built from loop IR. */
#ifndef WEFT_CODEGEN_PRINT_LLVM_FN_H
#define WEFT_CODEGEN_PRINT_LLVM_FN_H

#include "codegen/print/llvm/priv.h"

typedef struct {
	LUnit *u;
	const LoopFn *f;
	FnRole role;
	const ProgramEntry *of; /* NULL: a kernel or a library function */
	const char *const *kernel_name; /* by index into Program.fn */
	LLVMValueRef fn;
	LLVMBuilderRef entry; /* before the end of the entry block: allocas, and loads from the
	                         frame */
	LLVMValueRef *var;    /* by variable: its value; memory of mutable ones and local arrays */
	LLVMValueRef *value;  /* by expression: computed in this block or one around it; NULL */
	ARRAY(Lx) known;      /* what is in value, innermost block last */
	ARRAY(Lx) passing;    /* what is in value for this statement only: reads mutable
	                         variables */
	const bool *is_mutable; /* by expression: reads mutable variables */
	LLVMValueRef *buf, *param;  /* NULL: not read yet */
	LLVMValueRef buffers, params, slots; /* the arrays they are in; the first nslot parameters
	                                        are in slots */
	uint32_t nslot;
	LLVMValueRef failed;  /* memory of the first failed check; NULL: no checks */
	LLVMValueRef launch_buf, launch_param; /* arguments of launches; NULL: none yet */
	LLVMBasicBlockRef stop; /* of `run` and its parts: returns 1; NULL: none yet */
	LLVMMetadataRef *scope; /* by buffer: its alias scope, NULL: none */
	LLVMValueRef *apart;    /* by buffer: scopes that it does not overlap */
} Fn;

/* ---- fn_expr.c ---- */

LLVMValueRef l_lx(Fn *, Lx);
static inline const LxData *fn_lx(const Fn *f, Lx x) { return &f->f->lx.data[x.i]; }
LLVMValueRef fn_buffer(Fn *, uint32_t k); /* its address */
LLVMValueRef fn_alloca(Fn *, LLVMTypeRef, uint32_t align);
/* Values computed from here on are forgotten at the matching pop. */
uint32_t fn_push(Fn *);
void fn_pop(Fn *, uint32_t mark);
/* The end of a statement. */
void fn_forget(Fn *);

/* ---- fn_memory.c ---- */

void fn_aliases(Fn *);
LLVMValueRef fn_load(Fn *, const LsData *); /* and gather */
void fn_store(Fn *, const LsData *);        /* and scatter */
/* mem[offset]; the store of x there, past the caches if it is known to be aligned. */
LLVMValueRef fn_element(Fn *, LMem, Lx offset);
void fn_stream(Fn *, LMem, LLVMValueRef x, LLVMValueRef p, bool aligned);
void fn_prefetch(Fn *, const LsData *);

/* ---- fn_call.c: user operators ---- */

/* 0, or the id of the failure. value: an array of what the statement computes. */
LLVMValueRef fn_user_call(Fn *, const LoopCall *, LLVMValueRef value);

/* ---- fn_program.c ---- */

void fn_program(Fn *, const LsData *);

#endif
