/* The directory is read here, bounds-checked, because no library tells where the bytes of a stored
 * member lie; compressed members, which PyTorch does not write, are inflated by zlib. */
#include "frontend/files/archive.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>

#include "base/crc32.h"
#include "frontend/files/file.h"

enum { EOCD_SIZE = 22, CENTRAL_SIZE = 46, LOCAL_SIZE = 30, ZIP64_EOCD = 56, ZIP64_LOCATOR = 20 };
enum { STORED = 0, DEFLATED = 8 };

static uint64_t le(const uint8_t *p, uint32_t n)
{
	uint64_t v = 0;
	for (uint32_t k = n; k-- > 0;)
		v = v << 8 | p[k];
	return v;
}

/* ---- directory ---- */

typedef struct {
	uint64_t offset, size, count;
} Directory;

static bool find_directory64(Ctx *ctx, const Archive *a, size_t eocd, Directory *d)
{
	const uint8_t *loc = a->data + eocd - ZIP64_LOCATOR;
	if (eocd < ZIP64_LOCATOR || le(loc, 4) != 0x07064b50)
		return ctx_error(ctx, a->path,
				 "damaged archive: no zip64 directory where one is announced");
	uint64_t at = le(loc + 8, 8);
	if (at > a->size || a->size - at < ZIP64_EOCD || le(a->data + at, 4) != 0x06064b50)
		return ctx_error(ctx, a->path, "damaged archive: bad zip64 directory");
	d->count = le(a->data + at + 32, 8);
	d->size = le(a->data + at + 40, 8);
	d->offset = le(a->data + at + 48, 8);
	return true;
}

static bool find_directory(Ctx *ctx, const Archive *a, Directory *d)
{
	size_t longest = EOCD_SIZE + 65535;
	size_t first = a->size > longest ? a->size - longest : 0;
	size_t at = a->size < EOCD_SIZE ? 0 : a->size - EOCD_SIZE + 1;
	while (at-- > first) {
		const uint8_t *p = a->data + at;
		if (le(p, 4) != 0x06054b50 || le(p + 20, 2) != a->size - at - EOCD_SIZE)
			continue;
		*d = (Directory){
			.count = le(p + 10, 2), .size = le(p + 12, 4), .offset = le(p + 16, 4)};
		if (d->count == 0xffff || d->size == 0xffffffff || d->offset == 0xffffffff)
			TRY(find_directory64(ctx, a, at, d));
		if (d->offset > a->size || d->size > a->size - d->offset)
			return ctx_error(ctx, a->path,
					 "damaged archive: the directory lies outside the file");
		return true;
	}
	if (a->size >= 4 && le(a->data, 4) == 0x04034b50)
		return ctx_error(ctx, a->path,
				 "truncated archive: it starts like a zip file but has no "
				 "directory at its end");
	return ctx_error(ctx, a->path, "not a zip archive");
}

/* Reads sizes and offset that do not fit 32 bits from the extra field, where they are in this
 * order. */
static bool read_extra64(const uint8_t *x, size_t n, Member *m)
{
	uint64_t *slot[] = {&m->size, &m->stored, &m->header};
	bool need = m->size == 0xffffffff || m->stored == 0xffffffff || m->header == 0xffffffff;
	while (need && n >= 4) {
		size_t len = le(x + 2, 2);
		if (len > n - 4)
			return false;
		if (le(x, 2) == 1) {
			const uint8_t *p = x + 4;
			for (uint32_t k = 0; k < 3; k++) {
				if (*slot[k] != 0xffffffff)
					continue;
				if (len < 8)
					return false;
				*slot[k] = le(p, 8);
				p += 8, len -= 8;
			}
			return true;
		}
		x += 4 + len, n -= 4 + len;
	}
	return !need;
}

static bool read_entry(Ctx *ctx, Archive *a, const uint8_t **p, size_t *left)
{
	const uint8_t *e = *p;
	if (*left < CENTRAL_SIZE || le(e, 4) != 0x02014b50)
		return ctx_error(ctx, a->path, "damaged archive: bad directory entry %u",
				 a->member.n);
	size_t nname = le(e + 28, 2), nextra = le(e + 30, 2), ncomment = le(e + 32, 2);
	size_t total = CENTRAL_SIZE + nname + nextra + ncomment;
	if (total > *left)
		return ctx_error(ctx, a->path, "damaged archive: directory entry %u is cut off",
				 a->member.n);
	Member m = {.flags = (uint16_t)le(e + 8, 2), .method = (uint16_t)le(e + 10, 2)};
	m.crc = (uint32_t)le(e + 16, 4);
	m.stored = le(e + 20, 4);
	m.size = le(e + 24, 4);
	m.header = le(e + 42, 4);
	m.name = arena_strndup(ctx->arena, (const char *)e + CENTRAL_SIZE, nname);
	bool ok = strlen(m.name) == nname && read_extra64(e + CENTRAL_SIZE + nname, nextra, &m);
	ok = ok && m.header <= a->size && m.stored <= a->size - m.header;
	ok = ok && (m.method != STORED || m.size == m.stored);
	if (!ok)
		return ctx_error(ctx, a->path,
				 "damaged archive: directory entry %u (%s) is inconsistent",
				 a->member.n, m.name);
	bool fresh;
	intern(&a->names, m.name, (uint32_t)nname, &fresh);
	if (!fresh)
		return ctx_error(ctx, a->path, "damaged archive: two members are named %s", m.name);
	array_push(ctx->arena, &a->member, m);
	*p += total, *left -= total;
	return true;
}

/* Returns the folder of the first member, when all others are in it, too. */
static const char *common_root(Ctx *ctx, const Archive *a)
{
	const char *slash = a->member.n ? strchr(a->member.data[0].name, '/') : NULL;
	if (!slash)
		return "";
	size_t n = (size_t)(slash - a->member.data[0].name) + 1;
	for (uint32_t k = 1; k < a->member.n; k++)
		if (strncmp(a->member.data[0].name, a->member.data[k].name, n))
			return "";
	return arena_strndup(ctx->arena, a->member.data[0].name, n);
}

static bool open_bytes(Ctx *ctx, const char *path, const void *data, size_t size, Archive *a)
{
	*a = (Archive){.path = arena_strdup(ctx->arena, path), .data = data, .size = size};
	intern_init(&a->names, ctx->arena);
	Directory d = {0};
	TRY(find_directory(ctx, a, &d));
	const uint8_t *p = a->data + d.offset;
	size_t left = d.size;
	for (uint64_t k = 0; k < d.count; k++)
		TRY(read_entry(ctx, a, &p, &left));
	a->root = common_root(ctx, a);
	return true;
}

bool archive_open_bytes(Ctx *ctx, const char *path, const void *data, size_t size, Archive *a)
{
	return open_bytes(ctx, path, data, size, a) || ctx_kind(ctx, REFUSAL_FILE);
}

bool archive_open(Ctx *ctx, const char *path, Archive *a)
{
	FileMap map;
	TRY(file_map_full(ctx, path, &map));
	return archive_open_bytes(ctx, path, map.data, map.size, a);
}

Member *archive_find(const Archive *a, const char *name)
{
	char full[1024];
	size_t nroot = strlen(a->root), n = strlen(name);
	if (nroot + n >= sizeof full)
		return NULL;
	memcpy(full, a->root, nroot);
	memcpy(full + nroot, name, n + 1);
	uint32_t id = intern_find(&a->names, full, (uint32_t)(nroot + n));
	return id ? &a->member.data[id - 1] : NULL;
}

/* ---- contents ---- */

static uInt at_most(uint64_t n)
{
	return n < UINT_MAX ? (uInt)n : UINT_MAX;
}

/* Inflates a stream without header into the m->size bytes at `to`. Returns zlib's status:
 * Z_STREAM_END if the stream has exactly so many. */
static int inflate_all(const uint8_t *from, const Member *m, uint8_t *to)
{
	z_stream z = {.next_in = (Bytef *)from, .next_out = to};
	uint64_t in = m->stored, out = m->size; /* not yet given to zlib, which counts in 32 bits */
	int status = inflateInit2(&z, -MAX_WBITS);
	if (status != Z_OK)
		return status;
	do {
		in += z.avail_in, out += z.avail_out;
		in -= z.avail_in = at_most(in);
		out -= z.avail_out = at_most(out);
		status = inflate(&z, Z_NO_FLUSH);
	} while (status == Z_OK);
	if (status == Z_STREAM_END && out + z.avail_out)
		status = Z_DATA_ERROR;
	inflateEnd(&z);
	return status;
}

/* Reads a compressed member. from: the bytes of m in the file. */
static bool read_compressed(Ctx *ctx, const Archive *a, const uint8_t *from, const Member *m,
			    Bytes *out)
{
	if (m->method != DEFLATED)
		return ctx_error(ctx, a->path,
				 "member %s is compressed by method %u; weft reads members that "
				 "are stored (0) or deflated (8)",
				 m->name, m->method);
	if (m->size / 1100 > m->stored) /* deflate does not reach this ratio */
		return ctx_error(ctx, a->path, "damaged archive: implausible size of member %s",
				 m->name);
	uint8_t *buf = arena_alloc(ctx->arena, m->size);
	const int status = inflate_all(from, m, buf);
	if (status == Z_MEM_ERROR)
		ctx_out_of_memory(ctx);
	*out = (Bytes){buf, m->size};
	return status == Z_STREAM_END ||
	       ctx_error(ctx, a->path, "cannot decompress member %s", m->name);
}

static bool read_member(Ctx *ctx, const Archive *a, Member *m, Bytes *out)
{
	*out = m->contents;
	if (m->ready)
		return true;
	if (m->flags & 1)
		return ctx_error(ctx, a->path, "member %s is encrypted", m->name);
	const uint8_t *h = a->data + m->header;
	size_t left = a->size - m->header;
	uint64_t skip = left < LOCAL_SIZE ? 0 : LOCAL_SIZE + le(h + 26, 2) + le(h + 28, 2);
	if (left < LOCAL_SIZE || le(h, 4) != 0x04034b50 || skip > left || m->stored > left - skip)
		return ctx_error(ctx, a->path, "damaged archive: member %s is cut off", m->name);
	if (m->method != STORED) {
		TRY(read_compressed(ctx, a, h + skip, m, out));
	} else if (((uintptr_t)(h + skip) & 15) == 0) {
		*out = (Bytes){h + skip, m->size};
	} else {
		*out = (Bytes){arena_dup(ctx->arena, h + skip, m->size), m->size};
	}
	if (!a->unchecked && crc32_of(out->data, out->size) != m->crc)
		return ctx_error(ctx, a->path, "member %s is damaged: its checksum differs",
				 m->name);
	m->contents = *out;
	m->ready = true;
	return true;
}

bool archive_read(Ctx *ctx, const Archive *a, Member *m, Bytes *out)
{
	return read_member(ctx, a, m, out) || ctx_kind(ctx, REFUSAL_FILE);
}

bool archive_read_text(Ctx *ctx, const Archive *a, Member *m, Bytes *out)
{
	enum { SMALL = 16 << 20, RATIO = 100 };
	if (m->size > SMALL && m->size / RATIO > m->stored)
		return ctx_error(ctx, a->path,
				 "member %s would be %llu bytes of text, more than %d times what "
				 "is stored: it is not inflated",
				 m->name, (unsigned long long)m->size, RATIO);
	return archive_read(ctx, a, m, out);
}
