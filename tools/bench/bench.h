/* Private to `weft bench`. */
#ifndef WEFT_TOOLS_BENCH_H
#define WEFT_TOOLS_BENCH_H

#include "tools/bench/peak.h"
#include "tools/tool.h"

typedef enum { PROFILE_BY_KERNEL, PROFILE_BY_MODULE, PROFILE_BY_LINE } ProfileBy;

typedef struct {
	const char *model, *inputs;   /* paths; inputs NULL: made-up numbers (bench_write_inputs) */
	const char *against, *python; /* --against: the peers; --python: their Python environment */
	int threads[8], nthreads;
	double seconds; /* for which each row is measured */
	/* -v, --profile, --json, --no-op-by-op, --progress */
	bool verbose, profile, json, no_op_by_op, progress;
	ProfileBy by;
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
	double queued; /* of a run on a GPU among others that it was given at once; 0: not known */
	bool counted;        /* the next two are known */
	double flops, bytes; /* of one run at these sizes, as WeftReport says */
	int nsize;
	struct {
		char name[48];
		int64_t value;
	} size[MOST_SIZES];
	double peak_bytes;                       /* memory of the process at its largest */
	Peak peak; /* flops, of windows between the runs; zeros for peers and GPUs */
	int runs;
} BenchRow;

/* Measures a shared object, or a model file that is compiled first (by the JIT, with --device for
 * the GPU), in a process of its own, and fills in a row, which is zeros but for name and threads;
 * ok stays. op_by_op: of a model file, without fusion (WeftOptions). Returns false after a
 * message. */
bool bench_own(const char *path, const BenchOptions *, bool op_by_op, int threads, BenchRow *);
/* Measures the kernels of a shared object, or of a model file as bench_own compiles it, in a
 * process of its own, and prints them on stdout, compared with the peak for that number of threads.
 * With --json it prints bench_json_begin and the field "profile", and leaves the object open.
 * Returns false after a message. */
bool bench_profile(const char *path, const BenchOptions *, int threads, const Peak *);
/* What the calls of an entry took. */
typedef struct {
	const double *seconds;  /* by call, the smallest of the runs */
	const double *launches; /* by call, of one run */
	const WeftModel *m;
	const WeftEntry *e;
} Profile;
/* Prints a profile on stdout, in lines of terminal_width: by kernel beside the counts (NULL: not
 * known) and the peak; else sums over modules of the source, or lines of it, where a call counts
 * for the line of which it is (WeftCallInfo.line). */
void profile_print(const Profile *, ProfileBy, const WeftReport *count, const Peak *);
/* Writes the field "profile" with the same, without the peak. */
void profile_json(Json *, const Profile *, ProfileBy, const WeftReport *count);
/* Begins the object that --json prints on stdout, with the field "model". Returns its writer, with
 * which the caller closes the object. */
Json bench_json_begin(const BenchOptions *);
/* Sets in[r->ninput] to made-up inputs, as those of bench_write_inputs; their memory lasts until
 * the process ends. Returns false after a message. */
bool bench_make_inputs(const Runner *, WeftTensor *in);
/* Writes a .safetensors file of made-up inputs x.0, x.1, ... for the model: f32 from -1 to 1, the
 * same at each call, other dtypes zeros; at the sizes seen while exporting (2 where none is known
 * and 2 is allowed). Returns false after a message. */
bool bench_write_inputs(const BenchOptions *, const char *path);
/* Measures a peer ("torch", "aoti", "onnxruntime" or "openvino") in the Python environment on the
 * file BenchOptions.inputs, which must be set, and fills in name, times, runs and memory of a row.
 * Returns false after a message; the row's times mean nothing then. */
bool bench_peer(const char *peer, const BenchOptions *, int threads, BenchRow *);
/* Sorts seconds[n], n > 0, and sets runs, min, median and p99 (the 99th percentile) of the row. */
void bench_statistics(double *seconds, int n, BenchRow *);

#endif
