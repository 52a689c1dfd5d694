#include "tests/help/zip_file.h"

#include <stdlib.h>
#include <string.h>

static void add(ZipBytes *b, const void *p, size_t n)
{
	b->data = realloc(b->data, b->size + n + 1);
	memcpy(b->data + b->size, p, n);
	b->size += n;
}

static void add_le(ZipBytes *b, uint64_t v, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++, v >>= 8)
		add(b, &(uint8_t){(uint8_t)v}, 1);
}

static uint32_t crc(const uint8_t *p, size_t n)
{
	uint32_t c = ~0u;
	while (n--) {
		c ^= *p++;
		for (int k = 0; k < 8; k++)
			c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
	}
	return ~c;
}

static void add_fields(ZipBytes *b, const ZipEntry *e, uint32_t sum)
{
	add_le(b, 20, 2);
	add_le(b, 0, 8); /* flags, method, time, date */
	add_le(b, sum, 4);
	add_le(b, e->size, 4);
	add_le(b, e->size, 4);
	add_le(b, strlen(e->name), 2);
}

ZipBytes zip_pack(const ZipFile *z)
{
	ZipBytes b = {0}, dir = {0};
	for (uint32_t k = 0; k < z->n; k++) {
		const ZipEntry *e = &z->entry[k];
		uint32_t sum = crc(e->data, e->size);
		add(&dir, "PK\1\2\24\0", 6);
		add_fields(&dir, e, sum);
		add_le(&dir, 0, 12); /* extra, comment, disk, attributes */
		add_le(&dir, b.size, 4);
		add(&dir, e->name, strlen(e->name));
		add(&b, "PK\3\4", 4);
		add_fields(&b, e, sum);
		add_le(&b, 0, 2);
		add(&b, e->name, strlen(e->name));
		add(&b, e->data, e->size);
	}
	size_t at = b.size;
	add(&b, dir.data ? dir.data : (uint8_t *)"", dir.size);
	add(&b, "PK\5\6\0\0\0\0", 8);
	add_le(&b, z->n, 2);
	add_le(&b, z->n, 2);
	add_le(&b, dir.size, 4);
	add_le(&b, at, 4);
	add_le(&b, 0, 2);
	free(dir.data);
	return b;
}

void zip_put(ZipFile *z, const char *name, const void *data, size_t size)
{
	ZipEntry *e = &z->entry[z->n++];
	*e = (ZipEntry){strdup(name), malloc(size + 1), size};
	if (size)
		memcpy(e->data, data, size);
	e->data[size] = 0;
}

void zip_drop(ZipFile *z)
{
	for (uint32_t k = 0; k < z->n; k++) {
		free(z->entry[k].name);
		free(z->entry[k].data);
	}
	z->n = 0;
}
