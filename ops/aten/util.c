#include "ops/aten/priv.h"

#include <math.h>
#include <string.h>

/* ---- arguments ---- */

uint32_t aten_list(const Build *b, Node n, const char *name, Node *out, uint32_t max)
{
	uint32_t first, count = node_args(b->g, n, name, &first);
	for (uint32_t k = 0; k < count && k < max; k++)
		out[k] = node_in(b->g, n, first + k);
	return count;
}

bool aten_has(const Build *b, Node n, const char *name)
{
	return node_attr(b->g, n, name)->kind != ATTR_none;
}

uint32_t aten_named_dims(const Build *b, Node n)
{
	for (const char *p = op_name(node_op(b->g, n)); *p; p++)
		if (*p >= '1' && *p <= '3' && p[1] == 'd' && (!p[2] || strchr("._", p[2])))
			return (uint32_t)(*p - '0');
	return 0;
}

int64_t aten_int_or(Build *b, Node n, const char *name, int64_t otherwise)
{
	return aten_has(b, n, name) ? aten_int(b, n, name) : otherwise;
}

bool aten_syms(Build *b, Node n, const char *name, uint32_t want, int64_t fill, Sym *out)
{
	uint32_t len = 0;
	const Sym *v = aten_has(b, n, name) ? node_ints(b->g, n, name, &len) : NULL;
	const Arg *a = &op_schema(node_op(b->g, n))->arg[op_arg_index(node_op(b->g, n), name)];
	bool empty = aten_has(b, n, name) && !len && strcmp(a->text, "[]") != 0;
	if ((len > 1 || empty) && len != want) {
		b_error(b, "%s has %u elements, expected %u", name, len, want);
		return false;
	}
	for (uint32_t k = 0; k < want; k++)
		out[k] = len ? v[len == 1 ? 0 : k] : b_int(b, fill);
	return true;
}

bool aten_ints(Build *b, Node n, const char *name, uint32_t want, int64_t fill, int64_t *out)
{
	Sym *v = ARENA_ARRAY(b->g->ir->ctx->scratch, Sym, want);
	TRY(aten_syms(b, n, name, want, fill, v));
	for (uint32_t k = 0; k < want; k++)
		TRY(aten_const(b, v[k], &out[k]));
	return true;
}

DType aten_dtype_or(const Build *b, Node n, const char *name, DType otherwise)
{
	const Attr *a = node_attr(b->g, n, name);
	return a->kind == ATTR_dtype ? a->dtype : otherwise;
}

uint32_t aten_dims(Build *b, Node n, const char *name, uint32_t rank)
{
	const Attr *a = node_attr(b->g, n, name);
	uint32_t all = (1u << rank) - 1, len = 1;
	if (a->kind == ATTR_none || (a->kind == ATTR_ints && a->n == 0))
		return all;
	const Sym *v = a->kind == ATTR_ints ? node_ints(b->g, n, name, &len) : &a->s;
	uint32_t bits = 0;
	for (uint32_t k = 0; k < len; k++) {
		int64_t d;
		if (!aten_const(b, v[k], &d))
			return 0;
		uint32_t bit = 1u << b_wrap_dim(b, d, rank);
		if (bits & bit)
			return b_error(b, "dimension %lld stands twice in %s", (long long)d, name)
				.i;
		bits |= bit;
	}
	return bits & all;
}

bool aten_is_empty(const Build *b, Node x)
{
	return sym_is(b_syms(b), type_numel(b->g->ir, node_type_id(b->g, x)), 0);
}

bool aten_keepdim(const Build *b, Node n)
{
	return op_arg_index(node_op(b->g, n), "keepdim") >= 0 && node_bool(b->g, n, "keepdim");
}

bool aten_is(const Build *b, Node n, const char *name, const char *text)
{
	const Attr *a = node_attr(b->g, n, name);
	return a->kind == ATTR_str && strcmp(a->str, text) == 0;
}

bool aten_check_word(Build *b, Node n, const char *name, const char *words)
{
	const Attr *a = node_attr(b->g, n, name);
	if (a->kind != ATTR_str)
		return true;
	size_t len = strlen(a->str);
	for (const char *p = words; *p; p += strcspn(p, " "), p += *p == ' ')
		if (strcspn(p, " ") == len && !memcmp(p, a->str, len))
			return true;
	return b_error(b, "%s is \"%s\", expected one of: %s", name, a->str, words).i;
}

bool aten_check_within(Build *b, const char *what, double v, double lo, double hi)
{
	if (v >= lo && v <= hi)
		return true;
	if (isinf(hi))
		return b_error(b, "%s is %g, expected at least %g", what, v, lo).i;
	if (isinf(lo))
		return b_error(b, "%s is %g, expected at most %g", what, v, hi).i;
	return b_error(b, "%s is %g, expected %g to %g", what, v, lo, hi).i;
}

bool aten_check_arg_within(Build *b, Node n, const char *name, double lo, double hi)
{
	return aten_check_within(b, name, node_float(b->g, n, name), lo, hi);
}

/* ---- shapes and dtypes ---- */

DType aten_result_dtype(const Build *b, Node n, uint32_t k, DType otherwise)
{
	if (!node_type_id(b->g, n).i)
		return otherwise;
	const Type *t = node_type(b->g, n);
	if (t->dtype != DT_none)
		return k == 0 ? t->dtype : otherwise;
	return k < t->n ? ir_type_of(b->g->ir, t->elem[k])->dtype : otherwise;
}

Shape shape_remove(Shape s, uint32_t dim)
{
	if (dim >= s.rank)
		return s;
	for (uint32_t k = dim; k + 1 < s.rank; k++)
		s.dim[k] = s.dim[k + 1];
	s.rank--;
	return s;
}

Shape shape_insert(Shape s, uint32_t dim, Sym extent)
{
	if (s.rank == MAX_RANK)
		return s;
	for (uint32_t k = s.rank; k > dim; k--)
		s.dim[k] = s.dim[k - 1];
	s.dim[dim] = extent;
	s.rank++;
	return s;
}

bool aten_same_shape(const Build *b, Node x, Node y)
{
	Shape s = aten_shape(b, x), t = aten_shape(b, y);
	if (s.rank != t.rank)
		return false;
	for (uint32_t k = 0; k < s.rank; k++)
		if (sym_eq(b_syms(b), s.dim[k], t.dim[k]) != YES)
			return false;
	return true;
}

bool aten_broadcast_shape(Build *b, const Shape *x, const Shape *y, Shape *out)
{
	SymTab *t = b_syms(b);
	out->rank = x->rank > y->rank ? x->rank : y->rank;
	for (uint32_t k = 0; k < out->rank; k++) {
		uint32_t fx = out->rank - x->rank, fy = out->rank - y->rank;
		Sym dx = k < fx ? b_int(b, 1) : x->dim[k - fx];
		Sym dy = k < fy ? b_int(b, 1) : y->dim[k - fy];
		if (b_extent_broadcasts(b, dx, dy))
			out->dim[k] = dy;
		else if (b_extent_broadcasts(b, dy, dx))
			out->dim[k] = dx;
		else if (sym_eq(t, dx, dy) != NO)
			out->dim[k] = sym_is_const(t, dy, NULL) ? dy : dx;
		else {
			b_error(b, "cannot broadcast extents %s and %s", sym_str(t, dx),
				sym_str(t, dy));
			return false;
		}
	}
	return true;
}

DType dtype_to_float(DType d)
{
	return dtype_is_inexact(d) || d == DT_none ? d : DT_f32;
}

void aten_require_le(Build *b, Sym x, Sym y, const char *why)
{
	Truth t = sym_le(b_syms(b), x, y);
	if (t == NO)
		b_error(b, "%s: %s <= %s does not hold", why, sym_str(b_syms(b), x),
			sym_str(b_syms(b), y));
	else if (t == MAYBE)
		graph_guard(b->g, GUARD_LE, x, y, why);
}

uint32_t aten_dims_from(const Build *b, Node x, uint32_t first)
{
	return ((1u << aten_rank(b, x)) - 1) & ~((1u << first) - 1);
}

void aten_require_elements(Build *b, Node x, uint32_t dims, const char *why)
{
	for (uint32_t k = 0; k < aten_rank(b, x); k++)
		if (dims >> k & 1)
			aten_require_le(b, b_int(b, 1), b_dim(b, x, (int)k), why);
}

void aten_require_equal(Build *b, Sym x, Sym y, const char *why)
{
	Truth t = sym_eq(b_syms(b), x, y);
	if (t == NO)
		b_error(b, "%s: %s == %s does not hold", why, sym_str(b_syms(b), x),
			sym_str(b_syms(b), y));
	else if (t == MAYBE)
		graph_guard(b->g, GUARD_EQ, x, y, why);
}

void aten_require_multiple(Build *b, Sym x, int64_t k, const char *why)
{
	Sym rest = sym_modi(b_syms(b), x, k);
	Truth t = sym_eq(b_syms(b), rest, b_int(b, 0));
	if (t == NO)
		b_error(b, "%s: %s is not a multiple of %lld", why, sym_str(b_syms(b), x),
			(long long)k);
	else if (t == MAYBE)
		graph_guard(b->g, GUARD_EQ, rest, b_int(b, 0), why);
}

bool aten_require_shape(Build *b, Node x, const Shape *want, const char *why)
{
	Shape s = aten_shape(b, x);
	uint32_t errors = b->g->ir->ctx->nerror;
	if (!x.i || s.rank != want->rank)
		return x.i &&
		       b_error(b, "%s: a tensor of rank %u, expected %u", why, s.rank, want->rank)
			       .i;
	for (uint32_t k = 0; k < s.rank && b->g->ir->ctx->nerror == errors; k++)
		aten_require_equal(b, s.dim[k], want->dim[k], why);
	return b->g->ir->ctx->nerror == errors;
}

bool aten_check_length(Build *b, Node n, const char *name, uint32_t want)
{
	uint32_t len;
	node_ints(b->g, n, name, &len);
	return len == want || node_attr(b->g, n, name)->kind == ATTR_int ||
	       b_error(b, "%s has %u elements, expected %u", name, len, want).i;
}

static bool not_negative(Build *b, const char *name, Sym v)
{
	if (sym_le(b_syms(b), b_int(b, 0), v) == NO)
		return b_error(b, "%s has %s, expected nothing negative", name,
			       sym_str(b_syms(b), v))
			.i;
	return true;
}

bool aten_check_strides(Build *b, Node n)
{
	uint32_t rank;
	const Sym *size = node_ints(b->g, n, "size", &rank),
		  *stride = node_ints(b->g, n, "stride", &(uint32_t){0});
	TRY(aten_check_length(b, n, "stride", rank));
	for (uint32_t k = 0; k < rank; k++)
		TRY(not_negative(b, "size", size[k]) && not_negative(b, "stride", stride[k]));
	return true;
}

Sym aten_window_count(const Build *b, Sym room, Sym reach, int64_t stride)
{
	SymTab *t = b_syms(b);
	return sym_addi(t, sym_divi(t, sym_sub(t, room, reach), stride), 1);
}

/* ---- nodes ---- */

static Node scalar_wrapped(Build *b, const Attr *a, DType d)
{
	if (d == DT_none)
		return (Node){0};
	switch (a->kind) {
	case ATTR_bool:
		return b_full_int(b, d, a->b, 0, NULL);
	case ATTR_int:
		return aten_size(b, a->s, d);
	case ATTR_float:
		return b_scalar(b, d, a->f);
	case ATTR_complex:
		if (a->z.im != 0 && !dtype_is_complex(d))
			return b_error(b, "the value %g%+gj cannot be converted to %s", a->z.re,
				       a->z.im, dtype_name(d));
		return b_full_attr(b, d, *a, 0, NULL);
	default:
		return b_error(b, "a scalar argument is missing");
	}
}

void dtype_limits(DType d, int64_t *low, int64_t *high)
{
	uint32_t bits = 8 * dtype_size(d) - dtype_is_signed(d);
	*high = bits >= 63 ? INT64_MAX : ((int64_t)1 << bits) - 1;
	*low = dtype_is_signed(d) ? -*high - 1 : 0;
}

/* Tells whether a number is a value of dtype d. A negative integer is one of an unsigned dtype,
 * modulo its range, but a negative float is not. */
static bool int_fits(const Build *b, const Attr *a, DType d)
{
	int64_t v, low, high;
	dtype_limits(d, &low, &high);
	if (a->kind == ATTR_float) {
		double top = ldexp(1, (int)(8 * dtype_size(d)) - dtype_is_signed(d));
		return a->f >= (double)low && a->f <= (double)high && a->f < top;
	}
	if (a->kind != ATTR_int || !sym_is_const(b_syms(b), a->s, &v))
		return true;
	return dtype_is_signed(d) ? v >= low && v <= high : v <= high && v >= -high;
}

static bool float_fits(const Build *b, const Attr *a, DType d)
{
	int64_t i = 0;
	if (a->kind == ATTR_int && !sym_is_const(b_syms(b), a->s, &i))
		return true;
	double v = fabs(a->kind == ATTR_float ? a->f : (double)i);
	return !(v > dtype_max(d)) || isinf(v);
}

static bool scalar_fits(const Build *b, const Attr *a, DType d)
{
	if (d == DT_none || a->kind == ATTR_bool)
		return true;
	if (dtype_is_int(d))
		return int_fits(b, a, d);
	return !dtype_is_float(d) || float_fits(b, a, d);
}

Node aten_scalar_as(Build *b, const Attr *a, DType d)
{
	if (scalar_fits(b, a, d))
		return scalar_wrapped(b, a, d);
	if (a->kind == ATTR_float)
		return b_error(b, "the value %g cannot be converted to %s", a->f, dtype_name(d));
	return b_error(b, "the value %lld cannot be converted to %s",
		       (long long)sym_const(b_syms(b), a->s), dtype_name(d));
}

DType aten_scalar_dtype(DType d, const Attr *a)
{
	Promotion p = {d, DT_none, DT_none};
	if (d == DT_none || a->kind == ATTR_none)
		return d;
	promote_weak(&p, attr_weak_dtype(a));
	return promote_result(&p);
}

Node aten_scalar(Build *b, Node x, const Attr *a)
{
	return scalar_wrapped(b, a, aten_scalar_dtype(aten_dtype(b, x), a));
}

Node aten_scalar_arg(Build *b, Node n, const char *name, Node x)
{
	return aten_scalar(b, x, node_attr(b->g, n, name));
}

bool aten_is_tensor(const Build *b, Node n, const char *name)
{
	const Op op = node_op(b->g, n);
	return op_schema(op)->arg[op_arg_index(op, name)].kind == ARG_tensor;
}

Node aten_arg_beside(Build *b, Node n, const char *name, Node x)
{
	return aten_is_tensor(b, n, name) ? arg(b, n, name) : aten_scalar_arg(b, n, name, x);
}

Node aten_scalar_factor(Build *b, const Attr *a, DType d)
{
	return dtype_is_int(d) ? aten_scalar_as(b, a, d) : scalar_wrapped(b, a, d);
}

bool aten_scalar_is(const Build *b, Node n, const char *name, double v)
{
	const Attr *a = node_attr(b->g, n, name);
	int64_t i;
	switch (a->kind) {
	case ATTR_bool:
		return (double)a->b == v;
	case ATTR_int:
		return sym_is_const(b_syms(b), a->s, &i) && (double)i == v;
	case ATTR_float:
		return a->f == v;
	case ATTR_complex:
		return a->z.re == v && a->z.im == 0;
	default:
		return false;
	}
}

Node aten_truth(Build *b, Node x)
{
	return aten_dtype(b, x) == DT_bool ? x : b_bin_scalar(b, OP_ne, x, 0);
}

Node aten_wide(Build *b, Node x)
{
	return x.i ? b_convert(b, x, dtype_compute(node_dtype(b->g, x))) : x;
}

Node aten_to_float(Build *b, Node x)
{
	return x.i ? b_convert(b, x, dtype_to_float(node_dtype(b->g, x))) : x;
}

Node aten_expand_shape(Build *b, Node x, const Shape *s)
{
	return b_broadcast(b, x, s->rank, s->dim);
}

Node aten_reshape(Build *b, Node x, const Shape *s)
{
	return b_reshape(b, x, s->rank, s->dim);
}

Node aten_per_dim(Build *b, Node v, Node like, uint32_t dim)
{
	Shape s = aten_shape(b, like);
	if (!v.i || !like.i)
		return (Node){0};
	if (aten_rank(b, v) > 1)
		return b_error(b, "values along a dimension of rank %u, expected 1",
			       aten_rank(b, v));
	return b_broadcast_in_dim(b, v, s.rank, s.dim, &dim);
}

Node aten_squeeze_dims(Build *b, Node x, uint32_t dims)
{
	Shape s = aten_shape(b, x), r = {0};
	for (uint32_t k = 0; k < s.rank; k++)
		if (!(dims >> k & 1))
			r.dim[r.rank++] = s.dim[k];
	return r.rank == s.rank ? x : aten_reshape(b, x, &r);
}

Node aten_flatten(Build *b, Node x, uint32_t first, uint32_t last)
{
	Shape s = aten_shape(b, x), r = {0};
	for (uint32_t k = 0; k < s.rank; k++)
		if (k > first && k <= last)
			r.dim[r.rank - 1] = sym_mul(b_syms(b), r.dim[r.rank - 1], s.dim[k]);
		else
			r.dim[r.rank++] = s.dim[k];
	return aten_reshape(b, x, &r);
}

Node aten_slice(Build *b, Node x, uint32_t dim, int64_t start, int64_t end)
{
	if (!x.i)
		return x;
	Sym size = b_dim(b, x, (int)dim);
	Sym s = start < 0 ? sym_addi(b_syms(b), size, start) : b_int(b, start);
	Sym e = end == INT64_MAX ? size : end < 0 ? sym_addi(b_syms(b), size, end) : b_int(b, end);
	if (start < 0)
		s = sym_max(b_syms(b), s, b_int(b, 0));
	if (end < 0 || end == INT64_MAX) /* what has no such part has an empty one */
		s = sym_min(b_syms(b), s, size), e = sym_max(b_syms(b), s, e);
	return b_slice(b, x, (int)dim, s, e, b_int(b, 1));
}

Node aten_scaled(Build *b, Node x, Node n, const char *name)
{
	if (aten_scalar_is(b, n, name, 1))
		return x;
	return aten_mul(b, x, aten_scalar_factor(b, node_attr(b->g, n, name), aten_dtype(b, x)));
}

static bool both_bool(const Build *b, Node x, Node y)
{
	return aten_dtype(b, x) == DT_bool && aten_dtype(b, y) == DT_bool;
}

Node aten_add(Build *b, Node x, Node y)
{
	return b_bin(b, both_bool(b, x, y) ? OP_bit_or : OP_add, x, y);
}

Node aten_mul(Build *b, Node x, Node y)
{
	return b_bin(b, both_bool(b, x, y) ? OP_bit_and : OP_mul, x, y);
}
