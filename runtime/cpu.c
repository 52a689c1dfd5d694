/* Does this processor have the instructions the model was compiled for? */
#include "runtime.h"

#include <string.h>

/* One instruction set extension and where the processor or the system tells of it. */
typedef struct {
	const char *name;
	uint32_t leaf;
	uint8_t word, bit, saved;
} Feature;

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { B = 1, C = 2 };      /* words of a CPUID leaf: EBX, ECX */
enum { YMM = 6, ZMM = 0xe6 }; /* bits of XCR0: register contents that the system saves */

/* Bits of CPUID: Intel's Software Developer's Manual, volume 2A; AMD's, volume 3 (lzcnt). */
static const Feature feature[] = {
	{"sse3", 1, C, 0, 0},           {"ssse3", 1, C, 9, 0},          {"fma", 1, C, 12, YMM},
	{"sse4.1", 1, C, 19, 0},        {"sse4.2", 1, C, 20, 0},        {"movbe", 1, C, 22, 0},
	{"popcnt", 1, C, 23, 0},        {"avx", 1, C, 28, YMM},         {"f16c", 1, C, 29, YMM},
	{"bmi", 7, B, 3, 0},            {"avx2", 7, B, 5, YMM},         {"bmi2", 7, B, 8, 0},
	{"avx512f", 7, B, 16, ZMM},     {"avx512dq", 7, B, 17, ZMM},    {"avx512cd", 7, B, 28, ZMM},
	{"avx512bw", 7, B, 30, ZMM},    {"avx512vl", 7, B, 31, ZMM},    {"avx512vnni", 7, C, 11, ZMM},
	{"lzcnt", 0x80000001, C, 5, 0}, {NULL, 0, 0, 0, 0},
};

/* XCR0, as far as the system lets one ask. */
static uint32_t saved_registers(void)
{
	uint32_t a, b, c, d;
	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1))
		return 0;
	__asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
	return a;
}

static bool present(const Feature *f)
{
	uint32_t word[4];
	if (!__get_cpuid_count(f->leaf, 0, &word[0], &word[1], &word[2], &word[3]))
		return false;
	return word[f->word] >> f->bit & 1 && (!f->saved || (saved_registers() & f->saved) == f->saved);
}

/* Linux saves the registers of AMX only for processes that have asked for it: once, for all threads.
 * It may refuse (a sandbox), and older systems do not know the question. */
static bool tiles_permitted(void)
{
#ifdef __linux__
	enum { UNKNOWN, YES, NO };
	enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
	static _Atomic int answer;
	if (answer == UNKNOWN)
		answer = syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) ? NO : YES;
	return answer == YES;
#else
	return false;
#endif
}

/* "amxtile", "amxbf16", "amxint8": bits of EDX of leaf 7. */
static bool has_tiles(const char *name)
{
	enum { XTILE = 3 << 17 };
	uint32_t a, b, c, d, bit = !strcmp(name, "amxtile") ? 24 : !strcmp(name, "amxbf16") ? 22 : 25;
	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && d >> bit & 1 && (saved_registers() & XTILE) == XTILE && tiles_permitted();
}
#elif defined(__linux__) && (defined(__aarch64__) || defined(__riscv))
#include <sys/auxv.h>

#if defined(__aarch64__)
static const Feature feature[] = {
	{.name = "fp", .bit = 0},       {.name = "asimd", .bit = 1}, {.name = "asimdhp", .bit = 10},
	{.name = "asimddp", .bit = 20}, {.name = "sve", .bit = 22},  {0},
};
#else /* extensions of one letter */
#define LETTER(x, k) {.name = x, .bit = k}
static const Feature feature[] = {LETTER("i", 8), LETTER("m", 12), LETTER("a", 0),  LETTER("f", 5),
				  LETTER("d", 3), LETTER("c", 2),  LETTER("v", 21), {0}};
#endif

static bool present(const Feature *f)
{
	return getauxval(AT_HWCAP) >> f->bit & 1;
}

static bool has_tiles(const char *name)
{
	(void)name;
	return false;
}
#else
static const Feature feature[] = {{0}};

static bool has_tiles(const char *name)
{
	(void)name;
	return false;
}

static bool present(const Feature *f)
{
	(void)f;
	return false;
}
#endif

/* A name that is not listed is implied by another, or cannot be asked for here. */
static bool has(const char *name)
{
	if (!strncmp(name, "amx", 3))
		return has_tiles(name);
	const Feature *f = feature;
	while (f->name && strcmp(f->name, name) != 0)
		f++;
	return !f->name || present(f);
}

int weft_cpu_lacks(const char *features, char missing[32])
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

const WeftModel *weft_rt_select(const WeftModel *(*const *level)(void), uint32_t n)
{
	char missing[32];
	for (uint32_t k = 0; k + 1 < n; k++)
		if (!weft_cpu_lacks(level[k]()->manifest->features, missing))
			return level[k]();
	return level[n - 1]();
}
