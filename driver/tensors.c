/* Files of named tensors behind the API. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver_priv.h"
#include "frontend/file.h"

typedef struct {
	const char *name;
	WeftTensor tensor;
} Named;

struct WeftTensors {
	ARRAY(Named) item;
	ARRAY(const char *) key;
	ARRAY(const char *) value;
};

static const struct {
	const char *name;
	DType dtype;
} names[] = {
        {"BOOL", DT_bool}, {"U8", DT_u8},     {"I8", DT_i8},   {"I16", DT_i16},  {"I32", DT_i32},
        {"I64", DT_i64},   {"U16", DT_u16},   {"U32", DT_u32}, {"U64", DT_u64},  {"F16", DT_f16},
        {"BF16", DT_bf16}, {"F32", DT_f32},   {"F64", DT_f64}, {"C64", DT_c64},
        {"F8_E4M3", DT_f8e4m3}, {"F8_E5M2", DT_f8e5m2},
};

const char *weft_tensors_meta(const WeftTensors *t, const char *key)
{
	for (uint32_t k = 0; k < t->key.n; k++)
		if (!strcmp(t->key.data[k], key))
			return t->value.data[k];
	return NULL;
}

uint32_t weft_tensors_count(const WeftTensors *t)
{
	return t->item.n;
}

const char *weft_tensors_name(const WeftTensors *t, uint32_t k)
{
	return t->item.data[k].name;
}

const WeftTensor *weft_tensors_at(const WeftTensors *t, uint32_t k)
{
	return &t->item.data[k].tensor;
}

const WeftTensor *weft_tensors_find(const WeftTensors *t, const char *name)
{
	for (uint32_t k = 0; k < t->item.n; k++)
		if (!strcmp(t->item.data[k].name, name))
			return &t->item.data[k].tensor;
	return NULL;
}

typedef struct {
	Weft *w;
	const char *path, *name;
	const WeftTensor *tensor;
	const WeftTensors *from;
	WeftTensors *t;
} Arg;

static bool read_entry(Arg *a, const char *key, json_t *e, const FileMap *f, size_t start)
{
	Ctx *ctx = a->w->ctx;
	Tensor t = {.dtype = DT_none};
	json_t *shape = json_object_get(e, "shape"), *off = json_object_get(e, "data_offsets");
	const char *type = json_string_value(json_object_get(e, "dtype"));
	for (size_t k = 0; type && k < sizeof names / sizeof *names; k++)
		if (!strcmp(names[k].name, type))
			t.dtype = names[k].dtype;
	t.rank = (uint32_t)json_array_size(shape);
	if (t.dtype == DT_none || t.rank > MAX_RANK || json_array_size(off) != 2)
		return ctx_error(ctx, a->path, "tensor %s: unknown dtype or bad header", key);
	uint64_t want = dtype_size(t.dtype);
	for (uint32_t k = 0; k < t.rank; k++) {
		t.dim[k] = json_integer_value(json_array_get(shape, k));
		if (t.dim[k] < 0 || __builtin_mul_overflow(want, (uint64_t)t.dim[k], &want))
			return ctx_error(ctx, a->path, "tensor %s: bad shape", key);
	}
	uint64_t lo = (uint64_t)json_integer_value(json_array_get(off, 0));
	uint64_t hi = (uint64_t)json_integer_value(json_array_get(off, 1));
	if (lo > hi || hi > f->size - start || hi - lo != want)
		return ctx_error(ctx, a->path, "tensor %s: lies outside the file", key);
	t.data = f->data + start + lo;
	array_push(weft_arena(a->w), &a->t->item,
	           (Named){arena_strdup(weft_arena(a->w), key), tensor_to_api(weft_arena(a->w), &t)});
	return true;
}

static int by_name(const void *pa, const void *pb)
{
	return name_compare(((const Named *)pa)->name, ((const Named *)pb)->name);
}

static bool read_header(Arg *a, json_t *root, const FileMap *f, size_t start)
{
	const char *key;
	json_t *e, *v;
	const char *sub;
	json_object_foreach(root, key, e)
	{
		if (strcmp(key, "__metadata__")) {
			TRY(read_entry(a, key, e, f, start));
			continue;
		}
		json_object_foreach(e, sub, v)
		{
			array_push(weft_arena(a->w), &a->t->key, arena_strdup(weft_arena(a->w), sub));
			array_push(weft_arena(a->w), &a->t->value,
			           arena_strdup(weft_arena(a->w), json_string_value(v) ? json_string_value(v) : ""));
		}
	}
	if (a->t->item.n)
		qsort(a->t->item.data, a->t->item.n, sizeof *a->t->item.data, by_name);
	return true;
}

/* Pairs of reals listed under "complex" become complex. */
static void join_complex(Arg *a)
{
	const char *list = weft_tensors_meta(a->t, "complex");
	for (uint32_t k = 0; list && k < a->t->item.n; k++) {
		Named *n = &a->t->item.data[k];
		const char *p = strstr(list, n->name);
		size_t len = strlen(n->name);
		while (p && ((p[len] && strchr("0123456789.", p[len])) || (p > list && strchr("abcdefghijklmnopqrstuvwxyz", p[-1]))))
			p = strstr(p + 1, n->name);
		if (!p || n->tensor.ndim == 0 || n->tensor.shape[n->tensor.ndim - 1] != 2)
			continue;
		n->tensor.ndim--;
		n->tensor.dtype.code = WEFT_COMPLEX;
		n->tensor.dtype.bits = (uint8_t)(2 * n->tensor.dtype.bits);
	}
}

static bool read_file(void *arg)
{
	Arg *a = arg;
	FileMap f;
	uint64_t n;
	json_error_t err;
	TRY(file_map(a->w->ctx, a->path, &f));
	if (f.size < 8 || (memcpy(&n, f.data, 8), n > f.size - 8))
		return ctx_error(a->w->ctx, a->path, "not a safetensors file, or truncated");
	json_t *root = json_loadb((const char *)f.data + 8, n, JSON_REJECT_DUPLICATES, &err);
	if (!root)
		return ctx_error(a->w->ctx, a->path, "bad header: %s", err.text);
	a->t = ARENA_NEW(weft_arena(a->w), WeftTensors);
	bool ok = read_header(a, root, &f, 8 + n);
	json_decref(root);
	join_complex(a);
	return ok;
}

WeftTensors *weft_tensors_read(Weft *w, const char *path)
{
	Arg a = {.w = w, .path = path};
	return boundary(w, read_file, &a) ? a.t : NULL;
}

static bool new(void *arg)
{
	Arg *a = arg;
	a->t = ARENA_NEW(weft_arena(a->w), WeftTensors);
	return true;
}

WeftTensors *weft_tensors_new(Weft *w)
{
	Arg a = {.w = w};
	return boundary(w, new, &a) ? a.t : NULL;
}

static bool add(void *arg)
{
	Arg *a = arg;
	Arena *arena = weft_arena(a->w);
	Tensor t;
	TRY(tensor_from_api(a->w->ctx, arena, a->name, a->tensor, &t));
	array_push(arena, &a->t->item, (Named){arena_strdup(arena, a->name), tensor_to_api(arena, &t)});
	return true;
}

bool weft_tensors_add(Weft *w, WeftTensors *t, const char *name, const WeftTensor *tensor)
{
	Arg a = {.w = w, .t = t, .name = name, .tensor = tensor};
	return boundary(w, add, &a);
}

bool weft_tensors_write(Weft *w, const WeftTensors *t, const char *path)
{
	(void)t;
	return ctx_error(w->ctx, path, "cannot write tensors yet");
}
