/* Ranks of one machine (weft_comm.h). Between each two ranks and in each direction there is a ring
 * of bytes in memory that all ranks share: of one process, or of /dev/shm. A sender copies into it,
 * and the receiver out of it, while they wait. A message is the number of its bytes and these
 * bytes.
 *
 * Exchanges of one rank are executed in their order. A rank that waits looks for some microseconds
 * whether bytes move, and then sleeps until another rank has moved some. A process holds a lock of
 * the shared file, which ends with the process, however it ends. */
#include "weft_comm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 64, MOST_RANKS = 1024, MOST_PENDING = 64 };
/* Bytes of a ring: at most what caches of two processors share well, of many ranks less. */
enum { MOST_RING = 1 << 20, LEAST_RING = 32 << 10, ALL_RINGS = 64 << 20 };
enum { SPIN = 2000, SLEEP_NS = 20000000 };

/* Bytes from one rank to another. The counts are of all bytes ever. */
typedef struct {
	_Alignas(LINE) _Atomic uint64_t written;
	_Alignas(LINE) _Atomic uint64_t read;
	_Alignas(LINE) char byte[];
} Ring;

typedef struct {
	_Atomic uint64_t made; /* MADE: the memory is ready */
	int32_t ranks;
	_Atomic int32_t joined; /* ranks that are, or were, there */
	_Atomic int32_t left;   /* ranks that have closed */
	_Atomic int32_t ended;  /* 0: no; 1: a rank writes `why`; 2: all ranks fail with it */
	char why[400];
	_Atomic int32_t pid[MOST_RANKS];
	_Atomic int32_t gone[MOST_RANKS]; /* 1: has closed */
	struct {
		_Alignas(LINE) _Atomic uint32_t rung; /* changes when a rank wakes this one */
		_Atomic uint32_t sleeps;              /* 1: wants to be woken */
	} bell[MOST_RANKS];
} Shared;

#define MADE 0x776566742d636f6dull

/* One direction of an exchange with one rank. */
typedef struct {
	char *data;
	uint64_t bytes;
} Part;

typedef struct {
	Part *give, *take; /* by rank */
	int32_t left;      /* parts that are not complete */
} Pending;

/* Where a rank is in its exchanges with another one. */
typedef struct {
	int64_t exchange; /* whose message is next, from 1 */
	uint64_t done;    /* bytes of it, those of its length included */
	uint64_t length;  /* what the sender says */
} Place;

struct WeftRank {
	WeftComm comm;
	Shared *shared;
	char *ring;    /* [from * ranks + to], of Ring and `room` bytes each */
	uint64_t room; /* a power of two */
	size_t bytes;  /* of the memory */
	int file;      /* -1: threads of one process */
	double timeout;
	Place *give, *take;            /* by rank */
	int64_t begun, complete;       /* exchanges: the last of each */
	Pending pending[MOST_PENDING]; /* exchange k: [k % MOST_PENDING] */
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int told(WeftStatus *s, int code, const char *why)
{
	if (s) {
		s->code = code;
		snprintf(s->message, sizeof s->message, "%s", why);
	}
	return code;
}

/* ---- the end of a job ---- */

/* Makes all ranks fail with the sentence, unless they do with another one. */
static void end_all(Shared *s, const char *why)
{
	int32_t none = 0;
	if (!atomic_compare_exchange_strong(&s->ended, &none, 1))
		return;
	snprintf(s->why, sizeof s->why, "%s", why);
	atomic_store_explicit(&s->ended, 2, memory_order_release);
	/* Ranks that sleep wake up in a while by themselves. */
}

static int fails(const WeftRank *r, WeftStatus *status)
{
	while (atomic_load_explicit(&r->shared->ended, memory_order_acquire) != 2)
		sched_yield();
	return told(status, WEFT_ERR_COMM, r->shared->why);
}

/* Whether the process of another rank is there: it holds its lock. */
static bool is_there(const WeftRank *r, int32_t other)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = other, .l_len = 1};
	if (atomic_load(&r->shared->gone[other]))
		return false;
	return r->file < 0 || fcntl(r->file, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/* Whether a rank that this one waits for has ended, or has not come since that time; the sentence
 * that says so is why[n]. */
static bool waits_in_vain(const WeftRank *r, double since, char *why, size_t n)
{
	const bool late = now() - since > r->timeout;
	for (int32_t k = 0; k < r->comm.ranks; k++) {
		const bool wanted =
			r->give[k].exchange <= r->begun || r->take[k].exchange <= r->begun;
		const bool there = k == r->comm.rank || !wanted || is_there(r, k);
		const int pid = atomic_load(&r->shared->pid[k]);
		if (there && (!late || !wanted || k == r->comm.rank))
			continue;
		if (there)
			snprintf(why, n,
				 "rank %d (process %d) did not come within %.3g s, and rank %d "
				 "waits for it",
				 k, pid, r->timeout, r->comm.rank);
		else
			snprintf(why, n, "rank %d (process %d) has ended, and rank %d waits for it",
				 k, pid, r->comm.rank);
		return true;
	}
	return false;
}

/* ---- bytes ---- */

static Ring *ring_of(const WeftRank *r, int32_t from, int32_t to)
{
	const size_t each = sizeof(Ring) + r->room;
	return (Ring *)(void *)(r->ring +
				((size_t)from * (size_t)r->comm.ranks + (size_t)to) * each);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Copies as many of n bytes into a ring as there is room. Returns their number. */
static uint64_t ring_put(Ring *g, uint64_t size, const char *data, uint64_t n)
{
	const uint64_t at = atomic_load_explicit(&g->written, memory_order_relaxed);
	const uint64_t room = size - (at - atomic_load(&g->read));
	const uint64_t m = least(n, room), first = least(m, size - at % size);
	if (!m)
		return 0;
	memcpy(g->byte + at % size, data, first);
	memcpy(g->byte, data + first, m - first);
	atomic_store(&g->written, at + m);
	return m;
}

/* Copies as many of n bytes out of a ring as there are. Returns their number. */
static uint64_t ring_get(Ring *g, uint64_t size, char *data, uint64_t n)
{
	const uint64_t at = atomic_load_explicit(&g->read, memory_order_relaxed);
	const uint64_t there = atomic_load(&g->written) - at;
	const uint64_t m = least(n, there), first = least(m, size - at % size);
	if (!m)
		return 0;
	memcpy(data, g->byte + at % size, first);
	memcpy(data + first, g->byte, m - first);
	atomic_store(&g->read, at + m);
	return m;
}

/* Wakes a rank, if it sleeps: bytes were moved. */
static void wake(Shared *s, int32_t rank)
{
	if (!atomic_exchange(&s->bell[rank].sleeps, 0))
		return;
	atomic_fetch_add(&s->bell[rank].rung, 1);
	syscall(SYS_futex, &s->bell[rank].rung, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static Pending *pending(WeftRank *r, int64_t exchange)
{
	return &r->pending[exchange % MOST_PENDING];
}

/* Goes to the next exchange in which bytes go that way. */
static void place_next(WeftRank *r, Place *p, bool give, int32_t other)
{
	for (;; p->exchange++) {
		Pending *e = pending(r, p->exchange);
		if (p->exchange > r->begun || (give ? e->give : e->take)[other].bytes)
			return;
	}
}

/* Moves bytes of one direction. Returns whether any were moved. */
static bool advance(WeftRank *r, int32_t other, bool give)
{
	Place *p = give ? &r->give[other] : &r->take[other];
	bool any = false;
	for (place_next(r, p, give, other); p->exchange <= r->begun;
	     place_next(r, p, give, other)) {
		Pending *e = pending(r, p->exchange);
		Part *part = give ? &e->give[other] : &e->take[other];
		Ring *g = give ? ring_of(r, r->comm.rank, other) : ring_of(r, other, r->comm.rank);
		const bool head = p->done < sizeof p->length;
		if (give && !p->done)
			p->length = part->bytes;
		char *data = head ? (char *)&p->length + p->done
				  : part->data + (p->done - sizeof p->length);
		const uint64_t n = head ? sizeof p->length - p->done
					: part->bytes + sizeof p->length - p->done;
		const uint64_t m =
			give ? ring_put(g, r->room, data, n) : ring_get(g, r->room, data, n);
		p->done += m;
		any |= m > 0;
		if (p->done == sizeof p->length && p->length != part->bytes) {
			char why[200];
			snprintf(why, sizeof why,
				 "rank %d gives %llu bytes to rank %d, which expects %llu", other,
				 (unsigned long long)p->length, r->comm.rank,
				 (unsigned long long)part->bytes);
			end_all(r->shared, why);
			return false;
		}
		if (p->done < part->bytes + sizeof p->length) {
			if (m < n)
				return any;
			continue;
		}
		p->done = 0;
		p->exchange++;
		e->left--;
	}
	return any;
}

static bool progress(WeftRank *r)
{
	bool any = false;
	for (int32_t k = 1; k < r->comm.ranks; k++) {
		const int32_t other = (r->comm.rank + k) % r->comm.ranks;
		const bool gave = advance(r, other, true), took = advance(r, other, false);
		if (gave || took)
			wake(r->shared, other);
		any |= gave || took;
	}
	while (r->complete < r->begun && !pending(r, r->complete + 1)->left)
		r->complete++;
	return any;
}

/* ---- WeftComm ---- */

static bool has_ended(const WeftRank *r)
{
	return atomic_load_explicit(&r->shared->ended, memory_order_relaxed) != 0;
}

/* Sleeps until a rank moves bytes, or for a while, unless bytes move now. */
static void rest(WeftRank *r)
{
	Shared *s = r->shared;
	const int32_t self = r->comm.rank;
	const struct timespec most = {.tv_nsec = SLEEP_NS};
	const uint32_t rung = atomic_load(&s->bell[self].rung);
	atomic_store(&s->bell[self].sleeps, 1);
	if (!progress(r))
		syscall(SYS_futex, &s->bell[self].rung, FUTEX_WAIT, rung, &most, NULL, 0);
	atomic_store(&s->bell[self].sleeps, 0);
}

/* Waits until exchange number `last` is complete. */
static int finish(WeftRank *r, int64_t last, WeftStatus *status)
{
	double since = now(), looked = since;
	char why[200];
	for (uint32_t idle = 0; r->complete < last;) {
		if (has_ended(r))
			return fails(r, status);
		if (progress(r)) {
			idle = 0;
			continue;
		}
		if (++idle == 1)
			since = now();
		if (idle < SPIN)
			continue;
		rest(r);
		if (now() - looked < 0.02)
			continue;
		looked = now();
		/* What a rank gave before it ended is there. */
		if (waits_in_vain(r, since, why, sizeof why) && !progress(r))
			end_all(r->shared, why);
	}
	return WEFT_OK;
}

static int64_t local_exchange(void *user, const void *const *to, const uint64_t *to_bytes,
			      void *const *from, const uint64_t *from_bytes, WeftStatus *status)
{
	WeftRank *r = user;
	const int32_t self = r->comm.rank;
	if (has_ended(r)) {
		fails(r, status);
		return 0;
	}
	if (r->begun - r->complete == MOST_PENDING && finish(r, r->complete + 1, status))
		return 0;
	if (to_bytes[self] != from_bytes[self]) {
		told(status, WEFT_ERR_COMM, "a rank gives itself other bytes than it takes");
		return 0;
	}
	if (to_bytes[self])
		memmove(from[self], to[self], to_bytes[self]);
	Pending *e = pending(r, r->begun + 1);
	e->left = 0;
	for (int32_t k = 0; k < r->comm.ranks; k++) {
		e->give[k] = (Part){(char *)(uintptr_t)to[k], k == self ? 0 : to_bytes[k]};
		e->take[k] = (Part){from[k], k == self ? 0 : from_bytes[k]};
		e->left += (e->give[k].bytes > 0) + (e->take[k].bytes > 0);
	}
	r->begun++;
	progress(r);
	return r->begun;
}

static int local_wait(void *user, int64_t handle, WeftStatus *status)
{
	return finish(user, handle, status);
}

static int local_poll(void *user)
{
	progress(user);
	return has_ended(user) ? WEFT_ERR_COMM : WEFT_OK;
}

static void local_abort(void *user, const char *why)
{
	const WeftRank *r = user;
	char text[400];
	snprintf(text, sizeof text, "rank %d: %.380s", r->comm.rank, why);
	end_all(r->shared, text);
}

/* ---- ranks ---- */

static uint64_t ring_room(int32_t ranks)
{
	uint64_t room = MOST_RING;
	while (room > LEAST_RING && room * (uint64_t)ranks * (uint64_t)ranks > ALL_RINGS)
		room /= 2;
	return room;
}

static size_t shared_bytes(int32_t ranks, size_t *rings)
{
	*rings = (sizeof(Shared) + LINE - 1) / LINE * LINE;
	return *rings + (size_t)ranks * (size_t)ranks * (sizeof(Ring) + ring_room(ranks));
}

/* Makes a rank in shared memory, which it owns from here on; NULL if there is no memory. */
static WeftRank *rank_new(Shared *s, int32_t rank, int32_t ranks, double timeout)
{
	const size_t n = (size_t)ranks;
	WeftRank *r = calloc(1, sizeof *r);
	char *room = calloc(n, 2 * sizeof(Place) + MOST_PENDING * 2 * sizeof(Part));
	if (!r || !room) {
		free(r);
		free(room);
		return NULL;
	}
	size_t rings;
	*r = (WeftRank){.comm = {.size = sizeof r->comm,
				 .rank = rank,
				 .ranks = ranks,
				 .exchange = local_exchange,
				 .wait = local_wait,
				 .poll = local_poll,
				 .abort = local_abort,
				 .user = r},
			.shared = s,
			.bytes = shared_bytes(ranks, &rings),
			.file = -1,
			.timeout = timeout,
			.give = (Place *)(void *)room};
	r->take = r->give + n;
	Part *part = (Part *)(r->take + n);
	for (uint32_t k = 0; k < MOST_PENDING; k++, part += 2 * n)
		r->pending[k] = (Pending){part, part + n, 0};
	for (size_t k = 0; k < 2 * n; k++)
		r->give[k].exchange = 1;
	r->ring = (char *)s + rings;
	r->room = ring_room(ranks);
	atomic_store(&s->pid[rank], (int32_t)getpid());
	return r;
}

/* Frees a rank and leaves the memory that it shares; NULL: does nothing. */
static void rank_free(WeftRank *r)
{
	if (r)
		free(r->give);
	free(r);
}

static bool are_sane(int32_t rank, int32_t ranks, double timeout, WeftStatus *status)
{
	if (ranks >= 1 && ranks <= MOST_RANKS && rank >= 0 && rank < ranks && timeout > 0)
		return true;
	char why[160];
	snprintf(why, sizeof why,
		 "rank %d of %d with a time-out of %g s: expected 0 <= rank < ranks <= %d, and a "
		 "time "
		 "above 0",
		 rank, ranks, timeout, MOST_RANKS);
	told(status, WEFT_ERR_ARGUMENT, why);
	return false;
}

int weft_ranks_threads(int32_t ranks, double timeout, WeftRank **rank, WeftStatus *status)
{
	size_t rings;
	if (!are_sane(0, ranks, timeout, status))
		return WEFT_ERR_ARGUMENT;
	const size_t bytes = shared_bytes(ranks, &rings);
	Shared *s = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED)
		return told(status, WEFT_ERR_MEMORY, "no memory for ranks");
	s->ranks = ranks;
	atomic_store(&s->joined, ranks);
	for (int32_t k = 0; k < ranks; k++) {
		rank[k] = rank_new(s, k, ranks, timeout);
		if (rank[k])
			continue;
		while (k-- > 0)
			rank_free(rank[k]);
		munmap(s, bytes);
		return told(status, WEFT_ERR_MEMORY, "no memory for ranks");
	}
	return WEFT_OK;
}

const WeftComm *weft_rank_comm(const WeftRank *r)
{
	return &r->comm;
}

void weft_rank_close(WeftRank *r)
{
	if (!r)
		return;
	Shared *s = r->shared;
	atomic_store(&s->gone[r->comm.rank], 1);
	const bool last = atomic_fetch_add(&s->left, 1) + 1 == s->ranks;
	if (r->file >= 0 || last)
		munmap(s, r->bytes);
	if (r->file >= 0)
		close(r->file);
	rank_free(r);
}

/* ---- processes ---- */

static void complain(WeftStatus *status, const char *name, const char *what, int error)
{
	char why[300];
	snprintf(why, sizeof why, "%.100s: %s%s%s", name, what, error ? ": " : "",
		 error ? strerror(error) : "");
	told(status, WEFT_ERR_COMM, why);
}

/* Rank 0 makes the memory. Returns the file, or -1 after an error. */
static int memory_make(const char *name, size_t bytes, WeftStatus *status)
{
	const int file = shm_open(name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	if (file < 0) {
		complain(status, name,
			 errno == EEXIST ? "another job has this name" : "no shared memory",
			 errno == EEXIST ? 0 : errno);
		return -1;
	}
	const int error = posix_fallocate(file, 0, (off_t)bytes);
	if (!error)
		return file;
	char what[100];
	snprintf(what, sizeof what, "no %zu bytes of shared memory (/dev/shm)", bytes);
	complain(status, name, what, error);
	shm_unlink(name);
	close(file);
	return -1;
}

/* Other ranks wait for it. Returns the file, or -1 after an error. */
static int memory_find(const char *name, size_t bytes, double until, WeftStatus *status)
{
	for (;; usleep(1000)) {
		const int file = shm_open(name, O_RDWR | O_CLOEXEC, 0);
		off_t size = file < 0 ? -1 : lseek(file, 0, SEEK_END);
		if (size >= (off_t)bytes)
			return file;
		if (file >= 0)
			close(file);
		if (now() < until)
			continue;
		complain(status, name,
			 size > 0 ? "the job has another number of ranks"
				  : "rank 0 did not begin within the time-out",
			 0);
		return -1;
	}
}

/* Waits until all ranks have joined. */
static bool all_join(WeftRank *r, const char *name, double until, WeftStatus *status)
{
	Shared *s = r->shared;
	atomic_fetch_add(&s->joined, 1);
	while (atomic_load(&s->joined) < s->ranks && now() < until && !has_ended(r))
		usleep(500);
	if (atomic_load(&s->joined) >= s->ranks)
		return true;
	char what[100];
	snprintf(what, sizeof what, "%d of %d ranks began within the time-out",
		 atomic_load(&s->joined), s->ranks);
	complain(status, name, what, 0);
	return false;
}

/* Maps the memory, and makes a rank in it. Returns NULL after an error; the file is then closed. */
static WeftRank *rank_map(int file, const char *name, int32_t rank, int32_t ranks, double timeout,
			  WeftStatus *status)
{
	size_t rings;
	const double until = now() + timeout;
	const size_t bytes = shared_bytes(ranks, &rings);
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
	Shared *s = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	WeftRank *r = NULL;
	if (s != MAP_FAILED) {
		if (!rank) {
			s->ranks = ranks;
			atomic_store(&s->made, MADE);
		}
		while (atomic_load(&s->made) != MADE && now() < until)
			usleep(200);
		r = s->ranks == ranks ? rank_new(s, rank, ranks, timeout) : NULL;
	}
	if (!r || fcntl(file, F_OFD_SETLK, &lock) != 0) {
		complain(status, name,
			 r ? "a process has this rank" : "the job has another number of ranks", 0);
		if (s != MAP_FAILED)
			munmap(s, bytes);
		rank_free(r);
		close(file);
		return NULL;
	}
	r->file = file;
	return r;
}

WeftRank *weft_rank_open(const char *name, int32_t rank, int32_t ranks, double timeout,
			 WeftStatus *status)
{
	size_t rings;
	if (!are_sane(rank, ranks, timeout, status))
		return NULL;
	const double until = now() + timeout;
	const size_t bytes = shared_bytes(ranks, &rings);
	const int file =
		rank ? memory_find(name, bytes, until, status) : memory_make(name, bytes, status);
	WeftRank *r = file < 0 ? NULL : rank_map(file, name, rank, ranks, timeout, status);
	const bool all = r && all_join(r, name, until, status);
	if (!rank && file >= 0)
		shm_unlink(name); /* whoever is to have it has it */
	if (!all) {
		weft_rank_close(r);
		return NULL;
	}
	return r;
}
