#include "frontend/files/npy.h"

#include <stdlib.h>
#include <string.h>

#include "frontend/files/archive.h"
#include "frontend/files/out_file.h"
#include "frontend/files/zip_writer.h"

static const struct {
	const char *name;
	DType dtype;
} dtypes[] = {
	{"f8", DT_f64}, {"f4", DT_f32},  {"f2", DT_f16}, {"i8", DT_i64},   {"i4", DT_i32},
	{"i2", DT_i16}, {"i1", DT_i8},   {"u8", DT_u64}, {"u4", DT_u32},   {"u2", DT_u16},
	{"u1", DT_u8},  {"b1", DT_bool}, {"c8", DT_c64}, {"c16", DT_c128},
};

/* ---- reading ---- */

typedef struct {
	Ctx *ctx;
	const char *where, *p, *end; /* the header, a Python dict */
} NpyReader;

static void skip_space(NpyReader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\n'))
		r->p++;
}

static bool accept(NpyReader *r, char c)
{
	skip_space(r);
	bool yes = r->p < r->end && *r->p == c;
	r->p += yes;
	return yes;
}

static bool bad_header(NpyReader *r)
{
	return ctx_error(r->ctx, r->where, "bad header of a .npy array");
}

static bool quoted(NpyReader *r, char *out, size_t cap)
{
	skip_space(r);
	char q = r->p < r->end ? *r->p : 0;
	size_t n = 0;
	if (q != '\'' && q != '"')
		return bad_header(r);
	for (r->p++; r->p < r->end && *r->p != q; r->p++)
		if (n + 1 < cap)
			out[n++] = *r->p;
	out[n] = 0;
	return accept(r, q) || bad_header(r);
}

static bool read_dtype(NpyReader *r, Tensor *t)
{
	char d[16];
	TRY(quoted(r, d, sizeof d));
	for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
		if (!strcmp(d + (*d != 0), dtypes[k].name))
			t->dtype = dtypes[k].dtype;
	bool little =
		*d == '<' || *d == '|' || *d == '=' || (*d == '>' && dtype_size(t->dtype) == 1);
	return (little && t->dtype != DT_none) ||
	       ctx_error(r->ctx, r->where,
			 "unsupported element type %s, expected a little-endian number", d);
}

static bool read_shape(NpyReader *r, Tensor *t)
{
	if (!accept(r, '('))
		return bad_header(r);
	while (!accept(r, ')')) {
		int64_t v = 0;
		skip_space(r);
		const char *start = r->p;
		for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++)
			if (__builtin_mul_overflow(v, 10, &v) ||
			    __builtin_add_overflow(v, *r->p - '0', &v))
				return bad_header(r);
		if (r->p == start || t->rank == MAX_RANK)
			return bad_header(r);
		t->dim[t->rank++] = v;
		if (r->p < r->end && *r->p == 'L')
			r->p++;
		accept(r, ',');
	}
	return true;
}

static bool read_bool(NpyReader *r, bool *out)
{
	skip_space(r);
	size_t left = (size_t)(r->end - r->p);
	*out = left >= 4 && !memcmp(r->p, "True", 4);
	if (!*out && (left < 5 || memcmp(r->p, "False", 5)))
		return bad_header(r);
	r->p += *out ? 4 : 5;
	return true;
}

/* Reads a header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }. */
static bool read_header(NpyReader *r, Tensor *t, bool *fortran)
{
	uint32_t seen = 0;
	if (!accept(r, '{'))
		return bad_header(r);
	while (!accept(r, '}')) {
		char key[24];
		TRY(quoted(r, key, sizeof key));
		if (!accept(r, ':'))
			return bad_header(r);
		if (!strcmp(key, "descr") && !(seen & 1)) {
			TRY(read_dtype(r, t));
			seen |= 1;
		} else if (!strcmp(key, "fortran_order") && !(seen & 2)) {
			TRY(read_bool(r, fortran));
			seen |= 2;
		} else if (!strcmp(key, "shape") && !(seen & 4)) {
			TRY(read_shape(r, t));
			seen |= 4;
		} else {
			return bad_header(r);
		}
		accept(r, ',');
	}
	return seen == 7 || bad_header(r);
}

/* Sets dst[i, j, ...] in row-major order to src[..., j, i]: the source index advances fastest in
 * the first dim. */
static void from_fortran(const Tensor *t, const uint8_t *src, uint8_t *dst)
{
	size_t item = dtype_size(t->dtype);
	int64_t index[MAX_RANK] = {0}, n = tensor_numel(t);
	for (int64_t i = 0; i < n; i++) {
		int64_t at = 0;
		for (uint32_t k = t->rank; k-- > 0;)
			at = at * t->dim[k] + index[k];
		memcpy(dst + (size_t)i * item, src + (size_t)at * item, item);
		for (uint32_t k = t->rank; k-- > 0 && ++index[k] == t->dim[k];)
			index[k] = 0;
	}
}

static bool parse(Ctx *ctx, const char *where, const uint8_t *data, size_t size, Tensor *t)
{
	*t = (Tensor){0};
	if (size < 10 || memcmp(data, "\x93NUMPY", 6))
		return ctx_error(ctx, where, "not a .npy array");
	size_t at = data[6] == 1 ? 10 : 12;
	size_t n = data[8] + ((size_t)data[9] << 8);
	if (data[6] >= 2 && size >= 12)
		n += ((size_t)data[10] << 16) + ((size_t)data[11] << 24);
	if (data[6] < 1 || data[6] > 3 || size < at || n > size - at)
		return ctx_error(ctx, where, "truncated .npy array, or an unknown version");
	NpyReader r = {ctx, where, (const char *)data + at, (const char *)data + at + n};
	bool fortran = false;
	TRY(read_header(&r, t, &fortran));
	uint64_t bytes = dtype_size(t->dtype), have = size - at - n;
	for (uint32_t k = 0; k < t->rank; k++)
		if (__builtin_mul_overflow(bytes, (uint64_t)t->dim[k], &bytes))
			return bad_header(&r);
	if (bytes > have)
		return ctx_error(ctx, where,
				 "truncated .npy array: %llu bytes, its shape needs %llu",
				 (unsigned long long)have, (unsigned long long)bytes);
	t->data = arena_alloc(ctx->arena, bytes);
	if (fortran && t->rank > 1 && bytes)
		from_fortran(t, data + at + n, t->data);
	else if (bytes)
		memcpy(t->data, data + at + n, bytes);
	return true;
}

bool npy_parse(Ctx *ctx, const char *where, const uint8_t *data, size_t size, Tensor *t)
{
	return parse(ctx, where, data, size, t) || ctx_kind(ctx, REFUSAL_FILE);
}

bool npy_open(Ctx *ctx, const char *path, Tensor *t)
{
	FileMap map;
	TRY(file_map_full(ctx, path, &map));
	return npy_parse(ctx, map.path, map.data, map.size, t);
}

static int by_name(const void *a, const void *b)
{
	return name_compare(((const NamedTensor *)a)->name, ((const NamedTensor *)b)->name);
}

bool npz_open(Ctx *ctx, const char *path, StFile *out)
{
	Archive a;
	*out = (StFile){0};
	TRY(archive_open(ctx, path, &a));
	out->tensor = ARENA_ARRAY(ctx->arena, NamedTensor, a.member.n);
	for (uint32_t k = 0; k < a.member.n; k++) {
		Member *m = &a.member.data[k];
		size_t n = strlen(m->name);
		Bytes raw;
		if (n < 4 || strcmp(m->name + n - 4, ".npy"))
			continue;
		NamedTensor *t = &out->tensor[out->n++];
		t->name = arena_strndup(ctx->arena, m->name, n - 4);
		const char *where = arena_printf(ctx->scratch, "%s: %s", path, m->name);
		TRY(archive_read(ctx, &a, m, &raw));
		TRY(npy_parse(ctx, where, raw.data, raw.size, &t->tensor));
	}
	qsort(out->tensor, out->n, sizeof *out->tensor, by_name);
	return true;
}

/* ---- writing ---- */

/* Writes the header, padded so that the data is 64-byte aligned within the file. */
static bool header_text(Ctx *ctx, const char *path, const Tensor *t, Text *out)
{
	const char *name = NULL;
	for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
		if (dtypes[k].dtype == t->dtype)
			name = dtypes[k].name;
	if (!name)
		return ctx_error(ctx, path,
				 "dtype %s cannot be stored in .npy and .npz: a .safetensors file "
				 "has it",
				 dtype_name(t->dtype));
	Text dict;
	text_init(&dict, ctx->scratch);
	text_printf(&dict, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
		    dtype_size(t->dtype) == 1 ? '|' : '<', name);
	for (uint32_t k = 0; k < t->rank; k++)
		text_printf(&dict, "%lld%s", (long long)t->dim[k],
			    t->rank == 1      ? ","
			    : k + 1 < t->rank ? ", "
					      : "");
	text_add(&dict, "), }");
	while ((10 + dict.n + 1) % 64)
		text_char(&dict, ' ');
	text_char(&dict, '\n');
	text_init(out, ctx->scratch);
	text_addn(out, "\x93NUMPY\x01", 7);
	text_addn(out, "", 1);
	text_char(out, (char)(dict.n & 255));
	text_char(out, (char)(dict.n >> 8));
	text_addn(out, dict.data, dict.n);
	return true;
}

bool npy_save(Ctx *ctx, const char *path, const Tensor *t)
{
	Text head;
	TRY(header_text(ctx, path, t, &head));
	OutFile *out = out_begin(ctx, path);
	TRY(out && out_open(ctx, out));
	out_write(out, head.data, head.n);
	out_write(out, t->data, tensor_bytes(t));
	return out_commit(ctx, out);
}

bool npz_save(Ctx *ctx, const char *path, const NamedTensor *x, uint32_t n)
{
	OutFile *out = out_begin(ctx, path);
	TRY(out && out_open(ctx, out));
	ZipWriter z;
	zip_begin(ctx, out, &z);
	for (uint32_t k = 0; k < n; k++) {
		Text head;
		if (!header_text(ctx, path, &x[k].tensor, &head)) {
			out_drop(out);
			return false;
		}
		const Bytes part[] = {{(const uint8_t *)head.data, head.n},
				      {x[k].tensor.data, tensor_bytes(&x[k].tensor)}};
		zip_add(&z, arena_printf(ctx->scratch, "%s.npy", x[k].name), part, 2);
	}
	zip_end(&z);
	return out_commit(ctx, out);
}
