/* A stand-in for the CUDA driver, libcuda.so.1, on this CPU: the functions that runtime/cuda.c
 * uses, memory with addresses of its own, which fault when somebody dereferences them, and images
 * that are shared objects for this CPU, whose kernels get the real addresses (emit_cuda_standin).
 * Of code for real GPUs it loads what a device of that architecture would, and launches nothing.
 * What a program must not do with the driver is an error. What a stream other than NULL is given is
 * executed when somebody waits for it, and not earlier; NULL is the default stream, which waits for
 * all others. The environment says what there is:
 *
 *   STANDIN_DEVICES=N   devices (1)
 *   STANDIN_SM=90       their architecture (90)
 *   STANDIN_MEMORY=N    bytes of memory of a device (2^36)
 *   STANDIN_FAIL=N      launch N, from 1, fails when it is executed (0: none)
 *
 * Exported besides, for tests: standin_live (allocations, modules, contexts, events and work that
 * are left), standin_stream (that of the last launch), standin_pending (what the stream was given
 * and is not executed), standin_graphs (graphs that were made, launches of graphs, changes of their
 * nodes). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "standin.h"

enum { GAP = 4096, MOST = 1 << 16, CUDA_MACHINE = 190 };
#define SPACE ((uint64_t)1 << 36)

typedef struct {
	void *so; /* NULL: of a real GPU */
	const char *image;
	uint64_t bytes;
} Module;

struct Standin self = {.lock = PTHREAD_MUTEX_INITIALIZER};
static __thread int current; /* contexts that are pushed */

typedef struct {
	uint64_t wanted, done; /* numbers of marks */
	void *stream;
} Event;
static struct {
	pthread_mutex_t lock;
	Op *first, **last;
	uint64_t marks, n;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .last = &queue.first};

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *s = getenv(name);
	return s && *s ? strtoull(s, NULL, 10) : otherwise;
}

EXPORT int standin_live(void);
int standin_live(void)
{
	return (int)self.n + self.modules + self.retained + self.events + (int)queue.n;
}

EXPORT void *standin_stream(void);
void *standin_stream(void)
{
	return self.stream;
}

/* ---- devices and contexts ---- */

EXPORT int cuInit(unsigned flags)
{
	if (flags)
		return INVALID_VALUE;
	if (!number("STANDIN_DEVICES", 1))
		return NO_DEVICE;
	self.begun = 1;
	return OK;
}

/* NVRTC asks, in a process that has a driver. */
EXPORT int cuGetExportTable(const void **table, const void *id)
{
	(void)id;
	*table = NULL;
	return NOT_FOUND;
}

EXPORT int cuDeviceGetCount(int *n)
{
	*n = (int)number("STANDIN_DEVICES", 1);
	return self.begun ? OK : NOT_INITIALIZED;
}

EXPORT int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return !self.begun                                                   ? NOT_INITIALIZED
	       : ordinal >= 0 && ordinal < (int)number("STANDIN_DEVICES", 1) ? OK
									     : INVALID_DEVICE;
}

EXPORT int cuDeviceGetAttribute(int *value, int which, int device)
{
	const int sm = (int)number("STANDIN_SM", 90);
	(void)device;
	*value = which == 75 ? sm / 10 : which == 76 ? sm % 10 : which == 115;
	return self.begun ? OK : NOT_INITIALIZED;
}

EXPORT int cuDeviceGetName(char *name, int n, int device)
{
	snprintf(name, (size_t)n, "Stand-in %d", device);
	return OK;
}

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device)
{
	(void)device;
	pthread_mutex_lock(&self.lock);
	if (!self.real) {
		void *real = mmap(NULL, SPACE, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		void *window = mmap(NULL, SPACE, PROT_NONE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		self.block = calloc(MOST, sizeof *self.block);
		if (real == MAP_FAILED || window == MAP_FAILED || !self.block)
			abort();
		self.real = real;
		self.window = window;
	}
	self.retained++;
	*context = &self;
	pthread_mutex_unlock(&self.lock);
	return OK;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
	(void)device;
	pthread_mutex_lock(&self.lock);
	int rc = self.retained > 0 ? OK : INVALID_CONTEXT;
	self.retained -= rc == OK;
	pthread_mutex_unlock(&self.lock);
	return rc;
}

EXPORT int cuCtxPushCurrent_v2(void *context)
{
	if (context != &self || !self.retained)
		return INVALID_CONTEXT;
	current++;
	return OK;
}

EXPORT int cuCtxPopCurrent_v2(void **context)
{
	*context = &self;
	if (!current)
		return INVALID_CONTEXT;
	current--;
	return OK;
}

int state(void)
{
	return !current ? INVALID_CONTEXT : self.sticky;
}

/* ---- streams ---- */

static int execute(const Op *);

/* Executes what `stream` was given; all: what all were given. */
void drain(void *stream, int all)
{
	pthread_mutex_lock(&queue.lock);
	for (Op **at = &queue.first, *op; (op = *at);) {
		if (!all && op->stream != stream) {
			at = &op->next;
			continue;
		}
		*at = op->next;
		if (!*at)
			queue.last = at;
		queue.n--;
		int rc = self.sticky ? OK : execute(op);
		if (rc != OK)
			self.sticky = rc;
		free(op->arg);
		free(op->data);
		free(op);
	}
	pthread_mutex_unlock(&queue.lock);
}

Op *capture_op;
void *captured_stream;

/* At once on the default stream, else when somebody waits. The queue owns what the operation points
 * to. */
int give(Op op)
{
	if (!op.stream) {
		drain(NULL, 1);
		int rc = execute(&op);
		free(op.arg);
		free(op.data);
		return rc;
	}
	Op *copy = malloc(sizeof *copy);
	if (!copy)
		return OUT_OF_MEMORY;
	*copy = op;
	copy->next = NULL;
	if (op.stream == captured_stream) {
		if (capture_op)
			return INVALID_VALUE;
		capture_op = copy;
		return OK;
	}
	pthread_mutex_lock(&queue.lock);
	*queue.last = copy;
	queue.last = &copy->next;
	queue.n++;
	pthread_mutex_unlock(&queue.lock);
	return OK;
}

EXPORT int standin_pending(const void *stream);
int standin_pending(const void *stream)
{
	int n = 0;
	pthread_mutex_lock(&queue.lock);
	for (const Op *op = queue.first; op; op = op->next)
		n += op->stream == stream;
	pthread_mutex_unlock(&queue.lock);
	return n;
}

EXPORT int cuStreamSynchronize(void *stream)
{
	int rc = state();
	if (rc == OK)
		drain(stream, !stream);
	return state();
}

EXPORT int cuEventCreate(Event **out, unsigned flags)
{
	int rc = flags != 2 ? INVALID_VALUE : state();
	*out = rc == OK ? calloc(1, sizeof **out) : NULL;
	__atomic_fetch_add(&self.events, rc == OK, __ATOMIC_RELAXED);
	return rc;
}

EXPORT int cuEventDestroy_v2(Event *e)
{
	if (e->wanted != e->done)
		drain(e->stream, 0);
	free(e);
	__atomic_fetch_sub(&self.events, 1, __ATOMIC_RELAXED);
	return state();
}

EXPORT int cuEventRecord(Event *e, void *stream)
{
	int rc = state();
	if (rc != OK)
		return rc;
	e->stream = stream;
	e->wanted = __atomic_add_fetch(&queue.marks, 1, __ATOMIC_RELAXED);
	return give((Op){
		.kind = MARK, .stream = stream, .to = (uintptr_t)e, .value = (int64_t)e->wanted});
}

EXPORT int cuEventQuery(Event *e)
{
	pthread_mutex_lock(&queue.lock);
	int rc = state() != OK ? state() : e->wanted == e->done ? OK : NOT_READY;
	pthread_mutex_unlock(&queue.lock);
	return rc;
}

EXPORT int cuEventSynchronize(Event *e)
{
	if (e->wanted != e->done)
		drain(e->stream, 0);
	return state();
}

/* ---- memory ---- */

EXPORT int cuMemAllocAsync(Address *out, size_t bytes, void *stream)
{
	(void)stream;
	int rc = state();
	pthread_mutex_lock(&self.lock);
	if (rc == OK && !bytes)
		rc = INVALID_VALUE;
	if (rc == OK && (self.n == MOST || self.used + bytes > number("STANDIN_MEMORY", SPACE)))
		rc = OUT_OF_MEMORY;
	if (rc == OK) {
		uint64_t at = GAP;
		uint32_t k = 0;
		for (; k < self.n && self.block[k].at < at + bytes + GAP; k++)
			at = (self.block[k].at + self.block[k].bytes + GAP + 255) / 256 * 256;
		memmove(self.block + k + 1, self.block + k, (self.n++ - k) * sizeof(Block));
		self.block[k] = (Block){at, bytes};
		self.used += bytes;
		memset(self.real + at, 0xab, bytes);
		*out = (Address)(uintptr_t)(self.window + at);
	}
	pthread_mutex_unlock(&self.lock);
	return rc;
}

/* A pool of a program's own. */
typedef struct {
	int kind, handles, place, id;
	void *security;
	size_t most;
	unsigned char reserved[56];
} PoolProps;

EXPORT int cuMemPoolCreate(void **out, const PoolProps *p)
{
	if (p->kind != 1 || p->handles || p->place != 1 || p->id < 0 || p->security || p->most ||
	    p->reserved[0])
		return INVALID_VALUE;
	*out = malloc(1);
	self.events++;
	return state();
}

EXPORT int cuMemPoolDestroy(void *pool)
{
	free(pool);
	self.events--;
	return OK;
}

EXPORT int cuMemPoolSetAttribute(void *pool, int which, const uint64_t *value)
{
	return pool && which == 4 && *value == UINT64_MAX ? state() : INVALID_VALUE;
}

EXPORT int cuMemAllocFromPoolAsync(Address *out, size_t bytes, void *pool, void *stream)
{
	return pool ? cuMemAllocAsync(out, bytes, stream) : INVALID_VALUE;
}

static int release(Address p)
{
	int rc = OK;
	uint32_t k = 0;
	pthread_mutex_lock(&self.lock);
	while (k < self.n && (Address)(uintptr_t)(self.window + self.block[k].at) != p)
		k++;
	if (k == self.n)
		rc = INVALID_VALUE;
	else {
		memset(self.real + self.block[k].at, 0xcd, self.block[k].bytes);
		self.used -= self.block[k].bytes;
		memmove(self.block + k, self.block + k + 1, (--self.n - k) * sizeof(Block));
	}
	pthread_mutex_unlock(&self.lock);
	return rc;
}

EXPORT int cuMemFreeAsync(Address p, void *stream)
{
	int rc = state();
	return rc != OK ? rc : give((Op){.kind = FREE, .stream = stream, .to = p});
}

EXPORT int cuMemAlloc_v2(Address *out, size_t bytes)
{
	return cuMemAllocAsync(out, bytes, NULL);
}

/* Waits for everything. */
EXPORT int cuMemFree_v2(Address p)
{
	return cuMemFreeAsync(p, NULL);
}

EXPORT int cuMemGetInfo_v2(size_t *left, size_t *all)
{
	*all = number("STANDIN_MEMORY", SPACE);
	*left = *all - self.used;
	return state();
}

static int is_device(Address p)
{
	return p >= (Address)(uintptr_t)self.window && p < (Address)(uintptr_t)self.window + SPACE;
}

/* The real address of bytes within one block; NULL: an error. */
char *real_of(Address p, uint64_t bytes)
{
	char *found = NULL;
	pthread_mutex_lock(&self.lock);
	const uint64_t at = p - (Address)(uintptr_t)self.window;
	for (uint32_t k = 0; is_device(p) && k < self.n && !found; k++)
		if (at >= self.block[k].at && at + bytes <= self.block[k].at + self.block[k].bytes)
			found = self.real + at;
	pthread_mutex_unlock(&self.lock);
	return found;
}

/* Memory of cuMemHostAlloc. */
typedef struct Pinned {
	char *at;
	size_t bytes;
	struct Pinned *next;
} Pinned;
static Pinned *pinned;

EXPORT int cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
	Pinned *p = malloc(sizeof *p);
	if (flags || !p || state() != OK)
		return INVALID_VALUE;
	*out = p->at = calloc(1, bytes);
	p->bytes = bytes;
	pthread_mutex_lock(&self.lock);
	p->next = pinned;
	pinned = p;
	pthread_mutex_unlock(&self.lock);
	__atomic_fetch_add(&self.events, 1, __ATOMIC_RELAXED);
	return OK;
}

EXPORT int cuMemFreeHost(void *at)
{
	int rc = INVALID_VALUE;
	pthread_mutex_lock(&self.lock);
	for (Pinned **p = &pinned, *x; (x = *p) && rc != OK;)
		if (x->at == at) {
			*p = x->next;
			free(x->at);
			free(x);
			rc = OK;
		} else
			p = &x->next;
	pthread_mutex_unlock(&self.lock);
	__atomic_fetch_sub(&self.events, rc == OK, __ATOMIC_RELAXED);
	return rc;
}

static int is_pinned(const void *p)
{
	int found = 0;
	pthread_mutex_lock(&self.lock);
	for (const Pinned *x = pinned; x; x = x->next)
		found = found || ((const char *)p >= x->at && (const char *)p < x->at + x->bytes);
	pthread_mutex_unlock(&self.lock);
	return found;
}

/* Memory of either side. */
static char *place(uint64_t p, uint64_t bytes)
{
	return is_device(p) ? real_of(p, bytes) : (char *)(uintptr_t)p;
}

/* Memory of the host that is not pinned is read at once; a copy to it is complete at the return. */
EXPORT int cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, void *stream)
{
	int rc = state();
	if (rc != OK)
		return rc;
	if (!real_of(to, bytes) || is_device((Address)(uintptr_t)from))
		return INVALID_VALUE;
	Op op = {.kind = COPY, .stream = stream, .to = to, .from = (uintptr_t)from, .bytes = bytes};
	if (stream && !is_pinned(from)) {
		if (!(op.data = malloc(bytes)))
			return OUT_OF_MEMORY;
		op.from = (uintptr_t)memcpy(op.data, from, bytes);
	}
	return give(op);
}

EXPORT int cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, void *stream)
{
	int rc = state();
	if (rc != OK)
		return rc;
	if (!real_of(from, bytes) || is_device((Address)(uintptr_t)to))
		return INVALID_VALUE;
	rc = give((Op){
		.kind = COPY, .stream = stream, .to = (uintptr_t)to, .from = from, .bytes = bytes});
	if (rc == OK && stream && !is_pinned(to))
		drain(stream, 0);
	return rc == OK ? state() : rc;
}

EXPORT int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void *stream)
{
	int rc = state();
	if (rc != OK)
		return rc;
	if (!real_of(to, bytes) || !real_of(from, bytes))
		return INVALID_VALUE;
	return give((Op){.kind = COPY, .stream = stream, .to = to, .from = from, .bytes = bytes});
}

EXPORT int cuMemsetD8Async(Address to, unsigned char with, size_t bytes, void *stream)
{
	int rc = state();
	if (rc != OK)
		return rc;
	return real_of(to, bytes) ? give((Op){.kind = FILL,
					      .stream = stream,
					      .to = to,
					      .value = with,
					      .bytes = bytes})
				  : INVALID_VALUE;
}

/* ---- images ---- */

/* The bytes of an ELF file, whose section headers lie at its end. */
static uint64_t elf_bytes(const Elf64_Ehdr *e)
{
	return e->e_shoff + (uint64_t)e->e_shnum * e->e_shentsize;
}

static int open_object(Module *m, const void *image)
{
	char path[64];
	const uint64_t bytes = elf_bytes(image);
	int fd = memfd_create("image", MFD_CLOEXEC);
	if (fd < 0 || write(fd, image, bytes) != (ssize_t)bytes)
		return OUT_OF_MEMORY;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	m->so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!m->so)
		fprintf(stderr, "%s\n", dlerror());
	close(fd);
	return m->so ? OK : INVALID_IMAGE;
}

EXPORT int cuModuleLoadDataEx(void **out, const void *image, unsigned n, int *option, void **value)
{
	(void)n, (void)option, (void)value;
	const Elf64_Ehdr *e = image;
	int rc = state();
	if (rc != OK)
		return rc;
	Module *m = calloc(1, sizeof *m);
	if (!m)
		return OUT_OF_MEMORY;
	m->image = image;
	if (memcmp(image, ELFMAG, SELFMAG)) {
		m->bytes = strlen(image);
		rc = strstr(image, ".version") && strstr(image, ".target") ? OK : INVALID_IMAGE;
	} else if (e->e_machine == CUDA_MACHINE)
		m->bytes = elf_bytes(e);
	else
		rc = open_object(m, image);
	pthread_mutex_lock(&self.lock);
	self.modules += rc == OK;
	pthread_mutex_unlock(&self.lock);
	if (rc != OK)
		free(m);
	else
		*out = m;
	return rc;
}

EXPORT int cuModuleUnload(void *module)
{
	Module *m = module;
	int rc = state();
	if (m->so)
		dlclose(m->so);
	free(m);
	pthread_mutex_lock(&self.lock);
	self.modules--;
	pthread_mutex_unlock(&self.lock);
	return rc;
}

EXPORT int cuModuleGetFunction(void **out, void *module, const char *name)
{
	static char unknown; /* of a real GPU */
	char symbol[512];
	const Module *m = module;
	if (!m->so) {
		*out = &unknown;
		return memmem(m->image, m->bytes, name, strlen(name)) ? OK : NOT_FOUND;
	}
	snprintf(symbol, sizeof symbol, "%s_run", name);
	*out = dlsym(m->so, symbol);
	return *out ? state() : NOT_FOUND;
}

/* All arguments have 8 bytes; those that are addresses of the device become real ones. */
static int launch(const Op *op)
{
	int64_t arg[ARGUMENTS];
	void (*run)(const int64_t *, int64_t);
	const uint64_t fails = number("STANDIN_FAIL", 0);
	if (__atomic_add_fetch(&self.launches, 1, __ATOMIC_RELAXED) == fails)
		return self.sticky = LAUNCH_FAILED;
	for (int64_t k = 0; k < op->value; k++)
		arg[k] = is_device((Address)op->arg[k])
				 ? (int64_t)(uintptr_t)(self.real +
							((Address)op->arg[k] -
							 (Address)(uintptr_t)self.window))
				 : op->arg[k];
	memcpy(&run, &op->to, sizeof run);
	run(arg, (int64_t)op->bytes);
	return OK;
}

static int execute(const Op *op)
{
	char *to = op->kind == COPY || op->kind == FILL ? place(op->to, op->bytes) : NULL;
	const char *from = op->kind == COPY ? place(op->from, op->bytes) : to;
	if ((op->kind == COPY || op->kind == FILL) && (!to || !from))
		return ILLEGAL_ADDRESS;
	switch (op->kind) {
	case COPY: memmove(to, from, op->bytes); return OK;
	case FILL: memset(to, (int)op->value, op->bytes); return OK;
	case FREE: return release(op->to);
	case LAUNCH: return launch(op);
	case CALL: return ((int (*)(int64_t *))(uintptr_t)op->from)(op->arg);
	default: ((Event *)(uintptr_t)op->to)->done = (uint64_t)op->value; return OK;
	}
}

int launchable(void *function)
{
	Dl_info info;
	return dladdr(function, &info) && strstr(info.dli_fname, "/fd/");
}

EXPORT int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
			  unsigned by, unsigned bz, unsigned shared, void *stream, void **args,
			  void **extra)
{
	int rc = state();
	if (rc != OK)
		return rc;
	if (!gx || gy != 1 || gz != 1 || !bx || bx > 1024 || by != 1 || bz != 1 || shared || args ||
	    extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4])
		return INVALID_VALUE;
	if (!launchable(function))
		return NOT_SUPPORTED;
	const size_t bytes = *(const size_t *)extra[3], n = bytes / 8;
	if (bytes % 8 || n > ARGUMENTS)
		return INVALID_VALUE;
	Op op = {.kind = LAUNCH,
		 .stream = stream,
		 .to = (uintptr_t)function,
		 .bytes = gx,
		 .value = (int64_t)n,
		 .arg = malloc(bytes + 1)};
	if (!op.arg)
		return OUT_OF_MEMORY;
	memcpy(op.arg, extra[1], bytes);
	self.stream = stream;
	return give(op);
}

/* ---- errors ---- */

EXPORT int cuGetErrorName(int rc, const char **name)
{
	static const struct {
		int rc;
		const char *name;
	} names[] = {{INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
		     {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
		     {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
		     {NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
		     {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
		     {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
		     {NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
		     {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
		     {LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
		     {NOT_READY, "CUDA_ERROR_NOT_READY"},
		     {NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"}};
	*name = NULL;
	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		if (names[k].rc == rc)
			*name = names[k].name;
	return *name ? OK : INVALID_VALUE;
}

EXPORT int cuGetErrorString(int rc, const char **text)
{
	*text = rc == OUT_OF_MEMORY ? "out of memory" : "of the stand-in";
	return OK;
}
