/* Calls with tensors in the memory of a GPU. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "on_device.h"

/* The functions of the CUDA driver that a caller of a model needs. */
typedef struct {
	int (*init)(unsigned), (*device)(int *, int), (*retain)(void **, int), (*release)(int),
		(*push)(void *), (*pop)(void **);
	int (*alloc)(uint64_t *, size_t), (*free)(uint64_t);
	int (*in)(uint64_t, const void *, size_t, void *), (*out)(void *, uint64_t, size_t, void *);
	int (*stream)(void **, unsigned), (*drop)(void *), (*wait)(void *);
} Driver;

struct OnDevice {
	Driver cu;
	Runner *r;
	int ordinal, device;
	void *context, *stream;
	WeftTensor *tensor; /* inputs, then outputs; shapes are the caller's and the runner's */
	uint64_t work;
	WeftContext how;
};

static bool load_driver(Driver *cu)
{
	void *so = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	const struct {
		const char *name;
		void *at;
	} all[] = {
		{"cuInit", &cu->init},
		{"cuDeviceGet", &cu->device},
		{"cuDevicePrimaryCtxRetain", &cu->retain},
		{"cuDevicePrimaryCtxRelease_v2", &cu->release},
		{"cuCtxPushCurrent_v2", &cu->push},
		{"cuCtxPopCurrent_v2", &cu->pop},
		{"cuMemAlloc_v2", &cu->alloc},
		{"cuMemFree_v2", &cu->free},
		{"cuMemcpyHtoDAsync_v2", &cu->in},
		{"cuMemcpyDtoHAsync_v2", &cu->out},
		{"cuStreamCreate", &cu->stream},
		{"cuStreamDestroy_v2", &cu->drop},
		{"cuStreamSynchronize", &cu->wait},
	};
	if (!so)
		return fail_id("W0012", "NVIDIA's driver is not there: %s", dlerror()), false;
	for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
		void *function = dlsym(so, all[k].name);
		if (!function)
			return fail("NVIDIA's driver has no function %s", all[k].name), false;
		memcpy(all[k].at, &function, sizeof function);
	}
	return true;
}

bool on_device_can(const Runner *r)
{
	return r->model && r->device.type == WEFT_CUDA &&
	       !(r->entry->flags & WEFT_ENTRY_DATA_SIZES);
}

static bool has_failed(int code, const char *what)
{
	return code && (fail("%s on the GPU: error %d of NVIDIA's driver", what, code), true);
}

/* Gives the tensor memory of the GPU. */
static bool place(OnDevice *d, WeftTensor *to, const WeftTensor *from)
{
	uint64_t at = 0;
	*to = *from;
	to->data = NULL;
	to->byte_offset = 0;
	to->device = d->how.device;
	if (has_failed(d->cu.alloc(&at, bytes_of(from) + 16), "taking memory"))
		return false;
	to->data = (void *)(uintptr_t)at;
	return true;
}

static bool place_all(OnDevice *d, const WeftTensor *inputs)
{
	const Runner *r = d->r;
	for (uint32_t k = 0; k < r->ninput; k++) {
		const void *from = (char *)inputs[k].data + inputs[k].byte_offset;
		if (!place(d, &d->tensor[k], &inputs[k]) ||
		    has_failed(d->cu.in((uintptr_t)d->tensor[k].data, from, bytes_of(&inputs[k]),
					d->stream),
			       "copying inputs"))
			return false;
	}
	for (uint32_t k = 0; k < r->noutput; k++)
		if (!place(d, &d->tensor[r->ninput + k], &r->result[k]))
			return false;
	return !has_failed(d->cu.alloc(&d->work, r->sizes->workspace_bytes + 64),
			   "taking memory of the workspace") &&
	       !has_failed(d->cu.wait(d->stream), "copying inputs");
}

OnDevice *on_device_new(Runner *r, const WeftTensor *inputs)
{
	OnDevice *d = calloc(1, sizeof *d);
	if (!d || !(d->tensor = calloc(r->ninput + r->noutput + 1, sizeof *d->tensor)))
		return fail("out of memory"), free(d), NULL;
	d->r = r;
	d->ordinal = r->device.id;
	bool ok = load_driver(&d->cu) && !has_failed(d->cu.init(0), "starting the driver") &&
		  !has_failed(d->cu.device(&d->device, d->ordinal), "finding the GPU") &&
		  !has_failed(d->cu.retain(&d->context, d->device), "taking the context");
	if (ok && has_failed(d->cu.push(d->context), "taking the context")) {
		d->cu.release(d->device);
		d->context = NULL;
		ok = false;
	}
	/* CU_STREAM_NON_BLOCKING */
	ok = ok && !has_failed(d->cu.stream(&d->stream, 1), "making a stream");
	d->how = (WeftContext){
		.size = sizeof d->how, .device = {WEFT_CUDA, d->ordinal}, .stream = d->stream};
	if (ok && place_all(d, inputs))
		return d;
	on_device_free(d);
	return NULL;
}

bool on_device_begin(OnDevice *d)
{
	Runner *r = d->r;
	WeftStatus status = {0};
	int code = r->model->run(r->instance, r->sizes, d->tensor, d->tensor + r->ninput,
				 (void *)(uintptr_t)d->work, &d->how, &status);
	return code == WEFT_OK || (fail_status(r->path, code, status.message), false);
}

bool on_device_wait(OnDevice *d)
{
	WeftStatus status = {0};
	return weft_wait(d->r->model, d->r->instance, &d->how, &status) == WEFT_OK ||
	       (fail_status(d->r->path, status.code, status.message), false);
}

bool on_device_output(OnDevice *d, uint32_t k, void *out, uint64_t bytes)
{
	return on_device_wait(d) &&
	       !has_failed(d->cu.out(out, (uintptr_t)d->tensor[d->r->ninput + k].data, bytes,
				     d->stream),
			   "copying outputs") &&
	       !has_failed(d->cu.wait(d->stream), "copying outputs");
}

void on_device_free(OnDevice *d)
{
	if (!d)
		return;
	for (uint32_t k = 0; d->context && k < d->r->ninput + d->r->noutput; k++)
		d->cu.free((uintptr_t)d->tensor[k].data);
	if (d->context) {
		void *context;
		d->cu.free(d->work);
		if (d->stream)
			d->cu.drop(d->stream);
		d->cu.pop(&context);
		d->cu.release(d->device);
	}
	free(d->tensor);
	free(d);
}
