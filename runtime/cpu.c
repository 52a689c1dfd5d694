/* Does this processor have the instructions the model was compiled for? */
#include "runtime.h"

/* One instruction set extension and where the processor or the system tells of it. */
typedef struct {
	char name[12];
	uint32_t leaf, saved;
	uint8_t word, bit, sub; /* sub: the subleaf */
} Feature;

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>

/* Words of a CPUID leaf: EAX, EBX, ECX, EDX; bits of XCR0: register contents that the system
 * saves. */
enum { A, B, C, D, YMM = 6, ZMM = 0xe6, TILE = 0x60000 };

/* Bits of CPUID: Intel's Software Developer's Manual, volume 2A; AMD's, volume 3 (lzcnt). */
static const Feature feature[] = {
	{"sse3", 1, 0, C, 0, 0}, {"ssse3", 1, 0, C, 9, 0}, {"fma", 1, YMM, C, 12, 0}, {"sse4.1", 1, 0, C, 19, 0},
	{"sse4.2", 1, 0, C, 20, 0}, {"movbe", 1, 0, C, 22, 0}, {"popcnt", 1, 0, C, 23, 0}, {"avx", 1, YMM, C, 28, 0},
	{"f16c", 1, YMM, C, 29, 0}, {"bmi", 7, 0, B, 3, 0}, {"avx2", 7, YMM, B, 5, 0}, {"bmi2", 7, 0, B, 8, 0},
	{"avx512f", 7, ZMM, B, 16, 0}, {"avx512dq", 7, ZMM, B, 17, 0}, {"avx512cd", 7, ZMM, B, 28, 0}, {"avx512bw", 7, ZMM, B, 30, 0},
	{"avx512vl", 7, ZMM, B, 31, 0}, {"avx512vnni", 7, ZMM, C, 11, 0}, {"avx512bf16", 7, ZMM, A, 5, 1}, {"avxvnni", 7, YMM, A, 4, 1},
	{"amxbf16", 7, TILE, D, 22, 0}, {"amxtile", 7, TILE, D, 24, 0}, {"amxint8", 7, TILE, D, 25, 0}, {"lzcnt", 0x80000001, 0, C, 5, 0},
	{.name = ""},
};

/* Returns XCR0, as far as the system lets one ask; 0 where it does not. */
static uint32_t saved_registers(void)
{
	uint32_t a, b, c, d;
	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1))
		return 0;
	__asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
	return a;
}

/* Whether Linux saves the registers of AMX for this process: it does for those that have asked by
 * arch_prctl (158) with ARCH_REQ_XCOMP_PERM, XTILEDATA, once for all threads. It may refuse; older
 * systems do not know the question. */
static bool tiles_permitted(void)
{
	static _Atomic long refused = -1; /* -1: not asked; 0: permitted */
#ifdef __linux__
	long answer = refused;
	if (answer == -1)
		__asm__ volatile("syscall"
				 : "=a"(answer)
				 : "a"(158), "D"(0x1023), "S"(18)
				 : "rcx", "r11", "memory");
	refused = answer == 0 ? 0 : 1;
#endif
	return refused == 0;
}

static bool present(const Feature *f)
{
	uint32_t word[4];
	return __get_cpuid_count(f->leaf, f->sub, &word[0], &word[1], &word[2], &word[3]) &&
	       word[f->word] >> f->bit & 1 && (saved_registers() & f->saved) == f->saved &&
	       (f->saved != TILE || tiles_permitted());
}
#elif defined(__linux__) && (defined(__aarch64__) || defined(__riscv))
#include <sys/auxv.h>

#if defined(__aarch64__)
static const Feature feature[] = {
	{.name = "fp", .bit = 0},       {.name = "asimd", .bit = 1}, {.name = "asimdhp", .bit = 10},
	{.name = "asimddp", .bit = 20}, {.name = "sve", .bit = 22},  {.name = ""},
};
#else /* extensions of one letter */
#define LETTER(x, k) {.name = x, .bit = k}
static const Feature feature[] = {LETTER("i", 8), LETTER("m", 12), LETTER("a", 0),  LETTER("f", 5),
				  LETTER("d", 3), LETTER("c", 2),  LETTER("v", 21), {.name = ""}};
#endif

static bool present(const Feature *f)
{
	return getauxval(AT_HWCAP) >> f->bit & 1;
}
#else
static const Feature feature[] = {{.name = ""}};

static bool present(const Feature *f)
{
	(void)f;
	return false;
}
#endif

/* Whether the processor has the feature. A name that is not listed is implied by another, or
 * cannot be asked for here: true. */
static bool has(const char *name)
{
	const Feature *f = feature;
	while (*f->name && strcmp(f->name, name) != 0)
		f++;
	return !*f->name || present(f);
}

int weft_cpu_lacks(const char *features, char missing[32])
{
	for (const char *p = features ? features : ""; *p; p += strspn(p, " ")) {
		size_t n = strcspn(p, " ");
		if (n > 0 && n < 32) {
			memcpy(missing, p, n);
			missing[n] = 0;
			if (!has(missing))
				return 1;
		}
		p += n;
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
