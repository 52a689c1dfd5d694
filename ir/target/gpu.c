#include "ir/target/gpu.h"

#include <string.h>

enum { KB = 1 << 10, MB = 1 << 20 };

/* Where cuBLASLt is faster. Estimated: generated kernels reach 0.8 of the units that multiply f32,
 * and do not use those for f16 and bf16, which are 15 times as fast. scripts/gpu_check.py measures
 * (--crossovers). */
static const GpuLibrary cublas[] = {
	{"f32", 256, 256, 128}, {"f16", 16, 64, 64}, {"bf16", 16, 64, 64}};
/* For tests. */
static const GpuLibrary cublas_model[] = {
	{"f32", 32, 48, 40}, {"f16", 16, 32, 32}, {"bf16", 16, 32, 32}};
#define LIBRARY(rows) .library = rows, .nlibrary = sizeof rows / sizeof *rows

/* Limits: NVIDIA's cuda_occupancy.h and programming guide; AMD's CDNA 2 white paper. Rates: data
 * sheets and white papers of the devices, boost clock, dense; not measured here. */
static const Gpu table[] = {
	{
		/* No device: the least that schedules may count on, so that shapes that need more
		 * are met by tests. */
		.name = "gpu-model", .device = "none", .multiprocessors = 16, .threads = 128, .warps = 32, .blocks = 16,
		.shared = 48 * KB, .shared_all = 48 * KB, .l2 = 4 * MB, .ghz = 1, .memory = 500, .f32 = 4, .f16 = 16, LIBRARY(cublas_model),
	}, {
		.name = "cuda-sm_80", .arch = "sm_80", .device = "A100 80 GB", .multiprocessors = 108, .threads = 256, .warps = 64, .blocks = 32,
		.shared = 163 * KB, .shared_all = 164 * KB, .l2 = 40 * MB, .ghz = 1.41f, .memory = 2039, .f32 = 19.5f, .f16 = 312, LIBRARY(cublas),
	}, {
		.name = "cuda-sm_86", .arch = "sm_86", .device = "RTX 3090", .multiprocessors = 82, .threads = 256, .warps = 48, .blocks = 16,
		.shared = 99 * KB, .shared_all = 100 * KB, .l2 = 6 * MB, .ghz = 1.7f, .memory = 936, .f32 = 35.6f, .f16 = 71, LIBRARY(cublas),
	}, {
		.name = "cuda-sm_89", .arch = "sm_89", .device = "RTX 4090", .multiprocessors = 128, .threads = 256, .warps = 48, .blocks = 24,
		.shared = 99 * KB, .shared_all = 100 * KB, .l2 = 72 * MB, .ghz = 2.52f, .memory = 1008, .f32 = 82.6f, .f16 = 165, LIBRARY(cublas),
	}, {
		.name = "cuda-sm_90", .arch = "sm_90", .device = "H100 SXM", .multiprocessors = 132, .threads = 256, .warps = 64, .blocks = 32,
		.shared = 227 * KB, .shared_all = 228 * KB, .l2 = 50 * MB, .ghz = 1.98f, .memory = 3350, .f32 = 66.9f, .f16 = 989, LIBRARY(cublas),
	}, {
		.name = "cuda-sm_100", .arch = "sm_100", .device = "B200", .multiprocessors = 148, .threads = 256, .warps = 64, .blocks = 32,
		.shared = 227 * KB, .shared_all = 228 * KB, .l2 = 126 * MB, .ghz = 1.97f, .memory = 7700, .f32 = 75, .f16 = 2250, LIBRARY(cublas),
	}, {
		.name = "cuda-sm_120", .arch = "sm_120", .device = "RTX 5090", .multiprocessors = 170, .threads = 256, .warps = 48, .blocks = 24,
		.shared = 99 * KB, .shared_all = 100 * KB, .l2 = 96 * MB, .ghz = 2.41f, .memory = 1792, .f32 = 105, .f16 = 210, LIBRARY(cublas),
	}, {
		/* A die is a device. 32 wavefronts of 64 threads, 64 KB of shared memory in all. */
		.name = "hip-gfx90a", .arch = "gfx90a", .hip = true, .device = "MI250X, one of two dies", .multiprocessors = 110, .threads = 256,
		.warps = 64, .blocks = 32, .shared = 64 * KB, .shared_all = 64 * KB, .l2 = 8 * MB, .ghz = 1.7f, .memory = 1638, .f32 = 23.9f, .f16 = 191.5f,
	},
};

const Gpu *gpu_at(uint32_t k)
{
	return k < sizeof table / sizeof *table ? &table[k] : NULL;
}

const Gpu *gpu_find(const char *name)
{
	for (uint32_t k = 0; gpu_at(k); k++)
		if (!strcmp(table[k].name, name))
			return &table[k];
	return NULL;
}

/* Returns how many warps are resident, as cuda_occupancy.h counts: registers are given to warps
 * in units of 256, shared memory to blocks in units of 128 bytes, beside 1 KB that the system
 * has. */
uint32_t gpu_resident(const Gpu *g, uint32_t threads, uint32_t registers, uint32_t shared)
{
	enum { REGISTERS = 65536, UNIT = 256, SHARED_UNIT = 128, SYSTEM = 1024 };
	const uint32_t warps = (threads + 31) / 32,
		       of_warp = (32 * registers + UNIT - 1) / UNIT * UNIT;
	const uint32_t of_block = (shared + SYSTEM + SHARED_UNIT - 1) / SHARED_UNIT * SHARED_UNIT;
	uint32_t n = g->blocks < g->warps / warps ? g->blocks : g->warps / warps;
	if (of_warp && REGISTERS / of_warp / warps < n)
		n = REGISTERS / of_warp / warps;
	if (g->shared_all / of_block < n)
		n = g->shared_all / of_block;
	return n * warps;
}

#define SAME(issue, latency) {{issue, latency}, {issue, latency}}

/* Makes a machine of the GPU. Latencies are those of a thread; a barrier between launches takes
 * about 3 microseconds. */
Machine gpu_machine(const Gpu *g)
{
	const float lanes = g->f32 * 1000 / (2 * g->ghz), memory = g->memory / g->ghz;
	Machine m = {
		.name = g->name,
		.family = "gpu",
		.unit_bytes = 8,
		.rate =
			{
				[MOP_add] = SAME(lanes, 4),
				[MOP_mul] = SAME(lanes, 4),
				[MOP_fma] = SAME(lanes, 4),
				[MOP_div] = SAME(lanes / 16, 30),
				[MOP_sqrt] = SAME(lanes / 16, 30),
				[MOP_simple] = SAME(lanes, 4),
				[MOP_int_mul] = SAME(lanes / 2, 5),
				[MOP_convert] = SAME(lanes / 4, 6),
				[MOP_shuffle] = SAME(lanes / 4, 23),
				[MOP_load] = SAME(lanes / 4, 30),
				[MOP_store] = SAME(lanes / 4, 4),
				[MOP_gather] = SAME(lanes / 4, 30),
				[MOP_scalar] = SAME(lanes, 4),
			},
		.l1 = g->shared_all,
		.l2 = g->l2,
		.line = 128,
		.ways = 4,
		.l1_bytes = lanes,
		.l2_bytes = 2 * memory,
		.l3_bytes = memory,
		.memory_bytes = memory,
		.ghz = g->ghz,
		.phase = (uint32_t)(3000 * g->ghz),
		.call = 0,
		.branch = 0,
		.code = 0,
		.threads = 1,
	};
	return m;
}

/* Makes a machine of one thread of a GPU, with a phase so short that parts of 64 elements pay. */
Machine gpu_thread_machine(const Gpu *g)
{
	Machine m = {
		.name = "gpu-thread",
		.family = "gpu",
		.unit_bytes = 8,
		.rate =
			{
				[MOP_add] = SAME(1, 4),
				[MOP_mul] = SAME(1, 4),
				[MOP_fma] = SAME(1, 4),
				[MOP_div] = SAME(0.06f, 30),
				[MOP_sqrt] = SAME(0.06f, 30),
				[MOP_simple] = SAME(1, 4),
				[MOP_int_mul] = SAME(0.5f, 5),
				[MOP_convert] = SAME(0.25f, 6),
				[MOP_shuffle] = SAME(0.25f, 23),
				[MOP_load] = SAME(0.25f, 30),
				[MOP_store] = SAME(0.25f, 4),
				[MOP_gather] = SAME(0.25f, 30),
				[MOP_scalar] = SAME(1, 4),
			},
		.l1 = 32 * KB,
		.l2 = 256 * KB,
		.line = 128,
		.ways = 4,
		.l1_bytes = 16,
		.l2_bytes = 8,
		.l3_bytes = 4,
		.memory_bytes = 4,
		.ghz = 1,
		.phase = 10,
		.call = 10,
		.branch = 20,
		.code = 0,
		.threads = g->multiprocessors * g->warps * 32 / 2,
	};
	return m;
}
