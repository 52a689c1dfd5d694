/* Symbolic integers: canonical forms, proofs, text; random expressions against direct
 * evaluation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ir/sym/sym.h"

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
		{"floordiv(s0, 8) + mod(s0, 8)", "floordiv(s0, 8) + mod(s0, 8)"},
		{"32*floordiv(s0, 8) + 8*mod(s0, 8)", "32*floordiv(s0, 8) + 8*mod(s0, 8)"},
		{"s1*mod(s0, 8) + 3 + 8*s1*floordiv(s0, 8)", "s0*s1 + 3"},
		{"s1*floordiv(s0, s1) + mod(s0, s1)", "s0"},
		{"floordiv(s0*s1, s1)", "s0"},
		{"mod(s0*s1 + s1, s1)", "0"},
		{"floordiv(s0*s1 + s0, s1 + 1)", "s0"},
		{"floordiv(s0*s1*s2, s1*s0)", "s2"},
		{"mod(-7, 3)", "2"},
		{"mod(7, -3)", "-2"},
		{"floordiv(-7, 2)", "-4"},
		{"floordiv(-1, s2)", "-1"},
		{"mod(-1, s2)", "s2 - 1"},
		{"floordiv(-2, s2)", "floordiv(-2, s2)"},
		{"floordiv(s0*s2 + s2 - 1, s2)", "s0"},
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

/* Reading back what a kernel writes: axes of constant and symbolic extents. */
static void test_axes(void **state)
{
	const Fixture *f = *state;
	SymTab *t = f->t;
	Sym i = axis(f, "i", 100), j = axis(f, "j", 4), k = sym_axis(t, "k", f->s1);
	Sym row = sym_axis(t, "row", f->s0);
	assert_sym(f, sym_divi(t, sym_add(t, sym_muli(t, i, 4), j), 4), "i");
	assert_sym(f, sym_modi(t, sym_add(t, sym_muli(t, i, 4), j), 4), "j");
	Sym wide = sym_add(t, sym_muli(t, i, 4), j);
	assert_sym(f, sym_divi(t, wide, 16), "floordiv(i, 4)");
	assert_sym(f, sym_modi(t, wide, 16), "j + 4*mod(i, 4)");
	Sym back = sym_add(t, sym_muli(t, sym_divi(t, wide, 16), 16), sym_modi(t, wide, 16));
	assert_int_equal(back.i, wide.i);
	Sym flat = sym_add(t, sym_mul(t, row, f->s1), k);
	assert_sym(f, sym_floordiv(t, flat, f->s1), "row");
	assert_sym(f, sym_mod(t, flat, f->s1), "k");
	assert_int_equal(sym_lt(t, flat, sym_mul(t, f->s0, f->s1)), YES);
	assert_int_equal(sym_lt(t, k, f->s1), YES);
	assert_int_equal(sym_le(t, f->s1, k), NO);
	assert_int_equal(sym_lt(t, k, f->s0), MAYBE);
	Sym deep = sym_add(t, sym_muli(t, flat, 4), j); /* [s0, s1, 4] */
	assert_sym(f, sym_floordiv(t, deep, sym_muli(t, f->s1, 4)), "row");
	assert_sym(f, sym_mod(t, sym_divi(t, deep, 4), f->s1), "k");
	assert_sym(f, sym_modi(t, deep, 4), "j");
	assert_sym(f, sym_mod(t, deep, sym_muli(t, f->s1, 4)), "j + 4*k");
	Sym shifted = sym_mul(t, sym_addi(t, f->s1, 1), row); /* rows of s1 + 1 */
	Sym col = sym_axis(t, "col", sym_addi(t, f->s1, 1));
	assert_sym(f, sym_floordiv(t, sym_add(t, shifted, col), sym_addi(t, f->s1, 1)), "row");
	assert_sym(f, sym_mod(t, sym_add(t, shifted, col), sym_addi(t, f->s1, 1)), "col");
	assert_int_equal(f->ctx->nerror, 0);
}

/* A flat axis over [s0, s1, 4], taken apart and put together. */
static void test_flat_axis(void **state)
{
	const Fixture *f = *state;
	SymTab *t = f->t;
	Sym four = sym_int(t, 4), row4 = sym_muli(t, f->s1, 4);
	Sym v = sym_axis(t, "v", sym_mul(t, f->s0, row4));
	Sym a = sym_mod(t, sym_floordiv(t, v, row4), f->s0);
	Sym b = sym_mod(t, sym_floordiv(t, v, four), f->s1), c = sym_mod(t, v, four);
	assert_sym(f, a, "floordiv(v, 4*s1)");
	assert_sym(f, b, "mod(floordiv(v, 4), s1)");
	assert_int_equal(sym_lt(t, b, f->s1), YES);
	Sym back = sym_add(t, sym_muli(t, sym_add(t, sym_mul(t, a, f->s1), b), 4), c);
	assert_int_equal(back.i, v.i);
	Sym var[1] = {v};
	Sym i = sym_axis(t, "i", f->s0), j = sym_axis(t, "j", f->s1), k = sym_axis(t, "k", four);
	Sym by[1] = {sym_add(t, sym_add(t, sym_mul(t, i, row4), sym_muli(t, j, 4)), k)};
	assert_int_equal(sym_subst(t, a, var, by, 1).i, i.i);
	assert_int_equal(sym_subst(t, b, var, by, 1).i, j.i);
	assert_int_equal(sym_subst(t, c, var, by, 1).i, k.i);
}

/* A loop over tiles of 64 with a partial last one. */
static void test_tiles(void **state)
{
	const Fixture *f = *state;
	SymTab *t = f->t;
	Sym tile = sym_axis(t, "tile", sym_ceildiv(t, f->s0, sym_int(t, 64)));
	assert_sym(f, sym_axis_extent(t, tile), "floordiv(s0 + 63, 64)");
	Sym first = sym_muli(t, tile, 64);
	assert_int_equal(sym_lt(t, first, f->s0), YES);
	Sym size = sym_min(t, sym_int(t, 64), sym_sub(t, f->s0, first));
	assert_int_equal(sym_lt(t, sym_int(t, 0), size), YES);
	Sym lane = sym_axis(t, "lane", size);
	Sym at = sym_add(t, first, lane);
	assert_int_equal(sym_lt(t, at, f->s0), YES);
	assert_sym(f, sym_divi(t, at, 64), "tile");
	assert_sym(f, sym_modi(t, at, 64), "lane");
	assert_sym(f, sym_mod(t, at, f->s0), "64*tile + lane");
	Sym part = sym_ceildiv(t, f->s0, f->s1);
	assert_int_equal(sym_le(t, f->s0, sym_mul(t, part, f->s1)), YES);
}

static void test_questions(void **state)
{
	const Fixture *f = *state;
	SymTab *t = f->t;
	assert_int_equal(sym_eq(t, parse(f, "2*s0"), parse(f, "2*s1 + 1")), NO);
	assert_int_equal(sym_eq(t, f->s0, f->s1), MAYBE);
	assert_int_equal(sym_eq(t, parse(f, "s0 - 64*floordiv(s0, 64)"), parse(f, "mod(s0, 64)")),
			 YES);
	assert_int_equal(sym_eq(t, parse(f, "min(s0 + 1, s1 + 1)"), parse(f, "min(s0, s1) + 1")),
			 YES);
	assert_int_equal(sym_lt(t, f->s2, parse(f, "65")), YES);
	assert_int_equal(sym_lt(t, f->s2, parse(f, "64")), MAYBE);
	assert_int_equal(sym_le(t, parse(f, "s0"), parse(f, "s0*s1")), YES);
	assert_int_equal(sym_le(t, parse(f, "mod(s0, s1)"), f->s0), YES);
	assert_int_equal(sym_le(t, parse(f, "floordiv(s0, s1)"), f->s0), YES);
	assert_int_equal(sym_le(t, parse(f, "min(s0, s1) + s2"), parse(f, "max(s0, s1) + s2")),
			 YES);
	assert_true(sym_divides(t, 4, parse(f, "8*s0 - 4*floordiv(s1, 3)")));
	assert_false(sym_divides(t, 4, parse(f, "8*s0 + 2")));
	assert_true(sym_divides(t, 0, parse(f, "0")));
	assert_false(sym_divides(t, 0, f->s0));
	int64_t lo, hi;
	sym_range(t, parse(f, "2*s2 - 3"), &lo, &hi);
	assert_int_equal(lo, -1);
	assert_int_equal(hi, 125);
	sym_range(t, parse(f, "s0*s1"), &lo, &hi);
	assert_int_equal(lo, 1);
	assert_int_equal(hi, SYM_INF);
}

static void test_bounds_narrow(void **state)
{
	const Fixture *f = *state;
	SymTab *t = f->t;
	Sym half = parse(f, "floordiv(s0, 2)"), least = parse(f, "min(s0, 512)");
	assert_int_equal(sym_le(t, f->s0, sym_int(t, 256)), MAYBE);
	assert_false(sym_bound(t, f->s0, -5, 0));
	assert_true(sym_bound(t, f->s0, -5, 256));
	int64_t lo, hi;
	sym_range(t, half, &lo, &hi);
	assert_int_equal(lo, 0);
	assert_int_equal(hi, 128);
	assert_int_equal(sym_le(t, f->s0, sym_int(t, 256)), YES);
	assert_sym(f, sym_subst(t, least, NULL, NULL, 0), "s0");
	assert_int_equal(sym_eq(t, least, f->s0), YES);
}

static void test_structure(void **state)
{
	const Fixture *f = *state;
	SymTab *t = f->t;
	Sym e = parse(f, "3*s0*s1 + 2*s1 + floordiv(s2, 3) - 7"), coef, rest;
	assert_true(sym_linear(t, e, f->s0, &coef, &rest));
	assert_sym(f, coef, "3*s1");
	assert_true(sym_linear(t, e, f->s1, &coef, &rest));
	assert_sym(f, coef, "3*s0 + 2");
	assert_sym(f, rest, "floordiv(s2, 3) - 7");
	assert_false(sym_linear(t, e, f->s2, &coef, &rest));
	assert_false(sym_linear(t, parse(f, "s0*s0"), f->s0, &coef, &rest));
	assert_true(sym_uses(t, e, f->s2));
	assert_false(sym_uses(t, rest, f->s0));
	assert_true(sym_uses_kind(t, e, SYMVAR_SIZE));
	assert_false(sym_uses_kind(t, e, SYMVAR_AXIS));
	assert_int_equal(sym_kind(t, e), SYM_SUM);
	assert_int_equal(sym_nargs(t, e), 4);
	assert_sym(f, sym_arg(t, e, 0), "2*s1");
	assert_sym(f, sym_arg(t, e, 3), "-7");
	assert_int_equal(sym_kind(t, sym_arg(t, e, 0)), SYM_PRODUCT);
	assert_sym(f, sym_arg(t, sym_arg(t, e, 0), 0), "2");
	Sym var[2] = {f->s0, f->s1}, by[2] = {f->s1, f->s0};
	assert_sym(f, sym_subst(t, parse(f, "floordiv(s0, s1) + 2*s0"), var, by, 2),
	        "2*s1 + floordiv(s1, s0)");
	by[0] = parse(f, "64*s1");
	assert_sym(f, sym_subst(t, parse(f, "mod(s0, 64) + floordiv(s0, 32)"), var, by, 1), "2*s1");
	sym_set_hint(t, f->s0, 10);
	assert_int_equal(sym_hint(t, parse(f, "s0*s0 + s1")), 101);
	assert_int_equal(sym_nvars(t), 3);
	assert_int_equal(sym_var_at(t, 1).i, f->s1.i);
	assert_int_equal(sym_find(t, "s1x", 2).i, f->s1.i);
	assert_int_equal(sym_find(t, "s9", 2).i, 0);
}

static void test_overflow(void **state)
{
	const Fixture *f = *state;
	SymTab *t = f->t;
	Sym big = sym_int(t, INT64_MAX), out, var[1] = {f->s0};
	int64_t lo, hi, value[1] = {INT64_MAX};
	assert_int_equal(sym_le(t, sym_muli(t, f->s0, -2), sym_muli(t, f->s0, INT64_MAX)), MAYBE);
	assert_int_equal(f->ctx->nerror, 0);
	assert_false(sym_eval(t, sym_addi(t, f->s0, 1), var, value, 1, &lo));
	assert_false(sym_eval(t, f->s1, var, value, 1, &lo));
	out = sym_addi(t, big, 1);
	assert_int_equal(f->ctx->nerror, 1);
	sym_range(t, out, &lo, &hi);
	assert_int_equal(lo, -SYM_INF);
	assert_int_equal(hi, SYM_INF);
	assert_false(sym_eval(t, out, var, value, 1, &lo));
	out = sym_floordiv(t, f->s0, sym_int(t, 0));
	assert_int_equal(sym_le(t, out, f->s0), MAYBE);
	assert_int_equal(f->ctx->nerror, 1); /* one message is enough */
}

static void test_parse_errors(void **state)
{
	static const char *const bad[] = {
		"",           "s9",           "s0 +", "floordiv(s0)",
		"min(s0, )",  "(s0",          "2*",   "9223372036854775808",
		"mod(s0, 0)", "floor(s0, 2)", "-"};
	const Fixture *f = *state;
	for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
		const char *s = bad[k];
		assert_int_equal(sym_parse(f->t, &s).i, 0);
	}
	const char *s = "s0 + 2, 3]";
	assert_sym(f, sym_parse(f->t, &s), "s0 + 2");
	assert_string_equal(s, ", 3]");
	char deep[2000];
	memset(deep, '(', sizeof deep - 1);
	deep[sizeof deep - 1] = 0;
	s = deep;
	assert_int_equal(sym_parse(f->t, &s).i, 0);
}

/* Random expressions: each is kept with its value at some points, computed beside. */
enum { POINTS = 12, POOL = 64, NVARS = 8, STEPS = 3000 };

typedef struct {
	Sym e;
	int64_t at[POINTS];
	bool parsable; /* reads no axis */
} Known;

typedef struct {
	const Fixture *f;
	uint64_t seed;
	Sym var[NVARS];
	int64_t value[POINTS][NVARS];
	Known known[POOL];
} Random;

static int64_t pick(Random *r, int64_t n)
{
	r->seed = r->seed * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)((r->seed >> 33) % (uint64_t)n);
}

static int64_t divide(int64_t a, int64_t b)
{
	int64_t q = a / b;
	return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

static int64_t apply(int64_t op, int64_t a, int64_t b)
{
	switch (op) {
	case 0: return a + b;
	case 1: return a - b;
	case 2: return a * b;
	case 3: return divide(a, b);
	case 4: return a - b * divide(a, b);
	case 5: return a < b ? a : b;
	case 6: return a > b ? a : b;
	default: return -divide(-a, b);
	}
}

static Sym build(SymTab *t, int64_t op, Sym a, Sym b)
{
	switch (op) {
	case 0: return sym_add(t, a, b);
	case 1: return sym_sub(t, a, b);
	case 2: return sym_mul(t, a, b);
	case 3: return sym_floordiv(t, a, b);
	case 4: return sym_mod(t, a, b);
	case 5: return sym_min(t, a, b);
	case 6: return sym_max(t, a, b);
	default: return sym_ceildiv(t, a, b);
	}
}

/* False if the result would be large, or divide by 0. */
static bool combine(Random *r, int64_t op, const Known *a, const Known *b, Known *out)
{
	bool divides = op == 3 || op == 4 || op == 7;
	for (int p = 0; p < POINTS; p++) {
		if (divides && !b->at[p])
			return false;
		out->at[p] = apply(op, a->at[p], b->at[p]);
		if (out->at[p] > 1000000 || out->at[p] < -1000000)
			return false;
	}
	out->e = build(r->f->t, op, a->e, b->e);
	out->parsable = a->parsable && b->parsable;
	return sym_nargs(r->f->t, out->e) < 9 && strlen(sym_str(r->f->t, out->e)) < 160;
}

static void check_value(Random *r, const Known *k)
{
	const SymTab *t = r->f->t;
	int64_t lo, hi, got;
	sym_range(t, k->e, &lo, &hi);
	for (int p = 0; p < POINTS; p++) {
		if (!sym_eval(t, k->e, r->var, r->value[p], NVARS, &got) || got != k->at[p])
			fail_msg("%s is %lld at point %d", sym_str(t, k->e), (long long)k->at[p],
				 p);
		if (got < lo || got > hi)
			fail_msg("%s leaves its range", sym_str(t, k->e));
		for (int64_t d = 2; d < 9; d++)
			assert_true(!sym_divides(t, d, k->e) || got % d == 0);
	}
	if (k->parsable)
		assert_int_equal(parse(r->f, sym_str(t, k->e)).i, k->e.i);
}

static void check_truth(const SymTab *t, Truth got, const char *what, bool some, bool all,
        const Known *a, const Known *b)
{
	if ((got == YES && !all) || (got == NO && some))
		fail_msg("%s %s %s answered wrongly", sym_str(t, a->e), what, sym_str(t, b->e));
}

static void check_questions(Random *r, const Known *a, const Known *b)
{
	const SymTab *t = r->f->t;
	bool all[3] = {true, true, true}, some[3] = {false, false, false};
	for (int p = 0; p < POINTS; p++) {
		bool is[3] = {a->at[p] <= b->at[p], a->at[p] < b->at[p], a->at[p] == b->at[p]};
		for (int k = 0; k < 3; k++) {
			all[k] &= is[k];
			some[k] |= is[k];
		}
	}
	check_truth(t, sym_le(t, a->e, b->e), "<=", some[0], all[0], a, b);
	check_truth(t, sym_lt(t, a->e, b->e), "<", some[1], all[1], a, b);
	check_truth(t, sym_eq(t, a->e, b->e), "=", some[2], all[2], a, b);
}

/* s0, s1, s2 and axes of extents 4, 16, s1, s0*s2, s1 + 1. */
static void random_variables(Random *r)
{
	const Fixture *f = r->f;
	Sym extent[NVARS - 3] = {sym_int(f->t, 4), sym_int(f->t, 16), f->s1, parse(f, "s0*s2"),
		parse(f, "s1 + 1")};
	static const char *const name[NVARS - 3] = {"i", "j", "k", "l", "m"};
	r->var[0] = f->s0;
	r->var[1] = f->s1;
	r->var[2] = f->s2;
	for (int v = 3; v < NVARS; v++)
		r->var[v] = sym_axis(f->t, name[v - 3], extent[v - 3]);
	for (int p = 0; p < POINTS; p++) {
		int64_t *value = r->value[p];
		value[0] = 1 + pick(r, p < 4 ? 3 : 40);
		value[1] = 1 + pick(r, p < 4 ? 3 : 40);
		value[2] = 1 + pick(r, p < 4 ? 3 : 64);
		int64_t bound[NVARS - 3] = {4, 16, value[1], value[0] * value[2], value[1] + 1};
		for (int v = 3; v < NVARS; v++)
			value[v] = p % 3 ? pick(r, bound[v - 3]) : bound[v - 3] - 1;
	}
}

static Known random_leaf(Random *r)
{
	Known k = {.parsable = true};
	int64_t v = pick(r, 2 * NVARS);
	int64_t number = pick(r, 2) ? (int64_t)1 << pick(r, 8) : pick(r, 21) - 10;
	if (v < NVARS)
		k.e = r->var[v];
	else
		k.e = sym_int(r->f->t, number);
	k.parsable = v >= NVARS || v < 3;
	for (int p = 0; p < POINTS; p++)
		k.at[p] = v < NVARS ? r->value[p][v] : number;
	return k;
}

static void random_walk(const Fixture *f, uint64_t seed)
{
	static Random r;
	memset(&r, 0, sizeof r);
	r.f = f;
	r.seed = seed;
	random_variables(&r);
	for (int k = 0; k < POOL; k++)
		r.known[k] = random_leaf(&r);
	for (int step = 0; step < STEPS; step++) {
		ArenaMark mark = arena_mark(f->ctx->scratch);
		const Known *a = &r.known[pick(&r, POOL)], *b = &r.known[pick(&r, POOL)];
		Known *into = &r.known[pick(&r, POOL)], made;
		if (pick(&r, 4) && combine(&r, pick(&r, 8), a, b, &made)) {
			check_value(&r, &made);
			check_questions(&r, &made, a);
			*into = made;
		} else {
			*into = random_leaf(&r);
		}
		check_questions(&r, into, &r.known[pick(&r, POOL)]);
		arena_release(f->ctx->scratch, mark);
	}
	assert_int_equal(f->ctx->nerror, 0);
}

static void test_random(void **state)
{
	for (uint64_t seed = 1; seed <= 4; seed++) {
		random_walk(*state, seed);
		teardown(state);
		setup(state);
	}
}

/* e = d*floordiv(e, d) + mod(e, d), found or at least proved. */
static void test_random_division(void **state)
{
	static Random r;
	const Fixture *f = *state;
	memset(&r, 0, sizeof r);
	r.f = f;
	r.seed = 7;
	random_variables(&r);
	for (int step = 0; step < 500; step++) {
		Sym e = sym_int(f->t, 0);
		for (int k = 0; k < 4; k++) {
			Sym c = sym_int(f->t,
					pick(&r, 2) ? (int64_t)1 << pick(&r, 7) : pick(&r, 30));
			Sym v = r.var[pick(&r, NVARS)];
			e = sym_add(f->t, e, pick(&r, 3) ? sym_mul(f->t, c, v) : c);
		}
		Sym d = pick(&r, 3) ? sym_int(f->t, 1 + pick(&r, 64)) : pick(&r, 2) ? f->s1 : f->s2;
		Sym q = sym_floordiv(f->t, e, d), rest = sym_mod(f->t, e, d);
		Sym sum = sym_add(f->t, sym_mul(f->t, q, d), rest);
		if (sum.i != e.i)
			fail_msg("%s is not put together from %s and %s", sym_str(f->t, e),
			        sym_str(f->t, q), sym_str(f->t, rest));
		assert_int_equal(sym_lt(f->t, rest, d), YES);
		assert_int_equal(sym_le(f->t, sym_int(f->t, 0), rest), YES);
	}
}

static void test_out_of_memory(void **state)
{
	(void)state;
	for (volatile size_t n = 1; n < 12; n++) {
		Ctx *volatile ctx = ctx_new();
		volatile int unwound = setjmp(ctx->unwind);
		if (!unwound) {
			SymTab *t = symtab_new(ctx);
			Sym s0 = sym_var(t, "s0", SYMVAR_SIZE, 1, SYM_INF);
			arena_fail_after(n);
			for (int k = 1; k < 20000; k++)
				s0 = sym_add(t, sym_divi(t, s0, 3), sym_modi(t, s0, k + 1));
			fail_msg("nothing failed at block %u", (unsigned)n);
		}
		assert_int_equal(unwound, UNWIND_OOM);
		ctx_free(ctx);
	}
	arena_fail_after(0);
}

/* Doubles: text, folding, values as the processor computes them, ends that hold all values. */
static void test_reals(void **state)
{
	const Fixture *f = *state;
	static const char *const same[] = {
		"trunc(rmul(0x1.6666666666666p-1, real(s2)))",
		"2*floor(rsqrt(radd(real(s0*s1), -0x1p-1))) + 1",
		"ceil(rdiv(real(s2), real(s0)))*rint(rdiv(real(s0), 0x1.4p+1))",
		"less(real(s0), 0x1.8p+0) + equal(real(s1), real(s2))",
	};
	for (size_t k = 0; k < sizeof same / sizeof *same; k++)
		assert_sym(f, parse(f, sym_str(f->t, parse(f, same[k]))),
			   sym_str(f->t, parse(f, same[k])));
	static const char *const folded[][2] = {
		{"floor(real(s0 + 1))", "s0 + 1"},
		{"trunc(rmul(0x1.28f5c28f5c28fp-2, real(100)))", "28"}, /* 0.29 * 100 */
		{"rint(0x1.4p+1)", "2"},
		{"trunc(-0x1.4p+1)", "-2"},
		{"less(0x1p+0, 0x1p+1) + 2*equal(0x1p+0, 0x1p+1)", "1"},
	};
	for (size_t k = 0; k < sizeof folded / sizeof *folded; k++)
		assert_sym(f, parse(f, folded[k][0]), folded[k][1]);
	static const char *const bad[] = {"real(s0)",
					  "floor(s0)",
					  "rmul(0x1p+0, 0x1p+0)",
					  "floor(real(s0)",
					  "floor(rmul(real(s0)))",
					  "floor(inf)",
					  "less(real(s0))",
					  "floor(0x)s"};
	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
		const char *s = bad[k];
		Sym e = sym_parse(f->t, &s);
		if (e.i && !*s)
			fail_msg("\"%s\" was accepted", bad[k]);
	}
	for (size_t k = 0; k < sizeof same / sizeof *same; k++)
		for (int64_t v = 1; v <= 64; v++) {
			int64_t lo, hi, out, value[3] = {v, 65 - v, v};
			Sym e = parse(f, same[k]), var[3] = {f->s0, f->s1, f->s2};
			Sym by[3] = {sym_int(f->t, value[0]), sym_int(f->t, value[1]),
				     sym_int(f->t, value[2])};
			sym_range(f->t, e, &lo, &hi);
			assert_true(sym_eval(f->t, e, var, value, 3, &out));
			assert_true(lo <= out && out <= hi);
			assert_true(sym_is(f->t, sym_subst(f->t, e, var, by, 3), out));
		}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_canonical_text), TEST(test_axes),         TEST(test_tiles),
		TEST(test_flat_axis),      TEST(test_reals),
		TEST(test_questions),      TEST(test_bounds_narrow), TEST(test_structure),
		TEST(test_overflow),       TEST(test_parse_errors), TEST(test_random),
		TEST(test_random_division), cmocka_unit_test(test_out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
