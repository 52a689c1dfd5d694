/* Kernels over axes with bounds that depend on data, by the generic schedule: rows of different
 * lengths (segments) lie one behind the other in x[E, F]; row s has the elements from o[s] to
 * o[s + 1]. Lowering makes such kernels of segment_reduce, but no maps over rows, so these are
 * written here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/program/program_priv.h"
#include "ir/build/text.h"
#include "ir/build/verify.h"
#include "ir/kernel/contraction.h"
#include "ir/loop/interp/interp.h"
#include "ir/op/op.h"
#include "lower/graph/graph.h"

static const char graph[] = "graph @segments(%x: f32[E, F], %w: f32[S, F], %o: i64[S + 1]) where "
			    "0 <= E, 1 <= F, 1 <= S {\n"
			    "  %a = neg(%w)\n  %b = neg(%x)\n  return %a, %b\n}\n";

enum { MOST = 40 };

typedef struct {
	Ctx *ctx;
	Arena *a;
	SymTab *syms;
	Lowered *l;
	BufId x, w, o, rows, points; /* rows: the first output [S, F]; points: the second [E, F] */
	Kernel *k;
	Sym s, f, e; /* axes */
	int64_t S, F, E, offset[MOST + 1];
	float in[MOST * MOST], weight[MOST * MOST], row[MOST * MOST], point[MOST * MOST];
	uint64_t random;
} Case;

static uint32_t below(Case *c, uint32_t n)
{
	c->random = c->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(c->random >> 33) % n;
}

/* ---- kernels ---- */

static Sym add_axis(Case *c, const char *name, Sym extent)
{
	Axis a = {.var = sym_axis(c->syms, name, extent), .extent = extent};
	array_push(c->a, &c->k->axis, a);
	return a.var;
}

/* A bound of axis e: o[at], in [0, E]. Returns its number + 1. */
static uint32_t add_bound(Case *c, Sym at)
{
	const Sym extent = sym_addi(c->syms, buf_of(c->l, c->x)->dim[0], 1);
	const ValueVar v = {.var = sym_axis(c->syms, "o", extent),
			    .value = kx_load(c->k, c->a, c->o, DT_i64, 1, &at, (Kx){0}, (Kx){0}),
			    .extent = extent};
	array_push(c->a, &c->k->vvar, v);
	return c->k->vvar.n;
}

/* Axes: rows, columns, and the elements of a row. */
static void begin(Case *c, const char *name)
{
	c->k = ARENA_NEW(c->a, Kernel);
	c->k->name = name;
	array_push(c->a, &c->k->kx, (KxData){0});
	c->s = add_axis(c, "s", buf_of(c->l, c->w)->dim[0]);
	c->f = add_axis(c, "f", buf_of(c->l, c->w)->dim[1]);
	c->e = add_axis(c, "e", buf_of(c->l, c->x)->dim[0]);
	const uint32_t lo = add_bound(c, c->s), hi = add_bound(c, sym_addi(c->syms, c->s, 1));
	c->k->axis.data[2].lo = lo;
	c->k->axis.data[2].hi = hi;
	c->k->axis.data[2].mean = 3;
}

static Kx load(Case *c, BufId b, Sym i)
{
	return kx_load(c->k, c->a, b, DT_f32, 2, (Sym[]){i, c->f}, (Kx){0}, (Kx){0});
}

static Kx op(Case *c, Op o, Kx a, Kx b)
{
	return kx_op(c->k, c->a, o, DT_f32, (Kx[]){a, b}, b.i ? 2 : 1);
}

/* Adds a stage that reduces `value` over the elements of a row, and returns its result. */
static Kx reduce(Case *c, ReduceKind combine, Kx value)
{
	Stage st = {.kind = STAGE_REDUCE,
		    .nred = 1,
		    .red = {2},
		    .dtype = DT_f32,
		    .value = value,
		    .reduce = {.combine = combine, .acc = DT_f32}};
	stage_map_first(&st, 2);
	array_push(c->a, &c->k->stage, st);
	return kx_stage(c->k, c->a, c->k->stage.n - 1, DT_f32, 2, (Sym[]){c->s, c->f});
}

/* Adds a stage that stores `value` at row or element i; naxes: those that it maps. */
static void store(Case *c, BufId to, Sym i, uint32_t naxes, Kx value)
{
	const Sym at[] = {i, c->f};
	Stage st = {.kind = STAGE_MAP,
		    .dtype = DT_f32,
		    .value = value,
		    .store = {.buf = to, .idx = arena_dup(c->a, at, sizeof at)}};
	stage_map_first(&st, naxes);
	array_push(c->a, &c->k->stage, st);
}

/* rows = the sums (maxima) of x */
static void make_reduction(Case *c, ReduceKind kind)
{
	begin(c, "reduction");
	store(c, c->rows, c->s, 2, reduce(c, kind, load(c, c->x, c->e)));
}

/* points = exp(x - max of the row) / sum of the row * w of the row */
static void make_softmax(Case *c)
{
	begin(c, "softmax");
	const Kx x = load(c, c->x, c->e), most = reduce(c, REDUCE_MAX, x),
		 e = op(c, OP_exp, op(c, OP_sub, x, most), (Kx){0}), sum = reduce(c, REDUCE_SUM, e);
	store(c, c->points, c->e, 3, op(c, OP_mul, op(c, OP_div, e, sum), load(c, c->w, c->s)));
}

/* ---- running ---- */

static BufId find_buf(const Case *c, BufKind kind, uint32_t k)
{
	for (uint32_t i = 1; i < c->l->buf.n; i++)
		if (c->l->buf.data[i].kind == kind && c->l->buf.data[i].k == k)
			return (BufId){i};
	fail_msg("there is no buffer %d %u", kind, k);
	return (BufId){0};
}

static void draw(Case *c, bool any)
{
	c->S = 1 + below(c, 12);
	c->F = 1 + below(c, MOST - 1);
	c->E = below(c, MOST);
	for (int64_t i = 0; i <= c->S; i++)
		c->offset[i] = any ? (int64_t)below(c, MOST + 20) - 10 : (int64_t)below(c, MOST);
	if (!any) { /* rows that cover all elements */
		int64_t at = 0;
		for (int64_t i = 0; i <= c->S; i++, at += below(c, (uint32_t)(c->E - at) + 1))
			c->offset[i] = at;
		c->offset[0] = 0;
		c->offset[c->S] = c->E;
	}
	for (int64_t i = 0; i < MOST * MOST; i++) {
		c->in[i] = (float)((int32_t)below(c, 64) - 32) / 8;
		c->weight[i] = (float)below(c, 16);
		c->row[i] = c->point[i] = NAN;
	}
}

/* The kernel takes the place of the one that stores the same output. */
static void replace_step(Case *c)
{
	const BufId to = c->k->stage.data[kernel_last_store(c->k)].store.buf;
	for (uint32_t i = 0; i < c->l->steps.step.n; i++) {
		Step *s = &c->l->steps.step.data[i];
		if (s->kernel->stage.data[kernel_last_store(s->kernel)].store.buf.i == to.i)
			s->kernel = c->k;
	}
}

static void run(Case *c, const char *target)
{
	replace_step(c);
	if (!lowered_verify(c->l))
		fail_msg("the kernel is not valid");
	Program *p = schedule_program(&(ScheduleEntry){"run", c->l}, 1, target_find(target),
				      &(ScheduleOptions){0});
	assert_non_null(p);
	const ProgramEntry *e = p->entry.data;
	const int64_t extent[] = {c->E, c->F, c->S, c->F, c->S + 1};
	int64_t slot[64] = {0};
	LoopReport report = {0};
	assert_true(program_nslot(e) <= 64);
	assert_int_equal(loop_interp_sizes(e, c->a, extent, slot, &report), LOOP_DONE);
	void *buf[] = {
		c->in, c->weight, c->offset, c->row, c->point, NULL, arena_alloc(c->a, 1 << 20),
		NULL,  NULL};
	if (loop_interp_run(e, c->a, buf, slot, &report) != LOOP_DONE)
		fail_msg("%s: %s", target, report.message);
}

static int64_t clamp(int64_t x, int64_t most)
{
	return x < 0 ? 0 : x > most ? most : x;
}

static void expect_near(float got, double want)
{
	if (!(fabs(got - want) <= 1e-5 * (1 + fabs(want))) && got != (float)want)
		fail_msg("got %g, expected %g", (double)got, want);
}

static void expect_reduction(const Case *c, bool maximum)
{
	for (int64_t s = 0; s < c->S; s++)
		for (int64_t f = 0; f < c->F; f++) {
			double want = maximum ? (double)-INFINITY : 0;
			for (int64_t e = clamp(c->offset[s], c->E);
			     e < clamp(c->offset[s + 1], c->E); e++)
				want = maximum ? fmax(want, (double)c->in[e * c->F + f])
					       : want + (double)c->in[e * c->F + f];
			expect_near(c->row[s * c->F + f], want);
		}
}

static void expect_softmax(const Case *c)
{
	for (int64_t s = 0; s < c->S; s++)
		for (int64_t f = 0; f < c->F; f++) {
			double most = -INFINITY, sum = 0;
			for (int64_t e = c->offset[s]; e < c->offset[s + 1]; e++)
				most = fmax(most, (double)c->in[e * c->F + f]);
			for (int64_t e = c->offset[s]; e < c->offset[s + 1]; e++)
				sum += exp((double)c->in[e * c->F + f] - most);
			for (int64_t e = c->offset[s]; e < c->offset[s + 1]; e++)
				expect_near(c->point[e * c->F + f],
					    exp((double)c->in[e * c->F + f] - most) / sum *
						    (double)c->weight[s * c->F + f]);
		}
}

static Case *start(uint64_t seed)
{
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	Case *c = ARENA_NEW(ctx->arena, Case);
	c->ctx = ctx;
	c->a = ctx->arena;
	c->random = seed;
	Graph *g = graph_parse(ir_new(ctx), graph, "segments");
	assert_true(g && graph_verify(g));
	c->syms = graph_syms(g);
	c->l = lower_graph(g, &(LowerOptions){0});
	assert_non_null(c->l);
	c->x = find_buf(c, BUF_INPUT, 0);
	c->w = find_buf(c, BUF_INPUT, 1);
	c->o = find_buf(c, BUF_INPUT, 2);
	c->rows = find_buf(c, BUF_OUTPUT, 0);
	c->points = find_buf(c, BUF_OUTPUT, 1);
	return c;
}

static const char *const targets[] = {"generic-c", "x86-64-v3", "x86-64-v4"};
enum { NTARGET = sizeof targets / sizeof *targets, ROUNDS = 40 };

/* Also offsets that decrease, or lie outside: such rows have the elements that are there. */
static void test_reductions(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < NTARGET * ROUNDS; i++) {
		Case *c = start(i);
		if (setjmp(c->ctx->unwind))
			fail_msg("an internal error");
		draw(c, true);
		make_reduction(c, i & 1 ? REDUCE_MAX : REDUCE_SUM);
		run(c, targets[i % NTARGET]);
		expect_reduction(c, i & 1);
		ctx_free(c->ctx);
	}
}

static void test_softmax(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < NTARGET * ROUNDS; i++) {
		Case *c = start(i + 1000);
		if (setjmp(c->ctx->unwind))
			fail_msg("an internal error");
		draw(c, false);
		make_softmax(c);
		run(c, targets[i % NTARGET]);
		expect_softmax(c);
		ctx_free(c->ctx);
	}
}

static void expect_error(Case *c, const char *text)
{
	replace_step(c);
	assert_false(lowered_verify(c->l));
	Text t;
	text_init(&t, c->a);
	ctx_print(c->ctx, &t);
	if (!strstr(t.data, text))
		fail_msg("expected \"%s\", got \"%s\"", text, t.data);
	ctx_free(c->ctx);
}

static void test_verify(void **state)
{
	(void)state;
	Case *c = start(0);
	make_reduction(c, REDUCE_SUM);
	c->k->axis.data[2].hi = 3;
	expect_error(c, "a bound of an axis does not exist");
	c = start(0);
	make_reduction(c, REDUCE_SUM);
	c->k->vvar.data[0].extent = c->k->axis.data[2].extent;
	expect_error(c, "a bound of an axis has another range");
	c = start(0);
	make_reduction(c, REDUCE_SUM);
	c->k->axis.data[0].lo = 1;
	expect_error(c, "a bound of an axis has another range");
	c = start(0);
	make_reduction(c, REDUCE_SUM);
	c->k->vvar.data[0].value = kx_load(c->k, c->a, c->o, DT_i64, 1, &c->e, (Kx){0}, (Kx){0});
	expect_error(c, "a bound depends on an axis that does not come before");
	c = start(0);
	make_reduction(c, REDUCE_MAX);
	c->k->stage.data[0].kind = STAGE_ARGREDUCE;
	expect_error(c, "only a reduction has an axis with bounds");
}

static void test_text(void **state)
{
	(void)state;
	Case *c = start(0);
	Text t;
	text_init(&t, c->a);
	make_softmax(c);
	assert_int_equal(kernel_nouter(c->k), 2);
	assert_false(kernel_is_plain(c->k));
	kernel_print(c->l, c->k, &t);
	assert_non_null(strstr(t.data, "kernel softmax (s<S, f<F) {\n"));
	assert_non_null(strstr(t.data, "stage2 map (e<E in [o0, o1)) f32 -> global"));
	ctx_free(c->ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reductions), cmocka_unit_test(test_softmax),
		cmocka_unit_test(test_verify), cmocka_unit_test(test_text)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
