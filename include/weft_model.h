/* The ABI of a compiled model. A model is one shared object (or a few C files) that exports one
 * function, by default
 *
 *     const WeftModel *weft_model(void);
 *
 * A model that was compiled for GPUs exports a second one,
 *
 *     const WeftModel *weft_model_device(int32_t type, int32_t id);
 *
 * which returns the table for a device (WeftDevice): of WEFT_CUDA the one with the newest code that
 * GPU `id` runs, else the one of weft_model. weft_model returns a table for the processor if the
 * model was compiled for processors, too, else the one for the first GPU. A table that nothing here
 * can use is returned all the same: its `open` says why not. Both functions have other names with
 * weft compile --symbol: NAME and NAME_device.
 *
 * The table describes the model and holds the functions to use it:
 *
 *     const char *wrong = weft_model_check(m);               -- may this program use it?
 *     WeftStatus status = {0};
 *     WeftInstance *in;
 *     m->open(m, NULL, &in, &status);                        -- once
 *     const WeftEntry *e = weft_entry(m, 0);
 *     WeftSizes *sizes = malloc(e->sizes_bytes);
 *     m->sizes(in, 0, x, sizes, &status);                    -- once per combination of shapes
 *     void *work = malloc(sizes->workspace_bytes);
 *     m->run(in, sizes, x, y, work, NULL, &status);          -- any number of threads at once
 *     m->close(in);
 *
 * All functions return WEFT_OK or an error code. A WeftStatus that is not NULL receives the same
 * code and, with an error, a sentence in `message`. `run` reads its arguments only: for an entry
 * without state (WeftEntry.flags) `run` changes nothing in the instance, takes no lock and
 * allocates nothing (on a processor; WeftContext.stream says what is different on a device).
 *
 * Versions. A program may be older or newer than the model. weft_model_check compares the versions
 * of the ABI. Within one version, structures only gain fields at their end:
 *
 *   - WeftModel, WeftEntry, WeftOpen, WeftContext, WeftOpContext and WeftComm begin with their
 *     size in bytes.
 *   - WeftModel.stride has the sizes of the other structures. Reach elements of arrays by
 *     weft_input, weft_dim, weft_param and the like, never by an index of C.
 *   - WEFT_HAS says whether a structure of the model has a field.
 *   - A model ignores fields of WeftOpen and WeftContext that it does not know, and takes fields
 *     that the caller does not have as 0.
 *   - WeftTensor, WeftStatus, WeftSizes and WeftThreads never change.
 *
 * fork(). The child may use instances that were opened before. The default pool starts new threads;
 * a pool of threads_new that was made before runs on the calling thread alone. Calls of other
 * threads of the parent are not in progress in the child; state that one of them was writing is
 * refused (WEFT_ERR_BUSY) until state_reset. */
#ifndef WEFT_MODEL_H
#define WEFT_MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_ABI_VERSION 3

/* ---- tensors: binary compatible with DLPack 1.x's DLTensor ---- */

enum {
	WEFT_INT = 0,
	WEFT_UINT = 1,
	WEFT_FLOAT = 2,
	WEFT_BFLOAT = 4,
	WEFT_COMPLEX = 5,
	WEFT_BOOL = 6,
	WEFT_F8_E4M3FN = 10,
	WEFT_F8_E4M3FNUZ = 11,
	WEFT_F8_E5M2 = 12,
	WEFT_F8_E5M2FNUZ = 13
};                     /* WeftDType.code, as DLDataTypeCode */
enum { WEFT_CPU = 1, WEFT_CUDA = 2 }; /* WeftDevice.type, as DLDeviceType */

typedef struct {
	uint8_t code, bits;
	uint16_t lanes; /* 1 */
} WeftDType;

typedef struct {
	int32_t type, id;
} WeftDevice;

typedef struct {
	void *data;
	WeftDevice device;
	int32_t ndim;
	WeftDType dtype;
	int64_t *shape;
	int64_t *strides; /* in elements; NULL: row-major */
	uint64_t byte_offset;
} WeftTensor;

/* ---- status ---- */

enum {
	WEFT_OK,
	WEFT_ERR_ARGUMENT, /* a null pointer, an index out of range, memory that overlaps */
	WEFT_ERR_INPUT,    /* dtype, rank, extent or layout of a tensor; a violated guard */
	WEFT_ERR_CHECK,    /* a check inside the model failed: index out of range, assertion */
	WEFT_ERR_MEMORY,
	WEFT_ERR_FILE, /* weights missing, truncated, or of another model */
	WEFT_ERR_CPU,  /* the processor lacks instructions the model was compiled for */
	WEFT_ERR_ABI,
	WEFT_ERR_BUSY,   /* another call writes the same state or weights; this call did nothing */
	WEFT_ERR_DEVICE, /* no driver, no device, one that the model is not for, or it failed */
	WEFT_ERR_CANCELLED, /* WeftContext.cancel */
	WEFT_ERR_DEADLINE,  /* WeftContext.deadline */
	WEFT_ERR_COMM /* communication: WeftContext.comm is missing or has other ranks, a rank is
	                 gone or too slow, or ranks do different things */
};

typedef struct {
	int32_t code;
	char message[508];
} WeftStatus;

/* ---- description ---- */

typedef struct {
	int64_t value;    /* >= 0: constant; -1: see text */
	int32_t symbol;   /* the index in WeftEntry.symbol if the extent is one symbol, else -1 */
	const char *text; /* "3", "s0", "2*s0 + 1" */
} WeftDim;

typedef struct {
	const char *name;
	WeftDType dtype;
	uint32_t rank;
	const WeftDim *dim;   /* weft_dim */
	int32_t donates; /* of an output: the number of the input whose memory the caller may pass
	                    for this output too. The call then updates that memory in place; a call
	                    that fails may leave it half updated. -1: no input */
	/* Of state: 1: a parameter that requires gradients in the model's file; else 0. */
	uint32_t requires_grad;
	/* Of state: offset and size in the instance's state; the offset of the initial contents in
	 * the weight section, or WEFT_ZEROS. */
	uint64_t offset, bytes, init;
	const char *aliases; /* of state: see WeftParamInfo.aliases */
	/* What the tensor is for. Of an input: "input", "label", or "scalar:NAME" for a number such
	 * as "scalar:lr". Of an output: "output", "loss" or "metric". Of state: "param", "buffer",
	 * "optimizer", "rng" (seed and count of random numbers) or "counter". What is not known to
	 * be anything else is "input", "output" or "buffer". Treat texts that you do not know as
	 * these. */
	const char *role;
	/* Of state: the name of the state or parameter in whose memory the model's file has this
	 * tensor; NULL: memory of its own. */
	const char *holder;
	/* Of state: how it lies in the instance, as in WeftParamInfo. state_get and state_set take
	 * row-major tensors all the same. */
	uint32_t nlayout; /* 0: row-major */
	uint32_t reserved;
	const struct WeftLayoutDim *layout; /* weft_state_layout */
} WeftTensorInfo;
#define WEFT_ZEROS UINT64_MAX

typedef struct {
	const char *name;
	int64_t lo, hi; /* hi == INT64_MAX: unbounded */
} WeftSymbolInfo;

/* One kernel call of `run`, for profiles. The counts are those of all launches of one run at the
 * sizes WeftEntry.seen; weft_report_at (weft.h) counts at other sizes. */
typedef struct {
	const char *name, *algorithm;
	double flops, bytes;
	/* The line of the model's source, and its module: "model.py:31 in encoder.0". Of several
	 * operators in the kernel: that of the slowest (docs/c-api.md, Lines). NULL: unknown. */
	const char *line;
	uint32_t nline; /* the number of source lines in this kernel */
	uint32_t reserved;
} WeftCallInfo;

/* One dimension of a stored weight in memory, slowest first. The position along the dimension is
 * (index[axis] / divisor) % extent. `padded` is the allocated extent; the padding is zero. */
typedef struct WeftLayoutDim {
	uint32_t axis;
	int64_t divisor, extent, padded;
} WeftLayoutDim;

/* A parameter or folded constant in the weight section. */
typedef struct {
	const char *name; /* of the parameter; "" for a folded constant */
	WeftDType dtype;
	uint32_t rank;
	const int64_t *dim;
	uint32_t nlayout; /* 0: row-major */
	const WeftLayoutDim *layout; /* weft_layout_dim */
	uint64_t offset, bytes;
	const char *aliases; /* the parameter's other names in the model's file, each followed by a
	                        newline; NULL: no other names */
} WeftParamInfo;

typedef struct WeftInstance WeftInstance;
typedef struct WeftRegion WeftRegion; /* one call in progress, see runtime.h */

enum {
	WEFT_ENTRY_READS_STATE = 1,
	WEFT_ENTRY_WRITES_STATE = 2, /* an instance runs one such call at a time; a second call
					returns WEFT_ERR_BUSY */
	WEFT_ENTRY_DATA_SIZES = 4,   /* some extents of outputs depend on the data of tensors;
					`sizes` gives -1 for these extents */
	WEFT_ENTRY_HALF_UPDATES = 8, /* a call that fails may leave memory that was passed for an
					input and an output half updated. Without this flag, such
					memory is unchanged when a check of the model fails */
	WEFT_ENTRY_CANCELLABLE = 16  /* of an entry that writes state: a call can end early
					(WeftContext.cancel) also after its first use of state,
					because the call keeps the old values */
}; /* WeftEntry.flags; WeftEntry.state_use has the first two */

typedef struct {
	uint32_t size; /* of this structure */
	uint32_t flags;
	const char *name;
	uint32_t ninput, noutput, nsymbol, ncall;
	const WeftTensorInfo *input, *output; /* without state; weft_input, weft_output */
	const WeftSymbolInfo *symbol;         /* weft_symbol */
	const WeftCallInfo *call;             /* weft_call */
	/* By symbol: its value while exporting, or its least value if that is unknown. The counts
	 * of `flops` and `call` hold at these values. */
	const int64_t *seen;
	const uint8_t *state_use; /* by state of the model: WEFT_ENTRY_READS_STATE |
	                             WEFT_ENTRY_WRITES_STATE or 0; NULL: the entry uses no state */
	double flops;             /* of one run, at the sizes `seen` */
	uint64_t sizes_bytes;     /* the bytes of a WeftSizes of this entry */
	/* Emitted code. Call it through WeftModel.sizes and WeftModel.run. */
	/* extent: all extents of input 0, then of input 1, ... Fills in slot[nslot]. Returns
	 * WEFT_OK, or an error code after weft_fail. */
	int (*sizes_fn)(const int64_t *extent, int64_t *slot, WeftStatus *);
	/* Executed by the calling thread. buf: inputs, outputs, weights, workspace, state. Returns
	 * a value other than 0 if a check failed; later phases are then not executed. */
	int (*run_fn)(WeftRegion *, void *const *buf, const int64_t *slot);
	uint32_t nslot; /* slots of sizes_fn: symbols, output extents, workspace bytes */
	uint32_t nmessage;
	const char *const *message; /* by number of a check in kernels: a format of printf; [0] is
	                               unused */
	uint32_t nroom;             /* buffers of run_fn after the state: memory that run_fn
	                               allocates when the size is known */
	uint32_t reserved;
	const struct WeftLaunch *launch; /* for the runtime, by call; NULL: nothing is known */
} WeftEntry;

/* The result of `sizes`: plain data that the caller may keep, copy and use from several threads. */
typedef struct {
	uint64_t workspace_bytes; /* the bytes that `run` needs, at any alignment */
	uint32_t entry, nslot;
	/* nslot values: symbols, then all output extents in order, then the workspace of the
	 * emitted code. Behind them: the extents of the inputs. */
#if defined(__cplusplus) && defined(__clang__) /* a flexible array is C's */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc99-extensions"
	int64_t slot[];
#pragma clang diagnostic pop
#elif defined(__cplusplus) && defined(__GNUC__)
	__extension__ int64_t slot[];
#else
	int64_t slot[];
#endif
} WeftSizes;

/* ---- threads ---- */

/* A provider of threads. */
typedef struct WeftThreads {
	/* Not NULL. Chooses m <= n, runs body(arg, 0, m) on the calling thread and body(arg, 1, m),
	 * ..., body(arg, m - 1, m) at the same time on others, and returns when all have returned.
	 * Bodies wait for each other: an implementation that runs them one after the other never
	 * ends. Results do not depend on m. */
	void (*parallel)(void *user, int32_t n, void (*body)(void *arg, int32_t i, int32_t n),
			 void *arg);
	void *user;
	int32_t nthreads; /* n, if WeftContext.nthreads is 0 */
} WeftThreads;

typedef enum {
	WEFT_THREADS_SERIAL,
	WEFT_THREADS_POOL,  /* POSIX threads that belong to this object and end with it */
	WEFT_THREADS_OPENMP /* the same as WEFT_THREADS_POOL; kept for old programs */
} WeftThreadsKind;

/* ---- several processes ---- */

/* WeftComm.flags */
enum {
	WEFT_COMM_DEVICE = 1, /* to[] and from[] may be addresses of a device */
	WEFT_COMM_CHECKS = 2  /* an exchange fails on both of two ranks that give different numbers
				 of bytes. Without the flag, models compare the numbers by an
				 exchange of 24 bytes in front of each of theirs */
};

/* A provider of communication between the processes (ranks) that work on one computation. All
 * ranks make the same calls in the same order. It moves bytes: arithmetic is the model's. Only the
 * thread that called `run` calls these functions: for collectives of the model, in program order
 * (docs/tutorials/distributed.md), and in user operators (WeftOpContext.comm). A `run` of a model
 * with collectives that fails calls `abort`. Providers: weft_comm.h. */
typedef struct WeftComm {
	uint32_t size;       /* of this structure */
	uint32_t flags;
	int32_t rank, ranks; /* 0 <= rank < ranks */
	/* to[r] with to_bytes[r] bytes goes to rank r, from_bytes[r] bytes of rank r come to
	 * from[r]; both sides give equal numbers of bytes, 0 for none. Returns at once: a handle
	 * above 0, or 0 after an error, which the status tells. The memory stays as it is until
	 * `wait` has returned. */
	int64_t (*exchange)(void *user, const void *const *to, const uint64_t *to_bytes,
			    void *const *from, const uint64_t *from_bytes, WeftStatus *);
	/* Returns WEFT_OK when the exchange is complete, or an error code. The handle is no longer
	 * valid then. */
	int (*wait)(void *user, int64_t handle, WeftStatus *);
	/* Lets exchanges in progress go on, without waiting; may be NULL. Returns an error code. */
	int (*poll)(void *user);
	/* Ends the computation on all ranks, which report this sentence. May be NULL. */
	void (*abort)(void *user, const char *why);
	void *user;
	/* Returns the provider of some of the ranks: of the group of that name, to which this rank
	 * belongs and within which ranks count from 0. The result is valid as long as this
	 * structure. Returns NULL if there is no such group here. Names are those in the graph; ""
	 * is not asked for: it is the group of all ranks. `group` may be NULL: then every name is
	 * the group of all ranks. */
	const struct WeftComm *(*group)(void *user, const char *name);
} WeftComm;

/* Called after each kernel call, in order, by one thread at a time. call: index in
 * WeftEntry.call. */
typedef void (*WeftProfile)(void *user, uint32_t call, double seconds);

enum {
	WEFT_STRICT = 1,         /* refuse tensors that are not row-major instead of copying them */
	WEFT_IGNORE_UNKNOWN = 2, /* set_weights ignores names of weights that the model does not
	                            have, such as unused names of a state dictionary; without the
	                            flag they are errors */
	WEFT_SHARE_ALL = 4,      /* for tests: threads share the tasks of every phase, even if
	                            sharing costs more than it saves */
	WEFT_POLL = 8            /* WeftModel.wait returns WEFT_ERR_BUSY instead of waiting */
}; /* WeftContext.flags */

typedef struct {
	uint32_t size; /* of this structure */
	uint32_t flags;
	const WeftThreads *threads; /* NULL: the model's pool, which all calls share */
	WeftProfile profile;        /* may be NULL */
	void *profile_user;
	int32_t nthreads; /* the most threads; 0: WeftThreads.nthreads, for the model's pool the
	                     number of processors */
	uint32_t reserved;
	/* If sizes depend on data: allocates outputs whose `data` is NULL (WEFT_ENTRY_DATA_SIZES),
	 * and memory that `run` needs besides the workspace. bytes > 0; align is a power of two.
	 * Returns NULL if there is no memory. Called by one thread at a time. NULL: aligned_alloc
	 * and free, so the caller frees outputs by free. */
	void *(*alloc)(void *user, uint64_t bytes, uint64_t align);
	void (*free)(void *user, void *p, uint64_t bytes);
	void *alloc_user;
	/* For user operators, which find them in their WeftOpContext. The model itself does not use
	 * them. */
	void *user;
	WeftDevice device;    /* where the model runs; {0, 0}: the processor. `run` returns
	                         WEFT_ERR_ARGUMENT if the model was not compiled for the device */
	/* A stream of the device (CUstream). A call with `device` and a stream gives its work to
	 * the stream and returns without waiting for it, unless a tensor is the host's, `profile`
	 * is set, or the model reads values on the way. Tensors, workspace and the memory that
	 * `alloc` gives belong to the call until the stream has executed it; memory that goes to
	 * `free` may be used again by what the stream is given later.
	 *
	 * Whether such a call failed is known later: by WeftModel.wait, or by the next call with
	 * the same stream, which returns the error of the earlier one and does nothing. State that
	 * a call writes is in use until the call was executed, for calls with other streams and for
	 * the functions of state; calls with the same stream follow each other. NULL: the default
	 * stream, and the call waits. */
	void *stream;
	const WeftComm *comm; /* NULL: this process is alone */
	/* Ends the call early: with WEFT_ERR_CANCELLED if *cancel is not 0, which another thread
	 * sets by an atomic store, and with WEFT_ERR_DEADLINE if the clock CLOCK_MONOTONIC has
	 * passed `deadline` nanoseconds. `run` looks before each phase, so a phase ends first.
	 * State is then unchanged, outputs are unspecified, and memory that was passed for an input
	 * and an output may be half updated. An entry that writes state looks only until its first
	 * use of state, unless it has WEFT_ENTRY_CANCELLABLE (weft compile --cancellable). NULL, 0:
	 * not. */
	const int32_t *cancel;
	int64_t deadline;
	/* The most bytes that a call may use: its workspace, and what it allocates. More is
	 * WEFT_ERR_MEMORY, at the beginning of the call for the workspace. 0: no limit. */
	uint64_t memory_limit;
	/* Counts calls, if it is not NULL. Any number of calls may count in one structure. */
	struct WeftCounters *counters;
} WeftContext;

/* Calls of `run`, counted by WeftContext.counters. weft_counters reads them while calls count. */
typedef struct WeftCounters {
	uint64_t calls;  /* that have ended, failed ones included */
	uint64_t failed; /* of these */
	uint64_t busy;   /* calls in progress */
	uint64_t ns;     /* the time of the calls that have ended, from `run` to its return */
} WeftCounters;

/* Returns the counts of the moment; c is not NULL. Takes no lock. */
static inline WeftCounters weft_counters(const WeftCounters *c)
{
	WeftCounters now;
#if defined(__GNUC__)
	now.calls = __atomic_load_n(&c->calls, __ATOMIC_RELAXED);
	now.failed = __atomic_load_n(&c->failed, __ATOMIC_RELAXED);
	now.busy = __atomic_load_n(&c->busy, __ATOMIC_RELAXED);
	now.ns = __atomic_load_n(&c->ns, __ATOMIC_RELAXED);
#else
	const volatile WeftCounters *v = c;
	now.calls = v->calls;
	now.failed = v->failed;
	now.busy = v->busy;
	now.ns = v->ns;
#endif
	return now;
}

/* What the function of a user operator is told of its call (weft_op.h). */
typedef struct WeftOpContext {
	uint32_t size;   /* of this structure */
	/* The number of the executing thread, 0 <= thread < threads. Calls that one `run` executes
	 * at the same time have different numbers, so scratch memory may be chosen by the number.
	 * `threads` is the same for all calls of one `run`. */
	int32_t thread, threads;
	uint32_t reserved;
	void *op_user;   /* WeftOpDef.user; in a compiled model: WeftOpDef.user_symbol */
	void *user;      /* WeftContext.user of the call of `run` */
	WeftDevice device; /* never {0, 0} */
	void *stream;
	const WeftComm *comm;
} WeftOpContext;

/* ---- the table ---- */

/* WeftOpen.flags: read the whole weight file and compare its checksum. */
enum { WEFT_OPEN_VERIFY = 1 };

typedef struct {
	uint32_t size; /* of this structure */
	uint32_t flags;
	/* For a model whose weights are a file: the path; NULL: the file beside the shared
	 * object. */
	const char *weights_path;
	/* Or the weights in memory, 64-byte aligned, valid until the instance and its clones are
	 * closed. */
	const void *weights;
	uint64_t weights_bytes;
	/* Of a model for GPUs: which of them, by its number in `id`; {0, 0}: the first. Others do
	 * not look at it. */
	WeftDevice device;
} WeftOpen;

typedef struct {
	const char *name;
	const char *weft_version, *target; /* "0.1.0", "x86-64-v3" */
	const char *features;    /* the required instructions, separated by spaces: "avx2 fma" */
	const char *source_hash; /* of the model file's graph and weights */
	const char *compiler;
} WeftManifest;

/* Structures whose size WeftModel.stride has. */
typedef enum {
	WEFT_DIM,
	WEFT_TENSOR_INFO,
	WEFT_SYMBOL_INFO,
	WEFT_CALL_INFO,
	WEFT_LAYOUT_DIM,
	WEFT_PARAM_INFO,
	WEFT_MANIFEST
} WeftStruct;

typedef struct WeftModel {
	uint32_t size; /* of this structure */
	uint32_t abi;  /* WEFT_ABI_VERSION */
	uint32_t stride[16]; /* by WeftStruct: the size of one element; 0: the model has no such
	                        elements */
	const WeftManifest *manifest;
	uint32_t nentry, nparam;
	const WeftEntry *const *entry; /* weft_entry */
	const WeftParamInfo *param;    /* weft_param */
	uint32_t replaceable; /* 1: set_weights may replace weights */
	uint32_t nstate; /* parameters and buffers that entries write; each instance has its own */
	const WeftTensorInfo *state;   /* weft_state_info; extents are constants */
	uint64_t state_bytes;
	const void *weights;  /* the weight section; NULL: in the file weights_file */
	const char *weights_file;
	const char *weights_hash; /* of the layout of the weight section; NULL: no weight file */
	uint64_t weights_bytes;
	/* The user operators (weft_op.h) that the model calls, with their functions: "mylib::decay
	 * mylib_decay, ...". NULL: none. */
	const char *user_ops;

	/* The functions return WEFT_OK or an error code, and set the status, which may be NULL.
	 *
	 * Makes an instance and sets *WeftInstance to it: reads or maps the weights, initialises
	 * state. The caller closes it. options may be NULL. Fails, with *WeftInstance NULL, if the
	 * processor lacks `features` or the weight file does not fit the model. */
	int (*open)(const struct WeftModel *, const WeftOpen *options, WeftInstance **,
		    WeftStatus *);
	/* Frees an instance; NULL is allowed. No call on the instance may be in progress. */
	void (*close)(WeftInstance *);
	/* Checks rank, dtype and extents of the inputs (not the data), solves the symbols, and
	 * fills in WeftSizes: output shapes and the workspace. The caller allocates
	 * WeftEntry.sizes_bytes for it. Inputs that are not row-major enlarge the workspace. */
	int (*sizes)(const WeftInstance *, uint32_t entry, const WeftTensor *inputs, WeftSizes *,
		     WeftStatus *);
	/* Runs the entry of `sizes`.
	 *
	 * Inputs: of the shapes that `sizes` saw; they do not overlap the workspace.
	 * Outputs: row-major memory of the caller, of the shapes that `sizes` found; they overlap
	 * nothing. Exception: an output with WeftTensorInfo.donates may be the memory of that
	 * input. Outputs whose extent `sizes` gave as -1: `run` writes the extents to the tensor's
	 * `shape`. If `data` is NULL, the context's allocator makes the memory (none for 0
	 * elements), which the caller owns; else `shape` says on entry how large the memory is.
	 *
	 * If the call succeeds, state changes as WeftEntry.state_use says. If the call fails, state
	 * is unchanged, outputs are unspecified, and a donated input may be half updated. */
	int (*run)(WeftInstance *, const WeftSizes *, const WeftTensor *inputs, WeftTensor *outputs,
		   void *workspace, const WeftContext *, WeftStatus *);
	/* Makes a provider of n threads (at most 256), which the caller frees by threads_free; n 0:
	 * as many as there are processors. Of WEFT_THREADS_SERIAL: one thread, whatever n is.
	 * Returns NULL after an error. */
	WeftThreads *(*threads_new)(WeftThreadsKind, int32_t n, WeftStatus *);
	/* Frees a provider of threads_new; NULL is allowed. No call may use it any more. */
	void (*threads_free)(WeftThreads *);
	/* State and threads: runs that read state, and the functions of state below, may run at the
	 * same time. A run that writes state runs alone. A call that would have to wait for a run
	 * does nothing and returns WEFT_ERR_BUSY.
	 *
	 * Replaces the values of the named parameters (`source`) by row-major tensors; all other
	 * parameters keep their values. Builds a new weight section with the context's threads,
	 * then puts it into use for this instance, not for its clones. The section has the bits of
	 * a fresh compilation with these values. After an error the old section stays in use.
	 *
	 * State is no parameter: state_set sets state, and initial contents never change. A name of
	 * state is an error, or ignored (WEFT_IGNORE_UNKNOWN).
	 *
	 * A name may occur once. A parameter with aliases may occur under several names with equal
	 * values. An unknown name is an error, or ignored (WEFT_IGNORE_UNKNOWN). Parameters from
	 * which one stored constant is computed (a convolution's weight and the batch norm behind
	 * the convolution) are set together; only small ones may be left out.
	 *
	 * Runs in progress go on with the old section, which is freed when the last of them ends.
	 * WEFT_ERR_BUSY: another call sets weights, or runs that began three calls ago have not
	 * ended. */
	int (*set_weights)(WeftInstance *, uint32_t n, const char *const *names,
			   const WeftTensor *values, const WeftContext *, WeftStatus *);
	/* Copies state k out of the instance, or into it: row-major tensors of its dtype and shape.
	 * While runs read state, state_set changes a copy of all state, which later runs use.
	 * Otherwise state_set copies in place, and runs that read state wait for the copy.
	 * WEFT_ERR_BUSY: a run that writes state is in progress, another call changes state, or
	 * runs that began three changes ago have not ended. */
	int (*state_get)(WeftInstance *, uint32_t k, const WeftTensor *to, WeftStatus *);
	int (*state_set)(WeftInstance *, uint32_t k, const WeftTensor *from, WeftStatus *);
	/* Sets all state to its initial contents, by the rules of state_set. */
	int (*state_reset)(WeftInstance *, WeftStatus *);
	/* Makes another instance, with the same weights (one copy for both) and a copy of the
	 * state, and sets the second argument to it; to NULL after an error. The caller closes the
	 * instance like any other. */
	int (*clone)(WeftInstance *, WeftInstance **, WeftStatus *);
	/* The parameters that set_weights takes, row-major, as in the model's file; `offset` and
	 * `layout` are unused. */
	uint32_t nsource, reserved;
	const WeftParamInfo *source; /* weft_source */
	const struct WeftRecipes *recipes; /* for the runtime: how stored constants are computed */
	/* Copies values of the named parameters and state out of the instance's weight section into
	 * row-major tensors of the caller: what set_weights takes, and of state the initial
	 * contents (state_get gives the current ones). A parameter has the value that set_weights
	 * gave last, else the one of the artifact.
	 *
	 * Only models with state or replaceable weights can do this; without replaceable weights
	 * they know the names of WeftModel.param. A parameter of which the artifact stores only
	 * something computed is an error, as is an unknown name. WEFT_IGNORE_UNKNOWN passes over
	 * unknown names and leaves their tensors as they are. After an error the tensors are
	 * unspecified. */
	int (*get_weights)(WeftInstance *, uint32_t n, const char *const *names,
			   const WeftTensor *values, const WeftContext *, WeftStatus *);
	/* Waits until the device has executed all calls with the context's stream (WeftContext; no
	 * context or no stream: calls with any stream). Returns WEFT_OK, or the error of the first
	 * of them that failed and of which nobody was told. WEFT_POLL: does not wait, and returns
	 * WEFT_ERR_BUSY while some are not executed. NULL in models for processors, whose calls are
	 * complete when they return: weft_wait asks for that. */
	int (*wait)(WeftInstance *, const WeftContext *, WeftStatus *);
} WeftModel;

/* ---- using the table ---- */

/* Whether a structure of `bytes` bytes has the field: WEFT_HAS(e->size, WeftEntry, seen),
 * WEFT_HAS(m->stride[WEFT_DIM], WeftDim, text). */
#define WEFT_HAS(bytes, type, field) ((bytes) >= offsetof(type, field) + sizeof(((type *)0)->field))

/* Call this before anything else. Returns NULL if this program can use the model, else a constant
 * sentence that says why not. m may be NULL. */
static inline const char *weft_model_check(const WeftModel *m)
{
	if (!m)
		return "there is no model";
	if (m->abi < WEFT_ABI_VERSION)
		return "the model was compiled by a weft that is too old for this program: compile "
		       "it again";
	if (m->abi > WEFT_ABI_VERSION)
		return "the model was compiled by a weft that is too new for this program";
	return WEFT_HAS(m->size, WeftModel, get_weights) ? NULL
							 : "the table of the model is incomplete";
}

/* Calls WeftModel.wait if the model has that function, and returns what it returns; else returns
 * WEFT_OK: calls of other models are complete when they return. */
static inline int weft_wait(const WeftModel *m, WeftInstance *in, const WeftContext *c,
			    WeftStatus *status)
{
	return WEFT_HAS(m->size, WeftModel, wait) && m->wait ? m->wait(in, c, status) : WEFT_OK;
}

/* Element k of `first`, an array in the model's table of structures of this kind. k must be in
 * range. */
static inline const void *weft_element(const WeftModel *m, WeftStruct kind, const void *first,
				       uint32_t k)
{
	return (const char *)first + (size_t)k * m->stride[kind];
}

/* The functions below return NULL if an argument is NULL or the index is out of range. Entries,
 * tensors and parameters that they take are of the model m.
 *
 * Returns entry k of the model. */
static inline const WeftEntry *weft_entry(const WeftModel *m, uint32_t k)
{
	return m && k < m->nentry ? m->entry[k] : NULL;
}

/* Returns input k of an entry, or NULL, as weft_entry does; state is no input. */
static inline const WeftTensorInfo *weft_input(const WeftModel *m, const WeftEntry *e, uint32_t k)
{
	return m && e && k < e->ninput
		       ? (const WeftTensorInfo *)weft_element(m, WEFT_TENSOR_INFO, e->input, k)
		       : NULL;
}

/* Returns output k of an entry, or NULL, as weft_entry does; state is no output. */
static inline const WeftTensorInfo *weft_output(const WeftModel *m, const WeftEntry *e, uint32_t k)
{
	return m && e && k < e->noutput
		       ? (const WeftTensorInfo *)weft_element(m, WEFT_TENSOR_INFO, e->output, k)
		       : NULL;
}

/* Returns state k of the model, or NULL, as weft_entry does. */
static inline const WeftTensorInfo *weft_state_info(const WeftModel *m, uint32_t k)
{
	return m && k < m->nstate
		       ? (const WeftTensorInfo *)weft_element(m, WEFT_TENSOR_INFO, m->state, k)
		       : NULL;
}

/* Returns dimension d of an input, output or state, or NULL, as weft_entry does. */
static inline const WeftDim *weft_dim(const WeftModel *m, const WeftTensorInfo *t, uint32_t d)
{
	return m && t && d < t->rank ? (const WeftDim *)weft_element(m, WEFT_DIM, t->dim, d) : NULL;
}

/* Returns symbol k of an entry, a size that is known only at run time, or NULL, as weft_entry
 * does. */
static inline const WeftSymbolInfo *weft_symbol(const WeftModel *m, const WeftEntry *e, uint32_t k)
{
	return m && e && k < e->nsymbol
		       ? (const WeftSymbolInfo *)weft_element(m, WEFT_SYMBOL_INFO, e->symbol, k)
		       : NULL;
}

/* Returns kernel call k of an entry, or NULL, as weft_entry does. */
static inline const WeftCallInfo *weft_call(const WeftModel *m, const WeftEntry *e, uint32_t k)
{
	return m && e && k < e->ncall
		       ? (const WeftCallInfo *)weft_element(m, WEFT_CALL_INFO, e->call, k)
		       : NULL;
}

/* Returns parameter or folded constant k of the weight section, or NULL, as weft_entry does. */
static inline const WeftParamInfo *weft_param(const WeftModel *m, uint32_t k)
{
	return m && k < m->nparam
		       ? (const WeftParamInfo *)weft_element(m, WEFT_PARAM_INFO, m->param, k)
		       : NULL;
}

/* Returns parameter k of those that set_weights takes, or NULL, as weft_entry does. */
static inline const WeftParamInfo *weft_source(const WeftModel *m, uint32_t k)
{
	return m && k < m->nsource
		       ? (const WeftParamInfo *)weft_element(m, WEFT_PARAM_INFO, m->source, k)
		       : NULL;
}

/* Returns dimension d of the layout of a parameter, or NULL, as weft_entry does. */
static inline const WeftLayoutDim *weft_layout_dim(const WeftModel *m, const WeftParamInfo *p,
						   uint32_t d)
{
	return m && p && d < p->nlayout
		       ? (const WeftLayoutDim *)weft_element(m, WEFT_LAYOUT_DIM, p->layout, d)
		       : NULL;
}

/* Returns dimension d of the layout of a state, or NULL, as weft_entry does. */
static inline const WeftLayoutDim *weft_state_layout(const WeftModel *m, const WeftTensorInfo *t,
						     uint32_t d)
{
	return m && t && d < t->nlayout
		       ? (const WeftLayoutDim *)weft_element(m, WEFT_LAYOUT_DIM, t->layout, d)
		       : NULL;
}

/* Returns the extents of output k, as `sizes` found them: an array of its rank in *s, with -1 for
 * an extent that depends on data; or NULL, as weft_entry does. e: the entry with which `sizes` was
 * called. */
static inline const int64_t *weft_output_shape(const WeftModel *m, const WeftEntry *e,
					       const WeftSizes *s, uint32_t k)
{
	if (!m || !e || !s || k >= e->noutput)
		return NULL;
	const int64_t *p = s->slot + e->nsymbol;
	for (uint32_t i = 0; i < k; i++)
		p += weft_output(m, e, i)->rank;
	return p;
}

#ifdef __cplusplus
}
#endif
#endif
