/* Wrong calls of weft_graph.h: each is refused with one error, and leaves the graph as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "weft_graph.h"
#include "weft_trace.h"

static const char plain[] =
	"graph @f(%x: f32[B, 3], %w: f32[3]) where 1 <= B {\n"
	"  %a = aten.add.Tensor(%x, %w)\n  %m = aten.max.dim(%a, dim=1)\n  %v = get(%m, index=0)\n"
	"  %l = aten.cat([%a, %x])\n  %e = aten.layer_norm(%a, normalized_shape=[3], %w, none)\n"
	"  %c = full(value=true, shape=[], dtype=bool)\n  assert(%c, message=\"no\")\n"
	"  %s = while([%a], [], cond=graph @t(%z: f32[B, 3]) {\n    %f = full(value=false, "
	"shape=[], dtype=bool)\n"
	"    return %f\n  }, body=graph @b(%z: f32[B, 3]) {\n    %n = neg(%z)\n    return %n\n  "
	"})\n"
	"  %g = get(%s, index=0)\n  return %v, %l, %e, %g\n}\n";

/* What wrong calls are made with. */
typedef struct {
	Weft *w;
	WeftGraph *g, *copy, *foreign, *joined, *body;
	WeftNode x, a, m, v, l, e, c, s, n, gone, of_copy, of_foreign, wild, check;
	WeftTensor t;
	WeftAttr out;
	double number;
} Place;

/* True: it was taken for right. */
typedef bool WrongFn(Place *);
#define WRONG(name, call)                                                                          \
	static bool wrong_##name(Place *p)                                                         \
	{                                                                                          \
		return call;                                                                       \
	}
#define NO ((WeftNode){NULL, 0})
#define ARGS(...)                                                                                  \
	(const WeftAttr[]){__VA_ARGS__}, sizeof((const WeftAttr[]){__VA_ARGS__}) / sizeof(WeftAttr)
#define AX weft_attr_node(p->x)

static WeftAttr of_kind(int kind, uint32_t n)
{
	WeftAttr a = {"dim", (WeftAttrKind)kind, n, {{NULL, 0}}};
	a.u.ints = NULL;
	return a;
}

/* Every function that takes a node, with what is none. */
#define EACH(X)                                                                                    \
	X(next, weft_node_next(p->w, n).index)                                                     \
	X(prev, weft_node_prev(p->w, n).index)                                                     \
	X(written, weft_node_written(p->w, n).index)                                               \
	X(kind, weft_node_kind(p->w, n) != WEFT_NODE_NONE)                                         \
	X(op, weft_node_op(p->w, n))                                                               \
	X(overload, weft_node_overload(p->w, n))                                                   \
	X(is, weft_node_is(p->w, n, "aten.relu"))                                                  \
	X(name, weft_node_name(p->w, n))                                                           \
	X(set_name, weft_node_set_name(p->w, n, "other"))                                          \
	X(user_name, weft_node_user_name(p->w, n))                                                 \
	X(line, weft_node_line(p->w, n))                                                           \
	X(text, weft_node_text(p->w, n))                                                           \
	X(nresult, weft_node_nresult(p->w, n))                                                     \
	X(shape, weft_node_shape(p->w, n, 0, NULL, NULL) >= 0)                                     \
	X(type, weft_node_type(p->w, n, 0))                                                        \
	X(extent, weft_node_extent(p->w, n, 0, 0))                                                 \
	X(noperand, weft_node_noperand(p->w, n))                                                   \
	X(operand, weft_node_operand(p->w, n, 0).index)                                            \
	X(users, weft_node_users(p->w, n, NULL))                                                   \
	X(nread, weft_node_nread(p->w, n))                                                         \
	X(nattr, weft_node_nattr(p->w, n))                                                         \
	X(attr_at, weft_node_attr_at(p->w, n, 0, &p->out))                                         \
	X(attr, weft_node_attr(p->w, n, "self", &p->out))                                          \
	X(arg, weft_node_arg(p->w, n, "self").index)                                               \
	X(number, weft_node_number(p->w, n, "alpha", &p->number))                                  \
	X(body, weft_node_body(p->w, n, "body"))                                                   \
	X(before, weft_node_insert_before(p->w, n, "aten.relu", ARGS(AX)).index)                   \
	X(after, weft_node_insert_after(p->w, n, "aten.relu", ARGS(AX)).index)                     \
	X(result, weft_node_result(p->w, n, 0).index)                                              \
	X(replace, weft_node_replace(p->w, n, p->a))                                               \
	X(set_operand, weft_node_set_operand(p->w, n, 0, p->x))                                    \
	X(set_attr,                                                                                \
	  weft_node_set_attr(p->w, n,                                                              \
			     &(const WeftAttr[]){weft_attr_named("alpha", weft_attr_int(2))}[0]))  \
	X(erase, weft_node_erase(p->w, n))                                                         \
	X(set_written, weft_graph_set_written(p->w, n, p->x))                                      \
	X(tensor, weft_node_tensor(p->w, n, &p->t))

/* Every function that takes a graph. */
#define EACH_GRAPH(X)                                                                              \
	X(first, weft_node_first(p->w, g).index)                                                   \
	X(last, weft_node_last(p->w, g).index)                                                     \
	X(find, weft_node_find(p->w, g, "x").index)                                                \
	X(of_input, weft_node_of_input(p->w, g, 0).index)                                          \
	X(of_state, weft_node_of_state(p->w, g, 0).index)                                          \
	X(of_output, weft_node_of_output(p->w, g, 0).index)                                        \
	X(sweep, weft_graph_sweep(p->w, g))                                                        \
	X(set_output, weft_graph_set_output(p->w, g, 0, p->x))                                     \
	X(add_output, weft_graph_add_output(p->w, g, "more", p->x))                                \
	X(rename_size, weft_graph_rename_size(p->w, g, "B", "batch"))                              \
	X(remove_output, weft_graph_remove_output(p->w, g, 0))                                     \
	X(add_input, weft_graph_add_input(p->w, g, "more", "f32[]").index)                         \
	X(constant, weft_graph_constant(p->w, g, NULL, &p->t).index)                               \
	X(verify, weft_graph_verify(p->w, g))                                                      \
	X(like, weft_parse_like(p->w, g, plain, "f"))                                              \
	X(pattern, weft_replace_pattern(p->w, p->g, g, p->copy) >= 0)                              \
	X(replacement, weft_replace_pattern(p->w, p->g, p->copy, g) >= 0)                          \
	X(replace_in, weft_replace_pattern(p->w, g, p->copy, p->copy) >= 0)

typedef bool NodeFn(Place *, WeftNode);
typedef bool GraphFn(Place *, WeftGraph *);
#define DEFINE(name, call)                                                                         \
	static bool node_##name(Place *p, WeftNode n)                                              \
	{                                                                                          \
		return call;                                                                       \
	}
#define DEFINE_GRAPH(name, call)                                                                   \
	static bool graph_##name(Place *p, WeftGraph *g)                                           \
	{                                                                                          \
		return call;                                                                       \
	}
#define ROW(name, call)       {#name, node_##name},
#define ROW_GRAPH(name, call) {#name, graph_##name},

EACH(DEFINE)
EACH_GRAPH(DEFINE_GRAPH)

static const struct {
	const char *name;
	NodeFn *fn;
} of_nodes[] = {EACH(ROW)};
static const struct {
	const char *name;
	GraphFn *fn;
} of_graphs[] = {EACH_GRAPH(ROW_GRAPH)};

/* Further arguments. */
#define SET(...)        weft_node_set_attr(p->w, p->a, &(const WeftAttr[]){__VA_ARGS__}[0])
#define INSERT(op, ...) weft_node_insert_after(p->w, p->a, op, ARGS(__VA_ARGS__))
#define ALL(X)                                                                                     \
	X(find_null, weft_node_find(p->w, p->g, NULL).index)                                       \
	X(find_empty, weft_node_find(p->w, p->g, "").index)                                        \
	X(input_9, weft_node_of_input(p->w, p->g, 9).index)                                        \
	X(state_0, weft_node_of_state(p->w, p->g, 0).index)                                        \
	X(output_9, weft_node_of_output(p->w, p->g, 9).index)                                      \
	X(written_call, weft_node_written(p->w, p->a).index)                                       \
	X(is_null, weft_node_is(p->w, p->a, NULL))                                                 \
	X(is_nothing, weft_node_is(p->w, p->a, "aten.nonsense"))                                   \
	X(name_null, weft_node_set_name(p->w, p->a, NULL))                                         \
	X(name_empty, weft_node_set_name(p->w, p->a, ""))                                          \
	X(shape_several, weft_node_shape(p->w, p->m, 2, NULL, NULL) >= 0)                          \
	X(type_9, weft_node_type(p->w, p->a, 9))                                                   \
	X(type_none, weft_node_type(p->w, p->check, 0))                                            \
	X(extent_9, weft_node_extent(p->w, p->a, 0, 9))                                            \
	X(operand_9, weft_node_operand(p->w, p->a, 9).index)                                       \
	X(attr_9, weft_node_attr_at(p->w, p->a, 9, &p->out))                                       \
	X(attr_at_null, weft_node_attr_at(p->w, p->a, 0, NULL))                                    \
	X(attr_null, weft_node_attr(p->w, p->a, NULL, &p->out))                                    \
	X(attr_out, weft_node_attr(p->w, p->a, "self", NULL))                                      \
	X(attr_unknown, weft_node_attr(p->w, p->a, "nonsense", &p->out))                           \
	X(arg_number, weft_node_arg(p->w, p->a, "alpha").index)                                    \
	X(arg_list, weft_node_arg(p->w, p->l, "tensors").index)                                    \
	X(number_node, weft_node_number(p->w, p->a, "self", &p->number))                           \
	X(body_number, weft_node_body(p->w, p->a, "alpha"))                                        \
	X(insert_null, weft_node_insert_before(p->w, p->a, NULL, NULL, 0).index)                   \
	X(insert_empty, weft_node_insert_before(p->w, p->a, "", NULL, 0).index)                    \
	X(insert_args, weft_node_insert_before(p->w, p->a, "aten.relu", NULL, 1).index)            \
	X(insert_many, weft_node_insert_before(p->w, p->a, "aten.relu", &p->out, 1u << 31).index)  \
	X(insert_unknown, INSERT("aten.nonsense", AX).index)                                       \
	X(insert_input, INSERT("input", AX).index)                                                 \
	X(insert_constant, weft_node_insert_after(p->w, p->a, "constant", NULL, 0).index)          \
	X(insert_in_place, INSERT("aten.relu_", AX).index)                                         \
	X(insert_missing, weft_node_insert_after(p->w, p->a, "aten.relu", NULL, 0).index)          \
	X(insert_none, INSERT("aten.relu", weft_attr_node(NO)).index)                              \
	X(insert_copy, INSERT("aten.relu", weft_attr_node(p->of_copy)).index)                      \
	X(insert_foreign, INSERT("aten.relu", weft_attr_node(p->of_foreign)).index)                \
	X(insert_gone, INSERT("aten.relu", weft_attr_node(p->gone)).index)                         \
	X(insert_wild, INSERT("aten.relu", weft_attr_node(p->wild)).index)                         \
	X(insert_body, INSERT("aten.relu", weft_attr_node(p->n)).index)                            \
	X(insert_check, INSERT("aten.relu", weft_attr_node(p->check)).index)                       \
	X(insert_tuple, INSERT("aten.relu", weft_attr_node(p->m)).index)                           \
	X(insert_twice, INSERT("aten.relu", AX, weft_attr_named("self", AX)).index)                \
	X(insert_kind, INSERT("aten.softmax.int", AX, of_kind(99, 1)).index)                       \
	X(insert_negative, INSERT("aten.softmax.int", AX, of_kind(-1, 1)).index)                   \
	X(insert_dim, INSERT("aten.softmax.int", AX, weft_attr_int(5)).index)                      \
	X(insert_text, INSERT("aten.softmax.int", AX, of_kind(WEFT_ATTR_TEXT, 1)).index)           \
	X(insert_size, INSERT("aten.softmax.int", AX, of_kind(WEFT_ATTR_SIZE, 1)).index)           \
	X(insert_a_body, INSERT("aten.softmax.int", AX, of_kind(WEFT_ATTR_BODY, 1)).index)         \
	X(insert_value, INSERT("aten.softmax.int", AX, of_kind(WEFT_ATTR_VALUE, 1)).index)         \
	X(insert_ints, INSERT("aten.permute", AX, of_kind(WEFT_ATTR_INTS, 2)).index)               \
	X(insert_sizes, INSERT("aten.permute", AX, of_kind(WEFT_ATTR_SIZES, 2)).index)             \
	X(insert_floats, INSERT("aten.permute", AX, of_kind(WEFT_ATTR_FLOATS, 2)).index)           \
	X(insert_bools, INSERT("aten.permute", AX, of_kind(WEFT_ATTR_BOOLS, 2)).index)             \
	X(insert_nodes, INSERT("aten.cat", of_kind(WEFT_ATTR_NODES, 2)).index)                     \
	X(insert_long, INSERT("aten.cat", of_kind(WEFT_ATTR_NODES, UINT32_MAX)).index)             \
	X(insert_no_nodes, INSERT("aten.cat", weft_attr_nodes(NULL, 0)).index)                     \
	X(insert_absent, INSERT("aten.cat", weft_attr_nodes(&(const WeftNode){NULL, 0}, 1)).index) \
	X(insert_dtype, INSERT("aten.to.dtype", AX, weft_attr_text("f33")).index)                  \
	X(insert_while, weft_node_insert_after(p->w, p->a, "while", NULL, 0).index)                \
	X(insert_random, INSERT("aten.rand_like", AX).index)                                       \
	X(insert_shape, INSERT("aten.mm", AX, weft_attr_node(p->c)).index)                         \
	X(size_unknown,                                                                            \
	  INSERT("aten.reshape", AX, weft_attr_sizes((const char *const[]){"Q"}, 1)).index)        \
	X(size_empty,                                                                              \
	  INSERT("aten.reshape", AX, weft_attr_sizes((const char *const[]){""}, 1)).index)         \
	X(size_null,                                                                               \
	  INSERT("aten.reshape", AX, weft_attr_sizes((const char *const[]){NULL}, 1)).index)       \
	X(size_rest,                                                                               \
	  INSERT("aten.reshape", AX, weft_attr_sizes((const char *const[]){"3*B )"}, 1)).index)    \
	X(size_real,                                                                               \
	  INSERT("aten.reshape", AX, weft_attr_sizes((const char *const[]){"1.5"}, 1)).index)      \
	X(size_huge, INSERT("aten.reshape", AX,                                                    \
			    weft_attr_sizes(                                                       \
				    (const char *const[]){                                         \
					    "9223372036854775807 * B + 9223372036854775807 * B"},  \
				    1))                                                            \
			     .index)                                                               \
	X(size_zero,                                                                               \
	  INSERT("aten.reshape", AX, weft_attr_sizes((const char *const[]){"floordiv(B, 0)"}, 1))  \
		  .index)                                                                          \
	X(result_single, weft_node_result(p->w, p->a, 0).index)                                    \
	X(result_9, weft_node_result(p->w, p->m, 9).index)                                         \
	X(replace_none, weft_node_replace(p->w, p->a, NO))                                         \
	X(replace_same, weft_node_replace(p->w, p->a, p->a))                                       \
	X(replace_type, weft_node_replace(p->w, p->a, p->v))                                       \
	X(replace_extent, weft_node_replace(p->w, p->l, p->a))                                     \
	X(replace_tuple, weft_node_replace(p->w, p->a, p->m))                                      \
	X(replace_check, weft_node_replace(p->w, p->a, p->check))                                  \
	X(replace_copy, weft_node_replace(p->w, p->a, p->of_copy))                                 \
	X(replace_foreign, weft_node_replace(p->w, p->a, p->of_foreign))                           \
	X(replace_gone, weft_node_replace(p->w, p->a, p->gone))                                    \
	X(operand_range, weft_node_set_operand(p->w, p->a, 2, p->x))                               \
	X(operand_none, weft_node_set_operand(p->w, p->a, 0, NO))                                  \
	X(operand_self, weft_node_set_operand(p->w, p->a, 0, p->a))                                \
	X(operand_type, weft_node_set_operand(p->w, p->a, 0, p->l))                                \
	X(operand_dtype, weft_node_set_operand(p->w, p->l, 0, p->c))                               \
	X(operand_copy, weft_node_set_operand(p->w, p->a, 0, p->of_copy))                          \
	X(operand_gone, weft_node_set_operand(p->w, p->a, 0, p->gone))                             \
	X(operand_input, weft_node_set_operand(p->w, p->x, 0, p->a))                               \
	X(operand_loop, weft_node_set_operand(p->w, p->s, 0, p->l))                                \
	X(set_null, weft_node_set_attr(p->w, p->a, NULL))                                          \
	X(set_no_name, SET(weft_attr_int(1)))                                                      \
	X(set_unknown, SET(weft_attr_named("nonsense", weft_attr_int(1))))                         \
	X(set_node, SET(weft_attr_named("alpha", AX)))                                             \
	X(set_value, SET(weft_attr_named("self", weft_attr_int(1))))                               \
	X(set_absent, SET(weft_attr_named("self", weft_attr_none())))                              \
	X(set_list, SET(weft_attr_named("self", weft_attr_nodes(&p->x, 1))))                       \
	X(set_text, SET(weft_attr_named("alpha", weft_attr_text("x"))))                            \
	X(set_longer, weft_node_set_attr(p->w, p->l,                                               \
					 &(const WeftAttr[]){weft_attr_named(                      \
						 "tensors", weft_attr_nodes(&p->x, 1))}[0]))       \
	X(set_body,                                                                                \
	  weft_node_set_attr(p->w, p->s,                                                           \
			     &(const WeftAttr[]){weft_attr_named("body", weft_attr_int(1))}[0]))   \
	X(erase_read, weft_node_erase(p->w, p->a))                                                 \
	X(erase_input, weft_node_erase(p->w, p->x))                                                \
	X(erase_output, weft_node_erase(p->w, p->v))                                               \
	X(output_range, weft_graph_set_output(p->w, p->g, 9, p->x))                                \
	X(output_none, weft_graph_set_output(p->w, p->g, 0, NO))                                   \
	X(output_tuple, weft_graph_set_output(p->w, p->g, 0, p->m))                                \
	X(output_check, weft_graph_set_output(p->w, p->g, 0, p->check))                            \
	X(output_body, weft_graph_set_output(p->w, p->body, 0, p->a))                              \
	X(rename_none, weft_graph_rename_size(p->w, p->g, "nobody", "batch"))                      \
	X(rename_null, weft_graph_rename_size(p->w, p->g, NULL, "batch"))                          \
	X(rename_body, weft_graph_rename_size(p->w, p->body, "B", "batch"))                        \
	X(output_null, weft_graph_add_output(p->w, p->g, NULL, p->x))                              \
	X(output_empty, weft_graph_add_output(p->w, p->g, "", p->x))                               \
	X(output_twice, weft_graph_add_output(p->w, p->g, "v", p->x))                              \
	X(remove_9, weft_graph_remove_output(p->w, p->g, 9))                                       \
	X(remove_body, weft_graph_remove_output(p->w, p->body, 0))                                 \
	X(input_null, weft_graph_add_input(p->w, p->g, NULL, "f32[]").index)                       \
	X(input_empty, weft_graph_add_input(p->w, p->g, "", "f32[]").index)                        \
	X(input_twice, weft_graph_add_input(p->w, p->g, "x", "f32[]").index)                       \
	X(input_type, weft_graph_add_input(p->w, p->g, "y", NULL).index)                           \
	X(input_bad, weft_graph_add_input(p->w, p->g, "y", "f33[]").index)                         \
	X(input_several, weft_graph_add_input(p->w, p->g, "y", "(f32[], f32[])").index)            \
	X(input_body, weft_graph_add_input(p->w, p->body, "y", "f32[]").index)                     \
	X(written_type, weft_graph_set_written(p->w, p->x, p->a))                                  \
	X(tensor_call, weft_node_tensor(p->w, p->a, &p->t))                                        \
	X(tensor_input, weft_node_tensor(p->w, p->x, &p->t))                                       \
	X(tensor_null, weft_node_tensor(p->w, p->a, NULL))                                         \
	X(constant_null, weft_graph_constant(p->w, p->g, NULL, NULL).index)                        \
	X(constant_empty, weft_graph_constant(p->w, p->g, "", &p->t).index)                        \
	X(constant_taken, weft_graph_constant(p->w, p->g, "x", &p->t).index)                       \
	X(constant_zeros,                                                                          \
	  weft_graph_constant(p->w, p->g, NULL, &(WeftTensor){.data = NULL}).index)                \
	X(constant_data, weft_graph_constant(p->w, p->g, NULL,                                     \
					     &(WeftTensor){.device = {WEFT_CPU, 0},                \
							   .dtype = {WEFT_FLOAT, 32, 1}})          \
				 .index)                                                           \
	X(constant_rank, weft_graph_constant(p->w, p->g, NULL,                                     \
					     &(WeftTensor){.device = {WEFT_CPU, 0},                \
							   .ndim = 99,                             \
							   .dtype = {WEFT_FLOAT, 32, 1}})          \
				 .index)                                                           \
	X(like_null, weft_parse_like(p->w, p->g, NULL, "f"))                                       \
	X(like_name, weft_parse_like(p->w, p->g, plain, NULL))                                     \
	X(like_bad, weft_parse_like(p->w, p->g, "graph", "f"))                                     \
	X(like_constant,                                                                           \
	  weft_parse_like(p->w, p->g, "graph @f() {\n  %c = const #99 f32[2]\n  return %c\n}",     \
			  "f"))
ALL(WRONG)
#undef ROW
#define ROW(name, call) {#name, wrong_##name},
static const struct {
	const char *name;
	WrongFn *fn;
} wrong_call[] = {ALL(ROW)};

static void fill(Place *p, Weft *other)
{
	static float data[6];
	static int64_t shape[2] = {2, 3};
	*p = (Place){.w = weft_new(), .foreign = weft_parse(other, plain, "other")};
	p->g = weft_parse(p->w, plain, "f");
	p->copy = weft_copy_graph(p->w, p->g);
	p->joined =
		weft_join(p->w, 2, (const char *const[]){"a", "b"}, (WeftGraph *[]){p->g, p->g});
	WeftNode *const named[] = {&p->x, &p->a, &p->m, &p->v, &p->l, &p->e, &p->c, &p->s};
	for (size_t k = 0; k < sizeof named / sizeof *named; k++)
		*named[k] = weft_node_find(
			p->w, p->g,
			(const char *const[]){"x", "a", "m", "v", "l", "e", "c", "s"}[k]);
	p->check = weft_node_next(p->w, p->c);
	p->body = weft_node_body(p->w, p->s, "body");
	p->n = weft_node_find(p->w, p->body, "n");
	p->gone = weft_node_insert_after(p->w, p->a, "aten.relu",
					 &(const WeftAttr[]){weft_attr_node(p->a)}[0], 1);
	weft_node_erase(p->w, p->gone);
	p->of_copy = weft_node_find(p->w, p->copy, "a");
	p->of_foreign = weft_node_find(other, p->foreign, "a");
	p->wild = (WeftNode){p->g, 123456789};
	p->t = (WeftTensor){data, {WEFT_CPU, 0}, 2, {WEFT_FLOAT, 32, 1}, shape, NULL, 0};
	if (!weft_graph_verify(p->w, p->g) || weft_nmessages(p->w) || !p->n.index ||
	    !p->of_foreign.index)
		fail_msg("%s", weft_messages(p->w));
}

/* Whether it was taken for right, said something else than one error, or changed the graph; 1
 * then. */
static uint32_t is_wrong(Place *p, const char *call, const char *with, const char *before,
			 bool taken)
{
	bool one = weft_nmessages(p->w) == 1 && weft_message(p->w, 0).severity == WEFT_ERROR &&
		   weft_message(p->w, 0).text[0] &&
		   !strstr(weft_message(p->w, 0).text, "internal error") &&
		   !strstr(weft_message(p->w, 0).text, "cannot be done");
	uint32_t n = weft_nmessages(p->w);
	const char *after = weft_graph_text(p->w, p->g, NULL);
	bool same = after && !strcmp(after, before) && weft_graph_text(p->w, p->body, NULL);
	if (!taken && one && same && weft_nmessages(p->w) == n)
		return 0;
	print_error("%s%s: %s, %u messages%s: %s\n", call, with,
		    taken ? "taken for right" : "refused", n, same ? "" : ", changed",
		    weft_messages(p->w));
	return 1;
}

static uint32_t done(Place *p, Weft *other, const char *call, const char *with, const char *before,
		     bool taken)
{
	uint32_t failures = is_wrong(p, call, with, before, taken);
	weft_free(p->w);
	weft_free(other);
	return failures;
}

static void test_calls(void **state)
{
	(void)state;
	uint32_t failures = 0;
	Place p;
	for (size_t k = 0; k < sizeof wrong_call / sizeof *wrong_call; k++) {
		Weft *other = weft_new();
		fill(&p, other);
		const char *before = weft_graph_text(p.w, p.g, NULL);
		bool taken = wrong_call[k].fn(&p);
		failures += done(&p, other, wrong_call[k].name, "", before, taken);
	}
	print_message("%zu wrong calls\n", sizeof wrong_call / sizeof *wrong_call);
	assert_int_equal(failures, 0);
}

static void test_nodes(void **state)
{
	(void)state;
	static const char *const with[] = {" of no node", " of a wild node", " of an erased node",
					   " of another Weft", " of no graph"};
	uint32_t failures = 0;
	Place p;
	for (size_t k = 0; k < sizeof of_nodes / sizeof *of_nodes; k++)
		for (int i = 0; i < 5; i++) {
			Weft *other = weft_new();
			fill(&p, other);
			const char *before = weft_graph_text(p.w, p.g, NULL);
			bool taken = of_nodes[k].fn(
				&p,
				(const WeftNode[]){NO, p.wild, p.gone, p.of_foreign, {NULL, 3}}[i]);
			failures += done(&p, other, of_nodes[k].name, with[i], before, taken);
		}
	assert_int_equal(failures, 0);
}

static void test_graphs(void **state)
{
	(void)state;
	static const char *const with[] = {" of no graph", " of another Weft",
					   " of several graphs"};
	uint32_t failures = 0;
	Place p;
	for (size_t k = 0; k < sizeof of_graphs / sizeof *of_graphs; k++)
		for (int i = 0; i < 3; i++) {
			Weft *other = weft_new();
			fill(&p, other);
			const char *before = weft_graph_text(p.w, p.g, NULL);
			bool taken = of_graphs[k].fn(
				&p, (WeftGraph *const[]){NULL, p.foreign, p.joined}[i]);
			failures += done(&p, other, of_graphs[k].name, with[i], before, taken);
		}
	assert_int_equal(failures, 0);
}

/* Without a Weft nothing can be said; after an error everything works. */
static void test_without(void **state)
{
	(void)state;
	Weft *other = weft_new();
	Place p;
	fill(&p, other);
	Weft *w = p.w;
	p.w = NULL;
	for (size_t k = 0; k < sizeof of_nodes / sizeof *of_nodes; k++)
		assert_false(of_nodes[k].fn(&p, p.a));
	for (size_t k = 0; k < sizeof of_graphs / sizeof *of_graphs; k++)
		assert_false(of_graphs[k].fn(&p, p.g));
	assert_int_equal(weft_nmessages(w), 0);
	p.w = w;
	assert_false(weft_node_erase(w, NO));
	WeftNode y = weft_node_insert_after(w, p.a, "aten.relu",
					    &(const WeftAttr[]){weft_attr_node(p.a)}[0], 1);
	assert_true(weft_node_replace(w, p.a, y) && weft_graph_verify(w, p.g));
	assert_int_equal(weft_nmessages(w), 1);
	weft_free(w);
	weft_free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls), cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_graphs), cmocka_unit_test(test_without)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
