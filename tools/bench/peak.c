#include "tools/bench/peak.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

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

/* The caches of one level that the processors have. */
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

/* Where the system does not say: more than most have, so that no share is too high. */
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

enum { LEAST_MEMORY = 64 << 20, MOST_MEMORY = 512 << 20 };

/* What each thread reads: together twice what the caches hold. */
static size_t memory_bytes(double cache, int threads)
{
	double each = 2 * cache / threads;
	each = each < LEAST_MEMORY ? LEAST_MEMORY : each > MOST_MEMORY ? MOST_MEMORY : each;
	return (size_t)each / 4096 * 4096;
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

typedef struct {
	pthread_barrier_t *gate;
	double flops, bytes; /* per second */
	size_t memory;       /* to read */
	float sink;
} Thread;

static void *measure(void *arg)
{
	Thread *t = arg;
	Four *memory = aligned_alloc(64, t->memory);
	double start;
	if (memory)
		memset(memory, 1, t->memory);
	fma_best(&t->sink);
	for (int k = 0; k < 5; k++) {
		pthread_barrier_wait(t->gate);
		start = now();
		double rate = 0;
		for (int i = 0; i < 4; i++)
			rate += fma_best(&t->sink);
		rate /= now() - start;
		t->flops = rate > t->flops ? rate : t->flops;
		pthread_barrier_wait(t->gate);
		start = now();
		rate = memory ? read_memory(memory, t->memory, &t->sink) / (now() - start) : 0;
		t->bytes = rate > t->bytes ? rate : t->bytes;
	}
	free(memory);
	return NULL;
}

Peak peak_measure(int threads)
{
	pthread_t id[MAX_THREADS];
	Thread t[MAX_THREADS] = {0};
	pthread_barrier_t gate;
	Peak p = {0};
	int n = threads < 1 ? 1 : threads > MAX_THREADS ? MAX_THREADS : threads;
	p.cache = cache_bytes(n);
	pthread_barrier_init(&gate, NULL, (unsigned)n);
	for (int k = 0; k < n; k++) {
		t[k].gate = &gate;
		t[k].memory = memory_bytes(p.cache, n);
		if (k && pthread_create(&id[k], NULL, measure, &t[k]))
			exit(fail("cannot start a thread"));
	}
	measure(&t[0]);
	for (int k = 0; k < n; k++) {
		if (k)
			pthread_join(id[k], NULL);
		p.flops += t[k].flops;
		p.bytes += t[k].bytes;
	}
	pthread_barrier_destroy(&gate);
	return p;
}
