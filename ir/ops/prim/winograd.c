/* The two transforms of Winograd's convolutions (ir/ops/winograd.h) around a batched product: passes/winograd.c makes
 * them of a convolution, lower/winograd.c makes kernels of them. Nothing else has them in a graph. */
#include "ir/ops/winograd.h"

#include "ir/ops/prim/priv.h"

/* ---- matrices ---- */

/* The coefficients of the product of (x - p) over the n points but point `without` (n: over all). */
static void polynomial(const double *point, uint32_t n, uint32_t without, double *coef)
{
	uint32_t degree = 0;
	coef[0] = 1;
	for (uint32_t i = 0; i < n; i++) {
		if (i == without)
			continue;
		coef[++degree] = 0;
		for (uint32_t k = degree; k > 0; k--)
			coef[k] = coef[k - 1] - point[i] * coef[k];
		coef[0] *= -point[i];
	}
}

Winograd winograd_matrices(uint32_t m)
{
	/* Of the pairs of short binary fractions these have the smallest errors: a third of those of 1 and 2. */
	static const double two[] = {0, 1, -1}, four[] = {0, 0.75, -0.75, 1.5, -1.5};
	const double *point = m == 2 ? two : four;
	Winograd w = {.m = m, .n = m + WINOGRAD_TAPS - 1};
	const uint32_t last = w.n - 1;
	for (uint32_t i = 0; i < last; i++) {
		double power = 1, divisor = 1;
		polynomial(point, last, i, w.b[i]);
		for (uint32_t k = 0; k < last; k++)
			divisor *= k == i ? 1 : point[i] - point[k];
		for (uint32_t k = 0; k < m || k < WINOGRAD_TAPS; k++, power *= point[i]) {
			if (k < m)
				w.a[k][i] = power;
			if (k < WINOGRAD_TAPS)
				w.g[i][k] = power / divisor;
		}
	}
	polynomial(point, last, last, w.b[last]);
	w.a[m - 1][last] = 1;
	w.g[last][WINOGRAD_TAPS - 1] = 1;
	return w;
}

/* ---- types ---- */

static bool tile_of(Infer *f, int64_t *m)
{
	TRY(infer_const(f, "tile", m));
	return *m == 2 || *m == 4 || infer_fail(f, "expected tiles of 2 or 4, got %lld", (long long)*m);
}

static bool shape_winograd_input(Infer *f)
{
	Type x = infer_in(f, 0);
	const Sym *tiles;
	int64_t m;
	TRY(tile_of(f, &m));
	TRY(infer_ints_n(f, "tiles", 2, &tiles));
	if (!dtype_is_float(x.dtype) || x.n != 4)
		return infer_fail(f, "expected float x[N, C, H, W], got %s of rank %u", dtype_name(x.dtype), x.n);
	for (uint32_t k = 0; k < 2; k++)
		TRY(infer_same(f, "inputs of all tiles", x.dim[2 + k],
			       sym_addi(f->syms, sym_muli(f->syms, tiles[k], m), WINOGRAD_TAPS - 1)));
	const Sym dim[] = {sym_int(f->syms, (m + 2) * (m + 2)), x.dim[0], x.dim[1], tiles[0], tiles[1]};
	return infer_result(f, x.dtype, 5, dim);
}
INFER(winograd_input)

static bool shape_winograd_output(Infer *f)
{
	Type x = infer_in(f, 0);
	const Sym *size;
	int64_t m;
	TRY(tile_of(f, &m));
	TRY(infer_ints_n(f, "size", 2, &size));
	if (!dtype_is_float(x.dtype) || x.n != 5)
		return infer_fail(f, "expected float x[n, N, H, W, C], got %s of rank %u", dtype_name(x.dtype), x.n);
	TRY(infer_same(f, "products of a tile", x.dim[0], sym_int(f->syms, (m + 2) * (m + 2))));
	for (uint32_t k = 0; k < 2; k++)
		TRY(infer_same(f, "tiles of the result", x.dim[2 + k], sym_ceildiv(f->syms, size[k], sym_int(f->syms, m))));
	const Sym dim[] = {x.dim[1], x.dim[4], size[0], size[1]};
	return infer_result(f, x.dtype, 4, dim);
}
INFER(winograd_output)

/* ---- evaluation ---- */

/* y = M x M' of a square x[n][n]; M has so many rows, of WINOGRAD_MAX numbers each. */
static void two_sided(const double (*mat)[WINOGRAD_MAX], uint32_t rows, uint32_t n, const double *x, double *y)
{
	double half[WINOGRAD_MAX][WINOGRAD_MAX];
	for (uint32_t i = 0; i < rows; i++)
		for (uint32_t j = 0; j < n; j++) {
			half[i][j] = 0;
			for (uint32_t k = 0; k < n; k++)
				half[i][j] += mat[i][k] * x[k * n + j];
		}
	for (uint32_t i = 0; i < rows; i++)
		for (uint32_t j = 0; j < rows; j++) {
			double sum = 0;
			for (uint32_t k = 0; k < n; k++)
				sum += half[i][k] * mat[j][k];
			y[i * rows + j] = sum;
		}
}

static bool eval_winograd_input(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	int64_t m, at = 0;
	TRY(eval_int(e, g, n, "tile", &m));
	const Winograd w = winograd_matrices((uint32_t)m);
	const int64_t nx = tensor_numel(&in[0]), points = tensor_numel(out) / (w.n * w.n);
	const int64_t *dim = out->dim, width = in[0].dim[3], plane = in[0].dim[2] * width;
	double *x = EVAL_ARRAY(e, double, nx), d[WINOGRAD_MAX * WINOGRAD_MAX], v[WINOGRAD_MAX * WINOGRAD_MAX];
	tensor_read_f64(&in[0], 0, nx, x);
	for (int64_t image = 0; image < dim[1] * dim[2]; image++)
		for (int64_t ty = 0; ty < dim[3]; ty++)
			for (int64_t tx = 0; tx < dim[4]; tx++, at++) {
				for (uint32_t i = 0; i < w.n; i++)
					for (uint32_t j = 0; j < w.n; j++)
						d[i * w.n + j] = x[image * plane + (ty * m + i) * width + tx * m + j];
				two_sided(w.b, w.n, w.n, d, v);
				for (uint32_t k = 0; k < w.n * w.n; k++)
					tensor_set_f64(out, k * points + at, v[k]);
			}
	return true;
}

static bool eval_winograd_output(EvalCtx *e, Graph *g, Node n, const Tensor *in, Tensor *out)
{
	int64_t m, at = 0;
	TRY(eval_int(e, g, n, "tile", &m));
	const Winograd w = winograd_matrices((uint32_t)m);
	const int64_t nx = tensor_numel(&in[0]), points = nx / (w.n * w.n), *dim = in[0].dim;
	const int64_t channels = dim[4], height = out->dim[2], width = out->dim[3];
	double *x = EVAL_ARRAY(e, double, nx), p[WINOGRAD_MAX * WINOGRAD_MAX], y[WINOGRAD_MAX * WINOGRAD_MAX];
	tensor_read_f64(&in[0], 0, nx, x);
	for (int64_t image = 0; image < dim[1]; image++)
		for (int64_t ty = 0; ty < dim[2]; ty++)
			for (int64_t tx = 0; tx < dim[3]; tx++)
				for (int64_t c = 0; c < channels; c++, at++) {
					for (uint32_t k = 0; k < w.n * w.n; k++)
						p[k] = x[k * points + at];
					two_sided(w.a, w.m, w.n, p, y);
					for (int64_t i = 0; i < m && ty * m + i < height; i++)
						for (int64_t j = 0; j < m && tx * m + j < width; j++)
							tensor_set_f64(out,
								       ((image * channels + c) * height + ty * m + i) * width +
									       tx * m + j,
								       y[i * m + j]);
				}
	return true;
}

OP(winograd_input) {
	.schema = "winograd_input(Tensor x, *, int tile, int[] tiles) -> Tensor",
	.doc = "x[N, C, H, W] -> [(tile + 2)^2, N, C, tiles...]: B' d B of each tile's inputs d (ir/ops/winograd.h)",
	.infer = infer_winograd_input,
	.eval = eval_winograd_input,
	.lower = {.role = LOWER_ROOT, .reads = ALL_OPERANDS, .bordered = 1},
	.accumulates = true,
	.sample = "f32[2, 3, 6, 4], tile=2, tiles=[2, 1]; f32[1, 2, 6, 10], tile=4, tiles=[1, 2]",
};

OP(winograd_output) {
	.schema = "winograd_output(Tensor x, *, int tile, int[] size) -> Tensor",
	.doc = "x[(tile + 2)^2, N, H, W, C] of H x W tiles -> [N, C, size...]: A' x A of each tile (ir/ops/winograd.h)",
	.infer = infer_winograd_output,
	.eval = eval_winograd_output,
	.lower = {.role = LOWER_TILES, .fuses = FUSE_ONCE, .reads = ALL_OPERANDS},
	.accumulates = true,
	.sample = "f32[16, 2, 2, 1, 3], tile=2, size=[3, 2]; f32[36, 1, 1, 2, 2], tile=4, size=[4, 5]",
};
