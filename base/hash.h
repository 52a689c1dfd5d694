/* Hashing: one 64-bit mixing hash, deterministic across runs and machines of one endianness. */
#ifndef WEFT_BASE_HASH_H
#define WEFT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed);
uint64_t hash_combine(uint64_t a, uint64_t b);

#endif
