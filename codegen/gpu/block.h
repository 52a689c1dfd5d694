/* Private to schedules for GPUs: what the code of every block of threads has. */
#ifndef WEFT_CODEGEN_GPU_BLOCK_H
#define WEFT_CODEGEN_GPU_BLOCK_H

#include "codegen/eval/code.h"
#include "codegen/plan/gpu/gpu.h"

/* Begins the function of the next phase, of blocks of so many threads. */
void block_begin(Code *, const Nest *, uint32_t threads);
/* Returns the number of the block in its phase, an i64 scalar. */
Lx block_number(Code *);
/* Returns the number of the thread in the block, an i64 scalar. */
Lx block_thread(Code *);
/* Returns the column of the thread, in a block whose threads are in rows of `row` threads. */
Lx block_column(Code *, uint32_t row);
/* Returns the row of the thread, in a block whose threads are in rows of `row` threads. */
Lx block_row(Code *, uint32_t row);
/* Takes the number t apart into positions along n axes, the last axis fastest, and sets the axes to
 * them (eval_at). by[i]: elements of axis i that have one number together, to the first of which
 * the axis is set; NULL: 1 of each. t is less than the product of the counts. */
void block_decode(Code *, Lx t, const uint32_t *axis, uint32_t n, const int64_t *by);
/* Says that a thread moves `bytes` bytes of the memory, a buffer argument, in one access: the
 * argument is aligned to so many bytes at least. */
void block_align(Code *, LMem, uint32_t bytes);
/* Loads at `wide` elements from x on along an axis, a multiple of `wide`, in as few accesses as
 * SHARED_ALIGN allows: the value of the load is known at these elements. Other axes are set. */
void block_load_wide(Code *, Kx load, uint32_t axis, Lx x, uint32_t wide);
/* Stores value[wide], in the dtype_compute of the stage's result, at these elements of a stage that
 * stores, in the same way. */
void block_store_wide(Code *, uint32_t stage, uint32_t axis, Lx x, uint32_t wide, const Lx *value);
/* Evaluates the value of a stage with RESULT_GLOBAL at the current point, then its address, and
 * stores the value there. */
void block_store(Code *, uint32_t stage);
/* Evaluates all stages at the current point, in order, which has values for all their axes: a
 * STAGE_CHECK is checked, the result of a stage that stores is stored, another kept for later
 * stages. Afterwards no stage has a result. */
void block_point(Code *);

/* Writes the code of a plan, and decides nothing. */
typedef void BlockFn(Code *, const Plan *);
BlockFn emit_gpu_points, emit_gpu_pieces, emit_gpu_rows, emit_gpu_contract;
/* Returns a schedule of any kernel for a GPU: the kernel's schedule for a scalar target, by
 * for_thread, in which each task became a thread. */
Schedule *threads_schedule(const Lowered *, const Kernel *, const Target *,
			   ScheduleKernel *for_thread);

#endif
