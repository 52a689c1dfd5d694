/* Does this processor have the instructions the model was compiled for? */
#include "region_priv.h"

#include <string.h>

static int has(const char *name)
{
	int lacks = 0; /* a name not listed is implied by another, or not testable here */
#if defined(__x86_64__) && defined(__GNUC__)
	__builtin_cpu_init();
#define F(x) lacks |= !strcmp(name, x) && !__builtin_cpu_supports(x);
	F("sse3") F("ssse3") F("sse4.1") F("sse4.2") F("popcnt") F("avx") F("avx2") F("fma")
	F("bmi") F("bmi2") F("avx512f") F("avx512bw") F("avx512cd") F("avx512dq") F("avx512vl")
	F("avx512vnni")
#undef F
#else
	lacks = *name != 0;
#endif
	return !lacks;
}

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
