/* The contents of tensors: raw bytes, lists of numbers, files of external data, sparse ones. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/files/file.h"
#include "frontend/onnx/model.h"

/* How a data type of ONNX is stored: in raw data, and in the list of numbers that a field of the
 * message is. */
typedef enum { LIST_NONE, LIST_F32, LIST_I32, LIST_I64, LIST_F64, LIST_U64 } List;

/* Types that the compiler lacks are kept in a wider one that has all their values. Of several
 * elements in a byte the first are the low bits. */
static const struct {
	const char *name;
	DType dtype;
	List list;
	uint32_t bits; /* of an element that takes less than a byte, or whose byte is another
	                  type's; 0: none */
} types[] = {
	{"UNDEFINED", DT_none, LIST_NONE, 0},    {"FLOAT", DT_f32, LIST_F32, 0},
	{"UINT8", DT_u8, LIST_I32, 0},           {"INT8", DT_i8, LIST_I32, 0},
	{"UINT16", DT_u16, LIST_I32, 0},         {"INT16", DT_i16, LIST_I32, 0},
	{"INT32", DT_i32, LIST_I32, 0},          {"INT64", DT_i64, LIST_I64, 0},
	{"STRING", DT_none, LIST_NONE, 0},       {"BOOL", DT_bool, LIST_I32, 0},
	{"FLOAT16", DT_f16, LIST_I32, 0},        {"DOUBLE", DT_f64, LIST_F64, 0},
	{"UINT32", DT_u32, LIST_U64, 0},         {"UINT64", DT_u64, LIST_U64, 0},
	{"COMPLEX64", DT_c64, LIST_F32, 0},      {"COMPLEX128", DT_c128, LIST_F64, 0},
	{"BFLOAT16", DT_bf16, LIST_I32, 0},      {"FLOAT8E4M3FN", DT_f8e4m3, LIST_I32, 0},
	{"FLOAT8E4M3FNUZ", DT_f8e4m3fnuz, LIST_I32, 0}, {"FLOAT8E5M2", DT_f8e5m2, LIST_I32, 0},
	{"FLOAT8E5M2FNUZ", DT_f8e5m2fnuz, LIST_I32, 0}, {"UINT4", DT_u8, LIST_I32, 4},
	{"INT4", DT_i8, LIST_I32, 4},            {"FLOAT4E2M1", DT_f8e4m3, LIST_I32, 4},
	{"FLOAT8E8M0", DT_bf16, LIST_I32, 8},    {"UINT2", DT_u8, LIST_I32, 2},
	{"INT2", DT_i8, LIST_I32, 2},
};

enum { NTYPES = sizeof types / sizeof *types };

DType onnx_dtype(int64_t type)
{
	return type >= 0 && type < NTYPES ? types[type].dtype : DT_none;
}

const char *onnx_dtype_name(Ctx *ctx, int64_t type)
{
	return type >= 0 && type < NTYPES ? types[type].name
					  : arena_printf(ctx->arena, "type %lld", (long long)type);
}

/* ---- shapes ---- */

static bool shape_read(Ctx *ctx, const int64_t *dim, uint32_t rank, DType d, const char *what,
		       Tensor *out, uint64_t *bytes)
{
	if (rank > MAX_RANK)
		return ctx_error(ctx, NULL, "%s has %u dimensions, expected at most %d", what, rank,
				 MAX_RANK);
	*out = (Tensor){.dtype = d, .rank = rank};
	*bytes = dtype_size(d);
	for (uint32_t k = 0; k < rank; k++) {
		out->dim[k] = dim[k];
		if (dim[k] < 0 || __builtin_mul_overflow(*bytes, (uint64_t)dim[k], bytes) ||
		    *bytes >> 48)
			return ctx_error(ctx, NULL,
					 "%s: extents are impossible: expected none negative and "
					 "fewer than 2^48 bytes",
					 what);
	}
	return true;
}

/* ---- external data ---- */

static const char *entry_of(const OnnxTensor *t, const char *key)
{
	for (uint32_t k = 0; k < t->external.n; k++)
		if (t->external.data[k].key && !strcmp(t->external.data[k].key, key))
			return t->external.data[k].value;
	return NULL;
}

static bool number_of(Ctx *ctx, const OnnxTensor *t, const char *key, const char *what, bool *given,
		      uint64_t *out)
{
	const char *text = entry_of(t, key);
	char *end;
	*given = text;
	if (!text)
		return true;
	errno = 0;
	*out = strtoull(text, &end, 10);
	return (!errno && end != text && !*end && *text != '-') ||
	       ctx_error(ctx, NULL, "%s: %s of external data is \"%s\", expected a number", what,
			 key, text);
}

/* Whether a path stays in the folder: relative, without "..". */
static bool stays_inside(const char *path)
{
	if (!*path || *path == '/' || strchr(path, '\\'))
		return false;
	for (const char *p = path; *p;) {
		size_t n = strcspn(p, "/");
		if (n == 2 && !strncmp(p, "..", 2))
			return false;
		p += n + (p[n] == '/');
	}
	return true;
}

/* Whether the file that a path in the folder names lies there, links followed. */
static bool lies_inside(const char *folder, const char *path)
{
	char *root = realpath(*folder ? folder : ".", NULL), *file = realpath(path, NULL);
	size_t n = root ? strlen(root) : 0;
	bool ok = root && file && !strncmp(file, root, n) &&
		  (file[n] == '/' || (n && root[n - 1] == '/'));
	free(root);
	free(file);
	return ok;
}

/* Maps the file of external data at that place, once. */
static bool file_in(Ctx *ctx, OnnxFolder *folder, const char *location, const char *what,
		    FileMap *out)
{
	uint32_t id = intern_find(&folder->name, location, strlen(location));
	if (id) {
		*out = folder->file.data[id - 1];
		return true;
	}
	if (!stays_inside(location))
		return ctx_error(
			ctx, NULL,
			"%s: external data at \"%s\", expected a file in the model's folder", what,
			location);
	const char *path = *folder->path ? arena_printf(ctx->arena, "%s/%s", folder->path, location)
					 : location;
	TRY(file_map(ctx, path, out));
	if (!lies_inside(folder->path, path))
		return ctx_error(ctx, NULL,
				 "%s: external data at \"%s\" is a link out of the model's folder",
				 what, location);
	intern(&folder->name, location, strlen(location), NULL);
	array_push(ctx->arena, &folder->file, *out);
	return true;
}

static bool external(Ctx *ctx, const OnnxTensor *t, OnnxFolder *folder, const char *what,
		     WireBytes *out)
{
	const char *location = entry_of(t, "location");
	uint64_t offset = 0, length = 0;
	bool has_offset, has_length;
	FileMap file;
	if (!location || !folder)
		return ctx_error(ctx, NULL, "%s: external data without a location", what);
	TRY(number_of(ctx, t, "offset", what, &has_offset, &offset) &&
	    number_of(ctx, t, "length", what, &has_length, &length));
	TRY(file_in(ctx, folder, location, what, &file));
	if (offset > file.size || (has_length && length > file.size - offset))
		return ctx_error(ctx, NULL,
				 "%s: external data: %llu bytes from byte %llu on, but %s has %zu",
				 what, (unsigned long long)length, (unsigned long long)offset,
				 location, file.size);
	*out = (WireBytes){file.data + offset,
			   has_length ? (size_t)length : file.size - (size_t)offset};
	return true;
}

/* ---- contents ---- */

static void *aligned(Ctx *ctx, const uint8_t *p, size_t bytes, DType d)
{
	size_t align = dtype_size(d) > 8 ? 8 : dtype_size(d);
	if ((uintptr_t)p % align == 0 && bytes)
		return (void *)(uintptr_t)p;
	return arena_dup(ctx->arena, p, bytes);
}

static bool from_raw(Ctx *ctx, WireBytes raw, uint64_t bytes, const char *what, Tensor *out)
{
	if (raw.n != bytes)
		return ctx_error(ctx, NULL, "%s has %zu bytes of data, its type needs %llu", what,
				 raw.n, (unsigned long long)bytes);
	out->data = aligned(ctx, raw.p, raw.n, out->dtype);
	return true;
}

/* ---- elements of less than a byte, and types that are kept in others ---- */

/* Returns a number of `mantissa` bits behind a sign and an exponent of `bias`; subnormal for
 * exponent 0. */
static double small_float(uint32_t code, uint32_t exponent, uint32_t mantissa, int bias)
{
	int e = (int)(code >> mantissa & ((1u << exponent) - 1));
	double m = (double)(code & ((1u << mantissa) - 1)) / (1 << mantissa);
	double v = e ? ldexp(1 + m, e - bias) : ldexp(m, 1 - bias);
	return code >> (mantissa + exponent) & 1 ? -v : v;
}

static double stored_value(int64_t type, uint32_t code, uint32_t bits)
{
	switch (type) {
	case ONNX_FLOAT4E2M1:
		return small_float(code, 2, 1, 1);
	case ONNX_FLOAT8E8M0:
		return code == 0xff ? (double)NAN : ldexp(1, (int)code - 127);
	case ONNX_INT4:
	case ONNX_INT2:
		return (double)code - (double)(code >> (bits - 1) << bits);
	default:
		return code;
	}
}

/* Returns the values of all codes of that many bits, one behind the other. */
static Tensor values_of_codes(Ctx *ctx, int64_t type, uint32_t bits, DType d)
{
	Tensor all = {.dtype = d, .rank = 1, .dim = {1 << bits}};
	all.data = arena_alloc(ctx->arena, tensor_bytes(&all));
	for (uint32_t code = 0; code < 1u << bits; code++)
		tensor_set_f64(&all, code, stored_value(type, code, bits));
	return all;
}

/* Takes one byte of the file after the other: raw, or one in each number of the list. */
static bool next_byte(WireBytes *raw, const WireList *runs, uint32_t *run, uint8_t *out)
{
	uint64_t v;
	while (!raw->n && *run < runs->n)
		*raw = runs->data[(*run)++];
	if (!runs->n) {
		TRY(raw->n);
		*out = *raw->p++;
		raw->n--;
		return true;
	}
	TRY(wire_varint(raw, &v));
	*out = (uint8_t)v;
	return true;
}

static bool from_stored(Ctx *ctx, const OnnxTensor *t, bool is_raw, WireBytes raw, const char *what,
			Tensor *out)
{
	uint32_t bits = types[t->type].bits, run = 0;
	int64_t n = tensor_numel(out);
	uint64_t each = 8 / bits, bytes = ((uint64_t)n + each - 1) / each, have = raw.n;
	const WireList none = {0}, *runs = is_raw ? &none : &t->i32;
	uint8_t byte = 0;
	for (uint32_t k = 0; k < runs->n; k++)
		have += runs->data[k].n;
	if (have < bytes || (is_raw && have != bytes))
		return ctx_error(ctx, NULL, "%s has %llu bytes of data, its type needs %llu", what,
				 (unsigned long long)have, (unsigned long long)bytes);
	out->data = arena_alloc(ctx->arena, tensor_bytes(out));
	const size_t size = dtype_size(out->dtype);
	const Tensor values = values_of_codes(ctx, t->type, bits, out->dtype);
	for (int64_t k = 0; k < n; k++) {
		uint32_t shift = (uint32_t)((uint64_t)k % each) * bits;
		if (!shift && !next_byte(&raw, runs, &run, &byte))
			return ctx_error(ctx, NULL, "%s has too few numbers for its type", what);
		const uint32_t code = byte >> shift & ((1u << bits) - 1);
		memcpy((char *)out->data + (size_t)k * size,
		       (const char *)values.data + code * size, size);
	}
	return true;
}

static const WireList *list_of(const OnnxTensor *t, List list)
{
	switch (list) {
	case LIST_F32:
		return &t->f32;
	case LIST_I32:
		return &t->i32;
	case LIST_I64:
		return &t->i64;
	case LIST_F64:
		return &t->f64;
	case LIST_U64:
		return &t->u64;
	default:
		return NULL;
	}
}

/* Reads numbers of a fixed width, one run behind the other. */
static bool from_fixed(Ctx *ctx, const WireList *runs, uint64_t bytes, const char *what,
		       Tensor *out)
{
	uint64_t have = 0;
	for (uint32_t k = 0; k < runs->n; k++)
		have += runs->data[k].n;
	if (have != bytes)
		return ctx_error(ctx, NULL, "%s has %llu bytes of numbers, its type needs %llu",
				 what, (unsigned long long)have, (unsigned long long)bytes);
	if (runs->n == 1) {
		out->data =
			aligned(ctx, runs->data[0].p, runs->data[0].n,
				dtype_is_complex(out->dtype) ? dtype_real(out->dtype) : out->dtype);
		return true;
	}
	uint8_t *to = out->data = arena_alloc(ctx->arena, bytes);
	for (uint32_t k = 0; k < runs->n; k++) {
		memcpy(to, runs->data[k].p, runs->data[k].n);
		to += runs->data[k].n;
	}
	return true;
}

static void put(Tensor *t, uint64_t k, uint64_t v)
{
	size_t size = dtype_size(t->dtype);
	uint8_t *to = (uint8_t *)t->data + k * size;
	if (t->dtype == DT_bool)
		v = v != 0;
	for (size_t i = 0; i < size; i++) /* little-endian, as the file */
		to[i] = (uint8_t)(v >> (8 * i));
}

/* Reads varints: a number takes a byte at least, which bounds what is allocated. */
static bool from_varints(Ctx *ctx, const WireList *runs, const char *what, Tensor *out)
{
	uint64_t want = (uint64_t)tensor_numel(out), have = 0, v;
	for (uint32_t k = 0; k < runs->n; k++)
		have += runs->data[k].n;
	if (have < want)
		return ctx_error(ctx, NULL, "%s has at most %llu numbers, its type needs %llu",
				 what, (unsigned long long)have, (unsigned long long)want);
	out->data = arena_alloc(ctx->arena, want * dtype_size(out->dtype));
	have = 0;
	for (uint32_t k = 0; k < runs->n; k++)
		for (WireBytes run = runs->data[k]; run.n; have++) {
			if (!wire_varint(&run, &v))
				return ctx_error(ctx, NULL, "%s: a number has no end", what);
			if (have < want)
				put(out, have, v);
		}
	return have == want || ctx_error(ctx, NULL, "%s has %llu numbers, its type needs %llu",
					 what, (unsigned long long)have, (unsigned long long)want);
}

static bool read_tensor(Ctx *ctx, const OnnxTensor *t, OnnxFolder *folder, const char *what,
			Tensor *out)
{
	DType d = onnx_dtype(t->type);
	uint64_t bytes;
	WireBytes raw = t->raw;
	if (!d)
		return ctx_error(ctx, NULL, "%s is of %s, which is not supported", what,
				 onnx_dtype_name(ctx, t->type)) ||
		       ctx_kind(ctx, REFUSAL_DTYPE);
	TRY(shape_read(ctx, t->dim.data, t->dim.n, d, what, out, &bytes));
	if (t->location == 1)
		TRY(external(ctx, t, folder, what, &raw));
	bool is_raw = t->location == 1 || t->has_raw;
	if (types[t->type].bits)
		return from_stored(ctx, t, is_raw, raw, what, out);
	if (is_raw)
		return from_raw(ctx, raw, bytes, what, out);
	List list = types[t->type].list;
	const WireList *runs = list_of(t, list);
	return list == LIST_F32 || list == LIST_F64 ? from_fixed(ctx, runs, bytes, what, out)
						    : from_varints(ctx, runs, what, out);
}

bool onnx_tensor(Ctx *ctx, const OnnxTensor *t, OnnxFolder *folder, const char *what, Tensor *out)
{
	return read_tensor(ctx, t, folder, what, out) || ctx_kind(ctx, REFUSAL_FILE);
}

/* ---- sparse ---- */

/* Sets *out to the row-major place of value k; indices are places, or one row of coordinates for
 * each. */
static bool place_of(const Tensor *index, const Tensor *dense, int64_t k, int64_t *out)
{
	uint32_t rank = dense->rank;
	if (index->rank == 1) {
		*out = tensor_i64(index, k);
		return *out >= 0 && *out < tensor_numel(dense);
	}
	*out = 0;
	for (uint32_t d = 0; d < rank; d++) {
		int64_t at = tensor_i64(index, k * rank + d);
		if (at < 0 || at >= dense->dim[d])
			return false;
		*out = *out * dense->dim[d] + at;
	}
	return true;
}

bool onnx_sparse(Ctx *ctx, const OnnxSparse *s, OnnxFolder *folder, const char *what, Tensor *out)
{
	Tensor value, index;
	uint64_t bytes;
	if (!s->values || !s->indices)
		return ctx_error(ctx, NULL, "%s: a sparse tensor without values or indices", what);
	TRY(onnx_tensor(ctx, s->values, folder, what, &value) &&
	    onnx_tensor(ctx, s->indices, folder, what, &index));
	TRY(shape_read(ctx, s->dim.data, s->dim.n, value.dtype, what, out, &bytes));
	int64_t n = tensor_numel(&value);
	bool fits = index.dtype == DT_i64 &&
		    ((index.rank == 1 && index.dim[0] == n) ||
		     (index.rank == 2 && index.dim[0] == n && index.dim[1] == out->rank));
	if (!fits)
		return ctx_error(
			ctx, NULL,
			"%s: indices of a sparse tensor, expected INT64 [%lld] or [%lld, %u]", what,
			(long long)n, (long long)n, out->rank);
	folder->dense += bytes; /* the file does not bound them */
	if (folder->dense > (uint64_t)1 << 30)
		return ctx_error(ctx, NULL,
				 "%s: sparse tensors of %llu bytes, expected at most 2^30", what,
				 (unsigned long long)folder->dense);
	out->data = arena_alloc(ctx->arena, bytes);
	size_t size = dtype_size(value.dtype);
	for (int64_t k = 0, at; k < n; k++) {
		if (!place_of(&index, out, k, &at))
			return ctx_error(ctx, NULL,
					 "%s: index %lld of a sparse tensor is out of range", what,
					 (long long)k);
		memcpy((uint8_t *)out->data + (size_t)at * size,
		       (const uint8_t *)value.data + (size_t)k * size, size);
	}
	return true;
}
