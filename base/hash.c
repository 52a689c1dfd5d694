#include "base/hash.h"

#include <string.h>

static inline uint64_t mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	return x ^ x >> 32;
}

static inline uint64_t combine(uint64_t a, uint64_t b)
{
	return mix(a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u);
}

uint64_t hash_combine(uint64_t a, uint64_t b)
{
	return combine(a, b);
}

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed)
{
	const unsigned char *s = p;
	uint64_t h = combine(seed, n);
	for (; n >= 8; s += 8, n -= 8) {
		uint64_t word;
		memcpy(&word, s, 8);
		h = combine(h, word);
	}
	uint64_t tail = 0;
	if (n)
		memcpy(&tail, s, n);
	return combine(h, tail);
}

/* Sets h[] to the hashes of four blocks, of seed 0, side by side: in the hash of one block each
 * step waits for the three multiplications before the step. */
static void hash_four(const unsigned char *p, uint64_t h[4])
{
	for (int k = 0; k < 4; k++)
		h[k] = combine(0, HASH_BLOCK);
	for (size_t i = 0; i < HASH_BLOCK; i += 8)
		for (size_t k = 0; k < 4; k++) {
			uint64_t word;
			memcpy(&word, p + k * HASH_BLOCK + i, 8);
			h[k] = combine(h[k], word);
		}
	for (int k = 0; k < 4; k++)
		h[k] = combine(h[k], 0);
}

void hash_blocks(const void *p, size_t n, uint64_t *out)
{
	const unsigned char *s = p;
	for (; n >= 4 * HASH_BLOCK; n -= 4 * HASH_BLOCK, s += 4 * HASH_BLOCK, out += 4)
		hash_four(s, out);
	for (size_t k; n; n -= k, s += k) {
		k = n < HASH_BLOCK ? n : HASH_BLOCK;
		*out++ = hash_bytes(s, k, 0);
	}
}
