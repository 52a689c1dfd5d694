/* Zip files in memory, stored, for tests that make archives. */
#ifndef WEFT_TESTS_HELP_ZIP_FILE_H
#define WEFT_TESTS_HELP_ZIP_FILE_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
	char *name;
	uint8_t *data; /* with a 0 behind it */
	size_t size;
} ZipEntry;

typedef struct {
	ZipEntry entry[200];
	uint32_t n;
} ZipFile;

typedef struct {
	uint8_t *data; /* the caller frees it */
	size_t size;
} ZipBytes;

/* Copies both. */
void zip_put(ZipFile *, const char *name, const void *data, size_t size);
ZipBytes zip_pack(const ZipFile *);
/* Frees the members. */
void zip_drop(ZipFile *);

#endif
