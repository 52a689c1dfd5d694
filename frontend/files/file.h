/* Whole files, mapped for reading, and names of files. Errors are recorded in the context and begin
 * with the path. */
#ifndef WEFT_FRONTEND_FILES_FILE_H
#define WEFT_FRONTEND_FILES_FILE_H

#include "base/ctx.h"

typedef struct {
	const char *path; /* copied */
	uint8_t *data;    /* a private mapping: writes do not reach the file. Never NULL */
	size_t size;
} FileMap;

/* Maps a regular file, which may be empty, until ctx_free. Returns false after an error. */
bool file_map(Ctx *, const char *path, FileMap *);
/* Maps a regular file that is not empty, until ctx_free. Returns false after an error. */
bool file_map_full(Ctx *, const char *path, FileMap *);
/* Returns the part of the path behind the last '/', or the whole path if there is none: a pointer
 * into `path`. */
const char *file_base(const char *path);

/* Compares names as strcmp does, but digits in both names by their value: "x.2" is before "x.10".
 * Returns a number below 0, 0 only for equal names, or a number above 0. */
int name_compare(const char *a, const char *b);

#endif
