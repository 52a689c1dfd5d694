/* A program that uses the compiler may have set a locale. All texts and results are those of the C
 * locale, also in a locale with decimal commas in which a byte above 127 is a letter. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "weft.h"
#include "weft_call.h"

enum { N = 37, MOST = 16 };

static const char text[] = "graph @f(%x: f32[37], %y: f32[37, B]) where 1 <= B {\n"
			   "  %half = full(value=0.5, shape=[37], dtype=f32)\n"
			   "  %a = mul(%x, %half)\n"
			   "  %b = aten.gelu(%a)\n"
			   "  %c = aten.elu(%b, alpha=1.25, scale=0.75)\n"
			   "  %d = aten.hann_window(window_length=37)\n"
			   "  %e = add(%c, %d)\n"
			   "  %f = aten.cumsum(%y, dim=0)\n"
			   "  return %e, %f\n}\n";

/* What the compiler makes: a line for each text, and the bits of results. */
typedef struct {
	char *part[MOST];
	size_t size[MOST];
	uint32_t n;
} Made;

static void keep(Made *m, const void *p, size_t size)
{
	assert_true(m->n < MOST && p);
	m->part[m->n] = malloc(size + 1);
	memcpy(m->part[m->n], p, size);
	m->part[m->n][size] = 0;
	m->size[m->n++] = size;
}

static void keep_text(Made *m, const char *s)
{
	keep(m, s, s ? strlen(s) : 0);
}

static void require(Weft *w, bool ok)
{
	if (!ok)
		fail_msg("%s", weft_messages(w));
}

static void run(Made *out, Weft *w, const WeftModel *m)
{
	float x[N], y[2 * N];
	for (int k = 0; k < N; k++)
		x[k] = y[2 * k] = y[2 * k + 1] = (float)(k - N / 2) / 8;
	const WeftTensor in[2] = {weft_tensor(x, WEFT_F32, 1, (const int64_t[]){N}),
				  weft_tensor(y, WEFT_F32, 2, (const int64_t[]){N, 2})};
	WeftCall c;
	require(w, m);
	assert_int_equal(weft_call_open(&c, m, 0), WEFT_OK);
	assert_int_equal(weft_call_run(&c, in), WEFT_OK);
	keep(out, c.output[0].data, sizeof x);
	keep(out, c.output[1].data, sizeof y);
	weft_call_close(&c);
}

static void emitted(Made *out, Weft *w, const WeftGraph *g, WeftEmit kind, const char *target)
{
	WeftOptions options = {.size = sizeof options, .target = target};
	WeftMemory m;
	require(w, weft_save_memory(w, g, &options, kind, &m, NULL));
	keep(out, m.data, m.bytes);
	m.release(m.user, m.data);
}

static void make(Made *out)
{
	*out = (Made){0};
	Weft *w = weft_new();
	WeftGraph *g = weft_parse(w, text, "f"), *resize = weft_load(w, TEST_DATA "/resize.pt2");
	require(w, g && resize);
	keep_text(out, weft_graph_text(w, g, NULL));
	keep_text(out, weft_graph_text(w, resize, NULL));
	keep_text(out, weft_graph_text(w, resize, "decompose"));
	emitted(out, w, g, WEFT_EMIT_LOOPS, NULL);
	emitted(out, w, resize, WEFT_EMIT_PROGRAM, NULL);
	emitted(out, w, g, WEFT_EMIT_CUDA, "cuda-sm_90");
	run(out, w, weft_loops(w, g, NULL));
	if (weft_has_llvm()) {
		WeftOptions options = {.size = sizeof options, .jobs = 4};
		emitted(out, w, resize, WEFT_EMIT_LLVM, NULL);
		run(out, w, weft_jit(w, g, &options));
	}
	char dir[] = "weft-locale-XXXXXX", so[64];
	assert_non_null(mkdtemp(dir));
	snprintf(so, sizeof so, "%s/f.so", dir);
	WeftOptions options = {.size = sizeof options, .backend = WEFT_BACKEND_C, .no_cache = true};
	require(w, weft_compile(w, g, &options, so));
	unlink(so);
	rmdir(dir);
	WeftGraph *bad = weft_parse(
		w, "graph @f(%x: f32[2]) {\n  %a = aten.elu(%x, alpha=0,5)\n  return %a\n}\n",
		"bad");
	assert_null(bad);
	keep_text(out, weft_messages(w));
	weft_free(w);
}

/* Makes a Latin-1 locale with decimal commas in a new folder and sets it. Returns whether this
 * machine can. */
static bool set_locale(void)
{
	char dir[] = "weft-locale-XXXXXX", command[200];
	assert_non_null(mkdtemp(dir));
	snprintf(command, sizeof command,
		 "localedef -i de_DE -f ISO-8859-1 %s/de_DE.ISO-8859-1 >/dev/null 2>&1", dir);
	bool made = !system(command);
	setenv("LOCPATH", dir, 1);
	made = made && setlocale(LC_ALL, "de_DE.ISO-8859-1");
	unsetenv("LOCPATH");
	snprintf(command, sizeof command, "rm -r %s", dir);
	assert_int_equal(system(command), 0);
	return made;
}

static void test_comma(void **state)
{
	(void)state;
	if (!set_locale())
		skip();
	Made comma, c;
	char number[8];
	make(&comma); /* first: tables are made once in a process */
	snprintf(number, sizeof number, "%.1f", 0.5);
	assert_string_equal(number, "0,5"); /* the program's locale is as it was */
	setlocale(LC_ALL, "C");
	make(&c);
	assert_int_equal(comma.n, c.n);
	for (uint32_t k = 0; k < c.n; k++) {
		assert_int_equal(comma.size[k], c.size[k]);
		assert_memory_equal(comma.part[k], c.part[k], c.size[k]);
		free(comma.part[k]);
		free(c.part[k]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_comma)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
