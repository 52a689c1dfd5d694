/* Rules of index maps. */
#include <string.h>

#include "ops/rules/rules.h"
#include "passes/simplify/rules.h"

static Node in(const Build *b, Node n, uint32_t k)
{
	return node_in(b->g, n, k);
}

static uint32_t rank_of(const Build *b, Node n)
{
	return node_rank(b->g, n);
}

static Node reshape_to(Build *b, Node x, Node like)
{
	const Type t = *node_type(b->g, like);
	return b_reshape(b, x, t.n, t.dim);
}

/* Rewrites any movement of a splat as a splat. */
static Node move_splat(Build *b, Node n)
{
	Attr v;
	if (!op_info(node_op(b->g, n))->moves || !b_splat(b, in(b, n, 0), &v))
		return (Node){0};
	const Type t = *node_type(b->g, n);
	return b_full_attr(b, t.dtype, v, t.n, t.dim);
}

/* ---- reshape ---- */

static Node reshape_same(Build *b, Node n)
{
	return same_shape(b->g, n, in(b, n, 0)) ? in(b, n, 0) : (Node){0};
}

static Node reshape_twice(Build *b, Node n)
{
	Node x = in(b, n, 0);
	return is_nested(b->g, n, x) ? reshape_to(b, in(b, x, 0), n) : (Node){0};
}

/* ---- permute ---- */

/* Sets dim[] to an attribute that lists dims, which the verifier found constant. */
static void dims_of(const Build *b, Node n, const char *name, uint32_t dim[MAX_RANK])
{
	int64_t v[MAX_RANK] = {0};
	uint32_t len;
	if (!const_list(b->g, n, name, v, &len))
		ctx_bug(b->g->ir->ctx, "%s of %s is not constant", name, node_where(b->g, n));
	for (uint32_t k = 0; k < MAX_RANK; k++)
		dim[k] = (uint32_t)v[k];
}

static void perm_of(const Build *b, Node n, uint32_t perm[MAX_RANK])
{
	dims_of(b, n, "perm", perm);
}

/* Rewrites a permutation that keeps the order of all extents other than 1 as a reshape. */
static Node permute_trivial(Build *b, Node n)
{
	uint32_t perm[MAX_RANK], last = 0;
	bool any = false, identity = true;
	perm_of(b, n, perm);
	for (uint32_t k = 0; k < rank_of(b, n); k++) {
		identity &= perm[k] == k;
		if (is_one(b->g, node_dim(b->g, n, k)))
			continue;
		if (any && perm[k] < last)
			return (Node){0};
		last = perm[k];
		any = true;
	}
	return identity ? in(b, n, 0) : reshape_to(b, in(b, n, 0), n);
}

static Node permute_twice(Build *b, Node n)
{
	Node x = in(b, n, 0);
	uint32_t outer[MAX_RANK], inner[MAX_RANK], both[MAX_RANK];
	if (!is_nested(b->g, n, x))
		return (Node){0};
	perm_of(b, n, outer);
	perm_of(b, x, inner);
	for (uint32_t k = 0; k < rank_of(b, n); k++)
		both[k] = inner[outer[k]];
	return b_permute(b, in(b, x, 0), both);
}

/* ---- broadcast ---- */

static void map_of(const Build *b, Node n, uint32_t map[MAX_RANK])
{
	dims_of(b, n, "map", map);
}

static Node broadcast_to(Build *b, Node x, Node like, const uint32_t *map)
{
	const Type t = *node_type(b->g, like);
	return b_broadcast_in_dim(b, x, t.n, t.dim, map);
}

/* Rewrites a broadcast that repeats nothing, where new dims are of extent 1, as a reshape. */
static Node broadcast_trivial(Build *b, Node n)
{
	Node x = in(b, n, 0);
	uint32_t map[MAX_RANK], k = 0, rank = rank_of(b, x);
	if (same_shape(b->g, n, x))
		return x;
	map_of(b, n, map);
	for (uint32_t d = 0; d < rank_of(b, n); d++) {
		Sym extent = node_dim(b->g, n, d);
		bool own = k < rank && map[k] == d;
		if (own ? node_dim(b->g, x, k).i != extent.i : !is_one(b->g, extent))
			return (Node){0};
		k += own;
	}
	return reshape_to(b, x, n);
}

static Node broadcast_twice(Build *b, Node n)
{
	Node x = in(b, n, 0);
	uint32_t outer[MAX_RANK], inner[MAX_RANK];
	if (!is_nested(b->g, n, x))
		return (Node){0};
	map_of(b, n, outer);
	map_of(b, x, inner);
	for (uint32_t k = 0; k < rank_of(b, in(b, x, 0)); k++)
		inner[k] = outer[inner[k]];
	return broadcast_to(b, in(b, x, 0), n, inner);
}

/* Rewrites broadcast(reshape(x)) as broadcast(x) where the reshape only adds dims of extent 1:
 * those are new dims of the broadcast as well. */
static Node broadcast_unsqueezed(Build *b, Node n)
{
	Node r = in(b, n, 0);
	uint32_t map[MAX_RANK], mine[MAX_RANK], k = 0;
	if (!is_op(b->g, r, OP_reshape))
		return (Node){0};
	Node x = in(b, r, 0);
	if (rank_of(b, x) >= rank_of(b, r))
		return (Node){0};
	map_of(b, n, map);
	for (uint32_t d = 0; d < rank_of(b, r); d++) {
		bool match = k < rank_of(b, x) && node_dim(b->g, x, k).i == node_dim(b->g, r, d).i;
		if (match)
			mine[k++] = map[d];
		else if (!is_one(b->g, node_dim(b->g, r, d)))
			return (Node){0};
	}
	return k == rank_of(b, x) ? broadcast_to(b, x, n, mine) : (Node){0};
}

static bool is_of_number(const Build *b, Node broadcast)
{
	return rank_of(b, in(b, broadcast, 0)) == 0;
}

/* Rewrites f(broadcast(x), ...) as broadcast(f(x, ...)) when all operands are alike, or one
 * number: fewer elements. */
static Node broadcast_outside(Build *b, Node n)
{
	const Graph *g = b->g;
	Node first = {0}, arg[4];
	uint32_t nin = node_nin(g, n), map[MAX_RANK];
	Attr v;
	if (op_lower(node_op(g, n))->role != LOWER_MAP || nin > 4)
		return (Node){0};
	for (uint32_t k = 0; k < nin; k++) {
		Node x = in(b, n, k);
		if (node_splat(g, x, NULL))
			continue;
		if (!is_op(g, x, OP_broadcast))
			return (Node){0};
		if (!first.i || is_of_number(b, first))
			first = x;
		else if (!is_of_number(b, x) &&
			 (!same_shape(b->g, in(b, x, 0), in(b, first, 0)) ||
			  !attr_equal(node_attr(g, x, "map"), node_attr(g, first, "map"))))
			return (Node){0};
	}
	if (!first.i)
		return (Node){0};
	const Type small = *node_type(g, in(b, first, 0));
	for (uint32_t k = 0; k < nin; k++) {
		Node x = in(b, n, k);
		if (b_splat(b, x, &v))
			arg[k] = b_full_attr(b, node_dtype(g, x), v, small.n, small.dim);
		else
			arg[k] = is_of_number(b, x)
					 ? b_broadcast(b, in(b, x, 0), small.n, small.dim)
					 : in(b, x, 0);
	}
	map_of(b, first, map);
	return broadcast_to(b, b_again(b, n, arg), n, map);
}

/* ---- gather ---- */

/* Rewrites a gather whose indices are all the same place, which is in range, as a slice,
 * repeated. */
static Node gather_number(Build *b, Node n)
{
	const Graph *g = b->g;
	Node x = in(b, n, 0), index = in(b, n, 1);
	uint32_t naxes, nbatch = (uint32_t)node_int(g, n, "batch"), rank = 0, map[MAX_RANK];
	int64_t axis[MAX_RANK];
	Sym dim[MAX_RANK];
	bool indexed[MAX_RANK] = {false};
	Attr v;
	if (!b_splat(b, index, &v) || v.kind != ATTR_int ||
	    !const_list(g, n, "axes", axis, &naxes) || sym_le(b_syms(b), b_int(b, 0), v.s) != YES)
		return (Node){0};
	uint32_t places = rank_of(b, index) - 1 - nbatch, whole = rank_of(b, x);
	for (uint32_t k = 0; k < naxes; k++) {
		if (sym_lt(b_syms(b), v.s, node_dim(g, x, (uint32_t)axis[k])) != YES)
			return (Node){0};
		indexed[axis[k]] = true;
	}
	for (uint32_t k = 0; k < naxes; k++)
		x = b_slice(b, x, (int)axis[k], v.s, sym_addi(b_syms(b), v.s, 1), b_int(b, 1));
	for (uint32_t k = 0; k < whole; k++) {
		if (indexed[k])
			continue;
		map[rank] = rank < nbatch ? rank : rank + places;
		dim[rank++] = node_dim(b->g, x, k);
	}
	return broadcast_to(b, b_reshape(b, x, rank, dim), n, map);
}

/* ---- slice, pad, concat, reverse ---- */

static Node slice_all(Build *b, Node n)
{
	return same_shape(b->g, n, in(b, n, 0)) ? in(b, n, 0) : (Node){0};
}

/* Rewrites a slice of a slice: start + step * start', step * step'. */
static Node slice_twice(Build *b, Node n)
{
	Node x = in(b, n, 0);
	SymTab *t = b_syms(b);
	uint32_t len;
	Sym start[MAX_RANK], end[MAX_RANK], step[MAX_RANK];
	if (!is_nested(b->g, n, x))
		return (Node){0};
	const Sym *s1 = node_ints(b->g, n, "start", &len), *e1 = node_ints(b->g, n, "end", &len);
	const Sym *p1 = node_ints(b->g, n, "step", &len), *s0 = node_ints(b->g, x, "start", &len);
	const Sym *p0 = node_ints(b->g, x, "step", &len);
	for (uint32_t k = 0; k < len; k++) {
		/* Past the end of the inner slice other elements of the operand would be read; e1
		 * is at most its extent, and with a step the last element is not beyond start + (e1
		 * - 1) * step + 1. */
		start[k] = sym_add(t, s0[k], sym_mul(t, p0[k], s1[k]));
		Sym last = sym_mul(t, p0[k], sym_addi(t, e1[k], -1));
		end[k] = is_one(b->g, p0[k]) ? sym_add(t, s0[k], e1[k])
					     : sym_addi(t, sym_add(t, s0[k], last), 1);
		step[k] = sym_mul(t, p0[k], p1[k]);
		if (!is_one(b->g, p0[k]) && sym_lt(t, s1[k], e1[k]) != YES)
			return (Node){0}; /* of no elements: that end may lie before the start */
	}
	Attr attr[] = {attr_none(), attr_ints(start, len), attr_ints(end, len),
		       attr_ints(step, len)};
	Node y = b_node(b, OP_slice, (Node[]){in(b, x, 0)}, 1, attr, 4);
	return node_type_id(b->g, y).i == node_type_id(b->g, n).i ? y : (Node){0};
}

/* Finds the dim that alone is cut, with step 1. Returns false when there is none or several. */
static bool single_cut(const Build *b, Node n, uint32_t *dim, Sym *start, Sym *end)
{
	uint32_t len, found = 0;
	const Sym *s = node_ints(b->g, n, "start", &len), *e = node_ints(b->g, n, "end", &len);
	const Sym *p = node_ints(b->g, n, "step", &len);
	for (uint32_t k = 0; k < len; k++) {
		if (node_dim(b->g, n, k).i == node_dim(b->g, in(b, n, 0), k).i)
			continue;
		*dim = k;
		*start = s[k];
		*end = e[k];
		found += is_one(b->g, p[k]) ? 1 : 2;
	}
	return found == 1;
}

/* Rewrites a slice that lies in one part of a concat as a slice of the part. */
static Node slice_of_concat(Build *b, Node n)
{
	Node x = in(b, n, 0);
	SymTab *t = b_syms(b);
	uint32_t dim = 0;
	Sym start, end, at = b_int(b, 0);
	if (!x.i || op_lower(node_op(b->g, x))->holds != HOLDS_OPERANDS ||
	    !single_cut(b, n, &dim, &start, &end) || node_int(b->g, x, "dim") != (int64_t)dim)
		return (Node){0};
	for (uint32_t k = 0; k < node_nin(b->g, x); k++) {
		Node part = in(b, x, k);
		Sym next = sym_add(t, at, node_dim(b->g, part, dim));
		if (sym_le(t, at, start) == YES && sym_le(t, end, next) == YES)
			return b_slice(b, part, (int)dim, sym_sub(t, start, at),
				       sym_sub(t, end, at), b_int(b, 1));
		at = next;
	}
	return (Node){0};
}

static bool all_zero(const Build *b, Node n, const char *name)
{
	uint32_t len;
	const Sym *v = node_ints(b->g, n, name, &len);
	for (uint32_t k = 0; k < len; k++)
		TRY(sym_is(b_syms(b), v[k], 0));
	return true;
}

static Node pad_nothing(Build *b, Node n)
{
	bool none = all_zero(b, n, "low") && all_zero(b, n, "high") && all_zero(b, n, "interior");
	return none ? in(b, n, 0) : (Node){0};
}

/* Removes parts without elements. One part is itself; nested concats along one dim are one. */
static Node concat_parts(Build *b, Node n)
{
	uint32_t nin = node_nin(b->g, n), dim = (uint32_t)node_int(b->g, n, "dim"), total = 0,
		 kept = 0;
	bool flatten = false;
	for (uint32_t k = 0; k < nin; k++) {
		Node x = in(b, n, k);
		bool nested = is_nested(b->g, n, x) && node_int(b->g, x, "dim") == (int64_t)dim;
		flatten |= nested && node_nuses(b->g, x) == 1;
		total += nested ? node_nin(b->g, x) : 1;
	}
	Node *part = arena_calloc(b->g->ir->ctx->scratch, total, sizeof *part);
	for (uint32_t k = 0; k < nin; k++) {
		Node x = in(b, n, k);
		bool nested = is_nested(b->g, n, x) &&
			      node_int(b->g, x, "dim") == (int64_t)dim && node_nuses(b->g, x) == 1;
		for (uint32_t j = 0; nested && j < node_nin(b->g, x); j++)
			part[kept++] = in(b, x, j);
		if (!nested && !sym_is(b_syms(b), node_dim(b->g, x, dim), 0))
			part[kept++] = x;
	}
	if (kept == 0 || (kept == nin && !flatten))
		return kept == 1 ? part[0] : (Node){0};
	return kept == 1 ? part[0] : b_concat(b, part, kept, (int)dim);
}

static Node reverse_trivial(Build *b, Node n)
{
	uint32_t dim[MAX_RANK], len;
	dims_of(b, n, "dims", dim);
	node_ints(b->g, n, "dims", &len);
	for (uint32_t k = 0; k < len; k++)
		if (!is_one(b->g, node_dim(b->g, n, dim[k])))
			return (Node){0};
	return in(b, n, 0);
}

static Node reverse_twice(Build *b, Node n)
{
	Node x = in(b, n, 0);
	bool same = is_nested(b->g, n, x) &&
		    attr_equal(node_attr(b->g, x, "dims"), node_attr(b->g, n, "dims"));
	return same ? in(b, x, 0) : (Node){0};
}

/* Returns x for a box as large as x, which is all of it: starts are clamped so that a box fits. */
static Node slice_at_all(Build *b, Node n)
{
	return same_shape(b->g, n, in(b, n, 0)) ? in(b, n, 0) : (Node){0};
}

static Node update_slice_all(Build *b, Node n)
{
	return same_shape(b->g, n, in(b, n, 1)) ? in(b, n, 1) : (Node){0};
}

const Rule shape_rules[] = {
	{"move_splat", OP_none, move_splat},
	{"reshape_same", OP_reshape, reshape_same},
	{"reshape_twice", OP_reshape, reshape_twice},
	{"permute_trivial", OP_permute, permute_trivial},
	{"permute_twice", OP_permute, permute_twice},
	{"broadcast_trivial", OP_broadcast, broadcast_trivial},
	{"broadcast_twice", OP_broadcast, broadcast_twice},
	{"broadcast_unsqueezed", OP_broadcast, broadcast_unsqueezed},
	{"broadcast_outside", OP_none, broadcast_outside},
	{"gather_number", OP_gather, gather_number},
	{"slice_all", OP_slice, slice_all},
	{"slice_twice", OP_slice, slice_twice},
	{"slice_at_all", OP_slice_at, slice_at_all},
	{"update_slice_all", OP_update_slice, update_slice_all},
	{"slice_of_concat", OP_slice, slice_of_concat},
	{"pad_nothing", OP_pad, pad_nothing},
	{"concat_parts", OP_concat, concat_parts},
	{"reverse_trivial", OP_reverse, reverse_trivial},
	{"reverse_twice", OP_reverse, reverse_twice},
	{NULL, OP_none, NULL},
};
