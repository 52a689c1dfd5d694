/* A 64-bit hash. The value depends on the bytes only: not on the run, nor on the machine, if the
 * byte order is the same. */
#ifndef WEFT_BASE_HASH_H
#define WEFT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed);
uint64_t hash_combine(uint64_t a, uint64_t b);

/* Large data is hashed in blocks, so that several threads can each hash some. */
#define HASH_BLOCK ((size_t)1 << 16)
/* out[k]: hash_bytes with seed 0 of block k of p. The last block may be smaller. */
void hash_blocks(const void *p, size_t n, uint64_t *out);

#endif
