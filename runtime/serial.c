/* The whole runtime of a model without threads, memory allocation or operating system: compile the
 * emitted folder with -DWEFT_SERIAL, leave out the other files of the runtime, and call the entry's
 * sizes_fn and run_fn with memory of your own (docs/targets.md). Empty otherwise. */
#include "runtime.h"

#ifdef WEFT_SERIAL
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct WeftRegion {
	const WeftEntry *entry;
	WeftStatus *status;
	const WeftSaved *saved;
	WeftTensor *output; /* where sizes that depend on data are told; or NULL */
	const WeftContext *context;
};

int weft_serial_run(const WeftEntry *e, void *const *buf, const int64_t *slot, WeftStatus *status)
{
	return weft_serial_run_with(e, buf, slot, NULL, NULL, status);
}

int weft_serial_run_sized(const WeftEntry *e, void *const *buf, const int64_t *slot,
			  WeftTensor *outputs, WeftStatus *status)
{
	return weft_serial_run_with(e, buf, slot, outputs, NULL, status);
}

int weft_serial_run_with(const WeftEntry *e, void *const *buf, const int64_t *slot,
			 WeftTensor *outputs, const WeftContext *given, WeftStatus *status)
{
	WeftContext context;
	memset(&context, 0, sizeof context);
	if (given)
		memcpy(&context, given,
		       given->size < sizeof context ? given->size : sizeof context);
	WeftRegion r = {e, status, NULL, outputs, &context};
	status->code = WEFT_OK;
	e->run_fn(&r, buf, slot);
	for (const WeftSaved *s = status->code != WEFT_OK ? r.saved : NULL; s; s = s->before)
		for (int64_t k = 0; k < s->n; k++)
			memcpy(s->state + (s->at ? s->at[k] : k) * s->bytes,
			       s->values + k * s->bytes, (size_t)s->bytes);
	return status->code;
}

int weft_phase(WeftRegion *r, WeftKernel kernel, void *const *buf, const int64_t *p, uint32_t call,
	       int64_t ntasks)
{
	int64_t failure[WEFT_FAILURE] = {0}, *x = failure + 1;
	WeftStatus told;
	const WeftFrame f = {buf, p, failure, &told, r};
	int id = ntasks > 0 ? kernel(&f, 0, ntasks) : 0;
	if (id == WEFT_TOLD && r->status->code == WEFT_OK)
		*r->status = told;
	else if (id && r->status->code == WEFT_OK)
		weft_fail(r->status, WEFT_ERR_CHECK, r->entry->message[id], x[0], x[1], x[2], x[3],
			  x[4], x[5], x[6], x[7], x[8], x[9], x[10], x[11], x[12]);
	return r->status->code != WEFT_OK && !(call & WEFT_JOINED);
}

int weft_launches(WeftRegion *r, const WeftLaunches *l, void *const *buf, const int64_t *value,
		  void **b, int64_t *p)
{
	int stop = 0;
	for (const int64_t *w = l->word, *end = w + l->nword; w < end && !stop;)
		w = weft_launch(r, l, w, buf, value, b, p, &stop);
	return stop;
}

void weft_copy(WeftRegion *r, void *to, const void *from, int64_t bytes)
{
	(void)r;
	if (to != from && bytes > 0)
		memcpy(to, from, (size_t)bytes);
}

void weft_save(WeftRegion *r, void *record, void *state, const void *values, const void *at,
	       int64_t n, int64_t bytes)
{
	WeftSaved *s = record;
	*s = (WeftSaved){state, values, at, n, bytes, r->saved};
	r->saved = s;
}

static int64_t elements(uint32_t rank, const int64_t *dim)
{
	int64_t n = 1;
	for (uint32_t d = 0; d < rank; d++)
		n *= dim[d];
	return n;
}

/* Gives output k its extents, as data decides. */
static int found(WeftRegion *r, uint32_t k, const int64_t *extent)
{
	const WeftTensorInfo *info = &r->entry->output[k];
	if (!r->output)
		return weft_region_fail(
			r, "the size of output %s depends on data: call weft_serial_run_sized",
			info->name);
	const int64_t need = elements(info->rank, extent),
		      have = elements(info->rank, r->output[k].shape);
	if (need > have)
		return weft_region_fail(r,
					"output %s has %lld elements, and there is room for %lld",
					info->name, (long long)need, (long long)have);
	memcpy(r->output[k].shape, extent, info->rank * sizeof *extent);
	return 0;
}

int weft_room(WeftRegion *r, uint32_t k, const int64_t *p)
{
	const uint32_t ninput = r->entry->ninput;
	if (!p)
		return 0;
	return k < ninput + r->entry->noutput
		       ? found(r, k - ninput, p)
		       : weft_region_fail(r, "sizes without a bound need an allocator, which this "
					     "runtime has not");
}

WeftOpContext weft_op_enter(WeftRegion *r)
{
	return weft_op_context(r->context);
}

void weft_op_leave(WeftRegion *r, const WeftOpContext *o)
{
	(void)r, (void)o;
}

int64_t weft_read(WeftRegion *r, const void *from, int code, int bits)
{
	(void)r;
	return weft_value(from, code, bits);
}

int weft_fail(WeftStatus *status, int code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(status->message, sizeof status->message, fmt, ap);
	va_end(ap);
	return status->code = code;
}

int weft_region_fail(WeftRegion *r, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(r->status->message, sizeof r->status->message, fmt, ap);
	r->status->code = WEFT_ERR_CHECK;
	va_end(ap);
	return 1;
}
#endif
