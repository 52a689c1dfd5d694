/* A machine's costs in the terms of schedules. Schedules have no other numbers about machines. */
#ifndef WEFT_CODEGEN_PLAN_TUNING_H
#define WEFT_CODEGEN_PLAN_TUNING_H

#include "ir/target/micro.h"

/* Returns the number of tasks that keeps all processors busy until the end of a phase: two for each
 * processor; 32 if the machine does not say how many there are (Machine.threads 0). */
int64_t tuning_tasks(const Machine *);
/* Returns the number of simple element operations from which on a task of its own pays. */
int64_t tuning_task_work(const Machine *);
/* Returns the number of simple element operations from which on a task that reduces a part of a row
 * pays, although a barrier and the combination of results follow. */
int64_t tuning_part_work(const Machine *);

/* Returns the number of bytes from which on a tensor is evicted from the caches before a later
 * phase reads it. */
int64_t tuning_beyond_caches(const Machine *);

/* ---- contractions of f32 or f64 ---- */

/* No register tile is larger, however many registers a target has: whoever writes the code of a
 * tile has arrays of so many rows and vectors. */
enum { MAX_TILE_ROWS = 16, MAX_TILE_VECTORS = 4 };

/* Returns the elements of a vector of that dtype: as many as a register holds, but at least four
 * (of f64 in registers of 16 bytes two registers are one vector); 1 on a target without vectors. */
uint32_t tuning_lanes(const Target *, DType);
/* Returns the number of registers that a vector of tuning_lanes elements takes; at least 1. */
uint32_t tuning_registers(const Target *, DType);

/* Returns the cycles that one multiply-add of vectors, or of groups (MicroKernel), keeps the
 * execution units busy. */
double tuning_step_cycles(const Target *, const MicroKernel *);
/* Returns the latency of the addition of such a multiply-add: the cycles from its start until its
 * result can be read. */
double tuning_step_latency(const Target *, const MicroKernel *);
/* Returns the cycles of unpacking one group from each of `vectors` vectors, for a micro-kernel that
 * multiplies a group's parts: the halves of bf16, or four bytes widened to 16 bits. Returns 0 for
 * other micro-kernels. */
double tuning_parts_cycles(const Target *, const MicroKernel *, uint32_t vectors);
/* Returns the cycles of one step of k of a register tile of mr rows and nv vectors. */
double tuning_tile_cycles(const Target *, const MicroKernel *, uint32_t mr, uint32_t nv);
/* Returns the factor by which spills lengthen the multiply-adds of a register tile of mr rows and
 * nv vectors; 1 without spills. A tile spills if it has more rows than registers hold pointers to
 * them, or takes more than three quarters of the vector registers. */
double tuning_tile_spills(const Target *, DType, uint32_t mr, uint32_t nv);
/* Returns the most rows of a tile of nv vectors that fit the registers: 1 to MAX_TILE_ROWS, and no
 * more than a tile with two registers for each row has. */
uint32_t tuning_tile_rows(const Target *, DType, uint32_t nv);
/* Returns the cycles of gathering one vector of a panel right before its use, from an operand of so
 * many elements. DType: that of the products. */
double tuning_gathered_cycles(const Target *, DType, double elements);
typedef enum {
	COPY_VECTORS, /* columns have unit stride */
	COPY_GATHERED,
	COPY_TURNED /* transposed in registers */
} CopyKind;
/* Returns the cycles of copying one vector of a panel in a phase that copies a whole operand of so
 * many elements. */
double tuning_copied_cycles(const Target *, DType, double elements, CopyKind);
/* Returns the cycles of reading one step, of `bytes` bytes, once, where `steps` steps are read
 * again and again. `together` bytes of a step are contiguous; the stride of the steps is a multiple
 * of `spacing` bytes, a power of two. A large spacing maps the steps to few sets of the caches, so
 * that lines are evicted. */
double tuning_spaced_cycles(const Machine *, double bytes, double steps, double together,
			    double spacing);
/* Returns the cycles that a step of a product waits for its line, of the same steps as above, which
 * lie too far apart to be prefetched: what other work does not hide. */
double tuning_waiting_cycles(const Machine *, double steps, double together, double spacing);
/* Returns the number of multiply-adds from which on a task of its own pays. */
double tuning_block_work(const Target *, DType);
/* Returns how many times as many multiply-adds a micro-kernel on fragments does in the same time; 1
 * for other micro-kernels. */
double tuning_row_speed(const Target *, const MicroKernel *);
/* Returns the number of multiply-adds that take as long as reading `bytes` bytes once, where `set`
 * bytes are read before the same bytes are read again. */
double tuning_stream_work(const Target *, DType, double bytes, double set);
/* Returns the number of multiply-adds that take as long as gathering `elements` elements. */
double tuning_gather_work(const Target *, DType, double elements);
/* Returns the most elements of an operand that a task keeps in L2 while the other operand passes
 * by. */
int64_t tuning_block_elements(const Machine *, DType);

#endif
