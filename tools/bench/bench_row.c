/* The rows of `weft bench`: our own objects and the peers, each in a process of its own. */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bench/bench.h"
#include "tools/on_device.h"

extern const char peers_py[]; /* tools/peers.py, embedded at build time */

static int by_value(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;
	return (a > b) - (a < b);
}

void bench_statistics(double *s, int n, BenchRow *r)
{
	qsort(s, (size_t)n, sizeof *s, by_value);
	int high = (int)(0.99 * n);
	r->runs = n;
	r->min = s[0];
	r->median = s[n / 2];
	r->p99 = s[high < n ? high : n - 1];
}

/* ---- one model ---- */

/* Returns symbol k's value while exporting; 2 for one of which that is not known, if it may be. */
static int64_t seen_size(const Runner *r, uint32_t k)
{
	const WeftSymbolInfo *s = weft_symbol(r->model, r->entry, k);
	int64_t v = r->entry->seen[k];
	return v == s->lo && v < 2 && s->hi >= 2 ? 2 : v;
}

/* Sets shape[] to the shape of input k at such sizes. */
static bool seen_shape(const Runner *r, uint32_t k, int64_t *shape)
{
	const WeftTensorInfo *info = runner_input(r, k);
	if (r->one) {
		int64_t *size = malloc((r->entry->nsymbol + 1) * sizeof *size);
		for (uint32_t s = 0; size && s < r->entry->nsymbol; s++)
			size[s] = seen_size(r, s);
		bool ok = size && weft_input_shape(r->w, r->one, k, size, shape);
		free(size);
		return ok || (fail_messages(r->w), false);
	}
	for (uint32_t d = 0; d < info->rank; d++) {
		const WeftDim *dim = tensor_dim(r->model, info, d);
		if (dim->value < 0 && dim->symbol < 0)
			return fail("input %s: give --inputs, its shape is %s", info->name,
				    dim->text),
			       false;
		shape[d] = dim->value >= 0 ? dim->value : seen_size(r, (uint32_t)dim->symbol);
	}
	return true;
}

bool bench_make_inputs(const Runner *r, WeftTensor *in)
{
	for (uint32_t k = 0; k < r->ninput; k++) {
		const WeftTensorInfo *info = runner_input(r, k);
		WeftTensor *t = &in[k];
		*t = (WeftTensor){
			.device = {WEFT_CPU, 0}, .ndim = (int32_t)info->rank, .dtype = info->dtype};
		t->shape = malloc((info->rank + 1) * sizeof(int64_t));
		if (!t->shape)
			return fail("out of memory"), false;
		if (!seen_shape(r, k, t->shape))
			return false;
		t->data = calloc(bytes_of(t) + 64, 1);
		if (!t->data)
			return fail("out of memory"), false;
		for (int64_t i = 0;
		     t->dtype.code == WEFT_FLOAT && t->dtype.bits == 32 && i < numel_of(t); i++)
			((float *)t->data)[i] = (float)((i * 7919) % 2001) / 1000 - 1;
	}
	return true;
}

/* What is timed. */
typedef struct {
	Runner *r;
	const WeftTensor *in;
	int threads;
	OnDevice *device; /* NULL: tensors are the host's */
} Timed;

/* Calls, `abreast` of them before it waits for a GPU. */
static bool calls(const Timed *t, int abreast)
{
	bool ok = true;
	for (int k = 0; ok && k < abreast; k++)
		ok = t->device ? on_device_begin(t->device)
			       : runner_call(t->r, t->in, t->threads, NULL, NULL);
	return ok && (!t->device || on_device_wait(t->device));
}

/* Measures windows of the peak between the runs, so that both see the same machine. The call
 * behind them finds the caches and clocks as they are between runs. */
static bool measure_between(const Timed *t, int abreast, BenchRow *row, int part, int parts)
{
	enum { WINDOWS = 8 };
	progress_show("timing, %d of %d", part, parts);
	peak_windows(&row->peak, t->threads, WINDOWS);
	return calls(t, abreast);
}

static bool time_calls(const Timed *t, int abreast, double seconds, BenchRow *row)
{
	enum { MOST = 100000, PARTS = 8 };
	double *s = malloc(MOST * sizeof *s), start = now(), pause = 0;
	int n = 0;
	bool ok = s;
	for (int k = 0; ok && (k < 3 || now() - start < seconds / 10); k++)
		ok = calls(t, abreast);
	start = now();
	for (int part = 0; ok && n < MOST && (n < 7 || now() - start - pause < seconds);) {
		double begin = now();
		if (!t->device && begin - start - pause >= part * seconds / PARTS) {
			ok = measure_between(t, abreast, row, part, PARTS);
			pause += now() - begin;
			part++;
			continue;
		}
		ok = calls(t, abreast);
		s[n++] = (now() - begin) / abreast;
	}
	if (ok)
		bench_statistics(s, n, row);
	free(s);
	return ok;
}

/* Times the runs. On a GPU tensors lie in its memory. */
static bool time_runs(Runner *r, const WeftTensor *in, const BenchOptions *o, int threads,
		      BenchRow *row)
{
	enum { QUEUE = 20 };
	Timed t = {r, in, threads, NULL};
	BenchRow queued = {0};
	if (on_device_can(r) && !(t.device = on_device_new(r, in)))
		return false;
	bool ok = time_calls(&t, 1, o->seconds, row);
	if (ok && t.device && time_calls(&t, QUEUE, o->seconds / 2, &queued))
		row->queued = queued.median;
	on_device_free(t.device);
	return ok;
}

/* ---- profile ---- */

/* Of the last run. */
typedef struct {
	double *run, *launches;
} Calls;

static void on_call(void *user, uint32_t call, double seconds)
{
	Calls *c = user;
	c->run[call] += seconds;
	c->launches[call]++;
}

/* Returns what the entry's table says, for a shared object, if it ran at these sizes. */
static const WeftReport *table_counts(const Runner *r)
{
	const WeftEntry *e = r->entry;
	for (uint32_t k = 0; k < e->nsymbol; k++)
		if (e->seen[k] != r->sizes->slot[k])
			return NULL;
	WeftReport *report = calloc(1, sizeof *report);
	WeftKernelInfo *kernel = calloc(e->ncall + 1, sizeof *kernel);
	if (!report || !kernel)
		return free(report), free(kernel), NULL;
	*report = (WeftReport){.flops = e->flops, .nkernel = e->ncall, .kernel = kernel};
	for (uint32_t k = 0; k < e->ncall; k++) {
		const WeftCallInfo *c = weft_call(r->model, e, k);
		kernel[k] = call_info(r->model, c);
		report->bytes += c->bytes;
	}
	return report;
}

/* Returns the entry's part of the last compilation of w, at the sizes that run; of other entries
 * at their least. */
static const WeftReport *planned_counts(Weft *w, const Runner *r)
{
	uint32_t n = 0;
	for (uint32_t e = 0; e < r->model->nentry; e++)
		n += weft_entry(r->model, e)->nsymbol;
	int64_t *value = calloc(n + 1, sizeof *value);
	WeftReport *part = calloc(1, sizeof *part);
	if (!value || !part)
		return free(value), free(part), NULL;
	n = 0;
	for (uint32_t e = 0; e < r->model->nentry; e++) {
		const WeftEntry *entry = weft_entry(r->model, e);
		for (uint32_t k = 0; k < entry->nsymbol; k++)
			value[n++] = e == r->which ? r->sizes->slot[k]
						   : weft_symbol(r->model, entry, k)->lo;
	}
	const WeftReport *all = weft_report_at(w, value, n);
	free(value);
	if (!all || r->which >= all->nentry || all->entry[r->which].nkernel != r->entry->ncall) {
		if (!all)
			fail_messages(w);
		return free(part), NULL;
	}
	const WeftEntryReport *e = &all->entry[r->which];
	*part = (WeftReport){
		.flops = e->flops, .bytes = e->bytes, .nkernel = e->nkernel, .kernel = e->kernel};
	return part;
}

/* Counts at the sizes that run, once all is timed: planning takes memory. NULL: not known. */
static const WeftReport *counts(Runner *r, const BenchOptions *o)
{
	WeftOptions c = o->compile;
	Weft *w = r->w;
	if (is_shared_object(o->model))
		return table_counts(r);
	if (!w) { /* the file comes from another process */
		w = weft_new();
		WeftGraph *g = w ? load_model(w, o->model, &o->load, NULL) : NULL;
		if (!g || !weft_plan(w, g, &c))
			return fail_messages(w), NULL;
	}
	return planned_counts(w, r);
}

static void fill_counts(Runner *r, const BenchOptions *o, BenchRow *row)
{
	const WeftReport *report = counts(r, o);
	row->counted = report;
	if (report) {
		row->flops = report->flops;
		row->bytes = report->bytes;
	}
	for (uint32_t k = 0; k < r->entry->nsymbol && row->nsize < MOST_SIZES; k++) {
		snprintf(row->size[row->nsize].name, sizeof row->size->name, "%s",
			 weft_symbol(r->model, r->entry, k)->name);
		row->size[row->nsize++].value = r->sizes->slot[k];
	}
}

static void put_profile(const Profile *p, const BenchOptions *o, const WeftReport *count,
			const Peak *peak)
{
	progress_end();
	if (o->json) {
		Json j = bench_json_begin(o);
		profile_json(&j, p, o->by, count);
	} else {
		profile_print(p, o->by, count, peak);
	}
}

static bool profile_runs(Runner *r, const WeftTensor *in, const BenchOptions *o, int threads,
			 const Peak *peak)
{
	enum { RUNS = 20 };
	const uint32_t n = r->entry->ncall + 1;
	double *seconds = calloc(n, sizeof *seconds);
	Calls c = {calloc(n, sizeof *c.run), calloc(n, sizeof *c.launches)};
	bool ok = (seconds && c.run && c.launches) || (fail("out of memory"), false);
	for (int k = 0; ok && k < RUNS; k++) {
		progress_show("run %d of %d", k + 1, RUNS);
		memset(c.run, 0, n * sizeof *c.run);
		memset(c.launches, 0, n * sizeof *c.launches);
		ok = runner_call(r, in, threads, on_call, &c);
		for (uint32_t i = 0; i < n; i++)
			if (k == 0 || c.run[i] < seconds[i])
				seconds[i] = c.run[i];
	}
	const Profile p = {seconds, c.launches, r->model, r->entry};
	if (ok)
		put_profile(&p, o, counts(r, o), peak);
	free(seconds);
	free(c.run);
	free(c.launches);
	return ok;
}

/* Opens a shared object, which is there, or a model file, which is compiled in this process. */
static bool open_own(Runner *r, const char *path, const BenchOptions *o, bool op_by_op,
		     BenchRow *row)
{
	progress_show("reading %s", path);
	WeftOptions c = o->compile;
	RunnerOptions ro = {
		.compile = &c, .load = &o->load, .entry = o->entry, .device = o->device};
	bool jit = !is_shared_object(path);
	double start = now();
	c.op_by_op = op_by_op;
	if (!jit && !is_shared_object(o->model)) /* it has been compiled by these options */
		ro.compile = NULL, ro.load = NULL;
	ro.backend = jit && !o->device ? RUN_JIT : RUN_DEFAULT;
	bool ok = runner_open(r, path, &ro);
	if (row && jit)
		row->compile = now() - start;
	return ok;
}

static bool own_here(const char *path, const BenchOptions *o, bool op_by_op, int threads,
		     const Peak *peak, BenchRow *row)
{
	Runner r;
	if (!open_own(&r, path, o, op_by_op, row))
		return false;
	WeftTensor *in = calloc(r.ninput + 1, sizeof *in);
	Weft *w = weft_new();
	WeftTensors *t = o->inputs && w ? weft_tensors_read(w, o->inputs) : NULL;
	bool ok = in && (t           ? runner_inputs(&r, t, o->inputs, in)
			 : o->inputs ? (fail_messages(w), false)
				     : bench_make_inputs(&r, in));
	ok = ok && runner_prepare(&r, in);
	if (row) {
		ok = ok && time_runs(&r, in, o, threads, row);
		row->peak_bytes = peak_bytes();
		if (ok)
			fill_counts(&r, o, row);
	} else {
		ok = ok && profile_runs(&r, in, o, threads, peak);
	}
	return ok; /* the process ends here: nothing is freed */
}

static bool write_inputs(const BenchOptions *o, const char *path)
{
	Runner r;
	char name[16];
	WeftOptions c = o->compile;
	RunnerOptions ro = {.backend = is_shared_object(o->model) ? RUN_DEFAULT : RUN_LOOPS,
			    .compile = &c,
			    .load = &o->load,
			    .entry = o->entry};
	if (!runner_open(&r, o->model, &ro))
		return false;
	WeftTensor *in = calloc(r.ninput + 1, sizeof *in);
	Weft *w = weft_new();
	WeftTensors *t = w ? weft_tensors_new(w) : NULL;
	if (!in || !bench_make_inputs(&r, in))
		return false;
	for (uint32_t k = 0; t && k < r.ninput; k++) {
		snprintf(name, sizeof name, "x.%u", k);
		t = weft_tensors_add(w, t, name, &in[k]) ? t : NULL;
	}
	return (t && weft_tensors_write(w, t, path)) || (fail_messages(w), false);
}

/* Writes the inputs in a process of its own, which the model goes with. */
bool bench_write_inputs(const BenchOptions *o, const char *path)
{
	int status;
	fflush(NULL);
	pid_t pid = fork();
	if (pid < 0)
		return fail("cannot start a process"), false;
	if (pid == 0) {
		die_with_parent();
		progress_child(true);
		_exit(write_inputs(o, path) ? 0 : 1);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Times a row, or without one profiles against the peak. */
static bool apart(const char *path, const BenchOptions *o, bool op_by_op, int threads,
		  const Peak *peak, BenchRow *row)
{
	int fd[2], status;
	fflush(NULL);
	if (pipe(fd))
		return fail("cannot make a pipe"), false;
	pid_t pid = fork();
	if (pid < 0)
		return fail("cannot start a process"), false;
	if (pid == 0) {
		die_with_parent();
		progress_child(true);
		bool ok = own_here(path, o, op_by_op, threads, peak, row);
		if (ok && row && write(fd[1], row, sizeof *row) != sizeof *row)
			ok = false;
		fflush(NULL);
		_exit(ok ? 0 : 1);
	}
	close(fd[1]);
	bool ok = !row || read(fd[0], row, sizeof *row) == sizeof *row;
	close(fd[0]);
	if (waitpid(pid, &status, 0) == pid && WIFSIGNALED(status)) {
		if (WTERMSIG(status) == SIGPIPE) /* whoever read what it prints has gone */
			raise(SIGPIPE);
		fail("%s crashed with signal %d", path, WTERMSIG(status));
	}
	return ok && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool bench_own(const char *path, const BenchOptions *o, bool op_by_op, int threads, BenchRow *row)
{
	return apart(path, o, op_by_op, threads, NULL, row);
}

bool bench_profile(const char *path, const BenchOptions *o, int threads, const Peak *peak)
{
	return apart(path, o, false, threads, peak, NULL);
}

/* ---- peers ---- */

bool bench_peer(const char *peer, const BenchOptions *o, int threads, BenchRow *r)
{
	char line[512] = "", count[16], seconds[32];
	snprintf(count, sizeof count, "%d", threads);
	snprintf(seconds, sizeof seconds, "%g", o->seconds);
	const char *precision = precision_given(&o->load, o->entry);
	const char *arg[] = {
		o->model, o->inputs, peer, count, seconds, precision ? precision : "f32", "-v"};
	FILE *out = tmpfile();
	if (!out)
		return fail("%s: cannot make a temporary file", peer), false;
	setenv("OMP_NUM_THREADS", count, 1);
	bool ok = python_run(o->python, peer, peers_py, arg, o->verbose ? 7 : 6, out);
	unsetenv("OMP_NUM_THREADS");
	if (ok) {
		rewind(out);
		ok = false;
		/* The helper's line is the last one: libraries may print, too. */
		while (fgets(line, sizeof line, out))
			ok = sscanf(line, "%63s %lf %d %lf %lf %lf %lf", r->name, &r->compile,
				    &r->runs, &r->min, &r->median, &r->p99, &r->peak_bytes) == 7;
		if (!ok)
			fail("%s: its process has printed no times", peer);
	}
	fclose(out);
	r->min /= 1e3;
	r->median /= 1e3;
	r->p99 /= 1e3;
	return ok;
}
