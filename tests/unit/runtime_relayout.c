/* Tensors in stored layouts, made in parts of any size: random ones against the definition of a
 * layout. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/relayout.h"

static uint64_t seed = 1;

static int64_t draw(int64_t lo, int64_t hi)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return lo + (int64_t)((seed >> 33) % (uint64_t)(hi - lo + 1));
}

typedef struct {
	uint32_t rank, n;
	int64_t dim[4];
	WeftLayoutDim layout[8];
} Case;

/* Every axis in one or two pieces, in any order; every second one without padding, or pieces that
 * are not full. */
static Case random_case(void)
{
	Case c = {.rank = (uint32_t)draw(1, 4)};
	const int64_t whole = draw(0, 1);
	for (uint32_t a = 0; a < c.rank; a++) {
		c.dim[a] = draw(1, 30);
		int64_t inner = draw(0, 1) ? draw(1, 9) : 0;
		if (whole && inner)
			c.dim[a] = inner * draw(1, 4);
		if (inner) {
			int64_t outer = (c.dim[a] + inner - 1) / inner;
			c.layout[c.n++] =
				(WeftLayoutDim){a, inner, outer, outer + draw(0, 1 - whole)};
			c.layout[c.n++] =
				(WeftLayoutDim){a, 1, inner, inner + draw(0, 2 - 2 * whole)};
		} else {
			c.layout[c.n++] =
				(WeftLayoutDim){a, 1, c.dim[a], c.dim[a] + draw(0, 3 - 3 * whole)};
		}
	}
	for (uint32_t k = c.n; k > 1; k--) {
		uint32_t j = (uint32_t)draw(0, k - 1);
		WeftLayoutDim t = c.layout[j];
		c.layout[j] = c.layout[k - 1];
		c.layout[k - 1] = t;
	}
	if (draw(0, 9) == 0)
		c.n = 0;
	return c;
}

/* Element i of the result, by what a layout is. */
static void element(const Case *c, size_t elem, const char *from, size_t i, char *to)
{
	int64_t index[4] = {0}, at = 0;
	bool inside = true;
	memset(to, 0, elem);
	for (uint32_t d = c->n; d-- > 0;) {
		const WeftLayoutDim *l = &c->layout[d];
		int64_t k = (int64_t)(i % (size_t)l->padded);
		i /= (size_t)l->padded;
		inside &= k < l->extent;
		index[l->axis] += k * l->divisor;
	}
	for (uint32_t a = 0; a < c->rank; a++) {
		inside &= index[a] < c->dim[a];
		at = at * c->dim[a] + index[a];
	}
	if (inside)
		memcpy(to, from + (size_t)(c->n ? at : (int64_t)i) * elem, elem);
}

static void compare(const Case *c, size_t elem)
{
	size_t numel = 1, count = 1;
	for (uint32_t k = 0; k < c->rank; k++)
		numel *= (size_t)c->dim[k];
	for (uint32_t k = 0; k < c->n; k++)
		count *= (size_t)c->layout[k].padded;
	count = c->n ? count : numel;
	if (count > 1 << 20)
		return;
	char *from = malloc(numel * elem), *want = malloc(count * elem),
	     *got = malloc(count * elem);
	for (size_t i = 0; i < numel * elem; i++)
		from[i] = (char)draw(1, 255);
	memset(want, 0x55, count * elem);
	memset(got, 0xaa, count * elem);
	for (size_t i = 0; i < count; i++)
		element(c, elem, from, i, want + i * elem);
	WeftPacking p = weft_packing(from, elem, c->rank, c->dim, c->n, c->layout);
	assert_int_equal(p.count, count);
	int64_t step = draw(0, 2) ? draw(1, (int64_t)count) : (int64_t)count;
	for (size_t i = 0; i < count; i += (size_t)step)
		weft_pack_part(&p, i, count - i < (size_t)step ? count - i : (size_t)step,
			       got + i * elem);
	assert_memory_equal(want, got, count * elem);
	free(from);
	free(want);
	free(got);
}

static void test_parts(void **state)
{
	(void)state;
	const size_t elem[] = {1, 2, 4, 8, 16};
	for (int k = 0; k < 2000; k++) {
		Case c = random_case();
		compare(&c, elem[k % 5]);
	}
}

/* y[K/4][N][4] from x[N][K], K = 6 padded to 8. */
static void test_example(void **state)
{
	(void)state;
	float x[3 * 6], y[2 * 3 * 4];
	const int64_t dim[] = {3, 6};
	const WeftLayoutDim l[] = {{1, 4, 2, 2}, {0, 1, 3, 3}, {1, 1, 4, 4}};
	for (int i = 0; i < 18; i++)
		x[i] = (float)(i + 1);
	memset(y, 0xff, sizeof y);
	const WeftPacking p = weft_packing(x, 4, 2, dim, 3, l);
	assert_int_equal(p.count, 24);
	weft_pack_part(&p, 0, 24, y);
	for (int b = 0; b < 2; b++)
		for (int n = 0; n < 3; n++)
			for (int k = 0; k < 4; k++) {
				float want = b * 4 + k < 6 ? (float)(n * 6 + b * 4 + k + 1) : 0;
				assert_true(y[(b * 3 + n) * 4 + k] == want);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_example),
					   cmocka_unit_test(test_parts)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
