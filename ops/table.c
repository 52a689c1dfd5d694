/* All blocks, which scripts/oplist.py collects. */
#include "ir/op/table.h"
#include "ops/rules/rules.h"
#include "optable.h"

static const OpPlace place[OP_COUNT] = {[OP_none] = {.block = &op_none},
#define BLOCK(name) [OP_##name] = {.block = &op_##name, .op = OP_##name},
#define ROW(name, of, k) [OP_##name] = {.block = &op_##of, .op = OP_##of, .is_row = true, .row = k},
					OP_LIST(BLOCK, ROW)
#undef BLOCK
#undef ROW
};

static _Atomic(const Schema *) schema[OP_COUNT];
static _Atomic(const OpInfo *) overload[OP_COUNT];
static Op named[2 * OP_COUNT];

static const OpTable table = {.n = OP_COUNT,
			      .place = place,
			      .schema = schema,
			      .overload = overload,
			      .named = named,
			      .expand = ops_expand,
			      .expand_node = ops_expand_node,
			      .complex = ops_complex};

/* Runs when the program, or the library that ops is part of, is loaded: it is linked whole
 * (meson.build). */
__attribute__((constructor)) static void install(void)
{
	op_install(&table);
}
