/* Products with weights that are dequantised, for tests: numbers, the graph, a run of it. Include
 * cmocka.h and weft_trace.h before. */
#ifndef WEFT_TESTS_WEIGHTS_FIXTURE_H
#define WEFT_TESTS_WEIGHTS_FIXTURE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TERMS = 400, MOST_COLUMNS = 80, MOST_ROWS = 70 };
enum { ROOM = 1600 /* by row or column: more terms than the most, of fewer rows or columns */ };

enum { UNIT = 2 };

typedef enum { OFFSET_NONE, OFFSET_LESS, OFFSET_MORE } Offsets;

/* A product of x[rows, terms] and of the transpose of w[columns, terms], with a scale and a zero
 * point for each group of a column's terms, and maybe an offset, which is subtracted or added. With
 * units scales are products of an integer and of a number that UNIT groups have in common.
 * With `outer` rows are [outer, rows / outer], and the result is in the order of these turned. */
typedef struct {
	int64_t rows, terms, columns, group, outer;
	bool is_unsigned, has_zero, units;
	Offsets offsets;
	int least, most; /* of the weights */
	float x[MOST_ROWS * ROOM], want[MOST_ROWS * MOST_COLUMNS];
	int w[MOST_COLUMNS * ROOM], zero[MOST_COLUMNS * ROOM];
	float scale[MOST_COLUMNS * ROOM], offset[MOST_COLUMNS * ROOM];
	float unit[MOST_COLUMNS * ROOM];
	int8_t of_unit[MOST_COLUMNS * ROOM];
} Case;

static inline uint32_t draw(uint32_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 17;
	*s ^= *s << 5;
	return *s;
}

static inline float uniform(uint32_t *s)
{
	return (float)(draw(s) >> 8) * 0x1p-23f - 1;
}

static inline void fill(Case *c, uint32_t seed)
{
	const int64_t groups = c->terms / c->group;
	uint32_t s = seed * 2654435761u + 1;
	for (int64_t i = 0; i < c->rows * c->terms; i++)
		c->x[i] = uniform(&s) * ldexpf(1, (int)(i / c->terms) % 9 - 4);
	for (int64_t i = 0; i < c->columns * c->terms; i++)
		c->w[i] = c->least + (int)(draw(&s) % (uint32_t)(c->most - c->least + 1));
	for (int64_t i = 0; i < c->columns * groups; i++) {
		c->scale[i] = 0.01f + 0.01f * uniform(&s) * uniform(&s);
		c->zero[i] = c->has_zero ? c->least / 2 + (int)(draw(&s) % 7) : 0;
		c->offset[i] = c->offsets ? 0.1f * uniform(&s) : 0;
		if (!c->units)
			continue;
		if (i % UNIT == 0)
			c->unit[i / UNIT] = ldexpf(1 + (float)(draw(&s) % 15), -10);
		c->of_unit[i] = (int8_t)(1 + draw(&s) % 31);
		c->scale[i] = c->unit[i / UNIT] * c->of_unit[i];
	}
}

/* ---- the model ---- */

/* Returns the weights with their offsets. */
static inline WeftValue weights_offset(WeftTrace *t, const Case *c, WeftValue w)
{
	const int64_t groups = c->terms / c->group, in_groups[] = {c->columns, groups, c->group},
		      flat[] = {c->columns, c->terms};
	const char *const op = c->offsets == OFFSET_LESS ? "aten.sub.Tensor" : "aten.add.Tensor";
	char type[64];
	snprintf(type, sizeof type, "f32[%lld, %lld, 1]", (long long)c->columns, (long long)groups);
	const WeftValue by = weft_trace_param(t, "o", type, c->offset);
	const WeftArg view[] = {weft_arg(w), weft_arg_ints(in_groups, 3)};
	const WeftArg both[] = {weft_arg(weft_trace_call(t, "aten.view", view, 2)), weft_arg(by)};
	const WeftArg back[] = {weft_arg(weft_trace_call(t, op, both, 2)), weft_arg_ints(flat, 2)};
	return weft_trace_call(t, "aten.view", back, 2);
}

/* Returns the scales, [columns, groups]. */
static inline WeftValue weights_scale(WeftTrace *t, const Case *c)
{
	const int64_t groups = c->terms / c->group, flat[] = {c->columns, groups};
	char type[64];
	snprintf(type, sizeof type, "f32[%lld, %lld]", (long long)c->columns, (long long)groups);
	if (!c->units)
		return weft_trace_param(t, "s", type, c->scale);
	snprintf(type, sizeof type, "f32[%lld, %lld, 1]", (long long)c->columns,
		 (long long)groups / UNIT);
	const WeftValue unit = weft_trace_param(t, "u", type, c->unit);
	snprintf(type, sizeof type, "i8[%lld, %lld, %d]", (long long)c->columns,
		 (long long)groups / UNIT, UNIT);
	const WeftArg both[] = {weft_arg(weft_trace_param(t, "s", type, c->of_unit)),
				weft_arg(unit)};
	const WeftArg view[] = {weft_arg(weft_trace_call(t, "aten.mul.Tensor", both, 2)),
				weft_arg_ints(flat, 2)};
	return weft_trace_call(t, "aten.view", view, 2);
}

/* Returns the product of x and the weights. */
static inline WeftValue weights_product(WeftTrace *t, const Case *c, WeftValue x, WeftValue wide)
{
	static const int64_t turned[] = {1, 0, 2};
	const int64_t apart[] = {c->outer, c->outer ? c->rows / c->outer : 0, c->terms},
		      all[] = {c->rows, c->columns};
	if (!c->outer)
		return weft_linear(t, x, wide, (WeftValue){0, 0});
	const WeftArg view[] = {weft_arg(x), weft_arg_ints(apart, 3)};
	x = weft_trace_call(t, "aten.view", view, 2);
	const WeftArg permute[] = {weft_arg(weft_linear(t, x, wide, (WeftValue){0, 0})),
				   weft_arg_ints(turned, 3)};
	const WeftArg back[] = {weft_arg(weft_trace_call(t, "aten.permute", permute, 2)),
				weft_arg_ints(all, 2)};
	return weft_trace_call(t, "aten.reshape", back, 2);
}

/* symbolic: the number of rows is one. */
static inline WeftGraph *weights_model(Weft *w, const Case *c, bool symbolic)
{
	static int8_t q[MOST_COLUMNS * ROOM], zero[MOST_COLUMNS * ROOM];
	const int64_t groups = c->terms / c->group;
	const char *const dtype = c->is_unsigned ? "u8" : "i8";
	char type[64];
	for (int64_t i = 0; i < c->columns * c->terms; i++)
		q[i] = (int8_t)c->w[i];
	for (int64_t i = 0; i < c->columns * groups; i++)
		zero[i] = (int8_t)c->zero[i];
	WeftTrace *t = weft_trace_new(w, "product");
	if (symbolic)
		weft_trace_symbol(t, "B", 0, 64);
	snprintf(type, sizeof type, symbolic ? "f32[B, %lld]" : "f32[%lld, %lld]",
		 (long long)(symbolic ? c->terms : c->rows), (long long)c->terms);
	const WeftValue x = weft_trace_input(t, "x", type);
	snprintf(type, sizeof type, "%s[%lld, %lld]", dtype, (long long)c->columns,
		 (long long)c->terms);
	const WeftValue weights = weft_trace_param(t, "w", type, q);
	const WeftValue scale = weights_scale(t, c);
	snprintf(type, sizeof type, "%s[%lld, %lld]", dtype, (long long)c->columns,
		 (long long)groups);
	const WeftValue point = weft_trace_param(t, "z", type, zero);
	const WeftArg args[] = {weft_arg(weights),
				weft_arg(scale),
				weft_arg(point),
				weft_arg_int(c->is_unsigned ? 0 : -128),
				weft_arg_int(c->is_unsigned ? 255 : 127),
				weft_arg_text(dtype),
				weft_arg_int(c->group),
				weft_arg_text("f32")};
	WeftValue wide =
		weft_trace_call(t, "quantized_decomposed.dequantize_per_channel_group", args, 8);
	if (c->offsets)
		wide = weights_offset(t, c, wide);
	weft_trace_output(t, "y", weights_product(t, c, x, wide));
	WeftGraph *g = weft_trace_end(t);
	if (!g)
		fail_msg("%s", weft_messages(w));
	return g;
}

static inline WeftTensor tensor(const float *data, int64_t *shape)
{
	return (WeftTensor){.data = (void *)(uintptr_t)data,
			    .device = {WEFT_CPU, 0},
			    .ndim = 2,
			    .dtype = {WEFT_FLOAT, 32, 1},
			    .shape = shape};
}

/* Sets y[rows, columns] to the results for the first rows of x. */
static inline void weights_run(Weft *w, const WeftModel *m, const Case *c, int64_t rows, float *y,
			       const char *who)
{
	int64_t in[2] = {rows, c->terms}, out[2] = {rows, c->columns};
	const WeftTensor x = tensor(c->x, in);
	WeftTensor result = tensor(y, out);
	WeftInstance *instance;
	WeftStatus status = {0};
	if (!m)
		fail_msg("%s: %s", who, weft_messages(w));
	if (m->open(m, NULL, &instance, &status))
		fail_msg("%s: %s", who, status.message);
	WeftSizes *s = malloc(weft_entry(m, 0)->sizes_bytes);
	memset(y, 0x55, (size_t)(rows * c->columns) * sizeof *y);
	int code = m->sizes(instance, 0, &x, s, &status);
	void *work = malloc(code ? 1 : s->workspace_bytes);
	code = code ? code : m->run(instance, s, &x, &result, work, NULL, &status);
	if (code)
		fail_msg("%s: %s", who, status.message);
	free(work);
	free(s);
	m->close(instance);
}

#endif
