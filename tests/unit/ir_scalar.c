/* Scalar functions: every text of the table, integer and conversion semantics, derivatives.
 * Accuracy is in ir_math.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "ir/op/op.h"
#include "ir/scalar/priv.h"

static const DType compute[] = {DT_bool, DT_u8,  DT_i8,  DT_i16, DT_i32, DT_i64,
                                DT_u16,  DT_u32, DT_u64, DT_f32, DT_f64};
enum { NCOMPUTE = sizeof compute / sizeof *compute };

/* The instance for operands of dtype t (a leading bool for select). */
static const ScFn *instance(Op op, DType t)
{
	DType in[4] = {t, t, t, t};
	uint32_t n = op_schema(op)->narg;
	if (op == OP_select)
		in[0] = DT_bool;
	return scalar_fn(op, in, n);
}

static const ScFn *deriv(Op op, uint32_t k, DType t)
{
	DType in[4] = {t, t, t, t};
	uint32_t n = op_schema(op)->narg;
	if (op == OP_select)
		in[0] = DT_bool;
	return scalar_deriv(op, k, in, n);
}

static void every_text_instantiates(void **state)
{
	(void)state;
	for (Op op = 1; op < op_count(); op++) {
		if (!op_is_scalar(op))
			continue;
		uint32_t found = 0;
		for (uint32_t k = 0; k < NCOMPUTE; k++) {
			const ScFn *f = instance(op, compute[k]);
			found += f != NULL;
			if (f && op_info(op)->result != DT_none)
				assert_int_equal(f->result, op_info(op)->result);
			else if (f)
				assert_int_equal(f->result, compute[k]);
		}
		if (!found)
			fail_msg("%s takes no dtype", op_name(op));
		for (uint32_t k = 0; k < op_schema(op)->narg; k++)
			if (op_info(op)->deriv[k] &&
			    (!deriv(op, k, DT_f32) || !deriv(op, k, DT_f64)))
				fail_msg("derivative %u of %s: \"%s\"", k, op_name(op),
					 op_info(op)->deriv[k]);
	}
}

static void library_instantiates(void **state)
{
	(void)state;
	for (uint32_t k = 0; lib_lists[k]; k++)
		for (const LibDef *d = lib_lists[k]; d->name; d++) {
			uint32_t found = 0;
			for (uint32_t j = 0; j < NCOMPUTE; j++)
				found += scalar_lib(d->name, compute[j]) != NULL;
			for (ScOp op = SC_dot2_bf16; op <= SC_dot4_s8s8; op++)
				found += !strcmp(d->name, sc_name(op)) && scalar_dot(op);
			if (!found)
				fail_msg("library function %s takes no dtype", d->name);
		}
}

/* Emitters name static functions by ScFn.name. */
static void names_are_unique(void **state)
{
	(void)state;
	const ScFn *seen[512];
	uint32_t n = 0;
	for (Op op = 1; op < op_count(); op++)
		for (uint32_t k = 0; op_is_scalar(op) && k < NCOMPUTE; k++) {
			const ScFn *f = instance(op, compute[k]);
			for (uint32_t j = 0; f && j < n; j++)
				if (seen[j] != f && !strcmp(seen[j]->name, f->name))
					fail_msg("two functions are called %s", f->name);
			if (f) {
				assert_in_range(n, 0, 511);
				seen[n++] = f;
			}
		}
}

static void storage_dtypes_are_refused(void **state)
{
	(void)state;
	assert_null(instance(OP_add, DT_f16));
	assert_null(instance(OP_add, DT_c64));
	assert_null(instance(OP_exp, DT_i32));
	assert_null(instance(OP_sub, DT_bool));
	const DType mixed[2] = {DT_f32, DT_f64};
	assert_null(scalar_fn(OP_add, mixed, 2));
	assert_null(scalar_lib("no_such_function", DT_f32));
}

static int64_t ints(Op op, DType t, int64_t a, int64_t b)
{
	const ScVal arg[2] = {{.i = a}, {.i = b}};
	return scalar_eval(instance(op, t), arg).i;
}

static void integers(void **state)
{
	(void)state;
	assert_int_equal(ints(OP_add, DT_i8, 127, 1), -128);
	assert_int_equal(ints(OP_add, DT_u8, 255, 1), 0);
	assert_int_equal(ints(OP_mul, DT_u16, 65535, 65535), 1);
	assert_int_equal(ints(OP_add, DT_i64, INT64_MAX, 1), INT64_MIN);
	assert_int_equal(ints(OP_mul, DT_i32, 1 << 30, 4), 0);
	assert_int_equal(ints(OP_neg, DT_i32, INT32_MIN, 0), INT32_MIN);
	assert_int_equal(ints(OP_abs, DT_i8, -128, 0), -128);
	assert_int_equal(ints(OP_floordiv, DT_i32, -7, 2), -4);
	assert_int_equal(ints(OP_floordiv, DT_i32, 7, -2), -4);
	assert_int_equal(ints(OP_floordiv, DT_i32, 7, 0), 0);
	assert_int_equal(ints(OP_floordiv, DT_i64, INT64_MIN, -1), INT64_MIN);
	assert_int_equal(ints(OP_remainder, DT_i32, -7, 2), 1);
	assert_int_equal(ints(OP_remainder, DT_i32, 7, -2), -1);
	assert_int_equal(ints(OP_remainder, DT_i32, 7, 0), 7);
	assert_int_equal(ints(OP_remainder, DT_i64, INT64_MIN, -1), 0);
	assert_int_equal(ints(OP_fmod, DT_i32, -7, 2), -1);
	assert_int_equal(ints(OP_remainder, DT_u8, 200, 7), 4);
	assert_int_equal(ints(OP_shift_left, DT_i32, 1, 31), INT32_MIN);
	assert_int_equal(ints(OP_shift_left, DT_i32, 1, 32), 0);
	assert_int_equal(ints(OP_shift_left, DT_i32, 1, -1), 0);
	assert_int_equal(ints(OP_shift_left, DT_u8, 1, 8), 0);
	assert_int_equal(ints(OP_shift_right, DT_i8, -128, 7), -1);
	assert_int_equal(ints(OP_shift_right, DT_i8, -128, 100), -1);
	assert_int_equal(ints(OP_shift_right, DT_i8, 100, -1), 0);
	assert_int_equal(ints(OP_shift_right, DT_u32, 0xffffffff, 31), 1);
	assert_int_equal(ints(OP_pow, DT_i64, 3, 5), 243);
	assert_int_equal(ints(OP_pow, DT_i64, -2, 63), INT64_MIN);
	assert_int_equal(ints(OP_pow, DT_i64, 2, 64), 0);
	assert_int_equal(ints(OP_pow, DT_i64, -1, -3), -1);
	assert_int_equal(ints(OP_pow, DT_i64, 1, -3), 1);
	assert_int_equal(ints(OP_pow, DT_i64, 5, -1), 0);
	assert_int_equal(ints(OP_pow, DT_u8, 3, 2), 9);
	assert_int_equal(ints(OP_bit_not, DT_bool, 1, 0), 0);
	assert_int_equal(ints(OP_bit_not, DT_u8, 1, 0), 254);
	assert_int_equal(ints(OP_add, DT_bool, 1, 1), 1);
	assert_int_equal(ints(OP_mul, DT_bool, 1, 0), 0);
	assert_int_equal(ints(OP_lt, DT_bool, 0, 1), 1);
	assert_int_equal(ints(OP_sign, DT_i8, -5, 0), -1);
	assert_int_equal(ints(OP_maximum, DT_u64, -1, 1), -1);
}

static double floats(Op op, DType t, double a, double b)
{
	const ScVal arg[2] = {{.f = a}, {.f = b}};
	return scalar_eval(instance(op, t), arg).f;
}

static void assert_same(double got, double want)
{
	if (isnan(want) ? !isnan(got) : got != want || signbit(got) != signbit(want))
		fail_msg("got %.17g, want %.17g", got, want);
}

static void float_conventions(void **state)
{
	(void)state;
	for (DType t = DT_f32; t <= DT_f64; t++) {
		assert_same(floats(OP_maximum, t, NAN, 1), NAN);
		assert_same(floats(OP_maximum, t, 1, NAN), NAN);
		assert_same(floats(OP_minimum, t, -INFINITY, NAN), NAN);
		assert_same(floats(OP_fmax, t, NAN, 1), 1);
		assert_same(floats(OP_fmin, t, 1, NAN), 1);
		assert_same(floats(OP_fmin, t, NAN, NAN), NAN);
		assert_same(floats(OP_round, t, 2.5, 0), 2);
		assert_same(floats(OP_round, t, -0.5, 0), -0.0);
		assert_same(floats(OP_sign, t, -3, 0), -1);
		assert_same(floats(OP_sign, t, NAN, 0), 0);
		assert_same(floats(OP_neg, t, 0, 0), -0.0);
		assert_same(floats(OP_copysign, t, 3, -0.0), -3);
		assert_same(floats(OP_floordiv, t, 7, 2), 3);
		assert_same(floats(OP_floordiv, t, -7, 2), -4);
		assert_same(floats(OP_floordiv, t, 7, 0), INFINITY);
		assert_same(floats(OP_remainder, t, -7, 2), 1);
		assert_same(floats(OP_remainder, t, 7, -2), -1);
		assert_same(floats(OP_remainder, t, 4, -2), -0.0);
		assert_same(floats(OP_fmod, t, -7, 2), -1);
		assert_same(floats(OP_fmod, t, 7, INFINITY), 7);
		assert_same(floats(OP_fmod, t, INFINITY, 7), NAN);
		assert_same(floats(OP_fmod, t, 7, 0), NAN);
		assert_same(floats(OP_fmod, t, 0x1p100, 3), fmod(0x1p100, 3));
	}
	assert_same(floats(OP_add, DT_f32, 1, 0x1p-25), 1);
	assert_same(floats(OP_mul, DT_f32, 0x1p-100, 0x1p-49), 0x1p-149);
	assert_same(floats(OP_fmod, DT_f32, 0x1.234566p127, 0x1.8p-149),
		    fmod(0x1.234566p127, 0x1.8p-149));
	assert_same(floats(OP_nextafter, DT_f32, 0, -1), -0x1p-149);
	assert_same(floats(OP_nextafter, DT_f32, 1, 2), 0x1.000002p0);
	assert_same(floats(OP_nextafter, DT_f64, -1, 2), nextafter(-1, 2));
	assert_same(floats(OP_nextafter, DT_f64, 1, NAN), NAN);
}

static ScVal converted(DType from, DType to, ScVal v)
{
	return scalar_eval(scalar_convert(from, to), &v);
}

/* docs/numerics.md: truncated to i32 or i64, where NaN and what does not fit is the smallest value;
 * low bits. */
static int64_t as_int(DType to, double v)
{
	bool narrow = to == DT_i8 || to == DT_i16 || to == DT_u16 || to == DT_i32, fits;
	bool flip = to == DT_u64 && v >= 0x1p63;
	if (flip)
		v -= 0x1p63;
	double limit = narrow ? 0x1p31 : 0x1p63, whole = trunc(v);
	fits = whole >= -limit && whole < limit;
	uint64_t i = fits     ? (uint64_t)(int64_t)v
		     : narrow ? (uint64_t)INT32_MIN
			      : (uint64_t)INT64_MIN;
	i = flip ? i ^ UINT64_C(1) << 63 : i;
	uint32_t drop = 64 - 8 * dtype_size(to);
	return dtype_is_signed(to) ? (int64_t)(i << drop) >> drop : (int64_t)(i << drop >> drop);
}

static void float_to_int(void)
{
	static const DType to[] = {DT_i8, DT_u8, DT_i16, DT_u16, DT_i32, DT_u32, DT_i64, DT_u64};
	static const double x[] = {
		0,          0.5,          -0.5,         -1,     -1.9,       127,
		128,        255.9,        256,          300,    -129,       40000,
		-40000,     65536.5,      0x1p31 - 128, 0x1p31, -0x1p31,    -0x1p31 - 256,
		3e9,        0x1p32 - 256, 0x1p32,       1e10,   -1e10,      0x1p62,
		0x1p63,     -0x1p63,      1e19,         0x1p64, 1e20,       -1e20,
		3e38,       INFINITY,     -INFINITY,    NAN,    0x1p31 + 5, -0x1p31 - 5.5,
		0x1p40 + 77};
	for (uint32_t k = 0; k < sizeof to / sizeof *to; k++) {
		for (uint32_t j = 0; j < sizeof x / sizeof *x; j++) {
			float f = (float)x[j];
			assert_int_equal(converted(DT_f64, to[k], (ScVal){.f = x[j]}).i,
					 as_int(to[k], x[j]));
			assert_int_equal(converted(DT_f32, to[k], (ScVal){.f = f}).i,
					 as_int(to[k], f));
		}
	}
}

/* In a register as through memory; every pattern of f32's upper half with some lower ones. */
static void rounding(void **state)
{
	(void)state;
	static const DType storage[] = {DT_f16, DT_bf16, DT_f8e4m3, DT_f8e5m2, DT_f8e4m3fnuz,
					 DT_f8e5m2fnuz};
	static const uint32_t low[] = {0,      1,      0x0fff, 0x1000, 0x1001,
				       0x7fff, 0x8000, 0x8001, 0xffff};
	static ScVal x[0x10000], got[0x10000], want[0x10000];
	const ScVal *arg[] = {x};
	for (uint32_t j = 0; j < sizeof low / sizeof *low; j++) {
		for (uint32_t high = 0; high < 0x10000; high++) {
			union { uint32_t u; float f; } v = {high << 16 | low[j]};
			x[high].f = (double)v.f;
		}
		for (uint32_t k = 0; k < sizeof storage / sizeof *storage; k++) {
			scalar_eval_n(scalar_round(storage[k]), arg, got, 0x10000);
			scalar_eval_n(scalar_convert(DT_f32, storage[k]), arg, want, 0x10000);
			for (uint32_t high = 0; high < 0x10000; high++)
				assert_same(got[high].f, want[high].f);
		}
	}
}

static void conversions(void **state)
{
	(void)state;
	float_to_int();
	assert_int_equal(converted(DT_i64, DT_i8, (ScVal){.i = 257}).i, 1);
	assert_int_equal(converted(DT_i32, DT_u32, (ScVal){.i = -1}).i, 0xffffffff);
	assert_int_equal(converted(DT_f32, DT_bool, (ScVal){.f = NAN}).i, 1);
	assert_int_equal(converted(DT_f32, DT_bool, (ScVal){.f = -0.0}).i, 0);
	assert_int_equal(converted(DT_i64, DT_bool, (ScVal){.i = 256}).i, 1);
	assert_same(converted(DT_i64, DT_f32, (ScVal){.i = (1ll << 62) + 1}).f, 0x1p62);
	assert_same(converted(DT_u64, DT_f64, (ScVal){.u = UINT64_MAX}).f, 0x1p64);
	assert_same(converted(DT_f64, DT_f32, (ScVal){.f = 0.1}).f, 0.1f);
	assert_same(converted(DT_f32, DT_f16, (ScVal){.f = 1e6}).f, INFINITY);
	assert_same(converted(DT_f32, DT_bf16, (ScVal){.f = 1.00390625}).f, 1);
	assert_same(converted(DT_bool, DT_f32, (ScVal){.i = 1}).f, 1);
	assert_null(scalar_convert(DT_c64, DT_f32));
}

/* One element at a time equals blocks, whatever their length. */
static void blocks_equal_single(void **state)
{
	(void)state;
	enum { N = 1000 };
	static ScVal in[N], out[N];
	const ScVal *arg[1] = {in};
	static const Op op[] = {OP_exp, OP_sin, OP_lgamma, OP_erfinv, OP_tanh};
	for (uint32_t k = 0; k < sizeof op / sizeof *op; k++)
		for (DType t = DT_f32; t <= DT_f64; t++) {
			const ScFn *f = instance(op[k], t);
			for (uint32_t i = 0; i < N; i++)
				in[i].f = (double)(float)((i - 500.0) / 77);
			scalar_eval_n(f, arg, out, N);
			for (uint32_t i = 0; i < N; i++)
				assert_same(scalar_eval(f, &in[i]).f, out[i].f);
		}
}

/* Local derivatives against central differences at generic points of the sample's range. */
static void check_deriv(Op op, uint32_t n, const double *at)
{
	for (uint32_t k = 0; k < n; k++) {
		const ScFn *d = deriv(op, k, DT_f64);
		if (!d)
			continue;
		ScVal arg[4] = {{0}}, lo[4], hi[4];
		for (uint32_t j = 0; j < n; j++)
			arg[j].f = at[j];
		memcpy(lo, arg, sizeof lo);
		memcpy(hi, arg, sizeof hi);
		lo[k].f -= 1e-5;
		hi[k].f += 1e-5;
		const ScFn *f = instance(op, DT_f64);
		double want = (scalar_eval(f, hi).f - scalar_eval(f, lo).f) / 2e-5;
		arg[n].f = scalar_eval(f, arg).f;
		double got = scalar_eval(d, arg).f;
		if (!(fabs(got - want) <= 1e-6 * (1 + fabs(want))))
			fail_msg("d%u %s(%g, %g) = %.9g, difference quotient %.9g", k, op_name(op),
				 at[0], at[1], got, want);
	}
}

static void derivatives(void **state)
{
	(void)state;
	static const double point[][4] = {{0.31, 0.47, -0.9, 1.4}, {0.83, -0.55, 0.21, -1.7},
					  {-0.72, 1.37, 2.6, 0.4}, {1.61, 2.23, 0.7, -0.3},
					  {-2.4, -1.3, 1.9, 2.1},  {5.27, 0.36, -1.1, 0.8}};
	for (Op op = 1; op < op_count(); op++) {
		if (!op_is_scalar(op) || op == OP_select || op_info(op)->result == DT_bool)
			continue;
		for (uint32_t k = 0; k < sizeof point / sizeof *point; k++) {
			const ScFn *f = instance(op, DT_f64);
			if (!f)
				continue;
			ScVal arg[4];
			for (uint32_t j = 0; j < 4; j++)
				arg[j].f = point[k][j];
			if (isfinite(scalar_eval(f, arg).f))
				check_deriv(op, op_schema(op)->narg, point[k]);
		}
	}
}

static void derivative_conventions(void **state)
{
	(void)state;
	const ScVal tie[3] = {{.f = 2}, {.f = 2}, {.f = 2}}, zero[2] = {{.f = 0}, {.f = 0}};
	assert_same(scalar_eval(deriv(OP_maximum, 0, DT_f32), tie).f, 0.5);
	assert_same(scalar_eval(deriv(OP_minimum, 1, DT_f32), tie).f, 0.5);
	assert_same(scalar_eval(deriv(OP_fmax, 0, DT_f32), tie).f, 0.5);
	assert_same(scalar_eval(deriv(OP_fmax, 1, DT_f32), tie).f, 0.5);
	assert_same(scalar_eval(deriv(OP_abs, 0, DT_f32), zero).f, 0);
	const ScVal pow_zero[3] = {{.f = 0}, {.f = 2}, {.f = 0}};
	assert_same(scalar_eval(deriv(OP_pow, 0, DT_f64), pow_zero).f, 0);
	assert_same(scalar_eval(deriv(OP_pow, 1, DT_f64), pow_zero).f, 0);
	const ScVal pick[4] = {{.i = 1}, {.f = 5}, {.f = 6}, {.f = 5}};
	assert_same(scalar_eval(deriv(OP_select, 1, DT_f32), pick).f, 1);
	assert_same(scalar_eval(deriv(OP_select, 2, DT_f32), pick).f, 0);
}

static void malformed_texts(void **state)
{
	(void)state;
	Arena *a = arena_new(NULL);
	static const char *const bad[] = {"",
					  "x +",
					  "exp(x",
					  "a = ; x",
					  "x y",
					  "convert[f32 (x)",
					  "1 2",
					  "(x",
					  "repeat 2 { a = x; x",
					  "repeat 0 { a = x; } x",
					  "repeat { a = x; } x",
					  "repeat 2 { x; } x"};
	const char *at;
	for (uint32_t k = 0; k < sizeof bad / sizeof *bad; k++)
		if (scalar_parse(a, bad[k], &at))
			fail_msg("\"%s\" was accepted", bad[k]);
	assert_non_null(scalar_parse(a, "t = abs(x); select(gt(x, 0.0), x, -t * 0.5)", &at));
	arena_free(a);
}

int main(void)
{
	op_init();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_text_instantiates),
		cmocka_unit_test(library_instantiates),
		cmocka_unit_test(names_are_unique),
		cmocka_unit_test(storage_dtypes_are_refused),
		cmocka_unit_test(integers),
		cmocka_unit_test(float_conventions),
		cmocka_unit_test(conversions),
		cmocka_unit_test(rounding),
		cmocka_unit_test(blocks_equal_single),
		cmocka_unit_test(derivatives),
		cmocka_unit_test(derivative_conventions),
		cmocka_unit_test(malformed_texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
