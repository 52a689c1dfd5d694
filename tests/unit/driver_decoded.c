/* Products with weights that are decoded where they are multiplied (Contraction.decoded): against
 * sums in f64 of the dequantised weights, for sizes around those of words, groups, vectors, tiles
 * and slabs; scales that are no numbers; the same bits for every number of rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weft_trace.h"

#include "weights_fixture.h"

enum { MANY_ROWS = 20 };

static Case it;
static double bound[MOST_ROWS * MOST_COLUMNS]; /* of errors */

static void define(Case *c)
{
	const double unit = 64 * 0x1p-24; /* some roundings of chains, which are short */
	const int64_t groups = c->terms / c->group;
	for (int64_t i = 0; i < c->rows; i++)
		for (int64_t j = 0; j < c->columns; j++) {
			double sum = 0, all = 0;
			for (int64_t k = 0; k < c->terms; k++) {
				const int64_t g = j * groups + k / c->group;
				const int q = c->w[j * c->terms + k] - c->zero[g];
				const double x = c->x[i * c->terms + k],
					     w = (double)((float)q * c->scale[g]),
					     more = c->offsets == OFFSET_LESS ? -c->offset[g]
									      : c->offset[g];
				sum += x * (w + more);
				all += fabs(x) * (fabs(w) + fabs(more));
			}
			c->want[i * c->columns + j] = (float)sum;
			bound[i * c->columns + j] = unit * all;
		}
}

static void compare(const Case *c, const float *y, const char *who)
{
	for (int64_t i = 0; i < c->rows * c->columns; i++) {
		const double is = y[i], wanted = c->want[i];
		if (isfinite(wanted) ? !(fabs(is - wanted) <= bound[i]) : isfinite(is))
			fail_msg("%s, %lld x %lld x %lld, groups of %lld: element %lld is %a, "
				 "expected %a",
				 who, (long long)c->rows, (long long)c->terms,
				 (long long)c->columns, (long long)c->group, (long long)i, is,
				 wanted);
	}
}

/* Of a symbolic number of rows a few have the bits that they have among all. */
static void run(Weft *w, const WeftModel *m, bool symbolic, const char *who)
{
	static float y[MOST_ROWS * MOST_COLUMNS], few[MOST_ROWS * MOST_COLUMNS];
	weights_run(w, m, &it, it.rows, y, who);
	compare(&it, y, who);
	for (int64_t rows = 1; symbolic && rows < it.rows; rows += 3) {
		weights_run(w, m, &it, rows, few, who);
		for (int64_t i = 0; i < rows * it.columns; i++)
			if (memcmp(&few[i], &y[i], sizeof *y) && !(isnan(few[i]) && isnan(y[i])))
				fail_msg("%s: element %lld of %lld rows has other bits", who,
					 (long long)i, (long long)rows);
	}
}

static void check(bool symbolic, bool loops)
{
	const char *const level[] = {"generic-c", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
	Weft *w = weft_new();
	WeftGraph *g = weights_model(w, &it, symbolic);
	define(&it);
	for (uint32_t k = 0; loops && k < sizeof level / sizeof *level; k++) {
		const WeftOptions o = {.size = sizeof o, .target = level[k]};
		run(w, weft_loops(w, g, &o), symbolic, level[k]);
	}
	if (weft_has_llvm())
		run(w, weft_jit(w, g, NULL), symbolic, "jit");
	weft_free(w);
}

/* Of 4 bits: words where groups are whole ones. Of 8: bytes of groups. */
static void test_sizes(void **state)
{
	(void)state;
	static const int64_t columns[] = {1, 2, 7, 16, 17, 33, 64, 80}, rows[] = {1, 2, 5, 13, 20};
	uint32_t n = 0;
	for (int64_t terms = 1; terms <= 70; terms++, n++) {
		const int64_t half = terms % 2 ? terms : terms / 2;
		it = (Case){.rows = rows[n % 5],
			    .terms = terms,
			    .columns = columns[n % 8],
			    .group = n % 3 ? half : terms,
			    .is_unsigned = n % 4 == 0,
			    .has_zero = n % 2,
			    .least = n % 4 ? -8 : 0};
		it.most = it.least + 15;
		if (n % 5 < 2) { /* differences are bytes */
			it.least = it.is_unsigned ? 40 : -60;
			it.most = it.is_unsigned ? 255 : 60;
		}
		fill(&it, n);
		check(n % 7 == 0, n % 4 == 0);
	}
}

/* Sums of several slabs and chains; numbers of columns that no vector divides. */
static void test_groups(void **state)
{
	(void)state;
	static const int64_t group[] = {4, 8, 12, 32, 40, 128, 200};
	for (uint32_t i = 0; i < sizeof group / sizeof *group; i++)
		for (uint32_t n = 0; n < 6; n++) {
			it = (Case){.rows = n % 2 ? 1 + n : MANY_ROWS,
				    .terms = MOST_TERMS / group[i] * group[i],
				    .columns = 1 + (i * 31 + n * 17) % MOST_COLUMNS,
				    .group = group[i],
				    .has_zero = n % 3 == 0,
				    .least = n < 3 ? -8 : -60,
				    .most = n < 3 ? 7 : 60};
			fill(&it, 50 + n);
			check(n % 3 == 1, n == i % 6);
		}
}

/* Groups with an offset, which may be whole columns; of two groups, scales with a unit. */
static void test_offsets(void **state)
{
	(void)state;
	static const int64_t group[] = {4, 8, 12, 32, 40, 128};
	for (uint32_t i = 0; i < sizeof group / sizeof *group; i++)
		for (uint32_t n = 0; n < 6; n++) {
			it = (Case){.rows = n % 2 ? 1 + n : MANY_ROWS,
				    .terms = (n < 5 ? 2 + n % 2 : 1) * group[i],
				    .columns = 1 + (i * 31 + n * 17) % MOST_COLUMNS,
				    .group = group[i],
				    .has_zero = n % 3 == 0,
				    .units = n % 4 == 2,
				    .offsets = n % 2 ? OFFSET_LESS : OFFSET_MORE,
				    .least = n < 3 ? 0 : -60,
				    .most = n < 3 ? 15 : 60};
			fill(&it, 150 + n);
			check(n % 3 == 1, n == i % 6);
		}
}

/* Scales that are no numbers make the results of their columns none, and no others. */
static void test_special_scales(void **state)
{
	(void)state;
	static const float special[] = {NAN, INFINITY, -INFINITY, 0, 0x1p-149f};
	for (int64_t rows = 1; rows <= 19; rows += 6) {
		it = (Case){.rows = rows,
			    .terms = 96,
			    .columns = 20,
			    .group = 32,
			    .least = -8,
			    .most = 7};
		fill(&it, (uint32_t)rows);
		for (int64_t k = 0; k < 5; k++)
			it.scale[3 * (4 * k) + 1] = special[k];
		check(rows == 13, true);
	}
	assert_true(isnan(it.want[0]) && isfinite(it.want[1]) && isfinite(it.want[12]));
}

/* Values behind a row of x are not multiplied, not even with zeros. */
static void test_special_values(void **state)
{
	(void)state;
	it = (Case){.rows = 9, .terms = 40, .columns = 17, .group = 8, .least = -8, .most = 7};
	fill(&it, 1);
	it.x[3 * 40] = NAN;
	it.x[5 * 40 + 39] = INFINITY;
	check(false, true);
	assert_true(isnan(it.want[3 * 17]) && isfinite(it.want[4 * 17]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),          cmocka_unit_test(test_groups),
		cmocka_unit_test(test_offsets),        cmocka_unit_test(test_special_scales),
		cmocka_unit_test(test_special_values),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
