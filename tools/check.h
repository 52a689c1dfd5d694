/* Private to `weft check`. */
#ifndef WEFT_TOOLS_CHECK_H
#define WEFT_TOOLS_CHECK_H

#include <sys/types.h>

#include "compare.h"

typedef struct {
	RunBackend backend;
	bool weights; /* compare the checksum of weight files (RunnerOptions.verify) */
	int threads[8], nthreads;
	const char *sizes, *runner;
	WeftOptions compile;
	LoadArgs load;
	const char *entry; /* of models that are compiled */
	const char *device; /* RunnerOptions.device */
	ModeArgs mode;     /* its file is each case's own */
} CheckOptions;

/* One model with its references, which one process checks. */
typedef struct {
	char *model, **ref;
	const char *entry; /* NULL: the model's only one */
	int nref;
	FILE *records, *errors;
	pid_t pid;
	int status;
	bool done;
} CheckCase;

/* What the process reports: each output that is wrong or has a ratio, and each reference as a
 * whole. */
typedef struct {
	bool is_ref;
	bool skipped; /* the reference has nothing for --mode */
	int ref;      /* the number of the reference */
	double seconds;
	Comparison c;
	char text[400];
} CheckRecord;

/* Runs the case in this process: writes a CheckRecord for each report into case->records. */
void check_case(CheckCase *, const CheckOptions *);

#endif
