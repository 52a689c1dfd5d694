/* Products of dequantised numbers by integers (pass_quantize): random ones give what the floats
 * give, up to their roundings, and none is left. Operands have one scale or one for each channel,
 * zero points or none, and index maps and pads in front of the product; sizes may be 0 and 1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "ctx_fixture.h"
#include "ir/build/build.h"
#include "ir/build/verify.h"
#include "ir/interp/interp.h"
#include "ir/op/op.h"
#include "passes/pipeline.h"

static uint64_t seed;

static uint32_t draw(uint32_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((seed >> 33) % n);
}

/* (convert(q) - zero) * scale along `axis`; -1: one scale for all. */
static Node dequantised(Build *b, Node q, int axis, bool zero)
{
	const Type t = *node_type(b->g, q);
	Node x = b_convert(b, q, DT_f32);
	if (zero)
		x = b_bin_scalar(b, OP_sub, x,
				 (double)draw(100) - (node_dtype(b->g, q) == DT_i8 ? 50 : 0));
	if (axis < 0)
		return b_bin_scalar(b, OP_mul, x, 0.125 * (1 + draw(8)));
	Node scale =
		b_bin_scalar(b, OP_add, b_convert(b, b_iota(b, DT_i32, t.dim[axis]), DT_f32), 0.5);
	return b_bin(b, OP_mul, x,
		     b_broadcast_in_dim(b, scale, t.n, t.dim, (uint32_t[]){(uint32_t)axis}));
}

static Node input(Graph *g, const char *name, DType d, uint32_t rank, const int64_t *dim)
{
	return graph_add_input(g, name, INPUT_USER, ir_type_ints(g->ir, d, rank, dim));
}

/* x[M, K] w[N, K], each perhaps behind a transposition, x behind a pad and a slice. */
static Node draw_contract(Build *b, Node x, Node w)
{
	const bool turned = draw(2), padded = draw(2);
	Node u = dequantised(b, x, padded || draw(2) ? -1 : 0, draw(2)),
	     v = dequantised(b, w, draw(2) ? 0 : -1, draw(2));
	if (padded) { /* of one scale */
		const Sym at[] = {b_int(b, 1), b_int(b, 0)};
		u = b_pad(b, u, at, at, b_scalar(b, DT_f32, 0));
		u = b_slice(b, u, 0, b_int(b, 1), b_dim(b, u, 0), b_int(b, 1));
	}
	if (turned)
		u = b_transpose(b, u, 0, 1);
	return b_contract(b, u, v, NULL, 0, (const uint32_t[][2]){{turned ? 0 : 1, 1}}, 1);
}

static void fill(Tensor *t)
{
	for (int64_t i = 0; i < tensor_numel(t); i++)
		tensor_set_i64(t, i, (int64_t)draw(256) - (t->dtype == DT_i8 ? 128 : 0));
}

static bool multiplies_floats(const Graph *g)
{
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (node_op(g, n) == OP_contract && node_dtype(g, n) == DT_f32)
			return true;
	return false;
}

static void check_close(const Tensor *x, const Tensor *y)
{
	double most = 0;
	for (int64_t i = 0; i < tensor_numel(y); i++)
		most = fmax(most, fabs(tensor_f64(y, i)));
	for (int64_t i = 0; i < tensor_numel(y); i++)
		if (!(fabs(tensor_f64(x, i) - tensor_f64(y, i)) <= 1e-5 * most))
			fail_msg("%g, expected %g", tensor_f64(x, i), tensor_f64(y, i));
}

static void test_contractions(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < 300; k++) {
		seed = k;
		const int64_t size[] = {draw(4) ? 1 + draw(9) : draw(2), 1 + draw(40),
					draw(4) ? 1 + draw(9) : draw(2)};
		Graph *g = graph_new(ir_new(ctx), "f");
		Node x = input(g, "x", draw(2) ? DT_i8 : DT_u8, 2, (int64_t[]){size[0], size[1]});
		Node w = input(g, "w", draw(2) ? DT_i8 : DT_u8, 2, (int64_t[]){size[2], size[1]});
		Build b = {.g = g};
		graph_add_output(g, "y", draw_contract(&b, x, w), -1);
		Graph *h = graph_clone(g);
		assert_true(pipeline_run_one(h, "quantize") && graph_verify(h));
		assert_false(multiplies_floats(h));
		Tensor in[2], y, z;
		for (uint32_t i = 0; i < 2; i++) {
			in[i] = (Tensor){.dtype = node_dtype(g, i ? w : x),
					 .rank = 2,
					 .dim = {size[i ? 2 : 0], size[1]}};
			in[i].data =
				arena_calloc(ctx->arena, (uint64_t)tensor_numel(&in[i]) + 1, 1);
			fill(&in[i]);
		}
		assert_true(interp(ctx, g, in, 2, &y, 1, ctx->arena) &&
			    interp(ctx, h, in, 2, &z, 1, ctx->arena));
		check_close(&z, &y);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_contractions, setup, teardown)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
