/* Private to the runtime: one call of `run`, and the threads that execute its tasks.
 *
 * The thread that called `run` executes it alone. It posts phases: lists of launches, whose tasks
 * are divided into lanes. Threads take tasks from lanes, their own first; the caller takes part. A
 * phase is complete when its tasks are done. A lane is one atomic number: the tasks that are left.
 * A thread claims tasks by compare-and-swap, which fails if the number changed. A thread that holds
 * tasks keeps the phase open, so region, launches and frames, which only holders of tasks read,
 * stay valid. Other threads find no tasks, and nobody waits for them.
 *
 * Memory orders. Caller to worker: the store of a lane releases, the claim acquires (claims of
 * others continue the release sequence). Worker to caller: adding to Job.done releases, reading the
 * sum acquires; to workers of later phases through the caller. A thread that goes to sleep counts
 * itself, then looks once more; a thread that changes something looks at that count afterwards;
 * both are sequentially consistent, so one of the two sees the other. Hints (Job.n, nlane) are
 * relaxed. */
#ifndef WEFT_RUNTIME_REGION_PRIV_H
#define WEFT_RUNTIME_REGION_PRIV_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdatomic.h>

#include "device.h"

enum { WEFT_MAX_THREADS = 256, LANES = 32, MAX_LAUNCHES = 32, MAX_KEPT = 256 };
enum { TEAM_SPIN = 50000 }; /* ns that a thread spins before it sleeps, if there are enough
                               processors */

/* Threads sleep at a gate until it is rung. */
typedef struct {
	_Alignas(64) _Atomic uint32_t rings;
	_Atomic uint32_t sleepers;
} Gate;

/* A launch of a phase. */
typedef struct {
	WeftKernel kernel;
	void *const *buf;
	const int64_t *p;
	int64_t end; /* the end of its tasks among those of the phase; they begin at the end of the
	                launch before */
	uint32_t call;
} Launch;

/* The tasks of a phase for one thread, and what is needed to execute them; one cache line. Only
 * holders of a task read fields other than `left`. */
typedef struct {
	_Alignas(64) _Atomic int64_t left; /* the tasks that are left, which are the last ones */
	int64_t end;
	WeftRegion *region;
	Launch only; /* the launch of the phase; kernel NULL: the phase has several, which are in
	                the region */
} Lane;

/* The place in which a call posts its phases. Calls use it one after the other, as long as the team
 * exists. */
typedef struct {
	/* Threads of the call, the caller included; 0: unused. n: all threads that the team had
	 * when the call began, which are threads 0 to n - 1; -n: n of more, which are counted. */
	_Atomic int32_t n;
	_Atomic int32_t nlane, helpers;
	_Atomic uint32_t number[WEFT_MAX_THREADS / 32]; /* bits: the thread numbers that calls of
	                                                   user operators have (op_call.c) */
	_Alignas(64) _Atomic int64_t done; /* tasks that other threads than the callers have done,
	                                      of all phases */
	Gate ended;                        /* the caller waits here for other threads */
	Lane lane[LANES];
} Job;

/* A team of threads that help calls. */
typedef struct {
	Gate posted; /* rung for each posted phase */
	_Atomic int stop;
	_Atomic int32_t nworker;
	/* Phases are not posted until the time `rest` (ns), because threads lacked processors; 0:
	 * no rest. rested: when the last rest ended or will end; rest_ns: its length; late: the ns
	 * that tasks were late since. */
	_Atomic int64_t rest, rested, rest_ns, late;
	_Atomic int64_t spin; /* ns that its threads spin before they sleep */
	struct Pool *pool;    /* NULL: threads of another provider */
	int32_t njob;
	Job *job;
} Team;

struct WeftRegion {
	const WeftEntry *entry;
	void *const *buf;
	const int64_t *slot;
	WeftStatus *status; /* the caller's; may be NULL */
	WeftProfile profile;
	void *profile_user;
	double before; /* for profiles: when the launch before ended */
	/* Memory that `run` allocates (rooms.c). */
	void **room;             /* buf, writable */
	uint64_t *held;          /* by output, then room: the bytes allocated by the context's
	                            allocator */
	uint64_t left;           /* of WeftContext.memory_limit */
	WeftTensor *output;
	const WeftContext *context;
	void (*leave)(const WeftRegion *, int code); /* called after the call; NULL: nothing was
	                                                allocated */
	const WeftSaved *saved;  /* the last saved state, and the function that puts all back
	                            (steps.c) */
	void (*put_back)(const WeftSaved *);
	/* The failed check of the first launch, and there of the first task; 0: none; WEFT_TOLD:
	 * its code is failure[1], and `status` has the message. recording: a thread writes these
	 * fields. */
	_Atomic int recording;
	int failed;
	uint32_t failed_call;
	int64_t failure[WEFT_FAILURE];
	/* Threads. */
	int32_t n;    /* the most threads; 1: no phase is posted */
	int32_t threads; /* n when the call began */
	bool share_all;
	/* Whether the call may end early (WeftContext.cancel, .deadline); it has; the last launch
	 * belongs to the same phase as the next one; a launch had state that nobody puts back. */
	bool watched, ended, joined, touched;
	bool unsaved; /* the entry writes state and is not WEFT_ENTRY_CANCELLABLE */
	const char *state;
	uint64_t state_bytes;
	Team *team;
	Job *job;     /* NULL: not opened yet */
	int64_t done; /* the value of job->done when other threads have done all tasks that they
	                 took */
	double idle;  /* ns that sleeping threads could have saved in earlier phases */
#ifdef WEFT_DEVICES
	DeviceCall *device; /* NULL: the processor */
#endif
	/* The current phase. */
	double ns; /* predicted ns on one thread */
	int64_t ntasks;
	uint32_t nlaunch, nkept, nparam;
	Launch launch[MAX_LAUNCHES];
	void *kept[MAX_KEPT]; /* copies of buf and p of launches, if they must last */
	int64_t param[MAX_KEPT];
};

/* Sets a status, which may be NULL, to WEFT_OK without a message. Functions of the table that have
 * a status begin with this. */
static inline void status_clear(WeftStatus *s)
{
	if (s)
		s->code = WEFT_OK, s->message[0] = 0;
}

/* Executes the entry's run_fn with at most n threads of the provider. The caller has set the fields
 * from entry to leave (but `before`), share_all and device. Returns WEFT_OK, or an error code with
 * the message in the region's status; saved state is then put back. */
int region_run(WeftRegion *, const WeftThreads *, int32_t n);
/* Implements WeftThreads.parallel (weft_model.h) of a team: calls body(arg, i, m) for each i from
 * 0 to m - 1 at the same time, number 0 on this thread; m is the number of free threads, at most
 * n, and 1 if there are none. Returns when all have returned. */
void region_gang(Team *, int32_t n, void (*body)(void *, int32_t, int32_t), void *arg);
/* Calls run(r, arg) once, on this thread; at most n threads of the provider, this one included,
 * execute the tasks that it launches. Sets the region's n, team, job, and the fields of the phase;
 * the caller has set share_all. */
void region_with_threads(WeftRegion *, const WeftThreads *, int32_t n,
			 void (*run)(WeftRegion *, void *), void *arg);
#define WORTH_IT 1e18 /* the ns of a launch of unknown, perhaps long time */
/* Adds a launch of ntasks tasks (below 1: none), which together take `ns` predicted ns on one
 * thread, to the phase. If `last`, or if the phase is full, executes the phase and waits; until
 * then buf and p of the launch must stay unchanged. The Launch's end need not be set. */
void region_launch(WeftRegion *, Launch, int64_t ntasks, double ns, bool last);
/* Records a failure of `run` itself, with the code and message of the status, as if task 0 of call
 * 0 had failed: it replaces a failure of a later call that was recorded before. Returns 1. */
int region_told(WeftRegion *, const WeftStatus *);
/* Notes a copy to this memory, for calls that may end early. */
void region_copies(WeftRegion *, const void *to);
/* Returns the nanoseconds of CLOCK_MONOTONIC. */
int64_t region_now(void);
/* Sets the status to the message of the failed check `id` with its values. Returns
 * WEFT_ERR_CHECK. */
int check_failed(WeftStatus *, const WeftEntry *, int id, const int64_t x[WEFT_FAILURE - 1]);
#ifdef WEFT_DEVICES
/* Records the failed check `id` of a task of a call, failure[0]; a failure of an earlier call, or
 * of an earlier task of the call, stays. told: read if id is WEFT_TOLD. */
void region_record(WeftRegion *, uint32_t call, int id, const int64_t *failure,
		   const WeftStatus *told);
/* Tells the caller of `run` the time since the call before ended as that of the call. The region
 * must have a profile. */
void region_profile(WeftRegion *, uint32_t call);
#endif
/* Executes tasks of the job, which it takes from that lane on (counted modulo the number of lanes),
 * until none is left to take. Returns how many it executed. */
int64_t region_drain(Job *, int32_t lane);

/* ---- threads.c ---- */

/* Returns the team of a provider that is a pool of this runtime; NULL for another provider. */
Team *team_of(const WeftThreads *);
/* Opens a job for the call, with at most WeftRegion.n threads, and starts threads of a pool that
 * are missing; sets WeftRegion.n to the number that can be had, and WeftRegion.done. The caller
 * closes the job: sets Job.n to 0. Returns NULL if all jobs are in use, or if the threads of the
 * team stayed behind a fork. */
Job *team_open(Team *, WeftRegion *);
/* Posts a phase whose lanes are filled in: rings the gate of the team for `helpers` threads, and
 * wakes sleeping ones if that pays. */
void team_post(WeftRegion *, int32_t helpers);
/* Waits until other threads have done `tasks` more tasks of the call's job. */
void team_wait(WeftRegion *, int64_t tasks);
/* Takes tasks until the team stops: the function of thread i >= 1 of the team. */
void team_help(Team *, int32_t i);
/* Tells all threads of the team to end; does not wait for them. */
void team_stop(Team *);
/* Whether the call should post no phases, because threads of the team lacked processors a short
 * time ago; never with share_all. */
bool team_rests(const WeftRegion *);

/* Returns the default provider: the pool of this artifact, which all calls share and whose threads
 * start when a call first needs them. Never NULL, never freed. */
const WeftThreads *threads_default(void);
/* Returns the number of processors that this process may use. */
int32_t threads_ncpu(void);

#endif
