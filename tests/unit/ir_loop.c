/* Loop IR: folding, simplification, parameters, text, unrolling, verification. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ir/loop/loop.h"

typedef struct {
	Ctx *ctx;
	Ir *ir;
	LoopFn *f;
} State;

static State it;

static int setup(void **state)
{
	(void)state;
	it.ctx = ctx_new();
	if (!it.ctx)
		return -1;
	it.ir = ir_new(it.ctx);
	it.f = loop_new(it.ir, "test");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ctx_free(it.ctx);
	return 0;
}

static const char *text(const LoopFn *f, bool anonymous)
{
	Text t;
	text_init(&t, it.ctx->arena);
	loop_print(f, &t, anonymous);
	return t.data;
}

static uint32_t buffer(LoopFn *f, const char *name)
{
	return loop_buf(f, (LArg){.name = name, .dtype = DT_f32, .align = 4, .restrict_ok = true});
}

static int64_t literal(Lx x)
{
	int64_t v = -999;
	assert_true(lx_is_int(it.f, x, &v));
	return v;
}

static const Lx none = {0};
static const LType f32x8 = {DT_f32, 8};

static void test_fold_literals(void **state)
{
	(void)state;
	LoopFn *f = it.f;
	Lx a = lx_int(f, -7), b = lx_int(f, 2);
	assert_int_equal(literal(lx_add(f, a, b)), -5);
	assert_int_equal(literal(lx_div(f, a, b)), -4);
	assert_int_equal(literal(lx_mod(f, a, b)), 1);
	assert_int_equal(literal(lx_min(f, a, b)), -7);
	assert_int_equal(literal(lx_cmp(f, SC_lt, a, b)), 1);
	assert_int_equal(literal(lx_select(f, lx_cmp(f, SC_gt, a, b), a, b)), 2);
	assert_false(lx_is_int(f, lx_div(f, a, lx_int(f, 0)), NULL)); /* undefined: left alone */
	assert_false(lx_is_int(f, lx_mul(f, lx_int(f, INT64_MAX), b), NULL));
	assert_int_equal(literal(lx_mask(f, lx_int(f, 8), 8)), 1);
}

static void test_fold_identities(void **state)
{
	(void)state;
	LoopFn *f = it.f;
	Lx n = lx_param(f, loop_param(f, "n")), zero = lx_int(f, 0), one = lx_int(f, 1);
	assert_int_equal(lx_add(f, n, zero).i, n.i);
	assert_int_equal(lx_add(f, zero, n).i, n.i);
	assert_int_equal(lx_mul(f, one, n).i, n.i);
	assert_int_equal(lx_mul(f, n, zero).i, zero.i);
	assert_int_equal(lx_sub(f, n, n).i, zero.i);
	assert_int_equal(lx_add(f, lx_add(f, n, lx_int(f, 3)), lx_int(f, -3)).i, n.i);
	assert_int_equal(lx_div(f, lx_mul(f, n, lx_int(f, 12)), lx_int(f, 4)).i,
	                 lx_mul(f, n, lx_int(f, 3)).i);
	assert_int_equal(lx_add(f, n, one).i, lx_add(f, one, n).i);
	/* -0.0 + 0.0 is 0.0, so floats keep it; times one is exact */
	Lx x = lx_float(f, f32x8, 3.0);
	Lv v = ls_let(f, "v", lx_sc(f, SC_neg, f32x8, &x, 1));
	Lx y = lx_var(f, v);
	assert_int_not_equal(lx_add(f, y, lx_float(f, f32x8, 0.0)).i, y.i);
	assert_int_equal(lx_mul(f, y, lx_float(f, f32x8, 1.0)).i, y.i);
	/* min and max of floats distinguish the order of two zeros */
	assert_int_not_equal(lx_min(f, x, y).i, lx_min(f, y, x).i);
	assert_int_equal(lx_type(f, lx_mul(f, y, lx_float(f, (LType){DT_f32, 1}, 2.0))).lanes, 8);
}

static void test_signs(void **state)
{
	(void)state;
	LoopFn *f = it.f;
	Lx n = lx_param(f, loop_param(f, "n")), i = lx_sub(f, n, lx_int(f, 5));
	assert_true(lx_nonneg(f, lx_add(f, lx_mul(f, n, n), lx_int(f, 2))));
	assert_false(lx_nonneg(f, i));
	assert_true(lx_nonneg(f, lx_max(f, i, lx_int(f, 0))));
	assert_true(lx_nonneg(f, lx_mod(f, i, lx_int(f, 4)))); /* a mask of the low bits */
	Lv v = ls_for(f, "i", lx_int(f, 0), n, 1);
	assert_true(lx_nonneg(f, lx_var(f, v)));
	ls_end(f);
	v = ls_for(f, "i", lx_int(f, -1), n, 1);
	assert_false(lx_nonneg(f, lx_var(f, v)));
	ls_end(f);
}

/* out[i] = x[i] + x[i] over `extent`, with a store that depends on names. */
static LoopFn *copy_loop(const char *name, const char *x, int64_t extent)
{
	LoopFn *f = loop_new(it.ir, name);
	uint32_t in = buffer(f, x), out = buffer(f, "out");
	ls_comment(f, name);
	Lv i = ls_for(f, x, lx_int(f, 0), lx_int(f, extent), 8);
	Lx at = lx_add(f, lx_var(f, i), lx_mul(f, lx_var(f, f->task), lx_int(f, extent)));
	Lv v = ls_load(f, x, lmem_buf(in, DT_f32), at, f32x8, none);
	ls_store(f, lmem_buf(out, DT_f32), at, lx_add(f, lx_var(f, v), lx_var(f, v)), none);
	ls_end(f);
	assert_true(loop_verify(f, NULL));
	return f;
}

static void test_print(void **state)
{
	(void)state;
	LoopFn *f = copy_loop("first", "x", 64);
	assert_string_equal(text(f, false), "loop first()\n"
	                                    "  @x: f32 read restrict align 4\n"
	                                    "  @out: f32 written restrict align 4\n"
	                                    "task task.1 {\n"
	                                    "  ; first\n"
	                                    "  for x.2 in 0 .. 64 step 8 {\n"
	                                    "    x.3: f32x8 = @x.f32[(x.2 + (task.1 * 64))]\n"
	                                    "    @out.f32[(x.2 + (task.1 * 64))] = (x.3 + x.3)\n"
	                                    "  }\n"
	                                    "}\n");
}

static void test_anonymous(void **state)
{
	(void)state;
	const char *a = text(copy_loop("first", "x", 64), true);
	assert_string_equal(a, text(copy_loop("second", "other", 64), true));
	assert_string_not_equal(a, text(copy_loop("first", "x", 128), true));
}

static void test_parametrise(void **state)
{
	(void)state;
	const int64_t *value;
	LoopFn *f = copy_loop("first", "x", 64), *g = copy_loop("second", "y", 128);
	assert_int_equal(loop_parametrise(f, 16, &value), 1);
	assert_int_equal(value[0], 64);
	assert_int_equal(loop_parametrise(g, 16, &value), 1);
	assert_int_equal(value[0], 128);
	assert_true(loop_verify(f, NULL));
	assert_string_equal(text(f, true), text(g, true));
}

static void test_parametrise_negative(void **state)
{
	(void)state;
	LoopFn *f = it.f;
	uint32_t out = loop_buf(f, (LArg){.name = "out", .dtype = DT_i64, .align = 8});
	Lx i = lx_var(f, f->task), zero = lx_int(f, 0);
	ls_store(f, lmem_buf(out, DT_i64), zero, lx_add(f, i, lx_int(f, -100)), none);
	ls_store(f, lmem_buf(out, DT_i64), lx_int(f, 3), lx_int(f, 100), none);
	const int64_t *value;
	assert_int_equal(loop_parametrise(f, 16, &value), 1);
	assert_int_equal(value[0], 100);
	assert_non_null(strstr(text(f, false), "(task.1 - $n0)"));
	assert_non_null(strstr(text(f, false), "@out.i64[3] = $n0"));
}

static void test_simplify(void **state)
{
	(void)state;
	LoopFn *f = it.f;
	uint32_t out = buffer(f, "out");
	Lx zero = lx_int(f, 0), one = lx_int(f, 1);
	Lv dead = ls_var(f, "dead", zero);
	Lv i = ls_for(f, "i", zero, lx_int(f, 9), 1);
	ls_set(f, dead, lx_add(f, lx_var(f, dead), lx_var(f, i)));
	ls_end(f);
	LMem local = ls_local(f, "unused", DT_f32, 8);
	ls_store(f, local, zero, lx_float(f, (LType){DT_f32, 1}, 1.0), none);
	ls_if(f, lx_cmp(f, SC_eq, zero, one));
	ls_store(f, lmem_buf(out, DT_f32), one, lx_float(f, (LType){DT_f32, 1}, 2.0), none);
	ls_else(f);
	i = ls_for(f, "once", lx_int(f, 4), lx_int(f, 5), 1);
	ls_store(f, lmem_buf(out, DT_f32), lx_var(f, i), lx_float(f, (LType){DT_f32, 1}, 3.0),
		 none);
	ls_end(f);
	ls_end(f);
	loop_simplify(f);
	assert_true(loop_verify(f, NULL));
	const char *t = text(f, false);
	assert_null(strstr(t, "dead"));
	assert_null(strstr(t, "unused"));
	assert_null(strstr(t, "if"));
	assert_null(strstr(t, "for"));
	assert_null(strstr(t, "let"));
	assert_non_null(strstr(t, "@out.f32[4] = 3.0:f32"));
}

static void test_unroll(void **state)
{
	(void)state;
	LoopFn *f = it.f;
	uint32_t x = buffer(f, "x"), out = buffer(f, "out");
	Lv acc = ls_var(f, "acc", lx_float(f, f32x8, 0.0));
	Lv i = ls_for(f, "i", lx_int(f, 0), lx_int(f, 8), 2);
	Lv v = ls_load(f, "v", lmem_buf(x, DT_f32), lx_mul(f, lx_var(f, i), lx_int(f, 8)), f32x8,
		       none);
	ls_set(f, acc, lx_add(f, lx_var(f, acc), lx_var(f, v)));
	ls_end(f);
	ls_for(f, "five", lx_int(f, 0), lx_int(f, 5), 1); /* too many */
	ls_set(f, acc, lx_add(f, lx_var(f, acc), lx_var(f, acc)));
	ls_end(f);
	ls_store(f, lmem_buf(out, DT_f32), lx_int(f, 0), lx_var(f, acc), none);
	loop_unroll(f);
	assert_true(loop_verify(f, NULL));
	assert_non_null(strstr(text(f, false), "  v.3: f32x8 = @x.f32[0]\n"
	                                       "  acc.2 := (acc.2 + v.3)\n"
	                                       "  v.4: f32x8 = @x.f32[16]\n"
	                                       "  acc.2 := (acc.2 + v.4)\n"
	                                       "  v.5: f32x8 = @x.f32[32]\n"
	                                       "  acc.2 := (acc.2 + v.5)\n"
	                                       "  v.6: f32x8 = @x.f32[48]\n"
	                                       "  acc.2 := (acc.2 + v.6)\n"
	                                       "  for five.7 in 0 .. 5 {\n"));
}

/* Of rounds that become copies, some masks are literals. */
static void test_literal_masks(void **state)
{
	(void)state;
	LoopFn *f = it.f;
	uint32_t x = buffer(f, "x"), out = buffer(f, "out");
	Lv i = ls_for(f, "i", lx_int(f, 0), lx_int(f, 2), 1);
	Lx inside = lx_cmp(f, SC_lt, lx_var(f, i), lx_int(f, 1));
	Lv v = ls_load(f, "v", lmem_buf(x, DT_f32), lx_var(f, i), (LType){DT_f32, 1}, inside);
	ls_store(f, lmem_buf(out, DT_f32), lx_var(f, i), lx_var(f, v), none);
	ls_store(f, lmem_buf(out, DT_f32), lx_add(f, lx_var(f, i), lx_int(f, 5)), lx_var(f, v),
		 inside);
	ls_end(f);
	loop_unroll(f);
	assert_true(loop_verify(f, NULL));
	const char *t = text(f, false);
	if (!strstr(t, "  v.2: f32 = @x.f32[0]\n"
	               "  @out.f32[0] = v.2\n"
	               "  @out.f32[5] = v.2\n"
	               "  @out.f32[1] = 0.0:f32\n"
	               "}\n"))
		fail_msg("%s", t);
}

static void expect_error(LoopFn *f, const char *what)
{
	Text t;
	text_init(&t, it.ctx->arena);
	assert_false(loop_verify(f, NULL));
	ctx_print(it.ctx, &t);
	if (!strstr(t.data, what))
		fail_msg("expected \"%s\" in:\n%s", what, t.data);
}

/* The result of a library function is part of it. */
static void test_verify_result(void **state)
{
	(void)state;
	LoopFn *f = it.f;
	Lv x = loop_arg(f, "x", (LType){DT_f32, 1}),
	   i = ls_for(f, "i", lx_int(f, 0), lx_int(f, 8), 1);
	ls_end(f);
	Lv twice = ls_let(f, "twice", lx_add(f, lx_var(f, x), lx_var(f, x)));
	f->result = lx_mul(f, lx_var(f, twice), lx_var(f, x));
	assert_true(loop_verify(f, NULL));
	f->result = lx_add(f, lx_var(f, i), lx_int(f, 1));
	expect_error(f, "result: variable out of scope: i");
	f->result = lx_sc(f, SC_add, (LType){DT_f32, 1}, (Lx[]){lx_var(f, x), lx_int(f, 1)}, 2);
	expect_error(f, "result: operand types do not fit add");
}

static void test_verify_scope(void **state)
{
	(void)state;
	LoopFn *f = it.f;
	Lv i = ls_for(f, "i", lx_int(f, 0), lx_int(f, 8), 1);
	ls_end(f);
	ls_let(f, "late", lx_var(f, i));
	expect_error(f, "variable out of scope: i");
}

/* The sum is checked where it is valid first: inside the branch that defines one of its
 * operands. */
static void test_verify_scope_again(void **state)
{
	(void)state;
	LoopFn *f = it.f;
	Lv outer = ls_let(f, "outer", lx_param(f, loop_param(f, "n")));
	Lx condition = lx_cmp(f, SC_lt, lx_var(f, outer), lx_int(f, 3));
	ls_if(f, condition);
	Lv inner = ls_let(f, "inner", lx_add(f, lx_var(f, outer), lx_int(f, 1)));
	Lx sum = lx_mul(f, lx_add(f, lx_var(f, outer), lx_var(f, inner)), lx_var(f, outer));
	ls_let(f, "a", sum);
	ls_let(f, "b", sum);
	ls_end(f);
	assert_true(loop_verify(f, NULL));
	ls_let(f, "c", sum);
	expect_error(f, "variable out of scope: inner");
}

static void test_verify_types(void **state)
{
	(void)state;
	LoopFn *f = it.f;
	uint32_t out = buffer(f, "out");
	ls_store(f, lmem_buf(out, DT_f32), lx_int(f, 0), lx_int(f, 1), none);
	expect_error(f, "value and memory differ in type: i64x1");
	Lx bad = lx_sc(f, SC_add, f32x8, (Lx[]){lx_float(f, f32x8, 1), lx_int(f, 1)}, 2);
	ls_let(f, "bad", bad);
	expect_error(f, "operand types do not fit add");
}

static void test_verify_structure(void **state)
{
	(void)state;
	LoopFn *f = it.f;
	ls_for(f, "i", lx_int(f, 0), lx_param(f, loop_param(f, "n")), 1);
	expect_error(f, "a block was left open");
	ls_end(f);
	Lx n = lx_param(f, 0);
	Lv let = ls_let(f, "c", n);
	ls_set(f, let, n);
	expect_error(f, "variable is not mutable");
}

/* Fragments of c, a and b for a product of 16 x 16 x 32. */
static void declare_tiles(LoopFn *f, Lv *acc, Lv *a, Lv *b, uint32_t nacc)
{
	loop_enter(f);
	*acc = ls_frag(f, "acc", DT_f32, 16, 16, nacc);
	*a = ls_frag(f, "a", DT_bf16, 16, 32, 1);
	*b = ls_frag(f, "b", DT_bf16, 16, 32, 1);
	ls_end(f);
}

static void load_tile(LoopFn *f, Lv frag)
{
	uint32_t x = loop_buf(f, (LArg){.name = "x", .dtype = DT_bf16, .align = 2});
	ls_frag_load(f, lfrag(frag, 0), lmem_buf(x, DT_bf16), lx_int(f, 0), lx_int(f, 32));
}

static void test_verify_frag_values(void **state)
{
	(void)state;
	Lv acc, a, b;
	LoopFn *f = it.f;
	declare_tiles(f, &acc, &a, &b, 2);
	load_tile(f, a);
	ls_frag_zero(f, lfrag(acc, 1));
	ls_if(f, lx_cmp(f, SC_lt, lx_var(f, f->task), lx_int(f, 3)));
	load_tile(f, b); /* on one path */
	ls_end(f);
	ls_frag_dot(f, FRAG_TILE_BF16, lfrag(acc, 1), lfrag(a, 0), lfrag(b, 0));
	expect_error(f, "frag_dot acc: fragment 0 of b has no value");
}

static void test_verify_frag_loop(void **state)
{
	(void)state;
	Lv acc, a, b;
	LoopFn *f = it.f;
	declare_tiles(f, &acc, &a, &b, 1);
	ls_for(f, "i", lx_int(f, 0), lx_param(f, loop_param(f, "n")), 1);
	ls_frag_zero(f, lfrag(acc, 0)); /* there may be no round */
	ls_end(f);
	uint32_t y = buffer(f, "y");
	ls_frag_store(f, lmem_buf(y, DT_f32), lx_int(f, 0), lx_int(f, 16), lfrag(acc, 0));
	expect_error(f, "frag_store acc: fragment 0 of acc has no value");
}

static void test_verify_frag_count(void **state)
{
	(void)state;
	Lv acc, a, b;
	LoopFn *f = it.f;
	declare_tiles(f, &acc, &a, &b, 7);
	expect_error(f, "frag b: more than 8 fragments");
}

static void test_verify_frag_number(void **state)
{
	(void)state;
	Lv acc, a, b;
	LoopFn *f = it.f;
	declare_tiles(f, &acc, &a, &b, 2);
	ls_frag_zero(f, lfrag(acc, 2));
	expect_error(f, "frag_zero acc: fragment 2 of 2");
}

static void test_verify_frag_shapes(void **state)
{
	(void)state;
	Lv acc, a, b;
	LoopFn *f = it.f;
	declare_tiles(f, &acc, &a, &b, 1);
	ls_frag_zero(f, lfrag(acc, 0));
	load_tile(f, a);
	ls_frag_dot(f, FRAG_TILE_BF16, lfrag(a, 0), lfrag(acc, 0), lfrag(acc, 0));
	expect_error(f, "tile_bf16 takes at most");
}

static void test_verify_frag_place(void **state)
{
	(void)state;
	Lv v = ls_frag(it.f, "late", DT_f32, 16, 16, 1);
	ls_frag_zero(it.f, lfrag(v, 0));
	expect_error(it.f, "not in `enter`");
}

static void test_verify_frag_legal(void **state)
{
	(void)state;
	Lv v;
	loop_enter(it.f);
	v = ls_frag(it.f, "wide", DT_f32, 16, 17, 1);
	ls_end(it.f);
	ls_frag_zero(it.f, lfrag(v, 0));
	expect_error(it.f, "at most 16 rows of 64 bytes");
}

/* Every kind of statement and of expression, as printed. */
static const char all_kinds[] =
	"loop kinds($n, $m)\n"
	"  @x: f32 read restrict align 4\n"
	"  @y: f32 read written align 64\n"
	"  @z: bf16 read align 2\n"
	"enter {\n"
	"  frags c.20: 2 x f32[16, 16] at 0\n"
	"  frags f.21: 2 x bf16[16, 32] at 2\n"
	"}\n"
	"task task.1 {\n"
	"  frag c.20[1] = 0\n"
	"  frag f.21[0] = @z.bf16[(task.1 * 64)] rows 64\n"
	"  frag f.21[1] = @z.bf16[0] rows $n passing\n"
	"  frag c.20[1] += f.21[0] . f.21[1] by tile_bf16\n"
	"  @y.f32[0] rows 16 = frag c.20[1]\n"
	"  let lo.2: i64 = ((task.1 *.n $n) -.i 3)\n"
	"  local a.3: f32[64]\n"
	"  var acc.4: f32x8 = 0.0:f32x8\n"
	"  for i.5 in lo.2 .. min.n($n, $m) step 8 {\n"
	"    v.6: f32x8 = @x.f32[i.5] where mask:boolx8(($n - i.5))\n"
	"    w.7: f32x8 = @x.f32[0 + ramp:i64x8(i.5, 2)] by lanes\n"
	"    t1 = (v.6 + w.7)\n"
	"    acc.4 := fma(t1, t1, acc.4)\n"
	"    prefetch2 @x.f32[(i.5 + 64)]\n"
	"    stream @y.f32[i.5] = acc.4\n"
	"    fence\n"
	"    a.3.f32[0] = select((v.6 < splat:f32x8(1.5:f32)), acc.4, w.7)\n"
	"    @y.f32[0 + convert:i32x8(v.6)] = reverse(v.6, v.6) where (v.6 >= w.7)\n"
	"  }\n"
	"  while (reduce_add(acc.4) < inf:f32) {\n"
	"    acc.4 := (acc.4 * acc.4)\n"
	"  }\n"
	"  if any(eq(acc.4, nan:f32x8)) {\n"
	"    fail message 2 (lo.2, -7)\n"
	"  } else {\n"
	"    ; nothing\n"
	"  }\n"
	"}\n";

static void test_parse(void **state)
{
	(void)state;
	LoopFn *f = loop_parse(it.ir, all_kinds);
	assert_non_null(f);
	LoopFn *again = loop_parse(it.ir, text(f, false));
	assert_non_null(again);
	assert_string_equal(text(f, false), text(again, false));
	assert_string_equal(text(f, true), text(again, true));
	again = loop_parse(it.ir, text(f, true)); /* by number */
	assert_non_null(again);
	assert_string_equal(text(f, true), text(again, true));
	assert_true(loop_verify(f, NULL));
}

/* Cut off anywhere: an error that says where, or what is there is whole. */
static void test_parse_errors(void **state)
{
	(void)state;
	for (size_t n = 0; n + 1 < strlen(all_kinds); n++)
		assert_null(loop_parse(it.ir, arena_strndup(it.ctx->arena, all_kinds, n)));
	assert_null(loop_parse(it.ir, "loop f()\ntask task.1 {\n  let a.2: i64 = (b.3 + 1)\n}\n"));
	Text t;
	text_init(&t, it.ctx->arena);
	ctx_print(it.ctx, &t);
	assert_non_null(strstr(t.data, "loop IR, line 3: unexpected \"(b.3 + 1)"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		T(test_fold_literals),
		T(test_fold_identities),
		T(test_signs),
		T(test_print),
		T(test_anonymous),
		T(test_parametrise),
		T(test_parametrise_negative),
		T(test_simplify),
		T(test_unroll),
		T(test_literal_masks),
		T(test_verify_scope),
		T(test_verify_result),
		T(test_verify_scope_again),
		T(test_verify_types),
		T(test_verify_structure),
		T(test_verify_frag_values),
		T(test_verify_frag_loop),
		T(test_verify_frag_count),
		T(test_verify_frag_number),
		T(test_verify_frag_shapes),
		T(test_verify_frag_place),
		T(test_verify_frag_legal),
		T(test_parse),
		T(test_parse_errors),
#undef T
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
