/* Faults that are put into the kernels of schedules for GPUs, one at a time: a barrier is removed,
 * a condition or a mask is dropped, an index is shifted, a copy is not awaited. The interpreter of
 * loop IR finds each, or the results differ. */
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

enum { MAX_BUFFERS = 8, MAX_RESULT = 1 << 16 };

typedef struct {
	const char *name, *text;
	uint32_t least;    /* faults that there are at least */
	uint32_t harmless; /* of these; where a condition or a mask keeps a thread from elements
	                      that exist, and that change no result */
} Case;

static const Case cases[] = {
	{"points", "graph @f(%x: f32[3, 132], %c: f32[132]) {\n  %b = broadcast(%c, shape=[3, "
		   "132], map=[1])\n  %y = add(%x, %b)\n  return %y\n}\n", 2},
	{"points with a tail", "graph @f(%x: f32[1031]) {\n  %y = neg(%x)\n  return %y\n}\n", 2},
	{"tiles", "graph @f(%x: f32[37, 45]) {\n  %t = permute(%x, perm=[1, 0])\n  %y = neg(%t)\n  "
		  "return %y\n}\n", 10},
	{"softmax", "graph @f(%x: f32[5, 75]) {\n  %y = aten.softmax.int(%x, dim=1) : f32[5, 75]\n "
		    " return %y\n}\n", 5},
	{"norm of long rows", "graph @f(%x: f32[2, 3100]) {\n  %y = aten.log_softmax.int(%x, "
			      "dim=1) : f32[2, 3100]\n  return %y\n}\n", 4},
	{"columns", "graph @f(%x: f32[70, 40]) {\n  %y = reduce(%x, kind=\"sum\", dims=[0], "
		    "acc=f32)\n  return %y\n}\n", 3, 2},
	{"parts", "graph @f(%x: f32[2, 40000]) {\n  %y = reduce(%x, kind=\"sum\", dims=[1], "
		  "acc=f32)\n  return %y\n}\n", 3},
	{"places", "graph @f(%x: f32[3, 1001]) {\n  %y = aten.argmax(%x, dim=1) : i64[3]\n  return "
		   "%y\n}\n", 3},
	{"product", "graph @f(%x: f32[70, 45], %w: f32[45, 75]) {\n"
	 "  %y = contract(%x, %w, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f32)\n  return "
	 "%y\n}\n", 40, 8},
	{"product in parts", "graph @f(%x: f32[20, 700], %w: f32[700, 20]) {\n"
	 "  %y = contract(%x, %w, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f32)\n  return "
	 "%y\n}\n", 20},
	{"product of halves", "graph @f(%x: f16[70, 45], %w: f32[75, 45]) {\n  %c = convert(%x, "
			      "dtype=f32)\n"
	 "  %y = contract(%c, %w, batch_x=[], batch_y=[], sum_x=[1], sum_y=[1], acc=f32)\n  return "
	 "%y\n}\n", 40, 2},
};

static Program *program_of(const Case *c)
{
	Ir *ir = ir_new(ctx);
	Graph *g = graph_parse(ir, c->text, c->name);
	const Target *t = target_find("gpu-model");
	Lowered *l = g && pipeline_run(g, &(PipelineOptions){0})
			     ? lower_graph(g, &(LowerOptions){.target = t})
			     : NULL;
	Program *p = l ? schedule_program(&(ScheduleEntry){"run", l}, 1, t, &(ScheduleOptions){0})
		       : NULL;
	if (!p)
		fail_msg("%s is not scheduled", c->name);
	return p;
}

/* ---- one run ---- */

static uint64_t bytes_of(const ProgramTensor *t, const SymTab *syms)
{
	uint64_t bytes = dtype_size(t->dtype);
	for (uint32_t k = 0; k < t->rank; k++)
		bytes *= (uint64_t)sym_const(syms, t->dim[k]);
	return bytes;
}

/* Small numbers, all different in a row; of f16 by their bits. */
static void fill(const ProgramTensor *t, void *data, uint64_t bytes)
{
	for (uint64_t k = 0; k < bytes / dtype_size(t->dtype); k++)
		if (t->dtype == DT_f32)
			((float *)data)[k] = (float)(k * 7919 % 4001) / 2000 - 1;
		else
			((uint16_t *)data)[k] = (uint16_t)(0x3000 + k * 7919 % 0x800);
}

/* Executes the program. Sets out[] to the results, one after the other, and *n to their bytes. */
static LoopOutcome run(const Program *p, char *out, uint64_t *n, LoopReport *report)
{
	const ProgramEntry *e = p->entry.data;
	Arena *a = arena_new(&ctx->unwind);
	int64_t extent[4 * MAX_BUFFERS], *slot = ARENA_ARRAY(a, int64_t, program_nslot(e));
	uint32_t nextent = 0, nbuf = 0;
	void *buf[MAX_BUFFERS];
	*n = 0;
	for (uint32_t k = 0; k < e->input.n; k++) {
		const ProgramTensor *t = &e->input.data[k];
		const uint64_t bytes = bytes_of(t, p->ir->syms);
		for (uint32_t d = 0; d < t->rank; d++)
			extent[nextent++] = sym_const(p->ir->syms, t->dim[d]);
		buf[nbuf] = arena_calloc(a, 1, bytes);
		fill(t, buf[nbuf++], bytes);
	}
	for (uint32_t k = 0; k < e->output.n; k++)
		buf[nbuf++] = arena_calloc(a, 1, bytes_of(&e->output.data[k], p->ir->syms));
	if (loop_interp_sizes(e, a, extent, slot, report) != LOOP_DONE)
		fail_msg("%s", report->message);
	buf[nbuf++] = arena_calloc(a, 1, p->weight_bytes + 64);
	buf[nbuf++] = aligned_alloc(64, ((uint64_t)slot[program_nslot(e) - 1] + 127) / 64 * 64);
	buf[nbuf] = NULL;
	const LoopOutcome got = loop_interp_run(e, a, buf, slot, report);
	free(buf[nbuf - 1]);
	for (uint32_t k = 0; k < e->output.n; k++) {
		const uint64_t bytes = bytes_of(&e->output.data[k], p->ir->syms);
		assert_true(*n + bytes <= MAX_RESULT);
		memcpy(out + *n, buf[e->input.n + k], bytes);
		*n += bytes;
	}
	arena_free(a);
	return got;
}

/* ---- faults ---- */

/* Statements of a program, in blocks. */
typedef struct {
	uint32_t left;    /* faults to pass over before the one that is put in */
	const char *what; /* of the fault, when it is in; NULL: there was none left */
	const char *kernel;
} Fault;

static bool here(Fault *f, const LoopFn *fn, const char *what)
{
	if (f->what || f->left--)
		return false;
	f->what = what;
	f->kernel = fn->name;
	return true;
}

static void remove_statement(LoopFn *fn, Lb b, uint32_t at)
{
	struct LBlock *block = &fn->block.data[b.i];
	memmove(&block->stmt.data[at], &block->stmt.data[at + 1],
		(block->stmt.n - at - 1) * sizeof *block->stmt.data);
	block->stmt.n--;
}

static bool touches_memory(const LoopFn *fn, Lb b)
{
	for (uint32_t k = 0; k < fn->block.data[b.i].stmt.n; k++)
		if (ls_row(fn->ls.data[fn->block.data[b.i].stmt.data[k]].kind)->mem != MEM_NONE)
			return true;
	return false;
}

static void shift(LoopFn *fn, uint32_t at)
{
	Lx offset = lx_add(fn, fn->ls.data[at].offset, lx_int(fn, 1));
	fn->ls.data[at].offset = offset;
}

static void put_in(Fault *f, LoopFn *fn, Lb b)
{
	for (uint32_t k = 0; b.i && !f->what && k < fn->block.data[b.i].stmt.n; k++) {
		const uint32_t at = fn->block.data[b.i].stmt.data[k];
		const LsData s = fn->ls.data[at];
		const bool keeps = s.other.i && fn->block.data[s.other.i].stmt.n;
		if (s.kind == LS_SYNC && here(f, fn, "barrier removed"))
			remove_statement(fn, b, k);
		else if (s.kind == LS_COPY_WAIT && here(f, fn, "copy not awaited"))
			remove_statement(fn, b, k);
		else if (s.kind == LS_COPY_ASYNC && s.mask.i &&
			 here(f, fn, "mask of a copy dropped"))
			fn->ls.data[at].mask = (Lx){0};
		else if (s.kind == LS_STORE && here(f, fn, "index of a store shifted"))
			shift(fn, at);
		else if (s.kind == LS_COPY_ASYNC && here(f, fn, "index of a copy shifted"))
			shift(fn, at);
		else if (s.kind == LS_IF && !keeps && touches_memory(fn, s.body) &&
			 here(f, fn, "condition dropped"))
			fn->ls.data[at].x = lx_int_of(fn, (LType){DT_bool, 1}, 1);
		put_in(f, fn, s.body);
		put_in(f, fn, s.other);
	}
}

static bool program_has_fault(Program *p, Fault *f)
{
	for (uint32_t k = 0; k < p->fn.n && !f->what; k++)
		for (uint32_t t = 0; t < LOOP_TOPS; t++)
			put_in(f, p->fn.data[k], loop_top(p->fn.data[k], t));
	return f->what;
}

static void check_case(const Case *c)
{
	static char right[MAX_RESULT], wrong[MAX_RESULT];
	uint64_t n, m;
	uint32_t faults = 0, harmless = 0;
	Text text;
	LoopReport report = {0};
	text_init(&text, ctx->arena);
	if (run(program_of(c), right, &n, &report) != LOOP_DONE)
		fail_msg("%s: %s", c->name, report.message);
	for (;; faults++) {
		Program *p = program_of(c);
		Fault f = {.left = faults};
		report = (LoopReport){0};
		if (!program_has_fault(p, &f))
			break;
		const LoopOutcome got = run(p, wrong, &m, &report);
		if (got == LOOP_DONE && m == n && !memcmp(right, wrong, n))
			text_printf(&text, "%s, kernel %s, fault %u: %s, and nothing is found\n",
				    c->name, f.kernel, faults, f.what),
				harmless++;
	}
	if (harmless != c->harmless)
		fail_msg("%u harmless faults, expected %u: %s", harmless, c->harmless, text.data);
	if (faults < c->least)
		fail_msg("%s: %u faults, expected at least %u", c->name, faults, c->least);
}

static void faults(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		check_case(&cases[k]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(faults, setup, teardown)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
