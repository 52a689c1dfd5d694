/* NVRTC, if it is there: $WEFT_NVRTC, or where the loader looks. Else skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ctx_fixture.h"
#include "driver/gpu/nvrtc.h"

static const char scale[] =
	"extern \"C\" __global__ void __launch_bounds__(128) scale(float *x, const float *y, long "
	"long n)\n"
	"{\n"
	"\t__shared__ float part[128];\n"
	"\tpart[threadIdx.x] = y[threadIdx.x];\n"
	"\t__syncthreads();\n"
	"\tfor (long long k = threadIdx.x; k < n; k += 128)\n"
	"\t\tx[k] = x[k] * part[127 - threadIdx.x] + 1.0f;\n"
	"}\n"
	"extern \"C\" __global__ void other(float *x) { x[threadIdx.x] = 2; }\n";

static void test_resources(void **state)
{
	static const char *const arch[] = {"sm_80", "sm_90", "sm_100", "sm_120"};
	(void)state;
	for (size_t k = 0; k < sizeof arch / sizeof *arch; k++) {
		GpuImage im;
		assert_true(nvrtc_compile(ctx, "scale.cu", scale, arch[k], &im));
		assert_true(im.cubin_bytes > 64);
		assert_memory_equal(im.cubin, "\x7f" "ELF", 4);
		assert_non_null(strstr(im.ptx, ".entry scale"));
		assert_null(strstr(im.ptx, "fma.rn.f32")); /* nothing is contracted */
		assert_null(im.warnings);
		assert_int_equal(im.use.n, 2);
		for (uint32_t i = 0; i < 2; i++) {
			const GpuUse *u = &im.use.data[i];
			const bool first = !strcmp(u->name, "scale");
			assert_true(first || !strcmp(u->name, "other"));
			assert_in_range(u->registers, 2, 64);
			assert_int_equal(u->spilled, 0);
			assert_int_equal(u->stack, 0);
			assert_true(first ? u->shared >= 512 : u->shared < 512 + 1024);
		}
	}
}

/* More values than 255 registers hold. */
static void test_spills(void **state)
{
	GpuImage im;
	Text t;
	(void)state;
	text_init(&t, ctx->arena);
	text_add(&t, "extern \"C\" __global__ void __launch_bounds__(1024) many(float *x)\n{\n");
	for (int k = 0; k < 200; k++)
		text_printf(&t, "\tfloat v%d = x[%d * 1024 + threadIdx.x];\n", k, k);
	text_add(&t, "\t__syncthreads();\n");
	for (int k = 0; k < 200; k++)
		text_printf(&t, "\tx[%d * 1024 + threadIdx.x] = v%d * v%d;\n", k, k,
			    (k * 7 + 1) % 200);
	text_add(&t, "}\n");
	assert_true(nvrtc_compile(ctx, "many.cu", t.data, "sm_90", &im));
	assert_int_equal(im.use.n, 1);
	assert_in_range(im.use.data[0].registers, 32, 64); /* 1,024 threads have 64 each */
	assert_true(im.use.data[0].spilled > 0);
	assert_true(im.use.data[0].stack > 0);
}

static void test_warnings(void **state)
{
	GpuImage im;
	(void)state;
	assert_true(nvrtc_compile(
		ctx, "unused.cu",
		"extern \"C\" __global__ void k(float *x) { int unused; x[0] = 1; }\n", "sm_90",
		&im));
	assert_non_null(im.warnings);
	assert_non_null(strstr(im.warnings, "unused"));
}

static const char *messages(void)
{
	Text t;
	text_init(&t, ctx->arena);
	ctx_print(ctx, &t);
	return t.data ? t.data : "";
}

static void test_errors(void **state)
{
	GpuImage im;
	(void)state;
	assert_false(nvrtc_compile(ctx, "bad.cu",
				   "__global__ void k(float *x)\n{\n\tx[0] = y;\n\tx[1] = z;\n}\n",
				   "sm_90", &im));
	const char *said = messages();
	assert_non_null(strstr(said, "bad.cu for sm_90: NVRTC: "));
	assert_non_null(strstr(said, "bad.cu(3)"));
	assert_non_null(strstr(said, "\"y\""));
	assert_null(strstr(said, "\"z\""));
	assert_false(nvrtc_compile(ctx, "arch.cu", scale, "sm_1", &im));
	assert_non_null(strstr(messages(), "arch.cu for sm_1"));
}

int main(void)
{
	setup(NULL);
	const char *no = ctx ? nvrtc_missing(ctx->arena) : "no memory";
	if (no)
		printf("skipped: %s\n", no);
	teardown(NULL);
	if (no)
		return 77;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_resources, setup, teardown),
		cmocka_unit_test_setup_teardown(test_spills, setup, teardown),
		cmocka_unit_test_setup_teardown(test_warnings, setup, teardown),
		cmocka_unit_test_setup_teardown(test_errors, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
