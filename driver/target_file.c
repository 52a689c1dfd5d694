#include "driver/target_file.h"

#include <string.h>

#include "codegen/host.h"
#include "codegen/names.h"
#include "frontend/file.h"
#include "frontend/json.h"
#include "frontend/out_file.h"

typedef enum { FIELD_TEXT, FIELD_NUMBER, FIELD_BOOL, FIELD_MASKS } FieldKind;

typedef struct {
	const char *name;
	FieldKind kind;
	size_t at;
	uint32_t lo, hi; /* of a number */
} Field;

#define AT(field) offsetof(Target, field)
static const Field fields[] = {
	{"name", FIELD_TEXT, AT(name), 0, 0},
	{"triple", FIELD_TEXT, AT(triple), 0, 0},
	{"cpu", FIELD_TEXT, AT(cpu), 0, 0},
	{"attributes", FIELD_TEXT, AT(attributes), 0, 0},
	{"attribute_features", FIELD_TEXT, AT(attribute_features), 0, 0},
	{"features", FIELD_TEXT, AT(features), 0, 0},
	{"flags", FIELD_TEXT, AT(flags), 0, 0},
	{"vector_bytes", FIELD_NUMBER, AT(vector_bytes), 0, 64},
	{"registers", FIELD_NUMBER, AT(nvreg), 8, 64},
	{"l1", FIELD_NUMBER, AT(l1), 4 << 10, 16 << 20},
	{"l2", FIELD_NUMBER, AT(l2), 16 << 10, 1 << 30},
	{"threads", FIELD_NUMBER, AT(threads), 0, 4096},
	{"page", FIELD_NUMBER, AT(page), 4096, 1 << 30},
	{"fma", FIELD_BOOL, AT(has_fma), 0, 0},
	{"f16", FIELD_BOOL, AT(has_f16), 0, 0},
	{"masked_memory", FIELD_BOOL, AT(masked_memory), 0, 0},
	{"gathers", FIELD_BOOL, AT(gathers), 0, 0},
	{"masks", FIELD_MASKS, AT(masks), 0, 0},
};

typedef struct {
	Ctx *ctx;
	const char *path;
	Target *t;
} Reader;

static bool refuse(Reader *r, const Field *f, const char *expected)
{
	return ctx_error(r->ctx, r->path, "field \"%s\": expected %s", f->name, expected);
}

static bool read_masks(Reader *r, const Field *f, const json_t *v)
{
	static const char *const name[] = {[MASK_NONE] = "none", [MASK_VECTOR] = "vector", [MASK_BITS] = "bits"};
	const char *text = json_string_value(v);
	for (int k = MASK_NONE; text && k <= MASK_BITS; k++)
		if (strcmp(text, name[k]) == 0) {
			r->t->masks = (MaskKind)k;
			return true;
		}
	return refuse(r, f, "\"none\", \"vector\" or \"bits\"");
}

static bool read_number(Reader *r, const Field *f, const json_t *v)
{
	json_int_t n = json_integer_value(v);
	if (!json_is_integer(v) || n < f->lo || n > f->hi)
		return refuse(r, f, arena_printf(r->ctx->arena, "an integer from %u to %u", f->lo, f->hi));
	*(uint32_t *)(void *)((char *)r->t + f->at) = (uint32_t)n;
	return true;
}

/* Texts go into the Makefile of emitted sources, command lines and comments: nothing that means something there. */
static bool read_text(Reader *r, const Field *f, const json_t *v)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 _+-=.,:/@";
	const char *text = json_string_value(v);
	if (!text || strlen(text) != json_string_length(v) || text[strspn(text, allowed)])
		return refuse(r, f, "a string of letters, digits, blanks and _+-=.,:/@");
	*(const char **)(void *)((char *)r->t + f->at) = arena_strdup(r->ctx->arena, text);
	return true;
}

static bool read_field(Reader *r, const Field *f, const json_t *v)
{
	void *to = (char *)r->t + f->at;
	switch (f->kind) {
	case FIELD_TEXT:
		return read_text(r, f, v);
	case FIELD_BOOL:
		if (!json_is_boolean(v))
			return refuse(r, f, "true or false");
		*(bool *)to = json_is_true(v);
		return true;
	case FIELD_NUMBER:
		return read_number(r, f, v);
	case FIELD_MASKS:
		return read_masks(r, f, v);
	}
	return false;
}

static const Field *field_of(const char *name)
{
	for (size_t k = 0; k < sizeof fields / sizeof *fields; k++)
		if (strcmp(fields[k].name, name) == 0)
			return &fields[k];
	return NULL;
}

static bool read_base(Reader *r, const json_t *root)
{
	const char *base = json_string_value(json_object_get(root, "base"));
	const Target *t = base ? target_named(base) : NULL;
	if (!t)
		return ctx_error(r->ctx, r->path, "field \"base\": expected one of native, %s", target_list(r->ctx->arena));
	*r->t = *t;
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

/* What x86-64 code of these fields uses, the processor must be asked for. */
static bool check_features(Reader *r)
{
	const Target *t = r->t;
	const char *vectors = t->vector_bytes == 64 ? "avx512f" : t->vector_bytes == 32 ? "avx2" : NULL;
	if (strcmp(t->family, "x86-64"))
		return true;
	if (vectors && !has_word(t->features, vectors))
		return ctx_error(r->ctx, r->path, "field \"vector_bytes\": %u bytes need %s among the features",
		                 t->vector_bytes, vectors);
	if (t->has_fma && !has_word(t->features, "fma"))
		return ctx_error(r->ctx, r->path, "field \"fma\": needs fma among the features");
	return true;
}

/* Fields that do not fit together. What the prelude of a family can express, its widest row does. */
static bool check(Reader *r, const Target *base)
{
	const Target *t = r->t;
	uint32_t widest = 0;
	for (uint32_t k = 0; target_at(k); k++)
		if (!strcmp(target_at(k)->family, base->family) && target_at(k)->vector_bytes > widest)
			widest = target_at(k)->vector_bytes;
	if ((t->vector_bytes & (t->vector_bytes - 1)) || (t->vector_bytes && t->vector_bytes < 16) || t->vector_bytes > widest)
		return ctx_error(r->ctx, r->path, "field \"vector_bytes\": expected 0 or a power of two from 16 to %u, "
		                 "the widest of %s", widest, base->family);
	if (!t->vector_bytes != (t->masks == MASK_NONE))
		return ctx_error(r->ctx, r->path, "field \"masks\": expected \"none\" exactly where vector_bytes is 0");
	if ((t->masks == MASK_BITS) != (t->vector_bytes == 64))
		return ctx_error(r->ctx, r->path, "field \"masks\": expected \"bits\" exactly where vector_bytes is 64");
	if (t->page & (t->page - 1))
		return ctx_error(r->ctx, r->path, "field \"page\": expected a power of two");
	return check_features(r);
}

static bool read_object(Reader *r, json_t *root)
{
	const char *key;
	json_t *value;
	if (!json_is_object(root))
		return ctx_error(r->ctx, r->path, "expected a JSON object that describes a target");
	TRY(read_base(r, root));
	const Target base = *r->t;
	json_object_foreach(root, key, value)
	{
		const Field *f = field_of(key);
		if (strcmp(key, "base") == 0)
			continue;
		if (!f)
			return ctx_error(r->ctx, r->path, "no field \"%s\"; see docs/targets.md", key);
		TRY(read_field(r, f, value));
	}
	return check(r, &base);
}

static const Target *read_file(Ctx *ctx, const char *path)
{
	FileMap file;
	if (!file_map(ctx, path, &file))
		return NULL;
	out_spare(ctx, path);
	JsonDoc *doc = json_read(ctx, file.data, file.size, JSON_REJECT_DUPLICATES);
	if (!doc->root)
		return ctx_error(ctx, path, "line %d: %s", doc->error.line, doc->error.text), NULL;
	Reader r = {ctx, path, ARENA_NEW(ctx->arena, Target)};
	bool ok = read_object(&r, doc->root);
	json_release(doc);
	return ok ? r.t : NULL;
}

/* "v3" after "x86-64-v2" is x86-64-v3. */
static const Target *find_short(Ctx *ctx, const char *name, const char *first)
{
	const char *dash = strrchr(first, '-');
	return dash ? target_named(arena_printf(ctx->arena, "%.*s%s", (int)(dash + 1 - first), first, name)) : NULL;
}

static const Target *target_read(Ctx *ctx, const char *name, const char *first)
{
	size_t n = strlen(name);
	if (strchr(name, '/') || (n > 5 && !strcmp(name + n - 5, ".json")))
		return read_file(ctx, name);
	const Target *t = target_named(name);
	if (!t && first)
		t = find_short(ctx, name, first);
	if (!t)
		ctx_error(ctx, NULL, "no target %s; there are native, %s, or a .json file that describes one", name,
		          target_list(ctx->arena));
	return t;
}

static bool same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* By the width of the vectors; else in the order given. */
static bool insert(Ctx *ctx, TargetList *list, const Target *t)
{
	for (uint32_t k = 0; k < list->n; k++) {
		const Target *other = list->data[k];
		if (!same(t->family, other->family) || !same(t->triple, other->triple))
			return ctx_error(ctx, NULL, "targets %s and %s are not levels of one family of processors",
			                 other->name, t->name);
		if (!strcmp(c_identifier(ctx->arena, t->name), c_identifier(ctx->arena, other->name)))
			return ctx_error(ctx, NULL, "target %s is there twice", t->name);
	}
	array_push(ctx->arena, list, t);
	for (uint32_t k = list->n - 1; k && list->data[k - 1]->vector_bytes > t->vector_bytes; k--) {
		list->data[k] = list->data[k - 1];
		list->data[k - 1] = t;
	}
	return true;
}

bool targets_read(Ctx *ctx, const char *names, TargetList *list)
{
	*list = (TargetList){0};
	const char *first = NULL;
	for (const char *p = names;; p++) {
		size_t n = strcspn(p, ",");
		if (!n)
			return ctx_error(ctx, NULL, "a name is missing in the list of targets \"%s\"", names);
		const char *name = arena_printf(ctx->arena, "%.*s", (int)n, p);
		const Target *t = target_read(ctx, name, first);
		TRY(t && insert(ctx, list, t));
		first = first ? first : t->name;
		p += n;
		if (!*p)
			return true;
	}
}
