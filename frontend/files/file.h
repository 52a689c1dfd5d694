/* Whole files, mapped for reading. */
#ifndef WEFT_FRONTEND_FILES_FILE_H
#define WEFT_FRONTEND_FILES_FILE_H

#include "base/ctx.h"

typedef struct {
	const char *path; /* copied */
	uint8_t *data;    /* a private mapping: writes do not reach the file. Never NULL */
	size_t size;
} FileMap;

/* Maps a file until ctx_free. Returns false after errors. */
bool file_map(Ctx *, const char *path, FileMap *);
/* The same; an empty file is an error. */
bool file_map_full(Ctx *, const char *path, FileMap *);
/* The part of the path behind the last '/'. */
const char *file_base(const char *path);

/* Compares names like strcmp, but numbers in names by value: "x.2" before "x.10". */
int name_compare(const char *a, const char *b);

#endif
