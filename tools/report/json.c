/* A report as JSON: docs/report.md, field by field. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/report.h"

/* Writes "model.py:31 in encoder.0" as its two parts. */
static void put_line(Json *j, const char *line)
{
	const char *in = line ? strstr(line, " in ") : NULL;
	char text[1000];
	if (!line || !*line)
		return;
	snprintf(text, sizeof text, "%.*s", in ? (int)(in - line) : 999, line);
	json_put_string(j, "line", text);
	if (in)
		json_put_string(j, "module", in + strlen(" in "));
}

/* ---- what ran ---- */

static void put_tensors(const Report *p, Json *j, const char *key, bool inputs)
{
	const Runner *r = &p->r;
	json_open(j, key, '[');
	for (uint32_t k = 0; k < (inputs ? r->ninput : r->noutput); k++) {
		const WeftTensorInfo *t = inputs ? runner_input(r, k) : runner_output(r, k);
		char dtype[16], shape[600] = "";
		size_t n = 0;
		for (uint32_t d = 0; d < t->rank && n < sizeof shape; d++)
			n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%s", d ? ", " : "",
					      tensor_dim(r->model, t, d)->text);
		json_open(j, NULL, '{');
		json_put_string(j, "name", t->name);
		json_put_string(j, "dtype", dtype_text(t->dtype, dtype));
		json_put_string(j, "shape", shape);
		json_put_string(j, "role", t->role);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_model(const Report *p, Json *j)
{
	const Runner *r = &p->r;
	json_open(j, "model", '{');
	json_put_string(j, "path", p->o->model);
	json_put_string(j, "entry", r->entry->name);
	if (p->o->inputs)
		json_put_string(j, "inputs_from", p->o->inputs);
	put_tensors(p, j, "inputs", true);
	put_tensors(p, j, "outputs", false);
	json_open(j, "sizes", '{');
	for (uint32_t k = 0; k < r->entry->nsymbol; k++)
		json_put_number(j, weft_symbol(r->model, r->entry, k)->name,
				(double)r->sizes->slot[k]);
	json_close(j, '}');
	json_close(j, '}');
}

static void put_machine(const Report *p, Json *j)
{
	const Peak *peak = &p->peak;
	json_open(j, "machine", '{');
	json_put_string(j, "processor", p->processor);
	json_put_number(j, "threads", p->o->threads);
	json_put_number(j, "flops", peak->flops);
	json_put_number(j, "bandwidth", peak->bytes);
	json_put_number(j, "cache", peak->cache);
	json_put_number(j, "had_processor", peak->wall > 0 ? fmin(peak->cpu / peak->wall, 1) : 1);
	json_close(j, '}');
}

static void put_totals(const Report *p, Json *j)
{
	const WeftReport *c = p->compiled;
	json_open(j, "totals", '{');
	json_put_number(j, "seconds", p->call.median);
	json_put_number(j, "least", p->call.min);
	json_put_number(j, "p99", p->call.p99);
	json_put_number(j, "calls", p->call.runs);
	json_put_number(j, "profiled", p->profiled);
	json_put_number(j, "kernels_seconds", report_total(p));
	json_put_number(j, "kernels", p->nkernel);
	json_put_number(j, "flops", p->counts->flops);
	json_put_number(j, "bytes", p->counts->bytes);
	json_put_number(j, "weight_bytes", (double)p->r.model->weights_bytes);
	json_put_number(j, "workspace_bytes", (double)p->r.sizes->workspace_bytes);
	json_put_number(j, "process_bytes", peak_bytes());
	if (c) {
		const WeftEntryReport *e = &c->entry[p->r.which];
		json_put_number(j, "operators", e->operators);
		json_put_number(j, "functions", c->distinct);
		json_put_number(j, "copied_bytes", (double)c->copied_bytes);
		json_put_number(j, "state_bytes", (double)c->state_bytes);
		json_put_number(j, "saved_bytes", (double)e->saved_bytes);
	}
	json_close(j, '}');
}

static void put_phases(const Report *p, Json *j)
{
	json_open(j, "compilation", '[');
	for (uint32_t k = 0; p->compiled && k < p->compiled->nphase; k++) {
		json_open(j, NULL, '{');
		json_put_string(j, "name", p->compiled->phase[k].name);
		json_put_number(j, "seconds", p->compiled->phase[k].seconds);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_guards(const Report *p, Json *j)
{
	uint32_t n = 0;
	const char *const *guard = p->r.one ? weft_guards(p->r.w, p->r.one, &n) : NULL;
	json_open(j, "guards", '[');
	for (uint32_t k = 0; k < n; k++)
		json_put_string(j, NULL, guard[k]);
	json_close(j, ']');
}

/* ---- nodes ---- */

static void put_node(Json *j, const WeftNodeDetails *n, uint32_t id)
{
	json_open(j, NULL, '{');
	json_put_number(j, "id", id);
	json_put_string(j, "name", n->name);
	json_put_string(j, "op", n->op);
	json_put_string(j, "kind", n->kind);
	json_put_string(j, "type", n->type);
	json_put_number(j, "bytes", n->bytes);
	if (*n->user_name)
		json_put_string(j, "user_name", n->user_name);
	put_line(j, n->line);
	if (n->around)
		json_put_number(j, "around", n->around);
	json_open(j, "operands", '[');
	for (uint32_t k = 0; k < n->noperand; k++)
		json_put_number(j, NULL, n->operand[k]);
	json_close(j, ']');
	json_close(j, '}');
}

static void put_nodes(const Report *p, Json *j)
{
	const WeftDetails *d = p->details;
	json_open(j, "nodes", '[');
	for (uint32_t k = 0; d && k < d->nnode; k++)
		put_node(j, &d->node[k], k + 1);
	json_close(j, ']');
}

/* ---- kernels ---- */

static void put_operators(Json *j, const WeftKernelDetails *d)
{
	json_open(j, "operators", '[');
	for (uint32_t k = 0; k < d->nop; k++) {
		json_open(j, NULL, '{');
		json_put_string(j, "name", d->op[k].name);
		json_put_string(j, "op", d->op[k].op);
		json_put_string(j, "type", d->op[k].type);
		if (d->op[k].node)
			json_put_number(j, "node", d->op[k].node);
		if (d->op[k].again)
			json_put_bool(j, "again", true);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_access(Json *j, const char *key, const WeftKernelDetails *d, bool writes)
{
	json_open(j, key, '[');
	for (uint32_t k = 0; k < d->naccess; k++)
		if (writes ? d->access[k].written : d->access[k].read)
			json_put_number(j, NULL, d->access[k].buffer);
	json_close(j, ']');
}

static void put_lines_of(Json *j, const char *key, const char *text)
{
	char line[1000];
	json_open(j, key, '[');
	for (const char *s = text; s && *s;) {
		const size_t n = strcspn(s, "\n");
		snprintf(line, sizeof line, "%.*s", (int)n, s);
		json_put_string(j, NULL, line);
		s += n + (s[n] == '\n');
	}
	json_close(j, ']');
}

static void put_schedule(Json *j, const WeftKernelInfo *i)
{
	json_put_string(j, "algorithm", i->algorithm);
	if (i->why)
		json_put_string(j, "why", i->why);
	if (i->stored)
		json_put_string(j, "stored", i->stored);
	put_lines_of(j, "plan", i->plan);
	json_open(j, "refused", '[');
	for (uint32_t k = 0; k < i->nrefused; k++) {
		json_open(j, NULL, '{');
		json_put_string(j, "schedule", i->refused[k].schedule);
		json_put_string(j, "why", i->refused[k].why);
		json_put_bool(j, "near", i->refused[k].near);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_measured(const Report *p, Json *j, uint32_t k, double total)
{
	const ReportLimit l = report_limit(p, k);
	json_put_number(j, "seconds", p->seconds[k]);
	json_put_number(j, "share", total > 0 ? p->seconds[k] / total : 0);
	json_put_number(j, "launches", p->launches[k]);
	if (!*l.by)
		return;
	json_put_string(j, "limit", l.by);
	if (l.least > 0) {
		json_put_number(j, "limit_seconds", l.least);
		json_put_number(j, "fraction", l.fraction);
	}
	json_put_number(j, "memory_fraction", l.memory);
}

static void put_kernel(const Report *p, Json *j, uint32_t k, double total)
{
	const WeftKernelInfo i = report_kernel(p, k);
	char place[300];
	json_open(j, NULL, '{');
	json_put_number(j, "id", k + 1);
	json_put_string(j, "name", i.name);
	if (i.function)
		json_put_string(j, "function", i.function);
	put_line(j, i.line);
	json_put_string(j, "place", report_place(p, k, place));
	json_put_number(j, "lines", i.nline);
	put_measured(p, j, k, total);
	json_put_number(j, "flops", i.flops);
	json_put_number(j, "bytes", i.bytes);
	if (i.seconds > 0)
		json_put_number(j, "predicted", i.seconds);
	put_schedule(j, &i);
	if (p->details) {
		const WeftKernelDetails *d = &p->details->kernel[k];
		json_put_number(j, "node", d->node);
		json_put_bool(j, "joins", d->joins);
		json_put_bool(j, "user", d->user);
		put_operators(j, d);
		put_access(j, "reads", d, false);
		put_access(j, "writes", d, true);
	}
	json_close(j, '}');
}

static void put_kernels(const Report *p, Json *j)
{
	const double total = report_total(p);
	json_open(j, "kernels", '[');
	for (uint32_t k = 0; k < p->nkernel; k++)
		put_kernel(p, j, k, total);
	json_close(j, ']');
}

/* ---- sources ---- */

static bool is_earlier(const Report *p, uint32_t k)
{
	const char *function = report_kernel(p, k).function;
	for (uint32_t i = 0; i < k; i++)
		if (!strcmp(report_kernel(p, i).function, function))
			return true;
	return false;
}

typedef struct {
	double seconds;
	uint32_t kernel;
} Ranked;

static int by_time(const void *pa, const void *pb)
{
	const Ranked *a = pa, *b = pb;
	return a->seconds != b->seconds ? (a->seconds < b->seconds) - (a->seconds > b->seconds)
					: (a->kernel > b->kernel) - (a->kernel < b->kernel);
}

/* Writes the code of kernels, the slowest first, until there is too much: one function at most
 * MOST_SOURCE bytes, all together at most MOST_SOURCES. */
static void put_sources(const Report *p, Json *j)
{
	enum { MOST_SOURCE = 100000, MOST_SOURCES = 1200000, MOST_FUNCTIONS = 2000 };
	size_t all = 0;
	Ranked *order = calloc(p->nkernel + 1, sizeof *order);
	uint32_t n = 0;
	json_open(j, "sources", '{');
	const bool wanted = order && p->details && !p->o->no_source;
	for (uint32_t k = 0; wanted && k < p->nkernel && n < MOST_FUNCTIONS; k++)
		if (report_kernel(p, k).function && !is_earlier(p, k))
			order[n++] = (Ranked){p->seconds[k], k};
	if (n)
		qsort(order, n, sizeof *order, by_time);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t k = order[i].kernel;
		const char *text = weft_kernel_source(p->r.w, p->r.which, k);
		const size_t length = text ? strlen(text) : 0;
		if (!length || length > MOST_SOURCE || all + length > MOST_SOURCES)
			continue;
		all += length;
		json_put_string(j, report_kernel(p, k).function, text);
	}
	json_close(j, '}');
	free(order);
}

/* ---- memory ---- */

static void put_buffers(const Report *p, Json *j)
{
	const WeftDetails *d = p->details;
	char dtype[16];
	json_open(j, "buffers", '[');
	for (uint32_t k = 0; d && k < d->nbuffer; k++) {
		const WeftBufferDetails *b = &d->buffer[k];
		json_open(j, NULL, '{');
		json_put_number(j, "id", k + 1);
		json_put_string(j, "name", b->name);
		json_put_string(j, "kind", b->kind);
		json_put_string(j, "dtype", dtype_text(b->dtype, dtype));
		json_put_number(j, "bytes", b->bytes);
		if (b->padding > 0)
			json_put_number(j, "padding", b->padding);
		if (b->offset >= 0)
			json_put_number(j, "offset", b->offset);
		if (b->first) {
			json_put_number(j, "first", b->first);
			json_put_number(j, "last", b->last);
		}
		json_close(j, '}');
	}
	json_close(j, ']');
}

/* Writes how many bytes of the workspace, and of rooms, are in use while each kernel runs. */
static void put_memory(const Report *p, Json *j)
{
	const WeftDetails *d = p->details;
	double *live = calloc(p->nkernel + 2, sizeof *live), now_live = 0, most = 0;
	uint32_t at = 0;
	for (uint32_t k = 0; live && d && k < d->nbuffer; k++)
		if (d->buffer[k].first) {
			live[d->buffer[k].first - 1] += d->buffer[k].bytes;
			live[d->buffer[k].last] -= d->buffer[k].bytes;
		}
	json_open(j, "memory", '{');
	json_open(j, "live", '[');
	for (uint32_t k = 0; live && d && k < p->nkernel; k++) {
		now_live += live[k];
		json_put_number(j, NULL, now_live);
		if (now_live > most) {
			most = now_live;
			at = k + 1;
		}
	}
	json_close(j, ']');
	json_put_number(j, "peak", most);
	json_put_number(j, "peak_kernel", at);
	json_close(j, '}');
	free(live);
}

/* ---- the rest ---- */

static void put_findings(const Report *p, Json *j)
{
	json_open(j, "findings", '[');
	for (uint32_t k = 0; k < p->nfinding; k++) {
		const ReportFinding *f = &p->finding[k];
		json_open(j, NULL, '{');
		json_put_string(j, "kind", f->kind);
		if (f->kernel)
			json_put_number(j, "kernel", f->kernel);
		json_put_number(j, "seconds", f->seconds);
		json_put_string(j, "text", f->text);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_timeline(const Report *p, Json *j)
{
	json_open(j, "timeline", '{');
	json_put_bool(j, "cut", p->cut);
	json_open(j, "launches", '[');
	for (uint32_t k = 0; k < p->nevent; k++) {
		json_open(j, NULL, '[');
		json_put_number(j, NULL, p->event[k].kernel + 1);
		json_put_number(j, NULL, 1e-9 * round(1e9 * p->event[k].start));
		json_put_number(j, NULL, 1e-9 * round(1e9 * p->event[k].seconds));
		json_close(j, ']');
	}
	json_close(j, ']');
	json_close(j, '}');
}

void report_json(const Report *p, FILE *f)
{
	Json j = {.f = f, .line_from = 2};
	json_open(&j, NULL, '{');
	json_put_string(&j, "schema", "weft-report");
	json_put_number(&j, "version", REPORT_VERSION);
	json_put_string(&j, "weft", WEFT_VERSION);
	json_put_string(&j, "target",
			p->details ? p->details->target : p->r.model->manifest->target);
	put_model(p, &j);
	put_machine(p, &j);
	put_totals(p, &j);
	put_findings(p, &j);
	put_kernels(p, &j);
	put_nodes(p, &j);
	put_buffers(p, &j);
	put_memory(p, &j);
	put_guards(p, &j);
	put_phases(p, &j);
	put_timeline(p, &j);
	put_sources(p, &j);
	json_close(&j, '}');
}

/* ---- a trace ---- */

void report_trace(const Report *p, FILE *f)
{
	Json j = {.f = f, .line_from = 2};
	json_open(&j, NULL, '{');
	json_put_string(&j, "displayTimeUnit", "ns");
	json_open(&j, "traceEvents", '[');
	json_open(&j, NULL, '{');
	json_put_string(&j, "name", "process_name");
	json_put_string(&j, "ph", "M");
	json_put_number(&j, "pid", 1);
	json_open(&j, "args", '{');
	json_put_string(&j, "name", p->o->model);
	json_close(&j, '}');
	json_close(&j, '}');
	for (uint32_t k = 0; k < p->nevent; k++) {
		const ReportEvent *e = &p->event[k];
		const WeftKernelInfo i = report_kernel(p, e->kernel);
		json_open(&j, NULL, '{');
		json_put_string(&j, "name", i.name);
		json_put_string(&j, "cat", "kernel");
		json_put_string(&j, "ph", "X");
		json_put_number(&j, "pid", 1);
		json_put_number(&j, "tid", 1);
		json_put_number(&j, "ts", 1e6 * e->start);
		json_put_number(&j, "dur", 1e6 * e->seconds);
		json_open(&j, "args", '{');
		json_put_number(&j, "kernel", e->kernel + 1);
		json_put_string(&j, "algorithm", i.algorithm);
		if (i.line)
			json_put_string(&j, "line", i.line);
		json_put_number(&j, "flops", i.flops);
		json_put_number(&j, "bytes", i.bytes);
		json_close(&j, '}');
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
}
