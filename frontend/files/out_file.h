/* Outputs: written whole or not at all, to where symbolic links point, and never over a file that
 * was read. */
#ifndef WEFT_FRONTEND_FILES_OUT_FILE_H
#define WEFT_FRONTEND_FILES_OUT_FILE_H

#include <stdio.h>

#include "base/ctx.h"

typedef struct {
	const char *path;   /* as named, for messages */
	const char *to;     /* links followed: what the rename replaces; NULL: a device or the like,
	                       written into */
	int descriptor;     /* that `path` names, as /dev/stdout does; -1: none */
	const char *tmp;    /* a name for the contents until then; nothing is there yet. NULL: no
	                       longer needed */
	const char *folder; /* of tmp where it cannot lie beside the output; NULL: it does */
	FILE *f;            /* of out_open */
	int why;            /* errno of the first failure to write; 0: none */
} OutFile;

/* A file that is read, and that no output of this context may be (file_map does not say so: tensors
 * may be changed in place). */
void out_spare(Ctx *, const char *path);
/* Look where an output goes before anything expensive is done. What out_spare named is refused,
 * also under other names. tmp is removed at the latest with the context. NULL after ctx_error: it
 * cannot be written. */
OutFile *out_begin(Ctx *, const char *path);
/* Open tmp for out_write. False after ctx_error. */
bool out_open(Ctx *, OutFile *);
/* Failures are kept for out_commit. */
void out_write(OutFile *, const void *data, size_t n);
/* The contents of tmp become the output. False after ctx_error, and tmp is gone. */
bool out_commit(Ctx *, OutFile *);
/* Give up: remove tmp. */
void out_drop(OutFile *);

/* A name beside path that no other call, in any process, gives. */
const char *path_temp(Ctx *, const char *path);
/* Remove what path_temp named for this path in processes of this machine that were killed. */
void path_sweep(Ctx *, const char *path);
/* A new empty folder for temporary files, begun (base/temp.h); its path is in the arena. NULL after
 * ctx_error. */
const char *folder_temp(Ctx *);

#endif
