/* JSON texts by jansson, in memory of ours: jansson takes some failures to get memory for errors in
 * the text, and goes on after others, so it must never see one. */
#ifndef WEFT_FRONTEND_FILES_JSON_H
#define WEFT_FRONTEND_FILES_JSON_H

#include <jansson.h>

#include "base/ctx.h"

typedef struct {
	json_t *root; /* read only: no function that counts references or changes values. NULL: not
	                 valid */
	json_error_t error;
	Arena *memory;
} JsonDoc;

/* Parse; flags are jansson's. Lives until json_release or ctx_free. Never NULL. */
JsonDoc *json_read(Ctx *, const void *text, size_t n, size_t flags);
void json_release(JsonDoc *);

#endif
