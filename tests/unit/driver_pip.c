/* Where pip places libraries of NVIDIA: found for the Python that is named, and for no other. */
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

#include "base/temp.h"
#include "driver/gpu/pip.h"

static char root[] = "/tmp/weft-pip-XXXXXX", line[2 * PATH_MAX];

/* Returns a path below the folder of the test, valid until the next call. */
static const char *below(const char *path)
{
	snprintf(line, sizeof line, "%s/%s", root, path);
	return line;
}

/* Makes an empty file, which can be executed, and the folders it is in. */
static void make(const char *path)
{
	char *p = line + strlen(below(path)) - strlen(path);
	while ((p = strchr(p, '/'))) {
		*p = 0;
		mkdir(line, 0700);
		*p++ = '/';
	}
	FILE *f = fopen(line, "w");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(chmod(line, 0700), 0);
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(root))
		return 1;
	make("an[en]v*/bin/python");
	make("an[en]v*/bin/python3");
	make("an[en]v*/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
	make("anev/lib/python3.11/site-packages/nvidia/cu13/lib/libother.so.1");
	make("debian/bin/python3");
	make("debian/local/lib/python3.13/dist-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
	make("none/bin/python3");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	temp_remove(root);
	return access(root, F_OK) ? 0 : 1;
}

/* Checks where the library is found for the value of WEFT_PYTHON, and with bin of the first in
 * PATH; NULL: nowhere. */
static void expect(const char *python, const char *path, const char *library, const char *want)
{
	char folder[PATH_MAX] = "";
	if (python)
		setenv("WEFT_PYTHON", *python ? below(python) : "", 1);
	else
		unsetenv("WEFT_PYTHON");
	setenv("PATH", below(path), 1);
	assert_int_equal(pip_folder(library, folder), want != NULL);
	if (want)
		assert_string_equal(folder, below(want));
}

static const char found[] = "an[en]v*/lib/python3.11/site-packages/nvidia/cu13/lib";

static void test_named(void **state)
{
	(void)state;
	expect("an[en]v*", "none/bin", "libnvrtc.so.13", found);
	expect("an[en]v*/bin/python", "none/bin", "libnvrtc.so.13", found);
	expect("an[en]v*", "none/bin", "libnvrtc.so.12", NULL);
	expect("an[en]v*", "none/bin", "libother.so.1", NULL); /* what the pattern matches */
	expect("none", "an[en]v*/bin", "libnvrtc.so.13", NULL);
	expect("nowhere/bin/python", "an[en]v*/bin", "libnvrtc.so.13", NULL);
}

static void test_on_path(void **state)
{
	(void)state;
	expect(NULL, "an[en]v*/bin", "libnvrtc.so.13", found);
	expect("", "an[en]v*/bin", "libnvrtc.so.13", found);
	expect(NULL, "nowhere", "libnvrtc.so.13", NULL);
	expect(NULL, "debian/bin", "libnvrtc.so.12",
	       "debian/local/lib/python3.13/dist-packages/nvidia/cuda_nvrtc/lib");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_named),
					   cmocka_unit_test(test_on_path)};
	return cmocka_run_group_tests(tests, setup, teardown);
}
