/* Launch tables: legalise replaces consecutive launches of long programs by one statement
 * (LS_LAUNCHES) and data that the runtime reads (weft_launches), instead of a call for each launch.
 * A compiler takes a millisecond for a few launches in code, and the code is several times as large
 * as the table. */
#ifndef WEFT_CODEGEN_LEGAL_LAUNCHES_H
#define WEFT_CODEGEN_LEGAL_LAUNCHES_H

#include "ir/loop/program.h"

/* Flags of a launch in a table; runtime.h calls them WEFT_JOINED and WEFT_ALONE. */
enum { LAUNCH_SAME_PHASE = 1 << 30, LAUNCH_ALONE = 1 << 29 };
/* Returns the number of the call that the LS_LAUNCH s launches, with the launch's flags. */
static inline uint32_t launch_word(const ProgramEntry *e, const LsData *s)
{
	return s->k | (s->same_phase ? LAUNCH_SAME_PHASE : 0) |
	       (program_call(e, s->k)->alone ? LAUNCH_ALONE : 0);
}

typedef struct LaunchTable {
	uint32_t n, nbuf, nparam; /* the number of launches; the most buffers and parameters of a
	                             launch */
	ARRAY(int64_t) word;      /* by launch, as weft_launches reads them (runtime.h) */
	ARRAY(int64_t) shape;     /* the common part of equal launches, each once */
	ARRAY(uint32_t) fn;       /* the kernels: indices in Program.fn */
	ARRAY(Lx) value;          /* values that are computed before the table is read */
} LaunchTable;

/* Returns the table of the n consecutive LS_LAUNCH statements launch[] of f. Returns NULL if a call
 * for each is better: n is less than 32, or the program is short (no function was outlined from
 * `run`). The table lies in the arena of the Ir's context. */
LaunchTable *launch_table(const ProgramEntry *, const LoopFn *f, const LsData *launch, uint32_t n);

#endif
