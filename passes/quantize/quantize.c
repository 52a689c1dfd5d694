/* Products of dequantised numbers become products of the integers that are stored.
 *
 *   contract(mul(sub(convert(%qa), za), sa), mul(sub(convert(%qb), zb), sb))
 * becomes
 *   %1 = contract(%qa, %qb, acc=i32)
 *   %2 = sub(%1, za * sum(%qb))     sum over what the product sums over: a constant, if %qb is one
 *   mul(convert(%2, dtype=f32), sa * sb)
 *
 * (products of i32 likewise, without scales), and likewise minus zb * sum(%qa), plus the count of
 * terms times za * zb. Index maps and pads with zero between a dequantisation and the product are
 * applied to the integers, pads with the zero point. A scale or a zero point may differ along
 * dimensions that are not summed over (a channel of weights, a row of activations); others (groups
 * of a row) stay dequantisations. A product of floats and of constant weights reads these as
 * integers, too:
 *
 *   contract(%x, mul(sub(convert(%q), z), s))
 * becomes
 *   mul(sub(contract(%x, %q), z * sum(%x)), s)
 *
 * or, of groups and of 4 bits, decodes them where it multiplies (blocks.c). The integers
 * have 8 bits, and sums 32: of more than MOST_TERMS terms the product stays one of floats.
 *
 * Once, before constants fold: afterwards weights are f32. What comes behind the product, up to a
 * quantisation, is element-wise, and grouping puts it into the product's kernel. */
#include "passes/quantize/quantize.h"

#include <string.h>

#include "ir/target/target.h"
#include "ops/rules/rules.h"
#include "passes/common/questions.h"
#include "passes/quantize/priv.h"

enum {
	MOST_TERMS = 32768, /* 32768 * 255 * 255 < 2^31 */
	HALF_U8 = 128,      /* u8 less that are i8 */
	GROUP = 4,          /* terms that one instruction multiplies in a lane */
	LEAST_RUN = 8       /* terms beside each other that instructions on bytes pay for: two
			       groups */
};

/* ---- moving the parts ---- */

/* Returns a node in the shape of x whose elements are all those of v; none if v is no splat. */
static Node filled(Build *b, Node v, Node x)
{
	Attr a;
	const Type t = *node_type(b->g, x);
	return node_splat(b->g, v, &a) ? b_full_attr(b, node_dtype(b->g, v), a, t.n, t.dim)
				       : (Node){0};
}

Node quant_moved_along(Build *b, const Dequantised *o, uint32_t n, Node v, Node like)
{
	if (node_splat(b->g, v, NULL))
		return filled(b, v, like);
	for (uint32_t k = n; v.i && k-- > 0;)
		/* a pad has two operands */
		v = node_nin(b->g, o->move[k]) == 1 ? b_again(b, o->move[k], &v) : (Node){0};
	return v;
}

/* ---- along which dimensions a value differs ---- */

/* Returns the one operand of x that is no splat, or none. */
static Node varying(const Graph *g, Node x)
{
	Node only = {0};
	for (uint32_t k = 0; k < node_nin(g, x); k++) {
		const Node in = node_in(g, x, k);
		if (node_splat(g, in, NULL))
			continue;
		if (only.i)
			return (Node){0};
		only = in;
	}
	return only;
}

/* Returns the node from which x has its elements, by index maps and functions of one operand and
 * numbers; at[] becomes the index there. */
static Node origin(const Graph *g, Node x, Sym *at)
{
	for (;;) {
		const OpLower *lower = op_lower(node_op(g, x));
		const Node from = lower->role == LOWER_MAP ? varying(g, x)
				  : lower->role == LOWER_INDEX && node_nin(g, x) == 1
					  ? node_in(g, x, 0)
					  : (Node){0};
		if (node_splat(g, x, NULL) || !from.i)
			return x;
		if (lower->role == LOWER_INDEX) {
			IndexMap m = {.g = g, .n = x, .at = at};
			lower->index(&m);
			memcpy(at, m.in[0], sizeof m.in[0]);
		}
		x = from;
	}
}

/* Returns a bit for each dimension along which elements of x may differ. */
uint32_t quant_differs(const Graph *g, Node x)
{
	SymTab *t = graph_syms(g);
	const uint32_t rank = node_rank(g, x);
	Sym axis[MAX_RANK] = {{0}}, at[MAX_RANK];
	uint32_t mask = 0;
	for (uint32_t k = 0; k < rank; k++)
		at[k] = axis[k] = is_one(g, node_dim(g, x, k))
					  ? sym_int(t, 0)
					  : sym_axis(t, "i", node_dim(g, x, k));
	const Node from = origin(g, x, at);
	for (uint32_t d = 0; !node_splat(g, from, NULL) && d < node_rank(g, from); d++)
		for (uint32_t k = 0; k < rank; k++)
			if (!is_one(g, node_dim(g, x, k)) && sym_uses(t, at[d], axis[k]))
				mask |= 1u << k;
	return mask;
}

/* ---- what a product sums over, and where the rest goes ---- */

static bool has_windows(Op op)
{
	return op_arg_index(op, "dilation_in") >= 0;
}

static uint32_t bits_of(const Graph *g, Node n, const char *name, int *to, uint32_t first)
{
	uint32_t count, mask = 0;
	const Sym *list = node_ints(g, n, name, &count);
	for (uint32_t k = 0; k < count; k++) {
		const int64_t d = sym_const(graph_syms(g), list[k]);
		mask |= 1u << d;
		if (to)
			to[d] = (int)(first + k);
	}
	return mask;
}

static void read_contract(const Graph *g, Node n, Product *p)
{
	uint32_t at = 0;
	node_ints(g, n, "batch_x", &at);
	for (uint32_t side = 0; side < 2; side++) {
		uint32_t batch = bits_of(g, n, side ? "batch_y" : "batch_x", p->to[side], 0);
		p->sum[side] = bits_of(g, n, side ? "sum_y" : "sum_x", NULL, 0);
		for (uint32_t d = 0; d < node_rank(g, node_in(g, n, side)); d++)
			if (!((batch | p->sum[side]) >> d & 1))
				p->to[side][d] = (int)at++;
	}
}

/* Reads a convolution of x[N, G, C, ...] and w[G, O, C, ...]: every result reads all positions
 * of x and its own of w. */
static void read_conv(const Graph *g, Node n, Product *p)
{
	p->sum[0] = p->sum[1] = ((1u << node_rank(g, n)) - 1) & ~3u;
	p->to[0][0] = 0;
	p->to[0][1] = p->to[1][0] = 1;
	p->to[1][1] = 2;
}

/* Whether n is a contraction or a convolution. */
static bool is_product(const Graph *g, Node n)
{
	const Op op = node_op(g, n);
	return op_lower(op)->role == LOWER_ANCHOR &&
	       (has_windows(op) || op_arg_index(op, "sum_x") >= 0);
}

static bool read_product(const Graph *g, Node n, Product *p)
{
	SymTab *t = graph_syms(g);
	Node w = node_in(g, n, 1);
	*p = (Product){.terms = sym_int(t, 1)};
	memset(p->to, -1, sizeof p->to);
	if (has_windows(node_op(g, n)))
		read_conv(g, n, p);
	else
		read_contract(g, n, p);
	for (uint32_t d = 0; d < node_rank(g, w); d++)
		if (p->sum[1] >> d & 1)
			p->terms = sym_mul(t, p->terms, node_dim(g, w, d));
	return sym_le(t, sym_int(t, 1), p->terms) == YES &&
	       sym_le(t, p->terms, sym_int(t, MOST_TERMS)) == YES;
}

/* Puts v, with the dimensions of an operand that are not summed over, into the result's shape. */
static Node spread(Build *b, const Product *p, uint32_t side, Node v, Node n)
{
	const Type t = *node_type(b->g, n);
	uint32_t perm[MAX_RANK], map[MAX_RANK], rank = 0, at = 0;
	for (uint32_t r = 0; r < t.n; r++) {
		at = 0;
		for (uint32_t d = 0; d < MAX_RANK; d++) {
			if (p->to[side][d] == (int)r) {
				perm[rank] = at;
				map[rank++] = r;
			}
			at += p->to[side][d] >= 0;
		}
	}
	v = b_permute(b, v, perm);
	return v.i ? b_broadcast_in_dim(b, v, t.n, t.dim, map) : v;
}

/* Returns an operand's scale or zero point in the result's shape; none if it differs along what
 * is summed over. */
static Node factor(Build *b, const Product *p, uint32_t side, const Dequantised *o, Node v, Node n)
{
	const Node like = node_in(b->g, n, side), one = quant_one(b, v);
	if (one.i)
		return b_broadcast(b, one, node_rank(b->g, n), node_type(b->g, n)->dim);
	v = quant_moved_along(b, o, o->nmove, v, like);
	if (!v.i || node_splat(b->g, v, NULL))
		return v.i ? filled(b, v, n) : v;
	if (quant_differs(b->g, v) & p->sum[side])
		return (Node){0};
	for (uint32_t d = node_rank(b->g, like); d-- > 0;)
		if (p->sum[side] >> d & 1)
			v = b_select_dim(b, v, (int)d, b_int(b, 0));
	return spread(b, p, side, v, n);
}

static Node sum_of(Build *b, const Product *p, uint32_t side, Node q, DType acc, Node n)
{
	return spread(b, p, side, b_reduce(b, REDUCE_SUM, b_convert(b, q, acc), p->sum[side], acc),
		      n);
}

/* ---- the product ---- */

/* Whether there are no zeros between elements of a convolution's operand. */
static bool has_no_gaps(const Graph *g, Node n)
{
	uint32_t count;
	const Sym *gap = node_ints(g, n, "dilation_in", &count);
	for (uint32_t k = 0; k < count; k++)
		if (!is_one(g, gap[k]))
			return false;
	return true;
}

/* Returns how many channels are added, with zeros as weights, where there are too few for a
 * group. */
static uint32_t more_channels(const Graph *g, Node n)
{
	int64_t c;
	const bool few = has_windows(node_op(g, n)) &&
			 sym_is_const(graph_syms(g), node_dim(g, node_in(g, n, 1), 2), &c) &&
			 c > 1 && c < LEAST_RUN;
	return few ? (uint32_t)(-c & (GROUP - 1)) : 0;
}

/* Returns operand q of a convolution with its padding, which is the zero point, as a node of its
 * own. */
static Node padded(Build *b, Node n, Node q, Node zero, bool keep_params)
{
	uint32_t nsp, rank = node_rank(b->g, q);
	const Node w = node_in(b->g, n, 1);
	const Sym *pad = node_ints(b->g, n, "pad", &nsp),
		  *stride = node_ints(b->g, n, "stride", &nsp);
	const Sym *dilation = node_ints(b->g, n, "dilation", &nsp);
	SymTab *t = b_syms(b);
	Sym low[MAX_RANK], high[MAX_RANK];
	const Node around = quant_number(b, zero, node_dtype(b->g, q));
	for (uint32_t k = 0; k < rank; k++)
		low[k] = high[k] = b_int(b, 0);
	high[2] = b_int(b, more_channels(b->g, n));
	for (uint32_t k = 0; k < nsp; k++) {
		/* the last result reads up to here */
		Sym reach = sym_add(
			t, sym_mul(t, sym_addi(t, node_dim(b->g, n, 3 + k), -1), stride[k]),
			sym_addi(t,
				 sym_mul(t, sym_addi(t, node_dim(b->g, w, 3 + k), -1), dilation[k]),
				 1));
		low[3 + k] = pad[k];
		high[3 + k] = sym_sub(t, reach, sym_add(t, pad[k], node_dim(b->g, q, 3 + k)));
	}
	if (!around.i)
		return around;
	const Node input = quant_padded_input(b, q, low, high, around, keep_params);
	return input.i ? input : b_pad(b, q, low, high, around);
}

static Node integer_node(Build *b, Node n, const Node *q, Attr *attr, uint32_t narg)
{
	attr[op_arg_index(node_op(b->g, n), "acc")] = attr_dtype(DT_i32);
	attr[op_arg_index(node_op(b->g, n), "out")] = attr_none();
	return b_node(b, node_op(b->g, n), q, 2, attr, narg);
}

/* Returns the sum of products of integers, i32. */
static Node integer_product(Build *b, Node n, Node *q, Node zero, bool keep_params)
{
	const Op op = node_op(b->g, n);
	Attr attr[MAX_ARGS];
	const uint32_t narg = node_copy_attrs(b->g, n, attr);
	const uint32_t more = more_channels(b->g, n);
	if (more) {
		Sym low[MAX_RANK], high[MAX_RANK];
		for (uint32_t k = 0; k < node_rank(b->g, q[1]); k++)
			low[k] = high[k] = b_int(b, 0);
		high[2] = b_int(b, more);
		q[1] = b_pad(b, q[1], low, high, b_full_int(b, node_dtype(b->g, q[1]), 0, 0, NULL));
	}
	if (has_windows(op) && (zero.i || more)) {
		uint32_t nsp;
		Sym none[MAX_RANK];
		node_ints(b->g, n, "pad", &nsp);
		for (uint32_t k = 0; k < nsp; k++)
			none[k] = b_int(b, 0);
		if (!(q[0] = padded(b, n, q[0], zero, keep_params)).i)
			return (Node){0};
		attr[op_arg_index(op, "pad")] = attr_ints(none, nsp);
		return integer_node(b, n, q, attr, narg);
	}
	return integer_node(b, n, q, attr, narg);
}

/* Subtracts the zero of one side times the sum of the other. */
static Node without_zero(Build *b, const Product *p, uint32_t side, Node y, Node zero, Node other,
			 Node n)
{
	return b_bin(b, OP_sub, y,
		     b_bin(b, OP_mul, zero, sum_of(b, p, !side, other, node_dtype(b->g, zero), n)));
}

/* Whether n is a convolution each of whose channels has its own weights and one result: what is
 * read and stored decides, and bytes are a quarter. */
static bool is_depthwise(const Graph *g, Node n)
{
	if (!has_windows(node_op(g, n)))
		return false;
	const Node w = node_in(g, n, 1);
	return is_one(g, node_dim(g, w, 1)) && is_one(g, node_dim(g, w, 2)) &&
	       !is_one(g, node_dim(g, w, 0));
}

/* Whether integers are multiplied faster than floats. Terms that lie beside each other are those of
 * the channels of a convolution. */
static bool pays(const Graph *g, Node n, const PassCtx *c, const Product *p, DType a, DType b)
{
	const Sym run = has_windows(node_op(g, n))
				? sym_addi(graph_syms(g), node_dim(g, node_in(g, n, 1), 2),
					   more_channels(g, n))
				: p->terms;
	return c->integers ||
	       (target_multiplies_bytes(c->target, a, b) &&
		(is_depthwise(g, n) ||
		 sym_le(graph_syms(g),
			sym_int(graph_syms(g), more_channels(g, n) ? GROUP : LEAST_RUN),
			run) == YES));
}

/* Makes the integers i8, `less` lower, and the zero point, too, which is none if it becomes 0. */
static void lower_integers(Build *b, Dequantised *o, int64_t less)
{
	const Node q = o->q;
	const Type *t = node_type(b->g, q);
	Node zero = o->zero.i ? b_convert(b, o->zero, DT_i32) : b_full_int(b, DT_i32, 0, 0, NULL),
	     one = quant_one(b, zero);
	Attr v;
	int64_t number;
	const bool known =
		b_splat(b, one, &v) && v.kind == ATTR_int && sym_is_const(b_syms(b), v.s, &number);
	if (known)
		one = b_full_int(b, DT_i32, number - less, 0, NULL);
	zero = b_splat(b, one, NULL) ? one
				     : b_bin_scalar(b, OP_sub, one.i ? one : zero, (double)less);
	zero = one.i ? b_broadcast(b, zero, t->n, t->dim) : zero;
	o->zero = known && number == less ? (Node){0} : zero;
	o->q = b_convert(b, b_bin_scalar(b, OP_sub, b_convert(b, q, DT_i32), (double)less), DT_i8);
}

/* Records why a product stays one of floats. */
static Node stays(const char **why, const char *text)
{
	*why = text;
	return (Node){0};
}

/* Returns the product n as one of integers; none: *why says why not, and is NULL if no operand
 * is dequantised. */
static Node integers_of(Build *b, Node n, const PassCtx *c, const char **why)
{
	Graph *g = b->g;
	Dequantised o[2];
	Product p;
	Node q[2], plain[2], scale[2], zero[2] = {{0}};
	const bool exact = node_dtype(g, n) == DT_i32; /* of integers, as MatMulInteger */
	bool (*const read)(const Graph *, Node, bool, Dequantised *) =
		exact ? quant_read_integers : quant_read_dequantised;
	const bool is0 = read(g, node_in(g, n, 0), c->keep_params, &o[0]),
		   is1 = read(g, node_in(g, n, 1), c->keep_params, &o[1]);
	*why = NULL;
	if (exact ? !is0 || !is1 : !is0 && !is1)
		return (Node){0};
	if (!exact && (!is0 || !is1 || node_dtype(g, n) != DT_f32))
		return stays(why, !is0   ? "operand 0 is not dequantised"
				  : !is1 ? "operand 1 is not dequantised"
					 : "its result is not f32");
	if (!read_product(g, n, &p))
		return stays(why, "it may sum more than 32768 terms, or none");
	if (node_dtype(g, o[1].q) == DT_u8)
		lower_integers(b, &o[1], HALF_U8); /* no target multiplies two u8 */
	if (!pays(g, n, c, &p, node_dtype(g, o[0].q), node_dtype(g, o[1].q)))
		return stays(why, "the target does not multiply such bytes faster");
	if (has_windows(node_op(g, n)) && o[1].zero.i)
		return stays(why, "weights of a convolution with a zero point");
	if (has_windows(node_op(g, n)) && !has_no_gaps(g, n))
		return stays(why, "a transposed convolution");
	for (uint32_t side = 0; side < 2; side++) {
		if (o[side].zero.i)
			o[side].zero = b_convert(b, o[side].zero, DT_i32);
		plain[side] = q[side] = quant_integers(b, &o[side]);
		scale[side] = exact ? (Node){0}
				    : factor(b, &p, side, &o[side],
					     b_convert(b, o[side].scale, DT_f32), n);
		if (o[side].zero.i)
			zero[side] = factor(b, &p, side, &o[side], o[side].zero, n);
		if (!q[side].i)
			return stays(why, "a pad needs one zero point that is a number");
		if ((!exact && !scale[side].i) || (o[side].zero.i && !zero[side].i))
			return stays(why,
				     "a scale or a zero point differs along what is summed over");
	}
	Node y = integer_product(b, n, q, o[0].zero, c->keep_params);
	for (uint32_t side = 0; side < 2; side++)
		if (y.i && zero[side].i)
			y = without_zero(b, &p, side, y, zero[side], plain[!side], n);
	if (y.i && zero[0].i && zero[1].i) {
		Node both = b_bin(b, OP_mul, zero[0], zero[1]),
		     count = b_convert(b, b_from_size(b, p.terms), DT_i32);
		y = b_bin(b, OP_add, y,
			  b_bin(b, OP_mul, both,
				b_broadcast(b, count, node_rank(g, n), node_type(g, n)->dim)));
	}
	if (!y.i)
		return stays(why, "the padding needs one zero point that is a number");
	return exact ? y
		     : b_bin(b, OP_mul, b_convert(b, y, DT_f32),
			     b_bin(b, OP_mul, scale[0], scale[1]));
}

/* ---- products of floats and stored integers ---- */

/* Whether x is a constant, or one in another order. */
static bool is_stored(const Graph *g, Node x)
{
	while (op_info(node_op(g, x))->moves)
		x = node_in(g, x, 0);
	return node_const(g, x).i;
}

/* Reads n as a product in f32 whose operand `side` is constant weights that are dequantised. Sets
 * *folded where nodes were replaced by constants. */
static bool read_weights(Graph *g, Node n, uint32_t side, PassCtx *c, WeightProduct *r,
			 bool *folded)
{
	*r = (WeightProduct){
		.n = n, .x = node_in(g, n, !side), .w = node_in(g, n, side), .side = side};
	TRY(!has_windows(node_op(g, n)) && node_dtype(g, n) == DT_f32 && !c->target->isa.of_block);
	TRY(quant_read_dequantised(g, r->w, c->keep_params, &r->weights) ||
	    quant_read_offset(g, r->w, c->keep_params, &r->weights) ||
	    quant_read_bytes(g, r->w, &r->weights));
	/* integers that the model takes out of bytes: words have them again */
	if (quant_fold_stored(c, g, r->weights.q) || quant_fold_stored(c, g, r->weights.scale) ||
	    quant_fold_stored(c, g, r->weights.zero) ||
	    quant_fold_stored(c, g, r->weights.offset)) {
		*folded = true;
		return read_weights(g, n, side, c, r, folded);
	}
	TRY(is_stored(g, r->weights.q));
	read_product(g, n, &r->p);
	return true;
}

uint32_t quant_batches(const Graph *g, Node n)
{
	uint32_t nbatch;
	node_ints(g, n, "batch_x", &nbatch);
	return nbatch;
}

/* Returns how many neighbours along w's summed dimension have one value of v, which has w's
 * shape: at least so many; none if it is not known. */
Sym quant_group_of(Build *b, Node v, uint32_t summed)
{
	const Graph *g = b->g;
	SymTab *t = b_syms(b);
	Sym axis[MAX_RANK], at[MAX_RANK];
	uint32_t dim = 0;
	int64_t terms, groups = 1;
	while (!(summed >> dim & 1))
		dim++;
	if (!v.i || summed >> dim != 1)
		return (Sym){0};
	if (!sym_is_const(t, node_dim(g, v, dim), &terms))
		return (Sym){0};
	/* how many values there are along it, if they stand in order */
	for (uint32_t k = 0; k < node_rank(g, v); k++)
		axis[k] = sym_axis(t, "i", node_dim(g, v, k));
	Sym first[MAX_RANK] = {{0}}, last[MAX_RANK] = {{0}};
	for (uint32_t k = 0; k < node_rank(g, v); k++)
		first[k] = last[k] = sym_int(t, 0);
	last[dim] = sym_int(t, terms - 1);
	origin(g, v, first);
	Node from = origin(g, v, last);
	for (uint32_t d = 0; !node_splat(g, from, NULL) && d < node_rank(g, from); d++) {
		int64_t a, z;
		if (!sym_is_const(t, first[d], &a) || !sym_is_const(t, last[d], &z) || z < a)
			return (Sym){0};
		groups *= z - a + 1;
	}
	if (terms % groups)
		return (Sym){0};
	/* the proof: no index depends on the place in a group */
	const Sym group = sym_int(t, terms / groups), place = sym_axis(t, "g", group);
	for (uint32_t k = 0; k < node_rank(g, v); k++)
		at[k] = axis[k];
	at[dim] = sym_add(t, sym_mul(t, sym_axis(t, "a", sym_int(t, groups)), group), place);
	from = origin(g, v, at);
	for (uint32_t d = 0; !node_splat(g, from, NULL) && d < node_rank(g, from); d++)
		if (sym_uses(t, at[d], place))
			return (Sym){0};
	return group;
}

/* Returns what integers with a zero point are lowered by: the zero point times the sum of x is
 * subtracted from their sum, and of numbers around 0, as the zero point then is, the two cancel
 * each other least. */
static int64_t middle_of(const Graph *g, const Dequantised *d, bool keep_params)
{
	int64_t least, most;
	if (quant_values(g, d->q, keep_params, &least, &most))
		return (least + most + 1) >> 1;
	return node_dtype(g, d->q) == DT_u8 ? HALF_U8 : 0;
}

/* Returns the product of weights with a scale and a zero point for each column. */
static Node product_of_columns(Build *b, PassCtx *c, WeightProduct *r)
{
	Dequantised *d = &r->weights;
	const int64_t middle = d->zero.i ? middle_of(b->g, d, c->keep_params) : 0;
	if (middle)
		lower_integers(b, d, middle);
	const Node scale =
		d->scale.i ? factor(b, &r->p, r->side, d, b_convert(b, d->scale, DT_f32), r->n)
			   : (Node){0};
	const Node zero =
		d->zero.i ? factor(b, &r->p, r->side, d, b_convert(b, d->zero, DT_f32), r->n)
			  : (Node){0};
	Node in[2] = {node_in(b->g, r->n, 0), node_in(b->g, r->n, 1)};
	in[r->side] = quant_integers(b, d);
	if ((d->scale.i && !scale.i) || (d->zero.i && !zero.i) || !in[r->side].i)
		return (Node){0};
	Node y = b_again(b, r->n, in);
	if (zero.i)
		y = without_zero(b, &r->p, r->side, y, zero, r->x, r->n);
	return scale.i ? b_bin(b, OP_mul, y, scale) : y;
}

/* Whether the model says that x may be rounded, or what is multiplied by weights x. */
static bool says_roundable(const Graph *g, Node x)
{
	while (!node_rounds(g, x)) {
		if (!op_info(node_op(g, x))->moves)
			return false;
		x = node_in(g, x, 0);
	}
	return true;
}

/* Whether the operand of a product may be rounded to 8 bits: where the graph or, unless that is to
 * be exact, the model says so. */
static bool is_roundable(const Graph *g, const WeightProduct *r)
{
	if (g->activations != DT_none)
		return g->activations == DT_i8;
	return says_roundable(g, r->x) || says_roundable(g, r->w);
}

/* Removes the nodes that only say that their operand may be rounded. Returns whether there were
 * any. */
static bool drop_roundable(Graph *g)
{
	bool changed = false;
	for (Node n = g->first, next; n.i; n = next) {
		next = node_next(g, n);
		if (!op_info(node_op(g, n))->moves || !node_rounds(g, n))
			continue;
		pass_replace(g, n, node_in(g, n, 0));
		changed = true;
	}
	return changed;
}

/* Returns the product of f32 and constant weights of 8 bits, which the product converts where it
 * reads them; none if n is another. Sets *folded as read_weights does. */
static Node weight_product(Build *b, Node n, PassCtx *c, bool *folded)
{
	WeightProduct r;
	Node y = {0};
	for (uint32_t side = 0; side < 2 && !y.i; side++) {
		if (!read_weights(b->g, n, side, c, &r, folded))
			continue;
		y = is_roundable(b->g, &r) ? quant_block_product(b, c, &r) : y;
		if (y.i || node_dtype(b->g, r.x) != DT_f32 || quant_batches(b->g, n) ||
		    sym_is(b_syms(b), r.p.terms, 0))
			continue;
		y = quant_decoded_product(b, c, &r);
		if (!y.i && !r.weights.offset.i)
			y = product_of_columns(b, c, &r);
	}
	return y;
}

/* Returns the name of the node, or of the next one behind it that has a name. */
static const char *name_near(const Graph *g, Node n)
{
	enum { NEAR = 16 };
	for (uint32_t k = 0; k < NEAR && n.i; k++) {
		if (g->node_name.data[n.i])
			return g->node_name.data[n.i];
		const Use u = node_data(g, n)->first_use;
		n = u.i ? g->use.data[u.i].user : (Node){0};
	}
	return "a product";
}

bool pass_quantize(Graph *g, PassCtx *c)
{
	bool changed = quant_join(g, c), products = false;
	for (Node n = g->first, next; n.i; n = next) {
		next = node_next(g, n);
		Build b = pass_build(g, n);
		const Node rows = node_nuses(g, n) ? quant_rows(&b, n) : (Node){0};
		if (rows.i) {
			pass_replace(g, n, rows);
			changed = true;
			continue;
		}
		if (!is_product(g, n) || !node_nuses(g, n))
			continue;
		CtxMark mark = ctx_mark(g->ir->ctx);
		const char *why;
		Node new = integers_of(&b, n, c, &why);
		ctx_rewind(g->ir->ctx, mark); /* what was tried */
		products |= new.i != 0;
		if (!new.i)
			new = weight_product(&b, n, c, &changed);
		changed |= new.i != 0;
		if (new.i)
			pass_replace(g, n, new);
		else if (why && c->floats)
			text_printf(c->floats, "%s: %s\n", name_near(g, n), why);
	}
	if (products) {
		quant_reciprocals(g, c);
		quant_round_once(g, c);
	}
	changed |= drop_roundable(g);
	if (changed)
		graph_dce(g);
	return pass_subgraphs(g, c, pass_quantize) || changed;
}
