/* Symbolic expressions of torch.export, in its three notations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frontend/pt2/srepr/srepr.h"
#include "tests/help/golden.h"

static Ctx *ctx;
static SymTab *syms;
static ExprEnv env;

static Sym two_dims(void *arg, const PathKey *path, uint32_t n, int64_t dim)
{
	(void)arg;
	if (n != 1 || !path[0].name || strcmp(path[0].name, "x") || dim < 0 || dim > 1)
		return (Sym){0};
	return sym_find(syms, dim ? "s1" : "s0", 2);
}

static void fresh(void)
{
	syms = symtab_new(ctx);
	env = (ExprEnv){.ctx = ctx, .syms = syms, .input_dim = two_dims};
	sym_var(syms, "s0", SYMVAR_SIZE, 1, 64);
	sym_var(syms, "s1", SYMVAR_SIZE, 2, 32);
}

static int setup(void **state)
{
	(void)state;
	ctx = ctx_new();
	if (!ctx)
		return -1;
	fresh();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ctx_free(ctx);
	return 0;
}

/* The value at s0 = 5, s1 = 7. */
static int64_t at(const char *text)
{
	Sym var[2] = {sym_find(syms, "s0", 2), sym_find(syms, "s1", 2)};
	int64_t value[2] = {5, 7}, out = 0;
	Sym e = expr_int(&env, text);
	if (!e.i)
		fail_msg("%s: %s", text, env.error);
	assert_true(sym_eval(syms, e, var, value, 2, &out));
	return out;
}

#define S0 "Symbol('s0', positive=True, integer=True)"
#define S1 "Symbol('s1', positive=True, integer=True)"

static void test_integers(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t value;
	} cases[] = {
		{"Integer(3)", 3},
		{"Integer(-1)", -1},
		{S0, 5},
		{"Mul(Integer(32), " S0 ")", 160},
		{"Add(" S0 ", " S1 ", Integer(-2))", 10},
		{"Pow(" S1 ", Integer(2))", 49},
		{"PowByNatural(" S0 ", Integer(3))", 125},
		{"Max(Integer(1), " S0 ", " S1 ")", 7},
		{"Min(" S0 ", " S1 ")", 5},
		{"Mod(" S1 ", Integer(4))", 3},
		{"PythonMod(Mul(Integer(-1), " S1 "), Integer(4))", 1},
		{"FloorDiv(" S1 ", Integer(2))", 3},
		{"CleanDiv(Mul(Integer(4), " S1 "), Integer(2))", 14},
		{"CeilToInt(IntTrueDiv(" S1 ", Integer(2)))", 4},
		{"FloorToInt(IntTrueDiv(" S1 ", " S0 "))", 1},
		{"TruncToInt(Mul(Float('2.5', precision=53), ToFloat(" S0 ")))", 12},
		{"Mul(Rational(1, 2), Add(Mul(Integer(2), " S0 "), Integer(4)))", 7},
		{"ModularIndexing(" S1 ", Integer(2), Integer(2))", 1},
		{"RShift(" S1 ", Integer(1))", 3},
		{"LShift(" S1 ", Integer(2))", 28},
		{"32*s0", 160},
		{"s0 - 2*s1 + 3", -6},
		{"-s0", -5},
		{"s1**2//10", 4},
		{"-s1 // 2", -4},
		{"(1 + (((-1) + L['x'].size()[1]) // 4))", 2},
		{"torch.sym_max(1, L['x'].size()[0])", 5},
		{"((s0 + s1)*(s0 + 1))", 72},
		{"s1 & 5", 5},
		{"s0 & 2", 0},
		{"round(s0 / 2)", 2}, /* ties to even */
		{"round(s1 / 2)", 4},
		{"int((s0 - 8) / 2)", -1},
		{"math.trunc(0.7*torch.sym_float(s1))", 4},
		{"math.floor(0.7*torch.sym_float(10*s1))", 49}, /* as in Python: 0.7 * 70 is 49 */
		/* 0.29 * 100 is 28.999999999999996 */
		{"math.trunc(0.29*torch.sym_float(20*s0))", 28},
		{"TruncToInt(Mul(Float('0.69999999999999996', precision=53), ToFloat(" S0 ")))", 3},
		{"math.ceil(s1 / 3 + s0 / 3)", 4},
		{"math.trunc(torch._sym_sqrt(torch.sym_float(s0*s1 + 1)))", 6},
		{"TruncToInt(FloatPow(ToFloat(Mul(" S0 ", " S1 ")), Float('0.5', precision=53)))",
		 5},
		{"(s0 if s1 > 6 else 3)", 5},
		{"(s0 if s1 > 7 else 3 if s0 > 4 else 2)", 3},
		{"Piecewise(ExprCondPair(" S0 ", LessThan(" S1 ", Integer(6))), "
		 "ExprCondPair(Integer(3), Equality(" S0 ", Integer(5))), "
		 "ExprCondPair(Integer(2), true))",
		 3},
		{"Piecewise(ExprCondPair(" S0 ", StrictGreaterThan(" S1 ", Integer(6))), "
		 "ExprCondPair(" S1 ", true))",
		 5},
	};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		if (at(cases[k].text) != cases[k].value)
			fail_msg("%s is %lld, expected %lld", cases[k].text,
				 (long long)at(cases[k].text), (long long)cases[k].value);
}

static void test_canonical(void **state)
{
	(void)state;
	assert_int_equal(expr_int(&env, "Mul(Integer(2), " S0 ")").i, expr_int(&env, "s0 + s0").i);
	assert_int_equal(expr_int(&env, "Add(" S0 ", Mul(Integer(-1), " S0 "))").i,
			 sym_int(syms, 0).i);
}

static void test_new_symbols(void **state)
{
	(void)state;
	int64_t lo, hi;
	Sym u = expr_int(&env, "Symbol('u0', integer=True)");
	assert_int_equal(sym_var_kind(syms, u), SYMVAR_UNBACKED);
	Sym s = expr_int(&env, "Symbol('s9', positive=True, integer=True)");
	sym_range(syms, s, &lo, &hi);
	assert_int_equal(sym_var_kind(syms, s), SYMVAR_SIZE);
	assert_int_equal(lo, 1);
	assert_true(hi == SYM_INF);
}

static void test_conditions(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint32_t n;
		Truth first;
	} cases[] = {
		{"GreaterThan(" S0 ", Integer(0))", 1, YES},
		{"LessThan(" S0 ", Integer(64))", 1, YES},
		{"StrictGreaterThan(" S0 ", Integer(64))", 1, NO},
		{"StrictLessThan(" S0 ", Integer(10))", 1, MAYBE},
		{"Equality(" S0 ", " S1 ")", 1, MAYBE},
		{"Unequality(" S0 ", Integer(65))", 1, YES},
		{"Not(Equality(" S0 ", Integer(65)))", 1, YES},
		{"And(GreaterThan(" S0 ", Integer(1)), LessThan(" S1 ", Integer(32)))", 2, YES},
		{"true", 1, YES},
		{"1 <= s0 <= 64", 2, YES},
		{"2 < s0 and s1 >= 2 and s1 == 32", 3, MAYBE},
		{"not s0 < 1", 1, YES},
		{"(1 + (((-1) + L['x'].size()[1]) // 32)) != 2", 1, YES},
		{"s0 / 2 <= 32", 1, YES},
		{"s0 == 1 or s0 <= 64", 1, YES},
		{"s0 > 64 or s1 > 32", 1, NO},
		{"s0 == 1 or s1 == 2", 1, MAYBE},
		{"not (s0 < 1 and s1 < 2)", 1, YES},
		{"not (s0 > 64 or s1 > 32)", 1, YES},
		{"(s0 & 1) == 2", 1, NO},
		{"2 ** s1 >= 4", 1, YES},
		{"2 ** s1 < 4", 1, NO},
		{"5 > 2 ** s1", 1, MAYBE},
		{"2 ** s1 == 5", 1, NO},
		{"3 ** s1 != 8", 1, YES},
		{"0.3*torch.sym_float(s0) > 0.29", 1, MAYBE},
		{"torch.sym_float(s0) ** 0.5 <= 8.0", 1, MAYBE},
		{"s0 // (s1 - 4) == 1", 2, MAYBE}, /* and s1 is not 4 */
		/* and the double is not 0 */
		{"1.5 / (0.3*torch.sym_float(s0) - 1.5) > 0.1", 2, MAYBE},
		{"1.5 / ((s0 - 5) / 3) > 0.1", 2, MAYBE}, /* and s0 is not 5 */
		{"1.5 / (s0 / 3) > 0.1", 1, MAYBE},
	};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		const Cond *c;
		uint32_t n;
		if (!expr_cond(&env, cases[k].text, &c, &n))
			fail_msg("%s: %s", cases[k].text, env.error);
		assert_int_equal(n, cases[k].n);
		if (cond_truth(syms, c) != cases[k].first)
			fail_msg("%s: truth is %d", cases[k].text, cond_truth(syms, c));
	}
}

/* Does the condition hold at s0 = 5, s1 = 7? */
static bool holds(const char *text)
{
	Sym var[2] = {sym_find(syms, "s0", 2), sym_find(syms, "s1", 2)};
	int64_t value[2] = {5, 7}, a, b;
	const Cond *c;
	uint32_t n;
	if (!expr_cond(&env, text, &c, &n))
		fail_msg("%s: %s", text, env.error);
	for (uint32_t k = 0; k < n; k++) {
		if (c[k].fixed && !c[k].truth)
			return false;
		if (c[k].fixed)
			continue;
		assert_true(sym_eval(syms, c[k].a, var, value, 2, &a));
		assert_true(sym_eval(syms, c[k].b, var, value, 2, &b));
		if (c[k].kind == GUARD_EQ ? a != b : c[k].kind == GUARD_NE ? a == b : a > b)
			return false;
	}
	return true;
}

static void test_values(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool holds;
	} cases[] = {
		{"s0 == 5 or s1 == 1", true},
		{"s0 == 4 or s1 == 1", false},
		{"s0 == 4 and s1 == 7 or s1 != 7 or s0 <= 5", true},
		{"not (s0 == 5 and s1 == 7)", false},
		{"not (s0 == 5 and s1 == 8)", true},
		{"not (s0 == 4 or s1 == 8)", true},
		{"(s0 / s1) > 0.71", true},
		{"(s0 / s1) > 0.72", false},
		{"(s0 / s1) < 0.72 < (s1 / s0)", true},
		{"s0 / 3 == s0 / 3", true},
		{"(s0 / 3) + (s1 / 2) > 5.16", true},
		{"(s0 / 3) + (s1 / 2) >= 5.17", false},
		{"(s0 / 3) + (s1 / 2) <= 5.17", true},
		{"(s0 / 3) + (s1 / 2) != 5.17", true},
		{"0.1*torch.sym_float(6*s0) > 3.0", false}, /* 0.1 * 30 is 3.0 */
		{"0.1*torch.sym_float(3*s0 - 12) == 0.3", false}, /* 0.30000000000000004 */
		{"0.1*torch.sym_float(3*s0 - 12) > 0.3", true},
		{"2 ** s0 <= 32", true},
		{"2 ** s0 < 32", false},
		{"2 ** s0 > 31", true},
		{"33 > 2 ** s0", true},
		{"2 ** s0 == 32", true},
		{"2 ** s0 != 32", false},
		{"2 ** s0 > 0", true},
		{"-1 >= 2 ** s0", false},
		{"(s1 & 3) == 3", true},
		{"(s0 < 6) & (s1 > 6)", true},
		{"(s0 > 6) | (s1 > 6)", true},
		{"math.trunc(torch.sym_float(s1) ** 0.5) == 2", true},
		{"torch._sym_sqrt(torch.sym_float(s0 + 4)) == 3.0", true},
		{"(s0 // (s1 - 7)) == 0", false}, /* Python refuses to divide */
		{"1.0 / (0.3*torch.sym_float(s0) - 1.5) > 0.1", false}, /* here, too */
		{"1.0 / ((s0 - 5) / 3) > 0.1", false},
		{"1.0 / (0.3*torch.sym_float(s0) - 1.4) > 0.1", true},
		{"1 // (s0 - s1) == -1", true},
	};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		if (holds(cases[k].text) != cases[k].holds)
			fail_msg("%s: expected %d", cases[k].text, cases[k].holds);
}

/* An integer that Python has no value for where a divisor is zero says so. */
static void test_divisors(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint32_t need;
	} cases[] = {
		{"s0 // 3", 0},
		{"s0 // s1", 0},
		{"s0 // (s1 - 7)", 1},
		{"Mod(" S0 ", Add(" S1 ", Integer(-3)))", 1},
		{"math.trunc(1.5 / (0.3*torch.sym_float(s0) - 1.5))", 1},
		{"math.trunc(1.0 / ((s0 - 5) / 3))", 1},
		{"s0 // (s1 - 7) + s1 // (s0 - 4)", 2},
	};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		if (!expr_int(&env, cases[k].text).i)
			fail_msg("%s: %s", cases[k].text, env.error);
		assert_int_equal(env.nneed, cases[k].need);
	}
}

static void test_floats(void **state)
{
	(void)state;
	double v;
	assert_true(expr_float(&env, "Float('0.1', precision=53)", &v) && v == 0.1);
	assert_true(expr_float(&env, "Rational(1, 4)", &v) && v == 0.25);
	assert_true(expr_float(&env, "-1.5", &v) && v == -1.5);
	assert_false(expr_float(&env, "ToFloat(" S0 ")", &v));
}

static void test_errors(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"(",
		"s0 +",
		"Symbol(s0)",
		"Symbol('s0'",
		"unknown",
		"Frobnicate(1)",
		"s0 // 0",
		"Mod(s0, Integer(0))",
		"TruncToInt(FloatTrueDiv(ToFloat(s0), Mul(Float('0.3'), Float('0.0'))))",
		"TruncToInt(FloatTrueDiv(Float('0.3'), Float('0.0')))",
		"Pow(s0, s1)",
		"Pow(s0, Integer(1000))",
		"Integer(1, 2)",
		"99999999999999999999",
		"s0 s1",
		"L['y'].size()[0]",
		"L['x'].size()[7]",
		"L['x']",
		"s0 == 1",
		"IntTrueDiv(s0, s1)",
		"Float('x')",
		"Max()",
		"FloorDiv(s0)",
		"1.1",
		"'s0'",
	};
	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
		if (expr_int(&env, bad[k]).i)
			fail_msg("\"%s\" was accepted", bad[k]);
		assert_non_null(env.error);
	}
	const Cond *c;
	uint32_t n;
	assert_false(expr_cond(&env, "math.log2(s0) < 3.5", &c, &n));
	assert_false(expr_cond(&env, "L['x'].stride()[0] == 1", &c, &n));
	assert_false(expr_cond(&env, "L['x", &c, &n));
	assert_false(expr_cond(&env, "L['x'][", &c, &n));
	assert_false(expr_cond(&env, "L['x\\", &c, &n));
	assert_false(expr_cond(&env, "L['x'][0][99999999999999999999].size()[0] == 1", &c, &n));
	assert_false(expr_cond(&env, "(1 if s0 else 2) == 1", &c, &n));
	assert_false(expr_cond(&env, "s0", &c, &n));
	char deep[4000];
	memset(deep, '(', sizeof deep - 1);
	deep[sizeof deep - 1] = 0;
	assert_int_equal(expr_int(&env, deep).i, 0);
	memset(deep, '-', sizeof deep - 1);
	assert_int_equal(expr_int(&env, deep).i, 0);
	Text sums;
	text_init(&sums, ctx->arena);
	for (int k = 0; k < 40; k++)
		text_add(&sums, "(s0+s1+1)*");
	text_add(&sums, "1");
	assert_int_equal(expr_int(&env, sums.data).i, 0);
}

/* ---- tests/data/expressions.txt ---- */

static void say_conditions(Text *out, const Cond *c, uint32_t n)
{
	static const char *const sign[] = {[GUARD_EQ] = "==", [GUARD_NE] = "!=", [GUARD_LE] = "<="};
	for (uint32_t k = 0; k < n; k++) {
		text_add(out, k ? " and " : "");
		if (c[k].fixed)
			text_add(out, c[k].truth ? "true" : "false");
		else
			text_printf(out, "%s %s %s", sym_str(syms, c[k].a), sign[c[k].kind],
				    sym_str(syms, c[k].b));
	}
}

/* What a text becomes, read as an integer, a condition or a constant; and the symbols that it
 * made. */
static void say(Text *out, const char *kind, const char *text)
{
	uint32_t before = sym_nvars(syms), n = 0;
	const Cond *c = NULL;
	double number = 0;
	Sym s = {0};
	bool ok = *kind == 'c'   ? expr_cond(&env, text, &c, &n)
		  : *kind == 'f' ? expr_float(&env, text, &number)
				 : (s = expr_int(&env, text)).i != 0;
	if (!ok)
		text_add(out, env.error);
	else if (*kind == 'c')
		say_conditions(out, c, n);
	else if (*kind == 'f')
		text_printf(out, "%.17g", number);
	else
		text_add(out, sym_str(syms, s));
	for (uint32_t k = before; k < sym_nvars(syms); k++) {
		Sym v = sym_var_at(syms, k);
		int64_t lo, hi;
		sym_range(syms, v, &lo, &hi);
		text_printf(out, ", %s %s from %lld%s",
			    sym_var_kind(syms, v) == SYMVAR_UNBACKED ? "unbacked" : "size",
			    sym_name(syms, v), (long long)lo, hi == SYM_INF ? "" : " to a bound");
	}
	text_char(out, '\n');
}

/* Each line: how it is read, the text, and behind " => " what it becomes or why not. With BLESS=1
 * that is written. */
static void test_recorded(void **state)
{
	(void)state;
	char *line = NULL;
	size_t room = 0;
	Text all;
	FILE *f = fopen(TEST_DATA "/expressions.txt", "rb");
	assert_non_null(f);
	text_init(&all, ctx->arena);
	while (getline(&line, &room, f) > 0) {
		char *end = strstr(line, " =>"), *text = strchr(line, ' ');
		if (!end || !text)
			fail_msg("no \" =>\" in %s", line);
		*end = 0;
		text_printf(&all, "%s => ", line);
		fresh();
		say(&all, line, text + 1);
	}
	free(line);
	fclose(f);
	golden_check(TEST_DATA "/expressions.txt", all.data);
}

/* How many arguments each function takes: with another number of them it is refused, and so is what
 * it does not take. */
static void test_arguments(void **state)
{
	(void)state;
	static const struct {
		const char *names; /* blanks between */
		uint32_t least, most;
		bool of_conditions;
	} functions[] = {
		{"Add Mul Max max sym_max Min min sym_min", 1, UINT32_MAX, false},
		{"And Or", 1, UINT32_MAX, true},
		{"Not", 1, 1, true},
		{"Pow PowByNatural FloatPow Mod PythonMod FloorDiv CleanDiv CeilDiv LShift RShift "
		 "IntTrueDiv FloatTrueDiv Rational",
		 2, 2, false},
		{"Equality Eq Unequality Ne GreaterThan StrictGreaterThan LessThan StrictLessThan",
		 2, 2, false},
		{"CeilToInt ceil ceiling FloorToInt floor TruncToInt trunc sym_float float ToFloat "
		 "Identity Integer int RoundToInt round sqrt _sym_sqrt "
		 "OpaqueUnaryFn_sqrt Abs abs",
		 1, 1, false},
		{"ModularIndexing", 3, 3, false},
	};
	for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
		for (const char *p = functions[k].names; *p; p += strspn(p, " ")) {
			size_t length = strcspn(p, " ");
			for (uint32_t n = 0; n < 5; n++) {
				Text t;
				const Cond *c;
				uint32_t ncond;
				text_init(&t, ctx->arena);
				text_printf(&t, "%.*s(", (int)length, p);
				for (uint32_t i = 0; i < n; i++)
					text_printf(&t, "%s%s", i ? ", " : "",
						    functions[k].of_conditions
							    ? "s0 > 3"
						    : i     ? "2"
							    : "s0 + 2");
				text_add(&t, ")");
				fresh();
				bool wrong =
					!expr_cond(&env, t.data, &c, &ncond) &&
					(!strncmp(env.error, "wrong number of arguments", 25) ||
					 !strncmp(env.error, "expected three arguments", 24));
				if (wrong != (n < functions[k].least || n > functions[k].most))
					fail_msg("%s: %s", t.data,
						 env.error ? env.error : "is read");
			}
			p += length;
		}
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(integers),   TEST(canonical), TEST(new_symbols),
		TEST(conditions), TEST(values),    TEST(divisors), TEST(floats), TEST(errors),
		TEST(arguments),  TEST(recorded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
