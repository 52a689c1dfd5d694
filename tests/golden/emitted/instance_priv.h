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

/* What calls read and others replace aside: weights, state. A call goes on with the one that it
 * began with, which is dropped when it has been replaced and the last such call has ended. */
enum { SETS = 4 };
typedef struct {
	_Atomic uint64_t now; /* which set is in use, and SETS times how many calls have begun with
	                         it */
	struct {
		void *_Atomic what;      /* NULL: nothing */
		_Atomic int64_t balance; /* minus the calls that have ended; plus, once replaced,
		                            those that had begun */
	} set[SETS];
	void (*_Atomic drop)(WeftInstance *, void *what);
	_Atomic int replacing; /* one call does */
} Current;

struct WeftInstance {
	const WeftModel *model;
	Current weights, state; /* Constants, bytes or NULL */
	_Atomic int32_t users;  /* calls that use state; -1: one that writes it, in place */
	int32_t ncpu;
	void *_Atomic spare; /* memory of weights that were replaced, for the next ones; or NULL */
};

/* Begin with what is in use; returns which that is, for `current_at` and the end. */
static inline uint32_t current_begin(Current *c)
{
	return atomic_fetch_add_explicit(&c->now, SETS, memory_order_acquire) % SETS;
}

static inline void *current_at(Current *c, uint32_t k)
{
	return atomic_load_explicit(&c->set[k].what, memory_order_relaxed);
}

/* For who knows that it stays: nobody replaces it at the same time. */
static inline void *current_now(Current *c)
{
	return current_at(c, (uint32_t)(atomic_load_explicit(&c->now, memory_order_acquire) % SETS));
}

void current_end(WeftInstance *, Current *, uint32_t k);
/* By the one that is `replacing` (state.c). WEFT_ERR_BUSY: calls that began with each of the sets
 * before are still under way. */
int current_replace(WeftInstance *, Current *, void *with, void (*drop)(WeftInstance *, void *), WeftStatus *);

/* Become one of the calls that share the instance's state, or the one that has it alone;
 * WEFT_ERR_BUSY. */
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
/* The parameter or state is called so, by one of its names (stored.c). */
bool is_called(const char *name, const char *aliases, const char *wanted);
/* A row-major tensor of that dtype and shape, with data (stored.c). */
int check_tensor(const Expected *, const WeftTensor *, WeftStatus *);
/* The first contents of the state, which there is. */
void state_begin(const WeftModel *, char *state, const Constants *);

/* A structure of the caller's (NULL: none), which may be older or newer than this one of n bytes:
 * what it does not have is 0. False: it does not even have its first two fields, size and flags. */
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
