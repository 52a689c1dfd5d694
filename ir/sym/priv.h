/* Private to ir/sym: nodes, polynomials, proofs.
 *
 * Terms: an atom is an expression that is no sum, product or constant (a variable, a floordiv). A
 * mono(mial) is a product of atoms without coefficient, an atom, or the constant 1. A term is
 * coef * mono, and an expression a sum of terms with different monos.
 *
 * Functions named *_quiet return a canonical expression, or none, without an error, where sym.h's
 * functions of the same names give up, and if an operand is none. */
#ifndef WEFT_IR_SYM_PRIV_H
#define WEFT_IR_SYM_PRIV_H

#include <assert.h>

#include "base/array.h"
#include "base/intern.h"
#include "ir/sym/sym.h"

__extension__ typedef __int128 SymWide;

typedef struct {
	uint8_t kind;
	uint8_t kinds;   /* bit 1 << SymVarKind for the variables inside */
	bool has_mod;    /* it, or one of its factors, is a MOD */
	bool proved;     /* known to be >= 0 */
	uint32_t failed; /* the generation in which that could not be proved */
	uint32_t bounded[2]; /* the generation in which bound[] was found */
	Sym bound[2];        /* not above, and not below, by sizes of inputs (sym_most); none: not
	                        known */
	uint32_t nargs;
	const Sym *args;
	int64_t value; /* CONST: itself; PRODUCT: the coefficient; VAR: index into SymTab.var;
	                REAL_CONST: its bits */
	int64_t lo, hi;
	int64_t div;   /* divides every value; 0 for the constant 0 */
	uint64_t vars; /* bit (index % 64) for the variables inside */
	Sym mono;      /* without coefficient; the constant 1 for a CONST */
	Sym whole;     /* of MOD(e, d): d * floordiv(e, d) */
	uint32_t visit; /* memo holds for this visit */
	int64_t memo;
} SymNode;

typedef struct {
	const char *name;
	SymVarKind kind;
	int64_t lo, hi, hint;
	Sym sym, extent;
	Sym most; /* UNBACKED: not above it, an expression of sizes of inputs; none: not known */
} SymVar;

/* SIZE and UNBACKED variables by name. */
typedef struct {
	Intern names;
	ARRAY(Sym) named; /* named.data[k] has name id k + 1 */
} SymScope;

enum { SYM_SMALL = 256 };

struct SymTab {
	Ctx *ctx;
	Intern table; /* key: kind, arguments; id: Sym */
	ARRAY(SymNode) node;
	ARRAY(SymVar) var;
	ARRAY(SymScope) scope;
	uint32_t current; /* index into scope */
	uint32_t generation; /* of the variables' bounds */
	uint32_t visit;
	Sym zero, one;
	Sym small[SYM_SMALL]; /* the constants from 0 on, none: not made yet */
	Sym unknown; /* stands for a value that left int64; none until then */
};

/* coef * mono; mono is the constant 1, an atom, or a PRODUCT without coefficient. */
typedef struct {
	Sym mono;
	int64_t coef;
} SymTerm;

/* A sum under construction: sorted terms, no zero coefficients. */
typedef struct {
	SymTab *t;
	SymTerm *term;
	uint32_t n, cap;
	bool failed;
	SymTerm local[12];
} Poly;

/* Returns the node of an expression of the table, not none; valid until the next expression is
 * made. */
static inline SymNode *sym_node(const SymTab *t, Sym e)
{
	assert(e.i && e.i <= t->node.n);
	return &t->node.data[e.i - 1];
}

/* Whether a and b are the same handle. */
static inline bool sym_same(Sym a, Sym b)
{
	return a.i == b.i;
}

/* Returns the same table without const: interning is not observable, so questions may build
 * expressions. */
static inline SymTab *sym_mutable(const SymTab *t)
{
	return (SymTab *)(uintptr_t)t;
}

/* sym.c */
/* Returns the expression of this kind with the n arguments args[], which must be in canonical form:
 * simplifies nothing. */
Sym sym_make(SymTab *, SymKind, const Sym *args, uint32_t n);
/* Records the error that op(a, b) leaves int64, and makes t->unknown, in the first call for a
 * table; later calls record nothing. Returns t->unknown. */
Sym sym_give_up(SymTab *, const char *op, Sym a, Sym b);
/* Records an internal error if the handle is none or no handle of this table (a handle of
 * another table is not recognised). */
void sym_check(const SymTab *, Sym);
/* Returns a / b rounded towards minus infinity; b > 0. */
int64_t sym_floor(int64_t a, int64_t b);
/* Returns the greatest common divisor of |a| and |b|; gcd(a, 0) is |a|. INT64_MIN counts as
 * 2^62. */
int64_t sym_gcd(int64_t a, int64_t b);

/* Returns the constant double with these bits. */
Sym sym_make_real(SymTab *, int64_t bits);

/* real.c */
/* Returns the number of operands of a kind from SYM_REAL to SYM_REAL_EQUAL. Sets *of_reals to
 * whether the operands are doubles, *gives_real to whether the result is one. Returns 0 for other
 * kinds, and sets nothing. */
uint32_t sym_real_signature(SymKind, bool *of_reals, bool *gives_real);
/* Returns the name of a kind from SYM_REAL to SYM_REAL_EQUAL in the text form. */
const char *sym_real_name(SymKind);
/* Sets *out to the result of an operation, of a kind from SYM_REAL to SYM_REAL_EQUAL, on the values
 * arg[]. A double stands in an int64 as its bits. Returns false, with *out unchanged, if the kind
 * rounds to an integer and the rounded double is NaN or of a magnitude above 2^62. */
MUST_LOOK bool sym_real_eval(SymKind, const int64_t *arg, int64_t *out);
/* Sets *lo and *hi to integers that enclose the values of an expression, of a kind from
 * SYM_REAL_CONST to SYM_REAL_EQUAL, found from the ranges of its operands; -SYM_INF, SYM_INF: no
 * bound is known. */
void sym_real_range(const SymTab *, Sym, int64_t *lo, int64_t *hi);

/* Computes lo and hi of the expression's node from those of its arguments; of a variable from
 * its SymVar. In range.c. */
void sym_set_range(const SymTab *, Sym);

/* poly.c */
/* Returns < 0, 0 or > 0: the canonical order of expressions, by structure. The constant 1 is last
 * among monos. */
int sym_compare(const SymTab *, Sym a, Sym b);
/* Returns the number of terms of an expression; 0 for the constant 0. */
uint32_t sym_nterms(const SymTab *, Sym);
/* Returns term k < sym_nterms of an expression. */
SymTerm sym_term(const SymTab *, Sym, uint32_t k);
/* Returns the number of atoms of a mono; 0 for the constant 1. */
uint32_t mono_degree(const SymTab *, Sym mono);
/* Returns atom k < mono_degree of a mono. */
Sym mono_factor(const SymTab *, Sym mono, uint32_t k);
/* Returns the product of two monos. */
Sym mono_mul(SymTab *, Sym a, Sym b);
/* Returns the quotient of two monos; none if b does not divide a. */
Sym mono_div(SymTab *, Sym a, Sym b);
/* Returns the product of the atoms that two monos have in common; the constant 1 if they have
 * none. */
Sym mono_gcd(SymTab *, Sym a, Sym b);
/* Makes *p a sum without terms. */
void poly_init(Poly *p, SymTab *);
/* Adds coef * mono to the sum. A coefficient that leaves int64, and term 4097, make the sum fail
 * (poly_done). */
void poly_add_term(Poly *, Sym mono, int64_t coef);
/* Adds e * times to the sum, as poly_add_term does; an e or times.mono that is none makes the sum
 * fail (poly_done). */
void poly_add(Poly *, Sym e, SymTerm times);
/* Returns the sum as a canonical expression; none if a coefficient left int64, an operand was none,
 * or the sum had more than 4096 terms. Uses up the sum. */
Sym poly_done(Poly *);

/* Returns a + b; none where it cannot (*_quiet, see the top). */
Sym add_quiet(SymTab *, Sym a, Sym b);
/* Returns a - b; none where it cannot (*_quiet, see the top). */
Sym sub_quiet(SymTab *, Sym a, Sym b);
/* Returns a + b; none where it cannot (*_quiet, see the top). */
Sym addi_quiet(SymTab *, Sym a, int64_t b);
/* Returns a * b; none where it cannot (*_quiet, see the top). */
Sym mul_quiet(SymTab *, Sym a, Sym b);
/* Returns a * scale; none where it cannot (*_quiet, see the top). */
Sym scale_quiet(SymTab *, Sym a, int64_t scale);

/* Returns what sym_floordiv returns; none, without an error, where that gives up, and if an
 * operand is none. In simplify.c. */
Sym floordiv_quiet(SymTab *, Sym e, Sym d);
/* Returns what sym_mod returns; none, without an error, where that gives up, and if an operand
 * is none. In simplify.c. */
Sym mod_quiet(SymTab *, Sym e, Sym d);

/* Returns true if e >= 0 is proved for all values of the variables within their bounds; false if
 * it is not proved, and for none. In prove.c. */
bool sym_nonneg(SymTab *, Sym e);

#endif
