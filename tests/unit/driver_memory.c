/* Running out of memory anywhere in a compilation: a clean error, and nothing half-written is
 * left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "weft.h"

/* Every one of the first allocations fails once, then fewer and fewer. */
enum { DENSE = 40, MOST = 1000000 };

static const char mlp[] =
	"graph @mlp(%x: f32[B, 8], %w: f32[8, 8], %i: i64[B, 1]) where 1 <= B <= 64 {\n"
	"  %f = full(dtype=f32, shape=[8, 8], value=2.0)\n"
	"  %e = exp(%f)\n"
	"  %v = mul(%w, %e)\n"
	"  %h = contract(%x, %v, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f32)\n"
	"  %s = sigmoid(%h)\n"
	"  %g = gather(%s, %i, batch=1, axes=[1], mode=\"check\")\n"
	"  %r = reduce(%s, kind=\"sum\", dims=[1], acc=f32)\n"
	"  return %g, %r\n"
	"}\n";

/* Names in a folder that no caller has made on purpose. */
static uint32_t count_files(const char *folder)
{
	uint32_t n = 0;
	DIR *d = opendir(folder);
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static void expect_empty(const char *folder, size_t n)
{
	DIR *d = opendir(folder);
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] != '.')
			fail_msg("allocation %zu failed and left %s/%s", n, folder, e->d_name);
	closedir(d);
}

/* Work on a graph; false when it was refused. */
typedef bool Action(Weft *, WeftGraph *);

static bool interpret(Weft *w, WeftGraph *g)
{
	float x[16] = {0}, y[64] = {0};
	int64_t index[2] = {1, 7}, xs[2] = {2, 8}, ys[2] = {8, 8}, is[2] = {2, 1};
	WeftTensor out[2], in[3] = {{x, {WEFT_CPU, 0}, 2, {WEFT_FLOAT, 32, 1}, xs, NULL, 0},
	                            {y, {WEFT_CPU, 0}, 2, {WEFT_FLOAT, 32, 1}, ys, NULL, 0},
	                            {index, {WEFT_CPU, 0}, 2, {WEFT_INT, 64, 1}, is, NULL, 0}};
	return weft_interpret(w, g, in, 3, out);
}

static bool inspect(Weft *w, WeftGraph *g)
{
	uint32_t n;
	return weft_graph_text(w, g, "decompose") && weft_graph_dot(w, g, NULL) &&
	       weft_inputs(w, g, &n) && weft_outputs(w, g, &n) && weft_symbols(w, g, &n) &&
	       weft_operators(w, g, &n) && weft_copy_graph(w, g);
}

/* What succeeds is removed at once: whatever is left is half-written. */
static bool emit(Weft *w, WeftGraph *g)
{
	static const char *const path[] = {"out/c", "out/m.h", "out/m.ir", "out/m.program",
					   "out/m.loops"};
	WeftOptions o = {.size = sizeof o, .target = "x86-64-v3"};
	for (int k = WEFT_EMIT_C; k <= WEFT_EMIT_LOOPS; k++) {
		if (!weft_emit(w, g, &o, (WeftEmit)k, path[k]))
			return false;
		assert_int_equal(count_files("out"), 1);
		assert_int_equal(system("rm -r out/*"), 0);
	}
	return true;
}

static uint32_t held, released;

static void count_release(void *user, const void *data)
{
	(void)user, (void)data;
	released++;
}

/* Memory of the caller is released once, and none of ours is lost. */
static bool in_memory(Weft *w, WeftGraph *g)
{
	WeftMemory m = {mlp, sizeof mlp - 1, count_release, NULL}, out;
	(void)g;
	held++;
	WeftGraph *other = weft_load_memory(w, &m, "mlp");
	if (!other || !weft_save_memory(w, other, NULL, WEFT_EMIT_LOOPS, &out, NULL))
		return false;
	out.release(out.user, out.data);
	return true;
}

static bool compile(Weft *w, WeftGraph *g, WeftBackend backend)
{
	WeftOptions o = {.size = sizeof o, .jobs = 1, .backend = backend};
	if (!weft_compile(w, g, &o, "out/m.so"))
		return false;
	assert_int_equal(count_files("out"), 1);
	return unlink("out/m.so") == 0;
}

static bool compile_c(Weft *w, WeftGraph *g)
{
	return compile(w, g, WEFT_BACKEND_C);
}

static bool compile_llvm(Weft *w, WeftGraph *g)
{
	return compile(w, g, WEFT_BACKEND_LLVM);
}

/* Fail the n-th block. True when nothing failed any more. */
static bool survives(Action *f, size_t n)
{
	arena_tiny_blocks(n != 0);
	arena_fail_after(n);
	Weft *w = weft_new();
	WeftGraph *g = w ? weft_parse(w, mlp, "mlp") : NULL;
	bool ok = g && f(w, g);
	arena_fail_after(0);
	arena_tiny_blocks(false);
	if (w && !ok) {
		assert_int_equal(weft_nmessages(w), 1);
		assert_string_equal(weft_message(w, 0).text, "out of memory");
		assert_non_null(strstr(weft_messages(w), "out of memory"));
	}
	weft_free(w);
	assert_int_equal(released, held);
	expect_empty("out", n);
	expect_empty("tmp", n);
	return ok;
}

static void fail_each(Action *f)
{
	size_t n = 1, failed = 0; /* the tables of the process are built on the way, or not */
	for (; !survives(f, n); failed++) {
		n += 1 + n / DENSE;
		assert_true(n < MOST);
	}
	assert_true(failed > DENSE); /* or nothing was tested */
	print_message("%zu times out of memory, up to allocation %zu\n", failed, n);
}

static void test_inspect(void **state) { (void)state, fail_each(inspect); }
static void test_interpret(void **state) { (void)state, fail_each(interpret); }
static void test_emit(void **state) { (void)state, fail_each(emit); }
static void test_in_memory(void **state)
{
	(void)state, fail_each(in_memory);
}
static void test_compile_c(void **state) { (void)state, fail_each(compile_c); }

static void test_compile_llvm(void **state)
{
	(void)state;
	if (!weft_has_llvm())
		skip();
	fail_each(compile_llvm);
}

static int set_up(void **state)
{
	char *folder = strdup("/tmp/weft-memory-XXXXXX"), path[64];
	*state = folder;
	if (!mkdtemp(folder) || chdir(folder) || system("mkdir out tmp cache"))
		return -1;
	snprintf(path, sizeof path, "%s/tmp", folder);
	setenv("TMPDIR", path, 1);
	snprintf(path, sizeof path, "%s/cache", folder);
	return setenv("WEFT_CACHE", path, 1);
}

static int tear_down(void **state)
{
	char command[80];
	snprintf(command, sizeof command, "rm -rf %s", (char *)*state);
	free(*state);
	return chdir("/") || system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inspect),   cmocka_unit_test(test_interpret),
		cmocka_unit_test(test_emit),      cmocka_unit_test(test_in_memory),
		cmocka_unit_test(test_compile_c), cmocka_unit_test(test_compile_llvm),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
