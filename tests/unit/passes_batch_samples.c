/* Batches of graphs (vmap): of a sample of every op, with every choice of operands that have a
 * batch, the results are those of one call for each member; twice, with batches of nothing and of
 * one, of sizes as numbers and as symbols, as every dimension of operands and results; of branches
 * and loops in which members go different ways; and what is refused. OP=name in the environment:
 * that op alone, its graphs printed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/build/text.h"
#include "ir/interp/interp.h"
#include "ops/user/userop.h"
#include "transform/transform.h"
#include "tests/help/sample.h"

enum { MAX_RESULTS = 16 };

/* ---- failures: all of them are told before the test fails ---- */

typedef struct Case {
	Op op;
	uint32_t k; /* which sample */
	SampleForm form;
	uint32_t choice;      /* of operands, a bit each */
	int64_t outer, inner; /* extents of the batches; outer < 0: one batch */
	int32_t shift;        /* below 0: batches come first; else where they stand (place_of) */
	bool second;          /* it is the outer one's turn */
	bool (*check)(struct Case *, const Sample *);
	Graph *(*derive)(const Graph *, const Wrt *);
	Ctx *ctx;
	uint32_t *failures;
} Case;

static bool bad(const Case *c, const char *what)
{
	Text t;
	text_init(&t, c->ctx->arena);
	ctx_print(c->ctx, &t);
	print_error("%s %u%s, operands %x, batch %lld %lld, dimensions %d: %s\n%s", op_name(c->op),
		    c->k, c->form.symbolic ? " symbolic" : "", c->choice, (long long)c->outer,
		    (long long)c->inner, c->shift, what, t.n ? t.data : "");
	++*c->failures;
	return false;
}

/* ---- values ---- */

/* Member j of a batch: t with its elements moved, so that they stay in range; conditions of
 * branches differ. */
static void member(const Case *c, const Tensor *t, int64_t j, void *to)
{
	int64_t n = tensor_numel(t), size = dtype_size(t->dtype);
	for (int64_t i = 0; i < n; i++)
		memcpy((char *)to + i * size, (const char *)t->data + (i + j) % n * size,
		       (size_t)size);
	if (c->op == OP_cond && t->dtype == DT_bool && j % 2)
		*(uint8_t *)to ^= 1;
}

static Tensor batch_of(const Case *c, const Tensor *t, int64_t extent, int64_t first)
{
	Tensor y = {.dtype = t->dtype, .rank = t->rank + 1, .dim = {extent}};
	memcpy(y.dim + 1, t->dim, t->rank * sizeof *t->dim);
	y.data = arena_alloc(c->ctx->arena, tensor_bytes(&y) + 64);
	for (int64_t j = 0; j < extent; j++)
		member(c, t, first + j, (char *)y.data + (size_t)j * tensor_bytes(t));
	return y;
}

static Tensor part_of(const Tensor *t, int64_t j)
{
	Tensor y = {.dtype = t->dtype, .rank = t->rank - 1};
	for (uint32_t k = 0; k < y.rank; k++)
		y.dim[k] = t->dim[k + 1];
	y.data = (char *)t->data + (size_t)j * tensor_bytes(&y);
	return y;
}

/* Dimension `from` becomes `to`. */
static Tensor moved(const Case *c, const Tensor *t, uint32_t from, uint32_t to)
{
	if (from == to)
		return *t;
	Tensor y = *t;
	int64_t size = dtype_size(t->dtype), stride[MAX_RANK], at[MAX_RANK] = {0}, step = size;
	for (uint32_t d = t->rank; d-- > 0; step *= t->dim[d])
		stride[d] = step;
	for (int32_t d = (int32_t)from, way = from < to ? 1 : -1; d != (int32_t)to; d += way) {
		int64_t s = stride[d], n = y.dim[d];
		stride[d] = stride[d + way], stride[d + way] = s;
		y.dim[d] = y.dim[d + way], y.dim[d + way] = n;
	}
	y.data = arena_alloc(c->ctx->arena, tensor_bytes(&y) + 64);
	for (int64_t i = 0, n = tensor_numel(&y); i < n; i++) {
		const char *x = t->data;
		for (uint32_t d = 0; d < y.rank; d++)
			x += at[d] * stride[d];
		memcpy((char *)y.data + i * size, x, (size_t)size);
		for (uint32_t d = y.rank; d-- > 0 && ++at[d] == y.dim[d];)
			at[d] = 0;
	}
	return y;
}

static bool near(const Tensor *a, const Tensor *b)
{
	Tensor x = tensor_flat_real(a), y = tensor_flat_real(b);
	if (a->dtype != b->dtype || a->rank != b->rank ||
	    memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) != 0)
		return false;
	double largest = 0; /* sums that are 0 are so but for rounding */
	for (int64_t i = 0, n = tensor_numel(&x); i < n; i++)
		largest = fmax(largest, fabs(tensor_f64(&x, i)));
	for (int64_t i = 0, n = tensor_numel(&x); i < n; i++) {
		double v = tensor_f64(&x, i), w = tensor_f64(&y, i);
		if (!(isnan(v) && isnan(w)) && v != w &&
		    !(fabs(v - w) <= 1e-6 * (fabs(v) + fabs(w)) + 1e-14 * largest))
			return false;
	}
	return true;
}

/* ---- one choice of one sample ---- */

/* Of value k, which has so many dimensions without the batch: as `shift` goes on, each is at every
 * place. */
static uint32_t place_of(const Case *c, uint32_t k, uint32_t rank)
{
	return c->shift < 0 ? 0 : ((uint32_t)c->shift + k + c->second) % (rank + 1);
}

static uint32_t place_of_input(const Case *c, const Graph *g, uint32_t k)
{
	return place_of(c, k, node_rank(g, g->input.data[k].node));
}

static uint32_t place_of_output(const Case *c, const Graph *g, uint32_t k)
{
	return place_of(c, k + 1, node_rank(g, g->output.data[k].node));
}

/* Every third is counted from behind. */
static int32_t written(uint32_t place, uint32_t rank)
{
	return (int32_t)place - (place % 3 == 1 ? (int32_t)rank + 1 : 0);
}

static Graph *batched(const Case *c, Graph *g, const Sample *s, int64_t extent, const char *name)
{
	bool in[SAMPLE_INPUTS];
	int32_t in_dim[SAMPLE_INPUTS], out_dim[MAX_RESULTS];
	for (uint32_t k = 0; k < s->nin; k++) {
		in[k] = c->choice >> k & 1;
		in_dim[k] = written(place_of_input(c, g, k), node_rank(g, g->input.data[k].node));
	}
	for (uint32_t k = 0; k < g->output.n; k++)
		out_dim[k] =
			written(place_of_output(c, g, k), node_rank(g, g->output.data[k].node));
	SymTab *t = graph_syms(g);
	Sym size =
		c->form.symbolic ? sym_var(t, name, SYMVAR_SIZE, 0, SYM_INF) : sym_int(t, extent);
	Graph *y = transform_vmap_at(g, in, size, RANDOM_SAME,
				     c->shift < 0 ? NULL : &(BatchDims){in_dim, out_dim});
	Text text;
	text_init(&text, c->ctx->arena);
	if (y && getenv("OP")) {
		graph_print(y, &text);
		print_message("%s", text.data);
	}
	return y;
}

/* What one call refuses is not compared. Sizes that depend on data must be the same. */
typedef enum { EQUAL_SIZES, OTHER_SIZES, REFUSED } Loop;

static Loop loop_over(const Case *c, Graph *plain, const Tensor *in, uint32_t nin, int64_t extent)
{
	Tensor one[MAX_RESULTS], first[MAX_RESULTS], part[SAMPLE_INPUTS];
	Loop how = EQUAL_SIZES;
	for (int64_t j = 0; j < extent; j++) {
		for (uint32_t k = 0; k < nin; k++)
			part[k] = c->choice >> k & 1 ? part_of(&in[k], j) : in[k];
		if (!interp(c->ctx, plain, part, nin, one, plain->output.n, c->ctx->arena))
			return REFUSED;
		for (uint32_t k = 0; k < plain->output.n; k++) {
			if (j == 0)
				first[k] = one[k];
			if (memcmp(first[k].dim, one[k].dim, one[k].rank * sizeof *one[k].dim) != 0)
				how = OTHER_SIZES;
		}
	}
	return how;
}

/* in: with the batch first. */
static bool equals_loop(const Case *c, Graph *plain, Graph *vmapped, const Tensor *in, uint32_t nin,
			int64_t extent)
{
	Tensor out[MAX_RESULTS], one[MAX_RESULTS], part[SAMPLE_INPUTS], given[SAMPLE_INPUTS];
	for (uint32_t k = 0; k < nin; k++)
		given[k] = c->choice >> k & 1 ? moved(c, &in[k], 0, place_of_input(c, plain, k))
					      : in[k];
	uint32_t n = plain->output.n;
	Loop how = loop_over(c, plain, in, nin, extent);
	if (how == REFUSED)
		return true;
	if (how == OTHER_SIZES)
		return (!interp(c->ctx, vmapped, given, nin, out, n, c->ctx->arena) &&
			strstr(c->ctx->last->text, "results of different sizes")) ||
		       bad(c, "members have different sizes");
	if (!interp(c->ctx, vmapped, given, nin, out, n, c->ctx->arena))
		return bad(c, "does not run");
	for (uint32_t k = 0; k < n; k++) {
		uint32_t place = place_of_output(c, plain, k);
		if (out[k].rank <= place || out[k].dim[place] != extent)
			return bad(c, "a result without its batch");
		out[k] = moved(c, &out[k], place, 0);
	}
	for (int64_t j = 0; j < extent; j++) {
		for (uint32_t k = 0; k < nin; k++)
			part[k] = c->choice >> k & 1 ? part_of(&in[k], j) : in[k];
		if (!interp(c->ctx, plain, part, nin, one, n, c->ctx->arena))
			return bad(c, "does not run alone");
		for (uint32_t k = 0; k < n; k++) {
			Tensor got = part_of(&out[k], j);
			if (!near(&got, &one[k]))
				return bad(c, arena_printf(c->ctx->arena,
							   "result %u of member %lld differs", k,
							   (long long)j));
		}
	}
	return true;
}

static bool check(Case *c, const Sample *s)
{
	Tensor in[SAMPLE_INPUTS];
	Graph *inner = batched(c, s->g, s, c->inner, "inner");
	if (!inner)
		return bad(c, "is refused");
	for (uint32_t k = 0; k < s->nin; k++)
		in[k] = c->choice >> k & 1 ? batch_of(c, &s->in[k], c->inner, 0) : s->in[k];
	if (c->outer < 0 || c->shift >= 0)
		TRY(equals_loop(c, s->g, inner, in, s->nin, c->inner));
	if (c->outer < 0)
		return true;
	for (uint32_t k = 0; k < s->nin; k++) {
		Tensor x = c->choice >> k & 1 ? moved(c, &in[k], 0, place_of_input(c, s->g, k))
					      : s->in[k];
		in[k] = c->choice >> k & 1 ? batch_of(c, &x, c->outer, 0) : x;
	}
	c->second = true;
	Graph *outer = batched(c, inner, s, c->outer, "outer");
	if (!outer)
		return bad(c, "is refused a second time");
	return equals_loop(c, inner, outer, in, s->nin, c->outer);
}

static void run(Case c)
{
	c.ctx = ctx_new();
	assert_non_null(c.ctx);
	if (setjmp(c.ctx->unwind)) {
		bad(&c, c.ctx->bug_text);
		ctx_free(c.ctx);
		return;
	}
	Ir *ir = ir_new(c.ctx);
	Sample s;
	const char *text = sample_text(c.ctx->arena, c.op, c.k);
	bool built = sample_build(ir, c.op, text, c.form, &s);
	if (!built && c.form.real) /* it says f32 elsewhere, too */
		built = sample_build(ir, c.op, text, (SampleForm){0}, &s);
	if (!built)
		bad(&c, "does not build");
	else
		c.check(&c, &s);
	ctx_free(c.ctx);
}

/* ---- every op ---- */

/* Of operands. */
typedef struct {
	uint32_t n, rank[SAMPLE_INPUTS], most; /* the greatest rank */
} Operands;

static Operands operands_of(Op op, uint32_t k)
{
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	Sample s = {0};
	Operands o = {0};
	if (setjmp(ctx->unwind) == 0)
		sample_build(ir_new(ctx), op, sample_text(ctx->arena, op, k), (SampleForm){0}, &s);
	o.n = s.nin;
	for (uint32_t i = 0; i < o.n; i++) {
		o.rank[i] = s.in[i].rank;
		o.most = o.rank[i] > o.most ? o.rank[i] : o.most;
	}
	ctx_free(ctx);
	return o;
}

static bool chosen(Op op)
{
	const char *only = sample_only();
	return !only || strcmp(only, op_name(op)) == 0;
}

static void run_sample(Op op, uint32_t k, uint32_t *failures)
{
	uint32_t nin = operands_of(op, k).n, all = (UINT32_C(1) << nin) - 1;
	for (uint32_t choice = 1; choice <= all; choice++) {
		bool single = !(choice & (choice - 1));
		if (nin > 4 && !single && choice != all)
			continue;
		Case c = {.op = op,
			  .k = k,
			  .choice = choice,
			  .outer = -1,
			  .inner = 3,
			  .shift = -1,
			  .failures = failures,
			  .check = check};
		run(c);
		c.form.symbolic = true;
		c.inner = 2;
		run(c);
		if (choice != all && !single)
			continue;
		c.outer = 3;
		run(c);
		c.form.symbolic = false;
		c.outer = 2;
		run(c);
		c.outer = -1;
		for (c.inner = 0; c.inner < 2; c.inner++)
			run(c);
	}
}

static void every_op(void **state)
{
	(void)state;
	uint32_t failures = 0;
	for (Op op = 1; op < op_count(); op++)
		for (uint32_t k = 0, n = chosen(op) ? sample_count(op) : 0; k < n; k++)
			run_sample(op, k, &failures);
	assert_int_equal(failures, 0);
}

/* ---- every place ---- */

static void run_at(Case c, uint32_t choice, uint32_t shift)
{
	c.choice = choice;
	c.shift = (int32_t)shift;
	run(c);
}

/* Of primitives each operand alone, all of them, and two neighbours, at every place that they have;
 * of composites, whose rules know nothing of places, all at one. Two batches, which stand at
 * different places. */
static void run_places(Op op, uint32_t k, uint32_t *failures)
{
	Operands o = operands_of(op, k);
	uint32_t all = (UINT32_C(1) << o.n) - 1;
	Case c = {.op = op, .k = k, .outer = 3, .inner = 2, .failures = failures, .check = check};
	bool primitive = op_is_scalar(op) || op_kind(op) == OP_PRIMITIVE;
	if (!primitive && o.n)
		run_at(c, all, 1);
	for (uint32_t i = 0; primitive && i < o.n && o.n > 1; i++)
		for (uint32_t place = 0; place <= o.rank[i]; place++)
			run_at(c, UINT32_C(1) << i, place);
	for (uint32_t shift = 0; primitive && o.n && shift <= o.most; shift++) {
		run_at(c, all, shift);
		if (o.n > 2)
			run_at(c, UINT32_C(1) << shift % o.n | UINT32_C(1) << (shift + 1) % o.n,
			       shift);
	}
}

static void every_place(void **state)
{
	(void)state;
	uint32_t failures = 0;
	for (Op op = 1; op < op_count(); op++)
		for (uint32_t k = 0, n = chosen(op) ? sample_count(op) : 0; k < n; k++)
			run_places(op, k, &failures);
	assert_int_equal(failures, 0);
}

/* ---- derivatives of batches, batches of derivatives ---- */

/* Both have the same inputs and outputs. */
static bool commutes(Case *c, const Sample *s)
{
	bool all[2 * SAMPLE_INPUTS];
	Tensor in[2 * SAMPLE_INPUTS], a[MAX_RESULTS], b[MAX_RESULTS];
	Graph *plain = c->derive(s->g, &(Wrt){0});
	if (!plain) /* no derivative */
		return true;
	Sym size = sym_int(graph_syms(s->g), c->inner);
	memset(all, true, sizeof all);
	Graph *first = transform_vmap(s->g, all, size, RANDOM_SAME);
	Graph *derived = first ? c->derive(first, &(Wrt){0}) : NULL,
	      *vmap_of = transform_vmap(plain, all, size, RANDOM_SAME);
	if (!derived || !vmap_of)
		return strstr(c->ctx->last->text, "has no derivative") ||
		       bad(c, vmap_of ? "a batch has no derivative" : "a derivative has no batch");
	for (uint32_t k = 0; k < plain->input.n; k++) {
		const Type *t = node_type(plain, plain->input.data[k].node);
		Tensor ct = {.dtype = t->dtype, .rank = t->n};
		for (uint32_t d = 0; d < t->n; d++)
			ct.dim[d] = sym_hint(plain->ir->syms, t->dim[d]);
		ct.data = arena_alloc(c->ctx->arena, tensor_bytes(&ct) + 64);
		Tensor flat = tensor_flat_real(&ct);
		for (int64_t i = 0; k >= s->nin && i < tensor_numel(&flat); i++)
			tensor_set_f64(&flat, i, 1 + (double)(i % 5) / 4);
		in[k] = batch_of(c, k < s->nin ? &s->in[k] : &ct, c->inner, 0);
	}
	if (!interp(c->ctx, vmap_of, in, plain->input.n, a, plain->output.n, c->ctx->arena))
		return true;
	if (!interp(c->ctx, derived, in, plain->input.n, b, plain->output.n, c->ctx->arena))
		return bad(c, "the derivative of a batch does not run");
	for (uint32_t k = 0; k < plain->output.n; k++)
		if (!near(&a[k], &b[k]))
			return bad(c, arena_printf(c->ctx->arena,
						   "%s: the derivative of a batch is not the batch "
						   "of derivatives",
						   plain->output.data[k].name));
	return true;
}

static void derivatives(void **state)
{
	(void)state;
	uint32_t failures = 0;
	for (Op op = 1; op < op_count(); op++)
		for (uint32_t k = 0, n = chosen(op) ? sample_count(op) : 0; k < n; k++) {
			Case c = {.op = op,
				  .k = k,
				  .form = {.real = DT_f64},
				  .inner = 2,
				  .failures = &failures,
				  .check = commutes};
			c.derive = transform_vjp;
			run(c);
			c.derive = transform_jvp;
			run(c);
		}
	assert_int_equal(failures, 0);
}

/* ---- branches and loops ---- */

typedef struct {
	const char *text;
	uint32_t choice; /* of inputs with a batch of 3, one value each */
	double value[3][3];
} Flow;

/* A call fails where x is below 0, and there are such members. */
static int root(const WeftOpContext *context, const WeftTensor *in, const WeftTensor *out,
		void *work, uint64_t work_bytes, WeftStatus *status)
{
	const float *x = in[0].data;
	float *y = out[0].data;
	(void)context, (void)work, (void)work_bytes;
	for (int64_t k = 0; k < in[0].shape[0]; k++) {
		if (x[k] < 0)
			return weft_op_fail(status, "below 0");
		y[k] = sqrtf(x[k]) + (float)in[0].shape[0];
	}
	return 0;
}

static const WeftOpDef root_op = {
	.size = sizeof root_op, .schema = "test::root(Tensor x) -> Tensor", .types = "f32[a] -> f32[a]", .symbol = "test_root", .fn = root};

static const Flow flows[] = {
	{"graph @f(%x: f32[1]) {\n  %c = call([%x], op=\"test::root\", ints=[], floats=[])\n  %y = "
	 "get(%c, index=0)\n  return %y\n}", 1, {{1, 4, 9}}},
	{"graph @f(%p: bool[], %x: f32[1]) {\n  %c = cond(%p, [%x], yes=graph @yes(%x: f32[1]) {\n "
	 "   %c = call([%x], op=\"test::root\", ints=[], floats=[])\n    %y = get(%c, index=0)\n   "
	 " return %y\n  }, no=graph @no(%x: f32[1]) {\n    return %x\n  })\n"
	 "  %y = get(%c, index=0)\n  return %y\n}", 3, {{0, 1, 0}, {-1, 4, -9}}},
	{"graph @f(%n: i64[], %x: f32[1]) {\n  %zero = full(value=0, shape=[], dtype=i64)\n  %w = "
	 "while([%zero, %x], [%n], cond=graph @m(%k: i64[], %x: f32[1], %n: i64[]) {\n    %c = "
	 "lt(%k, %n)\n    return %c\n  }, body=graph @b(%k: i64[], %x: f32[1], %n: i64[]) {\n"
	 "    %c = call([%x], op=\"test::root\", ints=[], floats=[])\n    %y = get(%c, index=0)\n  "
	 "  %one = full(value=1, shape=[], dtype=i64)\n    %j = add(%k, %one)\n    return %j, "
	 "%y\n  })\n  %y = get(%w, index=1)\n  return %y\n}", 3, {{0, 1, 3}, {-1, 4, 9}}},
	/* the counter is the same for all, and read behind the loop */
	{"graph @f(%n: i64[], %x: f32[1]) {\n  %zero = full(value=0, shape=[], dtype=i64)\n  %w = "
	 "while([%zero, %x], [%n], cond=graph @m(%k: i64[], %x: f32[1], %n: i64[]) {\n    %c = "
	 "lt(%k, %n)\n    return %c\n  }, body=graph @b(%k: i64[], %x: f32[1], %n: i64[]) {\n"
	 "    %y = sin(%x)\n    %one = full(value=1, shape=[], dtype=i64)\n    %j = add(%k, "
	 "%one)\n    return %j, %y\n  })\n  %k = get(%w, index=0)\n  %l = le(%k, %n)\n  assert(%l, "
	 "message=\"more\")\n  %y = get(%w, index=1)\n  %f = convert(%k, dtype=f32)\n"
	 "  %g = broadcast(%f, shape=[1], map=[])\n  %z = mul(%y, %g)\n  return %z, %k\n}", 2, {{3}, {-1, 4, 9}}},
	/* who is done with the loop is not in the branch any more */
	{"graph @f(%n: i64[], %t: i64[3]) {\n  %zero = full(value=0, shape=[], dtype=i64)\n  %w = "
	 "while([%zero, %n], [%t], cond=graph @m(%k: i64[], %n: i64[], %t: i64[3]) {\n    %c = "
	 "lt(%k, %n)\n    return %c\n  }, body=graph @b(%k: i64[], %n: i64[], %t: i64[3]) {\n"
	 "    %two = full(value=2, shape=[], dtype=i64)\n    %p = le(%k, %two)\n    %c = cond(%p, "
	 "[%k, %t], yes=graph @yes(%k: i64[], %t: i64[3]) {\n      %i = reshape(%k, shape=[1])\n   "
	 "   %g = gather(%t, %i, batch=0, axes=[0], mode=\"check\")\n      return %g\n"
	 "    }, no=graph @no(%k: i64[], %t: i64[3]) {\n      return %k\n    })\n    %g = get(%c, "
	 "index=0)\n    %j = add(%k, %g)\n    return %j, %n\n  })\n  %y = get(%w, "
	 "index=0)\n  return %y\n}", 1, {{1, 40, 7}, {1, 2, 1}}},
};

static void run_flow(const Flow *f, uint32_t *failures)
{
	Case c = {.op = OP_while,
		  .choice = f->choice,
		  .inner = 3,
		  .shift = -1,
		  .failures = failures,
		  .ctx = ctx_new()};
	if (setjmp(c.ctx->unwind)) {
		bad(&c, c.ctx->bug_text);
		return;
	}
	Ir *ir = ir_new(c.ctx);
	array_push(c.ctx->arena, &ir->userop, userop_new(c.ctx, "user operator", &root_op));
	Graph *g = graph_parse(ir, f->text, "flow");
	if (!g) {
		bad(&c, "does not parse");
		return;
	}
	Sample s = {.g = g, .nin = g->input.n};
	Tensor in[SAMPLE_INPUTS];
	for (uint32_t k = 0; k < s.nin; k++) {
		const Type *t = node_type(g, g->input.data[k].node);
		bool has = f->choice >> k & 1;
		in[k] = (Tensor){.dtype = t->dtype, .rank = t->n + has, .dim = {3, 1}};
		in[k].data = arena_alloc(c.ctx->arena, 64);
		for (int64_t i = 0; i < 3; i++)
			if (dtype_is_float(t->dtype))
				tensor_set_f64(&in[k], i, f->value[k][i]);
			else
				tensor_set_i64(&in[k], i, (int64_t)f->value[k][i]);
	}
	Graph *y = batched(&c, g, &s, 3, "n");
	uint32_t errors = c.ctx->nerror;
	if (!y || loop_over(&c, g, in, s.nin, 3) != EQUAL_SIZES || c.ctx->nerror != errors)
		bad(&c, "is refused");
	else
		equals_loop(&c, g, y, in, s.nin, 3);
	ctx_free(c.ctx);
}

static void control_flow(void **state)
{
	(void)state;
	uint32_t failures = 0;
	for (size_t k = 0; k < sizeof flows / sizeof *flows; k++)
		run_flow(&flows[k], &failures);
	assert_int_equal(failures, 0);
}

/* ---- what is refused ---- */

static void refused(const char *text, uint32_t choice, const char *why)
{
	Ctx *ctx = ctx_new();
	assert_non_null(ctx);
	Ir *ir = ir_new(ctx);
	ir_const(ir, (Const){.name = "m",
			     .dtype = DT_f32,
			     .rank = 1,
			     .dim = (const int64_t[]){2},
			     .data = "\0\0\0\0\0\0\0",
			     .bytes = 8});
	Graph *g = graph_parse(ir, text, "test");
	if (!g)
		fail_msg("%s", ctx->last->text);
	bool in[8];
	for (uint32_t k = 0; k < 8; k++)
		in[k] = choice >> k & 1;
	assert_null(transform_vmap(g, in, sym_int(ir->syms, 3), RANDOM_SAME));
	if (ctx->nerror != 1 || !strstr(ctx->last->text, why))
		fail_msg("%u errors, expected \"%s\", got %s", ctx->nerror, why, ctx->last->text);
	ctx_free(ctx);
}

static void refusals(void **state)
{
	(void)state;
	refused("graph @f(%x: f32[2], %m: f32[2] buffer #1 \"m\") {\n  %s = add(%x, %m)\n  return "
		"%s, %s -> \"m\"\n}",
		1, "the value that is written to \"m\" differs between the members of the batch");
	refused("graph @f(%x: f32[2], %m: f32[2] buffer #1 \"m\") {\n  %s = add(%x, %m)\n  return "
		"%s\n}",
		2, "\"m\" is state");
	refused("graph @f(%x: f32[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]) {\n  %s = neg(%x)\n  return "
		"%s\n}",
		1, "input \"x\" has 12 dimensions");
	refused("graph @f(%x: f32[]) {\n  %s = reshape(%x, shape=[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "
		"1])\n  return %s\n}",
		1,
		"reshape has operands or results of 12 dimensions, which with that of a batch are "
		"more than 12");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_op),
		cmocka_unit_test(every_place),
		cmocka_unit_test(derivatives),
		cmocka_unit_test(control_flow),
		cmocka_unit_test(refusals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
