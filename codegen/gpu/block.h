/* Private to schedules for GPUs: what the code of every block of threads has. */
#ifndef WEFT_CODEGEN_GPU_BLOCK_H
#define WEFT_CODEGEN_GPU_BLOCK_H

#include "codegen/eval/code.h"
#include "codegen/plan/gpu/gpu.h"

/* Begins the function of the next phase, of blocks of so many threads. */
void block_begin(Code *, const Nest *, uint32_t threads);
/* Returns the number of the block in its phase, an i64 scalar. */
Lx block_number(Code *);
/* Returns the number of the thread in the block. */
Lx block_thread(Code *);
/* Returns the column of the thread, in a block whose threads are in rows of `row` threads. */
Lx block_column(Code *, uint32_t row);
/* Returns the row of the thread in such a block. */
Lx block_row(Code *, uint32_t row);
/* Takes the number t apart into positions along n axes, the last axis fastest, and sets the axes to
 * them (eval_at). by[i]: elements of axis i that have one number together; NULL: 1 of each. */
void block_decode(Code *, Lx t, const uint32_t *axis, uint32_t n, const int64_t *by);
/* Says that a thread moves `bytes` bytes of the memory in one access. */
void block_align(Code *, LMem, uint32_t bytes);
/* Evaluates all stages at the point, and stores their results. */
void block_point(Code *);

/* Writes the code of a plan, and decides nothing. */
typedef void BlockFn(Code *, const Plan *);
BlockFn emit_gpu_points, emit_gpu_rows, emit_gpu_contract;
/* Returns a schedule that takes every kernel: its schedule for a scalar target, with a thread for
 * each task. */
Schedule *threads_schedule(const Lowered *, const Kernel *, const Target *);

#endif
