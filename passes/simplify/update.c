/* Rules of boxes that are replaced: what programs leave that write into parts of arrays, as
 * u[1:-1, 1:-1] += x, where each part in brackets is a slice of its own:
 *
 *   %1 = slice(%u, start=[1, 0], end=[9, 10])        rows
 *   %2 = update_slice(%1, %x, [0, 1])                columns of the rows
 *   %3 = update_slice(%u, %2, [1, 0])         ->     %3 = update_slice(%u, %x, [1, 1])
 *   %4 = slice(%3, start=[1, 1], end=[9, 9])  ->     readers of %4 read %x */
#include "ops/rules/box.h"
#include "passes/simplify/rules.h"

static Node in(const Build *b, Node n, uint32_t k)
{
	return node_in(b->g, n, k);
}

/* Whether two updates put boxes of one shape at one place. */
static bool same_box(const Build *b, Node x, Node y)
{
	Attr p, q;
	TRY(same_shape(b->g, x, y) && same_shape(b->g, in(b, x, 1), in(b, y, 1)));
	for (uint32_t k = 2; k < node_nin(b->g, x); k++) {
		Node i = in(b, x, k), j = in(b, y, k);
		TRY(i.i == j.i ||
		    (node_splat(b->g, i, &p) && node_splat(b->g, j, &q) && attr_equal(&p, &q)));
	}
	return true;
}

/* Rewrites an update of a box that was replaced just before: the first one is not seen. Where
 * others read the first one, the second may be computed in its memory, and stays. */
static Node update_again(Build *b, Node n)
{
	Node x = in(b, n, 0);
	if (!is_nested(b->g, n, x) || !same_box(b, x, n))
		return (Node){0};
	if (in(b, x, 1).i == in(b, n, 1).i)
		return x;
	if (node_nuses(b->g, x) != 1)
		return (Node){0};
	Node start[MAX_RANK];
	for (uint32_t k = 0; k < node_rank(b->g, n); k++)
		start[k] = in(b, n, k + 2);
	return b_update_slice(b, in(b, x, 0), in(b, n, 1), start);
}

/* Rewrites an update of x by an updated slice of x as one update. */
static Node update_of_slice(Build *b, Node n)
{
	Node inner = in(b, n, 1);
	Sym at[MAX_RANK], from[MAX_RANK], within[MAX_RANK];
	if (!is_nested(b->g, n, inner) || !node_replaces_box(b->g, n, at) ||
	    !node_replaces_box(b->g, inner, within))
		return (Node){0};
	Node box = in(b, inner, 0);
	if (!node_is_box(b->g, box, from) || in(b, box, 0).i != in(b, n, 0).i)
		return (Node){0};
	for (uint32_t k = 0; k < node_rank(b->g, n); k++)
		if (from[k].i != at[k].i)
			return (Node){0};
	Node start[MAX_RANK];
	for (uint32_t k = 0; k < node_rank(b->g, n); k++)
		start[k] = b_from_size(b, sym_add(b_syms(b), at[k], within[k]));
	return b_update_slice(b, in(b, n, 0), in(b, inner, 1), start);
}

/* Rewrites a slice of an updated tensor that lies in the box as a slice of the box, and one that
 * lies outside as a slice of what was updated. */
static Node slice_of_update(Build *b, Node n)
{
	Node x = in(b, n, 0);
	SymTab *t = b_syms(b);
	Sym at[MAX_RANK], s[MAX_RANK], e[MAX_RANK];
	uint32_t len;
	if (!node_replaces_box(b->g, x, at))
		return (Node){0};
	const Sym *start = node_ints(b->g, n, "start", &len),
		  *end = node_ints(b->g, n, "end", &len);
	bool inside = true, outside = false;
	for (uint32_t k = 0; k < len; k++) {
		Sym last = sym_add(t, at[k], node_dim(b->g, in(b, x, 1), k));
		inside &= sym_le(t, at[k], start[k]) == YES && sym_le(t, end[k], last) == YES;
		outside |= sym_le(t, end[k], at[k]) == YES || sym_le(t, last, start[k]) == YES;
		s[k] = sym_sub(t, start[k], at[k]);
		e[k] = sym_sub(t, end[k], at[k]);
	}
	const Attr *step = node_attr(b->g, n, "step");
	Attr whole[] = {attr_none(), *node_attr(b->g, n, "start"), *node_attr(b->g, n, "end"),
			*step};
	Attr part[] = {attr_none(), attr_ints(s, len), attr_ints(e, len), *step};
	if (!inside && !outside)
		return (Node){0};
	Node y = b_node(b, OP_slice, (Node[]){in(b, x, inside ? 1 : 0)}, 1, inside ? part : whole,
			4);
	return node_type_id(b->g, y).i == node_type_id(b->g, n).i ? y : (Node){0};
}

/* Rewrites an update of a splat, as of zeros, as a pad, which its readers can compute. */
static Node update_of_splat(Build *b, Node n)
{
	Attr v;
	Sym at[MAX_RANK], high[MAX_RANK];
	if (!b_splat(b, in(b, n, 0), &v) || !node_replaces_box(b->g, n, at))
		return (Node){0};
	for (uint32_t k = 0; k < node_rank(b->g, n); k++)
		high[k] = sym_sub(b_syms(b), sym_sub(b_syms(b), node_dim(b->g, n, k), at[k]),
				  node_dim(b->g, in(b, n, 1), k));
	Node value = b_full_attr(b, node_dtype(b->g, n), v, 0, NULL);
	return b_pad(b, in(b, n, 1), at, high, value);
}

const Rule update_rules[] = {
	{"update_of_splat", OP_update_slice, update_of_splat},
	{"update_again", OP_update_slice, update_again},
	{"update_of_slice", OP_update_slice, update_of_slice},
	{"slice_of_update", OP_slice, slice_of_update},
	{NULL, OP_none, NULL},
};
