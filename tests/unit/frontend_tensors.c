/* safetensors, npy and npz: what is written reads back, and damaged files are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "frontend/files/npy.h"
#include "ctx_fixture.h"

static char dir[] = "/tmp/weft-XXXXXX";

static const char *path(const char *name)
{
	return arena_printf(ctx->arena, "%s/%s", dir, name);
}

static Tensor ramp(DType d, int64_t rows, int64_t columns)
{
	Tensor t = {.dtype = d, .rank = 2, .dim = {rows, columns}};
	t.data = arena_alloc(ctx->arena, tensor_bytes(&t));
	for (int64_t i = 0; i < rows * columns; i++)
		tensor_set_i64(&t, i, i % 100);
	return t;
}

static void assert_same(const Tensor *a, const Tensor *b)
{
	assert_non_null(a);
	assert_int_equal(a->dtype, b->dtype);
	assert_int_equal(a->rank, b->rank);
	assert_memory_equal(a->dim, b->dim, sizeof *a->dim * a->rank);
	assert_memory_equal(a->data, b->data, tensor_bytes(a));
}

static void test_order(void **state)
{
	(void)state;
	static const char *const sorted[] = {"a",   "b.1",  "x",      "x.1",
					     "x.2", "x.10", "x.10.a", "x.a", "y.0"};
	for (size_t i = 0; i < 9; i++)
		for (size_t k = 0; k < 9; k++) {
			int c = name_compare(sorted[i], sorted[k]);
			assert_true(i < k ? c < 0 : i > k ? c > 0 : c == 0);
		}
	assert_true(name_compare("x.01", "x.1") != 0);
	assert_true(name_compare("x.99999999999999999999", "x.100000000000000000000") < 0);
}

static void test_safetensors(void **state)
{
	(void)state;
	NamedTensor x[4] = {{"x.10", ramp(DT_i8, 1, 3)},
			    {"x.2", ramp(DT_f32, 3, 5)},
			    {"a \"q\"\n", ramp(DT_bf16, 2, 2)},
			    {"empty", ramp(DT_f64, 0, 4)}};
	StMeta meta[2] = {{"op", "add"}, {"k\\", "v\"\t"}};
	assert_true(st_save(ctx, path("a.safetensors"), x, 4, meta, 2));
	StFile f;
	assert_true(st_open(ctx, path("a.safetensors"), &f));
	assert_int_equal(f.n, 4);
	assert_string_equal(f.tensor[2].name, "x.2");
	assert_string_equal(f.tensor[3].name, "x.10");
	for (int k = 0; k < 4; k++)
		assert_same(st_find(&f, x[k].name), &x[k].tensor);
	assert_null(st_find(&f, "x.3"));
	assert_string_equal(st_meta(&f, "op"), "add");
	assert_string_equal(st_meta(&f, "k\\"), "v\"\t");
	assert_null(st_meta(&f, "none"));
	assert_true(st_save(ctx, path("none.safetensors"), NULL, 0, NULL, 0));
	assert_true(st_open(ctx, path("none.safetensors"), &f) && f.n == 0 && !st_find(&f, "x"));
}

static bool st_accepts(const char *index, size_t data)
{
	size_t n = strlen(index);
	uint8_t *p = malloc(8 + n + data); /* exact size: the sanitizer sees reads past the end */
	memset(p, 0, 8 + n + data);
	p[0] = (uint8_t)n;
	memcpy(p + 8, index, n);
	StFile f;
	bool ok = st_open_bytes(ctx, "test", p, 8 + n + data, &f);
	free(p);
	return ok;
}

#define F32 "{\"a\":{\"dtype\":\"F32\","

static void test_bad_safetensors(void **state)
{
	(void)state;
	assert_true(st_accepts(F32 "\"shape\":[2],\"data_offsets\":[0,8]}}", 8));
	static const char *const bad[] = {
		"",
		"{",
		"[]",
		"3",
		"{\"a\":3}",
		"{\"a\":{}}",
		"{\"a\":{\"dtype\":\"F31\",\"shape\":[2],\"data_offsets\":[0,8]}}",
		F32 "\"shape\":[3],\"data_offsets\":[0,8]}}",
		F32 "\"shape\":[-2],\"data_offsets\":[0,8]}}",
		F32 "\"shape\":[2.0],\"data_offsets\":[0,8]}}",
		F32 "\"shape\":[2],\"data_offsets\":[8,16]}}",
		F32 "\"shape\":[2],\"data_offsets\":[8,0]}}",
		F32 "\"shape\":[2],\"data_offsets\":[-8,0]}}",
		F32 "\"shape\":[2],\"data_offsets\":[0]}}",
		F32 "\"shape\":[4294967296,4294967296,4],\"data_offsets\":[0,0]}}",
		"{\"__metadata__\":{\"a\":1}}",
	};
	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
		uint32_t before = ctx->nerror;
		if (st_accepts(bad[k], 8))
			fail_msg("%s was accepted", bad[k]);
		assert_int_equal(ctx->nerror, before + 1);
	}
	StFile f;
	assert_false(st_open(ctx, path("missing"), &f));
	assert_false(st_open(ctx, dir, &f));
	assert_false(st_save(ctx, path("no/such/dir"), NULL, 0, NULL, 0));
}

static void test_npy(void **state)
{
	(void)state;
	static const DType all[] = {DT_bool, DT_u8, DT_i64, DT_f16, DT_f32, DT_f64, DT_u32, DT_c64};
	for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
		Tensor t = all[k] == DT_c64 ? ramp(DT_f32, 3, 4) : ramp(all[k], 3, 4), back;
		if (all[k] == DT_c64)
			t = (Tensor){.dtype = DT_c64, .rank = 2, .dim = {3, 2}, .data = t.data};
		assert_true(npy_save(ctx, path("a.npy"), &t));
		assert_true(npy_open(ctx, path("a.npy"), &back));
		assert_same(&back, &t);
	}
	Tensor zero = {.dtype = DT_i64, .data = (int64_t[]){7}}, back;
	assert_true(npy_save(ctx, path("z.npy"), &zero) && npy_open(ctx, path("z.npy"), &back));
	assert_same(&back, &zero);
	Tensor bf = ramp(DT_bf16, 1, 1);
	assert_false(npy_save(ctx, path("b.npy"), &bf));
}

static bool parse(const char *header, size_t data, Tensor *t)
{
	size_t n = strlen(header);
	uint8_t *p = malloc(10 + n + data);
	memcpy(p, "\x93NUMPY\x01\x00", 8);
	p[8] = (uint8_t)n;
	p[9] = 0;
	memcpy(p + 10, header, n);
	for (size_t k = 0; k < data; k++)
		p[10 + n + k] = (uint8_t)k;
	bool ok = npy_parse(ctx, "test", p, 10 + n + data, t);
	free(p);
	return ok;
}

static void test_npy_headers(void **state)
{
	(void)state;
	Tensor t;
	assert_true(parse("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n", 6, &t));
	assert_memory_equal(t.data, "\0\2\4\1\3\5", 6);
	assert_true(parse("{\"shape\": (), 'fortran_order': False, 'descr': '<i2'}", 2, &t));
	assert_int_equal(t.rank, 0);
	assert_true(parse("{'descr': '<f4', 'fortran_order': False, 'shape': (2L,), }", 8, &t));
	static const char *const bad[] = {
		"",
		"{",
		"{}",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
		"{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }",
		"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }",
		"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }",
		"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,), }",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (2, ",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 2), }",
		"{'descr': '<f4', 'descr': '<f4', 'shape': (2,), }",
		"{'descr': '<f4",
	};
	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
		uint32_t before = ctx->nerror;
		if (parse(bad[k], 8, &t))
			fail_msg("%s was accepted", bad[k]);
		assert_int_equal(ctx->nerror, before + 1);
	}
}

static void test_npz(void **state)
{
	(void)state;
	NamedTensor x[2] = {{"x.10", ramp(DT_i32, 2, 3)}, {"x.9", ramp(DT_f32, 4, 1)}};
	assert_true(npz_save(ctx, path("a.npz"), x, 2));
	StFile f;
	assert_true(npz_open(ctx, path("a.npz"), &f));
	assert_int_equal(f.n, 2);
	assert_string_equal(f.tensor[0].name, "x.9");
	assert_same(st_find(&f, "x.10"), &x[0].tensor);
	assert_same(st_find(&f, "x.9"), &x[1].tensor);
	assert_false(npz_save(ctx, path("no/such/dir.npz"), x, 2));
}

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	static const char *const names[] = {"a.safetensors", "none.safetensors", "a.npy", "z.npy",
					    "a.npz"};
	char full[64];
	for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
		snprintf(full, sizeof full, "%s/%s", dir, names[k]);
		unlink(full);
	}
	return rmdir(dir); /* fails when a temporary file was left behind */
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(order), TEST(safetensors), TEST(bad_safetensors),
		TEST(npy),   TEST(npy_headers), TEST(npz),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
