/* Private to the runtime: one call in progress, and sleeping. */
#ifndef WEFT_RUNTIME_REGION_PRIV_H
#define WEFT_RUNTIME_REGION_PRIV_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdatomic.h>

#include "runtime.h"

enum { WEFT_MAX_THREADS = 256 };

typedef struct {
	_Alignas(64) _Atomic int64_t next; /* tasks taken from this thread's share */
} RegionLane;

/* Shared by the threads of a call; lives on the caller's stack. */
typedef struct RegionShared {
	const WeftEntry *entry;
	void *const *buf;
	/* Memory that `run` asks for (rooms.c). */
	void **room;             /* buf, to be written */
	uint64_t *held;          /* by output, then room: bytes of the context's allocator */
	WeftTensor *output;
	const WeftContext *context;
	void (*leave)(const struct RegionShared *, int code); /* after the call; NULL: nothing was asked for */
	const int64_t *slot;
	WeftProfile profile;
	void *profile_user;
	WeftStatus *status;      /* of the caller; may be NULL */
	int spin;                /* times to look before sleeping */
	_Atomic int recording;   /* 1: somebody writes the next three, or the status */
	int failed;              /* the check that failed in the first call of the phase and there in the first task; 0: none;
	                            WEFT_TOLD: its code is failure[1], and status has been written */
	uint32_t failed_call;
	int64_t failure[WEFT_FAILURE];
	const WeftSaved *saved; /* the last one; only the first thread adds to them */
	/* What all threads go on with: written by the last to arrive at a barrier, before it lets the others go. */
	int stop;
	int64_t value;
	_Alignas(64) _Atomic uint32_t arrived;
	_Alignas(64) _Atomic uint32_t generation;
	_Atomic uint32_t sleepers;
	RegionLane lane[WEFT_MAX_THREADS];
} RegionShared;

/* One thread's view of it. */
struct WeftRegion {
	RegionShared *shared;
	int32_t i, n;
	uint32_t call; /* being executed */
	int64_t base[WEFT_MAX_THREADS]; /* by lane: tasks of the launches before in this phase */
	int64_t failure[WEFT_FAILURE]; /* of this thread's last failure */
	WeftStatus told; /* the same, where it is WEFT_TOLD */
	double before; /* of the first thread, profiled: when the launch before ended, which others may have done alone */
};

/* Every function of the table begins with this: a status tells of the last call only. */
static inline void status_clear(WeftStatus *s)
{
	if (s)
		s->code = WEFT_OK, s->message[0] = 0;
}

/* This thread's failure, told in `told`. */
void region_record(WeftRegion *, int id);
/* Execute the entry's run_fn on n threads of the provider. Returns the status code. */
int region_run(RegionShared *, const WeftThreads *, int32_t n);

/* Return when *p != old: looks `spin` times, then sleeps, which *sleepers counts, until wait_wake. */
void wait_change(_Atomic uint32_t *p, uint32_t old, int spin, _Atomic uint32_t *sleepers);
void wait_wake(_Atomic uint32_t *p);
/* Between two looks: the other thread of this core goes on. */
static inline void wait_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* The default provider; never NULL, needs no freeing. */
const WeftThreads *threads_default(void);
/* Processors this process may use. */
int32_t threads_ncpu(void);
/* When a model is opened: keep the OpenMP library loaded when the model is unloaded, since its threads outlive the
 * model; and remember the process, since they do not outlive a fork. */
void threads_opened(void);

#endif
