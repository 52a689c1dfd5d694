/* Attention whose memory is a matrix for each head, which goes from position to position. */
#include "ops/onnx/priv.h"

#include <math.h>
#include <string.h>

/* What a position has, the position in front: q [T, B, H, G, K] for G queries of each of H heads, k
 * [T, B, H, K], v [T, B, H, V], decay [T, B, H, 1 or K], beta [T, B, H or 1, 1]. decay and beta may
 * be absent. */
enum { QUERY, KEY, VALUE, DECAY, BETA, NSLICES };

typedef struct {
	Node slice[NSLICES];
	Node memory; /* [B, H, K, V] */
	double scale;
} Recurrence;

/* Returns [B, T, count * D] as [T, B, count, D]. */
static Node by_position(Build *b, Node x, Sym count)
{
	if (!x.i || node_rank(b->g, x) != 3)
		return x.i ? b_error(b,
				     "an operand of rank %u, expected [batch, length, heads * "
				     "size]",
				     node_rank(b->g, x))
			   : x;
	SymTab *t = b_syms(b);
	Sym size = sym_floordiv(t, b_dim(b, x, 2), count);
	aten_require_equal(b, b_dim(b, x, 2), sym_mul(t, size, count),
			   "the hidden size is no multiple of the number of heads");
	x = b_reshape(b, aten_wide(b, x), 4, (Sym[]){b_dim(b, x, 0), b_dim(b, x, 1), count, size});
	return b_transpose(b, x, 0, 1);
}

/* Computes one position: the new memory; *out: [B, H, G, V]. x[]: without the position. */
static Node step(Build *b, const Node *x, Node memory, double scale, Node *out)
{
	static const uint32_t heads[2][2] = {{0, 0}, {1, 1}}, of_key[1][2] = {{2, 2}},
			      of_query[1][2] = {{3, 2}};
	Node v = x[VALUE];
	if (x[DECAY].i)
		memory = b_bin(b, OP_mul, memory, b_unsqueeze(b, b_un(b, OP_exp, x[DECAY]), 3));
	if (x[BETA].i) /* what the memory has of the key already */
		v = b_bin(b, OP_mul, x[BETA],
			  b_bin(b, OP_sub, v, b_contract(b, x[KEY], memory, heads, 2, of_key, 1)));
	memory = b_bin(b, OP_add, memory,
		       b_bin(b, OP_mul, b_unsqueeze(b, x[KEY], 3), b_unsqueeze(b, v, 2)));
	*out = b_bin_scalar(b, OP_mul, b_contract(b, x[QUERY], memory, heads, 2, of_query, 1),
			    scale);
	return memory;
}

/* Makes the graph (memory, slices that are there) -> (memory, result). */
static Graph *step_graph(const Build *b, const Recurrence *r)
{
	Build in = {.g = graph_beside(b->g, "position"), .loc = b->loc, .where = b->where};
	Node x[NSLICES] = {{0}}, y,
	     memory = graph_add_input(in.g, "memory", INPUT_USER, node_type_id(b->g, r->memory));
	for (uint32_t k = 0; k < NSLICES; k++) {
		if (!r->slice[k].i)
			continue;
		Type t = *node_type(b->g, r->slice[k]);
		x[k] = graph_add_input(in.g, "x", INPUT_USER,
				       ir_type(b->g->ir, t.dtype, t.n - 1, t.dim + 1));
	}
	memory = step(&in, x, memory, r->scale, &y);
	graph_add_output(in.g, "memory", memory, -1);
	graph_add_output(in.g, "y", y, -1);
	return memory.i && y.i ? in.g : NULL;
}

/* Sets *y to the results [T, B, H, G, V]; returns the last memory. */
static Node all_positions(Build *b, const Recurrence *r, Node *y)
{
	Ir *ir = b->g->ir;
	Node x[NSLICES] = {{0}}, in[1 + NSLICES] = {r->memory};
	Sym length = b_dim(b, r->slice[QUERY], 0);
	uint32_t n = 0;
	if (sym_is(b_syms(b), length, 1)) {
		for (uint32_t k = 0; k < NSLICES; k++)
			x[k] = r->slice[k].i ? b_select_dim(b, r->slice[k], 0, b_int(b, 0)) : x[k];
		Node memory = step(b, x, r->memory, r->scale, y);
		*y = b_unsqueeze(b, *y, 0);
		return memory;
	}
	for (uint32_t k = 0; k < NSLICES; k++)
		if (r->slice[k].i)
			in[1 + n++] = r->slice[k];
	Graph *body = step_graph(b, r);
	if (!body)
		return (Node){0};
	Attr attr[] = {attr_int(ir, 1),  attr_int(ir, n),  attr_int(ir, 0),
		       attr_graph(body), attr_sym(length), attr_bool(false)};
	Node both = b_node(b, OP_scan, in, 1 + n, attr, 6);
	*y = b_get(b, both, 1);
	return b_get(b, both, 0);
}

/* Whether decay and beta are there as the rule says. */
static bool fits_rule(Build *b, Node n, bool decay, bool beta)
{
	TRY(aten_check_word(b, n, "update_rule", "linear gated delta gated_delta"));
	const char *rule = node_str(b->g, n, "update_rule");
	bool gated = !strncmp(rule, "gated", 5), delta = strstr(rule, "delta") != NULL;
	if (gated != decay || delta != beta)
		return b_error(b, "update_rule %s: expected %s decay and %s beta", rule,
			       gated ? "a" : "no", delta ? "a" : "no")
			.i;
	return true;
}

static Node build_linear_attention(Build *b, Node n)
{
	Node query = arg(b, n, "query"), past = arg(b, n, "past_state"), decay = arg(b, n, "decay"),
	     beta = arg(b, n, "beta"), y;
	int64_t nq = aten_int(b, n, "q_num_heads"), nkv = aten_int(b, n, "kv_num_heads");
	if (nkv < 1 || nq < 1 || nq % nkv)
		return b_error(b, "%lld heads of queries and %lld of keys: expected a multiple",
			       (long long)nq, (long long)nkv);
	if (!fits_rule(b, n, decay.i, beta.i))
		return (Node){0};
	Sym heads = b_int(b, nkv);
	Recurrence r = {.slice = {by_position(b, query, b_int(b, nq)),
				  by_position(b, arg(b, n, "key"), heads),
				  by_position(b, arg(b, n, "value"), heads)}};
	if (!r.slice[QUERY].i || !r.slice[KEY].i || !r.slice[VALUE].i)
		return (Node){0};
	Shape s = aten_shape(b, r.slice[QUERY]);
	Sym dim[] = {s.dim[0], s.dim[1], heads, b_int(b, nq / nkv), s.dim[3]}, size;
	int64_t key_size = 0;
	r.slice[QUERY] = b_reshape(b, r.slice[QUERY], 5, dim);
	r.slice[DECAY] = by_position(b, decay, heads);
	r.slice[BETA] = by_position(
		b, beta, beta.i && sym_is(b_syms(b), b_dim(b, beta, 2), 1) ? b_int(b, 1) : heads);
	size = b_dim(b, r.slice[VALUE], 3);
	r.scale = node_float(b->g, n, "scale");
	if (r.scale == 0 && !aten_const(b, s.dim[3], &key_size))
		return (Node){0};
	r.scale = r.scale == 0 ? 1 / sqrt((double)key_size) : r.scale;
	DType d = node_dtype(b->g, query), wide = node_dtype(b->g, r.slice[QUERY]),
	      kept = past.i ? node_dtype(b->g, past) : d;
	Sym memory[] = {s.dim[1], heads, s.dim[3], size};
	r.memory = past.i ? b_convert(b, past, wide) : b_full(b, wide, 0, 4, memory);
	Node last = all_positions(b, &r, &y);
	y = last.i ? b_transpose(b, aten_flatten(b, y, 2, 4), 0, 1) : last;
	return b_tuple(b, (Node[]){b_convert(b, y, d), b_convert(b, last, kept)}, 2);
}

OP(onnx_LinearAttention_27){
	.schema = "onnx.LinearAttention.27(Tensor query, Tensor key, Tensor value, Tensor? "
		  "past_state, Tensor? decay, Tensor? beta, *, int chunk_size=64, "
		  "int kv_num_heads, int q_num_heads, float scale=0.0, "
		  "str update_rule=\"gated_delta\") -> (Tensor, Tensor)",
	.autocast = AUTOCAST_LOW,
	.build = build_linear_attention,
	.no_sample = NODE_TESTS,
};
