/* Private to schedules: what the code of every schedule for a CPU has. */
#ifndef WEFT_CODEGEN_CPU_CPU_H
#define WEFT_CODEGEN_CPU_CPU_H

#include "codegen/eval/eval.h"
#include "codegen/plan/plan.h"
#include "ir/ops/op.h"

typedef struct Cpu {
	Eval e;            /* of the current phase */
	const Target *target;
	Schedule *out;
	Lx start[MAX_AXES], limit[MAX_AXES]; /* the task's part of an axis; none: the whole axis */
	bool streamed;     /* this phase has streaming stores */
} Cpu;

/* Begins a schedule, which has no phases yet. */
void cpu_init(Cpu *, const Lowered *, const Target *);
/* Begins the function of the next phase, which evaluates the nest. */
void cpu_begin_phase(Cpu *, const Nest *);
/* Ends the current function, which becomes a phase of the schedule with ntasks tasks. */
void cpu_finish_phase(Cpu *, Sym ntasks, KernelCost);
/* Adds memory that phases `first` to `last` use. Returns its number. */
uint32_t cpu_temp(Cpu *, SchedTemp);

/* Stores a value of the stage's dtype at the current point. */
void cpu_store(Cpu *, uint32_t stage, Lx value);
/* The identity of a reduction, and acc combined with x. cpu_accumulate adds a product by fma. */
Lx cpu_identity(Cpu *, ReduceKind, LType);
Lx cpu_combine(Cpu *, ReduceKind, Lx acc, Lx x);
Lx cpu_fma(Cpu *, Lx a, Lx b, Lx c); /* a * b + c, in two roundings without hardware fma */
Lx cpu_accumulate(Cpu *, const Stage *, Lx acc, Kx value);

/* The task has [lo, hi) of an axis. */
void cpu_part(Cpu *, uint32_t axis, Lx lo, Lx hi);
/* The first index, and the end, of the task's part of an axis. */
Lx cpu_start(Cpu *, uint32_t axis);
Lx cpu_limit(Cpu *, uint32_t axis);
/* The loop over axis in [lo, hi) by vectors: a main loop and a masked remainder. Calls body(s,
 * data) for each, with the mask set. divisible: there is no remainder. */
void cpu_vector_loop(Cpu *, uint32_t axis, Lx lo, Lx hi, bool divisible,
		     void (*body)(Cpu *, void *), void *data);

/* serial.c: stages that run one after the other at an outer point. */
void cpu_scatter(Cpu *, uint32_t stage); /* one update of a scatter */
void cpu_sort(Cpu *, uint32_t stage);    /* sorts a row; stage: the first of the four stages */

/* fft.c: transforms a line, or as many lines as there are lanes; stage: the first of the four
 * stages. ntasks: of the phase. */
void cpu_fft(Cpu *, uint32_t stage, Sym ntasks);

/* transpose.c: as many vectors as there are lanes, the rows of a square, become its columns. */
void transpose_lanes(Cpu *, Lx *row);

/* What is known ahead of a loop is evaluated there, even if the loop has no rounds: where there may
 * be nothing to read. Such a kernel has no tasks; indices are checked if there are any. */
void cpu_leave_out_empty(const Lowered *, const Kernel *, Schedule *);

/* Writes the code of a plan: all phases of the schedule. Decides nothing. */
typedef void EmitFn(Cpu *, const Plan *);
EmitFn emit_depthwise, emit_contract, emit_generic;

#endif
