/* Dequantised and quantised values in graphs (priv.h).
 *
 *   q = convert(clamp(round(div(x, s)) + z)), x = mul(sub(convert(%p), z), s), 8 bits
 * is %p: a difference of at most 255 times s, divided by s, rounds to itself. Index maps, maxima
 * and concatenations between the two are applied to %p. */
#include <math.h>
#include <string.h>

#include "ir/interp/tensor.h"
#include "ir/scalar/scalar.h"
#include "ops/rules/rules.h"
#include "passes/common/questions.h"
#include "passes/fold/fold.h"
#include "passes/quantize/priv.h"

/* Returns the step that n is, as dequantisation and quantisation are written in them: the basic
 * operation that is all of the node's scalar function, or SC_convert; SC_param: another. */
static ScOp step_of(const Graph *g, Node n)
{
	DType in[3];
	const uint32_t nin = node_nin(g, n);
	if (node_op(g, n) == OP_convert)
		return SC_convert;
	if (!op_is_scalar(node_op(g, n)) || nin > 3)
		return SC_param;
	for (uint32_t k = 0; k < nin; k++)
		in[k] = node_dtype(g, node_in(g, n, k));
	const ScFn *fn = scalar_fn(node_op(g, n), in, nin);
	return fn && fn->nins == nin + 1 ? fn->ins[nin].op : SC_param;
}

static bool is_pad(const Graph *g, Node n)
{
	return op_lower(node_op(g, n))->holds == HOLDS_INTERIOR;
}

static bool is_byte(DType d)
{
	return d == DT_i8 || d == DT_u8;
}

static int32_t least_of(DType d)
{
	return d == DT_i8 ? -128 : 0;
}

static int32_t most_of(DType d)
{
	return d == DT_i8 ? 127 : 255;
}

static bool holds_differences(DType d)
{
	return d == DT_f32 || d == DT_f64 || d == DT_i16 || d == DT_i32 || d == DT_i64;
}

/* Skips converts to integers that hold all differences. Such an integer is where quantisation
 * ends, also when it is converted from a float. */
Node quant_below_converts(const Graph *g, Node x)
{
	while (step_of(g, x) == SC_convert && holds_differences(node_dtype(g, x)))
		x = node_in(g, x, 0);
	return x;
}

static bool is_zero_pad(const Graph *g, Node n)
{
	return is_pad(g, n) && is_splat(g, node_in(g, n, 1), 0);
}

static bool is_move(const Graph *g, Node n)
{
	return op_info(node_op(g, n))->moves || is_zero_pad(g, n);
}

/* Whether all elements are whole numbers that i32 holds: what is known by where they come from. */
static bool is_integer(const Graph *g, Node x)
{
	Attr v;
	if (node_splat(g, x, &v) && v.kind == ATTR_float)
		return v.f == (double)(int32_t)v.f;
	if (dtype_is_int(node_dtype(g, x)))
		return true;
	return (step_of(g, x) == SC_convert || is_move(g, x)) && is_integer(g, node_in(g, x, 0));
}

/* Whether all elements are known to be 0: a splat, or a constant, if constants stay. */
static bool is_zero(const Graph *g, Node x, bool keep_params)
{
	while (step_of(g, x) == SC_convert || is_move(g, x))
		x = node_in(g, x, 0);
	const ConstId id = node_const(g, x);
	if (!id.i || (keep_params && const_is_replaceable(g->ir, id)))
		return is_splat(g, x, 0);
	const Const *c = ir_const_of(g->ir, id);
	const char *data = c->data;
	for (uint64_t k = 0; data && k < c->bytes; k++)
		if (data[k])
			return false;
	return data;
}

bool quant_value_bounds(const Graph *g, Node x, bool keep_params, int64_t *least, int64_t *most)
{
	Attr v;
	if (!node_splat(g, x, &v))
		return quant_values(g, x, keep_params, least, most);
	*most = 0;
	if (v.kind == ATTR_float && fabs(v.f) <= INT32_MAX)
		*most = (int64_t)v.f;
	else
		TRY(v.kind == ATTR_int && sym_is_const(graph_syms(g), v.s, most));
	*least = *most;
	return true;
}

/* Whether x, the difference of two bytes, is one of numbers: it is no byte, or is known not to
 * wrap. */
static bool is_exact(const Graph *g, Node x, bool keep_params)
{
	const DType d = node_dtype(g, x);
	int64_t least[2], most[2];
	if (!is_byte(d))
		return true;
	for (uint32_t k = 0; k < 2; k++)
		TRY(quant_value_bounds(g, node_in(g, x, k), keep_params, &least[k], &most[k]));
	return (double)(least[0] - most[1]) >= least_of(d) &&
	       (double)(most[0] - least[1]) <= most_of(d);
}

/* Reads (q - zero), q, or a convert of one of them. */
static bool read_steps(const Graph *g, Node x, bool keep_params, Dequantised *o)
{
	x = quant_below_converts(g, x);
	if (step_of(g, x) == SC_sub && is_exact(g, x, keep_params)) {
		Node zero = node_in(g, x, 1);
		TRY(is_integer(g, zero) && (node_dtype(g, x) != DT_i16 ||
					    is_byte(node_dtype(g, quant_below_converts(g, zero)))));
		if (!is_zero(g, zero, keep_params))
			o->zero = zero;
		x = quant_below_converts(g, node_in(g, x, 0));
	}
	o->q = x;
	return is_byte(node_dtype(g, x));
}

/* Returns the node below index maps and pads with zeros, which are added to o->move. */
static Node below_moves(const Graph *g, Node x, Dequantised *o)
{
	while (is_move(g, x) && o->nmove < QUANT_MOST_MOVES) {
		o->move[o->nmove++] = x;
		x = node_in(g, x, 0);
	}
	return x;
}

bool quant_read_integers(const Graph *g, Node x, bool keep_params, Dequantised *o)
{
	const bool is_sum = node_dtype(g, x) == DT_i32;
	*o = (Dequantised){0};
	x = below_moves(g, x, o);
	return is_sum && read_steps(g, x, keep_params, o);
}

bool quant_read_bytes(const Graph *g, Node x, Dequantised *o)
{
	*o = (Dequantised){0};
	x = below_moves(g, x, o);
	o->q = quant_below_converts(g, x);
	return o->q.i != x.i && is_byte(node_dtype(g, o->q));
}

/* Reads the steps of a dequantisation. Its scale may be f64, in which the number is then computed
 * before it becomes f32. */
static bool read_scaled(const Graph *g, Node x, bool keep_params, Dequantised *o)
{
	if (step_of(g, x) == SC_convert && node_dtype(g, node_in(g, x, 0)) == DT_f64)
		x = node_in(g, x, 0);
	TRY(step_of(g, x) == SC_mul && (node_dtype(g, x) == DT_f32 || node_dtype(g, x) == DT_f64));
	for (uint32_t k = 0; k < 2; k++) {
		o->zero = (Node){0};
		o->scale = node_in(g, x, !k);
		if (read_steps(g, node_in(g, x, k), keep_params, o))
			return true;
	}
	return false;
}

bool quant_read_dequantised(const Graph *g, Node x, bool keep_params, Dequantised *o)
{
	*o = (Dequantised){0};
	x = below_moves(g, x, o);
	return read_scaled(g, x, keep_params, o);
}

bool quant_read_offset(const Graph *g, Node x, bool keep_params, Dequantised *o)
{
	*o = (Dequantised){0};
	x = below_moves(g, x, o);
	const ScOp op = step_of(g, x);
	TRY((op == SC_add || op == SC_sub) && node_dtype(g, x) == DT_f32);
	for (uint32_t k = 0; k < o->nmove; k++)
		TRY(!is_pad(g, o->move[k])); /* zeros, without the offset */
	const uint32_t outer = o->outer = o->nmove;
	o->adds = op == SC_add;
	for (uint32_t k = 0; k < (o->adds ? 2 : 1); k++) {
		o->nmove = outer;
		o->offset = node_in(g, x, !k);
		if (read_scaled(g, below_moves(g, node_in(g, x, k), o), keep_params, o))
			return true;
	}
	return false;
}

/* ---- what a quantised value is ---- */

/* Sets *v to the number that all elements of x are. Returns false if it is not known. */
static bool known(const Graph *g, Node x, bool keep_params, double *v)
{
	Attr a;
	while (!node_splat(g, x, NULL) &&
	       (step_of(g, x) == SC_convert || op_info(node_op(g, x))->moves))
		x = node_in(g, x, 0);
	if (node_splat(g, x, &a)) {
		int64_t n;
		const bool whole = a.kind == ATTR_int && sym_is_const(graph_syms(g), a.s, &n);
		*v = a.kind == ATTR_float ? a.f : whole ? (double)n : 0;
		return a.kind == ATTR_float || whole;
	}
	double by;
	if (step_of(g, x) == SC_div && known(g, node_in(g, x, 0), keep_params, v) &&
	    known(g, node_in(g, x, 1), keep_params, &by)) {
		*v /= by; /* a reciprocal */
		return true;
	}
	const ConstId id = node_const(g, x);
	if (!id.i || (keep_params && const_is_replaceable(g->ir, id)))
		return false;
	const Const *c = ir_const_of(g->ir, id);
	if (!c->data || c->bytes != dtype_size(c->dtype))
		return false;
	switch (c->dtype) {
	case DT_u8: *v = *(const uint8_t *)c->data; return true;
	case DT_i8: *v = *(const int8_t *)c->data; return true;
	case DT_i32: *v = *(const int32_t *)c->data; return true;
	case DT_i64: *v = (double)*(const int64_t *)c->data; return true;
	case DT_f32: *v = (double)*(const float *)c->data; return true;
	case DT_f64: *v = *(const double *)c->data; return true;
	default: return false;
	}
}

/* Returns x without maxima and minima with numbers, which become the bounds in q. */
static Node below_clamp(const Graph *g, Node x, bool keep_params, Quantised *q)
{
	double v;
	q->low = -INFINITY;
	q->high = INFINITY;
	while (step_of(g, x) == SC_max || step_of(g, x) == SC_min) {
		const bool is_max = step_of(g, x) == SC_max;
		uint32_t k = 0;
		while (k < 2 && !known(g, node_in(g, x, k), keep_params, &v))
			k++;
		if (k == 2)
			break;
		if (is_max)
			q->low = fmax(q->low, v);
		else
			q->high = fmin(q->high, v);
		x = node_in(g, x, !k);
	}
	return x;
}

bool quant_read(const Graph *g, Node n, bool keep_params, Quantised *q)
{
	*q = (Quantised){0};
	TRY(step_of(g, n) == SC_convert && is_byte(node_dtype(g, n)));
	Node x = below_clamp(g, node_in(g, n, 0), keep_params, q);
	q->whole = q->low <= least_of(node_dtype(g, n)) && q->high >= most_of(node_dtype(g, n));
	for (uint32_t k = 0; step_of(g, x) == SC_add && k < 2; k++) {
		if (step_of(g, node_in(g, x, k)) != SC_rint || !is_integer(g, node_in(g, x, !k)))
			continue;
		q->zero = node_in(g, x, !k);
		x = node_in(g, x, k);
	}
	TRY(step_of(g, x) == SC_rint && node_dtype(g, x) == DT_f32);
	q->ratio = x = node_in(g, x, 0);
	q->divides = step_of(g, x) == SC_div;
	TRY(q->divides || step_of(g, x) == SC_mul);
	q->x = node_in(g, x, 0);
	q->scale = node_in(g, x, 1);
	double v;
	if (!q->divides && known(g, q->x, keep_params, &v)) {
		q->x = q->scale;
		q->scale = node_in(g, x, 0);
	}
	return true;
}

/* ---- padding of quantised inputs ---- */

typedef struct {
	Build *b;
	Node input, move[QUANT_MOST_MOVES]; /* index maps that are applied to the input */
	uint32_t nmove;
	const Sym *low, *high;
	Sym dim[MAX_RANK]; /* of the result */
	uint32_t rank;
} PaddedInput;

static bool is_user_input(const Graph *g, Node x)
{
	for (uint32_t k = 0; k < g->input.n; k++)
		if (g->input.data[k].node.i == x.i)
			return g->input.data[k].kind == INPUT_USER;
	return false;
}

/* Makes the element-wise value n of the padded input. */
static Node again_padded(PaddedInput *p, Node n)
{
	Build *b = p->b;
	Node in[4], one;
	const uint32_t nin = node_nin(b->g, n);
	if (n.i == p->input.i) {
		for (uint32_t k = p->nmove; k-- > 0;)
			n = b_again(b, p->move[k], &n);
		return b_pad(b, n, p->low, p->high, b_full(b, node_dtype(b->g, n), 0, 0, NULL));
	}
	if ((one = quant_one(b, n)).i)
		return b_broadcast(b, one, p->rank, p->dim);
	if ((step_of(b->g, n) != SC_convert && !op_is_scalar(node_op(b->g, n))) ||
	    nin > sizeof in / sizeof *in)
		return (Node){0};
	for (uint32_t k = 0; k < nin; k++)
		if (!(in[k] = again_padded(p, node_in(b->g, n, k))).i)
			return (Node){0};
	return b_again(b, n, in);
}

Node quant_padded_input(Build *b, Node q, const Sym *low, const Sym *high, Node around,
			bool keep_params)
{
	const Graph *g = b->g;
	PaddedInput p = {.b = b, .low = low, .high = high, .rank = node_rank(g, q)};
	Quantised s;
	double pad, zero = 0;
	for (uint32_t d = 0; d < p.rank; d++)
		p.dim[d] =
			sym_add(b_syms(b), node_dim(g, q, d), sym_add(b_syms(b), low[d], high[d]));
	while (op_info(node_op(g, q))->moves && p.nmove < QUANT_MOST_MOVES && node_nin(g, q) == 1) {
		p.move[p.nmove++] = q;
		q = node_in(g, q, 0);
	}
	if (!quant_read(g, q, keep_params, &s) || !s.whole || !is_user_input(g, s.x) ||
	    (s.zero.i && !known(g, s.zero, keep_params, &zero)) ||
	    !known(g, around, keep_params, &pad) || pad != zero)
		return (Node){0};
	p.input = s.x;
	return again_padded(&p, q);
}

/* Returns the node behind converts and copies. */
static Node source(const Graph *g, Node x)
{
	while (!node_splat(g, x, NULL) &&
	       (step_of(g, x) == SC_convert || op_info(node_op(g, x))->moves))
		x = node_in(g, x, 0);
	return x;
}

static bool same_number(const Graph *g, Node x, Node y, bool keep_params)
{
	double a = 0, b = 0;
	const Node from = source(g, x);
	if (from.i == source(g, y).i &&
	    sym_is(graph_syms(g), type_numel(g->ir, node_type_id(g, from)), 1))
		return true;
	return known(g, x, keep_params, &a) && known(g, y, keep_params, &b) && a == b;
}

/* Whether the scale that x was multiplied by is the one that it is divided by: as it is, or as a
 * factor that is its reciprocal. */
static bool same_scale(const Graph *g, const Quantised *q, Node scale, bool keep_params)
{
	double a, b;
	if (q->divides)
		return same_number(g, q->scale, scale, keep_params);
	return known(g, q->scale, keep_params, &a) && known(g, scale, keep_params, &b) &&
	       fabs(a * b - 1) < 1e-5;
}

static bool same_zero(const Graph *g, Node x, Node y, bool keep_params)
{
	if (x.i && y.i)
		return same_number(g, x, y, keep_params);
	return (!x.i || is_zero(g, x, keep_params)) && (!y.i || is_zero(g, y, keep_params));
}

/* ---- moving the parts ---- */

/* Returns the value of which all elements of x are copies, or converts, without dimensions; none
 * if it is not known to be one. */
Node quant_one(Build *b, Node x)
{
	const Graph *g = b->g;
	ARRAY(DType) as = {0};
	while (op_info(node_op(g, x))->moves || step_of(g, x) == SC_convert) {
		if (step_of(g, x) == SC_convert)
			array_push(g->ir->ctx->scratch, &as, node_dtype(g, x));
		x = node_in(g, x, 0);
	}
	Attr v;
	if (node_splat(g, x, &v))
		x = b_full_attr(b, node_dtype(g, x), v, 0, NULL);
	else if (sym_is(b_syms(b), type_numel(g->ir, node_type_id(g, x)), 1))
		x = b_reshape(b, x, 0, NULL);
	else
		return (Node){0};
	while (as.n)
		x = b_convert(b, x, as.data[--as.n]);
	return x;
}

/* Returns the zero point as a number of q's dtype, without dimensions; none if there are
 * several, or if the dtype does not hold it. */
Node quant_number(Build *b, Node zero, DType d)
{
	Attr v;
	int64_t number;
	if (!zero.i)
		return b_full_int(b, d, 0, 0, NULL);
	Node one = quant_one(b, zero);
	for (Node x = one; x.i;
	     x = step_of(b->g, x) == SC_convert && holds_differences(node_dtype(b->g, x))
			 ? node_in(b->g, x, 0)
			 : (Node){0})
		if (node_dtype(b->g, x) == d)
			return x;
	if (!node_splat(b->g, b_convert(b, zero, DT_i32), &v) || v.kind != ATTR_int ||
	    !sym_is_const(b_syms(b), v.s, &number) || number < least_of(d) || number > most_of(d))
		return (Node){0};
	return b_full_int(b, d, number, 0, NULL);
}

/* Does as `move` does, to numbers that stand for its operand's. `around`: what a pad puts around
 * them; none: the caller has a splat, which needs no moves. */
static Node moved(Build *b, Node move, Node x, Node around)
{
	if (!is_pad(b->g, move))
		return b_again(b, move, &x);
	return around.i ? b_again(b, move, (Node[]){x, around}) : (Node){0};
}

/* Returns q where the product reads it. A pad with zeros is one with the zero point, which must
 * be one number. */
Node quant_integers(Build *b, const Dequantised *o)
{
	Node q = o->q;
	DType d = node_dtype(b->g, q);
	for (uint32_t k = o->nmove; q.i && k-- > 0;) {
		Node around = is_pad(b->g, o->move[k]) ? quant_number(b, o->zero, d) : (Node){0};
		q = moved(b, o->move[k], q, around);
	}
	return q;
}

/* ---- pairs ---- */

/* What a quantisation does with a value that was dequantised in the same way before. */
typedef struct {
	const Quantised *q;
	DType dtype;       /* of its result */
	bool keep_params;
	uint32_t left;     /* nodes to look at */
} Again;

static bool is_concat(const Graph *g, Node x)
{
	return op_lower(node_op(g, x))->holds == HOLDS_OPERANDS;
}

static bool is_maximum(const Graph *g, Node x)
{
	return op_lower(node_op(g, x))->role == LOWER_REDUCE && node_dtype(g, x) == DT_f32 &&
	       strcmp(node_str(g, x, "kind"), "max") == 0;
}

static bool is_low_pad(const Graph *g, Node x)
{
	Attr v;
	return is_pad(g, x) && node_splat(g, node_in(g, x, 1), &v) && v.kind == ATTR_float &&
	       v.f == -INFINITY;
}

/* Whether x is an index map of one operand of which every element is one of the operand's, as
 * windows that stay inside. */
static bool stays_inside(const Graph *g, Node x)
{
	SymTab *t = graph_syms(g);
	const OpLower *lower = op_lower(node_op(g, x));
	Sym at[MAX_RANK];
	IndexMap m = {.g = g, .n = x, .at = at};
	if (lower->role != LOWER_INDEX || node_nin(g, x) != 1)
		return false;
	for (uint32_t k = 0; k < node_rank(g, x); k++)
		at[k] = is_one(g, node_dim(g, x, k)) ? sym_int(t, 0)
						     : sym_axis(t, "i", node_dim(g, x, k));
	lower->index(&m);
	for (uint32_t k = 0; k < m.nrange; k++)
		if (sym_le(t, m.range[k].lo, m.range[k].e) != YES ||
		    sym_lt(t, m.range[k].e, m.range[k].hi) != YES)
			return false;
	return true;
}

/* Whether x is made of values that were dequantised with the scale and zero point with which `a`
 * quantises, by operators that give the same elements of integers as of values: moves, a maximum
 * (as of max-pool, whose padding is -inf), a concatenation. */
static bool is_again(const Graph *g, Again *a, Node x)
{
	Dequantised d;
	double scale;
	if (quant_read_dequantised(g, x, a->keep_params, &d))
		return node_dtype(g, d.q) == a->dtype &&
		       same_scale(g, a->q, d.scale, a->keep_params) &&
		       same_zero(g, a->q->zero, d.zero, a->keep_params);
	if (a->left == 0)
		return false;
	a->left--;
	if (is_maximum(g, x) || is_low_pad(g, x))
		return known(g, a->q->scale, a->keep_params, &scale) && scale > 0 &&
		       is_again(g, a, node_in(g, x, 0));
	if (is_move(g, x) || stays_inside(g, x))
		return is_again(g, a, node_in(g, x, 0));
	bool all = is_concat(g, x);
	for (uint32_t k = 0; k < node_nin(g, x) && all; k++)
		all = is_again(g, a, node_in(g, x, k));
	return all;
}

static Node dequantised_before(Build *b, const Again *a, Node x);

static Node again_concat(Build *b, const Again *a, Node x)
{
	const uint32_t n = node_nin(b->g, x);
	Node *in = ARENA_ARRAY(b->g->ir->ctx->scratch, Node, n);
	for (uint32_t k = 0; k < n; k++)
		if (!(in[k] = dequantised_before(b, a, node_in(b->g, x, k))).i)
			return (Node){0};
	return b_again(b, x, in);
}

/* Returns the integers of x, for which is_again holds; none if a pad needs one number as zero
 * point. */
static Node dequantised_before(Build *b, const Again *a, Node x)
{
	Dequantised d;
	if (quant_read_dequantised(b->g, x, a->keep_params, &d))
		return quant_integers(b, &d);
	if (is_concat(b->g, x))
		return again_concat(b, a, x);
	Node q = dequantised_before(b, a, node_in(b->g, x, 0));
	if (!q.i)
		return q;
	if (is_maximum(b->g, x))
		return b_reduce(b, REDUCE_MAX, q, node_dim_bits(b->g, x, "dims"), a->dtype);
	if (is_low_pad(b->g, x))
		return moved(b, x, q, b_full_int(b, a->dtype, least_of(a->dtype), 0, NULL));
	return moved(b, x, q, is_pad(b->g, x) ? quant_number(b, a->q->zero, a->dtype) : (Node){0});
}

bool quant_join(Graph *g, const PassCtx *c)
{
	bool changed = false;
	for (Node n = g->first, next; n.i; n = next) {
		Quantised q;
		next = node_next(g, n);
		if (!node_nuses(g, n) || !quant_read(g, n, c->keep_params, &q) || !q.whole)
			continue;
		Again a = {&q, node_dtype(g, n), c->keep_params, QUANT_MOST_MOVES};
		if (!is_again(g, &a, q.x))
			continue;
		Build b = pass_build(g, n);
		Node new = dequantised_before(&b, &a, q.x);
		if (new.i)
			pass_replace(g, n, new);
		changed |= new.i != 0;
	}
	return changed;
}

void quant_reciprocals(Graph *g, const PassCtx *c)
{
	for (Node n = g->first, next; n.i; n = next) {
		Quantised q;
		next = node_next(g, n);
		if (!node_nuses(g, n) || !quant_read(g, n, c->keep_params, &q) || !q.divides)
			continue;
		Build b = pass_build(g, q.ratio);
		const Node one = quant_one(&b, q.scale);
		if (!one.i)
			continue;
		Node inverse = b_bin(&b, OP_div, b_scalar(&b, node_dtype(g, one), 1), one);
		inverse =
			b_broadcast(&b, inverse, node_rank(g, q.ratio), node_type(g, q.ratio)->dim);
		pass_replace(g, q.ratio, b_bin(&b, OP_mul, q.x, inverse));
	}
}

/* Writes the zero point of a dequantisation as a number, so that kernels see where the one of a
 * quantisation is subtracted again. Returns false if n is none. */
static bool number_of_zero(Graph *g, const PassCtx *c, Node n)
{
	double zero;
	if (step_of(g, n) != SC_sub || !holds_differences(node_dtype(g, n)) ||
	    !is_byte(node_dtype(g, quant_below_converts(g, node_in(g, n, 0)))) ||
	    node_splat(g, node_in(g, n, 1), NULL) ||
	    !known(g, node_in(g, n, 1), c->keep_params, &zero))
		return false;
	Build b = pass_build(g, n);
	pass_replace(g, n, b_bin_scalar(&b, OP_sub, node_in(g, n, 0), zero));
	return true;
}

/* Returns the quotient or product of q, without a maximum with 0, which does nothing where the
 * clamp's lower bound is 0 or more. */
static Node without_relu(Build *b, const Quantised *q, double low, bool keep_params)
{
	const Graph *g = b->g;
	double scale;
	if (step_of(g, q->x) != SC_max || low < 0 || !known(g, q->scale, keep_params, &scale) ||
	    scale <= 0)
		return q->ratio;
	for (uint32_t k = 0; k < 2; k++)
		if (is_splat(g, node_in(g, q->x, k), 0))
			return b_bin(b, q->divides ? OP_div : OP_mul, node_in(g, q->x, !k),
				     q->scale);
	return q->ratio;
}

void quant_round_once(Graph *g, const PassCtx *c)
{
	for (Node n = g->first, next; n.i; n = next) {
		Quantised q;
		double zero = 0;
		next = node_next(g, n);
		if (!node_nuses(g, n) || number_of_zero(g, c, n) ||
		    !quant_read(g, n, c->keep_params, &q) ||
		    (q.zero.i && !known(g, q.zero, c->keep_params, &zero)))
			continue;
		const DType d = node_dtype(g, n);
		if (zero != rint(zero) || zero < least_of(d) || zero > most_of(d) ||
		    q.low < least_of(d) || q.high > most_of(d) || q.low != rint(q.low) ||
		    q.high != rint(q.high) || q.low > q.high)
			continue;
		Build b = pass_build(g, n);
		const Type t = *node_type(g, n);
		Node low = b_full_attr(&b, DT_f32, attr_float(q.low - zero), t.n, t.dim),
		     high = b_full_attr(&b, DT_f32, attr_float(q.high - zero), t.n, t.dim);
		Node i = b_node(
			&b, OP_nearest,
			(Node[]){without_relu(&b, &q, q.low - zero, c->keep_params), low, high}, 3,
			NULL, 0);
		Node byte = b_convert(&b, zero == 0 ? i : b_bin_scalar(&b, OP_add, i, zero), d);
		pass_replace(g, n, byte);
	}
}

/* ---- what is stored ---- */

/* Whether x is computed of constants, in so many steps at most. */
static bool is_of_constants(const Graph *g, Node x, uint32_t steps)
{
	const LowerRole role = op_lower(node_op(g, x))->role;
	if (node_const(g, x).i || role == LOWER_LEAF)
		return true;
	if (!steps || (role != LOWER_MAP && role != LOWER_INDEX))
		return false;
	for (uint32_t k = 0; k < node_nin(g, x); k++)
		TRY(is_of_constants(g, node_in(g, x, k), steps - 1));
	return true;
}

bool quant_is_of_constants(const Graph *g, Node x)
{
	enum { MOST_STEPS = 12 };
	return is_of_constants(g, x, MOST_STEPS);
}

/* Returns the value of which x is copies and converts, element by element. */
static Node below_copies(const Graph *g, Node x)
{
	x = quant_below_converts(g, x);
	while (op_info(node_op(g, x))->moves)
		x = quant_below_converts(g, node_in(g, x, 0));
	return x;
}

Node quant_product(const Graph *g, Node x)
{
	while (op_info(node_op(g, x))->moves)
		x = node_in(g, x, 0);
	if (step_of(g, x) != SC_mul || node_dtype(g, x) != DT_f32)
		return (Node){0};
	for (uint32_t k = 0; k < 2; k++)
		if (!node_const(g, below_copies(g, node_in(g, x, k))).i)
			return (Node){0};
	return x;
}

/* Whether every value of one dtype is one of the other. */
static bool holds_values(DType to, DType of)
{
	const uint32_t size = (uint32_t)dtype_size(of), room = (uint32_t)dtype_size(to);
	if (dtype_is_float(of))
		return dtype_is_float(to) && room > size;
	if (dtype_is_float(to))
		return (to == DT_f32 || to == DT_f64) && 2 * size <= room;
	return dtype_is_int(to) && room > size;
}

Node quant_as_stored(Build *b, Node v)
{
	while (step_of(b->g, v) == SC_convert &&
	       holds_values(node_dtype(b->g, v), node_dtype(b->g, node_in(b->g, v, 0))))
		v = node_in(b->g, v, 0);
	if (!op_info(node_op(b->g, v))->moves || node_nin(b->g, v) != 1)
		return v;
	const Node from = node_in(b->g, v, 0), x = quant_as_stored(b, from);
	return x.i == from.i ? v : b_again(b, v, &x);
}

bool quant_fold_stored(PassCtx *c, Graph *g, Node x)
{
	if (!x.i || quant_product(g, x).i)
		return false;
	x = below_copies(g, x);
	return x.i && !node_const(g, x).i && !node_splat(g, x, NULL) &&
	       quant_is_of_constants(g, x) && fold_node(g, c, x).i != x.i;
}

bool quant_values(const Graph *g, Node q, bool keep_params, int64_t *least, int64_t *most)
{
	while (op_info(node_op(g, q))->moves)
		q = node_in(g, q, 0);
	const ConstId id = node_const(g, q);
	if (!id.i || (keep_params && const_is_replaceable(g->ir, id)))
		return false;
	const Const *c = ir_const_of(g->ir, id);
	const Tensor t = {.dtype = c->dtype, .rank = 0, .data = (void *)(uintptr_t)c->data};
	const uint64_t size = dtype_size(c->dtype);
	const unsigned char *data = c->data;
	if (!data || !c->bytes || !dtype_is_int(c->dtype))
		return false;
	*least = INT64_MAX;
	*most = INT64_MIN;
	for (uint64_t k = 0; k < c->bytes / size; k++) {
		const int64_t v = size > 1            ? tensor_i64(&t, (int64_t)k)
				  : c->dtype == DT_i8 ? (signed char)data[k]
						      : data[k];
		*least = v < *least ? v : *least;
		*most = v > *most ? v : *most;
	}
	return true;
}
