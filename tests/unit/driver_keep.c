/* weft_jit_keep: models that outlive their Weft, what each of many keeps, objects of earlier
 * compilations, and wrong ways to free models. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "weft.h"
#include "weft_call.h"
#include "weft_trace.h"

enum { NODES = 40, MODELS = 500, MOST_BYTES = 150000 };

/* How many objects the last model has, and how many the cache gave. */
static uint32_t objects, cached;

/* 40 nodes; the number makes each another model. */
static const WeftModel *keep(int number)
{
	static const float weight[4] = {1, 2, 3, 4};
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "chain");
	WeftValue x = weft_trace_input(t, "x", "f32[4]");
	x = weft_mul(t, x, weft_trace_param(t, "w", "f32[4]", weight));
	for (int k = 2; k < NODES; k += 2)
		x = weft_sin(t, weft_with_number(t, "aten.add.Tensor", x, number + k));
	weft_trace_output(t, "y", x);
	const WeftModel *m = weft_jit_keep(w, weft_trace_end(t), NULL);
	if (!m)
		fail_msg("%s", weft_messages(w));
	objects = weft_report(w)->objects;
	cached = weft_report(w)->cached;
	weft_free(w);
	return m;
}

static float first_of(const WeftModel *m)
{
	const float x[4] = {1, 2, 3, 4};
	WeftCall c;
	WeftTensor in = weft_tensor(x, WEFT_F32, 1, (const int64_t[]){4});
	if (weft_call_open(&c, m, 0) || weft_call_run(&c, &in))
		fail_msg("%s", c.status.message);
	float y = ((const float *)c.output[0].data)[0];
	weft_call_close(&c);
	return y;
}

static size_t resident(void)
{
	size_t total, pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%zu %zu", &total, &pages), 2);
	fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void test_many(void **state)
{
	static const WeftModel *model[MODELS];
	float y[3];
	(void)state;
	for (int k = 0; k < 3; k++) { /* what all share */
		model[k] = keep(k);
		y[k] = first_of(model[k]);
	}
	malloc_trim(0);
	size_t before = resident();
	for (int k = 3; k < MODELS; k++)
		model[k] = keep(k);
	malloc_trim(0);
	size_t each = (resident() - before) / (MODELS - 3);
	print_message("%zu bytes of each of %d models\n", each, MODELS);
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
	assert_in_range(each, 1, MOST_BYTES);
#endif
	for (int k = 0; k < 3; k++)
		assert_float_equal(first_of(model[k]), y[k], 0);
	for (int k = 0; k < MODELS; k++)
		weft_jit_free(model[k]);
}

/* Returns NULL if all is well. */
static void *keep_some(void *arg)
{
	for (int k = 0; k < 8; k++) {
		const WeftModel *m = keep(*(const int *)arg + k);
		float y = first_of(m);
		weft_jit_free(m);
		if (!(y >= -1 && y <= 1))
			return arg;
	}
	return NULL;
}

/* Each with a Weft of its own. */
static void test_threads(void **state)
{
	enum { THREADS = 4 };
	pthread_t thread[THREADS];
	int from[THREADS];
	void *bad;
	(void)state;
	for (int k = 0; k < THREADS; k++) {
		from[k] = 10 * k;
		assert_int_equal(pthread_create(&thread[k], NULL, keep_some, &from[k]), 0);
	}
	for (int k = 0; k < THREADS; k++) {
		assert_int_equal(pthread_join(thread[k], &bad), 0);
		assert_null(bad);
	}
}

static char folder[] = "/tmp/weft-keep-XXXXXX";

/* Calls f for each entry of the cache. */
static uint32_t entries(int (*f)(const char *path))
{
	uint32_t n = 0;
	DIR *d = opendir(folder);
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		char path[300];
		snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
		n += e->d_name[0] != '.' && f(path) == 0;
	}
	closedir(d);
	return n;
}

static int shorten(const char *path)
{
	return truncate(path, 100);
}

static void test_cache(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	setenv("WEFT_CACHE", folder, 1);
	const WeftModel *first = keep(900);
	assert_true(objects && !cached);
	const WeftModel *again = keep(900);
	assert_int_equal(cached, objects);
	assert_float_equal(first_of(first), first_of(again), 0);
	weft_jit_free(keep(901)); /* other numbers: other kernels */
	assert_true(cached < objects);
	assert_true(entries(shorten) >= objects);
	const WeftModel *damaged = keep(900);
	assert_int_equal(cached, 0);
	assert_float_equal(first_of(first), first_of(damaged), 0);
	weft_jit_free(first);
	weft_jit_free(again);
	weft_jit_free(damaged);
	entries(unlink);
	rmdir(folder);
	setenv("WEFT_CACHE", "/dev/null", 1);
}

static void test_wrong(void **state)
{
	(void)state;
	Weft *w = weft_new();
	const WeftModel *m = keep(1), *kept = keep(2);
	weft_jit_free(NULL);
	weft_jit_free(m);
	weft_jit_free(m); /* it is not there any more */
	assert_null(weft_jit_keep(NULL, NULL, NULL));
	assert_null(weft_jit_keep(w, NULL, NULL));
	assert_null(weft_jit_keep(
		w, weft_parse(w, "graph @f(%x: f32[3]) {\n  %y = exp(%x)\n  return %y\n}\n", "f"),
		&(WeftOptions){.size = sizeof(WeftOptions), .target = "nonsense"}));
	assert_int_equal(weft_nmessages(w), 2);
	const WeftModel *own = weft_jit(
		w, weft_parse(w, "graph @f(%x: f32[4]) {\n  %y = neg(%x)\n  return %y\n}\n", "f"),
		NULL);
	weft_jit_free(own); /* belongs to its Weft */
	assert_float_equal(first_of(own), -1, 0);
	weft_free(w);
	first_of(kept);
	weft_jit_free(kept);
}

int main(void)
{
	if (!weft_has_llvm())
		return 0;
	setenv("WEFT_CACHE", "/dev/null", 1); /* none */
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_wrong),
					   cmocka_unit_test(test_cache),
					   cmocka_unit_test(test_many),
					   cmocka_unit_test(test_threads)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
