/* State and replaceable weights: what instances share, who may use them at the same time. The model
 * is made by hand: entry 0, "add", adds its input to the state and returns it; entry 1, "peek",
 * returns state times weight. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime_model.h"

enum { ADD, PEEK };

static int add(const WeftFrame *f, int64_t begin, int64_t end)
{
	const float *x = f->buf[0];
	float *y = f->buf[1], *state = f->buf[2];
	(void)begin, (void)end;
	for (int k = 0; k < 3; k++)
		y[k] = state[k] += x[k];
	return 0;
}

static int peek(const WeftFrame *f, int64_t begin, int64_t end)
{
	const float *w = f->buf[1], *state = f->buf[2];
	float *y = f->buf[0];
	(void)begin, (void)end;
	for (int k = 0; k < 3; k++)
		y[k] = state[k] * w[k];
	return 0;
}

static int run_add(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	void *b[3] = {buf[0], buf[1], buf[4]};
	return weft_phase(r, add, b, slot, 0, 1);
}

static int run_peek(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	void *b[3] = {buf[0], buf[1], buf[3]};
	return weft_phase(r, peek, b, slot, 0, 1);
}

static int sizes_fn(const int64_t *extent, int64_t *slot, WeftStatus *status)
{
	(void)extent, (void)status;
	slot[0] = 3;
	slot[1] = 64;
	return WEFT_OK;
}

static const WeftDim dims[] = {{3, -1, "3"}};
static const WeftTensorInfo inputs[] = {TENSOR("x", F32, 1, dims)};
static const WeftTensorInfo replacing[] = {
	{.name = "y", .dtype = F32, .rank = 1, .dim = dims, .donates = 0}};
static const WeftTensorInfo outputs[] = {TENSOR("y", F32, 1, dims)};
static const WeftTensorInfo states[] = {
	{.name = "sum", .dtype = F32, .rank = 1, .dim = dims, .donates = -1, .offset = 0, .bytes = 12, .init = 64},
	{.name = "rest", .dtype = F32, .rank = 1, .dim = dims, .donates = -1, .offset = 64, .bytes = 12, .init = WEFT_ZEROS}};
enum { READS = WEFT_ENTRY_READS_STATE, WRITES = WEFT_ENTRY_READS_STATE | WEFT_ENTRY_WRITES_STATE };
static const uint8_t writes[] = {WRITES, 0}, reads[] = {READS, 0};
static const WeftCallInfo calls[] = {{"k", "map", 3, 36}};
#define USES(kind, use) .flags = kind, .state_use = use, COUNTED(ncall, call, calls)
static const WeftEntry entry_add = {ENTRY("add", 2, 1, sizes_fn, run_add), IN(inputs), OUT(replacing), USES(WRITES, writes)};
static const WeftEntry entry_peek = {ENTRY("peek", 2, 1, sizes_fn, run_peek), OUT(outputs), USES(READS, reads)};
static const WeftEntry *const entries[] = {&entry_add, &entry_peek};
static const WeftManifest manifest = MANIFEST("m");
static const int64_t wdim[] = {3};
static const WeftParamInfo params[] = {{"w", F32, 1, wdim, 0, NULL, 0, 12}, {"", F32, 1, wdim, 0, NULL, 64, 12}};
_Alignas(64) static const float weights[32] = {1, 10, 100, [16] = 5, 6, 7};
static const WeftModel model = {MODEL(manifest), .stride = {[WEFT_TENSOR_INFO] = sizeof(WeftTensorInfo)}, COUNTED(nentry, entry, entries),
				COUNTED(nparam, param, params), COUNTED(nstate, state, states), .state_bytes = 128, .weights = weights,
				.weights_bytes = 128, WEFT_STATE_FUNCTIONS};
static WeftModel replaceable;

/* ---- calls ---- */

static WeftTensor tensor(float *data)
{
	return (WeftTensor){data, {WEFT_CPU, 0}, 1, F32, (int64_t *)(uintptr_t)wdim, NULL, 0};
}

static WeftInstance *opened(const WeftModel *m)
{
	WeftInstance *in;
	assert_int_equal(m->open(m, NULL, &in, NULL), WEFT_OK);
	return in;
}

static int run(WeftInstance *in, uint32_t entry, float *x, float *y, const WeftContext *c)
{
	char work[512];
	union {
		WeftSizes s;
		char room[256];
	} sizes;
	WeftTensor a = tensor(x), b = tensor(y);
	assert_int_equal(model.sizes(in, entry, &a, &sizes.s, NULL), WEFT_OK);
	return model.run(in, &sizes.s, &a, &b, work, c, NULL);
}

static float *get(WeftInstance *in, uint32_t k)
{
	static float value[3];
	WeftTensor t = tensor(value);
	assert_int_equal(model.state_get(in, k, &t, NULL), WEFT_OK);
	return value;
}

static void expect(WeftInstance *in, float a, float b, float c)
{
	const float *x = get(in, 0);
	assert_true(x[0] == a && x[1] == b && x[2] == c);
}

/* ---- tests ---- */

static void test_state(void **unused)
{
	(void)unused;
	float x[3] = {1, 2, 3}, y[3], v[3] = {9, 8, 7};
	WeftInstance *in = opened(&model);
	WeftTensor t = tensor(v);
	expect(in, 5, 6, 7);
	assert_true(get(in, 1)[0] == 0);
	assert_int_equal(run(in, ADD, x, y, NULL), WEFT_OK);
	assert_true(y[0] == 6 && y[2] == 10);
	assert_int_equal(run(in, ADD, x, y, NULL), WEFT_OK);
	expect(in, 7, 10, 13);
	assert_int_equal(run(in, PEEK, x, y, NULL), WEFT_OK);
	assert_true(y[0] == 7 && y[1] == 100 && y[2] == 1300);
	assert_int_equal(model.state_set(in, 0, &t, NULL), WEFT_OK);
	expect(in, 9, 8, 7);
	assert_int_equal(model.state_set(in, 1, &t, NULL), WEFT_OK);
	expect(in, 9, 8, 7);
	assert_true(get(in, 1)[2] == 7);
	assert_int_equal(model.state_reset(in, NULL), WEFT_OK);
	expect(in, 5, 6, 7);
	assert_true(get(in, 1)[2] == 0);
	model.close(in);
}

static void test_wrong_tensors(void **unused)
{
	(void)unused;
	float v[4] = {0};
	int64_t four = 4, two = 2;
	WeftStatus status;
	WeftInstance *in = opened(&model);
	WeftTensor t = tensor(v);
	assert_int_equal(model.state_get(in, 2, &t, &status), WEFT_ERR_ARGUMENT);
	assert_int_equal(model.state_get(in, 0, NULL, &status), WEFT_ERR_ARGUMENT);
	assert_int_equal(model.state_set(NULL, 0, &t, &status), WEFT_ERR_ARGUMENT);
	assert_int_equal(model.state_reset(NULL, &status), WEFT_ERR_ARGUMENT);
	t.shape = &four;
	assert_int_equal(model.state_set(in, 0, &t, &status), WEFT_ERR_INPUT);
	assert_string_equal(status.message, "state sum: dimension 0 is 4, expected 3");
	t = tensor(v);
	t.strides = &two;
	assert_int_equal(model.state_get(in, 0, &t, &status), WEFT_ERR_INPUT);
	assert_string_equal(status.message,
			    "state sum: the stride of dimension 0 is 2, expected 1, row-major");
	t = tensor(NULL);
	assert_int_equal(model.state_get(in, 0, &t, &status), WEFT_ERR_INPUT);
	assert_string_equal(status.message, "state sum has no data");
	t = tensor(v);
	t.dtype.bits = 64;
	assert_int_equal(model.state_get(in, 0, &t, &status), WEFT_ERR_INPUT);
	assert_string_equal(status.message, "state sum has dtype f64, expected f32");
	t = tensor(v);
	t.ndim = 2;
	assert_int_equal(model.state_set(in, 0, &t, &status), WEFT_ERR_INPUT);
	assert_string_equal(status.message, "state sum has 2 dimensions, expected 1");
	t = tensor(v);
	t.shape = NULL;
	assert_int_equal(model.state_set(in, 0, &t, &status), WEFT_ERR_ARGUMENT);
	assert_string_equal(status.message, "state sum has no shape");
	t = tensor(v);
	assert_int_equal(model.state_get(in, 0, &t, &status), WEFT_OK);
	assert_string_equal(status.message, "");
	model.close(in);
}

static bool fits(const WeftTensor *t, WeftDType dtype, uint32_t rank, const int64_t *dim)
{
	WeftStatus status;
	return check_tensor(&(Expected){"state", "x", dtype, rank, dim}, t, &status) == WEFT_OK;
}

/* Of nothing there need be no memory; a number is one element. */
static void test_fits(void **unused)
{
	(void)unused;
	const int64_t none[2] = {3, 0}, some[2] = {3, 2}, empty[2] = {0, 5};
	int64_t odd[2] = {100, 2};
	const WeftDType f32 = F32, f64 = F64, i64 = I64;
	float v[6] = {0};
	WeftTensor t = {NULL, {WEFT_CPU, 0}, 2, F32, (int64_t *)(uintptr_t)none, NULL, 0};
	assert_true(fits(&t, f32, 2, none));
	t.shape = (int64_t *)(uintptr_t)empty;
	t.strides = odd;
	assert_true(fits(&t, f32, 2, empty));
	t.strides = NULL;
	t.shape = (int64_t *)(uintptr_t)some;
	assert_false(fits(&t, f32, 2, some));
	t.data = v;
	assert_true(fits(&t, f32, 2, some));
	assert_false(fits(&t, f32, 2, none));
	assert_false(fits(&t, f32, 1, some));
	assert_false(fits(&t, f64, 2, some));
	assert_false(fits(&t, i64, 2, some));
	t.device.type++;
	assert_false(fits(&t, f32, 2, some));
	t = (WeftTensor){v, {WEFT_CPU, 0}, 0, F32, NULL, NULL, 0};
	assert_true(fits(&t, f32, 0, NULL));
	t.data = NULL;
	assert_false(fits(&t, f32, 0, NULL));
}

static void test_clone(void **unused)
{
	(void)unused;
	float x[3] = {1, 1, 1}, y[3];
	WeftInstance *a = opened(&model), *b, *c;
	assert_int_equal(run(a, ADD, x, y, NULL), WEFT_OK);
	assert_int_equal(model.clone(a, &b, NULL), WEFT_OK);
	assert_int_equal(run(a, ADD, x, y, NULL), WEFT_OK);
	expect(a, 7, 8, 9);
	expect(b, 6, 7, 8);
	model.close(a); /* the weights stay */
	assert_int_equal(model.clone(b, &c, NULL), WEFT_OK);
	model.close(b);
	assert_int_equal(model.state_reset(c, NULL), WEFT_OK);
	expect(c, 5, 6, 7);
	assert_int_equal(run(c, PEEK, x, y, NULL), WEFT_OK);
	assert_true(y[2] == 700);
	assert_int_equal(model.clone(c, NULL, NULL), WEFT_ERR_ARGUMENT);
	assert_int_equal(model.clone(NULL, &b, NULL), WEFT_ERR_ARGUMENT);
	model.close(c);
}

/* What other calls on the instance answer while one runs. */
typedef struct {
	WeftInstance *in;
	int add, peek, get, set, reset, clone, weights;
} Meanwhile;

static void ask(void *user, uint32_t call, double seconds)
{
	Meanwhile *m = user;
	float x[3] = {0}, y[3];
	const char *name = "w";
	WeftTensor t = tensor(y), w = tensor(x);
	WeftInstance *copy;
	(void)call, (void)seconds;
	m->add = run(m->in, ADD, x, y, NULL);
	m->peek = run(m->in, PEEK, x, y, NULL);
	m->get = model.state_get(m->in, 0, &t, NULL);
	m->set = model.state_set(m->in, 1, &t, NULL);
	m->reset = model.state_reset(m->in, NULL);
	m->clone = model.clone(m->in, &copy, NULL);
	m->weights = model.set_weights(m->in, 1, &name, &w, NULL, NULL);
	model.close(copy);
}

static void test_busy(void **unused)
{
	(void)unused;
	float x[3] = {1, 1, 1}, y[3];
	WeftInstance *in = opened(&model);
	Meanwhile m = {.in = in};
	WeftContext c = {.size = sizeof c, .profile = ask, .profile_user = &m};
	assert_int_equal(run(in, ADD, x, y, &c), WEFT_OK);
	assert_true(m.add == WEFT_ERR_BUSY && m.peek == WEFT_ERR_BUSY && m.get == WEFT_ERR_BUSY &&
		    m.set == WEFT_ERR_BUSY);
	assert_true(m.reset == WEFT_ERR_BUSY && m.clone == WEFT_ERR_BUSY);
	assert_int_equal(m.weights, WEFT_ERR_ARGUMENT); /* not replaceable */
	expect(in, 6, 7, 8);
	assert_int_equal(run(in, PEEK, x, y, &c), WEFT_OK);
	assert_true(m.add == WEFT_ERR_BUSY && m.peek == WEFT_OK && m.get == WEFT_OK &&
		    m.set == WEFT_OK);
	assert_true(m.reset == WEFT_OK && m.clone == WEFT_OK);
	assert_true(y[0] == 6 && y[1] == 70 && y[2] == 800); /* of what it began with */
	expect(in, 5, 6, 7);
	WeftTensor t = tensor(y);
	assert_int_equal(model.state_set(in, 0, &t, NULL), WEFT_OK); /* nobody was forgotten */
	model.close(in);
}

/* A call that is refused after it has begun leaves the instance free. */
static void test_failed_call(void **unused)
{
	(void)unused;
	float x[3] = {1, 1, 1};
	WeftInstance *in = opened(&model);
	for (int k = 0; k < 3; k++)
		assert_int_equal(run(in, ADD, x, NULL, NULL), WEFT_ERR_ARGUMENT);
	assert_int_equal(run(in, ADD, x, x, NULL), WEFT_OK);
	expect(in, 6, 7, 8);
	model.close(in);
}

static void test_donation(void **unused)
{
	(void)unused;
	float x[4] = {1, 2, 3, 4};
	WeftInstance *in = opened(&model);
	assert_int_equal(run(in, ADD, x, x, NULL), WEFT_OK);
	assert_true(x[0] == 6 && x[1] == 8 && x[2] == 10);
	assert_int_equal(run(in, ADD, x, x + 1, NULL), WEFT_ERR_ARGUMENT); /* not just the same */
	model.close(in);
}

static int weight(WeftInstance *in, const char *name, float *to, const WeftContext *c,
		  WeftStatus *status)
{
	WeftTensor t = tensor(to);
	return in->model->get_weights(in, 1, &name, &t, c, status);
}

static void test_weights(void **unused)
{
	(void)unused;
	float x[3] = {0}, y[3], w[3] = {2, 2, 2};
	const char *name = "w", *empty = "";
	WeftTensor t = tensor(w);
	WeftInstance *in = opened(&replaceable), *other;
	Meanwhile m = {.in = in};
	WeftContext c = {.size = sizeof c, .profile = ask, .profile_user = &m};
	assert_int_equal(model.clone(in, &other, NULL), WEFT_OK);
	assert_int_equal(model.set_weights(in, 1, &empty, &t, NULL, NULL), WEFT_ERR_ARGUMENT);
	for (int32_t n = 0; n < 4; n++) {
		WeftContext team = {.size = sizeof team, .nthreads = n};
		w[0] = (float)(n + 2);
		assert_int_equal(model.set_weights(in, 1, &name, &t, &team, NULL), WEFT_OK);
		assert_int_equal(run(in, PEEK, x, y, NULL), WEFT_OK);
		assert_true(y[0] == 5 * w[0] && y[1] == 12);
		/* to what was beside the weights */
		assert_int_equal(model.state_reset(in, NULL), WEFT_OK);
		expect(in, 5, 6, 7);
	}
	assert_int_equal(run(other, PEEK, x, y, NULL), WEFT_OK);
	assert_true(y[2] == 700); /* a clone keeps what it had */
	assert_int_equal(run(in, PEEK, x, y, &c), WEFT_OK);
	assert_int_equal(m.weights, WEFT_OK);
	assert_true(y[0] == 25 && y[1] == 12); /* of those that it began with */
	assert_int_equal(run(in, PEEK, x, y, NULL), WEFT_OK);
	assert_true(y[0] == 0 && y[1] == 0);
	model.close(in);
	assert_int_equal(run(other, PEEK, x, y, NULL), WEFT_OK);
	model.close(other);
}

/* Weights of which memory is kept for the next ones: one parameter row-major, one with its halves
 * exchanged. */
enum { LARGE = 3 << 19 };

static int run_corners(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	const float *w = buf[1];
	float *y = buf[0];
	(void)r, (void)slot;
	y[0] = w[0];
	y[1] = w[LARGE - 1];
	y[2] = w[2 * LARGE - 1];
	return 0;
}

static void test_large_weights(void **unused)
{
	(void)unused;
	static const int64_t dim[] = {2, LARGE / 2};
	static const WeftLayoutDim halves[] = {
		{.axis = 1, .divisor = 1, .extent = LARGE / 2, .padded = LARGE / 2},
		{.axis = 0, .divisor = 1, .extent = 2, .padded = 2}};
	static const WeftParamInfo large[] = {{"a", F32, 2, dim, 0, NULL, 0, 4 * LARGE},
					      {"b", F32, 2, dim, 2, halves, 4 * LARGE, 4 * LARGE}};
	static const WeftEntry corners = {ENTRY("corners", 2, 1, sizes_fn, run_corners),
					  OUT(outputs)};
	static const WeftEntry *const entry[] = {&corners};
	float *first = aligned_alloc(64, 8 * LARGE), *value = malloc(4 * LARGE), x[3] = {0}, y[3];
	const char *name[] = {"a", "b"};
	WeftModel m = replaceable;
	assert_true(first && value);
	memset(first, 0, 8 * LARGE);
	m.nentry = 1, m.entry = entry, m.nparam = 2, m.param = large, m.nstate = 0;
	m.weights = first, m.weights_bytes = 8 * LARGE;
	WeftTensor t = {value, {WEFT_CPU, 0}, 2, F32, (int64_t *)(uintptr_t)dim, NULL, 0},
		   both[2] = {t, t};
	WeftInstance *in = opened(&m), *other = NULL;
	for (int k = 1; k < 9; k++) {
		for (int i = 0; i < LARGE; i++)
			value[i] = (float)k;
		assert_int_equal(m.set_weights(in, 2, name, both, NULL, NULL), WEFT_OK);
		assert_int_equal(run(in, 0, x, y, NULL), WEFT_OK);
		assert_true(y[0] == (float)k && y[1] == (float)k && y[2] == (float)k);
		value[LARGE / 2 - 1] = value[LARGE - 1] = -1;
		/* the other is copied */
		assert_int_equal(m.set_weights(in, 1, name + k % 2, &t, NULL, NULL), WEFT_OK);
		assert_int_equal(run(in, 0, x, y, NULL), WEFT_OK);
		assert_true(y[0] == (float)k && y[1] == (k % 2 ? (float)k : -1.f) &&
			    y[2] == (k % 2 ? -1.f : (float)k));
		if (k % 4 == 0)
			assert_int_equal(m.clone(in, &other, NULL), WEFT_OK);
		if (k % 4 != 1 || !other)
			continue;
		assert_int_equal(run(other, 0, x, y, NULL), WEFT_OK);
		/* a clone's memory is not taken */
		assert_true(y[0] == 4 && y[1] == -1 && y[2] == 4);
		m.close(other);
	}
	m.close(in);
	m.close(other);
	free(first);
	free(value);
}

static void test_nothing_to_change(void **unused)
{
	(void)unused;
	const WeftModel plain = {.size = sizeof plain,
				 .abi = WEFT_ABI_VERSION,
				 .manifest = &manifest,
				 WEFT_RUNTIME_FUNCTIONS,
				 WEFT_NO_STATE_FUNCTIONS};
	float v[3];
	WeftStatus status;
	WeftTensor t = tensor(v);
	WeftInstance *in = opened(&plain), *copy;
	assert_int_equal(plain.state_get(in, 0, &t, &status), WEFT_ERR_ARGUMENT);
	assert_string_equal(status.message, "the model has no state");
	assert_int_equal(plain.set_weights(in, 0, NULL, NULL, NULL, &status), WEFT_ERR_ARGUMENT);
	assert_int_equal(plain.state_reset(in, &status), WEFT_OK);
	assert_int_equal(plain.clone(in, &copy, &status), WEFT_OK);
	plain.close(in);
	plain.close(copy);
}

/* ---- many threads ---- */

enum { THREADS = 4, ROUNDS = 2000 };

typedef struct {
	WeftInstance *in;
	int32_t done, busy;
} Stepper;

static void *step_on(void *arg)
{
	Stepper *s = arg;
	float x[3] = {1, 1, 1}, y[3];
	const WeftContext c = {.size = sizeof c, .nthreads = 1};
	for (int k = 0; k < ROUNDS; k++) {
		int code = run(s->in, ADD, x, y, &c);
		s->done += code == WEFT_OK;
		s->busy += code == WEFT_ERR_BUSY;
	}
	return NULL;
}

static void test_threads(void **unused)
{
	(void)unused;
	pthread_t thread[THREADS];
	WeftInstance *in = opened(&model);
	Stepper s[THREADS];
	int32_t done = 0;
	for (int k = 0; k < THREADS; k++) {
		s[k] = (Stepper){.in = in};
		assert_int_equal(pthread_create(&thread[k], NULL, step_on, &s[k]), 0);
	}
	for (int k = 0; k < THREADS; k++) {
		pthread_join(thread[k], NULL);
		assert_int_equal(s[k].done + s[k].busy, ROUNDS);
		done += s[k].done;
	}
	/* each that was served counts once */
	expect(in, 5 + (float)done, 6 + (float)done, 7 + (float)done);
	model.close(in);
}

static void *replace_on(void *arg)
{
	Stepper *s = arg;
	const char *name = "w";
	const WeftContext c = {.size = sizeof c, .nthreads = 1};
	for (int k = 0; k < ROUNDS; k++) {
		float w[3] = {(float)k, (float)k, (float)k};
		WeftTensor t = tensor(w);
		int code = replaceable.set_weights(s->in, 1, &name, &t, &c, NULL);
		s->done += code == WEFT_OK;
		s->busy += code == WEFT_ERR_BUSY;
	}
	return NULL;
}

/* A run sees the old weights or the new ones, never some of each. */
static void test_weights_while_running(void **unused)
{
	(void)unused;
	pthread_t thread;
	float x[3], y[3], w[3] = {1, 1, 1};
	const char *name = "w";
	WeftTensor t = tensor(w);
	const WeftContext c = {.size = sizeof c, .nthreads = 1};
	Stepper s = {.in = opened(&replaceable)};
	int32_t served = 0, refused = 0;
	assert_int_equal(replaceable.set_weights(s.in, 1, &name, &t, &c, NULL), WEFT_OK);
	assert_int_equal(pthread_create(&thread, NULL, replace_on, &s), 0);
	for (int k = 0; k < ROUNDS; k++) {
		int code = run(s.in, PEEK, x, y, &c);
		served += code == WEFT_OK;
		refused += code == WEFT_ERR_BUSY;
		if (code == WEFT_OK)
			assert_true(y[0] / 5 == y[1] / 6 && y[1] / 6 == y[2] / 7);
	}
	pthread_join(thread, NULL);
	assert_int_equal(served, ROUNDS); /* none is refused, and nothing that is set */
	assert_int_equal(refused, 0);
	assert_int_equal(s.done, ROUNDS);
	assert_int_equal(run(s.in, PEEK, x, y, &c), WEFT_OK);
	replaceable.close(s.in);
}

/* Load: threads that run without a pause, one that sets weights and one that sets state, by turns
 * or all of it. */
typedef struct {
	WeftInstance *in;
	_Atomic int *stop;
	_Atomic int32_t served;
	int32_t refused, wrong;
} Load;

/* By each of them, so many times at least. */
static bool all_served(const Load *l, int n, int32_t least)
{
	while (n && l[n - 1].served >= least)
		n--;
	return !n;
}

static void *peek_on(void *arg)
{
	Load *l = arg;
	const WeftContext c = {.size = sizeof c, .nthreads = 1};
	while (!*l->stop) {
		float y[3] = {0};
		int code = run(l->in, PEEK, y, y, &c);
		l->served += code == WEFT_OK;
		l->refused += code != WEFT_OK;
		/* what state is first, or else three times the same */
		const bool first = y[0] / 5 == y[1] / 6 && y[1] / 6 == y[2] / 7;
		l->wrong += code == WEFT_OK && !first && !(y[0] == y[1] && y[1] == y[2]);
		/* weights of one set, and what state first was in any */
		l->refused += weight(l->in, "w", y, NULL, NULL) != WEFT_OK;
		l->wrong += y[1] != 10 && !(y[0] == y[1] && y[1] == y[2]);
		l->refused += weight(l->in, "sum", y, NULL, NULL) != WEFT_OK;
		l->wrong += y[0] != 5 || y[1] != 6 || y[2] != 7;
	}
	return NULL;
}

static void *set_state_on(void *arg)
{
	Load *l = arg;
	while (!*l->stop) {
		const float v = (float)(l->served % 100 + 1);
		float value[3] = {v, v, v};
		WeftTensor t = tensor(value);
		int code = l->served % 3 ? model.state_set(l->in, 0, &t, NULL)
					 : model.state_reset(l->in, NULL);
		l->served += code == WEFT_OK;
		l->refused += code != WEFT_OK;
	}
	return NULL;
}

/* Fewer runners: state is set in place more often. */
static void under_load(int runners)
{
	enum { MOST = 3, SETS_OF_WEIGHTS = 500 };
	pthread_t thread[MOST + 1];
	Load load[MOST + 1] = {0};
	_Atomic int stop = 0;
	float w[3] = {1, 1, 1};
	const char *name = "w";
	WeftTensor t = tensor(w);
	const WeftContext c = {.size = sizeof c, .nthreads = 1};
	WeftInstance *in = opened(&replaceable), *copy;
	assert_int_equal(replaceable.set_weights(in, 1, &name, &t, &c, NULL), WEFT_OK);
	for (int k = 0; k <= runners; k++) {
		load[k].in = in;
		load[k].stop = &stop;
		assert_int_equal(pthread_create(&thread[k], NULL,
						k < runners ? peek_on : set_state_on, &load[k]),
				 0);
	}
	for (int k = 0; k < SETS_OF_WEIGHTS || !all_served(load, runners + 1, 100);) {
		w[0] = w[1] = w[2] = (float)k;
		int code = replaceable.set_weights(in, 1, &name, &t, &c, NULL);
		/* a call that stands still over many sets */
		assert_true(code == WEFT_OK || code == WEFT_ERR_BUSY);
		if (code == WEFT_OK) {
			float got[3];
			assert_int_equal(weight(in, "w", got, NULL, NULL), WEFT_OK);
			assert_memory_equal(got, w, sizeof w);
		}
		k += code == WEFT_OK;
		if (k % 50 == 0 && code == WEFT_OK) {
			assert_int_equal(model.clone(in, &copy, NULL), WEFT_OK);
			model.close(copy);
		}
	}
	stop = 1;
	for (int k = 0; k <= runners; k++)
		pthread_join(thread[k], NULL);
	for (int k = 0; k < runners; k++) {
		assert_int_equal(load[k].refused, 0);
		assert_int_equal(load[k].wrong, 0);
	}
	model.close(in);
}

static void test_under_load(void **unused)
{
	(void)unused;
	under_load(1);
	under_load(3);
}

/* ---- values of the weight section ---- */

static void test_get_weights(void **unused)
{
	(void)unused;
	float x[3] = {1, 1, 1}, y[3], v[3] = {0}, w[3] = {2, 3, 4};
	const WeftModel *const kinds[] = {&model, &replaceable};
	const char *name = "w", *const two[] = {"rest", "w"};
	WeftStatus status;
	WeftTensor t = tensor(w);
	for (size_t k = 0; k < 2; k++) {
		WeftInstance *in = opened(kinds[k]);
		assert_int_equal(weight(in, "w", v, NULL, &status), WEFT_OK);
		assert_true(v[0] == 1 && v[1] == 10 && v[2] == 100);
		assert_int_equal(run(in, ADD, x, y, NULL), WEFT_OK);
		assert_int_equal(weight(in, "sum", v, NULL, NULL), WEFT_OK); /* what it first was */
		assert_true(v[0] == 5 && v[1] == 6 && v[2] == 7);
		const WeftTensor both[] = {tensor(v), tensor(y)};
		assert_int_equal(kinds[k]->get_weights(in, 2, two, both, NULL, NULL), WEFT_OK);
		assert_true(v[0] == 0 && v[2] == 0 && y[1] == 10);
		assert_int_equal(kinds[k]->get_weights(in, 0, NULL, NULL, NULL, NULL), WEFT_OK);
		model.close(in);
	}
	WeftInstance *in = opened(&replaceable), *other;
	assert_int_equal(model.clone(in, &other, NULL), WEFT_OK);
	assert_int_equal(model.set_weights(in, 1, &name, &t, NULL, NULL), WEFT_OK);
	assert_int_equal(weight(in, "w", v, NULL, NULL), WEFT_OK);
	assert_true(v[0] == 2 && v[1] == 3 && v[2] == 4);
	assert_int_equal(weight(other, "w", v, NULL, NULL), WEFT_OK);
	assert_true(v[1] == 10);
	assert_int_equal(weight(in, "sum", v, NULL, NULL), WEFT_OK);
	assert_true(v[1] == 6);
	model.close(in);
	model.close(other);
}

/* Nothing is written then. */
static void test_get_wrong(void **unused)
{
	(void)unused;
	float v[3] = {-1, -1, -1};
	int64_t four[] = {4}, apart[] = {2};
	const char *none = NULL, *name = "w";
	WeftContext c = {.size = sizeof c, .flags = WEFT_IGNORE_UNKNOWN}, unset = {0};
	WeftInstance *in = opened(&model);
	WeftStatus status;
	WeftTensor t = tensor(v);
	assert_int_equal(model.get_weights(NULL, 1, &name, &t, NULL, &status), WEFT_ERR_ARGUMENT);
	assert_int_equal(model.get_weights(in, 1, NULL, &t, NULL, NULL), WEFT_ERR_ARGUMENT);
	assert_int_equal(model.get_weights(in, 1, &name, NULL, NULL, NULL), WEFT_ERR_ARGUMENT);
	assert_int_equal(model.get_weights(in, 1, &none, &t, NULL, &status), WEFT_ERR_ARGUMENT);
	assert_string_equal(status.message, "get_weights: name 0 is a null pointer");
	assert_int_equal(weight(in, "v", v, NULL, &status), WEFT_ERR_ARGUMENT);
	assert_string_equal(status.message, "the model has no weight v");
	assert_int_equal(weight(in, "", v, NULL, &status), WEFT_ERR_ARGUMENT);
	assert_int_equal(weight(in, "v", v, &c, &status), WEFT_OK);
	assert_int_equal(weight(in, "w", v, &unset, &status), WEFT_ERR_ABI);
	t.shape = four;
	assert_int_equal(model.get_weights(in, 1, &name, &t, NULL, &status), WEFT_ERR_INPUT);
	assert_string_equal(status.message, "weight w: dimension 0 is 4, expected 3");
	t = tensor(v);
	t.strides = apart;
	assert_int_equal(model.get_weights(in, 1, &name, &t, NULL, NULL), WEFT_ERR_INPUT);
	t = tensor(NULL);
	assert_int_equal(model.get_weights(in, 1, &name, &t, NULL, &status), WEFT_ERR_INPUT);
	assert_string_equal(status.message, "weight w has no data");
	t = tensor(v);
	t.dtype.bits = 16;
	name = "sum";
	assert_int_equal(model.get_weights(in, 1, &name, &t, NULL, NULL), WEFT_ERR_INPUT);
	assert_true(v[0] == -1 && v[1] == -1 && v[2] == -1);
	model.close(in);
}

/* ---- callers of another version ---- */

/* What grows ends where its last field does: the next one must not lie in what an older size
 * covers. */
#define ENDS_WITH(type, field)                                                                     \
	_Static_assert(offsetof(type, field) + sizeof(((type *)0)->field) == sizeof(type), #type)
ENDS_WITH(WeftDim, text);
ENDS_WITH(WeftTensorInfo, layout);
ENDS_WITH(WeftSymbolInfo, hi);
ENDS_WITH(WeftCallInfo, reserved);
ENDS_WITH(WeftLayoutDim, padded);
ENDS_WITH(WeftParamInfo, aliases);
ENDS_WITH(WeftManifest, compiler);
ENDS_WITH(WeftEntry, launch);
ENDS_WITH(WeftOpen, device);
ENDS_WITH(WeftContext, counters);
ENDS_WITH(WeftOpContext, comm);
ENDS_WITH(WeftComm, group);
ENDS_WITH(WeftModel, wait);

static void test_other_sizes(void **unused)
{
	(void)unused;
	float x[3] = {1, 1, 1}, y[3];
	struct {
		WeftContext c;
		int64_t later[4];
	} newer = {.c = {.size = sizeof newer, .nthreads = 1}, .later = {-1, -1, -1, -1}};
	struct {
		uint32_t size, flags;
		int64_t not_its[16];
	} older = {.size = 8, .not_its = {-1, -1, -1, -1, -1, -1, -1, -1, -1}};
	WeftInstance *in = opened(&model);
	assert_int_equal(run(in, ADD, x, y, &newer.c), WEFT_OK);
	assert_int_equal(run(in, ADD, x, y, (const WeftContext *)(const void *)&older), WEFT_OK);
	expect(in, 7, 8, 9);
	older.size = 0;
	assert_int_equal(run(in, ADD, x, y, (const WeftContext *)(const void *)&older),
			 WEFT_ERR_ABI);
	WeftModel other = model;
	assert_null(weft_model_check(&model));
	assert_non_null(weft_model_check(NULL));
	other.abi = WEFT_ABI_VERSION - 1;
	assert_non_null(strstr(weft_model_check(&other), "too old"));
	other.abi = WEFT_ABI_VERSION + 1;
	assert_non_null(strstr(weft_model_check(&other), "too new"));
	other = model;
	other.size = offsetof(WeftModel, get_weights);
	assert_non_null(weft_model_check(&other));
	model.close(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_state),
		cmocka_unit_test(test_fits),
		cmocka_unit_test(test_wrong_tensors),
		cmocka_unit_test(test_clone),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_failed_call),
		cmocka_unit_test(test_donation),
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_large_weights),
		cmocka_unit_test(test_nothing_to_change),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_other_sizes),
		cmocka_unit_test(test_get_weights),
		cmocka_unit_test(test_get_wrong),
		cmocka_unit_test(test_weights_while_running),
		cmocka_unit_test(test_under_load),
	};
	replaceable = model;
	replaceable.replaceable = 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
