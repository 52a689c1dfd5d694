/* Index maps, reductions, tuples: the parts of the builder that compute shapes. */
#include "ir/build/build.h"

#include <string.h>

#include "ir/op/op.h"

SymTab *b_syms(const Build *b)
{
	return graph_syms(b->g);
}

Sym b_int(const Build *b, int64_t v)
{
	return sym_int(b_syms(b), v);
}

uint32_t b_wrap_dim(const Build *b, int64_t dim, uint32_t rank)
{
	int64_t n = rank ? rank : 1, d = dim < 0 ? dim + n : dim;
	if (d >= 0 && d < n)
		return (uint32_t)d;
	ctx_error(b->g->ir->ctx, b->where, "dimension %lld: expected from %lld to %lld",
		  (long long)dim, (long long)-n, (long long)n - 1);
	return 0;
}

Sym b_dim(const Build *b, Node x, int dim)
{
	if (!x.i)
		return b_int(b, 1);
	uint32_t rank = node_rank(b->g, x), d = b_wrap_dim(b, dim, rank);
	return rank ? node_dim(b->g, x, d) : b_int(b, 1);
}

/* Copies the extents of x, which a later type would move. Returns false for a tuple, which is an
 * error, and, without one, for none. */
static bool dims_of(Build *b, Node x, uint32_t *rank, Sym *dim)
{
	if (!x.i)
		return false;
	const Type *t = node_type(b->g, x);
	if (t->dtype == DT_none)
		return b_error(b, "expected a tensor, got a tuple"), false;
	*rank = t->n;
	if (t->n)
		memcpy(dim, t->dim, t->n * sizeof *dim);
	return true;
}

static bool same_dims(const Sym *a, const Sym *b, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		if (a[k].i != b[k].i)
			return false;
	return true;
}

/* Requires a == b, by proof or by a guard at entry. Returns false if they differ. */
static bool require_equal(Build *b, Sym x, Sym y, const char *why)
{
	Truth eq = sym_eq(b_syms(b), x, y);
	if (eq == MAYBE)
		graph_guard(b->g, GUARD_EQ, x, y, why);
	return eq != NO;
}

/* ---- broadcasting ---- */

bool b_extent_broadcasts(Build *b, Sym x, Sym to)
{
	SymTab *t = b_syms(b);
	return sym_is(t, x, 1) ||
	       (x.i != to.i && sym_eq(t, x, sym_min(t, to, b_int(b, 1))) == YES);
}

/* Sets *out to the extent that two aligned extents broadcast to; a constant is preferred to a
 * symbol. Returns false after an error: they do not broadcast. */
static bool unify(Build *b, Sym x, Sym y, Sym *out)
{
	SymTab *t = b_syms(b);
	const bool spreads = b_extent_broadcasts(b, x, y);
	*out = x;
	if (x.i == y.i || b_extent_broadcasts(b, y, x))
		return true;
	if (spreads || sym_is_const(t, y, NULL))
		*out = y;
	if (spreads || require_equal(b, x, y, "sizes that are broadcast together"))
		return true;
	b_error(b, "sizes %s and %s cannot be broadcast together", sym_str(t, x), sym_str(t, y));
	return false;
}

bool b_common_shape(Build *b, const Node *x, uint32_t n, uint32_t *rank, Sym *dim)
{
	Sym own[MAX_RANK];
	uint32_t r;
	*rank = 0;
	for (uint32_t k = 0; k < n; k++) {
		if (!x[k].i)
			continue;
		if (!dims_of(b, x[k], &r, own))
			return false;
		*rank = r > *rank ? r : *rank;
	}
	for (uint32_t d = 0; d < *rank; d++)
		dim[d] = b_int(b, 1);
	for (uint32_t k = 0; k < n; k++) {
		r = 0;
		if (x[k].i)
			dims_of(b, x[k], &r, own);
		for (uint32_t d = 0; d < r; d++) {
			Sym *at = &dim[*rank - r + d];
			if (!unify(b, *at, own[d], at))
				return false;
		}
	}
	return true;
}

Node b_broadcast(Build *b, Node x, uint32_t rank, const Sym *dim)
{
	uint32_t map[MAX_RANK] = {0};
	if (!x.i)
		return x;
	uint32_t r = node_rank(b->g, x);
	if (r > rank)
		return b_error(b, "cannot broadcast %u dimensions to %u", r, rank);
	for (uint32_t k = 0; k < r; k++)
		map[k] = rank - r + k;
	return b_broadcast_in_dim(b, x, rank, dim, map);
}

/* Returns x, of extent min(n, 1) along `axis`, with extent n: its only element is at every
 * place. */
static Node repeat_only(Build *b, Node x, uint32_t axis, Sym n)
{
	uint32_t perm[MAX_RANK], rank = node_rank(b->g, x);
	Sym axes[] = {b_int(b, axis)}, shape[] = {n, b_int(b, 1)};
	Node in[] = {x, b_full_int(b, DT_i64, 0, 2, shape)};
	Attr attr[] = {attr_none(), attr_none(), attr_int(b->g->ir, 0), attr_ints(axes, 1),
		       attr_str(b->g->ir, "clamp")};
	Node y = b_node(b, OP_gather, in, 2, attr, 5);
	for (uint32_t k = 0; k < rank; k++)
		perm[k] = k == axis ? 0 : k < axis ? k + 1 : k;
	return b_permute(b, y, perm);
}

Node b_broadcast_in_dim(Build *b, Node x, uint32_t rank, const Sym *dim, const uint32_t *map)
{
	Sym own[MAX_RANK], m[MAX_RANK];
	uint32_t r;
	Attr v;
	if (!dims_of(b, x, &r, own))
		return (Node){0};
	if (r > rank || rank > MAX_RANK)
		return b_error(b, "cannot broadcast %u dimensions to %u", r, rank);
	for (uint32_t k = 0; k < r; k++) {
		if (map[k] >= rank || (k && map[k] <= map[k - 1]))
			ctx_bug(b->g->ir->ctx, "broadcast map is not increasing");
		const bool same = sym_eq(b_syms(b), own[k], dim[map[k]]) == YES;
		const bool spreads = !same && b_extent_broadcasts(b, own[k], dim[map[k]]);
		if (spreads && !sym_is(b_syms(b), own[k], 1)) {
			x = repeat_only(b, x, k, dim[map[k]]);
			own[k] = dim[map[k]];
		} else if (!spreads && !require_equal(b, own[k], dim[map[k]],
						      "sizes that are broadcast together"))
			return b_error(b, "size %s cannot be broadcast to %s",
				       sym_str(b_syms(b), own[k]), sym_str(b_syms(b), dim[map[k]]));
		m[k] = b_int(b, map[k]);
	}
	if (r == rank && same_dims(own, dim, rank))
		return x;
	if (b_splat(b, x, &v))
		return b_full_attr(b, node_dtype(b->g, x), v, rank, dim);
	Attr attr[] = {attr_none(), attr_ints(dim, rank), attr_ints(m, r)};
	return b_node(b, OP_broadcast, &x, 1, attr, 3);
}

/* ---- reshape, permute ---- */

Node b_reshape(Build *b, Node x, uint32_t rank, const Sym *dim)
{
	Sym own[MAX_RANK], n = b_int(b, 1);
	uint32_t r;
	Attr v;
	if (!dims_of(b, x, &r, own))
		return (Node){0};
	if (rank > MAX_RANK)
		return b_error(b, "expected at most %d dimensions, got %u", MAX_RANK, rank);
	if (r == rank && same_dims(own, dim, rank))
		return x;
	for (uint32_t k = 0; k < rank; k++)
		n = sym_mul(b_syms(b), n, dim[k]);
	Sym have = type_numel(b->g->ir, node_type_id(b->g, x));
	if (!require_equal(b, have, n, "element counts of a reshape"))
		return b_error(b, "cannot reshape %s elements to %s", sym_str(b_syms(b), have),
			       sym_str(b_syms(b), n));
	if (b_splat(b, x, &v))
		return b_full_attr(b, node_dtype(b->g, x), v, rank, dim);
	if (node_op(b->g, x) == OP_reshape)
		return b_reshape(b, node_in(b->g, x, 0), rank, dim);
	Attr attr[] = {attr_none(), attr_ints(dim, rank)};
	return b_node(b, OP_reshape, &x, 1, attr, 2);
}

Node b_ravel(Build *b, Node x)
{
	if (!x.i)
		return x;
	Sym n = type_numel(b->g->ir, node_type_id(b->g, x));
	return b_reshape(b, x, 1, &n);
}

Node b_permute(Build *b, Node x, const uint32_t *perm)
{
	Sym own[MAX_RANK], dim[MAX_RANK], p[MAX_RANK];
	uint32_t r, seen = 0;
	bool identity = true;
	Attr v;
	if (!dims_of(b, x, &r, own))
		return (Node){0};
	for (uint32_t k = 0; k < r; k++) {
		if (perm[k] >= r || seen >> perm[k] & 1)
			return b_error(b, "expected a permutation of %u dimensions", r);
		seen |= 1u << perm[k];
		identity = identity && perm[k] == k;
		dim[k] = own[perm[k]];
		p[k] = b_int(b, perm[k]);
	}
	if (identity)
		return x;
	if (b_splat(b, x, &v))
		return b_full_attr(b, node_dtype(b->g, x), v, r, dim);
	Attr attr[] = {attr_none(), attr_ints(p, r)};
	return b_node(b, OP_permute, &x, 1, attr, 2);
}

Node b_transpose(Build *b, Node x, int d0, int d1)
{
	uint32_t perm[MAX_RANK] = {0}, r = x.i ? node_rank(b->g, x) : 0;
	if (!x.i || r == 0)
		return x;
	for (uint32_t k = 0; k < r; k++)
		perm[k] = k;
	uint32_t a = b_wrap_dim(b, d0, r), c = b_wrap_dim(b, d1, r);
	perm[a] = c;
	perm[c] = a;
	return b_permute(b, x, perm);
}

Node b_unsqueeze(Build *b, Node x, int dim)
{
	Sym own[MAX_RANK], out[MAX_RANK + 1];
	uint32_t r;
	if (!dims_of(b, x, &r, own))
		return (Node){0};
	uint32_t d = b_wrap_dim(b, dim, r + 1);
	for (uint32_t k = 0; k <= r; k++)
		out[k] = k < d ? own[k] : k == d ? b_int(b, 1) : own[k - 1];
	return b_reshape(b, x, r + 1, out);
}

/* Removes a dimension of extent 1. As in ATen, a dimension that is not provably 1 stays. */
Node b_squeeze(Build *b, Node x, int dim)
{
	Sym own[MAX_RANK];
	uint32_t r;
	if (!dims_of(b, x, &r, own) || r == 0)
		return x;
	uint32_t d = b_wrap_dim(b, dim, r);
	if (!sym_is(b_syms(b), own[d], 1))
		return x;
	memmove(own + d, own + d + 1, (r - d - 1) * sizeof *own);
	return b_reshape(b, x, r - 1, own);
}

/* ---- slice, pad, concat, reverse ---- */

Node b_slice(Build *b, Node x, int dim, Sym start, Sym end, Sym step)
{
	Sym own[MAX_RANK], lo[MAX_RANK], st[MAX_RANK];
	uint32_t r;
	Attr v;
	if (!dims_of(b, x, &r, own))
		return (Node){0};
	if (r == 0)
		return b_error(b, "cannot slice a tensor without dimensions");
	uint32_t d = b_wrap_dim(b, dim, r);
	if (sym_is(b_syms(b), start, 0) && end.i == own[d].i && sym_is(b_syms(b), step, 1))
		return x;
	for (uint32_t k = 0; k < r; k++) {
		lo[k] = b_int(b, 0);
		st[k] = b_int(b, 1);
	}
	lo[d] = start;
	own[d] = end;
	st[d] = step;
	if (b_splat(b, x, &v)) {
		own[d] = sym_ceildiv(b_syms(b), sym_sub(b_syms(b), end, start), step);
		return b_full_attr(b, node_dtype(b->g, x), v, r, own);
	}
	Attr attr[] = {attr_none(), attr_ints(lo, r), attr_ints(own, r), attr_ints(st, r)};
	return b_node(b, OP_slice, &x, 1, attr, 4);
}

Node b_update_slice(Build *b, Node x, Node update, const Node *start)
{
	Node in[2 + MAX_RANK] = {x, update};
	uint32_t rank = x.i && update.i ? node_rank(b->g, x) : 0;
	for (uint32_t k = 0; k < rank; k++)
		in[2 + k] = start[k];
	Attr attr[] = {attr_none(), attr_none(), attr_int(b->g->ir, rank)};
	return x.i && update.i ? b_node(b, OP_update_slice, in, 2 + rank, attr, 3) : (Node){0};
}

Node b_select_dim(Build *b, Node x, int dim, Sym index)
{
	int64_t v;
	if (!x.i)
		return x;
	if (node_rank(b->g, x) == 0)
		return b_error(b, "cannot select from a tensor without dimensions");
	if (sym_is_const(b_syms(b), index, &v) && v < 0)
		index = sym_add(b_syms(b), index, b_dim(b, x, dim));
	Node s = b_slice(b, x, dim, index, sym_addi(b_syms(b), index, 1), b_int(b, 1));
	return b_squeeze(b, s, dim);
}

Node b_pad(Build *b, Node x, const Sym *low, const Sym *high, Node value)
{
	Sym own[MAX_RANK], zero[MAX_RANK];
	uint32_t r;
	bool none = true;
	if (!dims_of(b, x, &r, own) || !value.i)
		return (Node){0};
	for (uint32_t k = 0; k < r; k++) {
		zero[k] = b_int(b, 0);
		none = none && sym_is(b_syms(b), low[k], 0) && sym_is(b_syms(b), high[k], 0);
	}
	if (none)
		return x;
	Node in[] = {x, b_convert(b, value, node_dtype(b->g, x))};
	Attr attr[] = {attr_none(), attr_none(), attr_ints(low, r), attr_ints(high, r),
		       attr_ints(zero, r)};
	return b_node(b, OP_pad, in, 2, attr, 5);
}

Node b_concat(Build *b, const Node *x, uint32_t n, int dim)
{
	if (n == 0)
		return b_error(b, "expected at least one tensor to concatenate");
	for (uint32_t k = 0; k < n; k++)
		if (!x[k].i)
			return (Node){0};
	if (n == 1)
		return x[0];
	if (node_rank(b->g, x[0]) == 0)
		return b_error(b, "cannot concatenate tensors without dimensions");
	DType d = b_promote(b, x, n);
	Node *in = ARENA_ARRAY(b->g->ir->ctx->scratch, Node, n);
	for (uint32_t k = 0; k < n; k++)
		in[k] = b_convert(b, x[k], d);
	uint32_t at = b_wrap_dim(b, dim, node_rank(b->g, x[0]));
	Attr attr[] = {attr_int(b->g->ir, n), attr_int(b->g->ir, at)};
	return b_node(b, OP_concat, in, n, attr, 2);
}

Node b_reverse(Build *b, Node x, int dim)
{
	Attr v;
	if (!x.i || node_rank(b->g, x) == 0)
		return x;
	uint32_t d = b_wrap_dim(b, dim, node_rank(b->g, x));
	if (b_splat(b, x, &v) || sym_is(b_syms(b), node_dim(b->g, x, d), 1))
		return x;
	Sym s = b_int(b, d);
	Attr attr[] = {attr_none(), attr_ints(&s, 1)};
	return b_node(b, OP_reverse, &x, 1, attr, 2);
}

/* ---- reductions ---- */

Node b_reduce(Build *b, ReduceKind kind, Node x, uint32_t dims, DType acc)
{
	Sym d[MAX_RANK];
	uint32_t n = 0;
	if (!x.i || !dims)
		return x;
	uint32_t r = node_rank(b->g, x);
	if (dims >> r)
		return b_error(b, "a reduction over more dimensions than the %u there are", r);
	for (uint32_t k = 0; k < r; k++)
		if (dims >> k & 1)
			d[n++] = b_int(b, k);
	DType t = node_dtype(b->g, x);
	Attr attr[] = {attr_none(), attr_str(b->g->ir, reduce_name(kind)), attr_ints(d, n),
		       attr_dtype(acc ? acc : dtype_compute(t))};
	return b_node(b, OP_reduce, &x, 1, attr, 4);
}

Node b_reduce_keep(Build *b, ReduceKind kind, Node x, uint32_t dims, DType acc)
{
	Sym own[MAX_RANK];
	uint32_t r;
	if (!dims_of(b, x, &r, own))
		return (Node){0};
	for (uint32_t k = 0; k < r; k++)
		if (dims >> k & 1)
			own[k] = b_int(b, 1);
	Node y = b_reduce(b, kind, x, dims, acc);
	return y.i ? b_reshape(b, y, r, own) : y;
}

/* ---- tuples ---- */

Node b_tuple(Build *b, const Node *x, uint32_t n)
{
	return b_node(b, OP_tuple, x, n, NULL, 0);
}

Node b_get(Build *b, Node tuple, uint32_t k)
{
	if (!tuple.i)
		return tuple;
	if (node_op(b->g, tuple) == OP_tuple && k < node_nin(b->g, tuple))
		return node_in(b->g, tuple, k);
	Attr attr[] = {attr_none(), attr_int(b->g->ir, k)};
	return b_node(b, OP_get, &tuple, 1, attr, 2);
}
