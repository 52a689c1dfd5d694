/* JSON, parsed by jansson with our own allocation functions: jansson reports some allocation
 * failures as errors of the text and ignores others, so it must never see one. */
#ifndef WEFT_FRONTEND_FILES_JSON_H
#define WEFT_FRONTEND_FILES_JSON_H

#include <jansson.h>

#include "base/ctx.h"

typedef struct {
	json_t *root; /* for reading only: call no function of jansson that counts references or
			 changes values. NULL: the text is not valid */
	json_error_t error; /* what is wrong and where, if root is NULL */
	Arena *memory;
} JsonDoc;

/* Parses n bytes of text, which need not stay; flags: those of json_loadb. The result is never
 * NULL; its values are valid until json_release or ctx_free. Records no error: look at root. */
JsonDoc *json_read(Ctx *, const void *text, size_t n, size_t flags);
/* Frees a document and all its values; root becomes NULL. May be called twice. */
void json_release(JsonDoc *);

#endif
