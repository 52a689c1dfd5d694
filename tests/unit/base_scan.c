/* Words, numbers and expressions of base/scan.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/scan.h"

static void test_words(void **state)
{
	(void)state;
	const char *s = " \n\tab_1+c";
	assert_false(scan_accept(&s, "b"));
	assert_string_equal(s, "ab_1+c");
	assert_int_equal(scan_word(s), 4);
	assert_int_equal(scan_word(s + 4), 0);
	assert_int_equal(scan_word("1a"), 0);
	assert_int_equal(scan_word(""), 0);
	assert_int_equal(scan_word("\xc3\xa9"), 0);
	assert_true(scan_accept(&s, "ab_1"));
	assert_true(scan_accept(&s, "+"));
	assert_string_equal(s, "c");
	s = "  ";
	assert_false(scan_accept(&s, "x"));
	assert_string_equal(s, "");
}

static void test_numbers(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t most, value;
		const char *rest; /* NULL: above `most` */
	} row[] = {{"0x", 9, 0, "x"},
		   {"007 ", 7, 7, " "},
		   {"8", 7, 0, NULL},
		   {"255", 255, 255, ""},
		   {"256", 255, 0, NULL},
		   {"9", 3, 0, NULL},
		   {"18446744073709551615]", UINT64_MAX, UINT64_MAX, "]"},
		   {"18446744073709551616", UINT64_MAX, 0, NULL},
		   {"184467440737095516150", UINT64_MAX, 0, NULL}};
	for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
		const char *s = row[k].text;
		uint64_t v;
		bool read = scan_number(&s, row[k].most, &v);
		assert_int_equal(read, row[k].rest != NULL);
		assert_string_equal(s, read ? row[k].rest : row[k].text);
		if (read)
			assert_true(v == row[k].value);
	}
}

/* A language whose values are texts with all brackets, of operands of one letter. */
typedef struct {
	const char *p, *text;
	int refuse; /* what join fails on */
} Reader;

typedef struct {
	char text[64];
} Value;

static bool operand(void *reader, void *value)
{
	Reader *r = reader;
	Value *v = value;
	const char *sign = scan_accept(&r->p, "~") ? "~" : "";
	scan_blanks(&r->p);
	if (scan_word(r->p) != 1)
		return false;
	snprintf(v->text, sizeof v->text, "%s%c", sign, *r->p++);
	return true;
}

static bool join(void *reader, int op, const char *from, void *left, const void *right)
{
	const Reader *r = reader;
	Value *a = left, was = *a;
	const Value *b = right;
	snprintf(a->text, sizeof a->text, "(%.20s%c%.20s@%d)", was.text, op, b->text,
		 (int)(from - r->text));
	return op != r->refuse;
}

static const char *read_text(const char *text, int refuse, const char *rest)
{
	static const ScanInfix infix[] = {{"->", 0},     {"**", 3, '^'}, {"*", 2, '*'},
					  {"+", 1, '+'}, {"-", 1, '-'},  {"~", 1, '+', true},
					  {NULL}};
	static const ScanGrammar g = {infix, sizeof(Value), operand, join};
	static Value v;
	Reader r = {text, text, refuse};
	if (!scan_expression(&g, &r.p, &r, &v))
		return NULL;
	assert_string_equal(r.p, rest);
	return v.text;
}

static void test_expressions(void **state)
{
	(void)state;
	assert_string_equal(read_text("a", 0, ""), "a");
	assert_string_equal(read_text(" a - b - c )", 0, " )"), "((a-b@1)-c@1)");
	assert_string_equal(read_text("a+b*c", 0, ""), "(a+(b*c@2)@0)");
	assert_string_equal(read_text("a*b+c", 0, ""), "((a*b@0)+c@0)");
	assert_string_equal(read_text("a**b*c", 0, ""), "((a^b@0)*c@0)");
	assert_string_equal(read_text("a ->b", 0, " ->b"), "a");
	assert_string_equal(read_text("a*b -> c", 0, " -> c"), "(a*b@0)");
	assert_string_equal(read_text("a ~ b", 0, ""), "(a+~b@0)");
	assert_null(read_text("a+", 0, ""));
	assert_null(read_text("", 0, ""));
	assert_null(read_text("a*b+c", '*', ""));
	assert_null(read_text("a+b*c", '*', ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_words),
					   cmocka_unit_test(test_numbers),
					   cmocka_unit_test(test_expressions)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
