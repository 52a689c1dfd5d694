/* Sections of constants do not depend on how many threads write them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/artifact/section.h"
#include "ir/loop/program.h"
#include "runtime/runtime.h"

static char *contents(const char *path, long *n)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	*n = ftell(f);
	rewind(f);
	char *p = malloc((size_t)*n);
	assert_int_equal(fread(p, 1, (size_t)*n, f), *n);
	fclose(f);
	return p;
}

/* Three constants with gaps: one of several megabytes, one converted, one small. */
static Program *program_of(Ctx *ctx)
{
	static float big[1100][1200];
	static double wide[5] = {1, -2.5, 3e-3, 4, 5};
	Ir *ir = ir_new(ctx);
	const int64_t dim[] = {1100, 1200}, five[] = {5};
	for (int i = 0; i < 1100; i++)
		for (int k = 0; k < 1200; k++)
			big[i][k] = (float)(i * 1200 + k);
	Const c[] = {{.name = "big",
		      .dtype = DT_f32,
		      .rank = 2,
		      .dim = dim,
		      .data = big,
		      .bytes = sizeof big},
		     {.name = "wide",
		      .dtype = DT_f64,
		      .rank = 1,
		      .dim = five,
		      .data = wide,
		      .bytes = sizeof wide}};
	ConstId id[] = {ir_const(ir, c[0]), ir_const(ir, c[1])};
	Program *p = ARENA_NEW(ctx->arena, Program);
	*p = (Program){.ir = ir};
	Sym n[] = {sym_int(ir->syms, 18), sym_int(ir->syms, 1200), sym_int(ir->syms, 64)};
	ProgramConst layed = {.name = "big",
			      .source = id[0],
			      .dtype = DT_f32,
			      .offset = 64,
			      .bytes = 4 * 18 * 1200 * 64};
	layed.layout = (Layout){.n = 3,
				.dim = {{.axis = 0, .divisor = 64, .extent = n[0], .padded = n[0]},
					{.axis = 1, .divisor = 1, .extent = n[1], .padded = n[1]},
					{.axis = 0, .divisor = 1, .extent = n[2], .padded = n[2]}}};
	uint64_t next = 64 + layed.bytes + 128;
	array_push(ctx->arena, &p->constant,
		   ((ProgramConst){.name = "wide",
				   .source = id[1],
				   .dtype = DT_f32,
				   .offset = next,
				   .bytes = 64}));
	array_push(ctx->arena, &p->constant, layed);
	p->weight_bytes = next + 64;
	return p;
}

static void test_jobs(void **state)
{
	(void)state;
	Ctx *ctx = ctx_new();
	Program *p = program_of(ctx);
	char path[] = "/tmp/weft-pack-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	const SectionNames names = {.symbol = "w", .triple = NULL, .hash = "hash"};
	for (int kind = SECTION_RAW; kind <= SECTION_OBJECT; kind++) {
		long n = 0, first = 0;
		char *want = NULL;
		for (uint32_t jobs = 1; jobs < 6; jobs++) {
			assert_int_equal(section_write(p, (SectionKind)kind, &names, jobs, path),
					 0);
			char *got = contents(path, &n);
			if (want) {
				assert_int_equal(n, first);
				assert_memory_equal(want, got, (size_t)n);
				free(got);
			} else {
				want = got;
				first = n;
			}
		}
		const char *section = want + (kind == SECTION_RAW ? 0 : WEFT_WEIGHT_HEADER);
		const float *big = (const float *)(const void *)(section + 64);
		assert_true(big[64 + 3] == 3 * 1200 + 1);                  /* column 1 of row 3 */
		assert_true(big[(17 * 1200 + 5) * 64 + 11] == 1099 * 1200 + 5); /* the last row */
		assert_true(big[(17 * 1200 + 5) * 64 + 12] == 0);
		const float *small =
			(const float *)(const void *)(section + p->constant.data[0].offset);
		assert_true(small[1] == -2.5f && small[2] == 3e-3f && small[5] == 0);
		if (kind == SECTION_FILE)
			assert_true(((const WeftWeightHeader *)(const void *)want)->checksum ==
				    weft_checksum(section, p->weight_bytes));
		SectionMap *mapped;
		assert_true(section_map(p, 3, &mapped));
		assert_memory_equal(mapped->data, section, p->weight_bytes);
		free(want);
	}
	assert_int_not_equal(section_write(p, SECTION_FILE, &names, 3, "/dev/full"), 0);
	unlink(path);
	ctx_free(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_jobs)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
