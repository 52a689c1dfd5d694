/* Regions: distribution of tasks, barriers, failures. */
#include "region_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Seconds since *before, which becomes now. */
static double lap(double *before)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	double start = *before;
	return (*before = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec) - start;
}

/* All threads meet. The last to arrive publishes whether a check has failed, and the value at `from`, if any: the others
 * see what it saw then, whoever writes there in the next phase. */
static void meet(WeftRegion *r, const void *from, int code, int bits)
{
	RegionShared *s = r->shared;
	uint32_t gen = atomic_load_explicit(&s->generation, memory_order_relaxed);
	if (r->n > 1 && atomic_fetch_add(&s->arrived, 1) + 1 != (uint32_t)r->n) {
		wait_change(&s->generation, gen, s->spin, &s->sleepers);
		return;
	}
	/* Everybody has taken the last task of the phase: the shares start anew. */
	for (int32_t i = 0; i < r->n; i++)
		atomic_store_explicit(&s->lane[i].next, 0, memory_order_relaxed);
	s->stop = s->failed != 0;
	s->value = from ? weft_value(from, code, bits) : 0;
	atomic_store_explicit(&s->arrived, 0, memory_order_relaxed);
	atomic_store(&s->generation, gen + 1);
	if (atomic_load(&s->sleepers))
		wait_wake(&s->generation);
}

void weft_barrier(WeftRegion *r)
{
	meet(r, NULL, 0, 0);
}

int64_t weft_read(WeftRegion *r, const void *from, int code, int bits)
{
	meet(r, from, code, bits);
	return r->shared->value;
}

/* Keep the failure of the first call, and there of the first task, whatever the timing. */
void region_record(WeftRegion *r, int id)
{
	RegionShared *s = r->shared;
	while (id && atomic_exchange(&s->recording, 1))
		wait_pause();
	if (!id)
		return; /* none */
	if (!s->failed || r->call < s->failed_call || (r->call == s->failed_call && r->failure[0] < s->failure[0])) {
		s->failed = id;
		s->failed_call = r->call;
		memcpy(s->failure, r->failure, sizeof s->failure);
		if (id == WEFT_TOLD && s->status)
			*s->status = r->told;
	}
	atomic_store(&s->recording, 0);
}

/* Take tasks from share `lane`, an eighth of the rest each time, until it is empty, as those of the launches before are. */
static void drain(WeftRegion *r, int32_t lane, WeftKernel kernel, const WeftFrame *f, int64_t ntasks)
{
	int64_t first = ntasks / r->n * lane + ntasks % r->n * lane / r->n;
	int64_t last = ntasks / r->n * (lane + 1) + ntasks % r->n * (lane + 1) / r->n;
	int64_t before = r->base[lane], all = before + last - first;
	_Atomic int64_t *next = &r->shared->lane[lane].next;
	for (int64_t a = atomic_load_explicit(next, memory_order_relaxed), end = 0; a < all; a = a > end ? a : end) {
		end = a + (all - a + 7) / 8;
		if (atomic_compare_exchange_strong_explicit(next, &a, end, memory_order_relaxed, memory_order_relaxed))
			region_record(r, kernel(f, first + a - before, first + end - before));
	}
	r->base[lane] = all;
}

int weft_phase(WeftRegion *r, WeftKernel kernel, void *const *buf, const int64_t *p, uint32_t call, int64_t ntasks)
{
	RegionShared *s = r->shared;
	const WeftFrame f = {buf, p, r->failure, &r->told};
	const bool joined = call & WEFT_JOINED, idle = call & WEFT_ALONE && r->i;
	r->call = call & ~(uint32_t)(WEFT_JOINED | WEFT_ALONE);
	if (r->n == 1) {
		region_record(r, ntasks > 0 ? kernel(&f, 0, ntasks) : 0);
		s->stop = s->failed && !joined;
	} else {
		/* The own share first: the same thread meets the same data again in the next phase. */
		for (int32_t k = 0; k < r->n && !idle; k++)
			drain(r, (r->i + k) % r->n, kernel, &f, ntasks);
		if (!joined)
			weft_barrier(r), memset(r->base, 0, (size_t)r->n * sizeof *r->base);
	}
	if (s->profile && r->i == 0)
		s->profile(s->profile_user, r->call, lap(&r->before));
	return !joined && s->stop;
}

int weft_launches(WeftRegion *r, const WeftLaunches *l, void *const *buf, const int64_t *value, void **b, int64_t *p)
{
	int stop = 0;
	for (const int64_t *w = l->word, *end = w + l->nword; w < end && !stop;)
		w = weft_launch(r, l, w, buf, value, b, p, &stop);
	return stop;
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

void weft_save(WeftRegion *r, void *record, void *state, const void *values, const void *at, int64_t n, int64_t bytes)
{
	WeftSaved *s = record;
	if (r->i)
		return;
	*s = (WeftSaved){state, values, at, n, bytes, r->shared->saved};
	r->shared->saved = s;
}

static void put_back(const WeftSaved *s)
{
	for (; s; s = s->before)
		for (int64_t k = 0; k < s->n; k++)
			memcpy(s->state + (s->at ? s->at[k] : k) * s->bytes, s->values + k * s->bytes, (size_t)s->bytes);
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

/* All threads come here with the same numbers: the first one's stay. */
int weft_region_fail(WeftRegion *r, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(r->told.message, sizeof r->told.message, fmt, ap);
	va_end(ap);
	r->failure[1] = r->told.code = WEFT_ERR_CHECK;
	region_record(r, WEFT_TOLD);
	return 1;
}

static void body(void *arg, int32_t i, int32_t n)
{
	RegionShared *s = arg;
	WeftRegion r = {.shared = s, .i = i, .n = n};
	if (s->profile)
		lap(&r.before);
	s->entry->run_fn(&r, s->buf, s->slot);
}

int region_run(RegionShared *s, const WeftThreads *t, int32_t n)
{
	n = n < 1 ? 1 : n > WEFT_MAX_THREADS ? WEFT_MAX_THREADS : n;
	s->arrived = s->generation = s->sleepers = 0;
	s->recording = s->failed = s->stop = 0;
	s->saved = NULL;
	for (int32_t i = 0; i < n; i++)
		s->lane[i].next = 0;
	n == 1 ? body(s, 0, 1) : t->parallel(t->user, n, body, s);
	if (s->failed)
		put_back(s->saved);
	const int64_t *x = s->failure + 1;
	if (!s->failed || s->failed == WEFT_TOLD)
		return s->failed ? (int)x[0] : WEFT_OK;
	return weft_fail(s->status, WEFT_ERR_CHECK, s->entry->message[s->failed], x[0], x[1], x[2], x[3], x[4], x[5], x[6],
			 x[7], x[8], x[9], x[10], x[11], x[12]);
}
