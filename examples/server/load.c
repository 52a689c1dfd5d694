/* Requests at random times, whatever the server does (an open loop), and how long they took:
 *
 *     cc -O2 load.c -o load -lm
 *     ./load PORT BYTES --limit                -- 32 connections without pauses: the server's limit
 *     ./load PORT BYTES RATE SECONDS [DEADLINE_MS]
 *
 * Times count from the moment when a request was due, so a request that waits for a free connection
 * is as slow as its user finds it. Prints one line:
 *
 *     rate 800.0 sent 4000 answered 4000 refused 0 late 0 failed 0 p50 1.21 p99 3.02 max 4.10 ms
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 512, BUFFER = 1 << 16 };

typedef struct {
	int fd; /* -1: not open */
	bool busy;
	int64_t due;
	size_t n, want; /* bytes of the answer that are there; of all of it, 0: unknown */
	int status;
	char in[BUFFER];
} Connection;

typedef struct {
	int port, epoll;
	char *request;
	size_t nrequest;
	Connection *c;
	int limit, busy;
	double *ms;
	size_t answered, refused, late, failed, sent, room;
} Load;

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool open_connection(Load *l, Connection *c)
{
	const struct sockaddr_in at = {.sin_family = AF_INET,
				       .sin_port = htons((uint16_t)l->port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int one = 1;
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
	c->fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(c->fd, (const struct sockaddr *)&at, sizeof at)) {
		close(c->fd);
		c->fd = -1;
		return false;
	}
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return epoll_ctl(l->epoll, EPOLL_CTL_ADD, c->fd, &e) == 0;
}

static void end_request(Load *l, Connection *c, bool keeps)
{
	if (c->status == 200 && l->answered < l->room)
		l->ms[l->answered++] = 1e-6 * (double)(now_ns() - c->due);
	else if (c->status == 503)
		l->refused++;
	else if (c->status == 504)
		l->late++;
	else
		l->failed++;
	l->busy -= c->busy;
	c->busy = false;
	c->n = c->want = 0;
	if (!keeps) {
		close(c->fd);
		c->fd = -1;
	}
}

/* Sends a request that was due at that time. Returns false if all connections are busy. */
static bool send_request(Load *l, int64_t due)
{
	for (int k = 0; k < l->limit; k++) {
		Connection *c = &l->c[k];
		if (c->busy)
			continue;
		c->due = due;
		c->status = 0;
		c->busy = true;
		l->busy++;
		l->sent++;
		if ((c->fd < 0 && !open_connection(l, c)) ||
		    send(c->fd, l->request, l->nrequest, MSG_NOSIGNAL) != (ssize_t)l->nrequest)
			end_request(l, c, false);
		return true;
	}
	return false;
}

static void receive(Load *l, Connection *c)
{
	const ssize_t n = recv(c->fd, c->in + c->n, BUFFER - 1 - c->n, 0);
	if (n <= 0) {
		end_request(l, c, false);
		return;
	}
	c->n += (size_t)n;
	c->in[c->n] = 0;
	const char *end = memmem(c->in, c->n, "\r\n\r\n", 4),
		   *length = strstr(c->in, "Content-Length: ");
	if (!c->want && end && length) {
		c->want = (size_t)(end - c->in) + 4 + strtoull(length + 16, NULL, 10);
		c->status = atoi(c->in + 9);
	}
	if (c->want && c->n >= c->want)
		end_request(l, c, !strstr(c->in, "Connection: close"));
}

static void wait_until(Load *l, int64_t until)
{
	struct epoll_event e[64];
	const int64_t left = until - now_ns();
	const struct timespec t = {left > 0 ? left / 1000000000 : 0,
				   left > 0 ? left % 1000000000 : 0};
	const int n = epoll_pwait2(l->epoll, e, 64, &t, NULL);
	for (int k = 0; k < n; k++)
		receive(l, e[k].data.ptr);
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void report(Load *l, double seconds)
{
	qsort(l->ms, l->answered, sizeof *l->ms, compare);
	const size_t n = l->answered;
	printf("rate %.1f sent %zu answered %zu refused %zu late %zu failed %zu p50 %.3f p99 %.3f "
	       "max %.3f ms\n",
	       (double)n / seconds, l->sent, n, l->refused, l->late, l->failed,
	       n ? l->ms[n / 2] : 0, n ? l->ms[n * 99 / 100] : 0, n ? l->ms[n - 1] : 0);
}

int main(int argc, char **argv)
{
	if (argc != 4 && argc != 5 && argc != 6)
		return fprintf(stderr,
			       "usage: load PORT BYTES --limit | RATE SECONDS [DEADLINE_MS]\n"),
		       2;
	static Load l;
	const size_t bytes = strtoull(argv[2], NULL, 10);
	const bool limit = argc == 4;
	const double rate = limit ? 1e6 : atof(argv[3]), seconds = limit ? 3 : atof(argv[4]);
	l.port = atoi(argv[1]);
	l.limit = limit ? 32 : CONNECTIONS;
	l.epoll = epoll_create1(0);
	l.c = calloc(CONNECTIONS, sizeof *l.c);
	l.room = (size_t)(limit ? 1e6 : rate * seconds * 1.2 + 1000);
	l.ms = malloc(l.room * sizeof *l.ms);
	l.request = calloc(bytes + 512, 1);
	if (!l.c || !l.ms || !l.request)
		return fprintf(stderr, "no memory\n"), 1;
	l.nrequest = (size_t)snprintf(l.request, 512,
				      "POST /predict HTTP/1.1\r\nContent-Length: %zu\r\n%s%s%s\r\n",
				      bytes, argc == 6 ? "X-Deadline-Ms: " : "",
				      argc == 6 ? argv[5] : "", argc == 6 ? "\r\n" : "") +
		     bytes;
	for (int k = 0; k < CONNECTIONS; k++)
		l.c[k].fd = -1;
	srand48(1);
	const int64_t begin = now_ns(), end = begin + (int64_t)(seconds * 1e9);
	for (int64_t due = begin; due < end;) {
		if (now_ns() >= due && send_request(&l, limit ? now_ns() : due))
			due = limit ? now_ns() : due + (int64_t)(-1e9 * log(1 - drand48()) / rate);
		else
			wait_until(&l, now_ns() >= due ? now_ns() + 1000000 : due);
		if (limit && l.busy == l.limit)
			wait_until(&l, end);
	}
	const double spent = 1e-9 * (double)(now_ns() - begin);
	for (int64_t last = now_ns() + INT64_C(5000000000); l.busy && now_ns() < last;)
		wait_until(&l, last);
	l.failed += (size_t)l.busy;
	report(&l, spent);
	return 0;
}
