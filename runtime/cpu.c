/* Does this processor have the instructions the model was compiled for? */
#include "region_priv.h"

#include <string.h>
#if defined(__linux__) && (defined(__aarch64__) || defined(__riscv))
#include <sys/auxv.h>
#endif

/* A name that is not listed is implied by another, or not testable here. */
#if defined(__x86_64__) && defined(__GNUC__)
static int has(const char *name)
{
	__builtin_cpu_init();
#define F(x)                                                                                       \
	if (!strcmp(name, x))                                                                      \
		return __builtin_cpu_supports(x);
	F("sse3") F("ssse3") F("sse4.1") F("sse4.2") F("popcnt") F("avx") F("avx2") F("fma")
	F("bmi") F("bmi2") F("avx512f") F("avx512bw") F("avx512cd") F("avx512dq") F("avx512vl")
	F("avx512vnni")
#undef F
	return 1;
}
#elif defined(__linux__) && defined(__aarch64__)
/* Bits of AT_HWCAP. */
static int has(const char *name)
{
	static const struct {
		const char *name;
		int bit;
	} table[] = {{"fp", 0}, {"asimd", 1}, {"asimdhp", 10}, {"asimddp", 20}, {"sve", 22}};
	for (size_t k = 0; k < sizeof table / sizeof *table; k++)
		if (!strcmp(name, table[k].name))
			return getauxval(AT_HWCAP) >> table[k].bit & 1;
	return 1;
}
#elif defined(__linux__) && defined(__riscv)
/* Extensions of one letter are bits of AT_HWCAP. */
static int has(const char *name)
{
	return name[1] || *name < 'a' || *name > 'z' ||
	       (getauxval(AT_HWCAP) >> (*name - 'a') & 1);
}
#else
static int has(const char *name)
{
	return *name == 0;
}
#endif

int cpu_lacks(const char *features, char missing[32])
{
	for (const char *p = features ? features : ""; *p;) {
		size_t n = strcspn(p, " ");
		if (n > 0 && n < 32) {
			memcpy(missing, p, n);
			missing[n] = 0;
			if (!has(missing))
				return 1;
		}
		p += n;
		p += strspn(p, " ");
	}
	return 0;
}
