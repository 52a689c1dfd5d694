/* Inside of symbolic integers: nodes, polynomials, proofs. Functions named *_quiet give none when a
 * coefficient leaves int64 (or an operand is none) and diagnose nothing. */
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

static inline SymNode *sym_node(const SymTab *t, Sym e)
{
	assert(e.i && e.i <= t->node.n);
	return &t->node.data[e.i - 1];
}

static inline bool sym_same(Sym a, Sym b)
{
	return a.i == b.i;
}

/* Interning is not observable, so questions may build expressions. */
static inline SymTab *sym_mutable(const SymTab *t)
{
	return (SymTab *)(uintptr_t)t;
}

/* sym.c */
Sym sym_make(SymTab *, SymKind, const Sym *args, uint32_t n); /* interned as it is */
Sym sym_give_up(SymTab *, const char *op, Sym a, Sym b);      /* diagnose, return t->unknown */
void sym_check(const SymTab *, Sym);                          /* bug if none */
int64_t sym_floor(int64_t a, int64_t b);                      /* b > 0 */
int64_t sym_gcd(int64_t a, int64_t b);                        /* of magnitudes; 0 is neutral */

/* sym_real.c */
Sym sym_make_real(SymTab *, int64_t bits); /* in sym.c */
/* The number of operands of SYM_REAL to SYM_REAL_EQUAL, 0 for other kinds. */
uint32_t sym_real_signature(SymKind, bool *of_reals, bool *gives_real);
const char *sym_real_name(SymKind);
/* Of operands that are doubles as bits where the kind reads doubles. False when no int64 is the
 * result. */
MUST_LOOK bool sym_real_eval(SymKind, const int64_t *arg, int64_t *out);
void sym_real_range(const SymTab *, Sym, int64_t *lo, int64_t *hi);

/* sym_range.c: lo and hi of a node from those of its arguments. */
void sym_set_range(const SymTab *, Sym);

/* sym_poly.c */
int sym_compare(const SymTab *, Sym a, Sym b); /* structural order; the constant 1 comes last */
uint32_t sym_nterms(const SymTab *, Sym);
SymTerm sym_term(const SymTab *, Sym, uint32_t k);
uint32_t mono_degree(const SymTab *, Sym mono);
Sym mono_factor(const SymTab *, Sym mono, uint32_t k);
Sym mono_mul(SymTab *, Sym a, Sym b);
Sym mono_div(SymTab *, Sym a, Sym b); /* none when b does not divide a */
Sym mono_gcd(SymTab *, Sym a, Sym b);
void poly_init(Poly *, SymTab *);
void poly_add_term(Poly *, Sym mono, int64_t coef);
void poly_add(Poly *, Sym e, SymTerm times);
Sym poly_done(Poly *); /* none after overflow */
Sym add_quiet(SymTab *, Sym a, Sym b);
Sym sub_quiet(SymTab *, Sym a, Sym b);
Sym addi_quiet(SymTab *, Sym a, int64_t);
Sym mul_quiet(SymTab *, Sym a, Sym b);
Sym scale_quiet(SymTab *, Sym a, int64_t);

/* sym_simplify.c */
Sym floordiv_quiet(SymTab *, Sym e, Sym d);
Sym mod_quiet(SymTab *, Sym e, Sym d);

/* sym_prove.c: true if e >= 0 whatever the variables are within their bounds. */
bool sym_nonneg(SymTab *, Sym e);

#endif
