/* Legal loop IR computes the bits of what it was made from, whatever an instruction set lacks: each
 * thing that one may have is struck out, and each row of this machine's prelude, for both
 * emitters. */
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

#include "codegen/print/c/emit_priv.h"
#include "codegen/cpu/host.h"
#include "codegen/legal/legalise.h"
#include "driver/artifact/llvm_library.h"
#include "ir/loop/interp/interp.h"

enum { N = 192 * 16, MOST_LANES = 16 };

typedef struct {
	float x[2 * MOST_LANES];
	uint16_t h[2 * MOST_LANES + 2];
	_Alignas(64) float y[N];
	_Alignas(64) uint16_t z[6 * MOST_LANES];
} Data;

typedef struct {
	Ctx *ctx;
	Ir *ir;
	LoopFn *f;
	uint32_t lanes, at; /* where the next vector of y goes */
	uint32_t x, h, y, z;
} Kernel1;

static const Lx none = {0};

/* ---- a kernel of every kind of operation ---- */

static void put(Kernel1 *k, Lx value)
{
	LoopFn *f = k->f;
	LType f32 = {DT_f32, k->lanes};
	if (lx_type(f, value).dtype != DT_f32)
		value = lx_sc(f, SC_convert, f32, &value, 1);
	ls_store(f, lmem_buf(k->y, DT_f32), lx_int(f, k->at), lx_splat(f, value, k->lanes), none);
	k->at += k->lanes;
}

static void put_op(Kernel1 *k, ScOp op, DType d, Lx a, Lx b, Lx c, uint32_t nin)
{
	bool compare = op >= SC_eq && op <= SC_ge;
	LoopFn *f = k->f;
	Lx x = lx_sc(f, op, (LType){compare ? DT_bool : d, k->lanes}, (Lx[]){a, b, c}, nin);
	put(k, compare ? lx_select(f, x, a, b) : x);
}

static void put_float(Kernel1 *k, DType d, Lx a, Lx b)
{
	static const ScOp one[] = {SC_abs, SC_floor, SC_ceil, SC_trunc, SC_rint, SC_neg};
	static const ScOp two[] = {SC_add, SC_mul, SC_div, SC_min, SC_max, SC_eq,
				   SC_ne,  SC_lt,  SC_le,  SC_gt,  SC_ge};
	LoopFn *f = k->f;
	LType t = {d, k->lanes};
	for (uint32_t i = 0; i < sizeof one / sizeof *one; i++)
		put_op(k, one[i], d, a, none, none, 1);
	for (uint32_t i = 0; i < sizeof two / sizeof *two; i++)
		put_op(k, two[i], d, a, b, none, 2);
	Lx positive = lx_sc(f, SC_abs, t, &a, 1);
	put_op(k, SC_sqrt, d, positive, none, none, 1);
	put_op(k, SC_fma, d, a, b, b, 3);
	put_op(k, SC_min, d, a, lx_float(f, t, 0), none, 2);
	put_op(k, SC_max, d, a, lx_float(f, t, 1.5), none, 2);
	put_op(k, SC_max, d, lx_float(f, t, -1), a, none, 2);
	put(k, lx_sc(f, SC_convert, (LType){DT_i32, k->lanes}, &a, 1));
	Lx wide = lx_sc(f, SC_convert, (LType){DT_i64, k->lanes}, &a, 1);
	put_op(k, SC_min, DT_i64, wide, lx_int_of(f, (LType){DT_i64, k->lanes}, 3), none, 2);
	Lx sum = lx_hreduce(f, SC_add, a), least = lx_hreduce(f, SC_min, b);
	put(k, lx_sc(f, SC_convert, (LType){DT_f32, 1}, &sum, 1));
	put(k, lx_sc(f, SC_convert, (LType){DT_f32, 1}, &least, 1));
}

/* Divisors and counts of all kinds: 0, -1, the width and beyond. */
static void put_int(Kernel1 *k, DType d, Lx a, Lx b)
{
	static const int64_t some[] = {0, -1, 3, 40};
	LoopFn *f = k->f;
	LType t = {d, k->lanes};
	Lx few = lx_sc(f, SC_rem, t, (Lx[]){b, lx_int_of(f, t, 41)}, 2);
	put(k, lx_sc(f, SC_rem, t,
		     (Lx[]){lx_sc(f, SC_floordiv, t, (Lx[]){a, few}, 2), lx_int_of(f, t, 100)}, 2));
	put_op(k, SC_rem, d, few, lx_sc(f, SC_rem, t, (Lx[]){a, lx_int_of(f, t, 7)}, 2), none, 2);
	put_op(k, SC_shl, d, lx_int_of(f, t, 1), few, none, 2);
	put_op(k, SC_shr, d, a, few, none, 2);
	for (uint32_t i = 0; i < 4; i++) {
		Lx c = lx_int_of(f, t, some[i]);
		put_op(k, SC_floordiv, d, few, c, none, 2);
		put_op(k, SC_rem, d, few, c, none, 2);
		put_op(k, SC_shl, d, few, c, none, 2);
		put_op(k, SC_shr, d, few, c, none, 2);
	}
}

static void put_memory(Kernel1 *k, Lx a, Lx b)
{
	LoopFn *f = k->f;
	LMem x = lmem_buf(k->x, DT_f32), h = lmem_buf(k->h, DT_f16), y = lmem_buf(k->y, DT_f32);
	int64_t lanes = k->lanes;
	Lx tail = lx_mask(f, lx_int(f, 3), k->lanes), zero = lx_int(f, 0);
	LType f32 = {DT_f32, k->lanes};
	Lx back = lx_ramp(f, zero, lx_int(f, -1), k->lanes),
	   even = lx_ramp(f, zero, lx_int(f, 2), k->lanes);
	put(k, lx_var(f, ls_gather(f, "r", x, lx_int(f, lanes - 1), back, DT_f32, none)));
	put(k, lx_var(f, ls_gather(f, "e", x, zero, even, DT_f32, none)));
	LMem gaps =
		ls_local(f, "gaps", DT_f32,
			 (uint64_t)(2 * lanes)); /* what nobody has written in it, nobody reads */
	ls_scatter(f, gaps, zero, even, b, none);
	put(k, lx_var(f, ls_gather(f, "s", gaps, zero, even, DT_f32, none)));
	put(k, lx_var(f, ls_gather(f, "g", x, zero, lx_ramp(f, zero, lx_int(f, 1), k->lanes),
				   DT_f32, tail)));
	put(k, lx_var(f, ls_load(f, "m", x, zero, f32, tail)));
	put(k, lx_var(f, ls_load(f, "h", h, zero, f32, none)));
	put(k, lx_splat(f, lx_var(f, ls_load(f, "one", h, lx_int(f, 1), (LType){DT_f32, 1}, none)),
			k->lanes));
	ls_store(f, y, lx_int(f, k->at), b, none);
	ls_store(f, y, lx_int(f, k->at), a, tail);
	k->at += k->lanes;
	ls_stream(f, y, lx_int(f, k->at), a); /* at a multiple of the register, and not */
	k->at += k->lanes;
	put(k, a);
	put(k, a);
	ls_stream(f, y, lx_int(f, k->at - 2 * lanes + 1), b);
	ls_fence(f);
	static const DType storage[] = {DT_f16, DT_bf16, DT_f8e4m3, DT_f8e5m2, DT_f8e4m3fnuz,
					 DT_f8e5m2fnuz};
	for (int64_t i = 0; i < 6; i++) {
		LMem z = lmem_buf(k->z, storage[i]);
		ls_store(f, z, lx_int(f, i * lanes * 2 / dtype_size(storage[i])), a, none);
		put(k,
		    lx_var(f, ls_load(f, "z", z, lx_int(f, i * lanes * 2 / dtype_size(storage[i])),
				      f32, none)));
	}
}

static void put_dots(Kernel1 *k)
{
	LoopFn *f = k->f;
	const LType u32 = {DT_u32, k->lanes}, i32 = {DT_i32, k->lanes};
	LMem h = lmem_buf(k->h, DT_f16);
	Lx a = lx_var(f, ls_load(f, "groups", h, lx_int(f, 1), u32, none)),
	   b = lx_splat(
		   f, lx_var(f, ls_load(f, "one_group", h, lx_int(f, 3), (LType){DT_u32, 1}, none)),
		   k->lanes);
	for (ScOp op = SC_dot2_bf16; op <= SC_dot4_s8s8; op++) {
		const LType t = {sc_dot_acc(op), k->lanes};
		Lx c = lx_sc(f, SC_bitcast, t, &a, 1), x = lx_sc(f, op, t, (Lx[]){a, b, c}, 3);
		put(k, x);
		if (t.dtype == DT_i32)
			put(k, lx_sc(f, SC_and, i32, (Lx[]){x, lx_int_of(f, i32, 0xffff)}, 2));
	}
	a = lx_sc(f, SC_and, u32, (Lx[]){a, lx_int_of(f, u32, 0x0f0f0f0f)}, 2);
	put(k, lx_sc(f, SC_lookup8, u32, (Lx[]){a, b, lx_int_of(f, u32, 0x81c37f05)}, 3));
}

/* Bytes of z that f8 leaves are 0. */
static LoopFn *build(Kernel1 *k)
{
	LoopFn *f = k->f = loop_new(k->ir, "every");
	k->x = loop_buf(f, (LArg){.name = "x", .dtype = DT_f32, .align = 4, .restrict_ok = true});
	k->h = loop_buf(f, (LArg){.name = "h", .dtype = DT_f16, .align = 2, .restrict_ok = true});
	k->y = loop_buf(f, (LArg){.name = "y", .dtype = DT_f32, .align = 4, .restrict_ok = true});
	k->z = loop_buf(f, (LArg){.name = "z", .dtype = DT_u16, .align = 2, .restrict_ok = true});
	k->at = 0;
	LType f32 = {DT_f32, k->lanes}, f64 = {DT_f64, k->lanes}, i32 = {DT_i32, k->lanes};
	LMem x = lmem_buf(k->x, DT_f32);
	loop_enter(f); /* what it begins the task goes on with, and `leave` ends */
	Lv first = ls_load(f, "first", x, lx_int(f, 0), f32, none);
	Lv sum = ls_var(f, "sum", lx_var(f, first));
	LMem kept = ls_local(f, "kept", DT_f32, k->lanes);
	ls_store(f, kept, lx_int(f, 0), lx_var(f, first), none);
	ls_end(f);
	put(k, lx_var(f, ls_load(f, "again", kept, lx_int(f, 0), f32, none)));
	ls_set(f, sum, lx_add(f, lx_var(f, sum), lx_var(f, first)));
	Lx a = lx_var(f, ls_load(f, "a", x, lx_int(f, 0), f32, none));
	Lx b = lx_var(f, ls_load(f, "b", x, lx_int(f, k->lanes), f32, none));
	put_float(k, DT_f32, a, b);
	Lx wa = lx_var(f, ls_let(f, "wa", lx_sc(f, SC_convert, f64, &a, 1)));
	Lx wb = lx_var(f, ls_let(f, "wb", lx_sc(f, SC_convert, f64, &b, 1)));
	put_float(k, DT_f64, wa, wb);
	put_memory(k, a, b);
	put_dots(k);
	put(k, lx_fn(f, scalar_lib("exp", DT_f32), k->lanes, &a, 1));
	put(k, lx_fn(f, scalar_lib("sin", DT_f32), k->lanes, &b, 1)); /* with a slow path */
	Lx ia = lx_sc(f, SC_bitcast, i32, &a, 1), ib = lx_sc(f, SC_bitcast, i32, &b, 1);
	put_op(k, SC_max, DT_i32, ia, ib, none, 2);
	put_op(k, SC_lt, DT_i32, ia, ib, none, 2);
	put_int(k, DT_i32, ia, ib);
	put_int(k, DT_u32, lx_sc(f, SC_bitcast, (LType){DT_u32, k->lanes}, &ia, 1),
		lx_sc(f, SC_bitcast, (LType){DT_u32, k->lanes}, &ib, 1));
	put_int(k, DT_i64, lx_sc(f, SC_convert, (LType){DT_i64, k->lanes}, &ia, 1),
		lx_sc(f, SC_convert, (LType){DT_i64, k->lanes}, &ib, 1));
	Lx less = lx_cmp(f, SC_lt, a, b), more = lx_cmp(f, SC_lt, b, lx_float(f, f32, 1));
	for (ScOp op = SC_eq; op <= SC_ge; op++) /* of masks */
		put(k, lx_select(f, lx_cmp(f, op, less, more), a, b));
	put(k, lx_select(f, lx_sc(f, SC_convert, (LType){DT_bool, k->lanes}, &ia, 1), a, b));
	put(k, lx_select(f, lx_splat(f, lx_any(f, less), k->lanes), a, b));
	loop_leave(f);
	put(k, lx_var(f, sum));
	ls_end(f);
	assert_true(k->at <= N);
	assert_true(loop_verify(f, NULL));
	return f;
}

static void fill(Data *d)
{
	static const float some[] = {0,    -0.0f, 1.5f,  -2.5f, 1e30f, -3e9f, 1e-40f,
				     0.1f, 65519, 7e-6f, -448,  1e5f,  100,   0.5f};
	memset(d, 0, sizeof *d);
	for (uint32_t i = 0; i < 2 * MOST_LANES + 2; i++) {
		d->h[i] = (uint16_t)(i * 2311);
		if ((d->h[i] & 0x7c00) == 0x7c00)
			d->h[i] ^= 0x4000;
	}
	for (uint32_t i = 0; i < 2 * MOST_LANES; i++)
		d->x[i] = some[i * 5 % 14] * (i % 3 ? 1 : -1);
	d->x[3] = __builtin_nanf("");
	d->x[MOST_LANES + 1] = __builtin_nanf("");
}

/* ---- running it ---- */

static ProgramEntry *program_of(Kernel1 *k, LoopFn *f)
{
	Arena *a = k->ctx->arena;
	Program *p = program_new(k->ir, "test");
	ProgramEntry *e = program_entry(p, "run");
	Sym *nx = ARENA_NEW(a, Sym), *nh = ARENA_NEW(a, Sym), *ny = ARENA_NEW(a, Sym),
	    *nz = ARENA_NEW(a, Sym);
	*nx = sym_int(k->ir->syms, 2 * MOST_LANES);
	*nh = sym_int(k->ir->syms, 2 * MOST_LANES + 2);
	*ny = sym_int(k->ir->syms, k->at);
	*nz = sym_int(k->ir->syms, 4 * MOST_LANES);
	array_push(a, &e->input,
		   (ProgramTensor){.name = "x", .dtype = DT_f32, .rank = 1, .dim = nx});
	array_push(a, &e->input,
		   (ProgramTensor){.name = "h", .dtype = DT_f16, .rank = 1, .dim = nh});
	array_push(a, &e->output,
		   (ProgramTensor){.name = "y", .dtype = DT_f32, .rank = 1, .dim = ny});
	array_push(a, &e->input,
		   (ProgramTensor){.name = "unused", .dtype = DT_f32, .rank = 1, .dim = nz});
	array_push(a, &p->fn, f);
	e->sizes = loop_new(k->ir, "sizes");
	e->run = loop_new(k->ir, "run");
	LoopFn *r = e->run;
	const Cost *one = cost_number(a, 1);
	Lx arg[4] = {lx_addr(r, 0, lx_int(r, 0)), lx_addr(r, 1, lx_int(r, 0)),
		     lx_addr(r, 3, lx_int(r, 0)), lx_addr(r, 5, lx_int(r, 0))};
	program_add_call(
		e,
		&(ProgramCall){.fn = 0, .name = "call", .algorithm = "", .cost = {one, one, one}});
	ls_launch(r, 0, lx_int(r, 1), arg, 4, 4);
	return e;
}

static void interpret(Kernel1 *k, LoopFn *f, Data *d)
{
	ProgramEntry *e = program_of(k, f);
	int64_t slot[] = {k->at, sizeof d->z};
	float unused[4 * MOST_LANES];
	void *buf[] = {d->x, d->h, unused, d->y, NULL, d->z, NULL};
	LoopReport report = {0};
	Arena *mine = arena_new(&k->ctx->unwind);
	LoopOutcome got = loop_interp_run(e, mine, buf, slot, &report);
	if (got != LOOP_DONE)
		fail_msg("%s", report.message);
	arena_free(mine);
}

static bool same_bits(const Data *a, const Data *b, uint32_t n, uint32_t *at)
{
	for (*at = 0; *at < n; ++*at) {
		float x = a->y[*at], y = b->y[*at];
		if (memcmp(&x, &y, sizeof x) && (x == x || y == y))
			return false;
	}
	return !memcmp(a->z, b->z, sizeof a->z);
}

static void begin(Kernel1 *k, uint32_t lanes)
{
	*k = (Kernel1){.ctx = ctx_new(), .lanes = lanes};
	assert_non_null(k->ctx);
	if (setjmp(k->ctx->unwind)) {
		Text t;
		text_init(&t, k->ctx->arena);
		ctx_print(k->ctx, &t);
		fail_msg("%s", t.data);
	}
	k->ir = ir_new(k->ctx);
}

/* With each bit struck out, and all. */
static void test_lacking(void **state)
{
	(void)state;
	static Data plain, legal;
	for (uint32_t t = 0; target_at(t); t++) {
		uint32_t lanes = target_width(target_at(t)),
			 all = ISA_FMA | ISA_F16 | ISA_GATHER | ISA_LESSER | ISA_CONVERT;
		for (uint32_t strike = 0; lanes > 1 && strike <= all; strike = strike == ISA_CONVERT
										       ? all
									       : strike ? 2 * strike
											: 1) {
			Kernel1 k;
			begin(&k, lanes);
			Isa isa = target_at(t)->isa;
			isa.ops &= ~strike;
			fill(&plain);
			interpret(&k, build(&k), &plain);
			LoopFn *f = build(&k);
			assert_false(loop_verify(f, &isa)); /* it says why, often */
			legalise(f, &isa);
			assert_true(loop_verify(f, &isa));
			fill(&legal);
			interpret(&k, f, &legal);
			uint32_t at;
			if (!same_bits(&plain, &legal, k.at, &at))
				fail_msg("%s without %x: vector %u, %a instead of %a", isa.name,
					 strike, at / lanes, (double)legal.y[at],
					 (double)plain.y[at]);
			ctx_free(k.ctx);
			if (strike == all)
				break;
		}
	}
}

/* ---- rows of the prelude ---- */

typedef struct {
	void *const *buf;
	const int64_t *p;
	int64_t *failure;
} Frame;

static Target without(const Target *t, const PreludeRow *row)
{
	Target other = *t;
	other.isa.without = row;
	return other;
}

static const char *emit_without(Kernel1 *k, const Target *t, const PreludeRow *row)
{
	Target other = without(t, row);
	Text out;
	text_init(&out, k->ctx->arena);
	LoopFn *f = build(k);
	emit_c_kernel(f, &other, &out);
	return out.data;
}

/* By LLVM: IR or assembly, of the kernel only. */
static const char *llvm_without(Kernel1 *k, const LlvmBackend *llvm, const Target *t,
				const PreludeRow *row, LlvmKind kind)
{
	Target other = without(t, row);
	EmitOptions o = {.version = "", .source_hash = "", .compiler = ""};
	LlvmFiles files = {0};
	LoopFn *f = build(k);
	legalise(f, &other.isa);
	assert_true(loop_verify(f, &other.isa));
	assert_true(llvm->emit(program_of(k, f)->program, &other, &o, kind, 1, &files));
	for (uint32_t i = 0; i < files.file.n; i++)
		if (!strncmp(files.file.data[i].name, "kernels_0", 9))
			return arena_strndup(k->ctx->arena, files.file.data[i].data,
					     files.file.data[i].n);
	fail_msg("no kernel");
	return NULL;
}

/* Texts that striking rows changes, and the row. */
enum { MOST = 128 };
typedef struct {
	const char *text[MOST];
	const PreludeRow *row[MOST];
	uint32_t n;
} Struck;

static void add(Struck *s, const char *text, const PreludeRow *row)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (strcmp(s->text[i], text) == 0)
			return;
	assert_true(s->n < MOST);
	s->row[s->n] = row;
	s->text[s->n++] = text;
}

/* Compile these texts, two at a time, to one library each. */
static void compile_all(const Target *t, const char *dir, const char *ext, uint32_t n)
{
	char cmd[2048];
	snprintf(cmd, sizeof cmd,
		 "cd %s && seq 0 %u | xargs -P 2 -I K cc %s %s -w -fPIC -shared -o K.so K.%s -lm",
		 dir, n - 1, *ext == 'c' ? t->isa.flags : "",
		 *ext == 'c' ? "-std=gnu11 -O0 -Wno-psabi -ffp-contract=off -fno-math-errno" : "",
		 ext);
	if (system(cmd) != 0)
		fail_msg("failed: %s", cmd);
}

static void write_text(const char *dir, uint32_t k, const char *ext, const char *text)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%u.%s", dir, k, ext);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void run_library(const char *dir, uint32_t k, const char *name, Data *d)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%u.so", dir, k);
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		fail_msg("%s", dlerror());
	int (*fn)(const Frame *, int64_t, int64_t);
	*(void **)&fn = dlsym(lib, name);
	assert_non_null(fn);
	void *buf[] = {d->x, d->h, d->y, d->z};
	assert_int_equal(fn(&(Frame){buf, NULL, NULL}, 0, 1), 0);
	dlclose(lib);
}

/* Each is compiled and run, and has the bits of the interpreter. */
static void compare_all(Kernel1 *k, const Target *t, const Struck *s, const char *ext,
			const char *name)
{
	static Data plain, got;
	const char *tmp = getenv("TMPDIR");
	char dir[256], cmd[512];
	fill(&plain);
	interpret(k, build(k), &plain);
	snprintf(dir, sizeof dir, "%s/weft-legal-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(dir));
	for (uint32_t i = 0; i < s->n; i++)
		write_text(dir, i, ext, s->text[i]);
	compile_all(t, dir, ext, s->n);
	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t at;
		fill(&got);
		run_library(dir, i, name, &got);
		if (!same_bits(&plain, &got, k->at, &at))
			fail_msg("%s, %s without row %s: vector %u, %a instead of %a", t->isa.name,
				 ext, s->row[i] ? s->row[i]->op : "-", at / k->lanes,
				 (double)got.y[at], (double)plain.y[at]);
	}
	print_message("%u rows struck out\n", s->n - 1);
	snprintf(cmd, sizeof cmd, "rm -r %s", dir);
	assert_int_equal(system(cmd), 0);
}

static void test_rows_c(void **state)
{
	(void)state;
	const Target *t = target_native();
	static Struck s;
	Kernel1 k;
	if (target_width(t) == 1)
		skip();
	begin(&k, target_width(t));
	add(&s, emit_without(&k, t, NULL), NULL);
	for (const PreludeRow *r = prelude_rows(&t->isa); r->op; r++)
		add(&s, emit_without(&k, t, r), r);
	compare_all(&k, t, &s, "c", "every");
	assert_true(s.n > 20);
	ctx_free(k.ctx);
}

/* LLVM chooses instructions itself: only what is missing altogether changes its text. */
static void test_rows_llvm(void **state)
{
	(void)state;
	const Target *t = target_native();
	static Struck ir, code;
	Kernel1 k;
	begin(&k, target_width(t));
	const LlvmBackend *llvm = target_width(t) > 1 ? llvm_backend(k.ctx, NULL) : NULL;
	if (!llvm)
		skip();
	add(&ir, llvm_without(&k, llvm, t, NULL, LLVM_TEXT), NULL);
	for (const PreludeRow *r = prelude_rows(&t->isa); r->op; r++)
		add(&ir, llvm_without(&k, llvm, t, r, LLVM_TEXT), r);
	for (uint32_t i = 0; i < ir.n; i++) {
		char *text = (char *)(uintptr_t)llvm_without(&k, llvm, t, ir.row[i], LLVM_ASM);
		for (char *p = text; (p = strstr(p, "\t.hidden\t"));)
			memcpy(p, "\t.globl\t ", 9);
		add(&code, text, ir.row[i]);
	}
	compare_all(&k, t, &code, "s", "k_every");
	ctx_free(k.ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_lacking),
					   cmocka_unit_test(test_rows_c),
					   cmocka_unit_test(test_rows_llvm)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
