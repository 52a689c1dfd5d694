/* Random numbers (docs/random.md). A value of them is a pure function of a key, a stream and its
 * own place, so it depends on no thread, tile, vector width or target, and computing it again gives
 * it again:
 *
 *   counter = {i, i >> 32, key[1], key[1] >> 32 ^ (stream << 8 | part)}
 *   word(key, stream, part, i) = Philox4x32-10(counter, key[0])
 *
 * or, where the argument `cipher` says "aes128-ctr", of the key's 128 bits,
 *
 *   word(key, stream, part, i) = AES-128({i, i >> 32, 0, stream << 8 | part}, key)
 *
 * A key is u64[2]. A model that draws has the state "weft.rng", {seed, number of calls before this
 * one}, which is the key of a call and is written like any other state, so that a call that fails
 * does not count. Operators that draw have the arguments of RANDOM_ARGS: `rng`, the key,
 * `stream`, their number in program order, and `cipher`. Import leaves them out, random_attach
 * (passes/random.h) fills them in. Passes change neither: copies of a node draw what it drew. */
#ifndef WEFT_OPS_PRIM_RANDOM_H
#define WEFT_OPS_PRIM_RANDOM_H

#include "ops/rules/common.h"

#define RANDOM_ARGS "Tensor? rng=None, int stream=0, str? cipher=None"

/* What makes random bits of a key and a counter. */
typedef enum { CIPHER_PHILOX, CIPHER_AES } Cipher;
#define CIPHER_AES_NAME "aes128-ctr"
/* Sets *c to the cipher of that name; NULL: Philox. Returns false if there is none, *c is
 * unchanged then. */
bool cipher_find(const char *name, Cipher *c);
/* Returns the name, NULL of Philox. */
const char *cipher_name(Cipher);
/* Returns the value of an argument `cipher`. */
Attr cipher_attr(Ir *, Cipher);
/* Returns the cipher of a node whose operator has the argument `cipher`. */
Cipher node_cipher(const Graph *, Node);

/* Whether the node draws random numbers: its operator has RANDOM_ARGS, and with the node's other
 * arguments numbers are needed (dropout in training). */
bool node_draws(const Graph *, Node);

/* The random numbers of one node, at its expansion. Each draw_ function below advances `part`, so
 * later calls give other numbers. */
typedef struct {
	Node key;              /* u64[B..., 2], one key for each member of a batch */
	Cipher cipher;
	uint32_t stream, part; /* part: how many tensors were drawn; 256 is the most, then an
				  error */
} Draw;
/* Begins the draws of n, whose operator has RANDOM_ARGS: sets *d to n's key, cipher and stream, and
 * part 0. Returns false after an error: n has no key, or a cipher that is none. */
bool draw_begin(Build *, Node n, Draw *d);

/* The draw_ functions for a shape return a tensor [B..., *shape] (B of Draw.key), and no node after
 * an error; the 257th tensor of one Draw is an error. */

/* Returns a u64 tensor [B..., *shape] with 64 random bits in every element; no node after an
 * error. */
Node draw_bits(Build *, Draw *, const Shape *);
/* Returns the u64 tensor [B..., *shape] of random bits of the Draw's key, stream and part. high:
 * the words 2 and 3 of four, else the words 0 and 1. Returns no node after an error. */
Node b_random_bits(Build *, const Draw *, bool high, const Shape *);
/* Returns numbers [B..., *shape] of a float dtype: k / 2^bits, where the integer k is uniform in
 * [0, 2^bits). bits are the digits of the dtype, as in PyTorch: 53 of f64, 24 of f32, 11 of f16, 8
 * of bf16; 4 of f8e4m3, 3 of f8e5m2 (and of their fnuz kinds), of which PyTorch draws none. So
 * every number is exact and less than 1. */
Node draw_uniform(Build *, Draw *, DType, const Shape *);
/* Returns numbers [B..., *shape], uniform in (0, 1), without 0 and 1. The dtype is f64 or f32. */
Node draw_open(Build *, Draw *, DType, const Shape *);
/* Returns numbers [B..., *shape] of the normal distribution of mean 0 and standard deviation 1; f64
 * for f64, f32 for every other dtype. */
Node draw_normal(Build *, Draw *, DType, const Shape *);
/* Returns bools [B..., *shape], each true with probability p (0 to 1), to within 2^-53. */
Node draw_chance(Build *, Draw *, double p, const Shape *);
/* Returns the decisions of dropout, which drops elements of x with probability p: bools [B...,
 * shape of x], true if the element stays; along the dimensions of x in the bit set `shared` the
 * extent is 1, and one decision holds for all. */
Node draw_keep(Build *, Draw *, Node x, double p, uint32_t shared);
/* Returns x / (1 - p) where keep (of draw_keep), else x * 0, in x's dtype. */
Node dropout_of(Build *, Node x, Node keep, double p);
/* Returns dropout_of x with new decisions (draw_keep). */
Node draw_dropout(Build *, Draw *, Node x, double p, uint32_t shared);

/* Returns the key of a call, made of the state: vmap gives each member one of its own there. */
Node b_random_key(Build *, Cipher, Node state);
/* Returns a key [B..., 2] made, by a cipher, of a key u64[2] or u64[B..., 2] and integers
 * data[B...]: jax.random.fold_in. Other keys and other data give other keys. The result has the
 * shape [data's shape and the key's leading dimensions broadcast, 2]. Another dtype or shape of
 * the key is an error. */
Node b_random_fold(Build *, Cipher, Node key, Node data);

#endif
