#include "frontend/onnx/wire.h"

#include <string.h>

/* Wire types of the format; groups (3 and 4) are none of ours. */
enum { VARINT = 0, FIXED64 = 1, DELIMITED = 2, FIXED32 = 5 };

typedef struct {
	Ctx *ctx;
	const uint8_t *file;
} WireReader;

typedef struct {
	uint64_t number;
	uint32_t type;
	WireBytes bytes; /* as they lie in the file: of DELIMITED the contents */
} WireItem;

static bool malformed(const WireReader *r, const WireMessage *m, const uint8_t *at, const char *why)
{
	return ctx_error(r->ctx, NULL, "%s at byte %llu: %s", m->name,
			 (unsigned long long)(at - r->file), why) ||
	       ctx_kind(r->ctx, REFUSAL_FILE);
}

bool wire_varint(WireBytes *run, uint64_t *out)
{
	uint64_t v = 0;
	for (uint32_t k = 0; k < 10 && k < run->n; k++) {
		uint8_t byte = run->p[k];
		v |= (uint64_t)(byte & 127) << (7 * k);
		if (byte < 128) {
			run->p += k + 1;
			run->n -= k + 1;
			*out = v;
			return true;
		}
	}
	return false;
}

static bool take(WireBytes *from, uint64_t n, WireBytes *out)
{
	TRY(n <= from->n);
	*out = (WireBytes){from->p, (size_t)n};
	from->p += n;
	from->n -= (size_t)n;
	return true;
}

/* Reads the next field. Returns false after an error. */
static bool next_item(const WireReader *r, const WireMessage *m, WireBytes *from, WireItem *it)
{
	const uint8_t *at = from->p;
	uint64_t key, n;
	if (!wire_varint(from, &key) || key >> 3 == 0)
		return malformed(r, m, at, "the number of a field is malformed");
	it->number = key >> 3;
	it->type = key & 7;
	it->bytes = *from;
	switch (it->type) {
	case VARINT:
		if (!wire_varint(from, &n))
			return malformed(r, m, at, "a number has no end");
		it->bytes.n = (size_t)(from->p - it->bytes.p);
		return true;
	case FIXED64:
	case FIXED32:
		return take(from, it->type == FIXED64 ? 8 : 4, &it->bytes) ||
		       malformed(r, m, at, "a number goes beyond the end");
	case DELIMITED:
		return (wire_varint(from, &n) && take(from, n, &it->bytes)) ||
		       malformed(r, m, at, "a length goes beyond the end");
	default:
		return malformed(r, m, at, "a field is of no type that the format has now");
	}
}

static bool read_message(const WireReader *, WireBytes, const WireMessage *, void *out,
			 uint32_t depth);

static int64_t int_of(WireBytes bytes)
{
	uint64_t v = 0;
	(void)wire_varint(&bytes, &v);
	return (int64_t)v;
}

static float float_of(const uint8_t *p)
{
	float f;
	memcpy(&f, p, sizeof f);
	return f;
}

static bool text_of(const WireReader *r, const WireMessage *m, WireBytes bytes, const char **out)
{
	if (bytes.n && memchr(bytes.p, 0, bytes.n))
		return malformed(r, m, bytes.p, "a text holds a NUL");
	*out = arena_strndup(r->ctx->arena, (const char *)bytes.p, bytes.n);
	return true;
}

static uint32_t expected_type(WireKind kind)
{
	return kind == WIRE_INT ? VARINT : kind == WIRE_FLOAT ? FIXED32 : DELIMITED;
}

/* Reads a repeated number: one, or a run of them. */
static bool read_numbers(const WireReader *r, const WireMessage *m, const WireField *f,
			 const WireItem *it, void *at)
{
	Arena *arena = r->ctx->arena;
	WireBytes run = it->bytes;
	if (f->kind == WIRE_FLOAT) {
		ARRAY(float) *list = at;
		if (run.n % sizeof(float))
			return malformed(r, m, run.p, "a run of floats is cut off");
		for (size_t k = 0; k < run.n; k += sizeof(float))
			array_push(arena, list, float_of(run.p + k));
		return true;
	}
	ARRAY(int64_t) *list = at;
	for (uint64_t v; run.n;) {
		if (!wire_varint(&run, &v))
			return malformed(r, m, run.p, "a number has no end");
		array_push(arena, list, (int64_t)v);
	}
	return true;
}

/* Adds a zeroed structure to an array of structures of that size. */
static void *push_struct(Arena *arena, void *array, size_t size)
{
	ARRAY(uint8_t) *list = array;
	list->data = array_grow(arena, list->data, list->n, &list->cap, size);
	return memset(list->data + size * list->n++, 0, size);
}

static bool read_repeated(const WireReader *r, const WireMessage *m, const WireField *f,
			  const WireItem *it, void *at, uint32_t depth)
{
	Arena *arena = r->ctx->arena;
	const char *text;
	switch (f->kind) {
	case WIRE_TEXT:
		TRY(text_of(r, m, it->bytes, &text));
		array_push(arena, (ARRAY(const char *) *)at, text);
		return true;
	case WIRE_BYTES:
	case WIRE_PACKED:
		array_push(arena, (WireList *)at, it->bytes);
		return true;
	case WIRE_MESSAGE:
		return read_message(r, it->bytes, f->message,
				    push_struct(arena, at, f->message->size), depth + 1);
	default:
		return read_numbers(r, m, f, it, at);
	}
}

static bool read_one(const WireReader *r, const WireMessage *m, const WireField *f,
		     const WireItem *it, void *at, uint32_t depth)
{
	switch (f->kind) {
	case WIRE_INT:
		*(int64_t *)at = int_of(it->bytes);
		return true;
	case WIRE_FLOAT:
		*(float *)at = float_of(it->bytes.p);
		return true;
	case WIRE_TEXT:
		return text_of(r, m, it->bytes, at);
	case WIRE_BYTES:
	case WIRE_PACKED:
		*(WireBytes *)at = it->bytes;
		return true;
	case WIRE_MESSAGE:
		break;
	}
	void **message = at;
	if (!*message)
		*message = arena_alloc(r->ctx->arena, f->message->size);
	return read_message(r, it->bytes, f->message, *message, depth + 1);
}

static bool read_field(const WireReader *r, const WireMessage *m, const WireField *f,
		       const WireItem *it, void *out, uint32_t depth)
{
	void *at = (char *)out + f->at;
	bool is_number = f->kind == WIRE_INT || f->kind == WIRE_FLOAT || f->kind == WIRE_PACKED;
	bool packed = f->repeated && is_number && it->type == DELIMITED;
	if (it->type != expected_type(f->kind) && !packed && f->kind != WIRE_PACKED)
		return malformed(r, m, it->bytes.p,
				 "a field is of another type than the format says");
	if (f->present)
		*(bool *)((char *)out + f->present) = true;
	return f->repeated ? read_repeated(r, m, f, it, at, depth)
			   : read_one(r, m, f, it, at, depth);
}

static const WireField *find_field(const WireMessage *m, uint64_t number)
{
	for (uint32_t k = 0; k < m->n; k++)
		if (m->field[k].number == number)
			return &m->field[k];
	return NULL;
}

static bool read_message(const WireReader *r, WireBytes bytes, const WireMessage *m, void *out,
			 uint32_t depth)
{
	if (depth > WIRE_DEPTH)
		return malformed(r, m, bytes.p, "messages are nested too deeply");
	while (bytes.n) {
		WireItem it = {0};
		TRY(next_item(r, m, &bytes, &it));
		const WireField *f = find_field(m, it.number);
		TRY(!f || read_field(r, m, f, &it, out, depth));
	}
	return true;
}

bool wire_read(Ctx *ctx, WireBytes file, WireBytes bytes, const WireMessage *m, void *out)
{
	const WireReader r = {ctx, file.p};
	return read_message(&r, bytes, m, out, 0);
}
