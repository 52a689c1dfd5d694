/* Private to `weft report`: what is known of a model that was compiled and measured, and its views.
 * Kernels are numbered from 1, as in docs/report.md. */
#ifndef WEFT_TOOLS_REPORT_H
#define WEFT_TOOLS_REPORT_H

#include "tools/bench/bench.h"
#include "tools/tool.h"

enum { REPORT_VERSION = 1 }; /* of the schema */

typedef struct {
	const char *model, *inputs, *entry; /* paths; NULL: made-up inputs; the only entry */
	const char *output, *trace;         /* paths; NULL: not written */
	int threads;
	double seconds; /* for which calls are timed */
	bool json, no_source;
	RunBackend backend;
	WeftOptions compile;
	LoadArgs load;
} ReportOptions;

/* A launch of one call that was recorded. Times in seconds, from the begin of the call on. */
typedef struct {
	uint32_t kernel; /* from 0 */
	double start, seconds;
} ReportEvent;

/* A sentence that the numbers prove. */
typedef struct {
	const char *kind; /* "slow", "memory", "small", ... (docs/report.md) */
	uint32_t kernel;  /* from 1; 0: of no kernel alone */
	double seconds;   /* of one call that the sentence is about; 0: of none */
	char text[600];
} ReportFinding;

typedef struct {
	const ReportOptions *o;
	Runner r;
	WeftTensor *in;             /* the inputs, r.ninput */
	const WeftDetails *details; /* NULL: of a shared object */
	const WeftReport *counts;   /* of the entry; NULL: at these sizes they are not known */
	const WeftReport *compiled; /* the whole compilation; NULL: of a shared object */
	uint32_t nkernel;
	double *seconds, *launches; /* by kernel: the least of the runs; of one run */
	BenchRow call;              /* min, median, p99 and runs of whole calls */
	double profiled;            /* seconds of the fastest call that was profiled */
	Peak peak;
	ReportEvent *event; /* of that call */
	uint32_t nevent;
	bool cut; /* the call had more launches than are recorded */
	ReportFinding *finding;
	uint32_t nfinding;
	char processor[128]; /* "": not known */
} Report;

/* Compiles or loads the model, times calls and kernels, and fills in the report but for the
 * findings. Returns false after a message. */
bool report_measure(Report *, const ReportOptions *);
/* Fills in the findings, those with the most time first. Returns false after a message. */
bool report_findings(Report *);
/* What limits a kernel, and how near it is to the limit. */
typedef struct {
	const char *by;  /* "compute"; "memory"; "cache": the speed of the caches, which is not
			    measured; "": there is nothing to compare with */
	double least;    /* seconds that the limit allows; 0: not known */
	double fraction; /* of the limit; 0: not known */
	double memory;   /* bytes per second, as a part of what memory delivers; above 1 where the
			    caches deliver */
} ReportLimit;
/* Returns the limit of kernel k, from 0. */
ReportLimit report_limit(const Report *, uint32_t k);
/* Returns the sum of all kernels' times. */
double report_total(const Report *);
/* Returns the info of kernel k, from 0: counted if counts are known. */
WeftKernelInfo report_kernel(const Report *, uint32_t k);
/* Writes the lines of the operators of kernel k as "net.py:30-42", or its line, into out. Returns
 * out. */
const char *report_place(const Report *, uint32_t k, char out[300]);
/* Writes the report as JSON. */
void report_json(const Report *, FILE *);
/* Prints a summary on stdout. */
void report_text(const Report *);
/* Writes a trace of the recorded call (Chrome's trace events), which Perfetto opens. */
void report_trace(const Report *, FILE *);
/* Writes a page that shows JSON data of n bytes: a report, or a difference. */
void report_page(FILE *, const char *data, size_t n);
/* Writes the page of a file with a report, or a difference, in JSON. Returns an exit status. */
int report_convert(const char *data, const char *output);
/* Compares two files with reports: prints the difference on stdout, as JSON or as text, or writes
 * it into output, a page or JSON (NULL: none). Returns an exit status. */
int report_diff(const char *before, const char *after, const char *output, bool json);

/* A text of a file, in memory. */
typedef struct {
	FILE *f;
	char *data;
	size_t n;
} ReportText;
/* Begins a text: what is written to t->f. Returns false after a message. */
bool report_begin(ReportText *t);
/* Ends the text: sets data and n. Returns false after a message. The caller frees data. */
bool report_end(ReportText *t);
/* Writes a file, whole or not at all. Returns false after a message. */
bool report_write(const char *path, const char *data, size_t n);

#endif
