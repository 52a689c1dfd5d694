/* A server of one compiled model over HTTP: a bounded queue, batches, deadlines, metrics.
 *
 *     weft compile model.pt2 -o model.so        -- the first dimension of all inputs: the batch
 *     cc -O2 server.c batch.c -I../../include -o server -ldl -pthread
 *     ./server model.so --port 8080             -- 0: a port that is free
 *
 *     POST /predict    body: one row of each input, as bytes in memory order; answer: the same of
 *                      the outputs. Header "X-Deadline-Ms: 20": answered in this time, or 504.
 *     GET /metrics     counts and times in Prometheus' text format
 *     GET /health      200 while requests are taken
 *
 * 503: the queue is full; try again later. 422: the model refuses the values. SIGTERM finishes the
 * requests in the queue and ends; a second SIGTERM ends the call in progress, too.
 *
 * One thread (this file) has all connections, another one (batch.c) runs the model. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "batch.h"
#include "weft_file.h"

enum { HEAD = 4096, MOST_CONNECTIONS = 1024, EVENTS = 64, MOST_MS = 1000000000 };

typedef struct Connection {
	int fd;      /* -1: dropped */
	bool busy;   /* its request is in the queue: nothing is read */
	bool closed; /* by the client, while busy */
	bool keeps;  /* the connection stays open after the answer */
	bool writes; /* the answer is being sent: counted in Server.writing */
	bool drains; /* answered; what the client still sends is read, so that it sees the answer */
	char *in;    /* HEAD + in_bytes + 1 */
	size_t n;    /* bytes in it */
	char *out;   /* what is left to write */
	size_t nout, sent;
	Request request;
	struct Connection *next; /* in a list of the server */
	struct Connection *made; /* the one that was made before */
} Connection;

typedef struct {
	Batch batch;
	int epoll, listener, wake, signals;
	int64_t deadline; /* ns that a request may take; 0: any */
	bool stopping;
	int connections, busy, most;  /* connections: at most `most` */
	int writing;                  /* connections whose answer is being sent */
	Connection *all;              /* the last one that was made */
	Connection *_Atomic finished; /* requests that the batches' thread has answered */
	Connection *dropped, *spare;  /* dropped ones are spare after the events in progress */
	uint64_t refused;             /* 503 */
} Server;

/* ---- answers ---- */

static void watch(Server *s, Connection *c, uint32_t events)
{
	s->writing += !!(events & EPOLLOUT) - c->writes;
	c->writes = events & EPOLLOUT;
	struct epoll_event e = {.events = events, .data.ptr = c};
	epoll_ctl(s->epoll, EPOLL_CTL_MOD, c->fd, &e);
}

static void drop(Server *s, Connection *c)
{
	if (c->busy) { /* the batches' thread has the request */
		c->closed = true;
		epoll_ctl(s->epoll, EPOLL_CTL_DEL, c->fd, NULL);
		return;
	}
	close(c->fd);
	c->fd = -1;
	s->writing -= c->writes;
	c->writes = false;
	c->next = s->dropped;
	s->dropped = c;
	s->connections--;
}

/* Sends what is left. Drops the connection after an error; one that does not stay open ends when
 * the client closes its side. */
static void flush_answer(Server *s, Connection *c)
{
	while (c->sent < c->nout) {
		const ssize_t n = send(c->fd, c->out + c->sent, c->nout - c->sent, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN) {
			watch(s, c, EPOLLOUT);
			return;
		}
		if (n <= 0) {
			drop(s, c);
			return;
		}
		c->sent += (size_t)n;
	}
	c->nout = c->sent = 0;
	c->drains = !c->keeps || s->stopping;
	if (c->drains)
		shutdown(c->fd, SHUT_WR);
	watch(s, c, EPOLLIN);
}

static void answer(Server *s, Connection *c, const char *status, const char *type, const void *body,
		   size_t n)
{
	char head[256];
	const int k =
		snprintf(head, sizeof head,
			 "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s%s\r\n",
			 status, type, n, c->keeps && !s->stopping ? "" : "Connection: close\r\n",
			 status[0] == '5' && status[2] == '3' ? "Retry-After: 1\r\n" : "");
	memcpy(c->out, head, (size_t)k);
	memcpy(c->out + k, body, n);
	c->nout = (size_t)k + n;
	c->sent = 0;
	flush_answer(s, c);
}

static void say(Server *s, Connection *c, const char *status, const char *text)
{
	answer(s, c, status, "text/plain", text, strlen(text));
}

static void send_metrics(Server *s, Connection *c)
{
	static const char *const outcome[] = {"answered", "late", "wrong", "stopped"};
	const BatchCounts *n = &s->batch.counts;
	const WeftCounters calls = weft_counters(&s->batch.calls);
	char text[HEAD];
	size_t at = 0;
	uint64_t sum = 0;
#define PUT(...)                                                                                   \
	(at += (size_t)snprintf(text + at, at < sizeof text ? sizeof text - at : 0, __VA_ARGS__))
	for (int k = 0; k < 4; k++)
		PUT("requests_total{outcome=\"%s\"} %llu\n", outcome[k],
		    (unsigned long long)atomic_load(&n->outcome[k]));
	PUT("requests_total{outcome=\"refused\"} %llu\n", (unsigned long long)s->refused);
	PUT("queue_length %d\nconnections %d\n", batch_waiting(&s->batch), s->connections);
	PUT("batches_total %llu\nbatch_rows_total %llu\n",
	    (unsigned long long)atomic_load(&n->batches),
	    (unsigned long long)atomic_load(&n->rows));
	PUT("model_calls_total %llu\nmodel_calls_failed_total %llu\nmodel_calls_busy %llu\n"
	    "model_seconds_total %.6f\n",
	    (unsigned long long)calls.calls, (unsigned long long)calls.failed,
	    (unsigned long long)calls.busy, 1e-9 * (double)calls.ns);
	for (int k = 0; k < BUCKETS; k++) {
		sum += atomic_load(&n->bucket[k]);
		if (k < BUCKETS - 1)
			PUT("request_seconds_bucket{le=\"%g\"} %llu\n", 16e-6 * (double)(1 << k),
			    (unsigned long long)sum);
	}
	PUT("request_seconds_bucket{le=\"+Inf\"} %llu\nrequest_seconds_sum "
	    "%.6f\nrequest_seconds_count %llu\n",
	    (unsigned long long)sum, 1e-9 * (double)atomic_load(&n->total_ns),
	    (unsigned long long)sum);
#undef PUT
	answer(s, c, "200 OK", "text/plain; version=0.0.4", text,
	       at < sizeof text ? at : sizeof text);
}

/* ---- requests ---- */

/* Returns the value of a header of a request, whose lines end with NULs; NULL: it is not there. */
static const char *header(const char *line, const char *end, const char *name)
{
	const size_t n = strlen(name);
	for (; line < end; line += strlen(line) + 1) {
		line += *line == '\n';
		if (!strncasecmp(line, name, n) && line[n] == ':')
			return line + n + 1 + strspn(line + n + 1, " \t");
	}
	return NULL;
}

static void predict(Server *s, Connection *c, const char *deadline, const char *body)
{
	const int64_t asked = deadline ? strtoll(deadline, NULL, 10) : 0;
	const int64_t ms = asked < MOST_MS ? asked : MOST_MS;
	c->request.deadline = ms > 0        ? now_ns() + ms * 1000000
			      : s->deadline ? now_ns() + s->deadline
					    : 0;
	memcpy(c->request.in, body, s->batch.in_bytes);
	watch(s, c, 0);
	c->busy = true;
	s->busy++;
	if (batch_put(&s->batch, &c->request))
		return;
	c->busy = false;
	s->busy--;
	s->refused++;
	say(s, c, "503 Service Unavailable", "the queue is full\n");
}

/* Handles the request whose header is in the first `head` bytes, if its body is there, too. Returns
 * whether a request was taken out of the buffer. */
static bool handle(Server *s, Connection *c, size_t head)
{
	char copy[HEAD + 1];
	memcpy(copy, c->in, head);
	copy[head] = 0;
	for (char *p = copy; (p = strstr(p, "\r\n")); p++)
		*p = 0;
	const char *length = header(copy, copy + head, "Content-Length"),
		   *connection = header(copy, copy + head, "Connection");
	const char *after = length + (length ? strspn(length, "0123456789") : 0);
	const bool plain = !length || (after != length && after - length < 16 && !*after &&
				       !header(after, copy + head, "Content-Length"));
	const unsigned long long bytes = length ? strtoull(length, NULL, 10) : 0;
	const bool right = !strncmp(copy, "POST /predict ", 14);
	c->keeps =
		strstr(copy, " HTTP/1.1") && (!connection || strcasecmp(connection, "close") != 0);
	if (!plain || header(copy, copy + head, "Transfer-Encoding") || bytes > s->batch.in_bytes ||
	    (right && bytes != s->batch.in_bytes)) {
		char why[96];
		snprintf(why, sizeof why, "a body of %llu bytes, expected %zu\n", bytes,
			 s->batch.in_bytes);
		c->keeps = false; /* the body is not read */
		say(s, c, "400 Bad Request", why);
		return false;
	}
	if (c->n < head + bytes)
		return false;
	const char *body = c->in + head;
	if (right)
		predict(s, c, header(copy, copy + head, "X-Deadline-Ms"), body);
	else if (!strncmp(copy, "GET /metrics ", 13))
		send_metrics(s, c);
	else if (!strncmp(copy, "GET /health ", 12))
		say(s, c, "200 OK", "ok\n");
	else if (!strncmp(copy, "HEAD ", 5)) {
		c->keeps = false; /* such an answer has no body */
		answer(s, c, "405 Method Not Allowed", "text/plain", "", 0);
	} else
		say(s, c, "404 Not Found", "POST /predict, GET /metrics, GET /health\n");
	c->n -= head + (size_t)bytes;
	memmove(c->in, body + bytes, c->n);
	return true;
}

/* Handles the requests that have been read, one after the other. */
static void go_on(Server *s, Connection *c)
{
	while (c->fd >= 0 && !c->busy && !c->nout && !c->drains && c->n) {
		const char *end = memmem(c->in, c->n, "\r\n\r\n", 4);
		const size_t head = end ? (size_t)(end - c->in) + 4 : c->n;
		if (head > HEAD || (!end && c->n == HEAD)) {
			c->keeps = false;
			say(s, c, "431 Request Header Fields Too Large",
			    "a header of more than 4,096 bytes\n");
			return;
		}
		if (!end || !handle(s, c, head))
			return;
	}
}

static void receive(Server *s, Connection *c)
{
	c->n = c->drains ? 0 : c->n;
	const size_t room = HEAD + s->batch.in_bytes - c->n;
	const ssize_t n = recv(c->fd, c->in + c->n, room, 0);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		drop(s, c);
		return;
	}
	c->n = c->drains ? 0 : c->n + (size_t)n;
	go_on(s, c);
}

/* Answers a request that the batches' thread has finished. */
static void send_result(Server *s, Connection *c)
{
	c->busy = false;
	s->busy--;
	if (c->closed)
		drop(s, c);
	else if (c->request.outcome == ANSWERED)
		answer(s, c, "200 OK", "application/octet-stream", c->request.out,
		       s->batch.out_bytes);
	else if (c->request.outcome == LATE)
		say(s, c, "504 Gateway Timeout", "the deadline passed\n");
	else if (c->request.outcome == STOPPED)
		say(s, c, "503 Service Unavailable", "the server stops\n");
	else
		say(s, c, "422 Unprocessable Content", c->request.why);
	go_on(s, c);
}

/* ---- the server ---- */

static Connection *connection_new(Server *s, int fd)
{
	Connection *c = s->spare;
	if (c) {
		s->spare = c->next;
	} else if ((c = calloc(1, sizeof *c))) {
		c->fd = -1;
		c->made = s->all;
		s->all = c;
		c->in = malloc(HEAD + s->batch.in_bytes + 1);
		c->out = malloc(HEAD + HEAD + s->batch.out_bytes);
		c->request.in = malloc(s->batch.in_bytes);
		c->request.out = malloc(s->batch.out_bytes);
	}
	if (!c || !c->in || !c->out || !c->request.in || !c->request.out)
		return NULL;
	c->fd = fd;
	c->busy = c->closed = c->keeps = c->drains = c->writes = false;
	c->n = c->nout = c->sent = 0;
	return c;
}

static void accept_all(Server *s)
{
	int fd, one = 1;
	while ((fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		Connection *c = s->connections < s->most ? connection_new(s, fd) : NULL;
		if (!c) {
			close(fd);
			continue;
		}
		struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e);
		s->connections++;
	}
}

/* Implements BatchOptions.done: gives the request to the thread of the connections. */
static void done(void *user, Request *r)
{
	Server *s = user;
	Connection *c = (Connection *)((char *)r - offsetof(Connection, request));
	const uint64_t one = 1;
	Connection *before = atomic_load(&s->finished);
	do
		c->next = before;
	while (!atomic_compare_exchange_weak(&s->finished, &before, c));
	if (!before && write(s->wake, &one, sizeof one) < 0)
		abort();
}

static void send_results(Server *s)
{
	uint64_t n;
	if (read(s->wake, &n, sizeof n) < 0)
		return;
	for (Connection *c = atomic_exchange(&s->finished, NULL), *next; c; c = next) {
		next = c->next;
		send_result(s, c);
	}
}

static void stop(Server *s)
{
	struct signalfd_siginfo info;
	if (read(s->signals, &info, sizeof info) < 0)
		return;
	if (s->stopping)
		atomic_store(&s->batch.cancel, 1);
	s->stopping = true;
	if (s->listener >= 0)
		close(s->listener);
	s->listener = -1;
}

static void serve(Server *s)
{
	struct epoll_event e[EVENTS];
	while (!s->stopping || s->busy || s->writing) {
		const int n = epoll_wait(s->epoll, e, EVENTS, -1);
		for (int k = 0; k < n; k++) {
			Connection *c = e[k].data.ptr;
			if (e[k].data.ptr == &s->listener)
				accept_all(s);
			else if (e[k].data.ptr == &s->wake)
				send_results(s);
			else if (e[k].data.ptr == &s->signals)
				stop(s);
			else if (c->fd < 0)
				continue;
			else if (c->busy || e[k].events & (EPOLLERR | EPOLLHUP))
				drop(s, c);
			else if (e[k].events & EPOLLOUT) {
				flush_answer(s, c);
				go_on(s, c);
			} else
				receive(s, c);
		}
		while (s->dropped) {
			Connection *c = s->dropped;
			s->dropped = c->next;
			c->next = s->spare;
			s->spare = c;
		}
	}
}

/* Opens the port; 0: one that is free. Returns its number, or 0 after an error. */
static int begin(Server *s, int port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int one = 1;
	socklen_t n = sizeof at;
	sigset_t set;
	struct rlimit files;
	s->most = MOST_CONNECTIONS;
	if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur < MOST_CONNECTIONS + 32)
		s->most = files.rlim_cur > 64 ? (int)files.rlim_cur - 32 : 32;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	s->signals = signalfd(-1, &set, SFD_NONBLOCK);
	s->wake = eventfd(0, EFD_NONBLOCK);
	s->epoll = epoll_create1(0);
	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(s->listener, (const struct sockaddr *)&at, sizeof at) ||
	    listen(s->listener, 512) || getsockname(s->listener, (struct sockaddr *)&at, &n)) {
		perror("port");
		return 0;
	}
	int *const fd[] = {&s->signals, &s->wake, &s->listener};
	for (int k = 0; k < 3; k++) {
		struct epoll_event e = {.events = EPOLLIN, .data.ptr = fd[k]};
		epoll_ctl(s->epoll, EPOLL_CTL_ADD, *fd[k], &e);
	}
	return ntohs(at.sin_port);
}

static void end(Server *s)
{
	batch_stop(&s->batch, false);
	for (Connection *c = s->all, *next; c; c = next) {
		next = c->made;
		if (c->fd >= 0)
			close(c->fd);
		free(c->in);
		free(c->out);
		free(c->request.in);
		free(c->request.out);
		free(c);
	}
}

static const WeftModel *load(const char *path)
{
	const WeftModel *(*get)(void) = NULL;
	WeftStatus status;
	if (weft_file_check(path, &status)) {
		fprintf(stderr, "%s\n", status.message);
		return NULL;
	}
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (so)
		*(void **)&get = dlsym(so, "weft_model");
	if (!get)
		fprintf(stderr, "%s\n", dlerror());
	return get ? get() : NULL;
}

int main(int argc, char **argv)
{
	static Server s;
	BatchOptions o = {.most = 16, .capacity = 256, .wait = 0, .done = done, .user = &s};
	int port = 8080;
	for (int k = 2; k + 1 < argc; k += 2) {
		char *end;
		const long long n = strtoll(argv[k + 1], &end, 10);
		const bool number = end != argv[k + 1] && !*end && n >= 0 && n <= MOST_MS;
		if (number && !strcmp(argv[k], "--port") && n < 65536)
			port = (int)n;
		else if (number && !strcmp(argv[k], "--batch") && n > 0 && n <= 65536)
			o.most = (int)n;
		else if (number && !strcmp(argv[k], "--queue") && n > 0 && n <= 1 << 20)
			o.capacity = (int)n;
		else if (number && !strcmp(argv[k], "--wait-us"))
			o.wait = n * 1000;
		else if (number && !strcmp(argv[k], "--deadline-ms"))
			s.deadline = n * 1000000;
		else if (number && !strcmp(argv[k], "--memory-mb"))
			o.memory = (uint64_t)n << 20;
		else
			argc = 0;
	}
	if (argc < 2 || argc % 2) {
		fprintf(stderr,
			"usage: server MODEL.so [--port N] [--batch N] [--queue N] [--wait-us N] "
			"[--deadline-ms N] [--memory-mb N]\n");
		return 2;
	}
	const WeftModel *m = load(argv[1]);
	if (!m || !(port = begin(&s, port)) || !batch_open(&s.batch, m, &o))
		return 1;
	printf("a row: %zu bytes in, %zu out; port %d\n", s.batch.in_bytes, s.batch.out_bytes,
	       port);
	fflush(stdout);
	serve(&s);
	end(&s);
	return 0;
}
