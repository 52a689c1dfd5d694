#include "tests/help/sample.h"
#include "ir/build/build.h"
#include "ir/build/text.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- texts ---- */

/* Past a "string" or the text of a graph that starts at p; p otherwise. */
static const char *skip_nested(const char *p)
{
	if (*p == '"') {
		for (p++; *p && *p != '"'; p++)
			p += *p == '\\' && p[1];
		return p + (*p == '"');
	}
	if (strncmp(p, "graph @", 7) != 0)
		return p;
	p += strcspn(p, "{");
	int depth = 0;
	do
		depth += (*p == '{') - (*p == '}');
	while (*p++ && depth);
	return p;
}

const char *sample_text(Arena *a, Op op, uint32_t k)
{
	const char *p = op_info(op)->sample, *start = p;
	if (!p)
		return NULL;
	for (;; p++) {
		for (const char *q; (q = skip_nested(p)) != p;)
			p = q;
		if (*p && *p != ';')
			continue;
		if (k-- == 0)
			return arena_strndup(a, start, (size_t)(p - start));
		if (!*p)
			return NULL;
		start = p + 1;
	}
}

uint32_t sample_count(Op op)
{
	Arena *a = arena_new(NULL);
	uint32_t n = 0;
	while (sample_text(a, op, n))
		n++;
	arena_free(a);
	return n;
}

/* ---- translation: the text of a graph ---- */

typedef enum { FILL_DEFAULT, FILL_RANGE, FILL_DISTINCT, FILL_LIST } FillKind;

/* The values of one operand. */
typedef struct {
	FillKind kind;
	double lo, hi;
	const char *list; /* numbers with blanks between */
} Fill;

typedef struct {
	Ir *ir;
	const char *p;
	SampleForm form;
	bool varies; /* another dtype takes the place of f32 */
	uint32_t nsize, nin;
	const char *size[SAMPLE_SIZES];
	int64_t extent[SAMPLE_SIZES]; /* by size */
	Fill fill[SAMPLE_INPUTS];
	Text inputs, call;
} Reader;

static size_t word_length(const char *p)
{
	size_t n = 0;
	if (isalpha((unsigned char)*p) || *p == '_')
		while (isalnum((unsigned char)p[n]) || p[n] == '_' || p[n] == '.')
			n++;
	return n;
}

/* The names of sizes: "n=3" between the brackets of a type. */
static bool read_sizes(Reader *r, const char *p)
{
	bool in_type = false;
	while (*p) {
		size_t n = word_length(p);
		if (n && in_type && p[n] == '=') {
			if (r->nsize == SAMPLE_SIZES)
				return ctx_error(r->ir->ctx, NULL, "sample: too many sizes");
			r->size[r->nsize] = arena_strndup(r->ir->ctx->arena, p, n);
			r->extent[r->nsize++] = strtoll(p + n + 1, NULL, 10);
		}
		bool type = n && p[n] == '[' && dtype_parse(p, (uint32_t)n) != DT_none;
		in_type = type || (in_type && *p != ']');
		const char *next = skip_nested(p);
		p = next != p ? next : p + (n ? n + type : 1);
	}
	return true;
}

/* A word of an attribute or of an extent: the number of a size, unless that is a symbol; the dtype
 * in place of f32. */
static void copy_word(Reader *r, Text *to, size_t n)
{
	for (uint32_t k = 0; k < r->nsize && !r->form.symbolic; k++)
		if (strlen(r->size[k]) == n && memcmp(r->size[k], r->p, n) == 0 && r->p[n] != '=') {
			text_printf(to, "%lld", (long long)r->extent[k]);
			r->p += n;
			return;
		}
	bool real = r->varies && n == 3 && memcmp(r->p, "f32", 3) == 0;
	text_printf(to, "%.*s", (int)(real ? strlen(dtype_name(r->form.real)) : n), real ? dtype_name(r->form.real) : r->p);
	r->p += n;
}

static void read_fill(Reader *r, Fill *f)
{
	const char *p = r->p + strspn(r->p, " ");
	*f = (Fill){.kind = FILL_DEFAULT};
	if (strncmp(p, "of ", 3) == 0) {
		*f = (Fill){.kind = FILL_LIST, .list = p + 3};
		r->p = p + strcspn(p, ",]");
		const char *arrow = strstr(p, "->");
		r->p = arrow && arrow < r->p ? arrow : r->p;
	} else if (strncmp(p, "in ", 3) == 0 || strncmp(p, "distinct ", 9) == 0) {
		char *end;
		f->kind = *p == 'i' ? FILL_RANGE : FILL_DISTINCT;
		f->lo = strtod(p + (*p == 'i' ? 3 : 9), &end);
		f->hi = strtod(end + strspn(end, "."), &end);
		r->p = end;
	}
}

/* "f32[n=3, 4] in -8..8": an input of that type. */
static bool read_tensor(Reader *r, size_t n)
{
	DType d = dtype_parse(r->p, (uint32_t)n);
	if (d == DT_f32 && r->form.real)
		d = r->form.real;
	if (r->nin == SAMPLE_INPUTS)
		return ctx_error(r->ir->ctx, NULL, "sample: too many operands");
	text_printf(&r->inputs, "%s%%x%u: %s", r->nin ? ", " : "", r->nin, dtype_name(d));
	for (r->p += n; *r->p && *r->p != ']';) {
		size_t word = word_length(r->p);
		if (word && r->p[word] == '=') {
			const char *number = r->p + word + 1;
			size_t digits = strspn(number, "0123456789");
			text_printf(&r->inputs, "%.*s", (int)(r->form.symbolic ? word : digits),
				    r->form.symbolic ? r->p : number);
			r->p = number + digits;
		} else if (word) {
			copy_word(r, &r->inputs, word);
		} else {
			text_printf(&r->inputs, "%c", *r->p++);
		}
	}
	text_printf(&r->inputs, "]");
	r->p += *r->p == ']';
	read_fill(r, &r->fill[r->nin]);
	text_printf(&r->call, "%%x%u", r->nin++);
	return true;
}

/* A string or a graph up to `end`, whose values have the dtypes of the operands. */
static void copy_nested(Reader *r, const char *end)
{
	bool graph = *r->p == 'g' && r->varies;
	while (r->p < end) {
		bool real = graph && strncmp(r->p, "f32", 3) == 0;
		text_printf(&r->call, "%.*s", real ? (int)strlen(dtype_name(r->form.real)) : 1, real ? dtype_name(r->form.real) : r->p);
		r->p += real ? 3 : 1;
	}
}

static bool read_call(Reader *r)
{
	while (*r->p && strncmp(r->p, "->", 2) != 0) {
		size_t n = word_length(r->p);
		const char *next = skip_nested(r->p);
		if (next != r->p) {
			copy_nested(r, next);
		} else if (n && r->p[n] == '[' && dtype_parse(r->p, (uint32_t)n) != DT_none) {
			TRY(read_tensor(r, n));
		} else if (n) {
			copy_word(r, &r->call, n);
		} else {
			text_printf(&r->call, "%c", *r->p++);
		}
	}
	return true;
}

/* ---- values ---- */

/* The i-th number of operand k, the same everywhere: splitmix64. */
static uint64_t number(uint32_t k, int64_t i)
{
	uint64_t h = (uint64_t)k * 1000003 + (uint64_t)i + 1;
	h *= 0x9e3779b97f4a7c15u;
	h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
	h = (h ^ h >> 27) * 0x94d049bb133111ebu;
	return h ^ h >> 31;
}

/* The place of element i in a fixed permutation of n. */
static int64_t place(int64_t i, int64_t n)
{
	int64_t step = n * 5 / 8 + 1;
	for (int64_t a = step, b = n; b; ) { /* until step and n have no common divisor */
		int64_t rest = a % b;
		a = b;
		b = rest;
		if (!b && a != 1)
			a = ++step, b = n;
	}
	return (i * step + n / 3) % n;
}

static double list_item(const char *list, int64_t i)
{
	double v[64];
	int64_t n = 0;
	for (const char *p = list; n < 64 && *(p += strspn(p, " ")) && *p != ',' && *p != ']' && strncmp(p, "->", 2) != 0;) {
		char *end;
		v[n++] = strtod(p, &end);
		p = end > p ? end : p + 1;
	}
	return n ? v[i % n] : 0;
}

enum { STEPS = 64 }; /* of a range of fractions: halves and the middle are among its values */

static double element(const Fill *f, DType d, uint32_t k, int64_t i, int64_t n)
{
	bool fraction = dtype_is_inexact(d);
	bool sign = fraction || dtype_is_signed(d);
	double lo = f->kind == FILL_DEFAULT ? (sign ? -4 : 0) : f->lo, hi = f->kind == FILL_DEFAULT ? (sign ? 4 : 8) : f->hi;
	uint64_t h = number(k, i);
	if (f->kind == FILL_LIST)
		return list_item(f->list, i);
	if (f->kind == FILL_DISTINCT && fraction)
		return n < 2 ? lo : lo + (hi - lo) * (double)place(i, n) / (double)(n - 1);
	if (f->kind == FILL_DISTINCT)
		return lo + (double)place(i, n);
	if (fraction)
		return lo + (hi - lo) * (double)(h % (STEPS + 1)) / STEPS;
	return lo + (double)(h % ((uint64_t)(hi - lo) + 1));
}

/* Fractions where integers are wanted: towards zero, NaN is 0, what is too large is 100; unsigned
 * ones lose their sign. */
static int64_t whole(double v, DType d)
{
	if (d == DT_bool)
		return v != 0;
	v = isnan(v) ? 0 : fabs(v) > 0x1p53 ? copysign(100, v) : trunc(v);
	return (int64_t)(dtype_is_signed(d) ? v : fabs(v));
}

static void fill(Tensor *t, const Fill *f, uint32_t k)
{
	Tensor flat = tensor_flat_real(t);
	int64_t n = tensor_numel(&flat);
	for (int64_t i = 0; i < n; i++) {
		double v = element(f, t->dtype, k, i, n);
		if (dtype_is_float(flat.dtype))
			tensor_set_f64(&flat, i, v);
		else
			tensor_set_i64(&flat, i, whole(v, t->dtype));
	}
}

static bool make_values(Reader *r, Sample *s)
{
	Ir *ir = r->ir;
	Sym sym[SAMPLE_SIZES];
	for (uint32_t k = 0; k < r->nsize; k++)
		sym[k] = sym_find(ir->syms, r->size[k], (uint32_t)strlen(r->size[k]));
	for (s->nin = 0; s->nin < r->nin; s->nin++) {
		const Type *type = node_type(s->g, s->g->input.data[s->nin].node);
		Tensor *t = &s->in[s->nin];
		*t = (Tensor){.dtype = type->dtype, .rank = type->n};
		for (uint32_t d = 0; d < type->n; d++)
			if (!sym_eval(ir->syms, type->dim[d], sym, r->extent, r->form.symbolic ? r->nsize : 0, &t->dim[d]))
				return ctx_error(ir->ctx, NULL, "sample: a size without a value");
		t->data = arena_alloc(ir->ctx->arena, tensor_bytes(t) + 64);
		fill(t, &r->fill[s->nin], s->nin);
	}
	return true;
}

/* ---- graphs ---- */

static Graph *parse(Reader *r, Op op)
{
	Text t;
	text_init(&t, r->ir->ctx->arena);
	text_printf(&t, "graph @sample(%s)", r->inputs.data);
	for (uint32_t k = 0; k < r->nsize && r->form.symbolic; k++)
		text_printf(&t, "%s0 <= %s ~ %lld", k ? ", " : " where ", r->size[k], (long long)r->extent[k]);
	bool typed = op_kind(op) == OP_COMPOSITE && op_schema(op)->nresult;
	text_printf(&t, " {\n  %s%s(%s)%s\n  return\n}\n", op_schema(op)->nresult ? "%y = " : "", op_name(op),
		    r->call.data, typed ? " : f32[]" : "");
	return graph_parse(r->ir, t.data, t.data);
}

/* The call's type: a primitive's is inferred already; a composite's is that of its expansion, in a
 * graph of its own. */
static bool call_type(Reader *r, Op op, TypeId *out)
{
	Graph *g = parse(r, op);
	TRY(g);
	*out = node_type_id(g, g->last);
	if (op_kind(op) != OP_COMPOSITE)
		return true;
	uint32_t errors = r->ir->ctx->nerror;
	Node n = g->last, in[SAMPLE_INPUTS];
	for (uint32_t k = 0; k < node_nin(g, n); k++)
		in[k] = node_in(g, n, k);
	Build b = {.g = g, .where = op_name(op)};
	Node by = op_expand(&b, op, in, node_nin(g, n), node_data(g, n)->attr);
	*out = by.i ? node_type_id(g, by) : (TypeId){0};
	return r->ir->ctx->nerror == errors;
}

bool sample_build(Ir *ir, Op op, const char *text, SampleForm form, Sample *out)
{
	Reader r = {.ir = ir, .p = text, .form = form, .varies = form.real && strstr(text, "f32[")};
	TypeId type;
	text_init(&r.inputs, ir->ctx->arena);
	text_init(&r.call, ir->ctx->arena);
	TRY(read_sizes(&r, text) && read_call(&r) && call_type(&r, op, &type));
	uint32_t only = *r.p ? (uint32_t)strtoul(r.p + 2, NULL, 10) : UINT32_MAX;
	Graph *g = parse(&r, op);
	TRY(g);
	*out = (Sample){.g = g};
	Node n = g->last, in[SAMPLE_INPUTS];
	for (uint32_t k = 0; k < node_nin(g, n); k++)
		in[k] = node_in(g, n, k);
	out->node = graph_add(g, n, op, in, node_nin(g, n), node_data(g, n)->attr, type, (LocId){0});
	graph_erase(g, n);
	Build b = {.g = g, .where = op_name(op)};
	const Type t = type.i ? *ir_type_of(ir, type) : (Type){0};
	if (type.i && t.dtype != DT_none)
		graph_add_output(g, "y", out->node, -1);
	for (uint32_t k = 0; type.i && t.dtype == DT_none && k < t.n; k++)
		if (only == UINT32_MAX || k == only)
			graph_add_output(g, arena_printf(ir->ctx->arena, "y%u", k), b_get(&b, out->node, k), -1);
	return make_values(&r, out);
}

const char *sample_only(void)
{
	const char *name = getenv("OP");
	Op op = name ? op_find(name) : OP_none;
	if (!name || (op && op_info(op)->sample && strcmp(op_name(op), name) == 0))
		return name;
	fprintf(stderr, "OP=%s: %s\n", name, !op ? "there is no such operator" : !op_info(op)->sample ? "it has no samples" : "that is an alias");
	exit(1);
}
