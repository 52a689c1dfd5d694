/* Arenas, growable arrays and contexts: alignment, zeroing, marks, and running out of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/ctx.h"

static bool is_zero(const unsigned char *p, size_t n)
{
	for (size_t k = 0; k < n; k++)
		if (p[k])
			return false;
	return true;
}

static void test_aligned_and_zeroed(void **state)
{
	(void)state;
	jmp_buf unwind;
	if (setjmp(unwind))
		fail();
	Arena *a = arena_new(&unwind);
	for (size_t n = 0; n < 3000; n += 7) {
		unsigned char *p = arena_alloc(a, n * (n % 5));
		assert_int_equal((uintptr_t)p % 16, 0);
		assert_true(is_zero(p, n * (n % 5)));
		memset(p, 0xff, n * (n % 5));
	}
	assert_string_equal(arena_strndup(a, "abcdef", 3), "abc");
	assert_string_equal(arena_printf(a, "%s-%d", "x", 42), "x-42");
	arena_free(a);
}

/* What was allocated before a mark survives; what comes after a release is zero again. */
static void test_marks(void **state)
{
	(void)state;
	Arena *a = arena_new(NULL);
	ArenaMark empty = arena_mark(a);
	unsigned seed = 1;
	for (int round = 0; round < 200; round++) {
		unsigned char *kept = arena_alloc(a, 40);
		memset(kept, round & 0xff, 40);
		ArenaMark mark = arena_mark(a);
		size_t used = arena_used(a);
		for (int k = 0; k < 20; k++) {
			seed = seed * 1664525u + 1013904223u;
			size_t n = (seed >> 20) * (seed >> 29 == 0 ? 20 : 1);
			unsigned char *p = arena_alloc(a, n);
			assert_true(is_zero(p, n));
			memset(p, 0xee, n);
		}
		arena_release(a, mark);
		assert_int_equal(arena_used(a), used);
		for (int k = 0; k < 40; k++)
			assert_int_equal(kept[k], round & 0xff);
	}
	arena_release(a, empty);
	assert_int_equal(arena_used(a), 0);
	assert_true(is_zero(arena_alloc(a, 5000), 5000));
	arena_free(a);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	for (volatile size_t n = 1; n < 20; n++) {
		jmp_buf unwind;
		Arena *volatile a = arena_new(&unwind);
		volatile unsigned count = 0;
		int why = setjmp(unwind);
		if (!why) {
			arena_fail_after(n);
			for (;; count++)
				arena_alloc(a, count % 3 ? 1000 : 100000);
		}
		assert_int_equal(why, UNWIND_OOM);
		assert_true(count + 1 >= n);
		assert_non_null(arena_alloc(a, 1 << 20)); /* failed once only */
		arena_free(a);
	}
	arena_fail_after(1);
	assert_null(ctx_new());
	arena_fail_after(2);
	assert_null(ctx_new());
	arena_fail_after(0);
}

static void test_impossible_sizes(void **state)
{
	(void)state;
	jmp_buf unwind;
	Arena *a = arena_new(&unwind);
	volatile int caught = 0;
	if (setjmp(unwind) == UNWIND_OOM)
		caught++;
	if (caught == 0)
		arena_calloc(a, SIZE_MAX / 4, 8);
	if (caught == 1)
		arena_alloc(a, SIZE_MAX - 4);
	if (caught == 2)
		arena_strndup(a, "", SIZE_MAX);
	assert_int_equal(caught, 3);
	arena_free(a);
}

static void test_array(void **state)
{
	(void)state;
	Arena *a = arena_new(NULL);
	ARRAY(uint64_t) array = {0};
	for (uint64_t k = 0; k < 100000; k++)
		array_push(a, &array, k * k);
	assert_int_equal(array.n, 100000);
	for (uint64_t k = 0; k < 100000; k++)
		assert_true(array.data[k] == k * k);
	arena_free(a);
}

static void note(void *arg)
{
	Text *t = *(Text **)arg;
	text_char(t, *(char *)((Text **)arg + 1));
}

static void test_diagnostics(void **state)
{
	(void)state;
	Ctx *ctx = ctx_new();
	if (setjmp(ctx->unwind))
		fail();
	Text t;
	text_init(&t, ctx->arena);
	assert_false(ctx_error(ctx, "m.pt2: node add", "%d inputs, expected %d", 3, 2));
	ctx->file = "m.onnx";
	ctx_warn(ctx, NULL, "opset %d", 99);
	ctx->file = NULL;
	ctx_error(ctx, NULL, "%0*d", 3000, 1);
	assert_int_equal(ctx->nerror, 2);
	ctx_print(ctx, &t);
	assert_true(t.n > 3000);
	const char *want = "m.pt2: node add: error: 3 inputs, expected 2\n"
	                   "m.onnx: warning: opset 99\n"
	                   "error: 000";
	assert_memory_equal(t.data, want, strlen(want));
	ctx_free(ctx);
}

static void test_cleanup_order(void **state)
{
	(void)state;
	Arena *a = arena_new(NULL);
	Text log;
	text_init(&log, a);
	struct {
		Text *t;
		char c;
	} first = {&log, 'a'}, second = {&log, 'b'};
	Ctx *ctx = ctx_new();
	ctx_defer(ctx, note, &first);
	ctx_defer(ctx, note, &second);
	ctx_free(ctx);
	assert_string_equal(log.data, "ba");
	arena_free(a);
}

static void test_bug(void **state)
{
	(void)state;
	Ctx *ctx = ctx_new();
	ctx->pass = "fuse";
	int why = setjmp(ctx->unwind);
	if (!why)
		ctx_bug(ctx, "node %%%d%0*d", 7, 5000, 0);
	assert_int_equal(why, UNWIND_BUG);
	assert_memory_equal(ctx->bug_text, "internal error in fuse: node %7000", 34);
	assert_int_equal(strlen(ctx->bug_text), sizeof ctx->bug_text - 1);
	ctx_free(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_aligned_and_zeroed),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_out_of_memory),
		cmocka_unit_test(test_impossible_sizes),
		cmocka_unit_test(test_array),
		cmocka_unit_test(test_diagnostics),
		cmocka_unit_test(test_cleanup_order),
		cmocka_unit_test(test_bug),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
