/* Calls of user operators. */
#include <string.h>

#include "ir/graph/dtype_api.h"
#include "ir/interp/priv.h"
#include "ops/prim/priv.h"
#include "ops/rules/batch.h"
#include "ops/user/userop.h"

static bool find_op(Infer *f, const UserOp **op)
{
	const Attr *a = infer_attr(f, "op");
	const char *name = a->kind == ATTR_str ? a->str : "";
	*op = userop_find(f->g->ir, name);
	return *op || infer_fail(f,
				 "no user operator %s is registered: name a library that has it "
				 "(--ops LIBRARY)",
				 name);
}

static bool shape_call(Infer *f)
{
	const UserOp *op;
	UserSolution s;
	Ir *ir = f->g->ir;
	const Attr *floats = infer_attr(f, "floats");
	UserScalars scalars = {.floats = floats->floats, .nfloat = floats->n};
	TRY(find_op(f, &op));
	TRY(infer_ints(f, "ints", &scalars.ints, &scalars.nint));
	if (f->nin != op->nin)
		return infer_fail(f, "%s: %u operands, expected %u", op->name, f->nin, op->nin);
	Type *operand = ARENA_ARRAY(ir->ctx->arena, Type, f->nin);
	for (uint32_t k = 0; k < f->nin; k++)
		operand[k] = infer_in(f, k);
	if (!userop_solve(ir, op, operand, &scalars, &s))
		return infer_fail(f, "%s", s.why);
	TypeId *elem = ARENA_ARRAY(ir->ctx->arena, TypeId, op->nout);
	for (uint32_t k = 0; k < op->nout; k++)
		elem[k] = userop_result(ir, op, &s, k);
	f->type = ir_tuple(ir, op->nout, elem);
	return true;
}
INFER(call)

/* Batches a call as the definition says of itself, or makes one call for each member. */
static Node batch_call(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	const UserOp *op = userop_of(b->g, n);
	if (!op || !userop_is(op, WEFT_OP_BATCH_LEADING))
		return batch_by_scan(b, n, in, batched, size);
	return batch_again(b, n, batch_all_wide(b, n, in, batched, size), batch_attrs(b, n));
}

static bool has_effect(const Graph *g, Node n)
{
	const UserOp *op = userop_of(g, n);
	return op && userop_is(op, WEFT_OP_EFFECT);
}

static bool is_collective(const Graph *g, Node n)
{
	const UserOp *op = userop_of(g, n);
	return op && op->collective;
}

static bool has_jvp(const Graph *g, Node n)
{
	const UserOp *op = userop_of(g, n);
	return op && op->def.jvp;
}

/* ---- evaluation ---- */

static WeftTensor api_tensor(EvalCtx *e, const Tensor *t)
{
	int64_t *shape = EVAL_ARRAY(e, int64_t, t->rank);
	memcpy(shape, t->dim, t->rank * sizeof *shape);
	return (WeftTensor){.data = t->data,
			    .device = {WEFT_CPU, 0},
			    .ndim = (int32_t)t->rank,
			    .dtype = dtype_to_api(t->dtype),
			    .shape = shape};
}

/* Checks that the extents that operands have here fit the definition, and so do those of the
 * results. */
static bool check_extents(EvalCtx *e, Graph *g, Node n, const UserOp *op,
			  const UserScalars *scalars, const Tensor *in, const Tensor *out,
			  int64_t *work)
{
	SymTab *t = graph_syms(g);
	Type *operand = EVAL_ARRAY(e, Type, op->nin);
	UserSolution s;
	for (uint32_t k = 0; k < op->nin; k++) {
		Sym *dim = EVAL_ARRAY(e, Sym, in[k].rank);
		for (uint32_t d = 0; d < in[k].rank; d++)
			dim[d] = sym_int(t, in[k].dim[d]);
		operand[k] = (Type){.dtype = in[k].dtype, .n = in[k].rank, .dim = dim};
	}
	if (!userop_solve(g->ir, op, operand, scalars, &s))
		return eval_error(e, g, n, "%s", s.why);
	for (uint32_t k = 0; k < op->nout; k++) {
		const Type *r = ir_type_of(g->ir, userop_result(g->ir, op, &s, k));
		for (uint32_t d = 0; d < r->n; d++)
			if (!sym_is(t, r->dim[d], out[k].dim[d]))
				return eval_error(
					e, g, n,
					"%s: dimension %u of result %u is %s, expected %lld",
					op->name, d, k, sym_str(t, r->dim[d]),
					(long long)out[k].dim[d]);
	}
	*work = 0;
	return !op->work || sym_is_const(t, userop_work(g->ir, op, &s), work) ||
	       eval_error(e, g, n, "%s: the size of its workspace is not known", op->name);
}

/* Sets arg[] to the arguments in the order of the schema; scalars are tensors that point to
 * them. */
static void scalar_arguments(EvalCtx *e, const UserOp *op, int64_t *ints, double *floats,
			     const Tensor *in, WeftTensor *arg)
{
	for (uint32_t k = 0; k < op->schema.narg; k++) {
		Tensor t = {0};
		switch (op->schema.arg[k].kind) {
		case ARG_tensor: t = *in++; break;
		case ARG_float: t = (Tensor){.dtype = DT_f64, .data = floats++}; break;
		case ARG_ints:
			t = (Tensor){.dtype = DT_i64, .rank = 1, .dim = {*ints}, .data = ints + 1};
			ints += 1 + *ints;
			break;
		default:
			t = (Tensor){.dtype = op->schema.arg[k].kind == ARG_bool ? DT_bool : DT_i64,
				     .data = ints++};
			break;
		}
		arg[k] = api_tensor(e, &t);
	}
}

static bool eval_call(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	const UserOp *op = userop_of(g, n);
	UserScalars scalars = userop_scalars(g, n);
	int64_t *ints = EVAL_ARRAY(e, int64_t, scalars.nint), work;
	Sym *known = EVAL_ARRAY(e, Sym, scalars.nint);
	double *floats = EVAL_ARRAY(e, double, scalars.nfloat);
	if (!op)
		return eval_error(e, g, n, "no user operator %s is registered",
				  node_str(g, n, "op"));
	for (uint32_t k = 0; k < scalars.nint; k++) {
		TRY(eval_sym(e, scalars.ints[k], &ints[k]));
		known[k] = sym_int(graph_syms(g), ints[k]);
	}
	scalars.ints = known;
	if (scalars.nfloat)
		memcpy(floats, scalars.floats, scalars.nfloat * sizeof *floats);
	TRY(check_extents(e, g, n, op, &scalars, in, out, &work));
	WeftTensor *arg = EVAL_ARRAY(e, WeftTensor, op->schema.narg),
		   *result = EVAL_ARRAY(e, WeftTensor, op->nout);
	scalar_arguments(e, op, ints, floats, in, arg);
	for (uint32_t k = 0; k < op->nout; k++)
		result[k] = api_tensor(e, &out[k]);
	char *room = work ? arena_alloc(e->arena, (size_t)work + 64) : NULL;
	room = room ? (char *)(((uintptr_t)room + 63) / 64 * 64) : NULL;
	WeftStatus status = {0};
	const WeftOpContext context = {.size = sizeof context,
				       .threads = 1,
				       .device = {WEFT_CPU, 0},
				       .comm = *g->ir->comm};
	return userop_call(op, &context, arg, result, room, (uint64_t)work, &status) ||
	       eval_error(e, g, n, "%s", status.message);
}

OP(call) {
	.schema = "call(Tensor[] xs, *, str op, int[] ints, float[] floats) -> Tensor[]",
	.doc = "what the user's operator of that name makes of xs and its scalar arguments "
	       "(weft_op.h)",
	.has_effect = has_effect,
	.collective = is_collective,
	.foreign = true,
	.infer = infer_call,
	.eval = eval_call,
	.batch = batch_call,
	.adjoint = userop_vjp,
	.tangent = userop_jvp,
	.tangent_if = has_jvp,
	.lower = {.role = LOWER_ROOT, .reads = ALL_OPERANDS},
	.no_sample = "its operators belong to the user",
};
