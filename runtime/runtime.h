/* The runtime: functions that emitted code calls. It is compiled into every artifact: C11 and POSIX
 * threads, nothing else.
 *
 * A call of `run` is one region. The calling thread alone executes the entry's run_fn. Other
 * threads help with the tasks of its phases (weft_phase, weft_copy). A phase is complete when its
 * tasks are done. Code between phases computes from its arguments and from results of weft_read. A
 * check that fails ends the call after its phase: weft_phase and weft_launches return 1, and run_fn
 * returns.
 *
 * A kernel is an emitted function that executes tasks: pieces of one kernel call that may run at
 * the same time. A launch is one execution of a kernel call: all its tasks, on given buffers and
 * parameters. A phase is a launch, or several whose tasks may run together. The functions up to
 * weft_region_fail are called by emitted code within run_fn only, on the thread that called `run`,
 * if nothing else is said. */
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

enum { WEFT_JOINED = 1 << 30, WEFT_ALONE = 1 << 29 }; /* flags of a call number: weft_phase */
enum { WEFT_TOLD = -1 }; /* the id of a failure whose message is in the frame's status */
enum { WEFT_FAILURE = 14 }; /* the numbers of a failed check: its task, and the values for the
                               message's %lld */

/* What a kernel gets. */
typedef struct {
	void *const *buf;   /* the buffers of the launch */
	const int64_t *p;   /* its parameters */
	int64_t *failure;   /* failure[WEFT_FAILURE]: receives the numbers of a failed check */
	WeftStatus *status; /* for user operators that fail */
	WeftRegion *region; /* the call of `run` to which the task belongs */
} WeftFrame;

/* Executes the tasks begin .. end - 1, on any thread. Returns 0, or the id of the first check that
 * failed (WeftEntry.message) after filling in the frame's failure; WEFT_TOLD for a user operator.
 */
typedef int (*WeftKernel)(const WeftFrame *, int64_t begin, int64_t end);

/* A call of a user operator (weft_op.h), and its tensors: operands, then results. buf: of the
 * frame; -1: the tensor is among the values. */
typedef struct {
	WeftDType dtype;
	int32_t rank, buf;
} WeftOpTensor;
typedef struct {
	const char *name;
	int (*fn)(const WeftOpContext *, const WeftTensor *in, const WeftTensor *out, void *work,
		  uint64_t work_bytes, WeftStatus *);
	void *user; /* WeftOpContext.op_user */
	const WeftOpTensor *tensor;
	uint32_t nin, nout;
	int32_t work; /* the buffer of the workspace */
	int32_t device; /* 1: the function takes memory of a device (WEFT_OP_DEVICE) */
} WeftOpCall;
/* Calls a user operator; called by a kernel. value: for each tensor its extents, and its contents
 * if it has no buffer; then the bytes of work. Returns 0, or WEFT_TOLD after filling in the frame's
 * failure, which is the task's, and status. */
int weft_op_call(const WeftFrame *, const WeftOpCall *, int64_t *value, int64_t task);
/* Begins a call of a user operator on this thread. Returns the context for it, with op_user NULL.
 * The number of the thread in it belongs to this call until weft_op_leave, which must follow. */
WeftOpContext weft_op_enter(WeftRegion *);
/* Ends the call that weft_op_enter began; the context is the one that weft_op_enter returned. */
void weft_op_leave(WeftRegion *, const WeftOpContext *);
/* Returns the context for a user operator with what the caller of `run` says in its context; one
 * thread, op_user NULL. */
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

/* What the runtime knows of a call of `run`, by its number (WeftEntry.launch): the number of
 * buffers and parameters of its kernel, and the predicted ns of one task on the target's machine at
 * the sizes `seen`; 0: unknown. */
typedef struct WeftLaunch {
	uint32_t nbuf, nparam;
	double ns;
} WeftLaunch;
/* Executes a launch of ntasks tasks, by as many threads as pay, and waits for all. call: index in
 * WeftEntry.call, plus flags. With WEFT_JOINED the next launch belongs to the same phase: the
 * function does not wait, and returns 0. With WEFT_ALONE the calling thread executes all tasks. buf
 * and p may be overwritten after the return. Returns 0, or 1 if a check failed (the message is that
 * of the first task); the caller then returns at once. */
int weft_phase(WeftRegion *, WeftKernel, void *const *buf, const int64_t *p, uint32_t call,
	       int64_t ntasks);
/* Executes launches from a table. A launch is: the offset of its shape, the number of its call
 * (perhaps with WEFT_JOINED), an offset for each buffer. A shape is: the number of a kernel, of
 * buffers, of parameters, of tasks; an argument of `run` for each buffer; the parameters. Numbers
 * of tasks, offsets and parameters are 2 * a constant, or 2 k + 1 for value[k]. b and p: room for
 * the most buffers and parameters of a launch. */
typedef struct {
	const WeftKernel *kernel;
	const int64_t *shape, *word;
	int64_t nword;
} WeftLaunches;
/* Executes all launches of the table in order, until a check fails. Returns as weft_phase. */
int weft_launches(WeftRegion *, const WeftLaunches *, void *const *buf, const int64_t *value,
		  void **b, int64_t *p);
/* Executes one launch of the table, whose words begin at w. buf and value: the arguments of `run`,
 * which shapes and words number; b and p: as for weft_launches. Sets *stop to what weft_phase
 * returned. Returns the address of the words of the next launch. */
static inline const int64_t *weft_launch(WeftRegion *r, const WeftLaunches *l, const int64_t *w,
					 void *const *buf, const int64_t *value, void **b,
					 int64_t *p, int *stop)
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
/* Copies `bytes` bytes as a phase of its own; none if bytes is below 1. The ranges must not overlap
 * (equal pointers are fine). */
void weft_copy(WeftRegion *, void *to, const void *from, int64_t bytes);
/* Old contents of state, in a list of all that a call has saved, the last first. */
typedef struct WeftSaved {
	char *state;
	const char *values;
	const int64_t *at;
	int64_t n, bytes;
	const struct WeftSaved *before;
} WeftSaved;
/* Registers state that a later phase overwrites: if the call fails, n items of `bytes` bytes at
 * `values` are copied back to `state`, item i to position at[i], an int64_t (at NULL: position i).
 * record: room for a WeftSaved. record, values and at must stay unchanged until the call ends. The
 * last saved is put back first. */
void weft_save(WeftRegion *, void *record, void *state, const void *values, const void *at,
	       int64_t n, int64_t bytes);
/* Returns an integer in memory that `run` uses: the only way from that memory to control flow. code
 * and bits as in WeftDType; a bool is 0 or 1. If a check has failed on a device, returns 0. */
int64_t weft_read(WeftRegion *, const void *from, int code, int bits);
/* Returns an integer in memory of the host, as weft_read does; any thread may call. */
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
/* Sets buffer k of run_fn's buf to new memory of p[0] bytes; of an output, to memory for the
 * extents p[rank], which are written to its shape: the memory that the caller of `run` gave, else
 * new memory, which is the caller's after the call. p NULL: frees the buffer. Returns 0, or 1 after
 * setting the call's status (no memory, or the caller's memory is too small); the caller then
 * returns at once. */
int weft_room(WeftRegion *, uint32_t k, const int64_t *p);
/* Sets the call's status after a violated assertion of `run`. Returns 1, which the caller returns
 * at once. */
int weft_region_fail(WeftRegion *, const char *fmt, ...) WEFT_PRINTF(2, 3);
/* Sets code and message of the status, which may be NULL (not with WEFT_SERIAL). Returns code. For
 * sizes_fn: return weft_fail(status, WEFT_ERR_INPUT, "...", ...). Any thread may call. */
int weft_fail(WeftStatus *, int code, const char *fmt, ...) WEFT_PRINTF(3, 4);

/* How set_weights makes a parameter of the weight section: from WeftModel.source number `source`,
 * rearranged; or from output `output` of group `group`, rearranged; or neither: it stays unchanged.
 */
typedef struct {
	int32_t source, group, output; /* -1: none */
} WeftFrom;
/* A group of constants that are computed together, by an entry of WeftRecipes's model. source: by
 * input, the source or -1. stored: by input, the parameter that holds the same value row-major, if
 * the source has no new value; or -1. */
typedef struct {
	uint32_t entry, ninput;
	const int32_t *source, *stored;
} WeftGroup;
typedef struct WeftRecipes {
	const WeftModel *model; /* the model whose entries compute; NULL: `get` returns it; both
	                           NULL: there are no groups */
	const WeftModel *(*get)(void);
	uint32_t ngroup, reserved;
	const WeftFrom *from; /* by index in WeftModel.param */
	const WeftGroup *group;
} WeftRecipes;

/* The functions of WeftModel; the fields there have the whole contracts (weft_model.h). Those that
 * return int give WEFT_OK or an error code, and set the status, which may be NULL. Emitted tables
 * end with WEFT_RUNTIME_FUNCTIONS, and WEFT_STATE_FUNCTIONS or WEFT_NO_STATE_FUNCTIONS. */

/* Implements WeftModel.open: makes an instance, which the caller closes; sets *WeftInstance, to
 * NULL after an error. Returns WEFT_OK, or an error code with a message. */
int weft_rt_open(const WeftModel *, const WeftOpen *, WeftInstance **, WeftStatus *);
/* Implements WeftModel.open of models that cannot do without LAPACK (lapack.c): loads the library,
 * then as weft_rt_open. */
int weft_rt_open_lapack(const WeftModel *, const WeftOpen *, WeftInstance **, WeftStatus *);
/* Frees an instance; NULL is allowed. */
void weft_rt_close(WeftInstance *);
/* Implements WeftModel.sizes: checks the inputs' types, and fills in *WeftSizes for a run on
 * inputs of these shapes. Returns WEFT_OK, or an error code with a message. */
int weft_rt_sizes(const WeftInstance *, uint32_t entry, const WeftTensor *inputs, WeftSizes *,
		  WeftStatus *);
/* Implements WeftModel.run: runs the entry of *WeftSizes into the caller's outputs. Returns
 * WEFT_OK, or an error code with a message. */
int weft_rt_run(WeftInstance *, const WeftSizes *, const WeftTensor *inputs,
		WeftTensor *outputs, void *workspace, const WeftContext *, WeftStatus *);
/* Implements WeftModel.open of models with collectives: does as weft_rt_open. */
int weft_rt_open_ranks(const WeftModel *, const WeftOpen *, WeftInstance **, WeftStatus *);
/* Implements WeftModel.run of these: does as weft_rt_run. After a failure other ranks, which would
 * wait for this one, fail with its message. */
int weft_rt_run_ranks(WeftInstance *, const WeftSizes *, const WeftTensor *inputs,
		      WeftTensor *outputs, void *workspace, const WeftContext *, WeftStatus *);
/* Implements WeftModel.threads_new: makes a provider of n threads (0: one per processor), which
 * weft_rt_threads_free frees. Returns NULL after an error, with a message. */
WeftThreads *weft_rt_threads_new(WeftThreadsKind, int32_t n, WeftStatus *);
/* Implements WeftModel.threads_free: frees a provider of weft_rt_threads_new, after its last call;
 * NULL is allowed. */
void weft_rt_threads_free(WeftThreads *);
/* Implements WeftModel.clone: makes another instance with the same weights and a copy of the
 * state, which the caller closes. Returns WEFT_OK, or an error code with a message. */
int weft_rt_clone(WeftInstance *, WeftInstance **, WeftStatus *);
/* Implements WeftModel.wait, of models for devices: waits for calls with a stream. Returns
 * WEFT_OK, or an error code with a message: that of a call which failed, or WEFT_ERR_BUSY
 * (flight.c). */
int weft_rt_wait(WeftInstance *, const WeftContext *, WeftStatus *);
/* The next functions are for models with state or replaceable weights. They return WEFT_OK, or an
 * error code with a message. */

/* Implements WeftModel.set_weights: replaces the values of n named parameters (replace.c). Returns
 * WEFT_OK, or an error code with a message. */
int weft_rt_set_weights(WeftInstance *, uint32_t n, const char *const *names,
			const WeftTensor *values, const WeftContext *, WeftStatus *);
/* Implements WeftModel.get_weights: copies the values of n named parameters, and the initial
 * contents of named state, into tensors of the caller (stored.c). Returns WEFT_OK, or an error
 * code with a message. */
int weft_rt_get_weights(WeftInstance *, uint32_t n, const char *const *names,
			const WeftTensor *values, const WeftContext *, WeftStatus *);
/* Implements WeftModel.state_get: copies state k into a tensor of the caller (state.c). Returns
 * WEFT_OK, or an error code with a message. */
int weft_rt_state_get(WeftInstance *, uint32_t k, const WeftTensor *to, WeftStatus *);
/* Implements WeftModel.state_set: copies a tensor of the caller into state k. Returns WEFT_OK, or
 * an error code with a message. */
int weft_rt_state_set(WeftInstance *, uint32_t k, const WeftTensor *from, WeftStatus *);
/* Implements WeftModel.state_reset: sets all state to its initial contents. Returns WEFT_OK, or an
 * error code with a message. */
int weft_rt_state_reset(WeftInstance *, WeftStatus *);
/* Implements WeftModel.set_weights and get_weights of models that have neither replaceable weights
 * nor state. Returns WEFT_ERR_ARGUMENT, with the message that the model was compiled without
 * --replaceable-weights. */
int weft_rt_no_weights(WeftInstance *, uint32_t n, const char *const *names,
		       const WeftTensor *values, const WeftContext *, WeftStatus *);
/* Implements WeftModel.state_get and state_set of models that have neither state nor replaceable
 * weights: returns WEFT_ERR_ARGUMENT, with a message that says so. */
int weft_rt_no_state(WeftInstance *, uint32_t k, const WeftTensor *, WeftStatus *);
/* Implements WeftModel.state_reset of models that have neither state nor replaceable weights:
 * there is nothing to reset. Returns WEFT_OK; WEFT_ERR_ARGUMENT if the instance is NULL. */
int weft_rt_no_reset(WeftInstance *, WeftStatus *);

#ifdef WEFT_SERIAL
/* Runs an entry without an instance, on the calling thread (serial.c). buf: the address of each
 * input and each output, then of the weights, the workspace and the state, all memory of the
 * caller, of the entry's types and row-major; nothing is checked. The last three are aligned to 64
 * bytes. slot: filled in by sizes_fn; the last slot is the bytes of the workspace. The status is
 * not NULL. Returns WEFT_OK or an error code; after an error state is as before. An output whose
 * size depends on data is an error: see weft_serial_run_sized. */
int weft_serial_run(const WeftEntry *, void *const *buf, const int64_t *slot, WeftStatus *);
/* Does as weft_serial_run, for entries whose sizes of outputs may depend on data. outputs: one
 * tensor for each output of the entry, of which only `shape` has a meaning; NULL: as
 * weft_serial_run. If the size of output k depends on data, buf has room for as many elements as
 * the product of outputs[k].shape, and the call overwrites that shape with the extents; after an
 * error it may or may not be overwritten. Shapes of other outputs are neither read nor written.
 * Returns WEFT_ERR_CHECK if there is too little room, or if a size that depends on data has no
 * bound. */
int weft_serial_run_sized(const WeftEntry *, void *const *buf, const int64_t *slot,
			  WeftTensor *outputs, WeftStatus *);
/* Does as weft_serial_run_sized, with a context whose `user`, `device`, `stream` and `comm` user
 * operators find in theirs. outputs NULL: no sizes depend on data. context NULL: all 0. */
int weft_serial_run_with(const WeftEntry *, void *const *buf, const int64_t *slot,
			 WeftTensor *outputs, const WeftContext *, WeftStatus *);
#define WEFT_RUNTIME_FUNCTIONS  .open = NULL
#define WEFT_LAPACK_FUNCTIONS   .open = NULL
#define WEFT_RANKS_FUNCTIONS    .open = NULL
#define WEFT_STATE_FUNCTIONS    .set_weights = NULL
#define WEFT_NO_STATE_FUNCTIONS .set_weights = NULL
#else
#define WEFT_RUNTIME_FUNCTIONS .open = weft_rt_open, WEFT_OTHER_FUNCTIONS
#define WEFT_LAPACK_FUNCTIONS  .open = weft_rt_open_lapack, WEFT_OTHER_FUNCTIONS
#define WEFT_RANKS_FUNCTIONS                                                                       \
	.open = weft_rt_open_ranks, .run = weft_rt_run_ranks, WEFT_FUNCTIONS_BUT_RUN
#define WEFT_OTHER_FUNCTIONS .run = weft_rt_run, WEFT_FUNCTIONS_BUT_RUN
#define WEFT_FUNCTIONS_BUT_RUN                                                                     \
	.close = weft_rt_close, .sizes = weft_rt_sizes,                                            \
	.threads_new = weft_rt_threads_new, .threads_free = weft_rt_threads_free,                  \
	.clone = weft_rt_clone
#define WEFT_DEVICE_FUNCTIONS .wait = weft_rt_wait
#define WEFT_STATE_FUNCTIONS                                                                       \
	.set_weights = weft_rt_set_weights, .get_weights = weft_rt_get_weights,                    \
	.state_get = weft_rt_state_get, .state_set = weft_rt_state_set,                            \
	.state_reset = weft_rt_state_reset
#define WEFT_NO_STATE_FUNCTIONS                                                                    \
	.set_weights = weft_rt_no_weights, .get_weights = weft_rt_no_weights,                      \
	.state_get = weft_rt_no_state, .state_set = weft_rt_no_state,                              \
	.state_reset = weft_rt_no_reset
#endif

/* Returns the first of n tables (best first) whose instructions this processor has, else the last,
 * whose `open` says what is missing. Any thread may call at any time. */
const WeftModel *weft_rt_select(const WeftModel *(*const *level)(void), uint32_t n);
/* Returns 0 if this processor has all features (named as in WeftManifest.features; NULL: none);
 * else 1, and `missing` is the first one it lacks. A feature that the system does not tell of
 * counts as there. `missing` is overwritten in both cases. */
int weft_cpu_lacks(const char *features, char missing[32]);

/* WeftEntry.sizes_bytes; nextent: the sum of the ranks of all inputs. */
#define WEFT_SIZES_BYTES(nslot, nextent)                                                           \
	(sizeof(WeftSizes) + ((size_t)(nslot) + (nextent)) * sizeof(int64_t))

/* The workspace of `run`: what the emitted code needs, and room to align it and what follows it. */
#define WEFT_WORKSPACE_BYTES(bytes) ((uint64_t)(bytes) + 2 * 64)

/* A weight file: this header, zeros up to WEFT_WEIGHT_HEADER, the section. */
typedef struct {
	char magic[16];    /* with its NUL */
	char hash[64];     /* WeftModel.weights_hash, zero-padded */
	uint64_t bytes;    /* of the section */
	uint64_t checksum; /* weft_checksum of the section */
} WeftWeightHeader;
#define WEFT_WEIGHT_MAGIC  "weft weights 2\n"
#define WEFT_WEIGHT_HEADER 4096
/* Returns a checksum of memory: it changes with every changed word; no protection against
 * intent. */
uint64_t weft_checksum(const void *, uint64_t bytes);
/* Begins the checksum in pieces: begin with the number of all bytes, add the pieces in order, end.
 * All pieces but the last have a multiple of 32 bytes. */
static inline void weft_checksum_begin(uint64_t h[4], uint64_t bytes)
{
	h[0] = bytes, h[1] = 1, h[2] = 2, h[3] = 3; /* four chains: a multiplication takes some
	                                               time */
}

#define WEFT_CHECKSUM_FACTOR 0x9e3779b97f4a7c15u

/* Adds the next piece, `bytes` bytes, to a checksum that weft_checksum_begin began. */
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

/* Returns the checksum of all pieces. */
static inline uint64_t weft_checksum_end(const uint64_t h[4])
{
	const uint64_t m = WEFT_CHECKSUM_FACTOR;
	return ((h[0] * m ^ h[1]) * m ^ h[2]) * m ^ h[3];
}

#endif
