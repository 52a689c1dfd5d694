/* Calls on a device, by its driver. Empty in runtimes for processors (device.h). */
#include "instance_priv.h"

#ifdef WEFT_DEVICES
#include <stdio.h>
#include <stdlib.h>

/* Says, after an allocation that failed, what the driver says, or that there is no memory. */
static int no_memory(const WeftDriver *v, void *stream, uint64_t bytes, const char *what,
		     const char *name, WeftStatus *status)
{
	char left[48] = "";
	int code = v->wait(v->self, stream, status);
	if (code != WEFT_OK)
		return code;
	if (v->left)
		snprintf(left, sizeof left, "; %llu bytes are free",
			 (unsigned long long)v->left(v->self));
	return weft_fail(status, WEFT_ERR_MEMORY, "no memory on %s for the %llu bytes of %s%s%s",
			 v->name, (unsigned long long)bytes, what, name, left);
}

/* ---- instances ---- */

int constants_load(const WeftInstance *in, Constants *c, WeftStatus *status)
{
	const WeftDriver *v = c->driver = in->driver;
	const uint64_t all = in->model->weights_bytes, bytes = v && v->weights ? v->weights : all;
	if (!v || !all)
		return WEFT_OK;
	c->there = v->alloc(v->self, bytes, NULL);
	if (!c->there)
		return no_memory(v, NULL, bytes, "the weights", "", status);
	v->copy(v->self, c->there, c->weights, bytes, WEFT_TO_DEVICE, NULL);
	return memory_wait(in, WEFT_OK, status);
}

/* ---- tensors ---- */

int device_begin(DeviceCall *d, const WeftDriver *driver, const WeftContext *c, Staged *staged,
		 uint64_t work_bytes, void **work, Flight *flight, WeftStatus *status)
{
	const int32_t type = c->device.type ? c->device.type : WEFT_CPU;
	*d = (DeviceCall){.driver = driver,
			  .stream = c->stream,
			  .aware = type == driver->type,
			  .staged = staged};
	d->flight = c->profile ? NULL : flight;
	if (!d->aware && type != WEFT_CPU)
		return weft_fail(status, WEFT_ERR_ARGUMENT,
				 "run: the model is for %s, not for a device of type %d",
				 driver->name, (int)type);
	if (d->aware && c->device.id != weft_device_ordinal(driver))
		return weft_fail(
			status, WEFT_ERR_ARGUMENT,
			"run: the instance is open on device %d, and the context names device %d",
			(int)weft_device_ordinal(driver), (int)c->device.id);
	const char *no = d->aware && d->stream && driver->refuses
				 ? driver->refuses(driver->self, d->stream)
				 : NULL;
	if (no)
		return weft_fail(status, WEFT_ERR_ARGUMENT, "run: %s", no);
	if (!d->aware) {
		d->stream = NULL;
		*work = d->work = driver->alloc(driver->self, work_bytes, NULL);
	}
	if (!*work)
		return no_memory(driver, NULL, work_bytes, "the workspace", "", status);
	d->record = (char *)*work + (work_bytes - DEVICE_WORK);
	d->record = (char *)d->record + (-(uintptr_t)d->record % 64);
	return WEFT_OK;
}

static int copy_in(const DeviceCall *d, const Staged *s, const WeftTensor *t, WeftStatus *status)
{
	const WeftDriver *v = d->driver;
	const char *from = data_of(t);
	if (tensor_row_major(t)) {
		v->copy(v->self, s->there, from, s->bytes,
			s->on_device ? WEFT_ON_DEVICE : WEFT_TO_DEVICE, d->stream);
		return WEFT_OK;
	}
	char *rows = malloc((size_t)s->bytes);
	if (!rows)
		return weft_fail(status, WEFT_ERR_MEMORY,
				 "no memory for a row-major copy of an input");
	copy_strided(rows, from, t, 0, dtype_bytes(t->dtype));
	v->copy(v->self, s->there, rows, s->bytes, WEFT_TO_DEVICE, d->stream);
	int code = v->wait(v->self, d->stream, status);
	free(rows);
	return code;
}

int device_check(const WeftDriver *v, const char *role, const char *name, const WeftTensor *t,
		 WeftStatus *status)
{
	const int32_t own = weft_device_ordinal(v), its = t->device.id;
	return t->device.type != v->type || its == own
		       ? WEFT_OK
		       : weft_fail(status, WEFT_ERR_INPUT,
				   "%s %s is in the memory of device %d, and the instance is open "
				   "on device %d",
				   role, name, (int)its, (int)own);
}

int device_bind(DeviceCall *d, bool output, const char *name, const WeftTensor *t, void **data,
		WeftStatus *status)
{
	const char *role = output ? "output" : "input";
	const WeftDriver *v = d->driver;
	const bool host = device_is_host(d, t), rows = tensor_row_major(t);
	TRY(device_check(v, role, name, t, status));
	if (!rows && (output || !host))
		return weft_fail(status, WEFT_ERR_INPUT, "%s %s is not row-major", role, name);
	if (!host && ((uintptr_t)t->data + t->byte_offset) % DEVICE_ALIGN == 0)
		return WEFT_OK;
	if (host || !v->ordered)
		d->flight = NULL; /* the tensor, or its copy, must last */
	Staged *s = &d->staged[d->nstaged];
	*s = (Staged){.bytes = tensor_bytes(t), .back = output ? t : NULL, .on_device = !host};
	*data = s->there = v->alloc(v->self, s->bytes, d->stream);
	if (!s->there)
		return no_memory(v, d->stream, s->bytes, output ? "output " : "input ", name,
				 status);
	d->nstaged++;
	return output ? WEFT_OK : copy_in(d, s, t, status);
}

int device_end(DeviceCall *d, int code, WeftStatus *status)
{
	const WeftDriver *v = d->driver;
	WeftStatus told = {0};
	code = code == WEFT_OK ? d->code : code;
	for (uint32_t k = 0; code == WEFT_OK && k < d->nstaged; k++) {
		const Staged *s = &d->staged[k];
		/* `run` may have found fewer */
		const uint64_t have = s->back ? tensor_bytes(s->back) : 0;
		if (have)
			v->copy(v->self, data_of(s->back), s->there,
				have < s->bytes ? have : s->bytes,
				s->on_device ? WEFT_ON_DEVICE : WEFT_TO_HOST, d->stream);
	}
	d->flight = code == WEFT_OK ? d->flight : NULL;
	int waited = d->flight ? WEFT_OK : v->wait(v->self, d->stream, &told);
	for (uint32_t k = 0; k < d->nstaged; k++)
		v->free(v->self, d->staged[k].there, d->stream);
	v->free(v->self, d->work, d->stream);
	if (d->flight)
		waited = flight_depart(d, &told);
	if (code == WEFT_OK && waited != WEFT_OK)
		code = weft_fail(status, waited, "%s", told.message);
	return code;
}

/* ---- what `run` asks for ---- */

/* Looks whether a kernel has recorded a failed check, and waits for that. Returns whether the call
 * has failed. */
static bool look(WeftRegion *r)
{
	DeviceCall *d = r->device;
	WeftRecord record;
	WeftStatus told;
	int64_t failure[WEFT_FAILURE] = {0};
	if (!d->recorded || r->failed)
		return r->failed;
	device_direct(d);
	d->recorded = false;
	if (d->driver->read(d->driver->self, &record, d->record, sizeof record, d->stream, &told) !=
	    WEFT_OK)
		return region_told(r, &told);
	memcpy(failure + 1, record.value, sizeof record.value);
	if (record.id)
		region_record(r, 0, record.id, failure, &told);
	return r->failed;
}

bool device_failed(WeftRegion *r)
{
	return look(r);
}

/* ---- operators of the user ---- */

/* Makes copies on the host of all tensors of the device, and a workspace there; the caller frees
 * them. */
static int copies_of(const DeviceCall *d, const WeftOpCall *c, const WeftTensor *t,
		     WeftTensor *copy, void **work, uint64_t bytes, WeftStatus *status)
{
	const WeftDriver *v = d->driver;
	int code = WEFT_OK;
	for (uint32_t k = 0; k < c->nin + c->nout; k++) {
		copy[k] = t[k];
		if (c->tensor[k].buf < 0)
			continue;
		const uint64_t n = tensor_bytes(&t[k]);
		copy[k].data = section_alloc(n + 64);
		if (!copy[k].data)
			code = weft_fail(status, WEFT_ERR_MEMORY,
					 "no memory for the %llu bytes of a copy",
					 (unsigned long long)n);
		else if (k < c->nin && n)
			v->copy(v->self, copy[k].data, t[k].data, n, WEFT_TO_HOST, d->stream);
	}
	*work = bytes ? section_alloc(bytes) : NULL;
	if (bytes && !*work)
		code = weft_fail(status, WEFT_ERR_MEMORY,
				 "no memory for the %llu bytes of a workspace",
				 (unsigned long long)bytes);
	const int waited = v->wait(v->self, d->stream, code == WEFT_OK ? status : NULL);
	return code == WEFT_OK ? waited : code;
}

static int op_on_host(const DeviceCall *d, const WeftOpCall *c, WeftOpContext *o,
		      const WeftTensor *t, uint64_t bytes, WeftStatus *status)
{
	WeftTensor copy[c->nin + c->nout + 1];
	const WeftDriver *v = d->driver;
	void *work;
	o->device = (WeftDevice){WEFT_CPU, 0};
	o->stream = NULL;
	int code = copies_of(d, c, t, copy, &work, bytes, status);
	code = code == WEFT_OK ? c->fn(o, copy, copy + c->nin, work, bytes, status) : code;
	for (uint32_t k = c->nin; code == WEFT_OK && k < c->nin + c->nout; k++)
		if (tensor_bytes(&t[k]))
			v->copy(v->self, t[k].data, copy[k].data, tensor_bytes(&t[k]),
				WEFT_TO_DEVICE, d->stream);
	const int waited = code == WEFT_OK ? v->wait(v->self, d->stream, status) : WEFT_OK;
	for (uint32_t k = 0; k < c->nin + c->nout; k++)
		if (c->tensor[k].buf >= 0)
			free(copy[k].data);
	free(work);
	return code == WEFT_OK ? waited : code;
}

int device_op(WeftRegion *r, const WeftOpCall *c, WeftOpContext *o, WeftTensor *t, void *work,
	      uint64_t bytes, WeftStatus *status)
{
	DeviceCall *d = r->device;
	const WeftDevice here = {d->driver->type, weft_device_ordinal(d->driver)};
	device_direct(d);
	if (!c->device)
		return op_on_host(d, c, o, t, bytes, status);
	for (uint32_t k = 0; k < c->nin + c->nout; k++)
		if (c->tensor[k].buf >= 0)
			t[k].device = here;
	o->device = here;
	o->stream = d->stream;
	return c->fn(o, t, t + c->nin, work, bytes, status);
}

/* ---- launches ---- */

int device_phase(WeftRegion *r, WeftKernel kernel, void *const *buf, const int64_t *p,
		 uint32_t call, int64_t ntasks)
{
	DeviceCall *d = r->device;
	const uint32_t k = call & ~(uint32_t)(WEFT_JOINED | WEFT_ALONE);
	const WeftLaunch *about = &r->entry->launch[k];
	if (r->failed)
		return !(call & WEFT_JOINED);
	WeftDeviceLaunch l = {.kernel = kernel,
			      .buf = buf,
			      .p = p,
			      .nbuf = about->nbuf,
			      .nparam = about->nparam,
			      .call = k,
			      .ntasks = ntasks,
			      .region = r};
	if (++d->launches == WEFT_LAUNCHES) { /* numbers begin again */
		if (look(r))
			return 1;
		d->launches = 1;
	}
	if (ntasks > 0)
		d->driver->launch(d->driver->self, &l, d->stream);
	if (l.failed)
		region_record(r, k, l.failed, l.failure, &l.told);
	if (r->profile) {
		WeftStatus told;
		if (d->driver->wait(d->driver->self, d->stream, &told) != WEFT_OK)
			region_told(r, &told);
		region_profile(r, k);
	}
	return !(call & WEFT_JOINED) && r->failed;
}

/* Reads any number of bytes; after an error they are zeros, and the call fails. */
static bool fetch(WeftRegion *r, void *to, const void *from, uint64_t bytes)
{
	DeviceCall *d = r->device;
	WeftStatus told;
	device_direct(d);
	if (d->driver->read(d->driver->self, to, from, bytes, d->stream, &told) == WEFT_OK)
		return true;
	memset(to, 0, (size_t)bytes);
	region_told(r, &told);
	return false;
}

int64_t device_read(WeftRegion *r, const void *from, int code, int bits)
{
	int64_t value = 0;
	if (!look(r))
		fetch(r, &value, from, code == WEFT_BOOL ? 1 : (uint64_t)bits / 8);
	return weft_value(&value, code, bits);
}

void device_copy(WeftRegion *r, void *to, const void *from, int64_t bytes)
{
	DeviceCall *d = r->device;
	if (to == from || bytes <= 0 || look(r))
		return;
	if (d->graph)
		d->driver->graph_copy(d->driver->self, d, to, from, (uint64_t)bytes);
	else
		d->driver->copy(d->driver->self, to, from, (uint64_t)bytes, WEFT_ON_DEVICE,
				d->stream);
}

/* Saves state into a record, which lies where `run` has room for it, on the device. */
void device_save(WeftRegion *r, void *record, void *state, const void *values, const void *at,
		 int64_t n, int64_t bytes)
{
	DeviceCall *d = r->device;
	const WeftSaved s = {state, values, at, n, bytes, r->saved};
	WeftStatus told;
	device_direct(d);
	d->flight = NULL; /* if the call fails, this thread puts the state back */
	d->driver->copy(d->driver->self, record, &s, sizeof s, WEFT_TO_DEVICE, d->stream);
	if (d->driver->wait(d->driver->self, d->stream, &told) != WEFT_OK)
		region_told(r, &told);
	r->saved = record;
}

static void put_back(WeftRegion *r, const WeftSaved *s)
{
	const DeviceCall *d = r->device;
	for (int64_t k = 0; k < s->n && s->at; k++) {
		int64_t i;
		if (!fetch(r, &i, s->at + k, sizeof i))
			return;
		d->driver->copy(d->driver->self, s->state + i * s->bytes, s->values + k * s->bytes,
				(uint64_t)s->bytes, WEFT_ON_DEVICE, d->stream);
	}
	if (!s->at && s->n > 0 && s->bytes > 0)
		d->driver->copy(d->driver->self, s->state, s->values, (uint64_t)(s->n * s->bytes),
				WEFT_ON_DEVICE, d->stream);
}

void device_put_back(WeftRegion *r)
{
	graph_end(r->device, r->failed);
	const WeftSaved *at = !r->device->flight && look(r) ? r->saved : NULL;
	r->saved = NULL;
	for (WeftSaved s; at; at = s.before) {
		fetch(r, &s, at, sizeof s);
		put_back(r, &s);
	}
}
#endif
