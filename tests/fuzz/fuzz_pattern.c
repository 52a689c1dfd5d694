/* How often random graphs have in them what has gone wrong before. */
#include <stdio.h>
#include <string.h>

#include "fuzz.h"

enum {
	READ_PERMUTE,
	READ_RESHAPE,
	READ_SLICE,
	READ_REPEAT,
	READ_EXPAND,
	READ_FLIP,
	READ_PAD,
	READ_CONCAT,
	READ_WINDOW,
	SAME_OPERAND,
	NO_SUM,
	SUM_OF_ONE,
	SUM_OF_NOTHING,
	INTEGERS,
	WINDOW_OF_ONE,
	ONE_WINDOW,
	CONV_OF_ONE,
	CROPS,
	WRAPS,
	EXTENT_0,
	EXTENT_1,
	COMPLEX,
	BODY,
	GRAPHS
};
_Static_assert(GRAPHS + 1 == FUZZ_PATTERNS, "all of them are counted");

static const char *const names[FUZZ_PATTERNS] = {
	[READ_PERMUTE] = "contraction operand through permute",
	[READ_RESHAPE] = "contraction operand through reshape",
	[READ_SLICE] = "contraction operand through slice",
	[READ_REPEAT] = "contraction operand through repeat or tile",
	[READ_EXPAND] = "contraction operand through expand",
	[READ_FLIP] = "contraction operand through flip",
	[READ_PAD] = "contraction operand through pad",
	[READ_CONCAT] = "contraction operand through concat",
	[READ_WINDOW] = "contraction operand through windows",
	[SAME_OPERAND] = "contraction of one value with itself",
	[NO_SUM] = "contraction without a sum",
	[SUM_OF_ONE] = "contraction over extent 1",
	[SUM_OF_NOTHING] = "contraction over an extent that may be 0",
	[INTEGERS] = "contraction of integers",
	[WINDOW_OF_ONE] = "window of extent 1",
	[ONE_WINDOW] = "one window",
	[CONV_OF_ONE] = "convolution of extent 1",
	[CROPS] = "padding that crops",
	[WRAPS] = "end before beginning (roll, circular)",
	[EXTENT_0] = "extent that may be 0",
	[EXTENT_1] = "extent 1",
	[COMPLEX] = "complex",
	[BODY] = "branch or loop",
	[GRAPHS] = "outputs"};

/* ---- contractions ---- */

/* Patterns on the way from an operand to what is stored; which value that is. */
static Node origin(const Graph *g, Node x, bool *through)
{
	for (uint32_t k = 0; k < 8; k++) {
		Op op = node_op(g, x);
		Node below = node_nin(g, x) ? node_in(g, x, 0) : (Node){0};
		if (op == OP_permute)
			through[READ_PERMUTE] = true;
		else if (op == OP_reshape)
			through[node_op(g, below) == OP_broadcast ? READ_REPEAT : READ_RESHAPE] =
				true;
		else if (op == OP_slice)
			through[READ_SLICE] = true;
		else if (op == OP_broadcast)
			through[READ_EXPAND] = true;
		else if (op == OP_reverse)
			through[READ_FLIP] = true;
		else if (op == OP_pad)
			through[READ_PAD] = true;
		else if (op == OP_concat)
			through[READ_CONCAT] = true;
		else if (op == OP_window)
			through[READ_WINDOW] = true;
		else
			return x;
		x = below;
	}
	return x;
}

static int64_t least(const Graph *g, Sym s)
{
	int64_t lo, hi;
	sym_range(graph_syms(g), s, &lo, &hi);
	return lo;
}

static bool may_be_0(const Graph *g, Sym d)
{
	return least(g, d) <= 0;
}

static void count_operands(const Graph *g, Node n, uint32_t *count)
{
	bool through[FUZZ_PATTERNS] = {false};
	Node x = origin(g, node_in(g, n, 0), through), y = origin(g, node_in(g, n, 1), through);
	through[SAME_OPERAND] = x.i == y.i;
	through[INTEGERS] = !dtype_is_inexact(node_dtype(g, n));
	for (uint32_t k = 0; k < FUZZ_PATTERNS; k++)
		count[k] += through[k];
}

static void count_sum(const Graph *g, Node n, uint32_t *count)
{
	uint32_t nsum;
	bool one = true, nothing = false;
	const Sym *sum = node_ints(g, n, "sum_x", &nsum);
	for (uint32_t k = 0; k < nsum; k++) {
		Sym d = node_dim(g, node_in(g, n, 0), (uint32_t)sym_const(graph_syms(g), sum[k]));
		one &= sym_is(graph_syms(g), d, 1);
		nothing |= may_be_0(g, d);
	}
	count[NO_SUM] += nsum == 0;
	count[SUM_OF_ONE] += nsum && one;
	count[SUM_OF_NOTHING] += nothing;
}

static void count_conv(const Graph *g, Node n, uint32_t *count)
{
	Node w = node_in(g, n, 1);
	bool one = true;
	for (uint32_t k = 3; k < node_rank(g, w); k++)
		one &= sym_is(graph_syms(g), node_dim(g, w, k), 1);
	count[CONV_OF_ONE] += one;
}

/* ---- all nodes ---- */

static void count_type(const Graph *g, Node n, uint32_t *count)
{
	bool zero = false, one = false;
	for (uint32_t k = 0; k < node_rank(g, n); k++) {
		zero |= may_be_0(g, node_dim(g, n, k));
		one |= sym_is(graph_syms(g), node_dim(g, n, k), 1);
	}
	count[EXTENT_0] += zero;
	count[EXTENT_1] += one;
	count[COMPLEX] += dtype_is_complex(node_dtype(g, n));
}

static void count_pad(const Graph *g, Node n, uint32_t *count)
{
	static const char *const sides[] = {"low", "high"};
	bool crops = false;
	for (uint32_t side = 0; side < 2; side++) {
		uint32_t rank;
		const Sym *by = node_ints(g, n, sides[side], &rank);
		for (uint32_t k = 0; k < rank; k++)
			crops |= least(g, by[k]) < 0;
	}
	count[CROPS] += crops;
}

/* Two parts of one value. */
static bool wraps(const Graph *g, Node n)
{
	return node_nin(g, n) == 2 && node_op(g, node_in(g, n, 0)) == OP_slice &&
	       node_op(g, node_in(g, n, 1)) == OP_slice &&
	       node_in(g, node_in(g, n, 0), 0).i == node_in(g, node_in(g, n, 1), 0).i;
}

static void count_node(const Graph *g, Node n, uint32_t *count)
{
	Op op = node_op(g, n);
	if (op == OP_contract || op == OP_conv)
		count_operands(g, n, count);
	if (op == OP_contract)
		count_sum(g, n, count);
	else if (op == OP_conv)
		count_conv(g, n, count);
	else if (op == OP_pad)
		count_pad(g, n, count);
	else if (op == OP_concat)
		count[WRAPS] += wraps(g, n);
	else if (op == OP_window) {
		count[WINDOW_OF_ONE] += sym_is(graph_syms(g), node_sym(g, n, "size"), 1);
		count[ONE_WINDOW] += sym_is(graph_syms(g), node_sym(g, n, "count"), 1);
	}
	count[BODY] += node_has_graph(g, n);
}

void fuzz_patterns(const Graph *g, uint32_t count[FUZZ_PATTERNS])
{
	for (Node n = g->first; n.i; n = node_next(g, n)) {
		count_node(g, n, count);
		if (node_type_id(g, n).i && node_type(g, n)->dtype != DT_none)
			count_type(g, n, count);
	}
	count[GRAPHS] += g->output.n;
}

void fuzz_print_patterns(const uint32_t count[FUZZ_PATTERNS])
{
	for (uint32_t k = 0; k < FUZZ_PATTERNS; k++)
		printf("drawn: %6u %s\n", count[k], names[k]);
}
