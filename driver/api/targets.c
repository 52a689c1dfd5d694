/* The targets there are, in the API's terms. */
#include "driver/api/given.h"

#include <string.h>

#include "codegen/cpu/host.h"
#include "driver/targets/embed.h"
#include "driver/targets/target_file.h"

typedef struct {
	Weft *w;
	const char *name; /* NULL: the whole table */
	ARRAY(WeftTargetInfo) list;
} TargetListing;

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

/* Whether t is the native target, or the row of the table that the native target extends by
 * features of this processor. */
static bool is_native(const Target *t)
{
	const char *native = target_native()->isa.name;
	const size_t n = strcspn(native, "+");
	return !strcmp(t->isa.name, native) ||
	       (strlen(t->isa.name) == n && !strncmp(t->isa.name, native, n));
}

WeftTargetInfo target_info(const Target *t)
{
	static const char *const masks[] = {
		[MASK_NONE] = "none", [MASK_VECTOR] = "vector", [MASK_BITS] = "bits"};
	return (WeftTargetInfo){
		.name = t->isa.name,
		.triple = or_empty(t->isa.triple),
		.cpu = or_empty(t->isa.cpu),
		.attributes = or_empty(t->isa.attributes),
		.attribute_features = or_empty(t->isa.attribute_features),
		.flags = t->isa.flags,
		.features = t->isa.features,
		.masks = masks[t->isa.masks],
		.vector_bytes = t->isa.vector_bytes,
		.registers = t->isa.nvreg,
		.l1 = t->machine.l1,
		.l2 = t->machine.l2,
		.threads = t->machine.threads,
		.page = t->isa.page,
		.machine = t->machine.name,
		.fma = isa_has(&t->isa, ISA_FMA),
		.f16 = isa_has(&t->isa, ISA_F16),
		.masked_memory = t->isa.masked_memory,
		.gathers = isa_has(&t->isa, ISA_GATHER),
		.runs_here = target_runs_here(t),
		.native = is_native(t),
		.has_runtime = runtime_object_for(t->isa.triple) != NULL,
	};
}

static bool list(void *arg)
{
	TargetListing *a = arg;
	TargetList named = {0};
	TRY(!a->name || given_text(a->w, "weft_targets", "the name", a->name));
	TRY(!a->name || targets_read(a->w->ctx, a->name, NULL, &named));
	for (uint32_t k = 0; k < named.n; k++)
		array_push(weft_arena(a->w), &a->list, target_info(named.data[k]));
	for (uint32_t k = 0; !a->name && target_at(k); k++)
		array_push(weft_arena(a->w), &a->list, target_info(target_at(k)));
	return true;
}

const WeftTargetInfo *weft_targets(Weft *w, const char *name, uint32_t *n)
{
	TargetListing a = {.w = w, .name = name};
	bool ok = boundary(w, list, &a);
	if (n)
		*n = ok ? a.list.n : 0;
	return ok ? a.list.data : NULL;
}
