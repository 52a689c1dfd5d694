/* Which kernels count as equal: those that differ in what they read from and write to only.
 * Anything that a schedule may look at makes another key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "codegen/program/distinct.h"
#include "ir/build/text.h"
#include "ir/build/verify.h"
#include "lower/graph/graph.h"
#include "passes/pipeline.h"

/* Graphs whose results are a kernel each, and how many of these are different. */
typedef struct {
	const char *what, *graph;
	uint32_t nkernel, distinct;
} Case;

static const Case cases[] = {
	{"the same of other inputs",
	 "graph @f(%x: f32[8, 4], %y: f32[8, 4]) {\n  %1 = tanh(%x)\n  %2 = tanh(%y)\n  return %1, "
	 "%2\n}\n", 2, 1},
	{"the same products",
	 "graph @f(%x: f32[8, 4], %y: f32[4, 6], %z: f32[8, 4]) {\n"
	 "  %1 = contract(%x, %y, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f32)\n"
	 "  %2 = contract(%z, %y, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f32)\n  return "
	 "%1, %2\n}\n", 2, 1},
	{"one reads a buffer twice",
	 "graph @f(%x: f32[8], %y: f32[8]) {\n  %1 = mul(%x, %y)\n  %2 = mul(%y, %y)\n  %3 = "
	 "mul(%y, %x)\n  return %1, %2, %3\n}\n", 3, 2},
	{"operations", "graph @f(%x: f32[8]) {\n  %1 = tanh(%x)\n  %2 = exp(%x)\n  return %1, "
		       "%2\n}\n", 2, 2},
	{"the first operand",
	 "graph @f(%x: f32[8], %y: f32[8]) {\n  %e = exp(%x)\n  %t = tanh(%y)\n  %m = mul(%e, "
	 "%t)\n  %s = sub(%e, %m)\n  %1 = neg(%s)\n  %e2 = exp(%x)\n  %t2 = tanh(%y)\n  %m2 = "
	 "mul(%e2, %t2)\n  %s2 = sub(%t2, %m2)\n  %2 = neg(%s2)\n  return %1, %2\n}\n", 2, 2},
	{"the second operand",
	 "graph @f(%x: f32[8], %y: f32[8]) {\n  %e = exp(%x)\n  %t = tanh(%y)\n  %m = mul(%e, "
	 "%t)\n  %s = sub(%m, %e)\n  %1 = neg(%s)\n  %e2 = exp(%x)\n  %t2 = tanh(%y)\n  %m2 = "
	 "mul(%e2, %t2)\n  %s2 = sub(%m2, %t2)\n  %2 = neg(%s2)\n  return %1, %2\n}\n", 2, 2},
	{"a number",
	 "graph @f(%x: f32[8]) {\n  %a = full(dtype=f32, shape=[8], value=2.0)\n  %b = "
	 "full(dtype=f32, shape=[8], value=2.5)\n  %1 = mul(%x, %a)\n  %2 = mul(%x, %b)\n  return "
	 "%1, %2\n}\n", 2, 2},
	{"a large integer",
	 "graph @f(%x: i64[8]) {\n  %a = full(dtype=i64, shape=[8], value=7)\n  %b = "
	 "full(dtype=i64, shape=[8], value=4294967303)\n  %1 = mul(%x, %a)\n  %2 = mul(%x, %b)\n  "
	 "return %1, %2\n}\n", 2, 2},
	{"dtypes of what is computed",
	 "graph @f(%x: f32[8], %y: f64[8]) {\n  %1 = tanh(%x)\n  %2 = tanh(%y)\n  return %1, "
	 "%2\n}\n", 2, 2},
	{"dtypes of memory",
	 "graph @f(%x: f16[8], %y: bf16[8]) {\n  %1 = convert(%x, dtype=f32)\n  %2 = convert(%y, "
	 "dtype=f32)\n  return %1, %2\n}\n", 2, 2},
	{"dtypes that are rounded to",
	 "graph @f(%x: f32[8]) {\n  %h = convert(%x, dtype=f16)\n  %i = convert(%h, dtype=f32)\n  "
	 "%1 = neg(%i)\n  %b = convert(%x, dtype=bf16)\n  %c = convert(%b, dtype=f32)\n  %2 = "
	 "neg(%c)\n  return %1, %2\n}\n", 2, 2},
	{"bits that are looked at",
	 "graph @f(%x: f16[8], %y: bf16[8]) {\n  %1 = bitcast(%x, dtype=i16)\n  %2 = bitcast(%y, "
	 "dtype=i16)\n  return %1, %2\n}\n", 2, 2},
	{"extents", "graph @f(%x: f32[8], %y: f32[9]) {\n  %1 = tanh(%x)\n  %2 = tanh(%y)\n  "
		    "return %1, %2\n}\n", 2, 2},
	{"symbols",
	 "graph @f(%x: f32[S], %y: f32[T], %z: f32[S]) where 1 <= S, 1 <= T {\n  %1 = tanh(%x)\n  %2 = tanh(%y)\n  %3 = tanh(%z)\n  return %1, %2, %3\n}\n", 3, 2},
	{"expressions of symbols",
	 "graph @f(%x: f32[S + 1], %y: f32[S + 2], %z: f32[2*S]) where 1 <= S {\n  %1 = tanh(%x)\n "
	 " %2 = tanh(%y)\n  %3 = tanh(%z)\n  return %1, %2, %3\n}\n", 3, 3},
	{"axes in another order",
	 "graph @f(%x: f32[6, 6], %y: f32[6, 6]) {\n  %1 = tanh(%x)\n  %t = permute(%y, perm=[1, "
	 "0])\n  %2 = tanh(%t)\n  return %1, %2\n}\n", 2, 2},
	{"where a part begins",
	 "graph @f(%x: f32[9]) {\n  %a = slice(%x, start=[0], end=[4], step=[1])\n  %1 = tanh(%a)\n"
	 "  %b = slice(%x, start=[5], end=[9], step=[1])\n  %2 = tanh(%b)\n  return %1, %2\n}\n", 2, 2},
	{"steps",
	 "graph @f(%x: f32[8]) {\n  %a = slice(%x, start=[0], end=[4], step=[1])\n  %1 = tanh(%a)\n"
	 "  %b = slice(%x, start=[0], end=[8], step=[2])\n  %2 = tanh(%b)\n  return %1, %2\n}\n", 2, 2},
	{"what is reduced",
	 "graph @f(%x: f32[6, 6]) {\n  %1 = reduce(%x, kind=\"sum\", dims=[0], acc=f32)\n  %2 = "
	 "reduce(%x, kind=\"sum\", dims=[1], acc=f32)\n  return %1, %2\n}\n", 2, 2},
	{"how it is reduced",
	 "graph @f(%x: f32[6, 6]) {\n  %1 = reduce(%x, kind=\"sum\", dims=[1], acc=f32)\n  %2 = "
	 "reduce(%x, kind=\"max\", dims=[1], acc=f32)\n  return %1, %2\n}\n", 2, 2},
	{"accumulators",
	 "graph @f(%x: i32[6, 6]) {\n  %1 = reduce(%x, kind=\"sum\", dims=[1], acc=i32)\n  %2 = "
	 "reduce(%x, kind=\"sum\", dims=[1], acc=i64)\n  return %1, %2\n}\n", 2, 2},
	{"directions",
	 "graph @f(%x: f32[6, 6]) {\n  %1 = cumulative(%x, kind=\"sum\", dim=1, reverse=false)\n  "
	 "%2 = cumulative(%x, kind=\"sum\", dim=1, reverse=true)\n  return %1, %2\n}\n", 2, 2},
	{"orders; merging is stable in any case",
	 "graph @f(%x: f32[6]) {\n  %a = sort(%x, dim=0, descending=false, stable=true)\n  %1 = "
	 "get(%a, index=0)\n  %b = sort(%x, dim=0, descending=true, stable=true)\n  %2 = get(%b, "
	 "index=0)\n"
	 "  %c = sort(%x, dim=0, descending=false, stable=false)\n  %3 = get(%c, index=0)\n  "
	 "return %1, %2, %3\n}\n", 3, 2},
	{"largest and least places",
	 "graph @f(%x: f32[6, 6]) {\n  %1 = arg_reduce(%x, kind=\"max\", dim=1)\n  %2 = "
	 "arg_reduce(%x, kind=\"min\", dim=1)\n  return %1, %2\n}\n", 2, 2},
	{"what stands around",
	 "graph @f(%x: f32[6]) {\n  %z = full(dtype=f32, shape=[], value=0.0)\n  %o = "
	 "full(dtype=f32, shape=[], value=1.0)\n"
	 "  %a = pad(%x, %z, low=[1], high=[1], interior=[0])\n  %1 = neg(%a)\n  %b = pad(%x, %o, "
	 "low=[1], high=[1], interior=[0])\n  %2 = neg(%b)\n  %c = pad(%x, %z, low=[2], high=[0], "
	 "interior=[0])\n  %3 = neg(%c)\n  return %1, %2, %3\n}\n", 3, 3},
	{"indices out of range",
	 "graph @f(%x: f32[6, 3], %i: i64[4, 1]) {\n  %1 = gather(%x, %i, batch=0, axes=[0], "
	 "mode=\"check\")\n"
	 "  %2 = gather(%x, %i, batch=0, axes=[0], mode=\"clamp\")\n  %3 = gather(%x, %i, batch=0, "
	 "axes=[0], mode=\"fill\")\n  return %1, %2, %3\n}\n", 3, 3},
	{"ways to write; both copy what they write into before",
	 "graph @f(%x: f32[6], %i: i64[4, 1], %u: f32[4]) {\n"
	 "  %1 = scatter(%x, %i, %u, batch=0, axes=[0], combine=\"add\", mode=\"clamp\", "
	 "unique=false, sorted=false)\n"
	 "  %2 = scatter(%x, %i, %u, batch=0, axes=[0], combine=\"max\", mode=\"clamp\", "
	 "unique=false, sorted=false)\n  return %1, %2\n}\n", 4, 3},
};

/* The kernels of a graph, lowered for a target as they come. */
static uint32_t distinct(const Case *c, Ctx *ctx, uint32_t *nkernel)
{
	Ir *ir = ir_new(ctx);
	Graph *g = graph_parse(ir, c->graph, c->what);
	LowerOptions o = {.no_fusion = false};
	DistinctKernels d;
	uint32_t n = 0;
	assert_true(g && graph_verify(g));
	Lowered *l = lower_graph(g, &o);
	assert_non_null(l);
	distinct_init(&d, l, NULL, target_find("x86-64-v3"));
	*nkernel = l->steps.step.n;
	for (uint32_t k = 0; k < l->steps.step.n; k++) {
		bool fresh;
		uint32_t id = distinct_key(&d, l->steps.step.data[k].kernel, &fresh);
		n += fresh;
		assert_true(fresh ? id == n : id <= n);
		assert_int_equal(distinct_key(&d, l->steps.step.data[k].kernel, &fresh), id);
		assert_false(fresh);
	}
	return n;
}

static bool told_apart(const Case *c)
{
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	if (setjmp(ctx->unwind))
		fail_msg("%s: an internal error", c->what);
	uint32_t nkernel, n = distinct(c, ctx, &nkernel);
	ctx_free(ctx);
	if (nkernel != c->nkernel || n != c->distinct)
		print_error("%s: %u kernels, %u of them different\n", c->what, nkernel, n);
	return nkernel == c->nkernel && n == c->distinct;
}

static void tells_kernels_apart(void **state)
{
	(void)state;
	uint32_t wrong = 0;
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
		wrong += !told_apart(&cases[c]);
	assert_int_equal(wrong, 0);
}

/* ---- the same kernel, of other buffers ---- */

typedef enum {
	SAME,
	IS_CONST,
	IS_FIXED,
	IS_DONATED,
	OTHER_DTYPE,
	OTHER_LAYOUT,
	OTHER_ORDER,
	PADDED,
	BORDER_LOW,
	BORDER_HIGH,
	CHANGES
} Change;

static void change(Lowered *l, BufId id, Change c)
{
	Buffer *b = buf_of(l, id);
	Sym *dim = ARENA_ARRAY(l->ir->ctx->arena, Sym, 2),
	    *at = ARENA_ARRAY(l->ir->ctx->arena, Sym, 2);
	dim[0] = dim[1] = sym_int(l->ir->syms, 8);
	at[0] = at[1] = sym_int(l->ir->syms, 1);
	b->kind = c == IS_CONST || c == IS_FIXED ? BUF_CONST : BUF_TEMP;
	b->layout_fixed = c == IS_FIXED;
	b->donated = c == IS_DONATED;
	b->dtype = c == OTHER_DTYPE ? DT_f16 : DT_f32;
	b->layout = layout_row_major(l->ir, 2, dim);
	if (c == OTHER_ORDER)
		b->layout = layout_permuted(l->ir, 2, dim, (uint32_t[]){1, 0});
	if (c == PADDED)
		b->layout.dim[1].padded = sym_int(l->ir->syms, 16);
	if (c == OTHER_LAYOUT) { /* panels of 4 columns */
		Sym two = sym_int(l->ir->syms, 2), four = sym_int(l->ir->syms, 4);
		b->layout =
			(Layout){3, {{1, 4, two, two}, {0, 1, dim[0], dim[0]}, {1, 1, four, four}}};
	}
	b->inner_lo = c == BORDER_LOW || c == BORDER_HIGH ? at : NULL;
	b->inner_hi = c == BORDER_HIGH ? dim : c == BORDER_LOW ? at : NULL;
}

static void tells_buffers_apart(void **state)
{
	(void)state;
	static const char graph[] = "graph @f(%x: f32[8, 8]) {\n  %1 = tanh(%x)\n  return %1\n}\n";
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	if (setjmp(ctx->unwind))
		fail_msg("an internal error");
	Lowered *l = lower_graph(graph_parse(ir_new(ctx), graph, "buffers"), &(LowerOptions){0});
	const Kernel *k = l->steps.step.data[0].kernel;
	DistinctKernels d;
	distinct_init(&d, l, NULL, target_find("x86-64-v3"));
	BufId x = {0};
	for (uint32_t i = 1; i < k->kx.n; i++)
		if (k->kx.data[i].kind == KX_LOAD)
			x = k->kx.data[i].buf;
	for (uint32_t round = 0; round < 2; round++)
		for (Change c = SAME; c < CHANGES; c++) {
			bool fresh;
			change(l, x, c);
			assert_int_equal(distinct_key(&d, k, &fresh), c + 1);
			assert_int_equal(fresh, round == 0);
		}
	ctx_free(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(tells_kernels_apart),
					   cmocka_unit_test(tells_buffers_apart)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
