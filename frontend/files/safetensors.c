#include "frontend/files/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "frontend/files/json.h"
#include "frontend/files/out_file.h"

enum { ALIGN = 64 };

static const struct {
	const char *name;
	DType dtype;
} dtypes[] = {
	{"F64", DT_f64},   {"F32", DT_f32}, {"F16", DT_f16},        {"BF16", DT_bf16},
	{"I64", DT_i64},   {"I32", DT_i32}, {"I16", DT_i16},        {"I8", DT_i8},
	{"U64", DT_u64},   {"U32", DT_u32}, {"U16", DT_u16},        {"U8", DT_u8},
	{"BOOL", DT_bool}, {"C64", DT_c64}, {"F8_E4M3", DT_f8e4m3}, {"F8_E5M2", DT_f8e5m2},
	{"F8_E4M3FNUZ", DT_f8e4m3fnuz}, {"F8_E5M2FNUZ", DT_f8e5m2fnuz},
};

static DType dtype_of(const char *name)
{
	for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes && name; k++)
		if (!strcmp(dtypes[k].name, name))
			return dtypes[k].dtype;
	return DT_none;
}

static const char *name_of(DType d)
{
	for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
		if (dtypes[k].dtype == d)
			return dtypes[k].name;
	return NULL;
}

/* ---- reading ---- */

typedef struct {
	Ctx *ctx;
	const char *path;
	uint8_t *data; /* behind the index */
	uint64_t size;
} TensorReader;

static bool read_shape(TensorReader *r, const char *name, const json_t *entry, Tensor *t,
		       uint64_t *bytes)
{
	const json_t *shape = json_object_get(entry, "shape");
	const char *dtype = json_string_value(json_object_get(entry, "dtype"));
	t->dtype = dtype_of(dtype);
	if (t->dtype == DT_none)
		return ctx_error(r->ctx, r->path, "tensor %s: unsupported dtype %s", name,
				 dtype ? dtype : "(none)");
	if (!json_is_array(shape) || json_array_size(shape) > MAX_RANK)
		return ctx_error(r->ctx, r->path, "tensor %s: bad shape", name);
	t->rank = (uint32_t)json_array_size(shape);
	*bytes = dtype_size(t->dtype);
	for (uint32_t k = 0; k < t->rank; k++) {
		t->dim[k] = json_integer_value(json_array_get(shape, k));
		if (!json_is_integer(json_array_get(shape, k)) || t->dim[k] < 0 ||
		    __builtin_mul_overflow(*bytes, (uint64_t)t->dim[k], bytes))
			return ctx_error(r->ctx, r->path, "tensor %s: bad shape", name);
	}
	return true;
}

static bool read_tensor(TensorReader *r, const char *name, const json_t *entry, Tensor *t)
{
	uint64_t bytes = 0;
	TRY(read_shape(r, name, entry, t, &bytes));
	const json_t *range = json_object_get(entry, "data_offsets");
	const json_t *from = json_array_get(range, 0), *to = json_array_get(range, 1);
	uint64_t a = (uint64_t)json_integer_value(from), b = (uint64_t)json_integer_value(to);
	if (!json_is_integer(from) || !json_is_integer(to) || a > b || b > r->size)
		return ctx_error(r->ctx, r->path, "tensor %s lies outside the file", name);
	if (b - a != bytes)
		return ctx_error(r->ctx, r->path, "tensor %s has %llu bytes, its shape needs %llu",
				 name, (unsigned long long)(b - a), (unsigned long long)bytes);
	size_t align = dtype_size(dtype_real(t->dtype));
	t->data = r->data + a;
	if ((uintptr_t)t->data % align)
		t->data = arena_dup(r->ctx->arena, t->data, bytes);
	return true;
}

static int by_name(const void *a, const void *b)
{
	return name_compare(((const NamedTensor *)a)->name, ((const NamedTensor *)b)->name);
}

static bool read_meta(TensorReader *r, json_t *map, StFile *out)
{
	const char *key;
	json_t *v;
	out->meta = ARENA_ARRAY(r->ctx->arena, StMeta, json_object_size(map));
	json_object_foreach(map, key, v)
	{
		if (!json_is_string(v))
			return ctx_error(r->ctx, r->path, "metadata %s is not a string", key);
		out->meta[out->nmeta++] =
			(StMeta){arena_strdup(r->ctx->arena, key),
				 arena_strdup(r->ctx->arena, json_string_value(v))};
	}
	return true;
}

static bool read_index(TensorReader *r, json_t *index, StFile *out)
{
	const char *key;
	json_t *entry;
	out->tensor = ARENA_ARRAY(r->ctx->arena, NamedTensor, json_object_size(index));
	json_object_foreach(index, key, entry)
	{
		if (!json_is_object(entry))
			return ctx_error(r->ctx, r->path, "%s: expected an object", key);
		if (!strcmp(key, "__metadata__")) {
			TRY(read_meta(r, entry, out));
			continue;
		}
		NamedTensor *t = &out->tensor[out->n++];
		t->name = arena_strdup(r->ctx->arena, key);
		TRY(read_tensor(r, key, entry, &t->tensor));
	}
	qsort(out->tensor, out->n, sizeof *out->tensor, by_name);
	return true;
}

/* Sets *n to the bytes of the index, which the first eight bytes say. Returns false if the file is
 * shorter. */
static bool index_size(const uint8_t *p, size_t size, uint64_t *n)
{
	*n = 0;
	for (uint32_t k = 8; k-- > 0 && size >= 8;)
		*n = *n << 8 | p[k];
	return size >= 8 && *n <= size - 8;
}

bool is_safetensors(const void *data, size_t size)
{
	uint64_t n;
	return index_size(data, size, &n) && n && ((const char *)data)[8] == '{';
}

static bool read_bytes(Ctx *ctx, const char *path, void *data, size_t size, StFile *out)
{
	*out = (StFile){0};
	uint8_t *p = data;
	uint64_t n;
	if (!index_size(p, size, &n))
		return ctx_error(ctx, path, "not a safetensors file, or truncated: no index");
	JsonDoc *doc = json_read(ctx, p + 8, n, JSON_REJECT_DUPLICATES);
	if (!json_is_object(doc->root))
		return ctx_error(ctx, path, "the index is not valid JSON: %s",
				 doc->root ? "no object" : doc->error.text);
	TensorReader r = {ctx, path, p + 8 + n, size - 8 - n};
	bool ok = read_index(&r, doc->root, out);
	json_release(doc);
	return ok;
}

bool st_open_bytes(Ctx *ctx, const char *path, void *data, size_t size, StFile *out)
{
	return read_bytes(ctx, path, data, size, out) || ctx_kind(ctx, REFUSAL_FILE);
}

bool st_open(Ctx *ctx, const char *path, StFile *out)
{
	FileMap map;
	TRY(file_map_full(ctx, path, &map));
	return st_open_bytes(ctx, map.path, map.data, map.size, out);
}

const Tensor *st_find(const StFile *f, const char *name)
{
	NamedTensor key = {.name = name};
	const NamedTensor *t =
		f->n ? bsearch(&key, f->tensor, f->n, sizeof *f->tensor, by_name) : NULL;
	return t ? &t->tensor : NULL;
}

const char *st_meta(const StFile *f, const char *key)
{
	for (uint32_t k = 0; k < f->nmeta; k++)
		if (!strcmp(f->meta[k].key, key))
			return f->meta[k].value;
	return NULL;
}

/* ---- writing ---- */

static void add_quoted(Text *t, const char *s)
{
	text_char(t, '"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			text_printf(t, "\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			text_printf(t, "\\u%04x", (unsigned char)*s);
		else
			text_char(t, *s);
	}
	text_char(t, '"');
}

/* Adds the index. Tensors follow each other without gaps, as the format demands: so only those
 * whose predecessors are multiples of the alignment are aligned. */
static bool add_index(Ctx *ctx, const char *path, const NamedTensor *x, uint32_t n, Text *t)
{
	uint64_t at = 0;
	for (uint32_t k = 0; k < n; k++) {
		const char *dtype = name_of(x[k].tensor.dtype);
		if (!dtype)
			return ctx_error(ctx, path,
					 "tensor %s: dtype %s cannot be stored in safetensors",
					 x[k].name, dtype_name(x[k].tensor.dtype));
		add_quoted(t, x[k].name);
		text_printf(t, ":{\"dtype\":\"%s\",\"shape\":[", dtype);
		for (uint32_t d = 0; d < x[k].tensor.rank; d++)
			text_printf(t, "%s%lld", d ? "," : "", (long long)x[k].tensor.dim[d]);
		uint64_t end = at + tensor_bytes(&x[k].tensor);
		text_printf(t, "],\"data_offsets\":[%llu,%llu]}%s", (unsigned long long)at,
			    (unsigned long long)end, k + 1 < n ? "," : "");
		at = end;
	}
	return true;
}

bool st_save(Ctx *ctx, const char *path, const NamedTensor *x, uint32_t n, const StMeta *meta,
	     uint32_t nmeta)
{
	Text t;
	text_init(&t, ctx->scratch);
	text_char(&t, '{');
	if (nmeta) {
		text_add(&t, "\"__metadata__\":{");
		for (uint32_t k = 0; k < nmeta; k++) {
			add_quoted(&t, meta[k].key);
			text_char(&t, ':');
			add_quoted(&t, meta[k].value);
			text_add(&t, k + 1 < nmeta ? "," : n ? "}," : "}");
		}
	}
	TRY(add_index(ctx, path, x, n, &t));
	text_char(&t, '}');
	while ((t.n + 8) % ALIGN)
		text_char(&t, ' ');
	OutFile *out = out_begin(ctx, path);
	TRY(out && out_open(ctx, out));
	out->lasting = true;
	uint8_t head[8];
	for (uint32_t k = 0; k < 8; k++)
		head[k] = (uint8_t)((uint64_t)t.n >> 8 * k);
	out_write(out, head, sizeof head);
	out_write(out, t.data, t.n);
	for (uint32_t k = 0; k < n; k++)
		out_write(out, x[k].tensor.data, tensor_bytes(&x[k].tensor));
	return out_commit(ctx, out);
}
