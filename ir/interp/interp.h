/* The reference interpreter: executes a graph node by node on concrete sizes, and is the oracle of
 * tests. It is clear before fast. Sums of f16, bf16 and f32 are accumulated in f64. A composite
 * operator without .eval (ir/op/op.h) runs by its expansion. Functions that return bool return
 * false after an error, which they record. */
#ifndef WEFT_IR_INTERP_H
#define WEFT_IR_INTERP_H

#include "ir/graph/graph.h"
#include "ir/interp/tensor.h"

/* The values of symbols during an evaluation. */
typedef struct EvalCtx {
	Ctx *ctx;
	Arena *arena; /* results and temporaries */
	uint32_t nsym, room; /* nsym: symbols that have a value; room: length of `sym` and `value`,
	                        which grow if a graph computes sizes */
	Sym *sym;       /* the symbols that have a value */
	int64_t *value; /* value[k] is that of sym[k] */
	Graph *bound; /* the graph whose inputs gave the symbols their values, or NULL */
	const struct Tensor *given; /* the inputs of `bound` */
	const SymTab *syms; /* set by interp_bind and interp_run; a caller of eval_* alone sets
	                       it */
} EvalCtx;

/* Sets *out to the value of a symbolic integer, by the values of symbols in the EvalCtx. Returns
 * false after an error: a symbol has no value, an overflow, a division by 0. */
bool eval_sym(EvalCtx *, Sym, int64_t *out);
/* Sets out[k] to the value of s[k], as eval_sym does, for k < n. Returns false after an error. */
bool eval_syms(EvalCtx *, const Sym *s, uint32_t n, int64_t *out);
/* Makes *out a tensor of zeros, in e->arena, of a tensor type of the graph's Ir; its extents are
 * evaluated. Sets e->syms. Returns false after an error: an extent has no value or is negative, or
 * the tensor is too large. */
bool eval_alloc(EvalCtx *, TypeId, Graph *, Tensor *out);

/* Prepares *e for a run of the graph on these n inputs, one for each of g->input: gives the symbols
 * of the input types the values that the inputs have, and checks ranges and guards. The caller has
 * set e->ctx and e->arena, and zeroed the rest; the inputs must stay valid until the run ends. What
 * depends on unbacked sizes is checked during the run. Returns false after an error: a wrong number
 * of inputs, a dtype, rank or extent, two inputs that disagree, a size that the inputs do not tell,
 * a guard. The error says what was expected and found. */
bool interp_bind(EvalCtx *e, Graph *g, const Tensor *input, uint32_t n);
/* Runs the graph after interp_bind with the inputs that interp_bind had. Sets out[k], k < nout =
 * g->output.n, to the value of output k, in e->arena. Does not change the inputs: the new contents
 * of state are outputs. Returns false after an error, such as an index out of range, an assertion
 * of the model, a size out of range, or a number of outputs other than nout; out[] then has no
 * meaning. */
bool interp_run(EvalCtx *e, Graph *g, const Tensor *input, uint32_t nin, Tensor *out,
		uint32_t nout);
/* Returns the graph in the form that interp_run executes: composites without .eval, and nodes for
 * which node_has_complex is true, are expanded. Returns g itself if nothing changes, else a copy;
 * NULL after an error. The copy has the guards of g, then those that the expansions need: who runs
 * it checks these too. Subgraphs stay as they are: running them expands them. */
Graph *interp_expand(Graph *g);
/* Runs the graph on these inputs (interp_bind, then interp_run): sets out[k], k < nout =
 * g->output.n, to the value of output k, in the arena. Returns false after an error. */
bool interp(Ctx *, Graph *, const Tensor *input, uint32_t nin, Tensor *out, uint32_t nout, Arena *);

#endif
