#include "frontend/files/gguf.h"

#include <string.h>

#include "base/intern.h"

enum { MAGIC_SIZE = 4, LEAST_ALIGN = 32, MOST_DEPTH = 4 };

/* Types of metadata. */
typedef enum {
	META_u8,
	META_i8,
	META_u16,
	META_i16,
	META_u32,
	META_i32,
	META_f32,
	META_bool,
	META_string,
	META_array,
	META_u64,
	META_i64,
	META_f64,
	META_COUNT
} MetaType;

static const uint8_t meta_size[META_COUNT] = {
	[META_u8] = 1,  [META_i8] = 1,   [META_u16] = 2, [META_i16] = 2, [META_u32] = 4,
	[META_i32] = 4, [META_f32] = 4,  [META_bool] = 1, [META_u64] = 8, [META_i64] = 8,
	[META_f64] = 8,
};

static const struct {
	uint32_t id;
	DType dtype;
} numbers[] = {{0, DT_f32},  {1, DT_f16},  {24, DT_i8},  {25, DT_i16},
	       {26, DT_i32}, {27, DT_i64}, {28, DT_f64}, {30, DT_bf16}};

typedef struct {
	Ctx *ctx;
	const char *path;
	const uint8_t *data;
	size_t size, at;
} GgufReader;

bool is_gguf(const void *data, size_t size)
{
	return size >= MAGIC_SIZE && !memcmp(data, "GGUF", MAGIC_SIZE);
}

static bool truncated(GgufReader *r)
{
	return ctx_error(r->ctx, r->path, "truncated: its index ends behind byte %zu", r->size) ||
	       ctx_kind(r->ctx, REFUSAL_FILE);
}

/* Reads a little-endian number of n bytes. */
static bool read_number(GgufReader *r, uint32_t n, uint64_t *out)
{
	if (n > r->size - r->at)
		return truncated(r);
	*out = 0;
	for (uint32_t k = n; k-- > 0;)
		*out = *out << 8 | r->data[r->at + k];
	r->at += n;
	return true;
}

/* Reads a string. out may be NULL. */
static bool read_text(GgufReader *r, const char **out)
{
	uint64_t n;
	TRY(read_number(r, 8, &n));
	if (n > r->size - r->at)
		return truncated(r);
	if (out)
		*out = arena_strndup(r->ctx->arena, (const char *)r->data + r->at, n);
	r->at += n;
	return true;
}

/* Skips a list of values. */
static bool skip_array(GgufReader *r, uint32_t depth)
{
	uint64_t type, n, bytes;
	TRY(read_number(r, 4, &type) && read_number(r, 8, &n));
	if (type < META_COUNT && meta_size[type]) {
		if (__builtin_mul_overflow(n, (uint64_t)meta_size[type], &bytes) ||
		    bytes > r->size - r->at)
			return truncated(r);
		r->at += bytes;
		return true;
	}
	if ((type != META_string && type != META_array) || depth == MOST_DEPTH)
		return ctx_error(r->ctx, r->path, "metadata of type %llu: damaged, or a newer file",
				 (unsigned long long)type);
	for (uint64_t k = 0; k < n; k++)
		TRY(type == META_string ? read_text(r, NULL) : skip_array(r, depth + 1));
	return true;
}

static bool read_meta(GgufReader *r, GgufFile *f)
{
	GgufMeta m = {0};
	uint64_t type, v;
	TRY(read_text(r, &m.key) && read_number(r, 4, &type));
	if (type == META_array)
		return skip_array(r, 0);
	if (type == META_string) {
		TRY(read_text(r, &m.text));
	} else {
		if (type >= META_COUNT)
			return ctx_error(r->ctx, r->path,
					 "metadata %s of type %llu: damaged, or a newer file",
					 m.key, (unsigned long long)type);
		TRY(read_number(r, meta_size[type], &v));
		if (type == META_f32 || type == META_f64)
			return true;
		const uint32_t shift = 64 - 8u * meta_size[type];
		const bool is_signed = type == META_i8 || type == META_i16 || type == META_i32;
		m.number = is_signed ? (int64_t)(v << shift) >> shift : (int64_t)v;
	}
	f->meta[f->nmeta++] = m;
	return true;
}

/* Sets what the tensor's numbers are. Returns their bytes in *bytes. */
static bool read_type(GgufReader *r, uint32_t id, GgufTensor *t, uint64_t *bytes)
{
	const uint64_t all = (uint64_t)tensor_numel(&t->tensor);
	for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
		if (numbers[k].id == id)
			t->tensor.dtype = numbers[k].dtype;
	*bytes = all * dtype_size(t->tensor.dtype);
	if (t->tensor.dtype != DT_none)
		return true;
	if (!(t->blocks = gguf_blocks(id)))
		return ctx_error(r->ctx, r->path,
				 "tensor %s: its numbers are of GGUF's type %u, which Weft does "
				 "not read",
				 t->name, id);
	const int64_t row = t->tensor.rank ? t->tensor.dim[t->tensor.rank - 1] : 1;
	if (row % t->blocks->weights || !t->tensor.rank)
		return ctx_error(r->ctx, r->path,
				 "tensor %s: rows of %lld weights are no whole blocks of %s, which "
				 "have %u",
				 t->name, (long long)row, t->blocks->name, t->blocks->weights);
	*bytes = all / t->blocks->weights * t->blocks->bytes;
	return true;
}

/* Reads an entry of the index. *offset: of the data, from where all data begin. */
static bool read_tensor(GgufReader *r, GgufTensor *t, uint64_t *offset, uint64_t *bytes)
{
	uint64_t rank, dim, id, all = 1;
	TRY(read_text(r, &t->name) && read_number(r, 4, &rank));
	if (rank > MAX_RANK)
		return ctx_error(r->ctx, r->path, "tensor %s has %llu dimensions", t->name,
				 (unsigned long long)rank);
	t->tensor.rank = (uint32_t)rank;
	for (uint32_t k = t->tensor.rank; k-- > 0;) { /* the innermost one first */
		TRY(read_number(r, 8, &dim));
		if (__builtin_mul_overflow(all, dim ? dim : 1, &all) || all >> 48)
			return ctx_error(r->ctx, r->path,
					 "tensor %s: its sizes are impossible: expected fewer "
					 "than 2^48 elements",
					 t->name);
		t->tensor.dim[k] = (int64_t)dim;
	}
	return read_number(r, 4, &id) && read_number(r, 8, offset) &&
	       read_type(r, (uint32_t)id, t, bytes);
}

/* Makes the tensors refer to the file. offset, bytes: by tensor. */
static bool place(GgufReader *r, GgufFile *f, const uint64_t *offset, const uint64_t *bytes)
{
	const GgufMeta *a = gguf_meta(f, "general.alignment");
	const uint64_t align = a && a->number > 0 ? (uint64_t)a->number : LEAST_ALIGN;
	const uint64_t begin = r->at + (align - r->at % align) % align;
	for (uint32_t k = 0; k < f->n; k++) {
		Tensor *t = &f->tensor[k].tensor;
		uint64_t end;
		if (__builtin_add_overflow(begin, offset[k], &end) ||
		    __builtin_add_overflow(end, bytes[k], &end) || end > r->size)
			return ctx_error(r->ctx, r->path,
					 "tensor %s ends behind the end of the file: truncated?",
					 f->tensor[k].name) ||
			       ctx_kind(r->ctx, REFUSAL_FILE);
		t->data = (void *)(r->data + begin + offset[k]);
		if (t->dtype != DT_none && (uintptr_t)t->data % dtype_size(t->dtype))
			t->data = arena_dup(r->ctx->arena, t->data, bytes[k]);
	}
	return true;
}

/* Checks a count of entries, each of which has `least` bytes at least. */
static bool is_possible(GgufReader *r, uint64_t n, uint64_t least)
{
	return n <= (r->size - r->at) / least || truncated(r);
}

static bool read_index(GgufReader *r, GgufFile *f, uint64_t n)
{
	Arena *arena = r->ctx->arena;
	Intern names;
	uint64_t *offset = ARENA_ARRAY(arena, uint64_t, n);
	uint64_t *bytes = ARENA_ARRAY(arena, uint64_t, n);
	f->tensor = ARENA_ARRAY(arena, GgufTensor, n);
	intern_init(&names, arena);
	for (uint32_t k = 0; k < n; k++) {
		TRY(read_tensor(r, &f->tensor[k], &offset[k], &bytes[k]));
		const char *name = f->tensor[k].name;
		bool fresh;
		intern(&names, name, strlen(name), &fresh);
		if (!fresh)
			return ctx_error(r->ctx, r->path, "two tensors have the name %s", name);
	}
	f->n = (uint32_t)n;
	return place(r, f, offset, bytes);
}

bool gguf_open_bytes(Ctx *ctx, const char *path, const void *data, size_t size, GgufFile *f)
{
	enum { LEAST_META = 8 + 4 + 1, LEAST_TENSOR = 8 + 4 + 4 + 8 };
	GgufReader r = {.ctx = ctx, .path = path, .data = data, .size = size, .at = MAGIC_SIZE};
	uint64_t version, ntensor, nmeta;
	*f = (GgufFile){0};
	if (!is_gguf(data, size))
		return ctx_error(ctx, path, "not a GGUF file") || ctx_kind(ctx, REFUSAL_FILE);
	TRY(read_number(&r, 4, &version));
	if (version != 2 && version != 3)
		return ctx_error(ctx, path,
				 "version %llu of GGUF, expected 2 or 3%s",
				 (unsigned long long)version,
				 version & UINT16_MAX ? "" : ": it is big-endian");
	TRY(read_number(&r, 8, &ntensor) && read_number(&r, 8, &nmeta));
	TRY(is_possible(&r, nmeta, LEAST_META) && is_possible(&r, ntensor, LEAST_TENSOR));
	f->meta = ARENA_ARRAY(ctx->arena, GgufMeta, nmeta);
	for (uint64_t k = 0; k < nmeta; k++)
		TRY(read_meta(&r, f));
	return is_possible(&r, ntensor, LEAST_TENSOR) && read_index(&r, f, ntensor);
}

bool gguf_open(Ctx *ctx, const char *path, GgufFile *f)
{
	FileMap file;
	return file_map_full(ctx, path, &file) &&
	       gguf_open_bytes(ctx, file.path, file.data, file.size, f);
}

const GgufMeta *gguf_meta(const GgufFile *f, const char *key)
{
	for (uint32_t k = 0; k < f->nmeta; k++)
		if (!strcmp(f->meta[k].key, key))
			return &f->meta[k];
	return NULL;
}
