/* Whole files: mapped for reading, written whole or not at all. */
#ifndef WEFT_FRONTEND_FILE_H
#define WEFT_FRONTEND_FILE_H

#include <stdio.h>

#include "base/ctx.h"

typedef struct {
	const char *path; /* copied */
	uint8_t *data;    /* private mapping: writes stay in memory. Never NULL */
	size_t size;
} FileMap;

/* Map a file until ctx_free. False after ctx_error. */
bool file_map(Ctx *, const char *path, FileMap *);
/* The part of a path behind the last '/'. */
const char *file_base(const char *path);

/* A temporary file beside `path`, renamed to it by file_commit. */
typedef struct {
	FILE *f;
	const char *path, *tmp;
} FileOut;

bool file_create(Ctx *, const char *path, FileOut *);
/* Close and rename; the temporary file is removed when anything failed. False after ctx_error. */
bool file_commit(Ctx *, FileOut *);

/* Order names with numbers in them by value: "x.2" before "x.10". As strcmp. */
int name_compare(const char *a, const char *b);

#endif
