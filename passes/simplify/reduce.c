/* Rules of reductions, windows and contractions. */
#include <string.h>

#include "passes/simplify/rules.h"

static Node reshape_to(Build *b, Node x, Node like)
{
	const Type t = *node_type(b->g, like);
	return b_reshape(b, x, t.n, t.dim);
}

/* Replaces a reduction over dims of extent 1, of whatever kind, by its operand. */
static Node reduce_ones(Build *b, Node n)
{
	Node x = node_in(b->g, n, 0);
	int64_t dim[MAX_RANK];
	uint32_t len;
	if (node_dtype(b->g, x) != node_dtype(b->g, n) || !const_list(b->g, n, "dims", dim, &len))
		return (Node){0};
	for (uint32_t k = 0; k < len; k++)
		if (!is_one(b->g, node_dim(b->g, x, (uint32_t)dim[k])))
			return (Node){0};
	return reshape_to(b, x, n);
}

/* Rewrites max over broadcast dims as max over the others; likewise min, and, or. */
static Node reduce_repeated(Build *b, Node n)
{
	Node x = node_in(b->g, n, 0);
	const char *kind = node_str(b->g, n, "kind");
	bool sum =
		strcmp(kind, "sum") == 0 || strcmp(kind, "prod") == 0 || strcmp(kind, "xor") == 0;
	int64_t dim[MAX_RANK];
	uint32_t len;
	Attr v;
	if (sum || !node_splat(b->g, x, &v) || !const_list(b->g, n, "dims", dim, &len))
		return (Node){0};
	for (uint32_t k = 0; k < len; k++) {
		Sym extent = node_dim(b->g, x, (uint32_t)dim[k]);
		if (sym_le(b_syms(b), b_int(b, 1), extent) != YES)
			return (Node){0};
	}
	const Type t = *node_type(b->g, n);
	return b_full_attr(b, t.dtype, v, t.n, t.dim);
}

static Node window_trivial(Build *b, Node n)
{
	Node x = node_in(b->g, n, 0);
	uint32_t dim = (uint32_t)node_int(b->g, n, "dim");
	SymTab *syms = b_syms(b);
	bool one = sym_is(syms, node_sym(b->g, n, "size"), 1) &&
		   sym_is(syms, node_sym(b->g, n, "stride"), 1) &&
		   sym_is(syms, node_sym(b->g, n, "low"), 0);
	if (!one || node_sym(b->g, n, "count").i != node_dim(b->g, x, dim).i)
		return (Node){0};
	return reshape_to(b, x, n);
}

/* ---- contract reads its operands in any order of dims ---- */

typedef struct {
	Sym batch[MAX_RANK], sum[MAX_RANK];
	uint32_t nbatch, nsum;
} PairedAxes;

static uint32_t read_list(const Graph *g, Node n, const char *name, Sym *out)
{
	uint32_t len;
	const Sym *v = node_ints(g, n, name, &len);
	for (uint32_t k = 0; k < len; k++)
		out[k] = v[k];
	return len;
}

static void read_axes(const Graph *g, Node n, bool left, PairedAxes *a)
{
	a->nbatch = read_list(g, n, left ? "batch_x" : "batch_y", a->batch);
	a->nsum = read_list(g, n, left ? "sum_x" : "sum_y", a->sum);
}

/* Makes the axes those of the permuted operand. Returns false when the free ones would come in
 * another order. */
static bool through_permute(Build *b, Node p, PairedAxes *a)
{
	int64_t perm[MAX_RANK], last = -1;
	uint32_t rank, used = 0;
	int64_t d;
	TRY(const_list(b->g, p, "perm", perm, &rank));
	for (uint32_t k = 0; k < a->nbatch; k++) {
		TRY(sym_is_const(b_syms(b), a->batch[k], &d));
		used |= 1u << d;
		a->batch[k] = b_int(b, perm[d]);
	}
	for (uint32_t k = 0; k < a->nsum; k++) {
		TRY(sym_is_const(b_syms(b), a->sum[k], &d));
		used |= 1u << d;
		a->sum[k] = b_int(b, perm[d]);
	}
	for (uint32_t k = 0; k < rank; k++) {
		if (used >> k & 1)
			continue;
		TRY(perm[k] > last);
		last = perm[k];
	}
	return true;
}

static Node contract_permuted(Build *b, Node n)
{
	Node arg[2] = {node_in(b->g, n, 0), node_in(b->g, n, 1)};
	PairedAxes a[2];
	bool any = false;
	for (uint32_t k = 0; k < 2; k++) {
		read_axes(b->g, n, k == 0, &a[k]);
		PairedAxes moved = a[k];
		if (is_op(b->g, arg[k], OP_permute) && through_permute(b, arg[k], &moved)) {
			a[k] = moved;
			arg[k] = node_in(b->g, arg[k], 0);
			any = true;
		}
	}
	if (!any)
		return (Node){0};
	Attr attr[] = {attr_none(),
		       attr_none(),
		       attr_ints(a[0].batch, a[0].nbatch),
		       attr_ints(a[1].batch, a[1].nbatch),
		       attr_ints(a[0].sum, a[0].nsum),
		       attr_ints(a[1].sum, a[1].nsum),
		       *node_attr(b->g, n, "acc"),
		       *node_attr(b->g, n, "out")};
	return b_node(b, OP_contract, arg, 2, attr, 8);
}

/* ---- sums of weights times a product ---- */

/* The dimensions of an operand of a contraction. */
typedef struct {
	int64_t batch[MAX_RANK], sum[MAX_RANK], free[MAX_RANK];
	uint32_t nbatch, nsum, nfree;
} OperandDims;

/* Sets *d to the dimensions of operand k of a contraction. Returns false if one of them is no
 * constant. */
static bool operand_dims(const Graph *g, Node n, uint32_t k, OperandDims *d)
{
	uint32_t taken = 0;
	TRY(const_list(g, n, k ? "batch_y" : "batch_x", d->batch, &d->nbatch) &&
	    const_list(g, n, k ? "sum_y" : "sum_x", d->sum, &d->nsum));
	for (uint32_t i = 0; i < d->nbatch; i++)
		taken |= 1u << d->batch[i];
	for (uint32_t i = 0; i < d->nsum; i++)
		taken |= 1u << d->sum[i];
	d->nfree = 0;
	for (uint32_t i = 0; i < node_rank(g, node_in(g, n, k)); i++)
		if (!(taken >> i & 1))
			d->free[d->nfree++] = i;
	return true;
}

static bool is_conversion(const Graph *g, Node n)
{
	return is_op(g, n, OP_convert) && dtype_is_float(node_dtype(g, n)) &&
	       dtype_is_float(node_dtype(g, node_in(g, n, 0)));
}

/* A product t = contract(g, v). Dimension `key` of t is one of v, and all others are of g or of
 * both. */
typedef struct {
	Node t, g, v;
	uint32_t key;
	OperandDims of_g, of_v;
} KeyProduct;

/* Whether n is a reshape that keeps the last dimension. */
static bool keeps_last(const Graph *g, Node n)
{
	TRY(is_op(g, n, OP_reshape));
	const Node x = node_in(g, n, 0);
	const uint32_t from = node_rank(g, x), to = node_rank(g, n);
	return from && to && node_dim(g, x, from - 1).i == node_dim(g, n, to - 1).i;
}

/* Fills in *p if such a product is behind t, for that dimension of t. Behind reshapes `key` is the
 * last dimension. */
static bool find_key_product(const Graph *g, Node t, uint32_t key, KeyProduct *p)
{
	OperandDims d[2];
	for (bool found = true; found;) {
		const bool last = key + 1 == node_rank(g, t) && keeps_last(g, t);
		found = last || is_conversion(g, t);
		t = found ? node_in(g, t, 0) : t;
		key = last ? node_rank(g, t) - 1 : key;
	}
	TRY(is_op(g, t, OP_contract) && operand_dims(g, t, 0, &d[0]) &&
	    operand_dims(g, t, 1, &d[1]) && d[0].nsum == 1 && key >= d[0].nbatch);
	const uint32_t v = key - d[0].nbatch >= d[0].nfree;
	*p = (KeyProduct){t, node_in(g, t, 1 - v), node_in(g, t, v), key, d[1 - v], d[v]};
	return d[v].nfree == 1;
}

static bool same_shape(const Graph *g, Node x, Node y)
{
	TRY(node_rank(g, x) == node_rank(g, y));
	for (uint32_t k = 0; k < node_rank(g, x); k++)
		TRY(node_dim(g, x, k).i == node_dim(g, y, k).i);
	return true;
}

/* Whether o = contract(w, v), summed over the keys, of weights w with the shape of the product; w
 * is operand k of o. */
static bool weighs_values(const Graph *g, const KeyProduct *p, Node o, uint32_t k)
{
	OperandDims w, v;
	TRY(is_op(g, o, OP_contract) && node_in(g, o, 1 - k).i == p->v.i &&
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
		else if (is_conversion(g, user) || keeps_last(g, user))
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

/* Rewrites the sum over keys of p * (g v') as the sum over columns of g * o, where o = p v: so the
 * gradient of a softmax whose result weighs values needs p element by element alone, and kernels
 * compute p again of two numbers a row (lower/attention.h). */
static Node reduce_weighted(Build *b, Node n)
{
	const Graph *g = b->g;
	const SymTab *syms = b_syms(b);
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
		    sym_lt(syms, node_dim(g, p.t, p.key),
			   node_dim(g, p.g, (uint32_t)p.of_g.sum[0])) == YES)
			continue;
		const Node o = find_weighted(g, &p, node_in(g, x, 1 - k), &operand);
		if (!o.i)
			continue;
		return reshape_to(b,
				  sum_of_columns(b, &p, o, operand, node_dtype(g, x),
						 node_attr(g, n, "acc")->dtype),
				  n);
	}
	return (Node){0};
}

const Rule reduce_rules[] = {
	{"reduce_ones", OP_reduce, reduce_ones},
	{"reduce_repeated", OP_reduce, reduce_repeated},
	{"reduce_weighted", OP_reduce, reduce_weighted},
	{"window_trivial", OP_window, window_trivial},
	{"contract_permuted", OP_contract, contract_permuted},
	{NULL, OP_none, NULL},
};
