/* Launches one after the other, as a table: what both emitters write for long programs instead of a call for each.
 * A compiler takes a millisecond for a few launches that are written as code, and code is several times as long. */
#ifndef WEFT_CODEGEN_LAUNCHES_H
#define WEFT_CODEGEN_LAUNCHES_H

#include "ir/loop/program.h"

typedef struct {
	uint32_t n, nbuf, nparam; /* launches; the most buffers and parameters of one */
	ARRAY(int64_t) word;      /* of all launches, as weft_launches reads them (runtime.h) */
	ARRAY(uint32_t) fn;       /* its kernels: indices into Program.fn */
	ARRAY(Lx) value;          /* what is computed before */
} LaunchTable;

/* Of the launches that follow each other from statement `first` of a block on. False: not worth a table. */
bool launch_table(LaunchTable *, const Program *, const LoopFn *, Lb, uint32_t first);

#endif
