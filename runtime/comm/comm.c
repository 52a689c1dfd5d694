/* Collectives, as exchanges of bytes. Linkers leave it out of models that have none. */
#include "comm.h"

#include <stdio.h>
#include <string.h>

/* What two ranks tell each other in front of an exchange. */
typedef struct {
	uint64_t kind, dtype, gives, takes; /* the last two in bytes */
} Said;

typedef struct {
	const WeftComm *comm; /* NULL: there is one rank */
	const char *kind;
	int32_t rank, ranks;
	const char *x;        /* operand 0 */
	uint64_t bytes, size; /* of x, of an element */
	uint64_t dtype;       /* of x: its code, then its bits */
	/* By rank: what goes there and what comes from there. */
	const void **to;
	void **from;
	uint64_t *gives, *takes;
	Said *mine, *theirs;
	WeftStatus *status;
} Exchange;

enum { RANKS = 1, GROUP, MORE };

static int fail(WeftStatus *s, const char *why)
{
	if (!s->code)
		s->code = WEFT_ERR_COMM;
	if (why && !s->message[0])
		snprintf(s->message, sizeof s->message, "%s", why);
	return s->code;
}

static int64_t integer(const WeftTensor *t)
{
	return *(const int64_t *)t->data;
}

/* Sets name[n] to a group's name, which is cut off where there is no room. */
static void group_name(const WeftTensor *t, char *name, size_t n)
{
	size_t k = 0;
	for (; k + 1 < n && k < (size_t)t->shape[0]; k++)
		name[k] = (char)((const int64_t *)t->data)[k];
	name[k] = 0;
}

/* Finds the provider for the group. */
static int find_comm(Exchange *e, const WeftOpContext *context, const WeftTensor *in)
{
	char name[128], text[320];
	const WeftComm *all = context->comm, *c = all;
	group_name(&in[GROUP], name, sizeof name);
	if (!c && e->ranks == 1)
		return WEFT_OK;
	if (!c) {
		snprintf(text, sizeof text,
			 "the model was compiled for %d ranks, and this process is alone: "
			 "WeftContext.comm is NULL",
			 e->ranks);
		return fail(e->status, text);
	}
	if (name[0] && WEFT_HAS(all->size, WeftComm, group) && all->group)
		c = all->group(all->user, name);
	if (!c)
		snprintf(text, sizeof text, "this rank is in no group \"%s\"", name);
	else if (c->ranks != e->ranks)
		snprintf(text, sizeof text,
			 "the model was compiled for %d ranks in group \"%s\", which has %d here",
			 e->ranks, name, c->ranks);
	if (!c || c->ranks != e->ranks)
		return fail(e->status, text);
	e->comm = c;
	e->rank = c->rank;
	return WEFT_OK;
}

/* Begins a call: finds the provider, and divides the workspace. Nothing is sent yet. */
static int begin(Exchange *e, const char *kind, const WeftOpContext *context, const WeftTensor *in,
		 void *work, WeftStatus *status)
{
	memset(e, 0, sizeof *e);
	e->kind = kind;
	e->ranks = (int32_t)integer(&in[RANKS]);
	e->x = in[0].data;
	e->size = in[0].dtype.bits / 8u;
	e->dtype = (uint64_t)in[0].dtype.code << 8 | in[0].dtype.bits;
	e->bytes = e->size * (uint64_t)in[0].shape[0];
	e->status = status;
	const size_t n = (size_t)e->ranks;
	memset(work, 0, n * WEFT_COMM_WORK);
	e->mine = work;
	e->theirs = e->mine + n;
	e->gives = (uint64_t *)(e->theirs + n);
	e->takes = e->gives + n;
	e->to = (const void **)(e->takes + n);
	e->from = (void **)(e->to + n);
	return find_comm(e, context, in);
}

/* Moves bytes between ranks, without those that stay here. */
static int exchange(const Exchange *e, const void *const *to, const uint64_t *gives,
		    void *const *from, const uint64_t *takes)
{
	const WeftComm *c = e->comm;
	const int64_t handle = c->exchange(c->user, to, gives, from, takes, e->status);
	if (handle <= 0)
		return fail(e->status, "the provider of communication failed");
	const int code = c->wait(c->user, handle, e->status);
	return code ? fail(e->status, "the provider of communication failed") : WEFT_OK;
}

/* Returns an error, with which all ranks end: this one disagrees with rank r. */
static int disagree(const Exchange *e, int32_t r)
{
	const Said *mine = &e->mine[r], *theirs = &e->theirs[r];
	char text[400];
	if (mine->kind != theirs->kind)
		snprintf(text, sizeof text,
			 "rank %d does %s with %llu bytes where rank %d does another collective: "
			 "all ranks make the same calls in the same order",
			 e->rank, e->kind, (unsigned long long)mine->gives, r);
	else if (mine->dtype != theirs->dtype)
		snprintf(text, sizeof text,
			 "%s: the elements of rank %d and of rank %d have other dtypes, of %u and "
			 "of %u bits: all ranks give one dtype",
			 e->kind, e->rank, r, (unsigned)(mine->dtype & 255),
			 (unsigned)(theirs->dtype & 255));
	else
		snprintf(text, sizeof text,
			 "%s: rank %d gives %llu bytes to rank %d, which expects %llu; it expects "
			 "%llu bytes, and rank %d gives %llu",
			 e->kind, e->rank, (unsigned long long)mine->gives, r,
			 (unsigned long long)theirs->takes, (unsigned long long)mine->takes, r,
			 (unsigned long long)theirs->gives);
	if (e->comm->abort)
		e->comm->abort(e->comm->user, text);
	return fail(e->status, text);
}

/* Returns a number for the name of a collective. */
static uint64_t kind_number(const char *kind)
{
	uint64_t n = 0;
	for (size_t k = 0; kind[k]; k++)
		n = n * 131 + (unsigned char)kind[k];
	return n;
}

/* Compares what this rank and the others are about to give and take. */
static int agree(const Exchange *e)
{
	const size_t n = (size_t)e->ranks;
	const void **to = (const void **)(e->from + n); /* of this exchange */
	void **from = (void **)(to + n);
	uint64_t *bytes = (uint64_t *)(from + n);
	for (int32_t r = 0; r < e->ranks; r++) {
		e->mine[r] = (Said){kind_number(e->kind), e->dtype, e->gives[r], e->takes[r]};
		to[r] = &e->mine[r];
		from[r] = &e->theirs[r];
		bytes[r] = r == e->rank ? 0 : sizeof(Said);
	}
	int code = exchange(e, to, bytes, from, bytes);
	for (int32_t r = 0; r < e->ranks && !code; r++) {
		const Said *mine = &e->mine[r], *theirs = &e->theirs[r];
		if (r != e->rank && (mine->kind != theirs->kind || mine->dtype != theirs->dtype ||
				     mine->gives != theirs->takes || mine->takes != theirs->gives))
			code = disagree(e, r);
	}
	return code;
}

/* Executes the exchange that to, from, gives and takes say. */
static int move(Exchange *e)
{
	if (e->gives[e->rank])
		memmove(e->from[e->rank], e->to[e->rank], e->gives[e->rank]);
	e->gives[e->rank] = e->takes[e->rank] = 0;
	if (!e->comm || e->ranks == 1)
		return WEFT_OK;
	const int code = e->comm->flags & WEFT_COMM_CHECKS ? WEFT_OK : agree(e);
	return code ? code : exchange(e, e->to, e->gives, e->from, e->takes);
}

int weft_comm_all_gather(const WeftOpContext *context, const WeftTensor *in, const WeftTensor *out,
			 void *work, uint64_t work_bytes, WeftStatus *status)
{
	Exchange e;
	(void)work_bytes;
	if (begin(&e, "all_gather", context, in, work, status))
		return status->code;
	for (int32_t r = 0; r < e.ranks; r++) {
		e.to[r] = e.x;
		e.from[r] = (char *)out[0].data + (uint64_t)r * e.bytes;
		e.gives[r] = e.takes[r] = e.bytes;
	}
	return move(&e);
}

int weft_comm_all_to_all(const WeftOpContext *context, const WeftTensor *in, const WeftTensor *out,
			 void *work, uint64_t work_bytes, WeftStatus *status)
{
	Exchange e;
	(void)work_bytes;
	if (begin(&e, "all_to_all", context, in, work, status))
		return status->code;
	const int64_t *give = in[MORE].data, *take = in[MORE + 1].data;
	const char *x = e.x;
	char *y = out[0].data;
	for (int32_t r = 0; r < e.ranks; r++) {
		e.gives[r] = (uint64_t)give[r] * e.size;
		e.takes[r] = (uint64_t)take[r] * e.size;
		e.to[r] = x;
		e.from[r] = y;
		x += e.gives[r];
		y += e.takes[r];
	}
	if (e.gives[e.rank] != e.takes[e.rank])
		return fail(status, "all_to_all: what a rank gives itself is not what it takes");
	return move(&e);
}

int weft_comm_broadcast(const WeftOpContext *context, const WeftTensor *in, const WeftTensor *out,
			void *work, uint64_t work_bytes, WeftStatus *status)
{
	Exchange e;
	(void)work_bytes;
	if (begin(&e, "broadcast", context, in, work, status))
		return status->code;
	const int32_t source = (int32_t)integer(&in[MORE]);
	for (int32_t r = 0; r < e.ranks && e.rank == source; r++) {
		e.to[r] = e.x;
		e.gives[r] = e.bytes;
	}
	e.from[source] = out[0].data;
	e.takes[source] = e.bytes;
	return move(&e);
}

int weft_comm_gather(const WeftOpContext *context, const WeftTensor *in, const WeftTensor *out,
		     void *work, uint64_t work_bytes, WeftStatus *status)
{
	Exchange e;
	(void)work_bytes;
	if (begin(&e, "gather", context, in, work, status))
		return status->code;
	const int32_t target = (int32_t)integer(&in[MORE]);
	e.to[target] = e.x;
	e.gives[target] = e.bytes;
	for (int32_t r = 0; r < e.ranks && e.rank == target; r++) {
		e.from[r] = (char *)out[0].data + (uint64_t)r * e.bytes;
		e.takes[r] = e.bytes;
	}
	if (e.rank != target && e.bytes)
		memset(out[0].data, 0, (uint64_t)e.ranks * e.bytes);
	return move(&e);
}

int weft_comm_swap(const WeftOpContext *context, const WeftTensor *in, const WeftTensor *out,
		   void *work, uint64_t work_bytes, WeftStatus *status)
{
	Exchange e;
	(void)work_bytes;
	if (begin(&e, "all_reduce", context, in, work, status))
		return status->code;
	const int32_t other = 1 - e.rank;
	e.to[other] = e.x;
	e.from[other] = out[0].data;
	e.gives[other] = e.takes[other] = e.bytes;
	return move(&e);
}
