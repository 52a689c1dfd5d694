/* Calls that return before the device has executed them. Empty in runtimes for processors.
 *
 * A call with a stream of the caller begins as a flight, which holds the sets of weights and state
 * that the call uses. At its end the flight departs: it gets a mark behind the call's work, and a
 * copy of the call's record. It lands when somebody finds that the device has passed the mark.
 * Flights of one stream land in order. The use of the instance's state is the stream's: the
 * strongest of its calls in flight, until none is left. */
#include "instance_priv.h"

#ifdef WEFT_DEVICES
#include <pthread.h>

/* A stream of callers. */
typedef struct Stream {
	void *stream;
	int32_t held;   /* StateUse, as a term of WeftInstance.users; 0: none */
	int32_t within; /* calls on threads that use the state: readers, or -1: a writer */
	Flight *first, *last; /* that have departed */
	uint32_t calls;       /* begun and not landed */
	WeftStatus told;      /* the first failure that nobody was told */
	struct Stream *next;
} Stream;

struct Flight {
	Stream *of;
	const WeftEntry *entry;
	Use use;
	void *mark;         /* the driver's; NULL: none yet */
	WeftRecord *record; /* memory of the host for copies */
	bool departed, recorded, landed;
	uint32_t waiters; /* threads that wait for the mark */
	Flight *next;     /* of the stream, or of those that are not used */
};

typedef struct Flights {
	pthread_mutex_t lock;
	Stream *stream;
	Flight *spare;
} Flights;

void flights_open(WeftInstance *in)
{
	in->flights = in->driver && in->driver->mark ? calloc(1, sizeof *in->flights) : NULL;
	if (in->flights)
		pthread_mutex_init(&in->flights->lock, NULL);
}

static void flight_free(const WeftInstance *in, Flight *f)
{
	const WeftDriver *v = in->driver;
	if (f->mark)
		v->unmark(v->self, f->mark);
	v->host_free(v->self, f->record);
	free(f);
}

/* ---- landing ---- */

/* Gives back what the flight holds; its failure becomes the stream's. */
static void land(WeftInstance *in, Flight *f, const WeftStatus *failed)
{
	Stream *s = f->of;
	if (s->told.code == WEFT_OK && failed && failed->code != WEFT_OK)
		s->told = *failed;
	else if (s->told.code == WEFT_OK && f->recorded && f->record->id)
		check_failed(&s->told, f->entry, f->record->id, f->record->value);
	use_drop(in, &f->use);
	if (--s->calls == 0 && s->held) {
		instance_leave(in, (StateUse)s->held);
		s->held = 0;
	}
	f->landed = true;
	if (f->waiters)
		return; /* the last of them keeps it */
	f->next = in->flights->spare;
	in->flights->spare = f;
}

/* Lands the flights of a stream whose marks the device has passed. */
static void land_stream(WeftInstance *in, Stream *s, bool wait)
{
	const WeftDriver *v = in->driver;
	for (Flight *f; (f = s->first);) {
		WeftStatus failed = {0};
		bool done = false;
		if (v->passed(v->self, f->mark, wait, &done, &failed) == WEFT_OK && !done)
			return;
		s->first = f->next;
		land(in, f, &failed);
	}
}

void flights_land(WeftInstance *in)
{
	if (!in->flights)
		return;
	pthread_mutex_lock(&in->flights->lock);
	for (Stream *s = in->flights->stream; s; s = s->next)
		land_stream(in, s, false);
	pthread_mutex_unlock(&in->flights->lock);
}

void flights_close(WeftInstance *in)
{
	Flights *all = in->flights;
	if (!all)
		return;
	for (Stream *s; (s = all->stream); free(s)) {
		land_stream(in, s, true);
		all->stream = s->next;
	}
	for (Flight *f; (f = all->spare);) {
		all->spare = f->next;
		flight_free(in, f);
	}
	pthread_mutex_destroy(&all->lock);
	free(all);
	in->flights = NULL;
}

/* ---- beginning ---- */

static Stream *stream_of(Flights *all, void *stream)
{
	Stream *s = all->stream;
	while (s && s->stream != stream)
		s = s->next;
	if (!s && (s = calloc(1, sizeof *s))) {
		s->stream = stream;
		s->next = all->stream;
		all->stream = s;
	}
	return s;
}

static Flight *flight_new(const WeftInstance *in)
{
	Flight *f = in->flights->spare;
	if (f) {
		in->flights->spare = f->next;
		return f;
	}
	f = calloc(1, sizeof *f);
	if (f && !(f->record = in->driver->host_alloc(in->driver->self, sizeof *f->record)))
		return free(f), NULL;
	return f;
}

/* Makes the stream's use of the state at least `as`. Calls of other threads with this stream have
 * given it their work, so a writer would come between. */
static int hold(WeftInstance *in, Stream *s, int32_t as, WeftStatus *status)
{
	int32_t alone = s->held;
	if (as == STATE_WRITE ? s->within != 0 : s->within < 0)
		return weft_fail(status, WEFT_ERR_BUSY, "another call uses the instance");
	if (!s->held)
		TRY(instance_try(in, (StateUse)as, status));
	else if (as == STATE_WRITE && s->held == STATE_READ &&
		 !atomic_compare_exchange_strong(&in->calls->users, &alone, STATE_WRITE))
		return weft_fail(status, WEFT_ERR_BUSY,
				 "calls with other streams use the instance");
	s->held = s->held == STATE_WRITE ? STATE_WRITE : as;
	s->within += as == STATE_WRITE ? -1 : 1;
	return WEFT_OK;
}

/* Tells a failure once. */
static int tell(Stream *s, WeftStatus *status)
{
	const int code = s->told.code;
	if (code != WEFT_OK)
		weft_fail(status, code, "an earlier call: %.480s", s->told.message);
	s->told.code = WEFT_OK;
	return code;
}

static int begin_locked(WeftInstance *in, const WeftEntry *e, void *stream, Use *u,
			WeftStatus *status)
{
	Flights *all = in->flights;
	for (Stream *s = all->stream; s; s = s->next)
		land_stream(in, s, false);
	Stream *s = stream_of(all, stream);
	if (s)
		TRY(tell(s, status));
	Flight *f = s ? flight_new(in) : NULL;
	if (!f)
		return weft_fail(status, WEFT_ERR_MEMORY, "no memory for a call on %s",
				 in->driver->name);
	int code = u->as ? hold(in, s, u->as, status) : WEFT_OK;
	if (code != WEFT_OK) {
		f->next = all->spare;
		all->spare = f;
		return code;
	}
	*f = (Flight){.of = s, .entry = e, .mark = f->mark, .record = f->record};
	s->calls++;
	u->flight = f;
	return WEFT_OK;
}

int flight_begin(WeftInstance *in, const WeftEntry *e, void *stream, Use *u, WeftStatus *status)
{
	pthread_mutex_lock(&in->flights->lock);
	int code = begin_locked(in, e, stream, u, status);
	pthread_mutex_unlock(&in->flights->lock);
	return code;
}

/* ---- ending ---- */

int flight_depart(DeviceCall *d, WeftStatus *status)
{
	const WeftDriver *v = d->driver;
	Flight *f = d->flight;
	f->recorded = d->recorded;
	if (d->recorded)
		v->copy(v->self, f->record, d->record, sizeof *f->record, WEFT_TO_HOST, d->stream);
	int code = v->mark(v->self, &f->mark, d->stream, status);
	f->departed = code == WEFT_OK;
	if (!f->departed) {
		v->wait(v->self, d->stream, NULL);
		d->flight = NULL;
	}
	return code;
}

void flight_end(WeftInstance *in, const Use *u)
{
	Flight *f = u->flight;
	Stream *s = f->of;
	pthread_mutex_lock(&in->flights->lock);
	f->use = *u;
	if (u->as)
		s->within -= u->as == STATE_WRITE ? -1 : 1;
	if (!f->departed)
		land(in, f, NULL);
	else if (s->first)
		s->last = s->last->next = f;
	else
		s->first = s->last = f;
	pthread_mutex_unlock(&in->flights->lock);
}

/* ---- waiting ---- */

/* Waits until the last flight of the stream has landed; others may go on meanwhile. */
static void wait_for(WeftInstance *in, Stream *s)
{
	const WeftDriver *v = in->driver;
	Flight *f = s->first ? s->last : NULL;
	bool done;
	if (!f)
		return;
	f->waiters++;
	pthread_mutex_unlock(&in->flights->lock);
	v->passed(v->self, f->mark, true, &done, NULL); /* landing tells */
	pthread_mutex_lock(&in->flights->lock);
	land_stream(in, s, false);
	if (--f->waiters == 0 && f->landed) {
		f->next = in->flights->spare;
		in->flights->spare = f;
	}
}

static int wait_locked(WeftInstance *in, const WeftContext *c, WeftStatus *status)
{
	bool busy = false;
	for (Stream *s = in->flights->stream; s; s = s->next) {
		if (c->stream && c->stream != s->stream)
			continue;
		land_stream(in, s, false);
		if (s->first && !(c->flags & WEFT_POLL))
			wait_for(in, s);
		TRY(tell(s, status));
		busy = busy || (s->first && c->flags & WEFT_POLL);
	}
	return busy ? weft_fail(status, WEFT_ERR_BUSY, "the device has not executed all calls")
		    : WEFT_OK;
}

int weft_rt_wait(WeftInstance *in, const WeftContext *given, WeftStatus *status)
{
	WeftContext c;
	status_clear(status);
	if (!in)
		return weft_fail(status, WEFT_ERR_ARGUMENT, "wait: no instance given");
	TRY(take_context(&c, given, "wait", status));
	if (!in->flights)
		return WEFT_OK;
	pthread_mutex_lock(&in->flights->lock);
	int code = wait_locked(in, &c, status);
	pthread_mutex_unlock(&in->flights->lock);
	return code;
}
#endif
