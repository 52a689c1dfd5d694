/* JSON, parsed by jansson with our own allocation functions: jansson reports some allocation
 * failures as errors of the text and ignores others, so it must never see one. */
#ifndef WEFT_FRONTEND_FILES_JSON_H
#define WEFT_FRONTEND_FILES_JSON_H

#include <jansson.h>

#include "base/ctx.h"

typedef struct {
	json_t *root; /* read only: call no function that counts references or changes values. NULL:
	                 the text is not valid */
	json_error_t error;
	Arena *memory;
} JsonDoc;

/* Parses a text; flags are jansson's. Valid until json_release or ctx_free. Never returns NULL. */
JsonDoc *json_read(Ctx *, const void *text, size_t n, size_t flags);
void json_release(JsonDoc *);

#endif
