/* Factorisations of matrices, by LAPACK's conventions. A matrix is the last two dimensions of x, or
 * with `pairs` the two in front of a last dimension of two: complex numbers. Lowering makes loops
 * over panels of them (lower/factor).
 *
 * Rules of derivatives compute with matrices of parts (Parts): real ones have no imaginary part.
 * Cotangents are PyTorch's: gradients by the real pairing of parts. */
#include "ops/prim/factor.h"

#include <math.h>
#include <string.h>

#include "ops/prim/matrix.h"
#include "ops/prim/priv.h"
#include "ops/prim/rules_priv.h"
#include "ops/rules/batch.h"
#include "ops/rules/parts.h"

/* ---- types ---- */

/* Sets *rank to the number of dimensions of matrices with their batches. */
static bool matrix_rank(Infer *f, uint32_t operand, bool *pairs, uint32_t *rank)
{
	Type x = infer_in(f, operand);
	const Attr *a = infer_attr(f, "pairs");
	*pairs = a->kind == ATTR_bool && a->b;
	if (x.dtype != DT_f32 && x.dtype != DT_f64)
		return infer_fail(f, "expected f32 or f64, got %s", dtype_name(x.dtype));
	if (x.n < 2u + *pairs)
		return infer_fail(f, "expected matrices, got rank %u", x.n);
	if (*pairs)
		TRY(infer_same(f, "a last dimension of two", x.dim[x.n - 1], sym_int(f->syms, 2)));
	*rank = x.n - *pairs;
	return true;
}

static bool shape_cholesky(Infer *f)
{
	Type x = infer_in(f, 0);
	bool pairs;
	uint32_t rank;
	TRY(matrix_rank(f, 0, &pairs, &rank));
	TRY(infer_same(f, "a square matrix", x.dim[rank - 2], x.dim[rank - 1]));
	Ir *ir = f->g->ir;
	TypeId part[] = {ir_type(ir, x.dtype, x.n, x.dim), ir_type(ir, DT_i32, rank - 2, x.dim)};
	f->type = ir_tuple(ir, 2, part);
	return true;
}
INFER(cholesky)

/* Returns the type [batches, extent] of a dtype; pairs: with a last dimension of two. */
static TypeId vector_type(Infer *f, DType d, const Type *x, uint32_t rank, Sym extent, bool pairs)
{
	Sym dim[MAX_RANK];
	memcpy(dim, x->dim, (rank - 2) * sizeof *dim);
	dim[rank - 2] = extent;
	dim[rank - 1] = sym_int(f->syms, 2);
	return ir_type(f->g->ir, d, rank - 1 + pairs, dim);
}

static bool shape_lu(Infer *f)
{
	Type x = infer_in(f, 0);
	bool pairs;
	uint32_t rank;
	TRY(matrix_rank(f, 0, &pairs, &rank));
	Ir *ir = f->g->ir;
	Sym m = x.dim[rank - 2], least = sym_min(f->syms, m, x.dim[rank - 1]);
	TypeId part[] = {ir_type(ir, x.dtype, x.n, x.dim), vector_type(f, DT_i32, &x, rank, least, false),
			 vector_type(f, DT_i64, &x, rank, m, false), ir_type(ir, DT_i32, rank - 2, x.dim)};
	f->type = ir_tuple(ir, 4, part);
	return true;
}
INFER(lu)

static bool shape_geqrf(Infer *f)
{
	Type x = infer_in(f, 0);
	bool pairs;
	uint32_t rank;
	TRY(matrix_rank(f, 0, &pairs, &rank));
	Sym least = sym_min(f->syms, x.dim[rank - 2], x.dim[rank - 1]);
	TypeId part[] = {ir_type(f->g->ir, x.dtype, x.n, x.dim), vector_type(f, x.dtype, &x, rank, least, pairs)};
	f->type = ir_tuple(f->g->ir, 2, part);
	return true;
}
INFER(geqrf)

static bool shape_orgqr(Infer *f)
{
	Type a = infer_in(f, 0), tau = infer_in(f, 1);
	bool pairs;
	uint32_t rank;
	Sym dim[MAX_RANK];
	TRY(infer_same_dtype(f, 0, 1));
	TRY(matrix_rank(f, 0, &pairs, &rank));
	if (tau.n + 1 != a.n)
		return infer_fail(f, "matrices of rank %u and tau of rank %u", a.n, tau.n);
	for (uint32_t k = 0; k + 2 < rank; k++)
		TRY(infer_same(f, "batch extent", a.dim[k], tau.dim[k]));
	if (pairs)
		TRY(infer_same(f, "a last dimension of two", tau.dim[tau.n - 1],
			       sym_int(f->syms, 2)));
	Sym k = tau.dim[rank - 2], columns = infer_attr(f, "columns")->s;
	if (sym_lt(f->syms, a.dim[rank - 1], k) == YES ||
	    sym_lt(f->syms, a.dim[rank - 2], k) == YES)
		return infer_fail(f, "there are more reflectors than rows or columns");
	if (sym_lt(f->syms, columns, k) == YES || sym_lt(f->syms, a.dim[rank - 2], columns) == YES)
		return infer_fail(f,
				  "columns are to be at least the reflectors and at most the rows");
	memcpy(dim, a.dim, a.n * sizeof *dim);
	dim[rank - 1] = columns;
	return infer_result(f, a.dtype, a.n, dim);
}
INFER(orgqr)

static bool shape_triangular_solve(Infer *f)
{
	Type a = infer_in(f, 0), x = infer_in(f, 1);
	bool pairs;
	uint32_t rank, other;
	TRY(infer_same_dtype(f, 0, 1));
	TRY(matrix_rank(f, 0, &pairs, &rank) && matrix_rank(f, 1, &pairs, &other));
	if (rank != other)
		return infer_fail(f, "matrices of rank %u and %u", rank, other);
	TRY(infer_same(f, "a square matrix", a.dim[rank - 2], a.dim[rank - 1]));
	for (uint32_t k = 0; k + 1 < rank; k++)
		TRY(infer_same(f, k + 2 < rank ? "batch extent" : "number of rows", a.dim[k], x.dim[k]));
	return infer_result(f, x.dtype, x.n, x.dim);
}
INFER(triangular_solve)

/* ---- the interpreter: complex numbers in f64, whatever the dtype ---- */

typedef struct {
	double re, im;
} C64;

static C64 c_mul(C64 a, C64 b)
{
	return (C64){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static C64 c_sub(C64 a, C64 b)
{
	return (C64){a.re - b.re, a.im - b.im};
}

static C64 c_conj(C64 a)
{
	return (C64){a.re, -a.im};
}

/* Divides by Smith's method; real numbers are divided as such. */
static C64 c_div(C64 a, C64 b)
{
	if (a.im == 0 && b.im == 0)
		return (C64){a.re / b.re, 0};
	if (fabs(b.re) >= fabs(b.im)) {
		double r = b.im / b.re, d = b.re + b.im * r;
		return (C64){(a.re + a.im * r) / d, (a.im - a.re * r) / d};
	}
	double r = b.re / b.im, d = b.re * r + b.im;
	return (C64){(a.re * r + a.im) / d, (a.im * r - a.re) / d};
}

/* Matrices m x n of a tensor, one after the other. */
typedef struct {
	bool pairs;
	int64_t m, n, count;
	C64 *at; /* the one at hand */
} Matrices;

static Matrices matrices_of(EvalCtx *e, Graph *g, Node n, const Tensor *x)
{
	Matrices a = {.pairs = node_bool(g, n, "pairs"), .count = 1};
	uint32_t rank = x->rank - a.pairs;
	a.m = x->dim[rank - 2];
	a.n = x->dim[rank - 1];
	for (uint32_t k = 0; k + 2 < rank; k++)
		a.count *= x->dim[k];
	a.at = EVAL_ARRAY(e, C64, a.m * a.n);
	return a;
}

static void read_numbers(const Tensor *x, int64_t at, int64_t n, bool pairs, C64 *out)
{
	for (int64_t k = 0; k < n; k++) {
		out[k].re = tensor_f64(x, pairs ? 2 * (at + k) : at + k);
		out[k].im = pairs ? tensor_f64(x, 2 * (at + k) + 1) : 0;
	}
}

static void write_numbers(Tensor *x, int64_t at, int64_t n, bool pairs, const C64 *in)
{
	for (int64_t k = 0; k < n; k++) {
		tensor_set_f64(x, pairs ? 2 * (at + k) : at + k, in[k].re);
		if (pairs)
			tensor_set_f64(x, 2 * (at + k) + 1, in[k].im);
	}
}

/* Computes row r of the factor, in place. Returns whether the pivot is positive. */
static bool cholesky_row(C64 *a, int64_t n, int64_t r)
{
	for (int64_t j = r; j < n; j++)
		for (int64_t q = 0; q < r; q++)
			a[r * n + j] = c_sub(a[r * n + j], c_mul(c_conj(a[q * n + r]), a[q * n + j]));
	double pivot = a[r * n + r].re, root = sqrt(pivot);
	for (int64_t j = 0; j < n; j++)
		a[r * n + j] = j < r ? (C64){0, 0} : (C64){a[r * n + j].re / root, a[r * n + j].im / root};
	a[r * n + r] = (C64){root, 0};
	return pivot > 0;
}

static bool eval_cholesky(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	Matrices a = matrices_of(e, g, n, in);
	for (int64_t k = 0; k < a.count; k++) {
		int64_t info = 0;
		read_numbers(in, k * a.m * a.n, a.m * a.n, a.pairs, a.at);
		for (int64_t r = 0; r < a.n; r++)
			if (!cholesky_row(a.at, a.n, r) && !info)
				info = r + 1;
		write_numbers(&out[0], k * a.m * a.n, a.m * a.n, a.pairs, a.at);
		tensor_set_i64(&out[1], k, info);
	}
	return true;
}

/* Returns the row from c on with the largest |re| + |im| in column c; the first of equal ones,
 * and of NaN. */
static int64_t pivot_row(const Matrices *a, int64_t c)
{
	int64_t best = c;
	double most = -1;
	for (int64_t i = c; i < a->m && !isnan(most); i++) {
		C64 v = a->at[i * a->n + c];
		double size = fabs(v.re) + fabs(v.im);
		if (size > most || isnan(size)) {
			most = size;
			best = i;
		}
	}
	return best;
}

/* Exchanges row c with the pivot's, and takes the pivot's row off those below. */
static bool lu_column(const Matrices *a, int64_t c, int64_t *order, int64_t *p)
{
	C64 *x = a->at;
	*p = pivot_row(a, c);
	int64_t first = order[c];
	order[c] = order[*p];
	order[*p] = first;
	for (int64_t j = 0; j < a->n && *p != c; j++) {
		C64 v = x[c * a->n + j];
		x[c * a->n + j] = x[*p * a->n + j];
		x[*p * a->n + j] = v;
	}
	C64 pivot = x[c * a->n + c];
	bool regular = pivot.re != 0 || pivot.im != 0;
	for (int64_t i = c + 1; i < a->m; i++) {
		C64 *row = x + i * a->n, l = regular ? c_div(row[c], pivot) : row[c];
		row[c] = l;
		for (int64_t j = c + 1; j < a->n; j++)
			row[j] = c_sub(row[j], c_mul(l, x[c * a->n + j]));
	}
	return regular;
}

static bool eval_lu(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	Matrices a = matrices_of(e, g, n, in);
	int64_t least = a.m < a.n ? a.m : a.n, *order = EVAL_ARRAY(e, int64_t, a.m);
	for (int64_t k = 0; k < a.count; k++) {
		int64_t info = 0, p;
		read_numbers(in, k * a.m * a.n, a.m * a.n, a.pairs, a.at);
		for (int64_t i = 0; i < a.m; i++)
			order[i] = i;
		for (int64_t c = 0; c < least; c++) {
			if (!lu_column(&a, c, order, &p) && !info)
				info = c + 1;
			tensor_set_i64(&out[1], k * least + c, p + 1);
		}
		write_numbers(&out[0], k * a.m * a.n, a.m * a.n, a.pairs, a.at);
		for (int64_t i = 0; i < a.m; i++)
			tensor_set_i64(&out[2], k * a.m + i, order[i]);
		tensor_set_i64(&out[3], k, info);
	}
	return true;
}

/* Makes column c a reflector; returns its tau. */
static C64 geqrf_reflector(const Matrices *a, int64_t c)
{
	C64 *x = a->at, alpha = x[c * a->n + c];
	double below = 0;
	for (int64_t i = c + 1; i < a->m; i++)
		below = hypot(below, hypot(x[i * a->n + c].re, x[i * a->n + c].im));
	if (below == 0 && alpha.im == 0)
		return (C64){0, 0};
	/* of -0 as of 0 */
	double length = hypot(below, hypot(alpha.re, alpha.im)), beta = alpha.re < 0 ? length : -length;
	C64 scale = {alpha.re - beta, alpha.im};
	for (int64_t i = c + 1; i < a->m; i++)
		x[i * a->n + c] = c_div(x[i * a->n + c], scale);
	x[c * a->n + c] = (C64){beta, 0};
	return (C64){(beta - alpha.re) / beta, -alpha.im / beta};
}

/* Multiplies the columns behind c by (I - conj(tau) v v^H). */
static void geqrf_apply(const Matrices *a, int64_t c, C64 tau)
{
	C64 *x = a->at;
	for (int64_t j = c + 1; j < a->n; j++) {
		C64 w = x[c * a->n + j];
		for (int64_t i = c + 1; i < a->m; i++) {
			C64 v = c_mul(c_conj(x[i * a->n + c]), x[i * a->n + j]);
			w = (C64){w.re + v.re, w.im + v.im};
		}
		w = c_mul(c_conj(tau), w);
		x[c * a->n + j] = c_sub(x[c * a->n + j], w);
		for (int64_t i = c + 1; i < a->m; i++)
			x[i * a->n + j] = c_sub(x[i * a->n + j], c_mul(x[i * a->n + c], w));
	}
}

static bool eval_geqrf(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	Matrices a = matrices_of(e, g, n, in);
	int64_t least = a.m < a.n ? a.m : a.n;
	for (int64_t k = 0; k < a.count; k++) {
		read_numbers(in, k * a.m * a.n, a.m * a.n, a.pairs, a.at);
		for (int64_t c = 0; c < least; c++) {
			C64 tau = geqrf_reflector(&a, c);
			geqrf_apply(&a, c, tau);
			write_numbers(&out[1], k * least + c, 1, a.pairs, &tau);
		}
		write_numbers(&out[0], k * a.m * a.n, a.m * a.n, a.pairs, a.at);
	}
	return true;
}

/* Multiplies q, whose columns in front of c are 0 from row c on, by (I - tau v v^H); v is column
 * c of a below row c, and 1 there. */
static void orgqr_apply(const Matrices *a, const Matrices *q, int64_t c, C64 tau)
{
	for (int64_t j = c; j < q->n; j++) {
		C64 w = q->at[c * q->n + j];
		for (int64_t i = c + 1; i < a->m; i++) {
			C64 v = c_mul(c_conj(a->at[i * a->n + c]), q->at[i * q->n + j]);
			w = (C64){w.re + v.re, w.im + v.im};
		}
		w = c_mul(tau, w);
		q->at[c * q->n + j] = c_sub(q->at[c * q->n + j], w);
		for (int64_t i = c + 1; i < a->m; i++)
			q->at[i * q->n + j] =
				c_sub(q->at[i * q->n + j], c_mul(a->at[i * a->n + c], w));
	}
}

static bool eval_orgqr(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	Matrices a = matrices_of(e, g, n, &in[0]), q = matrices_of(e, g, n, out);
	const int64_t reflectors = in[1].dim[in[1].rank - 1 - a.pairs];
	C64 *tau = EVAL_ARRAY(e, C64, reflectors);
	for (int64_t k = 0; k < a.count; k++) {
		read_numbers(&in[0], k * a.m * a.n, a.m * a.n, a.pairs, a.at);
		read_numbers(&in[1], k * reflectors, reflectors, a.pairs, tau);
		for (int64_t i = 0; i < q.m * q.n; i++)
			q.at[i] = (C64){i / q.n == i % q.n, 0};
		for (int64_t c = reflectors - 1; c >= 0; c--)
			orgqr_apply(&a, &q, c, tau[c]);
		write_numbers(out, k * q.m * q.n, q.m * q.n, a.pairs, q.at);
	}
	return true;
}

/* Computes row i of the solution from the rows that are known. */
static void solve_row(const Matrices *a, const Matrices *x, int64_t i, bool upper, bool unit)
{
	for (int64_t q = upper ? i + 1 : 0; q < (upper ? a->n : i); q++)
		for (int64_t j = 0; j < x->n; j++)
			x->at[i * x->n + j] = c_sub(x->at[i * x->n + j], c_mul(a->at[i * a->n + q], x->at[q * x->n + j]));
	for (int64_t j = 0; j < x->n && !unit; j++)
		x->at[i * x->n + j] = c_div(x->at[i * x->n + j], a->at[i * a->n + i]);
}

static bool eval_triangular_solve(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	Matrices a = matrices_of(e, g, n, &in[0]), x = matrices_of(e, g, n, &in[1]);
	bool upper = node_bool(g, n, "upper"), unit = node_bool(g, n, "unit");
	for (int64_t k = 0; k < a.count; k++) {
		read_numbers(&in[0], k * a.m * a.n, a.m * a.n, a.pairs, a.at);
		read_numbers(&in[1], k * x.m * x.n, x.m * x.n, x.pairs, x.at);
		for (int64_t i = 0; i < a.n; i++)
			solve_row(&a, &x, upper ? a.n - 1 - i : i, upper, unit);
		write_numbers(out, k * x.m * x.n, x.m * x.n, x.pairs, x.at);
	}
	return true;
}

/* ---- building ---- */

static Node factored(Build *b, Op op, Node x, bool pairs)
{
	return x.i ? b_node(b, op, &x, 1, (Attr[]){attr_none(), attr_bool(pairs)}, 2) : x;
}

Node factor_cholesky(Build *b, Node x, bool pairs)
{
	return factored(b, OP_cholesky, x, pairs);
}

Node factor_lu(Build *b, Node x, bool pairs)
{
	return factored(b, OP_lu, x, pairs);
}

/* Returns, for each element m >= 0, 2^-e, where 2^e is the greatest power of two that is at most
 * m; 1 for inf and NaN. */
static Node inverse_power(Build *b, Node m)
{
	const bool wide = node_dtype(b->g, m) == DT_f64;
	const DType d = wide ? DT_i64 : DT_i32;
	const int64_t least = wide ? INT64_C(1) << 52 : 1 << 23, all = wide ? INT64_C(0x7ff) << 52 : 0x7f800000;
	Node bits = b_node(b, OP_bitcast, &m, 1, (Attr[]){attr_none(), attr_dtype(d)}, 2);
	bits = b_bin(b, OP_bit_and, bits, b_full_int(b, d, all, 0, NULL));
	Node turned = b_bin(b, OP_maximum, b_bin(b, OP_sub, b_full_int(b, d, all - least, 0, NULL), bits), b_full_int(b, d, least, 0, NULL));
	Node power = b_node(b, OP_bitcast, &turned, 1, (Attr[]){attr_none(), attr_dtype(node_dtype(b->g, m))}, 2);
	return b_select(b, b_bin_scalar(b, OP_eq, bits, (double)all), b_full(b, node_dtype(b->g, m), 1, 0, NULL), power);
}

/* Adds a geqrf of x multiplied by a power of two, which changes R only: squares of elements must
 * not leave the range of the dtype. */
Node factor_geqrf(Build *b, Node x, bool pairs)
{
	if (!x.i)
		return x;
	const uint32_t rank = node_rank(b->g, x);
	Node power = inverse_power(b, b_reduce(b, REDUCE_MAX, b_un(b, OP_abs, x), (pairs ? 7u : 3u) << (rank - 2 - pairs), DT_none));
	for (uint32_t k = 0; k < 2u + pairs; k++)
		power = b_unsqueeze(b, power, -1);
	Node y = factored(b, OP_geqrf, b_bin(b, OP_mul, x, power), pairs);
	if (!y.i)
		return y;
	Parts a = mat_of(b, b_get(b, y, 0), pairs), r = mat_of(b, b_bin(b, OP_div, b_get(b, y, 0), power), pairs);
	Node row = b_unsqueeze(b, b_iota(b, DT_i64, b_dim(b, a.re, -2)), -1), column = b_iota(b, DT_i64, b_dim(b, a.re, -1));
	a = mat_select(b, b_bin(b, OP_le, row, column), r, a);
	return b_tuple(b, (Node[]){mat_node(b, a), b_get(b, y, 1)}, 2);
}

Node factor_solve(Build *b, Node a, Node x, Triangle t, bool pairs)
{
	Attr attr[] = {attr_none(), attr_none(), attr_bool(t.upper), attr_bool(t.unit), attr_bool(pairs)};
	return a.i && x.i ? b_node(b, OP_triangular_solve, (Node[]){a, x}, 2, attr, 5) : (Node){0};
}

/* Calls gather or scatter along the dimension behind the batches. */
static Node by_index(Build *b, Op op, const Node *in, uint32_t nin, uint32_t batch)
{
	const Schema *s = op_schema(op);
	Attr *attr = ARENA_ARRAY(b->g->ir->ctx->scratch, Attr, s->narg);
	for (uint32_t k = 0; k < s->narg; k++)
		attr[k] = attr_none();
	attr[op_arg_index(op, "batch")] = attr_int(b->g->ir, batch);
	attr[op_arg_index(op, "axes")] = attr_ints((Sym[]){b_int(b, batch)}, 1);
	attr[op_arg_index(op, "mode")] = attr_str(b->g->ir, "promise");
	if (op == OP_scatter) {
		attr[op_arg_index(op, "combine")] = attr_str(b->g->ir, "set");
		attr[op_arg_index(op, "unique")] = attr_bool(true);
		attr[op_arg_index(op, "sorted")] = attr_bool(false);
	}
	return b_node(b, op, in, nin, attr, s->narg);
}

Node factor_take(Build *b, Node x, Node index, uint32_t batch)
{
	return x.i && index.i ? by_index(b, OP_gather, (Node[]){x, b_unsqueeze(b, index, -1)}, 2, batch) : (Node){0};
}

Node factor_place(Build *b, Node x, Node index, Node part, uint32_t batch)
{
	return x.i && index.i && part.i ? by_index(b, OP_scatter, (Node[]){x, b_unsqueeze(b, index, -1), part}, 3, batch)
					: (Node){0};
}

Node factor_rows(Build *b, Node x, Node order, bool pairs)
{
	return x.i ? factor_take(b, x, order, node_rank(b->g, x) - 2 - pairs) : x;
}

/* ---- matrices of parts ---- */

/* Returns x + x^H of the upper triangle of x, but on the diagonal the real part of x. */
static Parts hermitian_of_upper(Build *b, Parts x)
{
	Parts above = mat_upper(b, x, 1), z = mat_add(b, above, mat_adjoint(b, above));
	z.re = b_bin(b, OP_add, z.re, mat_lower(b, mat_upper(b, (Parts){.re = x.re}, 0), 0).re);
	return z;
}

static Parts mat_solve(Build *b, Parts a, Parts x, Triangle t)
{
	bool pairs = a.im.i != 0;
	Node right = mat_node(b, x);
	return mat_of(b, factor_solve(b, mat_node(b, a), right, t, pairs), pairs);
}

/* Returns x A^-1. */
static Parts mat_solve_right(Build *b, Parts a, Parts x, Triangle t)
{
	Parts xh = mat_adjoint(b, x), ah = mat_adjoint(b, a);
	return mat_adjoint(b, mat_solve(b, ah, xh, (Triangle){!t.upper, t.unit}));
}

/* ---- cholesky ---- */

/* Computes, with P = gU U^H, U^-1 of the Hermitian matrix whose upper triangle is P's, its
 * diagonal halved, and U^-H, symmetrised. */
static bool adjoint_cholesky(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	if (!ct[0].i)
		return true;
	bool pairs = node_bool(b->g, n, "pairs");
	Parts u = mat_of(b, b_get(b, n, 0), pairs), by = mat_of(b, ct[0], pairs);
	Parts p = mat_times(b, by, mat_adjoint(b, u));
	Parts lower = mat_adjoint(b, mat_upper(b, p, 1));
	Parts both = mat_add(b, mat_upper(b, p, 0), lower);
	both.re = b_bin_scalar(b, OP_mul, both.re, 0.5);
	if (pairs)
		both.im = b_bin_scalar(b, OP_mul, both.im, 0.5);
	Parts half = mat_solve(b, u, both, (Triangle){true, false});
	g[0] = mat_node(b, mat_solve_right(b, mat_adjoint(b, u), half, (Triangle){false, false}));
	return g[0].i;
}

OP(cholesky) {
	.schema = "cholesky(Tensor x, *, bool pairs=False) -> (Tensor factor, Tensor info)",
	.doc = "the upper triangle U with U^H U = x, of which the upper triangle is read, and zeros below; info: the "
	       "order of the first leading minor that is not positive, or 0; then the elements of U are unspecified",
	.adjoint = adjoint_cholesky,
	.batch_leading = true,
	.infer = infer_cholesky,
	.eval = eval_cholesky,
	.lower = {.role = LOWER_ROOT, .reads = ALL_OPERANDS},
	.accumulates = true,
	.sample = "f32[3, 3] of 4 2 1 9 5 3 9 9 6; f32[2, n=2, n] of 4 1 9 2 1 0.5 9 3; f64[2, 2, 2] of 4 0 1 1 9 9 3 0, pairs=true; "
		  "f32[0, 0]; f32[1, 1] of 4; f32[0, 2, 2]",
};

/* ---- lu ---- */

/* Computes, with the factors L and U of the rows in another order, L^-H (tril(L^H gL, -1) +
 * triu(gU U^H)) U^-H; what is below a square L, or to the right of a square U, is solved for
 * first. */
static bool adjoint_lu(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	if (!ct[0].i)
		return true;
	bool pairs = node_bool(b->g, n, "pairs");
	Parts f = mat_of(b, b_get(b, n, 0), pairs), by = mat_of(b, ct[0], pairs), more = {0};
	Shape s = aten_shape(b, f.re);
	Sym zero = b_int(b, 0), m = s.dim[s.rank - 2], c = s.dim[s.rank - 1], k = sym_min(b_syms(b), m, c);
	bool tall = sym_lt(b_syms(b), k, m) != NO, wide = sym_lt(b_syms(b), k, c) != NO;
	Parts square = mat_columns(b, mat_rows(b, f, zero, k), zero, k), g1 = mat_columns(b, mat_rows(b, by, zero, k), zero, k);
	Parts lh = mat_adjoint(b, mat_with_ones(b, mat_lower(b, square, -1))), u = mat_upper(b, square, 0), uh = mat_adjoint(b, u);
	Parts below = mat_times(b, lh, mat_lower(b, g1, -1)), above = mat_times(b, mat_upper(b, g1, 0), uh);
	Parts right = {0};
	if (wide) {
		Parts gu = mat_columns(b, mat_rows(b, by, zero, k), k, c);
		below = mat_sub(b, below, mat_times(b, gu, mat_adjoint(b, mat_columns(b, mat_rows(b, f, zero, k), k, c))));
		right = mat_solve(b, lh, gu, (Triangle){true, true});
	}
	if (tall) {
		Parts gl = mat_columns(b, mat_rows(b, by, k, m), zero, k);
		above = mat_sub(b, above, mat_times(b, mat_adjoint(b, mat_columns(b, mat_rows(b, f, k, m), zero, k)), gl));
		more = mat_solve_right(b, uh, gl, (Triangle){false, false});
	}
	Parts upper = mat_upper(b, above, 0), phi = mat_add(b, mat_lower(b, below, -1), upper);
	Parts y = mat_solve(b, lh, mat_solve_right(b, uh, phi, (Triangle){false, false}), (Triangle){true, true});
	y = wide ? mat_join(b, y, right, -1) : y;
	if (tall && wide) { /* one of them has no elements */
		Parts none = {.re = b_slice(b, mat_rows(b, by, k, m).re, -1, k, c, b_int(b, 1))};
		none.im = pairs ? b_slice(b, mat_rows(b, by, k, m).im, -1, k, c, b_int(b, 1)) : none.im;
		more = mat_join(b, more, none, -1);
	}
	Node all = mat_node(b, tall ? mat_join(b, y, more, -2) : y), order = b_get(b, n, 2);
	Shape sa = aten_shape(b, all);
	for (uint32_t d = s.rank - 1; d < sa.rank; d++)
		order = b_unsqueeze(b, order, -1);
	order = b_broadcast(b, order, sa.rank, sa.dim);
	g[0] = all.i && order.i ? rule_scatter_along(b, b_zeros_like(b, all), order, all, s.rank - 2, "set", true) : (Node){0};
	return g[0].i;
}

OP(lu) {
	.schema = "lu(Tensor x, *, bool pairs=False) -> (Tensor factors, Tensor pivots, Tensor order, Tensor info)",
	.doc = "L (below the diagonal; ones on it) and U of x[order, :] = L U: pivots are of the largest |re| + |im|, the "
	       "first of equal ones; pivots: the row, from 1 on, that changed places with row k; info: the number, from 1 on, "
	       "of the first pivot that is 0, or 0",
	.adjoint = adjoint_lu,
	.batch_leading = true,
	.infer = infer_lu,
	.eval = eval_lu,
	.lower = {.role = LOWER_ROOT, .reads = ALL_OPERANDS},
	.accumulates = true,
	.sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2; f32[2, n=2, n] of 4 1 -1 2 0 1 2 3; f32[3, 2]; f32[n=2, 4]; "
		  "f64[2, 2, 2] of 0 1 2 0 1 -1 3 0.5, pairs=true; f32[0, 0]; f32[1, 3]; f32[3, 3] of 1 1 2 -1 1 0 1 -1 4; "
		  "f32[2, 2] of 0 0 0 0; f32[0, 2, 2]",
};

/* ---- triangular systems ---- */

/* Computes the cotangent of B: the solution with A^H; and of A: - that times X^H, in the
 * triangle that is read. */
static bool adjoint_triangular_solve(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	bool pairs = node_bool(b->g, n, "pairs"), upper = node_bool(b->g, n, "upper"), unit = node_bool(b->g, n, "unit");
	Parts a = mat_of(b, node_in(b->g, n, 0), pairs), by = mat_of(b, ct[0], pairs);
	Parts y = mat_solve(b, mat_adjoint(b, a), by, (Triangle){!upper, unit});
	g[1] = mat_node(b, y);
	if (!want[0] || !g[1].i)
		return g[1].i;
	Parts ga = mat_neg(b, mat_times(b, y, mat_adjoint(b, mat_of(b, n, pairs))));
	g[0] = mat_node(b, upper ? mat_upper(b, ga, unit) : mat_lower(b, ga, -(int64_t)unit));
	return g[0].i;
}

/* Adds the batch. An A that is no batch solves for the columns of all members at once. */
static Node batch_triangular_solve(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	bool pairs = node_bool(b->g, n, "pairs");
	uint32_t rank = node_rank(b->g, node_in(b->g, n, 1)), column = rank - 1 - pairs;
	if (batched[0] || rank != 2u + pairs)
		return batch_again(b, n, batch_all_wide(b, n, in, batched, size), batch_attrs(b, n));
	Node x = batch_merge(b, batch_to(b, in[1], column), column + 1);
	Node y = batch_again(b, n, (Node[]){in[0], x}, batch_attrs(b, n));
	return y.i ? batch_from(b, batch_split(b, y, column, size, node_dim(b->g, node_in(b->g, n, 1), column)), column) : y;
}

OP(triangular_solve) {
	.schema = "triangular_solve(Tensor a, Tensor b, *, bool upper, bool unit, bool pairs=False) -> Tensor",
	.doc = "the X of A X = B, for a triangle of A; unit: with ones on its diagonal",
	.linear_in = 2,
	.adjoint = adjoint_triangular_solve,
	.batch = batch_triangular_solve,
	.infer = infer_triangular_solve,
	.eval = eval_triangular_solve,
	.lower = {.role = LOWER_ROOT, .reads = ALL_OPERANDS},
	.accumulates = true,
	.sample = "f32[3, 3] of 2 9 9 1 0.5 9 3 1 -2, f32[3, m=2], upper=false, unit=false; "
		  "f32[2, n=2, n] of 4 1 9 2 1 1 9 3, f32[2, n, 3], upper=true, unit=false; "
		  "f32[2, 2] of 9 1 -1 9, f32[2, 2], upper=false, unit=true; "
		  "f64[2, 2, 2] of 0.5 1 2 0 1 -1 3 0.5, f64[2, 2, 2], upper=true, unit=false, pairs=true; "
		  "f32[0, 0], f32[0, 2], upper=true, unit=false; f32[2, 2] of 2 0 1 3, f32[2, 0], upper=false, unit=false; "
		  "f32[1, 1] of 4, f32[1, 2], upper=false, unit=false",
};

/* ---- geqrf ---- */

OP(geqrf) {
	.schema = "geqrf(Tensor x, *, bool pairs=False) -> (Tensor a, Tensor tau)",
	.doc = "R in the upper triangle of a; below it column k of the reflectors H_k = I - tau_k v_k v_k^H, whose first "
	       "element is 1, with H_1 H_2 ... R = x: LAPACK's geqrf",
	.no_deriv = "PyTorch has none either; linalg.qr is not differentiable when mode='complete' and nrows > ncols, "
		    "and when mode='r', which does not compute Q: take mode='reduced'",
	.batch_leading = true,
	.infer = infer_geqrf,
	.eval = eval_geqrf,
	.lower = {.role = LOWER_ROOT, .reads = ALL_OPERANDS},
	.accumulates = true,
	.sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2; f32[2, n=2, n]; f32[4, 2]; f32[n=2, 3]; f64[3, 2, 2], pairs=true; "
		  "f32[0, 2]; f32[1, 1]; f32[3, 2] of 2 1 0 3 0 4; f64[1, 1, 2] of 3 4, pairs=true",
};

/* ---- reflectors ---- */

/* Returns x with row i times by[.., i]. */
static Parts scaled_rows(Build *b, Parts x, Parts by)
{
	return mat_multiply(b, mat_unsqueeze(b, by, -1), x);
}

/* Returns the first columns of the identity, in the batches of a matrix. */
static Parts unit_columns(Build *b, Parts like, Sym rows, Sym columns)
{
	Shape s = aten_shape(b, like.re);
	s.dim[s.rank - 2] = rows;
	s.dim[s.rank - 1] = columns;
	Parts zeros = {.re = b_full(b, node_dtype(b->g, like.re), 0, s.rank, s.dim)};
	zeros.im = like.im.i ? zeros.re : zeros.im;
	return mat_with_ones(b, zeros);
}

/* Computes Q = I - V S^-1 D V^H, where D is the diagonal matrix of tau and S = I + D N, with N
 * what V^H V has above its diagonal. */
Node factor_reflect(Build *b, Node a, Node tau, Node c, Sym ncolumns, bool conjugate, bool pairs)
{
	if (!a.i || !tau.i)
		return (Node){0};
	Parts t = mat_of(b, tau, pairs), all = mat_of(b, a, pairs), w, e;
	Sym k = b_dim(b, t.re, -1), zero = b_int(b, 0);
	Parts v = mat_with_ones(b, mat_lower(b, mat_columns(b, all, zero, k), -1)), vh = mat_adjoint(b, v);
	Parts s = mat_upper(b, scaled_rows(b, mat_times(b, vh, v), t), 1);
	if (c.i) {
		e = mat_of(b, c, pairs);
		w = mat_times(b, vh, e);
	} else {
		e = unit_columns(b, v, b_dim(b, all.re, -2), ncolumns);
		w = mat_adjoint(b, mat_rows(b, v, zero, ncolumns));
	}
	if (conjugate) {
		Parts scale = mat_conj(b, t);
		w = mat_solve(b, mat_adjoint(b, s), w, (Triangle){.upper = false, .unit = true});
		w = scaled_rows(b, w, scale);
	} else {
		w = mat_solve(b, s, scaled_rows(b, w, t), (Triangle){.upper = true, .unit = true});
	}
	return mat_node(b, mat_sub(b, e, mat_times(b, v, w)));
}

static Parts mat_zeros(Build *b, Parts like)
{
	Parts zeros = {.re = b_zeros_like(b, like.re)};
	zeros.im = like.im.i ? zeros.re : zeros.im;
	return zeros;
}

/* Computes the cotangents by Q = E - V W with W = S^-1 D V1^H, as above, where E and V1 are the
 * first rows of I and V. */
static bool adjoint_orgqr(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	bool pairs = node_bool(b->g, n, "pairs");
	Parts a = mat_of(b, node_in(b->g, n, 0), pairs),
	      tau = mat_of(b, node_in(b->g, n, 1), pairs), by = mat_of(b, ct[0], pairs);
	Sym zero = b_int(b, 0), k = b_dim(b, tau.re, -1), rows = b_dim(b, a.re, -2),
	    c = b_dim(b, by.re, -1);
	Parts v = mat_with_ones(b, mat_lower(b, mat_columns(b, a, zero, k), -1)),
	      vh = mat_adjoint(b, v), product = mat_times(b, vh, v);
	Parts first = mat_adjoint(b, mat_rows(b, v, zero, c)),
	      s = mat_upper(b, scaled_rows(b, product, tau), 1);
	Parts w = mat_solve(b, s, scaled_rows(b, first, tau),
			    (Triangle){.upper = true, .unit = true});
	Parts right = mat_neg(b, mat_times(b, vh, by));
	Parts y = mat_solve(b, mat_adjoint(b, s), right, (Triangle){.upper = false, .unit = true});
	Parts gs = mat_upper(b, mat_neg(b, mat_times(b, y, mat_adjoint(b, w))), 1),
	      gp = scaled_rows(b, gs, mat_conj(b, tau));
	Parts by_w = mat_times(b, by, mat_adjoint(b, w));
	Parts gv = mat_sub(b, mat_times(b, v, mat_add(b, gp, mat_adjoint(b, gp))), by_w);
	Parts gfirst = mat_adjoint(b, scaled_rows(b, y, mat_conj(b, tau))),
	      below = mat_zeros(b, mat_rows(b, v, c, rows));
	gv = mat_lower(b, mat_add(b, gv, mat_join(b, gfirst, below, -2)), -1);
	Parts behind = mat_zeros(b, mat_columns(b, a, k, b_dim(b, a.re, -1)));
	g[0] = mat_node(b, mat_join(b, gv, behind, -1));
	Parts both = mat_multiply(b, y, mat_conj(b, first)),
	      more = mat_multiply(b, gs, mat_conj(b, product));
	uint32_t last = 1u << (node_rank(b->g, y.re) - 1);
	more = mat_sum(b, more, last);
	g[1] = mat_node(b, mat_add(b, mat_sum(b, both, last), more));
	return g[0].i && g[1].i;
}

OP(orgqr){
	.schema = "orgqr(Tensor a, Tensor tau, *, SymInt columns, bool pairs=False) -> Tensor",
	.doc = "the first columns of H_1 H_2 ... H_k, of the reflectors of geqrf: LAPACK's orgqr "
	       "and ungqr",
	.adjoint = adjoint_orgqr,
	.batch_leading = true,
	.infer = infer_orgqr,
	.eval = eval_orgqr,
	.lower = {.role = LOWER_ROOT, .reads = ALL_OPERANDS},
	.accumulates = true,
	.sample = "f32[3, 2] of 2 1 0.5 -1 0.25 3, f32[2] of 1.5 0.2, columns=2; "
		  "f32[2, n=3, n], f32[2, 2] of 1.5 0 0.5 1, columns=n; f32[3, 4], f32[2] of 1.5 "
		  "0.2, columns=2; "
		  "f64[2, 2, 2] of 2 1 0.5 -1 0.25 3 1 0, f64[2, 2] of 1.5 0.5 0.25 -0.5, "
		  "pairs=true, columns=2; "
		  "f32[2, 0], f32[0], columns=0; f32[2, 1], f32[0], columns=1; f32[0, 2, 2], "
		  "f32[0, 2], columns=2",
};

Node factor_columns(Build *b, Node a, Node tau, Sym columns, bool pairs)
{
	enum { FEW = 48 };
	int64_t k;
	if (!a.i || !tau.i)
		return (Node){0};
	if (sym_is_const(b_syms(b), node_dim(b->g, tau, node_rank(b->g, tau) - 1 - pairs), &k) &&
	    k <= FEW)
		return factor_reflect(b, a, tau, (Node){0}, columns, false, pairs);
	return b_node(b, OP_orgqr, (Node[]){a, tau}, 2,
		      (Attr[]){attr_none(), attr_none(), attr_sym(columns), attr_bool(pairs)}, 4);
}

/* ---- qr ---- */

static bool shape_qr(Infer *f)
{
	Type x = infer_in(f, 0);
	bool pairs;
	uint32_t rank;
	TRY(matrix_rank(f, 0, &pairs, &rank));
	Sym dim[MAX_RANK], least = sym_min(f->syms, x.dim[rank - 2], x.dim[rank - 1]);
	TypeId part[2];
	memcpy(dim, x.dim, x.n * sizeof *dim);
	dim[rank - 1] = least;
	part[0] = ir_type(f->g->ir, x.dtype, x.n, dim);
	dim[rank - 1] = x.dim[rank - 1];
	dim[rank - 2] = least;
	part[1] = ir_type(f->g->ir, x.dtype, x.n, dim);
	f->type = ir_tuple(f->g->ir, 2, part);
	return true;
}
INFER(qr)

static Node build_qr(Build *b, Node n)
{
	Node x = node_in(b->g, n, 0);
	bool pairs = node_bool(b->g, n, "pairs");
	Node f = factor_geqrf(b, x, pairs), a = b_get(b, f, 0);
	Sym k = b_dim(b, mat_of(b, b_get(b, f, 1), pairs).re, -1);
	Node q = factor_columns(b, a, b_get(b, f, 1), k, pairs);
	Parts r = mat_upper(b, mat_rows(b, mat_of(b, a, pairs), b_int(b, 0), k), 0);
	return q.i ? b_tuple(b, (Node[]){q, mat_node(b, r)}, 2) : q;
}

/* Returns the cotangent of a square or tall matrix Q R. */
static Parts square_qr(Build *b, Parts q, Parts r, Parts gq, Parts gr)
{
	Parts rh = mat_adjoint(b, r), m = {0};
	if (gr.re.i)
		m = mat_times(b, gr, rh);
	if (gq.re.i)
		m = m.re.i ? mat_sub(b, m, mat_times(b, mat_adjoint(b, q), gq)) : mat_neg(b, mat_times(b, mat_adjoint(b, q), gq));
	Parts y = mat_add(b, mat_times(b, q, hermitian_of_upper(b, m)), gq);
	return mat_solve_right(b, rh, y, (Triangle){false, false});
}

/* Computes the cotangent of a matrix. A wide one [X Y] is Q [U V] with X = Q U square and V =
 * Q^H Y. */
static bool adjoint_qr(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)want;
	bool pairs = node_bool(b->g, n, "pairs");
	Parts q = mat_of(b, b_get(b, n, 0), pairs), r = mat_of(b, b_get(b, n, 1), pairs);
	Parts gq = mat_of(b, ct[0], pairs && ct[0].i), gr = mat_of(b, ct[1], pairs && ct[1].i);
	SymTab *syms = b_syms(b);
	Sym zero = b_int(b, 0), k = b_dim(b, r.re, -2), c = b_dim(b, r.re, -1);
	bool wide = sym_lt(syms, k, c) != NO;
	if (!wide) {
		g[0] = mat_node(b, square_qr(b, q, r, gq, gr));
		return g[0].i;
	}
	Parts u = mat_columns(b, r, zero, k), right = {0};
	if (gr.re.i) {
		Parts gv = mat_columns(b, gr, k, c), y = mat_columns(b, mat_of(b, node_in(b->g, n, 0), pairs), k, c);
		right = mat_times(b, q, gv);
		gq = mat_add(b, gq, mat_times(b, y, mat_adjoint(b, gv)));
		gr = mat_columns(b, gr, zero, k);
	} else {
		Parts y = mat_columns(b, mat_of(b, node_in(b->g, n, 0), pairs), k, c);
		right.re = b_zeros_like(b, y.re);
		right.im = pairs ? b_zeros_like(b, y.im) : right.im;
	}
	g[0] = mat_node(b, mat_join(b, square_qr(b, q, u, gq, gr), right, -1));
	return g[0].i;
}

OP(qr) {
	.schema = "qr(Tensor x, *, bool pairs=False) -> (Tensor q, Tensor r)",
	.doc = "the reduced factors of x = Q R, with the signs of geqrf",
	.expands = EXPANDS_IN_DECOMPOSE,
	.adjoint = adjoint_qr,
	.batch_leading = true,
	.infer = infer_qr,
	.build = build_qr,
	.sample = "f32[3, 3] of 0 2 1 1 0.5 -1 3 1 2; f32[2, n=2, n] of 4 1 -1 2 0 1 2 3; f32[4, 2]; f32[2, 4]; f64[3, 2, 2], pairs=true",
};
