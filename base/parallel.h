/* Work that several threads share: they take pieces from a counter of their own. */
#ifndef WEFT_BASE_PARALLEL_H
#define WEFT_BASE_PARALLEL_H

#include <stdint.h>

/* Call work(arg) on this thread and, at the same time, on up to jobs - 1 others; returns when all
 * have returned. Fewer threads than asked for, or none, may be there: each call goes on until
 * nothing is left to take. Others than the first have no context to unwind to: they allocate
 * nothing from arenas. jobs 0 is 1. */
void parallel_run(uint32_t jobs, void *(*work)(void *arg), void *arg);

#endif
