/* Derivatives of ONNX's node tests: onnx_derivatives FOLDER [CASE...]. Each model whose inputs and
 * outputs have fractions, in f64, at the values of its first set of data, moved a little away from
 * kinks: cotangents and tangents against each other and against differences of values
 * (derivative.h). So a block of ops/onnx is tested by its node tests. What is excepted stands
 * below, with the reason; an exception that is not needed fails. Skipped (77) without FOLDER. */
#include <dirent.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/files/file.h"
#include "frontend/onnx/onnx.h"
#include "ir/build/verify.h"
#include "ops/prim/random.h"
#include "passes/pass.h"
#include "tests/oracle/derivative.h"

enum { SKIPPED = 77, MAX_ELEMENTS = 4000 };

typedef enum {
	CONVENTION = 1, /* the derivative is not that of the values */
	NONE = 2,       /* an error says so */
} Excepted;

/* Of all cases whose name begins so. */
static const struct {
	const char *name;
	Excepted how;
	const char *why;
} exceptions[] = {
	{"test_range_bfloat16_type_positive_delta_expanded", NONE,
	 "a loop of rounds that the data say"},
	{"test_range_float16_type_positive_delta_expanded", NONE,
	 "a loop of rounds that the data say"},
	{"test_range_float_type_positive_delta_expanded", NONE,
	 "a loop of rounds that the data say"},
	{"test_reduce_l2_empty_set_expanded", CONVENTION, "a square root of 0"},
};

typedef struct {
	const char *name;
	Excepted how;
	bool quiet;
	uint32_t failures, checked;
} Case;

static void failed(void *user, const char *what)
{
	Case *c = user;
	c->failures++;
	if (!c->quiet)
		printf("%s: %s", c->name, what);
}

static Excepted exception_of(const char *name)
{
	for (size_t k = 0; k < sizeof exceptions / sizeof *exceptions; k++)
		if (!strncmp(exceptions[k].name, name, strlen(exceptions[k].name)))
			return exceptions[k].how;
	return 0;
}

/* ---- one case ---- */


/* The inputs of the graph, in order: those of lists follow each other. */
static bool inputs_of(const StFile *f, const Graph *g, Tensor *in)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < f->n && n < g->input.n; k++)
		if (*f->tensor[k].name == 'x')
			in[n++] = f->tensor[k].tensor;
	return n == g->input.n;
}

static Tensor in_f64(Arena *arena, const Tensor *x)
{
	Tensor y = *x;
	if (!dtype_is_float(x->dtype))
		return y;
	y.dtype = DT_f64;
	y.data = arena_alloc(arena, tensor_bytes(&y) + 1);
	for (int64_t i = 0; i < tensor_numel(&y); i++)
		tensor_set_f64(&y, i, tensor_f64(x, i));
	return y;
}

/* Inputs that decided a shape must keep the values that they had then. */
static void keep_decided(Arena *arena, const Graph *g, bool *wrt)
{
	bool *reads = arena_calloc(arena, g->node.n, sizeof *reads);
	for (Node n = g->last; n.i; n = node_prev(g, n)) {
		reads[n.i] |= node_op(g, n) == OP_assert;
		for (uint32_t k = 0; reads[n.i] && k < node_nin(g, n); k++)
			reads[node_in(g, n, k).i] = true;
	}
	for (uint32_t k = 0; k < g->input.n; k++)
		wrt[k] = wrt[k] && !reads[g->input.data[k].node.i];
}

static bool draws(const Graph *g)
{
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (node_draws(g, n))
			return true;
	return false;
}

/* Small enough for differences, and of dtypes that have all that f64 has. */
static bool is_fit(const Tensor *in, uint32_t n)
{
	int64_t all = 0;
	for (uint32_t k = 0; k < n; k++)
		if (dtype_is_float(in[k].dtype))
			all += tensor_numel(&in[k]);
	return all <= MAX_ELEMENTS;
}

static void check(Ctx *ctx, const char *folder, Case *c)
{
	FileMap map;
	StFile data;
	Point p;
	const char *path = arena_printf(ctx->arena, "%s/%s/model.onnx", folder, c->name);
	Derivative d = {.ctx = ctx,
			.rng = strlen(c->name),
			.failed = failed,
			.user = c,
			.what = "derivative"};
	d.no_differences = d.no_products = c->how & CONVENTION;
	if (!onnx_open_data(ctx, arena_printf(ctx->arena, "%s/%s/test_data_set_0", folder, c->name),
			    &data) ||
	    !file_map(ctx, path, &map))
		return;
	OnnxOptions options = {data.tensor, data.n};
	Graph *g = onnx_load_bytes(ir_new(ctx), path, map.data, map.size, &options);
	if (!g || draws(g)) /* tests/expected/onnx.txt says why */
		return;
	Tensor *in = ARENA_ARRAY(ctx->arena, Tensor, g->input.n + 1);
	if (!inputs_of(&data, g, in) || !is_fit(in, g->input.n))
		return;
	for (uint32_t k = 0; k < g->input.n; k++)
		in[k] = in_f64(ctx->arena, &in[k]);
	PassCtx pass = {0};
	pass_canon(g, &pass); /* so that what a block converts to a dtype is f64, too */
	g = pass.failed ? NULL : graph_widened(g);
	if (!g || !graph_verify(g) /* what takes bits of f32 has no form in f64 */ ||
	    !point_of(g, in, g->input.n, ctx->arena, &p))
		return;
	bool *wrt = arena_dup(ctx->arena, p.wrt, (p.nin + 1) * sizeof *wrt), any = false;
	keep_decided(ctx->arena, g, wrt);
	for (uint32_t k = 0; k < p.nin; k++)
		any |= wrt[k];
	p.wrt = wrt;
	Point vjp, jvp;
	p = point_near(&d, p);
	if (any)
		derivative_check(&d, p, &vjp, &jvp);
	c->checked = d.checked;
}

static Case run(const char *folder, const char *name, Excepted how, bool quiet)
{
	Case c = {.name = name, .how = how, .quiet = quiet};
	Ctx *ctx = ctx_new();
	if (!ctx)
		exit(2);
	if (setjmp(ctx->unwind))
		failed(&c, ctx->bug_text);
	else
		check(ctx, folder, &c);
	ctx_free(ctx);
	return c;
}

/* ---- all of them ---- */

int main(int argc, char **argv)
{
	struct dirent **list;
	uint32_t failures = 0, cases = 0, checked = 0;
	int n = argc > 1 ? scandir(argv[1], &list, NULL, alphasort) : -1;
	if (n < 0)
		return SKIPPED;
	for (int k = 0; k < n; k++) {
		const char *name = list[k]->d_name;
		bool wanted = argc == 2;
		for (int i = 2; i < argc; i++)
			wanted |= !strcmp(argv[i], name);
		if (*name == '.' || !wanted)
			continue;
		Excepted how = exception_of(name);
		Case c = run(argv[1], name, how, how & NONE);
		if (how & NONE ? !c.failures : how && !run(argv[1], name, 0, true).failures) {
			printf("%s: needs no exception: remove it\n", name);
			failures++;
		}
		failures += how & NONE ? 0 : c.failures;
		cases += c.checked > 0;
		checked += c.checked;
	}
	printf("%u cases have derivatives, %u elements were compared with differences, %u "
	       "failures\n",
	       cases, checked, failures);
	return failures > 0;
}
