/* Private to codegen/print/c: one C file being written. */
#ifndef WEFT_CODEGEN_PRINT_C_EMIT_PRIV_H
#define WEFT_CODEGEN_PRINT_C_EMIT_PRIV_H

#include "codegen/print/c/emit.h"
#include "codegen/print/names.h"
#include "ir/loop/prelude.h"
#include "weft_model.h"

/* How tightly an expression's outermost operator binds. */
typedef enum { PREC_ATOM, PREC_UNARY, PREC_MUL, PREC_ADD, PREC_LOW } Prec;

typedef struct {
	const char *s;
	Prec prec;
} CExpr;

/* A translation unit: types and helper functions are written when first used. */
typedef struct {
	Ctx *ctx;
	Arena *arena;
	const Target *target;
	Intern known; /* types, helpers and scalar functions already written */
	Text types, helpers;
	bool intrinsics; /* some are used */
	bool wide;       /* some vectors are wider than a register of the target */
} CUnit;

void unit_init(CUnit *, Ctx *, const Target *);
/* Includes, types, helpers: what precedes the kernels of a unit. Names of the headers that declare
 * the kernels and the intrinsics; NULL: by itself. */
void unit_head(CUnit *, Text *out, const char *kernels, const char *vector);
/* The head of the artifact's function of that name (NULL: "weft_model"), which is visible from
 * outside. */
void c_export(Text *out, const char *export_name);

/* ---- types (types.c) ---- */

const char *c_elem(DType);                /* of a compute dtype in C: "float", "int64_t", "bool" */
const char *c_storage(DType);             /* as it lies in memory: "uint16_t" for f16 */
const char *c_type(CUnit *, LType);       /* "f32x16", "b16", "float"; declares it */
const char *type_label(CUnit *, LType);   /* for names of functions: "f32x16", "b16", "f32" */

/* ---- expressions (ops.c) ---- */

CExpr c_atom(const char *);
const char *c_arg(CUnit *, CExpr, Prec); /* its text, in parentheses unless it binds at least so
                                            tightly */
CExpr c_int(CUnit *, LType, int64_t);
CExpr c_float(CUnit *, LType, double);
CExpr c_infix(CUnit *, CExpr, const char *op, CExpr, Prec);
CExpr c_call(CUnit *, const char *fn, const CExpr *in, uint32_t nin);
/* A basic operation; operand: type of the first operand. */
CExpr c_op(CUnit *, ScOp, LType result, LType operand, const CExpr *in, uint32_t nin, unsigned known);

/* ---- helpers (prelude.c) ---- */

/* The name of the helper function `op` with result type `to` and operands of type `from`. Writes it
 * and what it needs first. */
const char *c_helper(CUnit *, const char *op, LType to, LType from);
bool is_helper_op(const char *name, size_t n);

/* How C reaches the instructions of a family of targets. */
typedef struct {
	const char *family;
	void (*header)(const Target *, Text *); /* writes what declares the intrinsics; NULL: there
	                                           are none */
	const char *include; /* the same where only one file is wanted */
} Prelude;

/* Of the target's family; an empty one for scalar targets. */
const Prelude *prelude_of(const Target *);
void x86_header(const Target *, Text *);
void neon_header(const Target *, Text *);

/* ---- library functions (library.c) ---- */

/* The name of the function, which is written first. */
const char *c_library(CUnit *, Ir *, const ScFn *, uint32_t lanes);
CExpr c_look_up(CUnit *, const ScTable *, uint32_t lanes, CExpr index);

/* ---- statements (kernel.c) ---- */

typedef enum { FN_KERNEL, FN_SIZES, FN_RUN, FN_LIBRARY } FnRole;

/* The definition of a kernel or of a program function. */
void c_function(CUnit *, const LoopFn *, const char *name, FnRole, const ProgramEntry *,
                const char *const *kernel_name, Text *out);
const char *c_string(Arena *, const char *); /* with quotes and escapes */

/* ---- call.c: user operators ---- */

/* DLPack's code by its name in weft_model.h. */
const char *c_dtype_code(WeftDType);

/* The name of the table of a call in the kernel of that name. */
const char *c_user_call(CUnit *, const char *kernel, const LoopFn *, const LsData *);
/* The tables of all its calls, and what they call. */
void c_user_tables(CUnit *, const LoopFn *, const char *kernel, Text *out);

/* ---- model.c ---- */

void c_model(CUnit *, const Program *, const EmitOptions *, const char *const *kernel_name, Text *out);

#endif
