/* Private to the runtime: instances, and questions about tensors. Functions that take a WeftStatus
 * return WEFT_OK, or an error code after setting the status, which may be NULL. */
#ifndef WEFT_RUNTIME_INSTANCE_PRIV_H
#define WEFT_RUNTIME_INSTANCE_PRIV_H

#include "region_priv.h" /* first: it says which functions headers declare */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Returns the error code of x from the function that contains this, if x is not WEFT_OK. */
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
#ifdef WEFT_DEVICES
	const WeftDriver *driver;
	void *there; /* the weights on the device */
#endif
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
} Current;

/* What a call does with the instance's state, as a term of WeftInstance.users. */
typedef enum {
	STATE_CHANGE = -2, /* state_set and state_reset, in place: for the time of a copy */
	STATE_WRITE = -1,  /* a run that writes state */
	STATE_READ = 1     /* anything else: others may read at the same time */
} StateUse;

/* Of calls after a fork in which the state was being written, until state_reset. */
#define STATE_TORN                                                                                 \
	"another call writes the state, or did when this process was forked: state_reset helps"

/* What the threads of this process do with an instance. A fork wipes the page: the child does not
 * have the threads whose calls were in progress. What is left of them in the sets is forgotten when
 * the child replaces one (state.c). */
typedef struct {
	_Atomic int32_t users; /* the sum of StateUse of the calls in progress */
	_Atomic int replaces_weights, replaces_state; /* a call replaces the set */
	_Atomic int settled_weights, settled_state; /* a set was replaced in this process */
} Calls;

struct WeftInstance {
	const WeftModel *model;
	Current weights, state; /* Constants, bytes or NULL */
	Calls *calls;
	_Atomic int writing; /* a call writes the state, in this process or in one that was forked
				meanwhile */
	int32_t ncpu;
	void *_Atomic spare; /* the memory of replaced weights, for the next ones; or NULL */
#ifdef WEFT_DEVICES
	const WeftDriver *driver; /* NULL: the processor */
	struct Flights *flights;  /* NULL: all calls wait */
	struct Graphs *graphs;    /* NULL: there are none */
#endif
};

/* What a call uses of the instance: sets of weights and state. */
typedef struct {
	int32_t as; /* a StateUse; 0: no state */
	uint32_t weights, state;
#ifdef WEFT_DEVICES
	struct Flight *flight; /* NULL: the call waits */
#endif
} Use;

/* Begins a call with the set in use. Returns the set's number, for current_at and current_end. */
static inline uint32_t current_begin(Current *c)
{
	return atomic_fetch_add_explicit(&c->now, SETS, memory_order_acquire) % SETS;
}

/* Returns the data of set k, for a call that began with that set (current_begin). */
static inline void *current_at(Current *c, uint32_t k)
{
	return atomic_load_explicit(&c->set[k].what, memory_order_relaxed);
}

/* Returns the data of the set in use, for a caller that knows that nobody replaces it now. */
static inline void *current_now(Current *c)
{
	return current_at(c,
			  (uint32_t)(atomic_load_explicit(&c->now, memory_order_acquire) % SETS));
}

/* Ends a call that began with set k. The last call of a replaced set calls `drop` for its data. */
void current_end(WeftInstance *, Current *, uint32_t k);
/* Puts data (not NULL) into use as a new set; the old one is dropped by drop(instance, data) after
 * its last call, perhaps before this function returns. The caller has set `replaces_...` of
 * Calls from 0 to 1, and sets it back (state.c). Returns WEFT_OK, or WEFT_ERR_BUSY if all SETS sets
 * are in use by calls in progress: data stays the caller's then. */
int current_replace(WeftInstance *, Current *, void *data, void (*drop)(WeftInstance *, void *),
		    WeftStatus *);

/* Returns zeros in a page of their own; NULL: no memory. Where the system cannot wipe pages (Linux
 * before 4.14), calls that were in progress at a fork stay so in the child. */
static inline Calls *calls_new(void)
{
	void *p = mmap(NULL, sizeof(Calls), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	if (p == MAP_FAILED)
		return NULL;
#ifdef MADV_WIPEONFORK
	madvise(p, sizeof(Calls), MADV_WIPEONFORK);
#endif
	return p;
}

/* Frees what instance_new made, and nothing that it refers to. */
static inline void instance_free(WeftInstance *in)
{
	munmap(in->calls, sizeof *in->calls);
	free(in);
}

/* Whether the state is whole, for a call that has just begun: no call wrote it when this process
 * was forked. STATE_CHANGE makes it whole. Returns WEFT_OK, or ends the call with WEFT_ERR_BUSY. */
static inline int state_whole(WeftInstance *in, StateUse as, WeftStatus *status)
{
	const int torn = as == STATE_READ
				 ? atomic_load_explicit(&in->writing, memory_order_relaxed)
				 : atomic_exchange_explicit(&in->writing, 1, memory_order_relaxed);
	if (!torn || as == STATE_CHANGE)
		return WEFT_OK;
	atomic_fetch_sub_explicit(&in->calls->users, (int32_t)as, memory_order_release);
	return weft_fail(status, WEFT_ERR_BUSY, "%s", STATE_TORN);
}

/* Begins a call, which instance_leave ends. Returns WEFT_OK, or WEFT_ERR_BUSY, without beginning,
 * if STATE_READ finds STATE_WRITE in progress, if another use finds any call in progress, or if
 * this process was forked while a call wrote the state, unless as is STATE_CHANGE. STATE_READ waits
 * for the end of STATE_CHANGE. */
int instance_enter(WeftInstance *, StateUse, WeftStatus *);
#ifdef WEFT_DEVICES
/* Does as instance_enter, but does not look first whether calls in flight have ended
 * (flights_land). */
int instance_try(WeftInstance *, StateUse, WeftStatus *);
#endif
/* Of a function that is compiled for few bytes rather than for speed. */
#define SMALL __attribute__((cold))
/* Ends a call that instance_enter began with the same StateUse. */
static inline void instance_leave(WeftInstance *in, StateUse as)
{
	if (as != STATE_READ)
		atomic_store_explicit(&in->writing, 0, memory_order_relaxed);
	atomic_fetch_sub_explicit(&in->calls->users, (int32_t)as, memory_order_release);
}
/* Ends the use of the sets of weights and state that a call has; not that of instance_enter. */
static inline void use_drop(WeftInstance *in, const Use *u)
{
	if (in->model->replaceable)
		current_end(in, &in->weights, u->weights);
	if (u->as)
		current_end(in, &in->state, u->state);
}
#ifdef WEFT_DEVICES
/* ---- flight.c: calls that return before the device has executed them ---- */

/* A call that need not wait. The instance, the weights and the state stay in use until it has
 * landed: until somebody finds that the device has executed it. */
typedef struct Flight Flight;
/* Sets WeftInstance.flights, so that calls need not wait; to NULL (all calls wait) if there is no
 * memory, or if the driver has no marks. */
void flights_open(WeftInstance *);
/* Waits until all calls of the instance have landed, and frees WeftInstance.flights, which may be
 * NULL. The instance's driver must still be open. */
void flights_close(WeftInstance *);
/* Lets calls land that the device has executed; does not wait. */
void flights_land(WeftInstance *);
/* Begins a call with a stream, as instance_enter does with Use.as; a call on the stream that is in
 * flight is no hindrance. Sets Use.flight. Returns WEFT_OK; or, without beginning, WEFT_ERR_BUSY,
 * WEFT_ERR_MEMORY, or once the error of a call on this stream that has landed and failed, with a
 * message. */
int flight_begin(WeftInstance *, const WeftEntry *, void *stream, Use *, WeftStatus *);
/* Marks, at the end of a call whose DeviceCall.flight is not NULL, the stream behind the call's
 * work. Returns WEFT_OK; or the error of what was begun, with a message, after waiting for it and
 * setting DeviceCall.flight to NULL. */
int flight_depart(DeviceCall *, WeftStatus *);
/* Ends what flight_begin began on this thread; a call that has not departed lands. */
void flight_end(WeftInstance *, const Use *);

/* ---- graph.c: graphs of the driver, by the sizes of calls ---- */

/* Prepares an instance; calls are without graphs if there is no memory, or if the driver has
 * none. */
void graphs_open(WeftInstance *);
void graphs_close(WeftInstance *);
/* Begins, at the end of `run`, what was recorded; `failed`: without making a graph of it. */
void graph_end(DeviceCall *, bool failed);
#endif
/* Releases the weights for one instance; frees them after the last one. NULL is allowed. */
void constants_release(Constants *);
/* Returns the most threads of a call with this context, at least 1; sets *t to their provider. */
int32_t threads_wanted(const WeftInstance *, const WeftContext *, const WeftThreads **);
/* Allocates memory for a weight section, bytes > 0, aligned to 64 bytes at least; the caller frees
 * it by free. Returns NULL if there is none. */
void *section_alloc(uint64_t bytes);
/* Returns the address of the first element. */
static inline void *data_of(const WeftTensor *t)
{
	return (char *)t->data + t->byte_offset;
}
/* Copies the dimensions d, d + 1, ... of a tensor, whose strides are not NULL, of elements of elem
 * bytes, from `from` to `to`, row-major. Not inlined: of the recursion 2.6 kB would become. */
static __attribute__((noinline, unused)) void
copy_strided(char *to, const char *from, const WeftTensor *t, int32_t d, size_t elem)
{
	size_t inner = elem;
	if (d == t->ndim) {
		memcpy(to, from, elem);
		return;
	}
	for (int32_t k = d + 1; k < t->ndim; k++)
		inner *= (size_t)t->shape[k];
	for (int64_t i = 0; i < t->shape[d]; i++)
		copy_strided(to + (size_t)i * inner, from + i * t->strides[d] * (int64_t)elem, t,
			     d + 1, elem);
}
/* The expected type of a tensor of the caller; role ("input", "weight" or "state") and name are for
 * messages. */
typedef struct {
	const char *role, *name;
	WeftDType dtype;
	uint32_t rank;
	const int64_t *dim;
} Expected;
/* Checks a tensor's rank, dtype and device (the processor; inputs, outputs and state may also be on
 * the runtime's kind of device), and that it has a shape; not extents, data or strides.
 * Expected.dim is not read (call.c). Returns WEFT_OK, or an error code with a message. */
int check_kind(const Expected *, const WeftTensor *, WeftStatus *);
/* Does as check_kind with the type that the model's table gives. role: see Expected. */
static inline int check_info(const char *role, const WeftTensorInfo *info, const WeftTensor *t,
			     WeftStatus *status)
{
	const Expected x = {role, info->name, info->dtype, info->rank, NULL};
	return check_kind(&x, t, status);
}
/* Whether a parameter or state called `name`, with these aliases (WeftParamInfo.aliases, may be
 * NULL), has the name `wanted`. If `name` is "", false: what has no name has no aliases either
 * (stored.c). */
bool is_called(const char *name, const char *aliases, const char *wanted);
/* Checks that a tensor is row-major, of that dtype and shape, and has data unless it is empty
 * (stored.c). Returns WEFT_OK, or an error code with a message. */
int check_tensor(const Expected *, const WeftTensor *, WeftStatus *);
/* Writes the initial contents, zeros or from the host's weights of Constants, into the memory of
 * all state, state_bytes bytes; complete after memory_wait. */
void state_begin(const WeftInstance *, char *state, const Constants *);

/* The next functions work on memory where the instance's model runs, which holds its state: memory
 * of the device if there is one, else of the process. What they begin is complete after
 * memory_wait. */

/* Allocates bytes > 0; the caller frees the memory by memory_free. Returns NULL if there is
 * none. */
static inline void *memory_alloc(const WeftInstance *in, uint64_t bytes)
{
#ifdef WEFT_DEVICES
	if (in->driver)
		return in->driver->alloc(in->driver->self, bytes, NULL);
#endif
	(void)in;
	return section_alloc(bytes);
}

/* Frees memory of memory_alloc. p may be NULL. */
static inline void memory_free(const WeftInstance *in, void *p)
{
#ifdef WEFT_DEVICES
	if (in->driver) {
		in->driver->free(in->driver->self, p, NULL);
		return;
	}
#endif
	(void)in;
	free(p);
}

/* Copies bytes to and from such memory, as `way` says; without a device `way` is not read. The
 * ranges do not overlap. */
static inline void memory_copy(const WeftInstance *in, void *to, const void *from, uint64_t bytes,
			       WeftWay way)
{
#ifdef WEFT_DEVICES
	if (in->driver) {
		in->driver->copy(in->driver->self, to, from, bytes, way, NULL);
		return;
	}
#endif
	(void)in, (void)way;
	memcpy(to, from, (size_t)bytes);
}

/* Sets each of these bytes of such memory to `with`. */
static inline void memory_fill(const WeftInstance *in, void *to, uint8_t with, uint64_t bytes)
{
#ifdef WEFT_DEVICES
	if (in->driver) {
		in->driver->fill(in->driver->self, to, with, bytes, NULL);
		return;
	}
#endif
	(void)in;
	memset(to, with, (size_t)bytes);
}

/* Waits until all copies and fills so far are complete. Returns `code`; or, if that is WEFT_OK,
 * their first error, with a message. */
static inline int memory_wait(const WeftInstance *in, int code, WeftStatus *status)
{
#ifdef WEFT_DEVICES
	WeftStatus told;
	int waited = in->driver ? in->driver->wait(in->driver->self, NULL, &told) : WEFT_OK;
	if (code == WEFT_OK && waited != WEFT_OK)
		return weft_fail(status, waited, "%s", told.message);
#endif
	(void)in, (void)status;
	return code;
}

/* Returns the number of the instance's device; 0 if it runs on the processor. */
static inline int32_t ordinal_of(const WeftInstance *in)
{
#ifdef WEFT_DEVICES
	return in->driver ? weft_device_ordinal(in->driver) : 0;
#else
	return (void)in, 0;
#endif
}

/* Whether the instance has a device. */
static inline bool device_of(const WeftInstance *in)
{
#ifdef WEFT_DEVICES
	return in->driver;
#else
	return (void)in, false;
#endif
}

/* Whether the tensor is in the processor's memory. With a device that is also what the device's
 * driver has pinned or manages: DLPack's kDLCUDAHost and kDLCUDAManaged. */
static inline bool is_of_host(const WeftTensor *t)
{
#ifdef WEFT_DEVICES
	enum { PINNED = 3, MANAGED = 13 };
	return t->device.type == WEFT_CPU || t->device.type == PINNED || t->device.type == MANAGED;
#else
	return t->device.type == WEFT_CPU;
#endif
}

/* Whether the tensor is in the device's memory, and may be: weights are set from the host's. */
static inline bool device_takes(const WeftTensor *t, const char *role)
{
#ifdef WEFT_DEVICES
	return t->device.type == weft_device_type && role[0] != 'w';
#else
	return (void)t, (void)role, false;
#endif
}

/* Returns the way of a copy between the instance's memory and a tensor of the caller's: with_host
 * (WEFT_TO_DEVICE or WEFT_TO_HOST) if the tensor is the host's, else WEFT_ON_DEVICE. */
static inline WeftWay way_of(const WeftTensor *t, WeftWay with_host)
{
	return is_of_host(t) ? with_host : WEFT_ON_DEVICE;
}

#ifdef WEFT_DEVICES
/* Allocates memory on the instance's device, if there is one and the model has weights, copies the
 * weights there, and waits. constants_release frees the memory, also after an error. Returns
 * WEFT_OK, or an error code with a message. */
int constants_load(const WeftInstance *, Constants *, WeftStatus *);
#endif

/* Copies a structure of the caller, which has `size` bytes, into ours of n bytes; fields that it
 * does not have, and all if `from` is NULL, are 0. Returns false if `size` is too small for the
 * fields `size` and `flags`. */
static inline bool take_struct(void *to, size_t n, const void *from, uint32_t size)
{
	if (from && size >= n) { /* of each call: a copy of constant size */
		memcpy(to, from, n);
		return true;
	}
	memset(to, 0, n);
	if (from)
		memcpy(to, from, size);
	return !from || size >= 2 * sizeof(uint32_t);
}

/* Copies the context of a caller of `function` as take_struct does; given NULL: all 0 but the size.
 * Returns WEFT_OK, or an error code with a message: its size is not set, or its threads have no
 * function. */
static inline int take_context(WeftContext *ctx, const WeftContext *given, const char *function,
			       WeftStatus *status)
{
	static const WeftContext none = {.size = sizeof none};
	given = given ? given : &none;
	if (!take_struct(ctx, sizeof *ctx, given, given->size))
		return weft_fail(status, WEFT_ERR_ABI, "%s: WeftContext.size is not set", function);
	if (ctx->threads && !ctx->threads->parallel)
		return weft_fail(status, WEFT_ERR_ARGUMENT,
				 "%s: WeftContext.threads has no function `parallel`", function);
	return WEFT_OK;
}

/* Returns the bytes of an element. */
static inline size_t dtype_bytes(WeftDType t)
{
	return ((size_t)t.bits * t.lanes + 7) / 8;
}

/* Whether a tensor is row-major without gaps; strides of extents 1 do not matter. A tensor without
 * elements is. */
static inline int tensor_row_major(const WeftTensor *t)
{
	uint64_t stride = 1;
	int same = 1;
	for (int32_t k = t->ndim; t->strides && k-- > 0; stride *= (uint64_t)t->shape[k])
		same &= t->shape[k] == 1 || t->strides[k] == (int64_t)stride;
	return same || stride == 0;
}

/* Returns the bytes of all elements of a tensor; UINT64_MAX / 4 if that overflows, so that sums of
 * a few do not. */
static inline uint64_t tensor_bytes(const WeftTensor *t)
{
	uint64_t n = dtype_bytes(t->dtype);
	for (int32_t k = 0; k < t->ndim; k++)
		if (__builtin_mul_overflow(n, (uint64_t)t->shape[k], &n))
			return UINT64_MAX / 4;
	return n;
}

/* The addresses first .. end - 1; first == end: no memory. */
typedef struct {
	uintptr_t first, end;
} Range;

/* Returns the memory that a tensor may touch; the whole address space if its strides leave
 * that. */
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

/* Whether the ranges have a byte in common. */
static inline int overlap(Range a, Range b)
{
	return a.first != a.end && b.first != b.end && a.first < b.end && b.first < a.end;
}

#endif
