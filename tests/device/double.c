/* A device that is none, to be linked with a runtime that is compiled with WEFT_DEVICES: memory
 * with addresses of its own, which fault when somebody dereferences them, and kernels of this
 * processor, which get the real addresses. What the runtime must not do with memory of a device
 * ends the process, or fails the call. Results of copies to the host appear when they were waited
 * for. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "device.h"
#include "region_priv.h"

#define EXPORT __attribute__((visibility("default")))

enum { GAP = 4096, MOST = 1 << 16 };
#define SPACE ((uint64_t)1 << 36)

typedef struct {
	uint64_t at, bytes; /* offset */
} Block;

/* A copy to the host that nobody has waited for. */
typedef struct Pending {
	void *to, *data;
	uint64_t bytes;
	struct Pending *next;
} Pending;

static struct {
	pthread_mutex_t lock;
	char *real, *window; /* SPACE bytes each */
	Block *block;        /* by offset */
	uint32_t n;
	int64_t allocs_left; /* until one fails; -1: none does */
	Pending *pending, **last;
	WeftStatus status; /* the first error that nobody was told */
	uint64_t launches, copies;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER, .allocs_left = -1};

EXPORT const int32_t weft_device_type = 12;

static void wrong(const char *what, const void *p)
{
	if (self.status.code == WEFT_OK)
		weft_fail(&self.status, WEFT_ERR_ARGUMENT, "double: %s %p", what, p);
}

static bool begin(void)
{
	if (self.real)
		return true;
	void *real = mmap(NULL, SPACE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	void *window =
		mmap(NULL, SPACE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	self.block = calloc(MOST, sizeof *self.block);
	self.last = &self.pending;
	if (real == MAP_FAILED || window == MAP_FAILED || !self.block)
		return false;
	self.real = real;
	self.window = window;
	return true;
}

/* The real address of bytes within one block; NULL after an error. */
static char *real_of(const void *p, uint64_t bytes)
{
	const uint64_t at = (uint64_t)((const char *)p - self.window);
	if ((const char *)p < self.window || at >= SPACE)
		return wrong("no memory of the device:", p), NULL;
	for (uint32_t k = 0; k < self.n; k++)
		if (at >= self.block[k].at && at + bytes <= self.block[k].at + self.block[k].bytes)
			return self.real + at;
	return wrong("no allocated memory:", p), NULL;
}

static void *take(void *me, uint64_t bytes, void *stream)
{
	(void)me, (void)stream;
	void *p = NULL;
	pthread_mutex_lock(&self.lock);
	if (begin() && self.n < MOST && bytes && self.allocs_left != 0) {
		uint64_t at = GAP;
		uint32_t k = 0;
		for (; k < self.n && self.block[k].at < at + bytes + GAP; k++)
			at = (self.block[k].at + self.block[k].bytes + GAP + 63) / 64 * 64;
		memmove(self.block + k + 1, self.block + k, (self.n++ - k) * sizeof(Block));
		self.block[k] = (Block){at, bytes};
		memset(self.real + at, 0xab, bytes);
		p = self.window + at;
	}
	self.allocs_left -= self.allocs_left > 0;
	pthread_mutex_unlock(&self.lock);
	return p;
}

static void give(void *me, void *p, void *stream)
{
	(void)me, (void)stream;
	pthread_mutex_lock(&self.lock);
	uint32_t k = 0;
	while (k < self.n && self.window + self.block[k].at != p)
		k++;
	if (p && k == self.n)
		wrong("free of what is not allocated:", p);
	else if (p) {
		memset(self.real + self.block[k].at, 0xcd, self.block[k].bytes);
		memmove(self.block + k, self.block + k + 1, (--self.n - k) * sizeof(Block));
	}
	pthread_mutex_unlock(&self.lock);
}

/* The copy is of what is there now. */
static void later(void *to, const char *from, uint64_t bytes)
{
	Pending *p = malloc(sizeof *p);
	void *data = malloc(bytes);
	if (!p || !data)
		abort();
	*p = (Pending){to, memcpy(data, from, bytes), bytes, NULL};
	*self.last = p;
	self.last = &p->next;
}

static bool is_device(const void *p)
{
	return (const char *)p >= self.window && (const char *)p < self.window + SPACE;
}

static void copy(void *me, void *to, const void *from, uint64_t bytes, WeftWay way, void *stream)
{
	(void)me, (void)stream;
	pthread_mutex_lock(&self.lock);
	self.copies++;
	const char *f = way == WEFT_TO_DEVICE ? from : real_of(from, bytes);
	char *t = way == WEFT_TO_HOST ? to : real_of(to, bytes);
	if ((way == WEFT_TO_DEVICE && is_device(from)) || (way == WEFT_TO_HOST && is_device(to)))
		wrong("a copy that goes another way than it says:", to);
	else if (f && t && way == WEFT_TO_HOST)
		later(to, f, bytes);
	else if (f && t)
		memcpy(t, f, bytes);
	pthread_mutex_unlock(&self.lock);
}

static void fill(void *me, void *to, uint8_t with, uint64_t bytes, void *stream)
{
	(void)me, (void)stream;
	pthread_mutex_lock(&self.lock);
	char *t = real_of(to, bytes);
	if (t)
		memset(t, with, bytes);
	pthread_mutex_unlock(&self.lock);
}

static int wait_for_all(void *me, void *stream, WeftStatus *status)
{
	(void)me, (void)stream;
	pthread_mutex_lock(&self.lock);
	for (Pending *p = self.pending, *next; p; p = next) {
		next = p->next;
		memcpy(p->to, p->data, p->bytes);
		free(p->data);
		free(p);
	}
	self.pending = NULL;
	self.last = &self.pending;
	const int code = self.status.code;
	if (code != WEFT_OK && status)
		*status = self.status;
	self.status.code = WEFT_OK;
	pthread_mutex_unlock(&self.lock);
	return code;
}

static int read_now(void *me, void *to, const void *from, uint64_t bytes, void *stream,
		    WeftStatus *status)
{
	copy(me, to, from, bytes, WEFT_TO_HOST, stream);
	return wait_for_all(me, stream, status);
}

/* Buffers of no bytes may stand anywhere. The kernels are compiled for this processor, whose tasks
 * each call an operator for a part of its results: operators, too, get the real addresses, and not
 * copies of whole tensors, as on a GPU (tests/device/cuda.py). */
static void launch(void *me, WeftDeviceLaunch *l, void *stream)
{
	(void)me, (void)stream;
	void *buf[l->nbuf + 1];
	for (uint32_t k = 0; k < l->nbuf; k++) {
		if (l->buf[k] && !is_device(l->buf[k]))
			return wrong("a launch with memory of the host:", l->buf[k]);
		buf[k] = l->buf[k] ? self.real + ((char *)l->buf[k] - self.window) : NULL;
	}
	const WeftFrame f = {buf, l->p, l->failure, &l->told, l->region};
	DeviceCall *device = l->region->device;
	self.launches++;
	l->region->device = NULL;
	l->failed = l->kernel(&f, 0, l->ntasks);
	l->region->device = device;
}

EXPORT const WeftDriver weft_double = {.size = sizeof weft_double,
				       .type = 12,
				       .name = "double",
				       .alloc = take,
				       .free = give,
				       .copy = copy,
				       .fill = fill,
				       .read = read_now,
				       .launch = launch,
				       .wait = wait_for_all};

void weft_device_close(const WeftDriver *v)
{
	(void)v;
}

int32_t weft_device_ordinal(const WeftDriver *v)
{
	return (void)v, 0;
}

int weft_device_open(const WeftModel *m, int32_t ordinal, const WeftDriver **out,
		     WeftStatus *status)
{
	(void)m, (void)ordinal, (void)status;
	*out = begin() ? &weft_double : NULL;
	return *out ? WEFT_OK : weft_fail(status, WEFT_ERR_MEMORY, "double: no address space");
}

/* What is allocated; launches so far; after how many allocations one fails (-1: none). */
EXPORT uint32_t weft_double_live(void);
EXPORT uint64_t weft_double_launches(void);
EXPORT void weft_double_fail(int64_t allocs);
uint32_t weft_double_live(void)
{
	return self.n;
}

uint64_t weft_double_launches(void)
{
	return self.launches;
}

void weft_double_fail(int64_t allocs)
{
	self.allocs_left = allocs;
}
