/* Consecutive launches as a table: legalise makes one in long programs instead of a call for each
 * launch. A compiler takes a millisecond for a few launches in code, and the code is several times
 * as large as the table. */
#ifndef WEFT_CODEGEN_PROGRAM_LAUNCHES_H
#define WEFT_CODEGEN_PROGRAM_LAUNCHES_H

#include "ir/loop/program.h"

/* flags beside the number of a call: WEFT_JOINED, WEFT_ALONE of runtime.h */
enum { LAUNCH_SAME_PHASE = 1 << 30, LAUNCH_ALONE = 1 << 29 };
static inline uint32_t launch_word(const ProgramEntry *e, const LsData *s)
{
	return s->k | (s->same_phase ? LAUNCH_SAME_PHASE : 0) | (program_call(e, s->k)->alone ? LAUNCH_ALONE : 0);
}

typedef struct LaunchTable {
	uint32_t n, nbuf, nparam; /* the number of launches; the most buffers and parameters of a
	                             launch */
	ARRAY(int64_t) word;      /* by launch, as weft_launches reads them (runtime.h) */
	ARRAY(int64_t) shape;     /* the common part of equal launches, each once */
	ARRAY(uint32_t) fn;       /* the kernels: indices in Program.fn */
	ARRAY(Lx) value;          /* values that are computed before the table is read */
} LaunchTable;

/* Makes a table of n consecutive launches of the function. Returns NULL if a table does not pay. */
LaunchTable *launch_table(const ProgramEntry *, const LoopFn *, const LsData *launch, uint32_t n);

#endif
