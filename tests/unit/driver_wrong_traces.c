/* Calls of weft_trace.h with what they should not get: after a wrong call there is no graph, and
 * exactly one error, which says something; none crashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weft.h"
#include "weft_op.h"
#include "weft_trace.h"
#include "wrong_fixture.h"

typedef struct {
	WeftTrace *t;
	WeftValue x, i, other; /* f32[4, 6], i64[4], one of another trace */
} Traced;

typedef void TraceFn(const Traced *);
#define TRACE(name, call)                                                                          \
	static void trace_##name(const Traced *k)                                                  \
	{                                                                                          \
		call;                                                                              \
	}
#define CALL(op, ...)                                                                              \
	weft_trace_call(k->t, op, (const WeftArg[]){__VA_ARGS__},                                  \
			sizeof((const WeftArg[]){__VA_ARGS__}) / sizeof(WeftArg))
#define X weft_arg(k->x)
#define INT(v) weft_arg_int(v)
#define INTS(...)                                                                                  \
	weft_arg_ints((const int64_t[]){__VA_ARGS__},                                              \
		      sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static WeftArg of_kind(int kind, uint32_t n)
{
	WeftArg a = {NULL, (WeftArgKind)kind, n, {{0, 0}}};
	a.u.ints = NULL;
	return a;
}

static void block(WeftTrace *t, const WeftValue *x, WeftValue *y, void *user)
{
	(void)user;
	y[0] = weft_neg(t, x[0]);
}

TRACE(input_null, weft_trace_input(k->t, NULL, "f32[2]"))
TRACE(input_empty, weft_trace_input(k->t, "", "f32[2]"))
TRACE(input_twice, weft_trace_input(k->t, "x", "f32[2]"))
TRACE(input_type_null, weft_trace_input(k->t, "z", NULL))
TRACE(input_type_empty, weft_trace_input(k->t, "z", ""))
TRACE(input_type_bad, weft_trace_input(k->t, "z", "f33[2]"))
TRACE(input_type_negative, weft_trace_input(k->t, "z", "f32[-2]"))
TRACE(input_rank, weft_trace_input(k->t, "z", "f32[1,1,1,1,1,1,1,1,1,1,1,1,1]"))
TRACE(param_null, weft_trace_param(k->t, NULL, "f32[2]", NULL))
TRACE(param_empty, weft_trace_param(k->t, "", "f32[2]", NULL))
TRACE(param_as_input, weft_trace_param(k->t, "x", "f32[2]", NULL))
TRACE(param_twice, weft_trace_param(k->t, "p", "f32[2]", NULL);
      weft_trace_param(k->t, "p", "f32[2]", NULL))
TRACE(param_as_state, weft_trace_variable(k->t, "p", "f32[2]", NULL);
      weft_trace_param(k->t, "p", "f32[2]", NULL))
TRACE(param_symbol, weft_trace_param(k->t, "p", "f32[B]", NULL))
TRACE(param_huge, weft_trace_param(k->t, "p", "f32[4611686018427387904, 16]", NULL))
TRACE(input_as_param, weft_trace_param(k->t, "p", "f32[2]", NULL);
      weft_trace_input(k->t, "p", "f32[2]"))
TRACE(variable_null, weft_trace_variable(k->t, NULL, "f32[2]", NULL))
TRACE(buffer_type, weft_trace_buffer(k->t, "b", NULL, NULL))
TRACE(buffer_as_input, weft_trace_buffer(k->t, "x", "f32[2]", NULL))
TRACE(symbol_null, weft_trace_symbol(k->t, NULL, 1, 2))
TRACE(symbol_empty, weft_trace_symbol(k->t, "", 1, 2))
TRACE(symbol_bad, weft_trace_symbol(k->t, "1B", 1, 2))
TRACE(symbol_twice, weft_trace_symbol(k->t, "B", 1, 2); weft_trace_symbol(k->t, "B", 1, 2))
TRACE(symbol_range, weft_trace_symbol(k->t, "B", 3, 2))
TRACE(symbol_negative, weft_trace_symbol(k->t, "B", -3, 2))
TRACE(output_null, weft_trace_output(k->t, NULL, k->x))
TRACE(output_empty, weft_trace_output(k->t, "", k->x))
TRACE(output_twice, weft_trace_output(k->t, "z", k->x); weft_trace_output(k->t, "z", k->x))
TRACE(output_none, weft_trace_output(k->t, "z", (WeftValue){0, 0}))
TRACE(output_other, weft_trace_output(k->t, "z", k->other))
TRACE(output_wild, weft_trace_output(k->t, "z", (WeftValue){12345, k->x.trace}))
TRACE(assign_value, weft_trace_assign(k->t, weft_relu(k->t, k->x), k->x))
TRACE(assign_none, weft_trace_assign(k->t, (WeftValue){0, 0}, k->x))
TRACE(assign_type, weft_trace_assign(k->t, weft_trace_variable(k->t, "v", "f32[2]", NULL), k->x))
TRACE(assign_other,
      weft_trace_assign(k->t, weft_trace_variable(k->t, "v", "f32[2]", NULL), k->other))
TRACE(call_null, weft_trace_call(k->t, NULL, NULL, 0))
TRACE(call_empty, weft_trace_call(k->t, "", NULL, 0))
TRACE(call_unknown, CALL("aten.nonsense", X))
TRACE(call_args, weft_trace_call(k->t, "aten.relu", NULL, 1))
TRACE(call_many, weft_trace_call(k->t, "aten.relu", (const WeftArg[]){X}, 1u << 31))
TRACE(call_in_place, CALL("aten.relu_", X))
TRACE(call_input, CALL("input", X))
TRACE(call_missing, CALL("aten.relu", weft_arg_none()))
TRACE(call_surplus, CALL("aten.relu", X, X))
TRACE(call_twice, CALL("aten.softmax.int", X, INT(0), weft_arg_named("dim", INT(0))))
TRACE(call_no_such, CALL("aten.softmax.int", X, weft_arg_named("axis", INT(0))))
TRACE(call_empty_name, CALL("aten.softmax.int", X, weft_arg_named("", INT(0))))
TRACE(call_kind, CALL("aten.relu", of_kind(77, 0)))
TRACE(call_kind_negative, CALL("aten.relu", of_kind(-1, 0)))
TRACE(call_text, CALL("aten.gelu", X, weft_arg_named("approximate", weft_arg_text(NULL))))
TRACE(call_text_bad, CALL("aten.gelu", X, weft_arg_named("approximate", weft_arg_text("nonsense"))))
TRACE(call_dtype, CALL("aten._to_copy", X, weft_arg_named("dtype", weft_arg_text("f33"))))
TRACE(call_values, CALL("aten.cat", of_kind(WEFT_ARG_VALUES, 2), INT(0)))
TRACE(call_no_values, CALL("aten.cat", weft_arg_values(NULL, 0), INT(0)))
TRACE(call_absent, CALL("aten.cat", weft_arg_values((const WeftValue[]){k->x, {0, 0}}, 2), INT(0)))
TRACE(call_ints, CALL("aten.permute", X, of_kind(WEFT_ARG_INTS, 2)))
TRACE(call_floats, CALL("aten.permute", X, of_kind(WEFT_ARG_FLOATS, 2)))
TRACE(call_bools, CALL("aten.permute", X, of_kind(WEFT_ARG_BOOLS, 2)))
TRACE(call_complex, CALL("aten.full_like", X, of_kind(WEFT_ARG_COMPLEX, 2)))
TRACE(call_other, CALL("aten.relu", weft_arg(k->other)))
TRACE(result_single, weft_trace_result(k->t, k->x, 0))
TRACE(result_9, weft_trace_result(k->t, CALL("aten.max.dim", X, INT(0)), 9))
TRACE(result_none, weft_trace_result(k->t, (WeftValue){0, 0}, 0))
TRACE(shape_null, weft_trace_shape(k->t, k->x, NULL))
TRACE(shape_none, weft_trace_shape(k->t, (WeftValue){0, 0}, (int64_t[12]){0}))
TRACE(shape_several, weft_trace_shape(k->t, CALL("aten.max.dim", X, INT(0)), (int64_t[12]){0}))
TRACE(nresult_none, weft_trace_nresult(k->t, (WeftValue){0, 0}))
TRACE(extent_9, weft_trace_extent(k->t, k->x, 9))
TRACE(extent_none, weft_trace_extent(k->t, (WeftValue){0, 0}, 0))
TRACE(extent_several, weft_trace_extent(k->t, CALL("aten.max.dim", X, INT(0)), 0))
TRACE(dtype_none, weft_trace_dtype(k->t, (WeftValue){0, 0}))
TRACE(dtype_several, weft_trace_dtype(k->t, CALL("aten.max.dim", X, INT(0))))
TRACE(block_name, weft_invertible(k->t, NULL, &k->x, 1, &(WeftValue){0, 0}, 1, block, block, NULL))
TRACE(block_empty, weft_invertible(k->t, "", &k->x, 1, &(WeftValue){0, 0}, 1, block, block, NULL))
TRACE(block_x, weft_invertible(k->t, "b", NULL, 1, &(WeftValue){0, 0}, 1, block, block, NULL))
TRACE(block_y, weft_invertible(k->t, "b", &k->x, 1, NULL, 1, block, block, NULL))
TRACE(block_forward, weft_invertible(k->t, "b", &k->x, 1, &(WeftValue){0, 0}, 1, NULL, block, NULL))
TRACE(block_inverse, weft_invertible(k->t, "b", &k->x, 1, &(WeftValue){0, 0}, 1, block, NULL, NULL))
TRACE(mark, weft_checkpoint(k->t, k->x, "nonsense"))
TRACE(mark_null, weft_checkpoint(k->t, k->x, NULL))
/* Arguments that PyTorch refuses; tests/data/refused has many more. */
TRACE(softmax_dim, weft_softmax(k->t, k->x, 2))
TRACE(softmax_negative, weft_softmax(k->t, k->x, -3))
TRACE(log_softmax_dim, weft_log_softmax(k->t, k->x, 7))
TRACE(sum_dim, weft_sum_over(k->t, k->x, (const int64_t[]){5}, 1, false))
TRACE(sum_twice, weft_sum_over(k->t, k->x, (const int64_t[]){1, -1}, 2, false))
TRACE(mean_dim, weft_mean_over(k->t, k->x, (const int64_t[]){-4}, 1, true))
TRACE(mean_twice, weft_mean_over(k->t, k->x, (const int64_t[]){0, 0}, 2, true))
TRACE(permute_twice, weft_permute(k->t, k->x, (const int64_t[]){0, 0}, 2))
TRACE(permute_few, weft_permute(k->t, k->x, (const int64_t[]){0}, 1))
TRACE(permute_dim, weft_permute(k->t, k->x, (const int64_t[]){0, 2}, 2))
TRACE(transpose_dim, weft_transpose(k->t, k->x, 0, 2))
TRACE(select_dim, weft_select(k->t, k->x, 2, 0))
TRACE(select_index, weft_select(k->t, k->x, 0, 4))
TRACE(select_negative, weft_select(k->t, k->x, 0, -5))
TRACE(flatten_dim, weft_flatten(k->t, k->x, 0, 2))
TRACE(flatten_order, weft_flatten(k->t, k->x, 1, 0))
TRACE(reshape_two, weft_reshape(k->t, k->x, (const int64_t[]){-1, -1}, 2))
TRACE(reshape_count, weft_reshape(k->t, k->x, (const int64_t[]){5, 5}, 2))
TRACE(reshape_negative, weft_reshape(k->t, k->x, (const int64_t[]){-2, 12}, 2))
TRACE(reshape_part, weft_reshape(k->t, k->x, (const int64_t[]){-1, 5}, 2))
TRACE(concat_dim, weft_concat(k->t, (const WeftValue[]){k->x, k->x}, 2, 2))
TRACE(concat_shape,
      weft_concat(k->t, (const WeftValue[]){k->x, weft_transpose(k->t, k->x, 0, 1)}, 2, 0))
TRACE(quantile, CALL("aten.quantile.scalar", X, weft_arg_float(3)))
TRACE(quantile_negative, CALL("aten.quantile.scalar", X, weft_arg_float(-0.5)))
TRACE(diagonal, CALL("aten.diagonal", X, INT(0), INT(0), INT(2)))
TRACE(diagonal_same, CALL("aten.diagonal", X, INT(0), INT(1), INT(1)))
TRACE(clamp, CALL("aten.clamp", X))
TRACE(clamp_tensor, CALL("aten.clamp.Tensor", X))
TRACE(flip_twice, CALL("aten.flip", X, INTS(0, 0)))
TRACE(roll_dim, CALL("aten.roll", X, INTS(1), INTS(4)))
TRACE(cumsum_dim, CALL("aten.cumsum", X, INT(3)))
TRACE(argmax_dim, CALL("aten.argmax", X, INT(3)))
TRACE(topk, CALL("aten.topk", X, INT(9)))
TRACE(topk_negative, CALL("aten.topk", X, INT(-1)))
TRACE(unsqueeze_dim, CALL("aten.unsqueeze", X, INT(4)))
TRACE(squeeze_dim, CALL("aten.squeeze.dim", X, INT(4)))
TRACE(split_size, CALL("aten.split.Tensor", X, INT(0)))
TRACE(split_sizes, CALL("aten.split_with_sizes", X, INTS(1, 1)))
TRACE(chunk, CALL("aten.chunk", X, INT(0)))
TRACE(narrow, CALL("aten.narrow", X, INT(0), INT(3), INT(2)))
TRACE(slice_step, CALL("aten.slice.Tensor", X, INT(0), INT(0), INT(2), INT(0)))
TRACE(slice_dim, CALL("aten.slice.Tensor", X, INT(3), INT(0), INT(2), INT(1)))
TRACE(gather_dim, CALL("aten.gather", X, INT(2), weft_arg(k->i)))
TRACE(index_select_dim, CALL("aten.index_select", X, INT(2), weft_arg(k->i)))
TRACE(expand, CALL("aten.expand", X, INTS(4, 7)))
TRACE(repeat, CALL("aten.repeat", X, INTS(2)))
TRACE(norm_shape, CALL("aten.layer_norm", X, INTS(5)))
TRACE(group_norm, CALL("aten.group_norm", X, INT(4)))
TRACE(linear_shape, weft_linear(k->t, k->x, weft_transpose(k->t, k->x, 0, 1), (WeftValue){0, 0}))
TRACE(matmul_shape, weft_matmul(k->t, k->x, k->x))
TRACE(add_shape, weft_add(k->t, k->x, weft_transpose(k->t, k->x, 0, 1)))
TRACE(conv_rank, weft_conv2d(k->t, k->x, k->x, (WeftValue){0, 0}, NULL))
TRACE(pool_size,
      weft_max_pool2d(k->t, weft_reshape(k->t, k->x, (const int64_t[]){1, 4, 6}, 3), -2, 0, 0))
TRACE(pool_padding,
      weft_avg_pool2d(k->t, weft_reshape(k->t, k->x, (const int64_t[]){1, 4, 6}, 3), 2, 0, 2))
TRACE(pool_large,
      weft_max_pool2d(k->t, weft_reshape(k->t, k->x, (const int64_t[]){1, 4, 6}, 3), 7, 0, 0))
TRACE(embedding, weft_embedding(k->t, k->x, k->x))
TRACE(dropout, CALL("aten.dropout", X, weft_arg_float(1.5), weft_arg_bool(true)))
TRACE(one_hot, CALL("aten.one_hot", weft_arg(k->i), INT(-2)))
TRACE(div_mode, CALL("aten.div.Tensor_mode", X, X,
		     weft_arg_named("rounding_mode", weft_arg_text("nonsense"))))
TRACE(cross_entropy, CALL("aten.cross_entropy_loss", X, weft_arg(k->i), weft_arg_none(), INT(7)))
TRACE(pad, CALL("aten.pad", X, INTS(1)))
TRACE(pad_mode, CALL("aten.pad", X, INTS(1, 1), weft_arg_text("nonsense")))
TRACE(tril, CALL("aten.tril", weft_arg(k->i)))
TRACE(arange, CALL("aten.arange.start_step", INT(0), INT(5), INT(-1)))
TRACE(full, CALL("aten.full", INTS(-2), INT(1)))
TRACE(gather_float, CALL("aten.gather", X, INT(0), X))
TRACE(take_float, CALL("aten.take", X, X))
TRACE(scatter_float, CALL("aten.scatter.src", X, INT(0), X, X))
TRACE(index_add_float, CALL("aten.index_add", X, INT(0),
			    weft_arg(weft_relu(k->t, weft_select(k->t, k->x, 1, 0))), X))
TRACE(einsum_less, CALL("aten.einsum", weft_arg_text("ij->ji"),
			weft_arg_values((const WeftValue[]){k->x, k->x}, 2)))
TRACE(einsum, CALL("aten.einsum", weft_arg_text("ij,jk->ik"), weft_arg_values(&k->x, 1)))

#define T(name) {#name, trace_##name}
static const struct {
	const char *name;
	TraceFn *fn;
} wrong_trace[] = {
	T(input_null),
	T(input_empty),
	T(input_twice),
	T(input_type_null),
	T(input_type_empty),
	T(input_type_bad),
	T(input_type_negative),
	T(input_rank),
	T(param_null),
	T(param_empty),
	T(param_as_input),
	T(param_twice),
	T(param_as_state),
	T(param_symbol),
	T(param_huge),
	T(input_as_param),
	T(variable_null),
	T(buffer_type),
	T(buffer_as_input),
	T(symbol_null),
	T(symbol_empty),
	T(symbol_bad),
	T(symbol_twice),
	T(symbol_range),
	T(symbol_negative),
	T(output_null),
	T(output_empty),
	T(output_twice),
	T(output_none),
	T(output_other),
	T(output_wild),
	T(assign_value),
	T(assign_none),
	T(assign_type),
	T(assign_other),
	T(call_null),
	T(call_empty),
	T(call_unknown),
	T(call_args),
	T(call_many),
	T(call_in_place),
	T(call_input),
	T(call_missing),
	T(call_surplus),
	T(call_twice),
	T(call_no_such),
	T(call_empty_name),
	T(call_kind),
	T(call_kind_negative),
	T(call_text),
	T(call_text_bad),
	T(call_dtype),
	T(call_values),
	T(call_no_values),
	T(call_absent),
	T(call_ints),
	T(call_floats),
	T(call_bools),
	T(call_complex),
	T(call_other),
	T(result_single),
	T(result_9),
	T(result_none),
	T(shape_null),
	T(shape_none),
	T(shape_several),
	T(dtype_none),
	T(dtype_several),
	T(nresult_none),
	T(extent_9),
	T(extent_none),
	T(extent_several),
	T(block_name),
	T(block_empty),
	T(block_x),
	T(block_y),
	T(block_forward),
	T(block_inverse),
	T(mark),
	T(mark_null),
	T(softmax_dim),
	T(softmax_negative),
	T(log_softmax_dim),
	T(sum_dim),
	T(sum_twice),
	T(mean_dim),
	T(mean_twice),
	T(permute_twice),
	T(permute_few),
	T(permute_dim),
	T(transpose_dim),
	T(select_dim),
	T(select_index),
	T(select_negative),
	T(flatten_dim),
	T(flatten_order),
	T(reshape_two),
	T(reshape_count),
	T(reshape_negative),
	T(reshape_part),
	T(concat_dim),
	T(concat_shape),
	T(quantile),
	T(quantile_negative),
	T(diagonal),
	T(diagonal_same),
	T(clamp),
	T(clamp_tensor),
	T(flip_twice),
	T(roll_dim),
	T(cumsum_dim),
	T(argmax_dim),
	T(topk),
	T(topk_negative),
	T(unsqueeze_dim),
	T(squeeze_dim),
	T(split_size),
	T(split_sizes),
	T(chunk),
	T(narrow),
	T(slice_step),
	T(slice_dim),
	T(gather_dim),
	T(index_select_dim),
	T(expand),
	T(repeat),
	T(norm_shape),
	T(group_norm),
	T(linear_shape),
	T(matmul_shape),
	T(add_shape),
	T(conv_rank),
	T(pool_size),
	T(pool_padding),
	T(pool_large),
	T(embedding),
	T(dropout),
	T(one_hot),
	T(div_mode),
	T(cross_entropy),
	T(pad),
	T(pad_mode),
	T(tril),
	T(arange),
	T(full),
	T(gather_float),
	T(take_float),
	T(scatter_float),
	T(index_add_float),
	T(einsum_less),
	T(einsum),
};

static void test_traces(void **state)
{
	(void)state;
	uint32_t failures = 0;
	for (size_t k = 0; k < sizeof wrong_trace / sizeof *wrong_trace; k++) {
		Weft *w = weft_new();
		WeftTrace *other = weft_trace_new(w, "other");
		Traced c = {.t = weft_trace_new(w, "model"),
			    .other = weft_trace_input(other, "z", "f32[2]")};
		c.x = weft_trace_input(c.t, "x", "f32[4, 6]");
		c.i = weft_trace_input(c.t, "i", "i64[4]");
		weft_trace_output(c.t, "y", weft_relu(c.t, c.x));
		wrong_trace[k].fn(&c);
		bool taken = weft_trace_end(c.t);
		failures += is_wrong(w, wrong_trace[k].name, taken);
		weft_free(w);
	}
	print_message("%zu wrong traces\n", sizeof wrong_trace / sizeof *wrong_trace);
	assert_int_equal(failures, 0);
}

static void test_ended(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftTrace *t = weft_trace_new(w, "model");
	assert_null(weft_trace_end(t));
	assert_int_equal(is_wrong(w, "no output", false), 0);
	t = weft_trace_new(w, "model");
	weft_trace_output(t, "y", weft_trace_input(t, "x", "f32[2]"));
	assert_non_null(weft_trace_end(t));
	weft_trace_input(t, NULL, "f32[2]");
	assert_null(weft_trace_end(t));
	assert_int_equal(weft_nmessages(w), 2);
	weft_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_traces),
		cmocka_unit_test(test_ended),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
