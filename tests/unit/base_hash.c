/* Hashes and checksums: parts, blocks and the fast ways give what the plain ways give. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32.h"
#include "base/hash.h"
#include "base/parallel.h"

static uint8_t *noise(size_t n)
{
	uint8_t *p = malloc(n);
	uint64_t x = 1;
	assert_non_null(p);
	for (size_t i = 0; i < n; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		p[i] = (uint8_t)(x >> 56);
	}
	return p;
}

static void test_crc32(void **state)
{
	(void)state;
	enum { N = 1 << 12 };
	uint8_t *p = noise(N + 64);
	assert_int_equal(crc32_of("123456789", 9), 0xcbf43926u);
	assert_int_equal(crc32_of("", 0), 0);
	for (size_t n = 0; n < 700; n++)
		for (size_t at = 0; at < 3; at++) {
			assert_int_equal(crc32_of(p + at, n), crc32_by_table(p + at, n));
			assert_int_equal(crc32_more(crc32_of(p, at), p + at, n),
					 crc32_of(p, at + n));
		}
	uint32_t whole = crc32_of(p, N);
	assert_int_equal(whole, crc32_by_table(p, N));
	for (size_t k = 0; k < N; k += 37) {
		p[k] ^= 4;
		assert_int_not_equal(crc32_of(p, N), whole);
		p[k] ^= 4;
	}
	free(p);
}

static void test_blocks(void **state)
{
	(void)state;
	const size_t sizes[] = {1,
				HASH_BLOCK - 1,
				HASH_BLOCK,
				4 * HASH_BLOCK,
				4 * HASH_BLOCK + 13,
				9 * HASH_BLOCK + 8};
	uint8_t *p = noise(10 * HASH_BLOCK);
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		uint64_t h[10];
		size_t n = (sizes[k] + HASH_BLOCK - 1) / HASH_BLOCK;
		hash_blocks(p, sizes[k], h);
		for (size_t i = 0; i < n; i++) {
			size_t left = sizes[k] - i * HASH_BLOCK;
			assert_true(h[i] == hash_bytes(p + i * HASH_BLOCK,
						       left < HASH_BLOCK ? left : HASH_BLOCK, 0));
		}
	}
	free(p);
}

typedef struct {
	atomic_uint next;
	atomic_uint done[1000];
} Counted;

static void *count(void *arg)
{
	Counted *c = arg;
	for (uint32_t k; (k = atomic_fetch_add(&c->next, 1)) < 1000;)
		atomic_fetch_add(&c->done[k], 1);
	return NULL;
}

static void test_parallel(void **state)
{
	(void)state;
	for (uint32_t jobs = 0; jobs < 40; jobs += 3) {
		Counted c = {0};
		parallel_run(jobs, count, &c);
		for (int k = 0; k < 1000; k++)
			assert_int_equal(c.done[k], 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc32),
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_parallel),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
