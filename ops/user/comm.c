/* Collectives that are calls (OP_call): weft::all_gather and others, whose functions are in
 * runtime/comm/comm.c, which artifacts carry that call them. All else of a collective, sums above
 * all, is nodes around the call (ops/collective). */
#include "runtime/comm/comm.h"

#include <string.h>

#include "ops/user/userop.h"

typedef struct {
	const char *name, *schema, *types, *symbol;
	WeftOpFn fn;
} Collective;

#define FN(name) #name, name
static const Collective collective[] = {
	{"all_gather", "(Tensor x, int ranks, int[] group) -> Tensor", "T[n] -> T[ranks, n]",
	 FN(weft_comm_all_gather)},
	{"all_to_all",
	 "(Tensor x, int ranks, int[] group, int[] give, int[] take, int n) -> Tensor",
	 "T[m] -> T[n]", FN(weft_comm_all_to_all)},
	{"broadcast", "(Tensor x, int ranks, int[] group, int source) -> Tensor", "T[n] -> T[n]",
	 FN(weft_comm_broadcast)},
	{"swap", "(Tensor x, int ranks, int[] group) -> Tensor", "T[n] -> T[n]",
	 FN(weft_comm_swap)},
	{"gather", "(Tensor x, int ranks, int[] group, int target) -> Tensor",
	 "T[n] -> T[ranks, n]", FN(weft_comm_gather)},
};

enum { COUNT = sizeof collective / sizeof *collective };

struct Collectives {
	const UserOp *op[COUNT];
};

static const UserOp *make(Ctx *ctx, const Collective *from)
{
	WeftOpDef def = {.size = sizeof def,
			 .flags = WEFT_OP_EFFECT,
			 .schema = arena_printf(ctx->arena, "weft::%s%s", from->name, from->schema),
			 .types = from->types,
			 .work_bytes = arena_printf(ctx->arena, "%d*ranks", WEFT_COMM_WORK),
			 .symbol = from->symbol,
			 .fn = from->fn};
	const UserOp *op = userop_new(ctx, "weft", &def);
	if (!op)
		ctx_bug(ctx, "weft::%s is no operator", from->name);
	UserOp *own = arena_dup(ctx->arena, op, sizeof *op);
	own->said = "collective";
	own->own = own->collective = true;
	return own;
}

const UserOp *userop_collective(const Ir *ir, const char *stem)
{
	if (!*ir->collectives)
		*ir->collectives = ARENA_NEW(ir->ctx->arena, struct Collectives);
	for (uint32_t k = 0; k < COUNT; k++) {
		const UserOp **op = &(*ir->collectives)->op[k];
		if (strcmp(collective[k].name, stem) != 0)
			continue;
		if (!*op)
			*op = make(ir->ctx, &collective[k]);
		return *op;
	}
	return NULL;
}
