/* weft.h from outside: load, look, transform, interpret, compile; what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "weft.h"

static const char silu[] = "graph @silu(%x: f32[s0, 8]) where 1 <= s0 <= 64 {\n"
			   "  %1 = sigmoid(%x) : f32[s0, 8]\n"
			   "  %2 = mul(%x, %1) : f32[s0, 8]\n"
			   "  return %2\n"
			   "}\n";

static void test_inspect(void **state)
{
	(void)state;
	uint32_t n;
	int64_t three = 3, shape[2];
	Weft *w = weft_new();
	WeftGraph *g = weft_parse(w, silu, "silu");
	assert_non_null(g);
	const WeftTensorInfo *in = weft_inputs(w, g, &n);
	assert_int_equal(n, 1);
	assert_string_equal(in[0].name, "x");
	assert_int_equal(in[0].dim[0].value, -1);
	assert_int_equal(in[0].dim[0].symbol, 0);
	assert_int_equal(in[0].dim[1].value, 8);
	const WeftSymbolInfo *s = weft_symbols(w, g, &n);
	assert_int_equal(n, 1);
	assert_string_equal(s[0].name, "s0");
	assert_int_equal(s[0].hi, 64);
	assert_true(weft_input_shape(w, g, 0, &three, shape));
	assert_int_equal(shape[0], 3);
	const WeftOpCount *op = weft_operators(w, g, &n);
	assert_int_equal(n, 2);
	assert_string_equal(op[0].name, "mul");
	assert_non_null(strstr(weft_graph_text(w, g, "decompose"), "sigmoid(%x)"));
	assert_non_null(strstr(weft_graph_dot(w, g, NULL), "digraph"));
	assert_null(weft_graph_text(w, g, "nonsense"));
	assert_int_equal(weft_nmessages(w), 1);
	assert_true(weft_transform(w, g, "cse"));
	assert_false(weft_transform(w, g, "nonsense"));
	weft_free(w);
}

static void expect_error(Weft *w, const char *text)
{
	const char *all = weft_messages(w);
	if (!strstr(all, text))
		fail_msg("expected '%s' in: %s", text, all);
}

/* Counts of a graph at the sizes named: bytes and operations of all launches. */
static void expect_counts(const char *text, const int64_t *symbol, uint32_t n, double flops,
			  double bytes)
{
	Weft *w = weft_new();
	WeftOptions o = {.size = sizeof o, .target = "x86-64-v3"};
	WeftGraph *g = weft_parse(w, text, "counted");
	if (!g || !weft_plan(w, g, &o))
		fail_msg("%s", weft_messages(w));
	const WeftReport *r = weft_report_at(w, symbol, n);
	if (!r)
		fail_msg("%s", weft_messages(w));
	double sum_flops = 0, sum_bytes = 0;
	for (uint32_t k = 0; k < r->nkernel; k++) {
		sum_flops += r->kernel[k].flops;
		sum_bytes += r->kernel[k].bytes;
	}
	if (r->flops != flops || r->bytes != bytes)
		fail_msg("%s%.0f operations and %.0f bytes, expected %.0f and %.0f", text, r->flops,
			 r->bytes, flops, bytes);
	assert_true(sum_flops == flops && sum_bytes == bytes);
	weft_free(w);
}

static const char matmul[] =
	"graph @matmul(%x: f32[B, 96], %w: f32[96, 80]) where 1 <= B <= 512 {\n"
	"  %1 = aten.mm(%x, %w) : f32[B, 80]\n"
	"  return %1\n"
	"}\n";
static const char embedding[] =
	"graph @embedding(%i: i64[B, 4], %t: f32[1000, 64]) where 1 <= B <= 512 {\n"
	"  %1 = aten.embedding(%t, %i) : f32[B, 4, 64]\n"
	"  return %1\n"
	"}\n";
static const char two_tables[] =
	"graph @two(%i: i64[B], %j: i64[B], %t: f32[1000, 64]) where 1 <= B <= 512 {\n"
	"  %1 = aten.embedding(%t, %i) : f32[B, 64]\n"
	"  %2 = aten.embedding(%t, %j) : f32[B, 64]\n"
	"  %3 = aten.add.Tensor(%1, %2) : f32[B, 64]\n"
	"  return %3\n"
	"}\n";
static const char softmax[] = "graph @softmax(%x: f32[B, 64]) where 1 <= B {\n"
			      "  %1 = aten.softmax.int(%x, dim=-1) : f32[B, 64]\n"
			      "  return %1\n"
			      "}\n";
static const char recurrent[] =
	"graph @f(%h: f32[4, 4], %xs: f32[T, 4, 4], %w: f32[4, 4]) where 1 <= T {\n"
	"  %s = scan([%h], [%xs], [%w], body=graph @step(%h: f32[4, 4], %x: f32[4, 4], %w: f32[4, "
	"4]) {\n"
	"    %p = contract(%h, %w, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f32)\n"
	"    %a = add(%p, %x)\n"
	"    return %a\n"
	"  }, length=T, reverse=false)\n"
	"  %last = get(%s, index=0)\n"
	"  return %last\n"
	"}\n";

static void test_counts(void **state)
{
	(void)state;
	int64_t one = 1, seven = 7, steps = 32, most = 512;
	expect_counts(matmul, &one, 1, 2 * 96 * 80, 4 * (96 + 96 * 80 + 80));
	expect_counts(matmul, &seven, 1, 7 * 2 * 96 * 80, 4 * (7 * 96 + 96 * 80 + 7 * 80));
	/* indices, the rows they select, the output */
	expect_counts(embedding, &seven, 1, 0, 28 * 8 + 28 * 64 * 4 + 28 * 64 * 4);
	/* no more rows than there are */
	expect_counts(embedding, &most, 1, 0, 2048 * 8 + 1000 * 64 * 4 + 2048 * 64 * 4);
	expect_counts(two_tables, &seven, 1, 7 * 64, 14 * 8 + 14 * 64 * 4 + 7 * 64 * 4);
	/* every step: the contraction and the sum; state in and out, the step's input, the weights.
	 * Once: the first state is copied in, the last one out. */
	expect_counts(recurrent, &steps, 1, 32 * (2 * 64 + 16),
		      32 * (4 * 16 * 4) + 2 * (2 * 16 * 4));
	/* what several stages read is read once: largest, exponential, sum, quotient */
	expect_counts(softmax, &seven, 1, 4 * 7 * 64, 2 * 7 * 64 * 4);
}

static void test_counts_refused(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g = weft_parse(w, matmul, "matmul");
	int64_t value[2] = {513, 1};
	assert_null(weft_report_at(w, value, 1));
	expect_error(w, "nothing was compiled");
	assert_true(weft_plan(w, g, NULL));
	assert_null(weft_report_at(w, value, 2));
	expect_error(w, "values of 2 symbols to count with, expected 1");
	assert_null(weft_report_at(w, value, 1));
	expect_error(w, "B cannot be 513");
	assert_non_null(weft_report_at(w, value + 1, 1));
	weft_free(w);
}

static WeftTensor tensor(float *data, int64_t *shape)
{
	return (WeftTensor){data, {WEFT_CPU, 0}, 2, {WEFT_FLOAT, 32, 1}, shape, NULL, 0};
}

static void test_interpret(void **state)
{
	(void)state;
	float x[16];
	int64_t shape[2] = {2, 8}, stride[2] = {1, 2};
	WeftTensor in = tensor(x, shape), out;
	Weft *w = weft_new();
	WeftGraph *g = weft_parse(w, silu, "silu");
	for (int i = 0; i < 16; i++)
		x[i] = (float)i - 8;
	assert_true(weft_interpret(w, g, &in, 1, &out));
	assert_int_equal(out.shape[0], 2);
	assert_true(((float *)out.data)[8] == 0);
	in.strides = stride; /* transposed storage: element (1, 0) is x[1] */
	assert_true(weft_interpret(w, g, &in, 1, &out));
	assert_true(((float *)out.data)[4] == 0);
	weft_release(w);
	shape[1] = 7;
	in.strides = NULL;
	assert_false(weft_interpret(w, g, &in, 1, &out));
	assert_false(weft_interpret(w, g, &in, 0, &out));
	assert_int_equal(weft_nmessages(w), 2);
	weft_free(w);
}

/* New values of inputs are results, and no outputs. */
static void test_results(void **state)
{
	(void)state;
	static const char text[] = "graph @f(%x: f32[1, 2], %c: f32[1, 2]) {\n"
				   "  %y = neg(%x)\n"
				   "  %z = add(%c, %x)\n"
				   "  return %z \"c\" -> \"c\", %y\n"
				   "}\n";
	float x[] = {1, 2};
	int64_t shape[2] = {1, 2};
	const WeftTensor in[2] = {tensor(x, shape), tensor(x, shape)};
	WeftTensor out[3];
	uint32_t n;
	Weft *w = weft_new();
	WeftGraph *g = weft_parse(w, text, "written");
	assert_string_equal(weft_outputs(w, g, &n)[0].name, "y");
	assert_int_equal(n, 1);
	const WeftTensorInfo *results = weft_results(w, g, &n);
	assert_int_equal(n, 2);
	assert_string_equal(results[0].name, "c");
	assert_string_equal(results[1].name, "y");
	assert_true(weft_interpret(w, g, in, 2, out));
	assert_true(((float *)out[0].data)[1] == -2);
	assert_true(weft_interpret_all(w, g, NULL, in, 2, out));
	assert_true(((float *)out[0].data)[1] == 4);
	assert_true(((float *)out[1].data)[1] == -2);
	weft_free(w);
}

static void test_refused(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftOptions o = {.size = sizeof o, .target = "z80"};
	assert_null(weft_load(w, "no/such/file.pt2"));
	expect_error(w, "no/such/file.pt2");
	assert_null(weft_parse(w, "graph @f(%x: f32[2]) { return %y }", "bad"));
	expect_error(w, "bad:1");
	WeftGraph *g = weft_parse(w, silu, "silu");
	assert_non_null(g);
	assert_false(weft_compile(w, g, &o, "x.so"));
	expect_error(w, "no target z80");
	o.target = NULL;
	assert_false(weft_compile(w, g, &o, "no/such/folder/x.so"));
	expect_error(w, "no/such/folder/x.so");
	o.cc = "no-such-compiler";
	o.no_cache = true;
	assert_false(weft_compile(w, g, &o, "x.so"));
	expect_error(w, "no-such-compiler");
	assert_int_equal(access("x.so", F_OK), -1);
	o.size = 100000;
	assert_false(weft_compile(w, g, &o, "x.so"));
	assert_null(weft_report(w));
	weft_free(w);
}

/* Structures of older programs are shorter: what stands behind them is not read. */
static void test_older_options(void **state)
{
	(void)state;
	static const char *const name[] = {"a"};
	union {
		uint32_t size;
		WeftOptions compile;
		WeftLoadOptions load;
		WeftGradOptions grad;
		WeftVmapOptions vmap;
		WeftJoinOptions join;
	} o;
	Weft *w = weft_new();
	WeftGraph *g = weft_parse(w, silu, "silu");
	for (uint32_t size = sizeof(uint32_t); size <= sizeof o; size += sizeof(uint32_t)) {
		memset(&o, 0xff, sizeof o);
		memset(&o, 0, size);
		o.size = size;
		if (size <= sizeof o.compile)
			assert_true(weft_plan(w, g, &o.compile));
		if (size <= sizeof o.grad)
			assert_non_null(weft_vjp(w, g, &o.grad));
		if (size <= sizeof o.vmap)
			assert_non_null(weft_vmap(w, g, &o.vmap));
		if (size <= sizeof o.join)
			assert_non_null(weft_join_with(w, 1, name, &g, &o.join));
		if (size <= sizeof o.load)
			assert_non_null(weft_load_with(w, TEST_DATA "/mlp.pt2", &o.load));
	}
	assert_int_equal(weft_nmessages(w), 0);
	weft_free(w);
}

/* ---- compiled ---- */

static const WeftModel *open_model(const char *path, void **so, WeftInstance **in)
{
	const WeftModel *(*get)(void);
	WeftStatus status = {0};
	char full[256];
	snprintf(full, sizeof full, "./%s", path);
	*so = dlopen(full, RTLD_NOW | RTLD_LOCAL);
	if (!*so)
		fail_msg("%s", dlerror());
	*(void **)&get = dlsym(*so, "weft_model");
	const WeftModel *m = get();
	if (m->open(m, NULL, in, &status))
		fail_msg("%s", status.message);
	return m;
}

static int run_once(const WeftModel *m, WeftInstance *in, const WeftTensor *x,
		    WeftTensor *y)
{
	WeftStatus status = {0};
	WeftSizes *s = malloc(weft_entry(m, 0)->sizes_bytes);
	int code = m->sizes(in, 0, x, s, &status);
	void *work = malloc(code ? 1 : s->workspace_bytes);
	code = code ? code : m->run(in, s, x, y, work, NULL, &status);
	free(work);
	free(s);
	return code;
}

/* Compile, run and compare with the interpreter; the Weft of each thread is its own. */
static void *compile_and_run(void *arg)
{
	const char *path = arg;
	Weft *w = weft_new();
	WeftGraph *g = weft_parse(w, silu, "silu");
	WeftOptions o = {.size = sizeof o, .no_cache = true, .jobs = 1};
	float x[24], y[24] = {0};
	int64_t shape[2] = {3, 8};
	WeftTensor in = tensor(x, shape), out = tensor(y, shape), ref;
	for (int i = 0; i < 24; i++)
		x[i] = (float)(i - 12) / 3;
	if (!g || !weft_compile(w, g, &o, path)) {
		fprintf(stderr, "%s", weft_messages(w));
		return NULL;
	}
	void *so;
	WeftInstance *inst;
	const WeftModel *m = open_model(path, &so, &inst);
	bool ok = run_once(m, inst, &in, &out) == WEFT_OK && weft_interpret(w, g, &in, 1, &ref);
	for (int i = 0; ok && i < 24; i++) {
		float d = y[i] - ((float *)ref.data)[i];
		ok = d < 1e-6f && d > -1e-6f;
	}
	shape[0] = 65;
	ok = ok && run_once(m, inst, &in, &out) == WEFT_ERR_INPUT;
	const WeftReport *r = weft_report(w);
	ok = ok && r && r->kernels == 1 && r->operators == 2 && r->objects >= 1 && r->cached == 0;
	m->close(inst);
	dlclose(so);
	unlink(path);
	weft_free(w);
	return ok ? arg : NULL;
}

/* The folder that options name is the only one: before the library is loaded, so this test is the
 * first. */
/* Behind the table texts are "", as far as the caller's structure goes. */
static void test_table_end(void **state)
{
	(void)state;
	WeftOperator o = {.size = sizeof o};
	uint32_t n = 0;
	while (weft_table_operator(n, &o))
		n++;
	assert_true(n > 500);
	assert_string_equal(o.name, "");
	assert_string_equal(o.deviates, "");
	WeftOperator part = {.size = offsetof(WeftOperator, schema), .schema = "kept"};
	assert_true(weft_table_operator(0, &part));
	assert_string_not_equal(part.name, "");
	assert_string_equal(part.schema, "kept");
	assert_false(weft_table_operator(0, NULL));
}

static void test_llvm_folder(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftOptions o = {.size = sizeof o, .backend = WEFT_BACKEND_LLVM, .llvm_folder = "/nowhere"};
	WeftGraph *g = weft_parse(w, silu, "silu");
	assert_non_null(g);
	assert_false(weft_compile(w, g, &o, "x.so"));
	const char *said = weft_messages(w);
	if (!strstr(said, "(weft_llvm.so) is not in /nowhere") &&
	    !strstr(said, "built without LLVM"))
		fail_msg("a folder without the library: %s", said);
	weft_free(w);
}

static void test_compile_in_threads(void **state)
{
	(void)state;
	static char name[3][32];
	pthread_t t[3];
	for (int k = 0; k < 3; k++) {
		snprintf(name[k], sizeof name[k], "api-%ld-%d.so", (long)getpid(), k);
		assert_int_equal(pthread_create(&t[k], NULL, compile_and_run, name[k]), 0);
	}
	for (int k = 0; k < 3; k++) {
		void *ok;
		pthread_join(t[k], &ok);
		assert_non_null(ok);
	}
}

static bool silu_in_process(const WeftModel *m, WeftInstance *in)
{
	float x[512], y[512] = {0};
	int64_t shape[2] = {64, 8};
	WeftTensor tx = tensor(x, shape), ty = tensor(y, shape);
	for (int i = 0; i < 512; i++)
		x[i] = (float)(i % 7 - 3);
	bool ok = run_once(m, in, &tx, &ty) == WEFT_OK;
	for (int i = 0; ok && i < 512; i++)
		ok = fabsf(y[i] - x[i] / (1 + expf(-x[i]))) < 1e-6f;
	return ok;
}

/* The child of a fork runs what was compiled before it, and compiles. */
static void test_fork(void **state)
{
	(void)state;
	if (!weft_has_llvm())
		skip();
	Weft *w = weft_new();
	const WeftModel *m = weft_jit(w, weft_parse(w, silu, "silu"), NULL);
	WeftInstance *in;
	int status;
	assert_non_null(m);
	assert_int_equal(m->open(m, NULL, &in, NULL), WEFT_OK);
	assert_true(silu_in_process(m, in));
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(600);
		if (!silu_in_process(m, in))
			_exit(1);
		Weft *own = weft_new();
		const WeftModel *again = weft_jit(own, weft_parse(own, silu, "silu"), NULL);
		WeftInstance *in2;
		bool ok = again && again->open(again, NULL, &in2, NULL) == WEFT_OK &&
			  silu_in_process(again, in2);
		_exit(ok ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	m->close(in);
	weft_free(w);
}

/* The second compilation finds its objects, and makes the same bytes. */
static char *read_all(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	char *p = malloc(1 << 20);
	*n = f ? fread(p, 1, 1 << 20, f) : 0;
	if (f)
		fclose(f);
	return p;
}

static void test_cache(void **state)
{
	(void)state;
	char folder[] = "cacheXXXXXX", command[64];
	size_t na, nb;
	assert_non_null(mkdtemp(folder));
	setenv("WEFT_CACHE", folder, 1);
	Weft *w = weft_new();
	WeftGraph *g = weft_parse(w, silu, "silu");
	WeftOptions o = {.size = sizeof o, .backend = WEFT_BACKEND_C};
	assert_true(weft_compile(w, g, &o, "cache-a.so"));
	assert_int_equal(weft_report(w)->cached, 0);
	assert_true(weft_compile(w, g, &o, "cache-b.so"));
	assert_int_equal(weft_report(w)->cached, weft_report(w)->objects);
	char *a = read_all("cache-a.so", &na), *b = read_all("cache-b.so", &nb);
	assert_int_equal(na, nb);
	assert_memory_equal(a, b, na);
	free(a);
	free(b);
	unlink("cache-a.so");
	unlink("cache-b.so");
	snprintf(command, sizeof command, "rm -r %s", folder);
	assert_int_equal(system(command), 0);
	unsetenv("WEFT_CACHE");
	weft_free(w);
}

static void test_tensor_files(void **state)
{
	(void)state;
	static const char *const path[] = {"api-t.safetensors", "api-t.npz"};
	float x[4] = {1, 2, 3, 4};
	int64_t shape[2] = {2, 2}, one = 2;
	Weft *w = weft_new();
	WeftTensor t = tensor(x, shape),
		   c = {x, {WEFT_CPU, 0}, 1, {WEFT_COMPLEX, 64, 1}, &one, NULL, 0};
	for (int k = 0; k < 2; k++) {
		WeftTensors *f = weft_tensors_new(w);
		assert_true(weft_tensors_add(w, f, "y.10", &t));
		assert_true(weft_tensors_add(w, f, "y.2", &c));
		assert_int_equal(weft_tensors_at(f, 1)->ndim, 1);
		assert_ptr_equal(weft_tensors_find(f, "y.10")->data, x);
		assert_true(weft_tensors_write(w, f, path[k]));
		WeftTensors *r = weft_tensors_read(w, path[k]);
		assert_non_null(r);
		assert_int_equal(weft_tensors_count(r), 2);
		assert_string_equal(weft_tensors_name(r, 0), "y.2");
		assert_int_equal(weft_tensors_at(r, 0)->dtype.code, WEFT_COMPLEX);
		assert_int_equal(weft_tensors_at(r, 0)->ndim, 1);
		assert_memory_equal(weft_tensors_find(r, "y.10")->data, x, sizeof x);
		assert_null(weft_tensors_find(r, "y.3"));
		assert_true(weft_tensors_add(w, r, "y.3", &t));
		assert_ptr_equal(weft_tensors_find(r, "y.3")->data, x);
		assert_memory_equal(weft_tensors_find(r, "y.10")->data, x, sizeof x);
		unlink(path[k]);
	}
	assert_null(weft_tensors_read(w, "no-such.safetensors"));
	weft_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_llvm_folder),
		cmocka_unit_test(test_table_end),
		cmocka_unit_test(test_inspect),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_counts_refused),
		cmocka_unit_test(test_interpret),
		cmocka_unit_test(test_results),
		cmocka_unit_test(test_older_options),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_compile_in_threads),
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_tensor_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
