/* Expressions that read each other twice are lowered and looked at once for each part, not once for each path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/schedule/program_priv.h"

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
	Sym s = sym_var(t, "s0", SYMVAR_SIZE, 0, 3), other = sym_var(t, "s1", SYMVAR_SIZE, 0, 3), e = deep(t, s);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lowers_each_part_once, setup, teardown),
		cmocka_unit_test_setup_teardown(forgets_what_was_set, setup, teardown),
		cmocka_unit_test_setup_teardown(finds_what_reads_mutable_variables, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
