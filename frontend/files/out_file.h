/* Output files: written whole or not at all, through symbolic links, and never over a file that was
 * read. */
#ifndef WEFT_FRONTEND_FILES_OUT_FILE_H
#define WEFT_FRONTEND_FILES_OUT_FILE_H

#include <stdio.h>

#include "base/ctx.h"

typedef struct {
	const char *path;   /* as the user named it, for messages */
	const char *to;     /* the file to replace, links followed; NULL: a device or the like,
	                       which is written directly */
	int descriptor;     /* the descriptor that `path` names, like /dev/stdout; -1: none */
	const char *tmp;    /* the temporary file for the contents, until out_commit; NULL: no
	                       longer needed */
	const char *folder; /* the folder of tmp, if tmp cannot be beside the output; NULL: it is */
	FILE *f;            /* of out_open */
	int why;            /* errno of the first failure to write; 0: none */
} OutFile;

/* Registers an input file that no output of this context may replace. (file_map does not: tensors
 * may be changed in place.) */
void out_spare(Ctx *, const char *path);
/* Checks an output path before anything expensive is done. Inputs of out_spare are refused, also
 * under other names. tmp is removed at the latest with the context. Returns NULL after an error. */
OutFile *out_begin(Ctx *, const char *path);
/* Opens tmp for out_write. Returns false after errors. */
bool out_open(Ctx *, OutFile *);
/* Writes; out_commit reports failures. */
void out_write(OutFile *, const void *data, size_t n);
/* Makes tmp the output. Returns false after an error; tmp is removed then. */
bool out_commit(Ctx *, OutFile *);
/* Gives up: removes tmp. */
void out_drop(OutFile *);

/* A name beside path that no other call, in any process, returns. */
const char *path_temp(Ctx *, const char *path);
/* Removes files that path_temp named for this path in processes of this machine that were
 * killed. */
void path_sweep(Ctx *, const char *path);
/* Makes an empty folder for temporary files, registered by temp_begin (base/temp.h). Returns its
 * path, in the arena, or NULL after an error. */
const char *folder_temp(Ctx *);

#endif
