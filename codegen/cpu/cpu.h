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
/* Returns the identity of a reduction in all lanes of the type. */
Lx cpu_identity(Cpu *, ReduceKind, LType);
/* Returns acc combined with x. */
Lx cpu_combine(Cpu *, ReduceKind, Lx acc, Lx x);
/* Returns a * b + c: in one rounding if the target has a fused multiply-add, else in two. */
Lx cpu_fma(Cpu *, Lx a, Lx b, Lx c);
/* Returns acc combined with the value of an expression at the current point, by the stage's
 * reduction; a product that a sum adds is a cpu_fma. */
Lx cpu_accumulate(Cpu *, const Stage *, Lx acc, Kx value);

/* Says that the task has [lo, hi) of an axis, until the phase ends. */
void cpu_part(Cpu *, uint32_t axis, Lx lo, Lx hi);
/* Returns the first index of the task's part of an axis; 0 if the task has the whole axis. */
Lx cpu_start(Cpu *, uint32_t axis);
/* Returns the end of the task's part of an axis; its extent if the task has the whole axis. */
Lx cpu_limit(Cpu *, uint32_t axis);
/* The loop over axis in [lo, hi) by vectors: a main loop and a masked remainder. Calls body(s,
 * data) for each, with the mask set. divisible: there is no remainder. */
void cpu_vector_loop(Cpu *, uint32_t axis, Lx lo, Lx hi, bool divisible,
		     void (*body)(Cpu *, void *), void *data);

/* serial.c: writes one update of a scatter stage at the current point. */
void cpu_scatter(Cpu *, uint32_t stage);
/* serial.c: sorts a row at the current outer point. stage: the first of the four stages of a
 * sort. */
void cpu_sort(Cpu *, uint32_t stage);

/* fft.c: transforms a line, or as many lines as there are lanes; stage: the first of the four
 * stages. ntasks: of the phase. */
void cpu_fft(Cpu *, uint32_t stage, Sym ntasks);

/* transpose.c: transposes a square in registers: row[], as many vectors as there are lanes, becomes
 * its columns. */
void transpose_lanes(Cpu *, Lx *row);

/* What is known ahead of a loop is evaluated there, even if the loop has no rounds: where there may
 * be nothing to read. Such a kernel has no tasks; indices are checked if there are any. */
void cpu_leave_out_empty(const Lowered *, const Kernel *, Schedule *);

/* Writes the code of a plan: all phases of the schedule. Decides nothing. */
typedef void EmitFn(Cpu *, const Plan *);
EmitFn emit_depthwise, emit_contract, emit_generic;

#endif
