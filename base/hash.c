#include "base/hash.h"

#include <string.h>

static uint64_t mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	return x ^ x >> 32;
}

uint64_t hash_combine(uint64_t a, uint64_t b)
{
	return mix(a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u);
}

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed)
{
	const unsigned char *s = p;
	uint64_t h = hash_combine(seed, n);
	for (; n >= 8; s += 8, n -= 8) {
		uint64_t word;
		memcpy(&word, s, 8);
		h = hash_combine(h, word);
	}
	uint64_t tail = 0;
	if (n)
		memcpy(&tail, s, n);
	return hash_combine(h, tail);
}
