/* Blocks of threads in the interpreter of loop IR: kernels written as text, each right, and each
 * fault that is put into one found with the name of its statement. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "block_kernels.h"
#include "ir/loop/interp/interp.h"

/* ---- running ---- */

enum { MOST = 1 << 14 };

static struct {
	Ctx *ctx;
	LoopReport report;
	float in[2][MOST], out[MOST], want[MOST];
	_Alignas(64) float work[3 * MOST];
} it;

static int setup(void **state)
{
	(void)state;
	memset(&it, 0, sizeof it);
	it.ctx = ctx_new();
	if (!it.ctx || setjmp(it.ctx->unwind))
		return -1;
	for (uint32_t k = 0; k < MOST; k++) {
		it.in[0][k] = (float)(k * 7919 % 1009) / 64 - 7;
		it.in[1][k] = (float)(k * 104729 % 997) / 128 - 3;
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ctx_free(it.ctx);
	return 0;
}

/* A launch of one kernel: inputs, one output. All lie in the workspace, whose addresses are aligned
 * to 64 bytes. */
typedef struct {
	const char *text;
	int64_t tasks, param[3];
	uint32_t nin;
	int64_t elements[3]; /* of the inputs, then of the output */
} Launch;

static ProgramTensor tensor(Ir *ir, const char *name, int64_t n)
{
	Sym *dim = ARENA_NEW(ir->ctx->arena, Sym);
	*dim = sym_int(ir->syms, n);
	return (ProgramTensor){.name = name, .dtype = DT_f32, .rank = 1, .dim = dim};
}

static LoopFn *parsed(Ir *ir, const char *text)
{
	LoopFn *f = loop_parse(ir, text);
	Text t;
	if (f)
		return f;
	text_init(&t, it.ctx->arena);
	ctx_print(it.ctx, &t);
	fail_msg("%s", t.data);
	return NULL;
}

static ProgramEntry *program_of(const Launch *l, LoopFn *f)
{
	Ir *ir = f->ir;
	Arena *a = ir->ctx->arena;
	Program *p = program_new(ir, "test");
	ProgramEntry *e = program_entry(p, "run");
	Lx arg[8], zero;
	uint32_t n = 0, work = l->nin + 2;
	ProgramArg *known = ARENA_ARRAY(a, ProgramArg, f->buf.n);
	array_push(a, &p->fn, f);
	(void)program_message(p, "at %lld");
	for (uint32_t k = 0; k < l->nin; k++)
		array_push(a, &e->input, tensor(ir, k ? "x1" : "x0", l->elements[k]));
	array_push(a, &e->output, tensor(ir, "y", l->elements[l->nin]));
	e->sizes = loop_new(ir, "sizes");
	e->run = loop_new(ir, "run");
	zero = lx_int(e->run, 0);
	for (; n < f->buf.n; n++) {
		Sym bytes = sym_int(ir->syms, 4 * l->elements[n]);
		arg[n] = lx_addr(e->run, work, lx_int(e->run, (int64_t)(n * sizeof it.out)));
		known[n] = (ProgramArg){f->buf.data[n].name, bytes, n + 1};
		if (n < l->nin)
			ls_copy(e->run, arg[n], lx_addr(e->run, n, zero),
				lx_int(e->run, 4 * l->elements[n]));
	}
	for (uint32_t k = 0; k < f->param.n; k++)
		arg[n++] = lx_int(e->run, l->param[k]);
	uint32_t call =
		program_add_call(e, &(ProgramCall){.fn = 0, .name = "the call", .arg = known});
	ls_launch(e->run, call, lx_int(e->run, l->tasks), arg, f->buf.n, n);
	ls_copy(e->run, lx_addr(e->run, l->nin, zero), arg[l->nin],
		lx_int(e->run, 4 * l->elements[l->nin]));
	return e;
}

static LoopOutcome execute_fn(const Launch *l, LoopFn *f)
{
	Arena *a = arena_new(&it.ctx->unwind);
	const ProgramEntry *e = program_of(l, f);
	int64_t slot[2] = {l->elements[l->nin], sizeof it.work};
	void *buf[8] = {NULL};
	for (uint32_t k = 0; k < l->nin; k++)
		buf[k] = it.in[k];
	buf[l->nin] = it.out;
	buf[l->nin + 2] = it.work;
	memset(it.out, 0, sizeof it.out);
	LoopOutcome r = loop_interp_run(e, a, buf, slot, &it.report);
	arena_free(a);
	return r;
}

static LoopOutcome execute(const Launch *l)
{
	Ir *ir = ir_new(it.ctx);
	LoopFn *f = parsed(ir, l->text);
	if (!loop_verify(f, NULL)) {
		Text t;
		text_init(&t, it.ctx->arena);
		ctx_print(it.ctx, &t);
		fail_msg("%s", t.data);
	}
	return execute_fn(l, f);
}

/* ---- what is right ---- */

static void equals_want(const Launch *l, uint64_t n)
{
	for (it.report.seed = 0; it.report.seed < 3; it.report.seed++) {
		LoopOutcome r = execute(l);
		if (r != LOOP_DONE)
			fail_msg("%s", it.report.message);
		for (uint64_t k = 0; k < n; k++)
			if (it.out[k] != it.want[k])
				fail_msg("element %u is %g, expected %g", (unsigned)k,
					 (double)it.out[k], (double)it.want[k]);
	}
}

/* In the order in which the kernel adds. */
static float row_sum(const float *x, int64_t n)
{
	float part[4] = {0};
	for (int warp = 0; warp < 4; warp++) {
		float lane[32] = {0}, next[32];
		for (int k = 0; k < 32; k++)
			for (int64_t i = warp * 32 + k; i < n; i += 128)
				lane[k] += x[i];
		for (int by = 16; by; by /= 2) {
			for (int k = 0; k < 32; k++)
				next[k] = lane[k] + lane[k ^ by];
			memcpy(lane, next, sizeof lane);
		}
		part[warp] = lane[0];
	}
	return (part[0] + part[2]) + (part[1] + part[3]);
}

static Launch of_rows(const char *text, int64_t m, int64_t n)
{
	return (Launch){text, m, {n}, 1, {m * n, m}};
}

static void test_rows(void **state)
{
	(void)state;
	for (int64_t n = 0; n < 1200; n = 2 * n + 1) {
		Launch l = of_rows(rows, 7, n);
		for (int64_t m = 0; m < 7; m++)
			it.want[m] = row_sum(it.in[0] + m * n, n);
		equals_want(&l, 7);
	}
}

static Launch of_product(const char *text, int64_t m, int64_t n, int64_t k)
{
	return (Launch){text, (m + 15) / 16 * ((n + 15) / 16), {m, n, k}, 2, {m * k, k * n, m * n}};
}

static void test_product(void **state)
{
	(void)state;
	static const int64_t size[][3] = {
		{16, 16, 8}, {1, 4, 4}, {40, 20, 36}, {17, 52, 16}, {33, 36, 0}};
	for (uint32_t s = 0; s < sizeof size / sizeof *size; s++) {
		int64_t m = size[s][0], n = size[s][1], k = size[s][2];
		Launch l = of_product(product, m, n, k);
		for (int64_t r = 0; r < m; r++)
			for (int64_t c = 0; c < n; c++) {
				float sum = 0;
				for (int64_t i = 0; i < k; i++)
					sum = fmaf(it.in[0][r * k + i], it.in[1][i * n + c], sum);
				it.want[r * n + c] = sum;
			}
		equals_want(&l, (uint64_t)(m * n));
	}
}

static Launch of_transpose(const char *text, int64_t m, int64_t n)
{
	return (Launch){text, (m + 31) / 32 * ((n + 31) / 32), {m, n}, 1, {m * n, m * n}};
}

static void test_transpose(void **state)
{
	(void)state;
	static const int64_t size[][2] = {{32, 32}, {1, 1}, {70, 33}, {5, 100}};
	for (uint32_t s = 0; s < sizeof size / sizeof *size; s++) {
		int64_t m = size[s][0], n = size[s][1];
		Launch l = of_transpose(transpose, m, n);
		for (int64_t r = 0; r < m; r++)
			for (int64_t c = 0; c < n; c++)
				it.want[c * m + r] = it.in[0][r * n + c];
		equals_want(&l, (uint64_t)(m * n));
	}
}

static void test_votes(void **state)
{
	(void)state;
	enum { N = 150 };
	Launch l = {votes, (N + 63) / 64, {N}, 1, {N, 5 * N}};
	for (int k = 0; k < N; k++)
		it.in[0][k] = k < 32 ? 1 + (float)k : k < 64 ? -(float)k : (float)(k % 5) - 2;
	for (int first = 0; first < N; first += 32) {
		float lane[32], next[32];
		uint32_t which = 0;
		for (int k = 0; k < 32; k++) {
			lane[k] = first + k < N ? it.in[0][first + k] : 0;
			which |= (uint32_t)(lane[k] > 0) << k;
		}
		for (int by = 1; by < 32; by *= 2, memcpy(lane, next, sizeof lane))
			for (int k = 0; k < 32; k++)
				next[k] = k < by ? lane[k] : lane[k] + lane[k - by];
		for (int k = 0; k < 32 && first + k < N; k++) {
			const float want[5] = {lane[k], which != 0, which == UINT32_MAX,
					       (float)which, lane[31]};
			memcpy(it.want + (first + k) * 5, want, sizeof want);
		}
	}
	equals_want(&l, 5 * N);
}

static void test_small(void **state)
{
	(void)state;
	Launch l = {small, 1, {0}, 1, {512, 6144}};
	uint16_t h[1024];
	for (uint32_t k = 0; k < 1024; k++)
		h[k] = f32_to_f16((float)k / 8);
	memcpy(it.in[0], h, sizeof h);
	for (uint32_t t = 0; t < 1024; t++) {
		bool even = t / 32 % 2 == 0;
		uint32_t from = even ? t ^ 1 : t;
		for (uint32_t k = 0; k < 4; k++)
			it.want[4 * t + k] = (float)(1023 - from) / 8 + (float)(from + k);
		it.want[4096 + t] = (float)(even ? t ^ 2 : t);
		it.want[5120 + t] = (float)(t % 256);
	}
	equals_want(&l, 6144);
}

/* A check that a thread fails ends the call, with the arguments of the first one. */
static void test_check(void **state)
{
	(void)state;
	const char *text = "loop checks()\n"
			   "  @x: f32 read align 4\n"
			   "  @y: f32 written align 4\n"
			   "threads 64 shared 0\n"
			   "task t.1 {\n"
			   "  let at.2: i64 = ((t.1 * 64) + thread)\n"
			   "  if (at.2 >= 70) {\n"
			   "    fail message 1 (at.2)\n"
			   "  }\n"
			   "  @y.f32[at.2] = 1.0:f32\n"
			   "}\n";
	Launch l = {text, 3, {0}, 1, {4, 192}};
	for (it.report.seed = 0; it.report.seed < 3; it.report.seed++) {
		assert_int_equal(execute(&l), LOOP_FAILED);
		assert_string_equal(it.report.message, "at 70");
	}
}

/* The first thread that fails counts, and of a thread the first check that fails. */
static void test_first_thread(void **state)
{
	(void)state;
	const char *text = "loop checks()\n"
			   "  @x: f32 read align 4\n"
			   "  @y: f32 written align 4\n"
			   "threads 64 shared 0\n"
			   "task t.1 {\n"
			   "  if (thread > 40) {\n"
			   "    fail message 1 ((thread + 1000))\n"
			   "  }\n"
			   "  if eq((thread % 32), 7) {\n"
			   "    fail message 1 (((t.1 * 64) + thread))\n"
			   "  } else {\n"
			   "    if (thread > 5) {\n"
			   "      fail message 1 ((thread + 2000))\n"
			   "    }\n"
			   "  }\n"
			   "  if (thread > 2) {\n"
			   "    fail message 1 ((thread + 3000))\n"
			   "  }\n"
			   "  if eq(thread, 3) {\n"
			   "    fail message 1 ((thread + 4000))\n"
			   "  }\n"
			   "}\n";
	Launch l = {text, 3, {0}, 1, {4, 192}};
	for (it.report.seed = 0; it.report.seed < 3; it.report.seed++) {
		assert_int_equal(execute(&l), LOOP_FAILED);
		assert_string_equal(it.report.message, "at 3003");
	}
}

/* In a block of one warp all that is the same in the warp is the same in the block. */
static void test_one_warp(void **state)
{
	(void)state;
	const char *text = "loop one()\n"
			   "  @x: f32 read align 4\n"
			   "  @y: f32 written align 4\n"
			   "threads 32 shared 128\n"
			   "task t.1 {\n"
			   "  shared s.2: f32[32]\n"
			   "  v.3: f32 = @x.f32[thread]\n"
			   "  let any.4: bool = warp_any((v.3 < 1000.0:f32))\n"
			   "  if any.4 {\n"
			   "    s.2.f32[thread] = v.3\n"
			   "    sync\n"
			   "    w.5: f32 = s.2.f32[(31 - thread)]\n"
			   "    @y.f32[thread] = w.5\n"
			   "  }\n"
			   "}\n";
	Launch l = {text, 1, {0}, 1, {32, 32}};
	for (int k = 0; k < 32; k++)
		it.want[k] = it.in[0][31 - k];
	equals_want(&l, 32);
}

/* 8 of a thread, 5 of a warp, 2 of the block, through exchanges and shared memory; and through
 * copies, of which each stage is awaited. */
static void test_depths(void **state)
{
	(void)state;
	Launch l = of_rows(rows, 2, 1000), p = of_product(product, 20, 20, 24);
	it.report.depths = true;
	assert_int_equal(execute(&l), LOOP_DONE);
	assert_int_equal(it.report.depth, 15);
	it.report.depth = 0;
	assert_int_equal(execute(&p), LOOP_DONE);
	assert_int_equal(it.report.depth, 24);
}

static const char *printed(const LoopFn *f, bool anonymous)
{
	Text t;
	text_init(&t, it.ctx->arena);
	loop_print(f, &t, anonymous);
	return t.data;
}

static void test_text(void **state)
{
	(void)state;
	const char *const all[] = {rows, product, transpose, votes};
	for (uint32_t k = 0; k < 4; k++) {
		LoopFn *f = parsed(ir_new(it.ctx), all[k]),
		       *again = parsed(f->ir, printed(f, false));
		assert_string_equal(printed(f, false), printed(again, false));
		assert_string_equal(printed(f, true), printed(again, true));
		again = parsed(f->ir, printed(f, true));
		assert_string_equal(printed(f, true), printed(again, true));
		assert_true(loop_verify(again, NULL));
	}
}

/* Clean-up, unrolling and parameters leave what threads do together as it is. */
static void test_passes(void **state)
{
	(void)state;
	Launch l = of_rows(rows, 5, 300), p = of_product(product, 20, 20, 24),
	       t = of_transpose(transpose, 40, 70);
	const Launch *const all[] = {&l, &p, &t};
	for (uint32_t k = 0; k < 3; k++) {
		LoopFn *f = parsed(ir_new(it.ctx), all[k]->text);
		const int64_t *value;
		Launch with = *all[k];
		assert_int_equal(execute(&with), LOOP_DONE);
		memcpy(it.want, it.out, sizeof it.out);
		uint32_t n = f->param.n, more;
		loop_simplify(f);
		loop_unroll(f);
		more = loop_parametrise(f, 1000, &value);
		assert_int_equal(more, k == 2 ? 0 : more);
		memcpy(with.param + n, value ? value : with.param, more * sizeof *value);
		assert_true(loop_verify(f, NULL));
		assert_int_equal(execute_fn(&with, f), LOOP_DONE);
		assert_memory_equal(it.out, it.want, sizeof it.out);
	}
}

/* ---- faults ---- */

typedef enum { ROWS, PRODUCT, TRANSPOSE } Which;

/* In the kernel, `find` becomes `with`. */
typedef struct {
	Which kernel;
	const char *find, *with;
	const char *finding;  /* of the interpreter */
	const char *refusal;  /* of the verifier; NULL: it takes the function */
	int64_t param[3];     /* sizes, if not those of every fault */
} Fault;

#define COPY_A                                                                                     \
	"copy_async sa.2.f32[((arow.8 * 8) + acol.9)] = @a.f32[(((row0.5 + arow.8) * $k) + "       \
	"acol.9)] bytes 16"
#define STORE_Y "      @y.f32[((s.13 * $rows) + d.14)] = w.15\n"

static const Fault fault[] = {
	/* a barrier removed */
	{TRANSPOSE, "  sync\n", "", "load w: reads byte ? of t, which thread ? wrote since the "
				    "last barrier"},
	{ROWS, "  sync\n", "", "load p: reads byte 4 of part, which thread 32 wrote since the last "
			       "barrier"},
	{PRODUCT, "    copy_wait 1\n    sync\n", "    copy_wait 1\n", "load av: reads byte ? of "
								      "sa, which thread ? wrote "
								      "since the last barrier"},
	/* an index shifted */
	{TRANSPOSE, "((tx.2 * 33) + j.12)", "((tx.2 * 33) + (j.12 + 1))", "load w: reads byte ? of "
									  "the shared array t, "
									  "which was never "
									  "written"},
	{TRANSPOSE, "((i.8 * 33) + tx.2)", "((i.8 * 31) + tx.2)", "store t: writes byte ? of t, "
								  "which thread ? wrote since the "
								  "last barrier"},
	{TRANSPOSE, "((i.8 * 33) + tx.2)", "(((i.8 * 33) + 1056) + tx.2)", "store t: writes 4 "
									   "bytes at byte ? of the "
									   "shared array t, "
									   "which has 4224"},
	{ROWS, "@y.f32[row.1] = all.13", "@y.f32[(row.1 + 1)] = all.13", "store y: writes 4 bytes "
									 "at byte 12 of buffer y, "
									 "which has 12"},
	{ROWS, "part.2.f32[warp.12] = sum.3", "part.2.f32[lane.11] = sum.3", "store part: writes "
									     "byte 0 of part, "
									     "which thread ? wrote "
									     "since the last "
									     "barrier"},
	/* a mask dropped */
	{PRODUCT, COPY_A " where and(((row0.5 + arow.8) < $m), (acol.9 < $k))", COPY_A, "copy_async sa: reads 16 bytes at byte ? of buffer a, which has 3200"},
	{PRODUCT, "  if and((r.20 < $m), (q.21 < $n)) {\n", "  if (q.21 < $n) {\n", "store c: writes 16 bytes at byte ? of buffer c, which has 1600"},
	/* a copy not awaited */
	{PRODUCT, "    copy_wait 1\n", "", "load av: reads byte ? of sa, "
					   "to which thread ? copies and has not waited"},
	{PRODUCT, "  copy_wait 0\n", "", "copy_async sa: the thread ends and has not waited"},
	{PRODUCT, "  copy_commit\n  for", "  for", "load av: reads byte ? of sa, "
						   "to which thread ? copies and has not waited"},
	{PRODUCT, "  copy_commit\n  for", "  copy_commit\n  if eq(thread, 0) {\n    @a.f32[0] = "
					  "77.0:f32\n  }\n  for", "thread 0: copy_async sa: buffer "
								  "a changed before the thread "
								  "waited", NULL, {16, 16, 8}},
	/* shared memory over the limit */
	{TRANSPOSE, "f32[1056]", "f32[12289]", "shared t: 49156 bytes of shared memory, and a block has at most 49152", "shared t: 49156 bytes of shared memory, and a block has at most 49152"},
	/* a barrier that not all threads reach */
	{TRANSPOSE, "  sync\n", "  if (thread < 200) {\n    sync\n  }\n", "thread 200: sync 1: this thread does not reach the barrier, and 200 others do", "sync 1: where threads of the block may be elsewhere"},
	{ROWS, "    v.5: f32 = @x", "    sync\n    v.5: f32 = @x", "thread 44: sync 1: this thread does not reach the barrier, and 44 others do", "sync 1: where threads of the block may be elsewhere"},
	{ROWS, "  sync\n", "  while (0.0:f32 < sum.3) {\n    sync\n    sum.3 := (sum.3 - "
			   "1.0:f32)\n  }\n", "sync 1: this thread does not reach the barrier, "
					      "and ? others do", "sync 1: where threads of the "
								 "block may be elsewhere"},
	/* an exchange that not all threads of the warp reach */
	{ROWS, "    let b2.15: f32 = warp_down(all.13, 2)\n    all.13 := (all.13 + b2.15)\n", "    if (lane.11 < 4) {\n      let b2.15: f32 = warp_down(all.13, 2)\n      all.13 := (all.13 + b2.15)\n    }\n", "thread 4: let b2: warp_down without this thread, and with 4 others of the warp", "let b2: warp_down where threads of a warp may be elsewhere"},
	{ROWS, "warp_xor(sum.3, 4)", "warp_xor(sum.3, (4 + thread))", "thread 28: let a4: warp_xor "
								      "of 32, expected 0 to 31"},
	{ROWS, "warp_xor(sum.3, 4)", "warp_xor(sum.3, 32)", "let a4: warp_xor of 32, expected 0 to 31", "let a4: warp_xor of 32, expected 0 to 31"},
	{ROWS, "(sum.3 + a16.6)", "(sum.3 + warp_xor(sum.3, 16))", NULL, "set sum: an exchange "
									 "between threads is not "
									 "all of what a variable "
									 "becomes"},
	/* a wait for fewer groups than are needed */
	{PRODUCT, "copy_wait 1\n", "copy_wait 2\n", "load av: reads byte ? of sa, "
						    "to which thread ? copies and has not waited"},
	/* written while others still read */
	{PRODUCT, "    }\n    sync\n  }\n", "    }\n  }\n", "copy_async sa: writes byte ? of sa, "
							    "which ? read since the last barrier"},
	{PRODUCT, "(next.15 + ((arow.8 * 8) + acol.9))", "(stage.14 + ((arow.8 * 8) + acol.9))", "copy_async sa: writes byte ? of sa, to which thread ? copies and has not waited"},
	/* blocks that overlap */
	{TRANSPOSE, "@y.f32[((s.13 * $rows) + d.14)]", "@y.f32[((s.13 * $rows) + tx.2)]", "store y: writes byte ? of buffer y, which task ? of the same phase touches too"},
	{TRANSPOSE, STORE_Y, STORE_Y "      z.16: f32 = @y.f32[0]\n      @y.f32[((s.13 * $rows) + "
				     "d.14)] = (w.15 + z.16)\n", "load z: reads byte 0 of buffer "
								 "y, which "},
	/* threads of a block in a buffer */
	{TRANSPOSE, STORE_Y, "      if eq(tile.4, 0) {\n        @y.f32[0] = w.15\n      }\n" STORE_Y, "store y: writes byte 0 of y, which thread ? wrote since the last barrier"},
	/* accesses that are not aligned */
	{PRODUCT, "", "", "copy_async sa: moves 16 bytes at byte ? of a, which is no multiple", NULL, {20, 20, 6}},
	{PRODUCT, "((thread % 4) * 4)))]", "(((thread % 4) * 4) + 2)))]", "load bv: moves 16 bytes at byte 8 of sb, which is no multiple", "load bv: moves 16 bytes at an offset that is no multiple of it"},
	{PRODUCT, "@c: f32 written align 16", "@c: f32 written align 4", "store c: moves 16 bytes of buffer c, whose alignment is 4", "store c: moves 16 bytes of buffer c, whose alignment is 4"},
	{PRODUCT, COPY_A, "copy_async sa.2.f32[((arow.8 * 8) + acol.9)] = @a.f32[(((row0.5 + "
			  "arow.8) * $k) + acol.9)] bytes 12", NULL, "copy_async sa: 12 bytes, "
								     "expected 4, 8 or 16"},
	/* blocks */
	{TRANSPOSE, "threads 256", "threads 250", NULL, "a block of 250 threads, "
							"expected a multiple of 32 up to 1024"},
	{TRANSPOSE, "threads 256 shared 49152\n", "", NULL, "in blocks of threads only"},
	{TRANSPOSE, "  sync\n", "  sync\n  if (r0.6 < 5) {\n    shared late.20: f32[4]\n  }\n", NULL, "shared late: in a loop or a branch"},
};

/* `?` in what is expected is a number, or other threads. */
static bool is_told(const char *text, const char *expected)
{
	for (; *expected; expected++, text++) {
		if (*expected != '?') {
			if (*text != *expected)
				return false;
			continue;
		}
		static const char others[] = "other threads";
		static const char one[] = "thread ";
		text += strncmp(text, others, sizeof others - 1) ? 0 : sizeof others - 2;
		text += strncmp(text, one, sizeof one - 1) ? 0 : sizeof one - 1;
		while (text[1] >= '0' && text[1] <= '9')
			text++;
	}
	return true;
}

static bool tells(const char *text, const char *expected)
{
	for (const char *p = text; *p; p++)
		if (is_told(p, expected))
			return true;
	print_error("expected \"%s\" in \"%s\"\n", expected, text);
	return false;
}

static const char *with_fault(const Fault *f)
{
	const char *const kernel[] = {rows, product, transpose}, *text = kernel[f->kernel],
			  *at = strstr(text, f->find);
	assert_non_null(at);
	return arena_printf(it.ctx->arena, "%.*s%s%s", (int)(at - text), text, f->with,
			    at + strlen(f->find));
}

static Launch launch_of(const Fault *f, const char *text)
{
	const int64_t *p = f->param;
	switch (f->kernel) {
	case ROWS: return of_rows(text, 3, 300);
	case PRODUCT:
		return p[0] ? of_product(text, p[0], p[1], p[2]) : of_product(text, 20, 20, 40);
	default: return of_transpose(text, 70, 40);
	}
}

/* The verifier takes the function, or refuses it as told. */
static bool is_refused(const Fault *f, LoopFn *fn)
{
	Text t;
	text_init(&t, it.ctx->arena);
	bool ok = loop_verify(fn, NULL);
	ctx_print(it.ctx, &t);
	return f->refusal ? !ok && tells(t.data, f->refusal) : ok || tells(t.data, "nothing");
}

static bool is_found(const Fault *f, const Launch *l, LoopFn *fn)
{
	for (it.report.seed = 0; f->finding && it.report.seed < 3; it.report.seed++)
		if (execute_fn(l, fn) != LOOP_FINDING ||
		    !tells(it.report.message, "loop IR of the call (kernel ") ||
		    !tells(it.report.message, f->finding))
			return false;
	return true;
}

static void test_faults(void **state)
{
	uint32_t failed = 0, n = sizeof fault / sizeof *fault;
	for (uint32_t k = 0; k < n; k++) {
		teardown(state);
		assert_int_equal(setup(state), 0);
		Launch l = launch_of(&fault[k], with_fault(&fault[k]));
		LoopFn *fn = parsed(ir_new(it.ctx), l.text);
		if (is_refused(&fault[k], fn) && is_found(&fault[k], &l, fn))
			continue;
		print_error("fault %u: \"%s\" instead of \"%s\"\n", k, fault[k].with,
			    fault[k].find);
		failed++;
	}
	assert_int_equal(failed, 0);
}

/* ---- any order of accesses ---- */

enum { ELEMENTS = 16, ACCESSES = 8 };

typedef struct {
	bool sync, store;
	uint32_t a, b, p, q; /* threads with thread % p < q at element (thread * a + b) %
	                        ELEMENTS */
} Turn;

static uint32_t draw(uint64_t *state, uint32_t n)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33) % n;
}

static Turn draw_turn(uint64_t *state)
{
	static const uint32_t stride[] = {0, 1, 1, 2, 3};
	Turn s = {draw(state, 3) == 0,   draw(state, 2),      stride[draw(state, 5)],
		  draw(state, ELEMENTS), 1 + draw(state, 64), 0};
	s.q = 1 + draw(state, s.p);
	if (draw(state, 2)) /* a thread of its own for every element */
		s = (Turn){s.sync, s.store, 1, 0, 64, ELEMENTS};
	return s;
}

/* Whether two threads touch an element between the same barriers, and one of them writes: each pair
 * is compared. */
static bool any_race(const Turn *s, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = i; j < n && !s[j].sync; j++)
			for (uint32_t t = 0; t < 64 && !s[i].sync && (s[i].store || s[j].store);
			     t++)
				for (uint32_t u = 0; u < 64; u++) {
					bool both = t % s[i].p < s[i].q && u % s[j].p < s[j].q;
					if (t != u && both &&
					    (t * s[i].a + s[i].b) % ELEMENTS ==
						    (u * s[j].a + s[j].b) % ELEMENTS)
						return true;
				}
	return false;
}

static const char *text_of(const Turn *s, uint32_t n)
{
	Text t;
	text_init(&t, it.ctx->arena);
	text_printf(&t,
		    "loop any()\n  @y: f32 written align 4\nthreads 64 shared 1024\ntask t.1 {\n  "
		    "shared s.2: f32[%u]\n"
		    "  if (thread < %u) {\n    s.2.f32[thread] = 0.0:f32\n  }\n  sync\n  var "
		    "sum.3: f32 = 0.0:f32\n",
		    ELEMENTS, ELEMENTS);
	for (uint32_t k = 0; k < n; k++, s++) {
		if (s->sync) {
			text_add(&t, "  sync\n");
			continue;
		}
		text_printf(&t, "  if ((thread %% %u) < %u) {\n", s->p, s->q);
		if (s->store)
			text_printf(&t, "    s.2.f32[(((thread * %u) + %u) %% %u)] = sum.3\n", s->a,
				    s->b, ELEMENTS);
		else
			text_printf(&t,
				    "    v.%u: f32 = s.2.f32[(((thread * %u) + %u) %% %u)]\n    "
				    "sum.3 := (sum.3 + v.%u)\n",
				    10 + k, s->a, s->b, ELEMENTS, 10 + k);
		text_add(&t, "  }\n");
	}
	text_add(&t, "  @y.f32[thread] = sum.3\n}\n");
	return t.data;
}

static void test_any_order(void **state)
{
	uint32_t races = 0, none = 0;
	for (uint64_t seed = 1; seed <= 400; seed++) {
		teardown(state);
		assert_int_equal(setup(state), 0);
		Turn s[ACCESSES];
		uint64_t random = seed;
		uint32_t n = 1 + draw(&random, ACCESSES);
		for (uint32_t k = 0; k < n; k++)
			s[k] = draw_turn(&random);
		Launch l = {text_of(s, n), 1, {0}, 0, {64}};
		bool race = any_race(s, n);
		if (execute(&l) != (race ? LOOP_FINDING : LOOP_DONE))
			fail_msg("%s: %s\n%s", race ? "a race" : "no race", it.report.message,
				 l.text);
		races += race;
		none += !race;
	}
	assert_true(races > 100 && none > 100);
}

/* ---- tasks of a call ---- */

/* Calls of CPU kernels: what `enter` begins goes on from task to task, `leave` ends it. */
static const char calls[] =
	"loop calls()\n"
	"  @x: f32 read align 4\n"
	"  @y: f32 read written align 4\n"
	"enter {\n"
	"  var n.1: f32 = 0.0:f32\n"
	"  local t.2: f32[1]\n"
	"  t.2.f32[0] = 2.0:f32\n"
	"}\n"
	"task task.3 {\n"
	"  v.4: f32 = @x.f32[task.3]\n"
	"  w.5: f32 = t.2.f32[0]\n"
	"  @y.f32[task.3] = (v.4 * w.5)\n"
	"  n.1 := (n.1 + 1.0:f32)\n"
	"}\n"
	"leave {\n"
	"  if (n.1 < 1.0:f32) {\n"
	"    fail message 1 ()\n"
	"  }\n"
	"}\n";

static void test_enter_and_leave(void **state)
{
	(void)state;
	Launch l = {calls, 37, {0}, 1, {37, 37}};
	for (int k = 0; k < 37; k++)
		it.want[k] = 2 * it.in[0][k];
	equals_want(&l, 37);
	assert_null(strstr(calls, "threads"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_rows),         T(test_product),         T(test_transpose),
		T(test_votes),        T(test_small),           T(test_check),
		T(test_first_thread), T(test_one_warp),        T(test_depths),
		T(test_text),         T(test_passes),          T(test_faults),
		T(test_any_order),    T(test_enter_and_leave),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
