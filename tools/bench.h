/* Private to `weft bench`. */
#ifndef WEFT_TOOLS_BENCH_H
#define WEFT_TOOLS_BENCH_H

#include "peak.h"
#include "tool.h"

typedef struct {
	const char *model, *inputs; /* inputs NULL: made up */
	const char *against, *python;
	int threads[8], nthreads;
	double seconds;
	bool verbose, profile, json, no_op_by_op;
	RunBackend backend; /* RUN_JIT, RUN_C or RUN_LLVM; RUN_DEFAULT for a shared object */
	WeftOptions compile;
	LoadArgs load;
	const char *entry; /* NULL: the only one */
} BenchOptions;

enum { MOST_SIZES = 16 };

/* One line of the table. Times in seconds. */
typedef struct {
	char name[64];
	int threads;
	bool ok;
	double compile, min, median, p99;
	bool counted;        /* the next two are known */
	double flops, bytes; /* of one run at these sizes, as WeftReport says */
	int nsize;
	struct {
		char name[48];
		int64_t value;
	} size[MOST_SIZES];
	double peak_bytes;                       /* memory of the process at its largest */
	int runs;
} BenchRow;

/* Time a shared object, or a model file through the JIT, in a process of its own. */
bool bench_own(const char *path, const BenchOptions *, bool op_by_op, int threads, BenchRow *);
/* Print its kernels, compared with the peak for that number of threads; with --json the first
 * fields of the object. */
bool bench_profile(const char *path, const BenchOptions *, int threads, const Peak *);
/* What --json prints begins: one object, with the model's name. */
Json bench_json_begin(const BenchOptions *);
/* A file of tensors x.0, x.1, ... for the model, at the sizes seen while exporting. False after a
 * message. */
bool bench_write_inputs(const BenchOptions *, const char *path);
/* Time a peer in the Python environment. */
bool bench_peer(const char *peer, const BenchOptions *, int threads, BenchRow *);
/* The interpreter that --python names, an environment or a program. False: there is none. */
bool bench_python(const BenchOptions *, char path[4096]);
void bench_statistics(double *seconds, int n, BenchRow *);

#endif
