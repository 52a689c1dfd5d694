/* Products of floats and of constant weights of at most 8 bits, where the floats are to be rounded
 * to 8 bits (Graph.activations): a sum over blocks of BLOCK neighbouring terms.
 *
 *   contract(%x, mul(sub(convert(%w), z), s))
 * becomes
 *   t = max |x| of the block / 127   %q = rint(x * (1 / t)) : i8
 *   %1 = contract(%q, %u, acc=i32)   of each block; %u is %w, unsigned where the target wants that
 *   %2 = sub(%1, z * sum(%q))
 *   reduce(mul(convert(%2, dtype=f32), t * s), over the blocks)
 *
 * docs/numerics.md defines the bits. If the maximum is not finite, t is NaN and %q 0; if t were no
 * normal number, both are 0. 1 / t is at most 127 (1 + 2^-22) / max |x|, so |q| is at most 127, and
 * sums of a block are exact, in f32, too. The reduction's kernel has the products in it
 * (kernel_adds_blocks). */
#include <float.h>
#include <math.h>

#include "ir/target/micro.h"
#include "ir/target/target.h"
#include "passes/quantize.h"
#include "passes/rules.h"

enum {
	BLOCK = 32,      /* terms that are rounded by one scale */
	LEAST_BLOCK = 8, /* groups of fewer weights stay products of floats */
	MOST = 127,
	HALF_MOST = 15,
	HALF_BITS = 4 /* weights of 4 bits are stored two in a byte */
};

/* The product, with blocks. */
typedef struct {
	Build *b;
	PassCtx *c;
	const WeightProduct *r;
	uint32_t dim[2]; /* the summed dimension of each operand */
	int64_t terms, block;
	Sym blocks;
} Blocks;

/* Returns x of operand `side` with the summed dimension last, cut into [blocks, block]; `pad`
 * stands behind the last term, if the block is not whole. */
static Node cut(const Blocks *k, Node x, uint32_t side, Node pad)
{
	Build *b = k->b;
	const uint32_t rank = node_rank(b->g, x);
	const int64_t more = -k->terms & (k->block - 1);
	uint32_t perm[MAX_RANK], n = 0;
	Sym low[MAX_RANK], high[MAX_RANK], dim[MAX_RANK];
	for (uint32_t d = 0; d < rank; d++)
		if (d != k->dim[side])
			perm[n++] = d;
	perm[n] = k->dim[side];
	x = b_permute(b, x, perm);
	for (uint32_t d = 0; d < rank; d++) {
		low[d] = high[d] = b_int(b, 0);
		dim[d] = node_dim(b->g, x, d);
	}
	high[n] = b_int(b, more);
	if (more)
		x = b_pad(b, x, low, high, pad);
	dim[n] = k->blocks;
	dim[rank] = b_int(b, k->block);
	return b_reshape(b, x, rank + 1, dim);
}

/* Returns a scale or zero point of the weights as [blocks, columns...]; of columns alone, if it is
 * the same for all blocks: [columns...]. It is stored like this, once for each group. Returns none
 * if blocks do not divide its groups. */
static Node by_block(const Blocks *k, Node v, DType as, bool *per_block)
{
	Build *b = k->b;
	*per_block = false;
	if (!v.i)
		return v;
	const Node stored = quant_below_converts(b->g, v),
		   like = quant_moved_along(b, &k->r->weights, stored, k->r->w);
	const uint32_t rank = node_rank(b->g, k->r->w), dim = k->dim[k->r->side];
	const uint32_t summed = 1u << dim;
	uint32_t perm[MAX_RANK], map[MAX_RANK], n = 0;
	int64_t size = k->terms;
	if (!like.i)
		return like;
	*per_block = !node_splat(b->g, like, NULL) && quant_differs(b->g, like) & summed;
	if (*per_block) {
		const Sym group = quant_group_of(b, like, summed);
		if (!group.i || !sym_is_const(b_syms(b), group, &size) || size % k->block)
			return (Node){0};
	}
	Node first = b_slice(b, like, (int)dim, b_int(b, 0), b_int(b, k->terms), b_int(b, size));
	if (!*per_block)
		return b_convert(b, b_squeeze(b, first, (int)dim), as);
	perm[n++] = dim;
	for (uint32_t d = 0; d < rank; d++)
		if (d != dim)
			perm[n++] = d;
	first = b_convert(b, fold_node(b->g, k->c, b_permute(b, first, perm)), as);
	Sym apart[MAX_RANK], all[MAX_RANK];
	apart[0] = node_dim(b->g, first, 0);
	apart[1] = b_int(b, size / k->block);
	map[0] = 0;
	all[0] = k->blocks;
	for (uint32_t d = 1; d < rank; d++) {
		apart[d + 1] = all[d] = node_dim(b->g, first, d);
		map[d] = d + 1;
	}
	return b_reshape(b, b_broadcast_in_dim(b, first, rank + 1, apart, map), rank, all);
}

/* Returns v in the shape of the sums of blocks: of the weights [blocks, columns...], or
 * [columns...] if per_block is not set, of x [rows..., blocks]. */
static Node spread(const Blocks *k, Node v, uint32_t side, bool per_block, Node sums)
{
	Build *b = k->b;
	const Type t = *node_type(b->g, sums);
	const uint32_t rank = node_rank(b->g, v),
		       nx = node_rank(b->g, node_in(b->g, k->r->n, 0)) - 1;
	uint32_t perm[MAX_RANK], map[MAX_RANK], n = 0, at = 1 + (side ? nx : 0);
	for (uint32_t d = 0; d < rank; d++)
		perm[d] = d ? d - 1 : rank - 1;
	if (side != k->r->side)
		v = b_permute(b, v, perm);
	if (per_block)
		map[n++] = 0;
	while (n < rank)
		map[n++] = at++;
	return b_broadcast_in_dim(b, v, t.n, t.dim, map);
}

/* What x is rounded to: the integers, [rows..., blocks, block], and of each block the scale and the
 * sum of the integers, [rows..., blocks]. */
typedef struct {
	Node q, scale, sum;
} Rounded;

static Rounded round_blocks(const Blocks *k)
{
	Build *b = k->b;
	const Node none = b_scalar(b, DT_f32, 0), wide = b_convert(b, k->r->x, DT_f32);
	const Node x = cut(k, wide, !k->r->side, none);
	const Type t = *node_type(b->g, x);
	uint32_t map[MAX_RANK];
	for (uint32_t d = 0; d < MAX_RANK; d++)
		map[d] = d;
	const Node most = b_reduce(b, REDUCE_MAX, b_un(b, OP_abs, x), 1u << (t.n - 1), DT_f32);
	/* false of NaN, too */
	const Node finite = b_bin_scalar(b, OP_le, most, FLT_MAX),
		   tiny = b_bin_scalar(b, OP_lt, most, MOST * (double)FLT_MIN),
		   number = b_bin_scalar(b, OP_div, most, MOST),
		   normal = b_select(b, tiny, none, number), nan = b_scalar(b, DT_f32, NAN);
	Rounded r = {.scale = b_select(b, finite, normal, nan)};
	const Node scale = b_broadcast_in_dim(b, r.scale, t.n, t.dim, map),
		   one = b_scalar(b, DT_f32, 1), times = b_bin(b, OP_div, one, scale),
		   q = b_un(b, OP_round, b_bin(b, OP_mul, x, times)),
		   some = b_bin_scalar(b, OP_gt, scale, 0);
	r.q = b_convert(b, b_select(b, some, q, none), DT_i8);
	r.sum = b_reduce(b, REDUCE_SUM, b_convert(b, r.q, DT_i32), 1u << (t.n - 1), DT_i32);
	return r;
}

/* Whether the target multiplies groups of i8 with i8 or u8. */
static bool has_groups(const Isa *isa)
{
	return micro_groups(micro_row(isa, DT_i8, DT_u8, DT_i32, 0)) ||
	       micro_groups(micro_row(isa, DT_i8, DT_i8, DT_i32, 0));
}

/* Returns x, [..., block], as [..., 2, block / 2]. */
static Node in_halves(const Blocks *k, Node x)
{
	const Type t = *node_type(k->b->g, x);
	Sym dim[MAX_RANK];
	for (uint32_t d = 0; d + 1 < t.n; d++)
		dim[d] = t.dim[d];
	dim[t.n - 1] = b_int(k->b, 2);
	dim[t.n] = b_int(k->b, k->block / 2);
	return b_reshape(k->b, x, t.n + 1, dim);
}

/* Returns u, [..., 2, block / 2], as halves of bytes that are stored: the second half of a block
 * in the high bits. */
static Node packed(const Blocks *k, Node u)
{
	Build *b = k->b;
	const uint32_t dim = node_rank(b->g, u) - 2;
	const Node low = b_select_dim(b, u, (int)dim, b_int(b, 0)),
		   high = b_select_dim(b, u, (int)dim, b_int(b, 1)),
		   both = b_bin(b, OP_bit_or, low, b_bin_scalar(b, OP_shift_left, high, HALF_BITS));
	const Node bytes = fold_node(b->g, k->c, both);
	Attr attr[] = {attr_none(), attr_int(b->g->ir, dim), attr_int(b->g->ir, HALF_BITS)};
	return b_node(b, OP_fields, &bytes, 1, attr, 3);
}

/* Returns the weights as bytes that the target multiplies with i8, `offset` higher than they are
 * stored. *bound: what their magnitudes do not exceed. */
static Node weights_of(const Blocks *k, int64_t *offset, int64_t *bound)
{
	Build *b = k->b;
	const Isa *isa = &k->c->target->isa;
	const MicroKernel *row = micro_row(isa, DT_i8, DT_u8, DT_i32, 0);
	bool is_unsigned = micro_groups(row) && row->turned && row->cost == MOP_dot;
	const Node q = quant_integers(b, &k->r->weights);
	int64_t least, most;
	*offset = 0;
	*bound = is_unsigned ? UINT8_MAX : MOST + 1;
	if (!q.i)
		return q;
	const bool was_unsigned = node_dtype(b->g, q) == DT_u8,
		   known = quant_values(b->g, k->r->weights.q, k->c->keep_params, &least, &most);
	is_unsigned |= known && most - least <= HALF_MOST && has_groups(isa);
	if (is_unsigned != was_unsigned)
		*offset = is_unsigned ? MOST + 1 : -(MOST + 1);
	if (is_unsigned && known && most - least <= MOST) {
		*offset = -least;
		*bound = most - least;
	}
	if (!*offset)
		return q;
	/* modulo 256, which the sum is within the bounds of the dtype */
	const Node moved = b_bin_scalar(b, OP_add, b_convert(b, q, is_unsigned ? DT_u8 : DT_i8),
					is_unsigned ? (uint8_t)*offset : (int8_t)*offset);
	return fold_node(b->g, k->c, moved);
}

/* Returns the sums of blocks less the zero points, in f32. z: of the stored integers, by block or
 * not; none is 0. offset: of the integers that were multiplied. */
static Node without_zero(const Blocks *k, const Rounded *q, Node sums, Node z, bool per_block,
			 int64_t offset)
{
	Build *b = k->b;
	if (!z.i && offset) {
		z = b_full_int(b, DT_i32, offset, 0, NULL);
	} else if (z.i) {
		z = offset ? b_bin_scalar(b, OP_add, z, (double)offset) : z;
		z = spread(k, z, k->r->side, per_block, sums);
	}
	if (z.i) {
		const Type t = *node_type(b->g, sums);
		const Node sum = spread(k, q->sum, !k->r->side, true, sums);
		sums = b_bin(b, OP_sub, sums,
			     b_bin(b, OP_mul,
				   node_rank(b->g, z) ? z : b_broadcast(b, z, t.n, t.dim), sum));
	}
	return b_convert(b, sums, DT_f32);
}

/* Returns the sums of blocks, [blocks, ...]: the operands keep their sides. bound: of the
 * magnitudes of u. */
static Node multiply(const Blocks *k, Node q, Node u, int64_t bound)
{
	const Node in[2] = {k->r->side ? q : u, k->r->side ? u : q};
	const uint32_t last[2] = {node_rank(k->b->g, in[0]) - 1, node_rank(k->b->g, in[1]) - 1},
		       batch[1][2] = {{last[0] - 2, last[1] - 2}},
		       sum[2][2] = {{last[0] - 1, last[1] - 1}, {last[0], last[1]}};
	const int64_t most[2] = {k->r->side ? MOST : bound, k->r->side ? bound : MOST};
	return b_contract_integers(k->b, in[0], in[1], batch, 1, sum, 2, most);
}

/* Whether zero points are known to be in the range of bytes, so that sums of blocks are exact. */
static bool has_small_zero(const Blocks *k)
{
	const Graph *g = k->b->g;
	Node x = k->r->weights.zero;
	int64_t least, most;
	if (!x.i)
		return true;
	for (x = quant_below_converts(g, x); op_info(node_op(g, x))->moves;)
		x = quant_below_converts(g, node_in(g, x, 0));
	return dtype_size(node_dtype(g, x)) == 1 ||
	       (quant_value_bounds(g, x, k->c->keep_params, &least, &most) && least >= -UINT8_MAX &&
		most <= UINT8_MAX);
}

/* Fills in the blocks: a power of two of terms that divides the groups of the weights. False: the
 * product has another form, or groups of few weights. */
static bool find_blocks(Blocks *k)
{
	const Graph *g = k->b->g;
	const WeightProduct *r = k->r;
	Build *b = k->b;
	k->dim[0] = (uint32_t)__builtin_ctz(r->p.sum[0]);
	k->dim[1] = (uint32_t)__builtin_ctz(r->p.sum[1]);
	TRY(!quant_batches(g, r->n) && r->p.sum[0] == 1u << k->dim[0] &&
	    r->p.sum[1] == 1u << k->dim[1] && node_rank(g, r->x) + 2 <= MAX_RANK &&
	    node_rank(g, r->w) + 2 <= MAX_RANK && node_rank(g, r->n) < MAX_RANK);
	TRY(sym_is_const(b_syms(b), r->p.terms, &k->terms));
	const Node factor[2] = {r->weights.scale, r->weights.zero};
	k->block = BLOCK;
	for (uint32_t i = 0; i < 2; i++) {
		const Node v = factor[i].i ? quant_moved_along(b, &r->weights, factor[i], r->w)
					   : factor[i];
		int64_t size;
		if (!v.i || node_splat(g, v, NULL) || !(quant_differs(g, v) & r->p.sum[r->side]))
			continue;
		const Sym group = quant_group_of(b, v, r->p.sum[r->side]);
		TRY(group.i && sym_is_const(b_syms(b), group, &size));
		while (size % k->block)
			k->block /= 2;
	}
	TRY(has_small_zero(k));
	k->blocks = b_int(b, (k->terms + k->block - 1) / k->block);
	return k->block >= LEAST_BLOCK;
}

Node quant_block_product(Build *b, PassCtx *c, const WeightProduct *r)
{
	Blocks k = {.b = b, .c = c, .r = r};
	bool by_scale = false, by_zero = false;
	int64_t offset, bound;
	if (!find_blocks(&k))
		return (Node){0};
	const Node scale = by_block(&k, r->weights.scale, DT_f32, &by_scale);
	const Node zero = by_block(&k, r->weights.zero, DT_i32, &by_zero);
	const Node u = weights_of(&k, &offset, &bound);
	if (!u.i || (r->weights.scale.i && !scale.i) || (r->weights.zero.i && !zero.i))
		return (Node){0};
	const Rounded q = round_blocks(&k);
	const Node none = b_full_int(b, node_dtype(b->g, u), 0, 0, NULL),
		   whole = cut(&k, u, r->side, none);
	Node halves = in_halves(&k, whole);
	if (bound <= HALF_MOST && node_dtype(b->g, u) == DT_u8)
		halves = packed(&k, halves);
	const Node of_x = in_halves(&k, q.q), sums = multiply(&k, of_x, halves, bound);
	Node factor = spread(&k, q.scale, !r->side, true, sums);
	if (scale.i)
		factor = b_bin(b, OP_mul, factor, spread(&k, scale, r->side, by_scale, sums));
	const Node terms =
		b_bin(b, OP_mul, without_zero(&k, &q, sums, zero, by_zero, offset), factor);
	return b_reduce(b, REDUCE_SUM, terms, 1, DT_f32);
}
