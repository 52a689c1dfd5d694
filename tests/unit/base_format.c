/* format_text beside vsnprintf, in rooms that are too small, too. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/format.h"

enum { MOST = 96, UNTOUCHED = '#' };

static void same(size_t size, const char *fmt, va_list args)
{
	char want[MOST], got[MOST];
	va_list again;
	va_copy(again, args);
	memset(want, UNTOUCHED, sizeof want);
	memset(got, UNTOUCHED, sizeof got);
	assert_int_equal(format_text(got, size, fmt, args), vsnprintf(want, size, fmt, again));
	va_end(again);
	if (size)
		assert_string_equal(got, want);
	assert_int_equal(got[size], UNTOUCHED);
}

__attribute__((format(printf, 1, 2))) static void check(const char *fmt, ...)
{
	for (size_t size = 0; size < MOST; size++) {
		va_list args;
		va_start(args, fmt);
		same(size, fmt, args);
		va_end(args);
	}
}

static void test_done_here(void **state)
{
	(void)state;
	check("%s", "");
	check("a%%b");
	check("for (int %s = %d; %s < %u; %s++)", "i", 0, "i", 10u, "i");
	check("%d %d %d %d", 7, -7, INT_MAX, INT_MIN);
	check("%u %u", 0u, UINT_MAX);
	check("%ld %ld %ld", 0L, LONG_MAX, LONG_MIN);
	check("%lu", ULONG_MAX);
	check("%c%c", 'x', ';');
}

/* Arguments behind one that vsnprintf prints are its own, too. */
static void test_others(void **state)
{
	(void)state;
	check("%5d|%-5d|%05d|%+d", 12, 12, 12, 12);
	check("%.3s|%.*s|%8s", "abcdef", 2, "abcdef", "abc");
	check("%x %o %zu %lld %hhd %lx", 255u, 8u, (size_t)9, -1LL, 'a', 255L);
	check("%s %.17g %s %d", "before", 0.1, "behind", 3);
	check("%d%s%p", 1, "2", (void *)(uintptr_t)16);
}

static void test_long(void **state)
{
	(void)state;
	char text[4 * MOST];
	memset(text, 'y', sizeof text);
	text[sizeof text - 1] = 0;
	check("%s%d", text, 5);
	check("%s%5d", text, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_done_here),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_long),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
