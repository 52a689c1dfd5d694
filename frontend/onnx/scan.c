/* Scan: the body is a graph of its own, whose inputs are the states, slices, and what it reads of
 * the graphs around it. */
#include <string.h>

#include "frontend/onnx/body.h"

typedef struct {
	const Item *it;
	const OnnxGraph *g;
	uint32_t nstate, nxs, nys;
	Captures captures;
} ScanOf;

static int64_t list_int(const Item *it, const char *name, uint32_t k, int64_t otherwise)
{
	const OnnxAttr *a = onnx_item_attr(it, name);
	return a && k < a->ints.n ? a->ints.data[k] : otherwise;
}

/* Adds a scan of in[]: the states, then the scanned values with the scanned dimension in front. */
static Node scan_once(ScanOf *c, const Node *in)
{
	const Item *it = c->it;
	Import *im = it->s->im;
	Build *b = &it->s->b;
	Scope s;
	uint32_t n = c->nstate + c->nxs, nc = c->captures.node.n;
	Node *all = ARENA_ARRAY(im->ctx->scratch, Node, n + nc);
	onnx_scope_init(&s, im, graph_new(im->ir, "body"), it->s, it->s->opset);
	for (uint32_t k = 0; k < n; k++) {
		Type t = *node_type(b->g, in[k]);
		uint32_t skip = k >= c->nstate;
		const char *name = c->g->in.data[k].name;
		if (t.n < skip)
			return b_error(b, "input %s has no dimension to scan", name);
		all[k] = in[k];
		Node x = body_input(&s, name, ir_type(im->ir, t.dtype, t.n - skip, t.dim + skip));
		if (!onnx_scope_bind(&s, name, onnx_value_of(&s, x)))
			return (Node){0};
	}
	if (!bind_captures(&s, &c->captures) || !onnx_scope_graph(&s, c->g))
		return (Node){0};
	for (uint32_t k = 0; k < c->g->out.n; k++) {
		Value *v = body_result(it, &s, c->g, k);
		Node y = v ? onnx_value_node(&s, v) : (Node){0};
		if (!y.i)
			return (Node){0};
		graph_add_output(s.b.g, c->g->out.data[k].name, y, -1);
	}
	for (uint32_t k = 0; k < nc; k++)
		all[n + k] = c->captures.node.data[k];
	Sym length = c->nxs ? node_dim(b->g, in[c->nstate], 0) : b_int(b, 0);
	Attr attr[] = {attr_int(im->ir, c->nstate), attr_int(im->ir, c->nxs), attr_int(im->ir, nc),
		       attr_graph(s.b.g),           attr_sym(length),         attr_bool(false)};
	return b_node(b, OP_scan, all, n + nc, attr, 6);
}

static uint32_t axis_in(int64_t axis, uint32_t rank)
{
	axis += axis < 0 ? rank : 0;
	return axis >= 0 && axis < rank ? (uint32_t)axis : 0;
}

static bool scan_inputs(const ScanOf *c, uint32_t first, Node *in)
{
	const Item *it = c->it;
	Build *b = &it->s->b;
	for (uint32_t k = 0; k < c->nstate + c->nxs; k++) {
		Value *v = onnx_item_in(it, first + k);
		if (!v)
			return onnx_item_error(it, "input %u is missing", first + k);
		in[k] = onnx_value_node(it->s, v);
		TRY(in[k].i);
	}
	for (uint32_t k = 0; first == 0 && k < c->nxs; k++) {
		Node *x = &in[c->nstate + k];
		*x = moved(b, *x,
			   axis_in(list_int(it, "scan_input_axes", k, 0), node_rank(b->g, *x)), 0);
		if (list_int(it, "scan_input_directions", k, 0))
			*x = b_reverse(b, *x, 0);
	}
	return true;
}

/* Adds a scan of opset 8: one for each element of the batch, the first dimension of all. */
static bool scan_batch(ScanOf *c)
{
	const Item *it = c->it;
	Build *b = &it->s->b;
	uint32_t n = c->nstate + c->nxs;
	Node *in = ARENA_ARRAY(it->s->im->ctx->scratch, Node, n + 1),
	     *one = ARENA_ARRAY(it->s->im->ctx->scratch, Node, n + 1);
	int64_t batch;
	if (onnx_item_in(it, 0))
		return onnx_item_error(it, "lengths of sequences are not supported");
	TRY(scan_inputs(c, 1, in));
	if (!n || !node_rank(b->g, in[0]) ||
	    !sym_is_const(it->s->im->syms, node_dim(b->g, in[0], 0), &batch) || batch < 1 ||
	    batch > 1024)
		return onnx_item_error(it, "expected a constant batch of 1 to 1024");
	Rows *part = ARENA_ARRAY(it->s->im->ctx->scratch, Rows, it->n->out.n + 1);
	for (int64_t i = 0; i < batch; i++) {
		for (uint32_t k = 0; k < n; k++) {
			one[k] = b_select_dim(b, in[k], 0, b_int(b, i));
			if (k >= c->nstate && list_int(it, "directions", k - c->nstate, 0))
				one[k] = b_reverse(b, one[k], 0);
		}
		Node y = scan_once(c, one);
		TRY(y.i);
		for (uint32_t k = 0; k < it->n->out.n; k++)
			array_push(it->s->im->ctx->scratch, &part[k],
				   b_unsqueeze(b, b_get(b, y, k), 0));
	}
	for (uint32_t k = 0; k < it->n->out.n; k++)
		TRY(onnx_item_bind(it, k,
				   onnx_value_of(it->s, b_concat(b, part[k].data, part[k].n, 0))));
	return true;
}

bool onnx_import_scan(const Item *it)
{
	ScanOf c = {.it = it, .g = body_of(it, "body")};
	Build *b = &it->s->b;
	TRY(c.g);
	int64_t nxs = onnx_item_int(it, "num_scan_inputs", -1), first = it->opset < 9;
	uint32_t n = it->nin - (uint32_t)(it->nin >= first ? first : 0);
	if (nxs < 1 || nxs > n || c.g->in.n != n || c.g->out.n < n - nxs ||
	    it->n->out.n > c.g->out.n)
		return onnx_item_error(it, "a body of %u inputs and %u results for %u operands",
				       c.g->in.n, c.g->out.n, n);
	c.nxs = (uint32_t)nxs;
	c.nstate = n - c.nxs;
	c.nys = c.g->out.n - c.nstate;
	TRY(captures_of(&c.captures, it->s, c.g));
	if (first)
		return scan_batch(&c);
	Node *in = ARENA_ARRAY(it->s->im->ctx->scratch, Node, n + 1);
	TRY(scan_inputs(&c, 0, in));
	Node y = scan_once(&c, in);
	TRY(y.i);
	for (uint32_t k = 0; k < it->n->out.n; k++) {
		Node r = b_get(b, y, k);
		if (k >= c.nstate) {
			if (list_int(it, "scan_output_directions", k - c.nstate, 0))
				r = b_reverse(b, r, 0);
			r = moved(b, r, 0,
				  axis_in(list_int(it, "scan_output_axes", k - c.nstate, 0),
					  node_rank(b->g, r)));
		}
		TRY(onnx_item_bind(it, k, onnx_value_of(it->s, r)));
	}
	return true;
}
