/* The door to LAPACK where there is no library: what is said, and what works without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WEFT_LAPACK_LIBRARIES "libweft-has-no-such-library.so.9"
#include "runtime/lapack.c" /* with names of libraries that are nowhere */

enum { N = 12, ROOM = 1 << 20 };

static int64_t integers[] = {0, 1, 1, 0, 0}; /* part, parts, count, pairs, flag */
static double room[ROOM];

static WeftTensor tensor(void *data, int32_t ndim, int64_t *shape)
{
	return (WeftTensor){.data = data,
			    .device = {WEFT_CPU, 0},
			    .ndim = ndim,
			    .dtype = {WEFT_FLOAT, 64, 1},
			    .shape = shape};
}

static void with_integers(WeftTensor *t)
{
	for (int k = 0; k < 5; k++)
		t[k] = (WeftTensor){.data = &integers[k], .dtype = {WEFT_INT, 64, 1}};
}

/* Symmetric, of full rank. */
static void fill(double *a, int64_t m, int64_t n)
{
	for (int64_t j = 0; j < n; j++)
		for (int64_t i = 0; i < m; i++)
			a[j * m + i] = cos((double)(i * j + i + j)) + (i == j ? 3 : 0);
}

static void no_library(void **state)
{
	static const char text[] = "LAPACK is needed, but this machine has no liblapack.so.3: "
				   "install Debian's package liblapack3 or libopenblas0";
	WeftStatus status = {0};
	WeftInstance *instance = (WeftInstance *)(void *)room;
	(void)state;
	assert_int_equal(weft_lapack_load(&status), WEFT_ERR_FILE);
	assert_string_equal(status.message, text);
	status = (WeftStatus){0};
	assert_int_equal(weft_rt_open_lapack(NULL, NULL, &instance, &status), WEFT_ERR_FILE);
	assert_null(instance);
	assert_string_equal(status.message, text);
}

static void eig_needs_it(void **state)
{
	double a[4] = {1, 2, 3, 4}, w[4], v[8];
	int64_t square[] = {2, 2}, values[] = {2, 2}, vectors[] = {2, 2, 2};
	WeftTensor in[6] = {tensor(a, 2, square)},
		   out[2] = {tensor(w, 2, values), tensor(v, 3, vectors)};
	WeftStatus status = {0};
	(void)state;
	with_integers(in + 1);
	assert_int_not_equal(weft_lapack_eig(NULL, in, out, room, sizeof room, &status), 0);
	assert_int_equal(status.code, WEFT_ERR_FILE);
	assert_non_null(strstr(status.message, "liblapack3"));
}

static void eigh_does_without(void **state)
{
	static double a[N * N], v[N * N];
	double w[N];
	int64_t square[] = {N, N}, values[] = {N};
	WeftTensor in[6] = {tensor(a, 2, square)},
		   out[2] = {tensor(w, 1, values), tensor(v, 2, square)};
	WeftStatus status = {0};
	(void)state;
	fill(a, N, N);
	with_integers(in + 1);
	assert_int_equal(weft_lapack_eigh(NULL, in, out, room, sizeof room, &status), 0);
	for (int k = 0; k < N; k++)
		for (int i = 0; i < N; i++) {
			double x = 0;
			for (int j = 0; j < N; j++)
				x += a[j * N + i] * v[k * N + j];
			assert_true(fabs(x - w[k] * v[k * N + i]) < 1e-13 * 20);
			assert_true(!k || w[k - 1] <= w[k]);
		}
}

static void svd_does_without(void **state)
{
	enum { M = 9 };
	static double a[M * N], u[M * M], vt[M * N];
	double s[M];
	int64_t shape[] = {N, M}, values[] = {M}, left[] = {M, M}, right[] = {N, M};
	WeftTensor in[5] = {tensor(a, 2, shape)},
		   out[3] = {tensor(s, 1, values), tensor(u, 2, left), tensor(vt, 2, right)};
	WeftTensor all[6];
	WeftStatus status = {0};
	(void)state;
	fill(a, M, N);
	all[0] = in[0];
	with_integers(all + 1);
	assert_int_equal(weft_lapack_svd(NULL, all, out, room, sizeof room, &status), 0);
	for (int j = 0; j < N; j++)
		for (int i = 0; i < M; i++) {
			double x = 0;
			for (int k = 0; k < M; k++)
				x += u[k * M + i] * s[k] * vt[j * M + k];
			assert_true(fabs(x - a[j * M + i]) < 1e-13 * 20);
		}
}

static void numbers_that_are_none(void **state)
{
	double a[3 * 4] = {1, 0, 0, 1, NAN, 0, 0, 1, 1, 0, 0, 1}, w[6];
	int64_t square[] = {3, 2, 2}, values[] = {3, 2};
	WeftTensor in[6] = {tensor(a, 3, square)}, out[1] = {tensor(w, 2, values)};
	WeftStatus status = {0};
	(void)state;
	with_integers(in + 1);
	integers[2] = 3;
	assert_int_not_equal(weft_lapack_eigvalsh(NULL, in, out, room, sizeof room, &status), 0);
	integers[2] = 1;
	assert_int_equal(status.code, WEFT_ERR_CHECK);
	assert_string_equal(status.message, "(Batch element 1): The algorithm failed to converge "
					    "because the input matrix is ill-conditioned or has "
					    "too many repeated eigenvalues (error code: 1)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_library), cmocka_unit_test(eig_needs_it),
		cmocka_unit_test(eigh_does_without), cmocka_unit_test(svd_does_without),
		cmocka_unit_test(numbers_that_are_none)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
