#include "frontend/files/zip_writer.h"

#include <string.h>

#include "base/crc32.h"

enum { UTF8_NAMES = 0x800, NEW_YEAR_1980 = 0x21, PLAIN = 20, ZIP64 = 45 };

static void add_le(Text *t, uint64_t v, uint32_t n)
{
	for (; n--; v >>= 8)
		text_char(t, (char)(v & 255));
}

/* Adds four bytes: v, or the value that says that an extra field has v. */
static void add_small(Text *t, uint64_t v, uint64_t limit)
{
	add_le(t, v < limit ? v : 0xffffffff, 4);
}

typedef struct {
	const char *name;
	uint64_t size, at; /* at: where the local header lies */
	uint32_t crc;
	bool wide; /* the sizes are zip64 */
} Entry;

/* Adds the fields that local header and directory share, from "version needed" to "extra
 * length". */
static void add_common(Text *t, const Entry *e, uint32_t extra)
{
	add_le(t, extra ? ZIP64 : PLAIN, 2);
	add_le(t, UTF8_NAMES, 2);
	add_le(t, 0, 4); /* method, time */
	add_le(t, NEW_YEAR_1980, 2);
	add_le(t, e->crc, 4);
	add_small(t, e->size, e->wide ? 0 : UINT64_MAX);
	add_small(t, e->size, e->wide ? 0 : UINT64_MAX);
	add_le(t, strlen(e->name), 2);
	add_le(t, extra, 2);
}

/* Adds the extra field of zip64: the sizes, the offset, those of them that are asked for. */
static void add_extra(Text *t, const Entry *e, bool offset)
{
	const uint32_t n = (e->wide ? 16 : 0) + (offset ? 8 : 0);
	if (!n)
		return;
	add_le(t, 1, 2);
	add_le(t, n, 2);
	for (uint32_t k = 0; k < 2 && e->wide; k++)
		add_le(t, e->size, 8);
	if (offset)
		add_le(t, e->at, 8);
}

static void add_local(Text *t, const Entry *e)
{
	text_addn(t, "PK\3\4", 4);
	add_common(t, e, e->wide ? 20 : 0);
	text_add(t, e->name);
	add_extra(t, e, false);
}

static void add_entry(ZipWriter *z, const Entry *e)
{
	Text *t = &z->directory;
	const bool far = e->at >= z->limit;
	const uint32_t fields = (e->wide ? 16 : 0) + (far ? 8 : 0);
	text_addn(t, "PK\1\2", 4);
	add_le(t, ZIP64, 2); /* made by */
	add_common(t, e, fields ? 4 + fields : 0);
	add_le(t, 0, 2 + 2 + 2 + 4); /* comment, disk, attributes */
	add_small(t, e->at, z->limit);
	text_add(t, e->name);
	add_extra(t, e, far);
}

static void write(ZipWriter *z, const void *data, size_t n)
{
	out_write(z->out, data, n);
	z->at += n;
}

void zip_begin(Ctx *ctx, OutFile *out, ZipWriter *z)
{
	*z = (ZipWriter){.out = out, .limit = 0xffffffff};
	text_init(&z->directory, ctx->arena);
}

void zip_add(ZipWriter *z, const char *name, const Bytes *part, uint32_t n)
{
	Entry e = {.name = name, .at = z->at};
	for (uint32_t k = 0; k < n; k++) {
		e.crc = crc32_more(e.crc, part[k].data, part[k].size);
		e.size += part[k].size;
	}
	e.wide = e.size >= z->limit;
	Text local;
	text_init(&local, z->directory.arena);
	add_local(&local, &e);
	write(z, local.data, local.n);
	for (uint32_t k = 0; k < n; k++)
		write(z, part[k].data, part[k].size);
	add_entry(z, &e);
	z->n++;
}

/* Adds the end of a zip64 directory, and where that lies. */
static void add_end64(Text *t, const ZipWriter *z, uint64_t size)
{
	text_addn(t, "PK\6\6", 4);
	add_le(t, 44, 8); /* bytes that follow */
	add_le(t, ZIP64, 2);
	add_le(t, ZIP64, 2);
	add_le(t, 0, 8); /* disks */
	add_le(t, z->n, 8);
	add_le(t, z->n, 8);
	add_le(t, size, 8);
	add_le(t, z->at, 8);
	text_addn(t, "PK\6\7", 4);
	add_le(t, 0, 4);
	add_le(t, z->at + size, 8);
	add_le(t, 1, 4);
}

void zip_end(ZipWriter *z)
{
	Text *t = &z->directory;
	const uint64_t size = t->n, small = z->limit < 0xffff ? z->limit : 0xffff;
	if (z->n >= small || size >= z->limit || z->at >= z->limit)
		add_end64(t, z, size);
	text_addn(t, "PK\5\6\0\0\0\0", 8);
	for (uint32_t k = 0; k < 2; k++)
		add_le(t, z->n < small ? z->n : 0xffff, 2);
	add_small(t, size, z->limit);
	add_small(t, z->at, z->limit);
	add_le(t, 0, 2);
	write(z, t->data, t->n);
}
