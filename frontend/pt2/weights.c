/* Parameters, buffers and constants: views into the archive's members where they are contiguous
 * there. */
#include <string.h>
#include <sys/mman.h>

#include "frontend/pt2/priv.h"

/* Concrete form of a tensor_meta. */
typedef struct {
	DType dtype;
	uint32_t rank;
	int64_t size[MAX_RANK], stride[MAX_RANK], offset;
	uint64_t numel,
		last; /* elements of the tensor; index of the last one in the storage, plus 1 */
	bool contiguous;
} Strided;

static bool const_int(Import *im, Sym s, int64_t *out)
{
	return sym_is_const(im->syms, s, out) && *out >= 0;
}

/* Measures extents and strides, overflow-checked. */
static bool measure(Import *im, const char *name, const Meta *m, Strided *s)
{
	*s = (Strided){.dtype = m->dtype, .rank = m->rank, .numel = 1, .contiguous = true};
	bool ok = const_int(im, m->offset, &s->offset);
	for (uint32_t k = 0; k < m->rank && ok; k++)
		ok = const_int(im, m->size[k], &s->size[k]) &&
		     const_int(im, m->stride[k], &s->stride[k]);
	uint64_t last = (uint64_t)s->offset + 1;
	for (uint32_t k = m->rank; k-- > 0 && ok;) {
		uint64_t n = (uint64_t)s->size[k], step = (uint64_t)s->stride[k], reach;
		s->contiguous &= n == 1 || step == s->numel;
		ok = !__builtin_mul_overflow(n ? n - 1 : 0, step, &reach) &&
		     !__builtin_add_overflow(last, reach, &last) &&
		     !__builtin_mul_overflow(s->numel, n, &s->numel);
	}
	ok = ok && s->numel < (uint64_t)1 << 48 && last < (uint64_t)1 << 48;
	s->contiguous |= s->numel == 0;
	s->last = s->numel ? last : 0;
	return ok || ctx_error(im->ctx, NULL,
			       "weight %s: sizes, strides or offset are impossible: expected none "
			       "negative and fewer than 2^48 elements",
			       name);
}

static void copy_strided(const Strided *s, const uint8_t *src, uint8_t *dst, uint32_t dim)
{
	size_t item = dtype_size(s->dtype), inner = item;
	for (uint32_t k = dim + 1; k < s->rank; k++)
		inner *= (size_t)s->size[k];
	for (int64_t i = 0; i < s->size[dim]; i++) {
		const uint8_t *from = src + (size_t)(i * s->stride[dim]) * item;
		if (dim + 1 == s->rank)
			memcpy(dst + (size_t)i * item, from, item);
		else
			copy_strided(s, from, dst + (size_t)i * inner, dim + 1);
	}
}

typedef struct {
	void *p;
	size_t n;
} Pages;

static void free_pages(void *arg)
{
	Pages *z = arg;
	if (z->p)
		munmap(z->p, z->n);
}

/* Returns n bytes of zeros. Fresh pages of zeros cost nothing until they are read. */
static const uint8_t *zeros(Import *im, const char *name, size_t n)
{
	if (n < 4096)
		return arena_alloc(im->ctx->arena, n);
	Pages *z = ARENA_NEW(im->ctx->arena, Pages);
	ctx_defer(im->ctx, free_pages, z);
	void *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		ctx_error(im->ctx, NULL, "weight %s: no memory for %zu bytes", name, n);
		return NULL;
	}
	*z = (Pages){p, n};
	return p;
}

static const uint8_t *contents(Import *im, const char *name, const Strided *s, const char *member,
			       const Bytes *raw)
{
	size_t item = dtype_size(s->dtype), bytes = s->numel * item;
	if (s->numel == 0)
		return arena_alloc(im->ctx->arena, 0);
	if (raw->size == 0)
		return zeros(im, name, bytes);
	if (s->last > raw->size / item) {
		ctx_error(im->ctx, NULL,
			  "weight %s: member %s has %zu bytes, the tensor needs %llu", name, member,
			  raw->size, (unsigned long long)s->last * item);
		ctx_kind(im->ctx, REFUSAL_FILE);
		return NULL;
	}
	const uint8_t *src = raw->data + (size_t)s->offset * item;
	size_t align = item > 8 ? 8 : item;
	if (s->contiguous && (uintptr_t)src % align == 0)
		return src;
	if (bytes / 64 > raw->size && bytes > (size_t)1 << 26) { /* an expanded view: stride 0 */
		ctx_error(im->ctx, NULL,
			  "weight %s: %zu bytes when laid out, but member %s has %zu", name, bytes,
			  member, raw->size);
		return NULL;
	}
	uint8_t *dst = arena_alloc(im->ctx->arena, bytes);
	if (s->rank == 0)
		memcpy(dst, src, item);
	else
		copy_strided(s, src, dst, 0);
	return dst;
}

static json_t *find_payload(Import *im, const char *name, const char **folder)
{
	*folder = "data/weights/";
	json_t *p = json_object_get(im->weights, name);
	if (!p) {
		*folder = "data/constants/";
		p = json_object_get(im->constants, name);
	}
	return p;
}

bool weight_contents(Import *im, const char *name, const Meta *m, const char *member,
		     const Bytes *raw, bool is_param, ConstId *out)
{
	Strided s;
	TRY(measure(im, name, m, &s));
	const uint8_t *data = contents(im, name, &s, member, raw);
	if (!data)
		return false;
	Const c = {.name = arena_strdup(im->ctx->arena, name),
		   .dtype = s.dtype,
		   .rank = s.rank,
		   .dim = arena_dup(im->ctx->arena, s.size, sizeof *s.size * s.rank),
		   .data = data,
		   .bytes = s.numel * dtype_size(s.dtype),
		   .absent = s.numel && !raw->size,
		   .is_param = is_param};
	*out = ir_const(im->ir, c);
	return true;
}

bool weight_load(Import *im, const char *name, bool is_param, StateSpec *out)
{
	const char *folder;
	json_t *payload = find_payload(im, name, &folder);
	for (size_t k = 0; k < 2 && !payload; k++) {
		const PickleValue *v = saved_find(&im->saved[k], name);
		if (v)
			return wrapped_load(im, name, v, im->saved[k].archive, is_param, out);
	}
	if (!payload)
		return ctx_error(im->ctx, NULL,
				 "weight %s is in neither weights nor constants config", name);
	const char *path = json_str(payload, "path_name");
	if (!path)
		return ctx_error(im->ctx, NULL, "weight %s: no path_name", name);
	const char *member = arena_printf(im->ctx->scratch, "%s%s", folder, path);
	Member *m = archive_find(im->archive, member);
	if (!m)
		return ctx_error(im->ctx, NULL, "weight %s: the archive has no member %s", name,
				 member) ||
		       ctx_kind(im->ctx, REFUSAL_FILE);
	Bytes raw;
	TRY(archive_read(im->ctx, im->archive, m, &raw));
	if (json_is_true(json_object_get(payload, "use_pickle")))
		return wrapped_read(im, name, member, &raw, is_param, out);
	Meta meta;
	const char *where = arena_printf(im->ctx->scratch, "%s: weight %s", im->ctx->file, name);
	TRY(meta_read(im, json_object_get(payload, "tensor_meta"), name, where, &meta));
	out->member = m;
	out->meta = meta;
	TRY(weight_contents(im, name, &meta, member, &raw, is_param, &out->constant));
	const json_t *learns =
		json_object_get(json_object_get(payload, "tensor_meta"), "requires_grad");
	im->ir->constant.data[out->constant.i].frozen = json_is_false(learns);
	return true;
}
