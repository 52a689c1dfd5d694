/* Not a header in the usual sense: eval.c includes this text once for each instruction set of the
 * processor. VERSION(name) makes the names of its functions, TARGET is their attribute. The text
 * defines VERSION(step), which evaluates one instruction on n elements as scalar_step does
 * (priv.h). Each dtype has a function of its own: one function for all of them takes a compiler a
 * minute. */
#define APART TARGET __attribute__((noinline)) static

#define STEP(D, T, W)                                                                              \
	APART void VERSION(run_##T)(ScOp op, void *out, const void *const *in, uint32_t n)         \
	{                                                                                          \
		if (op >= SC_eq && op <= SC_ge)                                                    \
			compare_##T(op, out, in, n);                                               \
		else                                                                               \
			step_##T(op, out, in, n);                                                  \
	}
INTS(STEP)
FLOATS(STEP)
#undef STEP

/* Evaluates a logical operation or comparison on n bools: operands in[], results out. (run_##T: an
 * operation or comparison on values of type T.) */
APART void VERSION(run_bool)(ScOp op, void *out, const void *const *in, uint32_t n)
{
	if (op >= SC_eq && op <= SC_ge)
		compare_uint8_t(op, out, in, n);
	else
		step_bool(op, out, in, n);
}

#define CONVERT(NAME, S)                                                                           \
	APART void VERSION(from_##NAME)(DType to, void *out, const S *a, uint32_t n)               \
	{                                                                                          \
		convert_##NAME(to, out, a, n);                                                     \
	}
CONVERT(i64, int64_t)
CONVERT(u64, uint64_t)
CONVERT(f64, double)
#undef CONVERT

/* Converts n <= BLOCK values of `from` at `in` to values of `to` at `out`, in their natural
 * representation (priv.h), through the widest type of their kind. */
APART void VERSION(convert_chunk)(DType from, DType to, void *out, const void *in, uint32_t n)
{
	union {
		int64_t i[BLOCK];
		double f[BLOCK];
	} wide;
	const int64_t *w = wide.i;
	const double *f = wide.f;
	switch (from) {
	case DT_u64: VERSION(from_u64)(to, out, in, n); return;
	case DT_i64: w = in; break;
	case DT_f64: f = in; break;
#define WIDEN(D, T)                                                                                \
	case D:                                                                                    \
		for (uint32_t i = 0; i < n; i++)                                                   \
			wide.i[i] = (int64_t)((const T *)in)[i];                                   \
		break;
	WIDEN(DT_u8, uint8_t) WIDEN(DT_i8, int8_t) WIDEN(DT_i16, int16_t) WIDEN(DT_i32, int32_t)
	WIDEN(DT_u16, uint16_t) WIDEN(DT_u32, uint32_t) WIDEN(DT_bool, uint8_t)
#undef WIDEN
	default: /* f32 and what is kept as float */
		for (uint32_t i = 0; i < n; i++)
			wide.f[i] = (double)((const float *)in)[i];
	}
	if (dtype_is_float(from))
		VERSION(from_f64)(to, out, f, n);
	else
		VERSION(from_i64)(to, out, w, n);
}

/* Converts n values of `from` at `in` to values of `to` at `out`, in their natural representation
 * (priv.h). */
APART void VERSION(convert)(DType from, DType to, void *out, const void *in, uint32_t n)
{
	if (from == DT_f32 && to == DT_i32) {
		const float *a = in;
		EACH(int32_t, to_int32((double)a[i]));
	}
	if (from == DT_i32 && to == DT_f32) {
		const int32_t *a = in;
		EACH(float, a[i]);
	}
	for (uint32_t k = 0; k < n; k += BLOCK) {
		const char *a = (const char *)in + (size_t)k * repr_size(from);
		uint32_t m = n - k < BLOCK ? n - k : BLOCK;
		VERSION(convert_chunk)(from, to, (char *)out + (size_t)k * repr_size(to), a, m);
	}
}

APART void VERSION(nearest)(int32_t *out, const float *a, uint32_t n)
{
	EACH(int32_t, to_int32((double)rintf(a[i])));
}

/* Evaluates one instruction as scalar_step does (priv.h), but no bitcast, table, from_f16,
 * to_f16 and flush_bf16. */
APART void VERSION(step)(const ScIns *ins, DType from, void *out, const void *const *in, uint32_t n)
{
	switch (ins->op) {
	case SC_select: select_bytes(repr_size(ins->dtype), out, in, n); return;
	case SC_nearest: VERSION(nearest)(out, in[0], n); return;
	case SC_convert: case SC_fit: VERSION(convert)(from, ins->dtype, out, in[0], n); return;
	default: break;
	}
	/* Comparisons have the dtype of their operands. */
	switch (ins->op >= SC_eq && ins->op <= SC_ge ? from : ins->dtype) {
#define RUN(D, T, W) case D: VERSION(run_##T)(ins->op, out, in, n); return;
	INTS(RUN)
	FLOATS(RUN)
#undef RUN
	default: VERSION(run_bool)(ins->op, out, in, n); return;
	}
}

#undef APART
#undef VERSION
#undef TARGET
