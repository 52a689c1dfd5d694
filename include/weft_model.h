/* The ABI of a compiled model. A model is one shared object (or a few C files) that exports one
 * function, by default
 *
 *     const WeftModel *weft_model(void);
 *
 * The table it returns describes the model and holds the functions to use it:
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
 * What `run` needs is in its arguments; an entry without state (WeftEntry.flags) changes nothing of
 * the instance, takes no lock and allocates nothing. All functions return WEFT_OK or an error code;
 * status, if not NULL, gets the same code, and with an error a sentence in its message.
 *
 * How it grows. A program may be older or newer than the model. Versions of the ABI are told apart
 * by weft_model_check; within a version structures get fields at their end, and nothing else
 * changes. WeftModel, WeftEntry, and what the caller passes (WeftOpen, WeftContext) begin with
 * their size; the model says how long the others are (WeftModel.stride), so that elements are
 * reached by weft_input, weft_dim, weft_param and their like, not by an index of C. A field that
 * came with a later weft is there when WEFT_HAS says so; of what the caller passes a model ignores
 * those it does not know, and takes those as 0 that the caller does not. WeftTensor, WeftStatus,
 * WeftSizes and WeftThreads stay as they are.
 *
 * After fork() the child may use what was opened before: the default provider starts threads anew,
 * a pool that was made before runs on the calling thread alone. */
#ifndef WEFT_MODEL_H
#define WEFT_MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_ABI_VERSION 2

/* ---- tensors: binary compatible with DLPack 1.x's DLTensor ---- */

enum {
	WEFT_INT = 0,
	WEFT_UINT = 1,
	WEFT_FLOAT = 2,
	WEFT_BFLOAT = 4,
	WEFT_COMPLEX = 5,
	WEFT_BOOL = 6,
	WEFT_F8_E4M3FN = 10,
	WEFT_F8_E5M2 = 12
};                     /* WeftDType.code, as DLDataTypeCode */
enum { WEFT_CPU = 1 }; /* WeftDevice.type, as DLDeviceType */

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
	WEFT_ERR_BUSY  /* another call writes the instance's state, or replaces the same: nothing
	                  was done */
};

typedef struct {
	int32_t code;
	char message[508];
} WeftStatus;

/* ---- description ---- */

typedef struct {
	int64_t value;    /* >= 0: constant; -1: see text */
	int32_t symbol;   /* index into WeftEntry.symbol when it is just that, else -1 */
	const char *text; /* "3", "s0", "2*s0 + 1" */
} WeftDim;

typedef struct {
	const char *name;
	WeftDType dtype;
	uint32_t rank;
	const WeftDim *dim;   /* weft_dim */
	int32_t donates;      /* of an output: the input whose memory may be passed for it, too, and
	                         is then updated in place, by a call that fails perhaps in part;
	                         else -1 */
	uint32_t reserved;
	/* Of state: where it lies in the instance's state, and its first contents in the weight
	 * section, or WEFT_ZEROS. */
	uint64_t offset, bytes, init;
	const char *aliases; /* of state: as WeftParamInfo's */
} WeftTensorInfo;
#define WEFT_ZEROS UINT64_MAX

typedef struct {
	const char *name;
	int64_t lo, hi; /* hi == INT64_MAX: unbounded */
} WeftSymbolInfo;

/* One kernel call of `run`, for profiles: all launches of one run, at the sizes of WeftEntry.seen.
 * weft_report_at in weft.h counts at others. */
typedef struct {
	const char *name, *algorithm;
	double flops, bytes;
	/* Of the model's source, "model.py:31 in encoder.0": the line, and the module behind " in
	 * ", of the operator that takes most of its time (docs/c-api.md, Lines). NULL: the model's
	 * file says nothing of it. */
	const char *line;
	uint32_t nline; /* how many lines became this kernel, that one included */
	uint32_t reserved;
} WeftCallInfo;

/* One physical dimension of a stored weight: (index[axis] / divisor) % extent, slowest first;
 * `padded` is the allocated extent and the padding is zero. */
typedef struct {
	uint32_t axis;
	int64_t divisor, extent, padded;
} WeftLayoutDim;

/* A parameter or folded constant in the weight section. */
typedef struct {
	const char *name; /* of the parameter; "" for a folded value */
	WeftDType dtype;
	uint32_t rank;
	const int64_t *dim;
	uint32_t nlayout; /* 0: row-major */
	const WeftLayoutDim *layout; /* weft_layout_dim */
	uint64_t offset, bytes;
	const char *aliases; /* the parameter's other names in the model's file, a newline behind
	                        each; NULL: it has one name */
} WeftParamInfo;

typedef struct WeftInstance WeftInstance;
typedef struct WeftRegion WeftRegion; /* one call in progress, see runtime.h */

enum {
	WEFT_ENTRY_READS_STATE = 1,
	WEFT_ENTRY_WRITES_STATE = 2, /* one call at a time on an instance, another one is
	                                WEFT_ERR_BUSY */
	WEFT_ENTRY_DATA_SIZES = 4    /* dimensions of outputs depend on what tensors hold: `sizes`
	                                gives -1 there */
}; /* WeftEntry.flags, and of each state in state_use the first two */

typedef struct {
	uint32_t size; /* of this structure */
	uint32_t flags;
	const char *name;
	uint32_t ninput, noutput, nsymbol, ncall;
	const WeftTensorInfo *input, *output; /* what the caller passes: without state. weft_input,
	                                         weft_output */
	const WeftSymbolInfo *symbol;         /* weft_symbol */
	const WeftCallInfo *call;             /* weft_call */
	/* By symbol: its value while exporting (the least it may have where that is not known), at
	 * which numbers hold. */
	const int64_t *seen;
	const uint8_t *state_use; /* by state of the model: WEFT_ENTRY_READS_STATE, _WRITES_STATE or
	                             0; NULL: none is used */
	double flops;             /* of one run, at the sizes `seen` */
	uint64_t sizes_bytes;     /* what to allocate for a WeftSizes */
	/* Emitted code; call it through WeftModel.sizes and run. */
	/* extent: all dims of input 0, of input 1, ... Returns WEFT_OK or has called weft_fail. */
	int (*sizes_fn)(const int64_t *extent, int64_t *slot, WeftStatus *);
	/* Executed by the thread that calls. buf: inputs, outputs, weights, workspace, state. Not
	 * 0: a check failed, and what comes after it was not executed. */
	int (*run_fn)(WeftRegion *, void *const *buf, const int64_t *slot);
	uint32_t nslot; /* result slots of sizes_fn: symbols, output extents, workspace bytes */
	uint32_t nmessage;
	const char *const *message; /* of the checks in kernels, by id, as formats of printf; [0]
	                               unused */
	uint32_t nroom;             /* buffers of run_fn after the state: memory that it asks for
	                               when its size is known */
	uint32_t reserved;
	const struct WeftLaunch *launch; /* the runtime's, by call; NULL: nothing is known */
} WeftEntry;

/* What `sizes` found out; plain data that may be kept and shared by threads. */
typedef struct {
	uint64_t workspace_bytes; /* what run needs; any alignment */
	uint32_t entry, nslot;
	/* Symbols, then all output extents in order, then the program's own workspace; after these
	 * nslot values the extents of the inputs. */
#ifdef __cplusplus
	__extension__ /* flexible arrays are C's */
#endif
	int64_t slot[];
} WeftSizes;

/* ---- threads ---- */

/* Runs body(arg, 0, n') on the calling thread, and ..., body(arg, n' - 1, n') at the same time, n'
 * <= n, and returns when all have: bodies wait for each other, so running them one after the other
 * would never end. Results do not depend on n'. */
typedef struct WeftThreads {
	void (*parallel)(void *user, int32_t n, void (*body)(void *arg, int32_t i, int32_t n),
			 void *arg);
	void *user;
	int32_t nthreads; /* used when the context names no number */
} WeftThreads;

typedef enum {
	WEFT_THREADS_SERIAL,
	WEFT_THREADS_POOL,  /* POSIX threads that belong to this object and end with it */
	WEFT_THREADS_OPENMP /* the same: models have no OpenMP any more */
} WeftThreadsKind;

/* Called by one thread after each kernel call, in order. */
typedef void (*WeftProfile)(void *user, uint32_t call, double seconds);

enum {
	WEFT_STRICT = 1,         /* refuse tensors that are not row-major instead of copying them */
	WEFT_IGNORE_UNKNOWN = 2, /* of set_weights: names that the model has no weight of are passed
	                            over, as those of a state dictionary that its graph does not
	                            use. Else they are errors */
	WEFT_SHARE_ALL = 4       /* share the tasks of every phase, also where that takes longer
	                            than it saves: for tests */
}; /* WeftContext.flags */

typedef struct {
	uint32_t size; /* of this structure */
	uint32_t flags;
	const WeftThreads *threads; /* NULL: the model's pool, which calls share */
	WeftProfile profile;        /* may be NULL */
	void *profile_user;
	int32_t nthreads; /* at most; 0: as the provider says, the default one as many as there are
	                     processors */
	uint32_t reserved;
	/* Where the memory of outputs comes from that the caller leaves to `run`
	 * (WEFT_ENTRY_DATA_SIZES), and what `run` needs besides the workspace where sizes depend on
	 * data: bytes > 0, align a power of two; NULL: no memory. Called by one thread at a time.
	 * NULL: aligned_alloc and free, so that outputs are freed by free. */
	void *(*alloc)(void *user, uint64_t bytes, uint64_t align);
	void (*free)(void *user, void *p, uint64_t bytes);
	void *alloc_user;
} WeftContext;

/* ---- the table ---- */

enum { WEFT_OPEN_VERIFY = 1 }; /* WeftOpen.flags: read all of a weight file and compare its
                                  checksum */

typedef struct {
	uint32_t size; /* of this structure */
	uint32_t flags;
	const char *weights_path; /* for a model whose weights are a file; NULL: beside the shared
				     object */
	const void *weights; /* or the section in memory, 64-byte aligned, outliving the instance
	                        and its clones */
	uint64_t weights_bytes;
} WeftOpen;

typedef struct {
	const char *name;
	const char *weft_version, *target; /* "0.1.0", "x86-64-v3" */
	const char *features;    /* instructions needed, separated by spaces: "avx2 fma" */
	const char *source_hash; /* of the model file's graph and weights */
	const char *compiler;
} WeftManifest;

/* Structures that WeftModel.stride gives the size of. */
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
	uint32_t stride[16]; /* by WeftStruct: bytes from one to the next; 0: the model has none of
	                        that kind */
	const WeftManifest *manifest;
	uint32_t nentry, nparam;
	const WeftEntry *const *entry; /* weft_entry */
	const WeftParamInfo *param;    /* weft_param */
	uint32_t replaceable; /* weights may be replaced by set_weights */
	uint32_t nstate; /* parameters and buffers that entries replace, owned by the instance */
	const WeftTensorInfo *state;   /* weft_state_info; dimensions are constants */
	uint64_t state_bytes;
	const void *weights;  /* NULL: in a file of the name below */
	const char *weights_file;
	const char *weights_hash; /* of what stands where in the weight section; NULL where no file
	                             holds it */
	uint64_t weights_bytes;
	/* Operators of the user (weft_op.h) that it calls and their functions: "mylib::decay
	 * mylib_decay, ...". NULL: none. */
	const char *user_ops;

	int (*open)(const struct WeftModel *, const WeftOpen *, WeftInstance **, WeftStatus *);
	void (*close)(WeftInstance *); /* NULL is allowed; no call is under way */
	/* Checks the inputs (data is not looked at), solves the symbols, gives output shapes and
	 * workspace. Input tensors with strides other than row-major make the workspace larger. */
	int (*sizes)(const WeftInstance *, uint32_t entry, const WeftTensor *inputs, WeftSizes *,
		     WeftStatus *);
	/* Inputs must have the shapes `sizes` saw. Outputs are the caller's memory, row-major, of
	 * the shapes found by `sizes`, and overlap nothing, except that one with
	 * WeftTensorInfo.donates may be that input, which then is half old and half new after a
	 * call that fails: what must survive has another output. Inputs do not overlap the
	 * workspace. Outputs are unspecified after a call that fails. Where `sizes` gives -1 for an
	 * extent of an output, `run` finds out the shape and writes it to the tensor's `shape`:
	 * with data NULL memory comes from the context's allocator (none where there are no
	 * elements), and belongs to the caller; else the shape given says how much room there is.
	 * An entry that uses state changes it as WeftEntry.state_use says, if the call succeeds. */
	int (*run)(WeftInstance *, const WeftSizes *, const WeftTensor *inputs, WeftTensor *outputs,
		   void *workspace, const WeftContext *, WeftStatus *);
	/* n == 0: as many as there are processors. NULL: see status. */
	WeftThreads *(*threads_new)(WeftThreadsKind, int32_t n, WeftStatus *);
	void (*threads_free)(WeftThreads *);
	/* Runs of entries that read state and the functions of state below share it; a run that
	 * writes state has it alone. One that would have to wait does nothing and returns
	 * WEFT_ERR_BUSY.
	 *
	 * New values for the named parameters (`source`), row-major; others keep theirs. Builds the
	 * new section aside, by the context's threads (NULL: as `run`); afterwards it is in use, of
	 * this instance, not of its clones: what a fresh compilation with these values would hold,
	 * bit for bit. After an error the old one is. A name stands there once, and a parameter
	 * with several names (WeftParamInfo.aliases) may have each, with equal values; one that is
	 * no weight's is an error, or passed over by WEFT_IGNORE_UNKNOWN. Runs are not refused
	 * because of it: those that begin before the new section is in use go on with the old one,
	 * which is freed when the last of them has ended. WEFT_ERR_BUSY: another call sets weights,
	 * or runs that began three sets ago have not ended. */
	int (*set_weights)(WeftInstance *, uint32_t n, const char *const *names,
			   const WeftTensor *values, const WeftContext *, WeftStatus *);
	/* Copy state k out of the instance, and into it: row-major tensors of its dtype and shape.
	 * Runs that read state are not refused because of state_set: while any is under way, a copy
	 * of all state is changed and put into use for those that begin afterwards. WEFT_ERR_BUSY:
	 * a run that writes state is under way, or another call changes such a copy, or runs that
	 * began three of them ago have not ended. */
	int (*state_get)(WeftInstance *, uint32_t k, const WeftTensor *to, WeftStatus *);
	int (*state_set)(WeftInstance *, uint32_t k, const WeftTensor *from, WeftStatus *);
	/* All state as it was when opened. As state_set. */
	int (*state_reset)(WeftInstance *, WeftStatus *);
	/* Another instance with the same weights, which both share, and a copy of the state; closed
	 * like any other. */
	int (*clone)(WeftInstance *, WeftInstance **, WeftStatus *);
	/* What set_weights takes: the parameters as the model's file has them, row-major (offset
	 * and layout say nothing). What something stored is computed from together, as a
	 * convolution's weight and the batch norm behind it, is set together, except that the small
	 * ones may be left as they are. */
	uint32_t nsource, reserved;
	const WeftParamInfo *source; /* weft_source */
	const struct WeftPrepare *prepare; /* the runtime's: how they become what is stored */
} WeftModel;

/* ---- using the table ---- */

/* Whether a structure of that size has the field: WEFT_HAS(e->size, WeftEntry, seen),
 * WEFT_HAS(m->stride[WEFT_DIM], WeftDim, text). */
#define WEFT_HAS(bytes, type, field) ((bytes) >= offsetof(type, field) + sizeof(((type *)0)->field))

/* Before anything else. NULL, or why this program cannot use the model. */
static inline const char *weft_model_check(const WeftModel *m)
{
	if (!m)
		return "there is no model";
	if (m->abi < WEFT_ABI_VERSION)
		return "the model was compiled by a weft that is too old for this program: compile it again";
	if (m->abi > WEFT_ABI_VERSION)
		return "the model was compiled by a weft that is too new for this program";
	return WEFT_HAS(m->size, WeftModel, clone) ? NULL : "the table of the model is incomplete";
}

/* Element k of an array of such structures; the caller knows that there is one. */
static inline const void *weft_element(const WeftModel *m, WeftStruct kind, const void *first, uint32_t k)
{
	return (const char *)first + (size_t)k * m->stride[kind];
}

/* The functions below give NULL where there is no such thing: no model or entry, or k is too
 * large. */
static inline const WeftEntry *weft_entry(const WeftModel *m, uint32_t k)
{
	return m && k < m->nentry ? m->entry[k] : NULL;
}

static inline const WeftTensorInfo *weft_input(const WeftModel *m, const WeftEntry *e, uint32_t k)
{
	return m && e && k < e->ninput ? (const WeftTensorInfo *)weft_element(m, WEFT_TENSOR_INFO, e->input, k) : NULL;
}

static inline const WeftTensorInfo *weft_output(const WeftModel *m, const WeftEntry *e, uint32_t k)
{
	return m && e && k < e->noutput ? (const WeftTensorInfo *)weft_element(m, WEFT_TENSOR_INFO, e->output, k) : NULL;
}

static inline const WeftTensorInfo *weft_state_info(const WeftModel *m, uint32_t k)
{
	return m && k < m->nstate ? (const WeftTensorInfo *)weft_element(m, WEFT_TENSOR_INFO, m->state, k) : NULL;
}

static inline const WeftDim *weft_dim(const WeftModel *m, const WeftTensorInfo *t, uint32_t d)
{
	return m && t && d < t->rank ? (const WeftDim *)weft_element(m, WEFT_DIM, t->dim, d) : NULL;
}

static inline const WeftSymbolInfo *weft_symbol(const WeftModel *m, const WeftEntry *e, uint32_t k)
{
	return m && e && k < e->nsymbol ? (const WeftSymbolInfo *)weft_element(m, WEFT_SYMBOL_INFO, e->symbol, k) : NULL;
}

static inline const WeftCallInfo *weft_call(const WeftModel *m, const WeftEntry *e, uint32_t k)
{
	return m && e && k < e->ncall ? (const WeftCallInfo *)weft_element(m, WEFT_CALL_INFO, e->call, k) : NULL;
}

static inline const WeftParamInfo *weft_param(const WeftModel *m, uint32_t k)
{
	return m && k < m->nparam ? (const WeftParamInfo *)weft_element(m, WEFT_PARAM_INFO, m->param, k) : NULL;
}

static inline const WeftParamInfo *weft_source(const WeftModel *m, uint32_t k)
{
	return m && WEFT_HAS(m->size, WeftModel, prepare) && k < m->nsource ? (const WeftParamInfo *)weft_element(m, WEFT_PARAM_INFO, m->source, k) : NULL;
}

static inline const WeftLayoutDim *weft_layout_dim(const WeftModel *m, const WeftParamInfo *p, uint32_t d)
{
	return m && p && d < p->nlayout ? (const WeftLayoutDim *)weft_element(m, WEFT_LAYOUT_DIM, p->layout, d) : NULL;
}

/* The extents of output k in sizes; the entry is the one sizes was called with. */
static inline const int64_t *weft_output_shape(const WeftModel *m, const WeftEntry *e, const WeftSizes *s, uint32_t k)
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
