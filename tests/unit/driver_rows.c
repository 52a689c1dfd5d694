/* Dot products of groups are their definitions (scalar_dot), and so is a look-up of bytes, by the
 * interpreters and by the instructions of every instruction set that this processor has: 10^6
 * random lanes, and all special ones. Prints which rows of the table of micro-kernels were not
 * checked here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <dlfcn.h>

#include "codegen/cpu/host.h"
#include "codegen/legal/legalise.h"
#include "codegen/print/c/emit_priv.h"
#include "ir/scalar/priv.h"
#include "ir/target/micro.h"
#include "runtime/runtime.h"

enum { RANDOM = 1 << 20, LANES = 16 /* the most of a target */ };

/* Elements of groups, of 16 bits: zeros, tiny, ordinary and large numbers of bf16, infinities, NaN;
 * the ends of ranges of integers. */
static const uint16_t half[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x0080, 0x8080,
				0x00ff, 0x3f80, 0xbf80, 0x3f81, 0x7f7f, 0xff7f, 0x7f80,
				0xff80, 0x7fc0, 0x7f81, 0x2000, 0xa000, 0x1fff, 0x7fff,
				0x80ff, 0x5f00, 0x0200, 0x807f, 0xff01};
static const uint32_t sum[] = {0,          0x80000000, 1,          0x80000001, 0x007fffff,
			       0x00800000, 0x80800000, 0x3f800000, 0xbf800000, 0x7f7fffff,
			       0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x7fffffff,
			       0xffffffff, 0x00c00000, 0x00800001};
enum { HALVES = sizeof half / sizeof *half, SUMS = sizeof sum / sizeof *sum };
enum {
	SPECIAL = HALVES * HALVES * HALVES * HALVES,
	N = (RANDOM + SPECIAL + LANES - 1) / LANES * LANES
};

typedef struct {
	uint32_t *a, *b, *c, *want, *got;
} Data;

static uint64_t rng(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static uint32_t group(const uint32_t low, const uint32_t high)
{
	return (uint32_t)half[low] | (uint32_t)half[high] << 16;
}

static Data data_new(void)
{
	uint64_t s = 88172645463325252u;
	Data d;
	uint32_t **all[] = {&d.a, &d.b, &d.c, &d.want, &d.got};
	for (uint32_t k = 0; k < 5; k++)
		assert_non_null(*all[k] = calloc(N, sizeof(uint32_t)));
	for (uint32_t i = 0; i < RANDOM; i++) {
		const uint64_t x = rng(&s), y = rng(&s);
		d.a[i] = (uint32_t)x;
		d.b[i] = (uint32_t)(x >> 32);
		d.c[i] = (uint32_t)y;
		if (i % 2) { /* of bf16: sums of about the size of products */
			d.a[i] = (d.a[i] & 0x87ff87ff) | 0x38003800;
			d.b[i] = (d.b[i] & 0x87ff87ff) | 0x38003800;
			d.c[i] = (d.c[i] & 0x87ffffff) | 0x38000000;
		} else if (i % 4 == 0) { /* tiny products */
			d.a[i] = (d.a[i] & 0x83ff83ff) | 0x20002000;
			d.b[i] = (d.b[i] & 0x80ff80ff) | 0x1f801f80;
			d.c[i] = d.c[i] & 0x80ffffff;
		}
	}
	for (uint32_t i = RANDOM, k = 0; k < SPECIAL; i++, k++) {
		d.a[i] = group(k % HALVES, k / HALVES % HALVES);
		d.b[i] = group(k / HALVES / HALVES % HALVES, k / HALVES / HALVES / HALVES);
		d.c[i] = sum[(k + k / HALVES) % SUMS];
	}
	return d;
}

static DType result_of(ScOp op)
{
	return op == SC_lookup8 || op == SC_flush_bf16 ? DT_u32 : sc_dot_acc(op);
}

static bool same(ScOp op, uint32_t x, uint32_t y)
{
	const bool nan = (x & 0x7fffffff) > 0x7f800000 && (y & 0x7fffffff) > 0x7f800000;
	return x == y || (result_of(op) == DT_f32 && nan);
}

static void compare(ScOp op, const char *who, const Data *d)
{
	for (uint32_t i = 0; i < N; i++)
		if (!same(op, d->want[i], d->got[i]))
			fail_msg("%s of %s: %08x . %08x + %08x gives %08x, expected %08x",
				 sc_name(op), who, d->a[i], d->b[i], d->c[i], d->got[i],
				 d->want[i]);
}

/* Applies flush_bf16 to c, by its text, or as an instruction (by_step). */
static void flush(const Data *d, uint32_t *to, bool by_step)
{
	const ScIns ins = {.op = SC_flush_bf16, .dtype = DT_u16};
	uint16_t *bits = calloc(N, sizeof *bits);
	assert_non_null(bits);
	if (by_step)
		scalar_step(&ins, DT_f32, bits, (const void *[]){d->c}, N);
	else
		scalar_apply(scalar_lib("flush_bf16", DT_f32), (const void *[]){d->c}, bits, N);
	for (uint32_t i = 0; i < N; i++)
		to[i] = bits[i];
	free(bits);
}

/* By the text. */
static void define(ScOp op, Data *d)
{
	if (op == SC_flush_bf16) {
		flush(d, d->want, false);
		return;
	}
	const ScFn *fn = op == SC_lookup8 ? scalar_lib(sc_name(op), DT_u32) : scalar_dot(op);
	assert_non_null(fn);
	scalar_apply(fn, (const void *[]){d->a, d->b, d->c}, d->want, N);
}

static void interpret(ScOp op, Data *d)
{
	const ScIns ins = {.op = op, .dtype = result_of(op)};
	if (op == SC_flush_bf16)
		flush(d, d->got, true);
	else
		scalar_step(&ins, DT_u32, d->got, (const void *[]){d->a, d->b, d->c}, N);
	compare(op, "the interpreter", d);
}

/* Task t computes one vector. */
static LoopFn *build(Ir *ir, ScOp op, uint32_t lanes)
{
	const Lx none = {0};
	const DType acc = result_of(op);
	LoopFn *f = loop_new(ir, "dots");
	uint32_t buf[4];
	static const char *const name[] = {"a", "b", "c", "d"};
	for (uint32_t k = 0; k < 4; k++)
		buf[k] = loop_buf(f, (LArg){.name = name[k],
					    .dtype = k < 2 ? DT_u32 : acc,
					    .align = 4,
					    .restrict_ok = true});
	Lx in[3], at = lx_mul(f, lx_var(f, f->task), lx_int(f, lanes));
	for (uint32_t k = 0; k < 3; k++) {
		const DType t = k < 2 ? DT_u32 : acc;
		const uint32_t n = op == SC_lookup8 && k ? 1 : lanes;
		in[k] = lx_var(f,
			       ls_load(f, name[k], lmem_buf(buf[k], t), at, (LType){t, n}, none));
	}
	Lx y;
	if (op == SC_flush_bf16) {
		y = lx_sc(f, SC_bitcast, (LType){DT_f32, lanes}, &in[2], 1);
		y = lx_sc(f, op, (LType){DT_u16, lanes}, &y, 1);
		y = lx_sc(f, SC_convert, (LType){acc, lanes}, &y, 1);
	} else {
		y = lx_sc(f, op, (LType){acc, lanes}, in, 3);
	}
	ls_store(f, lmem_buf(buf[3], acc), at, y, none);
	assert_true(loop_verify(f, NULL));
	return f;
}

typedef struct {
	void *const *buf;
	const int64_t *p;
	int64_t *failure;
} Frame;

static void run(const char *path, uint32_t lanes, Data *d)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		fail_msg("%s", dlerror());
	int (*fn)(const Frame *, int64_t, int64_t);
	*(void **)&fn = dlsym(lib, "dots");
	assert_non_null(fn);
	void *buf[] = {d->a, d->b, d->c, d->got};
	assert_int_equal(fn(&(Frame){buf, NULL, NULL}, 0, N / lanes), 0);
	dlclose(lib);
}

/* By C code for the target. */
static void compile(ScOp op, const Target *t, Data *d)
{
	const char *tmp = getenv("TMPDIR");
	char dir[256], path[300], cmd[2048];
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	if (setjmp(ctx->unwind)) {
		Text why;
		text_init(&why, ctx->arena);
		ctx_print(ctx, &why);
		fail_msg("%s", why.data);
	}
	Text out;
	text_init(&out, ctx->arena);
	emit_c_kernel(build(ir_new(ctx), op, target_width(t)), t, &out);
	snprintf(dir, sizeof dir, "%s/weft-rows-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/dots.c", dir);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(out.data, file);
	assert_int_equal(fclose(file), 0);
	snprintf(cmd, sizeof cmd,
		 "cc %s -std=gnu11 -O1 -w -Wno-psabi -ffp-contract=off -fno-math-errno -fPIC "
		 "-shared -o %s/dots.so %s -lm",
		 t->isa.flags, dir, path);
	if (system(cmd) != 0)
		fail_msg("failed: %s", cmd);
	snprintf(path, sizeof path, "%s/dots.so", dir);
	memset(d->got, 0, N * sizeof *d->got);
	run(path, target_width(t), d);
	compare(op, t->isa.name, d);
	snprintf(cmd, sizeof cmd, "rm -r %s", dir);
	assert_int_equal(system(cmd), 0);
	ctx_free(ctx);
}

/* Instruction sets that have the operation as a row of their own, or make it of what they have. */
static const char *const sets[] = {"x86-64-v2",         "x86-64-v3",      "x86-64-v3+vnni",
				   "x86-64-v4",         "x86-64-v4+vnni", "x86-64-v4+bf16",
				   "aarch64-linux-gnu", "generic-c"};

static bool is_checked(const Target *t, uint32_t bits)
{
	return target_runs_here(t) && t->isa.ops & bits;
}

static void test_operation(ScOp op, Data *d)
{
	define(op, d);
	interpret(op, d);
	for (uint32_t k = 0; k < sizeof sets / sizeof *sets; k++) {
		const Target *t = target_find(sets[k]);
		assert_non_null(t);
		if (target_runs_here(t) && target_width(t) > 1)
			compile(op, t, d);
	}
}

static void data_free(Data *d)
{
	uint32_t **all[] = {&d->a, &d->b, &d->c, &d->want, &d->got};
	for (uint32_t k = 0; k < 5; k++)
		free(*all[k]);
}

static void test_dots(void **state)
{
	(void)state;
	Data d = data_new();
	for (ScOp op = SC_dot2_bf16; op <= SC_dot4_s8s8; op++)
		test_operation(op, &d);
	data_free(&d);
}

/* Checks look-ups by indices of 4 bits, in tables that the lanes of all vectors share. */
static void test_lookup(void **state)
{
	(void)state;
	Data d = data_new();
	for (uint32_t i = 0; i < N; i++) {
		d.a[i] &= 0x0f0f0f0f;
		d.b[i] = d.b[i / LANES * LANES];
		d.c[i] = d.c[i / LANES * LANES];
	}
	test_operation(SC_lookup8, &d);
	data_free(&d);
}

/* Checks rounding to bf16 of numbers, NaN, infinities, and what is below the normal numbers. */
static void test_flush(void **state)
{
	(void)state;
	Data d = data_new();
	for (uint32_t i = 0; i < N; i += 3) /* around the smallest normal number */
		d.c[i] = (d.c[i] & 0x81ffffff) | (i % 2 ? 0x00700000 : 0);
	test_operation(SC_flush_bf16, &d);
	data_free(&d);
}

/* Panels of a family have one form, so the rows of one group and dtype can read the same. */
static void test_table(void **state)
{
	(void)state;
	for (uint32_t k = 0; micro_at(k); k++) {
		const MicroKernel *m = micro_at(k);
		assert_true(m->group == 1 || m->group * dtype_size(m->a) == dtype_size(m->acc));
		assert_true(m->group == 1 || m->nfrag || sc_is_dot(m->op) || m->op == SC_fma);
		bool checked = !m->needs;
		for (uint32_t s = 0; !checked && s < sizeof sets / sizeof *sets; s++)
			checked = is_checked(target_find(sets[s]), m->needs);
		if (!checked)
			print_message("%s: not checked here\n", m->name);
	}
	const Isa *v4 = &target_find("x86-64-v4+bf16")->isa;
	assert_string_equal(micro_row(v4, DT_bf16, DT_bf16, DT_f32, 0)->name, "dot2 bf16");
	assert_string_equal(micro_row(v4, DT_bf16, DT_bf16, DT_f32, 1)->name, "fma bf16");
	assert_string_equal(micro_row(v4, DT_bf16, DT_bf16, DT_f32, 2)->name, "fma f32");
	assert_null(micro_row(v4, DT_bf16, DT_bf16, DT_f32, 3));
	assert_string_equal(micro_row(v4, DT_bf16, DT_f32, DT_f32, 0)->name, "fma f32");
	assert_null(micro_row(v4, DT_f16, DT_f16, DT_f16, 0));
}

/* ---- the machine of this processor ---- */

static const char *given; /* features of a processor that is made up */

static bool has_given(const char *features)
{
	char word[32];
	for (int n; sscanf(features, "%31s%n", word, &n) == 1; features += n)
		if (!strstr(given, word))
			return false;
	return true;
}

static void check_machine(const char *vendor, uint32_t family, const char *features,
			  const char *machine)
{
	given = features;
	const Machine *m = machine_like(vendor, family, has_given);
	assert_string_equal(m ? m->name : "none", machine);
}

static void test_machines(void **state)
{
	(void)state;
	const char *const avx2 = "sse4.2 avx2 fma",
			  *const avx512 = "sse4.2 avx2 fma avx512f avx512vnni avx512bf16";
	check_machine("AuthenticAMD", 0x17, avx2, "zen3");
	check_machine("AuthenticAMD", 0x19, avx2, "zen3");
	check_machine("AuthenticAMD", 0x19, avx512, "zen4");
	check_machine("AuthenticAMD", 0x1a, avx512, "zen5");
	check_machine("GenuineIntel", 6, avx512, "sapphire-rapids");
	check_machine("GenuineIntel", 6, "sse4.2 avx2 avx512f", "skylake-x");
	check_machine("GenuineIntel", 6, avx2, "haswell");
	check_machine("GenuineIntel", 6, "sse4.2", "nehalem");
	check_machine("", 0, "", "none");
}

static bool has_here(const char *features)
{
	char missing[32];
	return !weft_cpu_lacks(features, missing);
}

/* The system knows vendor and family, too. */
static void test_native_machine(void **state)
{
	(void)state;
	const Target *t = target_native();
	char line[256], vendor[32] = "";
	uint32_t family = 0;
	FILE *f = fopen("/proc/cpuinfo", "r");
	while (f && fgets(line, sizeof line, f) && !family)
		if (sscanf(line, "vendor_id : %31s", vendor) != 1)
			(void)sscanf(line, "cpu family : %u", &family);
	if (f)
		fclose(f);
	assert_string_equal(t->machine.family, t->isa.family);
	if (!family)
		skip();
	const Machine *m = machine_like(vendor, family, has_here);
	assert_string_equal(t->machine.name, m ? m->name : target_find(t->isa.name)->machine.name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dots),     cmocka_unit_test(test_lookup),
		cmocka_unit_test(test_flush),    cmocka_unit_test(test_table),
		cmocka_unit_test(test_machines), cmocka_unit_test(test_native_machine)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
