/* Ranks of one machine (weft_comm.h): threads and processes exchange what they should; those that
 * die, stop, leave or give other numbers of bytes make the others fail with a sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "weft_comm.h"

enum { RANKS = 8, ROUNDS = 40, MOST = 5000 };

/* ---- exchanges ---- */

/* Returns how many bytes rank `from` gives rank `to` in a round: some none, some more than a ring
 * holds. */
static uint64_t bytes_of(int round, int from, int to)
{
	const uint32_t x = (uint32_t)(round * 7919 + from * 104729 + to * 1299709) * 2654435761u;
	return x % 5 == 0 ? 0 : x % 31 == 1 ? 3000000 : x % MOST;
}

static unsigned char byte_of(int round, int from, int to, uint64_t k)
{
	return (unsigned char)(round + from * 3 + to * 5 + (int)(k % 251));
}

typedef struct {
	int64_t handle;
	void *give[RANKS], *take[RANKS];
	uint64_t gives[RANKS], takes[RANKS];
} Round;

static int64_t begin(const WeftComm *c, int round, Round *r, WeftStatus *status)
{
	for (int k = 0; k < c->ranks; k++) {
		r->gives[k] = bytes_of(round, c->rank, k);
		r->takes[k] = bytes_of(round, k, c->rank);
		r->give[k] = malloc(r->gives[k] + 1);
		r->take[k] = malloc(r->takes[k] + 1);
		for (uint64_t i = 0; i < r->gives[k]; i++)
			((unsigned char *)r->give[k])[i] = byte_of(round, c->rank, k, i);
	}
	return r->handle = c->exchange(c->user, (const void *const *)r->give, r->gives, r->take,
				       r->takes, status);
}

/* Waits for a round. Returns whether all bytes are as they should be. */
static bool end(const WeftComm *c, int round, Round *r, WeftStatus *status)
{
	bool right = r->handle > 0 && !c->wait(c->user, r->handle, status);
	for (int k = 0; k < c->ranks; k++) {
		for (uint64_t i = 0; right && i < r->takes[k]; i++)
			right = ((unsigned char *)r->take[k])[i] == byte_of(round, k, c->rank, i);
		free(r->give[k]);
		free(r->take[k]);
	}
	return right;
}

/* Two exchanges are in progress at any time. */
static bool exchange_all(const WeftComm *c, WeftStatus *status)
{
	Round r[2];
	bool right = begin(c, 0, &r[0], status) > 0;
	for (int round = 0; round < ROUNDS; round++) {
		if (round + 1 < ROUNDS)
			right &= begin(c, round + 1, &r[(round + 1) % 2], status) > 0;
		right &= end(c, round, &r[round % 2], status);
	}
	return right;
}

static void *thread_main(void *rank)
{
	WeftStatus status = {0};
	const bool right = exchange_all(weft_rank_comm(rank), &status);
	weft_rank_close(rank);
	return right ? rank : NULL;
}

static void test_threads(void **state)
{
	(void)state;
	WeftRank *rank[RANKS];
	pthread_t thread[RANKS];
	assert_int_equal(weft_ranks_threads(RANKS, 60, rank, NULL), WEFT_OK);
	for (int k = 0; k < RANKS; k++)
		assert_int_equal(pthread_create(&thread[k], NULL, thread_main, rank[k]), 0);
	for (int k = 0; k < RANKS; k++) {
		void *right;
		pthread_join(thread[k], &right);
		assert_non_null(right);
	}
}

/* ---- processes ---- */

static const char *job_name(const char *what)
{
	static char name[64];
	snprintf(name, sizeof name, "/weft-test-%d-%s", (int)getpid(), what);
	return name;
}

/* Runs a process as a rank; `said` has room for what went wrong. Returns whether all went as
 * it should. */
typedef bool Work(WeftRank *, WeftStatus *said);

/* Runs `work` in processes, with a time-out. Each one's message is said[k], shared memory. */
static void on_processes(const char *name, int ranks, double timeout, Work *work, WeftStatus *said)
{
	pid_t child[RANKS];
	for (int k = 0; k < ranks; k++) {
		child[k] = fork();
		if (child[k])
			continue;
		WeftRank *r = weft_rank_open(name, k, ranks, timeout, &said[k]);
		const bool right = r && work(r, &said[k]);
		weft_rank_close(r);
		_exit(!right);
	}
	for (int k = 0; k < ranks; k++) {
		int how;
		waitpid(child[k], &how, 0);
		if (WIFEXITED(how) && !WEXITSTATUS(how))
			said[k].message[0] = 0;
	}
}

static WeftStatus *shared_status(void)
{
	WeftStatus *said = mmap(NULL, RANKS * sizeof *said, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(said != MAP_FAILED);
	for (int k = 0; k < RANKS; k++)
		snprintf(said[k].message, sizeof said[k].message, "nothing was said");
	return said;
}

static bool exchange_some(WeftRank *r, WeftStatus *said)
{
	return exchange_all(weft_rank_comm(r), said);
}

static bool swap(WeftRank *r, uint64_t bytes, WeftStatus *said)
{
	const WeftComm *c = weft_rank_comm(r);
	char x[16] = {0}, y[16];
	const void *to[RANKS] = {0};
	void *from[RANKS] = {0};
	uint64_t gives[RANKS] = {0}, takes[RANKS] = {0};
	to[1 - c->rank] = x;
	from[1 - c->rank] = y;
	gives[1 - c->rank] = takes[1 - c->rank] = bytes;
	const int64_t handle = c->exchange(c->user, to, gives, from, takes, said);
	return handle > 0 && !c->wait(c->user, handle, said);
}

static bool die(WeftRank *r, WeftStatus *said)
{
	if (weft_rank_comm(r)->rank)
		raise(SIGKILL);
	return swap(r, 8, said);
}

/* A process that stops goes on when the other has given up. */
static bool stop(WeftRank *r, WeftStatus *said)
{
	if (weft_rank_comm(r)->rank)
		usleep(1500000);
	return swap(r, 8, said);
}

static bool give_up(WeftRank *r, WeftStatus *said)
{
	const WeftComm *c = weft_rank_comm(r);
	if (c->rank)
		c->abort(c->user, "the loss is NaN");
	return swap(r, 8, said);
}

static bool differ(WeftRank *r, WeftStatus *said)
{
	return swap(r, weft_rank_comm(r)->rank ? 8 : 12, said);
}

static void expect(const WeftStatus *said, int rank, const char *text)
{
	if (!strstr(said[rank].message, text))
		fail_msg("rank %d says \"%s\", expected \"%s\"", rank, said[rank].message, text);
}

static void test_processes(void **state)
{
	(void)state;
	WeftStatus *said = shared_status();
	on_processes(job_name("four"), 4, 30, exchange_some, said);
	for (int k = 0; k < 4; k++)
		assert_string_equal(said[k].message, "");
	munmap(said, RANKS * sizeof *said);
}

static void test_failures(void **state)
{
	(void)state;
	WeftStatus *said = shared_status();
	on_processes(job_name("die"), 2, 30, die, said);
	expect(said, 0, "rank 1 (process ");
	expect(said, 0, ") has ended, and rank 0 waits for it");
	on_processes(job_name("stop"), 2, 0.5, stop, said);
	expect(said, 0, ") did not come within 0.5 s, and rank 0 waits for it");
	expect(said, 1, ") did not come within 0.5 s, and rank 0 waits for it");
	on_processes(job_name("abort"), 2, 30, give_up, said);
	expect(said, 0, "rank 1: the loss is NaN");
	expect(said, 1, "rank 1: the loss is NaN");
	on_processes(job_name("differ"), 2, 30, differ, said);
	expect(said, 0, "which expects");
	expect(said, 1, "which expects");
	munmap(said, RANKS * sizeof *said);
}

static void test_joining(void **state)
{
	(void)state;
	WeftStatus status;
	const char *name = job_name("alone");
	assert_null(weft_rank_open(name, 0, 2, 0.1, &status));
	assert_non_null(strstr(status.message, "1 of 2 ranks began within the time-out"));
	assert_null(weft_rank_open(name, 1, 2, 0.1, &status));
	assert_non_null(strstr(status.message, "rank 0 did not begin within the time-out"));
	assert_null(weft_rank_open(name, 2, 2, 0.1, &status));
	assert_non_null(strstr(status.message, "expected 0 <= rank < ranks"));
	const int file = shm_open(name, O_CREAT | O_RDWR, 0600);
	assert_null(weft_rank_open(name, 0, 2, 0.1, &status));
	assert_non_null(strstr(status.message, "another job has this name"));
	close(file);
	shm_unlink(name);
	weft_rank_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_joining),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
