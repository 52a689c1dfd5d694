/* Batches of branches and loops.
 *
 *   cond    of a condition that all share stays one, of bodies with the batch; else both bodies are
 *           computed and results selected
 *   scan    stays one, of a body with the batch
 *   while   of a condition that all share stays one; else it goes on as long as one member is
 *           active, and what the others carry stays as it is
 *   invertible  has an inverse of the batch; in a body, where nobody asks for it, it is its results
 *
 * What a body carries has the batch if it would get it in a later round. Where only some members
 * execute a body, those are its last input: checks are made for them alone. Operands of a branch
 * are cut from derivatives for members that do not take it, since what flows into it for them,
 * though 0, may be multiplied by infinity:
 *
 *   %c = cond(%p, [%x], yes=graph(%x) { %s = sqrt(%x)  return %s }, no=...)
 * becomes
 *   %x1 = select(%p, %x, bitcast(bitcast(%x)))
 *   %s = sqrt(%x1)
 *   %r = select(%p, %s, ...)
 *
 * What cannot be masked, a call or effect of the user's, is executed for one member after the other
 * (batch_by_scan). */
#include "ops/rules/batch.h"

#include <string.h>

#include "transform/control.h"

static Graph *graph_of(const Graph *g, Node n, const char *name)
{
	return node_attr(g, n, name)->graph;
}

/* ---- which values differ ---- */

/* Sets out[] to which results differ between members, where the first ninit are carried from
 * round to round; changes in[] to what the body gets in the last round. */
static void spread_carry(const Graph *body, bool *in, uint32_t ninit, bool *out)
{
	bool more = true;
	while (more) {
		batch_spread(body, in, out);
		more = false;
		for (uint32_t k = 0; k < ninit; k++) {
			more |= out[k] && !in[k];
			in[k] |= out[k];
			out[k] = in[k];
		}
	}
}

static bool condition_differs(const Graph *test, const bool *in)
{
	bool differs = false;
	batch_spread(test, in, &differs);
	return differs;
}

void spread_while(const Graph *g, Node n, bool *in, bool *out)
{
	uint32_t first, ninit = node_args(g, n, "init", &first);
	spread_carry(graph_of(g, n, "body"), in, ninit, out);
	if (condition_differs(graph_of(g, n, "cond"), in))
		memset(out, true, ninit * sizeof *out);
}

void spread_cond(const Graph *g, Node n, bool *in, bool *out)
{
	uint32_t nout = node_type(g, n)->n;
	bool *no = ARENA_ARRAY(g->ir->ctx->scratch, bool, nout + 1);
	batch_spread(graph_of(g, n, "yes"), in + 1, out);
	batch_spread(graph_of(g, n, "no"), in + 1, no);
	for (uint32_t k = 0; k < nout; k++)
		out[k] |= no[k] || in[0];
}

static bool *copy_of(const Graph *g, const bool *in, uint32_t n)
{
	bool *copy = ARENA_ARRAY(g->ir->ctx->scratch, bool, n + 1);
	memcpy(copy, in, n * sizeof *in);
	return copy;
}

void spread_scan(const Graph *g, Node n, bool *in, bool *out)
{
	uint32_t first;
	spread_carry(graph_of(g, n, "body"), in, node_args(g, n, "init", &first), out);
}

void spread_invertible(const Graph *g, Node n, bool *in, bool *out)
{
	memcpy(out, in, node_nresult(g, n) * sizeof *out);
}

void control_spread(const Graph *g, Node n, const bool *given, bool *out)
{
	control_of(g, n)->spread(g, n, copy_of(g, given, node_nin(g, n)), out);
}

/* ---- what is checked ---- */

static bool graph_needs_mask(const Graph *g)
{
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (node_needs_mask(g, n))
			return true;
	return false;
}

bool control_needs_mask(const Graph *g, Node n)
{
	const OpInfo *info = op_info(node_op(g, n));
	const Graph *body;
	if (info->endless || info->marks)
		return info->endless;
	for (uint32_t k = 0; (body = node_next_body(g, n, &k));)
		if (graph_needs_mask(body))
			return true;
	return false;
}

static bool maskable(const Graph *g);

/* Whether n can be computed where nobody wants its results: checks are told to pass. */
static bool node_maskable(const Graph *g, Node n)
{
	const OpInfo *info = op_info(node_op(g, n));
	const Graph *body;
	for (uint32_t k = 0; !info->marks && (body = node_next_body(g, n, &k));)
		if (!maskable(body))
			return false;
	if (node_has_graph(g, n) || info->marks || info->checks == CHECKS_TRUTH ||
	    info->checks == CHECKS_ZERO)
		return true;
	return !info->foreign && !node_has_effect(g, n);
}

static bool maskable(const Graph *g)
{
	if (g->guard.n)
		return false;
	for (Node n = g->first; n.i; n = node_next(g, n))
		if (!node_maskable(g, n))
			return false;
	return true;
}

/* ---- results ---- */

/* Makes y, with the batch or without, result k of n. */
static void set_result(Batch *v, Node n, uint32_t k, Node y, bool batched)
{
	Graph *g = v->g;
	if (batched) {
		v->element[n.i][k] = y;
		return;
	}
	Use u = node_data(g, n)->first_use;
	for (Node get; (get = node_next_get(g, &u, k)).i;) {
		graph_replace(g, get, y);
		v->gone[get.i] = true;
	}
}

static void set_results(Batch *v, Build *b, Node n, Node new, const bool *batched)
{
	for (uint32_t k = 0; k < node_type(v->g, n)->n; k++)
		set_result(v, n, k, b_get(b, new, k), batched[k]);
}

/* Computes n by a scan over the members. Each of the results has the batch. */
static bool lane_after_lane(Batch *v, Build *b, Node n, const Node *in, const bool *batched)
{
	Node new = batch_by_scan(b, n, in, batched, v->size);
	for (uint32_t k = 0; new.i && k < node_type(v->g, n)->n; k++)
		set_result(v, n, k, b_get(b, new, k), true);
	return new.i;
}

/* ---- operands ---- */

static Node *operands(const Batch *v, Node n, const Node *in, uint32_t more)
{
	uint32_t nin = node_nin(v->g, n);
	Node *copy = ARENA_ARRAY(v->g->ir->ctx->scratch, Node, nin + more);
	memcpy(copy, in, nin * sizeof *in);
	return copy;
}

/* Returns x, through which nothing is differentiated. */
static Node cut(Build *b, Node x)
{
	static const DType bits[] = {DT_none, DT_i8,   DT_i16,  DT_none, DT_i32,
				     DT_none, DT_none, DT_none, DT_i64};
	DType d = x.i ? node_dtype(b->g, x) : DT_none;
	if (!dtype_is_float(d))
		return x;
	x = b_node(b, OP_bitcast, &x, 1, (Attr[]){attr_none(), attr_dtype(bits[dtype_size(d)])}, 2);
	return b_node(b, OP_bitcast, &x, 1, (Attr[]){attr_none(), attr_dtype(d)}, 2);
}

/* Returns x [B, ...] where `active`, else the same value without derivatives. */
static Node safe(Build *b, Node x, Node active)
{
	if (!x.i || !dtype_is_float(node_dtype(b->g, x)))
		return x;
	const Type t = *node_type(b->g, x);
	return b_select(b, b_broadcast_in_dim(b, active, t.n, t.dim, (uint32_t[]){0}), x,
			cut(b, x));
}

static Node select_lanes(Build *b, Node active, Node yes, Node no)
{
	if (!yes.i || !no.i)
		return (Node){0};
	const Type t = *node_type(b->g, yes);
	return b_select(b, b_broadcast_in_dim(b, active, t.n, t.dim, (uint32_t[]){0}), yes, no);
}

static Attr *with_more(Batch *v, Build *b, Node n, const char *list, uint32_t more)
{
	Attr *attr = batch_attrs(b, n);
	Attr *count = &attr[op_arg_index(node_op(v->g, n), list)];
	count->s = sym_addi(b_syms(b), count->s, more);
	return attr;
}

static Node again(Build *b, Node n, const Node *in, uint32_t nin, const Attr *attr)
{
	Op op = node_op(b->g, n);
	return b_node(b, op, in, nin, attr, op_schema(op)->narg);
}

/* ---- scan ---- */

bool batch_scan(Batch *v, Build *b, Node n, const Node *in, const bool *batched)
{
	Graph *g = v->g, *body = graph_of(g, n, "body");
	uint32_t first, nin = node_nin(g, n), nout = node_type(g, n)->n;
	uint32_t ninit = node_args(g, n, "init", &first), nxs = node_args(g, n, "xs", &first);
	bool *of = copy_of(g, batched, nin),
	     *out = ARENA_ARRAY(g->ir->ctx->scratch, bool, nout + 1);
	bool mask = v->active.i && graph_needs_mask(body);
	spread_carry(body, of, ninit, out);
	Node *x = operands(v, n, in, 1);
	for (uint32_t k = 0; k < ninit + nxs; k++)
		if (k < ninit)
			x[k] = of[k] ? batch_wide(b, x[k], batched[k], v->size) : x[k];
		else if (batched[k])
			x[k] = batch_to(b, x[k], 1);
	x[nin] = v->active;
	TRY(batch_body(body, v->size, of, out, mask));
	Node new = again(b, n, x, nin + mask, with_more(v, b, n, "consts", mask));
	for (uint32_t k = 0; new.i && k < nout; k++) {
		Node y = b_get(b, new, k);
		set_result(v, n, k, k >= ninit && out[k] ? batch_from(b, y, 1) : y, out[k]);
	}
	return new.i;
}

/* ---- cond ---- */

/* Inlines one of the bodies of a branch for those who take it. */
static bool inline_branch(Batch *v, Build *b, Node n, const char *name, const Node *in,
			  const bool *batched, Node taken, Node *out)
{
	Graph *g = v->g, *body = graph_of(g, n, name);
	uint32_t nxs = node_nin(g, n) - 1, nout = node_type(g, n)->n;
	bool mask = graph_needs_mask(body), *of = copy_of(g, batched + 1, nxs),
	     *all = ARENA_ARRAY(g->ir->ctx->scratch, bool, nout + 1);
	Node *x = ARENA_ARRAY(g->ir->ctx->scratch, Node, nxs + 1);
	memset(all, true, nout * sizeof *all);
	for (uint32_t k = 0; k < nxs; k++) {
		of[k] |= dtype_is_float(node_dtype(g, in[k + 1]));
		x[k] = of[k] ? safe(b, batch_wide(b, in[k + 1], batched[k + 1], v->size), taken)
			     : in[k + 1];
	}
	x[nxs] = taken;
	TRY(batch_body(body, v->size, of, all, mask));
	graph_inline(g, b->before, body, x, out);
	return true;
}

static bool select_branch(Batch *v, Build *b, Node n, const Node *in, const bool *batched)
{
	Graph *g = v->g;
	uint32_t nout = node_type(g, n)->n;
	Node *yes = ARENA_ARRAY(g->ir->ctx->scratch, Node, nout + 1),
	     *no = ARENA_ARRAY(g->ir->ctx->scratch, Node, nout + 1);
	Node taken = in[0], other = b_un(b, OP_bit_not, in[0]);
	if (!v->active.i && !(maskable(graph_of(g, n, "yes")) && maskable(graph_of(g, n, "no"))))
		return lane_after_lane(v, b, n, in, batched);
	if (v->active.i) {
		taken = b_bin(b, OP_bit_and, taken, v->active);
		other = b_bin(b, OP_bit_and, other, v->active);
	}
	TRY(inline_branch(v, b, n, "yes", in, batched, taken, yes));
	TRY(inline_branch(v, b, n, "no", in, batched, other, no));
	for (uint32_t k = 0; k < nout; k++)
		set_result(v, n, k, select_lanes(b, in[0], yes[k], no[k]), true);
	return true;
}

bool batch_cond(Batch *v, Build *b, Node n, const Node *in, const bool *batched)
{
	Graph *g = v->g;
	uint32_t nin = node_nin(g, n), nout = node_type(g, n)->n;
	bool *out = ARENA_ARRAY(g->ir->ctx->scratch, bool, nout + 1),
	     mask = v->active.i && control_needs_mask(g, n);
	if (batched[0])
		return select_branch(v, b, n, in, batched);
	spread_cond(g, n, copy_of(g, batched, nin), out);
	TRY(batch_body(graph_of(g, n, "yes"), v->size, batched + 1, out, mask));
	TRY(batch_body(graph_of(g, n, "no"), v->size, batched + 1, out, mask));
	Node *x = operands(v, n, in, 1);
	x[nin] = v->active;
	Node new = again(b, n, x, nin + mask, with_more(v, b, n, "xs", mask));
	if (new.i)
		set_results(v, b, n, new, out);
	return new.i;
}

/* ---- while ---- */

/* Batches a loop with one condition for all. Where not all are active the condition holds only
 * if one is, or the loop might not end. */
static bool shared_while(Batch *v, Build *b, Node n, const Node *in, const bool *batched,
			 const bool *of, const bool *out)
{
	Graph *g = v->g, *test = graph_of(g, n, "cond");
	uint32_t first, nin = node_nin(g, n), ninit = node_args(g, n, "init", &first);
	bool mask = v->active.i;
	TRY(batch_body(test, v->size, of, (bool[]){false}, mask));
	TRY(batch_body(graph_of(g, n, "body"), v->size, of, out, mask));
	if (mask) {
		Build t = {.g = test};
		Node any = b_reduce(&t, REDUCE_OR, test->input.data[nin].node, 1, DT_bool);
		graph_set_output(test, 0, b_bin(&t, OP_bit_and, test->output.data[0].node, any));
	}
	Node *x = operands(v, n, in, 1);
	for (uint32_t k = 0; k < ninit; k++)
		x[k] = of[k] ? batch_wide(b, x[k], batched[k], v->size) : x[k];
	x[nin] = v->active;
	Node new = again(b, n, x, nin + mask, with_more(v, b, n, "consts", mask));
	if (new.i)
		set_results(v, b, n, new, out);
	return new.i;
}

/* Returns a new body with inputs of the types of x: what the loop carries, who is active, and
 * constants. */
static Graph *loop_body(Graph *g, const char *name, const Node *x, uint32_t nx, Node *input)
{
	Graph *body = graph_beside(g, name);
	body->scope = g->scope;
	for (uint32_t k = 0; k < nx; k++)
		input[k] = graph_add_input(body, "", INPUT_USER, node_type_id(g, x[k]));
	return body;
}

/* Returns the operands of a body that was given one more input at the end: x with number ninit
 * moved to the end. */
static Node *active_last(Graph *g, const Node *x, uint32_t nx, uint32_t ninit)
{
	Node *arg = ARENA_ARRAY(g->ir->ctx->scratch, Node, nx);
	memcpy(arg, x, ninit * sizeof *x);
	memcpy(arg + ninit, x + ninit + 1, (nx - ninit - 1) * sizeof *x);
	arg[nx - 1] = x[ninit];
	return arg;
}

static Graph *any_active(Graph *g, const Node *x, uint32_t nx, uint32_t ninit)
{
	Node *input = ARENA_ARRAY(g->ir->ctx->scratch, Node, nx);
	Graph *test = loop_body(g, "any", x, nx, input);
	Build b = {.g = test};
	graph_add_output(test, "", b_reduce(&b, REDUCE_OR, input[ninit], 1, DT_bool), -1);
	return test;
}

/* Returns a body that executes one round for those who are active, and says who is in the next
 * one. */
static Graph *masked_round(Graph *g, const Graph *body, const Graph *test, const Node *x,
			   uint32_t nx, uint32_t ninit)
{
	Arena *scratch = g->ir->ctx->scratch;
	Node *input = ARENA_ARRAY(scratch, Node, nx), *out = ARENA_ARRAY(scratch, Node, ninit + 1),
	     more;
	Graph *round = loop_body(g, "round", x, nx, input);
	Build b = {.g = round};
	Node active = input[ninit], *arg = active_last(round, input, nx, ninit);
	for (uint32_t k = 0; k < ninit; k++)
		arg[k] = safe(&b, input[k], active);
	graph_inline(round, (Node){0}, body, arg, out);
	for (uint32_t k = 0; k < ninit; k++) {
		arg[k] = select_lanes(&b, active, out[k], input[k]);
		graph_add_output(round, "", arg[k], -1);
	}
	graph_inline(round, (Node){0}, test, arg, &more);
	graph_add_output(round, "", b_bin(&b, OP_bit_and, more, active), -1);
	return round;
}

static bool masked_while(Batch *v, Build *b, Node n, const Node *in, const bool *batched)
{
	Graph *g = v->g, *body = graph_of(g, n, "body"), *test = graph_of(g, n, "cond");
	uint32_t first, nin = node_nin(g, n), ninit = node_args(g, n, "init", &first), nx = nin + 1;
	if (!v->active.i && !(maskable(body) && maskable(test)))
		return lane_after_lane(v, b, n, in, batched);
	bool *of = copy_of(g, batched, nin);
	memset(of, true, ninit * sizeof *of);
	TRY(batch_body(body, v->size, of, of, true));
	TRY(batch_body(test, v->size, of, (bool[]){true}, true));
	Node *x = ARENA_ARRAY(g->ir->ctx->scratch, Node, nx), more;
	for (uint32_t k = 0; k < nin; k++)
		x[k < ninit ? k : k + 1] =
			k < ninit ? batch_wide(b, in[k], batched[k], v->size) : in[k];
	x[ninit] = v->active.i ? v->active : b_full_int(b, DT_bool, 1, 1, &v->size);
	graph_inline(g, b->before, test, active_last(g, x, nx, ninit), &more);
	x[ninit] = b_bin(b, OP_bit_and, more, x[ninit]);
	Attr *attr = with_more(v, b, n, "init", 1);
	attr[op_arg_index(node_op(g, n), "cond")] = attr_graph(any_active(g, x, nx, ninit));
	attr[op_arg_index(node_op(g, n), "body")] =
		attr_graph(masked_round(g, body, test, x, nx, ninit));
	Node new = again(b, n, x, nx, attr);
	for (uint32_t k = 0; new.i && k < ninit; k++)
		set_result(v, n, k, b_get(b, new, k), true);
	return new.i;
}

bool batch_while(Batch *v, Build *b, Node n, const Node *in, const bool *batched)
{
	Graph *g = v->g;
	uint32_t first, ninit = node_args(g, n, "init", &first);
	bool *of = copy_of(g, batched, node_nin(g, n)),
	     *out = ARENA_ARRAY(g->ir->ctx->scratch, bool, ninit + 1);
	spread_carry(graph_of(g, n, "body"), of, ninit, out);
	if (condition_differs(graph_of(g, n, "cond"), of))
		return masked_while(v, b, n, in, batched);
	return shared_while(v, b, n, in, batched, of, out);
}

/* ---- invertible ---- */

/* Ends the region that a block is, where only some members execute the block: nobody asks for
 * its inverse. */
static bool end_region(Batch *v, Build *b, Node n, const Node *in, const bool *batched)
{
	for (uint32_t k = 0; k < node_nresult(v->g, n); k++)
		set_result(v, n, k,
			   b_node(b, OP_checkpoint, &in[k], 1,
				  (Attr[]){attr_none(), attr_str(v->g->ir, "end")}, 2),
			   batched[k]);
	return true;
}

/* Batches a block. Where members differ in some of what the block takes and gives, all of it has
 * the batch. */
bool batch_invertible(Batch *v, Build *b, Node n, const Node *in, const bool *batched)
{
	Graph *g = v->g;
	uint32_t nin = node_nin(g, n), ny = node_nresult(g, n), first,
		 nx = node_args(g, n, "xs", &first), nconst = nin - ny - nx;
	Node *x = operands(v, n, in, 0);
	bool *of = ARENA_ARRAY(g->ir->ctx->scratch, bool, nin + 1),
	     *all = ARENA_ARRAY(g->ir->ctx->scratch, bool, nx + 1);
	if (v->active.i)
		return end_region(v, b, n, in, batched);
	memset(all, true, nx * sizeof *all);
	memset(of, true, ny * sizeof *of);
	memcpy(of + ny, batched + ny + nx, nconst * sizeof *of);
	for (uint32_t k = 0; k < ny + nx; k++)
		x[k] = batch_wide(b, x[k], batched[k], v->size);
	TRY(batch_body(graph_of(g, n, "inverse"), v->size, of, all, false));
	Node new = again(b, n, x, nin, batch_attrs(b, n));
	for (uint32_t k = 0; new.i && k < ny; k++)
		set_result(v, n, k, batched[k] ? b_get(b, new, k) : in[k], batched[k]);
	return new.i;
}

bool control_batch(Batch *v, Build *b, Node n, const Node *in, const bool *batched)
{
	Graph *g = v->g;
	uint32_t errors = g->ir->ctx->nerror;
	v->element[n.i] = ARENA_ARRAY(g->ir->ctx->scratch, Node, node_type(g, n)->n + 1);
	return control_of(g, n)->batch(v, b, n, in, batched) && g->ir->ctx->nerror == errors;
}
