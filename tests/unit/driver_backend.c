/* Back ends of the program (weft_backend.h): what they are given is a whole program, whose texts
 * parse, and which runs; what is said of definitions and back ends that are wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ir/graph/graph.h"
#include "ir/loop/loop.h"
#include "ir/op/op.h"
#include "weft_backend.h"

static const char path[] = "driver_backend.out";
static const char text[] = "graph @f(%x: f32[B, 40], %i: i64[B]) where 1 <= B {\n"
			   "  %s = aten.softmax.int(%x, dim=-1) : f32[B, 40]\n"
			   "  %t = aten.sin(%s) : f32[B, 40]\n"
			   "  %r = aten.lgamma(%t) : f32[B, 40]\n"
			   "  %y = aten.index_select(%r, %i, dim=0) : f32[B, 40]\n"
			   "  return %y\n}\n";

/* What a back end of the tests does. */
typedef struct {
	const char *add[3], *fail, *refuse; /* names of files; "-": without a name */
	int code;
	uint32_t emitted;
	void (*look)(const WeftBackendProgram *);
} Does;

static const char *refuses(void *user, const WeftTargetInfo *t)
{
	assert_non_null(t->name);
	return ((Does *)user)->refuse;
}

static int emit(void *user, const WeftBackendProgram *p, WeftBackendOutput *out)
{
	Does *d = user;
	d->emitted++;
	assert_int_equal(p->size, sizeof *p);
	if (d->look)
		d->look(p);
	for (size_t k = 0; k < 3 && d->add[k]; k++)
		if (!out->add(out, strcmp(d->add[k], "-") ? d->add[k] : NULL, "data", 4))
			return 1;
	return d->fail ? weft_backend_fail(out, "%s", d->fail) : d->code;
}

/* Compiles with the back end; whether it succeeded. Messages are then `said`. */
static char said[2000];

static bool compile(Does *does, bool folder, const char *source)
{
	Weft *w = weft_new();
	const WeftBackendDef def = {.size = sizeof def,
				    .folder = folder,
				    .name = "test",
				    .user = does,
				    .refuses = refuses,
				    .emit = emit};
	bool ok = weft_backend_register(w, &def);
	assert_true(ok);
	WeftGraph *g = weft_parse(w, source, "m");
	assert_non_null(g);
	WeftOptions o = {.size = sizeof o, .target = "x86-64-v3", .backend_name = "test"};
	ok = weft_compile(w, g, &o, path);
	snprintf(said, sizeof said, "%s", weft_messages(w));
	weft_free(w);
	return ok;
}

/* ---- what it is given ---- */

static bool has_function(const WeftBackendProgram *p, const char *name, size_t n)
{
	for (uint32_t k = 0; k < p->nfunction; k++)
		if (strlen(p->function[k].name) == n && !strncmp(p->function[k].name, name, n))
			return true;
	return false;
}

static bool has_table(const WeftBackendProgram *p, const char *name, size_t n)
{
	for (uint32_t k = 0; k < p->ntable; k++)
		if (strlen(p->table[k].name) == n && !strncmp(p->table[k].name, name, n))
			return p->table[k].n && p->table[k].data;
	return false;
}

static bool is_operation(const char *name, size_t n)
{
	static const char *const other[] = {"splat", "ramp",    "mask", "any",     "low",
					    "high",  "reverse", "even", "zip_low", "zip_high"};
	for (ScOp op = 0; op < SC_COUNT; op++)
		if (strlen(sc_name(op)) == n && !strncmp(sc_name(op), name, n))
			return true;
	for (size_t k = 0; k < sizeof other / sizeof *other; k++)
		if (strlen(other[k]) == n && !strncmp(other[k], name, n))
			return true;
	return false;
}

/* Every word before a bracket is an operation, a function or a table. */
static void check_words(const WeftBackendProgram *p, const char *s)
{
	for (const char *b = s; (b = strchr(b, '(')); b++) {
		const char *name = b;
		while (name > s && (isalnum((unsigned char)name[-1]) || name[-1] == '_' ||
				    name[-1] == '.' || name[-1] == ':'))
			name--;
		size_t n = (size_t)(b - name);
		size_t word = strcspn(name, ":.(") < n ? strcspn(name, ":.(") : n;
		bool head = name > s && (name[-1] == ' ' && name >= s + 3 &&
					 (!strncmp(name - 3, "fn ", 3) ||
					  (name >= s + 5 && !strncmp(name - 5, "loop ", 5))));
		if (!n || head || (name > s && name[-1] == '&'))
			continue;
		if (!is_operation(name, word) && !has_function(p, name, n) &&
		    !has_table(p, name, n))
			fail_msg("%.*s is neither an operation, nor among the functions and tables",
				 (int)n, name);
	}
}

/* The text says what the function is: it is the text of what it is parsed to. */
static void check_parses(const WeftBackendFunction *f)
{
	Ctx *ctx = ctx_new();
	op_init();
	Ir *ir = ir_new(ctx);
	LoopFn *fn = loop_parse(ir, f->text);
	if (!fn)
		fail_msg("not parsed: %s", f->text);
	Text t;
	text_init(&t, ctx->arena);
	loop_print(fn, &t, false);
	assert_string_equal(t.data, f->text);
	ctx_free(ctx);
}

static void check_runs(const WeftBackendProgram *p)
{
	const WeftModel *m = p->model;
	WeftInstance *in;
	WeftStatus status;
	float x[2][40], y[2][40];
	int64_t i[2] = {1, 0}, shape[] = {2, 40}, count[] = {2};
	for (int k = 0; k < 80; k++)
		x[k / 40][k % 40] = (float)(k % 7) + (k >= 40);
	const WeftDType f32 = {WEFT_FLOAT, 32, 1}, i64 = {WEFT_INT, 64, 1};
	WeftTensor input[] = {
		{.data = x, .device = {WEFT_CPU, 0}, .ndim = 2, .dtype = f32, .shape = shape},
		{.data = i, .device = {WEFT_CPU, 0}, .ndim = 1, .dtype = i64, .shape = count}};
	WeftTensor output = {
		.data = y, .device = {WEFT_CPU, 0}, .ndim = 2, .dtype = f32, .shape = shape};
	assert_int_equal(m->open(m, NULL, &in, &status), WEFT_OK);
	WeftSizes *sizes = malloc(m->entry[0]->sizes_bytes);
	assert_int_equal(m->sizes(in, 0, input, sizes, &status), WEFT_OK);
	void *work = malloc(sizes->workspace_bytes + 1);
	assert_int_equal(m->run(in, sizes, input, &output, work, NULL, &status), WEFT_OK);
	assert_true(y[0][0] > 0 && y[0][0] == y[0][7] && y[0][0] != y[0][1]);
	free(work);
	free(sizes);
	m->close(in);
}

static void look(const WeftBackendProgram *p)
{
	assert_int_equal(p->nentry, 1);
	assert_string_equal(p->name, "m");
	assert_string_equal(p->target->name, "x86-64-v3");
	assert_true(p->nkernel > 0 && p->nfunction > 3 && p->ntable > 0 && p->nmessage > 1);
	for (uint32_t k = 0; k < p->nkernel; k++) {
		check_words(p, p->kernel[k].text);
		for (uint32_t j = 0; j < k; j++)
			assert_string_not_equal(p->kernel[j].name, p->kernel[k].name);
	}
	for (uint32_t k = 0; k < p->nfunction; k++)
		check_words(p, p->function[k].text);
	const WeftBackendEntry *e = p->entry;
	for (uint32_t k = 0; k < p->model->entry[0]->ncall; k++)
		assert_true(e->kernel[k] < p->nkernel);
	check_parses(&e->sizes);
	check_parses(&e->run);
	check_runs(p);
}

static void test_program(void **state)
{
	(void)state;
	Does d = {.add = {"-", "-"}, .look = look};
	if (!compile(&d, false, text))
		fail_msg("%s", said);
	assert_int_equal(d.emitted, 1);
	char back[20] = "";
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	assert_int_equal(fread(back, 1, sizeof back - 1, f), 8);
	assert_string_equal(back, "datadata");
	fclose(f);
	remove(path);
}

/* ---- what goes wrong ---- */

static void says(Does *d, bool folder, const char *want)
{
	FILE *f = fopen(path, "rb");
	assert_null(f);
	assert_false(compile(d, folder, text));
	if (!strstr(said, want) || strchr(said, '\n') != said + strlen(said) - 1)
		fail_msg("expected one line with \"%s\", got: %s", want, said);
	f = fopen(path, "rb");
	assert_null(f);
}

static void test_wrong(void **state)
{
	(void)state;
	says(&(Does){.add = {"-"}, .fail = "no kernel may sort"}, false,
	     "back end test: no kernel may sort");
	says(&(Does){.add = {"-"}, .code = 7}, false,
	     "back end test: it failed and does not say why");
	says(&(Does){.add = {NULL}}, false, "back end test: it made nothing");
	says(&(Does){.add = {"a"}}, false,
	     "back end test: it makes one file, and adds a to a folder");
	says(&(Does){.add = {"a", "-"}}, true,
	     "back end test: it makes a folder, and adds a file without a name");
	says(&(Does){.add = {"a/b"}}, true,
	     "back end test: it adds a file that cannot be called \"a/b\"");
	says(&(Does){.add = {".."}}, true,
	     "back end test: it adds a file that cannot be called \"..\"");
	says(&(Does){.add = {""}}, true,
	     "back end test: it adds a file that cannot be called \"\"");
	Does refused = {.refuse = "is no target of mine"};
	says(&refused, false, "back end test: x86-64-v3 is no target of mine");
	assert_int_equal(refused.emitted, 0);
}

static void refused_options(const WeftOptions *o, const char *want)
{
	Weft *w = weft_new();
	WeftGraph *g = weft_parse(w, text, "m");
	assert_false(weft_compile(w, g, o, path));
	if (!strstr(weft_messages(w), want))
		fail_msg("expected \"%s\", got: %s", want, weft_messages(w));
	weft_free(w);
}

#define OPTIONS(...) &(WeftOptions){.size = sizeof(WeftOptions), __VA_ARGS__}

static void test_options(void **state)
{
	(void)state;
	refused_options(OPTIONS(.backend_name = "none"), "no back end none: there are llvm, c");
	refused_options(OPTIONS(.backend_name = "c", .backend = WEFT_BACKEND_LLVM),
			"options with the back end llvm and with c");
	refused_options(OPTIONS(.backend_name = "llvm", .cc = "cc"),
			"another C compiler is for the C back end, not for LLVM");
}

/* In memory: a file is, a folder is not. */
static void test_memory(void **state)
{
	(void)state;
	Does does = {.add = {"-"}};
	for (int folder = 0; folder < 2; folder++) {
		Weft *w = weft_new();
		const WeftBackendDef def = {.size = sizeof def,
					    .folder = folder,
					    .name = "test",
					    .user = &does,
					    .emit = emit};
		assert_true(weft_backend_register(w, &def));
		WeftMemory out;
		bool ok = weft_save_memory(w, weft_parse(w, text, "m"),
					   OPTIONS(.backend_name = "test"), WEFT_EMIT_SHARED, &out,
					   NULL);
		assert_int_equal(ok, !folder);
		if (ok) {
			assert_int_equal(out.bytes, 4);
			assert_memory_equal(out.data, "data", 4);
			out.release(out.user, out.data);
		} else {
			assert_non_null(
				strstr(weft_messages(w), "back end test makes a folder of files: "
							 "expected one that makes a file"));
		}
		weft_free(w);
	}
}

static void test_definitions(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftBackendDef def = {.size = sizeof def, .name = "mine", .emit = emit};
	assert_true(weft_backend_register(w, &def));
	assert_false(weft_backend_register(w, &def));
	assert_false(weft_backend_register(w, NULL));
	assert_false(weft_backend_load(w, NULL));
	uint32_t n;
	const WeftBackendInfo *b = weft_backends(w, &n);
	assert_true(n >= 3);
	assert_string_equal(b[0].name, "llvm");
	assert_string_equal(b[1].name, "c");
	assert_string_equal(b[n - 1].name, "mine");
	assert_string_equal(b[n - 1].about, "");
	assert_true(b[1].available && b[n - 1].available && b[0].available == weft_has_llvm());
	weft_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_program),
		cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_definitions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
