/* What scripts/measure_machine runs: rates and latencies of vector operations, caches and memory, a
 * barrier. Loops of independent operations give what begins in a cycle, chains give latency; the
 * clock is that of chained integer additions, one a cycle. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef __AVX512F__
enum { BYTES = 64 };
#elif defined(__AVX__)
enum { BYTES = 32 };
#else
enum { BYTES = 16 };
#endif
typedef float F32 __attribute__((vector_size(BYTES)));
typedef double F64 __attribute__((vector_size(BYTES)));
typedef int32_t I32 __attribute__((vector_size(BYTES)));
typedef int64_t I64 __attribute__((vector_size(BYTES)));

static double ghz;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define OPAQUE(x) __asm__ volatile("" : "+r"(x))
#if defined(__x86_64__) || defined(__i386__)
#define KEEP(v) __asm__ volatile("" : "+x"(v))
#elif defined(__aarch64__)
#define KEEP(v) __asm__ volatile("" : "+w"(v))
#else
#define KEEP(v) __asm__ volatile("" : "+m"(v))
#endif

/* Cycles of one round, the least of several trials. */
#define CYCLES(result, setup, body)                                                            \
	do {                                                                                   \
		double best = 1e30;                                                            \
		for (int trial = 0; trial < 15; trial++) {                                     \
			setup;                                                                 \
			double start = now();                                                  \
			for (int64_t k = 0; k < 20000; k++) {                                  \
				body;                                                          \
			}                                                                      \
			double t = (now() - start) * 1e9 * ghz / 20000;                        \
			best = t < best ? t : best;                                            \
		}                                                                              \
		(result) = best;                                                               \
	} while (0)

typedef struct {
	double issue, latency;
} Rate;

#define EACH(X) X(a) X(b) X(c) X(d) X(e) X(f) X(g) X(h) X(i) X(j)
enum { INDEPENDENT = 10, CHAINED = 4 };
#define DECLARE(v) v = w,
#define KEEP_ONE(v) KEEP(v);
/* op: x becomes an operation on itself and w */
#define MEASURE(T, name, op)                                                                   \
	static Rate name(void)                                                                 \
	{                                                                                      \
		double many, one;                                                              \
		T w;                                                                           \
		for (size_t l = 0; l < sizeof w / sizeof w[0]; l++)                            \
			w[l] = 3;                                                              \
		KEEP(w);                                                                       \
		T EACH(DECLARE) x = w;                                                         \
		EACH(KEEP_ONE)                                                                 \
		CYCLES(many, , EACH(op) EACH(KEEP_ONE));                                       \
		CYCLES(one, , op(x) KEEP(x); op(x) KEEP(x); op(x) KEEP(x); op(x) KEEP(x));     \
		return (Rate){INDEPENDENT / many, one / CHAINED};                              \
	}
#define ADD(x) x = x + w;
#define MUL(x) x = x * w;
#define DIV(x) x = x / w;
#define AND_ADD(x) x = (x & w) + w;
#define FMA(x) x = x * w + w;
#define CONVERT4(x) x = __builtin_convertvector(__builtin_convertvector(x, I32), F32);
#define CONVERT8(x) x = __builtin_convertvector(__builtin_convertvector(x, I64), F64);

MEASURE(F32, add4, ADD)
MEASURE(F64, add8, ADD)
MEASURE(F32, mul4, MUL)
MEASURE(F64, mul8, MUL)
MEASURE(F32, div4, DIV)
MEASURE(F64, div8, DIV)
MEASURE(I32, simple4, AND_ADD)
MEASURE(I64, simple8, AND_ADD)
MEASURE(I32, int_mul4, MUL)
MEASURE(I64, int_mul8, MUL)
MEASURE(F32, convert4, CONVERT4)
#ifdef __AVX512DQ__
MEASURE(F64, convert8, CONVERT8)
#endif
#if defined(__FMA__) || defined(__aarch64__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")
MEASURE(F32, fma4, FMA)
MEASURE(F64, fma8, FMA)
#pragma GCC pop_options
#define HAS_FMA 1
#endif


static double clock_rate(void)
{
	double best = 0;
	for (int trial = 0; trial < 20; trial++) {
		uint64_t x = 1;
		double start = now();
		for (int64_t k = 0; k < 100000; k++) {
			x += 3; OPAQUE(x); x += 3; OPAQUE(x); x += 3; OPAQUE(x); x += 3; OPAQUE(x);
			x += 3; OPAQUE(x); x += 3; OPAQUE(x); x += 3; OPAQUE(x); x += 3; OPAQUE(x);
		}
		double rate = 800000 / (now() - start) * 1e-9;
		best = rate > best ? rate : best;
	}
	return best;
}

/* Bytes a cycle that are read of a block again and again. */
static double bandwidth(char *block, size_t bytes)
{
	double best = 0;
	size_t rounds = bytes < 1 << 20 ? (8 << 20) / bytes : 2;
	for (int trial = 0; trial < 6; trial++) {
		F32 a = {0}, b = a, c = a, d = a;
		double start = now();
		for (size_t r = 0; r < rounds; r++)
			for (size_t k = 0; k + 4 * BYTES <= bytes; k += 4 * BYTES) {
				a += *(F32 *)(block + k);
				b += *(F32 *)(block + k + BYTES);
				c += *(F32 *)(block + k + 2 * BYTES);
				d += *(F32 *)(block + k + 3 * BYTES);
				KEEP(a);
			}
		a += b + c + d;
		KEEP(a);
		double rate = (double)(rounds * bytes) / ((now() - start) * 1e9 * ghz);
		best = rate > best ? rate : best;
	}
	return best;
}

enum { PAGE = 4096 };

/* Seconds of updating two thirds of a block by the last one, by vectors of that type. Each begins a
 * page, as large tensors do. */
#define UPDATE(T, name)                                                                        \
	static double name(char *block, size_t bytes)                                          \
	{                                                                                      \
		size_t third = bytes / 3 / PAGE * PAGE;                                        \
		T half = (T){0} + 0.5f;                                                        \
		double start = now();                                                          \
		for (size_t k = 0; k < third; k += sizeof(T)) {                                \
			T *p = (T *)(block + k), *v = (T *)(block + third + k);                \
			T x = *v * half + *(T *)(block + 2 * third + k), y = *p - x;           \
			KEEP(x);                                                               \
			KEEP(y);                                                               \
			*v = x;                                                                \
			*p = y;                                                                \
		}                                                                              \
		return now() - start;                                                          \
	}
typedef float Half __attribute__((vector_size(BYTES / 2)));
UPDATE(F32, update_whole)
UPDATE(Half, update_half)

/* The width by which memory is updated fastest, 0: of a register. Half a register has to be clearly
 * faster. */
static int stream_bytes(char *block, size_t bytes)
{
	double whole = 1e30, half = 1e30;
	for (int trial = 0; trial < 20; trial++) {
		double a = update_whole(block, bytes), b = update_half(block, bytes);
		whole = a < whole ? a : whole;
		half = b < half ? b : half;
	}
	return BYTES > 16 && half < 0.97 * whole ? BYTES / 2 : 0;
}

static double gather_rate(char *block)
{
	enum { N = 4096 };
	static int32_t at[N];
	const float *p = (const float *)block;
	for (int k = 0; k < N; k++)
		at[k] = (k * 1237) % N;
	double cycles;
	CYCLES(
		cycles, , const int32_t *q = at + (k & 255) * 16; for (int j = 0; j < 16; j++) {
			float x = p[q[j]];
			KEEP(x);
		});
	return 16 / cycles;
}

static long cache(int name)
{
	long n = sysconf(name);
	return n > 0 ? n : 0;
}

static long smaller(long a, long b)
{
	return a < b ? a : b;
}

/* ---- a branch that is predicted wrong ---- */

/* Cycles of a round of a loop whose branch goes as the bytes say. */
static double branch_round(const unsigned char *taken, int n)
{
	double least = 1e30;
	unsigned counter = 0;
	for (int k = 0; k < 20; k++) {
		double start = now();
		for (int i = 0; i < n; i++)
			if (taken[i])
				__asm__ volatile("" : "+r"(counter)); /* a jump, no selection */
		double cycles = (now() - start) * 1e9 * ghz / n;
		least = cycles < least ? cycles : least;
	}
	return least;
}

/* Half of the branches that go at random are predicted wrong. */
static double branch_cycles(void)
{
	enum { N = 1 << 16 };
	static unsigned char none[N], random[N];
	unsigned x = 1;
	for (int i = 0; i < N; i++) {
		x = x * 1664525u + 1013904223u;
		random[i] = x >> 31;
	}
	double cycles = 2 * (branch_round(random, N) - branch_round(none, N));
	return cycles < 1 ? 1 : cycles > 1000 ? 1000 : cycles;
}

/* ---- a phase ---- */

static pthread_barrier_t barrier;

static void *wait_rounds(void *arg)
{
	(void)arg;
	for (int k = 0; k < 2000; k++)
		pthread_barrier_wait(&barrier);
	return NULL;
}

static double phase_cycles(void)
{
	pthread_t other;
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2 || pthread_barrier_init(&barrier, NULL, 2) ||
	    pthread_create(&other, NULL, wait_rounds, NULL))
		return 4000;
	double start = now();
	wait_rounds(NULL);
	double cycles = (now() - start) * 1e9 * ghz / 2000;
	pthread_join(other, NULL);
	return cycles < 1000 ? 1000 : cycles > 20000 ? 20000 : cycles;
}

/* ---- */

static void print_rate(const char *name, Rate a, Rate b)
{
	printf(" \"%s\": [%.2f, %.1f, %.2f, %.1f],\n", name, a.issue, a.latency, b.issue,
	       b.latency);
}

int main(int argc, char **argv)
{
	/* whose share of L3 is whose, it does not say */
	long l1 = cache(_SC_LEVEL1_DCACHE_SIZE), l2 = cache(_SC_LEVEL2_CACHE_SIZE);
	size_t big = 256u << 20;
	char *block = aligned_alloc(64, big);
	if (argc != 2 || !block ||
	    strspn(argv[1], "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(argv[1]))
		return 2;
	memset(block, 1, big);
	ghz = clock_rate();
	printf("{\"base\": \"%s\", \"name\": \"measured\", \"ghz\": %.2f,\n", argv[1], ghz);
	Rate add = add4();
	Rate simple = simple4(), simple_wide = simple8(); /* two operations */
	/* units are narrower than the registers where a vector takes two turns; rates are of
	 * vectors of unit_bytes */
	int turns = BYTES == 64 && add.issue < 1.3 ? 2 : 1;
#define RATE(name, a, b)                                                                           \
	do {                                                                                       \
		Rate x = (a), y = (b);                                                             \
		x.issue *= turns;                                                                  \
		y.issue *= turns;                                                                  \
		print_rate(name, x, y);                                                            \
	} while (0)
	printf(" \"unit_bytes\": %d,\n", BYTES / turns);
	RATE("add", add, add8());
	RATE("mul", mul4(), mul8());
	RATE("div", div4(), div8());
#ifdef HAS_FMA
	RATE("fma", fma4(), fma8());
#endif
	RATE("simple", ((Rate){2 * simple.issue, simple.latency / 2}),
	     ((Rate){2 * simple_wide.issue, simple_wide.latency / 2}));
	RATE("int_mul", int_mul4(), int_mul8());
	Rate convert = convert4(); /* there and back */
	convert = (Rate){2 * convert.issue, convert.latency / 2};
#ifdef __AVX512DQ__
	Rate wide = convert8();
	RATE("convert", convert, ((Rate){2 * wide.issue, wide.latency / 2}));
#else
	RATE("convert", convert, convert);
#endif
	double gather = gather_rate(block);
	print_rate("gather", (Rate){gather, 12}, (Rate){gather, 12});
	double from_l1 = bandwidth(block, 16 << 10);
	double load = from_l1 / BYTES * turns;
	print_rate("load", (Rate){load, 7}, (Rate){load, 7});
	if (l1 && l2)
		printf(" \"l1\": %ld, \"l2\": %ld,\n", l1, l2);
	long line = cache(_SC_LEVEL1_DCACHE_LINESIZE),
	     ways = smaller(cache(_SC_LEVEL1_DCACHE_ASSOC), cache(_SC_LEVEL2_CACHE_ASSOC));
	if (line && ways)
		printf(" \"line\": %ld, \"ways\": %ld,\n", line, ways);
	printf(" \"l1_bytes\": %.1f, \"l2_bytes\": %.1f, \"l3_bytes\": %.1f, \"memory_bytes\": "
	       "%.2f,\n",
	       from_l1, bandwidth(block, (size_t)(l2 ? l2 / 2 : 256 << 10)),
	       bandwidth(block, (size_t)(l2 ? l2 * 2 : 2 << 20)), bandwidth(block, big));
	printf(" \"stream_bytes\": %d,\n", stream_bytes(block, big));
	printf(" \"branch\": %.0f, \"phase\": %.0f}\n", branch_cycles(), phase_cycles());
	free(block);
	return 0;
}
