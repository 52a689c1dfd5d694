/* How many warps a multiprocessor holds, as NVIDIA's occupancy calculator says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/target/gpu.h"

static void test_resident(void **state)
{
	static const struct {
		const char *gpu;
		uint32_t threads, registers, shared, warps;
	} cases[] = {
		{"cuda-sm_90", 256, 32, 0, 64},     /* all */
		{"cuda-sm_90", 256, 128, 0, 16},    /* registers */
		{"cuda-sm_90", 256, 33, 0, 48},     /* of a warp, in units of 256: 6 blocks */
		{"cuda-sm_90", 256, 32, 48 << 10, 32}, /* shared memory: 4 blocks of 49 KB in 228 */
		{"cuda-sm_90", 32, 32, 0, 32},      /* blocks */
		{"cuda-sm_90", 1024, 255, 0, 0},    /* no block fits */
		{"cuda-sm_86", 256, 32, 0, 48},
		{"cuda-sm_86", 256, 32, 48 << 10, 16}, /* 2 blocks of 49 KB in 100 */
	};
	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		assert_int_equal(gpu_resident(gpu_find(cases[k].gpu), cases[k].threads,
					      cases[k].registers, cases[k].shared),
				 cases[k].warps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_resident)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
