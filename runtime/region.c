/* Regions: distribution of tasks, barriers, failures. */
#include "region_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void weft_barrier(WeftRegion *r)
{
	if (r->n == 1)
		return;
	RegionShared *s = r->shared;
	uint32_t gen = atomic_load_explicit(&s->generation, memory_order_relaxed);
	if (atomic_fetch_add(&s->arrived, 1) + 1 == (uint32_t)r->n) {
		/* Everybody has taken the last task of the phase: the shares start anew. */
		for (int32_t i = 0; i < r->n; i++)
			atomic_store_explicit(&s->lane[i].next, 0, memory_order_relaxed);
		atomic_store_explicit(&s->arrived, 0, memory_order_relaxed);
		atomic_store(&s->generation, gen + 1);
		if (atomic_load(&s->sleepers))
			wait_wake(&s->generation);
		return;
	}
	for (int k = 0; k < s->spin; k++) {
		if (atomic_load_explicit(&s->generation, memory_order_acquire) != gen)
			return;
		wait_pause();
	}
	atomic_fetch_add(&s->sleepers, 1);
	while (atomic_load(&s->generation) == gen)
		wait_sleep(&s->generation, gen);
	atomic_fetch_sub(&s->sleepers, 1);
}

/* Keep the failure that comes first in program order, then in the order of tasks, whatever the timing. */
static void record(WeftRegion *r, int id)
{
	RegionShared *s = r->shared;
	while (atomic_exchange(&s->recording, 1))
		wait_pause();
	if (!s->failed || (s->failed_phase == r->phase && r->failure[0] < s->failure[0])) {
		s->failed = id;
		s->failed_phase = r->phase;
		memcpy(s->failure, r->failure, sizeof s->failure);
	}
	atomic_store(&s->recording, 0);
}

/* Take tasks from share `lane` until it is empty. */
static void drain(WeftRegion *r, int32_t lane, WeftKernel kernel, const WeftFrame *f, int64_t ntasks)
{
	int64_t first = ntasks / r->n * lane + ntasks % r->n * lane / r->n;
	int64_t last = ntasks / r->n * (lane + 1) + ntasks % r->n * (lane + 1) / r->n;
	int64_t chunk = (last - first) / 8 + 1;
	_Atomic int64_t *next = &r->shared->lane[lane].next;
	while (first + atomic_load_explicit(next, memory_order_relaxed) < last) {
		int64_t a = first + atomic_fetch_add_explicit(next, chunk, memory_order_relaxed);
		if (a >= last)
			return;
		int id = kernel(f, a, last - a < chunk ? last : a + chunk);
		if (id)
			record(r, id);
	}
}

void weft_phase(WeftRegion *r, WeftKernel kernel, void *const *buf, const int64_t *p, uint32_t call, int64_t ntasks)
{
	RegionShared *s = r->shared;
	double start = s->profile && r->i == 0 ? now() : 0;
	const WeftFrame f = {buf, p, r->failure};
	r->phase++;
	if (r->n == 1) {
		int id = ntasks > 0 ? kernel(&f, 0, ntasks) : 0;
		if (id)
			record(r, id);
	} else {
		/* The own share first: the same thread meets the same data again in the next phase. */
		for (int32_t k = 0; k < r->n; k++)
			drain(r, (r->i + k) % r->n, kernel, &f, ntasks);
		weft_barrier(r);
	}
	if (s->profile && r->i == 0)
		s->profile(s->profile_user, call, now() - start);
}

void weft_launches(WeftRegion *r, const WeftLaunches *l, void *const *buf, const int64_t *value, void **b, int64_t *p)
{
	for (const int64_t *w = l->word, *end = w + l->nword; w < end; w = weft_launch(r, l, w, buf, value, b, p))
		;
}

void weft_copy(WeftRegion *r, void *to, const void *from, int64_t bytes)
{
	enum { LINE = 4096 };
	if (to != from && bytes > 0) {
		int64_t share = (bytes / r->n + LINE - 1) / LINE * LINE;
		int64_t a = share * r->i, b = r->i == r->n - 1 || a + share > bytes ? bytes : a + share;
		if (a < b)
			memcpy((char *)to + a, (const char *)from + a, (size_t)(b - a));
	}
	weft_barrier(r);
}

int weft_fail(WeftStatus *status, int code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	if (status) {
		vsnprintf(status->message, sizeof status->message, fmt, ap);
		status->code = code;
	}
	va_end(ap);
	return code;
}

void weft_region_fail(WeftRegion *r, const char *fmt, ...)
{
	WeftStatus *status = r->shared->status;
	va_list ap;
	va_start(ap, fmt);
	if (!atomic_exchange(&r->shared->asserted, 1)) {
		r->shared->asserted_phase = r->phase;
		if (status)
			vsnprintf(status->message, sizeof status->message, fmt, ap);
	}
	va_end(ap);
}

static void body(void *arg, int32_t i, int32_t n)
{
	RegionShared *s = arg;
	WeftRegion r = {.shared = s, .i = i, .n = n};
	s->entry->run_fn(&r, s->buf, s->slot);
}

int region_run(RegionShared *s, const WeftThreads *t, int32_t n)
{
	n = n < 1 ? 1 : n > WEFT_MAX_THREADS ? WEFT_MAX_THREADS : n;
	s->arrived = s->generation = s->sleepers = 0;
	s->asserted = s->recording = s->failed = 0;
	for (int32_t i = 0; i < n; i++)
		s->lane[i].next = 0;
	if (n == 1)
		body(s, 0, 1);
	else
		t->parallel(t->user, n, body, s);
	if (s->asserted && (!s->failed || s->asserted_phase < s->failed_phase)) {
		if (s->status)
			s->status->code = WEFT_ERR_CHECK;
		return WEFT_ERR_CHECK;
	}
	if (!s->failed)
		return WEFT_OK;
	const int64_t *x = s->failure + 1;
	return weft_fail(s->status, WEFT_ERR_CHECK, s->entry->message[s->failed], x[0], x[1], x[2], x[3], x[4], x[5], x[6],
			 x[7], x[8], x[9], x[10], x[11], x[12]);
}
