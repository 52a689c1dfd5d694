/* GGUF files: what blocks stand for, and damaged files. Names of weights in files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctx_fixture.h"
#include "frontend/files/checkpoint.h"
#include "frontend/files/safetensors.h"

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

static const GgufTensor *tensor_named(const GgufFile *f, const char *name)
{
	for (uint32_t k = 0; k < f->n; k++)
		if (!strcmp(f->tensor[k].name, name))
			return &f->tensor[k];
	return NULL;
}

/* Returns the scale or offset of weight i. */
static float number_of(const Tensor *of_groups, const Tensor *units, const GgufTensor *t, int64_t i)
{
	const float x = (float)tensor_f64(of_groups, i / t->blocks->group);
	return units->data ? x * (float)tensor_f64(units, i / t->blocks->weights) : x;
}

static void check_blocks(const GgufTensor *t, const Tensor *want)
{
	const GgufUnpacked u = gguf_unpack(ctx->arena, t);
	const int8_t *q = u.q.data;
	const float *y = want->data;
	assert_int_equal(u.q.dtype, DT_i8);
	assert_int_equal(tensor_numel(&u.q), tensor_numel(want));
	assert_int_equal(u.scale.dim[1] * t->blocks->group, u.q.dim[1]);
	assert_int_equal(t->blocks->offsets, u.offset.data != NULL);
	assert_int_equal(t->blocks->units, u.scale_unit.data != NULL);
	for (int64_t i = 0; i < tensor_numel(want); i++) {
		const float v = (float)q[i] * number_of(&u.scale, &u.scale_unit, t, i);
		assert_true(y[i] ==
			    (u.offset.data ? v - number_of(&u.offset, &u.offset_unit, t, i) : v));
	}
}

static void test_kinds(void **state)
{
	(void)state;
	GgufFile f;
	StFile want;
	uint32_t nblocks = 0;
	assert_true(gguf_open(ctx, TEST_DATA "/gguf/kinds.gguf", &f));
	assert_true(st_open(ctx, TEST_DATA "/gguf/kinds.safetensors", &want));
	assert_int_equal(f.n, want.n);
	for (uint32_t k = 0; k < want.n; k++) {
		const GgufTensor *t = tensor_named(&f, want.tensor[k].name);
		const Tensor *y = &want.tensor[k].tensor;
		assert_non_null(t);
		assert_int_equal(t->tensor.rank, 2);
		if (t->blocks) {
			assert_string_equal(t->blocks->name, t->name);
			check_blocks(t, y);
			nblocks++;
			continue;
		}
		assert_int_equal(t->tensor.dtype, y->dtype);
		assert_memory_equal(t->tensor.dim, y->dim, 2 * sizeof *y->dim);
		assert_memory_equal(t->tensor.data, y->data, tensor_bytes(y));
	}
	assert_int_equal(nblocks, 13);
}

static void test_meta(void **state)
{
	(void)state;
	GgufFile f;
	assert_true(gguf_open(ctx, TEST_DATA "/gguf/kinds.gguf", &f));
	assert_string_equal(gguf_meta(&f, "general.architecture")->text, "test");
	assert_string_equal(gguf_meta(&f, "test.text")->text, "a text");
	assert_int_equal(gguf_meta(&f, "test.attention.head_count")->number, 2);
	assert_null(gguf_meta(&f, "test.list"));
	assert_null(gguf_meta(&f, "test.number"));
}

static uint8_t *contents(size_t *size)
{
	FileMap file;
	assert_true(file_map_full(ctx, TEST_DATA "/gguf/kinds.gguf", &file));
	*size = file.size;
	return arena_dup(ctx->arena, file.data, file.size);
}

/* Expects an error whose text contains `text`. */
static void refuse(const void *data, size_t size, const char *text)
{
	GgufFile f;
	const CtxMark mark = ctx_mark(ctx);
	const uint32_t before = ctx->nerror;
	if (gguf_open_bytes(ctx, "file", data, size, &f))
		fail_msg("%zu bytes are read, expected: %s", size, text);
	assert_int_equal(ctx->nerror, before + 1);
	if (!strstr(ctx->last->text, text))
		fail_msg("%s: not in: %s", text, ctx->last->text);
	ctx_rewind(ctx, mark);
}

static void test_damaged(void **state)
{
	(void)state;
	size_t size;
	uint8_t *data = contents(&size);
	refuse(data, 0, "not a GGUF file");
	refuse("GGML", 4, "not a GGUF file");
	for (size_t n = 4; n < 1200; n++) /* the index ends before */
		refuse(data, n, "");
	refuse(data, size - 64, "behind the end of the file");
	data[4] = 1;
	refuse(data, size, "version 1");
	data[4] = 0;
	data[7] = 3;
	refuse(data, size, "big-endian");
}

/* Whatever stands in the index, reading ends, and tensors lie in the file. */
static void test_mutants(void **state)
{
	(void)state;
	size_t size;
	uint32_t loaded = 0;
	uint8_t *data = contents(&size);
	for (size_t at = 4; at < 1300; at++)
		for (uint32_t bit = 0; bit < 8; bit++) {
			GgufFile f;
			const CtxMark mark = ctx_mark(ctx);
			data[at] ^= (uint8_t)(1u << bit);
			const bool ok = gguf_open_bytes(ctx, "file", data, size, &f);
			assert_true(ok || ctx->last);
			for (uint32_t k = 0; ok && k < f.n; k++)
				if (f.tensor[k].blocks)
					gguf_unpack(ctx->arena, &f.tensor[k]);
			loaded += ok;
			ctx_rewind(ctx, mark);
			data[at] ^= (uint8_t)(1u << bit);
		}
	assert_true(loaded > 1000); /* letters of names and of texts */
}

/* ---- names ---- */

static SavedName name_of(const char *rules, const char *model)
{
	NameRules r;
	SavedName out;
	Checkpoint c = {.path = "file"};
	intern_init(&c.names, ctx->arena);
	intern(&c.names, "there", 5, NULL);
	array_push(ctx->arena, &c.weight, (SavedWeight){.name = "there"});
	GgufMeta meta[] = {{"heads", NULL, 6}, {"layers", NULL, 7}};
	c.gguf.nmeta = 2;
	c.gguf.meta = meta;
	assert_true(names_parse(ctx, "names.txt", rules, strlen(rules), &r));
	assert_true(names_find(ctx, &r, &c, model, &out));
	return out;
}

static void test_names(void **state)
{
	(void)state;
	static const char rules[] = "# a comment\n"
				    "a.*.w = b.*.x\n"
				    "a.*.*.v = *-*  # twice\n"
				    "\n"
				    "q.* = k.* heads=4\r\n"
				    "p = m heads=heads\n"
				    "t = not.there\n"
				    "t = there\n"
				    "u = first\n"
				    "u = second\n"
				    "v=close # no blanks\n"
				    "z = y heads=layers_kv\n";
	assert_string_equal(name_of(rules, "a.12.w").name, "b.12.x");
	assert_string_equal(name_of(rules, "model.a.1.w").name, "b.1.x");
	assert_string_equal(name_of(rules, "ba.1.w").name, "ba.1.w");
	assert_string_equal(name_of(rules, "a.1.2.v").name, "1-2");
	assert_string_equal(name_of(rules, "a.w").name, "a.w");
	assert_string_equal(name_of(rules, "q.1").name, "k.1");
	assert_int_equal(name_of(rules, "q.1").heads, 4);
	assert_int_equal(name_of(rules, "p").heads, 6);
	assert_string_equal(name_of(rules, "t").name, "there");
	assert_string_equal(name_of(rules, "u").name, "first");
	assert_string_equal(name_of(rules, "v").name, "close");
	assert_int_equal(name_of("", "a").heads, 0);
	assert_int_equal(name_of(rules, "z").heads, 7); /* as many as without _kv */
}

static void test_bad_names(void **state)
{
	(void)state;
	static const char *const bad[] = {"a",
					  "a = ",
					  "a b c",
					  "* = a",
					  "a = b heads",
					  "a = b heads=",
					  "a = b c",
					  "a = b heads=2 c",
					  "********* = *********"};
	NameRules r;
	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
		assert_false(names_parse(ctx, "names.txt", bad[k], strlen(bad[k]), &r));
		assert_string_equal(ctx->last->where, "names.txt:1");
	}
}

static void test_bad_heads(void **state)
{
	(void)state;
	static const char *const bad[] = {"a = b heads=no", "a = b heads=0", "a = b heads=-1",
					  "a = b heads=99999999999999999999"};
	NameRules r;
	SavedName out;
	Checkpoint c = {.path = "file"};
	intern_init(&c.names, ctx->arena);
	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
		assert_true(names_parse(ctx, "names.txt", bad[k], strlen(bad[k]), &r));
		assert_false(names_find(ctx, &r, &c, "a", &out));
		assert_non_null(strstr(ctx->last->text, "no number of heads"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(kinds), TEST(meta),      TEST(damaged),   TEST(mutants),
		TEST(names), TEST(bad_names), TEST(bad_heads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
