/* Blocks with an inverse: what is saved of chains of them, and that gradients are those of the
 * graph without marks, to within rounding. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "ir/build/text.h"
#include "ir/build/verify.h"
#include "ir/interp/interp.h"
#include "ir/op/op.h"
#include "passes/pass.h"
#include "transform/partition/partition.h"
#include "transform/transform.h"
#include "tests/unit/ir_fixture.h"

enum { MOST = 80 };

/* ---- models ---- */

#define CONTRACT "batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f64"
#define T "f64[4, 6]"
#define W "f64[6, 6]"

/* out = tanh(in w) */
static void layer(Text *t, const char *prefix, const char *out, const char *in, const char *w)
{
	text_printf(t,
		    "  %%%s%s.p = contract(%%%s, %%%s, " CONTRACT ") : " T
		    "\n  %%%s%s = tanh(%%%s%s.p) : " T "\n",
		    prefix, out, in, w, prefix, out, prefix, out);
}

typedef enum { COUPLED, PLAIN, WRONG } Kind;

/* Block k: y0 = x0 + tanh(x1 w), y1 = x1 + tanh(y0 v), of %z<k>.0 and .1 makes those of k + 1. */
static void block(Text *t, uint32_t k, Kind kind)
{
	char p[20], in0[40], in1[40], y0[40];
	snprintf(p, sizeof p, "b%u.", k);
	snprintf(in0, sizeof in0, kind == PLAIN ? "z%u.0" : "b%u.x0", k);
	snprintf(in1, sizeof in1, kind == PLAIN ? "z%u.1" : "b%u.x1", k);
	snprintf(y0, sizeof y0, kind == PLAIN ? "z%u.0" : "b%u.y0", kind == PLAIN ? k + 1 : k);
	for (int j = 0; j < 2 && kind != PLAIN; j++)
		text_printf(t, "  %%b%u.x%d = checkpoint(%%z%u.%d, at=\"begin\") : " T "\n", k, j,
			    k, j);
	layer(t, p, "f", in1, "w");
	text_printf(t, "  %%%s = add(%%%s, %%%sf) : " T "\n", y0, in0, p);
	layer(t, p, "g", y0, "v");
	if (kind == PLAIN) {
		text_printf(t, "  %%z%u.1 = add(%%%s, %%%sg) : " T "\n", k + 1, in1, p);
		return;
	}
	text_printf(t, "  %%%sy1 = add(%%%s, %%%sg) : " T "\n", p, in1, p);
	text_printf(t,
		    "  %%%sb = invertible([%%%sy0, %%%sy1], [%%%sx0, %%%sx1], [%%w, %%v], "
		    "inverse=graph @undo(%%y0: " T ", %%y1: " T ", %%w: " W ", %%v: " W ") {\n",
		    p, p, p, p, p);
	layer(t, "", "g", "y0", kind == WRONG ? "w" : "v");
	text_printf(t, "  %%x1 = sub(%%y1, %%g) : " T "\n");
	layer(t, "", "f", "x1", "w");
	text_printf(t,
		    "  %%x0 = sub(%%y0, %%f) : " T
		    "\n  return %%x0, %%x1\n  }, name=\"block%u\") : (" T ", " T ")\n",
		    k);
	for (int j = 0; j < 2; j++)
		text_printf(t, "  %%z%u.%d = get(%%%sb, index=%d) : " T "\n", k + 1, j, p, j);
}

/* Blocks between functions of the input and of what comes out. */
static const char *chain(uint32_t n, Kind kind)
{
	Text t;
	text_init(&t, ctx->arena);
	text_printf(&t, "graph @chain(%%x: " T ", %%w: " W ", %%v: " W
			") {\n  %%z0.0 = sin(%%x) : " T "\n  %%z0.1 = exp(%%x) : " T "\n");
	for (uint32_t k = 0; k < n; k++)
		block(&t, k, kind);
	text_printf(&t,
		    "  %%s = mul(%%z%u.0, %%z%u.1) : " T "\n  %%y = sin(%%s) : " T
		    "\n  return %%y\n}\n",
		    n, n);
	return t.data;
}

/* ---- splitting and running ---- */

typedef struct {
	Graph *whole, *part[2];
	uint32_t nin, nout;
} Split;

static Split split_graph(Graph *g, double budget)
{
	Split s = {.whole = transform_vjp(g, &(Wrt){0}), .nin = g->input.n, .nout = g->output.n};
	if (!s.whole || !transform_partition(graph_clone(s.whole), s.nin, s.nout, budget, s.part))
		fail_msg("%s", ctx->last ? ctx->last->text : "");
	return s;
}

static Split split(const char *text, double budget)
{
	return split_graph(parsed(text), budget);
}

static uint32_t nsaved(const Split *s)
{
	return s->part[0]->output.n - s->nout - 1;
}

static const char *text_of(const Graph *g)
{
	Text t;
	text_init(&t, ctx->arena);
	graph_print(g, &t);
	return t.data;
}

/* How often an operator is in a graph, which has no marks and no bodies. */
static uint32_t count(const Graph *g, Op op)
{
	uint32_t n = 0;
	for (Node at = g->first; at.i; at = node_next(g, at)) {
		assert_false(node_op(g, at) == OP_checkpoint || node_op(g, at) == OP_invertible);
		n += node_op(g, at) == op;
	}
	return n;
}

static Tensor input_of(const Graph *g, uint32_t k)
{
	Node n = g->input.data[k].node;
	Tensor t = {.dtype = node_dtype(g, n), .rank = node_rank(g, n)};
	for (uint32_t d = 0; d < t.rank; d++)
		assert_true(sym_is_const(ir->syms, node_dim(g, n, d), &t.dim[d]));
	t.data = arena_alloc(ctx->arena, tensor_bytes(&t));
	for (int64_t i = 0; i < tensor_numel(&t); i++)
		tensor_set_f64(&t, i, (double)((i * 7 + k * 5) % 23) / 40 - 0.25);
	return t;
}

static void run(Graph *g, const Tensor *in, Tensor *out)
{
	if (!interp(ctx, g, in, g->input.n, out, g->output.n, ctx->arena))
		fail_msg("%s", ctx->last ? ctx->last->text : "");
}

static double distance(const Tensor *a, const Tensor *b)
{
	double most = 0;
	assert_int_equal(tensor_numel(a), tensor_numel(b));
	for (int64_t i = 0; i < tensor_numel(a); i++) {
		double d =
			fabs(tensor_f64(a, i) - tensor_f64(b, i)) / fmax(1, fabs(tensor_f64(b, i)));
		most = d > most || isnan(d) ? d : most;
	}
	return most;
}

/* How far both parts together are from a graph of the same inputs and outputs. */
static double apart(const Split *s, Graph *want)
{
	Tensor in[MOST], all[MOST], first[MOST], second[MOST], given[2 * MOST];
	uint32_t saved = nsaved(s) + 1, n = s->whole->input.n, ngiven = 0;
	double most = 0;
	assert_int_equal(want->input.n, n);
	assert_true(n <= MOST && s->part[0]->output.n <= MOST);
	for (uint32_t k = 0; k < n; k++)
		in[k] = input_of(want, k);
	run(want, in, all);
	run(s->part[0], in, first);
	for (uint32_t k = 0; k < s->nin; k++)
		given[ngiven++] = in[k];
	for (uint32_t k = 0; k < saved; k++)
		given[ngiven++] = first[s->nout + k];
	for (uint32_t k = s->nin; k < n; k++)
		given[ngiven++] = in[k];
	run(s->part[1], given, second);
	for (uint32_t k = 0; k < want->output.n; k++) {
		double d = distance(k < s->nout ? &first[k] : &second[k - s->nout], &all[k]);
		most = d > most || isnan(d) ? d : most;
	}
	return most;
}

static const double CLOSE = 1e-11;

static void is_close(double d)
{
	if (!(d <= CLOSE))
		fail_msg("apart by %g", d);
}

/* ---- tests ---- */

/* What is saved does not depend on how many there are; backwards a block computes its two layers
 * once, for both purposes. */
static void test_chain(void **state)
{
	(void)state;
	uint32_t saved = 0;
	for (uint32_t n = 2; n <= 16; n *= 8) {
		Split s = split(chain(n, COUPLED), -1), plain = split(chain(n, PLAIN), -1);
		is_close(apart(&s, transform_vjp(parsed(chain(n, PLAIN)), &(Wrt){0})));
		assert_int_equal(count(s.part[0], OP_contract), 2 * n);
		assert_int_equal(count(plain.part[0], OP_contract), 2 * n);
		if (saved)
			assert_int_equal(nsaved(&s), saved);
		saved = nsaved(&s);
		assert_int_equal(saved, 2);
		assert_true(nsaved(&plain) >= 2 * n);
		PassCtx c = {0};
		pass_cse(s.part[1], &c);
		assert_int_equal(count(s.part[1], OP_tanh), 2 * n);
	}
	for (double budget = 0; budget <= 1; budget += 0.5)
		is_close(apart(&(Split[]){split(chain(3, COUPLED), budget)}[0],
			       transform_vjp(parsed(chain(3, PLAIN)), &(Wrt){0})));
}

static void expands(Graph *g)
{
	PassCtx c = {0};
	pass_decompose(g, &c);
	pass_dce(g, &c);
}

/* Where nobody splits a graph the marks are nothing, in every transform. */
static void test_plain(void **state)
{
	(void)state;
	Graph *g[2], *vjp[2], *twice[2], *jvp[2], *batch[2], *both[2];
	bool in[3] = {true, false, true}, ct[4] = {true, false, true, false};
	for (int k = 0; k < 2; k++) {
		g[k] = parsed(chain(3, k ? PLAIN : COUPLED));
		vjp[k] = transform_vjp(g[k], &(Wrt){0});
		twice[k] = transform_vjp(vjp[k], &(Wrt){0});
		jvp[k] = transform_jvp(vjp[k], &(Wrt){0});
		batch[k] = transform_vmap(g[k], in, sym_int(ir->syms, 3), RANDOM_ERROR);
		both[k] = transform_vmap(vjp[k], ct, sym_int(ir->syms, 2), RANDOM_ERROR);
		assert_true(vjp[k] && twice[k] && jvp[k] && batch[k] && both[k]);
	}
	Graph **const made[] = {g, vjp, twice, jvp, batch, both};
	for (size_t k = 0; k < sizeof made / sizeof *made; k++) {
		Tensor x[MOST], y[2][MOST];
		assert_non_null(strstr(text_of(made[k][0]), "invertible("));
		for (uint32_t j = 0; j < made[k][1]->input.n; j++)
			x[j] = input_of(made[k][1], j);
		run(made[k][0], x, y[0]);
		run(made[k][1], x, y[1]);
		for (uint32_t j = 0; j < made[k][1]->output.n; j++)
			is_close(distance(&y[0][j], &y[1][j]));
		expands(made[k][0]);
		expands(made[k][1]);
		assert_int_equal(count(made[k][0], OP_contract), count(made[k][1], OP_contract));
	}
}

/* Transforms, then two entries; members of a batch differ in all, or in parameters only. */
static void test_split_after(void **state)
{
	(void)state;
	for (int k = 1; k < 8; k++) {
		const bool in[3] = {k & 1, k & 2, k & 4};
		uint32_t saved = 0;
		for (uint32_t n = 2; n <= 6; n += 4) {
			Graph *g[2];
			for (int j = 0; j < 2; j++)
				g[j] = transform_vmap(parsed(chain(n, j ? PLAIN : COUPLED)), in,
						      sym_int(ir->syms, 3), RANDOM_ERROR);
			Split s = split_graph(g[0], -1);
			is_close(apart(&s, transform_vjp(g[1], &(Wrt){0})));
			if (saved)
				assert_int_equal(nsaved(&s), saved);
			saved = nsaved(&s);
		}
		assert_true(saved <= 4);
	}
	for (int k = 0; k < 2; k++) {
		Graph *g[2];
		for (int j = 0; j < 2; j++) {
			g[j] = parsed(chain(3, j ? PLAIN : COUPLED));
			g[j] = k ? transform_jvp(g[j], &(Wrt){0}) : transform_vjp(g[j], &(Wrt){0});
		}
		is_close(apart(&(Split[]){split_graph(g[0], -1)}[0],
			       transform_vjp(g[1], &(Wrt){0})));
	}
}

static double inverse_error(Kind kind)
{
	Graph *g = transform_check_inverses(parsed(chain(2, kind)));
	Tensor in[MOST], out[MOST];
	double most = 0;
	assert_int_equal(g->output.n, 5);
	assert_string_equal(g->output.data[4].name, "inverse.block1.1");
	for (uint32_t k = 0; k < g->input.n; k++)
		in[k] = input_of(g, k);
	run(g, in, out);
	for (uint32_t k = 1; k < g->output.n; k++)
		most = fmax(most, tensor_f64(&out[k], 0));
	return most;
}

static void test_wrong(void **state)
{
	(void)state;
	is_close(inverse_error(COUPLED));
	assert_true(inverse_error(WRONG) > 0.01);
	Split s = split(chain(2, WRONG), -1);
	assert_true(apart(&s, s.whole) > 0.001);
	assert_null(transform_check_inverses(parsed(chain(2, PLAIN))));
	assert_non_null(strstr(ctx->last->text, "no block with an inverse"));
}

/* %a is scaled by its own mean, which the inverse reads: what it needs of the inside is saved, and
 * so is what comes out. What is handed on as it is is an input of the next block, too. */
static const char *const statistics =
	"graph @s(%x: f64[4, 6], %w: f64[6, 6]) {\n"
	"  %e = exp(%x) : f64[4, 6]\n"
	"  %a = checkpoint(%e, at=\"begin\") : f64[4, 6]\n"
	"  %m = reduce(%a, kind=\"sum\", dims=[0, 1], acc=f64) : f64[]\n"
	"  %n = broadcast(%m, shape=[4, 6], map=[]) : f64[4, 6]\n"
	"  %d = div(%a, %n) : f64[4, 6]\n"
	"  %s = sin(%d) : f64[4, 6]\n"
	"  %q = mul(%d, %s) : f64[4, 6]\n"
	"  %o = add(%d, %q) : f64[4, 6]\n"
	"  %b = invertible([%d, %o], [%a], [%m], inverse=graph @undo(%d: f64[4, 6], %o: f64[4, 6], "
	"%m: f64[]) {\n"
	"    %n = broadcast(%m, shape=[4, 6], map=[]) : f64[4, 6]\n"
	"    %a = mul(%d, %n) : f64[4, 6]\n"
	"    return %a\n"
	"  }, name=\"norm\") : (f64[4, 6], f64[4, 6])\n"
	"  %y0 = get(%b, index=0) : f64[4, 6]\n"
	"  %y1 = get(%b, index=1) : f64[4, 6]\n"
	"  %c = checkpoint(%y0, at=\"begin\") : f64[4, 6]\n"
	"  %t = tanh(%y1) : f64[4, 6]\n"
	"  %p = contract(%t, %w, batch_x=[], batch_y=[], sum_x=[1], sum_y=[0], acc=f64) : f64[4, "
	"6]\n"
	"  %f = add(%c, %p) : f64[4, 6]\n"
	"  %k = invertible([%f], [%c], [%p, %e], inverse=graph @undo(%f: f64[4, 6], %p: f64[4, 6], "
	"%e: f64[4, 6]) {\n"
	"    %c = sub(%f, %p) : f64[4, 6]\n"
	"    return %c\n"
	"  }, name=\"shift\") : (f64[4, 6])\n"
	"  %z = get(%k, index=0) : f64[4, 6]\n"
	"  %r = sin(%z) : f64[4, 6]\n"
	"  return %r\n}\n";

static void test_constants(void **state)
{
	(void)state;
	Split s = split(statistics, -1);
	is_close(apart(&s, s.whole));
	is_close(apart(&(Split[]){split(statistics, 0)}[0], s.whole));
	assert_true(nsaved(&s) <= 5);
}

/* Products of complex numbers, and quotients backwards: regions of them are not marked, but what
 * goes in is not saved either. */
static const char *rotations(uint32_t n, bool marked)
{
	Text t;
	text_init(&t, ctx->arena);
	text_printf(&t, "graph @c(%%r: f64[4, 2], %%s: f64[4, 2]) {\n  %%x = view_complex(%%r) : "
			"c128[4]\n  %%w = view_complex(%%s) : c128[4]\n"
			"  %%z0 = mul(%%x, %%x) : c128[4]\n");
	for (uint32_t k = 0; k < n; k++) {
		if (!marked) {
			text_printf(&t, "  %%z%u = mul(%%z%u, %%w) : c128[4]\n", k + 1, k);
			continue;
		}
		text_printf(&t,
			    "  %%a%u = checkpoint(%%z%u, at=\"begin\") : c128[4]\n  %%y%u = "
			    "mul(%%a%u, %%w) : c128[4]\n",
			    k, k, k, k);
		text_printf(&t,
			    "  %%b%u = invertible([%%y%u], [%%a%u], [%%w], inverse=graph @u(%%y: "
			    "c128[4], %%w: c128[4]) {\n",
			    k, k, k);
		text_printf(&t,
			    "    %%x = div(%%y, %%w) : c128[4]\n    return %%x\n  }, name=\"b\") : "
			    "(c128[4])\n  %%z%u = get(%%b%u, index=0) : c128[4]\n",
			    k + 1, k);
	}
	text_printf(&t,
		    "  %%p = mul(%%z%u, %%z%u) : c128[4]\n  %%y = view_real(%%p) : f64[4, 2]\n  "
		    "return %%y\n}\n",
		    n, n);
	return t.data;
}

static void test_complex(void **state)
{
	(void)state;
	for (uint32_t n = 2; n <= 6; n += 4) {
		Split s = split(rotations(n, true), -1);
		is_close(apart(&s, transform_vjp(parsed(rotations(n, false)), &(Wrt){0})));
		assert_int_equal(nsaved(&s), 1);
	}
}

/* In a branch, which nobody divides: members of a batch take either, and what comes behind is in no
 * region. */
static const char *branches(bool marked)
{
	static const char *const block =
		"    %a = checkpoint(%x, at=\"begin\") : f64[4]\n    %y = mul(%a, %w) : f64[4]\n"
		"    %n = eq(%y, %y) : bool[4]\n    assert(%n, message=\"no number\")\n"
		"    %b = invertible([%y], [%a], [%w], inverse=graph @undo(%y: f64[4], %w: f64[4]) "
		"{\n      %x = div(%y, %w) : f64[4]\n"
		"      return %x\n    }, name=\"b\") : (f64[4])\n    %z = get(%b, index=0) : "
		"f64[4]\n";
	Text t;
	text_init(&t, ctx->arena);
	text_printf(&t,
		    "graph @g(%%x: f64[4], %%w: f64[4]) {\n  %%s = reduce(%%x, kind=\"sum\", "
		    "dims=[0], acc=f64) : f64[]\n"
		    "  %%zero = full(value=0.0, shape=[], dtype=f64) : f64[]\n  %%p = lt(%%s, "
		    "%%zero) : bool[]\n"
		    "  %%c = cond(%%p, [%%x, %%w], yes=graph @yes(%%x: f64[4], %%w: f64[4]) {\n%s  "
		    "  return %%z\n  }, no=graph @no(%%x: f64[4], "
		    "%%w: f64[4]) {\n    %%e = exp(%%x) : f64[4]\n    return %%e\n  }) : "
		    "(f64[4])\n  %%o = get(%%c, index=0) : f64[4]\n"
		    "  %%r = sin(%%o) : f64[4]\n  %%t = aten.softmax.int(%%r, dim=0) : f64[4]\n  "
		    "return %%t\n}\n",
		    marked ? block : "    %z = mul(%x, %w) : f64[4]\n");
	return t.data;
}

static void test_branches(void **state)
{
	(void)state;
	const bool in[2] = {true, false};
	for (int batched = 0; batched < 2; batched++) {
		Graph *g[2];
		Split s[2];
		for (int k = 0; k < 2; k++) {
			g[k] = parsed(branches(k));
			g[k] = batched ? transform_vmap(g[k], in, sym_int(ir->syms, 5),
							RANDOM_ERROR)
				       : g[k];
			s[k] = split_graph(g[k], -1);
		}
		is_close(apart(&s[1], s[0].whole));
		assert_true(nsaved(&s[1]) >= 3); /* one if the region went on to the end */
	}
}

/* ---- random graphs ---- */

static uint64_t seed = 1;

static uint32_t below(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

/* One of the values before k, most often a late one. */
static const char *value(char *name, uint32_t k)
{
	uint32_t from = k - (k < 6 || below(8) == 0 ? below(k + 1) : below(6));
	sprintf(name, from ? "v%u" : "x", from);
	return name;
}

/* Blocks of values that are anywhere, each of which has what is made of two others for its input:
 * their inverses compute that again, of other blocks' inputs and results too. */
static const char *random_graph(uint32_t nodes)
{
	static const char *const one[] = {
		"sin(%%%s)", "tanh(%%%s)", "checkpoint(%%%s, at=\"begin\")",
		"checkpoint(%%%s, at=\"end\")", "checkpoint(%%%s, at=\"keep\")"};
	struct {
		uint32_t at;
		char a[12], b[12];
	} product[100] = {{0}};
	uint32_t nproduct = 0;
	Text t;
	text_init(&t, ctx->arena);
	text_printf(&t, "graph @r(%%x: f64[4]) {\n");
	for (uint32_t k = 0; k < nodes; k++) {
		char a[12], b[12], c[12];
		uint32_t which = below(10);
		if (which < 3 && nproduct) {
			uint32_t of = below(nproduct);
			text_printf(&t,
				    "  %%b%u = invertible([%%%s], [%%v%u], [%%%s, %%%s], "
				    "inverse=graph @u(%%y: f64[4], %%a: f64[4], %%b: f64[4]) {\n"
				    "    %%p = mul(%%a, %%b) : f64[4]\n    %%z = sub(%%y, %%y) : "
				    "f64[4]\n    %%r = add(%%p, %%z) : f64[4]\n    return %%r\n"
				    "  }, name=\"b%u\") : (f64[4])\n  %%v%u = get(%%b%u, index=0) "
				    ": f64[4]\n",
				    k + 1, value(a, k), product[of].at, product[of].a,
				    product[of].b, k, k + 1, k + 1);
		} else if (which < 7) {
			text_printf(&t, "  %%v%u = mul(%%%s, %%%s) : f64[4]\n", k + 1, value(a, k),
				    value(b, k));
			product[nproduct].at = k + 1;
			strcpy(product[nproduct].a, a);
			strcpy(product[nproduct++].b, b);
		} else {
			text_printf(&t, "  %%v%u = ", k + 1);
			text_printf(&t, one[below(sizeof one / sizeof *one)], value(c, k));
			text_printf(&t, " : f64[4]\n");
		}
	}
	text_printf(&t, "  return %%v%u, %%v%u\n}\n", nodes, nodes - 1 - below(4));
	return t.data;
}

static void test_random(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < 600; k++) {
		const char *text = random_graph(8 + below(60));
		Graph *whole = transform_vjp(parsed(text), &(Wrt){0});
		for (int budget = -1; budget <= 1; budget++) {
			Split s = split(text, budget / 2.0);
			double d = apart(&s, whole);
			if (!(d <= CLOSE))
				fail_msg("apart by %g:\n%s", d, text);
		}
		teardown(state);
		setup(state);
	}
}

static void refuses(const char *text, const char *message)
{
	ctx->last = NULL;
	assert_false(graph_verify(parsed(text)));
	if (!ctx->last || !strstr(ctx->last->text, message))
		fail_msg("expected \"%s\", got: %s", message,
			 ctx->last ? ctx->last->text : "nothing");
}

#define BLOCK(body)                                                                                \
	"graph @g(%x: f64[4], %w: f64[4]) {\n  %a = checkpoint(%x, at=\"begin\") : f64[4]\n  %y "  \
	"= mul(%a, %w) : f64[4]\n"                                                                 \
	"  %b = invertible([%y], [%a], [%w], inverse=graph @undo" body                             \
	", name=\"scale\") : (f64[4])\n  %z = get(%b, index=0) : f64[4]\n  return %z\n}\n"

static void test_refused(void **state)
{
	(void)state;
	assert_true(graph_verify(parsed(BLOCK(
		"(%y: f64[4], %w: f64[4]) {\n    %x = div(%y, %w) : f64[4]\n    return %x\n  }"))));
	refuses(BLOCK("(%y: f64[4]) {\n    return %y\n  }"),
		"block \"scale\": its inverse takes 1 values, expected 2: the block's 1 results "
		"and 1 more");
	refuses(BLOCK("(%y: f64[4], %w: f64[4]) {\n    return %y, %w\n  }"),
		"block \"scale\": its inverse gives 2 values, and the block takes 1");
	refuses(BLOCK("(%y: f64[5], %w: f64[4]) {\n    return %w\n  }"),
		"block \"scale\": operand 0 of its inverse is f64[5], expected f64[4]");
	refuses(BLOCK("(%y: f64[4], %w: f64[4]) {\n    %x = convert(%y, dtype=f32) : f32[4]\n    "
		      "return %x\n  }"),
		"block \"scale\": result 0 of its inverse is f32[4], and operand 0 of the block "
		"f64[4]");
	refuses(BLOCK("(%y: f64[4], %w: f64[4]) {\n    %d = aten.dropout(%y, p=0.5, train=true) : "
		      "f64[4]\n    %x = div(%d, %w) : f64[4]\n    return %x\n  }"),
		"block \"scale\": its inverse draws random numbers of no key");
}

/* In time, and without recursion. */
static void test_deep(void **state)
{
	(void)state;
	double seconds[2] = {0};
	for (uint32_t k = 0; k < 2; k++) {
		uint32_t n = k ? 6400 : 800;
		Graph *g = parsed(chain(n, COUPLED));
		clock_t begin = clock();
		Split s = split_graph(g, -1);
		seconds[k] = (double)(clock() - begin) / CLOCKS_PER_SEC;
		print_message("%u blocks: %u saved, %.2f s\n", n, nsaved(&s), seconds[k]);
		assert_int_equal(nsaved(&s), 2);
	}
	assert_true(seconds[1] < 20 * seconds[0] + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_chain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_plain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_split_after, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrong, setup, teardown),
		cmocka_unit_test_setup_teardown(test_constants, setup, teardown),
		cmocka_unit_test_setup_teardown(test_complex, setup, teardown),
		cmocka_unit_test_setup_teardown(test_branches, setup, teardown),
		cmocka_unit_test_setup_teardown(test_random, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_deep, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
