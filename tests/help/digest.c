#include "tests/help/digest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
	int64_t whole;    /* of integers, modulo 2^64 */
	double sum, size; /* of numbers, and of their magnitudes */
	long long code;   /* 1 for NaN, 2 for infinity, 3 for minus infinity, with weights */
	bool fraction;
} Digest;

static Digest digest(const Tensor *t)
{
	Tensor x = tensor_flat_real(t);
	Digest d = {.fraction = dtype_is_float(x.dtype)};
	uint64_t whole = 0;
	for (int64_t i = 0, n = tensor_numel(&x); i < n; i++) {
		int64_t w = i * 37 % 101 + 1;
		if (!d.fraction) {
			whole += (uint64_t)tensor_i64(&x, i) * (uint64_t)w;
			continue;
		}
		double v = tensor_f64(&x, i);
		if (!isfinite(v)) {
			d.code += (isnan(v) ? 1 : v > 0 ? 2 : 3) * w;
			continue;
		}
		d.sum += v * (double)w;
		d.size += fabs(v) * (double)w;
	}
	d.whole = (int64_t)whole;
	return d;
}

/* A few roundings of each value; what is recorded has eight digits. */
static double rounding(DType d)
{
	switch (d) {
	case DT_f64:
	case DT_c128:
		return 1e-6;
	case DT_f32:
	case DT_c64:
		return 1e-5;
	case DT_f16:
	case DT_c32:
		return 5e-3;
	default:
		return 3e-2;
	}
}

bool digest_agrees(Ctx *ctx, const Tensor *got, const char *line, double slack)
{
	if (strcmp(line, "none") == 0)
		return true;
	const char *type = arena_printf(ctx->arena, "%s ", tensor_type_str(ctx->arena, got));
	if (strncmp(line, type, strlen(type)) != 0)
		return false;
	char *end;
	Digest d = digest(got);
	line += strlen(type);
	if (!d.fraction)
		return d.whole == (int64_t)strtoll(line, &end, 10) && !*end;
	double want = strtod(line, &end);
	return fabs(want - d.sum) <= rounding(got->dtype) * d.size + slack &&
	       strtoll(end, NULL, 10) == d.code;
}

const char *digest_text(Ctx *ctx, const Tensor *t)
{
	Digest d = digest(t);
	const char *type = arena_printf(ctx->arena, "%s ", tensor_type_str(ctx->arena, t));
	return d.fraction ? arena_printf(ctx->arena, "%s%.9g %lld", type, d.sum, d.code)
			  : arena_printf(ctx->arena, "%s%lld", type, (long long)d.whole);
}
