/* Child processes, several at a time, without a shell. */
#ifndef WEFT_DRIVER_ARTIFACT_JOBS_H
#define WEFT_DRIVER_ARTIFACT_JOBS_H

#include "base/array.h"
#include "base/ctx.h"
#include "weft.h"

/* A word that the program's output has when it misses something; what to say then. */
typedef struct {
	const char *word, *text;
} JobMissing;

typedef struct {
	const char *const *argv; /* NULL-terminated; argv[0] is looked up in PATH */
	const char *log;         /* file that receives its output */
	const char *what;        /* for messages */
	const char *makes;       /* file that is there afterwards; NULL: none */
	const char *output;      /* what the user calls that file; NULL: it is a temporary one */
	const JobMissing *missing;
	uint32_t nmissing;
	int pid;
	bool started, finished;
} Job;

typedef struct {
	ARRAY(Job) job;
	uint32_t limit; /* processes at once; 0: one per processor */
	const char *folder; /* for their temporary files: compilers that are killed leave theirs */
	WeftProgress progress;
	void *progress_user;
} Jobs;

/* argv of a job, built word by word in the arena. */
typedef struct {
	ARRAY(const char *) word;
} Words;
void words_add(Arena *, Words *, const char *word);
/* The words of a text separated by spaces. */
void words_split(Arena *, Words *, const char *text);
const char *const *words_argv(Arena *, Words *);

/* Run all in order of the list; when one fails the others end first. False after ctx_error with the
 * beginning of the failed one's output. */
bool jobs_run(Ctx *, Jobs *);
uint32_t jobs_default(void);

#endif
