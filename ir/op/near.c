/* Which operator was meant by a name that is none. */
#include <string.h>

#include "base/nearest.h"
#include "ir/op/op.h"

/* Finds an operator by its name without the overload: of "aten.add", aten.add.Tensor if there is
 * one, else the first. Returns OP_none if there is none. */
static Op with_overload(const char *name)
{
	const size_t n = strlen(name);
	Op found = OP_none;
	for (uint32_t k = 1; k < op_count(); k++) {
		const char *of = op_name((Op)k);
		if (strncmp(of, name, n) || of[n] != '.')
			continue;
		if (!found || !strcmp(of + n, ".Tensor"))
			found = (Op)k;
	}
	return found;
}

const char *op_hint(Arena *a, const char *name)
{
	Nearest near = {.word = name, .most = strlen(name) < 6 ? 1 : 2};
	const Op op = strchr(name, '.') ? with_overload(name) : OP_none;
	for (uint32_t k = 1; !op && k < op_count(); k++)
		nearest_offer(&near, op_name((Op)k));
	const char *meant = op ? op_name(op) : near.found;
	return meant ? arena_printf(a, "; did you mean %s?", meant) : "";
}
