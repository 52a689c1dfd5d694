/* Private to `weft bench`. */
#ifndef WEFT_TOOLS_BENCH_H
#define WEFT_TOOLS_BENCH_H

#include "tool.h"

typedef struct {
	const char *model, *inputs; /* inputs NULL: made up */
	const char *against, *python;
	int threads[8], nthreads;
	double seconds;
	bool pool, profile, json, no_op_by_op;
	WeftOptions compile;
} BenchOptions;

/* One line of the table. Times in seconds. */
typedef struct {
	char name[64];
	int threads;
	bool ok;
	double compile, min, median, p99, flops; /* flops of one run, 0 unknown */
	double peak_bytes;                       /* memory of the process at its largest */
	int runs;
} BenchRow;

/* Time a shared object in a process of its own; with profile print its kernels. */
bool bench_object(const char *so, const BenchOptions *, int threads, bool profile, BenchRow *);
/* Time a peer in the Python environment. */
bool bench_peer(const char *peer, const BenchOptions *, int threads, BenchRow *);
void bench_statistics(double *seconds, int n, BenchRow *);

#endif
