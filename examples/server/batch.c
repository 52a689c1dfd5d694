#include "batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- the model ---- */

/* Returns the bytes of a row of a tensor; 0 if the tensor has another form than rows. */
static size_t row_bytes(const WeftModel *m, const WeftTensorInfo *info)
{
	size_t bytes = info->dtype.bits / 8u;
	if (!info->rank || weft_dim(m, info, 0)->symbol != 0)
		return 0;
	for (uint32_t d = 1; d < info->rank; d++) {
		const int64_t extent = weft_dim(m, info, d)->value;
		if (extent < 0)
			return 0;
		bytes *= (size_t)extent;
	}
	return bytes;
}

/* Makes the tensors of a batch, with memory for the largest. Returns the bytes of a row of all; 0
 * after a message. */
static size_t make_tensors(const Batch *b, bool outputs, WeftTensor *t)
{
	const uint32_t n = outputs ? b->entry->noutput : b->entry->ninput;
	size_t all = 0;
	for (uint32_t k = 0; k < n; k++) {
		const WeftTensorInfo *info = outputs ? weft_output(b->model, b->entry, k)
						     : weft_input(b->model, b->entry, k);
		const size_t bytes = row_bytes(b->model, info);
		if (!bytes) {
			fprintf(stderr,
				"%s: expected a first dimension that is the batch, and constants\n",
				info->name);
			return 0;
		}
		memset(&t[k], 0, sizeof t[k]);
		t[k].data = aligned_alloc(64, (bytes * (size_t)b->options.most + 63) / 64 * 64);
		t[k].device.type = WEFT_CPU;
		t[k].ndim = (int32_t)info->rank;
		t[k].dtype = info->dtype;
		t[k].shape = calloc(info->rank, sizeof(int64_t));
		if (!t[k].data || !t[k].shape) {
			fprintf(stderr, "no memory for %d rows of %s\n", b->options.most,
				info->name);
			return 0;
		}
		for (uint32_t d = 1; d < info->rank; d++)
			t[k].shape[d] = weft_dim(b->model, info, d)->value;
		all += bytes;
	}
	return all;
}

/* Copies row k of each tensor from a request, or to it. */
static void copy_rows(const WeftTensor *t, uint32_t n, int k, char *row, bool to_request)
{
	for (uint32_t i = 0; i < n; i++) {
		size_t bytes = t[i].dtype.bits / 8u;
		for (int32_t d = 1; d < t[i].ndim; d++)
			bytes *= (size_t)t[i].shape[d];
		char *there = (char *)t[i].data + (size_t)k * bytes;
		memcpy(to_request ? row : there, to_request ? there : row, bytes);
		row += bytes;
	}
}

static int run_model(Batch *b, int n, int64_t deadline, WeftStatus *status)
{
	WeftContext context = {.size = sizeof context,
			       .nthreads = 1,
			       .cancel = (const int32_t *)&b->cancel,
			       .deadline = deadline,
			       .memory_limit = b->options.memory,
			       .counters = &b->calls};
	for (uint32_t k = 0; k < b->entry->ninput; k++)
		b->in[k].shape[0] = n;
	for (uint32_t k = 0; k < b->entry->noutput; k++)
		b->out[k].shape[0] = n;
	int code = b->model->sizes(b->instance, 0, b->in, b->sizes, status);
	if (!code && b->sizes->workspace_bytes > b->work_bytes) {
		free(b->work);
		b->work = malloc(b->sizes->workspace_bytes);
		b->work_bytes = b->work ? b->sizes->workspace_bytes : 0;
	}
	return code ? code
		    : b->model->run(b->instance, b->sizes, b->in, b->out, b->work, &context,
				    status);
}

/* ---- batches ---- */

static void finish(Batch *b, Request *r, Outcome outcome, const char *why)
{
	const int64_t ns = now_ns() - r->put;
	int k = 0;
	while (k < BUCKETS - 1 && ns > INT64_C(16000) << k)
		k++;
	r->outcome = outcome;
	snprintf(r->why, sizeof r->why, "%s", why);
	atomic_fetch_add(&b->counts.outcome[outcome], 1);
	atomic_fetch_add(&b->counts.bucket[k], 1);
	atomic_fetch_add(&b->counts.total_ns, (uint64_t)ns);
	b->options.done(b->options.user, r);
}

/* Returns the last of the deadlines; 0 if a request has none. */
static int64_t last_deadline(Request *const *r, int n)
{
	int64_t last = 0;
	for (int k = 0; k < n; k++) {
		if (!r[k]->deadline)
			return 0;
		last = r[k]->deadline > last ? r[k]->deadline : last;
	}
	return last;
}

static void answer(Batch *b, Request **r, int n)
{
	WeftStatus status = {0};
	for (int k = 0; k < n; k++)
		copy_rows(b->in, b->entry->ninput, k, r[k]->in, false);
	const int code = run_model(b, n, last_deadline(r, n), &status);
	atomic_fetch_add(&b->counts.batches, 1);
	atomic_fetch_add(&b->counts.rows, (uint64_t)n);
	if (code && code != WEFT_ERR_CANCELLED && code != WEFT_ERR_DEADLINE && n > 1) {
		/* one row is wrong, or all together need too much memory */
		for (int k = 0; k < n; k++)
			answer(b, &r[k], 1);
		return;
	}
	for (int k = 0; k < n; k++) {
		const bool late = r[k]->deadline && now_ns() > r[k]->deadline;
		if (!code && !late)
			copy_rows(b->out, b->entry->noutput, k, r[k]->out, true);
		finish(b, r[k],
		       code == WEFT_ERR_CANCELLED          ? STOPPED
		       : late || code == WEFT_ERR_DEADLINE ? LATE
		       : code                              ? WRONG
							   : ANSWERED,
		       status.message);
	}
}

/* Takes the requests of a batch out of the queue, which has some; waits for more of them. Called
 * with the lock. */
static int take(Batch *b, Request **r)
{
	const int64_t until = b->queue[b->first]->put + b->options.wait;
	const struct timespec end = {until / 1000000000, until % 1000000000};
	while (b->n < b->options.most && !b->stopping && now_ns() < until)
		if (pthread_cond_timedwait(&b->more, &b->lock, &end))
			break;
	int n = 0;
	for (; n < b->options.most && b->n; n++, b->n--) {
		r[n] = b->queue[b->first];
		b->first = (b->first + 1) % b->options.capacity;
	}
	return n;
}

/* Ends the requests whose deadline has passed, or all of them if calls are cancelled. Returns how
 * many are left. */
static int drop_late(Batch *b, Request **r, int n)
{
	int left = 0;
	for (int k = 0; k < n; k++)
		if (atomic_load(&b->cancel))
			finish(b, r[k], STOPPED, "the server stops");
		else if (r[k]->deadline && now_ns() > r[k]->deadline)
			finish(b, r[k], LATE, "the deadline passed in the queue");
		else
			r[left++] = r[k];
	return left;
}

static void *serve(void *arg)
{
	Batch *b = arg;
	Request **r = calloc((size_t)b->options.most, sizeof *r);
	pthread_mutex_lock(&b->lock);
	while (r && (b->n || !b->stopping)) {
		if (!b->n) {
			pthread_cond_wait(&b->more, &b->lock);
			continue;
		}
		int n = take(b, r);
		pthread_mutex_unlock(&b->lock);
		n = drop_late(b, r, n);
		if (n)
			answer(b, r, n);
		pthread_mutex_lock(&b->lock);
	}
	pthread_mutex_unlock(&b->lock);
	free(r);
	return NULL;
}

/* ---- the queue ---- */

bool batch_open(Batch *b, const WeftModel *m, const BatchOptions *o)
{
	WeftStatus status = {0};
	pthread_condattr_t clock;
	const char *wrong = weft_model_check(m);
	memset(b, 0, sizeof *b);
	b->options = *o;
	if (wrong || m->open(m, NULL, &b->instance, &status)) {
		fprintf(stderr, "%s\n", wrong ? wrong : status.message);
		return false;
	}
	b->model = m;
	b->entry = weft_entry(m, 0);
	if (!b->entry->ninput || !b->entry->noutput || !weft_symbol(m, b->entry, 0)) {
		fprintf(stderr, "expected a model with inputs and outputs, whose first dimension "
				"is the batch\n");
		return false;
	}
	if (weft_symbol(m, b->entry, 0)->hi < b->options.most)
		b->options.most = (int)weft_symbol(m, b->entry, 0)->hi;
	b->sizes = malloc(b->entry->sizes_bytes);
	b->in = calloc(b->entry->ninput + 1, sizeof *b->in);
	b->out = calloc(b->entry->noutput + 1, sizeof *b->out);
	b->queue = calloc((size_t)o->capacity, sizeof *b->queue);
	if (!b->sizes || !b->in || !b->out || !b->queue ||
	    !(b->in_bytes = make_tensors(b, false, b->in)) ||
	    !(b->out_bytes = make_tensors(b, true, b->out)))
		return false;
	pthread_mutex_init(&b->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&b->more, &clock);
	return pthread_create(&b->thread, NULL, serve, b) == 0;
}

bool batch_put(Batch *b, Request *r)
{
	pthread_mutex_lock(&b->lock);
	const bool fits = b->n < b->options.capacity && !b->stopping;
	if (fits) {
		r->put = now_ns();
		b->queue[(b->first + b->n++) % b->options.capacity] = r;
		if (b->n == 1 || b->n == b->options.most)
			pthread_cond_signal(&b->more);
	}
	pthread_mutex_unlock(&b->lock);
	return fits;
}

int batch_waiting(Batch *b)
{
	pthread_mutex_lock(&b->lock);
	const int n = b->n;
	pthread_mutex_unlock(&b->lock);
	return n;
}

static void free_tensors(WeftTensor *t, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		free(t[k].data);
		free(t[k].shape);
	}
	free(t);
}

void batch_stop(Batch *b, bool now)
{
	pthread_mutex_lock(&b->lock);
	b->stopping = true;
	if (now)
		atomic_store(&b->cancel, 1);
	pthread_cond_signal(&b->more);
	pthread_mutex_unlock(&b->lock);
	pthread_join(b->thread, NULL);
	b->model->close(b->instance);
	free_tensors(b->in, b->entry->ninput);
	free_tensors(b->out, b->entry->noutput);
	free(b->queue);
	free(b->sizes);
	free(b->work);
}
