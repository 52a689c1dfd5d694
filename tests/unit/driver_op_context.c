/* What functions of user operators are told of their call: by the JIT, the interpreters, and with
 * contexts of older programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft.h"
#include "weft_op.h"

/* ---- operators ---- */

enum { N = 64, THREADS = 8 };

/* What the calls saw; user pointers lead here. */
typedef struct {
	WeftOpContext last;
	atomic_int busy[THREADS], shared, beyond; /* by thread */
	atomic_int calls, threads;
	bool together; /* calls run at the same time: `last` is unused */
} Seen;

/* y = x + the number that op_user points to. */
static int add(const WeftOpContext *context, const WeftTensor *in, const WeftTensor *out,
	       void *work, uint64_t work_bytes, WeftStatus *status)
{
	const float *x = in[0].data, plus = context->op_user ? *(const float *)context->op_user : 0;
	float *y = out[0].data;
	Seen *seen = context->user;
	(void)work, (void)work_bytes, (void)status;
	if (seen && (context->thread < 0 || context->thread >= context->threads ||
		     context->threads > THREADS)) {
		atomic_fetch_add(&seen->beyond, 1);
		return 0;
	}
	if (seen && atomic_fetch_add(&seen->busy[context->thread], 1))
		atomic_fetch_add(&seen->shared, 1);
	for (int64_t k = 0; k < in[0].shape[0]; k++)
		y[k] = x[k] + plus;
	for (volatile int k = 0; seen && k < 2000; k++)
		;
	if (!seen)
		return 0;
	atomic_fetch_add(&seen->calls, 1);
	atomic_store(&seen->threads, context->threads);
	if (!seen->together)
		seen->last = *context;
	atomic_fetch_sub(&seen->busy[context->thread], 1);
	return 0;
}

static float one = 1, ten = 10;

static Weft *with_operators(void)
{
	WeftOpDef def = {.size = sizeof def,
			 .schema = "test::one(Tensor x) -> Tensor",
			 .types = "f32[a] -> f32[a]",
			 .symbol = "test_add",
			 .fn = add,
			 .user = &one};
	Weft *w = weft_new();
	assert_true(weft_op_register(w, &def));
	def.schema = "test::ten(Tensor x) -> Tensor";
	def.user = &ten;
	assert_true(weft_op_register(w, &def));
	def.schema = "test::none(Tensor x) -> Tensor";
	def.user = NULL;
	assert_true(weft_op_register(w, &def));
	return w;
}

/* ---- running ---- */

static const char *const text = "graph @f(%x: f32[A]) where 1 <= A {\n"
				"  %a = call([%x], op=\"test::one\", ints=[], floats=[])\n"
				"  %b = get(%a, index=0)\n"
				"  %c = call([%b], op=\"test::ten\", ints=[], floats=[])\n"
				"  %d = get(%c, index=0)\n"
				"  %e = call([%d], op=\"test::none\", ints=[], floats=[])\n"
				"  %y = get(%e, index=0)\n"
				"  return %y\n}";

typedef struct {
	const WeftModel *m;
	WeftInstance *in;
	WeftSizes *sizes;
	void *work;
	float x[N], y[N];
	int64_t shape[1];
	WeftTensor tx, ty;
} Model;

static WeftTensor vector(Model *m, float *data)
{
	return (WeftTensor){.data = data,
			    .device = {WEFT_CPU, 0},
			    .ndim = 1,
			    .dtype = {WEFT_FLOAT, 32, 1},
			    .shape = m->shape};
}

static void open_model(Model *m, const WeftModel *table)
{
	WeftStatus status;
	*m = (Model){.m = table, .shape = {N}};
	for (int k = 0; k < N; k++)
		m->x[k] = (float)k;
	m->tx = vector(m, m->x);
	m->ty = vector(m, m->y);
	if (table->open(table, NULL, &m->in, &status))
		fail_msg("%s", status.message);
	m->sizes = malloc(weft_entry(table, 0)->sizes_bytes);
	assert_int_equal(table->sizes(m->in, 0, &m->tx, m->sizes, NULL), WEFT_OK);
	m->work = malloc(m->sizes->workspace_bytes);
}

static void close_model(Model *m)
{
	m->m->close(m->in);
	free(m->sizes);
	free(m->work);
}

static void run(Model *m, const void *context)
{
	WeftStatus status;
	memset(m->y, 0, sizeof m->y);
	if (m->m->run(m->in, m->sizes, &m->tx, &m->ty, m->work, context, &status))
		fail_msg("%s", status.message);
	for (int k = 0; k < N; k++)
		assert_true(m->y[k] == (float)k + 11);
}

/* All that a context says arrives; op_user is each registration's own. */
static void check_table(const WeftModel *table)
{
	Model m;
	Seen seen;
	int stream;
	const WeftComm comm = {.size = sizeof comm, .ranks = 1};
	WeftContext c = {.size = sizeof c,
			 .nthreads = 1,
			 .user = &seen,
			 .device = {WEFT_CPU, 3},
			 .stream = &stream,
			 .comm = &comm};
	assert_non_null(table);
	memset(&seen, 0, sizeof seen);
	open_model(&m, table);
	run(&m, NULL);
	run(&m, &c);
	assert_int_equal(seen.calls, 3);
	assert_int_equal(seen.beyond, 0);
	assert_int_equal(seen.last.size, sizeof(WeftOpContext));
	assert_int_equal(seen.last.thread, 0);
	assert_int_equal(seen.last.threads, 1);
	assert_null(seen.last.op_user);
	assert_int_equal(seen.last.device.type, WEFT_CPU);
	assert_int_equal(seen.last.device.id, 3);
	assert_ptr_equal(seen.last.stream, &stream);
	assert_ptr_equal(seen.last.comm, &comm);
	c.device = (WeftDevice){0, 0};
	run(&m, &c);
	assert_int_equal(seen.last.device.type, WEFT_CPU);
	c.device.type = 2; /* CUDA */
	WeftStatus status;
	assert_int_equal(m.m->run(m.in, m.sizes, &m.tx, &m.ty, m.work, &c, &status),
			 WEFT_ERR_ARGUMENT);
	assert_string_equal(status.message,
			    "run: the model is for the processor, not for a device of type 2");
	close_model(&m);
}

/* WeftContext of a program that does not know the last fields, in exactly as much memory. */
static void check_short(const WeftModel *table)
{
	Model m;
	Seen seen;
	memset(&seen, 0, sizeof seen);
	open_model(&m, table);
	const size_t sizes[] = {offsetof(WeftContext, user), offsetof(WeftContext, device),
				offsetof(WeftContext, comm), sizeof(WeftContext)};
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		char *c = malloc(sizes[k]);
		const WeftContext full = {.size = (uint32_t)sizes[k],
					  .user = &seen,
					  .device = {WEFT_CPU, 7},
					  .stream = &seen,
					  .comm = (WeftComm *)(void *)&seen};
		memcpy(c, &full, sizes[k]);
		seen.calls = 0;
		run(&m, c);
		assert_int_equal(seen.calls, k ? 3 : 0);
		if (k) {
			assert_int_equal(seen.last.device.id, k > 1 ? 7 : 0);
			assert_int_equal(seen.last.comm != NULL, k > 2);
		}
		free(c);
	}
	close_model(&m);
}

static void test_jit(void **state)
{
	(void)state;
	Weft *w = with_operators();
	WeftGraph *g = weft_parse(w, text, "f");
	const WeftModel *table = weft_has_llvm() ? weft_jit(w, g, NULL) : weft_loops(w, g, NULL);
	check_table(table);
	check_short(table);
	weft_free(w);
}

static void test_loops(void **state)
{
	(void)state;
	Weft *w = with_operators();
	const WeftModel *table = weft_loops(w, weft_parse(w, text, "f"), NULL);
	check_table(table);
	check_short(table);
	weft_free(w);
}

static void test_interpreter(void **state)
{
	(void)state;
	Model m = {.shape = {N}};
	Weft *w = with_operators();
	WeftTensor y;
	m.tx = vector(&m, m.x);
	assert_true(weft_interpret(w, weft_parse(w, text, "f"), &m.tx, 1, &y));
	for (int k = 0; k < N; k++)
		assert_true(((float *)y.data)[k] == 11);
	weft_free(w);
}

/* ---- threads ---- */

/* Many calls of one phase. */
static const char *wide(void)
{
	static char t[16384];
	int n = sprintf(t, "graph @f(%%x: f32[64]) {\n");
	for (int k = 0; k < 32; k++)
		n += sprintf(t + n,
			     "  %%c%d = call([%%x], op=\"test::%s\", ints=[], floats=[])\n  %%r%d "
			     "= get(%%c%d, index=0)\n"
			     "  %%v%d = full(value=%d, shape=[64], dtype=f32)\n  %%m%d = "
			     "mul(%%r%d, %%v%d)\n"
			     "  %%d%d = call([%%m%d], op=\"test::none\", ints=[], floats=[])\n  "
			     "%%e%d = get(%%d%d, index=0)\n",
			     k, k % 2 ? "ten" : "one", k, k, k, k, k, k, k, k, k, k, k);
	n += sprintf(t + n, "  %%s0 = add(%%e0, %%e1)\n");
	for (int k = 2; k < 32; k++)
		n += sprintf(t + n, "  %%s%d = add(%%s%d, %%e%d)\n", k - 1, k - 2, k);
	sprintf(t + n, "  return %%s30\n}");
	return t;
}

/* A provider whose threads are not the pool's. */
static void take_pool(void *user, int32_t n, void (*body)(void *, int32_t, int32_t), void *arg)
{
	const WeftThreads *t = user;
	t->parallel(t->user, n, body, arg);
}

static void test_threads(void **state)
{
	(void)state;
	Model m;
	Seen seen;
	if (!weft_has_llvm())
		skip();
	WeftOpDef def = {.size = sizeof def,
			 .flags = WEFT_OP_THREAD_SAFE,
			 .types = "f32[a] -> f32[a]",
			 .symbol = "test_add",
			 .fn = add,
			 .user = &one};
	Weft *w = weft_new();
	for (int k = 0; k < 3; k++) {
		static const char *const schema[] = {"test::one(Tensor x) -> Tensor",
						     "test::ten(Tensor x) -> Tensor",
						     "test::none(Tensor x) -> Tensor"};
		def.schema = schema[k];
		def.user = k == 0 ? &one : k == 1 ? &ten : NULL;
		assert_true(weft_op_register(w, &def));
	}
	open_model(&m, weft_jit(w, weft_parse(w, wide(), "wide"), NULL));
	memset(&seen, 0, sizeof seen);
	seen.together = true;
	for (int32_t pool = 1; pool <= THREADS; pool += 3)
		for (int own = 0; own < 2; own++) {
			WeftThreads *t = m.m->threads_new(WEFT_THREADS_POOL, pool, NULL);
			const WeftThreads mine = {
				.parallel = take_pool, .user = t, .nthreads = pool};
			for (int32_t n = 1; n <= pool; n++)
				for (int k = 0; k < 20; k++) {
					WeftContext c = {.size = sizeof c,
							 .flags = WEFT_SHARE_ALL,
							 .threads = own ? &mine : t,
							 .nthreads = n,
							 .user = &seen};
					assert_int_equal(m.m->run(m.in, m.sizes, &m.tx, &m.ty,
								  m.work, &c, NULL),
							 WEFT_OK);
					assert_true(seen.threads <= n);
				}
			m.m->threads_free(t);
		}
	assert_int_equal(seen.shared, 0);
	assert_int_equal(seen.beyond, 0);
	assert_int_equal(seen.calls % 64, 0);
	close_model(&m);
	weft_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_jit), cmocka_unit_test(test_loops),
					   cmocka_unit_test(test_interpreter),
					   cmocka_unit_test(test_threads)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
