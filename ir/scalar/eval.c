/* Evaluation in blocks, instruction by instruction: values lie in their natural representation, so
 * every loop is one that the C compiler vectorises, and f32 arithmetic is float arithmetic. */
#include "ir/scalar/priv.h"
#include "ir/graph/dtype.h"

#include <math.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math")
#endif
#pragma GCC diagnostic ignored "-Wtype-limits" /* signed and unsigned types share templates */

enum { BLOCK = 256, STACK_BYTES = 96 * 1024 };

/* Declares memory for values. Debug builds fill arrays on the stack, but not this one: filling
 * would take longer than computing the values. */
#define VALUES(name) _Alignas(64) __attribute__((uninitialized)) char name[STACK_BYTES]

/* The representation of each dtype: X(dtype, C type, unsigned type to wrap in). */
#define INTS(X)                                                                                    \
	X(DT_u8, uint8_t, uint32_t) X(DT_i8, int8_t, uint32_t) X(DT_i16, int16_t, uint32_t)        \
	X(DT_i32, int32_t, uint32_t) X(DT_i64, int64_t, uint64_t) X(DT_u16, uint16_t, uint32_t)    \
	X(DT_u32, uint32_t, uint32_t) X(DT_u64, uint64_t, uint64_t)
#define FLOATS(X) X(DT_f32, float, fmaf) X(DT_f64, double, fma)
#define INLINE static inline __attribute__((always_inline))

/* out[i] = expr over a, b, c, i */
#define EACH(T, expr)                                                                              \
	do {                                                                                       \
		T *restrict o = out;                                                               \
		for (uint32_t i = 0; i < n; i++)                                                   \
			o[i] = (T)(expr);                                                          \
	} while (0);                                                                               \
	return

/* ---- one operation on one dtype ---- */

/* By two powers of two, of which the first leaves a normal number. */
INLINE float scale_float(float a, float b)
{
	uint32_t i;
	memcpy(&i, &b, sizeof i);
	i += 254 - 0x4b400000u;
	uint32_t half[2] = {(i >> 1) << 23, (i - (i >> 1)) << 23};
	float by[2];
	memcpy(by, half, sizeof by);
	return a * by[0] * by[1];
}

INLINE double scale_double(double a, double b)
{
	uint64_t i;
	memcpy(&i, &b, sizeof i);
	i += 2046 - 0x4338000000000000u;
	uint64_t half[2] = {(i >> 1) << 52, (i - (i >> 1)) << 52};
	double by[2];
	memcpy(by, half, sizeof by);
	return a * by[0] * by[1];
}

#define FLOAT_STEP(D, T, FMA)                                                                      \
	INLINE void step_##T(ScOp op, void *out, const void *const *in, uint32_t n)                \
	{                                                                                          \
		const T *a = in[0], *b = in[1], *c = in[2];                                        \
		switch (op) {                                                                      \
		case SC_add: EACH(T, a[i] + b[i]);                                                 \
		case SC_sub: EACH(T, a[i] - b[i]);                                                 \
		case SC_mul: EACH(T, a[i] * b[i]);                                                 \
		case SC_div: EACH(T, a[i] / b[i]);                                                 \
		case SC_neg: EACH(T, -a[i]);                                                       \
		case SC_abs: EACH(T, sizeof(T) == 4 ? fabsf((float)a[i]) : fabs(a[i]));            \
		case SC_fma: EACH(T, __builtin_##FMA(a[i], b[i], c[i]));                           \
		case SC_min: EACH(T, a[i] < b[i] || a[i] != a[i] ? a[i] : b[i]);                   \
		case SC_max: EACH(T, a[i] > b[i] || a[i] != a[i] ? a[i] : b[i]);                   \
		case SC_lesser: EACH(T, a[i] < b[i] ? a[i] : b[i]);                                \
		case SC_greater: EACH(T, a[i] > b[i] ? a[i] : b[i]);                               \
		case SC_scale: EACH(T, scale_##T(a[i], b[i]));                                     \
		case SC_sqrt: EACH(T, sizeof(T) == 4 ? sqrtf((float)a[i]) : sqrt(a[i]));           \
		case SC_floor: EACH(T, sizeof(T) == 4 ? floorf((float)a[i]) : floor(a[i]));        \
		case SC_ceil: EACH(T, sizeof(T) == 4 ? ceilf((float)a[i]) : ceil(a[i]));           \
		case SC_trunc: EACH(T, sizeof(T) == 4 ? truncf((float)a[i]) : trunc(a[i]));        \
		case SC_rint: EACH(T, sizeof(T) == 4 ? rintf((float)a[i]) : rint(a[i]));           \
		default: return;                                                                   \
		}                                                                                  \
	}
FLOATS(FLOAT_STEP)

/* Quotient towards minus infinity; by zero it is 0 (and the remainder the dividend); wraps. */
#define INT_STEP(D, T, W)                                                                          \
	INLINE T floordiv_##T(T a, T b)                                                            \
	{                                                                                          \
		if (b == 0)                                                                        \
			return 0;                                                                  \
		if ((T)-1 < 0 && b == (T)-1)                                                       \
			return (T)(0 - (W)a);                                                      \
		T q = (T)(a / b), r = (T)(a % b);                                                  \
		return (T)(q - (r != 0 && ((r < 0) != (b < 0))));                                  \
	}                                                                                          \
	INLINE T quot_##T(T a, T b)                                                                \
	{                                                                                          \
		return (T)(b == 0 ? 0 : (T)-1 < 0 && b == (T)-1 ? 0 - (W)a : (W)(a / b));          \
	}                                                                                          \
	INLINE T rem_##T(T a, T b)                                                                 \
	{                                                                                          \
		if (b == 0)                                                                        \
			return a;                                                                  \
		return (T)((T)-1 < 0 && b == (T)-1 ? 0 : a % b);                                   \
	}                                                                                          \
	INLINE T shl_##T(T a, T b)                                                                 \
	{                                                                                          \
		return (T)((W)b < sizeof(T) * 8 ? (W)a << ((W)b & (sizeof(T) * 8 - 1)) : 0);       \
	}                                                                                          \
	INLINE T shr_##T(T a, T b)                                                                 \
	{                                                                                          \
		const T sign = (T)(a < 0 ? -1 : 0);                                                \
		return (T)((W)b < sizeof(T) * 8 ? a >> ((W)b & (sizeof(T) * 8 - 1)) : sign);       \
	}                                                                                          \
	INLINE void step_##T(ScOp op, void *out, const void *const *in, uint32_t n)                \
	{                                                                                          \
		const T *a = in[0], *b = in[1];                                                    \
		switch (op) {                                                                      \
		case SC_add:                                                                       \
			EACH(T, (W)a[i] + (W)b[i]);                                                \
		case SC_sub:                                                                       \
			EACH(T, (W)a[i] - (W)b[i]);                                                \
		case SC_mul:                                                                       \
			EACH(T, (W)a[i] * (W)b[i]);                                                \
		case SC_neg:                                                                       \
			EACH(T, 0 - (W)a[i]);                                                      \
		case SC_abs:                                                                       \
			EACH(T, a[i] < 0 ? 0 - (W)a[i] : (W)a[i]);                                 \
		case SC_min:                                                                       \
			EACH(T, a[i] < b[i] ? a[i] : b[i]);                                        \
		case SC_max:                                                                       \
			EACH(T, a[i] > b[i] ? a[i] : b[i]);                                        \
		case SC_floordiv:                                                                  \
			EACH(T, floordiv_##T(a[i], b[i]));                                         \
		case SC_rem:                                                                       \
		case SC_mod:                                                                       \
			EACH(T, rem_##T(a[i], b[i]));                                              \
		case SC_and:                                                                       \
			EACH(T, a[i] & b[i]);                                                      \
		case SC_or:                                                                        \
			EACH(T, a[i] | b[i]);                                                      \
		case SC_xor:                                                                       \
			EACH(T, a[i] ^ b[i]);                                                      \
		case SC_not:                                                                       \
			EACH(T, ~(W)a[i]);                                                         \
		case SC_shl:                                                                       \
		case SC_left:                                                                      \
			EACH(T, shl_##T(a[i], b[i]));                                              \
		case SC_shr:                                                                       \
		case SC_right:                                                                     \
			EACH(T, shr_##T(a[i], b[i]));                                              \
		case SC_quot:                                                                      \
			EACH(T, quot_##T(a[i], b[i]));                                             \
		default:                                                                           \
			return;                                                                    \
		}                                                                                  \
	}
INTS(INT_STEP)

INLINE void step_bool(ScOp op, uint8_t *restrict out, const void *const *in, uint32_t n)
{
	const uint8_t *a = in[0], *b = in[1];
	switch (op) {
	case SC_and: EACH(uint8_t, a[i] & b[i]);
	case SC_or: EACH(uint8_t, a[i] | b[i]);
	case SC_xor: EACH(uint8_t, a[i] ^ b[i]);
	case SC_not: EACH(uint8_t, a[i] ^ 1);
	default: return;
	}
}

#define COMPARE(D, T, X)                                                                           \
	INLINE void compare_##T(ScOp op, void *out, const void *const *in, uint32_t n)             \
	{                                                                                          \
		const T *a = in[0], *b = in[1];                                                    \
		switch (op) {                                                                      \
		case SC_eq: EACH(uint8_t, a[i] == b[i]);                                           \
		case SC_ne: EACH(uint8_t, a[i] != b[i]);                                           \
		case SC_lt: EACH(uint8_t, a[i] < b[i]);                                            \
		case SC_le: EACH(uint8_t, a[i] <= b[i]);                                           \
		case SC_gt: EACH(uint8_t, a[i] > b[i]);                                            \
		case SC_ge: EACH(uint8_t, a[i] >= b[i]);                                           \
		default: return;                                                                   \
		}                                                                                  \
	}
INTS(COMPARE)
FLOATS(COMPARE)

INLINE void select_bytes(uint32_t size, void *out, const void *const *in, uint32_t n)
{
	const uint8_t *c = in[0];
#define PICK(T) EACH(T, c[i] ? ((const T *)in[1])[i] : ((const T *)in[2])[i])
	switch (size) {
	case 1: PICK(uint8_t);
	case 2: PICK(uint16_t);
	case 4: PICK(uint32_t);
	default: PICK(uint64_t);
	}
#undef PICK
}

/* ---- conversions ---- */

/* The smallest value stands for NaN and for what does not fit. */
INLINE int32_t to_int32(double v)
{
	return v > -0x1p31 && v < 0x1p31 ? (int32_t)v : INT32_MIN;
}

INLINE int64_t to_int64(double v)
{
	return v > -0x1p63 && v < 0x1p63 ? (int64_t)v : INT64_MIN;
}

#define CONVERT_TO(NAME, S)                                                                        \
	INLINE void convert_##NAME(DType to, void *out, const S *a, uint32_t n)                    \
	{                                                                                          \
		switch (to) {                                                                      \
		case DT_bool: EACH(uint8_t, a[i] != 0);                                            \
		case DT_f32: EACH(float, a[i]);                                                    \
		case DT_f64: EACH(double, a[i]);                                                   \
		TO_INTS                                                                            \
		default:                                                                           \
			if (!dtype_is_narrow(to))                                                  \
				return;                                                            \
			EACH(float, narrow_round(to, (float)a[i]));                                \
		}                                                                                  \
	}
#define TO_INT(D, T, W) case D: EACH(T, a[i]);
#define TO_INTS INTS(TO_INT)
CONVERT_TO(i64, int64_t)
CONVERT_TO(u64, uint64_t)
#undef TO_INTS
#define TO_INTS                                                                                    \
	case DT_i32: EACH(int32_t, to_int32(a[i]));                                                \
	case DT_i64: EACH(int64_t, to_int64(a[i]));
CONVERT_TO(f64, double)
#undef TO_INTS

static uint32_t repr_size(DType t)
{
	return dtype_is_float(t) && t != DT_f64 ? 4 : dtype_size(t);
}

/* Reinterprets the bits of values. Storage floats are kept as float, so their bits have to be
 * made first. */
static void bitcast(DType from, DType to, void *out, const void *in, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t bits = 0; /* the low bytes come first */
		float v;
		memcpy(dtype_is_narrow(from) ? (void *)&v : (void *)&bits,
		       (const char *)in + i * repr_size(from), repr_size(from));
		if (dtype_is_narrow(from))
			bits = f32_to_narrow(from, v);
		if (dtype_is_narrow(to))
			v = narrow_to_f32(to, (uint32_t)bits);
		memcpy((char *)out + i * repr_size(to),
		       dtype_is_narrow(to) ? (void *)&v : (void *)&bits, repr_size(to));
	}
}

static void look_up(const ScTable *t, void *out, const int32_t *index, uint32_t n)
{
	uint32_t size = dtype_size(t->dtype);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = index[i] < 0 ? 0 : (uint32_t)index[i];
		k = k < t->n ? k : t->n - 1;
		memcpy((char *)out + i * size, (const char *)t->data + k * size, size);
	}
}

/* Looks four bytes up in each element (SC_lookup8). */
static void look_up_bytes(uint32_t *out, const void *const *in, uint32_t n)
{
	const uint32_t *a = in[0], *b = in[1], *c = in[2];
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t table = b[i] | (uint64_t)c[i] << 32;
		uint32_t all = 0;
		for (uint32_t at = 0; at < 32; at += 8) {
			const uint32_t k = a[i] >> at & UINT8_MAX;
			all |= k < 8 ? (uint32_t)(table >> 8 * k & UINT8_MAX) << at : 0;
		}
		out[i] = all;
	}
}

/* ---- instructions ---- */

#define VERSION(name) name##_generic
#define TARGET
#include "ir/scalar/eval_step.h"

#if defined(__x86_64__)
/* The same code with fma and rounding as instructions; every result is the same. */
#define VERSION(name) name##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#include "ir/scalar/eval_step.h"
#endif

static void flush_bf16(uint16_t *out, const float *x, uint32_t n)
{
	EACH(uint16_t, f32_to_bf16(fabsf(x[i]) < 0x1p-126f ? x[i] * 0 : x[i]));
}

void scalar_step(const ScIns *ins, DType from, void *out, const void *const *in, uint32_t n)
{
	if (ins->op == SC_bitcast) {
		DType to = ins->dtype;
		if (repr_size(from) == dtype_size(from) && repr_size(to) == dtype_size(to))
			memcpy(out, in[0], (size_t)n * dtype_size(from));
		else
			bitcast(from, ins->dtype, out, in[0], n);
		return;
	}
	if (ins->op == SC_from_f16 || ins->op == SC_to_f16) {
		bool unpack = ins->op == SC_from_f16;
		bitcast(unpack ? DT_u16 : DT_f16, unpack ? DT_f16 : DT_u16, out, in[0], n);
		return;
	}
	if (ins->op == SC_flush_bf16) {
		flush_bf16(out, in[0], n);
		return;
	}
	if (sc_is_dot(ins->op)) {
		scalar_dot_step(ins->op, out, in, n);
		return;
	}
	if (ins->op == SC_lookup8) {
		look_up_bytes(out, in, n);
		return;
	}
	if (ins->op == SC_table) {
		look_up(ins->table, out, in[0], n);
		return;
	}
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
		step_avx2(ins, from, out, in, n);
		return;
	}
#endif
	step_generic(ins, from, out, in, n);
}

/* ---- ScVal and representation ---- */

void scalar_pack(DType t, void *out, const ScVal *in, uint32_t n)
{
	switch (t) {
#define X(D, T, W) case D: EACH(T, in[i].i);
	INTS(X)
#undef X
	case DT_bool: EACH(uint8_t, in[i].i != 0);
	case DT_f64: EACH(double, in[i].f);
	default: EACH(float, in[i].f);
	}
}

void scalar_unpack(DType t, ScVal *restrict out, const void *in, uint32_t n)
{
	switch (t) {
#define X(D, T, W)                                                                                 \
	case D:                                                                                    \
		for (uint32_t i = 0; i < n; i++)                                                   \
			out[i].i = (int64_t)((const T *)in)[i];                                    \
		return;
	INTS(X)
	X(DT_bool, uint8_t, 0)
#undef X
	case DT_f64:
		for (uint32_t i = 0; i < n; i++)
			out[i].f = ((const double *)in)[i];
		return;
	default:
		for (uint32_t i = 0; i < n; i++)
			out[i].f = (double)((const float *)in)[i];
		return;
	}
}

void scalar_fill(void *out, const void *one, uint32_t size, uint32_t n)
{
	switch (size) {
#define FILL(T)                                                                                    \
	do {                                                                                       \
		T bits;                                                                            \
		memcpy(&bits, one, sizeof bits);                                                   \
		EACH(T, bits);                                                                     \
	} while (0)
	case 1: FILL(uint8_t);
	case 2: FILL(uint16_t);
	case 4: FILL(uint32_t);
	default: FILL(uint64_t);
#undef FILL
	}
}

/* ---- functions ---- */

static void fill_const(const ScIns *ins, void *out, uint32_t n)
{
	uint64_t one = 0;
	ScVal v = dtype_is_float(ins->dtype) ? (ScVal){.f = ins->f} : (ScVal){.i = ins->i};
	scalar_pack(ins->dtype, &one, &v, 1);
	scalar_fill(out, &one, repr_size(ins->dtype), n);
}

/* Returns how many slots a lane takes: those of the function, and of all on its deepest chain of
 * calls. */
static uint32_t slots_needed(const ScFn *f)
{
	uint32_t deepest = 0;
	for (uint32_t k = 0; k < f->nins; k++) {
		if (f->ins[k].op != SC_call)
			continue;
		uint32_t need = slots_needed(f->ins[k].fn);
		deepest = need > deepest ? need : deepest;
	}
	return ((const ScFnPlan *)f)->nslot + deepest;
}

/* Returns where the values of instruction k lie. */
static const void *value(const ScFnPlan *plan, const char *mem, uint32_t cap, uint32_t k,
                         const void *const *arg)
{
	const ScIns *ins = &plan->fn.ins[k];
	return ins->op == SC_param ? arg[ins->k] : mem + (size_t)plan->slot[k] * cap * 8;
}

/* Whether some lane needs call k. */
static bool is_needed(const ScFnPlan *plan, uint32_t k, const char *mem, uint32_t cap,
                      const void *const *arg, uint32_t n)
{
	ScGuard g = plan->guard[k];
	const uint8_t *cond = value(plan, mem, cap, g.cond, arg);
	uint32_t any = 0;
	for (uint32_t i = 0; g.found && i < n; i++)
		any |= cond[i] == g.when;
	return any || !g.found;
}

/* Evaluates a function on n elements. mem has 8 * cap bytes for each slot of this function and,
 * after them, of those it calls. */
static void run(const ScFn *f, const void *const *arg, void *out, uint32_t n, char *mem,
                uint32_t cap)
{
	const ScFnPlan *plan = (const ScFnPlan *)f;
	char *below = mem + (size_t)plan->nslot * cap * 8;
	for (uint32_t k = 0; k < f->nins; k++) {
		const ScIns *ins = &f->ins[k];
		const void *in[3]; /* those that it does not have are the first again */
		for (uint32_t j = 0; j < 3; j++)
			in[j] = value(plan, mem, cap, ins->in[j < ins->nin ? j : 0], arg);
		void *to = k + 1 == f->nins ? out : mem + (size_t)plan->slot[k] * cap * 8;
		switch (ins->op) {
		case SC_param:
			if (to == out)
				memcpy(out, arg[ins->k], (size_t)n * repr_size(ins->dtype));
			break;
		case SC_const: fill_const(ins, to, n); break;
		case SC_call:
			if (is_needed(plan, k, mem, cap, arg, n))
				run(ins->fn, in, to, n, below, cap);
			break;
		default: scalar_step(ins, f->ins[ins->in[ins->op == SC_select]].dtype, to, in, n);
		}
	}
}

/* Returns the number of lanes for which a function with that many slots of arguments has room. */
static uint32_t lanes_that_fit(const ScFn *f, uint32_t arguments)
{
	uint32_t cap = STACK_BYTES / 8 / (slots_needed(f) + arguments);
	return cap > BLOCK ? BLOCK : cap > 8 ? cap & ~7u : cap;
}

void scalar_apply(const ScFn *f, const void *const *arg, void *out, uint32_t n)
{
	VALUES(mem);
	uint32_t cap = lanes_that_fit(f, 0);
	for (uint32_t k = 0; k < n; k += cap) {
		const void *in[4];
		for (uint32_t j = 0; j < f->nparam; j++)
			in[j] = (const char *)arg[j] + (size_t)k * repr_size(f->param[j]);
		run(f, in, (char *)out + (size_t)k * repr_size(f->result),
		    n - k < cap ? n - k : cap, mem, cap);
	}
}

void scalar_eval_n(const ScFn *f, const ScVal *const *arg, ScVal *out, uint32_t n)
{
	VALUES(mem);
	uint32_t cap = lanes_that_fit(f, f->nparam + 1);
	char *below = mem + (size_t)(f->nparam + 1) * cap * 8;
	for (uint32_t k = 0; k < n; k += cap) {
		uint32_t m = n - k < cap ? n - k : cap;
		const void *in[4];
		for (uint32_t j = 0; j < f->nparam; j++) {
			char *to = mem + (size_t)(j + 1) * cap * 8;
			scalar_pack(f->param[j], to, arg[j] + k, m);
			in[j] = to;
		}
		run(f, in, mem, m, below, cap);
		scalar_unpack(f->result, out + k, mem, m);
	}
}

ScVal scalar_eval(const ScFn *f, const ScVal *arg)
{
	const ScVal *args[4] = {arg, arg + 1, arg + 2, arg + 3};
	ScVal out;
	for (uint32_t k = f->nparam; k < 4; k++)
		args[k] = arg;
	scalar_eval_n(f, args, &out, 1);
	return out;
}
