/* Symbolic integers: hash-consed and canonical at construction, so that a.i == b.i proves equality
 * (sym_eq proves more). An expression is a sum of terms coef * product of atoms, plus a constant;
 * an atom is a variable, floordiv, mod, min, max, or an operation on doubles (SYM_REAL ...). Each
 * expression caches its range and a known divisor. Arithmetic that leaves int64 gives up: see
 * below. Loop axes of kernels are variables of the same table.
 *
 * To give up: the operation returns the table's unknown variable (sym_gave_up), never a wrapped
 * value, and records an error if it is the first of the table that gives up.
 *
 * All expressions of a call are of one table and not none, unless said. Questions (const SymTab *)
 * never guess: they say YES, NO or true only if that holds for all values of the variables within
 * their ranges. Tables and expressions live as long as the context. */
#ifndef WEFT_IR_SYM_H
#define WEFT_IR_SYM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ctx.h"

typedef struct {
	uint32_t i;
} Sym; /* 0 means none */

typedef enum { NO, YES, MAYBE } Truth;

#define SYM_INF INT64_MAX /* no upper bound; -SYM_INF: no lower bound */

typedef enum {
	SYM_CONST, SYM_VAR, SYM_SUM, SYM_PRODUCT, SYM_FLOORDIV, SYM_MOD, SYM_MIN, SYM_MAX,
	/* Doubles. Only the kinds from SYM_REAL on read them. */
	SYM_REAL_CONST,
	SYM_REAL, /* an integer as a double */
	SYM_REAL_ADD, SYM_REAL_MUL, SYM_REAL_DIV, SYM_REAL_SQRT,
	/* Integers from doubles; the last two give 1 or 0. */
	SYM_FLOOR, SYM_CEIL, SYM_TRUNC, SYM_RINT, SYM_REAL_LESS, SYM_REAL_EQUAL
} SymKind;

typedef enum {
	SYMVAR_SIZE,     /* the extent of an input's dimension, solved when a call begins */
	SYMVAR_UNBACKED, /* a size that depends on data, known while the call runs */
	SYMVAR_AXIS      /* a loop axis of a kernel */
} SymVarKind;

typedef struct SymTab SymTab;

/* Returns an empty table, in ctx->arena. */
SymTab *symtab_new(Ctx *);

/* Names of SIZE and UNBACKED variables belong to a scope, so that s0 of one file is not s0 of
 * another in the same table. Functions that make, find or count variables use the current scope.
 * Scope 0 exists from the start, as the current one. Expressions may contain variables of any
 * scope. */

/* Makes a new, empty scope, which becomes the current one, and returns its number. */
uint32_t sym_scope_new(SymTab *);
/* Returns the number of the current scope. */
uint32_t sym_scope(const SymTab *);
/* Makes an existing scope the current one. */
void sym_set_scope(SymTab *, uint32_t scope);

/* ---- making expressions ---- */

/* Returns the constant. */
Sym sym_int(SymTab *, int64_t);
/* Returns a new variable in lo..hi (-SYM_INF, SYM_INF: no bound). Copies the name. AXIS names may
 * repeat. It is an internal error if lo > hi, or if the current scope has a SIZE or UNBACKED
 * variable of the name of a new one. */
Sym sym_var(SymTab *, const char *name, SymVarKind, int64_t lo, int64_t hi);
/* Returns a new AXIS variable in 0..extent - 1, in no scope; extent may be symbolic. Copies the
 * name, which may repeat. Comparisons and simplification use the bound. */
Sym sym_axis(SymTab *, const char *name, Sym extent);
/* Returns the SIZE or UNBACKED variable of that name (len bytes) in the current scope, or none. */
Sym sym_find(const SymTab *, const char *name, uint32_t len);
/* Gives a SIZE or UNBACKED variable of the current scope another name, which is copied. Returns
 * false, and changes nothing, if the scope has a variable of that name. */
bool sym_rename(SymTab *, Sym var, const char *name);
/* Narrows a variable's range to its part within lo..hi, and the ranges of all expressions that
 * contain it. Returns false, and changes nothing, if the range would become empty. An expression
 * that is no variable is an internal error. */
bool sym_bound(SymTab *, Sym var, int64_t lo, int64_t hi);
/* States that an UNBACKED variable is at most `most`, which may be symbolic. Narrows the variable's
 * range to the greatest value of the bound, unless the range would become empty. If the variable
 * has no hint, the bound's hint becomes its hint. Has no effect if the variable has such a bound
 * already or is of another kind, if `most` contains the variable, or if sym_most finds no bound for
 * `most`. `var` is a variable. */
void sym_set_most(SymTab *, Sym var, Sym most);
/* Returns an upper bound of the value that contains no UNBACKED variable and no AXIS, found from
 * the ranges, sym_set_most and the extents of axes. Returns the expression itself if it contains
 * none of these, and none (0) if no bound is known. */
Sym sym_most(SymTab *, Sym);
/* Whether the bound of sym_most is close: no term of the expression has two factors that contain
 * UNBACKED variables (the product of two bounds would mostly be far too large). Products inside an
 * atom do not count. */
bool sym_most_is_near(const SymTab *, Sym);
/* Sets the hint of a variable: its value when the model was exported, 0 if unknown. Hints serve
 * costs and sampling, never correctness. An expression that is no variable is an internal error. */
void sym_set_hint(SymTab *, Sym var, int64_t hint);
/* Returns the value of an expression at the hints; a variable whose hint is 0 has its least value,
 * or 0 if it has no lower bound. Returns 0 if the expression has no value there (overflow, division
 * by 0). Of a double, returns the bits of the value. */
int64_t sym_hint(const SymTab *, Sym);

/* The next functions return a canonical expression, of integers. They give up (see the top) if a
 * number in the result would leave int64, if the result would have more than 4096 terms, and on a
 * divisor that is the constant 0. */

/* Returns a + b. */
Sym sym_add(SymTab *, Sym a, Sym b);
/* Returns a - b. */
Sym sym_sub(SymTab *, Sym a, Sym b);
/* Returns a * b. */
Sym sym_mul(SymTab *, Sym a, Sym b);
/* Returns a / b rounded towards minus infinity. */
Sym sym_floordiv(SymTab *, Sym a, Sym b);
/* Returns a - b * floordiv(a, b): has the sign of the divisor, as Python's %. */
Sym sym_mod(SymTab *, Sym a, Sym b);
/* Returns a / b rounded towards plus infinity. */
Sym sym_ceildiv(SymTab *, Sym a, Sym b);
/* Returns the smaller of a and b. */
Sym sym_min(SymTab *, Sym a, Sym b);
/* Returns the greater of a and b. */
Sym sym_max(SymTab *, Sym a, Sym b);
/* Does as sym_add with a constant b. */
Sym sym_addi(SymTab *, Sym a, int64_t b);
/* Does as sym_mul with a constant b. */
Sym sym_muli(SymTab *, Sym a, int64_t b);
/* Does as sym_floordiv with a constant divisor b. */
Sym sym_divi(SymTab *, Sym a, int64_t b);
/* Does as sym_mod with a constant divisor b. */
Sym sym_modi(SymTab *, Sym a, int64_t b);

/* Whether the expression is the unknown variable, which an operation returned that gave up. False
 * for an expression that contains this variable. */
bool sym_gave_up(const SymTab *, Sym);

/* Returns the constant double. */
Sym sym_real_const(SymTab *, double);
/* Returns the result of an operation, of a kind from SYM_REAL to SYM_REAL_EQUAL, on a and b; b is
 * none for kinds with one operand. Computes an operation on constants, but for rounding (SYM_FLOOR
 * to SYM_RINT) of NaN and of a double beyond 2^62: the result is an expression then, without a
 * value. SYM_REAL reads an integer, the other kinds doubles; any other operand is an internal
 * error. */
Sym sym_real_op(SymTab *, SymKind, Sym a, Sym b);
/* Whether the expression is a double, and no integer. */
bool sym_is_real(const SymTab *, Sym);
/* Returns true, and the value in *value (not NULL), if the expression is a constant double. Returns
 * false for other expressions, with *value unchanged. */
MUST_LOOK bool sym_real_is_const(const SymTab *, Sym, double *value);

/* ---- questions ---- */

/* Returns true, and the value in *value (which may be NULL), if the expression is a constant
 * integer. Returns false for other expressions, with *value unchanged. */
MUST_LOOK bool sym_is_const(const SymTab *, Sym, int64_t *value);
/* Returns the value of a constant integer, `otherwise` for other expressions. */
int64_t sym_const_or(const SymTab *, Sym, int64_t otherwise);
/* Returns the value of a constant integer; any other expression is an internal error. */
int64_t sym_const(const SymTab *, Sym);
/* Whether the expression is the constant integer `value`. */
bool sym_is(const SymTab *, Sym, int64_t value);
/* Whether a == b: for all values of the variables (YES), for none (NO), or not known (MAYBE). */
Truth sym_eq(const SymTab *, Sym a, Sym b);
/* Whether a <= b, as sym_eq answers. */
Truth sym_le(const SymTab *, Sym a, Sym b);
/* Whether a < b, as sym_eq answers. */
Truth sym_lt(const SymTab *, Sym a, Sym b);
/* Whether k provably divides the value. 0 divides the constant 0 only. */
MUST_LOOK bool sym_divides(const SymTab *, int64_t k, Sym);
/* Sets *lo and *hi to bounds of the value, inclusive; -SYM_INF, SYM_INF: no bound is known. The
 * bounds of a double are integers that enclose it. */
void sym_range(const SymTab *, Sym, int64_t *lo, int64_t *hi);

/* ---- the structure of an expression; terms and factors are in canonical order ---- */

/* Returns the operation of which the expression is the result, or that it is a constant or a
 * variable. */
SymKind sym_kind(const SymTab *, Sym);
/* Returns the name of a variable; any other expression is an internal error. */
const char *sym_name(const SymTab *, Sym var);
/* Returns the kind of a variable; any other expression is an internal error. */
SymVarKind sym_var_kind(const SymTab *, Sym var);
/* Returns the exclusive upper bound of a variable: of an AXIS of sym_axis its extent, of an
 * UNBACKED variable the bound of sym_set_most + 1; none for other variables. An expression that is
 * no variable is an internal error. */
Sym sym_axis_extent(const SymTab *, Sym var);
/* Returns the number of terms of a sum (each a PRODUCT, an atom or a CONST), of factors of a
 * product, of operands of another operation; 0 for constants and variables. */
uint32_t sym_nargs(const SymTab *, Sym);
/* Returns term, factor or operand k. A constant is factor 0 of a product, and the last term of a
 * sum. k >= sym_nargs is an internal error. */
Sym sym_arg(const SymTab *, Sym, uint32_t k);
/* Whether the variable occurs in e, or is e. */
bool sym_uses(const SymTab *, Sym e, Sym var);
/* Whether any variable of that kind occurs in e. */
bool sym_uses_kind(const SymTab *, Sym e, SymVarKind);
/* Whether a variable of that kind that is none of known[0 .. n-1] occurs in e, of whatever
 * scope. */
bool sym_uses_others(const SymTab *, Sym e, SymVarKind, const Sym *known, uint32_t n);
/* Returns the divisor d of a floordiv(var, d) or mod(var, d) inside e, of the first one if there
 * are several; none if there is none. */
Sym sym_divisor_of(const SymTab *, Sym e, Sym var);
/* Splits e into coef * var + rest; neither contains var, and coef is 0 if e does not. rest may be
 * NULL, which is faster. Returns false if e is not linear in var; both then have no meaning. */
MUST_LOOK bool sym_linear(SymTab *, Sym e, Sym var, Sym *coef, Sym *rest);
/* Returns e with the n variables var[] replaced by by[], all at the same time. n = 0: makes e
 * again, so that ranges that were narrowed since may simplify it. An operation may give up, as in
 * sym_add. */
Sym sym_subst(SymTab *, Sym e, const Sym *var, const Sym *by, uint32_t n);

/* Sets *out to the value of e with var[k] = value[k], k < n; of a double, to its bits. Returns
 * false, with *out of no meaning, if a variable of e is missing in var[], on overflow, on division
 * by 0, and where a NaN or a double above 2^62 is rounded to an integer. */
MUST_LOOK bool sym_eval(const SymTab *, Sym e, const Sym *var, const int64_t *value, uint32_t n,
			int64_t *out);
/* Returns the number of SIZE and UNBACKED variables of the current scope. */
uint32_t sym_nvars(const SymTab *);
/* Returns variable k of these, in the order of creation; none for k >= sym_nvars. */
Sym sym_var_at(const SymTab *, uint32_t k);

/* ---- from one table into another ---- */

/* A translation of expressions of table `from`, which may contain variables of from's current scope
 * only, to expressions of `to`, which is another table than `from`. Lies in to's arena, and reads
 * `from`. */
typedef struct SymImport SymImport;
/* Returns a translation into a new scope of `to`, which becomes the current one. The scope has
 * variables of the same names, kinds, ranges and hints as from's current scope, without the bounds
 * of sym_set_most. */
SymImport *sym_import_new(SymTab *to, const SymTab *from);
/* Returns a translation into to's current scope: the variable var[k] of `from` becomes the
 * expression by[k] of `to` (k < n). For each other variable of from's current scope, makes a
 * variable of the same name, kind, range and hint; if the scope has a variable of that name, "_"
 * and a number are appended. */
SymImport *sym_import_at(SymTab *to, const SymTab *from, const Sym *var, const Sym *by, uint32_t n);
/* Returns the expression of `to` that stands for an expression of `from`. A variable that was not
 * in from's scope when the translation was made, and is no var[k], is an internal error. */
Sym sym_import(SymImport *, Sym of_from);

/* ---- text ---- */

/* Appends the text of an expression: "2*s0 + s1*s2 - 3", "floordiv(s0, 2)", "mod(s0, 3)", "min(a,
 * b)". sym_parse reads that of an integer whose variables are in the current scope. */
void sym_print(const SymTab *, Sym, Text *);
/* Returns the text of sym_print, in the scratch arena. */
const char *sym_str(const SymTab *, Sym);
/* Parses an integer expression at *s and advances *s behind it. Makes no variable. Returns none,
 * without a message, if the text is no expression, divides by the constant 0, or has a name that
 * the current scope lacks; *s is then where parsing stopped. An operation may give up, as in
 * sym_add. */
Sym sym_parse(SymTab *, const char **s);

#endif
