#include "codegen/target.h"

#include <string.h>

static const Target table[] = {
	{
		.name = "generic-c", .family = "generic", .page = 4096,
		.vector_bytes = 0, .nvreg = 16, .has_fma = false, .masks = MASK_NONE,
		.l1 = 32 << 10, .l2 = 256 << 10,
		.features = "", .flags = "",
	}, {
		.name = "x86-64-v2", .cpu = "x86-64-v2", .family = "x86-64", .triple = "x86_64-linux-gnu", .page = 4096,
		.vector_bytes = 16, .nvreg = 16, .has_fma = false, .masks = MASK_VECTOR,
		.l1 = 48 << 10, .l2 = 2 << 20,
		.features = "sse3 ssse3 sse4.1 sse4.2 popcnt", .flags = "-march=x86-64-v2",
	}, {
		.name = "x86-64-v3", .cpu = "x86-64-v3", .family = "x86-64", .triple = "x86_64-linux-gnu", .page = 4096,
		.vector_bytes = 32, .nvreg = 16, .has_fma = true, .has_f16 = true, .masks = MASK_VECTOR,
		.masked_memory = true, .l1 = 48 << 10, .l2 = 2 << 20,
		.features = "avx avx2 fma bmi bmi2", .flags = "-march=x86-64-v3",
	}, {
		.name = "x86-64-v4", .cpu = "x86-64-v4", .family = "x86-64", .triple = "x86_64-linux-gnu", .page = 4096,
		.vector_bytes = 64, .nvreg = 32, .has_fma = true, .has_f16 = true, .masks = MASK_BITS, .attributes = "-prefer-256-bit",
		.masked_memory = true, .l1 = 48 << 10, .l2 = 2 << 20,
		.features = "avx2 fma bmi bmi2 avx512f avx512bw avx512cd avx512dq avx512vl",
		.flags = "-march=x86-64-v4 -mprefer-vector-width=512",
	},
};
enum { NTARGET = sizeof table / sizeof table[0] };

const Target *target_at(uint32_t k)
{
	return k < NTARGET ? &table[k] : NULL;
}

#if defined(__x86_64__) && defined(__GNUC__)
bool target_runs_here(const Target *t)
{
	__builtin_cpu_init();
	switch (t->vector_bytes) {
	case 0:
		return true;
	case 16:
		return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
	case 32:
		return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
		       __builtin_cpu_supports("bmi2");
	default:
		return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		       __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
		       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
	}
}
#else
bool target_runs_here(const Target *t)
{
	return t->vector_bytes == 0;
}
#endif

const Target *target_find(const char *name)
{
	if (strcmp(name, "native") == 0) {
		const Target *best = &table[0];
		for (uint32_t k = 0; k < NTARGET; k++)
			if (target_runs_here(&table[k]))
				best = &table[k];
		return best;
	}
	for (uint32_t k = 0; k < NTARGET; k++)
		if (strcmp(table[k].name, name) == 0)
			return &table[k];
	return NULL;
}

uint32_t target_lanes(const Target *t, DType d)
{
	uint32_t size = dtype_size(d == DT_bool ? DT_f32 : dtype_compute(d));
	return t->vector_bytes && size ? t->vector_bytes / size : 1;
}

uint32_t target_width(const Target *t)
{
	return target_lanes(t, DT_f32);
}

const char *target_common_flags(void)
{
	return "-O2 -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-strict-aliasing";
}
