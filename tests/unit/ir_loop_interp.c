/* The interpreter of loop IR: what it computes in lockstep, and one wrong program for everything
 * that it finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ir/loop/interp/interp.h"

enum { N = 20 }; /* elements of x and y, tasks of most launches: more than run in lockstep */
enum { X, Y, WEIGHTS, WORK, STATE };

/* y: f32[20] from x: f32[20], with a workspace of as many elements, a constant of one and a size
 * symbol s0. */
typedef struct {
	Ctx *ctx;
	Program *p;
	ProgramEntry *e; /* of p */
	LoopReport report;
	float x[N], y[N], work[N], weight[16];
	int64_t s0;
} Bench;

static Bench it;

static const Lx none = {0};
static const LType f32 = {DT_f32, 1};

static int setup(void **state)
{
	(void)state;
	it = (Bench){.ctx = ctx_new(), .s0 = N};
	if (!it.ctx || setjmp(it.ctx->unwind))
		return -1;
	Ir *ir = ir_new(it.ctx);
	Arena *a = it.ctx->arena;
	Program *p = it.p = program_new(ir, "test");
	ProgramEntry *e = it.e = program_entry(p, "run");
	Sym *dim = ARENA_NEW(a, Sym), s0 = sym_var(ir->syms, "s0", SYMVAR_SIZE, 0, 1000);
	*dim = sym_int(ir->syms, N);
	array_push(a, &e->symbol, s0);
	array_push(a, &e->input,
		   (ProgramTensor){.name = "x", .dtype = DT_f32, .rank = 1, .dim = dim});
	array_push(a, &e->output,
		   (ProgramTensor){.name = "y", .dtype = DT_f32, .rank = 1, .dim = dim});
	p->weight_bytes = 64;
	e->run = loop_new(ir, "run");
	loop_param(e->run, "s0");
	e->sizes = loop_new(ir, "sizes");
	loop_param(e->sizes, "x_0");
	for (int k = 0; k < N; k++)
		it.x[k] = (float)k + 0.5f;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ctx_free(it.ctx);
	return 0;
}

static uint32_t buffer(LoopFn *f, const char *name)
{
	return loop_buf(f, (LArg){.name = name, .dtype = DT_f32, .align = 4});
}

/* A kernel of the program whose body is open. */
static LoopFn *kernel(const char *name)
{
	LoopFn *f = loop_new(it.p->ir, name);
	array_push(it.ctx->arena, &it.p->fn, f);
	return f;
}

static Lx task(LoopFn *f)
{
	return lx_var(f, f->task);
}

static Lx load(LoopFn *f, uint32_t buf, Lx at)
{
	return lx_var(f, ls_load(f, "v", lmem_buf(buf, DT_f32), at, f32, none));
}

static void store(LoopFn *f, uint32_t buf, Lx at, Lx value)
{
	ls_store(f, lmem_buf(buf, DT_f32), at, value, none);
}

/* Launch kernel `fn` over `tasks` tasks with these regions at byte 0; bytes[k] >= 0: the size of
 * its buffer k, which is buffer owner[k]. */
static void launch_sized(uint32_t fn, Lx tasks, const uint32_t *region, const int64_t *bytes,
			 const uint32_t *owner)
{
	LoopFn *r = it.e->run, *f = it.p->fn.data[fn];
	Lx arg[8];
	uint32_t n = 0;
	ProgramArg *known = bytes ? ARENA_ARRAY(it.ctx->arena, ProgramArg, f->buf.n) : NULL;
	for (; n < f->buf.n; n++) {
		arg[n] = lx_addr(r, region[n], lx_int(r, 0));
		if (known)
			known[n] =
				(ProgramArg){f->buf.data[n].name, sym_int(it.p->ir->syms, bytes[n]),
					     owner ? owner[n] : n + 1};
	}
	for (uint32_t k = 0; k < f->param.n; k++)
		arg[n++] = lx_param(r, 0);
	uint32_t call =
		program_add_call(it.e, &(ProgramCall){.fn = fn, .name = "the call", .arg = known});
	ls_launch(r, call, tasks, arg, f->buf.n, n);
}

static void launch(uint32_t fn, int64_t tasks, const uint32_t *region)
{
	launch_sized(fn, lx_int(it.e->run, tasks), region, NULL, NULL);
}

static LoopOutcome execute(void)
{
	Arena *a = arena_new(&it.ctx->unwind);
	for (uint32_t k = 0; k < it.p->fn.n; k++)
		assert_true(loop_verify(it.p->fn.data[k], NULL));
	assert_true(loop_verify(it.e->run, NULL));
	int64_t slot[] = {it.s0, N, sizeof it.work};
	void *buf[] = {it.x, it.y, it.weight, it.work, NULL};
	LoopOutcome r = loop_interp_run(it.e, a, buf, slot, &it.report);
	arena_free(a);
	return r;
}

/* `text` stands in the message of a finding, after what it is in. */
static void finds(const char *where, const char *text)
{
	assert_int_equal(execute(), LOOP_FINDING);
	if (!strstr(it.report.message, where) || !strstr(it.report.message, text))
		fail_msg("expected \"%s ... %s\", got \"%s\"", where, text, it.report.message);
}

#define FN "loop IR of the call (kernel k), task "

/* ---- what is right ---- */

/* y[t] = sum of x[0 .. t], or -x[t] for odd t: tasks in lockstep take different ways. */
static void test_lockstep(void **state)
{
	(void)state;
	LoopFn *f = kernel("k");
	uint32_t x = buffer(f, "x"), y = buffer(f, "y");
	Lx t = task(f), odd = lx_cmp(f, SC_eq, lx_mod(f, t, lx_int(f, 2)), lx_int(f, 1));
	ls_if(f, odd);
	Lx v = load(f, x, t);
	store(f, y, t, lx_sc(f, SC_neg, f32, &v, 1));
	ls_else(f);
	Lv sum = ls_var(f, "sum", lx_float(f, f32, 0));
	Lx i = lx_var(f, ls_for(f, "i", lx_int(f, 0), lx_add(f, t, lx_int(f, 1)), 1));
	ls_set(f, sum, lx_add(f, lx_var(f, sum), load(f, x, i)));
	ls_end(f);
	store(f, y, t, lx_var(f, sum));
	ls_end(f);
	launch(0, N, (uint32_t[]){X, Y});
	for (it.report.seed = 0; it.report.seed < 5; it.report.seed++) {
		memset(it.y, 0, sizeof it.y);
		assert_int_equal(execute(), LOOP_DONE);
		assert_string_equal(it.report.message, "");
		float want = 0;
		for (int k = 0; k < N; k++) {
			want += it.x[k];
			assert_true(it.y[k] == (k % 2 ? -it.x[k] : want));
		}
	}
	assert_true(it.report.statements > N * N / 4);
}

/* Eight lanes under a mask: those off are not touched and load 0; the sum is a tree, 2 in no other
 * order; a reversed gather and a scatter. */
static void test_lanes(void **state)
{
	(void)state;
	LType v8 = {DT_f32, 8}, i8 = {DT_i64, 8};
	LoopFn *f = kernel("k");
	uint32_t x = buffer(f, "x"), y = buffer(f, "y");
	Lx zero = lx_int(f, 0), last = lx_mask(f, lx_int(f, 4), 8);
	Lx a = lx_var(f, ls_load(f, "a", lmem_buf(x, DT_f32), lx_int(f, 16), v8, last));
	store(f, y, zero, lx_hreduce(f, SC_add, a));
	Lx back = lx_ramp(f, zero, lx_int(f, -1), 8);
	Lx b = lx_var(f, ls_gather(f, "b", lmem_buf(x, DT_f32), lx_int(f, 7), back, DT_f32, none));
	ls_store(f, lmem_buf(y, DT_f32), lx_int(f, 1), b, none);
	Lx two = lx_int_of(f, i8, 2),
	   at = lx_sc(f, SC_mul, i8, (Lx[]){lx_ramp(f, zero, lx_int(f, 1), 8), two}, 2);
	Lx four = lx_shuffle(f, SHUFFLE_LOW, b, b), high = lx_shuffle(f, SHUFFLE_HIGH, four, four);
	Lx two_back = lx_splat(f, lx_shuffle(f, SHUFFLE_LOW, high, high), 8);
	ls_scatter(f, lmem_buf(y, DT_f32), lx_int(f, 9), at, two_back, lx_mask(f, lx_int(f, 6), 8));
	at = lx_add(f, at, lx_int(f, 1));
	ls_scatter(f, lmem_buf(y, DT_f32), lx_int(f, 9), at, lx_float(f, v8, -1),
		   lx_mask(f, lx_int(f, 5), 8));
	memcpy(&it.x[16], (float[]){1e8f, 1, -1e8f, 1}, 4 * sizeof(float));
	launch(0, 1, (uint32_t[]){X, Y});
	assert_int_equal(execute(), LOOP_DONE);
	assert_true(it.y[0] == 2);
	for (int k = 0; k < 8; k++)
		assert_true(it.y[1 + k] == it.x[7 - k]);
	for (int k = 9; k < N; k++)
		assert_true(it.y[k] == (k % 2 ? it.x[5] : -1));
}

/* Sizes: results, and the text of an assertion. */
static void test_sizes(void **state)
{
	(void)state;
	LoopFn *s = it.e->sizes;
	Lx n = lx_param(s, 0), one = lx_int(s, 1);
	uint32_t message = program_message(it.p, "100%% of %lld, got %lld");
	ls_assert(s, lx_cmp(s, SC_ge, n, one), message, (Lx[]){one, n}, 2);
	ls_result(s, 0, n);
	ls_result(s, 1, lx_mul(s, n, lx_int(s, 2)));
	ls_result(s, 2, lx_int(s, 64));
	int64_t extent = 7, slot[3] = {0};
	assert_int_equal(loop_interp_sizes(it.e, it.ctx->arena, &extent, slot, &it.report),
			 LOOP_DONE);
	assert_true(slot[0] == 7 && slot[1] == 14 && slot[2] == 64);
	extent = 0;
	assert_int_equal(loop_interp_sizes(it.e, it.ctx->arena, &extent, slot, &it.report),
			 LOOP_FAILED);
	assert_string_equal(it.report.message, "100% of 1, got 0");
}

static void check(LoopFn *f, Lx ok, uint32_t message)
{
	Lx which = task(f);
	ls_if(f, lx_fails(f, ok, none));
	ls_fail(f, message, &which, 1);
	ls_end(f);
}

/* A check of a kernel: that of the first task which fails it. */
static void test_check(void **state)
{
	(void)state;
	LoopFn *f = kernel("k");
	uint32_t small = program_message(it.p, "%lld, 100%% too small"),
		 large = program_message(it.p, "too large");
	check(f, lx_cmp(f, SC_lt, task(f), lx_int(f, 12)), large);
	check(f, lx_cmp(f, SC_lt, task(f), lx_int(f, 7)), small);
	launch(0, N, NULL);
	assert_int_equal(execute(), LOOP_FAILED);
	assert_string_equal(it.report.message, "7, 100% too small");
}

/* ---- what is wrong ---- */

static void test_out_of_bounds(void **state)
{
	(void)state;
	LoopFn *f = kernel("k");
	uint32_t x = buffer(f, "x"), y = buffer(f, "y");
	store(f, y, task(f), load(f, x, lx_add(f, task(f), lx_int(f, 1))));
	launch(0, N, (uint32_t[]){X, Y});
	finds(FN "19: load v: ", "reads 4 bytes at byte 80 of buffer x, which has 80");
}

static void test_out_of_buffer(void **state)
{
	(void)state;
	LoopFn *f = kernel("k");
	uint32_t x = buffer(f, "x"), t = buffer(f, "t");
	store(f, t, task(f), load(f, x, task(f)));
	launch_sized(0, lx_int(it.e->run, N), (uint32_t[]){X, WORK}, (int64_t[]){80, 76}, NULL);
	finds(FN "19: store t: ", "writes 4 bytes at byte 76 of buffer t, which has 76");
}

static void test_before_buffer(void **state)
{
	(void)state;
	LoopFn *f = kernel("k");
	uint32_t x = buffer(f, "x"), y = buffer(f, "y");
	store(f, y, task(f), load(f, x, lx_sub(f, task(f), lx_int(f, 1))));
	launch(0, N, (uint32_t[]){X, Y});
	finds(FN "0: load v: ", "reads 4 bytes at byte -4 of buffer x");
}

static void test_beyond_workspace(void **state)
{
	(void)state;
	LoopFn *f = kernel("k");
	store(f, buffer(f, "t"), task(f), lx_float(f, f32, 1));
	launch_sized(0, lx_int(it.e->run, N), (uint32_t[]){WORK}, (int64_t[]){81}, NULL);
	finds(FN "0: launch: ", "buffer t has 81 bytes at byte 0 of the workspace, which has 80");
}

static void test_never_written(void **state)
{
	(void)state;
	LoopFn *f = kernel("k");
	uint32_t t = buffer(f, "t"), y = buffer(f, "y");
	store(f, y, task(f), load(f, t, task(f)));
	launch(0, N, (uint32_t[]){WORK, Y});
	finds(FN, "of buffer t, which was never written");
}

static void test_output_left_out(void **state)
{
	(void)state;
	LoopFn *f = kernel("k");
	store(f, buffer(f, "y"), task(f), lx_float(f, f32, 1));
	launch(0, N - 1, (uint32_t[]){Y});
	finds("loop IR of run: ", "byte 76 of the output y is never written");
}

static void test_input_written(void **state)
{
	(void)state;
	LoopFn *f = kernel("k");
	store(f, buffer(f, "x"), task(f), lx_float(f, f32, 1));
	launch(0, N, (uint32_t[]){X});
	finds(FN, "store x: writes buffer x, which belongs to the input x");
}

static void test_weight_written(void **state)
{
	(void)state;
	LoopFn *f = kernel("k");
	store(f, buffer(f, "w"), lx_int(f, 0), lx_float(f, f32, 1));
	launch(0, 1, (uint32_t[]){WEIGHTS});
	finds(FN, "store w: writes buffer w, which belongs to the weights");
}

static void test_two_writers(void **state)
{
	(void)state;
	LoopFn *f = kernel("k");
	store(f, buffer(f, "y"), lx_div(f, task(f), lx_int(f, 2)), lx_float(f, f32, 1));
	launch(0, N, (uint32_t[]){Y});
	finds(FN, "of the same phase touches too");
}

/* A launch that shares the phase of the one before has tasks of its own, whatever their numbers. */
static void test_joined_writers(void **state)
{
	(void)state;
	LoopFn *f = kernel("k");
	store(f, buffer(f, "y"), task(f), lx_float(f, f32, 1));
	launch(0, N, (uint32_t[]){Y});
	ls_same_phase(it.e->run);
	launch(0, N, (uint32_t[]){Y});
	finds(FN, "of the same phase touches too");
}

static void test_joined_apart(void **state)
{
	(void)state;
	LoopFn *f = kernel("k");
	store(f, buffer(f, "y"), task(f), lx_float(f, f32, 1));
	launch(0, N, (uint32_t[]){WORK});
	ls_same_phase(it.e->run);
	launch(0, N, (uint32_t[]){Y});
	launch(0, N, (uint32_t[]){WORK});
	assert_int_equal(execute(), LOOP_DONE);
}

/* Also with one of many readers in between, and whoever comes first. */
static void test_reader_and_writer(void **state)
{
	(void)state;
	LoopFn *g = kernel("g"), *f = kernel("k");
	store(g, buffer(g, "t"), task(g), lx_float(g, f32, 1));
	uint32_t t = buffer(f, "t"), y = buffer(f, "y");
	store(f, y, task(f), load(f, t, lx_int(f, 3)));
	ls_if(f, lx_cmp(f, SC_eq, task(f), lx_int(f, 3)));
	store(f, t, lx_int(f, 3), lx_float(f, f32, 2));
	ls_end(f);
	launch(0, N, (uint32_t[]){WORK});
	launch(1, N, (uint32_t[]){WORK, Y});
	for (it.report.seed = 0; it.report.seed < 5; it.report.seed++)
		finds(FN, "of the same phase");
}

static void test_negative_parameter(void **state)
{
	(void)state;
	LoopFn *f = kernel("k");
	loop_param(f, "pad");
	launch(0, N, NULL);
	it.s0 = -3;
	assert_int_equal(execute(), LOOP_FINDING);
	assert_non_null(strstr(it.report.message, "parameter s0 is -3"));
	it.s0 = 3;
	LoopFn *r = it.e->run;
	Lx arg = lx_sub(r, lx_param(r, 0), lx_int(r, 5));
	ls_launch(r, 0, lx_int(r, 1), &arg, 0, 1);
	finds(FN "0: launch: ", "parameter pad is -2, and taken not to be negative");
}

static void test_negative_tasks(void **state)
{
	(void)state;
	kernel("k");
	launch_sized(0, lx_sub(it.e->run, lx_param(it.e->run, 0), lx_int(it.e->run, N + 1)), NULL,
		     NULL, NULL);
	finds(FN "0: launch: ", "the number of tasks is -1");
}

static void test_negative_variable(void **state)
{
	(void)state;
	LoopFn *f = kernel("k");
	Lv v = ls_let(f, "at", lx_sub(f, lx_int(f, N - 2), task(f)));
	f->lv.data[v.i].nonneg = true;
	store(f, buffer(f, "y"), task(f), lx_float(f, f32, 1));
	launch(0, N, (uint32_t[]){Y});
	finds(FN "19: ", "let at: at is -1, and taken not to be negative");
}

/* Vectors past the caches, with a fence behind them or only where the task is odd. */
static void stream(LoopFn *f, bool always)
{
	LType f32x4 = {DT_f32, 4};
	ls_stream(f, lmem_buf(buffer(f, "y"), DT_f32), lx_mul(f, task(f), lx_int(f, 4)),
		  lx_float(f, f32x4, 1));
	if (!always)
		ls_if(f, lx_cmp(f, SC_eq, lx_mod(f, task(f), lx_int(f, 2)), lx_int(f, 1)));
	ls_fence(f);
	if (!always)
		ls_end(f);
}

static void test_fence(void **state)
{
	(void)state;
	stream(kernel("k"), false);
	launch(0, N / 4, (uint32_t[]){Y});
	finds(FN, "ends without a fence after what it streamed");
}

static void test_fenced(void **state)
{
	(void)state;
	stream(kernel("k"), true);
	launch(0, N / 4, (uint32_t[]){Y});
	assert_int_equal(execute(), LOOP_DONE);
}

/* b takes the place of a while a is still read. */
static void test_life(void **state)
{
	(void)state;
	LoopFn *a = kernel("a"), *f = kernel("k");
	store(a, buffer(a, "a"), task(a), lx_float(a, f32, 1));
	uint32_t from = buffer(f, "a"), y = buffer(f, "y");
	store(f, y, task(f), load(f, from, task(f)));
	Lx n = lx_int(it.e->run, N), some = lx_int(it.e->run, 3);
	launch_sized(0, n, (uint32_t[]){WORK}, (int64_t[]){80}, (uint32_t[]){7});
	launch_sized(1, some, (uint32_t[]){WORK, Y}, (int64_t[]){80, 80}, (uint32_t[]){7, 9});
	LoopFn *b = kernel("b");
	store(b, buffer(b, "b"), task(b), lx_float(b, f32, 2));
	launch_sized(2, some, (uint32_t[]){WORK}, (int64_t[]){16}, (uint32_t[]){8});
	launch_sized(1, n, (uint32_t[]){WORK, Y}, (int64_t[]){80, 80}, (uint32_t[]){7, 9});
	finds(FN, "of buffer a, whose place in the workspace b has taken");
}

static void test_misaligned(void **state)
{
	(void)state;
	LoopFn *f = kernel("k"), *r = it.e->run;
	loop_buf(f, (LArg){.name = "t", .dtype = DT_f32, .align = 16});
	program_add_call(it.e, &(ProgramCall){.name = "the call"});
	Lx arg = lx_addr(r, WORK, lx_int(r, 16));
	ls_launch(r, 0, lx_int(r, 1), &arg, 1, 1);
	arg = lx_addr(r, WORK, lx_int(r, 24));
	ls_launch(r, 0, lx_int(r, 1), &arg, 1, 1);
	finds(FN, "buffer t at byte 24 of the workspace is not aligned to 16 bytes, as promised");
}

/* Nobody promises more of what the caller passes. */
static void test_misaligned_input(void **state)
{
	(void)state;
	LoopFn *f = kernel("k");
	loop_buf(f, (LArg){.name = "x", .dtype = DT_f32, .align = 16});
	launch(0, 1, (uint32_t[]){X});
	finds(FN, "buffer x at byte 0 of the input x is not aligned to 16 bytes");
}

static void test_restrict(void **state)
{
	(void)state;
	LoopFn *f = kernel("k");
	uint32_t a =
		loop_buf(f, (LArg){.name = "a", .dtype = DT_f32, .align = 4, .restrict_ok = true});
	loop_buf(f, (LArg){.name = "b", .dtype = DT_f32, .align = 4, .read = true});
	store(f, a, task(f), lx_float(f, f32, 1));
	launch(0, N, (uint32_t[]){WORK, WORK});
	finds(FN, "buffers a and b overlap, and one of them is declared restrict");
}

static void test_index_overflow(void **state)
{
	(void)state;
	LoopFn *f = kernel("k");
	Lx big = lx_mul(f, lx_add(f, task(f), lx_int(f, 1)), lx_int(f, INT64_MAX / 10));
	ls_let(f, "big", big);
	launch(0, N, NULL);
	finds(FN, "let big: index arithmetic: mul of ");
}

static void test_index_division(void **state)
{
	(void)state;
	LoopFn *f = kernel("k");
	ls_let(f, "q", lx_div(f, lx_int(f, 7), task(f)));
	launch(0, N, NULL);
	finds(FN "0: let q: ", "index arithmetic: floordiv of 7 and 0 is not defined");
}

static void test_local(void **state)
{
	(void)state;
	LoopFn *f = kernel("k");
	LMem t = ls_local(f, "t", DT_f32, 4);
	ls_store(f, t, lx_int(f, 0), lx_float(f, f32, 1), none);
	ls_load(f, "v", t, lx_int(f, 1), f32, none);
	launch(0, N, NULL);
	finds(FN, "load v: reads byte 4 of the local array t, which was never written");
}

static void test_local_bounds(void **state)
{
	(void)state;
	LoopFn *f = kernel("k");
	LMem t = ls_local(f, "t", DT_f32, 4);
	ls_store(f, t, task(f), lx_float(f, f32, 1), none);
	launch(0, N, NULL);
	finds(FN, "store t: writes 4 bytes at byte ");
}

/* Every task, and every round of a loop, has the array anew. */
static void test_local_again(void **state)
{
	(void)state;
	LoopFn *f = kernel("k");
	Lx i = lx_var(f, ls_for(f, "i", lx_int(f, 0), lx_int(f, 2), 1));
	LMem t = ls_local(f, "t", DT_f32, 4);
	ls_if(f, lx_cmp(f, SC_eq, i, lx_int(f, 0)));
	ls_store(f, t, lx_int(f, 0), lx_float(f, f32, 1), none);
	ls_end(f);
	ls_load(f, "v", t, lx_int(f, 0), f32, none);
	ls_end(f);
	launch(0, 1, NULL);
	finds(FN "0: load v: ", "reads byte 0 of the local array t, which was never written");
}

static void test_limit(void **state)
{
	(void)state;
	LoopFn *f = kernel("k");
	ls_while(f, lx_int_of(f, (LType){DT_bool, 1}, 1));
	ls_end(f);
	launch(0, 1, NULL);
	it.report.limit = 1000;
	assert_int_equal(execute(), LOOP_LIMIT);
	assert_non_null(strstr(it.report.message, "more than 1000 statements of loop IR"));
	assert_true(it.report.statements <= 1000);
}

static void test_copy(void **state)
{
	(void)state;
	LoopFn *r = it.e->run;
	Lx zero = lx_int(r, 0), all = lx_int(r, sizeof it.x);
	ls_copy(r, lx_addr(r, Y, zero), lx_addr(r, X, zero), all);
	assert_int_equal(execute(), LOOP_DONE);
	assert_memory_equal(it.x, it.y, sizeof it.x);
	ls_copy(r, lx_addr(r, Y, zero), lx_addr(r, WORK, zero), all);
	finds("loop IR of run: copy: ",
	      "reads byte 0 of buffer workspace, which was never written");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_lockstep),
		T(test_lanes),
		T(test_sizes),
		T(test_check),
		T(test_out_of_bounds),
		T(test_out_of_buffer),
		T(test_before_buffer),
		T(test_beyond_workspace),
		T(test_never_written),
		T(test_output_left_out),
		T(test_input_written),
		T(test_weight_written),
		T(test_two_writers),
		T(test_joined_writers),
		T(test_joined_apart),
		T(test_reader_and_writer),
		T(test_negative_parameter),
		T(test_negative_tasks),
		T(test_negative_variable),
		T(test_fence),
		T(test_fenced),
		T(test_life),
		T(test_misaligned),
		T(test_misaligned_input),
		T(test_restrict),
		T(test_index_overflow),
		T(test_index_division),
		T(test_local),
		T(test_local_bounds),
		T(test_local_again),
		T(test_limit),
		T(test_copy),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
