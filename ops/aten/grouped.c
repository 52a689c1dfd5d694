/* Products of groups of rows, each group with a matrix of its own (mixture of experts), by
 * expansion.
 *
 * The group of a row is found by search in the ends of the groups, and its matrix is read in place:
 * a gather that a plain sum of products reads through (a contraction would want the gathered
 * matrices stored). So the work is that of the rows, whatever the number of groups. Rows of no
 * group give zeros. */
#include "ops/aten/priv.h"

/* Returns the group of each of `count` positions: how many groups end at or before it. */
static Node group_of(Build *b, Node ends, Sym count)
{
	Node at = b_unsqueeze(b, b_iota(b, DT_i64, count), -1);
	Node past = b_bin(b, OP_le, b_convert(b, ends, DT_i64), at);
	return aten_sum(b, b_convert(b, past, DT_i64), 2, false);
}

/* Multiplies x[S, K] by w[G, K, N]: row s by matrix group(s). The sum is wide. */
static Node grouped_rows(Build *b, Node x, Node w, Node ends)
{
	Node group = group_of(b, ends, b_dim(b, x, 0));
	Node each = aten_wide(b, aten_take_dim(b, w, 0, group, "clamp")); /* [S, K, N] */
	Node y = b_bin(b, OP_mul, b_unsqueeze(b, aten_wide(b, x), -1), each);
	y = aten_sum(b, y, 2, false);
	Node inside = b_bin(b, OP_lt, group, aten_size(b, b_dim(b, w, 0), DT_i64));
	return b_select(b, b_unsqueeze(b, inside, -1), y, aten_like(b, y, 0));
}

/* Multiplies x[G, M, K] by w[K, N]: matrix group(n) by column n. */
static Node grouped_columns(Build *b, Node x, Node w, Node ends)
{
	Node columns = b_transpose(b, x, 1, 2), rows = b_transpose(b, w, 0, 1);
	Node y = grouped_rows(b, rows, columns, ends);
	return b_transpose(b, y, 0, 1);
}

static bool same_extent(Build *b, Sym x, Sym y, const char *what)
{
	Truth same = sym_eq(b_syms(b), x, y);
	if (same == MAYBE)
		graph_guard(b->g, GUARD_EQ, x, y, what);
	if (same == NO)
		b_error(b, "%s: %s and %s", what, sym_str(b_syms(b), x), sym_str(b_syms(b), y));
	return same != NO;
}

static Node grouped_product(Build *b, Node x, Node w, Node ends)
{
	uint32_t rx = aten_rank(b, x), rw = aten_rank(b, w);
	if (!x.i || !w.i)
		return (Node){0};
	if (rx == 3 && rw == 3 && !ends.i)
		return b_matmul(b, x, w);
	if (rx < 2 || rw < 2 || rx + rw != 5 || aten_rank(b, ends) != 1)
		return b_error(b,
			       "product of groups of ranks %u and %u with%s offsets: expected 2 "
			       "and 3 or 3 "
			       "and 2 with offsets of rank 1, or 3 and 3 without",
			       rx, rw, ends.i ? "" : "out");
	DType d = aten_dtype(b, x);
	if (d != aten_dtype(b, w) || !dtype_is_float(d))
		return b_error(b,
			       "product of groups of %s and %s, expected one floating-point dtype",
			       dtype_name(d), dtype_name(aten_dtype(b, w)));
	Node several = rx == 3 ? x : w;
	if (!same_extent(b, b_dim(b, x, -1), b_dim(b, w, -2), "sizes of a product of groups") ||
	    !same_extent(b, b_dim(b, several, 0), b_dim(b, ends, 0),
			 "number of groups and of offsets"))
		return (Node){0};
	Node y = rx == 2 ? grouped_rows(b, x, w, ends) : grouped_columns(b, x, w, ends);
	return b_convert(b, y, d);
}

static Node build_grouped_mm(Build *b, Node n)
{
	Node x = arg(b, n, "self"), w = arg(b, n, "mat2");
	if (arg(b, n, "bias").i)
		return b_error(b, "product of groups with a bias is not supported");
	Node y = grouped_product(b, x, w, arg(b, n, "offs"));
	return y.i ? b_convert(b, y, aten_dtype_or(b, n, "out_dtype", node_dtype(b->g, y))) : y;
}
OP(aten__grouped_mm){
	.schema =
		"aten._grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, "
		"ScalarType? out_dtype=None) -> Tensor",
	.build = build_grouped_mm,
	.sample = "bf16[8, 16] in -2..2, bf16[2, 16, 8] in -2..2, i32[2] of 3 8",
};

static Node build_grouped_mm_fallback(Build *b, Node n)
{
	Node x = arg(b, n, "input"), w = arg(b, n, "weight");
	return grouped_product(b, x, w, arg(b, n, "offs"));
}
OP(transformers_grouped_mm_fallback){
	.schema = "transformers.grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> "
		  "Tensor",
	.build = build_grouped_mm_fallback,
	.sample = "f32[5, 4], f32[2, 4, 3], i32[2] of 2 5",
};
