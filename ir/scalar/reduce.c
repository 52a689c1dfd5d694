#include "ir/scalar/reduce.h"

#include <math.h>
#include <string.h>

enum { EVERY = COMBINES_DIMS | COMBINES_PLACES | COMBINES_RUNS | COMBINES_WRITES };
enum { INTS = 1, FLOATS = 2, COMPLEX = 4 }; /* bools are ints here */

static const struct {
	const char *name, *of_writes; /* ATen's scatters call two of them otherwise */
	ScOp op;
	double identity;     /* of floats */
	ReduceKind of_bools;
	uint8_t uses, takes;
	bool rounds; /* at every step */
} kinds[] = {
	[REDUCE_SUM] = {"sum", "add", SC_add, 0, REDUCE_OR, EVERY & ~COMBINES_PLACES,
			INTS | FLOATS | COMPLEX, true},
	[REDUCE_PROD] = {"prod", "mul", SC_mul, 1, REDUCE_AND, EVERY & ~COMBINES_PLACES,
			 INTS | FLOATS | COMPLEX, true},
	[REDUCE_MAX] = {"max", NULL, SC_max, -INFINITY, REDUCE_OR, EVERY, INTS | FLOATS, false},
	[REDUCE_MIN] = {"min", NULL, SC_min, INFINITY, REDUCE_AND, EVERY, INTS | FLOATS, false},
	[REDUCE_AND] = {"and", NULL, SC_and, 0, REDUCE_AND, COMBINES_DIMS, INTS, false},
	[REDUCE_OR] = {"or", NULL, SC_or, 0, REDUCE_OR, COMBINES_DIMS, INTS, false},
	[REDUCE_XOR] = {"xor", NULL, SC_xor, 0, REDUCE_XOR, COMBINES_DIMS, INTS, false},
	[REDUCE_LOGADDEXP] = {"logaddexp", NULL, SC_const, -INFINITY, REDUCE_LOGADDEXP,
			      COMBINES_RUNS, FLOATS, false},
	[REDUCE_SET] = {"set", NULL, SC_const, 0, REDUCE_SET, COMBINES_WRITES,
			INTS | FLOATS | COMPLEX, false},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

const char *reduce_name(ReduceKind k)
{
	return kinds[k].name;
}

const char *reduce_name_for(ReduceKind k, ReduceUse use)
{
	return use == COMBINES_WRITES && kinds[k].of_writes ? kinds[k].of_writes : kinds[k].name;
}

bool reduce_parse(const char *s, ReduceKind *k)
{
	for (uint32_t i = 0; i < KINDS; i++)
		if (strcmp(kinds[i].name, s) == 0 ||
		    (kinds[i].of_writes && strcmp(kinds[i].of_writes, s) == 0)) {
			*k = (ReduceKind)i;
			return true;
		}
	return false;
}

bool reduce_serves(ReduceKind k, ReduceUse use)
{
	return kinds[k].uses & use;
}

bool reduce_takes(ReduceKind k, DType d)
{
	return kinds[k].takes & (dtype_is_complex(d) ? COMPLEX : dtype_is_float(d) ? FLOATS : INTS);
}

bool reduce_rounds(ReduceKind k)
{
	return kinds[k].rounds;
}

ReduceKind reduce_of(ReduceKind k, DType d)
{
	return d == DT_bool ? kinds[k].of_bools : k;
}

ScOp reduce_op(ReduceKind k)
{
	return kinds[k].op;
}

/* Returns the smallest value of an integer type, as 64 bits hold it. */
static int64_t lowest(DType d)
{
	return d == DT_bool || !dtype_is_signed(d)
		       ? 0
		       : (int64_t)(UINT64_MAX << (8 * dtype_size(d) - 1));
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

/* ---- two values ---- */

static double logaddexp(double a, double b)
{
	if (isnan(a) || isnan(b))
		return NAN;
	double high = a > b ? a : b;
	return isinf(high) ? high : high + log1p(exp(-fabs(a - b)));
}

double reduce_f64(ReduceKind k, double a, double b)
{
	switch (k) {
	case REDUCE_SUM: return a + b;
	case REDUCE_PROD: return a * b;
	case REDUCE_MAX: return isnan(a) || a > b ? a : b;
	case REDUCE_MIN: return isnan(a) || a < b ? a : b;
	case REDUCE_LOGADDEXP: return logaddexp(a, b);
	default: return b;
	}
}

int64_t reduce_i64(ReduceKind k, DType d, int64_t a, int64_t b)
{
	bool less = d == DT_u64 ? (uint64_t)a < (uint64_t)b : a < b;
	switch (k) {
	case REDUCE_SUM: return (int64_t)((uint64_t)a + (uint64_t)b);
	case REDUCE_PROD: return (int64_t)((uint64_t)a * (uint64_t)b);
	case REDUCE_MAX: return less ? b : a;
	case REDUCE_MIN: return less ? a : b;
	case REDUCE_AND: return a & b;
	case REDUCE_OR: return a | b;
	case REDUCE_XOR: return a ^ b;
	default: return b;
	}
}
