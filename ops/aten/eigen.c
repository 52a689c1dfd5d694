/* Eigenvalues and eigenvectors of ATen. Values are exact also where they are equal; derivatives of
 * vectors are not finite there, as in PyTorch. With A = V diag(w) V^-1, P = V^-1 dA V and
 * F[i, j] = 1 / (w[j] - w[i]) off the diagonal, 0 on it:
 *
 *   dw = diag P        dV = V (F * P) of a Hermitian A; of another one V's columns keep length 1 */
#include "ops/aten/spectral.h"
#include "ops/rules/batch.h"

#include <string.h>

/* ---- calls ---- */

bool spectral_takes(Build *b, Node x, const char *name)
{
	if (!x.i)
		return false;
	if (aten_rank(b, x) < 2) {
		b_error(b, "%s: expected batches of matrices, got rank %u", name, aten_rank(b, x));
		return false;
	}
	return solve_takes_dtype(b, node_dtype(b->g, x), name);
}

Node spectral_columns(Build *b, Node x)
{
	return x.i ? solve_pairs(b, b_transpose(b, x, -1, -2)) : x;
}

Node spectral_matrix(Build *b, Node columns, bool complex)
{
	return columns.i ? b_transpose(b, solve_whole(b, columns, complex), -1, -2) : columns;
}

Node spectral_call(Build *b, const char *stem, const Node *in, uint32_t nin, Node like, int flag)
{
	Ir *ir = b->g->ir;
	const DType d = aten_dtype(b, like);
	const bool complex = dtype_is_complex(d);
	const char type = dtype_real(d) == DT_f64 ? (complex ? 'z' : 'd') : (complex ? 'c' : 's');
	Shape s = aten_shape(b, like);
	for (uint32_t k = 0; k < nin; k++)
		if (!in[k].i)
			return in[k];
	s.rank -= 2;
	const Sym ints[] = {b_int(b, 0), b_int(b, 1), shape_numel(b, &s), b_int(b, complex),
			    b_int(b, flag)};
	Attr attr[] = {attr_int(ir, nin),
		       attr_str(ir, arena_printf(ir->ctx->arena, "weft::%s_%c", stem, type)),
		       attr_ints(ints, flag < 0 ? 4 : 5),
		       {.kind = ATTR_floats}};
	return b_node(b, OP_call, in, nin, attr, 4);
}

/* ---- matrices ---- */

Node spectral_hermitian(Build *b, Node x)
{
	return x.i ? b_bin_scalar(b, OP_mul, b_bin(b, OP_add, x, solve_adjoint(b, x)), 0.5) : x;
}

Node spectral_diagonal(Build *b, Node x)
{
	if (!x.i)
		return x;
	Node only = b_select(b, solve_on_diagonal(b, x), x, aten_like(b, x, 0));
	return aten_sum(b, only, 1u << (aten_rank(b, x) - 1), false);
}

Node spectral_with_diagonal(Build *b, Node x, Node d)
{
	if (!x.i || !d.i)
		return (Node){0};
	d = b_convert(b, d, aten_dtype(b, x));
	return b_select(b, solve_on_diagonal(b, x), aten_rank(b, d) ? b_unsqueeze(b, d, -1) : d, x);
}

Node spectral_scale_columns(Build *b, Node x, Node d)
{
	return x.i && d.i ? b_bin(b, OP_mul, x, b_unsqueeze(b, d, -2)) : (Node){0};
}

Node spectral_scale_rows(Build *b, Node x, Node d)
{
	return x.i && d.i ? b_bin(b, OP_mul, x, b_unsqueeze(b, d, -1)) : (Node){0};
}

Node spectral_gaps(Build *b, Node d)
{
	if (!d.i)
		return d;
	Node one = aten_like(b, d, 1);
	Node gaps = b_bin(b, OP_sub, b_unsqueeze(b, d, -2), b_unsqueeze(b, d, -1));
	return spectral_with_diagonal(b, gaps, one);
}

Node spectral_imaginary(Build *b, Node x)
{
	if (!x.i)
		return x;
	Node im = b_part(b, x, true);
	return b_complex(b, b_zeros_like(b, im), im);
}

void spectral_require_gauge(Build *b, Node x, const char *message)
{
	if (x.i)
		solve_require(b, b_bin_scalar(b, OP_le, b_un(b, OP_abs, x), 0.01), message);
}

/* ---- Hermitian matrices ---- */

/* Returns 1: the upper triangle is read; 0: the lower one; -1 after an error. */
static int is_upper(Build *b, Node n)
{
	const char *text = node_str(b->g, n, "UPLO");
	if (strlen(text) == 1 && strchr("lLuU", *text))
		return *text == 'u' || *text == 'U';
	b_error(b, "UPLO is \"%s\", expected \"L\" or \"U\"", text);
	return -1;
}

static Node symmetric_operand(Build *b, Node n)
{
	Node x = node_in(b->g, n, 0);
	return spectral_takes(b, x, "linalg.eigh") && solve_takes(b, x, "linalg.eigh") ? x
										       : (Node){0};
}

static Node build_eigh(Build *b, Node n)
{
	Node x = symmetric_operand(b, n), a = spectral_columns(b, x);
	const int upper = is_upper(b, n);
	if (!a.i || upper < 0)
		return (Node){0};
	Node y = spectral_call(b, "eigh", &a, 1, x, upper);
	if (!y.i)
		return y;
	return b_tuple(
		b,
		(Node[]){b_get(b, y, 0),
			 spectral_matrix(b, b_get(b, y, 1), dtype_is_complex(aten_dtype(b, x)))},
		2);
}

static Node build_eigvalsh(Build *b, Node n)
{
	Node x = symmetric_operand(b, n), a = spectral_columns(b, x);
	const int upper = is_upper(b, n);
	Node y = a.i && upper >= 0 ? spectral_call(b, "eigvalsh", &a, 1, x, upper) : (Node){0};
	return y.i ? b_get(b, y, 0) : y;
}

#define PHASE                                                                                      \
	"The eigenvectors in the complex case are specified up to multiplication by e^{i phi}. "   \
	"The "                                                                                     \
	"specified loss function depends on this quantity, so it is ill-defined."

/* Returns V M V^H. */
static Node in_basis(Build *b, Node v, Node m)
{
	return m.i ? b_matmul(b, b_matmul(b, v, m), solve_adjoint(b, v)) : m;
}

/* Returns V^H M V. */
static Node to_basis(Build *b, Node v, Node m)
{
	return m.i ? b_matmul(b, b_matmul(b, solve_adjoint(b, v), m), v) : m;
}

/* Computes V (diag gw) V^H, or with gV the Hermitian part of V (F * (V^H gV) + diag gw) V^H. */
static bool adjoint_eigh(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	Node w = b_get(b, n, 0), v = b_get(b, n, 1), gw = ct[0], gv = ct[1];
	(void)want;
	if (!gv.i) {
		g[0] = b_matmul(b, spectral_scale_columns(b, v, gw), solve_adjoint(b, v));
		return g[0].i;
	}
	Node m = b_matmul(b, solve_adjoint(b, v), gv);
	if (m.i && dtype_is_complex(aten_dtype(b, m)))
		spectral_require_gauge(b, b_part(b, spectral_diagonal(b, m), true),
				       "linalg_eigh_backward: " PHASE);
	m = b_bin(b, OP_div, m, spectral_gaps(b, w));
	g[0] = spectral_hermitian(
		b, in_basis(b, v, spectral_with_diagonal(b, m, gw.i ? gw : aten_like(b, w, 0))));
	return g[0].i;
}

static bool tangent_eigh(Build *b, Node n, const Node *t, Node *ty)
{
	if (!t[0].i)
		return true;
	Node w = b_get(b, n, 0), v = b_get(b, n, 1), p = to_basis(b, v, t[0]),
	     d = spectral_diagonal(b, p);
	ty[0] = d.i && dtype_is_complex(aten_dtype(b, d)) ? b_part(b, d, false) : d;
	Node zero = aten_like(b, p, 0), turn = b_bin(b, OP_div, p, spectral_gaps(b, w));
	Node x = p.i ? spectral_with_diagonal(b, turn, zero) : p;
	ty[1] = x.i ? b_matmul(b, v, x) : x;
	return ty[0].i && ty[1].i;
}

/* Returns values and vectors of the operand of n, which gives values alone. */
static Node with_vectors(Build *b, Node n, Op op)
{
	Node x = node_in(b->g, n, 0);
	Attr *attr = batch_attrs(b, n);
	return b_call(b, op, &x, 1, attr, op_schema(op)->narg);
}

static bool adjoint_eigvalsh(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	Node y = with_vectors(b, n, OP_aten_linalg_eigh), v = y.i ? b_get(b, y, 1) : y;
	g[0] = v.i ? b_matmul(b, spectral_scale_columns(b, v, ct[0]), solve_adjoint(b, v)) : v;
	return g[0].i;
}

static bool tangent_eigvalsh(Build *b, Node n, const Node *t, Node *ty)
{
	if (!t[0].i)
		return true;
	Node y = with_vectors(b, n, OP_aten_linalg_eigh), v = y.i ? b_get(b, y, 1) : y;
	Node d = v.i ? spectral_diagonal(b, to_basis(b, v, t[0])) : v;
	ty[0] = d.i && dtype_is_complex(aten_dtype(b, d)) ? b_part(b, d, false) : d;
	return ty[0].i;
}

OP(aten_linalg_eigh){
	.schema = "aten.linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor "
		  "eigenvectors)",
	.autocast = AUTOCAST_F32,
	.expands = EXPANDS_IN_DECOMPOSE,
	.whole = true,
	.build = build_eigh,
	.adjoint = adjoint_eigh,
	.tangent = tangent_eigh,
	.batch = solve_batch_matrices,
	.sample = "f32[3, 3] of 4 2 1 2 5 3 1 3 7 -> 0; f32[2, n=2, n] of 4 1 1 -2 1 0.5 0.5 3, "
		  "UPLO=\"U\" -> 0; c128[2, 2] of 4 0 1 1 1 -1 3 0 -> 0; f64[0, 0] -> 0; "
		  "f32[2, 1, 1] -> 0",
};
OP(aten_linalg_eigvalsh){
	.schema = "aten.linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor",
	.autocast = AUTOCAST_F32,
	.expands = EXPANDS_IN_DECOMPOSE,
	.whole = true,
	.build = build_eigvalsh,
	.adjoint = adjoint_eigvalsh,
	.tangent = tangent_eigvalsh,
	.batch = solve_batch_matrices,
	.sample = "f32[3, 3] of 4 2 1 2 5 3 1 3 7; f32[2, n=2, n] of 4 1 1 -2 1 0.5 0.5 3, "
		  "UPLO=\"U\"; c128[2, 2] of 4 0 1 1 1 -1 3 0; f64[0, 0]; f32[2, 1, 1]",
};

/* Builds what linalg_eigh and linalg_eigvalsh decompose to: without vectors these are an empty
 * tensor. */
static Node build_eigh_either(Build *b, Node n)
{
	const bool vectors = node_bool(b->g, n, "compute_v");
	Node x = arg(b, n, "A");
	Attr attr[] = {attr_none(), *node_attr(b->g, n, "UPLO")};
	Node y = x.i ? b_call(b, vectors ? OP_aten_linalg_eigh : OP_aten_linalg_eigvalsh, &x, 1,
			      attr, 2)
		     : x;
	if (!y.i || vectors)
		return y;
	return b_tuple(b, (Node[]){y, b_full(b, aten_dtype(b, x), 0, 1, (Sym[]){b_int(b, 0)})}, 2);
}
OP(aten__linalg_eigh){
	.schema = "aten._linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor "
		  "eigenvalues, Tensor eigenvectors)",
	.build = build_eigh_either,
	.sample = "f32[3, 3] of 4 2 1 2 5 3 1 3 7 -> 0; f32[2, 2] of 4 1 1 -2, compute_v=false",
};

/* ---- other matrices ---- */

static Node square_operand(Build *b, Node n)
{
	Node x = node_in(b->g, n, 0);
	return spectral_takes(b, x, "linalg.eig") && solve_takes(b, x, "linalg.eig") ? x
										     : (Node){0};
}

static Node build_eig(Build *b, Node n)
{
	Node x = square_operand(b, n), a = spectral_columns(b, x);
	Node y = spectral_call(b, "eig", &a, 1, x, -1);
	if (!y.i)
		return y;
	Node w = b_get(b, y, 0);
	return b_tuple(b,
		       (Node[]){b_node(b, OP_view_complex, &w, 1, NULL, 0),
				spectral_matrix(b, b_get(b, y, 1), true)},
		       2);
}

static Node build_eigvals(Build *b, Node n)
{
	Node x = square_operand(b, n), a = spectral_columns(b, x);
	Node y = spectral_call(b, "eigvals", &a, 1, x, -1), w = y.i ? b_get(b, y, 0) : y;
	return w.i ? b_node(b, OP_view_complex, &w, 1, NULL, 0) : w;
}

static Node solved(Build *b, Node a, Node x)
{
	Attr attr[] = {attr_none(), attr_none(), attr_bool(true)};
	return a.i && x.i ? b_call(b, OP_aten_linalg_solve, (Node[]){a, x}, 2, attr, 3) : (Node){0};
}

/* Returns g as the cotangent of x, which may be real. */
static Node of_dtype(Build *b, Node g, Node x)
{
	return g.i && !dtype_is_complex(aten_dtype(b, x)) ? b_part(b, g, false) : g;
}

/* Returns V^-H (conj(F) * (V^H gV - V^H V Re diag(V^H gV)) + diag gw) V^H. */
static Node eig_cotangent(Build *b, Node x, Node w, Node v, Node gw, Node gv)
{
	Node vh = solve_adjoint(b, v), m;
	if (gv.i) {
		m = b_matmul(b, vh, gv);
		Node d = spectral_diagonal(b, m);
		if (!d.i)
			return d;
		spectral_require_gauge(b, b_part(b, d, true), "linalg_eig_backward: " PHASE);
		Node own = b_matmul(b, vh, spectral_scale_columns(b, v, b_part(b, d, false)));
		m = b_bin(b, OP_div, b_bin(b, OP_sub, m, own), aten_conj(b, spectral_gaps(b, w)));
		m = b_matmul(b, spectral_with_diagonal(b, m, gw.i ? gw : aten_like(b, w, 0)), vh);
	} else {
		m = spectral_scale_rows(b, vh, gw);
	}
	return of_dtype(b, solved(b, vh, m), x);
}

static bool adjoint_eig(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	Node v = b_get(b, n, 1), w = b_get(b, n, 0);
	g[0] = eig_cotangent(b, node_in(b->g, n, 0), w, v, ct[0], ct[1]);
	return g[0].i;
}

static Node eig_basis(Build *b, Node v, Node dx)
{
	return solved(b, v, b_matmul(b, b_convert(b, dx, aten_dtype(b, v)), v));
}

static bool tangent_eig(Build *b, Node n, const Node *t, Node *ty)
{
	if (!t[0].i)
		return true;
	Node w = b_get(b, n, 0), v = b_get(b, n, 1), p = eig_basis(b, v, t[0]);
	ty[0] = spectral_diagonal(b, p);
	if (!ty[0].i)
		return false;
	Node zero = aten_like(b, p, 0), turn = b_bin(b, OP_div, p, spectral_gaps(b, w));
	Node x = spectral_with_diagonal(b, turn, zero);
	Node dv = b_matmul(b, v, x),
	     along = spectral_diagonal(b, b_matmul(b, solve_adjoint(b, v), dv));
	ty[1] = along.i ? b_bin(b, OP_sub, dv,
				spectral_scale_columns(b, v, b_part(b, along, false)))
			: along;
	return ty[1].i;
}

static bool adjoint_eigvals(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	Node x = node_in(b->g, n, 0), y = b_call(b, OP_aten_linalg_eig, &x, 1, NULL, 0);
	if (!y.i)
		return false;
	Node v = b_get(b, y, 1), w = b_get(b, y, 0);
	g[0] = eig_cotangent(b, x, w, v, ct[0], (Node){0});
	return g[0].i;
}

static bool tangent_eigvals(Build *b, Node n, const Node *t, Node *ty)
{
	if (!t[0].i)
		return true;
	Node x = node_in(b->g, n, 0), y = b_call(b, OP_aten_linalg_eig, &x, 1, NULL, 0);
	ty[0] = y.i ? spectral_diagonal(b, eig_basis(b, b_get(b, y, 1), t[0])) : y;
	return ty[0].i;
}

OP(aten_linalg_eig){
	.schema = "aten.linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
	.autocast = AUTOCAST_F32,
	.expands = EXPANDS_IN_DECOMPOSE,
	.whole = true,
	.build = build_eig,
	.adjoint = adjoint_eig,
	.tangent = tangent_eig,
	.batch = solve_batch_matrices,
	.sample = "f32[3, 3] of 4 2 1 -1 5 3 0.5 3 7 -> 0; f32[2, n=2, n] of 1 2 -1 1 1 0.5 0.5 3 "
		  "-> 0; c128[2, 2] of 4 0 1 1 2 -1 3 0.5 -> 0; f64[0, 0] -> 0",
};
OP(aten_linalg_eigvals){
	.schema = "aten.linalg_eigvals(Tensor self) -> Tensor",
	.autocast = AUTOCAST_F32,
	.aliases = "aten._linalg_eigvals",
	.expands = EXPANDS_IN_DECOMPOSE,
	.whole = true,
	.build = build_eigvals,
	.adjoint = adjoint_eigvals,
	.tangent = tangent_eigvals,
	.batch = solve_batch_matrices,
	.sample = "f32[3, 3] of 4 2 1 -1 5 3 0.5 3 7; f32[2, n=2, n] of 1 2 -1 1 1 0.5 0.5 3; "
		  "c128[2, 2] of 4 0 1 1 2 -1 3 0.5; f64[0, 0]",
};
