/* Output files: written whole or not at all, through symbolic links, and never over a file that was
 * read. The contents go into a temporary file, which then gets the name of the output. Order of
 * calls: out_begin; out_open and out_write, or any writer of OutFile.tmp; out_commit or out_drop.
 * Errors are recorded in the context. */
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
	bool lasting;       /* set by the writer: the new file is on the disk before it replaces the
			       old one */
} OutFile;

/* Registers an input file that no output of this context may replace; a path without a regular file
 * is ignored. (file_map registers nothing: files of tensors may be replaced.) */
void out_spare(Ctx *, const char *path);
/* Begins an output: checks that the path can be written, before anything expensive is done, and
 * chooses OutFile.tmp. An input of out_spare is refused, also under another name. tmp is removed
 * with the context at the latest. Returns NULL after an error. */
OutFile *out_begin(Ctx *, const char *path);
/* Opens tmp for out_write. Returns false after an error. */
bool out_open(Ctx *, OutFile *);
/* Appends n bytes. A failure is reported by out_commit. Called after out_open. */
void out_write(OutFile *, const void *data, size_t n);
/* Ends the output: tmp becomes the file at the path. Returns false after an error, with the old
 * file unchanged and tmp removed; a device may have got a part. */
bool out_commit(Ctx *, OutFile *);
/* Gives up: removes tmp; the old file stays. Does nothing after out_commit. */
void out_drop(OutFile *);

/* Returns a name for a temporary file or folder beside path, which does not end with '/', in the
 * arena: no other call by a process that runs returns this name. What a process of the same number
 * that has ended left may have it. Makes no file. */
const char *path_temp(Ctx *, const char *path);
/* Removes files and folders beside path whose names path_temp made for this path in processes of
 * this machine that have ended. Errors are ignored. */
void path_sweep(Ctx *, const char *path);
/* Makes an empty folder for temporary files below $TMPDIR, else /tmp, registered by temp_begin
 * (base/temp.h); the caller removes the folder and calls temp_end. Returns its path, in the arena,
 * or NULL after an error. */
const char *folder_temp(Ctx *);

#endif
