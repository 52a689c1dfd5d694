/* Winograd's convolutions F(m x m, 3 x 3): a tile of m x m results of a convolution with 3 x 3 taps
 * and stride 1 needs (m + 2)^2 products for each pair of channels instead of 9 m^2:
 *
 *   y = A' ((G w G') . (B' d B)) A        d: (m + 2)^2 inputs of the tile, w: the taps, ": by
 *                                         element"
 *
 * The gradient of the taps needs as many products for each tile of m x m gradients dy, and their
 * sums over all tiles are what G' and G transform (Lavin and Gray's F(3 x 3, m x m)):
 *
 *   dw = G' ((A dy A') . (B' d B)) G
 *
 * The matrices are those of polynomials at n - 1 points and at infinity, n = m + 2. The points are
 * 0 and pairs +p, -p, so that rows of B', G and A of a pair, and columns of G' and A', share their
 * even and odd parts. */
#ifndef WEFT_IR_TARGET_WINOGRAD_MATRICES_H
#define WEFT_IR_TARGET_WINOGRAD_MATRICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	WINOGRAD_TAPS = 3,
	WINOGRAD_MAX_TILE = 4,
	WINOGRAD_MAX = WINOGRAD_MAX_TILE + WINOGRAD_TAPS - 1 /* rows of the largest matrices */
};

typedef struct {
	uint32_t m, n;                                /* results and inputs of a tile, along one
	                                                 dimension */
	double a[WINOGRAD_MAX_TILE][WINOGRAD_MAX];    /* A': m x n */
	double b[WINOGRAD_MAX][WINOGRAD_MAX];         /* B': n x n */
	double g[WINOGRAD_MAX][WINOGRAD_TAPS];        /* G: n x 3 */
} Winograd;

/* Returns the matrices of a tile of m x m results; m is 2 or 4. Rows of B' and columns of A': the
 * point 0; +p and -p of each pair, in this order; infinity. */
Winograd winograd_matrices(uint32_t m);

/* What a transform reads or gives: inputs of a tile, taps, or results of a tile. */
typedef enum { WINOGRAD_INPUTS, WINOGRAD_FILTER, WINOGRAD_RESULTS } WinogradPart;

/* Names of parts in the text of graphs. */
extern const char *const winograd_part_name[3];
/* Sets *part to the part of that name. Returns false if there is none. */
bool winograd_part_named(const char *name, WinogradPart *part);

/* A matrix that transforms a tile along one dimension, of which neighbouring tiles begin `step`
 * elements apart. */
typedef struct {
	uint32_t rows, cols, step;
	double c[WINOGRAD_MAX][WINOGRAD_MAX];
} WinogradMatrix;

/* Returns the matrix that transforms a part to products: B', G or A. */
WinogradMatrix winograd_into(const Winograd *, WinogradPart);
/* Returns the matrix that transforms products to taps or results: G' or A'. */
WinogradMatrix winograd_from(const Winograd *, WinogradPart);
/* Sets place[i * n + j][c][o], for 0 <= c < in and 0 <= o < out, to element i, j of G w G' of the
 * filter w = taps[o][c]. `taps` has 9 numbers of each filter, `place` n * n. Products and sums are
 * f64, G w first, terms in the order of the taps and from 0; each result is rounded once. */
void winograd_filters(const Winograd *, const float *taps, size_t out, size_t in, float *place);

#endif
