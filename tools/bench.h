/* Private to `weft bench`. */
#ifndef WEFT_TOOLS_BENCH_H
#define WEFT_TOOLS_BENCH_H

#include "peak.h"
#include "tool.h"

typedef struct {
	const char *model, *inputs;   /* paths; inputs NULL: random numbers */
	const char *against, *python; /* --against: the peers; --python: their Python environment */
	int threads[8], nthreads;
	double seconds;
	bool verbose, profile, json, no_op_by_op;
	RunBackend backend; /* RUN_JIT, RUN_C or RUN_LLVM; RUN_DEFAULT for a shared object */
	WeftOptions compile;
	LoadArgs load;
	const char *entry; /* NULL: the only one */
	const char *device; /* RunnerOptions.device */
} BenchOptions;

enum { MOST_SIZES = 16 };

/* One line of the table. Times in seconds. */
typedef struct {
	char name[64];
	int threads;
	bool ok;                          /* the times are known */
	double compile, min, median, p99; /* to compile, and of a run */
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

/* Measures a shared object, or a model file by the JIT, in a process of its own, and fills in a
 * row. op_by_op: without fusion (WeftOptions). Returns false after a message. */
bool bench_own(const char *path, const BenchOptions *, bool op_by_op, int threads, BenchRow *);
/* Measures the kernels of a shared object, or of a model file by the JIT, and prints them, compared
 * with the peak for that number of threads; with --json the first fields of the object
 * (bench_json_begin). Returns false after a message. */
bool bench_profile(const char *path, const BenchOptions *, int threads, const Peak *);
/* Begins the object that --json prints on stdout, with the model's name. The caller closes it. */
Json bench_json_begin(const BenchOptions *);
/* Writes a file of random inputs x.0, x.1, ... for the model, at the sizes seen while exporting.
 * Returns false after a message. */
bool bench_write_inputs(const BenchOptions *, const char *path);
/* Measures a peer ("torch", "aoti", "onnxruntime" or "openvino") in the Python environment, and
 * fills in a row. Returns false after a message. */
bool bench_peer(const char *peer, const BenchOptions *, int threads, BenchRow *);
/* Sets path to the interpreter that --python names, an environment or a program. Returns false if
 * there is no such program; a name without a folder is not looked up. */
bool bench_python(const BenchOptions *, char path[4096]);
/* Sorts seconds[n], n > 0, and sets runs, min, median and p99 (the 99th percentile) of the row. */
void bench_statistics(double *seconds, int n, BenchRow *);

#endif
