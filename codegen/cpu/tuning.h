/* What schedules choose by: a machine's costs in the terms of a schedule. No other number of a schedule is about
 * machines. */
#ifndef WEFT_CODEGEN_CPU_TUNING_H
#define WEFT_CODEGEN_CPU_TUNING_H

#include "ir/target/target.h"

/* Tasks that keep the machine's processors busy to the end of a phase. */
int64_t tuning_tasks(const Machine *);
/* Elements of which something simple is computed: what pays for a task of its own, and for a barrier and for combining a
 * part. */
int64_t tuning_task_work(const Machine *);
int64_t tuning_part_work(const Machine *);

/* A tensor of so many bytes is out of the caches before anybody reads it. */
int64_t tuning_beyond_caches(const Machine *);

/* ---- contractions of f32 or f64 ---- */

/* Elements of a vector: in one register, or in as many as make four elements. */
uint32_t tuning_lanes(const Target *, DType);
uint32_t tuning_registers(const Target *, DType); /* of a vector */

/* Cycles of one step of k of a register tile of mr rows and nv vectors. */
double tuning_tile_cycles(const Target *, DType, uint32_t mr, uint32_t nv);
/* The most rows of a tile of nv vectors that registers hold. */
uint32_t tuning_tile_rows(const Target *, DType, uint32_t nv);
/* Cycles that each step of k takes for one vector of columns of b, which has so many elements: when a vector is gathered for all
 * `rows`; when the k steps of a column run over lanes, which are added up at the end, for each row anew; and when all of b is
 * copied before. */
double tuning_gathered_cycles(const Target *, DType, double rows, double elements);
double tuning_summed_cycles(const Target *, DType, double rows, double elements, double k);
typedef enum {
	COPY_VECTORS, /* columns are neighbours */
	COPY_GATHERED,
	COPY_TURNED /* through squares of lanes */
} CopyKind;
double tuning_copied_cycles(const Target *, DType, double rows, double elements, CopyKind);
/* Cycles of reading `bytes` of each of so many steps, which are read again and again: `together` bytes of a step are neighbours, and
 * steps are multiples of `spacing` bytes (a power of two) apart. Where that is more, they share few of the lines of each cache. */
double tuning_spaced_cycles(const Machine *, double bytes, double steps, double together, double spacing);
/* Multiply-adds that pay for a task of their own. */
double tuning_block_work(const Target *, DType);
/* Multiply-adds that take as long as reading `bytes` once, of `set` bytes that are read before they are again; as gathering
 * so many elements. */
double tuning_stream_work(const Target *, DType, double bytes, double set);
double tuning_gather_work(const Target *, DType, double elements);
/* Elements of the operand that stays, of one task. */
int64_t tuning_block_elements(const Machine *, DType);

#endif
