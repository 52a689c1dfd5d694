/* Private to the files of ir/scalar and the interpreter of loop IR: the text form of scalar
 * functions, the library, and evaluation on values in their natural representation. */
#ifndef WEFT_IR_SCALAR_PRIV_H
#define WEFT_IR_SCALAR_PRIV_H

#include "base/array.h"
#include "ir/scalar/scalar.h"

/* ---- text, parsed once ---- */

typedef enum { EXPR_INT, EXPR_FLOAT, EXPR_NAME, EXPR_CALL } ExprKind;

typedef struct Expr {
	ExprKind kind;
	const char *name;    /* EXPR_NAME, EXPR_CALL */
	const char *bracket; /* "f64" of convert[f64](x), table name of table[t](i); NULL without */
	ARRAY(struct Expr *) arg;
	int64_t i;
	double f; /* also set for EXPR_INT */
} Expr;

typedef struct {
	const char *name;
	const Expr *value;
} ScLet;

typedef struct {
	ARRAY(ScLet) let;
	const Expr *result;
} ScText;

/* NULL when the text is malformed; *at then points at the offending character. */
const ScText *scalar_parse(Arena *, const char *text, const char **at);

/* ---- library functions ---- */

/* The compute dtypes a definition stands for. */
typedef enum { LIB_F32 = 1, LIB_F64 = 2, LIB_FLOAT = 3, LIB_SINT = 4, LIB_UINT = 8, LIB_INT = 12,
	       LIB_BOOL = 16, LIB_ANY = 31 } LibClass;

typedef struct {
	const char *name;
	LibClass cls;
	const char *params; /* "x, y" */
	int expand;         /* not 0: inlined whatever it costs */
	const char *text;
} LibDef;

/* Every definition; the first that fits wins. The list ends with a NULL name. */
extern const LibDef *const lib_lists[];
const ScTable *lib_table(const char *name); /* NULL when unknown */

/* ---- functions ---- */

/* What scalar.c allocates for every ScFn: the function, and where its evaluator keeps values. */
typedef struct {
	ScFn fn;
	const ScGuard *guard; /* by instruction, of calls */
	const uint32_t *slot; /* by instruction; constants own a slot, others share by lifetime */
	uint32_t nslot;
} ScFnPlan;

/* Build an instance of `text` over named parameters; T is the compute dtype. NULL when the text
 * does not take these dtypes or is malformed, with the reason in *why (may be NULL). Lock held. */
const ScFn *scalar_build(const char *name, const char *text, uint32_t nparam,
                         const char *const *param, const DType *in, DType T, const char **why);
/* Library function or scalar op by name for operands in[]; NULL when none takes them. *expand:
 * inline it whatever it costs. Lock held. */
const ScFn *scalar_named(const char *name, const DType *in, uint32_t nin, bool *expand);
Arena *scalar_arena(void); /* lives as long as the process */

/* One instruction on n elements in their natural representation (bool as uint8_t, storage floats as
 * float). `from` is the dtype of the first operand (of the second for select). */
void scalar_step(const ScIns *, DType from, void *out, const void *const *in, uint32_t n);
/* A function on n elements; as scalar_eval_n. */
void scalar_apply(const ScFn *, const void *const *arg, void *out, uint32_t n);
/* Between ScVal and the natural representation. */
void scalar_pack(DType, void *out, const ScVal *in, uint32_t n);
void scalar_unpack(DType, ScVal *out, const void *in, uint32_t n);

#endif
