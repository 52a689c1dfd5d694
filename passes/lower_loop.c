/* A scan becomes a loop over steps: the body is lowered as a graph of its own whose inputs are carried
 * buffers, slices at t of the stacked inputs, and values from outside; stacked outputs are written at t. */
#include "passes/lower_stage.h"

/* A place that holds the whole value of an outer node: itself when stored, else a copy. */
static NodePlace stored_place(Lower *s, Node n)
{
	NodeInfo *info = info_of(s, n);
	if (info->place.n)
		return info->place.data[0];
	NodePlace p = lower_new_place(s, n, BUF_TEMP, 0);
	array_push(s->arena, &s->steps->step,
	           (Step){.kind = STEP_KERNEL, .kernel = lower_copy_kernel(s, n, &p)});
	return p;
}

static bool at_origin(const NodePlace *p)
{
	if (p->t.i)
		return false;
	for (uint32_t k = 0; k < MAX_RANK; k++)
		if (p->off[k].i)
			return false;
	return true;
}

/* Slices at t index a buffer from its start: a value inside a larger buffer is copied out. */
static NodePlace sliced_place(Lower *s, Node n, Sym t)
{
	NodePlace p = stored_place(s, n);
	if (!at_origin(&p)) {
		NodePlace own = lower_new_place(s, n, BUF_TEMP, 0);
		array_push(s->arena, &s->steps->step,
		           (Step){.kind = STEP_KERNEL, .kernel = lower_copy_kernel(s, n, &own)});
		p = own;
	}
	return (NodePlace){.buf = p.buf, .t = t};
}

/* The `get` node of result k, none when nobody reads it. */
static Node result_of(const Graph *g, Node scan, uint32_t k)
{
	Use u = node_data(g, scan)->first_use;
	return node_next_get(g, &u, k);
}

typedef struct {
	Node scan;
	uint32_t init, ninit, xs, nxs, consts, nconsts;
	Graph *body;
	Lower in;
	Step step;
	NodePlace *out; /* by body output */
} ScanLowering;

static void bind_inputs(Lower *s, ScanLowering *c)
{
	Graph *body = c->body;
	c->step.carry = ARENA_ARRAY(s->arena, struct StepCarry, c->ninit);
	c->step.ncarry = c->ninit;
	uint32_t at = 0;
	for (uint32_t k = 0; k < c->ninit; k++) {
		Node n = body->input.data[at++].node;
		NodePlace from = lower_new_place(&c->in, n, BUF_TEMP, 0);
		NodePlace to = lower_new_place(&c->in, n, BUF_TEMP, 0);
		c->step.carry[k] = (struct StepCarry){from.buf, to.buf};
		array_push(s->arena, &info_of(&c->in, n)->place, from);
		c->out[k] = to;
		Node init = node_in(s->g, c->scan, c->init + k);
		array_push(s->arena, &s->steps->step,
		           (Step){.kind = STEP_KERNEL, .kernel = lower_copy_kernel(s, init, &from)});
	}
	for (uint32_t k = 0; k < c->nxs; k++, at++) {
		Node x = node_in(s->g, c->scan, c->xs + k);
		NodePlace p = sliced_place(s, x, c->step.var);
		array_push(s->arena, &info_of(&c->in, body->input.data[at].node)->place, p);
	}
	for (uint32_t k = 0; k < c->nconsts; k++, at++) {
		NodePlace p = stored_place(s, node_in(s->g, c->scan, c->consts + k));
		array_push(s->arena, &info_of(&c->in, body->input.data[at].node)->place, p);
	}
}

/* Results live where their `get` nodes want them (outputs, parents) or in buffers of their own. */
static void bind_results(Lower *s, ScanLowering *c)
{
	uint32_t nys = c->body->output.n - c->ninit;
	for (uint32_t k = 0; k < c->ninit; k++) {
		Node r = result_of(s->g, c->scan, k);
		if (r.i)
			array_push(s->arena, &info_of(s, r)->place, c->out[k]);
	}
	const Type *tuple = node_type(s->g, c->scan);
	for (uint32_t k = 0; k < nys; k++) {
		const Type *t = ir_type_of(s->ir, tuple->elem[c->ninit + k]);
		const char *name = graph_name(s->g, c->scan);
		BufId buf = lowered_buf(s->l, BUF_TEMP, 0, t->dtype, t->n, t->dim, name);
		c->out[c->ninit + k] = (NodePlace){.buf = buf, .t = c->step.var};
		Node r = result_of(s->g, c->scan, c->ninit + k);
		if (r.i)
			array_push(s->arena, &info_of(s, r)->place, ((NodePlace){.buf = buf}));
	}
}

bool lower_scan(Lower *s, Node n)
{
	Graph *g = s->g;
	ScanLowering c = {.scan = n, .body = node_attr(g, n, "body")->graph};
	c.ninit = node_args(g, n, "init", &c.init);
	c.nxs = node_args(g, n, "xs", &c.xs);
	c.nconsts = node_args(g, n, "consts", &c.consts);
	Sym length = node_sym(g, n, "length");
	c.step = (Step){.kind = STEP_LOOP,
	                .var = sym_axis(s->ir->syms, "t", length),
	                .extent = length,
	                .reverse = node_bool(g, n, "reverse"),
	                .body = ARENA_NEW(s->arena, StepList)};
	c.out = ARENA_ARRAY(s->arena, NodePlace, c.body->output.n);
	lower_init(&c.in, c.body, s, s->l, c.step.body);
	c.in.opt = s->opt;
	lower_place_constants(&c.in);
	bind_inputs(s, &c);
	bind_results(s, &c);
	TRY(lower_body_to(&c.in, c.out));
	array_push(s->arena, &s->steps->step, c.step);
	return true;
}
