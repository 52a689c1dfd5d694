/* Private to codegen/program/: building `run` of an entry. program.c emits addresses and launches,
 * steps.c the steps around them. */
#ifndef WEFT_CODEGEN_PROGRAM_BUILDER_H
#define WEFT_CODEGEN_PROGRAM_BUILDER_H

#include "codegen/program/distinct.h"
#include "codegen/program/plan.h"
#include "codegen/program/program_priv.h"

/* Where a carried buffer is: at `odd` after an odd number of iterations, else at `even`. */
typedef struct {
	Sym even, odd;
	uint32_t loop;  /* the number is the index of this loop of those around (1: the outermost);
	                   0: it is the next */
	uint32_t ended; /* that of this while (index into Builder.ended + 1); 0: it is `count` */
	Sym count;
} CarryPlace;

/* A loop around what is emitted, and its index in the function at hand; of a WHILE, how many
 * iterations were done. */
typedef struct {
	const Step *step;
	Lx index;
} Around;

/* A WHILE that ended before, in a list around: how many iterations it did, in a function that knows
 * it. */
typedef struct {
	const LoopFn *f;
	Lx count;
} Ended;

/* A size that depends on data, where it is known: of its own function a variable, of one that is
 * outlined from it a parameter. */
typedef struct {
	Sym var;
	uint32_t room; /* that was made when it was found out, or 0 */
} BornSize;

/* What another function knew of it, before the function at hand got a parameter. */
typedef struct {
	uint32_t ended;
	Ended before;
} Asked;

/* Where everything lies. */
typedef struct {
	MemoryPlan plan;
	CarryPlace *place; /* by buffer: byte offset in its region, when it differs from the plan's;
	                      else even is none */
	uint32_t *owner;   /* by buffer: itself, or the one that it swaps with in a loop; 0:
	                      itself */
	bool *has_room;    /* by output: its memory is there, or the caller's */
} BuilderMemory;

/* What is known of sizes. */
typedef struct {
	SymLower sizes;       /* in the function at hand */
	ARRAY(BornSize) born; /* in the lists around */
	uint32_t nsize;       /* STEP_SIZEs so far */
	const Graph *guarded; /* whose guards are checked when their sizes are known */
	SizeBounds *bounds;   /* of the same graph */
} BuilderSizes;

/* The loops and outlined functions around what is emitted now. */
typedef struct {
	ARRAY(Around) around;
	ARRAY(Ended) ended;
	ARRAY(Asked) asked; /* by outlined functions that are being emitted */
	const Cost *times;  /* how often it runs: iterations of the loops around it; of a WHILE one
	                       is counted */
	bool tight;         /* lists are cut however short they are */
} BuilderNest;

typedef struct {
	Lowered *l;
	Program *p;
	ProgramEntry *e;  /* the last one of p */
	Arena *arena;
	SymTab *syms;
	DistinctKernels kernels;
	uint32_t next;    /* of kernels.kernel: the next to be launched */
	uint32_t ninput, noutput;
	uint32_t *state; /* by state of the entry: which of the program */
	Section section; /* of p */
	LoopFn *f;        /* at hand: `run` or one that is outlined from it */
	BuilderMemory memory;
	BuilderSizes known;
	BuilderNest nest;
} Builder;

/* program.c */
/* Returns the address of a buffer. layout: the layout in which a constant is read. */
Lx builder_address(Builder *, BufId, const Layout *layout);
/* Returns the buffer that owns the memory of a buffer. */
uint32_t builder_owner(const Builder *, uint32_t buf);
/* Returns how many iterations a WHILE did that has ended, Builder.nest.ended.data[ended]. An
 * outlined function gets the count as a parameter when it first needs the count. */
Lx builder_count(Builder *, uint32_t ended);
/* Emits the launches of a kernel's phases. */
void builder_launch(Builder *, const Scheduled *);

/* steps.c */
/* Begins a function, which becomes Builder.f, with values of the symbols, of the indices of the
 * loops around, and of the sizes that are known. */
void builder_start(Builder *, LoopFn *);
/* Emits the steps of a list. Pieces of a long list are outlined. */
void builder_steps(Builder *, const StepList *);

#endif
