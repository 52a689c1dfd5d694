/* Products of floats and of constant weights of at most 8 bits, whose summed dimension is cut into
 * blocks: those that round the floats, and those that decode the weights.
 *
 * Where the floats are to be rounded to 8 bits (Graph.activations): a sum over blocks of BLOCK
 * neighbouring terms.
 *
 *   contract(%x, mul(sub(convert(%w), z), s))
 * becomes
 *   t = max |x| of the block / 127   %q = rint(x * (1 / t)) : i8   (by one kernel, with sum(%q))
 *   %1 = contract(%q, %u, acc=i32)   of each block; %u is %w, unsigned where the target wants that
 *   %2 = add(%1, -z * sum(%q)), or, of a z that differs by column, sub(%1, z * sum(%q))
 *   reduce(mul(convert(%2, dtype=f32), t * s), over the blocks)
 * and if an offset o is subtracted from the weights
 *   reduce(fma(convert(%2, dtype=f32), t * s, -t * sum(%q) * o), over the blocks)
 *
 * docs/numerics.md defines the bits. If the maximum is not finite, t is NaN and %q 0; if t were no
 * normal number, both are 0. 1 / t is at most 127 (1 + 2^-22) / max |x|, so |q| is at most 127, and
 * sums of a block are exact, in f32, too. The reduction's kernel has the products in it
 * (kernel_adds_blocks). Weights of at most 16 values are stored in 4 bits, as fields of bytes, and,
 * if the values are not close to each other, as places in a table of those that occur.
 *
 * Else, of weights with a scale or a zero point for each group of terms, or of 4 bits:
 *
 *   contract(%x, mul(sub(convert(%w), z), s))
 * becomes
 *   contract(%x, mul(sub(bitcast(%u & 15 | bits of 2^23), z + 2^23), s))       fields 0
 *   contract(%x, mul(sub(bitcast(%u & 15 << 4 | bits of 2^19), z + 2^19), s))   fields 1 ...
 *   contract(%x, mul(sub(bitcast(%u >> 16 & 15 | bits of 2^23), z + 2^23), s))  fields 4 ...
 *
 * with the terms in dimensions of their own: groups, words of a group, fields of a word, %u a
 * constant of words with eight integers of 4 bits. The bits of an integer in a float's mantissa are
 * that float and the integer; all numbers are integers below 2^24, so that nothing is rounded but
 * the product with s. Of other integers it is mul(convert(sub(%w, z)), s), of groups and terms of a
 * group. The contraction's kernel computes that where it multiplies (Contraction.decoded). */
#include <float.h>
#include <math.h>

#include "ir/target/micro.h"
#include "ir/target/target.h"
#include "ops/rules/rules.h"
#include "passes/common/questions.h"
#include "passes/fold/fold.h"
#include "passes/quantize/priv.h"

enum {
	BLOCK = 32,      /* terms that are rounded by one scale */
	LEAST_BLOCK = 8, /* groups of fewer weights stay products of floats */
	MOST = 127,
	HALF_MOST = 15,
	HALF_BITS = 4, /* weights of 4 bits are stored two in a byte */
	FEW = 16       /* values that 4 bits number */
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
	const int64_t more = (k->block - k->terms % k->block) % k->block;
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

/* Returns operand `side` of the product, behind the copies of which v consists. */
static Node copied(Build *b, Node v, Node product, uint32_t side)
{
	if (v.i == product.i)
		return node_in(b->g, product, side);
	const Node x = copied(b, node_in(b->g, v, 0), product, side);
	return b_again(b, v, &x);
}

/* Does as by_block, of a value that is stored. */
static Node stored_by_block(const Blocks *k, Node v, uint32_t nmove, DType as, bool *per_block)
{
	Build *b = k->b;
	*per_block = false;
	if (!v.i)
		return v;
	const Node stored = quant_as_stored(b, v),
		   like = quant_moved_along(b, &k->r->weights, nmove, stored, k->r->w);
	const uint32_t rank = node_rank(b->g, k->r->w), dim = k->dim[k->r->side];
	const uint32_t summed = 1u << dim;
	uint32_t perm[MAX_RANK], map[MAX_RANK], n = 0;
	int64_t size = k->terms;
	if (!like.i)
		return like;
	*per_block = !node_splat(b->g, like, NULL) && quant_differs(b->g, like) & summed;
	if (*per_block) {
		const Sym group = quant_group_of(b, like, summed);
		if (!group.i || !sym_is_const(b_syms(b), group, &size) || size % k->block ||
		    !quant_is_of_constants(b->g, stored))
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

/* Returns a scale, zero point or offset of the weights, which is behind the first nmove moves, as
 * [blocks, columns...]; of columns alone, if it is the same for all blocks: [columns...]. It, or
 * both factors of a product, are stored like this, once for each group. Returns none if blocks do
 * not divide its groups, or it differs by group and is not computed of constants. */
static Node by_block(const Blocks *k, Node v, uint32_t nmove, DType as, bool *per_block)
{
	const Node product = v.i ? quant_product(k->b->g, v) : v;
	bool per[2];
	Node x[2];
	if (!product.i)
		return stored_by_block(k, v, nmove, as, per_block);
	for (uint32_t i = 0; i < 2; i++) {
		x[i] = stored_by_block(k, copied(k->b, v, product, i), nmove, as, &per[i]);
		if (!x[i].i)
			return x[i];
	}
	*per_block = per[0] || per[1];
	return b_bin(k->b, OP_mul, x[0], x[1]);
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

/* Returns x, [..., block], divided by the scales of its blocks and rounded, in f32. */
static Node integers_of(Build *b, Node x, Node scales)
{
	const Type t = *node_type(b->g, x);
	uint32_t map[MAX_RANK];
	for (uint32_t d = 0; d < MAX_RANK; d++)
		map[d] = d;
	const Node scale = b_broadcast_in_dim(b, scales, t.n, t.dim, map),
		   times = b_bin(b, OP_div, b_scalar(b, DT_f32, 1), scale),
		   q = b_un(b, OP_round, b_bin(b, OP_mul, x, times));
	return b_select(b, b_bin_scalar(b, OP_gt, scale, 0), q, b_scalar(b, DT_f32, 0));
}

static Rounded round_blocks(const Blocks *k)
{
	Build *b = k->b;
	const Node none = b_scalar(b, DT_f32, 0), wide = b_convert(b, k->r->x, DT_f32);
	const Node x = cut(k, wide, !k->r->side, none);
	const Type t = *node_type(b->g, x);
	/* magnitudes are ordered as their bits are, NaN behind all numbers */
	const Node bits = b_node(b, OP_bitcast, &x, 1, (Attr[]){attr_none(), attr_dtype(DT_i32)},
				 2),
		   size = b_bin_scalar(b, OP_bit_and, bits, INT32_MAX),
		   largest = b_reduce(b, REDUCE_MAX, size, 1u << (t.n - 1), DT_i32),
		   most = b_node(b, OP_bitcast, &largest, 1,
				 (Attr[]){attr_none(), attr_dtype(DT_f32)}, 2);
	/* false of NaN, too */
	const Node finite = b_bin_scalar(b, OP_le, most, FLT_MAX),
		   tiny = b_bin_scalar(b, OP_lt, most, MOST * (double)FLT_MIN),
		   number = b_bin_scalar(b, OP_div, most, MOST),
		   normal = b_select(b, tiny, none, number), nan = b_scalar(b, DT_f32, NAN);
	Rounded r = {.scale = b_select(b, finite, normal, nan)};
	/* one kernel reads x once, and computes the integers twice: for their sum, which is exact
	 * in f32, and to store them */
	const Node same = b_node(b, OP_barrier, &x, 1, NULL, 0);
	const Node scale = b_node(b, OP_barrier, &r.scale, 1, NULL, 0);
	const Node sum =
		b_reduce(b, REDUCE_SUM, integers_of(b, same, scale), 1u << (t.n - 1), DT_f32);
	r.sum = b_convert(b, sum, DT_i32);
	r.q = b_convert(b, integers_of(b, x, r.scale), DT_i8);
	return r;
}

/* Whether the target multiplies groups of i8 with i8 or u8. */
static bool has_groups(const Isa *isa)
{
	return micro_groups(micro_row(isa, DT_i8, DT_u8, DT_i32, 0)) ||
	       micro_groups(micro_row(isa, DT_i8, DT_i8, DT_i32, 0));
}

/* Returns x, [..., block], as [..., n, block / n]. */
static Node in_parts(const Blocks *k, Node x, int64_t n)
{
	const Type t = *node_type(k->b->g, x);
	Sym dim[MAX_RANK];
	for (uint32_t d = 0; d + 1 < t.n; d++)
		dim[d] = t.dim[d];
	dim[t.n - 1] = b_int(k->b, n);
	dim[t.n] = b_int(k->b, k->block / n);
	return b_reshape(k->b, x, t.n + 1, dim);
}

/* ---- weights of few values ---- */

/* The values that bytes have, and their numbers, in ascending order of the bytes. */
typedef struct {
	uint32_t n;
	uint8_t value[FEW], number[UINT8_MAX + 1];
} FewValues;

/* Returns the constant of which u, numbers of 8 bits, are copies; NULL if it is not known. */
static const Const *stored_bytes(const Blocks *k, Node u)
{
	const Graph *g = k->b->g;
	while (op_info(node_op(g, u))->moves && node_nin(g, u) == 1)
		u = node_in(g, u, 0);
	const ConstId id = node_const(g, u);
	if (!id.i || (k->c->keep_params && const_is_replaceable(g->ir, id)))
		return NULL;
	const Const *c = ir_const_of(g->ir, id);
	return c->data && c->bytes && dtype_size(c->dtype) == 1 ? c : NULL;
}

/* Whether u are numbers of 8 bits with few values, which it finds. */
static bool has_few_values(const Blocks *k, Node u, FewValues *few)
{
	const Const *c = stored_bytes(k, u);
	bool seen[UINT8_MAX + 1] = {false};
	*few = (FewValues){.n = 0};
	for (uint64_t i = 0; c && i < c->bytes; i++)
		seen[((const uint8_t *)c->data)[i]] = true;
	for (uint32_t v = 0; v <= UINT8_MAX; v++) {
		if (!seen[v])
			continue;
		if (few->n == FEW)
			return false;
		few->number[v] = (uint8_t)few->n;
		few->value[few->n++] = (uint8_t)v;
	}
	return few->n;
}

/* Returns u with the numbers of its values instead of them. */
static Node numbers_of(const Blocks *k, Node u, const FewValues *few)
{
	Build *b = k->b;
	const ConstId id = node_const(b->g, u);
	if (!id.i) {
		const Node x = numbers_of(k, node_in(b->g, u, 0), few);
		return b_again(b, u, &x);
	}
	const Const c = *ir_const_of(b->g->ir, id);
	uint8_t *number = arena_alloc(b->g->ir->ctx->arena, c.bytes);
	for (uint64_t i = 0; i < c.bytes; i++)
		number[i] = few->number[((const uint8_t *)c.data)[i]];
	const Const to = {.name = "",
			  .dtype = DT_u8,
			  .rank = c.rank,
			  .dim = c.dim,
			  .data = number,
			  .bytes = c.bytes};
	return b_const(b, ir_const(b->g->ir, to));
}

/* Returns the table that the numbers are places in, as an attribute of `fields`. */
static Attr table_of(const Blocks *k, const FewValues *few)
{
	Ir *ir = k->b->g->ir;
	Sym *v = ARENA_ARRAY(ir->ctx->arena, Sym, FEW);
	for (uint32_t i = 0; i < FEW; i++)
		v[i] = sym_int(ir->syms, few->value[i]);
	return attr_ints(v, FEW);
}

/* Returns u, [..., 2, block / 2], as halves of bytes that are stored: the second half of a block
 * in the high bits. table: what they number, or none. */
static Node packed(const Blocks *k, Node u, Attr table)
{
	Build *b = k->b;
	const uint32_t dim = node_rank(b->g, u) - 2;
	const Node low = b_select_dim(b, u, (int)dim, b_int(b, 0)),
		   high = b_select_dim(b, u, (int)dim, b_int(b, 1)),
		   both = b_bin(b, OP_bit_or, low, b_bin_scalar(b, OP_shift_left, high, HALF_BITS));
	const Node bytes = fold_node(b->g, k->c, both);
	Attr attr[] = {attr_none(), attr_int(b->g->ir, dim), attr_int(b->g->ir, HALF_BITS), table};
	return b_node(b, OP_fields, &bytes, 1, attr, 4);
}

/* Returns the weights as bytes that the target multiplies with i8, `offset` higher than they are
 * stored. *bound: what their magnitudes do not exceed. */
static Node weights_of(const Blocks *k, int64_t *offset, int64_t *bound)
{
	Build *b = k->b;
	const Isa *isa = &k->c->target->isa;
	const MicroKernel *row = micro_row(isa, DT_i8, DT_u8, DT_i32, 0);
	bool is_unsigned = micro_groups(row) && row->cost != MOP_int_mul;
	const Node q = quant_integers(b, &k->r->weights);
	int64_t least, most;
	*offset = 0;
	*bound = is_unsigned ? UINT8_MAX : MOST + 1;
	if (!q.i)
		return q;
	const bool was_unsigned = node_dtype(b->g, q) == DT_u8,
		   known = quant_values(b->g, k->r->weights.q, k->c->keep_params, &least, &most);
	FewValues few;
	const bool halves = known && (most - least <= HALF_MOST ||
				      (most - least <= MOST && has_few_values(k, q, &few)));
	is_unsigned |= halves && has_groups(isa);
	if (is_unsigned != was_unsigned)
		*offset = is_unsigned ? MOST + 1 : -(MOST + 1);
	if (is_unsigned && known && most - least <= MOST) {
		*offset = -least;
		*bound = most - least;
	}
	if (!*offset && is_unsigned == was_unsigned)
		return q;
	/* modulo 256, which the sum is within the bounds of the dtype */
	const Node moved = b_bin_scalar(b, OP_add, b_convert(b, q, is_unsigned ? DT_u8 : DT_i8),
					is_unsigned ? (uint8_t)*offset : (int8_t)*offset);
	return fold_node(b->g, k->c, moved);
}

/* Returns the stored zero points, below conversions and moves. */
static Node stored_zero(const Blocks *k)
{
	const Graph *g = k->b->g;
	Node x = quant_below_converts(g, k->r->weights.zero);
	while (op_info(node_op(g, x))->moves)
		x = quant_below_converts(g, node_in(g, x, 0));
	return x;
}

/* Whether the zero points, which there are, are known to lie in [*least, *most]. */
static bool bounds_of_zero(const Blocks *k, int64_t *least, int64_t *most)
{
	return quant_value_bounds(k->b->g, stored_zero(k), k->c->keep_params, least, most);
}

/* Whether zero points are known to be in the range of bytes, so that sums of blocks are exact. */
static bool has_small_zero(const Blocks *k)
{
	int64_t least, most;
	return !k->r->weights.zero.i || dtype_size(node_dtype(k->b->g, stored_zero(k))) == 1 ||
	       (bounds_of_zero(k, &least, &most) && least >= -UINT8_MAX && most <= UINT8_MAX);
}

/* Returns the sums of blocks less the zero points, in f32. z: of the stored integers, by block or
 * not; none is 0. offset: of the integers that were multiplied. */
static Node without_zero(const Blocks *k, const Rounded *q, Node sums, Node z, bool per_block,
			 int64_t offset)
{
	Build *b = k->b;
	int64_t least, most;
	if (z.i && bounds_of_zero(k, &least, &most) && least == most) {
		offset += least;
		z = (Node){0};
	}
	/* what is added is a number of each row, with which a kernel may begin */
	const bool adds = !z.i || !node_rank(b->g, z);
	if (!z.i && offset) {
		z = b_full_int(b, DT_i32, -offset, 0, NULL);
	} else if (z.i) {
		z = offset ? b_bin_scalar(b, OP_add, z, (double)offset) : z;
		z = adds ? b_un(b, OP_neg, z) : spread(k, z, k->r->side, per_block, sums);
	}
	Node less = q->sum;
	if (z.i && adds) {
		const Type t = *node_type(b->g, less);
		less = b_bin(b, OP_mul, b_broadcast(b, z, t.n, t.dim), less);
	}
	if (z.i) {
		less = spread(k, less, !k->r->side, true, sums);
		sums = b_bin(b, adds ? OP_add : OP_sub, sums,
			     adds ? less : b_bin(b, OP_mul, z, less));
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

/* Whether the product sums over one dimension of constant extent, and has no batches. Sets dim and
 * terms. */
static bool has_one_sum(Blocks *k)
{
	const Graph *g = k->b->g;
	const WeightProduct *r = k->r;
	k->dim[0] = (uint32_t)__builtin_ctz(r->p.sum[0]);
	k->dim[1] = (uint32_t)__builtin_ctz(r->p.sum[1]);
	TRY(!quant_batches(g, r->n) && r->p.sum[0] == 1u << k->dim[0] &&
	    r->p.sum[1] == 1u << k->dim[1] && node_rank(g, r->x) + 2 <= MAX_RANK &&
	    node_rank(g, r->w) + 2 <= MAX_RANK && node_rank(g, r->n) < MAX_RANK);
	return sym_is_const(b_syms(k->b), r->p.terms, &k->terms);
}

static int64_t common_divisor(int64_t a, int64_t b)
{
	while (b) {
		const int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* Sets *size to the terms of a column for which a value behind the first nmove moves, or none, is
 * one number. Returns false if they are not known. */
static bool group_of_factor(const Blocks *k, Node factor, uint32_t nmove, int64_t *size)
{
	const Graph *g = k->b->g;
	const WeightProduct *r = k->r;
	const Node product = factor.i ? quant_product(g, factor) : factor;
	if (product.i) {
		int64_t other;
		TRY(group_of_factor(k, copied(k->b, factor, product, 0), nmove, size) &&
		    group_of_factor(k, copied(k->b, factor, product, 1), nmove, &other));
		*size = common_divisor(*size, other);
		return true;
	}
	const Node v =
		factor.i ? quant_moved_along(k->b, &r->weights, nmove, factor, r->w) : factor;
	*size = k->terms;
	if (!v.i || node_splat(g, v, NULL) || !(quant_differs(g, v) & r->p.sum[r->side]))
		return true;
	const Sym group = quant_group_of(k->b, v, r->p.sum[r->side]);
	return group.i && sym_is_const(b_syms(k->b), group, size);
}

/* Does as group_of_factor, of the weights' scale (0), zero point (1) or offset (2). */
static bool group_of_value(const Blocks *k, uint32_t which, int64_t *size)
{
	const Dequantised *d = &k->r->weights;
	const Node v[] = {d->scale, d->zero, d->offset};
	return group_of_factor(k, v[which], which < 2 ? d->nmove : d->outer, size);
}

/* Fills in the blocks: a power of two of terms that divides the groups of the weights. False: the
 * product has another form, or groups of few weights. */
static bool find_blocks(Blocks *k)
{
	Build *b = k->b;
	TRY(has_one_sum(k));
	k->block = BLOCK;
	for (uint32_t i = 0; i < 3; i++) {
		int64_t size;
		TRY(group_of_value(k, i, &size));
		while (size != k->terms && size % k->block)
			k->block /= 2;
	}
	TRY(has_small_zero(k));
	k->blocks = b_int(b, (k->terms + k->block - 1) / k->block);
	return k->block >= LEAST_BLOCK;
}

/* Returns sums * factor - t * sum(%q) * offset of the blocks, in the shape of their sums. */
static Node with_offsets(const Blocks *k, const Rounded *q, Node sums, Node factor, Node offset,
			 bool per_block)
{
	Build *b = k->b;
	Node t = b_bin(b, OP_mul, b_convert(b, q->sum, DT_f32), q->scale);
	if (!k->r->weights.adds)
		t = b_un(b, OP_neg, t);
	t = spread(k, t, !k->r->side, true, sums);
	t = b_bin(b, OP_mul, t, spread(k, offset, k->r->side, per_block, sums));
	return b_node(b, OP_fma, (Node[]){sums, factor, t}, 3, NULL, 0);
}

Node quant_block_product(Build *b, PassCtx *c, const WeightProduct *r)
{
	Blocks k = {.b = b, .c = c, .r = r};
	const Dequantised *d = &r->weights;
	bool by_scale = false, by_zero = false, by_offset = false;
	int64_t offset, bound;
	if (!find_blocks(&k))
		return (Node){0};
	const Node scale = by_block(&k, d->scale, d->nmove, DT_f32, &by_scale);
	const Node zero = by_block(&k, d->zero, d->nmove, DT_i32, &by_zero);
	const Node less = by_block(&k, d->offset, d->outer, DT_f32, &by_offset);
	const Node u = weights_of(&k, &offset, &bound);
	if (!u.i || (d->scale.i && !scale.i) || (d->zero.i && !zero.i) || (d->offset.i && !less.i))
		return (Node){0};
	const Rounded q = round_blocks(&k);
	const bool is_unsigned = node_dtype(b->g, u) == DT_u8, is_half = bound <= HALF_MOST;
	FewValues few;
	const bool is_few = is_unsigned && !is_half && has_few_values(&k, u, &few);
	const Node none = b_full_int(b, node_dtype(b->g, u), 0, 0, NULL),
		   numbers = is_few ? numbers_of(&k, u, &few) : u,
		   whole = cut(&k, numbers, r->side, none);
	Node halves = in_parts(&k, whole, 2);
	if (is_unsigned && (is_half || is_few))
		halves = packed(&k, halves, is_few ? table_of(&k, &few) : attr_none());
	const Node of_x = in_parts(&k, q.q, 2), sums = multiply(&k, of_x, halves, bound);
	Node factor = spread(&k, q.scale, !r->side, true, sums);
	if (scale.i)
		factor = b_bin(b, OP_mul, factor, spread(&k, scale, r->side, by_scale, sums));
	const Node whole_sums = without_zero(&k, &q, sums, zero, by_zero, offset);
	Node terms;
	if (less.i)
		terms = with_offsets(&k, &q, whole_sums, factor, less, by_offset);
	else
		terms = b_bin(b, OP_mul, whole_sums, factor);
	return b_reduce(b, REDUCE_SUM, terms, 1, DT_f32);
}

/* ---- weights that are decoded where they are multiplied ---- */

enum {
	WORD_FIELDS = 8, /* of HALF_BITS bits */
	MANTISSA = 23,   /* bits of f32 */
	EXPONENT = 127   /* of 1.0 */
};

/* Fills in the blocks: terms that have one scale and one zero point. False: the product has another
 * form. */
static bool find_groups(Blocks *k)
{
	TRY(has_one_sum(k) && k->terms > 0);
	k->block = k->terms;
	for (uint32_t i = 0; i < 3; i++) {
		int64_t size;
		TRY(group_of_value(k, i, &size));
		k->block = common_divisor(k->block, size);
	}
	k->blocks = b_int(k->b, k->terms / k->block);
	return true;
}

/* Returns a value [blocks, columns...], or of columns alone, in the shape of x, [columns...,
 * blocks,
 * ...]. */
static Node along_terms(const Blocks *k, Node v, bool per_block, Node x)
{
	Build *b = k->b;
	const Type t = *node_type(b->g, x);
	const uint32_t rank = node_rank(b->g, v);
	uint32_t perm[MAX_RANK], map[MAX_RANK];
	if (!rank)
		return b_broadcast(b, v, t.n, t.dim);
	for (uint32_t d = 0; d < rank; d++) {
		perm[d] = d + 1 < rank ? d + 1 : 0;
		map[d] = d;
	}
	return b_broadcast_in_dim(b, per_block ? b_permute(b, v, perm) : v, t.n, t.dim, map);
}

/* Returns words, [..., block / 8], of the integers of 4 bits of a block, each `low` less. */
static Node words_of(const Blocks *k, Node q, int64_t low)
{
	Build *b = k->b;
	const Node all = in_parts(k, b_convert(b, q, DT_i32), k->block / WORD_FIELDS);
	const uint32_t last = node_rank(b->g, all) - 1;
	Node word = {0};
	for (uint32_t i = 0; i < WORD_FIELDS; i++) {
		Node part = b_select_dim(b, all, (int)last, b_int(b, i));
		part = b_bin_scalar(b, OP_sub, part, (double)low);
		part = i ? b_bin_scalar(b, OP_shift_left, part, i * HALF_BITS) : part;
		word = i ? b_bin(b, OP_bit_or, word, part) : part;
	}
	return fold_node(b->g, k->c, word);
}

/* What is done to field f of a word, i32 or f32 in the shape [8]: fields 0 to 3 lie within the
 * mantissa of a float, the others when the word is shifted by half of its bits. */
typedef struct {
	Node shift, mask, bits; /* the float 2^(23 - at) has these bits, at: the field's place in
				   half a word */
	Node above;             /* that float */
} FieldCode;

static FieldCode code_of_fields(const Blocks *k)
{
	enum { HALF_WORD = 16, HALF_FIELDS = WORD_FIELDS / 2, HIGH_BIT = 2 };
	Build *b = k->b;
	const Sym count = b_int(b, WORD_FIELDS);
	/* code, not numbers in memory */
	const Node number = b_iota(b, DT_i32, count),
		   f = b_node(b, OP_barrier, &number, 1, NULL, 0),
		   at = b_bin_scalar(b, OP_mul, b_bin_scalar(b, OP_bit_and, f, HALF_FIELDS - 1),
				     HALF_BITS),
		   high = b_bin_scalar(b, OP_shift_right, f, HIGH_BIT),
		   least = b_full_int(b, DT_i32, EXPONENT + MANTISSA, 1, &count),
		   all = b_full_int(b, DT_i32, (1 << HALF_BITS) - 1, 1, &count);
	FieldCode c = {
		.shift = b_bin_scalar(b, OP_mul, high, HALF_WORD),
		.mask = b_bin(b, OP_shift_left, all, at),
		.bits = b_bin_scalar(b, OP_shift_left, b_bin(b, OP_sub, least, at), MANTISSA)};
	c.above = b_node(b, OP_bitcast, &c.bits, 1, (Attr[]){attr_none(), attr_dtype(DT_f32)}, 2);
	return c;
}

/* Returns v, [8], along the last dimension of x. */
static Node along_fields(const Blocks *k, Node v, Node x)
{
	const Type t = *node_type(k->b->g, x);
	return b_broadcast_in_dim(k->b, v, t.n, t.dim, (uint32_t[]){t.n - 1});
}

/* Returns the floats c->above + w, of each field w of words, [..., 8]. */
static Node fields_of(const Blocks *k, const FieldCode *c, Node words)
{
	Build *b = k->b;
	const Type t = *node_type(b->g, words);
	uint32_t map[MAX_RANK];
	Sym dim[MAX_RANK];
	for (uint32_t d = 0; d < t.n; d++) {
		map[d] = d;
		dim[d] = t.dim[d];
	}
	dim[t.n] = b_int(b, WORD_FIELDS);
	const Node stored = b_node(b, OP_barrier, &words, 1, NULL, 0),
		   word = b_broadcast_in_dim(b, stored, t.n + 1, dim, map);
	Node bits = b_bin(b, OP_shift_right, word, along_fields(k, c->shift, word));
	bits = b_bin(b, OP_bit_and, bits, along_fields(k, c->mask, word));
	bits = b_bin(b, OP_bit_or, bits, along_fields(k, c->bits, word));
	return b_node(b, OP_bitcast, &bits, 1, (Attr[]){attr_none(), attr_dtype(DT_f32)}, 2);
}

/* Whether the stored weights have 4 bits, the lowest of them *low, in whole words of a block. */
static bool has_words(const Blocks *k, int64_t *low)
{
	int64_t most;
	return k->block % WORD_FIELDS == 0 && has_small_zero(k) &&
	       quant_values(k->b->g, k->r->weights.q, k->c->keep_params, low, &most) &&
	       most - *low <= HALF_MOST;
}

/* Returns the differences of weights and zero points, f32 in the shape [columns..., blocks, terms
 * of a block] or with words of terms. */
static Node differences(const Blocks *k, Node z, bool per_block, bool words, int64_t low)
{
	Build *b = k->b;
	const Node none = b_full_int(b, node_dtype(b->g, k->r->weights.q), 0, 0, NULL),
		   q = cut(k, quant_integers(b, &k->r->weights), k->r->side, none);
	if (words) {
		const FieldCode code = code_of_fields(k);
		const Node x = fields_of(k, &code, words_of(k, q, low)),
			   less = low ? b_bin_scalar(b, OP_add, code.above, -(double)low)
				      : code.above,
			   above = along_fields(k, less, x);
		if (!z.i)
			return b_bin(b, OP_sub, x, above);
		z = along_terms(k, b_convert(b, z, DT_f32), per_block, x);
		return b_bin(b, OP_sub, x, b_bin(b, OP_add, z, above));
	}
	const Node stored = b_node(b, OP_barrier, &q, 1, NULL, 0);
	if (!z.i)
		return b_convert(b, stored, DT_f32);
	const Node wide = b_convert(b, stored, DT_i32);
	return b_convert(b, b_bin(b, OP_sub, wide, along_terms(k, z, per_block, wide)), DT_f32);
}

/* Returns scales or offsets of blocks as numbers that are stored, also if they are products: a
 * kernel decodes weights by values that lie linearly in its axes, and units have several blocks. */
static Node multiplied(const Blocks *k, Node v)
{
	return v.i && quant_product(k->b->g, v).i ? fold_node(k->b->g, k->c, v) : v;
}

Node quant_decoded_product(Build *b, PassCtx *c, const WeightProduct *r)
{
	Blocks k = {.b = b, .c = c, .r = r};
	const Dequantised *d = &r->weights;
	bool by_scale = false, by_zero = false, by_offset = false;
	int64_t low = 0;
	if (!find_groups(&k) || !quant_integers(b, &r->weights).i)
		return (Node){0};
	const bool words = has_words(&k, &low);
	if (!words && k.block == k.terms && !r->weights.offset.i)
		return (Node){0};
	const Node scale = multiplied(&k, by_block(&k, d->scale, d->nmove, DT_f32, &by_scale)),
		   zero = by_block(&k, d->zero, d->nmove, DT_i32, &by_zero),
		   less = multiplied(&k, by_block(&k, d->offset, d->outer, DT_f32, &by_offset));
	if ((d->scale.i && !scale.i) || (d->zero.i && !zero.i) || (d->offset.i && !less.i))
		return (Node){0};
	Node w = differences(&k, zero, by_zero, words, low);
	if (scale.i)
		w = b_bin(b, OP_mul, w, along_terms(&k, scale, by_scale, w));
	if (less.i)
		w = b_bin(b, r->weights.adds ? OP_add : OP_sub, w,
			  along_terms(&k, less, by_offset, w));
	Node x = cut(&k, r->x, !r->side, b_scalar(b, DT_f32, 0));
	if (words)
		x = in_parts(&k, x, k.block / WORD_FIELDS);
	const uint32_t n = words ? 3 : 2;
	const Node in[2] = {r->side ? x : w, r->side ? w : x};
	uint32_t sum[3][2];
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t side = 0; side < 2; side++)
			sum[i][side] = node_rank(b->g, in[side]) - n + i;
	return b_contract(b, in[0], in[1], NULL, 0, (const uint32_t(*)[2])sum, n);
}
