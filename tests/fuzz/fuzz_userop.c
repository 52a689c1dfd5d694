/* libFuzzer: the bytes are the schema of a user's operator, its types and its workspace, a line
 * each. A definition is accepted, or refused with one message; one that is accepted is solved for
 * operands of all kinds of sizes. Seeds: scripts/fuzz_seeds.py. */
#include <stdlib.h>
#include <string.h>

#include "ops/user/userop.h"
#include "tests/fuzz/mutate.h"

/* Operands with as many dimensions as the types ask for, known and symbolic ones in turn. */
static void solve(Ctx *ctx, const UserOp *op, uint32_t variant)
{
	Ir *ir = ir_new(ctx);
	Type *operand = ARENA_ARRAY(ctx->arena, Type, op->nin);
	Sym size = sym_var(ir->syms, "s", SYMVAR_SIZE, 0, SYM_INF);
	UserScalars scalars = {0};
	ARRAY(Sym) ints = {0};
	for (uint32_t k = 0; k < op->schema.narg; k++) {
		const Arg *a = &op->schema.arg[k];
		uint32_t n = a->kind == ARG_ints ? a->size : 0;
		if (a->kind == ARG_int || a->kind == ARG_bool || a->kind == ARG_ints)
			array_push(ctx->arena, &ints,
				   sym_int(ir->syms, a->kind == ARG_ints   ? n
						     : a->kind == ARG_bool ? 1
									   : variant));
		for (uint32_t i = 0; i < n; i++)
			array_push(ctx->arena, &ints, sym_int(ir->syms, i));
		scalars.nfloat += a->kind == ARG_float;
	}
	scalars.ints = ints.data;
	scalars.nint = ints.n;
	scalars.floats = ARENA_ARRAY(ctx->arena, double, scalars.nfloat);
	for (uint32_t k = 0; k < op->nin; k++) {
		const UserType *t = &op->type[k];
		uint32_t rank = t->rank + (t->leading && t->rank < MAX_RANK ? variant % 2 : 0);
		Sym *dim = ARENA_ARRAY(ctx->arena, Sym, rank);
		for (uint32_t d = 0; d < rank; d++)
			dim[d] = variant % 3 == 2 ? size : sym_int(ir->syms, variant * 4);
		operand[k] = (Type){
			.dtype = t->dtype != DT_none ? t->dtype : DT_f32, .n = rank, .dim = dim};
	}
	UserSolution s;
	uint32_t errors = ctx->nerror;
	if (!userop_solve(ir, op, operand, &scalars, &s)) {
		if (!s.why)
			abort();
		return;
	}
	for (uint32_t k = 0; k < op->nout; k++)
		if (!userop_result(ir, op, &s, k).i && ctx->nerror == errors)
			abort();
	userop_work(ir, op, &s);
}

static void read_all(Ctx *ctx, uint8_t *data, size_t size)
{
	char *text = (char *)data;
	(void)size;
	WeftOpDef def = {.size = sizeof def, .symbol = "fuzz", .flags = WEFT_OP_EFFECT};
	def.schema = strsep(&text, "\n");
	def.types = text ? strsep(&text, "\n") : "";
	def.work_bytes = text && *text ? text : NULL;
	const UserOp *op = userop_new(ctx, "fuzz", &def);
	fuzz_count(op);
	if (ctx->nerror != !op)
		abort();
	for (uint32_t k = 0; op && k < 6; k++)
		solve(ctx, op, k);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_run(data, size, 1, read_all);
}
