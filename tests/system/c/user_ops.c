/* Operators for tests/system/userop.py and tests/system/c/tsan_userop.c: effects, threads, scalars,
 * several results, workspace, failures of all kinds. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "weft_op.h"

static pthread_t main_thread;
static int64_t seen; /* the tags, as digits: only the thread that called run writes */

__attribute__((constructor)) static void remember_thread(void)
{
	main_thread = pthread_self();
}

static int64_t elements(const WeftTensor *t)
{
	int64_t n = 1;
	for (int32_t d = 0; d < t->ndim; d++)
		n *= t->shape[d];
	return n;
}

/* ---- effects ---- */

int test_begin(const WeftOpContext *context, const WeftTensor *in, const WeftTensor *out,
	       void *work, uint64_t work_bytes, WeftStatus *status)
{
	(void)context, (void)in, (void)out, (void)work, (void)work_bytes, (void)status;
	seen = 0;
	return 0;
}

int test_trace(const WeftOpContext *context, const WeftTensor *in, const WeftTensor *out,
	       void *work, uint64_t work_bytes, WeftStatus *status)
{
	(void)context, (void)out, (void)work, (void)work_bytes;
	if (!pthread_equal(pthread_self(), main_thread) && !getenv("TEST_ANY_THREAD"))
		return weft_op_fail(status, "not the thread that called run");
	seen = seen * 10 + *(const int64_t *)in[1].data;
	return 0;
}

int test_traced(const WeftOpContext *context, const WeftTensor *in, const WeftTensor *out,
		void *work, uint64_t work_bytes, WeftStatus *status)
{
	(void)context, (void)in, (void)work, (void)work_bytes, (void)status;
	*(int64_t *)out[0].data = seen;
	return 0;
}

/* ---- functions ---- */

/* The first n columns and the others. */
int test_split(const WeftOpContext *context, const WeftTensor *in, const WeftTensor *out,
	       void *work, uint64_t work_bytes, WeftStatus *status)
{
	size_t size = in[0].dtype.bits / 8, a = (size_t)in[0].shape[0], b = (size_t)in[0].shape[1],
	       n = (size_t)out[0].shape[1];
	const char *x = in[0].data;
	char *left = out[0].data, *right = out[1].data;
	(void)context, (void)work, (void)work_bytes;
	if (out[0].shape[0] != in[0].shape[0] ||
	    out[1].shape[1] != in[0].shape[1] - *(const int64_t *)in[1].data)
		return weft_op_fail(status, "other extents");
	for (size_t i = 0; i < a; i++) {
		memcpy(left + i * n * size, x + i * b * size, n * size);
		memcpy(right + i * (b - n) * size, x + (i * b + n) * size, (b - n) * size);
	}
	return 0;
}

/* y = x + the sum of list where add, through a workspace. */
int test_shift(const WeftOpContext *context, const WeftTensor *in, const WeftTensor *out,
	       void *work, uint64_t work_bytes, WeftStatus *status)
{
	const float *x = in[0].data;
	float *kept = work, sum = 0;
	const int64_t *list = in[1].data;
	int64_t n = elements(&in[0]);
	(void)context;
	if (work_bytes < (uint64_t)n * 4 || (uintptr_t)work % 64)
		return weft_op_fail(status, "a workspace of %llu bytes",
				    (unsigned long long)work_bytes);
	for (int64_t k = 0; k < in[1].shape[0] && *(const uint8_t *)in[2].data; k++)
		sum += (float)list[k];
	for (int64_t k = 0; k < n; k++)
		kept[k] = x[k] + sum;
	memcpy(out[0].data, kept, (size_t)n * 4);
	return 0;
}

/* x, unless its first element is: below 0, a message; 100 and more, a code; 200 and more, nothing
 * but the result. */
int test_check(const WeftOpContext *context, const WeftTensor *in, const WeftTensor *out,
	       void *work, uint64_t work_bytes, WeftStatus *status)
{
	const float *x = in[0].data;
	int64_t *calls = context->user; /* by thread, in lines of their own */
	(void)work, (void)work_bytes;
	if (calls)
		calls[8 * context->thread]++;
	if (x[0] >= 200)
		return 7;
	if (x[0] >= 100)
		return weft_op_fail(status, "too much"), status->code = WEFT_ERR_MEMORY;
	if (x[0] < 0)
		return weft_op_fail(status, "%g in check %lld", (double)x[0],
				    (long long)*(const int64_t *)in[1].data);
	memcpy(out[0].data, x, (size_t)elements(&in[0]) * 4);
	return 0;
}

/* What the function is told: the number that op_user points to, or -1; whether there is a user; the
 * thread; the device; whether there are a stream and other processes. */
int test_context(const WeftOpContext *context, const WeftTensor *in, const WeftTensor *out,
		 void *work, uint64_t work_bytes, WeftStatus *status)
{
	const int64_t *number = context->op_user;
	int64_t *y = out[0].data;
	(void)in, (void)work, (void)work_bytes;
	if (context->size < sizeof *context || context->thread < 0 ||
	    context->thread >= context->threads)
		return weft_op_fail(status, "thread %d of %d, %u bytes", context->thread,
				    context->threads, context->size);
	y[0] = number ? *number : -1;
	y[1] = context->user != NULL;
	y[2] = context->thread;
	y[3] = context->device.type;
	y[4] = context->stream != NULL || context->comm != NULL;
	return 0;
}

int64_t test_number = 77;
static int64_t nameless = 78; /* compiled models do not find it */

/* ---- definitions ---- */

#define OP(name, what, text, kinds, bytes)                                                         \
	static const WeftOpDef name = {.size = sizeof name,                                        \
				       .flags = what,                                              \
				       .schema = text,                                             \
				       .types = kinds,                                             \
				       .work_bytes = bytes,                                        \
				       .symbol = "test_" #name,                                    \
				       .fn = test_##name}
OP(begin, WEFT_OP_EFFECT, "test::begin() -> ()", "->", NULL);
OP(trace, WEFT_OP_EFFECT, "test::trace(Tensor x, int tag) -> ()", "T[...] ->", NULL);
OP(traced, WEFT_OP_EFFECT, "test::traced() -> Tensor", "-> i64[]", NULL);
OP(split, WEFT_OP_THREAD_SAFE, "test::split(Tensor x, int n) -> (Tensor, Tensor)",
   "T[a, b] -> T[a, n], T[a, b - n]", NULL);
OP(check, WEFT_OP_THREAD_SAFE, "test::check(Tensor x, int n=0) -> Tensor", "f32[a] -> f32[a]",
   NULL);
static const WeftOpDef kept = {.size = sizeof kept,
			       .flags = WEFT_OP_THREAD_SAFE,
			       .schema =
				       "test::kept(Tensor x, int[] list, bool add=True) -> Tensor",
			       .types = "f32[a, b] -> f32[a, b]",
			       .work_bytes = "4*a*b + 4",
			       .symbol = "test_shift",
			       .fn = test_shift};

static const WeftOpDef named = {.size = sizeof named,
				.flags = WEFT_OP_EFFECT,
				.schema = "test::named(Tensor x) -> Tensor",
				.types = "T[...] -> i64[5]",
				.symbol = "test_context",
				.fn = test_context,
				.user = &test_number,
				.user_symbol = "test_number"};
static const WeftOpDef bare = {.size = sizeof bare,
			       .flags = WEFT_OP_EFFECT,
			       .schema = "test::bare(Tensor x) -> Tensor",
			       .types = "T[...] -> i64[5]",
			       .symbol = "test_context",
			       .fn = test_context,
			       .user = &nameless};

const WeftOpDef *const *weft_ops(void)
{
	static const WeftOpDef *const ops[] = {&begin, &trace, &traced, &split, &kept,
					       &check, &named, &bare,   NULL};
	return ops;
}
