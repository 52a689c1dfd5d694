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

const Rule reduce_rules[] = {
	{"reduce_ones", OP_reduce, reduce_ones},
	{"reduce_repeated", OP_reduce, reduce_repeated},
	{"window_trivial", OP_window, window_trivial},
	{"contract_permuted", OP_contract, contract_permuted},
	{NULL, OP_none, NULL},
};
