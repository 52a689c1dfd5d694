/* Files of named tensors behind the API. Complex tensors are stored as real pairs and listed,
 * separated by commas, under "complex" in the metadata. */
#include <string.h>
#include <sys/stat.h>

#include "driver/api/given.h"
#include "frontend/files/npy.h"
#include "frontend/onnx/onnx.h"

struct WeftTensors {
	ARRAY(NamedTensor) item;
	ARRAY(WeftTensor) api; /* by item */
	const StMeta *meta;
	uint32_t nmeta;
	ARRAY(StMeta) own; /* to write */
};

typedef struct {
	Weft *w;
	const char *path, *name, *value;
	const WeftTensor *tensor;
	const WeftTensors *from;
	WeftTensors *t;
} Arg;

const char *weft_tensors_meta(const WeftTensors *t, const char *key)
{
	for (uint32_t k = 0; t && key && k < t->nmeta; k++)
		if (!strcmp(t->meta[k].key, key))
			return t->meta[k].value;
	return NULL;
}

const char *weft_tensors_meta_key(const WeftTensors *t, uint32_t k)
{
	return t && k < t->nmeta ? t->meta[k].key : NULL;
}

uint32_t weft_tensors_count(const WeftTensors *t)
{
	return t ? t->item.n : 0;
}

const char *weft_tensors_name(const WeftTensors *t, uint32_t k)
{
	return k < weft_tensors_count(t) ? t->item.data[k].name : NULL;
}

const WeftTensor *weft_tensors_at(const WeftTensors *t, uint32_t k)
{
	return k < weft_tensors_count(t) ? &t->api.data[k] : NULL;
}

const WeftTensor *weft_tensors_find(const WeftTensors *t, const char *name)
{
	for (uint32_t k = 0; name && k < weft_tensors_count(t); k++)
		if (!strcmp(t->item.data[k].name, name))
			return weft_tensors_at(t, k);
	return NULL;
}

const NamedTensor *tensors_list(const WeftTensors *t, uint32_t *n)
{
	*n = weft_tensors_count(t);
	return *n ? t->item.data : NULL;
}

/* ---- reading ---- */

/* Whether the list names the key: "x.0,x.1", with or without brackets, quotes and blanks. */
static bool listed(const char *list, const char *key)
{
	static const char ends[] = " ,[]\"'";
	while (list && *list) {
		list += strspn(list, ends);
		size_t n = strcspn(list, ends);
		if (n && n == strlen(key) && !strncmp(list, key, n))
			return true;
		list += n;
	}
	return false;
}

static void join_complex(Tensor *t)
{
	if (t->rank == 0 || t->dim[t->rank - 1] != 2)
		return;
	DType wide = dtype_complex(t->dtype);
	if (wide == DT_none)
		return;
	t->rank--;
	t->dtype = wide;
}

static bool open_any(Ctx *ctx, const char *path, StFile *f)
{
	struct stat st;
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return onnx_open_data(ctx, path, f);
	if (text_ends(path, ".npz"))
		return npz_open(ctx, path, f);
	if (!text_ends(path, ".npy"))
		return st_open(ctx, path, f);
	NamedTensor *one = ARENA_NEW(ctx->arena, NamedTensor);
	one->name = path_stem(ctx->arena, path);
	*f = (StFile){.n = 1, .tensor = one};
	return npy_open(ctx, path, &one->tensor);
}

/* A line of the cache, as PyTorch's tensors: a vector's access to tensors off by 16 bytes is two
 * lines. Models for GPUs need 16 bytes. */
enum { TENSOR_ALIGN = 64 };

static void align(Arena *arena, Tensor *t)
{
	if ((uintptr_t)t->data % TENSOR_ALIGN == 0)
		return;
	const size_t n = tensor_bytes(t);
	char *copy = arena_alloc(arena, n + TENSOR_ALIGN);
	copy += TENSOR_ALIGN - (uintptr_t)copy % TENSOR_ALIGN;
	memcpy(copy, t->data, n);
	t->data = copy;
}

static bool read_file(void *arg)
{
	Arg *a = arg;
	Arena *arena = weft_arena(a->w);
	StFile f = {0};
	TRY(given_text(a->w, "weft_tensors_read", "the path", a->path));
	TRY(open_any(a->w->ctx, a->path, &f));
	WeftTensors *t = a->t = ARENA_NEW(arena, WeftTensors);
	t->meta = f.meta;
	t->nmeta = f.nmeta;
	const char *complex_list = weft_tensors_meta(t, "complex");
	for (uint32_t k = 0; k < f.n; k++) {
		NamedTensor n = f.tensor[k];
		if (listed(complex_list, n.name))
			join_complex(&n.tensor);
		align(arena, &n.tensor);
		array_push(arena, &t->item, n);
		array_push(arena, &t->api, tensor_to_api(arena, &n.tensor));
	}
	return true;
}

WeftTensors *weft_tensors_read(Weft *w, const char *path)
{
	Arg a = {.w = w, .path = path};
	return boundary(w, read_file, &a) ? a.t : NULL;
}

/* ---- writing ---- */

static bool new (void *arg)
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
	static const char here[] = "weft_tensors_add";
	TRY(given(a->w, here, "the set of tensors", a->t) &&
	    given_text(a->w, here, "the name", a->name) &&
	    given(a->w, here, "the tensor", a->tensor));
	for (uint32_t k = 0; k < a->t->item.n; k++)
		if (!strcmp(a->t->item.data[k].name, a->name))
			return ctx_error(a->w->ctx, here, "there is a tensor %s already", a->name);
	NamedTensor n = {.name = arena_strdup(arena, a->name)};
	TRY(tensor_from_api(a->w->ctx, arena, a->name, a->tensor, &n.tensor));
	array_push(arena, &a->t->item, n);
	array_push(arena, &a->t->api, tensor_to_api(arena, &n.tensor));
	return true;
}

bool weft_tensors_add(Weft *w, WeftTensors *t, const char *name, const WeftTensor *tensor)
{
	Arg a = {.w = w, .t = t, .name = name, .tensor = tensor};
	return boundary(w, add, &a);
}

static bool set_meta(void *arg)
{
	Arg *a = arg;
	Arena *arena = weft_arena(a->w);
	static const char here[] = "weft_tensors_set_meta";
	TRY(given(a->w, here, "the set of tensors", a->t) &&
	    given_text(a->w, here, "the key", a->name) && given(a->w, here, "the text", a->value));
	if (!strcmp(a->name, "complex"))
		return ctx_error(a->w->ctx, here, "the key \"complex\" is Weft's own");
	const StMeta m = {arena_strdup(arena, a->name), arena_strdup(arena, a->value)};
	for (uint32_t k = 0; k < a->t->own.n; k++)
		if (!strcmp(a->t->own.data[k].key, a->name)) {
			a->t->own.data[k] = m;
			return true;
		}
	array_push(arena, &a->t->own, m);
	return true;
}

bool weft_tensors_set_meta(Weft *w, WeftTensors *t, const char *key, const char *value)
{
	Arg a = {.w = w, .t = t, .name = key, .value = value};
	return boundary(w, set_meta, &a);
}

/* Returns the tensors with complex ones as pairs of numbers; adds the names of those to *list. */
static NamedTensor *split_complex(Arena *a, const WeftTensors *t, Text *list)
{
	NamedTensor *out = ARENA_ARRAY(a, NamedTensor, t->item.n);
	for (uint32_t k = 0; k < t->item.n; k++) {
		out[k] = t->item.data[k];
		Tensor *x = &out[k].tensor;
		if (!dtype_is_complex(x->dtype))
			continue;
		text_printf(list, "%s%s", list->n ? "," : "", out[k].name);
		x->dtype = dtype_real(x->dtype);
		x->dim[x->rank++] = 2;
	}
	return out;
}

static bool write_file(void *arg)
{
	Arg *a = arg;
	Ctx *ctx = a->w->ctx;
	const WeftTensors *t = a->from;
	TRY(given(a->w, "weft_tensors_write", "the set of tensors", t) &&
	    given_text(a->w, "weft_tensors_write", "the path", a->path));
	Text list;
	text_init(&list, ctx->arena);
	if (text_ends(a->path, ".npy"))
		return t->item.n == 1
			       ? npy_save(ctx, a->path, &t->item.data[0].tensor)
			       : ctx_error(ctx, a->path, "a .npy file holds one tensor, not %u",
					   t->item.n);
	if (text_ends(a->path, ".npz"))
		return npz_save(ctx, a->path, t->item.data, t->item.n);
	NamedTensor *items = split_complex(ctx->arena, t, &list);
	StMeta *meta = ARENA_ARRAY(ctx->arena, StMeta, t->own.n + 1);
	uint32_t nmeta = 0;
	if (list.n)
		meta[nmeta++] = (StMeta){"complex", list.data};
	for (uint32_t k = 0; k < t->own.n; k++)
		meta[nmeta++] = t->own.data[k];
	return st_save(ctx, a->path, items, t->item.n, meta, nmeta);
}

bool weft_tensors_write(Weft *w, const WeftTensors *t, const char *path)
{
	Arg a = {.w = w, .from = t, .path = path};
	return boundary(w, write_file, &a);
}
