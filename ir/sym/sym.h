/* Symbolic integers: hash-consed, canonical at construction, so that equality is a.i == b.i.
 * A value is a sum of coef * product-of-atoms + constant; an atom is a variable, floordiv, mod, min
 * or max. Each entry caches its range and a known divisor. Arithmetic that leaves int64 gives a
 * diagnosed saturated range, never a wrapped value. Loop axes of kernels are variables of the same
 * table. */
#ifndef WEFT_IR_SYM_H
#define WEFT_IR_SYM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ctx.h"

typedef struct {
	uint32_t i;
} Sym; /* 0 means none */

typedef enum { NO, YES, MAYBE } Truth;

#define SYM_INF INT64_MAX /* an unbounded upper end; -SYM_INF the lower */

typedef enum {
	SYM_CONST, SYM_VAR, SYM_SUM, SYM_PRODUCT, SYM_FLOORDIV, SYM_MOD, SYM_MIN, SYM_MAX,
	/* Doubles; only the kinds below read them. */
	SYM_REAL_CONST,
	SYM_REAL, /* of an integer */
	SYM_REAL_ADD, SYM_REAL_MUL, SYM_REAL_DIV, SYM_REAL_SQRT,
	/* Integers made of doubles; 1 or 0 for the last two. */
	SYM_FLOOR, SYM_CEIL, SYM_TRUNC, SYM_RINT, SYM_REAL_LESS, SYM_REAL_EQUAL
} SymKind;

typedef enum {
	SYMVAR_SIZE,     /* a dimension of an input, solved at entry */
	SYMVAR_UNBACKED, /* born at run time */
	SYMVAR_AXIS      /* a loop axis of a kernel */
} SymVarKind;

typedef struct SymTab SymTab;

SymTab *symtab_new(Ctx *);

/* Names of SIZE and UNBACKED variables belong to a scope: files whose graphs live in one table have
 * one each, so that s0 of one is not s0 of another. Whatever makes, finds or counts variables means
 * those of the current scope; number 0 is there from the start. Expressions know no scopes. */
uint32_t sym_scope_new(SymTab *); /* empty; it is the current one from now on */
uint32_t sym_scope(const SymTab *);
void sym_set_scope(SymTab *, uint32_t scope);

Sym sym_int(SymTab *, int64_t);
/* A new variable; the name must be new for SIZE and UNBACKED (AXIS names may repeat, each is
 * distinct). */
Sym sym_var(SymTab *, const char *name, SymVarKind, int64_t lo, int64_t hi);
/* The SIZE or UNBACKED variable of that name, or none. */
Sym sym_find(const SymTab *, const char *name, uint32_t len);
/* Narrow a variable's range. False if that leaves it empty. */
bool sym_bound(SymTab *, Sym var, int64_t lo, int64_t hi);
/* An axis bound that is symbolic: var < extent. Questions and simplification use it. */
Sym sym_axis(SymTab *, const char *name, Sym extent);
/* An UNBACKED variable is at most that, which may be symbolic; the first one given stays. Its hint
 * too, where it has none. */
void sym_set_most(SymTab *, Sym var, Sym most);
/* An expression without UNBACKED variables that is never less; none where there is no bound. */
Sym sym_most(SymTab *, Sym);
/* Its bound is the product of one such variable's with sizes, or a sum of those: not the square of
 * what is mostly small. */
bool sym_most_is_near(const SymTab *, Sym);
/* The value seen while exporting; used for sampling and cost, never for correctness. 0 if
 * unknown. */
void sym_set_hint(SymTab *, Sym var, int64_t hint);
int64_t sym_hint(const SymTab *, Sym); /* evaluates with hints; variables without one use their
                                          lo */

Sym sym_add(SymTab *, Sym, Sym);
Sym sym_sub(SymTab *, Sym, Sym);
Sym sym_mul(SymTab *, Sym, Sym);
Sym sym_floordiv(SymTab *, Sym, Sym); /* towards minus infinity; divisor must not be provably 0 */
Sym sym_mod(SymTab *, Sym, Sym);      /* sign of the divisor, as Python's % */
Sym sym_ceildiv(SymTab *, Sym, Sym);
Sym sym_min(SymTab *, Sym, Sym);
Sym sym_max(SymTab *, Sym, Sym);
Sym sym_addi(SymTab *, Sym, int64_t);
Sym sym_muli(SymTab *, Sym, int64_t);
Sym sym_divi(SymTab *, Sym, int64_t);
Sym sym_modi(SymTab *, Sym, int64_t);

/* The variable that stands for what left int64, which is reported by then. */
bool sym_gave_up(const SymTab *, Sym);

Sym sym_real_const(SymTab *, double);
/* SYM_REAL to SYM_REAL_EQUAL; b is none where the kind has one operand. */
Sym sym_real_op(SymTab *, SymKind, Sym a, Sym b);
bool sym_is_real(const SymTab *, Sym);
MUST_LOOK bool sym_real_is_const(const SymTab *, Sym, double *value);

MUST_LOOK bool sym_is_const(const SymTab *, Sym, int64_t *value); /* value may be NULL */
int64_t sym_const_or(const SymTab *, Sym, int64_t otherwise);
int64_t sym_const(const SymTab *,
		  Sym); /* of what is known to be one: an internal error otherwise */
bool sym_is(const SymTab *, Sym, int64_t value);
Truth sym_eq(const SymTab *, Sym, Sym);
Truth sym_le(const SymTab *, Sym, Sym);
Truth sym_lt(const SymTab *, Sym, Sym);
MUST_LOOK bool sym_divides(const SymTab *, int64_t k, Sym); /* proven, else false */
void sym_range(const SymTab *, Sym, int64_t *lo, int64_t *hi);

/* Structure. Sums and products give their terms in canonical order. */
SymKind sym_kind(const SymTab *, Sym);
const char *sym_name(const SymTab *, Sym var);
SymVarKind sym_var_kind(const SymTab *, Sym var);
Sym sym_axis_extent(const SymTab *, Sym axis); /* none for other variables */
uint32_t sym_nargs(const SymTab *, Sym); /* terms of a sum (each a PRODUCT, atom or CONST), factors,
                                            or 2 */
Sym sym_arg(const SymTab *, Sym, uint32_t k);
bool sym_uses(const SymTab *, Sym e, Sym var);
/* A divisor by which e takes var apart: of floordiv(var, d) or mod(var, d) inside; none if it does
 * not. */
Sym sym_divisor_of(const SymTab *, Sym e, Sym var);
bool sym_uses_kind(const SymTab *, Sym e, SymVarKind); /* any variable of that kind inside */
/* Split e = coef * var + rest, where neither reads var. False if e is not linear in var. */
MUST_LOOK bool sym_linear(SymTab *, Sym e, Sym var, Sym *coef, Sym *rest);
/* Replace variables simultaneously. */
Sym sym_subst(SymTab *, Sym e, const Sym *var, const Sym *by, uint32_t n);

/* Evaluate; value[k] belongs to var[k]. False when a variable is missing, on overflow or division
 * by 0. */
MUST_LOOK bool sym_eval(const SymTab *, Sym e, const Sym *var, const int64_t *value, uint32_t n,
			int64_t *out);
/* All SIZE and UNBACKED variables of the scope, in order of creation. */
uint32_t sym_nvars(const SymTab *);
Sym sym_var_at(const SymTab *, uint32_t k);

/* Expressions of one table, made again in another: a new scope there gets variables like those of
 * from's current one. */
typedef struct SymImport SymImport;
SymImport *sym_import_new(SymTab *to, const SymTab *from);
Sym sym_import(SymImport *, Sym of_from);

/* "2*s0 + s1*s2 - 3", "floordiv(s0, 2)", "mod(s0, 3)", "min(a, b)". Parsed back by sym_parse. */
void sym_print(const SymTab *, Sym, Text *);
const char *sym_str(const SymTab *, Sym); /* in the scratch arena */
/* Parse at *s and advance it; unknown names are an error (none). */
Sym sym_parse(SymTab *, const char **s);

#endif
