/* Private to schedules: what the code of every schedule for a CPU has. */
#ifndef WEFT_CODEGEN_CPU_CPU_H
#define WEFT_CODEGEN_CPU_CPU_H

#include "codegen/eval/code.h"
#include "codegen/plan/plan.h"
#include "ir/op/op.h"

typedef struct Cpu {
	union {
		struct {
			Eval e; /* of the current phase */
			const Target *target;
			Schedule *out;
		};
		Code code; /* the same */
	};
	Lx start[MAX_AXES], limit[MAX_AXES]; /* the task's part of an axis; none: the whole axis */
	bool streamed;     /* this phase has streaming stores */
} Cpu;

/* Begins the function of the next phase, which evaluates the nest, by code_begin_phase. The task
 * has the whole of each axis. */
void cpu_begin_phase(Cpu *, const Nest *);
/* Ends the current function by code_finish_phase, which adds it to the schedule as a phase with
 * ntasks tasks. If cpu_store made streaming stores, a fence ends the function. */
void cpu_finish_phase(Cpu *, Sym ntasks, KernelCost);

/* Stores a value as the result of a stage that stores at the current point, in the active lanes,
 * converted to the buffer's dtype; by a streaming store if it fills a register, all lanes are
 * active and the tensor does not stay in the caches. */
void cpu_store(Cpu *, uint32_t stage, Lx value);
/* Stores the results of all stages that store at the current point. They are computed of `value`,
 * the result of stage `sum`. */
void cpu_store_sum(Cpu *, uint32_t sum, Lx value);
/* Evaluates what the stages that store compute of the known axes alone (eval_hoist). */
void cpu_hoist_stores(Cpu *, uint32_t sum, uint64_t known);
/* Says that the task has [lo, hi) of an axis, until the phase ends. */
void cpu_part(Cpu *, uint32_t axis, Lx lo, Lx hi);
/* Returns the first index of the task's part of an axis; 0 if the task has the whole axis. */
Lx cpu_start(Cpu *, uint32_t axis);
/* Returns the end of the task's part of an axis; its extent if the task has the whole axis. */
Lx cpu_limit(Cpu *, uint32_t axis);
/* Writes the loop over the lane axis `axis` in [lo, hi) by vectors: a main loop, unless it provably
 * has no round, and a masked remainder, unless `divisible`. Calls body(s, data) for each of the
 * two, with the axis's value, and for the remainder the mask, set. Afterwards the axis has no
 * value, and the mask is that of before. */
void cpu_vector_loop(Cpu *, uint32_t axis, Lx lo, Lx hi, bool divisible,
		     void (*body)(Cpu *, void *), void *data);

/* Writes one update of a scatter stage at the current point, if the stage's guard holds
 * there. */
void cpu_scatter(Cpu *, uint32_t stage);
/* Writes the code that sorts a row at the current outer point (sort.c). stage: the first of the
 * four stages of a sort, or of the two stages of one that stores only the first elements
 * (STAGE_SORT). */
void cpu_sort(Cpu *, uint32_t stage);

/* Writes the Fourier transform of a line, or of as many lines as there are lanes, at the current
 * outer point (fft.c). stage: the first of its four stages; ntasks: of the phase. Two copies of the
 * lines lie in local memory if they are provably small; else adds a temporary with a part for each
 * task. */
void cpu_fft(Cpu *, uint32_t stage, Sym ntasks);

/* Writes the factorisation of a matrix, or of as many as there are lanes, at the current outer
 * point (factor.c). stage: the first one of the factorisation (STAGE_FACTOR). The matrices lie in
 * local memory. */
void cpu_factor(Cpu *, uint32_t stage);

/* Transposes a square in registers: row[] has as many vectors as there are lanes, a power of two,
 * and becomes the columns (transpose.c). */
void transpose_lanes(Cpu *, Lx *row);

/* Writes the code of a plan: all phases of the schedule. Decides nothing. */
typedef void EmitFn(Cpu *, const Plan *);
EmitFn emit_depthwise, emit_contract, emit_generic;

#endif
