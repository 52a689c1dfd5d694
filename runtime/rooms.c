/* Memory whose size `run` finds out: outputs that depend on data, and what has no bound in the
 * workspace. Models without such sizes leave this file out. */
#include "instance_priv.h"

#include <stdlib.h>

enum { ALIGN = 64 };

static void *take(const WeftContext *c, uint64_t bytes)
{
	if (c->alloc)
		return c->alloc(c->alloc_user, bytes, ALIGN);
	return bytes > UINT64_MAX / 2
		       ? NULL
		       : aligned_alloc(ALIGN, (size_t)((bytes + ALIGN - 1) / ALIGN * ALIGN));
}

static void give(const WeftContext *c, void *p, uint64_t bytes)
{
	if (!c->alloc)
		free(p);
	else if (c->free)
		c->free(c->alloc_user, p, bytes);
}

/* Returns the element of WeftRegion.held that belongs to a buffer of `run`. */
static uint64_t *held_of(const WeftRegion *s, uint32_t k)
{
	k -= s->entry->ninput;
	return &s->held[k < s->entry->noutput ? k : k - 3];
}

/* Allocates memory where the model runs: the context's allocator knows memory of a device if the
 * caller gives the device. */
static void *take_there(const WeftRegion *s, uint64_t bytes)
{
#ifdef WEFT_DEVICES
	if (s->device)
		device_direct(s->device);
	if (s->device && !s->device->driver->ordered)
		s->device->flight = NULL; /* the memory is freed by this call */
	if (s->device && (!s->device->aware || !s->context->alloc))
		return s->device->driver->alloc(s->device->driver->self, bytes, s->device->stream);
#endif
	return take(s->context, bytes);
}

static void give_there(const WeftRegion *s, void *p, uint64_t bytes)
{
#ifdef WEFT_DEVICES
	if (s->device && (!s->device->aware || !s->context->alloc)) {
		s->device->driver->free(s->device->driver->self, p, s->device->stream);
		return;
	}
#endif
	give(s->context, p, bytes);
}

static int room(WeftRegion *s, uint32_t k, uint64_t bytes, WeftStatus *told)
{
	s->room[k] = s->room[s->entry->ninput + s->entry->noutput + 1]; /* somewhere */
	if (!bytes)
		return WEFT_OK;
	if (s->context->memory_limit && bytes > s->left)
		return weft_fail(
			told, WEFT_ERR_MEMORY,
			"%llu bytes, as many as data asks for, are more than the call's limit "
			"of %llu leaves",
			(unsigned long long)bytes, (unsigned long long)s->context->memory_limit);
	void *p = take_there(s, bytes);
	if (!p)
		return weft_fail(told, WEFT_ERR_MEMORY,
				 "no memory for %llu bytes, as many as data asks for",
				 (unsigned long long)bytes);
	s->room[k] = p;
	s->left -= bytes;
	*held_of(s, k) = bytes;
	return WEFT_OK;
}

/* Gives output k its shape and its memory. Memory of the caller's has room for as many elements as
 * its shape says. */
static int output(WeftRegion *s, uint32_t k, const int64_t *extent, WeftStatus *told)
{
	const WeftTensorInfo *info = &s->entry->output[k - s->entry->ninput];
	WeftTensor *t = &s->output[k - s->entry->ninput], found = *t;
	uint64_t have = tensor_bytes(t), need;
	for (uint32_t d = 0; t->data && d < info->rank; d++)
		have = t->shape[d] < 0 ? 0 : have;
	found.shape = (int64_t *)(uintptr_t)extent;
	need = tensor_bytes(&found);
	if (t->data && need > have)
		return weft_fail(told, WEFT_ERR_INPUT,
				 "output %s has %llu bytes, and memory for %llu is given",
				 info->name, (unsigned long long)need, (unsigned long long)have);
	memcpy(t->shape, extent, info->rank * sizeof *extent);
	if (!t->data)
		return room(s, k, need, told);
#ifdef WEFT_DEVICES
	if (s->device)
		return WEFT_OK; /* bound before the call */
#endif
	s->room[k] = data_of(t);
	return WEFT_OK;
}

static void give_back(const WeftRegion *s, uint32_t k)
{
	uint64_t *held = held_of(s, k);
	if (*held)
		give_there(s, s->room[k], *held);
	*held = 0;
}

#ifdef WEFT_DEVICES
/* Copies an output of the host, which `run` has allocated on the device, to memory of the host. */
static void bring_home(const WeftRegion *s, uint32_t k, WeftTensor *t)
{
	DeviceCall *d = s->device;
	const uint64_t bytes = *held_of(s, k);
	void *p = take(s->context, bytes);
	d->flight = NULL;
	if (p)
		d->driver->copy(d->driver->self, p, s->room[k], bytes, WEFT_TO_HOST, d->stream);
	else
		d->code = weft_fail(s->status, WEFT_ERR_MEMORY,
				    "no memory for the %llu bytes of an output",
				    (unsigned long long)bytes);
	give_back(s, k);
	t->data = p;
	t->byte_offset = 0;
	t->strides = NULL;
}
#endif

/* Ends the call: outputs are the caller's, if it did not fail; all other memory is given back. */
static void leave(const WeftRegion *s, int code)
{
	uint32_t first = s->entry->ninput, end = first + s->entry->noutput;
	for (uint32_t k = end + 3; k < end + 3 + s->entry->nroom; k++)
		give_back(s, k);
	for (uint32_t k = first; k < end; k++) {
		WeftTensor *t = &s->output[k - first];
#ifdef WEFT_DEVICES
		if (code == WEFT_OK && *held_of(s, k) && device_is_host(s->device, t)) {
			bring_home(s, k, t);
			continue;
		}
#endif
		if (code != WEFT_OK)
			give_back(s, k);
		else if (*held_of(s, k))
			t->data = s->room[k], t->byte_offset = 0, t->strides = NULL;
	}
}

int weft_room(WeftRegion *r, uint32_t k, const int64_t *p)
{
	const WeftEntry *e = r->entry;
	WeftStatus told;
	if (!p) {
		give_back(r, k);
		return 0;
	}
	r->leave = leave;
	int code = k < e->ninput + e->noutput ? output(r, k, p, &told)
					      : room(r, k, (uint64_t)p[0], &told);
	return code == WEFT_OK ? 0 : region_told(r, &told);
}
