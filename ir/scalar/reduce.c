#include "ir/scalar/reduce.h"

#include <math.h>
#include <string.h>

static const struct {
	const char *name;
	ScOp op;
	double identity;     /* of floats */
	ReduceKind of_bools;
} kinds[] = {
	[REDUCE_SUM] = {"sum", SC_add, 0, REDUCE_OR},
	[REDUCE_PROD] = {"prod", SC_mul, 1, REDUCE_AND},
	[REDUCE_MAX] = {"max", SC_max, -INFINITY, REDUCE_OR},
	[REDUCE_MIN] = {"min", SC_min, INFINITY, REDUCE_AND},
	[REDUCE_AND] = {"and", SC_and, 0, REDUCE_AND},
	[REDUCE_OR] = {"or", SC_or, 0, REDUCE_OR},
	[REDUCE_XOR] = {"xor", SC_xor, 0, REDUCE_XOR},
	[REDUCE_LOGADDEXP] = {"logaddexp", SC_const, -INFINITY, REDUCE_LOGADDEXP},
	[REDUCE_SET] = {"set", SC_const, 0, REDUCE_SET},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

const char *reduce_name(ReduceKind k)
{
	return kinds[k].name;
}

bool reduce_parse(const char *s, ReduceKind *k)
{
	for (uint32_t i = 0; i < KINDS; i++)
		if (strcmp(kinds[i].name, s) == 0) {
			*k = (ReduceKind)i;
			return true;
		}
	return false;
}

ReduceKind reduce_of(ReduceKind k, DType d)
{
	return d == DT_bool ? kinds[k].of_bools : k;
}

ScOp reduce_op(ReduceKind k)
{
	return kinds[k].op;
}

/* Smallest and largest of an integer type, as 64 bits hold them. */
static int64_t lowest(DType d)
{
	return d == DT_bool || !dtype_is_signed(d) ? 0 : (int64_t)(UINT64_MAX << (8 * dtype_size(d) - 1));
}

static int64_t highest(DType d)
{
	uint32_t bits = d == DT_bool ? 1 : 8 * dtype_size(d) - dtype_is_signed(d);
	return bits == 64 ? -1 : (int64_t)((UINT64_C(1) << bits) - 1);
}

ScVal reduce_identity(ReduceKind k, DType d)
{
	if (dtype_is_float(d))
		return (ScVal){.f = kinds[k].identity};
	switch (k) {
	case REDUCE_PROD: return (ScVal){.i = 1};
	case REDUCE_MAX: return (ScVal){.i = lowest(d)};
	case REDUCE_MIN: return (ScVal){.i = highest(d)};
	case REDUCE_AND: return (ScVal){.i = d == DT_bool ? 1 : -1};
	default: return (ScVal){.i = 0};
	}
}
