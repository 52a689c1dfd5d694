/* Private to codegen/program/: equal kernels are scheduled once.
 *
 * Kernels are equal if their texts are equal after axes and buffers are numbered in order of
 * appearance. Of a buffer, layout, shape, dtype and the border of zeros count, and whether it is a
 * constant (whose layout is fixed) or may be memory of another (donated). Symbols of sizes and of
 * loops outside of the kernel stand for themselves. */
#ifndef WEFT_CODEGEN_PROGRAM_DISTINCT_H
#define WEFT_CODEGEN_PROGRAM_DISTINCT_H

#include "codegen/program/schedule.h"

/* A launched kernel or call of the program. */
typedef struct {
	const char *name; /* the name of the kernel or call */
	const char *stored; /* Kernel.stored; NULL for a call */
	SourceLines lines;
	const Kernel *kernel;     /* NULL for a call */
	const Schedule *schedule; /* one for all equal kernels; ARG_BUF numbers buffers in order of
	                             appearance */
	const uint32_t *fn;       /* by phase: index in Program.fn */
	const BufId *buf;         /* in order of appearance */
	uint32_t temp;            /* the number of its first temporary among those of all kernels */
	const bool *continues;    /* by phase: runs in the phase of the launch before; set by
	                             form_phases */
} Scheduled;

typedef struct {
	const Lowered *l; /* of the current entry */
	Program *p;
	const Target *target;
	bool plain; /* functions are not legalised */
	Intern key, fn_text;
	ARRAY(Scheduled) distinct; /* by id of key - 1 */
	ARRAY(Scheduled) kernel;   /* of the current entry, in order of distinct_kernel */
	uint32_t ntemp;            /* of the entry */
	/* the current kernel */
	ARRAY(uint32_t) word;
	ARRAY(BufId) buf;       /* in order of appearance */
	ARRAY(uint32_t) number; /* by Sym: its number + 1, valid if `of` is the current kernel */
	ARRAY(uint32_t) of;
	uint32_t now, nsym;
} DistinctKernels;

/* Begins with no kernels and `plain` false, for the first entry of the program, whose functions are
 * scheduled for the target. Program NULL: only distinct_key may be called. */
void distinct_init(DistinctKernels *, const Lowered *, Program *, const Target *);
/* Begins the next entry, which uses schedules and functions of the entries before; empties
 * d->kernel. */
void distinct_enter(DistinctKernels *, const Lowered *);
/* Returns the id (>= 1) of the kernel's text: equal kernels have one id. Sets *fresh to whether it
 * is new, and d->buf to the kernel's buffers in order of appearance. */
uint32_t distinct_key(DistinctKernels *d, const Kernel *, bool *fresh);
/* Schedules a kernel unless an equal one was scheduled; then adds those of its functions to the
 * program whose text no function there has. Appends the kernel to d->kernel in any case. */
void distinct_kernel(DistinctKernels *d, const Kernel *);
/* Schedules a call of a user operator, each time anew, adds its function to the program unless a
 * function there has the same text, and appends the call to d->kernel. */
void distinct_call(DistinctKernels *, const StepCall *);

/* Adds what a launch of the phase passes to what launches of the function pass: LoopFn.given and
 * tasks_most. */
void note_launch(SymTab *, LoopFn *, const SchedPhase *);

/* Decides which launches run in the phase of the launch before, because they do not depend on it,
 * and sets Scheduled.continues of d->kernel (phases.c). Call it after all kernels of the steps were
 * scheduled, in the order of the steps. owner: by buffer, a buffer that may have the same memory (a
 * loop swaps the two, or an output takes an input's), or 0. */
void form_phases(DistinctKernels *d, const StepList *, const uint32_t *owner);
/* Whether the function may fail: it checks something, or calls a user operator. */
bool phase_fails(const SchedPhase *);

#endif
