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
	const char *dot = strchr(name, '.'); /* a namespace is no reason for more edits */
	Nearest near = {.word = name, .most = nearest_most(strlen(dot ? dot + 1 : name))};
	const Op op = dot ? with_overload(name) : OP_none;
	for (uint32_t k = 1; !op && k < op_count(); k++)
		nearest_offer(&near, op_name((Op)k));
	if (op)
		near.found = op_name(op);
	return nearest_hint(a, &near);
}
