/* Constant weights of products become numbers of few bits, in three steps: which weights there are
 * (quantize_find), what they round to (quantize_round), and the graph that computes with it
 * (quantize_replace). Between the first two a caller may run quantize_observe's graph on data, to
 * learn which inputs of the products are large.
 *
 *   contract(%x, %w)                                              %w: f32[N, K]
 * becomes, with 8 bits and a scale s for each of N rows,
 *   contract(%x, mul(convert(%q), broadcast(%s)))                 %q: i8[N, K], %s: f32[N, 1]
 * with 4 bits and a scale for each group of 32 terms of a row
 *   contract(%x, mul(sub(convert(fields(%p)), 8), broadcast(%s))) %p: u8[N, K / 32, 16]
 * and as bf16
 *   contract(%x, convert(%h))                                     %h: bf16[N, K]
 *
 * which passes/quantize compiles as products that read the integers. */
#ifndef WEFT_TRANSFORM_QUANTIZE_QUANTIZE_H
#define WEFT_TRANSFORM_QUANTIZE_QUANTIZE_H

#include "ir/interp/tensor.h"

typedef enum { WEIGHT_FLOAT, WEIGHT_BF16, WEIGHT_INT8, WEIGHT_INT4 } WeightKind;

/* ---- which weights ---- */

/* A constant of floats that products read, or of which a look-up takes rows; also a large one that
 * only others read, which stays. */
typedef struct {
	ConstId of;
	const char *why;  /* why it stays as it is, as the end of a sentence; NULL: it need not */
	bool windows;     /* a convolution reads it */
	bool rows;        /* a look-up takes rows of it: of 8 bits or bf16, so that these are taken
			     before they become floats */
	bool table;       /* nothing else reads it */
	uint32_t summed; /* a bit for each of its dimensions that its products sum over; of a table,
			    the last one */
	uint32_t readers; /* products that read it */
} ProductWeight;

/* A product outside of loops and branches that sums over one dimension of a weight, term k of which
 * is element k of dimension `dim` of its other operand. */
typedef struct {
	uint32_t weight; /* the index in FoundWeights.weight */
	Node other;      /* of FoundWeights.expanded */
	uint32_t dim;
} WeightReader;

/* A product of f32, outside of loops and branches, with a weight. */
typedef struct {
	uint32_t weight; /* the index in FoundWeights.weight */
	Node n;          /* of FoundWeights.expanded */
	uint32_t side;   /* the operand that is no weight */
	uint32_t value;  /* the index in FoundWeights.value of what this operand is, behind index
			    maps */
} StaticProduct;

/* What products multiply weights with. */
typedef struct {
	Node x;           /* of FoundWeights.expanded */
	double low, high; /* of its elements on data, which the caller sets */
} ProductValue;

typedef struct {
	Graph *expanded;             /* a copy of the graph, in basic operations */
	ARRAY(ProductWeight) weight; /* in the order of constants */
	ARRAY(WeightReader) reader;
	ARRAY(StaticProduct) product;
	ARRAY(ProductValue) value;
} FoundWeights;

/* Finds the weights of all contractions, convolutions and look-ups, bodies of loops and branches
 * included.
 * All is in the context's arena. The graph stays unchanged; constants may be added to its Ir.
 * Returns false after an error: the graph is no correct one. */
bool quantize_find(Graph *, FoundWeights *);

/* Adds an output to the expanded graph for each weight that has a reader: f32[K], the sum over all
 * rows of the squares of what term k of the weight is multiplied with, of all readers. Sets
 * output[i] to the index of weight i's output in Graph.output, or to -1; output has as many
 * elements as there are weights. Returns false after an error. */
bool quantize_observe(FoundWeights *, int32_t *output);
/* Adds two outputs to the expanded graph for each value of products, f32[]: its least and its
 * greatest element. Returns the index of the first one in Graph.output, or -1 after an error. */
int32_t quantize_observe_ranges(FoundWeights *);

/* ---- what they round to ---- */

typedef struct {
	WeightKind kind;  /* none of WEIGHT_FLOAT */
	int64_t group;    /* of WEIGHT_INT4: terms with one scale, even; divides the terms */
	bool zero_points; /* of WEIGHT_INT4: one for each group, else 8 */
	/* By term, of a weight with one summed dimension: how much an error of it counts, finite
	 * and at least 0. NULL: all count the same. */
	const double *importance;
	uint32_t jobs; /* threads; the result does not depend on them */
} RoundOptions;

/* A weight that was rounded. It stands for (q - zero) * scale. WEIGHT_FLOAT: it stays as it is. */
typedef struct {
	ConstId of;
	WeightKind kind;
	uint32_t dim;  /* WEIGHT_INT4: the dimension that groups cut */
	int64_t group; /* WEIGHT_INT4 */
	Tensor q;      /* WEIGHT_BF16, WEIGHT_INT8: of the weight's shape, bf16 or i8. WEIGHT_INT4:
			  u8, where dimension dim is [groups, group / 2]: the first half of a group
			  in the low bits, the second in the high bits */
	Tensor scale;  /* WEIGHT_INT8: f32, of the weight's rank, 1 along what is summed.
			  WEIGHT_INT4: f16, or f32 if f16 does not hold one, where dimension dim is
			  [groups] */
	Tensor zero;   /* WEIGHT_INT4: u8, as scale; no data: 8. WEIGHT_INT8: no data: 0 */
	double signal, noise; /* sums of squares: of the weight, and of what rounding changed */
	double harm;       /* the same as noise / signal, where terms count by their importance */
	ConstId stored[3]; /* of q, scale, zero, once quantize_replace has made them */
} RoundedWeight;

/* Returns the bytes of q, scale and zero. */
uint64_t rounded_bytes(const RoundedWeight *);
/* Rounds a weight, whose `why` is NULL; the result's data are in the context's arena.
 *   WEIGHT_INT8: scale is the greatest magnitude / 127, q is rint(w / scale); all 0 if all are.
 *   WEIGHT_INT4: scale and zero point are those of 19 candidates that make the sum of
 *   importance * error^2 least.
 * Returns false after an error: a number of the weight is NaN or infinite. */
bool quantize_round(Ir *, const ProductWeight *, const RoundOptions *, RoundedWeight *);

/* ---- the graph ---- */

/* Replaces n constants of the graph, in place, where nodes read them. The data stay as long as the
 * Ir. dynamic: products that read them may round their other operand to 8 bits (OP_roundable);
 * convolutions never do. The constants themselves stay, for other graphs of the Ir: see
 * quantize_forget. Returns false after an error. */
bool quantize_replace(Graph *, const FoundWeights *, RoundedWeight *, uint32_t n, bool dynamic);
/* Makes n constants, which no graph reads any more, no parameters: their names are free. */
void quantize_forget(Ir *, const RoundedWeight *, uint32_t n);
/* Rounds what products multiply those weights with that fixed[i] says of weight i, in the expanded
 * graph: to unsigned integers of 8 bits, by one scale and one zero point that low and high of the
 * value give, as files of quantised models have it. Returns false after an error. */
bool quantize_values(FoundWeights *, const bool *fixed);

#endif
