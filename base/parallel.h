/* Runs one function on several threads, which take pieces of work from a counter that the caller
 * provides. */
#ifndef WEFT_BASE_PARALLEL_H
#define WEFT_BASE_PARALLEL_H

#include <stdint.h>

/* Calls work(arg) on this thread and, at the same time, on up to jobs - 1 other threads. Returns
 * when all calls have returned. There are at most 16 threads; there may be fewer than `jobs`, or no
 * other: each call must take pieces of work until none is left. Other threads must not allocate
 * from arenas, because they have no place to unwind to. jobs 0 means 1. The values that work
 * returns are dropped. */
void parallel_run(uint32_t jobs, void *(*work)(void *arg), void *arg);

#endif
