/* Models in memory instead of files: the same graphs and the same bytes; what is held is released
 * once, and not before nothing refers to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver/api/driver_priv.h"
#include "weft_trace.h"

static char folder[] = "/tmp/weft-bytes-XXXXXX";

static uint32_t released;

/* So that whoever reads it later ends. */
static void unmap(void *user, const void *data)
{
	released++;
	if (data)
		munmap((void *)(uintptr_t)data, *(const size_t *)user);
}

static void count(void *user, const void *data)
{
	(void)user, (void)data;
	released++;
}

static char *read_all(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	if (!f)
		fail_msg("cannot open %s", path);
	fseek(f, 0, SEEK_END);
	*n = (size_t)ftell(f);
	rewind(f);
	char *data = malloc(*n + 1);
	assert_int_equal(fread(data, 1, *n, f), *n);
	fclose(f);
	return data;
}

/* Pages that nobody can write, which its release removes. *n lives as long. */
static WeftMemory pages_of(const char *path, size_t *n)
{
	char *data = read_all(path, n);
	void *p = mmap(NULL, *n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(p != MAP_FAILED);
	memcpy(p, data, *n);
	mprotect(p, *n, PROT_READ);
	free(data);
	return (WeftMemory){p, *n, unmap, n};
}

static WeftGraph *in_memory(Weft *w, const char *name, size_t *n)
{
	char path[500];
	snprintf(path, sizeof path, TEST_DATA "/%s.pt2", name);
	WeftMemory m = pages_of(path, n);
	WeftGraph *g = weft_load_memory(w, &m, path);
	if (!g)
		fail_msg("%s: %s", name, weft_messages(w));
	return g;
}

static WeftGraph *in_file(Weft *w, const char *name)
{
	char path[500];
	snprintf(path, sizeof path, TEST_DATA "/%s.pt2", name);
	WeftGraph *g = weft_load(w, path);
	if (!g)
		fail_msg("%s: %s", name, weft_messages(w));
	return g;
}

static void expect_file(const char *path, const WeftMemory *m)
{
	size_t n;
	char *data = read_all(path, &n);
	if (n != m->bytes || memcmp(data, m->data, n) != 0)
		fail_msg("%s: %zu bytes in the file, %zu in memory, or different ones", path, n,
			 m->bytes);
	free(data);
	assert_int_equal((uintptr_t)m->data % 64, 0);
}

/* One kind of output of both. */
static void compare(Weft *file, const WeftGraph *a, Weft *memory, const WeftGraph *b,
		    const WeftOptions *o, WeftEmit kind)
{
	char path[64], weights[64];
	WeftMemory m, mw;
	bool beside = o->weights == WEFT_WEIGHTS_FILE;
	snprintf(path, sizeof path, "%s/m%s", folder, kind == WEFT_EMIT_SHARED ? ".so" : "");
	snprintf(weights, sizeof weights, "%s/m.weights", folder);
	if (!weft_emit(file, a, o, kind, path))
		fail_msg("%s", weft_messages(file));
	if (!weft_save_memory(memory, b, o, kind, &m, &mw))
		fail_msg("%s", weft_messages(memory));
	expect_file(path, &m);
	assert_int_equal(mw.data != NULL, beside);
	m.release(m.user, m.data);
	if (!beside)
		return;
	expect_file(weights, &mw);
	mw.release(mw.user, mw.data);
}

static void compare_model(const char *name)
{
	Weft *file = weft_new(), *memory = weft_new();
	size_t n;
	const WeftGraph *a = in_file(file, name), *b = in_memory(memory, name, &n);
	assert_string_equal(weft_graph_text(file, a, NULL), weft_graph_text(memory, b, NULL));
	WeftOptions o = {.size = sizeof o,
			 .name = "m",
			 .target = "x86-64-v3",
			 .backend = WEFT_BACKEND_C,
			 .jobs = 1};
	for (int kind = WEFT_EMIT_HEADER;
	     kind <= (weft_has_llvm() ? WEFT_EMIT_SHARED : WEFT_EMIT_SCHEDULES); kind++)
		compare(file, a, memory, b, &o, (WeftEmit)kind);
	o.weights = WEFT_WEIGHTS_FILE;
	o.backend = weft_has_llvm() ? WEFT_BACKEND_LLVM : WEFT_BACKEND_C;
	compare(file, a, memory, b, &o, WEFT_EMIT_SHARED);
	released = 0;
	weft_free(memory);
	assert_int_equal(released, 1);
	weft_free(file);
}

static void test_bytes(void **state)
{
	static const char *const name[] = {"mlp",        "mlp_deflated", "tied", "views",
					   "batch_norm", "state",        "scan"};
	(void)state;
	for (size_t k = 0; k < sizeof name / sizeof *name; k++)
		compare_model(name[k]);
}

/* What was saved is a model: written to a file, it loads and takes the weights from memory. */
static void test_use(void **state)
{
	(void)state;
	Weft *w = weft_new();
	size_t n;
	char path[64];
	WeftMemory so, weights;
	WeftStatus status;
	WeftInstance *in = NULL;
	const WeftOptions o = {.size = sizeof o, .weights = WEFT_WEIGHTS_FILE};
	const WeftGraph *g = in_memory(w, "mlp", &n);
	if (!weft_save_memory(w, g, &o, WEFT_EMIT_SHARED, &so, &weights))
		fail_msg("%s", weft_messages(w));
	weft_free(w); /* the results are the caller's */
	snprintf(path, sizeof path, "%s/used.so", folder);
	FILE *f = fopen(path, "wb");
	assert_int_equal(fwrite(so.data, 1, so.bytes, f), so.bytes);
	fclose(f);
	so.release(so.user, so.data);
	void *library = dlopen(path, RTLD_NOW);
	assert_non_null(library);
	const WeftModel *(*get)(void);
	*(void **)&get = dlsym(library, "weft_model");
	const WeftModel *m = get();
	const WeftOpen open = {.size = sizeof open,
			       .weights = (const char *)weights.data + 4096,
			       .weights_bytes = m->weights_bytes};
	assert_int_equal(weights.bytes, 4096 + m->weights_bytes);
	assert_int_equal(m->open(m, &open, &in, &status), WEFT_OK);
	m->close(in);
	weights.release(weights.user, weights.data);
	dlclose(library);
}

/* Constants of an archive lie where they were given. */
static void test_in_place(void **state)
{
	(void)state;
	Weft *w = weft_new();
	size_t n;
	const WeftGraph *g = in_memory(w, "mlp", &n);
	const char *data = w->held ? *(const char *const *)w->held : NULL;
	uint32_t inside = 0;
	for (uint32_t k = 1; k < g->g->ir->constant.n; k++) {
		const Const *c = &g->g->ir->constant.data[k];
		inside += c->is_param && (const char *)c->data >= data &&
			  (const char *)c->data + c->bytes <= data + n;
		assert_true(!c->is_param || inside);
	}
	assert_true(inside >= 4);
	weft_free(w);
}

/* The same after every way to fail. */
static void test_release(void **state)
{
	(void)state;
	Weft *w = weft_new();
	static const char text[] = "graph @f(%x: f32[3]) {\n  %y = exp(%x)\n  return %y\n}\n";
	const WeftMemory good = {text, sizeof text - 1, count, NULL}, none = {NULL, 5, count, NULL},
			 empty = {text, 0, count, NULL}, bad = {"PK\3\4 nothing", 12, count, NULL},
			 silent = {text, sizeof text - 1, NULL, NULL};
	const WeftLoadOptions newer = {.size = 1 << 20};
	released = 0;
	assert_non_null(weft_load_memory(w, &good, "f"));
	assert_non_null(weft_load_memory(w, &silent, "f"));
	assert_int_equal(weft_nmessages(w), 0);
	assert_null(weft_load_memory(w, &good, NULL));
	assert_null(weft_load_memory(w, &good, "f.pt2"));
	assert_null(weft_load_memory(w, &none, "f"));
	assert_null(weft_load_memory(w, &empty, "f"));
	assert_null(weft_load_memory(w, &bad, "f"));
	assert_null(weft_load_memory_with(w, &good, "f", &newer));
	assert_null(weft_load_memory(w, NULL, "f"));
	assert_true(weft_hold(w, &good));
	assert_int_equal(weft_nmessages(w), 7);
	assert_int_equal(released, 0);
	weft_free(w);
	assert_int_equal(released, 8);
	assert_null(weft_load_memory(NULL, &good, "f"));
	assert_false(weft_hold(NULL, &good));
	assert_false(weft_hold(NULL, NULL));
	assert_int_equal(released, 10);
}

/* Constants of a trace. */
static void test_trace(void **state)
{
	(void)state;
	size_t n = 4096;
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	Weft *w = weft_new();
	((float *)p)[3] = 5;
	mprotect(p, n, PROT_READ);
	assert_true(weft_hold(w, &(WeftMemory){p, n, unmap, &n}));
	WeftTrace *t = weft_trace_new(w, "t");
	weft_trace_output(t, "y", weft_neg(t, weft_trace_param(t, "c", "f32[4]", p)));
	WeftGraph *g = weft_trace_end(t);
	WeftTensor y;
	assert_true(g && weft_interpret(w, g, NULL, 0, &y));
	assert_float_equal(((const float *)y.data)[3], -5, 0);
	released = 0;
	weft_free(w);
	assert_int_equal(released, 1);
}

static void test_refused(void **state)
{
	(void)state;
	Weft *w = weft_new();
	size_t n;
	WeftMemory m = {"x", 1, NULL, NULL}, weights = {"x", 1, NULL, NULL};
	const WeftGraph *g = in_memory(w, "mlp", &n);
	const WeftOptions file = {.size = sizeof file, .weights = WEFT_WEIGHTS_FILE},
			  bad = {.size = sizeof bad, .target = "nonsense"};
	assert_false(weft_save_memory(w, g, NULL, WEFT_EMIT_C, &m, &weights));
	assert_true(!m.data && !weights.data && !m.release);
	assert_non_null(strstr(weft_messages(w), "C is a folder of files"));
	assert_false(weft_save_memory(w, g, NULL, WEFT_EMIT_IR, NULL, NULL));
	assert_false(weft_save_memory(w, NULL, NULL, WEFT_EMIT_IR, &m, NULL));
	assert_false(weft_save_memory(w, g, NULL, (WeftEmit)99, &m, NULL));
	assert_false(weft_save_memory(w, g, &file, WEFT_EMIT_SHARED, &m, NULL));
	assert_false(weft_save_memory(w, g, &bad, WEFT_EMIT_SHARED, &m, &weights));
	assert_int_equal(weft_nmessages(w), 6);
	assert_false(weft_save_memory(NULL, g, NULL, WEFT_EMIT_IR, &m, NULL));
	assert_true(weft_save_memory(w, g, NULL, WEFT_EMIT_IR, &m, NULL)); /* after errors */
	m.release(m.user, m.data);
	weft_free(w);
}

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[80];
	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),    cmocka_unit_test(test_use),
		cmocka_unit_test(test_in_place), cmocka_unit_test(test_release),
		cmocka_unit_test(test_trace),    cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
