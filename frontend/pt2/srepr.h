/* Symbolic expressions of torch.export: SymPy's srepr, the plain notation of range constraints, and
 * the Python text of guards. One grammar covers all three. */
#ifndef WEFT_FRONTEND_PT2_SREPR_H
#define WEFT_FRONTEND_PT2_SREPR_H

#include "ir/graph/graph.h"

/* One step into nested inputs: ['name'] or .name, or [index] where name is NULL. */
typedef struct {
	const char *name;
	int64_t index;
} PathKey;

typedef struct ExprEnv {
	Ctx *ctx;
	SymTab *syms;
	/* L['x'][0].size()[dim], with the n keys behind the L; none when there is no such input or
	 * dimension. May be NULL. */
	Sym (*input_dim)(void *arg, const PathKey *path, uint32_t n, int64_t dim);
	void *arg;
	const char *error; /* why the last parse failed, in the scratch arena */
} ExprEnv;

/* A condition, or a constant truth when `fixed`. */
typedef struct {
	bool fixed, truth;
	GuardKind kind;
	Sym a, b;
} Cond;

/* An integer; none with env->error otherwise. Symbols that do not exist yet are created. */
Sym expr_int(ExprEnv *, const char *text);
/* The conjuncts of a condition in *out (scratch arena), their number in *n; with them that no
 * divisor is zero. False with env->error. */
bool expr_cond(ExprEnv *, const char *text, const Cond **out, uint32_t *n);
/* A numeric constant, as sym_float_values may hold. False when it is not constant. */
bool expr_float(ExprEnv *, const char *text, double *out);
/* The symbol of an srepr Symbol or a plain name, created with this range when new (narrowed when
 * not). */
Sym expr_symbol(ExprEnv *, const char *name, int64_t lo, int64_t hi);
/* What is known of a condition without running. */
Truth cond_truth(const SymTab *, const Cond *);

#endif
