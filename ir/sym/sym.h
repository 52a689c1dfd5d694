/* Symbolic integers: hash-consed and canonical at construction, so that equality is a.i == b.i. A
 * value is a sum of terms coef * product of atoms, plus a constant; an atom is a variable,
 * floordiv, mod, min or max. Each entry caches its range and a known divisor. Arithmetic that
 * leaves int64 reports an error and gives a variable of unknown value, never a wrapped value. Loop
 * axes of kernels are variables of the same table. */
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

SymTab *symtab_new(Ctx *);

/* Names of SIZE and UNBACKED variables belong to a scope, so that s0 of one file is not s0 of
 * another in the same table. Functions that make, find or count variables use the current scope.
 * Scope 0 exists from the start. Expressions may contain variables of any scope. */
uint32_t sym_scope_new(SymTab *); /* makes an empty scope the current one */
uint32_t sym_scope(const SymTab *);
void sym_set_scope(SymTab *, uint32_t scope);

Sym sym_int(SymTab *, int64_t);
/* A new variable in lo..hi. The names of SIZE and UNBACKED variables must be new in the scope; AXIS
 * names may repeat: each call makes another variable. */
Sym sym_var(SymTab *, const char *name, SymVarKind, int64_t lo, int64_t hi);
/* The SIZE or UNBACKED variable of that name in the current scope, or none. */
Sym sym_find(const SymTab *, const char *name, uint32_t len);
/* Narrows a variable's range. Returns false if the range becomes empty. */
bool sym_bound(SymTab *, Sym var, int64_t lo, int64_t hi);
/* A new AXIS variable in 0..extent - 1; extent may be symbolic. Comparisons and simplification use
 * the bound. */
Sym sym_axis(SymTab *, const char *name, Sym extent);
/* States that an UNBACKED variable is at most `most`, which may be symbolic. The first bound stays.
 * If the variable has no hint, the bound's hint becomes its hint. */
void sym_set_most(SymTab *, Sym var, Sym most);
/* An upper bound without UNBACKED variables; none if there is no bound. */
Sym sym_most(SymTab *, Sym);
/* Whether the bound of sym_most is close: it multiplies at most one UNBACKED variable's bound with
 * sizes, or adds such products. The product of two such bounds would mostly be far too large. */
bool sym_most_is_near(const SymTab *, Sym);
/* The hint: a variable's value while exporting, 0 if unknown. For costs and sampling, never for
 * correctness. */
void sym_set_hint(SymTab *, Sym var, int64_t hint);
int64_t sym_hint(const SymTab *, Sym); /* the value of an expression at the hints; variables without
                                          a hint have their least value */

Sym sym_add(SymTab *, Sym, Sym);
Sym sym_sub(SymTab *, Sym, Sym);
Sym sym_mul(SymTab *, Sym, Sym);
Sym sym_floordiv(SymTab *, Sym, Sym); /* rounds towards minus infinity; the divisor must not be
                                         provably 0 */
Sym sym_mod(SymTab *, Sym, Sym);      /* has the sign of the divisor, as Python's % */
Sym sym_ceildiv(SymTab *, Sym, Sym);
Sym sym_min(SymTab *, Sym, Sym);
Sym sym_max(SymTab *, Sym, Sym);
Sym sym_addi(SymTab *, Sym, int64_t);
Sym sym_muli(SymTab *, Sym, int64_t);
Sym sym_divi(SymTab *, Sym, int64_t);
Sym sym_modi(SymTab *, Sym, int64_t);

/* Whether this is the variable that replaces a value which left int64. The error was reported
 * already. */
bool sym_gave_up(const SymTab *, Sym);

Sym sym_real_const(SymTab *, double);
/* An operation of kind SYM_REAL to SYM_REAL_EQUAL. b is none for kinds with one operand. */
Sym sym_real_op(SymTab *, SymKind, Sym a, Sym b);
bool sym_is_real(const SymTab *, Sym);
/* Sets *value (not NULL) to a constant double. Returns false for other expressions. */
MUST_LOOK bool sym_real_is_const(const SymTab *, Sym, double *value);

MUST_LOOK bool sym_is_const(const SymTab *, Sym, int64_t *value); /* value may be NULL */
int64_t sym_const_or(const SymTab *, Sym, int64_t otherwise);
int64_t sym_const(const SymTab *,
		  Sym); /* the value of a constant; an internal error for other expressions */
bool sym_is(const SymTab *, Sym, int64_t value);
Truth sym_eq(const SymTab *, Sym, Sym);
Truth sym_le(const SymTab *, Sym, Sym);
Truth sym_lt(const SymTab *, Sym, Sym);
MUST_LOOK bool sym_divides(const SymTab *, int64_t k, Sym); /* true if it is proven that k divides
                                                               the value */
void sym_range(const SymTab *, Sym, int64_t *lo, int64_t *hi);

/* The structure of an expression. Terms and factors are in canonical order. */
SymKind sym_kind(const SymTab *, Sym);
const char *sym_name(const SymTab *, Sym var);
SymVarKind sym_var_kind(const SymTab *, Sym var);
Sym sym_axis_extent(const SymTab *, Sym axis); /* the exclusive upper bound: of an AXIS its extent,
                                                  of an UNBACKED variable its bound + 1; none if
                                                  unknown */
uint32_t sym_nargs(const SymTab *, Sym); /* the number of terms of a sum (each a PRODUCT, an atom or
                                            a CONST), of factors of a product; 2 for other
                                            operations */
Sym sym_arg(const SymTab *, Sym, uint32_t k);
bool sym_uses(const SymTab *, Sym e, Sym var);
/* The divisor d of a floordiv(var, d) or mod(var, d) inside e; none if there is none. */
Sym sym_divisor_of(const SymTab *, Sym e, Sym var);
bool sym_uses_kind(const SymTab *, Sym e, SymVarKind); /* whether any variable of that kind
                                                          occurs */
/* Splits e into coef * var + rest, neither of which contains var. Returns false if e is not linear
 * in var. */
MUST_LOOK bool sym_linear(SymTab *, Sym e, Sym var, Sym *coef, Sym *rest);
/* Replaces the n variables var[] by by[], all at the same time. */
Sym sym_subst(SymTab *, Sym e, const Sym *var, const Sym *by, uint32_t n);

/* Evaluates e with var[k] = value[k]. Returns false if a variable is missing, on overflow and on
 * division by 0. */
MUST_LOOK bool sym_eval(const SymTab *, Sym e, const Sym *var, const int64_t *value, uint32_t n,
			int64_t *out);
/* All SIZE and UNBACKED variables of the current scope, in the order of creation. */
uint32_t sym_nvars(const SymTab *);
Sym sym_var_at(const SymTab *, uint32_t k);

/* Copies expressions from one table into another. sym_import_new makes a new scope in `to` with
 * variables like those of from's current scope. */
typedef struct SymImport SymImport;
SymImport *sym_import_new(SymTab *to, const SymTab *from);
/* The same in to's current scope: var[k] of from becomes by[k]; other variables of from's current
 * scope get names that are new in `to`. */
SymImport *sym_import_at(SymTab *to, const SymTab *from, const Sym *var, const Sym *by, uint32_t n);
Sym sym_import(SymImport *, Sym of_from);

/* Prints "2*s0 + s1*s2 - 3", "floordiv(s0, 2)", "mod(s0, 3)", "min(a, b)", which sym_parse
 * reads. */
void sym_print(const SymTab *, Sym, Text *);
const char *sym_str(const SymTab *, Sym); /* in the scratch arena */
/* Parses an expression at *s and advances *s behind it. Returns none, without a message, if the
 * text is no expression or a name is unknown; *s is then where parsing stopped. */
Sym sym_parse(SymTab *, const char **s);

#endif
