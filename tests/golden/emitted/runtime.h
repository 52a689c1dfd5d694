/* What emitted code calls. The runtime is compiled into every artifact: standalone C11 and POSIX
 * threads.
 *
 * A call of `run` is one region: the calling thread alone executes the entry's run_fn; others help
 * with the tasks of its phases (weft_phase, weft_copy), which are complete when their tasks are
 * done, whoever did them. Code between them computes from its arguments and from what weft_read
 * gave. A check that fails ends the call after its phase: weft_phase and weft_launches return 1,
 * and run_fn returns. */
#ifndef WEFT_RUNTIME_H
#define WEFT_RUNTIME_H

#include <stdbool.h>
#include <string.h>

#include "weft_model.h"

#if defined(__cplusplus)
#error "compile emitted code as C"
#endif

#if defined(__GNUC__)
#define WEFT_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define WEFT_PRINTF(text, first)
#endif

enum { WEFT_JOINED = 1 << 30, WEFT_ALONE = 1 << 29 };
enum { WEFT_TOLD = -1 }; /* id of a failure whose message stands in the frame's status */
enum { WEFT_FAILURE = 14 }; /* numbers that a failed check leaves: its task, what the %lld of its
                               message stand for */

typedef struct {
	void *const *buf;
	const int64_t *p;
	int64_t *failure;
	WeftStatus *status; /* of operators of the user that fail */
	WeftRegion *region; /* whose task it is */
} WeftFrame;

/* Tasks begin .. end-1. Returns 0 or the id of the first check that failed (WeftEntry.message),
 * which has filled in the frame's failure; of an operator of the user WEFT_TOLD. */
typedef int (*WeftKernel)(const WeftFrame *, int64_t begin, int64_t end);

/* An operator of the user (weft_op.h) and its tensors: arguments, then results. buf: of the frame;
 * -1: among the values. */
typedef struct {
	WeftDType dtype;
	int32_t rank, buf;
} WeftOpTensor;
typedef struct {
	const char *name;
	int (*fn)(const WeftOpContext *, const WeftTensor *in, const WeftTensor *out, void *work, uint64_t work_bytes, WeftStatus *);
	void *user; /* WeftOpContext.op_user */
	const WeftOpTensor *tensor;
	uint32_t nin, nout;
	int32_t work; /* buffer */
} WeftOpCall;
/* value: of each tensor its extents, and what it holds if it lies in no buffer; then the bytes of
 * work. Within a kernel; the result is 0 or the id of its failure. */
int weft_op_call(const WeftFrame *, const WeftOpCall *, int64_t *value);
/* The context of a call by the thread that executes this; op_user is NULL. The number of the thread
 * is its own until weft_op_leave, which every call needs. */
WeftOpContext weft_op_enter(WeftRegion *);
void weft_op_leave(WeftRegion *, const WeftOpContext *);
/* What the caller of `run` says in its context, without threads. */
static inline WeftOpContext weft_op_context(const WeftContext *c)
{
	WeftOpContext o;
	memset(&o, 0, sizeof o);
	o.size = sizeof o;
	o.threads = 1;
	o.user = c->user;
	o.device = c->device;
	if (!o.device.type)
		o.device.type = WEFT_CPU;
	o.stream = c->stream;
	o.comm = c->comm;
	return o;
}

/* What the runtime has to know of a call of `run`, by its number (WeftEntry.launch): how many
 * buffers and parameters its kernel has, and the ns that one task takes by prediction for the
 * target's machine, at the sizes `seen`; 0: unknown. */
typedef struct WeftLaunch {
	uint32_t nbuf, nparam;
	double ns;
} WeftLaunch;
/* Execute the tasks, by as many threads as they are worth, and wait for all. call: index into
 * WeftEntry.call; with WEFT_JOINED the phase goes on with the next launch: nothing is waited for,
 * and the result is 0; with WEFT_ALONE the calling thread executes all tasks. buf and p need not
 * last. Not 0: a check failed, the message is that of the first task, and the caller returns at
 * once. */
int weft_phase(WeftRegion *, WeftKernel, void *const *buf, const int64_t *p, uint32_t call, int64_t ntasks);
/* Phases from a table. A launch: where its shape begins, the number of its call (with WEFT_JOINED
 * or not), an offset for each buffer. A shape: the number of a kernel, how many buffers and
 * parameters, the number of tasks; an argument of `run` for each buffer; the parameters. Number of
 * tasks, offsets and parameters: twice a constant, or 2 k + 1 for value[k]. b and p: room for the
 * buffers and parameters of any of them. */
typedef struct {
	const WeftKernel *kernel;
	const int64_t *shape, *word;
	int64_t nword;
} WeftLaunches;
int weft_launches(WeftRegion *, const WeftLaunches *, void *const *buf, const int64_t *value, void **b, int64_t *p);
/* The one at w; returns where the next one is. */
static inline const int64_t *weft_launch(WeftRegion *r, const WeftLaunches *l, const int64_t *w, void *const *buf,
					 const int64_t *value, void **b, int64_t *p, int *stop)
{
#define WEFT_WORD(w) ((w) & 1 ? value[(w) >> 1] : (w) / 2)
	const int64_t *shape = l->shape + w[0], nbuf = shape[1], nparam = shape[2];
	const int64_t *space = shape + 4, *param = space + nbuf, *offset = w + 2;
	for (int64_t k = 0; k < nbuf; k++)
		b[k] = (char *)buf[space[k]] + WEFT_WORD(offset[k]);
	for (int64_t k = 0; k < nparam; k++)
		p[k] = WEFT_WORD(param[k]);
	*stop = weft_phase(r, l->kernel[shape[0]], b, p, (uint32_t)w[1], WEFT_WORD(shape[3]));
	return offset + nbuf;
#undef WEFT_WORD
}
/* memcpy, a phase of its own; ranges do not overlap (equal pointers are fine). */
void weft_copy(WeftRegion *, void *to, const void *from, int64_t bytes);
/* State that a later phase overwrites, and that a call which fails gets back: n items of so many
 * bytes lie at `values`, as far behind `state` as at[] says, in items (NULL: one after the other).
 * They and the record stay as they are until the call ends. Last saved, first put back. */
typedef struct WeftSaved {
	char *state;
	const char *values;
	const int64_t *at;
	int64_t n, bytes;
	const struct WeftSaved *before;
} WeftSaved;
void weft_save(WeftRegion *, void *record, void *state, const void *values, const void *at, int64_t n, int64_t bytes);
/* The integer that lies there: the only way from memory to control. code and bits are WeftDType's;
 * a bool is 0 or 1. */
int64_t weft_read(WeftRegion *, const void *from, int code, int bits);
static inline int64_t weft_value(const void *from, int code, int bits)
{
	if (code == WEFT_BOOL)
		return *(const uint8_t *)from != 0;
	switch (code == WEFT_INT ? bits : -bits) {
	case 8: return *(const int8_t *)from;
	case -8: return *(const uint8_t *)from;
	case 16: return *(const int16_t *)from;
	case -16: return *(const uint16_t *)from;
	case 32: return *(const int32_t *)from;
	case -32: return *(const uint32_t *)from;
	default: return *(const int64_t *)from;
	}
}
/* Buffer k of `run` gets memory for as many bytes as p[0] says, or if it is an output, for an
 * output of extents p[]; NULL: it is given back. Not 0: there is none, and the caller returns at
 * once. */
int weft_room(WeftRegion *, uint32_t k, const int64_t *p);
/* A violated assertion of `run`: the call's status. Returns 1, as the caller does at once. */
int weft_region_fail(WeftRegion *, const char *fmt, ...) WEFT_PRINTF(2, 3);
/* Set the status; returns code. Used by sizes_fn: return weft_fail(status, WEFT_ERR_INPUT, "...",
 * ...). */
int weft_fail(WeftStatus *, int code, const char *fmt, ...) WEFT_PRINTF(3, 4);

/* How weights that set_weights is given become those stored: a parameter of the section is one of
 * WeftModel.source, rearranged, or an output of a group, rearranged, or neither: then it stays as
 * it is. */
typedef struct {
	int32_t source, group, output; /* -1: none */
} WeftFrom;
/* Computes: an entry of WeftPrepare's model. Each of its inputs is a source or -1, and where it has
 * no value the parameter in which the same is stored, row-major, or -1. */
typedef struct {
	uint32_t entry, ninput;
	const int32_t *source, *stored;
} WeftGroup;
typedef struct WeftPrepare {
	const WeftModel *model; /* whose entries compute; NULL: `get` returns it, and where that is
	                           NULL, too, there are no groups */
	const WeftModel *(*get)(void);
	uint32_t ngroup, reserved;
	const WeftFrom *from; /* by parameter */
	const WeftGroup *group;
} WeftPrepare;

/* Functions of WeftModel: emitted tables end with WEFT_RUNTIME_FUNCTIONS, and WEFT_STATE_FUNCTIONS
 * or WEFT_NO_STATE_FUNCTIONS. */
int weft_rt_open(const WeftModel *, const WeftOpen *, WeftInstance **, WeftStatus *);
void weft_rt_close(WeftInstance *);
int weft_rt_sizes(const WeftInstance *, uint32_t entry, const WeftTensor *inputs, WeftSizes *,
		  WeftStatus *);
int weft_rt_run(WeftInstance *, const WeftSizes *, const WeftTensor *inputs,
		WeftTensor *outputs, void *workspace, const WeftContext *, WeftStatus *);
WeftThreads *weft_rt_threads_new(WeftThreadsKind, int32_t n, WeftStatus *);
void weft_rt_threads_free(WeftThreads *);
int weft_rt_clone(WeftInstance *, WeftInstance **, WeftStatus *);
/* Of models that have state or replaceable weights (state.c). */
int weft_rt_set_weights(WeftInstance *, uint32_t n, const char *const *names,
			const WeftTensor *values, const WeftContext *, WeftStatus *);
int weft_rt_get_weights(WeftInstance *, uint32_t n, const char *const *names,
			const WeftTensor *values, const WeftContext *, WeftStatus *);
int weft_rt_state_get(WeftInstance *, uint32_t k, const WeftTensor *to, WeftStatus *);
int weft_rt_state_set(WeftInstance *, uint32_t k, const WeftTensor *from, WeftStatus *);
int weft_rt_state_reset(WeftInstance *, WeftStatus *);
/* The same of other models: they say that there is nothing. */
int weft_rt_no_weights(WeftInstance *, uint32_t n, const char *const *names, const WeftTensor *values, const WeftContext *,
		       WeftStatus *);
int weft_rt_no_state(WeftInstance *, uint32_t k, const WeftTensor *, WeftStatus *);
int weft_rt_no_reset(WeftInstance *, WeftStatus *);

#ifdef WEFT_SERIAL
/* Without instances (serial.c): the caller has the memory. buf: inputs, outputs, weights,
 * workspace, state. slot: from sizes_fn. Returns the status code. */
int weft_serial_run(const WeftEntry *, void *const *buf, const int64_t *slot, WeftStatus *);
/* The same where sizes of outputs depend on data: the shape of each of `outputs` says how much room
 * there is in buf, and then what it is. */
int weft_serial_run_sized(const WeftEntry *, void *const *buf, const int64_t *slot, WeftTensor *outputs, WeftStatus *);
/* The same; user operators find `user`, `device`, `stream` and `comm` of the context in theirs. NULL:
 * no outputs whose sizes depend on data, no context. */
int weft_serial_run_with(const WeftEntry *, void *const *buf, const int64_t *slot, WeftTensor *outputs, const WeftContext *, WeftStatus *);
#define WEFT_RUNTIME_FUNCTIONS  .open = NULL
#define WEFT_STATE_FUNCTIONS    .set_weights = NULL
#define WEFT_NO_STATE_FUNCTIONS .set_weights = NULL
#else
#define WEFT_RUNTIME_FUNCTIONS                                                                     \
	.open = weft_rt_open, .close = weft_rt_close, .sizes = weft_rt_sizes, .run = weft_rt_run,  \
	.threads_new = weft_rt_threads_new, .threads_free = weft_rt_threads_free,                  \
	.clone = weft_rt_clone
#define WEFT_STATE_FUNCTIONS                                                                       \
	.set_weights = weft_rt_set_weights, .get_weights = weft_rt_get_weights, .state_get = weft_rt_state_get,                        \
	.state_set = weft_rt_state_set, .state_reset = weft_rt_state_reset
#define WEFT_NO_STATE_FUNCTIONS                                                                    \
	.set_weights = weft_rt_no_weights, .get_weights = weft_rt_no_weights, .state_get = weft_rt_no_state,                          \
	.state_set = weft_rt_no_state, .state_reset = weft_rt_no_reset
#endif

/* Of the n tables of one file, best first: the first whose instructions this processor has, else
 * the last (its open says what is missing). Safe to call at any time, from any thread. */
const WeftModel *weft_rt_select(const WeftModel *(*const *level)(void), uint32_t n);
/* 0: this processor has all features, named as in WeftManifest.features; else 1, and the first
 * missing one's name. */
int weft_cpu_lacks(const char *features, char missing[32]);

/* For WeftEntry.sizes_bytes; nextent: the sum of the inputs' ranks. */
#define WEFT_SIZES_BYTES(nslot, nextent)                                                           \
	(sizeof(WeftSizes) + ((size_t)(nslot) + (nextent)) * sizeof(int64_t))

/* A weight file: this, zeros up to WEFT_WEIGHT_HEADER, the section. */
typedef struct {
	char magic[16];    /* with its NUL */
	char hash[64];     /* WeftModel.weights_hash, zero-padded */
	uint64_t bytes;    /* of the section */
	uint64_t checksum; /* weft_checksum of the section */
} WeftWeightHeader;
#define WEFT_WEIGHT_MAGIC  "weft weights 2\n"
#define WEFT_WEIGHT_HEADER 4096
/* Changes with every changed word; not meant against intent. */
uint64_t weft_checksum(const void *, uint64_t bytes);
/* The same in parts; all but the last one of a multiple of 32 bytes. */
static inline void weft_checksum_begin(uint64_t h[4], uint64_t bytes)
{
	h[0] = bytes, h[1] = 1, h[2] = 2, h[3] = 3; /* four chains: a multiplication takes some
	                                               time */
}

#define WEFT_CHECKSUM_FACTOR 0x9e3779b97f4a7c15u

static inline void weft_checksum_add(uint64_t h[4], const void *data, uint64_t bytes)
{
	const char *p = (const char *)data;
	for (uint64_t left = bytes; left;) {
		uint64_t x[4] = {0, 0, 0, 0};
		size_t n = sizeof x;
		if (left >= sizeof x)
			memcpy(x, p, sizeof x); /* of a known size it is four loads */
		else
			memcpy(x, p, n = (size_t)left);
		for (int k = 0; k < 4; k++) {
			h[k] = (h[k] ^ x[k]) * WEFT_CHECKSUM_FACTOR;
			h[k] ^= h[k] >> 32;
		}
		p += n;
		left -= n;
	}
}

static inline uint64_t weft_checksum_end(const uint64_t h[4])
{
	const uint64_t m = WEFT_CHECKSUM_FACTOR;
	return ((h[0] * m ^ h[1]) * m ^ h[2]) * m ^ h[3];
}

#endif
