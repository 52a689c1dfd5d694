/* Launches one after the other, as a table: what legalise makes of them in long programs instead of
 * a call for each. A compiler takes a millisecond for a few launches that are written as code, and
 * code is several times as long. */
#ifndef WEFT_CODEGEN_PROGRAM_LAUNCHES_H
#define WEFT_CODEGEN_PROGRAM_LAUNCHES_H

#include "ir/loop/program.h"

enum { LAUNCH_JOINED = 1 << 30, LAUNCH_ALONE = 1 << 29 }; /* with the number of a call: WEFT_JOINED,
                                                             WEFT_ALONE of runtime.h */
static inline uint32_t launch_word(const ProgramEntry *e, const LsData *s)
{
	return s->k | (s->joined ? LAUNCH_JOINED : 0) | (program_call(e, s->k)->alone ? LAUNCH_ALONE : 0);
}

typedef struct LaunchTable {
	uint32_t n, nbuf, nparam; /* launches; the most buffers and parameters of one */
	ARRAY(int64_t) word;      /* of all launches, as weft_launches reads them (runtime.h) */
	ARRAY(int64_t) shape;     /* what launches have in common, each once */
	ARRAY(uint32_t) fn;       /* its kernels: indices into Program.fn */
	ARRAY(Lx) value;          /* what is computed before */
} LaunchTable;

/* Of these launches of the function, which follow each other. NULL: not worth a table. */
LaunchTable *launch_table(const ProgramEntry *, const LoopFn *, const LsData *launch, uint32_t n);

#endif
