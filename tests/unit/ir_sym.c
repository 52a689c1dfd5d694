/* Symbolic integers: canonical forms, proofs, text, and random expressions against direct evaluation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ir/sym.h"

typedef struct {
	Ctx *ctx;
	SymTab *t;
	Sym s0, s1, s2; /* sizes >= 1, the last at most 64 */
} Fixture;

static int setup(void **state)
{
	static Fixture f;
	f.ctx = ctx_new();
	assert_non_null(f.ctx);
	if (setjmp(f.ctx->unwind))
		fail_msg("unwound: %s", f.ctx->bug_text);
	f.t = symtab_new(f.ctx);
	f.s0 = sym_var(f.t, "s0", SYMVAR_SIZE, 1, SYM_INF);
	f.s1 = sym_var(f.t, "s1", SYMVAR_SIZE, 1, SYM_INF);
	f.s2 = sym_var(f.t, "s2", SYMVAR_SIZE, 1, 64);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	const Fixture *f = *state;
	ctx_free(f->ctx);
	return 0;
}

static Sym parse(const Fixture *f, const char *text)
{
	const char *s = text;
	Sym e = sym_parse(f->t, &s);
	if (!e.i || *s)
		fail_msg("cannot parse \"%s\" at \"%s\"", text, s);
	return e;
}

static Sym axis(const Fixture *f, const char *name, int64_t extent)
{
	return sym_axis(f->t, name, sym_int(f->t, extent));
}

#define assert_sym(f, e, text) assert_string_equal(sym_str((f)->t, (e)), (text))

static void test_canonical_text(void **state)
{
	static const char *const cases[][2] = {
		{"0", "0"},
		{"-5", "-5"},
		{"s0 + s0", "2*s0"},
		{"3 - s1*s2 + 2*s0 - 6", "2*s0 - s1*s2 - 3"},
		{"s1*s0 - s0*s1", "0"},
		{"(s0 + 1)*(s0 - 1)", "s0*s0 - 1"},
		{"floordiv(s0, 1)", "s0"},
		{"floordiv(4*s0 + 6, 4)", "s0 + 1"},
		{"floordiv(s0 - 1, 2) + 1", "floordiv(s0 + 1, 2)"},
		{"floordiv(floordiv(s0, 3), 5)", "floordiv(s0, 15)"},
		{"floordiv(floordiv(s0 - 1, 2) + 1, 2)", "floordiv(s0 + 1, 4)"},
		{"mod(mod(s0, 12), 4)", "mod(s0, 4)"},
		{"floordiv(mod(s0, 12), 4)", "mod(floordiv(s0, 4), 3)"},
		{"floordiv(6*s0, 4)", "s0 + floordiv(s0, 2)"},
		{"mod(6*s0, 4)", "2*mod(s0, 2)"},
		{"64*floordiv(s0, 64) + mod(s0, 64)", "s0"},
		{"128*floordiv(s0, 64) + 2*mod(s0, 64)", "2*s0"},
		{"s1*mod(s0, 8) + 3 + 8*s1*floordiv(s0, 8)", "s0*s1 + 3"},
		{"s1*floordiv(s0, s1) + mod(s0, s1)", "s0"},
		{"floordiv(s0*s1, s1)", "s0"},
		{"mod(s0*s1 + s1, s1)", "0"},
		{"floordiv(s0*s1 + s0, s1 + 1)", "s0"},
		{"floordiv(s0*s1*s2, s1*s0)", "s2"},
		{"mod(-7, 3)", "2"},
		{"mod(7, -3)", "-2"},
		{"floordiv(-7, 2)", "-4"},
		{"floordiv(7, -2)", "-4"},
		{"floordiv(s0, -2)", "floordiv(-s0, 2)"},
		{"min(s2, 64)", "s2"},
		{"min(s2, 100)", "s2"},
		{"max(s0, 1)", "s0"},
		{"max(0, s0 - 1)", "s0 - 1"},
		{"min(s0, s0 + s1)", "s0"},
		{"min(s1, min(s0, s1))", "min(s0, s1)"},
		{"min(min(s2, s1), s0)", "min(s0, min(s1, s2))"},
		{"max(4*s0, 6*s1)", "2*max(2*s0, 3*s1)"},
		{"9223372036854775807", "9223372036854775807"},
		{"-9223372036854775808", "-9223372036854775808"},
	};
	const Fixture *f = *state;
	for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
		Sym e = parse(f, cases[k][0]);
		assert_sym(f, e, cases[k][1]);
		assert_int_equal(parse(f, cases[k][1]).i, e.i);
	}
	assert_int_equal(f->ctx->nerror, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_canonical_text, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
