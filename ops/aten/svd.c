/* Singular values and vectors of ATen, and the polar decomposition by them. With A = U S V^H,
 * P = U^H dA V, skew(X) = X - X^H, E[i, j] = s[j]^2 - s[i]^2 off the diagonal, 1 on it:
 *
 *   dS = Re diag P
 *   dU = U sym(P S) / E + i Im diag P / (2 S) + (1 - U U^H) dA V / S        sym(X) = X + X^H, its
 *   dV = V sym(S P) / E - ... + (1 - V V^H) dA^H U / S                      diagonal is 0
 *
 * Where values are equal, derivatives of vectors are not finite, as in PyTorch. */
#include "ops/aten/spectral.h"
#include "ops/rules/batch.h"

/* ---- calls ---- */

static Sym least_extent(Build *b, Node x)
{
	return sym_min(b_syms(b), b_dim(b, x, -2), b_dim(b, x, -1));
}

static Node build_svd(Build *b, Node n)
{
	Node x = arg(b, n, "A"), a;
	if (!spectral_takes(b, x, "linalg.svd"))
		return (Node){0};
	a = spectral_columns(b, x);
	const bool complex = dtype_is_complex(aten_dtype(b, x));
	Node y = spectral_call(b, node_bool(b->g, n, "full_matrices") ? "svd_full" : "svd", &a, 1,
			       x, -1);
	if (!y.i)
		return y;
	Node u = spectral_matrix(b, b_get(b, y, 1), complex),
	     vh = spectral_matrix(b, b_get(b, y, 2), complex);
	return b_tuple(b, (Node[]){u, b_get(b, y, 0), vh}, 3);
}

static Node build_svdvals(Build *b, Node n)
{
	Node x = arg(b, n, "A"), a;
	if (!spectral_takes(b, x, "linalg.svd"))
		return (Node){0};
	a = spectral_columns(b, x);
	Node y = spectral_call(b, "svdvals", &a, 1, x, -1);
	return y.i ? b_get(b, y, 0) : y;
}

/* The thin decomposition of x. */
typedef struct {
	Node u, s, vh;
	Sym m, n, k;
	bool complex;
} Svd;

static Node call_svd(Build *b, Node x, bool full)
{
	Attr attr[] = {attr_none(), attr_bool(full)};
	return x.i ? b_call(b, OP_aten_linalg_svd, &x, 1, attr, 2) : x;
}

static Svd svd_of(Build *b, Node x, Node svd)
{
	Svd d = {.s = svd.i ? b_get(b, svd, 1) : svd,
		 .m = b_dim(b, x, -2),
		 .n = b_dim(b, x, -1),
		 .k = least_extent(b, x)};
	if (!svd.i)
		return d;
	d.complex = dtype_is_complex(aten_dtype(b, x));
	d.u = b_slice(b, b_get(b, svd, 0), -1, b_int(b, 0), d.k, b_int(b, 1));
	d.vh = b_slice(b, b_get(b, svd, 2), -2, b_int(b, 0), d.k, b_int(b, 1));
	return d;
}

/* ---- cotangents ---- */

#define PHASE                                                                                      \
	"svd_backward: The singular vectors in the complex case are specified up to "              \
	"multiplication "                                                                          \
	"by e^{i phi}. The specified loss function depends on this phase term, making it "         \
	"ill-defined."

static Node skew(Build *b, Node x)
{
	return x.i ? b_bin(b, OP_sub, x, solve_adjoint(b, x)) : x;
}

static Node symmetric(Build *b, Node x)
{
	return x.i ? b_bin(b, OP_add, x, solve_adjoint(b, x)) : x;
}

static bool is_less(Build *b, Sym x, Sym y)
{
	return sym_eq(b_syms(b), x, y) != YES && sym_le(b_syms(b), y, x) != YES;
}

/* Returns E of the top of the file. */
static Node square_gaps(Build *b, Node s)
{
	return spectral_gaps(b, b_bin(b, OP_mul, s, s));
}

/* Returns x - U (U^H x): the part of the columns that U does not span. */
static Node outside(Build *b, Node u, Node x)
{
	return x.i ? b_bin(b, OP_sub, x, b_matmul(b, u, b_matmul(b, solve_adjoint(b, u), x))) : x;
}

/* Returns the matrix between U and V^H, of the cotangents of vectors; the diagonal is gs and, of
 * complex numbers, what is left of skew(U^H gU). */
static Node inner_cotangent(Build *b, const Svd *d, Node gu, Node gs, Node gvh)
{
	Node u = gu.i ? skew(b, b_matmul(b, solve_adjoint(b, d->u), gu)) : gu;
	Node v = gvh.i ? skew(b, b_matmul(b, d->vh, solve_adjoint(b, gvh))) : gvh;
	if (d->complex) {
		Node at = u.i ? b_part(b, spectral_diagonal(b, u), true) : u,
		     vt = v.i ? b_part(b, spectral_diagonal(b, v), true) : v;
		spectral_require_gauge(b, b_add(b, at, vt), PHASE);
	}
	Node us = u.i ? spectral_scale_columns(b, u, d->s) : u,
	     sv = v.i ? spectral_scale_rows(b, v, d->s) : v;
	Node inner = b_bin(b, OP_div, b_add(b, us, sv), square_gaps(b, d->s));
	Node on = gs.i ? b_convert(b, gs, aten_dtype(b, inner)) : (Node){0};
	if (d->complex && u.i && v.i)
		on = b_add(b, on,
			   b_bin(b, OP_div, spectral_diagonal(b, u),
				 b_bin_scalar(b, OP_mul, d->s, 2)));
	return spectral_with_diagonal(b, inner, on.i ? on : aten_like(b, inner, 0));
}

static Node svd_cotangent(Build *b, const Svd *d, Node gu, Node gs, Node gvh)
{
	if (!gu.i && !gvh.i)
		return b_matmul(b, spectral_scale_columns(b, d->u, gs), d->vh);
	Node inner = inner_cotangent(b, d, gu, gs, gvh),
	     left = inner.i ? b_matmul(b, d->u, inner) : inner;
	if (gu.i && is_less(b, d->k, d->m))
		left = b_bin(b, OP_add, left,
			     outside(b, d->u, b_bin(b, OP_div, gu, b_unsqueeze(b, d->s, -2))));
	Node x = left.i ? b_matmul(b, left, d->vh) : left;
	if (!x.i || !gvh.i || !is_less(b, d->k, d->n))
		return x;
	Node v = solve_adjoint(b, d->vh),
	     gv = solve_adjoint(b, b_bin(b, OP_div, gvh, b_unsqueeze(b, d->s, -1)));
	return b_bin(b, OP_add, x, b_matmul(b, d->u, solve_adjoint(b, outside(b, v, gv))));
}

static Node first_of(Build *b, Node x, int dim, Sym k)
{
	return x.i ? b_slice(b, x, dim, b_int(b, 0), k, b_int(b, 1)) : x;
}

static bool adjoint_svd(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	Svd d = svd_of(b, node_in(b->g, n, 0), n);
	(void)want;
	Node rows = first_of(b, ct[2], -2, d.k), columns = first_of(b, ct[0], -1, d.k);
	g[0] = svd_cotangent(b, &d, columns, ct[1], rows);
	return g[0].i;
}

static bool adjoint_svdvals(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	Node x = node_in(b->g, n, 0), y = call_svd(b, x, false);
	Svd d = svd_of(b, x, y);
	(void)want;
	g[0] = y.i ? svd_cotangent(b, &d, (Node){0}, ct[0], (Node){0}) : y;
	return g[0].i;
}

/* ---- tangents ---- */

/* Returns U^H dA V. */
static Node to_basis(Build *b, const Svd *d, Node dx)
{
	return b_matmul(b, b_matmul(b, solve_adjoint(b, d->u), dx), solve_adjoint(b, d->vh));
}

static Node values_tangent(Build *b, const Svd *d, Node p)
{
	Node on = spectral_diagonal(b, p);
	return on.i && d->complex ? b_part(b, on, false) : on;
}

/* Returns x / E with 0 on the diagonal, or there i Im diag P / (2 S): half of the phase each. */
static Node turned(Build *b, const Svd *d, Node x, Node p, bool minus)
{
	Node on = aten_like(b, p, 0);
	if (d->complex) {
		on = b_bin(b, OP_div, spectral_imaginary(b, spectral_diagonal(b, p)),
			   b_bin_scalar(b, OP_mul, d->s, 2));
		on = minus ? b_un(b, OP_neg, on) : on;
	}
	return spectral_with_diagonal(b, b_bin(b, OP_div, x, square_gaps(b, d->s)), on);
}

/* Appends what belongs to the columns behind the first k of a square matrix: - U dU^H of these. */
static Node behind(Build *b, Node all, Node first, Node dfirst, Sym k)
{
	Node rest = b_slice(b, all, -1, k, b_dim(b, all, -1), b_int(b, 1));
	rest = b_un(b, OP_neg, b_matmul(b, first, b_matmul(b, solve_adjoint(b, dfirst), rest)));
	return rest.i ? b_concat(b, (Node[]){dfirst, rest}, 2, -1) : rest;
}

static bool tangent_svd(Build *b, Node n, const Node *t, Node *ty)
{
	if (!t[0].i)
		return true;
	Svd d = svd_of(b, node_in(b->g, n, 0), n);
	const bool full = node_bool(b->g, n, "full_matrices");
	Node p = to_basis(b, &d, t[0]), v = solve_adjoint(b, d.vh);
	if (!p.i)
		return false;
	ty[1] = values_tangent(b, &d, p);
	Node du = b_matmul(
		b, d.u, turned(b, &d, symmetric(b, spectral_scale_columns(b, p, d.s)), p, false));
	if (is_less(b, d.k, d.m))
		du = b_bin(
			b, OP_add, du,
			outside(b, d.u,
				b_bin(b, OP_div, b_matmul(b, t[0], v), b_unsqueeze(b, d.s, -2))));
	Node dv = b_matmul(b, v,
			   turned(b, &d, symmetric(b, spectral_scale_rows(b, p, d.s)), p, true));
	Node across = solve_adjoint(b, t[0]);
	if (is_less(b, d.k, d.n))
		dv = b_bin(b, OP_add, dv,
			   outside(b, v,
				   b_bin(b, OP_div, b_matmul(b, across, d.u),
					 b_unsqueeze(b, d.s, -2))));
	if (full && is_less(b, d.k, d.m))
		du = behind(b, b_get(b, n, 0), d.u, du, d.k);
	if (full && is_less(b, d.k, d.n))
		dv = behind(b, solve_adjoint(b, b_get(b, n, 2)), v, dv, d.k);
	ty[0] = du;
	ty[2] = solve_adjoint(b, dv);
	return ty[0].i && ty[1].i && ty[2].i;
}

static bool tangent_svdvals(Build *b, Node n, const Node *t, Node *ty)
{
	if (!t[0].i)
		return true;
	Node x = node_in(b->g, n, 0), y = call_svd(b, x, false);
	Svd d = svd_of(b, x, y);
	ty[0] = y.i ? values_tangent(b, &d, to_basis(b, &d, t[0])) : y;
	return ty[0].i;
}

OP(aten_linalg_svd){
	.schema = "aten.linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> "
		  "(Tensor U, Tensor S, Tensor Vh)",
	.autocast = AUTOCAST_F32,
	.expands = EXPANDS_IN_DECOMPOSE,
	.whole = true,
	.build = build_svd,
	.adjoint = adjoint_svd,
	.tangent = tangent_svd,
	.batch = solve_batch_matrices,
	.sample = "f32[3, 2] of 1 2 3 -1 0.5 4 -> 1; f32[2, n=2, m=3] of 4 1 1 -2 1 0.5, "
		  "full_matrices=false -> 1; c128[2, 2] of 4 0 1 1 1 -1 3 2 -> 1; f64[0, 2] -> 1",
};
OP(aten_linalg_svdvals){
	.schema = "aten.linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor",
	.autocast = AUTOCAST_F32,
	.expands = EXPANDS_IN_DECOMPOSE,
	.whole = true,
	.build = build_svdvals,
	.adjoint = adjoint_svdvals,
	.tangent = tangent_svdvals,
	.batch = solve_batch_matrices,
	.sample = "f32[3, 2] of 1 2 3 -1 0.5 4; f32[2, n=2, m=3] of 4 1 1 -2 1 0.5; "
		  "c128[2, 2] of 4 0 1 1 1 -1 3 2; f64[0, 2]",
};

/* ---- other forms ---- */

static Node call_svdvals(Build *b, Node x)
{
	return x.i ? b_call(b, OP_aten_linalg_svdvals, &x, 1, NULL, 0) : x;
}

/* Builds what linalg_svd and linalg_svdvals decompose to: without vectors these are empty
 * tensors. */
static Node build_svd_either(Build *b, Node n)
{
	Node x = arg(b, n, "A");
	if (node_bool(b->g, n, "compute_uv"))
		return call_svd(b, x, node_bool(b->g, n, "full_matrices"));
	Node s = call_svdvals(b, x), none = b_full(b, aten_dtype(b, x), 0, 1, (Sym[]){b_int(b, 0)});
	return s.i ? b_tuple(b, (Node[]){none, s, none}, 3) : s;
}
OP(aten__linalg_svd){
	.schema = "aten._linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, "
		  "str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
	.build = build_svd_either,
	.sample = "f32[3, 2] of 1 2 3 -1 0.5 4 -> 1; f32[3, 2] of 1 2 3 -1 0.5 4, compute_uv=false",
};

/* Builds the older form: V, not V^H; zeros without vectors. */
static Node build_older_svd(Build *b, Node n)
{
	Node x = arg(b, n, "self");
	if (!spectral_takes(b, x, "svd"))
		return (Node){0};
	if (node_bool(b->g, n, "compute_uv")) {
		Node y = call_svd(b, x, !node_bool(b->g, n, "some"));
		return y.i ? b_tuple(b,
				     (Node[]){b_get(b, y, 0), b_get(b, y, 1),
					      solve_adjoint(b, b_get(b, y, 2))},
				     3)
			   : y;
	}
	Shape s = aten_shape(b, x), u = s, v = s;
	u.dim[s.rank - 1] = s.dim[s.rank - 2];
	v.dim[s.rank - 2] = s.dim[s.rank - 1];
	DType d = aten_dtype(b, x);
	Node y = call_svdvals(b, x);
	return y.i ? b_tuple(b,
			     (Node[]){b_full(b, d, 0, u.rank, u.dim), y,
				      b_full(b, d, 0, v.rank, v.dim)},
			     3)
		   : y;
}
OP(aten_svd){
	.schema = "aten.svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, "
		  "Tensor S, Tensor V)",
	.autocast = AUTOCAST_F32,
	.build = build_older_svd,
	.sample = "f32[3, 2] of 1 2 3 -1 0.5 4 -> 1; f32[2, 2, 3] of 4 1 1 -2 1 0.5, "
		  "some=false -> 1; f32[3, 2] of 1 2 3 -1 0.5 4, compute_uv=false",
};

/* ---- A = U H ---- */

/* Builds U as U V^H of the singular vectors, H as V S V^H. */
static Node build_polar(Build *b, Node n)
{
	Node x = arg(b, n, "A");
	if (!spectral_takes(b, x, "linalg.polar"))
		return (Node){0};
	if (sym_le(b_syms(b), b_dim(b, x, -1), b_dim(b, x, -2)) == NO)
		return b_error(b, "linalg.polar: expected matrices with no more columns than rows");
	Node y = call_svd(b, x, false);
	if (!y.i)
		return y;
	Svd d = svd_of(b, x, y);
	Node h = b_matmul(b, solve_adjoint(b, d.vh), spectral_scale_rows(b, d.vh, d.s));
	return b_tuple(b, (Node[]){b_matmul(b, d.u, d.vh), h}, 2);
}

/* Returns [..., k, k]: s[i] + s[j]. */
static Node sums(Build *b, Node s)
{
	return b_bin(b, OP_add, b_unsqueeze(b, s, -2), b_unsqueeze(b, s, -1));
}

/* Returns (1 - U U^H) (x V / S) V^H. */
static Node outer_turn(Build *b, const Svd *d, Node x)
{
	Node v = solve_adjoint(b, d->vh);
	return b_matmul(
		b, outside(b, d->u, b_bin(b, OP_div, b_matmul(b, x, v), b_unsqueeze(b, d->s, -2))),
		d->vh);
}

/* Computes, with W the left singular vectors, M = V^H (U^H gU - gH H) V / (s[i] + s[j]): U gH +
 * W (M - M^H) V^H + (1 - W W^H) gU V / S V^H. */
static bool adjoint_polar(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	Node x = node_in(b->g, n, 0), y = call_svd(b, x, false), u = b_get(b, n, 0),
	     h = b_get(b, n, 1), m = {0};
	Svd d = svd_of(b, x, y);
	(void)want;
	if (!y.i)
		return false;
	if (ct[0].i)
		m = b_matmul(b, solve_adjoint(b, u), ct[0]);
	if (ct[1].i)
		m = b_add(b, m, b_un(b, OP_neg, b_matmul(b, ct[1], h)));
	m = b_matmul(b, b_matmul(b, d.vh, m), solve_adjoint(b, d.vh));
	m = skew(b, b_bin(b, OP_div, m, sums(b, d.s)));
	g[0] = b_matmul(b, b_matmul(b, d.u, m), d.vh);
	if (ct[1].i)
		g[0] = b_bin(b, OP_add, g[0], b_matmul(b, u, ct[1]));
	if (ct[0].i && is_less(b, d.k, d.m))
		g[0] = b_bin(b, OP_add, g[0], outer_turn(b, &d, ct[0]));
	return g[0].i;
}

/* Computes dU = W (P - P^H) / (s[i] + s[j]) V^H + (1 - W W^H) dA V / S V^H, dH = U^H (dA - dU
 * H). */
static bool tangent_polar(Build *b, Node n, const Node *t, Node *ty)
{
	if (!t[0].i)
		return true;
	Node x = node_in(b->g, n, 0), y = call_svd(b, x, false), u = b_get(b, n, 0),
	     h = b_get(b, n, 1);
	Svd d = svd_of(b, x, y);
	if (!y.i)
		return false;
	Node du = b_matmul(b, d.u, b_bin(b, OP_div, skew(b, to_basis(b, &d, t[0])), sums(b, d.s)));
	du = b_matmul(b, du, d.vh);
	if (is_less(b, d.k, d.m))
		du = b_bin(b, OP_add, du, outer_turn(b, &d, t[0]));
	ty[0] = du;
	ty[1] = b_matmul(b, solve_adjoint(b, u), b_bin(b, OP_sub, t[0], b_matmul(b, du, h)));
	return ty[0].i && ty[1].i;
}
OP(aten_linalg_polar){
	.schema = "aten.linalg_polar(Tensor A) -> (Tensor U, Tensor H)",
	.expands = EXPANDS_IN_DECOMPOSE,
	.whole = true,
	.build = build_polar,
	.adjoint = adjoint_polar,
	.tangent = tangent_polar,
	.batch = solve_batch_matrices,
	.sample = "f32[3, 2] of 1 2 3 -1 0.5 4; f32[2, n=2, n] of 4 1 1 -2 1 3; "
		  "c128[2, 2] of 4 0 1 1 1 -1 3 2; f64[2, 0]",
};
