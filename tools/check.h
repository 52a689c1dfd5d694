/* Private to `weft check`. */
#ifndef WEFT_TOOLS_CHECK_H
#define WEFT_TOOLS_CHECK_H

#include <sys/types.h>

#include "compare.h"

typedef struct {
	RunBackend backend;
	int jobs;     /* models at once */
	bool progress; /* --progress */
	bool weights; /* compare the checksum of weight files (RunnerOptions.verify) */
	int threads[8], nthreads;
	const char *sizes, *runner;
	WeftOptions compile;
	LoadArgs load;
	const char *entry; /* of models that are compiled */
	const char *device; /* RunnerOptions.device */
	ModeArgs mode;     /* its file is each case's own */
	bool trace_rounding;          /* --trace-rounding */
	const char *against, *python; /* another system whose results are the references, and the
	                                 Python environment that has it; NULL: none */
} CheckOptions;

/* One model with its references, which one process checks. */
typedef struct {
	char *model, **ref;
	const char *entry; /* NULL: the model's only one */
	char made[300];    /* how inputs were made up; "" if none were */
	int nref;
	FILE *records, *errors;
	pid_t pid;
	int status;
	bool done;
} CheckCase;

/* What the process reports: each output that is wrong or has a ratio, and behind them their
 * reference as a whole (with --sizes: each combination of sizes). */
typedef struct {
	bool is_ref;
	bool skipped; /* the reference has nothing for --mode */
	bool rounded; /* products round operands to 8 bits */
	int ref;      /* the number of the reference */
	double seconds;
	double theirs; /* the largest error of PyTorch, of autocast with --precision; -1: not
	                  known */
	Comparison c;  /* of a whole: ok if all are; ratio, share and the errors of the output or
			  state where they are largest, `of` */
	char of[80];   /* "output 1"; "" where nothing was compared, or all types only */
	char text[400]; /* of an output: the comparison; of a whole: its sizes, its file if there
			   are several, or why it failed; may be "" */
} CheckRecord;

/* References that the process made, in place of those that the case had. */
typedef struct {
	char **own;
	char (*path)[256];
	int nown;
} AgainstFiles;

/* Replaces the references of the case, with --against, which are inputs then, by files of the
 * other system's results. Returns false after a message. against_end, which follows also then,
 * removes the files and undoes that. */
bool against_begin(CheckCase *, const CheckOptions *, AgainstFiles *);
void against_end(CheckCase *, AgainstFiles *);

/* Returns what integer inputs of a model file may be: a line "N NAME" for each input in its order,
 * of which 0 to N - 1 are indices of the smallest table that it indexes, or of the classes of a
 * one-hot code; N is 0 where no operator says so. The caller frees the text, which is empty if the
 * file cannot be read: no message is printed. NULL without memory. */
char *bounds_of_inputs(const char *path);

/* Says in text[size], a sentence, whether results of the graph on these inputs may differ because a
 * value is rounded to another integer, or to another number of 8 bits: which node is the first
 * whose operand is so near the middle that some units in the last place decide, and how much the
 * results change then. nout: the number of weft_outputs. Messages of the Weft say more where it
 * fails. */
void trace_rounding(Weft *, const WeftGraph *, const WeftTensor *in, uint32_t nin, uint32_t nout,
		    char *text, size_t size);

/* Runs the case in this process: opens the model, checks its references in order (without any, only
 * that it can be opened), and writes each CheckRecord into case->records, a stream of the caller's.
 * Prints messages on stderr. A failure is a record, too: each reference has one that says
 * is_ref. */
void check_case(CheckCase *, const CheckOptions *);

#endif
