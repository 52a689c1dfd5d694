/* Fragments: a kernel that multiplies matrices by them has the same bits by the definition
 * (frag_dot), by the interpreter of loop IR, legalised for every target, and compiled by both
 * emitters, with the instructions struck out and, on a processor that has them, with them. There
 * 10^6 lanes of random and special operands are compared with the definition. */
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
#include "driver/artifact/llvm_library.h"
#include "ir/loop/interp/interp.h"
#include "ir/loop/prelude.h"
#include "runtime/runtime.h"

/* A product of M x K and K x N per task, by fragments of at most the row's shape. */
typedef struct {
	FragOp op;
	uint32_t m, n, k; /* of the fragments */
	uint32_t steps;   /* of k, one behind the other */
} Shape;

enum { TASKS = 5, MOST_TASKS = 4096, GAP = 3 /* elements behind a row of a, which are NaN */ };

typedef struct {
	Ctx *ctx;
	Ir *ir;
	Shape s;
	uint32_t tasks;
	size_t a_bytes, b_bytes, c_bytes; /* of a task */
	char *a, *b, *c;
} Case;

static const Lx none = {0};

/* x86-64-v4, with the instructions or without; of processors without it what they have. */
static Target tiles_target(bool tiles)
{
	Target t = *target_native();
	t.isa.ops &= ~(uint32_t)(ISA_TILE_BF16 | ISA_TILE_INT8);
	if (!tiles)
		return t;
	t = *target_find("x86-64-v4");
	t.isa.ops |= ISA_TILE_BF16 | ISA_TILE_INT8;
	t.isa.flags = "-march=x86-64-v4 -mprefer-vector-width=512 -mamx-tile -mamx-bf16 -mamx-int8";
	t.isa.attributes = "-prefer-256-bit,+amx-tile,+amx-bf16,+amx-int8";
	return t;
}

static bool tiles_here(void)
{
	char missing[32];
	return target_runs_here(target_find("x86-64-v4")) &&
	       !weft_cpu_lacks("amxtile amxbf16 amxint8", missing);
}

static void begin(Case *k, Shape s, uint32_t tasks)
{
	const FragRow *r = frag_row(s.op);
	*k = (Case){.ctx = ctx_new(), .s = s, .tasks = tasks};
	assert_non_null(k->ctx);
	if (setjmp(k->ctx->unwind)) {
		Text t;
		text_init(&t, k->ctx->arena);
		ctx_print(k->ctx, &t);
		fail_msg("%s", t.data);
	}
	k->ir = ir_new(k->ctx);
	k->a_bytes = (size_t)s.m * (s.k * s.steps + GAP) * dtype_size(r->a);
	k->b_bytes = (size_t)s.k * s.steps * s.n * dtype_size(r->b);
	k->c_bytes = (size_t)s.m * s.n * 4;
	k->a = calloc(tasks, k->a_bytes);
	k->b = calloc(tasks, k->b_bytes);
	k->c = calloc(tasks, k->c_bytes);
	assert_true(k->a && k->b && k->c);
}

static void end(Case *k)
{
	free(k->a);
	free(k->b);
	free(k->c);
	ctx_free(k->ctx);
}

/* ---- data ---- */

static uint64_t seed;

static uint32_t draw(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 16);
}

/* Of task t: all bits, numbers near 1, products near the smallest normal number, subnormal
 * numbers, special ones. */
static uint16_t draw_bf16(uint32_t kind)
{
	static const uint16_t some[] = {0,      0x8000, 0x3f80, 0xbf80, 0x7f80, 0xff80, 0x7fc0,
					0xffc1, 1,      0x8001, 0x7f,   0x80,   0x7f7f, 0x3f81};
	static const uint16_t first[] = {0, 120, 60, 0}, range[] = {0, 16, 10, 5};
	if (kind == 0 || kind > 3)
		return kind ? some[draw() % (sizeof some / sizeof *some)] : (uint16_t)draw();
	return (uint16_t)((draw() & 0x807f) | (first[kind] + draw() % range[kind]) << 7);
}

static uint32_t draw_f32(uint32_t kind)
{
	static const uint32_t some[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
					0xff800000, 0x7fc00000, 1,          0x807fffff, 0x800000};
	if (kind == 0 || kind > 3)
		return kind ? some[draw() % (sizeof some / sizeof *some)] : draw();
	return (draw() & 0x807fffff) | ((kind == 1 ? 120 : 0) + draw() % 4) << 23;
}

static void fill(Case *k)
{
	const bool bf16 = k->s.op == FRAG_TILE_BF16;
	const size_t row = k->s.k * k->s.steps + GAP;
	seed = 88172645463325252u;
	for (uint32_t t = 0; t < k->tasks; t++) {
		uint16_t *a = (uint16_t *)(void *)(k->a + t * k->a_bytes),
			 *b = (uint16_t *)(void *)(k->b + t * k->b_bytes);
		uint32_t *c = (uint32_t *)(void *)(k->c + t * k->c_bytes);
		for (size_t i = 0; bf16 && i < k->a_bytes / 2; i++)
			a[i] = i % row >= row - GAP ? 0x7fc0 : draw_bf16(t % 5);
		for (size_t i = 0; bf16 && i < k->b_bytes / 2; i++)
			b[i] = draw_bf16(t % 5);
		for (size_t i = 0; !bf16 && i < k->a_bytes; i++)
			k->a[t * k->a_bytes + i] = (char)draw();
		for (size_t i = 0; !bf16 && i < k->b_bytes; i++)
			k->b[t * k->b_bytes + i] = (char)draw();
		for (size_t i = 0; i < k->c_bytes / 4; i++)
			c[i] = bf16 ? draw_f32(t % 5) : draw();
	}
	if (bf16 && k->s.k >= 4) { /* below the smallest normal number only if rounded without a
	                              limit of the exponent */
		uint16_t *a = (uint16_t *)(void *)k->a, *b = (uint16_t *)(void *)k->b;
		memset(a, 0, row * 2);
		memset(k->c, 0, 4);
		a[0] = b[0] = 64 << 7;
		a[2] = 0x8000 | 52 << 7 | 0x40;
		b[2 * k->s.n] = 51 << 7;
	}
}

static void define(const Case *k, char *y)
{
	const FragRow *r = frag_row(k->s.op);
	const size_t size = dtype_size(r->a), row = (k->s.k * k->s.steps + GAP) * size;
	char a[FRAG_ROWS * FRAG_ROW_BYTES];
	for (uint32_t t = 0; t < k->tasks; t++) {
		memcpy(y + t * k->c_bytes, k->c + t * k->c_bytes, k->c_bytes);
		for (uint32_t i = 0; i < k->s.steps; i++) {
			for (uint32_t m = 0; m < k->s.m; m++)
				memcpy(a + m * k->s.k * size,
				       k->a + t * k->a_bytes + m * row + i * k->s.k * size,
				       k->s.k * size);
			frag_dot(k->s.op, k->s.m, k->s.n, k->s.k, y + t * k->c_bytes, a,
				 k->b + t * k->b_bytes +
					 (size_t)i * k->s.k * k->s.n * dtype_size(r->b));
		}
	}
}

/* ---- the kernel ---- */

/* The products of c go through a local array, in which one row of another fragment is zero. */
static LoopFn *build(const Case *k)
{
	const FragRow *r = frag_row(k->s.op);
	const int64_t m = k->s.m, n = k->s.n, steps = k->s.k,
		      row = (int64_t)(k->s.k * k->s.steps) + GAP;
	LoopFn *f = loop_new(k->ir, "product");
	LMem a = lmem_buf(
		loop_buf(f, (LArg){.name = "a", .dtype = r->a, .align = 1, .restrict_ok = true}),
		r->a);
	LMem b = lmem_buf(
		loop_buf(f, (LArg){.name = "b", .dtype = r->b, .align = 1, .restrict_ok = true}),
		r->b);
	LMem c = lmem_buf(
		loop_buf(f, (LArg){.name = "c", .dtype = r->acc, .align = 4, .restrict_ok = true}),
		r->acc);
	LMem y = lmem_buf(
		loop_buf(f, (LArg){.name = "y", .dtype = r->acc, .align = 4, .restrict_ok = true}),
		r->acc);
	loop_enter(f);
	Lv acc = ls_frag(f, "acc", r->acc, k->s.m, k->s.n, 2);
	Lv left = ls_frag(f, "left", r->a, k->s.m, k->s.k, 1),
	   right = ls_frag(f, "right", r->b, k->s.k / r->group, k->s.n * r->group, 1);
	ls_end(f);
	Lx task = lx_var(f, f->task), stride_c = lx_int(f, n), stride_b = lx_int(f, n * r->group);
	Lx at_c = lx_mul(f, task, lx_int(f, m * n));
	LMem sums = ls_local(f, "sums", r->acc, (uint64_t)(2 * m * n));
	ls_frag_load(f, lfrag(acc, 1), c, at_c, stride_c);
	ls_frag_zero(f, lfrag(acc, 0));
	Lx i = lx_var(f, ls_for(f, "i", lx_int(f, 0), lx_int(f, k->s.steps), 1));
	Lx at_a = lx_add(f, lx_mul(f, task, lx_int(f, m * row)), lx_mul(f, i, lx_int(f, steps)));
	Lx at_b = lx_mul(f, lx_add(f, lx_mul(f, task, lx_int(f, k->s.steps)), i),
			 lx_int(f, steps * n));
	ls_frag_load(f, lfrag(left, 0), a, at_a, lx_int(f, row));
	ls_frag_load(f, lfrag(right, 0), b, at_b, stride_b);
	ls_frag_dot(f, k->s.op, lfrag(acc, 1), lfrag(left, 0), lfrag(right, 0));
	ls_end(f);
	ls_frag_store(f, sums, lx_int(f, 0), stride_c, lfrag(acc, 0));
	ls_frag_store(f, sums, lx_int(f, m * n), stride_c, lfrag(acc, 1));
	Lx j = lx_var(f, ls_for(f, "j", lx_int(f, 0), lx_int(f, m * n), 1));
	const LType one = {r->acc, 1};
	Lx zero = lx_var(f, ls_load(f, "zero", sums, j, one, none)),
	   sum = lx_var(f, ls_load(f, "sum", sums, lx_add(f, j, lx_int(f, m * n)), one, none));
	ls_store(f, y, lx_add(f, at_c, j),
		 lx_select(f,
			   lx_cmp(f, SC_eq, zero,
				  r->acc == DT_f32 ? lx_float(f, one, 0) : lx_int_of(f, one, 0)),
			   sum, zero),
		 none);
	ls_end(f);
	assert_true(loop_verify(f, NULL));
	Text t;
	text_init(&t, k->ctx->arena);
	loop_print(f, &t, false);
	LoopFn *again = loop_parse(k->ir, t.data);
	assert_non_null(again);
	Text second;
	text_init(&second, k->ctx->arena);
	loop_print(again, &second, false);
	assert_string_equal(t.data, second.data);
	assert_true(loop_verify(again, NULL));
	return f;
}

/* ---- running it ---- */

static Sym *dim(Case *k, size_t n)
{
	Sym *d = ARENA_NEW(k->ctx->arena, Sym);
	*d = sym_int(k->ir->syms, (int64_t)n);
	return d;
}

static ProgramEntry *program_of(Case *k, LoopFn *f)
{
	Arena *a = k->ctx->arena;
	const FragRow *r = frag_row(k->s.op);
	Program *p = program_new(k->ir, "test");
	ProgramEntry *e = program_entry(p, "run");
	array_push(a, &e->input,
		   (ProgramTensor){.name = "a",
				   .dtype = r->a,
				   .rank = 1,
				   .dim = dim(k, k->tasks * k->a_bytes / dtype_size(r->a))});
	array_push(a, &e->input,
		   (ProgramTensor){.name = "b",
				   .dtype = r->b,
				   .rank = 1,
				   .dim = dim(k, k->tasks * k->b_bytes / dtype_size(r->b))});
	array_push(a, &e->input,
		   (ProgramTensor){.name = "c",
				   .dtype = r->acc,
				   .rank = 1,
				   .dim = dim(k, k->tasks * k->c_bytes / 4)});
	array_push(a, &e->output,
		   (ProgramTensor){.name = "y",
				   .dtype = r->acc,
				   .rank = 1,
				   .dim = dim(k, k->tasks * k->c_bytes / 4)});
	array_push(a, &p->fn, f);
	e->sizes = loop_new(k->ir, "sizes");
	e->run = loop_new(k->ir, "run");
	const Cost *one = cost_number(a, 1);
	Lx arg[4];
	for (uint32_t i = 0; i < 4; i++)
		arg[i] = lx_addr(e->run, i, lx_int(e->run, 0));
	program_add_call(
		e,
		&(ProgramCall){.fn = 0, .name = "call", .algorithm = "", .cost = {one, one, one}});
	ls_launch(e->run, 0, lx_int(e->run, k->tasks), arg, 4, 4);
	return e;
}

static void interpret(Case *k, LoopFn *f, char *y)
{
	ProgramEntry *e = program_of(k, f);
	int64_t slot[] = {0, 0, 0, 0};
	void *buf[] = {k->a, k->b, k->c, y, NULL, NULL, NULL};
	LoopReport report = {0};
	Arena *mine = arena_new(&k->ctx->unwind);
	LoopOutcome got = loop_interp_run(e, mine, buf, slot, &report);
	if (got != LOOP_DONE)
		fail_msg("%s", report.message);
	arena_free(mine);
}

static bool is_nan(const char *p)
{
	float x;
	memcpy(&x, p, sizeof x);
	return x != x;
}

static void expect_same(const Case *k, const char *want, const char *got, const char *by)
{
	for (size_t i = 0; i < k->tasks * k->c_bytes; i += 4)
		if (memcmp(want + i, got + i, 4) &&
		    !(k->s.op == FRAG_TILE_BF16 && is_nan(want + i) && is_nan(got + i))) {
			uint32_t x, y;
			memcpy(&x, want + i, 4);
			memcpy(&y, got + i, 4);
			fail_msg("%s by %s: lane %zu of task %zu is %08x, not %08x",
				 frag_row(k->s.op)->name, by, i % k->c_bytes / 4, i / k->c_bytes, y,
				 x);
		}
}

typedef struct {
	void *const *buf;
	const int64_t *p;
	int64_t *failure;
} Frame;

static const Shape shapes[] = {
	{FRAG_TILE_BF16, 16, 16, 32, 2}, {FRAG_TILE_BF16, 5, 16, 32, 1}, {FRAG_TILE_BF16, 16, 3, 6, 3}, {FRAG_TILE_BF16, 1, 1, 2, 1},
	{FRAG_TILE_S8S8, 16, 16, 64, 2}, {FRAG_TILE_S8S8, 7, 9, 12, 2}, {FRAG_TILE_U8S8, 16, 16, 64, 1}, {FRAG_TILE_U8S8, 2, 16, 4, 3},
	{FRAG_TILE_S8U8, 16, 16, 64, 1}, {FRAG_TILE_S8U8, 5, 16, 32, 2},
};
enum { NSHAPE = sizeof shapes / sizeof *shapes };

/* Every target without the instructions, and one that has them. */
static void test_interpreted(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < NSHAPE; i++) {
		Case k;
		begin(&k, shapes[i], TASKS);
		fill(&k);
		char *want = calloc(k.tasks, k.c_bytes), *got = calloc(k.tasks, k.c_bytes);
		define(&k, want);
		interpret(&k, build(&k), got);
		expect_same(&k, want, got, "the interpreter");
		for (uint32_t t = 0; target_at(t); t++) {
			for (uint32_t tiles = 0; tiles < 2; tiles++) {
				Isa isa = target_at(t)->isa;
				isa.ops = tiles ? isa.ops | ISA_TILE_BF16 | ISA_TILE_INT8
						: isa.ops & ~(uint32_t)(ISA_TILE_BF16 |
									ISA_TILE_INT8);
				LoopFn *f = build(&k);
				legalise(f, &isa);
				assert_true(loop_verify(f, &isa));
				assert_int_equal(loop_has_frags(f),
						 tiles && isa_has_frag(&isa, k.s.op));
				memset(got, 0, k.tasks * k.c_bytes);
				interpret(&k, f, got);
				expect_same(&k, want, got, isa.name);
			}
		}
		free(want);
		free(got);
		end(&k);
	}
}

static const char *emit(Case *k, const Target *t, const LlvmBackend *llvm)
{
	Text out;
	text_init(&out, k->ctx->arena);
	LoopFn *f = build(k);
	if (!llvm) {
		emit_c_kernel(f, t, &out);
		return out.data;
	}
	EmitOptions o = {.version = "", .source_hash = "", .compiler = ""};
	LlvmFiles files = {0};
	legalise(f, &t->isa);
	assert_true(loop_verify(f, &t->isa));
	assert_true(llvm->emit(program_of(k, f)->program, t, &o, LLVM_ASM, 1, &files));
	for (uint32_t i = 0; i < files.file.n; i++)
		if (!strncmp(files.file.data[i].name, "kernels_0", 9)) {
			char *text = arena_strndup(k->ctx->arena, files.file.data[i].data,
						   files.file.data[i].n);
			for (char *p = text; (p = strstr(p, "\t.hidden\t"));)
				memcpy(p, "\t.globl\t ", 9);
			return text;
		}
	fail_msg("no kernel");
	return NULL;
}

/* Compiles what an emitter makes and calls it for all tasks, two at a time. */
static void run_compiled(Case *k, const Target *t, const LlvmBackend *llvm, char *y)
{
	const char *tmp = getenv("TMPDIR");
	char dir[256], path[512], cmd[2048];
	snprintf(dir, sizeof dir, "%s/weft-frags-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/k.%s", dir, llvm ? "s" : "c");
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(emit(k, t, llvm), file);
	assert_int_equal(fclose(file), 0);
	snprintf(cmd, sizeof cmd, "cd %s && cc %s %s -w -fPIC -shared -o k.so k.%s -lm", dir,
		 llvm ? "" : t->isa.flags,
		 llvm ? "" : "-std=gnu11 -O1 -Wno-psabi -ffp-contract=off -fno-math-errno",
		 llvm ? "s" : "c");
	if (system(cmd) != 0)
		fail_msg("failed: %s", cmd);
	snprintf(path, sizeof path, "%s/k.so", dir);
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		fail_msg("%s", dlerror());
	int (*fn)(const Frame *, int64_t, int64_t);
	*(void **)&fn = dlsym(lib, llvm ? "k_product" : "product");
	assert_non_null(fn);
	void *buf[] = {k->a, k->b, k->c, y};
	for (int64_t at = 0; at < k->tasks; at += 2)
		assert_int_equal(
			fn(&(Frame){buf, NULL, NULL}, at, at + 2 < k->tasks ? at + 2 : k->tasks),
			0);
	dlclose(lib);
	snprintf(cmd, sizeof cmd, "rm -r %s", dir);
	assert_int_equal(system(cmd), 0);
}

static void compare_compiled(const Target *t, Shape s, uint32_t tasks, const char *by)
{
	Case k;
	begin(&k, s, tasks);
	fill(&k);
	char *want = calloc(k.tasks, k.c_bytes), *got = calloc(k.tasks, k.c_bytes);
	const LlvmBackend *llvm = llvm_backend(k.ctx, NULL);
	define(&k, want);
	run_compiled(&k, t, NULL, got);
	expect_same(&k, want, got, arena_printf(k.ctx->arena, "C, %s", by));
	memset(got, 0, k.tasks * k.c_bytes);
	if (llvm)
		run_compiled(&k, t, llvm, got);
	if (llvm)
		expect_same(&k, want, got, arena_printf(k.ctx->arena, "LLVM, %s", by));
	free(want);
	free(got);
	end(&k);
}

/* Targets of this processor's family that the processor has. */
static void test_expanded(void **state)
{
	(void)state;
	const Target without = tiles_target(false);
	for (uint32_t i = 0; i < NSHAPE; i++)
		compare_compiled(&without, shapes[i], TASKS, "loops");
	compare_compiled(target_find("generic-c"), shapes[1], TASKS, "scalar loops");
}

static void test_instructions(void **state)
{
	(void)state;
	if (!tiles_here()) {
		print_message("not verified here: the processor has no AMX, or the system does not "
			      "permit it\n");
		skip();
	}
	const Target with = tiles_target(true);
	for (uint32_t i = 0; i < NSHAPE; i++)
		compare_compiled(&with, shapes[i], MOST_TASKS, "instructions");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_interpreted),
					   cmocka_unit_test(test_expanded),
					   cmocka_unit_test(test_instructions)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
