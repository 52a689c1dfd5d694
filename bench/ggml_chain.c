/* The products of bench/weight_only.py by ggml, the library of llama.cpp: chains of N products of
 * SIZE x SIZE with ROWS rows, one thread.
 *
 *   ggml_chain TYPE ROWS CHAIN SIZE SECONDS [repack|amx]      TYPE: f32, q8_0, q4_K, ...
 *
 * Prints the least time of a product in microseconds. repack, amx: weights lie in the buffer that
 * rearranges them for the processor, as llama.cpp takes it where there is one; fails if there is
 * none, or not for the type. Built beside
 * ggml:
 *   cc -O2 -I GGML/include bench/ggml_chain.c -o ggml_chain -L LIB -lggml -lggml-cpu -lggml-base */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml.h"

#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_CHAIN = 64 };

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static enum ggml_type type_of(const char *name)
{
	for (int k = 0; k < GGML_TYPE_COUNT; k++)
		if (ggml_type_name((enum ggml_type)k) &&
		    !strcasecmp(ggml_type_name((enum ggml_type)k), name))
			return (enum ggml_type)k;
	fprintf(stderr, "ggml has no type %s\n", name);
	exit(2);
}

/* The buffers of weights: those whose name contains `kind`; NULL: plain ones. */
static ggml_backend_buffer_type_t weights_in(const char *kind)
{
	ggml_backend_dev_t dev = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
	ggml_backend_dev_get_extra_bufts_t get =
		(ggml_backend_dev_get_extra_bufts_t)ggml_backend_reg_get_proc_address(
			ggml_backend_dev_backend_reg(dev), "ggml_backend_dev_get_extra_bufts");
	ggml_backend_buffer_type_t *extra = get ? get(dev) : NULL;
	for (; kind && extra && *extra; extra++)
		if (strcasestr(ggml_backend_buft_name(*extra), kind))
			return *extra;
	if (!kind)
		return ggml_backend_cpu_buffer_type();
	fprintf(stderr, "ggml has no buffers %s\n", kind);
	exit(2);
}

static void fill(struct ggml_tensor *w, enum ggml_type type, int64_t size, unsigned *seed)
{
	float *x = malloc((size_t)(size * size) * sizeof *x);
	void *q = malloc(ggml_nbytes(w));
	for (int64_t k = 0; k < size * size; k++)
		x[k] = (float)((*seed = *seed * 1664525 + 1013904223) >> 8) / (float)(1 << 28) -
		       0.03f;
	if (type == GGML_TYPE_F32)
		ggml_backend_tensor_set(w, x, 0, ggml_nbytes(w));
	else {
		ggml_quantize_chunk(type, x, q, 0, size, size, NULL);
		ggml_backend_tensor_set(w, q, 0, ggml_nbytes(w));
	}
	free(x);
	free(q);
}

int main(int argc, char **argv)
{
	if (argc < 6)
		return 2;
	enum { REQUEST_PERMISSION = 0x1023, TILES = 18 };
	syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILES);
	const enum ggml_type type = type_of(argv[1]);
	const int64_t rows = atoi(argv[2]), chain = atoi(argv[3]), size = atoi(argv[4]);
	const double seconds = atof(argv[5]);
	struct ggml_init_params params = {(size_t)1 << 20, NULL, true};
	struct ggml_context *weights = ggml_init(params), *rest = ggml_init(params);
	struct ggml_tensor *w[MOST_CHAIN], *x = ggml_new_tensor_2d(rest, GGML_TYPE_F32, size, rows),
					   *y = x;
	struct ggml_cgraph *g = ggml_new_graph(rest);
	if (chain > MOST_CHAIN)
		return 2;
	for (int64_t k = 0; k < chain; k++) {
		w[k] = ggml_new_tensor_2d(weights, type, size, size);
		y = ggml_mul_mat(rest, w[k], y);
	}
	ggml_build_forward_expand(g, y);
	ggml_backend_t cpu = ggml_backend_cpu_init();
	ggml_backend_cpu_set_n_threads(cpu, 1);
	ggml_backend_alloc_ctx_tensors_from_buft(weights, weights_in(argc > 6 ? argv[6] : NULL));
	ggml_backend_alloc_ctx_tensors(rest, cpu);
	unsigned seed = 1;
	for (int64_t k = 0; k < chain; k++)
		fill(w[k], type, size, &seed);
	for (int64_t k = 0; k < rows * size; k++)
		ggml_backend_tensor_set(x, &(float){1}, (size_t)k * sizeof(float), sizeof(float));
	ggml_backend_graph_compute(cpu, g);
	double least = 1e9;
	for (double begin, end = now() + seconds; (begin = now()) < end;) {
		ggml_backend_graph_compute(cpu, g);
		const double t = now() - begin;
		least = t < least ? t : least;
	}
	printf("%s %lld rows, chain of %lld, %s: %.1f us\n", argv[1], (long long)rows,
	       (long long)chain, argc > 6 ? argv[6] : "plain", least * 1e6 / (double)chain);
	return 0;
}
