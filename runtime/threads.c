/* Threads that help calls, and the provider: a pool of POSIX threads, which may be none.
 *
 * Workers look for work for a while and then sleep; a post wakes them when phases that they had no
 * part in add up to what that costs. Where a thread that holds tasks does not come back for longer
 * than its tasks take, it has no processor: other processes want them. Then nothing is shared for a
 * while, longer each time. */
#include "region_priv.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

enum {
	JOBS = 8,         /* calls that a pool helps at the same time */
	WAKE = 10000,     /* ns that waking costs, all in all */
	LATE = 200000,    /* ns that tasks may be late, all in all */
	REST = 5000000,   /* ns, at first */
	MOST_REST = 320000000
};

/* ---- waiting ---- */

#ifdef __linux__
static void wait_sleep(_Atomic uint32_t *p, uint32_t old)
{
	syscall(SYS_futex, p, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
}

static void wait_wake(_Atomic uint32_t *p, int32_t n)
{
	syscall(SYS_futex, p, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}
#else /* looks now and then */
static void wait_sleep(_Atomic uint32_t *p, uint32_t old)
{
	if (atomic_load(p) == old)
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

static void wait_wake(_Atomic uint32_t *p, int32_t n)
{
	(void)p, (void)n;
}
#endif

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Waits between two looks, of which this is the k-th: the other thread of this core goes on.
 * Returns false if there have been `spin` ns of them. */
static bool look_again(uint32_t k, int64_t *end, int64_t spin)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
	if (k % 32)
		return true;
	const int64_t time = now();
	*end = *end ? *end : time + spin;
	return time < *end;
}

/* Waits until the gate has been rung, or perhaps until there is something in a lane. */
static void gate_wait(Gate *g, uint32_t seen, int64_t spin, const Lane *lane)
{
	int64_t end = 0;
	for (uint32_t k = 1; spin && look_again(k, &end, spin); k++)
		if (atomic_load_explicit(&g->rings, memory_order_acquire) != seen ||
		    atomic_load_explicit(&lane->left, memory_order_relaxed))
			return;
	atomic_fetch_add(&g->sleepers, 1);
	while (atomic_load(&g->rings) == seen)
		wait_sleep(&g->rings, seen);
	atomic_fetch_sub(&g->sleepers, 1);
}

int32_t threads_ncpu(void)
{
#ifdef __linux__
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
		return CPU_COUNT(&set);
#endif
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	return n < 1 ? 1 : (int32_t)n;
}

/* ---- teams ---- */

static bool pool_here(struct Pool *);
static void start(struct Pool *, int32_t n);

Job *team_open(Team *t, WeftRegion *r)
{
	if (t->pool && !pool_here(t->pool))
		return NULL;
	if (t->pool)
		start(t->pool, r->n - 1);
	const int32_t most = atomic_load_explicit(&t->nworker, memory_order_relaxed) + 1;
	r->n = r->n < most ? r->n : most;
	for (int32_t k = 0; k < t->njob; k++) {
		Job *job = &t->job[k];
		int32_t nobody = 0;
		if (atomic_load_explicit(&job->n, memory_order_relaxed) ||
		    !atomic_compare_exchange_strong_explicit(
			    &job->n, &nobody, r->n < most ? -r->n : r->n, memory_order_acquire,
			    memory_order_relaxed))
			continue;
		r->done = atomic_load_explicit(&job->done, memory_order_relaxed);
		return job;
	}
	return NULL;
}

bool team_rests(const WeftRegion *r)
{
	Team *t = r->team;
	const int64_t rest = atomic_load_explicit(&t->rest, memory_order_relaxed);
	if (!rest || now() < rest)
		return rest && !r->share_all;
	atomic_store_explicit(&t->rest, 0, memory_order_relaxed);
	return false;
}

/* Notes that what has taken so long since then should have taken so many ns. Where that adds up,
 * threads have no processors, and rest. */
static void late(Team *t, int64_t since, double ns)
{
	const int64_t time = now(), before = atomic_load(&t->rest_ns);
	const double sum = (double)atomic_load(&t->late) + (double)(time - since) - ns;
	atomic_store(&t->late, sum > 0 && sum < LATE ? (int64_t)sum : 0);
	if (sum < LATE)
		return;
	const int64_t longer = time - atomic_load(&t->rested) < 4 * before ? 2 * before : REST,
		      rest = longer < MOST_REST ? longer : MOST_REST;
	atomic_store(&t->rest_ns, rest);
	atomic_store(&t->rested, time + rest);
	atomic_store(&t->rest, time + rest);
}

void team_post(WeftRegion *r, int32_t helpers)
{
	Team *t = r->team;
	atomic_fetch_add(&t->posted.rings, 1);
	const int32_t asleep = (int32_t)atomic_load(&t->posted.sleepers);
	const int32_t wanted =
		helpers - (atomic_load_explicit(&t->nworker, memory_order_relaxed) - asleep);
	if (asleep <= 0 || wanted <= 0)
		return;
	r->idle += r->ns * wanted / (helpers + 1);
	if (r->idle < WAKE && !r->share_all)
		return;
	const int64_t begin = now();
	wait_wake(&t->posted.rings, wanted);
	late(t, begin, WAKE);
	r->idle = 0;
}

void team_wait(WeftRegion *r, int64_t tasks)
{
	Job *job = r->job;
	const int64_t left =
		(r->done += tasks) - atomic_load_explicit(&job->done, memory_order_acquire);
	const int64_t spin = atomic_load_explicit(&r->team->spin, memory_order_relaxed);
	int64_t end = 0;
	if (!left)
		return;
	for (uint32_t k = 1; spin && look_again(k, &end, spin); k++)
		if (atomic_load_explicit(&job->done, memory_order_acquire) == r->done)
			goto done;
	end = end ? end : now();
	atomic_fetch_add(&job->ended.sleepers, 1);
	for (uint32_t seen;
	     seen = atomic_load(&job->ended.rings), atomic_load(&job->done) != r->done;)
		wait_sleep(&job->ended.rings, seen);
	atomic_fetch_sub(&job->ended.sleepers, 1);
done:
	if (end)
		late(r->team, end - spin, r->ns * (1. / 8 + 4 * (double)left / (double)r->ntasks));
}

/* Takes part in a job where its call admits so many. Returns whether there was anything to do. */
static bool help(Job *job, int32_t i)
{
	const int32_t have = atomic_load_explicit(&job->n, memory_order_relaxed),
		      n = have < 0 ? -have : have;
	const bool limited = have < 0;
	if (n < 2 || (!limited && i >= n))
		return false;
	int64_t done = 0;
	if (!limited || atomic_fetch_add(&job->helpers, 1) < n - 1)
		done = region_drain(job, i);
	if (limited)
		atomic_fetch_sub(&job->helpers, 1);
	if (!done)
		return false;
	atomic_fetch_add(&job->done, done);
	if (atomic_load(&job->ended.sleepers)) {
		atomic_fetch_add(&job->ended.rings, 1);
		wait_wake(&job->ended.rings, 1);
	}
	return true;
}

void team_help(Team *t, int32_t i)
{
	for (const Lane *last = &t->job[0].lane[i % LANES];;) {
		const uint32_t seen = atomic_load_explicit(&t->posted.rings, memory_order_acquire);
		bool any = false;
		if (atomic_load(&t->stop))
			return;
		for (int32_t k = 0; k < t->njob; k++)
			if (help(&t->job[(i - 1 + k) % t->njob], i)) {
				last = &t->job[(i - 1 + k) % t->njob].lane[i % LANES];
				any = true;
			}
		if (!any)
			gate_wait(&t->posted, seen,
				  atomic_load_explicit(&t->spin, memory_order_relaxed), last);
	}
}

void team_stop(Team *t)
{
	atomic_store(&t->stop, 1);
	atomic_fetch_add(&t->posted.rings, 1);
	wait_wake(&t->posted.rings, WEFT_MAX_THREADS);
}

/* ---- providers ---- */

typedef struct Pool {
	WeftThreads api;
	Team team;
	int32_t most;         /* workers that it may have */
	_Atomic pid_t process; /* that has the workers: a fork leaves them behind; -1: somebody
	                          begins anew */
	_Atomic int changing; /* somebody starts workers, or has ended them */
	_Atomic int gang;     /* workers execute bodies that may wait for each other */
	struct Worker {
		pthread_t thread;
		Team *team;
		int32_t i;
	} *worker;
} Pool;

static void *worker_main(void *arg)
{
	struct Worker *w = arg;
	team_help(w->team, w->i);
	return NULL;
}

/* Starts workers until there are n or no more can be had, unless somebody else does it. */
static void start(Pool *p, int32_t n)
{
	int32_t i = atomic_load(&p->team.nworker);
	if (i >= n || i >= p->most || atomic_exchange(&p->changing, 1))
		return;
	atomic_store(&p->team.spin, n < threads_ncpu() ? TEAM_SPIN : 0);
	while ((i = atomic_load(&p->team.nworker)) < n && i < p->most) {
		p->worker[i] = (struct Worker){.team = &p->team, .i = i + 1};
		if (pthread_create(&p->worker[i].thread, NULL, worker_main, &p->worker[i]))
			break;
		atomic_fetch_add(&p->team.nworker, 1);
	}
	atomic_store(&p->changing, 0);
}

/* Executes the bodies by the pool. Of two callers at once the second does without help rather than
 * wait. */
static void pool_parallel(void *user, int32_t n, void (*body)(void *, int32_t, int32_t), void *arg)
{
	Pool *p = user;
	if (n < 2 || !pool_here(p) || atomic_exchange(&p->gang, 1)) {
		body(arg, 0, 1);
		return;
	}
	region_gang(&p->team, n, body, arg);
	atomic_store(&p->gang, 0);
}

/* Jobs and workers are zeros: they take no room in the file. */
static Job shared_job[JOBS];
static struct Worker shared_worker[WEFT_MAX_THREADS];
static Pool shared = {.api = {pool_parallel, &shared, 0}, .team.pool = &shared};

static void pool_init(Pool *p, int32_t most, Job *job, struct Worker *worker)
{
	memset(&p->team, 0, sizeof p->team);
	memset(job, 0, JOBS * sizeof *job);
	p->worker = worker;
	p->most = most;
	p->team.pool = p;
	p->team.job = job;
	p->team.njob = JOBS;
	atomic_store(&p->changing, 0);
	atomic_store(&p->gang, 0);
	atomic_store(&p->process, getpid());
}

/* Whether the pool has this process's threads. The shared one begins anew in each. */
static bool pool_here(Pool *p)
{
	pid_t process = atomic_load(&p->process);
	if (process == getpid())
		return true;
	if (p != &shared || process < 0 ||
	    !atomic_compare_exchange_strong(&p->process, &process, -1))
		return false;
	pool_init(p, WEFT_MAX_THREADS - 1, shared_job, shared_worker);
	return true;
}

static void pool_end(Pool *p)
{
	team_stop(&p->team);
	for (int32_t i = 0; i < atomic_load(&p->team.nworker); i++)
		pthread_join(p->worker[i].thread, NULL);
}

/* When the model is unloaded, or the process ends, perhaps while calls are under way: they do
 * without. */
__attribute__((destructor)) static void shared_end(void)
{
	bool used =
		atomic_load(&shared.process) != getpid() || atomic_exchange(&shared.changing, 1);
	for (int32_t k = 0; k < JOBS; k++)
		used |= atomic_load(&shared_job[k].n) != 0;
	if (!used)
		pool_end(&shared);
}

static WeftThreads *pool_new(int32_t n, WeftStatus *status)
{
	const size_t bytes = sizeof(Pool) + JOBS * sizeof(Job) + (size_t)n * sizeof(struct Worker);
	Pool *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
	if (!p)
		return weft_fail(status, WEFT_ERR_MEMORY, "no memory for a pool"), NULL;
	p->api = (WeftThreads){pool_parallel, p, n};
	pool_init(p, n - 1, (Job *)(p + 1), (struct Worker *)((Job *)(p + 1) + JOBS));
	start(p, n - 1);
	if (atomic_load(&p->team.nworker) == n - 1)
		return &p->api;
	weft_rt_threads_free(&p->api);
	return weft_fail(status, WEFT_ERR_MEMORY, "cannot start a thread"), NULL;
}

Team *team_of(const WeftThreads *t)
{
	return t->parallel == pool_parallel ? &((Pool *)t->user)->team : NULL;
}

const WeftThreads *threads_default(void)
{
	return &shared.api;
}

WeftThreads *weft_rt_threads_new(WeftThreadsKind kind, int32_t n, WeftStatus *status)
{
	status_clear(status);
	if ((unsigned)kind > WEFT_THREADS_OPENMP)
		return weft_fail(status, WEFT_ERR_ARGUMENT, "no kind %d of threads", (int)kind),
		       NULL;
	if (n < 0 || n > WEFT_MAX_THREADS)
		return weft_fail(status, WEFT_ERR_ARGUMENT, "0 to 256 threads, not %d", (int)n),
		       NULL;
	return pool_new(kind == WEFT_THREADS_SERIAL ? 1 : n ? n : threads_ncpu(), status);
}

void weft_rt_threads_free(WeftThreads *t)
{
	Pool *p = t ? t->user : NULL;
	if (p && atomic_load(&p->process) == getpid())
		pool_end(p);
	free(p);
}
