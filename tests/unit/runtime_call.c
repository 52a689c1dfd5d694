/* sizes and run on a model written by hand: y[n, 2] = 2 * x[n, 2] + w; what is refused and how it
 * is said. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime_model.h"

static int kernel(const WeftFrame *f, int64_t begin, int64_t end)
{
	const float *x = f->buf[0], *w = f->buf[2];
	float *y = f->buf[1];
	for (int64_t i = begin; i < end; i++)
		for (int k = 0; k < 2; k++)
			y[2 * i + k] = 2 * x[2 * i + k] + w[k];
	return 0;
}

static int sizes_fn(const int64_t *extent, int64_t *slot, WeftStatus *status)
{
	if (extent[0] == 13)
		return weft_fail(status, WEFT_ERR_INPUT, "guard: n is %lld", (long long)extent[0]);
	slot[0] = extent[0];
	slot[1] = extent[0];
	slot[2] = 2;
	slot[3] = 100;
	return WEFT_OK;
}

static int run_fn(WeftRegion *r, void *const *buf, const int64_t *slot)
{
	void *b[3] = {buf[0], buf[2], buf[3]};
	memset(buf[4], 0, 100);
	return weft_phase(r, kernel, b, slot, 0, slot[0]);
}

static const WeftDim dims[] = {{-1, 0, "n"}, {2, -1, "2"}};
static const WeftTensorInfo inputs[] = {TENSOR("x", F32, 2, dims), TENSOR("other", F32, 1, dims)};
static const WeftTensorInfo outputs[] = {TENSOR("y", F32, 2, dims)};
static const WeftSymbolInfo symbols[] = {{"n", 1, 64}};
static const WeftCallInfo calls[] = {{"double", "map", 4, 16}};
static const WeftEntry entry = {ENTRY("main", 4, 3, sizes_fn, run_fn),
				IN(inputs),
				OUT(outputs),
				COUNTED(nsymbol, symbol, symbols),
				COUNTED(ncall, call, calls),
				.flops = 4};
static const WeftEntry *const entries[] = {&entry};
static const WeftManifest manifest = MANIFEST("m");
static const int64_t wdim[] = {2};
static const WeftParamInfo params[] = {{"w", F32, 1, wdim, 0, NULL, 0, 8}};
_Alignas(64) static const float weights[16] = {10, 20};
static const WeftModel model = {MODEL(manifest),
				COUNTED(nentry, entry, entries),
				COUNTED(nparam, param, params),
				.replaceable = 1,
				.weights = weights,
				.weights_bytes = 64,
				WEFT_STATE_FUNCTIONS};

typedef struct {
	float x[200], y[200];
	int64_t xs[2], os[1], ys[2], xstride[2];
	WeftTensor in[2], out;
	WeftInstance *inst;
	WeftSizes *sizes;
	WeftStatus status;
	char work[4096];
} Fix;

static Fix *fix_new(int64_t n)
{
	Fix *f = calloc(1, sizeof *f);
	f->xs[0] = f->ys[0] = f->os[0] = n;
	f->xs[1] = f->ys[1] = 2;
	for (int i = 0; i < 200; i++)
		f->x[i] = (float)i;
	f->in[0] = (WeftTensor){f->x, {WEFT_CPU, 0}, 2, F32, f->xs, NULL, 0};
	f->in[1] = (WeftTensor){f->x, {WEFT_CPU, 0}, 1, F32, f->os, NULL, 0};
	f->out = (WeftTensor){f->y, {WEFT_CPU, 0}, 2, F32, f->ys, NULL, 0};
	assert_int_equal(model.open(&model, NULL, &f->inst, &f->status), WEFT_OK);
	f->sizes = malloc(entry.sizes_bytes);
	return f;
}

static void fix_free(Fix *f)
{
	model.close(f->inst);
	free(f->sizes);
	free(f);
}

static int fix_sizes(Fix *f)
{
	return model.sizes(f->inst, 0, f->in, f->sizes, &f->status);
}

static int fix_run(Fix *f, const WeftContext *c)
{
	return model.run(f->inst, f->sizes, f->in, &f->out, f->work + 3, c, &f->status);
}

static void test_run(void **state)
{
	(void)state;
	Fix *f = fix_new(5);
	assert_int_equal(fix_sizes(f), WEFT_OK);
	assert_true(f->sizes->workspace_bytes >= 100 && f->sizes->workspace_bytes < 4000);
	assert_int_equal(weft_output_shape(&model, &entry, f->sizes, 0)[0], 5);
	for (int32_t n = 0; n < 4; n++) {
		memset(f->y, 0, sizeof f->y);
		WeftContext c = {.size = sizeof c, .nthreads = n};
		assert_int_equal(fix_run(f, &c), WEFT_OK);
		for (int i = 0; i < 10; i++)
			assert_true(f->y[i] == 2 * f->x[i] + (i % 2 ? 20 : 10));
		assert_true(f->y[10] == 0);
	}
	fix_free(f);
}

static void expect_sizes(Fix *f, const char *message)
{
	assert_int_equal(fix_sizes(f), WEFT_ERR_INPUT);
	assert_string_equal(f->status.message, message);
}

static void test_bad_inputs(void **state)
{
	(void)state;
	Fix *f = fix_new(5);
	f->xs[1] = 3;
	expect_sizes(f, "input x: dimension 1 is 3, expected 2");
	f->xs[1] = 2;
	f->xs[0] = 65;
	expect_sizes(f, "input x: dimension 0 (n) is 65, expected 1 to 64");
	f->xs[0] = 6;
	expect_sizes(f, "input other: dimension 0 (n) is 5, expected 6 as dimension 0 of input x");
	f->in[0].ndim = 1;
	expect_sizes(f, "input x has 1 dimensions, expected 2");
	f->in[0].ndim = 2;
	f->in[0].dtype.bits = 64;
	expect_sizes(f, "input x has dtype f64, expected f32");
	f->in[0].dtype.bits = 32;
	f->xs[0] = f->os[0] = 13;
	expect_sizes(f, "guard: n is 13");
	fix_free(f);
}

static void test_bad_run(void **state)
{
	(void)state;
	Fix *f = fix_new(5);
	assert_int_equal(fix_sizes(f), WEFT_OK);
	f->xs[0] = 4;
	assert_int_equal(fix_run(f, NULL), WEFT_ERR_INPUT);
	assert_string_equal(f->status.message,
			    "input x: dimension 0 is 4, expected 5 as found by sizes");
	f->xs[0] = 5;
	f->ys[1] = 3;
	assert_int_equal(fix_run(f, NULL), WEFT_ERR_INPUT);
	assert_string_equal(f->status.message,
			    "output y: dimension 1 is 3, expected 2 as found by sizes");
	f->ys[1] = 2;
	f->out.data = f->x + 2;
	assert_int_equal(fix_run(f, NULL), WEFT_ERR_ARGUMENT);
	assert_string_equal(f->status.message, "output y overlaps another tensor or the workspace");
	f->out.data = NULL;
	assert_int_equal(fix_run(f, NULL), WEFT_ERR_ARGUMENT);
	f->out.data = (char *)f->y + 1;
	assert_int_equal(fix_run(f, NULL), WEFT_ERR_INPUT);
	fix_free(f);
}

static void test_strided(void **state)
{
	(void)state;
	Fix *f = fix_new(5);
	f->xstride[0] = 1;
	f->xstride[1] = 5; /* transposed */
	f->in[0].strides = f->xstride;
	assert_int_equal(fix_sizes(f), WEFT_OK);
	assert_int_equal(fix_run(f, NULL), WEFT_OK);
	for (int i = 0; i < 10; i++)
		assert_true(f->y[i] == 2 * f->x[i / 2 + i % 2 * 5] + (i % 2 ? 20 : 10));
	WeftContext c = {.size = sizeof c, .flags = WEFT_STRICT};
	assert_int_equal(fix_run(f, &c), WEFT_ERR_INPUT);
	assert_string_equal(f->status.message, "input x is not row-major");
	f->in[0].strides = NULL;
	assert_int_equal(fix_sizes(f), WEFT_OK);
	f->in[0].strides = f->xstride; /* sizes did not know */
	assert_int_equal(fix_run(f, NULL), WEFT_ERR_INPUT);
	fix_free(f);
}

static void count_call(void *user, uint32_t call, double seconds)
{
	assert_int_equal(call, 0);
	assert_true(seconds >= 0);
	++*(int *)user;
}

static void test_profile(void **state)
{
	(void)state;
	Fix *f = fix_new(5);
	fix_sizes(f);
	for (int32_t n = 1; n <= 3; n++) {
		int count = 0;
		WeftContext c = {.size = sizeof c,
				 .nthreads = n,
				 .profile = count_call,
				 .profile_user = &count};
		assert_int_equal(fix_run(f, &c), WEFT_OK);
		assert_int_equal(count, 1);
	}
	fix_free(f);
}

static void test_set_weights(void **state)
{
	(void)state;
	Fix *f = fix_new(5);
	float w[2] = {-1, -2};
	int64_t two = 2;
	const char *name = "w", *wrong = "v";
	WeftTensor t = {w, {WEFT_CPU, 0}, 1, F32, &two, NULL, 0};
	fix_sizes(f);
	assert_int_equal(model.set_weights(f->inst, 1, &wrong, &t, NULL, &f->status),
			 WEFT_ERR_ARGUMENT);
	assert_int_equal(model.set_weights(f->inst, 1, &name, &t, NULL, &f->status), WEFT_OK);
	assert_int_equal(fix_run(f, NULL), WEFT_OK);
	assert_true(f->y[0] == -1 && f->y[1] == 0);
	two = 3;
	assert_int_equal(model.set_weights(f->inst, 1, &name, &t, NULL, &f->status),
			 WEFT_ERR_INPUT);
	fix_free(f);
}

static void test_open_refuses(void **state)
{
	(void)state;
	WeftInstance *in;
	WeftStatus status;
	WeftModel m = model;
	m.weights = NULL;
	WeftOpen o = {.size = sizeof o, .weights_path = "no/such/file"};
	assert_int_equal(model.open(&m, &o, &in, &status), WEFT_ERR_FILE);
	assert_null(in);
	o = (WeftOpen){.size = sizeof o, .weights = weights, .weights_bytes = 7};
	assert_int_equal(model.open(&m, &o, &in, &status), WEFT_ERR_ARGUMENT);
}

static void write_file(const char *path, const void *data, size_t n)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	fwrite(data, 1, n, f);
	fclose(f);
}

static void test_weight_file(void **state)
{
	(void)state;
	char path[] = "weightsXXXXXX", file[4096 + 64] = {0};
	int fd = mkstemp(path);
	WeftInstance *in;
	WeftStatus status;
	WeftModel m = model;
	WeftOpen o = {.size = sizeof o, .weights_path = path};
	assert_true(fd >= 0);
	close(fd);
	m.weights = NULL;
	m.weights_hash = "abc";
	WeftWeightHeader h = {WEFT_WEIGHT_MAGIC, "abc", 64, weft_checksum(weights, 64)};
	memcpy(file, &h, sizeof h);
	memcpy(file + 4096, weights, 64);
	write_file(path, file, sizeof file);
	assert_int_equal(model.open(&m, &o, &in, &status), WEFT_OK);
	assert_memory_equal(((const Constants *)current_now(&in->weights))->weights, weights, 64);
	model.close(in);
	o.flags = WEFT_OPEN_VERIFY;
	assert_int_equal(model.open(&m, &o, &in, &status), WEFT_OK);
	model.close(in);
	file[4096 + 5] ^= 1; /* only a checksum tells */
	write_file(path, file, sizeof file);
	assert_int_equal(model.open(&m, &o, &in, &status), WEFT_ERR_FILE);
	assert_non_null(strstr(status.message, "damaged"));
	o.flags = 0;
	assert_int_equal(model.open(&m, &o, &in, &status), WEFT_OK);
	model.close(in);
	o.size = 0;
	assert_int_equal(model.open(&m, &o, &in, &status), WEFT_ERR_ABI);
	o.size = sizeof o;
	write_file(path, file, sizeof file - 1);
	assert_int_equal(model.open(&m, &o, &in, &status), WEFT_ERR_FILE);
	assert_non_null(strstr(status.message, "truncated"));
	file[16] = 'X';
	write_file(path, file, sizeof file);
	assert_int_equal(model.open(&m, &o, &in, &status), WEFT_ERR_FILE);
	assert_non_null(strstr(status.message, "another model"));
	write_file(path, file, 0);
	assert_int_equal(model.open(&m, &o, &in, &status), WEFT_ERR_FILE);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0); /* nobody writes: opening must not wait */
	assert_int_equal(model.open(&m, &o, &in, &status), WEFT_ERR_FILE);
	assert_non_null(strstr(status.message, "not a regular file"));
	unlink(path);
}

/* Every single bit of a length that ends within a word and within a block counts, and so does the
 * length. */
static void test_checksum(void **state)
{
	(void)state;
	unsigned char data[77];
	for (size_t k = 0; k < sizeof data; k++)
		data[k] = (unsigned char)(k * 37);
	uint64_t whole = weft_checksum(data, sizeof data);
	for (size_t bit = 0; bit < 8 * sizeof data; bit++) {
		data[bit / 8] ^= (unsigned char)(1 << bit % 8);
		assert_true(weft_checksum(data, sizeof data) != whole);
		data[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
	memset(data, 0, sizeof data);
	assert_true(weft_checksum(data, 76) != weft_checksum(data, 77));
}

static void expect_overlap(Fix *f, const char *message)
{
	assert_int_equal(fix_run(f, NULL), WEFT_ERR_ARGUMENT);
	assert_string_equal(f->status.message, message);
}

static void test_input_in_workspace(void **state)
{
	(void)state;
	Fix *f = fix_new(5);
	assert_int_equal(fix_sizes(f), WEFT_OK);
	f->in[0].data = f->work + 16;
	expect_overlap(f, "input x overlaps the workspace");
	f->in[0].data = f->work + 3 + f->sizes->workspace_bytes; /* behind the end, misaligned */
	assert_int_equal(fix_run(f, NULL), WEFT_ERR_INPUT);
	f->in[0].data = f->x;
	/* columns that lie far apart, in memory that begins before and ends behind the workspace */
	f->xstride[0] = 1;
	f->xstride[1] = (int64_t)(sizeof *f / sizeof(float) - 8);
	f->in[0].strides = f->xstride;
	assert_int_equal(fix_sizes(f), WEFT_OK);
	expect_overlap(f, "input x overlaps the workspace");
	/* that reach further than any memory, in elements and in bytes */
	for (int shift = 1; shift < 4; shift++) {
		f->xstride[1] = INT64_MAX >> shift;
		expect_overlap(f, "input x overlaps the workspace");
		f->xstride[1] = -f->xstride[1];
		expect_overlap(f, "input x overlaps the workspace");
	}
	f->xstride[1] = -5;
	f->in[0].data = f->x + 5;
	assert_int_equal(fix_run(f, NULL), WEFT_OK);
	assert_true(f->y[1] == 2 * f->x[0] + 20);
	fix_free(f);
}

/* The code is that of the last call, not of the last failure. */
static void test_status(void **state)
{
	(void)state;
	Fix *f = fix_new(5);
	int64_t two = 2;
	const char *name = "w", *wrong = "v";
	WeftTensor t = {f->x, {WEFT_CPU, 0}, 1, F32, &two, NULL, 0};
	WeftInstance *in;
	f->xs[1] = 3;
	assert_int_equal(fix_sizes(f), WEFT_ERR_INPUT);
	f->xs[1] = 2;
	assert_int_equal(fix_sizes(f), WEFT_OK);
	assert_int_equal(f->status.code, WEFT_OK);
	assert_string_equal(f->status.message, "");
	f->ys[1] = 3;
	assert_int_equal(fix_run(f, NULL), WEFT_ERR_INPUT);
	f->ys[1] = 2;
	assert_int_equal(fix_run(f, NULL), WEFT_OK);
	assert_int_equal(f->status.code, WEFT_OK);
	assert_int_equal(model.open(NULL, NULL, &in, &f->status), WEFT_ERR_ARGUMENT);
	assert_int_equal(model.open(&model, NULL, &in, &f->status), WEFT_OK);
	assert_int_equal(f->status.code, WEFT_OK);
	assert_int_equal(model.set_weights(in, 1, &wrong, &t, NULL, &f->status), WEFT_ERR_ARGUMENT);
	assert_int_equal(model.set_weights(in, 1, &name, &t, NULL, &f->status), WEFT_OK);
	assert_int_equal(f->status.code, WEFT_OK);
	model.close(in);
	assert_null(model.threads_new(WEFT_THREADS_POOL, -1, &f->status));
	assert_int_equal(f->status.code, WEFT_ERR_ARGUMENT);
	model.threads_free(model.threads_new(WEFT_THREADS_POOL, 2, &f->status));
	assert_int_equal(f->status.code, WEFT_OK);
	for (int kind = -1; kind <= 3; kind += 4) {
		assert_null(model.threads_new((WeftThreadsKind)kind, 2, &f->status));
		assert_int_equal(f->status.code, WEFT_ERR_ARGUMENT);
	}
	fix_free(f);
}

/* A provider that says how many threads it was asked for. */
static void record_team(void *user, int32_t n, void (*body)(void *, int32_t, int32_t), void *arg)
{
	*(int32_t *)user = n;
	body(arg, 0, 1);
}

/* The context's number, else the provider's, else the processors'. */
static void test_how_many_threads(void **state)
{
	(void)state;
	static const int32_t of_context[] = {0, 1, 2, 5, -1}, of_provider[] = {0, 3};
	Fix *f = fix_new(64);
	assert_int_equal(fix_sizes(f), WEFT_OK);
	for (size_t c = 0; c < 5; c++)
		for (size_t p = 0; p < 2; p++) {
			int32_t asked = 1; /* of one thread no provider is asked */
			const WeftThreads t = {record_team, &asked, of_provider[p]};
			const WeftContext ctx = {
				.size = sizeof ctx, .threads = &t, .nthreads = of_context[c]};
			int32_t want = of_context[c] > 0 ? of_context[c]
				       : of_provider[p]  ? of_provider[p]
							 : threads_ncpu();
			assert_int_equal(fix_run(f, &ctx), WEFT_OK);
			assert_int_equal(asked, want);
		}
	fix_free(f);
}

/* Threads without a function are an error, at every number of threads. */
static void test_no_function(void **state)
{
	(void)state;
	Fix *f = fix_new(5);
	const WeftThreads none = {NULL, NULL, 2};
	assert_int_equal(fix_sizes(f), WEFT_OK);
	for (int32_t n = 0; n < 3; n++) {
		const WeftContext c = {.size = sizeof c, .threads = &none, .nthreads = n};
		assert_int_equal(fix_run(f, &c), WEFT_ERR_ARGUMENT);
		assert_string_equal(f->status.message,
				    "run: WeftContext.threads has no function `parallel`");
	}
	fix_free(f);
}

#ifdef __SANITIZE_ADDRESS__
static bool thread_sleeps(const char *id)
{
	char path[512], line[256];
	snprintf(path, sizeof path, "/proc/self/task/%s/stat", id);
	FILE *f = fopen(path, "r");
	const char *name_end = f && fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
	bool sleeps = !f || (name_end && name_end[1] && name_end[2] == 'S'); /* or has ended */
	if (f)
		fclose(f);
	return sleeps;
}

static bool others_sleep(void)
{
	DIR *d = opendir("/proc/self/task");
	bool sleep = true;
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		if (*e->d_name != '.' && atoi(e->d_name) != (int)getpid())
			sleep = sleep && thread_sleeps(e->d_name);
	closedir(d);
	return sleep;
}

/* Waits until every other thread sleeps. A child inherits the lock of AddressSanitizer's allocator
 * as it is at the fork: a thread that begins in the parent may hold it, and nobody gives it back.
 */
static void settle(void)
{
	while (!others_sleep())
		usleep(1000);
}
#else
static void settle(void)
{
}
#endif

/* In the child of a fork threads are gone: run there, for one provider (NULL: the default), is
 * right and ends. */
static void run_in_child(const WeftThreads *threads)
{
	Fix *f = fix_new(64);
	WeftContext c = {.size = sizeof c, .threads = threads, .nthreads = 4};
	assert_int_equal(fix_sizes(f), WEFT_OK);
	assert_int_equal(fix_run(f, &c), WEFT_OK);
	settle();
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(600);
		for (int k = 0; k < 3; k++) {
			memset(f->y, 0, sizeof f->y);
			if (fix_run(f, &c) != WEFT_OK)
				_exit(1);
			for (int i = 0; i < 128; i++)
				if (f->y[i] != 2 * f->x[i] + (i % 2 ? 20 : 10))
					_exit(2);
		}
		WeftThreads *own = model.threads_new(WEFT_THREADS_POOL, 3, &f->status);
		c.threads = own;
		if (!own || fix_run(f, &c) != WEFT_OK)
			_exit(3);
		model.threads_free(own);
		if (threads)
			model.threads_free((WeftThreads *)(uintptr_t)threads);
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(fix_run(f, &c), WEFT_OK); /* and the parent goes on */
	fix_free(f);
}

static void test_fork(void **state)
{
	(void)state;
	run_in_child(NULL);
	for (int kind = WEFT_THREADS_SERIAL; kind <= WEFT_THREADS_OPENMP; kind++) {
		WeftThreads *t = model.threads_new((WeftThreadsKind)kind, 4, NULL);
		assert_non_null(t);
		run_in_child(t);
		model.threads_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_run),          cmocka_unit_test(test_bad_inputs),
		cmocka_unit_test(test_bad_run),      cmocka_unit_test(test_strided),
		cmocka_unit_test(test_profile),      cmocka_unit_test(test_set_weights),
		cmocka_unit_test(test_open_refuses), cmocka_unit_test(test_weight_file),
		cmocka_unit_test(test_checksum),
		cmocka_unit_test(test_status),       cmocka_unit_test(test_input_in_workspace),
		cmocka_unit_test(test_fork),         cmocka_unit_test(test_how_many_threads),
		cmocka_unit_test(test_no_function),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
