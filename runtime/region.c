/* Regions: one call of `run`, its phases and their tasks, failures. */
#include "region_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

enum { SHARE = 800 }; /* ns of work that a thread is asked for at least: about what a post and its
                         end cost */

int64_t region_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Returns the seconds since *before, which becomes now. */
static double lap(double *before)
{
	const double start = *before;
	return (*before = 1e-9 * (double)region_now()) - start;
}

/* ---- failures ---- */

/* Keeps the failure of the first call, and there of the first task, whatever the timing. */
static void record(WeftRegion *r, uint32_t call, int id, const int64_t *failure,
		   const WeftStatus *told)
{
	while (atomic_exchange(&r->recording, 1))
		;
	if (!r->failed || call < r->failed_call ||
	    (call == r->failed_call && failure[0] < r->failure[0])) {
		r->failed = id;
		r->failed_call = call;
		memcpy(r->failure, failure, sizeof r->failure);
		if (id == WEFT_TOLD && r->status)
			*r->status = *told;
	}
	atomic_store(&r->recording, 0);
}

int region_told(WeftRegion *r, const WeftStatus *told)
{
	const int64_t failure[WEFT_FAILURE] = {0, told->code};
	record(r, 0, WEFT_TOLD, failure, told);
	return 1;
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

int weft_region_fail(WeftRegion *r, const char *fmt, ...)
{
	WeftStatus told = {.code = WEFT_ERR_CHECK};
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(told.message, sizeof told.message, fmt, ap);
	va_end(ap);
	return region_told(r, &told);
}

int check_failed(WeftStatus *status, const WeftEntry *e, int id, const int64_t x[WEFT_FAILURE - 1])
{
	return weft_fail(status, WEFT_ERR_CHECK, e->message[id], x[0], x[1], x[2], x[3], x[4], x[5],
			 x[6], x[7], x[8], x[9], x[10], x[11], x[12]);
}

#ifdef WEFT_DEVICES
void region_record(WeftRegion *r, uint32_t call, int id, const int64_t *failure,
		   const WeftStatus *told)
{
	record(r, call, id, failure, told);
}

void region_profile(WeftRegion *r, uint32_t call)
{
	r->profile(r->profile_user, call, lap(&r->before));
}
#endif

/* ---- tasks ---- */

static void execute(WeftRegion *r, const Launch *l, int64_t begin, int64_t end)
{
	int64_t failure[WEFT_FAILURE] = {0};
	WeftStatus told;
	const WeftFrame f = {l->buf, l->p, failure, &told, r};
	int id = begin < end ? l->kernel(&f, begin, end) : 0;
	if (id)
		record(r, l->call, id, failure, &told);
}

/* Executes tasks begin to end - 1 of the phase, which has those of one launch after the other. */
static void execute_some(WeftRegion *r, int64_t begin, int64_t end)
{
	int64_t first = 0;
	for (const Launch *l = r->launch; begin < end; first = (l++)->end)
		if (begin < l->end) {
			const int64_t last = end < l->end ? end : l->end;
			execute(r, l, begin - first, last - first);
			begin = last;
		}
}

/* Takes an eighth of what is left of the lane, which was *left. Returns how many tasks that is; 0:
 * none is left. */
static int64_t take(Lane *lane, int64_t *left)
{
	int64_t n = 0;
	*left = atomic_load_explicit(&lane->left, memory_order_relaxed);
	do
		n = (*left + 7) / 8;
	while (n &&
	       !atomic_compare_exchange_weak_explicit(&lane->left, left, *left - n,
						      memory_order_acquire, memory_order_relaxed));
	return n;
}

int64_t region_drain(Job *job, int32_t from)
{
	const int32_t nlane = atomic_load_explicit(&job->nlane, memory_order_relaxed);
	int64_t all = 0, left, n;
	for (int32_t k = 0; k < nlane; k++)
		for (Lane *lane = &job->lane[(from + k) % nlane]; (n = take(lane, &left)) > 0;
		     all += n) {
			const int64_t begin = lane->end - left;
			if (lane->only.kernel)
				execute(lane->region, &lane->only, begin, begin + n);
			else
				execute_some(lane->region, begin, begin + n);
		}
	return all;
}

/* ---- phases ---- */

/* Returns how many threads are worth it. */
static int32_t sharers(const WeftRegion *r)
{
	double n = r->ns / SHARE < (double)r->n && !r->share_all ? r->ns / SHARE : (double)r->n;
	return (int32_t)((double)r->ntasks < n ? (double)r->ntasks : n);
}

static void post(WeftRegion *r, int32_t n, int32_t helpers)
{
	Job *job = r->job;
	n = n < LANES ? n : LANES;
	/* others look at what is beside it, too */
	if (atomic_load_explicit(&job->nlane, memory_order_relaxed) != n)
		atomic_store_explicit(&job->nlane, n, memory_order_relaxed);
	for (int64_t k = 0, before = 0; k < n; k++) {
		Lane *lane = &job->lane[k];
		lane->end = r->ntasks / n * (k + 1) + r->ntasks % n * (k + 1) / n;
		lane->region = r;
		lane->only = r->launch[0];
		if (r->nlaunch > 1)
			lane->only.kernel = NULL;
		atomic_store_explicit(&lane->left, lane->end - before, memory_order_release);
		before = lane->end;
	}
	team_post(r, helpers);
}

/* Executes the launches of the phase, or of a part of it. */
static void flush(WeftRegion *r)
{
	int32_t n = r->nlaunch ? sharers(r) : 0;
	if (n > 1 && !r->job && (r->job = team_open(r->team, r)))
		n = sharers(r); /* there may be fewer threads than asked for */
	if (n > 1 && r->job && !team_rests(r)) {
		post(r, n, n - 1);
		team_wait(r, r->ntasks - region_drain(r->job, 0));
	} else if (r->ntasks)
		execute_some(r, 0, r->ntasks);
	r->nlaunch = r->nkept = r->nparam = 0;
	r->ntasks = 0;
	r->ns = 0;
}

/* Makes a launch refer to a copy of its frame that lasts until the phase ends. Returns false if
 * there is no room. */
static bool keep(WeftRegion *r, Launch *l, const WeftLaunch *about)
{
	if (!about || r->nkept + about->nbuf > MAX_KEPT || r->nparam + about->nparam > MAX_KEPT)
		return false;
	if (about->nbuf)
		l->buf = memcpy(r->kept + r->nkept, l->buf, about->nbuf * sizeof *l->buf);
	if (about->nparam)
		l->p = memcpy(r->param + r->nparam, l->p, about->nparam * sizeof *l->p);
	r->nkept += about->nbuf;
	r->nparam += about->nparam;
	return true;
}

void region_launch(WeftRegion *r, Launch l, int64_t ntasks, double ns, bool last)
{
	l.end = r->ntasks += ntasks > 0 ? ntasks : 0;
	r->ns += ns;
	r->launch[r->nlaunch++] = l;
	if (last || r->nlaunch == MAX_LAUNCHES)
		flush(r);
}

/* ---- calls that end early ---- */

/* Ends the call, before the launch `call`. */
static bool end_early(WeftRegion *r, uint32_t call, int code, const char *why)
{
	const int64_t failure[WEFT_FAILURE] = {0, code};
	WeftStatus told = {.code = code};
	snprintf(told.message, sizeof told.message, "%s before kernel %u of %u", why, call + 1,
		 r->entry->ncall);
	record(r, call, WEFT_TOLD, failure, &told);
	return r->ended = true;
}

/* Whether the caller wants the call to end before the launch `call`; then records why. */
static bool is_asked_to_end(WeftRegion *r, uint32_t call)
{
	const _Atomic int32_t *cancel = (const _Atomic int32_t *)r->context->cancel;
	if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
		return end_early(r, call, WEFT_ERR_CANCELLED, "the call was cancelled");
	return r->context->deadline && region_now() > r->context->deadline &&
	       end_early(r, call, WEFT_ERR_DEADLINE, "the call's deadline passed");
}

static bool is_state(const WeftRegion *r, const void *p)
{
	return (uintptr_t)p - (uintptr_t)r->state < r->state_bytes;
}

/* Whether a launch with these buffers may write state; of a launch of unknown buffers, too. */
static bool touches_state(const WeftRegion *r, void *const *buf, uint32_t call)
{
	const WeftLaunch *about = r->entry->launch ? &r->entry->launch[call] : NULL;
	for (uint32_t k = 0; about && k < about->nbuf; k++)
		if (is_state(r, buf[k]))
			return true;
	return !about;
}

/* Whether the call has ended early: asks before each phase, until state was touched that nobody
 * would put back. */
static bool has_ended(WeftRegion *r, void *const *buf, uint32_t call)
{
	const uint32_t k = call & ~(uint32_t)(WEFT_JOINED | WEFT_ALONE);
	const bool begins = !r->joined;
	r->joined = call & WEFT_JOINED;
	if (r->ended || (begins && !r->touched && is_asked_to_end(r, k)))
		return true;
	r->touched |= r->unsaved && touches_state(r, buf, k);
	return false;
}

void region_copies(WeftRegion *r, const void *to)
{
	r->touched |= r->unsaved && is_state(r, to);
}

int weft_phase(WeftRegion *r, WeftKernel kernel, void *const *buf, const int64_t *p, uint32_t call,
	       int64_t ntasks)
{
	if (r->watched && has_ended(r, buf, call))
		return !(call & WEFT_JOINED);
#ifdef WEFT_DEVICES
	if (r->device)
		return device_phase(r, kernel, buf, p, call, ntasks);
#endif
	const bool same_phase = call & WEFT_JOINED;
	const uint32_t k = call & ~(uint32_t)(WEFT_JOINED | WEFT_ALONE);
	const WeftLaunch *about = r->entry->launch ? &r->entry->launch[k] : NULL;
	Launch l = {.kernel = kernel, .buf = buf, .p = p, .call = k};
	if (r->n == 1 || call & WEFT_ALONE)
		execute(r, &l, 0, ntasks);
	else
		region_launch(r, l, ntasks,
			      about && about->ns > 0 ? (double)ntasks * about->ns : WORTH_IT,
			      !same_phase || r->profile || !keep(r, &l, about));
	if (r->profile)
		r->profile(r->profile_user, k, lap(&r->before));
	return !same_phase && r->failed;
}

/* ---- threads ---- */

/* A call by a provider that is not ours. */
typedef struct {
	WeftRegion *r;
	void (*run)(WeftRegion *, void *);
	void *arg;
	Team team;
} Own;

static void own_body(void *arg, int32_t i, int32_t n)
{
	Own *own = arg;
	if (i) {
		team_help(&own->team, i);
		return;
	}
	own->r->n = n;
	own->team.nworker = n - 1;
	own->run(own->r, own->arg);
	team_stop(&own->team);
}

void region_with_threads(WeftRegion *r, const WeftThreads *t, int32_t n,
			 void (*run)(WeftRegion *, void *), void *arg)
{
	Job job;
	Own own;
	r->n = n = n < 1 ? 1 : n > WEFT_MAX_THREADS ? WEFT_MAX_THREADS : n;
	r->team = n > 1 ? team_of(t) : NULL;
	r->job = NULL;
	r->nlaunch = r->nkept = r->nparam = 0;
	r->ntasks = 0;
	r->ns = r->idle = 0;
	if (n > 1 && !r->team) {
		memset(&job, 0, sizeof job);
		own = (Own){r,
			    run,
			    arg,
			    {.njob = 1, .job = &job, .spin = n <= threads_ncpu() ? TEAM_SPIN : 0}};
		r->team = &own.team;
		t->parallel(t->user, n, own_body, &own);
	} else
		run(r, arg);
	if (r->job)
		atomic_store_explicit(&r->job->n, 0, memory_order_release);
}

static void run_entry(WeftRegion *r, void *arg)
{
	(void)arg;
	r->threads = r->n;
	if (r->profile)
		lap(&r->before);
#ifdef WEFT_DEVICES
	if (r->device && !(r->watched && is_asked_to_end(r, 0)) && device_play(r))
		return;
#endif
	r->entry->run_fn(r, r->buf, r->slot);
}

int region_run(WeftRegion *r, const WeftThreads *t, int32_t n)
{
	r->recording = r->failed = 0;
	r->ended = r->joined = r->touched = false;
	r->saved = NULL;
	region_with_threads(r, t, n, run_entry, NULL);
#ifdef WEFT_DEVICES
	if (r->device)
		device_put_back(r);
#endif
	if (r->failed && r->saved)
		r->put_back(r->saved);
	const int64_t *x = r->failure + 1;
	if (!r->failed || r->failed == WEFT_TOLD)
		return r->failed ? (int)x[0] : WEFT_OK;
	return check_failed(r->status, r->entry, r->failed, x);
}

typedef struct {
	void (*body)(void *, int32_t, int32_t);
	void *arg;
	int32_t n;
} Gang;

static int run_bodies(const WeftFrame *f, int64_t begin, int64_t end)
{
	const Gang *g = f->buf[0];
	for (int64_t i = begin; i < end; i++)
		g->body(g->arg, (int32_t)i + 1, g->n);
	return 0;
}

/* Executes the bodies. The callers of a gang take no part: each of the others has a body. At most
 * eight are in a lane, of which one is taken at a time. */
void region_gang(Team *t, int32_t n, void (*body)(void *, int32_t, int32_t), void *arg)
{
	WeftRegion r = {.n = n, .team = t, .share_all = true};
	Gang gang = {body, arg, n};
	void *const buf[] = {&gang};
	if (!(r.job = team_open(t, &r)) || r.n < 2) {
		body(arg, 0, 1);
	} else {
		gang.n = r.n;
		r.launch[r.nlaunch++] =
			(Launch){.kernel = run_bodies, .buf = buf, .end = r.ntasks = r.n - 1};
		r.ns = WORTH_IT;
		post(&r, r.n - 1, r.n - 1);
		body(arg, 0, r.n);
		team_wait(&r, r.n - 1);
	}
	if (r.job)
		atomic_store_explicit(&r.job->n, 0, memory_order_release);
}
