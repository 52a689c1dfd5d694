/* Symbolic expressions of torch.export: SymPy's srepr, the plain notation of range constraints, and
 * the Python text of guards. One grammar covers all three. A failure to parse is no error of the
 * context: it sets ExprEnv.error. */
#ifndef WEFT_FRONTEND_PT2_SREPR_H
#define WEFT_FRONTEND_PT2_SREPR_H

#include "ir/graph/graph.h"

/* One step into nested inputs: ['name'] or .name; [index] if name is NULL. */
typedef struct {
	const char *name;
	int64_t index;
} PathKey;

typedef struct Cond Cond;

typedef struct ExprEnv {
	Ctx *ctx;
	SymTab *syms;
	/* Called for L['x'][0].size()[dim]: returns the extent of an input; path[n]: the keys
	 * behind the L. Returns no size if there is no such input or dimension. NULL: texts have no
	 * inputs. */
	Sym (*input_dim)(void *arg, const PathKey *path, uint32_t n, int64_t dim);
	void *arg;
	const char *error; /* why the last parse failed, in the scratch arena */
	/* Of the last text: need[nneed] are the conditions without which it has no value in Python:
	 * no divisor is zero. In the scratch arena. */
	const Cond *need;
	uint32_t nneed;
} ExprEnv;

/* A condition, a KIND b (a <= b, a == b, a != b); if `fixed`, the constant `truth`. */
struct Cond {
	bool fixed, truth;
	GuardKind kind;
	Sym a, b;
};

/* Parses an integer expression. Symbols that do not exist yet are created. Returns no size, and
 * sets env->error, if the text is no integer expression. */
Sym expr_int(ExprEnv *, const char *text);
/* Parses a condition: sets *out (scratch arena) to the conditions whose conjunction it is, and *n
 * to their number. They include env->need. Returns false, and sets env->error, if the
 * text is no condition. */
bool expr_cond(ExprEnv *, const char *text, const Cond **out, uint32_t *n);
/* Parses a number that depends on no size, as in sym_float_values. Returns false, and sets
 * env->error, if the text is no number or depends on sizes. */
bool expr_float(ExprEnv *, const char *text, double *out);
/* Returns the symbol of that name, created with the range lo to hi if it is new, else with its
 * range narrowed to lo to hi. Returns no size, and sets env->error, if the range is then empty. */
Sym expr_symbol(ExprEnv *, const char *name, int64_t lo, int64_t hi);
/* Whether a condition holds for all values of the symbols (YES), for none (NO), or is not known. */
Truth cond_truth(const SymTab *, const Cond *);

#endif
