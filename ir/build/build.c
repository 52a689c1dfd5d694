#include "ir/build/build.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ir/op/op.h"
#include "ir/scalar/scalar.h"

Node(b_error)(Build *b, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	ctx_error(b->g->ir->ctx, b->where, "%s", text);
	return (Node){0};
}

/* ---- any op ---- */

/* Returns the list of arg->size elements that a lone integer, or a list of one, stands for. */
static Attr attr_repeat(Ir *ir, const Arg *arg, Attr a)
{
	Sym one = a.kind == ATTR_int ? a.s : a.ints[0];
	uint32_t n = arg->size ? arg->size : 1;
	Sym *v = ARENA_ARRAY(ir->ctx->scratch, Sym, n);
	for (uint32_t k = 0; k < n; k++)
		v[k] = one;
	return attr_ints(v, n);
}

/* Returns a as the argument's kind, where Python would accept it: an int for a float, a bool for
 * an int, one int for several. */
static Attr attr_coerce(Ir *ir, const Arg *arg, Attr a)
{
	int64_t v;
	if (arg->kind == ARG_ignored || arg->kind == ARG_tensor)
		return attr_none();
	if (a.kind == ATTR_none && !arg->optional)
		return op_default(ir, arg);
	if (a.kind == ATTR_bool && (arg->kind == ARG_int || arg->kind == ARG_float))
		a = attr_int(ir, a.b);
	if (arg->kind == ARG_float && a.kind == ATTR_int && sym_is_const(ir->syms, a.s, &v))
		return attr_float((double)v);
	if (arg->kind == ARG_bool && a.kind == ATTR_int && sym_is_const(ir->syms, a.s, &v))
		return attr_bool(v != 0);
	if (arg->kind == ARG_ints && a.kind == ATTR_int)
		return attr_repeat(ir, arg, a);
	if (arg->kind == ARG_ints && a.kind == ATTR_ints && a.n == 1 && arg->size > 1)
		return attr_repeat(ir, arg, a);
	return a;
}

/* Returns how many operands belong to the Tensor[] argument, if there is but one of those; else
 * -1. */
static int64_t list_length(const Schema *s, uint32_t nin)
{
	uint32_t single = 0, lists = 0;
	for (uint32_t k = 0; k < s->narg; k++) {
		single += s->arg[k].kind == ARG_tensor;
		lists += s->arg[k].kind == ARG_tensors;
	}
	return lists == 1 && nin >= single ? (int64_t)(nin - single) : -1;
}

static bool attrs_complete(Build *b, Op op, uint32_t nin, const Attr *attr, uint32_t nattr,
			   Attr *full)
{
	Ir *ir = b->g->ir;
	const Schema *s = op_schema(op);
	if (nattr > s->narg)
		ctx_bug(ir->ctx, "%s: %u attributes for %u arguments", s->name, nattr, s->narg);
	for (uint32_t k = 0; k < s->narg; k++) {
		const Arg *arg = &s->arg[k];
		full[k] = k < nattr ? attr_coerce(ir, arg, attr[k]) : op_default(ir, arg);
		int64_t n = list_length(s, nin);
		if (arg->kind == ARG_tensors && full[k].kind == ATTR_none && n >= 0)
			full[k] = attr_int(ir, n);
		if (!op_attr_fits(ir, arg, &full[k])) {
			b_error(b, "%s: argument \"%s\" is missing or of the wrong kind", s->name,
				arg->name);
			return false;
		}
	}
	return true;
}

/* Sets out[] to the operands, one for each tensor argument, and *n to how many the schema wants.
 * Returns false if one is missing, which is an error only if nothing was reported before. */
static bool operands_complete(Build *b, Op op, const Node *in, uint32_t nin, const Attr *full,
			      Node *out, uint32_t max, uint32_t *n)
{
	const Schema *s = op_schema(op);
	Ctx *ctx = b->g->ir->ctx;
	*n = 0;
	for (uint32_t k = 0; k < s->narg; k++) {
		const Arg *arg = &s->arg[k];
		int64_t count = arg->kind == ARG_tensor;
		if (arg->kind == ARG_tensors)
			count = sym_const_or(graph_syms(b->g), full[k].s, count);
		for (int64_t j = 0; j < count && *n < max; j++, ++*n) {
			out[*n] = *n < nin ? in[*n] : (Node){0};
			if (!out[*n].i && !arg->optional) {
				if (!ctx->nerror)
					b_error(b, "%s: operand \"%s\" is missing", s->name,
						arg->name);
				return false;
			}
		}
	}
	if (nin > *n) {
		b_error(b, "%s: expected %u operands, got %u", s->name, *n, nin);
		return false;
	}
	return true;
}

/* Whether operand k is a condition, exempt from promotion. */
static bool is_condition(Op op, uint32_t k)
{
	return op == OP_select && k == 0;
}

/* Whether a scalar operator takes nin operands of the dtype. Complex numbers pass: they become
 * pairs of real ones later. */
static bool takes_dtype(Op op, DType d, uint32_t nin)
{
	DType in[4];
	for (uint32_t k = 0; k < nin; k++)
		in[k] = is_condition(op, k) ? DT_bool : dtype_compute(d);
	return dtype_is_complex(d) || scalar_fn(op, in, nin);
}

static TypeId scalar_type(Build *b, Op op, const Node *in, uint32_t nin)
{
	const Graph *g = b->g;
	uint32_t first = is_condition(op, 0);
	const Type *t = node_type(g, in[first]);
	if (t->dtype == DT_none)
		return b_error(b, "%s: expected a tensor", op_name(op)), (TypeId){0};
	for (uint32_t k = 0; k < nin; k++) {
		const Type *o = node_type(g, in[k]);
		DType expected = is_condition(op, k) ? DT_bool : t->dtype;
		bool same = o->dtype == expected && o->n == t->n;
		for (uint32_t d = 0; same && d < t->n; d++)
			same = sym_eq(graph_syms(g), o->dim[d], t->dim[d]) == YES;
		if (!same) {
			TypeId want = ir_type(g->ir, expected, t->n, t->dim);
			b_error(b, "%s: operand %u is %s, expected %s", op_name(op), k,
				type_str(g->ir, node_type_id(g, in[k])), type_str(g->ir, want));
			return (TypeId){0};
		}
	}
	if (!takes_dtype(op, t->dtype, nin))
		return b_error(b, "%s: not defined on %s", op_name(op), dtype_name(t->dtype)),
		       (TypeId){0};
	DType result = op_info(op)->result;
	return ir_type(g->ir, result ? result : t->dtype, t->n, t->dim);
}

TypeId op_infer(Build *b, Op op, const Node *in, uint32_t nin, AttrId attr)
{
	const OpInfo *info = op_info(op);
	if (info->scalar)
		return scalar_type(b, op, in, nin);
	const char *where = b->where ? b->where : op_name(op);
	return info->infer ? info->infer(b->g, op, in, nin, attr, where) : (TypeId){0};
}

/* Checks that operands are tensors, but for `get` and `tuple`, which take several results apart
 * and put them together. */
static bool operands_are_tensors(Build *b, Op op, const Node *in, uint32_t nin)
{
	for (uint32_t k = 0; k < nin && op != OP_get && op != OP_tuple; k++) {
		if (!in[k].i || node_is_tensor(b->g, in[k]))
			continue;
		b_error(b, "%s: operand %u: expected a tensor, got %s", op_name(op), k,
			node_type_id(b->g, in[k]).i ? "a tuple" : "a node without a value");
		return false;
	}
	return true;
}

static TypeId type_of(Build *b, Op op, const Node *in, uint32_t nin, AttrId attr)
{
	Graph *g = b->g;
	if (!operands_are_tensors(b, op, in, nin))
		return (TypeId){0};
	if (op_kind(op) != OP_COMPOSITE || op_info(op)->infer)
		return op_infer(b, op, in, nin, attr);
	Node before = b->before.i ? node_prev(g, b->before) : g->last, previous;
	Build whole = *b;
	whole.keep = false;
	Node y = op_expand(&whole, op, in, nin, attr);
	TypeId type = y.i ? node_type_id(g, y) : (TypeId){0};
	for (Node n = b->before.i ? node_prev(g, b->before) : g->last; n.i != before.i;
	     n = previous) {
		previous = node_prev(g, n);
		graph_erase(g, n);
	}
	return type;
}

TypeId b_type(Build *b, Op op, const Node *in, uint32_t nin, AttrId attr)
{
	Ctx *ctx = b->g->ir->ctx;
	const uint32_t errors = ctx->nerror;
	const TypeId type = type_of(b, op, in, nin, attr);
	if (ctx->nerror > errors)
		ctx_kind(ctx, REFUSAL_TYPES);
	return type;
}

static Node composite_as_is(Build *b, Op op, const Node *in, uint32_t nin, AttrId attr)
{
	uint32_t before = b->g->ir->ctx->nerror;
	TypeId type = b_type(b, op, in, nin, attr);
	bool none = !type.i && (op_schema(op)->nresult || b->g->ir->ctx->nerror != before);
	return none ? (Node){0} : graph_add(b->g, b->before, op, in, nin, attr, type, b->loc);
}

static Node node_of(Build *b, Op op, const Node *in, uint32_t nin, const Attr *attr, uint32_t nattr,
		    bool as_is)
{
	Ir *ir = b->g->ir;
	const Schema *s = op_schema(op);
	Attr full[MAX_ARGS];
	uint32_t max = nin + s->narg, n, before = ir->ctx->nerror;
	Node *operand = ARENA_ARRAY(ir->ctx->scratch, Node, max);
	if (!attrs_complete(b, op, nin, attr, nattr, full) ||
	    !operands_complete(b, op, in, nin, full, operand, max, &n) ||
	    !operands_are_tensors(b, op, operand, n))
		return (Node){0};
	AttrId id = ir_attrs(ir, s->narg, full);
	if (op_kind(op) == OP_COMPOSITE && !op_info(op)->infer)
		return (as_is ? composite_as_is : op_expand)(b, op, operand, n, id);
	TypeId type = op_infer(b, op, operand, n, id);
	if (!type.i && (s->nresult || ir->ctx->nerror != before)) {
		if (ir->ctx->nerror == before)
			b_error(b, "%s: has no result type", s->name);
		return (Node){0};
	}
	return graph_add(b->g, b->before, op, operand, n, id, type, b->loc);
}

Node b_node(Build *b, Op op, const Node *in, uint32_t nin, const Attr *attr, uint32_t nattr)
{
	return node_of(b, op, in, nin, attr, nattr, b->keep && op_is_kept(op));
}

Node b_call(Build *b, Op op, const Node *in, uint32_t nin, const Attr *attr, uint32_t nattr)
{
	return node_of(b, op, in, nin, attr, nattr, true);
}

/* ---- constants ---- */

static double round_to(DType d, double v)
{
	float f = (float)v;
	d = dtype_real(d);
	return dtype_is_narrow(d) ? narrow_round(d, f) : d == DT_f32 ? f : v;
}

static int64_t wrap_to(DType d, int64_t v)
{
	uint32_t drop = 64 - 8 * dtype_size(d);
	uint64_t up = (uint64_t)v << drop;
	return dtype_is_signed(d) ? (int64_t)up >> drop : (int64_t)(up >> drop);
}

static int64_t float_to_int(DType d, double v)
{
	return scalar_eval(scalar_convert(DT_f64, d), &(ScVal){.f = v}).i;
}

/* Returns a complex number rounded to the dtype; without an imaginary part the real number, so
 * that values have one form. */
static Attr complex_rounded(DType d, Attr v)
{
	double re = round_to(d, v.z.re), im = round_to(d, v.z.im);
	return im == 0 && !signbit(im) ? attr_float(re) : attr_complex(re, im);
}

/* Makes *v a value of the dtype: ATTR_bool, ATTR_int, ATTR_float or ATTR_complex. Returns false
 * for a symbol that must be converted at run time. */
static bool value_convert(Ir *ir, DType d, Attr *v)
{
	if (v->kind == ATTR_complex && dtype_is_complex(d))
		return *v = complex_rounded(d, *v), true;
	if (v->kind == ATTR_complex)
		*v = d == DT_bool ? attr_bool(v->z.re != 0 || v->z.im != 0) : attr_float(v->z.re);
	int64_t i = v->kind == ATTR_bool && v->b;
	bool is_float = v->kind == ATTR_float;
	if (v->kind == ATTR_int && !sym_is_const(ir->syms, v->s, &i))
		return d == DT_i64;
	if (d == DT_bool)
		*v = attr_bool(is_float ? v->f != 0 : i != 0);
	else if (dtype_is_int(d))
		*v = attr_int(ir, is_float ? float_to_int(d, v->f) : wrap_to(d, i));
	else if (is_float)
		*v = attr_float(round_to(d, v->f));
	else
		*v = attr_float(d == DT_f32 ? (double)(float)i : round_to(d, (double)i));
	return true;
}

Node b_full_attr(Build *b, DType d, Attr v, uint32_t rank, const Sym *dim)
{
	if (rank > MAX_RANK)
		return b_error(b, "expected at most %d dimensions, got %u", MAX_RANK, rank);
	if (!value_convert(b->g->ir, d, &v)) {
		Node x = b_convert(b, b_from_size(b, v.s), d);
		return b_broadcast(b, x, rank, dim);
	}
	Attr attr[] = {attr_dtype(d), attr_ints(dim, rank), v};
	return b_node(b, OP_full, NULL, 0, attr, 3);
}

Node b_full(Build *b, DType d, double v, uint32_t rank, const Sym *dim)
{
	return b_full_attr(b, d, attr_float(v), rank, dim);
}

Node b_zeros(Build *b, TypeId type)
{
	const Type t = *ir_type_of(b->g->ir, type);
	return b_full(b, t.dtype, 0, t.n, t.dim);
}

Node b_full_int(Build *b, DType d, int64_t v, uint32_t rank, const Sym *dim)
{
	return b_full_attr(b, d, attr_int(b->g->ir, v), rank, dim);
}

Node b_scalar(Build *b, DType d, double v)
{
	return b_full(b, d, v, 0, NULL);
}

Node b_iota(Build *b, DType d, Sym n)
{
	Attr attr[] = {attr_dtype(d), attr_sym(n)};
	return b_node(b, OP_iota, NULL, 0, attr, 2);
}

Node b_const(Build *b, ConstId c)
{
	Attr attr = attr_const(c);
	return b_node(b, OP_constant, NULL, 0, &attr, 1);
}

Node b_from_size(Build *b, Sym s)
{
	Attr attr = attr_sym(s);
	int64_t v;
	if (sym_is_const(graph_syms(b->g), s, &v))
		return b_full_int(b, DT_i64, v, 0, NULL);
	return b_node(b, OP_from_size, NULL, 0, &attr, 1);
}

Sym b_index_from_end(Build *b, Sym index, Sym size)
{
	SymTab *t = b_syms(b);
	int64_t lo, hi;
	sym_range(t, index, &lo, &hi);
	if (lo >= 0)
		return index;
	/* For index = -size the place is 0, whatever the size. */
	Sym from_end = hi <= 0 ? sym_add(t, index, size) : (Sym){0};
	if (hi < 0 || (hi == 0 && sym_is_const(t, from_end, &(int64_t){0})))
		return from_end;
	if (sym_uses_kind(t, index, SYMVAR_UNBACKED)) {
		/* 0 or 1 */
		Sym negative =
			sym_max(t, b_int(b, 0), sym_min(t, b_int(b, 1), sym_muli(t, index, -1)));
		return sym_add(t, index, sym_mul(t, negative, size));
	}
	if (hi == 0) {
		graph_guard(b->g, GUARD_LE, index, b_int(b, -1),
			    "an index from the end must not be 0");
		return from_end;
	}
	if (sym_le(t, b_int(b, 0), index) != YES)
		graph_guard(b->g, GUARD_LE, b_int(b, 0), index,
			    "an index of unknown sign must not be negative");
	return index;
}

void b_to_size(Build *b, Node x, Sym size, Sym most, const char *what)
{
	Attr attr[] = {attr_none(), attr_sym(size), most.i ? attr_sym(most) : attr_none(),
		       attr_str(b->g->ir, what)};
	if (x.i)
		b_node(b, OP_to_size, &x, 1, attr, 4);
}

bool node_splat(const Graph *g, Node x, Attr *v)
{
	if (!x.i || node_op(g, x) != OP_full)
		return false;
	if (v)
		*v = *node_attr(g, x, "value");
	return true;
}

bool b_splat(const Build *b, Node x, Attr *v)
{
	return node_splat(b->g, x, v);
}

/* ---- element-wise ---- */

Node b_convert(Build *b, Node x, DType d)
{
	Attr v;
	if (!x.i || node_dtype(b->g, x) == d)
		return x;
	if (node_dtype(b->g, x) == DT_none)
		return b_error(b, "expected a tensor, got a tuple");
	if (b_splat(b, x, &v) && value_convert(b->g->ir, d, &v)) {
		const Type *t = node_type(b->g, x);
		return b_full_attr(b, d, v, t->n, t->dim);
	}
	Attr attr[] = {attr_none(), attr_dtype(d)};
	return b_node(b, OP_convert, &x, 1, attr, 2);
}

static DType scalar_common(Build *b, Op op, const Node *in, uint32_t nin)
{
	uint32_t first = is_condition(op, 0);
	DType d = b_promote(b, in + first, nin - first);
	bool exact = d == DT_bool || dtype_is_int(d);
	if (op_info(op)->promote == PROMOTE_FLOAT && exact)
		return DT_f32;
	return op_info(op)->promote == PROMOTE_INT && d == DT_bool ? DT_i64 : d;
}

Node b_pointwise(Build *b, Op op, const Node *in, uint32_t nin)
{
	Node x[4];
	if (nin == 0 || nin > 4)
		ctx_bug(b->g->ir->ctx, "%s with %u operands", op_name(op), nin);
	Sym dim[MAX_RANK];
	uint32_t rank;
	for (uint32_t k = 0; k < nin; k++) {
		if (!in[k].i)
			return (Node){0};
		if (node_dtype(b->g, in[k]) == DT_none)
			return b_error(b, "%s: expected a tensor, got a tuple", op_name(op));
	}
	DType d = scalar_common(b, op, in, nin);
	if (!b_common_shape(b, in, nin, &rank, dim))
		return (Node){0};
	for (uint32_t k = 0; k < nin; k++) {
		x[k] = b_convert(b, in[k], is_condition(op, k) ? DT_bool : d);
		x[k] = b_broadcast(b, x[k], rank, dim);
	}
	return b_node(b, op, x, nin, NULL, 0);
}

Node b_un(Build *b, Op op, Node x)
{
	return b_pointwise(b, op, &x, 1);
}

void b_operand(Build *b, Node x)
{
	array_push(b->g->ir->ctx->arena, &b->g->ir->operand, x);
}

void b_operands(Build *b, Node *in, uint32_t n)
{
	Ir *ir = b->g->ir;
	for (uint32_t k = 0; k < n; k++)
		in[k] = ir->operand.data[--ir->operand.n];
}

Node b_bin_of_operands(Build *b, Op op)
{
	Node in[2];
	b_operands(b, in, 2);
	return b_pointwise(b, op, in, 2);
}

Node b_select_of_operands(Build *b)
{
	Node in[3];
	b_operands(b, in, 3);
	return b_pointwise(b, OP_select, in, 3);
}

Node b_power(Build *b, Node x, int64_t e)
{
	Node r = {0};
	for (;; x = b_bin(b, OP_mul, x, x)) {
		if (e & 1)
			r = r.i ? b_bin(b, OP_mul, r, x) : x;
		e >>= 1;
		if (e == 0)
			return r;
	}
}

Node b_bin_scalar(Build *b, Op op, Node x, double v)
{
	if (!x.i)
		return x;
	DType d = node_dtype(b->g, x);
	bool whole = v == trunc(v) || isnan(v);
	if (!whole && (d == DT_bool || dtype_is_int(d)))
		x = b_convert(b, x, d = DT_f32);
	return b_bin(b, op, x, b_scalar(b, d, v));
}
