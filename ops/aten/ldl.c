/* Factors of symmetric (or Hermitian) indefinite matrices, L D L^T with pivots, as LAPACK's sytrf
 * and hetrf give them, and systems of equations by them. PyTorch has no derivatives of the
 * factors. */
#include "ops/aten/spectral.h"
#include "ops/rules/batch.h"

/* Tells whether the matrix is Hermitian, which is said of complex ones only. */
static int is_hermitian(const Build *b, Node n, Node x)
{
	return node_bool(b->g, n, "hermitian") && dtype_is_complex(aten_dtype(b, x));
}

static Node factor(Build *b, Node n, Node *info)
{
	Node x = arg(b, n, "self"), a;
	if (!solve_takes(b, x, "linalg.ldl_factor"))
		return (Node){0};
	a = spectral_columns(b, x);
	Node y = spectral_call(b, "ldl_factor", &a, 1, x, is_hermitian(b, n, x));
	if (!y.i)
		return y;
	*info = b_get(b, y, 2);
	Shape s = aten_shape(b, x);
	Node lower = b_bin(b, OP_le, aten_iota_dim(b, &s, s.rank - 1, DT_i64),
			   aten_iota_dim(b, &s, s.rank - 2, DT_i64));
	Node ld = spectral_matrix(b, b_get(b, y, 0), dtype_is_complex(aten_dtype(b, x)));
	return b_tuple(
		b, (Node[]){b_select(b, lower, ld, aten_like(b, ld, 0)), b_get(b, y, 1), *info}, 3);
}

#define SINGULAR "torch.linalg.ldl_factor: the matrix is singular: a diagonal block of D is 0"

static Node build_factor(Build *b, Node n)
{
	Node info, y = factor(b, n, &info);
	if (!y.i)
		return y;
	solve_require(b, b_bin_scalar(b, OP_eq, info, 0), SINGULAR);
	return b_tuple(b, (Node[]){b_get(b, y, 0), b_get(b, y, 1)}, 2);
}

static Node build_factor_ex(Build *b, Node n)
{
	Node info, y = factor(b, n, &info);
	if (y.i && node_bool(b->g, n, "check_errors"))
		solve_require(b, b_bin_scalar(b, OP_eq, info, 0), SINGULAR);
	return y;
}
static bool adjoint_factor(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)n, (void)ct, (void)want, (void)g;
	return b_error(b, "linalg.ldl_factor has no derivative").i;
}
OP(aten_linalg_ldl_factor_ex){
	.schema = "aten.linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool "
		  "check_errors=False) -> (Tensor LD, Tensor pivots, Tensor info)",
	.expands = EXPANDS_IN_DECOMPOSE,
	.whole = true,
	.build = build_factor_ex,
	.adjoint = adjoint_factor,
	.batch = solve_batch_matrices,
	.sample = "f32[3, 3] of 4 2 1 2 -5 3 1 3 7; f32[2, n=2, n] of 0 1 1 0 1 0.5 0.5 3; "
		  "c128[2, 2] of 4 0 1 1 1 -1 3 0, hermitian=true; f64[0, 0]",
	.overloads = (const Overload[]){
		{.schema = "aten.linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> "
			   "(Tensor LD, Tensor pivots)",
		 .build = build_factor,
		 .sample = "f32[3, 3] of 4 2 1 2 -5 3 1 3 7; c128[2, 2] of 4 0 1 1 1 -1 3 0"},
	},
};

/* ---- systems ---- */

static Node call_solve(Build *b, Node ld, Node pivots, Node x, bool hermitian)
{
	Attr attr[] = {attr_none(), attr_none(), attr_none(), attr_bool(hermitian)};
	return x.i ? b_call(b, OP_aten_linalg_ldl_solve, (Node[]){ld, pivots, x}, 3, attr, 4) : x;
}

static Node build_ldl_solve(Build *b, Node n)
{
	Node ld = arg(b, n, "LD"), pivots = arg(b, n, "pivots"), x = arg(b, n, "B");
	if (!solve_takes(b, ld, "linalg.ldl_solve") || !spectral_takes(b, x, "linalg.ldl_solve") ||
	    !pivots.i)
		return (Node){0};
	Shape sa = aten_shape(b, ld), sx = aten_shape(b, x), lead;
	const Sym size = sa.dim[sa.rank - 1], columns = sx.dim[sx.rank - 1];
	if (aten_dtype(b, x) != aten_dtype(b, ld))
		return b_error(b, "linalg.ldl_solve: LD is %s, B is %s",
			       dtype_name(aten_dtype(b, ld)), dtype_name(aten_dtype(b, x)));
	if (sym_eq(b_syms(b), size, sx.dim[sx.rank - 2]) == NO)
		return b_error(b, "linalg.ldl_solve: LD and B have different numbers of rows");
	Shape la = shape_of(sa.rank - 2, sa.dim), lx = shape_of(sx.rank - 2, sx.dim);
	if (!aten_broadcast_shape(b, &la, &lx, &lead))
		return (Node){0};
	const uint32_t r = lead.rank;
	Shape fp = shape_insert(lead, r, size), fa = shape_insert(fp, r + 1, size),
	      fx = shape_insert(fp, r + 1, columns);
	Node full = aten_expand_shape(b, ld, &fa);
	Node in[] = {spectral_columns(b, full),
		     aten_expand_shape(b, b_convert(b, pivots, DT_i32), &fp),
		     spectral_columns(b, aten_expand_shape(b, x, &fx))};
	Node y = spectral_call(b, "ldl_solve", in, 3, full, is_hermitian(b, n, ld));
	return y.i ? spectral_matrix(b, b_get(b, y, 0), dtype_is_complex(aten_dtype(b, x))) : y;
}

/* Differentiates by B alone: the matrix is its own transpose, or its own adjoint. By the factors
 * there is no derivative, in PyTorch neither. */
static bool adjoint_ldl_solve(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	Node ld = arg(b, n, "LD"), pivots = arg(b, n, "pivots");
	const bool hermitian = node_bool(b->g, n, "hermitian");
	if (want[0])
		return b_error(b, "linalg.ldl_solve has no derivative by the factors").i;
	Node by = hermitian ? ct[0] : aten_conj(b, ct[0]),
	     y = call_solve(b, ld, pivots, by, hermitian);
	g[2] = hermitian ? y : aten_conj(b, y);
	return g[2].i;
}

static bool tangent_ldl_solve(Build *b, Node n, const Node *t, Node *ty)
{
	if (t[0].i)
		return b_error(b, "linalg.ldl_solve has no derivative by the factors").i;
	if (t[2].i)
		ty[0] = call_solve(b, arg(b, n, "LD"), arg(b, n, "pivots"), t[2],
				   node_bool(b->g, n, "hermitian"));
	return ty[0].i || !t[2].i;
}

/* Batches stand in front of as many dims of all three. */
static Node batch_ldl_solve(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	Node x[3];
	uint32_t lead[3], most = 0;
	/* factors and pivots belong together */
	const bool wide[] = {batched[0] || batched[1], batched[0] || batched[1], batched[2]};
	for (uint32_t k = 0; k < 3; k++) {
		x[k] = wide[k] ? batch_wide(b, in[k], batched[k], size) : in[k];
		lead[k] = node_rank(b->g, x[k]) - wide[k] - (k == 1 ? 1 : 2);
		most = lead[k] > most ? lead[k] : most;
	}
	for (uint32_t k = 0; k < 3; k++)
		for (; wide[k] && lead[k] < most; lead[k]++)
			x[k] = b_unsqueeze(b, x[k], 1);
	return b_call(b, OP_aten_linalg_ldl_solve, x, 3, batch_attrs(b, n), 4);
}
OP(aten_linalg_ldl_solve){
	.schema = "aten.linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool "
		  "hermitian=False) -> Tensor",
	.expands = EXPANDS_IN_DECOMPOSE,
	.whole = true,
	.build = build_ldl_solve,
	.linear_in = 4,
	.adjoint = adjoint_ldl_solve,
	.tangent = tangent_ldl_solve,
	.batch = batch_ldl_solve,
	.sample = "f32[2, 2] of 4 9 0.5 3, i32[2] of 1 2, f32[2, m=3]; "
		  "f32[2, 2, 2] of 4 9 0.5 3 2 9 0.25 -1, i32[2, 2] of 1 2, f32[2, 1]; "
		  "c128[2, 2] of 4 0 9 9 0.5 0.25 3 0, i32[2] of 1 2, c128[2, 2], hermitian=true; "
		  "c128[2, 2] of 4 1 9 9 0.5 0.25 3 0, i32[2] of 1 2, c128[2, 1]",
};
