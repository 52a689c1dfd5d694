/* Private to the runtime: the functions of the CUDA driver (libcuda.so.1), with the names of cuda.h
 * beside them in cuda_driver.c, and the types and numbers of cuda.h that they take. Empty in other
 * runtimes (cuda.h). */
#ifndef WEFT_RUNTIME_CUDA_DRIVER_H
#define WEFT_RUNTIME_CUDA_DRIVER_H

#ifdef WEFT_WITH_CUDA
#include <stddef.h>
#include <stdint.h>

typedef struct Context Context;
typedef struct Module Module;
typedef struct Function Function;
typedef struct Stream Stream;
typedef struct Event Event;
typedef struct CuGraph CuGraph;
typedef struct CuExec CuExec;
typedef struct CuNode CuNode;
typedef struct Pool Pool;
typedef uint64_t Address;

/* Numbers of cuda.h that are used here; every driver has the same. */
enum {
	CU_OK = 0,
	CU_OUT_OF_MEMORY = 2,
	CU_NOT_INITIALIZED = 3,
	CU_DEINITIALIZED = 4,
	CU_NO_DEVICE = 100,
	CU_NOT_READY = 600,
	CU_ILLEGAL_ADDRESS = 700,
	CU_LAUNCH_FAILED = 719,
	CU_MAJOR = 75,
	CU_MINOR = 76,
	CU_POOLS = 115, /* CUdevice_attribute */
	CU_PARAM_END = 0,
	CU_PARAM_BUFFER = 1,
	CU_PARAM_SIZE = 2, /* CU_LAUNCH_PARAM_... */
	CU_ERROR_LOG = 5,
	CU_ERROR_LOG_BYTES = 6, /* CUjit_option */
	CU_NO_TIME = 2,         /* CU_EVENT_DISABLE_TIMING */
	CU_ON_DEVICE = 2,       /* CUmemorytype */
	CU_PINNED = 1,
	CU_PLACE_DEVICE = 1,
	CU_POOL_KEEPS = 4, /* CUmemPool_attribute, ... */
	CU_OF_ITS_OWN = 1, /* CU_STREAM_NON_BLOCKING */
	/* CU_STREAM_CAPTURE_MODE_THREAD_LOCAL */
	CU_OF_THREAD = 1
};

/* CUmemPoolProps: memory of a device. */
typedef struct {
	int kind, handles, place, id;
	void *security;
	size_t most;
	unsigned char reserved[56];
} PoolProps;

/* The parameters of nodes of graphs, as cuda.h has them. */
typedef struct {
	Function *function;
	unsigned grid[3], block[3], shared;
	void **args, **extra;
} KernelNode; /* CUDA_KERNEL_NODE_PARAMS_v1 */
typedef struct {
	Address to;
	size_t pitch;
	unsigned value, element;
	size_t width, height;
} FillNode; /* CUDA_MEMSET_NODE_PARAMS_v1 */
typedef struct {
	size_t x, y, z, lod;
	int memory;
	void *host;
	Address device;
	void *array, *reserved;
	size_t pitch, height;
} CopySide;
typedef struct {
	CopySide from, to;
	size_t width, height, depth;
} CopyNode; /* CUDA_MEMCPY3D_v2 */

typedef struct {
	int (*init)(unsigned), (*count)(int *), (*device)(int *, int),
		(*attribute)(int *, int, int), (*name)(char *, int, int);
	int (*retain)(Context **, int), (*release)(int), (*push)(Context *), (*pop)(Context **);
	int (*load)(Module **, const void *, unsigned, int *, void **), (*unload)(Module *),
		(*function)(Function **, Module *, const char *);
	int (*launch)(Function *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		      unsigned, Stream *, void **, void **);
	int (*alloc)(Address *, size_t), (*free)(Address),
		(*alloc_async)(Address *, size_t, Stream *), (*free_async)(Address, Stream *);
	int (*room)(size_t *, size_t *);
	int (*in)(Address, const void *, size_t, Stream *),
		(*out)(void *, Address, size_t, Stream *),
		(*within)(Address, Address, size_t, Stream *);
	int (*fill)(Address, unsigned char, size_t, Stream *), (*wait)(Stream *);
	int (*host_alloc)(void **, size_t, unsigned), (*host_free)(void *);
	int (*event)(Event **, unsigned), (*event_record)(Event *, Stream *),
		(*event_query)(Event *), (*event_wait)(Event *), (*event_drop)(Event *);
	int (*error_name)(int, const char **), (*error_text)(int, const char **);
	/* Of graphs; graph_new NULL: the driver is too old for them. */
	int (*graph_new)(CuGraph **, unsigned), (*graph_drop)(CuGraph *), (*exec_drop)(CuExec *),
		(*make)(CuExec **, CuGraph *, unsigned long long);
	int (*add_kernel)(CuNode **, CuGraph *, CuNode *const *, size_t, const KernelNode *),
		(*set_kernel)(CuExec *, CuNode *, const KernelNode *);
	int (*add_fill)(CuNode **, CuGraph *, CuNode *const *, size_t, const FillNode *, Context *),
		(*set_fill)(CuExec *, CuNode *, const FillNode *, Context *);
	int (*add_copy)(CuNode **, CuGraph *, CuNode *const *, size_t, const CopyNode *, Context *),
		(*set_copy)(CuExec *, CuNode *, const CopyNode *, Context *);
	int (*graph_launch)(CuExec *, Stream *);
	int (*stream)(Stream **, unsigned), (*stream_drop)(Stream *), (*capture)(Stream *, int),
		(*captured)(Stream *, CuGraph **);
	int (*is_captured)(Stream *, int *);
	int (*add_child)(CuNode **, CuGraph *, CuNode *const *, size_t, CuGraph *);
	/* Of pools; pool NULL: the driver is too old for pools of one's own. */
	int (*pool)(Pool **, const PoolProps *), (*pool_drop)(Pool *),
		(*pool_set)(Pool *, int, const void *),
		(*pool_alloc)(Address *, size_t, Pool *, Stream *);
	char missing[400]; /* why it cannot be used; empty: it can */
	int state;         /* of cuInit */
} CudaDriver;

/* Set by weft_cuda_load. */
extern CudaDriver weft_cuda_driver;
/* Loads the driver and initialises it, the first time; any thread may call. Returns NULL if it can
 * be used, once CudaDriver.state is looked at, else a part of a sentence that says why not. */
const char *weft_cuda_load(void);
#endif

#endif
