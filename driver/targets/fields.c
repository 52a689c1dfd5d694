#include "driver/targets/fields.h"

#include <string.h>

#include "frontend/files/file.h"
#include "frontend/files/out_file.h"

bool is_description_file(const char *name)
{
	size_t n = strlen(name);
	return strchr(name, '/') || (n > 5 && !strcmp(name + n - 5, ".json"));
}

JsonDoc *fields_open(Ctx *ctx, const char *path, const char *what)
{
	FileMap file;
	if (!file_map_full(ctx, path, &file))
		return NULL;
	out_spare(ctx, path);
	JsonDoc *doc = json_read(ctx, file.data, file.size, JSON_REJECT_DUPLICATES);
	if (!doc->root)
		return ctx_error(ctx, path, "line %d: %s", doc->error.line, doc->error.text), NULL;
	if (json_is_object(doc->root))
		return doc;
	json_release(doc);
	return ctx_error(ctx, path, "expected a JSON object that describes %s", what), NULL;
}

bool field_refuse(const FieldReader *r, const Field *f, const char *expected)
{
	return ctx_error(r->ctx, r->path, "field \"%s\": expected %s", f->name, expected);
}

static bool read_number(const FieldReader *r, const Field *f, const json_t *v, void *to)
{
	json_int_t n = json_integer_value(v);
	if (!json_is_integer(v) || n < f->lo || n > f->hi)
		return field_refuse(
			r, f,
			arena_printf(r->ctx->arena, "an integer from %u to %u", f->lo, f->hi));
	*(uint32_t *)to = (uint32_t)n;
	return true;
}

static bool read_real(const FieldReader *r, const Field *f, const json_t *v, void *to)
{
	double x = json_number_value(v);
	if (!json_is_number(v) || !(x > 0) || x < f->lo || x > f->hi)
		return field_refuse(r, f,
				    arena_printf(r->ctx->arena, "a number above 0, from %u to %u",
						 f->lo, f->hi));
	*(float *)to = (float)x;
	return true;
}

static bool read_reals(const FieldReader *r, const Field *f, const json_t *v, void *to)
{
	bool ok = json_is_array(v) && json_array_size(v) == f->lo;
	for (size_t k = 0; ok && k < f->lo; k++) {
		const json_t *x = json_array_get(v, k);
		ok = json_is_number(x) && json_number_value(x) > 0 && json_number_value(x) <= f->hi;
		if (ok)
			((float *)to)[k] = (float)json_number_value(x);
	}
	return ok || field_refuse(r, f,
				  arena_printf(r->ctx->arena, "%u numbers above 0 and at most %u",
					       f->lo, f->hi));
}

/* Reads a text. Texts go into the Makefile of emitted sources, command lines and comments:
 * characters that mean something there are refused. */
static bool read_text(const FieldReader *r, const Field *f, const json_t *v, void *to)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 _+-=.,:/@";
	const char *text = json_string_value(v);
	if (!text || strlen(text) != json_string_length(v) || text[strspn(text, allowed)])
		return field_refuse(r, f, "a string of letters, digits, blanks and _+-=.,:/@");
	*(const char **)to = arena_strdup(r->ctx->arena, text);
	return true;
}

static bool read_bool(const FieldReader *r, const Field *f, const json_t *v, void *to)
{
	if (!json_is_boolean(v))
		return field_refuse(r, f, "true or false");
	if (f->kind == FIELD_BOOL)
		*(bool *)to = json_is_true(v);
	else
		*(uint32_t *)to = (*(uint32_t *)to & ~f->lo) | (json_is_true(v) ? f->lo : 0);
	return true;
}

static bool read_field(const FieldReader *r, const Field *f, const json_t *v, void *to)
{
	switch (f->kind) {
	case FIELD_TEXT: return read_text(r, f, v, to);
	case FIELD_NUMBER: return read_number(r, f, v, to);
	case FIELD_REAL: return read_real(r, f, v, to);
	case FIELD_REALS: return read_reals(r, f, v, to);
	default: return read_bool(r, f, v, to);
	}
}

static const Field *field_of(const FieldReader *r, const char *name)
{
	for (size_t k = 0; k < r->n; k++)
		if (strcmp(r->field[k].name, name) == 0)
			return &r->field[k];
	return NULL;
}

bool fields_read(const FieldReader *r, json_t *root, void *to,
                 bool (*other)(void *data, const Field *, const json_t *), void *data)
{
	for (void *at = json_object_iter(root); at; at = json_object_iter_next(root, at)) {
		const char *key = json_object_iter_key(at);
		const json_t *value = json_object_iter_value(at);
		const Field *f = field_of(r, key);
		if (strcmp(key, "base") == 0)
			continue;
		if (!f)
			return ctx_error(r->ctx, r->path, "no field \"%s\"; see %s", key, r->help);
		TRY(f->kind == FIELD_OTHER ? other(data, f, value)
					   : read_field(r, f, value, (char *)to + f->at));
	}
	return true;
}
