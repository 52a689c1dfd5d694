/* Child processes, several at a time, without a shell: compilers and linkers. */
#ifndef WEFT_DRIVER_ARTIFACT_JOBS_H
#define WEFT_DRIVER_ARTIFACT_JOBS_H

#include "base/array.h"
#include "base/ctx.h"
#include "weft.h"

/* If a program fails and its output has this word, the error is this text instead of the output:
 * what is missing. */
typedef struct {
	const char *word, *text;
} JobMissing;

typedef struct {
	const char *const *argv; /* NULL-terminated; argv[0] is looked up in PATH */
	const char *log;         /* the file that receives standard output and standard error */
	const char *what;        /* what the program works on, for messages */
	const char *makes;       /* the file that the program makes; NULL: none */
	const char *output;      /* the user's name for that file; NULL: the file is temporary */
	const JobMissing *missing;
	uint32_t nmissing;
	/* Set by jobs_run. */
	int pid;
	bool started, finished;
} Job;

typedef struct {
	ARRAY(Job) job;
	uint32_t limit; /* the most processes at a time; 0: one per processor */
	const char *folder; /* the folder for their temporary files, since killed compilers leave
	                       theirs */
	WeftProgress progress; /* called when a job has ended, with the phase "cc"; may be NULL */
	void *progress_user;
} Jobs;

/* Builds the argv of a job, word by word, in the arena. */
typedef struct {
	ARRAY(const char *) word;
} Words;
/* Adds a copy of a word, which is not NULL. */
void words_add(Arena *, Words *, const char *word);
/* Adds copies of the words of a text, separated by spaces; there is no quoting. text may be
 * NULL. */
void words_split(Arena *, Words *, const char *text);
/* Ends the list: returns the words, followed by NULL, in the arena. Add no words afterwards, and
 * call words_argv once. */
const char *const *words_argv(Arena *, Words *);

/* Runs all jobs, begun in the order of the list, and waits for them. If one fails, no further ones
 * begin, and jobs that run are waited for. Returns false after an error: a program cannot be run,
 * or fails (the error has the beginning of its output, or why it could not write), or ends well
 * with the file that it makes missing or empty. */
bool jobs_run(Ctx *, Jobs *);
/* Returns the number of processors that this thread may use, at least 1. */
uint32_t jobs_default(void);

#endif
