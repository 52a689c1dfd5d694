#include "base/crc32.h"

#include <pthread.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static uint32_t table[8][256];

static void init(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;
		for (int k = 0; k < 8; k++)
			c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
		table[0][i] = c;
	}
	for (uint32_t k = 1; k < 8; k++)
		for (uint32_t i = 0; i < 256; i++)
			table[k][i] = table[0][table[k - 1][i] & 255] ^ table[k - 1][i] >> 8;
}

static uint64_t little(const uint8_t *p)
{
	uint64_t v = 0;
	for (int k = 8; k-- > 0;)
		v = v << 8 | p[k];
	return v;
}

/* Returns the state that c becomes behind the n bytes at p. Takes eight bytes at a time. */
static uint32_t by_table(uint32_t c, const uint8_t *p, size_t n)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, init);
	for (; n >= 8; n -= 8, p += 8) {
		uint64_t v = little(p) ^ c;
		c = 0;
		for (uint32_t k = 0; k < 8; k++)
			c ^= table[7 - k][v >> 8 * k & 255];
	}
	for (; n > 0; n--, p++)
		c = table[0][(c ^ *p) & 255] ^ c >> 8;
	return c;
}

uint32_t crc32_by_table(const void *p, size_t n)
{
	return ~by_table(~0u, p, n);
}

#if defined(__x86_64__)

/* Polynomials over two elements: of a the lower half times that of k plus the upper times the
 * upper, which has the remainder of a times a power of x. */
__attribute__((target("pclmul,sse2"))) static __m128i fold(__m128i a, __m128i k, __m128i next)
{
	__m128i lower = _mm_clmulepi64_si128(a, k, 0x00), upper = _mm_clmulepi64_si128(a, k, 0x11);
	return _mm_xor_si128(_mm_xor_si128(lower, upper), next);
}

__attribute__((target("sse2"))) static __m128i load(const uint8_t *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* n at least 64. What is left of folding, 16 bytes, has the state that all the bytes folded have
 * ("Fast CRC computation for generic polynomials using PCLMULQDQ", Intel 2009). */
__attribute__((target("pclmul,sse2"))) static uint32_t by_folding(uint32_t c, const uint8_t *p,
								  size_t n)
{
	/* x^(512 + 32), x^(512 - 32), x^(128 + 32), x^(128 - 32) modulo the polynomial, bits
	 * reversed, times 2 */
	const __m128i by64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4),
		      by16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
	__m128i a[4];
	uint8_t rest[16];
	for (int k = 0; k < 4; k++)
		a[k] = load(p + 16 * k);
	a[0] = _mm_xor_si128(a[0], _mm_cvtsi32_si128((int)c));
	for (p += 64, n -= 64; n >= 64; p += 64, n -= 64)
		for (int k = 0; k < 4; k++)
			a[k] = fold(a[k], by64, load(p + 16 * k));
	for (int k = 1; k < 4; k++)
		a[0] = fold(a[0], by16, a[k]);
	for (; n >= 16; p += 16, n -= 16)
		a[0] = fold(a[0], by16, load(p));
	_mm_storeu_si128((__m128i *)(void *)rest, a[0]);
	return by_table(by_table(0, rest, sizeof rest), p, n);
}

#endif

uint32_t crc32_more(uint32_t c, const void *p, size_t n)
{
#if defined(__x86_64__)
	if (n >= 64 && __builtin_cpu_supports("pclmul"))
		return ~by_folding(~c, p, n);
#endif
	return ~by_table(~c, p, n);
}

uint32_t crc32_of(const void *p, size_t n)
{
	return crc32_more(0, p, n);
}
