/* The reference interpreter: executes a graph node by node on concrete sizes, and is the oracle of
 * tests. It is clear before fast, and accumulates f16 to f32 in f64. Composites run by their
 * expansion. */
#ifndef WEFT_IR_INTERP_H
#define WEFT_IR_INTERP_H

#include "ir/graph/graph.h"
#include "ir/interp/tensor.h"

/* The values of symbols during an evaluation. */
typedef struct EvalCtx {
	Ctx *ctx;
	Arena *arena; /* results and temporaries */
	uint32_t nsym, room; /* room: length of `sym` and `value`, which grow if a graph computes
	                        sizes */
	Sym *sym;
	int64_t *value;
	Graph *bound; /* the graph whose inputs gave the symbols their values, or NULL */
	const struct Tensor *given; /* the inputs of `bound` */
	const SymTab *syms; /* set by interp_bind and interp_run; a caller of eval_* alone sets
	                       it */
} EvalCtx;

/* Sets *out to the value of a symbolic integer. Returns false after an error: an unknown symbol, an
 * overflow. */
bool eval_sym(EvalCtx *, Sym, int64_t *out);
/* The same for n values. */
bool eval_syms(EvalCtx *, const Sym *, uint32_t n, int64_t *out);
/* Makes a zeroed tensor of a type; its dimensions are evaluated. Returns false after an error. */
bool eval_alloc(EvalCtx *, TypeId, Graph *, Tensor *out);

/* Solves the symbols of the graph's input types from concrete inputs, and checks ranges and guards.
 * Returns false after an error that names input, dimension, expected and actual value: a wrong
 * rank, dtype or extent, two inputs that disagree. */
bool interp_bind(EvalCtx *, Graph *, const Tensor *input, uint32_t n);
/* Runs a graph after interp_bind. out[nout]: a tensor for each output, in e->arena. Values are
 * freed after their last reader. Returns false after an error: an index out of range, an assertion,
 * ... */
bool interp_run(EvalCtx *, Graph *, const Tensor *input, uint32_t nin, Tensor *out, uint32_t nout);
/* Returns the graph with all composites without .eval expanded: a copy, or g itself if there are
 * none. NULL after an error. */
Graph *interp_expand(Graph *g);
/* Binds and runs; results are in the arena. */
bool interp(Ctx *, Graph *, const Tensor *input, uint32_t nin, Tensor *out, uint32_t nout, Arena *);

#endif
