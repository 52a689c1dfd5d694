/* Compiling and measuring what a report is about. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/report.h"

enum { MOST_EVENTS = 20000, LEAST_RUNS = 5, MOST_RUNS = 50 };

/* ---- one profiled call ---- */

typedef struct {
	double begin; /* of the call */
	double *seconds, *launches;
	ReportEvent *event;
	uint32_t nevent;
	bool cut;
} Recording;

static void on_launch(void *user, uint32_t call, double seconds)
{
	Recording *r = user;
	r->seconds[call] += seconds;
	r->launches[call]++;
	r->cut |= r->nevent == MOST_EVENTS;
	if (r->nevent < MOST_EVENTS) {
		const double start = now() - r->begin - seconds;
		r->event[r->nevent++] = (ReportEvent){call, start > 0 ? start : 0, seconds};
	}
}

/* Keeps the least time of each kernel, and the launches of the fastest call. */
static void keep(Report *p, const Recording *r, double took)
{
	for (uint32_t k = 0; k < p->nkernel; k++)
		if (p->profiled <= 0 || r->seconds[k] < p->seconds[k])
			p->seconds[k] = r->seconds[k];
	if (p->profiled > 0 && took >= p->profiled)
		return;
	p->profiled = took;
	memcpy(p->launches, r->launches, p->nkernel * sizeof *p->launches);
	memcpy(p->event, r->event, r->nevent * sizeof *r->event);
	p->nevent = r->nevent;
	p->cut = r->cut;
}

static bool profile(Report *p, const WeftTensor *in)
{
	const uint32_t n = p->nkernel + 1;
	Recording r = {0};
	r.seconds = calloc(n, sizeof *r.seconds);
	r.launches = calloc(n, sizeof *r.launches);
	r.event = calloc(MOST_EVENTS, sizeof *r.event);
	bool ok = (r.seconds && r.launches && r.event) || (fail("out of memory"), false);
	const double start = now();
	for (int k = 0; ok && k < MOST_RUNS && (k < LEAST_RUNS || now() - start < p->o->seconds);
	     k++) {
		memset(r.seconds, 0, n * sizeof *r.seconds);
		memset(r.launches, 0, n * sizeof *r.launches);
		r.nevent = 0;
		r.cut = false;
		r.begin = now();
		progress_show("profiling, call %d", k + 1);
		ok = runner_call(&p->r, in, p->o->threads, on_launch, &r);
		if (ok)
			keep(p, &r, now() - r.begin);
	}
	free(r.seconds);
	free(r.launches);
	free(r.event);
	return ok;
}

/* ---- calls ---- */

static bool time_calls(Report *p, const WeftTensor *in)
{
	enum { MOST = 10000, LEAST = 5 };
	double *s = malloc(MOST * sizeof *s);
	bool ok = s || (fail("out of memory"), false);
	int n = 0;
	progress_show("timing");
	for (int k = 0; ok && k < 2; k++)
		ok = runner_call(&p->r, in, p->o->threads, NULL, NULL);
	const double start = now();
	while (ok && n < MOST && (n < LEAST || now() - start < p->o->seconds)) {
		const double begin = now();
		ok = runner_call(&p->r, in, p->o->threads, NULL, NULL);
		s[n++] = now() - begin;
	}
	if (ok)
		bench_statistics(s, n, &p->call);
	free(s);
	return ok;
}

/* ---- counts ---- */

/* Returns what a shared object's table says of its calls, if it ran at the sizes of the table. */
static const WeftReport *table_counts(const Runner *r)
{
	const WeftEntry *e = r->entry;
	WeftReport *out = calloc(1, sizeof *out);
	WeftKernelInfo *kernel = calloc(e->ncall + 1, sizeof *kernel);
	if (!out || !kernel)
		return free(out), free(kernel), NULL;
	bool same = true;
	for (uint32_t k = 0; k < e->nsymbol; k++)
		same &= e->seen[k] == r->sizes->slot[k];
	*out = (WeftReport){.flops = same ? e->flops : 0, .nkernel = e->ncall, .kernel = kernel};
	for (uint32_t k = 0; k < e->ncall; k++) {
		kernel[k] = call_info(r->model, weft_call(r->model, e, k));
		if (!same)
			kernel[k].flops = kernel[k].bytes = 0;
		out->bytes += kernel[k].bytes;
	}
	return out;
}

/* Fills in what the compiler says, at the sizes that ran; of other entries at their least. */
static bool ask_compiler(Report *p)
{
	Runner *r = &p->r;
	uint32_t n = 0;
	for (uint32_t e = 0; e < r->model->nentry; e++)
		n += weft_entry(r->model, e)->nsymbol;
	int64_t *value = calloc(n + 1, sizeof *value);
	WeftReport *part = calloc(1, sizeof *part);
	if (!value || !part)
		return free(value), free(part), fail("out of memory"), false;
	n = 0;
	for (uint32_t e = 0; e < r->model->nentry; e++)
		for (uint32_t k = 0; k < weft_entry(r->model, e)->nsymbol; k++)
			value[n++] =
				e == r->which
					? r->sizes->slot[k]
					: weft_symbol(r->model, weft_entry(r->model, e), k)->lo;
	p->compiled = weft_report_at(r->w, value, n);
	if (!p->compiled)
		return free(value), free(part), fail_messages(r->w), false;
	const WeftEntryReport *e = &p->compiled->entry[r->which];
	*part = (WeftReport){
		.flops = e->flops, .bytes = e->bytes, .nkernel = e->nkernel, .kernel = e->kernel};
	p->counts = part;
	free(value);
	p->details = weft_details(r->w, r->g, r->which, r->sizes->slot, r->entry->nsymbol);
	return p->details || (fail_messages(r->w), false);
}

static void find_processor(char out[128])
{
	char line[512];
	FILE *f = fopen("/proc/cpuinfo", "r");
	*out = 0;
	while (f && !*out && fgets(line, sizeof line, f)) {
		const char *colon = strchr(line, ':');
		if (colon && (!strncmp(line, "model name", 10) || !strncmp(line, "uarch", 5)))
			snprintf(out, 128, "%.*s",
				 (int)strcspn(colon + 1 + strspn(colon + 1, " "), "\n"),
				 colon + 1 + strspn(colon + 1, " "));
	}
	if (f)
		fclose(f);
}

/* ---- the whole ---- */

static bool open_model(Report *p)
{
	const ReportOptions *o = p->o;
	const RunnerOptions ro = {.backend = o->backend,
				  .compile = is_shared_object(o->model) ? NULL : &o->compile,
				  .load = &o->load,
				  .entry = o->entry};
	progress_show("reading %s", o->model);
	if (!runner_open(&p->r, o->model, &ro))
		return false;
	if (p->r.device.type)
		return fail("%s is for a GPU: weft report measures processors; weft bench "
			    "--profile measures GPUs",
			    o->model),
		       false;
	p->nkernel = p->r.entry->ncall;
	p->seconds = calloc(p->nkernel + 1, sizeof *p->seconds);
	p->launches = calloc(p->nkernel + 1, sizeof *p->launches);
	p->event = calloc(MOST_EVENTS, sizeof *p->event);
	return (p->seconds && p->launches && p->event) || (fail("out of memory"), false);
}

bool report_measure(Report *p, const ReportOptions *o)
{
	*p = (Report){.o = o};
	if (!open_model(p))
		return false;
	p->in = calloc(p->r.ninput + 1, sizeof *p->in);
	Weft *w = weft_new();
	WeftTensors *t = o->inputs && w ? weft_tensors_read(w, o->inputs) : NULL;
	bool ok = p->in && w &&
		  (t           ? runner_inputs(&p->r, t, o->inputs, p->in)
		   : o->inputs ? (fail_messages(w), false)
			       : bench_make_inputs(&p->r, p->in));
	ok = ok && runner_prepare(&p->r, p->in) && time_calls(p, p->in) && profile(p, p->in);
	if (!ok)
		return false;
	progress_show("measuring the machine");
	p->peak = peak_measure(o->threads);
	find_processor(p->processor);
	if (p->r.w)
		return ask_compiler(p);
	p->counts = table_counts(&p->r);
	return p->counts || (fail("out of memory"), false);
}

/* ---- questions ---- */

double report_total(const Report *p)
{
	double total = 0;
	for (uint32_t k = 0; k < p->nkernel; k++)
		total += p->seconds[k];
	return total;
}

WeftKernelInfo report_kernel(const Report *p, uint32_t k)
{
	return p->counts->kernel[k];
}

ReportLimit report_limit(const Report *p, uint32_t k)
{
	const WeftKernelInfo i = report_kernel(p, k);
	const double t = p->seconds[k], launches = p->launches[k];
	ReportLimit l = {.by = ""};
	if (!(launches > 0) || !(i.flops > 0 || i.bytes > 0))
		return l;
	const double beyond = i.bytes / launches - p->peak.cache,
		     memory = beyond > 0 ? launches * beyond / p->peak.bytes : 0,
		     compute = i.flops / p->peak.flops;
	const bool fits = beyond <= 0 && i.flops * p->peak.bytes < i.bytes * p->peak.flops;
	/* what is multiplied in fewer bits is faster than the peak of f32 */
	if (!fits && compute > memory && t > 0 && compute > 1.05 * t)
		return l;
	l.by = fits ? "cache" : memory > compute ? "memory" : "compute";
	l.least = fits ? 0 : fmax(memory, compute);
	if (t > 0) {
		l.fraction = l.least / t;
		l.memory = i.bytes / t / p->peak.bytes;
	}
	return l;
}

/* Returns the file's part of "net.py:31 in layer" and sets *line to 31; 0: there is no number. */
static int line_of(const char *text, int *line)
{
	const char *in = strstr(text, " in "), *end = in ? in : text + strlen(text), *p = end;
	*line = 0;
	while (p > text && p[-1] >= '0' && p[-1] <= '9')
		p--;
	if (p == end || p == text || p[-1] != ':')
		return 0;
	*line = atoi(p);
	return (int)(p - 1 - text);
}

const char *report_place(const Report *p, uint32_t k, char out[300])
{
	const WeftKernelInfo i = report_kernel(p, k);
	int line, least = 0, most = 0;
	const int file = i.line ? line_of(i.line, &line) : 0;
	snprintf(out, 300, "%.*s", i.line ? (int)strcspn(i.line, " ") : 0, i.line ? i.line : "");
	if (!file || !p->details)
		return out;
	least = most = line;
	const WeftKernelDetails *d = &p->details->kernel[k];
	for (uint32_t j = 0; j < d->nop; j++) {
		const uint32_t n = d->op[j].node;
		const char *text = n ? p->details->node[n - 1].line : "";
		if (line_of(text, &line) != file || strncmp(text, i.line, (size_t)file) != 0)
			continue;
		least = line < least ? line : least;
		most = line > most ? line : most;
	}
	if (most > least)
		snprintf(out, 300, "%.*s:%d-%d", file, i.line, least, most);
	return out;
}
