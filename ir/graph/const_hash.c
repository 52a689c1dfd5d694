/* What constants hold, as numbers: small ones as a whole, large ones by blocks. */
#include <stdatomic.h>

#include "base/hash.h"
#include "base/parallel.h"
#include "ir/graph/graph.h"

/* Blocks that a thread takes at once. */
enum { BLOCKS = 16 };

/* A large constant with the hashes of its blocks; its first piece's number among those of all. */
typedef struct {
	Const *c;
	uint64_t *block, nblock, first;
} Large;

typedef struct {
	const Large *large;
	uint32_t n;
	uint64_t npiece;
	atomic_uint_least64_t next;
} Hashing;

static uint64_t blocks_of(const Const *c)
{
	return (c->bytes + HASH_BLOCK - 1) / HASH_BLOCK;
}

static uint64_t pieces_of(const Const *c)
{
	return (blocks_of(c) + BLOCKS - 1) / BLOCKS;
}

static uint64_t type_hash(const Const *c)
{
	uint64_t h = hash_combine((uint64_t)c->dtype, c->rank);
	return hash_bytes(c->dim, c->rank * sizeof *c->dim, h);
}

static void hash_piece(const Large *l, uint64_t piece)
{
	uint64_t at = piece * BLOCKS * HASH_BLOCK, left = l->c->bytes - at;
	hash_blocks((const char *)l->c->data + at,
		    left < BLOCKS * HASH_BLOCK ? left : BLOCKS * HASH_BLOCK,
		    l->block + piece * BLOCKS);
}

static void *hash_some(void *arg)
{
	Hashing *x = arg;
	uint32_t k = 0;
	for (uint64_t piece; (piece = atomic_fetch_add(&x->next, 1)) < x->npiece;) {
		while (piece >= x->large[k].first + pieces_of(x->large[k].c))
			k++;
		hash_piece(&x->large[k], piece - x->large[k].first);
	}
	return NULL;
}

static uint64_t known(uint64_t h)
{
	return h ? h : 1;
}

/* Hashes a small constant at once, and lists the pieces of another one. */
static void hash_or_list(Const *c, Arena *a, Hashing *x, Large *to)
{
	if (c->bytes <= HASH_BLOCK) {
		c->hash = known(hash_bytes(c->data, c->bytes, type_hash(c)));
		return;
	}
	*to = (Large){.c = c, .nblock = blocks_of(c), .first = x->npiece};
	to->block = ARENA_ARRAY(a, uint64_t, to->nblock);
	x->npiece += pieces_of(c);
	x->n++;
}

static void hash_range(Ir *ir, uint32_t from, uint32_t end, uint32_t jobs)
{
	Arena *scratch = ir->ctx->scratch;
	ArenaMark mark = arena_mark(scratch);
	Large *large = ARENA_ARRAY(scratch, Large, end - from + 1);
	Hashing x = {.large = large};
	for (uint32_t k = from; k < end; k++)
		if (!ir->constant.data[k].hash)
			hash_or_list(&ir->constant.data[k], scratch, &x, &large[x.n]);
	parallel_run(x.npiece > 1 ? jobs : 1, hash_some, &x);
	for (uint32_t k = 0; k < x.n; k++) {
		uint64_t h = hash_bytes(large[k].block, large[k].nblock * sizeof *large[k].block,
					type_hash(large[k].c));
		large[k].c->hash = known(h);
	}
	arena_release(scratch, mark);
}

uint64_t const_hash(Ir *ir, ConstId id)
{
	if (!ir->constant.data[id.i].hash)
		hash_range(ir, id.i, id.i + 1, 1);
	return ir->constant.data[id.i].hash;
}

void const_hash_all(Ir *ir, uint32_t jobs)
{
	hash_range(ir, 1, ir->constant.n, jobs);
}
