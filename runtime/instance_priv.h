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

/* The weights of an instance and its clones. */
typedef struct {
	_Atomic int32_t instances;
	const void *weights;
	void *map; /* the mapped weight file, or NULL */
	size_t map_bytes;
	void *built; /* weights built by set_weights, or NULL */
} Constants;

/* Data that calls read and other calls replace: weights, state. A call keeps the set with which it
 * began. A replaced set is dropped when the last call that began with it has ended. */
enum { SETS = 4 };
typedef struct {
	_Atomic uint64_t now; /* the number of the set in use, plus SETS times the calls that began
	                         with it */
	struct {
		void *_Atomic what;      /* NULL: nothing */
		_Atomic int64_t balance; /* minus the calls that have ended; plus, once the set is
		                            replaced, those that began with it */
	} set[SETS];
	void (*_Atomic drop)(WeftInstance *, void *what);
	_Atomic int replacing; /* a call replaces the set */
} Current;

struct WeftInstance {
	const WeftModel *model;
	Current weights, state; /* Constants, bytes or NULL */
	_Atomic int32_t users;  /* calls that use state; -1: a call writes it, in place */
	int32_t ncpu;
	void *_Atomic spare; /* the memory of replaced weights, for the next ones; or NULL */
};

/* Begins a call with the set in use. Returns the set's number, for current_at and current_end. */
static inline uint32_t current_begin(Current *c)
{
	return atomic_fetch_add_explicit(&c->now, SETS, memory_order_acquire) % SETS;
}

static inline void *current_at(Current *c, uint32_t k)
{
	return atomic_load_explicit(&c->set[k].what, memory_order_relaxed);
}

/* The set in use, for a caller that excludes replacing. */
static inline void *current_now(Current *c)
{
	return current_at(c, (uint32_t)(atomic_load_explicit(&c->now, memory_order_acquire) % SETS));
}

void current_end(WeftInstance *, Current *, uint32_t k);
/* Replaces the set, by the call that has set `replacing` (state.c). Returns WEFT_ERR_BUSY if calls
 * that began with each of the earlier sets are in progress. */
int current_replace(WeftInstance *, Current *, void *with, void (*drop)(WeftInstance *, void *), WeftStatus *);

/* Begins a call that uses the instance's state, or (alone) writes it. Returns WEFT_ERR_BUSY if
 * other calls forbid it. */
int instance_enter(WeftInstance *, bool alone, WeftStatus *);
void instance_leave(WeftInstance *, bool alone);
/* Releases the weights of one instance; frees them after the last. */
void constants_release(Constants *);
/* The number of threads of a call, and their provider. */
int32_t threads_wanted(const WeftInstance *, const WeftContext *, const WeftThreads **);
/* Allocates a weight section; NULL: no memory. */
void *section_alloc(uint64_t bytes);
/* The expected type of a tensor with a name in the model: role "input", "weight" or "state". */
typedef struct {
	const char *role, *name;
	WeftDType dtype;
	uint32_t rank;
	const int64_t *dim;
} Expected;
/* Checks rank, dtype and device, not extents, data or strides (call.c). */
int check_kind(const Expected *, const WeftTensor *, WeftStatus *);
static inline int check_info(const char *role, const WeftTensorInfo *info, const WeftTensor *t, WeftStatus *status)
{
	const Expected x = {role, info->name, info->dtype, info->rank, NULL};
	return check_kind(&x, t, status);
}
/* Whether a parameter or state has the name `wanted` (stored.c). */
bool is_called(const char *name, const char *aliases, const char *wanted);
/* Checks that a tensor is row-major, of that dtype and shape, and has data (stored.c). */
int check_tensor(const Expected *, const WeftTensor *, WeftStatus *);
/* Writes the initial contents of the state. */
void state_begin(const WeftModel *, char *state, const Constants *);

/* Copies a structure of the caller (NULL: all 0) of `size` bytes into one of n bytes; missing
 * fields are 0. Returns false if size has not even the fields `size` and `flags`. */
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

/* The bytes of a tensor; saturates, so that sums do not overflow. */
static inline uint64_t tensor_bytes(const WeftTensor *t)
{
	uint64_t n = dtype_bytes(t->dtype);
	for (int32_t k = 0; k < t->ndim; k++)
		if (__builtin_mul_overflow(n, (uint64_t)t->shape[k], &n))
			return UINT64_MAX / 4;
	return n;
}

/* Memory from the first byte to behind the last. */
typedef struct {
	uintptr_t first, end;
} Range;

/* The memory of a tensor; the whole address space if strides leave it. */
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
