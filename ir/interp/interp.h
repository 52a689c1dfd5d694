/* The reference interpreter: executes a graph node by node on concrete sizes. It is the oracle:
 * clear before fast, f64 accumulation for f16 to f32. Composites run through their expansion. */
#ifndef WEFT_IR_INTERP_H
#define WEFT_IR_INTERP_H

#include "ir/graph/graph.h"
#include "ir/interp/tensor.h"

/* Values of symbols while evaluating. */
typedef struct EvalCtx {
	Ctx *ctx;
	Arena *arena; /* results live here, and temporaries of an op's .eval */
	uint32_t nsym, room; /* room: of the two arrays, where a graph may give symbols values */
	Sym *sym;
	int64_t *value;
	Graph *bound; /* whose inputs gave symbols their values, or NULL */
	const struct Tensor *given; /* these inputs */
	const SymTab *syms; /* set by interp_bind and interp_run; whoever calls eval_* alone sets
	                       it */
} EvalCtx;

/* A symbolic integer's value; false after ctx_error when a symbol is unknown or it overflows. */
bool eval_sym(EvalCtx *, Sym, int64_t *out);
/* n of them. */
bool eval_syms(EvalCtx *, const Sym *, uint32_t n, int64_t *out);
/* A tensor of the node's type (element k of a tuple) with storage, zeroed. False after
 * ctx_error. */
bool eval_alloc(EvalCtx *, TypeId, Graph *, Tensor *out);

/* Solve the symbols of the graph's input types from concrete inputs, check ranges and guards: wrong
 * rank, dtype, extent, or two inputs that disagree give an error naming input, dimension, expected
 * and actual. */
bool interp_bind(EvalCtx *, Graph *, const Tensor *input, uint32_t n);
/* Run a graph whose symbols are bound; out has one Tensor per graph output, in e->arena. Values are
 * freed as soon as they are dead. False after ctx_error (index out of range, assertion, ...). */
bool interp_run(EvalCtx *, Graph *, const Tensor *input, uint32_t nin, Tensor *out, uint32_t nout);
/* The graph with composites that have no .eval replaced by what they mean: a clone, or g itself
 * when there are none. NULL after ctx_error. */
Graph *interp_expand(Graph *g);
/* bind + run. */
bool interp(Ctx *, Graph *, const Tensor *input, uint32_t nin, Tensor *out, uint32_t nout, Arena *);

#endif
