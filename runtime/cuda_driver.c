/* Loading the CUDA driver. Empty in other runtimes (cuda.h). */
#include "cuda.h"
#include "cuda_driver.h"

#ifdef WEFT_WITH_CUDA
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

CudaDriver weft_cuda_driver;

static void load_library(void)
{
	CudaDriver *const cu = &weft_cuda_driver;
	const struct {
		const char *name;
		void *at;
	} wanted[] = {
		{"cuInit", &cu->init},
		{"cuDeviceGetCount", &cu->count},
		{"cuDeviceGet", &cu->device},
		{"cuDeviceGetAttribute", &cu->attribute},
		{"cuDeviceGetName", &cu->name},
		{"cuDevicePrimaryCtxRetain", &cu->retain},
		{"cuDevicePrimaryCtxRelease_v2", &cu->release},
		{"cuCtxPushCurrent_v2", &cu->push},
		{"cuCtxPopCurrent_v2", &cu->pop},
		{"cuModuleLoadDataEx", &cu->load},
		{"cuModuleUnload", &cu->unload},
		{"cuModuleGetFunction", &cu->function},
		{"cuLaunchKernel", &cu->launch},
		{"cuMemAlloc_v2", &cu->alloc},
		{"cuMemFree_v2", &cu->free},
		{"cuMemAllocAsync", &cu->alloc_async},
		{"cuMemFreeAsync", &cu->free_async},
		{"cuMemGetInfo_v2", &cu->room},
		{"cuMemcpyHtoDAsync_v2", &cu->in},
		{"cuMemcpyDtoHAsync_v2", &cu->out},
		{"cuMemcpyDtoDAsync_v2", &cu->within},
		{"cuMemsetD8Async", &cu->fill},
		{"cuStreamSynchronize", &cu->wait},
		{"cuMemHostAlloc", &cu->host_alloc},
		{"cuMemFreeHost", &cu->host_free},
		{"cuEventCreate", &cu->event},
		{"cuEventRecord", &cu->event_record},
		{"cuEventQuery", &cu->event_query},
		{"cuEventSynchronize", &cu->event_wait},
		{"cuEventDestroy_v2", &cu->event_drop},
		{"cuGetErrorName", &cu->error_name},
		{"cuGetErrorString", &cu->error_text},
	};
	const struct {
		const char *name;
		void *at;
	} pools[] =
		{
			{"cuMemPoolCreate", &cu->pool},
			{"cuMemPoolDestroy", &cu->pool_drop},
			{"cuMemPoolSetAttribute", &cu->pool_set},
			{"cuMemAllocFromPoolAsync", &cu->pool_alloc},
		},
	  graphs[] = {
		  {"cuGraphCreate", &cu->graph_new},
		  {"cuGraphDestroy", &cu->graph_drop},
		  {"cuGraphExecDestroy", &cu->exec_drop},
		  {"cuGraphInstantiateWithFlags", &cu->make},
		  {"cuGraphAddKernelNode", &cu->add_kernel},
		  {"cuGraphExecKernelNodeSetParams", &cu->set_kernel},
		  {"cuGraphAddMemsetNode", &cu->add_fill},
		  {"cuGraphExecMemsetNodeSetParams", &cu->set_fill},
		  {"cuGraphAddMemcpyNode", &cu->add_copy},
		  {"cuGraphExecMemcpyNodeSetParams", &cu->set_copy},
		  {"cuGraphLaunch", &cu->graph_launch},
		  {"cuStreamCreate", &cu->stream},
		  {"cuStreamDestroy_v2", &cu->stream_drop},
		  {"cuStreamBeginCapture_v2", &cu->capture},
		  {"cuStreamEndCapture", &cu->captured},
		  {"cuStreamIsCapturing", &cu->is_captured},
		  {"cuGraphAddChildGraphNode", &cu->add_child},
	  };
	void *so = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!so)
		snprintf(cu->missing, sizeof cu->missing, "NVIDIA's driver is not there: %.300s",
			 dlerror());
	for (size_t k = 0; so && k < sizeof wanted / sizeof *wanted; k++) {
		void *fn = dlsym(so, wanted[k].name);
		memcpy(wanted[k].at, &fn, sizeof fn);
		if (!fn)
			snprintf(cu->missing, sizeof cu->missing,
				 "NVIDIA's driver is older than 11.2: it has no %s",
				 wanted[k].name);
	}
	bool all = so, own = so;
	for (size_t k = 0; so && k < sizeof pools / sizeof *pools; k++) {
		void *fn = dlsym(so, pools[k].name);
		memcpy(pools[k].at, &fn, sizeof fn);
		own = own && fn;
	}
	cu->pool = own ? cu->pool : NULL;
	for (size_t k = 0; so && k < sizeof graphs / sizeof *graphs; k++) {
		void *fn = dlsym(so, graphs[k].name);
		memcpy(graphs[k].at, &fn, sizeof fn);
		all = all && fn;
	}
	cu->graph_new = all ? cu->graph_new : NULL;
	cu->state = *cu->missing ? CU_OK : cu->init(0);
}

const char *weft_cuda_load(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, load_library);
	return *weft_cuda_driver.missing ? weft_cuda_driver.missing : NULL;
}
#endif
