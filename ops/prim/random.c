/* Random bits and what is made of them directly: ops/prim/random.h. */
#include "ops/prim/random.h"

#include <math.h>
#include <string.h>

/* ---- the generator ---- */

#define PHILOX_SAMPLE                                                                              \
	"u64[3] of 0 7 5000000000, u64[3] of 0 3 9000000000, u64[3] of 0 11 7000000000"

OP(philox_low) {
	.schema = "philox_low(Tensor lo, Tensor hi, Tensor key) -> Tensor",
	.doc = "words 0 and 1 of Philox4x32-10 of the counter {lo, hi}",
	.scalar = "philox_low(lo, hi, key)",
	.result = DT_u64,
	.sample = PHILOX_SAMPLE,
};
OP(philox_high) {
	.schema = "philox_high(Tensor lo, Tensor hi, Tensor key) -> Tensor",
	.doc = "words 2 and 3 of Philox4x32-10 of the counter {lo, hi}",
	.scalar = "philox_high(lo, hi, key)",
	.result = DT_u64,
	.sample = PHILOX_SAMPLE,
};

#define AES_SAMPLE                                                                                 \
	"u64[3] of 0 7 5000000000, u64[3] of 0 3 9000000000, u64[3] of 0 11 7000000000, u64[3] "   \
	"of 0 13 3000000000"

/* Byte k of a block or key of 16 is bits 8 k .. 8 k + 7 of its first word, from byte 8 on of its
 * second. */
OP(aes_low) {
	.schema = "aes_low(Tensor lo, Tensor hi, Tensor key0, Tensor key1) -> Tensor",
	.doc = "bytes 0 to 7 of AES-128 of the block {lo, hi}",
	.scalar = "aes_low(lo, hi, key0, key1)",
	.result = DT_u64,
	.sample = AES_SAMPLE,
};
OP(aes_high) {
	.schema = "aes_high(Tensor lo, Tensor hi, Tensor key0, Tensor key1) -> Tensor",
	.doc = "bytes 8 to 15 of AES-128 of the block {lo, hi}",
	.scalar = "aes_high(lo, hi, key0, key1)",
	.result = DT_u64,
	.sample = AES_SAMPLE,
};

bool cipher_find(const char *name, Cipher *c)
{
	if (name && strcmp(name, CIPHER_AES_NAME) != 0)
		return false;
	*c = name ? CIPHER_AES : CIPHER_PHILOX;
	return true;
}

const char *cipher_name(Cipher c)
{
	return c == CIPHER_AES ? CIPHER_AES_NAME : NULL;
}

Attr cipher_attr(Ir *ir, Cipher c)
{
	return cipher_name(c) ? attr_str(ir, cipher_name(c)) : attr_none();
}

static const char *cipher_text(const Graph *g, Node n)
{
	return node_attr(g, n, "cipher")->kind == ATTR_str ? node_str(g, n, "cipher") : NULL;
}

Cipher node_cipher(const Graph *g, Node n)
{
	Cipher c = CIPHER_PHILOX;
	cipher_find(cipher_text(g, n), &c);
	return c;
}

/* Sets *c to n's cipher. Returns false after an error: there is no such cipher. */
static bool cipher_of(Build *b, Node n, Cipher *c)
{
	const char *name = cipher_text(b->g, n);
	return cipher_find(name, c) ||
	       b_error(b,
		       "there is no cipher \"%s\" of random bits, expected \"" CIPHER_AES_NAME "\"",
		       name)
		       .i;
}

/* ---- keys ---- */

static Node key_word(Build *b, Node key, int64_t k)
{
	return b_select_dim(b, key, -1, b_int(b, k));
}

/* What the bits of a counter depend on besides its lower half; of the key's leading shape. */
typedef struct {
	Cipher cipher;
	Node high;   /* the upper half of the counter */
	Node key[2]; /* Philox: the first alone */
} Source;

static Source source_of(Build *b, Cipher c, Node key, uint32_t word)
{
	Node high = b_full_int(b, DT_u64, (int64_t)((uint64_t)word << 32), 0, NULL);
	if (c == CIPHER_AES)
		return (Source){c, high, {key_word(b, key, 0), key_word(b, key, 1)}};
	return (Source){c, b_bin(b, OP_bit_xor, key_word(b, key, 1), high), {key_word(b, key, 0)}};
}

/* Returns two of the four words for lower halves of counters. */
static Node bits_of(Build *b, const Source *s, bool upper, Node lo)
{
	if (s->cipher == CIPHER_AES)
		return b_pointwise(b, upper ? OP_aes_high : OP_aes_low,
				   (Node[]){lo, s->high, s->key[0], s->key[1]}, 4);
	return b_pointwise(b, upper ? OP_philox_high : OP_philox_low,
			   (Node[]){lo, s->high, s->key[0]}, 3);
}

static bool is_key(const Graph *g, Node key)
{
	const Type *t = node_type(g, key);
	return t->dtype == DT_u64 && t->n && sym_is(graph_syms(g), t->dim[t->n - 1], 2);
}

static TypeId infer_random_key(Graph *g, Op op, const Node *in, uint32_t nin, AttrId attr,
			       const char *where)
{
	(void)op, (void)nin, (void)attr;
	if (is_key(g, in[0]))
		return node_type_id(g, in[0]);
	ctx_error(g->ir->ctx, where, "a key of random numbers is u64[2], got %s",
		  type_str(g->ir, node_type_id(g, in[0])));
	return (TypeId){0};
}

static bool adjoint_none(Build *b, Node n, const Node *ct, const bool *want, Node *g)
{
	(void)b, (void)n, (void)ct, (void)want, (void)g;
	return true;
}

/* Seen by vmap, which gives each member one of its own where they are to draw different numbers. */
OP(random_key) {
	.schema = "random_key(Tensor state, *, str? cipher=None) -> Tensor",
	.doc = "the key of a call",
	.infer = infer_random_key,
	.adjoint = adjoint_none,
	.batch_leading = true,
	.expand = "state",
	.sample = "u64[2] of 1 2",
};

Node b_random_key(Build *b, Cipher c, Node state)
{
	const Attr attr[] = {attr_none(), cipher_attr(b->g->ir, c)};
	return state.i ? b_node(b, OP_random_key, &state, 1, attr, 2) : state;
}

/* Folds data into a key. No stream is 2^24 - 1, so none shares a counter with this. */
Node b_random_fold(Build *b, Cipher c, Node key, Node data)
{
	if (!key.i || !data.i)
		return (Node){0};
	if (!is_key(b->g, key))
		return b_error(b, "a key of random numbers is u64[2], got %s",
			       type_str(b->g->ir, node_type_id(b->g, key)));
	const Source s = source_of(b, c, key, UINT32_MAX);
	Node lo = b_convert(b, data, DT_u64), word[2];
	for (int k = 0; k < 2; k++)
		word[k] = bits_of(b, &s, k, lo);
	return aten_stack(b, word, 2, aten_rank(b, word[0]));
}

static Node build_random_fold(Build *b, Node n)
{
	Cipher c;
	return cipher_of(b, n, &c) ? b_random_fold(b, c, arg(b, n, "key"), arg(b, n, "data"))
				   : (Node){0};
}
OP(random_fold) {
	.schema = "random_fold(Tensor key, Tensor data, *, str? cipher=None) -> Tensor",
	.doc = "keys of numbered members",
	.build = build_random_fold,
	.sample = "u64[2] of 1 2, i64[n=3] of 0 1 2; u64[2] of 1 2, i64[] of 7; "
		  "u64[2] of 1 2, i64[2] of 7 9, cipher=\"aes128-ctr\"",
};

/* ---- bits ---- */

Node b_random_bits(Build *b, const Draw *d, bool high, const Shape *s)
{
	Node key = d->key;
	if (!key.i)
		return key;
	if (!is_key(b->g, key))
		return b_error(b, "a key of random numbers is u64[2], got %s",
			       type_str(b->g->ir, node_type_id(b->g, key)));
	Shape all = aten_shape(b, key), flat = {1, {shape_numel(b, s)}};
	uint32_t lead = all.rank - 1, map[MAX_RANK];
	if (lead + s->rank > MAX_RANK)
		return b_error(b, "random numbers of %u dimensions", lead + s->rank);
	for (uint32_t k = 0; k < MAX_RANK; k++)
		map[k] = k;
	for (uint32_t k = 0; k < s->rank; k++)
		all.dim[lead + k] = s->dim[k];
	all.rank = lead + s->rank;
	Node i = b_broadcast(b, b_reshape(b, b_iota(b, DT_u64, flat.dim[0]), s->rank, s->dim),
			     all.rank, all.dim);
	Source from = source_of(b, d->cipher, key, d->stream << 8 | d->part);
	from.high = b_broadcast_in_dim(b, from.high, all.rank, all.dim, map);
	for (int k = 0; k < 2; k++)
		from.key[k] = from.key[k].i
				      ? b_broadcast_in_dim(b, from.key[k], all.rank, all.dim, map)
				      : from.key[k];
	return bits_of(b, &from, high, i);
}

static Node build_random_bits(Build *b, Node n)
{
	uint32_t len;
	const Sym *dim = node_ints(b->g, n, "shape", &len);
	if (len > MAX_RANK)
		return b_error(b, "random numbers of %u dimensions", len);
	Shape s = shape_of(len, dim);
	Draw d = {.key = arg(b, n, "key"),
		  .stream = (uint32_t)aten_int(b, n, "stream"),
		  .part = (uint32_t)aten_int(b, n, "part")};
	return cipher_of(b, n, &d.cipher) ? b_random_bits(b, &d, node_bool(b->g, n, "high"), &s)
					  : (Node){0};
}
OP(random_bits) {
	.schema = "random_bits(Tensor key, *, SymInt[] shape, int stream=0, int part=0, bool "
		  "high=False, str? cipher=None) -> Tensor",
	.doc = "64 random bits per element, by its place",
	.build = build_random_bits,
	.sample = "u64[2] of 1 2, shape=[2, 3], stream=5; u64[2] of 3 4, shape=[4], part=1, "
		  "high=true; u64[3, 2], shape=[]; u64[2] of 3 4, shape=[3], stream=1, "
		  "cipher=\"aes128-ctr\"",
};

/* Builds a key of the node's own. Streams of one Draw are below 2^24 and rounds of loops below
 * 2^48: no other key is folded from such a number. */
static Node build_random_own(Build *b, Node n)
{
	Draw d;
	return draw_begin(b, n, &d)
		       ? b_random_fold(b, d.cipher, d.key,
				       b_full_int(b, DT_u64, (int64_t)1 << 56 | d.stream, 0, NULL))
		       : (Node){0};
}
OP(random_own) {
	.schema = "random_own(*, " RANDOM_ARGS ") -> Tensor",
	.doc = "a key of this node's own, for a graph that draws as a whole",
	.build = build_random_own,
	.sample = "u64[2] of 1 2; u64[2] of 1 2, stream=3",
};

bool node_draws(const Graph *g, Node n)
{
	Op op = node_op(g, n);
	const OpInfo *info = op_info(op);
	return op_kind(op) == OP_COMPOSITE && op_arg_index(op, "rng") >= 0 &&
	       (!info->draws || info->draws(g, n));
}

bool draw_begin(Build *b, Node n, Draw *d)
{
	*d = (Draw){.key = arg(b, n, "rng"), .stream = (uint32_t)aten_int(b, n, "stream")};
	TRY(cipher_of(b, n, &d->cipher));
	return d->key.i || b_error(b, "%s draws random numbers and has no key (argument rng)",
				   op_name(node_op(b->g, n)))
				   .i;
}

Node draw_bits(Build *b, Draw *d, const Shape *s)
{
	if (d->part > UINT8_MAX)
		return b_error(b, "draws more than %d tensors of random numbers", UINT8_MAX + 1);
	Node bits = b_random_bits(b, d, false, s);
	d->part++;
	return bits;
}

/* ---- numbers ---- */

static Node shifted(Build *b, Node x, int64_t by)
{
	return by ? b_bin(b, OP_shift_right, x, b_full_int(b, DT_u64, by, 0, NULL)) : x;
}

/* Returns the upper `n` bits of 64 as a fraction of 1, plus `more` / 2^n. n < 63: signed numbers
 * convert faster. */
static Node fraction(Build *b, Node bits, int n, double more, DType d)
{
	Node x = b_convert(b, b_convert(b, shifted(b, bits, 64 - n), n < 32 ? DT_i32 : DT_i64), d);
	if (more != 0)
		x = b_bin_scalar(b, OP_add, x, more);
	return b_bin_scalar(b, OP_mul, x, ldexp(1, -n));
}

/* Returns how many bits a fraction has that is exact, and below 1. */
static int digits_of(DType d)
{
	return (int)dtype_digits(d);
}

Node draw_uniform(Build *b, Draw *d, DType t, const Shape *s)
{
	return b_convert(b, fraction(b, draw_bits(b, d, s), digits_of(t), 0, dtype_compute(t)), t);
}

Node draw_open(Build *b, Draw *d, DType t, const Shape *s)
{
	return fraction(b, draw_bits(b, d, s), digits_of(t) - 1, 0.5, t);
}

/* Draws by Box and Muller, of two words of the same counter; of f64 of all four. Its logarithm
 * is of (0, 1). */
Node draw_normal(Build *b, Draw *d, DType t, const Shape *s)
{
	static const double turn = 6.283185307179586476925286766559;
	DType f = t == DT_f64 ? DT_f64 : DT_f32;
	const Draw first = *d;
	Node bits = draw_bits(b, d, s), angle = bits;
	if (f == DT_f64)
		angle = b_random_bits(b, &first, true, s);
	else
		angle = b_bin(b, OP_shift_left, bits, b_full_int(b, DT_u64, 32, 0, NULL));
	Node radius = b_un(b, OP_log, fraction(b, bits, f == DT_f64 ? 52 : 31, 0.5, f));
	radius = b_un(b, OP_sqrt, b_bin_scalar(b, OP_mul, radius, -2));
	angle = b_bin_scalar(b, OP_mul, fraction(b, angle, digits_of(f), 0, f), turn);
	return b_bin(b, OP_mul, radius, b_un(b, OP_cos, angle));
}

/* Whether the upper 53 bits are below p. */
Node draw_chance(Build *b, Draw *d, double p, const Shape *s)
{
	int64_t below = (int64_t)ceil(ldexp(p, 53));
	Node x = shifted(b, draw_bits(b, d, s), 11);
	return b_bin(b, OP_lt, x, b_full_int(b, DT_u64, below, 0, NULL));
}

/* Returns the shape with the dims in `shared` of extent 1. */
static Shape shape_shared(const Build *b, Shape s, uint32_t shared)
{
	for (uint32_t k = 0; k < s.rank; k++)
		if (shared >> k & 1)
			s.dim[k] = b_int(b, 1);
	return s;
}

Node draw_keep(Build *b, Draw *d, Node x, double p, uint32_t shared)
{
	Shape s = shape_shared(b, aten_shape(b, x), shared);
	return x.i ? draw_chance(b, d, 1 - p, &s) : x;
}

/* Returns x with some elements dropped, by a product, so that infinity that is dropped is NaN,
 * as PyTorch has it. */
Node dropout_of(Build *b, Node x, Node keep, double p)
{
	if (!x.i || !keep.i)
		return (Node){0};
	DType t = aten_dtype(b, x);
	Node scale = b_full(b, dtype_compute(t), 1 / (1 - p), 0, NULL);
	Node factor = b_select(b, keep, scale, aten_like(b, scale, 0));
	return b_convert(b, b_bin(b, OP_mul, b_convert(b, x, dtype_compute(t)), factor), t);
}

Node draw_dropout(Build *b, Draw *d, Node x, double p, uint32_t shared)
{
	return dropout_of(b, x, draw_keep(b, d, x, p, shared), p);
}
