/* Private to `weft check`. */
#ifndef WEFT_TOOLS_CHECK_H
#define WEFT_TOOLS_CHECK_H

#include <sys/types.h>

#include "compare.h"

typedef struct {
	RunBackend backend;
	bool weights;
	int threads[8], nthreads;
	const char *sizes, *runner;
	WeftOptions compile;
	LoadArgs load;
	const char *entry; /* of models that are compiled */
	ModeArgs mode;     /* its file is each case's own */
} CheckOptions;

/* One model with its references; a process. */
typedef struct {
	char *model, **ref;
	const char *entry; /* NULL: the model's only one */
	int nref;
	FILE *records, *errors;
	pid_t pid;
	int status;
	bool done;
} CheckCase;

/* What the process reports: outputs that failed or have a ratio, and each reference as a whole. */
typedef struct {
	bool is_ref;
	bool skipped; /* it has nothing for --mode */
	int ref;
	double seconds;
	Comparison c;
	char text[400];
} CheckRecord;

/* Run the case, writing records. */
void check_case(CheckCase *, const CheckOptions *);

#endif
