/* Private to codegen/print/c: prints one C file. Functions that return a CExpr or a text return C
 * text in the arena of the unit; those that take a CUnit may first add types and helpers to it. */
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

/* The words in which languages like C differ. */
typedef struct CDialect {
	const char *helper;        /* the head of helper functions: "static inline" */
	const char *function;      /* the head of functions that are not inline: "static" */
	const char *table;         /* the head of tables: "static const" */
	const char *local;         /* the alignment of a local array: "_Alignas(64)" */
	const char *restrict_word; /* "restrict" */
	bool gnu;                  /* has __builtin_expect and __builtin_prefetch */
	bool cpp;                  /* keywords of C++ are no names */
	const char *const *own;    /* further names that are taken; NULL ends the list */
	const char *head;          /* the beginning of a unit; NULL: the headers of C */
	const struct CBlock *block; /* of blocks of threads; NULL: CPU code */
} CDialect;

extern const CDialect c_dialect;

/* The words for blocks of threads. Functions are called with values; the head of the dialect
 * declares those that the language has not. */
typedef struct CBlock {
	const char *kernel; /* the head of a kernel; a format for the number of threads */
	const char *failure; /* the type of the record of failed checks */
	const char *task;   /* the number of the block, an int64_t */
	const char *thread; /* the number of the thread, an int32_t */
	const char *shared; /* of shared arrays, their alignment */
	const char *sync;
	const char *copy, *commit, *wait; /* functions of asynchronous copies */
	const char *warp[WARP_COUNT];     /* functions */
} CBlock;

/* A translation unit. Types and helper functions are printed when first used. */
typedef struct {
	Ctx *ctx;
	Arena *arena;
	const Target *target;
	const CDialect *dialect;
	Intern known; /* types, helpers and scalar functions that were printed */
	Text types, helpers;
	bool intrinsics; /* intrinsics are used */
	bool wide;       /* vectors wider than a register of the target are used */
} CUnit;

/* Begins a unit in which nothing is declared: sets every field. The unit's memory is of ctx->arena;
 * the target and the dialect are referred to, not copied. */
void unit_init(CUnit *, Ctx *, const Target *, const CDialect *);
/* Appends the beginning of a finished unit: includes, types, helpers. kernels: the name of the
 * header that declares kernels; NULL: none is included. vector: the name of the header that
 * declares intrinsics; NULL: Prelude.include. It is included only if the unit uses intrinsics. */
void unit_head(CUnit *, Text *out, const char *kernels, const char *vector);
/* Appends the comment of a function, the lines of its graph, if it has one. */
void c_head_comment(const LoopFn *, Text *out);
/* Appends the head of the artifact's exported function (NULL: "weft_model"), to be followed by the
 * body in braces. */
void c_export(Text *out, const char *export_name);

/* ---- types (types.c) ---- */

/* Returns the C type of the dtype_compute: "float", "int64_t", "bool". */
const char *c_elem(DType);
/* Returns the C type of the dtype_raw, in memory: "uint16_t" for f16. */
const char *c_storage(DType);
/* Returns the C type of a value: "f32x16", "b16", "float"; declares it in the unit. */
const char *c_type(CUnit *, LType);
/* Returns the name of the function that makes a pack of its elements, and declares it in the
 * unit. */
const char *c_pack_function(CUnit *, LType);
/* Returns the type's part of the names of functions: "f32x16", "b16", "f32". Declares nothing. */
const char *type_label(CUnit *, LType);

/* ---- expressions (ops.c) ---- */

/* Returns the text as an expression that needs no parentheses. */
CExpr c_atom(const char *);
/* Returns the text of the expression, in parentheses if its operator binds less tightly than
 * `prec`. */
const char *c_arg(CUnit *, CExpr, Prec prec);
/* Returns an integer or bool literal in all lanes of a type. */
CExpr c_int(CUnit *, LType, int64_t);
/* Returns a float literal in all lanes of a type. */
CExpr c_float(CUnit *, LType, double);
/* Returns the expression "a op b", where op is a left-associative infix operator of this
 * precedence; with PREC_LOW operands that are infix expressions stand in parentheses. */
CExpr c_infix(CUnit *, CExpr a, const char *op, CExpr b, Prec);
/* Returns the expression "fn(in[0], ...)". */
CExpr c_call(CUnit *, const char *fn, const CExpr *in, uint32_t nin);
/* Returns a basic operation on operands in[], by its prelude row: an operator of C, or a call of a
 * helper (c_helper). operand: the type of the first operand; known: KNOWN_ bits. */
CExpr c_op(CUnit *, ScOp, LType result, LType operand, const CExpr *in, uint32_t nin,
	   unsigned known);

/* ---- helpers (prelude.c) ---- */

/* Returns the name of the helper function `op`, and adds the helper, and what it calls, to the
 * unit. `to` and `from` choose its row (PreludeRow): of an ScOp the types of its result and its
 * first operand, as prelude_types changes them; of a gather or scatter the type of the moved
 * elements and that of the indices; of each other helper (splat, mask, any, load, store, lo, join,
 * ...) twice the type of the vector or mask that is made, moved or taken apart. An op that is
 * unknown, or has no row for the types, is an internal error. */
const char *c_helper(CUnit *, const char *op, LType to, LType from);
/* Whether the n bytes at `name` are the op of helper functions ("min" of "min_f32x16"), so that
 * a library function whose name begins so needs a prefix. */
bool is_helper_op(const char *name, size_t n);

/* The intrinsics of a family of targets in C. */
typedef struct {
	const char *family;
	void (*header)(const Target *, Text *); /* prints the declarations of the intrinsics; NULL:
	                                           there are none */
	const char *include; /* the #include for a single file */
} Prelude;

/* Returns the prelude of the target's family; one whose `header` and `include` are NULL for targets
 * without vectors and for families without intrinsics. */
const Prelude *prelude_of(const Target *);
/* Appends the declarations of the intrinsics that the target has: Prelude.header of x86-64. */
void x86_header(const Target *, Text *);
/* Appends the #include of <arm_neon.h>: Prelude.header of aarch64. */
void neon_header(const Target *, Text *);

/* ---- library functions (library.c) ---- */

/* Returns the name of the C function for a scalar function on `lanes` lanes, and adds the function,
 * and what it calls, to the unit the first time. */
const char *c_library(CUnit *, Ir *, const ScFn *, uint32_t lanes);
/* Returns the expression of table[index], lane by lane; adds the table to the unit the first
 * time. */
CExpr c_look_up(CUnit *, const ScTable *, uint32_t lanes, CExpr index);

/* ---- index arithmetic in 32 bits (narrow.c), of blocks of threads ---- */

typedef struct Narrow Narrow;
/* Finds out which i64 scalars of a function that blocks of threads execute fit into 32 bits. */
const Narrow *narrow_of(const LoopFn *, Arena *);
/* Whether the C expression of x is an int32_t: its operands are, and all its values fit. This,
 * narrow_var and narrow_param are false for Narrow NULL. */
bool narrow_lx(const Narrow *, Lx x);
/* Whether x, of which narrow_lx is false, has operands that are all int32_t: one of them must be
 * cast to int64_t, so that C computes x in 64 bits. Not for NULL. */
bool narrow_needs_cast(const Narrow *, Lx x);
/* Whether the variable, and the parameter, is an int32_t. */
bool narrow_var(const Narrow *, Lv);
bool narrow_param(const Narrow *, uint32_t k);

/* ---- statements (kernel.c) ---- */

typedef enum { FN_KERNEL, FN_SIZES, FN_RUN, FN_LIBRARY } FnRole;

/* Appends the definition of a legal function under the name, behind the tables of its calls of user
 * operators (c_user_tables). A function of a block of threads needs a dialect with CBlock; else an
 * internal error. The entry, and kernel_name (the result of kernel_names), are for FN_SIZES and
 * FN_RUN; else NULL. */
void c_function(CUnit *, const LoopFn *, const char *name, FnRole, const ProgramEntry *,
                const char *const *kernel_name, Text *out);
/* Returns s (NULL: "") as a C string literal, with quotes and escapes. */
const char *c_string(Arena *, const char *s);

/* ---- call.c: user operators. The table of a call (WeftOpCall in runtime.h) describes its operator
 * and tensors. ---- */

/* Returns the name in weft_model.h of the dtype's DLPack code: "WEFT_FLOAT". Not for complex. */
const char *c_dtype_code(WeftDType);

/* Returns the name of the table of a call, the statement LS_CALL of the kernel f that is called
 * `kernel` in C. */
const char *c_user_call(CUnit *, const char *kernel, const LoopFn *f, const LsData *);
/* Appends the tables of all calls of a kernel, and declarations of their operators. */
void c_user_tables(CUnit *, const LoopFn *f, const char *kernel, Text *out);

/* ---- model.c ---- */

/* Appends the functions of all entries, the tables of the model, and the exported function. */
void c_model(CUnit *, const Program *, const EmitOptions *, const char *const *kernel_name,
	     Text *out);

#endif
