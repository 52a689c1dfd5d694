/* Expressions that read each other twice are lowered and looked at once for each part, not once for
 * each path; statements once, not once for each that comes after them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/program/program_priv.h"
#include "codegen/cpu/cpu.h"
#include "ir/build/text.h"
#include "ir/loop/predict.h"
#include "lower/graph/graph.h"

enum { DEEP = 60 }; /* 2^60 paths */

typedef struct {
	Ctx *ctx;
	Ir *ir;
	LoopFn *f;
} Bench;

static Bench it;

static int setup(void **state)
{
	(void)state;
	it = (Bench){.ctx = ctx_new()};
	if (!it.ctx || setjmp(it.ctx->unwind))
		return -1;
	it.ir = ir_new(it.ctx);
	it.f = loop_new(it.ir, "f");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ctx_free(it.ctx);
	return 0;
}

/* Each level reads the one before twice. */
static Sym deep(SymTab *t, Sym e)
{
	for (int k = 0; k < DEEP; k++)
		e = sym_add(t, e, sym_floordiv(t, e, sym_int(t, 3)));
	return e;
}

static void lowers_each_part_once(void **state)
{
	(void)state;
	SymTab *t = it.ir->syms;
	Sym s = sym_var(t, "s0", SYMVAR_SIZE, 0, 3), other = sym_var(t, "s1", SYMVAR_SIZE, 0, 3),
	    e = deep(t, s);
	SymLower l;
	sym_lower_init(&l, it.ctx, t, it.f);
	assert_false(sym_lower_can(&l, e));
	sym_lower_set(&l, s, lx_param(it.f, loop_param(it.f, "s0")));
	assert_true(sym_lower_can(&l, e));
	Lx x = sym_lower(&l, e);
	assert_int_equal(sym_lower(&l, e).i, x.i);
	assert_false(sym_lower_can(&l, sym_add(t, e, other)));
}

static void forgets_what_was_set(void **state)
{
	(void)state;
	SymTab *t = it.ir->syms;
	Sym s = sym_var(t, "s0", SYMVAR_SIZE, 0, 3), twice = sym_muli(t, s, 2);
	SymLower l;
	sym_lower_init(&l, it.ctx, t, it.f);
	Lx a = lx_param(it.f, loop_param(it.f, "a")), b = lx_param(it.f, loop_param(it.f, "b"));
	sym_lower_set(&l, s, a);
	Lx x = sym_lower(&l, twice);
	sym_lower_forget(&l, 0);
	assert_false(sym_lower_can(&l, twice));
	sym_lower_set(&l, s, b);
	assert_int_equal(sym_lower(&l, s).i, b.i);
	assert_int_not_equal(sym_lower(&l, twice).i, x.i);
}

static void finds_what_reads_mutable_variables(void **state)
{
	(void)state;
	LoopFn *f = it.f;
	Lx fixed = lx_param(f, loop_param(f, "n")), x = lx_var(f, ls_var(f, "v", fixed)), y = fixed;
	for (int k = 0; k < DEEP; k++) {
		x = lx_mul(f, x, x);
		y = lx_mul(f, y, y);
	}
	const bool *reads = loop_find_mutable(f, it.ctx->arena);
	assert_true(reads[x.i]);
	assert_false(reads[y.i]);
}

static void tells_signs(void **state)
{
	(void)state;
	LoopFn *f = it.f;
	Lx n = lx_param(f, loop_param(f, "n")), x = n, y = lx_var(f, ls_var(f, "v", n));
	for (int k = 0; k < DEEP; k++) {
		x = lx_mul(f, lx_add(f, x, n), x);
		y = lx_max(f, lx_add(f, y, n), lx_mul(f, y, y));
	}
	assert_true(lx_nonneg(f, x));
	assert_false(lx_nonneg(f, y));
	Lx seven = lx_int(f, 7);
	assert_int_equal(lx_mod(f, x, seven).i,
			 lx_op(f, SC_rem, (LType){DT_i64, 1}, (Lx[]){x, seven}, 2, 0).i);
}

/* As many rounds as the end of a chain says, each of which stores one value. */
static void predicts_in_one_walk(void **state)
{
	(void)state;
	double cycles[2];
	for (int64_t n = 0; n < 2; n++) {
		LoopFn *f = loop_new(it.ir, "f");
		LMem to = lmem_buf(
			loop_buf(
				f,
				(LArg){.name = "y", .dtype = DT_f32, .written = true, .align = 64}),
			DT_f32);
		Lx x = lx_param(f, loop_param(f, "n"));
		for (int k = 0; k < DEEP; k++)
			x = lx_sub(f, lx_add(f, x, x), x);
		Lv i = ls_for(f, "i", lx_int(f, 0), x, 1);
		ls_store(f, to, lx_var(f, i), lx_float(f, (LType){DT_f32, 1}, 1), (Lx){0});
		ls_end(f);
		cycles[n] =
			loop_predict(f, machine_find("zen3"), (int64_t[]){n ? 100000 : 10}, 1, 0);
	}
	assert_true(cycles[1] > 100 * cycles[0]);
}

/* e = e + e / 3 of a number of which only its largest value is known beforehand. */
static void bounds_each_part_once(void **state)
{
	(void)state;
	SymTab *t = it.ir->syms;
	Sym s = sym_var(t, "s0", SYMVAR_SIZE, 0, 3), u = sym_var(t, "u0", SYMVAR_UNBACKED, 0, 3);
	sym_set_most(t, u, s);
	assert_int_equal(sym_most(t, deep(t, u)).i, deep(t, s).i);
	sym_bound(t, u, 0, 1); /* and again, with what is known now */
	assert_int_not_equal(sym_most(t, deep(t, u)).i, 0);
}

static void finds_divisors(void **state)
{
	(void)state;
	SymTab *t = it.ir->syms;
	Sym s = sym_var(t, "s0", SYMVAR_SIZE, 0, 3), other = sym_var(t, "s1", SYMVAR_SIZE, 0, 100),
	    e = deep(t, sym_add(t, s, other));
	assert_int_equal(sym_divisor_of(t, e, s).i, 0);
	Sym apart = sym_add(t, e, sym_mod(t, other, sym_int(t, 7)));
	assert_int_equal(sym_divisor_of(t, apart, other).i, sym_int(t, 7).i);
}

/* An index that takes itself apart again and again. */
static void lowers_indices_once(void **state)
{
	(void)state;
	Graph *g = graph_parse(it.ir, "graph @f(%x: f32[8]) {\n  %y = tanh(%x)\n  return %y\n}\n",
			       "f");
	Lowered *l = lower_graph(g, &(LowerOptions){0});
	Cpu s = {0};
	code_init(&s.code, l, target_find("generic-c"));
	cpu_begin_phase(&s, nest_new(l, l->steps.step.data[0].kernel));
	s.e.at[0] = lx_param(s.e.f, loop_param(s.e.f, "at"));
	Sym e = s.e.nest->var[0];
	for (int k = 0; k < DEEP; k++)
		e = sym_mod(s.e.syms, sym_mul(s.e.syms, e, sym_add(s.e.syms, e, s.e.nest->var[0])),
			    sym_int(s.e.syms, 1000 + k));
	Lx x = eval_index(&s.e, e);
	assert_int_equal(eval_index(&s.e, e).i, x.i);
	s.e.at[0] = lx_int(s.e.f, 0);
	assert_int_not_equal(eval_index(&s.e, e).i, x.i); /* another call, another place */
}

/* A function of n loads, each where the one before says, of which the last is stored. */
static LoopFn *chase(uint32_t n)
{
	LoopFn *f = loop_new(it.ir, "chase");
	LType i64 = {DT_i64, 1};
	LMem from = lmem_buf(
		loop_buf(f, (LArg){.name = "x", .dtype = DT_i64, .read = true, .align = 8}),
		DT_i64);
	LMem to = lmem_buf(
		loop_buf(f, (LArg){.name = "y", .dtype = DT_i64, .written = true, .align = 8}),
		DT_i64);
	Lx at = lx_int(f, 0);
	for (uint32_t k = 0; k < n; k++)
		at = lx_var(f, ls_load(f, "v", from, at, i64, (Lx){0}));
	ls_store(f, to, lx_int(f, 0), at, (Lx){0});
	return f;
}

static size_t simplified(uint32_t n)
{
	LoopFn *f = chase(n);
	size_t before = arena_used(it.ctx->arena);
	loop_simplify(f);
	assert_int_equal(loop_statements(f, f->body), n + 1);
	return arena_used(it.ctx->arena) - before;
}

static void finds_what_is_used_in_one_walk(void **state)
{
	(void)state;
	size_t few = simplified(200);
	assert_true(simplified(2000) <= 20 * few);
}

/* What statements share is asked for one by one, and each answer adds expressions. */
static size_t shared(uint32_t n)
{
	LoopFn *f = chase(n);
	LoopShared s = {0};
	size_t all = 0;
	for (uint32_t k = 0; k < n; k++) {
		lx_int(f, 1000 + k);
		size_t before = arena_used(it.ctx->arena);
		loop_shared(f, &f->ls.data[k], &s);
		all += arena_used(it.ctx->arena) - before;
	}
	return all;
}

static void counts_uses_in_the_same_memory(void **state)
{
	(void)state;
	size_t few = shared(200);
	assert_true(shared(2000) <= 20 * few);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lowers_each_part_once, setup, teardown),
		cmocka_unit_test_setup_teardown(forgets_what_was_set, setup, teardown),
		cmocka_unit_test_setup_teardown(finds_what_reads_mutable_variables, setup,
						teardown),
		cmocka_unit_test_setup_teardown(tells_signs, setup, teardown),
		cmocka_unit_test_setup_teardown(predicts_in_one_walk, setup, teardown),
		cmocka_unit_test_setup_teardown(bounds_each_part_once, setup, teardown),
		cmocka_unit_test_setup_teardown(finds_divisors, setup, teardown),
		cmocka_unit_test_setup_teardown(lowers_indices_once, setup, teardown),
		cmocka_unit_test_setup_teardown(finds_what_is_used_in_one_walk, setup, teardown),
		cmocka_unit_test_setup_teardown(counts_uses_in_the_same_memory, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
