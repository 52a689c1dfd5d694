/* A queue of requests in front of a model, and the thread that runs the model on batches of them.
 *
 * A request is one row of each input: a tensor without its first dimension. The thread takes up to
 * `most` requests that wait, runs the model once on all of them, and hands each its rows of the
 * outputs. One artifact serves every size of a batch: the first dimension of all its inputs and
 * outputs is one symbol. */
#ifndef EXAMPLE_BATCH_H
#define EXAMPLE_BATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "weft_model.h"

enum { BUCKETS = 24 }; /* of latencies: up to 2^k times 16 microseconds */

typedef enum { ANSWERED, LATE, WRONG, STOPPED } Outcome;

/* Owned by its caller. The caller fills in the first group before batch_put; the thread fills in
 * the second before it calls `done`, after which it does not touch the request. */
typedef struct Request {
	int64_t deadline; /* ns of CLOCK_MONOTONIC; 0: none */
	char *in;         /* Batch.in_bytes: a row of input 0, of input 1, ... */
	char *out;        /* Batch.out_bytes: the same of the outputs */
	Outcome outcome;
	char why[200]; /* of WRONG */
	int64_t put;   /* when it was put into the queue */
} Request;

typedef struct {
	int most, capacity; /* requests in a batch, in the queue */
	int64_t wait;       /* ns that an incomplete batch waits for more requests */
	uint64_t memory;    /* bytes that a call may use; 0: any */
	void (*done)(void *user, Request *); /* called by the thread */
	void *user;
} BatchOptions;

/* Counts; written by the thread, read by any. */
typedef struct {
	_Atomic uint64_t outcome[4], batches, rows, bucket[BUCKETS], total_ns;
} BatchCounts;

typedef struct {
	const WeftModel *model;
	const WeftEntry *entry;
	WeftInstance *instance;
	BatchOptions options;
	size_t in_bytes, out_bytes; /* of one request */
	BatchCounts counts;
	WeftCounters calls;
	_Atomic int32_t cancel;
	/* Private. */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	Request **queue; /* a ring of `capacity` */
	int first, n;
	bool stopping;
	WeftSizes *sizes;
	void *work;
	uint64_t work_bytes;
	WeftTensor *in, *out;
} Batch;

/* Opens the model and starts the thread. Returns false, after a message on standard error, for a
 * model whose inputs and outputs do not have one symbol as first dimension and constants else. */
bool batch_open(Batch *, const WeftModel *, const BatchOptions *);
/* Puts a request into the queue. Returns false if the queue is full, or batch_stop was called; the
 * request is then not done. */
bool batch_put(Batch *, Request *);
/* Returns the number of requests in the queue. */
int batch_waiting(Batch *);
/* Finishes the requests in the queue, or with `now` ends them and the call in progress (STOPPED);
 * then ends the thread and closes the model. */
void batch_stop(Batch *, bool now);
/* Returns the nanoseconds of CLOCK_MONOTONIC. */
int64_t now_ns(void);

#endif
