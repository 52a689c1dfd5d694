/* Private to building programs: equal kernels are scheduled once.
 *
 * Kernels are equal when they are written the same way with their axes and buffers numbered in
 * order of appearance; of a buffer its layout, shape and dtype count, of symbols of sizes and of
 * loops outside themselves. */
#ifndef WEFT_CODEGEN_PROGRAM_DISTINCT_H
#define WEFT_CODEGEN_PROGRAM_DISTINCT_H

#include "codegen/program/schedule.h"

/* A kernel of the program. */
typedef struct {
	const char *name; /* of the kernel or call */
	const char *stored; /* Kernel.stored; NULL: a call */
	SourceLines lines;
	const Schedule *schedule; /* shared by equal kernels; an ARG_BUF counts buffers in order of
	                             appearance */
	const uint32_t *fn;       /* by phase: index into Program.fn */
	const BufId *buf;         /* in order of appearance */
	uint32_t temp;            /* number of its first temporary among those of all kernels */
	const bool *joins;        /* by phase: shares a phase of the program with the launch before
	                             it; after share_phases */
} Scheduled;

typedef struct {
	const Lowered *l; /* of the entry at hand */
	Program *p;
	const Target *target;
	bool plain; /* functions are not legalised */
	Intern key, fn_text;
	ARRAY(Scheduled) distinct; /* by id of key - 1 */
	ARRAY(Scheduled) kernel;   /* of the entry, in order of distinct_kernel */
	uint32_t ntemp;            /* of the entry */
	/* the kernel at hand */
	ARRAY(uint32_t) word;
	ARRAY(BufId) buf;       /* in order of appearance */
	ARRAY(uint32_t) number; /* by Sym: its number + 1 if `of` is this kernel */
	ARRAY(uint32_t) of;
	uint32_t now, nsym;
} DistinctKernels;

void distinct_init(DistinctKernels *, const Lowered *, Program *, const Target *);
/* What comes is of the next entry, which shares schedules and functions with those before. */
void distinct_enter(DistinctKernels *, const Lowered *);
/* The key of a kernel: an id from 1, and its buffers in d->buf. */
uint32_t distinct_key(DistinctKernels *, const Kernel *, bool *fresh);
/* Schedules a kernel, unless an equal one was, and appends it to d->kernel. */
void distinct_kernel(DistinctKernels *, const Kernel *);
/* The same for a call of a user's operator, which is scheduled each time. */
void distinct_call(DistinctKernels *, const StepCall *);

/* share.c: which launches share a phase, when all kernels of the steps are there. owner: by buffer,
 * the one with which it swaps, or 0. */
void share_phases(DistinctKernels *, const StepList *, const uint32_t *owner);

#endif
