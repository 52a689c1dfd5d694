/* Constant scales behind convolutions and contractions move into their weights, numbers that scale
 * an operand of a contraction move behind it.
 *
 *   %1 = conv(%x, %w, ...)                       %w, %s, %t constant; [N, 1, 16, H, W]
 *   %2 = reshape(%1)                             [N, 16, H, W]
 *   %3 = mul(%2, broadcast(%s, map=[1]))
 *   %4 = add(%3, broadcast(%t, map=[1]))
 * becomes
 *   %1 = conv(%x, %w * %s, ...)                  folded to a constant by the next round of fold
 *   %2 = reshape(%1)
 *   %4 = add(%2, broadcast(%t, map=[1]))
 *
 * (y + b) * s becomes y * s + b * s on the way, and (y + b) + t becomes y + (b + t). This rounds
 * differently, as every batch-norm folding does. Each step moves one scale or bias towards the
 * weights, so it ends. Values with other readers stay as they are.
 *
 *   %1 = permute(mul(%k, splat s))               how exporters of ONNX write attention
 *   %2 = contract(mul(%q, splat s), %1)
 * becomes
 *   %1 = permute(%k)
 *   %2 = contract(%q, %1)
 *   %3 = mul(%2, splat s * s)
 *
 * A product may read its operands where they are, and a scale of its result is part of its kernel.
 * Of f16 and bf16 the scales stay, and so do very large and small ones: they may be there so that
 * the sums do not overflow. Ends, because each step takes a scale from in front of a
 * contraction. */
#include <math.h>
#include <string.h>

#include "ops/rules/rules.h"
#include "passes/common/questions.h"
#include "passes/fold/fold.h"

/* A vector of constants along dims of a value: broadcast(constant, map), or a splat (rank 0). */
typedef struct {
	Node value; /* the constant or splat */
	uint32_t rank, map[MAX_RANK];
	bool splat;
} Along;

static Node in(const Build *b, Node n, uint32_t k)
{
	return node_in(b->g, n, k);
}

static bool is_along(const Build *b, Node n, Along *a)
{
	int64_t map[MAX_RANK];
	*a = (Along){.value = n, .splat = node_splat(b->g, n, NULL)};
	if (a->splat)
		return true;
	if (!is_op(b->g, n, OP_broadcast) || !node_const(b->g, in(b, n, 0)).i)
		return false;
	a->value = in(b, n, 0);
	TRY(const_list(b->g, n, "map", map, &a->rank));
	for (uint32_t k = 0; k < a->rank; k++) {
		TRY(node_dim(b->g, a->value, k).i == node_dim(b->g, n, (uint32_t)map[k]).i);
		a->map[k] = (uint32_t)map[k];
	}
	return true;
}

/* Returns the operand y of n = f(y, constant along some dims), and sets *a to the constant; none
 * otherwise. */
static Node operand_along(const Build *b, Node n, Along *a)
{
	if (is_along(b, in(b, n, 1), a))
		return in(b, n, 0);
	return is_along(b, in(b, n, 0), a) ? in(b, n, 1) : (Node){0};
}

static bool same_along(const Along *a, const Along *c)
{
	return a->splat == c->splat && a->rank == c->rank &&
	       memcmp(a->map, c->map, a->rank * sizeof *a->map) == 0;
}

static bool only_reader(const Build *b, Node n)
{
	return node_nuses(b->g, n) == 1;
}

/* ---- scaling weights ---- */

static bool is_anchor(const Graph *g, Node n)
{
	return op_lower(node_op(g, n))->role == LOWER_ANCHOR;
}

/* Sets from[d] to the dimension of n's weights that dimension d of n comes from, or -1. Returns
 * false if n has no constant weights, or weights of another dtype than the result's: scaled by
 * what that holds, they would become it. */
static bool weight_dims(const Build *b, Node n, int *from)
{
	const Graph *g = b->g;
	TRY(is_anchor(g, n) && node_const(g, in(b, n, 1)).i &&
	    node_dtype(g, n) == node_dtype(g, in(b, n, 1)));
	op_info(node_op(g, n))->along(g, n, from);
	return true;
}

/* Returns w * s, where dim k of s runs along weight dim to[k]; none if these dims do not
 * increase. */
static Node scaled_weight(Build *b, Node w, Node s, const uint32_t *to, uint32_t rank)
{
	const Type t = *node_type(b->g, w);
	for (uint32_t k = 1; k < rank; k++)
		if (to[k] <= to[k - 1])
			return (Node){0};
	s = b_convert(b, s, t.dtype);
	return b_bin(b, OP_mul, w, b_broadcast_in_dim(b, s, t.n, t.dim, to));
}

static Node with_weight(Build *b, Node n, Node w)
{
	const NodeData d = *node_data(b->g, n);
	return graph_add(b->g, b->before, d.op, (Node[]){in(b, n, 0), w}, 2, d.attr, d.type, d.loc);
}

/* Returns y * s for y = conv or contract with constant weights; none when s does not run along
 * them. */
static Node scale_anchor(Build *b, Node y, Node s, const uint32_t *map, uint32_t rank)
{
	int from[MAX_RANK];
	uint32_t to[MAX_RANK];
	if (!only_reader(b, y) || !weight_dims(b, y, from))
		return (Node){0};
	for (uint32_t k = 0; k < rank; k++) {
		if (from[map[k]] < 0)
			return (Node){0};
		to[k] = (uint32_t)from[map[k]];
	}
	Node w = scaled_weight(b, in(b, y, 1), s, to, rank);
	return w.i ? with_weight(b, y, w) : w;
}

/* Finds the dims of the operand of a reshape that make up dim d of its result: first .. first +
 * n - 1. */
static bool reshape_group(const Build *b, Node r, uint32_t d, uint32_t *first, uint32_t *n)
{
	const Type to = *node_type(b->g, r), from = *node_type(b->g, in(b, r, 0));
	SymTab *t = b_syms(b);
	uint32_t j = 0;
	for (uint32_t k = 0; k <= d; k++) {
		Sym part = b_int(b, 1);
		*first = j;
		while (j < from.n && part.i != to.dim[k].i) {
			part = sym_mul(t, part, from.dim[j++]);
		}
		TRY(part.i == to.dim[k].i);
	}
	*n = j - *first;
	return true;
}

/* Returns y * s for y = reshape(anchor): a vector along one dim that is a product of anchor
 * dims. */
static Node scale_reshaped(Build *b, Node y, const Along *s)
{
	uint32_t first, n, rank = 0, map[MAX_RANK];
	Sym dim[MAX_RANK];
	const Type t = *node_type(b->g, y);
	Node x = in(b, y, 0), v = s->value;
	if (!only_reader(b, y) || s->rank > 1)
		return (Node){0};
	if (s->rank == 1) {
		if (!reshape_group(b, y, s->map[0], &first, &n))
			return (Node){0};
		for (uint32_t k = first; k < first + n; k++) {
			if (is_one(b->g, node_dim(b->g, x, k)))
				continue;
			map[rank] = k;
			dim[rank++] = node_dim(b->g, x, k);
		}
		v = b_reshape(b, v, rank, dim);
	}
	Node scaled = scale_anchor(b, x, v, map, rank);
	return scaled.i ? b_reshape(b, scaled, t.n, t.dim) : scaled;
}

/* ---- rules ---- */

static Node scalar_of(Build *b, const Along *a)
{
	Attr v;
	if (!a->splat || !b_splat(b, a->value, &v))
		return a->value;
	return b_full_attr(b, node_dtype(b->g, a->value), v, 0, NULL);
}

static Node spread(Build *b, const Along *a, Node v, Node like)
{
	const Type t = *node_type(b->g, like);
	return b_broadcast_in_dim(b, v, t.n, t.dim, a->map);
}

/* Returns y * s, where y is an anchor with constant weights, perhaps reshaped and with a
 * constant bias, that a scale along these dims can reach. Answers by trying: none if y is not. */
static Node scale(Build *b, Node y, Along s)
{
	Along bias;
	s.value = scalar_of(b, &s);
	if (is_op(b->g, y, OP_reshape))
		return scale_reshaped(b, y, &s);
	if (is_anchor(b->g, y))
		return scale_anchor(b, y, s.value, s.map, s.rank);
	Node x = is_op(b->g, y, OP_add) && only_reader(b, y) ? operand_along(b, y, &bias)
							     : (Node){0};
	if (!x.i || (!s.splat && !bias.splat && !same_along(&bias, &s)))
		return (Node){0};
	Node scaled = scale(b, x, s);
	if (!scaled.i)
		return scaled;
	Along wide = bias.splat ? s : bias;
	Node v = b_bin(b, OP_mul, scalar_of(b, &bias), s.value);
	return b_bin(b, OP_add, scaled, spread(b, &wide, v, y));
}

static Node rule_scale(Build *b, Node n)
{
	Along s;
	Node y = operand_along(b, n, &s);
	if (!y.i || !dtype_is_float(node_dtype(b->g, n)))
		return (Node){0};
	return scale(b, y, s);
}

/* Rewrites (x + b) + t with constants along the same dims as x + (b + t). */
static Node rule_bias(Build *b, Node n)
{
	Along t, bias;
	Node y = operand_along(b, n, &t);
	bool twice = is_op(b->g, y, node_op(b->g, n)) && only_reader(b, y);
	Node x = twice ? operand_along(b, y, &bias) : (Node){0};
	if (!x.i || !dtype_is_float(node_dtype(b->g, n)) || (t.splat && bias.splat) ||
	    !same_along(&t, &bias))
		return (Node){0};
	return b_bin(b, OP_add, x, spread(b, &t, b_bin(b, OP_add, bias.value, t.value), n));
}

enum { LARGEST_SCALE = 1 << 16 };

/* Whether there is a value scaled by a number, behind values that only move elements and have no
 * other reader. Sets *scale to the number. */
static bool scaled_below(const Build *b, Node x, double *scale)
{
	Along a;
	Attr v;
	while (only_reader(b, x) && op_info(node_op(b->g, x))->moves)
		x = in(b, x, 0);
	if (!only_reader(b, x) || !is_op(b->g, x, OP_mul) || !operand_along(b, x, &a).i ||
	    !b_splat(b, a.value, &v) || v.kind != ATTR_float)
		return false;
	*scale = v.f;
	return fabs(v.f) <= LARGEST_SCALE && fabs(v.f) * LARGEST_SCALE >= 1;
}

/* Returns the same value without the scale. */
static Node without_scale(Build *b, Node x)
{
	Along a;
	if (!op_info(node_op(b->g, x))->moves)
		return operand_along(b, x, &a);
	Node y = without_scale(b, in(b, x, 0));
	return b_again(b, x, &y);
}

static Node rule_contract(Build *b, Node n)
{
	Node x = in(b, n, 0), y = in(b, n, 1);
	double of_x = 1, of_y = 1;
	const Type t = *node_type(b->g, n);
	if ((t.dtype != DT_f32 && t.dtype != DT_f64) || x.i == y.i ||
	    node_dtype(b->g, x) != t.dtype || node_dtype(b->g, y) != t.dtype)
		return (Node){0};
	bool left = scaled_below(b, x, &of_x), right = scaled_below(b, y, &of_y);
	if (!left && !right)
		return (Node){0};
	of_x = left ? of_x : 1;
	of_y = right ? of_y : 1;
	Node plain = b_again(
		b, n, (Node[]){left ? without_scale(b, x) : x, right ? without_scale(b, y) : y});
	return b_bin(b, OP_mul, plain, b_full(b, t.dtype, of_x * of_y, t.n, t.dim));
}

/* Erases what an attempt that failed has built between two nodes. */
static void undo(Graph *g, Node after, Node n)
{
	for (Node k = node_prev(g, n), prev; k.i != after.i; k = prev) {
		prev = node_prev(g, k);
		graph_erase(g, k);
	}
}

bool pass_fold_scale(Graph *g, PassCtx *c)
{
	bool changed = false;
	for (Node n = g->first, next; n.i; n = next) {
		next = node_next(g, n);
		Op op = node_op(g, n);
		Node (*rule)(Build *, Node) = op == OP_mul        ? rule_scale
					      : op == OP_add      ? rule_bias
					      : op == OP_contract ? rule_contract
								  : NULL;
		if (!rule || !node_nuses(g, n))
			continue;
		Build b = pass_build(g, n);
		Node before = node_prev(g, n);
		Node new = rule(&b, n);
		changed |= new.i != 0;
		if (new.i)
			pass_replace(g, n, new);
		else
			undo(g, before, n);
	}
	return pass_subgraphs(g, c, pass_fold_scale) || changed;
}
