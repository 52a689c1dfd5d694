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

/* Parses the text of a scalar function (scalar.h) and returns it, in the arena. Returns NULL if the
 * text is malformed. at may be NULL; else *at is set to the place where parsing stopped: the
 * offending character, or the end. */
const ScText *scalar_parse(Arena *, const char *text, const char **at);

/* ---- library functions ---- */

/* The compute dtypes for which a definition serves. */
typedef enum { LIB_F32 = 1, LIB_F64 = 2, LIB_FLOAT = 3, LIB_SINT = 4, LIB_UINT = 8, LIB_INT = 12,
	       LIB_BOOL = 16, LIB_ANY = 31 } LibClass;

typedef struct {
	const char *name;
	LibClass cls;
	const char *params; /* "x, y" */
	int expand;         /* not 0: inlined whatever it costs */
	const char *text;
} LibDef;

/* All lists of definitions, ended by NULL; each ends with a NULL name. The first definition that
 * fits name and dtype wins. */
extern const LibDef *const lib_lists[];
/* Returns the table of that name, which the basic operation `table` reads; NULL if there is
 * none. */
const ScTable *lib_table(const char *name);

/* ---- functions ---- */

/* What scalar_build allocates for every ScFn, which is its first field: a slot is a place for the
 * values of an instruction during evaluation. */
typedef struct {
	ScFn fn;
	const ScGuard *guard; /* by instruction, of calls */
	const uint32_t *slot; /* by instruction; constants own a slot, others share by lifetime */
	uint32_t nslot;
} ScFnPlan;

/* Makes a function `name` from `text` over the nparam parameters param[], of dtypes in[]; T is the
 * dtype that the text calls T. The function lives as long as the process; the caller keeps it in
 * the cache of scalar.c. A text that only calls another function with all parameters in their order
 * gives that function, under its own name. Returns NULL if the text does not take these dtypes or
 * is malformed. why: may be NULL; else *why is set to the reason, which lives as long as the
 * process, or to NULL after success. The caller holds the lock of scalar.c. */
const ScFn *scalar_build(const char *name, const char *text, uint32_t nparam,
                         const char *const *param, const DType *in, DType T, const char **why);
/* Returns the library function of that name for nin > 0 operands of dtypes in[], else the function
 * of the scalar operator of that name; NULL if neither takes them. Sets *expand to whether calls
 * are inlined whatever they cost; false if there is no library function. The caller holds the lock
 * of scalar.c. */
const ScFn *scalar_named(const char *name, const DType *in, uint32_t nin, bool *expand);
/* Returns the arena of all functions, which lives as long as the process; NULL before the first
 * function is made. */
Arena *scalar_arena(void);

/* In the functions below values have their natural representation: the C type of the dtype, bool as
 * uint8_t, storage floats as float. */

/* Evaluates one instruction (not param, const, let or call) on n elements: sets the n values at out
 * to the results for the operands in[]. in[] has 3 pointers; those behind the instruction's
 * operands may be any. out overlaps no operand. from: the dtype of the first operand, of a select
 * that of the second. */
void scalar_step(const ScIns *, DType from, void *out, const void *const *in, uint32_t n);
/* Evaluates a dot product of groups on n elements, as scalar_step does (dot.c). */
void scalar_dot_step(ScOp, void *out, const void *const *in, uint32_t n);
/* Evaluates a function on n elements: arg[k] has n values of parameter k, out receives n. out
 * overlaps no argument. */
void scalar_apply(const ScFn *, const void *const *arg, void *out, uint32_t n);
/* Converts n values of a real dtype from ScVal to the natural representation: integers wrap around,
 * a storage float is rounded to f32 only. */
void scalar_pack(DType, void *out, const ScVal *in, uint32_t n);
/* Converts n values of a real dtype from the natural representation to ScVal. */
void scalar_unpack(DType, ScVal *out, const void *in, uint32_t n);
/* Sets n elements of `size` bytes (1, 2, 4 or 8) at out to the one at `one`. */
void scalar_fill(void *out, const void *one, uint32_t size, uint32_t n);

#endif
