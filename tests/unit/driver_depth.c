/* Chains of roundings: sums, products and convolutions as schedules make them for some targets,
 * executed as loop IR with the depths that the interpreter counts (ir/loop/interp/depth.c); and
 * chains that are made here, whose depth is known. The recorded table is tests/data/depths.txt: a
 * chain that became longer is a line that differs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/program/schedule.h"
#include "ctx_fixture.h"
#include "ir/build/text.h"
#include "ir/loop/interp/interp.h"
#include "lower/graph/graph.h"
#include "passes/pipeline.h"
#include "tests/help/golden.h"

enum { MAX_BUFFERS = 8 };

/* ---- sums of the op table ---- */

typedef struct {
	const char *name, *text; /* the graph; its one symbol, if any, is N */
	int64_t size[3];         /* of N; 0: no more */
	int64_t terms;           /* of the sum, for each of N; -1: N * N */
	int64_t limit;           /* of a chain; 0: 256 */
} Case;

static const Case cases[] = {
	{"sum of 4096", "graph @f(%x: f32[4096]) {\n  %y = reduce(%x, kind=\"sum\", dims=[0], "
			"acc=f32)\n  return %y\n}\n", {1}, 4096},
	{"sum", "graph @f(%x: f32[N]) where 1 <= N {\n  %y = reduce(%x, kind=\"sum\", dims=[0], "
		"acc=f32)\n  return %y\n}\n", {100, 1000, 100003}, 1},
	{"sum of rows", "graph @f(%x: f32[5, N]) where 1 <= N {\n  %y = reduce(%x, kind=\"sum\", "
			"dims=[1], acc=f32)\n  return %y\n}\n",
	 {100, 1000, 100003}, 1},
	{"sum of columns of 4096", "graph @f(%x: f32[4096, 64]) {\n  %y = reduce(%x, kind=\"sum\", "
				   "dims=[0], acc=f32)\n  return %y\n}\n", {1}, 4096},
	{"sum of columns", "graph @f(%x: f32[N, 4]) where 1 <= N {\n  %y = reduce(%x, "
			   "kind=\"sum\", dims=[0], acc=f32)\n  return %y\n}\n",
	 {100, 1000, 100003}, 1},
	{"sum of middles", "graph @f(%x: f32[3, N, 5]) where 1 <= N {\n  %y = reduce(%x, "
			   "kind=\"sum\", dims=[1], acc=f32)\n  return %y\n}\n",
	 {100, 1000, 20003}, 1},
	{"sum of squares", "graph @f(%x: f32[N]) where 1 <= N {\n  %q = mul(%x, %x)\n  %y = "
			   "reduce(%q, kind=\"sum\", dims=[0], acc=f32)\n  return %y\n}\n",
	 {100, 1000, 100003}, 1},
	{"product", "graph @f(%x: f32[8, N], %w: f32[N, 16]) where 1 <= N {\n"
	 "  %y = contract(%x, %w, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f32)\n  return "
	 "%y\n}\n", {100, 1000, 20003}, 1},
	{"product of 3000", "graph @f(%x: f32[8, 3000], %w: f32[3000, 16]) {\n"
	 "  %y = contract(%x, %w, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f32)\n  return "
	 "%y\n}\n", {1}, 3000},
	{"one row by a matrix", "graph @f(%x: f32[1, N], %w: f32[N, 16]) where 1 <= N {\n"
	 "  %y = contract(%x, %w, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f32)\n  return "
	 "%y\n}\n", {100, 1000, 20003}, 1},
	{"dot", "graph @f(%x: f32[N], %w: f32[N]) where 1 <= N {\n"
	 "  %y = contract(%x, %w, batch_x=[], batch_y=[], sum_x=[0], sum_y=[0], acc=f32)\n  return "
	 "%y\n}\n", {100, 1000, 100003}, 1},
	{"sum of f64", "graph @f(%x: f64[N]) where 1 <= N {\n  %y = reduce(%x, kind=\"sum\", "
		       "dims=[0], acc=f64)\n  return %y\n}\n", {100, 100003}, 1, 65536},
	{"sum to bf16", "graph @f(%x: bf16[N, 4]) where 1 <= N {\n  %y = reduce(%x, kind=\"sum\", "
			"dims=[0], acc=f32)\n  return %y\n}\n", {1000, 100003}, 1, 4096},
	{"sum of two", "graph @f(%x: f32[N, 7, N]) where 1 <= N {\n  %y = reduce(%x, kind=\"sum\", "
		       "dims=[0, 2], acc=f32)\n  return %y\n}\n", {1, 40, 400}, -1},
	{"sum of wide columns", "graph @f(%x: f32[N, 1024]) where 1 <= N ~ 1000 {\n  %y = "
				"reduce(%x, kind=\"sum\", dims=[0], acc=f32)\n  return %y\n}\n",
	 {10, 1003, 4003}, 1},
	{"blocks of k", "graph @f(%x: f32[24, N], %w: f32[N, 128]) where 1 <= N ~ 4000 {\n"
	 "  %y = contract(%x, %w, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f32)\n  return "
	 "%y\n}\n", {10, 4003}, 1},
	{"convolution", "graph @f(%x: f32[1, 40, 9, 9], %w: f32[24, 40, 5, 5]) {\n"
	 "  %y = aten.conv2d(%x, %w, none) : f32[1, 24, 5, 5]\n  return %y\n}\n", {1}, 1000},
	{"convolution by channel", "graph @f(%x: f32[1, 40, 30, 16], %w: f32[16, 1, 25, 25]) {\n  "
				   "%p = permute(%x, perm=[0, 3, 1, 2])\n"
	 "  %y = aten.conv2d(%p, %w, none, groups=16) : f32[1, 16, 16, 6]\n  %o = permute(%y, "
	 "perm=[0, 2, 3, 1])\n  return %o\n}\n", {1}, 625},
};

static const char *const targets[] = {"generic-c", "x86-64-v3", "x86-64-v4", "aarch64-linux-gnu",
				      "gpu-model"};

static Program *program_of(const Case *c, const Target *t)
{
	Ir *ir = ir_new(ctx);
	Graph *g = graph_parse(ir, c->text, c->name);
	const PipelineOptions o = {0};
	Lowered *l = g && pipeline_run(g, &o) ? lower_graph(g, &(LowerOptions){.target = t}) : NULL;
	const ScheduleOptions none = {0};
	return l ? schedule_program(&(ScheduleEntry){"run", l}, 1, t, &none) : NULL;
}

static uint64_t tensor_bytes(const ProgramTensor *t, const SymTab *syms, Sym var, int64_t n)
{
	uint64_t bytes = dtype_size(t->dtype);
	for (uint32_t k = 0; k < t->rank; k++) {
		int64_t d;
		assert_true(sym_eval(syms, t->dim[k], &var, &n, var.i != 0, &d));
		bytes *= (uint64_t)d;
	}
	return bytes;
}

/* The deepest float that the program stores, of inputs that are 0. */
static uint16_t depth_at(const Program *p, int64_t n)
{
	const ProgramEntry *e = p->entry.data;
	Arena *a = arena_new(&ctx->unwind);
	Sym var = e->symbol.n ? e->symbol.data[0] : (Sym){0};
	int64_t extent[MAX_BUFFERS], *slot = ARENA_ARRAY(a, int64_t, program_nslot(e));
	uint32_t nextent = 0, nbuf = 0;
	void *buf[MAX_BUFFERS];
	LoopReport report = {.depths = true};
	for (uint32_t k = 0; k < e->input.n; k++) {
		const ProgramTensor *t = &e->input.data[k];
		for (uint32_t d = 0; d < t->rank; d++)
			assert_true(sym_eval(p->ir->syms, t->dim[d], &var, &n, var.i != 0,
					     &extent[nextent++]));
		buf[nbuf++] = arena_calloc(a, 1, tensor_bytes(t, p->ir->syms, var, n));
	}
	for (uint32_t k = 0; k < e->output.n; k++)
		buf[nbuf++] =
			arena_calloc(a, 1, tensor_bytes(&e->output.data[k], p->ir->syms, var, n));
	if (loop_interp_sizes(e, a, extent, slot, &report) != LOOP_DONE)
		fail_msg("%s", report.message);
	buf[nbuf++] = arena_calloc(a, 1, p->weight_bytes + 64);
	buf[nbuf++] = aligned_alloc(64, ((uint64_t)slot[program_nslot(e) - 1] + 127) / 64 * 64);
	buf[nbuf++] = NULL;
	LoopOutcome got = loop_interp_run(e, a, buf, slot, &report);
	free(buf[nbuf - 2]);
	arena_free(a);
	if (got != LOOP_DONE)
		fail_msg("%s", report.message);
	return report.depth;
}

/* What a sum of n terms may have: each chain of its plan, one of them half as long again, and what
 * is left of unrolled loops, lanes and trees. */
static void check_bound(const char *name, const char *target, int64_t limit, int64_t terms,
			uint16_t depth)
{
	int64_t most = 64 + limit / 2;
	for (int64_t n = terms; n > 0; n /= limit)
		most += n < limit ? n : limit;
	if (depth > most || !depth)
		fail_msg("%s for %s: %u additions in a chain, of %" PRId64 " terms", name, target,
			 depth, terms);
}

static void table(void **state)
{
	(void)state;
	Text out;
	text_init(&out, ctx->arena);
	text_add(&out, "# Most roundings in one chain of additions, at sizes of N: BLESS=1 "
		       "build/driver_depth\n");
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
			const Program *p = program_of(&cases[k], target_find(targets[t]));
			if (!p)
				fail_msg("%s for %s is not scheduled", cases[k].name, targets[t]);
			text_printf(&out, "%-24s %-18s", cases[k].name, targets[t]);
			for (uint32_t i = 0; i < 3 && cases[k].size[i]; i++) {
				const Case *c = &cases[k];
				const int64_t n = c->size[i];
				const uint16_t depth = depth_at(p, n);
				check_bound(c->name, targets[t], c->limit ? c->limit : 256,
					    c->terms < 0 ? n * n : c->terms * n, depth);
				text_printf(&out, " %" PRId64 ": %u", n, depth);
			}
			text_add(&out, "\n");
		}
	golden_check(TEST_DATA "/depths.txt", out.data);
}

/* ---- chains that are made here ---- */

/* y[0] = x[0] + x[1] + ... in a loop of n additions, behind `tree` halvings of a vector. */
static Program *chain(uint32_t n, bool vectors)
{
	Ir *ir = ir_new(ctx);
	Program *p = program_new(ir, "test");
	ProgramEntry *e = program_entry(p, "run");
	Sym *nx = ARENA_NEW(ctx->arena, Sym), *ny = ARENA_NEW(ctx->arena, Sym);
	uint32_t lanes = vectors ? 8 : 1;
	*nx = sym_int(ir->syms, n * lanes);
	*ny = sym_int(ir->syms, 1);
	array_push(ctx->arena, &e->input,
		   (ProgramTensor){.name = "x", .dtype = DT_f32, .rank = 1, .dim = nx});
	array_push(ctx->arena, &e->output,
		   (ProgramTensor){.name = "y", .dtype = DT_f32, .rank = 1, .dim = ny});
	LoopFn *f = loop_new(ir, "chain");
	uint32_t x = loop_buf(f, (LArg){.name = "x", .dtype = DT_f32, .read = true, .align = 4});
	uint32_t y = loop_buf(f, (LArg){.name = "y", .dtype = DT_f32, .written = true, .align = 4});
	LType t = {DT_f32, lanes};
	const Lx none = {0};
	Lv acc = ls_var(f, "acc", lx_float(f, t, 0));
	Lv i = ls_for(f, "i", lx_int(f, 0), lx_int(f, n), 1);
	Lv v = ls_load(f, "v", lmem_buf(x, DT_f32), lx_mul(f, lx_var(f, i), lx_int(f, lanes)), t,
		       none);
	ls_set(f, acc, lx_sc(f, SC_add, t, (Lx[]){lx_var(f, acc), lx_var(f, v)}, 2));
	ls_end(f);
	Lx sum = vectors ? lx_hreduce(f, SC_add, lx_var(f, acc)) : lx_var(f, acc);
	ls_store(f, lmem_buf(y, DT_f32), lx_int(f, 0), sum, none);
	array_push(ctx->arena, &p->fn, f);
	e->sizes = loop_new(ir, "sizes");
	e->run = loop_new(ir, "run");
	const Cost *one = cost_number(ctx->arena, 1);
	Lx arg[2] = {lx_addr(e->run, 0, lx_int(e->run, 0)), lx_addr(e->run, 1, lx_int(e->run, 0))};
	program_add_call(
		e,
		&(ProgramCall){.fn = 0, .name = "call", .algorithm = "", .cost = {one, one, one}});
	ls_launch(e->run, 0, lx_int(e->run, 1), arg, 2, 2);
	return p;
}

static uint16_t depth_of_chain(uint32_t n, bool vectors)
{
	const Program *p = chain(n, vectors);
	static float x[8 * 70000], y[1];
	int64_t slot[] = {1, 0}; /* the extent of y, the workspace */
	void *buf[] = {x, y, NULL, NULL, NULL};
	LoopReport report = {.depths = true};
	if (loop_interp_run(p->entry.data, ctx->arena, buf, slot, &report) != LOOP_DONE)
		fail_msg("%s", report.message);
	return report.depth;
}

/* A chain that is made longer is found, one of vectors ends in a tree, and counts end somewhere. */
static void chains(void **state)
{
	(void)state;
	assert_int_equal(depth_of_chain(1, false), 1);
	assert_int_equal(depth_of_chain(256, false), 256);
	assert_int_equal(depth_of_chain(257, false), 257);
	assert_int_equal(depth_of_chain(256, true), 256 + 3);
	assert_int_equal(depth_of_chain(70000, false), UINT16_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(chains, setup, teardown),
					   cmocka_unit_test_setup_teardown(table, setup, teardown)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
