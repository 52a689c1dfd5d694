/* A 64-bit hash. The value depends on the bytes only: not on the run, nor on the machine, if the
 * byte order is the same. */
#ifndef WEFT_BASE_HASH_H
#define WEFT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Returns the hash of the n bytes at p; another seed gives another hash. */
uint64_t hash_bytes(const void *p, size_t n, uint64_t seed);
/* Returns the hash of the pair (a, b), which differs from that of (b, a). */
uint64_t hash_combine(uint64_t a, uint64_t b);

/* Large data is hashed in blocks of HASH_BLOCK bytes, so that several threads can each hash
 * some. */
#define HASH_BLOCK ((size_t)1 << 16)
/* Sets out[k] to hash_bytes of block k of the n bytes at p, with seed 0. The last block may be
 * smaller. out has room for (n + HASH_BLOCK - 1) / HASH_BLOCK hashes. */
void hash_blocks(const void *p, size_t n, uint64_t *out);

#endif
