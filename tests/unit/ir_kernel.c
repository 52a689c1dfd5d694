/* Kernels: layouts, shared expressions, text, verification. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ir/kernel/kernel.h"
#include "ir/op/op.h"

typedef struct {
	Ctx *ctx;
	Ir *ir;
	SymTab *st;
	Lowered *l;
	Kernel *k;
	Sym i, r; /* outer axis < 8, inner axis < n */
	BufId x, y;
} State;

static State it;

/* y[i] = sum over r < n of x[i, r] * x[i, r] */
static int setup(void **state)
{
	(void)state;
	op_init();
	it.ctx = ctx_new();
	if (!it.ctx)
		return -1;
	it.ir = ir_new(it.ctx);
	it.st = it.ir->syms;
	Arena *arena = it.ctx->arena;
	Sym n = sym_var(it.st, "n", SYMVAR_SIZE, 1, 100), eight = sym_int(it.st, 8);
	it.l = lowered_new(it.ir, NULL);
	it.x = lowered_buf(it.l, BUF_INPUT, 0, DT_f16, 2, (Sym[]){eight, n}, "x");
	it.y = lowered_buf(it.l, BUF_OUTPUT, 0, DT_f32, 1, &eight, "y");
	it.i = sym_axis(it.st, "i", eight);
	it.r = sym_axis(it.st, "r", n);
	it.k = ARENA_NEW(arena, Kernel);
	it.k->name = "norm";
	array_push(arena, &it.k->axis, (Axis){it.i, eight});
	array_push(arena, &it.k->axis, (Axis){it.r, n});
	Kx x = kx_load(it.k, arena, it.x, DT_f32, 2, (Sym[]){it.i, it.r}, (Kx){0}, (Kx){0});
	Stage s = {
		.kind = STAGE_REDUCE, .nred = 1, .red = {1}, .dtype = DT_f32, .reduce.acc = DT_f32};
	stage_map_first(&s, 1);
	s.value = kx_op(it.k, arena, op_find("mul"), DT_f32, (Kx[]){x, x}, 2);
	s.store.buf = it.y;
	s.store.idx = arena_dup(arena, &it.i, sizeof it.i);
	array_push(arena, &it.k->stage, s);
	array_push(arena, &it.l->steps.step, (Step){.kind = STEP_KERNEL, .kernel = it.k});
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ctx_free(it.ctx);
	return 0;
}

static void test_row_major(void **state)
{
	(void)state;
	Sym d[3] = {sym_int(it.st, 2), sym_int(it.st, 3), sym_int(it.st, 5)};
	Layout l = layout_row_major(it.ir, 3, d);
	assert_true(layout_is_row_major(&l, 3));
	Sym idx[3] = {it.i, it.r, sym_int(it.st, 4)};
	assert_string_equal(sym_str(it.st, layout_offset(it.ir, &l, idx)), "15*i + 5*r + 4");
	assert_true(sym_is(it.st, layout_numel(it.ir, &l), 30));
	Layout p = layout_permuted(it.ir, 3, d, (uint32_t[]){2, 0, 1});
	assert_false(layout_is_row_major(&p, 3));
	assert_string_equal(sym_str(it.st, layout_offset(it.ir, &p, idx)), "3*i + r + 24");
}

/* [C, W] with channels in blocks of 4, the last one padded: offset (c/4, w, c%4). */
static void test_blocked(void **state)
{
	(void)state;
	Sym w = sym_int(it.st, 7), four = sym_int(it.st, 4), blocks = sym_int(it.st, 2);
	Layout l = {.n = 3};
	l.dim[0] = (LayoutDim){0, 4, blocks, blocks};
	l.dim[1] = (LayoutDim){1, 1, w, w};
	l.dim[2] = (LayoutDim){0, 1, four, four};
	assert_true(sym_is(it.st, layout_numel(it.ir, &l), 56));
	for (int64_t c = 0; c < 6; c++) {
		Sym idx[2] = {sym_int(it.st, c), sym_int(it.st, 3)};
		assert_true(sym_is(it.st, layout_offset(it.ir, &l, idx), c / 4 * 28 + 12 + c % 4));
	}
}

static void test_sharing(void **state)
{
	(void)state;
	Arena *arena = it.ctx->arena;
	Kx a = kx_const(it.k, arena, DT_f32, 2.0), b = kx_const(it.k, arena, DT_f32, 2.0);
	assert_int_equal(a.i, b.i);
	assert_int_not_equal(a.i, kx_const(it.k, arena, DT_f64, 2.0).i);
	assert_int_equal(kx_index(it.k, arena, it.i).i, kx_index(it.k, arena, it.i).i);
	assert_int_not_equal(kx_index(it.k, arena, it.i).i, kx_index(it.k, arena, it.r).i);
}

static void test_print(void **state)
{
	(void)state;
	Text t;
	text_init(&t, it.ctx->arena);
	lowered_print(it.l, &t);
	assert_string_equal(t.data, "@1.x: f16[8, n] input 0\n"
	                            "@2.y: f32[8] output 0\n"
	                            "kernel norm (i<8) {\n"
	                            "    %1 = @1.x[i, r]\n"
	                            "  stage0 reduce (; r<n) f32 sum -> global @2.y[i]\n"
	                            "    = mul:f32(%1, %1)\n"
	                            "}\n");
}

static void expect_error(const char *what)
{
	Text t;
	text_init(&t, it.ctx->arena);
	assert_false(lowered_verify(it.l));
	ctx_print(it.ctx, &t);
	if (!strstr(t.data, what))
		fail_msg("expected \"%s\" in:\n%s", what, t.data);
}

static void test_verify(void **state)
{
	(void)state;
	assert_true(lowered_verify(it.l));
	it.k->stage.data[0].nred = 0; /* r is no longer an axis of the stage */
	expect_error("axis out of scope: r");
}

static void test_verify_range(void **state)
{
	(void)state;
	Sym *idx = arena_dup(it.ctx->arena, &it.i, sizeof it.i);
	*idx = sym_addi(it.st, it.i, 8);
	it.k->stage.data[0].store.idx = idx;
	expect_error("index out of range");
}

static void test_verify_order(void **state)
{
	(void)state;
	Sym eight = sym_int(it.st, 8);
	BufId temp = lowered_buf(it.l, BUF_TEMP, 0, DT_f32, 1, &eight, "later");
	it.k->stage.data[0].value =
		kx_load(it.k, it.ctx->arena, temp, DT_f32, 1, &it.i, (Kx){0}, (Kx){0});
	expect_error("buffer is read before it is written: later");
}

static void test_verify_dtype(void **state)
{
	(void)state;
	it.l->buf.data[it.y.i].dtype = DT_f16;
	expect_error("stage and its buffer differ in dtype: y");
}

static void test_verify_readonly(void **state)
{
	(void)state;
	it.l->buf.data[it.y.i].kind = BUF_CONST;
	expect_error("writes a buffer that is only readable: y");
}

/* y[i] = f(m[at]), where y is state m. */
static void replace(Sym at)
{
	Sym eight = sym_int(it.st, 8);
	array_push(it.ctx->arena, &it.l->state,
		   (LoweredState){.name = "m", .dtype = DT_f32, .rank = 1});
	BufId m = lowered_buf(it.l, BUF_STATE, 0, DT_f32, 1, &eight, "m");
	Stage *s = &it.k->stage.data[0];
	Kx x = kx_load(it.k, it.ctx->arena, m, DT_f32, 1, arena_dup(it.ctx->arena, &at, sizeof at),
		       (Kx){0}, (Kx){0});
	*s = (Stage){.kind = STAGE_MAP, .dtype = DT_f32, .store = {.buf = m, .idx = s->store.idx}};
	stage_map_first(s, 1);
	s->value = kx_op(it.k, it.ctx->arena, op_find("add"), DT_f32, (Kx[]){x, x}, 2);
}

static void test_replaces_state(void **state)
{
	(void)state;
	replace(it.i);
	assert_true(lowered_verify(it.l));
	Stage sum = {.kind = STAGE_REDUCE, .dtype = DT_f32};
	sum.reduce = (StageReduce){.acc = DT_f32, .contraction = true};
	sum.value = it.k->stage.data[0].value;
	stage_map_first(&sum, 1);
	array_push(it.ctx->arena, &it.k->stage, sum); /* some rows may be stored twice */
	expect_error("reads state elsewhere than it replaces it: m");
}

/* A second stage that maps both axes of the kernel and reads the first one at row `at`. */
static void read_first_at(Sym at)
{
	Stage s = {.kind = STAGE_MAP, .dtype = DT_f32};
	stage_map_first(&s, 2);
	s.value = kx_stage(it.k, it.ctx->arena, 0, DT_f32, 1, &at);
	array_push(it.ctx->arena, &it.k->stage, s);
}

static void test_outer_axes(void **state)
{
	(void)state;
	assert_int_equal(kernel_nouter(it.k), 1);
	assert_int_equal(kernel_aligned_axes(it.k, 0), 1);
	read_first_at(it.i);
	assert_int_equal(kernel_nouter(it.k), 1);
	assert_int_equal(kernel_aligned_axes(it.k, 0), 1);
	assert_int_equal(kernel_aligned_axes(it.k, 1), 3);
	assert_true(stage_keeps_row(&it.k->stage.data[1], 1));
}

/* Row i + 1 is another point of the first stage: no axis is an outer one. */
static void test_axes_read_elsewhere(void **state)
{
	(void)state;
	read_first_at(sym_addi(it.st, it.i, 1));
	assert_int_equal(kernel_aligned_axes(it.k, 0), 0);
	assert_int_equal(kernel_nouter(it.k), 0);
}

static void test_verify_axes(void **state)
{
	(void)state;
	it.k->stage.data[0].red[0] = 0;
	expect_error("an axis is mapped or reduced twice");
}

static void test_reads_state_elsewhere(void **state)
{
	(void)state;
	replace(sym_sub(it.st, sym_int(it.st, 7), it.i));
	expect_error("reads state elsewhere than it replaces it: m");
}

static void test_two_buffers_of_state(void **state)
{
	(void)state;
	Sym eight = sym_int(it.st, 8);
	replace(it.i);
	lowered_buf(it.l, BUF_STATE, 0, DT_f32, 1, &eight, "again");
	expect_error("state has two buffers, or is not row-major: again");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(test_row_major),
		T(test_blocked),
		T(test_sharing),
		T(test_print),
		T(test_verify),
		T(test_verify_range),
		T(test_verify_order),
		T(test_verify_dtype),
		T(test_verify_readonly),
		T(test_outer_axes),
		T(test_axes_read_elsewhere),
		T(test_verify_axes),
		T(test_replaces_state),
		T(test_reads_state_elsewhere),
		T(test_two_buffers_of_state),
#undef T
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
