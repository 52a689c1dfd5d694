/* Private to codegen/print/c: prints one C file. */
#ifndef WEFT_CODEGEN_PRINT_C_EMIT_PRIV_H
#define WEFT_CODEGEN_PRINT_C_EMIT_PRIV_H

#include "codegen/print/c/emit.h"
#include "codegen/print/names.h"
#include "ir/loop/prelude.h"
#include "weft_model.h"

/* The precedence of an expression's outermost operator. */
typedef enum { PREC_ATOM, PREC_UNARY, PREC_MUL, PREC_ADD, PREC_LOW } Prec;

typedef struct {
	const char *s;
	Prec prec;
} CExpr;

/* A translation unit. Types and helper functions are printed when first used. */
typedef struct {
	Ctx *ctx;
	Arena *arena;
	const Target *target;
	Intern known; /* types, helpers and scalar functions that were printed */
	Text types, helpers;
	bool intrinsics; /* intrinsics are used */
	bool wide;       /* vectors wider than a register of the target are used */
} CUnit;

void unit_init(CUnit *, Ctx *, const Target *);
/* Prints the beginning of a unit: includes, types, helpers. kernels, vector: names of the headers
 * that declare kernels and intrinsics; NULL: no header. */
void unit_head(CUnit *, Text *out, const char *kernels, const char *vector);
/* Prints the head of the artifact's exported function (NULL: "weft_model"). */
void c_export(Text *out, const char *export_name);

/* ---- types (types.c) ---- */

const char *c_elem(DType);                /* the C type of a compute dtype: "float", "int64_t",
                                             "bool" */
const char *c_storage(DType);             /* the C type in memory: "uint16_t" for f16 */
const char *c_type(CUnit *, LType);       /* "f32x16", "b16", "float"; declares it */
const char *type_label(CUnit *, LType);   /* for names of functions: "f32x16", "b16", "f32" */

/* ---- expressions (ops.c) ---- */

CExpr c_atom(const char *);
const char *c_arg(CUnit *, CExpr, Prec); /* its text, in parentheses if its precedence is lower */
CExpr c_int(CUnit *, LType, int64_t);
CExpr c_float(CUnit *, LType, double);
CExpr c_infix(CUnit *, CExpr, const char *op, CExpr, Prec);
CExpr c_call(CUnit *, const char *fn, const CExpr *in, uint32_t nin);
/* A basic operation; operand: the type of the first operand. */
CExpr c_op(CUnit *, ScOp, LType result, LType operand, const CExpr *in, uint32_t nin, unsigned known);

/* ---- helpers (prelude.c) ---- */

/* The name of the helper function `op` with result type `to` and operands of type `from`. Prints
 * the helper first, and what it needs. */
const char *c_helper(CUnit *, const char *op, LType to, LType from);
bool is_helper_op(const char *name, size_t n);

/* The intrinsics of a family of targets in C. */
typedef struct {
	const char *family;
	void (*header)(const Target *, Text *); /* prints the declarations of the intrinsics; NULL:
	                                           there are none */
	const char *include; /* the #include for a single file */
} Prelude;

/* The prelude of the target's family; an empty one for scalar targets. */
const Prelude *prelude_of(const Target *);
void x86_header(const Target *, Text *);
void neon_header(const Target *, Text *);

/* ---- library functions (library.c) ---- */

/* The name of a library function, which is printed first. */
const char *c_library(CUnit *, Ir *, const ScFn *, uint32_t lanes);
CExpr c_look_up(CUnit *, const ScTable *, uint32_t lanes, CExpr index);

/* ---- statements (kernel.c) ---- */

typedef enum { FN_KERNEL, FN_SIZES, FN_RUN, FN_LIBRARY } FnRole;

/* Prints the definition of a kernel, or of a function of a program. */
void c_function(CUnit *, const LoopFn *, const char *name, FnRole, const ProgramEntry *,
                const char *const *kernel_name, Text *out);
const char *c_string(Arena *, const char *); /* with quotes and escapes */

/* ---- call.c: user operators ---- */

/* DLPack's code by its name in weft_model.h. */
const char *c_dtype_code(WeftDType);

/* The name of the table of a call, in the kernel of that name. */
const char *c_user_call(CUnit *, const char *kernel, const LoopFn *, const LsData *);
/* Prints the tables of all calls of a kernel, and declarations of the operators. */
void c_user_tables(CUnit *, const LoopFn *, const char *kernel, Text *out);

/* ---- model.c ---- */

void c_model(CUnit *, const Program *, const EmitOptions *, const char *const *kernel_name, Text *out);

#endif
