/* What torch.save wrote: an archive of a pickle and of the contents of its tensors. Files of
 * PyTorch 2.5 to 2.8 hold all weights as one such dictionary, and all constants as another one. */
#include <string.h>

#include "frontend/pt2/priv.h"

enum { MAX_DICTIONARY = 1 << 24 }; /* of some 60,000 tensors */

static bool refuse(Import *im, const char *what, const char *why)
{
	return ctx_error(im->ctx, NULL, "%s is pickled, and %s", what, why);
}

static bool is_little(Import *im, const Archive *a, const char *what)
{
	Bytes text;
	Member *order = archive_find(a, "byteorder");
	if (!order)
		return true;
	TRY(archive_read_text(im->ctx, a, order, &text));
	return (text.size == 6 && !memcmp(text.data, "little", 6)) ||
	       refuse(im, what, "not little-endian");
}

const PickleValue *saved_read(Import *im, const char *what, const char *member, const Bytes *raw,
			      size_t limit, Archive **out)
{
	const char *where = strcmp(what, member)
				    ? arena_printf(im->ctx->arena, "%s (%s)", what, member)
				    : arena_strdup(im->ctx->arena, member);
	Archive *a = ARENA_NEW(im->ctx->arena, Archive);
	Bytes text;
	const char *path = arena_printf(im->ctx->scratch, "%s: %s", im->ctx->file, where);
	if (!archive_open_bytes(im->ctx, path, raw->data, raw->size, a))
		return NULL;
	a->unchecked = im->archive->unchecked;
	*out = a;
	Member *pickle = archive_find(a, "data.pkl");
	if (!pickle || pickle->size > limit) {
		refuse(im, what, pickle ? "the pickle is too large" : "there is no pickle");
		return NULL;
	}
	if (!is_little(im, a, what) || !archive_read_text(im->ctx, a, pickle, &text))
		return NULL;
	return pickle_read(im->ctx, where, text.data, text.size);
}

bool saved_open(Import *im, const char *member, Saved *s)
{
	Bytes raw;
	Member *m = archive_find(im->archive, member);
	*s = (Saved){0};
	intern_init(&s->names, im->ctx->arena);
	if (!m)
		return true;
	TRY(archive_read(im->ctx, im->archive, m, &raw));
	if (!raw.size)
		return true;
	const PickleValue *v =
		saved_read(im, member, member, &raw, MAX_DICTIONARY, &s->archive);
	if (!v)
		return false;
	if (!pickle_is(v, PICKLE_DICT, NULL))
		return refuse(im, member, "it is no dictionary of tensors");
	for (uint32_t k = 0; k + 1 < v->item.n; k += 2) {
		bool fresh;
		if (!pickle_is(v->item.data[k], PICKLE_TEXT, NULL))
			continue;
		const char *name = v->item.data[k]->text;
		uint32_t id = intern(&s->names, name, strlen(name), &fresh);
		if (fresh)
			array_push(im->ctx->arena, &s->value, v->item.data[k + 1]);
		else
			s->value.data[id - 1] = v->item.data[k + 1]; /* the last one counts */
	}
	return true;
}

const PickleValue *saved_find(const Saved *s, const char *name)
{
	uint32_t id = intern_find(&s->names, name, strlen(name));
	return id ? s->value.data[id - 1] : NULL;
}
