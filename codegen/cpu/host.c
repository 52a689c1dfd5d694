#include "codegen/cpu/host.h"

#include <stdio.h>
#include <string.h>

#include "runtime/runtime.h"

#if defined(__x86_64__)
static const char *const host_family = "x86-64";
#elif defined(__aarch64__)
static const char *const host_family = "aarch64";
#elif defined(__riscv) && __riscv_xlen == 64
static const char *const host_family = "riscv64";
#else
static const char *const host_family = "";
#endif

bool target_runs_here(const Target *t)
{
	char missing[32];
	bool family = !strcmp(t->isa.family, "generic") || !strcmp(t->isa.family, host_family);
	return family && !weft_cpu_lacks(t->isa.features, missing);
}

/* The target with all features that the processor has. */
static const Target *with_features(const Target *t)
{
	char name[128], missing[32];
	const char *feature, *needs;
	size_t n = (size_t)snprintf(name, sizeof name, "%s", t->isa.name);
	for (uint32_t k = 0; (feature = target_feature_at(t, k, &needs)); k++)
		if (!weft_cpu_lacks(needs, missing) && n + strlen(feature) + 2 <= sizeof name)
			n += (size_t)snprintf(name + n, sizeof name - n, "+%s", feature);
	const Target *all = target_find(name);
	return all ? all : t;
}

const Target *target_native(void)
{
	const Target *best = target_at(0);
	for (uint32_t k = 1; target_at(k); k++)
		if (target_runs_here(target_at(k)))
			best = target_at(k);
	return with_features(best);
}

const Target *target_named(const char *name)
{
	return strcmp(name, "native") == 0 ? target_native() : target_find(name);
}
