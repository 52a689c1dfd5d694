/* Filters that are transformed for Winograd's convolutions: the bits of the contractions that the
 * pass keeps where weights are replaceable. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "ir/interp/interp.h"
#include "ir/target/winograd_matrices.h"
#include "tests/unit/ir_fixture.h"

enum { MOST = 21 * 5 };

/* %u[j, i, O, C], as passes/winograd.c writes it. */
static const char contractions[] =
	"graph @f(%g: f64[n, 3], %w: f32[o, c, 3, 3]) where 1 <= n, 1 <= o, 1 <= c {\n"
	"  %x = convert(%w, dtype=f64)\n"
	"  %y = contract(%g, %x, batch_x=[], batch_y=[], sum_x=[1], sum_y=[2], acc=f64)\n"
	"  %z = contract(%g, %y, batch_x=[], batch_y=[], sum_x=[1], sum_y=[3], acc=f64)\n"
	"  %u = convert(%z, dtype=f32)\n"
	"  %v = permute(%u, perm=[1, 0, 3, 2])\n"
	"  return %v\n"
	"}\n";

static void check(uint32_t m, size_t out, size_t in, const float *taps)
{
	const Winograd w = winograd_matrices(m);
	float place[WINOGRAD_MAX * WINOGRAD_MAX * MOST];
	double g[WINOGRAD_MAX * WINOGRAD_TAPS];
	for (uint32_t i = 0; i < w.n; i++)
		memcpy(g + (size_t)i * WINOGRAD_TAPS, w.g[i], sizeof w.g[i]);
	Tensor arg[] = {{.dtype = DT_f64, .rank = 2, .dim = {w.n, 3}, .data = g},
			{.dtype = DT_f32, .rank = 4, .dim = {(int64_t)out, (int64_t)in, 3, 3}}};
	arg[1].data = arena_dup(ctx->arena, taps, out * in * 9 * sizeof *taps);
	Tensor want;
	if (!interp(ctx, parsed(contractions), arg, 2, &want, 1, ctx->arena))
		fail_msg("%s", ctx->last->text);
	winograd_filters(&w, taps, out, in, place);
	const float *expected = want.data;
	for (size_t k = 0; k < w.n * w.n * out * in; k++)
		if (isnan(expected[k]))
			assert_true(isnan(place[k]));
		else
			assert_memory_equal(&place[k], &expected[k], sizeof *place);
}

static void fill(float *taps, uint32_t seed)
{
	for (uint32_t k = 0; k < MOST * 9; k++) {
		seed = seed * 1664525 + 1013904223;
		taps[k] = ldexpf((float)(int32_t)seed, (int)(seed >> 5 & 31) - 47);
	}
}

static void test_bits(void **state)
{
	static const size_t size[][2] = {{1, 1}, {8, 3}, {7, 2}, {9, 1}, {16, 4}, {21, 5}};
	float taps[MOST * 9];
	(void)state;
	for (uint32_t k = 0; k < sizeof size / sizeof *size; k++) {
		fill(taps, k);
		check(2, size[k][0], size[k][1], taps);
		check(4, size[k][0], size[k][1], taps);
	}
}

/* Zeros of both signs, and what is not finite. */
static void test_specials(void **state)
{
	static const float special[] = {0.0F, -0.0F, INFINITY, -INFINITY, NAN, 1e-45F, 3e38F};
	float taps[MOST * 9];
	(void)state;
	for (uint32_t k = 0; k < sizeof special / sizeof *special; k++) {
		for (uint32_t i = 0; i < MOST * 9; i++)
			taps[i] = special[k];
		check(4, 9, 2, taps);
		fill(taps, 7);
		taps[30] = special[k];
		check(4, 9, 2, taps);
		check(2, 9, 2, taps);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_bits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_specials, setup, teardown)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
