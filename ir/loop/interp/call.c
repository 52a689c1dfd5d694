/* Calls of user operators in the interpreter of loop IR: in this process, on the memory that it
 * follows. */
#include <stdio.h>

#include "ir/graph/dtype_api.h"
#include "ir/loop/interp/priv.h"
#include "ir/op/userop.h"

/* What a task touches of `count` equal items that a buffer has: those of its part. Of an operator
 * that is not divided there is one item. */
typedef struct {
	uint64_t part, parts, count;
} Share;

/* Reads the integers part, parts and count of a divided operator, which are behind the operands
 * that are buffers. */
static bool share_of(Exec *e, const Active *a, const LsData *s, uint32_t thread, Share *share)
{
	const LoopCall *c = s->call;
	*share = (Share){0, 1, 1};
	uint64_t *const field[] = {&share->part, &share->parts, &share->count};
	uint32_t at = 0;
	for (uint32_t k = 0, found = 0; c->op->divided && k < c->nin && found < 3; k++) {
		at += c->tensor[k].rank;
		if (c->tensor[k].buf >= 0)
			continue;
		const int64_t *x = exec_value(e, a, s->arg[at]);
		if (!x)
			return false;
		*field[found++] = (uint64_t)x[thread];
		at += c->tensor[k].nvalue;
	}
	return true;
}

/* Sets *data to the address of a buffer that a call is given, of which the task's share is
 * touched. */
static bool call_buffer(Exec *e, int32_t buf, uint64_t bytes, const Share *share, bool write,
			void **data)
{
	char *p = NULL;
	const uint64_t item = share->count ? bytes / share->count : 0;
	const uint64_t first = share->count * share->part / share->parts * item;
	const uint64_t last = share->count * (share->part + 1) / share->parts * item;
	if (bytes > UINT32_MAX)
		return loop_finding(&e->at, "passes %llu bytes", (unsigned long long)bytes);
	if (!view_touch(&e->at, &e->view[buf], (int64_t)first, (uint32_t)(last - first), write, &p))
		return false;
	*data = p - first;
	return true;
}

/* Makes one tensor of a call from arg[], which goes on after it. */
static bool call_tensor(Exec *e, const Active *a, const struct LoopCallTensor *c, const Lx **arg,
			uint32_t thread, const Share *share, bool write, WeftTensor *t)
{
	uint64_t bytes = dtype_size(c->dtype);
	int64_t *v = ARENA_ARRAY(e->at.in->arena, int64_t, c->rank + c->nvalue);
	for (uint32_t k = 0; k < c->rank + c->nvalue; k++) {
		const int64_t *x = exec_value(e, a, *(*arg)++);
		if (!x)
			return false;
		v[k] = x[thread];
		if (k < c->rank &&
		    (v[k] < 0 || __builtin_mul_overflow(bytes, (uint64_t)v[k], &bytes)))
			return loop_finding(&e->at, "passes a tensor with an extent of %lld",
					    (long long)v[k]);
	}
	*t = (WeftTensor){.data = v + c->rank,
			  .device = {WEFT_CPU, 0},
			  .ndim = (int32_t)c->rank,
			  .dtype = dtype_to_api(c->dtype),
			  .shape = v};
	return c->buf < 0 || call_buffer(e, c->buf, bytes, share, write, &t->data);
}

static bool call_op(Exec *e, const Active *a, const LsData *s, uint32_t thread)
{
	const LoopCall *c = s->call;
	const Lx *arg = s->arg;
	struct Failure *f = &e->at.in->failure;
	WeftTensor *t = ARENA_ARRAY(e->at.in->arena, WeftTensor, c->nin + c->nout);
	void *work = NULL;
	Share share;
	if (!share_of(e, a, s, thread, &share))
		return false;
	for (uint32_t k = 0; k < c->nin + c->nout; k++)
		if (!call_tensor(e, a, &c->tensor[k], &arg, thread, &share, k >= c->nin, &t[k]))
			return false;
	const int64_t *bytes = exec_value(e, a, *arg);
	share.count = share.parts; /* a workspace for each */
	if (!bytes || (bytes[thread] &&
		       !call_buffer(e, c->work, (uint64_t)bytes[thread], &share, true, &work)))
		return false;
	WeftStatus status = {0};
	if (userop_call(c->op, e->at.in->report->context, t, t + c->nin, work,
			(uint64_t)bytes[thread], &status) ||
	    !exec_fails_first(e, thread))
		return true;
	*f = (struct Failure){.task = e->task[thread], .thread = thread, .id = FAILED_CALL};
	snprintf(f->told, sizeof f->told, "%.*s", (int)sizeof f->told - 1, status.message);
	return true;
}

bool exec_call(Exec *e, const Active *a, const LsData *s)
{
	for (uint32_t t = 0; t < e->n; t++) {
		exec_locate(e, t);
		if (a->on[t] && !call_op(e, a, s, t))
			return false;
	}
	return true;
}
