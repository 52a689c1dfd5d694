/* The API called with what it should not get: NULL, empty, twice, too many, of another Weft. Each
 * wrong call gives no result and exactly one error, which says something; none crashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft.h"
#include "weft_op.h"
#include "weft_saved.h"
#include "weft_trace.h"
#include "wrong_fixture.h"

static const char plain[] = "graph @f(%x: f32[B, 3], %w: f32[3]) where 1 <= B {\n  %b = "
			    "broadcast(%w, shape=[B, 3], map=[1])\n"
			    "  %y = mul(%x, %b)\n  return %y\n}\n";
static const char *const null_name[] = {NULL}, *const empty_name[] = {""};

/* ---- weft.h ---- */

/* What wrong calls are made with. */
typedef struct {
	Weft *w;
	WeftGraph *g, *foreign, *joined, *state;
	WeftTensors *t;
	WeftTensor x;
	const char *model, *path; /* a file; one that is not there */
} Place;

/* True: it was taken for right. */
typedef bool WrongFn(Place *);
#define WRONG(name, call)                                                                          \
	static bool wrong_##name(Place *p)                                                         \
	{                                                                                          \
		(void)p;                                                                           \
		return call;                                                                       \
	}

static const WeftTensor *several(const WeftTensor *x)
{
	static WeftTensor two[2];
	two[0] = two[1] = *x;
	return two;
}

WRONG(load_null, weft_load(p->w, NULL))
WRONG(load_empty, weft_load(p->w, ""))
WRONG(load_none, weft_load(p->w, "/nonexistent/model.pt2"))
WRONG(load_guards,
      weft_load_with(p->w, p->model,
		     &(WeftLoadOptions){.size = sizeof(WeftLoadOptions), .nignore_guard = 1}))
WRONG(load_guard, weft_load_with(p->w, p->model,
				 &(WeftLoadOptions){.size = sizeof(WeftLoadOptions),
						    .nignore_guard = 1,
						    .ignore_guard = null_name}))
WRONG(load_names,
      weft_load_with(p->w, p->model,
		     &(WeftLoadOptions){.size = sizeof(WeftLoadOptions), .noutput_name = 1}))
WRONG(load_name, weft_load_with(p->w, p->model,
				&(WeftLoadOptions){.size = sizeof(WeftLoadOptions),
						   .noutput_name = 1,
						   .output_name = null_name}))
WRONG(load_no_size, weft_load_with(p->w, p->model, &(WeftLoadOptions){.seed = 1}))
WRONG(load_newer, weft_load_with(p->w, p->model, &(WeftLoadOptions){.size = 1 << 20}))
WRONG(memory_null, weft_load_memory(p->w, NULL, "m.pt2"))
WRONG(memory_data, weft_load_memory(p->w, &(WeftMemory){NULL, 8, NULL, NULL}, "m.pt2"))
WRONG(memory_empty, weft_load_memory(p->w, &(WeftMemory){plain, 0, NULL, NULL}, "m.pt2"))
WRONG(memory_name, weft_load_memory(p->w, &(WeftMemory){plain, sizeof plain - 1, NULL, NULL}, NULL))
WRONG(memory_no_zip,
      weft_load_memory(p->w, &(WeftMemory){plain, sizeof plain - 1, NULL, NULL}, "m.pt2"))
WRONG(memory_newer, weft_load_memory_with(p->w, &(WeftMemory){plain, sizeof plain - 1, NULL, NULL},
					  "m", &(WeftLoadOptions){.size = 1 << 20}))
WRONG(hold_null, weft_hold(p->w, NULL))
WRONG(hold_data, weft_hold(p->w, &(WeftMemory){0}))
WRONG(parse_null, weft_parse(p->w, NULL, "f"))
WRONG(parse_empty, weft_parse(p->w, "", "f"))
WRONG(parse_no_name, weft_parse(p->w, plain, NULL))
WRONG(parse_empty_name, weft_parse(p->w, plain, ""))
WRONG(op_load_null, weft_op_load(p->w, NULL))
WRONG(op_load_empty, weft_op_load(p->w, ""))
WRONG(op_register_null, weft_op_register(p->w, NULL))
WRONG(op_register_zeros, weft_op_register(p->w, &(WeftOpDef){.size = sizeof(WeftOpDef)}))
WRONG(op_register_size, weft_op_register(p->w, &(WeftOpDef){.size = 0}))
WRONG(mode_graph, weft_set_mode(p->w, NULL, WEFT_TRAIN))
WRONG(mode_foreign, weft_set_mode(p->w, p->foreign, WEFT_TRAIN))
WRONG(mode_joined, weft_set_mode(p->w, p->joined, WEFT_EVAL))
WRONG(mode_none, weft_set_mode(p->w, p->g, (WeftMode)2))
WRONG(precision_graph, weft_set_precision(p->w, NULL, WEFT_PRECISION_BF16))
WRONG(precision_foreign, weft_set_precision(p->w, p->foreign, WEFT_PRECISION_BF16))
WRONG(precision_joined, weft_set_precision(p->w, p->joined, WEFT_PRECISION_F16))
WRONG(precision_none, weft_set_precision(p->w, p->g, (WeftPrecision)2))
WRONG(transform_graph, weft_transform(p->w, NULL, "cse"))
WRONG(transform_null, weft_transform(p->w, p->g, NULL))
WRONG(transform_empty, weft_transform(p->w, p->g, ""))
WRONG(transform_unknown, weft_transform(p->w, p->g, "nonsense"))
WRONG(transform_foreign, weft_transform(p->w, p->foreign, "cse"))
WRONG(bound_graph, weft_bound_loop(p->w, NULL, "while", 3))
WRONG(bound_null, weft_bound_loop(p->w, p->g, NULL, 3))
WRONG(bound_unknown, weft_bound_loop(p->w, p->g, "while", 3))
WRONG(bound_negative, weft_bound_loop(p->w, p->g, "while", -3))
WRONG(copy_null, weft_copy_graph(p->w, NULL))
WRONG(copy_foreign, weft_copy_graph(p->w, p->foreign))
WRONG(copy_joined, weft_copy_graph(p->w, p->joined))
#define GRAD(...) (&(WeftGradOptions){.size = sizeof(WeftGradOptions), __VA_ARGS__})
WRONG(vjp_graph, weft_vjp(p->w, NULL, NULL))
WRONG(vjp_foreign, weft_vjp(p->w, p->foreign, NULL))
WRONG(vjp_joined, weft_vjp(p->w, p->joined, NULL))
WRONG(vjp_wrt, weft_vjp(p->w, p->g, GRAD(.nwrt = 1)))
WRONG(vjp_wrt_null, weft_vjp(p->w, p->g, GRAD(.nwrt = 1, .wrt = null_name)))
WRONG(vjp_wrt_empty, weft_vjp(p->w, p->g, GRAD(.nwrt = 1, .wrt = empty_name)))
WRONG(vjp_input, weft_vjp(p->w, p->g, GRAD(.ninput = 1)))
WRONG(vjp_input_9, weft_vjp(p->w, p->g, GRAD(.ninput = 1, .input = (const uint32_t[]){9})))
WRONG(vjp_output, weft_vjp(p->w, p->g, GRAD(.noutput = 1)))
WRONG(vjp_output_9, weft_vjp(p->w, p->g, GRAD(.noutput = 1, .output = (const uint32_t[]){9})))
WRONG(vjp_no_size, weft_vjp(p->w, p->g, &(WeftGradOptions){.ninput = 1, .input = &(uint32_t){0}}))
WRONG(jvp_no_size, weft_jvp(p->w, p->g, &(WeftGradOptions){.size = 3}))
WRONG(vmap_no_size, weft_vmap(p->w, p->g, &(WeftVmapOptions){.extent = 2}))
WRONG(plan_no_size, weft_plan(p->w, p->g, &(WeftOptions){.target = "generic-c"}))
WRONG(loops_no_size, weft_loops(p->w, p->g, &(WeftOptions){.replaceable = true}))
WRONG(vjp_newer, weft_vjp(p->w, p->g, &(WeftGradOptions){.size = 1 << 20}))
WRONG(jvp_graph, weft_jvp(p->w, NULL, NULL))
WRONG(jvp_wrt, weft_jvp(p->w, p->g, GRAD(.nwrt = 1, .wrt = null_name)))
WRONG(split_graph, weft_vjp_split(p->w, NULL, NULL, &p->g, &p->g))
WRONG(split_room, weft_vjp_split(p->w, p->g, NULL, NULL, NULL))
static bool wrong_split_budget(Place *p)
{
	const double budget = -1;
	WeftGraph *f, *b;
	return weft_vjp_split(p->w, p->g, GRAD(.memory_budget = &budget), &f, &b);
}
WRONG(inverses_null, weft_check_inverses(p->w, NULL))
WRONG(inverses_none, weft_check_inverses(p->w, p->g))
#define VMAP(...) (&(WeftVmapOptions){.size = sizeof(WeftVmapOptions), __VA_ARGS__})
WRONG(vmap_graph, weft_vmap(p->w, NULL, NULL))
WRONG(vmap_names, weft_vmap(p->w, p->g, VMAP(.nbatched = 1)))
WRONG(vmap_name, weft_vmap(p->w, p->g, VMAP(.nbatched = 1, .batched = null_name)))
WRONG(vmap_empty, weft_vmap(p->w, p->g, VMAP(.nbatched = 1, .batched = empty_name)))
WRONG(vmap_inputs, weft_vmap(p->w, p->g, VMAP(.ninput = 1)))
WRONG(vmap_input_9, weft_vmap(p->w, p->g, VMAP(.ninput = 1, .input = (const uint32_t[]){9})))
WRONG(vmap_in_dim, weft_vmap(p->w, p->g, VMAP(.nin_dim = 1)))
WRONG(vmap_in_dim_9, weft_vmap(p->w, p->g, VMAP(.nin_dim = 1, .in_dim = (const int32_t[]){9})))
WRONG(vmap_in_dims, weft_vmap(p->w, p->g, VMAP(.nin_dim = 3, .in_dim = (const int32_t[]){0, 0, 0})))
WRONG(vmap_out_dim, weft_vmap(p->w, p->g, VMAP(.nout_dim = 1)))
WRONG(vmap_out_dim_9, weft_vmap(p->w, p->g, VMAP(.nout_dim = 1, .out_dim = (const int32_t[]){-9})))
WRONG(vmap_extent, weft_vmap(p->w, p->g, VMAP(.extent = -1)))
WRONG(vmap_extent_most, weft_vmap(p->w, p->g, VMAP(.extent = INT64_MAX)))
WRONG(vmap_extent_48, weft_vmap(p->w, p->g, VMAP(.extent = INT64_C(1) << 48)))
WRONG(vmap_extent_47, weft_vmap(p->w, p->g, VMAP(.extent = INT64_C(1) << 47)))
WRONG(vmap_symbol, weft_vmap(p->w, p->g, VMAP(.symbol = "")))
WRONG(vmap_random, weft_vmap(p->w, p->g, VMAP(.randomness = (WeftRandomness)7)))
static const char *const two_names[] = {"a", "b"}, *const same_names[] = {"a", "a"},
			 *const bad_names[] = {"a", "b c"}, *const half_names[] = {"a", NULL};
WRONG(join_none, weft_join(p->w, 0, two_names, &p->g))
WRONG(join_names, weft_join(p->w, 1, NULL, &p->g))
WRONG(join_graphs, weft_join(p->w, 1, two_names, NULL))
WRONG(join_graph, weft_join(p->w, 1, two_names, (WeftGraph *[]){NULL}))
WRONG(join_same, weft_join(p->w, 2, same_names, (WeftGraph *[]){p->g, p->g}))
WRONG(join_bad, weft_join(p->w, 2, bad_names, (WeftGraph *[]){p->g, p->g}))
WRONG(join_half, weft_join(p->w, 2, half_names, (WeftGraph *[]){p->g, p->g}))
WRONG(join_foreign, weft_join(p->w, 2, two_names, (WeftGraph *[]){p->g, p->foreign}))
WRONG(join_joined, weft_join(p->w, 2, two_names, (WeftGraph *[]){p->g, p->joined}))
WRONG(join_no_size, weft_join_with(p->w, 1, two_names, &p->g, &(WeftJoinOptions){.nprivate = 1}))
WRONG(join_private,
      weft_join_with(p->w, 1, two_names, &p->g,
		     &(WeftJoinOptions){.size = sizeof(WeftJoinOptions), .nprivate = 1}))
WRONG(join_private_null, weft_join_with(p->w, 1, two_names, &p->g,
					&(WeftJoinOptions){.size = sizeof(WeftJoinOptions),
							   .nprivate = 1,
							   .private_state = null_name}))
WRONG(join_shared, weft_join_with(p->w, 1, two_names, &p->g,
				  &(WeftJoinOptions){.size = sizeof(WeftJoinOptions),
						     .nsame = 1,
						     .same_state = empty_name}))
WRONG(text_null, weft_graph_text(p->w, NULL, NULL))
WRONG(text_pass, weft_graph_text(p->w, p->g, "nonsense"))
WRONG(text_foreign, weft_graph_text(p->w, p->foreign, NULL))
WRONG(dot_null, weft_graph_dot(p->w, NULL, NULL))
WRONG(dot_joined, weft_graph_dot(p->w, p->joined, NULL))
WRONG(inputs_null, weft_inputs(p->w, NULL, &(uint32_t){0}))
WRONG(inputs_foreign, weft_inputs(p->w, p->foreign, &(uint32_t){0}))
WRONG(inputs_joined, weft_inputs(p->w, p->joined, NULL))
WRONG(outputs_null, weft_outputs(p->w, NULL, NULL))
WRONG(states_null, weft_states(p->w, NULL, NULL))
WRONG(symbols_null, weft_symbols(p->w, NULL, NULL))
WRONG(guards_null, weft_guards(p->w, NULL, NULL))
WRONG(operators_null, weft_operators(p->w, NULL, NULL))
WRONG(shape_graph, weft_input_shape(p->w, NULL, 0, (const int64_t[]){2}, (int64_t[2]){0}))
WRONG(shape_symbols, weft_input_shape(p->w, p->g, 0, NULL, (int64_t[2]){0}))
WRONG(shape_room, weft_input_shape(p->w, p->g, 0, (const int64_t[]){2}, NULL))
WRONG(shape_9, weft_input_shape(p->w, p->g, 9, (const int64_t[]){2}, (int64_t[2]){0}))
WRONG(results_null, weft_results(p->w, NULL, NULL))
WRONG(run_all, weft_interpret_all(p->w, p->g, NULL, several(&p->x), 2, NULL))
WRONG(run_graph, weft_interpret(p->w, NULL, &p->x, 1, &(WeftTensor){0}))
WRONG(run_foreign, weft_interpret(p->w, p->foreign, &p->x, 1, &(WeftTensor){0}))
WRONG(run_inputs, weft_interpret(p->w, p->g, NULL, 2, &(WeftTensor){0}))
WRONG(run_outputs, weft_interpret(p->w, p->g, several(&p->x), 2, NULL))
WRONG(run_few, weft_interpret(p->w, p->g, &p->x, 1, &(WeftTensor){0}))
WRONG(run_many, weft_interpret(p->w, p->g, several(&p->x), 7, &(WeftTensor){0}))
static bool run_with(Place *p, WeftTensor x)
{
	int64_t three = 3;
	WeftTensor in[2] = {x, p->x}, out;
	in[1].ndim = 1;
	in[1].shape = &three;
	return weft_interpret(p->w, p->g, in, 2, &out);
}
static WeftTensor with_data(WeftTensor x, void *data)
{
	x.data = data;
	return x;
}
static WeftTensor with_shape(WeftTensor x, int32_t ndim, int64_t *shape)
{
	x.ndim = ndim;
	x.shape = shape;
	return x;
}
WRONG(run_zeros, run_with(p, (WeftTensor){0}))
WRONG(run_no_data, run_with(p, with_data(p->x, NULL)))
WRONG(run_no_shape, run_with(p, with_shape(p->x, 2, NULL)))
WRONG(run_rank, run_with(p, with_shape(p->x, -1, (int64_t[]){2, 3})))
WRONG(run_rank_99, run_with(p, with_shape(p->x, 99, (int64_t[]){2, 3})))
WRONG(run_other_rank, run_with(p, with_shape(p->x, 1, (int64_t[]){3})))
WRONG(run_negative, run_with(p, with_shape(p->x, 2, (int64_t[]){-2, 3})))
WRONG(run_other, run_with(p, with_shape(p->x, 2, (int64_t[]){2, 4})))
WRONG(run_below, run_with(p, with_shape(p->x, 2, (int64_t[]){0, 3})))
WRONG(run_huge, run_with(p, with_shape(p->x, 2, (int64_t[]){INT64_MAX, 3})))
WRONG(run_strides, run_with(p, (WeftTensor){NULL,
					    {WEFT_CPU, 0},
					    2,
					    {WEFT_FLOAT, 32, 1},
					    (int64_t[]){2, 3},
					    (int64_t[]){1, 2},
					    0}))
static WeftTensor of_dtype(WeftTensor x, uint8_t code, uint8_t bits, uint16_t lanes)
{
	x.dtype.code = code;
	x.dtype.bits = bits;
	x.dtype.lanes = lanes;
	return x;
}
WRONG(run_dtype, run_with(p, of_dtype(p->x, WEFT_INT, 32, 1)))
WRONG(run_no_dtype, run_with(p, of_dtype(p->x, 77, 3, 1)))
static bool on_state(Place *p, WeftTensor s)
{
	WeftTensor out, x = with_shape(p->x, 1, (int64_t[]){3});
	return weft_interpret_on(p->w, p->state, &s, &x, 1, &out);
}
WRONG(state_zeros, on_state(p, (WeftTensor){0}))
WRONG(state_shape, on_state(p, with_shape(p->x, 1, (int64_t[]){2})))
WRONG(state_dtype, on_state(p, of_dtype(with_shape(p->x, 1, (int64_t[]){3}), WEFT_INT, 32, 1)))
WRONG(first_graph, weft_first_state(p->w, NULL, &p->x))
WRONG(first_null, weft_first_state(p->w, p->state, NULL))
WRONG(first_zeros, weft_first_state(p->w, p->state, &(WeftTensor){0}))
static bool wrong_first_short(Place *p)
{
	const WeftTensor s = with_shape(p->x, 1, (int64_t[]){1});
	return weft_first_state(p->w, p->state, &s);
}
WRONG(targets_empty, weft_targets(p->w, "", &(uint32_t){0}))
WRONG(targets_none, weft_targets(p->w, "nonsense", NULL))
#define OPTIONS(...) (&(WeftOptions){.size = sizeof(WeftOptions), __VA_ARGS__})
WRONG(compile_graph, weft_compile(p->w, NULL, NULL, p->path))
WRONG(compile_null, weft_compile(p->w, p->g, NULL, NULL))
WRONG(compile_empty, weft_compile(p->w, p->g, NULL, ""))
WRONG(compile_foreign, weft_compile(p->w, p->foreign, NULL, p->path))
WRONG(compile_link, weft_compile(p->w, p->g, OPTIONS(.nlink = 1), p->path))
WRONG(compile_link_null, weft_compile(p->w, p->g, OPTIONS(.nlink = 1, .link = null_name), p->path))
WRONG(compile_target, weft_compile(p->w, p->g, OPTIONS(.target = ""), p->path))
WRONG(compile_backend, weft_compile(p->w, p->g, OPTIONS(.backend = (WeftBackend)9), p->path))
WRONG(compile_weights, weft_compile(p->w, p->g, OPTIONS(.weights = (WeftWeights)9), p->path))
WRONG(compile_symbol, weft_compile(p->w, p->g, OPTIONS(.symbol = "a b"), p->path))
WRONG(compile_tune, weft_compile(p->w, p->g, OPTIONS(.tune = ""), p->path))
WRONG(compile_newer, weft_compile(p->w, p->g, &(WeftOptions){.size = 1 << 20}, p->path))
WRONG(emit_graph, weft_emit(p->w, NULL, NULL, WEFT_EMIT_IR, p->path))
WRONG(emit_null, weft_emit(p->w, p->g, NULL, WEFT_EMIT_IR, NULL))
WRONG(emit_kind, weft_emit(p->w, p->g, NULL, (WeftEmit)99, p->path))
WRONG(emit_negative, weft_emit(p->w, p->g, NULL, (WeftEmit)-1, p->path))
WRONG(save_null, weft_save_memory(p->w, p->g, NULL, WEFT_EMIT_IR, NULL, NULL))
WRONG(save_graph, weft_save_memory(p->w, NULL, NULL, WEFT_EMIT_IR, &(WeftMemory){0}, NULL))
WRONG(save_foreign,
      weft_save_memory(p->w, p->foreign, NULL, WEFT_EMIT_SHARED, &(WeftMemory){0}, NULL))
WRONG(save_weights, weft_save_memory(p->w, p->g, OPTIONS(.weights = WEFT_WEIGHTS_FILE),
				     WEFT_EMIT_SHARED, &(WeftMemory){0}, NULL))
WRONG(save_kind, weft_save_memory(p->w, p->g, NULL, (WeftEmit)99, &(WeftMemory){0}, NULL))
WRONG(save_folder, weft_save_memory(p->w, p->g, NULL, WEFT_EMIT_C, &(WeftMemory){0}, NULL))
WRONG(jit_graph, weft_jit(p->w, NULL, NULL))
WRONG(jit_target, weft_jit(p->w, p->g, OPTIONS(.target = "nonsense")))
WRONG(keep_graph, weft_jit_keep(p->w, NULL, NULL))
WRONG(keep_foreign, weft_jit_keep(p->w, p->foreign, NULL))
WRONG(keep_joined, weft_jit_keep(p->w, p->joined, OPTIONS(.target = "nonsense")))
WRONG(loops_graph, weft_loops(p->w, NULL, NULL))
WRONG(plan_graph, weft_plan(p->w, NULL, NULL))
WRONG(report_none, weft_report_at(p->w, (const int64_t[]){2}, 1))
static bool reported(Place *p, const int64_t *v, uint32_t n)
{
	return weft_plan(p->w, p->g, NULL) && weft_report_at(p->w, v, n);
}
WRONG(report_null, reported(p, NULL, 1))
WRONG(report_few, reported(p, NULL, 0))
WRONG(report_below, reported(p, (const int64_t[]){0}, 1))
WRONG(tensors_null, weft_tensors_read(p->w, NULL))
WRONG(tensors_empty, weft_tensors_read(p->w, ""))
WRONG(tensors_none, weft_tensors_read(p->w, "/nonexistent/x.npz"))
WRONG(add_null, weft_tensors_add(p->w, NULL, "x", &p->x))
WRONG(add_name, weft_tensors_add(p->w, p->t, NULL, &p->x))
WRONG(add_empty, weft_tensors_add(p->w, p->t, "", &p->x))
WRONG(add_tensor, weft_tensors_add(p->w, p->t, "x", NULL))
WRONG(add_zeros, weft_tensors_add(p->w, p->t, "x", &(WeftTensor){0}))
static bool wrong_add_twice(Place *p)
{
	return weft_tensors_add(p->w, p->t, "x", &p->x) && weft_tensors_add(p->w, p->t, "x", &p->x);
}
static bool wrong_add_no_data(Place *p)
{
	const WeftTensor x = with_data(p->x, NULL);
	return weft_tensors_add(p->w, p->t, "x", &x);
}
WRONG(write_null, weft_tensors_write(p->w, NULL, p->path))
WRONG(write_path, weft_tensors_write(p->w, p->t, NULL))
WRONG(write_empty, weft_tensors_write(p->w, p->t, ""))
WRONG(write_folder, weft_tensors_write(p->w, p->t, "/nonexistent/x.safetensors"))
WRONG(file_null, weft_write_file(p->w, NULL, "x", 1))
WRONG(file_empty, weft_write_file(p->w, "", "x", 1))
WRONG(file_data, weft_write_file(p->w, p->path, NULL, 1))
WRONG(trace_null, weft_trace_new(p->w, NULL))
WRONG(trace_empty, weft_trace_new(p->w, ""))

#define W(name) {#name, wrong_##name}
static const struct {
	const char *name;
	WrongFn *fn;
} wrong_call[] = {
	W(load_null),         W(load_empty),        W(load_none),         W(load_guards),
	W(load_guard),        W(load_names),        W(load_name),         W(load_no_size),
	W(load_newer),        W(parse_null),        W(memory_null),       W(memory_data),
	W(memory_empty),      W(memory_name),       W(memory_no_zip),     W(memory_newer),
	W(hold_null),         W(hold_data),         W(save_null),         W(save_graph),
	W(save_foreign),      W(save_weights),      W(save_kind),         W(save_folder),
	W(parse_empty),       W(parse_no_name),     W(parse_empty_name),  W(op_load_null),
	W(op_load_empty),     W(op_register_null),  W(op_register_zeros), W(op_register_size),
	W(mode_graph),        W(mode_foreign),      W(mode_joined),       W(mode_none),
	W(precision_graph),   W(precision_foreign), W(precision_joined),  W(precision_none),
	W(transform_graph),   W(transform_null),    W(transform_empty),   W(transform_unknown),
	W(transform_foreign), W(bound_graph),       W(bound_null),        W(bound_unknown),
	W(bound_negative),    W(copy_null),         W(copy_foreign),      W(copy_joined),
	W(vjp_graph),         W(vjp_foreign),       W(vjp_joined),        W(vjp_wrt),
	W(vjp_wrt_null),      W(vjp_wrt_empty),     W(vjp_input),         W(vjp_input_9),
	W(vjp_output),        W(vjp_output_9),      W(vjp_no_size),       W(jvp_no_size),
	W(vmap_no_size),      W(join_no_size),      W(plan_no_size),      W(loops_no_size),
	W(vjp_newer),         W(jvp_graph),         W(jvp_wrt),           W(split_graph),
	W(split_room),        W(split_budget),      W(inverses_null),     W(inverses_none),
	W(vmap_graph),        W(vmap_names),        W(vmap_name),         W(vmap_empty),
	W(vmap_inputs),       W(vmap_input_9),      W(vmap_in_dim),       W(vmap_in_dim_9),
	W(vmap_in_dims),      W(vmap_out_dim),      W(vmap_out_dim_9),    W(vmap_extent),
	W(vmap_extent_most),  W(vmap_extent_48),    W(vmap_extent_47),    W(vmap_symbol),
	W(vmap_random),       W(join_none),         W(join_names),        W(join_graphs),
	W(join_graph),        W(join_same),         W(join_bad),          W(join_half),
	W(join_foreign),      W(join_joined),       W(join_private),      W(join_private_null),
	W(join_shared),       W(text_null),         W(text_pass),         W(text_foreign),
	W(dot_null),          W(dot_joined),        W(inputs_null),       W(inputs_foreign),
	W(inputs_joined),     W(outputs_null),      W(states_null),       W(symbols_null),
	W(guards_null),       W(operators_null),    W(shape_graph),       W(shape_symbols),
	W(shape_room),        W(shape_9),           W(run_graph),         W(run_foreign),
	W(results_null),      W(run_all),           W(run_inputs),        W(run_outputs),
	W(run_few),           W(run_many),          W(run_zeros),         W(run_no_data),
	W(run_no_shape),      W(run_rank),          W(run_rank_99),       W(run_other_rank),
	W(run_negative),      W(run_other),         W(run_below),         W(run_huge),
	W(run_strides),       W(run_dtype),         W(run_no_dtype),      W(state_zeros),
	W(state_shape),       W(state_dtype),       W(first_graph),       W(first_null),
	W(first_zeros),       W(first_short),       W(targets_empty),     W(targets_none),
	W(compile_graph),     W(compile_null),      W(compile_empty),     W(compile_foreign),
	W(compile_link),      W(compile_link_null), W(compile_target),    W(compile_backend),
	W(compile_weights),   W(compile_symbol),    W(compile_tune),      W(compile_newer),
	W(emit_graph),        W(emit_null),         W(emit_kind),         W(emit_negative),
	W(jit_graph),         W(jit_target),        W(keep_graph),        W(keep_foreign),
	W(keep_joined),       W(loops_graph),       W(plan_graph),        W(report_none),
	W(report_null),       W(report_few),        W(report_below),      W(tensors_null),
	W(tensors_empty),     W(tensors_none),      W(add_null),          W(add_name),
	W(add_empty),         W(add_tensor),        W(add_zeros),         W(add_twice),
	W(add_no_data),       W(write_null),        W(write_path),        W(write_empty),
	W(write_folder),      W(file_null),         W(file_empty),        W(file_data),
	W(trace_null),        W(trace_empty),
};

static WeftGraph *with_state(Weft *w)
{
	WeftTrace *t = weft_trace_new(w, "state");
	WeftValue x = weft_trace_input(t, "x", "f32[3]"),
		  s = weft_trace_variable(t, "s", "f32[3]", NULL);
	weft_trace_output(t, "y", weft_add(t, x, s));
	weft_trace_assign(t, s, x);
	return weft_trace_end(t);
}

static void test_calls(void **state)
{
	(void)state;
	float data[6] = {0};
	int64_t shape[2] = {2, 3};
	uint32_t failures = 0;
	for (size_t k = 0; k < sizeof wrong_call / sizeof *wrong_call; k++) {
		Weft *other = weft_new();
		Place p = {.w = weft_new(), .foreign = weft_parse(other, plain, "other")};
		p.g = weft_parse(p.w, plain, "f");
		p.joined = weft_join(p.w, 2, two_names, (WeftGraph *[]){p.g, p.g});
		p.state = with_state(p.w);
		p.t = weft_tensors_new(p.w);
		p.x = (WeftTensor){data, {WEFT_CPU, 0}, 2, {WEFT_FLOAT, 32, 1}, shape, NULL, 0};
		p.model = TEST_DATA "/mlp_deflated.pt2";
		p.path = "driver_wrong.out";
		assert_true(p.g && p.foreign && p.joined && p.state && !weft_nmessages(p.w));
		bool taken = wrong_call[k].fn(&p);
		failures += is_wrong(p.w, wrong_call[k].name, taken || remove(p.path) == 0);
		weft_free(p.w);
		weft_free(other);
	}
	print_message("%zu wrong calls\n", sizeof wrong_call / sizeof *wrong_call);
	assert_int_equal(failures, 0);
}

/* Without a Weft nothing can be said. */
static void test_nothing(void **state)
{
	(void)state;
	uint32_t n = 7;
	weft_free(NULL);
	weft_release(NULL);
	assert_int_equal(weft_nmessages(NULL), 0);
	assert_string_equal(weft_messages(NULL), "");
	assert_string_equal(weft_message(NULL, 3).text, "");
	assert_null(weft_load(NULL, "x"));
	assert_null(weft_parse(NULL, plain, "f"));
	assert_null(weft_vjp(NULL, NULL, NULL));
	assert_null(weft_inputs(NULL, NULL, &n));
	assert_int_equal(n, 0);
	assert_false(weft_compile(NULL, NULL, NULL, "x"));
	assert_null(weft_jit(NULL, NULL, NULL));
	assert_null(weft_report(NULL));
	assert_null(weft_report_at(NULL, NULL, 0));
	assert_string_equal(weft_dump(NULL), "");
	assert_int_equal(weft_weight_bytes(NULL), 0);
	assert_null(weft_tensors_read(NULL, "x"));
	assert_null(weft_tensors_new(NULL));
	assert_int_equal(weft_tensors_count(NULL), 0);
	assert_null(weft_tensors_name(NULL, 0));
	assert_null(weft_tensors_at(NULL, 0));
	assert_null(weft_tensors_find(NULL, "x"));
	assert_null(weft_tensors_meta(NULL, "x"));
	assert_false(weft_op_register(NULL, NULL));
	assert_null(weft_trace_new(NULL, "x"));
	assert_null(weft_trace_end(NULL));
	weft_trace_symbol(NULL, "B", 1, 2);
	assert_int_equal(weft_trace_input(NULL, "x", "f32[2]").node, 0);
	weft_trace_output(NULL, "x", (WeftValue){1, 1});
	assert_int_equal(weft_trace_shape(NULL, (WeftValue){1, 1}, (int64_t[12]){0}), -1);
	assert_null(weft_trace_extent(NULL, (WeftValue){1, 1}, 0));
	assert_null(weft_trace_dtype(NULL, (WeftValue){1, 1}));
	assert_int_equal(weft_relu(NULL, (WeftValue){1, 1}).node, 0);
	weft_invertible(NULL, "x", NULL, 0, NULL, 0, NULL, NULL, NULL);
}

static void test_sets(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftTensors *t = weft_tensors_new(w);
	assert_null(weft_tensors_name(t, 0));
	assert_null(weft_tensors_at(t, 0));
	assert_null(weft_tensors_find(t, NULL));
	assert_null(weft_tensors_meta(t, NULL));
	assert_int_equal(weft_nmessages(w), 0);
	weft_free(w);
}

/* ---- weft_model.h, weft_saved.h ---- */

static void test_tables(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g = weft_parse(w, plain, "f");
	const WeftModel *m = weft_loops(w, g, NULL);
	const WeftEntry *e = weft_entry(m, 0);
	WeftSizes *sizes = calloc(1, (size_t)e->sizes_bytes);
	char block[8];
	uint64_t bytes;
	assert_non_null(weft_input(m, e, 1));
	assert_non_null(weft_dim(m, weft_input(m, e, 0), 1));
	assert_true(!weft_entry(NULL, 0) && !weft_entry(m, 1));
	assert_true(!weft_input(NULL, e, 0) && !weft_input(m, NULL, 0) && !weft_input(m, e, 2));
	assert_true(!weft_output(NULL, e, 0) && !weft_output(m, NULL, 0) && !weft_output(m, e, 1));
	assert_true(!weft_state_info(NULL, 0) && !weft_state_info(m, 0));
	assert_true(!weft_dim(NULL, NULL, 0) && !weft_dim(m, NULL, 0) &&
		    !weft_dim(m, weft_input(m, e, 0), 2));
	assert_true(!weft_symbol(NULL, e, 0) && !weft_symbol(m, NULL, 0) && !weft_symbol(m, e, 1));
	assert_true(!weft_call(NULL, e, 0) && !weft_call(m, NULL, 0) && !weft_call(m, e, e->ncall));
	assert_true(!weft_param(NULL, 0) && !weft_param(m, m->nparam) && !weft_source(NULL, 0) &&
		    !weft_source(m, m->nsource));
	assert_true(!weft_layout_dim(NULL, NULL, 0) && !weft_layout_dim(m, NULL, 0));
	assert_true(!weft_output_shape(m, e, NULL, 0) && !weft_output_shape(m, e, sizes, 1) &&
		    !weft_output_shape(NULL, e, sizes, 0));
	assert_non_null(weft_model_check(NULL));
	assert_int_equal(weft_saved_is(NULL), 0);
	assert_true(!weft_saved_bytes(NULL, e, sizes) && !weft_saved_bytes(m, NULL, sizes) &&
		    !weft_saved_bytes(m, e, NULL));
	assert_non_null(weft_saved_outputs(NULL, e, sizes, block, 8, NULL));
	assert_non_null(weft_saved_outputs(m, e, sizes, NULL, 8, &(WeftTensor){0}));
	assert_non_null(weft_saved_inputs(NULL, e, block, 8, NULL));
	assert_non_null(weft_saved_inputs(m, e, NULL, 8, &(WeftTensor){0}));
	assert_false(
		weft_saved_size((WeftDType){WEFT_FLOAT, 32, 1}, 1, (const int64_t[]){-1}, &bytes));
	free(sizes);
	weft_free(w);
}

/* What an instance is asked: no null pointer, no entry or state that there is not. */
static void test_instances(void **state)
{
	(void)state;
	Weft *w = weft_new();
	WeftGraph *g = with_state(w);
	const WeftModel *m = weft_loops(w, g, NULL);
	WeftInstance *in, *copy;
	WeftStatus s;
	int64_t three = 3;
	float data[3] = {0};
	WeftTensor x = {data, {WEFT_CPU, 0}, 1, {WEFT_FLOAT, 32, 1}, &three, NULL, 0}, y = x;
	assert_non_null(m);
	assert_int_not_equal(m->open(NULL, NULL, &in, &s), WEFT_OK);
	assert_int_not_equal(m->open(m, NULL, NULL, &s), WEFT_OK);
	assert_int_equal(m->open(m, NULL, &in, &s), WEFT_OK);
	WeftSizes *sizes = calloc(1, (size_t)weft_entry(m, 0)->sizes_bytes);
	m->close(NULL);
	assert_int_not_equal(m->sizes(NULL, 0, &x, sizes, &s), WEFT_OK);
	assert_int_not_equal(m->sizes(in, 9, &x, sizes, &s), WEFT_OK);
	assert_int_not_equal(m->sizes(in, 0, NULL, sizes, &s), WEFT_OK);
	assert_int_not_equal(m->sizes(in, 0, &x, NULL, &s), WEFT_OK);
	assert_int_equal(m->sizes(in, 0, &x, sizes, &s), WEFT_OK);
	void *work = malloc((size_t)sizes->workspace_bytes + 64);
	assert_int_not_equal(m->run(NULL, sizes, &x, &y, work, NULL, &s), WEFT_OK);
	assert_int_not_equal(m->run(in, NULL, &x, &y, work, NULL, &s), WEFT_OK);
	assert_int_not_equal(m->run(in, sizes, NULL, &y, work, NULL, &s), WEFT_OK);
	assert_int_not_equal(m->run(in, sizes, &x, NULL, work, NULL, &s), WEFT_OK);
	assert_int_not_equal(m->run(in, sizes, &x, &y, NULL, NULL, &s), WEFT_OK);
	assert_int_not_equal(m->state_get(in, 9, &x, &s), WEFT_OK);
	assert_int_not_equal(m->state_get(in, 0, NULL, &s), WEFT_OK);
	assert_int_not_equal(m->state_get(NULL, 0, &x, &s), WEFT_OK);
	assert_int_not_equal(m->state_set(in, 9, &x, &s), WEFT_OK);
	assert_int_not_equal(m->state_set(in, 0, NULL, &s), WEFT_OK);
	assert_int_not_equal(m->state_set(NULL, 0, &x, &s), WEFT_OK);
	assert_int_not_equal(m->state_reset(NULL, &s), WEFT_OK);
	assert_int_not_equal(m->clone(NULL, &copy, &s), WEFT_OK);
	assert_int_not_equal(m->clone(in, NULL, &s), WEFT_OK);
	assert_int_not_equal(m->set_weights(NULL, 0, NULL, NULL, NULL, &s), WEFT_OK);
	assert_int_not_equal(m->set_weights(in, 1, NULL, NULL, NULL, &s), WEFT_OK);
	m->threads_free(NULL);
	free(work);
	free(sizes);
	m->close(in);
	weft_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),     cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_sets),      cmocka_unit_test(test_tables),
		cmocka_unit_test(test_instances),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
