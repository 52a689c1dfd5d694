/* Models of ONNX, written here byte by byte: what they become, and that damaged and hostile ones
 * are refused with one clear error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "frontend/onnx/model.h"
#include "frontend/onnx/onnx.h"
#include "ir/build/text.h"

/* ---- a writer of protocol buffers ---- */

static Arena *arena;

typedef struct {
	uint8_t *p;
	size_t n;
} Bytes;

static Bytes join(Bytes a, Bytes b)
{
	Bytes out = {arena_alloc(arena, a.n + b.n), a.n + b.n};
	if (a.n)
		memcpy(out.p, a.p, a.n);
	if (b.n)
		memcpy(out.p + a.n, b.p, b.n);
	return out;
}

static Bytes varint(uint64_t v)
{
	Bytes out = {arena_alloc(arena, 10), 0};
	do {
		out.p[out.n++] = (uint8_t)((v & 127) | (v > 127 ? 128 : 0));
		v >>= 7;
	} while (v);
	return out;
}

static Bytes number(uint32_t field, uint64_t v)
{
	return join(varint(field << 3), varint(v));
}

static Bytes block(uint32_t field, Bytes b)
{
	return join(join(varint(field << 3 | 2), varint(b.n)), b);
}

static Bytes text(uint32_t field, const char *s)
{
	return block(field, (Bytes){(uint8_t *)(uintptr_t)s, strlen(s)});
}

static Bytes all(uint32_t n, ...)
{
	Bytes out = {NULL, 0};
	va_list ap;
	va_start(ap, n);
	for (uint32_t k = 0; k < n; k++)
		out = join(out, va_arg(ap, Bytes));
	va_end(ap);
	return out;
}

/* ---- parts of models ---- */

enum { FLOAT = 1, INT64 = 7, STRING = 8 };

/* A tensor type; the extent -1 is the dimension "N". */
static Bytes info(const char *name, int64_t type, uint32_t rank, const int64_t *dim)
{
	Bytes shape = {NULL, 0};
	for (uint32_t k = 0; k < rank; k++)
		shape = join(shape,
			     block(1, dim[k] < 0 ? text(2, "N") : number(1, (uint64_t)dim[k])));
	Bytes tensor = all(2, number(1, (uint64_t)type), block(2, shape));
	return all(2, text(1, name), block(2, block(1, tensor)));
}

static Bytes node(const char *op, const char *in, const char *in2, const char *out, Bytes attr)
{
	return block(1, all(5, text(1, in), in2 ? text(1, in2) : (Bytes){NULL, 0}, text(2, out),
			    text(4, op), attr));
}

static Bytes tensor(const char *name, int64_t type, uint32_t rank, const int64_t *dim, Bytes rest)
{
	Bytes out = {NULL, 0};
	for (uint32_t k = 0; k < rank; k++)
		out = join(out, number(1, (uint64_t)dim[k]));
	return all(4, out, number(2, (uint64_t)type), text(8, name), rest);
}

static Bytes model(Bytes graph)
{
	return all(3, number(1, 8), block(7, graph), block(8, number(2, 17)));
}

static const int64_t two[] = {2}, three[] = {3}, dynamic[] = {-1, 3};
static const Bytes none = {NULL, 0};

static Bytes graph_of(Bytes nodes, Bytes more)
{
	return all(5, nodes, text(2, "g"), block(11, info("x", FLOAT, 2, dynamic)),
		   block(12, info("y", FLOAT, 2, dynamic)), more);
}

/* ---- reading ---- */

static char said[4000];

/* The graph as text, or what is said of the model. */
static const char *read_with(Bytes b, const OnnxOptions *options)
{
	Ctx *ctx = ctx_new();
	uint8_t *copy = malloc(b.n + 1);
	memcpy(copy, b.p, b.n);
	ctx->file = "m.onnx";
	if (setjmp(ctx->unwind)) {
		snprintf(said, sizeof said, "unwound: %s", ctx->bug_text);
	} else {
		Text t;
		text_init(&t, ctx->arena);
		Graph *g = onnx_load_bytes(ir_new(ctx), "m.onnx", copy, b.n, options);
		ctx_print(ctx, &t);
		if (g)
			graph_print(g, &t);
		assert_int_equal(ctx->nerror, g ? 0 : 1);
		snprintf(said, sizeof said, "%s", t.data);
	}
	free(copy);
	ctx_free(ctx);
	return said;
}

static const char *read_as(Bytes b)
{
	return read_with(b, NULL);
}

static void expect_with(Bytes b, const OnnxOptions *options, const char *what)
{
	const char *got = read_with(b, options);
	if (!strstr(got, what))
		fail_msg("expected \"%s\", got: %s", what, got);
}

static void expect(Bytes b, const char *what)
{
	expect_with(b, NULL, what);
}

static Bytes relu(void)
{
	return node("Relu", "x", NULL, "y", none);
}

static void test_reads(void **state)
{
	(void)state;
	expect(model(graph_of(relu(), none)), "graph @g(%x: f32[N, 3])");
	expect(model(graph_of(relu(), none)), "%y = onnx.Relu.1(%x)");
	/* an initializer, in raw form and as numbers */
	float v[3] = {1, 2, 3};
	Bytes raw = block(9, (Bytes){(uint8_t *)v, sizeof v}),
	      floats = block(4, (Bytes){(uint8_t *)v, sizeof v});
	expect(model(graph_of(node("Add", "x", "w", "y", none),
			      block(5, tensor("w", FLOAT, 1, three, raw)))),
	       "onnx.Add.7");
	expect(model(graph_of(node("Add", "x", "w", "y", none),
			      block(5, tensor("w", FLOAT, 1, three, floats)))),
	       "onnx.Add.7");
}

static void test_sizes(void **state)
{
	(void)state;
	/* Reshape(x, Shape(x)): nothing of it is computed when the model runs */
	Bytes nodes =
		join(node("Shape", "x", NULL, "s", none), node("Reshape", "x", "s", "y", none));
	expect(model(graph_of(nodes, none)), "onnx.Reshape.1(%x, shape=[N, 3]");
	assert_null(strstr(read_as(model(graph_of(nodes, none))), "from_size"));
}

/* An initializer of integers. */
static Bytes integers(const char *name, uint32_t n, const int64_t *v)
{
	int64_t dim[] = {n};
	return block(5, tensor(name, INT64, 1, dim,
			       block(9, (Bytes){(uint8_t *)(uintptr_t)v, n * sizeof *v})));
}

/* Pads as PyTorch's exporter writes them for opset 11 to 18: pairs by dimension from the last one
 * on, which become two rows, turned around. */
static void test_pads(void **state)
{
	(void)state;
	static const int64_t last[] = {1, 2}, missing[] = {2}, rows[] = {-1, 2}, minus[] = {-1},
			     first[] = {INT64_MIN + 1}, zero[] = {0};
	Bytes values = all(6, integers("last", 2, last), integers("missing", 1, missing),
			   integers("rows", 2, rows), integers("minus", 1, minus),
			   integers("first", 1, first), integers("zero", 1, zero));
	Bytes zeros =
		block(5, all(3, text(1, "value"), number(20, 4),
			     block(5, tensor("", INT64, 1, (int64_t[]){1},
					     block(9, (Bytes){(uint8_t *)(uintptr_t)zero, 8})))));
	Bytes axis = block(5, all(3, text(1, "axis"), number(20, 2), number(3, 0)));
	Bytes perm = block(5, all(4, text(1, "perm"), number(20, 7), number(8, 1), number(8, 0)));
	Bytes slice =
		block(1, all(7, text(1, "r"), text(1, "minus"), text(1, "first"), text(1, "zero"),
			     text(1, "minus"), text(2, "s"), text(4, "Slice")));
	Bytes nodes =
		all(7, node("ConstantOfShape", "missing", NULL, "z", zeros),
		    node("Concat", "last", "z", "c", axis), node("Reshape", "c", "rows", "r", none),
		    slice, node("Transpose", "s", NULL, "t", perm),
		    node("Reshape", "t", "minus", "p", none), node("Pad", "x", "p", "y", none));
	Bytes out = block(12, all(2, text(1, "y"), block(2, block(1, number(1, FLOAT)))));
	expect(model(all(5, nodes, text(2, "g"), block(11, info("x", FLOAT, 2, dynamic)), values,
			 out)),
	       "onnx.Pad.1(%x, pads=[0, 1, 0, 2])");
}

/* Names of inputs, outputs and dimensions are texts; those of the graph's nodes are made of
 * them. */
static void test_names(void **state)
{
	(void)state;
	Bytes shape = block(2, join(block(1, text(2, "batch size")), block(1, number(1, 3))));
	Bytes type = block(2, block(1, join(number(1, FLOAT), shape)));
	Bytes in = block(11, join(text(1, "1/x:0 \"\xc3\xa4"), type)),
	      out = block(12, join(text(1, "int"), type));
	Bytes m = model(all(4, node("Relu", "1/x:0 \"\xc3\xa4", NULL, "int", none), text(2, "a b"),
			    in, out));
	expect(m, "graph @a_b(%_1_x_0____: f32[batch_size, 3] \"1/x:0 \\\"\xc3\xa4\")");
	expect(m, "return %int");
	/* names that make one identifier are two symbols; -1 is no size */
	shape = block(2, all(4, block(1, text(2, "a.b")), block(1, text(2, "a_b")),
			     block(1, text(2, "a.b")), block(1, number(1, (uint64_t)-1))));
	type = block(2, block(1, join(number(1, FLOAT), shape)));
	m = model(all(4, node("Relu", "x", NULL, "y", none), text(2, "g"),
		      block(11, join(text(1, "x"), type)), block(12, join(text(1, "y"), type))));
	expect(m, "%x: f32[a_b, a_b_2, a_b, x_3]");
}

/* What PyTorch's exporter says of a node's place in the source. */
static void test_source_lines(void **state)
{
	(void)state;
	static const char trace[] =
		"File \"/home/u/net.py\", line 12, in forward\n  return f(x)\n"
		"File \"/usr/lib/python3/site-packages/torch/nn/functional.py\", line 9, in relu\n";
	const struct {
		const char *key, *value;
	} entry[] = {{"pkg.torch.onnx.stack_trace", trace},
		     {"pkg.torch.onnx.name_scopes", "['', 'layers.0', 'relu']"}};
	Bytes metadata = none;
	for (size_t k = 0; k < 2; k++)
		metadata = join(metadata,
				block(9, join(text(1, entry[k].key), text(2, entry[k].value))));
	expect(model(graph_of(node("Relu", "x", NULL, "y", metadata), none)),
	       "; net.py:12 in layers.0");
	expect(model(graph_of(node("Relu", "z", NULL, "y", metadata), none)),
	       "node y (Relu, net.py:12 in layers.0): error: input z is the result of no node");
}

/* A sequence has as many tensors as the caller gives, an optional one or none. */
static void test_lists(void **state)
{
	(void)state;
	float v[6] = {0};
	const NamedTensor value[] = {
		{"x.0.0", {.dtype = DT_f32, .rank = 1, .dim = {2}, .data = v}},
		{"x.0.1", {.dtype = DT_f32, .rank = 1, .dim = {3}, .data = v}},
		{"x.1", {.dtype = DT_f32, .rank = 1, .dim = {3}, .data = v}},
	};
	const OnnxOptions both = {value, 3}, sequence = {value, 2};
	int64_t any[] = {-1};
	Bytes elem = block(1, all(2, number(1, FLOAT), block(2, block(1, text(2, "N")))));
	Bytes list = block(11, join(text(1, "list"), block(2, block(4, block(1, elem)))));
	Bytes maybe = block(11, join(text(1, "maybe"), block(2, block(9, block(1, elem)))));
	Bytes at = all(3,
		       node("Constant", "", NULL, "one",
			    block(5, all(3, text(1, "value_int"), number(20, 2), number(3, 1)))),
		       node("SequenceAt", "list", "one", "z", none),
		       node("Relu", "z", NULL, "y", none));
	Bytes m = model(all(5, at, text(2, "g"), list, maybe, block(12, info("y", FLOAT, 1, any))));
	expect_with(m, &both, "(%list.0: f32[list_0_0], %list.1: f32[list_1_0], %maybe: f32[N])");
	expect_with(m, &both, "onnx.Relu.1(%list.1)");
	expect_with(m, &sequence, "%list.1: f32[list_1_0]) ->");
	expect(m, "input list is a sequence: what it holds must be given when the model is read, "
		  "as values x.0.0, x.0.1, ...");
	/* the list itself as a result */
	Bytes all_of =
		model(all(4, node("Identity", "list", NULL, "y", none), text(2, "g"), list,
			  block(12, join(text(1, "y"), block(2, block(4, block(1, elem)))))));
	expect_with(all_of, &sequence, "return %list.0 \"y.0\", %list.1 \"y.1\"");
	/* a sequence of sequences */
	Bytes deep = block(
		11, join(text(1, "list"), block(2, block(4, block(1, block(4, block(1, elem)))))));
	expect_with(model(all(4, node("Relu", "list", NULL, "y", none), text(2, "g"), deep,
			      block(12, info("y", FLOAT, 1, any)))),
		    &both, "input list is a sequence of other values than tensors");
}

/* Nodes that draw random numbers have no key yet: random_attach gives them the model's. */
static void test_random(void **state)
{
	(void)state;
	Bytes high = block(5, all(3, text(1, "high"), number(20, 1),
				  (Bytes){(uint8_t *)(uintptr_t) "\x15\0\0\0\x40", 5}));
	expect(model(graph_of(node("RandomUniformLike", "x", NULL, "y", high), none)),
	       "%y = onnx.RandomUniformLike.1(%x, high=2.0)");
	expect(model(graph_of(node("Bernoulli", "x", NULL, "y", none), none)),
	       "%y = onnx.Bernoulli.15(%x");
}

/* A graph that is an attribute: one node, of x. */
static Bytes branch(const char *attr, const char *op, Bytes op_attr, Bytes result)
{
	return block(
		5, all(3, text(1, attr), number(20, 5),
		       block(6, all(3, node(op, "x", NULL, "r", op_attr), text(2, attr), result))));
}

static Bytes int_attr(const char *name, uint64_t v)
{
	return block(5, all(3, text(1, name), number(20, 2), number(3, v)));
}

/* c: whether x has nothing but zeros; then y: what an If gives; then what stands behind it. */
static Bytes if_of_data(const char *y, Bytes branches, Bytes behind)
{
	static const int64_t empty[] = {0};
	Bytes nodes = all(
		5, node("NonZero", "x", NULL, "found", none),
		node("Shape", "found", NULL, "s", none), node("ReduceProd", "s", NULL, "n", none),
		node("Equal", "n", "zero", "c", none), node("If", "c", NULL, y, branches));
	return model(graph_of(join(nodes, behind), integers("zero", 1, empty)));
}

/* Branches whose results have other types, where data decides. */
static void test_if_of_data(void **state)
{
	(void)state;
	Bytes result = block(12, info("r", FLOAT, 2, dynamic));
	Bytes yes = branch("then_branch", "Relu", none, result);
	Bytes turned = join(yes, branch("else_branch", "Transpose", none, result));
	Bytes ints = join(yes, branch("else_branch", "Cast", int_attr("to", INT64), result));
	Bytes flat = join(yes, branch("else_branch", "ReduceMax", int_attr("keepdims", 0), result));
	/* other extents: filled up and cut off */
	expect(if_of_data("y", turned, none), "%y = slice(");
	expect(if_of_data("y", turned, none), "what=\"the extent of a branch's result\"");
	/* other dtypes: no model can have both; the same behind a node that both can read */
	expect(if_of_data("y", ints, none),
	       "y is f32[N, 3] in one branch and i64[N, 3] in the other: the condition must be "
	       "decided when the model is read");
	/* other ranks: the same */
	expect(if_of_data("y", flat, none),
	       ": error: y is f32[N, 3] in one branch and f32[] in the other: the condition must "
	       "be decided when the model is read");
	expect(if_of_data("z", ints, node("Cast", "z", NULL, "y", int_attr("to", FLOAT))),
	       "%y = get(");
	/* nodes behind it that do not read it stay where they are */
	Bytes apart = all(3, node("Neg", "x", NULL, "m", none),
			  node("Cast", "z", NULL, "f", int_attr("to", FLOAT)),
			  node("Add", "f", "m", "y", none));
	expect(if_of_data("z", ints, apart), "%y = onnx.Add.7(%f, %m)");
	/* a branch that the node behind refuses is left out */
	Bytes refused = if_of_data(
		"z", flat,
		node("Transpose", "z", NULL, "y",
		     block(5, all(4, text(1, "perm"), number(20, 7), number(8, 1), number(8, 0)))));
	expect(refused, "warning: else_branch cannot be computed with what follows: a call that "
			"takes it ends with an error (");
	expect(refused, "assert(");
	expect(refused, "%y = onnx.Transpose.1(");
}

/* A node whose results nobody names is no part of the graph. */
static void test_no_results(void **state)
{
	(void)state;
	Bytes identity = block(1, join(text(1, "x"), text(4, "Identity")));
	expect(model(graph_of(join(identity, relu()), none)), "return %y");
}

static void test_wrong_models(void **state)
{
	(void)state;
	expect(number(1, 8), "the model has no graph");
	expect(all(3, number(1, 8), block(7, graph_of(relu(), none)), block(8, number(2, 99))),
	       "the model has opset 99, expected at most 28");
	expect(model(all(3, relu(), text(2, "g"), block(11, info("x", FLOAT, 2, dynamic)))),
	       "the graph has no outputs");
	expect(model(graph_of(node("Relu", "z", NULL, "y", none), none)),
	       "input z is the result of no node before this one");
	/* a cycle */
	expect(model(graph_of(
		       join(node("Relu", "b", NULL, "a", none), node("Relu", "a", NULL, "b", none)),
		       none)),
	       "input b is the result of no node");
	expect(model(graph_of(join(relu(), relu()), none)), "y is defined twice");
	expect(model(graph_of(none, none)), "no node gives output y");
	expect(model(graph_of(
		       join(node("Foo", "x", NULL, "y", none), node("Bar", "x", NULL, "z", none)),
		       none)),
	       "not supported: Foo of opset 17, Bar of opset 17");
	Bytes attr = block(5, all(3, text(1, "beta"), number(20, 1), number(3, 1)));
	expect(model(graph_of(node("Relu", "x", NULL, "y", attr), none)),
	       "attribute beta is not supported");
	Bytes alpha = block(5, all(3, text(1, "alpha"), number(20, 2), number(3, 1)));
	expect(model(graph_of(node("LeakyRelu", "x", NULL, "y", alpha), none)),
	       "alpha: expected a float");
	Bytes unnamed = all(3, text(2, "b"), block(11, none), block(11, none));
	Bytes body = block(5, all(3, text(1, "body"), number(20, 5),
				  block(6, join(unnamed, block(12, info("more", 9, 0, NULL))))));
	expect(model(graph_of(node("Loop", "", "", "y", body), none)),
	       "input 0 of the graph body has no name");
	Bytes strings = all(4, relu(), text(2, "g"), block(11, info("x", STRING, 2, dynamic)),
			    block(12, info("y", FLOAT, 2, dynamic)));
	expect(model(strings), "input x is of STRING, which is not supported");
	/* the file contradicts the dtype of an output */
	Bytes other = all(4, relu(), text(2, "g"), block(11, info("x", FLOAT, 2, dynamic)),
			  block(12, info("y", INT64, 2, dynamic)));
	expect(model(other), "the model states the type INT64[N, 3], but it is f32[N, 3]");
}

/* What is stated of values inside, and of the extents of outputs, is compared and not used. */
static void test_stated_types(void **state)
{
	(void)state;
	static const int64_t four[] = {-1, 4};
	Bytes nodes = join(node("Relu", "x", NULL, "a", none), node("Neg", "a", NULL, "b", none));
	nodes = join(nodes, node("Abs", "b", NULL, "y", none));
	Bytes ends = all(3, text(2, "g"), block(11, info("x", FLOAT, 2, dynamic)),
			 block(12, info("y", FLOAT, 2, four)));
	Bytes stated =
		all(4, block(13, info("a", FLOAT, 1, two)), block(13, info("b", INT64, 2, dynamic)),
		    block(13, info("gone", INT64, 2, dynamic)),
		    block(13, info("x", FLOAT, 2, dynamic)));
	expect(model(all(3, nodes, ends, stated)),
	       "y: the model states the type FLOAT[N, 4], but it is f32[N, 3]\n"
	       "m.onnx: warning: a: the model states the type FLOAT[2], but it is f32[N, 3] (so "
	       "do value_infos of 1 other values)");
	expect(model(all(3, nodes, ends, stated)), "%y = onnx.Abs.1(");
	assert_null(strstr(read_as(model(all(3, nodes, ends, none))), "value_info"));
}

/* A tensor type with these names of dimensions. */
static Bytes named(const char *name, uint32_t n, const char *const *dim)
{
	Bytes shape = none;
	for (uint32_t k = 0; k < n; k++)
		shape = join(shape, block(1, text(2, dim[k])));
	Bytes type = all(2, number(1, FLOAT), block(2, shape));
	return all(2, text(1, name), block(2, block(1, type)));
}

/* What exporters write for an extent that they do not know is no name: each is a size of its own.
 */
static void test_unknown_dimensions(void **state)
{
	(void)state;
	static const char *const word[] = {"?",   "",        "-1",      "*",  "None",
					   "unk", "unk__12", "Unknown", "'?'"};
	for (size_t k = 0; k < sizeof word / sizeof *word; k++) {
		const char *const dim[] = {word[k], "x_0", word[k]};
		Bytes graph = all(4, relu(), text(2, "g"), block(11, named("x", 3, dim)),
				  block(12, named("y", 3, dim)));
		expect(model(graph), "graph @g(%x: f32[x_0, x_0_2, x_2])");
	}
	static const char *const same[] = {"batch", "unk_", "batch"};
	expect(model(all(4, relu(), text(2, "g"), block(11, named("x", 3, same)),
			 block(12, named("y", 3, same)))),
	       "graph @g(%x: f32[batch, unk_, batch])");
}

/* ---- hostile values ---- */

static Bytes scalar(const char *name, int64_t v)
{
	return block(5, tensor(name, INT64, 0, NULL,
			       block(9, (Bytes){arena_dup(arena, &v, sizeof v), sizeof v})));
}

static Bytes call(const char *op, uint32_t n, const char *const *in, const char *out, Bytes attr)
{
	Bytes names = none;
	for (uint32_t k = 0; k < n; k++)
		names = join(names, text(1, in[k]));
	return block(1, all(4, names, text(2, out), text(4, op), attr));
}

/* Arithmetic of sizes at the bounds of 64-bit integers. */
static void test_extreme_sizes(void **state)
{
	(void)state;
	/* 3 * b = 2^64 + 5 */
	static const int64_t five[] = {1, 2, 3, 4, 5}, wraps[] = {3, INT64_C(6148914691236517207)};
	Bytes values = join(integers("five", 5, five), integers("wraps", 2, wraps));
	expect(model(graph_of(join(relu(), node("Reshape", "five", "wraps", "r", none)), values)),
	       "the size mul(3, 6148914691236517207) leaves 64-bit integers");
	static const int64_t one[] = {1}, three_[] = {3}, zero[] = {0}, most[] = {INT64_MAX},
			     shape[] = {7, -1, 9};
	Bytes bounds = all(5, integers("shape", 3, shape), integers("one", 1, one),
			   integers("three", 1, three_), integers("zero", 1, zero),
			   integers("most", 1, most));
	Bytes cut = call("Slice", 5, (const char *const[]){"shape", "one", "three", "zero", "most"},
			 "s", none);
	Bytes any = block(12, all(2, text(1, "y"), block(2, block(1, number(1, FLOAT)))));
	Bytes in = block(11, info("x", FLOAT, 2, dynamic));
	expect(model(all(6, cut, node("Reshape", "x", "s", "y", none), text(2, "g"), in, any,
			 bounds)),
	       "onnx.Reshape.1(%x, shape=[-1]");
	Bytes ends =
		all(3, scalar("from", INT64_MAX - 1), scalar("to", INT64_MAX), scalar("by", 2));
	Bytes range = call("Range", 3, (const char *const[]){"from", "to", "by"}, "r", none);
	expect(model(all(6, range, node("Reshape", "x", "r", "y", none), text(2, "g"), in, any,
			 ends)),
	       "9223372036854775806");
	Bytes least = all(3, scalar("from", 0), scalar("at", 0), scalar("by", INT64_MIN));
	Bytes down =
		all(3, node("Shape", "x", NULL, "n", none), node("Gather", "n", "at", "to", none),
		    call("Range", 3, (const char *const[]){"from", "to", "by"}, "y", none));
	Bytes ints = block(12, all(2, text(1, "y"), block(2, block(1, number(1, INT64)))));
	expect(model(all(5, down, text(2, "g"), in, ints, least)), "to_size");
}

/* Axes that the one dimension of sizes does not have. */
static void test_axes_of_sizes(void **state)
{
	(void)state;
	static const int64_t zero[] = {0}, both[] = {0, 1};
	Bytes axis = block(5, all(3, text(1, "axis"), number(20, 2), number(3, 3)));
	Bytes shape = node("Shape", "x", NULL, "s", none);
	expect(model(graph_of(all(3, relu(), shape, node("Gather", "s", "zero", "r", axis)),
			      integers("zero", 1, zero))),
	       "axis is 3, of a tensor of rank 1");
	expect(model(graph_of(all(3, relu(), shape, node("Concat", "s", "s", "r", axis)), none)),
	       "axis is 3, of a tensor of rank 1");
	Bytes slice =
		call("Slice", 4, (const char *const[]){"s", "zero", "zero", "both"}, "r", none);
	expect(model(graph_of(all(3, relu(), shape, slice),
			      join(integers("zero", 1, zero), integers("both", 2, both)))),
	       "2 axes");
	Bytes y = block(12, all(2, text(1, "y"), block(2, block(1, number(1, INT64)))));
	Bytes m = all(6, node("Unsqueeze", "one", "both", "y", none), text(2, "g"),
		      block(11, info("x", FLOAT, 2, dynamic)), y, scalar("one", 1),
		      integers("both", 2, both));
	expect(model(m), "-> i64[1, 1]");
}

/* Values that no memory holds. */
static void test_too_large(void **state)
{
	(void)state;
	static const int64_t huge[] = {INT64_C(1) << 40, 1 << 20}, shape[] = {INT64_C(1) << 46, 3};
	Bytes in = block(11, info("x", FLOAT, 2, huge));
	expect(model(all(4, relu(), text(2, "g"), in, block(12, info("y", FLOAT, 2, huge)))),
	       "input x: f32[1099511627776, 1048576] is too large: expected fewer than 2^48 bytes");
	Bytes expand = node("Expand", "one", "shape", "y", none);
	float v[] = {1};
	Bytes one =
		block(5, tensor("one", FLOAT, 0, NULL, block(9, (Bytes){(uint8_t *)v, sizeof v})));
	expect(model(graph_of(expand, join(one, integers("shape", 2, shape)))),
	       "node y (Expand): error: a tensor f32[70368744177664, 3] is too large");
	int64_t dense[] = {INT64_C(1) << 29};
	Bytes sparse = block(15, all(3, block(1, tensor("w", FLOAT, 1, (int64_t[]){0}, none)),
				     block(2, tensor("", INT64, 1, (int64_t[]){0}, none)),
				     number(3, (uint64_t)dense[0])));
	expect(model(graph_of(relu(), sparse)),
	       "initializer w: sparse tensors of 2147483648 bytes, expected at most 2^30");
}

/* Functions that call each other twice. */
static void test_doubling(void **state)
{
	(void)state;
	Bytes functions = none;
	for (int k = 0; k < 24; k++) {
		const char *next = arena_printf(arena, "F%d", k + 1);
		Bytes twice = none;
		for (int i = 0; i < 2; i++)
			twice = join(twice, block(7, all(4, text(1, "a"), text(2, i ? "b" : "c"),
							 text(4, k == 23 ? "Shape" : next),
							 k == 23 ? none : text(7, "own"))));
		Bytes f = all(6, text(1, arena_printf(arena, "F%d", k)), text(10, "own"),
			      text(4, "a"), text(5, "b"), twice, block(9, number(2, 17)));
		functions = join(functions, block(25, f));
	}
	Bytes m = model(graph_of(join(relu(), block(1, all(4, text(1, "x"), text(2, "z"),
							   text(4, "F0"), text(7, "own")))),
				 none));
	expect(join(m, functions),
	       "functions and bodies that are inlined have more than 1048576 nodes");
}

static Bytes sequence_result(const char *name)
{
	Bytes elem = block(1, all(2, number(1, FLOAT), block(2, block(1, text(2, "N")))));
	return join(text(1, name), block(2, block(4, block(1, elem))));
}

/* Sequences with absent values, and with more values than a model has. */
static void test_hostile_sequences(void **state)
{
	(void)state;
	expect(model(graph_of(join(relu(), node("SequenceConstruct", "", "x", "s", none)), none)),
	       "node s (SequenceConstruct): error: input 0 is missing");
	static const int64_t long_row[] = {1 << 30};
	Bytes in = block(11, info("x", FLOAT, 1, long_row));
	Bytes m = all(4, node("SplitToSequence", "x", NULL, "y", none), text(2, "g"), in,
		      block(12, sequence_result("y")));
	expect(model(m), "more than 4096 pieces");
	/* a loop whose carried value is absent, beside one that is a sequence */
	Bytes body = all(
		6, node("Identity", "c", NULL, "more", none), block(11, info("i", INT64, 0, NULL)),
		block(11, info("c", 9, 0, NULL)), block(11, sequence_result("s")),
		all(2, block(12, info("more", 9, 0, NULL)), block(12, sequence_result("s2"))),
		node("Identity", "s", NULL, "s2", none));
	Bytes attr = block(5, all(3, text(1, "body"), number(20, 5), block(6, body)));
	expect(model(graph_of(join(relu(), call("Loop", 3, (const char *const[]){"rounds", "", ""},
						"z", attr)),
			      scalar("rounds", 3))),
	       "input 2 is missing");
}

/* A loop makes v of x, v = Concat(v, v): a type that changes from round to round. */
static Bytes growing(Bytes rounds, const char *limit)
{
	Bytes axis = block(5, all(3, text(1, "axis"), number(20, 2), number(3, 0)));
	Bytes body = all(
		6, node("Identity", "c", NULL, "more", none), node("Concat", "v", "v", "w", axis),
		block(11, info("i", INT64, 0, NULL)), block(11, info("c", 9, 0, NULL)),
		block(11, info("v", FLOAT, 2, dynamic)),
		join(block(12, info("more", 9, 0, NULL)), block(12, info("w", FLOAT, 2, dynamic))));
	Bytes attr = block(5, all(3, text(1, "body"), number(20, 5), block(6, body)));
	Bytes in = block(11, info("x", FLOAT, 2, (int64_t[]){2, 3}));
	Bytes out = block(12, all(2, text(1, "y"), block(2, block(1, number(1, FLOAT)))));
	return all(5, call("Loop", 3, (const char *const[]){limit, "", "x"}, "y", attr),
		   text(2, "g"), in, out, rounds);
}

static void test_growing_loops(void **state)
{
	(void)state;
	expect(model(growing(scalar("rounds", 2), "rounds")), "-> f32[8, 3]");
	expect(model(growing(scalar("rounds", -2), "rounds")), "-> f32[2, 3]");
	expect(model(growing(block(11, info("rounds", INT64, 0, NULL)), "rounds")),
	       "node y (Loop): error: v is f32[2, 3], and a round makes f32[4, 3] of it: then the "
	       "number of rounds must be a constant");
}

/* A loop over the rows of x that ends by a comparison of its counter, and adds what `piece` makes
 * to a sequence. */
static Bytes counting(const char *compare, const char *left, const char *right, Bytes piece)
{
	Bytes body =
		all(9, text(2, "body"), piece,
		    call("Add", 2, (const char *const[]){"i", "one"}, "next", none),
		    call(compare, 2, (const char *const[]){left, right}, "more", none),
		    block(11, info("round", INT64, 0, NULL)), block(11, info("test", 9, 0, NULL)),
		    block(11, info("i", INT64, 0, NULL)), block(11, sequence_result("s")),
		    all(3, block(12, info("more", 9, 0, NULL)),
			block(12, info("next", INT64, 0, NULL)), block(12, sequence_result("t"))));
	Bytes attr = block(5, all(3, text(1, "body"), number(20, 5), block(6, body)));
	Bytes loop =
		block(1, all(8, text(1, ""), text(1, "enter"), text(1, "zero"), text(1, "empty"),
			     text(2, "last"), text(2, "all"), text(4, "Loop"), attr));
	Bytes nodes = all(6, node("Shape", "x", NULL, "shape", none),
			  call("Gather", 2, (const char *const[]){"shape", "zero"}, "n", none),
			  call("SequenceEmpty", 0, NULL, "empty", none),
			  call("Less", 2, (const char *const[]){"zero", "n"}, "enter", none), loop,
			  call("ConcatFromSequence", 1, (const char *const[]){"all"}, "y",
			       int_attr("axis", 0)));
	return model(graph_of(nodes, join(scalar("zero", 0), scalar("one", 1))));
}

static void test_counting_loops(void **state)
{
	(void)state;
	Bytes plain = join(call("Gather", 2, (const char *const[]){"x", "i"}, "r", none),
			   call("SequenceInsert", 2, (const char *const[]){"s", "r"}, "t", none));
	const char *made = read_as(counting("Less", "next", "n", plain));
	if (!strstr(made, "scan(") || !strstr(made, "length=N"))
		fail_msg("expected a scan over N rounds, got: %s", made);
	expect(counting("Greater", "n", "next", plain), "length=N");
	/* another condition: no greatest number of rounds is known */
	expect(counting("Equal", "next", "n", plain), "no greatest number of rounds");
	/* a sequence that is read in the loop */
	Bytes reads = join(call("SequenceLength", 1, (const char *const[]){"s"}, "k", none), plain);
	expect(counting("Less", "next", "n", reads), "a loop adds to the sequence");
}

static void test_hostile_tensors(void **state)
{
	(void)state;
	static const int64_t huge[] = {INT64_C(1) << 40}, large[] = {1000000000}, negative[] = {-5},
			     wide[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
	Bytes raw = block(9, (Bytes){(uint8_t *)(uintptr_t) "abcd", 4});
	const struct {
		Bytes tensor;
		const char *what;
	} cases[] = {
		{tensor("w", FLOAT, 1, large, none),
		 "0 bytes of numbers, its type needs 4000000000"},
		{tensor("w", FLOAT, 1, large, raw), "4 bytes of data, its type needs 4000000000"},
		{tensor("w", INT64, 1, large, none),
		 "at most 0 numbers, its type needs 1000000000"},
		{tensor("w", FLOAT, 1, huge, none), "its type needs 4398046511104"},
		{tensor("w", FLOAT, 1, negative, none), "extents are impossible"},
		{tensor("w", FLOAT, 13, wide, raw), "13 dimensions, expected at most 12"},
		{tensor("w", STRING, 0, NULL, raw), "is of STRING"},
		{tensor("w", 99, 0, NULL, raw), "is of type 99"},
		{tensor("w", INT64, 1, two,
			block(7, (Bytes){(uint8_t *)(uintptr_t) "\x01\xff", 2})),
		 "a number has no end"},
	};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		expect(model(graph_of(node("Add", "x", "w", "y", none), block(5, cases[k].tensor))),
		       cases[k].what);
}

static Bytes external(const char *location, const char *offset)
{
	Bytes where = block(13, join(text(1, "location"), text(2, location)));
	Bytes from = offset ? block(13, join(text(1, "offset"), text(2, offset))) : none;
	return all(3, where, from, number(14, 1));
}

static void test_external_data(void **state)
{
	(void)state;
	const struct {
		Bytes rest;
		const char *what;
	} cases[] = {
		{external("../secret", NULL), "expected a file in the model's folder"},
		{external("a/../../secret", NULL), "expected a file in the model's folder"},
		{external("/etc/passwd", NULL), "expected a file in the model's folder"},
		{external("no-such-file", NULL), "no-such-file"},
		{external("", NULL), "expected a file in the model's folder"},
		{external("w.bin", "-1"), "expected a number"},
		{number(14, 1), "external data without a location"},
	};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		expect(model(graph_of(node("Add", "x", "w", "y", none),
				      block(5, tensor("w", FLOAT, 1, three, cases[k].rest)))),
		       cases[k].what);
}

/* Behind the first 2 and 4 GB: of a file of external data, and of the model's file, whose lengths
 * have more than 32 bits. */
static void test_large(void **state)
{
	(void)state;
	static const float v[3] = {1, 2, 3};
	static const int64_t far = INT64_C(5) << 30, bytes[] = {INT64_C(9) << 29};
	char folder[] = "/tmp/weft-onnx-XXXXXX", path[64];
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/w.bin", folder);
	FILE *f = fopen(path, "wb");
	bool has_room = f && ftruncate(fileno(f), far) == 0 && fseeko(f, far, SEEK_SET) == 0 &&
			fwrite(v, sizeof v, 1, f) == 1;
	fclose(f);
	Bytes w = tensor("w", FLOAT, 1, three, external("w.bin", "5368709120"));
	Bytes m = model(graph_of(node("Add", "x", "w", "y", none), block(5, w)));
	Ctx *ctx = ctx_new();
	Graph *g = has_room ? onnx_load_bytes(ir_new(ctx), arena_printf(arena, "%s/m.onnx", folder),
					      m.p, m.n, NULL)
			    : NULL;
	if (g)
		assert_memory_equal(g->ir->constant.data[1].data, v, sizeof v);
	unlink(path);
	/* what stands in front of the zeros, which are the file's hole */
	Bytes head = tensor("z", 2, 1, bytes, join(varint(9 << 3 | 2), varint((uint64_t)bytes[0]))),
	      rest = graph_of(relu(), none);
	uint64_t inner = head.n + (uint64_t)bytes[0];
	Bytes init = join(varint(5 << 3 | 2), varint(inner));
	Bytes start = all(5, number(1, 8), block(8, number(2, 17)), varint(7 << 3 | 2),
			  varint(rest.n + init.n + inner), rest);
	f = fopen(path, "wb");
	has_room = has_room && f && fwrite(start.p, start.n, 1, f) == 1 &&
		   fwrite(init.p, init.n, 1, f) == 1 && fwrite(head.p, head.n, 1, f) == 1 &&
		   ftruncate(fileno(f), (off_t)(start.n + init.n + inner)) == 0;
	fclose(f);
	FileMap map;
	Graph *large = NULL;
	if (has_room && file_map(ctx, path, &map))
		large = onnx_load_bytes(ir_new(ctx), path, map.data, map.size, NULL);
	unlink(path);
	rmdir(folder);
	ctx_free(ctx);
	assert_true(!has_room || (g && large));
}

static void test_nesting(void **state)
{
	(void)state;
	/* types of sequences of sequences ..., and subgraphs in subgraphs */
	Bytes type = none, graph = relu();
	for (int k = 0; k < 200; k++)
		type = block(4, block(1, type));
	expect(model(all(3, relu(), text(2, "g"), block(11, join(text(1, "x"), block(2, type))))),
	       "messages are nested too deeply");
	for (int k = 0; k < 60; k++)
		graph = block(1, join(text(4, "If"),
				      block(5, join(text(1, "then_branch"), block(6, graph)))));
	expect(model(graph), "messages are nested too deeply");
}

/* Every prefix of a model, and every change of a bit: read, or refused with one error. */
static void test_damaged(void **state)
{
	(void)state;
	float v[3] = {1, 2, 3};
	Bytes raw = block(9, (Bytes){(uint8_t *)v, sizeof v});
	Bytes nodes =
		join(node("Shape", "x", NULL, "s", none),
		     join(node("Reshape", "x", "s", "z", none), node("Add", "z", "w", "y", none)));
	Bytes b = model(graph_of(nodes, block(5, tensor("w", FLOAT, 1, three, raw))));
	for (size_t n = 0; n < b.n; n++)
		read_as((Bytes){b.p, n});
	for (size_t k = 0; k < 8 * b.n; k++) {
		b.p[k / 8] ^= (uint8_t)(1u << k % 8);
		const char *got = read_as(b);
		if (!strncmp(got, "unwound", 7))
			fail_msg("bit %zu: %s", k, got);
		b.p[k / 8] ^= (uint8_t)(1u << k % 8);
	}
}

static int setup(void **state)
{
	(void)state;
	arena = arena_new(NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_free(arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_reads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sizes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_source_lines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lists, setup, teardown),
		cmocka_unit_test_setup_teardown(test_random, setup, teardown),
		cmocka_unit_test_setup_teardown(test_if_of_data, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_results, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrong_models, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stated_types, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unknown_dimensions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_extreme_sizes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_axes_of_sizes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_large, setup, teardown),
		cmocka_unit_test_setup_teardown(test_doubling, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile_sequences, setup, teardown),
		cmocka_unit_test_setup_teardown(test_growing_loops, setup, teardown),
		cmocka_unit_test_setup_teardown(test_counting_loops, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile_tensors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_external_data, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nesting, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
