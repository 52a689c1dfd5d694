#include "tests/help/golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SHOWN = 20 };

static void bless(const char *path, const char *text)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	size_t n = strlen(text);
	assert_int_equal(fwrite(text, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

void golden_check(const char *path, const char *text)
{
	if (getenv("BLESS"))
		bless(path, text);
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	char *expected = NULL;
	size_t room = 0;
	uint32_t differ = 0;
	for (ssize_t n; (n = getline(&expected, &room, f)) > 0; text += strcspn(text, "\n") + (*text != 0)) {
		size_t have = strcspn(text, "\n");
		bool same = have + 1 == (size_t)n && !memcmp(text, expected, have);
		if (!same && differ++ < SHOWN)
			print_error("expected %sgot      %.*s\n", expected, (int)have, text);
	}
	free(expected);
	fclose(f);
	assert_int_equal(differ, 0);
	assert_string_equal(text, "");
}
