/* Hashing: one 64-bit mixing hash, deterministic across runs and machines of one endianness. */
#ifndef WEFT_BASE_HASH_H
#define WEFT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed);
uint64_t hash_combine(uint64_t a, uint64_t b);

/* Large things are hashed by blocks, of which several threads may take some each. */
#define HASH_BLOCK ((size_t)1 << 16)
/* hash_bytes, seed 0, of each block of p; the last one may be smaller. */
void hash_blocks(const void *p, size_t n, uint64_t *out);

#endif
