/* Zip archives, field by field: what the directory may say, and what is said of one that is
 * wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frontend/files/archive.h"
#include "frontend/files/zip_writer.h"
#include "ctx_fixture.h"

/* ---- writing ---- */

typedef struct {
	const char *name, *data;
	uint32_t flags, method, gap; /* gap: extra bytes in the local header, which moves the
	                                contents */
	uint32_t zip64;              /* bits: size, stored, offset stand in the extra field */
	const char *before;          /* another extra field in front of that */
	uint32_t nbefore;
	uint32_t crc_wrong;
	const char *comment;
} Piece;

typedef struct {
	uint8_t data[4096];
	size_t n;
} Out;

static void bytes(Out *o, const void *p, size_t n)
{
	assert_true(o->n + n <= sizeof o->data);
	if (n)
		memcpy(o->data + o->n, p, n);
	o->n += n;
}

static void le(Out *o, uint64_t v, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++, v >>= 8)
		bytes(o, &(uint8_t){(uint8_t)v}, 1);
}

static uint32_t crc(const char *p)
{
	uint32_t c = ~0u;
	for (; *p; p++) {
		c ^= (uint8_t)*p;
		for (int k = 0; k < 8; k++)
			c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
	}
	return ~c;
}

static void local(Out *o, const Piece *p)
{
	bytes(o, "PK\3\4", 4);
	le(o, 20, 2);
	le(o, p->flags, 2);
	le(o, p->method, 2);
	le(o, 0, 4);
	le(o, crc(p->data), 4);
	le(o, strlen(p->data), 4);
	le(o, strlen(p->data), 4);
	le(o, strlen(p->name), 2);
	le(o, p->gap, 2);
	bytes(o, p->name, strlen(p->name));
	for (uint32_t k = 0; k < p->gap; k++)
		le(o, 0xee, 1);
	bytes(o, p->data, strlen(p->data));
}

static void central(Out *o, const Piece *p, uint64_t at)
{
	const uint64_t value[3] = {strlen(p->data), strlen(p->data), at};
	uint32_t n64 = 0;
	for (uint32_t k = 0; k < 3; k++)
		n64 += p->zip64 >> k & 1;
	bytes(o, "PK\1\2", 4);
	le(o, 20, 4);
	le(o, p->flags, 2);
	le(o, p->method, 2);
	le(o, 0, 4);
	le(o, crc(p->data) + p->crc_wrong, 4);
	le(o, p->zip64 & 2 ? 0xffffffff : value[1], 4);
	le(o, p->zip64 & 1 ? 0xffffffff : value[0], 4);
	le(o, strlen(p->name), 2);
	le(o, p->nbefore + (n64 ? 4 + 8 * n64 : 0), 2);
	le(o, p->comment ? strlen(p->comment) : 0, 2);
	le(o, 0, 8);
	le(o, p->zip64 & 4 ? 0xffffffff : at, 4);
	bytes(o, p->name, strlen(p->name));
	bytes(o, p->before, p->nbefore);
	if (n64) {
		le(o, 1, 2);
		le(o, 8 * n64, 2);
	}
	for (uint32_t k = 0; k < 3; k++)
		if (p->zip64 >> k & 1)
			le(o, value[k], 8);
	if (p->comment)
		bytes(o, p->comment, strlen(p->comment));
}

static void pieces(Out *o, const Piece *p, uint32_t n, uint64_t *directory)
{
	uint64_t at[8];
	*o = (Out){.n = 0};
	for (uint32_t k = 0; k < n; k++) {
		at[k] = o->n;
		local(o, &p[k]);
	}
	*directory = o->n;
	for (uint32_t k = 0; k < n; k++)
		central(o, &p[k], at[k]);
}

static void end(Out *o, uint64_t count, uint64_t size, uint64_t offset, const char *comment)
{
	bytes(o, "PK\5\6\0\0\0\0", 8);
	le(o, count, 2);
	le(o, count, 2);
	le(o, size, 4);
	le(o, offset, 4);
	le(o, strlen(comment), 2);
	bytes(o, comment, strlen(comment));
}

static void zip(Out *o, const Piece *p, uint32_t n)
{
	uint64_t at;
	pieces(o, p, n, &at);
	end(o, n, o->n - at, at, "");
}

/* ---- reading ---- */

static const uint8_t *placed; /* the archive being read, 16-aligned, at the end of its memory */

static bool opens(const Out *o, Archive *a)
{
	uint8_t *p = arena_alloc(ctx->arena, o->n + 16);
	p += -(uintptr_t)p & 15;
	memcpy(p, o->data, o->n);
	placed = p;
	return archive_open_bytes(ctx, "a.zip", p, o->n, a);
}

static void refused(const Out *o, const char *why)
{
	Archive a;
	if (opens(o, &a))
		fail_msg("accepted, expected: %s", why);
	assert_string_equal(ctx->last->text, why);
	assert_string_equal(ctx->last->where, "a.zip");
}

static void has(const Archive *a, const char *name, const char *data)
{
	Bytes b;
	Member *m = archive_find(a, name);
	if (!m || !archive_read(ctx, a, m, &b))
		fail_msg("no %s: %s", name, ctx->last ? ctx->last->text : "not found");
	assert_int_equal(b.size, strlen(data));
	assert_memory_equal(b.data, data, b.size);
	assert_int_equal((uintptr_t)b.data & 15, 0);
	const uint8_t *first = b.data;
	assert_true(archive_read(ctx, a, m, &b) && b.data == first); /* once */
}

static void unreadable(const Archive *a, const char *name, const char *why)
{
	Bytes b;
	Member *m = archive_find(a, name);
	assert_non_null(m);
	assert_false(archive_read(ctx, a, m, &b));
	assert_string_equal(ctx->last->text, why);
}

static void test_members(void **state)
{
	(void)state;
	static const Piece p[] = {
		{.name = "f/a", .data = "one"},
		{.name = "f/b", .data = "two, longer than eight", .gap = 5, .comment = "said"},
		{.name = "f/empty", .data = ""},
	};
	Out o;
	Archive a;
	zip(&o, p, 3);
	assert_true(opens(&o, &a));
	assert_int_equal(a.member.n, 3);
	assert_string_equal(a.root, "f/");
	has(&a, "a", "one");
	has(&a, "b", "two, longer than eight");
	has(&a, "empty", "");
	assert_null(archive_find(&a, "f/a"));
	assert_null(archive_find(&a, "c"));
	assert_null(archive_find(&a, ""));
	char name[2000];
	memset(name, 'x', sizeof name);
	name[sizeof name - 1] = 0;
	assert_null(archive_find(&a, name));
	name[1021] = 0;
	assert_null(archive_find(&a, name));
}

static const char *root_of(const char *first, const char *second)
{
	const Piece p[] = {{.name = first, .data = "1"}, {.name = second, .data = "2"}};
	Out o;
	Archive a;
	zip(&o, p, second ? 2 : 1);
	assert_true(opens(&o, &a));
	return a.root;
}

static void test_root(void **state)
{
	(void)state;
	assert_string_equal(root_of("a/x", "a/y"), "a/");
	assert_string_equal(root_of("a/x", "ab/y"), "");
	assert_string_equal(root_of("a/b/x", "a/y"), "a/");
	assert_string_equal(root_of("a", "a/y"), "");
	assert_string_equal(root_of("a/y", "b"), "");
	assert_string_equal(root_of("a/y", NULL), "a/");
	assert_string_equal(root_of("a", NULL), "");
	Out o = {.n = 0};
	Archive a;
	end(&o, 0, 0, 0, "");
	assert_true(opens(&o, &a));
	assert_string_equal(a.root, "");
	assert_null(archive_find(&a, "x"));
}

/* In place where that is aligned. */
static void test_in_place(void **state)
{
	(void)state;
	for (uint32_t gap = 0; gap < 16; gap++) {
		const Piece p = {.name = "a", .data = "0123456789", .gap = gap};
		Out o;
		Archive a;
		Bytes b;
		zip(&o, &p, 1);
		assert_true(opens(&o, &a));
		has(&a, "a", p.data);
		assert_true(archive_read(ctx, &a, archive_find(&a, "a"), &b));
		assert_true((b.data == placed + 31 + gap) == ((31 + gap) % 16 == 0));
	}
}

static void test_zip64(void **state)
{
	(void)state;
	for (uint32_t which = 0; which < 16; which++) {
		Piece p[] = {{.name = "a", .data = "first"},
			     {.name = "b", .data = "the second", .zip64 = which & 7}};
		if (which & 8) {
			p[1].before = "\x99\x00\x03\x00xyz";
			p[1].nbefore = 7;
		}
		Out o;
		Archive a;
		zip(&o, p, 2);
		assert_true(opens(&o, &a));
		has(&a, "a", "first");
		has(&a, "b", "the second");
	}
	/* announced, and not there: no extra field, one that is cut off, one that is too short */
	static const struct {
		const char *extra;
		uint32_t n;
	} bad[] = {{"", 0},
		   {"\x01\x00\x08\x00zzzz", 8},
		   {"\x01\x00\x04\x00zzzz", 8},
		   {"\x02\x00\x00\x00", 4},
		   {"\x01\x00\x08", 3}};
	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
		const Piece p = {
			.name = "a", .data = "first", .before = bad[k].extra, .nbefore = bad[k].n};
		Out o;
		zip(&o, &p, 1);
		size_t at = 31 + 5 + 24; /* its size */
		memset(o.data + at, 0xff, 4);
		refused(&o, "damaged archive: directory entry 0 (a) is inconsistent");
	}
}

static void end64(Out *o, uint64_t count, uint64_t size, uint64_t offset)
{
	uint64_t at = o->n;
	bytes(o, "PK\6\6", 4);
	le(o, 44, 8);
	le(o, 45, 4);
	le(o, 0, 8);
	le(o, count, 8);
	le(o, count, 8);
	le(o, size, 8);
	le(o, offset, 8);
	bytes(o, "PK\6\7", 4);
	le(o, 0, 4);
	le(o, at, 8);
	le(o, 1, 4);
}

static void test_directory64(void **state)
{
	(void)state;
	const Piece p[] = {{.name = "a", .data = "first"}, {.name = "b", .data = "second"}};
	Out o;
	Archive a;
	uint64_t at;
	for (int which = 0; which < 3; which++) {
		pieces(&o, p, 2, &at);
		uint64_t size = o.n - at;
		end64(&o, 2, size, at);
		end(&o, which == 0 ? 0xffff : 2, which == 1 ? 0xffffffff : size,
		    which == 2 ? 0xffffffff : at, "");
		assert_true(opens(&o, &a));
		assert_int_equal(a.member.n, 2);
		has(&a, "b", "second");
	}
	Out good = o;
	o.data[o.n - 22 - 20] ^= 1;
	refused(&o, "damaged archive: no zip64 directory where one is announced");
	o = good;
	o.data[o.n - 22 - 20 + 8] += 1;
	refused(&o, "damaged archive: bad zip64 directory");
	o = good;
	memset(o.data + o.n - 22 - 20 + 8, 0x77, 8);
	refused(&o, "damaged archive: bad zip64 directory");
	o = good;
	o.data[o.n - 22 - 20 + 8] = (uint8_t)(o.n - 55); /* no room for it there */
	refused(&o, "damaged archive: bad zip64 directory");
	o = (Out){.n = 0};
	end(&o, 0xffff, 0, 0, "");
	refused(&o, "damaged archive: no zip64 directory where one is announced");
}

static void test_end(void **state)
{
	(void)state;
	const Piece p = {.name = "a", .data = "first"};
	Out o;
	Archive a;
	uint64_t at;
	pieces(&o, &p, 1, &at);
	Out before = o;
	end(&o, 1, o.n - at, at, "a comment, PK\5\6 and more of it");
	assert_true(opens(&o, &a));
	has(&a, "a", "first");
	o = before;
	end(&o, 1, before.n - at, at, "");
	le(&o, 0, 1); /* a byte behind the end */
	refused(&o, "truncated archive: it starts like a zip file but has no directory at its end");
	o = before;
	end(&o, 1, before.n - at + 23, at, "");
	refused(&o, "damaged archive: the directory lies outside the file");
	o = before;
	end(&o, 0, 0, before.n + 22, "");
	assert_true(opens(&o, &a));
	o = before;
	end(&o, 0, 0, before.n + 23, "");
	refused(&o, "damaged archive: the directory lies outside the file");
	o = before;
	end(&o, 2, before.n - at, at, "");
	refused(&o, "damaged archive: bad directory entry 1");
	o = before;
	end(&o, 1, before.n - at - 1, at, "");
	refused(&o, "damaged archive: directory entry 0 is cut off");
	o = before;
	end(&o, 1, 45, at, "");
	refused(&o, "damaged archive: bad directory entry 0");
	o = (Out){.n = 0};
	refused(&o, "not a zip archive");
	bytes(&o, "PK\3", 3);
	refused(&o, "not a zip archive");
	bytes(&o, "\4", 1);
	refused(&o, "truncated archive: it starts like a zip file but has no directory at its end");
}

static void test_entries(void **state)
{
	(void)state;
	Out o;
	Archive a;
	const Piece twice[] = {{.name = "a", .data = "1"}, {.name = "a", .data = "2"}};
	zip(&o, twice, 2);
	refused(&o, "damaged archive: two members are named a");
	const Piece one = {.name = "a", .data = "first"};
	const size_t directory = 31 + 5;
	zip(&o, &one, 1);
	Out good = o;
	o.data[directory] ^= 1;
	refused(&o, "damaged archive: bad directory entry 0");
	o = good;
	o.data[directory + 46] = 0; /* its name */
	refused(&o, "damaged archive: directory entry 0 () is inconsistent");
	o = good;
	o.data[directory + 20]++; /* stored */
	refused(&o, "damaged archive: directory entry 0 (a) is inconsistent");
	o = good;
	o.data[directory + 43] = 0x40; /* offset */
	refused(&o, "damaged archive: directory entry 0 (a) is inconsistent");
	o = good;
	o.data[directory + 42] = (uint8_t)(o.n - 4); /* less than `stored` bytes from there to the
	                                                end */
	refused(&o, "damaged archive: directory entry 0 (a) is inconsistent");
	o = good;
	o.data[directory + 42] = (uint8_t)(o.n - 5);
	assert_true(opens(&o, &a));
	unreadable(&a, "a", "damaged archive: member a is cut off");
	const Piece empty = {.name = "a", .data = ""};
	zip(&o, &empty, 1);
	o.data[31 + 42] = (uint8_t)o.n; /* behind the last byte, where there is room for nothing */
	assert_true(opens(&o, &a));
	unreadable(&a, "a", "damaged archive: member a is cut off");
	o.data[31 + 42]++;
	refused(&o, "damaged archive: directory entry 0 (a) is inconsistent");
	o = good;
	o.data[0] ^= 1;
	assert_true(opens(&o, &a));
	unreadable(&a, "a", "damaged archive: member a is cut off");
	o = good;
	o.data[28] = 100; /* an extra field that ends behind the file */
	assert_true(opens(&o, &a));
	unreadable(&a, "a", "damaged archive: member a is cut off");
	const Piece secret = {.name = "a", .data = "first", .flags = 1},
		    marked = {.name = "a", .data = "first", .flags = 8 | 2048};
	zip(&o, &secret, 1);
	assert_true(opens(&o, &a));
	unreadable(&a, "a", "member a is encrypted");
	zip(&o, &marked, 1);
	assert_true(opens(&o, &a));
	has(&a, "a", "first");
	const Piece wrong = {.name = "a", .data = "first", .crc_wrong = 1};
	zip(&o, &wrong, 1);
	assert_true(opens(&o, &a));
	unreadable(&a, "a", "member a is damaged: its checksum differs");
	a.unchecked = true;
	has(&a, "a", "first");
	const Piece odd = {.name = "a", .data = "first", .method = 99};
	zip(&o, &odd, 1);
	assert_true(opens(&o, &a));
	unreadable(&a, "a",
		   "member a is compressed by method 99; weft reads members that are stored (0) or "
		   "deflated (8)");
}

/* Text, deflated, with sizes that are right, too small and too large, and cut off. */
static void test_deflated(void **state)
{
	(void)state;
	static const char text[] = "weft weft weft weft!", deflated[] = "+OM+Q(G!\x14\x01";
	for (uint32_t size = 0; size < 60; size++) {
		const Piece p = {.name = "a", .data = deflated, .method = 8};
		Out o;
		Archive a;
		uint64_t directory;
		pieces(&o, &p, 1, &directory);
		end(&o, 1, o.n - directory, directory, "");
		o.data[directory + 24] = (uint8_t)size;
		assert_true(opens(&o, &a));
		a.unchecked = true;
		if (size == sizeof text - 1)
			has(&a, "a", text);
		else
			unreadable(&a, "a", "cannot decompress member a");
		o.data[directory + 27] = 0x7f;
		assert_true(opens(&o, &a));
		unreadable(&a, "a", "damaged archive: implausible size of member a");
		o.data[directory + 27] = 0;
		o.data[directory + 20]--; /* a byte less is stored */
		assert_true(opens(&o, &a));
		unreadable(&a, "a", "cannot decompress member a");
	}
}

/* Every length up to three words: each byte counts. */
static void test_checksum(void **state)
{
	(void)state;
	char text[28] = "";
	for (size_t n = 0; n < sizeof text - 1; n++) {
		const Piece p = {.name = "a", .data = text};
		Out o;
		Archive a;
		zip(&o, &p, 1);
		assert_true(opens(&o, &a));
		has(&a, "a", text);
		for (size_t k = 0; k < n; k++) {
			Out damaged = o;
			damaged.data[31 + k] ^= 0x10;
			assert_true(opens(&damaged, &a));
			unreadable(&a, "a", "member a is damaged: its checksum differs");
		}
		text[n] = (char)('A' + n);
	}
}

/* ---- zip_writer ---- */

static const char *numbered(uint32_t k)
{
	return arena_printf(ctx->arena, "m/%u", k);
}

/* Members of two parts and of 0 bytes and more, read again; limit: of the writer, 0: its own. */
static void written(uint32_t n, uint64_t limit)
{
	OutFile *out = out_begin(ctx, "written.zip");
	assert_true(out && out_open(ctx, out));
	ZipWriter z;
	zip_begin(ctx, out, &z);
	z.limit = limit ? limit : z.limit;
	for (uint32_t k = 0; k < n; k++) {
		const char *name = numbered(k);
		const Bytes part[] = {{(const uint8_t *)name, k & 1},
				      {(const uint8_t *)name, k % 4}};
		zip_add(&z, name, part, 2);
	}
	zip_end(&z);
	assert_true(out_commit(ctx, out));
	Archive a;
	assert_true(archive_open(ctx, "written.zip", &a));
	assert_int_equal(a.member.n, n);
	for (uint32_t k = 0; k < n; k += 1 + n / 100) {
		Bytes b;
		const char *name = numbered(k);
		assert_string_equal(a.member.data[k].name, name);
		assert_true(archive_read(ctx, &a, &a.member.data[k], &b));
		assert_int_equal(b.size, (k & 1) + k % 4);
		assert_memory_equal(b.data, name, k & 1);
		assert_memory_equal(b.data + (k & 1), name, k % 4);
	}
}

static void test_written(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < 9; n++)
		for (uint64_t limit = 0; limit < 200; limit += 1 + limit / 10)
			written(n, limit);
	written(65534, 0);
	written(65535, 0);
	written(70000, 0);
	remove("written.zip");
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(members), TEST(root),        TEST(in_place),
					   TEST(zip64),   TEST(directory64), TEST(end),
					   TEST(entries), TEST(checksum),    TEST(written),
					   TEST(deflated)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
