/* weft_file.h: files that are whole, cut off anywhere, and damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "weft_file.h"

static const char path[] = "driver_file_test.so";
static unsigned char *whole; /* this program, which is a shared object to the loader */
static size_t size;

static void put(const unsigned char *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static int read_whole(void **state)
{
	(void)state;
	FILE *f = fopen("/proc/self/exe", "rb");
	if (!f || fseek(f, 0, SEEK_END))
		return -1;
	size = (size_t)ftell(f);
	whole = malloc(size);
	rewind(f);
	const size_t got = whole ? fread(whole, 1, size, f) : 0;
	fclose(f);
	return got == size ? 0 : -1;
}

static int forget(void **state)
{
	(void)state;
	free(whole);
	return unlink(path);
}

static int check(const char **said)
{
	static WeftStatus status;
	memset(&status, 1, sizeof status);
	const int code = weft_file_check(path, &status);
	assert_int_equal(status.code, code);
	assert_int_equal(weft_file_check(path, NULL), code);
	assert_int_equal(code ? strncmp(status.message, path, strlen(path)) : *status.message, 0);
	*said = status.message;
	return code;
}

static void test_whole(void **state)
{
	(void)state;
	const char *said;
	put(whole, size);
	assert_int_equal(check(&said), WEFT_OK);
}

/* Every length up to the headers' end, then about a thousand lengths, and the last ones. */
static void test_truncated(void **state)
{
	(void)state;
	const char *said;
	put(whole, size);
	for (size_t n = size - 1;;
	     n -=
	     n > size - 100 || n <= 2000 ? 1 : (size / 1000 < n - 2000 ? size / 1000 : n - 2000)) {
		assert_int_equal(truncate(path, (off_t)n), 0);
		assert_int_equal(check(&said), WEFT_ERR_FILE);
		if (n >= 64)
			assert_non_null(strstr(said, n >= 2000 ? "truncated" : ""));
		if (!n)
			break;
	}
	assert_non_null(strstr(said, "it is empty"));
}

/* Any byte of the header and of the segments' table may be another: never more than a sentence. */
static void test_damaged(void **state)
{
	(void)state;
	const char *said;
	unsigned char h[2000];
	for (size_t k = 0; k < 600; k++) {
		memcpy(h, whole, sizeof h);
		h[k] ^= (unsigned char)(1 << k % 8);
		put(h, sizeof h);
		assert_int_equal(check(&said), WEFT_ERR_FILE);
		h[k] = 0xff;
		put(h, sizeof h);
		assert_int_equal(check(&said), WEFT_ERR_FILE);
	}
}

static void says(const unsigned char *bytes, size_t n, const char *sentence)
{
	const char *said;
	put(bytes, n);
	assert_int_equal(check(&said), WEFT_ERR_FILE);
	assert_string_equal(said + strlen(path) + 2, sentence);
}

static void test_other_files(void **state)
{
	(void)state;
	unsigned char h[2000];
	says((const unsigned char *)"PK\3\4 and more", 14,
	     "it is a zip archive, like a .pt2 model: compile it first");
	says((const unsigned char *)"!<arch>\nmember", 14,
	     "it is a static library, which a linker takes");
	says((const unsigned char *)"graph @f() {", 12, "it is no shared object");
	memcpy(h, whole, sizeof h);
	h[18] ^= 64;
	char other[80];
	snprintf(other, sizeof other, "is for another machine: one without a name here, this is %s",
		 weft_file_machine_name(weft_file_machine()));
	says(h, sizeof h, other);
	memcpy(h, whole, sizeof h);
	h[16] = 1;
	says(h, sizeof h, "it is an object file, which a linker takes");
	h[16] = 2;
	says(h, sizeof h, "it is no shared object");
	unlink(path);
	WeftStatus status;
	assert_int_equal(weft_file_check(path, &status), WEFT_ERR_FILE);
	assert_string_equal(status.message, "driver_file_test.so: cannot be opened");
	put(whole, size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_other_files),
	};
	return cmocka_run_group_tests(tests, read_whole, forget);
}
