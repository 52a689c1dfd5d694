/* GPUs: limits and rates by which kernels for blocks of threads are planned. Blocks run on
 * multiprocessors, in any order and at the same time; the threads of a block have shared memory and
 * barriers in common, and 32 consecutive ones are a warp: on AMD's GPUs half of a wavefront. */
#ifndef WEFT_IR_GPU_H
#define WEFT_IR_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/target/machine.h"

/* From which size on the products of a dtype are given to the vendor's library. */
typedef struct {
	const char *dtype;  /* of both operands, "f32" */
	uint32_t m, n, k;   /* rows, columns, summed steps: each at least so many */
} GpuLibrary;

typedef struct Gpu {
	const char *name;        /* "cuda-sm_90" */
	const char *arch;        /* the architecture for compilers, "sm_90", "gfx90a"; NULL: only
	                            the interpreter of loop IR executes the code */
	bool hip;                /* kernels are printed as HIP, for a GPU of AMD, and compiled by
	                            others; else CUDA C */
	const char *device;      /* the device that these numbers are of */
	uint32_t multiprocessors;
	uint32_t threads;        /* of a block, where a schedule has no reason for another number */
	uint32_t warps, blocks;  /* the most that are resident on a multiprocessor */
	uint32_t shared, shared_all; /* bytes of shared memory: the most of a block; of a
	                                multiprocessor */
	uint32_t l2;             /* bytes */
	float ghz;
	float memory;            /* bytes per second that are read or written, in 1e9 */
	float f32;               /* operations per second, in 1e12: two for a multiply-add */
	float f16;               /* the same of the units that multiply tiles of f16 and bf16, which
	                            libraries use */
	const GpuLibrary *library; /* where the library is faster than generated kernels:
	                              estimated, not measured; NULL: there is no library */
	uint32_t nlibrary;
} Gpu;

/* What a kernel is estimated to take, in nanoseconds. `all` is what passes: the other parts but for
 * `library` go on at the same time. */
typedef struct {
	double all;
	double start;   /* until the GPU begins a launch, all phases together */
	double memory;  /* bytes are moved from and to memory */
	double units;   /* threads compute */
	double waits;   /* threads wait for memory, one access after the other */
	double library; /* a contraction: by the vendor's library, its start included; 0: the kernel
	                   is none */
} GpuTime;

/* Returns GPU k of the table, or NULL after the last. */
const Gpu *gpu_at(uint32_t k);
/* Returns the GPU of that name, or NULL. */
const Gpu *gpu_find(const char *name);
/* Returns the number of warps that are resident on a multiprocessor of a GPU of NVIDIA, if each
 * block has that many threads (more than 0) and bytes of shared memory, and each thread that many
 * registers; at most Gpu.warps, and 0 if no such block fits. */
uint32_t gpu_resident(const Gpu *, uint32_t threads, uint32_t registers, uint32_t shared);
/* Returns the whole GPU as one machine: its rates are those of all multiprocessors together. So the
 * costs that lowering compares (target_cycles) are times of a launch that fills the GPU. */
Machine gpu_machine(const Gpu *);
/* Returns a machine for schedules whose tasks become threads: rates are those of one thread.
 * Machine.threads is half of the threads that the GPU can hold, because schedules ask for two tasks
 * for each (tuning_tasks). */
Machine gpu_thread_machine(const Gpu *);

#endif
