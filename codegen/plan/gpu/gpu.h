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

/* Returns what the launch takes. Memory is as fast as the loads in flight allow; operations are as
 * fast as the threads that are there. */
GpuTime gpu_time(const Gpu *, const GpuWork *);
enum { GPU_START = 3000 }; /* GpuTime.start of a launch */
/* Adds a second phase and further ones, which begin and do little more, until there are so many. */
void gpu_time_phases(GpuTime *, uint32_t phases);
/* Sets the predictions of a plan. */
void gpu_plan_time(Plan *, const Gpu *, const GpuTime *here, const GpuTime *larger);
/* Returns the number of operations on one element of evaluating x once at a point: 0 if x is none.
 * A load, an index or its comparison with bounds, a constant, a read of a stage's result, a
 * conversion and a bitcast count 1, other functions as ScFn.cost says. Guards and `other` of loads
 * are parts of x, values of value variables in indices are not. A part counts once. */
double gpu_operations(const Nest *, Kx x);
/* Returns the bytes of a load for which warps move `touched` bytes: each element comes once from
 * memory, and counts by a part where it comes again, from the caches. */
double gpu_bytes_of_load(const PlanInput *, uint32_t load, double touched);
/* Returns how often a stage runs at an outer point: the product of the extents of its inner axes,
 * at in->at. */
double gpu_inside(const PlanInput *, const Stage *);
/* Returns the bytes that a warp moves for each element of `size` bytes of an access at hint sizes,
 * if neighbouring threads are neighbours along the axis (NO_AXIS: nobody is): the distance of two
 * neighbours' elements, at most those of a sector; size / WARP if all threads access one element;
 * those of a sector if that is not known. */
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

/* ---- rows: reductions, and what is computed of them along the same axis (rows.c) ---- */

enum {
	GPU_KEPT = 32,    /* the most elements of a row that a thread keeps in registers */
	GPU_TEAMS = 1024, /* the most threads of a row */
	GPU_REDUCES = 8   /* the most reductions of rows in parts */
};

/* The threads of a team share an outer point: each has every `team`-th element of the axis `along`,
 * and all of the inner axes around it. Then the results of the team are combined, by exchanges in a
 * warp, and through shared memory: a tree, so that two runs give the same bits.
 *
 * A block has `rows` teams. In a team of rows, threads have consecutive numbers: neighbours are
 * neighbours along the axis. With `columns` (consecutive points lie in memory side by side) they
 * are neighbouring points, and the threads of a team are `rows` apart.
 *
 * Elements are kept in registers from one stage to the next if a thread has at most GPU_KEPT of
 * them (`kept`), or what stages compute is in shared memory (`row_bytes`), or is computed again.
 *
 * parts: a point has several blocks, each with `per` elements of the axis. A phase ends with each
 * reduction: blocks leave their results in a temporary, and teams of later phases combine all of
 * them in order. */
typedef struct {
	uint32_t n;             /* elements that each thread has; 0: a loop */
	uint32_t wide;          /* neighbouring elements of a thread: n is a multiple, and each
	                           thread has every `team`-th such group. Above 1: stores along the
	                           axis move a group in one access, and so do */
	const Kx *vector;       /* these loads */
	uint32_t nvector;
} GpuKept;
typedef struct GpuRowsPlan {
	const Nest *nest;
	uint32_t order[MAX_AXES], n; /* the outer axes, slowest first */
	uint32_t along;
	bool columns;
	uint32_t team, rows;
	GpuKept kept;
	uint64_t row_bytes;     /* of shared memory for results along the axis; 0: none */
	int64_t per;            /* 0: a point has one block */
	Sym points, parts, nblock;
	uint32_t phases;
	const SumPlan *sums;    /* by stage: of the inner axes around `along`, then of that */
	KernelCost cost;
} GpuRowsPlan;

/* Whether elements of an access at `offset` that begin at multiples of `wide` along the axis lie
 * side by side, from a multiple of `wide` in memory on. */
bool gpu_is_aligned(const Nest *, Sym offset, uint32_t axis, int64_t wide);
/* Sets axis[], room for 2 * MAX_RANK + 1, to the inner axes of a stage but for `along`, then
 * `along`, also if the stage has not that axis. Returns their number. */
uint32_t gpu_rows_axes(const GpuRowsPlan *, const Stage *, uint32_t *axis);

/* Axes that are counted as one, slowest first. */
typedef struct {
	uint32_t n, axis[MAX_AXES];
} GpuAxes;

/* ---- pieces: stages that store at axes of their own, as those of a border do (pieces.c) ---- */

/* A thread has an outer point and a number. Of each stage it stores, at that point, the element
 * with that number, if there are so many. */
typedef struct GpuPiecesPlan {
	const Nest *nest;
	uint32_t order[MAX_AXES], n; /* the outer axes, slowest first */
	GpuAxes *own;                /* by stage: its axes, */
	Sym *count;                  /* and the number of its elements at a point */
	Sym points, most;            /* most: of count */
	bool points_fast;            /* neighbouring threads have neighbouring points, else
	                                neighbouring numbers */
	uint32_t threads;
	Sym nblock;
	KernelCost cost;
} GpuPiecesPlan;

/* ---- contractions and convolutions (contract.c) ---- */

enum {
	GPU_PAD = 4,   /* elements between its rows, so that lanes of a warp meet in few banks */
	GPU_SLICE = 2, /* rows of each thread whose results are in shared memory at a time */
	GPU_GATHER_THREADS = 256 /* of a block that copies an operand */
};

/* A copy of an operand, made by a phase of its own ahead: a matrix for each member of the batch,
 * which a library can read where the operand's axes have no single strides, as those of a
 * convolution. */
typedef struct {
	const Nest *nest;    /* as the kernel's, but with the operand where it lies */
	GpuAxes lines, line; /* the axes that number lines, those of the batch first; those along a
	                        line */
	Sym nline, length;   /* lines; elements of one */
	Sym stride;          /* elements from one line to the next, which are a multiple of 16
	                        bytes */
	bool along_k;        /* lines run along the summed axes */
	uint32_t wide;       /* elements that a thread copies in one access */
	uint32_t temp;       /* the temporary */
	GpuTime time[2];     /* at hint sizes; at larger ones */
} GpuGather;

/* How an operand comes into shared memory. */
typedef struct {
	Kx load;
	const GpuGather *gather; /* NULL: there is no copy, and the operand is read where it lies */
	bool async;    /* by copies that go on while threads compute; else it is converted on the
	                  way */
	bool along_k;  /* neighbouring threads take neighbouring steps of k, else neighbouring
	                  rows */
	uint32_t wide; /* elements of one copy */
	uint32_t deep; /* summed steps that a thread loads in one access, on the way through
	                  registers; 1: one at a time */
} GpuOperand;

/* Results of a block, and of a thread. */
typedef struct {
	uint32_t rows, cols, trows, tcols;
	uint32_t depth; /* summed steps in shared memory at a time */
} GpuTile;

/* How much of what there is. */
typedef struct {
	Sym steps;                /* of k */
	int64_t per;              /* steps of a block; 0: all */
	Sym row_tiles, col_tiles; /* of one member of the batch */
	Sym splits;               /* blocks of a tile */
	Sym results;              /* of all members */
	Sym nblock;
} GpuGrid;

/* What follows the sum, where that has a phase of its own: a thread has `wide` neighbouring columns
 * of a row, and stores them, as the sums and these loads, in one access each. */
typedef struct {
	bool apart;       /* a tile has one block, which leaves its sums in a temporary, too: the
	                     library computes them, and the second phase the rest of the kernel */
	uint32_t wide;
	const Kx *vector;
	uint32_t nvector;
} GpuRest;

/* How the library computes the kernel. */
typedef struct {
	LoopProduct of;          /* without buffers and `param` */
	Kx bias;                 /* a load; 0: none */
	Sym size[PRODUCT_SIZES];
} GpuProduct;

/* A product of a, which has the rows m, and b, which has the columns c, summed along k; for each
 * member of the batch. A block has a tile of rows by cols results, a thread trows by tcols of them
 * in registers. Tiles of both operands, `depth` steps deep, come into one half of shared memory
 * while the other half is multiplied. What is beyond the operands is 0. Chains of additions are cut
 * as plan/sums.h says. The rest of the kernel is computed at each result, from shared memory.
 *
 * a.gather, b.gather: first, phases copy operands, each into a temporary.
 *
 * grid.per: where there are too few tiles for the GPU, a tile has several blocks, each with `per`
 * steps of k. They leave their sums in a temporary, and a second phase adds them in order. */
typedef struct GpuContractPlan {
	const Nest *nest;
	DType dtype; /* of products and sums */
	GpuAxes m, c, k, batch;
	GpuOperand a, b;
	GpuTile tile;
	uint32_t threads;
	GpuGrid grid;
	SumPlan sums;
	const GpuProduct *product; /* the library is asked first; NULL: it is not */
	GpuRest rest;
	GpuTime time[2];           /* at hint sizes; at larger ones */
	KernelCost cost;
} GpuContractPlan;

/* Whether the rest of the kernel has a phase of its own. */
static inline bool gpu_two_phases(const GpuContractPlan *p)
{
	return p->grid.per || p->rest.apart;
}
static inline uint32_t gpu_gathers(const GpuContractPlan *p)
{
	return (p->a.gather != NULL) + (p->b.gather != NULL);
}
/* Makes the nest read a constant in a layout with its elements side by side along the summed axes
 * k, the last one fastest, and sets *want to that layout (gather.c). Returns false, and leaves the
 * nest as it was, if the load reads no constant, or its elements lie side by side along the last of
 * k, or along an axis that is not summed. */
bool gpu_pack(Nest *, Kx load, const GpuAxes *k, LayoutWant *want);
/* gather.c: Returns the plan *p, whose operands are read where they lie, and which has no tile yet,
 * with copies of the operands whose axes have no single strides, in a nest of its own; false if no
 * operand is copied, or one cannot be. */
MUST_LOOK bool gpu_gather(const PlanInput *, const GpuContractPlan *p, GpuContractPlan *out);
/* Whether an operand, a or b, is a matrix with single strides in each member of the batch
 * (product.c). */
bool gpu_is_matrix(const GpuContractPlan *, const GpuOperand *);
/* Returns the product for the library, in the arena of the nest; or NULL if the library cannot
 * compute the kernel, or its sums if these are apart (GpuRest), or is slower (product.c). Sets *why
 * to a text for reports in any case; NULL: the GPU has no library. *now: the library is faster at
 * hint sizes. */
const GpuProduct *gpu_product(const PlanInput *, const GpuContractPlan *, const char **why,
			      bool *now);

/* Returns the nanoseconds that the vendor's library is estimated to take for the contraction of a
 * plan, also for a convolution that this compiler does not give to the library. */
double gpu_library_time(const PlanInput *, const GpuContractPlan *);

/* ---- threads: every kernel (threads.c) ---- */

/* Sets want[], room for an element of each expression of the kernel, to layouts of small constants
 * in which neighbouring threads read neighbours: at most one for each buffer. Returns their
 * number. */
uint32_t gpu_threads_wants(const Nest *, LayoutWant *want);

/* Plans, and prints plans. */
PlanFn plan_gpu_points, plan_gpu_pieces, plan_gpu_rows, plan_gpu_contract, plan_gpu_threads;
PrintFn print_gpu_points, print_gpu_pieces, print_gpu_rows, print_gpu_contract, print_gpu_threads;

#endif
