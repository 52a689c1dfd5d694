/* Private to the runtime: one call in progress, and the threads that share its tasks.
 *
 * The thread that called `run` alone executes it. It posts phases: a list of launches, whose tasks
 * it divides into lanes. Threads take tasks from lanes, the own one first; the caller takes part,
 * and a phase is complete when its tasks are done. A lane is one number, how many tasks are left in
 * it, which is taken from by a compare-and-swap. So a claim is right or fails, whatever its maker
 * has read before, and who has one holds up the phase: what belongs to it (region, launches,
 * frames) is read by holders only and stays as it is. Others have come too late, find nothing, and
 * are waited for by nobody.
 *
 * Memory orders. Caller to worker: the store of a lane releases, the claim acquires (claims of
 * others continue the release sequence). Worker to caller: adding to Job.done releases, seeing the
 * sum acquires; to workers of later phases through the caller. Who goes to sleep counts itself
 * before it looks once more, who changes something looks at that count afterwards, both
 * sequentially consistent: one of the two sees the other. Hints (Job.n, nlane) are relaxed. */
#ifndef WEFT_RUNTIME_REGION_PRIV_H
#define WEFT_RUNTIME_REGION_PRIV_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdatomic.h>

#include "runtime.h"

enum { WEFT_MAX_THREADS = 256, LANES = 32, MAX_LAUNCHES = 32, MAX_KEPT = 256 };
enum { TEAM_SPIN = 50000 }; /* ns that a thread looks for a change before it sleeps, where there are
                               processors enough */

/* Threads sleep here until it is rung. */
typedef struct {
	_Alignas(64) _Atomic uint32_t rings;
	_Atomic uint32_t sleepers;
} Gate;

/* One of a phase. */
typedef struct {
	WeftKernel kernel;
	void *const *buf;
	const int64_t *p;
	int64_t end; /* its tasks among those of the phase: from the end of the launch before */
	uint32_t call;
} Launch;

/* A part of the tasks of a phase: a line of the cache, with what is needed to execute them. But for
 * `left` it is for holders of a task. */
typedef struct {
	_Alignas(64) _Atomic int64_t left; /* nobody has taken so many, the last ones */
	int64_t end;
	WeftRegion *region;
	Launch only; /* of the phase; kernel NULL: one of several, which the region has */
} Lane;

/* Where a call posts its phases. It belongs to one call after the other, as long as there are
 * threads that look at it. */
typedef struct {
	_Atomic int32_t n; /* threads of the call, the caller among them; 0: nobody's */
	_Atomic int32_t nlane, helpers;
	_Atomic uint32_t number[WEFT_MAX_THREADS / 32]; /* bits: those that calls of user operators
	                                                   have (op_call.c) */
	_Alignas(64) _Atomic int64_t done; /* tasks that others than the callers have done, of all
	                                      phases */
	Gate ended;                        /* where the caller waits for them */
	Lane lane[LANES];
} Job;

/* Threads that help. */
typedef struct {
	Gate posted; /* rung for each phase */
	_Atomic int stop;
	_Atomic int32_t nworker;
	/* Nothing is shared until then, since threads lacked processors; 0: all is well. When that
	 * last ended, or will, and how long it took. */
	_Atomic int64_t rest, rested, rest_ns, late;
	_Atomic int64_t spin; /* ns that its threads look before they sleep */
	struct Pool *pool;    /* NULL: of another provider's threads */
	int32_t njob;
	Job *job;
} Team;

struct WeftRegion {
	const WeftEntry *entry;
	void *const *buf;
	const int64_t *slot;
	WeftStatus *status; /* of the caller; may be NULL */
	WeftProfile profile;
	void *profile_user;
	double before; /* profiled: when the launch before ended */
	/* Memory that `run` asks for (rooms.c). */
	void **room;             /* buf, to be written */
	uint64_t *held;          /* by output, then room: bytes of the context's allocator */
	WeftTensor *output;
	const WeftContext *context;
	void (*leave)(const WeftRegion *, int code); /* after the call; NULL: nothing was asked
	                                                for */
	const WeftSaved *saved;  /* the last one, and what puts them back (steps.c) */
	void (*put_back)(const WeftSaved *);
	/* The check that failed in the first call of the phase and there in the first task; 0:
	 * none; WEFT_TOLD: its code is failure[1], and status has been written. recording: somebody
	 * writes them. */
	_Atomic int recording;
	int failed;
	uint32_t failed_call;
	int64_t failure[WEFT_FAILURE];
	/* The threads. */
	int32_t n;    /* as many may take part; 1: nothing is posted */
	int32_t threads; /* n when the call began */
	bool share_all;
	Team *team;
	Job *job;     /* NULL: none yet */
	int64_t done; /* what job->done is when others have done all they took */
	double idle;  /* ns that could have been saved in phases that sleeping threads had no part
	                 in */
	/* The phase at hand. */
	double ns; /* predicted, on one thread */
	int64_t ntasks;
	uint32_t nlaunch, nkept, nparam;
	Launch launch[MAX_LAUNCHES];
	void *kept[MAX_KEPT]; /* what buf and p of the launches point to, where it has to last */
	int64_t param[MAX_KEPT];
};

/* Every function of the table begins with this: a status tells of the last call only. */
static inline void status_clear(WeftStatus *s)
{
	if (s)
		s->code = WEFT_OK, s->message[0] = 0;
}

/* Execute the entry's run_fn with at most n threads of the provider. Returns the status code. */
int region_run(WeftRegion *, const WeftThreads *, int32_t n);
/* WeftThreads.parallel by a team. */
void region_gang(Team *, int32_t n, void (*body)(void *, int32_t, int32_t), void *arg);
/* Call run(r, arg) with at most n threads of the provider: what it launches they share. */
void region_with_threads(WeftRegion *, const WeftThreads *, int32_t n, void (*run)(WeftRegion *, void *), void *arg);
/* The next launch of the phase, of so many ns; last: of it, or of what is kept. */
#define WORTH_IT 1e18 /* nobody knows how much it is, and it may be much */
void region_launch(WeftRegion *, Launch, int64_t ntasks, double ns, bool last);
/* A failure of `run` itself, told in the status. Returns 1. */
int region_told(WeftRegion *, const WeftStatus *);
/* Take and execute tasks, beginning with that lane, until none is left. Returns how many. */
int64_t region_drain(Job *, int32_t lane);

/* ---- threads.c ---- */

/* The team of a pool of this runtime and this process; NULL: another provider's. */
Team *team_of(const WeftThreads *);
/* A job for the call, and threads, if they can be had (WeftRegion.n is then how many there are);
 * NULL: all are taken. */
Job *team_open(Team *, WeftRegion *);
/* The lanes are filled in: tell so many threads, and wake those that sleep if that is worth it. */
void team_post(WeftRegion *, int32_t helpers);
/* Until others have done so many tasks of it. */
void team_wait(WeftRegion *, int64_t tasks);
/* Thread i of the team, until it stops. */
void team_help(Team *, int32_t i);
void team_stop(Team *);
/* Threads lack processors. */
bool team_rests(const WeftRegion *);

/* The default provider; never NULL, needs no freeing. */
const WeftThreads *threads_default(void);
/* Processors this process may use. */
int32_t threads_ncpu(void);

#endif
