#include "tests/help/records.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_OPS = 4096, MAX_NAME = 96 };

static struct {
	char op[MAX_NAME], family[MAX_NAME];
} placed[MAX_OPS];
static uint32_t nplaced;

static void find_files(const char *folder, const char *pattern, glob_t *found)
{
	char path[4096];
	assert_true((size_t)snprintf(path, sizeof path, "%s/%s", folder, pattern) < sizeof path);
	int status = glob(path, 0, NULL, found);
	assert_true(status == 0 || status == GLOB_NOMATCH);
}

/* The name of a file without its ending, behind that of the folder. */
static void family_of_path(const char *path, size_t folder, char *family)
{
	const char *name = path + folder + 1;
	size_t n = strcspn(name, ".");
	assert_true(n < MAX_NAME);
	memcpy(family, name, n);
	family[n] = 0;
}

FILE *records_open(const char *record)
{
	char folder[4096], block[4096];
	snprintf(folder, sizeof folder, TEST_DATA "/%s", record);
	glob_t found;
	find_files(folder, "*/*.txt", &found);
	assert_true(found.gl_pathc > 0);
	FILE *all = tmpfile();
	assert_non_null(all);
	for (size_t k = 0; k < found.gl_pathc; k++) {
		FILE *f = fopen(found.gl_pathv[k], "rb");
		assert_non_null(f);
		for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
			assert_int_equal(fwrite(block, 1, n, all), n);
		fclose(f);
	}
	globfree(&found);
	rewind(all);
	return all;
}

/* ---- families ---- */

/* Each schema of the blocks begins with the name of an operator. */
static void place_ops(const char *path, size_t folder)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	char *text = NULL;
	size_t room = 0;
	if (getdelim(&text, &room, 0, f) > 0)
		for (const char *p = text; (p = strstr(p, ".schema")); p++) {
			assert_true(nplaced < MAX_OPS);
			if (sscanf(p, ".schema = \"%95[a-zA-Z0-9_.](", placed[nplaced].op) == 1)
				family_of_path(path, folder, placed[nplaced++].family);
		}
	free(text);
	fclose(f);
}

static void place_all(void)
{
	static const char folder[] = TEST_DATA "/../../ops";
	glob_t found;
	find_files(folder, "*/*.c", &found);
	for (size_t k = 0; k < found.gl_pathc; k++)
		place_ops(found.gl_pathv[k], strlen(folder));
	globfree(&found);
}

const char *records_family(const char *op)
{
	if (!nplaced)
		place_all();
	for (uint32_t k = 0; k < nplaced; k++)
		if (!strcmp(placed[k].op, op))
			return placed[k].family;
	fail_msg("no file of ops has a schema of %s", op);
	return NULL;
}

static bool is_family(const char *path, size_t folder, const char *const *family, uint32_t n)
{
	char own[MAX_NAME];
	family_of_path(path, folder, own);
	for (uint32_t k = 0; k < n; k++)
		if (!strcmp(own, family[k]))
			return true;
	return false;
}

void records_only(const char *record, const char *const *family, uint32_t n)
{
	char folder[4096];
	snprintf(folder, sizeof folder, TEST_DATA "/%s", record);
	glob_t found;
	find_files(folder, "*/*.txt", &found);
	for (size_t k = 0; k < found.gl_pathc; k++) {
		const char *path = found.gl_pathv[k];
		if (is_family(path, strlen(folder), family, n))
			continue;
		if (getenv("BLESS"))
			assert_int_equal(remove(path), 0);
		else
			fail_msg("%s is recorded of no operator", path);
	}
	globfree(&found);
}
