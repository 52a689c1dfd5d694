/* Symbolic integers: hash-consed and canonical at construction, so that a.i == b.i proves equality
 * (sym_eq proves more). An expression is a sum of terms coef * product of atoms, plus a constant;
 * an atom is a variable, floordiv, mod, min or max. Each expression caches its range and a known
 * divisor. Arithmetic that leaves int64 reports an error and gives a variable of unknown value,
 * never a wrapped value. Loop axes of kernels are variables of the same table.
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
 * Scope 0 exists from the start. Expressions may contain variables of any scope. */
uint32_t sym_scope_new(SymTab *); /* makes an empty scope the current one; returns its number */
uint32_t sym_scope(const SymTab *); /* returns the current scope's number */
void sym_set_scope(SymTab *, uint32_t scope); /* makes an existing scope the current one */

/* ---- making expressions ---- */

/* Returns the constant. */
Sym sym_int(SymTab *, int64_t);
/* Returns a new variable in lo..hi (lo <= hi; -SYM_INF, SYM_INF: no bound). Copies the name. The
 * name of a SIZE or UNBACKED variable must be new in the current scope; AXIS names may repeat: each
 * call makes another variable. */
Sym sym_var(SymTab *, const char *name, SymVarKind, int64_t lo, int64_t hi);
/* Returns a new AXIS variable in 0..extent - 1; extent may be symbolic. Comparisons and
 * simplification use the bound. */
Sym sym_axis(SymTab *, const char *name, Sym extent);
/* Returns the SIZE or UNBACKED variable of that name (len bytes) in the current scope, or none. */
Sym sym_find(const SymTab *, const char *name, uint32_t len);
/* Narrows a variable's range to its part within lo..hi, and the ranges of all expressions that
 * contain it. Returns false, and changes nothing, if the range would become empty. An expression
 * that is no variable is an internal error. */
bool sym_bound(SymTab *, Sym var, int64_t lo, int64_t hi);
/* States that an UNBACKED variable is at most `most`, which may be symbolic. Narrows the variable's
 * range to the greatest value of the bound, unless the range would become empty. If the variable
 * has no hint, the bound's hint becomes its hint. Has no effect if the variable has such a bound
 * already or is of another kind, if `most` contains the variable, or if sym_most finds no bound for
 * `most`. */
void sym_set_most(SymTab *, Sym var, Sym most);
/* Returns an upper bound of the value that contains no UNBACKED variable, found from the ranges and
 * sym_set_most. Returns the expression itself if it contains no UNBACKED variable, and none (0) if
 * no bound is known. */
Sym sym_most(SymTab *, Sym);
/* Whether the bound of sym_most is close: no product in the expression contains two UNBACKED
 * factors. The product of two bounds would mostly be far too large. */
bool sym_most_is_near(const SymTab *, Sym);
/* Sets the hint of a variable: its value when the model was exported, 0 if unknown. Hints serve
 * costs and sampling, never correctness. An expression that is no variable is an internal error. */
void sym_set_hint(SymTab *, Sym var, int64_t hint);
/* Returns the value of an expression at the hints; variables without a hint have their least value,
 * or 0 without one. Returns 0 if that value does not exist (overflow, division by 0), and of
 * a double its bits. */
int64_t sym_hint(const SymTab *, Sym);

/* The next functions return the canonical expression of an operation on a and b, in this order. If
 * the value would leave int64 they record an error and return a variable of unknown value
 * (sym_gave_up). */

/* The sum. */
Sym sym_add(SymTab *, Sym, Sym);
/* The difference. */
Sym sym_sub(SymTab *, Sym, Sym);
/* The product. */
Sym sym_mul(SymTab *, Sym, Sym);
/* The quotient rounded towards minus infinity. Here and below a divisor that is the constant 0
 * counts as a value that leaves int64. */
Sym sym_floordiv(SymTab *, Sym, Sym);
/* a - b * floordiv(a, b): has the sign of the divisor, as Python's %. */
Sym sym_mod(SymTab *, Sym, Sym);
/* The quotient rounded towards plus infinity. */
Sym sym_ceildiv(SymTab *, Sym, Sym);
/* The smaller one. */
Sym sym_min(SymTab *, Sym, Sym);
/* The greater one. */
Sym sym_max(SymTab *, Sym, Sym);
/* sym_add with a constant. */
Sym sym_addi(SymTab *, Sym, int64_t);
/* sym_mul with a constant. */
Sym sym_muli(SymTab *, Sym, int64_t);
/* sym_floordiv with a constant divisor. */
Sym sym_divi(SymTab *, Sym, int64_t);
/* sym_mod with a constant divisor. */
Sym sym_modi(SymTab *, Sym, int64_t);

/* Whether this is the variable that replaces a value which left int64. The error was reported
 * already. */
bool sym_gave_up(const SymTab *, Sym);

/* Returns the constant double. */
Sym sym_real_const(SymTab *, double);
/* Returns an operation of kind SYM_REAL to SYM_REAL_EQUAL. b is none for kinds with one operand. An
 * operand that is an integer where the kind reads a double, or the reverse, is an internal
 * error. */
Sym sym_real_op(SymTab *, SymKind, Sym a, Sym b);
/* Whether the value is a double. */
bool sym_is_real(const SymTab *, Sym);
/* Sets *value (not NULL) to a constant double and returns true. Returns false for other
 * expressions. */
MUST_LOOK bool sym_real_is_const(const SymTab *, Sym, double *value);

/* ---- questions ---- */

/* Returns true, and the value in *value (which may be NULL), if the expression is a constant. */
MUST_LOOK bool sym_is_const(const SymTab *, Sym, int64_t *value);
/* Returns the value of a constant, `otherwise` for other expressions. */
int64_t sym_const_or(const SymTab *, Sym, int64_t otherwise);
/* Returns the value of a constant; any other expression is an internal error. */
int64_t sym_const(const SymTab *, Sym);
/* Whether the expression is this constant. */
bool sym_is(const SymTab *, Sym, int64_t value);
/* Whether a == b: for all values of the variables (YES), for none (NO), or not known (MAYBE). */
Truth sym_eq(const SymTab *, Sym a, Sym b);
/* Whether a <= b, as sym_eq answers. */
Truth sym_le(const SymTab *, Sym a, Sym b);
/* Whether a < b, as sym_eq answers. */
Truth sym_lt(const SymTab *, Sym a, Sym b);
/* Whether k provably divides the value. 0 divides the constant 0 only. */
MUST_LOOK bool sym_divides(const SymTab *, int64_t k, Sym);
/* Sets *lo and *hi to bounds of the value, inclusive; -SYM_INF, SYM_INF: no bound is known. */
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
/* Returns term, factor or operand k. k >= sym_nargs is an internal error. */
Sym sym_arg(const SymTab *, Sym, uint32_t k);
/* Whether the variable occurs in e. */
bool sym_uses(const SymTab *, Sym e, Sym var);
/* Whether any variable of that kind occurs in e. */
bool sym_uses_kind(const SymTab *, Sym e, SymVarKind);
/* Returns the divisor d of a floordiv(var, d) or mod(var, d) inside e, of the first one if there
 * are several; none if there is none. */
Sym sym_divisor_of(const SymTab *, Sym e, Sym var);
/* Splits e into coef * var + rest, neither of which contains var; coef is 0 if e does not contain
 * var. Returns false if e is not linear in var; *coef and *rest then have no meaning. */
MUST_LOOK bool sym_linear(SymTab *, Sym e, Sym var, Sym *coef, Sym *rest);
/* Returns e with the n variables var[] replaced by by[], all at the same time. n = 0: makes e
 * again, so that ranges that were narrowed since may simplify it. */
Sym sym_subst(SymTab *, Sym e, const Sym *var, const Sym *by, uint32_t n);

/* Sets *out to the value of e with var[k] = value[k]; of a double, to its bits. Returns false if a
 * variable is missing, on overflow and on division by 0; *out then has no meaning. */
MUST_LOOK bool sym_eval(const SymTab *, Sym e, const Sym *var, const int64_t *value, uint32_t n,
			int64_t *out);
/* Returns the number of SIZE and UNBACKED variables of the current scope. */
uint32_t sym_nvars(const SymTab *);
/* Returns variable k of these, in the order of creation; none for k >= sym_nvars. */
Sym sym_var_at(const SymTab *, uint32_t k);

/* ---- from one table into another ---- */

/* A translation of expressions of table `from`, which may contain variables of from's current scope
 * only, to expressions of `to`. Lies in to's arena. */
typedef struct SymImport SymImport;
/* Makes a new scope in `to`, the current one, with variables of the same names, ranges and hints as
 * in from's current scope. */
SymImport *sym_import_new(SymTab *to, const SymTab *from);
/* Works in to's current scope: the variable var[k] of from becomes the expression by[k] of `to`;
 * for each other variable of from's current scope a variable is made whose name is new in `to`. */
SymImport *sym_import_at(SymTab *to, const SymTab *from, const Sym *var, const Sym *by, uint32_t n);
/* Returns the expression of `to` that stands for an expression of `from`. A variable of another
 * scope than the one that the translation was made for is an internal error. */
Sym sym_import(SymImport *, Sym of_from);

/* ---- text ---- */

/* Appends "2*s0 + s1*s2 - 3", "floordiv(s0, 2)", "mod(s0, 3)", "min(a, b)", which sym_parse
 * reads. */
void sym_print(const SymTab *, Sym, Text *);
const char *sym_str(const SymTab *, Sym); /* the same text, in the scratch arena */
/* Parses an expression at *s and advances *s behind it. Makes no variable. Returns none, without a
 * message, if the text is no expression or the current scope lacks a name; *s is then where parsing
 * stopped. An operation that leaves int64 records an error as sym_add does. */
Sym sym_parse(SymTab *, const char **s);

#endif
