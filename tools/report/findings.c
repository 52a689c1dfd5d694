/* Sentences about a report. Each says what was measured or counted, and nothing else. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/report.h"

#define SMALL 5e-6 /* seconds of a launch, of which starting it is a good part */

enum { MOST_FINDINGS = 64, NAMED = 5 /* kernels that one kind of sentence names */ };

static ReportFinding *add(Report *p, const char *kind, uint32_t kernel, double seconds)
{
	ReportFinding *f = &p->finding[p->nfinding];
	p->nfinding += p->nfinding < MOST_FINDINGS;
	*f = (ReportFinding){.kind = kind, .kernel = kernel, .seconds = seconds};
	return f;
}

__attribute__((format(printf, 2, 3))) static void say(ReportFinding *f, const char *fmt, ...)
{
	const size_t n = strlen(f->text);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(f->text + n, sizeof f->text - n, fmt, ap);
	va_end(ap);
}

static const char *time_text(double seconds, char out[32])
{
	if (seconds >= 1)
		snprintf(out, 32, "%.3g s", seconds);
	else if (seconds >= 1e-3)
		snprintf(out, 32, "%.3g ms", 1e3 * seconds);
	else if (seconds >= 1e-6)
		snprintf(out, 32, "%.3g us", 1e6 * seconds);
	else
		snprintf(out, 32, "%.3g ns", 1e9 * seconds);
	return out;
}

/* Begins with "Kernel 17, conv2d_3_relu (net.py:30-42 in layer.0),". */
static void say_kernel(const Report *p, ReportFinding *f, uint32_t k)
{
	char place[300];
	const WeftKernelInfo i = report_kernel(p, k);
	const char *at = report_place(p, k, place), *in = i.line ? strstr(i.line, " in ") : NULL;
	say(f, "Kernel %u, %.60s", k + 1, i.name);
	if (*at)
		say(f, " (%.100s%.100s)", at, in ? in : "");
	say(f, ",");
}

/* ---- kernels one by one ---- */

/* Returns the bytes of f32 weights that a kernel reads. */
static double wide_weights(const Report *p, uint32_t k)
{
	double bytes = 0;
	const WeftKernelDetails *d = p->details ? &p->details->kernel[k] : NULL;
	for (uint32_t i = 0; d && i < d->naccess; i++) {
		const WeftBufferDetails *b = &p->details->buffer[d->access[i].buffer - 1];
		if (d->access[i].read && !strcmp(b->kind, "weights") &&
		    b->dtype.code == WEFT_FLOAT && b->dtype.bits == 32)
			bytes += b->bytes;
	}
	return bytes;
}

static void say_limit(const Report *p, ReportFinding *f, uint32_t k)
{
	const ReportLimit l = report_limit(p, k);
	const WeftKernelInfo i = report_kernel(p, k);
	const double t = p->seconds[k];
	char a[32], b[32];
	if (!strcmp(l.by, "memory")) {
		say(f, " It reads and writes %sB at %.0f %% of what memory delivers",
		    human(i.bytes, a), 100 * l.memory);
		const double wide = wide_weights(p, k);
		if (wide >= 0.5 * i.bytes && i.bytes > 0)
			say(f, "; %sB of them are f32 weights, which bf16 would halve",
			    human(wide, b));
		say(f, ".");
	} else if (!strcmp(l.by, "cache") && t > 0) {
		say(f, " It reads and writes %sB, which fit into the caches, at %sB/s.",
		    human(i.bytes, a), human(i.bytes / t, b));
	} else if (i.flops > 0 && t > 0 && !*l.by) {
		say(f, " It computes %sFLOP at %sFLOP/s.", human(i.flops, a),
		    human(i.flops / t, b));
	} else if (i.flops > 0 && t > 0) {
		say(f, " It computes %sFLOP at %.0f %% of the machine's %sFLOP/s.",
		    human(i.flops, a), 100 * i.flops / t / p->peak.flops, human(p->peak.flops, b));
	} else if (i.bytes > 0 && t > 0) {
		say(f, " It moves %sB and computes nothing: %sB/s.", human(i.bytes, a),
		    human(i.bytes / t, b));
	}
}

static void say_refusal(const Report *p, ReportFinding *f, uint32_t k)
{
	const WeftKernelInfo i = report_kernel(p, k);
	for (uint32_t r = 0; r < i.nrefused; r++)
		if (i.refused[r].near && strcmp(i.refused[r].schedule, "generic") != 0) {
			say(f, " Not by %s: %.200s.", i.refused[r].schedule, i.refused[r].why);
			return;
		}
}

typedef struct {
	double key;
	uint32_t k;
} Place;

static int by_key(const void *pa, const void *pb)
{
	const Place *a = pa, *b = pb;
	return a->key != b->key ? (a->key < b->key) - (a->key > b->key)
				: (a->k > b->k) - (a->k < b->k);
}

/* Whether a kernel is far from its limit, or takes much more than was predicted. */
static bool is_far(const Report *p, uint32_t k)
{
	const double far = 0.3;
	const ReportLimit l = report_limit(p, k);
	return l.least > 0 && l.fraction < far && p->seconds[k] >= SMALL * p->launches[k];
}

static bool is_mispredicted(const Report *p, uint32_t k)
{
	const double times = 2, predicted = report_kernel(p, k).seconds;
	return p->o->threads == 1 && predicted > 0 && p->seconds[k] > times * predicted;
}

/* Whether the machine was busy while it was measured. */
static bool is_busy(const Report *p)
{
	return p->peak.wall > 0 && p->peak.cpu < 0.9 * p->peak.wall;
}

static bool is_named(const Report *p, uint32_t k)
{
	for (uint32_t i = 0; i < p->nfinding; i++)
		if (p->finding[i].kernel == k + 1 && strcmp(p->finding[i].kind, "equal") != 0)
			return true;
	return false;
}

/* Names the kernels with most time. */
static void find_slow(Report *p, const Place *order, double total)
{
	const double worth = 0.03, first = 0.005;
	char t[32];
	for (uint32_t i = 0; i < p->nkernel && i < NAMED; i++) {
		const uint32_t k = order[i].k;
		const double share = p->seconds[k] / total;
		if (share < (i ? worth : first))
			return;
		ReportFinding *f = add(p, "slow", k + 1, p->seconds[k]);
		say_kernel(p, f, k);
		say(f, " takes %s, %.1f %% of the time.", time_text(p->seconds[k], t), 100 * share);
		say_limit(p, f, k);
		if (is_far(p, k))
			say(f, " Its limit would allow %s.",
			    time_text(report_limit(p, k).least, t));
		if (is_far(p, k))
			say_refusal(p, f, k);
		if (!is_busy(p) && is_mispredicted(p, k))
			say(f, " Predicted were %s.", time_text(report_kernel(p, k).seconds, t));
	}
}

static const Report *ranked;

static int by_function(const void *pa, const void *pb)
{
	const Place *a = pa, *b = pb;
	const int c =
		strcmp(report_kernel(ranked, a->k).function, report_kernel(ranked, b->k).function);
	return c ? c : (a->k > b->k) - (a->k < b->k);
}

/* Names the function that takes most time, if several kernels share it. */
static void find_equal(Report *p, const Place *order, double total)
{
	const double worth = 0.05;
	Place *sorted = calloc(p->nkernel + 1, sizeof *sorted);
	double most = 0, seconds = 0;
	uint32_t at = 0, n = 0;
	char t[32];
	if (!sorted || !p->details) {
		free(sorted);
		return;
	}
	memcpy(sorted, order, p->nkernel * sizeof *sorted);
	ranked = p;
	qsort(sorted, p->nkernel, sizeof *sorted, by_function);
	for (uint32_t i = 0, first = 0; i < p->nkernel; i++) {
		const uint32_t k = sorted[i].k;
		if (strcmp(report_kernel(p, sorted[first].k).function,
			   report_kernel(p, k).function) != 0) {
			first = i;
			seconds = 0;
		}
		seconds += p->seconds[k];
		if (seconds > most && i > first) {
			most = seconds;
			at = first;
			n = i + 1 - first;
		}
	}
	if (most >= worth * total) {
		ReportFinding *f = add(p, "equal", sorted[at].k + 1, most);
		say_kernel(p, f, sorted[at].k);
		say(f, " and %u equal kernel%s take %s together, %.1f %% of the time.", n - 1,
		    n == 2 ? "" : "s", time_text(most, t), 100 * most / total);
	}
	free(sorted);
}

/* Names kernels that are far from what limits them: those in which most time lies between the
 * two. */
static void find_far(Report *p, double total)
{
	const double worth = 0.01;
	Place *order = calloc(p->nkernel + 1, sizeof *order);
	uint32_t n = 0;
	char t[32], least[32];
	for (uint32_t k = 0; order && k < p->nkernel; k++) {
		const ReportLimit l = report_limit(p, k);
		const double lost = p->seconds[k] - l.least;
		if (is_far(p, k) && lost > worth * total && !is_named(p, k))
			order[n++] = (Place){lost, k};
	}
	if (n)
		qsort(order, n, sizeof *order, by_key);
	for (uint32_t i = 0; i < n && i < NAMED; i++) {
		const uint32_t k = order[i].k;
		const ReportLimit l = report_limit(p, k);
		ReportFinding *f = add(p, "far", k + 1, order[i].key);
		say_kernel(p, f, k);
		say(f, " is at %.0f %% of its limit: %s, where %s would allow %s.",
		    100 * l.fraction, time_text(p->seconds[k], t),
		    !strcmp(l.by, "memory") ? "memory" : "arithmetic", time_text(l.least, least));
		say_refusal(p, f, k);
	}
	free(order);
}

static void find_mispredicted(Report *p, const Place *order, double total)
{
	const double worth = 0.03;
	char t[32], want[32];
	uint32_t n = 0;
	for (uint32_t i = 0; i < p->nkernel && n < NAMED; i++) {
		const uint32_t k = order[i].k;
		const double predicted = report_kernel(p, k).seconds;
		if (is_busy(p) || !is_mispredicted(p, k) || p->seconds[k] < worth * total ||
		    is_named(p, k))
			continue;
		ReportFinding *f = add(p, "predicted", k + 1, p->seconds[k] - predicted);
		say_kernel(p, f, k);
		say(f, " takes %.1f times what was predicted: %s instead of %s.",
		    p->seconds[k] / predicted, time_text(p->seconds[k], t),
		    time_text(predicted, want));
		n++;
	}
}

static void find_user(Report *p, double total)
{
	char t[32];
	for (uint32_t k = 0; p->details && k < p->nkernel; k++) {
		if (!p->details->kernel[k].user || p->seconds[k] < 0.001 * total)
			continue;
		ReportFinding *f = add(p, "library", k + 1, p->seconds[k]);
		say_kernel(p, f, k);
		say(f, " is a function outside of the compiler's kernels (%.80s): %s, %.1f %%.",
		    report_kernel(p, k).algorithm, time_text(p->seconds[k], t),
		    100 * p->seconds[k] / total);
	}
}

/* ---- kernels together ---- */

static void find_copies(Report *p, double total)
{
	double seconds = 0, bytes = 0;
	uint32_t n = 0;
	char t[32], b[32];
	for (uint32_t k = 0; p->details && k < p->nkernel; k++) {
		const WeftKernelInfo i = report_kernel(p, k);
		if (p->details->kernel[k].user || i.stored || i.flops > 0)
			continue;
		n++;
		seconds += p->seconds[k];
		bytes += i.bytes;
	}
	if (seconds < 0.005 * total)
		return;
	ReportFinding *f = add(p, "copy", 0, seconds);
	say(f, "%u kernel%s only cop%s: %sB in %s, %.1f %% of the time.", n, n == 1 ? "" : "s",
	    n == 1 ? "ies" : "y", human(bytes, b), time_text(seconds, t), 100 * seconds / total);
}

static void find_small(Report *p, double total)
{
	double seconds = 0;
	uint32_t n = 0;
	char t[32];
	for (uint32_t k = 0; k < p->nkernel; k++)
		if (p->launches[k] > 0 && p->seconds[k] / p->launches[k] < SMALL) {
			n++;
			seconds += p->seconds[k];
		}
	if (n < 3 || seconds < 0.02 * total)
		return;
	ReportFinding *f = add(p, "small", 0, seconds);
	say(f, "%u of %u kernels take less than 5 us a launch: together %s, %.1f %% of the time.",
	    n, p->nkernel, time_text(seconds, t), 100 * seconds / total);
}

static void find_again(Report *p)
{
	uint32_t n = 0, kernels = 0;
	for (uint32_t k = 0; p->details && k < p->nkernel; k++) {
		const WeftKernelDetails *d = &p->details->kernel[k];
		uint32_t here = 0;
		if (k && !strcmp(report_kernel(p, k).name, report_kernel(p, k - 1).name))
			continue; /* a further phase */
		for (uint32_t i = 0; i < d->nop; i++)
			here += d->op[i].again;
		n += here;
		kernels += here > 0;
	}
	if (!n)
		return;
	ReportFinding *f = add(p, "again", 0, 0);
	say(f,
	    "%u operator%s computed again in %u kernel%s, instead of stored by the first kernel "
	    "that needs %s.",
	    n, n == 1 ? " is" : "s are", kernels, kernels == 1 ? "" : "s", n == 1 ? "it" : "them");
}

static void find_outside(Report *p, double total)
{
	const double outside = p->call.median - total;
	char t[32], all[32];
	if (outside < 0.1 * p->call.median)
		return;
	ReportFinding *f = add(p, "outside", 0, outside);
	say(f, "A call takes %s, of which the fastest runs of its kernels explain %s.",
	    time_text(p->call.median, all), time_text(total, t));
}

/* ---- memory ---- */

static void find_padding(Report *p)
{
	double bytes = 0, all = 0;
	uint32_t most = 0;
	char a[32], b[32], c[32];
	const WeftDetails *d = p->details;
	for (uint32_t k = 0; d && k < d->nbuffer; k++) {
		bytes += d->buffer[k].padding;
		all += d->buffer[k].bytes;
		most = d->buffer[k].padding > d->buffer[most].padding ? k : most;
	}
	if (!d || !(bytes > 0) || bytes < 0.005 * all)
		return;
	ReportFinding *f = add(p, "padding", 0, 0);
	say(f, "%sB of the %sB of all buffers are padding, most in %.80s (%sB).", human(bytes, a),
	    human(all, b), d->buffer[most].name, human(d->buffer[most].padding, c));
}

static void find_layouts(Report *p)
{
	char a[32], b[32];
	if (!p->compiled || !p->compiled->copied_bytes)
		return;
	ReportFinding *f = add(p, "weights", 0, 0);
	say(f, "%sB of the %sB of weights are constants that the file has in another layout, too.",
	    human((double)p->compiled->copied_bytes, a),
	    human((double)p->compiled->weight_bytes, b));
}

static void find_floats(Report *p)
{
	const char *s = p->compiled ? p->compiled->floats : "";
	for (int n = 0; *s && n < NAMED; n++) {
		const size_t length = strcspn(s, "\n");
		ReportFinding *f = add(p, "float", 0, 0);
		say(f, "A product of dequantised numbers is one of floats: %.*s.",
		    length < 400 ? (int)length : 400, s);
		s += length + (s[length] == '\n');
	}
}

static void find_busy(Report *p)
{
	const double had = p->peak.wall > 0 ? p->peak.cpu / p->peak.wall : 1;
	if (!is_busy(p))
		return;
	ReportFinding *f = add(p, "busy", 0, 0);
	say(f,
	    "The machine was busy, or has fewer processors than threads: the threads had a "
	    "processor %.0f %% of the time. Times are not those of a quiet machine.",
	    100 * had);
}

bool report_findings(Report *p)
{
	const double total = report_total(p);
	Place *order = calloc(p->nkernel + 1, sizeof *order);
	p->finding = calloc(MOST_FINDINGS + 1, sizeof *p->finding);
	p->nfinding = 0;
	if (!order || !p->finding)
		return free(order), fail("out of memory"), false;
	for (uint32_t k = 0; k < p->nkernel; k++)
		order[k] = (Place){p->seconds[k], k};
	qsort(order, p->nkernel, sizeof *order, by_key);
	find_busy(p);
	if (total > 0) {
		find_slow(p, order, total);
		find_equal(p, order, total);
		find_far(p, total);
		find_mispredicted(p, order, total);
		find_user(p, total);
		find_copies(p, total);
		find_small(p, total);
		find_outside(p, total);
	}
	find_again(p);
	find_padding(p);
	find_layouts(p);
	find_floats(p);
	free(order);
	return true;
}

/* ---- as text ---- */

void report_text(const Report *p)
{
	char a[32], b[32], t[32];
	printf("%s: %s a call (median of %d), %d thread%s\n", p->o->model,
	       time_text(p->call.median, t), p->call.runs, p->o->threads,
	       p->o->threads == 1 ? "" : "s");
	if (p->counts->flops > 0 && p->call.median > 0)
		printf("%sFLOP, %.0f %% of the machine's %sFLOP/s; %u kernel%s\n",
		       human(p->counts->flops, a),
		       100 * p->counts->flops / p->call.median / p->peak.flops,
		       human(p->peak.flops, b), p->nkernel, p->nkernel == 1 ? "" : "s");
	printf("weights %sB, workspace %sB\n", human((double)p->r.model->weights_bytes, a),
	       human((double)p->r.sizes->workspace_bytes, b));
	for (uint32_t k = 0; k < p->nfinding; k++)
		printf("- %s\n", p->finding[k].text);
}
