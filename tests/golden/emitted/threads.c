/* Thread providers: serial, a pool of POSIX threads, OpenMP. */
#include "region_priv.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif
#ifdef _OPENMP
#include <dlfcn.h>
#include <omp.h>
#endif

static void wait_sleep(_Atomic uint32_t *p, uint32_t old)
{
#ifdef __linux__
	syscall(SYS_futex, p, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
#else
	(void)p, (void)old, sched_yield();
#endif
}

void wait_wake(_Atomic uint32_t *p)
{
#ifdef __linux__
	syscall(SYS_futex, p, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
#else
	(void)p;
#endif
}

void wait_change(_Atomic uint32_t *p, uint32_t old, int spin, _Atomic uint32_t *sleepers)
{
	for (int k = 0; k < spin; k++) {
		if (atomic_load_explicit(p, memory_order_acquire) != old)
			return;
		wait_pause();
	}
	atomic_fetch_add(sleepers, 1);
	while (atomic_load(p) == old)
		wait_sleep(p, old);
	atomic_fetch_sub(sleepers, 1);
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

/* ---- serial ---- */

static void serial_parallel(void *user, int32_t n, void (*body)(void *, int32_t, int32_t),
			    void *arg)
{
	(void)user, (void)n;
	body(arg, 0, 1);
}

/* ---- pool ---- */

typedef struct {
	WeftThreads api;
	int32_t nworker, nstarted; /* the caller is the other thread */
	pid_t process;             /* that has the workers: a fork leaves them behind */
	int spin;
	void (*body)(void *, int32_t, int32_t);
	void *arg;
	int32_t n;
	_Atomic int busy, stop;
	_Alignas(64) _Atomic uint32_t job;     /* counts jobs; workers wait for a change */
	_Alignas(64) _Atomic uint32_t pending; /* workers that have not finished the job */
	_Atomic uint32_t sleepers;
	struct Worker {
		pthread_t thread;
		void *pool;
		int32_t i;
	} worker[];
} Pool;

static void *worker_main(void *arg)
{
	struct Worker *w = arg;
	Pool *p = w->pool;
	for (uint32_t seen = 0;; seen++) {
		wait_change(&p->job, seen, p->spin, &p->sleepers);
		if (atomic_load(&p->stop))
			return NULL;
		if (w->i < p->n)
			p->body(p->arg, w->i, p->n);
		if (atomic_fetch_sub(&p->pending, 1) == 1)
			wait_wake(&p->pending);
	}
}

static void pool_parallel(void *user, int32_t n, void (*body)(void *, int32_t, int32_t), void *arg)
{
	Pool *p = user;
	/* Two callers at once: the second does without help rather than wait. */
	if (n == 1 || getpid() != p->process || atomic_exchange(&p->busy, 1)) {
		body(arg, 0, 1);
		return;
	}
	p->body = body;
	p->arg = arg;
	p->n = n > p->nworker + 1 ? p->nworker + 1 : n;
	atomic_store(&p->pending, (uint32_t)p->nworker);
	atomic_fetch_add(&p->job, 1);
	wait_wake(&p->job);
	body(arg, 0, p->n);
	for (uint32_t left; (left = atomic_load(&p->pending)) != 0;)
		wait_change(&p->pending, left, p->spin, &p->sleepers);
	atomic_store(&p->busy, 0);
}

static void pool_free(Pool *p)
{
	atomic_store(&p->stop, 1);
	atomic_fetch_add(&p->job, 1);
	wait_wake(&p->job);
	for (int32_t i = 0; i < p->nstarted && getpid() == p->process; i++)
		pthread_join(p->worker[i].thread, NULL);
	free(p);
}

static WeftThreads *pool_new(int32_t n, WeftStatus *status)
{
	size_t bytes = sizeof(Pool) + (size_t)n * sizeof(struct Worker);
	Pool *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
	if (!p)
		return weft_fail(status, WEFT_ERR_MEMORY, "no memory for a pool"), NULL;
	*p = (Pool){.api = {pool_parallel, p, n}, .nworker = n - 1, .process = getpid()};
	p->spin = n <= threads_ncpu() ? 2000 : 0;
	for (int32_t i = 0; i < n - 1; i++, p->nstarted++) {
		p->worker[i] = (struct Worker){.pool = p, .i = i + 1};
		if (pthread_create(&p->worker[i].thread, NULL, worker_main, &p->worker[i])) {
			pool_free(p);
			return weft_fail(status, WEFT_ERR_MEMORY, "cannot start a thread"), NULL;
		}
	}
	return &p->api;
}

/* ---- OpenMP ---- */

static const WeftThreads serial_threads = {serial_parallel, NULL, 1};

#ifdef _OPENMP
typedef struct {
	int32_t n;
	void (*body)(void *, int32_t, int32_t);
	void *arg;
} Team;

static void *team_run(void *team)
{
	Team *t = team;
#pragma omp parallel num_threads(t->n)
	t->body(t->arg, omp_get_thread_num(), omp_get_num_threads());
	return NULL;
}

static _Atomic pid_t first_process; /* that opened a model */

/* OpenMP keeps a team for every thread that asked for one. In the child of a fork the team has no threads any more,
 * and who asks again waits for ever; a new thread has no team yet. */
static void omp_parallel(void *user, int32_t n, void (*body)(void *, int32_t, int32_t), void *arg)
{
	Team team = {n, body, arg};
	pthread_t fresh;
	(void)user;
	if (getpid() == atomic_load(&first_process))
		team_run(&team);
	else if (pthread_create(&fresh, NULL, team_run, &team))
		body(arg, 0, 1);
	else
		pthread_join(fresh, NULL);
}

static const WeftThreads shared_threads = {omp_parallel, NULL, 0};

void threads_opened(void)
{
	Dl_info info;
	void *f, *h;
	pid_t none = 0;
	atomic_compare_exchange_strong(&first_process, &none, getpid());
	*(int (**)(void)) & f = omp_get_max_threads;
	if (dladdr(f, &info) && info.dli_fname &&
	    (h = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE)))
		dlclose(h);
}
#else
#define shared_threads serial_threads

#define omp_get_max_threads() 0

void threads_opened(void) {}
#endif

const WeftThreads *threads_default(void)
{
	return &shared_threads;
}

/* ---- all of them ---- */

WeftThreads *weft_rt_threads_new(WeftThreadsKind kind, int32_t n, WeftStatus *status)
{
	status_clear(status);
	if ((unsigned)kind > WEFT_THREADS_OPENMP)
		return weft_fail(status, WEFT_ERR_ARGUMENT, "no kind %d of threads", (int)kind), NULL;
	if (n < 0 || n > WEFT_MAX_THREADS)
		return weft_fail(status, WEFT_ERR_ARGUMENT, "0 to 256 threads, not %d", (int)n), NULL;
	if (n == 0 && kind == WEFT_THREADS_OPENMP)
		n = omp_get_max_threads();
	n = n ? n : threads_ncpu();
	const bool none = shared_threads.parallel == serial_parallel;
	if (kind == WEFT_THREADS_POOL || (kind == WEFT_THREADS_OPENMP && none))
		return pool_new(n, status);
	WeftThreads *p = malloc(sizeof *p);
	if (!p)
		return weft_fail(status, WEFT_ERR_MEMORY, "no memory for a provider"), NULL;
	*p = kind == WEFT_THREADS_OPENMP ? shared_threads : serial_threads;
	p->nthreads = kind == WEFT_THREADS_OPENMP ? n : 1;
	return p;
}

void weft_rt_threads_free(WeftThreads *t)
{
	if (t && t->parallel == pool_parallel)
		pool_free(t->user);
	else
		free(t);
}
