/* Instances: the weights, embedded or mapped, which clones share, and the state. */
#include "instance_priv.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t weft_checksum(const void *data, uint64_t bytes)
{
	uint64_t h[4];
	weft_checksum_begin(h, bytes);
	weft_checksum_add(h, data, bytes);
	return weft_checksum_end(h);
}

static int check_header(const WeftModel *m, const WeftWeightHeader *h, uint64_t size,
			const char *path, WeftStatus *status)
{
	if (size < WEFT_WEIGHT_HEADER || memcmp(h->magic, WEFT_WEIGHT_MAGIC, sizeof h->magic))
		return weft_fail(status, WEFT_ERR_FILE, "%s: not a file of weights", path);
	if (!m->weights_hash || strncmp(h->hash, m->weights_hash, sizeof h->hash) ||
	    h->bytes != m->weights_bytes)
		return weft_fail(status, WEFT_ERR_FILE,
				 "%s: weights of another model, or arranged for another target",
				 path);
	if (size - WEFT_WEIGHT_HEADER < h->bytes)
		return weft_fail(status, WEFT_ERR_FILE, "%s: truncated", path);
	return WEFT_OK;
}

static int map_weights(const WeftModel *m, Constants *c, const char *path, bool verify,
		       WeftStatus *status)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO would wait for a writer */
	if (fd < 0)
		return weft_fail(status, WEFT_ERR_FILE, "%s: cannot read the weights: %s", path,
				 strerror(errno));
	bool regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	size_t size = regular ? (size_t)st.st_size : 0;
	void *p = size ? mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
	close(fd);
	if (p == MAP_FAILED)
		return weft_fail(status, WEFT_ERR_FILE, "%s: %s", path,
				 !regular ? "not a regular file"
				 : size   ? "cannot map the weights"
					  : "truncated");
	c->map = p;
	c->map_bytes = size;
	c->weights = (const char *)p + WEFT_WEIGHT_HEADER;
	TRY(check_header(m, p, size, path, status));
	const WeftWeightHeader *h = p;
	if (verify && weft_checksum(c->weights, h->bytes) != h->checksum)
		return weft_fail(status, WEFT_ERR_FILE, "%s: damaged: its checksum differs", path);
	return WEFT_OK;
}

/* Sets path to name in the folder of object (NULL: as it is). Returns 0 where there is not enough
 * room. */
static int beside(char path[4096], const char *object, const char *name)
{
	const char *slash = object ? strrchr(object, '/') : NULL;
	int n = snprintf(path, 4096, "%.*s%s", slash ? (int)(slash + 1 - object) : 0,
			 slash ? object : "", name);
	return n >= 0 && n < 4096;
}

/* Maps the weight file beside the object that holds the table; of one that was opened through a
 * symbolic link beside the file that this leads to, or else beside the link. */
static int map_beside(const WeftModel *m, Constants *c, bool verify, WeftStatus *status)
{
	Dl_info info;
	char path[4096];
	const char *name = m->weights_file, *object = NULL;
	if (!name)
		return weft_fail(status, WEFT_ERR_FILE, "the model has no weights; name a file");
	if (name[0] != '/' && dladdr((const void *)m, &info))
		object = info.dli_fname;
	char *real = object ? realpath(object, NULL) : NULL;
	int fits = real && beside(path, real, name) && access(path, F_OK) == 0;
	free(real);
	if (!fits && !beside(path, object, name))
		return weft_fail(status, WEFT_ERR_FILE, "the path of the weights is too long");
	return map_weights(m, c, path, verify, status);
}

static int find_weights(const WeftModel *m, Constants *c, const WeftOpen *o, WeftStatus *status)
{
	const bool verify = o->flags & WEFT_OPEN_VERIFY;
	if (o->weights) {
		if (o->weights_bytes != m->weights_bytes || (uintptr_t)o->weights % 64)
			return weft_fail(status, WEFT_ERR_ARGUMENT,
					 "weights of another size, or not 64-byte aligned");
		c->weights = o->weights;
		return WEFT_OK;
	}
	if (o->weights_path)
		return map_weights(m, c, o->weights_path, verify, status);
	c->weights = m->weights;
	return m->weights || m->weights_bytes == 0 ? WEFT_OK : map_beside(m, c, verify, status);
}

void constants_release(Constants *c)
{
	if (!c || atomic_fetch_sub(&c->instances, 1) != 1)
		return;
#ifdef WEFT_DEVICES
	if (c->there)
		c->driver->free(c->driver->self, c->there, NULL);
#endif
	if (c->map)
		munmap(c->map, c->map_bytes);
	free(c->built);
	free(c);
}

void *section_alloc(uint64_t bytes)
{
	enum { HUGE_PAGE = 2 << 20 };
	const size_t align = bytes < 4 * HUGE_PAGE ? 64 : HUGE_PAGE;
	if (bytes > SIZE_MAX - HUGE_PAGE)
		return NULL;
	const size_t n = ((size_t)bytes + align - 1) / align * align;
	void *p = aligned_alloc(align, n);
	if (p && align == HUGE_PAGE)
		madvise(p, n, MADV_HUGEPAGE); /* an optimisation only */
	return p;
}

void state_begin(const WeftInstance *in, char *state, const Constants *c)
{
	memory_fill(in, state, 0, in->model->state_bytes);
	for (const WeftTensorInfo *s = in->model->state, *end = s + in->model->nstate; s < end; s++)
		if (s->init != WEFT_ZEROS)
			memory_copy(in, state + s->offset, (const char *)c->weights + s->init,
				    s->bytes, WEFT_TO_DEVICE);
}

/* Returns an instance without weights, its state's contents unknown, on that device, if the model
 * is for devices. It closes like any other; NULL if there is no memory. */
static WeftInstance *instance_new(const WeftModel *m, __attribute__((unused)) int32_t ordinal)
{
	WeftInstance *in = calloc(1, sizeof *in);
	if (!in || !(in->calls = calls_new()))
		return free(in), NULL;
	in->model = m;
#ifdef WEFT_DEVICES
	if (weft_device_open(m, ordinal, &in->driver, NULL) != WEFT_OK)
		return instance_free(in), NULL;
#endif
	in->ncpu = threads_ncpu();
#ifdef WEFT_DEVICES
	flights_open(in);
	graphs_open(in);
#endif
	in->state.set[0].what = m->state_bytes ? memory_alloc(in, m->state_bytes) : NULL;
	if (current_now(&in->state) || !m->state_bytes)
		return in;
#ifdef WEFT_DEVICES
	memory_wait(in, WEFT_OK, NULL); /* what the driver says is not for the next call */
	flights_close(in);
	graphs_close(in);
	weft_device_close(in->driver);
#endif
	instance_free(in);
	return NULL;
}

static int fill(WeftInstance *in, const WeftOpen *o, WeftStatus *status)
{
	Constants *c = calloc(1, sizeof *c);
	if (!c)
		return weft_fail(status, WEFT_ERR_MEMORY, "no memory for an instance");
	in->weights.set[0].what = c;
	c->instances = 1;
	TRY(find_weights(in->model, c, o, status));
#ifdef WEFT_DEVICES
	TRY(constants_load(in, c, status));
#endif
	if (current_now(&in->state))
		state_begin(in, current_now(&in->state), c);
	return memory_wait(in, WEFT_OK, status);
}

int weft_rt_open(const WeftModel *m, const WeftOpen *given, WeftInstance **out, WeftStatus *status)
{
	char missing[32];
	WeftOpen o;
	status_clear(status);
	if (!m || !out)
		return weft_fail(status, WEFT_ERR_ARGUMENT,
				 "open: no model or no place for the result");
	*out = NULL;
	if (!take_struct(&o, sizeof o, given, given ? given->size : 0))
		return weft_fail(status, WEFT_ERR_ABI, "open: WeftOpen.size is not set");
	if (weft_cpu_lacks(m->manifest->features, missing))
		return weft_fail(status, WEFT_ERR_CPU,
				 "%s was compiled for %s, but this processor has no %s; compile it "
				 "with a lower --target",
				 m->manifest->name, m->manifest->target, missing);
#ifdef WEFT_DEVICES
	const WeftDriver *driver;
	TRY(weft_device_open(m, o.device.id, &driver, status)); /* says why not */
#endif
	WeftInstance *in = instance_new(m, o.device.id);
#ifdef WEFT_DEVICES
	weft_device_close(driver);
#endif
	if (!in)
		return weft_fail(status, WEFT_ERR_MEMORY, "no memory for an instance");
	int code = fill(in, &o, status);
	if (code != WEFT_OK)
		weft_rt_close(in);
	else
		*out = in;
	return code;
}

void weft_rt_close(WeftInstance *in)
{
	if (!in)
		return;
#ifdef WEFT_DEVICES
	flights_close(in);
	graphs_close(in);
#endif
	constants_release(current_now(&in->weights));
	free(in->spare);
	memory_free(in, current_now(&in->state));
#ifdef WEFT_DEVICES
	weft_device_close(in->driver);
#endif
	instance_free(in);
}

int weft_rt_clone(WeftInstance *in, WeftInstance **out, WeftStatus *status)
{
	status_clear(status);
	if (!in || !out)
		return weft_fail(status, WEFT_ERR_ARGUMENT,
				 "clone: no instance or no place for the result");
	*out = NULL;
	TRY(instance_enter(in, STATE_READ, status));
	WeftInstance *copy = instance_new(in->model, ordinal_of(in));
	const uint32_t w = current_begin(&in->weights), s = current_begin(&in->state);
	if (copy) {
		Constants *c = current_at(&in->weights, w);
		atomic_fetch_add(&c->instances, 1);
		copy->weights.set[0].what = c;
		if (current_at(&in->state, s))
			memory_copy(in, current_now(&copy->state), current_at(&in->state, s),
				    in->model->state_bytes, WEFT_ON_DEVICE);
	}
#ifdef WEFT_DEVICES
	const int waited = copy ? memory_wait(copy, WEFT_OK, status) : WEFT_OK;
#endif
	current_end(in, &in->state, s);
	current_end(in, &in->weights, w);
	instance_leave(in, STATE_READ);
#ifdef WEFT_DEVICES
	if (waited != WEFT_OK)
		return weft_rt_close(copy), waited;
#endif
	*out = copy;
	return copy ? WEFT_OK : weft_fail(status, WEFT_ERR_MEMORY, "no memory for an instance");
}

void current_end(WeftInstance *in, Current *c, uint32_t k)
{
	if (atomic_fetch_sub_explicit(&c->set[k].balance, 1, memory_order_acq_rel) != 1)
		return;
	atomic_load(&c->drop)(in, current_at(c, k));
	atomic_store_explicit(&c->set[k].what, NULL, memory_order_release);
}

#ifdef WEFT_DEVICES
int instance_enter(WeftInstance *in, StateUse as, WeftStatus *status)
{
	if (instance_try(in, as, NULL) == WEFT_OK)
		return WEFT_OK;
	flights_land(in);
	return instance_try(in, as, status);
}

int instance_try(WeftInstance *in, StateUse as, WeftStatus *status)
#else
int instance_enter(WeftInstance *in, StateUse as, WeftStatus *status)
#endif
{
	_Atomic int32_t *const now = &in->calls->users;
	int32_t users = atomic_load_explicit(now, memory_order_relaxed);
	do {
		for (; as == STATE_READ && users == STATE_CHANGE;
		     users = atomic_load_explicit(now, memory_order_relaxed))
			sched_yield();
		if (as == STATE_READ ? users < 0 : users != 0)
			return weft_fail(status, WEFT_ERR_BUSY, "another call uses the instance");
	} while (!atomic_compare_exchange_weak_explicit(
		now, &users, users + (int32_t)as, memory_order_acquire, memory_order_relaxed));
	return state_whole(in, as, status);
}
