/* How many rounds of a loop are known before it runs, of every dtype that counts: derivatives are
 * those of as many rounds as it has, or refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir/interp/interp.h"
#include "transform/transform.h"
#include "tests/unit/ir_fixture.h"

enum { REFUSED = -1, SIZE = 6 };

/* A loop that doubles h, which is 1 at first, as long as there are rounds. %k counts; %c is an i64
 * from outside, %n the size 6, h f64. */
typedef struct {
	int rounds; /* or REFUSED */
	const char *dtype, *start, *more, *next; /* %more and %next, with the lines before them;
	                                            start: a number, or lines up to %s */
	bool unbounded; /* nothing is known of n */
} Loop;

#define FULL(name, value, dtype) "%" name " = full(value=" value ", shape=[], dtype=" dtype ")\n"

static const Loop loops[] = {
	/* every comparison, both ways around */
	{5, "i64", "0", FULL("l", "5", "i64") "%more = lt(%k, %l)\n", FULL("d", "1", "i64") "%next = add(%k, %d)\n"},
	{6, "i64", "0", FULL("l", "5", "i64") "%more = le(%k, %l)\n", FULL("d", "1", "i64") "%next = add(%k, %d)\n"},
	{4, "i64", "5", FULL("l", "1", "i64") "%more = gt(%k, %l)\n", FULL("d", "1", "i64") "%next = sub(%k, %d)\n"},
	{5, "i64", "5", FULL("l", "1", "i64") "%more = ge(%k, %l)\n", FULL("d", "1", "i64") "%next = sub(%k, %d)\n"},
	{5, "i64", "0", FULL("l", "5", "i64") "%more = gt(%l, %k)\n", FULL("d", "1", "i64") "%next = add(%d, %k)\n"},
	{6, "i64", "0", FULL("l", "5", "i64") "%more = ge(%l, %k)\n", FULL("d", "1", "i64") "%next = add(%d, %k)\n"},
	{4, "i64", "5", FULL("l", "1", "i64") "%more = lt(%l, %k)\n", FULL("d", "-1", "i64") "%next = add(%k, %d)\n"},
	{5, "i64", "5", FULL("l", "1", "i64") "%more = le(%l, %k)\n", FULL("e", "1", "i64") "%next = sub(%k, %e)\n"},
	{REFUSED, "i64", "7", FULL("l", "5", "i64") "%more = eq(%k, %l)\n", FULL("d", "1", "i64") "%next = add(%k, %d)\n"},
	{REFUSED, "i64", "5", FULL("l", "5", "i64") "%more = ne(%k, %l)\n", FULL("d", "1", "i64") "%next = add(%k, %d)\n"},
	/* steps */
	{3, "i64", "0", FULL("l", "7", "i64") "%more = lt(%k, %l)\n", FULL("d", "3", "i64") "%next = add(%k, %d)\n"},
	{2, "i64", "0", FULL("l", "6", "i64") "%more = lt(%k, %l)\n", FULL("d", "3", "i64") "%next = add(%k, %d)\n"},
	{3, "i64", "0", FULL("l", "6", "i64") "%more = le(%k, %l)\n", FULL("d", "3", "i64") "%next = add(%k, %d)\n"},
	{3, "i64", "4", FULL("l", "-4", "i64") "%more = gt(%k, %l)\n", FULL("d", "3", "i64") "%next = sub(%k, %d)\n"},
	{0, "i64", "9", FULL("l", "5", "i64") "%more = lt(%k, %l)\n", FULL("d", "1", "i64") "%next = add(%k, %d)\n"},
	{REFUSED, "i64", "9", FULL("l", "5", "i64") "%more = lt(%k, %l)\n", FULL("d", "1", "i64") "%next = sub(%k, %d)\n"},
	{REFUSED, "i64", "9", FULL("l", "5", "i64") "%more = lt(%k, %l)\n", FULL("d", "0", "i64") "%next = add(%k, %d)\n"},
	{REFUSED, "i64", "9", FULL("l", "5", "i64") "%more = lt(%k, %l)\n", FULL("d", "1", "i64") "%next = sub(%d, %k)\n"},
	{REFUSED, "i64", "9", FULL("l", "5", "i64") "%more = lt(%k, %l)\n", FULL("d", "2", "i64") "%next = mul(%k, %d)\n"},
	{REFUSED, "i64", "9", FULL("l", "5", "i64") "%more = lt(%k, %l)\n", "%next = add(%k, "
									    "%k)\n"},
	/* limits and steps that are computed, from outside, or sizes */
	{4, "i64", "0", "%more = lt(%k, %c)\n", FULL("d", "1", "i64") "%next = add(%k, %d)\n"},
	{1, "i64", "0", "%more = lt(%k, %c)\n", "%next = add(%k, %c)\n"},
	{7, "i64", "0", FULL("l", "3", "i64") "%u = add(%c, %l)\n%more = lt(%k, %u)\n", FULL("d", "1", "i64") "%next = add(%k, %d)\n"},
	{1, "i64", "0", FULL("l", "3", "i64") "%u = sub(%c, %l)\n%more = lt(%k, %u)\n", FULL("d", "1", "i64") "%next = add(%k, %d)\n"},
	{SIZE, "i64", "0", "%u = from_size(value=n)\n%more = lt(%k, %u)\n", FULL("d", "1", "i64") "%next = add(%k, %d)\n"},
	{SIZE, "i32", "0", "%u = from_size(value=n)\n%v = convert(%u, dtype=i32)\n%more = lt(%k, "
			   "%v)\n", FULL("d", "1", "i32") "%next = add(%k, %d)\n"},
	{SIZE, "i32", "0", "%u = from_size(value=n)\n%v = convert(%u, dtype=i32)\n%more = lt(%k, "
			   "%v)\n", FULL("d", "1", "i32") "%next = add(%k, %d)\n", true},
	{REFUSED, "i16", "0", "%u = from_size(value=n)\n%v = convert(%u, dtype=i16)\n%more = "
			      "lt(%k, %v)\n", FULL("d", "1", "i16") "%next = add(%k, %d)\n", true},
	{SIZE, "i8", "0", "%u = from_size(value=n)\n%v = convert(%u, dtype=i8)\n%more = lt(%k, "
			  "%v)\n", FULL("d", "1", "i8") "%next = add(%k, %d)\n"},
	{SIZE, "i64", "%s = from_size(value=n)\n", FULL("l", "0", "i64") "%more = gt(%k, %l)\n", FULL("d", "1", "i64") "%next = sub(%k, %d)\n"},
	{2, "i64", "%s = from_size(value=n)\n", "%more = gt(%k, %c)\n", FULL("d", "1", "i64") "%next = sub(%k, %d)\n"},
	{0, "i64", "%s = from_size(value=n)\n", "%more = lt(%k, %c)\n", FULL("d", "1", "i64") "%next = add(%k, %d)\n"},
	{REFUSED, "i64", "0", "%u = convert(%h, dtype=i64)\n%more = lt(%k, %u)\n", FULL("d", "1", "i64") "%next = add(%k, %d)\n"},
	{REFUSED, "f64", "0", FULL("l", "5", "f64") "%more = lt(%k, %l)\n", FULL("d", "1", "f64") "%next = add(%k, %d)\n"},
	/* conditions of two parts: no more rounds than the part that is known */
	{4, "i64", "0", FULL("l", "5", "i64") "%a = lt(%k, %c)\n%b = lt(%k, %l)\n%more = bit_and(%a, %b)\n", FULL("d", "1", "i64") "%next = add(%k, %d)\n"},
	{4, "i64", "0", FULL("l", "5", "i64") "%a = lt(%k, %l)\n%b = lt(%k, %c)\n%more = mul(%a, "
					      "%b)\n", FULL("d", "1", "i64") "%next = add(%k, "
									     "%d)\n"},
	{3, "i64", "0", FULL("l", "7", "f64") "%a = lt(%h, %l)\n%b = lt(%k, %c)\n%more = bit_and(%a, %b)\n", FULL("d", "1", "i64") "%next = add(%k, %d)\n"},
	{3, "i64", "0", FULL("l", "7", "f64") "%a = lt(%h, %l)\n%b = lt(%k, %c)\n%more = bit_and(%b, %a)\n", FULL("d", "1", "i64") "%next = add(%k, %d)\n"},
	{REFUSED, "i64", "9", FULL("l", "7", "f64") "%a = lt(%h, %l)\n%b = lt(%k, %c)\n%more = bit_or(%b, %a)\n", FULL("d", "1", "i64") "%next = add(%k, %d)\n"},
	/* narrow counters: what they reach has to be of their dtype */
	{7, "i8", "120", FULL("l", "127", "i8") "%more = lt(%k, %l)\n", FULL("d", "1", "i8") "%next = add(%k, %d)\n"},
	{REFUSED, "i8", "120", FULL("l", "127", "i8") "%more = le(%k, %l)\n", FULL("d", "1", "i8") "%next = add(%k, %d)\n"},
	{REFUSED, "i8", "100", FULL("l", "127", "i8") "%more = lt(%k, %l)\n", FULL("d", "20", "i8") "%next = add(%k, %d)\n"},
	{8, "i8", "-120", FULL("l", "-128", "i8") "%more = gt(%k, %l)\n", FULL("d", "1", "i8") "%next = sub(%k, %d)\n"},
	{REFUSED, "i8", "-120", FULL("l", "-128", "i8") "%more = ge(%k, %l)\n", FULL("d", "1", "i8") "%next = sub(%k, %d)\n"},
	{3, "u8", "3", FULL("l", "0", "u8") "%more = gt(%k, %l)\n", FULL("d", "1", "u8") "%next = sub(%k, %d)\n"},
	{REFUSED, "u8", "3", FULL("l", "0", "u8") "%more = ge(%k, %l)\n", FULL("d", "1", "u8") "%next = sub(%k, %d)\n"},
	{REFUSED, "u8", "4", FULL("l", "0", "u8") "%more = gt(%k, %l)\n", FULL("d", "3", "u8") "%next = sub(%k, %d)\n"},
	{5, "u8", "250", FULL("l", "255", "u8") "%more = lt(%k, %l)\n", FULL("d", "1", "u8") "%next = add(%k, %d)\n"},
	{7, "i16", "32760", FULL("l", "32767", "i16") "%more = lt(%k, %l)\n", FULL("d", "1", "i16") "%next = add(%k, %d)\n"},
	{REFUSED, "u16", "65530", FULL("l", "65535", "u16") "%more = le(%k, %l)\n", FULL("d", "1", "u16") "%next = add(%k, %d)\n"},
	{3, "u64", "3", FULL("l", "0", "u64") "%more = gt(%k, %l)\n", FULL("d", "1", "u64") "%next = sub(%k, %d)\n"},
	/* conversions, on either side: of what they have */
	{7, "i64", "120", FULL("l", "127", "i8") "%u = convert(%k, dtype=i8)\n%more = lt(%u, %l)\n", FULL("d", "1", "i64") "%next = add(%k, %d)\n"},
	{REFUSED, "i64", "120", FULL("l", "127", "i8") "%u = convert(%k, dtype=i8)\n%more = le(%u, %l)\n", FULL("d", "1", "i64") "%next = add(%k, %d)\n"},
	{5, "i64", "120", FULL("l", "125", "i64") "%more = lt(%k, %l)\n",
	 FULL("d", "1", "i64") "%u = convert(%k, dtype=i8)\n%v = convert(%u, dtype=i64)\n%next = "
			       "add(%v, %d)\n"},
	{REFUSED, "i64", "120", FULL("l", "130", "i64") "%more = lt(%k, %l)\n",
	 FULL("d", "1", "i64") "%u = convert(%k, dtype=i8)\n%v = convert(%u, dtype=i64)\n%next = "
			       "add(%v, %d)\n"},
	{REFUSED, "i64", "120", FULL("l", "130", "i64") "%more = lt(%k, %l)\n",
	 FULL("d", "1", "i64") "%u = convert(%k, dtype=i8)\n%v = convert(%u, dtype=i64)\n%next = "
			       "add(%d, %v)\n"},
	{REFUSED, "i64", "0", FULL("l", "300", "i64") "%u = convert(%l, dtype=i8)\n%v = convert(%u, dtype=i64)\n%more = lt(%k, %v)\n", FULL("d", "1", "i64") "%next = add(%k, %d)\n"},
	{REFUSED, "i64", "0", FULL("l", "-1", "i64") "%u = convert(%l, dtype=u8)\n%v = convert(%u, dtype=i64)\n%more = lt(%k, %v)\n", FULL("d", "1", "i64") "%next = add(%k, %d)\n"},
	{5, "i64", "295", FULL("l", "300", "i64") "%u = convert(%l, dtype=i16)\n%v = convert(%u, "
						  "dtype=i64)\n%more = lt(%k, %v)\n",
	 FULL("d", "1", "i64") "%next = add(%k, %d)\n"},
	{REFUSED, "i8", "0", FULL("l", "100", "i8") "%u = add(%l, %l)\n%more = lt(%k, %u)\n", FULL("d", "1", "i8") "%next = add(%k, %d)\n"},
};

static void lines(Text *t, const char *text)
{
	for (size_t n; *text; text += n) {
		n = strcspn(text, "\n") + 1;
		text_add(t, "    ");
		text_addn(t, text, n);
	}
}

static Graph *loop(const Loop *l)
{
	Text t;
	text_init(&t, ctx->arena);
	text_printf(&t,
		    "graph @f(%%x: f64[n]) where 1 <= n%s {\n  %%c = full(value=4, shape=[], "
		    "dtype=i64)\n",
		    l->unbounded ? "" : " <= 100");
	if (*l->start == '%')
		lines(&t, l->start);
	else
		text_printf(&t, "  %%s = full(value=%s, shape=[], dtype=%s)\n", l->start, l->dtype);
	text_printf(&t,
		    "  %%w = while([%%s, %%x0], [%%c], cond=graph @more(%%k: %s[], %%h: f64[], "
		    "%%c: i64[]) {\n",
		    l->dtype);
	lines(&t, l->more);
	text_printf(
		&t,
		"    return %%more\n  }, body=graph @round(%%k: %s[], %%h: f64[], %%c: i64[]) {\n",
		l->dtype);
	lines(&t, l->next);
	text_printf(&t, "    %%y = add(%%h, %%h)\n    return %%next, %%y\n  })\n  %%y = get(%%w, "
			"index=1)\n  return %%y\n}\n");
	char *at = strstr(t.data, "  %w = while");
	Text all;
	text_init(&all, ctx->arena);
	text_printf(&all,
		    "%.*s  %%r = slice(%%x, start=[0], end=[1], step=[1])\n  %%x0 = reshape(%%r, "
		    "shape=[])\n%s",
		    (int)(at - t.data), t.data, at);
	return parsed(all.data);
}

static Tensor vector(const double *values, int64_t n)
{
	Tensor t = {.dtype = DT_f64, .rank = n > 0, .dim = {n}};
	t.data = arena_alloc(ctx->arena, 8 * SIZE);
	memcpy(t.data, values, (n > 0 ? (size_t)n : 1) * sizeof *values);
	return t;
}

/* The value, and with `derived` the gradient by what is doubled. */
static void check(const Loop *l, Graph *g, bool derived)
{
	const double x[SIZE] = {1}, ct = 3;
	Tensor in[2] = {vector(x, SIZE), vector(&ct, 0)}, out[2];
	if (!interp(ctx, g, in, derived ? 2 : 1, out, derived ? 2 : 1, ctx->arena))
		fail_msg("%s %s: %s", l->more, l->next, ctx->last->text);
	double want = exp2(l->rounds);
	if (tensor_f64(&out[0], 0) != want || (derived && tensor_f64(&out[1], 0) != 3 * want))
		fail_msg("%s %s: %g and %g, expected %g", l->more, l->next, tensor_f64(&out[0], 0),
			 derived ? tensor_f64(&out[1], 0) : 0, want);
}

static void test_rounds(void **state)
{
	for (size_t k = 0; k < sizeof loops / sizeof *loops; k++) {
		const Loop *l = &loops[k];
		if (k) { /* symbols of its own */
			teardown(state);
			setup(state);
		}
		Graph *g = loop(l), *derived = transform_vjp(g, &(Wrt){0});
		if (!derived != (l->rounds == REFUSED))
			fail_msg("%s %s: %s", l->more, l->next,
				 derived ? "has a derivative" : ctx->last->text);
		if (!derived) {
			assert_non_null(strstr(
				ctx->last->text,
				"the number of rounds of this loop is not known before it runs"));
			continue;
		}
		check(l, g, false);
		check(l, derived, true);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rounds, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
