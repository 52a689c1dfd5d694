#include "frontend/files/json.h"

#include <pthread.h>

/* jansson has one pair of functions for the process. These pass on to those that were there, for
 * whoever else uses jansson here; only while json_read parses on this thread they take and never
 * give back. */
static json_malloc_t host_malloc;
static json_free_t host_free;
static _Thread_local Arena *parsing;

static void *take(size_t n)
{
	return parsing ? arena_alloc(parsing, n) : host_malloc(n);
}

static void give_back(void *p)
{
	if (!parsing)
		host_free(p);
}

static void install(void)
{
	json_get_alloc_funcs(&host_malloc, &host_free);
	json_set_alloc_funcs(take, give_back);
}

static void release(void *doc)
{
	json_release(doc);
}

JsonDoc *json_read(Ctx *ctx, const void *text, size_t n, size_t flags)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, install);
	JsonDoc *doc = ARENA_NEW(ctx->arena, JsonDoc);
	ctx_defer(ctx, release, doc);
	jmp_buf out_of_memory;
	doc->memory = arena_new(&out_of_memory);
	if (!doc->memory)
		ctx_out_of_memory(ctx);
	if (setjmp(out_of_memory)) { /* through jansson, which holds nothing but this memory */
		parsing = NULL;
		ctx_out_of_memory(ctx);
	}
	parsing = doc->memory;
	doc->root = json_loadb(text, n, flags, &doc->error);
	parsing = NULL;
	return doc;
}

void json_release(JsonDoc *doc)
{
	arena_free(doc->memory);
	doc->memory = NULL;
	doc->root = NULL;
}
