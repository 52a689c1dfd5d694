/* What `run` has between kernels: tables of launches, values that it reads, copies, state that is
 * saved. Linkers leave out what a model has not. */
#include "region_priv.h"

enum {
	PART = 1 << 16, /* bytes of a copy that are a task */
	COPIED = 10     /* bytes per ns */
};

int weft_launches(WeftRegion *r, const WeftLaunches *l, void *const *buf, const int64_t *value,
		  void **b, int64_t *p)
{
	int stop = 0;
	for (const int64_t *w = l->word, *end = w + l->nword; w < end && !stop;)
		w = weft_launch(r, l, w, buf, value, b, p, &stop);
	return stop;
}

int64_t weft_read(WeftRegion *r, const void *from, int code, int bits)
{
#ifdef WEFT_DEVICES
	if (r->device)
		return device_read(r, from, code, bits);
#endif
	(void)r;
	return weft_value(from, code, bits);
}

static int copy_parts(const WeftFrame *f, int64_t begin, int64_t end)
{
	const int64_t first = begin * PART, last = end * PART < f->p[0] ? end * PART : f->p[0];
	memcpy((char *)f->buf[0] + first, (const char *)f->buf[1] + first, (size_t)(last - first));
	return 0;
}

void weft_copy(WeftRegion *r, void *to, const void *from, int64_t bytes)
{
	region_copies(r, to);
#ifdef WEFT_DEVICES
	if (r->device) {
		device_copy(r, to, from, bytes);
		return;
	}
#endif
	void *const buf[] = {to, (void *)(uintptr_t)from};
	const Launch l = {.kernel = copy_parts, .buf = buf, .p = &bytes};
	if (to != from && bytes > 0)
		region_launch(r, l, (bytes - 1) / PART + 1, (double)bytes / COPIED, true);
}

static void put_back(const WeftSaved *s)
{
	for (; s; s = s->before)
		for (int64_t k = 0; k < s->n; k++)
			memcpy(s->state + (s->at ? s->at[k] : k) * s->bytes,
			       s->values + k * s->bytes, (size_t)s->bytes);
}

void weft_save(WeftRegion *r, void *record, void *state, const void *values, const void *at,
	       int64_t n, int64_t bytes)
{
#ifdef WEFT_DEVICES
	if (r->device) {
		device_save(r, record, state, values, at, n, bytes);
		return;
	}
#endif
	WeftSaved *s = record;
	*s = (WeftSaved){state, values, at, n, bytes, r->saved};
	r->saved = s;
	r->put_back = put_back;
}

/* ---- models with collectives ---- */

int weft_rt_open_ranks(const WeftModel *m, const WeftOpen *o, WeftInstance **in, WeftStatus *status)
{
	return weft_rt_open(m, o, in, status);
}

int weft_rt_run_ranks(WeftInstance *in, const WeftSizes *sizes, const WeftTensor *inputs,
		      WeftTensor *outputs, void *workspace, const WeftContext *given,
		      WeftStatus *status)
{
	const WeftComm *c = given && WEFT_HAS(given->size, WeftContext, comm) ? given->comm : NULL;
	WeftStatus told = {0};
	const int code = weft_rt_run(in, sizes, inputs, outputs, workspace, given, &told);
	if (code && c && c->abort)
		c->abort(c->user, told.message);
	if (status)
		*status = told;
	return code;
}
