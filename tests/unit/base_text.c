/* Hashes, the intern table and text buffers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/intern.h"
#include "base/text.h"
#include "base/visible.h"

static int setup(void **state)
{
	*state = arena_new(NULL);
	return !*state;
}

static int teardown(void **state)
{
	arena_free(*state);
	return 0;
}

static void test_hash(void **state)
{
	(void)state;
	char s[64] = {0};
	uint64_t seen[65];
	for (size_t n = 0; n <= 64; n++) { /* zeros of every length differ */
		seen[n] = hash_bytes(s, n, 0);
		for (size_t k = 0; k < n; k++)
			assert_true(seen[k] != seen[n]);
	}
	assert_true(hash_bytes("abc", 3, 1) != hash_bytes("abc", 3, 2));
	assert_true(hash_combine(1, 2) != hash_combine(2, 1));
	unsigned low[16] = {0};
	for (uint32_t k = 0; k < 16000; k++)
		low[hash_bytes(&k, 4, 0) & 15]++;
	for (int k = 0; k < 16; k++)
		assert_in_range(low[k], 850, 1150);
}

static void test_intern(void **state)
{
	Intern t;
	intern_init(&t, *state);
	assert_int_equal(intern_find(&t, "x", 1), 0);
	char key[16];
	for (int round = 0; round < 2; round++)
		for (uint32_t k = 1; k <= 5000; k++) {
			bool fresh;
			int n = snprintf(key, sizeof key, "key%u", k * 7);
			assert_int_equal(intern(&t, key, (size_t)n, &fresh), k);
			assert_int_equal(fresh, !round);
		}
	assert_int_equal(intern_find(&t, "key14", 5), 2);
	assert_int_equal(intern_find(&t, "key1", 4), 0);
	assert_memory_equal(intern_key(&t, 2), "key14", 5);
	assert_int_equal(intern(&t, "", 0, NULL), 5001);
	assert_int_equal(intern(&t, NULL, 0, NULL), 5001);
	assert_ptr_equal(intern_str(&t, "same"), intern_str(&t, "same"));
	assert_int_not_equal(intern(&t, "same", 4, NULL), intern(&t, "same", 5, NULL));
}

static void test_growth(void **state)
{
	Text t;
	text_init(&t, *state);
	assert_string_equal(t.data, "");
	for (int k = 0; k < 1000; k++) {
		text_printf(&t, "%d,", k);
		assert_int_equal(t.data[t.n], 0);
	}
	assert_int_equal(t.n, 10 + 90 * 2 + 900 * 3 + 1000);
	assert_memory_equal(t.data + t.n - 8, "998,999,", 9);
	text_init(&t, *state);
	text_printf(&t, "%0*d", 63, 0); /* fills the first buffer exactly */
	text_char(&t, 'x');
	text_addn(&t, "yz?", 2);
	assert_int_equal(t.n, 66);
	assert_string_equal(t.data + 62, "0xyz");
}

static void assert_double(Arena *a, double v, const char *want)
{
	Text t;
	text_init(&t, a);
	text_double(&t, v);
	assert_string_equal(t.data, want);
}

static void test_double(void **state)
{
	assert_double(*state, 0.0, "0.0");
	assert_double(*state, -0.0, "-0.0");
	assert_double(*state, 1.0, "1.0");
	assert_double(*state, 0.1, "0.1");
	assert_double(*state, 1e20, "1e+20");
	assert_double(*state, 123456789012.0, "123456789012.0");
	assert_double(*state, 1.0 / 3.0, "0.3333333333333333");
	assert_double(*state, 5e-324, "5e-324");
	assert_double(*state, 1.0 / 0.0, "inf");
	assert_double(*state, -1.0 / 0.0, "-inf");
	assert_double(*state, 0.0 / 0.0, "nan");
	uint64_t seed = 3;
	for (int k = 0; k < 20000; k++) {
		seed = hash_combine(seed, 1);
		double v, back;
		memcpy(&v, &seed, 8);
		Text t;
		text_init(&t, *state);
		text_double(&t, v);
		back = strtod(t.data, NULL);
		assert_true(back == v || (v != v && back != back));
		assert_true(strpbrk(t.data, ".en") != NULL);
	}
}

static void test_visible(void **state)
{
	static const struct {
		const char *text, *keep, *shown;
	} cases[] = {
		{"plain", "", "plain"},
		{"gr\xc3\xb6\xc3\x9f" "e", "", "gr\xc3\xb6\xc3\x9f" "e"},
		{"a\nb\tc", "\n", "a\nb<U+0009>c"},
		{"\x1b[31m\x7f", "", "<U+001B>[31m<U+007F>"},
		{"a\xe2\x80\xae" "b", "", "a<U+202E>b"},
		{"\xf3\xa0\x81\x81", "", "<U+E0041>"},
		{"\xff\xc3", "", "<0xff><0xc3>"},
		/* overlong; a surrogate */
		{"\xc0\xaf\xed\xa0\x80", "", "<0xc0><0xaf><0xed><0xa0><0x80>"},
		{"\xf0\x9f\x98\x80", "", "\xf0\x9f\x98\x80"},
	};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		Text t;
		text_init(&t, *state);
		text_visible(&t, cases[k].text, cases[k].keep);
		assert_string_equal(t.data, cases[k].shown);
	}
}

static void test_write_file(void **state)
{
	char dir[] = "weft-text-XXXXXX", back[64];
	assert_non_null(mkdtemp(dir));
	const char *path = arena_printf(*state, "%s/out", dir);
	Text t;
	text_init(&t, *state);
	for (int round = 0; round < 2; round++) { /* the second replaces the first */
		text_printf(&t, "line %d\n", round);
		assert_true(text_write_file(&t, path));
		FILE *f = fopen(path, "r");
		assert_non_null(f);
		size_t n = fread(back, 1, sizeof back, f);
		fclose(f);
		assert_int_equal(n, t.n);
		assert_memory_equal(back, t.data, n);
	}
	assert_false(text_write_file(&t, arena_printf(*state, "%s/none/out", dir)));
	assert_false(text_write_file(&t, dir));
	assert_true(text_write_file(&t, "/dev/null"));
	struct stat st;
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0); /* no temporary file is left */
}

static void test_identifier(void **state)
{
	(void)state;
	static const char *const yes[] = {"x", "_", "x9", "Zz_0", "for"}, *const no[] = {
										  "",     "9x",
										  "a b",  "a.b",
										  "\xe4", "x\xe4"};
	for (size_t k = 0; k < sizeof yes / sizeof *yes; k++)
		assert_true(text_is_identifier(yes[k]));
	for (size_t k = 0; k < sizeof no / sizeof *no; k++)
		assert_false(text_is_identifier(no[k]));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_hash),    TEST(test_intern),     TEST(test_growth),    TEST(test_double),
		TEST(test_visible), TEST(test_identifier), TEST(test_write_file)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
