/* The skeleton of every graph: inputs, constants, tuples and their elements. The interpreter,
 * inlining and the printer know these four by name; they have no .eval. */
#include <string.h>

#include "ir/interp/tensor.h"
#include "ops/rules/parts.h"

static TypeId infer_input(Graph *g, Op op, const Node *in, uint32_t nin, AttrId attr,
			  const char *where)
{
	(void)op, (void)in, (void)nin, (void)attr;
	ctx_error(g->ir->ctx, where, "input: made by graph_add_input only");
	return (TypeId){0};
}

OP(input) {
	.schema = "input() -> Tensor",
	.doc = "an argument of the graph",
	.rounded = true,
	.apart = true,
	.infer = infer_input,
	.lower = {.role = LOWER_MEMORY, .complex = true},
	.no_sample = "stands for what the caller passes",
};

static TypeId infer_constant(Graph *g, Op op, const Node *in, uint32_t nin, AttrId attr,
			     const char *where)
{
	(void)op, (void)in, (void)nin, (void)where;
	const Const *c = ir_const_of(g->ir, ir_attr(g->ir, attr, 0)->c);
	return ir_type_ints(g->ir, c->dtype, c->rank, c->dim);
}

/* Makes a constant of the pairs that the file holds, which the caller knows under another type. */
static bool parts_constant(Build *b, Node n, const Parts *in, Parts *out)
{
	Ir *ir = b->g->ir;
	const ConstId pairs = node_const(b->g, n);
	Const c = *ir_const_of(ir, pairs);
	int64_t *dim = ARENA_ARRAY(ir->ctx->arena, int64_t, c.rank + 1);
	(void)in;
	if (c.rank)
		memcpy(dim, c.dim, c.rank * sizeof *dim);
	dim[c.rank++] = 2;
	c.dim = dim;
	c.dtype = dtype_real(c.dtype);
	c.is_param = false;
	c.view_of = pairs;
	c.hash = 0;
	*out = parts_of_pairs(b, b_const(b, ir_const(ir, c)));
	return out->re.i;
}

/* Returns the integer that a constant is. Of a parameter, which may be replaced, nothing is
 * known. */
static Sym integer_constant(const Graph *g, Node n, const Sym *in)
{
	const Const *c = ir_const_of(g->ir, node_const(g, n));
	(void)in;
	if (c->is_param || !c->data)
		return (Sym){0};
	return sym_int(graph_syms(g),
		       tensor_i64(&(Tensor){.dtype = c->dtype, .data = (void *)c->data}, 0));
}

OP(constant) {
	.parts = parts_constant,
	.schema = "constant(*, const value) -> Tensor",
	.doc = "a constant of the model, by reference",
	.folds = FOLDS_INSIDE,
	.rounded = true,
	.integer = integer_constant,
	.infer = infer_constant,
	.lower = {.role = LOWER_MEMORY},
	.no_sample = "names data of a model",
};

static TypeId infer_tuple(Graph *g, Op op, const Node *in, uint32_t nin, AttrId attr,
			  const char *where)
{
	(void)op, (void)attr;
	TypeId *elem = ARENA_ARRAY(g->ir->ctx->scratch, TypeId, nin);
	for (uint32_t k = 0; k < nin; k++) {
		if (!in[k].i || !node_type_id(g, in[k]).i) {
			ctx_error(g->ir->ctx, where, "tuple: element %u has no value", k);
			return (TypeId){0};
		}
		elem[k] = node_type_id(g, in[k]);
	}
	return ir_tuple(g->ir, nin, elem);
}

OP(tuple) {
	.schema = "tuple(Tensor[] xs) -> Tensor[]",
	.doc = "several values as one",
	.infer = infer_tuple,
	.lower = {.role = LOWER_NOTHING},
	.sample = "[f32[n=3], i64[2, 2]]",
};

static TypeId infer_get(Graph *g, Op op, const Node *in, uint32_t nin, AttrId attr,
			const char *where)
{
	(void)op, (void)nin;
	Ir *ir = g->ir;
	const Type *t = node_type(g, in[0]);
	int64_t k;
	if (t->dtype != DT_none || !node_type_id(g, in[0]).i) {
		ctx_error(ir->ctx, where, "get: expected a tuple, got a tensor");
		return (TypeId){0};
	}
	if (!sym_is_const(ir->syms, ir_attr(ir, attr, 1)->s, &k) || k < 0 || k >= (int64_t)t->n) {
		ctx_error(ir->ctx, where, "get: expected an index below %u", t->n);
		return (TypeId){0};
	}
	return t->elem[k];
}

OP(get) {
	.schema = "get(Tensor x, *, int index) -> Tensor",
	.doc = "an element of a tuple",
	.infer = infer_get,
	.lower = {.role = LOWER_MEMORY},
	.no_sample = "reads a tuple, which no input is",
};
