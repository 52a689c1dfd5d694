#include "codegen/cpu/host.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime/runtime.h"

#if defined(__x86_64__)
#include <cpuid.h>

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

/* Returns the target with all features that the processor has. */
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

/* ---- the machine ---- */

/* Which processors a machine of ir/target/machine.c is most like. */
typedef struct {
	const char *vendor; /* of CPUID; "": any */
	uint32_t family;    /* of CPUID; 0: any */
	const char *needs;  /* features (weft_cpu_lacks) */
	const char *machine;
} Processor;

/* The first that fits. */
static const Processor processor[] = {
	{"AuthenticAMD", 0x1a, "avx512f", "zen5"},
	{"AuthenticAMD", 0x19, "avx512f", "zen4"},
	{"AuthenticAMD", 0, "avx2", "zen3"},
	{"", 0, "avx512vnni avx512bf16", "sapphire-rapids"},
	{"", 0, "avx512f", "skylake-x"},
	{"", 0, "avx2", "haswell"},
	{"", 0, "sse4.2", "nehalem"},
};

#if defined(__x86_64__)
static uint32_t vendor_and_family(char vendor[13])
{
	uint32_t a, word[3], model;
	memset(vendor, 0, 13);
	if (!__get_cpuid(0, &a, &word[0], &word[2], &word[1]) ||
	    !__get_cpuid(1, &model, &a, &a, &a))
		return 0;
	memcpy(vendor, word, sizeof word);
	const uint32_t family = model >> 8 & 15;
	return family == 15 ? 15 + (model >> 20 & 255) : family;
}
#else
static uint32_t vendor_and_family(char vendor[13])
{
	*vendor = 0;
	return 0;
}
#endif

const Machine *machine_like(const char *vendor, uint32_t family, bool (*has)(const char *features))
{
	const Processor *end = processor + sizeof processor / sizeof *processor;
	for (const Processor *p = processor; p < end; p++)
		if ((!*p->vendor || !strcmp(p->vendor, vendor)) &&
		    (!p->family || p->family == family) && has(p->needs))
			return machine_find(p->machine);
	return NULL;
}

static bool has_here(const char *features)
{
	char missing[32];
	return !weft_cpu_lacks(features, missing);
}

/* ---- the target ---- */

/* Returns the target and the machine of this processor. Asking it is slow in a virtual machine:
 * each feature takes microseconds. */
static Target native_target(void)
{
	char vendor[13];
	const Target *best = target_at(0);
	for (uint32_t k = 1; target_at(k); k++)
		if (target_runs_here(target_at(k)))
			best = target_at(k);
	Target t = *with_features(best);
	const uint32_t family = vendor_and_family(vendor);
	const Machine *m = machine_like(vendor, family, has_here);
	if (m && !strcmp(m->family, t.isa.family))
		t.machine = *m;
	return t;
}

const Target *target_native(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static Target native;
	pthread_mutex_lock(&lock);
	const bool known = native.isa.name;
	pthread_mutex_unlock(&lock);
	if (known)
		return &native;
	const Target here = native_target(); /* which may unwind: nothing is locked */
	pthread_mutex_lock(&lock);
	if (!native.isa.name)
		native = here;
	pthread_mutex_unlock(&lock);
	return &native;
}

const Target *target_named(const char *name)
{
	return strcmp(name, "native") == 0 ? target_native() : target_find(name);
}
