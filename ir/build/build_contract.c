/* Contractions of the builder: the general dot and ATen's matmul on top of it. */
#include "ir/build/build.h"

#include "ir/op/op.h"

/* Returns one column of the pairs as an attribute, in scratch memory. */
static Attr axes(Build *b, const uint32_t (*pair)[2], uint32_t n, int side)
{
	Sym *v = ARENA_ARRAY(b->g->ir->ctx->scratch, Sym, n);
	for (uint32_t k = 0; k < n; k++)
		v[k] = b_int(b, pair[k][side]);
	return attr_ints(v, n);
}

static bool check_pairs(Build *b, Node x, Node y, const uint32_t (*pair)[2], uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		Sym p = node_dim(b->g, x, pair[k][0]), q = node_dim(b->g, y, pair[k][1]);
		Truth eq = sym_eq(b_syms(b), p, q);
		if (eq == MAYBE)
			graph_guard(b->g, GUARD_EQ, p, q, "sizes of a contraction");
		if (eq == NO) {
			b_error(b, "sizes %s and %s of a contraction differ", sym_str(b_syms(b), p),
				sym_str(b_syms(b), q));
			return false;
		}
	}
	return true;
}

typedef enum { PROMOTED, WIDE, INTEGERS } ContractKind;

/* Returns the contraction. bound: of INTEGERS, two. */
static Node contract(Build *b, ContractKind kind, Node x, Node y, const uint32_t (*batch)[2],
		     uint32_t nbatch, const uint32_t (*sum)[2], uint32_t nsum, const Sym *bound)
{
	Node in[] = {x, y};
	if (!x.i || !y.i || !check_pairs(b, x, y, batch, nbatch) ||
	    !check_pairs(b, x, y, sum, nsum))
		return (Node){0};
	DType d = kind == INTEGERS ? DT_i32 : b_promote(b, in, 2);
	for (uint32_t k = 0; k < 2 && kind != INTEGERS; k++)
		in[k] = b_convert(b, in[k], d);
	const Attr most = kind == INTEGERS ? attr_ints(bound, 2) : attr_none();
	Attr attr[] = {attr_none(),
		       attr_none(),
		       axes(b, batch, nbatch, 0),
		       axes(b, batch, nbatch, 1),
		       axes(b, sum, nsum, 0),
		       axes(b, sum, nsum, 1),
		       attr_dtype(dtype_compute(d)),
		       kind == WIDE && dtype_compute(d) != d ? attr_dtype(dtype_compute(d))
							     : attr_none(),
		       most};
	return b_node(b, OP_contract, in, 2, attr, 9);
}

Node b_contract(Build *b, Node x, Node y, const uint32_t (*batch)[2], uint32_t nbatch,
		const uint32_t (*sum)[2], uint32_t nsum)
{
	return contract(b, PROMOTED, x, y, batch, nbatch, sum, nsum, NULL);
}

Node b_contract_wide(Build *b, Node x, Node y, const uint32_t (*sum)[2], uint32_t nsum)
{
	return contract(b, WIDE, x, y, NULL, 0, sum, nsum, NULL);
}

Node b_contract_integers(Build *b, Node x, Node y, const uint32_t (*batch)[2], uint32_t nbatch,
			 const uint32_t (*sum)[2], uint32_t nsum, const int64_t most[2])
{
	const Sym bound[2] = {b_int(b, most[0]), b_int(b, most[1])};
	return contract(b, INTEGERS, x, y, batch, nbatch, sum, nsum, bound);
}

/* Returns x without the dimensions in the set, which have extent 1. */
static Node drop_dims(Build *b, Node x, uint32_t dims)
{
	Sym keep[MAX_RANK];
	uint32_t n = 0, r = node_rank(b->g, x);
	for (uint32_t k = 0; k < r; k++)
		if (!(dims >> k & 1))
			keep[n++] = node_dim(b->g, x, k);
	return b_reshape(b, x, n, keep);
}

/* Where the batch dimensions of a matmul go. Position k counts from the left of the result. */
typedef struct {
	uint32_t rank;                      /* batch dimensions of the result */
	uint32_t drop_x, drop_y;            /* unit dimensions, bit sets */
	uint32_t both[MAX_RANK], nboth;     /* positions that are batch axes of the contraction */
	uint32_t only_x[MAX_RANK], nonly_x; /* positions that are free axes of x */
	uint32_t only_y[MAX_RANK], nonly_y;
	uint32_t pair[MAX_RANK][2]; /* dims of both[], after dropping */
} Batch;

/* Sets *o to where the leading batch dimensions go, bx of x and by of y. Of two aligned ones a
 * dimension of extent 1 is dropped, unless both are 1: nothing is broadcast. */
static void batch_split(Build *b, Node x, uint32_t bx, Node y, uint32_t by, Batch *o)
{
	uint32_t px = 0, py = 0;
	*o = (Batch){.rank = bx > by ? bx : by};
	for (uint32_t k = 0; k < o->rank; k++) {
		bool in_x = k + bx >= o->rank, in_y = k + by >= o->rank;
		uint32_t dx = k + bx - o->rank, dy = k + by - o->rank;
		const bool one_x = in_x && in_y && sym_is(b_syms(b), node_dim(b->g, x, dx), 1),
			   one_y = in_x && in_y && sym_is(b_syms(b), node_dim(b->g, y, dy), 1);
		if (one_y && !one_x) {
			o->drop_y |= 1u << dy;
			in_y = false;
		} else if (one_x && !one_y) {
			o->drop_x |= 1u << dx;
			in_x = false;
		}
		if (in_x && in_y) {
			o->pair[o->nboth][0] = px;
			o->pair[o->nboth][1] = py;
			o->both[o->nboth++] = k;
		} else if (in_x) {
			o->only_x[o->nonly_x++] = k;
		} else {
			o->only_y[o->nonly_y++] = k;
		}
		px += in_x;
		py += in_y;
	}
}

/* Puts the contraction's axes [both, only_x, m, only_y, n] back to [batch..., m, n]. */
static Node batch_restore(Build *b, Node z, const Batch *o, bool has_m, bool has_n)
{
	uint32_t perm[MAX_RANK], at = 0;
	for (uint32_t k = 0; k < o->nboth; k++)
		perm[o->both[k]] = at++;
	for (uint32_t k = 0; k < o->nonly_x; k++)
		perm[o->only_x[k]] = at++;
	if (has_m)
		perm[o->rank] = at++;
	for (uint32_t k = 0; k < o->nonly_y; k++)
		perm[o->only_y[k]] = at++;
	if (has_n)
		perm[o->rank + has_m] = at++;
	return z.i ? b_permute(b, z, perm) : z;
}

static Node matmul(Build *b, bool wide, Node x, Node y)
{
	Batch o;
	if (!x.i || !y.i)
		return (Node){0};
	uint32_t rx = node_rank(b->g, x), ry = node_rank(b->g, y);
	if (rx == 0 || ry == 0)
		return b_error(b, "matmul: expected at least one dimension in both operands");
	bool has_m = rx > 1, has_n = ry > 1;
	uint32_t bx = has_m ? rx - 2 : 0, by = has_n ? ry - 2 : 0;
	batch_split(b, x, bx, y, by, &o);
	x = drop_dims(b, x, o.drop_x);
	y = drop_dims(b, y, o.drop_y);
	if (!x.i || !y.i)
		return (Node){0};
	rx = node_rank(b->g, x);
	ry = node_rank(b->g, y);
	if (o.nboth + o.nonly_x + o.nonly_y + has_m + has_n > MAX_RANK)
		return b_error(b, "matmul: expected at most %d dimensions in the result", MAX_RANK);
	const uint32_t sum[1][2] = {{rx - 1, has_n ? ry - 2 : 0}};
	Node z = contract(b, wide ? WIDE : PROMOTED, x, y, (const uint32_t(*)[2])o.pair, o.nboth,
			  sum, 1, NULL);
	return batch_restore(b, z, &o, has_m, has_n);
}

Node b_matmul_of_operands(Build *b)
{
	Node in[2];
	b_operands(b, in, 2);
	return matmul(b, false, in[0], in[1]);
}

Node b_matmul_wide(Build *b, Node x, Node y)
{
	return matmul(b, true, x, y);
}
