/* Child processes, several at a time, without a shell. */
#ifndef WEFT_DRIVER_ARTIFACT_JOBS_H
#define WEFT_DRIVER_ARTIFACT_JOBS_H

#include "base/array.h"
#include "base/ctx.h"
#include "weft.h"

/* A word in the output of a program that fails because something is missing, and the message for
 * it. */
typedef struct {
	const char *word, *text;
} JobMissing;

typedef struct {
	const char *const *argv; /* NULL-terminated; argv[0] is looked up in PATH */
	const char *log;         /* the file that receives the output */
	const char *what;        /* for messages */
	const char *makes;       /* the file that the program makes; NULL: none */
	const char *output;      /* the user's name for that file; NULL: the file is temporary */
	const JobMissing *missing;
	uint32_t nmissing;
	int pid;
	bool started, finished;
} Job;

typedef struct {
	ARRAY(Job) job;
	uint32_t limit; /* the most processes at a time; 0: one per processor */
	const char *folder; /* the folder for their temporary files, since killed compilers leave
	                       theirs */
	WeftProgress progress;
	void *progress_user;
} Jobs;

/* Builds the argv of a job, word by word, in the arena. */
typedef struct {
	ARRAY(const char *) word;
} Words;
void words_add(Arena *, Words *, const char *word);
/* Adds the words of a text, separated by spaces. */
void words_split(Arena *, Words *, const char *text);
const char *const *words_argv(Arena *, Words *);

/* Runs all jobs, in the order of the list. If one fails, the running ones end first. Returns false
 * after an error with the beginning of the failed job's output. */
bool jobs_run(Ctx *, Jobs *);
uint32_t jobs_default(void);

#endif
