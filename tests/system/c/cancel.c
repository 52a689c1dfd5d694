/* Calls that end early: cancel MODEL.so. For each kernel call k of each entry, another thread
 * (here: the profile) asks for the end after k. A call that ends early leaves state as it was.
 * Prints how many ended early. Also deadlines, limits of memory, counters. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weft_call.h"

enum { MOST = 32 };
static int bad;

static void expect(int right, const char *what, const WeftStatus *s)
{
	if (!right)
		printf("FAIL: %s: %d %s\n", what, (int)s->code, s->message);
	bad |= !right;
}

typedef struct {
	const WeftModel *m;
	const WeftEntry *e;
	WeftInstance *in;
	WeftTensor x[MOST], y[MOST];
	int64_t shape[2 * MOST][16];
	WeftSizes *sizes;
	void *work;
	char *before, *after; /* all state */
	uint64_t state_bytes;
	_Atomic int32_t cancel;
	int32_t at; /* the kernel call after which the call is cancelled */
} Case;

static uint64_t tensor_bytes(const WeftTensor *t)
{
	uint64_t n = t->dtype.bits / 8;
	for (int32_t d = 0; d < t->ndim; d++)
		n *= t->shape[d] > 0 ? (uint64_t)t->shape[d] : 0;
	return n;
}

static void make_inputs(Case *c)
{
	for (uint32_t k = 0; k < c->e->ninput; k++) {
		const WeftTensorInfo *info = weft_input(c->m, c->e, k);
		for (uint32_t d = 0; d < info->rank; d++) {
			const WeftDim *dim = weft_dim(c->m, info, d);
			c->shape[k][d] = dim->value >= 0    ? dim->value
					 : dim->symbol >= 0 ? c->e->seen[dim->symbol]
							    : 1;
		}
		c->x[k] = weft_tensor(NULL, info->dtype, (int32_t)info->rank, c->shape[k]);
		c->x[k].data = calloc(tensor_bytes(&c->x[k]) + 64, 1);
	}
}

static void make_outputs(Case *c)
{
	for (uint32_t k = 0; k < c->e->noutput; k++) {
		const WeftTensorInfo *info = weft_output(c->m, c->e, k);
		memcpy(c->shape[MOST + k], weft_output_shape(c->m, c->e, c->sizes, k),
		       info->rank * sizeof(int64_t));
		c->y[k] = weft_tensor(NULL, info->dtype, (int32_t)info->rank, c->shape[MOST + k]);
		c->y[k].data = calloc(tensor_bytes(&c->y[k]) + 64, 1);
	}
}

static void read_state(Case *c, char *to)
{
	for (uint32_t k = 0; k < c->m->nstate; k++) {
		const WeftTensorInfo *info = weft_state_info(c->m, k);
		int64_t shape[16];
		WeftStatus s;
		for (uint32_t d = 0; d < info->rank; d++)
			shape[d] = weft_dim(c->m, info, d)->value;
		WeftTensor t = weft_tensor(to, info->dtype, (int32_t)info->rank, shape);
		expect(c->m->state_get(c->in, k, &t, &s) == WEFT_OK, "state_get", &s);
		to += tensor_bytes(&t);
	}
}

static void ask_at(void *user, uint32_t call, double seconds)
{
	Case *c = user;
	(void)seconds;
	if ((int32_t)call >= c->at)
		atomic_store(&c->cancel, 1);
}

static int run(Case *c, WeftContext *context, WeftStatus *s)
{
	return c->m->run(c->in, c->sizes, c->x, c->y, c->work, context, s);
}

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Returns how many of the calls ended early. */
static uint32_t cancel_at_each(Case *c)
{
	uint32_t ended = 0;
	for (c->at = -1; c->at < (int32_t)c->e->ncall; c->at++) {
		WeftStatus s = {0};
		WeftContext context = {.size = sizeof context,
				       .flags = WEFT_SHARE_ALL,
				       .profile = ask_at,
				       .profile_user = c,
				       .cancel = (const int32_t *)&c->cancel};
		atomic_store(&c->cancel, c->at < 0);
		read_state(c, c->before);
		const int code = run(c, &context, &s);
		expect(code == WEFT_OK || code == WEFT_ERR_CANCELLED, "a cancelled call", &s);
		expect(c->at >= 0 || code == WEFT_ERR_CANCELLED || !c->e->ncall, "before the first",
		       &s);
		read_state(c, c->after);
		expect(code == WEFT_OK || !memcmp(c->before, c->after, c->state_bytes),
		       "state of a call that ended early", &s);
		ended += code != WEFT_OK;
	}
	return ended;
}

static void deadlines(Case *c)
{
	WeftStatus s = {0};
	WeftCounters counters = {0};
	WeftContext context = {.size = sizeof context, .deadline = 1, .counters = &counters};
	read_state(c, c->before);
	expect(!c->e->ncall ||
		       (run(c, &context, &s) == WEFT_ERR_DEADLINE && strstr(s.message, "deadline")),
	       "a deadline that has passed", &s);
	read_state(c, c->after);
	expect(!memcmp(c->before, c->after, c->state_bytes), "state after the deadline", &s);
	context.deadline = now() + 3600 * INT64_C(1000000000);
	expect(run(c, &context, &s) == WEFT_OK, "a deadline in an hour", &s);
	context.deadline = 0;
	context.memory_limit = c->sizes->workspace_bytes - 1;
	expect(run(c, &context, &s) == WEFT_ERR_MEMORY && strstr(s.message, "limit"),
	       "a limit that is too small", &s);
	context.memory_limit = UINT64_C(1) << 30;
	expect(run(c, &context, &s) == WEFT_OK, "a limit that fits", &s);
	const WeftCounters n = weft_counters(&counters);
	expect(n.calls == 3u + !!c->e->ncall && n.failed == 1u + !!c->e->ncall && !n.busy &&
		       n.ns > 0,
	       "counters", &s);
}

static void try_entry(const WeftModel *m, uint32_t entry)
{
	static Case none, one;
	Case *c = &one;
	WeftStatus s = {0};
	*c = none;
	c->m = m;
	c->e = weft_entry(m, entry);
	expect(m->open(m, NULL, &c->in, &s) == WEFT_OK, "open", &s);
	c->sizes = malloc(c->e->sizes_bytes);
	c->state_bytes = 0;
	for (uint32_t k = 0; k < m->nstate; k++)
		c->state_bytes += weft_state_info(m, k)->bytes;
	c->before = calloc(c->state_bytes + 1, 1);
	c->after = calloc(c->state_bytes + 1, 1);
	make_inputs(c);
	expect(m->sizes(c->in, entry, c->x, c->sizes, &s) == WEFT_OK, "sizes", &s);
	make_outputs(c);
	c->work = malloc(c->sizes->workspace_bytes);
	const uint32_t ended = cancel_at_each(c);
	printf("%s: %u of %u calls ended early\n", c->e->name, ended, c->e->ncall + 1);
	deadlines(c);
	m->close(c->in);
	for (uint32_t k = 0; k < c->e->ninput; k++)
		free(c->x[k].data);
	for (uint32_t k = 0; k < c->e->noutput; k++)
		free(c->y[k].data);
	free(c->sizes);
	free(c->work);
	free(c->before);
	free(c->after);
}

int main(int argc, char **argv)
{
	const WeftModel *(*get)(void);
	void *so = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	if (!so)
		return fprintf(stderr, "%s\n", dlerror()), 1;
	*(void **)&get = dlsym(so, "weft_model");
	for (uint32_t k = 0; k < get()->nentry; k++)
		try_entry(get(), k);
	return bad;
}
