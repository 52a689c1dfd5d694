/* The workspace of the compiler's own operators (ops/user/builtin.c), against what the installed
 * LAPACK asks for, and that each computes in a workspace of that size. Skipped where there is no
 * library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/user/userop.h"

enum { SIZES = 200 };

static void *library;
static Ctx *ctx;
static Ir *ir;

static int setup(void **state)
{
	(void)state;
	library = dlopen("liblapack.so.3", RTLD_NOW | RTLD_LOCAL);
	ctx = ctx_new();
	ir = ctx ? ir_new(ctx) : NULL;
	return !ir;
}

static int teardown(void **state)
{
	(void)state;
	ctx_free(ctx);
	return 0;
}

typedef void (*Function)(void);

static Function function(const char *stem, char type)
{
	char name[24];
	Function f;
	snprintf(name, sizeof name, "%c%s", type, stem);
	*(void **)&f = dlsym(library, name);
	assert_true(f != NULL);
	return f;
}

/* The bytes that the operator asks for, of matrices [n, m]. */
static int64_t asked(const char *stem, char type, int64_t n, int64_t m, uint32_t nints)
{
	SymTab *t = ir->syms;
	const UserOp *op = userop_find(ir, arena_printf(ctx->arena, "weft::%s_%c", stem, type));
	const DType d = type == 's' || type == 'c' ? DT_f32 : DT_f64;
	const bool pairs = type == 'c' || type == 'z';
	const Sym dim[] = {sym_int(t, n), sym_int(t, m), sym_int(t, 2)}, zero = sym_int(t, 0),
		  one = sym_int(t, 1);
	const Sym ints[] = {zero, one, one, pairs ? one : zero, zero};
	const Type operand = {.dtype = d, .n = pairs ? 3 : 2, .dim = dim};
	const UserScalars scalars = {.ints = ints, .nint = nints};
	UserSolution s;
	int64_t bytes;
	assert_non_null(op);
	assert_true(userop_solve(ir, op, &operand, &scalars, &s));
	assert_true(sym_is_const(t, userop_work(ir, op, &s), &bytes));
	return bytes;
}

/* The first number of a workspace that a query has filled in. */
static int64_t told(const void *work, char type)
{
	return type == 's' || type == 'c' ? (int64_t) * (const float *)work
					  : (int64_t) * (const double *)work;
}

static int64_t number(char type)
{
	return type == 's' ? 4 : type == 'z' ? 16 : 8;
}

static int64_t real(char type)
{
	return type == 's' || type == 'c' ? 4 : 8;
}

/* The sizes: the first ones, then growing steps. */
static int32_t size_of(int k)
{
	return k < 100 ? k + 1 : 100 + (k - 99) * 7;
}

typedef void (*Ev)(const char *, const char *, const int32_t *, void *, const int32_t *, void *,
		   void *, const int32_t *, int32_t *, const int32_t *, int32_t *, size_t, size_t);
typedef void (*Evc)(const char *, const char *, const int32_t *, void *, const int32_t *, void *,
		    void *, const int32_t *, void *, const int32_t *, int32_t *, const int32_t *,
		    int32_t *, size_t, size_t);

static void eigh(void **state)
{
	(void)state;
	if (!library)
		skip();
	for (const char *t = "sdcz"; *t; t++)
		for (int k = 0; k < 2 * SIZES; k++) {
			const int32_t n = size_of(k / 2), query = -1;
			const char *job = k % 2 ? "V" : "N";
			double work[4], rwork[4], a[4];
			int32_t iwork[4], info = 1;
			if (*t == 'c' || *t == 'z')
				((Evc)function("heevd_", *t))(job, "L", &n, a, &n, a, work, &query,
							      rwork, &query, iwork, &query, &info,
							      1, 1);
			else
				((Ev)function("syevd_", *t))(job, "L", &n, a, &n, a, work, &query,
							     iwork, &query, &info, 1, 1);
			assert_int_equal(info, 0);
			int64_t least = told(work, *t) * number(*t) + 4 * iwork[0] +
					(k % 2 ? 0 : n * n * number(*t));
			if (*t == 'c' || *t == 'z')
				least += told(rwork, *t) * real(*t);
			assert_in_range(least, 0, asked(k % 2 ? "eigh" : "eigvalsh", *t, n, n, 5));
		}
}

typedef void (*Eg)(const char *, const char *, const int32_t *, void *, const int32_t *, void *,
		   void *, void *, const int32_t *, void *, const int32_t *, void *,
		   const int32_t *, int32_t *, size_t, size_t);
typedef void (*Egc)(const char *, const char *, const int32_t *, void *, const int32_t *, void *,
		    void *, const int32_t *, void *, const int32_t *, void *, const int32_t *,
		    void *, int32_t *, size_t, size_t);

static void eig(void **state)
{
	(void)state;
	if (!library)
		skip();
	for (const char *t = "sdcz"; *t; t++)
		for (int k = 0; k < 2 * SIZES; k++) {
			const int32_t n = size_of(k / 2), query = -1;
			const char *job = k % 2 ? "V" : "N";
			const bool pairs = *t == 'c' || *t == 'z';
			double work[4], a[4];
			int32_t info = 1;
			if (pairs)
				((Egc)function("geev_", *t))("N", job, &n, a, &n, a, a, &n, a, &n,
							     work, &query, a, &info, 1, 1);
			else
				((Eg)function("geev_", *t))("N", job, &n, a, &n, a, a, a, &n, a, &n,
							    work, &query, &info, 1, 1);
			assert_int_equal(info, 0);
			const int64_t copies = pairs ? 1 : 1 + k % 2;
			assert_in_range(told(work, *t) * number(*t) + copies * n * n * number(*t) +
						2 * n * real(*t),
					0, asked(k % 2 ? "eig" : "eigvals", *t, n, n, 4));
		}
}

typedef void (*Sd)(const char *, const int32_t *, const int32_t *, void *, const int32_t *, void *,
		   void *, const int32_t *, void *, const int32_t *, void *, const int32_t *,
		   int32_t *, int32_t *, size_t);
typedef void (*Sdc)(const char *, const int32_t *, const int32_t *, void *, const int32_t *, void *,
		    void *, const int32_t *, void *, const int32_t *, void *, const int32_t *,
		    void *, int32_t *, int32_t *, size_t);

static void svd(void **state)
{
	static const char *const op[] = {"svdvals", "svd", "svd_full"}, *const job[] = {"N", "S",
											"A"};
	(void)state;
	if (!library)
		skip();
	for (const char *t = "sdcz"; *t; t++)
		for (int k = 0; k < 3 * SIZES; k++) {
			const int32_t m = size_of(k / 3),
				      other = size_of((k / 3 * 37 + 11) % SIZES),
				      n = k & 8 ? other : m, query = -1;
			const int64_t least = m < n ? m : n, most = m < n ? n : m;
			double work[4], a[4];
			int32_t iwork[4], info = 1;
			int64_t bytes = 0;
			if (*t == 'c' || *t == 'z') {
				((Sdc)function("gesdd_", *t))(job[k % 3], &m, &n, a, &m, a, a, &m,
							      a, &n, work, &query, a, iwork, &info,
							      1);
				const int64_t x = 5 * least * least + 5 * least,
					      y = 2 * most * least + 2 * least * least + least;
				bytes = real(*t) * (k % 3 == 0 ? 7 * least : x > y ? x : y);
			} else {
				((Sd)function("gesdd_", *t))(job[k % 3], &m, &n, a, &m, a, a, &m, a,
							     &n, work, &query, iwork, &info, 1);
			}
			assert_int_equal(info, 0);
			bytes += told(work, *t) * number(*t) + 4 * 8 * least +
				 (int64_t)m * n * number(*t);
			if (bytes > asked(op[k % 3], *t, n, m, 4))
				print_error("%cgesdd %s of %d x %d\n", *t, job[k % 3], m, n);
			assert_in_range(bytes, 0, asked(op[k % 3], *t, n, m, 4));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(eigh), cmocka_unit_test(eig),
					   cmocka_unit_test(svd)};
	return cmocka_run_group_tests(tests, setup, teardown);
}
