/* Row sums of a gradient of softmax, of shorter rows:
 *
 *   %o = contract(%p, %v)           rows of values, weighted by p
 *   %t = contract(%g, %v)           the gradient by p
 *   %m = reduce(%p * %t, sum)       ->   %m = reduce(%g * %o, sum)
 *
 * as sum over keys k of p[k] sum over columns e of g[e] v[k, e] is sum over e of g[e] o[e]. Then p
 * is needed element by element alone, and kernels compute it again of two numbers a row
 * (lower/attention.h). The sums are rounded differently, so this is no rule of simplify. */
#include <string.h>

#include "passes/common/questions.h"
#include "passes/pass.h"

/* The dimensions of an operand of a contraction. */
typedef struct {
	int64_t batch[MAX_RANK], sum[MAX_RANK], free[MAX_RANK];
	uint32_t nbatch, nsum, nfree;
} OperandDims;

/* Sets *d to the dimensions of operand k of a contraction. Returns false if one of them is no
 * constant. */
static bool operand_dims(const Graph *g, Node n, uint32_t k, OperandDims *d)
{
	const char *batch = k ? "batch_y" : "batch_x", *sum = k ? "sum_y" : "sum_x";
	TRY(const_list(g, n, batch, d->batch, &d->nbatch) &&
	    const_list(g, n, sum, d->sum, &d->nsum));
	const uint32_t taken = node_dim_bits(g, n, batch) | node_dim_bits(g, n, sum);
	d->nfree = 0;
	for (uint32_t i = 0; i < node_rank(g, node_in(g, n, k)); i++)
		if (!(taken >> i & 1))
			d->free[d->nfree++] = i;
	return true;
}

/* Returns the node behind conversions and reshapes that keep the last dimension. */
static Node source_of(const Graph *g, Node n)
{
	Node x = n;
	do {
		n = x;
		x = below_reshape(g, node_converts_floats(g, n) ? node_in(g, n, 0) : n, 1);
	} while (x.i != n.i);
	return n;
}

/* A product t = contract(g, v). Dimension `key` of t is one of v, and all others are of g or of
 * both. */
typedef struct {
	Node t, g, v;
	uint32_t key;
	OperandDims of_g, of_v;
} KeyProduct;

/* Fills in *p if such a product is behind t, for that dimension of t. Behind reshapes `key` is the
 * last dimension. */
static bool find_key_product(const Graph *g, Node t, uint32_t key, KeyProduct *p)
{
	OperandDims d[2];
	if (key + 1 == node_rank(g, t)) {
		t = source_of(g, t);
		key = node_rank(g, t) - 1;
	}
	TRY(node_is_contraction(g, t) && operand_dims(g, t, 0, &d[0]) &&
	    operand_dims(g, t, 1, &d[1]) && d[0].nsum == 1 && key >= d[0].nbatch);
	const uint32_t v = key - d[0].nbatch >= d[0].nfree;
	*p = (KeyProduct){t, node_in(g, t, 1 - v), node_in(g, t, v), key, d[1 - v], d[v]};
	return d[v].nfree == 1;
}

/* Whether o = contract(w, v), summed over the keys, of weights w with the shape of the product; w
 * is operand k of o. */
static bool weighs_values(const Graph *g, const KeyProduct *p, Node o, uint32_t k)
{
	OperandDims w, v;
	TRY(node_is_contraction(g, o) && node_in(g, o, 1 - k).i == p->v.i &&
	    same_shape(g, node_in(g, o, k), p->t) && operand_dims(g, o, k, &w) &&
	    operand_dims(g, o, 1 - k, &v));
	TRY(w.nsum == 1 && w.sum[0] == p->key && v.sum[0] == p->of_v.free[0] && v.nfree == 1 &&
	    w.nbatch == p->of_v.nbatch);
	for (uint32_t i = 0; i < w.nbatch; i++)
		TRY(w.batch[i] < w.nbatch && p->of_v.batch[w.batch[i]] == v.batch[i]);
	return true;
}

static bool is_before(const Graph *g, Node x, Node n)
{
	do
		n = node_prev(g, n);
	while (n.i && n.i != x.i);
	return n.i != 0;
}

/* Returns contract(weights, v), of weights that may be reshaped and converted, which the graph
 * computes in front of the product for other readers; none: there is no such node. Sets *operand to
 * the operand that the weights are. (With the two in the other order this would take back what it
 * has done.) */
static Node find_weighted(const Graph *g, const KeyProduct *p, Node weights, uint32_t *operand)
{
	for (Use u = node_data(g, weights)->first_use; u.i; u = g->use.data[u.i].next) {
		const Node user = g->use.data[u.i].user;
		Node o = {0};
		if (!user.i || !node_nuses(g, user))
			continue;
		*operand = u.i - node_data(g, user)->in;
		if (weighs_values(g, p, user, *operand) && is_before(g, user, p->t))
			o = user;
		else if (source_of(g, user).i == source_of(g, weights).i)
			o = find_weighted(g, p, user, operand);
		if (o.i)
			return o;
	}
	return (Node){0};
}

/* Returns x, which has the dimensions of the product at at[] and a column, converted, with these
 * dimensions in order, without the keys, and the column last. */
static Node rows_of(Build *b, const KeyProduct *p, Node x, const uint32_t *at, uint32_t column,
		    DType dtype)
{
	uint32_t perm[MAX_RANK], n = 0;
	for (uint32_t k = 0; k < node_rank(b->g, p->t); k++)
		if (k != p->key)
			perm[n++] = at[k];
	perm[n] = column;
	return b_convert(b, b_permute(b, x, perm), dtype);
}

/* Returns the sum of g * o over columns. operand: of o, the weights. */
static Node sum_of_columns(Build *b, const KeyProduct *p, Node o, uint32_t operand, DType dtype,
			   DType acc)
{
	OperandDims w;
	uint32_t in_o[MAX_RANK], in_g[MAX_RANK];
	const uint32_t rank = node_rank(b->g, o), nbatch = p->of_g.nbatch;
	operand_dims(b->g, o, operand, &w);
	for (uint32_t i = 0; i < nbatch; i++) {
		in_o[w.batch[i]] = i;
		in_g[i] = (uint32_t)p->of_g.batch[i];
	}
	for (uint32_t i = 0; i < w.nfree; i++) {
		in_o[w.free[i]] = nbatch + operand + i; /* behind the column, if that is v's */
		in_g[w.free[i]] = (uint32_t)p->of_g.free[i];
	}
	const uint32_t column = operand ? nbatch : rank - 1;
	const Node rows_g = rows_of(b, p, p->g, in_g, (uint32_t)p->of_g.sum[0], dtype),
		   rows_o = rows_of(b, p, o, in_o, column, dtype);
	return b_reduce(b, REDUCE_SUM, b_bin(b, OP_mul, rows_g, rows_o), 1u << (rank - 1), acc);
}

/* Returns the sum of g * o that the reduction n is, in front of n; none: n is no such. */
static Node row_sum(Build *b, Node n)
{
	const Graph *g = b->g;
	const Node x = node_in(g, n, 0);
	int64_t dim[MAX_RANK];
	uint32_t len;
	if (strcmp(node_str(g, n, "kind"), "sum") != 0 || !is_op(g, x, OP_mul) ||
	    !dtype_is_float(node_dtype(g, n)) || !const_list(g, n, "dims", dim, &len) || len != 1)
		return (Node){0};
	for (uint32_t k = 0; k < 2; k++) {
		KeyProduct p;
		uint32_t operand;
		if (!find_key_product(g, node_in(g, x, k), (uint32_t)dim[0], &p) ||
		    sym_lt(b_syms(b), node_dim(g, p.t, p.key),
			   node_dim(g, p.g, (uint32_t)p.of_g.sum[0])) == YES)
			continue;
		const Node o = find_weighted(g, &p, node_in(g, x, 1 - k), &operand);
		if (!o.i)
			continue;
		const Node sum = sum_of_columns(b, &p, o, operand, node_dtype(g, x),
						node_attr(g, n, "acc")->dtype);
		const Type t = *node_type(g, n);
		return b_reshape(b, sum, t.n, t.dim);
	}
	return (Node){0};
}

bool pass_row_sums(Graph *g, PassCtx *c)
{
	bool changed = false;
	for (Node n = g->first, next; n.i; n = next) {
		next = node_next(g, n);
		Build b = pass_build(g, n);
		const Node sum =
			op_lower(node_op(g, n))->role == LOWER_REDUCE ? row_sum(&b, n) : (Node){0};
		if (!sum.i)
			continue;
		pass_replace(g, n, sum);
		changed = true;
	}
	return pass_subgraphs(g, c, pass_row_sums) || changed;
}
