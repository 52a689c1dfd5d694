/* Instances: where weights come from and what is wrong with them, state, clones, weights that are
 * replaced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime_model.h"

/* A section of 64-byte rows: "w" f32[2, 3] at 64, "v" i16[5] stored as [2][3] at 128, "w" again
 * (tied) transposed at 192, a folded value without a name at 0, the first contents of state "s" at
 * 256. */
enum { ROW = 64, SECTION = 5 * ROW };
static const int64_t dim_w[] = {2, 3}, dim_v[] = {5};
static const WeftLayoutDim layout_v[] = {{0, 3, 2, 2}, {0, 1, 3, 3}},
			   layout_t[] = {{1, 1, 3, 3}, {0, 1, 2, 2}};
static const WeftParamInfo params[] = {
	{.name = "", .dtype = F32, .rank = 0, .offset = 0, .bytes = 4},
	{.name = "w", .dtype = F32, .rank = 2, .dim = dim_w, .offset = ROW, .bytes = 24},
	{.name = "v", .dtype = I16, .rank = 1, .dim = dim_v, .nlayout = 2, .layout = layout_v, .offset = 2 * ROW, .bytes = 12},
	{.name = "w", .dtype = F32, .rank = 2, .dim = dim_w, .nlayout = 2, .layout = layout_t, .offset = 3 * ROW, .bytes = 24},
};
static const WeftDim three[] = {{3, -1, "3"}};
static const WeftTensorInfo state_info[] = {{.name = "s",
					     .dtype = F32,
					     .rank = 1,
					     .dim = three,
					     .donates = -1,
					     .offset = 64,
					     .bytes = 12,
					     .init = 4 * ROW},
					    {.name = "zero",
					     .dtype = F32,
					     .rank = 1,
					     .dim = three,
					     .donates = -1,
					     .offset = 0,
					     .bytes = 12,
					     .init = WEFT_ZEROS}};
static _Alignas(64) char section[SECTION];
static WeftManifest manifest = MANIFEST("model");
static WeftModel model = {MODEL(manifest),          COUNTED(nparam, param, params),
			  .replaceable = 1,         .weights = section,
			  .weights_bytes = SECTION, COUNTED(nstate, state, state_info),
			  .state_bytes = 128,       WEFT_STATE_FUNCTIONS};
static WeftModel fresh;
static WeftStatus status;

static int setup(void **state)
{
	(void)state;
	for (int k = 0; k < SECTION; k++)
		section[k] = (char)(k * 5 + 1);
	model = fresh;
	manifest.features = "";
	return 0;
}

#define IS(call, want, text)                                                                       \
	do {                                                                                       \
		assert_int_equal(call, want);                                                      \
		assert_string_equal(status.message, text);                                         \
		assert_int_equal(status.code, want);                                               \
	} while (0)

static const void *weights_of(WeftInstance *in)
{
	return ((const Constants *)current_now(&in->weights))->weights;
}

static const void *opened(const WeftOpen *o, WeftInstance **in)
{
	IS(model.open(&model, o, in, &status), WEFT_OK, "");
	return weights_of(*in);
}

static void refused(const WeftOpen *o, int code, const char *text)
{
	WeftInstance *in = (WeftInstance *)section;
	IS(model.open(&model, o, &in, &status), code, text);
	assert_null(in);
}

static void test_memory(void **state)
{
	(void)state;
	WeftInstance *in;
	_Alignas(64) static char mine[SECTION + 64];
	WeftOpen o = {.size = sizeof o, .weights = mine, .weights_bytes = SECTION};
	assert_ptr_equal(opened(NULL, &in), section);
	model.close(in);
	assert_ptr_equal(opened(&o, &in), mine);
	model.close(in);
	model.close(NULL);
	const char *wrong = "weights of another size, or not 64-byte aligned";
	for (int k = 1; k < 64; k *= 2) {
		o.weights = mine + k;
		refused(&o, WEFT_ERR_ARGUMENT, wrong);
	}
	o = (WeftOpen){.size = sizeof o, .weights = mine, .weights_bytes = SECTION + 1};
	refused(&o, WEFT_ERR_ARGUMENT, wrong);
	o.weights_bytes = SECTION - 1;
	refused(&o, WEFT_ERR_ARGUMENT, wrong);
	o.size = 4;
	refused(&o, WEFT_ERR_ABI, "open: WeftOpen.size is not set");
	IS(model.open(NULL, NULL, &in, &status), WEFT_ERR_ARGUMENT,
	   "open: no model or no place for the result");
	IS(model.open(&model, NULL, NULL, &status), WEFT_ERR_ARGUMENT,
	   "open: no model or no place for the result");
}

/* ---- files ---- */

static void write_weights(const char *path, const WeftWeightHeader *h, size_t bytes)
{
	static char file[WEFT_WEIGHT_HEADER + SECTION + 1];
	memset(file, 0, sizeof file);
	memcpy(file, h, sizeof *h);
	memcpy(file + WEFT_WEIGHT_HEADER, section, SECTION);
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(file, 1, bytes, f), bytes);
	fclose(f);
}

static void test_file(void **state)
{
	(void)state;
	char path[] = "/tmp/weights-XXXXXX", text[200];
	close(mkstemp(path));
	WeftInstance *in;
	WeftOpen o = {.size = sizeof o, .weights_path = path};
	const WeftWeightHeader good = {WEFT_WEIGHT_MAGIC, "abc", SECTION,
				       weft_checksum(section, SECTION)};
	const size_t whole = WEFT_WEIGHT_HEADER + SECTION;
	model.weights = NULL;
	model.weights_hash = "abc";
	write_weights(path, &good, whole);
	assert_memory_equal(opened(&o, &in), section, SECTION);
	model.close(in);
	write_weights(path, &good, whole + 1);
	assert_memory_equal(opened(&o, &in), section, SECTION);
	model.close(in);
	write_weights(path, &good, whole - 1);
	snprintf(text, sizeof text, "%s: truncated", path);
	refused(&o, WEFT_ERR_FILE, text);
	write_weights(path, &good, WEFT_WEIGHT_HEADER);
	refused(&o, WEFT_ERR_FILE, text);
	write_weights(path, &good, 0);
	refused(&o, WEFT_ERR_FILE, text);
	write_weights(path, &good, WEFT_WEIGHT_HEADER - 1);
	snprintf(text, sizeof text, "%s: not a file of weights", path);
	refused(&o, WEFT_ERR_FILE, text);
	WeftWeightHeader h = good;
	h.magic[13]++; /* the version */
	write_weights(path, &h, whole);
	refused(&o, WEFT_ERR_FILE, text);
	snprintf(text, sizeof text, "%s: weights of another model, or arranged for another target",
		 path);
	h = good;
	h.hash[2]++;
	write_weights(path, &h, whole);
	refused(&o, WEFT_ERR_FILE, text);
	h = good;
	h.bytes--;
	write_weights(path, &h, whole);
	refused(&o, WEFT_ERR_FILE, text);
	write_weights(path, &good, whole);
	model.weights_hash = NULL;
	refused(&o, WEFT_ERR_FILE, text);
	model.weights_hash = "abc";
	h = good;
	h.checksum++;
	write_weights(path, &h, whole);
	assert_memory_equal(opened(&o, &in), section, SECTION); /* nobody asked */
	model.close(in);
	o.flags = WEFT_OPEN_VERIFY;
	snprintf(text, sizeof text, "%s: damaged: its checksum differs", path);
	refused(&o, WEFT_ERR_FILE, text);
	write_weights(path, &good, whole);
	assert_memory_equal(opened(&o, &in), section, SECTION);
	model.close(in);
	unlink(path);
	snprintf(text, sizeof text, "%s: cannot read the weights: No such file or directory", path);
	refused(&o, WEFT_ERR_FILE, text);
	o.weights_path = "/";
	refused(&o, WEFT_ERR_FILE, "/: not a regular file");
}

/* Beside the object that holds the table, which here is the program. */
static void test_beside(void **state)
{
	(void)state;
	static char name[64], path[4200], text[4400], wordy[4200];
	WeftInstance *in;
	const WeftWeightHeader good = {WEFT_WEIGHT_MAGIC, "abc", SECTION,
				       weft_checksum(section, SECTION)};
	model.weights = NULL;
	model.weights_hash = "abc";
	refused(NULL, WEFT_ERR_FILE, "the model has no weights; name a file");
	ssize_t n = readlink("/proc/self/exe", path, 4000);
	assert_true(n > 0);
	path[n] = 0;
	snprintf(name, sizeof name, "runtime_open.%ld.weights", (long)getpid());
	snprintf(strrchr(path, '/') + 1, sizeof name, "%s", name);
	model.weights_file = name;
	assert_int_equal(model.open(&model, NULL, &in, &status), WEFT_ERR_FILE);
	assert_non_null(strstr(status.message, name));
	write_weights(path, &good, WEFT_WEIGHT_HEADER + SECTION);
	assert_memory_equal(opened(NULL, &in), section, SECTION);
	model.close(in);
	model.weights_file = path; /* wherever that is */
	assert_memory_equal(opened(NULL, &in), section, SECTION);
	model.close(in);
	unlink(path);
	snprintf(text, sizeof text, "%s: cannot read the weights: No such file or directory", path);
	text[sizeof status.message - 1] = 0;
	refused(NULL, WEFT_ERR_FILE, text);
	memset(wordy, 'x', sizeof wordy - 1);
	model.weights_file = wordy;
	refused(NULL, WEFT_ERR_FILE, "the path of the weights is too long");
	model.weights_bytes = 0; /* none are needed */
	model.nstate = 0;
	model.state_bytes = 0;
	assert_null(opened(NULL, &in));
	model.close(in);
}

/* ---- state ---- */

static WeftTensor row(float *x, int64_t *shape)
{
	*shape = 3;
	return (WeftTensor){x, {WEFT_CPU, 0}, 1, F32, shape, NULL, 0};
}

static void test_state(void **state)
{
	(void)state;
	WeftInstance *in, *copy;
	float x[3], mine[4] = {7, 8, 9, 10};
	int64_t shape;
	WeftTensor t = row(x, &shape), from = row(mine, &shape);
	const float zero[3] = {0};
	opened(NULL, &in);
	IS(model.state_get(in, 0, &t, &status), WEFT_OK, "");
	assert_memory_equal(x, section + 4 * ROW, 12);
	IS(model.state_get(in, 1, &t, &status), WEFT_OK, "");
	assert_memory_equal(x, zero, 12);
	from.byte_offset = 4;
	IS(model.state_set(in, 0, &from, &status), WEFT_OK, "");
	IS(model.state_get(in, 0, &t, &status), WEFT_OK, "");
	assert_memory_equal(x, mine + 1, 12);
	IS(model.state_get(in, 1, &t, &status), WEFT_OK, "");
	assert_memory_equal(x, zero, 12);
	IS(model.clone(in, &copy, &status), WEFT_OK, "");
	IS(model.state_set(in, 1, &from, &status), WEFT_OK, "");
	IS(model.state_get(copy, 0, &t, &status), WEFT_OK, "");
	assert_memory_equal(x, mine + 1, 12);
	IS(model.state_get(copy, 1, &t, &status), WEFT_OK, "");
	assert_memory_equal(x, zero, 12);
	IS(model.state_reset(in, &status), WEFT_OK, "");
	IS(model.state_get(in, 0, &t, &status), WEFT_OK, "");
	assert_memory_equal(x, section + 4 * ROW, 12);
	IS(model.state_get(in, 1, &t, &status), WEFT_OK, "");
	assert_memory_equal(x, zero, 12);
	model.close(in);
	IS(model.state_get(copy, 0, &t, &status), WEFT_OK, "");
	assert_memory_equal(x, mine + 1, 12);
	IS(model.state_get(copy, 2, &t, &status), WEFT_ERR_ARGUMENT,
	   "state: no state 2, the model has 2");
	IS(model.state_get(NULL, 0, &t, &status), WEFT_ERR_ARGUMENT, "state: no instance given");
	IS(model.state_set(copy, 0, NULL, &status), WEFT_ERR_ARGUMENT, "state: no tensor given");
	shape = 2;
	IS(model.state_get(copy, 0, &t, &status), WEFT_ERR_INPUT,
	   "state s: dimension 0 is 2, expected 3");
	shape = 3;
	t.ndim = 0;
	IS(model.state_set(copy, 0, &t, &status), WEFT_ERR_INPUT,
	   "state s has 0 dimensions, expected 1");
	t.ndim = 1;
	t.dtype.code = WEFT_INT;
	IS(model.state_set(copy, 0, &t, &status), WEFT_ERR_INPUT,
	   "state s has dtype i32, expected f32");
	t.dtype.code = WEFT_FLOAT;
	t.dtype.bits = 16;
	IS(model.state_set(copy, 0, &t, &status), WEFT_ERR_INPUT,
	   "state s has dtype f16, expected f32");
	t.dtype.bits = 32;
	t.device.type = 2;
	IS(model.state_set(copy, 0, &t, &status), WEFT_ERR_INPUT,
	   "state s is not in the processor's memory");
	t.device.type = WEFT_CPU;
	t.data = NULL;
	IS(model.state_set(copy, 0, &t, &status), WEFT_ERR_INPUT, "state s has no data");
	t.data = x;
	int64_t stride = 2;
	t.strides = &stride;
	IS(model.state_set(copy, 0, &t, &status), WEFT_ERR_INPUT,
	   "state s: the stride of dimension 0 is 2, expected 1, row-major");
	model.close(copy);
	IS(model.state_reset(NULL, &status), WEFT_ERR_ARGUMENT, "state_reset: no instance given");
	IS(model.clone(NULL, &copy, &status), WEFT_ERR_ARGUMENT,
	   "clone: no instance or no place for the result");
}

/* Readers share an instance, who writes has it alone; nobody waits. */
static void test_busy(void **state)
{
	(void)state;
	WeftInstance *in, *copy = NULL;
	float x[3] = {0};
	int64_t shape;
	WeftTensor t = row(x, &shape);
	const char *busy = "another call uses the instance";
	opened(NULL, &in);
	IS(instance_enter(in, STATE_READ, &status), WEFT_OK, "");
	IS(instance_enter(in, STATE_READ, &status), WEFT_OK, "");
	IS(model.state_get(in, 0, &t, &status), WEFT_OK, "");
	IS(instance_enter(in, STATE_WRITE, &status), WEFT_ERR_BUSY, busy);
	IS(model.state_set(in, 0, &t, &status), WEFT_OK, ""); /* of a copy */
	in->calls->replaces_state = 1;
	IS(model.state_set(in, 0, &t, &status), WEFT_ERR_BUSY, "another call replaces the state");
	in->calls->replaces_state = 0;
	instance_leave(in, STATE_READ);
	IS(model.state_reset(in, &status), WEFT_OK, "");
	IS(model.set_weights(in, 0, NULL, NULL, NULL, &status), WEFT_OK, "");
	in->calls->replaces_weights = 1;
	IS(model.set_weights(in, 0, NULL, NULL, NULL, &status), WEFT_ERR_BUSY,
	   "another call replaces the weights");
	in->calls->replaces_weights = 0;
	IS(model.clone(in, &copy, &status), WEFT_OK, "");
	model.close(copy);
	instance_leave(in, STATE_READ);
	IS(model.state_set(in, 0, &t, &status), WEFT_OK, "");
	IS(instance_enter(in, STATE_WRITE, &status), WEFT_OK, "");
	IS(instance_enter(in, STATE_WRITE, &status), WEFT_ERR_BUSY, busy);
	IS(model.state_get(in, 0, &t, &status), WEFT_ERR_BUSY, busy);
	IS(model.state_set(in, 0, &t, &status), WEFT_ERR_BUSY, busy);
	IS(model.state_reset(in, &status), WEFT_ERR_BUSY, busy);
	IS(model.set_weights(in, 0, NULL, NULL, NULL, &status), WEFT_OK, "");
	copy = in;
	IS(model.clone(in, &copy, &status), WEFT_ERR_BUSY, busy);
	assert_null(copy);
	instance_leave(in, STATE_WRITE);
	IS(model.state_get(in, 0, &t, &status), WEFT_OK, "");
	IS(model.state_reset(in, &status), WEFT_OK, "");
	model.close(in);
}

/* Calls go on with what they began with, of the last three sets that were replaced; older ones keep
 * it from being replaced again. */
static void test_sets(void **state)
{
	(void)state;
	WeftInstance *in;
	const void *seen[SETS];
	uint32_t k[SETS];
	opened(NULL, &in);
	for (int i = 0; i < SETS; i++) {
		k[i] = current_begin(&in->weights);
		seen[i] = ((const Constants *)current_at(&in->weights, k[i]))->weights;
		for (int j = 0; j < i; j++)
			assert_ptr_not_equal(seen[i], seen[j]);
		if (i + 1 < SETS)
			IS(model.set_weights(in, 0, NULL, NULL, NULL, &status), WEFT_OK, "");
	}
	IS(model.set_weights(in, 0, NULL, NULL, NULL, &status), WEFT_ERR_BUSY,
	   "calls that began long ago use what was replaced since");
	for (int i = 0; i < SETS; i++)
		assert_memory_equal((const char *)seen[i] + ROW, section + ROW, 24);
	assert_ptr_equal(weights_of(in), seen[SETS - 1]);
	current_end(in, &in->weights, k[1]);
	IS(model.set_weights(in, 0, NULL, NULL, NULL, &status), WEFT_OK, "");
	current_end(in, &in->weights, k[3]);
	IS(model.set_weights(in, 0, NULL, NULL, NULL, &status), WEFT_OK, "");
	IS(model.set_weights(in, 0, NULL, NULL, NULL, &status), WEFT_OK, "");
	current_end(in, &in->weights, k[0]);
	current_end(in, &in->weights, k[2]);
	model.close(in);
}

/* ---- other weights ---- */

static void test_weights(void **state)
{
	(void)state;
	WeftInstance *in, *copy;
	float w[6] = {1, 2, 3, 4, 5, 6};
	int16_t v[5] = {10, 20, 30, 40, 50};
	int64_t shape_w[] = {2, 3}, shape_v[] = {5};
	const char *names[] = {"w", "v", "u"};
	WeftTensor t[] = {{w, {WEFT_CPU, 0}, 2, F32, shape_w, NULL, 0},
			  {v, {WEFT_CPU, 0}, 1, I16, shape_v, NULL, 0}};
	const float turned[6] = {1, 4, 2, 5, 3, 6};
	const int16_t stored[6] = {10, 20, 30, 40, 50, 0};
	for (int32_t threads = 1; threads <= 3; threads++) {
		WeftContext c = {.size = sizeof c, .nthreads = threads};
		opened(NULL, &in);
		IS(model.clone(in, &copy, &status), WEFT_OK, "");
		IS(model.set_weights(in, 2, names, t, &c, &status), WEFT_OK, "");
		const char *now = weights_of(in);
		assert_ptr_not_equal(now, section);
		assert_int_equal((uintptr_t)now % 64, 0);
		assert_memory_equal(now, section, 4);
		assert_memory_equal(now + ROW, w, 24);
		assert_memory_equal(now + 2 * ROW, stored, 12);
		assert_memory_equal(now + 3 * ROW, turned, 24);
		assert_memory_equal(now + 4 * ROW, section + 4 * ROW, 12);
		for (int k = 24; k < ROW; k++)
			assert_int_equal(now[ROW + k], 0);
		assert_ptr_equal(weights_of(copy), section);
		w[0] = -1;
		IS(model.set_weights(in, 1, names, t, NULL, &status), WEFT_OK, "");
		now = weights_of(in);
		assert_memory_equal(now + ROW, w, 24);
		assert_memory_equal(now + 2 * ROW, stored, 12); /* as set before */
		w[0] = 1;
		model.close(in);
		IS(model.set_weights(copy, 0, NULL, NULL, NULL, &status), WEFT_OK, "");
		assert_memory_equal((const char *)weights_of(copy) + ROW, section + ROW, 24);
		model.close(copy);
	}
	opened(NULL, &in);
	IS(model.set_weights(in, 1, names + 2, t, NULL, &status), WEFT_ERR_ARGUMENT,
	   "the model has no weight u");
	names[2] = "";
	IS(model.set_weights(in, 1, names + 2, t, NULL, &status), WEFT_ERR_ARGUMENT,
	   "the model has no weight ");
	IS(model.set_weights(NULL, 0, NULL, NULL, NULL, &status), WEFT_ERR_ARGUMENT,
	   "set_weights: no instance given");
	IS(model.set_weights(in, 1, NULL, t, NULL, &status), WEFT_ERR_ARGUMENT,
	   "set_weights: no names given");
	IS(model.set_weights(in, 1, names, NULL, NULL, &status), WEFT_ERR_ARGUMENT,
	   "set_weights: no values given");
	WeftContext no_size = {0};
	IS(model.set_weights(in, 1, names, t, &no_size, &status), WEFT_ERR_ABI,
	   "set_weights: WeftContext.size is not set");
	const WeftThreads no_function = {.nthreads = 2};
	const WeftContext lame = {.size = sizeof lame, .threads = &no_function};
	IS(model.set_weights(in, 1, names, t, &lame, &status), WEFT_ERR_ARGUMENT,
	   "set_weights: WeftContext.threads has no function `parallel`");
	shape_w[1] = 4;
	IS(model.set_weights(in, 1, names, t, NULL, &status), WEFT_ERR_INPUT,
	   "weight w: dimension 1 is 4, expected 3");
	shape_w[1] = 3;
	t[0].ndim = 1;
	IS(model.set_weights(in, 1, names, t, NULL, &status), WEFT_ERR_INPUT,
	   "weight w has 1 dimensions, expected 2");
	t[0].ndim = 2;
	int64_t strides[] = {1, 2};
	t[0].strides = strides;
	IS(model.set_weights(in, 1, names, t, NULL, &status), WEFT_ERR_INPUT,
	   "weight w: the stride of dimension 1 is 2, expected 1, row-major");
	t[0].strides = NULL;
	t[0].data = NULL;
	IS(model.set_weights(in, 1, names, t, NULL, &status), WEFT_ERR_INPUT,
	   "weight w has no data");
	assert_ptr_equal(weights_of(in), section); /* nothing was done */
	model.close(in);
	model.replaceable = 0;
	opened(NULL, &in);
	IS(model.set_weights(in, 0, NULL, NULL, NULL, &status), WEFT_ERR_ARGUMENT,
	   "the model was not compiled with --replaceable-weights");
	model.close(in);
}

/* Sections that are large, so that what is written past their end shows. */
static void test_large(void **state)
{
	(void)state;
	enum { BYTES = 32 << 20 };
	static const int64_t dim[] = {BYTES / 4};
	static const WeftParamInfo one[] = {
		{.name = "w", .dtype = F32, .rank = 1, .dim = dim, .offset = 0, .bytes = BYTES}};
	char *w = aligned_alloc(64, BYTES);
	memset(w, 0x3f, BYTES);
	model.param = one;
	model.nparam = 1;
	model.weights = w;
	model.weights_bytes = BYTES;
	model.nstate = 0;
	model.state_bytes = 0;
	WeftInstance *in;
	opened(NULL, &in);
	IS(model.set_weights(in, 0, NULL, NULL, NULL, &status), WEFT_OK, "");
	assert_memory_equal(weights_of(in), w, BYTES);
	model.close(in);
	free(w);
}

/* ---- processors ---- */

static void test_processor(void **state)
{
	(void)state;
	static const char *const names[] = {"avx512vnni", "avx512f", "avx2", "movbe"};
	char missing[32], text[200];
	for (size_t k = 0; k < 4; k++) {
		manifest.features = names[k];
		WeftInstance *in;
		if (!weft_cpu_lacks(names[k], missing)) {
			opened(NULL, &in);
			model.close(in);
			continue;
		}
		snprintf(text, sizeof text,
			 "model was compiled for generic-c, but this processor has no %s; compile "
			 "it with a lower --target",
			 names[k]);
		refused(NULL, WEFT_ERR_CPU, text);
	}
}

#define TEST(name) cmocka_unit_test_setup(test_##name, setup)

int main(void)
{
	fresh = model;
	const struct CMUnitTest tests[] = {TEST(memory),  TEST(file),  TEST(beside),
					   TEST(state),   TEST(busy),  TEST(sets),
					   TEST(weights), TEST(large), TEST(processor)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
