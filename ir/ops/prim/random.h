/* Random numbers (docs/random.md). A value of them is a pure function of a key, a stream and its
 * own place, so it depends on no thread, tile, vector width or target, and computing it again gives
 * it again:
 *
 *   counter = {i, i >> 32, key[1], key[1] >> 32 ^ (stream << 8 | part)}
 *   word(key, stream, part, i) = Philox4x32-10(counter, key[0])
 *
 * A key is u64[2]. A model that draws has the state "weft.rng", {seed, number of calls before this
 * one}, which is the key of a call and is written like any other state, so that a call that fails
 * does not count. Operators that draw have the arguments of RANDOM_ARGS: `rng`, the key, and
 * `stream`, their number in program order. Import leaves them out, random_attach (passes/random.h)
 * fills them in. Passes change neither: copies of a node draw what it drew. */
#ifndef WEFT_IR_OPS_PRIM_RANDOM_H
#define WEFT_IR_OPS_PRIM_RANDOM_H

#include "ir/ops/common.h"

#define RANDOM_ARGS "Tensor? rng=None, int stream=0"

/* It has RANDOM_ARGS, and with these arguments it draws. */
bool node_draws(const Graph *, Node);

/* What one node draws: its key [B..., 2], and its stream; `part` counts what is drawn so far, so
 * that each is different. */
typedef struct {
	Node key;
	uint32_t stream, part;
} Draw;
/* Of n; false after b_error where it has no key. */
bool draw_begin(Build *, Node n, Draw *);

/* 64 random bits in every element [B..., *shape]: the first two words, or with `high` the
 * others. */
Node draw_bits(Build *, Draw *, const Shape *);
Node b_random_bits(Build *, Node key, uint32_t stream, uint32_t part, bool high, const Shape *);
/* In [0, 1), of the dtype's precision as PyTorch's: 53 bits of f64, 24 of f32, 11 of f16, 8 of
 * bf16. */
Node draw_uniform(Build *, Draw *, DType, const Shape *);
/* In (0, 1), of f64 or f32, and neither of them. */
Node draw_open(Build *, Draw *, DType, const Shape *);
/* Mean 0, deviation 1; of f64, else of f32. */
Node draw_normal(Build *, Draw *, DType, const Shape *);
/* bool: true with that probability, to within 2^-53. */
Node draw_chance(Build *, Draw *, double p, const Shape *);
/* Of dropout: which elements of x stay (bool, of extent 1 along the dims in `shared`, a bit each,
 * for which one decision is made); what it makes of x; both together. */
Node draw_keep(Build *, Draw *, Node x, double p, uint32_t shared);
Node dropout_of(Build *, Node x, Node keep, double p);
Node draw_dropout(Build *, Draw *, Node x, double p, uint32_t shared);

/* The key for number `data` (integers [B...]) of the one given: [B..., 2]. Of another key or number
 * it is another. */
Node b_random_fold(Build *, Node key, Node data);

#endif
