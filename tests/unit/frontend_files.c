/* Files: what one that is no model is called; the bytes that are written; where outputs go. */
#include <errno.h>
#include <fcntl.h>
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

#include "frontend/files/archive.h"
#include "frontend/files/file_kind.h"
#include "frontend/files/npy.h"
#include "frontend/files/out_file.h"
#include "ctx_fixture.h"

static char dir[] = "/tmp/weft-files-XXXXXX";

/* ---- kinds ---- */

static void test_kinds(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		size_t n;
		const char *begins;
	} cases[] = {
		{"", 0, "it is empty"},
		{"\xfd"
		 "7zXZ",
		 5, "it is compressed by xz: unpack it first (xz -d)"},
		{"\xfd"
		 "7zX\0",
		 5, "it is a binary file of an unknown kind"},
		{"\xfd"
		 "7zX",
		 4, NULL},
		{"\x1f\x8b", 2, "it is compressed by gzip: unpack it first (gzip -d)"},
		{"\x1f", 1, NULL},
		{"\x28\xb5\x2f\xfd", 4, "it is compressed by zstd: unpack it first (zstd -d)"},
		{"BZh9", 4, "it is compressed by bzip2: unpack it first (bzip2 -d)"},
		{"BZ", 2, NULL},
		{"\x7f"
		 "ELF\1",
		 5, "it is compiled code (ELF)"},
		{"\x93NUMPY\1", 7, "it is an array of NumPy"},
		{"\x89HDF\r\n", 6, "it is an HDF5 file (Keras?)"},
		{"GGUF\3", 5, "it is a GGUF file, which holds weights and no graph"},
		{"\x1c\0\0\0TFL3", 8, "it is a model of TensorFlow Lite"},
		{"\x1c\0\0\0TFL", 7, "it is a binary file of an unknown kind"},
		{"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46", 8,
		 "it is a pickle of torch.save: export it with torch.export.export and "
		 "torch.export.save"},
		{"\x80\x02\x8a\x0a\x6c\xfc\x9c", 7,
		 "it is a Python pickle: export it with torch.export.export and torch.export.save"},
		{"\x80\x03", 2,
		 "it is a Python pickle: export it with torch.export.export and torch.export.save"},
		{"\x80\x04", 2,
		 "it is a Python pickle: export it with torch.export.export and torch.export.save"},
		{"\x80\x05", 2,
		 "it is a Python pickle: export it with torch.export.export and torch.export.save"},
		{"\x80\x01", 2, NULL},
		{"\x10\0\0\0\0\0\0\0{", 9,
		 "it is a .safetensors file, which holds tensors and no graph"},
		{"\x10\0\0\0\0\0\0\0", 8, "it is a binary file of an unknown kind"},
		{"\x08\x15\x12\x07", 4, NULL},
		{"\x08\x00\x12\x07", 4, "it is a binary file of an unknown kind"},
		{"\x08\x08\x13\x07", 4, NULL},
		{"\x08\x08\x0a\x07", 4, NULL},
		{"\x08\x08\xaa\x07", 4, NULL},
		{"\x0a\x08\x12\x07", 4, NULL},
		{"\x08\x08\x12", 3, NULL},
		{"text\n", 5, NULL},
		{"te\0xt", 5, "it is a binary file of an unknown kind"},
	};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		/* exact size: the sanitizer sees reads past the end */
		void *copy = malloc(cases[k].n + !cases[k].n);
		memcpy(copy, cases[k].bytes, cases[k].n);
		const char *is = file_kind(copy, cases[k].n);
		if (!is != !cases[k].begins || (is && strcmp(is, cases[k].begins)))
			fail_msg("case %zu is %s", k, is ? is : "nothing");
		free(copy);
	}
	char late[5000];
	memset(late, 'x', sizeof late);
	late[4095] = 0;
	assert_non_null(file_kind(late, sizeof late));
	late[4095] = 'x';
	late[4096] = 0;
	assert_null(file_kind(late, sizeof late));
}

static void test_onnx(void **state)
{
	(void)state;
	static const struct {
		const char *data;
		size_t size;
		bool is;
	} cases[] = {
		{"\x08\x08\x12\x07", 4, true},  {"\x08\x01\x12\x07", 4, true},
		{"\x08\x14\x12\x07", 4, true},  {"\x08\x08\xa2\x01", 4, true},
		{"\x08\x15\x12\x07", 4, false}, {"\x08\x00\x12\x07", 4, false},
		{"\x08\x08\x13\x07", 4, false}, {"\x08\x08\x0a\x07", 4, false},
		{"\x08\x08\xaa\x07", 4, false}, {"\x0a\x08\x12\x07", 4, false},
		{"\x08\x08\x12", 3, false},
	};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		assert_int_equal(is_onnx(cases[k].data, cases[k].size), cases[k].is);
}

static void test_graph_text(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool is;
	} cases[] = {{"graph @f", true},   {"graph", true},         {"grap", false},
		     {" \n\tgraph", true}, {"; c\ngraph @f", true}, {"; a\n ; b\n\ngraph", true},
		     {"; graph", false},   {";\ngraph", true},      {";", false},
		     {"", false},          {"  ", false},           {"x graph", false},
		     {"; c\nx", false},    {"Graph", false}};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		size_t n = strlen(cases[k].text);
		char *copy = malloc(n + !n);
		memcpy(copy, cases[k].text, n);
		if (is_graph_text(copy, n) != cases[k].is)
			fail_msg("\"%s\"", cases[k].text);
		free(copy);
	}
}

/* ---- what is written ---- */

static const char *contents(const char *path, size_t *n)
{
	FileMap map;
	if (!file_map(ctx, path, &map))
		fail_msg("%s: %s", path, ctx->last->text);
	*n = map.size;
	return (const char *)map.data;
}

static void assert_file(const char *path, const char *want, size_t n)
{
	size_t have;
	const char *p = contents(path, &have);
	assert_int_equal(have, n);
	assert_memory_equal(p, want, n);
}

static Tensor tensor(DType d, uint32_t rank, const int64_t *dim, const void *data)
{
	Tensor t = {.dtype = d, .rank = rank, .data = (void *)(uintptr_t)data};
	if (rank)
		memcpy(t.dim, dim, rank * sizeof *dim);
	return t;
}

static void test_npy_bytes(void **state)
{
	(void)state;
	static const struct {
		DType dtype;
		uint32_t rank;
		int64_t dim[3];
		const char *dict;
	} cases[] = {
		{DT_f32, 0, {0}, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }"},
		{DT_u8, 1, {3}, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }"},
		{DT_i8, 1, {1}, "{'descr': '|i1', 'fortran_order': False, 'shape': (1,), }"},
		{DT_bool, 2, {2, 1}, "{'descr': '|b1', 'fortran_order': False, 'shape': (2, 1), }"},
		{DT_i16, 2, {1, 2}, "{'descr': '<i2', 'fortran_order': False, 'shape': (1, 2), }"},
		{DT_u16, 1, {2}, "{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }"},
		{DT_f16, 1, {2}, "{'descr': '<f2', 'fortran_order': False, 'shape': (2,), }"},
		{DT_i32,
		 3,
		 {1, 1, 1},
		 "{'descr': '<i4', 'fortran_order': False, 'shape': (1, 1, 1), }"},
		{DT_u32, 1, {1}, "{'descr': '<u4', 'fortran_order': False, 'shape': (1,), }"},
		{DT_i64, 1, {0}, "{'descr': '<i8', 'fortran_order': False, 'shape': (0,), }"},
		{DT_u64, 1, {1}, "{'descr': '<u8', 'fortran_order': False, 'shape': (1,), }"},
		{DT_f64, 1, {2}, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }"},
		{DT_c64, 1, {2}, "{'descr': '<c8', 'fortran_order': False, 'shape': (2,), }"},
		{DT_c128, 1, {1}, "{'descr': '<c16', 'fortran_order': False, 'shape': (1,), }"},
	};
	static const uint8_t data[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		char want[160];
		Tensor t = tensor(cases[k].dtype, cases[k].rank, cases[k].dim, data), back;
		size_t n = tensor_bytes(&t), dict = strlen(cases[k].dict);
		memcpy(want, "\x93NUMPY\1\0\x76\0", 10);
		memset(want + 10, ' ', 117);
		memcpy(want + 10, cases[k].dict, dict);
		want[127] = '\n';
		memcpy(want + 128, data, n);
		assert_true(npy_save(ctx, "a.npy", &t));
		assert_file("a.npy", want, 128 + n);
		assert_true(npy_open(ctx, "a.npy", &back));
		assert_int_equal(back.dtype, t.dtype);
		assert_memory_equal(back.dim, t.dim, t.rank * sizeof *t.dim);
	}
	Tensor bf = tensor(DT_bf16, 0, NULL, data);
	assert_false(npy_save(ctx, "a.npy", &bf));
	assert_string_equal(ctx->last->text, "dtype bf16 cannot be stored in .npy and .npz: "
			    "a .safetensors file has it");
}

/* The text of a header grows by 64 bytes, never more than it must. */
static void test_npy_padding(void **state)
{
	(void)state;
	for (int64_t digits = 1, v = 1; digits < 18; digits++, v *= 10) {
		int64_t dim[8] = {0, v, v, v, v, v, v, v};
		Tensor t = tensor(DT_u8, 8, dim, ""), back;
		size_t n;
		assert_true(npy_save(ctx, "a.npy", &t));
		const char *p = contents("a.npy", &n);
		assert_int_equal(n % 64, 0);
		assert_int_equal((uint8_t)p[8] + 256 * (uint8_t)p[9], n - 10);
		const char *end = strstr(p + 10, "), }");
		assert_non_null(end);
		assert_true((size_t)(p + n - end) <= 4 + 64);
		assert_true(npy_open(ctx, "a.npy", &back) && back.rank == 8 && back.dim[6] == v);
	}
}

static void test_npy_versions(void **state)
{
	(void)state;
	static const char dict[] = "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }";
	for (int version = 0; version <= 4; version++)
		for (size_t pad = 0; pad < 70000; pad = pad * 200 + 100) {
			size_t n = sizeof dict - 1 + pad, head = version == 1 ? 10 : 12;
			uint8_t *p = malloc(head + n + 4);
			memcpy(p, "\x93NUMPY", 6);
			p[6] = (uint8_t)version;
			p[7] = 0;
			for (size_t k = 8; k < head; k++)
				p[k] = (uint8_t)(n >> 8 * (k - 8));
			memcpy(p + head, dict, sizeof dict - 1);
			memset(p + head + sizeof dict - 1, ' ', pad);
			memcpy(p + head + n, "\1\2\3\4", 4);
			Tensor t;
			bool ok = npy_parse(ctx, "w", p, head + n + 4, &t);
			assert_int_equal(ok, version >= 1 && version <= 3 &&
						     (version > 1 || n < 65536));
			if (ok)
				assert_memory_equal(t.data, "\1\2\3\4", 4);
			else if (version == 0 || version == 4)
				assert_string_equal(ctx->last->text,
						    "truncated .npy array, or an unknown version");
			if (ok) {
				assert_false(npy_parse(ctx, "w", p, head + n + 3, &t));
				assert_string_equal(
					ctx->last->text,
					"truncated .npy array: 3 bytes, its shape needs 4");
				assert_false(npy_parse(ctx, "w", p, head + n - 1, &t));
				assert_false(npy_parse(ctx, "w", p, 9, &t));
				assert_string_equal(ctx->last->text, "not a .npy array");
			}
			free(p);
		}
}

static const char *header_says(const char *dict)
{
	char file[400] = "\x93NUMPY\1";
	size_t n = strlen(dict);
	Tensor t;
	file[8] = (char)n;
	memcpy(file + 10, dict, n);
	memset(file + 10 + n, 0, 16);
	return npy_parse(ctx, "w", (const uint8_t *)file, 10 + n + 16, &t) ? "" : ctx->last->text;
}

static void test_npy_messages(void **state)
{
	(void)state;
#define NPY(descr, shape) "{'descr': " descr ", 'fortran_order': False, 'shape': " shape "}"
	const char *bad = "bad header of a .npy array";
	assert_string_equal(header_says(NPY("'<f4'", "(2,)")), "");
	assert_string_equal(header_says(NPY("'=f4'", "(2,)")), "");
	assert_string_equal(header_says(NPY("'>u1'", "(2,)")), "");
	assert_string_equal(header_says(NPY("'|b1'", "(16)")), "");
	assert_string_equal(header_says(NPY("'<f4'", "( 2 , 2 , )")), "");
	assert_string_equal(header_says(NPY("'<f4'", "(2L,1L)")), "");
	assert_string_equal(header_says(NPY("'<f4'", "(1,1,1,1,1,1,1,1)")), "");
	assert_string_equal(header_says(NPY("'>f4'", "(2,)")),
			    "unsupported element type >f4, expected a little-endian number");
	assert_string_equal(header_says(NPY("'f4'", "(2,)")),
			    "unsupported element type f4, expected a little-endian number");
	assert_string_equal(header_says(NPY("''", "(2,)")),
			    "unsupported element type , expected a little-endian number");
	assert_string_equal(
		header_says(NPY("'<a name that is long'", "(2,)")),
		"unsupported element type <a name that is, expected a little-endian number");
	assert_string_equal(header_says(NPY("'<f4'", "(5,)")),
			    "truncated .npy array: 16 bytes, its shape needs 20");
	assert_string_equal(header_says(NPY("'<f4'", "(4,)")), "");
	assert_string_equal(header_says(NPY("<f4", "(2,)")), bad);
	assert_string_equal(header_says(NPY("'<f4'", "2,)")), bad);
	assert_string_equal(header_says(NPY("'<f4'", "(,)")), bad);
	assert_string_equal(header_says(NPY("'<f4'", "(x)")), bad);
	assert_string_equal(header_says(NPY("'<f4'", "(9223372036854775808)")), bad);
	assert_string_equal(header_says(NPY("'<f4'", "(9223372036854775807)")), bad);
	assert_string_equal(header_says(NPY("'<f4'", "(2,), 'shape': (2,)")), bad);
	assert_string_equal(header_says(NPY("'<f4'", "(2,), 'fortran_order': False")), bad);
	assert_string_equal(header_says(NPY("'<f4'", "(2,), 'more': 1")), bad);
	assert_string_equal(header_says("{'descr' '<f4', 'fortran_order': False, 'shape': (2,)}"),
			    bad);
	assert_string_equal(header_says("{'descr': '<f4', 'fortran_order': Fals, 'shape': (2,)}"),
			    bad);
	assert_string_equal(header_says("{'descr': '<f4', 'fortran_order': Tru"), bad);
	assert_string_equal(header_says("{'descr': '<f4', 'fortran_order': Fals"), bad);
	assert_string_equal(header_says("{'descr': '<f4', 'fortran_order': False}"), bad);
	assert_string_equal(header_says("{'descr': '<f4', 'shape': (2,)}"), bad);
	assert_string_equal(header_says("{'fortran_order': False, 'shape': (2,)}"), bad);
	assert_string_equal(header_says("'descr': '<f4'}"), bad);
}

static void test_npz_bytes(void **state)
{
	(void)state;
	const int64_t dim[1] = {2};
	NamedTensor x[2] = {{"x.10", tensor(DT_u8, 1, dim, "ab")},
			    {"größe", tensor(DT_u8, 1, dim, "cd")}};
	assert_true(npz_save(ctx, "a.npz", x, 2));
	size_t n;
	const uint8_t *p = (const uint8_t *)contents("a.npz", &n);
	assert_memory_equal(p, "PK\3\4", 4);
	assert_memory_equal(p + 8, "\0\0", 2);            /* stored */
	assert_memory_equal(p + 10, "\0\0\x21\0", 4);     /* the first of January 1980 */
	assert_memory_equal(p + 30, "x.10.npy", 8);
	assert_memory_equal(p + 38, "\x93NUMPY", 6);
	Archive a;
	assert_true(archive_open(ctx, "a.npz", &a));
	assert_int_equal(a.member.n, 2);
	assert_string_equal(a.member.data[1].name, "größe.npy");
	assert_int_equal(a.member.data[1].size, 130);
	StFile f;
	assert_true(npz_open(ctx, "a.npz", &f));
	assert_int_equal(f.n, 2);
	assert_memory_equal(st_find(&f, "größe")->data, "cd", 2);
	assert_true(npz_save(ctx, "a.npz", x, 1)); /* over the old one */
	assert_true(npz_open(ctx, "a.npz", &f) && f.n == 1);
}

static void test_safetensors_bytes(void **state)
{
	(void)state;
	const int64_t dim[2] = {1, 3}, none[1] = {0};
	NamedTensor x[3] = {{"a", tensor(DT_u8, 2, dim, "xyz")},
			    {"b\"\\\x01", tensor(DT_f32, 0, NULL, "1234")},
			    {"c", tensor(DT_c64, 1, none, NULL)}};
	StMeta meta[2] = {{"k", "v"}, {"\n", "\x1f\x20"}};
	const char *index =
		"{\"__metadata__\":{\"k\":\"v\",\"\\u000a\":\"\\u001f "
		"\"},\"a\":{\"dtype\":\"U8\",\"shape\":[1,3],\"data_offsets\":[0,3]},"
		"\"b\\\"\\\\\\u0001\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[3,7]},"
		"\"c\":{\"dtype\":\"C64\",\"shape\":[0],\"data_offsets\":[7,7]}}";
	char want[600];
	size_t n = strlen(index), whole = (n + 8 + 63) / 64 * 64;
	memset(want, ' ', sizeof want);
	for (uint32_t k = 0; k < 8; k++)
		want[k] = (char)((whole - 8) >> 8 * k);
	memcpy(want + 8, index, n);
	memcpy(want + whole, "xyz1234", 7);
	assert_true(st_save(ctx, "a.safetensors", x, 3, meta, 2));
	assert_file("a.safetensors", want, whole + 7);
	StFile f;
	assert_true(st_open(ctx, "a.safetensors", &f));
	assert_int_equal(f.n, 3);
	assert_int_equal((uintptr_t)st_find(&f, "b\"\\\x01")->data % 4, 0); /* read as f32 */
	assert_memory_equal(st_find(&f, "b\"\\\x01")->data, "1234", 4);
	assert_string_equal(st_meta(&f, "\n"), "\x1f ");
	assert_true(st_save(ctx, "a.safetensors", NULL, 0, meta, 1));
	assert_file("a.safetensors",
		    "8\0\0\0\0\0\0\0{\"__metadata__\":{\"k\":\"v\"}}                              ",
		    64);
	assert_true(st_save(ctx, "a.safetensors", x, 1, NULL, 0));
	assert_file("a.safetensors",
		    "8\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"U8\",\"shape\":[1,3],\"data_offsets\":[0,3]"
		    "}} xyz",
		    67);
	x[0].tensor.dtype = DT_c128;
	assert_false(st_save(ctx, "b.safetensors", x, 1, NULL, 0));
	assert_string_equal(ctx->last->text,
			    "tensor a: dtype c128 cannot be stored in safetensors");
	assert_int_equal(access("b.safetensors", F_OK), -1);
}

static const char *index_says(const char *index, size_t data)
{
	size_t n = strlen(index);
	uint8_t *p = malloc(8 + n + data);
	memset(p, 0, 8 + n + data);
	p[0] = (uint8_t)n;
	memcpy(p + 8, index, n);
	StFile f;
	bool ok = st_open_bytes(ctx, "test", p, 8 + n + data, &f);
	free(p);
	return ok ? "" : ctx->last->text;
}

static void test_safetensors_messages(void **state)
{
	(void)state;
#define T(dtype, shape, range)                                                                     \
	"{\"a\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" range "}}"
	assert_string_equal(index_says(T("\"F32\"", "[2]", "[0,8]"), 8), "");
	assert_string_equal(index_says(T("\"F32\"", "[2]", "[8,16]"), 16), "");
	assert_string_equal(index_says(T("\"F32\"", "[]", "[0,4]"), 4), "");
	assert_string_equal(index_says(T("\"F32\"", "[0]", "[8,8]"), 8), "");
	assert_string_equal(index_says(T("\"F32\"", "[1,1,1,1,1,1,1,2]", "[0,8]"), 8), "");
	assert_string_equal(index_says(T("\"F9\"", "[2]", "[0,8]"), 8),
			    "tensor a: unsupported dtype F9");
	assert_string_equal(index_says(T("3", "[2]", "[0,8]"), 8),
			    "tensor a: unsupported dtype (none)");
	assert_string_equal(index_says(T("\"F32\"", "2", "[0,8]"), 8), "tensor a: bad shape");
	assert_string_equal(index_says(T("\"F32\"", "[\"2\"]", "[0,8]"), 8), "tensor a: bad shape");
	assert_string_equal(index_says(T("\"F32\"", "[-1]", "[0,8]"), 8), "tensor a: bad shape");
	assert_string_equal(index_says(T("\"F32\"", "[4611686018427387904,4]", "[0,8]"), 8),
			    "tensor a: bad shape");
	assert_string_equal(
		index_says(
			T("\"F32\"",
			  "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2]",
			  "[0,8]"),
			8),
		"tensor a: bad shape");
	assert_string_equal(index_says(T("\"F32\"", "[3]", "[0,8]"), 8),
			    "tensor a has 8 bytes, its shape needs 12");
	assert_string_equal(index_says(T("\"F32\"", "[1]", "[0,8]"), 8),
			    "tensor a has 8 bytes, its shape needs 4");
	assert_string_equal(index_says(T("\"F32\"", "[2]", "[0,8]"), 7),
			    "tensor a lies outside the file");
	assert_string_equal(index_says(T("\"F32\"", "[2]", "[8,0]"), 8),
			    "tensor a lies outside the file");
	assert_string_equal(index_says(T("\"F32\"", "[2]", "[0,\"8\"]"), 8),
			    "tensor a lies outside the file");
	assert_string_equal(index_says(T("\"F32\"", "[2]", "[\"0\",8]"), 8),
			    "tensor a lies outside the file");
	assert_string_equal(
		index_says(T("\"F32\"", "[2]", "[0,18446744073709551615]"), 8),
		"the index is not valid JSON: too big integer near '18446744073709551615'");
	assert_string_equal(index_says("{\"a\":3}", 8), "a: expected an object");
	assert_string_equal(index_says("{\"__metadata__\":{\"k\":3}}", 8),
			    "metadata k is not a string");
	assert_string_equal(index_says("{\"__metadata__\":3}", 8),
			    "__metadata__: expected an object");
	assert_string_equal(index_says("[]", 8), "the index is not valid JSON: no object");
	assert_string_equal(index_says("{\"a\":{},\"a\":{}}", 8),
			    "the index is not valid JSON: duplicate object key near '\"a\"'");
	StFile f;
	uint8_t eight[9] = {1, 0, 0, 0, 0, 0, 0, 0, '{'};
	for (size_t n = 0; n < 9; n++) {
		assert_false(st_open_bytes(ctx, "test", eight, n, &f));
		assert_string_equal(ctx->last->text,
				    "not a safetensors file, or truncated: no index");
	}
	memset(eight, 0, 8); /* an index without a byte */
	assert_false(st_open_bytes(ctx, "test", eight, 8, &f));
	assert_string_equal(ctx->last->text,
			    "the index is not valid JSON: '[' or '{' expected near end of file");
	eight[7] = 0x80;
	assert_false(st_open_bytes(ctx, "test", eight, 9, &f));
	assert_string_equal(ctx->last->text, "not a safetensors file, or truncated: no index");
}

/* ---- reading files ---- */

static void test_map(void **state)
{
	(void)state;
	FileMap map;
	assert_int_equal(mkfifo("fifo", 0600), 0); /* nobody writes: opening must not wait */
	assert_false(file_map(ctx, "fifo", &map));
	assert_string_equal(ctx->last->text, "not a regular file");
	assert_false(file_map(ctx, ".", &map));
	assert_string_equal(ctx->last->text, "not a regular file");
	assert_false(file_map(ctx, "none", &map));
	assert_string_equal(ctx->last->text, "cannot open: No such file or directory");
	assert_string_equal(ctx->last->where, "none");
	close(open("empty", O_CREAT | O_WRONLY, 0600));
	assert_true(file_map(ctx, "empty", &map) && map.size == 0 && map.data);
	assert_string_equal(file_base("a/b/c"), "c");
	assert_string_equal(file_base("c"), "c");
	assert_string_equal(file_base("a/"), "");
	unlink("fifo");
	unlink("empty");
}

/* ---- outputs ---- */

static void write_out(const char *path, const char *text)
{
	OutFile *o = out_begin(ctx, path);
	if (!o || !out_open(ctx, o))
		fail_msg("%s: %s", path, ctx->last->text);
	assert_int_equal(o->folder ? 0 : strncmp(o->tmp, o->to, strlen(o->to)), 0);
	out_write(o, text, strlen(text));
	assert_true(out_commit(ctx, o));
}

static void refuses(const char *path, const char *why)
{
	assert_null(out_begin(ctx, path));
	assert_string_equal(ctx->last->text, why);
}

static void test_links(void **state)
{
	(void)state;
	assert_int_equal(mkdir("d", 0700), 0);
	assert_int_equal(symlink("d/real", "l1"), 0);
	assert_int_equal(symlink("l1", "l2"), 0);
	assert_int_equal(symlink("../l2", "d/l3"), 0);
	write_out("d/l3", "first"); /* dangling */
	assert_file("d/real", "first", 5);
	write_out("l2", "second");
	assert_file("d/real", "second", 6);
	char full[100];
	snprintf(full, sizeof full, "%s/d/real", dir);
	assert_int_equal(symlink(full, "d/absolute"), 0);
	write_out("d/absolute", "third");
	assert_file("d/real", "third", 5);
	struct stat st;
	assert_true(lstat("l1", &st) == 0 && S_ISLNK(st.st_mode));
	assert_int_equal(symlink("round", "round"), 0);
	refuses("round", "cannot write: Too many levels of symbolic links");
	static const char *const made[] = {"d/real", "d/l3", "d/absolute", "l1", "l2", "round"};
	for (size_t k = 0; k < sizeof made / sizeof *made; k++)
		assert_int_equal(unlink(made[k]), 0);
	assert_int_equal(rmdir("d"), 0); /* nothing else was left there */
}

static void test_refused(void **state)
{
	(void)state;
	assert_int_equal(mkdir("d", 0700), 0);
	refuses("d", "cannot write: is a folder");
	refuses("", "cannot write: the name of the output is empty");
	refuses("none/x", "cannot write: No such file or directory");
	refuses("/dev/fd/99999", "cannot write: No such file or directory");
	write_out("in", "input");
	assert_int_equal(link("in", "same"), 0);
	assert_int_equal(symlink("in", "linked"), 0);
	out_spare(ctx, "in");
	out_spare(ctx, "d");    /* no regular file */
	out_spare(ctx, "none"); /* nothing */
	const char *why = "cannot write: this file is an input, and would be overwritten";
	refuses("in", why);
	refuses("same", why);
	refuses("linked", why);
	refuses("d", "cannot write: is a folder");
	write_out("other", "is none");
	assert_file("in", "input", 5);
	static const char *const made[] = {"in", "same", "linked", "other"};
	for (size_t k = 0; k < sizeof made / sizeof *made; k++)
		assert_int_equal(unlink(made[k]), 0);
	assert_int_equal(rmdir("d"), 0);
}

/* What cannot be replaced is written into: a device, a descriptor, a pipe. */
static void test_into(void **state)
{
	(void)state;
	write_out("/dev/null", "gone");
	int fd = open("held", O_CREAT | O_RDWR | O_APPEND, 0600);
	assert_true(fd >= 0 && write(fd, "a", 1) == 1);
	static const char *const names[] = {"/dev/fd/%d", "/proc/self/fd/%d"};
	for (size_t k = 0; k < 2; k++) {
		char path[64];
		snprintf(path, sizeof path, names[k], fd);
		write_out(path, k ? "c" : "b");
	}
	assert_int_equal(unlink("held"), 0); /* there is no name any more */
	char path[64], text[8] = "";
	snprintf(path, sizeof path, "/dev/fd/%d", fd);
	write_out(path, "d");
	assert_int_equal(pread(fd, text, sizeof text, 0), 4);
	assert_string_equal(text, "abcd");
	close(fd);
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	snprintf(path, sizeof path, "/dev/fd/%d", ends[1]);
	write_out(path, "piped");
	assert_int_equal(read(ends[0], text, sizeof text), 5);
	close(ends[0]);
	close(ends[1]);
	OutFile *full = out_begin(ctx, "/dev/full");
	assert_true(full && out_open(ctx, full));
	out_write(full, "x", 1);
	assert_false(out_commit(ctx, full));
	assert_string_equal(ctx->last->text, "cannot write: No space left on device");
	assert_string_equal(ctx->last->where, "/dev/full");
	refuses("/dev/fd/987654", "cannot write: No such file or directory");
}

static void test_given_up(void **state)
{
	(void)state;
	write_out("kept", "old");
	OutFile *o = out_begin(ctx, "kept");
	assert_true(o && out_open(ctx, o));
	out_write(o, "new", 3);
	const char *tmp = arena_strdup(ctx->arena, o->tmp);
	assert_int_equal(access(tmp, F_OK), 0);
	out_drop(o);
	assert_int_equal(access(tmp, F_OK), -1);
	out_drop(o);
	assert_file("kept", "old", 3);
	o = out_begin(ctx, "kept"); /* given up with the context */
	assert_true(o && out_open(ctx, o));
	char again[100];
	snprintf(again, sizeof again, "%s", o->tmp);
	assert_int_equal(access(again, F_OK), 0);
	teardown(state);
	assert_int_equal(access(again, F_OK), -1);
	setup(state);
	assert_int_equal(unlink("kept"), 0);
}

static void touch(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
}

/* Left by a process that is no more, by one that runs, by another machine's, and what only looks
 * like it. */
static void test_sweep(void **state)
{
	(void)state;
	const char *mine = path_temp(ctx, "out");
	unsigned space;
	assert_int_equal(strncmp(mine, "out.tmp-", 8), 0);
	assert_int_equal(sscanf(mine + 8, "%8x", &space), 1);
	assert_string_not_equal(mine, path_temp(ctx, "out"));
	char stale[64], alive[64], foreign[64], other[64], zero[64];
	snprintf(stale, sizeof stale, "out.tmp-%08x-%d-0", space, 0x3ffffff); /* no such process */
	snprintf(alive, sizeof alive, "out.tmp-%08x-%ld-7", space, (long)getpid());
	snprintf(foreign, sizeof foreign, "out.tmp-%08x-%d-0", space + 1, 0x3ffffff);
	snprintf(other, sizeof other, "not.tmp-%08x-%d-0", space, 0x3ffffff);
	snprintf(zero, sizeof zero, "out.tmp-%08x-0-0", space);
	static const char *const plain[] = {"out", "out.tmp", "out.tmp-", "outer"};
	touch(stale), touch(alive), touch(foreign), touch(other), touch(zero);
	for (size_t k = 0; k < 4; k++)
		touch(plain[k]);
	path_sweep(ctx, "out");
	assert_int_equal(access(stale, F_OK), -1);
	touch(stale);
	char full[100];
	snprintf(full, sizeof full, "%s/out", dir);
	path_sweep(ctx, full);
	assert_int_equal(unlink(stale), -1);
	path_sweep(ctx, "none/out");
	assert_int_equal(unlink(alive) + unlink(foreign) + unlink(other) + unlink(zero), 0);
	for (size_t k = 0; k < 4; k++)
		assert_int_equal(unlink(plain[k]), 0);
}

static void test_folder(void **state)
{
	(void)state;
	struct stat st;
	setenv("TMPDIR", dir, 1);
	const char *a = folder_temp(ctx), *b = folder_temp(ctx);
	assert_true(a && b && strcmp(a, b));
	assert_int_equal(strncmp(a, dir, strlen(dir)), 0);
	assert_true(stat(a, &st) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & 0777) == 0700);
	assert_int_equal(rmdir(a) + rmdir(b), 0);
	setenv("TMPDIR", "/none/such", 1);
	assert_null(folder_temp(ctx));
	assert_string_equal(ctx->last->text,
			    "cannot make a temporary folder: No such file or directory");
	setenv("TMPDIR", "", 1);
	a = folder_temp(ctx);
	assert_true(a && !strncmp(a, "/tmp/weft-", 10) && rmdir(a) == 0);
	unsetenv("TMPDIR");
}

static int enter(void **state)
{
	(void)state;
	return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int leave(void **state)
{
	(void)state;
	static const char *const names[] = {"a.npy", "a.npz", "a.safetensors"};
	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		unlink(names[k]);
	return chdir("/") || rmdir(dir); /* fails when something was left behind */
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(kinds),
		TEST(onnx),
		TEST(graph_text),
		TEST(npy_bytes),
		TEST(npy_padding),
		TEST(npy_versions),
		TEST(npy_messages),
		TEST(npz_bytes),
		TEST(safetensors_bytes),
		TEST(safetensors_messages),
		TEST(map),
		TEST(links),
		TEST(refused),
		TEST(into),
		TEST(given_up),
		TEST(sweep),
		TEST(folder),
	};
	return cmocka_run_group_tests(tests, enter, leave);
}
