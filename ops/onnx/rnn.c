/* Recurrent layers: the projection of the input is one product over all steps, the recurrence a
 * scan whose body is a cell. */
#include "ops/onnx/priv.h"

#include <string.h>

typedef enum { CELL_RNN, CELL_GRU, CELL_LSTM } Cell;

enum { MAX_FUNCTIONS = 3, MAX_CONSTS = 5 };

/* A function of `activations`, with its parameters. */
typedef struct {
	const char *name;
	double alpha, beta;
} Activation;

typedef struct {
	Node n;
	Cell cell;
	uint32_t gates, nstate;
	double clip; /* 0: none */
	bool before; /* linear_before_reset */
	bool coupled; /* input_forget */
	Activation f[MAX_FUNCTIONS];
} Layer;

/* What a cell reads in each step beside the state and the projected input: transposed weights, and
 * where they are there the bias of the recurrence, peepholes, the step and the lengths. */
typedef struct {
	Node weight, bias, peep, step, length;
} Reads;

static const struct {
	Activation f;
	bool parameters;
} functions[] = {
	{{"Sigmoid", 0, 0}, false},        {{"Tanh", 0, 0}, false},
	{{"Relu", 0, 0}, false},           {{"Softsign", 0, 0}, false},
	{{"Softplus", 0, 0}, false},       {{"Affine", 1, 0}, true},
	{{"LeakyRelu", 0.01, 0}, true},    {{"Elu", 1, 0}, true},
	{{"ThresholdedRelu", 1, 0}, true}, {{"HardSigmoid", 0.2, 0.5}, true},
	{{"ScaledTanh", 1, 1}, true},
};

static bool is(const Activation *f, const char *name)
{
	return !strcmp(f->name, name);
}

static Node scaled(Build *b, Node x, double scale, double shift)
{
	return b_bin_scalar(b, OP_add, b_bin_scalar(b, OP_mul, x, scale), shift);
}

static Node apply(Build *b, const Layer *l, const Activation *f, Node x)
{
	if (l->clip > 0)
		x = onnx_clamp(b, x, -l->clip, l->clip);
	if (is(f, "Sigmoid"))
		return b_un(b, OP_sigmoid, x);
	if (is(f, "Tanh"))
		return b_un(b, OP_tanh, x);
	if (is(f, "Relu"))
		return onnx_call(b, "aten.relu", &x, 1, NULL, 0);
	if (is(f, "Affine"))
		return scaled(b, x, f->alpha, f->beta);
	if (is(f, "ScaledTanh"))
		return b_bin_scalar(
			b, OP_mul, b_un(b, OP_tanh, b_bin_scalar(b, OP_mul, x, f->beta)), f->alpha);
	if (is(f, "HardSigmoid"))
		return onnx_clamp(b, scaled(b, x, f->alpha, f->beta), 0, 1);
	if (is(f, "Softsign"))
		return b_bin(b, OP_div, x, b_bin_scalar(b, OP_add, b_un(b, OP_abs, x), 1));
	if (is(f, "Softplus"))
		return onnx_call(b, "aten.softplus", &x, 1, NULL, 0);
	if (is(f, "ThresholdedRelu"))
		return b_select(b, b_bin_scalar(b, OP_gt, x, f->alpha), x, aten_like(b, x, 0));
	Node low = is(f, "Elu") ? b_un(b, OP_expm1, x) : x;
	return b_select(b, b_bin_scalar(b, OP_lt, x, 0), b_bin_scalar(b, OP_mul, low, f->alpha), x);
}

/* ---- cells ---- */

/* Returns gate k of x[B, gates * H] or x[gates * H]. */
static Node gate(Build *b, Node x, uint32_t k, uint32_t gates)
{
	if (!x.i)
		return x;
	Sym h = sym_divi(b_syms(b), b_dim(b, x, -1), gates), from = sym_muli(b_syms(b), h, k);
	return b_slice(b, x, -1, from, sym_add(b_syms(b), from, h), b_int(b, 1));
}

static Node plus(Build *b, Node x, Node y)
{
	return y.i ? b_bin(b, OP_add, x, y) : x;
}

/* Returns part k of the sum g for a gate, and peephole `eye` of the state c. */
static Node peeping(Build *b, const Reads *r, Node g, uint32_t k, uint32_t eye, Node c)
{
	Node seen = r->peep.i ? b_bin(b, OP_mul, gate(b, r->peep, eye, 3), c) : (Node){0};
	return plus(b, gate(b, g, k, 4), seen);
}

/* Computes a step of an LSTM. Gates i, o, f, c. */
static void cell_lstm(Build *b, const Layer *l, Node *state, Node x, const Reads *r)
{
	Node g = b_bin(b, OP_add, x, b_matmul(b, state[0], r->weight));
	Node in = apply(b, l, &l->f[0], peeping(b, r, g, 0, 0, state[1]));
	Node forget = l->coupled ? b_bin_scalar(b, OP_add, b_un(b, OP_neg, in), 1)
				 : apply(b, l, &l->f[0], peeping(b, r, g, 2, 2, state[1]));
	Node cell = apply(b, l, &l->f[1], gate(b, g, 3, 4));
	state[1] = b_bin(b, OP_add, b_bin(b, OP_mul, forget, state[1]), b_bin(b, OP_mul, in, cell));
	Node out = apply(b, l, &l->f[0], peeping(b, r, g, 1, 1, state[1]));
	state[0] = b_bin(b, OP_mul, out, apply(b, l, &l->f[2], state[1]));
}

/* Computes a step of a GRU. Gates z, r, h. The recurrence's bias is added here, since that of h
 * may be reset. */
static void cell_gru(Build *b, const Layer *l, Node *state, Node x, const Reads *r)
{
	Node h = plus(b, b_matmul(b, state[0], r->weight), r->bias);
	Node update = apply(b, l, &l->f[0], b_bin(b, OP_add, gate(b, x, 0, 3), gate(b, h, 0, 3)));
	Node reset = apply(b, l, &l->f[0], b_bin(b, OP_add, gate(b, x, 1, 3), gate(b, h, 1, 3)));
	Node bias = l->before ? (Node){0} : gate(b, r->bias, 2, 3);
	Node next = l->before ? b_bin(b, OP_mul, reset, gate(b, h, 2, 3))
			      : plus(b,
				     b_matmul(b, b_bin(b, OP_mul, reset, state[0]),
					      gate(b, r->weight, 2, 3)),
				     bias);
	next = apply(b, l, &l->f[1], b_bin(b, OP_add, gate(b, x, 2, 3), next));
	state[0] =
		b_bin(b, OP_add, next, b_bin(b, OP_mul, update, b_bin(b, OP_sub, state[0], next)));
}

static void cell_rnn(Build *b, const Layer *l, Node *state, Node x, const Reads *r)
{
	state[0] = apply(b, l, &l->f[0], b_bin(b, OP_add, x, b_matmul(b, state[0], r->weight)));
}

/* ---- the scan ---- */

static Node add_input(Build *b, Graph *g, const char *name, Node like, bool sliced)
{
	Type t = *node_type(b->g, like);
	return graph_add_input(g, name, INPUT_USER,
			       ir_type(g->ir, t.dtype, t.n - sliced, t.dim + sliced));
}

/* Makes body(states..., x, [step], weight, [bias], [peep], [length]) -> (states..., y): behind
 * its length a sequence keeps its states and gives zeros. NULL after b_error. */
static Graph *body(Build *b, const Layer *l, const Node *init, Node xs, const Reads *r)
{
	Graph *g = graph_beside(b->g, "cell");
	Build in = {.g = g, .loc = b->loc, .where = b->where};
	Node state[2] = {{0}}, old[2] = {{0}};
	Reads c = {0};
	for (uint32_t k = 0; k < l->nstate; k++)
		old[k] = state[k] = add_input(b, g, k ? "c" : "h", init[k], false);
	Node x = add_input(b, g, "x", xs, true);
	if (r->step.i)
		c.step = add_input(b, g, "step", r->step, true);
	c.weight = add_input(b, g, "weight", r->weight, false);
	if (r->bias.i)
		c.bias = add_input(b, g, "bias", r->bias, false);
	if (r->peep.i)
		c.peep = add_input(b, g, "peep", r->peep, false);
	if (r->length.i)
		c.length = add_input(b, g, "length", r->length, false);
	(l->cell == CELL_LSTM  ? cell_lstm
	 : l->cell == CELL_GRU ? cell_gru
			       : cell_rnn)(&in, l, state, x, &c);
	Node y = state[0];
	if (c.length.i && y.i) {
		Node on = b_unsqueeze(&in, b_bin(&in, OP_lt, c.step, c.length), 1);
		y = b_select(&in, on, y, aten_like(&in, y, 0));
		for (uint32_t k = 0; k < l->nstate; k++)
			state[k] = b_select(&in, on, state[k], old[k]);
	}
	for (uint32_t k = 0; k < l->nstate; k++) {
		if (!state[k].i)
			return NULL;
		graph_add_output(g, k ? "c" : "h", state[k], -1);
	}
	graph_add_output(g, "y", y, -1);
	return g;
}

/* Runs the cell over xs: [T, B, gates * H]. Final states replace init; returns [T, B, H]. */
static Node run(Build *b, const Layer *l, Node *init, Node xs, const Reads *r, bool reverse)
{
	Ir *ir = b->g->ir;
	Node in[2 + 2 + MAX_CONSTS];
	uint32_t n = 0, nxs = 1 + (r->step.i != 0);
	bool all = xs.i && r->weight.i;
	for (uint32_t k = 0; k < l->nstate; k++)
		all = all && init[k].i;
	Graph *g = all ? body(b, l, init, xs, r) : NULL;
	if (!g)
		return (Node){0};
	for (uint32_t k = 0; k < l->nstate; k++)
		in[n++] = init[k];
	in[n++] = xs;
	const Node rest[] = {r->step, r->weight, r->bias, r->peep, r->length};
	for (size_t k = 0; k < sizeof rest / sizeof *rest; k++)
		if (rest[k].i)
			in[n++] = rest[k];
	Attr attr[] = {attr_int(ir, l->nstate),           attr_int(ir, nxs),
		       attr_int(ir, n - l->nstate - nxs), attr_graph(g),
		       attr_sym(b_dim(b, xs, 0)),         attr_bool(reverse)};
	Node scan = b_node(b, OP_scan, in, n, attr, 6);
	for (uint32_t k = 0; k < l->nstate; k++)
		init[k] = b_get(b, scan, k);
	return b_get(b, scan, l->nstate);
}

/* ---- the layer ---- */

static Node of_direction(Build *b, Node x, uint32_t d)
{
	return x.i ? b_select_dim(b, x, 0, b_int(b, d)) : x;
}

/* Returns one half of B[2 * gates * H]: of the input, or of the recurrence. */
static Node half_bias(Build *b, Node bias, uint32_t k)
{
	return bias.i ? gate(b, bias, k, 2) : bias;
}

/* Computes direction d of x[T, B, I]. */
static Node direction(Build *b, const Layer *l, Node x, uint32_t d, bool reverse, Node *state)
{
	Node bias = of_direction(b, arg(b, l->n, "B"), d), length = arg(b, l->n, "sequence_lens");
	Node w = of_direction(b, arg(b, l->n, "W"), d);
	Reads r = {.weight = b_transpose(b, of_direction(b, arg(b, l->n, "R"), d), 0, 1)};
	Node first_bias = half_bias(b, bias, 0);
	Node xs = plus(b, b_matmul(b, x, b_transpose(b, w, 0, 1)), first_bias);
	if (l->cell == CELL_GRU)
		r.bias = half_bias(b, bias, 1);
	else
		xs = plus(b, xs, half_bias(b, bias, 1));
	if (l->cell == CELL_LSTM)
		r.peep = of_direction(b, arg(b, l->n, "P"), d);
	if (length.i) {
		r.length = b_convert(b, length, DT_i64);
		r.step = b_iota(b, DT_i64, b_dim(b, x, 0));
	}
	return run(b, l, state, xs, &r, reverse);
}

/* Returns the initial state of a direction: zeros without one. */
static Node initial(Build *b, const Layer *l, const char *name, Node x, Sym hidden, uint32_t d)
{
	Node given = op_arg_index(node_op(b->g, l->n), name) >= 0 ? arg(b, l->n, name) : (Node){0};
	if (given.i && node_int(b->g, l->n, "layout"))
		given = b_transpose(b, given, 0, 1);
	return given.i ? of_direction(b, given, d)
		       : b_full(b, node_dtype(b->g, x), 0, 2, (Sym[]){b_dim(b, x, 1), hidden});
}

/* Returns the k-th word of the argument activations, of all directions. */
static const char *word(Build *b, Node n, uint32_t k, size_t *length)
{
	const char *p = aten_has(b, n, "activations") ? node_str(b->g, n, "activations") : "";
	for (; k; k--) {
		p += strcspn(p, " ");
		p += strspn(p, " ");
	}
	*length = strcspn(p, " ");
	return p;
}

static double parameter(Build *b, Node n, const char *name, uint32_t k, double otherwise)
{
	const Attr *a = node_attr(b->g, n, name);
	return a->kind == ATTR_floats && k < a->n ? a->floats[k] : otherwise;
}

/* Reads the functions of direction d; by default Sigmoid and Tanh as the cell has them. Returns
 * false after b_error. */
static bool read_functions(Build *b, Layer *l, uint32_t d)
{
	static const char *const usual[3][MAX_FUNCTIONS] = {
		{"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
	uint32_t n = l->cell == CELL_LSTM ? 3 : l->cell == CELL_GRU ? 2 : 1;
	for (uint32_t k = 0; k < n; k++) {
		size_t length, row = 0, rows = sizeof functions / sizeof *functions;
		uint32_t at = d * n + k;
		const char *name = word(b, l->n, at, &length);
		if (!length) {
			name = usual[l->cell][k];
			length = strlen(name);
		}
		while (row < rows && (strncmp(functions[row].f.name, name, length) != 0 ||
				      functions[row].f.name[length]))
			row++;
		if (row == rows) {
			b_error(b, "activation \"%.*s\" is not supported", (int)length, name);
			return false;
		}
		l->f[k] = functions[row].f;
		if (functions[row].parameters) {
			l->f[k].alpha = parameter(b, l->n, "activation_alpha", at, l->f[k].alpha);
			l->f[k].beta = parameter(b, l->n, "activation_beta", at, l->f[k].beta);
		}
	}
	return true;
}

static Node layer(Build *b, Node n, int cell)
{
	Node x = arg(b, n, "X"), recurrent = arg(b, n, "R"), out[2], last[2][2];
	bool batch_first = node_int(b->g, n, "layout") != 0;
	Layer l = {.n = n, .cell = cell, .nstate = cell == CELL_LSTM ? 2 : 1};
	l.gates = cell == CELL_LSTM ? 4 : cell == CELL_GRU ? 3 : 1;
	if (!aten_check_word(b, n, "direction", "forward reverse bidirectional"))
		return (Node){0};
	if (aten_rank(b, x) != 3 || aten_rank(b, recurrent) != 3)
		return b_error(b, "operands of rank %u and %u, expected 3", aten_rank(b, x),
			       aten_rank(b, recurrent));
	uint32_t nd = aten_is(b, n, "direction", "bidirectional") ? 2 : 1;
	l.clip = aten_has(b, n, "clip") ? node_float(b->g, n, "clip") : 0;
	l.before = cell == CELL_GRU && node_bool(b->g, n, "linear_before_reset");
	l.coupled = cell == CELL_LSTM && node_bool(b->g, n, "input_forget");
	if (batch_first)
		x = b_transpose(b, x, 0, 1);
	for (uint32_t d = 0; d < nd; d++) {
		Node state[2] = {initial(b, &l, "initial_h", x, b_dim(b, recurrent, 2), d),
				 initial(b, &l, "initial_c", x, b_dim(b, recurrent, 2), d)};
		if (!read_functions(b, &l, d))
			return (Node){0};
		out[d] = direction(b, &l, x, d, d == 1 || aten_is(b, n, "direction", "reverse"),
				   state);
		last[0][d] = state[0];
		last[1][d] = state[1];
	}
	/* [T, D, B, H] and [D, B, H]; batch first: [B, T, D, H] and [B, D, H] */
	Node y[3] = {aten_stack(b, out, nd, 1)};
	if (batch_first && y[0].i)
		y[0] = b_permute(b, y[0], (uint32_t[]){2, 0, 1, 3});
	for (uint32_t k = 0; k < l.nstate; k++)
		y[1 + k] = aten_stack(b, last[k], nd, batch_first);
	return y[0].i ? b_tuple(b, y, 1 + l.nstate) : y[0];
}

OP(onnx_RNN_1){
	.schema = "onnx.RNN.1(Tensor X, Tensor W, Tensor R, Tensor? B, Tensor? sequence_lens, "
		  "Tensor? initial_h, *, float[]? activation_alpha=None, "
		  "float[]? activation_beta=None, str? activations=None, float? clip=None, "
		  "str direction=\"forward\", int? hidden_size=None, int layout=0, "
		  "int output_sequence=0) -> (Tensor, Tensor)",
	.autocast = AUTOCAST_LOW,
	.build_as = {layer, CELL_RNN},
	.no_sample = NODE_TESTS,
};
OP(onnx_GRU_1){
	.schema = "onnx.GRU.1(Tensor X, Tensor W, Tensor R, Tensor? B, Tensor? sequence_lens, "
		  "Tensor? initial_h, *, float[]? activation_alpha=None, "
		  "float[]? activation_beta=None, str? activations=None, float? clip=None, "
		  "str direction=\"forward\", int? hidden_size=None, int layout=0, "
		  "bool linear_before_reset=False, int output_sequence=0) -> (Tensor, Tensor)",
	.autocast = AUTOCAST_LOW,
	.build_as = {layer, CELL_GRU},
	.no_sample = NODE_TESTS,
};
OP(onnx_LSTM_1){
	.schema = "onnx.LSTM.1(Tensor X, Tensor W, Tensor R, Tensor? B, Tensor? sequence_lens, "
		  "Tensor? initial_h, Tensor? initial_c, Tensor? P, *, "
		  "float[]? activation_alpha=None, float[]? activation_beta=None, "
		  "str? activations=None, float? clip=None, "
		  "str direction=\"forward\", int? hidden_size=None, bool input_forget=False, "
		  "int layout=0, int output_sequence=0) -> (Tensor, Tensor, Tensor)",
	.autocast = AUTOCAST_LOW,
	.build_as = {layer, CELL_LSTM},
	.no_sample = NODE_TESTS,
};
