/* Whole files, mapped for reading. */
#ifndef WEFT_FRONTEND_FILES_FILE_H
#define WEFT_FRONTEND_FILES_FILE_H

#include "base/ctx.h"

typedef struct {
	const char *path; /* copied */
	uint8_t *data;    /* private mapping: writes stay in memory. Never NULL */
	size_t size;
} FileMap;

/* Map a file until ctx_free. False after ctx_error. */
bool file_map(Ctx *, const char *path, FileMap *);
/* The same of a file that means nothing when it is empty. */
bool file_map_full(Ctx *, const char *path, FileMap *);
/* The part of a path behind the last '/'. */
const char *file_base(const char *path);

/* Order names with numbers in them by value: "x.2" before "x.10". As strcmp. */
int name_compare(const char *a, const char *b);

#endif
