/* Private to the runtime: the device on which a model runs, if it is no processor. Memory of
 * inputs, outputs, weights, workspace, state and rooms is the device's then: the runtime computes
 * addresses in it, and touches it by these operations only. They exist in runtimes that are
 * compiled with WEFT_DEVICES; in others memory_copy and the like are memcpy, and nothing is left of
 * a device. */
#ifndef WEFT_RUNTIME_DEVICE_H
#define WEFT_RUNTIME_DEVICE_H

#include "runtime.h"

/* From where to where bytes are copied. */
typedef enum { WEFT_TO_DEVICE = 1, WEFT_TO_HOST, WEFT_ON_DEVICE } WeftWay;

#ifdef WEFT_DEVICES
struct DeviceCall;
/* A launch: kernel, buffers, parameters and tasks are those of weft_phase. The arrays may be
 * overwritten when the driver's `launch` has returned. */
typedef struct {
	WeftKernel kernel;
	void *const *buf; /* addresses of the device, or NULL */
	const int64_t *p;
	uint32_t nbuf, nparam, call;
	int64_t ntasks;
	WeftRegion *region;
	/* The driver sets these if a check failed: the result of a WeftKernel, and what it filled
	 * in. */
	int failed;
	int64_t failure[WEFT_FAILURE];
	WeftStatus told;
} WeftDeviceLaunch;

/* The operations of a device. Those of one stream are executed in order; `stream` is
 * WeftContext.stream, NULL: the device's own. copy, fill, free and launch may return before they
 * are done, and say nothing: the next `wait` or `read` of the stream by the same thread returns the
 * first error, a code and a sentence. Any thread may call; self is that of the driver. */
typedef struct WeftDriver {
	uint32_t size; /* of this structure */
	int32_t type;  /* WeftDevice.type of tensors in its memory */
	const char *name;
	void *self;
	/* At least bytes (> 0), aligned to 64; NULL: there is no memory. */
	void *(*alloc)(void *self, uint64_t bytes, void *stream);
	void (*free)(void *self, void *p, void *stream); /* NULL is allowed */
	/* Memory of the host must stay as it is until the stream was waited for. */
	void (*copy)(void *self, void *to, const void *from, uint64_t bytes, WeftWay, void *stream);
	void (*fill)(void *self, void *to, uint8_t with, uint64_t bytes, void *stream);
	/* Copies bytes to the host, and waits. */
	int (*read)(void *self, void *to, const void *from, uint64_t bytes, void *stream,
		    WeftStatus *);
	void (*launch)(void *self, WeftDeviceLaunch *, void *stream);
	int (*wait)(void *self, void *stream, WeftStatus *);
	/* The bytes of memory that are free, for messages; NULL: nobody knows. */
	uint64_t (*left)(void *self);
	/* The weight section's first bytes, which are all that kernels of the device read; 0: they
	 * may read the whole section. */
	uint64_t weights;
	/* For calls that return before the device has executed them (flight.c). mark NULL: there
	 * are none, and all calls wait. mark: puts a mark behind what the stream was given so far;
	 * *mark NULL: makes the mark first, which unmark frees. Returns the first error of what
	 * this thread began, a code and a sentence. */
	int (*mark)(void *self, void **mark, void *stream, WeftStatus *);
	/* Sets *done to whether all ahead of the mark is done; with `wait` waits for that. Returns
	 * the error of the device, if it failed, a code and a sentence. */
	int (*passed)(void *self, void *mark, bool wait, bool *done, WeftStatus *);
	void (*unmark)(void *self, void *mark);
	/* Memory of the host, to which copies from the device need not wait. */
	void *(*host_alloc)(void *self, uint64_t bytes);
	void (*host_free)(void *self, void *);
	/* A sentence's part, why calls with the stream are refused: "the stream is being captured";
	 * NULL: they are not, or (refuses NULL) never. */
	const char *(*refuses)(void *self, void *stream);
	bool ordered; /* what the stream was given ahead of a `free` may still use the memory */
	/* Graphs: what a call gives its stream, recorded, and given again as a whole (graph.c).
	 * graph_new NULL: the device has none. While DeviceCall.graph is set, launches of the call
	 * and graph_copy are recorded instead of begun. graph_new returns an empty one; NULL: no
	 * memory. graph_again: what is recorded next is what was recorded before, with arguments
	 * that may differ. */
	void *(*graph_new)(void *self);
	void (*graph_again)(void *graph);
	void (*graph_copy)(void *self, struct DeviceCall *, void *to, const void *from,
			   uint64_t bytes);
	/* Begins all that was recorded. Returns false, without beginning, if the device cannot do
	 * that, or if less was recorded than before. */
	bool (*graph_play)(void *self, void *graph, void *stream);
	/* Begins what was recorded since graph_new or graph_again, one after the other. */
	void (*graph_flush)(void *self, void *graph, void *stream);
	void (*graph_free)(void *self, void *graph); /* waits until the device has executed it */
} WeftDriver;

/* WeftDevice.type of the driver that this runtime is linked with. */
extern const int32_t weft_device_type;
/* Opens device number `ordinal` for a model; each success with *out not NULL must be followed by
 * weft_device_close. Returns WEFT_OK, with *out NULL if the model runs on the processor; or an
 * error code with a message, and *out NULL. */
int weft_device_open(const WeftModel *, int32_t ordinal, const WeftDriver **out, WeftStatus *);
/* Ends the use that one weft_device_open began; the last one closes the device, of which nothing
 * may be in use then. NULL is allowed. */
void weft_device_close(const WeftDriver *);
/* Returns the `ordinal` with which weft_device_open opened the device. */
int32_t weft_device_ordinal(const WeftDriver *);

/* What kernels write about the failed check that comes first in the order of launches, tasks and
 * threads, in memory of the device. All 0: none. The printed text of kernels has the same. */
typedef struct {
	int32_t lock, id; /* id: as the result of a WeftKernel */
	uint64_t key;     /* greater: it comes before */
	int64_t value[WEFT_FAILURE - 1];
} WeftRecord;
enum { WEFT_RECORD = 128, WEFT_LAUNCHES = 1 << 20 }; /* its bytes, and more; a number of a launch
                                                        is less */

/* What code of a GPU moves in one access: tensors begin at multiples of so many bytes. */
enum { DEVICE_ALIGN = 16 };

/* Memory of the device that stands for a tensor of the host during a call, or for one of the device
 * that is not aligned. */
typedef struct {
	void *there;
	const WeftTensor *back; /* the output to copy to; NULL: an input */
	uint64_t bytes;
	bool on_device; /* the tensor is the device's */
} Staged;

/* A call of `run` on a device. A caller that gives no device in its context has tensors of the
 * host, and its workspace is not used; one that gives it has the workspace there, and tensors on
 * either side. */
typedef struct DeviceCall {
	const WeftDriver *driver;
	void *stream;
	bool aware; /* the caller gives the device */
	void *work; /* the workspace that the call has allocated; NULL: the caller's */
	/* For drivers whose kernels execute later: room for a WeftRecord, on the device; whether a
	 * kernel may have written it (the driver sets it, and clears the room before); the number
	 * of the launch, from 1. A launch behind a check that failed does nothing. */
	void *record;
	bool recorded;
	uint32_t launches;
	Staged *staged;
	uint32_t nstaged;
	int code; /* of what failed after the tasks */
	/* The call need not wait: it is told later whether it failed. NULL: it waits. */
	struct Flight *flight;
	/* The instance's graphs; NULL: the call uses none. cached: the one of this call; graph: the
	 * driver's, which is being recorded; NULL: none is. */
	struct Graphs *graphs;
	struct CachedGraph *cached;
	void *graph;
} DeviceCall;

/* Begins a call: fills in *DeviceCall, and checks the context's device. If the context names none
 * or the processor, allocates a workspace of work_bytes bytes on the driver's device and sets *work
 * to it; else *work stays. staged: room for every input and output. flight: that of a call which
 * need not wait, or NULL. Returns WEFT_OK, or an error code with a message: another device than the
 * driver's, or no memory. After WEFT_OK the caller calls device_end. */
int device_begin(DeviceCall *, const WeftDriver *, const WeftContext *, Staged *staged,
		 uint64_t work_bytes, void **work, struct Flight *flight, WeftStatus *);
/* The bytes at the end of the workspace that device_begin takes for itself. */
enum { DEVICE_WORK = WEFT_RECORD + 64 };
/* Binds the tensor of an input or output that the call was given. A tensor of the device that is
 * aligned stays as it is, and so does *data; for others allocates memory on the device, sets *data
 * to it, and copies an input there. Returns WEFT_OK, or an error code with a message: a tensor is
 * not row-major (but an input of the host may be strided), or there is no memory. */
int device_bind(DeviceCall *, bool output, const char *name, const WeftTensor *, void **data,
		WeftStatus *);
/* Checks that a tensor in the memory of devices of the driver's type is of the driver's own device.
 * Returns WEFT_OK, or an error code with a message. */
int device_check(const WeftDriver *, const char *role, const char *name, const WeftTensor *,
		 WeftStatus *);
/* Ends a call whose code so far is `code`: copies outputs back if that is WEFT_OK, frees the memory
 * of device_begin and device_bind, and waits unless the call has a flight. Returns `code`; or, if
 * that is WEFT_OK, the first error of what was still to be done (DeviceCall.code, copies, waiting
 * or departing), with a message. */
int device_end(DeviceCall *, int code, WeftStatus *);
/* Does as weft_phase, on a device: launches the tasks and does not wait, unless a profile is
 * taken. Launches nothing if the call has failed. Returns as weft_phase; a failure that the device
 * has not told yet is found later. */
int device_phase(WeftRegion *, WeftKernel, void *const *buf, const int64_t *p, uint32_t call,
		 int64_t ntasks);
/* Does as weft_read, on a device: waits for what was launched. If a check has failed, or after an
 * error of the device, returns 0, and the call fails. */
int64_t device_read(WeftRegion *, const void *from, int code, int bits);
/* Does as weft_copy, on a device: the copy follows what was launched before; does not wait for the
 * copy. Copies nothing if the call has failed. */
void device_copy(WeftRegion *, void *to, const void *from, int64_t bytes);
/* Does as weft_save, on a device: the record is copied to the device's memory, where `record`
 * points. */
void device_save(WeftRegion *, void *record, void *state, const void *values, const void *at,
		 int64_t n, int64_t bytes);
/* Whether a check of a launch so far has failed; waits for those that may. */
bool device_failed(WeftRegion *);
/* Calls a user operator, whose tensors have addresses of the device but for those among the values;
 * work: of the device, `bytes` bytes. Without WEFT_OP_DEVICE the function is given copies of the
 * host. Returns the function's result; or an error code after setting the status: the device
 * failed, or there is no memory. */
int device_op(WeftRegion *, const WeftOpCall *, WeftOpContext *, WeftTensor *, void *work,
	      uint64_t bytes, WeftStatus *);
/* Begins the call by a graph, in place of `run`. Returns false if `run` is to be executed, perhaps
 * to record a graph. */
bool device_play(WeftRegion *);
/* Ends recording, if the call does: what was recorded is begun, and what comes is not recorded. */
void device_direct(DeviceCall *);
/* Begins, at the end of a call, what was recorded. If it failed, copies saved state back, the last
 * saved first. Forgets what was saved. */
void device_put_back(WeftRegion *);
/* Whether the tensor is the host's, in a call on a device; false without a device (d NULL). */
static inline bool device_is_host(const DeviceCall *d, const WeftTensor *t)
{
	return d && t->device.type != d->driver->type;
}
#endif

#endif
