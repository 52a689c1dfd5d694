/* Private to pass quantize: what dequantised and quantised values are written in, and where pairs
 * of them are nothing. */
#ifndef WEFT_PASSES_QUANTIZE_PRIV_H
#define WEFT_PASSES_QUANTIZE_PRIV_H

#include "passes/common/pass_ctx.h"

enum { QUANT_MOST_MOVES = 16 };

/* A value (q - zero) * scale - offset behind moves. */
typedef struct {
	Node q;           /* i8 or u8 */
	Node scale, zero; /* of q's shape, before `move`; zero: none is 0 */
	Node offset;      /* f32, in front of the first `outer` moves; none: 0. Only
			     quant_read_offset sets it */
	bool adds;        /* the offset is added */
	uint32_t outer;
	Node move[QUANT_MOST_MOVES]; /* index maps of which each element of the result is one of the
	                                operand, and pads with zeros */
	uint32_t nmove;   /* the last one is next to the dequantisation */
} Dequantised;

/* What a product sums over, and where its other dimensions go. */
typedef struct {
	uint32_t sum[2];     /* bits: dimensions of each operand */
	int to[2][MAX_RANK]; /* the dimension of the result that one of an operand is; -1:
				summed */
	Sym terms;           /* how many are summed */
} Product;

/* The product of x and of constant weights w that are dequantised. */
typedef struct {
	Node n, x, w;
	uint32_t side; /* of w */
	Dequantised weights;
	Product p;
} WeightProduct;

/* A value clamp(round(x / scale) + zero) in 8 bits, or clamp(round(x * scale) + zero). */
typedef struct {
	Node ratio;       /* the div or mul, f32 */
	Node x, scale;
	Node zero;        /* f32; none: 0 */
	double low, high; /* of the clamp; without one infinite */
	bool divides, whole; /* whole: the clamp is that of the dtype */
} Quantised;

/* Reads x as a dequantised value. keep_params: constants that are replaceable are not looked at.
 * Returns false if x is none. */
bool quant_read_dequantised(const Graph *, Node x, bool keep_params, Dequantised *);
/* Reads x as a dequantised value from which an offset is subtracted, or to which one is added, in
 * f32. Returns false if x is none. */
bool quant_read_offset(const Graph *, Node x, bool keep_params, Dequantised *);
/* Reads x as i32: q - zero, without scale (none). */
bool quant_read_integers(const Graph *, Node x, bool keep_params, Dequantised *);
/* Reads x as integers of 8 bits that are converted, without scale (none) and zero point. */
bool quant_read_bytes(const Graph *, Node x, Dequantised *);
/* Reads n as a quantised value. Returns false if n is none. */
bool quant_read(const Graph *, Node n, bool keep_params, Quantised *);
/* Returns a value behind the first n of the moves where the product reads it, in the shape of
 * `like`; none if a pad needs one number and there are several. A scale or zero point of q's shape
 * is behind all of them. In quantize.c, as the next three. */
Node quant_moved_along(Build *, const Dequantised *, uint32_t n, Node v, Node like);
/* Returns a bit for each dimension along which elements of x may differ. */
uint32_t quant_differs(const Graph *, Node x);
/* Returns how many neighbours along w's summed dimension have one value of v, which has w's
 * shape: at least so many; none if it is not known. */
Sym quant_group_of(Build *, Node v, uint32_t summed);
/* Makes what is computed of constants, behind index maps and converts, a constant: integers that
 * the model takes out of bytes. Returns whether it did. In steps.c. */
bool quant_fold_stored(PassCtx *, Graph *, Node x);
/* Whether x is computed of constants, in few steps: fold_node makes it one. In steps.c. */
bool quant_is_of_constants(const Graph *, Node x);
/* Returns the product of two values that are stored, in f32, of which x is copies; none if x is
 * something else. In steps.c. */
Node quant_product(const Graph *, Node x);
/* Returns v without the converts that keep all values: what is stored, in v's shape. In steps.c. */
Node quant_as_stored(Build *, Node v);
/* Returns the number of batch dimensions of a contraction. */
uint32_t quant_batches(const Graph *, Node n);
/* Returns a product with constant weights as sums of products of bytes, whose other operand is
 * rounded to 8 bits by blocks of terms (numerics.md); none if the product has another form. The
 * target is no GPU. In blocks.c. */
Node quant_block_product(Build *, PassCtx *, const WeightProduct *);
/* Returns a product of f32 with constant weights, which have groups or 4 bits, as one of weights
 * that are decoded where they are multiplied; none if the product has another form. In
 * blocks.c. */
Node quant_decoded_product(Build *, PassCtx *, const WeightProduct *);
/* Returns n, which reads elements of a table at indices of its own, with the dequantisation of the
 * table behind it; none if n is another node, or the table is not stored in fewer bytes. In
 * rows.c. */
Node quant_rows(Build *, Node n);
/* Returns the stored integers as they are behind the moves, or none: a pad needs one number as zero
 * point. */
Node quant_integers(Build *, const Dequantised *);
/* Returns what is converted to x, below converts that keep the difference of two integers of 8
 * bits. */
Node quant_below_converts(const Graph *, Node x);
/* Returns the value without dimensions of which all elements of x are copies or converts; none if
 * it is not known to be one. */
Node quant_one(Build *, Node x);
/* Returns the zero point as a number of dtype d, without dimensions; none if there are several, or
 * if d does not hold it. A zero point that is none is 0. */
Node quant_number(Build *, Node zero, DType d);
/* Sets *least and *most to the least and the greatest element of q, a constant of integers behind
 * index maps. Returns false where they are not known: q is another value, or has no elements, or
 * is replaceable and keep_params. In steps.c. */
bool quant_values(const Graph *, Node q, bool keep_params, int64_t *least, int64_t *most);
/* Sets *least and *most as quant_values does, also for a splat of whole numbers. In
 * steps.c. */
bool quant_value_bounds(const Graph *, Node x, bool keep_params, int64_t *least, int64_t *most);
/* Returns q, a quantised input of the graph behind index maps, padded with `around`, its zero
 * point, as the quantised padded input: one kernel writes both, and the border. None if it is
 * another value. */
Node quant_padded_input(Build *, Node q, const Sym *low, const Sym *high, Node around,
			bool keep_params);
/* Replaces quantisations of dequantised values by the integers that were dequantised, where scales
 * and zero points are the same. Returns whether there were any. */
bool quant_join(Graph *, const PassCtx *);
/* Makes divisions by one scale, in front of a quantisation, products by its reciprocal. */
void quant_reciprocals(Graph *, const PassCtx *);
/* Writes quantisations by one zero point in the operations of integers: clamped before they are
 * rounded, and the zero point added to the integer, in which a kernel that dequantises them again
 * subtracts the zero point (ir/kernel/build.c). NaN becomes the clamp's lower bound. */
void quant_round_once(Graph *, const PassCtx *);

#endif
