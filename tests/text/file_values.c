/* Tensors in test files: parsed, generated, printed, compared. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "file_test.h"
#include "ir/interp/interp.h"

const char *header_find(Arena *a, const char *text, const char *key, const char **at)
{
	size_t n = strlen(key);
	const char *s = at && *at ? *at : text;
	for (; *s; s += strcspn(s, "\n"), s += *s == '\n') {
		if (s[0] != ';' || s[1] != ' ' || strncmp(s + 2, key, n) || isalpha(s[2 + n]))
			continue;
		size_t len = strcspn(s, "\n");
		if (at)
			*at = s + len;
		return arena_strndup(a, s + 2 + n, len - 2 - n);
	}
	return NULL;
}

/* ---- random ---- */

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

void values_random(Tensor *t, double lo, double hi, uint64_t seed)
{
	Tensor flat = tensor_flat_real(t);
	bool whole = !dtype_is_float(flat.dtype);
	for (int64_t i = 0; i < tensor_numel(&flat); i++) {
		uint64_t bits = mix(mix(seed) + (uint64_t)i) >> 11;
		double u = (double)bits * 0x1p-53;
		if (t->dtype == DT_bool)
			tensor_set_i64(&flat, i, (int64_t)(bits & 1));
		else if (whole)
			tensor_set_i64(&flat, i, (int64_t)floor(lo + u * (hi - lo + 1)));
		else
			tensor_set_f64(&flat, i, lo + u * (hi - lo));
	}
}

/* ---- text ---- */

void values_steps(Tensor *t, const double range[3], uint64_t seed)
{
	Tensor flat = tensor_flat_real(t);
	values_random(&flat, 0, floor((range[1] - range[0]) / range[2]), seed);
	for (int64_t i = 0; i < tensor_numel(&flat); i++)
		tensor_set_f64(&flat, i, range[0] + range[2] * floor(tensor_f64(&flat, i)));
}

/* "1 2 3", "random LO HI [SEED]" or "steps LO HI STEP [SEED]" */
static bool fill(Ctx *ctx, const char *what, const char *s, uint64_t seed, Tensor *t)
{
	char *end;
	int64_t n = tensor_numel(t), k = 0;
	s += strspn(s, " ");
	if (strncmp(s, "random", 6) == 0) {
		double lo = strtod(s + 6, &end), hi = strtod(end, &end);
		seed = strtoull(end, &end, 10) + seed;
		values_random(t, lo, hi, seed);
		return true;
	}
	if (strncmp(s, "steps", 5) == 0) {
		double lo = strtod(s + 5, &end), hi = strtod(end, &end), step = strtod(end, &end);
		values_steps(t, (double[]){lo, hi, step}, strtoull(end, &end, 10) + seed);
		return true;
	}
	for (;; k++) {
		double v = strtod(s, &end);
		if (end == s)
			break;
		if (k < n && dtype_is_float(t->dtype))
			tensor_set_f64(t, k, v);
		else if (k < n)
			tensor_set_i64(t, k, strtoll(s, NULL, 10));
		s = end;
	}
	if (k == n && !s[strspn(s, " ")])
		return true;
	return ctx_error(ctx, what, "expected %lld values", (long long)n);
}

/* "f32[2, 3]" at *s, which is advanced. */
static bool parse_type_text(Ctx *ctx, const char **s, Tensor *t)
{
	const char *p = *s + strspn(*s, " ");
	size_t n = strcspn(p, "[");
	*t = (Tensor){.dtype = dtype_parse(p, (uint32_t)n)};
	if (!t->dtype || !p[n])
		return ctx_error(ctx, NULL, "expected a type, got %s", p);
	for (p += n + 1; *p && *p != ']' && t->rank < MAX_RANK; p += strspn(p, ", "))
		t->dim[t->rank++] = strtoll(p, (char **)(uintptr_t)&p, 10);
	*s = p + 1;
	t->data = arena_alloc(ctx->arena, tensor_bytes(t));
	return true;
}

/* The name "x" or x at *s. */
static const char *parse_name_text(Ctx *ctx, const char **s)
{
	const char *p = *s + strspn(*s, " \"%");
	size_t n = strcspn(p, "\": =");
	*s = p + n + (p[n] == '"');
	return arena_strndup(ctx->arena, p, n);
}

bool values_constants(const FileTest *test, Ir *ir)
{
	const char *at = NULL, *s;
	Ctx *ctx = ir->ctx;
	while ((s = header_find(ctx->arena, test->text, "const", &at))) {
		Tensor t;
		const char *name = parse_name_text(ctx, &s);
		s += strspn(s, " :");
		TRY(parse_type_text(ctx, &s, &t));
		s += strspn(s, " =");
		TRY(fill(ctx, name, s, ir->constant.n, &t));
		ir_const(ir, (Const){.name = name,
				     .dtype = t.dtype,
				     .rank = t.rank,
				     .dim = arena_dup(ctx->arena, t.dim, sizeof t.dim),
				     .data = t.data,
				     .bytes = tensor_bytes(&t),
				     .is_param = *name != 0});
	}
	return true;
}

/* State starts with a constant. */
static bool state_value(const Ir *ir, const GraphInput *in, Tensor *out)
{
	if (!in->init.i)
		return ctx_error(ir->ctx, NULL, "%s has no first contents", in->name);
	const Const *c = ir_const_of(ir, in->init);
	*out = (Tensor){.dtype = c->dtype, .rank = c->rank, .data = (void *)(uintptr_t)c->data};
	memcpy(out->dim, c->dim, c->rank * sizeof *c->dim);
	return true;
}

/* What the header says of that name, behind it; NULL: nothing. */
static const char *find_input(const FileTest *test, Ctx *ctx, const char *name)
{
	const char *at = NULL, *s;
	while ((s = header_find(ctx->arena, test->text, "input", &at)))
		if (!strcmp(parse_name_text(ctx, &s), name))
			break;
	return s;
}

bool values_input(const FileTest *test, EvalCtx *e, Graph *g, uint32_t k, Tensor *out)
{
	return values_input_of(test, e, g, k, 0, out);
}

bool values_input_of(const FileTest *test, EvalCtx *e, Graph *g, uint32_t k, uint32_t call, Tensor *out)
{
	const GraphInput *in = &g->input.data[k];
	if (in->kind != INPUT_USER)
		return state_value(g->ir, in, out);
	const char *s = find_input(test, e->ctx, arena_printf(e->ctx->arena, "%s@%u", in->name, call + 1));
	s = s ? s : find_input(test, e->ctx, in->name);
	if (s && *s == ':') {
		s++;
		TRY(parse_type_text(e->ctx, &s, out));
	} else {
		TRY(eval_alloc(e, node_type_id(g, in->node), g, out));
	}
	if (s)
		return fill(e->ctx, in->name, s + strspn(s, " ="), k + 100 * call, out);
	bool real = dtype_is_inexact(out->dtype);
	values_random(out, real ? -2 : 0, real ? 2 : 4, k + 100 * call);
	return true;
}

bool values_bind(Ctx *ctx, SymTab *t, const char *s, EvalCtx *e)
{
	uint32_t n = sym_nvars(t);
	*e = (EvalCtx){.ctx = ctx, .arena = ctx->arena, .syms = t};
	e->sym = ARENA_ARRAY(e->arena, Sym, n);
	e->value = ARENA_ARRAY(e->arena, int64_t, n);
	for (uint32_t k = 0; k < n; k++) {
		e->sym[k] = sym_var_at(t, k);
		e->value[k] = sym_hint(t, e->sym[k]);
	}
	e->nsym = n;
	while (*s) {
		size_t len = strcspn(s, "=");
		Sym v = sym_find(t, s, (uint32_t)len);
		if (!v.i || !s[len])
			return ctx_error(ctx, NULL, "expected a size, got %s", s);
		for (uint32_t k = 0; k < n; k++)
			if (e->sym[k].i == v.i)
				e->value[k] = strtoll(s + len + 1, NULL, 10);
		s += strcspn(s, ",");
		s += *s == ',';
	}
	return true;
}

void values_print_type(const Tensor *t, Text *out)
{
	text_printf(out, "%s[", dtype_name(t->dtype));
	for (uint32_t k = 0; k < t->rank; k++)
		text_printf(out, "%s%lld", k ? ", " : "", (long long)t->dim[k]);
	text_char(out, ']');
}

void values_print(const Tensor *t, Text *out)
{
	Tensor flat = tensor_flat_real(t);
	values_print_type(t, out);
	text_add(out, " =");
	for (int64_t i = 0; i < tensor_numel(&flat); i++)
		if (dtype_is_float(flat.dtype))
			text_printf(out, isnan(tensor_f64(&flat, i)) ? " nan" : " %.6g",
				    tensor_f64(&flat, i));
		else
			text_printf(out, " %lld", (long long)tensor_i64(&flat, i));
	text_char(out, '\n');
}

void values_index(const Tensor *t, int64_t i, Text *out)
{
	int64_t at[MAX_RANK];
	for (uint32_t k = t->rank; k-- > 0; i /= t->dim[k])
		at[k] = i % t->dim[k];
	text_char(out, '[');
	for (uint32_t k = 0; k < t->rank; k++)
		text_printf(out, "%s%lld", k ? ", " : "", (long long)at[k]);
	text_char(out, ']');
}

/* ---- comparison ---- */

/* Rounding of one operation, times a few. */
static double dtype_tolerance(DType d)
{
	switch (dtype_real(d)) {
	case DT_f64:
		return 1e-12;
	case DT_f16:
		return 4e-3;
	case DT_bf16:
		return 3e-2;
	default:
		return 2e-5;
	}
}

int64_t values_differ(const Tensor *compiled, const Tensor *expected, double tolerance)
{
	if (compiled->dtype != expected->dtype || compiled->rank != expected->rank ||
	    memcmp(compiled->dim, expected->dim, expected->rank * sizeof *expected->dim))
		return 0;
	Tensor x = tensor_flat_real(compiled), y = tensor_flat_real(expected);
	int64_t n = tensor_numel(&y);
	double scale = 0;
	if (tolerance == 0)
		tolerance = dtype_tolerance(y.dtype);
	for (int64_t i = 0; i < n && dtype_is_float(y.dtype); i++)
		if (isfinite(tensor_f64(&y, i)))
			scale += fabs(tensor_f64(&y, i)) / (double)n;
	for (int64_t i = 0; i < n; i++) {
		if (!dtype_is_float(y.dtype)) {
			if (tensor_i64(&x, i) != tensor_i64(&y, i))
				return i;
			continue;
		}
		double a = tensor_f64(&x, i), b = tensor_f64(&y, i);
		bool same = a == b || (isnan(a) && isnan(b));
		if (!same && !(fabs(a - b) <= tolerance * (fabs(b) + scale)))
			return i;
	}
	return -1;
}

int64_t values_other_bits(const Tensor *a, const Tensor *b)
{
	Tensor x = tensor_flat_real(a), y = tensor_flat_real(b);
	size_t size = dtype_size(x.dtype);
	if (a->dtype != b->dtype || a->rank != b->rank || memcmp(a->dim, b->dim, a->rank * sizeof *a->dim))
		return 0;
	for (int64_t i = 0, n = tensor_numel(&x); i < n; i++) {
		bool same = !memcmp((char *)x.data + (size_t)i * size, (char *)y.data + (size_t)i * size, size);
		if (!same && !(dtype_is_float(x.dtype) && isnan(tensor_f64(&x, i)) && isnan(tensor_f64(&y, i))))
			return i;
	}
	return -1;
}
