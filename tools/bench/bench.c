/* weft bench */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bench/bench.h"

static int run(int argc, char **argv);

static const HelpRow rows[] = {
	{NULL, "What is measured", false},
	{"--threads LIST", "numbers of threads, such as 1,2 (default 1)", true},
	{"--inputs FILE",
	 "tensors x.0, x.1, ... (default MODEL.safetensors, else made up, of the sizes seen while "
	 "exporting)",
	 true},
	{"--seconds S", "per row (default 2)", true},
	{"--profile", "list kernel calls with time, bytes, FLOPs and share of the roofline", true},
	{"--by kernel|module|line",
	 "with --profile: a line for each call (default), or sums over modules, or lines, of the "
	 "model's source",
	 false},
	{"--against LIST", "peers, of torch, aoti, onnxruntime, openvino", true},
	{"--python ENV", "a Python environment that has them (default $WEFT_PYTHON)", false},
	{"-v", "where a peer fails: its traceback instead of one line", false},
	{"--no-op-by-op", "leave that row out", false},
	{"--entry NAME", "which one to time where there are several", false},
	{"--json", "print the rows, and the profile, as JSON", true},
	PROGRESS_HELP,
	{NULL, "How it runs", false},
	{"--backend jit|c|llvm",
	 "compiled in this process (the default where weft has LLVM; memory then includes the "
	 "compiler's), or to an object by a C compiler, or by LLVM and a linker",
	 false},
	{"--device cuda|cuda:N", "run on a GPU of this machine; a model file is compiled for it",
	 false},
	{"--target NAME|FILE", "see weft compile", false},
	{"--tune NAME|FILE", "see weft compile", false},
	{"--cc COMMAND", "C compiler, and --backend c", false},
	{"--no-cache", "see weft compile", false},
	LOAD_HELP,
	{0}};

const Command command_bench = {
	.name = "bench",
	.summary = "time a model, beside operator by operator and other systems",
	.usage = "MODEL|MODEL.so|NAME=MODEL... [options]",
	.about = "Time a model after warm-up: minimum, median and 99th percentile over repeated "
		 "runs, FLOP/s, share of the peak of this machine, and memory. Rows: `op by op` "
		 "(the same graph operator by operator with our own kernels: no fusion, no "
		 "planning), `compiled`, and the named peers, in the same precision (--precision).",
	.more = "The peak is that of a loop of multiply-adds, the fastest of many windows of a "
		"millisecond between and behind the runs. FLOPs are counted at the sizes run, "
		"which are printed. Memory is the largest of the process.",
	.row = rows,
	.run = run};

enum { MAX_ROWS = 64 };

typedef struct {
	BenchRow row[MAX_ROWS];
	int n;
	Peak peak[8]; /* by number of threads, once measured */
	bool have_peak;
} Table;

/* Compiles in a process of its own, so that its memory does not count as the model's. */
static bool compile_apart(const BenchOptions *o, bool op_by_op, const char *so)
{
	fflush(NULL);
	pid_t pid = fork();
	int status;
	if (pid < 0)
		return fail("cannot start a process"), false;
	if (pid == 0) {
		die_with_parent();
		progress_child(true);
		WeftOptions c = o->compile;
		c.op_by_op = op_by_op;
		link_with_ops(&c, &o->load);
		Weft *w = weft_new();
		WeftGraph *g = w ? load_model(w, o->model, &o->load, NULL) : NULL;
		int code = g && weft_compile(w, g, &c, so) ? 0 : fail_messages(w);
		if (!code) /* warnings */
			fputs(weft_messages(w), stderr);
		fflush(NULL);
		_exit(code);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status))
		return WIFSIGNALED(status)
			       ? (fail("compiling crashed with signal %d", WTERMSIG(status)), false)
			       : false;
	return true;
}

/* Adds one row per number of threads. Returns false when all of them failed. */
static bool own_row(const BenchOptions *o, Table *t, bool op_by_op, const char *path,
		    double compile)
{
	bool any = false;
	for (int k = 0; k < o->nthreads && t->n < MAX_ROWS; k++) {
		BenchRow *r = &t->row[t->n++];
		snprintf(r->name, sizeof r->name, "%s", op_by_op ? "op by op" : "compiled");
		r->threads = o->threads[k];
		r->compile = compile;
		progress_prefix("%s, %d thread%s: ", r->name, r->threads,
				r->threads == 1 ? "" : "s");
		r->ok = bench_own(path, o, op_by_op, o->threads[k], r);
		any |= r->ok;
		if (!any) /* the others would say the same */
			return false;
	}
	return any;
}

/* Measures peaks once, after the rows that measured them between their runs: what is printed is
 * what shares are computed with. */
static void measure_peaks(const BenchOptions *o, Table *t)
{
	for (int k = 0; !t->have_peak && k < o->nthreads; k++) {
		t->peak[k] = peak_measure(o->threads[k]);
		for (int i = 0; i < t->n; i++)
			if (t->row[i].ok && t->row[i].threads == o->threads[k])
				peak_join(&t->peak[k], &t->row[i].peak);
	}
	t->have_peak = true;
}

/* Returns the part of the windows in which the threads had a processor. */
static double had_processor(const Peak *p)
{
	return p->wall > 0 ? fmin(p->cpu / p->wall, 1) : 1;
}

/* Prints that the machine is busy. A quiet machine gives threads their processors nearly all the
 * time. */
static void print_busy(const BenchOptions *o, const Table *t)
{
	const double quiet = 0.9;
	for (int k = 0; k < o->nthreads; k++)
		if (had_processor(&t->peak[k]) < quiet)
			printf("the machine is busy, or has fewer processors than threads: while "
			       "the peak was measured, %d thread%s had a processor %.0f%% of the "
			       "time; times and shares are not those of a quiet machine\n",
			       o->threads[k], o->threads[k] == 1 ? "" : "s",
			       100 * had_processor(&t->peak[k]));
}

static bool profile_row(const BenchOptions *o, Table *t, const char *path)
{
	if (!o->profile)
		return true;
	measure_peaks(o, t);
	progress_prefix("profile: ");
	return bench_profile(path, o, o->threads[0], &t->peak[0]);
}

/* Times code that is compiled and run in the same process, one for each row. */
static bool jit_rows(const BenchOptions *o, Table *t)
{
	for (int fused = o->no_op_by_op; fused < 2; fused++)
		if (!own_row(o, t, !fused, o->model, 0))
			return false;
	return profile_row(o, t, o->model);
}

static bool file_rows(const BenchOptions *o, Table *t)
{
	const char *base = getenv("TMPDIR");
	char folder[4000], so[4096];
	snprintf(folder, sizeof folder, "%s/weft-bench-XXXXXX", base && *base ? base : "/tmp");
	if (!mkdtemp(folder))
		return fail("cannot make a temporary folder: %s", strerror(errno)), false;
	weft_temporary(folder);
	snprintf(so, sizeof so, "%s/model.so", folder);
	bool ok = true;
	for (int fused = o->no_op_by_op; ok && fused < 2; fused++) {
		double start = now();
		progress_prefix("%s: ", fused ? "compiled" : "op by op");
		ok = compile_apart(o, !fused, so);
		if (ok)
			ok = own_row(o, t, !fused, so, now() - start);
	}
	ok = ok && profile_row(o, t, so);
	unlink(so);
	rmdir(folder);
	weft_not_temporary(folder);
	return ok;
}

static bool own_rows(const BenchOptions *o, Table *t)
{
	if (o->backend == RUN_DEFAULT)
		return own_row(o, t, false, o->model, 0) && profile_row(o, t, o->model);
	return o->backend == RUN_JIT ? jit_rows(o, t) : file_rows(o, t);
}

static void peer_rows(const BenchOptions *o, Table *t)
{
	for (const char *p = o->against; p && *p;) {
		char peer[32];
		size_t n = strcspn(p, ",");
		snprintf(peer, sizeof peer, "%.*s", (int)n, p);
		for (int k = 0; k < o->nthreads && t->n < MAX_ROWS; k++) {
			BenchRow *r = &t->row[t->n++];
			snprintf(r->name, sizeof r->name, "%s", peer);
			r->threads = o->threads[k];
			progress_prefix("%s, ", peer);
			progress_show("%d thread%s", r->threads, r->threads == 1 ? "" : "s");
			r->ok = bench_peer(peer, o, o->threads[k], r);
		}
		p += n;
		p += *p == ',';
	}
}

static const BenchRow *find_row(const Table *t, const char *name, int threads)
{
	for (int k = 0; k < t->n; k++)
		if (!strcmp(t->row[k].name, name) && t->row[k].threads == threads && t->row[k].ok)
			return &t->row[k];
	return NULL;
}

/* Gives all rows the operations of the compiled one: they are the same model at the same sizes. */
static void same_counts(Table *t)
{
	for (int k = 0; k < t->n; k++) {
		const BenchRow *own = find_row(t, "compiled", t->row[k].threads);
		if (!own || own == &t->row[k])
			continue;
		t->row[k].counted = own->counted;
		t->row[k].flops = own->flops;
		t->row[k].bytes = own->bytes;
	}
}

/* Returns the row that says at which sizes the model ran: all did at the same. */
static const BenchRow *sized_row(const Table *t)
{
	for (int k = 0; k < t->n; k++)
		if (t->row[k].ok && t->row[k].nsize)
			return &t->row[k];
	return NULL;
}

static void print_sizes(const Table *t)
{
	const BenchRow *r = sized_row(t);
	for (int k = 0; r && k < r->nsize; k++)
		printf("%s%s = %lld%s", k ? ", " : "sizes: ", r->size[k].name,
		       (long long)r->size[k].value, k + 1 == r->nsize ? "\n" : "");
	if (r && !r->counted)
		puts("the file's counts are for other sizes: FLOP/s are left out (give the model "
		     "file)");
}

static double peak_for(const BenchOptions *o, const Table *t, int threads)
{
	for (int k = 0; k < o->nthreads; k++)
		if (o->threads[k] == threads)
			return t->peak[k].flops;
	return 0;
}

static void print_table(const BenchOptions *o, const Table *t)
{
	char a[32], b[32];
	print_sizes(t);
	printf("%-24s %7s %10s %10s %10s %10s %6s %8s %9s\n", o->model[0] ? "" : "", "threads",
	       "min ms", "median ms", "p99 ms", "FLOP/s", "peak", "memory", "x compiled");
	for (int k = 0; k < t->n; k++) {
		const BenchRow *r = &t->row[k];
		const BenchRow *own = find_row(t, "compiled", r->threads);
		if (!r->ok) {
			printf("%-24s %7d failed\n", r->name, r->threads);
			continue;
		}
		printf("%-24s %7d %10.4f %10.4f %10.4f ", r->name, r->threads, 1e3 * r->min,
		       1e3 * r->median, 1e3 * r->p99);
		if (r->counted)
			printf("%10s %5.1f%%", human(r->flops / r->median, a),
			       100 * r->flops / r->median / peak_for(o, t, r->threads));
		else
			printf("%10s %6s", "-", "-");
		printf(" %7sB", human(r->peak_bytes, b));
		if (own)
			printf(" %9.2f", r->median / own->median);
		putchar('\n');
		if (r->queued > 0)
			printf("%-24s %7d %10s %10.4f  a call, of 20 that the GPU is given at "
			       "once\n",
			       "", r->threads, "", 1e3 * r->queued);
	}
	for (int k = 0; k < o->nthreads; k++)
		printf("peak of this machine with %d thread%s: %sFLOP/s, %sB/s read\n",
		       o->threads[k], o->threads[k] == 1 ? "" : "s", human(t->peak[k].flops, a),
		       human(t->peak[k].bytes, b));
	print_busy(o, t);
}

Json bench_json_begin(const BenchOptions *o)
{
	Json j = {.f = stdout};
	json_open(&j, NULL, '{');
	json_put_string(&j, "model", o->model);
	return j;
}

/* Prints the object, or what is left of it after a profile, which another process printed: it
 * began the object. */
static void print_json(const BenchOptions *o, const Table *t)
{
	Json j = o->profile ? (Json){.f = stdout, .depth = 1, .comma = true} : bench_json_begin(o);
	json_open(&j, "sizes", '{');
	const BenchRow *sized = sized_row(t);
	for (int k = 0; sized && k < sized->nsize; k++)
		json_put_number(&j, sized->size[k].name, (double)sized->size[k].value);
	json_close(&j, '}');
	json_open(&j, "rows", '[');
	for (int k = 0; k < t->n; k++) {
		const BenchRow *r = &t->row[k];
		json_open(&j, NULL, '{');
		json_put_string(&j, "name", r->name);
		json_put_number(&j, "threads", r->threads);
		json_put_bool(&j, "ok", r->ok);
		json_put_number(&j, "compile_s", r->compile);
		json_put_number(&j, "min_ms", 1e3 * r->min);
		json_put_number(&j, "median_ms", 1e3 * r->median);
		json_put_number(&j, "p99_ms", 1e3 * r->p99);
		if (r->queued > 0)
			json_put_number(&j, "queued_ms", 1e3 * r->queued);
		json_put_number(&j, "runs", r->runs);
		if (r->counted) {
			json_put_number(&j, "flops", r->flops);
			json_put_number(&j, "bytes", r->bytes);
		}
		json_put_number(&j, "peak_bytes", r->peak_bytes);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_open(&j, "machine", '[');
	for (int k = 0; k < o->nthreads; k++) {
		json_open(&j, NULL, '{');
		json_put_number(&j, "threads", o->threads[k]);
		json_put_number(&j, "flops", t->peak[k].flops);
		json_put_number(&j, "bytes", t->peak[k].bytes);
		json_put_number(&j, "had_processor", had_processor(&t->peak[k]));
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
}

/* Chooses the back end. What a shared object was made by is not a question any more. */
static bool choose_backend(BenchOptions *o, const char *text)
{
	if (!parse_backend(text, &o->backend))
		return false;
	if (o->backend == RUN_INTERP || o->backend == RUN_LOOPS || o->backend == RUN_GPU_HOST)
		return fail_usage("--backend is jit, c or llvm: interpreters and gpu-host are not "
				  "timed"),
		       false;
	if (!is_shared_object(o->model))
		backend_note(o->backend),
			o->backend = backend_resolve(o->backend, &o->compile);
	else if (o->backend != RUN_DEFAULT)
		return fail("%s is compiled: --backend is for model files", o->model), false;
	if (o->device && text)
		return fail_usage("--device chooses the back end: give no --backend"), false;
	if (!is_shared_object(o->model) && !runner_backend_takes(o->backend, &o->compile))
		return false;
	o->compile.backend = o->backend == RUN_LLVM ? WEFT_BACKEND_LLVM : WEFT_BACKEND_C;
	return true;
}

/* Checks the peers, before anything is timed. */
static bool check_peers(const BenchOptions *o)
{
	static const char *const peer[] = {"torch", "aoti", "onnxruntime", "openvino"};
	enum { NPEER = sizeof peer / sizeof *peer };
	char python[4096];
	for (const char *p = o->against; p; p = *p ? p + 1 : NULL) {
		size_t n = strcspn(p, ","), k = 0;
		while (k < NPEER && (strlen(peer[k]) != n || strncmp(peer[k], p, n) != 0))
			k++;
		if (k == NPEER)
			return fail_usage("--against: no peer %.*s; there are torch, aoti, "
					  "onnxruntime, "
					  "openvino",
					  (int)n, p),
			       false;
		p += n;
	}
	if (o->against && !o->python)
		return fail_usage("--against needs --python ENV or $WEFT_PYTHON"), false;
	return !o->against || python_find(o->python, python) ||
	       (fail_usage("--python: no Python %s", o->python), false);
}

static bool parse_by(BenchOptions *o, const char *text)
{
	static const char *const name[] = {"kernel", "module", "line"};
	for (int k = PROFILE_BY_KERNEL; text && k <= PROFILE_BY_LINE; k++)
		if (!strcmp(text, name[k])) {
			o->by = (ProfileBy)k;
			return true;
		}
	return !text || (fail_usage("--by is kernel, module or line, not %s", text), false);
}

static bool parse(BenchOptions *o, int *argc, char **argv)
{
	const char *threads = "1", *seconds = "2", *backend = NULL, *by = NULL;
	const Opt opt[] = {{"--entry", OPT_STRING, &o->entry},
			   {"--threads", OPT_STRING, &threads},
			   {"--inputs", OPT_STRING, &o->inputs},
			   {"--backend", OPT_STRING, &backend},
			   {"--seconds", OPT_STRING, &seconds},
			   {"--profile", OPT_FLAG, &o->profile},
			   {"--by", OPT_STRING, &by},
			   {"--against", OPT_STRING, &o->against},
			   {"--python", OPT_STRING, &o->python},
			   {"--no-op-by-op", OPT_FLAG, &o->no_op_by_op},
			   {"-v", OPT_FLAG, &o->verbose},
			   {"--device", OPT_STRING, &o->device},
			   {"--target", OPT_STRING, &o->compile.target},
			   {"--tune", OPT_STRING, &o->compile.tune},
			   {"--no-cache", OPT_FLAG, &o->compile.no_cache},
			   {"--cc", OPT_STRING, &o->compile.cc},
			   {"--json", OPT_FLAG, &o->json},
			   {"--progress", OPT_FLAG, &o->progress},
			   LOAD_OPTIONS(&o->load),
			   {0}};
	if (!options_parse(&command_bench, opt, argc, argv))
		return false;
	if (!take_entries(&o->load, argc, argv))
		return false;
	if (*argc != (o->load.entry.n ? 1 : 2))
		return fail_usage("bench takes one model; see weft bench --help"), false;
	o->model = o->load.entry.n ? entry_file(&o->load, o->entry) : argv[1];
	if (!o->model)
		return false;
	o->nthreads = parse_list("--threads", threads, o->threads, 8);
	const OptUse use[] = {{o->python != python_default(), o->against, "--python", "--against"},
			      {o->verbose, o->against, "-v", "--against"},
			      {by, o->profile, "--by", "--profile"}};
	if (!options_used(&command_bench, use, sizeof use / sizeof *use) || !parse_by(o, by))
		return false;
	char *end;
	o->seconds = strtod(seconds, &end);
	if (!(o->seconds > 0 && o->seconds < 1e6) || *end)
		return fail_usage("--seconds takes a positive number of seconds, not %s", seconds),
		       false;
	if (!check_peers(o))
		return false;
	return o->nthreads > 0 && choose_backend(o, backend);
}

/* Makes a file of inputs: the peers take tensors from a file, and so do all rows then. */
static bool make_inputs(BenchOptions *o, char made[4096])
{
	const char *base = getenv("TMPDIR");
	snprintf(made, 4096, "%s/weft-inputs-XXXXXX.safetensors", base && *base ? base : "/tmp");
	int fd = mkstemps(made, (int)strlen(".safetensors"));
	if (fd < 0)
		return fail_open(made), *made = 0, false;
	close(fd);
	weft_temporary(made);
	o->inputs = made;
	return bench_write_inputs(o, made);
}

static int run(int argc, char **argv)
{
	BenchOptions o = {.compile = {.size = sizeof o.compile}, .python = python_default()};
	Table *t = calloc(1, sizeof *t);
	char beside[4096], made[4096] = "";
	if (!t || !parse(&o, &argc, argv)) {
		free(t);
		return argc == -1 ? 0 : 1;
	}
	progress_begin(o.progress);
	o.compile.progress = progress_phase;
	const char *dot = strrchr(o.model, '.');
	snprintf(beside, sizeof beside, "%.*s.safetensors",
		 (int)(dot ? dot - o.model : (long)strlen(o.model)), o.model);
	if (!o.inputs && !access(beside, R_OK))
		o.inputs = beside;
	bool ok = (o.inputs || !o.against || make_inputs(&o, made)) && own_rows(&o, t);
	if (ok) {
		peer_rows(&o, t);
		same_counts(t);
		measure_peaks(&o, t);
		progress_end();
		if (o.json)
			print_json(&o, t);
		else
			print_table(&o, t);
		for (int k = 0; k < t->n; k++)
			ok &= t->row[k].ok;
	}
	free(t);
	if (*made) {
		unlink(made);
		weft_not_temporary(made);
	}
	return ok ? 0 : 1;
}
