/* Reading operands and attributes of a structural primitive while inferring its type. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ops/prim/priv.h"

bool(infer_fail)(Infer *f, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return ctx_error(f->g->ir->ctx, f->where, "%s: %s", op_name(f->op), text);
}

Type infer_in(const Infer *f, uint32_t k)
{
	return *node_type(f->g, f->in[k]);
}

static const Attr none_attr = {ATTR_none, 0, {0}};

const Attr *infer_attr(const Infer *f, const char *name)
{
	int k = op_arg_index(f->op, name);
	return k < 0 || !f->attr ? &none_attr : &f->attr[k];
}

uint32_t infer_args(const Infer *f, const char *name, uint32_t *first)
{
	const Schema *s = op_schema(f->op);
	int at = op_arg_index(f->op, name);
	*first = 0;
	for (int k = 0; k <= at; k++) {
		int64_t n = s->arg[k].kind == ARG_tensor;
		if (s->arg[k].kind == ARG_tensors)
			n = sym_const_or(f->syms, f->attr[k].s, n);
		if (k == at)
			return (uint32_t)n;
		*first += (uint32_t)n;
	}
	return 0;
}

/* Sets *n to how many operands the schema wants. Returns false when a Tensor[] slot holds no
 * count. */
static bool count_operands(Infer *f, uint32_t *n)
{
	const Schema *s = op_schema(f->op);
	*n = 0;
	for (uint32_t k = 0; k < s->narg; k++) {
		int64_t count = s->arg[k].kind == ARG_tensor;
		if (s->arg[k].kind == ARG_tensors) {
			if (!f->attr || f->attr[k].kind != ATTR_int ||
			    !sym_is_const(f->syms, f->attr[k].s, &count) || count < 0)
				return infer_fail(f, "argument %s has no operand count",
				                  s->arg[k].name);
		}
		*n += (uint32_t)count;
	}
	return true;
}

static bool check_operands(Infer *f)
{
	uint32_t want;
	TRY(count_operands(f, &want));
	if (f->nin != want)
		return infer_fail(f, "expected %u operands, got %u", want, f->nin);
	for (uint32_t k = 0; k < f->nin; k++) {
		if (!f->in[k].i)
			return infer_fail(f, "operand %u is missing", k);
		if (!node_type_id(f->g, f->in[k]).i || node_dtype(f->g, f->in[k]) == DT_none)
			return infer_fail(f, "operand %u is not a tensor", k);
	}
	return true;
}

TypeId infer_with(InferFn *fn, Graph *g, Op op, const Node *in, uint32_t nin, AttrId attr,
                  const char *where)
{
	Infer f = {.g = g, .syms = graph_syms(g), .op = op, .in = in, .nin = nin, .where = where};
	f.attr = attr.i ? g->ir->attr.data[attr.i] : NULL;
	if (!check_operands(&f) || !fn(&f))
		return (TypeId){0};
	return f.type;
}

bool infer_ints(Infer *f, const char *name, const Sym **v, uint32_t *n)
{
	const Attr *a = infer_attr(f, name);
	if (a->kind != ATTR_ints)
		return infer_fail(f, "argument %s: expected a list of integers", name);
	*v = a->ints;
	*n = a->n;
	return true;
}

bool infer_ints_n(Infer *f, const char *name, uint32_t n, const Sym **v)
{
	uint32_t got = 0;
	TRY(infer_ints(f, name, v, &got));
	if (got != n)
		return infer_fail(f, "argument %s: expected %u integers, got %u", name, n, got);
	return true;
}

bool infer_sym(Infer *f, const char *name, Sym *v)
{
	const Attr *a = infer_attr(f, name);
	if (a->kind != ATTR_int)
		return infer_fail(f, "argument %s: expected an integer", name);
	*v = a->s;
	return true;
}

bool infer_const(Infer *f, const char *name, int64_t *v)
{
	Sym s;
	TRY(infer_sym(f, name, &s));
	if (!sym_is_const(f->syms, s, v))
		return infer_fail(f, "argument %s: expected a constant, got %s", name,
		                  sym_str(f->syms, s));
	return true;
}

static bool check_dim(Infer *f, const char *name, uint32_t rank, Sym s, uint32_t *dim)
{
	int64_t v;
	if (!sym_is_const(f->syms, s, &v) || v < 0 || v >= (int64_t)rank)
		return infer_fail(f, "argument %s: expected a dimension below %u, got %s", name,
		                  rank, sym_str(f->syms, s));
	*dim = (uint32_t)v;
	return true;
}

bool infer_dim(Infer *f, const char *name, uint32_t rank, uint32_t *dim)
{
	Sym s;
	TRY(infer_sym(f, name, &s));
	return check_dim(f, name, rank, s, dim);
}

bool infer_dims(Infer *f, const char *name, uint32_t rank, uint32_t *dim, uint32_t *n)
{
	const Sym *v;
	TRY(infer_ints(f, name, &v, n));
	uint32_t seen = 0;
	if (*n > rank)
		return infer_fail(f, "argument %s: %u dimensions of rank %u", name, *n, rank);
	for (uint32_t k = 0; k < *n; k++) {
		TRY(check_dim(f, name, rank, v[k], &dim[k]));
		if (seen >> dim[k] & 1)
			return infer_fail(f, "argument %s: dimension %u twice", name, dim[k]);
		seen |= 1u << dim[k];
	}
	return true;
}

bool infer_choice(Infer *f, const char *name, const char *const *allowed, uint32_t *which)
{
	const Attr *a = infer_attr(f, name);
	if (a->kind != ATTR_str)
		return infer_fail(f, "argument %s: expected a string", name);
	for (uint32_t k = 0; allowed[k]; k++) {
		if (strcmp(a->str, allowed[k]) == 0) {
			*which = k;
			return true;
		}
	}
	return infer_fail(f, "argument %s: unknown value \"%s\"", name, a->str);
}

bool infer_combiner(Infer *f, const char *name, ReduceUse use, DType d, ReduceKind *kind)
{
	const Attr *a = infer_attr(f, name);
	if (a->kind != ATTR_str)
		return infer_fail(f, "argument %s: expected a string", name);
	if (!reduce_parse(a->str, kind) || !reduce_serves(*kind, use) ||
	    strcmp(reduce_name_for(*kind, use), a->str) != 0)
		return infer_fail(f, "argument %s: unknown value \"%s\"", name, a->str);
	return reduce_takes(*kind, d) || infer_fail(f, "%s of %s", a->str, dtype_name(d));
}

bool infer_dtype(Infer *f, const char *name, DType *d)
{
	const Attr *a = infer_attr(f, name);
	if (a->kind != ATTR_dtype || a->dtype == DT_none)
		return infer_fail(f, "argument %s: expected a dtype", name);
	*d = a->dtype;
	return true;
}

bool infer_acc(Infer *f, DType x, DType *result)
{
	const Attr *a = infer_attr(f, "acc");
	DType acc = a->kind == ATTR_dtype ? a->dtype : DT_none;
	*result = x;
	if (acc == DT_none)
		return true;
	bool float_x = dtype_is_inexact(x);
	bool float_acc = dtype_is_inexact(acc);
	if (float_x != float_acc)
		return infer_fail(f, "cannot accumulate %s in %s", dtype_name(x), dtype_name(acc));
	const Attr *out = infer_attr(f, "out");
	if (!float_x)
		*result = acc;
	if (out->kind != ATTR_dtype || out->dtype == *result)
		return true;
	if (!float_x || dtype_is_complex(x) != dtype_is_complex(acc) || out->dtype != acc)
		return infer_fail(f, "cannot give %s from %s accumulated in %s",
				  dtype_name(out->dtype), dtype_name(x), dtype_name(acc));
	*result = acc;
	return true;
}

/* Requires a condition that is not decided here, where the graph's conditions are collected. */
static bool undecided(Infer *f, const char *what, GuardKind kind, Sym a, Sym b)
{
	if (f->g->requires)
		graph_guard(f->g, kind, a, b,
			    arena_printf(f->g->ir->ctx->scratch, "%s: %s", op_name(f->op), what));
	return true;
}

bool infer_at_least(Infer *f, const char *what, Sym v, int64_t lo)
{
	Sym least = sym_int(f->syms, lo);
	if (sym_lt(f->syms, v, least) != YES)
		return undecided(f, what, GUARD_LE, least, v);
	return infer_fail(f, "%s: expected at least %lld, got %s", what, (long long)lo,
	                  sym_str(f->syms, v));
}

bool infer_le(Infer *f, const char *what, Sym a, Sym b)
{
	if (sym_le(f->syms, a, b) != NO)
		return undecided(f, what, GUARD_LE, a, b);
	return infer_fail(f, "%s: %s exceeds %s", what, sym_str(f->syms, a), sym_str(f->syms, b));
}

bool infer_same(Infer *f, const char *what, Sym a, Sym b)
{
	if (sym_eq(f->syms, a, b) != NO)
		return undecided(f, what, GUARD_EQ, a, b);
	return infer_fail(f, "%s: %s differs from %s", what, sym_str(f->syms, a),
	                  sym_str(f->syms, b));
}

bool infer_same_dtype(Infer *f, uint32_t k, uint32_t l)
{
	DType a = infer_in(f, k).dtype, b = infer_in(f, l).dtype;
	if (a == b)
		return true;
	return infer_fail(f, "operand dtypes %s and %s differ", dtype_name(a), dtype_name(b));
}

bool infer_index_scalars(Infer *f, uint32_t first, uint32_t n)
{
	for (uint32_t k = first; k < first + n; k++) {
		Type t = infer_in(f, k);
		if (t.dtype != DT_i64 || t.n != 0)
			return infer_fail(f, "operand %u: expected a 0-d i64", k);
	}
	return true;
}

bool infer_result(Infer *f, DType d, uint32_t rank, const Sym *dim)
{
	if (rank > MAX_RANK)
		return infer_fail(f, "the result's rank %u exceeds %d", rank, MAX_RANK);
	for (uint32_t k = 0; k < rank; k++)
		TRY(infer_at_least(f, "an extent of the result", dim[k], 0));
	f->type = ir_type(f->g->ir, d, rank, dim);
	return true;
}
