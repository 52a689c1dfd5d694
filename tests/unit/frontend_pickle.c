/* Pickles, operation by operation: the tree that each makes, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frontend/pt2/pickle.h"
#include "ctx_fixture.h"

static void say(Text *t, const PickleValue *v);

static void say_items(Text *t, const PickleValue *v, const char *open, const char *close)
{
	text_add(t, open);
	for (uint32_t k = 0; k < v->item.n; k++) {
		text_add(t, k ? " " : "");
		say(t, v->item.data[k]);
	}
	text_add(t, close);
}

static void say(Text *t, const PickleValue *v)
{
	switch (v->kind) {
	case PICKLE_NONE: text_add(t, "None"); break;
	case PICKLE_BOOL: text_add(t, v->i ? "True" : "False"); break;
	case PICKLE_INT: text_printf(t, "%lld", (long long)v->i); break;
	case PICKLE_FLOAT: text_printf(t, "%g", v->f); break;
	case PICKLE_TEXT: text_printf(t, "'%s'", v->text); break;
	case PICKLE_GLOBAL: text_printf(t, "<%s>", v->text); break;
	case PICKLE_TUPLE: say_items(t, v, "(", ")"); break;
	case PICKLE_LIST: say_items(t, v, "[", "]"); break;
	case PICKLE_DICT: say_items(t, v, "{", "}"); break;
	case PICKLE_CALL: say_items(t, v, "call(", ")"); break;
	case PICKLE_PERSISTENT: say_items(t, v, "stored(", ")"); break;
	case PICKLE_MARK: text_add(t, "mark"); break;
	}
}

/* The tree, or what is said of the pickle. In memory of its own, so that the sanitizer sees reads
 * past the end. */
static const char *read(const char *bytes, size_t n)
{
	Text t;
	text_init(&t, ctx->arena);
	uint8_t *copy = malloc(n + !n);
	memcpy(copy, bytes, n);
	uint32_t before = ctx->nerror;
	const PickleValue *v = pickle_read(ctx, "w", copy, n);
	free(copy);
	if (v)
		say(&t, v);
	assert_int_equal(ctx->nerror, before + !v);
	if (!v)
		return ctx->last->text;
	return t.data;
}

#define IS(bytes, want) assert_string_equal(read(bytes, sizeof bytes - 1), want)
#define DAMAGED(bytes, why) IS(bytes, "w: the pickle is damaged: " why)

static void test_values(void **state)
{
	(void)state;
	IS("N.", "None");
	IS("\x80\x02N.", "None");
	IS("\x95NNNNNNNN\x88.", "True"); /* a frame and its length */
	IS("\x89.", "False");
	IS("K\xff.", "255");
	IS("M\x01\xff.", "65281");
	IS("J\x01\x02\x00\x00.", "513");
	IS("J\xfe\xff\xff\xff.", "-2");
	IS("J\xff\xff\xff\x7f.", "2147483647");
	IS("J\x00\x00\x00\x80.", "-2147483648");
	IS("\x8a\x00.", "0");
	IS("\x8a\x01\x7f.", "127");
	IS("\x8a\x01\x80.", "-128");
	IS("\x8a\x02\x80\x00.", "128");
	IS("\x8a\x05\x00\x00\x00\x00\xff.", "-4294967296");
	IS("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f.", "9223372036854775807");
	IS("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80.", "-9223372036854775808");
	IS("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x00.",
	   "w: the pickle is damaged: an integer of more than 64 bits at byte 2");
	IS("G\x3f\xf8\x00\x00\x00\x00\x00\x00.", "1.5");
	IS("G\xc0\x45\x00\x00\x00\x00\x00\x00.", "-42");
	IS("X\x03\x00\x00\x00" "abc.", "'abc'");
	IS("X\x00\x00\x00\x00.", "''");
	IS("\x8c\x02" "ab.", "'ab'");
	IS("\x8d\x01\x00\x00\x00\x00\x00\x00\x00" "a.", "'a'");
	IS("ctorch\nfloat32\n.", "<torch float32>");
	IS("c\n\n.", "< >");
	IS("\x8c\x01" "m\x8c\x01" "n\x93.", "<m n>");
}

static void test_containers(void **state)
{
	(void)state;
	IS(").", "()");
	IS("].", "[]");
	IS("}.", "{}");
	IS("K\x01\x85.", "(1)");
	IS("K\x01K\x02\x86.", "(1 2)");
	IS("K\x00K\x01K\x02K\x03\x87.", "(1 2 3)"); /* 0 stays below */
	IS("(t.", "()");
	IS("(K\x01K\x02K\x03K\x04t.", "(1 2 3 4)");
	IS("(K\x01(K\x02tl.", "[1 (2)]");
	IS("(K\x01K\x02" "d.", "{1 2}");
	IS("]K\x01" "a.", "[1]");
	IS("](K\x01K\x02" "e.", "[1 2]");
	IS("](e.", "[]");
	IS("]K\x01" "a(K\x02K\x03" "e.", "[1 2 3]");
	IS("}K\x01K\x02s.", "{1 2}");
	IS("}K\x01K\x02s(K\x03K\x04K\x05K\x06u.", "{1 2 3 4 5 6}");
	IS("cm\nf\n)R.", "call(<m f> ())");
	IS("cm\nf\nK\x01\x85\x81.", "call(<m f> (1))");
	IS("cm\nf\n)R}b.", "call(<m f> () {})");
	IS("ccollections\nOrderedDict\n)R.", "{}");
	IS("ccollections\nOrderedDict\n)R(K\x01K\x02u}b.", "{1 2}"); /* with attributes */
	IS("ccollections\nOrderedDict\n]\x85R.", "call(<collections OrderedDict> ([]))");
	IS("}K\x01K\x02s}b.", "{1 2}");
	IS("K\x07Q.", "stored(7)");
	IS("K\x07K\x08Q\x86.", "(7 stored(8))");
}

static void test_memo(void **state)
{
	(void)state;
	IS("K\x05q\x00h\x00\x86.", "(5 5)");
	IS("K\x05q\x03K\x06h\x03\x87.", "(5 6 5)");
	IS("K\x05r\x02\x00\x00\x00j\x02\x00\x00\x00\x86.", "(5 5)");
	IS("K\x05\x94K\x06\x94h\x01h\x00\x86.", "(6 5)");
	IS("K\x05q\x02K\x06\x94h\x03\x85.", "(6)"); /* behind the largest number so far */
	DAMAGED("]q\x00K\x01" "ah\x00K\x02s.", "items of something that has none at byte 11");
	IS("]q\x00K\x01" "ah\x00K\x02" "a.", "[1 2]"); /* one list, seen twice */
}

static void test_damaged(void **state)
{
	(void)state;
	IS("", "w: the pickle is damaged: it does not end at byte 0");
	DAMAGED("N", "it does not end at byte 1");
	DAMAGED("NN", "it does not end at byte 2");
	DAMAGED(".", "nothing on the stack at byte 0");
	DAMAGED("(.", "nothing on the stack at byte 1");
	DAMAGED("\x80", "cut off at byte 1");
	DAMAGED("\x95NNNNNNN", "cut off at byte 1");
	DAMAGED("K", "cut off at byte 1");
	DAMAGED("M.", "cut off at byte 1");
	DAMAGED("J...", "cut off at byte 1");
	DAMAGED("G.......", "cut off at byte 1");
	DAMAGED("\x8a", "cut off at byte 1");
	DAMAGED("\x8a\x02.", "cut off at byte 2");
	DAMAGED("X\x02\x00\x00\x00" "a", "cut off at byte 5");
	DAMAGED("X\x02\x00\x00", "cut off at byte 1");
	DAMAGED("\x8c\x02" "a", "cut off at byte 2");
	DAMAGED("\x8c\x02" "a\x00.", "a text with a NUL at byte 4");
	DAMAGED("\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", "cut off at byte 9");
	DAMAGED("cm\nf", "a line without an end at byte 3");
	DAMAGED("cm", "a line without an end at byte 1");
	DAMAGED("c\x00\n\n.", "a text with a NUL at byte 2");
	DAMAGED("\x85.", "nothing on the stack at byte 1");
	DAMAGED("K\x01\x86.", "nothing on the stack at byte 3");
	DAMAGED("(K\x01\x86.", "nothing on the stack at byte 4");
	DAMAGED("K\x01K\x02\x87.", "nothing on the stack at byte 5");
	DAMAGED("t.", "no mark on the stack at byte 1");
	DAMAGED("K\x01l.", "no mark on the stack at byte 3");
	DAMAGED("(e.", "nothing to add to at byte 2");
	DAMAGED("K\x01(e.", "items of something that has none at byte 4");
	DAMAGED("((e.", "items of something that has none at byte 3");
	DAMAGED("K\x01" "a.", "nothing on the stack at byte 3");
	DAMAGED("}K\x01" "a.", "items of something that has none at byte 4");
	DAMAGED("]K\x01K\x02s.", "items of something that has none at byte 6");
	DAMAGED("NNb.", "items of something that has none at byte 3");
	DAMAGED("}b.", "nothing on the stack at byte 2");
	DAMAGED("ccollections\nOrderedDict\nR.", "nothing on the stack at byte 26");
	DAMAGED("q\x00.", "nothing to remember at byte 2");
	DAMAGED("Nq\x04.", "an impossible number of remembered values at byte 3");
	DAMAGED("Nr\x07\x00\x00\x00.", "an impossible number of remembered values at byte 6");
	DAMAGED("Nq", "cut off at byte 2");
	DAMAGED("h\x00.", "a value that was not remembered at byte 2");
	DAMAGED("Nq\x02h\x01.", "a value that was not remembered at byte 5");
	DAMAGED("Nq\x00h\x01.", "a value that was not remembered at byte 5");
	DAMAGED("NN\x93.", "a global without a name at byte 3");
	DAMAGED("\x8c\x01" "aN\x93.", "a global without a name at byte 5");
	DAMAGED("N\x8c\x01" "a\x93.", "a global without a name at byte 5");
	DAMAGED("\x8c\x01" "a\x93.", "nothing on the stack at byte 4");
	IS("I1\n.", "w: the pickle has an operation (0x49 at byte 0) that tensors do not need");
}

static void test_looking(void **state)
{
	(void)state;
	static const char data[] = "}\x8c\x01"
				   "aK\x01s\x8c\x01"
				   "bK\x02s\x8c\x01"
				   "aK\x03sK\x09K\x04s.";
	const PickleValue *dict = pickle_read(ctx, "w", (const uint8_t *)data, sizeof data - 1);
	assert_non_null(dict);
	assert_int_equal(pickle_get(dict, "a")->i, 3); /* the last one counts */
	assert_int_equal(pickle_get(dict, "b")->i, 2);
	assert_null(pickle_get(dict, "c"));
	assert_null(pickle_get(NULL, "a"));
	assert_null(pickle_get(pickle_item(dict, 0), "a"));
	assert_int_equal(pickle_item(dict, 7)->i, 4);
	assert_null(pickle_item(dict, 8));
	assert_null(pickle_item(NULL, 0));
	assert_true(pickle_is(dict, PICKLE_DICT, NULL) && !pickle_is(dict, PICKLE_LIST, NULL));
	assert_true(pickle_is(pickle_item(dict, 0), PICKLE_TEXT, "a") &&
		    !pickle_is(pickle_item(dict, 0), PICKLE_TEXT, "b"));
	assert_false(pickle_is(NULL, PICKLE_NONE, NULL));
	static const char odd[] = "(\x8c\x01" "aK\x01\x8c\x01" "bd."; /* a key without a value */
	dict = pickle_read(ctx, "w", (const uint8_t *)odd, sizeof odd - 1);
	assert_int_equal(pickle_get(dict, "a")->i, 1);
	assert_null(pickle_get(dict, "b"));
	static const char made[] = "cm\nf\nK\x05\x85R.", wrong[] = "cm\nf\nK\x05R.",
			  named[] = "\x8c\x03"
				    "m f)R.";
	const PickleValue *call = pickle_read(ctx, "w", (const uint8_t *)made, sizeof made - 1);
	assert_int_equal(pickle_item(pickle_call_of(call, "m f"), 0)->i, 5);
	assert_null(pickle_call_of(call, "m g"));
	assert_null(pickle_call_of(NULL, "m f"));
	assert_null(pickle_call_of(dict, "m f"));
	assert_null(pickle_call_of(pickle_read(ctx, "w", (const uint8_t *)wrong, sizeof wrong - 1),
				   "m f"));
	assert_null(pickle_call_of(pickle_read(ctx, "w", (const uint8_t *)named, sizeof named - 1),
				   "m f"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(values), TEST(containers), TEST(memo),
					   TEST(damaged), TEST(looking)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
