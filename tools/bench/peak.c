#include "tools/bench/peak.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "tools/tool.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { CHAINS = 12, ROUNDS = 200000, MAX_THREADS = 64 };

/* CHAINS independent chains of multiply-adds keep every unit busy. Returns the operations done. */
#define CHAIN_LOOP(T, SET, FMA, LANES)                                                             \
	T x[CHAINS], a = SET(0.999f), b = SET(0.001f);                                             \
	for (int k = 0; k < CHAINS; k++)                                                           \
		x[k] = SET((float)k);                                                              \
	for (long i = 0; i < ROUNDS; i++) {                                                        \
		_Pragma("GCC unroll 12") for (int k = 0; k < CHAINS; k++) x[k] = FMA(x[k], a, b);  \
	}                                                                                          \
	for (int k = 1; k < CHAINS; k++)                                                           \
		x[0] = FMA(x[k], a, x[0]);                                                         \
	memcpy(sink, &x[0], sizeof *sink);                                                         \
	return 2.0 * CHAINS * ROUNDS * LANES

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static double fma_512(float *sink)
{
	CHAIN_LOOP(__m512, _mm512_set1_ps, _mm512_fmadd_ps, 16);
}

__attribute__((target("avx2,fma"))) static double fma_256(float *sink)
{
	CHAIN_LOOP(__m256, _mm256_set1_ps, _mm256_fmadd_ps, 8);
}
#endif

typedef float Four __attribute__((vector_size(16)));

static Four four_set(float v)
{
	return (Four){v, v, v, v};
}

static Four four_fma(Four a, Four b, Four c)
{
	return a * b + c;
}

static double fma_128(float *sink)
{
	CHAIN_LOOP(Four, four_set, four_fma, 4);
}

static double fma_best(float *sink)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx512f"))
		return fma_512(sink);
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return fma_256(sink);
#endif
	return fma_128(sink);
}

/* ---- caches ---- */

/* A number in a file of one cache of a processor, with its unit; -1: no such cache. */
static long long cache_field(int cpu, int index, const char *field)
{
	char path[128], unit = 0;
	long long v;
	snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/%s", cpu, index,
		 field);
	FILE *f = fopen(path, "r");
	int n = f ? fscanf(f, "%lld%c", &v, &unit) : 0;
	if (f)
		fclose(f);
	return n < 1 ? -1 : unit == 'K' ? v << 10 : unit == 'M' ? v << 20 : v;
}

/* Returns the number of caches of one level that the processors have. */
static int cache_count(int index)
{
	int n = 0;
	for (int cpu = 0; cpu < 4096; cpu++) {
		long long id = cache_field(cpu, index, "id");
		if (id < 0 && !cpu)
			return MAX_THREADS; /* not said: each has its own */
		if (id < 0)
			break;
		n = id >= n ? (int)id + 1 : n;
	}
	return n;
}

/* Returns the bytes of all caches; where the system does not say, more than most have, so that
 * no share is too high. */
static double cache_bytes(int threads)
{
	double sum = 0;
	for (int index = 0; cache_field(0, index, "size") >= 0; index++) {
		int n = cache_count(index);
		sum += (double)cache_field(0, index, "size") * (n < threads ? n : threads);
	}
	return sum > 0 ? sum : 64 << 20;
}

/* ---- memory ---- */

enum { HUGE_PAGE = 2 << 20, PIECE = 4 << 20, LEAST_MEMORY = 64 << 20, MOST_MEMORY = 512 << 20 };

/* Returns how much each thread reads: together twice what the caches hold. */
static size_t memory_bytes(double cache, int threads)
{
	double each = 2 * cache / threads;
	each = each < LEAST_MEMORY ? LEAST_MEMORY : each > MOST_MEMORY ? MOST_MEMORY : each;
	return (size_t)each / PIECE * PIECE;
}

static double read_memory(const Four *p, size_t bytes, float *sink)
{
	Four s0 = four_set(0), s1 = s0, s2 = s0, s3 = s0;
	for (size_t i = 0; i < bytes / sizeof *p; i += 4) {
		s0 += p[i];
		s1 += p[i + 1];
		s2 += p[i + 2];
		s3 += p[i + 3];
	}
	s0 += s1 + s2 + s3;
	*sink += s0[0] + s0[1] + s0[2] + s0[3];
	return (double)bytes;
}

/* ---- windows ---- */

enum { LOOPS = 2 };

typedef struct Burst Burst;

/* A window is about a millisecond, shorter than what a busy system gives a thread at once: of
 * several, some are undisturbed. One thread, and what it did in the window at hand: */
typedef struct {
	Burst *of;
	double start, end, cpu, work;
	float sink;
} Worker;

struct Burst {
	pthread_barrier_t gate;
	_Atomic int began; /* threads that passed the gate, in all windows */
	Peak *peak;
	int n, windows; /* threads; windows */
	size_t memory;  /* of each, of which a window reads a PIECE, the next one in each window;
			   0: a window is LOOPS of multiply-adds */
	Worker worker[MAX_THREADS];
};

static double thread_time(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double do_window(const Burst *b, int window, const Four *memory, float *sink)
{
	const size_t pieces = b->memory / PIECE, each = PIECE / sizeof *memory;
	double work = 0;
	if (b->memory)
		return memory ? read_memory(memory + (size_t)window % pieces * each, PIECE, sink)
			      : 0;
	for (int k = 0; k < LOOPS; k++)
		work += fma_best(sink);
	return work;
}

/* Counts the work of all threads together, from the first that begins to the last that ends: one
 * that waits for a processor holds up the window. */
static void count_window(const Burst *b)
{
	double start = INFINITY, end = 0, work = 0,
	       *rate = b->memory ? &b->peak->bytes : &b->peak->flops;
	for (int k = 0; k < b->n; k++) {
		const Worker *w = &b->worker[k];
		start = fmin(start, w->start);
		end = fmax(end, w->end);
		work += w->work;
		b->peak->cpu += w->cpu;
	}
	b->peak->wall += b->n * (end - start);
	*rate = fmax(*rate, work / (end - start));
}

/* Makes threads that wake up at different times begin together. */
static void begin(Burst *b, int window)
{
	pthread_barrier_wait(&b->gate);
	for (b->began++; b->began < (window + 1) * b->n;)
		sched_yield();
}

static void *work(void *arg)
{
	Worker *w = arg;
	Burst *b = w->of;
	Four *memory = b->memory ? aligned_alloc(HUGE_PAGE, b->memory) : NULL;
	if (memory) { /* with small pages the first writes take longer than all reads */
		madvise(memory, b->memory, MADV_HUGEPAGE);
		memset(memory, 1, b->memory);
	}
	for (int k = 0; k < b->windows; k++) {
		begin(b, k);
		const double cpu = thread_time();
		w->start = now();
		w->work = do_window(b, k, memory, &w->sink);
		w->end = now();
		w->cpu = thread_time() - cpu;
		pthread_barrier_wait(&b->gate);
		if (w == b->worker)
			count_window(b);
	}
	free(memory);
	return NULL;
}

static void burst(Peak *p, int threads, int windows, size_t memory)
{
	pthread_t id[MAX_THREADS];
	Burst *b = calloc(1, sizeof *b);
	if (!b)
		exit(fail("out of memory"));
	b->peak = p;
	b->n = threads;
	b->windows = windows;
	b->memory = memory;
	pthread_barrier_init(&b->gate, NULL, (unsigned)threads);
	for (int k = 0; k < threads; k++)
		b->worker[k].of = b;
	for (int k = 1; k < threads; k++)
		if (pthread_create(&id[k], NULL, work, &b->worker[k]))
			exit(fail("cannot start a thread"));
	work(&b->worker[0]);
	for (int k = 1; k < threads; k++)
		pthread_join(id[k], NULL);
	pthread_barrier_destroy(&b->gate);
	free(b);
}

static int bounded(int threads)
{
	return threads < 1 ? 1 : threads > MAX_THREADS ? MAX_THREADS : threads;
}

void peak_windows(Peak *p, int threads, int windows)
{
	burst(p, bounded(threads), windows, 0);
}

Peak peak_measure(int threads)
{
	enum { WINDOWS = 60, ROUNDS_OF_MEMORY = 2 };
	const int n = bounded(threads);
	Peak p = {.cache = cache_bytes(n)};
	const size_t memory = memory_bytes(p.cache, n);
	burst(&p, n, WINDOWS / 2, 0);
	burst(&p, n, ROUNDS_OF_MEMORY * (int)(memory / PIECE), memory);
	burst(&p, n, WINDOWS / 2, 0);
	return p;
}

void peak_join(Peak *p, const Peak *other)
{
	p->flops = fmax(p->flops, other->flops);
	p->bytes = fmax(p->bytes, other->bytes);
	p->wall += other->wall;
	p->cpu += other->cpu;
}
