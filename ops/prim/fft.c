/* The discrete Fourier transform along one dimension, on pairs of real numbers. fft_c2c is what
 * expansions build; transforms see it whole. When it is lowered it becomes fft_lines, which has a
 * schedule (codegen/cpu/fft.c), beside the table of the roots of unity, which is a constant if the
 * length is. A length with a prime factor above FFT_PRIME is a convolution with a chirp
 * (Bluestein):
 *
 *   k * j = (k^2 + j^2 - (k - j)^2) / 2:   y[k] = c[k] * sum_j (x[j] * c[j]) * conj(c[k - j])
 *
 * with c[k] = exp(-i pi k^2 / n); a transform of a length that is a power of two does it. */
#include <math.h>
#include <string.h>

#include "ops/prim/data_size.h"
#include "ops/prim/priv.h"
#include "ops/rules/batch.h"
#include "ops/rules/common.h"
#include "ops/rules/parts.h"

enum { FFT_PRIME = 47, FIRST = 16 };

/* ---- types ---- */

static bool shape_fft(Infer *f)
{
	Type x = infer_in(f, 0);
	uint32_t dim;
	if (!dtype_is_float(x.dtype))
		return infer_fail(f, "expected float numbers, got %s", dtype_name(x.dtype));
	if (x.n < 2)
		return infer_fail(f, "expected pairs along a last dimension of two, got rank %u", x.n);
	TRY(infer_same(f, "a last dimension of two", x.dim[x.n - 1], sym_int(f->syms, 2)));
	TRY(infer_dim(f, "dim", x.n - 1, &dim));
	return infer_result(f, x.dtype, x.n, x.dim);
}
INFER(fft)

/* Whether the table of roots has those of a first step with the factor FIRST too: see fft_lines. */
static bool has_first_roots(SymTab *t, Sym n)
{
	int64_t length;
	return sym_is_const(t, n, &length) && length && length % FIRST == 0;
}

/* Returns the length of the table. first: with the roots of a first step; real: with those of
 * halves. */
static Sym table_length(SymTab *t, Sym n, bool first, bool real)
{
	Sym length = sym_muli(t, n, 1 + first + real);
	return real ? sym_addi(t, length, 1) : length;
}

static bool shape_fft_lines(Infer *f)
{
	Type x = infer_in(f, 0), roots = infer_in(f, 1);
	uint32_t dim;
	TRY(shape_fft(f));
	TRY(infer_dim(f, "dim", x.n - 1, &dim));
	if (roots.n != 2 || roots.dtype != dtype_compute(x.dtype))
		return infer_fail(f, "expected a table of two rows of %s",
				  dtype_name(dtype_compute(x.dtype)));
	TRY(infer_same(f, "a first dimension of two", roots.dim[0], sym_int(f->syms, 2)));
	const bool real = infer_attr(f, "real")->b, inverse = infer_attr(f, "inverse")->b;
	Sym dims[MAX_RANK], n = x.dim[dim];
	memcpy(dims, x.dim, x.n * sizeof *dims);
	if (real) {
		n = sym_addi(f->syms, n, inverse ? -1 : 0);
		dims[dim] = sym_addi(f->syms, n, inverse ? 0 : 1);
	}
	int64_t count;
	if (real && !sym_is_const(f->syms, n, &count))
		return infer_fail(f, "expected a length that is a number");
	if (has_first_roots(f->syms, n) && sym_eq(f->syms, roots.dim[1], table_length(f->syms, n, true, real)) == YES)
		return infer_result(f, x.dtype, x.n, dims);
	TRY(infer_same(f, "a root for each element", roots.dim[1], table_length(f->syms, n, false, real)));
	return infer_result(f, x.dtype, x.n, dims);
}
INFER(fft_lines)

static Sym half_length(SymTab *t, Sym n)
{
	return sym_addi(t, sym_divi(t, n, 2), 1);
}

static bool shape_fft_r2c(Infer *f)
{
	Type x = infer_in(f, 0);
	uint32_t dim;
	Sym dims[MAX_RANK];
	if (!dtype_is_float(x.dtype))
		return infer_fail(f, "expected float numbers, got %s", dtype_name(x.dtype));
	if (x.n == MAX_RANK)
		return infer_fail(f, "more than %d dimensions", MAX_RANK - 1);
	TRY(infer_dim(f, "dim", x.n, &dim));
	memcpy(dims, x.dim, x.n * sizeof *dims);
	dims[dim] = half_length(f->syms, x.dim[dim]);
	dims[x.n] = sym_int(f->syms, 2);
	return infer_result(f, x.dtype, x.n + 1, dims);
}
INFER(fft_r2c)

static bool shape_fft_c2r(Infer *f)
{
	Type x = infer_in(f, 0);
	uint32_t dim;
	Sym dims[MAX_RANK], n;
	TRY(shape_fft(f));
	TRY(infer_dim(f, "dim", x.n - 1, &dim));
	TRY(infer_sym(f, "n", &n));
	TRY(infer_same(f, "half of the elements", x.dim[dim], half_length(f->syms, n)));
	memcpy(dims, x.dim, x.n * sizeof *dims);
	dims[dim] = n;
	return infer_result(f, x.dtype, x.n - 1, dims);
}
INFER(fft_c2r)

/* ---- the interpreter, in f64 ---- */

typedef struct {
	double re, im;
} C64;

static C64 times(C64 a, C64 b)
{
	return (C64){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* Returns exp(-2 pi i k / n), 0 <= k < n. The angle is reduced to an eighth of a turn by
 * integers. */
static C64 root_of(int64_t k, int64_t n)
{
	int64_t quarter = (8 * k + n) / (2 * n), rest = 4 * k - quarter * n;
	double angle = 1.57079632679489661923 * (double)rest / (double)n;
	double c = cos(angle), s = sin(angle);
	switch (quarter & 3) {
	case 0:
		return (C64){c, -s};
	case 1:
		return (C64){-s, -c};
	case 2:
		return (C64){-c, s};
	default:
		return (C64){s, c};
	}
}

static C64 *roots_of(Arena *a, int64_t n)
{
	C64 *w = ARENA_ARRAY(a, C64, n);
	for (int64_t k = 0; k < n; k++)
		w[k] = root_of(k, n);
	return w;
}

static int64_t least_factor(int64_t n)
{
	for (int64_t p = 2; p * p <= n; p++)
		if (n % p == 0)
			return p;
	return n;
}

/* A transform of length n as part of one of length `all`, whose roots are w. */
typedef struct {
	Arena *arena;
	const C64 *w;
	int64_t all;
} Dft;

static void dft(const Dft *d, const C64 *x, int64_t stride, C64 *y, int64_t n);

/* Computes y = transform of x[0], x[stride], ... of a length with a large prime factor. */
static void dft_chirp(const Dft *d, const C64 *x, int64_t stride, C64 *y, int64_t n)
{
	int64_t m = 1;
	while (m < 2 * n - 1)
		m *= 2;
	C64 *chirp = ARENA_ARRAY(d->arena, C64, n), *a = ARENA_ARRAY(d->arena, C64, m);
	C64 *b = ARENA_ARRAY(d->arena, C64, m), *c = ARENA_ARRAY(d->arena, C64, m);
	Dft long_one = {d->arena, roots_of(d->arena, m), m};
	int64_t square = 0; /* k * k mod 2 n */
	for (int64_t k = 0; k < n; square = (square + 2 * k + 1) % (2 * n), k++) {
		chirp[k] = root_of(square, 2 * n);
		a[k] = times(x[k * stride], chirp[k]);
		b[k] = (C64){chirp[k].re, -chirp[k].im};
		b[k ? m - k : 0] = b[k];
	}
	dft(&long_one, a, 1, c, m);
	dft(&long_one, b, 1, a, m);
	for (int64_t k = 0; k < m; k++) {
		C64 v = times(c[k], a[k]);
		b[k] = (C64){v.re, -v.im};
	}
	dft(&long_one, b, 1, c, m);
	for (int64_t k = 0; k < n; k++)
		y[k] = times(chirp[k], (C64){c[k].re / (double)m, -c[k].im / (double)m});
}

/* Computes y[k + q m] for q < p, of p transforms of length m in y. */
static void butterfly(const Dft *d, C64 *y, int64_t p, int64_t m, int64_t k, C64 *t)
{
	int64_t step = d->all / (p * m);
	for (int64_t j = 0; j < p; j++)
		t[j] = times(y[j * m + k], d->w[j * k * step]);
	for (int64_t q = 0; q < p; q++) {
		C64 sum = {0, 0};
		for (int64_t j = 0; j < p; j++) {
			C64 v = times(t[j], d->w[j * q % p * (d->all / p)]);
			sum = (C64){sum.re + v.re, sum.im + v.im};
		}
		y[q * m + k] = sum;
	}
}

/* Computes y = transform of x[0], x[stride], ... */
static void dft(const Dft *d, const C64 *x, int64_t stride, C64 *y, int64_t n)
{
	int64_t p = least_factor(n), m = n / p;
	C64 t[FFT_PRIME];
	if (n == 1) {
		y[0] = x[0];
	} else if (p > FFT_PRIME) {
		dft_chirp(d, x, stride, y, n);
	} else {
		for (int64_t j = 0; j < p; j++)
			dft(d, x + j * stride, stride * p, y + j * m, m);
		for (int64_t k = 0; k < m; k++)
			butterfly(d, y, p, m, k, t);
	}
}

/* Exchanges the parts if `inverse`: the inverse is the transform of exchanged parts, exchanged. */
static void exchange(bool inverse, C64 *x, int64_t n)
{
	for (int64_t k = 0; inverse && k < n; k++)
		x[k] = (C64){x[k].im, x[k].re};
}

static void put_second_to_last(uint32_t rank, uint32_t dim, uint32_t *perm)
{
	uint32_t at = 0;
	for (uint32_t k = 0; k + 1 < rank; k++)
		if (k != dim)
			perm[at++] = k;
	perm[at++] = dim;
	perm[at] = rank - 1;
}

static bool eval_fft(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	bool inverse = node_bool(g, n, "inverse");
	uint32_t perm[MAX_RANK], back[MAX_RANK];
	int64_t dim;
	TRY(eval_int(e, g, n, "dim", &dim));
	put_second_to_last(in->rank, (uint32_t)dim, perm);
	perm_inverse(in->rank, perm, back);
	Tensor x = eval_permuted(e, in, perm), y = x;
	int64_t length = in->dim[dim], total = tensor_numel(in);
	y.data = arena_alloc(e->arena, tensor_bytes(&x));
	C64 *a = EVAL_ARRAY(e, C64, length), *b = EVAL_ARRAY(e, C64, length);
	Dft d = {e->arena, total ? roots_of(e->arena, length) : NULL, length};
	for (int64_t at = 0; at < total; at += 2 * length) {
		tensor_read_f64(&x, at, 2 * length, &a->re);
		exchange(inverse, a, length);
		dft(&d, a, 1, b, length);
		exchange(inverse, b, length);
		tensor_write_f64(&y, at, 2 * length, &b->re);
	}
	y = eval_permuted(e, &y, back);
	copy_elems(out, &y);
	return true;
}

/* Transforms n numbers x to the first half. */
static void dft_of_reals(const Dft *d, const double *x, C64 *a, C64 *half, int64_t n)
{
	for (int64_t k = 0; k < n; k++)
		a[k] = (C64){x[k], 0};
	dft(d, a, 1, half, n);
}

/* Returns the real part of the inverse of twice the half, since the other half gives the
 * conjugate. */
static void reals_of_dft(const Dft *d, const C64 *half, C64 *a, C64 *b, double *out, int64_t n)
{
	for (int64_t k = 0; k < n; k++) {
		const double times = k > n / 2 ? 0 : k == 0 || 2 * k == n ? 1 : 2;
		const C64 x = k > n / 2 ? (C64){0, 0} : half[k];
		a[k] = (C64){x.re * times, x.im * times};
	}
	exchange(true, a, n);
	dft(d, a, 1, b, n);
	for (int64_t k = 0; k < n; k++)
		out[k] = b[k].im;
}

/* Sets perm[] so that dimension dim is last, or in front of the pairs. */
static void put_last(uint32_t rank, uint32_t dim, bool pairs, uint32_t *perm)
{
	if (pairs)
		put_second_to_last(rank, dim, perm);
	else
		perm_dim_last(rank, dim, perm);
}

/* Transforms n real numbers along dim. in_pairs, out_pairs: the values are pairs; of real
 * numbers, neighbours. */
static bool eval_real(EvalCtx *e, const Tensor *in, Tensor *out, uint32_t dim, bool inverse, bool in_pairs, bool out_pairs,
		      int64_t n)
{
	uint32_t perm[MAX_RANK], to[MAX_RANK], back[MAX_RANK];
	put_last(in->rank, dim, in_pairs, perm);
	put_last(out->rank, dim, out_pairs, to);
	perm_inverse(out->rank, to, back);
	Tensor x = eval_permuted(e, in, perm), y = *out;
	for (uint32_t k = 0; k < out->rank; k++)
		y.dim[k] = out->dim[to[k]];
	y.data = arena_alloc(e->arena, tensor_bytes(&y));
	const int64_t both = 2 * (n / 2 + 1), from = inverse ? both : n, into = inverse ? n : both;
	C64 *a = EVAL_ARRAY(e, C64, n + 2), *b = EVAL_ARRAY(e, C64, n + 2);
	double *half = EVAL_ARRAY(e, double, both + n);
	const int64_t count = n && tensor_numel(in) ? tensor_numel(in) / from : 0;
	Dft d = {e->arena, count ? roots_of(e->arena, n) : NULL, n};
	for (int64_t i = 0; i < count; i++) {
		tensor_read_f64(&x, i * from, from, half);
		if (inverse)
			reals_of_dft(&d, (const C64 *)(const void *)half, a, b, half + both, n);
		else
			dft_of_reals(&d, half, a, b, n);
		tensor_write_f64(&y, i * into, into, inverse ? half + both : &b->re);
	}
	y = eval_permuted(e, &y, back);
	copy_elems(out, &y);
	return true;
}

static bool eval_fft_lines(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	const bool inverse = node_bool(g, n, "inverse");
	int64_t dim;
	TRY(eval_int(e, g, n, "dim", &dim));
	if (!node_bool(g, n, "real"))
		return eval_fft(e, g, n, in, out);
	return eval_real(e, in, out, (uint32_t)dim, inverse, true, true, 2 * (inverse ? out : in)->dim[dim]);
}

static bool eval_r2c(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	int64_t dim;
	TRY(eval_int(e, g, n, "dim", &dim));
	return eval_real(e, in, out, (uint32_t)dim, false, false, true, in->dim[dim]);
}

static bool eval_c2r(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	int64_t dim;
	TRY(eval_int(e, g, n, "dim", &dim));
	return eval_real(e, in, out, (uint32_t)dim, true, true, false, out->dim[dim]);
}

/* ---- rules ---- */

/* Computes the cotangent: the adjoint of the matrix exp(-2 pi i j k / n), which is symmetric, is
 * its conjugate. */
static bool adjoint_fft(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	Attr *attr = batch_attrs(b, n);
	int k = op_arg_index(node_op(b->g, n), "inverse");
	(void)want;
	attr[k] = attr_bool(!attr[k].b);
	g[0] = batch_again(b, n, ct, attr);
	return g[0].i;
}

static bool tangent_fft(Build *b, Node n, const Node *t, Node *ty)
{
	if (t[0].i)
		ty[0] = batch_again(b, n, t, batch_attrs(b, n));
	return ty[0].i || !t[0].i;
}

static Node batch_fft_lines(Build *b, Node n, const Node *in, const bool *batched, Sym size)
{
	if (batched[1])
		return batch_by_scan(b, n, in, batched, size);
	return batch_dim(b, n, in, (bool[]){true, true}, size);
}

/* ---- the table of roots ---- */

/* Returns exp(-2 pi i k / n), for k * 8 in i64, of dtype d; see root_of. */
static Parts roots_table(Build *b, Node k, Sym n, DType d)
{
	Node size = b_from_size(b, n);
	Node turns = b_bin(b, OP_add, b_bin_scalar(b, OP_mul, k, 8), size);
	Node quarter = b_bin(b, OP_floordiv, turns, b_bin_scalar(b, OP_mul, size, 2));
	Node rest = b_bin(b, OP_sub, b_bin_scalar(b, OP_mul, k, 4), b_bin(b, OP_mul, quarter, size));
	Node angle = b_bin_scalar(b, OP_mul, b_convert(b, rest, DT_f64), 1.57079632679489661923);
	angle = b_bin(b, OP_div, angle, b_convert(b, size, DT_f64));
	Node c = b_un(b, OP_cos, angle), s = b_un(b, OP_sin, angle);
	Node odd = b_bin_scalar(b, OP_ne, b_bin_scalar(b, OP_bit_and, quarter, 1), 0);
	Node half = b_bin_scalar(b, OP_ne, b_bin_scalar(b, OP_bit_and, quarter, 2), 0);
	Node re = b_select(b, odd, b_un(b, OP_neg, s), c);
	Node im = b_un(b, OP_neg, b_select(b, odd, c, s));
	re = b_select(b, half, b_un(b, OP_neg, re), re);
	im = b_select(b, half, b_un(b, OP_neg, im), im);
	return (Parts){.re = b_convert(b, re, d), .im = b_convert(b, im, d)};
}

static Node constant(Build *b, const Tensor *t)
{
	Ir *ir = b->g->ir;
	Const table = {.name = "", .dtype = t->dtype, .rank = t->rank, .bytes = tensor_bytes(t), .data = t->data};
	table.dim = arena_dup(ir->ctx->arena, t->dim, t->rank * sizeof *t->dim);
	return b_const(b, ir_const(ir, table));
}

enum { MOST_TABLE = 1 << 24 }; /* bytes. (pass_fold makes no large constant of iotas.) */

/* Returns these roots for k = r * c, where r < rows and c < columns, as a constant of pairs
 * [rows, columns, 2], or no node if it would be too large. */
static Node constant_roots(Build *b, int64_t rows, int64_t columns, int64_t n, DType d)
{
	if ((d != DT_f32 && d != DT_f64) || rows > MOST_TABLE || columns > MOST_TABLE ||
	    rows * columns * 2 * dtype_size(d) > MOST_TABLE)
		return (Node){0};
	Tensor t = {.dtype = d, .rank = 3, .dim = {rows, columns, 2}};
	t.data = arena_alloc(b->g->ir->ctx->arena, tensor_bytes(&t));
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < columns; c++) {
			C64 w = root_of(r * c % n, n);
			tensor_set_f64(&t, 2 * (r * columns + c), w.re);
			tensor_set_f64(&t, 2 * (r * columns + c) + 1, w.im);
		}
	return constant(b, &t);
}

/* Returns the table of fft_lines as a constant; no node if it would be too large. */
static Node constant_table(Build *b, int64_t n, DType d, bool real)
{
	const bool first = has_first_roots(b_syms(b), b_int(b, n));
	/* half: where those of halves begin */
	const int64_t half = first ? 2 * n : n, count = real ? half + n + 1 : half;
	if ((d != DT_f32 && d != DT_f64) || n == 0 || n > MOST_TABLE || count * 2 * dtype_size(d) > MOST_TABLE)
		return (Node){0};
	Tensor t = {.dtype = d, .rank = 2, .dim = {2, count}};
	t.data = arena_alloc(b->g->ir->ctx->arena, tensor_bytes(&t));
	for (int64_t i = 0; i < count; i++) {
		const int64_t j = i - n;
		C64 w = i >= half ? root_of(i - half, 2 * n) : root_of(i < n ? i : j / FIRST * (j % FIRST), n);
		tensor_set_f64(&t, i, w.re);
		tensor_set_f64(&t, count + i, w.im);
	}
	return constant(b, &t);
}

/* Returns the roots for all k < n, as fft_lines takes them. */
static Node all_roots(Build *b, Sym n, DType d)
{
	int64_t count;
	Node table = {0};
	if (sym_is_const(b_syms(b), n, &count))
		table = constant_table(b, count, d, false);
	if (table.i)
		return table;
	Parts w = roots_table(b, b_iota(b, DT_i64, n), n, d);
	Node row[2] = {b_unsqueeze(b, w.re, 0), b_unsqueeze(b, w.im, 0)};
	return b_concat(b, row, 2, 0);
}

static Node all_lines(Build *b, Node x, uint32_t dim, bool inverse)
{
	Sym n = b_dim(b, x, (int)dim);
	Node in[2] = {x, all_roots(b, n, dtype_compute(node_dtype(b->g, x)))};
	Attr attr[5] = {attr_none(), attr_none(), attr_int(b->g->ir, dim), attr_bool(inverse), attr_bool(false)};
	return b_node(b, OP_fft_lines, in, 2, attr, 5);
}

/* Returns a vector [n], or a matrix, whose last dimension is to be dimension dim of a value of
 * that rank, so that both broadcast. */
static Node along(Build *b, Node v, uint32_t rank, uint32_t dim)
{
	for (uint32_t k = dim + 1; v.i && k < rank; k++)
		v = b_unsqueeze(b, v, -1);
	return v;
}

static Node multiplied(Build *b, Node pairs, uint32_t dim, Parts by)
{
	const uint32_t rank = node_rank(b->g, pairs) - 1;
	by.re = along(b, by.re, rank, dim);
	by.im = along(b, by.im, rank, dim);
	Parts product = parts_multiply(b, parts_of_pairs(b, pairs), by);
	return product.re.i && product.im.i ? parts_to_pairs(b, &product) : (Node){0};
}

static Parts conjugate_if(Build *b, bool conjugate, Parts c)
{
	if (conjugate)
		c.im = b_un(b, OP_neg, c.im);
	c.pairs = (Node){0};
	return c;
}

/* ---- few long lines ---- */

/* Returns the greatest divisor of n up to its square root. */
static int64_t near_root(int64_t n)
{
	int64_t best = 1;
	for (int64_t p = 2; p * p <= n; p++)
		if (n % p == 0)
			best = p;
	return best;
}

/* Transforms a line as n1 rows of n2 elements, so that there are many short lines. Element (r,
 * c) of the line, r n2 + c, is taken as element (c, r): the transform along r has element k for
 * each c, which is multiplied by exp(-2 pi i c k / n); element l of the transform of that along
 * c is element (l, k), or l n1 + k, of the result. So the second transform and its result are
 * contiguous across lines. */
static Node by_rows(Build *b, Node x, uint32_t dim, bool inverse, int64_t n1, int64_t n2)
{
	const DType d = dtype_compute(node_dtype(b->g, x));
	Shape s = aten_shape(b, x);
	Sym n = s.dim[dim], rows = b_int(b, n1), columns = b_int(b, n2);
	Sym cut[MAX_RANK];
	uint32_t perm[MAX_RANK];
	for (uint32_t k = 0; k <= s.rank; k++) {
		cut[k] = k < dim ? s.dim[k] : k == dim ? rows : k == dim + 1 ? columns : s.dim[k - 1];
		perm[k] = k == dim ? dim + 1 : k == dim + 1 ? dim : k;
	}
	Node table = constant_roots(b, n2, n1, n1 * n2, d);
	Node c = b_unsqueeze(b, b_iota(b, DT_i64, columns), -1), k = b_iota(b, DT_i64, rows);
	Parts w = table.i ? parts_of_pairs(b, table) : roots_table(b, b_bin(b, OP_mul, c, k), n, d);
	Node y = b_permute(b, b_reshape(b, b_convert(b, x, d), s.rank + 1, cut), perm);
	y = y.i ? all_lines(b, y, dim + 1, inverse) : y;
	if (!y.i)
		return y;
	y = multiplied(b, y, dim + 1, conjugate_if(b, inverse, w));
	y = y.i ? all_lines(b, y, dim, inverse) : y;
	y = y.i ? b_reshape(b, y, s.rank, s.dim) : y;
	return y.i ? b_convert(b, y, node_dtype(b->g, x)) : y;
}

/* Whether the lines are so few that lanes and threads would have nothing to do. */
static bool are_few(const Build *b, Node x, uint32_t dim)
{
	enum { FEW = 8 };
	Sym count = b_int(b, 1);
	int64_t n;
	for (uint32_t k = 0; k + 1 < node_rank(b->g, x); k++)
		if (k != dim)
			count = sym_mul(b_syms(b), count, node_dim(b->g, x, k));
	return sym_is_const(b_syms(b), count, &n) && n <= FEW;
}

/* Returns how many rows a line of pairs x, of n elements, is cut into; 1: it stays whole. */
static int64_t rows_of(const Build *b, Node x, uint32_t dim, int64_t n)
{
	enum { LONG = 256, SHORT = 8, MOST_ALONG = 4096 };
	if (n < LONG || !are_few(b, x, dim) || node_rank(b->g, x) == MAX_RANK ||
	    (n <= MOST_ALONG && n % (FIRST * FIRST) == 0))
		return 1;
	const int64_t rows = near_root(n);
	return rows < SHORT ? 1 : rows;
}

static Node lines(Build *b, Node x, uint32_t dim, bool inverse)
{
	int64_t n, rows;
	if (!x.i || sym_is(b_syms(b), b_dim(b, x, (int)dim), 1))
		return x;
	if (!sym_is_const(b_syms(b), b_dim(b, x, (int)dim), &n))
		return all_lines(b, x, dim, inverse);
	rows = rows_of(b, x, dim, n);
	return rows == 1 ? all_lines(b, x, dim, inverse) : by_rows(b, x, dim, inverse, rows, n / rows);
}

/* ---- lengths with a large prime factor ---- */

/* Returns the least power of two from 2 n - 1 on, which is less than 4 n; n >= 1. Of an n that
 * is no number it is a symbol, whose value each call computes. */
static Sym chirp_length(Build *b, Sym n)
{
	SymTab *t = b_syms(b);
	int64_t length, m = 1;
	if (sym_is_const(t, n, &length)) {
		while (m < 2 * length - 1)
			m *= 2;
		return b_int(b, m);
	}
	Sym symbol = data_size_new(b);
	Node v = b_from_size(b, sym_addi(t, sym_muli(t, n, 2), -2));
	for (uint32_t k = 1; k < 64; k *= 2)
		v = b_bin(b, OP_bit_or, v, b_bin_scalar(b, OP_shift_right, v, k));
	b_to_size(b, b_bin_scalar(b, OP_add, v, 1), symbol, sym_muli(t, n, 4), "fft_c2c");
	return symbol;
}

/* Returns exp(-i pi k^2 / n), or the conjugates. */
static Parts chirp(Build *b, Node k, Sym n, DType d, bool conjugate)
{
	Sym turn = sym_muli(b_syms(b), n, 2);
	Node square = b_bin(b, OP_remainder, b_bin(b, OP_mul, k, k), b_from_size(b, turn));
	return conjugate_if(b, conjugate, roots_table(b, square, turn, d));
}

/* Returns the transform, of length m, of what x * chirp is convolved with, over m. */
static Parts chirp_spectrum(Build *b, Sym n, Sym m, DType d, bool inverse)
{
	Node k = b_iota(b, DT_i64, m);
	Node other = b_bin(b, OP_sub, b_from_size(b, m), k), j = b_bin(b, OP_minimum, k, other);
	Node is_in = b_bin(b, OP_lt, j, b_from_size(b, n)), size = b_convert(b, b_from_size(b, m), d);
	Parts c = chirp(b, b_select(b, is_in, j, b_bin_scalar(b, OP_mul, j, 0)), n, d, !inverse);
	Node zero = b_scalar(b, d, 0);
	c.re = b_bin(b, OP_div, b_select(b, is_in, c.re, zero), size);
	c.im = b_bin(b, OP_div, b_select(b, is_in, c.im, zero), size);
	return parts_of_pairs(b, lines(b, parts_to_pairs(b, &c), 0, false));
}

static Node by_chirp(Build *b, Node x, uint32_t dim, bool inverse)
{
	const DType stored = node_dtype(b->g, x), d = dtype_compute(stored);
	const uint32_t rank = node_rank(b->g, x);
	Sym n = b_dim(b, x, (int)dim), m = chirp_length(b, n), low[MAX_RANK], high[MAX_RANK];
	Parts c = chirp(b, b_iota(b, DT_i64, n), n, d, inverse);
	for (uint32_t k = 0; k < rank; k++)
		low[k] = high[k] = b_int(b, 0);
	high[dim] = sym_sub(b_syms(b), m, n);
	Node y = multiplied(b, b_convert(b, x, d), dim, c);
	y = lines(b, b_pad(b, y, low, high, b_scalar(b, d, 0)), dim, false);
	if (!y.i)
		return y;
	y = lines(b, multiplied(b, y, dim, chirp_spectrum(b, n, m, d, inverse)), dim, true);
	y = y.i ? b_slice(b, y, (int)dim, b_int(b, 0), n, b_int(b, 1)) : y;
	return y.i ? b_convert(b, multiplied(b, y, dim, c), stored) : y;
}

/* Whether n has only small factors: their product to a high power is a multiple of n. Also if n is
 * too large for the convolution. */
static Node is_smooth(Build *b, Sym n)
{
	const int64_t primes = INT64_C(614889782588491410); /* the product of all up to FFT_PRIME */
	Node size = b_from_size(b, n);
	Node rest = b_bin(b, OP_remainder, b_full_int(b, DT_i64, primes, 0, NULL), size);
	for (uint32_t k = 0; k < 6; k++)
		rest = b_bin(b, OP_remainder, b_bin(b, OP_mul, rest, rest), size);
	Node large = b_bin_scalar(b, OP_gt, size, 2147483648.0);
	return b_bin(b, OP_bit_or, b_bin_scalar(b, OP_eq, rest, 0), large);
}

static Graph *branch(Build *b, Node x, uint32_t dim, bool inverse, bool smooth)
{
	Graph *g = graph_beside(b->g, smooth ? "smooth" : "chirp");
	Build inner = {.g = g, .loc = b->loc, .where = b->where};
	Node in = graph_add_input(g, "x", INPUT_USER, node_type_id(b->g, x));
	Node y = smooth ? lines(&inner, in, dim, inverse) : by_chirp(&inner, in, dim, inverse);
	if (!y.i)
		return NULL;
	graph_add_output(g, "y", y, -1);
	return g;
}

/* Adds a transform of a length that is no number: each call chooses. */
static Node chosen(Build *b, Node x, uint32_t dim, bool inverse)
{
	Graph *yes = branch(b, x, dim, inverse, true), *no = branch(b, x, dim, inverse, false);
	Node in[2] = {is_smooth(b, b_dim(b, x, (int)dim)), x};
	if (!yes || !no)
		return (Node){0};
	Attr attr[4] = {attr_none(), attr_int(b->g->ir, 1), attr_graph(yes), attr_graph(no)};
	Node both = b_node(b, OP_cond, in, 2, attr, 4);
	return both.i ? b_get(b, both, 0) : both;
}

static int64_t greatest_factor(int64_t n)
{
	while (n > 1 && least_factor(n) < n)
		n /= least_factor(n);
	return n;
}

static Node transformed(Build *b, Node x, uint32_t dim, bool inverse)
{
	int64_t length, lo, hi;
	if (!x.i)
		return x;
	if (!dtype_is_float(node_dtype(b->g, x)))
		return b_error(b, "expected float numbers, got %s", dtype_name(node_dtype(b->g, x)));
	if (sym_is_const(b_syms(b), b_dim(b, x, (int)dim), &length))
		return greatest_factor(length) > FFT_PRIME ? by_chirp(b, x, dim, inverse) : lines(b, x, dim, inverse);
	sym_range(b_syms(b), b_dim(b, x, (int)dim), &lo, &hi);
	return hi <= FFT_PRIME ? lines(b, x, dim, inverse) : chosen(b, x, dim, inverse);
}

static Node build_fft(Build *b, Node n)
{
	return transformed(b, node_in(b->g, n, 0), (uint32_t)node_int(b->g, n, "dim"), node_bool(b->g, n, "inverse"));
}

/* ---- real numbers: even and odd ones are pairs, a transform of half the length ---- */

/* Whether n real numbers along dim are transformed as pairs x, or will be. */
static bool is_halved(const Build *b, Node x, uint32_t dim, Sym n, int64_t *pairs)
{
	int64_t length;
	const DType d = node_dtype(b->g, x);
	if (!sym_is_const(b_syms(b), n, &length) || length < 4 || length % 2 || (d != DT_f32 && d != DT_f64))
		return false;
	*pairs = length / 2;
	return *pairs <= MOST_TABLE / 64 && greatest_factor(*pairs) <= FFT_PRIME && rows_of(b, x, dim, *pairs) == 1;
}

static Node half_lines(Build *b, Node x, uint32_t dim, bool inverse, int64_t pairs)
{
	Node in[2] = {x, constant_table(b, pairs, node_dtype(b->g, x), true)};
	Attr attr[5] = {attr_none(), attr_none(), attr_int(b->g->ir, dim), attr_bool(inverse), attr_bool(true)};
	return x.i && in[1].i ? b_node(b, OP_fft_lines, in, 2, attr, 5) : (Node){0};
}

/* Returns x [...] with imaginary parts 0. */
static Node with_zeros(Build *b, Node x)
{
	Sym low[MAX_RANK], high[MAX_RANK];
	const uint32_t rank = node_rank(b->g, x);
	for (uint32_t k = 0; k <= rank; k++)
		low[k] = high[k] = b_int(b, 0);
	high[rank] = b_int(b, 1);
	Node zero = b_scalar(b, node_dtype(b->g, x), 0);
	return b_pad(b, b_unsqueeze(b, x, -1), low, high, zero);
}

static Node build_r2c(Build *b, Node node)
{
	Node x = node_in(b->g, node, 0);
	const uint32_t dim = (uint32_t)node_int(b->g, node, "dim"), rank = node_rank(b->g, x);
	Sym n = b_dim(b, x, (int)dim), cut[MAX_RANK];
	int64_t pairs;
	uint32_t perm[MAX_RANK];
	if (!is_halved(b, x, dim, n, &pairs)) {
		Node y = transformed(b, with_zeros(b, x), dim, false);
		return y.i ? b_slice(b, y, (int)dim, b_int(b, 0), half_length(b_syms(b), n), b_int(b, 1)) : y;
	}
	for (uint32_t k = 0; k <= rank; k++)
		cut[k] = k == dim ? b_int(b, pairs) : k == dim + 1 ? b_int(b, 2) : b_dim(b, x, (int)(k < dim ? k : k - 1));
	put_last(rank + 1, dim + 1, false, perm);
	return half_lines(b, b_permute(b, b_reshape(b, x, rank + 1, cut), perm), dim, false, pairs);
}

/* Returns [n / 2 + 1]: 1 for elements that are their own mirror images, else `other`. */
static Node mirror_weights(Build *b, Sym n, DType d, double other)
{
	Node k = b_iota(b, DT_i64, half_length(b_syms(b), n));
	Node first = b_bin_scalar(b, OP_eq, k, 0);
	Node middle = b_bin(b, OP_eq, b_bin_scalar(b, OP_mul, k, 2), b_from_size(b, n));
	return b_select(b, b_bin(b, OP_bit_or, first, middle), b_scalar(b, d, 1), b_scalar(b, d, other));
}

static Node weighted(Build *b, Node pairs, uint32_t dim, Sym n, double other)
{
	if (!pairs.i)
		return pairs;
	Node weights = mirror_weights(b, n, node_dtype(b->g, pairs), other);
	return b_bin(b, OP_mul, pairs, along(b, weights, node_rank(b->g, pairs), dim));
}

/* Does as reals_of_dft, of a length that is not even or no number. */
static Node real_part(Build *b, Node x, uint32_t dim, Sym n)
{
	Sym low[MAX_RANK], high[MAX_RANK];
	for (uint32_t k = 0; k < node_rank(b->g, x); k++)
		low[k] = high[k] = b_int(b, 0);
	high[dim] = sym_sub(b_syms(b), n, b_dim(b, x, (int)dim));
	Node y = weighted(b, x, dim, n, 2);
	y = y.i ? transformed(b, b_pad(b, y, low, high, b_scalar(b, node_dtype(b->g, x), 0)), dim, true) : y;
	return y.i ? b_select_dim(b, y, -1, b_int(b, 0)) : y;
}

static Node build_c2r(Build *b, Node node)
{
	Node x = node_in(b->g, node, 0);
	const uint32_t dim = (uint32_t)node_int(b->g, node, "dim"), rank = node_rank(b->g, x) - 1;
	const Sym n = node_sym(b->g, node, "n");
	int64_t pairs;
	if (!is_halved(b, x, dim, n, &pairs))
		return real_part(b, x, dim, n);
	uint32_t perm[MAX_RANK];
	Sym shape[MAX_RANK];
	for (uint32_t k = 0; k < rank; k++)
		shape[k] = k == dim ? n : node_dim(b->g, x, k);
	for (uint32_t k = 0; k <= rank; k++)
		perm[k] = k <= dim ? k : k == dim + 1 ? rank : k - 1;
	Node y = half_lines(b, x, dim, true, pairs);
	return y.i ? b_reshape(b, b_permute(b, y, perm), rank, shape) : y;
}

static Node r2c(Build *b, Node x, int64_t dim)
{
	Attr attr[2] = {attr_none(), attr_int(b->g->ir, dim)};
	return x.i ? b_node(b, OP_fft_r2c, &x, 1, attr, 2) : x;
}

static Node c2r(Build *b, Node x, int64_t dim, Sym n)
{
	Attr attr[3] = {attr_none(), attr_int(b->g->ir, dim), attr_sym(n)};
	return x.i ? b_node(b, OP_fft_c2r, &x, 1, attr, 3) : x;
}

/* Computes the cotangent. All elements but those that are their own mirror images count twice in
 * c2r, once in r2c. */
static bool adjoint_r2c(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	const int64_t dim = node_int(b->g, n, "dim");
	const Sym length = node_dim(b->g, node_in(b->g, n, 0), (uint32_t)dim);
	(void)want;
	g[0] = c2r(b, weighted(b, ct[0], (uint32_t)dim, length, 0.5), dim, length);
	return g[0].i;
}

static bool adjoint_c2r(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	const int64_t dim = node_int(b->g, n, "dim");
	(void)want;
	g[0] = weighted(b, r2c(b, ct[0], dim), (uint32_t)dim, node_sym(b->g, n, "n"), 2);
	return g[0].i;
}

OP(fft_c2c) {
	.schema = "fft_c2c(Tensor x, *, int dim, bool inverse) -> Tensor",
	.doc = "the discrete Fourier transform along dim of pairs [..., 2], not scaled; inverse: with the "
	       "conjugate roots of unity",
	.expands = EXPANDS_IN_DECOMPOSE,
	.adjoint = adjoint_fft,
	.tangent = tangent_fft,
	.batch = batch_dim,
	.infer = infer_fft,
	.eval = eval_fft,
	.build = build_fft,
	.sample = "f32[3, n=4, 2], dim=1, inverse=false; f32[n=6, 3, 2], dim=0, inverse=true; "
		  "f64[2, n=15, 2], dim=1, inverse=false; f32[1, 2], dim=0, inverse=false; "
		  "f32[0, 3, 2], dim=1, inverse=false",
};

OP(fft_r2c) {
	.schema = "fft_r2c(Tensor x, *, int dim) -> Tensor",
	.doc = "the first n / 2 + 1 elements, as pairs, of the discrete Fourier transform of n real numbers along dim",
	.expands = EXPANDS_IN_DECOMPOSE,
	.linear = LINEAR_TOGETHER,
	.adjoint = adjoint_r2c,
	.batch = batch_dim,
	.infer = infer_fft_r2c,
	.eval = eval_r2c,
	.build = build_r2c,
	.sample = "f32[3, n=4], dim=1; f32[n=6, 3], dim=0; f64[2, n=15], dim=1; f32[1, 3], dim=0; f32[2, 96], dim=1; f32[0, 4], dim=1",
};

OP(fft_c2r) {
	.schema = "fft_c2r(Tensor x, *, int dim, SymInt n) -> Tensor",
	.doc = "the n real numbers along dim whose fft_r2c is x / n, without the imaginary parts of elements that are "
	       "their own mirror images",
	.expands = EXPANDS_IN_DECOMPOSE,
	.linear = LINEAR_TOGETHER,
	.adjoint = adjoint_c2r,
	.batch = batch_dim,
	.infer = infer_fft_c2r,
	.eval = eval_c2r,
	.build = build_c2r,
	.sample = "f32[3, 3, 2], dim=1, n=4; f32[4, 3, 2], dim=0, n=7; f64[2, 8, 2], dim=1, n=14; f32[1, 3, 2], dim=0, n=1; "
		  "f32[2, 49, 2], dim=1, n=96",
};

OP(fft_lines) {
	.schema = "fft_lines(Tensor x, Tensor roots, *, int dim, bool inverse, bool real=False) -> Tensor",
	.doc = "fft_c2c beside the table of roots exp(-2 pi i k / n), which a kernel reads: [2, n], a row of "
	       "real and one of imaginary parts; of an n that is a number and a multiple of 16 the table "
	       "may be [2, 2 n]: element n + 16 p + j is root number p j, for p < n / 16 and j < 16. "
	       "real: x is fft_r2c's, its even and odd numbers in n pairs, and the result has n + 1 elements; with "
	       "inverse x has n + 1, and the result is fft_c2r's in n pairs; n is a number, and the table has n + 1 more, "
	       "exp(-pi i k / n)",
	.no_deriv = "lines of a Fourier transform stand for fft_c2c, fft_r2c and fft_c2r, which have derivatives",
	.folds = FOLDS,
	.batch = batch_fft_lines,
	.infer = infer_fft_lines,
	.eval = eval_fft_lines,
	.lower = {.role = LOWER_ROOT, .reads = ALL_OPERANDS},
	.accumulates = true,
	.sample = "f32[3, 4, 2], f32[2, 4] of 1 0 -1 0 0 -1 0 1, dim=1, inverse=false; "
		  "f32[2, 3, 2], f32[2, 2] of 1 -1 0 0, dim=0, inverse=true; "
		  "f32[3, 2, 2], f32[2, 5] of 1 -1 1 0 -1 0 0 0 -1 0, dim=1, inverse=false, real=true; "
		  "f32[3, 3, 2], f32[2, 5] of 1 -1 1 0 -1 0 0 0 -1 0, dim=1, inverse=true, real=true",
};
