/* Private to the runtime: instances, and questions about tensors. */
#ifndef WEFT_RUNTIME_INSTANCE_PRIV_H
#define WEFT_RUNTIME_INSTANCE_PRIV_H

#include "region_priv.h" /* first: it says which functions headers declare */

#include <string.h>

#define TRY(x)                                                                                     \
	do {                                                                                       \
		int try_code = (x);                                                                \
		if (try_code != WEFT_OK)                                                           \
			return try_code;                                                           \
	} while (0)

/* What an instance and its clones share. */
typedef struct {
	_Atomic int32_t instances;
	const void *weights;
	void *map; /* of the weight file, or NULL */
	size_t map_bytes;
	void *built; /* weights built by set_weights, or NULL */
} Constants;

struct WeftInstance {
	const WeftModel *model;
	Constants *constants;
	char *state;
	_Atomic int32_t users; /* calls that read what others may replace: state, replaceable weights; -1: one replaces */
	int32_t ncpu;
	void *spare; /* memory of weights that were replaced, for the next ones; or NULL */
};

/* Become one of the calls that share the instance, or the one that has it alone; WEFT_ERR_BUSY. */
int instance_enter(WeftInstance *, bool alone, WeftStatus *);
void instance_leave(WeftInstance *, bool alone);
/* One instance less has them. */
void constants_release(Constants *);
/* How many threads a call gets, and of which provider. */
int32_t threads_wanted(const WeftInstance *, const WeftContext *, const WeftThreads **);
/* NULL: no memory. */
void *section_alloc(uint64_t bytes);
/* What a tensor must be that has a name in the model: "input", "weight", "state". */
typedef struct {
	const char *role, *name;
	WeftDType dtype;
	uint32_t rank;
	const int64_t *dim;
} Expected;
/* All but extents, data and how it lies (call.c). */
int check_kind(const Expected *, const WeftTensor *, WeftStatus *);
static inline int check_info(const char *role, const WeftTensorInfo *info, const WeftTensor *t, WeftStatus *status)
{
	const Expected x = {role, info->name, info->dtype, info->rank, NULL};
	return check_kind(&x, t, status);
}
/* A row-major tensor of that dtype and shape, with data (state.c). */
int check_tensor(const Expected *, const WeftTensor *, WeftStatus *);
/* The first contents of the state, which there is. */
void state_begin(const WeftInstance *);

/* A structure of the caller's (NULL: none), which may be older or newer than this one of n bytes: what it does not have
 * is 0. False: it does not even have its first two fields, size and flags. */
static inline bool take_struct(void *to, size_t n, const void *from, uint32_t size)
{
	memset(to, 0, n);
	if (from)
		memcpy(to, from, size < n ? size : n);
	return !from || size >= 2 * sizeof(uint32_t);
}

static inline size_t dtype_bytes(WeftDType t)
{
	return ((size_t)t.bits * t.lanes + 7) / 8;
}

static inline int tensor_row_major(const WeftTensor *t)
{
	int64_t stride = 1;
	if (!t->strides)
		return 1;
	for (int32_t k = t->ndim; k-- > 0; stride *= t->shape[k])
		if (t->shape[k] != 1 && t->strides[k] != stride)
			return t->shape[k] == 0;
	return 1;
}

/* Saturated, so that it can be added to other sizes. */
static inline uint64_t tensor_bytes(const WeftTensor *t)
{
	uint64_t n = dtype_bytes(t->dtype);
	for (int32_t k = 0; k < t->ndim; k++)
		if (__builtin_mul_overflow(n, (uint64_t)t->shape[k], &n))
			return UINT64_MAX / 4;
	return n;
}

/* Memory from the first to behind the last byte. */
typedef struct {
	uintptr_t first, end;
} Range;

/* Strides that leave the address space: all of it. */
static inline Range range_of(const WeftTensor *t)
{
	Range r = {(uintptr_t)t->data + t->byte_offset, 0};
	r.end = r.first + tensor_bytes(t);
	if (r.first == r.end || tensor_row_major(t))
		return r;
	const int64_t elem = (int64_t)dtype_bytes(t->dtype);
	r.end = r.first + (uintptr_t)elem;
	for (int32_t k = 0; k < t->ndim; k++) {
		int64_t reach;
		if (__builtin_mul_overflow(t->strides[k], t->shape[k] - 1, &reach) ||
		    __builtin_mul_overflow(reach, elem, &reach))
			return (Range){0, UINTPTR_MAX};
		uintptr_t *side = reach < 0 ? &r.first : &r.end;
		if (__builtin_add_overflow(*side, reach, side))
			return (Range){0, UINTPTR_MAX};
	}
	return r;
}

static inline int overlap(Range a, Range b)
{
	return a.first != a.end && b.first != b.end && a.first < b.end && b.first < a.end;
}

#endif
