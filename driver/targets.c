/* The targets there are, in the API's terms. */
#include "driver/driver_priv.h"

#include <string.h>

#include "codegen/host.h"
#include "driver/embed.h"
#include "driver/target_file.h"

typedef struct {
	Weft *w;
	const char *name; /* NULL: the whole table */
	ARRAY(WeftTargetInfo) list;
} Ask;

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static WeftTargetInfo describe(const Target *t)
{
	static const char *const masks[] = {
		[MASK_NONE] = "none", [MASK_VECTOR] = "vector", [MASK_BITS] = "bits"};
	return (WeftTargetInfo){
		.name = t->name,
		.triple = or_empty(t->triple),
		.cpu = or_empty(t->cpu),
		.attributes = or_empty(t->attributes),
		.attribute_features = or_empty(t->attribute_features),
		.flags = t->flags,
		.features = t->features,
		.masks = masks[t->masks],
		.vector_bytes = t->vector_bytes,
		.registers = t->nvreg,
		.l1 = t->l1,
		.l2 = t->l2,
		.threads = t->threads,
		.page = t->page,
		.fma = t->has_fma,
		.f16 = t->has_f16,
		.masked_memory = t->masked_memory,
		.gathers = t->gathers,
		.runs_here = target_runs_here(t),
		.native = t == target_native(),
		.has_runtime = runtime_object_for(t->triple) != NULL,
	};
}

static bool list(void *arg)
{
	Ask *a = arg;
	TargetList named = {0};
	TRY(!a->name || targets_read(a->w->ctx, a->name, &named));
	for (uint32_t k = 0; k < named.n; k++)
		array_push(weft_arena(a->w), &a->list, describe(named.data[k]));
	for (uint32_t k = 0; !a->name && target_at(k); k++)
		array_push(weft_arena(a->w), &a->list, describe(target_at(k)));
	return true;
}

const WeftTargetInfo *weft_targets(Weft *w, const char *name, uint32_t *n)
{
	Ask a = {.w = w, .name = name};
	bool ok = boundary(w, list, &a);
	*n = ok ? a.list.n : 0;
	return ok ? a.list.data : NULL;
}
