/* The ABI of a compiled model. A model is one shared object (or a few C files) that exports one
 * function, by default
 *
 *     const WeftModel *weft_model(void);
 *
 * The table it returns describes the model and holds the functions to use it:
 *
 *     WeftStatus status = {0};
 *     WeftInstance *in;
 *     m->open(m, NULL, &in, &status);                       -- once
 *     WeftSizes *sizes = malloc(m->entry[0]->sizes_bytes);
 *     m->sizes(in, 0, x, sizes, &status);                   -- once per combination of shapes
 *     void *work = malloc(sizes->workspace_bytes);
 *     m->run(in, sizes, x, y, work, NULL, &status);         -- any number of threads at once
 *     m->close(in);
 *
 * `run` never allocates, takes no lock and keeps no state: what it needs is in its arguments.
 * Structures that may grow begin with their size; a field is present when the size reaches beyond
 * it. All functions return WEFT_OK or an error code; status, if not NULL, gets the same code, and with an
 * error a sentence in its message.
 *
 * After fork() the child may use what was opened before: a pool runs on the calling thread alone, OpenMP on threads
 * started for the call. */
#ifndef WEFT_MODEL_H
#define WEFT_MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_ABI_VERSION 1

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
	WEFT_ERR_ABI
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
	const WeftDim *dim;
	uint64_t offset; /* of state: within the state section */
} WeftTensorInfo;

typedef struct {
	const char *name;
	int64_t lo, hi; /* hi == INT64_MAX: unbounded */
} WeftSymbolInfo;

/* One kernel call of `run`, for profiles: all launches of one run, at the sizes of WeftEntry.seen. weft_report_at in
 * weft.h counts at others. */
typedef struct {
	const char *name, *algorithm;
	double flops, bytes;
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
	const WeftLayoutDim *layout;
	uint64_t offset, bytes;
} WeftParamInfo;

typedef struct WeftInstance WeftInstance;
typedef struct WeftRegion WeftRegion; /* one call in progress, see runtime.h */

enum { WEFT_ENTRY_MUTATES = 1 }; /* replaces state: call with `step`, one at a time */

typedef struct {
	uint32_t size; /* of this structure */
	const char *name;
	uint32_t flags;
	uint32_t ninput, noutput, nsymbol, ncall;
	const WeftTensorInfo *input, *output; /* what the caller passes: without state */
	const WeftSymbolInfo *symbol;
	const WeftCallInfo *call;
	double flops;         /* of one run, at the sizes `seen` */
	uint64_t sizes_bytes; /* what to allocate for a WeftSizes */
	/* Emitted code; call it through WeftModel.sizes and run. */
	uint32_t nslot; /* result slots of sizes_fn: symbols, output extents, workspace bytes */
	/* extent: all dims of input 0, of input 1, ... Returns WEFT_OK or has called weft_fail. */
	int (*sizes_fn)(const int64_t *extent, int64_t *slot, WeftStatus *);
	/* Executed by every thread of the region. buf: inputs, outputs, weights, workspace, state. Not 0: a check
	 * failed, and what comes after it was not executed. */
	int (*run_fn)(WeftRegion *, void *const *buf, const int64_t *slot);
	const char *const *message; /* of the checks in kernels, by id, as formats of printf; [0] unused */
	uint32_t nmessage;
	/* By symbol: its value while exporting (the least it may have where that is not known), at which the numbers
	 * above hold. Not there where `size` says so. */
	const int64_t *seen;
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

/* Runs body(arg, 0, n'), ..., body(arg, n' - 1, n') at the same time, n' <= n, and returns when all
 * have: bodies wait for each other, so running them one after the other would never end. Results do
 * not depend on n'. */
typedef struct WeftThreads {
	void (*parallel)(void *user, int32_t n, void (*body)(void *arg, int32_t i, int32_t n),
			 void *arg);
	void *user;
	int32_t nthreads; /* used when the context names no number */
} WeftThreads;

typedef enum {
	WEFT_THREADS_SERIAL,
	WEFT_THREADS_POOL,  /* POSIX threads that belong to this object and end with it */
	WEFT_THREADS_OPENMP /* the process's OpenMP threads; the pool where built without */
} WeftThreadsKind;

/* Called by one thread after each kernel call, in order. */
typedef void (*WeftProfile)(void *user, uint32_t call, double seconds);

enum { WEFT_STRICT = 1 }; /* refuse tensors that are not row-major instead of copying them */

typedef struct {
	uint32_t size; /* of this structure */
	uint32_t flags;
	const WeftThreads *threads; /* NULL: the model's default provider */
	int32_t nthreads;           /* 0: as the provider says */
	WeftProfile profile;        /* may be NULL */
	void *profile_user;
} WeftContext;

/* ---- the table ---- */

enum { WEFT_OPEN_VERIFY = 1 }; /* WeftOpen.flags: read all of a weight file and compare its checksum */

typedef struct {
	uint32_t size;            /* of this structure */
	const char *weights_path; /* for a model whose weights are a file; NULL: beside the shared
				     object */
	const void *weights; /* or the section in memory, 64-byte aligned, outliving the instance */
	uint64_t weights_bytes;
	uint32_t flags;
} WeftOpen;

typedef struct {
	const char *name;
	const char *weft_version, *target; /* "0.1.0", "x86-64-v3" */
	const char *features;    /* instructions needed, separated by spaces: "avx2 fma" */
	const char *source_hash; /* of the model file's graph and weights */
	const char *compiler;
} WeftManifest;

typedef struct WeftModel {
	uint32_t size; /* of this structure */
	uint32_t abi;  /* WEFT_ABI_VERSION */
	const WeftManifest *manifest;
	uint32_t nentry, nparam;
	const WeftEntry *const *entry;
	const WeftParamInfo *param;
	uint32_t replaceable; /* weights may be replaced by set_weights */
	const void *weights;  /* NULL: in a file of the name below */
	const char *weights_file;
	uint64_t weights_bytes, state_bytes;
	uint64_t state_init; /* offset in the weight section of the state's first contents */
	uint32_t nstate; /* parameters and buffers that entries replace, owned by the instance */
	const WeftTensorInfo *state;

	int (*open)(const struct WeftModel *, const WeftOpen *, WeftInstance **, WeftStatus *);
	void (*close)(WeftInstance *); /* NULL is allowed */
	/* Checks the inputs (data is not looked at), solves the symbols, gives output shapes and
	 * workspace. Input tensors with strides other than row-major make the workspace larger. */
	int (*sizes)(const WeftInstance *, uint32_t entry, const WeftTensor *inputs, WeftSizes *,
		     WeftStatus *);
	/* Inputs must have the shapes `sizes` saw. Outputs are the caller's memory, row-major, of
	 * the shapes found by `sizes`, and overlap nothing; inputs do not overlap the workspace. */
	int (*run)(const WeftInstance *, const WeftSizes *, const WeftTensor *inputs,
		   const WeftTensor *outputs, void *workspace, const WeftContext *, WeftStatus *);
	/* As run, for entries that replace state: no other call on the instance meanwhile. */
	int (*step)(WeftInstance *, const WeftSizes *, const WeftTensor *inputs,
		    const WeftTensor *outputs, void *workspace, const WeftContext *, WeftStatus *);
	/* New values for the named parameters, row-major; others keep theirs. Builds the new
	 * section aside; afterwards it is in use. No call on the instance may be running. */
	int (*set_weights)(WeftInstance *, uint32_t n, const char *const *names,
			   const WeftTensor *values, WeftStatus *);
	/* n == 0: as many as there are processors, or as OpenMP says. NULL: see status. */
	WeftThreads *(*threads_new)(WeftThreadsKind, int32_t n, WeftStatus *);
	void (*threads_free)(WeftThreads *);
	const char *weights_hash; /* of what stands where in the weight section; NULL where no file holds it */
	/* Operators of the user (weft_op.h) that it calls and their functions: "mylib::decay mylib_decay, ...". NULL, or not
	 * there where `size` says so: none. */
	const char *user_ops;
} WeftModel;

/* The extents of output k in sizes; the entry is the one sizes was called with. */
static inline const int64_t *weft_output_shape(const WeftEntry *e, const WeftSizes *s, uint32_t k)
{
	const int64_t *p = s->slot + e->nsymbol;
	for (uint32_t i = 0; i < k; i++)
		p += e->output[i].rank;
	return p;
}

#ifdef __cplusplus
}
#endif
#endif
