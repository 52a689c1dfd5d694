#include "driver/targets/gpu_here.h"
#include "driver/targets/target_file.h"

#include <string.h>

#include "base/nearest.h"
#include "codegen/cpu/host.h"
#include "codegen/print/names.h"
#include "driver/targets/embed.h"
#include "driver/targets/fields.h"
#include "driver/targets/machine_file.h"

#define AT(field) offsetof(Target, field)
static const Field fields[] = {
	{"name", FIELD_TEXT, AT(isa.name), 0, 0},
	{"triple", FIELD_TEXT, AT(isa.triple), 0, 0},
	{"cpu", FIELD_TEXT, AT(isa.cpu), 0, 0},
	{"attributes", FIELD_TEXT, AT(isa.attributes), 0, 0},
	{"attribute_features", FIELD_TEXT, AT(isa.attribute_features), 0, 0},
	{"features", FIELD_TEXT, AT(isa.features), 0, 0},
	{"flags", FIELD_TEXT, AT(isa.flags), 0, 0},
	{"vector_bytes", FIELD_NUMBER, AT(isa.vector_bytes), 0, 64},
	{"registers", FIELD_NUMBER, AT(isa.nvreg), 8, 64},
	{"pointers", FIELD_NUMBER, AT(isa.npointer), 1, 64},
	{"page", FIELD_NUMBER, AT(isa.page), 4096, 1 << 30},
	{"fma", FIELD_BIT, AT(isa.ops), ISA_FMA, 0},
	{"f16", FIELD_BIT, AT(isa.ops), ISA_F16, 0},
	{"gathers", FIELD_BIT, AT(isa.ops), ISA_GATHER, 0},
	{"masked_memory", FIELD_BOOL, AT(isa.masked_memory), 0, 0},
	{"masks", FIELD_OTHER, AT(isa.masks), 0, 0},
	{"machine", FIELD_OTHER, AT(machine), 0, 0},
	{"l1", FIELD_NUMBER, AT(machine.l1), 4 << 10, 16 << 20},
	{"l2", FIELD_NUMBER, AT(machine.l2), 16 << 10, 1 << 30},
	{"threads", FIELD_NUMBER, AT(machine.threads), 0, 4096},
};

typedef struct {
	FieldReader r;
	Target *t;
} TargetReader;

static bool read_masks(TargetReader *r, const Field *f, const json_t *v)
{
	static const char *const name[] = {
		[MASK_NONE] = "none", [MASK_VECTOR] = "vector", [MASK_BITS] = "bits"};
	const char *text = json_string_value(v);
	for (int k = MASK_NONE; text && k <= MASK_BITS; k++)
		if (strcmp(text, name[k]) == 0) {
			r->t->isa.masks = (MaskKind)k;
			return true;
		}
	return field_refuse(&r->r, f, "\"none\", \"vector\" or \"bits\"");
}

/* Reads a field other than the machine, which was taken before, since the other fields change
 * it. */
static bool read_other(void *data, const Field *f, const json_t *v)
{
	TargetReader *r = data;
	return f->at == AT(machine) || read_masks(r, f, v);
}

static bool read_base(TargetReader *r, const json_t *root)
{
	Ctx *ctx = r->r.ctx;
	const char *base = json_string_value(json_object_get(root, "base"));
	const Target *t = base ? target_named(base) : NULL;
	if (!t)
		return ctx_error(ctx, r->r.path, "field \"base\": expected one of native, %s",
				 target_list(ctx->arena));
	*r->t = *t;
	const json_t *machine = json_object_get(root, "machine");
	const char *name = json_string_value(machine);
	const Machine *m = name ? machine_find(name) : NULL;
	if (machine && (!m || strcmp(m->family, t->isa.family)))
		return ctx_error(ctx, r->r.path, "field \"machine\": expected one of %s",
		                 machine_list(ctx->arena, t->isa.family));
	if (m)
		r->t->machine = *m;
	return true;
}

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);
	for (const char *p = list; (p = strstr(p, word)); p += n)
		if ((p == list || p[-1] == ' ') && (p[n] == 0 || p[n] == ' '))
			return true;
	return false;
}

/* Checks that the processor is asked for what x86-64 code of these fields uses. */
static bool check_features(TargetReader *r)
{
	const Target *t = r->t;
	const char *vectors = t->isa.vector_bytes == 64   ? "avx512f"
			      : t->isa.vector_bytes == 32 ? "avx2"
							  : NULL;
	if (strcmp(t->isa.family, "x86-64"))
		return true;
	if (vectors && !has_word(t->isa.features, vectors))
		return ctx_error(r->r.ctx, r->r.path,
				 "field \"vector_bytes\": %u bytes need %s among the features",
				 t->isa.vector_bytes, vectors);
	if (isa_has(&t->isa, ISA_FMA) && !has_word(t->isa.features, "fma"))
		return ctx_error(r->r.ctx, r->r.path,
				 "field \"fma\": needs fma among the features");
	return true;
}

/* Refuses fields that do not fit together. What the prelude of a family can express, its widest
 * row does. */
static bool check(TargetReader *r, const Target *base)
{
	const Target *t = r->t;
	uint32_t widest = 0;
	for (uint32_t k = 0; target_at(k); k++)
		if (!strcmp(target_at(k)->isa.family, base->isa.family) &&
		    target_at(k)->isa.vector_bytes > widest)
			widest = target_at(k)->isa.vector_bytes;
	uint32_t bytes = t->isa.vector_bytes;
	if ((bytes & (bytes - 1)) || (bytes && bytes < 16) || bytes > widest)
		return ctx_error(
			r->r.ctx, r->r.path,
			"field \"vector_bytes\": expected 0 or a power of two from 16 to %u, "
			"the widest of %s",
			widest, base->isa.family);
	if (!t->isa.vector_bytes != (t->isa.masks == MASK_NONE))
		return ctx_error(
			r->r.ctx, r->r.path,
			"field \"masks\": expected \"none\" exactly where vector_bytes is 0");
	if ((t->isa.masks == MASK_BITS) != (t->isa.vector_bytes == 64))
		return ctx_error(
			r->r.ctx, r->r.path,
			"field \"masks\": expected \"bits\" exactly where vector_bytes is 64");
	if (t->isa.page & (t->isa.page - 1))
		return ctx_error(r->r.ctx, r->r.path, "field \"page\": expected a power of two");
	return check_features(r);
}

static bool read_object(TargetReader *r, json_t *root)
{
	TRY(read_base(r, root));
	const Target base = *r->t;
	return fields_read(&r->r, root, r->t, read_other, r) && check(r, &base);
}

static const Target *read_file(Ctx *ctx, const char *path)
{
	JsonDoc *doc = fields_open(ctx, path, "a target");
	if (!doc)
		return NULL;
	TargetReader r = {{ctx, path, fields, sizeof fields / sizeof *fields, "docs/targets.md"},
			  ARENA_NEW(ctx->arena, Target)};
	bool ok = read_object(&r, doc->root);
	json_release(doc);
	return ok ? r.t : NULL;
}

/* Finds a target by a short name: "v3" after "x86-64-v2" is x86-64-v3. */
static const Target *find_short(Ctx *ctx, const char *name, const char *before)
{
	const char *dash = strrchr(before, '-');
	return dash ? target_named(arena_printf(ctx->arena, "%.*s%s", (int)(dash + 1 - before),
						before, name))
		    : NULL;
}

static const Target *target_read(Ctx *ctx, const char *name, const char *before)
{
	if (is_description_file(name))
		return read_file(ctx, name);
	if (gpu_here_is(name))
		return gpu_here(ctx, name);
	const Target *t = target_named(name);
	if (!t && before)
		t = find_short(ctx, name, before);
	const char *all = target_list(ctx->arena);
	if (!t)
		ctx_error(
			ctx, NULL,
			"no target %s; there are native, %s, or a .json file that describes one%s",
			name, all, nearest_of_list(ctx->arena, name, all)),
			ctx_kind(ctx, REFUSAL_TARGET);
	return t;
}

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* Whether a comes before b: CPUs behind GPUs, which are rows of one table; by the width of the
 * vectors, then by features; else in the order given. */
static bool is_more(const Target *a, const Target *b)
{
	const int features = __builtin_popcount(a->isa.ops) - __builtin_popcount(b->isa.ops);
	if (a->gpu || b->gpu)
		return a->gpu ? b->gpu && a->gpu > b->gpu : true;
	return a->isa.vector_bytes > b->isa.vector_bytes ||
	       (a->isa.vector_bytes == b->isa.vector_bytes && features > 0);
}

/* Says why both targets do not fit into one artifact; NULL if they do. */
static const char *apart(Arena *a, const Target *x, const Target *y)
{
	const Target *cpu = x->gpu ? y : x, *gpu = x->gpu ? x : y;
	if (!x->gpu != !y->gpu && gpu->gpu->hip)
		return arena_printf(a, "kernels for %s are text: no code for %s goes with them",
				    gpu->isa.name, cpu->isa.name);
	if (!x->gpu != !y->gpu && cpu->isa.triple &&
	    runtime_object_for(cpu->isa.triple) != runtime_object)
		return arena_printf(
			a,
			"code for %s cannot go with code for %s: the host of a GPU is this machine",
			cpu->isa.name, gpu->isa.name);
	if (!x->gpu != !y->gpu)
		return NULL;
	const bool one_maker = !x->gpu || x->gpu->hip == y->gpu->hip;
	if (same(x->isa.family, y->isa.family) && same(x->isa.triple, y->isa.triple) && one_maker)
		return NULL;
	return arena_printf(a, "targets %s and %s are not levels of one family of processors",
			    x->isa.name, y->isa.name);
}

static bool insert(Ctx *ctx, TargetList *list, const Target *t)
{
	for (uint32_t k = 0; k < list->n; k++) {
		const Target *other = list->data[k];
		const char *why = apart(ctx->arena, other, t);
		if (why)
			return ctx_error(ctx, NULL, "%s", why);
		if (!strcmp(c_identifier(ctx->arena, t->isa.name),
			    c_identifier(ctx->arena, other->isa.name)))
			return ctx_error(ctx, NULL, "target %s is there twice", t->isa.name);
	}
	array_push(ctx->arena, list, t);
	for (uint32_t k = list->n - 1; k && is_more(list->data[k - 1], t); k--) {
		list->data[k] = list->data[k - 1];
		list->data[k - 1] = t;
	}
	return true;
}

/* Returns the target for another machine than it assumes. */
static const Target *tuned(Ctx *ctx, const Target *t, const char *tune)
{
	const Machine *m = machine_read(ctx, tune, t->isa.family);
	if (!m)
		return NULL;
	Target *other = arena_dup(ctx->arena, t, sizeof *t);
	other->machine = *m;
	return other;
}

/* Tunes all targets for a machine. Where there are CPUs, it is a machine for these. */
static bool tune_all(Ctx *ctx, const char *tune, TargetList *list)
{
	const bool cpus = !list->data[list->n - 1]->gpu;
	for (uint32_t k = 0; tune && k < list->n; k++)
		if (!cpus || !list->data[k]->gpu)
			TRY((list->data[k] = tuned(ctx, list->data[k], tune)));
	return true;
}

bool targets_read(Ctx *ctx, const char *names, const char *tune, TargetList *list)
{
	*list = (TargetList){0};
	const char *before = NULL;
	for (const char *p = names;; p++) {
		size_t n = strcspn(p, ",");
		if (!n)
			return ctx_error(ctx, NULL,
					 "a name is missing in the list of targets \"%s\"", names);
		const char *name = arena_printf(ctx->arena, "%.*s", (int)n, p);
		const Target *t = target_read(ctx, name, before);
		TRY(t && insert(ctx, list, t));
		before = t->isa.name;
		p += n;
		if (!*p)
			return tune_all(ctx, tune, list);
	}
}
