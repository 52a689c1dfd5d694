/* Calling operators of the user. Linkers leave it out of models that have none. */
#ifdef WEFT_SERIAL
#include "runtime.h"
#else
#include "region_priv.h"
#endif

#include <stdio.h>

/* Returns the values of the next one. */
static int64_t *fill(WeftTensor *t, const WeftOpTensor *c, void *const *buf, int64_t *value)
{
	*t = (WeftTensor){
		.device = {WEFT_CPU, 0}, .ndim = c->rank, .dtype = c->dtype, .shape = value};
	value += c->rank;
	t->data = c->buf < 0 ? value : buf[c->buf];
	return c->buf >= 0 ? value : value + (c->rank ? t->shape[0] : 1);
}

#ifndef WEFT_SERIAL
/* Takes the least number that no call of this job has. There are not more calls at the same time
 * than threads, but for a moment where a thread meant to help the job's call before. */
static int32_t take_number(Job *job, int32_t n)
{
	for (int32_t k = 0;; k = (k + 1) % ((n + 31) / 32)) {
		const int32_t first = 32 * k, count = n - first < 32 ? n - first : 32;
		const uint32_t all = count < 32 ? (1u << count) - 1 : UINT32_MAX;
		uint32_t taken = atomic_load_explicit(&job->number[k], memory_order_relaxed);
		while ((taken & all) != all)
			if (atomic_compare_exchange_weak_explicit(
				    &job->number[k], &taken, taken | (~taken & -~taken),
				    memory_order_acquire, memory_order_relaxed))
				return first + __builtin_ctz(~taken);
	}
}

WeftOpContext weft_op_enter(WeftRegion *r)
{
	WeftOpContext o = weft_op_context(r->context);
	o.threads = r->threads;
	o.thread = r->job ? take_number(r->job, r->threads) : 0;
	return o;
}

void weft_op_leave(WeftRegion *r, const WeftOpContext *o)
{
	if (r->job)
		atomic_fetch_and_explicit(&r->job->number[o->thread / 32], ~(1u << o->thread % 32),
					  memory_order_release);
}
#endif

int weft_op_call(const WeftFrame *f, const WeftOpCall *c, int64_t *value, int64_t task)
{
	WeftTensor t[c->nin + c->nout + 1];
	WeftStatus told;
	for (uint32_t k = 0; k < c->nin + c->nout; k++)
		value = fill(&t[k], &c->tensor[k], f->buf, value);
	told.code = 0;
	told.message[0] = 0;
#ifdef WEFT_DEVICES
	if (f->region->device && device_failed(f->region))
		return 0;
#endif
	WeftOpContext context = weft_op_enter(f->region);
	context.op_user = c->user;
	void *const work = *value ? f->buf[c->work] : NULL;
	int code;
#ifdef WEFT_DEVICES
	if (f->region->device)
		code = device_op(f->region, c, &context, t, work, (uint64_t)*value, &told);
	else
#endif
	code = c->fn(&context, t, t + c->nin, work, (uint64_t)*value, &told);
	weft_op_leave(f->region, &context);
	if (!code)
		return 0;
	f->failure[0] = task;
	f->failure[1] = f->status->code = told.code ? told.code : WEFT_ERR_CHECK;
	told.message[sizeof told.message - 1] = 0;
	if (told.message[0])
		snprintf(f->status->message, sizeof told.message, "%s: %.440s", c->name,
			 told.message);
	else
		snprintf(f->status->message, sizeof told.message, "%s: failed with %d", c->name,
			 code);
	return WEFT_TOLD;
}
