/* The matrix product behind contract and conv: packed panels in double, so that a whole network can
 * be interpreted in seconds. */
#include <string.h>

#include "ops/prim/priv.h"

enum { TILE = 4, KC = 256, MC = 64, NC = 256 };
_Static_assert(MC * KC + KC * NC <= GEMM_WORK, "the panels fit the work space");

typedef double Pair __attribute__((vector_size(16)));

static int64_t min_i64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Packs panels of TILE rows: [panel][k][TILE], zero beyond m. */
static void pack_a(double *p, MatF64 a, int64_t m, int64_t k)
{
	for (int64_t i = 0; i < m; i += TILE) {
		int64_t rows = min_i64(TILE, m - i);
		for (int64_t r = 0; r < TILE; r++) {
			const double *row = r < rows ? a.data + a.row[i + r] : NULL;
			for (int64_t j = 0; j < k; j++)
				p[j * TILE + r] = row ? row[a.col[j]] : 0;
		}
		p += k * TILE;
	}
}

/* Packs panels of TILE columns: [panel][k][TILE], zero beyond n. */
static void pack_b(double *p, MatF64 b, int64_t k, int64_t n)
{
	for (int64_t j = 0; j < n; j += TILE) {
		int64_t cols = min_i64(TILE, n - j);
		const int64_t *col = b.col + j;
		if (cols == TILE) {
			for (int64_t r = 0; r < k; r++, p += TILE) {
				const double *row = b.data + b.row[r];
				p[0] = row[col[0]];
				p[1] = row[col[1]];
				p[2] = row[col[2]];
				p[3] = row[col[3]];
			}
			continue;
		}
		for (int64_t r = 0; r < k; r++, p += TILE) {
			for (int64_t c = 0; c < TILE; c++)
				p[c] = c < cols ? b.data[b.row[r] + col[c]] : 0;
		}
	}
}

/* Sets t[TILE][TILE] to the product of one panel of each. */
static void multiply_panels(int64_t k, const double *a, const double *b, double *t)
{
	Pair c00 = {0}, c01 = {0}, c10 = {0}, c11 = {0}, c20 = {0}, c21 = {0}, c30 = {0}, c31 = {0};
	for (int64_t i = 0; i < k; i++, a += TILE, b += TILE) {
		Pair b0 = {b[0], b[1]}, b1 = {b[2], b[3]};
		c00 += b0 * a[0];
		c01 += b1 * a[0];
		c10 += b0 * a[1];
		c11 += b1 * a[1];
		c20 += b0 * a[2];
		c21 += b1 * a[2];
		c30 += b0 * a[3];
		c31 += b1 * a[3];
	}
	Pair c[8] = {c00, c01, c10, c11, c20, c21, c30, c31};
	memcpy(t, c, sizeof c);
}

static void multiply_block(int64_t m, int64_t n, int64_t k, const double *a, const double *b,
                           double *c, int64_t ldc)
{
	double t[TILE * TILE];
	for (int64_t j = 0; j < n; j += TILE) {
		for (int64_t i = 0; i < m; i += TILE) {
			multiply_panels(k, a + i * k, b + j * k, t);
			int64_t rows = min_i64(TILE, m - i), cols = min_i64(TILE, n - j);
			for (int64_t r = 0; r < rows; r++) {
				for (int64_t s = 0; s < cols; s++)
					c[(i + r) * ldc + j + s] += t[r * TILE + s];
			}
		}
	}
}

void gemm_f64(int64_t m, int64_t n, int64_t k, MatF64 a, MatF64 b, double *c, double *work)
{
	double *pa = work, *pb = work + MC * KC;
	for (int64_t j = 0; j < n; j += NC) {
		int64_t nj = min_i64(NC, n - j);
		for (int64_t l = 0; l < k; l += KC) {
			int64_t kl = min_i64(KC, k - l);
			pack_b(pb, (MatF64){b.data, b.row + l, b.col + j}, kl, nj);
			for (int64_t i = 0; i < m; i += MC) {
				int64_t mi = min_i64(MC, m - i);
				pack_a(pa, (MatF64){a.data, a.row + i, a.col + l}, mi, kl);
				multiply_block(mi, nj, kl, pa, pb, c + i * n + j, n);
			}
		}
	}
}

/* Multiplies integers. Products wrap, so they are computed unsigned. */
void gemm_i64(int64_t m, int64_t n, int64_t k, MatI64 a, MatI64 b, int64_t *c)
{
	for (int64_t i = 0; i < m; i++) {
		for (int64_t l = 0; l < k; l++) {
			uint64_t x = (uint64_t)a.data[a.row[i] + a.col[l]];
			const int64_t *row = b.data + b.row[l];
			for (int64_t j = 0; j < n; j++)
				c[i * n + j] = (int64_t)((uint64_t)c[i * n + j] +
				                         x * (uint64_t)row[b.col[j]]);
		}
	}
}
