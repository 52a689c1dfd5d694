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
typedef struct {
	const WeftEntry *entry;
	void *const *buf;
	const int64_t *slot;
	WeftProfile profile;
	void *profile_user;
	WeftStatus *status;      /* of the caller; may be NULL */
	int spin;                /* times to look before sleeping */
	_Atomic int asserted;    /* 1: somebody is writing the status and the next */
	uint32_t asserted_phase;
	_Atomic int recording;   /* 1: somebody writes the next three */
	int failed;              /* the check that failed in the first phase and there in the first task; 0: none */
	uint32_t failed_phase;
	int64_t failure[WEFT_FAILURE];
	_Alignas(64) _Atomic uint32_t arrived;
	_Alignas(64) _Atomic uint32_t generation;
	_Atomic uint32_t sleepers;
	RegionLane lane[WEFT_MAX_THREADS];
} RegionShared;

/* One thread's view of it. */
struct WeftRegion {
	RegionShared *shared;
	int32_t i, n;
	uint32_t phase;
	int64_t failure[WEFT_FAILURE]; /* of this thread's last failure */
};

/* Every function of the table begins with this: a status tells of the last call only. */
static inline void status_clear(WeftStatus *s)
{
	if (s)
		s->code = WEFT_OK, s->message[0] = 0;
}

/* Execute the entry's run_fn on n threads of the provider. Returns the status code. */
int region_run(RegionShared *, const WeftThreads *, int32_t n);

/* Return soon after *p != old, at the latest when woken by wait_wake; may return early. */
void wait_sleep(_Atomic uint32_t *p, uint32_t old);
void wait_wake(_Atomic uint32_t *p);
void wait_pause(void);

/* The default provider; never NULL, needs no freeing. */
const WeftThreads *threads_default(void);
/* Processors this process may use. */
int32_t threads_ncpu(void);
/* When a model is opened: keep the OpenMP library loaded when the model is unloaded, since its threads outlive the
 * model; and remember the process, since they do not outlive a fork. */
void threads_opened(void);

#endif
