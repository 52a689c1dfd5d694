/* Plans of kernels that blocks of threads execute (Target.gpu), and what they are predicted to
 * take.
 *
 * A block is a task of a phase. Threads of a block have consecutive numbers; 32 of them are a warp,
 * whose accesses are fast if they are to consecutive elements. So each plan first chooses the axis
 * along which neighbouring threads are neighbours. */
#ifndef WEFT_CODEGEN_PLAN_GPU_H
#define WEFT_CODEGEN_PLAN_GPU_H

#include "codegen/plan/axes.h"
#include "codegen/plan/generic.h"
#include "codegen/plan/sums.h"

/* ---- what a launch takes (cost.c) ---- */

/* The work of one launch. */
typedef struct {
	double blocks, threads; /* threads: of a block */
	double bytes;           /* from and to memory; what a warp moves and does not use counts */
	double operations;      /* on one element */
	double flight;          /* bytes of loads that a thread begins before it waits */
	double rounds;          /* how often a thread waits for memory, one time after the other */
	double shared;          /* bytes of shared memory of a block */
} GpuWork;

/* Returns the cycles of the GPU that the launch takes, its beginning included. Memory is as fast as
 * the loads in flight allow; operations are as fast as the threads that are there. */
double gpu_cycles(const Gpu *, const GpuWork *);
/* Operations on one element of evaluating x once at a point, functions included. */
double gpu_operations(const Nest *, Kx x);
/* Bytes that a warp moves for each element of an access, if neighbouring threads are neighbours
 * along the axis (NO_AXIS: nobody is): the element's, or those of the sectors that it lies in. */
double gpu_bytes_each(const Nest *, Sym offset, uint32_t axis, uint32_t size);

/* ---- points: every kernel without axes inside of its points (points.c) ---- */

enum {
	GPU_WIDE = 4,   /* the most elements of one access */
	GPU_EACH = 4,   /* the most accesses of a thread */
	GPU_TILE = 32,  /* the side of a tile */
	GPU_TILE_ROWS = 8, /* rows of a tile that the threads of a block have at a time */
	GPU_TURNED = 4  /* the most loads that are turned */
};

/* Threads take consecutive elements along `fast`; `wide` elements each, `each` times.
 *
 * turned: loads that are contiguous along another axis, `across`, go through tiles in shared
 * memory: threads read a tile along that axis, and after a barrier each reads its element of the
 * tile. A block has a tile of GPU_TILE by GPU_TILE points. */
typedef struct GpuPointsPlan {
	const Nest *nest;
	uint32_t order[MAX_AXES], n; /* the axes of the points, slowest first, without `across` */
	uint32_t fast;               /* the last of them; NO_AXIS: there is one point */
	uint32_t threads, wide, each;
	const Kx *vector;            /* loads that move `wide` elements in one access, */
	uint32_t nvector;            /* as all stores do if wide > 1 */
	Turned turned;
	Sym chunks;                  /* of `wide` points, all together; with tiles: tiles */
	Sym nblock;
	KernelCost cost;
} GpuPointsPlan;

/* Plans, and prints plans. */
PlanFn plan_gpu_points, plan_gpu_threads;
PrintFn print_gpu_points, print_gpu_threads;

#endif
