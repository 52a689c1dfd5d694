/* Operators that hold graphs become steps that hold steps; see ir/kernel/kernel.h.
 *
 *   scan    a loop over t: the body reads slices at t of the stacked inputs and writes the stacked
 *           outputs at t
 *   while   a test and a body around the same carried values
 *   cond    two branches that write the same results
 *
 * A body is lowered as a graph of its own whose inputs are where the operands are: carried buffers,
 * slices, and values from outside, which are stored for it. */
#include "lower/stage.h"

/* ---- operands ---- */

static NodePlace copied_place(Lower *s, Node n)
{
	NodePlace p = lower_new_place(s, n, BUF_TEMP, 0);
	lower_push_kernel(s, lower_copy_kernel(s, n, &p));
	return p;
}

/* A place that holds the whole value of an outer node: itself when stored, else a copy. */
static NodePlace stored_place(Lower *s, Node n)
{
	NodeInfo *info = node_info(s, n);
	return info->place.n ? info->place.data[0] : copied_place(s, n);
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

/* A buffer of its own: a value inside a larger one is copied out. */
static BufId whole_buffer(Lower *s, Node n)
{
	NodePlace p = stored_place(s, n);
	return at_origin(&p) ? p.buf : copied_place(s, n).buf;
}

/* The `get` node of result k, none when nobody reads it. */
static Node result_of(const Graph *g, Node n, uint32_t k)
{
	Use u = node_data(g, n)->first_use;
	return node_next_get(g, &u, k);
}

/* ---- bodies ---- */

static StepList *start_body(Lower *s, Lower *in, Graph *body)
{
	StepList *list = ARENA_NEW(s->arena, StepList);
	list->graph = body;
	lower_init(in, body, s, s->l, list);
	lower_place_constants(in);
	return list;
}

static void place_input(Lower *in, uint32_t k, NodePlace p)
{
	array_push(in->arena, &node_info(in, in->g->input.data[k].node)->place, p);
}

/* Inputs of a body from number `at` on are the n operands from `first` on. */
static void pass_operands(Lower *s, Lower *in, uint32_t at, Node n, uint32_t first, uint32_t count)
{
	for (uint32_t k = 0; k < count; k++)
		place_input(in, at + k, stored_place(s, node_in(s->g, n, first + k)));
}

/* ---- carried values ---- */

/* Pairs of buffers for the inputs of a body from the first on; the initial values are copied into
 * them. */
static void make_carry(Lower *s, Lower *in, Step *step, Node n, uint32_t init, uint32_t ninit,
		       NodePlace *out)
{
	step->carry = ARENA_ARRAY(s->arena, struct StepCarry, ninit);
	step->ncarry = ninit;
	for (uint32_t k = 0; k < ninit; k++) {
		Node x = in->g->input.data[k].node;
		NodePlace from = lower_new_place(in, x, BUF_TEMP, 0);
		out[k] = lower_new_place(in, x, BUF_TEMP, 0);
		step->carry[k] = (struct StepCarry){from.buf, out[k].buf};
		place_input(in, k, from);
		lower_push_kernel(s, lower_copy_kernel(s, node_in(s->g, n, init + k), &from));
	}
}

/* Readers of results find what was carried last. */
static void publish_carry(Lower *s, Node n, uint32_t ninit, const NodePlace *out)
{
	for (uint32_t k = 0; k < ninit; k++) {
		Node r = result_of(s->g, n, k);
		if (r.i)
			array_push(s->arena, &node_info(s, r)->place, out[k]);
	}
}

/* ---- scan ---- */

static void bind_slices(Lower *s, Lower *in, uint32_t at, Node n, uint32_t first, uint32_t count,
			Sym t)
{
	for (uint32_t k = 0; k < count; k++) {
		BufId buf = whole_buffer(s, node_in(s->g, n, first + k));
		place_input(in, at + k, (NodePlace){.buf = buf, .t = t});
	}
}

/* Stacked results have buffers of their own, written at t. */
static void bind_stacked(Lower *s, Node n, uint32_t ninit, uint32_t nout, Sym t, NodePlace *out)
{
	const Type *tuple = node_type(s->g, n);
	for (uint32_t k = ninit; k < nout; k++) {
		const Type *type = ir_type_of(s->ir, tuple->elem[k]);
		BufId buf = lowered_buf(s->l, BUF_TEMP, 0, type->dtype, type->n, type->dim,
					graph_name(s->g, n));
		out[k] = (NodePlace){.buf = buf, .t = t};
		Node r = result_of(s->g, n, k);
		if (r.i)
			array_push(s->arena, &node_info(s, r)->place, ((NodePlace){.buf = buf}));
	}
}

void lower_scan(Lower *s, Node n)
{
	Graph *g = s->g, *body = node_attr(g, n, "body")->graph;
	uint32_t init, xs, consts, ninit = node_args(g, n, "init", &init),
				   nxs = node_args(g, n, "xs", &xs);
	uint32_t nconsts = node_args(g, n, "consts", &consts);
	Sym length = node_sym(g, n, "length"), t = sym_axis(s->ir->syms, "t", length);
	Step step = {.kind = STEP_LOOP,
		     .var = t,
		     .extent = length,
		     .reverse = node_bool(g, n, "reverse")};
	NodePlace *out = ARENA_ARRAY(s->arena, NodePlace, body->output.n);
	Lower in;
	step.body = start_body(s, &in, body);
	make_carry(s, &in, &step, n, init, ninit, out);
	bind_slices(s, &in, ninit, n, xs, nxs, t);
	pass_operands(s, &in, ninit + nxs, n, consts, nconsts);
	publish_carry(s, n, ninit, out);
	bind_stacked(s, n, ninit, body->output.n, t, out);
	lower_body_to(&in, out);
	array_push(s->arena, &s->steps->step, step);
}

/* ---- while ---- */

/* The test reads what the body reads. */
static void lower_test(Lower *s, const Lower *body, Step *step, Graph *test)
{
	Lower in;
	step->test = start_body(s, &in, test);
	for (uint32_t k = 0; k < test->input.n; k++)
		place_input(&in, k, body->info.data[body->g->input.data[k].node.i].place.data[0]);
	NodePlace pred = lower_new_place(&in, test->output.data[0].node, BUF_TEMP, 0);
	step->pred = pred.buf;
	lower_body_to(&in, &pred);
}

void lower_while(Lower *s, Node n)
{
	Graph *g = s->g, *body = node_attr(g, n, "body")->graph;
	uint32_t init, consts, ninit = node_args(g, n, "init", &init),
			       nconsts = node_args(g, n, "consts", &consts);
	Step step = {.kind = STEP_WHILE};
	NodePlace *out = ARENA_ARRAY(s->arena, NodePlace, body->output.n);
	Lower in;
	step.body = start_body(s, &in, body);
	make_carry(s, &in, &step, n, init, ninit, out);
	pass_operands(s, &in, ninit, n, consts, nconsts);
	lower_test(s, &in, &step, node_attr(g, n, "cond")->graph);
	publish_carry(s, n, ninit, out);
	lower_body_to(&in, out);
	array_push(s->arena, &s->steps->step, step);
}

/* ---- cond ---- */

static void lower_branch(Lower *s, Node n, const char *name, const NodePlace *operand,
			 NodePlace *out, StepList **list)
{
	Lower in;
	Graph *body = node_attr(s->g, n, name)->graph;
	*list = start_body(s, &in, body);
	for (uint32_t k = 0; k < body->input.n; k++)
		place_input(&in, k, operand[k]);
	lower_body_to(&in, out);
}

void lower_cond(Lower *s, Node n)
{
	Graph *g = s->g;
	uint32_t xs, nxs = node_args(g, n, "xs", &xs), nout = node_type(g, n)->n;
	Step step = {.kind = STEP_IF, .pred = whole_buffer(s, node_in(g, n, 0))};
	NodePlace *operand = ARENA_ARRAY(s->arena, NodePlace, nxs),
		  *out = ARENA_ARRAY(s->arena, NodePlace, nout);
	for (uint32_t k = 0; k < nxs; k++)
		operand[k] = stored_place(s, node_in(g, n, xs + k));
	for (uint32_t k = 0; k < nout; k++)
		out[k] = lower_result_place(s, n, k);
	lower_branch(s, n, "yes", operand, out, &step.body);
	lower_branch(s, n, "no", operand, out, &step.other);
	array_push(s->arena, &s->steps->step, step);
	for (uint32_t k = 0; k < nout; k++)
		lower_publish_result(s, n, k, &out[k]);
}

/* ---- sizes ---- */

void lower_to_size(Lower *s, Node n)
{
	Step step = {.kind = STEP_SIZE,
		     .pred = whole_buffer(s, node_in(s->g, n, 0)),
		     .size = node_sym(s->g, n, "size"),
		     .message = node_size_message(s->g, n),
		     .differs = node_size_differs(s->g, n, s->l->graph)};
	array_push(s->arena, &s->steps->step, step);
}
