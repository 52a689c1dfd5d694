/* ATen recurrent layers: the input projection is one contraction over all steps, the recurrence a
 * scan whose body is a cell. */
#include "ops/aten/priv.h"
#include "ops/prim/random.h"

typedef enum { CELL_LSTM, CELL_GRU, CELL_TANH, CELL_RELU } Cell;

enum { MAX_STATE = 2, MAX_LAYERS = 64 };

typedef struct {
	Cell cell;
	uint32_t gates, nstate;
	bool biases, bidirectional, batch_first, projected;
	int64_t layers;
	Node param[MAX_LAYERS * 2 * 5];
	uint32_t nparam;
	double dropout; /* between layers */
	Draw draw;
} Rnn;

static bool drops(const Graph *g, Node n)
{
	return node_bool(g, n, "train") && node_float(g, n, "dropout") != 0 &&
	       !sym_is(graph_syms(g), node_sym(g, n, "num_layers"), 1);
}

/* ---- cells: (state, projected input, weights) to the new state ---- */

/* Returns gate k of [B, gates * H]. */
static Node gate(Build *b, Node x, uint32_t k, uint32_t gates)
{
	if (!x.i)
		return x;
	Sym h = sym_divi(b_syms(b), b_dim(b, x, 1), gates);
	Sym from = sym_muli(b_syms(b), h, k);
	return b_slice(b, x, 1, from, sym_add(b_syms(b), from, h), b_int(b, 1));
}

/* Computes a step of h, c, x + bias [B, 4H], w_hh, w_hr or none; gates i, f, g, o. */
static void cell_lstm(Build *b, Node *state, Node x, const Node *w)
{
	Node g = b_bin(b, OP_add, x, aten_linear(b, state[0], w[0], (Node){0}));
	Node in = b_un(b, OP_sigmoid, gate(b, g, 0, 4));
	Node forget = b_un(b, OP_sigmoid, gate(b, g, 1, 4));
	Node cell = b_un(b, OP_tanh, gate(b, g, 2, 4));
	Node out = b_un(b, OP_sigmoid, gate(b, g, 3, 4));
	Node kept = b_bin(b, OP_mul, forget, state[1]);
	state[1] = b_bin(b, OP_add, kept, b_bin(b, OP_mul, in, cell));
	state[0] = b_bin(b, OP_mul, out, b_un(b, OP_tanh, state[1]));
	if (w[1].i)
		state[0] = aten_linear(b, state[0], w[1], (Node){0});
}

/* Computes a step of h, x + b_ih [B, 3H], w_hh, b_hh or none; gates r, z, n: the hidden bias of
 * n is inside r * (..). */
static void cell_gru(Build *b, Node *state, Node x, const Node *w)
{
	Node h = aten_linear(b, state[0], w[0], w[1]);
	Node reset = gate(b, x, 0, 3), update = gate(b, x, 1, 3);
	reset = b_bin(b, OP_add, reset, gate(b, h, 0, 3));
	reset = b_un(b, OP_sigmoid, reset);
	update = b_bin(b, OP_add, update, gate(b, h, 1, 3));
	update = b_un(b, OP_sigmoid, update);
	Node next = b_bin(b, OP_mul, reset, gate(b, h, 2, 3));
	next = b_un(b, OP_tanh, b_bin(b, OP_add, gate(b, x, 2, 3), next));
	/* next + update * (h - next) */
	Node diff = b_bin(b, OP_sub, state[0], next);
	state[0] = b_bin(b, OP_add, b_bin(b, OP_mul, diff, update), next);
}

static void cell_plain(Build *b, Cell cell, Node *state, Node x, const Node *w)
{
	Node h = b_bin(b, OP_add, x, aten_linear(b, state[0], w[0], (Node){0}));
	state[0] = cell == CELL_TANH ? b_un(b, OP_tanh, h) : aten_hinge(b, h);
}

/* Makes the body of the scan: inputs state..., x_t, weights...; outputs state'..., h'. */
static Graph *body(Build *b, const Rnn *r, const Node *init, Node xs, const Node *w, uint32_t nw)
{
	static const char *const state_name[] = {"h", "c"}, *const weight_name[] = {"w0", "w1"};
	Graph *g = graph_beside(b->g, "cell");
	Build in = {.g = g, .loc = b->loc, .where = b->where};
	Node state[MAX_STATE] = {{0}}, weight[2] = {{0}};
	Shape s = aten_shape(b, xs);
	for (uint32_t k = 0; k < r->nstate; k++)
		state[k] =
			graph_add_input(g, state_name[k], INPUT_USER, node_type_id(b->g, init[k]));
	TypeId step = ir_type(g->ir, aten_dtype(b, xs), s.rank - 1, s.dim + 1);
	Node x = graph_add_input(g, "x", INPUT_USER, step);
	for (uint32_t k = 0; k < nw; k++)
		weight[k] =
			graph_add_input(g, weight_name[k], INPUT_USER, node_type_id(b->g, w[k]));
	if (r->cell == CELL_LSTM)
		cell_lstm(&in, state, x, weight);
	else if (r->cell == CELL_GRU)
		cell_gru(&in, state, x, weight);
	else
		cell_plain(&in, r->cell, state, x, weight);
	for (uint32_t k = 0; k < r->nstate; k++) {
		if (!state[k].i)
			return NULL;
		graph_add_output(g, state_name[k], state[k], -1);
	}
	graph_add_output(g, "y", state[0], -1);
	return g;
}

/* Runs one layer in one direction: xs is [T, B, gates * H] with biases. Final states replace
 * init; the result is [T, B, H]. */
static Node run(Build *b, const Rnn *r, Node *init, Node xs, const Node *w, uint32_t nw,
		bool reverse)
{
	Ir *ir = b->g->ir;
	Node in[MAX_STATE + 3];
	uint32_t nin = 0;
	if (!xs.i)
		return xs;
	Graph *g = body(b, r, init, xs, w, nw);
	if (!g)
		return (Node){0};
	for (uint32_t k = 0; k < r->nstate; k++)
		in[nin++] = init[k];
	in[nin++] = xs;
	for (uint32_t k = 0; k < nw; k++)
		in[nin++] = w[k];
	Attr attr[] = {attr_int(ir, r->nstate), attr_int(ir, 1),           attr_int(ir, nw),
		       attr_graph(g),           attr_sym(b_dim(b, xs, 0)), attr_bool(reverse)};
	Node scan = b_node(b, OP_scan, in, nin, attr, 6);
	for (uint32_t k = 0; k < r->nstate; k++)
		init[k] = b_get(b, scan, k);
	return b_get(b, scan, r->nstate);
}

/* ---- layers ---- */

/* Computes layer `l` in direction `dir` of input x [T, B, I]; state[] is [B, H] each and is
 * updated. */
static Node direction(Build *b, const Rnn *r, uint32_t l, uint32_t dir, Node x, Node *state)
{
	uint32_t per = 2 + (r->biases ? 2 : 0) + r->projected;
	const Node *p = r->param + (l * (r->bidirectional ? 2 : 1) + dir) * per;
	Node w[2] = {p[1]}, bias = {0};
	uint32_t nw = 1;
	if (r->biases)
		bias = r->cell == CELL_GRU ? p[2] : b_bin(b, OP_add, p[2], p[3]);
	if (r->cell == CELL_GRU && r->biases)
		w[nw++] = p[3];
	else if (r->projected)
		w[nw++] = p[per - 1];
	return run(b, r, state, aten_linear(b, x, p[0], bias), w, nw, dir == 1);
}

/* Returns row `k` of [layers * directions, B, H]. */
static Node row(Build *b, Node x, uint32_t k)
{
	return b_select_dim(b, x, 0, b_int(b, k));
}

/* Returns (output, final states...) of all layers. */
static Node layers(Build *b, Rnn *r, Node x, const Node *hx)
{
	uint32_t nd = r->bidirectional ? 2 : 1, total = (uint32_t)r->layers * nd;
	Node *last[MAX_STATE], result[1 + MAX_STATE];
	for (uint32_t k = 0; k < r->nstate; k++)
		last[k] = arena_calloc(b->g->ir->ctx->scratch, total, sizeof(Node));
	if (r->batch_first)
		x = b_transpose(b, x, 0, 1);
	for (uint32_t l = 0; l < r->layers; l++) {
		Node out[2], state[MAX_STATE];
		for (uint32_t d = 0; d < nd; d++) {
			for (uint32_t k = 0; k < r->nstate; k++)
				state[k] = row(b, hx[k], l * nd + d);
			out[d] = direction(b, r, l, d, x, state);
			for (uint32_t k = 0; k < r->nstate; k++)
				last[k][l * nd + d] = state[k];
		}
		x = nd == 2 ? b_concat(b, out, 2, 2) : out[0];
		if (r->dropout != 0 && l + 1 < r->layers)
			x = draw_dropout(b, &r->draw, x, r->dropout, 0);
	}
	result[0] = r->batch_first ? b_transpose(b, x, 0, 1) : x;
	for (uint32_t k = 0; k < r->nstate; k++)
		result[1 + k] = aten_stack(b, last[k], total, 0);
	return result[0].i ? b_tuple(b, result, 1 + r->nstate) : result[0];
}

static bool read_rnn(Build *b, Node n, Node x, const Node *hx, Rnn *r)
{
	uint32_t first, want;
	r->biases = node_bool(b->g, n, "has_biases");
	r->bidirectional = node_bool(b->g, n, "bidirectional");
	r->batch_first = node_bool(b->g, n, "batch_first");
	r->layers = aten_int(b, n, "num_layers");
	r->nparam = node_args(b->g, n, "params", &first);
	if (drops(b->g, n)) {
		r->dropout = node_float(b->g, n, "dropout");
		TRY(draw_begin(b, n, &r->draw));
	}
	for (uint32_t k = 0; k < r->nstate; k++)
		if (aten_rank(b, hx[k]) != 3) {
			b_error(b, "a state of rank %u, expected 3", aten_rank(b, hx[k]));
			return false;
		}
	r->projected = r->cell == CELL_LSTM &&
		       sym_eq(b_syms(b), b_dim(b, hx[0], 2), b_dim(b, hx[1], 2)) == NO;
	want = (uint32_t)r->layers * (r->bidirectional ? 2 : 1) *
	       (2 + (r->biases ? 2 : 0) + r->projected);
	if (aten_rank(b, x) != 3 || r->layers < 1 || r->layers > MAX_LAYERS || r->nparam != want) {
		b_error(b,
			"a recurrent layer of %lld layers with input rank %u and %u parameters, "
			"expected rank 3 and %u",
			(long long)r->layers, aten_rank(b, x), r->nparam, want);
		return false;
	}
	for (uint32_t k = 0; k < want; k++)
		r->param[k] = node_in(b->g, n, first + k);
	return true;
}

static Node rnn(Build *b, Node n, int cell)
{
	Node x = arg(b, n, "input"), hx[MAX_STATE] = {{0}};
	Rnn r = {.cell = cell, .nstate = cell == CELL_LSTM ? 2 : 1};
	r.gates = cell == CELL_LSTM ? 4 : cell == CELL_GRU ? 3 : 1;
	if (cell == CELL_LSTM) {
		if (aten_list(b, n, "hx", hx, MAX_STATE) != 2)
			return b_error(b, "an LSTM needs two states");
	} else {
		hx[0] = arg(b, n, "hx");
	}
	if (!read_rnn(b, n, x, hx, &r))
		return (Node){0};
	return layers(b, &r, x, hx);
}

OP(aten_lstm_input){
	.schema = "aten.lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, "
		  "int num_layers, float dropout, bool train, bool bidirectional, bool "
		  "batch_first, *, " RANDOM_ARGS ") -> (Tensor, Tensor, Tensor)",
	.autocast = AUTOCAST_LOW,
	.draws = drops,
	.mode = "train",
	.build_as = {rnn, CELL_LSTM},
	.sample = "f32[m=3, n=2, 3], [f32[1, n, 2], f32[1, n, 2]], [f32[8, 3] in -1..1, f32[8, 2] "
		  "in -1..1, "
		  "f32[8] in -1..1, f32[8] in -1..1], has_biases=true, num_layers=1, dropout=0.0, "
		  "train=false, "
		  "bidirectional=false, batch_first=false; f32[2, 3, 3], [f32[4, 2, 2], f32[4, 2, "
		  "2]], [f32[8, "
		  "3] in -1..1, f32[8, 2] in -1..1, f32[8, 3] in -1..1, f32[8, 2] in -1..1, f32[8, "
		  "4] in -1..1, "
		  "f32[8, 2] in -1..1, f32[8, 4] in -1..1, f32[8, 2] in -1..1], has_biases=false, "
		  "num_layers=2, "
		  "dropout=0.0, train=false, bidirectional=true, batch_first=true",
};
OP(aten_gru_input){
	.schema = "aten.gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int "
		  "num_layers, float dropout, bool train, bool bidirectional, bool batch_first, "
		  "*, " RANDOM_ARGS ") "
		  "-> (Tensor, Tensor)",
	.autocast = AUTOCAST_LOW,
	.draws = drops,
	.mode = "train",
	.build_as = {rnn, CELL_GRU},
	.sample = "f32[m=3, n=2, 3], f32[1, n, 2], [f32[6, 3] in -1..1, f32[6, 2] in -1..1, f32[6] "
		  "in -1..1, "
		  "f32[6] in -1..1], has_biases=true, num_layers=1, dropout=0.0, train=false, "
		  "bidirectional=false, "
		  "batch_first=false; f32[2, 3, 3], f32[4, 2, 2], [f32[6, 3] in -1..1, f32[6, 2] "
		  "in -1..1, f32[6, "
		  "3] in -1..1, f32[6, 2] in -1..1, f32[6, 4] in -1..1, f32[6, 2] in -1..1, f32[6, "
		  "4] in -1..1, "
		  "f32[6, 2] in -1..1], has_biases=false, num_layers=2, dropout=0.0, train=false, "
		  "bidirectional=true, batch_first=true",
};
OP(aten_rnn_tanh_input){
	.schema = "aten.rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool "
		  "has_biases, int num_layers, float dropout, bool train, bool bidirectional, "
		  "bool batch_first, *, " RANDOM_ARGS ") -> (Tensor, Tensor)",
	.autocast = AUTOCAST_LOW,
	.draws = drops,
	.mode = "train",
	.build_as = {rnn, CELL_TANH},
	.sample = "f32[m=3, n=2, 3], f32[1, n, 2], [f32[2, 3] in -1..1, f32[2, 2] in -1..1, f32[2] "
		  "in -1..1, "
		  "f32[2] in -1..1], has_biases=true, num_layers=1, dropout=0.0, train=false, "
		  "bidirectional=false, "
		  "batch_first=false; f32[2, 3, 3], f32[4, 2, 2], [f32[2, 3] in -1..1, f32[2, 2] "
		  "in -1..1, f32[2, "
		  "3] in -1..1, f32[2, 2] in -1..1, f32[2, 4] in -1..1, f32[2, 2] in -1..1, f32[2, "
		  "4] in -1..1, "
		  "f32[2, 2] in -1..1], has_biases=false, num_layers=2, dropout=0.0, train=false, "
		  "bidirectional=true, batch_first=true",
	.overloads =
		(const Overload[]){
			{.schema = "aten.rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, "
				   "bool "
				   "has_biases, int num_layers, float dropout, bool train, bool "
				   "bidirectional, "
				   "bool batch_first, *, " RANDOM_ARGS ") -> (Tensor, Tensor)",
			 .build_as = {rnn, CELL_RELU}},
		},
};

/* ---- single cells ---- */

static Node with_bias(Build *b, Node n, const char *x, const char *w, const char *bias)
{
	return aten_linear(b, arg(b, n, x), arg(b, n, w), arg(b, n, bias));
}

static Node build_lstm_cell(Build *b, Node n)
{
	Node state[MAX_STATE], w[2] = {arg(b, n, "w_hh")};
	if (aten_list(b, n, "hx", state, MAX_STATE) != 2)
		return b_error(b, "an LSTM needs two states");
	Node x = with_bias(b, n, "input", "w_ih", "b_ih"), bias = arg(b, n, "b_hh");
	if (bias.i)
		x = b_bin(b, OP_add, x, bias);
	cell_lstm(b, state, x, w);
	return state[0].i ? b_tuple(b, state, 2) : state[0];
}
OP(aten_lstm_cell){
	.schema = "aten.lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? "
		  "b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor)",
	.autocast = AUTOCAST_LOW,
	.build = build_lstm_cell,
	.sample = "f32[n=2, 3], [f32[n, 2], f32[n, 2]], f32[8, 3] in -1..1, f32[8, 2] in -1..1, "
		  "f32[8], f32[8]; f32[n=2, 3], [f32[n, 2], f32[n, 2]], f32[8, 3] in -1..1, "
		  "f32[8, 2] in -1..1",
};

static Node build_gru_cell(Build *b, Node n)
{
	Node state = arg(b, n, "hx"), w[2] = {arg(b, n, "w_hh"), arg(b, n, "b_hh")};
	cell_gru(b, &state, with_bias(b, n, "input", "w_ih", "b_ih"), w);
	return state;
}
OP(aten_gru_cell){
	.schema = "aten.gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? "
		  "b_ih=None, Tensor? b_hh=None) -> Tensor",
	.autocast = AUTOCAST_LOW,
	.build = build_gru_cell,
	.sample = "f32[n=2, 3], f32[n, 2], f32[6, 3] in -1..1, f32[6, 2] in -1..1, f32[6], f32[6]; "
		  "f32[n=2, 3], f32[n, 2], f32[6, 3] in -1..1, f32[6, 2] in -1..1",
};

static Node plain_cell(Build *b, Node n, int cell)
{
	Node state = arg(b, n, "hx"), w[2] = {arg(b, n, "w_hh")}, bias = arg(b, n, "b_hh");
	Node x = with_bias(b, n, "input", "w_ih", "b_ih");
	cell_plain(b, cell, &state, bias.i ? b_bin(b, OP_add, x, bias) : x, w);
	return state;
}
OP(aten_rnn_tanh_cell){
	.schema = "aten.rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? "
		  "b_ih=None, Tensor? b_hh=None) -> Tensor",
	.autocast = AUTOCAST_LOW,
	.build_as = {plain_cell, CELL_TANH},
	.sample = "f32[n=2, 3], f32[n, 2], f32[2, 3] in -1..1, f32[2, 2] in -1..1, f32[2], f32[2]; "
		  "f32[n=2, 3], f32[n, 2], f32[2, 3] in -1..1, f32[2, 2] in -1..1",
	.overloads = (const Overload[]){
		{.schema = "aten.rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, "
			   "Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
		 .build_as = {plain_cell, CELL_RELU}},
	},
};
