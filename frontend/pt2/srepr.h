/* Symbolic expressions of torch.export: SymPy's srepr, the plain notation of range constraints, and
 * the Python text of guards. One grammar covers all three. */
#ifndef WEFT_FRONTEND_PT2_SREPR_H
#define WEFT_FRONTEND_PT2_SREPR_H

#include "ir/graph/graph.h"

/* One step into nested inputs: ['name'] or .name; [index] if name is NULL. */
typedef struct {
	const char *name;
	int64_t index;
} PathKey;

typedef struct ExprEnv {
	Ctx *ctx;
	SymTab *syms;
	/* The extent L['x'][0].size()[dim]; path[n] are the keys behind the L. Returns none if
	 * there is no such input or dimension. May be NULL. */
	Sym (*input_dim)(void *arg, const PathKey *path, uint32_t n, int64_t dim);
	void *arg;
	const char *error; /* the reason why the last parse failed, in the scratch arena */
} ExprEnv;

/* A condition; if `fixed`, the constant `truth`. */
typedef struct {
	bool fixed, truth;
	GuardKind kind;
	Sym a, b;
} Cond;

/* Parses an integer expression. New symbols are created. Returns none and sets env->error if that
 * fails. */
Sym expr_int(ExprEnv *, const char *text);
/* Parses a condition: sets *out (scratch arena) to its conjuncts, *n to their number; they include
 * that no divisor is zero. Returns false and sets env->error if that fails. */
bool expr_cond(ExprEnv *, const char *text, const Cond **out, uint32_t *n);
/* Parses a numeric constant, as in sym_float_values. Returns false if it is not constant. */
bool expr_float(ExprEnv *, const char *text, double *out);
/* The symbol of an srepr Symbol or of a plain name; created with this range if new, else its range
 * is narrowed. */
Sym expr_symbol(ExprEnv *, const char *name, int64_t lo, int64_t hi);
/* Whether a condition holds, as far as it is known at compile time. */
Truth cond_truth(const SymTab *, const Cond *);

#endif
